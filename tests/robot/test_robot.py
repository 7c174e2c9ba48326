"""The class Robot: names, configurations, ways to call functions, cost and loading options."""

import gc
import inspect
import pickle
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import TARGETS, close, raises, state, tree, ways

import chasles
from chasles.functions import programs
from chasles.model.description import Limits
from chasles.motion.drivers.compiled import prepared
from chasles.robots import planar, puma560, random_tree
from chasles.rollouts import PDControl

ROBOT = puma560()

URDF = """<robot name="crossed">
  <link name="base"/>
  <link name="hand"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="arm"><inertial><mass value="2"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="wrist" type="revolute"><parent link="arm"/><child link="hand"/>
    <origin xyz="1 0 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="2" effort="3" velocity="5"/>
    <dynamics damping="0.5" friction="0.25"/></joint>
  <joint name="shoulder" type="prismatic"><parent link="base"/><child link="arm"/>
    <axis xyz="0 1 0"/><limit lower="0.1" upper="0.2" effort="1" velocity="1"/></joint>
</robot>"""


@pytest.fixture
def crossed(tmp_path: Path) -> chasles.Robot:
    """Return a robot from a file that lists a child before its parent."""
    path = tmp_path / "crossed.urdf"
    path.write_text(URDF)
    return chasles.load(path)


# Description -----------------------------------------------------------------------------------


def test_names_are_in_file_order(crossed: chasles.Robot) -> None:
    assert crossed.name == "crossed"
    assert crossed.bodies == ("base", "hand", "arm")
    assert crossed.joints == ("wrist", "shoulder")
    assert set(crossed.frames) == {"base", "hand", "arm"}
    assert (crossed.nq, crossed.nv) == (2, 2)
    assert np.array_equal(crossed.gravity, [0.0, 0.0, -9.81])
    assert repr(crossed) == "<Robot 'crossed': 2 joints, nq 2, nv 2>"


def test_coordinates_are_in_file_order(crossed: chasles.Robot) -> None:
    """q is (wrist, shoulder); the hand is at the shoulder's height for all angles of the wrist."""
    pose = crossed.forward_kinematics([0.3, 0.15], frame="hand")
    np.testing.assert_allclose(pose[:3, 3], [1.0, 0.15, 0.0], atol=1e-15)
    np.testing.assert_allclose(pose[0, 0], np.cos(0.3))
    np.testing.assert_allclose(crossed.mass_matrix([0.3, 0.15]), [[1.0, 0.0], [0.0, 3.0]])


def test_what_the_file_says_of_a_joint(crossed: chasles.Robot) -> None:
    wrist = crossed.joint("wrist")
    assert (wrist.limits.lower, wrist.limits.upper) == (-1.0, 2.0)
    assert (wrist.damping, wrist.friction) == (0.5, 0.25)
    assert crossed.joint("shoulder").kind == "prismatic"


def test_limits_as_arrays(crossed: chasles.Robot) -> None:
    """Limits are in coordinate order, and infinite for a free joint."""
    limits = crossed.limits
    assert np.array_equal([limits.lower, limits.upper], [[-1.0, 0.1], [2.0, 0.2]])
    assert np.array_equal([limits.velocity, limits.effort], [[5.0, 1.0], [3.0, 1.0]])
    free = tree(3, 4, floating=True)
    base = free.position_slice("joint1")
    assert np.all(free.limits.lower[base] == -np.inf)
    assert np.all(free.limits.upper[base] == np.inf)
    assert np.all(free.limits.effort[free.velocity_slice("joint1")] == np.inf)


def test_slices_cover_the_coordinates() -> None:
    for robot in (ROBOT, tree(9, 3, floating=False), tree(9, 4, floating=True)):
        for slices, size in ((robot.position_slice, robot.nq), (robot.velocity_slice, robot.nv)):
            covered = [k for name in robot.joints for k in range(size)[slices(name)]]
            assert covered == list(range(size))


# Configurations --------------------------------------------------------------------------------


def test_neutral_is_where_the_joints_frames_coincide() -> None:
    robot = tree(9, 4, floating=True)
    q = robot.neutral()
    assert np.array_equal(robot.integrate(q, np.zeros(robot.nv)), q)
    where = robot.position_slice("joint1")
    assert np.array_equal(q[where], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])


def test_random_configurations_keep_limits(crossed: chasles.Robot) -> None:
    q = crossed.random(1, size=1000)
    low, high = [-1.0, 0.1], [2.0, 0.2]
    assert q.shape == (1000, 2)
    assert np.all((q >= low) & (q <= high))
    np.testing.assert_allclose(np.mean(q, axis=0), [0.5, 0.15], atol=0.1)


