"""Scene for a time step: a robot's contact pairs, joint limits, dry friction and damping."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chasles.expr import RULES, Arena
from chasles.model import Model
from chasles.motion.contact.pairs import Pair
from chasles.motion.geometry.kinematics import symbols
from chasles.motion.steps.bodies import NO_OWN, Own, placed
from chasles.motion.steps.sharing import Crowd, Unseen, crowds, unseen
from chasles.motion.steps.slots import meeting
from chasles.motion.steps.spots import Spot

MANY = 200
"""Threshold for the number of contact points times the number of shared slots. Above the threshold,
a subprogram finds the closest points."""


@dataclass(frozen=True)
class Scene:
    """Contact pairs, joint limits, dry friction and damping that act on a robot in a step.

    Attributes
    ----------
    limits : tuple[tuple[int, int, float, float], ...]
        Velocity index, position index, lower and upper limit of each joint with one degree of
        freedom that stops at its limits.
    dissipation : bool
        True if joint damping and dry friction act.
    stopped : bool
        True if tendons and ball joints also stop at their limits.
    """

    model: Model
    pairs: tuple[Pair, ...]
    limits: tuple[tuple[int, int, float, float], ...] = ()
    dissipation: bool = False
    stopped: bool = False

    @cached_property
    def usual(self) -> tuple[list[tuple[Pair, Spot]], list[Crowd]]:
        """Potential contact points of all pairs (see `spots`) as expressions in the input q."""
        return self.spots(symbols(Arena(RULES), "q", (self.model.nq,)))

    @cached_property
    def slots(self) -> int:
        """Number of contact slots (potential contact points)."""
        own, crowded = self.usual
        shared = [crowd.slots for crowd in crowded] + [group.slots for group in self.unseen]
        return len(own) + sum(shared)

    @cached_property
    def picks(self) -> list[int]:
        """Number of shared slots per group of points, or an empty list if there are few points."""
        crowded = self.usual[1]
        many = sum(crowd.slots * len(crowd.spots) for crowd in crowded) > MANY
        return [crowd.slots for crowd in crowded] if many else []

    @property
    def unseen(self) -> list[Unseen]:
        """Groups of pairs whose contacts are inputs of the compiled step."""
        return unseen([p for p in self.pairs if meeting(p.body, p.surface) is None])

    def spots(
        self, q: np.ndarray, own: Own = NO_OWN
    ) -> tuple[list[tuple[Pair, Spot]], list[Crowd]]:
        """Return potential contact points with their own slot, and groups that share slots.

        Each point is returned with its pair. `own` contains the model parameters that are symbols.
        """
        places = placed(self.model, q, self.pairs, own)
        found: list[tuple[Pair, Spot]] = []
        for pair in self.pairs:
            meet = meeting(pair.body, pair.surface)
            if meet is None:
                continue
            over, under = (places[f] for f in (pair.body.frame, pair.surface.frame))
            found += [(pair, spot) for spot in meet(pair.body, over, pair.surface, under)]
        alone = [(pair, spot) for pair, spot in found if not pair.shared]
        return alone, crowds([(pair, spot) for pair, spot in found if pair.shared])
