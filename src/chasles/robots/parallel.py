"""Parallel robots: a platform on several legs."""

import math

from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model import Description, JointData, LinkData, LoopData
from chasles.robots._solids import box, cylinder, rod

_BASE = box(10.0, (0.5, 0.5, 0.1))
_X, _Y, _Z = (Vector.of(*(float(i == k) for i in range(3))) for k in range(3))


def stewart() -> Description:
    """Gough and Stewart's platform: six legs, each universal, prismatic, spherical.

    Feet in pairs on a circle of 1 m, heads in pairs on one of 0.6 m, the platform 0.8 m above the
    ground at neutral. Legs: cylinder and piston of 1 kg and 0.5 m each. The platform, of 10 kg, has
    a free joint "platform" to the ground; leg k has joints "foot<k>" (universal) and "leg<k>" (its
    extension beyond neutral, m); loop "head<k>" is a spherical joint. The extensions are the
    independent freedoms. Gravity is along -z.
    """
    links = [LinkData("base", _BASE), LinkData("platform", cylinder(10.0, 0.6, 0.1, 2))]
    joints = [JointData("platform", "free", "base", "platform", _at(_Z * 0.8))]
    loops = []
    for k in range(6):
        turn, side = 2.0 * math.pi * (k // 2) / 3.0, 1.0 if k % 2 else -1.0
        foot = _circle(1.0, turn + side * math.radians(15.0))
        head = _circle(0.6, turn + side * math.radians(45.0))
        reach = head + _Z * 0.8 - foot
        length = math.sqrt(reach.dot(reach))
        lower, upper, middle = f"cylinder{k + 1}", f"piston{k + 1}", _Z * 0.25
        links += [
            LinkData(lower, cylinder(1.0, 0.03, 0.5, 2, middle)),
            LinkData(upper, cylinder(1.0, 0.02, 0.5, 2, -middle)),
        ]
        joints += [
            _universal(f"foot{k + 1}", "base", lower, _facing(foot, reach)),
            JointData(f"leg{k + 1}", "prismatic", lower, upper, _at(_Z * length)),
        ]
        loops.append(LoopData(f"head{k + 1}", "spherical", upper, "platform", child_pose=_at(head)))
    lengths = tuple(f"leg{k + 1}" for k in range(6))
    return Description(
        "stewart", tuple(links), tuple(joints), loops=tuple(loops), independent=lengths
    )


def delta() -> Description:
    """Clavel's delta robot: three arms, each with two parallel rods, universal and spherical.

    Arms of 0.5 m turn about axes tangent to a circle of 0.3 m under the ceiling; rods of 0.8 m, a
    pair 0.2 m apart, lead from each arm to a platform of radius 0.15 m. Joints "arm<k>" (angle
    downward from horizontal), "rod<k>a" and "rod<k>b" (universal), "platform" (free); the rods end
    in loops "ball<k>a" and "ball<k>b", spherical. The arms are the independent freedoms: the
    platform only translates. Arms of 1 kg, rods of 0.3 kg, platform of 2 kg; gravity is along -z.
    """
    inward = 0.3 + 0.5 - 0.15
    depth = math.sqrt(0.8 * 0.8 - inward * inward)
    links = [LinkData("base", _BASE), LinkData("platform", cylinder(2.0, 0.15, 0.05, 2))]
    joints = [JointData("platform", "free", "base", "platform", _at(_Z * -depth))]
    loops = []
    for k in range(3):
        arm, outward = f"arm{k + 1}", _circle(1.0, 2.0 * math.pi * k / 3.0)
        tangent = _Z.cross(outward)
        links.append(LinkData(arm, rod(1.0, 0.5)))
        shoulder = Transform(_axes(outward, tangent), outward * 0.3)
        joints.append(JointData(arm, "revolute", "base", arm, shoulder, axis=_Y))
        for name, side in (("a", -0.1), ("b", 0.1)):
            thin = f"rod{k + 1}{name}"
            links.append(LinkData(thin, cylinder(0.3, 0.01, 0.8, 2, _Z * 0.4)))
            elbow = _facing(Vector.of(0.5, side, 0.0), Vector.of(-inward, 0.0, -depth))
            joints.append(_universal(thin, arm, thin, elbow))
            ball = _at(outward * 0.15 + tangent * side)
            loops.append(
                LoopData(
                    f"ball{k + 1}{name}",
                    "spherical",
                    thin,
                    "platform",
                    _at(_Z * 0.8),
                    child_pose=ball,
                )
            )
    arms = tuple(f"arm{k + 1}" for k in range(3))
    return Description("delta", tuple(links), tuple(joints), loops=tuple(loops), independent=arms)


def _universal(name: str, parent: str, child: str, pose: Transform) -> JointData:
    """About x, then y, so that the child can point anywhere near z."""
    return JointData(name, "universal", parent, child, pose, axis=_X, second_axis=_Y)


def _circle(radius: float, angle: float) -> Vector:
    return Vector.of(radius * math.cos(angle), radius * math.sin(angle), 0.0)


def _at(place: Vector) -> Transform:
    return Transform(Rotation(), place)


def _axes(x: Vector, y: Vector) -> Rotation:
    """The rotation of coordinates to a frame with these two axes."""
    return Rotation.of(Matrix((tuple(x), tuple(y), tuple(x.cross(y)))))


def _facing(place: Vector, along: Vector) -> Transform:
    """A frame at a place whose z axis looks along a vector; its x axis is horizontal."""
    z = along * (1.0 / math.sqrt(along.dot(along)))
    x = z.cross(_Z)
    x = x * (1.0 / math.sqrt(x.dot(x)))
    return Transform(_axes(x, z.cross(x)), place)
