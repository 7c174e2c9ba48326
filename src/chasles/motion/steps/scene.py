"""Scene of a time step: contact pairs, joint limits, dry friction and damping of a robot."""

from dataclasses import dataclass

import numpy as np

from chasles.expr import RULES, Arena
from chasles.model import Model
from chasles.motion.contact.pairs import Pair
from chasles.motion.geometry.kinematics import symbols
from chasles.motion.steps.bodies import placed
from chasles.motion.steps.slots import meeting
from chasles.motion.steps.spots import Spot


@dataclass(frozen=True)
class Scene:
    """Contact pairs, joint limits, dry friction and damping that act on a robot in a step.

    limits: (velocity index, position index, lower, upper) of joints with one degree of freedom that
    stop at their limits. stopped: True if tendons and ball joints stop at their limits, too.
    """

    model: Model
    pairs: tuple[Pair, ...]
    limits: tuple[tuple[int, int, float, float], ...] = ()
    dissipation: bool = False
    stopped: bool = False

    @property
    def slots(self) -> int:
        """Number of contact slots."""
        arena = Arena(RULES)
        return len(self.spots(arena, symbols(arena, "q", (self.model.nq,))))

    def spots(self, arena: Arena, q: np.ndarray) -> list[tuple[Pair, Spot]]:
        """Return all slots in a configuration, each with its pair."""
        places = placed(self.model, arena, q, self.pairs)
        found = []
        for pair in self.pairs:
            meet = meeting(pair.body, pair.surface)
            assert meet is not None, "checked before"
            over, under = (places[f] for f in (pair.body.frame, pair.surface.frame))
            found += [(pair, spot) for spot in meet(pair.body, over, pair.surface, under)]
        return found
