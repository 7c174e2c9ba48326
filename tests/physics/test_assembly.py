"""Forward dynamics by assembly of articulated bodies (Featherstone 2008, sections 7.4 and 7.5).

Each method agrees with `articulated-body` on trees of every joint type, and raises an error for
models that it does not support.
"""

from dataclasses import replace

import numpy as np
import pytest
from support import TARGETS, close, direct, raises, runner, state, tree

import chasles
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.robots import general_chain, planar, quadruped

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


# Unsupported models ----------------------------------------------------------------------------


def refused(robot: chasles.Robot, way: str, *expected: str) -> None:
    rest = np.zeros(robot.nv)
    with raises(*expected):
        robot.forward_dynamics(robot.neutral(), rest, rest, method=way)


@pytest.mark.parametrize("way", WAYS)
def test_bodies_without_an_inverse_inertia(way: str) -> None:
    """A point mass or a thin rod is valid, but has no inverse inertia, so the methods reject it."""
    source = planar(3).model.source
    thin = Symmetric(0.0, 0.1, 0.1, 0.0, 0.0, 0.0)
    for inertia in (
        RigidInertia.from_center(1.0, Vector.of(0.5, 0.0, 0.0), Symmetric.zero()),
        RigidInertia.from_center(1.0, Vector.of(0.5, 0.0, 0.0), thin),
    ):
        links = tuple(replace(k, inertia=inertia) if k.name == "link2" else k for k in source.links)
        robot = chasles.Robot(replace(source, links=links))
        refused(robot, way, "E-CALL-070", repr(way), "'link2'")


@pytest.mark.parametrize("way", WAYS)
def test_mimics(way: str) -> None:
    source = general_chain(3).model.source
    first, *_, last = general_chain(3).joints
    follower = chasles.model.Mimic(first)
    joints = tuple(replace(j, mimic=follower) if j.name == last else j for j in source.joints)
    refused(chasles.Robot(replace(source, joints=joints)), way, "E-CALL-071")


@pytest.mark.parametrize("way", WAYS)
def test_a_massless_link_that_branches(way: str) -> None:
    source = planar(3).model.source
    links = tuple(
        replace(link, inertia=RigidInertia.zero()) if link.name == "link1" else link
        for link in source.links
    )
    joints = tuple(
        replace(joint, parent="link1") if joint.child == "link3" else joint
        for joint in source.joints
    )
    refused(
        chasles.Robot(replace(source, links=links, joints=joints)), way, "E-CALL-070", "'link1'"
    )


# Armature, massless links, loops ---------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("make", "rotors"),
    [
        *(("four_bar", False), ("four_bar", True), ("five_bar", True)),
        *(("stewart", True), ("slider_crank", False)),
    ],
)
def test_loops(make: str, rotors: bool) -> None:
    """Loop joints are closed at handles of the tree; accelerations and multipliers agree."""
    robot = getattr(chasles.robots, make)()
    robot = heavy(robot) if rotors else robot
    rng = np.random.default_rng(6)
    q = robot.mechanism.loops.references[0]
    qd = robot.complete(q, rng.normal(size=len(robot.independent)))
    tau = rng.normal(size=robot.nv)
    link = robot.bodies[-1]
    for load in (None, {link: rng.normal(size=6)}):
        for options in ({}, {"stabilization": 0.1}):
            ways = ("multipliers", "divide-and-conquer")
            one, other = (
                robot.constrained_dynamics(q, qd, tau, f_ext=load, method=way, **options)
                for way in ways
            )
            for found, expected in zip(other, one, strict=True):
                close(found, expected, 1e-8)


def test_couplings_are_not_joined() -> None:
    robot = planar(3).with_couplings(chasles.model.gear("belt", "joint3", {"joint2": 0.5}))
    rest = np.zeros(3)
    with raises("E-CALL-070", "'belt'"):
        robot.constrained_dynamics(rest, rest, rest, method="divide-and-conquer")
