"""Impact of bodies and robots: steps of velocity that impulses cause (Featherstone 2008, 11.7).

An impulse is the integral of a force over no time: moment (N m s), then force (N s). It is inertia
times the step of velocity, whether the inertia is that of a body (I, Eq 11.55), of the handle of an
articulated body (I^A, the inverse of `operational_inertia_inverse`, Eq 11.56), or of a whole system
(M, Eq 11.57). Of jointed bodies it is an idealisation: real impacts travel through them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from chasles.algorithms.spatial.viewpoint import At, Axes
from chasles.compiled import checked_point
from chasles.contact.restitution import ImpactLaw, Newton
from chasles.contact.slip import applied
from chasles.names import leading_shape, numbers
from chasles.robot import Robot

Array = Any
Treatment = Literal["simultaneous", "sequential"]

SETTLED = 1e-12
"""Sequential impacts end where no point approaches by more than this part of the first speed."""

ROUNDS = 100_000
"""Of sequential impacts, at most."""


@dataclass(frozen=True)
class ContactPoint:
    """A point of a robot that touches the ground or another of its bodies.

    frame: whose body it belongs to. at: the point in that frame (m). normal: the direction along
    the world's axes in which the body can leave, away from what it touches; of any length. other:
    a frame of the other body, or None for the ground.
    """

    frame: str
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    other: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", checked_point(self.at))
        if isinstance(self.at, str):
            raise ValueError(f"ContactPoint: at must be three numbers, not {self.at!r}")
        contact_axes(self.normal)

    def jacobian(self, robot: Robot, q: Array) -> np.ndarray:
        """J (..., 3, nv) with the point's velocity relative to what it touches, in contact axes."""
        rows = self.world_jacobian(robot, q)
        turned: np.ndarray = contact_axes(self.normal).T @ rows
        return turned

    def world_jacobian(self, robot: Robot, q: Array) -> np.ndarray:
        """The same along the world's axes."""
        J: np.ndarray = robot.jacobian(q, frame=self.frame, at=self.at)[..., 3:, :]
        if self.other is None:
            return J
        other = robot.jacobian(q, frame=self.other)
        r = self.offset(robot, q)
        return J - other[..., 3:, :] - np.cross(other[..., :3, :], r[..., :, None], axis=-2)

    def offset(self, robot: Robot, q: Array) -> np.ndarray:
        """From the origin of the other frame to the point, along the world's axes (..., 3)."""
        here = robot.forward_kinematics(q, frame=self.frame)
        there = robot.forward_kinematics(q, frame=str(self.other))
        place = here[..., :3, :3] @ np.asarray(self.at) + here[..., :3, 3]
        apart: np.ndarray = place - there[..., :3, 3]
        return apart


class Impact(NamedTuple):
    """Velocities after, qd (..., nv), and impulses (..., points, 3) on the bodies of the points.

    Impulses are in contact axes: tangent, tangent, normal (N s).
    """

    qd: np.ndarray
    impulses: np.ndarray


def contact_axes(normal: Array) -> np.ndarray:
    """Tangent, tangent, normal as columns (3, 3): a right-handed frame of unit vectors.

    The first tangent is as near to the world's x axis as it can be (to y for a normal along x).
    """
    n = numbers("contact_axes: normal", normal, 3).astype(float)
    length = np.linalg.norm(n)
    if n.shape != (3,) or not (np.isfinite(length) and length > 0.0):
        raise ValueError(
            f"contact_axes: normal must be three numbers with a length, not {normal!r}"
        )
    n = n / length
    aside = np.array([0.0, 1.0, 0.0]) if abs(n[0]) > 0.9 else np.array([1.0, 0.0, 0.0])
    first = aside - n * (n @ aside)
    first /= np.linalg.norm(first)
    return np.column_stack([first, np.cross(n, first), n])


def contact_forces(point: Array, normal: Array) -> np.ndarray:
    """N (6, 3): unit forces through a point (m) along the contact axes (Eq 11.68)."""
    axes = contact_axes(normal)
    place = numbers("contact_forces: point", point, 3)
    return np.vstack([np.cross(place, axes.T).T, axes])


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
        raise ValueError(f"collide: forces must have shape (..., 6, 3), not {N.shape}")
    v1, v2 = (numbers("collide: velocities", v, 6).astype(float) for v in velocities)
    B1, B2 = (_moved(inertia, N) for inertia in inertias)
    back = np.swapaxes(N, -1, -2)
    impulse = law.impulse(back @ (B1 + B2), applied(back, v2 - v1))
    return v1 - applied(B1, impulse), v2 + applied(B2, impulse), impulse


def velocity_step(
    robot: Robot, q: Array, impulse: Array, *, frame: str, axes: Axes = "world", at: At = "frame"
) -> np.ndarray:
    """The step of qd (..., nv) by an impulse (..., 6) on a frame's body (Eq 11.57, 11.58).

    M d(qd) = J' impulse; on the independent coordinates of loops, which stay closed. `axes` and
    `at` say how the impulse is given, as in `jacobian`; J times the step is that of the frame.
    """
    iota = numbers("velocity_step: impulse", impulse, 6)
    J = robot.jacobian(q, frame=frame, axes=axes, at=at)
    return applied(response(robot, q, np.swapaxes(J, -1, -2)), iota)


def response(robot: Robot, q: Array, forces: Array) -> np.ndarray:
    """The steps of qd by joint-space impulses, the columns of forces (..., nv, k).

    M^-1 of a tree; of loops G (G'M G)^-1 G', with the rates qd = G yd of the independent freedoms
    (Featherstone 2008, Eq 8.44).
    """
    M = robot.mass_matrix(q)
    if not robot.model.loop_rows:
        return np.linalg.solve(M, np.asarray(forces))
    places = np.asarray(q, dtype=float)[..., None, :]
    free = np.eye(len(robot.independent))
    Gt = robot.complete(places, free) - robot.complete(places, 0.0 * free)
    G = np.swapaxes(Gt, -1, -2)
    steps: np.ndarray = G @ np.linalg.solve(Gt @ M @ G, Gt @ forces)
    return steps


