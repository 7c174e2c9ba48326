"""Velocity constraints, and position constraints on any joint.

Expected values are closed forms and finite differences.
"""

import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation as Turn
from support import close, raises

import chasles
from chasles import Robot
from chasles.expr import cos, sin, sqrt
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import (
    CouplingData,
    Description,
    FrameData,
    FrameState,
    JointData,
    LinkData,
    RotorData,
    coupling,
    gear,
    rolling,
)

RNG = np.random.default_rng(8)
G = 9.81


def body(name: str, m: float, *moments: float, center: tuple[float, ...] = (0, 0, 0)) -> LinkData:
    about = Symmetric(*moments, 0.0, 0.0, 0.0)
    return LinkData(name, RigidInertia.from_center(m, Vector(tuple(map(float, center))), about))


def shift(*r: float) -> Transform:
    return Transform(Rotation(), Vector.of(*r))


def energies(robot: Robot, run: Any) -> np.ndarray:
    return robot.kinetic_energy(run.q, run.qd) + robot.potential_energy(run.q)


# Closed forms ------------------------------------------------------------------------------------

RADIUS = 0.5


def turntable(share: float = 0.4) -> Robot:
    """Return a ball with moment of inertia share m r^2 on a table that turns about z."""
    k = share * 2.0 * RADIUS**2
    return Robot(
        Description(
            "turntable",
            (body("table", 50.0, 1.0, 1.0, 2.0), body("ball", 2.0, k, k, k)),
            (JointData("spin", "revolute", None, "table"), JointData("ball", "free", None, "ball")),
            couplings=(
                rolling("contact", "ball", "ball", on="table", radius=RADIUS, touching=True),
            ),
        )
    )


@pytest.mark.parametrize("share", [0.4, 2.0 / 3.0])
def test_a_ball_on_a_turntable_runs_in_circles(share: float) -> None:
    """The center circles share/(1 + share) times as fast as the table: 2/7 for a solid ball."""
    turning = 3.5
    robot = turntable(share).drive({"spin": lambda t: turning * t})
    now = robot.at_time(0.0)
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.3, -0.2, RADIUS])
    qd = now.complete(q, [2.0, -1.0, 0.5])
    point = np.array([qd[3] - RADIUS * qd[1], qd[4] + RADIUS * qd[0]])
    close(point, turning * np.array([0.2, 0.3]), 1e-12)  # velocity of the table there
    ratio = share / (1.0 + share)
    around = ratio * turning
    period = 2.0 * math.pi / around
    run = chasles.simulate(robot, q, qd, duration=period, dt=period / 400)
    close(run.q[-1, 4:6], q[4:6], 1e-6)
    middle = q[4:6] + np.array([-qd[4], qd[3]]) / around
    far = np.linalg.norm(run.q[:, 4:6] - middle, axis=1)
    close(far, np.full(len(far), math.hypot(qd[3], qd[4]) / around), 1e-6)
    close(run.q[:, 6], np.full(len(far), RADIUS), 1e-12)


def test_mobility_of_a_rolling_ball() -> None:
    """Featherstone 2008, 3.4: a ball has mobility 3 for velocities and 5 for positions.

    The table adds one to each.
    """
    robot = turntable()
    mobility = robot.mobility()
    assert (int(mobility), mobility.positions) == (4, 6)
    assert "mobility 4 (6 at position level)" in str(mobility)
    assert set(robot.independent) < set(robot.independent_positions)
    q = robot.assemble(0.1 * np.ones(6), guess=[0.0, 1.0, 0.0, 0.0, 0.0, 0.3, -0.2, 0.5])
    close(q[-1], RADIUS, 1e-12)


def sleigh(offset: float, tilt: float = 0.0) -> Robot:
    """Return a body on a plane with a blade at its origin; its center of mass is ahead of it."""
    down = Vector.of(G * math.sin(tilt), 0.0, -G * math.cos(tilt))
    return Robot(
        Description(
            "sleigh",
            (body("sleigh", 3.0, 0.1, 0.1, 0.2, center=(offset, 0, 0)),),
            (JointData("slide", "planar", None, "sleigh"),),
            gravity=down,
            couplings=(rolling("blade", "blade", "sleigh"),),
        )
    )


