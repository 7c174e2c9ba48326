"""Robots installed by other packages are found by name."""

from pathlib import Path

import pytest
from support import raises
from typer.testing import CliRunner

import chasles
from chasles.cli.app import app
from chasles.formats import is_name

URDF = '<robot name="r"><link name="a"/></robot>'


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache of robot_descriptions with three names of robots, and ignored files."""
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path))
    for name, text in {
        "one/urdf/walker.urdf": URDF,
        "two/urdf/twin.urdf": URDF,
        "two/urdf/old/twin.urdf": URDF,
        "menagerie/hand/hand.xml": '<mujoco><worldbody><body name="b"/></worldbody></mujoco>',
        "menagerie/hand/package.xml": "<package/>",
        "menagerie/.git/hidden.urdf": URDF,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_names_are_those_of_files(cache: Path) -> None:
    mine = [x.name for x in chasles.robots.installed() if x.source == "robot_descriptions"]
    assert mine == ["hand", "twin", "twin", "walker"]
    assert chasles.robots.find("walker") == cache / "one/urdf/walker.urdf"
    assert chasles.robots.find("Walker") == cache / "one/urdf/walker.urdf"
    assert chasles.load("walker").bodies == ("a",)


def test_a_robot_of_example_robot_data() -> None:
    assert chasles.load("panda").nv == 8


@pytest.mark.usefixtures("cache")
def test_several_of_one_name_are_listed() -> None:
    with raises("E-FILE-034"):
        chasles.load("twin")


@pytest.mark.usefixtures("cache")
def test_a_name_that_is_none() -> None:
    with raises("E-FILE-035", "'walker'"):
        chasles.load("wolker")
    with raises("E-FILE-035"):
        chasles.load("qqqqqqq")


def test_names_may_leave_out_the_ending_robot() -> None:
    assert chasles.load("ur5").nv == 6  # ur5_robot.urdf
    with raises("E-FILE-035", "'ur5_robot'"):
        chasles.load("ur5x")


def test_names_that_begin_alike_are_suggested_first() -> None:
    with raises("E-FILE-035", "'talos_full_v2'"):
        chasles.load("talos")


def test_without_any_installed_robot_the_error_names_a_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("chasles.formats.registry.installed", list)
    with raises("E-FILE-035", "pip install example-robot-data"):
        chasles.load("ur5")


def test_a_file_without_suffix_is_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("panda").write_text(URDF)
    with raises("E-FILE-003"):
        chasles.load("panda")
    assert not is_name("a/panda")


@pytest.mark.usefixtures("cache")
def test_commands_take_names() -> None:
    listed = CliRunner().invoke(app, ["robots"])
    assert listed.exit_code == 0
    for name in ("puma560", "planar:N", "walker", "panda"):
        assert name in listed.output
    assert CliRunner().invoke(app, ["info", "walker"]).output.startswith("r:")
    wrong = CliRunner().invoke(app, ["info", "puma56"])
    assert wrong.exit_code == 2
    assert "did you mean 'puma560'" in wrong.output


def test_arguments_of_xacro_files(tmp_path: Path) -> None:
    path = tmp_path / "a.xacro"
    path.write_text(
        '<robot name="$(arg name)" xmlns:xacro="http://www.ros.org/wiki/xacro"><link name="a"/>'
        "</robot>"
    )
    shown = CliRunner().invoke(app, ["info", str(path), "--argument", "name=bob"])
    assert shown.output.startswith("bob:")
    assert CliRunner().invoke(app, ["info", str(path), "--argument", "bob"]).exit_code == 2
