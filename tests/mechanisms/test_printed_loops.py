"""Loops that close only up to the rounded digits of a file move as the exact mechanism."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mechanisms import MECHANISMS, mechanism
from printed_loops import (
    FORMATS,
    FourBar,
    acceleration,
    coordinates,
    inertia,
    load,
    potential,
    rounded,
    shaken,
)
from support import close, raises

import chasles
from chasles.formats.files import printed
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Transform
from chasles.model import Description, JointData, rolling
from chasles.model.description import Precision
from chasles.robots._solids import box

PRINTED = ((1e-12, 16), (1e-10, 12), (1e-8, 9), (1e-6, 7), (1e-5, 6), (1e-5, 16))
"""Tilt of the axes (rad) and number of significant digits."""

Y, YD, TORQUE, SPIN = 0.9, 2.0, 0.1, 40.0
GUESS = 0.02
"""Distance (rad) of the initial guess from positions with closed loops."""


def crank_driven(folder: Path, bar: FourBar, file: str) -> tuple[chasles.Robot, np.ndarray]:
    """Load a four-bar from a file; return it and a guess for crank angle Y."""
    robot = load(folder, bar, file).with_independent("crank")
    guess = np.zeros(robot.nq)
    guess[:3] = coordinates(Y) + GUESS
    return robot, guess


EACH_TWICE = [
    (*numbers, file)
    for k, numbers in enumerate(PRINTED)
    for j, file in enumerate(FORMATS)
    if (j - k) % len(FORMATS) < 2
]
"""Test cases: each precision in two formats, and each format with at least two precisions."""


@pytest.mark.parametrize(("tilt", "digits", "file"), EACH_TWICE)
def test_a_printed_four_bar_moves(tmp_path: Path, tilt: float, digits: int, file: str) -> None:
    """A four-bar has mobility 3*3 - 2*4 = 1 (Gruebler): three moving bars and four hinges."""
    error = tilt + 10.0 ** (1 - digits)
    robot, guess = crank_driven(tmp_path, FourBar(tilt, digits), file)
    assert int(robot.mobility()) == 1
    q = robot.assemble([Y], guess=guess)
    close(q[:3], coordinates(Y), 10.0 * error + 1e-13)
    h = 1e-5
    rates = (coordinates(Y + h) - coordinates(Y - h)) * (0.5 * YD / h)
    qd = robot.complete(q, [YD])
    close(qd[:3], rates, 100.0 * error + 1e-8)
    tau = np.zeros(robot.nv)
    tau[0] = TORQUE
    found = robot.forward_dynamics(q, qd, tau)[0]
    close(found, acceleration(Y, YD, TORQUE), 100.0 * error + 2e-8)


@pytest.mark.parametrize("file", FORMATS)
def test_a_printed_four_bar_keeps_its_energy(tmp_path: Path, file: str) -> None:
    """Energy is conserved through a full turn of the crank.

    The simulation changes independent coordinates at dead points.
    """
    robot, guess = crank_driven(tmp_path, FourBar(1e-5, 16), file)
    q = robot.assemble([Y], guess=guess)
    run = robot.simulate(q, robot.complete(q, [SPIN]), duration=0.35, dt=2.5e-4)
    turned = run.q[:, 0]
    assert np.ptp(turned) > 2.0 * np.pi
    energy = robot.kinetic_energy(run.q, run.qd) + robot.potential_energy(run.q)
    swing = np.ptp(robot.potential_energy(run.q))
    assert np.max(np.abs(energy - energy[0])) < 1e-6 * swing
    for k in (400, 900, -1):
        y, yd = turned[k], run.qd[k, 0]
        expected = 0.5 * inertia(y) * yd**2 + potential(y)
        start = 0.5 * inertia(Y) * SPIN**2 + potential(Y)
        assert abs(expected - start) < 1e-4 * swing


def test_a_note_names_the_misfit(tmp_path: Path) -> None:
    robot = load(tmp_path, FourBar(1e-6, 16), "bar.toml")
    (note,) = [x for x in robot.notes if "redundant" in x]
    assert "loop 'loop'" in note
    assert "7e-07" in note
    found = robot.mobility()
    assert found.misfits[0][0] == "loop"
    assert 1e-7 < found.misfits[0][1] < 1e-5
    assert "redundant within the precision of the file: 'loop' up to 7e-07" in str(found)
    assert not any("redundant" in x for x in load(tmp_path, FourBar(0.0), "bar.toml").notes)


@pytest.mark.parametrize("file", ["connect.xml", "weld.xml", "bar.sdf"])
def test_a_locked_four_bar_is_named(tmp_path: Path, file: str) -> None:
    """A four-bar with axes tilted by 0.01 rad closes only where all coordinates are zero."""
    robot = load(tmp_path, FourBar(0.01), file)
    assert int(robot.mobility()) == 0
    with raises("E-LOOP-009"):
        robot.with_independent("crank")


def test_an_impossible_four_bar_is_refused(tmp_path: Path) -> None:
    robot = load(tmp_path, FourBar(0.0, longer=1.0), "bar.toml")
    with raises("E-LOOP-002"):
        robot.mobility()
    assert not any("redundant" in note for note in robot.notes)


def test_the_tolerance_is_set_at_load(tmp_path: Path) -> None:
    tilted = FourBar(1e-5)
    for file in ("connect.xml", "bar.toml"):
        assert int(load(tmp_path, tilted, file, loop_tolerance=1e-7).mobility()) == 0
    assert int(load(tmp_path, FourBar(1e-3), "bar.sdf").mobility()) == 0
    assert int(load(tmp_path, FourBar(1e-3), "bar.sdf", loop_tolerance=0.02).mobility()) == 1
    for bad in (0.0, -1.0, np.nan, True, "1e-3"):
        with raises("E-CALL-004"):
            load(tmp_path, tilted, "bar.toml", loop_tolerance=bad)


# Other mechanisms ---------------------------------------------------------------------------------

FREEDOMS = {
    "four_bar": 3 * 3 - 2 * 4,
    "slider_crank": 3 * 3 - 2 * 4,
    "triangle": 3 * 4 - 2 * 5,
    "five_bar": 3 * 4 - 2 * 5,
    "six_bar": 3 * 5 - 2 * 7,
    "stewart": 6,
    "delta": 3,
}
"""Number of degrees of freedom.

