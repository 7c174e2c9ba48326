"""Memory for reading hostile files, by file size, in every format that chasles parses itself.

xacro and MJCF files are expanded and compiled in processes with a memory limit.
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
"""Bound stated in docs/formats.md: 200 times the file's size plus 32 MB."""


@pytest.mark.parametrize("size", [10**4, 3 * 10**5])
def test_memory_is_bounded_by_size(size: int) -> None:
    """One file of every family is read, each in its own process."""
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
    """There are families for every reader except xacro and MJCF, which have a memory limit.

    Their files pass through the same XML parser first.
    """
    suffixes = {suffix for row in chasles.formats.files.FORMATS.values() for suffix in row.suffixes}
    known = {Path(name).suffix for name in hostile_families.FAMILIES}
    assert suffixes - known == {".xacro", ".xml", ".mjcf"}
    assert max(XACRO.memory, MUJOCO.memory) <= 4 * 2**30


# TOML keys -------------------------------------------------------------------------------------

DEEP = "a.a.a.a.a.a.a = 1"
PIECES = (
    *(DEEP, "b = 1.5", "\n", '"""', "'''", '"', "'", "\\", "#", " ", "[", "]", "{", "}", ",", "="),
    *('c = "x" # y', "d = '''z''''", 'e = """w"""""', 'f = ["""v"""", {', '}, "u"]', "g.'h.i' = 2"),
)


def test_deep_keys_are_found_wherever_tomllib_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every random text that tomllib parses to a deep table was refused before parsing."""
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
