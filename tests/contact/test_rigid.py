"""Rigid contact without friction: closed forms, loops, limits, states and sets."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from contact_bodies import GRAVITY, ball, block, body, free, turned
from support import raises

import chasles
from chasles import contact
from chasles.contact import Event, State
from chasles.model import Limits
from chasles.motion.contact.dynamics import constrained_problem, contact_problem
from chasles.motion.geometry.kinematics import Moves

TOP = contact.Plane()


def rest(robot: chasles.Robot, *position: float) -> tuple[np.ndarray, ...]:
    """Return the state of an upright free body at rest, and zero generalized forces."""
    return np.array([1.0, 0.0, 0.0, 0.0, *position]), np.zeros(robot.nv), np.zeros(robot.nv)


# One body --------------------------------------------------------------------------------------


def test_one_contact_of_a_body_by_inspection() -> None:
    """The force of one contact is lambda = max(0, -d/M) (Eq 11.10), which the LCP also gives."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        A = rng.normal(size=(6, 10))
        n = np.concatenate([np.cross(rng.normal(size=3), [0.0, 0.0, 1.0]), [0.0, 0.0, 1.0]])
        v, f, rate = rng.normal(size=(3, 6))
        problem = contact.body_problem(A @ A.T, v, f, n[:, None], rate[:, None])
        force, separation = contact.single_contact(problem.M[0, 0], problem.d[0])
        motion = contact.solve(problem)
        assert motion.forces[0] == pytest.approx(force, abs=1e-12)
        assert motion.separation[0] == pytest.approx(separation, abs=1e-12)
        free_a = np.linalg.solve(A @ A.T, problem.force)
        assert n @ free_a + rate @ v == pytest.approx(problem.d[0])


def test_a_body_alone_and_as_a_robot() -> None:
    """The spatial equation of one body and the robot's equation give the same M and d."""
    robot = block(3.0, (0.4, 0.2, 0.6))
    rng = np.random.default_rng(1)
    q, qd = np.array([*turned(0.4), 0.1, 0.2, 0.3]), rng.normal(size=6)
    at = contact.Point("body", (0.2, 0.1, -0.3))
    (point,) = contact.contact_points(robot, q, qd, at, TOP)
    problem = contact_problem(robot, q, qd, np.zeros(6), [point])
    pose = robot.forward_kinematics(q, frame="body")
    R, r = pose[:3, :3], np.array(at.at)
    n = R.T @ point.normal
    rate = -np.cross(qd[:3], n)
    inertia = robot.mass_matrix(q)
    weight = np.concatenate([np.zeros(3), R.T @ [0.0, 0.0, -3.0 * GRAVITY]])
    line = np.concatenate([np.cross(r, n), n])
    line_rate = np.concatenate([np.cross(r, rate), rate])
    alone = contact.body_problem(inertia, qd, weight, line[:, None], line_rate[:, None])
    assert np.allclose(alone.M, problem.M)
    assert np.allclose(alone.d, problem.d)


def test_a_disc_in_a_slot_is_stuck_exactly_when_it_narrows() -> None:
    """Example 11.1: a disc between two walls has M = [[1, -1], [-1, 1]] / m.

    There is no solution if and only if d1 + d2 < 0, that is, if the slot narrows. On a wall of
    curvature k, the center's path has the radius 1/k - r.
    """
    pytest.importorskip("daqp", reason="quadratic programs need the extra contact")
    rng, flip, radius = np.random.default_rng(2), np.array([1.0, 1.0, -1.0]), 0.3
    robot = ball(2.0, radius)
    walls = {bend: wall(bend, radius) for bend in (-0.9, -0.2, 0.1, 0.6)}
    outcomes = set()
    for lower, upper in product(walls, repeat=2):
        q, qd, tau = rest(robot, 0.0, 0.0, 0.0)
        qd[3], tau[3:] = rng.uniform(0.1, 2.0), rng.normal(size=3)
        below, above = (
            contact.contact_points(robot, q, qd, contact.Sphere("body", radius), walls[bend])[0]
            for bend in (lower, upper)
        )
        fields = ("point", "normal", "point_rate", "normal_rate")
        above = above._replace(**{name: flip * getattr(above, name) for name in fields})
        problem = contact_problem(robot, q, qd, tau, [below, above])
        assert np.allclose(2.0 * problem.M, [[1.0, -1.0], [-1.0, 1.0]])
        total = -sum(qd[3] ** 2 * bend / (1.0 - radius * bend) for bend in (lower, upper))
        assert np.sum(problem.d) == pytest.approx(total)
        outcomes.add(total < 0.0)
        for method in ("lemke", "forces", "accelerations"):
            if total < 0.0:
                with pytest.raises(contact.Infeasible) as found:
                    contact.solve(problem, method=method)
                assert found.value.ray == pytest.approx([1.0, 1.0], rel=1e-6)
            else:
                motion = contact.solve(problem, method=method)
                assert np.sum(motion.separation) == pytest.approx(total, abs=1e-9)
    assert outcomes == {True, False}


