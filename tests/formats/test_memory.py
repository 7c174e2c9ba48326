"""Memory that reading a file takes, by its size: hostile files of every format that is read here.

xacro and MJCF files are expanded and compiled in processes with a bound on their memory.
"""

import random
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import hostile_families
import pytest
from support import raises

import chasles
from chasles.formats import toml_file
from chasles.formats.mjcf_source import MUJOCO
from chasles.formats.xacro import XACRO

TIMES, BASE = 200, 32 * 2**20
"""docs/formats.md: reading takes at most 200 times the file's size and 32 MB."""


@pytest.mark.parametrize("size", [10**4, 3 * 10**5])
def test_memory_is_bounded_by_size(size: int) -> None:
    """One file of every family, each in a process of its own."""
    script = Path(hostile_families.__file__)
    done = subprocess.run(
        [sys.executable, script, str(size)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-1000:]
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == list(hostile_families.FAMILIES)
    for name, there, taken, _, told in rows:
        assert int(taken) < TIMES * int(there) + BASE, (name, there, taken)
        assert told == "read" or (re.search(r"\[E-[A-Z]+-\d+\]$", told) and len(told) < 2000), told


def test_every_reader_has_families() -> None:
    """Those of xacro and MJCF work behind a wall with a bound, after the same parser of XML."""
    suffixes = {suffix for row in chasles.formats.files.FORMATS.values() for suffix in row.suffixes}
    known = {Path(name).suffix for name in hostile_families.FAMILIES}
    assert suffixes - known == {".xacro", ".xml", ".mjcf"}
    assert max(XACRO.memory, MUJOCO.memory) <= 4 * 2**30


# Keys of TOML ----------------------------------------------------------------------------------

DEEP = "a.a.a.a.a.a.a = 1"
PIECES = (
    *(DEEP, "b = 1.5", "\n", '"""', "'''", '"', "'", "\\", "#", " ", "[", "]", "{", "}", ",", "="),
    *('c = "x" # y', "d = '''z''''", 'e = """w"""""', 'f = ["""v"""", {', '}, "u"]', "g.'h.i' = 2"),
)


def test_deep_keys_are_found_wherever_tomllib_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """In texts of random pieces: what is parsed to a deep table was refused before."""
    rng = random.Random(1)
    counts = {True: 0, False: 0}
    for _ in range(20_000):
        text = "".join(rng.choices(PIECES, k=rng.randint(1, 8)))
        try:
            toml_file._check_keys("a.toml", text)
            refused = False
        except chasles.ModelError:
            refused = True
        try:
            deep = depth(tomllib.loads(text)) > toml_file.MAX_DOTS + 2
        except ValueError:
            continue
        assert deep == refused, text
        counts[deep] += 1
    assert min(counts.values()) > 100, counts


def depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, inner), default=0)


def test_dots_of_texts_and_comments_do_not_count(tmp_path: Path) -> None:
    text = f"# {'.' * 5000}\nformat = 'mechanism'\nnotes = \"{'1.2.' * 5000}\"\n"
    path = tmp_path / "a.toml"
    path.write_text(text)
    with raises("E-TOML-004"):  # the robot has no links
        chasles.load(path)
