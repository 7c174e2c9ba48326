"""Random programs: any operations, any results, and any division into parts.

Without fused multiply-add and sines, IEEE 754 defines one correct result for every operation, so
machine code must equal the interpreter exactly. With them, single states must equal batches.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chasles.backends import arrays, compile, lowering
from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm import source as llvm_source
from chasles.backends.llvm.code import Machine
from chasles.expr import OPS, RULES, Arena, Program, Variable
from chasles.expr.scalar import apply

EXACT = [op for op in OPS if op not in ("input", "const", "sin", "cos", "atan2")]
NUMBERS = st.floats(-4.0, 4.0, width=32)
COUNTS = st.integers(1, 20) | st.integers(21, 600)
FAR = st.sampled_from([0, 1, 2, 5, 12, 100])
"""Numbers of instructions after which a value is loaded again."""


@st.composite
def programs(draw: st.DrawFn, ops: list[str]) -> Program:
    """Draw a program of two inputs and outputs. Results may repeat or be inputs or constants."""
    arena = Arena(RULES)
    sizes = draw(st.integers(1, 5)), draw(st.integers(0, 11))
    inputs = [Variable(name, (n,)) for name, n in zip("ab", sizes, strict=True)]
    values: list[Any] = [arena.input(v.name, k) for v in inputs for k in range(v.size)]
    values += draw(st.lists(NUMBERS, min_size=1, max_size=3))
    for op in draw(st.lists(st.sampled_from(ops), min_size=1, max_size=60)):
        places = [draw(st.integers(0, len(values) - 1)) for _ in range(OPS[op].arity)]
        values.append(apply(op, *(values[k] for k in places)))
    outputs = []
    for name in ("first", "second"):
        chosen = draw(st.lists(st.integers(0, len(values) - 1), min_size=0, max_size=19))
        outputs.append((Variable(name, (len(chosen),)), [values[k] for k in chosen]))
    return Program.from_outputs("anything", inputs, outputs)


def rows(program: Program, count: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.round(rng.normal(size=(count, v.size)), 2) for v in program.inputs]


def _set(patch: pytest.MonkeyPatch, longest: int, far: int) -> None:
    """Split programs into parts of this length, and reload values after `far` instructions."""
    patch.setattr(llvm_source, "LONGEST", longest)
    patch.setattr(llvm_source, "FAR", far)
    patch.setattr(llvm_source, "LASTING", 0)
    patch.setattr(lowering, "REGISTERS", 0)


@settings(max_examples=25)
@given(
    programs(EXACT),
    st.sampled_from([w for w in (2, 4, 8) if w <= Machine.host().width]),
    st.integers(3, 80),
    FAR,
    COUNTS,
)
def test_exact_operations(program: Program, width: int, longest: int, far: int, count: int) -> None:
    """Machine code of any vector width and part length, and NumPy, equal the interpreter."""
    inputs = rows(program, count, longest)
    machine = replace(Machine.host().without_fma(), width=width)
    with pytest.MonkeyPatch.context() as patch:
        _set(patch, longest, far)
        kernels = [llvm.compile(program, machine), compile(program, "numpy")]
    expected = arrays.call(compile(program, "interpret"), "anything", inputs)
    for kernel in kernels:
        for a, b in zip(arrays.call(kernel, "anything", inputs), expected, strict=True):
            assert np.array_equal(a, b, equal_nan=True)


@settings(max_examples=25)
@given(programs([*EXACT, "sin", "cos", "atan2"]), st.integers(3, 80), FAR, COUNTS)
def test_one_state_and_many(program: Program, longest: int, far: int, count: int) -> None:
    inputs = rows(program, count, longest)
    with pytest.MonkeyPatch.context() as patch:
        _set(patch, longest, far)
        kernel = llvm.compile(program)
    whole = llvm.compile(program)
    many = arrays.call(kernel, "anything", inputs)
    for k in range(0, count, 1 + count // 16):
        row = [a[k] for a in inputs]
        for a, b, c in zip(
            many,
            arrays.call(kernel, "anything", row),
            arrays.call(whole, "anything", row),
            strict=True,
        ):
            assert np.array_equal(a[k], b, equal_nan=True)
            assert np.array_equal(b, c, equal_nan=True)
