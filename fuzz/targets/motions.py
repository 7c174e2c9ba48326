"""Damaged files of motions: scenarios, folders of runs, and tables for `chasles motion`."""

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import mutating
from typer.testing import CliRunner

from chasles.cli import app, command
from fuzz import CORPUS
from fuzz.target import Case

ENV = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
SCENARIOS = sorted((CORPUS / "scenarios").glob("*.toml"))
TABLES = sorted((CORPUS / "tables").glob("*"))
RUNS = (CORPUS / "run", CORPUS / "stopped")


def call(*words: str) -> None:
    """Run a command, which must succeed or report an error without a traceback."""
    result = CliRunner().invoke(app, list(words), env=ENV)
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        raise error
    assert result.exit_code in (0, command.FOUND, command.WRONG), result.output[-600:]
    for word in ("Traceback", "[Errno"):  # allowed only with --debug
        at = result.output.find(word)
        assert at < 0 or "--debug" in words, result.output[max(at - 300, 0) : at + 300]


def _long(text: bytes) -> bool:
    """Return True if a scenario may take longer than a case allows."""
    found = re.findall(rb"(?m)^(?:duration|dt)\s*=\s*([-\d.eE+]+)\s*$", text)
    try:
        numbers = [float(x) for x in found]
    except ValueError:
        return False
    return len(numbers) < 2 or not all(1e-4 < abs(x) < 1.0 or x == 0.0 for x in numbers)


def make() -> Case:
    return case


def case(rng: random.Random, folder: Path) -> None:
    """Damage a file and run the command that reads it."""
    turn = rng.random()
    if turn < 0.4:
        path = folder / "scenario.toml"
        data = mutating.mutated(rng.choice(SCENARIOS).read_bytes(), "toml", rng)
        path.write_bytes(data)
        if not _long(data):
            call("simulate", str(path), "-o", str(folder / "out"), "--no-plots")
    elif turn < 0.7:
        run = folder / "run"
        shutil.copytree(rng.choice(RUNS), run)
        victim = rng.choice(sorted(run.iterdir()))
        _damage(rng, victim)
        scenario = run / "scenario.toml"
        if scenario.is_file() and _long(scenario.read_bytes()):
            return
        call("simulate", "-o", str(run), "--resume", "--no-plots")
    else:
        source = rng.choice(TABLES)
        path = folder / source.name
        path.write_bytes(mutating.mutated(source.read_bytes(), "text", rng))
        call("motion", "planar:1", str(path), "--differentiate", "-o", str(folder / "t.csv"))


def _other(rng: random.Random, value: Any) -> Any:
    """Return a JSON value with one part replaced or removed."""
    odd = (None, True, -1, 1e308, "", "x" * 1000, [], {}, [[]], {"a": 1}, 2**70)
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice(list(value))
        if rng.random() < 0.2:
            return {k: v for k, v in value.items() if k != name}
        return value | {name: _other(rng, value[name])}
    return rng.choice(odd)


def _damage(rng: random.Random, path: Path) -> None:
    """Change, truncate or delete a file of a run, or replace it by a folder."""
    data, turn = path.read_bytes(), rng.randrange(6)
    if path.suffix == ".json" and rng.random() < 0.5:
        path.write_text(json.dumps(_other(rng, json.loads(data))))
        return
    if turn == 0:
        path.unlink()
    elif turn == 1:
        path.unlink()
        path.mkdir()
    elif turn == 2:
        path.write_bytes(data[: rng.randrange(len(data) + 1)])
    elif turn == 3 and data:
        k = rng.randrange(len(data))
        path.write_bytes(data[:k] + bytes([data[k] ^ (1 << rng.randrange(8))]) + data[k + 1 :])
    else:
        path.write_bytes(mutating.mutated(data, "text", rng))
