"""Scene for a time step: a robot's contact pairs, joint limits, dry friction and damping."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from chasles.expr import RULES, Arena
from chasles.model import Model
from chasles.motion.contact.pairs import Pair
from chasles.motion.geometry.kinematics import symbols
from chasles.motion.steps.bodies import NO_OWN, Own, placed
from chasles.motion.steps.sharing import Crowd, Unseen, crowds, unseen
from chasles.motion.steps.slots import MOST_CORNERS, Corners, corners_of, meeting
from chasles.motion.steps.spots import Spot

MANY = 200
"""Problem size above which a subprogram finds the closest contact points. The size is the number of
candidate points times the number of points kept, summed over the groups of points."""


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
    def few(self) -> tuple[list[tuple[Pair, Spot]], list[Crowd]]:
        """Contact points as in `usual`, but with convex hulls reduced to a few of their vertices.

        The number of points is the same as in `usual`, so these points suffice to count slots. The
        expressions for these points are built much faster.
        """
        bodies: list[Any] = []
        for pair in self.pairs:
            corners = corners_of(pair)
            few = None if corners is None else Corners(corners[: MOST_CORNERS + 1])
            bodies.append(few or pair.body)
        return self.spots(symbols(Arena(RULES), "q", (self.model.nq,)), bodies=bodies)

    @cached_property
    def slots(self) -> int:
        """Number of contact slots (potential contact points)."""
        own, crowded = self.few
        shared = [crowd.slots for crowd in crowded] + [group.slots for group in self.unseen]
        return len(own) + sum(shared)

    @cached_property
    def picks(self) -> list[int]:
        """Number of shared slots of each group of points; [] for small problems.

        In a small problem, the sum over all groups of slots times points is at most `MANY`.
        """
        crowded = self.few[1]
        many = sum(crowd.slots * len(crowd.spots) for crowd in crowded) > MANY
        return [crowd.slots for crowd in crowded] if many else []

    def forget(self) -> None:
        """Free the expressions of contact points, and keep the numbers of slots."""
        _ = self.slots, self.picks
        for name in ("usual", "few"):
            self.__dict__.pop(name, None)

    @property
    def unseen(self) -> list[Unseen]:
        """Groups of contact pairs whose contact points are computed before each compiled step."""
        return unseen([p for p in self.pairs if meeting(p.body, p.surface) is None])

    def spots(
        self, q: np.ndarray, own: Own = NO_OWN, bodies: Sequence[Any] | None = None
    ) -> tuple[list[tuple[Pair, Spot]], list[Crowd]]:
        """Return contact points that have their own slot, and groups of points that share slots.

        Each point is returned with its pair. `own` contains the model parameters that are symbols.
        `bodies`, if given, contains one shape for each pair, which replaces `pair.body`.
        """
        places = placed(self.model, q, self.pairs, own)
        found: list[tuple[Pair, Spot]] = []
        for k, pair in enumerate(self.pairs):
            meet = meeting(pair.body, pair.surface)
            if meet is None:
                continue
            over, under = (places[f] for f in (pair.body.frame, pair.surface.frame))
            body = pair.body if bodies is None else bodies[k]
            found += [(pair, spot) for spot in meet(body, over, pair.surface, under)]
        alone = [(pair, spot) for pair, spot in found if not pair.shared]
        return alone, crowds([(pair, spot) for pair, spot in found if pair.shared])
