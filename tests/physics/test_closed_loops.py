"""Dynamics of closed loops: solvers, energy and power, actuators, and faulty mechanisms."""

import pickle
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from chains import pose, spatial, transform, turn
from mechanisms import MECHANISMS, constraint_forces, mechanism, motion
from support import TARGETS, close, raises, runner

import chasles
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.mechanisms import dynamics
from chasles.model import LOOP_JOINTS, Description
from chasles.robots.mechanisms import four_bar

SOLVERS = ("multipliers", "direct", "minimal")
LOOPS = {f"loop {kind}": kind for kind in LOOP_JOINTS if kind not in ("free", "continuous")}
"""Loop joint types that connect the tips of two spatial chains.

Free joints are excluded because they impose no constraint.
"""

NAMES = (*MECHANISMS, *LOOPS, "leaning")


@cache
def case(name: str) -> tuple[chasles.Robot, np.ndarray, np.ndarray, np.ndarray]:
    """Return a robot with loops and several of its states: q, qd, tau."""
    if name in MECHANISMS:
        return mechanism(name), *motion(name)
    rng = np.random.default_rng(4)
    if name == "leaning":
        q, qd, tau = motion("four_bar")
        return leaning(), q, qd, tau
    source, closed = spatial(LOOPS[name], 1)
    robot, q = chasles.Robot(source), np.tile(closed, (3, 1))
    qd = robot.complete(q, rng.normal(size=(3, len(robot.independent))))
    return robot, q, qd, rng.normal(size=(3, robot.nv))


def leaning() -> chasles.Robot:
    """Return a four-bar in a plane that is not aligned with the world axes."""
    source, lean = four_bar(), turn(np.array([0.5, -0.3, 0.4]))
    joints = tuple(
        replace(joint, pose=transform(lean @ pose(joint.pose))) if joint.parent == "base" else joint
        for joint in source.joints
    )
    return chasles.Robot(replace(source, joints=joints))


@cache
def solved(name: str, method: str, backend: str = "numpy") -> tuple[np.ndarray, np.ndarray]:
    """Return qdd and multipliers from a compiled program."""
    robot, q, qd, tau = case(name)
    compiled = chasles.compile(robot, "constrained_dynamics", backend=backend, method=method)
    qdd, multipliers, health = compiled(q, qd, tau)
    assert np.max(health[..., 0]) < 1e-24
    assert np.min(health[..., 1]) > dynamics.WEAK
    return qdd, multipliers


