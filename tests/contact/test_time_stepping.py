"""Closed forms of contact, in steps of 2 ms by the compiled time-stepping integrator."""

import itertools
import math
import sys
import time

import numpy as np
import pytest
from support import raises

import chasles
from chasles import contact
from chasles.expr import interpret
from chasles.motion.drivers import stepping
from chasles.motion.drivers.stepping import Stepped
from chasles.motion.steps.scene import Scene
from chasles.motion.steps.stepping import EFFORT, ROUGH, STATISTICS

DT = 0.002


def boxes(*rows):
    """Return the MJCF text of free bodies, given as (name, mass, principal moments)."""
    text = "".join(
        f'<body name="{name}"><freejoint name="{name}_free"/>'
        f'<inertial pos="0 0 0" mass="{m}" diaginertia="{a} {b} {c}"/></body>'
        for name, m, (a, b, c) in rows
    )
    return f"<mujoco><option gravity='0 0 -9.81'/><worldbody>{text}</worldbody></mujoco>"


def brick_moments(mass, edges):
    a, b, c = np.array(edges) ** 2
    return mass / 12.0 * np.array([b + c, a + c, a + b])


@pytest.fixture
def robot(tmp_path):
    def made(*rows):
        file = tmp_path / "bodies.xml"
        file.write_text(boxes(*rows))
        return chasles.load(file)

    return made


def posed(*places, quaternion=(1.0, 0.0, 0.0, 0.0)):
    return np.concatenate([[*quaternion, *place] for place in places])


def stepped(robot, q, pairs, duration, qd=None, dt=DT, **more):
    qd = np.zeros(robot.nv) if qd is None else qd
    return robot.simulate(
        q, qd, duration=duration, dt=dt, contacts=pairs, integrator="time-stepping", **more
    )


