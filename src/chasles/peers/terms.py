"""A robot here and in another library, term by term."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from chasles.checks.floats import evaluate
from chasles.conventions import Convention
from chasles.peers.peer import Answers
from chasles.robot import Robot


class Term(NamedTuple):
    """One thing both sides compute: by how much it differs, relative to its size, and where first.

    here, there: the entry that differs first, of this side and of the other.
    """

    name: str
    of: str
    error: float
    where: tuple[int, ...] = ()
    here: float = 0.0
    there: float = 0.0

    def __str__(self) -> str:
        at = f"{list(self.where)}: " if self.where else ""
        what = f"{self.name} of {self.of}" if self.of else self.name
        return f"{what}: {at}{self.here:.9g} here, {self.there:.9g} there"


class Side(NamedTuple):
    """A state of the robot, and what the other library says of it."""

    robot: Robot
    convention: Convention
    q: np.ndarray
    qd: np.ndarray
    answers: Answers

    @property
    def links(self) -> list[str]:
        """The links that both sides have by name."""
        return [name for name in self.robot.bodies if name in self.answers.poses]

    def of_link(self, function: str, name: str, **options: Any) -> np.ndarray:
        """A function of one link, on plain floats: to compile it for every link takes minutes."""
        return evaluate(self.robot.model, function, (self.q,), frame=name, **options)[0]


def poses(side: Side) -> Iterator[Term]:
    """Every link that both sides have."""
    for name in side.links:
        here = side.of_link("forward_kinematics", name)
        yield term("placement", f"link {name!r}", here, side.answers.poses[name], 1.0)


def inertias(side: Side) -> Iterator[Term]:
    """Mass, then moments, of each moving link and all that is fixed to it."""
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
    """World axes, at the link's origin."""
    for name in side.links:
        J = side.of_link("jacobian", name, axes="world", at="frame")
        there = side.convention.from_jacobian(_x(side), _rows(side, side.answers.jacobians[name]))
        yield term("Jacobian", f"link {name!r}", J, there, 1.0)


def mass_matrices(side: Side) -> Iterator[Term]:
    """M, in the coordinates here."""
    there = side.convention.from_mass_matrix(_x(side), side.answers.mass_matrix)
    yield term("mass matrix", "", side.robot.mass_matrix(side.q), there)


def gravities(side: Side) -> Iterator[Term]:
    """Joint forces that hold the robot at rest."""
    there = side.convention.from_effort(_x(side), side.answers.gravity_forces)
    size = float(np.max(np.abs(side.robot.mass_matrix(side.q)), initial=0.0))
    yield term("gravity forces", "", side.robot.gravity_forces(side.q), there, size)


def biases(side: Side) -> Iterator[Term]:
    """Joint forces without acceleration here, which another library may count as some."""
    robot, convention = side.robot, side.convention
    zero = convention.from_acceleration(_x(side), _v(side), np.zeros(convention.nv))
    here = robot.inverse_dynamics(side.q, side.qd, zero)
    there = convention.from_effort(_x(side), side.answers.bias_forces)
    size = float(np.max(np.abs(robot.mass_matrix(side.q)), initial=0.0))
    yield term("bias forces", "", here, there, size)


def loops(side: Side) -> Iterator[Term]:
    """Whether loops that are closed here are closed there too, if the library says."""
    rows, there = side.robot.mechanism.rows, side.answers.loops
    if not rows or there is None:
        return
    if there.size:
        yield term("loops", "", np.zeros(there.shape), there, 1.0)
    else:
        yield Term("loops", "equations", 1.0, (), rows, 0)


TERMS: dict[str, Callable[[Side], Iterator[Term]]] = {
    "placements": poses,
    "masses and inertias": inertias,
    "Jacobians": jacobians,
    "mass matrix": mass_matrices,
    "gravity forces": gravities,
    "bias forces": biases,
    "loops": loops,
}
"""What is compared, in the order in which one difference causes the next."""


def term(name: str, of: str, here: np.ndarray, there: np.ndarray, size: float = 0.0) -> Term:
    """Two arrays, and where they differ most."""
    a, b = np.asarray(here, dtype=float), np.asarray(there, dtype=float)
    if not a.size:
        return Term(name, of, 0.0)
    apart = np.abs(a - b)
    at = tuple(map(int, np.unravel_index(int(np.argmax(apart)), a.shape)))
    whole = max(float(np.max(np.abs(a))), size)
    error = float(apart[at]) / whole if whole else float(apart[at] > 0.0)
    return Term(name, of, error, at, float(a[at]), float(b[at]))


def _x(side: Side) -> np.ndarray:
    return side.convention.to_position(side.q)


def _v(side: Side) -> np.ndarray:
    return side.convention.to_velocity(side.q, side.qd)


def _rows(side: Side, J: np.ndarray) -> np.ndarray:
    """Rows in the order that the convention expects of the library."""
    return side.convention.spatial(J, axis=-2)
