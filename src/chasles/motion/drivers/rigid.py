"""Simulation of rigid contact by Featherstone's current and active sets (2008, table 11.1).

1  take steps with the active contacts held                         `RigidContact.accelerate`
2  after each step, check for a change of the mode: a closed gap,
   features that are no longer nearest, a tensile contact force,
   friction at its bound, or the end of slip                        `_margins`
3  go back to the earliest change                                   `RigidContact.__call__`
4  apply impulses at approaching points                             `_struck`
5  release separating points                                        `changed`
6  solve the complementarity problem of all touching points,
   which determines the points that stay, stick or slide            `next_mode`
7  continue with step 1
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError, NotFiniteError
from chasles.mechanisms import Mechanism
from chasles.motion.contact import modes
from chasles.motion.contact.dynamics import Problem, constrained_problem, response
from chasles.motion.contact.pairs import Pair
from chasles.motion.drivers.contacts import Slots
from chasles.motion.drivers.moments import first_moment
from chasles.motion.drivers.running import Changed, Memory, Pace, other_motion
from chasles.motion.geometry.closed_forms import applied
from chasles.motion.geometry.kinematics import NEAR, Moves
from chasles.motion.steps.system import Accelerate, State, Taken

DEPTH = 1e-12
"""Smallest penetration (m or rad) that is not a rounding error. A point that penetrates deeper than
this is a new contact."""

DEEPEST = 1e-6
"""Maximum initial penetration, and maximum distance between a point in contact and its surface (m
or rad). At a larger distance, contact has ended."""

ASTRAY = 1e-8
"""Tolerance (m, rad) for the distance of a held point from its surface after a step. If the
distance is larger, the step is repeated with half the step size.
"""

BACK = 1e-12
"""Tolerance (m/s) for the velocity of a sliding point opposite to its slip direction. If the
velocity exceeds the tolerance, slip has ended."""

DRIFT = 1e-13
"""Tolerance for position errors (m) and velocity errors (m/s) of active contact points. Larger
errors are corrected at the end of a step."""

HALVINGS = 10
"""Maximum number of times to halve a step that moves active points off their surfaces, or yields
inaccurate slip velocities."""

TURN = 1e-2
"""Tolerance for the error of a slip velocity after a step, relative to the slip speed at its start.
If the error is larger, the step is repeated with half the step size.
"""

TANGENTS = np.array([1.0, 1.0, 0.0])
"""Factors for a velocity in contact axes: 1 for the tangential components, 0 for the normal one."""

NEWTON, TINY = 3, 1e-300
"""Parameters of the time at which the gap of a new contact closes.

