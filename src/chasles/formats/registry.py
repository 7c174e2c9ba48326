"""Find robot files in installed packages, and files that a robot file refers to."""

import difflib
import itertools
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from chasles.errors import ModelError
from chasles.formats.files import suffixes

_MOST_FILES = 100_000
"""Maximum number of files to search in a folder; the robot_descriptions cache contains fewer."""


BUILT_IN = (
    *("puma560", "stanford_arm", "microbot", "planar", "zigzag", "general_chain", "general_tree"),
    *("quadruped", "humanoid", "slider_crank", "four_bar", "triangle", "five_bar", "six_bar"),
    *("stewart", "delta", "random_tree"),
)
"""Names of built-in robots, which are created by functions in `chasles.robots`."""


class Found(NamedTuple):
    """A robot file: its name without suffix, the package that installed it, and its path."""

    name: str
    source: str
    path: Path


def folders() -> dict[str, list[Path]]:
    """Return the existing folders that contain robot files, for each package."""
    data = [Path(p) / "cmeel.prefix/share/example-robot-data/robots" for p in sys.path if p]
    given = os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions")
    # unlike Path.expanduser, os.path.expanduser does not fail if there is no home folder
    cache = Path(os.path.expanduser(given))
    places = {"example-robot-data": data, "robot_descriptions": [cache]}
    return {
        name: [path for path in dict.fromkeys(paths) if path.is_dir()]
        for name, paths in places.items()
    }


def installed() -> list[Found]:
    """Return all robot files in installed packages (.urdf, .sdf, MJCF .xml), sorted by name.

    Returns
    -------
    found : list of Found
        Name, package and path of each file.

    Notes
    -----
    The packages are example-robot-data and robot_descriptions; for the latter, the download cache
    is searched.

    Examples
    --------
    >>> import chasles
    >>> isinstance(chasles.robots.installed(), list)
    True
    """
    found = [
        Found(path.stem, source, path)
        for source, places in folders().items()
        for place in places
        for path in _files(place)
    ]
    return sorted(found, key=lambda robot: (robot.name.lower(), robot.source, str(robot.path)))


def find(name: str, also: Iterable[str] = ()) -> Path:
    """Find the file of an installed robot by name, ignoring case and the suffix "_robot".

    Parameters
    ----------
    name : str
        Name of the robot, which is its file name without suffix.
    also : iterable of str, optional
        Additional names to suggest in the error message.

    Returns
    -------
    path : Path
        Path of the robot file.

    Raises
    ------
    ModelError
        If no installed robot, or more than one, has this name.

    Examples
    --------
    >>> import chasles
    >>> names = [robot.name for robot in chasles.robots.installed()]
    >>> all(chasles.robots.find(name).is_file() for name in names if names.count(name) == 1)
    True
    """
    known, wanted = installed(), name.lower()
    same = [robot for robot in known if robot.name.lower() == wanted]
    same = same or [robot for robot in known if robot.name.lower() == f"{wanted}_robot"]
    exact = [robot for robot in same if robot.name == name]
    if len(exact or same) == 1:
        return (exact or same)[0].path
    if same:
        paths = ", ".join(str(robot.path) for robot in exact or same)
        problem = "several robots have this name"
        remedy = f"give the path of one of these files: {paths}"
        raise ModelError("E-FILE-034", problem, remedy, part=name)
    names = dict.fromkeys([*also, *(robot.name for robot in known)])
    begin = [each for each in names if each.lower().startswith(wanted)]
    plain = {each.lower().removesuffix("_robot"): each for each in reversed(names)}
    alike = difflib.get_close_matches(wanted, plain, n=3)
    close = (begin or [plain[each] for each in alike])[:3]
    close = [*_nearby(name), *close]
    hint = f"did you mean {', '.join(map(repr, close))}? " if close else ""
    if not known:
        hint += "`pip install example-robot-data` installs many robots; "
    suffix = Path(name).suffix
    kind = f" and the file type {suffix!r} is unknown" if suffix[1:].isalpha() else ""
    fault = "the path is a directory" if os.path.isdir(name) else "there is no such file"
    problem = f"{fault}{kind}, and no installed robot has this name"
    raise ModelError(
        "E-FILE-035", problem, f"{hint}run `chasles robots` to list all robots", part=name
    )


def _nearby(name: str) -> list[str]:
    """Return robot files with similar names in the folder of the path `name`."""
    path = Path(name)
    try:
        with os.scandir(path.parent) as entries:
            some = itertools.islice(entries, _MOST_FILES)
            names = [each.name for each in some if Path(each.name).suffix in suffixes()]
    except OSError:
        return []
    same = [each for each in names if Path(each).stem == path.name]
    close = same or difflib.get_close_matches(path.name, names, n=3)
    return [str(path.parent / each) for each in close[:3]]


def _files(folder: Path) -> Iterator[Path]:
    """Yield the robot files in a folder and its subfolders."""
    count, known = 0, suffixes(installed=True)
    for place, within, names in os.walk(folder):
        within[:] = sorted(name for name in within if not name.startswith("."))
        for name in sorted(names):
            count += 1
            if count > _MOST_FILES:
                return
            path = Path(place, name)
            if path.suffix in known and (path.suffix != ".xml" or _is_mjcf(path)):
                yield path


def _is_mjcf(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            start = stream.read(4096)
    except OSError:
        return False
    return b"<mujoco" in start and b"<mujocoinclude" not in start


# Files that a robot file refers to -------------------------------------------------------------

VARIABLES = (
    *("ROS_PACKAGE_PATH", "SDF_PATH", "GZ_SIM_RESOURCE_PATH"),
    *("IGN_GAZEBO_RESOURCE_PATH", "GAZEBO_MODEL_PATH"),
)
"""Environment variables that contain the search paths of ROS, sdformat and Gazebo."""

MESHES = (".stl", ".obj", ".dae", ".ply", ".glb", ".off")
LARGEST = 100 * 2**20
"""Maximum size of a mesh file (bytes)."""

_NAMED = re.compile(r"(?:package|model)://+([^/]+)/*(.*)")


def package_of(name: str) -> str:
    """Return the package name in a package:// or model:// URI; "" for a plain file name."""
    inside = _NAMED.fullmatch(name)
    return "" if inside is None else inside[1]


def package_remedy(package: str) -> str:
    """Return the remedy for a package that was not found; "" for a plain file name."""
    return f"add the folder that contains {package} to ROS_PACKAGE_PATH" if package else ""


def candidates(name: str, robot_file: str) -> Iterator[Path]:
    """Yield possible paths for a file name in a robot file, the most likely first.

    package://NAME/PATH and model://NAME/PATH are searched in all parent folders of the robot file,
    in the folders listed in `VARIABLES`, and in example-robot-data. A plain name is relative to the
    robot file.
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
    """Yield folders in which ROS packages and Gazebo models may be found."""
    yield from (folder, *folder.parents)
    for variable in VARIABLES:
        yield from map(Path, filter(None, os.environ.get(variable, "").split(os.pathsep)))
    yield from (Path(entry) / "cmeel.prefix" / "share" for entry in sys.path)


def mesh_file(name: str, robot_file: str) -> Path | None:
    """Return the path of a robot's mesh file; None if the file is missing or too large."""
    for path in candidates(name, robot_file):
        drawn = path.suffix.lower() in MESHES and os.path.isfile(path)
        if drawn and path.stat().st_size <= LARGEST:
            return path
    return None
