"""The convex problem of a step in its velocities: gradient, Hessian, Newton's step, line search."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.expr import Number
from chasles.motion.contact.pairs import Compliant, Rigid
from chasles.motion.geometry.closed_forms import (
    cross,
    less,
    less_equal,
    maximum,
    select,
    sqrt,
)
from chasles.motion.steps.algebra import columns, dot, grouped, skew, solved, total, zeros
from chasles.motion.steps.impulses import NORMAL, SLOW, TANGENT, Friction, Normal

PIVOT = 1e-9
"""The least pivot of the Hessian, as a part of the diagonal of M."""


TURNS = ("newton", "kink", "newton", "kink", "newton", "newton")
"""Points of the line search: Newton's from the last point, the slowest point of the friction that
bends most between the ends of the bracket, or the middle."""

ENOUGH = 0.1
"""A whole step is taken where the slope there is at most this part of that at its start."""


class Touch(NamedTuple):
    """A slot in numbers of the step: point, axes, bound and gap; which relative motion it has."""

    carrier: int
    point: np.ndarray
    axes: np.ndarray
    bound: Number
    stiffness: float
    law: Rigid | Compliant
    weight: float


class Stop(NamedTuple):
    """A joint at a limit: velocity number, sign, bound, inverse mass."""

    place: int
    sign: float
    bound: Number
    weight: float


class Problem(NamedTuple):
    """The numbers of one step, in the program that has them."""

    H: np.ndarray
    p: np.ndarray
    inverse: np.ndarray
    scale: Number
    weight: Number
    carriers: list[np.ndarray]
    touches: list[Touch]
    stops: list[Stop]
    dry: list[tuple[int, float, float]]
    order: tuple[int, ...]


class Refined(NamedTuple):
    """Velocities after a step of Newton's method; residuals there, and new normal impulses.

    residual: with friction by the impulses that were held. rest: how much it changes by the new
    ones, as a part of the impulse of smooth forces.
    """

    v: np.ndarray
    residual: Number
    rest: Number
    held: list[Number]


class Newton:
    """The convex problem of a step: impulses, gradient and Hessian on expressions."""

    def __init__(self, problem: Problem, dt: float) -> None:
        self.p, self.dt = problem, dt

    def _twists(self, v: np.ndarray) -> list[np.ndarray]:
        """Relative twists of all carriers, summed along the tree so that sums are shared."""
        found = []
        for J in self.p.carriers:
            twist: np.ndarray = zeros(6)
            for k in self.p.order:
                twist = twist + J[:, k] * v[k]
            found.append(twist)
        return found

    def velocities(self, v: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Linear and angular velocity of each slot along its axes."""
        twists, found = self._twists(v), []
        for touch in self.p.touches:
            w, u = twists[touch.carrier][:3], twists[touch.carrier][3:]
            moments = touch.law.torsion or touch.law.rolling
            turned = touch.axes @ w if moments else np.zeros(3)
            found.append((touch.axes @ (u + cross(w, touch.point)), turned))
        return found

    def _normal(self, touch: Touch) -> Normal:
        return Normal(touch.bound, touch.stiffness)

    def held(self, at: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[Number]:
        """Normal impulses, which bound friction while a convex problem is solved."""
        return [
            self._normal(touch).impulse(u[2])
            for touch, (u, _) in zip(self.p.touches, at, strict=True)
        ]

    def _impulse(
        self, touch: Touch, held: Number, u: np.ndarray, w: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Impulse and moment of a slot along its axes."""
        law, stiff = touch.law, 1.0 / (TANGENT * touch.weight)
        linear = np.array([0.0, 0.0, self._normal(touch).impulse(u[2])], dtype=object)
        turning = zeros(3)
        if law.friction:
            linear[:2] = Friction(law.friction * held, stiff).impulse(u[:2])
        if law.torsion:
            turning[2:] = Friction(law.torsion * held, stiff * law.torsion**2).impulse(w[2:])
        if law.rolling:
            turning[:2] = Friction(law.rolling * held, stiff * law.rolling**2).impulse(w[:2])
        return linear, turning

    def _impulses(
        self, at: Sequence[tuple[np.ndarray, np.ndarray]], held: Any
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        return [
            self._impulse(touch, f, u, w)
            for touch, f, (u, w) in zip(self.p.touches, held, at, strict=True)
        ]

    def forces(self, v: np.ndarray, held: Any) -> np.ndarray:
        """Impulses on the bodies along the world's axes (k, 3)."""
        found = self._impulses(self.velocities(v), held)
        each = [linear @ t.axes for (linear, _), t in zip(found, self.p.touches, strict=True)]
        return np.array(each, dtype=object).reshape(-1, 3)

    def _gradient(
        self, v: np.ndarray, impulses: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> np.ndarray:
        p = self.p
        g = np.array([dot(row, v) for row in p.H], dtype=object) - p.p
        wrenches: list[np.ndarray] = [zeros(6) for _ in p.carriers]
        for (linear, turning), touch in zip(impulses, p.touches, strict=True):
            f = linear @ touch.axes
            moment = cross(touch.point, f)
            if touch.law.torsion or touch.law.rolling:
                moment = moment + turning @ touch.axes
            wrenches[touch.carrier] = wrenches[touch.carrier] + np.concatenate([moment, f])
        for k in range(len(v)):
            for J, wrench in grouped(columns(p.carriers, k), wrenches):
                g[k] = g[k] - dot(J, wrench)
        for stop in p.stops:
            term = Normal(stop.bound, 1.0 / (NORMAL * stop.weight))
            g[stop.place] = g[stop.place] - stop.sign * term.impulse(stop.sign * v[stop.place])
        for k, limit, stiff in p.dry:
            g[k] = g[k] - Friction(limit, stiff).impulse(v[k : k + 1])[0]
        return g

    def _hessian(
        self,
        v: np.ndarray,
        at: Sequence[tuple[np.ndarray, np.ndarray]],
        held: Any,
        exact: Number,
    ) -> np.ndarray:
        p = self.p
        n, H = len(v), p.H.copy()
        spatial = [zeros(6, 6) for _ in p.carriers]
        for touch, f, (u, w) in zip(p.touches, held, at, strict=True):
            spatial[touch.carrier] = spatial[touch.carrier] + self._stiffness(touch, f, u, w, exact)
        signed = [columns(p.carriers, k) for k in range(n)]
        sums: dict[Any, np.ndarray] = {}
        for i in range(n):
            for j in range(i + 1):
                shared = [
                    (c, a[1] * b[1], a[0], b[0])
                    for c, (a, b) in enumerate(zip(signed[i], signed[j], strict=True))
                    if a is not None and b is not None
                ]
                while shared:
                    _, _, a, b = shared[0]
                    same = [x for x in shared if x[2] is a and x[3] is b]
                    shared = [x for x in shared if not (x[2] is a and x[3] is b)]
                    key = tuple((c, s) for c, s, _, _ in same)
                    if key not in sums:
                        sums[key] = total([s * spatial[c] for c, s in key])
                    column = ("F", key, id(b))
                    if column not in sums:
                        sums[column] = np.array([dot(row, b) for row in sums[key]], dtype=object)
                    H[i, j] = H[i, j] + dot(a, sums[column])
        for stop in p.stops:
            term = Normal(stop.bound, 1.0 / (NORMAL * stop.weight))
            k = stop.place
            H[k, k] = H[k, k] + term.slope(stop.sign * v[k])
        for k, limit, stiff in p.dry:
            slope, inverse = Friction(limit, stiff).slope(v[k : k + 1])
            H[k, k] = H[k, k] + slope * (1.0 - exact * inverse * v[k] * v[k])
        return H

    def _stiffness(
        self, touch: Touch, held: Number, u: np.ndarray, w: np.ndarray, exact: Number
    ) -> np.ndarray:
        """The spatial stiffness (6, 6) of a slot about the origin, angular part first."""
        law, stiff, E = touch.law, 1.0 / (TANGENT * touch.weight), touch.axes
        n = E[2]
        normal = self._normal(touch).slope(u[2])
        G = normal * np.outer(n, n)
        if law.friction:
            k, c = Friction(law.friction * held, stiff).slope(u[:2])
            t = u[:2] @ E[:2]
            G = G + k * (np.eye(3) - np.outer(n, n) - exact * c * np.outer(t, t))
        P = skew(touch.point)
        A = P @ G
        B = A @ P.T
        if law.torsion:
            k, c = Friction(law.torsion * held, stiff * law.torsion**2).slope(w[2:])
            B = B + k * (1.0 - exact * c * w[2] * w[2]) * np.outer(n, n)
        if law.rolling:
            k, c = Friction(law.rolling * held, stiff * law.rolling**2).slope(w[:2])
            t = w[:2] @ E[:2]
            B = B + k * (np.eye(3) - np.outer(n, n) - exact * c * np.outer(t, t))
        return np.block([[B, A], [A.T, G]])

    def step(self, v: np.ndarray, held: Any, careful: Number) -> Refined:
        """A step of Newton's method with normal impulses held, and the residuals after it.

        careful: 1 takes friction to grow with the speed along the slip too, a bound from above of
        the potential. Such steps find what sticks, others what slides; they are taken in turn.
        """
        at = self.velocities(v)
        g = self._gradient(v, self._impulses(at, held))
        floor = PIVOT / self.p.inverse
        d = -solved(self._hessian(v, at, held, 1.0 - careful), g, self.p.order, floor)
        new = v + self._line(v, d, at, held, g) * d
        there = self.velocities(new)
        later, now = self.held(there), self._impulses(there, held)
        rest = self._gradient(new, now)
        residual = sqrt(np.sum(rest * rest * self.p.inverse) / self.p.scale)
        changed: Number = 0.0
        for touch, f, at_end, old in zip(self.p.touches, later, there, now, strict=True):
            new_one = self._impulse(touch, f, *at_end)
            change = new_one[0][:2] - old[0][:2]
            changed = changed + touch.weight * dot(change, change)
        return Refined(new, residual, sqrt(changed / self.p.weight), later)

    def _line(
        self,
        v: np.ndarray,
        d: np.ndarray,
        at: Sequence[tuple[np.ndarray, np.ndarray]],
        held: Any,
        g: np.ndarray,
    ) -> Number:
        """The part of a direction at which the potential is least, between 0 and 1."""
        p, first = self.p, dot(g, d)
        Hd = np.array([dot(row, d) for row in p.H], dtype=object)
        parts: list[Any] = [_Straight(dot(Hd, v) - dot(p.p, d), dot(Hd, d))]
        for touch, f, u, du in zip(p.touches, held, at, self.velocities(d), strict=True):
            parts += self._along(touch, f, u, du)
        for stop in p.stops:
            term, k = Normal(stop.bound, 1.0 / (NORMAL * stop.weight)), stop.place
            parts.append(_Push(term, stop.sign * v[k], stop.sign * d[k]))
        for k, limit, stiff in p.dry:
            parts.append(_Rub.of(Friction(limit, stiff), v[k : k + 1], d[k : k + 1]))

        def slope(alpha: Number) -> np.ndarray:
            return total([np.array(part(alpha), dtype=object) for part in parts])

        low: Any = (0.0, first, 0.0)
        high: Any = (1.0, *slope(1.0))
        whole, now = less_equal(high[1], -ENOUGH * first), high
        for turn in TURNS:
            alpha: Number = 0.5 * (low[0] + high[0])
            if turn == "kink":
                alpha = _sharpest(parts, low[0], high[0], alpha)
            elif turn == "newton":
                guess = now[0] - now[1] / maximum(now[2], 1e-300)
                inside = less(low[0], guess) * less(guess, high[0])
                alpha = select(inside, guess, alpha)
            now = (alpha, *slope(alpha))
            left = less(now[1], 0.0)
            low, high = (
                tuple(select(left, new, old) for new, old in zip(now, low, strict=True)),
                tuple(select(left, old, new) for new, old in zip(now, high, strict=True)),
            )
        least, above, most = low[0], high[1], high[0]
        # Beyond a kink, so that the next Hessian knows of it, unless that is too far.
        last = select(less_equal(above, -first) + less_equal(least, 0.0), most, least)
        return select(whole, 1.0, last)

    def _along(self, touch: Touch, held: Number, at: Any, along: Any) -> list[Any]:
        """The parts of the potential's slope that a slot has."""
        law, stiff, (u, w), (du, dw) = touch.law, 1.0 / (TANGENT * touch.weight), at, along
        found: list[Any] = [_Push(self._normal(touch), u[2], du[2])]
        if law.friction:
            found.append(_Rub.of(Friction(law.friction * held, stiff), u[:2], du[:2]))
        if law.torsion:
            spin = Friction(law.torsion * held, stiff * law.torsion**2)
            found.append(_Rub.of(spin, w[2:], dw[2:]))
        if law.rolling:
            roll = Friction(law.rolling * held, stiff * law.rolling**2)
            found.append(_Rub.of(roll, w[:2], dw[:2]))
        return found


class _Straight(NamedTuple):
    """The slope of a quadratic potential along a line."""

    first: Number
    rate: Number

    def __call__(self, alpha: Number) -> tuple[Number, Number]:
        return self.first + alpha * self.rate, self.rate


class _Push(NamedTuple):
    """The slope of a normal impulse's potential along a line on which v goes with dv."""

    law: Normal
    v: Number
    dv: Number

    def __call__(self, alpha: Number) -> tuple[Number, Number]:
        v = self.v + alpha * self.dv
        return -self.law.impulse(v) * self.dv, self.law.slope(v) * self.dv * self.dv


class _Rub(NamedTuple):
    """The slope of friction's potential along a line on which v^2 is a + 2 b x + c x^2."""

    law: Friction
    a: Number
    b: Number
    c: Number

    @staticmethod
    def of(law: Friction, v: np.ndarray, dv: np.ndarray) -> "_Rub":
        return _Rub(law, dot(v, v), dot(v, dv), dot(dv, dv))

    def __call__(self, alpha: Number) -> tuple[Number, Number]:
        rate = self.b + alpha * self.c
        k, inverse = self.law.factor(maximum(self.a + alpha * (self.b + rate), 0.0))
        return k * rate, k * (self.c - rate * rate * inverse)


def _sharpest(parts: Sequence[Any], low: Number, high: Number, middle: Number) -> Number:
    """Return the reversal of friction with the largest jump inside a bracket; else its middle."""
    best: Number = 0.0
    place = middle
    for part in parts:
        if isinstance(part, _Rub):
            at, jump = -part.b / maximum(part.c, SLOW), part.law.limit * part.law.limit * part.c
            better = less(low, at) * less(at, high) * less(best, jump)
            best, place = select(better, jump, best), select(better, at, place)
    return place