def test_a_knife_edge_on_an_incline_follows_a_cycloid() -> None:
    """A blade on an incline turns steadily and drifts sideways, not downhill."""
    tilt, turning = 0.4, 2.5
    robot = sleigh(0.0, tilt)
    run = chasles.simulate(robot, np.zeros(3), [turning, 0.0, 0.0], duration=4.0, dt=0.002)
    scale, angle = G * math.sin(tilt) / (2.0 * turning**2), turning * run.t
    close(run.q[:, 0], angle, 1e-10)
    close(run.q[:, 1], scale * np.sin(angle) ** 2, 1e-7)
    close(run.q[:, 2], scale * (angle - 0.5 * np.sin(2.0 * angle)), 1e-7)
    assert np.max(np.abs(run.qd[:, 2])) < 1e-12
    assert np.ptp(energies(robot, run)) < 1e-7


def test_chaplygin_sleigh() -> None:
    """v = c tanh(a c t/k^2) with k^2 = I/m + a^2, so the sleigh ends up going straight."""
    a, speed = 0.3, 2.0
    k2 = 0.2 / 3.0 + a * a
    robot = sleigh(a)
    spin = speed / math.sqrt(k2)
    run = chasles.simulate(robot, np.zeros(3), [spin, 0.0, 0.0], duration=1.5, dt=0.002)
    close(run.qd[:, 1], speed * np.tanh(a * speed * run.t / k2), 1e-7)
    close(run.qd[:, 0], spin / np.cosh(a * speed * run.t / k2), 1e-7)
    assert np.ptp(energies(robot, run)) < 1e-7


def coin(radius: float = 0.2) -> Robot:
    """Return a free disc about its y axis, with a rolling contact."""
    return Robot(
        Description(
            "coin",
            (body("coin", 0.5, *(0.5 * radius**2 * x for x in (0.25, 0.5, 0.25))),),
            (JointData("coin", "free", None, "coin"),),
            couplings=(rolling("rim", "wheel", "coin", radius=radius, touching=True),),
        )
    )


def standing(robot: Robot, turn: Turn, spin: Any, radius: float = 0.2) -> tuple[Any, Any]:
    """Return the state of a rolling coin; the angular velocity is in the coin's axes."""
    axle = turn.as_matrix()[:, 1]
    quaternion = np.roll(turn.as_quat(), 1)
    q = np.array([*quaternion, 0.1, 0.2, radius * math.sqrt(1.0 - axle[2] ** 2)])
    return q, robot.complete(q, spin)


def rolled(turn: Turn, w: np.ndarray, m: float, I: np.ndarray, radius: float) -> np.ndarray:
    """Return dw/dt of a rolling disc in its own axes, from moments about its center."""
    R, up = turn.as_matrix(), np.array([0.0, 0.0, 1.0])

    def arm(R: np.ndarray) -> np.ndarray:
        """Return the vector from the point of contact to the center."""
        u = up - R[:, 1] * R[2, 1]
        return radius * u / np.linalg.norm(u)

    def along(s: float) -> np.ndarray:
        return arm(R @ Turn.from_rotvec(w * s).as_matrix())

    W, rho, h = R @ w, arm(R), 1e-5
    rate = (8.0 * (along(h) - along(-h)) - (along(2.0 * h) - along(-2.0 * h))) / (12.0 * h)
    known = m * (np.cross(W, rate) + G * up)
    left, right = np.zeros((3, 3)), np.cross(rho, -known) - R @ np.cross(w, I * w)
    for k in range(3):
        turned = R[:, k]
        left[:, k] = R @ (I * np.eye(3)[k]) + np.cross(rho, m * np.cross(turned, rho))
    return np.linalg.solve(left, right)


