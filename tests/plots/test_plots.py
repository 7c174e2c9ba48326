"""`robot.plot`: plotted values agree with closed forms, and invalid input is refused."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import chasles
from chasles.plots import paper

mpl.use("Agg")
from matplotlib import pyplot
from support import raises

ONE, TWO = chasles.robots.planar(1), chasles.robots.planar(2)
"""Arms of rods of 1 kg and 1 m; positive angles lift them."""

T = np.linspace(0.0, 1.0, 11)
PATH = np.column_stack([np.sin(T), 0.3 + T])


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def lines(axes: Any) -> dict[str, np.ndarray]:
    """Return the curves of a plot by label."""
    return {line.get_label(): line.get_ydata() for line in axes.get_lines()}


def test_torque_of_a_pendulum() -> None:
    q, qd, qdd = np.sin(T)[:, None], np.cos(T)[:, None], -np.sin(T)[:, None]
    axes = ONE.plot.torque(q, qd, qdd, t=T)
    expected = qdd[:, 0] / 3.0 + 9.81 / 2.0 * np.cos(q[:, 0])
    assert np.allclose(lines(axes)["joint1"], expected, rtol=1e-13)
    assert np.array_equal(axes.get_lines()[0].get_xdata(), T)
    assert axes.get_title() == "joint torques (N m)"
    assert axes.get_xlabel() == "time (s)"
    assert ONE.plot.torque(q, qd, qdd).get_xlabel() == "sample"


def test_forces_of_unlike_joints_are_named_with_their_units() -> None:
    robot = chasles.robots.stanford_arm()
    q = robot.random(0, size=3)
    axes = robot.plot.torque(q, np.zeros_like(q), np.zeros_like(q))
    assert axes.get_title() == "generalized forces (N m, N)"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(robot.joints)


def test_energy_of_a_free_motion_is_constant() -> None:
    motion = chasles.simulate(TWO, [0.5, -1.0], [1.0, 0.0], duration=0.3, dt=1e-3)
    curves = lines(TWO.plot.energy(motion.q, motion.qd, t=motion.t))
    height = 1.5 * np.sin(motion.q[:, 0]) + 0.5 * np.sin(motion.q.sum(axis=1))
    assert np.allclose(curves["change of potential"], 9.81 * (height - height[0]), atol=1e-12)
    assert np.ptp(curves["sum"]) < 1e-9 < np.ptp(curves["kinetic"])


def test_manipulability_of_a_planar_arm() -> None:
    """The manipulability is sin of the elbow angle, the area spanned by unit joint rates."""
    curve = TWO.plot.manipulability(PATH, frame="tip").get_lines()[0].get_ydata()
    assert np.allclose(curve, np.abs(np.sin(PATH[:, 1])), rtol=1e-12)
    arm = chasles.robots.puma560()
    q = arm.random(1, size=4)
    J = arm.jacobian(q, frame="tool")[:, :3]
    curve = arm.plot.manipulability(q, rows="angular").get_lines()[0].get_ydata()
    assert np.allclose(curve, np.sqrt(np.linalg.det(J @ np.swapaxes(J, -1, -2))), rtol=1e-9)


def test_manipulability_over_two_joints() -> None:
    """The map of a planar arm depends only on the elbow angle."""
    joints = ("joint1", "joint2")
    axes = TWO.plot.manipulability([0.0, 0.0], joints=joints, points=9)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("joint1 (rad)", "joint2 (rad)")
    assert np.allclose([axes.get_xlim(), axes.get_ylim()], [[-np.pi, np.pi]] * 2)
    colours = axes.figure.axes[1]
    assert 0.9 < colours.get_ylim()[1] <= 1.1


def test_condition_of_a_planar_arm() -> None:
    """Closed forms of the mass matrix of two rods and of the tip's Jacobian in the plane."""
    c, s = np.cos(PATH[:, 1]), np.sin(PATH[:, 1])
    M = np.array([[5.0 / 3.0 + c, 1.0 / 3.0 + c / 2.0], [1.0 / 3.0 + c / 2.0, 0 * c + 1.0 / 3.0]])
    moments = np.linalg.eigvalsh(M.transpose(2, 0, 1))
    curve = TWO.plot.condition(PATH, t=T).get_lines()[0].get_ydata()
    assert np.allclose(curve, moments[:, 1] / moments[:, 0], rtol=1e-10)
    J = np.array([[-s, -s], [1.0 + c, c]]).transpose(2, 0, 1)
    axes = TWO.plot.condition(PATH, of="jacobian", frame="tip")
    assert np.allclose(axes.get_lines()[0].get_ydata(), np.linalg.cond(J), rtol=1e-10)
    stretched = np.zeros((2, 2))
    assert np.all(np.isnan(TWO.plot.condition(stretched, of="jacobian").get_lines()[0].get_ydata()))