For planar mechanisms, it is 3 (moving bodies) - 2 (joints) (Gruebler).
"""


SHAKEN = [(name, size) for name in MECHANISMS for size in (1e-12, 1e-5)]
SHAKEN = [row for row in SHAKEN if row not in (("delta", 1e-12), ("stewart", 1e-5))]
"""Mechanisms, and sizes of the errors of their joint poses.

The platforms have long equations, and are tested with one size each.
"""


@pytest.mark.parametrize(("name", "size"), SHAKEN)
def test_a_shaken_mechanism_moves(name: str, size: float) -> None:
    """A mechanism with perturbed joint poses moves as the exact one, up to the perturbation."""
    exact, y = mechanism(name), np.array(MECHANISMS[name])
    robot = shaken(exact.model.source, size).with_independent(*exact.independent)
    assert int(robot.mobility()) == FREEDOMS[name] == len(y)
    q0 = exact.assemble(y)
    q = robot.assemble(y, guess=q0)
    close(q, q0, 10.0 * size + 1e-13)
    rates, none = np.full(len(y), 0.5), np.zeros(robot.nv)
    qd, qd0 = robot.complete(q, rates), exact.complete(q0, rates)
    found, expected = (
        one.forward_dynamics(*state, none) for one, state in ((robot, (q, qd)), (exact, (q0, qd0)))
    )
    close(found, expected, 100.0 * size + 1e-11)
    run = robot.simulate(q, qd, duration=0.05, dt=1e-3)
    energy = robot.kinetic_energy(run.q, run.qd) + robot.potential_energy(run.q)
    assert np.max(np.abs(energy - energy[0])) < 1e-8 * np.ptp(robot.potential_energy(run.q))


@pytest.mark.parametrize("name", ["five_bar", "stewart", "delta"])
def test_a_mechanism_of_six_digits_moves(tmp_path: Path, name: str) -> None:
    built, y = mechanism(name), np.array(MECHANISMS[name])
    file = tmp_path / f"{name}.xml"
    chasles.save(built, file)
    whole = chasles.load(file).with_independent(*built.independent)
    file.write_text(rounded(file.read_text(), 6))
    robot = chasles.load(file).with_independent(*built.independent)
    assert int(robot.mobility()) == FREEDOMS[name]
    q = whole.assemble(y)
    close(robot.assemble(y, guess=q), q, 2e-5)


def parallelogram(off: float) -> chasles.Robot:
    """Return a linkage of three equal cranks on one coupler, with lengths perturbed by `off`.

    Gruebler's formula gives 3*4 - 2*6 = 0 degrees of freedom. The linkage moves nevertheless,
    because the cranks stay parallel.
    """
    bar = mechanism("four_bar").model.source
    rng = np.random.default_rng(5)

    def along(x: float) -> Transform:
        at = x + off * rng.uniform(-1.0, 1.0)
        return Transform.from_pose(Transform.identity().R, Vector.of(at, 0.0, 0.0))

    base, crank, coupler, rocker = bar.links
    first, second, third = bar.joints
    loop = bar.loops[0]
    joints = (
        first,
        replace(second, pose=along(0.1)),
        replace(third, pose=along(0.2)),
        replace(third, name="middle", child="middle", pose=along(0.1)),
    )
    loops = (
        replace(loop, pose=along(0.2), child_pose=along(0.1)),
        replace(loop, name="inner", child="middle", pose=along(0.1), child_pose=along(0.1)),
    )
    links = (base, crank, coupler, rocker, replace(rocker, name="middle"))
    return chasles.Robot(replace(bar, links=links, joints=joints, loops=loops))


@pytest.mark.parametrize("off", [0.0, 1e-12, 1e-8, 1e-6])
def test_a_bar_too_many_does_not_lock(off: float) -> None:
    robot = parallelogram(off).with_independent("crank")
    assert int(robot.mobility()) == 1
    q = robot.assemble([0.8], guess=[0.7, -0.7, 0.7, 0.7])
    close(q, np.array([0.8, -0.8, 0.8, 0.8]), 100.0 * off + 1e-13)
    close(robot.complete(q, [1.0]), np.array([1.0, -1.0, 1.0, 1.0]), 100.0 * off + 1e-12)
    run = robot.simulate(q, robot.complete(q, [1.0]), duration=0.2, dt=1e-3)
    energy = robot.kinetic_energy(run.q, run.qd) + robot.potential_energy(run.q)
    assert np.ptp(energy) < (10.0 * off + 1e-9) * np.ptp(robot.potential_energy(run.q))


def test_a_dropped_equation_decides_the_branch() -> None:
    """A configuration that violates a dropped redundant equation is refused.

    In this configuration, two cranks are crossed, which the third crank does not allow.
    """
    robot = parallelogram(1e-6).with_independent("crank")
    crossed = np.array([0.8, -1.80632667, -1.80633204, -0.50313323])
    with raises("E-LOOP-021", "'inner'", "0.184"):
        robot.complete(crossed, [1.0])
    with raises("E-LOOP-021", "'inner'", "0.184"):
        robot.forward_dynamics(crossed, np.zeros(4), np.zeros(4))
    close(robot.assemble([0.8], guess=crossed), np.array([0.8, -0.8, 0.8, 0.8]), 1e-4)


def on_a_sleigh(source: Description) -> Description:
    """Return a mechanism whose base slides on a plane along a blade."""
    base, *links = source.links
    base = replace(base, inertia=box(1.0, (0.3, 0.2, 0.1)))
    slide, blade = JointData("slide", "planar", None, base.name), rolling("b", "blade", base.name)
    joints = slide, *source.joints
    return replace(source, links=(base, *links), joints=joints, couplings=(blade,))


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-5])
def test_a_shaken_mechanism_on_a_sleigh_moves(size: float) -> None:
    """Redundant position equations are dropped, but velocity equations are not."""
    bar = on_a_sleigh(mechanism("four_bar").model.source)
    exact = chasles.Robot(bar).with_independent("slide[0]", "slide[1]", "crank")
    robot = shaken(bar, size).with_independent(*exact.independent)
    mobility = robot.mobility()
    assert (int(mobility), mobility.positions) == (3, 4)
    assert [name for name, _ in mobility.misfits] == ([robot.loops[0]] if size else [])
    y = np.array([0.0, 0.0, 0.0, 0.7])
    q0 = exact.assemble(y)
    q = robot.assemble(y, guess=q0)
    close(q, q0, 10.0 * size + 1e-13)
    rates, none = np.array([0.5, -0.3, 0.8]), np.zeros(robot.nv)
    qd, qd0 = robot.complete(q, rates), exact.complete(q0, rates)
    expected = chasles.maximal_dynamics(exact, q0, qd0, none)[0]
    close(robot.forward_dynamics(q, qd, none), expected, 100.0 * size + 1e-10)
    run = robot.simulate(q, qd, duration=0.05, dt=1e-3)
    energy = robot.kinetic_energy(run.q, run.qd) + robot.potential_energy(run.q)
    assert np.ptp(energy) < 1e-8 * np.ptp(robot.potential_energy(run.q))
    assert robot.verify(states=1).ok


# Options and digits -------------------------------------------------------------------------------


def test_loops_are_left_out_on_request(tmp_path: Path) -> None:
    bar = FourBar(0.01)
    tree = load(tmp_path, bar, "axis.xml", loops=False)
    assert (tree.loops, int(tree.mobility())) == ((), 3)
    one = load(tmp_path, bar, "axis.xml", omit=["loop2"])
    assert one.loops == ("loop",)
    assert "removed on request: 'loop2'" in one.notes
    with raises("E-LOOP-240", "'loop', 'loop2'"):
        load(tmp_path, bar, "axis.xml", omit=["pin"])


def test_mimic_joints_and_couplings_are_left_out_by_name(tmp_path: Path) -> None:
    file = tmp_path / "arm.xml"
    body = '<body name="{0}"><joint name="{0}"/><geom size="0.1"/></body>'
    bodies = "".join(map(body.format, "abc"))
    file.write_text(
        f"<mujoco><worldbody>{bodies}</worldbody><equality>"
        '<joint name="linear" joint1="b" joint2="a"/>'
        '<joint name="square" joint1="c" joint2="a" polycoef="0 0 1 0 0"/></equality></mujoco>'
    )
    whole = chasles.load(file)
    assert (whole.nv, whole.couplings) == (2, ("square",))
    assert chasles.load(file, omit=["square"]).couplings == ()
    assert chasles.load(file, omit=["b"]).nv == 3
    assert chasles.load(file, loops=False).couplings == ()
    for loops in (["square"], "square", 0, None):
        with raises("E-FILE-590", "omit="):
            chasles.load(file, loops=loops)


@pytest.mark.parametrize(
    ("text", "significant", "decimals"),
    [
        ('<a pos="0.707107 1e-05 -12.5"/>', 6, 6),
        ('<a pos="0.0057502531 1.5"/>', 8, 10),
        ("x = [100.0, 2000, 1.25e-3] # link_0123456.789", 4, 5),
        ("no numbers", 17, 17),
    ],
)
def test_digits_of_files(tmp_path: Path, text: str, significant: int, decimals: int) -> None:
    file = tmp_path / "some.txt"
    file.write_text(text)
    assert printed([str(file)]) == Precision(significant, decimals)


def test_the_tolerance_follows_digits_and_size() -> None:
    """The tolerance is eight times half a unit of the last digit of directions and lengths."""
    assert Precision().closure(1.0) == Precision.MADE
    assert Precision(5, 17).closure(0.1) == pytest.approx(8 * (0.5e-5 + 0.5e-5 / 0.1 * 1.0))
    assert Precision(17, 6).closure(0.01) == pytest.approx(8 * (0.5e-6 + 0.5e-6 / 0.01))
    assert Precision(4, 17).closure(1.0) == Precision.MOST
    assert Precision(3, 17).closure(1.0) == Precision.MADE  # 0.25 is exact
    assert Precision(5, 17, 1e-9).closure(0.1) == 1e-9


def test_the_precision_is_written(tmp_path: Path) -> None:
    """A copy with full precision keeps the tolerance of the original file with five digits."""
    robot = load(tmp_path, FourBar(3e-5, 5), "bar.toml")
    assert int(robot.mobility()) == 1
    copy = tmp_path / "copy.toml"
    chasles.save(robot, copy)
    again = chasles.load(copy)
    assert again.model.source.precision == robot.model.source.precision
    assert int(again.mobility()) == 1
    set_at_load = load(tmp_path, FourBar(0.0), "bar.toml", loop_tolerance=2e-3)
    chasles.save(set_at_load, copy, overwrite=True)
    assert chasles.load(copy).model.source.precision.loops == 2e-3


def test_verify_takes_loops_of_few_digits() -> None:
    for robot in (shaken(mechanism("four_bar").model.source, 1e-6), parallelogram(1e-6)):
        found = robot.verify(states=1)
        assert found.ok, found.failures
