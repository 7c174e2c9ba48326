"""Every check of lint finds its example, reports its place, and accepts a valid robot."""

from pathlib import Path

import pytest
from lint_files import EXAMPLES, arm
from lint_page import PAGE, checks_table

import chasles
from chasles.lint import CHECKS, SEVERITIES, Finding, lint
from chasles.lint.repair import REPAIRS


def found(tmp_path: Path, text: str, suffix: str = ".urdf") -> tuple[Finding, ...]:
    path = tmp_path / f"arm{suffix}"
    path.write_text(text)
    return lint(path)


def test_every_check_has_an_example() -> None:
    assert set(EXAMPLES) == set(CHECKS)


def test_every_repair_is_of_a_check() -> None:
    assert {row.repair for row in CHECKS.values()} - {""} == set(REPAIRS)


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_finds_its_example(name: str, tmp_path: Path) -> None:
    example = EXAMPLES[name]
    all_found = found(tmp_path, example.text, example.suffix)
    matching = [finding for finding in all_found if finding.check == name]
    assert len(matching) == 1, list(map(str, all_found))
    finding, file = matching[0], tmp_path / f"arm{example.suffix}"
    assert finding.part == example.part
    assert finding.where == (f"{file}:{example.line}" if example.line else str(file))
    assert example.words in finding.what
    assert finding.severity == CHECKS[name].severity
    assert finding.why
    assert finding.remedy


def test_a_sound_robot_has_no_findings(tmp_path: Path) -> None:
    assert found(tmp_path, arm()) == ()


@pytest.mark.parametrize("robot", ["puma560", "quadruped", "four_bar"])
def test_built_in_robots_have_no_errors(robot: str, tmp_path: Path) -> None:
    chasles.save(getattr(chasles.robots, robot)(), tmp_path / "robot.toml")
    grave = [f for f in lint(tmp_path / "robot.toml") if f.severity != "note"]
    assert not grave


def test_findings_are_in_the_order_of_lines(tmp_path: Path) -> None:
    lines = [finding.line for finding in found(tmp_path, EXAMPLES["mimic"].text)]
    assert lines == sorted(lines)


def test_severities_are_known() -> None:
    assert {row.severity for row in CHECKS.values()} == set(SEVERITIES)


def test_the_page_has_every_check() -> None:
    assert checks_table() in PAGE.read_text("utf-8"), "run python tests/lint/lint_page.py"
