"""Synthetic robots: planar arms of equal rods, general chains and trees, and random trees.

Random trees use only the methods `random` and `uniform` of Python's `random.Random`, whose
sequences do not change between versions of Python. A seed therefore gives the same tree everywhere.
"""

import math
import operator
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from chasles.errors import ModelError
from chasles.mathematics import rotations
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import Rotation, about
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import JOINTS, Description, FrameData, JointData, Limits, LinkData, Mimic
from chasles.model.build import compose
from chasles.model.denavit_hartenberg import DHRow, dh_chain
from chasles.robots._solids import points, rod

T = TypeVar("T")
_TIP = Vector.of(1.0, 0.0, 0.0)
_SCALAR = tuple(kind for kind, joint in JOINTS.items() if joint.nv == 1)
"""Joint types with one degree of freedom, which can mimic other joints or be mimicked."""


def planar(n: int) -> Description:
    """Return an arm of n equal rods (1 m, 1 kg) in the plane y = 0, with gravity along -z.

    Parameters
    ----------
    n : int
        Number of rods, at least 1.

    Returns
    -------
    robot : Robot
        The arm, nq = nv = n.

    Raises
    ------
    ModelError
        If n is less than 1.

    Notes
    -----
    The joint axes are horizontal, along -y. At q = 0 the arm lies along x, and a positive angle
    raises the rod and all rods after it. Frame "tip" is at (sum of cos a, 0, sum of sin a), where a
    is the angle between each rod and x.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.planar(2)
    >>> robot.forward_kinematics([0.0, 0.5], frame="tip")[:3, 3].round(3)
    array([1.878, 0.   , 0.479])
    """
    return _rods("planar", [0.0] * _count("planar", n), Description.gravity)


def zigzag(n: int) -> Description:
    """Return the zig-zag arm of Featherstone (2008), section 10.2, without gravity.

    Parameters
    ----------
    n : int
        Number of rods, at least 1.

    Returns
    -------
    robot : Robot
        The arm, nq = nv = n.

    Raises
    ------
    ModelError
        If n is less than 1.

    Notes
    -----
    The rods are the same as in `planar` (moment of inertia 1/12 kg m2 about the center). At q = 0,
    the angles between rods alternate between +75 and -75 degrees, so that the neutral configuration
    is the one in the book.

    Examples
    --------
    >>> import chasles
    >>> chasles.robots.zigzag(4).nv
    4
    """
    turns = range(_count("zigzag", n))
    return _rods("zigzag", [math.radians(75.0 * (-1) ** i) for i in turns], Vector.zero())


def _rods(name: str, angles: Sequence[float], gravity: Vector) -> Description:
    """Return an arm of equal rods; `angles` are the angles between successive rods at q = 0."""
    links, joints = [LinkData("base", RigidInertia.zero())], []
    for i, angle in enumerate(angles, start=1):
        turn, place = about(1, -angle) if angle else Rotation(), Vector.zero() if i == 1 else _TIP
        ends = links[-1].name, f"link{i}", Transform(turn, place)
        joints.append(JointData(f"joint{i}", "revolute", *ends, Vector.of(0.0, -1.0, 0.0)))
        links.append(LinkData(f"link{i}", rod(1.0, 1.0)))
    tip = FrameData("tip", links[-1].name, Transform(Rotation(), _TIP))
    return Description(name, tuple(links), tuple(joints), (tip,), gravity)