def wall(bend: float, depth: float) -> contact.Ground:
    """Ground of curvature `bend` along x, whose height at x = 0 is -depth."""
    return contact.Ground(lambda x, y: 0.5 * bend * x * x - depth)


# Systems ---------------------------------------------------------------------------------------


def test_a_table_on_four_legs_carries_its_weight() -> None:
    """M is singular, qdd is zero, and the forces balance weight and moment."""
    robot = block(5.0, (1.0, 0.6, 0.2))
    q, qd, tau = rest(robot, 0.0, 0.0, 0.1)
    tau[0] = 2.0  # N m about x
    corners = contact.contact_points(robot, q, qd, contact.Box("body", (1.0, 0.6, 0.2)), TOP)
    low = [c for c in corners if c.gap < 0.1]
    problem = contact_problem(robot, q, qd, tau, low)
    motion = contact.solve(problem)
    assert np.allclose(motion.qdd, 0.0, atol=1e-12)
    y = np.array([c.point[1] for c in low])
    assert np.sum(motion.forces) == pytest.approx(5.0 * GRAVITY)
    assert motion.forces @ y == pytest.approx(-2.0)
    assert np.count_nonzero(motion.forces) <= 3


def test_two_bodies_push_each_other() -> None:
    """A ball rests on another ball that is pushed up; both rise with F/(m + M) - g."""
    upper, lower = (body(m, (0.1, 0.1, 0.1), name) for m, name in ((1.5, "upper"), (2.5, "lower")))
    robot = free(upper, lower)
    q = np.array([1.0, 0, 0, 0, 0, 0, 0.5, 1.0, 0, 0, 0, 0, 0, 0])
    qd, tau = np.zeros(12), np.zeros(12)
    tau[11] = 100.0
    pair = contact.Sphere("upper", 0.2), contact.Sphere("lower", 0.3)
    contacts = contact.contact_points(robot, q, qd, *pair)
    motion = contact.contact_dynamics(robot, q, qd, tau, contacts)
    rise = 100.0 / 4.0 - GRAVITY
    assert motion.qdd[[5, 11]] == pytest.approx([rise, rise])
    assert motion.forces[0] == pytest.approx([0.0, 0.0, 1.5 * (rise + GRAVITY)])


def test_a_ball_that_runs_over_a_hill_takes_off() -> None:
    """The ball stays on a hill of radius R if v^2 < g (R + r), and otherwise takes off."""
    robot, hill = ball(1.0, 0.2), contact.Sphere(None, 2.0)
    q, qd, tau = rest(robot, 0.0, 0.0, 2.2)
    for part in (0.5, 0.99, 1.01, 2.0):
        qd[3] = math.sqrt(part * GRAVITY * 2.2)
        contacts = contact.contact_points(robot, q, qd, contact.Sphere("body", 0.2), hill)
        motion = contact.contact_dynamics(robot, q, qd, tau, contacts)
        assert motion.forces[0, 2] == pytest.approx(max(0.0, GRAVITY * (1.0 - part)), abs=1e-12)
        assert motion.separation[0] == pytest.approx(max(0.0, GRAVITY * (part - 1.0)), abs=1e-12)