def test_a_rolling_coin_obeys_euler() -> None:
    robot, I = coin(), 0.5 * 0.04 * np.array([0.25, 0.5, 0.25])
    assert (int(robot.mobility()), robot.mobility().positions) == (3, 5)
    for _ in range(20):
        turn = Turn.from_euler("zxy", RNG.uniform(-1.0, 1.0, 3))
        w = RNG.normal(size=3) * 3.0
        q, qd = standing(robot, turn, w)
        for method in ("multipliers", "direct", "minimal"):
            qdd, _ = robot.constrained_dynamics(q, qd, np.zeros(6), method=method)
            close(qdd[:3], rolled(turn, w, 0.5, I, 0.2), 1e-7)


def test_a_coin_rolls_in_a_circle() -> None:
    """A coin with lean a and precession W rolls steadily in a circle.

    The angular momentum about the center precesses: with the spin n about the axle,
    n W cos a (C + m r^2) = A W^2 sin a cos a - m g r sin a.
    """
    m, r, lean, W = 0.5, 0.2, 0.3, 4.0
    A, C = 0.25 * m * r * r, 0.5 * m * r * r
    n = math.tan(lean) * (A * W**2 * math.cos(lean) - m * G * r) / (W * (C + m * r * r))
    robot, turn = coin(), Turn.from_euler("x", lean)
    w = np.array([0.0, n, W * math.cos(lean)])
    q, qd = standing(robot, turn, w)
    own = n - W * math.sin(lean)  # relative to the precessing frame
    qdd = robot.forward_dynamics(q, qd, np.zeros(6))
    close(qdd[:3], np.cross(w, [0.0, own, 0.0]), 1e-12)
    run = chasles.simulate(robot, q, qd, duration=2.0 * math.pi / W, dt=0.002)
    close(run.q[-1, 4:], q[4:], 1e-6)
    assert np.ptp(energies(robot, run)) < 1e-8


def test_a_falling_coin_conserves_energy() -> None:
    robot = coin()
    q, qd = standing(robot, Turn.from_euler("zx", [0.3, 0.2]), [0.5, 6.0, 1.0])
    run = chasles.simulate(robot, q, qd, duration=1.0, dt=0.001)
    assert np.ptp(energies(robot, run)) < 1e-7
    assert np.max(np.abs(robot.loop_matrix(run.q) @ run.qd[..., None])) < 1e-11
    assert np.max(np.abs(robot.loop_residual(run.q))) < 1e-12


# Vehicles ----------------------------------------------------------------------------------------

WHEEL, TRACK = 0.1, 0.25


def rover() -> Robot:
    """Return a robot with two driven wheels on an axle, each at distance TRACK from its center."""
    links = [body("base", 8.0, 0.1, 0.2, 0.3)]
    joints = [JointData("base", "planar", None, "base", shift(0.0, 0.0, WHEEL))]
    contacts = []
    for name, y in (("left", TRACK), ("right", -TRACK)):
        links.append(body(name, 0.5, 0.002, 0.003, 0.002))
        axle = Vector.of(0.0, 1.0, 0.0)
        joints.append(JointData(name, "continuous", "base", name, shift(0.0, y, 0.0), axle))
        contacts.append(rolling(f"{name}_contact", "wheel", name, radius=WHEEL))
    return Robot(Description("rover", tuple(links), tuple(joints), couplings=tuple(contacts)))


def test_a_robot_on_two_wheels() -> None:
    """The sum of the wheel torques accelerates the robot, their difference turns it."""
    robot = rover()
    mobility = robot.mobility()
    assert (int(mobility), mobility.positions, mobility.rank) == (2, 5, 3)  # one lateral constraint
    robot = robot.with_independent("left", "right")
    q = RNG.normal(size=(10, 5))
    yd = RNG.normal(size=(10, 2))
    qd = robot.complete(q, yd)
    close(qd[:, 1], 0.5 * WHEEL * (yd[:, 0] + yd[:, 1]), 1e-12)
    close(qd[:, 0], 0.5 * WHEEL * (yd[:, 1] - yd[:, 0]) / TRACK, 1e-12)
    torques = RNG.normal(size=(10, 2))
    tau = np.concatenate([np.zeros((10, 3)), torques], axis=1)
    qdd = robot.forward_dynamics(q, qd, tau)
    mass = 9.0 + 2.0 * 0.003 / WHEEL**2
    inertia = 0.3 + 2.0 * (0.002 + 0.5 * TRACK**2) + 2.0 * 0.003 * (TRACK / WHEEL) ** 2
    close(qdd[:, 1], torques.sum(axis=1) / WHEEL / mass, 1e-10)
    close(qdd[:, 0], (torques[:, 1] - torques[:, 0]) * TRACK / WHEEL / inertia, 1e-10)
    back = robot.inverse_dynamics(q, qd, qdd, actuated=["left", "right"])
    close(back, tau, 1e-10)
    with raises("E-LOOP-324", "'left_contact'"):
        robot.linearize(q[0], qd[0], tau[0])


