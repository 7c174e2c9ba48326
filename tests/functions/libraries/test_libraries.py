"""Detection of array libraries, without importing them or mixing two of them in one call."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import raises

import chasles
from chasles.functions.doors import LIBRARIES, library_of, module
from chasles.robots import planar


def test_nothing_is_imported_for_numpy() -> None:
    script = """
import sys, chasles
robot = chasles.robots.planar(2)
robot.inverse_dynamics([0, 1], (0, 1), 1.0 + robot.neutral())
robot.mass_matrix(robot.neutral().astype("float32"))
print(sorted({"torch", "jax", "cupy", "dask"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_benchmark_checks_its_answers() -> None:
    for package in ("torch", "jax"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "benchmarks.libraries", "--quick"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pure_callback" in done.stdout


@pytest.mark.parametrize("row", LIBRARIES, ids=lambda row: row.package)
def test_every_row_has_a_module_that_calls(row: tuple[str, ...]) -> None:
    pytest.importorskip(row[1], reason=f"{row[0]} is not installed")
    assert callable(module(row[1]).call)


def test_libraries_do_not_mix() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    jnp = pytest.importorskip("jax.numpy", reason="JAX is not installed")
    robot = planar(2)
    with raises("E-CALL-039"):
        robot.inverse_dynamics(torch.zeros(2), torch.zeros(2), jnp.zeros(2))
    with raises("E-CALL-039"):
        robot.inverse_dynamics(jnp.zeros(2), torch.zeros(2), np.zeros(2))


def test_parts_of_arrays_and_their_subclasses_are_known() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert library_of(torch.nn.Parameter(torch.zeros(2))) is LIBRARIES[0]
    assert library_of(np.zeros(2)[0]) is library_of([1.0]) is None
    robot = planar(1)
    assert isinstance(robot.mass_matrix(torch.nn.Parameter(torch.zeros(1))), torch.Tensor)


def test_numpy_subclasses_stay_with_numpy() -> None:
    class Own(np.ndarray):
        pass

    robot = planar(2)
    q = np.zeros(2).view(Own)
    assert np.array_equal(robot.mass_matrix(q), robot.mass_matrix(np.zeros(2)))
    assert chasles.compile(robot, "mass_matrix")(q).shape == (2, 2)
