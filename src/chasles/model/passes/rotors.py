"""Bodies whose angle makes no difference: round about their axis, and carrying nothing."""

from dataclasses import dataclass, replace

from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Plane, Rotation
from chasles.mathematics.spatial import Transform
from chasles.model.joints import Revolute
from chasles.model.model import Model
from chasles.model.passes.inertias import is_round


@dataclass(frozen=True)
class Rotor(Revolute):
    """A turning joint whose body is described in axes that do not turn with it."""

    def motion(self, q: Vector) -> Transform:
        return Transform(Rotation((Plane(2, 1.0, 0.0),)), Vector.zero())


def still_rotors(model: Model) -> Model:
    """The same equation of motion, with last bodies that are round in axes that stay.

    Velocities and forces then need not be turned, nor has the angle a sine. Named frames and loops
    are left out: those on such a body do turn.
    """
    bodies = list(model.bodies)
    for i, _, joint, inertia in model.outward():
        turns = isinstance(joint, Revolute) and not isinstance(joint, Rotor)
        if turns and not model.children[i] and is_round(inertia):
            parts = joint.placement, joint.armature, joint.damping, joint.friction
            bodies[i] = replace(bodies[i], joint=Rotor(*parts))
    return replace(model, bodies=tuple(bodies), frames={}, loops=())
