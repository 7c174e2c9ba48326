"""Polynomials, splines and lines: end conditions, derivatives by differences, errors."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles import trajectory
from chasles.errors import ChaslesError
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model import FrameData
from chasles.rollouts import ComputedTorque, PDControl
from chasles.trajectory import Move
from chasles.trajectory.spaces import poses, rotations

RNG = np.random.default_rng(20)
TIMES = np.array([0.0, 0.5, 1.2, 2.0, 2.4])


def slopes(
    move: Move, t: np.ndarray, difference: Callable[[Any, Any], Any] | None = None
) -> list[float]:
    """Return relative differences of each rate from the central difference of the rate below."""
    h = 1e-5
    before, here, after = move(t - h, 3), move(t, 3), move(t + h, 3)
    first = difference or (move.robot.difference if move.robot else np.subtract)
    sign = 1.0 if difference or move.robot else -1.0
    found = [sign * first(before[0], after[0])]
    found += [b - a for a, b in zip(before[1:3], after[1:3], strict=True)]
    return [
        float(np.abs(d / (2.0 * h) - rate).max() / max(np.abs(rate).max(), 1.0))
        for d, rate in zip(found, here[1:], strict=True)
    ]


@pytest.mark.parametrize("name", ["cubic", "quintic", "septic"])
def test_polynomials_have_the_given_ends(name: str) -> None:
    orders = {"cubic": 1, "quintic": 2, "septic": 3}[name]
    ends = RNG.normal(size=(4, 2, 6))
    rates = {}
    for order, key in enumerate(("qd", "qdd", "qddd")[:orders], start=1):
        rates |= {f"{key}0": ends[order, 0], f"{key}1": ends[order, 1]}
    move = getattr(trajectory, name)(*ends[0], 1.7, **rates)
    for side, t in enumerate((0.0, 1.7)):
        for order, value in enumerate(move(t, orders)):
            assert np.abs(value - ends[order, side]).max() < 1e-9
    assert max(slopes(move, np.linspace(0.1, 1.6, 9))) < 1e-7


def test_minimum_jerk_and_snap_are_their_closed_forms() -> None:
    q0, q1 = RNG.normal(size=(2, 5))
    t = np.linspace(0.0, 2.0, 41).reshape(1, 41)
    s = (t / 2.0)[..., None]
    jerk = trajectory.minimum_jerk(q0, q1, duration=2.0)
    snap = trajectory.minimum_snap(q0, q1, duration=2.0)
    q, qd, qdd = jerk(t)
    assert q.shape == qd.shape == qdd.shape == (1, 41, 5)
    assert np.allclose(q, q0 + (q1 - q0) * (10 * s**3 - 15 * s**4 + 6 * s**5), atol=1e-12)
    assert np.allclose(qdd, (q1 - q0) / 4.0 * (60 * s - 180 * s**2 + 120 * s**3), atol=1e-11)
    wanted = q0 + (q1 - q0) * (35 * s**4 - 84 * s**5 + 70 * s**6 - 20 * s**7)
    assert np.allclose(snap(t, 0)[0], wanted, atol=1e-12)


def test_minimum_jerk_through_points_is_less_than_any_neighbour() -> None:
    """The jerk is orthogonal to that of bumps, which vanish at the points and at the ends."""
    points = RNG.normal(size=(5, 1))
    move = trajectory.spline(TIMES, points, degree=5, ends="clamped")
    t = np.linspace(0.0, 2.4, 20001)
    bump = np.prod([(t - x) for x in TIMES], axis=0) * (t * (t - 2.4)) ** 3
    third = np.gradient(np.gradient(np.gradient(bump, t), t), t)
    jerk = move(t, 3)[3][:, 0]
    assert abs(np.trapezoid(jerk * third, t)) < 1e-3 * np.trapezoid(jerk**2, t)
    assert all(np.abs(move(end, 3)[k]).max() < 1e-9 for end in (0.0, 2.4) for k in (1, 2))


def test_trajectories_rest_outside_of_their_time() -> None:
    move = trajectory.cubic([0.0], [1.0], 1.0, qd1=[2.0])
    assert [x.tolist() for x in move(-1.0)] == [[0.0], [0.0], [0.0]]
    assert [x.tolist() for x in move(3.0)] == [[1.0], [0.0], [0.0]]


# Configuration spaces ----------------------------------------------------------------------------


def test_polynomials_of_quaternions_have_the_given_ends() -> None:
    robot = chasles.robots.quadruped()
    q0, q1 = robot.random(RNG, size=2)
    v = RNG.normal(size=(6, robot.nv))
    names = ("qd0", "qd1", "qdd0", "qdd1", "qddd0", "qddd1")
    move = trajectory.septic(q0, q1, 2.0, robot=robot, **dict(zip(names, v, strict=True)))
    assert np.abs(robot.difference(move.end, q1)).max() < 1e-9
    for t, rates in ((0.0, v[::2]), (2.0, v[1::2])):
        for got, wanted in zip(move(t, 3)[1:], rates, strict=True):
            assert np.abs(got - wanted).max() < 1e-9
    assert max(slopes(move, np.linspace(0.1, 1.9, 7))) < 1e-7


def test_moves_at_rest_turn_about_one_axis() -> None:
    robot = chasles.robots.quadruped()
    q0, q1 = robot.random(RNG, size=2)
    step = robot.difference(q0, q1)
    move = trajectory.minimum_jerk(q0, q1, 1.0, robot=robot)
    s, rate = 0.4**3 * (10 - 15 * 0.4 + 6 * 0.16), 30 * 0.16 * 0.36
    q, qd, _ = move(0.4)
    assert np.abs(robot.difference(q, robot.integrate(q0, s * step))).max() < 1e-12
    assert np.allclose(qd, rate * step, atol=1e-11)


@pytest.mark.parametrize("ends", ["natural", "clamped", "periodic"])
def test_splines_of_robots_with_quaternions(ends: Any) -> None:
    robot = chasles.robots.quadruped()
    points = robot.integrate(robot.neutral(), 0.6 * RNG.normal(size=(5, robot.nv)))
    if ends == "periodic":
        points[-1] = points[0]
    move = trajectory.spline(TIMES, points, ends=ends, robot=robot)
    _check_spline(move, points, ends, robot.difference)


@pytest.mark.parametrize("ends", ["natural", "clamped", "periodic"])
@pytest.mark.parametrize("size", [3, 4])
def test_splines_of_rotations_and_poses(ends: Any, size: int) -> None:
    space = rotations() if size == 3 else poses()
    points = space.integrate(np.tile(np.eye(size), (5, 1, 1)), RNG.normal(size=(5, space.size)))
    if ends == "periodic":
        points[-1] = points[0]
    move = trajectory.spline(TIMES, points, ends=ends)
    _check_spline(move, points, ends, space.difference)


@pytest.mark.parametrize("ends", ["natural", "clamped", "periodic"])
@pytest.mark.parametrize("degree", [3, 5, 7])
def test_splines_of_vectors(ends: Any, degree: int) -> None:
    times = np.append(TIMES, [3.0, 3.3, 4.0, 4.4])
    points = RNG.normal(size=(9, 3))
    if ends == "periodic":
        points[-1] = points[0]
    move = trajectory.spline(times, points, ends=ends, degree=degree)
    kind = ends if degree == 3 or ends != "natural" else ""
    _check_spline(move, points, kind, lambda a, b: b - a, times)


def _check_spline(
    move: Move, points: np.ndarray, ends: str, difference: Any, times: np.ndarray = TIMES
) -> None:
    """Check points, rates, continuity of accelerations, and end conditions of a spline."""
    assert np.abs(difference(move(times, 0)[0][:-1], points[:-1])).max() < 1e-9
    between = 0.5 * (times[1:] + times[:-1])
    assert max(slopes(move, between, difference)) < 1e-6
    near = 1e-8
    for before, after in zip(
        move(times[1:-1] - near)[1:], move(times[1:-1] + near)[1:], strict=True
    ):
        assert np.abs(after - before).max() < 1e-6 * max(np.abs(after).max(), 1.0) * 10.0
    if ends == "natural":
        assert max(np.abs(move(t)[2]).max() for t in (0.0, times[-1])) < 1e-8
    if ends == "clamped":
        assert max(np.abs(move(t)[1]).max() for t in (0.0, times[-1])) < 1e-9
    if ends == "periodic":
        whole = move(0.3, 3)
        for a, b in zip(whole, move(0.3 + 2.0 * times[-1], 3), strict=True):
            assert np.allclose(a, b, atol=1e-9)


def test_loops_stay_closed_between_two_postures() -> None:
    robot = chasles.robots.five_bar()
    q0 = robot.assemble([1.2, 1.0])
    q1 = robot.assemble([1.0, 1.3], guess=q0)
    move = trajectory.minimum_jerk(q0, q1, 1.0, robot=robot)
    t = np.linspace(0.05, 0.95, 9)
    assert np.abs(robot.loop_residual(move(t, 0)[0])).max() < 1e-10
    assert np.abs(move.end - q1).max() < 1e-9
    assert max(slopes(move, t)) < 1e-5  # the jerk is itself a finite difference
    with pytest.raises(ChaslesError, match="point 1"):
        trajectory.minimum_jerk(q0, q1 + 0.1, 1.0, robot=robot)


# Lines -------------------------------------------------------------------------------------------

START = np.array([0.3, 0.5, -1.0, 0.2, 0.9, -0.4])


def test_a_line_is_straight_and_rests_at_its_ends() -> None:
    robot = chasles.robots.puma560()
    T = robot.forward_kinematics(START, frame="tool")
    goal = T[:3, 3] + [-0.2, 0.1, -0.15]
    move = trajectory.line(robot, "tool", goal, start=START, duration=2.0)
    along = robot.forward_kinematics(move(np.linspace(0.0, 2.0, 501), 0)[0], frame="tool")
    x, d = along[:, :3, 3] - T[:3, 3], goal - T[:3, 3]
    assert np.abs(np.cross(x, d / np.linalg.norm(d))).max() < 2e-6
    assert np.abs(along[:, :3, :3] - T[:3, :3]).max() < 2e-6
    assert np.abs(along[-1, :3, 3] - goal).max() < 1e-9
    assert all(np.abs(move(t)[1]).max() < 1e-12 for t in (0.0, 2.0))
    assert max(slopes(move, np.linspace(0.1, 1.9, 9))) < 1e-5


def test_blends_cut_corners_and_stops_do_not() -> None:
    robot = chasles.robots.puma560()
    p = robot.forward_kinematics(START, frame="tool")[:3, 3]
    corner, end = p - [0.1, 0.0, 0.0], p - [0.1, -0.1, 0.0]
    blended = trajectory.line(robot, "tool", [corner, end], start=START, blend=0.03)
    stopping = trajectory.line(robot, "tool", [corner, end], start=START, duration=2.0)
    middle = 0.03 * np.sqrt(2.0) * 5.0 / 32.0  # the integral of a quintic step to its middle
    for move, nearest in ((blended, middle), (stopping, 0.0)):
        t = np.linspace(0.0, move.duration, 2001)
        at = robot.forward_kinematics(move(t, 0)[0], frame="tool")[:, :3, 3]
        far = np.linalg.norm(at - corner, axis=-1).min()
        assert abs(far - nearest) < 2e-6
        assert np.abs(at[-1] - end).max() < 1e-9
    assert np.abs(stopping(1.0)[1]).max() < 1e-9
    _, _, qdd = blended(np.linspace(0.0, blended.duration, 4001))
    assert np.abs(np.diff(qdd, axis=0)).max() < 0.05 * np.abs(qdd).max()


def test_an_arc_keeps_its_distance_from_the_center() -> None:
    robot = chasles.robots.puma560()
    p = robot.forward_kinematics(START, frame="tool")[:3, 3]
    goal = robot.forward_kinematics(START, frame="tool")
    goal[:3, 3] = p - [0.0, -0.1, 0.0]
    move = trajectory.arc(robot, "tool", p - [0.05, -0.05, 0.0], goal, start=START, duration=2.0)
    at = robot.forward_kinematics(move(np.linspace(0.0, 2.0, 101), 0)[0], frame="tool")[:, :3, 3]
    assert np.abs(np.linalg.norm(at - p - [0.0, 0.05, 0.0], axis=-1) - 0.05).max() < 2e-6
    assert np.abs(at[50] - p - [-0.05, 0.05, 0.0]).max() < 2e-6


def on_a_path(blend: float = 0.0, **options: Any) -> tuple[Move, np.ndarray, np.ndarray]:
    """Return a motion on a path of the tool, its initial pose, and the pose at the end of the arc.

    The path is a line along -x, a tangential half circle, and a line along +y. Its last corner is a
    right angle. The pose at the end of the arc is turned about the tool's z axis.
    """
    robot = chasles.robots.puma560()
    T = robot.forward_kinematics(START, frame="tool")
    turned = T.copy()
    turned[:3, :3] = T[:3, :3] @ np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
    ends = np.array([T, turned, turned])
    ends[:, :3, 3] += [[-0.1, 0.0, 0.0], [-0.1, 0.1, 0.0], [-0.1, 0.15, 0.0]]
    via = [None, T[:3, 3] + [-0.15, 0.05, 0.0], None]
    move = trajectory.path(robot, "tool", ends, via, start=START, blend=blend, **options)
    return move, T, turned


def test_paths_of_lines_and_arcs_with_blends() -> None:
    width = 0.02
    path, T, turned = on_a_path(width)
    robot, p = chasles.robots.puma560(), T[:3, 3]
    half_turn = 0.05 * np.pi
    assert abs(path.duration - (0.15 + half_turn)) < 1e-12
    s = np.linspace(0.0, path.duration, 4001)
    q, _, qdd = path(s)
    at = robot.forward_kinematics(q, frame="tool")
    x = at[:, :3, 3] - p
    on_arc = (s > 0.1 + width) & (s < 0.1 + half_turn - width)
    first, last = s < 0.1 - width, s > 0.1 + half_turn + width
    assert np.abs(np.linalg.norm(x[on_arc] - [-0.1, 0.05, 0.0], axis=-1) - 0.05).max() < 2e-6
    assert np.abs(x[first] - np.outer(s[first], [-1.0, 0.0, 0.0])).max() < 2e-6
    beyond = np.outer(s[last] - 0.1 - half_turn, [0.0, 1.0, 0.0])
    assert np.abs(x[last] - [-0.1, 0.1, 0.0] - beyond).max() < 2e-6
    # at both corners, each segment contributes 5/32 of the blend
    rest = width * 5.0 / 32.0
    swept = 0.05 * np.array([-np.sin(rest / 0.05), 1.0 - np.cos(rest / 0.05), 0.0])
    for corner, wanted in (
        (0.1, np.add(swept, [-0.1 + rest, 0.0, 0.0])),
        (0.1 + half_turn, swept * [1.0, -1.0, 0.0] + np.array([-0.1, 0.1 + rest, 0.0])),
    ):
        here = robot.forward_kinematics(path(corner)[0], frame="tool")[:3, 3] - p
        assert np.abs(here - wanted).max() < 2e-6
    # the rotation about z by arccos(0.8) takes place along the arc
    angle = np.arctan2(*np.einsum("ij,nik->njk", T[:3, :3], at[:, :3, :3])[:, 1::-1, 0].T)
    share = (s[on_arc] - 0.1) / half_turn
    assert np.abs(angle[on_arc] - np.arccos(0.8) * share).max() < 2e-6
    assert np.abs(at[-1, :3, :3] - turned[:3, :3]).max() < 1e-9
    assert np.abs(at[-1, :3, 3] - p - [-0.1, 0.15, 0.0]).max() < 1e-9
    # the speed is at most 1, and the accelerations do not jump
    speed = np.linalg.norm(np.diff(x, axis=0), axis=-1) / np.diff(s)
    assert speed.max() < 1.0 + 1e-4
    assert np.abs(np.diff(qdd, axis=0)).max() < 0.05 * np.abs(qdd).max()
    assert max(slopes(path, np.linspace(0.03, path.duration - 0.02, 17))) < 1e-4


def test_paths_stop_at_corners_without_a_blend() -> None:
    move, T, _ = on_a_path(duration=2.0)
    corner = 2.0 * 0.1 / (0.15 + 0.05 * np.pi)
    q, qd, _ = move(corner)
    assert np.abs(qd).max() < 1e-9
    at = chasles.robots.puma560().forward_kinematics(q, frame="tool")
    assert np.abs(at[:3, 3] - T[:3, 3] - [-0.1, 0.0, 0.0]).max() < 1e-9


def test_paths_with_arcs_within_limits() -> None:
    robot, (path, _, _) = chasles.robots.puma560(), on_a_path(0.02)
    limits: Any = {"velocity": 2.0, "acceleration": 20.0}
    move = trajectory.time_optimal(robot, path, **limits)
    q, qd, qdd = move(np.linspace(0.0, move.duration, 20001))
    tau = robot.inverse_dynamics(q, qd, qdd)
    share = [np.abs(qd) / 2.0, np.abs(qdd) / 20.0, np.abs(tau) / robot.limits.effort]
    assert [each.max() < 1.0 + 1e-6 for each in share] == [True] * 3
    assert max(each.max() for each in share) > 0.999
    assert np.abs(move.end - path.end).max() < 1e-9


def test_arcs_with_blends_meet_lines_of_the_same_points() -> None:
    """Two arcs with large radii are close to two lines, including their blend."""
    robot = chasles.robots.puma560()
    p = robot.forward_kinematics(START, frame="tool")[:3, 3]
    ends = np.array([p - [0.1, 0.0, 0.0], p - [0.1, -0.1, 0.0]])
    lines = trajectory.line(robot, "tool", ends, start=START, blend=0.03)
    middles = 0.5 * np.array([p + ends[0], ends[0] + ends[1]]) + [0.0, 0.0, 1e-5]
    arcs = trajectory.arc(robot, "tool", middles, ends, start=START, blend=0.03)
    s = np.linspace(0.0, 0.2, 101)
    at = [robot.forward_kinematics(each(s)[0], frame="tool")[:, :3, 3] for each in (lines, arcs)]
    assert 5e-6 < np.abs(at[0] - at[1]).max() < 1.3e-5
    assert np.abs((at[1] - at[0])[:, :2]).max() < 2e-6


FLOATING = ["quadruped", "humanoid"]


@pytest.mark.parametrize("name", FLOATING)
def test_lines_of_robots_with_quaternions(name: str) -> None:
    robot = getattr(chasles.robots, name)()
    q, frame = robot.neutral(within=True), robot.frames[-1]
    T = robot.forward_kinematics(q, frame=frame)
    goal = T.copy()
    goal[:3, :3] = T[:3, :3] @ np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
    goal[:3, 3] += [0.1, 0.05, -0.02]
    move = trajectory.line(robot, frame, goal, start=q, duration=1.0)
    at = robot.forward_kinematics(move(np.linspace(0.0, 1.0, 41))[0], frame=frame)
    share = (at[:, :3, 3] - T[:3, 3]) @ [0.1, 0.05, -0.02] / 0.0129
    assert np.abs(at[:, :3, 3] - T[:3, 3] - np.outer(share, [0.1, 0.05, -0.02])).max() < 2e-6
    assert np.abs(at[-1] - goal).max() < 1e-9
    angle = np.arctan2(*np.einsum("ij,nik->njk", T[:3, :3], at[:, :3, :3])[:, 1::-1, 0].T)
    assert np.abs(angle - np.arccos(0.8) * share).max() < 2e-6
    assert max(slopes(move, np.linspace(0.1, 0.9, 9))) < 1e-5


CLOSED = {"delta": "platform", "stewart": "platform", "five_bar": "tip"}
"""Frames of closed-loop mechanisms that follow lines."""


def closed_mechanism(name: str) -> tuple[chasles.Robot, np.ndarray]:
    """Return a mechanism with loops and one of its configurations."""
    robot = getattr(chasles.robots, name)()
    if name != "five_bar":
        return robot, robot.inverse_kinematics(
            {"platform": robot.forward_kinematics(robot.neutral(), frame="platform")}
        ).q
    tip = Transform(Rotation(), Vector((0.8, 0.0, 0.0)))
    source = robot.model.source
    framed = replace(source, frames=(*source.frames, FrameData("tip", "left_coupler", tip)))
    return chasles.Robot(framed), robot.assemble([1.9, 1.2])


@pytest.mark.parametrize("name", CLOSED)
def test_lines_and_arcs_of_closed_mechanisms(name: str) -> None:
    (robot, q), frame = closed_mechanism(name), CLOSED[name]
    free: Any = {"orientation": "free"} if name == "five_bar" else {}
    T = robot.forward_kinematics(q, frame=frame)
    way = np.array([0.04, 0.02, 0.0 if name == "five_bar" else 0.03])
    given = {"start": q, "duration": 1.0} | free
    move = trajectory.line(robot, frame, T[:3, 3] + way, **given)
    t = np.linspace(0.0, 1.0, 41)
    at = robot.forward_kinematics(move(t)[0], frame=frame)
    share = (at[:, :3, 3] - T[:3, 3]) @ way / (way @ way)
    assert np.abs(at[:, :3, 3] - T[:3, 3] - share[:, None] * way).max() < 1e-6
    assert abs(share[-1] - 1.0) < 1e-6
    if not free:
        assert np.abs(at[:, :3, :3] - T[:3, :3]).max() < 1e-6
    center = T[:3, 3] + np.array([0.02, 0.0, 0.0])
    via, goal = center + np.array([[0.0, 0.02, 0.0], [0.02, 0.0, 0.0]])
    round_ = trajectory.arc(robot, frame, via, goal, **given)
    at = robot.forward_kinematics(round_(t)[0], frame=frame)[:, :3, 3]
    assert np.abs(np.linalg.norm(at - center, axis=-1) - 0.02).max() < 1e-6
    for each in (move, round_):
        assert np.abs(robot.loop_residual(each(t)[0])).max() < 1e-10
        h = 1e-6
        slope = robot.difference(each(0.4 - h)[0], each(0.4 + h)[0]) / (2.0 * h)
        assert np.abs(slope - each(0.4)[1]).max() < 1e-6


def test_a_line_out_of_reach_of_a_closed_mechanism() -> None:
    robot = chasles.robots.five_bar()
    q0 = robot.assemble([1.2, 1.0])
    frame = robot.frames[-1]
    T = robot.forward_kinematics(q0, frame=frame)
    with pytest.raises(ChaslesError, match="no configuration places") as error:
        trajectory.line(robot, frame, T[:3, 3] + [9.0, 0.0, 0.0], start=q0, duration=1.0)
    assert error.value.code == "E-PATH-044"


# Files and pictures ------------------------------------------------------------------------------


def test_motion_files_hold_trajectories(tmp_path: Path) -> None:
    robot = chasles.robots.quadruped()
    q0, q1 = robot.random(RNG, size=2)
    move = trajectory.minimum_jerk(q0, q1, 1.0, robot=robot)
    move.save(tmp_path / "move.csv", step=0.02)
    again = trajectory.load(tmp_path / "move.csv", robot)
    t = np.linspace(0.0, 1.0, 23)
    assert np.abs(robot.difference(again(t, 0)[0], move(t, 0)[0])).max() < 1e-7
    assert np.abs(again(t)[1] - move(t)[1]).max() < 1e-5
    with pytest.raises(ChaslesError, match=r"exists|there already"):
        move.save(tmp_path / "move.csv")


def test_trajectories_plot_themselves() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    axes = trajectory.trapezoid([0.0], [2.0], velocity=1.0, acceleration=2.0).plot()
    velocity = axes[1].get_lines()[0].get_ydata()
    assert abs(velocity.max() - 1.0) < 1e-12
    assert axes[2].get_title() == "acceleration (rad/s², m/s²)"
    pyplot.close("all")


def test_controllers_follow_trajectories() -> None:
    robot, q1 = chasles.robots.planar(2), np.array([0.5, -0.7])
    move = trajectory.minimum_jerk(np.zeros(2), q1, 0.5)
    options: dict[str, Any] = {"duration": 0.5, "dt": 0.004}
    run = robot.simulate(
        [0.0, 0.0], [0.0, 0.0], control=ComputedTorque(400.0, 40.0, move), **options
    )
    assert np.abs(run.q - move(run.t, 0)[0]).max() < 1e-6
    assert run.compiled

    def law(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        place, rate, _ = move(t)
        return 400.0 * (place - q) + 40.0 * (rate - qd)

    run = robot.simulate([0.0, 0.0], [0.0, 0.0], control=PDControl(400.0, 40.0, move), **options)
    wanted = robot.simulate([0.0, 0.0], [0.0, 0.0], control=law, compiled=False, **options)
    assert np.allclose(run.q, wanted.q, atol=1e-12)


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("E-PATH-001", lambda: trajectory.cubic([0.0], [1.0], 1.0)(0.5, 4)),
        ("E-PATH-002", lambda: trajectory.cubic([0.0], [1.0], 1.0)(np.nan)),
        ("E-PATH-004", lambda: trajectory.cubic([0.0], [1.0, 2.0], 1.0)),
        ("E-PATH-005", lambda: trajectory.cubic([0.0], [np.nan], 1.0)),
        ("E-PATH-006", lambda: trajectory.cubic([0.0], [1.0], 0.0)),
        ("E-PATH-007", lambda: trajectory.spline([0.0, 1.0], [[0.0]] * 3)),
        ("E-PATH-009", lambda: trajectory.spline([0.0, 1.0, 1.0], [[0.0]] * 3)),
        ("E-PATH-010", lambda: trajectory.spline([1.0, 2.0], [[0.0]] * 2)),
        (
            "E-PATH-055",
            lambda: trajectory.line(
                chasles.robots.puma560(), "tool", [0.4, 0, 0], start=START, orientation="no"
            ),
        ),
        (
            "E-PATH-061",
            lambda: trajectory.path(
                *(chasles.robots.puma560(), "tool", np.ones((2, 3)), [None]), start=START
            ),
        ),
        ("E-PATH-018", lambda: trajectory.spline([0.0, 1.0], [[0.0]] * 2, ends="soft")),
        ("E-PATH-020", lambda: trajectory.spline([0.0, 1.0], [[0.0], [1.0]], ends="periodic")),
        ("E-PATH-022", lambda: trajectory.spline([0.0, 1.0], np.ones((2, 3, 3)))),
        ("E-CALL-055", lambda: trajectory.cubic([0.0], [1.0], 1.0, robot="arm.urdf")),
        ("E-CALL-055", lambda: trajectory.fourier([0.0], [[1.0]], [[1.0]], duration=1.0, robot=1)),
        ("E-PATH-048", lambda: trajectory.join(*[trajectory.cubic([0.0], [1.0], 1.0)] * 2)),
    ],
)
def test_bad_input_is_named(code: str, wrong: Callable[[], Any]) -> None:
    with pytest.raises(ChaslesError) as error:
        wrong()
    assert error.value.code == code


def test_joined_trajectories_go_on() -> None:
    there = trajectory.cubic([0.0], [1.0], 1.0)
    back = trajectory.quintic([1.0], [0.5], 2.0)
    move = trajectory.join(there, back)
    assert move.duration == 3.0
    assert np.array_equal(move([0.5, 2.0], 3)[3], [there(0.5, 3)[3], back(1.0, 3)[3]])


def test_a_start_outside_the_limits_is_the_remedy() -> None:
    robot = chasles.robots.puma560()
    with raises("E-PATH-045 start within the joint limits: start[2] is 9, but its limits are -3"):
        chasles.trajectory.line(robot, "tool", [0.4, 0.1, 0.2], start=np.full(6, 9.0))


def test_only_trajectories_are_joined() -> None:
    move = chasles.trajectory.minimum_jerk([0.0], [1.0], duration=1.0)
    with raises("E-PATH-064 argument 1 must be a trajectory, not int"):
        chasles.trajectory.join(move, 3)  # type: ignore[arg-type]
    with raises("E-PATH-064 argument 0 must be a trajectory, not list"):
        chasles.trajectory.join([move, move])  # type: ignore[arg-type]


def test_saving_a_move_without_a_robot_names_both_remedies(tmp_path: Path) -> None:
    move = trajectory.minimum_jerk([0.0, 0.0], [1.0, 0.5], 2.0)
    told = r"minimum_jerk\(q0, q1, T, robot=robot\).*move\.save\(path, robot\)"
    with pytest.raises(chasles.ChaslesError, match=told):
        move.save(tmp_path / "move.csv")
