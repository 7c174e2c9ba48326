"""Laws of the normal force of soft contact, by surfaces with a state of their own or without.

A law has `states`, the number of its state variables, and `response(state, gap, rate)`, which gives
the force (N, never pulling) and the rates of the states. gap: the distance of the undeformed
surfaces (m), negative where they would overlap; rate: its derivative (m/s).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, runtime_checkable

from chasles.errors import ArgumentError, InputError
from chasles.motion.geometry.arithmetic import Value, less, less_equal, maximum, select, sqrt

CLOSE = 1e-4
"""A body this part of the compression away from a surface still touches it: rounding, also that of
float32, must not count as a loss of contact, which the force would answer with a jump."""


@runtime_checkable
class NormalLaw(Protocol):
    """What gives the normal force."""

    @property
    def states(self) -> int:
        """The number of state variables."""

    def touches(self, state: Sequence[Value], gap: Value) -> Value:
        """1.0 where there may be a force, 0.0 where the body is beyond the surface's reach."""

    def response(
        self, state: Sequence[Value], gap: Value, rate: Value, touching: Value = None
    ) -> tuple[Value, list[Any]]:
        """The force on each body, away from the other (N), and the rates of the states.

        touching: as `touches` said before, at the beginning of a step; by default as it says now.
        """

    def energy(self, state: Sequence[Value], gap: Value) -> Value:
        """What the springs hold (J)."""

    def advanced(self, state: Sequence[Value], force: Value, gap: Value, dt: float) -> list[Value]:
        """The states dt seconds later, under the force of the step, at the gap after it."""

    def settled(self, state: Sequence[Value], force: Value, gap: Value) -> list[Value]:
        """States that an integrator has found, made exact: on the gap, where there is a force."""


@dataclass(frozen=True)
class SoftSurface:
    """A massless surface on a spring and a damper: first order (Featherstone 2008, 11.8).

    stiffness: K (N/m). damping: D (N s/m). Its state is z, the place of the surface (m, negative
    where it is pressed in). A body at p (the gap) touches it where p = z, feels then
    max(0, -K p - D pdot), and leaves it behind where that is zero: the surface follows at its own
    pace, zdot = -(K z + force)/D (Eq 11.73, 11.74).

    The force is taken of p, not of z, so that errors of z die out with the surface's own time D/K.
    """

    stiffness: float
    damping: float
    states = 1

    def __post_init__(self) -> None:
        positive(self, "stiffness", "damping")

    def touches(self, state: Sequence[Value], gap: Value) -> Value:
        """Where the body is at the surface, or would be below it."""
        return _reached(state, gap)

    def response(
        self, state: Sequence[Value], gap: Value, rate: Value, touching: Value = None
    ) -> tuple[Value, list[Any]]:
        """The force and the rate of z."""
        return _in_series((self,), state, gap, rate, touching)

    def energy(self, state: Sequence[Value], gap: Value) -> Value:
        """K z^2 / 2."""
        return 0.5 * self.stiffness * state[0] * state[0]

    def advanced(self, state: Sequence[Value], force: Value, gap: Value, dt: float) -> list[Value]:
        """z after a step, without integrating it (Featherstone 2008, section 11.8, extensions).

        Where there was a force z is the gap; elsewhere it decays as exp(-K t / D). For steps of a
        fixed length, in which an integrated z would not stay exactly on the body.
        """
        return _after((self,), state, force, gap, dt)

    def settled(self, state: Sequence[Value], force: Value, gap: Value) -> list[Value]:
        """z on the gap where there is a force."""
        return _onto((self,), state, force, gap)


