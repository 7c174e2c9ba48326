"""Graphs of links and joints (Featherstone 2008, chapter 4).

The tests cover spanning trees, sets of bodies, frames on both links, and joint polarity.
"""

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import Floats, close, raises

import chasles
from chasles import Robot
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import matrix_from_vector
from chasles.mathematics.spatial import Transform
from chasles.model import JOINTS, WORLD, JointData, LinkData, Mimic, build, gear
from chasles.model.graph import from_graph, regular_numberings
from chasles.robots._solids import box

RNG = np.random.default_rng(4)


def pose(seed: int) -> Transform:
    """Return a random frame on a link."""
    numbers = np.random.default_rng(seed).normal(size=6).tolist()
    return Transform.from_pose(
        matrix_from_vector(Vector(tuple(numbers[:3]))), Vector(tuple(numbers[3:]))
    )


def homogeneous(X: Transform) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = X.R.rows, list(X.r)
    return T


def somewhere(robot: Robot) -> np.ndarray:
    return np.asarray(Floats(robot).integrate(robot.neutral(), RNG.normal(size=robot.nv)))


def links(*names: str) -> list[LinkData]:
    return [LinkData(name, box(1.0, (0.1, 0.2, 0.3))) for name in names]


def hinge(name: str, parent: str | None, child: str, **more: Any) -> JointData:
    return JointData(name, "revolute", parent, child, **more)


# Trees -------------------------------------------------------------------------------------------

CRANK_SLIDER = [
    hinge("crank", "base", "a"),
    hinge("rod", "a", "b"),
    hinge("slider", "b", "c"),
    JointData("guide", "prismatic", "c", "base"),
]


def by_the_rules(links_: list[str], joints: list[JointData], base: str) -> set[Any]:
    """Return all regular numberings, by trying every order of bodies and joints.

    The rules are 1 to 6 of section 4.1.2.
    """
    found = set()
    moving = [name for name in links_ if name != base]
    for bodies in itertools.permutations(moving):
        number = {base: 0} | {name: k for k, name in enumerate(bodies, start=1)}
        for order in itertools.permutations(joints):
            ends = [(number[str(j.parent)], number[str(j.child)]) for j in order]
            tree = ends[: len(bodies)]
            if all(max(pair) == k and min(pair) < k for k, pair in enumerate(tree, start=1)):
                found.add((bodies, tuple(j.name for j in order)))
    return found


def spanning_trees(links_: list[str], joints: list[JointData]) -> int:
    """Return the number of spanning trees, by Kirchhoff's matrix-tree theorem."""
    place = {name: k for k, name in enumerate(links_)}
    Laplacian = np.zeros((len(place), len(place)))
    for joint in joints:
        i, j = place[str(joint.parent)], place[joint.child]
        Laplacian[[i, j], [i, j]] += 1.0
        Laplacian[[i, j], [j, i]] -= 1.0
    return round(np.linalg.det(Laplacian[1:, 1:]))


TWO_LOOPS = [*CRANK_SLIDER, hinge("stay", "a", "c")]
LADDER = [*(hinge(f"r{k}", f"a{k}", f"b{k}") for k in (1, 2)), hinge("a12", "a1", "a2")]
LADDER += [hinge("b12", "b1", "b2"), hinge("foot", "base", "a1")]