def impact(
    robot: Robot,
    q: Array,
    qd: Array,
    contacts: ContactPoint | Sequence[ContactPoint],
    law: ImpactLaw,
    *,
    treatment: Treatment = "simultaneous",
) -> Impact:
    """What a robot does when points of it hit: q (..., nq), qd before (..., nv).

    law: `Newton`, `Sticking`, `Poisson`, `Stronge`. Of several points, treatment="simultaneous" is
    Newton's law without friction at all of them: each is left at e times its speed or faster, and
    pushed only if no faster (Moreau); "sequential" is any law at the fastest approaching point,
    again and again until none approaches. They differ: Newton's cradle is sequential.
    """
    points = [contacts] if isinstance(contacts, ContactPoint) else list(contacts)
    if treatment not in ("simultaneous", "sequential"):
        raise ValueError(
            f"impact: treatment must be 'simultaneous' or 'sequential', not {treatment!r}"
        )
    if not points:
        raise ValueError("impact: give at least one ContactPoint")
    q, qd = checked_state(robot, q, qd)
    J = np.stack([point.jacobian(robot, q) for point in points], axis=-3)
    flat = J.reshape(*J.shape[:-3], 3 * len(points), robot.nv)
    B = response(robot, q, np.swapaxes(flat, -1, -2))
    W, zeta = flat @ B, applied(flat, qd)
    if len(points) == 1:
        impulses = law.impulse(W, zeta)
    elif treatment == "sequential":
        impulses = _sequential(law, W, zeta)
    else:
        impulses = _simultaneous(law, W, zeta)
    return Impact(qd + applied(B, impulses), impulses.reshape(*J.shape[:-1]))


def _sequential(law: ImpactLaw, W: np.ndarray, zeta: np.ndarray) -> np.ndarray:
    """Impulses (..., 3k) of impacts one after the other, the fastest approaching point first."""
    lead, k = zeta.shape[:-1], zeta.shape[-1] // 3
    W, now = W.reshape(-1, 3 * k, 3 * k), zeta.reshape(-1, 3 * k).copy()
    total = np.zeros_like(now)
    bound = -SETTLED * np.max(np.abs(now), axis=-1)
    for _ in range(ROUNDS):
        normal = now[:, 2::3]
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
    raise FloatingPointError(
        f"impact: sequential impacts do not end within {ROUNDS}; use treatment='simultaneous'"
    )


def _simultaneous(law: ImpactLaw, W: np.ndarray, zeta: np.ndarray) -> np.ndarray:
    """Impulses (..., 3k) at all points at once: the least step that leaves no point too slow."""
    e = np.asarray(getattr(law, "restitution", np.nan), dtype=float)
    if not isinstance(law, Newton) or np.any(np.asarray(law.friction) != 0.0) or e.ndim:
        raise ValueError(
            "impact: several points at once need Newton(e) without friction, e a number; for other "
            "laws give treatment='sequential'"
        )
    normal = zeta[..., 2::3]
    A, wanted = W[..., 2::3, 2::3], -normal - e * np.minimum(normal, 0.0)
    impulses = np.zeros_like(zeta)
    for place in np.ndindex(normal.shape[:-1]):
        impulses[(*place, slice(2, None, 3))] = _least(A[place], wanted[place])
    return impulses


def _least(A: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The z >= 0 of least z'A z with A z >= wanted, equal where z > 0 (A symmetric, semidefinite).

    A least-distance problem, solved by non-negative least squares (Lawson and Hanson 1974, ch. 23).
    """
    from scipy.optimize import nnls

    sizes, axes = np.linalg.eigh(A)
    kept = sizes > 1e-12 * sizes[-1]
    G = axes[:, kept] * np.sqrt(sizes[kept])
    scale = np.max(np.abs(wanted), initial=0.0)
    if scale == 0.0 or np.all(wanted <= 0.0):
        return np.zeros(len(wanted))
    h = wanted / scale
    stacked = np.vstack([G.T, h])
    target = np.append(np.zeros(G.shape[1]), 1.0)
    u, _ = nnls(stacked, target)
    left = 1.0 - h @ u
    if left < 1e-12:
        raise ValueError(
            "impact: no velocities satisfy Newton's law at all points at once (some are squeezed "
            "while others separate); use treatment='sequential', or restitution 0"
        )
    result: np.ndarray = scale * u / left
    return result


def _moved(inertia: Array, forces: np.ndarray) -> np.ndarray:
    """I^-1 N; zero for a body that nothing moves."""
    if inertia is None:
        return np.zeros_like(forces)
    I = np.asarray(inertia, dtype=float)
    if I.shape[-2:] != (6, 6):
        raise ValueError(f"collide: inertias must have shape (..., 6, 6) or be None, not {I.shape}")
    return np.linalg.solve(I, forces)


def checked_state(robot: Robot, q: Array, qd: Array) -> tuple[np.ndarray, np.ndarray]:
    """q and qd as finite floats with one leading shape."""
    given = {"q": numbers("impact: q", q, robot.nq), "qd": numbers("impact: qd", qd, robot.nv)}
    for name, array in given.items():
        if not np.isfinite(array).all():
            raise ValueError(f"impact: {name} must be finite numbers")
    lead = leading_shape("impact", **given)
    place, rate = (
        np.array(np.broadcast_to(a, (*lead, a.shape[-1])), float) for a in given.values()
    )
    return place, rate
