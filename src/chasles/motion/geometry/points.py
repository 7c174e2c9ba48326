"""Where two bodies touch: the one function that knows the way for every pair of shapes."""

from numbers import Real

from chasles.errors import ArgumentError, InputError
from chasles.motion.contract import Machine
from chasles.motion.geometry.carriers import Array, carrier
from chasles.motion.geometry.closed_forms import Box, Capsule, Contact, Ground, Plane, Point, Sphere
from chasles.motion.geometry.features import ball_contact, rim_contact
from chasles.motion.geometry.patches import flipped, patch_contacts
from chasles.motion.geometry.shapes import ConvexMesh, Cylinder

Body = Point | Sphere | Capsule | Box | Cylinder | ConvexMesh
Surface = Sphere | Capsule | Box | Cylinder | ConvexMesh | Plane | Ground


def check_shapes(function: str, body: Body, surface: Surface) -> None:
    """Refuse what is no body, or no surface."""
    if not isinstance(body, Body) or not isinstance(surface, Surface):
        problem = (
            f"no contact of {type(body).__name__} as body with {type(surface).__name__} as surface"
        )
        remedy = "planes and grounds are surfaces, points bodies"
        raise ArgumentError("E-CONTACT-051", problem, remedy, part=function)


def contact_points(
    robot: Machine,
    q: Array,
    qd: Array,
    body: Body,
    surface: Surface,
    *,
    friction: float = 0.0,
    torsion: float = 0.0,
) -> list[Contact]:
    """The contacts of a body with a surface, near or not.

    friction: Coulomb's coefficient mu. torsion: the coefficient (m) of the moment about the normal,
    for a contact that is a small patch; it needs friction.

    q (..., nq), qd (..., nv). On a plane or a ground there is one contact for each end of a
    capsule, each corner of a box or mesh, and for each rim of a cylinder one for its lowest point,
    which moves, and for `rim` fixed ones; that is all there is to them where the ground is flat
    beside them. With a ball there is one, in closed form. Other pairs are for one state and give
    the nearest points as a patch: one, two of an edge, or the corners of a polygon; but for two
    capsules they need the package coal (extra `contact`).
    """
    check_shapes("contact_points", body, surface)
    for name, value in (("friction", friction), ("torsion", torsion)):
        if not isinstance(value, Real) or not value >= 0.0:
            problem = f"{name} must be a number from 0 on, not {value!r}"
            raise InputError("E-CONTACT-052", problem, part="contact_points")
    if torsion and not friction:
        problem = "torsion needs friction, with which it shares a cone"
        raise InputError("E-CONTACT-053", problem, part="contact_points")
    if isinstance(body, Point | Sphere) or isinstance(surface, Plane | Ground):
        found = _features(robot, q, qd, body, surface)
    elif isinstance(surface, Sphere):
        over, under = (carrier(robot, q, qd, shape.frame) for shape in (surface, body))
        found = [flipped(c, over, under) for c in _features(robot, q, qd, surface, body)]
    else:
        found = patch_contacts(robot, q, qd, body, surface)
    return [c._replace(friction=friction, torsion=torsion) for c in found]


def _features(robot: Machine, q: Array, qd: Array, body: Body, surface: Surface) -> list[Contact]:
    """The contacts of a body's balls and rims."""
    over, under = (carrier(robot, q, qd, shape.frame) for shape in (body, surface))
    frames = body.frame, surface.frame
    found = [ball_contact(frames, over, ball, under, surface) for ball in body.balls()]
    if isinstance(body, Cylinder) and isinstance(surface, Plane | Ground):
        found += [rim_contact(frames, over, rim, under, surface) for rim in body.rims]
    return found
