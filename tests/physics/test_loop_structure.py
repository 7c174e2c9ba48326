"""Clusters of coupled loops, and weaker equivalents of loop joints."""

from dataclasses import replace

import numpy as np
import pytest
from support import close

import chasles
from chasles import Robot
from chasles.mathematics.linear import Vector
from chasles.mechanisms.ranks import STARTS
from chasles.model import Description, JointData, LinkData, LoopData, gear
from chasles.robots._solids import box
from chasles.robots.mechanisms import four_bar

PLANAR = ("slider_crank", "four_bar", "triangle", "five_bar", "six_bar")


def chain(parents: list[int]) -> Description:
    """Return a tree of revolute joints "1", "2", ... with links of the same names on a base "0"."""
    links = tuple(LinkData(str(i), box(1.0, (0.1, 0.2, 0.3))) for i in range(len(parents) + 1))
    joints = tuple(
        JointData(str(i), "revolute", str(p), str(i)) for i, p in enumerate(parents, start=1)
    )
    return Description("chain", links, joints)


def test_clusters_of_the_book() -> None:
    """Featherstone 2008, section 8.9: clusters {1, 2}, {3}, {4}, joints 3-7, 10-12, 19-20.

    The book's numbers do not tell how the joints are connected. The test uses a tree in which loops
    1 and 2 pass through joints 3-7 and share one of them.
    """
    parents = [0, 1, 2, 3, 4, 3, 6, 2, 8, 9, 10, 11, *range(12, 18), 18, 18]
    ends = {"21": ("2", "5"), "22": ("2", "7"), "23": ("9", "12"), "24": ("19", "20")}
    loops = tuple(LoopData(name, "spherical", a, b) for name, (a, b) in ends.items())
    found = Robot(replace(chain(parents), loops=loops)).loop_clusters()
    assert [cluster.loops for cluster in found] == [("21", "22"), ("23",), ("24",)]
    assert [cluster.joints for cluster in found] == [
        ("3", "4", "5", "6", "7"),
        ("10", "11", "12"),
        ("19", "20"),
    ]


def test_a_gear_joins_clusters() -> None:
    source = chain([0, 1, 2, 0, 4, 5])
    loops = (LoopData("a", "spherical", "0", "3"), LoopData("b", "spherical", "0", "6"))
    apart = Robot(replace(source, loops=loops))
    assert [c.loops for c in apart.loop_clusters()] == [("a",), ("b",)]
    joined = apart.with_couplings(gear("g", "3", {"6": 2.0}))
    assert joined.loop_clusters() == ((("a", "b", "g"), ("1", "2", "3", "4", "5", "6")),)


def test_clusters_are_blocks_of_the_matrix() -> None:
    source = chain([0, 1, 2, 0, 4, 5])
    loops = (LoopData("a", "spherical", "0", "3"), LoopData("b", "universal", "6", "4"))
    robot = Robot(replace(source, loops=loops))
    A = robot.loop_matrix(robot.random(seed=1))
    first = 0
    for loop, rows in (("a", 3), ("b", 4)):
        (joints,) = (c.joints for c in robot.loop_clusters() if loop in c.loops)
        outside = [k for k, joint in enumerate(robot.joints) if joint not in joints]
        assert not A[first : first + rows, outside].any()
        first += rows


def copies(source: Description, count: int) -> Robot:
    """Return several copies of a mechanism on one base."""
    base, links, joints, loops = source.links[0], [source.links[0]], [], []
    for k in range(count):

        def name(link: str, k: int = k) -> str:
            return link if link == base.name else f"{link}{k}"

        links += [replace(x, name=name(x.name)) for x in source.links[1:]]
        for made, given in ((joints, source.joints), (loops, source.loops)):
            made += [
                replace(x, name=f"{x.name}{k}", parent=name(x.parent), child=name(x.child))
                for x in given
            ]
    changed = replace(source, links=tuple(links), joints=tuple(joints), loops=tuple(loops))
    return Robot(replace(changed, independent=()))


@pytest.mark.parametrize("method", ["minimal", "multipliers"])
def test_clusters_are_eliminated_by_themselves(method: str) -> None:
    """K and G have blocks, so three mechanisms cost three times one (section 8.9)."""
    source = chasles.robots.four_bar().model.source

    def work(count: int) -> tuple[int, ...]:
        found = chasles.cost(copies(source, count), "constrained_dynamics", method=method)
        return found.multiplications, found.additions, found.divisions

    one, two, three = np.array([work(count) for count in (1, 2, 3)])
    assert np.array_equal(three - two, two - one)
    assert np.all(two <= 2 * one + 2)  # clusters share only the comparison of conditioning


def test_clusters_close_by_themselves() -> None:
    """Each cluster takes the same iterations as its mechanism alone."""
    alone, loops = chasles.robots.four_bar(), 3
    both = copies(alone.model.source, loops).mechanism.closing
    rng, one = np.random.default_rng(2), alone.mechanism.closing
    far = one.references[0] + np.array([0.0, 0.1, 1.0])[:, None] * rng.normal(size=(loops, 3))
    found = both.solve(
        np.concatenate([far.reshape(-1), far[::-1].reshape(-1)]).reshape(2, -1), both.columns
    )
    parts = found.q.reshape(2, loops, 3)
    expected = one.solve(far, one.columns)
    assert np.max(expected.size) < 1e-13
    close(parts[0], expected.q, 1e-13)
    close(parts[1], expected.q[::-1], 1e-13)
    assert np.max(np.abs(both.function("loop_residual")(found.q))) < 1e-13


