"""Which tests are slow: `slow.txt`, a row a test, written by `python tests/slow.py LOG SECONDS`.

LOG is the output of `pytest -m "" --durations=0` (or more), SECONDS the least time that is slow. A
row is a file's name and a test's, of all its parameters if none is named. `pytest` leaves slow
tests out; `pytest -m slow` runs them, `pytest -m ""` runs all.
"""

import re
import sys
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("slow.txt")
ROW = re.compile(r"([\d.]+)s (call|setup) +(\S*?)([^/]+\.py)::(.*)")


@cache
def rows() -> frozenset[str]:
    """The rows of the table."""
    return frozenset(TABLE.read_text("utf-8").splitlines())


def is_slow(file: str, test: str) -> bool:
    """Whether a test of a file is in the table, by itself or with all its parameters."""
    return not rows().isdisjoint({f"{file}::{test}", f"{file}::{test.partition('[')[0]}", file})


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
    TABLE.write_text("\n".join(measured(given, float(sys.argv[2]))) + "\n", "utf-8")
