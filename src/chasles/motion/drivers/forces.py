"""What accelerates a robot: joint forces, and the dynamics of its tree or of its loops."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chasles.compiled import wrench_arguments
from chasles.model import ModelError
from chasles.motion.contract import Array, Machine, at_time, has_loops
from chasles.motion.controllers import BUILT_IN, controlled
from chasles.motion.options import Forces
from chasles.motion.steps.local import Accelerate
from chasles.names import numbers
from chasles.numeric.linear_systems import checked_step
from chasles.tracing import WrenchKey

LOOSE = 1e-2
"""Loops that stabilisation holds may be open by this much (rad, parts of the loop's size)."""

Dynamics = Callable[..., np.ndarray]
"""qdd of t, q, qd, tau, and of wrenches on frames that feel some."""


def joint_forces(robot: Machine, tau: Forces, qd: np.ndarray) -> Callable[..., np.ndarray]:
    """The function tau(t, q, qd), for states with velocities like qd, its results checked."""
    if isinstance(tau, BUILT_IN):
        return controlled(robot, tau)
    if callable(tau):
        return lambda t, q, qd: _like(qd, tau(t, q, qd), t)
    given = np.zeros(qd.shape[-1:]) if tau is None else numbers("simulate: tau", tau, qd.shape[-1])
    if not np.isfinite(given).all():
        raise ValueError("simulate: tau must be finite numbers")
    try:
        constant = np.array(np.broadcast_to(given, qd.shape), dtype=float)
    except ValueError:
        raise ValueError(
            f"simulate: tau has leading shape {given.shape[:-1]}, which does not broadcast to that "
            f"of the states, {qd.shape[:-1]}"
        ) from None
    return lambda t, q, qd: constant


def accelerations(
    robot: Machine,
    f_ext: Mapping[str, Any] | None,
    dissipation: bool,
    stabilization: float | None,
    frames: Sequence[str] = (),
) -> Dynamics:
    """The dynamics of a robot, with its loops closed; these stabilized, if that is asked for.

    frames: those that feel wrenches given with the state, (..., 6) along the world's axes about
    their origins.
    """
    for name in frames:
        if name in (f_ext or {}):
            raise ValueError(
                f"simulate: f_ext acts on frame {name!r}, and so do contacts; give it at another "
                "frame of that body"
            )
    options: dict[str, Any] = {"f_ext": f_ext, "dissipation": dissipation}
    if stabilization is not None:
        if not has_loops(robot):
            raise ModelError(f"simulate: robot {robot.name!r} has no loops to stabilize")
        time = checked_step(stabilization, "simulate: stabilization")
        options |= {"stabilization": time, "tolerance": LOOSE}
    if has_loops(robot):

        def closed(t: float, q: Array, qd: Array, tau: Array, *wrenches: Array) -> np.ndarray:
            pressed = dict(zip(frames, wrenches, strict=True))
            forces = options | {"f_ext": {**(f_ext or {}), **pressed}} if pressed else options
            return at_time(robot, t).constrained_dynamics(q, qd, tau, **forces)[0]

        return closed
    keys, constant = wrench_arguments(robot.model, f_ext)
    keys = (*keys, *map(WrenchKey, frames))
    compiled = robot.function("forward_dynamics", dissipation=dissipation, wrenches=keys)
    return lambda t, q, qd, tau, *wrenches: compiled.at(t).fast(q, qd, tau, *constant, *wrenches)


def _like(qd: np.ndarray, tau: Array, t: float) -> np.ndarray:
    """What a function gives for joint forces, as an array that broadcasts to qd."""
    try:
        forces = np.asarray(tau, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(
            f"simulate: tau(t, q, qd) gave {tau!r:.60} at t = {t:.6g} s; return numbers of the "
            f"shape of qd, {qd.shape}"
        ) from None
    tail = qd.shape[qd.ndim - forces.ndim :] if forces.ndim <= qd.ndim else ()
    fits = all(n in (1, m) for n, m in zip(forces.shape, tail, strict=False))
    if not forces.ndim or not tail or forces.shape[-1] != qd.shape[-1] or not fits:
        raise ValueError(
            f"simulate: tau(t, q, qd) gave shape {forces.shape} at t = {t:.6g} s; return the shape "
            f"of qd, {qd.shape}, or one that broadcasts to it"
        )
    return forces


def under(dynamics: Dynamics, force: Callable[..., np.ndarray]) -> Accelerate:
    """accelerate(t, q, qd) under joint forces."""

    def accelerate(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        qdd = dynamics(t, q, qd, force(t, q, qd))
        if not np.isfinite(qdd).all():
            raise FloatingPointError(
                f"simulate: accelerations are no longer finite at t = {t:.6g} s; make dt smaller, "
                "or look at tau"
            )
        return qdd

    return accelerate
