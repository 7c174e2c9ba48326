"""Why a robot differs between two libraries: the likely cause of the first difference."""

from collections.abc import Callable, Sequence

import numpy as np

from chasles.model.validate import check_inertias
from chasles.peers.terms import Peer, Side, Term, poses
from chasles.robot import Robot

SNAPPED = 1e-3
"""Angles that are taken as right angles move links by less than this, in rad and m."""


def of_joints(robot: Robot, peer: Peer) -> str:
    """Explain unlike joints or numbers of freedoms of the two sides; "" if they are alike."""
    source = robot.model.source
    known = {joint.name: joint for joint in source.joints}
    followers = [name for name in peer.joints if name not in robot.joints and name in known]
    followers = [name for name in followers if known[name].mimic is not None]
    if followers:
        return (
            f"mimic: joint {followers[0]!r} follows another here and has a coordinate there; load "
            "with mimic=False (--no-mimic)"
        )
    if peer.nv - robot.nv in (6, -6):
        where = "there" if peer.nv > robot.nv else "here"
        return f"floating base: the root is free {where} only; load both alike (--floating)"
    theirs = [name for name in peer.joints if name not in known]
    ours = [name for name in robot.joints if name not in peer.joints]
    renamed = len(theirs) == 1 and [robot.joint(name).traits.floating for name in ours] == [True]
    common = len(ours) < len(robot.joints)  # else the order of the joints is all there is
    if peer.nv != robot.nv or (ours and common and not renamed):
        return f"joints: {_some('here', ours)}, {_some('there', theirs)}"
    return ""


def _some(where: str, names: Sequence[str]) -> str:
    return f"only {where} {', '.join(map(repr, names[:3])) or 'none'}"


def of_term(sides: Sequence[Side], first: Term, renamed: Callable[[], Side | None]) -> str:
    """The likely cause of the first difference; renamed: the state with joints in order."""
    cause = CAUSES[first.name]
    return cause.format(of=first.of) if isinstance(cause, str) else cause(sides, first, renamed)


Renamed = Callable[[], Side | None]


def _placement(sides: Sequence[Side], first: Term, renamed: Renamed) -> str:
    side, link = sides[0], first.of.split("'")[1]
    notes = [note for note in side.robot.notes if "taken as" in note]
    if notes and abs(first.here - first.there) < SNAPPED:
        return f"snap: {notes[0]}; load with snap=False (--no-snap)"
    other = renamed()
    if other is not None and all(term.error <= 1e-9 for term in poses(other)):
        return (
            "joint order: the joints agree in their order, not by their names; names are exchanged "
            "in one of the files"
        )
    apart = []
    for at in sides:
        here = at.of_link("forward_kinematics", link)
        apart.append(np.linalg.solve(here, at.answers.poses[link]))
    if np.allclose(apart[0], apart[1], rtol=0.0, atol=1e-9):
        moved = ", ".join(f"{x:.4g}" for x in apart[0][:3, 3])
        return (
            f"frame: link {link!r} has another frame there, in the same place of the link at every "
            f"position: moved by ({moved}) m, and turned if that is zero"
        )
    return f"joint: the joint that moves link {link!r} has another axis, placement or zero there"


def _mass(sides: Sequence[Side], first: Term, renamed: Renamed) -> str:
    robot, both = sides[0].robot, f"{first.here:g} kg here, {first.there:g} kg there"
    return (
        _replaced(robot, first)
        or _of_shapes(robot, first)
        or f"mass: {first.of} and what is fixed to it weigh {both}"
    )


def _inertia(sides: Sequence[Side], first: Term, renamed: Renamed) -> str:
    what = "another centre of mass" if first.where[0] < 3 else "other moments of inertia"
    return _replaced(sides[0].robot, first) or f"inertia: {first.of} has {what} there"


def _replaced(robot: Robot, first: Term) -> str:
    """Explain an impossible inertia of a link, or of one fixed to it, which libraries replace."""
    links = [f"link {name!r}:" for name in _fixed_to(robot, first)]
    for note in check_inertias(robot.model.source, robot.model, strict=False):
        if any(link in note for link in links):
            return f"impossible inertia: {note}; another one is in its place there (chasles lint)"
    return ""


def _of_shapes(robot: Robot, first: Term) -> str:
    """Explain a link, or one fixed to it, without mass: MuJoCo takes that of its shapes."""
    fixed = _fixed_to(robot, first)
    empty = [x.name for x in robot.model.source.links if x.name in fixed and not x.inertia.m]
    if empty and first.there > first.here:
        return f"shapes: link {empty[0]!r} has no mass in the file, so MuJoCo takes its shapes'"
    return ""


def _fixed_to(robot: Robot, first: Term) -> list[str]:
    """The names of a term's link and of all that moves with it."""
    frames = robot.model.frames
    body = frames[first.of.split("'")[1]].body
    return [name for name, frame in frames.items() if frame.body == body]


def _mass_matrix(sides: Sequence[Side], first: Term, renamed: Renamed) -> str:
    side = sides[0]
    there = side.convention.from_mass_matrix(side.x, side.answers.mass_matrix)
    apart = side.robot.mass_matrix(side.q) - there
    if np.max(np.abs(apart - np.diag(np.diag(apart)))) <= 1e-9 * np.max(np.abs(there)):
        freedom = int(np.argmax(np.abs(np.diag(apart))))
        slices = {name: side.robot.velocity_slice(name) for name in side.robot.joints}
        joint = next(name for name, x in slices.items() if x.start <= freedom < x.stop)
        return (
            f"armature: the mass matrices differ on the diagonal alone, most at joint {joint!r}, "
            f"by {apart[freedom, freedom]:.6g}; one side has inertia of rotors that the other lacks"
        )
    return "inertia: links are placed alike and weigh the same, but the mass matrices differ"


CAUSES: dict[str, str | Callable[[Sequence[Side], Term, Renamed], str]] = {
    "placement": _placement,
    "mass": _mass,
    "inertia": _inertia,
    "Jacobian": "joint: links are placed alike, but {of} moves otherwise: another point or axes",
    "mass matrix": _mass_matrix,
    "gravity forces": "gravity: the same masses weigh otherwise; compare robot.gravity with the "
    "other side's",
    "bias forces": "velocity: at rest both agree; velocities of a joint are written otherwise "
    "there",
    "loops": "loops: a loop that is closed here is open there; its frames are elsewhere",
}
"""One row a term that may differ: what is likely, if it differs and those before it do not."""
