"""Automatic differentiation of programs in forward and reverse mode.

Differentiation of a program gives another program, which computes exact derivatives.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from chasles.errors import InputError
from chasles.expr.ops import OPS
from chasles.expr.program import Program, Variable
from chasles.expr.scalar import Arena, Number, Scalar
from chasles.expr.simplify import RULES
from chasles.names import one_of

Tangent = dict[int, Number]
"""Nonzero derivatives of a value, by index of the input (forward mode) or output (reverse mode)."""


def jacobian(
    program: Program, wrt: Sequence[str], *, mode: Literal["forward", "reverse"] = "forward"
) -> Program:
    """Return a program that computes all first derivatives with respect to some inputs.

    Parameters
    ----------
    program : Program
        Program to differentiate.
    wrt : sequence of str
        Names of the inputs with respect to which to differentiate.
    mode : {"forward", "reverse"}, optional
        Forward mode is cheaper for few inputs, and reverse mode for few outputs. Both return the
        same derivatives.

    Returns
    -------
    derivatives : Program
        Program with the same inputs. Output `d_<out>_d_<in>` has the shape of the output, followed
        by the shape of the input.

    Raises
    ------
    InputError
        If the program has no input with a given name.

    Examples
    --------
    >>> import chasles
    >>> from chasles import expr
    >>> program = chasles.compile(chasles.robots.planar(1), "gravity_forces").program
    >>> slope = expr.jacobian(program, ["q"])
    >>> [(v.name, v.shape) for v in slope.outputs]
    [('d_result_d_q', (1, 1))]
    """
    wrt = tuple(dict.fromkeys(wrt))
    seeds = [(name, k) for name in wrt for k in range(_variable(program, name).size)]
    with Arena(RULES) as arena:
        values = program.replay(program.variables(arena), arena)
        entries = [r for refs in program.results for r in refs]
        if mode == "forward":
            unit: dict[tuple[str, int], Tangent] = {seed: {s: 1.0} for s, seed in enumerate(seeds)}
            tangents = _push_forward(program, values, arena, unit)
            rows = [[tangents[r].get(s, 0.0) for s in range(len(seeds))] for r in entries]
        else:
            start: dict[int, Tangent] = {}
            for column, r in enumerate(entries):
                start.setdefault(r, {})[column] = 1.0
            bars = _pull_back(program, values, arena, start)
            by_seed = [bars.get(seed, {}) for seed in seeds]
            rows = [[bar.get(column, 0.0) for bar in by_seed] for column in range(len(entries))]
        outputs, first = [], 0
        for variable in program.outputs:
            block, first = rows[first : first + variable.size], first + variable.size
            for name in wrt:
                chosen = [s for s, (n, _) in enumerate(seeds) if n == name]
                shape = variable.shape + _variable(program, name).shape
                result = Variable(f"d_{variable.name}_d_{name}", shape)
                outputs.append((result, [row[s] for row in block for s in chosen]))
        return Program.from_outputs(f"{program.name}_jacobian", program.inputs, outputs)


def forward(program: Program, wrt: Sequence[str]) -> Program:
    """Return a program for the directional derivative, the Jacobian times a direction.

    Parameters
    ----------
    program : Program
        Program to differentiate.
    wrt : sequence of str
        Names of the inputs with respect to which to differentiate.

    Returns
    -------
    derivative : Program
        Program with the inputs of `program`, followed by the directions `d_<in>`. The outputs are
        `d_<out>`.

    Raises
    ------
    InputError
        If an input in `wrt` does not exist, or if `wrt` lists an input twice.

    Examples
    --------
    >>> import chasles
    >>> from chasles import expr
    >>> program = chasles.compile(chasles.robots.planar(1), "gravity_forces").program
    >>> [v.name for v in expr.forward(program, ["q"]).inputs]
    ['q', 'd_q']
    """
    directions = [Variable(f"d_{name}", _variable(program, name).shape) for name in wrt]
    with Arena(RULES) as arena:
        values = program.replay(program.variables(arena), arena)
        start = {
            (name, k): {0: arena.input(direction.name, k)}
            for name, direction in zip(wrt, directions, strict=True)
            for k in range(direction.size)
        }
        tangents = _push_forward(program, values, arena, start)
        outputs = [
            (Variable(f"d_{v.name}", v.shape), [tangents[r].get(0, 0.0) for r in refs])
            for v, refs in zip(program.outputs, program.results, strict=True)
        ]
        return Program.from_outputs(
            f"{program.name}_forward", _extended(program, directions), outputs
        )


def reverse(program: Program, wrt: Sequence[str]) -> Program:
    """Return a program for the pullback, the transposed Jacobian times a covector.

    Parameters
    ----------
    program : Program
        Program to differentiate.
    wrt : sequence of str
        Names of the inputs with respect to which to differentiate.

    Returns
    -------
    derivative : Program
        Program with the inputs of `program`, followed by the covectors `bar_<out>`. The outputs are
        `bar_<in>`.

    Raises
    ------
    InputError
        If an input in `wrt` does not exist, or if `wrt` lists an input twice.

    Examples
    --------
    >>> import chasles
    >>> from chasles import expr
    >>> program = chasles.compile(chasles.robots.planar(1), "gravity_forces").program
    >>> [v.name for v in expr.reverse(program, ["q"]).inputs]
    ['q', 'bar_result']
    """
    covectors = [Variable(f"bar_{v.name}", v.shape) for v in program.outputs]
    with Arena(RULES) as arena:
        values = program.replay(program.variables(arena), arena)
        start: dict[int, Tangent] = {}
        for covector, refs in zip(covectors, program.results, strict=True):
            for k, r in enumerate(refs):
                _accumulate(start.setdefault(r, {}), {0: arena.input(covector.name, k)})
        bars = _pull_back(program, values, arena, start)
        outputs = []
        for name in wrt:
            variable = _variable(program, name)
            entries = [bars.get((name, k), {}).get(0, 0.0) for k in range(variable.size)]
            outputs.append((Variable(f"bar_{name}", variable.shape), entries))
        return Program.from_outputs(
            f"{program.name}_reverse", _extended(program, covectors), outputs
        )


def _variable(program: Program, name: str) -> Variable:
    for variable in program.inputs:
        if variable.name == name:
            return variable
    known = [v.name for v in program.inputs]
    problem = f"program {program.name!r} has no input {name!r}"
    raise InputError("E-EXPR-001", problem, one_of(name, known))


def _extended(program: Program, extra: Sequence[Variable]) -> tuple[Variable, ...]:
    """Return the inputs of a program followed by `extra`; raise an error for duplicate names."""
    inputs = (*program.inputs, *extra)
    for name, times in Counter(v.name for v in inputs).items():
        if times > 1:
            problem = f"input {name!r} is listed twice"
            remedy = (
                "list each input once; for second derivatives, apply jacobian twice, or "
                "apply forward to the result of reverse"
            )
            raise InputError("E-EXPR-002", problem, remedy, part=f"program {program.name!r}")
    return inputs


def _push_forward(
    program: Program, values: list[Number], arena: Arena, start: dict[tuple[str, int], Tangent]
) -> list[Tangent]:
    """Return the tangents of all instructions (forward-mode differentiation from the inputs)."""
    tangents: list[Tangent] = []
    for k, (op, args, data) in enumerate(program.code):
        if op == "input":
            tangents.append(start.get((program.inputs[data[0]].name, data[1]), {}))
        elif (chooses := OPS[op].chooses) is not None:
            c, a, b = chooses(arena.build, tuple(values[a] for a in args))
            tangents.append(_select(arena.build, c, tangents[args[a]], tangents[args[b]]))
        else:
            total: Tangent = {}
            moving = [a for a in args if tangents[a]]
            if moving:
                slopes = OPS[op].partials(arena.build, tuple(values[a] for a in args), values[k])
                for a, slope in zip(args, slopes, strict=True):
                    _accumulate(total, _scaled(arena.build, slope, tangents[a]))
            tangents.append(total)
    return tangents


def _pull_back(
    program: Program, values: list[Number], arena: Arena, start: dict[int, Tangent]
) -> dict[tuple[str, int], Tangent]:
    """Return the adjoints of all inputs (reverse-mode differentiation from the outputs)."""
    bars: dict[int, Tangent] = dict(start)
    inputs: dict[tuple[str, int], Tangent] = {}
    for k in range(len(program.code) - 1, -1, -1):
        op, args, data = program.code[k]
        bar = bars.pop(k, {})
        if not bar:
            continue
        if op == "input":
            inputs[program.inputs[data[0]].name, data[1]] = bar
        elif (chooses := OPS[op].chooses) is not None:
            c, a, b = chooses(arena.build, tuple(values[a] for a in args))
            _accumulate(bars.setdefault(args[a], {}), _select(arena.build, c, bar, {}))
            _accumulate(bars.setdefault(args[b], {}), _select(arena.build, c, {}, bar))
        else:
            slopes = OPS[op].partials(arena.build, tuple(values[a] for a in args), values[k])
            for a, slope in zip(args, slopes, strict=True):
                _accumulate(bars.setdefault(a, {}), _scaled(arena.build, slope, bar))
    return inputs


def _accumulate(total: Tangent, more: Tangent) -> None:
    for seed, t in more.items():
        if type(t) is float and t == 0.0:
            continue
        total[seed] = total[seed] + t if seed in total else t


def _scaled(build: Callable[..., Number], slope: Number, tangent: Tangent) -> Tangent:
    return {s: _times(build, slope, t) for s, t in tangent.items()}


def _times(build: Callable[..., Number], slope: Number, t: Number) -> Number:
    """Return the product of a partial derivative (`slope`) and a tangent or adjoint t.

    If t is a `select` expression and one of its values is 0, this value remains 0 in the product,
    even if `slope` is infinite.
    """
    if isinstance(t, Scalar) and t.op == "select":
        c, a, b = (x.data if x.op == "const" else x for x in t.args)
        if any(type(x) is float and x == 0.0 for x in (a, b)):
            return build("select", c, *(_times(build, slope, x) for x in (a, b)))
    return slope * t


def _select(build: Callable[..., Number], c: Number, a: Tangent, b: Tangent) -> Tangent:
    seeds: Iterable[int] = dict.fromkeys([*a, *b])
    return {s: build("select", c, a.get(s, 0.0), b.get(s, 0.0)) for s in seeds}
