"""Rigid contact: the equation of motion with one-sided constraints, of a body or of a robot.

    H qdd = force + T lambda,   zetadot = T' qdd + bias
    zetadot >= 0,   lambda >= 0,   zetadot'lambda = 0

The columns of T are the contact normals in joint space, zetadot are separation accelerations and
lambda the magnitudes of contact forces (Featherstone 2008, sections 11.1 to 11.5). With friction
there are two tangents before each normal.
"""

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError
from chasles.functions.doors import numbers
from chasles.mechanisms import Mechanism
from chasles.mechanisms.closing import REGULAR
from chasles.model import Model

Array = Any


@dataclass(frozen=True)
class Problem:
    """The equation of motion of one state and its constraints, in independent coordinates.

    H (n, n), force (n,): of everything but contacts, less velocity products. T (n, m), bias (m,).
    G (nv, n), g (nv,): qdd = G ydd + g, where ydd are the accelerations of the independent
    coordinates; the identity and zero of a tree. gap (m,): distances, in m or rad.
    """

    H: np.ndarray
    force: np.ndarray
    T: np.ndarray
    bias: np.ndarray
    G: np.ndarray
    g: np.ndarray
    gap: np.ndarray

    @cached_property
    def _answers(self) -> tuple[np.ndarray, np.ndarray]:
        """H^-1 T, and the accelerations without contact."""
        found = np.linalg.solve(self.H, np.column_stack([self.T, self.force]))
        return found[:, :-1], found[:, -1]

    @cached_property
    def M(self) -> np.ndarray:
        """T' H^-1 T (Eq 11.35): (m, m), symmetric."""
        product = self.T.T @ self._answers[0]
        return 0.5 * (product + product.T)

    @cached_property
    def d(self) -> np.ndarray:
        """T' H^-1 force + bias (Eq 11.36): separation accelerations without contact forces."""
        return self.T.T @ self._answers[1] + self.bias

    def motion(self, forces: np.ndarray) -> "Motion":
        """Return the motion under forces (m,) along the columns of T."""
        turned, free = self._answers
        ydd = free + turned @ forces
        return Motion(self.G @ ydd + self.g, forces, self.T.T @ ydd + self.bias)

    def only(self, which: Array) -> "Problem":
        """The problem with some of its constraints, by number."""
        index = np.asarray(which, dtype=int)
        return replace(self, T=self.T[:, index], bias=self.bias[index], gap=self.gap[index])


class Motion(NamedTuple):
    """Accelerations qdd (nv,), forces of the constraints (m,), separation accelerations (m,)."""

    qdd: np.ndarray
    forces: np.ndarray
    separation: np.ndarray


class State(Enum):
    """The state of a constraint gap >= 0 (Featherstone 2008, figure 11.4)."""

    APART = "1"
    """gap > 0: no force, nothing to do."""
    COLLIDING = "2a"
    """gap = 0 and closing: an impulse acts at this instant."""
    LEAVING = "2b"
    """gap = 0 and opening: as if apart."""
    TOUCHING = "3"
    """gap = 0 and staying so: a force may act."""


def state(gap: float, gap_rate: float, *, distance: float = 1e-9, speed: float = 1e-9) -> State:
    """The state of a constraint; distance (m or rad) and speed (per s) that count as zero.

    A gap below -distance is penetration that is tolerated: it counts as zero.
    """
    if not (np.isfinite(gap) and np.isfinite(gap_rate)):
        problem = f"gap and gap_rate must be finite, not {gap} and {gap_rate}"
        raise InputError("E-CONTACT-074", problem, part="state")
    if gap > distance:
        return State.APART
    if abs(gap_rate) <= speed:
        return State.TOUCHING
    return State.COLLIDING if gap_rate < 0.0 else State.LEAVING


def constrained_problem(
    mechanism: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    T: np.ndarray,
    bias: np.ndarray,
    gap: np.ndarray,
    **options: Any,
) -> Problem:
    """The problem with directions T (nv, m) of the tree, carried over to independent coordinates.

    qdd = G ydd + g gives G'H G ydd = G'(force - H g) + (G'T) lambda (Featherstone 2008, 8.43).
    """
    H, loops = mechanism.mass_matrix(q), mechanism.closing
    force = tau - mechanism.inverse_dynamics(q, qd, np.zeros(len(tau)), **options)
    G = loops.directions(q)
    g = loops.accelerated(q, qd, np.zeros(G.shape[-1]), REGULAR)
    return Problem(G.T @ H @ G, G.T @ (force - H @ g), G.T @ T, bias + T.T @ g, G, g, gap)


def response(mechanism: Mechanism, q: Array, forces: Array) -> np.ndarray:
    """The steps of qd by joint-space impulses, the columns of forces (..., nv, k).

    G (G'M G)^-1 G' with qd = G yd (Featherstone 2008, Eq 8.44); M^-1 of a tree.
    """
    M, G = mechanism.mass_matrix(q), mechanism.closing.directions(q)
    Gt = np.swapaxes(G, -1, -2)
    steps: np.ndarray = G @ np.linalg.solve(Gt @ M @ G, Gt @ forces)
    return steps


def limit_rows(
    model: Model, q: Array, qd: Array, *, within: float = 0.0, speed: float = np.inf
) -> list[tuple[int, float, float]]:
    """Joint limits within a distance: freedom, sign (1 lower, -1 upper) and distance (rad or m).

    Only joints with one coordinate count. Limits that the joint leaves faster than `speed` are left
    out; one that it runs into faster is refused.
    """
    rows = []
    q, qd = numbers("q", q, model.nq), numbers("qd", qd, model.nv)
    for i, where in model.position_slices.items():
        body, k = model.bodies[i], model.velocity_slices[i].start
        if not body.joint.nq == body.joint.nv == 1:
            continue
        limits, x = body.data.limits, float(q[where.start])
        for sign, gap in ((1.0, x - limits.lower), (-1.0, limits.upper - x)):
            if gap <= within and -sign * qd[k] > speed:
                name, rate = body.data.name, f"{-sign * qd[k]:.3g} a second"
                remedy = "apply an impact first, or give a larger speed="
                problem = f"joint {name!r} runs into its limit with {rate}"
                raise InputError("E-CONTACT-072", problem, remedy)
            if gap <= within and sign * qd[k] <= speed:
                rows.append((k, sign, gap))
    return rows


def one_state(
    function: str, model: Model, q: Array, qd: Array, tau: Array
) -> tuple[np.ndarray, ...]:
    """q, qd and tau of one state, finite; function: who says so."""
    sizes = {"q": model.nq, "qd": model.nv, "tau": model.nv}
    given = zip(sizes.items(), (q, qd, tau), strict=True)
    found = tuple(numbers(f"{function}: {x}", a, n).astype(float) for (x, n), a in given)
    if any(a.ndim != 1 or not np.all(np.isfinite(a)) for a in found):
        problem = "q, qd and tau must be finite, of one state"
        raise InputError("E-CONTACT-073", problem, part=function)
    return found
