"""The command `chasles cache`."""

import os
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.markup import escape

from chasles.backends import cache as store
from chasles.cli.command import Answer, said, table
from chasles.cli.options import option
from chasles.errors import FileError

SHOWN = 10
"""Maximum number of cache entries that are listed."""

MOST_NAMED = 3
"""Maximum number of entries named in an error message."""

UNITS = ((2.0**30, "GB"), (2.0**20, "MB"), (2.0**10, "kB"))
PERIODS = ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second"))


def cache(clear: Annotated[bool, option("Remove all entries.")] = False) -> Answer:
    """Show or clear the cache of compiled code.

    The environment variable CHASLES_CACHE sets the folder. The default is the
    platform's cache folder.

    Examples:
        chasles cache
        chasles cache --clear
    """
    place = store.folder()
    trouble = problem(place)
    found = [] if trouble else store.entries()
    total = sum(bytes_ for _, bytes_, _ in found)
    data: dict[str, Any] = {"folder": place, "problem": trouble or None, "bytes": total}
    if clear:
        data["removed"] = removed = 0 if trouble else _removed(place)
        done = f"removed {_entries(removed)} ({size(total)}) from {place}"
        return Answer(data, partial(_show, data) if trouble else said(done))
    data |= {"count": len(found), "limit": store.LIMIT}
    data["entries"] = [
        {"entry": name, "bytes": bytes_, "used": used, **content(place, name)}
        for name, bytes_, used in found[:SHOWN]
    ]
    return Answer(data, partial(_show, data))


def _show(data: Mapping[str, Any], console: Console) -> None:
    """Print the folder, the number and size of its entries, and the most recent entries."""
    console.print(f"[bold]folder[/]: {escape(str(data['folder']))}", soft_wrap=True)
    if data["problem"]:
        console.print(data["problem"], markup=False)
        return
    total, count = size(data["bytes"]), data["count"]
    console.print(f"{_entries(count)}, {total} of at most {size(data['limit'])}")
    if count:
        rows, now = table(["entry", "program", "type"], ["size", "last used"]), time.time()
        for entry in data["entries"]:
            words = map(escape, (entry["entry"][:12], entry["program"], entry["type"]))
            rows.add_row(*words, size(entry["bytes"]), ago(now - entry["used"]))
        console.print(rows)
    if count > SHOWN:
        console.print(f"and {count - SHOWN} older entries")


def _removed(place: Path) -> int:
    """Remove all entries; return their number."""
    removed, left = store.clear()
    if left:
        raise FileError(
            "E-CACHE-002",
            f"{len(left)} of {removed + len(left)} entries in {place} could not be removed "
            f"({'; '.join(left[:MOST_NAMED])}{'; ...' if len(left) > MOST_NAMED else ''})",
            "make the folder writable, or remove the entries by hand",
        )
    return removed


def _entries(count: int) -> str:
    return f"{count} entr{'y' if count == 1 else 'ies'}"


def problem(place: Path) -> str:
    """Return the reason why the cache is not used, or "" if it is used."""
    if not os.path.lexists(place):
        return "The folder does not exist yet; compiling the first function creates it."
    remedy = "each process recompiles its functions. Set CHASLES_CACHE to another folder."
    if place.is_symlink() or not place.is_dir():
        return f"The path is a link or not a folder, so the cache is not used: {remedy}"
    if not store.is_private(place):
        return (
            "The folder is accessible to other users (mode is not 0700), so the "
            f"cache is not used: {remedy}"
        )
    if not os.access(place, os.R_OK | os.X_OK):
        return f"The folder cannot be read, so the cache is not used: {remedy}"
    return ""


def content(place: Path, name: str) -> dict[str, str]:
    """Return the program name and data type of a cache entry, without marking it as used."""
    try:
        artifact = store.Artifact.from_bytes((place / f"{name}.code").read_bytes())
    except (OSError, ValueError, KeyError, TypeError):
        artifact = None
    if artifact is None:
        return {"program": "(damaged)", "type": ""}
    return {"program": artifact.interface.name, "type": artifact.dtype}


def size(count: float) -> str:
    """Format a size in bytes with a suitable unit."""
    for unit, name in UNITS:
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} B"


def ago(seconds: float) -> str:
    """Format an elapsed time in words, such as "3 hours ago"."""
    for period, name in PERIODS:
        if seconds >= period:
            number = int(seconds // period)
            return f"{number} {name}{'' if number == 1 else 's'} ago"
    return "now"
