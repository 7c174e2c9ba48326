"""Every check of lint finds its example, reports its place, and accepts a valid robot."""

import xml.etree.ElementTree as xml
from pathlib import Path

import pytest
from lint_files import EXAMPLES, LIMIT, SHAPE, arm, cross, joint, link
from lint_page import PAGE, checks_table

import chasles
from chasles.formats.spelling import ATTRIBUTES
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


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("efort", "effort"), ("Velocity", "velocity"), ("lowr", "lower"), ("effort_", "effort")],
)
def test_a_misspelled_attribute_has_a_suggestion(wrong: str, right: str, tmp_path: Path) -> None:
    text = arm(limit=LIMIT.replace(right, wrong))
    (remedy,) = (f.remedy for f in found(tmp_path, text) if f.check == "misspelled")
    assert remedy.startswith(f"did you mean '{right}'")


SDF = """<sdf version="1.9"><model name="m"><link name="a"><inertial><mass>1</mass></inertial>
<collision name="c"><pose>0 0 1 0 0 0</pose><geometry><sphere><radius>1</radius></sphere></geometry>
</collision></link></model></sdf>"""


@pytest.mark.parametrize(
    ("text", "wrong", "right", "suffix"),
    [
        (cross(SHAPE.format("<origin/>")), "orgin", "origin", ".urdf"),
        (cross(SHAPE.format("")), "colision", "collision", ".urdf"),
        (arm(), "orgin", "origin", ".urdf"),
        (arm(), "axes", "axis", ".urdf"),
        (arm(), "Joint", "joint", ".urdf"),
        (SDF, "inertail", "inertial", ".sdf"),
        (SDF, "poes", "pose", ".sdf"),
    ],
)
def test_a_misspelled_element_has_a_suggestion(
    text: str, wrong: str, right: str, suffix: str, tmp_path: Path
) -> None:
    """Lint reports the element, and loading adds a note."""
    text = text.replace(f"<{right}", f"<{wrong}").replace(f"</{right}", f"</{wrong}")
    findings = [f for f in found(tmp_path, text, suffix) if f.check == "misspelled"]
    assert findings
    for finding in findings:
        assert f"has the unknown element <{wrong}>" in finding.what
        assert finding.remedy.startswith(f"did you mean '{right}'")
    if right != "joint":  # without joints, the file does not load
        notes = chasles.load(tmp_path / f"arm{suffix}").notes
        assert any(f"unknown element <{wrong}>, which is ignored" in note for note in notes)


def test_extensions_are_not_misspelled(tmp_path: Path) -> None:
    """Elements of other programs, and their contents, give no findings and no notes."""
    inside = SHAPE.format("<drake:orgin/><contact_coefficients mu='1'/>")
    more = "<gazebo><orgin/></gazebo><loop_joint/>" + link("a", inside + "<contact/>")
    text = arm(more=more + joint("ankle", "tip", "a"))
    assert "misspelled" not in {f.check for f in found(tmp_path, text)}
    assert not [x for x in chasles.load(tmp_path / "arm.urdf").notes if "unknown" in x]


def test_attributes_that_are_written_are_known(tmp_path: Path) -> None:
    """Attributes of saved files, and attributes that extend a complete element, are accepted."""
    chasles.save(chasles.robots.planar(3), tmp_path / "robot.urdf")
    given = {(x.tag, key) for x in xml.parse(tmp_path / "robot.urdf").iter() for key in x.attrib}
    assert not [pair for pair in given if pair[1] not in (*ATTRIBUTES.get(pair[0], ()), "name")]
    other = arm(limit=LIMIT.replace("lower", 'command_effort="9" name="elbow" lower'))
    assert found(tmp_path, other) == ()


def test_findings_are_in_the_order_of_lines(tmp_path: Path) -> None:
    lines = [finding.line for finding in found(tmp_path, EXAMPLES["mimic"].text)]
    assert lines == sorted(lines)


def test_severities_are_known() -> None:
    assert {row.severity for row in CHECKS.values()} == set(SEVERITIES)


def test_the_page_has_every_check() -> None:
    assert checks_table() in PAGE.read_text("utf-8"), "run python tests/lint/lint_page.py"
