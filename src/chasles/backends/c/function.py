"""A program in C: a function for one state, and a batch function that compilers can vectorize.

The batch function processes blocks of LANES states and transposes the rows of a block to columns.
Each part of the program is a loop over the states of a block, with a constant bound and without
branches or calls. If an angle is too large for the inlined sine, the states of the block are
computed one by one.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chasles.backends.c.body import DOUBLE, Number, Statements, Turn, Turns, library_turns
from chasles.backends.c.names import identifier
from chasles.backends.llvm.math import ELEMENTS
from chasles.backends.lowering import FREE, Lowered, Part, lower, places
from chasles.expr import Program, Variable

LANE_BYTES = 128
"""Size (bytes) of one quantity for all states of a block, equal to two 64-byte vectors."""

LONGEST = 2000
"""Maximum number of operations in a C function. Longer programs are divided into several functions,
because compile time grows faster than linearly."""

LOCAL = re.compile(
    r"[ijkn]|count|first|rows?|scratch|failures|states|beyond|(t|angle|sine|cosine|beyond)\d+(_\d+)?"
)
"""Regular expression for names reserved for local variables; arguments must not use them."""

MOST_STACK = 256 * 1024
"""Maximum size (bytes) of the arrays in which the batch function computes several states at once.
For larger programs, it computes one state at a time."""


@dataclass(frozen=True)
class Function:
    """A program and the options for writing it in C.

    - name: name of the C function.
    - own_sine: True if the function for one state also computes sines and cosines without the C
      library.
    - local: True if the function is static and has no batch function.
    """

    name: str
    summary: str
    program: Program
    number: Number = DOUBLE
    own_sine: bool = False
    local: bool = False

    @cached_property
    def lowered(self) -> Lowered:
        return lower(self.program, fuse=True, longest=LONGEST)

    @property
    def inputs(self) -> tuple[Variable, ...]:
        """Inputs of the program, with their names in C."""
        return self.arrays[: len(self.program.inputs)]

    @property
    def outputs(self) -> tuple[Variable, ...]:
        """Outputs of the program, with their names in C."""
        return self.arrays[len(self.program.inputs) :]

    @cached_property
    def arrays(self) -> tuple[Variable, ...]:
        """All inputs and outputs, with their names in the C code."""
        found: dict[str, Variable] = {}
        for variable in (*self.program.inputs, *self.program.outputs):
            name = base = identifier(variable.name)
            numbers = itertools.count(len(found))
            while name in found or LOCAL.fullmatch(name):
                name = f"{base}_{next(numbers)}"
            found[name] = Variable(name, variable.shape)
        return tuple(found.values())

    @property
    def turns(self) -> bool:
        """Return True if the program has sines or cosines."""
        return any(stage.angles for part in self.lowered.parts for stage in part.stages)

    @property
    def in_columns(self) -> bool:
        """Return True if the batch function processes blocks of states, stored in columns."""
        return not self.local and 0 < self.columns * LANE_BYTES <= MOST_STACK

    @property
    def columns(self) -> int:
        """Number of columns in a block of states.

        The columns hold inputs, outputs, and values stored for later parts of the program.
        """
        return sum(v.size for v in self.arrays) + self.lowered.scratch

    @cached_property
    def live(self) -> int:
        """Largest number of values that are live at the same time in any part."""
        return max(_live(self.lowered, part) for part in self.lowered.parts)

    @property
    def stack(self) -> int:
        """Approximate stack size (bytes) of the function for one state, compiled with optimization.

        Each live value is counted twice, because the compiler may also store a copy. If there are
        several parts, one is assumed to be inlined while another is called.
        """
        copies = 2 * min(len(self.lowered.parts), 2)
        angles = max(len(s.angles) for part in self.lowered.parts for s in part.stages)
        values = copies * self.live + self.lowered.scratch + 3 * angles
        return _rounded(values * self.number.bytes)

    @property
    def batch_stack(self) -> int:
        """Approximate stack size (bytes) of the batch function, compiled with optimization."""
        columns = (self.columns + 2 * self.live) * LANE_BYTES if self.in_columns else 0
        return max(_rounded(columns), self.stack + 256)


def _rounded(size: int) -> int:
    """Add a margin for registers and calls to a stack size; round up to a multiple of 256 bytes."""
    return -(-(size + 512) // 256) * 256


def _live(lowered: Lowered, part: Part) -> int:
    order = [k for stage in part.stages for k in (*stage.code, *stage.angles)]
    last = {a: t for t, k in enumerate(order) for a in lowered.code[k].args}
    alive: set[int] = set()
    most = 0
    for t, k in enumerate(order):
        alive |= {a for a in (k, *lowered.code[k].args) if lowered.code[a].op not in FREE}
        most = max(most, len(alive))
        alive -= {a for a in (k, *lowered.code[k].args) if last.get(a, -1) <= t}
    return most


def signature(function: Function, *, batch: bool = False, restrict: bool = True) -> str:
    """Return the C signature of a function for one state or for a batch.

    In a batch, every array has one row per state.
    """
    word = "restrict " if restrict else ""
    kind = function.number.name
    kinds = [f"const {kind}"] * len(function.inputs) + [kind] * len(function.outputs)
    arrays = [
        f"{kind} *{word}{v.name}" if batch or not v.size else f"{kind} {v.name}[{word}{v.size}]"
        for kind, v in zip(kinds, function.arrays, strict=True)
    ]
    name, first = (f"{function.name}_batch", ["size_t count"]) if batch else (function.name, [])
    before = "static " if function.local else ""
    return wrapped(f"{before}void {name}(", [*first, *arrays], ")")


def wrapped(before: str, items: Sequence[str], after: str, width: int = 96) -> str:
    """Join items with commas, wrapped to lines of a given width."""
    lines = [before]
    for n, item in enumerate(items):
        text = item + (", " if n + 1 < len(items) else after)
        if len(lines[-1]) + len(text) > width and lines[-1].strip():
            lines.append("    ")
        lines[-1] += text
    return "\n".join(line.rstrip() for line in lines if line.strip())


def table(name: str, number: Number, rows: np.ndarray) -> list[str]:
    """Return the C definition of a constant two-dimensional array."""
    head = f"static const {number.name} {name}[{rows.shape[0]}][{rows.shape[1]}] = {{"
    body = [wrapped("    {", [number.spelled(x).strip("()") for x in row], "},") for row in rows]
    return [head, *body, "};"]


def definitions(function: Function) -> str:
    """Return the definitions of the functions for one state and for a batch, with helpers."""
    if function.local:
        return _one(function)
    tiles = [_tiles(function)] if function.in_columns else []
    return "\n".join([_one(function), *tiles, _batch(function)])


def _bodies(function: Function, lane: str, turns: Turns) -> list[list[str]]:
    """Return the C statements of each part of a program.

    lane: suffix of array accesses: "" for one state, "[i]" if each entry has LANES values.
    """
    going = {
        r: [f"{function.outputs[k].name}[{index}]{lane}" for k, index in to]
        for r, to in places(function.program).items()
    }
    indent, lowered = "        " if lane else "    ", function.lowered
    names = [v.name for v in function.inputs]
    written = (
        Statements(lowered, part, function.number, names, lane, going, turns)
        for part in lowered.parts
    )
    return [[indent + line for line in each.lines] for each in written]


def _one(function: Function) -> str:
    """Generate the function for one state, with a helper function for each part of the program."""
    number = function.number
    bodies = _bodies(function, "", own_turns if function.own_sine else library_turns)
    names = [v.name for v in function.arrays]
    if len(bodies) == 1:
        return _block(signature(function), [*_unused(names, bodies[0]), *bodies[0]])
    heads = [f"const {number.name} *restrict {v.name}" for v in function.inputs]
    heads += [f"{number.name} *restrict {v.name}" for v in function.outputs]
    heads.append(f"{number.name} *restrict scratch")
    texts, calls = [], [f"    {number.name} scratch[{max(function.lowered.scratch, 1)}];"]
    for n, body in enumerate(bodies):
        head = wrapped(f"static void {function.name}_part{n}(", heads, ")")
        texts.append(_block(head, [*_unused([*names, "scratch"], body), *body]))
        calls.append(wrapped(f"    {function.name}_part{n}(", [*names, "scratch"], ");"))
    return "\n".join([*texts, _block(signature(function), calls)])


def _tiles(function: Function) -> str:
    """Generate C functions, one per part of a program, that process LANES states in a loop."""
    names = _tile_names(function)
    heads = [f"{function.number.name} (*restrict {name})[LANES]" for name in names]
    texts = []
    for n, body in enumerate(_bodies(function, "[i]", inline_turns)):
        head = wrapped(f"static int {function.name}_tile{n}(", heads, ")")
        lines = [*_unused(names, body), "    int beyond = 0;"]
        lines += ["    for (size_t i = 0U; i < LANES; ++i) {", *body, "    }", "    return beyond;"]
        texts.append(_block(head, lines))
    return "\n".join(texts)


def _tile_names(function: Function) -> list[str]:
    return [v.name for v in function.arrays if v.size] + ["scratch"] * (
        function.lowered.scratch > 0
    )


def _batch(function: Function) -> str:
    arrays = function.arrays
    unused = [f"    (void){v.name};" for v in arrays if not v.size]
    each = [f"&{v.name}[row * {v.size}U]" if v.size else v.name for v in arrays]
    head = signature(function, batch=True)
    if not function.in_columns:
        call = wrapped(f"        {function.name}(", each, ");")
        return _block(head, ["    for (size_t row = 0U; row < count; ++row) {", call, "    }"])
    kind = function.number.name
    sizes = {v.name: v.size for v in arrays if v.size} | {"scratch": function.lowered.scratch}
    names = _tile_names(function)
    lines = unused + [f"    {kind} {name}_tile[{sizes[name]}][LANES];" for name in names]
    lines += [
        "    for (size_t first = 0U; first < count; first += LANES) {",
        "        const size_t rows = ((count - first) < LANES) ? (count - first) : LANES;",
        "        int beyond = 0;",
    ]
    lines += [
        f"        gather(rows, {v.size}U, &{v.name}[first * {v.size}U], {v.name}_tile);"
        for v in function.inputs
        if v.size
    ]
    tiles = [f"{name}_tile" for name in names]
    lines += [
        wrapped(f"        beyond |= {function.name}_tile{n}(", tiles, ");")
        for n in range(len(function.lowered.parts))
    ]
    scatters = [
        f"            scatter(rows, {v.size}U, {v.name}_tile, &{v.name}[first * {v.size}U]);"
        for v in function.outputs
        if v.size
    ]
    lines += ["        if (beyond == 0) {", *scatters, "        } else {"]
    lines += ["            for (size_t row = first; row < (first + rows); ++row) {"]
    lines += [wrapped(f"                {function.name}(", each, ");"), "            }"]
    return _block(head, [*lines, "        }", "    }"])


def _block(head: str, lines: Sequence[str]) -> str:
    return "\n".join([head, "{", *lines, "}", ""])


def _unused(names: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Generate C statements that mark unused arguments as intentionally unused."""
    used = set(re.findall(r"[A-Za-z]\w*", "\n".join(lines)))
    return [f"    (void){name};" for name in names if name not in used]


