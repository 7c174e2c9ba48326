"""Long programs compiled as loops over their segments give the same results."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from support import Floats, close, relative, state, tree

import chasles
from chasles.backends import rolling
from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm import source as llvm_source
from chasles.backends.llvm.tiles import Target
from chasles.expr import UNIFORM, Arena, Program, Variable, interpret, sin
from chasles.functions import programs, tracing
from chasles.robots import general_chain, general_tree

Array = NDArray[np.float64]

ROBOTS: dict[str, Callable[[], chasles.Robot]] = {
    "chain": lambda: general_chain(12),
    "two bodies": lambda: general_chain(2),
    "binary tree": lambda: general_tree(15, 2),
    "every joint": lambda: tree(20, 1),
    "floating": lambda: tree(14, 4, floating=True),
    "mimics": lambda: tree(16, 2, mimics=True),
}
FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "kinetic_energy")


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile every program as a loop, however short it is and however many forms it has."""
    monkeypatch.setattr(tracing, "MANY", 0)
    monkeypatch.setattr(llvm_source, "LOOP", 0)
    monkeypatch.setattr(rolling, "SHORTER", 0)


def run(kernel: llvm.Kernel, given: list[Array]) -> Array:
    count = given[0].shape[0]
    out = np.full((count, kernel.interface.outputs[0].size), np.nan, given[0].dtype)
    kernel(given, [out], 1)
    return out


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", ROBOTS)
def test_a_loop_gives_the_numbers_of_its_program(name: str, function: str) -> None:
    """A loop agrees with the interpreter, and with another algorithm evaluated on plain floats."""
    robot = ROBOTS[name]()
    program = programs.program(robot.model, function)
    assert rolling.rolled(program) is not None
    kernel = llvm.compile(program)
    given = [a for a, _ in zip(state(robot, 5, 13), program.inputs, strict=False)]
    found = run(kernel, given)
    for row in (0, 7, 12):
        state_of_row = {v.name: a[row] for v, a in zip(program.inputs, given, strict=True)}
        close(found[row], interpret(program, state_of_row)["result"], 1e-12)
        alone = run(kernel, [a[row : row + 1] for a in given])
        assert np.array_equal(alone[0], found[row]), "one state gives the same bits in a batch"
    other = {"inverse_dynamics": "spatial", "forward_dynamics": "mass-matrix"}.get(function, "")
    expected = getattr(Floats(robot), function)(*(a[0] for a in given), method=other)
    close(found[0], np.ravel(expected), 1e-9)


@pytest.mark.usefixtures("always")
def test_loops_in_single_precision_and_without_fused_products() -> None:
    robot = tree(20, 1)
    program = programs.program(robot.model, "inverse_dynamics")
    given = list(state(robot, 5, 5))
    exact = run(llvm.compile(program), given)
    plain = run(llvm.compile(program, llvm.Machine.host().without_fma()), given)
    close(plain, exact, 1e-12)
    single = run(llvm.compile(program, dtype="float32"), [a.astype(np.float32) for a in given])
    assert single.dtype == np.float32
    close(single, exact, 1e-3)


def test_long_chains_are_loops_by_themselves() -> None:
    """Inverse dynamics of a long chain is a loop, and agrees with recursion on plain floats.

    The number of forms does not grow with the chain.
    """
    robot = general_chain(300)
    compiled = chasles.compile(robot, "inverse_dynamics")
    target = Target(8, fuse=True)
    loop = llvm_source._lowered(compiled.program, target)
    assert isinstance(loop, rolling.Rolled)
    assert sum(len(form.program.code) for form in loop.forms) * 5 < len(compiled.program.code)
    q, qd, qdd = (0.1 * a for a in state(robot, 3, 20))
    found = compiled(q, qd, qdd)
    expected = Floats(robot).inverse_dynamics(q[4], qd[4], qdd[4], method="spatial")
    close(found[4], expected, 1e-10)
    assert np.array_equal(compiled(q[4], qd[4], qdd[4]), found[4])
    other = chasles.compile(robot, "inverse_dynamics", backend="numpy")
    close(found, other(q, qd, qdd), 1e-11)
    longer = rolling.rolled(programs.program(general_chain(450).model, "inverse_dynamics"))
    assert longer is not None
    assert len(longer.forms) <= len(loop.forms) + 12


