"""Soft contact: forces from a gap and its rate, and friction at ground that gives way sideways.

A law of `soft_normal` gives the normal force; `SoftContact` adds friction. Everything is written in
operations that floats, NumPy arrays and the symbols of a trace share: one law serves a single
number, a batch, and a compiled step. At rest all states are zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chasles.errors import ArgumentError, InputError
from chasles.motion.geometry.arithmetic import Value, less, select, sqrt
from chasles.motion.laws.soft_normal import (
    NormalLaw,
    SoftSurface,
    decayed,
    not_negative,
    positive,
)


@dataclass(frozen=True)
class SoftFriction:
    """Coulomb's friction at a surface that also gives way sideways (Featherstone 2008, 11.8).

    coefficient: mu. stiffness: K_t (N/m). damping: D_t (N s/m). Its state is x, how far the surface
    is displaced (m), one number for each tangent: f = -K_t x - D_t v, which would let the surface
    follow the body, shortened to mu times the normal force where it is longer. Then the body slips,
    and xdot = -(K_t x + f)/D_t is not v (Eq 11.77 to 11.79; with two tangents the bound is a
    circle, the section of the cone).
    """

    coefficient: float
    stiffness: float
    damping: float

    def __post_init__(self) -> None:
        not_negative(self, "coefficient")
        positive(self, "stiffness", "damping")

    def response(
        self, state: Sequence[Value], normal_force: Value, slip: Sequence[Value]
    ) -> tuple[list[Any], list[Any]]:
        """The forces along the tangents (N) and the rates of x, at slip velocities v (m/s)."""
        K, D = self.stiffness, self.damping
        held = [-K * x - D * v for x, v in zip(state, slip, strict=True)]
        square, bound = sum(f * f for f in held), self.coefficient * normal_force
        slips = less(bound * bound, square)
        part = select(slips, bound / sqrt(select(slips, square, 1.0)), 1.0)
        forces = [part * f for f in held]
        return forces, [-(K * x + f) / D for x, f in zip(state, forces, strict=True)]

    def energy(self, state: Sequence[Value]) -> Value:
        """K_t x^2 / 2."""
        return 0.5 * self.stiffness * sum(x * x for x in state)

    def advanced(self, state: Sequence[Value], forces: Sequence[Value], dt: float) -> list[Value]:
        """x after a step of constant force: exactly what Eq 11.77 says of that."""
        surface = SoftSurface(self.stiffness, self.damping)
        return [decayed(surface, x, f, dt) for x, f in zip(state, forces, strict=True)]


@dataclass(frozen=True)
class SoftContact:
    """A normal law with or without friction: the forces at one point of contact.

    tangents: 2 in space, 1 in the plane. The states are those of the normal law, then those of
    friction, one for each tangent. Forces are in the order of contact axes: tangents, then normal.
    """

    normal: NormalLaw
    friction: SoftFriction | None = None
    tangents: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.normal, NormalLaw):
            problem = (
                "normal must be a law such as SoftSurface(...) or HuntCrossley(...), not "
                f"{self.normal!r:.60}"
            )
            raise ArgumentError("E-CONTACT-080", problem, part="SoftContact")
        if not isinstance(self.friction, SoftFriction | None):
            problem = (
                "friction must be SoftFriction(coefficient, stiffness, damping), not "
                f"{self.friction!r:.60}"
            )
            raise ArgumentError("E-CONTACT-081", problem, part="SoftContact")
        if self.tangents not in (1, 2):
            problem = f"tangents must be 1 or 2, not {self.tangents!r}"
            raise InputError("E-CONTACT-082", problem, part="SoftContact")

    @property
    def states(self) -> int:
        """The number of state variables."""
        return self.normal.states + (self.tangents if self.friction is not None else 0)

    def touches(self, state: Sequence[Value], gap: Value) -> Value:
        """1.0 where there may be a force, 0.0 where the body is beyond the surface's reach."""
        return self.normal.touches(self._parts(state)[0], gap)

    def response(
        self,
        state: Sequence[Value],
        gap: Value,
        rate: Value,
        slip: Sequence[Value],
        touching: Value = None,
    ) -> tuple[list[Any], list[Any]]:
        """The forces on the body (N; tangents, then normal), and the rates of the states.

        state: of the number `states`; slip: the velocities along the tangents (m/s) of the body's
        point that is in contact, relative to the other body. touching: what `touches` said at the
        beginning of a step; by default what it says now.
        """
        normal, sideways = self._parts(state)
        if len(slip) != self.tangents:
            problem = f"slip must have {self.tangents} numbers"
            raise InputError("E-CONTACT-083", problem, part="SoftContact")
        force, rates = self.normal.response(normal, gap, rate, touching)
        if self.friction is None:
            return [*(0.0 * force for _ in slip), force], rates
        forces, slipped = self.friction.response(sideways, force, slip)
        return [*forces, force], [*rates, *slipped]

    def energy(self, state: Sequence[Value], gap: Value) -> Value:
        """What all springs hold (J)."""
        normal, sideways = self._parts(state)
        held = 0.0 if self.friction is None else self.friction.energy(sideways)
        return self.normal.energy(normal, gap) + held

    def advanced(
        self, state: Sequence[Value], forces: Sequence[Value], gap: Value, dt: float
    ) -> list[Value]:
        """The states after a step of dt seconds under these forces, at the gap after it."""
        normal, sideways = self._parts(state)
        after = self.normal.advanced(normal, forces[-1], gap, dt)
        if self.friction is None:
            return after
        return [*after, *self.friction.advanced(sideways, forces[:-1], dt)]

    def settled(self, state: Sequence[Value], forces: Sequence[Value], gap: Value) -> list[Value]:
        """States that an integrator has found, with surfaces on the gap where there is a force."""
        normal, sideways = self._parts(state)
        return [*self.normal.settled(normal, forces[-1], gap), *sideways]

    def _parts(self, state: Sequence[Value]) -> tuple[Sequence[Value], Sequence[Value]]:
        if len(state) != self.states:
            problem = f"{self.states} states are needed, not {len(state)}"
            raise InputError("E-CONTACT-084", problem, part="SoftContact")
        return state[: self.normal.states], state[self.normal.states :]