def test_random_configurations_are_reproducible() -> None:
    robot = tree(9, 4, floating=True)
    assert np.array_equal(robot.random(5, size=(2, 3)), robot.random(5, size=(2, 3)))
    assert robot.random(5, size=(2, 3)).shape == (2, 3, robot.nq)
    assert robot.random(np.random.default_rng(1)).shape == (robot.nq,)
    q = robot.random(5, size=400)[:, robot.position_slice("joint1")]
    np.testing.assert_allclose(np.linalg.norm(q[:, :4], axis=1), 1.0)
    assert np.all(np.abs(np.mean(q[:, :4], axis=0)) < 0.1)  # no direction is preferred


# Ways to call a function -----------------------------------------------------------------------


def test_all_roads_give_the_same_numbers() -> None:
    q, qd, qdd = state(ROBOT, 1)
    robot = puma560()
    expected = robot.inverse_dynamics(q, qd, qdd)
    assert np.array_equal(robot.inverse_dynamics(q=q, qd=qd, qdd=qdd), expected)
    assert np.array_equal(robot.inverse_dynamics(q, qd, qdd=qdd), expected)
    assert np.array_equal(robot.inverse_dynamics(list(q), tuple(qd), qdd), expected)
    assert np.array_equal(robot.inverse_dynamics(q[None], qd, qdd)[0], expected)
    assert np.array_equal(robot.inverse_dynamics(q, qd, qdd, out=None), expected)
    assert np.array_equal(robot.inverse_dynamics(q, qd, qdd, f_ext={}), expected)
    assert np.array_equal(chasles.compile(robot, "inverse_dynamics")(q, qd, qdd), expected)
    out = np.empty(6)
    assert robot.inverse_dynamics(q, qd, qdd, out=out) is out
    assert np.array_equal(out, expected)


def test_a_method_keeps_its_name_and_signature() -> None:
    """Name, signature and docstring are kept when a method becomes a fast entry."""
    robot = puma560()
    before = list(inspect.signature(robot.mass_matrix).parameters)
    robot.mass_matrix(np.zeros(6))
    assert list(inspect.signature(robot.mass_matrix).parameters) == before
    assert robot.mass_matrix.__name__ == "mass_matrix"
    assert "joint-space inertia" in (robot.mass_matrix.__doc__ or "")


def test_what_is_compiled_is_kept() -> None:
    robot = puma560()
    first = robot.function("jacobian", frame="tool")
    assert robot.function("jacobian", frame="tool") is first
    assert robot.function("jacobian", frame="tool", at="frame") is first
    assert robot.function("jacobian", frame="tool", at=(0, 0, 1)) is not first


def test_a_robot_can_be_forgotten() -> None:
    """Machine code and method do not keep each other alive."""
    robot = puma560()
    robot.inverse_dynamics(np.zeros(6), np.zeros(6), np.zeros(6))
    ghost = weakref.ref(robot)
    del robot
    gc.collect()
    assert ghost() is None


