"""Mechanisms with closed loops, in the plane of x and y."""

import math

from chasles.errors import ModelError
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model import Description, JointData, LinkData, LoopData
from chasles.robots._solids import box, cylinder, rod

_DOWN = Vector.of(0.0, -9.81, 0.0)
_BASE = box(1.0, (0.2, 0.2, 0.2))


def slider_crank(l1: float = 1.0, l2: float = 3.0) -> Description:
    """The slider crank of Legnani et al. (1996), part II, section 5: R R R P and a weld.

    q = (alpha1, alpha2, alpha3, a): the angle of the crank (length l1, m) from x, of the rod (l2)
    from the crank, of the slider from the rod, and the slider's distance from the crank's axis, all
    in the world's x-y plane. As in the paper, the last joint leads from the slider back to the
    frame (M34 = translation by -a along x), where loop "closure" welds link "guide" to "base".
    Rods of 1 kg/m, base and slider of 1 kg; the guide (1 kg) rests where the loop is closed.
    Gravity is along -y.
    """
    _check("slider_crank", l1=l1, l2=l2)
    links = (
        LinkData("base", _BASE),
        LinkData("crank", rod(l1, l1)),
        LinkData("rod", rod(l2, l2)),
        LinkData("slider", box(1.0, (0.2, 0.1, 0.1))),
        LinkData("guide", box(1.0, (1.0, 0.1, 0.1))),
    )
    joints = (
        _hinge("alpha1", "base", "crank", 0.0),
        _hinge("alpha2", "crank", "rod", l1),
        _hinge("alpha3", "rod", "slider", l2),
        JointData("a", "prismatic", "slider", "guide", axis=Vector.of(-1.0, 0.0, 0.0)),
    )
    closure = LoopData("closure", "fixed", "base", "guide")
    return Description("slider_crank", links, joints, gravity=_DOWN, loops=(closure,))


def four_bar(
    ground: float = 0.4, crank: float = 0.1, coupler: float = 0.35, rocker: float = 0.3
) -> Description:
    """Four bars (lengths in m) in the x-y plane; by default the crank turns and the rocker swings.

    q = (crank, coupler, rocker): the angle of the crank from x, of the coupler from the crank, and
    of the rocker from x; the crank turns about the origin, the rocker about (ground, 0, 0). Loop
    "pin", a revolute joint, holds the ends of coupler and rocker together. Rods of 1 kg/m, a base
    of 1 kg; gravity is along -y.
    """
    lengths = {"ground": ground, "crank": crank, "coupler": coupler, "rocker": rocker}
    _check("four_bar", **lengths)
    longest = max(lengths, key=lambda name: lengths[name])
    if lengths[longest] >= sum(lengths.values()) - lengths[longest]:
        problem = (
            f"{longest} ({lengths[longest]:g} m) is longer than the other three bars together, "
            "which cannot meet"
        )
        raise ModelError("E-ROBOT-028", problem, "make it shorter", part="robot 'four_bar'")
    links = (
        LinkData("base", _BASE),
        *(LinkData(name, rod(length, length)) for name, length in list(lengths.items())[1:]),
    )
    joints = (
        _hinge("crank", "base", "crank", 0.0),
        _hinge("coupler", "crank", "coupler", crank),
        _hinge("rocker", "base", "rocker", ground),
    )
    pin = LoopData(
        "pin", "revolute", "coupler", "rocker", _along(coupler), child_pose=_along(rocker)
    )
    return Description("four_bar", links, joints, gravity=_DOWN, loops=(pin,))


def triangle(l1: float = 1.0, l2: float = 2.0) -> Description:
    """A two-link arm that a linear actuator drives (Featherstone 2008, figure 8.3), in the plane.

    q = (q1, q2, q3, q4): the angle of the upper arm from x, of the cylinder from x, the distance of
    the piston's end from the cylinder's pivot, and the angle of the forearm from the upper arm. The
    upper arm turns about the origin, the cylinder about (l1, 0, 0), the piston's end is pinned to
    the upper arm at l2 from the origin (loop "pin"). Upper arm of length 3/2 l2, forearm l2, of
    1 kg/m; cylinder and piston of 1 kg and length l1/2. Gravity is along -y.
    """
    _check("triangle", l1=l1, l2=l2)
    half, upper = 0.5 * l1, 1.5 * l2
    links = (
        LinkData("base", _BASE),
        LinkData("upper", rod(upper, upper)),
        LinkData("cylinder", rod(1.0, half)),
        LinkData("piston", cylinder(1.0, 0.05, half, 0, Vector.of(-0.5 * half, 0.0, 0.0))),
        LinkData("forearm", rod(l2, l2)),
    )
    joints = (
        _hinge("q1", "base", "upper", 0.0),
        _hinge("q2", "base", "cylinder", l1),
        JointData("q3", "prismatic", "cylinder", "piston", axis=Vector.of(1.0, 0.0, 0.0)),
        _hinge("q4", "upper", "forearm", upper),
    )
    pin = LoopData("pin", "revolute", "piston", "upper", child_pose=_along(l2))
    return Description(
        "triangle", links, joints, gravity=_DOWN, loops=(pin,), independent=("q1", "q4")
    )