def test_a_closure_function_cannot_roll() -> None:
    source = sleigh(0.0).model.source
    joints = tuple(
        JointData(name, kind, parent, child, axis=Vector.of(*axis))
        for name, kind, parent, child, axis in (
            ("x", "prismatic", None, "a", (1.0, 0.0, 0.0)),
            ("y", "prismatic", "a", "b", (0.0, 1.0, 0.0)),
            ("turn", "revolute", "b", "sleigh", (0.0, 0.0, 1.0)),
        )
    )
    links = (*source.links, body("a", 1.0, 1.0, 1.0, 1.0), body("b", 1.0, 1.0, 1.0, 1.0))
    robot = Robot(replace(source, links=links, joints=joints))
    qd = robot.complete([0.1, 0.2, 0.3], [1.0, 2.0])
    close(qd[0] * math.sin(0.3), qd[1] * math.cos(0.3), 1e-12)
    with raises("E-MOTION-320", "'blade'"):
        chasles.ClosureFunction(robot, lambda y: [*y, 0.0])


def test_wheels_that_scrub_cannot_turn() -> None:
    """A second axle behind the first one removes one of two degrees of freedom."""
    source = rover().model.source
    frame = FrameData("rear", "base", shift(-0.4, 0.0, 0.0))
    robot = Robot(
        replace(
            source,
            frames=(frame,),
            couplings=(*source.couplings, rolling("rear_blade", "blade", "rear")),
        )
    )
    assert int(robot.mobility()) == 1
    assert robot.mobility().positions == 5
    close(robot.complete(np.zeros(5), [1.0])[0], 0.0, 1e-12, 1.0)


def test_rolling_contact_between_two_moving_bodies_closes_a_loop() -> None:
    """Friction wheels on a swinging arm move like a gear between their joints."""
    links = (body("arm", 2.0, 0.1, 0.1, 0.3), body("a", 1.0, 0.1, 0.1, 0.02))
    links = (*links, body("b", 1.0, 0.1, 0.1, 0.05))
    joints = (
        JointData("arm", "revolute", None, "arm", axis=Vector.of(0.6, 0.0, 0.8)),
        JointData("a", "revolute", "arm", "a", shift(0.1, 0.0, 0.0)),
        JointData("b", "revolute", "arm", "b", shift(0.4, 0.0, 0.0)),
    )
    r1, r2 = 0.1, 0.2

    def slips(arm: FrameState, a: FrameState, b: FrameState) -> Any:
        point = arm.point(0.1 + r1, 0.0, 0.0)
        return (a.velocity_at(point) - b.velocity_at(point)).dot(arm.axis(1))

    open_ = Description("pair", links, joints)
    friction = replace(open_, couplings=(coupling("rub", (), slips, frames=["arm", "a", "b"]),))
    one, other = Robot(friction), Robot(open_).with_couplings(gear("g", "b", {"a": -r1 / r2}))
    one, other = (robot.with_independent("arm", "a") for robot in (one, other))
    assert one.mobility().positions == 3
    assert other.mobility().positions == 2
    q, yd, tau = RNG.normal(size=3), RNG.normal(size=2), RNG.normal(size=3)
    q[2] = -r1 / r2 * q[1]
    qd = one.complete(q, yd)
    close(qd, other.complete(q, yd), 1e-12)
    close(one.forward_dynamics(q, qd, tau), other.forward_dynamics(q, qd, tau), 1e-11)


