"""Rigid contact: the equation of motion with one-sided constraints, of a body or of a robot.

    H qdd = force + T lambda,   zetadot = T' qdd + bias
    zetadot >= 0,   lambda >= 0,   zetadot'lambda = 0

The columns of T are the contact normals in joint space, zetadot are separation accelerations and
lambda the magnitudes of contact forces (Featherstone 2008, sections 11.1 to 11.5).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError
from chasles.functions.doors import numbers
from chasles.motion.contract import Machine
from chasles.motion.geometry.carriers import cross
from chasles.motion.geometry.closed_forms import Contact, listed
from chasles.motion.solvers.complementarity import lemke
from chasles.motion.solvers.quadratic import accelerations_program, forces_program

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
        """What forces (m,) along the columns of T do."""
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


# Solving ---------------------------------------------------------------------------------------


def _by_accelerations(problem: Problem) -> np.ndarray:
    return accelerations_program(problem.H, problem.force, problem.T, problem.bias)[1]


METHODS: dict[str, Callable[[Problem], np.ndarray]] = {
    "lemke": lambda problem: lemke(problem.M, problem.d),
    "forces": lambda problem: forces_program(problem.M, problem.d),
    "accelerations": _by_accelerations,
}
"""Ways to solve a problem without friction: one row each."""


def solve(problem: Problem, *, method: str = "lemke") -> Motion:
    """The motion with all constraints of a problem touching, without friction.

    method: "lemke" (a basic solution), "forces" or "accelerations" (quadratic programs, Eq 11.43
    and 11.44). qdd and separation are unique; forces are where the normals are independent. Raises
    `Infeasible`.
    """
    if method not in METHODS:
        raise InputError(
            "E-CONTACT-068",
            f"method must be one of {', '.join(METHODS)}, not {method!r}",
            part="solve",
        )
    return problem.motion(METHODS[method](problem))


def single_contact(M: Array, d: Array) -> tuple[np.ndarray, np.ndarray]:
    """lambda and zetadot of one frictionless contact: max(0, -d/M), max(0, d) (Eq 11.10)."""
    M, d = (np.asarray(a, dtype=float) for a in (M, d))
    if not np.all(M > 0.0):
        problem = "M must be positive, as n.I^-1 n is"
        raise InputError("E-CONTACT-069", problem, part="single_contact")
    return np.maximum(0.0, -d / M), np.maximum(0.0, d)


# Making problems -------------------------------------------------------------------------------


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


class Touch(NamedTuple):
    """The successor's motion relative to the predecessor where they touch, along the world's axes.

    velocity = J qd (3,) of the two points that coincide at C, whose rate is J qdd + bias.
    """

    J: np.ndarray
    velocity: np.ndarray
    bias: np.ndarray


def touch(robot: Machine, q: Array, qd: Array, contact: Contact) -> Touch:
    """The relative motion of the two bodies at a contact of one state."""
    over, under = (
        _motion_at(robot, q, qd, frame, contact)
        for frame in (contact.successor, contact.predecessor)
    )
    return Touch(*(a - b for a, b in zip(over, under, strict=True)))


def spin(robot: Machine, q: Array, qd: Array, contact: Contact) -> Touch:
    """The successor's turning relative to the predecessor, of one state, as `touch`: in rad/s."""
    over, under = (
        _turning(robot, q, qd, frame) for frame in (contact.successor, contact.predecessor)
    )
    return Touch(*(a - b for a, b in zip(over, under, strict=True)))


def _turning(robot: Machine, q: Array, qd: Array, frame: str | None) -> Touch:
    if frame is None:
        return Touch(np.zeros((3, robot.nv)), np.zeros(3), np.zeros(3))
    return Touch(
        robot.jacobian(q, frame=frame)[:3],
        robot.frame_velocity(q, qd, frame=frame)[:3],
        robot.frame_acceleration(q, qd, np.zeros(robot.nv), frame=frame)[:3],
    )


def point_jacobian(robot: Machine, q: Array, frame: str | None, point: Array) -> np.ndarray:
    """J (..., 3, nv) of a body's point that passes a place (..., 3), along the world's axes."""
    place = np.asarray(point, dtype=float)
    if frame is None:
        return np.zeros((*place.shape, robot.nv))
    r = place - robot.forward_kinematics(q, frame=frame)[..., :3, 3]
    J = robot.jacobian(q, frame=frame)
    moved: np.ndarray = J[..., 3:, :] + np.cross(J[..., :3, :], r[..., :, None], axis=-2)
    return moved