GRAPHS = {
    "crank slider": (["base", "a", "b", "c"], CRANK_SLIDER),
    "two loops": (["base", "a", "b", "c"], TWO_LOOPS),
    "ladder": (["base", "a1", "a2", "b1", "b2"], LADDER),
    "chain": (["base", "a", "b", "c"], CRANK_SLIDER[:3]),
    "parallel": (["base", "a"], [hinge("j1", "base", "a"), hinge("j2", "base", "a")]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_every_regular_numbering(name: str) -> None:
    bodies, joints = GRAPHS[name]
    found = list(regular_numberings(links(*bodies), joints, base="base"))
    assert len({(x.bodies, x.joints) for x in found}) == len(found)
    assert {(x.bodies, x.joints) for x in found} == by_the_rules(bodies, joints, "base")
    trees = {frozenset(x.joints[: len(x.bodies)]) for x in found}
    assert len(trees) == spanning_trees(bodies, joints)
    for x in found:
        n = len(x.bodies)
        assert all(-1 <= p < i for i, p in enumerate(x.parents))
        pairs = zip(x.predecessors[:n], x.successors[:n], strict=True)
        assert [min(pair) for pair in pairs] == list(x.parents)  # Eq 4.2


def test_regular_numberings_of_the_crank_slider() -> None:
    """There are eight regular numberings of four spanning trees (figure 4.4).

    Two unbranched trees have one numbering each, and two branched trees have three each.
    """
    given = links("base", "a", "b", "c")
    found = list(regular_numberings(given, CRANK_SLIDER, base="base"))
    counts = Counter(x.loops for x in found)
    assert sorted(counts.values()) == [1, 1, 3, 3]
    assert len(found) == 8
    assert {x.parents for x in found} == {(-1, 0, 1), (-1, -1, 0), (-1, -1, 1), (-1, 0, -1)}
    for loops in counts:
        made = from_graph("cs", given, CRANK_SLIDER, base="base", loops=loops)
        assert tuple(x.name for x in made.loops) == loops
        assert all(body.parent < i for i, body in enumerate(build(made).bodies))


def test_numberings_of_what_is_not_connected() -> None:
    with raises("E-MODEL-340 'c'"):
        next(regular_numberings(links("base", "a", "c"), CRANK_SLIDER[:1], base="base"))
    floating = JointData("base_joint", "free", None, "c")
    joints = [hinge("crank", None, "a"), floating]
    assert len(list(regular_numberings(links("a", "c"), joints))) == 2


def test_the_tree_of_least_depth() -> None:
    """The tree of least depth is chosen: parent array (0, 0, 1), not (0, 1, 2)."""
    model = build(from_graph("cs", links("base", "a", "b", "c"), CRANK_SLIDER, base="base"))
    assert max(len(model.support(i)) for i in range(3)) == 2
    assert [loop.name for loop in model.loops] == ["slider"]


def eight() -> list[JointData]:
    """Return a tree of eight bodies: lambda = (0, 1, 1, 0, 3, 4, 4, 4), with joint 4 reversed."""
    parents = (0, 1, 1, 0, 3, 4, 4, 4)
    joints = [hinge(f"{i}", f"{p}", f"{i}") for i, p in enumerate(parents, start=1)]
    joints[3] = hinge("4", "4", "0")
    return joints


def test_sets_of_the_book() -> None:
    """kappa, mu and nu of an eight-body tree agree with the book, for any order of joints."""
    for order in (eight(), eight()[::-1]):
        model = build(from_graph("tree", links(*map(str, range(9))), order, base="0"))
        body = {b.name: i for i, b in enumerate(model.bodies)} | {"0": WORLD}
        name = {i: n for n, i in body.items()}
        kappa = {n: {name[k] for k in model.support(body[n])} for n in "1238"}
        assert kappa == {"1": {"1"}, "2": {"1", "2"}, "3": {"1", "3"}, "8": {"4", "8"}}
        mu = {n: {name[k] for k in model.children[body[n]]} for n in "0128"}
        assert mu == {"0": {"1", "4"}, "1": {"2", "3"}, "2": set(), "8": set()}
        nu = {n: {name[k] for k in model.subtree(body[n])} for n in "128"}
        assert nu == {"1": {"1", "2", "3", "5"}, "2": {"2"}, "8": {"8"}}
        assert {name[k] for k in model.subtree(WORLD)} == set(map(str, range(9)))
        chain = from_graph("tree", links(*map(str, range(9))), order, base="0").joints
        assert [j.name for j in chain if j.name != "0_base"] == [j.name for j in order]


# Loops -------------------------------------------------------------------------------------------


def bars() -> tuple[list[LinkData], list[JointData]]:
    """Return the links and joints of a four-bar: three hinges and a pin."""
    source = chasles.robots.four_bar().model.source
    pin = source.loops[0]
    joint = hinge(pin.name, pin.parent, pin.child, pose=pin.pose, child_pose=pin.child_pose)
    return list(source.links), [*source.joints, joint]


@pytest.mark.parametrize("loop", ["pin", "coupler", "rocker"])
def test_every_tree_is_the_same_mechanism(loop: str) -> None:
    """Mass and acceleration of the crank do not depend on which joint closes the loop."""
    known = chasles.robots.four_bar()
    parts, joints = bars()
    made = from_graph(
        "bars", parts, joints, base="base", loops=[loop], gravity=known.model.gravity_vector
    )
    robot = Robot(made).with_independent("crank")
    assert robot.loops == (loop,)
    q = known.assemble([0.8], guess=[0.8, -0.5, 1.5])
    poses = {x: known.forward_kinematics(q, frame=x) for x in ("coupler", "rocker")}
    guesses = itertools.product([0.8], *[(-2.0, -1.0, 0.0, 1.0, 2.0)] * 2)
    found = next(
        at
        for at in (robot.assemble([0.8], guess=guess) for guess in guesses)
        if all(
            np.allclose(robot.forward_kinematics(at, frame=x), T, atol=1e-9)
            for x, T in poses.items()
        )
    )
    qd, other = known.complete(q, [3.0]), robot.complete(found, [3.0])
    close(
        robot.mass_matrix(found, coordinates="independent"),
        known.mass_matrix(q, coordinates="independent"),
        1e-11,
    )
    at = robot.velocity_slice("crank").start
    torque = np.zeros(robot.nv)
    torque[at] = 0.2
    expected = known.forward_dynamics(q, qd, [0.2, 0.0, 0.0])[0]
    close(robot.forward_dynamics(found, other, torque)[at], expected, 1e-10)


def test_passive_joints_close_loops() -> None:
    parts, joints = bars()
    assert [x.name for x in from_graph("b", parts, joints, base="base").loops] == ["pin"]
    driven = from_graph("b", parts, joints, base="base", actuated=["crank", "pin"])
    assert driven.loops[0].name in ("coupler", "rocker")
    geared = from_graph(
        "b", parts, joints, base="base", couplings=[gear("g", "pin", {"coupler": 1.0})]
    )
    assert geared.loops[0].name in ("crank", "rocker")
    every = from_graph("b", parts, joints, base="base", actuated=[j.name for j in joints])
    (note,) = every.notes
    assert note.startswith(
        f"joint {every.loops[0].name!r} closes a loop in which every joint needs"
    )
    mimic = [replace(j, mimic=Mimic("crank")) if j.name == "pin" else j for j in joints]
    assert from_graph("b", parts, mimic, base="base").loops[0].name not in ("crank", "pin")


def test_parts_that_float() -> None:
    """Each link that is not connected gets a free joint and a note (section 4.1)."""
    made = from_graph("two", links("a", "b", "c"), [hinge("h", "b", "a")])
    assert [(j.name, j.kind, j.parent, j.child) for j in made.joints] == [
        ("h", "revolute", "a", "b"),
        ("a_free", "free", None, "a"),
        ("c_free", "free", None, "c"),
    ]
    assert made.notes[0] == "link 'a' is not connected; free joint 'a_free' was added"
    assert Robot(made).nv == 13
    welded = from_graph("w", links("a", "b"), [JointData("b_free", "fixed", "b", "a")], base="a")
    assert Robot(welded).nv == 0
    apart = from_graph("w", links("a", "b"), [hinge("b_free", None, "a")])
    assert [j.name for j in apart.joints] == ["b_free", "b_free_1"]


def test_several_joints_to_the_world() -> None:
    """Several joints may connect links to the world, here two pendulums with a loop joint."""
    joints = [
        hinge("left", None, "a", pose=pose(1)),
        hinge("right", None, "b", pose=pose(2)),
        JointData("rope", "spherical", "a", "b", pose(3), child_pose=pose(4)),
    ]
    robot = Robot(from_graph("swing", links("a", "b"), joints))
    assert (robot.nv, robot.loops) == (2, ("rope",))
    single = [
        Robot(from_graph("one", links(link), [joint]))
        for link, joint in zip("ab", joints, strict=False)
    ]
    M = np.diag([float(Floats(one).mass_matrix([0.0])[0, 0]) for one in single])
    close(Floats(robot).mass_matrix([0.3, -0.4]), M, 1e-13)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"joints": [hinge("x", "a", "no")]},
            "E-MODEL-030 'x'",
        ),
        ({"joints": [hinge("x", "no", "a", where="f:3")]}, "E-MODEL-030 'x'"),
        ({"joints": [hinge("x", "a", "a")]}, "E-MODEL-031 'x'"),
        ({"joints": [hinge("x", "a", "b")] * 2}, "E-MODEL-028"),
        ({"base": "c"}, "E-MODEL-029 'c'"),
        ({"loops": ["y"]}, "E-MODEL-032 'y'"),
        ({"actuated": ["xx"]}, "E-MODEL-032 'xx'"),
    ],
)
def test_bad_graphs(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"links": links("a", "b"), "joints": [hinge("x", "a", "b")]} | change
    with raises(message):
        from_graph("g", **given)


