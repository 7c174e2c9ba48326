"""Forward dynamics by assembly of articulated bodies (Featherstone 2008, sections 7.4 and 7.5).

Each method agrees with `articulated-body` and `mass-matrix` on trees of every joint type, with
mimic joints, rotors, prescribed motions, and links whose inertia cannot be inverted.
`test_assembly_loops.py` adds loops and couplings.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from support import TARGETS, close, direct, raises, runner, state, tree

import chasles
from chasles.expr import sin
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import RotorData
from chasles.robots import general_chain, planar, quadruped, random_tree

WAYS = ("assembly-inertia", "assembly-inverse", "divide-and-conquer")


def without_armature(robot: chasles.Robot) -> chasles.Robot:
    """Return the robot with zero armature at every joint."""
    source = robot.model.source
    joints = tuple(replace(joint, armature=0.0) for joint in source.joints)
    return chasles.Robot(replace(source, joints=joints))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("n", "seed"), [(1, 0), (3, 1), (9, 2), (9, 3), (14, 4), (16, 5)])
def test_trees(n: int, seed: int, way: str) -> None:
    """Methods agree for trees with damping, friction and external forces that change the result."""
    robot = without_armature(tree(n, seed))
    q, qd, tau = state(robot, seed)
    rng = np.random.default_rng(seed)
    f_ext = {name: rng.normal(size=6) for name in robot.bodies[-2:]}
    expected = direct(robot.model, "forward_dynamics", q, qd, tau, f_ext=f_ext)
    close(
        direct(robot.model, "forward_dynamics", q, qd, tau, f_ext=f_ext, method=way),
        expected,
        1e-10,
    )
    without = direct(robot.model, "forward_dynamics", q, qd, tau)
    assert not np.allclose(expected, without)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("way", WAYS)
def test_backends(way: str, target: str) -> None:
    robot = general_chain(5)
    q, qd, tau = state(robot, 1, 3)
    run = runner(robot, target)
    expected = run("forward_dynamics", q, qd, tau, method="articulated-body")
    close(run("forward_dynamics", q, qd, tau, method=way), expected, 1e-10)


@pytest.mark.parametrize("way", WAYS)
def test_floating_base(way: str) -> None:
    robot = without_armature(quadruped())
    q, qd, tau = state(robot, 2)
    expected = direct(robot.model, "forward_dynamics", q, qd, tau)
    close(direct(robot.model, "forward_dynamics", q, qd, tau, method=way), expected, 1e-10)


def test_several_roots() -> None:
    """Methods agree for two arms on one base, where the world is a handle until both are joined."""
    source = tree(6, 7, floating=False).model.source
    root = source.joints[0]
    joints = tuple(
        replace(j, parent=root.parent, armature=0.0) if j.name == "joint2" else j
        for j in without_armature(tree(6, 7, floating=False)).model.source.joints
    )
    robot = chasles.Robot(replace(source, joints=joints))
    assert len(robot.model.children[-1]) > 1
    q, qd, tau = state(robot, 3)
    expected = direct(robot.model, "forward_dynamics", q, qd, tau)
    for way in WAYS:
        close(direct(robot.model, "forward_dynamics", q, qd, tau, method=way), expected, 1e-10)


@pytest.mark.parametrize("way", WAYS)
def test_derivatives(way: str) -> None:
    """Derivatives of the method's own program agree with those of the default method."""
    robot = general_chain(2)
    q, qd, tau = state(robot, 4)
    asked = {"wrt": ["q", "qd", "tau"], "backend": "interpret"}
    expected = chasles.compile(robot, "forward_dynamics", **asked)(q, qd, tau)
    found = chasles.compile(robot, "forward_dynamics", method=way, **asked)(q, qd, tau)
    for a, b in zip(found, expected, strict=True):
        close(a, b, 1e-10)


def test_the_longest_path() -> None:
    """The critical path of `articulated-body` grows with n, that of divide and conquer does not.

    The part that computes velocities by a recursion along the chain is subtracted.
    """
    lengths = (8, 32)
    along, halved, velocity = (
        [chasles.cost(general_chain(n), function, **options).depth for n in lengths]
        for function, options in (
            ("forward_dynamics", {"method": "articulated-body"}),
            ("forward_dynamics", {"method": "divide-and-conquer"}),
            ("frame_velocity", {"frame": "tool", "axes": "frame"}),
        )
    )
    assert along[1] > 3.8 * along[0]
    assert halved[1] - velocity[1] < 1.1 * (halved[0] - velocity[0])


# Armature and singular inertias -----------------------------------------------------------------


def heavy(robot: chasles.Robot) -> chasles.Robot:
    """Return the robot with armature at every joint that moves."""
    source, rng = robot.model.source, np.random.default_rng(4)
    joints = tuple(
        joint if joint.kind == "fixed" else replace(joint, armature=float(rng.uniform(0.1, 2.0)))
        for joint in source.joints
    )
    return chasles.Robot(replace(source, joints=joints))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("n", "seed"), [(1, 0), (3, 1), (9, 2), (14, 4)])
