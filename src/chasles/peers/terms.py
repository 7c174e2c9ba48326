"""Compare a robot with another library term by term, and find causes of differences."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from chasles.checks.floats import evaluate
from chasles.checks.trial import Trial
from chasles.conventions import Convention
from chasles.errors import shown
from chasles.model.validate import check_inertias
from chasles.robot import Robot


@dataclass(frozen=True)
class Answers:
    """Results of the library that chasles is compared with, for one state.

    Attributes
    ----------
    poses
        Pose (4, 4) of each link.
    jacobians
        Jacobian (6, nv) of each link in world axes, with angular rows first.
    inertias
        Ten inertial parameters of each moving link and the links fixed to it, in the link's frame:
        mass, first moment, inertia about the frame's origin (xx, yy, zz, xy, xz, yz).
    bias_forces
        Bias forces with gravity and without damping; springs and gravity compensation are included
        if the library supports them.
    loops
        Closure errors (empty without loops), or None if the library does not report them.
    machine
        Accelerations computed with actuator forces, or None if they are not computed.
    """

    poses: Mapping[str, np.ndarray]
    inertias: Mapping[str, np.ndarray]
    jacobians: Mapping[str, np.ndarray]
    mass_matrix: np.ndarray
    gravity_forces: np.ndarray
    bias_forces: np.ndarray
    loops: np.ndarray | None
    machine: "Machine | None" = None


class Machine(NamedTuple):
    """Accelerations with springs, tendons, damping and actuators, for given controls.

    The accelerations exclude contacts, limits, dry friction and loop constraints.
    """

    controls: np.ndarray
    activations: np.ndarray
    accelerations: np.ndarray


class Peer(Protocol):
    """A robot loaded by another library.

    `circles` are the joints whose coordinates are a cosine and a sine.
    """

    joints: tuple[str, ...]
    circles: tuple[str, ...]
    gravity: np.ndarray
    nv: int

    def answers(self, x: np.ndarray, v: np.ndarray) -> Answers:
        """Return all results to compare, for x and v in the library's coordinates."""
        ...


def ten(mass: float, center: np.ndarray, about_center: np.ndarray) -> np.ndarray:
    """Return the ten inertial parameters from mass, center of mass and inertia about the center."""
    about_origin = about_center + mass * (center @ center * np.eye(3) - np.outer(center, center))
    return moments(mass, mass * center, about_origin)


def moments(mass: float, first: np.ndarray, I: np.ndarray) -> np.ndarray:
    """Return the ten inertial parameters from mass, first moment and inertia about the origin."""
    return np.array([mass, *first, I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])


# Terms ----------------------------------------------------------------------------------------


class Term(NamedTuple):
    """Comparison of a quantity: relative error, and both values of the entry that differs most."""

    name: str
    of: str
    error: float
    where: tuple[int, ...] = ()
    here: float = 0.0
    there: float = 0.0

    def __str__(self) -> str:
        at = f"{list(self.where)}: " if self.where else ""
        what = f"{self.name} of {self.of}" if self.of else self.name
        return shown(
            f"{what}: {at}{self.here:.9g} in chasles, {self.there:.9g} in the other library"
        )


class Side(NamedTuple):
    """A state of the robot, and results for this state from another library, such as Pinocchio.

    Methods evaluate chasles functions uncompiled, because compiling them for all links would take
    minutes.
    """

    at: Trial
    convention: Convention
    answers: Answers

    @property
    def robot(self) -> Robot:
        return self.at.robot

    @property
    def q(self) -> np.ndarray:
        return self.at.q

    @property
    def links(self) -> list[str]:
        """Names of the links that exist in both libraries."""
        return [name for name in self.robot.bodies if name in self.answers.poses]

    @property
    def x(self) -> np.ndarray:
        """Joint positions in the coordinates of the library that chasles is compared with."""
        return self.convention.to_position(self.q)

    def of_link(self, function: str, name: str, **options: Any) -> np.ndarray:
        """Evaluate a function of q for one link."""
        return evaluate(self.robot.model, function, (self.q,), frame=name, **options)[0]

    def dynamics(self, function: str, *rates: np.ndarray) -> np.ndarray:
        """Evaluate a function at q and the given rates, without damping and friction."""
        way = self.at.ways(function)[0].name
        found: np.ndarray = self.at.run(function, self.q, *rates, method=way)
        return found

    @property
    def mass_matrix(self) -> np.ndarray:
        return self.dynamics("mass_matrix")


