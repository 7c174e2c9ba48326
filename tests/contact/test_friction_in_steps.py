"""Dry joint friction in time stepping: exact rest, breakaway at the limit, and closed forms.

The oracles are closed forms for one joint, and the law of dry friction itself: the impulse that
the momentum balance of a step requires must be within its limit for joints at rest, and equal to
the limit for joints that slide.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from mechanisms import MECHANISMS

import chasles
from chasles import contact
from chasles.mathematics.linear import Vector
from chasles.model import Description, JointData, Limits, LinkData
from chasles.motion.drivers.stepping import Stepped
from chasles.motion.steps.scene import Scene
from chasles.motion.steps.stepping import PATIENT, STATISTICS
from chasles.robots._solids import sphere

DT, MASS, LIMIT = 0.002, 2.0, 3.0
"""Step size (s), mass (kg) and dry friction (N) of a slider."""


def slider(kind="prismatic", friction=LIMIT, limit=math.inf):
    """Return a body on a rail, which may carry a free ball."""
    links = (LinkData("rail", sphere(1.0, 0.1)), LinkData("body", sphere(MASS, 0.1)))
    axis, ends = Vector.of(1.0, 0.0, 0.0), Limits(-limit, limit)
    joint = JointData("joint", kind, "rail", "body", axis=axis, friction=friction, limits=ends)
    return chasles.Robot(Description("slider", links, (joint,)))


SLIDER = slider()


def rubbed(robot, friction, names=None):
    """Return the robot with dry friction in all joints, or in the joints `names`."""
    source = robot.model.source
    joints = tuple(
        replace(joint, friction=friction if names is None or joint.name in names else 0.0)
        for joint in source.joints
    )
    return chasles.Robot(replace(source, joints=joints))


def stepped(robot, q, qd, **options):
    options = {"dt": DT, "integrator": "time-stepping", "dissipation": True} | options
    return robot.simulate(q, qd, **options)


def is_at_rest(run, joints=slice(None), last=50):
    """Return True if qd is exactly zero and q bitwise constant during the last steps."""
    return not run.qd[-last:, joints].any() and not np.ptp(run.q[-last:, joints], axis=0).any()


# One joint ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["prismatic", "revolute"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_joint_sticks_below_its_limit_and_breaks_away_above_it(kind, sign):
    robot = slider(kind)
    inertia = robot.mass_matrix([0.0]).item()
    for part in (0.0, 0.5, 1.0 - 1e-9, 1.0):
        run = stepped(robot, [0.3], [0.0], duration=0.1, tau=[sign * part * LIMIT])
        assert not run.qd.any()
        assert not np.ptp(run.q)
    for part in (1.0 + 2e-6, 1.001, 2.0):
        load = sign * part * LIMIT
        run = stepped(robot, [0.3], [0.0], duration=0.1, tau=[load])
        expected = (load - sign * LIMIT) / inertia * 0.1
        assert run.qd[-1, 0] == pytest.approx(expected, rel=1e-7)
        assert run.unsolved == 0


def test_a_block_on_a_spring_stops_where_the_closed_form_says():
    """Amplitudes decrease by 2 f/k per half-period; the block stops when one is within f/k."""
    k, f, x = 40.0, 0.7, 0.1
    robot = slider(friction=f)
    exact = 6.0 * f / k - x  # after three half-periods
    misses = []
    for dt in (2e-3, 1e-3, 5e-4):
        run = stepped(robot, [x], [0.0], duration=3.0, dt=dt, tau=lambda t, q, qd: [-k * q[0]])
        assert is_at_rest(run)
        misses.append(abs(run.q[-1, 0] - exact))
    assert misses[0] < 5e-3
    assert misses[2] < 0.3 * misses[0]


def test_a_sliding_joint_stops_within_a_step_of_the_closed_form():
    v, a = 0.8, LIMIT / MASS
    run = stepped(SLIDER, [0.0], [v], duration=1.5 * v / a)
    assert is_at_rest(run)
    assert run.t[np.flatnonzero(run.qd[:, 0])[-1] + 1] == pytest.approx(v / a, abs=DT)
    assert run.q[-1, 0] == pytest.approx(0.5 * v * v / a, abs=v * DT)


def test_a_load_that_grows_breaks_the_joint_away_in_the_step_that_exceeds_the_limit():
    rate = 8.0
    steps = 300
    tau = rate * DT * np.arange(steps)[:, None]
    run = SLIDER.rollout(
        [0.0], [0.0], tau, steps=steps, dt=DT, integrator="time-stepping", dissipation=True
    )
    moved = tau[:, 0] > LIMIT
    assert moved.any()
    assert np.array_equal(run.qd[1:, 0] != 0.0, moved)
    expected = np.cumsum(DT / MASS * (tau[:, 0] - LIMIT) * moved)
    np.testing.assert_allclose(run.qd[1:, 0], expected, rtol=1e-9)


def test_a_ball_joint_rests_with_a_constant_quaternion():
    robot = slider("spherical", 0.05)
    run = stepped(robot, robot.neutral(), [0.4, -0.9, 0.3], duration=1.5)
    assert np.ptp(run.q[:20], axis=0).any()
    assert is_at_rest(run)


# Coupled joints ----------------------------------------------------------------------------------


def law_of_friction(robot, limits, before, after, tau, tolerance):
    """Check the impulses of one step, and return masks of the joints at rest and sliding."""
    (q, v0), v1 = before, after
    M, h = robot.mass_matrix(q), robot.bias_forces(q, v0)
    impulses = np.einsum("nij,nj->ni", M, v1 - v0) - DT * (tau - h)
    limits = np.broadcast_to(DT * limits, impulses.shape)
    room = tolerance * np.abs(DT * (tau - h)).max()
    assert np.all(np.abs(impulses) <= limits + room)
    sliding = v1 != 0.0
    close = np.abs(impulses + limits * np.sign(v1)) <= room
    assert np.all(close[sliding])
    return ~sliding, sliding


def chain(n=6):
    arm = chasles.robots.puma560() if n == 6 else chasles.robots.planar(n)
    limits = np.geomspace(30.0, 0.3, n)
    source = arm.model.source
    joints = zip(source.joints, limits, strict=True)
    joints = tuple(replace(joint, friction=float(f), damping=0.0) for joint, f in joints)
    return chasles.Robot(replace(source, joints=joints)), limits


@pytest.mark.parametrize("n", [3, 6, 10])
def test_coupled_joints_satisfy_the_law_of_friction(n):
    """Some joints of each state are at rest at first; some of these break away, some stop."""
    robot, limits = chain(n)
    rng, count = np.random.default_rng(n), 400
    q = rng.uniform(-1.5, 1.5, (count, n))
    qd = rng.normal(size=(count, n)) * 10.0 ** rng.uniform(-4, 0, (count, n))
    qd[rng.random((count, n)) < 0.5] = 0.0
    tau = 2.0 * limits * rng.normal(size=(count, n)) * (rng.random((count, n)) < 0.5)
    run = stepped(robot, q, qd, steps=1, tau=tau)
    assert run.unsolved.sum() == 0
    rest, sliding = law_of_friction(robot, limits, (q, qd), run.qd[:, 1], tau, 1e-6)
    still = qd == 0.0
    for each in (rest & still, rest & ~still, sliding & still, sliding & ~still):
        assert np.count_nonzero(each) > 20
    assert np.array_equal(robot.difference(q, run.q[:, 1])[rest], np.zeros(np.count_nonzero(rest)))


def test_joints_of_fast_chains_stop_and_break_away_without_long_line_searches():
    """The line search finds the velocities at which joints stop, however small their range."""
    robot = rubbed(chasles.robots.planar(12), 1.0)
    rng, shape = np.random.default_rng(0), (600, 12)
    q = rng.uniform(-1.0, 1.0, shape)
    qd = rng.normal(size=shape) * 10.0 ** rng.uniform(-4, 0, shape)
    qd[rng.random(shape) < 0.5] = 0.0
    tau = rng.normal(size=shape) * (rng.random(shape) < 0.7)
    run = stepped(robot, q, qd, steps=1, dt=1e-4, tau=tau)
    assert run.unsolved.sum() == 0
    assert np.count_nonzero(run.iterations >= PATIENT) <= 6  # 30 with half as many rounds


def test_batches_threads_and_single_states_have_the_same_bits():
    robot, limits = chain()
    rng = np.random.default_rng(0)
    q, qd = rng.uniform(-1.0, 1.0, (2, 9, 6))
    tau = limits * rng.normal(size=(9, 6))
    whole = stepped(robot, q, qd, steps=200, tau=tau, threads=1)
    assert np.any(whole.qd[:, -1] == 0.0)
    assert np.any(whole.qd[:, -1] != 0.0)
    shared = stepped(robot, q, qd, steps=200, tau=tau, threads=2)
    assert np.array_equal(whole.qd, shared.qd)
    for k in range(9):
        alone = stepped(robot, q[k], qd[k], steps=200, tau=tau[k])
        assert np.array_equal(alone.q, whole.q[k])
        assert np.array_equal(alone.qd, whole.qd[k])


def test_rest_in_float32():
    robot, limits = chain()
    rng, count, steps = np.random.default_rng(1), 16, 1000
    q, qd = rng.uniform(-1.0, 1.0, (2, count, 6))
    tau = 0.3 * limits * rng.normal(size=(count, 6))
    loop = Stepped(robot.model, Scene(robot.model, (), (), True), DT, None).loop("llvm", "float32")
    effort = np.zeros((count, len(STATISTICS)))
    states = [a.astype(np.float32) for a in (q, qd, effort)]
    given = [tau[:, None].astype(np.float32), np.zeros((1, 1, 1), np.float32)]
    loop(states, given, [], steps, steps, 1)
    before = [a.copy() for a in states]
    loop(states, given, [], 10, 10, 1)
    # The first three joints carry the weight of the arm; the friction of the others suffices.
    for each in (before, states):
        assert not each[1][:, 3:].any()
    assert np.array_equal(before[0][:, 3:], states[0][:, 3:])
    assert before[1][:, :3].any()


def test_a_continued_motion_remains_at_rest():
    robot, _ = chain()
    robot = robot.with_gravity((0.0, 0.0, 0.0))
    run = stepped(robot, np.zeros(6), 0.2 * np.ones(6), duration=2.0)
    again = stepped(robot, run.q[-1], run.qd[-1], duration=0.2)
    assert is_at_rest(run)
    assert not again.qd.any()
    assert np.array_equal(again.q[-1], run.q[-1])


# Contacts and limits -----------------------------------------------------------------------------


def test_a_slider_pressed_against_a_wall_and_against_its_limit_rests():
    """The wall and friction carry the load together."""
    wall = contact.Plane(None, (-1.0, 0.0, 0.0), (0.2, 0.0, 0.0))
    pair = contact.Pair(contact.Sphere("body", 0.1), wall, contact.Rigid(0.5))
    run = stepped(SLIDER, [0.0], [0.0], duration=1.0, tau=[5.0], contacts=[pair])
    assert is_at_rest(run)
    assert run.q[-1, 0] == pytest.approx(0.1, abs=1e-5)
    assert 5.0 - LIMIT - 1e-5 <= -run.touching.forces[-1, 0, 0] <= 5.0 + LIMIT + 1e-5
    run = stepped(slider(limit=0.1), [0.0], [0.0], duration=1.0, tau=[5.0], limits=True)
    assert is_at_rest(run)
    assert run.q[-1, 0] == pytest.approx(0.1, abs=1e-5)


def test_an_arm_that_pushes_at_a_wall_rests():
    robot = rubbed(chasles.robots.planar(3), 0.5).with_gravity((0.0, 0.0, 0.0))
    q = np.array([0.4, 0.5, 0.3])
    x = robot.forward_kinematics(q, frame="tip")[0, 3]
    wall = contact.Plane(None, (-1.0, 0.0, 0.0), (x + 0.01, 0.0, 0.0))
    pair = contact.Pair(contact.Point("tip"), wall, contact.Rigid(0.8))
    target = q - [0.05, 0.02, 0.0]
    control = chasles.rollouts.PDControl(np.full(3, 20.0), np.full(3, 5.0), target)
    run = stepped(robot, q, np.zeros(3), duration=1.0, contacts=[pair], control=control)
    assert run.unsolved == 0
    assert run.touching.forces[-1, 0, 0] < -0.1
    assert is_at_rest(run)


def standing(friction):
    robot = rubbed(chasles.robots.quadruped(), friction, names=LEGS)
    feet = [name for name in robot.frames if name.endswith("_foot")]
    pairs = [
        contact.Pair(contact.Sphere(name, 0.02), contact.Plane(), contact.Rigid(0.7))
        for name in feet
    ]
    q = robot.neutral()
    q[7:] = np.tile([0.0, 0.8, -1.6], 4)
    q[6] -= min(robot.forward_kinematics(q, frame=name)[2, 3] for name in feet) - 0.03
    gains = np.zeros((2, robot.nv))
    gains[:, 6:] = [[40.0], [1.0]]
    return robot, pairs, q, chasles.rollouts.PDControl(*gains, q)


LEGS = [
    joint.name
    for joint in chasles.robots.quadruped().model.source.joints
    if joint.kind == "revolute"
]


@pytest.mark.parametrize(("friction", "count"), [(1.0, 8), (6.0, 12)])
def test_the_joints_of_a_standing_quadruped_rest(friction, count):
    """If friction is low, some joints slide as long as the feet creep."""
    robot, pairs, q, control = standing(friction)
    run = stepped(robot, q, np.zeros(robot.nv), duration=2.0, contacts=pairs, control=control)
    assert run.unsolved == 0
    rests = ~run.qd[-100:, 6:].any(axis=0)
    assert np.count_nonzero(rests) == count
    assert not np.ptp(run.q[-100:, 7:], axis=0)[rests].any()
    weight = 9.81 * robot.mass_matrix(q)[3, 3]
    assert run.touching.forces[-1, :, 2].sum() == pytest.approx(weight, rel=1e-3)


def test_a_joint_rests_while_another_body_rebounds():
    """The time of an impact within a step does not move a joint that friction holds."""
    links = (*SLIDER.model.source.links, LinkData("ball", sphere(0.5, 0.1)))
    free = JointData("ball", "free", "rail", "ball")
    robot = chasles.Robot(Description("both", links, (*SLIDER.model.source.joints, free)))
    law = contact.Rigid(0.3, restitution=0.9)
    pair = contact.Pair(contact.Sphere("ball", 0.1), contact.Plane(), law)
    q = robot.neutral()
    q[robot.position_slice("ball").stop - 1] = 0.3
    tau = np.zeros(robot.nv)
    tau[robot.velocity_slice("joint")] = 2.9
    run = stepped(robot, q, np.zeros(robot.nv), duration=1.0, contacts=[pair], tau=tau)
    joint = robot.position_slice("joint")
    assert np.max(run.qd) > 1.0
    assert not np.ptp(run.q[:, joint])


# Closed loops and couplings ----------------------------------------------------------------------


@pytest.mark.parametrize("which", ["all", "dependent"])
@pytest.mark.parametrize("name", ["four_bar", "five_bar", "six_bar"])
def test_a_mechanism_that_its_friction_holds_rests(name, which):
    robot = getattr(chasles.robots, name)()
    others = [j.name for j in robot.model.source.joints if j.name not in robot.independent]
    robot = rubbed(robot, 100.0, None if which == "all" else others)
    y = np.array(MECHANISMS[name])
    q = robot.assemble(y)
    qd = robot.complete(q, np.full(len(y), 0.3))
    run = stepped(robot, q, qd, duration=0.4)
    assert run.unsolved == 0
    assert is_at_rest(run)
    assert np.max(np.abs(robot.loop_residual(run.q))) < 1e-12


def test_a_four_bar_breaks_away_at_the_virtual_work_of_all_its_friction():
    """The torque at the crank that overcomes friction f_i is the sum of |dq_i/dcrank| f_i."""
    bare = chasles.robots.four_bar().with_gravity((0.0, 0.0, 0.0))
    robot = rubbed(bare, 0.5)
    q = robot.assemble([0.6])
    most = 0.5 * np.abs(robot.complete(q, [1.0])).sum()
    for part, moves in ((1.0 - 1e-9, False), (1.0 + 2e-6, True)):
        run = stepped(robot, q, np.zeros(3), steps=1, tau=[part * most, 0.0, 0.0])
        assert run.qd[-1].any() == moves


def test_friction_in_one_of_two_degrees_of_freedom():
    """A held joint rests exactly while the rest of a five-bar linkage moves."""
    robot = chasles.robots.five_bar()
    held = robot.independent[0]
    robot = rubbed(robot, 100.0, [held])
    y = np.array(MECHANISMS["five_bar"])
    q = robot.assemble(y)
    run = stepped(robot, q, np.zeros(robot.nv), duration=0.3)
    joint = robot.position_slice(held)
    assert not np.ptp(run.q[:, joint])
    assert np.abs(run.qd[-1]).max() > 0.1


WEIGHTS = """
<mujoco>
  <worldbody>
    <body name="one"><joint name="x" type="slide" axis="0 0 1"/>
      <geom size="0.05" mass="1" contype="0" conaffinity="0"/></body>
    <body name="two" pos="1 0 0"><joint name="y" type="slide" axis="0 0 1" frictionloss="{}"/>
      <geom size="0.05" mass="2" contype="0" conaffinity="0"/></body>
  </worldbody>
  <tendon><fixed name="rub" frictionloss="{}">
    <joint joint="x" coef="1"/><joint joint="y" coef="0.5"/></fixed></tendon>
