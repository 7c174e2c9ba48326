"""Limbs that share code in CUDA kernels, run on the CPU and checked for data races."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from cuda_on_cpu import OnCPU
from loop_on_cpu import LoopOnCPU
from support import close

import chasles
from chasles.backends import compile
from chasles.backends.cuda import build as cuda_build
from chasles.backends.cuda.crew import Crew, Size
from chasles.backends.cuda.twins import twins
from chasles.expr import RULES, Arena, Program, Seat, Variable, cos, sin
from chasles.functions.compiled import Compiled
from chasles.functions.programs import program


def uneven(robot: chasles.Robot) -> chasles.Robot:
    """Return the robot with other masses, so that most parameters of its limbs differ."""
    source, rng = robot.model.source, np.random.default_rng(3)
    links = tuple(
        replace(link, inertia=link.inertia * float(rng.uniform(0.5, 2.0))) for link in source.links
    )
    return chasles.Robot(replace(source, links=links))


ROBOTS = {
    "humanoid": chasles.robots.humanoid,
    "uneven humanoid": lambda: uneven(chasles.robots.humanoid()),
    "uneven quadruped": lambda: uneven(chasles.robots.quadruped()),
}
SIDES = {"humanoid": 2, "uneven humanoid": 2, "uneven quadruped": 4}


@cache
def traced(name: str, function: str = "forward_dynamics", *, similar: bool = True) -> Program:
    return program(ROBOTS[name]().model, function, similar=similar)


def expected(traced: Program, inputs: list[np.ndarray]) -> list[np.ndarray]:
    outputs = [np.empty((len(inputs[0]), v.size)) for v in traced.outputs]
    compile(traced, "interpret")(inputs, outputs)
    return outputs


@pytest.mark.parametrize("name", ROBOTS)
def test_similar_limbs_do_not_change_results(name: str) -> None:
    """A program traced with limb parameters as symbols gives the results of the plain program."""
    similar, plain = traced(name), traced(name, similar=False)
    assert not plain.alike
    assert {len(pack) for pack in similar.alike} == {SIDES[name]}
    assert similar.inputs == plain.inputs
    rng = np.random.default_rng(1)
    inputs = [rng.normal(size=(3, v.size)) for v in plain.inputs]
    for got, right in zip(expected(similar, inputs), expected(plain, inputs), strict=True):
        close(got, right, 1e-11)


CREWS = [
    ("humanoid", "forward_dynamics", "float64", "rows", Size(4, 30, True)),
    ("uneven humanoid", "forward_dynamics", "float64", "columns", Size(4, 60, True)),
    ("uneven humanoid", "inverse_dynamics", "float32", "rows", Size(2, 9, True)),
    ("uneven quadruped", "forward_dynamics", "float64", "rows", Size(4, 20, True)),
    ("uneven quadruped", "forward_dynamics", "float32", "columns", Size(8, 40, True)),
]


@pytest.mark.parametrize(("name", "function", "dtype", "form", "crew"), CREWS)
def test_shared_code(
    name: str, function: str, dtype: str, form: Any, crew: Size, tmp_path: Path
) -> None:
    """Sides that run the same code agree with the interpreter, even with large angles."""
    similar, plain = traced(name, function), traced(name, function, similar=False)
    rng = np.random.default_rng(6)
    inputs = [rng.uniform(-2.0, 2.0, (5, v.size)) for v in plain.inputs]
    inputs[0][2, -1] = 3e6
    inputs = [a.astype(dtype).astype(float) for a in inputs]
    kernel = OnCPU(similar, dtype, form, tmp_path, crew=crew)
    assert "side" in kernel.source.text
    results = kernel(inputs, columns=form == "columns")
    for got, right in zip(results, expected(plain, inputs), strict=True):
        close(got, right, 1e-10 if dtype == "float64" else 2e-3)


class Access(NamedTuple):
    """Access of a warp to a value in the tile of a state. `value` is what the warp writes."""

    phase: int
    team: int
    side: int
    place: int
    value: str


STORE = re.compile(r"\s*(?:kept|tile)\[(.*?)\] = (\w+);")
LOAD = re.compile(r"\s*const real \w+ = kept\[(.*?)\];")


def accesses(crew: Crew) -> Iterator[Access]:
    """Yield all accesses of all warps, in order for each warp."""
    for team, body in enumerate(crew.bodies):
        for side in range(crew.twins.sides):
            phase = 0
            for line in body.lines:
                phase += "together()" in line
                store, load = STORE.match(line), LOAD.match(line)
                if found := store or load:
                    place = eval(found.group(1), {"LANES": 32, "lane": 1, "side": side})
                    yield Access(phase, team, side, place, store.group(2) if store else "")


@pytest.mark.parametrize(("name", "function", "dtype", "form", "crew"), CREWS)
def test_no_side_overtakes_another(
    name: str, function: str, dtype: str, form: Any, crew: Size
) -> None:
    """Between two barriers, a warp writes only its own slots, or values equal on all sides.

    In the second case, a warp reads such a slot only after it has written it itself.
    """
    written = Crew(traced(name, function), dtype, form, crew)
    written.run(cuts=False)
    by_place: dict[tuple[int, int], list[Access]] = {}
    for access in accesses(written):
        by_place.setdefault((access.phase, access.place), []).append(access)
    shared = 0
    for found in by_place.values():
        stores = {access.value for access in found if access.value}
        if not stores or len({(a.team, a.side) for a in found}) == 1:
            continue
        shared += 1
        assert len({access.team for access in found}) == 1
        (value,) = stores
        assert value[0] == "m" or int(value[1:]) not in written.differ
        first = {access.side: access for access in reversed(found)}
        assert all(access.value for access in first.values())
    assert shared or written.teams == 1


def test_code_is_written_once() -> None:
    """Shared code has about half of the instructions and still uses both arms and both legs."""
    similar = traced("humanoid")
    found = twins(similar)
    assert found is not None
    assert found.sides == 2
    assert len(found.program.code) < 0.65 * len(similar.code)
    own, shared = (Crew(similar, "float64", "rows", Size(4, 100, shared=s)) for s in (False, True))
    assert shared.active > 0.85 * own.active
    assert shared.division.phases <= own.division.phases + 1


def two_sides(angle: Any, order: tuple[int, ...] = (0, 1)) -> Program:
    """Return a program of two one-joint limbs with `angle(q, number)` and ordered results."""
    arena = Arena(RULES)
    q = [arena.input("q", k, Seat(0, k, 2, 0)) for k in range(2)]
    number = [arena.input("n", k, Seat(0, k, 2, 1)) for k in range(2)]
    values = [n * sin(angle(x, n)) + cos(angle(x, n)) for x, n in zip(q, number, strict=True)]
    results = [values[k] for k in order] + [values[0] * values[1]]
    inputs, y = [Variable("q", (2,)), Variable("n", (2,))], Variable("y", (len(results),))
    return Program.from_outputs("f", inputs, [(y, results)]).given("n", [0.25, -0.5])


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_results_of_sides_in_any_order(order: tuple[int, int], tmp_path: Path) -> None:
    made = two_sides(lambda x, n: x + n, order)
    inputs = [np.random.default_rng(1).normal(size=(4, 2))]
    kernel = OnCPU(made, "float64", "rows", tmp_path, crew=Size(2, 20, True))
    (got,), (right,) = kernel(inputs), expected(made, inputs)
    close(got, right, 1e-14)


def test_shared_code_of_steps(tmp_path: Path) -> None:
    """A repeated step shares code between two sides. The state of the trunk depends on both."""
    arena = Arena(RULES)
    a, b = (arena.input("x", k, Seat(0, k, 2, 0)) for k in range(2))
    n = [arena.input("n", k, Seat(0, k, 2, 1)) for k in range(2)]
    c, u = arena.input("x", 2), arena.input("u", 0)
    after = [x + 0.1 * c * sin(x + m) for x, m in zip((a, b), n, strict=True)]
    results = [*after, c + 0.2 * a * b + cos(u)]
    inputs = [Variable("x", (3,)), Variable("u", (1,)), Variable("n", (2,))]
    made = Program.from_outputs("step", inputs, [(Variable("x", (3,)), results)])
    made = made.given("n", [0.25, -0.5])
    x, u = np.random.default_rng(2).normal(size=(2, 1, 3)), np.full((1, 1, 1), 0.3)
    out = np.full((2, 3, 3), np.nan)
    LoopOnCPU(made, "float64", tmp_path, crew=Size(2, 9, True))([x, u, out], 2, 7, 3)
    states, right = x[:, 0], []
    for step in range(7):
        (states,) = expected(made, [states, np.full((2, 1), 0.3)])
        right += [states] if step in (2, 5, 6) else []
    close(out, np.stack(right, axis=1), 1e-14)


@pytest.mark.parametrize(
    "made",
    [
        two_sides(lambda x, n: x * n),  # the loop over angles cannot compute this angle
        two_sides(lambda x, _: x, (0, 0, 1)),  # one side's result is stored twice
        program(chasles.robots.puma560().model, "inverse_dynamics", similar=True),  # no limbs
    ],
)
def test_what_cannot_be_shared(made: Program) -> None:
    assert twins(made) is None


def test_shared_code_where_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crews share code if shared memory does not reduce the number of crews that fit."""
    similar, where = traced("uneven quadruped"), ("float32", "sm_90", "rows")
    crews = [crew.crew for crew, _ in cuda_build._crews(similar, *where)]
    assert [(size.warps, size.shared) for size in crews] == [(4, True)]
    monkeypatch.setitem(cuda_build.SHARED, "sm_90", 32)
    crews = [crew.crew for crew, _ in cuda_build._crews(similar, *where)]
    assert [(size.warps, size.shared) for size in crews] == [
        (warps, False) for warps, _ in cuda_build.CREWS
    ]


def test_long_programs_are_traced_for_shared_code() -> None:
    """Forward dynamics of a humanoid shares code; its shorter inverse dynamics does not."""
    robot = chasles.robots.humanoid()
    for function, shared in (("forward_dynamics", True), ("inverse_dynamics", False)):
        recipe = chasles.compile(robot, function, backend="interpret").recipe
        made = Compiled.__new__(Compiled)
        made.recipe, made.model = replace(recipe, backend="cuda"), robot.model
        found = made.compiled
        assert isinstance(found, Program)
        assert bool(found.alike) == shared


def test_shared_code_of_a_large_humanoid() -> None:
    """Talos in float64 uses nearly all shared memory, and would be slow without shared code."""
    robot = chasles.load("talos_reduced", floating=True)
    similar = program(robot.model, "forward_dynamics", similar=True)
    chosen = cuda_build._crew(similar, "float64", "sm_90", "rows")
    assert chosen is not None
    assert (chosen.crew.crew.warps, chosen.crew.crew.shared, chosen.fits) == (4, True, 2)
