"""Program for the coefficients that relate joint torques to the motion along a path."""

from collections.abc import Sequence

from chasles import backends
from chasles.backends.arrays import Kernel
from chasles.expr import RULES, Arena, Number, Program, Variable
from chasles.functions.programs import program
from chasles.model import Model

RATES = ("q", "qd", "qdd")
"""Inputs: position q on the path, and its first and second derivatives along the path."""


def loads(model: Model, limited: tuple[bool, ...]) -> Kernel | None:
    """Return a kernel that computes coefficients of the joint torques along a path.

    On a path q(s), the torques are a d2s/dt2 + b (ds/dt)^2 + c. The inputs are q and its
    derivatives q' and q'' with respect to s. The outputs are three vectors of torques: c for a
    robot at rest, c + a for zero velocity and the acceleration q', and c + b for the velocity q'
    and the acceleration q''. The vectors contain only the torques for which `limited` is True.
    Return None if no torque is limited, or if the robot has closed loops or depends on time.
    """
    if model.constraints or model.timed or not any(limited):
        return None

    def trace() -> Program:
        return _program(model, limited)

    own = any(joint.custom is not None for joint in model.source.joints)
    text = trace().hash if own else ""  # a hash that identifies user-defined joints
    recipe = ("torques along a path", model.source, model.mimics, limited, text)
    return backends.known(recipe, trace) or backends.compile(trace(), recipe=recipe)


def _program(model: Model, limited: Sequence[bool]) -> Program:
    """Return the program for `loads`, which computes the poses of the bodies only once."""
    arena, torques = Arena(RULES), program(model, "inverse_dynamics")
    assert tuple(v.name for v in torques.inputs) == RATES, "no other inputs"
    inputs = [Variable(v.name, v.shape) for v in torques.inputs]
    q, q1, q2 = ([arena.input(v.name, k) for k in range(v.size)] for v in inputs)
    still: list[Number] = [0.0] * len(q1)
    outputs = []
    for name, *rates in (("held", still, still), ("pushed", still, q1), ("turned", q1, q2)):
        given = dict(zip(RATES, (q, *rates), strict=True))
        (tau,) = torques.applied(given, arena)
        chosen = [x for x, wanted in zip(tau, limited, strict=True) if wanted]
        outputs.append((Variable(name, (len(chosen),)), chosen))
    return Program.from_outputs("torques_along", inputs, outputs)
