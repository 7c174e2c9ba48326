"""Where files are that a robot's file names: by a path, or in a package or a model's folder."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

VARIABLES = (
    "ROS_PACKAGE_PATH",
    "SDF_PATH",
    "GZ_SIM_RESOURCE_PATH",
    "IGN_GAZEBO_RESOURCE_PATH",
    "GAZEBO_MODEL_PATH",
)
"""The lists of folders with packages or models that ROS, sdformat and Gazebo look through."""

_NAMED = re.compile(r"(?:package|model)://+([^/]+)/*(.*)")


def package_of(name: str) -> str:
    """The package or model that a name is of; "" of a plain one."""
    inside = _NAMED.fullmatch(name)
    return "" if inside is None else inside[1]


def candidates(name: str, robot_file: str) -> Iterator[Path]:
    """Where the file or folder may be that a robot's file calls `name`, best first.

    package://NAME/PATH and model://NAME/PATH are looked for in the folders above the robot's file,
    in those of `VARIABLES`, and in what example-robot-data installs; a plain name is seen from the
    robot's file.
    """
    folder = Path(os.path.abspath(robot_file)).parent
    inside = _NAMED.fullmatch(name)
    if inside is None:
        yield folder / name.removeprefix("file://")
        return
    package, path = inside.groups()
    for place in _places(folder):
        yield place / package / path
        if place.name == package:
            yield place / path


def _places(folder: Path) -> Iterator[Path]:
    """Folders that may hold packages and models, or be one."""
    yield from (folder, *folder.parents)
    for variable in VARIABLES:
        yield from map(Path, filter(None, os.environ.get(variable, "").split(os.pathsep)))
    yield from (Path(entry) / "cmeel.prefix" / "share" for entry in sys.path)
