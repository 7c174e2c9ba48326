"""The short way through inverse kinematics: one problem, its targets poses of frames.

What a set of frames needs is prepared at the first call and kept; later calls copy the poses into
place, run the machine code, and copy the answer. Whatever is unusual takes the long way, which
answers with the same bits, or names what is wrong.
"""

import threading
from typing import Any

import numpy as np

from chasles.functions.reaching import ANGLE, LENGTH, MEMORY, STATUS
from chasles.mechanisms.postures import KEPT

assert LENGTH == ANGLE + 1

_DOUBLE = np.dtype(np.float64)
_POSE = (4, 4)


class Plan:
    """A search that is ready for poses of certain frames; one call at a time."""

    def __init__(self, alone: Any) -> None:
        self.lock = threading.Lock()
        self.alone = alone
        self.first, self.matrices = alone.matrices[0], alone.matrices
        self.guess, self.answer, self.size = alone.guess, alone.answer, alone.guess.size
        self.shape = alone.guess.shape
        end = self.size + MEMORY
        self.status, self.steps = self.size + STATUS, end
        self.residual = slice(self.size + ANGLE, self.size + LENGTH + 1)
        self.sides = slice(8 * (end + 2), 8 * (end + 2) + self.size)


class Quick:
    """Plans by frames, and calls by them."""

    def __init__(self) -> None:
        self.plans: dict[tuple[str, ...], Plan] = {}

    def keep(self, frames: tuple[str, ...], alone: Any) -> None:
        """Use a search for later calls with the same frames."""
        while len(self.plans) >= KEPT:
            self.plans.pop(next(iter(self.plans)), None)
        self.plans[frames] = Plan(alone)

    def __call__(self, targets: Any, guess: Any) -> tuple[Any, ...] | None:
        """Posture, solved, residual, iterations and limits; None where the long way is needed."""
        if type(targets) is not dict:
            return None
        plan = self.plans.get(tuple(targets))
        if plan is None:
            return None
        for T in targets.values():
            if type(T) is not np.ndarray or T.dtype is not _DOUBLE or T.shape != _POSE:
                return None
        way = plan.alone.plain
        if guess is not None:
            if type(guess) is not np.ndarray or guess.dtype is not _DOUBLE:
                return None
            if guess.shape != plan.shape:
                return None
            way = plan.alone.guessed
        if not plan.lock.acquire(False):
            return None  # another thread is at it
        try:
            if len(targets) == 1:
                plan.first[...] = T
            else:
                for k, T in enumerate(targets.values()):
                    plan.matrices[k] = T
            if guess is not None:
                plan.guess[...] = guess
            if plan.alone.run(way):
                return None
            answer = plan.answer.copy()
        finally:
            plan.lock.release()
        return (
            answer[: plan.size],
            answer[plan.status] == 1.0,
            answer[plan.residual],
            answer.view(np.int64)[plan.steps],
            answer.view(np.int8)[plan.sides],
        )
