"""The robot a command is asked about: a file, or a built-in or installed robot by name."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chasles import robots
from chasles.api import load
from chasles.errors import ModelError
from chasles.formats import is_name, registry
from chasles.robot import Robot


@dataclass(frozen=True)
class Loading:
    """How to load a robot; `chasles.load` says what each means. Only files have angles to snap."""

    floating: bool = False
    mimic: bool = True
    snap: bool = True
    strict: bool = False
    arguments: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Asked:
    """The robot that a command is asked about. target: a file or a name, as it was typed."""

    target: str
    how: Loading

    def robot(self) -> Robot:
        """The robot, loaded as asked for."""
        return find(self.target, self.how)

    @property
    def file(self) -> Path | None:
        """The file that it is read from; a built-in robot has none."""
        return located(self.target)


def names(incomplete: str) -> list[str]:
    """Robots whose names begin so, for a shell that completes; files the shell knows itself."""
    built = [name for name in robots.ROBOTS if name.startswith(incomplete)]
    return list(dict.fromkeys([*built, *installed(incomplete)]))


def installed(incomplete: str) -> list[str]:
    """Those of them that have a file."""
    known = dict.fromkeys(robot.name for robot in registry.installed())
    return [name for name in known if name.startswith(incomplete)]


def given(words: Sequence[str]) -> dict[str, str]:
    """Arguments of a xacro file: NAME=VALUE, or NAME:=VALUE as ROS writes it."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name.rstrip(":") or not equals:
            raise ModelError("E-CLI-041", "give NAME=VALUE", part=f"--argument {word}")
        found[name.rstrip(":")] = value
    return found


def find(target: str, how: Loading) -> Robot:
    """The robot of a file, an installed one, or a built-in one: NAME, or planar:4."""
    file = located(target)
    if file is None:
        name, _, arguments = target.partition(":")
        return _loaded(_built(target, name, arguments), how)
    return load(
        file,
        floating=how.floating,
        mimic=how.mimic,
        snap=how.snap,
        strict=how.strict,
        arguments=how.arguments,
    )


def located(target: str) -> Path | None:
    """The file of a robot, or of an installed one by its name; a built-in robot has none."""
    name, _, _ = target.partition(":")
    if name in robots.ROBOTS and not Path(target).exists():
        return None
    return registry.find(target, also=robots.ROBOTS) if is_name(target) else Path(target)


def _built(target: str, name: str, arguments: str) -> Robot:
    make = getattr(robots, name)
    words = inspect.signature(robots.ROBOTS[name]).parameters.values()
    needed = [p.name for p in words if p.default is inspect.Parameter.empty]
    given = arguments.split(",") if arguments else []
    if len(given) != len(needed) or not all(_is_count(word) for word in given):
        usage = f"{name}:{','.join(needed).upper()}" if needed else name
        where = ", with whole numbers" if needed else ", without arguments"
        raise ModelError("E-CLI-042", f"this built-in robot is written {usage}{where}", part=target)
    robot: Robot = make(*map(int, given))
    return robot


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 5


def _loaded(robot: Robot, how: Loading) -> Robot:
    """A built-in robot as the options ask for it."""
    source = robot.model.source
    if how.floating:
        held = {joint.child for joint in source.joints}
        roots = [link.name for link in source.links if link.name not in held]
        if not roots:
            problem = "it floats already"
            raise ModelError("E-CLI-043", problem, "leave out --floating", part=robot.name)
        source = robot.subtree(roots[0], floating=True).model.source
    return Robot(source, mimic=how.mimic, strict=how.strict)
