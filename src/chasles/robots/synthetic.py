"""Made for study: equal rods in a plane, and chains and trees in which nothing is special."""

import math
import random
from collections.abc import Sequence

from chasles.errors import ModelError
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation, about
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Description, FrameData, JointData, LinkData
from chasles.model.denavit_hartenberg import DHRow, dh_chain
from chasles.robots._solids import points, rod

_TIP = Vector.of(1.0, 0.0, 0.0)


def planar(n: int) -> Description:
    """n equal rods (1 m, 1 kg) in the vertical plane y = 0, gravity along -z.

    The revolute joints are horizontal, along -y: at q = 0 the arm lies along x, and a positive
    angle lifts what follows. Frame "tip" is at (sum of cosines, 0, sum of sines) of the angles that
    the rods make with x.
    """
    return _rods("planar", [0.0] * n, Description.gravity)


def zigzag(n: int) -> Description:
    """The zig-zag arm of Featherstone (2008), section 10.2, without gravity.

    Rods as in `planar` (moment 1/12 about the centre); joint angles alternate between +75 and -75
    degrees at q = 0, so that the book's numbers are those of the neutral configuration.
    """
    return _rods("zigzag", [math.radians(75.0 * (-1) ** i) for i in range(n)], Vector.zero())


def _rods(name: str, angles: Sequence[float], gravity: Vector) -> Description:
    """Rods along the x axes of their links, each turned by an angle at q = 0."""
    _require(name, len(angles))
    links, joints = [LinkData("base", RigidInertia.zero())], []
    for i, angle in enumerate(angles, start=1):
        place = Vector.zero() if i == 1 else _TIP
        joints.append(
            JointData(
                f"joint{i}",
                "revolute",
                links[-1].name,
                f"link{i}",
                Transform(about(1, -angle) if angle else Rotation(), place),
                Vector.of(0.0, -1.0, 0.0),
            )
        )
        links.append(LinkData(f"link{i}", rod(1.0, 1.0)))
    tip = FrameData("tip", links[-1].name, Transform(Rotation(), _TIP))
    return Description(name, tuple(links), tuple(joints), (tip,), gravity)


def general_chain(n: int, *, right_angles: bool = False) -> Description:
    """n revolute joints with arbitrary modified Denavit-Hartenberg numbers and full inertias.

    No length, twist, moment or product is 0, 1 or equal to another, so that no operation folds away
    but those of the table's own structure (Balafoutis and Patel 1991 count "general" arms so).
    right_angles: every twist is 90 degrees, the other column of their tables. Always the same
    numbers; the first links of a longer chain are those of a shorter one. Gravity is along -z.
    """
    _require("general_chain", n)
    rng = random.Random(1991)
    rows = []
    for _ in range(n):
        a, d, alpha, body = _any_link(rng)
        alpha = math.pi / 2.0 if right_angles else alpha
        m, c, I = body.about_center()
        rows.append(DHRow(0.0, d, a, alpha, mass=m, center=tuple(c), inertia=tuple(I)))
    point = Vector.of(*(rng.uniform(0.05, 0.15) for _ in range(3)))
    return dh_chain("general_chain", rows, "modified", tips={"tool": Transform(Rotation(), point)})


def general_tree(n: int, children: int) -> Description:
    """n revolute joints, level by level so many on every link (on the base, one): nothing special.

    The trees that Featherstone (2008, section 10.3) counts on: with one child a link the chain
    GU(n), with two the binary tree. The first child of a link, and that of the base, has a
    Denavit-Hartenberg placement, d along z and a along x of its parent, turned about x alone; other
    children are placed anyhow. Always the same numbers. Gravity is along -z.
    """
    _require("general_tree", n)
    if children < 1:
        problem = f"{children} children a link"
        raise ModelError("E-ROBOT-031", problem, "ask for one or more", part="robot 'general_tree'")
    rng = random.Random(2008)
    links, joints = [LinkData("base", RigidInertia.zero())], []
    for i in range(1, n + 1):
        a, d, alpha, body = _any_link(rng)
        turn, y = rng.uniform(0.3, 1.2), rng.uniform(0.1, 0.4)
        first = i == 1 or (i - 2) % children == 0
        E = about(0, alpha) if first else about(2, turn).then(about(0, alpha))
        place = Transform(E, Vector.of(a, 0.0 if first else y, d))
        parent = links[0 if i == 1 else (i - 2) // children + 1].name
        joints.append(JointData(f"joint{i}", "revolute", parent, f"link{i}", place))
        links.append(LinkData(f"link{i}", body))
    return Description("general_tree", tuple(links), tuple(joints))


def _any_link(rng: random.Random) -> tuple[float, float, float, RigidInertia]:
    """A length a, an offset d, a twist of either sign, and the inertia of six point masses."""
    a, d = rng.uniform(0.1, 0.4), rng.uniform(0.05, 0.3)
    alpha = rng.uniform(0.3, 1.2) * (1.0 if rng.random() < 0.5 else -1.0)
    masses = [rng.uniform(0.2, 0.8) for _ in range(6)]
    places = [Vector(tuple(rng.uniform(-0.2, 0.2) for _ in range(3))) for _ in masses]
    return a, d, alpha, points(masses, places)


def _require(name: str, n: int) -> None:
    if n < 1:
        problem = f"it has {n} joints"
        raise ModelError("E-ROBOT-032", problem, "ask for one or more", part=f"robot {name!r}")
