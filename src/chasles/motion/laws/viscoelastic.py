"""Viscoelastic surface: a spring and a damper in parallel, in series with another spring."""

import math
from dataclasses import dataclass

from chasles.motion.geometry.closed_forms import Value, less, maximum, select
from chasles.motion.laws.soft import NormalLaw, Response, Values, check_law


@dataclass(frozen=True)
class StandardSolid(NormalLaw):
    """Spring and damper in parallel, in series with a spring (Featherstone 2008, 11.8).

    The state is z, the displacement of the parallel spring and damper (m, negative in
    compression). The force on a body at p (the gap) is max(0, K_s (z - p)), which grows from zero
    at first contact, and zdot = -(K z + force)/D. Fast impacts compress only the series spring;
    under a static load, both springs are compressed. In the limit of infinite K_s, the law is
    `SoftSurface`.

    Attributes
    ----------
    series : float
        Stiffness K_s of the series spring, which the body presses on (N/m).
    stiffness, damping : float
        Stiffness K (N/m) and damping D (N s/m) of the parallel spring and damper.
    """

    series: float
    stiffness: float
    damping: float
    states = 1

    def __post_init__(self) -> None:
        check_law(self)

    def touches(self, state: Values, gap: Value) -> Value:
        return 1.0

    def response(self, state: Values, gap: Value, rate: Value, touching: Value = None) -> Response:
        (z,) = state
        force = self.series * maximum(z - gap, 0.0)
        return force, [-(self.stiffness * z + force) / self.damping]

    def energy(self, state: Values, gap: Value) -> Value:
        (z,) = state
        pressed = maximum(z - gap, 0.0)
        return 0.5 * (self.stiffness * z * z + self.series * pressed * pressed)

    def advanced(self, state: Values, force: Value, gap: Value, dt: float) -> list[Value]:
        # The gap is assumed to be constant; if the force is zero, there is no contact. The step is
        # stable for any dt, and accurate if dt is small compared with D/K_s.
        (z,) = state
        both = self.stiffness + self.series
        rest = self.series / both * gap
        held = rest + (z - rest) * math.exp(-both / self.damping * dt)
        return [select(less(0.0, force), held, z * math.exp(-self.stiffness / self.damping * dt))]

    def settled(self, state: Values, force: Value, gap: Value) -> list[Value]:
        return list(state)
