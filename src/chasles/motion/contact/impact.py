"""Impacts on bodies and robots: velocity steps due to impulses (Featherstone 2008, section 11.7).

An impulse is the integral of a spatial force over a very short time. Its components are the moment
impulse (N m s), then the force impulse (N s). An impulse equals an inertia times the velocity step:
I for a body (Eq 11.55), I^A for the handle of an articulated body (the inverse of
`operational_inertia_inverse`, Eq 11.56), and M for a system (Eq 11.57). For articulated bodies,
this is an idealization, because real impacts propagate from body to body.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from chasles.algorithms.spatial.kinematics import At, Axes
from chasles.errors import InputError, NotFiniteError
from chasles.functions.doors import leading_shape, numbers
from chasles.mechanisms import Mechanism
from chasles.mechanisms.mechanism import accelerated
from chasles.model import Model
from chasles.motion.contact.dynamics import paired, response
from chasles.motion.contract import Machine, read_only
from chasles.motion.geometry.closed_forms import applied, contact_axes
from chasles.motion.geometry.features import listed
from chasles.motion.geometry.kinematics import Contact, jacobian_at
from chasles.motion.laws.restitution import ImpactLaw, Moreau, Newton, check_law
from chasles.motion.solvers import lemke
from chasles.names import one_of

Array = Any
Treatment = Literal["propagated", "simultaneous", "sequential"]

SETTLED, SETTLED_FRICTION = 1e-12, 1e-9
"""Tolerances for the approach speeds at contacts, relative to the initial speed. An impact is
finished once all approach speeds are below the tolerance. `SETTLED_FRICTION` applies to impacts
with friction, and exceeds the error of the cone-program solver.
"""

ROUNDS = 100_000
"""Maximum number of iterations of `impact` with treatment "sequential" or "propagated"."""


class Impact(NamedTuple):
    """Result of an impact.

    Attributes
    ----------
    qd : array, shape (..., nv)
        Joint velocities after the impact.
    impulses : array, shape (..., contacts, 3)
        Impulse on the second body (successor) of each contact, along the world axes (N s).
    """

    qd: np.ndarray
    impulses: np.ndarray


def velocity_step(
    robot: Machine, q: Array, impulse: Array, *, frame: str, axes: Axes = "world", at: At = "frame"
) -> np.ndarray:
    """Return the change in joint velocities due to an impulse on a frame.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Joint positions (rad or m).
    impulse : array_like, shape (..., 6)
        Angular impulse (N m s), then linear impulse (N s).
    frame : str
        Name of the frame.
    axes, at : optional
        Axes and reference point of the impulse, as in `Robot.jacobian`.

    Returns
    -------
    step : ndarray, shape (..., nv)
        Change in qd. The Jacobian times this change is the change in the velocity of the frame.

    Raises
    ------
    InputError
        If an array has the wrong shape, or if `axes` or `at` is unknown.
    ModelError
        If the frame does not exist, or if the frame can move without moving any mass.
    ArgumentError
        If an argument is not an array of real numbers.

    Notes
    -----
    M d(qd) = J' impulse (Featherstone 2008, Eq 11.57 and 11.58). With closed loops, the equation is
    solved in the independent coordinates, so the loops remain closed.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.planar(1)
    >>> chasles.contact.velocity_step(robot, [0.0], [0, 0, 0, 0, 0, 1.0], frame="tip").round(6)
    array([3.])
    """
    iota = numbers("velocity_step: impulse", impulse, 6)
    robot.mechanism.check_inertia("velocity_step")
    J = robot.mechanism.jacobian(q, frame=frame, axes=axes, at=at)
    return applied(response(robot.mechanism, q, np.swapaxes(J, -1, -2)), iota)


def impact(
    robot: Machine,
    q: Array,
    qd: Array,
    contacts: Sequence[Contact],
    law: ImpactLaw,
    *,
    treatment: Treatment = "propagated",
    distance: float = 1e-9,
) -> Impact:
    """Compute the velocities of a robot after an impact.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Joint positions (rad or m).
    qd : array_like, shape (..., nv)
        Joint velocities before the impact.
    contacts : sequence of Contact
        Contacts from `contact_points` in this state, at any distance.
    law : ImpactLaw
        `Newton`, `Sticking`, `Poisson`, `Stronge` or `Moreau`. The coefficients of the law are used
        instead of those of the contacts.
    treatment : {"propagated", "simultaneous", "sequential"}, optional
        Treatment of several contacts; see Notes.
    distance : float, optional
        Contacts with a gap up to this value (m) and a negative normal velocity collide.

    Returns
    -------
    result : Impact
        Velocities after the impact, and impulses.

    Raises
    ------
    Infeasible
        If "simultaneous" impacts have no solution.
    InputError
        If `treatment` is unknown, if there are no contacts, if an array has the wrong shape or is
        not finite, or if `law` does not support several simultaneous contacts.
    ArgumentError
        If `law` is not an impact law, or if `contacts` is not a list of contacts.
    NotFiniteError
        If the iterations over several impacts do not converge.

    Notes
    -----
    "simultaneous" applies Newton's law without friction to all contacts: each separates at least as
    fast as its restitution requires, and has an impulse only if it does not separate faster. With
    friction, use `Moreau`. "propagated" applies the same law to the contacts between bodies that
    approach each other, then to the contacts between bodies that approach each other as a result,
    and so on. Without restitution, all contacts take part in every round. "sequential" applies any
    law to one contact at a time, always to the contact with the highest approach speed.

    The results differ: in Newton's cradle with three balls, only the third ball moves after
    propagated or sequential impacts, and all three move after simultaneous impacts.

    Examples
    --------
    >>> import chasles
    >>> from chasles import contact
    >>> robot = chasles.robots.planar(1)
    >>> q, qd = [0.0], [-1.0]
    >>> found = contact.contact_points(robot, q, qd, contact.Point("tip"), contact.Plane())
    >>> contact.impact(robot, q, qd, found, contact.Newton(0.5)).qd.round(6)
    array([0.5])
    """
    if treatment not in get_args(Treatment):
        problem, remedy = f"unknown treatment {treatment!r}", one_of(treatment, get_args(Treatment))
        raise InputError("E-CONTACT-031", problem, remedy, part="impact")
    check_law("impact: law", law)
    contacts = listed("impact", contacts)
    if not contacts:
        raise InputError("E-CONTACT-032", "pass at least one contact", part="impact")
    mechanism, (q, qd) = robot.mechanism, _checked_state(robot.model, q, qd)
    mechanism.check_inertia("impact")
    J = _jacobian(mechanism, q, contacts)
    B = response(mechanism, q, np.swapaxes(J, -1, -2))
    W, zeta = J @ B, applied(J, qd)
    lead = zeta.shape[:-1]
    still = np.zeros((*W.shape, 0)), np.zeros((*zeta.shape, 0))
    touching = _near(contacts, lead, distance)
    rounds = _Rounds.of(mechanism.model, contacts, treatment)
    impulses, _ = _impulses(law, rounds, (W, zeta), still, touching)
    axes = [np.broadcast_to(contact_axes(contact.normal), (*lead, 3, 3)) for contact in contacts]
    back = np.swapaxes(np.stack(axes, axis=-3), -1, -2)
    local = impulses.reshape(*lead, len(contacts), 3)
    return Impact(qd + applied(B, impulses), applied(back, local))


def _near(contacts: Sequence[Contact], lead: tuple[int, ...], distance: float) -> np.ndarray:
    """Return the mask (..., k) of contacts that touch, for states with leading shape `lead`."""
    gaps = np.stack([np.broadcast_to(c.gap, lead) for c in contacts], axis=-1)
    return np.asarray(gaps <= distance)


def _jacobian(mechanism: Mechanism, q: Array, contacts: Sequence[Contact]) -> np.ndarray:
    """Return the Jacobian (..., 3k, nv) of the relative velocities at contacts, in contact axes."""
    return np.concatenate([contact_jacobian(mechanism, q, c) for c in contacts], axis=-2)


def contact_jacobian(mechanism: Mechanism, q: Array, contact: Contact) -> np.ndarray:
    """Return the Jacobian (..., 3, nv) of the relative velocity at a contact, in contact axes.

    The velocity is that of the successor relative to the predecessor.
    """
    over, under = (
        point_jacobian(mechanism, q, frame, contact.point)
        for frame in (contact.successor, contact.predecessor)
    )
    turned: np.ndarray = contact_axes(contact.normal) @ (over - under)
    return turned


def point_jacobian(mechanism: Mechanism, q: Array, frame: str | None, point: Array) -> np.ndarray:
    """Return the Jacobian (..., 3, nv) of a body point at a world position, along world axes."""
    place = np.asarray(point, dtype=float)
    if frame is None:
        return np.zeros((*place.shape, mechanism.model.nv))
    r = place - mechanism.forward_kinematics(q, frame=frame)[..., :3, 3]
    return jacobian_at(mechanism.jacobian(q, frame=frame), r)


Given = tuple[np.ndarray, np.ndarray]
"""Inverse inertia W (..., 3k, 3k) and relative velocity zeta (..., 3k) at k contacts. For
derivatives with respect to p variables, both arrays have an additional last axis (p,)."""


class _Rounds(NamedTuple):
    """Settings for an impact at k contacts that is computed iteratively.

    Attributes
    ----------
    treatment : Treatment
        Treatment of several contacts, as in `impact`.
    bodies : array, shape (k,)
        Index of the body pair of each contact.
    """

    treatment: Treatment
    bodies: np.ndarray

    @staticmethod
    def of(model: Model, contacts: Sequence[Contact], treatment: Treatment) -> "_Rounds":
        return _Rounds(treatment, paired(model, [contact[:2] for contact in contacts]))

    def meet(self, law: Any, closing: np.ndarray) -> np.ndarray:
        """Return a mask (k,) that selects the contacts that may transmit impulses.

        The mask `closing` (k,) selects the contacts that collide.
        """
        if self.treatment == "simultaneous" or law.restitution == 0.0:
            return np.ones_like(closing)
        return np.isin(self.bodies, self.bodies[closing])


def _impulses(
    law: Any, rounds: _Rounds, given: Given, changes: Given, touching: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return impulses (..., 3k), and their derivatives (..., 3k, p) with respect to p variables.

    `given` contains the inverse inertia W and the relative velocity zeta at k contacts (see
    `Given`), and `changes` contains their derivatives.
    """
    (W, zeta), (dW, dzeta) = given, changes
    if touching.shape[-1] == 1:
        impulses, changed = _changed(law, given, changes)
        return np.where(touching, impulses, 0.0), np.where(touching[..., None], changed, 0.0)
    if rounds.treatment == "sequential":
        return _sequential(law, given, changes, touching)
    plain = isinstance(law, Newton) and not np.any(law.friction) and not np.ndim(law.restitution)
    if not (plain or isinstance(law, Moreau)):
        problem = "several simultaneous contacts need Moreau(e, mu), or Newton(e) with a scalar e"
        remedy = "use treatment='sequential' for other laws"
        raise InputError("E-CONTACT-034", problem, remedy, part="impact")
    impulses, changed = np.zeros_like(zeta), np.zeros_like(dzeta)
    for place in np.ndindex(zeta.shape[:-1]):
        here, there = (W[place], zeta[place]), (dW[place], dzeta[place])
        impulses[place], changed[place] = _in_rounds(law, rounds, here, there, touching[place])
    return impulses, changed


