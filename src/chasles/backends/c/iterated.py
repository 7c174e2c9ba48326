"""An iterative step in C: initialization, iterations until convergence, and results.

The parts are the functions `begin`, `refine`, `rescue` and `end`, as in `llvm.iterated`. The caller
provides the workspace, so the step keeps no state, allocates no memory, and needs little stack. The
number of iterations is bounded.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from chasles.backends import interpret
from chasles.backends.c.function import Function, table, wrapped
from chasles.expr import Program, Variable

CARRIED = ("point", "memory", "data")


@dataclass(frozen=True)
class Iteration:
    """An iterative step in C, and the data for its test.

    - parts: the functions `begin` (beginning of a step), `refine` (an iteration), `rescue` (a late
      iteration) and `end` (end of a step).
    - quick: number of iterations after which `rescue` replaces `refine`.
    - most: maximum number of iterations.
    - states: names of results that replace the inputs of the same name.
    - reports: other results, with the number of entries that the caller receives. Inputs with the
      same names as these results are set to zero.
    - notes: comment lines for the C header.
    - sample: rows (count, size) of the inputs for the test, without reports.
    - compared: names of results that the test compares with stored values.
    - allowed: tolerance of the test, relative to the largest result.
    """

    name: str
    summary: str
    parts: tuple[Function, Function, Function, Function]
    quick: int
    most: int
    states: tuple[str, ...]
    reports: dict[str, int]
    notes: tuple[str, ...]
    sample: dict[str, np.ndarray]
    compared: tuple[str, ...]
    allowed: float

    @property
    def given(self) -> list[Variable]:
        """Inputs that the step only reads."""
        return [v for v in self.parts[0].inputs if v.name not in (*self.states, *self.reports)]

    @property
    def kept(self) -> list[Variable]:
        """Inputs that the step replaces, in the order of `states`."""
        inputs = {v.name: v for v in self.parts[0].inputs}
        return [inputs[name] for name in self.states]

    @property
    def room(self) -> dict[str, int]:
        """Number of entries in each section of the workspace that the caller provides."""
        point, memory, data = self.parts[0].outputs
        sizes = {v.name: v.size for v in (point, memory, data)}
        sizes |= {"next": point.size, "changed": memory.size}
        ends = self.parts[3].program.outputs
        sizes |= {f"new_{v.name}": v.size for v in ends if v.size}
        return sizes | {"zeros": max((v.size for v in ends), default=1)}

    @property
    def size(self) -> int:
        """Number of entries in the workspace that the caller provides."""
        return sum(self.room.values())

    @property
    def macro(self) -> str:
        """Name of the C macro for the number of entries in the caller's workspace."""
        return f"{self.name.upper()}_ROOM"

    @property
    def signature(self) -> str:
        T = self.parts[0].number.name
        heads = [f"const {T} {v.name}[{v.size}]" for v in self.given if v.size]
        heads += [f"{T} {v.name}[{v.size}]" for v in self.kept if v.size]
        heads += [f"{T} {name}[{n}]" for name, n in self.reports.items() if n]
        return wrapped(f"int {self.name}(", [*heads, f"{T} room[{self.macro}]"], ")")

    def description(self) -> Iterable[str]:
        """Yield the comment lines that describe the step in the C header."""
        yield self.summary
        yield ""
        yield from (f"{v.name}: {_numbers(v.size)}" for v in self.given if v.size)
        for v in self.kept:
            if v.size:
                yield f"{v.name}: {_numbers(v.size)}; before the step on entry, after it on return"
        yield from (f"out: {name}: {_numbers(n)}" for name, n in self.reports.items() if n)
        yield f"room: memory for {self.size} numbers, whose contents do not matter"
        yield from self.notes
        yield "returns the number of iterations; negative if the step was not solved"
        yield f"at most {self.most} iterations"
        counts = ", ".join(str(f.program.count.flops) for f in self.parts)
        yield f"additions and multiplications of begin, iteration, late iteration, end: {counts}"
        stack = max(f.stack for f in self.parts)
        yield f"stack (optimized build), approximately: {stack + 256} bytes"


def _numbers(count: int) -> str:
    return f"{count} number{'' if count == 1 else 's'}"


