"""The mesh files that a robot's file names: where they are, and their names in another file."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SUFFIXES = (".stl", ".obj", ".dae", ".ply", ".glb", ".off")
LARGEST = 100 * 2**20
"""Bytes of a mesh; a larger one is no picture of a link."""

_PACKAGE = re.compile(r"(?:package|model)://+([^/]+)/(.+)")


def mesh_file(name: str, robot_file: str) -> Path | None:
    """The file that a robot's file calls `name`, or None where there is none that can be drawn.

    package://PACKAGE/PATH (also model://) is looked for in the folders above the robot's file, in
    those of ROS_PACKAGE_PATH, and in what example-robot-data installs; a plain name beside the
    robot's file.
    """
    for path in _candidates(name, Path(robot_file).absolute().parent):
        if path.suffix.lower() in SUFFIXES and path.is_file() and path.stat().st_size <= LARGEST:
            return path
    return None


def package_of(name: str) -> str:
    """The package that a name is of; "" of a plain one."""
    inside = _PACKAGE.fullmatch(name)
    return "" if inside is None else inside[1]


def renamed(name: str, robot_file: str, other: str) -> str:
    """What another robot file calls the mesh that `robot_file` calls `name`.

    Names of packages and whole paths are the same in all; plain ones are as seen from the folder.
    """
    folder, place = (os.path.dirname(os.path.abspath(file)) for file in (robot_file, other))
    if not robot_file or folder == place or "://" in name or os.path.isabs(name):
        return name
    path = os.path.join(folder, name)
    try:
        return Path(os.path.relpath(path, place)).as_posix()
    except ValueError:  # on another drive of Windows
        return path


def _candidates(name: str, folder: Path) -> Iterator[Path]:
    inside = _PACKAGE.fullmatch(name)
    if inside is None:
        yield folder / name.removeprefix("file://")
        return
    package, path = inside.groups()
    for place in _places(folder):
        yield place / package / path
        if place.name == package:
            yield place / path


def _places(folder: Path) -> Iterator[Path]:
    """Folders that may hold packages, or be one."""
    yield folder
    yield from folder.parents
    yield from map(Path, filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)))
    yield from (Path(entry) / "cmeel.prefix" / "share" for entry in sys.path)
