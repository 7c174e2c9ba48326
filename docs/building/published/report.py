"""Text tables of operation counts: printed and traced counts, and reasons for differences."""

from collections.abc import Iterable, Sequence

from building.published.balafoutis_patel import ONE_BODY
from building.published.forms import ByEquation, ByMethod
from building.published.polynomial import Polynomial
from building.published.printed.slips import ALONE
from building.published.tables import Counts, Entry, Line, entries, lines, one_body, total


def equations(table: ByEquation) -> str:
    """Return a table by equation: printed, program and traced counts, for both kinds of twists."""
    found = [*lines(table), total(table)]
    head = ["", "general: printed", "program", "traced"]
    head += ["0 or 90: printed", "program, 90", "traced, 90"]
    rows = [[line.equations, *_cells(line)] for line in found if _counts(line)]
    slips = [(line.equations, line.slip) for line in found[:-1] if _counts(line)]
    whys = [(line.equations, line.why) for line in found[:-1] if _counts(line)]
    note = f"{table.note}\n" if table.note else ""
    heading = f"Table {table.number}. {table.title}\n\n{_table([head, *rows])}\n{note}"
    return heading + _reasons("program", slips) + _reasons("traced", whys)


def _reasons(what: str, rows: Iterable[tuple[str, str]]) -> str:
    return _listed(f"where {what} and printed counts differ", rows)


def _listed(what: str, rows: Iterable[tuple[str, str]]) -> str:
    shown = "\n".join(f"  {name}: {reason}" for name, reason in rows if reason)
    return f"{what}:\n{shown}\n" if shown else ""


def methods(table: ByMethod) -> str:
    """Return a table by method: printed, program and traced counts, also for six joints."""
    found = entries(table)
    head = ["", "printed", "n = 6", "program", "n = 6"]
    head += ["method", "traced, general", "n = 6", "90", "90 and 0"]
    rows = [_method_cells(entry) for entry in found]
    slips = [(e.formula.author, e.slip) for e in found]
    whys = [(e.formula.author, e.formula.why) for e in found if e.six]
    title = f"Table {table.number}. {table.title}\n\n{_table([head, *rows])}\n"
    alone = _listed("without a program", ALONE.get(table.number, {}).items())
    reasons = _reasons("program", slips) + _reasons("traced", whys)
    return title + alone + reasons


def body() -> str:
    """Return the table of counts for one body (section 4.3)."""
    traced = one_body()
    rows = [[name, _pair(printed), _pair(traced[name])] for name, printed in ONE_BODY]
    return f"Chapter 4. One body\n\n{_table([['', 'printed', 'traced'], *rows])}\n"


def _counts(line: Line) -> bool:
    """Return True if a line has a nonzero count."""
    columns = (*line.printed, *line.program, *line.traced)
    return any(str(p) != "0" for pair in columns for p in pair)


def _cells(line: Line) -> list[str]:
    return [
        _pair(column[k]) for k in (0, 1) for column in (line.printed, line.program, line.traced)
    ]


def _method_cells(entry: Entry) -> list[str]:
    formula = entry.formula
    printed = six = ""
    if formula.author:
        at_six = [Polynomial.read(text)(6) for text in formula.counts]
        six = ", ".join(str(value) for value in at_six)
        printed = "" if formula.at else ", ".join(formula.counts)
    program = [_pair(entry.program), _pair(_at_six(entry.program))] if entry.program else ["", ""]
    traced = _pair(entry.traced) if entry.traced else ""
    ours = [_pair(counts) for counts in entry.six.values()] or ["", "", ""]
    method = formula.method if entry.six else ""
    return [formula.author, printed, six, *program, method, traced, *ours]


def _at_six(pair: tuple[Polynomial, Polynomial]) -> Counts:
    return int(pair[0](6)), int(pair[1](6))


def _pair(pair: tuple[Polynomial, Polynomial] | Counts) -> str:
    return f"{pair[0]}, {pair[1]}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows with aligned columns, and a line below the first row."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = [_joined(map(str.ljust, row, widths)) for row in rows]
    return "\n".join([text[0], "-" * max(map(len, text)), *text[1:]]) + "\n"


def _joined(cells: Iterable[str]) -> str:
    return "  ".join(cells).rstrip()