def _in_rounds(
    law: Any, rounds: _Rounds, given: Given, changes: Given, touching: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Apply impacts to one state repeatedly, until no touching bodies approach each other."""
    (W, now), (dW, dnow) = given, changes
    total, changed = np.zeros_like(now), np.zeros_like(dnow)
    solve, part = (_changed, SETTLED_FRICTION) if isinstance(law, Moreau) else (_together, SETTLED)
    bound = -part * np.max(np.abs(now))
    for _ in range(ROUNDS):
        closing = touching & (now[2::3] < bound)
        if not closing.any():
            return total, changed
        rows = np.flatnonzero(np.repeat(touching & rounds.meet(law, closing), 3))
        square = np.ix_(rows, rows)
        step, slopes = solve(law, (W[square], now[rows]), (dW[square], dnow[rows]))
        total[rows] += step
        changed[rows] += slopes
        now = now + W[:, rows] @ step
        dnow = dnow + W[:, rows] @ slopes + np.einsum("ijp,j->ip", dW[:, rows], step)
        if rounds.treatment == "simultaneous":
            return total, changed
    problem = f"impacts did not converge within {ROUNDS} iterations"
    raise NotFiniteError("E-CONTACT-280", problem, "use treatment='simultaneous'", part="impact")


def _changed(law: ImpactLaw, given: Given, changes: Given) -> tuple[np.ndarray, np.ndarray]:
    """Return the impulse at one contact, and its derivatives (see `_impulses`)."""
    impulse, (dW, dzeta) = law.impulse(*read_only(*given)), changes
    if not dzeta.shape[-1]:
        return impulse, np.zeros((*impulse.shape, 0))
    by_W, by_zeta = law.derivatives(*given)
    return impulse, np.einsum("...ijk,...jkp->...ip", by_W, dW) + by_zeta @ dzeta


def _together(law: Newton, given: Given, changes: Given) -> tuple[np.ndarray, np.ndarray]:
    """Apply Newton's law to all contacts of one state by solving a complementarity problem."""
    (W, zeta), (dW, dzeta) = given, changes
    normal = zeta[2::3]
    impulses, changed = np.zeros_like(zeta), np.zeros_like(dzeta)
    impulses[2::3] = lemke(W[2::3, 2::3], normal + law.restitution * np.minimum(normal, 0.0))
    if not dzeta.shape[-1]:
        return impulses, changed
    pushed = np.flatnonzero(impulses)
    e = np.where(zeta[pushed] < 0.0, law.restitution, 0.0)[:, None]
    square = np.ix_(pushed, pushed)
    missing = np.einsum("ijp,j->ip", dW[square], impulses[pushed]) + (1.0 + e) * dzeta[pushed]
    changed[pushed] = np.linalg.solve(W[square], -missing)
    return impulses, changed


def _sequential(
    law: ImpactLaw, given: Given, changes: Given, touching: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Apply impacts one at a time, always at the contact with the highest approach speed."""
    (W, zeta), (dW, dzeta) = given, changes
    shapes, m, (n, p) = (zeta.shape, dzeta.shape), zeta[..., 0].size, dzeta.shape[-2:]
    W, dW = W.reshape(m, n, n), dW.reshape(m, n, n, p)
    now, dnow = zeta.reshape(m, n).copy(), dzeta.reshape(m, n, p).copy()
    total, changed, touching = np.zeros_like(now), np.zeros_like(dnow), touching.reshape(m, n // 3)
    bound = -SETTLED * np.max(np.abs(now), axis=-1)
    for _ in range(ROUNDS):
        normal = np.where(touching, now[:, 2::3], np.inf)
        some = np.flatnonzero(np.min(normal, axis=-1) < bound)
        if not some.size:
            return total.reshape(shapes[0]), changed.reshape(shapes[1])
        rows = 3 * np.argmin(normal[some], axis=-1)[:, None] + np.arange(3)
        at, square = (some[:, None], rows), (some[:, None, None], rows[..., None], rows[:, None, :])
        impulse, change = _changed(law, (W[square], now[at]), (dW[square], dnow[at]))
        total[at] += impulse
        changed[at] += change
        columns = np.swapaxes(W[at], -1, -2)
        now[some] += applied(columns, impulse)
        dnow[some] += columns @ change + np.einsum("sjip,sj->sip", dW[at], impulse)
    problem = f"sequential impacts did not converge within {ROUNDS} iterations"
    raise NotFiniteError("E-CONTACT-033", problem, "use treatment='simultaneous'", part="impact")


def _checked_state(model: Model, q: Array, qd: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return q and qd as float arrays with a common leading shape, after checking the values."""
    given = {"q": numbers("impact: q", q, model.nq), "qd": numbers("impact: qd", qd, model.nv)}
    for name, array in given.items():
        if not np.isfinite(array).all():
            raise InputError("E-CONTACT-036", f"{name} must be finite", part="impact")
    lead = leading_shape("impact", **given)
    place, rate = (
        np.array(np.broadcast_to(a, (*lead, a.shape[-1])), float) for a in given.values()
    )
    return place, rate


# Derivatives ------------------------------------------------------------------------------------


def impact_derivatives(
    robot: Machine,
    q: Array,
    qd: Array,
    contact: Contact | Sequence[Contact],
    law: ImpactLaw,
    *,
    treatment: Treatment = "propagated",
    distance: float = 1e-9,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of the velocities after an impact with respect to q and qd.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Joint positions (rad or m).
    qd : array_like, shape (..., nv)
        Joint velocities before the impact.
    contact : Contact or sequence of Contact
        One contact, or several with a `treatment`.
    law : ImpactLaw
        Law of the impact.
    treatment : {"propagated", "simultaneous", "sequential"}, optional
        Treatment of several contacts, as in `impact`.
    distance : float, optional
        Maximum gap of a contact that collides (m).

    Returns
    -------
    by_q, by_qd : ndarray, shape (..., nv, nv)
        Derivatives; changes of q are displacements, as in `integrate`. With closed loops, the
        derivatives are with respect to the positions and rates of the independent coordinates, each
        with shape (..., nv, n).

    Raises
    ------
    InputError
        If an array has the wrong shape or is not finite, or if `law` does not support several
        simultaneous contacts.
    ArgumentError
        If `law` is not an impact law, or if `contact` is not a contact or a list of contacts.
    NotFiniteError
        If the iterations over several impacts do not converge.
    ModelError
        If the mass matrix is singular.

    Notes
    -----
    Contact points move with the successors, and normals are constant in the world. The derivatives
    are exact for `Sticking`, `Newton` without friction and `Moreau`; other laws use central
    differences, accurate to about 1e-9. No derivative exists where slip stops or reverses, or where
    the set of colliding contacts changes. `Sticking` requires a point that can move in all three
    directions.

    Examples
    --------
    >>> import chasles
    >>> from chasles import contact
    >>> robot = chasles.robots.planar(1)
    >>> q, qd = [0.0], [-1.0]
    >>> found = contact.contact_points(robot, q, qd, contact.Point("tip"), contact.Plane())
    >>> contact.impact_derivatives(robot, q, qd, found, contact.Newton(0.5))[1].round(6)
    array([[-0.5]])
    """
    check_law("impact_derivatives: law", law)
    one = [contact] if isinstance(contact, Contact) else contact
    contacts = listed("impact_derivatives", one)
    mechanism, (q, qd) = robot.mechanism, _checked_state(robot.model, q, qd)
    mechanism.check_inertia("impact_derivatives")
    J, M = _jacobian(mechanism, q, contacts), mechanism.mass_matrix(q)
    G, loose = mechanism.closing.carried(q, mechanism.loops.independent)
    dq, free_rates = (np.concatenate(x, -1) for x in ((G, 0.0 * G), (0.0 * G, G)))
    slopes = np.concatenate([_jacobian_slopes(mechanism, q, c) for c in contacts], axis=-3)
    names = ("mass_matrix", "loop_matrix")
    by_q = [slopes, *(mechanism.derivatives(name, q, wrt="q") for name in names)]
    dJ, dM, dA = (np.einsum("...ikl,...lp->...ikp", slope, dq) for slope in by_q)
    # The loop matrix A satisfies A G = 0, so A dG = -dA G. The rows of dG for the independent
    # coordinates are zero.
    dG = -np.einsum("...im,...mkp,...kj->...ijp", loose, dA, G)
    dqd = free_rates - np.einsum("...im,...mkp,...k->...ip", loose, dA, qd)
    B, dB = _response_slopes((M, dM), (G, dG), (J, dJ))
    W, zeta = J @ B, applied(J, qd)
    dW = np.einsum("...ikp,...kj->...ijp", dJ, B) + np.einsum("...ik,...kjp->...ijp", J, dB)
    dzeta = np.einsum("...ikp,...k->...ip", dJ, qd) + J @ dqd
    touching = _near(contacts, zeta.shape[:-1], distance)
    rounds = _Rounds.of(mechanism.model, contacts, treatment)
    impulses, changes = _impulses(law, rounds, (W, zeta), (dW, dzeta), touching)
    after = dqd + np.einsum("...ijp,...j->...ip", dB, impulses) + B @ changes
    half = dq.shape[-1] // 2
    return after[..., :half], after[..., half:]


def _response_slopes(inertia: Given, loops: Given, contacts: Given) -> Given:
    """Return the matrix B that maps contact impulses to changes of qd, and its derivatives.

    B = G (G'M G)^-1 G'J' has shape (..., nv, 3k). `inertia`, `loops` and `contacts` contain M, G
    and J with their derivatives.
    """
    (M, dM), (G, dG), (J, dJ) = inertia, loops, contacts
    Jt, Gt = np.swapaxes(J, -1, -2), np.swapaxes(G, -1, -2)
    H = Gt @ M @ G
    X = accelerated(H, Gt @ Jt, "impact_derivatives")
    B, bent = G @ X, np.einsum("...ikp,...kj->...ijp", dG, X)
    force = np.moveaxis(dJ, -3, -2) - np.einsum("...ikp,...kj->...ijp", dM, B)
    force -= np.einsum("...ik,...kjp->...ijp", M, bent)
    right = np.einsum("...kip,...kj->...ijp", dG, Jt - M @ B)
    right += np.einsum("...ik,...kjp->...ijp", Gt, force)
    dX = np.linalg.solve(H, right.reshape(*right.shape[:-2], -1)).reshape(right.shape)
    dB = bent + np.einsum("...ik,...kjp->...ijp", G, dX)
    return B, dB


def _jacobian_slopes(mechanism: Mechanism, q: np.ndarray, contact: Contact) -> np.ndarray:
    """Return the derivative (..., 3, nv, nv) of `contact_jacobian` with respect to q."""
    moved = point_jacobian(mechanism, q, contact.successor, contact.point)
    over, under = (
        _point_slopes(mechanism, q, frame, contact.point, moved)
        for frame in (contact.successor, contact.predecessor)
    )
    axes = contact_axes(contact.normal)
    return np.einsum("...ij,...jkl->...ikl", axes, over - under)


def _point_slopes(
    mechanism: Mechanism, q: np.ndarray, frame: str | None, point: np.ndarray, moved: np.ndarray
) -> np.ndarray:
    """Return the derivative (..., 3, nv, nv) of `point_jacobian` with respect to q.

    `moved` (..., 3, nv) is the derivative of the point.
    """
    if frame is None:
        return np.zeros((*moved.shape, mechanism.model.nv))
    J = mechanism.jacobian(q, frame=frame)
    dJ = mechanism.derivatives("jacobian", q, wrt="q", frame=frame)
    r = point - mechanism.forward_kinematics(q, frame=frame)[..., :3, 3]
    dr = moved - J[..., 3:, :]
    turned = np.cross(dJ[..., :3, :, :], r[..., :, None, None], axis=-3)
    shifted = np.cross(J[..., :3, :, None], dr[..., :, None, :], axis=-3)
    slopes: np.ndarray = dJ[..., 3:, :, :] + turned + shifted
    return slopes
