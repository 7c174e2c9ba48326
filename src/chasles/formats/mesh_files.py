"""The mesh files that a robot's file names: where they are, and their names in another file."""

import os
from pathlib import Path

from chasles.formats.resources import candidates

SUFFIXES = (".stl", ".obj", ".dae", ".ply", ".glb", ".off")
LARGEST = 100 * 2**20
"""Bytes of a mesh; a larger one is no picture of a link."""


def mesh_file(name: str, robot_file: str) -> Path | None:
    """The file that a robot's file calls `name`, or None where there is none that can be drawn.

    `chasles.formats.resources` says where it is looked for.
    """
    for path in candidates(name, robot_file):
        if path.suffix.lower() in SUFFIXES and path.is_file() and path.stat().st_size <= LARGEST:
            return path
    return None


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