def own_turns(group: int, turns: Sequence[Turn], number: Number) -> list[str]:
    """Generate C statements that compute the sines and cosines of a group of angles in a loop.

    Compilers vectorize the loop.
    """
    n, T = len(turns), number.name
    lines = wrapped(f"const {T} angle{group}[{n}] = {{", [t.angle for t in turns], "};", 90)
    entries = f"angle{group}[k], &sine{group}[k], &cosine{group}[k]"
    found = [
        *lines.split("\n"),
        f"{T} sine{group}[{n}];",
        f"{T} cosine{group}[{n}];",
        f"int beyond{group} = 0;",
        f"for (size_t k = 0U; k < {n}U; ++k) {{",
        f"    beyond{group} |= sine_and_cosine({entries});",
        "}",
        f"if (beyond{group} != 0) {{",
        f"    exact_sines_and_cosines({n}U, angle{group}, sine{group}, cosine{group});",
        "}",
    ]
    for k, turn in enumerate(turns):
        for name, array in ((turn.sine, "sine"), (turn.cosine, "cosine")):
            found += [f"const {T} {name} = {array}{group}[{k}];"] if name else []
    return found


def inline_turns(group: int, turns: Sequence[Turn], number: Number) -> list[str]:
    """Generate C statements for the sines and cosines of one state, inside the loop over states."""
    found = []
    for k, turn in enumerate(turns):
        sine, cosine = turn.sine or f"sine{group}_{k}", turn.cosine or f"cosine{group}_{k}"
        found += [f"{number.name} {sine};", f"{number.name} {cosine};"]
        found.append(f"beyond |= sine_and_cosine({turn.angle}, &{sine}, &{cosine});")
    return found