def general_chain(n: int, *, right_angles: bool = False) -> Description:
    """Return an arm with n revolute joints, general modified D-H parameters and general inertias.

    Parameters
    ----------
    n : int
        Number of joints, at least 1.
    right_angles : bool, optional
        Use a twist of 90 degrees at every joint, a case that Balafoutis and Patel (1991) tabulate
        separately.

    Returns
    -------
    robot : Robot
        The arm, nq = nv = n. Longer chains start with the same links as shorter chains.

    Raises
    ------
    ModelError
        If n is less than 1.

    Notes
    -----
    All lengths, twists, moments and products of inertia are different, and none is 0 or 1.
    Therefore, only the D-H structure reduces the number of operations. Balafoutis and Patel (1991)
    count operations for "general" arms in this way. Gravity is along -z.

    Examples
    --------
    >>> import chasles
    >>> chasles.cost(chasles.robots.general_chain(6), "inverse_dynamics").flops
    686
    """
    n = _count("general_chain", n)
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
    """Return a general tree with n revolute joints and `children` joints on each link.

    Parameters
    ----------
    n : int
        Number of joints, at least 1.
    children : int
        Number of joints on each link, at least 1. The base has one joint.

    Returns
    -------
    robot : Robot
        The tree, nq = nv = n, filled level by level.

    Raises
    ------
    ModelError
        If n or children is less than 1.

    Notes
    -----
    Featherstone (2008, section 10.3) counts operations for these trees. The result is the serial
    chain GU(n) of the book for children = 1, and the binary tree for children = 2. The child of the
    base and the first child of each link have a Denavit-Hartenberg placement: translated by d along
    z and a along x of the parent, and rotated about x only. Other children have general placements.
    Gravity is along -z.

    Examples
    --------
    >>> import chasles
    >>> chasles.robots.general_tree(7, 2).nv
    7
    """
    n = _count("general_tree", n)
    children = _count("general_tree", children, "children per link")
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
    """Return random D-H parameters a, d and alpha, and the inertia of six random point masses."""
    a, d = rng.uniform(0.1, 0.4), rng.uniform(0.05, 0.3)
    alpha = rng.uniform(0.3, 1.2) * (1.0 if rng.random() < 0.5 else -1.0)
    masses = [rng.uniform(0.2, 0.8) for _ in range(6)]
    places = [Vector(tuple(rng.uniform(-0.2, 0.2) for _ in range(3))) for _ in masses]
    return a, d, alpha, points(masses, places)


def _count(name: str, n: int, what: str = "joints") -> int:
    """Return a number of joints or children, or raise an error for robot `name`."""
    try:
        count = 0 if isinstance(n, bool) else operator.index(n)
    except TypeError:
        count = 0
    if count < 1:
        problem = f"the number of {what} must be a positive integer, not {n!r:.40}"
        raise ModelError("E-ROBOT-032", problem, "use 1 or more", part=f"robot {name!r}")
    return count


# Random trees ------------------------------------------------------------------------------------


def random_tree(
    n: int,
    seed: int,
    *,
    floating: bool | None = None,
    fixed: bool = True,
    mimics: bool = False,
) -> Description:
    """Return a random tree with n moving joints, determined by the seed.

    Parameters
    ----------
    n : int
        Number of moving joints. If n >= 13, every joint type occurs. If n >= 3, the tree is not a
        serial chain.
    seed : int
        Seed of the random numbers.
    floating : bool, optional
        True for a free joint at the root, False for another type. None (default) chooses at random.
    fixed : bool, optional
        Add links on fixed joints; some have no inertia, and some carry other joints.
    mimics : bool, optional
        Let some joints with one degree of freedom mimic other joints, if possible.

    Returns
    -------
    robot : Robot
        The tree. Frame "tip" is on the last link.

    Raises
    ------
    ModelError
        If n is less than 1.

    Notes
    -----
    Some joint axes and poses are aligned with the coordinate axes, and others are general.
    Inertias are computed from point masses, so they are physically valid. Some joints have
    armature, damping and friction.

    Examples
    --------
    >>> import chasles
    >>> chasles.robots.random_tree(8, 3).nv
    18
    """
    n = _count("random_tree", n)
    rng = random.Random(seed)
    chance = rng.random() < 0.5
    kinds = _kinds(rng, n, chance if floating is None else floating)
    rooted = JOINTS[kinds[0]].floating
    links = [] if rooted else [LinkData("base", _inertia(rng))]
    joints: list[JointData] = []
    for k, kind in enumerate(kinds, start=1):
        parent = None if rooted and k == 1 else _parent(rng, k, links)
        links.append(LinkData(f"link{k}", _inertia(rng)))
        joints.append(_joint(rng, f"joint{k}", kind, parent, links[-1].name))
        if mimics and kind in _SCALAR:
            joints[-1] = _follower(rng, joints)
        if fixed and rng.random() < 0.25:
            inertia = _inertia(rng) if rng.random() < 0.5 else RigidInertia.zero()
            links.append(LinkData(f"plate{k}", inertia))
            joints.append(JointData(f"weld{k}", "fixed", f"link{k}", f"plate{k}", _pose(rng)))
    tip = FrameData("tip", links[-1].name, _pose(rng))
    return Description("random_tree", tuple(links), tuple(joints), (tip,))


