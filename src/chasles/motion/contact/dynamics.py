"""Rigid contact: equation of motion of a body or robot with unilateral constraints.

    H qdd = force + T lambda,   zetadot = T' qdd + bias
    zetadot >= 0,   lambda >= 0,   zetadot'lambda = 0

The columns of T are the contact normals in joint space, zetadot are separation accelerations and
lambda the magnitudes of contact forces (Featherstone 2008, sections 11.1 to 11.5). With friction,
two tangents precede each normal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError
from chasles.functions.doors import numbers
from chasles.mechanisms import Mechanism
from chasles.mechanisms.closing import REGULAR
from chasles.mechanisms.mechanism import accelerated
from chasles.model import WORLD, Model
from chasles.motion.contract import Machine
from chasles.motion.geometry.closed_forms import applied
from chasles.motion.geometry.features import listed
from chasles.motion.geometry.kinematics import Contact, Frame, Moves, carrier, contact_moves
from chasles.motion.laws.approximations import polyhedral
from chasles.motion.laws.friction import convex, coulomb, out_of_reach
from chasles.motion.solvers import Infeasible, accelerations_program, forces_program, lemke
from chasles.names import one_of

Array = Any

LAWS: dict[str, Callable[..., np.ndarray]] = {
    "coulomb": coulomb,
    "convex": convex,
    "polyhedral": polyhedral,
}
"""Friction laws by name. Each function maps the Delassus matrix, the accelerations without contact
forces, the friction coefficients and the slip directions to contact forces (contacts, 3 or 4).
"""


@dataclass(frozen=True)
class Problem:
    """Equation of motion and contact constraints of a single state, in independent coordinates.

    The accelerations of all joints are qdd = G ydd + g, where ydd are the accelerations of the
    independent coordinates. For a tree, G is the identity and g is zero.

    Attributes
    ----------
    H : array, shape (n, n)
        Mass matrix.
    force : array, shape (n,)
        Generalized force without contacts, minus velocity-product terms.
    T : array, shape (n, m)
        Contact normals in joint space.
    bias : array, shape (m,)
        Separation accelerations at ydd = 0 (qdd = 0 for a tree).
    G : array, shape (nv, n)
        Derivative of qdd with respect to ydd.
    g : array, shape (nv,)
        Accelerations of all joints at ydd = 0.
    gap : array, shape (m,)
        Distances (m or rad).
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
        """Product H^-1 T, and the accelerations without contact forces."""
        found = accelerated(self.H, np.column_stack([self.T, self.force]), "contact_dynamics")
        return found[:, :-1], found[:, -1]

    @cached_property
    def M(self) -> np.ndarray:
        """Matrix M = T' H^-1 T (m, m) of the contact problem (Featherstone 2008, Eq 11.35)."""
        product = self.T.T @ self._answers[0]
        return 0.5 * (product + product.T)

    @cached_property
    def d(self) -> np.ndarray:
        """Separation accelerations without contact forces: T' H^-1 force + bias.

        See Featherstone (2008), Eq 11.36.
        """
        return self.T.T @ self._answers[1] + self.bias

    def motion(self, forces: np.ndarray) -> "Motion":
        """Return the accelerations due to given contact forces.

        Parameters
        ----------
        forces : array_like, shape (m,)
            Forces along the columns of T (N).

        Returns
        -------
        motion : Motion
            Accelerations, forces and separation accelerations.

        Raises
        ------
        ModelError
            If the inertia H is singular.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> n = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]).T
        >>> problem = contact.body_problem(np.eye(6), np.zeros(6), -9.81 * n[:, 0], n, 0.0 * n)
        >>> float(problem.motion(np.array([9.81])).qdd[5])
        0.0
        """
        turned, free = self._answers
        ydd = free + turned @ forces
        return Motion(self.G @ ydd + self.g, forces, self.T.T @ ydd + self.bias)

    def only(self, which: Array) -> "Problem":
        """Return the problem with a subset of its constraints.

        Parameters
        ----------
        which : sequence of int
            Indices of the constraints.

        Returns
        -------
        problem : Problem
            The smaller problem.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles import contact
        >>> n = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]).T
        >>> problem = contact.body_problem(np.eye(6), np.zeros(6), -9.81 * n[:, 0], n, 0.0 * n)
        >>> problem.only([]).T.shape
        (6, 0)
        """
        index = np.asarray(which, dtype=int)
        return replace(self, T=self.T[:, index], bias=self.bias[index], gap=self.gap[index])