def poses(side: Side) -> Iterator[Term]:
    """Compare the poses of all links that exist in both libraries."""
    for name in side.links:
        here = side.of_link("forward_kinematics", name)
        yield term("placement", f"link {name!r}", here, side.answers.poses[name], 1.0)


def inertias(side: Side) -> Iterator[Term]:
    """Compare mass, first moment and inertia of each moving link, including links fixed to it."""
    model = side.robot.model
    for i in model.in_file_order:
        body = model.bodies[i]
        if body.name not in side.answers.inertias:
            continue
        I = model.frames[body.name].placement @ body.inertia
        here = np.array([I.m, *I.h, *I.I], dtype=float)
        there = side.answers.inertias[body.name]
        size = float(np.max(np.abs(here)))
        yield term("mass", f"link {body.name!r}", here[:1], there[:1], size)
        yield term("inertia", f"link {body.name!r}", here[1:], there[1:], size)


def jacobians(side: Side) -> Iterator[Term]:
    """Compare the Jacobians of all links, in world axes at the link origins."""
    for name in side.links:
        J = side.of_link("jacobian", name, axes="world", at="frame")
        rows = side.convention.spatial(side.answers.jacobians[name], axis=-2)
        there = side.convention.from_jacobian(side.x, rows)
        yield term("Jacobian", f"link {name!r}", J, there, 1.0)


def mass_matrices(side: Side) -> Iterator[Term]:
    """Compare mass matrices in chasles coordinates."""
    there = side.convention.from_mass_matrix(side.x, side.answers.mass_matrix)
    yield term("mass matrix", "", side.mass_matrix, there)


def gravities(side: Side) -> Iterator[Term]:
    """Compare the joint torques that hold the robot at rest."""
    there = side.convention.from_effort(side.x, side.answers.gravity_forces)
    size = float(np.max(np.abs(side.mass_matrix), initial=0.0))
    yield term("gravity forces", "", side.dynamics("gravity_forces"), there, size)


def biases(side: Side) -> Iterator[Term]:
    """Compare bias forces, after conversion to the chasles acceleration convention."""
    convention, qd = side.convention, side.at.qd
    v = convention.to_velocity(side.q, qd)
    zero = convention.from_acceleration(side.x, v, np.zeros(convention.nv))
    here = side.dynamics("inverse_dynamics", qd, zero)
    there = convention.from_effort(side.x, side.answers.bias_forces)
    size = float(np.max(np.abs(side.mass_matrix), initial=0.0))
    yield term("bias forces", "", here, there, size)


def machines(side: Side) -> Iterator[Term]:
    """Compare accelerations without the effects of contacts, limits, dry friction and loops."""
    found, convention = side.answers.machine, side.convention
    fits = found is not None and (
        len(found.controls) == len(side.robot.actuators)
        and len(found.activations) == len(side.robot.actuators.active)
    )
    if found is None or not fits or not side.at.has("forward_dynamics"):
        return
    model = side.at.whole.frictionless(damped=True)
    state = side.q, side.at.qd
    tau = side.at.ask(model, "actuate", *state, found.controls, found.activations)
    way = side.at.ways("forward_dynamics")[0].name
    here = side.at.ask(model, "forward_dynamics", *state, tau, method=way)
    v = convention.to_velocity(*state)
    there = convention.from_acceleration(side.x, v, found.accelerations)
    yield term("accelerations", "", here, there)


def loops(side: Side) -> Iterator[Term]:
    """Check that the library also finds zero residuals for loops that are closed in chasles.

    The library's residuals include the equations of mimic joints, which cannot be separated from
    loops. Nothing is compared if mimic joints are independent in chasles.
    """
    source, here = side.robot.model.source, side.at.run("loop_residual", side.q)
    led = not side.robot.mimic and any(joint.mimic is not None for joint in source.joints)
    there = None if led else side.answers.loops
    if here.size and there is not None:
        missing = Term("loops", "equations", 1.0, (), here.size, 0)
        yield term("loops", "", np.zeros(there.shape), there, 1.0) if there.size else missing