def test_a_cylinder_rolls_off_a_cylinder() -> None:
    """The center accelerates as 2 g sin/(3 (R + r)) about the axis of the lower cylinder."""
    R, r = 0.5, 0.2

    def contact(disc: FrameState) -> list[Any]:
        up = disc.position * (1.0 / sqrt(disc.position.dot(disc.position)))
        point = disc.position - up * r
        along = Vector.of(up[2], 0.0, -up[0])
        return [disc.position.dot(disc.position) - (R + r) ** 2, disc.velocity_at(point).dot(along)]

    flat = Matrix(((1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0)))
    pose = Transform.from_pose(flat, Vector.zero())
    k = 0.5 * 2.0 * r * r
    robot = Robot(
        Description(
            "barrels",
            (body("disc", 2.0, k, k, k),),
            (JointData("disc", "planar", None, "disc", pose),),
            couplings=(coupling("roll", (), contact, frames=["disc"]),),
        )
    )
    assert (int(robot.mobility()), robot.mobility().positions) == (1, 2)
    angle = 0.6
    q = np.array([0.0, (R + r) * math.sin(angle), (R + r) * math.cos(angle)])
    qdd = robot.forward_dynamics(q, np.zeros(3), np.zeros(3))
    close(np.linalg.norm(qdd[1:]), 2.0 * G * math.sin(angle) / 3.0, 1e-10)
    close(abs(qdd[0]), 2.0 * G * math.sin(angle) / 3.0 / r, 1e-10)


# Position constraints on any joint ---------------------------------------------------------------


def test_a_body_held_at_a_distance_by_its_coordinates() -> None:
    """A free joint with x^2 + y^2 + z^2 = L^2 accelerates like the mass of a pendulum."""
    L = 0.8
    names = [f"bob[{x}]" for x in "xyz"]
    held = coupling("string", names, lambda x, y, z: x * x + y * y + z * z - L * L)
    robot = Robot(
        Description(
            "bob",
            (body("bob", 1.5, 0.02, 0.03, 0.04),),
            (JointData("bob", "free", None, "bob"),),
            couplings=(held,),
        )
    )
    rng = np.random.default_rng(1)
    turn, p = Turn.random(random_state=3), rng.normal(size=3)
    p *= L / np.linalg.norm(p)
    q = np.array([*np.roll(turn.as_quat(), 1), *p])
    assert robot.mobility(q) == 5 == robot.mobility(q).positions
    w, v = rng.normal(size=(2, 3))
    v -= p * (p @ v) / L**2
    qd = np.array([*w, *turn.inv().apply(v)])
    qdd = robot.forward_dynamics(q, qd, np.zeros(6))
    g = np.array([0.0, 0.0, -G])
    a = turn.apply(qdd[3:] + np.cross(w, qd[3:]))
    close(a, g - p * (g @ p + v @ v) / L**2, 1e-10)
    run = chasles.simulate(robot, q, qd, duration=0.5, dt=0.002)
    assert np.ptp(energies(robot, run)) < 1e-8
    close(np.linalg.norm(run.q[:, 4:], axis=1), np.full(len(run.t), L), 1e-12)
    A, _ = robot.linearize(q, qd, np.zeros(6))
    assert A.shape == (10, 10)


def test_a_spherical_joint_held_to_one_axis_is_a_revolute_joint() -> None:
    link = body("top", 1.5, 0.02, 0.03, 0.04, center=(0.1, 0.2, 0.3))
    held = coupling("axle", ["top[qx]", "top[qy]"], lambda x, y: [x, y])
    ball = Description("top", (link,), (JointData("top", "spherical", None, "top"),))
    hinge = replace(ball, joints=(replace(ball.joints[0], kind="revolute"),))
    robot = Robot(replace(ball, couplings=(held,), gravity=Vector.of(1.0, 2.0, 3.0)))
    pin = Robot(replace(hinge, gravity=Vector.of(1.0, 2.0, 3.0)))
    assert robot.mobility() == 1
    assert robot.independent == ("top[2]",)
    angle, speed = 0.7, 2.0
    q = np.array([math.cos(angle / 2.0), 0.0, 0.0, math.sin(angle / 2.0)])
    qdd = robot.forward_dynamics(q, [0.0, 0.0, speed], np.zeros(3))
    close(qdd[2], pin.forward_dynamics([angle], [speed], [0.0])[0], 1e-11)
    found = robot.assemble([0.3], guess=q)
    close(2.0 * math.atan2(found[3], found[0]), angle + 0.3, 1e-11)


