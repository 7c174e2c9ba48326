"""Inverse kinematics: configurations that meet targets, within limits, with loops closed.

The solver starts from several configurations (a low-discrepancy set within the limits), nearest to
the targets first, until it finds a solution. An iteration is a compiled program
(`functions.reaching`), and the loop over starts is machine code (`backends.llvm.search`), so a
problem takes about a microsecond.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from chasles.backends.arrays import COMPILING, checked_count
from chasles.errors import InputError
from chasles.functions.doors import leading_shape
from chasles.functions.reaching import ANGLE, LENGTH, STATUS, Task
from chasles.mechanisms.beginning import Beginning, BeginOne
from chasles.mechanisms.branches import Branches, branches, checked, every, rescue, tight, uneven
from chasles.mechanisms.comfort import Comfort, comfort_of, settled
from chasles.mechanisms.distinct import Rows, distance, full_turns, listed
from chasles.mechanisms.given_targets import (
    PART,
    check_together,
    checked_posture,
    fixed_joints,
    task_of,
)
from chasles.mechanisms.mechanism import Mechanism
from chasles.mechanisms.postures import RANKED, SEED, TRIES, Bounds, Starts, prepared
from chasles.mechanisms.quick import Quick
from chasles.mechanisms.solutions import Solution as Solution
from chasles.mechanisms.solutions import sides, wrapped

MOST_TRIES = 1_000_000
"""Maximum value of the options `tries` and `count`."""

SMALLEST = 1e-12
"""Lower bound on tolerances, to avoid division by zero."""

SEVERAL = 16
"""Number of solutions from which the nearest to a given configuration is chosen."""

LEAPS = (1.0, 0.5)
"""Positions of additional initial guesses between a solution (0) and the argument `near` (1).

