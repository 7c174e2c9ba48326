"""The text of CUDA kernels, run on the CPU: what CI can know of a GPU without one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_on_cpu import OnCPU
from hypothesis import HealthCheck, given, settings
from support import close
from test_random_programs import programs, rows

import chasles
from chasles.backends import compile, cuda_body, cuda_source
from chasles.expr import OPS, RULES, Arena, Program, Variable, cos, sin
from chasles.robots import random_tree

FORMS: tuple[cuda_source.Form, ...] = ("direct", "rows", "columns")
CASES = {
    "arm, inverse dynamics": (chasles.robots.puma560, "inverse_dynamics"),
    "arm, forward dynamics": (chasles.robots.stanford_arm, "forward_dynamics"),
    "quadruped, inverse dynamics": (chasles.robots.quadruped, "inverse_dynamics"),
    "tree, mass matrix": (lambda: random_tree(6, seed=3), "mass_matrix"),
    "tree, inverse dynamics": (lambda: random_tree(7, seed=4), "inverse_dynamics"),
}


def reference(program: Program, inputs: list[np.ndarray]) -> list[np.ndarray]:
    outputs = [np.empty((len(inputs[0]), v.size)) for v in program.outputs]
    compile(program, "interpret")(inputs, outputs)
    return outputs


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_robots(case: str, dtype: str, form: Any, tmp_path: Path) -> None:
    """Every form gives what the reference gives, for rows and columns, far angles included."""
    robot, function = CASES[case]
    program = chasles.compile(robot(), function, backend="interpret").program
    rng = np.random.default_rng(5)
    inputs = [rng.uniform(-2.0, 2.0, (7, v.size)) for v in program.inputs]
    inputs[0][2, -1] = 3e6
    inputs = [a.astype(dtype).astype(float) for a in inputs]
    kernel = OnCPU(program, dtype, form, tmp_path)
    for columns in (True, False) if form == "direct" else (form == "columns",):
        results = kernel(inputs, columns=columns)
        for got, right in zip(results, reference(program, inputs), strict=True):
            close(got, right, 1e-11 if dtype == "float64" else 1e-4)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=programs([op for op in OPS if op not in ("input", "const")]))
def test_any_program(form: Any, tmp_path: Path, program: Program) -> None:
    """Any operations, nested sines, results that repeat, are inputs, or are constant."""
    inputs = rows(program, 5, 1)
    got = OnCPU(program, "float64", form, tmp_path)(inputs, columns=form == "columns")
    for result, right in zip(got, reference(program, inputs), strict=True):
        np.testing.assert_allclose(result, right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("most", [0, 48 * 1024])
def test_large_results(
    most: int, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows for which shared memory has no room: of distinct values, or written as columns."""
    monkeypatch.setattr(cuda_source, "ROOM", 0)
    program = chasles.compile(random_tree(6, seed=3), "mass_matrix", backend="interpret").program
    kernel = OnCPU(program, dtype, "rows", tmp_path, most)
    assert kernel.source.columns == (() if most else (0,))
    distinct = len(set(program.results[0]))
    assert distinct < len(program.results[0])
    text = kernel.source.text
    assert text.count("(LANES + 1) + lane] =") == (distinct if most else 0)
    inputs = [np.random.default_rng(0).normal(size=(4, v.size)) for v in program.inputs]
    inputs = [a.astype(dtype).astype(float) for a in inputs]
    tolerance = 1e-11 if dtype == "float64" else 1e-4
    close(kernel(inputs)[0], reference(program, inputs)[0], tolerance)


def test_whole_turns_are_left_out_only_where_they_do_not_matter() -> None:
    """a turns alone, b and c as a sum; d moves along while it turns, e turns twice as fast."""
    arena = Arena(RULES)
    a, b, c, d, e = (arena.input("q", k) for k in range(5))
    values = [sin(a), cos(b + c), sin(d) + d, sin(2.0 * e)]
    program = Program.from_outputs("f", [Variable("q", (5,))], [(Variable("y", (4,)), values)])
    plan = cuda_body.Plan(program)
    assert {plan.code[k].data[1] for k in plan.turning_inputs} == {0, 1, 2}
    assert sum(plan.is_near(angle) for angle in plan.angles) == 2
