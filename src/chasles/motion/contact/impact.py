"""Impact of bodies and robots: steps of velocity that impulses cause (Featherstone 2008, 11.7).

An impulse is the integral of a force over no time: moment (N m s), then force (N s). It is inertia
times the step of velocity, whether the inertia is that of a body (I, Eq 11.55), of the handle of an
articulated body (I^A, the inverse of `operational_inertia_inverse`, Eq 11.56), or of a whole system
(M, Eq 11.57). Of jointed bodies it is an idealisation: real impacts travel through them.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from chasles.algorithms.spatial.viewpoint import At, Axes
from chasles.errors import ConvergenceError, InputError, NotFiniteError
from chasles.functions.doors import leading_shape, numbers
from chasles.motion.contact.dynamics import contact_axes
from chasles.motion.contact.pairs import Rigid
from chasles.motion.contact.rigid import point_jacobian
from chasles.motion.contract import Machine
from chasles.motion.geometry.closed_forms import Contact, listed
from chasles.motion.laws.friction import coulomb
from chasles.motion.laws.moreau import Moreau
from chasles.motion.laws.restitution import ImpactLaw, Newton, check_law
from chasles.motion.laws.slip import applied
from chasles.motion.solvers.complementarity import lemke

Array = Any
Treatment = Literal["simultaneous", "sequential"]

SETTLED = 1e-12
"""Sequential impacts end where no point approaches by more than this part of the first speed."""

ROUNDS = 100_000
"""Of sequential impacts, at most."""


class Impact(NamedTuple):
    """Velocities after, qd (..., nv), and the impulses (..., contacts, 3) that changed them.

    Impulses are those on the successors of the contacts, along the world's axes, in N s.
    """

    qd: np.ndarray
    impulses: np.ndarray


def contact_forces(point: Array, normal: Array) -> np.ndarray:
    """N (..., 6, 3): unit forces through a point (m) along two tangents and the normal (Eq 11.68).

    normal: of any length. The tangents are unit vectors across it, right-handed with it.
    """
    n = numbers("contact_forces: normal", normal, 3).astype(float)
    length = np.linalg.norm(n, axis=-1, keepdims=True)
    if not np.all(np.isfinite(length) & (length > 0.0)):
        problem = "normal must be finite numbers with a length"
        raise InputError("E-CONTACT-029", problem, part="contact_forces")
    axes = contact_axes(n / length)
    place = numbers("contact_forces: point", point, 3)
    moments = np.cross(place[..., None, :], axes)
    return np.swapaxes(np.concatenate([moments, axes], axis=-1), -1, -2)


def collide(
    inertias: tuple[Array, Array],
    velocities: tuple[Array, Array],
    forces: Array,
    law: ImpactLaw,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Velocities of two bodies after they collide, and the impulse lambda (..., 3) on the second.

    inertias (..., 6, 6) and velocities (..., 6), angular part first, in one frame for both; None as
    inertia is a body that nothing moves. forces: N (..., 6, 3), `contact_forces` with the normal
    from the first body to the second (Featherstone 2008, Eq 11.60 to 11.72).
    """
    N = np.asarray(forces, dtype=float)
    if N.shape[-2:] != (6, 3):
        problem = f"forces must have shape (..., 6, 3), not {N.shape}"
        raise InputError("E-CONTACT-030", problem, part="collide")
    v1, v2 = (numbers("collide: velocities", v, 6).astype(float) for v in velocities)
    B1, B2 = (_moved(inertia, N) for inertia in inertias)
    back = np.swapaxes(N, -1, -2)
    impulse = law.impulse(back @ (B1 + B2), applied(back, v2 - v1))
    return v1 - applied(B1, impulse), v2 + applied(B2, impulse), impulse


def velocity_step(
    robot: Machine, q: Array, impulse: Array, *, frame: str, axes: Axes = "world", at: At = "frame"
) -> np.ndarray:
    """The step of qd (..., nv) by an impulse (..., 6) on a frame's body (Eq 11.57, 11.58).

    M d(qd) = J' impulse; on the independent coordinates of loops, which stay closed. `axes` and
    `at` say how the impulse is given, as in `jacobian`; J times the step is that of the frame.
    """
    iota = numbers("velocity_step: impulse", impulse, 6)
    J = robot.jacobian(q, frame=frame, axes=axes, at=at)
    return applied(response(robot, q, np.swapaxes(J, -1, -2)), iota)


