"""Table of slow tests, `slow.txt`.

`pytest` skips slow tests, `pytest -m slow` runs only them, and `pytest -m ""` runs all tests. A row
of the table has one of these forms:

- `FILE::TEST[PARAMETERS]`: one case of a test is slow.
- `FILE::TEST`: all cases of a test are slow.
- `FILE`: all tests of a file are slow, because any of them would run a slow fixture.
- `FILE::TEST 1/8`: only every eighth case of a test is not slow.

After `pytest -m "" --durations=0 > LOG`, `python tests/slow.py LOG SECONDS` rewrites the rows of
tests that took at least SECONDS, and keeps the rows that end in a share such as 1/8.

The workers of pytest-xdist take whole files, in the order of `ranks`. The longest files come
first, so that none of them runs alone at the end. A test with its own row is assumed to take as
long as a hundred others.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("slow.txt")
ROW = re.compile(r"([\d.]+)s (call|setup) +(\S*?)([^/]+\.py)::(.*)")

FIRST = (
    "test_docs.py",
    "test_machine_code.py",
    "test_pinocchio.py",
    "test_site.py",
    "test_hostile_files.py",
    "test_threads.py",
    "test_browser.py",
    "test_benchmarks.py",
    "test_fast_entry_safety.py",
    "test_c_export.py",
    "test_excite.py",
    "test_environment.py",
    "test_architecture.py",
    "test_memory.py",
    "test_edges_in_time.py",
    "test_printed_loops.py",
    "test_standing.py",
    "test_pinocchio_compiled.py",
    "test_scenes.py",
    "test_libraries.py",
)
"""Files that take long although they have few tests."""

LONG = 100
"""Work of a test with its own row, relative to other tests."""


@cache
def rows() -> dict[str, int]:
    """Return the table: n if every n-th case of a test is not slow, 0 if all cases are slow."""
    pairs = (line.partition(" 1/") for line in TABLE.read_text("utf-8").splitlines())
    return {name: int(share or 0) for name, _, share in pairs}


@cache
def files() -> frozenset[str]:
    """Return the names of all files in the table."""
    return frozenset(name.partition("::")[0] for name in rows())


def marked(tests: Iterable[tuple[str, str]]) -> Iterator[bool]:
    """Yield True for each slow test; a test is (file name, test name with parameters)."""
    seen: Counter[str] = Counter()
    for file, test in tests:
        function = f"{file}::{test.partition('[')[0]}"
        share = rows().get(function, 1)
        thinned = share == 0 or seen[function] % share > 0
        seen[function] += 1
        yield thinned or file in rows() or f"{file}::{test}" in rows()


def left_out(file: str, expression: str) -> bool:
    """Return True if `-m expression` selects no test of a file, whatever the file contains."""
    if expression == "slow":
        return file.startswith("test_") and file not in files()
    return expression == "not slow" and file in rows()


def ranks(tests: Iterable[tuple[str, str]]) -> dict[str, tuple[int, int, str]]:
    """Return the rank of each file with selected tests: `FIRST`, then by decreasing work."""
    work: Counter[str] = Counter()
    for file, test in tests:
        names = f"{file}::{test}", f"{file}::{test.partition('[')[0]}"
        work[file] += LONG if any(rows().get(name) == 0 for name in names) else 1
    places = {name: place for place, name in enumerate(FIRST)}
    return {name: (places.get(name, len(FIRST)), -n, name) for name, n in work.items()}


def measured(log: str, least: float) -> list[str]:
    """Return rows for tests of at least `least` seconds; slow fixtures make their files slow."""
    found = set()
    for line in log.splitlines():
        match = ROW.fullmatch(line.strip())
        if match and float(match[1]) >= least:
            found.add(match[4] if match[2] == "setup" else f"{match[4]}::{match[5]}")
    return sorted(row for row in found if row.partition("::")[0] not in found or "::" not in row)


if __name__ == "__main__":
    given = Path(sys.argv[1]).read_text("utf-8")
    shares = [f"{name} 1/{share}" for name, share in rows().items() if share]
    table = sorted([*measured(given, float(sys.argv[2])), *shares])
    TABLE.write_text("\n".join(table) + "\n", "utf-8")
