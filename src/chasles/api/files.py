"""Load and save robots, and convert Denavit-Hartenberg tables: load, save, from_dh, to_dh."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from chasles import formats
from chasles.backends.arrays import check_tolerance
from chasles.errors import ArgumentError, LeftOutWarning, ModelError, shown, warn
from chasles.formats import a_path, is_name, registry
from chasles.functions.doors import check_robot
from chasles.model.build import with_leaders
from chasles.model.denavit_hartenberg import Convention, DHRow, DHTable, in_degrees
from chasles.model.dh_fields import TABLE, checked
from chasles.model.dh_fit import dh_table
from chasles.model.edit import opened, unsprung
from chasles.model.given import some_names
from chasles.robot import Robot


def load(
    path: str | os.PathLike[str],
    *,
    floating: bool = False,
    mimic: bool = True,
    snap: bool = True,
    strict: bool = False,
    arguments: Mapping[str, str] | None = None,
    trust: bool = False,
    loops: bool = True,
    omit: Sequence[str] = (),
    loop_tolerance: float | None = None,
    springs: bool = True,
) -> Robot:
    """Load a robot from a file.

    Parameters
    ----------
    path : str or path
        File name with the extension .urdf, .xacro, .sdf, .toml (a mechanism file,
        docs/mechanism-files.md, or a Denavit-Hartenberg table, docs/dh.md), .xml or .mjcf (MuJoCo,
        docs/mjcf.md), or .dat (Legnani et al. 1996, fig. 6). A name without an extension selects a
        robot installed by example-robot-data or robot_descriptions, as in load("panda");
        `chasles.robots.installed()` lists them. A leading "~" denotes the home folder.
    floating : bool, optional
        Attach the root link to the world by a free joint (floating base).
    mimic : bool, optional
        Remove the coordinates of mimic joints, which follow their leaders (default). False makes
        every joint independent, as in Pinocchio.
    snap : bool, optional
        Replace rounded multiples of a right angle, such as 1.5708, with the exact angle (default).
        `robot.notes` lists the replacements.
    strict : bool, optional
        Raise an error for an invalid inertia instead of adding a note.
    arguments : mapping from str to str, optional
        Arguments for a xacro file.
    trust : bool, optional
        Allow a xacro file to run Python and to read any file and the environment. By default, only
        arithmetic and xacro's own functions are allowed (docs/formats.md#xacro).
    loops : bool, optional
        False ignores all loop joints and couplings; `omit` ignores some of them.
    omit : sequence of str, optional
        Names of loops and couplings (equalities in MJCF) to ignore. Mimic joints named here become
        independent.
    loop_tolerance : float, optional
        Maximum residual for which a loop equation counts as redundant and is dropped (rad for
        angles, relative to the loop size for lengths). Default: 1e-4, or up to 1e-3 if the numbers
        in the file have few digits (docs/loops.md#loops-with-rounded-dimensions).
    springs : bool, optional
        False ignores joint and tendon springs.

    Returns
    -------
    Robot
        The robot; `robot.notes` lists assumptions and repairs made during loading.

    Raises
    ------
    ModelError
        If the file does not exist or does not describe a robot, or if a loop, coupling or mimic
        joint in `omit` does not exist.
    ArgumentError
        If `path` is not a file name, if `loops` is not True or False, or if `omit` is not a
        sequence of names.
    InputError
        If `loop_tolerance` is not a positive finite number.

    Warns
    -----
    LeftOutWarning
        If springs are ignored, or if the file contains force elements that are not supported.

    Examples
    --------
    >>> import chasles, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "arm.toml"
    >>> notes = chasles.save(chasles.robots.planar(2), path)
    >>> chasles.load(path)
    <Robot 'planar': 2 joints, nq 2, nv 2>
    """
    path = a_path(path, "load")
    if not isinstance(loops, bool | np.bool_):
        problem = f"loops must be True or False, not {loops!r:.60}"
        remedy = "to ignore some loops, name them in `omit`, as in omit=['crank']"
        raise ArgumentError("E-FILE-590", problem, remedy, part="load")
    file = _found(path) if is_name(path) else path
    source = formats.read(file, snap=snap, floating=floating, arguments=arguments, trust=trust)
    if not isinstance(omit, tuple) or omit or not loops:
        left_out = some_names("omit", omit, "load")
        if not loops or left_out:
            source = opened(source, left_out if loops else None)
    if loop_tolerance is not None:
        check_tolerance("load", loop_tolerance)
        precision = replace(source.precision, loops=float(loop_tolerance))
        source = replace(source, precision=precision)
    if springs is False:
        source = unsprung(source)
    if mimic:
        source = with_leaders(source)
    for what in source.unsupported:
        warn(shown(what), LeftOutWarning)
    return Robot(source, mimic=mimic, strict=strict)


def _found(name: str) -> Path:
    """Return the path of an installed robot file, or raise an error if the robot is built in."""
    plain = re.sub("[^a-z0-9]", "", name.lower())
    for known in registry.BUILT_IN:
        if known.replace("_", "") == plain:
            problem = f"{name!r} is a built-in robot, not a file"
            raise ModelError("E-FILE-410", problem, f"use chasles.robots.{known}()", part="load")
    return registry.find(name, also=registry.BUILT_IN)


def save(robot: Robot, path: str | os.PathLike[str], *, overwrite: bool = False) -> tuple[str, ...]:
    """Save a robot to a file, with numbers at full precision.

    A robot loaded from this file moves like the original. Mimic joints are saved as mimic joints,
    even if the robot was loaded with mimic=False. If an error occurs, no partial file remains.

    Parameters
    ----------
    robot : Robot
        The robot to save.
    path : str or path
        File name with the extension .toml (a mechanism file, which stores everything except
        user-defined joint types and couplings that are not polynomials), .urdf, .sdf, or .xml or
        .mjcf (MuJoCo). See docs/formats.md for the features of each format.
    overwrite : bool, optional
        Replace an existing file.

    Returns
    -------
    tuple of str
        Notes about features that the format cannot store but that do not affect the motion, such
        as velocity limits in MJCF.

    Raises
    ------
    ModelError
        If the file type is unknown, or if the format cannot represent a part of the robot that
        affects the motion.
    ExistingFileError
        If the file exists and `overwrite` is False.
    FileError
        If the file cannot be written.
    ArgumentError
        If `robot` is not a Robot, or if `path` is not a file name.

    Examples
    --------
    >>> import chasles, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "arm.urdf"
    >>> chasles.save(chasles.robots.planar(2), path)
    ()
    """
    check_robot("save", robot)
    return formats.write(robot.model.source, a_path(path, "save"), overwrite=overwrite)


def from_dh(
    rows: DHTable | Sequence[DHRow | Mapping[str, Any] | Sequence[float]] | np.ndarray,
    *,
    convention: Convention | None = None,
    name: str | None = None,
    gravity: Sequence[float] | None = None,
    base: Any = None,
    tool: Any = None,
) -> Robot:
    """Return a serial arm described by Denavit-Hartenberg parameters.

    Parameters
    ----------
    rows : sequence of DHRow or mapping, (n, 4) array_like, or DHTable
        Rows of the table in m, rad and kg. The columns of an array are theta, d, a and alpha; all
        joints are then revolute, and links have no mass, so only kinematics is available.
    convention : {"modified", "standard"}
        "modified" is Rx(alpha) Tx(a) Rz(theta) Tz(d), "standard" is Rz(theta) Tz(d) Tx(a)
        Rx(alpha). Required unless `rows` is a DHTable, because the same rows describe a different
        robot in each convention.
    name : str, optional
        Name of the robot.
    gravity : array_like, shape (3,), optional
        Gravitational acceleration (m/s2) in world axes.
    base : array_like, shape (4, 4), optional
        Pose of frame 0 in the world.
    tool : array_like, shape (4, 4), optional
        Pose of the tool in the last frame.

    Returns
    -------
    Robot
        Links are named base, link1, ... and joints joint1, ... unless the rows name them. Frame i
        of the table is named "dh<i>", frame 0 is "base", and the tool frame is "tool".

    Raises
    ------
    ModelError
        If `convention` is missing, is unknown or differs from that of the table, if there are no
        rows, or if a row is not valid. The message gives the row.

    Notes
    -----
    If `rows` is a `DHTable`, omitted arguments default to its values. An angle equal to a multiple
    of math.pi / 2 in double precision is treated as an exact multiple of a right angle.

    Examples
    --------
    >>> import chasles
    >>> chasles.from_dh([[0, 0, 0.5, 0], [0, 0, 0.4, 0]], convention="standard")
    <Robot 'arm': 2 joints, nq 2, nv 2>
    """
    options = {"name": name, "gravity": gravity, "base": base, "tool": tool}
    given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    if isinstance(rows, DHTable):
        if convention not in (None, rows.convention):
            problem = f"the rows follow the {rows.convention} convention, not {convention}"
            remedy = "omit `convention`, or convert the robot with chasles.to_dh"
            raise ModelError("E-ROBOT-001", problem, remedy)
        return Robot(replace(rows, **given).description())
    if convention is None:
        problem = "`convention` must be 'modified' or 'standard'"
        remedy = "use 'modified' for Craig or Khalil, 'standard' for Denavit, Paul or Corke"
        raise ModelError("E-ROBOT-002", problem, remedy)
    table = DHTable(rows, convention, **given)  # type: ignore[arg-type]
    for note in in_degrees(table.rows):
        warn(f"from_dh: {note}")
    return Robot(table.description())


def to_dh(robot: Robot, *, convention: Convention = "modified", tool: str | None = None) -> DHTable:
    """Return the Denavit-Hartenberg table of a serial arm with revolute and prismatic joints.

    Parameters
    ----------
    robot : Robot
        A serial arm with joint axes in any direction.
    convention : {"modified", "standard"}, optional
        Denavit-Hartenberg convention of the table.
    tool : str, optional
        Frame at the end of the arm. Default: the last frame that moves with the last link.

    Returns
    -------
    DHTable
        Table of the arm. `from_dh` converts it to a robot with the same tool poses, dynamics and
        joint coordinates, ordered from base to tool.

    Raises
    ------
    ArgumentError
        If `robot` is not a Robot.
    ModelError
        If `convention` is unknown, if the robot is not a serial arm of revolute and prismatic
        joints, if two axes are nearly but not exactly parallel, or if `tool` is not a frame on the
        last link.

    Notes
    -----
    If the link frames already satisfy a Denavit-Hartenberg convention (from_dh, .toml, .dat, the
    built-in arms), they are kept. Otherwise, frames follow the rules of Balafoutis and Patel (1991,
    section 2.3): x along common normals, d = 0 between parallel axes. Inertias are expressed in the
    table's frames; `base` and `tool` contain the transforms that rows cannot represent.

    Examples
    --------
    >>> import chasles
    >>> len(chasles.to_dh(chasles.robots.puma560(), convention="modified").rows)
    6
    """
    check_robot("to_dh", robot)
    return dh_table(robot.model, checked(TABLE, "convention", convention), tool)