def anything() -> CouplingData:
    """Return a constraint with equations in positions, velocities, frames and time."""

    def function(
        a: Any, x: Any, angle: Any, w: Any, v: Any, tip: FrameState, tool: FrameState, t: Any
    ) -> list[Any]:
        apart = tool.position - tip.position
        return [
            a * a + sin(x) * angle + 0.3 * t + tip.position.dot(tool.axis(0)),
            cos(a) * w + x * v + 0.2 * t,
            tool.velocity_at(tip.position).dot(tip.axis(2)) + apart.dot(tip.angular_velocity) * a,
        ]

    return coupling(
        "anything",
        ["arm", "base[x]", "cart[angle]"],
        function,
        rates=["base[4]", "cart[1]"],
        frames=["tip", "tool"],
    )


def zoo() -> Robot:
    """Return a robot with a free base and arm, and a planar cart with three more joints.

    One of these joints is driven, one is a mimic joint, and one is spherical.
    """
    links = [
        body(name, 1.0, 0.1, 0.2, 0.25, center=(0.1, 0.2, -0.1))
        for name in ("base", "arm", "cart", "mast", "boom", "tool")
    ]
    x, y = Vector.of(1.0, 0.0, 0.0), Vector.of(0.0, 0.6, 0.8)
    joints = (
        JointData("base", "free", None, "base"),
        JointData("arm", "revolute", "base", "arm", shift(0.3, 0.1, 0.2), y),
        JointData("cart", "planar", None, "cart", shift(0.1, 0.0, 0.4)),
        JointData("mast", "revolute", "cart", "mast", shift(0.0, 0.2, 0.1), x),
        JointData("boom", "prismatic", "mast", "boom", shift(0.1, 0.2, 0.1), y),
        JointData("tool", "spherical", "boom", "tool", shift(0.5, 0.0, 0.1)),
    )
    joints = (
        *joints[:4],
        replace(joints[4], mimic=chasles.model.Mimic("arm", 0.4, 0.1)),
        joints[5],
    )
    frames = (FrameData("tip", "arm", shift(0.2, 0.3, 0.1)),)
    robot = Robot(Description("zoo", tuple(links), joints, frames, couplings=(anything(),)))
    return robot.drive({"mast": lambda t: 0.3 * t + 0.1 * t * t})


def test_any_constraint_by_differences() -> None:
    """A is the derivative of the position rows; the rate of A qd - b is A qdd - bias."""
    robot, t, h = zoo(), 0.4, 1e-5
    now = robot.at_time(t)
    q = robot.random(RNG)
    qd, qdd = RNG.normal(size=(2, robot.nv))

    def differ(value: Any) -> np.ndarray:
        near, far = (value(h) - value(-h), value(2.0 * h) - value(-2.0 * h))
        return (8.0 * near - far) / (12.0 * h)

    A = now.loop_matrix(q)
    for k, unit in enumerate(np.eye(robot.nv)):
        slope = differ(lambda s, u=unit: now.loop_residual(now.integrate(q, s * u)))
        close(A[0, k], slope[0], 1e-8, 1.0)

    def state(s: float) -> tuple[Robot, np.ndarray, np.ndarray]:
        return robot.at_time(t + s), now.integrate(q, s * qd + 0.5 * s * s * qdd), qd + s * qdd

    def psi(s: float) -> np.ndarray:
        at, p, v = state(s)
        return at.loop_matrix(p) @ v - at.loop_rate(p)

    close(psi(0.0)[0], differ(lambda s: state(s)[0].loop_residual(state(s)[1]))[0], 1e-8)
    close(A @ qdd - now.loop_bias(q, qd), differ(psi), 1e-6)


