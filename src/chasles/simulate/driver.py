"""The door and the loop of `chasles.simulate`."""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from chasles.loops import LoopError
from chasles.names import leading_shape, numbers
from chasles.numeric.linear_systems import checked_step
from chasles.robot import Array, Robot
from chasles.rollouts import Trajectory
from chasles.simulate.closure_function import ClosureFunction
from chasles.simulate.dynamics import Forces, accelerations, joint_forces, under
from chasles.simulate.motions import Closed, begun, by_function, method, tree


def simulate(
    robot: Robot,
    q: Array,
    qd: Array,
    *,
    duration: float,
    start: float | None = None,
    dt: float = 1e-3,
    tau: Forces = None,
    f_ext: Mapping[str, Any] | None = None,
    dissipation: bool = False,
    stabilization: float | None = None,
    closure: ClosureFunction | None = None,
    every: int = 1,
    progress: bool = False,
) -> Trajectory:
    """The motion from q (..., nq) and qd (..., nv) for `duration` seconds, in steps of at most dt.

    By the classical Runge-Kutta method of fourth order, on the configuration space (rotations stay
    rotations); the error falls with dt^4. tau: joint forces (..., nv), constant, or a function
    tau(t, q, qd) of them, called with all members of a batch; none by default. f_ext and
    dissipation as in `forward_dynamics`. start: the time in s at which it begins, for tau(t, q, qd)
    and for a robot that depends on time; by default that of `at_time`, or 0. every: keep one state
    of so many, and the last. progress: show a bar.

    Of a robot with loops, q and qd must keep them closed (`assemble`, `complete`). The independent
    coordinates are integrated and the others follow them, to 1e-13, so that nothing drifts; where a
    pivot of these equations falls below a third of its start, others are taken as independent.
    Raises `chasles.SingularPosition` where the motion comes to a position in which none will do.
    stabilization: integrate all coordinates of the tree instead, and let loops that open close
    again in about so many seconds (Baumgarte; see `constrained_dynamics`). closure: a function that
    closes them instead of Newton's method.
    """
    if closure is not None and stabilization is not None:
        raise TypeError("simulate: give closure or stabilization, not both")
    q, qd = _state(robot, q, qd)
    whole = checked_step(duration, "simulate: duration")
    steps = max(math.ceil(whole / checked_step(dt, "simulate: dt") - 1e-9), 1)
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ValueError(f"simulate: every must be a positive integer, not {every!r}")
    start = _beginning(robot, start)
    dynamics = accelerations(robot, f_ext, dissipation, stabilization)
    advance = method(robot, under(dynamics, joint_forces(tau, qd)))
    rechosen: list[float] = []
    if closure is not None:
        place = by_function(robot, closure)
        q, qd = begun(robot, place, start, q, qd)
        step = partial(advance, place)
    elif not robot.model.loop_rows or stabilization is not None:
        step = partial(advance, tree(robot))
    else:
        closed = Closed(robot, start, q)
        q, qd = begun(robot, closed.place, start, q, qd)
        step, rechosen = partial(closed.step, advance), closed.rechosen
    kept = [(start, q, qd)]
    for k in _counted(steps, progress):
        q, qd = _stepped(step, start + whole * k / steps, whole / steps, q, qd)
        if (k + 1) % every == 0 or k + 1 == steps:
            kept.append((start + whole * (k + 1) / steps, q, qd))
    t, positions, velocities = zip(*kept, strict=True)
    axis = q.ndim - 1
    return Trajectory(
        np.array(t), np.stack(positions, axis), np.stack(velocities, axis), tuple(rechosen)
    )


def _stepped(
    step: Callable[..., tuple[np.ndarray, np.ndarray]],
    t: float,
    h: float,
    q: np.ndarray,
    qd: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """A step; what goes wrong in it says when."""
    try:
        return step(t, h, q, qd)
    except LoopError as error:
        raise type(error)(f"simulate: after t = {t:.6g} s: {error}") from None


def _beginning(robot: Robot, start: Any) -> float:
    """The time at which a motion begins: as given, or the robot's own."""
    own = 0.0 if robot._time is None else robot._time
    time = own if start is None else start
    if np.ndim(time) or not isinstance(time, int | float | np.ndarray) or not np.isfinite(time):
        raise ValueError(f"simulate: start must be a finite time, one number, not {time!r:.60}")
    return float(time)


def _state(robot: Robot, q: Array, qd: Array) -> tuple[np.ndarray, np.ndarray]:
    """q and qd as floats with the same leading shape."""
    given = {"q": (q, robot.nq), "qd": (qd, robot.nv)}
    arrays = {k: numbers(f"simulate: {k}", v, n).astype(float) for k, (v, n) in given.items()}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(f"simulate: {name} must be finite numbers")
    lead = leading_shape("simulate", **arrays)
    first, second = (np.array(np.broadcast_to(a, (*lead, a.shape[-1]))) for a in arrays.values())
    return first, second


def _counted(steps: int, progress: bool) -> Iterable[int]:
    """The numbers of the steps, with a bar where one is asked for."""
    if not progress:
        return range(steps)
    from rich.progress import track

    return track(range(steps), description="simulate")