@pytest.mark.parametrize(
    ("interactive", "terminal", "command", "announced"),
    [
        (True, True, False, True),
        (True, False, False, True),  # a notebook
        (False, True, False, True),  # a script in a terminal
        (False, False, False, False),
        (False, True, True, False),  # commands show a progress bar
    ],
)
def test_slow_compilation_is_announced(
    interactive, terminal, command, announced, monkeypatch, capsys
):
    monkeypatch.setattr(stepping, "SLOW", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.delitem(sys.modules, "chasles.cli", raising=False)
    if command:
        monkeypatch.setitem(sys.modules, "chasles.cli", sys)
    if interactive:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    with stepping.announced("compiling ..."):
        time.sleep(0.05)
    assert capsys.readouterr().err == ("compiling ...\n" if announced else "")


def slid(robot, mu, angle):
    """Return the speed down a slope after 0.5 s, and the largest gap of the lowest corner."""
    edges = (0.2, 0.1, 0.05)
    made = robot(("brick", 1.0, brick_moments(1.0, edges)))
    n = (-math.sin(angle), 0.0, math.cos(angle))
    plane = contact.Plane(None, n)
    pair = contact.Pair(contact.Box("brick", edges), plane, contact.Rigid(friction=mu))
    turned = (math.cos(angle / 2), 0.0, -math.sin(angle / 2), 0.0)
    run = stepped(made, posed(0.025 * np.array(n), quaternion=turned), [pair], 0.5)
    assert run.compiled
    assert run.unsolved == 0
    return -run.qd[-1, 3], run.touching.gaps.min(axis=1).max()


def test_a_brick_sticks_below_the_angle_of_friction_and_slides_above_it(robot):
    mu = 0.5
    speed, _ = slid(robot, mu, 0.95 * math.atan(mu))
    assert abs(speed) < 1e-5
    for mu, angle in ((0.5, 1.05 * math.atan(0.5)), (1.5, 1.2)):
        speed, lifted = slid(robot, mu, angle)
        expected = 9.81 * (math.sin(angle) - mu * math.cos(angle)) * 0.5
        # The small acceleration is a difference of large forces, so its relative error is larger.
        assert speed == pytest.approx(expected, rel=1e-2)
        assert lifted < 1e-6  # the brick does not lift off


def test_a_ball_that_slides_begins_to_roll_with_five_sevenths_of_its_speed(robot):
    made = robot(("ball", 1.0, [0.4 * 0.01] * 3))
    law = contact.Rigid(friction=0.3)
    pair = contact.Pair(contact.Sphere("ball", 0.1), contact.Plane(), law)
    run = stepped(made, posed((0, 0, 0.1)), [pair], 0.6, np.array([0, 0, 0, 2.0, 0, 0]))
    v, w = world_velocity(run, -1)
    assert v[0] == pytest.approx(10.0 / 7.0, rel=2e-3)
    assert w[1] == pytest.approx(v[0] / 0.1, rel=1e-3)


def world_velocity(run, k):
    """Return the linear and angular velocity of a free body along the world's axes."""
    w, x, y, z = run.q[k, :4]
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return R @ run.qd[k, 3:6], R @ run.qd[k, :3]


def test_a_ball_bounces_to_the_square_of_restitution_of_its_height(robot):
    e = 0.8
    made = robot(("ball", 1.0, [1e-3] * 3))
    law = contact.Rigid(friction=0.3, restitution=e)
    pair = contact.Pair(contact.Sphere("ball", 0.05), contact.Plane(), law)
    run = stepped(made, posed((0, 0, 1.05)), [pair], 2.6)
    high = run.q[:, 6] - 0.05
    peaks = high[1:-1][(high[1:-1] > high[:-2]) & (high[1:-1] > high[2:])]
    assert np.allclose(peaks[:3], [e**2, e**4, e**6], rtol=0.01)


def test_a_spinning_disc_stops_by_torsion(robot):
    moment, torsion = 2e-3, 0.01
    made = robot(("disc", 1.0, [1e-3, 1e-3, moment]))
    law = contact.Rigid(friction=0.0, torsion=torsion)
    pair = contact.Pair(contact.Cylinder("disc", 0.05, (0, 0, -0.01), (0, 0, 0.01)),
                        contact.Plane(), law)  # fmt: skip
    run = stepped(made, posed((0, 0, 0.01)), [pair], 0.1, np.array([0, 0, 10.0, 0, 0, 0]))
    expected = 10.0 - torsion * 9.81 / moment * 0.1
    assert run.qd[-1, 2] == pytest.approx(expected, rel=0.01)


def stack(robot, masses, duration, dt=DT):
    edges = (0.2, 0.2, 0.1)
    made = robot(*((f"b{k}", m, brick_moments(m, edges)) for k, m in enumerate(masses)))
    law = contact.Rigid(friction=0.6)
    shapes = [contact.Box(f"b{k}", edges) for k in range(len(masses))]
    pairs = [contact.Pair(shapes[0], contact.Plane(), law)]
    pairs += [contact.Pair(b, a, law) for a, b in itertools.pairwise(shapes)]
    q = posed(*((0.0, 0.0, 0.05 + 0.1 * k) for k in range(len(masses))))
    return q, stepped(made, q, pairs, duration, dt=dt, every=100)


@pytest.mark.parametrize("masses", [[1.0] * 3, [1.0, 1.0, 100.0]])
def test_stacks_stand(robot, masses):
    q, run = stack(robot, masses, 2.0)
    assert np.abs(run.q[-1] - q).max() < 1e-4
    assert np.abs(run.qd[-1]).max() < 1e-3


def test_batches_have_the_bits_of_single_motions(robot):
    edges = (0.2, 0.1, 0.05)
    made = robot(("brick", 1.0, brick_moments(1.0, edges)))
    pair = contact.Pair(contact.Box("brick", edges), contact.Plane(), contact.Rigid(friction=0.5))
    rng = np.random.default_rng(1)
    q = made.integrate(np.tile(posed((0, 0, 0.2)), (19, 1)), 0.5 * rng.normal(size=(19, 6)))
    q[:, 6] += 0.3
    qd = rng.normal(size=(19, 6))
    whole = stepped(made, q, [pair], 0.6, qd, every=50)
    for k in (0, 7, 18):
        one = stepped(made, q[k], [pair], 0.6, qd[k], every=50)
        assert np.array_equal(whole.q[k], one.q)
        assert np.array_equal(whole.qd[k], one.qd)
    for n in (2, 3, 9):  # the last tile is incomplete
        some = stepped(made, q[:n], [pair], 0.6, qd[:n], every=50)
        assert np.array_equal(some.q, whole.q[:n])


def pushed(robot, **more):
    """Simulate a sliding brick that is pushed sideways, so that its friction changes direction."""
    edges = (0.2, 0.1, 0.05)
    made = robot(("brick", 1.0, brick_moments(1.0, edges)))
    law = contact.Rigid(friction=0.3)
    pair = contact.Pair(contact.Box("brick", edges), contact.Plane(), law)
    options = {"qd": np.array([0, 0, 0, 1.0, 0, 0]), "control": np.array([0, 0, 0, 0, 2.0, 0])}
    q, duration = more.pop("q", posed((0, 0, 0.025))), more.pop("duration", 0.2)
    return stepped(made, q, [pair], duration, **options | more)


def test_the_motion_goes_on_from_its_end_with_the_same_bits(robot):
    whole, first = pushed(robot), pushed(robot, steps=77)
    second = pushed(robot, resume=first.end)
    assert np.array_equal(np.concatenate([first.q, second.q]), whole.q)


def test_the_load_of_the_previous_step_predicts_friction_that_turns(robot):
    """Single steps lack the load of the previous step, and need more iterations."""
    whole = pushed(robot)
    alone = pushed(robot, q=whole.q[:-1], qd=whole.qd[:-1], duration=DT)
    assert whole.qd[-1, 4] > 0.1
    assert np.abs(alone.qd[:, -1] - whole.qd[1:]).max() < 1e-6
    assert whole.iterations < alone.iterations.mean() - 0.5


def test_compliant_ground_carries_the_weight_at_its_depth_and_is_stable_at_any_step(robot):
    made = robot(("ball", 2.0, [1e-3] * 3))
    law = contact.Compliant(stiffness=2e4, relaxation=0.01, friction=0.5)
    pair = contact.Pair(contact.Sphere("ball", 0.05), contact.Plane(), law)
    for dt in (0.001, 0.01):
        run = stepped(made, posed((0, 0, 0.1)), [pair], 2.0, dt=dt)
        assert 0.05 - run.q[-1, 6] == pytest.approx(2.0 * 9.81 / 2e4, rel=1e-4)
        assert run.touching.forces[-1, 0, 2] == pytest.approx(2.0 * 9.81, rel=1e-4)


def test_a_spinning_body_in_flight_keeps_its_linear_velocity(robot):
    made = robot(("ball", 1.0, [1e-3] * 3))
    start = np.array([3.0, -20.0, 5.0, 1.0, 2.0, 3.0])
    run = stepped(made.with_gravity((0, 0, 0)), posed((0, 0, 0)), [], 1.0, start)
    assert np.allclose(world_velocity(run, -1)[0], [1.0, 2.0, 3.0], rtol=1e-12)
    assert np.allclose(run.q[-1, 4:7], [1.0, 2.0, 3.0], rtol=1e-12)


def test_a_stiff_controller_is_stable_at_five_milliseconds():
    arm = chasles.robots.puma560()
    gains = chasles.rollouts.PDControl(1e5, 1e3, np.zeros(arm.nq))
    run = arm.simulate(
        0.3 * np.ones(arm.nq), np.zeros(arm.nv), duration=1.0, dt=0.005, control=gains,
        integrator="time-stepping",
    )  # fmt: skip
    assert np.abs(run.q[-1]).max() < 1e-2
    assert np.abs(run.qd[-1]).max() < 1e-3


def test_a_joint_stops_at_its_limit_and_dry_friction_holds_it(tmp_path):
    file = tmp_path / "pendulum.xml"
    file.write_text(
        "<mujoco><compiler angle='radian'/><worldbody><body><joint name='j' axis='0 1 0' "
        "limited='true' range='-0.5 0.5' frictionloss='0.2'/>"
        "<geom type='sphere' size='0.05' pos='0.3 0 0' mass='1'/></body></worldbody></mujoco>"
    )
    robot = chasles.load(file)
    run = robot.simulate([0.0], [0.0], duration=2.0, dt=0.005, contacts="file")
    assert run.q[-1, 0] == pytest.approx(0.5, abs=1e-5)
    assert run.qd[-1, 0] == 0.0
    light = robot.with_gravity((0.0, 0.0, -0.5))  # 0.15 N m, less than the dry friction
    run = light.simulate([0.0], [0.0], duration=2.0, dt=0.005, contacts="file")
    assert not run.q.any()
    assert not run.qd.any()


class Push:
    """Controller that counts its calls."""

    calls = 0

    def __call__(self, t, q, qd):
        self.calls += 1
        return np.array([0, 0, 0, 0, 0, 9.81])


def test_controllers_that_remember_are_called_at_each_step(robot):
    made, push = robot(("ball", 1.0, [1e-3] * 3)), Push()
    run = stepped(made, posed((0, 0, 1.0)), [], 0.1, control=push)
    assert not run.compiled
    assert push.calls == 50
    assert run.q[-1, 6] == pytest.approx(1.0, abs=1e-9)


def test_what_it_does_not_support_is_refused(robot):
    made = robot(("ball", 1.0, [1e-3] * 3))
    for options, code in (
        ({"compiled": False}, "E-MOTION-590"),
        ({"times": [0.0, 0.1]}, "E-MOTION-135"),
        ({"contact_states": np.zeros(2)}, "E-MOTION-131"),
        ({"contacts": "floor"}, "E-MOTION-134"),
        ({"device": "cuda", "control": Push()}, "E-MOTION-171"),
    ):
        with pytest.raises(chasles.errors.ChaslesError) as error:
            made.simulate(
                posed((0, 0, 1.0)), np.zeros(6), duration=0.1, dt=DT,
                **{"integrator": "time-stepping"} | options,
            )  # fmt: skip
        assert error.value.code == code


def test_the_function_without_compilation_names_the_method_that_compiles():
    arm, start = chasles.robots.planar(2), [0.0, 0.0]
    with raises("E-MOTION-590", "robot.simulate", "compiled=None"):
        chasles.simulate(arm, start, start, duration=0.01, integrator="time-stepping")
    given = {"duration": 0.01, "integrator": "time-stepping"}
    run = chasles.simulate(arm, start, start, compiled=None, **given)
    assert np.array_equal(run.q, arm.simulate(start, start, **given).q)


def test_an_asymmetric_body_that_spins_fast_gains_no_energy(robot):
    made = robot(("brick", 1.0, [1e-3, 2e-3, 2.9e-3])).with_gravity((0, 0, 0))
    run = stepped(made, posed((0, 0, 0)), [], 4.0, np.array([50.0, 60.0, -40.0, 0, 0, 0]), dt=0.004)
    energy = made.kinetic_energy(run.q, run.qd)
    assert energy.max() <= energy[0] * (1.0 + 1e-9)


def test_parameters_need_a_function_that_takes_them():
    """Parameters without such a function are rejected, and do not change the cached step."""
    arm = chasles.robots.planar(2)
    state, rest = np.array([0.3, 0.2]), {"integrator": "time-stepping", "duration": 0.01, "dt": DT}
    for control in ({}, {"tau": np.ones(2)}):
        with raises("E-MOTION-018"):
            arm.simulate(state, state, parameters=np.ones(2), **control, **rest)
    assert np.all(np.isfinite(arm.simulate(state, state, **rest).q))

    def remembers(t, q, qd, p):
        return np.linalg.solve(np.eye(2), np.array([float(x) for x in qd])) * float(p[0])

    with raises("E-MOTION-161"):
        arm.simulate(state, state, control=remembers, parameters=np.ones(1), **rest)


def test_friction_too_small_to_compute_with_is_none(robot):
    """Results are bitwise identical to those without friction.

    A fixed shape that is exactly at rest gives finite results.
    """
    made, tiny = robot(("ball", 1.0, [1e-3] * 3)), 1e-300
    ball, still = contact.Sphere("ball", 0.1), contact.Sphere(None, 0.1, (0.0, 0.0, -0.1))
    for law in (contact.Rigid(tiny), contact.Rigid(0.0, torsion=tiny, rolling=tiny)):
        both = [
            stepped(made, posed((0.01, 0, 0.12)), [contact.Pair(ball, still, law)], 0.1)
            for law in (law, contact.Rigid())
        ]
        assert np.array_equal(both[0].q, both[1].q)
    base = contact.Pair(contact.Sphere("base", 0.1), contact.Plane(), contact.Rigid(tiny))
    arm = chasles.robots.puma560()
    run = arm.simulate(
        np.zeros(6), np.zeros(6), duration=DT, dt=DT, contacts=[base], integrator="time-stepping"
    )
    assert np.all(np.isfinite(run.qd))


def test_masses_beyond_any_machine_do_not_stop_a_step(tmp_path):
    """Inverse masses that underflow or overflow are bounded, at limits and at dry friction."""
    file = tmp_path / "slider.urdf"
    for mass in (1e99, 1e-308):
        file.write_text(
            "<robot name='r'><link name='world'/><link name='b'><inertial>"
            f"<mass value='{mass}'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"
            "</inertial></link><joint name='j' type='prismatic'><parent link='world'/>"
            "<child link='b'/><limit lower='-0.5' upper='0.5' velocity='1' effort='1'/>"
            "<dynamics friction='0.2'/></joint></robot>"
        )
        pair = contact.Pair(contact.Sphere("b", 0.1), contact.Plane(), contact.Rigid(0.5))
        slider = chasles.load(file)
        run = stepped(slider, [0.0], [pair], 2 * DT, np.zeros(1), limits=True, dissipation=True)
        assert np.all(np.isfinite(run.qd))


def test_float32_solves_every_step_of_quadrupeds_with_random_torques():
    made, rng, n, steps = chasles.robots.quadruped(), np.random.default_rng(0), 256, 100
    feet = [name for name in made.frames if name.endswith("foot")]
    law, ground = contact.Rigid(friction=0.7), contact.Plane()
    pairs = tuple(contact.Pair(contact.Sphere(name, 0.02), ground, law) for name in feet)
    scene = Scene(made.model, pairs, (), False, False)
    q = np.tile(made.neutral(), (n, 1))
    q[:, 7:] += 0.3 * rng.normal(size=(n, made.nq - 7))
    lowest = np.min([made.forward_kinematics(q, frame=name)[:, 2, 3] for name in feet], axis=0)
    q[:, 6] += 0.02 - lowest + rng.uniform(0.0, 0.02, n)
    torques = rng.normal(size=(n, 1, made.nv)) * np.r_[np.zeros(6), np.ones(made.nv - 6)]
    states = [q, rng.normal(size=(n, made.nv)), np.zeros((n, 12)), np.zeros((n, len(STATISTICS)))]
    states = [a.astype(np.float32) for a in states]
    run = Stepped(made.model, scene, DT, None).loop("llvm", "float32")
    run(states, [torques.astype(np.float32), np.zeros((1, 1, 1), np.float32)], [], steps, steps, 1)
    effort = dict(zip(STATISTICS, states[3].T, strict=True))
    assert np.isfinite(states[1]).all()
    assert effort["residual"].max() <= ROUGH
    energy = made.kinetic_energy(*(a.astype(float) for a in states[:2]))
    assert np.all(effort["excess"] <= ROUGH * (energy + np.abs(effort["work"])))


def test_steps_with_fixed_bounds_of_friction_are_counted_apart():
    """Late iterations fix the bounds of friction, and the last one leaves a step unsolved."""
    robot = chasles.robots.quadruped()
    feet = [f for f in robot.frames if f.endswith("_foot")]
    law = contact.Rigid(0.6)
    pairs = tuple(contact.Pair(contact.Sphere(f, 0.02), contact.Plane(), law) for f in feet)
    steps = Stepped(robot.model, Scene(robot.model, pairs), 0.002, None).steps
    q = robot.neutral()
    q[7:] = np.tile([0.0, 0.8, -1.6], 4)
    q[6] -= min(robot.forward_kinematics(q, frame=f)[2, 3] for f in feet) - 0.0199
    given = {v.name: [0.0] * v.size for v in steps.inputs} | {"q": q.tolist()}
    begun = interpret(steps.begin(), given)

    def ended(count, tolerance):
        state = begun | {"memory": [0.0, count, *begun["memory"][2:]]}
        program = steps.rescue(tolerance)
        for _ in range(50):
            if state["memory"][0] == 0.0:
                state |= interpret(program, {v.name: state[v.name] for v in program.inputs})
        effort = interpret(steps.end, given | state)["effort"]
        return dict(zip(EFFORT, effort, strict=False))

    for count, tolerance, unsolved, held in ((20, 1e-6, 0, 0), (60, 1e-6, 1, 1), (99, 0.0, 1, 0)):
        found = ended(float(count), tolerance)
        assert (found["unsolved"], found["held"]) == (unsolved, held)
