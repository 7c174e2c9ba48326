"""Run each fuzz target for about a second; `python -m fuzz TARGET --minutes N` takes longer."""

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import chasles
from chasles import formats

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))

from fuzz import CORPUS, forked, soak  # noqa: E402 (the path first)
from fuzz.child import attempt  # noqa: E402
from fuzz.targets import TARGETS, files  # noqa: E402


@pytest.mark.parametrize("name", [name for name in TARGETS if name != "self"])
def test_a_second_of_each_target_finds_nothing(name: str) -> None:
    """No case raises an unexpected error."""
    run = TARGETS[name].make()
    for seed in range(TARGETS[name].brief):
        found = attempt(name, run, seed)
        assert found is None, f"python -m fuzz {name} --replay {seed}\n{found['trace']}"


def test_crashes_hangs_and_foreign_errors_are_written_down(tmp_path: Path) -> None:
    """Findings of the target "self" are saved with the seed and the files of the case."""
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
    assert [line.split()[0] for line in done.stdout.splitlines()] == [*TARGETS, "soak", "drops"]


@pytest.mark.parametrize("path", sorted(CORPUS.glob("[rs][om][ba]*/*")), ids=lambda p: p.name)
def test_samples_are_whole_before_they_are_mutated(path: Path, tmp_path: Path) -> None:
    """Samples are valid, because errors behind a rejection would not be found."""
    files.mutations.put(tmp_path)
    (tmp_path / path.name).write_bytes(path.read_bytes())
    with files.readers_here(mujoco=True):
        assert formats.read(str(tmp_path / path.name)) is not None


@pytest.mark.parametrize("name", list(soak.STEPS))
def test_each_step_of_a_soak(name: str, tmp_path: Path) -> None:
    """Every step is possible on a small arm."""
    robot, rng = chasles.robots.planar(2), random.Random(1)
    taken = [soak.STEPS[name](robot, rng, np.random.default_rng(1), tmp_path) for _ in range(3)]
    assert any(taken) or name == "command"


def test_rounds_of_a_soak() -> None:
    """Two seconds of a soak find no errors; growth of memory is allowed after so short a time."""
    told: list[str] = []
    found = soak.soak(2.0, 0, told.append)
    assert not [each for each in found if each.startswith("round")]
    assert "rounds: " in told[-1]


@pytest.mark.parametrize("grows", ["", "resident", "anonymous", "mappings", "threads", "files"])
def test_a_soak_notices_what_grows(grows: str) -> None:
    """Growth over 5 % from the middle to the last third is reported; earlier growth is warm-up."""
    flat = soak.Sample(0.0, 0, 100 * 2**20, 50 * 2**20, 400, 4, 20)
    samples = [flat._replace(resident=2**20)] * 3 + [flat] * 6
    if grows:
        samples[-3:] = [flat._replace(**{grows: getattr(flat, grows) * 13 // 10})] * 3
    assert [line.partition(":")[0] for line in soak.growth(samples)] == [grows] * bool(grows)


def test_a_wall_of_forks_ends_what_takes_too_long(tmp_path: Path) -> None:
    """A forked reader returns output and code as `subprocess.run` does, or raises on a timeout."""
    program = tmp_path / "program.py"
    program.write_text("import time\ndef answer(t):\n time.sleep(float(t)); return {'t': t}\n")
    words = ["", "", "", str(program), "5", str(2**33)]
    done = forked.run([*words, "0"], timeout=30.0, cwd=str(tmp_path))
    assert (done.returncode, json.loads(done.stdout)) == (0, {"t": "0"})
    assert forked.run([*words, "x"], timeout=30.0, cwd=str(tmp_path)).stdout.startswith(b'{"error"')
    with pytest.raises(subprocess.TimeoutExpired):
        forked.run([*words, "60"], timeout=0.5, cwd=str(tmp_path))