@dataclass(frozen=True)
class TwoSoftSurfaces:
    """Two soft bodies: each surface has its spring, damper and state, and one force presses both.

    The bodies touch where the gap is z1 + z2, and both z follow Eq 11.73. Where K/D is the same for
    both, `lumped` is one surface that gives the same forces.
    """

    first: SoftSurface
    second: SoftSurface
    states = 2

    def __post_init__(self) -> None:
        for surface in (self.first, self.second):
            if not isinstance(surface, SoftSurface):
                problem = f"give two of SoftSurface, not {surface!r:.60}"
                raise ArgumentError("E-CONTACT-085", problem, part="TwoSoftSurfaces")

    def touches(self, state: Sequence[Value], gap: Value) -> Value:
        """Where the gap is z1 + z2, or would be less."""
        return _reached(state, gap)

    def response(
        self, state: Sequence[Value], gap: Value, rate: Value, touching: Value = None
    ) -> tuple[Value, list[Any]]:
        """The force and the rates of z1 and z2."""
        return _in_series((self.first, self.second), state, gap, rate, touching)

    def energy(self, state: Sequence[Value], gap: Value) -> Value:
        """K1 z1^2 / 2 + K2 z2^2 / 2."""
        return self.first.energy(state[:1], gap) + self.second.energy(state[1:], gap)

    def advanced(self, state: Sequence[Value], force: Value, gap: Value, dt: float) -> list[Value]:
        """z1 and z2 after a step of constant force, moved onto the gap where the bodies touch."""
        return _after((self.first, self.second), state, force, gap, dt)

    def settled(self, state: Sequence[Value], force: Value, gap: Value) -> list[Value]:
        """z1 and z2 moved onto the gap where there is a force."""
        return _onto((self.first, self.second), state, force, gap)

    def lumped(self) -> SoftSurface:
        """One surface for both: K1 K2/(K1 + K2) and D1 D2/(D1 + D2), where K1/D1 = K2/D2."""
        a, b = self.first, self.second
        if not math.isclose(a.stiffness * b.damping, b.stiffness * a.damping, rel_tol=1e-9):
            problem = (
                "the surfaces differ in the ratio of stiffness to damping, "
                f"{a.stiffness / a.damping:g} and {b.stiffness / b.damping:g} 1/s, and no common "
                "state"
            )
            remedy = "keep them as two"
            raise InputError("E-CONTACT-086", problem, remedy, part="TwoSoftSurfaces.lumped")
        return SoftSurface(_series(a.stiffness, b.stiffness), _series(a.damping, b.damping))


@dataclass(frozen=True)
class HuntCrossley:
    """A spring and a damper that both grow with depth: f = K d^n (1 + a ddot), d = -gap.

    stiffness: K (N/m^n). damping: a (s/m), by which slow impacts have a restitution of about
    1 - 2 a v / 3. exponent: n, a multiple of one half from 1 on; 3/2 is Hertz's for spheres. No
    state, and no jump of force at the first touch. Hunt and Crossley (1975), Marhefka and Orin
    (1999), whose alpha is 2 a / 3.
    """

    stiffness: float
    damping: float
    exponent: float = 1.5
    states = 0

    def __post_init__(self) -> None:
        positive(self, "stiffness")
        not_negative(self, "damping")
        if self.exponent < 1.0 or 2.0 * self.exponent != round(2.0 * self.exponent):
            problem = f"exponent must be a multiple of one half from 1 on, not {self.exponent!r}"
            raise InputError("E-CONTACT-087", problem, part="HuntCrossley")

    def touches(self, state: Sequence[Value], gap: Value) -> Value:
        """Everywhere: the force itself grows from zero."""
        return 1.0

    def response(
        self, state: Sequence[Value], gap: Value, rate: Value, touching: Value = None
    ) -> tuple[Value, list[Any]]:
        """The force; there are no states."""
        spring = self.stiffness * _power(maximum(-gap, 0.0), self.exponent)
        return maximum(spring * (1.0 - self.damping * rate), 0.0), []

    def energy(self, state: Sequence[Value], gap: Value) -> Value:
        """K d^(n+1) / (n+1)."""
        n = self.exponent + 1.0
        return self.stiffness / n * _power(maximum(-gap, 0.0), n)

    def advanced(self, state: Sequence[Value], force: Value, gap: Value, dt: float) -> list[Value]:
        """No states."""
        return []

    def settled(self, state: Sequence[Value], force: Value, gap: Value) -> list[Value]:
        """No states."""
        return []