TERMS: dict[str, Callable[[Side], Iterator[Term]]] = {
    "placements": poses,
    "masses and inertias": inertias,
    "Jacobians": jacobians,
    "mass matrix": mass_matrices,
    "gravity forces": gravities,
    "bias forces": biases,
    "accelerations": machines,
    "loops": loops,
}
"""Quantities to compare. A difference in one quantity may cause differences in later ones."""


def term(name: str, of: str, here: np.ndarray, there: np.ndarray, size: float = 0.0) -> Term:
    """Compare two arrays, and find the entry that differs most."""
    a, b = np.asarray(here, dtype=float), np.asarray(there, dtype=float)
    if not a.size:
        return Term(name, of, 0.0)
    apart = np.abs(a - b)
    at = tuple(map(int, np.unravel_index(int(np.argmax(apart)), a.shape)))
    whole = max(float(np.max(np.abs(a))), size)
    error = float(apart[at]) / whole if whole else float(apart[at] > 0.0)
    return Term(name, of, error, at, float(a[at]), float(b[at]))


# Causes ---------------------------------------------------------------------------------------

SNAPPED = 1e-3
"""Largest difference in link poses that is attributed to rounded angles in the file.

By default, chasles corrects such angles (option `snap`).
"""


def unlike_joints(robot: Robot, peer: Peer) -> str:
    """Explain why the joints or degrees of freedom differ; return "" if they agree."""
    source = robot.model.source
    known = {joint.name: joint for joint in source.joints}
    followers = [name for name in peer.joints if name not in robot.joints and name in known]
    followers = [name for name in followers if known[name].mimic is not None]
    if followers:
        return (
            f"mimic: joint {followers[0]!r} follows another joint in chasles, but has "
            "a coordinate in the other library; load with mimic=False (--no-mimic)"
        )
    if peer.nv - robot.nv in (6, -6):
        where = "in the other library" if peer.nv > robot.nv else "in chasles"
        return f"floating base: the root is free only {where}; load both the same way (--floating)"
    if not all(peer.joints) and peer.nv == robot.nv:
        return ""  # joints without names are compared by order
    theirs = [name for name in peer.joints if name not in known]
    ours = [name for name in robot.joints if name not in peer.joints]
    renamed = len(theirs) == 1 and [robot.joint(name).traits.floating for name in ours] == [True]
    common = len(ours) < len(robot.joints)  # else match joints by order
    if peer.nv != robot.nv or (ours and common and not renamed):
        return f"joints: {_some('in chasles', ours)}, {_some('in the other library', theirs)}"
    return ""


def _some(where: str, names: Sequence[str]) -> str:
    return f"only {where}: {', '.join(map(repr, names[:3])) or 'none'}"


def cause_of(sides: Sequence[Side], first: Term, renamed: Callable[[], Side | None]) -> str:
    """Return the likely cause of the first difference between two libraries.

    `renamed()` returns a `Side` with joints matched by order instead of by name, or None if this
    is not possible.
    """
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
            "joint order: the joints match by order but not by name; two names are "
            "swapped in one of the files"
        )
    apart = []
    for at in sides:
        here = at.of_link("forward_kinematics", link)
        apart.append(np.linalg.solve(here, at.answers.poses[link]))
    if np.allclose(apart[0], apart[1], rtol=0.0, atol=1e-9):
        moved = ", ".join(f"{x:.4g}" for x in apart[0][:3, 3])
        return (
            f"frame: link {link!r} has another frame in the other library, fixed relative to the "
            f"link: displaced by ({moved}) m, or only rotated if this displacement is zero"
        )
    return (
        f"joint: the joint that moves link {link!r} has another axis, placement "
        "or zero position in the other library"
    )


