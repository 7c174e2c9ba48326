"""Additional channels of logs: external wrenches on feet and tools, and delays per channel."""

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from support import raises
from typer.testing import CliRunner

import chasles
from chasles.cli.app import app
from chasles.identification.logs import column_names
from chasles.identification.samples import LOAD

FEET = ("front_left_foot", "front_right_foot", "rear_left_foot", "rear_right_foot")
NOISE = 0.01


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def standing(robot: chasles.Robot, how: str, count: int = 600) -> tuple[dict[str, Any], np.ndarray]:
    """Return a log of a quadruped that moves on its feet, and the noise of its torques.

    Wrenches on three feet are random. That on the fourth balances the base, which has no motors.
    """
    rng = np.random.default_rng(0)
    q = robot.integrate(robot.neutral(), 0.15 * rng.normal(size=(count, robot.nv)))
    qd, qdd = rng.normal(size=(2, count, robot.nv)) * [[[1.0]], [[5.0]]]
    place: Any = {"sensor": ("frame", "frame"), "plate": ("world", "world")}[how]
    loads = {foot: 10.0 * rng.normal(size=(count, 6)) for foot in FEET[:3]}
    f_ext = {foot: chasles.Wrench(value, *place) for foot, value in loads.items()}
    tau = robot.inverse_dynamics(q, qd, qdd, f_ext=f_ext)
    at, axes = place[1], place[0]
    J = robot.jacobian(q, frame=FEET[3], axes=axes, at="frame" if at == "frame" else "world")
    loads[FEET[3]] = np.linalg.solve(np.swapaxes(J[..., :6], 1, 2), tau[:, :6, None])[..., 0]
    tau = tau - np.einsum("nij,ni->nj", J, loads[FEET[3]])
    assert np.abs(tau[:, :6]).max() < 1e-6 * np.abs(tau).max()
    tau[:, :6] = 0.0
    sigma = np.full(robot.nv, NOISE * np.abs(tau[:, 6:]).mean())
    sigma[:6] = 0.0
    names = column_names(robot)
    log = {"t": 0.01 * np.arange(count)}
    noisy = tau + sigma * rng.normal(size=tau.shape)
    for quantity, array in (("q", q), ("qd", qd), ("qdd", qdd), ("tau", noisy)):
        log |= dict(zip(names[quantity], array.T, strict=True))
    for foot, value in loads.items():
        log |= {f"{foot}.{entry}": column for entry, column in zip(LOAD, value.T, strict=True)}
    return log, sigma


@pytest.mark.parametrize("how", ["sensor", "plate"])
def test_contact_wrenches_of_a_floating_base(how: str, tmp_path: Path) -> None:
    """Logs and arrays give the true base parameters from masses that are 30 % too large."""
    truth = chasles.robots.quadruped()
    masses = {f"{link.name}.mass": 1.3 * link.inertia.m for link in truth.model.source.links[1:4]}
    wrong = truth.with_parameters(masses)
    log, sigma = standing(truth, how)
    wrenches: Any = dict.fromkeys(FEET, how)
    parquet.write_table(pyarrow.table(log), tmp_path / "log.parquet")
    found = chasles.identify(
        wrong, tmp_path / "log.parquet", wrenches=wrenches, include=["inertia"]
    )
    exact = found.combination @ truth.inertial_parameters()
    assert np.all(np.abs(found.base - exact) < 4.0 * found.deviations + 1e-5)
    assert np.all(found.noise[6:] < 1.3 * sigma[6:])
    names = column_names(truth)
    arrays = {x: np.column_stack([log[name] for name in names[x]]) for x in names}
    place: Any = {"sensor": ("frame", "frame"), "plate": ("world", "world")}[how]
    f_ext = {
        foot: chasles.Wrench(np.column_stack([log[f"{foot}.{x}"] for x in LOAD]), *place)
        for foot in FEET
    }
    same = chasles.identify(wrong, **arrays, f_ext=f_ext, include=["inertia"])
    np.testing.assert_allclose(found.base, same.base, rtol=1e-5, atol=1e-6)
    robust = chasles.identify(wrong, log, wrenches=wrenches, include=["inertia"], loss="huber")
    np.testing.assert_allclose(robust.noise[6:], found.noise[6:], rtol=0.2)


def test_the_command_takes_wrenches(tmp_path: Path) -> None:
    """The wrench on a tool is taken into account; without it, the noise is large."""
    robot, rng = chasles.robots.planar(3), np.random.default_rng(3)
    chasles.save(robot, tmp_path / "robot.toml")
    q, qd, qdd = rng.normal(size=(3, 400, 3))
    push = 5.0 * rng.normal(size=(400, 6))
    f_ext = {"tip": chasles.Wrench(push, axes="frame")}
    tau = robot.inverse_dynamics(q, qd, qdd, f_ext=f_ext) + NOISE * rng.normal(size=q.shape)
    log: dict[str, Any] = {}
    for quantity, array in (("q", q), ("qd", qd), ("qdd", qdd), ("tau", tau)):
        log |= dict(zip(column_names(robot)[quantity], array.T, strict=True))
    log |= {f"tip.{entry}": column for entry, column in zip(LOAD, push.T, strict=True)}
    parquet.write_table(pyarrow.table(log), tmp_path / "log.parquet")
    words = ["identify", str(tmp_path / "robot.toml"), str(tmp_path / "log.parquet"), "--json"]
    for more, quiet in ((["--wrench", "tip=sensor"], True), ([], False)):
        answer = CliRunner().invoke(app, [*words, *more])
        assert answer.exit_code == 0, answer.output
        told = json.loads(answer.stdout)
        assert (max(told["noise"].values()) < 1.5 * NOISE) is quiet
        assert (max(told["errors"]["training"].values()) < 2.0 * NOISE) is quiet
    answer = CliRunner().invoke(app, [*words, "--wrench", "tip=hand"])
    assert "E-IDENT-042" in answer.output