def test_one_robot_keeps_a_bounded_number_of_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of the oldest functions is freed, and compiled again when it is needed."""
    monkeypatch.setattr(programs, "MOST_KEPT", 4)
    robot, q, ghosts = planar(1), np.array([0.3]), []
    for k in range(9):
        at = (0.1 * k, 0.0, 0.0)
        J = robot.jacobian(q, frame="tip", at=at)
        ghosts.append(weakref.ref(robot.function("jacobian", frame="tip", at=at)))
        np.testing.assert_allclose(np.linalg.norm(J[3:]), 1.0 + 0.1 * k)
        control = PDControl(1.0 + k, 0.1, [0.0])
        robot.rollout(q, 0.0 * q, dt=0.01, steps=2, control=control)
        ghosts.append(weakref.ref(prepared(robot, "semi-implicit", control, False)))
    gc.collect()
    assert sum(ghost() is not None for ghost in ghosts) <= 8
    J = robot.jacobian(q, frame="tip", at=(0.0, 0.0, 0.0))
    np.testing.assert_allclose(np.linalg.norm(J[3:]), 1.0)


def test_results_outlive_the_robot() -> None:
    method = puma560().mass_matrix
    M = method(np.zeros(6))
    del method
    gc.collect()
    np.testing.assert_allclose(M, ROBOT.mass_matrix(np.zeros(6)))
    compiled = chasles.compile(puma560(), "mass_matrix")
    gc.collect()
    assert np.array_equal(compiled(np.zeros(6)), M)


def test_references_are_counted() -> None:
    """Many calls, including failed ones, neither leak references nor free objects in use."""
    robot = puma560()
    q, out = np.zeros(6), np.empty((6, 6))
    robot.mass_matrix(q)
    before = [sys.getrefcount(x) for x in (q, out, robot)]
    for _ in range(1000):
        robot.mass_matrix(q, out=out)
        robot.mass_matrix(q)
        with raises("E-CALL-009"):
            robot.mass_matrix(q[:5])
    assert [sys.getrefcount(x) for x in (q, out, robot)] == before


@pytest.mark.parametrize("target", TARGETS)
def test_compile_takes_wrenches_in_alphabetical_order(target: str) -> None:
    q, qd, qdd = state(ROBOT, 2)
    links = sorted(ROBOT.bodies)[-2:]
    F = {name: np.random.default_rng(3).normal(size=6) * k for k, name in enumerate(links, 1)}
    expected = ROBOT.inverse_dynamics(q, qd, qdd, f_ext=F)
    shuffled = {name: chasles.Wrench(None) for name in reversed(links)}
    compiled = chasles.compile(ROBOT, "inverse_dynamics", backend=target, f_ext=shuffled)
    found = compiled(q, qd, qdd, *(F[name] for name in links))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * np.max(np.abs(expected)))


def test_a_batch_of_wrenches() -> None:
    q, qd, qdd = state(ROBOT, 4, 5)
    F = np.random.default_rng(5).normal(size=(5, 6))
    many = ROBOT.inverse_dynamics(q, qd, qdd, f_ext={"tool": F})
    for k in range(5):
        one = ROBOT.inverse_dynamics(q[k], qd[k], qdd[k], f_ext={"tool": F[k]})
        assert np.array_equal(many[k], one)
    same = ROBOT.inverse_dynamics(q[0], qd[0], qdd[0], f_ext={"tool": F})
    assert same.shape == (5, 6)


def test_a_wrench_on_the_base_does_nothing() -> None:
    """A wrench on the base, which is fixed to the world, has no effect except for rounding.

    With an external force, no unit of length is chosen, so the program differs.
    """
    q, qd, qdd = state(ROBOT, 6)
    found = ROBOT.inverse_dynamics(q, qd, qdd, f_ext={"base": np.ones(6)})
    close(found, ROBOT.inverse_dynamics(q, qd, qdd), 1e-14)


# Cost ------------------------------------------------------------------------------------------


def test_cost_counts_the_program_that_runs() -> None:
    for function, options in (("inverse_dynamics", {}), ("jacobian", {"frame": "tool"})):
        count = chasles.cost(ROBOT, function, **options)
        program = chasles.compile(ROBOT, function, **options).program
        assert vars(program.count).items() <= vars(count).items()
        assert (count.depth, count.live) == (program.depth, program.live)
        assert count.flops > 0


def test_the_fastest_method_has_the_fewest_operations() -> None:
    for robot in (ROBOT, tree(7, 2, floating=True)):
        for function in ("inverse_dynamics", "forward_dynamics"):
            best = chasles.cost(robot, function).weight
            for way in ways(robot, function):
                assert best <= chasles.cost(robot, function, method=way).weight


def test_dissipation_costs_something() -> None:
    plain = chasles.cost(ROBOT, "inverse_dynamics")
    assert chasles.cost(ROBOT, "inverse_dynamics", dissipation=True).weight > plain.weight


# Loading options -------------------------------------------------------------------------------


def test_mimic_joints_have_no_coordinates_unless_asked() -> None:
    coupled = random_tree(12, 1, floating=False, mimics=True)
    loose = chasles.Robot(coupled.model.source, mimic=False)
    assert len(coupled.joints) < len(loose.joints)
    assert loose.joints == coupled.moving_joints == loose.moving_joints


def test_strict_refuses_what_others_note(tmp_path: Path) -> None:
    path = tmp_path / "odd.urdf"
    path.write_text(URDF.replace('ixx="1"', 'ixx="3"', 1))
    robot = chasles.load(path)
    assert any("link 'hand'" in note and "triangle" in note for note in robot.notes)
    with raises("E-MODEL-040", "'hand'"):
        chasles.load(path, strict=True)


def test_floating_puts_the_root_on_a_free_joint(tmp_path: Path) -> None:
    path = tmp_path / "crossed.urdf"
    inertial = URDF[URDF.index("<inertial>") : URDF.index("</link>")]
    path.write_text(URDF.replace('<link name="base"/>', f'<link name="base">{inertial}</link>'))
    robot = chasles.load(path, floating=True)
    assert (robot.nq, robot.nv) == (9, 8)
    assert robot.joint(robot.joints[0]).kind == "free"
    q = robot.neutral()
    q[4:7] = [1.0, 2.0, 3.0]
    np.testing.assert_allclose(robot.forward_kinematics(q, frame="base")[:3, 3], [1.0, 2.0, 3.0])


def test_state_by_joint_name() -> None:
    robot = chasles.robots.quadruped()
    name = robot.joints[-1]
    q = robot.state({name: 0.25})
    assert q[robot.position_slice(name)] == 0.25
    rest = np.delete(q, robot.position_slice(name).start)
    assert np.array_equal(rest, np.delete(robot.neutral(), robot.position_slice(name).start))
    many = robot.state({name: np.zeros(5), robot.joints[-2]: np.ones((3, 1))}, default=q)
    assert many.shape == (3, 5, robot.nq)
    assert np.all(many[..., robot.position_slice(robot.joints[-2])] == 1.0)
    with raises("E-MODEL-037", "'tail'"):
        robot.state({"tail": 0.0})
    with raises("E-ROBOT-010"):
        robot.state(q)  # type: ignore[arg-type]


def test_wrong_calls_are_told_of_the_robot() -> None:
    """Errors by Python itself name `Robot`, not the base class that defines a method."""
    for call in (ROBOT.frame_velocity, ROBOT.lock, ROBOT.assemble, ROBOT.derivatives):
        with pytest.raises(TypeError, match=rf"^Robot\.{call.__name__}\(\) is missing"):
            call()
    rooms = chasles.Robot.__mro__[1:-1]
    members = [member for room in rooms for member in vars(room).values()]
    functions = [member for member in members if inspect.isfunction(member)]
    assert len(functions) > 70
    assert all(f.__qualname__ == f"Robot.{f.__name__}" for f in functions)
    assert pickle.loads(pickle.dumps(chasles.Robot.lock)) is chasles.Robot.lock


def test_a_robot_at_a_time_is_made_like_any_other() -> None:
    """`at_time` creates an instance of the same class with the mechanism at that time only."""

    class Mine(chasles.Robot):
        def __init__(self) -> None:
            driven = ROBOT.drive({"joint1": lambda t: t * t})
            super().__init__(driven.model.source)
            self.remark = "of this robot alone"

    mine, q = Mine(), np.zeros(5)
    mine.integrate(q, q)
    at = mine.at_time(0.5)
    assert isinstance(at, Mine)
    assert set(vars(at)) == {"mechanism", "model", "mimic"}
    assert float(at.mechanism.t) == 0.5
    turned = at.forward_kinematics(q, frame="tool")
    close(turned, ROBOT.forward_kinematics([0.25, *q], frame="tool"), 1e-12)
    assert at.at(0.5) is not at
    assert ROBOT.at(0.5) is ROBOT


def test_neutral_positions_are_plain_zeros_and_within_limits_on_request() -> None:
    robot = chasles.robots.puma560()
    assert not np.any(np.signbit(robot.neutral()))
    assert not np.any(np.signbit(robot.with_gravity((-0.0, 0.0, 0.0)).gravity))
    joints = [replace(j, limits=Limits(0.2, 0.5)) for j in robot.model.source.joints]
    bounded = chasles.Robot(replace(robot.model.source, joints=tuple(joints)))
    np.testing.assert_array_equal(bounded.neutral(), np.zeros(6))
    np.testing.assert_array_equal(bounded.neutral(within=True), np.full(6, 0.2))
    linkage = chasles.robots.four_bar().model.source
    joints = [
        replace(j, limits=Limits(0.8, 1.2)) if j.name == "crank" else j for j in linkage.joints
    ]
    bar = chasles.Robot(replace(linkage, joints=tuple(joints)))
    q = bar.neutral(within=True)
    assert np.all(q >= bar.limits.lower)
    assert np.all(q <= bar.limits.upper)
    assert np.max(np.abs(bar.loop_residual(q))) < 1e-12


def test_joints_are_locked_by_name_where_they_are() -> None:
    robot, rng = chasles.robots.puma560(), np.random.default_rng(0)
    q = rng.normal(size=4)
    expected = robot.lock({"joint1": 0.0, "joint3": 0.0}).mass_matrix(q)
    np.testing.assert_array_equal(robot.lock(["joint1", "joint3"]).mass_matrix(q), expected)
    assert robot.lock("joint1").nq == 5
    for wrong, code in ((3, "E-CALL-111"), ([1], "E-CALL-110"), (None, "E-CALL-111")):
        with raises(f"{code} lock"):
            robot.lock(wrong)  # type: ignore[arg-type]


def test_a_robot_needs_a_description() -> None:
    with pytest.raises(TypeError, match=r"Robot\(\) is missing .* call Robot\(source, \.\.\.\)"):
        chasles.Robot()  # type: ignore[call-arg]