def response(robot: Machine, q: Array, forces: Array) -> np.ndarray:
    """The steps of qd by joint-space impulses, the columns of forces (..., nv, k).

    M^-1 of a tree; of loops G (G'M G)^-1 G', with the rates qd = G yd of the independent freedoms
    (Featherstone 2008, Eq 8.44).
    """
    M = robot.mass_matrix(q)
    G = robot.mechanism.closing.directions(q)
    Gt = np.swapaxes(G, -1, -2)
    steps: np.ndarray = G @ np.linalg.solve(Gt @ M @ G, Gt @ forces)
    return steps


def impact(
    robot: Machine,
    q: Array,
    qd: Array,
    contacts: Sequence[Contact],
    law: ImpactLaw,
    *,
    treatment: Treatment = "simultaneous",
    distance: float = 1e-9,
) -> Impact:
    """What a robot does when bodies hit: q (..., nq), qd before (..., nv).

    contacts: as `contact_points` gives them at this state, near or not; those with a gap up to
    `distance` (m) and a negative normal velocity collide. law: `Newton`, `Sticking`, `Poisson`,
    `Stronge` or `Moreau`, which has its own coefficients; those of the contacts are not asked.

    Of several contacts, treatment="simultaneous" is Newton's law without friction at all of them:
    each separates at least as fast as its restitution says, and is pushed only if no faster; it
    raises `Infeasible` where that cannot be. With friction that is `Moreau`. "sequential" is any
    law at the fastest approaching contact, again and again until none approaches. They differ:
    Newton's cradle is sequential.
    """
    if treatment not in ("simultaneous", "sequential"):
        problem = f"treatment must be 'simultaneous' or 'sequential', not {treatment!r}"
        raise InputError("E-CONTACT-031", problem, part="impact")
    check_law("impact: law", law)
    contacts = listed("impact", contacts)
    if not contacts:
        raise InputError("E-CONTACT-032", "give at least one contact", part="impact")
    q, qd = checked_state(robot, q, qd)
    flat = np.concatenate([contact_jacobian(robot, q, contact) for contact in contacts], axis=-2)
    B = response(robot, q, np.swapaxes(flat, -1, -2))
    W, zeta = flat @ B, applied(flat, qd)
    touching = near(contacts, zeta.shape[:-1], distance)
    if len(contacts) == 1:
        impulses = np.where(touching, law.impulse(W, zeta), 0.0)
    elif treatment == "sequential":
        impulses = _sequential(law, W, zeta, touching)
    else:
        impulses = _simultaneous(law, W, zeta, touching)
    axes = np.stack([_axes(contact, zeta.shape[:-1]) for contact in contacts], axis=-3)
    local = impulses.reshape(*impulses.shape[:-1], len(contacts), 3)
    return Impact(qd + applied(B, impulses), applied(np.swapaxes(axes, -1, -2), local))


def near(contacts: Sequence[Contact], lead: tuple[int, ...], distance: float) -> np.ndarray:
    """Which contacts touch (..., k), in states of a leading shape."""
    gaps = np.stack([np.broadcast_to(c.gap, lead) for c in contacts], axis=-1)
    return np.asarray(gaps <= distance)


def contact_jacobian(robot: Machine, q: Array, contact: Contact) -> np.ndarray:
    """J (..., 3, nv): the successor's velocity at a contact, relative, in contact axes."""
    over, under = (
        point_jacobian(robot, q, frame, contact.point)
        for frame in (contact.successor, contact.predecessor)
    )
    turned: np.ndarray = contact_axes(contact.normal) @ (over - under)
    return turned


