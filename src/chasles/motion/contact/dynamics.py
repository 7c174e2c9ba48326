"""Accelerations of a robot or a body in contact, without friction and with it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError
from chasles.mechanisms import Mechanism
from chasles.model import Model
from chasles.motion.contact.rigid import (
    Motion,
    Problem,
    State,
    constrained_problem,
    limit_rows,
    one_state,
    state,
)
from chasles.motion.contract import Machine
from chasles.motion.geometry.features import listed
from chasles.motion.geometry.kinematics import Contact, Frame, Moves, contact_moves
from chasles.motion.laws.approximations import polyhedral
from chasles.motion.laws.friction import convex, coulomb, out_of_reach
from chasles.motion.solvers import Infeasible, accelerations_program, forces_program, lemke

Array = Any

LAWS: dict[str, Callable[..., np.ndarray]] = {
    "coulomb": coulomb,
    "convex": convex,
    "polyhedral": polyhedral,
}
"""Laws of friction: one row each. They take G, c, mu, slip and give forces (nc, 3 or 4)."""


# Directions of contacts --------------------------------------------------------------------------


def _moves(mechanism: Mechanism, q: Array, qd: Array, contact: Contact, wide: int) -> Moves:
    """A contact as a point that moves along `wide` axes: the normal last, after two tangents if
    there are 3 or more, and if 4 the turn about the normal, times `_arm`."""
    over, under = (Frame.of(mechanism, q, qd, frame) for frame in contact[:2])
    moves = contact_moves(over, under, contact)
    if wide == 4:
        n, spin, arm = contact.normal, over.motion.w - under.motion.w, _arm(contact)
        rate = n @ (over.rate - under.rate)[:3] + contact.normal_rate @ spin
        return moves._replace(
            velocity=np.insert(moves.velocity, 2, arm * (n @ spin)),
            J=np.insert(moves.J, 2, arm * (n @ (over.J - under.J)[:3]), axis=0),
            bias=np.insert(moves.bias, 2, arm * rate),
        )
    last = slice(-wide, None)
    return moves._replace(J=moves.J[last], velocity=moves.velocity[last], bias=moves.bias[last])


def _arm(contact: Contact) -> float:
    """The length (m) with which a moment about the normal has the bound mu times its force."""
    return contact.torsion / contact.friction if contact.torsion else 0.0


def _stop(model: Model, freedom: int, sign: float, gap: float, wide: int) -> Moves:
    """A joint limit as a contact without friction."""
    J, still = np.zeros((wide, model.nv)), np.zeros(wide)
    J[-1, freedom] = sign
    return Moves(np.array(gap), np.eye(3), still, J, still, np.array(np.inf))


def _assembled(
    mechanism: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    rows: Sequence[Moves],
    **options: Any,
) -> Problem:
    """The problem with the directions of some contacts and limits."""
    J = np.concatenate([np.zeros((0, mechanism.nv)), *(row.J for row in rows)])
    bias = np.concatenate([np.zeros(0), *(row.bias for row in rows)])
    gap = np.concatenate([np.zeros(0), *(np.full(len(row.bias), row.gap) for row in rows)])
    return constrained_problem(mechanism, q, qd, tau, J.T, bias, gap, **options)


# Without friction --------------------------------------------------------------------------------

METHODS: dict[str, Callable[[Problem], np.ndarray]] = {
    "lemke": lambda p: lemke(p.M, p.d),
    "forces": lambda p: forces_program(p.M, p.d),
    "accelerations": lambda p: accelerations_program(p.H, p.force, p.T, p.bias)[1],
}
"""Ways to solve a problem without friction: one row each."""


def solve(problem: Problem, *, method: str = "lemke") -> Motion:
    """The motion with all constraints of a problem touching, without friction.

    method: "lemke" (a basic solution), "forces" or "accelerations" (quadratic programs, Eq 11.43
    and 11.44). qdd and separation are unique; forces are where the normals are independent. Raises
    `Infeasible`.
    """
    if method not in METHODS:
        what = f"method must be one of {', '.join(METHODS)}, not {method!r}"
        raise InputError("E-CONTACT-068", what, part="solve")
    return problem.motion(METHODS[method](problem))


def single_contact(M: Array, d: Array) -> tuple[np.ndarray, np.ndarray]:
    """lambda and zetadot of one frictionless contact: max(0, -d/M), max(0, d) (Eq 11.10)."""
    M, d = (np.asarray(a, dtype=float) for a in (M, d))
    if not np.all(M > 0.0):
        problem = "M must be positive, as n.I^-1 n is"
        raise InputError("E-CONTACT-069", problem, part="single_contact")
    return np.maximum(0.0, -d / M), np.maximum(0.0, d)


def body_problem(inertia: Array, v: Array, f: Array, N: Array, N_rate: Array) -> Problem:
    """The contacts of one free body (Featherstone 2008, sections 11.1 and 11.2).

    Spatial vectors of 6 numbers, angular part first, about any one point along any axes: inertia
    (6, 6), velocity v, force f on the body (gravity included), contact normals N (6, m), which are
    unit forces along the lines of contact, and their rates N_rate. `Motion.qdd` is the body's
    spatial acceleration.
    """
    I, v, f, N, N_rate = (np.asarray(a, dtype=float) for a in (inertia, v, f, N, N_rate))
    if I.shape != (6, 6) or v.shape != (6,) or f.shape != (6,) or N.shape[:1] != (6,):
        problem = "inertia is (6, 6), v and f are (6,), normals are (6, m)"
        raise InputError("E-CONTACT-070", problem, part="body_problem")
    if N_rate.shape != N.shape:
        problem = f"N {N.shape} and N_rate {N_rate.shape} must be alike"
        raise InputError("E-CONTACT-071", problem, part="body_problem")
    moment, momentum = np.split(I @ v, 2)
    gyroscopic = np.concatenate(
        [np.cross(v[:3], moment) + np.cross(v[3:], momentum), np.cross(v[:3], momentum)]
    )
    bias = N_rate.T @ v
    return Problem(I, f - gyroscopic, N, bias, np.eye(6), np.zeros(6), np.zeros_like(bias))


def contact_problem(
    robot: Machine,
    q: Array,
    qd: Array,
    tau: Array,
    contacts: Sequence[Contact],
    *,
    limits: float | None = None,
    f_ext: Any = None,
    dissipation: bool = False,
) -> Problem:
    """The problem of a robot in one state, whose contacts all touch without friction.

    q (nq,), qd (nv,), tau (nv,); of a robot with closed loops in its independent coordinates. The
    constraints are those of `contacts`, then joint limits that are at most `limits` away (rad or
    m; None: no limits). zetadot = T' qdd + bias with t = J' n, J = J_successor - J_predecessor,
    and bias = n.(Jdot qd) + ndot.(J qd) (Featherstone 2008, Eq 11.25 and 11.30).
    """
    mechanism, contacts = robot.mechanism, listed("contact_problem", contacts)
    q, qd, tau = one_state("contact_problem", mechanism.model, q, qd, tau)
    stops = limit_rows(mechanism.model, q, qd, within=-np.inf if limits is None else limits)
    rows = [_moves(mechanism, q, qd, contact, 1) for contact in contacts]
    rows += [_stop(mechanism.model, *stop, 1) for stop in stops]
    return _assembled(mechanism, q, qd, tau, rows, f_ext=f_ext, dissipation=dissipation)


# With friction -----------------------------------------------------------------------------------


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
    mechanism, contacts = robot.mechanism, listed("contact_dynamics", contacts)
    model = mechanism.model
    q, qd, tau = one_state("contact_dynamics", model, q, qd, tau)
    wide = 4 if any(contact.torsion for contact in contacts) else 3
    found = {
        k: _moves(mechanism, q, qd, contact, wide)
        for k, contact in enumerate(contacts)
        if contact.gap <= distance
    }
    touching = [k for k in found if _touches(k, contacts[k], found[k], distance, speed)]
    within = -np.inf if limits is None else limits
    stops = limit_rows(model, q, qd, within=within, speed=speed)
    rows = [*(found[k] for k in touching), *(_stop(model, *stop, wide) for stop in stops)]
    problem = _assembled(mechanism, q, qd, tau, rows, f_ext=f_ext, dissipation=dissipation)
    for i in out_of_reach(problem.M, problem.d, wide):
        names = [f"contact {k} of {contacts[k].successor!r}" for k in touching]
        rate = f"closes at {-problem.d[wide * i + wide - 1]:.3g} m/s2"
        what = f"{[*names, *['a joint limit'] * len(stops)][i]} {rate}, and no force can move it"
        remedy, part = "look at its bodies and at their joints", "contact_dynamics"
        raise Infeasible("E-CONTACT-014", what, remedy, part=part)
    f, mu = np.zeros((0, wide)), [contacts[k].friction for k in touching] + [0.0] * len(stops)
    if rows:
        slip = np.array([row.velocity[:-1] for row in rows])
        fast = np.linalg.norm(slip, axis=-1, keepdims=True)
        slip = np.where(fast > speed, slip / np.where(fast > speed, fast, 1.0), 0.0)
        f = LAWS[friction](problem.M, problem.d, mu, slip)
    motion = problem.motion(f.ravel())
    forces, separation = np.zeros((len(contacts), 3)), np.full(len(contacts), np.nan)
    moments = np.zeros(len(contacts))
    for i, k in enumerate(touching):
        forces[k] = rows[i].axes.T @ f[i, [0, 1, -1]]
        moments[k] = _arm(contacts[k]) * f[i, 2]
        separation[k] = motion.separation[wide * i + wide - 1]
    stopped = np.zeros(model.nv)
    for row, force in zip(rows[len(touching) :], f[len(touching) :], strict=True):
        stopped += force @ row.J
    return ContactMotion(motion.qdd, forces, stopped, separation, moments)


def _touches(k: int, contact: Contact, row: Moves, distance: float, speed: float) -> bool:
    """Return True for a contact in state 3; one that collides is an error."""
    rate = float(row.velocity[-1])
    now = state(float(row.gap), rate, distance=distance, speed=speed)
    if now is State.COLLIDING:
        problem = f"contact {k} of {contact.successor!r} closes at {-rate:.3g} m/s"
        remedy = "apply an impact first, or give a larger speed="
        raise InputError("E-CONTACT-015", problem, remedy, part="contact_dynamics")
    return now is State.TOUCHING
