"""Mechanisms with closed loops, in the plane of x and y."""

import math

from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model import Description, JointData, LinkData, LoopData, ModelError
from chasles.robots._solids import box, rod

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
        raise ModelError(
            f"robot 'four_bar': {longest} ({lengths[longest]:g} m) is longer than the other three "
            "bars together, which cannot meet; make it shorter"
        )
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


def _hinge(name: str, parent: str, child: str, x: float) -> JointData:
    return JointData(name, "revolute", parent, child, _along(x))


def _along(x: float) -> Transform:
    return Transform(Rotation(), Vector.of(x, 0.0, 0.0))


def _check(robot: str, **lengths: float) -> None:
    for name, length in lengths.items():
        if not (math.isfinite(length) and length > 0.0):
            raise ModelError(f"robot {robot!r}: {name} is {length!r}; give a positive length in m")
