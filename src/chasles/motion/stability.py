"""Largest step size at which explicit integrators are stable with viscous damping.

With damping d, the velocity of an inertia m decays at the rate d / m. An explicit step of size dt
amplifies it instead, unless dt d / m is below a limit that depends on the integrator. For Euler's
method, the limit is 2, so dt must be less than 2 m / d.
"""

from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.functions.doors import library_of
from chasles.functions.programs import program
from chasles.model import Model
from chasles.motion.contract import Machine
from chasles.motion.controllers import ComputedTorque, GravityCompensation, PDControl
from chasles.motion.steps.bodies import along_velocities, numbers_of
from chasles.motion.steps.integrators import INTEGRATORS


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
    always included. Robots with loops are not checked, because their inertia differs from the
    inertia of the tree.
    """
    limit, model = INTEGRATORS[integrator].damped, robot.model
    d = along_velocities(model, "damping") if dissipation else np.zeros(model.nv)
    rate = 0.0
    if isinstance(control, PDControl | GravityCompensation):
        d = d + control._gains("damping", model.nv)
    elif isinstance(control, ComputedTorque):
        rate = max(control._gains("damping", model.nv), default=0.0)
    if not np.isfinite(limit) or robot.mechanism.traits or library_of(q):
        return
    name = type(control).__name__ if rate else ""
    if d.any() and np.shape(q)[-1:] == (model.nq,) and np.size(q):
        own, joint = _fastest(model, np.reshape(q, (-1, model.nq))[0], d)
        rate, name = max((rate, name), (own, f"joint {joint!r}"))
    if dt * rate > limit:
        problem = f"dt = {dt:.3g} s is too large for the damping of {name} (rate {rate:.3g} 1/s)"
        remedy = f"use dt < {limit / rate:.3g} s, or integrator='time-stepping'"
        raise InputError("E-MOTION-186", problem, remedy, part=function)


def _fastest(model: Model, q: np.ndarray, d: np.ndarray) -> tuple[float, str]:
    """Return the largest eigenvalue of M^-1 diag(d) at q (1/s), and the main joint of the mode."""
    try:
        mass = np.linalg.inv(numbers_of(program(model, "mass_matrix"), q=np.asarray(q, float)))
    except np.linalg.LinAlgError:
        return 0.0, ""  # a joint has no inertia; forward dynamics raises an error that names it
    root = np.sqrt(d)
    if not np.isfinite(mass).all():
        return 0.0, ""
    rates, modes = np.linalg.eigh(root[:, None] * mass * root)
    place = int(np.argmax(np.abs(modes[:, -1])))
    spans = model.velocity_slices.items()
    body = next(i for i, span in spans if span.start <= place < span.stop)
    return float(rates[-1]), model.bodies[body].data.name
