"""Mechanisms with closed loops: planar linkages in the x-y plane, and parallel robots."""

import math
from collections.abc import Mapping

from chasles.errors import ModelError
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model import Description, JointData, LinkData, LoopData
from chasles.model.given import is_finite
from chasles.robots._solids import box, cylinder, rod

_DOWN = Vector.of(0.0, -9.81, 0.0)
_BASE = box(1.0, (0.2, 0.2, 0.2))
_GROUND = box(10.0, (0.5, 0.5, 0.1))
_X, _Y, _Z = (Vector.of(*(float(i == k) for i in range(3))) for k in range(3))


def slider_crank(l1: float = 1.0, l2: float = 3.0) -> Description:
    """Return the slider-crank mechanism of Legnani et al. (1996), part II, section 5.

    Parameters
    ----------
    l1 : float, optional
        Length of the crank (m).
    l2 : float, optional
        Length of the rod (m).

    Returns
    -------
    robot : Robot
        The mechanism, nv = 4, mobility 1.

    Raises
    ------
    ModelError
        If a length is not a positive finite number.

    Notes
    -----
    q = (alpha1, alpha2, alpha3, a). The angles are measured from x to the crank, from the crank to
    the rod, and from the rod to the slider, in the world's x-y plane. The slider is at distance a
    from the crank's axis. The tree has three revolute joints and a prismatic joint "a". As in the
    paper, the prismatic joint leads from the slider back to the ground (a translation by -a along
    x). Its child link "guide" is welded to link "base" by loop "closure", so the guide is at rest
    if the loop is closed. The rods have a mass of 1 kg/m; base, slider and guide have a mass of
    1 kg each. Gravity is along -y.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.slider_crank()
    >>> robot.assemble([0.7]).round(3)
    array([ 0.7  , -0.916,  0.216,  3.695])
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
        JointData("a", "prismatic", "slider", "guide", axis=-_X),
    )
    closure = LoopData("closure", "fixed", "base", "guide")
    return Description("slider_crank", links, joints, gravity=_DOWN, loops=(closure,))


def four_bar(
    ground: float = 0.4, crank: float = 0.1, coupler: float = 0.35, rocker: float = 0.3
) -> Description:
    """Return a four-bar linkage in the x-y plane, by default a crank-rocker.

    Parameters
    ----------
    ground, crank, coupler, rocker : float, optional
        Lengths (m).

    Returns
    -------
    robot : Robot
        The mechanism, nv = 3, mobility 1.

    Raises
    ------
    ModelError
        If a length is not a positive finite number, or if a bar is at least as long as the other
        three together.

    Notes
    -----
    q = (crank, coupler, rocker). The angles of the crank and the rocker are measured from x, and
    the angle of the coupler from the crank. The crank rotates about the origin, and the rocker
    about (ground, 0, 0). Loop "pin", a revolute joint, connects the ends of the coupler and the
    rocker. The rods have a mass of 1 kg/m, the base has a mass of 1 kg, and gravity is along -y.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.four_bar()
    >>> robot.mobility().mobility
    1
    """
    lengths = {"ground": ground, "crank": crank, "coupler": coupler, "rocker": rocker}
    _check("four_bar", **lengths)
    longest = max(lengths, key=lambda name: lengths[name])
    if lengths[longest] >= sum(lengths.values()) - lengths[longest]:
        problem = (
            f"`{longest}` ({lengths[longest]:g} m) must be shorter "
            "than the sum of the other lengths"
        )
        remedy = "shorten this bar, or lengthen another one"
        raise ModelError("E-ROBOT-028", problem, remedy, part="robot 'four_bar'")
    bars = {
        "crank": (crank, "base", 0.0),
        "coupler": (coupler, "crank", crank),
        "rocker": (rocker, "base", ground),
    }
    return _linkage("four_bar", bars, {"pin": ("coupler", "rocker")})


def triangle(l1: float = 1.0, l2: float = 2.0) -> Description:
    """Return a planar two-link arm with a linear actuator (Featherstone 2008, figure 8.3).

    Parameters
    ----------
    l1 : float, optional
        Distance from the origin to the cylinder's pivot (m).
    l2 : float, optional
        Distance from the origin to the pin on the upper arm (m).

    Returns
    -------
    robot : Robot
        The mechanism, nv = 4, mobility 2.

    Raises
    ------
    ModelError
        If a length is not a positive finite number.

    Notes
    -----
    q = (q1, q2, q3, q4). The angles of the upper arm (q1) and the cylinder (q2) are measured from
    x, and the angle of the forearm (q4) from the upper arm. q3 is the distance from the cylinder's
    pivot to the piston's end. The upper arm rotates about the origin, and the cylinder about
    (l1, 0, 0). Loop "pin" connects the piston's end to the upper arm at distance l2 from the
    origin. The upper arm (length 3/2 l2) and the forearm (length l2) have a mass of 1 kg/m. The
    cylinder and the piston each have a mass of 1 kg and a length of l1/2. Gravity is along -y.

    Examples
    --------
    >>> import chasles
    >>> chasles.robots.triangle().mobility().mobility
    2
    """
    _check("triangle", l1=l1, l2=l2)
    half, upper = 0.5 * l1, 1.5 * l2
    links = (
        LinkData("base", _BASE),
        LinkData("upper", rod(upper, upper)),
        LinkData("cylinder", rod(1.0, half)),
        LinkData("piston", cylinder(1.0, 0.05, half, 0, _X * (-0.5 * half))),
        LinkData("forearm", rod(l2, l2)),
    )
    joints = (
        _hinge("q1", "base", "upper", 0.0),
        _hinge("q2", "base", "cylinder", l1),
        JointData("q3", "prismatic", "cylinder", "piston", axis=_X),
        _hinge("q4", "upper", "forearm", upper),
    )
    pin = LoopData("pin", "revolute", "piston", "upper", child_pose=_along(l2))
    return Description(
        "triangle", links, joints, gravity=_DOWN, loops=(pin,), independent=("q1", "q4")
    )


def five_bar(ground: float = 0.6, crank: float = 0.5, coupler: float = 0.8) -> Description:
    """Return a five-bar linkage: two cranks joined by two couplers, with two degrees of freedom.

    Parameters
    ----------
    ground, crank, coupler : float, optional
        Lengths (m).

    Returns
    -------
    robot : Robot
        The mechanism, nv = 4, mobility 2.

    Raises
    ------
    ModelError
        If a length is not a positive finite number, or if `ground` is at least as long as both
        cranks and both couplers together.

    Notes
    -----
    q = (left, left_coupler, right, right_coupler). The angles of the cranks are measured from x,
    and the angle of each coupler from its crank. The left crank rotates about the origin, and the
    right crank about (ground, 0, 0). Loop "pin", a revolute joint, connects the ends of the
    couplers. The rods have a mass of 1 kg/m, and gravity is along -y.

    Examples
    --------
    >>> import chasles
    >>> chasles.robots.five_bar().joints
    ('left', 'left_coupler', 'right', 'right_coupler')
    """
    _check("five_bar", ground=ground, crank=crank, coupler=coupler)
    if ground >= 2.0 * (crank + coupler):
        problem = f"`ground` ({ground:g} m) must be shorter than both cranks plus both couplers"
        remedy = "reduce `ground`, the distance between the pivots of the cranks"
        raise ModelError("E-ROBOT-029", problem, remedy, part="robot 'five_bar'")
    bars = {
        "left": (crank, "base", 0.0),
        "left_coupler": (coupler, "left", crank),
        "right": (crank, "base", ground),
        "right_coupler": (coupler, "right", crank),
    }
    pins = {"pin": ("left_coupler", "right_coupler")}
    return _linkage("five_bar", bars, pins, independent=("left", "right"))


def six_bar() -> Description:
    """Return Watt's six-bar linkage in the x-y plane: two loops, one degree of freedom.

    Returns
    -------
    robot : Robot
        The mechanism, nv = 5, mobility 1.

    Notes
    -----
    The linkage extends a four-bar linkage (ground 1, crank 0.5, coupler 0.9, rocker 0.8 m). The
    coupler carries link "fifth" (0.6 m) at 0.45 m along its length, and the rocker carries link
    "sixth" (0.7 m) at 0.4 m. Loop "inner" pins the coupler to the rocker, and loop "outer" pins the
    ends of links "fifth" and "sixth" together. q = (crank, coupler, rocker, fifth, sixth). The
    angles of the crank and the rocker are measured from x, and the other angles from the parent
    links. The rods have a mass of 1 kg/m, and gravity is along -y.

    Examples
    --------
    >>> import chasles
    >>> chasles.robots.six_bar().joints
    ('crank', 'coupler', 'rocker', 'fifth', 'sixth')
    """
    bars = {
        "crank": (0.5, "base", 0.0),
        "coupler": (0.9, "crank", 0.5),
        "rocker": (0.8, "base", 1.0),
        "fifth": (0.6, "coupler", 0.45),
        "sixth": (0.7, "rocker", 0.4),
    }
    pins = {"inner": ("coupler", "rocker"), "outer": ("fifth", "sixth")}
    return _linkage("six_bar", bars, pins, independent=("crank",))


def _linkage(
    name: str,
    bars: Mapping[str, tuple[float, str, float]],
    pins: Mapping[str, tuple[str, str]],
    independent: tuple[str, ...] = (),
) -> Description:
    """Return a planar linkage of rods (1 kg/m) connected by pin joints.

    `bars` maps each rod to its length, its parent and its position along the parent. `pins` maps
    each loop joint to the two rods that it connects.
    """
    links = [LinkData(bar, rod(length, length)) for bar, (length, _, _) in bars.items()]
    joints = tuple(_hinge(bar, parent, bar, x) for bar, (_, parent, x) in bars.items())
    loops = tuple(
        LoopData(pin, "revolute", a, b, _along(bars[a][0]), child_pose=_along(bars[b][0]))
        for pin, (a, b) in pins.items()
    )
    links.insert(0, LinkData("base", _BASE))
    return Description(
        name, tuple(links), joints, gravity=_DOWN, loops=loops, independent=independent
    )


def _hinge(name: str, parent: str, child: str, x: float) -> JointData:
    return JointData(name, "revolute", parent, child, _along(x))


def _along(x: float) -> Transform:
    return _at(_X * x)


def _check(robot: str, **lengths: float) -> None:
    for name, length in lengths.items():
        if not (is_finite(length) and length > 0.0):
            problem = f"`{name}` must be positive and finite, not {length!r:.40}"
            remedy = "pass a positive length in m"
            raise ModelError("E-ROBOT-030", problem, remedy, part=f"robot {robot!r}")


# Parallel robots: a platform on several legs ------------------------------------------------------


def stewart() -> Description:
    """Return a Gough-Stewart platform with six legs (universal, prismatic, spherical joints).

    Returns
    -------
    robot : Robot
        The mechanism, nv = 24, mobility 6.

    Notes
    -----
    The lower ends of the legs (feet) are arranged in pairs on a circle of radius 1 m, and the upper
    ends (heads) in pairs on a circle of radius 0.6 m. In the neutral configuration, the platform is
    0.8 m above the ground. Each leg has a cylinder and a piston, each with a mass of 1 kg and a
    length of 0.5 m. The platform (10 kg) is connected to the ground by a free joint "platform". Leg
    k has joints "foot<k>" (universal) and "leg<k>" (prismatic; extension from neutral in m); loop
    "head<k>" is a spherical joint. The extensions are the independent coordinates. Gravity is along
    -z.

    Examples
    --------
    >>> import chasles
    >>> chasles.robots.stewart().independent
    ('leg1', 'leg2', 'leg3', 'leg4', 'leg5', 'leg6')
    """
    links = [LinkData("base", _GROUND), LinkData("platform", cylinder(10.0, 0.6, 0.1, 2))]
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
    """Return Clavel's delta robot: three arms with two parallel rods each.

    Returns
    -------
    robot : Robot
        The mechanism, mobility 3; the platform only translates.

    Notes
    -----
    The arms are 0.5 m long and rotate about axes tangent to a circle of radius 0.3 m under the
    ceiling. Two parallel rods, 0.8 m long and 0.2 m apart, connect each arm to a platform of radius
    0.15 m. Joints are "arm<k>" (angle downward from horizontal), "rod<k>a" and "rod<k>b"
    (universal), and "platform" (free); the rods end in spherical loop joints "ball<k>a" and
    "ball<k>b". The arm angles are the independent coordinates. Each arm has a mass of 1 kg, each
    rod 0.3 kg, and the platform 2 kg. Gravity is along -z.

    Examples
    --------
    >>> import chasles
    >>> chasles.robots.delta().independent
    ('arm1', 'arm2', 'arm3')
    """
    inward = 0.3 + 0.5 - 0.15
    depth = math.sqrt(0.8 * 0.8 - inward * inward)
    links = [LinkData("base", _GROUND), LinkData("platform", cylinder(2.0, 0.15, 0.05, 2))]
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
            ends, ball = (thin, "platform", _at(_Z * 0.8)), _at(outward * 0.15 + tangent * side)
            loops.append(LoopData(f"ball{k + 1}{name}", "spherical", *ends, child_pose=ball))
    arms = tuple(f"arm{k + 1}" for k in range(3))
    return Description("delta", tuple(links), tuple(joints), loops=tuple(loops), independent=arms)


def _universal(name: str, parent: str, child: str, pose: Transform) -> JointData:
    """Return a universal joint with axes x and y, which lets the child tilt in any direction."""
    return JointData(name, "universal", parent, child, pose, axis=_X, second_axis=_Y)


def _circle(radius: float, angle: float) -> Vector:
    return Vector.of(radius * math.cos(angle), radius * math.sin(angle), 0.0)


def _at(place: Vector) -> Transform:
    return Transform(Rotation(), place)


def _axes(x: Vector, y: Vector) -> Rotation:
    """Return the coordinate transformation to a frame whose x and y axes are given."""
    return Rotation.of(Matrix((tuple(x), tuple(y), tuple(x.cross(y)))))


def _facing(place: Vector, along: Vector) -> Transform:
    """Return a frame at a position, with z along a vector and a horizontal x axis."""
    z = along * (1.0 / math.sqrt(along.dot(along)))
    x = z.cross(_Z)
    x = x * (1.0 / math.sqrt(x.dot(x)))
    return Transform(_axes(x, z.cross(x)), place)
