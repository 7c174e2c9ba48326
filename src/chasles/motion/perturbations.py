"""Changes in joint torques due to small changes in joint motion, propagated from link to link."""

from typing import Any

import numpy as np

from chasles import backends
from chasles.algorithms.spatial.derivatives import inverse_dynamics_perturbation
from chasles.backends.arrays import call
from chasles.errors import ModelError
from chasles.functions.tracing import straight, trace

PART = "torque_perturbations"


def torque_perturbations(
    robot: Any, q: Any, qd: Any, qdd: Any, dq: Any, dqd: Any, dqdd: Any
) -> np.ndarray:
    """Return the changes in joint torques due to small changes in joint motion.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Joint positions (rad or m).
    qd, qdd : array_like, shape (..., nv)
        Joint velocities and accelerations.
    dq, dqd, dqdd : array_like, shape (..., nv)
        Small changes in q, qd and qdd; dq is a displacement, as in `integrate(q, dq)`.

    Returns
    -------
    dtau : ndarray, shape (..., nv)
        Changes D0 dqdd + V0 dqd + P0 dq of the joint torques (N m or N), where D0, V0 and P0 are
        the matrices of `Robot.inverse_dynamics_sensitivities`.

    Raises
    ------
    ModelError
        If the robot has closed loops, tendons with inertia or time-dependent joints.
    InputError
        If an array has the wrong shape, or if leading shapes do not broadcast.
    ArgumentError
        If an argument is not an array of real numbers.

    Notes
    -----
    The matrices D0, V0 and P0 are not formed, so the computing time is proportional to the number
    of joints (Balafoutis and Patel 1991, section 7.2).

    Examples
    --------
    >>> import numpy as np
    >>> import chasles
    >>> robot = chasles.robots.planar(2)
    >>> zero, one = np.zeros(2), np.ones(2)
    >>> chasles.control.torque_perturbations(robot, zero, zero, zero, zero, zero, one).round(3)
    array([3.5  , 1.167])
    """
    mechanism = robot.mechanism
    mechanism.refuse_loops(PART, "use robot.linearize(q, qd, tau)")
    mechanism.refuse_time(PART, "use linearize of robot.at_time(t)")
    if PART not in mechanism.kept:
        model = mechanism.model
        if model.rotors:
            problem = f"rotors driven by several joints are not supported (robot {model.name!r})"
            remedy = "use robot.inverse_dynamics_sensitivities(q, qd, qdd)"
            raise ModelError("E-CONTROL-011", problem, remedy, part=PART)
        program = straight(trace(model, inverse_dynamics_perturbation))
        mechanism.kept[PART] = backends.prepare((PART, program.hash), program)
    found: np.ndarray = call(mechanism.kept[PART], PART, (q, qd, qdd, dq, dqd, dqdd))
    return found
