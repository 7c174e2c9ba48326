"""Each fuzz target, for about a second; `python -m fuzz TARGET --minutes N` runs it for longer."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))

from fuzz.child import attempt  # noqa: E402 (the path first)
from fuzz.targets import TARGETS  # noqa: E402


@pytest.mark.parametrize("name", [name for name in TARGETS if name != "self"])
def test_a_second_of_each_target_finds_nothing(name: str) -> None:
    """No case raises what it must not."""
    run = TARGETS[name].make()
    for seed in range(TARGETS[name].brief):
        found = attempt(name, run, seed)
        assert found is None, f"python -m fuzz {name} --replay {seed}\n{found['trace']}"


def test_crashes_hangs_and_foreign_errors_are_written_down(tmp_path: Path) -> None:
    """By the target that has some of each: with the seed, and the files of the case."""
    words = ["self", "--minutes", "0.05", "--findings", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", *words], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1, done.stderr
    found = [json.loads(path.read_text()) for path in tmp_path.iterdir()]
    kinds = {each["kind"].split()[0] for each in found}
    assert {"crash", "hang", "ValueError"} <= kinds, done.stdout
    turns = {"crash": "0", "hang": "1", "ValueError": "2"}
    for each in found:
        assert each["files"]["input"] == turns[each["kind"].split()[0]]
        assert each["again"] == f"python -m fuzz self --replay {each['seed']}"


def test_the_list_names_every_target() -> None:
    words = [sys.executable, "-m", "fuzz", "--list"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(TARGETS)
