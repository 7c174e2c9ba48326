"""Soft contact in compiled steps and simulations: closed forms, momentum, energy, a quadruped.

The geometry is compared with `contact_points`. `test_geometry` compares the rates of
`contact_points` with finite differences.
"""

import math
from typing import Any

import numpy as np
import pytest
from contact_bodies import GRAVITY, ball, block, body, touch, turned
from scipy.linalg import expm
from support import close, raises
from test_geometry import BALL, HILLS, PAIRS, TWO, states

import chasles
from chasles import contact
from chasles.backends import compile as compiled
from chasles.backends.arrays import call
from chasles.expr import RULES, Arena
from chasles.mathematics.linear import Vector
from chasles.model import Description, JointData
from chasles.robots import four_bar, quadruped
from chasles.rollouts import STEPS, Contacts, PDControl

FRICTION = contact.SoftFriction(0.5, 2e4, 60.0)
SURFACE = contact.SoftContact(contact.SoftSurface(4000.0, 40.0), FRICTION)
HERTZ = contact.SoftContact(contact.HuntCrossley(5e4, 0.3), FRICTION)
TWOFOLD = contact.SoftContact(
    contact.TwoSoftSurfaces(contact.SoftSurface(8e3, 60.0), contact.SoftSurface(7e3, 90.0)),
    FRICTION,
)
SOLID = contact.SoftContact(contact.StandardSolid(9e3, 4e3, 40.0), FRICTION)
AZAD = contact.SoftContact(contact.AzadFeatherstone(5e4, 200.0))
LAWS = [SURFACE, HERTZ, TWOFOLD, AZAD, SOLID]
GROUNDS, ROUND = contact.Plane | contact.Ground, contact.Point | contact.Sphere
SOFT = [
    (first, second)
    for first, second in PAIRS
    if (isinstance(second, GROUNDS) and isinstance(first, ROUND | contact.Capsule | contact.Box))
    or (isinstance(first, ROUND) and isinstance(second, ROUND | contact.Capsule | contact.Box))
]
INTEGRATORS = [name for name, row in chasles.INTEGRATORS.items() if not row.hamiltonian]


def law_name(law: contact.SoftContact) -> str:
    return type(law.normal).__name__


def sliding_mass(mass: float = 1.5) -> chasles.Robot:
    """Robot with a mass that moves along x and z, and does not rotate."""
    slide = JointData("x", "prismatic", None, "carriage", axis=Vector.of(1.0, 0.0, 0.0))
    lift = JointData("z", "prismatic", "carriage", "body", axis=Vector.of(0.0, 0.0, 1.0))
    links = body(0.0, (0.0, 0.0, 0.0), "carriage"), body(mass, (0.1, 0.1, 0.1))
    return chasles.Robot(Description("mass", links, (slide, lift)))


POINT = contact.Pair(contact.Point("body"), contact.Plane(), SURFACE)


# Geometry --------------------------------------------------------------------------------------


def overlapping() -> tuple[np.ndarray, np.ndarray]:
    """Random configurations and velocities of two bodies near each other."""
    q, qd, _ = states(30)
    q[:, 4:7] *= 0.3
    q[:, 6] -= 0.1
    return q, qd


@pytest.mark.parametrize("shapes", SOFT, ids=lambda p: "-".join(type(s).__name__ for s in p))
def test_traced_contacts_are_those_of_arrays(shapes: Any) -> None:
    """Gaps and forces on expressions agree with arrays; Jacobians of the contact give the slip."""
    law = contact.SoftContact(contact.HuntCrossley(1e3, 0.1, exponent=1.0))
    sticky = contact.SoftContact(law.normal, contact.SoftFriction(1e6, 1.0, 1.0))
    q, qd = overlapping()
    pressed = 0
    for with_law in (law, sticky):
        program = Contacts(TWO.model, (contact.Pair(*shapes, with_law),)).program(1e-3)
        zero = np.zeros((len(q), sum(v.size for v in program.inputs if v.name == "states")))
        forces, gaps, _ = call(compiled(program), "contacts", (q, qd, zero))
        for k, found in enumerate(contact.contact_points(TWO, q, qd, *shapes)):
            close(gaps[:, k], found.gap, 1e-10, scale=1.0)
            for i in np.flatnonzero(found.gap < 0.0):
                arrays = {n: getattr(found, n)[i] for n in found._fields[2:7]}
                one, pressed = found._replace(**arrays), pressed + 1
                u = touch(TWO.mechanism, q[i], qd[i], one).velocity
                push, _ = law.normal.response([], one.gap, one.normal @ u)
                expected = push * one.normal
                if with_law is sticky and push > 0.0:
                    expected = expected - (u - one.normal * (one.normal @ u))
                assert np.allclose(forces[i, k], expected, rtol=1e-8, atol=1e-8)
    assert pressed > 4