def test_forces_of_any_constraint_do_no_work_on_motions_that_it_allows() -> None:
    """Constraint forces satisfy M qdd + h = tau + A' lam at a closed state."""
    robot = zoo()
    now = robot.at_time(0.3)
    free = len(robot.independent_positions)
    assert (len(robot.independent), free) == (robot.nv - 3, robot.nv - 1)
    q = now.assemble(0.1 * RNG.normal(size=free))
    qd = now.complete(q, RNG.normal(size=len(robot.independent)))
    tau = RNG.normal(size=robot.nv)
    qdd, lam = now.constrained_dynamics(q, qd, tau)
    close(now.loop_matrix(q) @ qdd, now.loop_bias(q, qd), 1e-9)
    left = now.mass_matrix(q) @ qdd + now.bias_forces(q, qd) - tau
    close(left, now.loop_matrix(q).T @ lam, 1e-9)


@pytest.mark.parametrize("make", [turntable, coin, rover, zoo])
def test_maximal_coordinates_take_any_constraint(make: Any) -> None:
    now = make().at_time(0.3) if make is zoo else make()
    q = now.assemble(0.1 * RNG.normal(size=now.mobility().positions))
    qd, tau = now.complete(q, RNG.normal(size=int(now.mobility()))), RNG.normal(size=now.nv)
    expected = now.constrained_dynamics(q, qd, tau)[0]
    close(chasles.maximal_dynamics(now, q, qd, tau)[0], expected, 1e-9)


def test_a_rotor_that_both_wheels_turn() -> None:
    source = rover().model.source
    robot = Robot(replace(source, rotors=(RotorData("r", ("left", "right"), (3.0, -2.0), 0.4),)))
    q, tau = RNG.normal(size=5), RNG.normal(size=5)
    gears = np.array([0.0, 0.0, 0.0, 3.0, -2.0])
    close(robot.mass_matrix(q), rover().mass_matrix(q) + 0.4 * np.outer(gears, gears), 1e-12)
    qd = robot.complete(q, [0.7, -0.4])
    expected = chasles.maximal_dynamics(robot, q, qd, tau)[0]
    close(robot.forward_dynamics(q, qd, tau), expected, 1e-10)


def test_inverse_kinematics_of_a_robot_that_rolls() -> None:
    """Velocity constraints do not restrict inverse kinematics."""
    robot, coin_ = rover(), coin()
    place = robot.forward_kinematics([0.4, 1.0, -2.0, 0.0, 0.0], frame="base")
    found = robot.inverse_kinematics({"base": place})
    assert found.solved
    close(robot.forward_kinematics(found.q, frame="base"), place, 1e-6)
    q = standing(coin_, Turn.from_euler("zxy", [0.3, 0.4, 0.5]), [1.0, 2.0, 3.0])[0]
    found = coin_.inverse_kinematics({"coin": coin_.forward_kinematics(q, frame="coin")})
    assert found.solved
    close(coin_.loop_residual(found.q), np.zeros(3), 1e-6, scale=1.0)


@pytest.mark.parametrize("make", [coin, rover])
def test_verify_a_robot_that_rolls(make: Any) -> None:
    report = chasles.verify(make(), states=1)
    assert "0 differ" in str(report)


# Errors, edits and files -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: coupling("g", [], lambda v: v * v, rates=["slide[1]"]), "E-LOOP-320"),
        (lambda: coupling("g", [], lambda v: v, rates=["slide[7]"]), "E-MODEL-320 'slide[7]'"),
        (lambda: coupling("g", [], lambda f: f.velocity[0], frames=["x"]), "E-MODEL-321 'x'"),
        (lambda: rolling("g", "skate", "sleigh"), "E-LOOP-321 'skate'"),
        (lambda: rolling("g", "wheel", "sleigh"), "E-LOOP-322"),
        (lambda: rolling("g", "blade", "sleigh", radius=0.1), "E-LOOP-325"),
        (lambda: rolling("g", "blade", "sleigh", axis=(0.0, 0.0, 0.0)), "E-LOOP-323"),
    ],
)
def test_bad_constraints(make: Any, message: str) -> None:
    with raises(message):
        sleigh(0.0).with_couplings(make())