# Frames on both links, and polarity --------------------------------------------------------------


def data_of(kind: str, name: str, parent: str, child: str, seed: int) -> JointData:
    more = {"radius": 0.3, "pitch": 0.2} if kind != "fixed" else {}
    axis = Vector(tuple(np.random.default_rng(seed).normal(size=3).tolist()))
    return JointData(
        name, kind, parent, child, pose(seed), axis, child_pose=pose(seed + 50), **more
    )


@pytest.mark.parametrize("kind", JOINTS)
def test_a_frame_on_the_child_moves_the_link(kind: str) -> None:
    """Moving the frame of a child link changes the poses of links but not the dynamics."""
    joints = [data_of(kind, "j1", "base", "a", 1), data_of("revolute", "j2", "a", "b", 2)]
    own = box(2.0, (0.3, 0.4, 0.5), Vector.of(0.1, 0.2, 0.3))
    parts = [LinkData("base", own), LinkData("a", own), LinkData("b", own)]
    robot = Robot(from_graph("there", parts, joints, base="base"))
    at_joint = [
        LinkData("base", own),
        LinkData("a", joints[0].child_pose @ own),
        LinkData("b", joints[1].child_pose @ own),
    ]
    a = homogeneous(joints[0].child_pose)
    moved = Transform.from_pose(*_split(np.linalg.inv(a) @ homogeneous(joints[1].pose)))
    here = Transform.identity()
    plain = [replace(joints[0], child_pose=here), replace(joints[1], pose=moved, child_pose=here)]
    same = Robot(from_graph("here", at_joint, plain, base="base"))
    q, qd, qdd = somewhere(robot), *RNG.normal(size=(2, robot.nv))
    found, known = Floats(robot), Floats(same)
    expected = known.forward_kinematics(q, frame="a") @ np.linalg.inv(a)
    close(found.forward_kinematics(q, frame="a"), expected, 1e-12)
    close(found.mass_matrix(q), known.mass_matrix(q), 1e-12)
    close(found.inverse_dynamics(q, qd, qdd), known.inverse_dynamics(q, qd, qdd), 1e-11)
    turned = a[:3, :3] @ known.joint_reactions(q, qd, qdd)[0].reshape(2, 3).T
    close(found.joint_reactions(q, qd, qdd)[0].reshape(2, 3).T, turned, 1e-11)
    held = Floats(robot.lock({"j1": q[robot.position_slice("j1")]}))
    close(held.forward_kinematics(q[-1:], frame="b"), found.forward_kinematics(q, frame="b"), 1e-12)


