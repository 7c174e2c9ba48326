"""The derivative of an impact: how velocities after it change with the state before it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.motion.contact.dynamics import contact_axes
from chasles.motion.contact.impact import (
    ROUNDS,
    SETTLED,
    Treatment,
    at_once,
    check_at_once,
    checked_state,
    contact_jacobian,
    near,
    rows_of,
)
from chasles.motion.contact.rigid import point_jacobian
from chasles.motion.contract import Machine
from chasles.motion.geometry.closed_forms import Contact, listed
from chasles.motion.laws.moreau import Moreau
from chasles.motion.laws.restitution import ImpactLaw, check_law
from chasles.motion.laws.slip import applied

Array = Any


def impact_derivatives(
    robot: Machine,
    q: Array,
    qd: Array,
    contact: Contact | Sequence[Contact],
    law: ImpactLaw,
    *,
    treatment: Treatment = "simultaneous",
    distance: float = 1e-9,
) -> tuple[np.ndarray, np.ndarray]:
    """Those of the velocities after an impact by q and by qd: (..., nv, nv) each.

    contact: one, or several with a `treatment`, as in `impact`. With respect to q along
    `integrate`, as in `derivatives`; of a robot with closed loops with respect to the positions and
    rates of its independent coordinates, while the loops stay closed: (..., nv, n) each. Points
    move with the successors and normals stay as they are in the world. Exact for `Sticking`,
    `Newton` without friction and `Moreau`; the other laws have central differences of their own, to
    about 1e-9. Where slip changes its kind, or a contact comes or goes, between neighbouring
    impacts there is no derivative. `Sticking` needs a point that can move in all three directions.
    """
    check_law("impact_derivatives: law", law)
    one = [contact] if isinstance(contact, Contact) else contact
    contacts = listed("impact_derivatives", one)
    q, qd = checked_state(robot, q, qd)
    J = np.concatenate([contact_jacobian(robot, q, c) for c in contacts], axis=-2)
    dJ = np.concatenate([_jacobian_slopes(robot, q, c) for c in contacts], axis=-3)
    system = _System(
        robot.mass_matrix(q),
        robot.derivatives("mass_matrix", q, wrt="q"),
        *_loops(robot, q),
    )
    dq, dqd = system.directions(robot, qd)
    B, K = system.solve(np.swapaxes(J, -1, -2), 0.0)
    dJ = _along(dJ, dq)
    force = np.moveaxis(dJ, -3, -2) - np.einsum("...ikp,...kj->...ijp", _along(system.dM, dq), B)
    dA = _along(system.dA, dq)
    force += np.einsum("...kip,...kj->...ijp", dA, K)
    dB = system.solve_each(force, -np.einsum("...ikp,...kj->...ijp", dA, B))
    W, zeta = J @ B, applied(J, qd)
    dW = np.einsum("...ikp,...kj->...ijp", dJ, B) + np.einsum("...ik,...kjp->...ijp", J, dB)
    dzeta = np.einsum("...ikp,...k->...ip", dJ, qd) + J @ dqd
    touching = near(contacts, zeta.shape[:-1], distance)
    impulses, changes = _impulses(law, treatment, W, zeta, touching, dW, dzeta)
    after = dqd + np.einsum("...ijp,...j->...ip", dB, impulses) + B @ changes
    half = dq.shape[-1] // 2
    return after[..., :half], after[..., half:]


class _System(NamedTuple):
    """M and the loop matrix A of a robot, with their derivatives by q: M x - A'k = f, A x = r."""

    M: np.ndarray
    dM: np.ndarray
    A: np.ndarray
    dA: np.ndarray

    def solve(self, force: np.ndarray, rate: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        """x and k, columns by columns."""
        rows = self.A.shape[-2]
        if not rows:
            return np.linalg.solve(self.M, force), np.zeros((*force.shape[:-2], 0, force.shape[-1]))
        none = np.zeros((*self.A.shape[:-1], rows))
        whole = np.block([[self.M, -np.swapaxes(self.A, -1, -2)], [self.A, none]])
        right = np.concatenate(
            [force, np.broadcast_to(rate, (*force.shape[:-2], rows, force.shape[-1]))], axis=-2
        )
        found = np.linalg.pinv(whole, rcond=1e-12) @ right
        return found[..., : self.M.shape[-1], :], found[..., self.M.shape[-1] :, :]

    def solve_each(self, force: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """x (..., n, j, p) for arrays (..., n, j, p) of right-hand sides."""
        columns = force.shape[-2] * force.shape[-1]
        flat = [a.reshape(*a.shape[:-2], columns) for a in (force, rate)]
        return self.solve(*flat)[0].reshape(force.shape)

    def directions(self, robot: Machine, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Changes of q and qd (..., nv, p) for the p = 2n changes of n free positions and rates."""
        nv = self.M.shape[-1]
        if not self.A.shape[-2]:
            none, one = np.zeros((nv, nv)), np.eye(nv)
            lead = (*qd.shape[:-1], nv, 2 * nv)
            dq, dqd = (np.concatenate(two, axis=-1) for two in ((one, none), (none, one)))
            return np.broadcast_to(dq, lead), np.broadcast_to(dqd, lead)
        free = list(robot.mechanism.loops.independent)
        pick = np.eye(nv)[free]
        whole = np.concatenate(
            [np.broadcast_to(pick, (*self.A.shape[:-2], *pick.shape)), self.A], axis=-2
        )
        back = np.linalg.pinv(whole, rcond=1e-12)
        G, loose = back[..., : len(free)], back[..., len(free) :]
        bent = -loose @ np.einsum("...ikp,...k->...ip", _along(self.dA, G), qd)
        return np.concatenate([G, np.zeros_like(G)], -1), np.concatenate([bent, G], -1)


def _loops(robot: Machine, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The loop matrix (..., m, nv) and its derivative by q; without rows for a tree."""
    return robot.loop_matrix(q), robot.derivatives("loop_matrix", q, wrt="q")


def _along(slopes: np.ndarray, dq: np.ndarray) -> np.ndarray:
    """Derivatives (..., i, k, nv) along directions (..., nv, p)."""
    return np.asarray(np.einsum("...ikl,...lp->...ikp", slopes, dq))


def _impulses(
    law: ImpactLaw,
    treatment: Treatment,
    W: np.ndarray,
    zeta: np.ndarray,
    touching: np.ndarray,
    dW: np.ndarray,
    dzeta: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Impulses (..., 3k) and their changes (..., 3k, p) with those of W and zeta."""
    if touching.shape[-1] == 1:
        impulses, changes = _changed(law, W, zeta, dW, dzeta)
        return np.where(touching, impulses, 0.0), np.where(touching[..., None], changes, 0.0)
    if treatment != "sequential":
        check_at_once(law)
    impulses, changes = np.zeros_like(zeta), np.zeros_like(dzeta)
    for place in np.ndindex(zeta.shape[:-1]):
        rows = rows_of(touching[place])
        square = np.ix_(rows, rows)
        given = W[place][square], zeta[place][rows], dW[place][square], dzeta[place][rows]
        both = (_sequence if treatment == "sequential" else _together)(law, *given)
        impulses[place][rows], changes[place][rows] = both
    return impulses, changes


def _changed(
    law: ImpactLaw, W: np.ndarray, zeta: np.ndarray, dW: np.ndarray, dzeta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The impulse of a law, and its change by the law's own derivatives."""
    by_W, by_zeta = law.derivatives(W, zeta)
    return law.impulse(W, zeta), np.einsum("...ijk,...jkp->...ip", by_W, dW) + by_zeta @ dzeta


def _together(
    law: Any, W: np.ndarray, zeta: np.ndarray, dW: np.ndarray, dzeta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """All contacts at once: those that are pushed keep the velocity that the law gives them."""
    if isinstance(law, Moreau):
        return _changed(law, W, zeta, dW, dzeta)
    impulses, changes = at_once(law, W, zeta), np.zeros_like(dzeta)
    pushed = np.flatnonzero(impulses)
    e = np.where(zeta[pushed] < 0.0, law.restitution, 0.0)[:, None]
    missing = np.einsum("ijp,j->ip", dW[np.ix_(pushed, pushed)], impulses[pushed])
    missing += (1.0 + e) * dzeta[pushed]
    changes[pushed] = np.linalg.solve(W[np.ix_(pushed, pushed)], -missing)
    return impulses, changes


def _sequence(
    law: ImpactLaw, W: np.ndarray, zeta: np.ndarray, dW: np.ndarray, dzeta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One contact after the other, in the order of `impact`."""
    total, changes = np.zeros_like(zeta), np.zeros_like(dzeta)
    bound = -SETTLED * np.max(np.abs(zeta), initial=0.0)
    for _ in range(ROUNDS):
        normal = zeta[2::3] + W[2::3] @ total
        if np.min(normal, initial=0.0) >= bound:
            break
        rows = slice(3 * int(np.argmin(normal)), 3 * int(np.argmin(normal)) + 3)
        now = zeta[rows] + W[rows] @ total
        moved = dzeta[rows] + np.einsum("ijp,j->ip", dW[rows], total) + W[rows] @ changes
        impulse, change = _changed(law, W[rows, rows], now, dW[rows, rows], moved)
        total[rows] += impulse
        changes[rows] += change
    return total, changes


def _jacobian_slopes(robot: Machine, q: np.ndarray, contact: Contact) -> np.ndarray:
    """The derivative of `contact_jacobian`: (..., 3, nv, nv)."""
    moved = point_jacobian(robot, q, contact.successor, contact.point)
    over, under = (
        _point_slopes(robot, q, frame, contact.point, moved)
        for frame in (contact.successor, contact.predecessor)
    )
    slopes: np.ndarray = np.einsum(
        "...ij,...jkl->...ikl", contact_axes(contact.normal), over - under
    )
    return slopes


def _point_slopes(
    robot: Machine, q: np.ndarray, frame: str | None, point: np.ndarray, moved: np.ndarray
) -> np.ndarray:
    """The derivative of `point_jacobian`, at a point with the derivative `moved` (..., 3, nv)."""
    if frame is None:
        return np.zeros((*moved.shape, robot.nv))
    J, dJ = robot.jacobian(q, frame=frame), robot.derivatives("jacobian", q, wrt="q", frame=frame)
    r = point - robot.forward_kinematics(q, frame=frame)[..., :3, 3]
    dr = moved - J[..., 3:, :]
    turned = np.cross(dJ[..., :3, :, :], r[..., :, None, None], axis=-3)
    shifted = np.cross(J[..., :3, :, None], dr[..., :, None, :], axis=-3)
    slopes: np.ndarray = dJ[..., 3:, :, :] + turned + shifted
    return slopes