def test_forward_dynamics_of_a_long_chain_undoes_inverse_dynamics() -> None:
    """Forward dynamics of a long chain uses only articulated bodies, and inverts inverse dynamics.

    The mass matrix has a hundred times as many entries.
    """
    robot = general_chain(150)
    ways = programs.candidates(robot.model, "forward_dynamics")
    assert {way.method.name for way in ways} == {"articulated-body"}
    q, qd, qdd = (0.1 * a for a in state(robot, 3))
    tau = robot.inverse_dynamics(q, qd, qdd)
    back = robot.inverse_dynamics(q, qd, robot.forward_dynamics(q, qd, tau))
    assert relative(back, tau) < 1e-8


def test_a_long_chain_keeps_few_values_per_body() -> None:
    """Forward dynamics keeps 14 values per body between its passes, and inverse dynamics keeps 8.

    These are the sine and cosine, c (4 values), U (6), D and u; and the sine, cosine and force. The
    memory of velocities is reused.
    """
    chain = general_chain(200)
    for function, count in (("forward_dynamics", 14), ("inverse_dynamics", 8)):
        loop = rolling.rolled(programs.program(chain.model, function))
        assert loop is not None
        assert count * 200 <= loop.scratch <= count * 200 + 60


def _segments(count: int) -> Program:
    """Return a program of `count` segments x -> c sin(x) + x/2, each with its own c."""
    arena = Arena(UNIFORM, ordered=True)
    x = arena.input("x", 0)
    steps = []
    for k in range(count):
        arena.cut()
        x = sin(x) * (0.4 - 0.001 * k) + x * 0.5
        steps.append(x)
    outputs = [(Variable("y", (count + 1,)), [*steps, 2.0])]
    return Program.from_outputs("steps", [Variable("x", (1,))], outputs)


@pytest.mark.usefixtures("always")
def test_segments_of_one_form_are_one_program() -> None:
    program = _segments(1000)
    loop = rolling.rolled(program)
    assert loop is not None
    assert max(len(form.numbers) for form in loop.forms) > 1
    assert sum(len(form.program.code) for form in loop.forms) < len(program.code) / 2
    kernel = llvm.compile(program)
    x = np.linspace(-1.0, 1.0, 11)[:, None]
    expected = [interpret(program, {"x": row})["y"] for row in x]
    close(run(kernel, [x]), expected, 1e-13)


@pytest.mark.usefixtures("always")
def test_constants_among_results_and_results_that_occur_twice() -> None:
    program = _segments(10)
    y = program.results[0]
    twice = Program(
        "twice", program.inputs, (Variable("y", (13,)),), (), ((*y, y[3], y[3]),), program.code,
        cuts=program.cuts,
    )  # fmt: skip
    assert rolling.rolled(twice) is not None
    kernel = llvm.compile(twice)
    x = np.linspace(-1.0, 1.0, 11)[:, None]
    found = run(kernel, [x])
    assert np.array_equal(found[:, 10], np.full(11, 2.0))
    assert np.array_equal(found[:, 11], found[:, 3])
    assert np.array_equal(run(kernel, [x[2:3]])[0], found[2])


def test_a_result_that_is_an_input_is_left_to_straight_code() -> None:
    program = _segments(10)
    (place,) = (k for k, i in enumerate(program.code) if i.op == "input")
    given = Program(
        "given", program.inputs, (Variable("y", (1,)),), (), ((place,),), program.code,
        cuts=program.cuts,
    )  # fmt: skip
    assert rolling.rolled(given) is None
