"""Contacts that are computed with NumPy before each step and passed to the compiled step."""

from collections.abc import Sequence

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.expr import RULES, Arena, Program, Variable
from chasles.functions.programs import program
from chasles.model import Model
from chasles.motion.geometry.kinematics import symbols
from chasles.motion.steps.bodies import Weights, neutral_posture, numbers_of, placed
from chasles.motion.steps.scene import Scene
from chasles.motion.steps.sharing import Unseen
from chasles.motion.steps.slots import outside


class Contacts:
    """Contacts with height fields, which are computed with NumPy and not compiled."""

    def __init__(self, scene: Scene) -> None:
        self.groups, self.model = scene.unseen, scene.model
        names = (f for group in self.groups for f in group.frames if f is not None)
        self._frames = list(dict.fromkeys(names))
        self._kernel = backends.compile(_poses(scene, self._frames))
        neutral = neutral_posture(self.model)
        mass = np.linalg.pinv(numbers_of(program(self.model, "mass_matrix"), q=neutral))
        weight = Weights(self.model, mass)
        self._weights = [[weight(pair) for pair in group.pairs] for group in self.groups]

    def inputs(self, q: np.ndarray) -> np.ndarray:
        """Return the contact data that a compiled step needs at each configuration (n, nq)."""
        return np.concatenate([x for rows, x in self._all(q) for x in (rows, x)], axis=-1)

    def gaps(self, q: np.ndarray) -> np.ndarray:
        """Return the gaps (..., contacts) in configurations (..., nq)."""
        flat = self._all(q.reshape(-1, q.shape[-1]))
        each = [rows.reshape(len(rows), group.slots, -1)[..., 0]
                for (rows, _), group in zip(flat, self.groups, strict=True)]  # fmt: skip
        return np.concatenate(each, axis=-1).reshape(*q.shape[:-1], -1)

    def _all(self, q: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return, for each group of pairs, the closest contacts and the gap of the next contact.

        For n configurations, the arrays have shapes (n, slots * ROW) and (n, 1).
        """
        poses = call(self._kernel, "simulate", (q,)).reshape(len(q), -1, 4, 3)
        at: dict[str | None, tuple[np.ndarray, np.ndarray]] = {
            None: (np.broadcast_to(np.eye(3), (len(q), 3, 3)), np.zeros((len(q), 3)))
        }
        for k, frame in enumerate(self._frames):
            at[frame] = (poses[:, k, :3], poses[:, k, 3])
        every = zip(self.groups, self._weights, strict=True)
        return [self._group(group, weights, at) for group, weights in every]

    def _group(
        self,
        group: Unseen,
        weights: Sequence[float],
        at: dict[str | None, tuple[np.ndarray, np.ndarray]],
    ) -> tuple[np.ndarray, np.ndarray]:
        rows = []
        for pair, weight in zip(group.pairs, weights, strict=True):
            row = outside(pair.body, pair.surface)
            assert row is not None, "checked before"
            over, under = pair.frames
            found = row.contacts(pair.body, *at[over], pair.surface, *at[under])
            ends = [weight, *(float(group.frames.index(f)) for f in pair.frames)]
            own = np.broadcast_to(ends, (*found.shape[:2], 3))
            rows.append(np.concatenate([found[..., 6:], found[..., :6], own], axis=-1))
        every = np.concatenate(rows, axis=1)
        order = np.argsort(every[..., 0], axis=1, kind="stable")[..., None]
        every = np.take_along_axis(every, order, axis=1)
        rest = every[:, group.slots :, 0]
        missed = rest[:, :1] if rest.shape[1] else np.full((len(every), 1), np.inf)
        return every[:, : group.slots].reshape(len(every), -1), np.minimum(missed, 1.0)


def _poses(scene: Scene, frames: Sequence[str]) -> Program:
    """Return the program that computes the poses of k frames in the world, as an array (k, 4, 3).

    The first three rows of each frame are its rotation matrix; the last row is its origin.
    """
    model: Model = scene.model
    places = placed(model, symbols(Arena(RULES), "q", (model.nq,)), scene.pairs)
    entries = [x for f in frames for part in (places[f].R, places[f].o) for x in np.ravel(part)]
    output = (Variable("poses", (len(entries),)), entries)
    return Program.from_outputs("poses", [Variable("q", (model.nq,))], [output])
