"""Pairs of shapes that may touch, each with the law that holds between them."""

import math
from dataclasses import dataclass

from chasles.contact.points import Body, Surface
from chasles.contact.restitution import ImpactLaw, Newton
from chasles.contact.soft import SoftContact


@dataclass(frozen=True)
class Rigid:
    """Bodies that do not give way: they touch, leave, slide and stick, and collide.

    friction: Coulomb's coefficient mu, while touching. restitution: e of Newton's law of impact,
    with the same friction. impact: another law of impact in its place.
    """

    friction: float = 0.0
    restitution: float = 0.0
    impact: ImpactLaw | None = None

    def __post_init__(self) -> None:
        for name, most in (("friction", math.inf), ("restitution", 1.0)):
            value = getattr(self, name)
            if not (0.0 <= value <= most and math.isfinite(value)):
                bound = "from 0 on" if math.isinf(most) else f"from 0 to {most:g}"
                raise ValueError(f"Rigid: {name} must be a number {bound}, not {value!r}")

    @property
    def impact_law(self) -> ImpactLaw:
        """The law of impact."""
        return self.impact or Newton(self.restitution, self.friction)


@dataclass(frozen=True)
class Pair:
    """A body that may touch a surface, and the law between them.

    Each point of the body (`body.balls()`) is a contact of its own, in the order of the pairs.
    """

    body: Body
    surface: Surface
    law: Rigid | SoftContact
