"""The door and the loop of `chasles.simulate`."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from chasles.compiled import wrench_arguments
from chasles.names import numbers
from chasles.numeric.linear_systems import checked_step
from chasles.robot import Array, Robot
from chasles.simulate.motions import Closed, tree
from chasles.simulate.runge_kutta import Accelerate, runge_kutta

LOOSE = 1e-2
"""Loops that stabilisation holds may be open by this much (rad, parts of the loop's size)."""

Forces = Array | Callable[[float, np.ndarray, np.ndarray], Array] | None
"""Joint forces: none, constant, or tau(t, q, qd)."""


@dataclass(frozen=True)
class Trajectory:
    """States at times t (n,): q (..., n, nq) and qd (..., n, nv).

    rechosen: the times at which some member of the batch was given other independent coordinates,
    where loops are closed.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    rechosen: tuple[float, ...] = ()


def simulate(
    robot: Robot,
    q: Array,
    qd: Array,
    *,
    duration: float,
    dt: float = 1e-3,
    tau: Forces = None,
    f_ext: Mapping[str, Any] | None = None,
    dissipation: bool = False,
    stabilization: float | None = None,
    every: int = 1,
    progress: bool = False,
) -> Trajectory:
    """The motion from q (..., nq) and qd (..., nv) for `duration` seconds, in steps of at most dt.

    By the classical Runge-Kutta method of fourth order, on the configuration space (rotations stay
    rotations); the error falls with dt^4. tau: joint forces (..., nv), constant, or a function
    tau(t, q, qd) of them, called with all members of a batch; none by default. f_ext and
    dissipation as in `forward_dynamics`. every: keep one state of so many. progress: show a bar.

    Of a robot with loops, q and qd must keep them closed (`assemble`, `complete`). The independent
    coordinates are integrated and the others follow them, to 1e-13, so that nothing drifts; where a
    pivot of these equations falls below a hundredth of its start others are taken as independent.
    Raises `chasles.SingularPosition` where the motion comes to a position in which none will do.
    stabilization: integrate all coordinates of the tree instead, and let loops that open close
    again in about so many seconds (Baumgarte; see `constrained_dynamics`).
    """
    q, qd = _state(robot, q, qd)
    steps = math.ceil(_seconds("duration", duration) / _seconds("dt", dt) - 1e-9)
    h = duration / steps
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ValueError(f"simulate: every must be a positive integer, not {every!r}")
    accelerate = _dynamics(robot, tau, q.shape[:-1], f_ext, dissipation, stabilization)
    if robot.loops and stabilization is None:
        closed = Closed(robot, robot._charts, q)
        q, qd = closed.begin(q, qd)
        step, rechosen = partial(closed.step, accelerate), closed.rechosen
    else:
        step, rechosen = partial(runge_kutta, tree(robot), accelerate), []
    kept = [(0.0, q, qd)]
    for k in _counted(steps, progress):
        q, qd = step(k * h, h, q, qd)
        if not np.isfinite(qd).all():
            raise FloatingPointError(
                f"simulate: the motion is no longer finite at t = {(k + 1) * h:.6g} s; make dt "
                "smaller, or look at tau"
            )
        if (k + 1) % every == 0:
            kept.append(((k + 1) * h, q, qd))
    t, positions, velocities = zip(*kept, strict=True)
    axis = q.ndim - 1
    return Trajectory(
        np.array(t), np.stack(positions, axis), np.stack(velocities, axis), tuple(rechosen)
    )


def _seconds(name: str, value: Any) -> float:
    return checked_step(value, f"simulate: {name}")


def _state(robot: Robot, q: Array, qd: Array) -> tuple[np.ndarray, np.ndarray]:
    """q and qd as floats with the same leading shape."""
    given = {"q": (q, robot.nq), "qd": (qd, robot.nv)}
    arrays = {k: numbers(f"simulate: {k}", v, n).astype(float) for k, (v, n) in given.items()}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(f"simulate: {name} must be finite numbers")
    try:
        lead = np.broadcast_shapes(*(a.shape[:-1] for a in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {a.shape[:-1]}" for name, a in arrays.items())
        raise ValueError(f"simulate: leading shapes do not broadcast together: {shapes}") from None
    first, second = (np.array(np.broadcast_to(a, (*lead, a.shape[-1]))) for a in arrays.values())
    return first, second


def _dynamics(
    robot: Robot,
    tau: Forces,
    lead: tuple[int, ...],
    f_ext: Mapping[str, Any] | None,
    dissipation: bool,
    stabilization: float | None,
) -> Accelerate:
    """accelerate(t, q, qd) of a robot under these forces."""
    if robot.loops:
        options: dict[str, Any] = {"f_ext": f_ext, "dissipation": dissipation}
        if stabilization is not None:
            time = _seconds("stabilization", stabilization)
            options |= {"stabilization": time, "tolerance": LOOSE}

        def dynamics(*state: np.ndarray) -> np.ndarray:
            return robot.constrained_dynamics(*state, **options)[0]

    else:
        keys, forces = wrench_arguments(robot.model, f_ext)
        compiled = robot.function("forward_dynamics", dissipation=dissipation, wrenches=keys).fast

        def dynamics(*state: np.ndarray) -> np.ndarray:
            return compiled(*state, *forces)

    if callable(tau):
        return lambda t, q, qd: dynamics(q, qd, np.asarray(tau(t, q, qd), dtype=float))
    constant = np.zeros(robot.nv) if tau is None else numbers("simulate: tau", tau, robot.nv)
    if np.broadcast_shapes(constant.shape[:-1], lead) != lead:
        raise ValueError(
            f"simulate: tau has leading shape {constant.shape[:-1]}, more than that of the states, "
            f"{lead}; give q as many"
        )
    constant = np.array(np.broadcast_to(constant, (*lead, robot.nv)), dtype=float)
    return lambda t, q, qd: dynamics(q, qd, constant)


def _counted(steps: int, progress: bool) -> Iterable[int]:
    """The numbers of the steps, with a bar where one is asked for."""
    if not progress:
        return range(steps)
    from rich.progress import track

    return track(range(steps), description="simulate")