def test_a_moving_belt_drives_what_lies_on_it() -> None:
    """A velocity constraint may prescribe a nonzero velocity (phi_0 of Eq 3.29)."""
    belt = coupling("belt", [], lambda v: v - 0.3, rates=["cart"])
    robot = Robot(
        Description(
            "cart",
            (body("cart", 1.0, 0.1, 0.1, 0.1),),
            (JointData("cart", "prismatic", None, "cart"),),
            couplings=(belt,),
        )
    )
    close(robot.complete([0.2], []), [0.3], 1e-14)
    assert robot.mobility().positions == 1
    run = chasles.simulate(robot, [0.2], [0.3], duration=1.0, dt=0.1)
    close(run.q[:, 0], 0.2 + 0.3 * run.t, 1e-12)


def test_locked_joints_leave_a_constraint_of_the_others() -> None:
    bar = coupling("bar", ["arm"], lambda a, w, v: cos(a) * w - v, rates=["arm", "a"])
    links = (body("arm", 2.0, 0.1, 0.1, 0.3), body("a", 1.0, 0.1, 0.1, 0.02))
    joints = (
        JointData("arm", "revolute", None, "arm"),
        JointData("a", "revolute", "arm", "a", shift(0.1, 0.0, 0.0)),
    )
    robot = Robot(Description("two", links, joints, couplings=(bar,)))
    close(robot.complete([0.5, 0.0], [2.0]), [2.0, 2.0 * math.cos(0.5)], 1e-12)
    locked = robot.lock({"arm": 0.5})
    assert locked.mobility() == 0
    assert locked.mobility().positions == 1
    assert not robot.lock({"arm": 0.5, "a": 0.0}).couplings


def test_robots_that_roll_are_pickled_and_edited() -> None:
    robot = turntable()
    again = pickle.loads(pickle.dumps(robot))
    q = np.array([0.3, 1.0, 0.0, 0.0, 0.0, 0.3, -0.2, RADIUS])
    close(again.loop_matrix(q), robot.loop_matrix(q), 0.0)
    assert not robot.subtree("ball").couplings
    held = robot.lock({"spin": 0.4})
    assert int(held.mobility()) == 3


def test_contacts_in_a_file(tmp_path: Path) -> None:
    """Blades, wheels and balls are saved in a TOML file and loaded unchanged."""
    for robot in (turntable(), sleigh(0.2), rover(), coin()):
        path = tmp_path / f"{robot.name}.toml"
        chasles.save(robot, path)
        again = chasles.load(path)
        assert again.model.source.couplings == tuple(
            replace(x, where=y.where)
            for x, y in zip(robot.model.source.couplings, again.model.source.couplings, strict=True)
        )
        assert str(again.mobility()) == str(robot.mobility())
    rate = coupling("rate", ["slide[x]"], lambda x, v: x * v - 0.3, rates=["slide[2]"])
    chasles.save(sleigh(0.2).with_couplings(rate), tmp_path / "rate.toml")
    again = chasles.load(tmp_path / "rate.toml").model.source.couplings[-1]
    assert (again.freedoms, again.rates) == (rate.freedoms, rate.rates)
    assert again.residual == rate.residual
    own = coupling("own", ["slide[angle]"], lambda x, v: sin(x) * v, rates=["slide[2]"])
    with raises("E-TOML-011", "'own'"):
        chasles.save(sleigh(0.2).with_couplings(own), tmp_path / "own.toml")
    for ending, code in ((".urdf", "E-URDF-007"), (".sdf", "E-SDF-040"), (".xml", "E-MJCF-320")):
        with raises(code):
            chasles.save(coin(), tmp_path / f"coin{ending}")
    text = (tmp_path / "coin.toml").read_text()
    (tmp_path / "both.toml").write_text(f"{text}terms = [[1.0, {{coin = 1}}]]\n")
    with raises("E-TOML-320"):
        chasles.load(tmp_path / "both.toml")