def _axes(contact: Contact, lead: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(contact_axes(contact.normal), (*lead, 3, 3))


def _sequential(
    law: ImpactLaw, W: np.ndarray, zeta: np.ndarray, touching: np.ndarray
) -> np.ndarray:
    """Impulses (..., 3k) of impacts one after the other, the fastest approaching contact first."""
    lead, k = zeta.shape[:-1], zeta.shape[-1] // 3
    W, now = W.reshape(-1, 3 * k, 3 * k), zeta.reshape(-1, 3 * k).copy()
    total, touching = np.zeros_like(now), touching.reshape(-1, k)
    bound = -SETTLED * np.max(np.abs(now), axis=-1)
    for _ in range(ROUNDS):
        normal = np.where(touching, now[:, 2::3], np.inf)
        point = np.argmin(normal, axis=-1)
        some = np.flatnonzero(np.min(normal, axis=-1) < bound)
        if not some.size:
            return total.reshape(*lead, 3 * k)
        rows = 3 * point[some, None] + np.arange(3)
        member = some[:, None]
        own = W[member[..., None], rows[..., None], rows[:, None, :]]
        impulse = law.impulse(own, now[member, rows])
        total[member, rows] += impulse
        now[some] += applied(np.swapaxes(W[member, rows], -1, -2), impulse)
    problem = f"sequential impacts do not end within {ROUNDS}"
    raise NotFiniteError("E-CONTACT-033", problem, "use treatment='simultaneous'", part="impact")


def _simultaneous(
    law: ImpactLaw, W: np.ndarray, zeta: np.ndarray, touching: np.ndarray
) -> np.ndarray:
    """Impulses (..., 3k) at all contacts at once, for each state."""
    check_at_once(law)
    impulses = np.zeros_like(zeta)
    for place in np.ndindex(zeta.shape[:-1]):
        rows = rows_of(touching[place])
        impulses[place][rows] = at_once(law, W[place][np.ix_(rows, rows)], zeta[place][rows])
    return impulses


def rows_of(touching: np.ndarray) -> np.ndarray:
    """The numbers, three a contact, of those that touch."""
    return np.flatnonzero(np.repeat(touching, 3))


def check_at_once(law: ImpactLaw) -> None:
    """Refuse laws that see one contact only."""
    plain = isinstance(law, Newton) and not np.any(law.friction) and not np.ndim(law.restitution)
    if not (plain or isinstance(law, Moreau)):
        problem = (
            "several contacts at once need Newton(e) without friction, e a number, or Moreau(e, mu)"
        )
        remedy = "for other laws give treatment='sequential'"
        raise InputError("E-CONTACT-034", problem, remedy, part="impact")


def at_once(law: Any, W: np.ndarray, zeta: np.ndarray) -> np.ndarray:
    """Impulses (3k,) at k contacts that touch, of one state: a complementarity problem."""
    if isinstance(law, Moreau):
        return law.impulse(W, zeta) if len(zeta) else zeta
    normal = zeta[2::3]
    impulses = np.zeros_like(zeta)
    d = normal + law.restitution * np.minimum(normal, 0.0)
    impulses[2::3] = lemke(W[2::3, 2::3], d)
    return impulses


def _moved(inertia: Array, forces: np.ndarray) -> np.ndarray:
    """I^-1 N; zero for a body that nothing moves."""
    if inertia is None:
        return np.zeros_like(forces)
    I = np.asarray(inertia, dtype=float)
    if I.shape[-2:] != (6, 6):
        problem = f"inertias must have shape (..., 6, 6) or be None, not {I.shape}"
        raise InputError("E-CONTACT-035", problem, part="collide")
    return np.linalg.solve(I, forces)


def checked_state(robot: Machine, q: Array, qd: Array) -> tuple[np.ndarray, np.ndarray]:
    """q and qd as finite floats with one leading shape."""
    given = {"q": numbers("impact: q", q, robot.nq), "qd": numbers("impact: qd", qd, robot.nv)}
    for name, array in given.items():
        if not np.isfinite(array).all():
            raise InputError("E-CONTACT-036", f"{name} must be finite numbers", part="impact")
    lead = leading_shape("impact", **given)
    place, rate = (
        np.array(np.broadcast_to(a, (*lead, a.shape[-1])), float) for a in given.values()
    )
    return place, rate


# In motion -------------------------------------------------------------------------------------


MOST = 10_000
"""Of impacts in turn within a motion."""


def impulses(laws: Sequence[Rigid], W: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Those (3k,) at k points that touch, along their axes of contact, in N s.

    W (3k, 3k): what impulses change velocities v (k, 3) by. By restitution alone all act at once:
    Newton's law and Coulomb's, for the velocities after the impact (Moreau 1988). By laws of one
    point they act in turn, where it closes fastest.
    """
    in_turn = any(law.impact is not None for law in laws)
    return (_in_turn if in_turn else _newton_at_once)(laws, W, v)


def _newton_at_once(laws: Sequence[Rigid], W: np.ndarray, v: np.ndarray) -> np.ndarray:
    c, mu, e = v.copy(), *np.transpose([(law.friction, law.restitution) for law in laws])
    c[:, 2] += e * np.minimum(v[:, 2], 0.0)
    return coulomb(W, c.ravel(), mu).ravel()


def _in_turn(laws: Sequence[Rigid], W: np.ndarray, v: np.ndarray) -> np.ndarray:
    now, total = v.copy(), np.zeros_like(v)
    blocks = W.reshape(len(v), 3, len(v), 3)
    least = SETTLED * np.min(v[:, 2])
    for _ in range(MOST):
        k = int(np.argmin(now[:, 2]))
        if now[k, 2] >= least:
            return total.ravel()
        impulse = laws[k].impact_law.impulse(blocks[k, :, k], now[k])
        total[k] += impulse
        now += blocks[:, :, k] @ impulse
    problem = f"impacts in turn do not end within {MOST}"
    raise ConvergenceError("E-MOTION-045", problem, "give restitution= instead of impact=")
