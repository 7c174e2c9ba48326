"""What accelerates a robot: joint forces, and the dynamics of its tree or of its loops."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chasles.errors import ArgumentError, InputError, NotFiniteError
from chasles.functions.doors import numbers
from chasles.functions.numeric import checked_step
from chasles.motion.contract import Array, Machine
from chasles.motion.controllers import BUILT_IN, controlled
from chasles.motion.options import Forces
from chasles.motion.steps.local import Accelerate

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
        raise InputError("E-MOTION-033", "tau must be finite numbers", part="simulate")
    try:
        constant = np.array(np.broadcast_to(given, qd.shape), dtype=float)
    except ValueError:
        problem = (
            f"tau has leading shape {given.shape[:-1]}, which does not broadcast to that of the "
            f"states, {qd.shape[:-1]}"
        )
        raise InputError("E-MOTION-034", problem, part="simulate") from None
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
            problem = f"f_ext acts on frame {name!r}, and so do contacts"
            remedy = "give it at another frame of that body"
            raise InputError("E-MOTION-035", problem, remedy, part="simulate")
    options: dict[str, Any] = {"dissipation": dissipation}
    if stabilization is not None:
        robot.mechanism.require_loops("simulate: stabilization", "leave it out")
        time = checked_step(stabilization, "simulate: stabilization")
        options |= {"stabilization": time, "tolerance": LOOSE}
    return robot.mechanism.accelerations(f_ext, frames, **options)


def _like(qd: np.ndarray, tau: Array, t: float) -> np.ndarray:
    """What a function gives for joint forces, as an array that broadcasts to qd."""
    try:
        forces = np.asarray(tau, dtype=float)
    except (TypeError, ValueError):
        problem = f"tau(t, q, qd) gave {tau!r:.60} at t = {t:.6g} s"
        remedy = f"return numbers of the shape of qd, {qd.shape}"
        raise ArgumentError("E-MOTION-037", problem, remedy, part="simulate") from None
    tail = qd.shape[qd.ndim - forces.ndim :] if forces.ndim <= qd.ndim else ()
    fits = all(n in (1, m) for n, m in zip(forces.shape, tail, strict=False))
    if not forces.ndim or not tail or forces.shape[-1] != qd.shape[-1] or not fits:
        problem = f"tau(t, q, qd) gave shape {forces.shape} at t = {t:.6g} s"
        remedy = f"return the shape of qd, {qd.shape}, or one that broadcasts to it"
        raise InputError("E-MOTION-038", problem, remedy, part="simulate")
    return forces


def under(dynamics: Dynamics, force: Callable[..., np.ndarray]) -> Accelerate:
    """accelerate(t, q, qd) under joint forces."""

    def accelerate(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        qdd = dynamics(t, q, qd, force(t, q, qd))
        if not np.isfinite(qdd).all():
            problem = f"accelerations are no longer finite at t = {t:.6g} s"
            remedy = "make dt smaller, or look at tau"
            raise NotFiniteError("E-MOTION-039", problem, remedy, part="simulate")
        return qdd

    return accelerate