@pytest.mark.parametrize("shapes", SOFT, ids=lambda p: "-".join(type(s).__name__ for s in p))
def test_action_is_reaction(shapes: Any) -> None:
    """The wrenches on two moving bodies cancel about the world's origin."""
    contacts = Contacts(TWO.model, (contact.Pair(*shapes, SURFACE),))
    arena = Arena(RULES)
    for q, qd in zip(*overlapping(), strict=True):
        found = contacts.pressed(arena, q.tolist(), qd.tolist(), [0.0] * contacts.states)
        total, largest = np.zeros(6), 0.0
        for frame, (*moment, x, y, z) in zip(
            contacts.frames, contacts.wrenches(arena, q.tolist(), found).values(), strict=True
        ):
            o = TWO.forward_kinematics(q, frame=frame)[:3, 3]
            total += [*(moment + np.cross(o, [x, y, z])), x, y, z]
            largest = max(largest, abs(x), abs(y), abs(z))
        if shapes[1].frame is None:
            pushes = sum((np.array(list(f)) for f in contacts.forces(found)), np.zeros(3))
            total[3:] -= pushes
            total[:3] = 0.0
        assert np.abs(total).max() <= 1e-12 * largest


def test_balls_that_begin_in_one_place_are_counted() -> None:
    """The frames are at the world's origin, so the centers coincide and no normal exists."""
    pair = contact.Pair(contact.Sphere("upper", 0.1), contact.Sphere("lower", 0.1), SURFACE)
    assert Contacts(TWO.model, (pair,)).states == SURFACE.states


def test_two_bodies_keep_their_momentum() -> None:
    robot = TWO.with_gravity((0.0, 0.0, 0.0))
    q = robot.neutral()
    q[4:7] = (0.1, 0.05, 0.45)
    qd = np.array([1.0, 2.0, -1.0, 0.3, 0.2, -2.0, 0.5, -0.4, 0.3, 0.0, 0.1, 0.0])
    pair = contact.Pair(BALL, contact.Sphere("lower", 0.2), SURFACE)
    motion = robot.rollout(q, qd, dt=1e-5, steps=40000, every=1000, contacts=[pair])
    assert motion.touching is not None
    assert np.abs(motion.touching.forces).max() > 10.0
    momentum = robot.momentum(motion.q, motion.qd, at="world")
    close(momentum, np.broadcast_to(momentum[0], momentum.shape), 1e-4)  # integration error


# Closed forms ----------------------------------------------------------------------------------


