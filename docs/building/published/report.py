"""Tables of operation counts as text: printed beside traced, differences explained below."""

from collections.abc import Iterable, Sequence

from building.published.balafoutis_patel import ONE_BODY
from building.published.forms import ByEquation, ByMethod
from building.published.polynomial import Polynomial
from building.published.tables import Counts, Entry, Line, entries, lines, one_body, total


def equations(table: ByEquation) -> str:
    """A table by equation: for general twists and for right angles, printed and traced."""
    found = [*lines(table), total(table)]
    head = ["", "general: printed", "traced", "0 or 90: printed", "traced, 90"]
    rows = [[line.equations, *_cells(line)] for line in found if _counts(line)]
    shown = "\n".join(
        f"  {line.equations}: {line.why}" for line in found[:-1] if line.why and _counts(line)
    )
    note = f"{table.note}\n" if table.note else ""
    heading = f"Table {table.number}. {table.title}\n\n{_table([head, *rows])}\n{note}"
    return heading + (f"where they differ:\n{shown}\n" if shown else "")


def methods(table: ByMethod) -> str:
    """A table by method: printed, traced for general twists, and six joints of each kind."""
    found = entries(table)
    head = ["", "printed", "n = 6", "method", "traced, general", "n = 6", "90", "90 and 0"]
    rows = [_method_cells(entry) for entry in found]
    shown = "\n".join(
        f"  {e.formula.author}: {e.formula.why}" for e in found if e.formula.why and e.six
    )
    title = f"Table {table.number}. {table.title}\n\n"
    return f"{title}{_table([head, *rows])}\nwhere they differ:\n{shown}\n"


def body() -> str:
    """The counts of section 4.3 for one body."""
    traced = one_body()
    rows = [[name, _pair(printed), _pair(traced[name])] for name, printed in ONE_BODY]
    return f"Chapter 4. One body\n\n{_table([['', 'printed', 'traced'], *rows])}\n"


def _counts(line: Line) -> bool:
    """Whether anything is printed or traced for it."""
    return any(str(p) != "0" for pair in (*line.printed, *line.traced) for p in pair)


def _cells(line: Line) -> list[str]:
    (printed, right), (traced, traced_right) = line.printed, line.traced
    return [_pair(p) for p in (printed, traced, right, traced_right)]


def _method_cells(entry: Entry) -> list[str]:
    formula = entry.formula
    printed = six = ""
    if formula.author:
        at_six = [Polynomial.read(text)(6) for text in formula.counts]
        six = ", ".join(str(value) for value in at_six)
        printed = "" if formula.at else ", ".join(formula.counts)
    traced = _pair(entry.traced) if entry.traced else ""
    ours = [_pair(counts) for counts in entry.six.values()] or ["", "", ""]
    return [formula.author, printed, six, formula.method if entry.six else "", traced, *ours]


def _pair(pair: tuple[Polynomial, Polynomial] | Counts) -> str:
    return f"{pair[0]}, {pair[1]}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their cells, a rule under the head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = [_joined(map(str.ljust, row, widths)) for row in rows]
    return "\n".join([text[0], "-" * max(map(len, text)), *text[1:]]) + "\n"


def _joined(cells: Iterable[str]) -> str:
    return "  ".join(cells).rstrip()
