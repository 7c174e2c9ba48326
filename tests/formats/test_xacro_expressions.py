"""xacro expressions have the same values as in Python, without access to the rest of Python."""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chasles.formats import xacro_expressions
from chasles.formats.xacro_expressions import FUNCTIONS, MOST_WORK, Evaluator, Refused

PYTHON = {name: getattr(math, name, None) or __builtins__[name] for name in FUNCTIONS}  # type: ignore[index]
"""Python's functions with these names."""

VALUES = {"pi": math.pi, "k": 3, "x": 0.25, "name": "left_arm", "sides": ["left", "right"]}
NAMES = PYTHON | VALUES


def value(expression: str, names: dict[str, Any] = NAMES) -> Any:
    evaluate = Evaluator((f, FUNCTIONS[name]) for name, f in PYTHON.items())
    evaluate.left = 50_000
    return evaluate(expression, names)


SAME = (
    *("1 + 2 * 3 - -4", "7 // 2 + 7 % 4 - 2 ** 10", "(2 + x) / 4e-3", "2 ** -3", "1 << 5 | 3 & ~k"),
    *("k < 4 and x > 1 or not name", "1 < k <= 3 != 4", "'left' in sides", "None is None"),
    *("k if x else pi", "name[-3:] + name[0]", "sides[1] * 2", "'ab'[0]"),
    *("sin(pi / 3) + atan2(1, x) - hypot(3, 4)", "radians(90) + degrees(pi)", "comb(9, 2)"),
    *(
        "max(sides, key=len)",
        "sorted([3, 1, 2], reverse=True)",
        "round(pi, 3) + round(2.5)",
        "list(range(0, 9, 2))",
    ),
    *("[a * a for a in [1, 2, 3] if a > 1]", "[a + b for a in sides for b in (name, 'c')]"),
    *("sum(a for a in range(5))", "[i * s for i, s in enumerate(sides)]", "dict(a=1, b=[2])['b']"),
    *(
        "list(map(float, '1 2 3'.split()))",
        "list(filter(None, [0, 1]))",
        "list(zip(sides, [1, 2]))",
    ),
    *(
        "name.upper().split('_')",
        "'-'.join(sides)",
        "name.replace('left', 'right')",
        "' a '.strip()",
    ),
    *(
        "'%03d %.2f %s' % (k, pi, name)",
        "'%s%%' % k",
        "str(k) + str([x])",
        "int('12') + float('.5')",
    ),
    *("isinstance(name, str) and not isinstance(k, (str, list))", "len(name) == 8", "bool([])"),
    *(
        "factorial(10) / 3",
        "abs(-k)",
        "divmod(17, 5)",
        "all([1, 0]) or any([0, 1])",
        "(1, 'a', [])",
    ),
    *("[x for x in [1]][0] + x", "dict(a=1).get('b', 2)", "sorted(dict(b=1, a=2).items())"),
)


@pytest.mark.parametrize("expression", SAME)
def test_values_are_those_of_python(expression: str) -> None:
    assert value(expression) == eval(expression, {"__builtins__": {}} | NAMES)


PYTHONS = (ArithmeticError, LookupError, NameError, SyntaxError, TypeError, ValueError)


@pytest.mark.parametrize(
    "expression",
    ["a", "1 / 0", "'a' + 1", "sides[2]", "k()", "int('x')", "sqrt(-1)", "1 +", "dict(a=1)['b']"],
)
def test_errors_are_those_of_python(expression: str) -> None:
    with pytest.raises(PYTHONS) as python:
        eval(expression, {"__builtins__": {}} | NAMES)
    with pytest.raises(python.type) as ours:
        value(expression)
    assert type(ours.value) is type(python.value)
    if python.type is not SyntaxError:
        assert str(ours.value) == str(python.value)