def on_springs(t: float) -> np.ndarray:
    """Return x, z, xd, zd of the sliding mass on its contact springs at time t after a push."""
    m, K, D = 1.5, 4000.0, 40.0
    A = np.zeros((4, 4))
    A[:2, 2:] = np.eye(2)
    A[2:, :2] = -np.diag([FRICTION.stiffness, K]) / m
    A[2:, 2:] = -np.diag([FRICTION.damping, D]) / m
    rest = np.array([0.0, -m * GRAVITY / K, 0.0, 0.0])
    return rest + expm(A * t) @ np.array([0.0, 0.0, 0.01, 0.05])


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("semi-implicit", 1), ("rk4", 4)])
def test_spring_and_damper_that_keep_touching(method: str, order: int) -> None:
    """The error of a mass pushed sideways and down has the order of the integrator.

    The error includes those of surface and friction states.
    """
    robot = sliding_mass()
    start = on_springs(0.0)
    z = [start[1], 0.0, 0.0]
    errors = []
    for n in (250, 500):
        motion = robot.rollout(
            start[:2],
            start[2:],
            dt=0.1 / n,
            steps=n,
            integrator=method,
            contacts=[POINT],
            contact_states=z,
        )
        assert motion.touching is not None
        assert motion.touching.forces[:, 0, 2].min() > 0.0
        errors.append(np.abs([*motion.q[-1], *motion.qd[-1]] - on_springs(0.1)).max())
    assert order - 0.4 < np.log2(errors[0] / errors[1]) < order + 0.6
    assert errors[1] < (1e-9 if order == 4 else 1e-3)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_spring_and_damper_by_every_integrator(integrator: str) -> None:
    robot, start = sliding_mass(), on_springs(0.0)
    options: dict[str, Any] = {"contacts": [POINT], "contact_states": [start[1], 0.0, 0.0]}
    order = min(chasles.INTEGRATORS[integrator].order, 4)
    motion = chasles.simulate(
        robot,
        start[:2],
        start[2:],
        duration=0.1,
        dt=5e-4,
        rtol=1e-9,
        atol=1e-12,
        integrator=integrator,
        **options,
    )
    error = np.abs([*motion.q[-1], *motion.qd[-1]] - on_springs(0.1)).max()
    assert error < {1: 3e-3, 2: 3e-5, 3: 3e-7, 4: 3e-8}[order]


@pytest.mark.parametrize("method", STEPS)
def test_a_surface_left_alone_recovers(method: str) -> None:
    robot = sliding_mass()
    motion = robot.rollout(
        [0.0, 1.0],
        [0.0, 0.0],
        dt=1e-3,
        steps=20,
        integrator=method,
        contacts=[POINT],
        contact_states=[-2e-3, 1e-3, -1e-3],
    )
    assert motion.touching is not None
    assert not motion.touching.forces.any()
    paces = np.array([4000.0 / 40.0, 2e4 / 60.0, 2e4 / 60.0])
    right = np.array([-2e-3, 1e-3, -1e-3]) * np.exp(-paces * motion.t[:, None])
    tolerance = {1: 1e-12, 2: 1e-2, 3: 1e-3, 4: 1e-3}  # order 1 uses the closed form; K h/D = 1/3
    close(motion.touching.states, right, tolerance[STEPS[method].order])


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_a_dropped_ball_comes_to_rest(law: contact.SoftContact) -> None:
    """The ground carries the ball's weight at the depth where the springs balance it."""
    robot = ball(2.0, 0.3)
    q = robot.neutral()
    q[6] = 0.35
    pair = contact.Pair(contact.Sphere("body", 0.3), contact.Plane(), law)
    motion = robot.rollout(q, np.zeros(6), dt=1e-4, steps=60000, every=60000, contacts=[pair])
    assert motion.touching is not None
    weight = 2.0 * GRAVITY
    close(motion.touching.forces[-1, 0], [0.0, 0.0, weight], 1e-3)
    depth = -motion.touching.gaps[-1, 0]
    springs = {"SoftSurface": 4e3, "TwoSoftSurfaces": 8e3 * 7e3 / 15e3}
    stiffness = (springs | {"StandardSolid": 9e3 * 4e3 / 13e3}).get(law_name(law))
    right = (weight / 5e4) ** (2.0 / 3.0) if stiffness is None else weight / stiffness
    assert depth == pytest.approx(right, rel=1e-3)


