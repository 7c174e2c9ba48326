"""Damaged files are read or refused with a ChaslesError by all readers except robot readers."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from file_doors import DOORS, attempt
from mutating import mutated
from support import raises

import chasles
from chasles.cli import scenario
from chasles.cli.manifest import MANIFEST
from chasles.formats.files import suffixes
from chasles.lint import lint


@pytest.mark.parametrize("name", DOORS)
def test_mutated_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    door = DOORS[name]
    path, sound, read = tmp_path / door.name, door.seed(), 0
    path.write_bytes(sound)
    assert attempt(door, path), "the file without mistakes"
    for seed in range(40):
        path.write_bytes(mutated(sound, door.kind, random.Random(seed)))
        try:
            read += attempt(door, path)
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}")


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


PLACES: dict[str, Callable[[Path], Any]] = {
    "folder": _folder,
    "device": lambda path: (path.symlink_to(os.devnull), path)[1],
    "broken link": lambda path: (path.symlink_to(path.parent / "nowhere"), path)[1],
    "not there": lambda path: path,
    "long": lambda path: path.with_name("x" * 5000 + path.name),
    "NUL": lambda path: Path(f"{path.parent}/a\0{path.name}"),
}
"""Paths that are not regular files."""

READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    **{f"load {suffix}": (f"a{suffix}", chasles.load) for suffix in suffixes()},
    **{f"lint {suffix}": (f"a{suffix}", lint) for suffix in suffixes()},
    **{name: (door.name, door.read) for name, door in DOORS.items() if name in DOORS},
}
OWN = ("run.json", "part", "finished", "cache")
"""Readers that find their files themselves."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", [name for name in READERS if name not in OWN])
def test_what_is_no_file_is_refused(name: str, place: str, tmp_path: Path) -> None:
    file, read = READERS[name]
    with pytest.raises(chasles.ChaslesError) as caught:
        read(PLACES[place](tmp_path / file))
    assert caught.value.code


def test_a_folder_in_the_place_of_the_manifest_of_a_simulation(tmp_path: Path) -> None:
    door = DOORS["run.json"]
    with raises("E-CLI-033"):
        door.read(_folder(tmp_path / door.name))


@pytest.mark.parametrize("text", ["3", "[]", "null", '"x"', "[" * 100_000, "{", ""])
def test_a_damaged_run_file_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with raises("E-CLI-033|E-CLI-060", MANIFEST):
        DOORS["run.json"].read(tmp_path / MANIFEST)


def test_a_scenario_with_a_long_name_of_a_robot(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(f'format = "scenario"\nrobot = "planar:{"9" * 400}"\n')
    assert scenario.read(path).top["robot"].startswith("planar:")


def test_lint_of_an_empty_product_of_inertia(tmp_path: Path) -> None:
    """An empty element means zero, as in SDF."""
    path = tmp_path / "a.sdf"
    path.write_text(
        '<sdf version="1.9"><model name="m"><link name="a"><inertial><mass>1</mass><inertia>'
        "<ixx>1</ixx><iyy>1</iyy><izz>9</izz><ixy> </ixy><ixz>0</ixz><iyz>0</iyz>"
        "</inertia></inertial></link></model></sdf>"
    )
    assert "triangle" in {finding.check for finding in lint(path)}


def test_absurd_inertias_load_or_are_refused(tmp_path: Path) -> None:
    for mass, moment in (
        ("1e300", "1e300"),
        ("1e-320", "1e-320"),
        ("1e99", "1e-320"),
        ("1", "1e200"),
    ):
        path = tmp_path / "a.urdf"
        inertia = f'<mass value="{mass}"/><inertia ixx="{moment}" iyy="{moment}" izz="{moment}" '
        path.write_text(
            '<robot name="r"><link name="base"/>'
            f'<link name="a"><inertial><origin xyz="1e90 0 0"/>{inertia} ixy="0" ixz="0" iyz="0"/>'
            '</inertial></link><joint name="j" type="continuous"><parent link="base"/>'
            '<child link="a"/><origin xyz="1e90 0 0"/><axis xyz="0 0 1"/></joint></robot>'
        )
        try:
            robot = chasles.load(path)
        except chasles.ModelError:
            continue
        assert np.all(np.isfinite(robot.mass_matrix([0.0])))
        lint(path)


FAR = "<pose>1e308 1e308 0 0.3 0.2 0.1</pose>"
ODD = {
    "far.sdf": (
        f'<sdf version="1.9"><model name="far"><link name="a">{FAR}</link>'
        f'<link name="b"><pose relative_to="a">1e308 1e308 0 0 0 0.7</pose></link>'
        f'<joint name="j" type="revolute"><pose>1e308 0 0 0.4 0 0</pose><parent>a</parent>'
        "<child>b</child><axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"
    ),
    "list.toml": 'format = "mechanism"\n[[link]]\nname = "a"\nmass = [1.0]\n',
    "quaternion.xml": (
        '<mujoco><worldbody><body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1" '
        'quat="-1e308 0.3 -0.1 0.9"/></body></worldbody></mujoco>'
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_numbers_that_overflow_are_refused(name: str, tmp_path: Path) -> None:
    """Products of finite numbers that overflow, and lists in place of numbers, are refused."""
    path = tmp_path / name
    path.write_text(ODD[name], "utf-8")
    with pytest.raises(chasles.ChaslesError):
        chasles.load(path)
    assert lint(path)