def late(robot: chasles.Robot, delays: dict[str, float]) -> dict[str, np.ndarray]:
    """Return a log in which each torque lags behind the motion."""
    t, w = np.arange(0.0, 10.0, 0.002), np.array([[3.1, 7.3], [5.7, 4.4], [2.3, 8.9]])

    def state(t: np.ndarray) -> list[np.ndarray]:
        angle = t[:, None, None] * w[: robot.nv]
        return [np.sin(angle).sum(-1), (w * np.cos(angle)).sum(-1), -(w**2 * np.sin(angle)).sum(-1)]

    log, names = {"t": t}, column_names(robot)
    for quantity, array in zip(("q", "qd", "qdd"), state(t), strict=True):
        log |= dict(zip(names[quantity], array.T, strict=True))
    rng = np.random.default_rng(2)
    for k, (joint, lag) in enumerate(delays.items()):
        tau = robot.inverse_dynamics(*state(t - lag))[:, k]
        log[names["tau"][k]] = tau + NOISE * rng.normal(size=tau.shape)
        assert names["tau"][k].startswith(joint)
    return log


@pytest.mark.parametrize("rates", [True, False])
def test_each_torque_has_its_own_delay(rates: bool) -> None:
    robot = chasles.robots.planar(3)
    delays = dict(zip(robot.joints, (0.004, 0.0, 0.0171), strict=True))
    log = late(robot, delays)
    if not rates:
        log = {name: x for name, x in log.items() if not name.endswith((".qd", ".qdd"))}
    one, _, three = robot.joints
    for given in ({one: 0.004, three: 0.0171}, {one: "estimate", three: "estimate"}):
        found = chasles.identify(robot, log, delay=given, include=["inertia"])  # type: ignore[arg-type]
        assert found.delay[one] == pytest.approx(0.004, abs=3e-4)
        assert found.delay[three] == pytest.approx(0.0171, abs=3e-4)
        assert f"{three!r} relative to the positions: 17" in " ".join(found.notes)
        if rates:
            assert np.all(found.noise < (1.2 if given[one] == 0.004 else 10.0) * NOISE)
            assert found.samples < len(log["t"])  # torques after the end of the log are not known
    together = chasles.identify(robot, log, delay="estimate", include=["inertia"])
    assert np.max(together.noise) > 10.0 * NOISE
    assert len(set(together.delay.values())) == 1


def test_a_wrench_with_a_delay() -> None:
    """A force sensor that lags by 8 ms is shifted back."""
    robot = chasles.robots.planar(3)
    log = late(robot, dict.fromkeys(robot.joints, 0.0))
    names, t = column_names(robot), log["t"]
    states = [np.column_stack([log[n] for n in names[x]]) for x in ("q", "qd", "qdd")]

    def push(t: np.ndarray) -> np.ndarray:
        return 5.0 * np.sin(np.outer(t, [4.0, 5.0, 6.0, 7.0, 8.0, 9.0]))

    f_ext = {"tip": chasles.Wrench(push(t), axes="frame")}
    tau = robot.inverse_dynamics(*states, f_ext=f_ext)
    tau = tau + NOISE * np.random.default_rng(0).normal(size=tau.shape)
    log |= dict(zip(names["tau"], tau.T, strict=True))
    log |= {f"tip.{x}": column for x, column in zip(LOAD, push(t - 0.008).T, strict=True)}
    options: Any = {"wrenches": {"tip": "sensor"}, "include": ["inertia"]}
    found = chasles.identify(robot, log, delay={"tip": 0.008}, **options)
    assert found.delay == {"tip": 0.008}
    assert np.all(found.noise < 1.2 * NOISE)
    assert np.max(chasles.identify(robot, log, **options).noise) > 3.0 * NOISE
    measured = {"tip": chasles.Wrench(push(t - 0.008), axes="frame")}
    arrays: Any = dict(zip(("q", "qd", "qdd"), states, strict=True)) | {"tau": tau, "t": t}
    same = chasles.identify(
        robot, **arrays, f_ext=measured, delay={"tip": 0.008}, include=["inertia"]
    )
    np.testing.assert_allclose(same.base, found.base, rtol=1e-5, atol=1e-6)


def test_refusals() -> None:
    robot = chasles.robots.planar(2)
    log = {"t": np.arange(3.0)}
    with raises("E-IDENT-042", "plate"):
        chasles.identify(robot, log, wrenches={"tip": "scale"})  # type: ignore[dict-item]
    with raises("E-IDENT-043", "f_ext"):
        chasles.identify(robot, wrenches={"tip": "sensor"})
    with raises("E-IDENT-044", "'tip'"):
        chasles.identify(robot, log, wrenches={"tip": "sensor"}, delay={"tip": "estimate"})
    with raises("E-IDENT-044", "'nobody'"):
        chasles.identify(robot, log, delay={"nobody": 0.1})
    names = column_names(robot)
    zero = {name: np.zeros(3) for some in names.values() for name in some}
    with raises("E-LOG-003", "tip.mx"):
        chasles.identify(robot, log | zero, wrenches={"tip": "sensor"})
    with raises("E-IDENT-020"):
        chasles.identify(robot, {name: x[:0] for name, x in zero.items()}, loss="huber")