def test_many_clusters_close_where_one_does() -> None:
    """A cluster that does not close from one start takes its position from another start."""
    source = chasles.robots.six_bar().model.source
    alone, many = (copies(source, count).mechanism.closing.references for count in (1, 8))
    assert len(alone) < STARTS == len(many)


@pytest.mark.parametrize("name", PLANAR)
def test_weaker_joints_leave_the_motion_as_it_is(name: str) -> None:
    """Weaker joints for planar loops in space, all replaced together, give the same motion.

    The source is section 8.10.
    """
    robot = chasles.robots.ROBOTS[name]()
    report = robot.mobility()
    offers = dict(report.weaker)
    assert set(offers) == {loop for loop, count in report.redundant if count}
    source = robot.model.source
    loops = tuple(replace(x, kind=offers.get(x.name, x.kind)) for x in source.loops)
    weak = Robot(replace(source, loops=loops, independent=robot.independent))
    less = weak.mobility()
    assert (less.rank, int(less)) == (report.rank, int(report))
    assert less.rows < report.rows
    at = robot.mechanism.closing.references[0]
    y = at[[robot.joints.index(joint) for joint in robot.independent]]
    q = robot.assemble(y, guess=at)
    close(weak.assemble(y, guess=at), q, 1e-12)
    qd = robot.complete(q, np.ones(int(report)))
    tau = np.linspace(-1.0, 1.0, robot.nv)
    close(weak.forward_dynamics(q, qd, tau), robot.forward_dynamics(q, qd, tau), 1e-9)


def test_offers_are_named() -> None:
    report = chasles.robots.slider_crank().mobility()
    assert str(report).endswith("; equivalent with fewer equations: 'closure' as prismatic")
    assert chasles.robots.stewart().mobility().weaker == ()


def test_a_loop_that_says_nothing_can_be_left_out() -> None:
    """A duplicate loop joint can be removed, and the remaining one can be weaker."""
    source = chasles.robots.four_bar().model.source
    twice = replace(source, loops=(*source.loops, replace(source.loops[0], name="again")))
    report = Robot(twice).mobility()
    kinds = dict(report.weaker)
    assert kinds["again"] == "free"
    assert "'again' left out" in str(report)
    loops = tuple(replace(x, kind=kinds[x.name]) for x in twice.loops)
    assert Robot(replace(twice, loops=loops)).mobility().rank == report.rank


BAR = 0.7


def kites() -> chasles.Robot:
    """Return a crank as long as the ground, and two pairs of equal bars from its tip to a pivot.

    If the crank lies on the ground link, its tip is at the pivot, and each pair swings as one bar.
    """
    source = four_bar(1.0, 1.0, BAR, BAR)
    (pin,) = source.loops
    links = [replace(link, name=f"{link.name}2") for link in source.links[-2:]]
    joints = [replace(j, name=f"{j.name}2", child=f"{j.child}2") for j in source.joints[-2:]]
    other = replace(pin, name="pin2", parent="coupler2", child="rocker2")
    return chasles.Robot(
        replace(
            source,
            links=(*source.links, *links),
            joints=(*source.joints, *joints),
            loops=(pin, other),
        )
    )


def off_the_ground(angle: float) -> np.ndarray:
    """Return q with the two pairs of bars on either side of the line from tip to pivot."""
    tip = np.exp(1j * angle)
    line = (1.0 - tip) / 2.0
    q = [angle]
    for side in (1j, -1j):
        elbow = tip + line + side * line / abs(line) * np.sqrt(BAR**2 - abs(line) ** 2)
        q += [np.angle(elbow - tip) - angle, np.angle(elbow - 1.0)]
    return np.array(q)


ON_THE_GROUND = np.array([0.0, 0.7, 0.7, -1.2, -1.2])


@pytest.mark.parametrize(
    ("q", "mobility"),
    [
        (off_the_ground(0.8), 1),
        (off_the_ground(0.1), 1),
        (ON_THE_GROUND, 2),
        (ON_THE_GROUND + np.array([0.0, 0.4, 0.4, 1.2, 1.2]), 2),
        (np.zeros(5), 3),
    ],
)
def test_mobility_that_varies(q: np.ndarray, mobility: int) -> None:
    """Featherstone 2008, section 8.10: n = 5, and r = 4, 3 or 2 depending on the position.

    r is 4 with the crank off the ground link and 3 on it, where both pairs swing freely, even if
    one of them lies flat. r is 2 where the two modes of motion meet.
    """
    found = kites().mobility(q)
    assert (found.freedoms, found.rank, int(found)) == (5, 5 - mobility, mobility)


def test_a_weld_around_parallel_slides() -> None:
    """A weld across parallel prismatic joints needs only one of its six equations."""
    links = tuple(LinkData(name, box(1.0, (1.0, 1.0, 1.0))) for name in ("base", "a", "b"))
    x = Vector.of(1.0, 0.0, 0.0)
    joints = (
        JointData("a", "prismatic", "base", "a", axis=x),
        JointData("b", "prismatic", "a", "b", axis=x),
    )
    weld = LoopData("w", "fixed", "base", "b")
    robot = Robot(Description("slides", links, joints, loops=(weld,)))
    report = robot.mobility()
    assert report.redundant == (("w", 5),)
    ((_, kind),) = report.weaker
    weak = Robot(replace(robot.model.source, loops=(replace(weld, kind=kind),)))
    assert (weak.mobility().rank, weak.mobility().rows) == (1, 6 - chasles.model.JOINTS[kind].nv)
