"""Soft contact: normal forces as functions of gap and gap rate, and friction on compliant ground.

A law for the normal force has an attribute `states`, the number of its state variables, and a
method `response(state, gap, rate)`, which returns the force (N, never negative) and the rates of
the states. The gap is the distance between the undeformed surfaces (m), negative if these surfaces
would overlap, and `rate` is its derivative (m/s). `SoftContact` adds friction. The laws use only
operations that floats, NumPy arrays and symbols support, so the same law works for a single
contact, a batch and a compiled step. At rest, all states are zero.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.model.given import settle
from chasles.motion.geometry.closed_forms import Value, less, less_equal, maximum, select, sqrt

Values = Sequence[Value] | np.ndarray
Response = tuple[Value, list[Any]]
"""Contact force, and rates of the state variables."""

CLOSE = 1e-4
"""Tolerance for the distance between a body and a soft surface in contact, as a fraction of the
compression. Without this tolerance, rounding errors (especially in float32) would end the contact,
and the force would jump."""


@runtime_checkable
class NormalLaw(Protocol):
    """Interface that a law for the normal force of a soft contact must implement."""

    @property
    def states(self) -> int:
        """Number of state variables."""

    def touches(self, state: Values, gap: Value) -> Value:
        """Return 1.0 if a contact force is possible, else 0.0.

        Parameters
        ----------
        state : sequence
            State variables of the law.
        gap : float or array_like
            Gap (m), negative for penetration.

        Returns
        -------
        touching : float or ndarray
            1.0 or 0.0; always 1.0 for a normal law whose force does not jump at first contact.

        Examples
        --------
        >>> from chasles import contact
        >>> float(contact.HuntCrossley(1e5, 0.1).touches([], -1e-3))
        1.0
        """

    def response(self, state: Values, gap: Value, rate: Value, touching: Value = None) -> Response:
        """Return the contact force and the rates of the states.

        Parameters
        ----------
        state : sequence
            State variables of the law.
        gap : float or array_like
            Gap (m), negative for penetration.
        rate : float or array_like
            Rate of the gap (m/s).
        touching : float or array_like, optional
            Result of `touches` at the beginning of the step. Default: the result at `gap`.

        Returns
        -------
        force : float or ndarray
            Force on each body, away from the other (N).
        rates : list
            Rates of the state variables.

        Examples
        --------
        >>> from chasles import contact
        >>> contact.HuntCrossley(1e5, 0.1, 1.0).response([], -1e-3, 0.0)
        (100.0, [])
        """

    def energy(self, state: Values, gap: Value) -> Value:
        """Return the energy of the springs.

        Parameters
        ----------
        state : sequence
            State variables of the law.
        gap : float or array_like
            Gap (m), negative for penetration.

        Returns
        -------
        energy : float or ndarray
            Energy (J).

        Examples
        --------
        >>> from chasles import contact
        >>> round(float(contact.HuntCrossley(1e5, 0.1, 1.0).energy([], -1e-3)), 6)
        0.05
        """

    def advanced(self, state: Values, force: Value, gap: Value, dt: float) -> list[Value]:
        """Return the state variables after a step.

        Parameters
        ----------
        state : sequence
            State variables at the beginning of the step.
        force : float or array_like
            Contact force during the step (N).
        gap : float or array_like
            Gap after the step (m).
        dt : float
            Step size (s).

        Returns
        -------
        state : list
            State variables after the step.

        Examples
        --------
        >>> from chasles import contact
        >>> contact.HuntCrossley(1e5, 0.1).advanced([], 0.0, 0.1, 1e-3)
        []
        """

    def settled(self, state: Values, force: Value, gap: Value) -> list[Value]:
        """Correct the integrated states so that surfaces stay in contact while a force acts.

        Parameters
        ----------
        state : sequence
            Integrated state variables.
        force : float or array_like
            Force (N).
        gap : float or array_like
            Gap (m).

        Returns
        -------
        state : list
            Corrected state variables.

        Examples
        --------
        >>> from chasles import contact
        >>> contact.SoftSurface(1e5, 1e3).settled([-1.1e-3], 100.0, -1e-3)
        [-0.001]
        """


class _InSeries(NormalLaw):
    """Soft surfaces in series, i.e. under the same force.

    The states are the positions of the surfaces (m).
    """

    @property
    def _surfaces(self) -> tuple["SoftSurface", ...]:
        raise NotImplementedError

    @property
    def _damping(self) -> float:
        return _series(*(s.damping for s in self._surfaces))

    def touches(self, state: Values, gap: Value) -> Value:
        return less_equal(gap, (1.0 - CLOSE) * sum(state))

    def response(self, state: Values, gap: Value, rate: Value, touching: Value = None) -> Response:
        # The displacements of the surfaces (states) add up to the gap, and so do their rates. An
        # error in the sum is distributed over the surfaces in proportion to 1/D.
        surfaces = list(zip(self._surfaces, state, strict=True))
        damping = self._damping
        off = sum(damping / s.damping * (s.stiffness / s.damping) for s, _ in surfaces)
        follow = sum(s.stiffness / s.damping * z for s, z in surfaces)
        push = -damping * (rate + follow + off * (gap - sum(state)))
        touching = self.touches(state, gap) if touching is None else touching
        force = select(touching, maximum(push, 0.0), 0.0)
        return force, [-(s.stiffness * z + force) / s.damping for s, z in surfaces]

    def energy(self, state: Values, gap: Value) -> Value:
        return sum(0.5 * s.stiffness * z * z for s, z in zip(self._surfaces, state, strict=True))

    def advanced(self, state: Values, force: Value, gap: Value, dt: float) -> list[Value]:
        # The step has a closed form (Featherstone 2008, 11.8): without a contact force, each
        # position decays as exp(-K t / D). With a force, the positions are then corrected so that
        # they add up to the gap.
        parts = zip(self._surfaces, state, strict=True)
        return self.settled([_decayed(s, z, force, dt) for s, z in parts], force, gap)

    def settled(self, state: Values, force: Value, gap: Value) -> list[Value]:
        damping, surfaces = self._damping, zip(self._surfaces, state, strict=True)
        off = select(less(0.0, force), gap - sum(state), 0.0)
        return [z + damping / s.damping * off for s, z in surfaces]


@dataclass(frozen=True)
class SoftSurface(_InSeries):
    """Massless surface on a spring and a damper in parallel (Featherstone 2008, section 11.8).

    The state is z, the position of the surface (m, negative if the surface is pressed in). A body
    at p (the gap) touches the surface if p = z. The force is then max(0, -K p - D pdot). If the
    force is zero, contact is lost, and the surface recovers with zdot = -(K z + force)/D (Eq 11.73,
    11.74).

    The force is computed from p, not from z, so errors in z decay with the time constant D/K of the
    surface.

    Attributes
    ----------
    stiffness : float
        Stiffness K (N/m).
    damping : float
        Damping coefficient D (N s/m).
    """

    stiffness: float
    damping: float
    states = 1

    def __post_init__(self) -> None:
        check_law(self)

    @property
    def _surfaces(self) -> tuple["SoftSurface", ...]:
        return (self,)


@dataclass(frozen=True)
class TwoSoftSurfaces(_InSeries):
    """Two soft bodies in contact, each with a spring, a damper and a state.

    The contact force is the same for both surfaces. The bodies touch if the gap is z1 + z2, and
    both positions z follow Eq 11.73 (Featherstone 2008). If K/D is the same for both surfaces,
    `lumped` returns one surface with the same forces.
    """

    first: SoftSurface
    second: SoftSurface
    states = 2

    def __post_init__(self) -> None:
        for surface in self._surfaces:
            if not isinstance(surface, SoftSurface):
                problem = f"pass two SoftSurface objects, not {surface!r:.60}"
                raise ArgumentError("E-CONTACT-085", problem, part="TwoSoftSurfaces")

    @property
    def _surfaces(self) -> tuple[SoftSurface, ...]:
        return self.first, self.second

    def lumped(self) -> SoftSurface:
        """Return an equivalent single surface, if K1/D1 = K2/D2.

        The stiffness of the result is K1 K2/(K1 + K2), and its damping is D1 D2/(D1 + D2).

        Returns
        -------
        surface : SoftSurface
            The equivalent surface.

        Raises
        ------
        InputError
            If the ratios of stiffness to damping differ.

        Examples
        --------
        >>> from chasles import contact
        >>> surface = contact.SoftSurface(1e5, 1e3)
        >>> contact.TwoSoftSurfaces(surface, surface).lumped()
        SoftSurface(stiffness=49999.99999999999, damping=500.0)
        """
        a, b = self.first, self.second
        if not math.isclose(a.stiffness * b.damping, b.stiffness * a.damping, rel_tol=1e-9):
            ratios = f"{a.stiffness / a.damping:g} and {b.stiffness / b.damping:g} 1/s"
            problem = f"the surfaces differ in their ratio of stiffness to damping, {ratios}"
            part = "TwoSoftSurfaces.lumped"
            raise InputError(
                "E-CONTACT-086", problem, "use the TwoSoftSurfaces object as the law", part=part
            )
        return SoftSurface(_series(a.stiffness, b.stiffness), _series(a.damping, b.damping))


@dataclass(frozen=True)
class _Stateless(NormalLaw):
    """Spring and damper without state variables; the force grows continuously from zero."""

    stiffness: float
    damping: float
    states = 0

    def __post_init__(self) -> None:
        check_law(self)

    def touches(self, state: Values, gap: Value) -> Value:
        return 1.0

    def advanced(self, state: Values, force: Value, gap: Value, dt: float) -> list[Value]:
        return []

    def settled(self, state: Values, force: Value, gap: Value) -> list[Value]:
        return []


@dataclass(frozen=True)
class HuntCrossley(_Stateless):
    """Spring and damper with forces that grow with depth: f = K d^n (1 + a ddot), d = -gap.

    The law has no state, and its force does not jump at first contact. Slow impacts at a speed v
    have a coefficient of restitution of about 1 - 2 a v / 3. Sources: Hunt and Crossley (1975);
    Marhefka and Orin (1999), where alpha is 2 a / 3.

    Attributes
    ----------
    stiffness : float
        Stiffness K (N/m^n).
    damping : float
        Damping coefficient a (s/m).
    exponent : float
        Exponent n, a multiple of 0.5 and at least 1; 3/2 is Hertz's law for spheres.
    """

    exponent: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if 2.0 * self.exponent != round(2.0 * self.exponent):
            problem = f"`exponent` must be a multiple of 0.5 and at least 1, not {self.exponent!r}"
            raise InputError("E-CONTACT-087", problem, part="HuntCrossley")

    def response(self, state: Values, gap: Value, rate: Value, touching: Value = None) -> Response:
        spring = self.stiffness * _power(maximum(-gap, 0.0), self.exponent)
        return maximum(spring * (1.0 - self.damping * rate), 0.0), []

    def energy(self, state: Values, gap: Value) -> Value:
        """Return the energy of the spring, K d^(n+1) / (n+1).

        Parameters
        ----------
        state : sequence
            State variables of the law.
        gap : float or array_like
            Gap (m), negative for penetration.

        Returns
        -------
        float or ndarray
            Energy (J).

        Examples
        --------
        >>> from chasles import contact
        >>> round(float(contact.HuntCrossley(1e5, 0.1, 1.0).energy([], -1e-3)), 6)
        0.05
        """
        n = self.exponent + 1.0
        return self.stiffness / n * _power(maximum(-gap, 0.0), n)


@dataclass(frozen=True)
class AzadFeatherstone(_Stateless):
    """Hertzian spring, and damping proportional to sqrt(d): f = K d^(3/2) + D d^(1/2) ddot.

    Here, d = -gap. The law differs from Hunt and Crossley's law in the power of d that multiplies
    ddot. As a result, 1 - e, where e is the coefficient of restitution, grows as the impact speed
    to the power 1/5, as measured on spheres and plates. Sources: Azad and Featherstone (2010,
    *Modeling the contact between a rolling sphere and a compliant ground plane*; 2014, *A new
    nonlinear model of contact normal force*, IEEE Trans. Robotics 30(3), 736-739); Kuwabara and
    Kono (1987).

    Attributes
    ----------
    stiffness : float
        Stiffness K (N/m^1.5).
    damping : float
        Damping coefficient D (N s/m^1.5).
    """

    def response(self, state: Values, gap: Value, rate: Value, touching: Value = None) -> Response:
        d = maximum(-gap, 0.0)
        return maximum(_power(d, 0.5) * (self.stiffness * d - self.damping * rate), 0.0), []

    def energy(self, state: Values, gap: Value) -> Value:
        """Return the energy of the spring, 2/5 K d^(5/2).

        Parameters
        ----------
        state : sequence
            State variables of the law.
        gap : float or array_like
            Gap (m), negative for penetration.

        Returns
        -------
        float or ndarray
            Energy (J).

        Examples
        --------
        >>> from chasles import contact
        >>> round(float(contact.AzadFeatherstone(1e5, 10.0).energy([], -1e-2)), 6)
        0.4
        """
        return 0.4 * self.stiffness * _power(maximum(-gap, 0.0), 2.5)


@dataclass(frozen=True)
class SoftFriction:
    """Coulomb friction on a laterally compliant surface (Featherstone 2008, 11.8).

    The state is x, the displacement of the surface (m), with one entry for each tangent. A surface
    that follows the body exerts the force f = -K_t x - D_t v. If f exceeds mu times the normal
    force, f is scaled down to that bound; with two tangents, the bound is a circle, a section of
    the friction cone. The body then slips, and xdot = -(K_t x + f)/D_t differs from v (Eq 11.77 to
    11.79).

    Attributes
    ----------
    coefficient : float
        Friction coefficient mu.
    stiffness : float
        Tangential stiffness K_t (N/m).
    damping : float
        Tangential damping D_t (N s/m).
    """

    coefficient: float
    stiffness: float
    damping: float

    def __post_init__(self) -> None:
        check_law(self)

    def response(
        self, state: Values, normal_force: Value, slip: Values
    ) -> tuple[list[Any], list[Any]]:
        """Return the friction forces and the rates of the states.

        Parameters
        ----------
        state : sequence
            Displacements x of the surface along each tangent (m).
        normal_force : float or array_like
            Normal force (N).
        slip : sequence
            Slip velocities along each tangent (m/s).

        Returns
        -------
        forces : list
            Forces along the tangents (N), at most mu times the normal force.
        rates : list
            Rates of x (m/s).

        Notes
        -----
        Source: Featherstone (2008), Eq 11.75 to 11.79.

        Examples
        --------
        >>> from chasles import contact
        >>> contact.SoftFriction(0.5, 1e5, 1e3).response([1e-5], 10.0, [0.0])
        ([-1.0], [-0.0])
        """
        K, D = self.stiffness, self.damping
        held = [-K * x - D * v for x, v in zip(state, slip, strict=True)]
        square, bound = sum(f * f for f in held), self.coefficient * normal_force
        slips = less(bound * bound, square)
        part = select(slips, bound / sqrt(select(slips, square, 1.0)), 1.0)
        forces = [part * f for f in held]
        return forces, [-(K * x + f) / D for x, f in zip(state, forces, strict=True)]

    def energy(self, state: Values) -> Value:
        """Return the energy of the springs, K_t x^2 / 2.

        Parameters
        ----------
        state : sequence
            Displacements x of the surface along each tangent (m).

        Returns
        -------
        energy : float or ndarray
            Energy (J).

        Examples
        --------
        >>> from chasles import contact
        >>> round(contact.SoftFriction(0.5, 1e5, 1e3).energy([1e-3]), 6)
        0.05
        """
        return 0.5 * self.stiffness * sum(x * x for x in state)

    def advanced(self, state: Values, forces: Values, dt: float) -> list[Value]:
        """Return the surface displacements x after a step with constant force.

        This is the exact solution of Eq 11.77 in Featherstone (2008).

        Parameters
        ----------
        state : sequence
            Displacements x at the beginning of the step (m).
        forces : sequence
            Forces along the tangents (N).
        dt : float
            Step size (s).

        Returns
        -------
        state : list
            Displacements after the step (m).

        Examples
        --------
        >>> from chasles import contact
        >>> [round(x, 6) for x in contact.SoftFriction(0.5, 1e5, 1e3).advanced([1e-3], [0.0], 0.01)]
        [0.000368]
        """
        surface = SoftSurface(self.stiffness, self.damping)
        return [_decayed(surface, x, f, dt) for x, f in zip(state, forces, strict=True)]


@dataclass(frozen=True)
class SoftContact:
    """Contact law of one contact point: a law for the normal force, with or without friction.

    The state variables of the normal law are followed by one friction state for each tangent.
    Forces are in the order of the contact axes: tangents, then normal.

    Attributes
    ----------
    normal : NormalLaw
        Law for the normal force.
    friction : SoftFriction, optional
        Law for the friction force. Default: no friction.
    tangents : int
        Number of tangents: 2 in space, 1 in the plane.
    """

    normal: NormalLaw
    friction: SoftFriction | None = None
    tangents: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.normal, NormalLaw):
            what = "`normal` must be a law such as SoftSurface(...) or HuntCrossley(...)"
            problem = f"{what}, not {self.normal!r:.60}"
            raise ArgumentError("E-CONTACT-080", problem, part="SoftContact")
        if not isinstance(self.friction, SoftFriction | None):
            what = "`friction` must be SoftFriction(coefficient, stiffness, damping)"
            problem = f"{what}, not {self.friction!r:.60}"
            raise ArgumentError("E-CONTACT-081", problem, part="SoftContact")
        if self.tangents not in (1, 2):
            problem = f"`tangents` must be 1 or 2, not {self.tangents!r}"
            raise InputError("E-CONTACT-082", problem, part="SoftContact")

    @property
    def states(self) -> int:
        """Number of state variables."""
        return self.normal.states + (self.tangents if self.friction is not None else 0)

    def touches(self, state: Values, gap: Value) -> Value:
        """Return 1.0 if a contact force is possible, else 0.0.

        Parameters
        ----------
        state : sequence
            State variables.
        gap : float or array_like
            Gap (m), negative for penetration.

        Returns
        -------
        touching : float or ndarray
            1.0 or 0.0; always 1.0 for a normal law whose force does not jump at first contact.

        Raises
        ------
        InputError
            If `state` does not have `self.states` entries.

        Examples
        --------
        >>> from chasles import contact
        >>> float(contact.SoftContact(contact.HuntCrossley(1e5, 0.1)).touches([], -1e-3))
        1.0
        """
        return self.normal.touches(self._parts(state)[0], gap)

    def response(
        self, state: Values, gap: Value, rate: Value, slip: Values, touching: Value = None
    ) -> tuple[list[Any], list[Any]]:
        """Return the contact forces and the rates of the states.

        Parameters
        ----------
        state : sequence
            State variables, with `states` entries.
        gap : float or array_like
            Gap (m), negative for penetration.
        rate : float or array_like
            Rate of the gap (m/s).
        slip : sequence
            Tangential velocities (m/s) of the body's contact point relative to the other body.
        touching : float or array_like, optional
            Result of `touches` at the beginning of the step. Default: the result at `gap`.

        Returns
        -------
        forces : list
            Forces on the body (N): tangents, then normal.
        rates : list
            Rates of the state variables.

        Raises
        ------
        InputError
            If `state` or `slip` has the wrong number of entries.

        Examples
        --------
        >>> from chasles import contact
        >>> law = contact.SoftContact(contact.HuntCrossley(1e5, 0.1, 1.0))
        >>> law.response([], -1e-3, 0.0, [0.0, 0.0])[0]
        [0.0, 0.0, 100.0]
        """
        normal, sideways = self._parts(state)
        if len(slip) != self.tangents:
            problem = f"`slip` must have {self.tangents} entries, not {len(slip)}"
            raise InputError("E-CONTACT-083", problem, part="SoftContact")
        force, rates = self.normal.response(normal, gap, rate, touching)
        if self.friction is None:
            return [*(0.0 * force for _ in slip), force], rates
        forces, slipped = self.friction.response(sideways, force, slip)
        return [*forces, force], [*rates, *slipped]

    def energy(self, state: Values, gap: Value) -> Value:
        """Return the energy of all springs.

        Parameters
        ----------
        state : sequence
            State variables.
        gap : float or array_like
            Gap (m), negative for penetration.

        Returns
        -------
        energy : float or ndarray
            Energy (J).

        Raises
        ------
        InputError
            If `state` does not have `self.states` entries.

        Examples
        --------
        >>> from chasles import contact
        >>> law = contact.SoftContact(contact.HuntCrossley(1e5, 0.1, 1.0))
        >>> round(float(law.energy([], -1e-3)), 6)
        0.05
        """
        normal, sideways = self._parts(state)
        held = 0.0 if self.friction is None else self.friction.energy(sideways)
        return self.normal.energy(normal, gap) + held

    def advanced(self, state: Values, forces: Values, gap: Value, dt: float) -> list[Value]:
        """Return the states after a step.

        Parameters
        ----------
        state : sequence
            State variables at the beginning of the step.
        forces : sequence
            Forces during the step (N): tangents, then normal.
        gap : float or array_like
            Gap after the step (m).
        dt : float
            Step size (s).

        Returns
        -------
        state : list
            State variables after the step.

        Raises
        ------
        InputError
            If `state` does not have `self.states` entries.

        Examples
        --------
        >>> from chasles import contact
        >>> law = contact.SoftContact(contact.HuntCrossley(1e5, 0.1))
        >>> law.advanced([], [0.0, 0.0, 0.0], 0.1, 1e-3)
        []
        """
        normal, sideways = self._parts(state)
        after = self.normal.advanced(normal, forces[-1], gap, dt)
        if self.friction is None:
            return after
        return [*after, *self.friction.advanced(sideways, forces[:-1], dt)]

    def settled(self, state: Values, forces: Values, gap: Value) -> list[Value]:
        """Correct the integrated states so that surfaces stay in contact while a force acts.

        Parameters
        ----------
        state : sequence
            Integrated state variables.
        forces : sequence
            Forces (N): tangents, then normal.
        gap : float or array_like
            Gap (m).

        Returns
        -------
        state : list
            Corrected state variables.

        Raises
        ------
        InputError
            If `state` does not have `self.states` entries.

        Examples
        --------
        >>> from chasles import contact
        >>> law = contact.SoftContact(contact.SoftSurface(1e5, 1e3))
        >>> law.settled([-1.1e-3], [0.0, 0.0, 100.0], -1e-3)
        [-0.001]
        """
        normal, sideways = self._parts(state)
        return [*self.normal.settled(normal, forces[-1], gap), *sideways]

    def _parts(self, state: Values) -> tuple[Values, Values]:
        if len(state) != self.states:
            problem = f"`state` must have {self.states} entries, not {len(state)}"
            raise InputError("E-CONTACT-084", problem, part="SoftContact")
        return state[: self.normal.states], state[self.normal.states :]


def _decayed(surface: SoftSurface, z: Value, force: Value, dt: float) -> Value:
    """Return the surface position after a time under a constant force.

    This is the exact solution of Eq 11.73 in Featherstone (2008).
    """
    rest = -force / surface.stiffness
    return rest + (z - rest) * math.exp(-surface.stiffness / surface.damping * dt)


def _series(*values: float) -> float:
    """Return the total stiffness (or damping) of springs (or dampers) connected in series."""
    return 1.0 / sum(1.0 / value for value in values)


def _power(d: Value, exponent: float) -> Value:
    """Return d^exponent for d >= 0 and an exponent that is a multiple of 0.5.

    The computed derivative at d = 0 is finite.
    """
    halves = round(2.0 * exponent)
    result: Value = 1.0
    for _ in range(halves // 2):
        result = result * d
    if halves % 2:
        deep = less(0.0, d)
        result = result * select(deep, sqrt(select(deep, d, 1.0)), 0.0)
    return result


def check_law(law: Any) -> None:
    """Raise an error if a law's parameter is out of range."""
    if fault := settle(law):
        raise InputError("E-CONTACT-088", fault, part=type(law).__name__)
