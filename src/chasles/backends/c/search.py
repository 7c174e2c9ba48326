"""C code for inverse kinematics: an iteration repeated from stored initial configurations.

The iteration is a `Function` that maps a configuration and a solver state, with goals, weights,
tolerances and a mask, to the next configuration and solver state. The search starts at the caller's
configuration and restarts from stored configurations, in order of distance from the goals, until it
finds a solution. The last attempt starts at the best configuration found so far. The search keeps
no data between calls and allocates no memory. The C header states the maximum number of iterations.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from chasles.backends.c.function import Function, table, wrapped


@dataclass(frozen=True)
class Search:
    """A search and its stored constants.

    - step: the iteration.
    - starts (count, n): initial configurations.
    - met (count, goals): goal vectors that the initial configurations attain.
    - nearness (goals,): weights of the squared differences in the distance between goal vectors.
    - limits (2, n): lower and upper limits of the configuration.
    - fixed: values of the other inputs of the step.
    - memories (2, size): initial solver states for an ordinary attempt and for the last attempt,
      which starts at the best configuration.
    - most: maximum numbers of iterations in an ordinary attempt and in the last attempt.
    - tests (count, goals): goal vectors that the test program must reach from the configuration
      `begin` (n,).
    """

    name: str
    summary: str
    step: Function
    starts: np.ndarray
    met: np.ndarray
    nearness: np.ndarray
    limits: np.ndarray
    fixed: tuple[np.ndarray, ...]
    memories: np.ndarray
    most: tuple[int, int]
    places: tuple[int, int, int]
    """Indices in the solver state: status (0: running, 1: solved), cost, first of two residuals."""
    tests: np.ndarray
    begin: np.ndarray

    @property
    def bound(self) -> int:
        """Maximum number of iterations in one call to the search function."""
        return (len(self.starts) + 1) * self.most[0] + self.most[1]

    @property
    def signature(self) -> str:
        T, goals = self.step.number.name, self.met.shape[1]
        heads = [f"const {T} goals[{goals}]", f"{T} q[{self.starts.shape[1]}]", f"{T} residual[2]"]
        return wrapped(f"int {self.name}(", heads, ")")

    def description(self) -> Iterable[str]:
        """Yield the comment lines that describe the search in the C header."""
        bytes_ = self.step.number.bytes
        stored = (self.starts.size + self.met.size) * bytes_
        yield self.summary
        yield ""
        yield f"goals: {self.met.shape[1]} numbers that describe the targets"
        yield (
            f"q: {self.starts.shape[1]} numbers; the initial guess on entry, the solution on return"
        )
        yield "out: residual: the largest angular and the largest linear error of the solution"
        yield "returns the number of iterations; negative if no solution was found"
        yield f"at most {self.bound} iterations of {self.step.name}"
        yield (
            f"constants: {stored} bytes; stack in addition to the iteration, "
            f"approximately: {self._stack} bytes"
        )

    @property
    def _stack(self) -> int:
        n, memory = self.starts.shape[1], self.memories.shape[1]
        return (3 * n + 2 * memory + len(self.starts)) * self.step.number.bytes + 256


def search_definition(search: Search) -> str:
    """Return the C code of a search: its tables of constants and its function."""
    number, step = search.step.number, search.step
    tables = {
        "starts": search.starts,
        "met": search.met,
        "nearness": search.nearness[None],
        "limits": search.limits,
        "memories": search.memories,
    }
    others = [v.name for v in step.inputs[3:]]
    tables |= {name: a[None] for name, a in zip(others, search.fixed, strict=True)}
    lines = [line for key, a in tables.items() for line in table(f"{search.name}_{key}", number, a)]
    given = ["at", "memory", "goals", *(f"{search.name}_{name}[0]" for name in others)]
    call = wrapped(f"            {step.name}(", [*given, "after", "kept"], ");")
    status, cost, first = search.places
    facts = {
        "signature": search.signature,
        "name": search.name,
        "T": number.name,
        "f": number.function,
        "n": search.starts.shape[1],
        "goals": search.met.shape[1],
        "memory": search.memories.shape[1],
        "count": len(search.starts),
        "most": search.most[0],
        "last": search.most[1],
        "status": status,
        "cost": cost,
        "first": first,
        "second": first + 1,
        "zero": number.spelled(0.0),
        "half": number.spelled(0.5),
        "more": number.spelled(1.5),
        "call": call,
    }
    return "\n".join([*lines, "", _SEARCH.format(**facts)])


def search_test(search: Search) -> list[str]:
    """Generate a C function that runs the search for each stored goal and counts the failures."""
    number, n = search.step.number, search.starts.shape[1]
    goals = f"{search.name}_goals"
    count = len(search.tests)
    if not count:
        return [f"static int test_{search.name}(void)", "{", "    return 0;", "}", ""]
    begin = wrapped("{", [number.spelled(x).strip("()") for x in search.begin], "};")
    return [
        *table(goals, number, search.tests),
        f"static int test_{search.name}(void)",
        "{",
        "    int failures = 0;",
        f"    for (size_t k = 0U; k < {count}U; ++k) {{",
        f"        {number.name} q[{n}] = {begin}",
        f"        {number.name} residual[2];",
        f"        const int steps = {search.name}({goals}[k], q, residual);",
        f'        (void)printf("{search.name}: %d steps, %.1e rad, %.1e m\\n", steps,',
        "            (double)residual[0], (double)residual[1]);",
        f"        failures += ((steps > 0) && (steps <= {search.bound})) ? 0 : 1;",
        "    }",
        "    return failures;",
        "}",
        "",
    ]


_SEARCH = """\
{signature}
{{
    {T} far[{count}];
    {T} best[{n}];
    {T} at[{n}];
    {T} least = INFINITY;
    int steps = 0;
    int solved = 0;
    for (size_t k = 0U; k < {count}U; ++k) {{
        far[k] = {zero};
        for (size_t j = 0U; j < {goals}U; ++j) {{
            const {T} off = {name}_met[k][j] - goals[j];
            far[k] += {name}_nearness[0][j] * (off * off);
        }}
    }}
    for (size_t j = 0U; j < {n}U; ++j) {{
        best[j] = fmin{f}(fmax{f}(q[j], {name}_limits[0][j]), {name}_limits[1][j]);
        at[j] = best[j];
    }}
    residual[0] = INFINITY;
    residual[1] = INFINITY;
    for (size_t tried = 0U; (tried < {count}U + 2U) && (solved == 0); ++tried) {{
        const size_t last = (tried == ({count}U + 1U)) ? 1U : 0U;
        const int most = (last == 1U) ? {last} : {most};
        {T} memory[{memory}];
        size_t next = 0U;
        if (last == 1U) {{
            for (size_t j = 0U; j < {n}U; ++j) {{
                at[j] = best[j];
            }}
        }} else if (tried > 0U) {{
            for (size_t k = 1U; k < {count}U; ++k) {{
                next = (far[k] < far[next]) ? k : next;
            }}
            far[next] = INFINITY;
            for (size_t j = 0U; j < {n}U; ++j) {{
                at[j] = {name}_starts[next][j];
            }}
        }}
        for (size_t j = 0U; j < {memory}U; ++j) {{
            memory[j] = {name}_memories[last][j];
        }}
        for (int k = 0; (k < most) && (memory[{status}] < {half}); ++k) {{
            {T} after[{n}];
            {T} kept[{memory}];
{call}
            for (size_t j = 0U; j < {n}U; ++j) {{
                at[j] = after[j];
            }}
            for (size_t j = 0U; j < {memory}U; ++j) {{
                memory[j] = kept[j];
            }}
            ++steps;
        }}
        solved = ((memory[{status}] > {half}) && (memory[{status}] < {more})) ? 1 : 0;
        if ((solved == 1) || (memory[{cost}] < least)) {{
            least = memory[{cost}];
            residual[0] = memory[{first}];
            residual[1] = memory[{second}];
            for (size_t j = 0U; j < {n}U; ++j) {{
                best[j] = at[j];
            }}
        }}
    }}
    for (size_t j = 0U; j < {n}U; ++j) {{
        q[j] = best[j];
    }}
    return (solved == 1) ? steps : -steps;
}}
"""