def _motion_at(robot: Machine, q: Array, qd: Array, frame: str | None, contact: Contact) -> Touch:
    """The velocity of a body's point that passes C, while C itself moves on."""
    if frame is None:
        return Touch(np.zeros((3, robot.nv)), np.zeros(3), np.zeros(3))
    r = contact.point - robot.forward_kinematics(q, frame=frame)[:3, 3]
    w, v = np.split(robot.frame_velocity(q, qd, frame=frame), 2)
    alpha, a = np.split(robot.frame_acceleration(q, qd, np.zeros(robot.nv), frame=frame), 2)
    return Touch(
        point_jacobian(robot, q, frame, contact.point),
        v + cross(w, r),
        a + cross(alpha, r) + cross(w, contact.point_rate - v),
    )


def limit_rows(
    robot: Machine, q: Array, qd: Array, *, within: float = 0.0, speed: float = np.inf
) -> list[tuple[int, float, float]]:
    """Joint limits as one-sided constraints: freedom, sign, and how far it is away (rad or m).

    sign 1 is the lower limit and -1 the upper one. Those farther than `within`, or from which the
    joint moves away faster than `speed` (rad/s or m/s), are left out; one that it runs into faster
    is refused. Of joints with one coordinate whose rate is their velocity.
    """
    rows = []
    q, qd = numbers("q", q, robot.nq), numbers("qd", qd, robot.nv)
    for i, where in robot.model.position_slices.items():
        body, k = robot.model.bodies[i], robot.model.velocity_slices[i].start
        if not body.joint.nq == body.joint.nv == 1:
            continue
        limits, x = body.data.limits, float(q[where.start])
        for sign, gap in ((1.0, x - limits.lower), (-1.0, limits.upper - x)):
            if gap <= within and -sign * qd[k] > speed:
                raise InputError(
                    "E-CONTACT-072",
                    f"joint {body.data.name!r} runs into its limit with {-sign * qd[k]:.3g} a "
                    "second",
                    "apply an impact first, or give a larger speed=",
                )
            if gap <= within and sign * qd[k] <= speed:
                rows.append((k, sign, gap))
    return rows


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
    contacts = listed("contact_problem", contacts)
    q, qd, tau = one_state("contact_problem", robot, q, qd, tau)
    touches = [touch(robot, q, qd, contact) for contact in contacts]
    columns = [t.J.T @ c.normal for t, c in zip(touches, contacts, strict=True)]
    bias = [
        c.normal @ t.bias + c.normal_rate @ t.velocity
        for t, c in zip(touches, contacts, strict=True)
    ]
    gap = [float(c.gap) for c in contacts]
    for k, sign, distance in [] if limits is None else limit_rows(robot, q, qd, within=limits):
        columns.append(sign * np.eye(robot.nv)[k])
        bias.append(0.0)
        gap.append(distance)
    T = np.column_stack([np.zeros((robot.nv, 0)), *columns])
    return constrained_problem(
        robot, q, qd, tau, T, np.array(bias), np.array(gap), f_ext=f_ext, dissipation=dissipation
    )


def constrained_problem(
    robot: Machine,
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
    H = robot.mass_matrix(q)
    force = tau - robot.inverse_dynamics(q, qd, np.zeros(robot.nv), **options)
    loops = robot.mechanism.closing
    G, g = loops.directions(q), loops.drift(q, qd)
    return Problem(G.T @ H @ G, G.T @ (force - H @ g), G.T @ T, bias + T.T @ g, G, g, gap)


def one_state(
    function: str, robot: Machine, q: Array, qd: Array, tau: Array
) -> tuple[np.ndarray, ...]:
    """q, qd and tau of one state, finite; function: who says so."""
    sizes = {"q": robot.nq, "qd": robot.nv, "tau": robot.nv}
    found = tuple(
        numbers(f"{function}: {name}", a, size).astype(float)
        for (name, size), a in zip(sizes.items(), (q, qd, tau), strict=True)
    )
    if any(a.ndim != 1 or not np.all(np.isfinite(a)) for a in found):
        problem = "q, qd and tau must be finite, of one state"
        raise InputError("E-CONTACT-073", problem, part=function)
    return found