def _mass(sides: Sequence[Side], first: Term, renamed: Renamed) -> str:
    robot, both = (
        sides[0].robot,
        f"{first.here:g} kg in chasles, {first.there:g} kg in the other library",
    )
    return (
        _replaced(robot, first)
        or _of_shapes(robot, first)
        or f"mass: {first.of} and the links fixed to it have {both}"
    )


def _inertia(sides: Sequence[Side], first: Term, renamed: Renamed) -> str:
    what = "a different center of mass" if first.where[0] < 3 else "different moments of inertia"
    return (
        _replaced(sides[0].robot, first) or f"inertia: {first.of} has {what} in the other library"
    )


def _replaced(robot: Robot, first: Term) -> str:
    """Return a note if the other library replaces the physically impossible inertia of a body."""
    links = [f"link {name!r}:" for name in _fixed_to(robot, first)]
    for note in check_inertias(robot.model.source, robot.model, strict=False):
        if any(link in note for link in links):
            return f"impossible inertia: {note}; the other library replaces it (see chasles lint)"
    return ""


def _of_shapes(robot: Robot, first: Term) -> str:
    """Return a note if a link has no mass in the file and MuJoCo computes its mass from shapes."""
    fixed = _fixed_to(robot, first)
    empty = [x.name for x in robot.model.source.links if x.name in fixed and not x.inertia.m]
    if empty and first.there > first.here:
        return (
            f"shapes: link {empty[0]!r} has no mass in the file, so MuJoCo computes "
            "it from the shapes"
        )
    return ""


def _fixed_to(robot: Robot, first: Term) -> list[str]:
    """Return the names of all frames fixed to the same body as the compared link."""
    frames = robot.model.frames
    body = frames[first.of.split("'")[1]].body
    return [name for name, frame in frames.items() if frame.body == body]


def _left_out(robot: Robot) -> str:
    """Return the parts of the file that chasles ignores, or "" if there are none."""
    left = robot.model.source.unsupported
    if not left:
        return ""
    more = f", and {len(left) - 1} more warnings on loading" if len(left) > 1 else ""
    return f"unsupported: {left[0].partition(': ')[2] or left[0]}{more}"


def _bias(sides: Sequence[Side], first: Term, renamed: Renamed) -> str:
    return _left_out(sides[0].robot) or (
        "velocity: both agree at rest; the other library uses a different joint velocity convention"
    )


def _acceleration(sides: Sequence[Side], first: Term, renamed: Renamed) -> str:
    return _left_out(sides[0].robot) or (
        "forces: the equations of motion agree, but actuator, damping or fluid forces differ"
    )


def _mass_matrix(sides: Sequence[Side], first: Term, renamed: Renamed) -> str:
    side = sides[0]
    there = side.convention.from_mass_matrix(side.x, side.answers.mass_matrix)
    apart = side.mass_matrix - there
    if np.max(np.abs(apart - np.diag(np.diag(apart)))) <= 1e-9 * np.max(np.abs(there)):
        freedom = int(np.argmax(np.abs(np.diag(apart))))
        slices = {name: side.robot.velocity_slice(name) for name in side.robot.joints}
        joint = next(name for name, x in slices.items() if x.start <= freedom < x.stop)
        return (
            "armature: the mass matrices differ only on the diagonal, most at joint "
            f"{joint!r}, by {apart[freedom, freedom]:.6g}; one side includes rotor "
            "inertia"
        )
    return "inertia: link poses and masses agree, but the mass matrices differ"


CAUSES: dict[str, str | Callable[[Sequence[Side], Term, Renamed], str]] = {
    "placement": _placement,
    "mass": _mass,
    "inertia": _inertia,
    "Jacobian": "joint: link poses agree, but {of} moves differently: the reference "
    "points or axes differ",
    "mass matrix": _mass_matrix,
    "gravity forces": "gravity: masses agree, but gravity forces differ; compare robot.gravity "
    "with gravity in the other library",
    "bias forces": _bias,
    "accelerations": _acceleration,
    "loops": "loops: a loop that is closed in chasles is open in the other library; its "
    "frames differ",
}
"""Likely cause of a difference in each term, if all earlier terms agree."""
