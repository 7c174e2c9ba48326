"""Steps that are gone back to where something changes at a contact, and what contacts need."""

from collections.abc import Callable, Sequence

import numpy as np
import scipy

from chasles.errors import ArgumentError, InputError
from chasles.motion.contact.pairs import Pair, Rigid
from chasles.motion.drivers.pace import Pace
from chasles.motion.drivers.rigid import RigidContact
from chasles.motion.records import Occurrence, Touching
from chasles.motion.steps.local import Taken
from chasles.motion.steps.runge_kutta import Table
from chasles.motion.steps.system import Advance

HALVINGS = 10
"""Of a step that takes held points off their surfaces, at most."""

JUST = 1e-9
"""The part of a step that is just before a moment in it."""

SLIGHT = 1e-7
"""The part of a margin at the end of a step that is next to nothing."""

NEWTON = 3
"""Steps back to where a gap is zero, from the depth at which a gain is noticed."""


class Watched:
    """Steps that end where something changes at a contact (step 3); then a change is due."""

    def __init__(self, pace: Pace, contact: RigidContact) -> None:
        self._pace, self._contact = pace, contact
        self.due = False

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray) -> tuple[float, Taken]:
        """The time of the next state, and the step there."""
        contact = self._contact
        goal, step = self._paced(t, q, qd)
        passed = contact.margins(goal, step.q, step.qd) < 0.0
        self.due = bool(passed.any())
        if not self.due:
            return goal, contact.restored(goal, step)

        def at(part: float) -> tuple[float, np.ndarray, np.ndarray]:
            return t + part * (goal - t), *(step.at(part) if part else (q, qd))

        def left(part: float, which: int) -> float:
            return min(float(contact.margins(*at(part))[which]), 1.0)

        part, found = 1.0, np.zeros_like(passed)
        while passed.any():
            roots = {int(k): _root(left, int(k), part) for k in np.flatnonzero(passed)}
            part = min(roots.values())
            found[[k for k in roots if roots[k] == part]] = True
            passed = (contact.margins(*at(part)) < 0.0) & ~found
            if not passed.any() and part > JUST:  # features that others have replaced by then
                passed = (contact.margins(*at(part - JUST)) < 0.0) & ~found
                part -= JUST * passed.any()
        for _ in range(NEWTON):
            part = max(part - contact.overdue(*at(part)) / (goal - t), 0.0)
        when, *_ = last = at(part)
        shorter = Taken(last[1], last[2], None, step.ends, lambda less: step.at(less * part))
        return when, contact.restored(when, shorter)

    def _paced(self, t: float, q: np.ndarray, qd: np.ndarray) -> tuple[float, Taken]:
        """The next step as it is made, none of whose errors takes held points off their surfaces.

        It is tried shorter where it does; where that does not help, it is left to `margins`.
        """
        contact = self._contact
        first = goal, step = self._pace(t, q, qd, contact.turned(t, q, qd))
        for _ in range(HALVINGS):
            if not contact.strays(goal, step.q, step.qd):
                return goal, step
            goal, step = self._pace(t, q, qd, 0.5 * (goal - t))
        return first

    def collides(self, t: float, q: np.ndarray, qd: np.ndarray) -> bool:
        """Whether an impact is due."""
        return self._contact.collides(t, q, qd)

    def changed(
        self, t: float, q: np.ndarray, qd: np.ndarray
    ) -> tuple[list[Occurrence], np.ndarray, np.ndarray]:
        """What happened, and the state after; not only where it is due."""
        if not self.due:
            self._contact.check(t, q, qd)
        return self._contact.changed(t, q, qd, self.due)


def _root(left: Callable[[float, int], float], which: int, end: float) -> float:
    """The part of a step after which a margin is negative; none, where it is from the start.

    One that is nothing at the start, as the force of a body that rests without weight, is negative
    where it is so beyond a part of what it comes to: there it can be told which way it goes.
    """
    first = left(0.0, which)
    slack = 0.0 if first > 0.0 else -SLIGHT * min(left(end, which), left(1.0, which))
    if first + slack <= 0.0:
        return 0.0

    def beyond(part: float) -> float:
        return left(part, which) + slack

    if beyond(end) >= 0.0:
        return end
    return float(scipy.optimize.brentq(beyond, 0.0, end, xtol=1e-12, rtol=1e-12))


def check_rigid(
    contacts: Sequence[Pair],
    q: np.ndarray,
    name: str,
    advance: Advance,
    stabilization: float | None,
) -> None:
    """Refuse what rigid contact does not go with."""
    for pair in contacts:
        if not isinstance(pair, Pair) or not isinstance(pair.law, Rigid):
            problem = (
                "contacts must all be contact.Pair(body, surface, contact.Rigid(...)) beside "
                "limits or other rigid ones, whose steps end where one touches, and soft ones "
                f"have no such end, not {pair!r:.80}"
            )
            remedy = "give all of them one kind of law"
            raise ArgumentError("E-MOTION-070", problem, remedy, part="simulate")
    if q.ndim > 1:
        problem = (
            f"contacts and limits are of one state, not of a batch {q.shape[:-1]}, whose members "
            "would touch at different times"
        )
        remedy = "simulate them one by one, or take robot.rollout with soft contacts"
        raise InputError("E-MOTION-071", problem, remedy, part="simulate")
    if not isinstance(advance, Table) or not advance.explicit:
        problem = (
            "contacts and limits need an explicit integrator, to go back within its steps, not "
            f"{name!r}"
        )
        raise InputError("E-MOTION-072", problem, "take 'rk4' or 'dopri5'", part="simulate")
    if stabilization is not None:
        problem = "contacts and limits keep loops closed"
        raise InputError("E-MOTION-073", problem, "leave out stabilization", part="simulate")


def touched(kept: Sequence[tuple[np.ndarray, np.ndarray]], points: int) -> Touching:
    """Forces and gaps of the states of a trajectory, if there are none too."""
    forces, gaps = zip(*kept, strict=True) if kept else ((), ())
    n = len(kept)
    return Touching(
        np.reshape(forces, (n, points, 3)), np.reshape(gaps, (n, points)), np.zeros((n, 0))
    )
