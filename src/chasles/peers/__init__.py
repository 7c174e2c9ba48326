"""Compare robots with other libraries, and find the first difference and its likely cause."""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from chasles import conventions
from chasles.api import save
from chasles.backends.arrays import check_tolerance
from chasles.checks.trial import trial
from chasles.entry_points import Sourced
from chasles.errors import InputError, ModelError, said, shown
from chasles.formats.motion import read
from chasles.functions.doors import check_robot
from chasles.model.description import as_bounded
from chasles.names import one_of
from chasles.peers.terms import TERMS, Peer, Side, Term, cause_of, unlike_joints
from chasles.robot import Robot

TOLERANCE = 1e-9
"""Default relative tolerance, similar to the precision of rotations in files."""


STATES = 20
"""Maximum number of states compared along a motion."""

State = tuple[np.ndarray | None, np.ndarray | None]
"""Positions and velocities of a robot; None stands for random values."""


@dataclass(frozen=True)
class Library:
    """A library's adapter, package and file formats (preferred format first).

    `motors` is True if the library ignores the armature of joints without motors. `weightless` is
    True if the library does not read gravity from files. In this case, the library uses the robot's
    gravity, unless the user passes a file.
    """

    source: str
    package: str
    suffixes: tuple[str, ...]
    convention: Callable[..., conventions.Convention]
    motors: bool = False
    weightless: bool = False

    opened = Sourced("chasles.peers")
    """Callable that loads a robot file with the library."""


LIBRARIES: dict[str, Library] = {
    "pinocchio": Library(
        "pinocchio:Pinocchio", "pin", (".urdf", ".xml"), conventions.pinocchio, weightless=True
    ),
    "mujoco": Library("mujoco:MuJoCo", "mujoco", (".xml", ".urdf"), conventions.mujoco),
    "drake": Library(
        "drake:Drake", "drake", (".urdf", ".sdf", ".xml"), conventions.drake, motors=True
    ),
}
"""Supported libraries, by name."""


@dataclass(frozen=True)
class Agreement:
    """Result of `compare`: the largest difference in each term, such as the mass matrix.

    `first` is the first difference above the tolerance, and `cause` is its likely cause.
    `uncompared` lists parts of the robot or its file that were not compared.
    """

    robot: str
    library: str
    tolerance: float
    terms: tuple[tuple[str, Term], ...]
    first: str = ""
    cause: str = ""
    uncompared: tuple[str, ...] = ()

    def __repr__(self) -> str:
        robots = f"{shown(repr(self.robot))} and {self.library}"
        found = f"first difference: {shown(self.first)}" if self.first else "no difference"
        return f"<Agreement of {robots}: {len(self.terms)} terms, {found}>"

    @property
    def ok(self) -> bool:
        """Return True if no difference between the robot and the library exceeds the tolerance."""
        return not self.first


def compare(
    robot: Robot,
    library: str,
    path: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    motion: str | os.PathLike[str] | None = None,
) -> Agreement:
    """Compare a robot, term by term, with the same robot loaded by another library.

    Parameters
    ----------
    robot : Robot
        The robot.
    library : {"pinocchio", "mujoco", "drake"}
        Library to compare with.
    path : str or path, optional
        File for the library. Default: the robot is written in a format that the library reads.
    seed : int, optional
        Seed of the random state.
    tolerance : float, optional
        Maximum allowed difference, relative to the largest entry.
    motion : str or path, optional
        Output of `chasles simulate` (folder or file), or a motion file. Terms are compared at up to
        20 evenly spaced states of the motion instead of at a random state.

    Returns
    -------
    Agreement
        Largest difference in each term, the first difference and its likely cause.

    Raises
    ------
    ArgumentError
        If `robot` is not a Robot.
    InputError
        If `library` is unknown or not installed, if it cannot read the file, if `tolerance` is not
        a positive finite number, or if no configuration is found in which the loops are closed.
    ModelError
        If no format of the library can represent the robot, or if the motion file is not valid.

    Notes
    -----
    Joint orders, quaternions and floating-base velocities are converted (`chasles.conventions`).
    Terms are compared in this order: placements, masses and inertias, Jacobians, mass matrix,
    gravity and bias forces, accelerations, loops. A difference in one term causes differences in
    later terms. Accelerations computed with actuator forces are compared only with MuJoCo.

    Examples
    --------
    >>> import chasles
    >>> chasles.compare(chasles.robots.planar(2), "mujoco").ok
    True
    """
    check_robot("compare", robot)
    check_tolerance("compare", tolerance)
    if library not in LIBRARIES:
        problem = f"unknown library {library!r}"
        raise InputError("E-PEER-002", problem, one_of(library, LIBRARIES), part="compare")
    chosen = LIBRARIES[library]
    with tempfile.TemporaryDirectory() as folder:
        file = _written(robot, chosen, Path(folder)) if path is None else Path(path)
        if file.suffix not in chosen.suffixes:
            problem = f"{library} reads only {' or '.join(chosen.suffixes)} files"
            remedy = "pass a file in a supported format as `path` (--file on the command line)"
            raise InputError("E-PEER-001", problem, remedy, file=file)
        peer = _opened(chosen, file, robot)
    if path is None and chosen.weightless:
        peer.gravity = robot.gravity
    peer.joints = tuple(_known_here(robot, name) for name in peer.joints)
    found = Agreement(robot.name, library, tolerance, ())
    different = unlike_joints(robot, peer)
    if different:
        words = f"{robot.nv} degrees of freedom in chasles, {peer.nv} in the other library"
        return replace(found, first=words, cause=different)
    pulled = robot.gravity - peer.gravity
    if np.max(np.abs(pulled)) > tolerance * max(1.0, float(np.max(np.abs(peer.gravity)))):
        here, there = (", ".join(f"{x:g}" for x in g) for g in (robot.gravity, peer.gravity))
        words = f"gravity: ({here}) m/s2 in chasles, ({there}) in the other library"
        return replace(
            found, first=words, cause="gravity: use the same gravity in both (with_gravity)"
        )
    states = [(None, None)] if motion is None else _states(robot, motion)
    return _by_terms(found, _with_coordinates_of(peer, robot), peer, chosen, seed, states)


