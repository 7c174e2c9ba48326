"""Coordinates of Pinocchio, and routes that call Pinocchio from Python on one thread."""

from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import pinocchio as pin

import chasles
from benchmarks.routes import Route, loop
from benchmarks.states import Array, Coordinates, States


def coordinates(robot: chasles.Robot, model: Any, states: States) -> Coordinates:
    """Convert states to Pinocchio's coordinates; joints are matched by name.

    Linear coordinates precede angular ones, quaternions are (x, y, z, w), and the angle of a
    continuous joint is stored as (cos, sin).
    """
    q, T = np.empty((len(states.q), model.nq)), np.zeros((model.nv, model.nv))
    for name in robot.joints:
        joint = model.joints[model.getJointId(name)]
        position, rates = states.q[:, robot.position_slice(name)], robot.velocity_slice(name)
        theirs = q[:, joint.idx_q : joint.idx_q + joint.nq]
        columns = np.arange(rates.start, rates.stop)
        if joint.nq == 7:
            theirs[...] = position[:, [4, 5, 6, 1, 2, 3, 0]]
            columns = columns[[3, 4, 5, 0, 1, 2]]
        elif (joint.nq, joint.nv) == (2, 1):
            theirs[...] = np.hstack([np.cos(position), np.sin(position)])
        else:
            theirs[...] = position
        T[np.arange(joint.idx_v, joint.idx_v + joint.nv), columns] = 1.0
    return Coordinates(q, T, np.zeros((len(q), model.nv)))


def routes(model: Any, function: str, states: States, theirs: Coordinates, tip: str) -> list[Route]:
    """Return routes: single calls, and a C++ loop or a Python loop that stores the results."""
    data, inputs = model.createData(), theirs.states(states).inputs(function)
    made = []
    for label, call, *extra in _calls(model, data, function, tip):
        rows = list(zip(*inputs, *map(repeat, extra), strict=False))
        answers = partial(_returned, call, rows, function, theirs)
        made.append(Route("Pinocchio", label, False, len(rows), partial(loop, call, rows), answers))
        if isinstance(result := call(*rows[0]), np.ndarray) and function not in BATCHES:
            out = np.full((len(rows), *result.shape), np.nan)
            keep, answers = partial(_keep, call, rows, out), partial(_mine, function, theirs, out)
            made.append(Route("Pinocchio", f"{label}, kept", True, len(rows), keep, answers))
    if function in BATCHES:
        label, batch = BATCHES[function]
        out = np.full((len(states.q), model.nv), np.nan)
        run = partial(batch, 1, pin.ModelPool(model, 1), *(x.T for x in inputs), out.T)
        answers = partial(_mine, function, theirs, out)
        made.append(Route("Pinocchio", label, True, len(out), run, answers))
    return made


BATCHES: dict[str, tuple[str, Callable[..., object]]] = {
    "inverse_dynamics": ("rneaInParallel", pin.rneaInParallel),
    "forward_dynamics": ("abaInParallel", pin.abaInParallel),
}
"""Pinocchio's loops in C++. They run on one thread and write to an existing array."""


def _calls(model: Any, data: Any, function: str, tip: str) -> list[tuple[Any, ...]]:
    """Return (label, call, constant last arguments) for all ways to compute one state."""
    world = pin.Convention.WORLD
    if function == "inverse_dynamics":
        return [("rnea", partial(pin.rnea, model, data))]
    if function == "mass_matrix":
        crba = partial(pin.crba, model, data)
        return [("crba", crba), ("crba, world", crba, world)]
    if function == "forward_dynamics":
        aba = partial(pin.aba, model, data)
        return [("aba", aba), ("aba, world", aba, world)]
    if function == "inverse_dynamics_derivatives":
        return [("computeRNEADerivatives", partial(pin.computeRNEADerivatives, model, data))]
    if function == "forward_dynamics_derivatives":
        return [("computeABADerivatives", partial(pin.computeABADerivatives, model, data))]
    if function == "linearize":
        return [("computeABADerivatives, A and B", _linearize(model, data))]
    frame = model.getFrameId(tip, pin.BODY)
    if function == "jacobian":
        jacobian = partial(pin.computeFrameJacobian, model, data)
        return [("computeFrameJacobian", jacobian, frame, pin.LOCAL_WORLD_ALIGNED)]
    assert function == "forward_kinematics"

    def pose(q: Array) -> Any:
        """Return the pose of a frame. Pinocchio always computes the whole tree."""
        pin.forwardKinematics(model, data, q)
        return pin.updateFramePlacement(model, data, frame)

    return [("forwardKinematics", pose)]


def _linearize(model: Any, data: Any) -> Callable[..., Array]:
    """Return a function that computes [A B] in an array; only blocks that change are written."""
    n = model.nv
    assert n == model.nq, "joint positions must be integrable by addition"
    both = np.zeros((2 * n, 3 * n))
    both[:n, n : 2 * n] = np.eye(n)
    by_q, by_qd, by_tau = np.split(both[n:], 3, axis=1)

    def call(q: Array, qd: Array, tau: Array) -> Array:
        by_q[...], by_qd[...], by_tau[...] = pin.computeABADerivatives(model, data, q, qd, tau)
        return both

    return call


def _keep(call: Callable[..., Any], rows: list[tuple[Any, ...]], out: Array) -> None:
    for place, row in zip(out, rows, strict=True):
        place[...] = call(*row)


def _returned(
    call: Callable[..., Any], rows: list[tuple[Any, ...]], function: str, theirs: Coordinates
) -> Array:
    """Return the results of all rows, in chasles' conventions."""
    if function == "forward_kinematics":
        return np.array([call(*row).homogeneous for row in rows])
    return _mine(function, theirs, np.array([np.array(call(*row)) for row in rows]))


def _mine(function: str, theirs: Coordinates, results: Array) -> Array:
    """Convert results to chasles' conventions, in which angular rows of a Jacobian are first."""
    turned = results[:, [3, 4, 5, 0, 1, 2]] if function == "jacobian" else results
    return theirs.result(function, turned)