HALF_PI = {
    "float64": ELEMENTS["float64"].half_pi_split,
    "float32": (1.5703125, 4.837512969970703e-4, 7.549533620476723e-8, 2.5633440682570896e-12),
}
"""pi/2 as a sum of parts, by dtype. All parts but the last have so few bits that their products
with the number of quarter turns are exact."""

LIMIT = {"float64": 1e6, "float32": 2e3}
"""Largest angle (rad), by dtype, for which the inlined sine has errors below 2 ulp, with or without
fused multiply-add."""


def sine_and_cosine(number: Number, *, exact: bool) -> str:
    """Return the definition of `sine_and_cosine`, a C function that returns 1 for large angles.

    The sine and cosine are accurate only for angles up to `LIMIT`.

    exact: True to also define `exact_sines_and_cosines`, which uses the C library for all angles of
    an array that exceed the limit.
    """
    element = ELEMENTS[number.dtype]
    first, second, *between, last = map(number.spelled, HALF_PI[number.dtype])
    T, f, n, limit = (
        number.name,
        number.function,
        number.spelled,
        number.spelled(LIMIT[number.dtype]),
    )
    about = f"(about - (turns * {between[0]}))" if between else "about"
    bounded = f"""\
/* Sine and cosine of x (rad), within 2 ulp up to {limit}. Returns 1 if x is larger or NaN. */
static inline int sine_and_cosine({T} x, {T} *sine, {T} *cosine)
{{
    const {T} shift = {n(element.shift)}; /* adding it rounds to an integer */
    const {T} turns = ((x * {n(0.6366197723675814)}) + shift) - shift; /* right angles */
    const {T} quadrant = turns - ({n(4.0)} * (((turns * {n(0.25)}) + shift) - shift)); /* -2 to 2 */
    const {T} near = x - (turns * {first});
    const {T} second = turns * {second};
    const {T} about = near - second;
    const {T} lost = (near - about) - second;
    const {T} r = {about} - ((turns * {last}) - lost);
    const {T} z = r * r;
{_horner(number, "bent", element.sine)}
{_horner(number, "c", (1.0, -0.5, *element.cosine))}
    const {T} s = ((z * r) * bent) + r;
    const {T} even = {n(1.0)} - fabs{f}(quadrant);
    const {T} odd = quadrant * ({n(2.0)} - fabs{f}(quadrant));
    *sine = (even * s) + (odd * c);
    *cosine = (even * c) - (odd * s);
    return (fabs{f}(x) <= {limit}) ? 0 : 1;
}}
"""
    beyond = f"""
/* Sines and cosines of angles beyond the limit, by the C library. */
static void exact_sines_and_cosines(size_t count, const {T} *x, {T} *sine, {T} *cosine)
{{
    for (size_t k = 0U; k < count; ++k) {{
        if (!(fabs{f}(x[k]) <= {limit})) {{
            sine[k] = sin{f}(x[k]);
            cosine[k] = cos{f}(x[k]);
        }}
    }}
}}
"""
    return bounded + beyond * exact


def _horner(number: Number, name: str, coefficients: tuple[float, ...]) -> str:
    """Generate C statements that evaluate a polynomial at z.

    The coefficients start with the lowest power.
    """
    *others, last = map(number.spelled, coefficients)
    lines = [f"    {number.name} {name} = {last};"]
    lines += [f"    {name} = ({name} * z) + {c};" for c in reversed(others)]
    return "\n".join(lines)
