"""Text of CUDA kernels, compiled as C++ and run on the CPU, so that CI needs no GPU."""

import itertools
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_on_cpu import OnCPU
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import close, pairwise
from test_random_programs import programs, rows

import chasles
from chasles.backends import compile
from chasles.backends.cuda import body as cuda_body
from chasles.backends.cuda import forms as cuda_forms
from chasles.backends.cuda import tiles as cuda_tiles
from chasles.backends.cuda.crew import Crew, Size
from chasles.backends.cuda.parking import Slots, parked
from chasles.expr import OPS, RULES, Arena, Program, Variable, cos, sin
from chasles.robots import random_tree

FORMS: tuple[cuda_forms.Form, ...] = ("direct", "rows", "columns")
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


@pytest.mark.parametrize(("case", "dtype", "form"), pairwise(CASES, ["float64", "float32"], FORMS))
def test_robots(case: str, dtype: str, form: Any, tmp_path: Path) -> None:
    """All kernel forms agree with the interpreter for rows and columns, even at large angles."""
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
    """Kernels are correct for all operations, nested sines, and repeated or constant results.

    Results may also be inputs.
    """
    inputs = rows(program, 5, 1)
    got = OnCPU(program, "float64", form, tmp_path)(inputs, columns=form == "columns")
    for result, right in zip(got, reference(program, inputs), strict=True):
        np.testing.assert_allclose(result, right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("most", [0, 48 * 1024])
def test_large_results(
    most: int, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If shared memory has no space for rows, it holds distinct values, or columns are written."""
    monkeypatch.setattr(cuda_tiles, "ROOM", 0)
    program = chasles.compile(random_tree(6, seed=3), "mass_matrix", backend="interpret").program
    kernel = OnCPU(program, dtype, "rows", tmp_path, most)
    assert kernel.source.columns == (() if most else (0,))
    distinct = len(set(program.results[0]))
    assert distinct < len(program.results[0])
    text = kernel.source.text
    assert len(re.findall(r"waiting\[\d+ \+ lane\] =", text)) == (distinct if most else 0)
    inputs = [np.random.default_rng(0).normal(size=(4, v.size)) for v in program.inputs]
    inputs = [a.astype(dtype).astype(float) for a in inputs]
    tolerance = 1e-11 if dtype == "float64" else 1e-4
    close(kernel(inputs)[0], reference(program, inputs)[0], tolerance)


def test_whole_turns_are_left_out_only_where_they_do_not_matter() -> None:
    """Whole turns are removed from a, b and c, which occur only in the angles a and b + c.

    They are kept in d, which is also used as a value, and in e, because the angle is 2 e.
    """
    arena = Arena(RULES)
    a, b, c, d, e = (arena.input("q", k) for k in range(5))
    values = [sin(a), cos(b + c), sin(d) + d, sin(2.0 * e)]
    program = Program.from_outputs("f", [Variable("q", (5,))], [(Variable("y", (4,)), values)])
    plan = cuda_body.Plan(program)
    assert {plan.code[k].data[1] for k in plan.turning_inputs} == {0, 1, 2}
    assert sum(plan.is_near(angle) for angle in plan.angles) == 2


CREWS = [Size(1, 20), Size(2, 9), Size(4, 30)]
"""Crews with so few registers that most values are kept in shared memory."""


@pytest.mark.parametrize(
    ("case", "dtype", "form", "crew"),
    pairwise(CASES, ["float64", "float32"], ["rows", "columns"], CREWS),
)
def test_crews(case: str, dtype: str, form: Any, crew: Size, tmp_path: Path) -> None:
    """Warps that share the work agree with the interpreter, even with large angles."""
    robot, function = CASES[case]
    program = chasles.compile(robot(), function, backend="interpret").program
    rng = np.random.default_rng(6)
    inputs = [rng.uniform(-2.0, 2.0, (5, v.size)) for v in program.inputs]
    inputs[0][2, -1] = 3e6
    inputs = [a.astype(dtype).astype(float) for a in inputs]
    kernel = OnCPU(program, dtype, form, tmp_path, crew=crew)
    results = kernel(inputs, columns=form == "columns")
    for got, right in zip(results, reference(program, inputs), strict=True):
        close(got, right, 1e-11 if dtype == "float64" else 1e-4)


@pytest.mark.parametrize("form", ["rows", "columns"])
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    program=programs([op for op in OPS if op not in ("input", "const")]),
    limbs=st.lists(st.integers(-1, 2), min_size=60, max_size=60),
)
def test_crews_on_any_program(form: Any, tmp_path: Path, program: Program, limbs: Any) -> None:
    """Limbs are only hints: results do not depend on the limbs that are given."""
    sizes = [v.size for v in (*program.inputs, *program.outputs)]
    hinted = replace(program, limbs=tuple(tuple(limbs[k : k + n]) for k, n in enumerate(sizes)))
    inputs = rows(program, 5, 1)
    kernel = OnCPU(hinted, "float64", form, tmp_path, crew=Size(3, 4))
    for result, right in zip(
        kernel(inputs, columns=form == "columns"), reference(program, inputs), strict=True
    ):
        np.testing.assert_allclose(result, right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_angles_of_a_crew(dtype: str, tmp_path: Path) -> None:
    """A crew computes sines of inputs, inputs plus constants, and sums, for near and far angles.

    One of the inputs is also a result.
    """
    arena = Arena(RULES)
    a, b, c, d = (arena.input("q", k) for k in range(4))
    angles = [a, b + 0.5, b - 0.25, 1.5 + c, 0.5 - c, c + d, d]
    values = [f(x) for x in angles for f in (sin, cos)] + [c]
    y = Variable("y", (len(values),))
    program = Program.from_outputs("f", [Variable("q", (4,))], [(y, values)])
    q = np.random.default_rng(2).uniform(-4.0, 4.0, (5, 4))
    q[3] *= 1e6
    q = q.astype(dtype).astype(float)
    kernel = OnCPU(program, dtype, "rows", tmp_path, crew=Size(2, 20))
    (near, *_), (right, *_) = kernel([q[:3]]), reference(program, [q[:3]])
    close(near, right, 1e-15 if dtype == "float64" else 1e-6)
    if dtype == "float64":
        close(kernel([q])[0], reference(program, [q])[0], 1e-9)  # 4e6 is known to 5e-10


def test_a_crew_shares_the_work_of_limbs() -> None:
    """Two warps, each with two legs of a quadruped, work in parallel most of the time."""
    program = chasles.compile(chasles.robots.quadruped(), "forward_dynamics").program
    assert set(program.limbs[0]) == {-1, 0, 1, 2, 3}
    alone, two = (Crew(program, "float32", "rows", Size(n, 100)) for n in (1, 2))
    assert alone.active == 1.0
    assert two.active > 1.6
    assert two.division.phases <= 5


@pytest.mark.parametrize("warps", [2, 3, 4, 5])
def test_a_crew_waits_three_times(warps: int) -> None:
    """Warps wait for each other at most three times in forward dynamics.

    They pass velocities outward, inertias and forces inward, and accelerations outward.
    """
    program = chasles.compile(chasles.robots.humanoid(), "forward_dynamics").program
    assert Crew(program, "float32", "rows", Size(warps, 100)).division.phases <= 4


def test_parking() -> None:
    """Each parked value is stored once and read before use. Slots are reused after the last use.

    At most 40 values that are still needed are in registers after any instruction.
    """
    program = chasles.compile(chasles.robots.quadruped(), "forward_dynamics").program
    plan = cuda_body.Plan(program)
    waiting = {k: f"w{k}" for k in plan.order if plan.code[k].op in ("input", "sin", "cos")}
    slots = Slots("p{}+{}".format)
    found = parked(plan.code, plan.order, 40, waiting, (), slots, {})
    where, inside = dict(waiting), set[int]()
    last = {a: k for k in plan.order for a in plan.code[k].args}
    for k in plan.order:
        if k in waiting or plan.code[k].op == "const":
            continue
        inside.update(found.reads.get(k, ()))
        args = {a for a in plan.code[k].args if plan.code[a].op != "const"}
        assert args <= inside
        assert all(a in where for a in found.reads.get(k, ()))
        inside -= {a for a in args if last[a] == k}
        inside.add(k)
        for a, place in found.parks.get(k, ()):
            assert a in inside
            assert a not in where
            holders = [v for v, p in where.items() if p == place]
            assert all(plan.order.index(last[v]) <= plan.order.index(k) for v in holders)
            where[a] = place
    assert len(set(where.values())) == len(waiting) + slots.columns

    run = [k for k in plan.order if k not in waiting and plan.code[k].op != "const"]
    starts: dict[int, list[int]] = {k: [time] for time, k in enumerate(run)}
    uses: dict[int, list[int]] = {}
    for time, k in enumerate(run):
        for a in found.reads.get(k, ()):
            starts.setdefault(a, []).append(time)
        for a in plan.code[k].args:
            uses.setdefault(a, []).append(time)
    held = np.zeros(len(run), int)
    for a, begins in starts.items():
        for begin, end in itertools.pairwise([*begins, len(run)]):
            used = [time for time in uses.get(a, ()) if begin <= time < end]
            held[begin : max(used, default=begin)] += 1
    assert held.max() == 40


@pytest.mark.parametrize("warps", [2, 3, 4])
@pytest.mark.parametrize("robot", [chasles.robots.quadruped, chasles.robots.humanoid])
def test_no_warp_of_a_crew_overtakes_another(robot: Any, warps: int) -> None:
    """Within a phase, no place is written by one warp and read or written by another."""
    program = chasles.compile(robot(), "forward_dynamics", backend="interpret").program
    crew = Crew(program, "float64", "rows", Size(warps, 40))
    plan, division = crew.plan, crew.division
    where = [dict(body.held) for body in crew.bodies]
    for phase in range(division.phases):
        read, written = defaultdict(set), defaultdict(set)
        for w, body in enumerate(crew.bodies):
            for k in division.order(plan, w)[phase]:
                for a in body.parking.reads.get(k, ()):
                    read[where[w][a]].add(w)
                for a, place in body.parking.parks.get(k, ()):
                    where[w][a] = place
                    written[place].add(w)
        assert all(len(read[place] | warps) == 1 for place, warps in written.items())
