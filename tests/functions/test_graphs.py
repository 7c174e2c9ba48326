"""Graphs without a GPU: invalid arguments, and copies of arrays."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles.functions import graphs
from chasles.functions.graphs import Graph
from chasles.robots import planar, puma560, quadruped


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Return a list of captured functions with the values of their inputs and the device."""
    found: list[tuple[Any, ...]] = []

    def captured(*given: Any) -> Graph:
        found.append(given)
        return Graph({}, None, lambda: None, lambda *_: None)

    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace())
    monkeypatch.setattr(graphs, "module", lambda _: SimpleNamespace(captured=captured))
    return found


def test_inputs_of_a_function_by_name(asked: list[tuple[Any, ...]]) -> None:
    robot = quadruped()
    robot.graph("inverse_dynamics", 5, dtype="float32", device=2)
    robot.graph("jacobian", (2, 3), frame=robot.frames[-1])
    robot.graph("mass_matrix")
    (function, values, device), (_, frame, _), (_, alone, _) = asked
    assert function is chasles.compile(robot, "inverse_dynamics")
    assert device == 2
    shapes = {name: (a.shape, str(a.dtype)) for name, a in values.items()}
    assert shapes == {name: ((5, n), "float32") for name, n in (("q", 19), ("qd", 18), ("qdd", 18))}
    assert np.array_equal(values["q"][4], robot.neutral().astype("float32"))
    assert not values["qd"].any()
    assert frame["q"].shape == (2, 3, 19)
    assert alone["q"].shape == (19,)


def test_inputs_of_a_python_function(asked: list[tuple[Any, ...]]) -> None:
    robot = puma560()

    def step(q: Any, tau: Any, gain: Any) -> Any:
        return robot.mass_matrix(q), tau * gain

    robot.graph(step, 4, shapes={"gain": ()})
    ((function, values, _),) = asked
    assert function is step
    assert {name: a.shape for name, a in values.items()} == {
        "q": (4, 6),
        "tau": (4, 6),
        "gain": (4,),
    }


def test_a_launch() -> None:
    """Arguments of a launch are broadcast and copied to the inputs of the graph."""
    inputs, launches = {"q": np.zeros((3, 2)), "qd": np.zeros((3, 2))}, list[np.ndarray]()

    def copy(target: np.ndarray, given: Any) -> None:
        target[...] = given

    graph = Graph(inputs, "results", lambda: launches.append(inputs["q"].copy()), copy)
    assert graph() == "results"
    assert graph(np.ones((3, 2)), [1.0, 2.0]) == "results"
    assert [a.sum() for a in launches] == [0.0, 6.0]
    assert np.array_equal(graph.inputs["qd"], [[1.0, 2.0]] * 3)
    assert repr(graph) == "<Graph of q (3, 2), qd (3, 2)>"
    with raises("E-GPU-024", kind=TypeError):
        graph(np.ones((3, 2)))


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = planar(2)
    monkeypatch.setitem(sys.modules, "cupy", None)
    cases: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        ("inverse_dynamics", {}, ImportError, "E-GPU-026"),
        ("inverse_dynamics", {"library": "jax"}, ValueError, "E-GPU-025"),
        ("inverse_dynamics", {"batch": 0}, ValueError, "E-CALL-003"),
        ("inverse_dynamics", {"batch": 2.5}, ValueError, "E-CALL-003"),
        ("inverse_dynamics", {"dtype": "float16"}, ValueError, "E-GPU-028"),
        ("inverse_dynamics", {"shapes": {}}, TypeError, "E-GPU-029"),
        ("invers_dynamics", {}, ValueError, "E-CALL-025"),
        (lambda q: q, {"frame": "tool"}, TypeError, "E-GPU-030"),
        (lambda x: x, {}, TypeError, "E-GPU-027"),
        ("mass_matrix", {"library": []}, TypeError, "E-CALL-110"),
        (None, {}, TypeError, "E-GPU-038"),
        (max, {}, TypeError, "E-GPU-038"),
        (lambda x: x, {"shapes": 3}, TypeError, "E-CALL-112"),
        (lambda x: x, {"shapes": {"x": 3}}, TypeError, "E-GPU-039"),
        (lambda x: x, {"shapes": {"x": (2**64 + 1,)}}, ValueError, "E-CALL-003"),
        (lambda x: x, {"shapes": {"x": (-3,)}}, ValueError, "E-CALL-003"),
        (lambda x: x, {"shapes": {"x": (2**53, 2**53)}}, ValueError, "E-GPU-040"),
        ("mass_matrix", {"batch": 2**50}, ValueError, "E-GPU-040"),
        ("mass_matrix", {"batch": (1,) * 70}, ValueError, "E-GPU-040"),
    ]
    for function, options, error, code in cases:
        with raises(code, kind=error):
            robot.graph(function, **{"batch": 4, **options})


def test_pytorch_without_a_gpu() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with raises("E-GPU-031", kind=RuntimeError):
        planar(2).graph("mass_matrix", 4, library="torch")
