"""Accelerations of a robot in contact, with friction: the laws of this package for one state."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.contact.friction import convex, coulomb, polyhedral
from chasles.contact.geometry import Contact
from chasles.contact.rigid import Touch, constrained_problem, limit_rows, one_state, touch
from chasles.contact.sets import State, state
from chasles.robot import Robot

Array = Any

LAWS: dict[str, Callable[..., np.ndarray]] = {
    "coulomb": coulomb,
    "convex": convex,
    "polyhedral": polyhedral,
}
"""Laws of friction: one row each. They take G, c, mu, slip and give forces (nc, 3)."""


class ContactMotion(NamedTuple):
    """Accelerations qdd (nv,) and what acts where.

    forces (nc, 3): on the successor of each contact, along the world's axes, in N; zero where it
    does not touch. limit_forces (nv,): what joint limits add to tau, in N m or N. separation (nc,):
    normal accelerations of contacts that touch, in m/s2; NaN of others.
    """

    qdd: np.ndarray
    forces: np.ndarray
    limit_forces: np.ndarray
    separation: np.ndarray


def contact_dynamics(
    robot: Robot,
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
    have none. limits: how near (rad or m) a joint's limit acts, None for no limits. `f_ext` and
    `dissipation` as in `Robot.inverse_dynamics`. Robots with closed loops move in their
    independent coordinates.
    """
    if friction not in LAWS:
        raise ValueError(f"contact_dynamics: friction must be one of {', '.join(LAWS)}")
    q, qd, tau = one_state("contact_dynamics", robot, q, qd, tau)
    rows = _contact_rows(robot, q, qd, contacts, distance, speed)
    touching = list(rows)
    if limits is not None:
        stops = limit_rows(robot, q, qd, within=limits, speed=speed)
        rows |= {len(contacts) + i: _limit(robot, *stop) for i, stop in enumerate(stops)}
    T = np.column_stack([np.zeros((robot.nv, 0)), *(row.T for row in rows.values())])
    bias, mu, slip = (
        np.array([row[k] for row in rows.values()]).reshape(-1, *shape)
        for k, shape in ((1, (3,)), (2, ()), (3, (2,)))
    )
    options = {"f_ext": f_ext, "dissipation": dissipation}
    gap = np.zeros(T.shape[1])
    problem = constrained_problem(robot, q, qd, tau, T, bias.ravel(), gap, **options)
    f = LAWS[friction](problem.M, problem.d, mu, slip) if rows else np.zeros((0, 3))
    motion = problem.motion(f.ravel())
    forces, separation = np.zeros((len(contacts), 3)), np.full(len(contacts), np.nan)
    for i, k in enumerate(touching):
        forces[k] = rows[k].axes.T @ f[i]
        separation[k] = motion.separation[3 * i + 2]
    held = 3 * len(touching)
    return ContactMotion(motion.qdd, forces, T[:, held:] @ f.ravel()[held:], separation)


class _Rows(NamedTuple):
    """Three directions of one contact in joint space, normal last: zetadot = T' qdd + bias."""

    T: np.ndarray
    bias: np.ndarray
    mu: float
    slip: np.ndarray
    axes: np.ndarray


def _contact_rows(
    robot: Robot,
    q: np.ndarray,
    qd: np.ndarray,
    contacts: Sequence[Contact],
    distance: float,
    speed: float,
) -> dict[int, _Rows]:
    """Those of the contacts that touch, by number."""
    rows = {}
    for k, contact in enumerate(contacts):
        if contact.gap > distance:
            continue
        moves = touch(robot, q, qd, contact)
        if _touches(k, contact, moves, distance, speed):
            E = contact_axes(contact.normal)
            u = E[:2] @ moves.velocity
            sliding = float(np.linalg.norm(u))
            slip = u / sliding if sliding > speed else np.zeros(2)
            turning = np.array([0.0, 0.0, contact.normal_rate @ moves.velocity])
            bias = E @ moves.bias + turning
            rows[k] = _Rows(moves.J.T @ E.T, bias, contact.friction, slip, E)
    return rows


def _limit(robot: Robot, freedom: int, sign: float, gap: float) -> _Rows:
    """A joint limit as a contact without friction."""
    T = np.zeros((robot.nv, 3))
    T[freedom, 2] = sign
    return _Rows(T, np.zeros(3), 0.0, np.zeros(2), np.eye(3))


def _touches(k: int, contact: Contact, moves: Touch, distance: float, speed: float) -> bool:
    """Whether a contact is in state 3; one that collides is an error."""
    rate = float(contact.normal @ moves.velocity)
    now = state(float(contact.gap), rate, distance=distance, speed=speed)
    if now is State.COLLIDING:
        raise ValueError(
            f"contact_dynamics: contact {k} of {contact.successor!r} closes at {-rate:.3g} m/s; "
            "apply an impact first, or give a larger speed="
        )
    return now is State.TOUCHING


def contact_axes(normal: np.ndarray) -> np.ndarray:
    """Tangent, tangent and normal as rows (..., 3, 3), of unit normals (..., 3) (Eq 11.68)."""
    other = np.eye(3)[np.argmin(np.abs(normal), axis=-1)]
    first = np.cross(normal, other)
    first /= np.linalg.norm(first, axis=-1, keepdims=True)
    return np.stack([first, np.cross(normal, first), normal], axis=-2)