def matvec(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", A, x)


# Accelerations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_all_solvers_agree_with_one_dense_system(name: str) -> None:
    robot, q, qd, tau = case(name)
    run = runner(robot, "numpy")
    H, h, K, k = (
        run("mass_matrix", q),
        run("bias_forces", q, qd),
        run("loop_matrix", q),
        run("loop_bias", q, qd),
    )
    dense = np.array(list(map(constraint_forces, H, h, K, k, tau)))
    for method in SOLVERS:
        qdd, multipliers = solved(name, method)
        close(qdd, dense, 1e-10)
        close(matvec(H, qdd) + h - tau, matvec(np.swapaxes(K, 1, 2), multipliers), 1e-10)
        power = np.einsum("...i,...ij,...j->...", multipliers, K, qd)
        assert np.max(np.abs(power)) < 1e-12 * np.max(np.abs(multipliers))


@pytest.mark.parametrize("name", ["leaning", "six_bar"])
def test_singular_values_find_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Solutions by singular values agree with those of the compiled equations."""
    robot, q, qd, tau = case(name)
    qdd, multipliers = robot.constrained_dynamics(q, qd, tau, method="direct")
    monkeypatch.setattr(dynamics, "WEAK", 2.0)
    again, others = robot.constrained_dynamics(q, qd, tau, method="direct")
    close(again, qdd, 1e-10)
    A = np.swapaxes(robot.loop_matrix(q), 1, 2)
    close(matvec(A, others), matvec(A, multipliers), 1e-10)


def test_singular_values_find_the_same_in_independent_coordinates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    robot, q, qd, tau = case("leaning")
    qdd = robot.forward_dynamics(q, qd, tau)

    def answers() -> list[np.ndarray]:
        return [
            robot.mass_matrix(q, coordinates="independent"),
            robot.inverse_dynamics(q, qd, qdd, actuated=["crank", "rocker"]),
            robot.constrained_dynamics(q, qd, tau, stabilization=0.1)[0],
        ]

    compiled = answers()
    monkeypatch.setattr(dynamics, "WEAK", 2.0)
    for mine, again in zip(compiled, answers(), strict=True):
        close(again, mine, 1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_loops_stay_closed(name: str) -> None:
    """The time derivative of K qd along the motion is K qdd - k, which is zero."""
    robot, q, qd, _ = case(name)
    qdd, *_ = solved(name, "multipliers")
    matrix, integrate = (
        chasles.compile(robot, f, backend="numpy") for f in ("loop_matrix", "integrate")
    )

    def rate(h: float) -> np.ndarray:
        ahead, back = (
            matvec(matrix(integrate(q, s * qd + s * s / 2.0 * qdd)), qd + s * qdd) for s in (h, -h)
        )
        return (ahead - back) / (2.0 * h)

    left = (4.0 * rate(5e-4) - rate(1e-3)) / 3.0
    close(left, np.zeros_like(left), 1e-7, scale=float(np.max(np.abs(qdd))))


def test_results_in_place() -> None:
    """Results are written to `out`, also if it is an input or if singular values are used."""
    robot, q, qd, tau = case("five_bar")
    qdd, lam = robot.constrained_dynamics(q, qd, tau)
    out = np.empty_like(qdd), np.empty_like(lam)
    assert robot.constrained_dynamics(q, qd, tau, out=out) is out
    np.testing.assert_array_equal(out[0], qdd)
    np.testing.assert_array_equal(out[1], lam)
    for _ in range(2):  # the second call uses the fast entry
        into = tau.copy()
        assert robot.forward_dynamics(q, qd, into, out=into) is into
        np.testing.assert_array_equal(into, qdd)
    with raises("E-CALL-058", "constrained_dynamics"):
        robot.constrained_dynamics(q, qd, tau, out=out[0])
    for bad, error, message in (
        (np.empty((3, 3)), ValueError, "E-CALL-013 (3, 4)"),
        (np.empty((3, 4), np.float32), TypeError, "E-CALL-012 forward_dynamics"),
        ([0.0] * 4, TypeError, "E-CALL-011 forward_dynamics"),
    ):
        with raises(message, kind=error):
            robot.forward_dynamics(q, qd, tau, out=bad)


def test_power_is_the_rate_of_energy() -> None:
    """tau . qd is the rate of change of kinetic plus potential energy."""
    robot, q, qd, tau = case("five_bar")
    qdd = robot.forward_dynamics(q, qd, tau)

    def energy(h: float) -> np.ndarray:
        at = q + h * qd + h * h / 2.0 * qdd
        return robot.kinetic_energy(at, qd + h * qdd) + robot.potential_energy(at)

    h = 1e-3
    gain = (8.0 * (energy(h) - energy(-h)) - energy(2 * h) + energy(-2 * h)) / (12.0 * h)
    close(gain, np.einsum("...i,...i->...", tau, qd), 1e-8)


def test_external_forces_and_dissipation() -> None:
    """A wrench F adds J'F to the joint torques, and damping subtracts from them."""
    known, q, qd, tau = case("triangle")
    source = known.model.source
    damped = tuple(replace(joint, damping=0.3) for joint in source.joints)
    robot, wrench = chasles.Robot(replace(source, joints=damped)), np.array([0, 0, 0.3, 1, 2, -3.0])
    J = robot.jacobian(q, frame="piston")
    found = robot.forward_dynamics(q, qd, tau, f_ext={"piston": wrench}, dissipation=True)
    close(found, known.forward_dynamics(q, qd, tau - 0.3 * qd + J.swapaxes(1, 2) @ wrench), 1e-10)


def test_stabilization_lets_errors_decay() -> None:
    """Stabilized accelerations satisfy K qdd = k - 2 rate / T - error / T^2.

    The source is Featherstone (2008), Eq 8.21-8.24.
    """
    robot, q, qd, tau = case("six_bar")
    off, fast = q + 1e-5, qd + 1e-3
    qdd, _ = robot.constrained_dynamics(off, fast, tau, stabilization=0.05, tolerance=1e-3)
    K, error = robot.loop_matrix(off), robot.loop_residual(off)
    wanted = robot.loop_bias(off, fast) - 40.0 * matvec(K, fast) - 400.0 * error
    close(matvec(K, qdd), wanted, 1e-9)


# Independent coordinates -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["five_bar", "loop prismatic"])
def test_independent_mass_matrix_is_kinetic_energy(name: str) -> None:
    robot, q, qd, _ = case(name)
    M = robot.mass_matrix(q, coordinates="independent")
    yd = qd[:, robot.mechanism.closing.independent]
    close(0.5 * np.einsum("...i,...ij,...j->...", yd, M, yd), robot.kinetic_energy(q, qd), 1e-12)
    close(M, np.swapaxes(M, 1, 2), 1e-14)


@pytest.mark.parametrize("name", ["four_bar", "five_bar"])
def test_actuators_that_are_just_enough(name: str) -> None:
    robot, q, qd, tau = case(name)
    wanted = robot.forward_dynamics(q, qd, tau)
    u = robot.inverse_dynamics(q, qd, wanted, actuated=robot.independent)
    passive = np.delete(np.arange(robot.nv), robot.mechanism.closing.independent)
    assert not np.any(u[:, passive])
    close(robot.forward_dynamics(q, qd, u), wanted, 1e-9)


def test_redundant_actuators_share_by_weights() -> None:
    """The result minimizes the weighted sum of squares of all u with G_u' u = G' tau.

    The expected values are a least-squares solution by NumPy.
    """
    robot, q, qd, tau = case("five_bar")
    wanted = robot.forward_dynamics(q, qd, tau)
    used, weights = [0, 2, 3], np.array([1.0, 4.0, 0.5])
    names = [robot.joints[k] for k in used]
    u = robot.inverse_dynamics(
        q, qd, wanted, actuated=names, weights=dict(zip(names, weights, strict=True))
    )
    of_tree = robot.inverse_dynamics(q, qd, wanted)
    for state in range(len(q)):
        columns = [robot.complete(q[state], unit) for unit in np.eye(2)]
        G = np.array(columns).T
        scaled = G[used].T / np.sqrt(weights)
        x = np.linalg.lstsq(scaled, G.T @ of_tree[state], rcond=None)[0]
        close(u[state, used], x / np.sqrt(weights), 1e-10)
        assert u[state, 1] == 0.0
    close(robot.forward_dynamics(q, qd, u), wanted, 1e-10)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ({"rocker": 1.0}, ValueError, "E-LOOP-015 'rocker'"),
        ({"crank": 0.0}, ValueError, "E-LOOP-016 'crank'"),
        ({"crank": "much"}, ValueError, "E-LOOP-016 'crank'"),
        ([1.0], TypeError, "E-LOOP-014"),
    ],
)
def test_weights_that_cannot_be(weights: Any, error: type, message: str) -> None:
    robot, q, qd, tau = case("four_bar")
    qdd = robot.forward_dynamics(q, qd, tau)
    with raises(message, kind=error):
        robot.inverse_dynamics(q, qd, qdd, actuated=["crank"], weights=weights)


