"""What `chasles cache` shows: where compiled code is kept, how much of it, and what was used."""

import os
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from chasles.backends import cache
from chasles.cli.tables import table

SHOWN = 10
"""How many entries are listed."""

UNITS = ((2.0**30, "GB"), (2.0**20, "MB"), (2.0**10, "kB"))
PERIODS = ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second"))


def show(console: Console) -> None:
    """The folder, the number and size of its entries, and the most recent of them."""
    place = cache.folder()
    console.print(f"[bold]folder[/]: {escape(str(place))}", soft_wrap=True)
    trouble = problem(place)
    if trouble:
        console.print(trouble, markup=False)
        return
    found = cache.entries()
    total = sum(bytes_ for _, bytes_, _ in found)
    plural = "y" if len(found) == 1 else "ies"
    console.print(f"{len(found)} entr{plural}, {size(total)} of at most {size(cache.LIMIT)}")
    if found:
        rows = table(["entry", "program", "type"], ["size", "last used"])
        now = time.time()
        for name, bytes_, used in found[:SHOWN]:
            words = (escape(word) for word in (name[:12], *content(place, name)))
            rows.add_row(*words, size(bytes_), ago(now - used))
        console.print(rows)
    if len(found) > SHOWN:
        console.print(f"and {len(found) - SHOWN} that were used longer ago")


def clear(console: Console) -> None:
    """Remove all entries and say how many there were."""
    place = cache.folder()
    trouble = problem(place)
    if trouble:
        console.print(f"[bold]folder[/]: {escape(str(place))}", soft_wrap=True)
        console.print(trouble, markup=False)
        return
    total = sum(bytes_ for _, bytes_, _ in cache.entries())
    removed = cache.clear()
    left = len(cache.entries())
    plural = "y" if removed == 1 else "ies"
    console.print(f"removed {removed} entr{plural} ({size(total)}) from {place}", soft_wrap=True)
    if left:
        raise OSError(f"{left} could not be removed; make the folder writeable")


def problem(place: Path) -> str:
    """Why nothing is kept there; empty where all is well."""
    if not os.path.lexists(place):
        return "It does not exist yet: the first compiled function makes it."
    remedy = "functions are compiled again in each process. Set CHASLES_CACHE to another folder."
    if place.is_symlink() or not place.is_dir():
        return f"It is a link or no folder, so it is not used: {remedy}"
    status = place.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        return f"It does not belong to this user alone (mode 0700), so it is not used: {remedy}"
    if not os.access(place, os.R_OK | os.X_OK):
        return f"It cannot be read, so it is not used: {remedy}"
    return ""


def content(place: Path, name: str) -> tuple[str, str]:
    """An entry's program and number type; reading it for this does not count as a use."""
    try:
        artifact = cache.Artifact.from_bytes((place / f"{name}.code").read_bytes())
    except (OSError, ValueError, KeyError, TypeError):
        artifact = None
    return ("(damaged)", "") if artifact is None else (artifact.interface.name, artifact.dtype)


def size(count: float) -> str:
    """Bytes as people read them."""
    for unit, name in UNITS:
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} B"


def ago(seconds: float) -> str:
    """A time in the past as people say it."""
    for period, name in PERIODS:
        if seconds >= period:
            number = int(seconds // period)
            return f"{number} {name}{'' if number == 1 else 's'} ago"
    return "now"