def test_contact_on_the_independent_coordinates_of_a_loop() -> None:
    """The coupler of a moving four-bar meets a wall, which acts like an equal wrench."""
    robot = chasles.robots.four_bar(1.0, 0.5, 0.9, 0.8)
    q = robot.assemble([0.9])
    qd = robot.complete(q, [1.3])
    v = robot.frame_velocity(q, qd, frame="coupler", at=(0.4, 0.0, 0.0))[3:]
    normal = v / np.linalg.norm(v)  # T' qdd + bias is the rate of n.v for any n.v
    start = robot.forward_kinematics(q, frame="coupler") @ [0.4, 0.0, 0.0, 1.0]
    wall = contact.Plane(None, tuple(normal), tuple(start[:3]))
    point = contact.Point("coupler", (0.4, 0.0, 0.0))
    contacts = contact.contact_points(robot, q, qd, point, wall)
    tau, outcomes = np.zeros(robot.nv), []
    for torque in (-40.0, 0.0, 40.0):
        tau[0] = torque
        motion = contact.solve(contact_problem(robot, q, qd, tau, contacts))
        outcomes.append(motion.forces[0] > 0.0)
        wrench = np.concatenate([np.zeros(3), motion.forces[0] * normal])
        pushed = {"coupler": chasles.Wrench(wrench, axes="world", at=point.at)}
        assert np.allclose(robot.forward_dynamics(q, qd, tau, f_ext=pushed), motion.qdd, atol=1e-9)
        a = robot.frame_acceleration(q, qd, motion.qdd, frame="coupler", at=point.at)[3:]
        assert a @ normal == pytest.approx(motion.separation[0], abs=1e-9)
        assert a @ normal >= -1e-9
    assert set(outcomes) == {True, False}


def test_a_joint_rests_on_its_limit() -> None:
    """The limit carries the moment m g l/2 cos(q) of a rod until the rod is lifted."""
    arm = chasles.robots.planar(1)
    source = arm.model.source
    bounded = tuple(replace(j, limits=Limits(-0.3, 0.5)) for j in source.joints)
    limited = chasles.Robot(replace(source, joints=bounded))
    q, qd = np.array([-0.3]), np.zeros(1)
    weight = arm.gravity_forces(q)[0]
    motion = contact.contact_dynamics(limited, q, qd, [0.0], [])
    assert motion.qdd == pytest.approx([0.0], abs=1e-12)
    assert motion.limit_forces == pytest.approx([weight])
    lifted = contact.contact_dynamics(limited, q, qd, [weight + 1.0], [])
    assert lifted.limit_forces == pytest.approx([0.0])
    assert lifted.qdd == pytest.approx([1.0 / arm.mass_matrix(q)[0, 0]])
    with raises("E-CONTACT-072"):
        contact.contact_dynamics(limited, q, [-0.1], [0.0], [])


# States and sets -------------------------------------------------------------------------------


def test_the_four_states_of_a_constraint() -> None:
    assert contact.state(0.1, -5.0) is State.APART
    assert contact.state(0.0, -1.0) is State.COLLIDING
    assert contact.state(0.0, 1.0) is State.LEAVING
    assert contact.state(0.0, 0.0) is State.TOUCHING
    assert contact.state(-1e-3, 1e-12) is State.TOUCHING  # penetration is tolerated
    with raises("E-CONTACT-074"):
        contact.state(np.nan, 0.0)


def problems(count: int):
    """Yield problems of a box on its four corners under random loads.

    Some of the loads lift a corner.
    """
    robot = block(5.0, (1.0, 0.6, 0.2))
    rng = np.random.default_rng(3)
    q, qd, _ = rest(robot, 0.0, 0.0, 0.1)
    corners = contact.contact_points(robot, q, qd, contact.Box("body", (1.0, 0.6, 0.2)), TOP)
    for _ in range(count):
        tau = rng.normal(size=6) * [30.0, 45.0, 5.0, 5.0, 5.0, 20.0]
        yield contact_problem(robot, q, qd, tau, [c for c in corners if c.gap < 0.1])


def test_active_contacts_are_enough() -> None:
    """Contacts at a basis of the normals give the motion of the whole problem (table 11.1)."""
    sizes = set()
    for problem in problems(60):
        motion = contact.solve(problem)
        sets = contact.new_sets(problem, motion)
        current, active = (problem.T[:, list(k)] for k in sets)
        assert set(sets.active) <= set(sets.current)
        assert np.linalg.matrix_rank(current) == np.linalg.matrix_rank(active) == len(sets.active)
        assert set(np.flatnonzero(motion.forces > 1e-9)) <= set(sets.active)
        held = contact.held(problem, sets)
        assert np.allclose(held.qdd, motion.qdd, atol=1e-9)
        sizes.add(len(sets.active))
    assert sizes >= {1, 2, 3}


