"""Active-set method for rigid contact: current contacts, active contacts and contact modes.

The procedure follows Featherstone 2008, table 11.1; numbers in parentheses are the steps in that
table. Current contacts touch and remain closed. Active contacts are current contacts that are held
by a constraint force. `Mode` is for a simulator with friction: a held point sticks, slides, or is
frictionless. During a mode, the accelerations are the solution of linear equations (1). When the
mode ends, impulses (4) and the complementarity problem of all touching contacts (6) determine the
next mode.

`Sets` and its functions are the equivalent for problems without friction. A simulator integrates
`held` (1), looks for `events` (2) and returns to the time of the earliest event (3). If a contact
is gained, the simulator applies an impulse, solves the problem of all touching contacts and passes
the solution to `new_sets` (4). If a contact slides off an edge, the simulator continues `without`
the contact (5). If a force becomes negative, the simulator solves the problem again and passes the
solution to `new_sets` (6). Contacts are numbered as in the problem.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import ConvergenceError
from chasles.motion.contact.dynamics import Motion, Problem, State, state
from chasles.motion.contact.pairs import Rigid
from chasles.motion.contact.sharing import safest
from chasles.motion.contract import read_only
from chasles.motion.geometry.closed_forms import applied
from chasles.motion.geometry.kinematics import Moves
from chasles.motion.laws.friction import coulomb

Array = Any

ACTS = 1e-9
"""Relative tolerance for forces and accelerations: smaller values count as zero. Forces are
relative to the largest force, accelerations to the largest acceleration without contact forces."""

BOUND = 1e-7
"""Tolerance for forces that exceed their bounds, relative to the largest force. The contact mode
changes only if a force exceeds its bound by more than the tolerance. The tolerance is larger
than the error of the complementarity solver."""

DEPENDENT = 1e-9
"""Relative tolerance for singular values: smaller ones count as zero. The constraint
direction of a point is redundant if it adds no nonzero singular value."""

EDGE = 1e-8
"""Relative tolerance for friction at its bound: friction of at least (1 - EDGE) times the bound
counts as being at the bound."""

SOON = 1e-3
"""Relative tolerance for friction near its bound. If the friction at a sticking point is at least
(1 - SOON) times its bound, friction may be redistributed among the sticking points."""

SLOW = 1e-5
"""Tolerance (m/s or rad/s) for velocities: lower speeds count as zero. Points with a lower
tangential speed stick, or are about to slide. Points that rebound at a lower speed remain in
contact; they would rise at most 5e-12 m."""

FAINT = 1e-3
"""Speed (m/s) below which slip keeps the direction of the previous step, because the direction of a
very small velocity is inaccurate and changes too fast. For faster slip, the direction error is
about (FAINT / speed)^2 times the rotation of the slip direction in a step."""

SETTLED = 1e-12
"""Tolerance for the approach speeds at contact points, relative to the initial approach speed.
Sequential impacts end once all approach speeds are below the tolerance."""

MOST = 10_000
"""Maximum number of impacts (or of groups of simultaneous impacts) in one impact event."""


def _still(a: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return the mask of accelerations a that are negative, or negligible relative to max |d|.

    d contains the accelerations without contact forces.
    """
    return a <= ACTS * np.max(np.abs(d), initial=0.0)


def _acting(forces: np.ndarray) -> np.ndarray:
    """Return the mask of positive normal forces, except negligible ones."""
    return forces > ACTS * np.max(forces, initial=0.0)


