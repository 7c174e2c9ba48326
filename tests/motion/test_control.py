"""Operational-space dynamics of a frame, their sensitivities, and computed torque."""

from typing import Any

import numpy as np
import pytest
from support import close, raises, state

import chasles
from chasles import control
from chasles.robots import planar, puma560, quadruped, stanford_arm

DIFFERENCES = 1e-6
FRAME = {"frame": "tool"}


def rate(value: Any, h: float = 1e-3) -> np.ndarray:
    """Return the derivative at zero, by differences of fourth order."""
    return (8.0 * (value(h) - value(-h)) - value(2 * h) + value(-2 * h)) / (12.0 * h)


def matvec(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", A, x)


# Coordinates and their Jacobians -----------------------------------------------------------------


def test_a_frame_may_follow_the_arrays_by_position() -> None:
    robot = puma560()
    q, qd, _ = (a[0] for a in state(robot, 1, 2))
    for function, arrays in (
        (control.task_coordinates, (q,)),
        (control.task_jacobian, (q,)),
        (control.task_jacobian_rate, (q, qd)),
        (control.operational_dynamics, (q, qd)),
    ):
        by_name = function(robot, *arrays, **FRAME)
        np.testing.assert_array_equal(function(robot, *arrays, "tool")[0], by_name[0])


@pytest.mark.parametrize("task", ["position", "pose"])
def test_jacobian_is_the_derivative_of_the_coordinates(task: Any) -> None:
    robot = puma560()
    q, qd, _ = state(robot, 1, 4)
    J = control.task_jacobian(robot, q, task=task, **FRAME)

    def chi(t: float) -> np.ndarray:
        return control.task_coordinates(robot, q + t * qd, task=task, **FRAME)

    close(matvec(J, qd), rate(chi), 1e-7)  # roll and yaw are sensitive at steep pitch


@pytest.mark.parametrize("task", ["twist", "position", "pose"])
def test_jacobian_rate(task: Any) -> None:
    robot = puma560()
    q, qd, _ = state(robot, 2, 3)
    found = control.task_jacobian_rate(robot, q, qd, task=task, **FRAME)
    close(found, rate(lambda t: control.task_jacobian(robot, q + t * qd, task=task, **FRAME)), 1e-8)


def test_states_broadcast() -> None:
    """One configuration broadcasts over many velocities, and NaN stays in its own row."""
    robot = puma560()
    q, qd, qdd = state(robot, 10, 4)
    chosen = {"task": "pose", **FRAME}
    several = control.operational_sensitivities(robot, q[0], qd, qdd, **chosen)
    one = control.operational_sensitivities(robot, q[0], qd[3], qdd[3], **chosen)
    Lambda, bias = control.operational_dynamics(robot, q[0], qd, **chosen)
    assert (Lambda.shape, bias.shape) == ((6, 6), (4, 6))
    for many, single in zip(several, one, strict=True):
        assert many.shape[-2:] == (6, 6)
        close(many[3] if many.ndim == 3 else many, single, 1e-12)
    q[1] = np.nan
    Lambda, _ = control.operational_dynamics(robot, q, qd, **chosen)
    assert np.all(np.isnan(Lambda[1]))
    assert np.all(np.isfinite(Lambda[[0, 2, 3]]))


def test_a_floating_robot_moves_along_its_own_steps() -> None:
    walker = quadruped()
    q, qd, _ = state(walker, 3)
    frame = {"frame": "front_left_foot", "task": "position"}
    J = control.task_jacobian(walker, q, **frame)
    moved = rate(lambda t: control.task_coordinates(walker, walker.integrate(q, t * qd), **frame))
    close(J @ qd, moved, 1e-9)


# Operational dynamics ----------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["twist", "pose"])
@pytest.mark.parametrize("make", [puma560, stanford_arm], ids=lambda f: f.__name__)
def test_a_force_at_the_frame_moves_it_as_lambda_says(make: Any, task: Any) -> None:
    """The torques tau = J' f give the frame the acceleration xdd with f = Lambda xdd + bias."""
    robot = make()
    q, qd, f = state(robot, 4, 3)
    J = control.task_jacobian(robot, q, task=task, **FRAME)
    Jd = control.task_jacobian_rate(robot, q, qd, task=task, **FRAME)
    Lambda, bias = control.operational_dynamics(robot, q, qd, task=task, **FRAME)
    qdd = robot.forward_dynamics(q, qd, matvec(np.swapaxes(J, -1, -2), f))
    xdd = matvec(J, qdd) + matvec(Jd, qd)
    close(matvec(Lambda, xdd) + bias, f, 1e-8, scale=float(np.max(np.abs(bias))))
    assert np.array_equal(Lambda, np.swapaxes(Lambda, -1, -2))
    back = np.linalg.inv(J)
    close(Lambda, np.swapaxes(back, -1, -2) @ robot.mass_matrix(q) @ back, 1e-8)


def test_a_redundant_robot_feels_no_more_than_the_task() -> None:
    """The relation f = Lambda xdd + bias also holds for six coordinates and three rows."""
    robot = puma560()
    q, qd, _ = state(robot, 5)
    f = np.array([1.0, -2.0, 3.0])
    chosen = {"task": "position", **FRAME}
    J = control.task_jacobian(robot, q, **chosen)
    Lambda, bias = control.operational_dynamics(robot, q, qd, **chosen)
    qdd = robot.forward_dynamics(q, qd, J.T @ f)
    xdd = J @ qdd + control.task_jacobian_rate(robot, q, qd, **chosen) @ qd
    close(Lambda @ xdd + bias, f, 1e-9, scale=float(np.max(np.abs(bias))))


def test_too_many_rows_and_singular_configurations() -> None:
    arm, puma, zero = planar(3), puma560(), np.zeros(6)
    at = np.zeros(3), np.zeros(3)
    with raises("E-CONTROL-003", "'twist'", "'planar'"):
        control.operational_dynamics(arm, *at, frame="tip")
    with raises("E-CONTROL-010", "damping="):
        control.operational_dynamics(puma, zero, zero, frame="link6")
    q = np.stack([puma.random(seed=1), zero])
    with raises("E-CONTROL-010", "(1,)"):
        control.operational_dynamics(puma, q, np.zeros_like(q), frame="link6")
    damped, bias = control.operational_dynamics(puma, zero, zero, frame="link6", damping=0.1)
    assert np.all(np.isfinite(damped))
    assert np.max(np.linalg.eigvalsh(damped)) <= 100.0 * (1.0 + 1e-9)
    assert bias.shape == (6,)


def test_little_damping_changes_little() -> None:
    robot = puma560()
    q, qd, _ = state(robot, 6)
    exact, damped = (
        control.operational_dynamics(robot, q, qd, damping=d, **FRAME) for d in (None, 1e-6)
    )
    close(damped[0], exact[0], 1e-6)
    close(damped[1], exact[1], 1e-6)


@pytest.mark.parametrize("damping", [0.0, -1.0, float("nan")])
def test_wrong_damping(damping: float) -> None:
    with raises("E-CONTROL-002"):
        control.operational_dynamics(puma560(), *np.zeros((2, 6)), damping=damping, **FRAME)


def test_wrong_names() -> None:
    robot, zero = puma560(), np.zeros(6)
    with raises("E-CONTROL-009", "'twist'", "'position'", "'pose'"):
        control.task_jacobian(robot, zero, frame="tool", task="place")  # type: ignore[arg-type]
    with raises("E-MODEL-034", "'hand'"):
        control.operational_dynamics(robot, zero, zero, frame="hand")
    with raises("E-CONTROL-001"):
        control.task_coordinates(robot, zero, frame="tool", task="twist")
    with raises("E-CONTROL-005"):
        control.operational_sensitivities(robot, zero, zero, zero, frame="tool", task="twist")
    with raises("E-CONTROL-006", "'puma560'"):
        control.operational_sensitivities(robot, zero, zero, zero, frame="tool")


# Sensitivities -----------------------------------------------------------------------------------


def arm_of_three() -> chasles.Robot:
    """Return the PUMA with its wrist locked, which is a 3R arm."""
    robot = puma560()
    return robot.lock(dict.fromkeys(robot.joints[3:], 0.3))


@pytest.mark.parametrize(
    ("make", "task"), [(arm_of_three, "position"), (puma560, "pose"), (stanford_arm, "pose")]
)
def test_sensitivities_predict_torques_of_neighbouring_motions(make: Any, task: Any) -> None:
    """Sensitivities agree with differences along motions that realize chi + e dchi and its rates.

    Small Newton steps find the joint motions.
    """
    robot = make()
    q, qd, qdd = state(robot, 7)
    chosen = {"task": task, **FRAME}
    D, V, P = control.operational_sensitivities(robot, q, qd, qdd, **chosen)

    def motion(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> tuple[np.ndarray, ...]:
        J = control.task_jacobian(robot, q, **chosen)
        Jd = control.task_jacobian_rate(robot, q, qd, **chosen)
        return control.task_coordinates(robot, q, **chosen), J @ qd, J @ qdd + Jd @ qd

    chi, chid, chidd = motion(q, qd, qdd)

    def torque(dchi: np.ndarray, dchid: np.ndarray, dchidd: np.ndarray) -> np.ndarray:
        at = q.copy()
        for _ in range(8):
            left = chi + dchi - control.task_coordinates(robot, at, **chosen)
            at = at + np.linalg.solve(control.task_jacobian(robot, at, **chosen), left)
        J = control.task_jacobian(robot, at, **chosen)
        v = np.linalg.solve(J, chid + dchid)
        Jd = control.task_jacobian_rate(robot, at, v, **chosen)
        a = np.linalg.solve(J, chidd + dchidd - Jd @ v)
        return robot.inverse_dynamics(at, v, a)

    n, size = robot.nv, float(max(np.max(np.abs(x)) for x in (D, V, P)))
    for k, found in enumerate((P, V, D)):
        directions = [np.stack([unit * (k == r) for r in range(3)]) for unit in np.eye(n)]
        columns = [rate(lambda e, d=d: torque(*(e * d)), 1e-4) for d in directions]
        close(found, np.array(columns).T, DIFFERENCES, scale=size)


@pytest.mark.parametrize(
    ("make", "task"), [(arm_of_three, "position"), (puma560, "pose"), (stanford_arm, "pose")]
)
def test_perturbations_of_a_family_of_motions(make: Any, task: Any) -> None:
    """Perturbations agree with derivatives by e and t of chi at q + e dq + t (qd + e dqd) + ...

    See Eq 7.4.8 to 7.4.13.
    """
    robot = make()
    (q, qd, qdd), changes = state(robot, 3), state(robot, 4)
    chosen = {"task": task, **FRAME}

    def chi(t: float, e: float) -> np.ndarray:
        terms = [a + e * b for a, b in zip((q, qd, qdd), changes, strict=True)]
        at = terms[0] + t * terms[1] + 0.5 * t * t * terms[2]
        return control.task_coordinates(robot, at, **chosen)

    def varied(t: float) -> np.ndarray:
        return rate(lambda e: chi(t, e))

    found = control.task_perturbations(robot, q, qd, qdd, *changes, **chosen)
    second = (varied(1e-3) - 2.0 * varied(0.0) + varied(-1e-3)) / 1e-6
    for given, expected in zip(found, (varied(0.0), rate(varied), second), strict=True):
        close(given, expected, 1e-4, scale=float(np.max(np.abs(second))))
    back = control.joint_perturbations(robot, q, qd, qdd, *found, **chosen)
    for given, expected in zip(back, changes, strict=True):
        close(given, expected, 1e-9, scale=float(np.max(np.abs(changes))))
    D, V, P = control.operational_sensitivities(robot, q, qd, qdd, **chosen)
    in_joints = zip(robot.inverse_dynamics_sensitivities(q, qd, qdd), changes[::-1], strict=True)
    close(
        D @ found[2] + V @ found[1] + P @ found[0],
        sum(A @ x for A, x in in_joints),
        1e-9,
        scale=1e3,
    )


@pytest.mark.parametrize(
    ("make", "task"), [(arm_of_three, "position"), (puma560, "twist"), (stanford_arm, "pose")]
)
def test_torques_for_accelerations_of_a_task(make: Any, task: Any) -> None:
    """Eq 7.4.5 agrees with inverse dynamics in a batch, and G equals the gravity torques."""
    robot = make()
    q, qd, qdd = state(robot, 5, 4)
    D, C, G = control.operational_torques(robot, q, qd, task=task, **FRAME)
    J = control.task_jacobian(robot, q, task=task, **FRAME)
    Jd = control.task_jacobian_rate(robot, q, qd, task=task, **FRAME)
    xdd = matvec(J, qdd) + matvec(Jd, qd)
    tau = robot.inverse_dynamics(q, qd, qdd)
    close(matvec(D, xdd) + C + G, tau, 1e-9, scale=float(np.max(np.abs(D)) * np.max(np.abs(xdd))))
    close(G, robot.gravity_forces(q), 1e-12)


def test_variations_that_are_refused() -> None:
    robot, zero = puma560(), np.zeros(6)
    with raises("E-CONTROL-005", "task_perturbations"):
        control.task_perturbations(robot, *[zero] * 6, frame="tool", task="twist")
    with raises("E-CONTROL-006", "joint_perturbations"):
        control.joint_perturbations(robot, *[zero] * 6, frame="tool")
    with raises("E-CONTROL-006", "operational_torques"):
        control.operational_torques(robot, zero, zero, frame="tool", task="position")
    floating = quadruped()
    q, v = floating.neutral(), np.zeros(floating.nv)
    with raises("E-CONTROL-300", "linearize"):
        frame = floating.frames[-1]
        control.task_perturbations(floating, q, *[v] * 5, frame=frame, task="position")


# Computed torque ---------------------------------------------------------------------------------


def test_computed_torque_makes_oscillators() -> None:
    """The error's acceleration is -damping edot - stiffness e, for any motion of the robot."""
    robot = puma560()
    rng = np.random.default_rng(8)
    q, qd, qdd_wanted = state(robot, 8, 3)
    q_wanted, qd_wanted = q + 0.1 * rng.normal(size=q.shape), rng.normal(size=q.shape)
    k, d = rng.uniform(1.0, 9.0, size=(2, 6))
    wanted = q_wanted, qd_wanted, qdd_wanted
    tau = control.computed_torque(robot, q, qd, *wanted, stiffness=k, damping=d)
    qdd = robot.forward_dynamics(q, qd, tau)
    close(qdd, qdd_wanted + d * (qd_wanted - qd) + k * (q_wanted - q), 1e-9)


def test_computed_torque_of_a_floating_robot_goes_the_short_way() -> None:
    """Both quaternions of an orientation give the same torques."""
    walker = quadruped()
    q, qd, qdd = state(walker, 9)
    wanted = walker.integrate(q, 0.1 * qdd)
    other = wanted.copy()
    other[:4] *= -1.0
    gains = {"stiffness": 100.0, "damping": 20.0}
    first, second = (
        control.computed_torque(walker, q, qd, w, qd, 0.0 * qd, **gains) for w in (wanted, other)
    )
    close(first, walker.inverse_dynamics(q, qd, 100.0 * 0.1 * qdd), 1e-9)
    close(second, first, 1e-12)


def test_wrong_gains() -> None:
    zero = np.zeros(6)
    with raises("E-CONTROL-007"):
        control.computed_torque(
            puma560(), zero, zero, zero, zero, zero, stiffness=np.ones(5), damping=1.0
        )


@pytest.mark.parametrize("name", ["q", "qd", "q_wanted", "qd_wanted", "qdd_wanted"])
@pytest.mark.parametrize("wrong", [0.5, [0.5], np.zeros(5), np.zeros((2, 7))], ids=np.shape)
def test_wrong_shapes(name: str, wrong: Any) -> None:
    """Arrays that do not have six entries are rejected by name, even if they would broadcast."""
    given = dict.fromkeys(("q", "qd", "q_wanted", "qd_wanted", "qdd_wanted"), np.zeros(6))
    with raises("E-CALL-056", name):
        control.computed_torque(puma560(), **(given | {name: wrong}), stiffness=1.0, damping=1.0)


def test_wrong_batches() -> None:
    zero = np.zeros(6)
    with raises("E-CALL-057", "(3,)", "(2,)", "qd_wanted"):
        control.computed_torque(
            puma560(),
            zero,
            zero,
            zero,
            np.zeros((3, 6)),
            zero,
            stiffness=1.0,
            damping=np.ones((2, 6)),
        )


def test_computed_torque_in_every_form() -> None:
    """Torques agree with inverse dynamics for lists, integers, batches, shared and scalar gains."""
    walker = quadruped()
    q, qd, qdd = state(walker, 11, 5)
    goal, rate_wanted, _ = state(walker, 12, 5)
    for stiffness, damping in (
        (20.0, 3),
        (np.float64(20.0), np.full(walker.nv, 3.0)),
        (np.linspace(1.0, 9.0, walker.nv), 0.5),
        (np.linspace(1.0, 9.0, 5 * walker.nv).reshape(5, -1), [2.0]),
        (np.array(4), np.array([[1.0]] * 5)),
    ):
        e, edot = walker.difference(q, goal), rate_wanted - qd
        asked = qdd + np.asarray(stiffness) * e + np.asarray(damping) * edot
        expected = walker.inverse_dynamics(q, qd, asked)
        gains = {"stiffness": stiffness, "damping": damping}
        for _ in range(2):
            found = control.computed_torque(walker, q, qd, goal, rate_wanted, qdd, **gains)
            close(found, expected, 1e-11)
        if np.ndim(stiffness) < 2 and np.ndim(damping) < 2:
            row = [a[2].tolist() for a in (q, qd, goal, rate_wanted, qdd)]
            close(control.computed_torque(walker, *row, **gains), expected[2], 1e-11)
    single = [a.astype(np.float32) for a in (q, qd, goal, rate_wanted, qdd)]
    short = {"stiffness": np.float32(2.0), "damping": np.ones(walker.nv, np.float32)}
    assert control.computed_torque(walker, *single, **short).dtype == np.float32
    for number in (2.0, 2, np.float64(2.0)):
        for arrays in (single, [a[0] for a in single]):
            gains = {"stiffness": number, "damping": number}
            found = control.computed_torque(walker, *arrays, **gains)
            assert found.dtype == np.float32
            close(found, control.computed_torque(walker, *map(np.float64, arrays), **gains), 1e-4)
    still = {"stiffness": 1.0, "damping": 1.0}
    for k in (0, 2):
        broken = [q[0], qd[0], goal[0].copy(), rate_wanted[0], qdd[0]]
        broken[k] = broken[k].copy()
        broken[k][:4] = 0.0  # the quaternion of the floating base
        with raises("E-CALL-037"):
            control.computed_torque(walker, *broken, **still)


def test_the_pose_of_a_driven_robot_is_that_of_its_time() -> None:
    robot = puma560().drive({"joint1": lambda t: 0.3 + 0.5 * t * t})
    q = state(robot, 13, 3)[0]
    for t in (0.2, 0.9):
        held = robot.at_time(t)
        for _ in range(2):
            chi = control.task_coordinates(held, q, **FRAME)
        pose = held.forward_kinematics(q, frame="tool")
        close(chi[:, 3:], pose[:, :3, 3], 1e-14)
        roll, pitch, yaw = np.moveaxis(chi[:, :3], -1, 0)
        close(np.cos(yaw) * np.cos(pitch), pose[:, 0, 0], 1e-13)
        close(np.cos(pitch) * np.sin(roll), pose[:, 2, 1], 1e-13)
    with pytest.raises(chasles.ChaslesError, match="depends on time"):
        control.task_coordinates(robot, q, **FRAME)