class Motion(NamedTuple):
    """Accelerations qdd (nv,), constraint forces (m,) and separation accelerations (m,)."""

    qdd: np.ndarray
    forces: np.ndarray
    separation: np.ndarray


class State(Enum):
    """State of a unilateral constraint `gap >= 0` (Featherstone 2008, figure 11.4)."""

    APART = "1"
    """Open contact: the gap is positive, and no force acts."""
    COLLIDING = "2a"
    """Impact: the gap is zero with a negative rate, and an impulse acts."""
    LEAVING = "2b"
    """Separation: the gap is zero with a positive rate, and no force acts."""
    TOUCHING = "3"
    """Closed contact: the gap and its rate are zero, and a force may act."""


def state(gap: float, gap_rate: float, *, distance: float = 1e-9, speed: float = 1e-9) -> State:
    """Return the state of a constraint: apart, colliding, leaving or touching.

    Parameters
    ----------
    gap : float
        Distance (m or rad). A negative gap is tolerated penetration and counts as zero.
    gap_rate : float
        Rate of change of the gap (m/s or rad/s).
    distance, speed : float, optional
        Tolerances for `gap` and `gap_rate`.

    Returns
    -------
    state : State
        State, as defined by Featherstone (2008, section 11.4).

    Raises
    ------
    InputError
        If `gap` or `gap_rate` is not finite.

    Examples
    --------
    >>> from chasles import contact
    >>> contact.state(0.0, -1.0)
    <State.COLLIDING: '2a'>
    """
    if not (np.isfinite(gap) and np.isfinite(gap_rate)):
        problem = f"`gap` and `gap_rate` must be finite, not {gap} and {gap_rate}"
        raise InputError("E-CONTACT-074", problem, part="state")
    if gap > distance:
        return State.APART
    if abs(gap_rate) <= speed:
        return State.TOUCHING
    return State.COLLIDING if gap_rate < 0.0 else State.LEAVING


def constrained_problem(
    mechanism: Mechanism, q: Array, qd: Array, tau: Array, moves: Moves, **options: Any
) -> Problem:
    """Return the contact problem of a robot for given contact points, in independent coordinates.

    Each axis of a contact point yields a column of T. Substituting qdd = G ydd + g yields
    G'H G ydd = G'(force - H g) + (G'T) lambda (Featherstone 2008, Eq 8.43).
    """
    H, loops = mechanism.mass_matrix(q), mechanism.closing
    force = tau - mechanism.inverse_dynamics(q, qd, np.zeros(len(tau)), **options)
    G = loops.directions(q)
    g = loops.accelerated(q, qd, np.zeros(G.shape[-1]), REGULAR)
    J, bias = moves.J.reshape(-1, mechanism.nv), moves.bias.ravel()
    return Problem(G.T @ H @ G, G.T @ (force - H @ g), G.T @ J.T, bias + J @ g, G, g, moves.gap)


def response(mechanism: Mechanism, q: Array, forces: Array) -> np.ndarray:
    """Return the changes in qd due to the joint-space impulses in the columns of `forces`.

    `forces` has shape (..., nv, k). The changes are G (G'M G)^-1 G' forces with qd = G yd
    (Featherstone 2008, Eq 8.44), or M^-1 forces for a tree.
    """
    M, G = mechanism.mass_matrix(q), mechanism.closing.directions(q)
    Gt = np.swapaxes(G, -1, -2)
    return G @ accelerated(Gt @ M @ G, Gt @ forces, "impact")


