"""Kernels that repeat a step, run on the CPU, and reports of NVIDIA's compiler."""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loop_on_cpu import LoopOnCPU
from support import close, pairwise

import chasles
from chasles.backends import compile
from chasles.backends.cuda import build as cuda_build
from chasles.backends.cuda.crew import Size
from chasles.expr import RULES, Arena, Program, Variable, sin
from chasles.motion.steps.traced import step_program
from chasles.robots import planar, puma560, quadruped, random_tree
from chasles.rollouts import PDControl, traced

STEPS, EVERY = 7, 3
KEPT = (3, 6, 7)


def step_of(robot: chasles.Robot, method: str = "semi-implicit", control: Any = None) -> Program:
    made = None if control is None else traced(robot.model, control)
    return step_program(robot.model, method, made, dissipation=False)


def repeated(program: Program, states: Any, controls: Any) -> list[np.ndarray]:
    """Return the records of each state, computed step by step with the interpreter."""
    kernel = compile(program, "interpret")
    states, count = [np.array(a) for a in states], len(states[0])
    records: list[list[np.ndarray]] = [[] for _ in states]
    for step in range(STEPS):
        now = [np.broadcast_to(c, (count, STEPS, c.shape[-1]))[:, step] for c in controls]
        after = [np.empty_like(a) for a in states]
        kernel([*states, *now], after)
        states = after
        for record, state in zip(records, states, strict=True):
            if step + 1 in KEPT:
                record.append(state)
    return [np.stack(record, axis=1) for record in records]


def drawn(program: Program, count: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return states, and controls that are shared or given for each robot and step."""
    rng = np.random.default_rng(3)
    variables = program.inputs
    states = [rng.uniform(-1.0, 1.0, (count, v.size)) for v in variables[: len(program.outputs)]]
    controls = []
    for v in variables[len(program.outputs) :]:
        shape = {"tau": (count, STEPS), "t": (1, STEPS), "h": (1, 1)}[v.name]
        controls.append(rng.uniform(0.0, 1e-2, (*shape, v.size)))
    return states, controls


CASES: dict[str, Callable[[], Program]] = {
    "arm": lambda: step_of(puma560()),
    "quadruped": lambda: step_of(quadruped()),
    "tree, fourth order": lambda: step_of(random_tree(3, seed=2), "rk4"),
    "arm, driven": lambda: step_of(
        planar(2), control=lambda t, q, qd: [sin(t) - x - v for x, v in zip(q, qd, strict=True)]
    ),
    "arm, controlled": lambda: step_of(puma560(), control=PDControl(9.0, 6.0, np.zeros(6))),
}


@cache
def traced_case(name: str) -> Program:
    """Return the traced program of a case."""
    return CASES[name]()


CREWS = [None, Size(1, 12), Size(2, 9), Size(4, 30)]


@pytest.mark.parametrize(
    ("case", "dtype", "columns", "crew"),
    pairwise(CASES, ["float64", "float32"], [False, True], CREWS),
)
def test_steps(case: str, dtype: str, columns: bool, crew: Size | None, tmp_path: Path) -> None:
    """Records of several robots in rows or columns agree with those of the interpreter.

    In float32, a state is known to 6e-8, and the dynamics of seven steps lose two or three digits.
    """
    program, count = traced_case(case), 3
    states, controls = drawn(program, count)
    states, controls = (
        [a.astype(dtype).astype(float) for a in group] for group in (states, controls)
    )
    records = [np.full((count, len(KEPT), v.size), np.nan) for v in program.outputs]
    arrays = [
        np.array(a, dtype, order="F" if columns else "C")
        for a in ([a[:, None] for a in states] + controls + records)
    ]
    crews = 2 if columns and crew else 1  # the last crew has no robot
    kernel = LoopOnCPU(program, dtype, tmp_path, cuts=columns, crew=crew, crews=crews)
    kernel(arrays, count, STEPS, EVERY)
    for got, right in zip(
        arrays[-len(records) :], repeated(program, states, controls), strict=True
    ):
        close(got, right, 1e-12 if dtype == "float64" else 1e-4)


@pytest.mark.parametrize("crew", CREWS)
def test_angles_far_away(crew: Size | None, tmp_path: Path) -> None:
    """A joint that has turned half a million times continues correctly from there."""
    program = traced_case("arm")
    states, controls = drawn(program, 2)
    states[0][1, 3] = 3e6
    out = [np.full((2, len(KEPT), 6), np.nan) for _ in range(2)]
    arrays = [*(a[:, None] for a in states), *controls, *out]
    LoopOnCPU(program, "float64", tmp_path, crew=crew)(arrays, 2, STEPS, EVERY)
    right = repeated(program, states, controls)
    close(out[0], right[0], 1e-15)
    close(out[1], right[1], 1e-9)  # 3e6 is known to 2e-10
    assert (np.diff(out[0][1, :, 3]) != 0.0).all()


@pytest.mark.parametrize("crew", CREWS)
def test_states_that_pass_through_swap_or_are_set(crew: Size | None, tmp_path: Path) -> None:
    """Registers are not overwritten too early: a and b are swapped, c stays, and d becomes 4."""
    arena = Arena(RULES)
    a, b, c = (arena.input("x", k) for k in range(3))
    inputs = [Variable("x", (4,)), Variable("u", (1,))]
    outputs = [(Variable("x", (4,)), [b, a, c, 4.0])]
    program = Program.from_outputs("swap", inputs, outputs)
    x, u = np.arange(8.0).reshape(2, 1, 4), np.zeros((1, 1, 1))
    out = np.full((2, 3, 4), np.nan)
    LoopOnCPU(program, "float64", tmp_path, crew=crew)([x, u, out], 2, 7, 3)
    assert np.array_equal(out[1], [[5, 4, 6, 4], [4, 5, 6, 4], [5, 4, 6, 4]])


needs_compiler = pytest.mark.skipif(
    sys.platform != "linux", reason="NVIDIA's compiler is a test dependency on Linux only"
)


@needs_compiler
@pytest.mark.parametrize(
    ("case", "dtype"), [("arm", "float32"), ("arm", "float64"), ("arm, driven", "float32")]
)
def test_an_arm_stays_in_registers(case: str, dtype: str) -> None:
    built = cuda_build.build(traced_case(case), dtype, "sm_90", "loop")
    assert 0 < built.registers <= cuda_build.MOST
    assert (built.spilled, built.shared) == (0, 0)


@needs_compiler
def test_a_quadruped_compiles_for_other_architectures() -> None:
    for architecture in ("sm_75", "sm_120"):
        built = cuda_build.build(traced_case("quadruped"), "float32", architecture, "loop")
        assert built.code