From these guesses, the solver may find a solution that is nearer to `near`.
"""


def inverse_kinematics(
    mechanism: Mechanism,
    bounds: Bounds,
    targets: Any,
    *,
    guess: Any = None,
    near: Any = None,
    fixed: Sequence[str] | str = (),
    solutions: Literal["first", "all"] = "first",
    count: int = 16,
    comfort: Any = None,
    comfort_weight: Any = None,
    wraps: bool = False,
    seed: int = SEED,
    tries: int = TRIES,
    threads: int | None = None,
    quick: Quick | None = None,
) -> Solution:
    """Return configurations that meet targets; see `Robot.inverse_kinematics`.

    A search for a single problem is stored in the cache `quick`, for reuse in later calls.
    """
    mechanism.refuse_time(PART, "evaluate it at a time: robot.at_time(t)")
    task, lead, given = task_of(mechanism, bounds, targets)
    if solutions not in ("first", "all"):
        problem = f"`solutions` must be 'first' or 'all', not {solutions!r}"
        raise InputError("E-CALL-371", problem, part=PART)
    tries = checked_count(f"{PART}: tries", tries, most=MOST_TRIES)
    count = checked_count(f"{PART}: count", count, most=MOST_TRIES)
    seed = checked_count(f"{PART}: seed", seed, least=0)
    threads = None if threads is None else checked_count(f"{PART}: threads", threads)
    posture = checked_posture(mechanism, "guess", guess)
    wanted = checked_posture(mechanism, "near", near)
    ease = comfort_of(mechanism, bounds, comfort, comfort_weight)
    held = fixed_joints(mechanism, fixed)
    check_together(ease, wanted, solutions, wraps)
    states = {"guess": posture, "near": wanted, "comfort": None if ease is None else ease.posture}
    shapes = {name: p for name, p in states.items() if p is not None}
    lead = leading_shape(PART, targets=np.empty((*lead, 0)), **shapes)
    solver = _Solver(mechanism, bounds, task, given, lead, held, seed, tries, threads)
    if wanted is not None:
        return solver.nearest(wanted, posture)
    if solutions == "all":
        found = solver.all(posture, count)
        return wrapped(mechanism, bounds, found) if wraps else found
    if quick is not None and not lead:
        quick.keep(targets, task, *solver.alone())
    return solver.first(posture, ease)


# Solving ----------------------------------------------------------------------------------------


class _Solver:
    """Solver for one call of `inverse_kinematics`, with its targets and search options."""

    def __init__(
        self,
        mechanism: Mechanism,
        bounds: Bounds,
        task: Task,
        given: list[np.ndarray],
        lead: tuple[int, ...],
        held: Sequence[str],
        seed: int,
        tries: int,
        threads: int | None,
    ) -> None:
        self.mechanism, self.bounds, self.task, self.lead = mechanism, bounds, task, lead
        self.held, self.seed, self.tries, self.threads = held, seed, tries, threads
        goals, self._weights, self._tolerances = given
        self._tight = tight(self._weights, self._tolerances)
        rows = np.broadcast_to(goals, (*lead, goals.shape[-1]))
        self.goals = np.ascontiguousarray(rows.reshape(math.prod(lead), goals.shape[-1]))
        self._movable = np.ones((1, mechanism.nv))
        for name in held:
            self._movable[0, mechanism.velocity_slice(name)] = 0.0
        self._prepared = prepared(mechanism, task)

    def first(self, guess: np.ndarray | None, ease: Comfort | None = None) -> Solution:
        """Return one solution per problem; `ease` (if given) is the preferred configuration."""
        begins = self._rows(guess)
        beginning = self._beginning() if guess is None and self._tight else None
        if beginning is not None:
            found = self._begun(beginning)
        else:
            found = self._found(self.goals, begins)
        missed = found[1][:, STATUS] != 1.0
        if missed.any() and uneven(self._weights, self._tolerances):
            self._retry(found, np.flatnonzero(missed))
        if missed.any() and (closed := self._closed()) is not None:
            base = self._base(begins)
            rescue(closed, self.goals, base, found, missed, self._tried, self.threads)
        if ease is not None:
            easy = replace(ease, posture=self._each(ease.posture))
            found = self._settled(easy, slice(None), found)
        return self._solution(*found)

    def _retry(self, found: Rows, missed: np.ndarray) -> None:
        """Solve the problems `missed` again, with errors weighted by the inverse tolerances.

        Errors with small tolerances then have priority. A previous result is replaced only if the
        new one is a solution.
        """
        goals, begins = self.goals[missed], np.ascontiguousarray(found[0][missed])
        weights = self._weights / np.maximum(self._tolerances, SMALLEST)
        some = self._found(goals, begins, weights=weights / weights.max())
        solved = np.flatnonzero(some[1][:, STATUS] == 1.0)
        _put(found, missed[solved], [a[solved] for a in some])

    def alone(self) -> tuple[Any, BeginOne | None]:
        """Return the search for a single problem, and a function that computes its initial guess.

        The second function is None if `fixed` names joints, or if the arm has no closed-form
        solution.
        """
        starts, constants = self._starts(None), [self._weights, self._tolerances, self._movable]
        limits, tries = (self.bounds.lower, self.bounds.upper), (RANKED, starts.patience)
        offsets = self.task.poses
        search, beginning = self._prepared.search, self._beginning()
        begin = None if beginning is None else beginning.alone(self._base(None), self.seed)
        alone = search.alone(constants, starts.postures, *tries, starts.table, offsets, limits)
        return alone, begin

    def _beginning(self) -> Beginning | None:
        """Return a function that computes starting configurations in closed form, or None.

        The result is None if joints are fixed, or if the arm has no closed-form solution.
        """
        closed = None if self.held else self._branches()
        if closed is None:
            return None
        key = ("beginning", self.task.targets[0][0])
        if key not in self.mechanism.kept:
            with COMPILING:
                made = Beginning(closed, self.mechanism.nq)
                self.mechanism.kept.setdefault(key, made)
        found: Beginning = self.mechanism.kept[key]
        return found

    def _begun(self, beginning: Beginning) -> Rows:
        """Return the solutions of a search that starts from closed-form solutions."""
        begins = beginning(self.goals, self._base(None), self.seed, self.threads)
        found = self._found(self.goals, begins, most=0)
        late = np.flatnonzero(found[1][:, STATUS] != 1.0)
        if len(late):
            _put(found, late, self._found(self.goals[late], begins[late]))
        return found

    def _closed(self) -> Branches | None:
        """Return the closed-form inverse kinematics of the arm for these targets, or None."""
        return self._branches() if self._tight else None

    def _branches(self) -> Branches | None:
        lower, upper = self.bounds.lower, self.bounds.upper
        return branches(self.mechanism, self.task, lower, upper, self.held)

    def _tried(self, goals: np.ndarray, begins: np.ndarray) -> Rows:
        """Search for a solution of each problem from a single starting configuration."""
        return self._found(goals, begins, most=1)

    def _rows(self, posture: np.ndarray | None) -> np.ndarray | None:
        """Clip configurations to the limits; return one per problem, or one for all problems."""
        if posture is None:
            return None
        return self._each(np.clip(posture, self.bounds.lower, self.bounds.upper))

    def _each(self, posture: np.ndarray) -> np.ndarray:
        """Return configurations as a matrix with one row per problem, or one row for all."""
        if posture.ndim == 1:
            return np.ascontiguousarray(posture[None])
        whole = np.broadcast_to(posture, (*self.lead, posture.shape[-1]))
        return np.ascontiguousarray(whole.reshape(len(self.goals), posture.shape[-1]))

    @cached_property
    def _columns(self) -> list[int]:
        """Indices in q of the coordinates of joints in `fixed`."""
        places = (self.mechanism.position_slice(name) for name in self.held)
        return [k for place in places for k in range(place.start, place.stop)]

    def _by_group(self, goals: np.ndarray, rows: np.ndarray, weights: np.ndarray | None) -> Rows:
        """Solve problems that may fix the joints in `fixed` at different positions.

        Each problem is first tried from its guess. Unsolved problems are then solved in groups in
        which these joints have equal positions.
        """
        found = self._searched(goals, rows, 0, weights)
        late = np.flatnonzero(found[1][:, STATUS] != 1.0)
        _, group = np.unique(rows[late][:, self._columns], axis=0, return_inverse=True)
        for k in range(group.max(initial=-1) + 1):
            chosen = late[group.ravel() == k]
            _put(found, chosen, self._searched(goals[chosen], rows[chosen], None, weights))
        return found

    def _base(self, guess: np.ndarray | None) -> np.ndarray:
        """Return the guess or neutral configuration (n or 1, nq), clipped to the limits."""
        here = self.mechanism.neutral()[None] if guess is None else guess
        return np.asarray(np.clip(here, self.bounds.lower, self.bounds.upper))

    def _starts(self, guess: np.ndarray | None) -> Starts:
        """Return starting configurations in which the joints in `fixed` have their guessed values.

        Without a guess, these joints have their neutral values.
        """
        held: tuple[tuple[int, float], ...] = ()
        if self.held:
            here = self._base(guess[:1] if guess is not None and len(guess) else None)[0]
            held = tuple((k, float(here[k])) for k in self._columns)
        return self._prepared.starts(self.bounds, self.seed, self.tries, held)

    def _found(
        self,
        goals: np.ndarray,
        guess: np.ndarray | None,
        *,
        most: int | None = None,
        weights: np.ndarray | None = None,
    ) -> Rows:
        """Return each problem's configuration, solver state, and (number of steps, attempt index).

        If `most` is None, the solver may try all starting configurations. If `most` is 0, the only
        attempt starts from the guess. If `most` is 1 and that attempt fails, a second attempt
        continues until the error no longer decreases. `weights` replaces the weights of the
        targets.
        """
        if most is None and self.held and guess is not None and len(guess) > 1:
            return self._by_group(goals, guess, weights)
        return self._searched(goals, guess, most, weights)

    def _searched(
        self,
        goals: np.ndarray,
        guess: np.ndarray | None,
        most: int | None,
        weights: np.ndarray | None,
    ) -> Rows:
        """Return the results of `_found` for problems with equal positions of the fixed joints.

        After the first attempt, these positions are taken from the first problem's guess.
        """
        starts, search = self._starts(guess), self._prepared.search
        ranks, patience = np.zeros((len(goals), 0), np.int64), starts.patience
        if most is None:
            ranks = search.ranked(goals, starts.table)
        else:
            patience = patience[[0, -1][: most + 1]]
        if guess is None:
            guess, ranks = starts.postures[ranks[:, 0]], np.ascontiguousarray(ranks[:, 1:])
        weights = self._weights if weights is None else weights
        inputs = [goals, weights, self._tolerances, self._movable]
        found: Rows = search(inputs, guess, ranks, starts.postures, RANKED, patience, self.threads)
        return found

    def _solution(
        self,
        q: np.ndarray,
        ends: np.ndarray,
        steps: np.ndarray,
        each: tuple[int, ...] = (),
        complete: np.ndarray | None = None,
    ) -> Solution:
        """Build a `Solution` from configurations, final solver states and step counts.

        `each` is (count,) if each problem has `count` configurations, else ().
        """
        lead = (*self.lead, *each)
        return Solution(
            q.reshape(*lead, q.shape[-1]),
            (ends[..., STATUS] == 1.0).reshape(lead)[()],
            ends[..., [ANGLE, LENGTH]].reshape(*lead, 2),
            steps[..., 0].reshape(self.lead)[()],
            sides(q, self.bounds).reshape(*lead, q.shape[-1]),
            np.zeros(self.lead, bool) if complete is None else complete.reshape(self.lead),
        )

    # Several solutions --------------------------------------------------------------------------

    def all(self, guess: np.ndarray | None, count: int) -> Solution:
        """Return distinct configurations, at most `count` per problem, in the order found."""
        rows, closed = self._rows(guess), self._closed()
        if closed is None:
            return self._solution(*self._listed(self.goals, rows, count), (count,))
        if closed.exact and (closed.held is not None or not closed.redundant):
            return self._checked(closed, rows, count)
        found, complete = self._every(closed, self.goals, self._base(rows), count)
        none = np.flatnonzero(found[1][:, 0, STATUS] != 1.0)
        if len(none) and not closed.exact:
            own = rows if rows is None or len(rows) == 1 else rows[none]
            _put(found, none, self._listed(self.goals[none], own, count))
        return self._solution(*found, (count,), complete)

    def _every(
        self, closed: Branches, goals: np.ndarray, base: np.ndarray, count: int
    ) -> tuple[Rows, np.ndarray]:
        return every(self.mechanism, closed, goals, base, count, self._tried, self.threads)

    def _checked(self, closed: Branches, rows: np.ndarray | None, count: int) -> Solution:
        """Return all closed-form solutions, or search for solutions if one is inaccurate."""
        base = self._base(rows)
        given = closed, self.goals, base, count, self._tolerances, self.threads
        q, residual, many, missed = checked(*given)
        complete, steps = many <= count, many.astype(np.int64)
        solved = np.arange(count) < many[:, None]
        late = np.flatnonzero(missed)
        if len(late):
            own = base if len(base) == 1 else base[late]
            some, complete[late] = self._every(closed, self.goals[late], own, count)
            q[late], residual[late] = some[0], some[1][..., [ANGLE, LENGTH]]
            solved[late], steps[late] = some[1][..., STATUS] == 1.0, some[2][:, 0]
        shape = (*self.lead, count)
        return Solution(
            q.reshape(*shape, q.shape[-1]),
            solved.reshape(shape),
            residual.reshape(*shape, 2),
            steps.reshape(self.lead)[()],
            sides(q, self.bounds).reshape(*shape, q.shape[-1]),
            complete.reshape(self.lead),
        )

    def _listed(self, goals: np.ndarray, rows: np.ndarray | None, count: int) -> Rows:
        """Return `count` configurations for each problem, their solver states, and step counts."""
        starts, kept = self._starts(rows).postures[RANKED:], [*self._columns, *self.task.idle]
        return listed(self.mechanism, goals, rows, starts, count, self._tried, kept)

    def nearest(self, posture: np.ndarray, guess: np.ndarray | None) -> Solution:
        """Return the solution nearest to a configuration, by the sum of squared differences.

        The result is the nearest of all solutions found. If other solutions may exist, this
        solution is then moved as close to the configuration as the targets allow (`_approached`).
        The configuration may be outside the limits. Joints in `fixed` stay at their positions in
        the guess or, without a guess, in the configuration.
        """
        if guess is not None and self.held:
            posture, guess = (np.array(a) for a in np.broadcast_arrays(posture, guess))
            for name in self.held:
                place = self.mechanism.position_slice(name)
                posture[..., place] = guess[..., place]
        rows, found = self._each(posture), self.all(posture, SEVERAL)
        rows = np.broadcast_to(rows, (len(self.goals), rows.shape[1]))
        flat = found.q.reshape(len(rows), found.q.shape[-2], rows.shape[1])
        limits = self.bounds.lower, self.bounds.upper
        flat = flat + full_turns(self.mechanism, rows[:, None] - flat, flat, *limits)
        away = distance(self.mechanism, rows[:, None], flat)
        best = np.argmin(np.where(np.isnan(away), np.inf, away), axis=1)
        every = np.arange(len(rows))
        q, none = flat[every, best], ~np.isfinite(away[every, best])
        if none.any():
            q[none] = self.first(posture).q.reshape(rows.shape)[none]
        whole = self._tried(self.goals, np.ascontiguousarray(q))
        moving = np.flatnonzero(~none & ~np.ravel(found.complete))
        if len(moving):
            _put(whole, moving, self._approached(rows[moving], moving, [a[moving] for a in whole]))
        whole[2][:, 0] += found.iterations.reshape(-1)
        return self._solution(*whole)

    def _approached(self, rows: np.ndarray, which: np.ndarray, begun: list[np.ndarray]) -> Rows:
        """Move initial solutions `begun` toward configurations (n, nq) while meeting the targets.

        The search is repeated from points between each solution and its configuration (`LEAPS`),
        and the solutions found are moved in the same way. The result nearest to each configuration
        is returned.
        """
        goals, limits = self.goals[which], (self.bounds.lower, self.bounds.upper)
        ease = Comfort(rows, np.ones(self.mechanism.nv))
        best = self._settled(ease, which, begun)
        for share in LEAPS:
            way = self.mechanism.difference(best[0], rows) * self._movable
            begins = np.clip(self.mechanism.integrate(best[0], share * way), *limits)
            q = self._found(goals, begins, most=0)[0]
            q = q + full_turns(self.mechanism, rows - q, q, *limits)
            trial = self._settled(ease, which, self._tried(goals, q))
            away = (distance(self.mechanism, rows, each[0]) for each in (trial, best))
            nearer = np.flatnonzero((trial[1][:, STATUS] == 1.0) & np.less(*away))
            _put(best, nearer, [a[nearer] for a in trial])
        return best

    def _settled(self, ease: Comfort, which: Any, found: Sequence[np.ndarray]) -> Rows:
        """Move solutions toward the preferred configuration, as far as the targets allow."""
        inputs = [self.goals[which], self._weights, self._tolerances, self._movable]
        return settled(self._prepared, ease, inputs, found, self.threads)


def _put(whole: Sequence[np.ndarray], where: np.ndarray, part: Sequence[np.ndarray]) -> None:
    """Copy the arrays `part` into the rows `where` of the arrays `whole`."""
    for a, rows in zip(whole, part, strict=True):
        a[where] = rows
