"""Problems that new users met in a shell: Ctrl-C at any time, odd names, unclear messages."""

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import pytest
from typer.core import TyperGroup
from typer.testing import CliRunner

from chasles.cli import app

ROBOT = """<robot name="arm"><link name="base"/><link name="[b]rod:x:">
  <inertial><mass value="{mass}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
  </inertial></link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="[b]rod:x:"/></joint>
</robot>"""
MESH = '<visual><geometry><mesh filename="{}"/></geometry></visual>'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(ROBOT.format(mass=1))
    return tmp_path


def invoke(*words: str) -> Any:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "80", "NO_COLOR": "1"})


def interrupted(*words: Any, **options: Any) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", ["make_context", "invoke"])
def test_ctrl_c_before_a_command_begins(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TyperGroup, step, interrupted)
    result = invoke("robots")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "interrupted\n")


def test_names_are_printed_as_they_are() -> None:
    """Emoji codes and markup in a link's name are printed unchanged."""
    assert "[b]rod:x:" in invoke("info", "arm.urdf").stdout
    assert invoke("info", "planar:x:").stderr.startswith("error: planar:x:: ")


def test_a_library_to_compare_with_is_asked_for() -> None:
    result = invoke("compare", "arm.urdf")
    told = "--with: name the library to compare with: pinocchio, mujoco, drake [E-CLI-002]"
    assert (result.exit_code, result.stderr) == (2, f"error: {told}\n")


def test_a_repair_that_nobody_can_make_is_said(here: Path) -> None:
    (here / "arm.urdf").write_text(ROBOT.format(mass=-1))
    told = "No copy was written"
    assert told in invoke("lint", "arm.urdf", "--fix").stdout
    assert told not in invoke("lint", "arm.urdf").stdout
    assert [path.name for path in here.iterdir()] == ["arm.urdf"]


def test_functions_with_options_of_their_own_are_for_python() -> None:
    result = invoke("export", "four_bar", "-f", "actuator_forces", "-o", "c")
    assert result.exit_code == 2
    assert re.search(
        "cannot pass 'actuated' and 'weights' to this function; "
        "use the Python function chasles.export",
        result.stderr,
    )


def test_meshes_that_are_elsewhere_do_not_fill_the_screen(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("viser")
    monkeypatch.setattr(import_module("chasles.cli.commands.view"), "wait", lambda ended: None)
    shapes = "".join(MESH.format(f"package://far/{k}.stl") for k in range(20))
    (here / "arm.urdf").write_text(
        ROBOT.format(mass=1).replace("<inertial>", f"{shapes}<inertial>")
    )
    lines = invoke("view", "arm.urdf", "--port", "0").stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("note: 20 meshes are missing or of unknown type")
    assert lines[0].endswith("add the folder that contains far to ROS_PACKAGE_PATH")


def test_meshes_that_are_empty_do_not_fill_the_screen(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("viser")
    monkeypatch.setattr(import_module("chasles.cli.commands.view"), "wait", lambda ended: None)
    for k in range(5):
        (here / f"{k}.stl").write_text("solid nothing")
    shapes = "".join(MESH.format(f"{k}.stl") for k in range(5))
    (here / "arm.urdf").write_text(
        ROBOT.format(mass=1).replace("<inertial>", f"{shapes}<inertial>")
    )
    lines = invoke("view", "arm.urdf", "--port", "0").stdout.splitlines()
    assert len(lines) == 5
    assert lines[0].endswith("0.stl has no triangles")
    assert lines[3] == "note: 2 more notes (--json lists all)"
    found = json.loads(invoke("view", "arm.urdf", "--port", "0", "--json").stdout)
    assert len(found["notes"]) == 5


@pytest.mark.parametrize("words", ["view planar:1", "simulate planar:1 --duration 0.01 --no-plots"])
def test_recordings_tell_the_notes_of_the_viewer(
    words: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("viser")
    command = import_module(f"chasles.cli.commands.{words.split()[0]}")
    monkeypatch.setattr(command, "check_video", lambda path, overwrite: path)
    monkeypatch.setattr(command, "shoot", lambda *given, **options: ["no mesh"] * 5)
    for suffix, kind in ((".mp4", "Video"), (".png", "Picture")):
        result = invoke(*words.split(), "--record", f"x{suffix}", "--overwrite")
        assert result.exit_code == 0
        assert result.output.count("note: no mesh\n") == 3
        assert "note: 2 more notes (--json lists all)" in result.output
        assert f"{kind} saved to x{suffix}" in result.output
    found = json.loads(invoke(*words.split(), "--record", "x.gif", "--overwrite", "--json").stdout)
    assert found["notes"] == ["no mesh"] * 5
    assert found["files"]["video"] == "x.gif"


def test_recordings_announce_their_frames(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of frames is printed to standard error before a video is recorded."""
    pytest.importorskip("viser")
    video = import_module("chasles.cli.video")
    command = import_module("chasles.cli.commands.view")
    monkeypatch.setattr(command, "check_video", lambda path, overwrite: path)
    monkeypatch.setattr(video, "record", lambda *given, **options: None)
    (here / "m.csv").write_text("t,joint1.q\n0,0\n1,0.5\n")
    start = ("view", "planar:1", "--motion", "m.csv", "--rate", "10", "--record")
    assert "recording 11 frames\n" in invoke(*start, "x.mp4").stderr
    assert "recording" not in invoke(*start, "x.png").stderr


@pytest.mark.parametrize(
    ("package", "words", "told"),
    [
        ("mujoco", ["info", "arm.xml"], "run pip install 'chasles[mjcf]'"),
        ("mujoco", ["lint", "arm.xml"], "run pip install 'chasles[mjcf]'"),
        ("xacro", ["info", "arm.xacro"], "run pip install 'chasles[xacro]'"),
        ("xacro", ["lint", "arm.xacro"], "run pip install 'chasles[xacro]'"),
        ("viser", ["view", "planar:1"], "run pip install 'chasles[view]'"),
        ("pinocchio", ["compare", "arm.urdf", "--with", "pinocchio"], "pip install pin"),
        ("mujoco", ["compare", "arm.urdf", "--with", "mujoco"], "pip install mujoco"),
        ("pydrake", ["compare", "arm.urdf", "--with", "drake"], "pip install drake"),
        ("pyarrow", ["motion", "arm.urdf", "m.csv", "-o", "x.parquet"], "'chasles[data]'"),
        ("pyarrow", ["simulate", "arm.urdf", "--table", "x.parquet"], "'chasles[data]'"),
    ],
)
def test_what_is_not_installed_is_named_as_a_shell_takes_it(
    package: str, words: list[str], told: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package is in quotation marks, for zsh; files without a reader are not blamed."""
    loaded = [name for name in sys.modules if name.startswith(f"{package}.")]
    for name in (package, *loaded):
        monkeypatch.setitem(sys.modules, name, None)
    (here / "arm.xml").write_text("<mujoco/>")
    (here / "arm.xacro").write_text(ROBOT.format(mass=1))
    result = invoke(*words)
    assert result.exit_code == 2
    assert told in result.output
    assert len(result.output.splitlines()) == 1
