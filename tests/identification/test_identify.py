"""Identification finds the true parameters from simulated measurements."""

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls
from support import raises

import chasles
from chasles.identification import Identified, log_cholesky
from chasles.identification.consistent import LEAST, UNITS, Problem, matrices, solved
from chasles.identification.unknowns import pseudo_inertia

NOISE = 0.01
"""Standard deviation of torques, relative to their rms."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def motion(rng: np.random.Generator, n: int, count: int = 1500) -> list[np.ndarray]:
    """Return positions, velocities, accelerations (count, n) of a Fourier series of five terms."""
    t, k = np.linspace(0.0, 6.0, count), 2.0 * np.pi / 6.0 * np.arange(1, 6)
    a, b = rng.normal(size=(2, n, 5)) / np.arange(1, 6)
    s, c = np.sin(np.outer(t, k)), np.cos(np.outer(t, k))
    return [
        s @ a.T + c @ b.T,
        (c * k) @ a.T - (s * k) @ b.T,
        -((s * k**2) @ a.T + (c * k**2) @ b.T),
    ]


def states(robot: chasles.Robot, rng: np.random.Generator, count: int = 1500) -> list[np.ndarray]:
    """Return q, qd and qdd of a motion of any robot, within its configuration space."""
    if len(robot.independent) < robot.nv:
        return _closed(robot, rng, count)
    steps, qd, qdd = motion(rng, robot.nv, count)
    if robot.nq == robot.nv:
        return [steps, qd, qdd]
    return [robot.integrate(robot.neutral(), steps), qd, qdd]  # rates are independent samples


def _closed(robot: chasles.Robot, rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Return states with closed loops near one position."""
    home = closed(
        robot,
        robot.assemble(robot.neutral()[: len(robot.independent)] + 0.5)
        if robot.nq == robot.nv
        else robot.neutral(),
    )
    found: list[np.ndarray] = []
    while len(found) < count // 10:
        steps = robot.complete(home, 0.2 * rng.normal(size=len(robot.independent)))
        q = closed(robot, robot.integrate(home, steps))
        if np.abs(robot.loop_residual(q)).max() < 1e-12:
            found.append(q)
    q = np.repeat(np.array(found), 10, axis=0)
    yd, ydd = rng.normal(size=(2, len(q), len(robot.independent)))
    return [q, *robot.complete(q, 2.0 * yd, 10.0 * ydd)]


def closed(robot: chasles.Robot, guess: np.ndarray) -> np.ndarray:
    """Close the loops from a guess by Gauss-Newton steps on the residual."""
    for _ in range(20):
        A, r = robot.loop_matrix(guess), robot.loop_residual(guess)
        guess = robot.integrate(guess, -np.linalg.pinv(A) @ r)
    return guess