def test_workspace_of_a_planar_arm() -> None:
    """Points are within a circle of the arm's length, in the plane of motion."""
    drawn = TWO.plot.workspace("tip", samples=300).get_lines()[0]
    points = np.column_stack([drawn.get_xdata(), drawn.get_ydata()])
    assert len(points) == 300
    assert 1.9 < np.max(np.linalg.norm(points, axis=1)) <= 2.0 + 1e-12
    flat = TWO.plot.workspace("tip", samples=300, plane="xy").get_lines()[0]
    assert np.allclose(flat.get_ydata(), 0.0, atol=1e-12)
    given = TWO.plot.workspace("tip", q=PATH).get_lines()[0].get_xdata()
    assert np.allclose(given, np.cos(PATH[:, 0]) + np.cos(PATH.sum(axis=1)))
    space = TWO.plot.workspace("tip", samples=20, plane="3d")
    assert space.name == "3d"
    assert len(space.collections[0].get_offsets()) == 20


def test_cost_is_that_of_shorter_chains() -> None:
    """The first joints of a general chain cost as much as a shorter general chain."""
    robot = chasles.robots.general_chain(4)
    curves = lines(robot.plot.cost("mass_matrix", methods=["spatial"], lengths=[2, 4]))
    for n, operations in zip((2, 4), curves["spatial"], strict=True):
        shorter = chasles.robots.general_chain(n)
        assert operations == chasles.cost(shorter, "mass_matrix", method="spatial").flops


def test_cost_leaves_out_what_a_robot_cannot_have() -> None:
    """Floating-base methods are omitted for an arm, and refused if requested by name."""
    names = lines(TWO.plot.cost("forward_dynamics", lengths=[2]))
    assert "articulated-body" in names
    assert "floating-base" not in names
    with raises("E-CALL-070"):
        TWO.plot.cost("forward_dynamics", methods=["floating-base"], lengths=[2])


def test_pictures_are_drawn_where_asked() -> None:
    figure, (left, right) = pyplot.subplots(1, 2)
    assert TWO.plot.energy(PATH, PATH, axes=left) is left
    assert TWO.plot.workspace(samples=5, axes=right) is right
    assert pyplot.get_fignums() == [figure.number]
    with raises("E-PLOT-004", "'3d'", "projection="):
        TWO.plot.workspace(samples=5, plane="3d", axes=right)


def test_contact_plots_name_pairs_and_omit_inactive_slots() -> None:
    """The gap of a pair is the smallest gap of its active slots."""
    gaps = np.array([[0.3, 0.2, np.nan, np.nan], [0.1, 0.2, 0.05, np.nan]])
    forces = np.zeros((2, 4, 3))
    forces[1, :2] = [[0.0, 3.0, 4.0], [0.0, 0.0, 1.0]]
    names = ["foot on ground"] * 2 + ["arm on trunk", "arm on foot"]
    _, axes = paper.sheet(2)
    paper.touches(names, forces, gaps, [0.0, 1.0], axes)
    force, gap = ({x.get_label(): x.get_ydata() for x in each.lines} for each in axes)
    assert [*gap] == [*force] == ["foot on ground", "arm on trunk", "arm on foot"]
    assert np.array_equal(gap["foot on ground"], [0.2, 0.1])
    assert np.array_equal(gap["arm on trunk"], [np.nan, 0.05], equal_nan=True)
    assert np.isnan(gap["arm on foot"]).all()
    assert np.allclose(force["foot on ground"], [0.0, 34.0**0.5])
    assert axes[1].get_legend() is not None