</mujoco>"""


def test_a_tendon_and_a_joint_hold_two_weights(tmp_path):
    file = tmp_path / "robot.xml"
    file.write_text(WEIGHTS.format(30.0, 30.0))
    run = stepped(chasles.load(file), [0.0, 0.0], [0.3, -0.2], duration=1.0)
    assert is_at_rest(run)
    # The tendon holds the sum x + y/2, which friction of the joint y does not hold on its own.
    file.write_text(WEIGHTS.format(5.0, 30.0))
    run = stepped(chasles.load(file), [0.0, 0.0], [0.0, 0.0], duration=0.5)
    assert abs(run.qd[-1] @ [1.0, 0.5]) < 1e-12
    tension = 9.81 * 1.5 - 0.25 * 5.0  # weights minus friction, in the direction of the motion
    tension /= 1.125
    assert run.qd[-1, 0] / 0.5 == pytest.approx(tension - 9.81, rel=1e-9)
    assert run.unsolved == 0


DOG = """<mujoco><worldbody><geom type="plane" size="5 5 .1"/>
<body pos="0 0 .4"><freejoint/><geom type="box" size=".2 .1 .05" mass="3"/>
  <body pos=".2 0 0"><joint name="x" axis="0 1 0" range="-60 60" frictionloss="1e6"/>
  <geom type="capsule" fromto="0 0 0 .1 0 -.25" size=".03" mass=".5"/>
    <body pos=".1 0 -.25"><joint name="y" axis="0 1 0" range="-60 60"/>
    <geom type="capsule" fromto="0 0 0 -.1 0 -.1" size=".03" mass=".3"/></body></body>
  <body pos="-.2 0 0"><joint name="z" axis="0 1 0" range="-60 60" frictionloss="1e6"/>
  <geom type="capsule" fromto="0 0 0 -.1 0 -.25" size=".03" mass=".5"/>
    <body pos="-.1 0 -.25"><joint name="w" type="ball"/>
    <geom type="sphere" size=".05" pos="0 0 -.05" mass=".3"/></body></body>