def test_a_degenerate_set_is_supplemented() -> None:
    """A table that is lifted with exactly its weight touches on all corners without a force."""
    robot = block(5.0, (1.0, 0.6, 0.2))
    q, qd, tau = rest(robot, 0.0, 0.0, 0.1)
    tau[5] = 5.0 * GRAVITY
    corners = contact.contact_points(robot, q, qd, contact.Box("body", (1.0, 0.6, 0.2)), TOP)
    problem = contact_problem(robot, q, qd, tau, [c for c in corners if c.gap < 0.1])
    motion = contact.solve(problem)
    assert np.allclose(motion.forces, 0.0, atol=1e-9)
    sets = contact.new_sets(problem, motion)
    assert sets.current == (0, 1, 2, 3)
    assert len(sets.active) == 3
    fewer = contact.without(problem, sets, {sets.active[0]})
    assert fewer.current == tuple(k for k in range(4) if k != sets.active[0])
    assert len(fewer.active) == 3


def test_the_procedure_follows_a_load_that_lifts_a_corner() -> None:
    """A growing moment lifts the left feet at m g b/2, where their force becomes zero."""
    robot = block(5.0, (1.0, 0.6, 0.2))
    q, qd, tau = rest(robot, 0.0, 0.0, 0.1)
    corners = contact.contact_points(robot, q, qd, contact.Box("body", (1.0, 0.6, 0.2)), TOP)
    low = [c for c in corners if c.gap < 0.1]
    problem = contact_problem(robot, q, qd, tau, low)
    sets = contact.new_sets(problem, contact.solve(problem))
    limit = 5.0 * GRAVITY * 0.5
    for moment in np.linspace(0.0, 0.99 * limit, 12):
        tau[1] = moment
        problem = contact_problem(robot, q, qd, tau, low)
        motion = contact.held(problem, sets)
        assert np.allclose(motion.qdd, 0.0, atol=1e-10)
        if contact.events(problem, qd, sets, motion):
            sets = contact.new_sets(problem, contact.solve(problem))
    assert set(sets.current) == {0, 1, 2, 3}
    tau[1] = 1.2 * limit
    problem = contact_problem(robot, q, qd, tau, low)
    found = contact.events(problem, qd, sets, contact.held(problem, sets))
    assert {e.kind for e in found} == {"negative force"}
    motion = contact.solve(problem)
    sets = contact.new_sets(problem, motion)
    right = {k for k, c in enumerate(low) if c.point[0] > 0.0}
    assert set(sets.current) == right
    inertia = 5.0 * (1.0 + 0.04) / 12.0 + 5.0 * 0.25  # the center rises without sliding
    assert motion.qdd[1] == pytest.approx(0.2 * limit / inertia)


def test_events_name_gains_and_losses() -> None:
    robot = ball(1.0, 0.2)
    q, qd, tau = rest(robot, 0.0, 0.0, 0.2)
    qd[5] = -1.0
    contacts = contact.contact_points(robot, q, qd, contact.Sphere("body", 0.2), TOP)
    problem = contact_problem(robot, q, qd, tau, contacts)
    none = contact.Sets((), ())
    assert contact.events(problem, qd, none, problem.motion(np.zeros(1))) == [Event("gain", 0)]
    with raises("E-CONTACT-015"):
        contact.contact_dynamics(robot, q, qd, tau, contacts)
    away = contact_problem(robot, q, qd, tau, [contacts[0]._replace(gap=np.float64(0.1))])
    sets = contact.Sets((0,), (0,))
    held = contact.held(away, sets)
    assert Event("loss", 0) in contact.events(away, qd, sets, held)


def test_a_problem_of_other_equations() -> None:
    """Constraints need not be contacts: a joint is held between two stops."""
    robot, still = chasles.robots.planar(1), np.zeros((2, 1))
    axes, J = np.zeros((2, 3, 3)), np.array([[[1.0]], [[-1.0]]])
    moves = Moves(np.zeros(2), axes, still, J, still, np.full(2, np.inf))
    made = constrained_problem(robot.mechanism, np.zeros(1), np.zeros(1), np.zeros(1), moves)
    motion = contact.solve(made)
    assert motion.qdd == pytest.approx([0.0], abs=1e-12)
    with raises("E-CONTACT-068"):
        contact.solve(made, method="guess")
    with raises("E-CONTACT-073"):
        contact_problem(robot, [[0.0]], [0.0], [0.0], [])
