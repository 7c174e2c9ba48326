"""Time forward dynamics with closed loops, and compare with Pinocchio's constraintDynamics."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

import chasles
from benchmarks.compare import TOLERANCE, Effort, Row, checked
from benchmarks.pinocchio_loops import Mechanism
from benchmarks.robots import CASES, chasles_robot
from benchmarks.routes import NEW, REUSED, SINGLE_CALLS, Route, loop
from benchmarks.states import Array
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import Transform
from chasles.model import LoopData

FUNCTION = "forward_dynamics"


@dataclass(frozen=True)
class Closed:
    """Mechanism with closed loops and without redundant equations.

    `make` returns the robot and a configuration. `spread` is the maximum deviation of
    independent coordinates from this configuration.
    """

    title: str
    make: Callable[[], tuple[chasles.Robot, Array]]
    spread: float


def standing_talos() -> tuple[chasles.Robot, Array]:
    """Return Talos with bent knees and both feet fixed to the ground, and its configuration."""
    walker = chasles_robot(CASES["talos"])
    bent = {"3": -0.4, "4": 0.8, "5": -0.4}
    sides = ("left", "right")
    q = walker.state({f"leg_{s}_{k}_joint": angle for s in sides for k, angle in bent.items()})
    loops = []
    for side in sides:
        foot = f"leg_{side}_6_link"
        T = walker.forward_kinematics(q, frame=foot)
        place = Transform.from_pose(Matrix(tuple(map(tuple, T[:3, :3]))), Vector(tuple(T[:3, 3])))
        loops.append(LoopData(f"{side}_foot", "fixed", None, foot, place))
    return walker.with_loops(*loops), q


def stewart() -> tuple[chasles.Robot, Array]:
    """Return a Stewart platform and its neutral configuration."""
    robot = chasles.robots.stewart()
    return robot, robot.neutral()


CLOSED: dict[str, Closed] = {
    "stewart": Closed("Stewart platform", stewart, 0.1),
    "standing_talos": Closed("Talos, both feet fixed", standing_talos, 0.05),
}
"""Mechanisms of the comparison."""


def closed_loops(
    names: Iterable[str], effort: Effort, progress: Callable[[str], None] = lambda _: None
) -> tuple[Row, ...]:
    """Measure each mechanism. Raise WrongAnswer if the results of the libraries differ."""
    rows = []
    for name in names:
        progress(f"{CLOSED[name].title}: {FUNCTION}")
        rows.append(_row(name, effort))
    return tuple(rows)


def _row(name: str, effort: Effort) -> Row:
    case = CLOSED[name]
    robot, middle = case.make()
    states = _motions(robot, middle, case.spread, effort.batch)
    theirs = Mechanism(robot)
    truth = theirs.forward_dynamics(*states)
    routes = _chasles(robot, states) + _pinocchio(theirs, states)
    timed = checked(case.title, FUNCTION, routes, truth, TOLERANCE, effort)
    exact = max(route.error for route in timed if route.library == "chasles")
    return Row(name, FUNCTION, timed, exact, TOLERANCE)


def _motions(
    robot: chasles.Robot, middle: Array, spread: float, count: int
) -> tuple[Array, Array, Array]:
    """Draw assembled configurations, velocities that satisfy the loop constraints, and torques."""
    rng = np.random.default_rng(0)
    y = np.concatenate([middle[robot.position_slice(joint)] for joint in robot.independent])
    q = robot.assemble(y + spread * rng.uniform(-1.0, 1.0, (count, len(y))), guess=middle)
    qd = robot.complete(q, rng.normal(size=(count, len(y))))
    return q, qd, rng.normal(size=(count, robot.nv))


def _chasles(robot: chasles.Robot, states: tuple[Array, Array, Array]) -> list[Route]:
    """Return routes of chasles: a batch on one thread, and single calls with and without `out=`."""
    rows = list(zip(*(x[:SINGLE_CALLS] for x in states), strict=True))
    robot.forward_dynamics(*rows[0])  # the first call replaces the method by a faster one
    call, out, one = robot.forward_dynamics, np.empty_like(states[2]), np.empty(robot.nv)

    def reused() -> None:
        for q, qd, tau in rows:
            call(q, qd, tau, out=one)

    def single(label: str, run: Callable[[], object], call: Callable[..., Array]) -> Route:
        def answers() -> Array:
            return np.array([call(*row).copy() for row in rows])

        return Route("chasles", label, False, len(rows), run, answers)

    whole = partial(call, *states, out=out, threads=1)
    return [
        Route("chasles", "threads=1", True, len(out), whole, lambda: out),
        single(NEW, partial(loop, call, rows), call),
        single(REUSED, reused, partial(call, out=one)),
    ]


def _pinocchio(theirs: Mechanism, states: tuple[Array, Array, Array]) -> list[Route]:
    """Return routes of Pinocchio: one call per state, with and without proximal iterations."""
    inputs, made = theirs.states(*states), []
    rows = list(zip(*inputs, strict=True))
    for label, call in (
        ("constraintDynamics", theirs.call),
        ("constraintDynamics, mu = 0", theirs.call_once),
    ):
        out = np.empty_like(inputs[2])

        def keep(call: Callable[..., Array] = call, out: Array = out) -> None:
            for place, row in zip(out, rows, strict=True):
                place[...] = call(*row)

        def answers(keep: Callable[[], None] = keep, out: Array = out) -> Array:
            keep()
            return theirs.convention.from_acceleration(*inputs[:2], out)

        run = partial(loop, call, rows)
        made.append(Route("Pinocchio", label, False, len(rows), run, answers))
        made.append(Route("Pinocchio", f"{label}, kept", True, len(rows), keep, answers))
    return made