def _split(T: np.ndarray) -> tuple[Any, Vector]:
    return Matrix(tuple(map(tuple, T[:3, :3].tolist()))), Vector(tuple(T[:3, 3].tolist()))


@pytest.mark.parametrize("kind", [*JOINTS, "fixed"])
def test_polarity_does_not_matter(kind: str) -> None:
    """A joint from b to a has the inverse transform if a is nearer to the base."""
    forward = data_of(kind, "j", "b", "a", 7)
    tip = data_of("revolute", "tip", "b", "c", 8)
    robot = Robot(from_graph("met", links("a", "b", "c"), [forward, tip], base="a"))
    alone = Robot(from_graph("alone", links("b", "a"), [forward], base="b"))
    q = somewhere(robot)
    own = q[:-1]
    T = Floats(alone).forward_kinematics(own, frame="a")
    close(Floats(robot).forward_kinematics(q, frame="b"), np.linalg.inv(T), 1e-12)
    if kind in ("revolute", "prismatic", "helical", "cylindrical"):
        assert not robot.joint("j").reversed
        assert list(robot.joint("j").axis) == [-x for x in forward.axis]


def test_a_frame_is_where_it_says() -> None:
    """The two frames of a joint coincide at zero displacement."""
    joint = data_of("revolute", "j", "a", "b", 9)
    robot = Robot(from_graph("zero", links("a", "b"), [joint], base="a"))
    b = Floats(robot).forward_kinematics([0.0], frame="b")
    close(b @ homogeneous(joint.child_pose), homogeneous(joint.pose), 1e-13)