def _kinds(rng: random.Random, n: int, floating: bool) -> list[str]:
    """Return n random joint types; no type is repeated before all types have occurred.

    The first type is "free" if `floating` is True, and another type otherwise.
    """
    left, kinds = list(JOINTS), []
    while left:
        kinds.append(left.pop(int(rng.random() * len(left))))
    if floating:
        kinds.sort(key=lambda kind: not JOINTS[kind].floating)
    elif JOINTS[kinds[0]].floating:
        kinds.append(kinds.pop(0))
    while len(kinds) < n:
        kinds.append(_pick(rng, tuple(JOINTS)))
    return kinds[:n]


def _parent(rng: random.Random, k: int, links: Sequence[LinkData]) -> str:
    """Return the parent link of joint k: link1 for k = 2 and 3, otherwise a random link."""
    if k in (2, 3):
        return "link1"
    return _pick(rng, links[-3:] if rng.random() < 0.6 else links).name


def _joint(rng: random.Random, name: str, kind: str, parent: str | None, child: str) -> JointData:
    axis = _axis(rng)
    second = Vector(rotations.aligned_to_z(axis).rows[0]) if rng.random() < 0.5 else None
    joint = JointData(name, kind, parent, child, _pose(rng), axis)
    traits = joint.traits
    if len(traits.along) == 2:
        joint = replace(joint, second_axis=second)
    numbers: dict[str, Any] = {name: rng.uniform(0.02, 0.2) for name in traits.data}
    if traits.flips and traits.nv == 1 and traits.bounds != "none":
        sides = (-2, -1), (1, 2), (2, 4), (20, 90)
        numbers["limits"] = Limits(*(rng.uniform(*side) for side in sides))
    if not traits.floating and rng.random() < 0.5:
        ranges = {"armature": (0.01, 0.1), "damping": (0.05, 0.5), "friction": (0.05, 0.5)}
        numbers |= {name: rng.uniform(*ends) for name, ends in ranges.items()}
    return replace(joint, **numbers)


def _follower(rng: random.Random, joints: Sequence[JointData]) -> JointData:
    """Make the last joint mimic an earlier joint, if possible.

    If a mimic joint already exists, the last joint stays unchanged with probability 1/2.
    """
    leaders = [joint.name for joint in joints[:-1] if joint.kind in _SCALAR]
    first = not any(joint.mimic for joint in joints)
    if not leaders or (rng.random() < 0.5 and not first):
        return joints[-1]
    mimic = Mimic(_pick(rng, leaders), rng.uniform(-2.0, 2.0), rng.uniform(-0.5, 0.5))
    return replace(joints[-1], mimic=mimic)


def _axis(rng: random.Random) -> Vector:
    """Return a random unit vector, either along a coordinate axis or in any direction."""
    if rng.random() < 0.5:
        k, sign = int(rng.random() * 3.0), 1.0 if rng.random() < 0.7 else -1.0
        return Vector.of(*(sign if i == k else 0.0 for i in range(3)))
    z, turn = rng.uniform(-1.0, 1.0), rng.uniform(0.0, math.tau)
    r = math.sqrt(1.0 - z * z)
    return Vector.of(r * math.cos(turn), r * math.sin(turn), z)


def _pose(rng: random.Random) -> Transform:
    """Return a random pose: not rotated, rotated by right angles, or rotated by any angle.

    Each coordinate of the position is between -0.3 and 0.3 m.
    """
    place = Vector.of(*(rng.uniform(-0.3, 0.3) for _ in range(3)))
    style = rng.random()
    if style < 0.3:
        R = Matrix.identity()
    elif style < 0.6:
        R = rotations.matrix_from_rpy(*(math.pi / 2.0 * int(rng.random() * 4.0) for _ in range(3)))
    else:
        R = rotations.matrix_from_vector(_axis(rng) * rng.uniform(-math.pi, math.pi))
    return compose(Transform.from_pose(R, place), Transform.identity())


def _inertia(rng: random.Random) -> RigidInertia:
    """Return the inertia of six random point masses around a random center."""
    center = Vector.of(*(rng.uniform(-0.1, 0.1) for _ in range(3)))
    masses = [rng.uniform(0.1, 0.6) for _ in range(6)]
    around = [Vector.of(*(rng.uniform(-0.15, 0.15) for _ in range(3))) for _ in masses]
    return points(masses, [center + place for place in around])


def _pick(rng: random.Random, options: Sequence[T]) -> T:
    return options[int(rng.random() * len(options))]