def test_armature(n: int, seed: int, way: str) -> None:
    robot = heavy(without_armature(tree(n, seed)))
    q, qd, tau = state(robot, seed)
    expected = direct(robot.model, "forward_dynamics", q, qd, tau)
    found = direct(robot.model, "forward_dynamics", q, qd, tau, method=way)
    close(found, expected, 1e-9)
    light = direct(without_armature(robot).model, "forward_dynamics", q, qd, tau)
    assert not np.allclose(expected, light)


def hollow(n: int, *massless: int) -> chasles.Robot:
    """Return a chain in which the given links are massless."""
    source = general_chain(n).model.source
    moving = [joint.child for joint in source.joints if joint.kind != "fixed"]
    links = tuple(
        replace(link, inertia=RigidInertia.zero())
        if link.name in {moving[k] for k in massless}
        else link
        for link in source.links
    )
    return chasles.Robot(replace(source, links=links))


@pytest.mark.parametrize("rotors", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("n", "massless"), [(2, (0,)), (7, (1, 2, 4)), (9, (0, 3, 6, 7))])
def test_massless_links(n: int, massless: tuple[int, ...], way: str, rotors: bool) -> None:
    """Methods agree with one or two massless links in a row, external forces and damped joints."""
    robot = heavy(hollow(n, *massless)) if rotors else hollow(n, *massless)
    names = [body.name for body in robot.model.bodies if not body.inertia.m]
    assert len(names) == len(massless)
    q, qd, tau = state(robot, n)
    f_ext = {name: np.random.default_rng(5).normal(size=6) for name in (*names, robot.bodies[-1])}
    expected = direct(robot.model, "forward_dynamics", q, qd, tau, f_ext=f_ext)
    found = direct(robot.model, "forward_dynamics", q, qd, tau, f_ext=f_ext, method=way)
    close(found, expected, 1e-8)
    without = direct(robot.model, "forward_dynamics", q, qd, tau)
    assert not np.allclose(expected, without)


def agree(robot: chasles.Robot, seed: int, tolerance: float = 1e-9) -> None:
    """Assert that all methods agree with `mass-matrix`, with wrenches on all links."""
    model = robot.model.at(0.7)
    q, qd, tau = state(robot, seed)
    rng = np.random.default_rng(seed)
    f_ext = {name: rng.normal(size=6) for name in robot.bodies}
    given = {"f_ext": f_ext, "method": "mass-matrix"}
    expected = direct(model, "forward_dynamics", q, qd, tau, **given)
    for way in WAYS:
        given = {"f_ext": f_ext, "method": way}
        close(direct(model, "forward_dynamics", q, qd, tau, **given), expected, tolerance)


def with_inertia(robot: chasles.Robot, inertia: RigidInertia, *names: str) -> chasles.Robot:
    """Return the robot with the given inertia of some links."""
    source = robot.model.source
    links = (replace(k, inertia=inertia) if k.name in names else k for k in source.links)
    return chasles.Robot(replace(source, links=tuple(links)))


THIN = Symmetric(0.0, 0.1, 0.1, 0.0, 0.0, 0.0)
SINGULAR = (
    RigidInertia.zero(),
    RigidInertia.from_center(1.3, Vector.of(0.5, 0.1, 0.0), Symmetric.zero()),
    RigidInertia.from_center(0.7, Vector.of(0.5, 0.0, 0.0), THIN),
)
"""Inertias without an inverse: a massless link, a point mass and a thin rod."""


def mixed(seed: int) -> chasles.Robot:
    """Return a random robot with singular inertias, armature, mimic joints and rotors."""
    rng = np.random.default_rng(seed)
    n, mimics, floating, geared = (int(rng.integers(*r)) for r in ((2, 12), (2,), (2,), (2,)))
    robot = random_tree(n, seed, mimics=bool(mimics), floating=bool(floating))
    source = robot.model.source
    kinds = rng.choice(len(SINGULAR) + 1, size=len(source.links), p=(0.3, 0.1, 0.1, 0.5))
    links = (
        replace(link, inertia=(*SINGULAR, link.inertia)[kind])
        for link, kind in zip(source.links, kinds, strict=True)
    )
    armature = rng.choice((0.0, 0.05, 1.0), size=len(source.joints)).tolist()
    joints = (
        joint if joint.kind == "fixed" else replace(joint, armature=size)
        for joint, size in zip(source.joints, armature, strict=True)
    )
    scalar = [b.data.name for b in robot.model.bodies if b.joint.nv == 1][: 2 * geared]
    rotors = tuple(RotorData("rotor", (a, b), (2.0, -0.5), 0.3) for a, b in pairwise(scalar))
    return chasles.Robot(replace(source, links=tuple(links), joints=tuple(joints), rotors=rotors))


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_random_robots(first: int) -> None:
    """Methods agree for every combination of singular inertias, mimic joints and rotors."""
    robots = {seed: mixed(seed) for seed in range(first, first + 20)}
    regular = {seed: robot for seed, robot in robots.items() if not robot.model.idle}
    assert len(regular) > 10
    for seed, robot in regular.items():
        agree(robot, seed)


