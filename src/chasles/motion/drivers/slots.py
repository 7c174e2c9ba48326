"""All places where a robot may touch: points of bodies, features that meet, joint limits."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from chasles.errors import ConvergenceError
from chasles.motion.contact.modes import Mode
from chasles.motion.contact.pairs import Pair, Rigid
from chasles.motion.contract import Machine
from chasles.motion.drivers.stops import Stops
from chasles.motion.geometry.kinematics import Moves, Points
from chasles.motion.geometry.meetings import meeting
from chasles.motion.geometry.varying import Varying
from chasles.motion.laws.friction import NoUniqueMotion
from chasles.motion.records import Occurrence
from chasles.motion.solvers.complementarity import Infeasible


class Slots:
    """The places of some pairs and of joint limits, numbered; each belongs to a row.

    A row is a point of a body, a pair whose points vary, or a limit, in the order of the pairs:
    row (slots,) says which, names and laws (rows,) are theirs; the last ones are limits.
    """

    def __init__(self, robot: Machine, pairs: Sequence[Pair], limits: bool) -> None:
        features = [meeting(pair.body, pair.surface) for pair in pairs]
        fixed = [pair for pair, found in zip(pairs, features, strict=True) if found is None]
        self._points, self._stops = Points(robot, fixed), Stops(robot, limits)
        self._varying: list[Varying] = []
        self.names: list[str] = []
        self.laws: list[Rigid] = []
        balls: list[int] = []
        meetings: list[int] = []
        for pair, found in zip(pairs, features, strict=True):
            rows = range(len(self.names), len(self.names) + pair.points)
            self.names += _names(pair)
            assert isinstance(pair.law, Rigid), "others are refused before"
            self.laws += [pair.law] * pair.points
            if found is None:
                balls += rows
            else:
                self._varying.append(Varying(robot, pair, found))
                meetings += [rows[0]] * found.size
        self.contacts, self._balls = len(self.names), len(balls)
        stops = range(self.contacts, self.contacts + len(self._stops.names))
        self.names += self._stops.names
        self.laws += [Rigid()] * len(stops)
        self.row: Any = np.array([*balls, *meetings, *stops], dtype=int)
        self.friction = np.array([self.laws[k].friction for k in self.row])

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray, held: np.ndarray) -> Moves:
        """Where they are at a time and how they move; held (slots,): which are looked at anyway."""
        parts, start = [self._points(t, q, qd)] if self._balls else [], self._balls
        for one in self._varying:
            parts.append(one(t, q, qd, held[start : start + one.size]))
            start += one.size
        parts += [self._stops(q, qd)] if self._stops.names else []
        if len(parts) == 1:
            return parts[0]
        return Moves(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def rows(self, which: np.ndarray) -> np.ndarray:
        """Which rows have a slot of those that are true in `which` (slots,): (rows,)."""
        return np.bincount(self.row[which], minlength=len(self.names)) > 0

    def named(self, which: np.ndarray) -> str:
        """The names of some slots, by number."""
        return ", ".join(dict.fromkeys(self.names[k] for k in self.row[which]))

    def told(
        self,
        t: float,
        state: tuple[np.ndarray, np.ndarray],
        hits: np.ndarray,
        old: Mode,
        new: Mode,
        late: np.ndarray,
    ) -> list[Occurrence]:
        """What happened, by name: of a pair whose points vary, to any of them.

        hits (slots,): which collided; late (slots,): how long after t each comes to rest.
        """
        (was, slid), (current, slides) = (
            (self.rows(mode.current), self.rows(mode.slides)) for mode in (old, new)
        )
        rests = np.zeros(len(self.names))
        np.maximum.at(rests, self.row, late)
        kinds = {
            "impact": self.rows(hits),
            "loss": was & ~current,
            "gain": current & ~was,
            "slip": was & current & slides & ~slid,
            "stick": was & current & slid & ~slides,
        }
        return [
            Occurrence(f"{kind} {self.names[k]}", t + rests[k] * (kind == "gain"), *state)
            for kind, which in kinds.items()
            for k in np.flatnonzero(which)
        ]

    @contextmanager
    def said(self, t: float, which: np.ndarray) -> Iterator[None]:
        """Problems without an answer say when and where."""
        try:
            yield
        except (Infeasible, NoUniqueMotion, ConvergenceError) as error:
            raise error.within(f"simulate: at t = {t:.6g} s, {self.named(which)}") from None


def _names(pair: Pair) -> list[str]:
    """A name for each row of a pair."""
    other = "" if pair.surface.frame is None else f" on {pair.surface.frame}"
    body = pair.body.frame or "world"
    return [f"{body}{f'[{k}]' if pair.points > 1 else ''}{other}" for k in range(pair.points)]
