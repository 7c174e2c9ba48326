"""Which tests are slow: `slow.txt`, whose rows name a test by its file's name and its own.

A row with parameters names one case, one without all of them; a file alone, all its tests (where a
fixture is slow, which any of them would make); a row that ends in " 1/8", all but every eighth of a
test's cases, so that a long list is fast to try and slow to exhaust. `pytest` leaves slow tests
out; `pytest -m slow` runs them, `pytest -m ""` all. `python tests/slow.py LOG SECONDS` writes the
rows of single tests again, from the output of `pytest -m "" --durations=0`.

The workers of pytest-xdist take whole files, in the order of `ranks`: those that take longest come
first, so that none of them runs alone at the end. A test with a row of its own takes about as long
as a hundred others.
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
"""Files whose few tests take long."""

LONG = 100
"""Work of a test with a row of its own, beside that of another test."""


@cache
def rows() -> dict[str, int]:
    """The table: how many cases of a test are one that is not slow; 0 where all are slow."""
    pairs = (line.partition(" 1/") for line in TABLE.read_text("utf-8").splitlines())
    return {name: int(share or 0) for name, _, share in pairs}


@cache
def files() -> frozenset[str]:
    """The names of all files in the table."""
    return frozenset(name.partition("::")[0] for name in rows())


def marked(tests: Iterable[tuple[str, str]]) -> Iterator[bool]:
    """Whether each of the tests (file's name, test's name with parameters) is slow."""
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
    """Return the place of each file, from the tests that run: `FIRST`, then much work first."""
    work: Counter[str] = Counter()
    for file, test in tests:
        names = f"{file}::{test}", f"{file}::{test.partition('[')[0]}"
        work[file] += LONG if any(rows().get(name) == 0 for name in names) else 1
    places = {name: place for place, name in enumerate(FIRST)}
    return {name: (places.get(name, len(FIRST)), -n, name) for name, n in work.items()}


def measured(log: str, least: float) -> list[str]:
    """Rows for what took long: a file where a fixture did, which any of its tests would make."""
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