def _spanning(normals: np.ndarray, current: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Add contacts to the mask `first` (m,) until they span the normals of all `current` ones."""
    active = first.copy()
    unit = normals / np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-300)
    for k in np.flatnonzero(current & ~first):
        active[k] = _rank(np.vstack([unit[active], unit[k]])) > _rank(unit[active])
    return active


def _rank(rows: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(rows, tol=DEPENDENT)) if len(rows) else 0


# Contact modes with friction ---------------------------------------------------------------------


class Mode(NamedTuple):
    """Contact mode of k points: two masks (k,), and two arrays of vectors (k, 3) in world axes.

    A joint with dry friction is treated as a point, which is current and active while the joint is
    at rest. The slip of this point is (0, 0, 1) or (0, 0, -1) while the joint moves, or while
    friction is at its bound and other points hold the joint at rest.

    Attributes
    ----------
    current : np.ndarray
        True if the point touches and remains in contact.
    active : np.ndarray
        True if the point is held; points that are not active have no force.
    slip : np.ndarray
        Unit vector along which the body slides over the surface, zero if it does not slide.
    forces : np.ndarray
        Forces at the beginning of the mode (N). If later forces are not unique, the solution
        nearest to these initial forces is chosen.
    """

    current: np.ndarray
    active: np.ndarray
    slip: np.ndarray
    forces: np.ndarray

    @property
    def slides(self) -> np.ndarray:
        """Mask (k,) of the points that slide."""
        return np.any(self.slip, axis=-1)

    def of(self, which: np.ndarray) -> "Mode":
        """Return the contact mode of the points that `which` (indices or a mask) selects."""
        return Mode(*(part[which] for part in self))


def apart(points: int) -> Mode:
    """Return the contact mode in which none of the `points` contact points touches."""
    none, still = np.zeros((2, points), dtype=bool), np.zeros((2, points, 3))
    return Mode(*none, *still)


def heading(mode: Mode, moves: Moves) -> Mode:
    """Return the contact mode with its slip directions updated to the current velocities."""
    u, size = _slip(moves, mode)
    ahead = _spread(moves.axes, np.where(mode.slides[:, None], u / size, 0.0))
    return mode._replace(slip=ahead)


def held_forces(
    problem: Problem, axes: np.ndarray, mode: Mode, mu: np.ndarray, drag: np.ndarray
) -> np.ndarray:
    """Return the forces (k, 3), in contact axes, that keep k points sticking or sliding.

    Normal forces may be negative. The friction of a sliding point depends on its normal force
    (`drags`), so the matrix of the linear equations is not symmetric.
    """
    slides = mode.slides
    sticks = (mu > 0.0) & ~slides
    rows = np.flatnonzero(np.column_stack([sticks, sticks, np.ones_like(sticks)]))
    D = np.eye(3 * len(mu))
    if slides.any():
        normals = 2 + 3 * np.arange(len(mu))
        D[normals - 2, normals], D[normals - 1, normals] = drag.T
    D = D[:, rows]
    M, d = (problem.M @ D)[rows], problem.d[rows]
    first = applied(axes, mode.forces).ravel()[rows]
    x = first - np.linalg.lstsq(M, M @ first + d, rcond=DEPENDENT)[0]
    return (D @ x).reshape(-1, 3)


def drags(moves: Moves, mode: Mode, mu: np.ndarray) -> np.ndarray:
    """Return the tangential friction forces (k, 2) of sliding points per unit normal force."""
    slides = mode.slides
    if not slides.any():
        return np.zeros((len(mu), 2))
    u, size = _slip(moves, mode)
    return np.where(slides[:, None], -mu[:, None] * u / size, 0.0)


def _slip(moves: Moves, mode: Mode) -> tuple[np.ndarray, np.ndarray]:
    """Return slip velocities (k, 2) along the contact tangents, and slip speeds (k, 1).

    If a velocity opposes the mode's slip direction, its component along that direction is reversed.
    """
    along = applied(moves.axes, mode.slip)[:, :2]
    u = moves.velocity[:, :2]
    ahead = np.sum(u * along, axis=-1, keepdims=True)
    speed = np.hypot(u[:, :1], u[:, 1:])
    u = u + (FAINT * FAINT / (FAINT + speed) - 2.0 * np.minimum(ahead, 0.0)) * along
    return u, np.maximum(np.hypot(u[:, :1], u[:, 1:]), 1e-300)


def dragged(problem: Problem, moves: Moves, forces: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Return a bound (k,) on the tangential acceleration that friction can cause at each point."""
    bound = np.repeat(mu * np.maximum(forces[:, 2], 0.0), 3).reshape(-1, 3) * [1.0, 1.0, 0.0]
    most = np.max((np.abs(problem.M) @ bound.ravel()).reshape(-1, 3)[:, :2], axis=-1)
    a = (problem.M @ forces.ravel() + problem.d).reshape(-1, 3)[:, :2]
    moves_on = np.linalg.norm(a, axis=-1) > ACTS * np.max(np.abs(problem.d), initial=0.0)
    moves_on |= np.linalg.norm(moves.velocity[:, :2], axis=-1) > SLOW
    return np.where(moves_on, most, 0.0)


def ease(M: np.ndarray, drag: np.ndarray) -> np.ndarray:
    """Return the factors (k,) by which friction changes the normal accelerations of points.

    A factor is the ratio of two normal accelerations due to the same normal force: with friction
    and without. A factor of 0 indicates Painleve's paradox.
    """
    own = np.array([M[3 * i + 2, 3 * i : 3 * i + 3] for i in range(len(drag))])
    pushed: np.ndarray = 1.0 + np.sum(own[:, :2] * drag, axis=-1) / own[:, 2]
    return pushed


def next_mode(
    problem: Problem, moves: Moves, mu: np.ndarray, bound: np.ndarray
) -> tuple[Mode, np.ndarray]:
    """Return the next mode of k touching points under Coulomb's law, and forces in contact axes.

    Joints at rest with dry friction also count as points. `bound` (k,) contains the maximum
    friction force or torque of these joints, and infinity for contact points. `problem` has three
    rows for each point. Raises `Infeasible`, `Inconsistent` or `Indeterminate`.
    """
    u = moves.velocity[:, :2]
    speed = np.linalg.norm(u, axis=-1)
    moving = (speed > SLOW) & (mu > 0.0)
    slip = np.where(moving[:, None], u / np.where(moving, speed, 1.0)[:, None], 0.0)
    f, rubs = coulomb(problem.M, problem.d, mu, slip, bound=bound), np.isfinite(bound)
    a = (problem.M @ f.ravel() + problem.d).reshape(-1, 3)
    stays, pushed = _still(a[:, 2], problem.d), _acting(np.where(rubs, 0.0, f[:, 2]))
    stays = np.where(rubs, np.abs(f[:, 2]) < (1.0 - EDGE) * bound, stays)
    pushed |= rubs & stays
    speeds = ~_still(np.linalg.norm(a[:, :2], axis=-1), problem.d)
    slip = _begun(f, a[:, :2], mu, slip, stays & speeds)
    stuck = stays & pushed & ~np.any(slip, axis=-1)
    if np.any(stuck & _at_edge(f, mu, SOON)):
        f = safest(problem.T, f, mu, slip, stays & pushed & ~rubs)
    slip = _begun(f, -f[:, :2], mu, slip, stuck)
    slip = _spread(moves.axes, np.where(stays[:, None], slip, 0.0))
    slip[rubs, 2] = np.where(stays, 0.0, -np.sign(f[:, 2]))[rubs]
    J = problem.T.T.reshape(len(mu), 3, len(problem.T))  # Jacobian for independent coordinates
    active = _spanning(J[:, 2], stays, pushed & stays)
    mode = Mode(stays, active, slip, applied(np.swapaxes(moves.axes, 1, 2), f))
    while (mode.active & ~pushed).any():
        leaving = _pulled(problem, moves, mode, mu) & ~pushed
        if not leaving.any():
            break
        stays = mode.current & ~leaving
        active = _spanning(J[:, 2], stays, pushed & stays)
        slip = np.where((stays | rubs)[:, None], mode.slip, 0.0)
        mode = mode._replace(current=stays, active=active, slip=slip)
    at_rest = rubs & ~mode.current & _still(np.abs(a[:, 2]), problem.d)
    return mode._replace(current=mode.current | _spanned(J, mode, mu, at_rest)), f


def _at_edge(f: np.ndarray, mu: np.ndarray, part: float) -> np.ndarray:
    """Return the mask (k,) of points whose friction is at least (1 - `part`) mu f_normal."""
    return (mu > 0.0) & (np.linalg.norm(f[:, :2], axis=-1) >= (1.0 - part) * mu * f[:, 2])


def _begun(
    f: np.ndarray, way: np.ndarray, mu: np.ndarray, slip: np.ndarray, able: np.ndarray
) -> np.ndarray:
    """Return the slip directions (k, 2), including those of points that start to slide.

    A point in the mask `able` starts to slide if it has no slip direction and its friction is at
    its bound. The new slip direction is the direction of the vector in `way` (k, 2).
    """
    begins = able & ~np.any(slip, axis=-1) & _at_edge(f, mu, EDGE)
    length = np.where(begins, np.linalg.norm(way, axis=-1), 1.0)
    return np.where(begins[:, None], way / length[:, None], slip)


def _spanned(J: np.ndarray, mode: Mode, mu: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Return the mask (k,) of the joints that active points hold at rest.

    Joints with dry friction count as points (see `Mode`). `some` (k,) is the mask of the joints to
    check. `J` (k, 3, n) contains the three directions of each point, in independent coordinates.
    """
    sticks = mode.active & (mu > 0.0) & ~mode.slides
    rows = np.concatenate([J[mode.active, 2], *np.swapaxes(J[sticks, :2], 0, 1)])
    rows = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-300)
    found = np.zeros_like(some)
    for k in np.flatnonzero(some):
        found[k] = _rank(np.vstack([rows, J[k, 2]])) == _rank(rows)
    return found


def _pulled(problem: Problem, moves: Moves, mode: Mode, mu: np.ndarray) -> np.ndarray:
    """Return the mask (k,) of points with a tension above 0.5 * BOUND * (largest force)."""
    which = np.flatnonzero(mode.active)
    rows, some, held = 3 * which[:, None] + np.arange(3), moves.of(which), mode.of(which)
    part = replace(problem, T=problem.T[:, rows.ravel()], bias=problem.bias[rows.ravel()])
    drag = drags(some, held, mu[which])
    forces = held_forces(part, some.axes, held, mu[which], drag)[:, 2]
    pulled = np.zeros(len(mu), dtype=bool)
    pulled[which] = forces < -0.5 * BOUND * np.max(forces, initial=0.0)
    return pulled


def _spread(axes: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Convert vectors (k, 2) along the contact tangents to vectors (k, 3) along the world axes."""
    return applied(np.swapaxes(axes[:, :2], 1, 2), u)


def impulses(laws: Sequence[Rigid], bodies: np.ndarray, W: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the impulses (3k,) at k touching points, along their contact axes, in N s.

    With `impact` laws, points are treated one at a time, the fastest first. With restitution,
    impulses act at all points between bodies that approach each other (Moreau 1988), then at points
    between bodies that approach as a result, and so on. Points without restitution take part in
    every round. `bodies` (k,) contains an integer label of each point, equal for points between the
    same two bodies.
    """
    if any(law.impact is not None for law in laws):
        return _in_turn(laws, W, v)
    mu, e = np.transpose([(law.friction, law.restitution) for law in laws])
    now, total = v.ravel(), np.zeros(v.size)
    for _ in range(MOST):
        closing = now[2::3] < -SLOW
        if not closing.any():
            return total
        meet = np.isin(bodies, bodies[closing]) | (e == 0.0)
        rows = np.flatnonzero(np.repeat(meet, 3))
        c = now[rows]
        c[2::3] += e[meet] * np.minimum(c[2::3], 0.0)
        total[rows] += coulomb(W[np.ix_(rows, rows)], c, mu[meet]).ravel()
        now = v.ravel() + W @ total
    problem = f"impacts did not converge within {MOST} iterations"
    raise ConvergenceError("E-MOTION-280", problem, "use a smaller coefficient of restitution")


def _in_turn(laws: Sequence[Rigid], W: np.ndarray, v: np.ndarray) -> np.ndarray:
    now, total, points = v.copy(), np.zeros_like(v), [law.impact_law for law in laws]
    blocks = W.reshape(len(v), 3, len(v), 3)
    least = SETTLED * np.min(v[:, 2])
    for _ in range(MOST):
        k = int(np.argmin(now[:, 2]))
        if now[k, 2] >= least:
            return total.ravel()
        impulse = points[k].impulse(*read_only(blocks[k, :, k], now[k]))
        total[k] += impulse
        now += blocks[:, :, k] @ impulse
    problem = f"sequential impacts did not converge within {MOST} iterations"
    raise ConvergenceError("E-MOTION-045", problem, "use `restitution` instead of `impact`")


# Current and active sets without friction --------------------------------------------------------


class Sets(NamedTuple):
    """Indices of the current contacts and of the active contacts.

    Current contacts touch and remain closed. Active contacts are the current contacts that are
    constrained; all contact forces act at active contacts. Their normals form a basis for the
    normals of all current contacts, so the other current contacts remain closed as long as no
    force is negative.
    """

    current: tuple[int, ...]
    active: tuple[int, ...]


class Event(NamedTuple):
    """Event at the contact with index `contact`: "gain", "loss" or "negative force"."""

    kind: str
    contact: int


def new_sets(problem: Problem, motion: Motion) -> Sets:
    """Return the current and active contacts, given the solution of a contact problem.

    Parameters
    ----------
    problem : Problem
        The contact problem.
    motion : Motion
        The solution of the problem.

    Returns
    -------
    sets : Sets
        Current contacts do not separate. Active contacts have a force. If the normals of the
        contacts with a force do not span the normals of all current contacts (a degenerate
        solution), some contacts without force are also active.

    Notes
    -----
    These are steps 4 and 6 in table 11.1 of Featherstone (2008).

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import contact
    >>> n = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]).T
    >>> problem = contact.body_problem(np.eye(6), np.zeros(6), -9.81 * n[:, 0], n, 0.0 * n)
    >>> contact.new_sets(problem, contact.solve(problem))
    Sets(current=(0,), active=(0,))
    """
    still = _still(motion.separation, problem.d)
    return _sets(problem, still, _acting(motion.forces) & still)


def without(problem: Problem, sets: Sets, lost: Collection[int]) -> Sets:
    """Remove contacts that slid off an edge; other contacts may become active.

    This is step 5 in table 11.1 of Featherstone (2008).

    Parameters
    ----------
    problem : Problem
        The contact problem.
    sets : Sets
        Current and active contacts.
    lost : collection of int
        Indices of the lost contacts.

    Returns
    -------
    sets : Sets
        The remaining contacts.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import contact
    >>> n = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]).T
    >>> problem = contact.body_problem(np.eye(6), np.zeros(6), -9.81 * n[:, 0], n, 0.0 * n)
    >>> contact.without(problem, contact.new_sets(problem, contact.solve(problem)), [0])
    Sets(current=(), active=())
    """
    numbers = np.arange(len(problem.bias))
    kept = ~np.isin(numbers, list(lost))
    return _sets(problem, *(np.isin(numbers, group) & kept for group in sets))


def _sets(problem: Problem, current: np.ndarray, first: np.ndarray) -> Sets:
    """Return the sets of current and active contacts, for the mask `current`.

    The normals of the active contacts are linearly independent. Active contacts are chosen from the
    mask `first`, then from the mask `current`.
    """
    basis = _spanning(problem.T.T, first, np.zeros_like(first))
    active = _spanning(problem.T.T, current, basis)
    return Sets(*(tuple(map(int, np.flatnonzero(group))) for group in (current, active)))


def held(problem: Problem, sets: Sets) -> Motion:
    """Return the motion with active contacts held, even in tension, and other contacts free.

    This is step 1 in table 11.1 of Featherstone (2008).

    Parameters
    ----------
    problem : Problem
        The contact problem.
    sets : Sets
        Current and active contacts.

    Returns
    -------
    motion : Motion
        The motion. As long as no force is negative, this motion is the solution of the entire
        problem.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import contact
    >>> n = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]).T
    >>> problem = contact.body_problem(np.eye(6), np.zeros(6), -9.81 * n[:, 0], n, 0.0 * n)
    >>> contact.held(problem, contact.new_sets(problem, contact.solve(problem))).forces
    array([9.81])
    """
    active = list(sets.active)
    forces = np.zeros(len(problem.bias))
    forces[active] = np.linalg.solve(problem.M[np.ix_(active, active)], -problem.d[active])
    return problem.motion(forces)


def events(
    problem: Problem,
    qd: Array,
    sets: Sets,
    motion: Motion,
    *,
    distance: float = 1e-9,
    speed: float = 1e-9,
) -> list[Event]:
    """Return the events of a contact problem: gains, losses and negative forces.

    This is step 2 in table 11.1 of Featherstone (2008).

    Parameters
    ----------
    problem : Problem
        The contact problem.
    qd : array_like, shape (n,)
        Rates of the problem's coordinates.
    sets : Sets
        Current and active contacts.
    motion : Motion
        Motion of the problem, from `held`.
    distance : float, optional
        Gap beyond which a current contact is lost (m).
    speed : float, optional
        Velocity tolerance (m/s).

    Returns
    -------
    events : list of Event
        A gain is a contact that collides and is not current. A loss is a current contact with a gap
        above `distance`. A negative force is a tensile force of an active contact.

    Raises
    ------
    InputError
        If a gap or its rate is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import contact
    >>> n = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]).T
    >>> problem = contact.body_problem(np.eye(6), np.zeros(6), -9.81 * n[:, 0], n, 0.0 * n)
    >>> sets = contact.new_sets(problem, contact.solve(problem))
    >>> contact.events(problem, np.zeros(6), sets, contact.held(problem, sets))
    []
    """
    rates = problem.T.T @ np.asarray(qd, dtype=float)
    least = -ACTS * np.max(np.abs(motion.forces), initial=0.0)
    found = []
    for k, (gap, rate) in enumerate(zip(problem.gap, rates, strict=True)):
        now = state(float(gap), float(rate), distance=distance, speed=speed)
        if k not in sets.current and now is State.COLLIDING:
            found.append(Event("gain", k))
        if k in sets.current and now is State.APART:
            found.append(Event("loss", k))
        if k in sets.active and motion.forces[k] < least:
            found.append(Event("negative force", k))
    return found
