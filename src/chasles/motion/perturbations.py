"""Changes of joint torques along a motion, propagated from link to link."""

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
    """Return d tau (..., nv) for small changes of the joint motion q, qd, qdd.

    d tau = D0 dqdd + V0 dqd + P0 dq, with the matrices of `Robot.inverse_dynamics_sensitivities`,
    which are not formed: the time is proportional to the number of joints (Balafoutis and Patel
    1991, section 7.2). dq is along `integrate`. Robots with closed loops, tendons or time-dependent
    joints raise an error.
    """
    mechanism = robot.mechanism
    mechanism.refuse_loops(PART, "use robot.linearize(q, qd, tau)")
    mechanism.refuse_time(PART, "use linearize of robot.at_time(t)")
    if PART not in mechanism.kept:
        model = mechanism.model
        if model.rotors:
            problem = f"robot {model.name!r} has rotors that other joints drive"
            remedy = "use robot.inverse_dynamics_sensitivities(q, qd, qdd)"
            raise ModelError("E-CONTROL-011", problem, remedy, part=PART)
        program = straight(trace(model, inverse_dynamics_perturbation))
        mechanism.kept[PART] = backends.prepare((PART, program.hash), program)
    found: np.ndarray = call(mechanism.kept[PART], PART, (q, qd, qdd, dq, dqd, dqdd))
    return found
