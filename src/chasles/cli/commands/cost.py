"""The command `chasles cost`."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from typing import Annotated, Any, get_args

from rich.console import Console
from rich.markup import escape

from chasles.algorithms import FUNCTIONS, METHODS, that_runs
from chasles.api import cost as counted
from chasles.cli.command import Answer, table
from chasles.cli.options import Asked, Frame, Functions, has_frame, listed, method_option, option
from chasles.errors import InputError, ModelError
from chasles.expr import Count
from chasles.functions.cost import Cost, Rules
from chasles.names import one_of, suggested
from chasles.robot import Robot

COLUMNS = {
    "mul": "multiplications",
    "add": "additions",
    "div": "divisions",
    "sqrt": "square_roots",
    "sin, cos": "sines_and_cosines",
}
"""Column headings of the table, with the field of `Count` that each column shows."""

NONE = "·"
MANY = 12
"""Maximum number of degrees of freedom for which costly methods are counted by default.

For larger robots, the closed-form equations contain roughly 100,000 operations or more.
"""

MAIN = (
    "forward_kinematics",
    "jacobian",
    "gravity_forces",
    "inverse_dynamics",
    "mass_matrix",
    "forward_dynamics",
)

Row = tuple[str, str, Cost | None]
"""Row of the table: function, method, and cost (None if the method rejects mimic joints)."""


def cost(
    asked: Asked,
    function: Functions,
    method: Annotated[str, method_option("Method to count. Default: all methods.")] = "",
    frame: Frame = "",
    steps: Annotated[
        bool, option("Also count each statement of the algorithms (not with --table).")
    ] = False,
    compare: Annotated[
        bool, option("Compare methods: both counting rules and the ratio to the best.", "--table")
    ] = False,
    rules: Annotated[
        str,
        option(
            "Counting rule: simplified (the compiled program) or book (counted by hand).",
            show_default="simplified",
        ),
    ] = "",
) -> Answer:
    """Count the arithmetic operations of each function and method.

    Counts are for one robot state and, by default, for the simplified program.
    --rules book counts operations as Balafoutis and Patel (1991) do: sines and
    sign changes are not counted, and equations share no subexpressions.

    Examples:
        chasles cost puma560
        chasles cost robot.urdf --floating --function mass_matrix
        chasles cost puma560 --function inverse_dynamics --method spatial --steps
        chasles cost puma560 --table
        chasles cost puma560 --table -f closed_form,inverse_dynamics_sensitivities
        chasles cost general_chain:6 -f inverse_dynamics --rules book
    """
    functions, robot = listed(function), asked.robot()
    where = frame or robot.tool
    if compare:
        if steps:
            remedy = "omit --steps or --table"
            raise InputError("E-CLI-004", "--steps cannot be combined with --table", remedy)
        if rules:
            remedy = "omit --rules or --table"
            raise InputError("E-CLI-005", "--rules cannot be combined with --table", remedy)
        return _compared(robot, functions, method, where)
    return _listed(robot, functions, method, where, steps=steps, rules=_checked(rules))


def _checked(rules: str) -> Rules:
    """Check the name of the counting rules. The default is "simplified"."""
    for known in get_args(Rules):
        if rules in ("", known):
            return known
    remedy = one_of(rules, get_args(Rules))
    raise InputError("E-CLI-006", f"unknown counting rules {rules!r}", remedy)


def _listed(
    robot: Robot, functions: Sequence[str], method: str, frame: str, *, steps: bool, rules: Rules
) -> Answer:
    """Count operations per function and method and, with `steps`, per statement."""
    found = list(rows(robot, functions, method, frame, rules))
    data = _about(robot, frame) | {"rules": rules, "counts": [_data(row, steps) for row in found]}

    def show(console: Console) -> None:
        _show_title(robot, frame, console, ", by the book's rules" if rules == "book" else "")
        counts = table(["function", "method"], COLUMNS)
        for function, name, count in found:
            counts.add_row(f"[cyan]{function}[/]", name, *_cells(count))
        console.print(counts)
        if any(count is None for _, _, count in found):
            console.print("- : the method does not support this robot's mimic joints.")
        if steps:
            _show_steps(found, console)
        if any(name == "fastest" for _, name, _ in found):
            console.print('"fastest" is the cheapest method, with or without regrouped inertias.')

    return Answer(data, show)


def _compared(robot: Robot, functions: Sequence[str], method: str, frame: str) -> Answer:
    """Compare operation counts under both counting rules, with ratios to the cheapest method."""
    plain, book = (list(rows(robot, functions, method, frame, r)) for r in get_args(Rules))
    best: dict[str, int] = {}
    for function, _, count in plain:
        if count is not None:
            best[function] = min(count.weight, best.get(function, count.weight))
    pairs = [
        (row, by_hand, row[2].weight / best[row[0]] if row[2] and best[row[0]] else None)
        for row, (_, _, by_hand) in zip(plain, book, strict=True)
    ]
    counts = [_data(row) | {"ratio": ratio, "book": _numbers(hand)} for row, hand, ratio in pairs]

    def show(console: Console) -> None:
        sides = table(["function", "method"], ("mul", "add", "ratio", "book: mul", "add"))
        for (function, name, count), by_hand, ratio in pairs:
            ours, theirs = (_cells(c)[:2] for c in (count, by_hand))
            times = "-" if ratio is None else f"{ratio:.2f}"
            sides.add_row(f"[cyan]{function}[/]", name, *ours, times, *theirs)
        _show_title(robot, frame, console)
        console.print(sides)
        console.print(
            "ratio: relative to the cheapest method, by operations of the compiled program."
        )
        console.print(
            "book: equations share no terms; sines, sign changes and zeros are not counted."
        )

    return Answer(_about(robot, frame) | {"counts": counts}, show)


def rows(
    robot: Robot,
    functions: Sequence[str],
    method: str,
    frame: str,
    rules: Rules = "simplified",
) -> Iterator[Row]:
    """Yield the operation counts of the given functions. Default: the functions in `MAIN`.

    The count of a method that does not support the robot's mimic joints is None.
    """
    for function in functions:
        if function not in FUNCTIONS:
            problem = f"unknown function {function!r}"
            raise InputError("E-CLI-007", problem, suggested(function, FUNCTIONS))
    named = functions or MAIN
    found = False
    for function in named:
        options: dict[str, Any] = {"frame": frame} if has_frame(function) else {}
        for name in _methods(robot, function, method):
            if method not in ("", name):
                continue
            found = True
            try:
                yield function, name, counted(robot, function, method=name, rules=rules, **options)
            except ModelError:
                if frame not in robot.frames or method:
                    raise
                yield function, name, None
    if not found:
        known = dict.fromkeys(name for function in named for name in _methods(robot, function))
        raise InputError("E-CLI-008", f"unknown method {method!r}", one_of(method, known))


def _methods(robot: Robot, function: str, wanted: str = "") -> tuple[str, ...]:
    """Return the names of the methods whose operations are counted.

    The names are `wanted` and all methods that support the robot, except costly methods for robots
    with more than `MANY` degrees of freedom. "fastest" is included if it may differ from each of
    these methods.
    """
    methods = [
        m
        for m in METHODS[that_runs(robot.model, function)]
        if m.name == wanted
        or not ((m.needs and m.needs(robot.model, {})) or (m.steep and robot.nv > MANY))
    ]
    choice = ("fastest",) if len(methods) > 1 or any(m.inertias for m in methods) else ()
    return (*(m.name for m in methods), *choice)


# Reports ---------------------------------------------------------------------------------------


def _about(robot: Robot, frame: str) -> dict[str, Any]:
    return {"robot": robot.name, "nv": robot.nv, "frame": frame}


def _data(row: Row, steps: bool = False) -> dict[str, Any]:
    """Return a row as machine-readable data."""
    function, method, count = row
    found: dict[str, Any] = {"function": function, "method": method, "operations": _numbers(count)}
    if steps and count is not None:
        found |= {"depth": count.depth, "live": count.live}
        found["steps"] = [vars(step) | {"count": _numbers(step.count)} for step in count.steps]
    return found


def _numbers(count: Count | None) -> dict[str, int] | None:
    return None if count is None else {f.name: getattr(count, f.name) for f in fields(Count)}


def _cells(count: Count | None) -> tuple[str, ...]:
    if count is None:
        return ("-",) * len(COLUMNS)
    numbers = (getattr(count, name) for name in COLUMNS.values())
    return tuple(str(n) if n else NONE for n in numbers)


def _show_title(robot: Robot, frame: str, console: Console, how: str = "") -> None:
    console.print(
        f"Operations for one state of [bold]{escape(robot.name)}[/] (nv {robot.nv}), "
        f"frame {escape(repr(frame))}{how}:"
    )


def _show_steps(found: Sequence[Row], console: Console) -> None:
    for function, method, whole in found:
        if whole is None:
            continue
        console.print()
        console.print(
            f"[cyan]{function}[/], {method}: {whole.depth} operations on the longest "
            f"path, at most {whole.live} live values; by statement:"
        )
        used = [k for k, cell in enumerate(_cells(whole)) if cell != NONE]
        parts = table(["line", "statement", "equation"], [[*COLUMNS][k] for k in used])
        for place, steps in groupby(whole.steps, key=lambda step: f"{step.file}: {step.function}"):
            parts.add_row("", f"[cyan]{escape(place)}[/]")
            for step in steps:
                cells, source = _cells(step.count), f"[dim]{escape(step.source)}[/]"
                parts.add_row(str(step.line), source, step.equation, *(cells[k] for k in used))
        console.print(parts)
