"""Programs: order of instructions, text, operation counts, live values and evaluation."""

import copy
import math
import pickle
import random
import time

import pytest

from chasles.expr import (
    OPS,
    RULES,
    Arena,
    Count,
    Instruction,
    Program,
    Variable,
    cos,
    interpret,
    less,
    maximum,
    select,
    sin,
    sqrt,
)


def _symbols(arena, name, n):
    return [arena.input(name, k) for k in range(n)]


def _single(outputs, n=4, rules=RULES):
    """Return a program of `x[n]` whose results are `outputs(symbols)`."""
    arena = Arena(rules)
    results = outputs(_symbols(arena, "x", n))
    return Program.from_outputs(
        "f", [Variable("x", (n,))], [(Variable("y", (len(results),)), results)]
    )


PENDULUM = """\
program pendulum(q[1], qd[1], mass[])
  t2 = less(0.0, qd[0])
  t4 = qd[0] * 0.25
  t5 = select(t2, t4, 0.0)
  t7 = sin(q[0])
  t9 = t7 * 9.81
  t11 = t9 * mass[0]
  t12 = t5 + t11
  return tau[1] = t12
  return constant[2, 1] = 0.0, 1.5
"""


def _pendulum():
    arena = Arena(RULES)
    q, qd, m = arena.input("q", 0), arena.input("qd", 0), arena.input("mass", 0)
    tau = m * (9.81 * sin(q)) + select(less(0.0, qd), 0.25 * qd, 0.0)
    return Program.from_outputs(
        "pendulum",
        [Variable("q", (1,)), Variable("qd", (1,)), Variable("mass", ())],
        [(Variable("tau", (1,)), [tau]), (Variable("constant", (2, 1)), [0.0, 1.5])],
    )


def test_every_instruction_follows_its_arguments_and_is_needed():
    rng = random.Random(3)

    def outputs(x):
        for _ in range(300):
            a, b = rng.choice(x), rng.choice(x)
            x.append(rng.choice([a * b, a + b, sin(a), a - b, maximum(a, b)]))
        return x[-5:]

    program = _single(outputs)
    used = set(program.results[0])
    for k, instruction in enumerate(program.code):
        assert all(a < k for a in instruction.args)
        assert len(instruction.args) == OPS[instruction.op].arity
        used.update(instruction.args)
    assert used == set(range(len(program.code)))
    assert len(set(program.code)) == len(program.code)


@pytest.mark.parametrize("rules", [RULES, {}], ids=["rules", "no rules"])
def test_deep_expressions_need_no_recursion(rules):
    n = 100_000
    start = time.process_time()

    def outputs(x):
        y = x[0]
        for _ in range(n):
            y = sin(y)
        return [y]

    program = _single(outputs, 1, rules)
    assert program.count.sines_and_cosines == n
    assert program.live == 1
    assert abs(interpret(program, {"x": [1.0]})["y"][0]) < 0.01
    assert len(program.hash) == 64
    assert time.process_time() - start < 20.0


def test_shared_expressions_are_computed_once():
    def outputs(x):
        y = x[0]
        for _ in range(200):  # 2^200 paths through 200 nodes
            y = y * y + 0.25
        return [y, y, x[0]]

    program = _single(outputs, 1)
    assert program.count == Count(multiplications=200, additions=200)
    assert program.results[0][0] == program.results[0][1]


def test_text_of_a_small_program():
    assert str(_pendulum()) == PENDULUM


def test_text_spells_every_operation():
    arena = Arena({})
    x = _symbols(arena, "x", 3)
    results = [arena.node(op.name, *x[: op.arity]) for op in OPS.values() if op.arity]
    program = Program.from_outputs(
        "all", [Variable("x", (3,))], [(Variable("y", (len(results),)), results)]
    )
    lines = str(program).splitlines()[1:-1]
    assert len(lines) == len(results)
    for op, line in zip((op for op in OPS.values() if op.arity), lines, strict=True):
        sign = {"add": "+", "sub": "-", "mul": "*", "div": "/", "neg": "-"}.get(op.name, op.name)
        assert sign in line
        assert line.count("x[") == op.arity


def test_hash_tells_programs_apart():
    def one(function):
        return _single(function).hash

    hashes = {
        one(lambda x: [x[0] + x[1]]),
        one(lambda x: [x[0] - x[1]]),
        one(lambda x: [x[0] + x[2]]),
        one(lambda x: [x[0] + 1.0]),
        one(lambda x: [x[0] + math.nextafter(1.0, 2.0)]),
        one(lambda x: [x[0] + x[1], x[0]]),
        one(lambda x: [0.0]),
        one(lambda x: [-0.0]),
        one(lambda x: []),
        _pendulum().hash,
    }
    assert len(hashes) == 10
    assert _pendulum().hash == _pendulum().hash


def test_a_program_is_a_value():
    program = _pendulum()
    again = pickle.loads(pickle.dumps(program))
    assert again == program == copy.deepcopy(program)
    assert again.hash == program.hash
    assert str(again) == str(program)
    assert hash(again) == hash(program)
    assert program != _single(lambda x: [x[0]])