def test_too_few_actuators() -> None:
    robot, q, qd, tau = case("five_bar")
    text = "E-LOOP-013 'left'"
    with raises(text):
        robot.inverse_dynamics(q, qd, tau, actuated="left")


# Loop joint forces -------------------------------------------------------------------------------


def test_loop_force_is_a_reaction_of_the_opened_tree() -> None:
    """A tree cut open at the pin moves as before if the pin's force acts on both ends."""
    robot, q, qd, tau = case("four_bar")
    qdd, multipliers = robot.constrained_dynamics(q, qd, tau)
    force = robot.loop_forces(q, multipliers)[:, 0]
    opened = chasles.Robot(replace(robot.model.source, loops=()))
    ends = {"rocker": ((0.3, 0.0, 0.0), 1.0), "coupler": ((0.35, 0.0, 0.0), -1.0)}
    turn = opened.forward_kinematics(q, frame="rocker")[:, :3, :3]
    world = np.concatenate([matvec(turn, force[:, :3]), matvec(turn, force[:, 3:])], axis=-1)
    pulled = {
        name: chasles.Wrench(sign * world, axes="world", at=point)
        for name, (point, sign) in ends.items()
    }
    close(opened.forward_dynamics(q, qd, tau, f_ext=pulled), qdd, 1e-10)


