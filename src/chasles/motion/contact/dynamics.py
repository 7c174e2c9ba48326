"""Accelerations of a robot in contact, with friction: the laws of this package for one state."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError
from chasles.motion.contact.rigid import (
    Problem,
    Touch,
    constrained_problem,
    limit_rows,
    one_state,
    spin,
    touch,
)
from chasles.motion.contact.sets import State, state
from chasles.motion.contract import Machine
from chasles.motion.geometry.closed_forms import Contact, listed
from chasles.motion.laws.friction import convex, coulomb, polyhedral
from chasles.motion.solvers.complementarity import Infeasible
from chasles.motion.solvers.cones import out_of_reach

Array = Any

LAWS: dict[str, Callable[..., np.ndarray]] = {
    "coulomb": coulomb,
    "convex": convex,
    "polyhedral": polyhedral,
}
"""Laws of friction: one row each. They take G, c, mu, slip and give forces (nc, 3 or 4)."""


class ContactMotion(NamedTuple):
    """Accelerations qdd (nv,) and what acts where.

    forces (nc, 3): on the successor of each contact, along the world's axes, in N; zero where it
    does not touch. limit_forces (nv,): what joint limits add to tau, in N m or N. separation (nc,):
    normal accelerations of contacts that touch, in m/s2; NaN of others. moments (nc,): of torsional
    friction on the successors, about the normals, in N m.
    """

    qdd: np.ndarray
    forces: np.ndarray
    limit_forces: np.ndarray
    separation: np.ndarray
    moments: np.ndarray


def contact_dynamics(
    robot: Machine,
    q: Array,
    qd: Array,
    tau: Array,
    contacts: Sequence[Contact],
    *,
    friction: str = "coulomb",
    limits: float | None = 1e-9,
    distance: float = 1e-9,
    speed: float = 1e-9,
    f_ext: Any = None,
    dissipation: bool = False,
) -> ContactMotion:
    """Accelerations qdd of one state under joint forces tau, contacts and joint limits.

    contacts: as `contact_points` gives them at this q and qd, near or not. Those with a gap up to
    `distance` (m) and no normal velocity beyond `speed` (m/s) touch; one that closes faster is
    refused: an impact comes first. Those whose tangential velocity is beyond `speed` slide.

    friction: "coulomb", "convex" (with dilation) or "polyhedral" (8 facets); contacts with mu = 0
    have none. A contact that closes and that no force can move is `Infeasible`, by name. limits:
    how near (rad or m) a joint's limit acts, None for no limits. `f_ext` and `dissipation` as in
    `Robot.inverse_dynamics`. Robots with closed loops move in their independent coordinates.
    """
    if friction not in LAWS:
        part = "contact_dynamics"
        raise InputError("E-CONTACT-013", f"friction must be one of {', '.join(LAWS)}", part=part)
    contacts = listed("contact_dynamics", contacts)
    q, qd, tau = one_state("contact_dynamics", robot, q, qd, tau)
    wide = 4 if any(contact.torsion for contact in contacts) else 3
    rows = _contact_rows(robot, q, qd, contacts, distance, speed, wide)
    touching = list(rows)
    if limits is not None:
        stops = limit_rows(robot, q, qd, within=limits, speed=speed)
        rows |= {len(contacts) + i: _limit(robot, *stop, wide) for i, stop in enumerate(stops)}
    T = np.column_stack([np.zeros((robot.nv, 0)), *(row.T for row in rows.values())])
    bias, mu, slip = (
        np.array([row[k] for row in rows.values()]).reshape(-1, *shape)
        for k, shape in ((1, (wide,)), (2, ()), (3, (wide - 1,)))
    )
    options = {"f_ext": f_ext, "dissipation": dissipation}
    gap = np.zeros(T.shape[1])
    problem = constrained_problem(robot, q, qd, tau, T, bias.ravel(), gap, **options)
    _refuse_what_nothing_moves(problem, wide, {k: contacts[k].successor for k in touching})
    f = LAWS[friction](problem.M, problem.d, mu, slip) if rows else np.zeros((0, wide))
    motion = problem.motion(f.ravel())
    forces, separation = np.zeros((len(contacts), 3)), np.full(len(contacts), np.nan)
    moments = np.zeros(len(contacts))
    for i, k in enumerate(touching):
        forces[k] = rows[k].axes.T @ f[i, [0, 1, -1]]
        moments[k] = rows[k].arm * f[i, 2] if wide == 4 else 0.0
        separation[k] = motion.separation[wide * i + wide - 1]
    held = wide * len(touching)
    return ContactMotion(motion.qdd, forces, T[:, held:] @ f.ravel()[held:], separation, moments)


class _Rows(NamedTuple):
    """The directions of one contact in joint space, normal last: zetadot = T' qdd + bias.

    arm (m): what a turn about the normal is multiplied with, so that its moment has the bound mu
    times the normal force; zero without torsion.
    """

    T: np.ndarray
    bias: np.ndarray
    mu: float
    slip: np.ndarray
    axes: np.ndarray
    arm: float = 0.0


def _contact_rows(
    robot: Machine,
    q: np.ndarray,
    qd: np.ndarray,
    contacts: Sequence[Contact],
    distance: float,
    speed: float,
    wide: int,
) -> dict[int, _Rows]:
    """Those of the contacts that touch, by number."""
    rows = {}
    for k, contact in enumerate(contacts):
        if contact.gap > distance:
            continue
        moves = touch(robot, q, qd, contact)
        if _touches(k, contact, moves, distance, speed):
            rows[k] = _rows(robot, q, qd, contact, moves, speed, wide)
    return rows


def _rows(
    robot: Machine,
    q: np.ndarray,
    qd: np.ndarray,
    contact: Contact,
    moves: Touch,
    speed: float,
    wide: int,
) -> _Rows:
    """Those of one contact: two tangents, the turn about the normal if `wide` is 4, the normal."""
    E, n = contact_axes(contact.normal), contact.normal
    T, velocity, bias = moves.J.T @ E.T, E @ moves.velocity, E @ moves.bias
    bias[2] += contact.normal_rate @ moves.velocity
    arm = contact.torsion / contact.friction if contact.torsion else 0.0
    if wide == 4:
        turns = spin(robot, q, qd, contact)
        rate = n @ turns.bias + contact.normal_rate @ turns.velocity
        T = np.insert(T, 2, arm * (turns.J.T @ n), axis=1)
        velocity = np.insert(velocity, 2, arm * (n @ turns.velocity))
        bias = np.insert(bias, 2, arm * rate)
    sliding = float(np.linalg.norm(velocity[:-1]))
    slip = velocity[:-1] / sliding if sliding > speed else np.zeros(wide - 1)
    return _Rows(T, bias, contact.friction, slip, E, arm)


def _limit(robot: Machine, freedom: int, sign: float, gap: float, wide: int) -> _Rows:
    """A joint limit as a contact without friction."""
    T = np.zeros((robot.nv, wide))
    T[freedom, -1] = sign
    return _Rows(T, np.zeros(wide), 0.0, np.zeros(wide - 1), np.eye(3))


def _refuse_what_nothing_moves(
    problem: Problem, wide: int, touching: dict[int, str | None]
) -> None:
    """Refuse a contact, or a limit, that closes and whose normal no force moves."""
    names = [f"contact {k} of {name!r}" for k, name in touching.items()]
    for i in out_of_reach(problem.M, problem.d, wide):
        who = names[i] if i < len(names) else "a joint limit"
        raise Infeasible(
            "E-CONTACT-014",
            f"{who} closes at {-problem.d[wide * i + wide - 1]:.3g} m/s2, and no contact force "
            "can move it along its normal",
            "look at its bodies and at their joints",
            part="contact_dynamics",
        )


def _touches(k: int, contact: Contact, moves: Touch, distance: float, speed: float) -> bool:
    """Whether a contact is in state 3; one that collides is an error."""
    rate = float(contact.normal @ moves.velocity)
    now = state(float(contact.gap), rate, distance=distance, speed=speed)
    if now is State.COLLIDING:
        problem = f"contact {k} of {contact.successor!r} closes at {-rate:.3g} m/s"
        remedy = "apply an impact first, or give a larger speed="
        raise InputError("E-CONTACT-015", problem, remedy, part="contact_dynamics")
    return now is State.TOUCHING


def contact_axes(normal: np.ndarray) -> np.ndarray:
    """Tangent, tangent and normal as rows (..., 3, 3), of unit normals (..., 3) (Eq 11.68)."""
    other = np.eye(3)[np.argmin(np.abs(normal), axis=-1)]
    first = np.cross(normal, other)
    first /= np.linalg.norm(first, axis=-1, keepdims=True)
    return np.stack([first, np.cross(normal, first), normal], axis=-2)