def test_plots_name_the_coordinates_of_a_free_joint() -> None:
    robot = chasles.robots.quadruped()
    drawn = paper.positions(robot, np.stack([robot.neutral()] * 2), None, None)
    labels = [line.get_label() for line in drawn.lines]
    assert [x.split()[-1] for x in labels[:7]] == ["qw", "qx", "qy", "qz", "x", "y", "z"]
    looks = [(line.get_color(), line.get_linestyle()) for line in drawn.lines]
    assert len(set(looks)) == len(looks)
    pyplot.close(drawn.figure)


def test_names_are_no_mathematics() -> None:
    """matplotlib would fail to parse this joint name as a formula."""
    data = chasles.robots.planar(1).model.source
    name = "$x_{"
    joint = replace(data.joints[0], name=name)
    robot = chasles.Robot(replace(data, joints=(joint,)))
    axes = robot.plot.torque(*[np.zeros((2, 1))] * 3)
    axes.figure.canvas.draw()
    assert axes.get_legend().get_texts()[0].get_text() == name


FLAT = np.zeros(2)
LOOP = chasles.robots.four_bar()


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: TWO.plot.torque(FLAT, FLAT, FLAT), "E-PLOT-016"),
        (lambda: TWO.plot.torque(PATH, PATH[:3], PATH), "E-PLOT-002 11"),
        (lambda: TWO.plot.torque(PATH, PATH, PATH * np.nan), "E-PLOT-019 (0, 0)"),
        (lambda: TWO.plot.energy(PATH, PATH[:, :1]), "E-CALL-056"),
        (lambda: TWO.plot.energy(PATH, PATH[:2]), "E-PLOT-003 11"),
        (lambda: TWO.plot.energy(PATH, PATH, t=T[:3]), "E-PLOT-017 11"),
        (lambda: TWO.plot.manipulability(PATH, frame="tap"), "E-MODEL-034 'tip'"),
        (lambda: TWO.plot.manipulability(PATH, rows="both"), "E-PLOT-007 'angular'"),
        (lambda: TWO.plot.manipulability(FLAT, joints=("joint1",)), "E-PLOT-010"),
        (lambda: TWO.plot.manipulability(FLAT, joints=("joint1", "j")), "E-MODEL-037 'j'"),
        (lambda: TWO.plot.manipulability(PATH, joints=("joint1", "joint2")), "E-PLOT-018"),
        (lambda: TWO.plot.manipulability(FLAT, joints=("joint1", "joint2"), t=T), "E-PLOT-009"),
        (lambda: TWO.plot.condition(PATH, of="gravity"), "E-PLOT-012 'mass_matrix'"),
        (lambda: TWO.plot.workspace(plane="zx"), "E-PLOT-014 'xy'"),
        (lambda: TWO.plot.workspace(samples=0), "E-PLOT-015"),
        (lambda: TWO.plot.cost(methods=["magic"]), "E-CALL-068"),
        (lambda: TWO.plot.cost("speed"), "E-CALL-025 'speed'"),
        (lambda: TWO.plot.cost(lengths=[3]), "E-PLOT-001"),
        (lambda: LOOP.plot.workspace(), "E-LOOP-033"),
        (lambda: LOOP.plot.manipulability(np.zeros((2, LOOP.nq))), "E-LOOP-033 manipulability"),
        (lambda: LOOP.plot.cost(), "E-LOOP-033"),
    ],
)
def test_bad_input_is_refused(draw: Callable[[], Any], message: str) -> None:
    with raises(message):
        draw()
    assert not pyplot.get_fignums()


def test_loops_have_a_condition_where_they_are_closed() -> None:
    q = np.array([LOOP.assemble([y]) for y in (0.6, 0.8)])
    axes = LOOP.plot.condition(q)
    assert np.allclose(axes.get_lines()[0].get_ydata(), 1.0)  # one degree of freedom


def test_matplotlib_loads_on_use() -> None:
    code = "import chasles, sys; chasles.robots.planar(1).plot; print('matplotlib' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "False\n"


def test_plot_is_not_a_function() -> None:
    """In the Robotics Toolbox, `robot.plot(q)` shows the robot."""
    with raises("E-PLOT-023", "robot.show(q)"):
        chasles.robots.planar(2).plot([0.0, 0.0])