def iteration_definition(it: Iteration) -> str:
    """Return the C definition of the step function.

    The definition must be placed after the definitions of the functions that the step calls.
    """
    T, number = it.parts[0].number.name, it.parts[0].number
    begin, refine, rescue, end = it.parts
    lines, at = [], 0
    for name, size in it.room.items():
        lines.append(f"    {T} *const {name} = &room[{at}];")
        at += size
    given = [
        "zeros" if v.name in it.reports else v.name if v.size else "NULL" for v in begin.inputs
    ]
    lines += [f"    for (size_t k = 0U; k < {it.room['zeros']}U; ++k) {{"]
    lines += [f"        zeros[k] = {number.spelled(0.0)};", "    }"]
    lines.append(wrapped(f"    {begin.name}(", [*given, *CARRIED], ");"))
    half, quick = number.spelled(0.5), number.spelled(it.quick - 0.5)
    lines += [
        f"    for (int n = 1; (n < {it.most}) && (memory[0] < {half}); ++n) {{",
        f"        if (memory[1] < {quick}) {{",
        f"            {refine.name}(point, memory, data, next, changed);",
        "        } else {",
        f"            {rescue.name}(point, memory, data, next, changed);",
        "        }",
        *_copied("point", "next", it.room["point"], "        "),
        *_copied("memory", "changed", it.room["memory"], "        "),
        "    }",
    ]
    results = [f"new_{v.name}" if v.size else "NULL" for v in end.program.outputs]
    lines.append(wrapped(f"    {end.name}(", [*given, *CARRIED, *results], ");"))
    sizes = {v.name: v.size for v in it.kept} | it.reports
    for name, size in sizes.items():
        lines += _copied(name, f"new_{name}", size, "    ") if size else []
    solved = f"(memory[0] > {half}) && (memory[0] < {number.spelled(1.5)})"
    lines.append(f"    return ({solved}) ? (int)memory[1] : -(int)memory[1];")
    return "\n".join([it.signature, "{", *lines, "}", ""])


def _copied(to: str, source: str, count: int, indent: str) -> list[str]:
    """Generate C statements that copy an array."""
    return [
        f"{indent}for (size_t k = 0U; k < {count}U; ++k) {{",
        f"{indent}    {to}[k] = {source}[k];",
        f"{indent}}}",
    ]


def stepped(it: Iteration, row: int) -> tuple[int, dict[str, np.ndarray]]:
    """Run the iteration in Python for one test state.

    Return the number of iterations (negative if the iteration did not converge) and the results.
    """
    begin, refine, rescue, end = (f.program for f in it.parts)

    def run(program: Program, *given: np.ndarray) -> list[np.ndarray]:
        rows = [np.asarray(x, dtype=float).reshape(1, -1) for x in given]
        found = [np.empty((1, v.size)) for v in program.outputs]
        interpret.compile(program)(rows, found)
        return [x[0] for x in found]

    given = [
        np.zeros(v.size) if v.name in it.reports else it.sample[v.name][row] for v in begin.inputs
    ]
    point, memory, data = run(begin, *given)
    while memory[0] == 0.0 and memory[1] < it.most:
        point, memory = run(refine if memory[1] < it.quick else rescue, point, memory, data)
    results = run(end, *given, point, memory, data)
    found = {v.name: x for v, x in zip(end.outputs, results, strict=True)}
    found |= {name: found[name][:n] for name, n in it.reports.items()}
    return int(memory[1]) * (1 if memory[0] == 1.0 else -1), found


def iteration_test(it: Iteration) -> list[str]:
    """Generate a C function that runs steps with stored inputs and counts wrong results."""
    T, number = it.parts[0].number.name, it.parts[0].number
    count = len(next(iter(it.sample.values())))
    rows = [stepped(it, row)[1] for row in range(count)]
    tables = {v.name: it.sample[v.name] for v in (*it.given, *it.kept) if v.size}
    ends = [name for name in it.compared if len(rows[0][name])]
    tables |= {f"new_{name}": np.array([row[name] for row in rows]) for name in ends}
    lines = [x for key, a in tables.items() for x in table(f"{it.name}_{key}", number, a)]
    body = ["    int failures = 0;", f"    static {T} room[{it.macro}];"]
    body += [f"    for (size_t k = 0U; k < {count}U; ++k) {{"]
    for v in it.kept:
        body.append(f"        {T} {v.name}[{v.size}];")
        body += _copied_row(v.name, f"{it.name}_{v.name}", v.size)
    body += [f"        {T} {name}[{n}];" for name, n in it.reports.items() if n]
    called = [f"{it.name}_{v.name}[k]" for v in it.given if v.size]
    called += [v.name for v in it.kept] + [name for name, n in it.reports.items() if n] + ["room"]
    body.append(wrapped(f"        const int steps = {it.name}(", called, ");"))
    body.append(f"        failures += ((steps != 0) && (abs(steps) <= {it.most})) ? 0 : 1;")
    for name in ends:
        stored = tables[f"new_{name}"]
        size = float(np.max(np.abs(stored), initial=0.0)) or 1.0
        allowed = number.spelled(it.allowed * size)
        body += [
            f"        for (size_t j = 0U; j < {stored.shape[1]}U; ++j) {{",
            f"            const {T} error = {name}[j] - {it.name}_new_{name}[k][j];",
            f"            failures += (fabs{number.function}(error) <= {allowed}) ? 0 : 1;",
            "        }",
        ]
    body.append(f'        (void)printf("{it.name}: %d iterations\\n", steps);')
    body += ["    }", "    return failures;"]
    return [*lines, f"static int test_{it.name}(void)", "{", *body, "}", ""]


def _copied_row(to: str, table: str, size: int) -> list[str]:
    return [
        f"        for (size_t j = 0U; j < {size}U; ++j) {{",
        f"            {to}[j] = {table}[k][j];",
        "        }",
    ]
