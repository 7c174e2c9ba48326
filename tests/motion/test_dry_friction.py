"""Dry friction of joints: exact rest, breakaway and closed forms, by all integrators and drivers.

The oracles share no code with the library: closed forms of one joint, the work of friction along
the path, and Moreau's time stepping with SciPy's bounded least squares.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy
from support import close, state, tree

import chasles
from chasles import contact
from chasles.mathematics.linear import Vector
from chasles.model import Description, JointData, LinkData, Mimic
from chasles.motion.solvers import boxed
from chasles.motion.steps.bodies import dry_friction
from chasles.motion.steps.stiction import Ending, pivoted
from chasles.robots import five_bar, four_bar, planar, puma560
from chasles.robots._solids import sphere
from chasles.rollouts import STEPS

F, K, MASS = 0.7, 40.0, 2.0
"""Friction (N), stiffness (N/m) and mass (kg) of a block on a spring."""

EXPLICIT = ("euler", "heun2", "heun3", "rk4", "dopri5")
"""Integrators that rigid contact supports."""

DRIVERS = [
    *((name, True) for name in STEPS),
    *((name, False) for name in chasles.INTEGRATORS),
    *((name, None) for name in EXPLICIT),
]
"""Pairs of integrator and driver: compiled (True), step by step (False), with limits (None)."""


def block(friction: float = F, damping: float = 0.0) -> chasles.Robot:
    links = (LinkData("rail", sphere(1.0, 0.1)), LinkData("block", sphere(MASS, 0.1)))
    resistance = {"friction": friction, "damping": damping}
    axis = Vector.of(1.0, 0.0, 0.0)
    joint = JointData("slide", "prismatic", "rail", "block", axis=axis, **resistance)
    return chasles.Robot(Description("block", links, (joint,)))


BLOCK = block()


def rubbing(robot: chasles.Robot, friction: dict[str, float] | float) -> chasles.Robot:
    """Return the robot with dry friction in all joints, or in some joints by name."""
    source = robot.model.source
    every = friction if isinstance(friction, dict) else {j.name: friction for j in source.joints}
    joints = (replace(joint, friction=every.get(joint.name, 0.0)) for joint in source.joints)
    return chasles.Robot(replace(source, joints=tuple(joints)))


def moved(
    robot: chasles.Robot, q: Any, qd: Any, name: str, compiled: bool | None, **options: Any
) -> Any:
    """Simulate with dissipation by an integrator; dopri5 chooses its own steps."""
    if name == "dopri5":
        options = {"rtol": 1e-9, "atol": 1e-10} | options | {"dt": None}
    if compiled is None:
        options["limits"] = True
    asked = None if compiled else False
    run = robot.simulate(q, qd, integrator=name, dissipation=True, compiled=asked, **options)
    assert run.compiled is bool(compiled)
    return run


def spring(t: Any, q: Any, qd: Any) -> Any:
    return [-K * q[0]]


def error(name: str) -> float:
    """Return the tolerance of a position (m) after a few half-periods in steps of 2 ms."""
    return {"dopri5": 1e-7}.get(name, 1e-2 if chasles.INTEGRATORS[name].order == 1 else 2e-6)


# One joint: closed forms -------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "compiled"), DRIVERS)
def test_block_on_a_spring(name: str, compiled: bool | None) -> None:
    """Amplitudes decrease by 2 f/k per half-period; the block stops when one is within f/k."""
    x, half = 0.1, math.pi * math.sqrt(MASS / K)
    stops = [x]
    while abs(stops[-1]) > F / K:
        stops.append(math.copysign(2.0 * F / K, stops[-1]) - stops[-1])
    n = len(stops) - 1
    options = {"duration": (n + 1.5) * half, "dt": 2e-3, "tau": spring}
    run = moved(BLOCK, [x], [0.0], name, compiled, **options)
    late = run.t > (n + 0.5) * half
    assert late.any()
    assert not run.qd[late].any()
    assert len(np.unique(run.q[late])) == 1
    assert run.q[-1, 0] == pytest.approx(stops[-1], abs=error(name))
    for k in range(1, n):
        near = np.abs(run.t - k * half) < 0.3 * half
        turn = np.max(np.abs(run.q[near]))
        assert turn == pytest.approx(abs(stops[k]), abs=error(name) + 1e-4 * (name == "dopri5"))


@pytest.mark.parametrize(("name", "compiled"), DRIVERS)
def test_constant_force(name: str, compiled: bool | None) -> None:
    """The block does not move at all below the limit; above it, a = (tau - f)/m."""
    options = {"duration": 0.5, "dt": 5e-3}
    still = moved(BLOCK, [0.3], [0.0], name, compiled, tau=[0.999 * F], **options)
    assert np.all(still.q == 0.3)
    assert not still.qd.any()
    for sign in (1.0, -1.0):
        run = moved(BLOCK, [0.0], [0.0], name, compiled, tau=[1.5 * sign * F], **options)
        a = 0.5 * sign * F / MASS
        close(run.qd[-1], [a * 0.5], 1e-9)
        first = chasles.INTEGRATORS[name].order == 1
        close(run.q[-1], [0.5 * a * 0.25], 3e-2 if first else 1e-8)


@pytest.mark.parametrize(("name", "compiled"), DRIVERS)
def test_coasting(name: str, compiled: bool | None) -> None:
    """A block with velocity v stops after m v/f seconds and m v^2/(2 f) m, also within a step."""
    v = 0.37
    whole = MASS * v / F
    run = moved(BLOCK, [0.0], [v], name, compiled, duration=1.5 * whole, dt=7e-3)
    close(run.q[-1], [MASS * v * v / (2.0 * F)], 1e-2 if error(name) > 1e-3 else 1e-9)
    assert not run.qd[run.t > whole + 7e-3].any()
    turned = 2e-12 if compiled is None else 0.0  # velocity at which a stop is detected
    assert np.all(run.qd >= -turned)


@pytest.mark.parametrize(("name", "compiled"), DRIVERS)
def test_ramp(name: str, compiled: bool | None) -> None:
    """The block breaks away at f/r under the force r t; then v = r (t - f/r)^2 / (2 m)."""
    rate = 4.0
    start = F / rate

    def tau(t: Any, q: Any, qd: Any) -> Any:
        return [rate * t]

    run = moved(BLOCK, [0.0], [0.0], name, compiled, duration=0.4, dt=1e-3, tau=tau)
    assert not run.qd[run.t < start].any()
    assert np.all(run.q[run.t < start] == 0.0)
    slip = 0.4 - start
    assert run.qd[-1, 0] == pytest.approx(0.5 * rate * slip**2 / MASS, abs=2e-3 * slip)
    assert run.q[-1, 0] == pytest.approx(rate * slip**3 / (6.0 * MASS), abs=error(name))


@pytest.mark.parametrize(("name", "compiled"), DRIVERS)
def test_pendulum_in_its_cone(name: str, compiled: bool | None) -> None:
    """A rod of 1 kg and 1 m rests wherever |m g l/2 cos q| <= f, and only there."""
    robot, f = rubbing(planar(1), 2.0), 2.0
    edge = math.acos(f / 4.905)
    for q in (edge + 1e-6, math.pi - edge - 1e-6):
        still = moved(robot, [q], [0.0], name, compiled, duration=0.05, dt=1e-2)
        assert np.all(still.q == q)
        assert not still.qd.any()
    falls = moved(robot, [edge - 1e-3], [0.0], name, compiled, duration=0.1, dt=1e-2)
    assert falls.qd[-1, 0] < 0.0
    swung = moved(robot, [-0.3], [1.0], name, compiled, duration=4.0, dt=1e-2)
    assert not swung.qd[-1].any()
    assert abs(4.905 * math.cos(swung.q[-1, 0])) <= f
    energy = robot.kinetic_energy(swung.q, swung.qd) + robot.potential_energy(swung.q)
    grows = 1e-2 if error(name) > 1e-3 else 1e-6
    assert np.max(np.diff(energy)) < grows


def test_stops_are_of_second_order() -> None:
    """Stops are located within steps, and their error decreases with the square of dt."""
    wrong = []
    for dt in (8e-3, 2e-3):
        run = BLOCK.simulate([0.1], [0.0], duration=4.0, dt=dt, tau=spring, dissipation=True)
        wrong.append(abs(run.q[-1, 0] - (6.0 * F / K - 0.1)))
    assert wrong[0] < 1e-4
    assert wrong[1] < wrong[0] / 8.0


def test_damping_beside_friction() -> None:
    """The velocity is (v0 + f/c) exp(-c t/m) - f/c until it is zero."""
    c, v = 3.0, 1.0
    robot, stop = block(damping=c), MASS / c * math.log1p(v * c / F)
    run = moved(robot, [0.0], [v], "rk4", True, duration=1.2 * stop, dt=1e-3)
    moves = run.t < stop
    close(run.qd[moves, 0], (v + F / c) * np.exp(-c / MASS * run.t[moves]) - F / c, 1e-9)
    assert not run.qd[run.t > stop + 1e-3].any()


# Several joints ----------------------------------------------------------------------------------


def moreau(robot: chasles.Robot, q: Any, qd: Any, f: Any, dt: float, steps: int) -> Any:
    """Return q and qd by Moreau's time stepping.

    Friction impulses P within f dt minimize the kinetic energy v'M v/2, by SciPy's bounded least
    squares.
    """
    q, v = np.array(q), np.array(qd)
    for _ in range(steps):
        M = robot.mass_matrix(q)
        L = np.linalg.cholesky(M)
        momentum = M @ v - dt * robot.bias_forces(q, v)
        bound = np.asarray(f) * dt
        A, b = np.linalg.inv(L), -np.linalg.solve(L, momentum)
        P = scipy.optimize.lsq_linear(A, b, (-bound, bound), method="bvls", tol=1e-14).x
        v = np.linalg.solve(M, momentum + P)
        q = q + dt * v
    return q, v


@pytest.mark.parametrize(
    ("name", "compiled"), [("rk4", True), ("dopri5", False), ("sdirk2", False)]
)
def test_chain_against_moreau(name: str, compiled: bool | None) -> None:
    """Three coupled joints stick one after the other, and friction brings all of them to rest."""
    f = [1.5, 2.5, 0.8]
    robot = rubbing(
        planar(3).with_gravity([0.0, 0.0, 0.0]), dict(zip(planar(3).joints, f, strict=True))
    )
    q, qd = [0.3, -0.8, 0.5], [1.0, -2.0, 3.0]
    run = moved(robot, q, qd, name, compiled, duration=3.0, dt=2e-3)
    there, _ = moreau(robot, q, qd, f, 1e-3, 3000)
    close(run.q[-1], there, 5e-3)
    assert not run.qd[-1].any()
    energy = robot.kinetic_energy(run.q, run.qd)
    assert np.max(np.diff(energy)) <= 0.0


@pytest.mark.parametrize("robot", [planar(3), four_bar()], ids=["tree", "loop"])
def test_work_of_friction(robot: chasles.Robot) -> None:
    """The lost energy is f times the total distance traveled by all joints."""
    f = 0.02 if robot.mechanism.rows else 0.8
    robot = rubbing(robot, f)
    q, qd = np.array([0.3, -0.8, 0.5]), np.array([1.0, -2.0, 3.0])
    if robot.mechanism.rows:
        q = robot.assemble([0.8])
        qd = robot.complete(q, [2.0])
    options = {"rtol": 1e-9, "atol": 1e-10}
    run = moved(robot, q, qd, "dopri5", False, duration=6.0, **options)
    energy = robot.kinetic_energy(run.q, run.qd) + robot.potential_energy(run.q)
    way = np.sum(np.abs(np.diff(run.q, axis=0)))
    assert energy[0] - energy[-1] == pytest.approx(f * way, rel=1e-4)
    assert np.max(np.diff(energy)) < 1e-8


@pytest.mark.parametrize("name", chasles.INTEGRATORS)
def test_puma(name: str) -> None:
    """Motor friction brings the PUMA to exact rest, and no step adds energy."""
    robot, still = puma560(), np.zeros(6)
    run = moved(robot, still, still + 1.0, name, False, duration=2.2, dt=1e-2, every=1)
    assert not run.qd[-1].any()
    assert np.array_equal(run.q[-1], run.q[-2])
    energy = robot.kinetic_energy(run.q, run.qd) + robot.potential_energy(run.q)
    assert np.max(np.diff(energy)) <= 1e-9
    if name in STEPS:
        fast = moved(robot, still, still + 1.0, name, True, duration=2.2, dt=1e-2)
        close(fast.q, run.q, 1e-12)
        close(fast.qd, run.qd, 1e-11)


LOOPS = [{"crank": 0.3, "coupler": 0.3, "rocker": 0.3}, {"crank": 0.5}, {"coupler": 0.5}]


@pytest.mark.parametrize(
    "name", [n for n, row in chasles.INTEGRATORS.items() if not row.hamiltonian]
)
@pytest.mark.parametrize("friction", LOOPS, ids=["all", "independent", "dependent"])
def test_closed_loops(name: str, friction: dict[str, float]) -> None:
    """Friction of any joint, dependent or not, stops the whole linkage."""
    robot = rubbing(four_bar(), friction)
    q = robot.assemble([0.8])
    run = moved(robot, q, robot.complete(q, [2.0]), name, False, duration=0.1, dt=2e-3)
    rest = run.t > 0.05
    assert not run.qd[rest].any()
    assert len(np.unique(run.q[rest], axis=0)) == 1


@pytest.mark.parametrize("name", ["sdirk2", "dopri5"])
@pytest.mark.parametrize("joint", ["left", "right_coupler"])
def test_one_joint_of_a_loop_sticks(name: str, joint: str) -> None:
    """A five-bar moves on while one joint sticks, whose q stays constant; the loop stays closed."""
    robot = rubbing(five_bar(), {joint: 6.0})
    k = robot.velocity_slice(joint).start
    q = robot.assemble([0.3, 0.3])
    run = moved(robot, q, robot.complete(q, [1.0, -2.0]), name, False, duration=1.2, dt=2e-3)
    rests = (run.qd[1:, k] == 0.0) & (run.qd[:-1, k] == 0.0)
    assert np.count_nonzero(rests) > 20
    assert not np.diff(run.q[:, k])[rests].any()
    assert np.all(np.abs(run.qd[1:][rests]).max(-1) > 0.0)
    assert np.max(np.abs(robot.loop_residual(run.q))) < 1e-12
    energy = robot.kinetic_energy(run.q, run.qd) + robot.potential_energy(run.q)
    way = np.sum(np.abs(np.diff(run.q[:, k])))
    assert energy[0] - energy[-1] == pytest.approx(6.0 * way, rel=5e-3)


def test_ball_joint() -> None:
    """Friction acts along each axis of a ball joint, and stops rotation about one axis."""
    links = (LinkData("ground", sphere(1.0, 0.1)), LinkData("ball", sphere(2.0, 0.1)))
    joint = JointData("ball", "spherical", "ground", "ball", friction=0.01)
    robot = chasles.Robot(Description("ball", links, (joint,)))
    inertia = robot.mass_matrix(robot.neutral())[0, 0]
    for name, compiled in [
        ("rk4", True),
        ("rk4", False),
        ("dopri5", False),
        ("variational", False),
    ]:
        qd = [0.0, 0.9, 0.0]
        run = moved(robot, robot.neutral(), qd, name, compiled, duration=1.5, dt=5e-3)
        assert not run.qd[-1].any()
        assert not run.qd[:, [0, 2]].any()
        turned = robot.difference(robot.neutral(), run.q[-1])
        rough = 2e-2 if error(name) > 1e-3 else 1e-8
        close(turned, [0.0, inertia * 0.81 / 0.02, 0.0], rough)


def test_followers() -> None:
    """Friction of a mimic joint acts through its ratio: f1 + |ratio| f2."""
    source = rubbing(planar(2), 1.5).model.source
    first, second = source.joints
    second = replace(second, mimic=Mimic(first.name, -2.0, 0.0))
    robot = chasles.Robot(replace(source, joints=(first, second)))
    assert dry_friction(robot.model) == [4.5]


# Complementarity ---------------------------------------------------------------------------------


def test_boxed_against_least_squares() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        n = rng.integers(1, 8)
        L = np.tril(rng.normal(size=(n, n))) + 2.0 * np.eye(n)
        b, low = rng.normal(size=n) * 3.0, -rng.uniform(size=n) * rng.integers(0, 2, n)
        high = low + rng.uniform(size=n)
        given = L.T, -np.linalg.solve(L, b), (low, high)
        exact = scipy.optimize.lsq_linear(*given, method="bvls", tol=1e-14).x
        close(boxed(L @ L.T, b, low, high), exact, 1e-9)


def test_traced_pivoting() -> None:
    """Pivoting solves all problems of one or two joints, and nearly all random ones of three."""
    rng, wrong = np.random.default_rng(5), 0
    robots = {n: planar(n) for n in (1, 2, 3)}
    for n in [1] * 50 + [2] * 100 + [3] * 100:
        M = robots[n].mass_matrix(rng.normal(size=n))
        v, low = rng.normal(size=n), -rng.uniform(size=n) * rng.integers(0, 2, n)
        high, one = low + rng.uniform(size=n), np.ones(n)
        P = boxed(np.linalg.inv(M), v, low, high)
        end = Ending(*(a.astype(object) for a in (v, low, high, one, one)))
        found = pivoted(M.astype(object), end, n)
        same = np.allclose(np.array(found[1], dtype=float), P, 1e-9, 1e-9)
        assert same or n == 3
        wrong += not same
    assert wrong < 5


# Resuming, batches, events, other forces ---------------------------------------------------------


@pytest.mark.parametrize(("name", "compiled"), [("rk4", True), ("rk4", False), ("dopri5", False)])
def test_parts_have_the_same_bits(name: str, compiled: bool | None) -> None:
    options: Any = {"duration": 3.0, "tau": spring, "dt": 5e-3}
    whole = moved(BLOCK, [0.1], [0.3], name, compiled, **options)
    part = moved(BLOCK, [0.1], [0.3], name, compiled, steps=61, **options)
    rest = moved(BLOCK, [0.1], [0.3], name, compiled, resume=part.end, **options)
    assert np.array_equal(np.concatenate([part.q, rest.q]), whole.q)
    assert np.array_equal(np.concatenate([part.qd, rest.qd]), whole.qd)
    assert not whole.qd[-1].any()


@pytest.mark.parametrize(("name", "compiled"), [row for row in DRIVERS if row[1] is not None])
def test_batches(name: str, compiled: bool) -> None:
    """Each member of a batch stops at its own time."""
    robot = rubbing(planar(2), 1.0)
    q, qd = np.random.default_rng(2).normal(size=(2, 5, 2))
    run = moved(robot, q, qd, name, compiled, duration=0.5, dt=5e-3)
    for k in range(5):
        alone = moved(robot, q[k], qd[k], name, compiled, duration=0.5, dt=5e-3)
        if compiled:
            assert np.array_equal(run.q[k], alone.q)
            assert np.array_equal(run.qd[k], alone.qd)
        else:
            close(run.q[k, -1], alone.q[-1], 1e-6 if name == "dopri5" else 1e-11)


def test_float32_comes_to_rest() -> None:
    """Rest is exact in float32 too."""
    from chasles.motion.steps.traced import step_program

    step = step_program(BLOCK.model, "rk4", None, dissipation=True)
    kernel = chasles.backends.compile(step, "llvm", "float32")
    state = [np.zeros((1, 1), np.float32), np.full((1, 1), 0.01, np.float32)]
    given = [np.zeros((1, 1), np.float32), *(np.full(1, x, np.float32) for x in (0.0, 1e-3))]
    for _ in range(60):
        state = list(chasles.backends.arrays.call(kernel, "step", (*state, *given)))
    assert not state[1].any()


def test_events_and_times() -> None:
    """A turn is detected when the spring reverses the block.

    A joint that sticks does not move between steps.
    """
    half, found = math.pi * math.sqrt(MASS / K), []
    turn = chasles.Event(lambda t, q, qd: float(qd[0]), terminal=False, name="turn")
    for name in ("rk4", "dopri5"):
        run = moved(
            BLOCK, [0.2], [0.0], name, False, duration=1.2 * half, dt=1e-3, tau=spring, events=turn
        )
        found.append([one.t for one in run.events])
        assert found[-1] == pytest.approx([half], abs=1e-6)
    times = np.linspace(0.0, 4.0, 1001)
    run = moved(BLOCK, [0.1], [0.0], "rk4", False, duration=4.0, dt=7e-3, tau=spring, times=times)
    late = times > 2.5
    assert not run.qd[late].any()
    assert len(np.unique(run.q[late])) == 1


def test_soft_ground() -> None:
    """Both drivers agree for a ball on soft ground and a joint that sticks."""
    links = (
        LinkData("ground", sphere(1.0, 0.1)),
        LinkData("arm", sphere(1.0, 0.1)),
        LinkData("foot", sphere(0.5, 0.1)),
    )
    axes = Vector.of(1.0, 0.0, 0.0), Vector.of(0.0, 0.0, 1.0)
    joints = (
        JointData("x", "prismatic", "ground", "arm", axis=axes[0], friction=2.0),
        JointData("z", "prismatic", "arm", "foot", axis=axes[1]),
    )
    robot = chasles.Robot(Description("foot", links, joints))
    law = contact.SoftContact(contact.SoftSurface(2e3, 40.0), contact.SoftFriction(0.5, 2e3, 40.0))
    pair = contact.Pair(contact.Sphere("foot", 0.02), contact.Plane(), law)
    options: Any = {"duration": 1.0, "dt": 1e-3, "contacts": [pair]}
    runs = [moved(robot, [0.0, 0.1], [0.5, 0.0], "rk4", c, **options) for c in (True, False)]
    assert all(run.qd[-1, 0] == 0.0 for run in runs)
    close(runs[0].q[-1], runs[1].q[-1], 1e-9)


def test_gradient_through_a_stop() -> None:
    """The stopping distance m v^2/(2 f) has the derivative m v/f by v."""
    v = 0.37
    options: Any = {
        "dt": 7e-3,
        "steps": 200,
        "every": 200,
        "dissipation": True,
        "integrator": "rk4",
    }
    covectors = (np.array([[0.0], [1.0]]), None)
    found = BLOCK.rollout_pullback([0.0], [v], covectors=covectors, **options)
    assert found.qd[0] == pytest.approx(MASS * v / F, rel=1e-9)


def test_random_trees() -> None:
    """Both drivers agree for all joint types, some of them with friction."""
    robot = tree(5, 6)
    q, qd, _ = state(robot, 2)
    runs = [moved(robot, q, qd, "rk4", c, duration=0.2, dt=2e-3) for c in (True, False)]
    close(runs[0].q[-1], runs[1].q[-1], 1e-9)