# Calls, backends and batches ---------------------------------------------------------------------


def test_every_backend_and_precision() -> None:
    robot, q, qd, tau = case("triangle")
    for method in SOLVERS:
        exact = solved("triangle", method, "interpret")
        for target in TARGETS:
            for mine, theirs in zip(solved("triangle", method, target), exact, strict=True):
                close(mine, theirs, 1e-12)
    single = [a.astype(np.float32) for a in (q, qd, tau)]
    half = robot.forward_dynamics(*single)
    assert half.dtype == np.float32
    close(half, robot.forward_dynamics(q, qd, tau), 1e-4)


def test_batches_threads_and_the_fast_call() -> None:
    robot, q, qd, tau = case("five_bar")
    one = robot.forward_dynamics(q[0], qd[0], tau[0])
    whole = robot.forward_dynamics(q, qd, tau)
    np.testing.assert_array_equal(robot.forward_dynamics(q[0], qd[0], tau[0]), whole[0])
    np.testing.assert_array_equal(one, whole[0])
    np.testing.assert_array_equal(robot.forward_dynamics(q, qd, tau, threads=2), whole)
    grid = robot.forward_dynamics(q[:, None], qd[:, None], tau)
    assert grid.shape == (3, 3, robot.nv)
    np.testing.assert_array_equal(grid[1, 1], whole[1])
    out = np.empty_like(whole)
    assert robot.forward_dynamics(q, qd, tau, out=out) is out
    np.testing.assert_array_equal(out, whole)
    assert robot.forward_dynamics(np.empty((0, 4)), qd[0], tau[0]).shape == (0, 4)
    again = pickle.loads(pickle.dumps(robot))
    np.testing.assert_array_equal(again.forward_dynamics(q, qd, tau), whole)
    compiled = chasles.compile(robot, "constrained_dynamics")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(compiled))(q, qd, tau)[0], whole)


def test_the_default_has_fewest_operations() -> None:
    robot = mechanism("six_bar")
    counts = [chasles.cost(robot, "constrained_dynamics", method=m).flops for m in SOLVERS]
    assert chasles.cost(robot, "constrained_dynamics").flops <= min(counts)


# Faulty mechanisms -------------------------------------------------------------------------------


def truss() -> chasles.Robot:
    """Return two pivoted bars that are pinned together, so nothing can move."""
    source = four_bar()
    first, _, second = source.joints
    (pin,) = source.loops
    pinned = replace(pin, parent="crank", pose=Transform(Rotation(), Vector.of(0.3, 0.0, 0.0)))
    links = tuple(link for link in source.links if link.name != "coupler")
    return chasles.Robot(
        Description("truss", links, (first, second), gravity=source.gravity, loops=(pinned,))
    )


