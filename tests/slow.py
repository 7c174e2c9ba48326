"""Which tests are slow: `slow.txt`, whose rows name a test by its file's name and its own.

A row with parameters names one case, one without all of them; a file alone, all its tests (where a
fixture is slow, which any of them would make); a row that ends in " 1/8", all but every eighth of a
test's cases, so that a long list is fast to try and slow to exhaust. `pytest` leaves slow tests
out; `pytest -m slow` runs them, `pytest -m ""` all. `python tests/slow.py LOG SECONDS` writes the
rows of single tests again, from the output of `pytest -m "" --durations=0`.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("slow.txt")
ROW = re.compile(r"([\d.]+)s (call|setup) +(\S*?)([^/]+\.py)::(.*)")


@cache
def rows() -> dict[str, int]:
    """The table: how many cases of a test are one that is not slow; 0 where all are slow."""
    pairs = (line.partition(" 1/") for line in TABLE.read_text("utf-8").splitlines())
    return {name: int(share or 0) for name, _, share in pairs}


def marked(tests: Iterable[tuple[str, str]]) -> Iterator[bool]:
    """Whether each of the tests (file's name, test's name with parameters) is slow."""
    seen: Counter[str] = Counter()
    for file, test in tests:
        function = f"{file}::{test.partition('[')[0]}"
        share = rows().get(function, 1)
        thinned = share == 0 or seen[function] % share > 0
        seen[function] += 1
        yield thinned or file in rows() or f"{file}::{test}" in rows()


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