def test_counts_by_column():
    def outputs(x):
        a, b, c, d = x
        return [sqrt(a * b + c) / d, select(less(a, b), -sin(c), cos(c)), a - b]

    count = _single(outputs).count
    assert count == Count(
        multiplications=2,
        additions=2,
        divisions=1,
        square_roots=1,
        sines_and_cosines=2,
        negations=count.negations,  # depends on whether a - b or b - a is the node
        selections=2,
    )
    assert count.flops == 4
    assert count.weight == 4 + 2 + 8 * (1 + 1 + 2)  # divisions, roots and angles are slow
    assert str(Count(multiplications=2, divisions=1)) == "2 multiplications, 1 division"
    assert str(Count()) == "no operations"
    assert _single(lambda x: [x[0], 2.0]).count == Count()


def _live(program):
    """Return the maximum number of values computed before and used after any instruction."""
    n = len(program.code)
    last = {}
    for k, instruction in enumerate(program.code):
        for a in instruction.args:
            last[a] = k
    for r in (r for group in program.results for r in group):
        last[r] = n
    moments = [
        sum(
            1
            for k in range(moment + 1)
            if program.code[k].op != "const" and k in last and last[k] > moment
        )
        for moment in range(n)
    ]
    return max(moments, default=0)


@pytest.mark.parametrize("seed", range(6))
def test_live_values(seed):
    rng = random.Random(seed)

    def outputs(x):
        for _ in range(60):
            a, b = rng.choice(x[-20:]), rng.choice(x)
            x.append(rng.choice([a * b, a + 2.0, sin(a), a - b]))
        return [*x[-3:], 1.0, 2.0 * x[0]]

    program = _single(outputs)
    assert program.live == _live(program)


def test_live_values_of_a_sum_and_of_nothing():
    assert _single(lambda x: [sin(cos(sin(x[0])))]).live == 1
    assert _single(lambda x: [x[0] * x[1]]).live == 2
    assert _single(lambda x: [1.0, 2.0]).live == 0
    assert _single(lambda x: []).live == 0
    assert _single(lambda x: list(x)).live == 4


def test_variables_have_sizes():
    assert Variable("a", ()).size == 1
    assert Variable("a", (2, 3)).size == 6
    assert Variable("a", (0,)).size == 0


def test_interpret_runs_on_any_sequence_and_keeps_the_order():
    program = _pendulum()
    for q in ([0.5], (0.5,)):
        result = interpret(program, {"mass": [2.0], "q": q, "qd": [4]})
        assert list(result) == ["tau", "constant"]
        assert result["tau"] == pytest.approx([2.0 * 9.81 * math.sin(0.5) + 1.0], rel=1e-15)
        assert result["constant"] == [0.0, 1.5]
    assert interpret(_single(lambda x: []), {"x": [0.0] * 4}) == {"y": []}
    with pytest.raises(KeyError):
        interpret(program, {"q": [0.0]})


def test_interpret_never_raises_on_values():
    arena = Arena({})
    x = _symbols(arena, "x", 3)
    results = [arena.node(op.name, *x[: op.arity]) for op in OPS.values() if op.arity]
    results += [arena.node(op.name, *results[: op.arity]) for op in OPS.values() if op.arity]
    program = Program.from_outputs(
        "all", [Variable("x", (3,))], [(Variable("y", (len(results),)), results)]
    )
    special = (0.0, -0.0, math.inf, -math.inf, math.nan, 1e308, -1.0)
    for a in special:
        for b in special:
            for c in special:
                values = interpret(program, {"x": [a, b, c]})["y"]
                assert all(type(value) is float for value in values)


def test_not_a_number_reaches_exactly_the_outputs_that_use_it():
    program = _single(lambda x: [x[0] + x[1], x[2] * 0.0, x[0] * x[2], x[2] - x[2], x[3]])
    got = interpret(program, {"x": [1.0, 2.0, math.nan, 4.0]})["y"]
    assert [math.isnan(value) for value in got] == [False, False, True, False, False]


def test_replay_on_numbers_and_on_symbols():
    program = _pendulum()
    inputs = {"q": [0.3], "qd": [-1.0], "mass": [2.0]}
    values = program.replay(inputs, Arena(RULES))
    assert [values[r] for r in program.results[0]] == interpret(program, inputs)["tau"]
    arena = Arena(RULES)
    again = program.replay(program.variables(arena), arena)
    groups = zip(program.outputs, program.results, strict=True)
    outputs = [(variable, [again[r] for r in refs]) for variable, refs in groups]
    assert Program.from_outputs(program.name, program.inputs, outputs) == program
    partly = program.replay(program.variables(arena) | {"qd": [0.0]}, arena)
    assert partly[program.results[0][0]].op == "mul"


def test_instructions_name_inputs_by_number():
    code = _single(lambda x: [x[2] * 2.5]).code
    assert Instruction("input", (), (0, 2)) in code
    assert Instruction("const", (), 2.5) in code