@pytest.mark.parametrize("inertia", SINGULAR)
@pytest.mark.parametrize("name", ["link1", "link2", "link4"])
def test_singular_inertias(name: str, inertia: RigidInertia) -> None:
    """The last link needs armature if it is massless, and the first link carries two links."""
    robot = with_inertia(heavy(general_chain(4)), inertia, name)
    source = robot.model.source
    joints = tuple(
        replace(joint, parent="link1") if joint.child == "link3" else joint
        for joint in source.joints
    )
    robot = chasles.Robot(replace(source, joints=joints))
    assert len(robot.model.children[0]) == 2
    agree(robot, 1)


def test_size_of_auxiliary_inertias() -> None:
    """A robot is supported in any units, and without any mass."""
    robot = with_inertia(planar(3), RigidInertia.zero(), "link1")
    for scale in (1e-9, 1.0, 1e9):
        source = robot.model.source
        links = tuple(replace(k, inertia=k.inertia * scale) for k in source.links)
        agree(chasles.Robot(replace(source, links=links)).with_gravity((0, 0, 0)), 2)
    agree(with_inertia(heavy(planar(2)), RigidInertia.zero(), "link1", "link2"), 3)


def test_parallel_joints_at_a_massless_link() -> None:
    """The joints on both sides of a massless link have the same axis, and rotors of their own."""
    source = heavy(planar(3)).model.source
    joints = tuple(
        replace(joint, pose=Transform.identity()) if joint.child == "link2" else joint
        for joint in source.joints
    )
    robot = chasles.Robot(replace(source, joints=joints))
    agree(with_inertia(robot, RigidInertia.zero(), "link1"), 4)


@pytest.mark.parametrize("way", WAYS)
def test_a_joint_that_moves_no_inertia(way: str) -> None:
    robot = with_inertia(general_chain(3), RigidInertia.zero(), "link3")
    rest = np.zeros(robot.nv)
    with raises("E-CALL-070", repr(way), "moves no inertia"):
        robot.forward_dynamics(robot.neutral(), rest, rest, method=way)


@pytest.mark.parametrize("way", WAYS)
def test_inertias_that_are_parameters(way: str) -> None:
    """The inertia of a link must be invertible if its mass is a parameter."""
    options = {"method": way, "backend": "interpret"}
    robot = with_inertia(general_chain(3), RigidInertia.zero(), "link1")
    q, qd, tau = state(robot, 5)
    heavier = with_inertia(robot, robot.model.source.links[2].inertia * 2.0, "link2")
    run = chasles.compile(robot, "forward_dynamics", parameters=["link2.mass"], **options)
    assert run(q, qd, tau, 1.0).shape == heavier.forward_dynamics(q, qd, tau).shape
    with raises("E-CALL-070", repr(way), "'link1'"):
        chasles.compile(robot, "forward_dynamics", parameters=["link1.mass"], **options)


# Joints without coordinates of their own ---------------------------------------------------------


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_mimic_joints(seed: int, floating: bool) -> None:
    robot = random_tree(10, seed, mimics=True, floating=floating)
    assert robot.model.mimics
    agree(robot, seed)


def test_a_leader_that_moves_no_inertia() -> None:
    """A massless leader moves the inertia of its follower."""
    source = planar(3).model.source
    follower = chasles.model.Mimic("joint3", -0.5, 0.1)
    joints = tuple(replace(j, mimic=follower) if j.name == "joint2" else j for j in source.joints)
    robot = chasles.Robot(replace(source, joints=joints))
    agree(with_inertia(robot, RigidInertia.zero(), "link3"), 6)


@pytest.mark.parametrize("seed", range(4))
def test_prescribed_motions(seed: int) -> None:
    robot = random_tree(9, seed)
    kinds = {robot.joint(name).kind: name for name in robot.joints}
    names = [kinds[kind] for kind in ("revolute", "prismatic", "helical") if kind in kinds]
    driven = robot.drive({name: lambda t: 0.3 * sin(2.0 * t) for name in names})
    assert driven.model.driven
    agree(driven, seed)


@pytest.mark.parametrize("way", WAYS)
def test_a_gripper(way: str) -> None:
    """Compiled functions and their derivatives support mimic joints."""
    source = planar(3).model.source
    follower = chasles.model.Mimic("joint2", -1.0)
    joints = tuple(replace(j, mimic=follower) if j.name == "joint3" else j for j in source.joints)
    robot = chasles.Robot(replace(source, joints=joints))
    q, qd, tau = state(robot, 8, 3)
    close(robot.forward_dynamics(q, qd, tau, method=way), robot.forward_dynamics(q, qd, tau), 1e-10)
    asked = {"wrt": "q", "backend": "interpret"}
    expected = chasles.compile(robot, "forward_dynamics", **asked)(q, qd, tau)
    found = chasles.compile(robot, "forward_dynamics", method=way, **asked)(q, qd, tau)
    close(found, expected, 1e-9)