@pytest.mark.parametrize(("angle", "slips"), [(0.4, False), (0.55, True)])
def test_a_block_on_an_incline(angle: float, slips: bool) -> None:
    """The block slips with g (sin - mu cos) above arctan(mu) = 0.4636; below, springs hold it."""
    robot = block(2.0, (0.4, 0.3, 0.2))
    slope = contact.Plane(None, (math.sin(angle), 0.0, math.cos(angle)))
    pair = contact.Pair(contact.Box("body", (0.4, 0.3, 0.2)), slope, SURFACE)
    q = np.concatenate([turned(angle), 0.1 * np.array(slope.normal)])
    motion = robot.rollout(q, np.zeros(6), dt=1e-4, steps=15000, every=5000, contacts=[pair])
    assert motion.touching is not None
    forces = motion.touching.forces[-1].sum(axis=0)
    down = np.array([math.cos(angle), 0.0, -math.sin(angle)])
    normal = np.array(slope.normal)
    assert forces @ normal == pytest.approx(2.0 * GRAVITY * math.cos(angle), rel=1e-6)
    speed = motion.qd[:, 3:] @ [1.0, 0.0, 0.0]  # the block does not turn, so x is down the slope
    if slips:
        assert forces @ down == pytest.approx(-0.5 * forces @ normal, rel=1e-9)
        gained = (speed[-1] - speed[-2]) / (motion.t[-1] - motion.t[-2])
        right = GRAVITY * (math.sin(angle) - 0.5 * math.cos(angle))
        assert gained == pytest.approx(right, rel=1e-5)
    else:
        assert abs(speed[-1]) < 1e-9
        assert 0.0 < (motion.q[-1, 4:] - q[4:]) @ down < 1e-3
        assert forces @ down == pytest.approx(-2.0 * GRAVITY * math.sin(angle), rel=1e-6)


def energy(robot: chasles.Robot, pair: contact.Pair, motion: chasles.Trajectory) -> np.ndarray:
    """Return the sum of kinetic energy, potential energy and energy of the contact springs."""
    assert motion.touching is not None
    held = np.zeros(len(motion.t))
    size = pair.law.states
    for k in range(motion.touching.gaps.shape[-1]):
        z = list(motion.touching.states[:, k * size : (k + 1) * size].T)
        held += pair.law.energy(z, motion.touching.gaps[:, k])
    return robot.kinetic_energy(motion.q, motion.qd) + robot.potential_energy(motion.q) + held


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_energy_is_never_gained(law: contact.SoftContact) -> None:
    """A capsule bounces and rotates.

    The tolerance covers the integration error of steps in which contact starts.
    """
    robot = block(2.0, (0.4, 0.3, 0.2))
    rod = contact.Capsule("body", 0.1, (-0.2, 0.0, 0.0), (0.2, 0.0, 0.0))
    pair = contact.Pair(rod, contact.Plane(), law)
    q = np.concatenate([turned(0.4, (0.6, 0.8, 0.0)), [0.0, 0.0, 0.35]])
    qd = np.array([2.0, -1.0, 3.0, 1.0, 0.5, 0.0])
    motion = robot.rollout(q, qd, dt=5e-6, steps=200000, every=100, contacts=[pair])
    total = energy(robot, pair, motion)
    assert np.diff(total).max() < 1e-4 * (total[0] - total[-1])
    assert total[-1] < 0.8 * total[0]


# States, batches, loops ------------------------------------------------------------------------


@pytest.mark.parametrize("method", STEPS)
def test_a_motion_goes_on_from_its_contact_states(method: str) -> None:
    """Continued rollouts are bitwise identical, and a batch member equals a single rollout."""
    robot = ball(2.0, 0.3)
    surface = HILLS if method == "semi-implicit" else contact.Plane()
    pair = contact.Pair(contact.Sphere("body", 0.3), surface, SURFACE)
    rng = np.random.default_rng(3)
    q = np.tile(robot.neutral(), (9, 1))
    q[:, 4:] += rng.uniform((-0.5, -0.5, 0.35), (0.5, 0.5, 0.45), size=(9, 3))
    qd = rng.normal(size=(9, 6))
    options: dict[str, Any] = {"dt": 5e-4, "integrator": method, "contacts": [pair]}
    whole = robot.rollout(q, qd, steps=400, every=200, **options)
    assert whole.touching is not None
    assert whole.touching.states[:, 1].any()
    rest = robot.rollout(
        whole.q[:, 1],
        whole.qd[:, 1],
        steps=200,
        every=200,
        contact_states=whole.touching.states[:, 1],
        **options,
    )
    assert np.array_equal(rest.q[:, 1], whole.q[:, 2])
    one = robot.rollout(q[4], qd[4], steps=400, every=200, **options)
    assert np.array_equal(one.q, whole.q[4])
    assert one.touching is not None
    assert np.array_equal(one.touching.forces, whole.touching.forces[4])


