"""Group notes about a robot for display."""

import re
from collections.abc import Iterable

MOST_PLACES = 12
"""Maximum number of places named in a group."""

_NOTE = re.compile(
    r"(?:(?P<file>\S.*?)(?::(?P<line>\d+))?: )?(?P<part>[a-z ]+(?:'[^']*'|\d+)): (?P<what>.+)"
)
_ANGLE, _VALUES = re.compile(r"angle \S+ taken as \S+"), re.compile(r" (\([^()]*\d[^()]*\))$")


def grouped(notes: Iterable[str]) -> tuple[str, ...]:
    """Combine notes that differ only in the line, the part and the values.

    Parameters
    ----------
    notes : iterable of str
        Notes of the form "file:line: part: text", as in `robot.notes`.

    Returns
    -------
    tuple of str
        One text for each kind of note and file, in the order of the first notes. A note without
        others of its kind is not changed.
    """
    groups: dict[object, list[tuple[str, re.Match[str] | None]]] = {}
    for note in notes:
        found = _NOTE.fullmatch(note)
        kind = (found["file"], _VALUES.sub("", _ANGLE.sub("", found["what"]))) if found else note
        groups.setdefault(kind, []).append((note, found))
    return tuple(_together(group) for group in groups.values())


def _together(group: list[tuple[str, re.Match[str] | None]]) -> str:
    note, found = group[0]
    if len(group) == 1 or found is None:
        return note
    file = f"{found['file']}: " if found["file"] else ""
    what = found["what"]
    if _ANGLE.fullmatch(what):
        what = f"{len(group)} angles taken as right angles"
    places = list(dict.fromkeys(_place(each) for _, each in group if each))
    more = len(places) - MOST_PLACES
    rest = f", and {more} more" if more > 0 else ""
    return f"{file}{_VALUES.sub('', what)}: {', '.join(places[:MOST_PLACES])}{rest}"


def _place(found: re.Match[str]) -> str:
    values = _VALUES.search(found["what"])
    details = [f"line {found['line']}"] if found["line"] else []
    details += [values[1][1:-1]] if values else []
    return f"{found['part']} ({', '.join(details)})" if details else found["part"]
