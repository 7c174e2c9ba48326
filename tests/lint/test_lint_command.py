"""Command `chasles lint`: printed text, exit status, and repaired copies."""

import json
from pathlib import Path

import pytest
from lint_files import EXAMPLES, arm, inertial
from lint_page import installed
from typer.testing import CliRunner, Result

from chasles.cli import app


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["lint", *map(str, arguments)], env={"NO_COLOR": "1"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(EXAMPLES["triangle"].text)
    return path


@pytest.mark.parametrize(
    ("name", "statuses"),
    [("", (0, 0, 0)), ("copied", (0, 0, 1)), ("degrees", (0, 1, 1)), ("triangle", (1, 1, 1))],
)
def test_exit_status(name: str, statuses: tuple[int, ...], tmp_path: Path) -> None:
    """Statuses for --fail-on error, warning and note, with the given worst finding."""
    path = tmp_path / "arm.urdf"
    path.write_text(EXAMPLES[name].text if name else arm())
    given = [run(path, "--fail-on", level).exit_code for level in ("error", "warning", "note")]
    assert tuple(given) == statuses
    assert run(path).exit_code == statuses[1]
    assert run(path, "--fail-on", "never").exit_code == 0


def test_a_file_that_cannot_be_read(file: Path, tmp_path: Path) -> None:
    """The other files are still checked."""
    (tmp_path / "no.urdf").write_text("<robot>")
    result = run(tmp_path / "no.urdf", tmp_path / "none.urdf", file, "--fail-on", "never")
    assert result.exit_code == 2
    assert "no.urdf:1: invalid XML" in result.output
    assert "none.urdf: the file does not exist" in result.output
    assert "arm.urdf: 1 error\n" in result.output


def test_what_is_printed(file: Path) -> None:
    lines = run(file).output.splitlines()
    assert lines[0] == f"{file}: 1 error"
    assert lines[1].startswith("error triangle: physically impossible")
    assert lines[2].startswith(f"  {file}:4: link 'tip': principal moments violate")
    assert len(lines) == 3


def test_findings_of_one_check_show_their_own_remedies(tmp_path: Path) -> None:
    mesh = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
    names = ("package://claw/tip.stl", "tip.stl")
    path = tmp_path / "arm.urdf"
    path.write_text(arm(inertial(1, 0.01, 0.02, 0.02) + "".join(map(mesh.format, names))))
    head, first, second = run(path).output.splitlines()[1:]
    assert head.endswith("the shape is neither drawn nor used for contacts and distances")
    assert first.endswith("was not found; add the folder that contains claw to ROS_PACKAGE_PATH")
    assert second.endswith("'tip.stl' was not found; correct the path of the mesh file")


def test_json(file: Path, tmp_path: Path) -> None:
    result = run(file, tmp_path / "none.urdf", "--json")
    first, second = json.loads(result.output)["reports"]
    assert first["file"] == str(file)
    assert [f["check"] for f in first["findings"]] == ["triangle"]
    assert set(first["findings"][0]) >= {"severity", "where", "part", "what", "why", "remedy"}
    assert first["unreadable"] is None
    assert second["unreadable"]["code"] == "E-FILE-004"
    assert second["unreadable"]["file"] == str(tmp_path / "none.urdf")
    assert second["unreadable"]["problem"] == "the file does not exist"
    assert result.exit_code == 2


def test_fix_writes_a_copy_and_shows_the_difference(file: Path) -> None:
    before = file.read_bytes()
    result = run(file, "--fix")
    copy = file.with_name("arm.fixed.urdf")
    assert file.read_bytes() == before
    assert f"--- {file}\n+++ {copy}\n" in result.output
    assert result.output.count("\n-  <") == result.output.count("\n+  <") == 1
    assert run(copy).exit_code == 0


def test_fix_overwrites_nothing(file: Path) -> None:
    copy = file.with_name("arm.fixed.urdf")
    copy.write_text("mine")
    result = run(file, "--fix")
    assert result.exit_code == 2
    assert "the file already exists" in result.output
    assert copy.read_text() == "mine"


def test_a_copy_that_cannot_be_written_does_not_hide_the_others(file: Path) -> None:
    """The findings of all files and the copies that were written are reported."""
    other = file.with_name("other.urdf")
    other.write_text(file.read_text())
    file.with_name("arm.fixed.urdf").mkdir()
    result = run(other, file, "--fix")
    assert result.exit_code == 2
    assert f"Repaired copy saved to {other.with_name('other.fixed.urdf')}" in result.output
    assert "arm.urdf: 1 error\n" in result.output
    assert "no copy was written" in result.output
    reports = json.loads(run(file, "--fix", "--json").output)["reports"]
    assert reports[0]["unwritten"]["problem"] == "the file already exists"


def test_an_installed_robot_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The repaired copy is written to the working folder, not to the package's folder."""
    monkeypatch.chdir(tmp_path)
    if not installed():
        pytest.skip("example-robot-data is not installed")
    assert run("romeo_small", "--fix", "--no-meshes").exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["romeo_small.fixed.urdf"]
    assert run("romeo_small.fixed.urdf", "--no-meshes").exit_code == 0


def test_arguments_of_xacro(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    space = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="arm">'
    text = arm(inertial(1, 0.01, 0.02, "$(arg zz)")).replace('<robot name="arm">', space)
    (tmp_path / "arm.xacro").write_text(text)
    assert run(tmp_path / "arm.xacro", "--argument", "zz=0.02").exit_code == 0
    assert run(tmp_path / "arm.xacro", "--argument", "zz=0.04").exit_code == 1
    assert run(tmp_path / "arm.xacro").exit_code == 2


def test_fix_of_what_needs_none(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(arm())
    assert run(path, "--fix").exit_code == 0
    assert [p.name for p in tmp_path.iterdir()] == ["arm.urdf"]


def test_fix_says_what_it_leaves(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    products = 'ixz="3e-3" iyz="4e-3"'
    path.write_text(arm(inertial(1, 0.01, 0.02, 0.04).replace('ixy="0" ixz="0" iyz="0"', products)))
    output = run(path, "--fix").output
    assert "link 'tip': not repaired: the repair needs a product of inertia" in output
    (report,) = json.loads(run(path, "--fix", "--json").output)["reports"]
    assert (len(report["left"]), report["copy"]) == (1, "")