def test_a_locked_mechanism_rests_and_carries_its_load() -> None:
    robot = truss()
    assert (int(robot.mobility()), robot.independent) == (0, ())
    q, rest, tau = robot.assemble([]), np.zeros(2), np.array([0.3, -0.2])
    for method in SOLVERS:
        qdd, multipliers = robot.constrained_dynamics(q, rest, tau, method=method)
        np.testing.assert_allclose(qdd, 0.0, atol=1e-12)
        close(robot.loop_matrix(q).T @ multipliers, robot.bias_forces(q, rest) - tau, 1e-12)
    assert robot.mass_matrix(q, coordinates="independent").shape == (0, 0)
    A, B = robot.linearize(q, rest, tau, coordinates="independent")
    assert (A.shape, B.shape) == ((0, 0), (0, 2))
    np.testing.assert_array_equal(robot.inverse_dynamics(q, rest, rest, actuated=[]), 0.0)


def test_open_loops_and_bad_numbers_are_refused() -> None:
    robot, q, qd, tau = case("four_bar")
    calls = {
        "forward_dynamics": lambda at: robot.forward_dynamics(at, qd, tau),
        "constrained_dynamics": lambda at: robot.constrained_dynamics(at, qd, tau),
        "inverse_dynamics": lambda at: robot.inverse_dynamics(at, qd, tau, actuated=["crank"]),
        "mass_matrix": lambda at: robot.mass_matrix(at, coordinates="independent"),
        "linearize": lambda at: robot.linearize(at, qd, tau),
        "operational_inertia_inverse": lambda at: robot.operational_inertia_inverse(
            at, frame="rocker"
        ),
    }
    open_at, unknown = q.copy(), q.copy()
    open_at[1, 2] += 1e-3
    unknown[2, 0] = np.nan
    for name, call in calls.items():
        with raises("E-LOOP-021", f"{name}: ", "(1,)", "'pin'", kind=chasles.OpenLoop):
            call(open_at)
        with raises("E-LOOP-019", name):
            call(unknown)
    rates = {
        "forward_dynamics": lambda v: robot.forward_dynamics(q, v, tau),
        "constrained_dynamics": lambda v: robot.constrained_dynamics(q, v, tau),
        "linearize": lambda v: robot.linearize(q, v, tau),
        "inverse_dynamics": lambda v: robot.inverse_dynamics(q, v, qdd, actuated=["crank"]),
    }
    qdd = robot.forward_dynamics(q, qd, tau)
    off, none = qd.copy(), qd.copy()
    off[1, 2] += 1e-4 * np.max(np.abs(qd))
    none[2, 0] = np.nan
    for name, call in rates.items():
        for _ in range(2):  # the second call uses the fast entry
            with raises("E-LOOP-023", f"{name}: qd", "(1,)", "'pin'", kind=chasles.OpenLoop):
                call(off)
        with raises("E-LOOP-022", name):
            call(none)
        call(qd + 1e-9)
    with raises("E-LOOP-023", "inverse_dynamics"):
        robot.inverse_dynamics(q, qd, qdd + 1e-3 * np.arange(3.0), actuated=["crank"])
    robot.constrained_dynamics(q, off, tau, stabilization=0.1)  # accepted with stabilization
    for bad in (0.0, -1.0, float("nan"), "x"):
        with raises("E-CALL-004"):
            robot.constrained_dynamics(q, qd, tau, tolerance=bad)
    close(
        robot.forward_dynamics(q, qd, tau, method="assembly-inertia"),
        robot.forward_dynamics(q, qd, tau),
        1e-10,
    )
    with raises("E-CALL-068", "unknown method 'gauss'"):
        robot.forward_dynamics(q, qd, tau, method="gauss")
    with raises("E-CALL-073", "'articulated-body' does not support loops", "'fastest'"):
        robot.forward_dynamics(q, qd, tau, method="articulated-body")


