"""Largest step size at which explicit integrators are stable with viscous damping.

With damping d, the velocity of an inertia m decays at the rate d / m. An explicit step of size dt
amplifies it instead, unless dt d / m is below a limit that depends on the integrator. For Euler's
method, the limit is 2, so dt must be less than 2 m / d.
"""

import math
from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.functions.doors import library_of
from chasles.motion.contract import Machine
from chasles.motion.controllers import ComputedTorque, GravityCompensation, PDControl
from chasles.motion.steps.bodies import along_velocities
from chasles.motion.steps.integrators import INTEGRATORS

SAFE = "safe damping"
"""Name under which a mechanism keeps the arguments of the last check that passed."""


def check_damping(
    function: str,
    robot: Machine,
    q: Any,
    dt: float,
    integrator: str,
    control: Any,
    *,
    dissipation: bool,
) -> None:
    """Raise an error if damping makes steps of dt seconds from q (..., nq) unstable.

    Joint damping is included if `dissipation` is True; the damping of built-in controllers is
    always included. Robots with loops are not checked, because their inertia differs from that of
    the tree.
    """
    limit, model, kept = INTEGRATORS[integrator].damped, robot.model, robot.mechanism.kept
    if not np.isfinite(limit) or robot.mechanism.traits or library_of(q):
        return
    fits = np.shape(q)[-1:] == (model.nq,) and np.size(q)
    first = np.asarray(q, float).reshape(-1, model.nq)[0] if fits else np.zeros(0)
    known = (integrator, dissipation, dt, first.tobytes())
    last = kept.get(SAFE)
    if last is not None and last[0] is control and last[1] == known:
        return
    d = along_velocities(model, "damping") if dissipation else np.zeros(model.nv)
    rate = 0.0
    if isinstance(control, PDControl | GravityCompensation):
        d = d + control._gains("damping", model.nv)
    elif isinstance(control, ComputedTorque):
        rate = max(control._gains("damping", model.nv), default=0.0)
    name = type(control).__name__ if rate else ""
    if fits and d.any():
        own, joint = _fastest(robot, first, d, limit / dt)
        rate, name = max((rate, name), (own, f"joint {joint!r}"))
    if dt * rate > limit:
        problem = f"dt = {dt:.3g} s is too large for the damping of {name} (rate {rate:.3g} 1/s)"
        remedy = f"use dt < {limit / rate:.3g} s, or integrator='time-stepping'"
        raise InputError("E-MOTION-186", problem, remedy, part=function)
    kept[SAFE] = control, known


def _fastest(robot: Machine, q: np.ndarray, d: np.ndarray, limit: float) -> tuple[float, str]:
    """Return the largest eigenvalue of M^-1 diag(d) at q (1/s), and the main joint of its mode.

    If the root of the sum of their squares is below `limit`, so is the largest, and the root is
    returned.
    """
    try:
        inverse = np.linalg.inv(robot.mechanism.mass_matrix(q))
    except (InputError, np.linalg.LinAlgError):
        return 0.0, ""  # bad q or a joint without inertia, for which the motion raises an error
    whole = math.sqrt(d @ (inverse * inverse) @ d)
    if not math.isfinite(whole):
        return 0.0, ""
    if whole <= limit:
        return whole, ""
    root = np.sqrt(d)
    rates, modes = np.linalg.eigh(root[:, None] * inverse * root)
    place = int(np.argmax(np.abs(modes[:, -1])))
    spans = robot.model.velocity_slices.items()
    body = next(i for i, span in spans if span.start <= place < span.stop)
    return float(rates[-1]), robot.model.bodies[body].data.name