@pytest.mark.parametrize(
    ("integrator", "law"),
    [*((name, SURFACE) for name in INTEGRATORS), ("rk4", HERTZ), ("sdirk2", HERTZ)],
    ids=lambda x: x if isinstance(x, str) else law_name(x),
)
def test_integrators_agree(integrator: str, law: contact.SoftContact) -> None:
    """A batch that bounces and rolls agrees with a fine rollout.

    Contact starts within a step, which gives an error of first order for any integrator.
    """
    robot = ball(2.0, 0.3)
    pair = contact.Pair(contact.Sphere("body", 0.3), contact.Plane(), law)
    q = np.tile(robot.neutral(), (2, 1))
    q[:, 6] = 0.31, 0.34
    qd = np.tile([0.0, 0.0, 0.0, 0.5, 0.0, 0.0], (2, 1))
    fine = robot.rollout(q, qd, dt=2e-6, steps=75000, every=75000, contacts=[pair])
    motion = chasles.simulate(
        robot, q, qd, duration=0.15, dt=1e-3, integrator=integrator, contacts=[pair]
    )
    order = chasles.INTEGRATORS[integrator].order
    close(motion.q[:, -1], fine.q[:, -1], 5e-3 if order == 1 else 1e-3)
    assert motion.touching is not None
    assert motion.touching.forces.shape == (2, len(motion.t), 1, 3)


def test_stiff_ground_is_for_implicit_steps() -> None:
    """Implicit steps of 5 ms are stable at K = 1e8 N/m under 2 kg, with rates of 7000 1/s."""
    robot = ball(2.0, 0.3)
    law = contact.SoftContact(contact.SoftSurface(1e8, 1e5), contact.SoftFriction(0.5, 1e8, 1e5))
    pair = contact.Pair(contact.Sphere("body", 0.3), contact.Plane(), law)
    q = robot.neutral()
    q[6] = 0.32
    options: dict[str, Any] = {"duration": 0.5, "dt": 5e-3, "contacts": [pair]}
    motion = chasles.simulate(robot, q, np.zeros(6), integrator="implicit-euler", **options)
    assert motion.touching is not None
    close(motion.touching.forces[-1, 0], [0.0, 0.0, 2.0 * GRAVITY], 1e-6)
    assert motion.unstable == -1
    with pytest.warns(RuntimeWarning, match="soft contact becomes unstable"):
        explicit = chasles.simulate(robot, q, np.zeros(6), integrator="rk4", **options)
    assert explicit.q[:, 6].max() > 1e6


def test_events_see_positions_alone() -> None:
    robot = ball(2.0, 0.3)
    pair = contact.Pair(contact.Sphere("body", 0.3), contact.Plane(), SURFACE)
    q = robot.neutral()
    q[6] = 0.34
    seen = []

    def lowest(t: float, q: np.ndarray, qd: np.ndarray) -> float:
        seen.append(q.shape)
        return float(qd[5])

    event = chasles.Event(lowest, direction=1, name="lowest")
    motion = chasles.simulate(
        robot, q, np.zeros(6), duration=1.0, dt=1e-3, contacts=[pair], events=event
    )
    assert set(seen) == {(7,)}
    assert motion.events[0].q.shape == (7,)
    assert motion.q[-1, 6] == min(motion.q[:, 6])
    assert motion.touching is not None
    assert motion.touching.gaps[-1, 0] == pytest.approx(motion.q[-1, 6] - 0.3, abs=1e-15)


def test_a_closed_loop_on_soft_ground() -> None:
    """Contact forces catch the coupler of a falling four-bar linkage, and energy decreases."""
    robot = four_bar()
    q = robot.assemble([0.9])
    law = contact.SoftContact(contact.HuntCrossley(2e4, 2.0))
    ground = contact.Plane(None, (0.0, 1.0, 0.0), (0.0, -0.05, 0.0))  # gravity is along -y
    pair = contact.Pair(contact.Point("coupler"), ground, law)
    motion = chasles.simulate(
        robot, q, np.zeros(robot.nv), duration=0.5, dt=1e-3, contacts=[pair], every=5
    )
    assert motion.touching is not None
    total = energy(robot, pair, motion)
    assert np.diff(total).max() < 1e-5 * abs(total[0] - total[-1])
    assert np.abs(robot.loop_residual(motion.q)).max() < 1e-9
    assert motion.touching.forces[..., 1].max() > 1.0
    assert motion.touching.gaps.min() > -0.02