def measured(
    robot: chasles.Robot,
    at: list[np.ndarray],
    rng: np.random.Generator,
    noise: float = NOISE,
    **options: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy torques of the true robot, and the standard deviation for each joint."""
    if len(robot.independent) < robot.nv:  # the motors are at the independent joints
        options["actuated"] = robot.independent
    tau = robot.inverse_dynamics(*at, **options)
    sigma = noise * np.sqrt(np.mean(tau**2, axis=0))
    return tau + sigma * rng.normal(size=tau.shape), sigma


def spoiled(robot: chasles.Robot) -> chasles.Robot:
    """Return the robot with masses that are 30 % too large."""
    links = {link.name: link.inertia.m for link in robot.model.source.links if link.inertia.m}
    return robot.with_parameters({f"{name}.mass": 1.3 * m for name, m in links.items()})


def truth(found: Identified, robot: chasles.Robot, **terms: float) -> np.ndarray:
    """Return the true base parameters; `terms` are true values, equal for all joints."""
    rest = [np.full(len(found.model.joints), terms.get(term, 0.0)) for term in found.model.terms]
    return np.asarray(found.combination @ np.concatenate([robot.inertial_parameters(), *rest]))


def least_eigenvalue(found: Identified) -> float:
    bodies = found.vector[: 10 * len(found.model.links)].reshape(-1, 10)
    return min(float(np.linalg.eigvalsh(pseudo_inertia(p))[0]) for p in bodies)


ROBOTS = {
    "puma560": chasles.robots.puma560,
    "stanford_arm": chasles.robots.stanford_arm,
    "quadruped": chasles.robots.quadruped,
    "four_bar": chasles.robots.four_bar,
    "stewart": chasles.robots.stewart,
}


@pytest.mark.parametrize("prior", ["pull-back", "entropic"])
@pytest.mark.parametrize("name", ROBOTS)
def test_base_parameters_and_prediction(name: str, prior: Any) -> None:
    """Base parameters agree within their deviations, and torques of new motions are predicted."""
    robot, rng = ROBOTS[name](), np.random.default_rng(3)
    at = states(robot, rng)
    tau, _ = measured(robot, at, rng)
    q, qd, qdd = at
    terms = ["inertia"] if name == "quadruped" else ["inertia", "damping", "offset"]
    found = chasles.identify(
        spoiled(robot), q=q, qd=qd, qdd=qdd, tau=tau, include=terms, prior=prior
    )
    away = np.abs(found.base - truth(found, robot)) / found.deviations
    assert np.mean(away < 3.0) > 0.97
    assert np.sqrt(np.mean(away**2)) < 1.5  # the deviations are neither too small nor too large
    new = states(robot, np.random.default_rng(4), 300)
    exact, _ = measured(robot, new, rng, noise=0.0)
    for consistent in (True, False):
        error = found.validate(*new, exact, consistent=consistent)
        assert np.all(np.sqrt(error**2 + found.noise**2) < 1.2 * found.noise)
    assert least_eigenvalue(found) > 0.0
    assert found.robot.joints == robot.joints


def test_the_new_robot_moves_as_the_true_one(tmp_path: Any) -> None:
    """Torques of the identified robot on new motions are within the noise, also after saving."""
    robot, rng = chasles.robots.puma560(), np.random.default_rng(5)
    at = states(robot, rng)
    tau, sigma = measured(robot, at, rng)
    q, qd, qdd = at
    found = chasles.identify(spoiled(robot), q=q, qd=qd, qdd=qdd, tau=tau, include=["inertia"])
    chasles.save(found.robot, tmp_path / "new.toml")
    again = chasles.load(tmp_path / "new.toml")
    new = states(robot, np.random.default_rng(6), 300)
    error = again.inverse_dynamics(*new) - robot.inverse_dynamics(*new)
    assert np.all(np.sqrt(np.mean(error**2, axis=0)) < sigma)
    given = robot.with_parameters(found)
    np.testing.assert_allclose(
        given.mass_matrix(q[:5]), found.robot.mass_matrix(q[:5]), rtol=1e-12, atol=1e-15
    )


def test_friction_damping_armature_and_offset_are_recovered() -> None:
    robot, rng = chasles.robots.stanford_arm(), np.random.default_rng(7)
    q, qd, qdd = states(robot, rng, 3000)
    tau, _ = measured(robot, [q, qd, qdd], rng)
    tau = tau + 0.3 * qd + 0.5 * np.sign(qd) + 0.2
    found = chasles.identify(
        robot, q=q, qd=qd, qdd=qdd, tau=tau, include=["inertia", "damping", "friction", "offset"]
    )
    true = truth(found, robot, damping=0.3, friction=0.5, offset=0.2)
    assert np.mean(np.abs(found.base - true) < 3.0 * found.deviations) > 0.97
    for joint in robot.joints:
        np.testing.assert_allclose(found.parameters[f"{joint}.damping"], 0.3, atol=0.02)
        np.testing.assert_allclose(found.parameters[f"{joint}.friction"], 0.5, atol=0.03)
        assert found.robot.joint(joint).friction == found.parameters[f"{joint}.friction"]


def test_the_noise_of_each_joint_is_found() -> None:
    """Weights follow from residuals, so joints with ten times the noise count less."""
    robot, rng = chasles.robots.puma560(), np.random.default_rng(8)
    q, qd, qdd = states(robot, rng, 3000)
    sigma = np.array([0.1, 1.0, 0.1, 0.01, 0.05, 0.01])
    tau = robot.inverse_dynamics(q, qd, qdd) + sigma * rng.normal(size=(3000, 6))
    found = chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau, include=["inertia"])
    np.testing.assert_allclose(found.noise, sigma, rtol=0.06)


def test_outliers_do_little_with_a_robust_loss() -> None:
    robot, rng = chasles.robots.planar(3), np.random.default_rng(9)
    q, qd, qdd = states(robot, rng)
    tau, sigma = measured(robot, [q, qd, qdd], rng)
    bad = rng.random(tau.shape) < 0.05
    spoilt = np.where(bad, tau + 100.0 * sigma, tau)
    error = {}
    for loss in ("squares", "huber"):
        found = chasles.identify(
            robot, q=q, qd=qd, qdd=qdd, tau=spoilt, include=["inertia"], loss=loss
        )
        error[loss] = np.abs(found.base - truth(found, robot)).max()
    assert error["huber"] < 0.2 * error["squares"]


@pytest.mark.parametrize("prior", ["pull-back", "entropic", "log-cholesky"])
@pytest.mark.parametrize("case", ["ten samples", "still", "millinewtons", "reversed", "garbage"])
def test_parameters_are_always_consistent(case: str, prior: Any) -> None:
    """Results for few samples, poor motions, wrong units or noise are physically consistent."""
    robot, rng = chasles.robots.puma560(), np.random.default_rng(10)
    q, qd, qdd = states(robot, rng, 10 if case == "ten samples" else 400)
    if case == "still":
        q, qd, qdd = q * 1e-3, 0.0 * qd, 0.0 * qdd
    tau, _ = measured(robot, [q, qd, qdd], rng)
    tau = {"millinewtons": 1e3 * tau, "reversed": -tau, "garbage": rng.normal(size=tau.shape)}.get(
        case, tau
    )
    found = chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau, prior=prior)
    assert least_eigenvalue(found) > 0.0
    assert np.all(np.linalg.eigvalsh(found.robot.mass_matrix(robot.random(rng, 20))) > 0.0)
    if case in ("ten samples", "still", "millinewtons"):
        assert found.notes
    assert found.report().startswith("puma560: ")


def test_initial_values_have_no_rounding_errors() -> None:
    """Ixx - Iyy of the last link of a PUMA 560 is exactly zero in the report."""
    robot, rng = chasles.robots.puma560(), np.random.default_rng(11)
    q, qd, qdd = states(robot, rng, 200)
    tau, _ = measured(robot, [q, qd, qdd], rng)
    found = chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau, include=["inertia"])
    exact = found.combination @ found.model.nominal
    assert np.any(exact[found.before == 0.0] != 0.0)
    np.testing.assert_allclose(found.before, exact, atol=1e-15)
    assert not re.search(r"e-(1[6-9]|[2-9]\d)$", found.report(), re.MULTILINE)


@pytest.mark.parametrize("spread", [0.0, 3.0, 6.0])
def test_consistent_parameters_are_optimal(spread: float) -> None:
    """Solutions satisfy the Karush-Kuhn-Tucker conditions for noise over many orders of magnitude.

    Multipliers of the linear inequalities are non-negative least-squares solutions for the
    gradient. The remaining gradient with respect to each 1 + Z must be positive semidefinite, and
    orthogonal to the distance from the bound.
    """
    rng = np.random.default_rng(int(spread))
    bodies, rows, signs = 4, 60, np.arange(40, 44)
    A = rng.normal(size=(rows, 48)) * 10.0 ** rng.uniform(-spread / 2, spread / 2, (rows, 1))
    b = A @ (1.5 * rng.normal(size=48)) + rng.normal(size=rows)
    inside = np.zeros(48)
    inside[signs] = 1.0
    G = np.vstack([np.eye(48)[signs], rng.normal(size=(3, 48))])
    g = np.append(np.zeros(4), 1.0 - G[4:] @ inside)
    problem = Problem(A, b, bodies, 3.0, G, g, inside)
    z = solved(problem, "pull-back")
    assert not problem.feasible(problem.unbounded())
    assert problem.feasible(z)
    cost = 0.5 * np.sum((A @ z - b) ** 2) + 0.5 * np.sum(problem.weights() * z**2)
    slope = A.T @ (A @ z - b) + problem.weights() * z
    away = matrices(z, bodies) - LEAST * np.eye(4)
    active = problem.slack(z) < 1e-6 * (1.0 + np.abs(problem.slack(z)).max())
    rest = _without_inequalities(slope, G[active], away)
    R = np.tensordot(rest[:40].reshape(bodies, 10), UNITS, 1)
    assert abs(np.einsum("kij,kji->", R, away)) < 1e-8 * cost
    assert np.linalg.eigvalsh(R).min() > -1e-8 * cost
    assert np.abs(rest[40:]).max() < 1e-8 * cost


def _without_inequalities(slope: np.ndarray, G: np.ndarray, away: np.ndarray) -> np.ndarray:
    """Return the gradient minus non-negative multiples of active inequalities.

    The multiples are fitted so that nothing remains along joint terms and along directions in which
    1 + Z is not at its bound.
    """
    free = []
    for k, W in enumerate(away):
        values, V = np.linalg.eigh(W)
        kept = V[:, values > 1e-4]
        for i in range(kept.shape[1]):
            for j in range(i + 1):
                row = np.zeros(len(slope))
                D = np.outer(kept[:, i], kept[:, j])
                row[10 * k : 10 * k + 10] = np.tensordot(UNITS, 0.5 * (D + D.T), 2)
                free.append(row)
    basis = np.vstack([*free, np.eye(len(slope))[10 * len(away) :]])
    factors, _ = nnls(basis @ G.T, basis @ slope)
    return np.asarray(slope - G.T @ factors)


def test_log_cholesky_coordinates_are_optimal() -> None:
    """Derivatives agree with finite differences, and the gradient is zero at the result."""
    rng = np.random.default_rng(4)
    bodies, rows, signs = 3, 45, np.array([31, 32])
    A = rng.normal(size=(rows, 33))
    b = A @ (1.5 * rng.normal(size=33)) + rng.normal(size=rows)
    inside = np.zeros(33)
    inside[signs] = 1.0
    problem = Problem(A, b, bodies, 3.0, np.eye(33)[signs], np.zeros(2), inside)
    signed = np.isin(np.arange(33), signs)
    x, way, h = rng.normal(size=33), rng.normal(size=33), 1e-6
    slope = log_cholesky._mapped(x, bodies, signed)[1] @ way
    ends = [log_cholesky._mapped(x + s * h * way, bodies, signed)[0] for s in (1.0, -1.0)]
    np.testing.assert_allclose((ends[0] - ends[1]) / (2.0 * h), slope, rtol=1e-6, atol=1e-6)
    pulled = rng.normal(size=33)
    bent = log_cholesky._bend(x, pulled, bodies, signed) @ way
    ends = [log_cholesky._mapped(x + s * h * way, bodies, signed)[1].T @ pulled for s in (1, -1)]
    np.testing.assert_allclose((ends[0] - ends[1]) / (2.0 * h), bent, rtol=1e-5, atol=1e-5)
    convex = solved(problem, "pull-back")
    z = log_cholesky.log_cholesky(problem, convex)
    assert problem.feasible(z)
    x = log_cholesky._coordinates(z, bodies, signed)
    gradient = problem.weights() * x
    gradient += log_cholesky._mapped(x, bodies, signed)[1].T @ (A.T @ (A @ z - b))
    cost = 0.5 * np.sum((A @ z - b) ** 2)
    assert np.abs(gradient).max() < 1e-5 * cost
    start = log_cholesky._coordinates(convex, bodies, signed)
    costs = [0.5 * np.sum((A @ at - b) ** 2) + 0.5 * np.sum(problem.weights() * theta**2)
             for at, theta in ((z, x), (convex, start))]  # fmt: skip
    assert costs[0] <= costs[1]


def test_log_cholesky_finds_the_robot() -> None:
    """With enough data, the prior hardly affects the predictions."""
    robot, rng = chasles.robots.puma560(), np.random.default_rng(3)
    at = states(robot, rng)
    tau, sigma = measured(robot, at, rng)
    new = states(robot, rng)
    options: Any = dict(zip(("q", "qd", "qdd"), at, strict=True)) | {"tau": tau}
    found = chasles.identify(spoiled(robot), **options, prior="log-cholesky", include=["inertia"])
    assert np.all(found.validate(*new, robot.inverse_dynamics(*new)) < 0.2 * sigma)
    with raises("E-IDENT-046", "shapes"):
        chasles.identify(robot, **options, prior="log-cholesky", enclosed="box")


def test_essential_parameters_are_estimated_without_the_others() -> None:
    """Essential parameters equal least squares on their columns; the others are left out."""
    robot, rng = chasles.robots.puma560(), np.random.default_rng(6)
    q, qd, qdd = states(robot, rng)
    tau, _ = measured(robot, [q, qd, qdd], rng, noise=0.05)
    found = chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau, include=["inertia"])
    essential = found.essential
    assert 10 < len(essential) < len(found.base)
    Y = robot.regressor(q, qd, qdd) / found.noise[:, None]
    kept = [c for c, name in zip(found.columns, found.names, strict=True) if name in essential]
    W, rest = Y.reshape(-1, 60)[:, kept], tau - found.model.known(q, qd, qdd)
    x = np.linalg.lstsq(W, (rest / found.noise).ravel(), rcond=None)[0]
    # The noise for the weights is estimated again from the last residuals, hence 1e-3.
    np.testing.assert_allclose(list(essential.values()), x, rtol=1e-3, atol=1e-6)
    assert np.all(np.abs(x) > 2.99 * np.sqrt(np.diagonal(np.linalg.inv(W.T @ W))))
    assert f"{len(essential)} parameters essential" in found.report()


def test_external_wrenches_are_taken_off() -> None:
    """A known force on the tool does not change the identified parameters."""
    robot, rng = chasles.robots.puma560(), np.random.default_rng(11)
    q, qd, qdd = states(robot, rng)
    push = {"tool": chasles.Wrench(np.array([0.0, 1.0, 0.0, 20.0, 5.0, -10.0]))}
    tau, sigma = measured(robot, [q, qd, qdd], rng, f_ext=push)
    found = chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau, include=["inertia"], f_ext=push)
    assert np.all(found.noise < 1.2 * sigma)


def test_refusals() -> None:
    robot = chasles.robots.planar(2)
    zero = np.zeros((5, 2))
    good: dict[str, Any] = {"q": zero, "qd": zero, "qdd": zero, "tau": zero}
    with raises("E-IDENT-008", "tau has 4"):
        chasles.identify(robot, **{**good, "tau": zero[:4]})
    with raises("E-IDENT-007", "qd", "row 2"):
        chasles.identify(
            robot, **{**good, "qd": np.where(np.arange(5)[:, None] == 2, np.nan, zero)}
        )
    with raises("E-IDENT-001", "stiction"):
        chasles.identify(robot, **good, include=["stiction"])
    with raises("E-IDENT-003"):
        chasles.identify(robot, **good, prior="flat")  # type: ignore[arg-type]
    with raises("E-IDENT-004"):
        chasles.identify(robot, **good, deviation=-1.0)
    with raises("E-IDENT-006"):
        chasles.identify(robot, **good, loss="cubes")  # type: ignore[arg-type]
    for wrong in ("1", None, [1.0], 1e-300, np.inf):
        with raises("E-IDENT-004|E-CALL-113|E-CALL-114"):
            chasles.identify(robot, **good, deviation=wrong)  # type: ignore[arg-type]
    with raises("E-CALL-115"):
        chasles.identify(robot, **good, seed=-1)
    with raises("E-IDENT-050", "no logs"):
        chasles.identify(robot, **good, cluster="local:2")
    with raises("E-CALL-111"):
        chasles.identify(robot, **good, include=3)  # type: ignore[arg-type]
    with raises("E-IDENT-009", "no samples"):
        chasles.identify(robot, **{name: array[:0] for name, array in good.items()})
    none = np.zeros((5, 0))
    with raises("E-IDENT-009"):
        locked = chasles.robots.planar(1).lock({"joint1": 0.3})
        chasles.identify(locked, q=none, qd=none, qdd=none, tau=none)
    with raises("E-ROBOT-061", "mass"):
        robot.with_parameters({"link1.mass": -1.0})
    with raises("E-ROBOT-060", "link1.center"):
        robot.with_parameters({"link1.center": [1.0, 2.0]})
    with raises("E-ROBOT-062", "link1"):
        robot.with_parameters({"link1.inertia": np.diag([1.0, 1.0, 9.0])})
    with raises("E-MODEL-038"):
        robot.with_parameters({"link9.mass": 1.0})


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e155, 1e300])
def test_numbers_that_cannot_be_squared_end_in_an_error(scale: float) -> None:
    """Values that overflow raise an error, because LAPACK's least squares would not terminate."""
    robot, rng = chasles.robots.planar(2), np.random.default_rng(0)
    q, qd, qdd, tau = rng.normal(size=(4, 30, 2))
    with pytest.raises(chasles.ChaslesError) as caught:
        chasles.identify(robot, q=q, qd=qd, qdd=scale * qdd, tau=tau / scale)
    assert caught.value.code in ("E-IDENT-010", "E-CALL-001")


def test_torques_without_noise_outweigh_the_prior() -> None:
    """Without noise, data have weights of 1e24 relative to the prior, and torques are predicted."""
    robot, rng = chasles.robots.planar(2), np.random.default_rng(0)
    truth = robot.with_parameters({"link2.mass": 1.3})
    q, qd, qdd = rng.normal(size=(3, 50, 2))
    tau = truth.inverse_dynamics(q, qd, qdd)
    found = chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau, include=["inertia"])
    assert np.all(found.validate(q, qd, qdd, tau) < 1e-6 * np.abs(tau).max())


def test_predictions_take_states_that_fit() -> None:
    robot, rng = chasles.robots.planar(2), np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 50, 2))
    tau = robot.inverse_dynamics(q, qd, qdd)
    found = chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau, include=["inertia"])
    np.testing.assert_allclose(found.predict(q[0], qd[0], qdd[0])[0], tau[0], rtol=1e-6)
    with raises("E-IDENT-008"):
        found.predict(q, qd[:1], qdd)
    with raises("E-IDENT-008"):
        found.validate(q, qd, qdd, tau[:3])
    with raises("E-CALL-113"):
        found.predict({}, qd, qdd)