def _states(robot: Robot, motion: str | os.PathLike[str]) -> list[State]:
    """Return evenly spaced states of a motion. Missing velocities are zero."""
    still = np.zeros(robot.nv)
    every = [
        (q, still if part.qd is None else part.qd[k])
        for part in read(motion, robot.model)
        for k, q in enumerate(part.q)
    ]
    chosen = np.linspace(0, len(every) - 1, min(len(every), STATES)).round().astype(int)
    return [every[k] for k in chosen]


def _known_here(robot: Robot, name: str) -> str:
    """Return the chasles name of a joint, given its name in the library.

    A library may name a free joint after its link.
    """
    longer = f"{name}_free"
    return longer if name not in robot.joints and longer in robot.joints else name


def _with_coordinates_of(peer: Peer, robot: Robot) -> Robot:
    """Return the robot with each revolute joint made continuous or bounded, as in `peer`.

    `peer` is the robot loaded by the library that chasles is compared with.
    """
    source = robot.model.source
    joints = tuple(
        replace(joint, kind=as_bounded(joint.kind, joint.name not in peer.circles))
        if joint.traits.hinge
        else joint
        for joint in source.joints
    )
    same = joints == source.joints
    return robot if same else Robot(replace(source, joints=joints), mimic=robot.mimic)


def _written(robot: Robot, library: Library, folder: Path) -> Path:
    """Save the robot in a format that the library reads, and return the path.

    The formats are tried in order of preference until one can represent the robot.
    """
    refused: ModelError | None = None
    for suffix in library.suffixes:
        file = folder / f"robot{suffix}"
        try:
            save(robot, file)
        except ModelError as error:
            refused = error
        else:
            if library.motors and suffix == ".xml":
                _add_motors(file)
            return file
    assert refused is not None, "every library reads at least one format"
    raise refused


def _add_motors(file: Path) -> None:
    """Add a motor to every joint that has armature, in an MJCF file."""
    document = etree.parse(file)
    motors = etree.SubElement(document.getroot(), "actuator")
    for joint in document.iterfind(".//worldbody//joint[@armature]"):
        etree.SubElement(motors, "motor", joint=joint.get("name", ""))
    document.write(file)


def _by_terms(
    found: Agreement, robot: Robot, peer: Peer, library: Library, seed: int, states: Sequence[State]
) -> Agreement:
    """Compare all terms at the given states, and add the results to `found`.

    If the positions or velocities of a state are None, random values are used for both.
    """

    def side(seed: int, convention: conventions.Convention, state: State = states[0]) -> Side:
        at = trial(robot, seed)
        q, qd = state
        if q is not None and qd is not None:
            at = replace(at, q=q, qd=qd)
        x, v = convention.to_position(at.q), convention.to_velocity(at.q, at.qd)
        return Side(at, convention, peer.answers(x, v))

    def in_order() -> Side | None:
        """Return the results with joints matched by order, or None if this is not possible."""
        try:
            return side(seed, library.convention(robot))
        except (ModelError, ValueError):
            return None

    known = {joint.name for joint in robot.model.source.joints}
    named = all(peer.joints) and bool(known & set(peer.joints))  # else match joints by order
    by_name = library.convention(robot, list(peer.joints) if named else None)
    sides = [side(seed, by_name), side(seed + 1, by_name, (None, None))]
    every = [sides[0], *(side(seed, by_name, state) for state in states[1:])]
    each = {name: [x for at in every for x in compared(at)] for name, compared in TERMS.items()}
    terms = ((name, max(x, key=lambda term: term.error)) for name, x in each.items() if x)
    found = replace(found, terms=tuple(terms), uncompared=_uncompared(robot, each))
    beyond = [term for x in each.values() for term in x if not term.error <= found.tolerance]
    if not beyond:
        return found
    cause = cause_of(sides, beyond[0], in_order)
    return replace(found, first=str(beyond[0]), cause=cause)


def _uncompared(robot: Robot, terms: Mapping[str, Sequence[Term]]) -> tuple[str, ...]:
    """Return the force elements of the robot that were not compared."""
    source, whole = robot.model.source, bool(terms["accelerations"])
    damped = any(x.damping for x in source.joints) or any(x.damping for x in source.rotors)
    parts = {
        "damping": damped and not whole,
        "actuators": bool(source.actuators) and not whole,
        "fluid": source.fluid is not None and not whole,
        "dry friction": any(joint.friction for joint in source.joints),
    }
    return (*(what for what, there in parts.items() if there), *source.unsupported)


def _opened(library: Library, file: Path, robot: Robot) -> Any:
    module = library.source.partition(":")[0]
    floating = robot.model.floating and file.suffix == ".urdf"
    try:
        return library.opened(file, floating=floating)
    except ImportError:
        problem, remedy = f"{module} is not installed", f"pip install {library.package}"
        raise InputError("E-PEER-003", problem, remedy, part="compare") from None
    except (RuntimeError, ValueError) as error:
        problem = f"{module} cannot read this file: {said(error).strip()}"
        raise InputError("E-PEER-004", problem, file=file) from None