@pytest.mark.parametrize("method", SOLVERS)
def test_a_singular_position_names_its_joints(method: str) -> None:
    flat, zero = chasles.robots.four_bar(1.0, 0.5, 1.0, 0.5), np.zeros(3)
    text = "E-LOOP-011 'crank'"
    with raises(text):
        flat.forward_dynamics(zero, zero, zero, method=method)


def test_a_dead_centre_is_no_obstacle() -> None:
    """Dynamics is defined at a dead center, where the slider does not determine the crank."""
    pump = mechanism("slider_crank").with_independent("a")
    q, rest = np.array([0.0, 0.0, 0.0, 4.0]), np.zeros(4)
    close(
        pump.forward_dynamics(q, rest, rest),
        mechanism("slider_crank").forward_dynamics(q, rest, rest),
        1e-10,
    )


def test_loops_are_asked_for_by_name() -> None:
    robot, q, qd, tau = case("four_bar")
    text = "E-ROBOT-015"
    for call in (
        lambda: robot.derivatives("forward_dynamics", q, qd, tau),
        lambda: robot.pullback("forward_dynamics", q, qd, tau, covector=tau),
        lambda: chasles.compile(robot, "forward_dynamics", wrt="q"),
        lambda: chasles.compile(robot, "forward_dynamics"),
    ):
        with raises(text):
            call()
    arm = chasles.robots.planar(2)
    with raises("E-LOOP-041", "forward_dynamics"):
        arm.constrained_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))


def test_methods_of_trees_are_refused() -> None:
    """Functions with a single method for closed loops reject `method`."""
    robot, q, qd, _ = case("four_bar")
    for call in (
        lambda: robot.mass_matrix(q, coordinates="independent", method="spatial"),
        lambda: robot.mass_matrix_inverse(q, coordinates="independent", method="spatial"),
        lambda: robot.inverse_dynamics(q, qd, qd, actuated=["crank"], method="lagrange"),
        lambda: robot.operational_inertia_inverse(q, frame="rocker", method="projection"),
    ):
        with raises("E-LOOP-035", "' applies only to trees, but robot '"):
            call()


def test_a_loop_that_forbids_nothing_changes_nothing() -> None:
    """A free loop joint imposes no constraint, so the robot behaves like the tree."""
    source = chasles.robots.four_bar().model.source
    loose = chasles.Robot(replace(source, loops=(replace(source.loops[0], kind="free"),)))
    tree = chasles.Robot(replace(source, loops=()))
    q, qd, tau = np.random.default_rng(0).normal(size=(3, 3))
    np.testing.assert_array_equal(
        loose.forward_dynamics(q, qd, tau), tree.forward_dynamics(q, qd, tau)
    )


def test_derivatives_of_loop_forces() -> None:
    """The derivative is linear in the multipliers, and agrees in q with central differences.

    Differences with step 1e-6 have an error of about 1e-9.
    """
    bars = chasles.robots.four_bar()
    q, lam = bars.assemble([0.4]), np.random.default_rng(1).normal(size=5)
    by_q, by_lam = bars.derivatives("loop_forces", q, lam)
    close(by_lam @ lam, bars.loop_forces(q, lam), 1e-14)
    for k, step in enumerate(1e-6 * np.eye(3)):
        moved = (bars.loop_forces(q + step, lam) - bars.loop_forces(q - step, lam)) / 2e-6
        np.testing.assert_allclose(by_q[..., k], moved, atol=1e-8)


def test_damping_of_a_loop_joint_is_noted() -> None:
    source = chasles.robots.four_bar().model.source
    damped = replace(source, loops=(replace(source.loops[0], damping=5.0),))
    (note,) = chasles.Robot(damped).notes
    assert "loop 'pin': its armature, damping and friction are ignored" in note