def limit_rows(
    model: Model, q: Array, qd: Array, *, within: float = 0.0, speed: float = np.inf
) -> list[tuple[int, float, float]]:
    """Return (velocity index, sign, distance) of all joint limits at distances up to `within`.

    Distances are in rad or m. The sign is 1 for a lower and -1 for an upper limit. Only joints with
    one coordinate are considered. A limit is ignored if the joint moves away from it faster than
    `speed`. If a joint approaches a limit faster than `speed`, an error is raised.
    """
    rows = []
    q, qd = numbers("q", q, model.nq), numbers("qd", qd, model.nv)
    for i, where in model.position_slices.items():
        body, k = model.bodies[i], model.velocity_slices[i].start
        if not body.joint.nq == body.joint.nv == 1:
            continue
        limits, x = model.limits[i], float(q[where.start])
        for sign, gap in ((1.0, x - limits.lower), (-1.0, limits.upper - x)):
            if gap <= within and -sign * qd[k] > speed:
                name, rate = body.data.name, f"{-sign * qd[k]:.3g} rad/s or m/s"
                remedy = "apply an impact first, or increase `speed`"
                problem = f"joint {name!r} approaches its limit at {rate}, faster than `speed`"
                raise InputError("E-CONTACT-072", problem, remedy)
            if gap <= within and sign * qd[k] <= speed:
                rows.append((k, sign, gap))
    return rows


def one_state(
    function: str, model: Model, q: Array, qd: Array, tau: Array
) -> tuple[np.ndarray, ...]:
    """Check q, qd and tau of a single state, and return them as arrays of floats.

    Error messages begin with the name `function`.
    """
    sizes = {"q": model.nq, "qd": model.nv, "tau": model.nv}
    given = zip(sizes.items(), (q, qd, tau), strict=True)
    found = tuple(numbers(f"{function}: {x}", a, n).astype(float) for (x, n), a in given)
    if any(a.ndim != 1 or not np.all(np.isfinite(a)) for a in found):
        problem = "q, qd and tau must be finite arrays of a single state"
        raise InputError("E-CONTACT-073", problem, part=function)
    return found


def _moves(
    mechanism: Mechanism,
    state: tuple[np.ndarray, np.ndarray],
    contacts: Sequence[Contact],
    stops: Sequence[tuple[int, float, float]],
    wide: int,
) -> Moves:
    """Return the motion of all contacts and joint limits, along `wide` axes each.

    The last axis is the normal. With wide >= 3, the first two axes are tangents. With wide = 4, the
    third axis is the rotation about the normal, multiplied by the ratio (m) of friction moment to
    friction force (`_arm`).
    """
    n, k = len(contacts), len(contacts) + len(stops)
    J, room = np.zeros((k, wide, mechanism.nv)), np.full(k, np.inf)
    gap, (velocity, bias) = np.zeros(k), np.zeros((2, k, wide))
    found = Moves(gap, np.zeros((k, 3, 3)), velocity, J, bias, room)
    last = slice(-min(wide, 3), None)
    rows = [0, 1, 3] if wide == 4 else list(range(wide))
    for i, contact in enumerate(contacts):
        carriers = (carrier(mechanism, *state, frame) for frame in contact[:2])
        over, under = (Frame.of(mechanism, *state, motion) for motion in carriers)
        gap[i], found.axes[i], v, along, rate, _ = contact_moves(over, under, contact)
        velocity[i, rows], J[i, rows], bias[i, rows] = v[last], along[last], rate[last]
        if wide == 4:
            normal, spin = _arm(contact) * contact.normal, over.motion.w - under.motion.w
            velocity[i, 2], J[i, 2] = normal @ spin, normal @ (over.J - under.J)[:3]
            turned = _arm(contact) * contact.normal_rate @ spin
            bias[i, 2] = normal @ (over.rate - under.rate)[:3] + turned
    for i, (freedom, sign, distance) in enumerate(stops, start=n):
        J[i, -1, freedom], gap[i] = sign, distance
    return found


def _arm(contact: Contact) -> float:
    """Return the ratio (m) of the largest friction moment to the largest friction force."""
    return contact.torsion / contact.friction if contact.torsion else 0.0


# Contact without friction ------------------------------------------------------------------------

METHODS: dict[str, Callable[[Problem], np.ndarray]] = {
    "lemke": lambda p: lemke(p.M, p.d),
    "forces": lambda p: forces_program(p.M, p.d),
    "accelerations": lambda p: accelerations_program(p.H, p.force, p.T, p.bias)[1],
}
"""Solvers for contact problems without friction, by name."""