# A quadruped -----------------------------------------------------------------------------------

FEET = tuple(f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right"))
GROUND = contact.SoftContact(contact.SoftSurface(2e4, 400.0), contact.SoftFriction(0.8, 2e4, 400.0))


def test_a_quadruped_lands_on_its_feet() -> None:
    """A quadruped with springs in its legs is dropped from 0.3 m.

    After 10 s, the ground carries its weight.
    """
    robot = quadruped()
    stance = robot.neutral()
    stance[7:] = np.tile([0.0, 0.8, -1.6], 4)
    q = stance.copy()
    feet = [robot.forward_kinematics(q, frame=foot)[2, 3] for foot in FEET]
    q[6] = 0.3 + 0.02 - min(feet)
    legs = np.r_[np.zeros(6), np.ones(12)]
    hold = PDControl(stiffness=150.0 * legs, damping=4.0 * legs, target=stance)
    pairs = [contact.Pair(contact.Sphere(foot, 0.02), contact.Plane(), GROUND) for foot in FEET]
    motion = robot.rollout(q, np.zeros(18), hold, dt=5e-4, steps=20000, every=4, contacts=pairs)
    assert motion.touching is not None
    weight = robot.mass * GRAVITY
    last = motion.touching.forces[motion.t > 9.9].sum(axis=1).mean(axis=0)
    assert np.abs(last - [0.0, 0.0, weight]).max() < 1e-6 * weight
    assert np.abs(motion.qd[-1]).max() < 1e-5
    each = motion.touching.forces[-1]
    assert (each[:, 2] > 0.1 * weight).all()
    assert (np.hypot(each[:, 0], each[:, 1]) < 0.8 * each[:, 2]).all()
    assert motion.touching.gaps[0] == pytest.approx(0.3)
    assert motion.q[-1, 6] == pytest.approx(0.3, abs=0.05)  # height of the trunk on bent legs


# Invalid input ---------------------------------------------------------------------------------


def test_what_is_refused() -> None:
    robot, plane = ball(), contact.Plane()
    soft = contact.Pair(contact.Sphere("body", 0.3), plane, SURFACE)
    still = robot.neutral(), np.zeros(6)
    options: dict[str, Any] = {"dt": 1e-3, "steps": 1}
    rigid = contact.Pair(contact.Sphere("body", 0.3), plane, contact.Rigid())
    with raises("E-MOTION-007"):
        robot.rollout(*still, contacts=[rigid], **options)
    lost = contact.Pair(contact.Sphere("bodi", 0.3), plane, SURFACE)
    with raises("E-MODEL-034", "'body'"):
        robot.rollout(*still, contacts=[lost], **options)
    with raises("E-CALL-056", "contact_states"):
        robot.rollout(*still, contacts=[soft], contact_states=[0.0], **options)
    with raises("E-MOTION-021", "contact_states"):
        robot.rollout(*still, contact_states=[0.0], **options)
    with raises("E-CONTACT-044", "tangents="):
        contact.Pair(contact.Point("body"), plane, contact.SoftContact(SURFACE.normal, tangents=1))
    with raises("E-CONTACT-046"):
        contact.Pair(contact.Box("body", (1.0, 1.0, 1.0)), contact.Sphere(None, 1.0), SURFACE)
    more: dict[str, Any] = {"duration": 0.1, "contacts": [soft]}
    with raises("E-MOTION-065"):
        chasles.simulate(robot, *still, integrator="variational", **more)
    with raises("E-MOTION-035"):
        chasles.simulate(robot, *still, f_ext={"body": np.zeros(6)}, **more)
    with raises("E-MOTION-067", "contact_states"):
        chasles.simulate(robot, *still, contact_states=[np.nan, 0.0, 0.0], **more)
