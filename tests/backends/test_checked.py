"""`CHASLES_CHECKED=1`: an out-of-bounds access in generated code aborts with a message."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from planted import PLANTED

from chasles.backends.llvm import checked
from chasles.backends.llvm import kernel as llvm
from chasles.functions.programs import program
from chasles.robots import planar


@pytest.fixture(scope="module")
def told() -> dict[str, list[str]]:
    """Return the results of calls with errors planted in their code."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("planted.py"))],
        env=os.environ | {"CHASLES_CHECKED": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    rows = (line.split("|") for line in done.stdout.splitlines())
    return {name: rest for name, *rest in rows}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found(name: str, told: dict[str, list[str]]) -> None:
    """Errors in loops over steps, records and rows, workspaces, kernels and entries are found."""
    killed, message = told[name]
    assert message.startswith("chasles: out-of-bounds access in @")
    assert killed == "True"


def test_the_same_calls_without_mistakes_run(told: dict[str, list[str]]) -> None:
    assert "clean" in told


def test_the_mode_is_off_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is built, loaded and called without the checked mode by default."""
    assert not checked.ON
    for name in ("instrumented", "symbols", "ends"):
        monkeypatch.delattr(checked, name)
    robot = planar(1)
    assert llvm.compile(program(robot.model, "mass_matrix")).artifact.object_code
