"""Online estimation sample by sample, compared with estimates from all samples."""

import shutil
import subprocess
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles.identification.unknowns import pseudo_inertia

TERMS = ["inertia", "damping", "friction", "offset"]


def samples(robot: chasles.Robot, count: int, noise: float, seed: int = 0) -> list[np.ndarray]:
    """Return states, and torques with damping, friction and an offset."""
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.normal(size=(3, count, robot.nv))
    tau = robot.inverse_dynamics(q, qd, qdd) + 0.3 * qd + 0.5 * np.sign(qd) + 0.2
    return [q, qd, qdd, tau + noise * rng.normal(size=tau.shape)]


def after(estimator: Any, data: list[np.ndarray]) -> np.ndarray:
    state = estimator.initial
    for sample in zip(*data, strict=True):
        state = estimator(state, *sample)
    return np.asarray(state)


def test_recursive_least_squares_without_forgetting_is_least_squares() -> None:
    """The result equals NumPy's for the same linear model with the same initial variance."""
    robot = chasles.robots.planar(2)
    data = samples(robot, 60, 0.01)
    estimator = chasles.online_estimator(robot, include=TERMS, noise=[0.01, 0.02], forgetting=1.0)
    found = estimator.base(after(estimator, data))
    model, chosen = estimator.equations.model, estimator.equations.base
    A = (model.matrix(*data[:3])[..., chosen.columns] / [[[0.01], [0.02]]]).reshape(120, -1)
    b = ((data[3] - model.known(*data[:3])) / [0.01, 0.02]).ravel()
    start = chosen.combination @ model.nominal
    want = np.linalg.solve(A.T @ A + 1e-4 * np.eye(A.shape[1]), A.T @ b + 1e-4 * start)
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("method", ["least-squares", "manifold"])
def test_parameters_converge_and_follow_a_change(method: Any) -> None:
    """A load is attached after 1000 samples; due to forgetting, the estimate follows."""
    robot = chasles.robots.planar(2)
    loaded = robot.attach("tip", mass=0.5)
    estimator = chasles.online_estimator(
        robot, method=method, include=TERMS, noise=0.01, forgetting=0.99
    )
    state, K = estimator.initial, estimator.equations.base.combination
    for true in (robot, loaded):
        for sample in zip(*samples(true, 1000, 0.01), strict=True):
            state = estimator(state, *sample)
        x = np.concatenate([true.inertial_parameters(), np.repeat([0.3, 0.5, 0.2], 2)])
        np.testing.assert_allclose(estimator.base(state), K @ x, atol=0.01)
    if method == "manifold":
        assert estimator.robot(state).joint("joint1").friction == pytest.approx(0.5, abs=0.01)


def test_the_manifold_keeps_inertias_positive_definite() -> None:
    """Inertias are positive definite after every step, also for random torques."""
    robot, rng = chasles.robots.planar(2), np.random.default_rng(0)
    estimator = chasles.online_estimator(robot, method="manifold", noise=1e-3)
    state = estimator.initial
    for _ in range(300):
        state = estimator(state, *rng.normal(size=(3, 2)), 1e3 * rng.normal(size=2))
        for p in state[:20].reshape(2, 10):
            P = pseudo_inertia(p)
            size = np.sqrt(np.diagonal(P))
            assert np.linalg.eigvalsh(P / np.outer(size, size))[0] > 0.0
        assert np.all(state[20:24] > 0.0)


def test_variances_stay_bounded_without_excitation() -> None:
    robot = chasles.robots.planar(1)
    estimator = chasles.online_estimator(robot, include=["inertia"], forgetting=0.5)
    state = estimator.initial
    for _ in range(2000):
        state = estimator(state, *np.zeros((4, 1)))
    assert np.abs(state).max() < 1e5


@pytest.mark.parametrize("method", ["least-squares", "manifold"])
def test_exported_c_takes_the_same_steps(method: Any, tmp_path: Any) -> None:
    """The exported C test compares stored results of three steps."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    estimator = chasles.online_estimator(chasles.robots.planar(2), method=method, include=TERMS)
    files = [str(file) for file in estimator.export(tmp_path) if file.suffix == ".c"]
    out = str(tmp_path / "run")
    subprocess.run([compiler, "-std=c99", *files, "-lm", "-o", out], check=True, timeout=60)
    answer = subprocess.run([out], capture_output=True, text=True, check=True, timeout=60)
    assert "all agree" in answer.stdout


def test_refusals() -> None:
    robot = chasles.robots.planar(1)
    with raises("E-IDENT-035"):
        estimator = chasles.online_estimator(robot)
        estimator.robot(estimator.initial)
    with raises("E-IDENT-036"):
        chasles.online_estimator(chasles.robots.four_bar())
    with raises("E-IDENT-037"):
        chasles.online_estimator(robot, method="magic")  # type: ignore[arg-type]
    for wrong in ({"forgetting": 0.0}, {"noise": -1.0}):
        with raises("E-IDENT-038"):
            chasles.online_estimator(robot, **wrong)  # type: ignore[arg-type]
