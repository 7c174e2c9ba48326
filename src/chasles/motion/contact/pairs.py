"""Pairs of shapes that may touch, each with the law that holds between them."""

import math
from dataclasses import dataclass
from numbers import Real

from chasles.errors import ArgumentError, InputError
from chasles.mathematics.linear import Vector
from chasles.motion.contact.soft import FrameMotion, Spot
from chasles.motion.geometry.arithmetic import Value, less, scaled, select
from chasles.motion.geometry.closed_forms import Ground, Plane, Point, Sphere
from chasles.motion.geometry.meetings import meets
from chasles.motion.geometry.points import Body, Surface, check_shapes
from chasles.motion.geometry.shapes import ConvexMesh, Cylinder
from chasles.motion.laws.restitution import ImpactLaw, Newton, check_law
from chasles.motion.laws.soft import SoftContact


@dataclass(frozen=True)
class Rigid:
    """Bodies that do not give way: they touch, leave, slide and stick, and collide.

    friction: Coulomb's coefficient mu, while touching. restitution: e of Newton's law of impact,
    with the same friction, at all points that touch together. impact: a law of one point in its
    place, which acts at the points in turn.
    """

    friction: float = 0.0
    restitution: float = 0.0
    impact: ImpactLaw | None = None

    def __post_init__(self) -> None:
        for name, most in (("friction", math.inf), ("restitution", 1.0)):
            value = getattr(self, name)
            fits = isinstance(value, Real) and math.isfinite(value) and 0.0 <= float(value) <= most
            if not fits:
                bound = "from 0 on" if math.isinf(most) else f"from 0 to {most:g}"
                problem = f"{name} must be a number {bound}, not {value!r:.60}"
                raise InputError("E-CONTACT-042", problem, part="Rigid")
        if self.impact is not None:
            check_law("Rigid: impact", self.impact)

    @property
    def impact_law(self) -> ImpactLaw:
        """The law of impact."""
        return self.impact or Newton(self.restitution, self.friction)


@dataclass(frozen=True)
class Pair:
    """A body that may touch a surface, and the law between them.

    Each point of the body (`body.balls()`) is a contact of its own, in the order of the pairs; of
    rigid bodies that touch by other points as they move, the pair is one.
    """

    body: Body
    surface: Surface
    law: Rigid | SoftContact

    def __post_init__(self) -> None:
        check_shapes("Pair", self.body, self.surface)
        if not isinstance(self.law, Rigid | SoftContact):
            problem = f"the law must be Rigid(...) or SoftContact(...), not {self.law!r:.60}"
            raise ArgumentError("E-CONTACT-043", problem, part="Pair")
        if isinstance(self.law, SoftContact) and self.law.tangents != 2:
            problem = "a law with tangents=1 is for points in a plane"
            raise InputError("E-CONTACT-044", problem, "give SoftContact(tangents=2)", part="Pair")
        if self.body.frame == self.surface.frame:
            where = "in the world" if self.body.frame is None else f"on frame {self.body.frame!r}"
            problem = f"body and surface are both {where} and do not move beside each other"
            remedy = "give one of them another frame"
            raise InputError("E-CONTACT-045", problem, remedy, part="Pair")
        shapes = f"{type(self.body).__name__} on {type(self.surface).__name__}"
        if isinstance(self.law, SoftContact) and not self.traced:
            problem = f"{shapes} has no fixed points of contact, which soft laws need"
            remedy = (
                "give a Point or Sphere on any shape but Cylinder and ConvexMesh, or all but a "
                "Cylinder on a Plane or Ground"
            )
            raise InputError("E-CONTACT-046", problem, remedy, part="Pair")
        if not self.traced and not self.varies and not isinstance(self.body, Point | Sphere):
            problem = f"{shapes} is not known in motion"
            remedy = (
                "give a Point or Sphere on any shape, a Capsule, Box or ConvexMesh on a Box or "
                "ConvexMesh, the Capsule as body, or anything on a Plane or Ground: the hull of a "
                "few points (ConvexMesh) may serve, for a Cylinder that of its rims, [at for at, "
                "_ in cylinder.balls()]"
            )
            raise InputError("E-CONTACT-047", problem, remedy, part="Pair")

    @property
    def traced(self) -> bool:
        """Whether its points stay the same balls of the body, on a surface with a closed form."""
        if isinstance(self.surface, Cylinder | ConvexMesh):
            return False
        flat = isinstance(self.surface, Plane | Ground) and not isinstance(self.body, Cylinder)
        return flat or isinstance(self.body, Point | Sphere)

    @property
    def varies(self) -> bool:
        """Whether rigid bodies touch by other points as they move."""
        return meets(self.body, self.surface)

    @property
    def frames(self) -> tuple[str | None, str | None]:
        """The frames that carry the body and the surface; None: the world."""
        return self.body.frame, self.surface.frame

    @property
    def points(self) -> int:
        """How many contacts they have; 1 where these vary: all of them together."""
        return 1 if self.varies else len(self.body.balls())

    def spots(self, over: FrameMotion, under: FrameMotion) -> list[Spot]:
        """Where they may touch, from the motion of the frames of body and surface.

        Tangents belong to the surface: they turn with its frame, and with its normal.
        """
        assert not isinstance(self.surface, Cylinder | ConvexMesh), "refused above"
        found = []
        for at, radius in self.body.balls():
            c, rate = over.point(at)
            distance, n, _ = self.surface.near(*under.seen(c, rate))
            first, second, normal = (under.along(axis) for axis in (*tangents(n), n))
            point = c - scaled(normal, radius)
            u = over.velocity(point) - under.velocity(point)
            slip = [first.dot(u), second.dot(u)]
            axes = first, second, normal
            found.append(Spot(point, axes, distance - radius, normal.dot(u), slip))
        return found


def tangents(n: Vector) -> tuple[Vector, Vector]:
    """Two unit vectors across a unit vector; of (0, 0, 1) those along x and y.

    They jump where n is horizontal and nowhere else (Duff and others 2017, *Building an orthonormal
    basis, revisited*).
    """
    x, y, z = n
    up: Value = select(less(z, 0.0), -1.0, 1.0)
    a = -1.0 / (up + z)
    b = x * y * a
    return Vector.of(1.0 + up * x * x * a, up * b, -up * x), Vector.of(b, up + y * y * a, -y)