@dataclass(frozen=True)
class AzadFeatherstone:
    """Hertz's spring with a damper that grows as the root of depth: f = K d^(3/2) + D d^(1/2) ddot.

    stiffness: K (N/m^1.5). damping: D (N s/m^1.5). d = -gap. It differs from Hunt and Crossley's in
    the power of d beside ddot, and so the restitution falls with the speed to the power 1/5, as is
    measured on spheres and plates. Azad and Featherstone (2010, *Modeling the contact between a
    rolling sphere and a compliant ground plane*; 2014, *A new nonlinear model of contact normal
    force*, IEEE Trans. Robotics 30(3), 736-739); Kuwabara and Kono (1987).
    """

    stiffness: float
    damping: float
    states = 0

    def __post_init__(self) -> None:
        positive(self, "stiffness")
        not_negative(self, "damping")

    def touches(self, state: Sequence[Value], gap: Value) -> Value:
        """Everywhere: the force itself grows from zero."""
        return 1.0

    def response(
        self, state: Sequence[Value], gap: Value, rate: Value, touching: Value = None
    ) -> tuple[Value, list[Any]]:
        """The force; there are no states."""
        d = maximum(-gap, 0.0)
        return maximum(_power(d, 0.5) * (self.stiffness * d - self.damping * rate), 0.0), []

    def energy(self, state: Sequence[Value], gap: Value) -> Value:
        """2/5 K d^(5/2)."""
        return 0.4 * self.stiffness * _power(maximum(-gap, 0.0), 2.5)

    def advanced(self, state: Sequence[Value], force: Value, gap: Value, dt: float) -> list[Value]:
        """No states."""
        return []

    def settled(self, state: Sequence[Value], force: Value, gap: Value) -> list[Value]:
        """No states."""
        return []


def _reached(state: Sequence[Value], gap: Value) -> Value:
    """1.0 where the gap is no wider than surfaces reach; 0.0 elsewhere."""
    return less_equal(gap, (1.0 - CLOSE) * sum(state))


def _in_series(
    surfaces: Sequence[SoftSurface],
    state: Sequence[Value],
    gap: Value,
    rate: Value,
    touching: Value,
) -> tuple[Value, list[Any]]:
    """One force presses all surfaces, whose rates together make the gap's.

    What the gap differs from the sum of the states is shared out in proportion to 1/D, which is how
    a sudden motion would be.
    """
    pace = [s.stiffness / s.damping for s in surfaces]
    damping = _series(*(s.damping for s in surfaces))
    total = sum(state)
    off = sum(damping / s.damping * k for s, k in zip(surfaces, pace, strict=True)) * (gap - total)
    push = -damping * (rate + sum(k * z for k, z in zip(pace, state, strict=True)) + off)
    touching = _reached(state, gap) if touching is None else touching
    force = select(touching, maximum(push, 0.0), 0.0)
    return force, [
        -(s.stiffness * z + force) / s.damping for s, z in zip(surfaces, state, strict=True)
    ]


def _after(
    surfaces: Sequence[SoftSurface], state: Sequence[Value], force: Value, gap: Value, dt: float
) -> list[Value]:
    """The states after a step; where there was a force they are shifted onto the gap."""
    moved = [decayed(s, z, force, dt) for s, z in zip(surfaces, state, strict=True)]
    return _onto(surfaces, moved, force, gap)


def _onto(
    surfaces: Sequence[SoftSurface], state: Sequence[Value], force: Value, gap: Value
) -> list[Value]:
    """The states, shifted onto the gap where there is a force."""
    damping = _series(*(s.damping for s in surfaces))
    off = select(less(0.0, force), gap - sum(state), 0.0)
    return [z + damping / s.damping * off for s, z in zip(surfaces, state, strict=True)]


def decayed(surface: SoftSurface, z: Value, force: Value, dt: float) -> Value:
    """The solution of Eq 11.73 under a constant force."""
    rest = -force / surface.stiffness
    return rest + (z - rest) * math.exp(-surface.stiffness / surface.damping * dt)


def _series(*values: float) -> float:
    """Of springs or dampers one behind the other."""
    return 1.0 / sum(1.0 / value for value in values)


def _power(d: Value, exponent: float) -> Value:
    """d^exponent of d >= 0, exponent a multiple of one half; its slope at 0 is 0, not infinite."""
    halves = round(2.0 * exponent)
    result: Value = 1.0
    for _ in range(halves // 2):
        result = result * d
    if halves % 2:
        deep = less(0.0, d)
        result = result * select(deep, sqrt(select(deep, d, 1.0)), 0.0)
    return result


def positive(law: Any, *names: str) -> None:
    for name in names:
        _checked(law, name, "positive", lambda x: x > 0.0)


def not_negative(law: Any, *names: str) -> None:
    for name in names:
        _checked(law, name, "zero or positive", lambda x: x >= 0.0)


def _checked(law: Any, name: str, kind: str, fits: Callable[[float], bool]) -> None:
    value = getattr(law, name)
    if not (isinstance(value, Real) and math.isfinite(value) and fits(float(value))):
        problem = f"{name} must be a finite {kind} number, not {value!r:.60}"
        raise InputError("E-CONTACT-088", problem, part=type(law).__name__)
