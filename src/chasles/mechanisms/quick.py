"""Fast path for inverse kinematics of a single problem.

The first call prepares and caches the data for a set of targets. Later calls only copy the new
values, run the machine code, and copy the result. All other calls take the slow path, which returns
bitwise identical results or raises an error.
"""

import itertools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.errors import ChaslesError
from chasles.functions.reaching import ANGLE, LENGTH, MEMORY, STATUS, Task
from chasles.functions.targets import Pose, Relative, Target, stated
from chasles.mechanisms.beginning import BeginOne
from chasles.mechanisms.branches import tight, uneven
from chasles.mechanisms.postures import KEPT
from chasles.mechanisms.solutions import Solution

assert LENGTH == ANGLE + 1

_DOUBLE = np.dtype(np.float64)
_POSE = (4, 4)
_NUMBERS = {float, int}


def _is_pose(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype is _DOUBLE and value.shape == _POSE


def _plain(options: tuple[Any, Any]) -> tuple[Any, Any] | None:
    """Return the weight and the tolerance if both are plain numbers, or None if one is an array."""
    return options if set(map(type, options)) <= _NUMBERS else None


class Plan:
    """Inverse-kinematics search for given target frames and kinds, used by one thread at a time."""

    def __init__(self, task: Task, alone: Any, begin: BeginOne | None) -> None:
        self.lock, self.begin = threading.Lock(), begin
        self.alone, self.shape = alone, alone.guess.shape
        targets = [target for _, target in task.targets]
        self.is_pose = len(targets) == 1 and type(targets[0]) is Pose
        self._goals = _parts([target.size for target in targets])
        self._rows = _parts([target.angles + target.lengths for target in targets])
        self._options = [_plain((target.weight, target.tolerance)) for target in targets]
        self._weights = np.concatenate([target.each("weight") for target in targets])
        self.tight, self.uneven = tight(*alone.constants[:2]), uneven(*alone.constants[:2])
        size = alone.guess.size
        end = size + MEMORY
        self.run, self.plain, self.guessed = alone.run, alone.plain, alone.guessed
        self.matrices, self.guess = list(alone.matrices), alone.guess
        self.answer, self.point, self.status = alone.answer[:end], slice(size), size + STATUS
        self.residual = slice(size + ANGLE, size + LENGTH + 1)
        self.steps = alone.answer[end : end + 1].view(np.int64)
        self.sides = alone.answer[end + 2 :].view(np.int8)[:size]

    def state(self, targets: Sequence[Target]) -> bool:
        """Store the values of the targets; return False if the targets are a batch of problems."""
        alone, poses = self.alone, 0
        for k, target in enumerate(targets):
            options = (target.weight, target.tolerance)
            plain = _plain(options)
            if plain is None or plain != self._options[k]:
                if max(map(np.ndim, options)) > 1:  # an array with a row for each problem
                    return False
                self._options[k] = None  # invalid until weight and tolerance are stored
                weights, tolerances = alone.constants[:2]
                self._weights[self._rows[k]] = target.each("weight")
                if not self._weights.any():
                    return False
                weights[0] = self._weights / self._weights.max()  # scale the largest weight to 1
                tolerances[0, self._rows[k]] = target.each("tolerance")
                self._options[k], self.tight = plain, tight(weights, tolerances)
                self.uneven = uneven(weights, tolerances)
            if isinstance(target, Pose | Relative):
                if not _is_pose(target.pose):
                    return False
                alone.matrices[poses] = target.pose
                poses += 1
            else:
                numbers = target.numbers()
                if numbers.ndim != 1:
                    return False
                alone.goals[0, self._goals[k]] = numbers
        return True


def _parts(sizes: Sequence[int]) -> list[slice]:
    ends = list(itertools.accumulate(sizes, initial=0))
    return [slice(*pair) for pair in itertools.pairwise(ends)]


class Quick:
    """Callable cache of prepared inverse-kinematics searches (plans)."""

    def __init__(self) -> None:
        self.plans: dict[tuple[Any, ...], Plan] = {}
        """Cached searches, keyed by the frames and kinds of their targets."""
        self.plain: dict[tuple[str, ...], Plan] = {}
        """Cached searches for targets given as plain arrays, keyed by the target frames."""

    def keep(self, targets: Any, task: Task, alone: Any, begin: BeginOne | None) -> None:
        """Cache a search for later calls with the same target frames and kinds of targets.

        `begin` is the function that returns the initial configuration, or None.
        """
        is_plain = len(targets) == len(task.targets) and not any(
            isinstance(value, Target | list) for value in targets.values()
        )
        plans: dict[Any, Plan] = self.plain if is_plain else self.plans
        while len(plans) >= KEPT:
            plans.pop(next(iter(plans)), None)
        plans[tuple(targets) if is_plain else _key(task.targets)] = Plan(task, alone, begin)

    def __call__(self, targets: Any, guess: Any) -> Solution | None:
        """Return the solution, or None if the slow path is needed."""
        if type(targets) is not dict:
            return None
        values: Any = targets.values()
        plan = self.plain.get(tuple(targets))
        for T in values:
            if type(T) is not np.ndarray or T.dtype is not _DOUBLE or T.shape != _POSE:
                plan = None
        several: Any = None
        if plan is None:
            try:
                pairs = [(f, target) for f, value in targets.items() for target in stated(value)]
                plan = self.plans.get(_key(pairs))
            except (TypeError, ValueError):  # a target that is invalid or cannot be hashed
                return None
            several = [target for _, target in pairs]
        if plan is None:
            return None
        way = plan.plain
        if guess is not None:
            if type(guess) is not np.ndarray or guess.dtype is not _DOUBLE:
                return None
            if guess.shape != plan.shape:
                return None
            way = plan.guessed
        if not plan.lock.acquire(False):
            return None  # another thread is using the plan
        try:
            if several is None:
                places = iter(plan.matrices)
                for T in values:  # faster than `zip`
                    next(places)[...] = T
            elif not plan.state(several):
                return None
            if guess is not None:
                plan.guess[...] = guess
            elif plan.begin is not None and plan.tight:
                plan.guess[...], way = plan.begin(plan.matrices[0]), plan.guessed
            if plan.run(way):
                return None
            answer, steps, sides = plan.answer.copy(), plan.steps[0], plan.sides.copy()
        except ChaslesError:  # the slow path raises an error that names the frame
            return None
        finally:
            plan.lock.release()
        # No solution was found. The slow path also tries closed-form solutions and other weights.
        if answer[plan.status] != 1.0 and (plan.is_pose or plan.uneven):
            return None
        found = object.__new__(Solution)  # faster than the constructor
        fields = found.__dict__
        fields["q"], fields["solved"] = answer[plan.point], answer[plan.status] == 1.0
        fields["residual"] = answer[plan.residual]
        fields["iterations"], fields["limits"] = steps, sides
        return found


def _key(pairs: Sequence[tuple[str, Target]]) -> tuple[Any, ...]:
    return tuple((frame, *target.key) for frame, target in pairs)