def five_bar(ground: float = 0.6, crank: float = 0.5, coupler: float = 0.8) -> Description:
    """Two cranks at the ends of the ground, joined by two couplers: one loop, two freedoms.

    q = (left, left_coupler, right, right_coupler): angles of the cranks from x, and of each coupler
    from its crank. The left crank turns about the origin, the right one about (ground, 0, 0); loop
    "pin", a revolute joint, holds the ends of the couplers together. Rods of 1 kg/m (lengths in m),
    gravity along -y.
    """
    _check("five_bar", ground=ground, crank=crank, coupler=coupler)
    if ground >= 2.0 * (crank + coupler):
        problem = (
            f"ground ({ground:g} m) is longer than both cranks and couplers together, which cannot "
            "meet"
        )
        raise ModelError("E-ROBOT-029", problem, "make it shorter", part="robot 'five_bar'")
    links = (
        LinkData("base", _BASE),
        LinkData("left", rod(crank, crank)),
        LinkData("left_coupler", rod(coupler, coupler)),
        LinkData("right", rod(crank, crank)),
        LinkData("right_coupler", rod(coupler, coupler)),
    )
    joints = (
        _hinge("left", "base", "left", 0.0),
        _hinge("left_coupler", "left", "left_coupler", crank),
        _hinge("right", "base", "right", ground),
        _hinge("right_coupler", "right", "right_coupler", crank),
    )
    end = _along(coupler)
    pin = LoopData("pin", "revolute", "left_coupler", "right_coupler", end, child_pose=end)
    return Description(
        "five_bar", links, joints, gravity=_DOWN, loops=(pin,), independent=("left", "right")
    )


def six_bar() -> Description:
    """Watt's six bars in the x-y plane: two loops that share two links, one freedom.

    A four-bar (ground 1, crank 0.5, coupler 0.9, rocker 0.8 m), whose coupler carries a link
    "fifth" (0.6 m) at 0.45 m from its end and whose rocker carries a link "sixth" (0.7 m) at 0.4 m;
    loop "inner" pins coupler to rocker, loop "outer" the ends of the two links. q = (crank,
    coupler, rocker, fifth, sixth): angles of crank and rocker from x, of the others from the link
    that carries them. Rods of 1 kg/m, gravity along -y.
    """
    lengths = {"crank": 0.5, "coupler": 0.9, "rocker": 0.8, "fifth": 0.6, "sixth": 0.7}
    links = [LinkData("base", _BASE), *(LinkData(n, rod(l, l)) for n, l in lengths.items())]
    joints = (
        _hinge("crank", "base", "crank", 0.0),
        _hinge("coupler", "crank", "coupler", 0.5),
        _hinge("rocker", "base", "rocker", 1.0),
        _hinge("fifth", "coupler", "fifth", 0.45),
        _hinge("sixth", "rocker", "sixth", 0.4),
    )
    loops = (
        LoopData("inner", "revolute", "coupler", "rocker", _along(0.9), child_pose=_along(0.8)),
        LoopData("outer", "revolute", "fifth", "sixth", _along(0.6), child_pose=_along(0.7)),
    )
    return Description(
        "six_bar", tuple(links), joints, gravity=_DOWN, loops=loops, independent=("crank",)
    )


def _hinge(name: str, parent: str, child: str, x: float) -> JointData:
    return JointData(name, "revolute", parent, child, _along(x))


def _along(x: float) -> Transform:
    return Transform(Rotation(), Vector.of(x, 0.0, 0.0))


def _check(robot: str, **lengths: float) -> None:
    for name, length in lengths.items():
        if not (math.isfinite(length) and length > 0.0):
            problem = f"{name} is {length!r}"
            remedy = "give a positive length in m"
            raise ModelError("E-ROBOT-030", problem, remedy, part=f"robot {robot!r}")