def solve(problem: Problem, *, method: str = "lemke") -> Motion:
    """Return the solution of a frictionless problem in which all contacts touch.

    Parameters
    ----------
    problem : Problem
        The problem, from `contact_problem` or `body_problem`.
    method : {"lemke", "forces", "accelerations"}, optional
        Lemke's method, or a quadratic program in forces or accelerations (Featherstone 2008,
        Eq 11.43 and 11.44).

    Returns
    -------
    motion : Motion
        Accelerations, forces and separation accelerations. qdd and separation are unique; forces
        are unique if the normals are independent.

    Raises
    ------
    Infeasible
        If no motion satisfies the constraints.
    InputError
        If `method` is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import contact
    >>> n = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]).T
    >>> weight = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -9.81])
    >>> problem = contact.body_problem(np.eye(6), np.zeros(6), weight, n, 0.0 * n)
    >>> contact.solve(problem).forces
    array([9.81])
    """
    if method not in METHODS:
        what = f"unknown method {method!r}"
        raise InputError("E-CONTACT-068", what, one_of(method, METHODS), part="solve")
    return problem.motion(METHODS[method](problem))


def single_contact(M: Array, d: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the force and the separation acceleration of one frictionless contact.

    The force is lambda = max(0, -d/M), and the acceleration is zetadot = max(0, d) (Featherstone
    2008, Eq 11.10).

    Parameters
    ----------
    M : array_like, shape (...)
        Inverse inertia along the normal (1/kg), positive.
    d : array_like, shape (...)
        Acceleration of the gap without a force (m/s2).

    Returns
    -------
    force : ndarray, shape (...)
        Contact force (N).
    separation : ndarray, shape (...)
        Acceleration of the gap (m/s2).

    Raises
    ------
    InputError
        If M is not positive.

    Examples
    --------
    >>> from chasles import contact
    >>> force, separation = contact.single_contact(0.5, -9.81)
    >>> float(force), float(separation)
    (19.62, 0.0)
    """
    M, d = (np.asarray(a, dtype=float) for a in (M, d))
    if not np.all(M > 0.0):
        problem = "M, the inverse inertia along the normal, must be positive"
        raise InputError("E-CONTACT-069", problem, part="single_contact")
    return np.maximum(0.0, -d / M), np.maximum(0.0, d)


def body_problem(inertia: Array, v: Array, f: Array, N: Array, N_rate: Array) -> Problem:
    """Return the contact problem of one free body (Featherstone 2008, sections 11.1 and 11.2).

    Parameters
    ----------
    inertia : array_like, shape (6, 6)
        Spatial inertia.
    v : array_like, shape (6,)
        Spatial velocity.
    f : array_like, shape (6,)
        Spatial force on the body, including gravity.
    N : array_like, shape (6, m)
        Unit forces along the contact normals.
    N_rate : array_like, shape (6, m)
        Rates of N.

    Returns
    -------
    problem : Problem
        The problem; `Motion.qdd` of its solution is the spatial acceleration of the body.

    Raises
    ------
    InputError
        If an array does not have the documented shape.

    Notes
    -----
    Spatial vectors have the angular part first; they may be expressed at any point and in any axes,
    if these are the same for all vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import contact
    >>> n = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]).T
    >>> contact.body_problem(np.eye(6), np.zeros(6), np.zeros(6), n, 0.0 * n).T.shape
    (6, 1)
    """
    I, v, f, N, N_rate = (np.asarray(a, dtype=float) for a in (inertia, v, f, N, N_rate))
    if I.shape != (6, 6) or v.shape != (6,) or f.shape != (6,) or N.shape[:1] != (6,):
        problem = "`inertia` must have shape (6, 6), `v` and `f` shape (6,), and `N` shape (6, m)"
        raise InputError("E-CONTACT-070", problem, part="body_problem")
    if N_rate.shape != N.shape:
        problem = f"N {N.shape} and N_rate {N_rate.shape} must have the same shape"
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
    """Return the frictionless contact problem of a robot in a single state with touching contacts.

    Parameters
    ----------
    robot : Robot
        The robot. With closed loops, the problem is in independent coordinates.
    q : array_like, shape (nq,)
        Joint positions (rad or m).
    qd, tau : array_like, shape (nv,)
        Joint velocities, and joint torques (N m or N).
    contacts : sequence of Contact
        Contacts from `contact_points`.
    limits : float, optional
        Joint limits within this distance (rad or m) are also constraints, numbered after the
        contacts. Default: no limits.
    f_ext : mapping, optional
        External wrenches, as in `Robot.inverse_dynamics`.
    dissipation : bool, optional
        Include joint damping and friction.

    Returns
    -------
    problem : Problem
        H, force, T and bias of H qdd = force + T lambda, T' qdd + bias >= 0.

    Raises
    ------
    InputError
        If an array has the wrong shape or is not finite, or if several states are given.
    ArgumentError
        If `contacts` is not a list of contacts.

    Notes
    -----
    zetadot = T' qdd + bias. A contact with the normal n has the column J' n of T, where
    J = J_successor - J_predecessor, and the bias n.(Jdot qd) + ndot.(J qd) (Featherstone 2008,
    Eq 11.25 and 11.30).

    Examples
    --------
    >>> import numpy as np
    >>> import chasles
    >>> from chasles import contact
    >>> robot = chasles.robots.planar(2)
    >>> q, zero = [0.3, -0.6], np.zeros(2)
    >>> found = contact.contact_points(robot, q, zero, contact.Point("tip"), contact.Plane())
    >>> contact.contact_problem(robot, q, zero, zero, found).T.shape
    (2, 1)
    """
    mechanism, contacts = robot.mechanism, listed("contact_problem", contacts)
    mechanism.check_inertia("contact_problem")
    q, qd, tau = one_state("contact_problem", mechanism.model, q, qd, tau)
    stops = limit_rows(mechanism.model, q, qd, within=-np.inf if limits is None else limits)
    moves, options = _moves(mechanism, (q, qd), contacts, stops, 1), {"dissipation": dissipation}
    return constrained_problem(mechanism, q, qd, tau, moves, f_ext=f_ext, **options)


# Contact with friction ---------------------------------------------------------------------------


class ContactMotion(NamedTuple):
    """Joint accelerations and contact forces.

    Attributes
    ----------
    qdd : array, shape (nv,)
        Joint accelerations (rad/s2 or m/s2).
    forces : array, shape (nc, 3)
        Forces on the successor of each contact, along the world axes, in N; zero for contacts that
        do not touch.
    limit_forces : array, shape (nv,)
        Generalized forces of the joint limits, which are added to tau (N m or N).
    separation : array, shape (nc,)
        Normal accelerations of touching contacts, in m/s2; NaN for others.
    moments : array, shape (nc,)
        Moments of torsional friction on the successors, about the normals, in N m.
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
    """Return the accelerations in one state, given joint torques, contacts and joint limits.

    Parameters
    ----------
    robot : Robot
        The robot. With closed loops, the equations are in its independent coordinates.
    q : array_like, shape (nq,)
        Joint positions (rad or m).
    qd, tau : array_like, shape (nv,)
        Joint velocities, and joint torques (N m or N).
    contacts : sequence of Contact
        Contacts from `contact_points` at this q and qd, at any distance. Contacts with a gap up to
        `distance` and a normal velocity within `speed` touch; contacts with a tangential velocity
        above `speed` slide.
    friction : {"coulomb", "convex", "polyhedral"}, optional
        Friction law: Coulomb's law, the convex law (with dilation), or a pyramid with 8 facets.
        Contacts with mu = 0 are frictionless.
    limits : float, optional
        Distance (rad or m) within which a joint limit acts; None for no limits.
    distance : float, optional
        Maximum gap of a touching contact (m).
    speed : float, optional
        Maximum normal velocity of a touching contact (m/s).
    f_ext : mapping, optional
        External wrenches, as in `Robot.inverse_dynamics`.
    dissipation : bool, optional
        Include joint damping and friction.

    Returns
    -------
    motion : ContactMotion
        Accelerations, contact forces and moments.

    Raises
    ------
    Infeasible
        If a contact closes and no force can prevent it. The error names the contact.
    InputError
        If a contact closes or a joint approaches its limit faster than `speed` (apply an impact
        first), if `friction` is unknown, if an array has the wrong shape or is not finite, or if
        several states are given.
    ArgumentError
        If `contacts` is not a list of contacts.

    Examples
    --------
    >>> import numpy as np
    >>> import chasles
    >>> from chasles import contact
    >>> robot = chasles.robots.planar(2)
    >>> q, zero = [0.3, -0.6], np.zeros(2)
    >>> found = contact.contact_points(robot, q, zero, contact.Point("tip"), contact.Plane())
    >>> contact.contact_dynamics(robot, q, zero, zero, found).qdd.round(3)
    array([-11.139,  22.279])
    """
    if friction not in LAWS:
        what, remedy = f"unknown friction law {friction!r}", one_of(friction, LAWS)
        raise InputError("E-CONTACT-013", what, remedy, part="contact_dynamics")
    mechanism, contacts = robot.mechanism, listed("contact_dynamics", contacts)
    mechanism.check_inertia("contact_dynamics")
    model = mechanism.model
    q, qd, tau = one_state("contact_dynamics", model, q, qd, tau)
    wide = 4 if any(contact.torsion for contact in contacts) else 3
    near = [k for k, contact in enumerate(contacts) if contact.gap <= distance]
    within = -np.inf if limits is None else limits
    stops = limit_rows(model, q, qd, within=within, speed=speed)
    moves = _moves(mechanism, (q, qd), [contacts[k] for k in near], stops, wide)
    touches = [_touches(k, contacts[k], moves.velocity[i, -1], speed) for i, k in enumerate(near)]
    moves = moves.of(np.array([*touches, *[True] * len(stops)], dtype=bool))
    touching = [k for k, here in zip(near, touches, strict=True) if here]
    options = {"f_ext": f_ext, "dissipation": dissipation}
    problem = constrained_problem(mechanism, q, qd, tau, moves, **options)
    for i in out_of_reach(problem.M, problem.d, wide):
        names = [f"contact {k} of {contacts[k].successor!r}" for k in touching]
        rate = f"closes at {-problem.d[wide * i + wide - 1]:.3g} m/s2"
        what = f"{[*names, *['a joint limit'] * len(stops)][i]} {rate}, and no force can stop it"
        remedy, part = "check for locked joints", "contact_dynamics"
        raise Infeasible("E-CONTACT-014", what, remedy, part=part)
    f, mu = np.zeros((0, wide)), [contacts[k].friction for k in touching] + [0.0] * len(stops)
    if mu:
        slip = moves.velocity[:, :-1]
        fast = np.linalg.norm(slip, axis=-1, keepdims=True)
        slip = np.where(fast > speed, slip / np.where(fast > speed, fast, 1.0), 0.0)
        f = LAWS[friction](problem.M, problem.d, mu, slip)
    motion, n = problem.motion(f.ravel()), len(touching)
    forces, separation = np.zeros((len(contacts), 3)), np.full(len(contacts), np.nan)
    forces[touching] = applied(np.swapaxes(moves.axes[:n], 1, 2), f[:n, [0, 1, -1]])
    separation[touching] = motion.separation[wide - 1 :: wide][:n]
    moments = np.zeros(len(contacts))
    moments[touching] = [_arm(contacts[k]) * f[i, 2] for i, k in enumerate(touching)]
    stopped = np.tensordot(f[n:], moves.J[n:], axes=2)
    return ContactMotion(motion.qdd, forces, stopped, separation, moments)


def _touches(k: int, contact: Contact, rate: float, speed: float) -> bool:
    """Return True if a contact with zero gap remains closed, or raise an error if it collides."""
    now = state(0.0, float(rate), speed=speed)
    if now is State.COLLIDING:
        problem = (
            f"contact {k} of {contact.successor!r} closes at {-rate:.3g} m/s, faster than `speed`"
        )
        remedy = "apply an impact first, or increase `speed`"
        raise InputError("E-CONTACT-015", problem, remedy, part="contact_dynamics")
    return now is State.TOUCHING


def paired(model: Model, frames: Sequence[tuple[str | None, str | None]]) -> np.ndarray:
    """Return integer labels (k,) of pairs of frames, equal for pairs on the same two bodies."""
    bodies = [
        frozenset(WORLD if f is None else model.frame(f).body for f in pair) for pair in frames
    ]
    numbers = {pair: k for k, pair in enumerate(dict.fromkeys(bodies))}
    return np.array([numbers[pair] for pair in bodies], dtype=int)