</body></worldbody><tendon>
<fixed frictionloss="1e6"><joint joint="x" coef="1"/><joint joint="y" coef="-0.5"/></fixed>
<fixed frictionloss="1e6"><joint joint="x" coef="1"/><joint joint="z" coef="1"/></fixed>
<fixed frictionloss="1e6"><joint joint="x" coef="2"/><joint joint="y" coef="-1"/></fixed>
</tendon></mujoco>"""


def test_huge_friction_of_dependent_tendons_adds_no_energy(tmp_path):
    path = tmp_path / "dog.xml"
    path.write_text(DOG)
    robot, rng, n = chasles.load(path), np.random.default_rng(0), 20
    moved = np.concatenate([np.zeros((n, 6)), 0.2 * rng.normal(size=(n, robot.nv - 6))], axis=1)
    q = robot.integrate(np.tile(robot.neutral(), (n, 1)), moved)
    qd = 0.5 * rng.normal(size=(n, robot.nv))
    options = {"dt": 2e-3, "duration": 1.5, "integrator": "time-stepping"}
    with pytest.warns(UserWarning, match="Box on Capsule"):
        run = robot.simulate(q, qd, contacts="file", **options)
    assert run.excess.max() < 1e-9


@pytest.mark.parametrize("friction", [0.0, LIMIT])
def test_a_joint_beyond_its_limit_returns_without_a_load(friction):
    run = stepped(slider(friction=friction, limit=0.1), [0.11], [0.0], duration=0.2, limits=True)
    assert run.unsolved == 0
    assert run.q[-1, 0] < 0.1