`NEWTON` is the number of Newton iterations, and `TINY` prevents division by zero.
"""


class RigidContact(Pace):
    """Stepper for a single state with rigid contacts, joint limits and dry joint friction.

    Steps end where the contact mode changes. The function `force(t, q, qd)` returns joint torques
    without dry friction; `f_ext` and `dissipation` are as in `inverse_dynamics`.

    The driver sets two attributes: `free` returns the accelerations without contact for the torques
    `self.force`, and `pace` takes steps without contact.
    """

    free: Accelerate
    pace: Pace

    def __init__(
        self,
        mechanism: Mechanism,
        pairs: Sequence[Pair],
        limits: bool,
        force: Callable[..., np.ndarray],
        f_ext: Mapping[str, Any] | None,
        dissipation: bool,
    ) -> None:
        self._mechanism, self._force = mechanism, force
        self._options: dict[str, Any] = {"f_ext": f_ext} if f_ext else {}
        self._options |= {"dissipation": True} if dissipation else {}
        self._slots = Slots(mechanism, pairs, limits, dissipation)
        self._friction, self._rubs = self._slots.friction, np.isfinite(self._slots.bound)
        self._mode = modes.apart(len(self._friction))
        self._last: _Found | None = None
        self._most = np.inf
        self._seen: tuple[State, np.ndarray, Moves] | None = None

    def memory(self) -> dict[str, np.ndarray]:
        """Return the contact mode and the step size limit of slip as a dictionary of arrays."""
        parts = {"step": np.array(self._most), **self._mode._asdict()}
        return {f"contact {name}": part for name, part in parts.items()}

    def recall(self, memory: Memory) -> None:
        """Restore the data that `memory` returned."""
        mode = modes.Mode(*(memory[f"contact {name}"].copy() for name in modes.Mode._fields))
        if len(mode.current) != len(self._friction):
            raise other_motion("E-MOTION-058")
        self._mode, self._most = mode, memory["contact step"].item()

    # Forces and margins in a mode --------------------------------------------------------------

    def force(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the joint torques, including the dry friction of moving joints."""
        slots = self._slots
        signs = self._mode.slip[self._rubs, 2]
        return slots.resting.force(self._force(t, q, qd), qd, signs)

    def accelerate(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return qdd in the current contact mode (which points separate, stick or slide)."""
        if not self._mode.active.any():
            return self.free(t, q, qd)
        at, last = State(t, q, qd), self._last
        if last is not None and last.of(at, self._mode):
            return last.qdd
        return self._find(at, self._slots(at, self._mode.current, alone=True)).qdd

    def kept(self, at: State) -> tuple[np.ndarray, np.ndarray]:
        """Return the contact forces and gaps in a state, for recording (`Slots.seen`)."""
        found = self._found(at)
        return self._slots.seen(found.moves, found.forces)

    def _moves(self, at: State) -> Moves:
        """Return the motion of all points in a state. The result for the last state is cached."""
        last, current = self._seen, self._mode.current
        if last is None or not (_same(last[0], at) and np.array_equal(last[1], current)):
            here = State(at.t, at.q.copy(), at.qd.copy())
            last = self._seen = here, current, self._slots(at, current)
        return last[2]

    def _found(self, at: State) -> "_Found":
        """Return forces and accelerations in a state, for the current contact mode (cached)."""
        last = self._last
        if last is None or not last.of(at, self._mode):
            last = self._last = self._find(at, self._moves(at))
        return last

    def _find(self, at: State, moves: Moves) -> "_Found":
        mode = self._mode
        forces, active = np.zeros((len(self._friction), 3)), np.flatnonzero(mode.active)
        if not active.size:
            return _Found(at, mode, moves, forces, np.empty(0), None)
        problem, drag = self._problem(at, moves, active), self._drag(moves, active)
        some, mu = mode.of(active), self._friction[active]
        f = modes.held_forces(problem, moves.axes[active], some, mu, drag)
        qdd = problem.motion(f.ravel()).qdd
        if not np.isfinite(qdd).all():
            held, t = self._slots.named(active), at.t
            what = f"accelerations are not finite at t = {t:.6g} s while {held} are in contact"
            remedy = "reduce `dt`, or check `tau`"
            raise NotFiniteError("E-MOTION-057", what, remedy, part="simulate")
        forces[active] = f
        qdd[self._slots.freedoms(mode.current)] = 0.0
        return _Found(State(at.t, at.q.copy(), at.qd.copy()), mode, moves, forces, qdd, problem)

    def _problem(self, at: State, moves: Moves, which: np.ndarray) -> Problem:
        """Return the contact problem of selected points, with three directions for each point."""
        tau, here = self.force(*at), self._mechanism.at(at.t)
        return constrained_problem(here, at.q, at.qd, tau, moves.of(which), **self._options)

    def _drag(self, moves: Moves, active: np.ndarray) -> np.ndarray:
        """Return the tangential friction forces (k, 2) of active points per unit normal force."""
        return modes.drags(moves.of(active), self._mode.of(active), self._friction[active])

    @property
    def _sticks(self) -> np.ndarray:
        """Mask (k,) of the active points that have friction and stick."""
        return self._mode.active & (self._friction > 0.0) & ~self._mode.slides

    def _margins(self, at: State) -> np.ndarray:
        """Return the margins to all bounds at which the contact mode changes.

        A margin is negative if its bound is violated. The margins are, in order:

        - gap of a separated point; for a point in contact, remaining distance before it counts as
          separated
        - distance that a point in contact can move before another feature becomes the nearest
          (`Moves.room`)
        - normal force at an active point; bound minus dry friction in a joint
        - bound minus friction force at a sticking point
        - velocity of a sliding point along its slip direction
        - factor by which friction changes a normal acceleration (`modes.ease`)
        """
        found, mode = self._found(at), self._mode
        moves, f, slack = found.moves, found.forces, self._slack(found)
        slides, active, sticks = mode.slides, mode.active, self._sticks
        bound = self._friction * f[:, 2] - np.linalg.norm(f[:, :2], axis=-1)
        along = applied(moves.axes, mode.slip) * np.where(self._rubs[:, None], 1.0, TANGENTS)
        slip = np.sum(along * moves.velocity, axis=-1)
        pushed = np.where(self._rubs, self._slots.bound - np.abs(f[:, 2]), f[:, 2])
        eased = np.empty(0)
        if found.problem is not None and slides.any():
            eased = modes.ease(found.problem.M, self._drag(moves, np.flatnonzero(active)))
        rooms = [
            np.where(mode.current, DEEPEST - np.abs(moves.gap), moves.gap + DEPTH),
            moves.room[mode.current] + NEAR,
            pushed[active] + slack[active],
            bound[sticks] + slack[sticks],
            slip[slides] + BACK,
            eased,
        ]
        return np.concatenate(rooms)

    def _slack(self, found: "_Found") -> np.ndarray:
        """Return tolerances (k,) for checking that contact forces are within their bounds.

        Each tolerance is a fraction of a reference force. This force is the largest contact force
        or the normal force at the point that would cancel the largest acceleration, whichever is
        larger.
        """
        size = max(np.max(np.abs(part), initial=0.0) for part in (found.forces, self._mode.forces))
        slack = np.full(len(self._friction), size)
        if found.problem is not None:
            own = np.diagonal(found.problem.M)[2::3]
            moved = own > TINY
            stops = np.max(np.abs(found.problem.d)) / np.where(moved, own, 1.0)
            slack[self._mode.active] = np.maximum(size, np.where(moved, stops, 0.0))
        return modes.BOUND * slack

    # Steps -------------------------------------------------------------------------------------

    def __call__(self, at: State, most: float = np.inf) -> Taken:
        """Take the next step, and end it where the contact mode first changes."""
        step = self._paced(at)
        passed = self._margins(step.last) < 0.0
        self.due = bool(passed.any())
        if not self.due:
            return self._restored(step, at)
        part = first_moment(self._margins, step, passed)
        for _ in range(NEWTON):
            earlier = part - self._overdue(step.at(part)) / (step.last.t - at.t)
            part = earlier if earlier > 0.0 else part  # a new contact may already penetrate
        gone = Taken(step.at(part), None, step.ends, lambda less: step.at(less * part))
        return self._restored(gone, at)

    def _paced(self, at: State) -> Taken:
        """Take a step, with a step size small enough to keep contact points on their surfaces.

        The step size is halved up to `HALVINGS` times. If this is not enough, the full step is
        taken.
        """
        first = step = self._turned(at, self._longest(at))
        for _ in range(HALVINGS):
            gap = self._found(step.last).moves.gap[self._mode.active]
            if not np.any(np.abs(gap) > ASTRAY):
                return step
            step = self._turned(at, 0.5 * (step.last.t - at.t))
        return first

    def _turned(self, at: State, most: float) -> Taken:
        """Take a step of at most `most` seconds, small enough for accurate slip velocities.

        As a point stops sliding, its slip turns fast, and the contact forces may grow without
        bound. A large step would then increase the energy. The error of the slip velocities is
        estimated by the trapezoidal rule. After a step was shortened, each accurate step doubles
        the limit.
        """
        slides = self._mode.slides & ~self._rubs
        if not slides.any():
            return self.pace(at, most)
        start = self._found(at)
        speed = np.linalg.norm(start.moves.velocity[slides, :2], axis=-1)
        for _ in range(HALVINGS):
            step = self.pace(at, min(most, self._most))
            h, end = step.last.t - at.t, self._found(step.last)
            error = step.last.qd - at.qd - 0.5 * h * (start.qdd + end.qdd)
            off = np.linalg.norm(start.moves.J[slides, :2] @ error, axis=-1)
            if np.all(off <= TURN * (speed + modes.FAINT)):
                self._most *= 2.0
                break
            self._most = 0.5 * h
        return step

    def _longest(self, at: State) -> float:
        """Return the largest step size (s) at which friction never increases the slip speed."""
        if not (self._mode.slides & ~self._rubs).any():
            return np.inf
        ahead = modes.heading(self._mode, self._moves(at)).slip
        slip = np.where(self._rubs[:, None], self._mode.slip, ahead)
        self._mode = self._mode._replace(slip=slip)
        found, active = self._found(at), np.flatnonzero(self._mode.active)
        if found.problem is None:
            return np.inf
        some, f, slides = found.moves.of(active), found.forces[active], self._mode.slides[active]
        drag = modes.dragged(found.problem, some, f, self._friction[active])[slides]
        speed = np.linalg.norm(some.velocity[slides, :2], axis=-1)
        return float(np.min(2.0 * (speed + modes.FAINT) / (drag + TINY), initial=np.inf))

    def _overdue(self, at: State) -> float:
        """Return the longest time (s) since a point reached a surface, for points below a surface.

        The time is the depth divided by the normal speed. Slow points are excluded because their
        depth may be a rounding error.
        """
        moves = self._found(at).moves
        gap, rate = moves.gap, moves.velocity[:, 2]
        below = ~self._mode.current & (gap < 0.0) & (rate < -modes.SLOW)
        return float(np.max(gap[below] / rate[below], initial=0.0))

    def _restored(self, step: Taken, start: State) -> Taken:
        """Correct the final q and qd of a step, so that points held in contact do not drift.

        The corrections have the smallest norm with respect to the mass matrix.
        """
        current = self._mode.current
        at = self._slots.kept(step.last, start, current)
        moves, rows = self._found(at).moves, _directions(self._sticks, current)
        off = np.max(np.abs(moves.gap[current]), initial=0.0)
        if max(off, np.max(np.abs(moves.velocity[rows]), initial=0.0)) <= DRIFT:
            return step._replace(last=at)
        q, qd = self._slots.onto(at, moves, current), self._slots.stopped(at, moves, rows)
        return step._replace(last=State(at.t, q, qd))

    # Mode changes ------------------------------------------------------------------------------

    def changed(self, at: State) -> Changed:
        """Apply impulses and choose a new contact mode; return the events and the new state.

        If `due` is True, the current contacts were held during the last step and do not count as
        impacts.
        """
        state, moves = at, self._moves(at)
        if not self.due:
            self._check(at.t, moves.gap)
        if (near := moves.touch).any():
            kept = near & (self._mode.current | ~self._rubs)
            at = at._replace(q=self._slots.onto(at, moves, kept))
            moves = self._slots(at, near)
        before = moves.velocity[:, 2]
        hits = near & (before < -modes.SLOW) & ~(self.due & self._mode.current)
        meets = near & ~self._rubs
        alike = moves.alike(meets)
        if hits.any():  # dry friction is finite, so joints receive no impulses
            at = at._replace(qd=self._struck(at, moves, np.unique(alike[meets])))
            moves = self._slots(at, near)
        slow = self._rubs & moves.touch
        alike[slow] = np.flatnonzero(slow)
        old, late = self._mode, self._choose(at, moves, alike, before)
        if meets.any() or slow.any():
            rest = _slow(moves) & self._mode.active & (self._friction > 0.0)
            rows = _directions(rest, self._mode.current | slow)
            at = at._replace(qd=self._slots.stopped(at, moves, rows))
        return self._slots.told(state, hits, old, self._mode, late), at

    def collides(self, at: State) -> bool:
        """Return True if bodies approach each other at a contact point."""
        moves = self._moves(at)
        return bool(np.any(moves.touch & (moves.velocity[:, 2] < -modes.SLOW)))

    def _check(self, t: float, gap: np.ndarray) -> None:
        """Raise an error if bodies penetrate each other in the initial state."""
        deep = np.flatnonzero(gap < -DEEPEST)
        if deep.size:
            depth = f"{-np.min(gap):.3g} (m, or rad at a limit)"
            problem = f"{self._slots.named(deep)} penetrates by {depth} at t = {t:.6g} s"
            remedy = "choose an initial state without penetration"
            raise InputError("E-MOTION-059", problem, remedy, part="simulate")

    def _struck(self, at: State, moves: Moves, which: np.ndarray) -> np.ndarray:
        """Return the velocities qd after an impact at the contact points in the mask `which`."""
        J = moves.J[which].reshape(-1, self._mechanism.nv)
        B = response(self._mechanism.at(at.t), at.q, J.T)
        laws = [self._slots.laws[k] for k in self._slots.row[which]]
        with self._slots.said(at.t, which):
            bodies = self._slots.bodies[which]
            return at.qd + B @ modes.impulses(laws, bodies, J @ B, moves.velocity[which])

    def _choose(self, at: State, moves: Moves, alike: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Choose the new contact mode, and return the times (k,) until the points come to rest.

        If several points have the same motion, one of them represents all. `alike` (k,) contains
        the index of this representative for each point in contact, and -1 for other points.

        Slow rebounds with velocities v, v e, v e^2, ... under an acceleration a are not simulated.
        The time until the point comes to rest is the total duration of the rebounds,
        2 v/(a (1 - e)).
        """
        late = np.zeros(len(alike))
        stays = (alike == np.arange(len(alike))) & (moves.velocity[:, 2] <= modes.SLOW)
        which, self._mode = np.flatnonzero(stays), modes.apart(len(alike))
        moving = self._rubs & ~stays
        self._mode.slip[moving, 2] = np.sign(moves.velocity[moving, 2])
        if not which.size:
            return late
        while True:
            some, calm = moves.of(which), self._calm(at, moves, stays)
            still = moves if calm is at else self._slots(calm, stays)
            problem = self._problem(calm, still, which)
            with self._slots.said(at.t, which):
                laws = self._friction[which], self._slots.bound[which]
                mode, forces = modes.next_mode(problem, some, *laws)
            parts = ~mode.current & ~self._rubs[which] & (some.velocity[:, 2] > DRIFT)
            if calm is at or not parts.any():
                break
            stays[which[parts]] = False  # these points are already separating
            which = np.flatnonzero(stays)
        for whole, part in zip(self._mode, mode, strict=True):
            whole[which] = part
        self._mode.current[alike >= 0] = self._mode.current[alike[alike >= 0]]
        after, pressed = some.velocity[:, 2], np.diagonal(problem.M)[2::3] * forces[:, 2]
        again = (before[which] < -modes.SLOW) & (after > 0.0) & (pressed > 0.0)
        rate = np.where(again, pressed * (1.0 + after / np.where(again, before[which], 1.0)), 1.0)
        late[which] = np.where(again, 2.0 * after / rate, 0.0)
        return late

    def _calm(self, at: State, moves: Moves, stays: np.ndarray) -> State:
        """Return the state with small velocities at the contacts set to zero.

        Rounding errors can make small velocities at different contacts inconsistent.
        """
        rows = _directions(stays & _slow(moves) & (self._friction > 0), stays)
        if np.max(np.abs(moves.velocity[rows]), initial=0.0) <= DRIFT:
            return at
        return at._replace(qd=self._slots.stopped(at, moves, rows))


class _Found(NamedTuple):
    """Cached results for a state and a contact mode.

    The results are the motion of all points, the contact forces, qdd, and the contact problem of
    the active points (None if no point is active).
    """

    at: State
    mode: modes.Mode
    moves: Moves
    forces: np.ndarray
    qdd: np.ndarray
    problem: Problem | None

    def of(self, at: State, mode: modes.Mode) -> bool:
        """Return True if the cached results belong to the given state and mode."""
        return self.mode is mode and _same(self.at, at)


def _same(a: State, b: State) -> bool:
    return a.t == b.t and np.array_equal(a.q, b.q) and np.array_equal(a.qd, b.qd)


def _slow(moves: Moves) -> np.ndarray:
    """Return the mask (k,) of points that do not slide."""
    return np.linalg.norm(moves.velocity[:, :2], axis=-1) <= modes.SLOW


def _directions(tangents: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Return a mask (k, 3) of contact axes, from the masks (k,) for tangents and for normals."""
    return np.column_stack([tangents, tangents, normals])