ESCAPES = (
    *(
        "().__class__",
        "()._\uff3fclass_\uff3f",
        "().\uff3f\uff3fclass\uff3f\uff3f",
        "name.\U0001d41f",
    ),
    *("(lambda: 1)()", "f'{name}'", "(k := 2)", "(i for i in [1]).gi_frame", "[*sides]"),
    *("max(*sides)", "dict(**dict(a=1))", "'{0.__class__}'.format(k)", "'{}'.format_map(NAMES)"),
    *(
        "name.encode()",
        "str.mro()",
        "len.__self__",
        "int.from_bytes([1])",
        "list[int]",
        "...",
        "b'a'",
    ),
    *(
        "1j",
        "[x for x.y in [1]]",
        "[x async for x in sides]",
        "sides.append(1)",
        "name @ name",
        "yield",
    ),
    *("sorted(sides, key=eval)", "map(exec, sides)", "type(k)", "vars(k)", "open('/etc/passwd')"),
    *("factorial(k, f=type)", "round(1.5, f=type)", "comb(k, 2, f=vars)", "sides.sort(key=type)"),
    *("dict(a=type).get('a')(k)", "[type][0](k)", "(type or len)(k)", "[t(k) for t in [type]]"),
)
TOO_MUCH = (
    *("9**9**9", "2**100000", "1 << 10**9", "'a' * 10**10", "[0] * 10**9", "10**9 * (1,)"),
    *("list(range(10**9))", "max(range(10**12))", "sum(range(10**40))", "len(range(10**30))"),
    *(
        "factorial(10**7)",
        "comb(10**6, 10**5)",
        "perm(10**6)",
        "round(1, -10**9)",
        "prod([2**999] * 9)",
    ),
    *("'%1000000000d' % 1", "'%*d' % (10**9, 1)", "'%.999999999f' % 1", "-" * 5000 + "1"),
    *("(" * 250 + "1" + ")" * 250, "1 +" * 2000 + "1", "not " * 3000 + "1", "1" * 30000),
    *("[a for a in range(3000) for b in range(3000)]", "'a'.join(['b' * 9000] * 9000)"),
    *("('a' * 9999).replace('a', 'b' * 9999)", "name.zfill(10**10)", "name.ljust(10**10)"),
    *("int('9' * 5000)", "sum([[0] * 9999] * 9999, [])", "str([[[['a' * 999] * 99] * 99] * 99])"),
)
REFUSALS = (Refused, NameError, ValueError, SyntaxError, TypeError)


@pytest.mark.parametrize("expression", ESCAPES + TOO_MUCH)
def test_refused(expression: str) -> None:
    names = NAMES | {"type": type, "vars": vars, "eval": eval, "exec": exec, "open": open}
    with pytest.raises(REFUSALS) as caught:
        value(expression, names)
    if isinstance(caught.value, Refused):
        assert len(caught.value.told) < 250
        assert caught.value.told.endswith("}")


def test_a_file_has_a_bounded_amount_of_work() -> None:
    """The limit is for all expressions together."""
    evaluate = Evaluator([(range, range), (sum, sum)])
    names = {"range": range, "sum": sum}
    for _ in range(9):
        evaluate(f"sum(range({MOST_WORK // 30}))", names)
    with pytest.raises(Refused, match="take too long"):
        evaluate(f"sum(range({MOST_WORK // 3}))", names)


def test_names_that_were_redefined_are_not_functions() -> None:
    with pytest.raises(TypeError, match="'int' object is not callable"):
        value("len(name)", NAMES | {"len": 3})
    with pytest.raises(Refused, match="'vars'"):
        value("len(name)", NAMES | {"len": vars})


AUDIT = """
import sys
sys.path.insert(0, {folder!r})
import math, test_xacro_expressions as t
told = []
sys.addaudithook(lambda event, given: told.append(event))
names = t.NAMES | {{"type": type, "vars": vars, "eval": eval, "exec": exec, "open": open}}
for expression in t.SAME + t.ESCAPES + t.TOO_MUCH:
    try:
        t.value(expression, names)
    except t.REFUSALS:
        pass
print(*sorted(set(told)))
"""


def test_nothing_is_run_or_opened() -> None:
    """Python's audit log shows only that expressions were parsed (compile)."""
    code = AUDIT.format(folder=str(Path(__file__).parent))
    folder = Path(xacro_expressions.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(folder)},
    )
    assert set(done.stdout.split()) <= {"compile", "builtins.id"}, done.stdout + done.stderr
    assert "compile" in done.stdout, done.stderr
