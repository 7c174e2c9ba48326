"""Closed loops in a time step: reduction to independent velocities, and loop closure.

The step is solved for the velocities y of the independent coordinates. Therefore, the joint
velocities v = G y satisfy the loop constraints exactly, and contacts act on the closed mechanism
(Featherstone 2008, section 8.11):

    G' (M + dt D + dt^2 K) G y = G' (p - dt M g) + (J G)' gamma,  qdd = G ydd + g

M, D and K are the mass, damping and stiffness matrices, p is the momentum without contacts, and
gamma are the impulses at contacts with the Jacobian J. For G and g, see `Reduction`.

After the step, Newton's method closes the loops of the new position, with the independent
coordinates fixed, and the dependent velocities follow from y.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.expr import Arena, Number
from chasles.functions.programs import program
from chasles.model import Model
from chasles.motion.contact.pairs import Compliant
from chasles.motion.geometry.closed_forms import minimum
from chasles.motion.geometry.kinematics import result
from chasles.motion.steps.algebra import absent, dot, skew, solved, zeros
from chasles.motion.steps.bodies import Own, computed
from chasles.motion.steps.impulses import NORMAL, TANGENT, bounded, stiffness
from chasles.motion.steps.lines import Dry, Row, Stop, gathered
from chasles.motion.steps.touching import Touch

CLOSINGS = 3
"""Number of Newton iterations that close the loops after a step (quadratic convergence)."""


class Reduction(NamedTuple):
    """Reduction of joint velocities to independent velocities: v = G y.

    Attributes
    ----------
    G : array, shape (nv, m)
        Derivative of v with respect to y.
    g : array, shape (nv,)
        Joint accelerations that keep the loops closed at constant y.
    independent : tuple[int, ...]
        Indices of the independent velocities y in v.
    """

    G: np.ndarray
    g: np.ndarray
    independent: tuple[int, ...]

    def columns(self, J: np.ndarray) -> np.ndarray:
        """Return J G (k, m), the Jacobian J (k, nv) reduced to the independent velocities."""
        return _product(J, self.G)

    def vector(self, x: np.ndarray) -> np.ndarray:
        """Return G'x, the generalized force or momentum x reduced to the independent velocities."""
        return np.array([dot(column, x) for column in self.G.T], dtype=object)

    def matrix(self, A: np.ndarray) -> np.ndarray:
        """Return G' A G, the matrix A reduced to the independent velocities."""
        return _product(self.G.T, _product(A, self.G))

    def row(self, row: Row) -> Row:
        """Express a combination of joint velocities in terms of the independent velocities."""
        J = _dense(row, len(self.G))[None]
        return tuple((k, a) for k, a in enumerate(self.columns(J)[0]) if not absent(a))

    def touch(self, M: np.ndarray, touch: Touch, J: np.ndarray) -> Touch:
        """Return a potential contact with the inverse mass and stiffness of the closed mechanism.

        M is the mass matrix, and J the Jacobian of the contact, both reduced to the independent
        velocities.
        """
        rows = J if touch.direct else touch.axes @ (J[3:] - skew(touch.point) @ J[:3])
        weight = bounded(sum(_inverse_mass(M, row) for row in rows) / 3.0)
        if isinstance(touch.law, Compliant):
            return touch._replace(weight=weight)
        return touch._replace(weight=weight, stiffness=stiffness(NORMAL, weight))

    def stops(self, M: np.ndarray, stops: Sequence[Stop]) -> list[Stop]:
        """Express joint and tendon limits in terms of the independent velocities.

        M is the mass matrix reduced to these velocities.
        """
        rows = [self.row(stop.row) for stop in stops]
        return [
            stop._replace(row=row, weight=_inverse_mass(M, _dense(row, len(M))))
            for stop, row in zip(stops, rows, strict=True)
        ]

    def dry(self, M: np.ndarray, dry: Sequence[Dry]) -> list[Dry]:
        """Express dry friction in terms of the independent velocities.

        M is the mass matrix reduced to these velocities.
        """

        def weight(row: Row) -> Number:
            return _inverse_mass(M, _dense(row, len(M)))

        reduced = [part._replace(row=self.row(part.row)) for part in dry]
        return [
            part._replace(stiffness=stiffness(TANGENT, weight(part.row))) if part.combined else part
            for part in gathered(reduced, lambda k: weight(((k, 1.0),)))
        ]


def _dense(row: Row, size: int) -> np.ndarray:
    """Convert a sparse row of (index, coefficient) pairs to an array (size,)."""
    found = zeros(size)
    for k, a in row:
        found[k] = a
    return found


def _inverse_mass(M: np.ndarray, row: np.ndarray) -> Number:
    """Return r M^-1 r', the inverse effective mass for the velocity r v, where r is `row`."""
    return dot(row, solved(M, row, range(len(M)), None))


def _product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.array([[dot(row, column) for column in B.T] for row in A], dtype=object)


def _closing(
    model: Model, arena: Arena, q: np.ndarray, v: Any, own: Own
) -> tuple[np.ndarray, np.ndarray, Number]:
    """Return a loop-closing Newton step, the joint velocities, and the loop margin.

    The velocities satisfy the loop constraints. The loop margin measures the distance from a
    singular configuration (see `closed`).
    """
    given: dict[str, Any] = {"q": q, "qd": v, **own}
    made = program(model, "closing_step", parameters=tuple(own))
    step, rates, health = made.applied(given, arena)
    arrays = [zeros(model.nv), zeros(model.nv)]
    arrays[0][:], arrays[1][:] = step, rates
    return arrays[0], arrays[1], health[1]


def reduction(model: Model, arena: Arena, q: np.ndarray, v: np.ndarray, own: Own) -> Reduction:
    """Return the map from independent velocities and accelerations to those of all joints."""
    columns = []
    for c in model.independent:
        unit = [float(k == c) for k in range(model.nv)]
        columns.append(_closing(model, arena, q, unit, own)[1])
    g = computed(model, "closing_acceleration", arena, {"q": q, "qd": v}, own)
    return Reduction(np.stack(columns, axis=-1), g, model.independent)


def closed(
    model: Model, arena: Arena, q: np.ndarray, way: np.ndarray, v: np.ndarray, own: Own
) -> tuple[np.ndarray, np.ndarray, Number]:
    """Close the loops after a displacement; return q, the velocities and the loop margin.

    Only the independent entries of the velocities v are used. The loop margin is 1 at the
    configuration in which the independent coordinates were chosen, and 0 at a singular
    configuration (`closing_step`). The smallest margin of all Newton iterations is returned.
    """
    integrate = program(model, "integrate")
    there = result(integrate, arena, {"q": q, "v": way})
    least: Number = 1.0
    for _ in range(CLOSINGS):
        step, _, margin = _closing(model, arena, there, v, own)
        least = minimum(least, margin)
        there = result(integrate, arena, {"q": there, "v": step})
    return there, _closing(model, arena, there, v, own)[1], least
