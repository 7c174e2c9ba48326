"""Peers of the GPU benchmark compute the same as chasles, here on the processor."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from support import close

import chasles
from chasles.robots import puma560


@pytest.fixture(autouse=True)
def _benchmarks_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))


def states(robot: chasles.Robot, count: int = 20) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [robot.random(rng, size=count), *rng.normal(size=(2, count, robot.nv))]


def test_inverse_dynamics_in_pytorch() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: its peer is not tested")
    from benchmarks import torch_peer

    robot = puma560()
    q, qd, qdd = states(robot)
    run = torch_peer.runs(robot, (q, qd, qdd), "float64", "cpu")["PyTorch"]
    close(run().numpy(), robot.inverse_dynamics(q, qd, qdd), 1e-13)
    with pytest.raises(ValueError, match="has revolute joints only"):
        torch_peer.links(chasles.robots.stanford_arm(), "float64", "cpu")


def test_bias_forces_in_mjx() -> None:
    pytest.importorskip("mujoco.mjx", reason="MuJoCo MJX is not installed: it is not tested")
    from benchmarks import mjx_peer

    robot = puma560()
    q, qd, _ = states(robot)
    (run,) = mjx_peer.runs(robot, (q, qd), "float32").values()
    close(np.asarray(run()), robot.bias_forces(q, qd), 1e-5)


def test_a_peer_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import gpu_peers

    monkeypatch.setitem(gpu_peers.PEERS, "bias_forces", "benchmarks.no_such_peer")
    told: list[str] = []
    assert gpu_peers._peer(puma560(), "bias_forces", [], told.append) == {}
    assert told == ["benchmarks.no_such_peer left out: No module named 'benchmarks.no_such_peer'"]


@pytest.mark.parametrize("wrong", [1.01, np.nan])
def test_wrong_answers_are_refused(wrong: float) -> None:
    from benchmarks import gpu_peers

    right = np.array([1.0, -2.0])
    gpu_peers._check("peer", right * (1.0 + 1e-6), right)
    with pytest.raises(gpu_peers.WrongAnswer, match="peer: off"):
        gpu_peers._check("peer", right * wrong, right)


def test_the_table_has_ratios_to_either_way(capsys: Any) -> None:
    from benchmarks.gpu_peers import PeerRow, show

    labels = {"chasles, in a graph": 2e-6, "chasles, from Python": 4e-5, "peer": 4e-4}
    rows = [PeerRow("bias_forces", 1024, label, seconds) for label, seconds in labels.items()]
    show(rows, Console(width=160))
    line = next(text for text in capsys.readouterr().out.splitlines() if "peer" in text)
    assert "400.00 us" in line
    assert "10.0" in line
    assert "200.0" in line
