"""The problem of a step on expressions: impulses, residual, Newton step, line search.

Friction is bounded by the normal impulse at the same velocities, so the derivative of the impulses
is not symmetric: friction grows with the approach of the bodies. Newton's method with that
derivative converges quadratically to velocities that satisfy Coulomb's law at the end of the step.
With a fixed bound, as in problems that have a potential, half of the steps of a fallen robot have
not converged after three rounds. If Newton's method does not converge either, the bound is fixed
after some iterations (`fixed`): that problem is convex, and its impulses add no energy.
"""

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
from chasles.motion.steps.algebra import columns, dot, grouped, skew, solved_square, total, zeros
from chasles.motion.steps.impulses import SLOW, TANGENT, Friction, Normal
from chasles.motion.steps.lines import Dry, Stop, speed_along, stiffen

PIVOT = 1e-9
"""Smallest pivot of the derivative, relative to the diagonal of M."""

TURNS = ("newton", "middle") * 4
"""Trial points of the line search: a Newton step from the upper end of the bracket, or its middle.
"""

ENOUGH = 0.1
"""A full step is accepted if the slope at its end is at most this fraction of the initial slope."""


class Touch(NamedTuple):
    """Contact slot in a step: relative motion (carrier), point, axes, bound, stiffness and law."""

    carrier: int
    point: np.ndarray
    axes: np.ndarray
    bound: Number
    stiffness: float
    law: Rigid | Compliant
    weight: float


class Problem(NamedTuple):
    """Data of one step, in the program that holds them."""

    H: np.ndarray
    p: np.ndarray
    inverse: np.ndarray
    scale: Number
    weight: Number
    carriers: list[np.ndarray]
    touches: list[Touch]
    stops: list[Stop]
    dry: list[Dry]
    order: tuple[int, ...]


class Refined(NamedTuple):
    """Velocities after a Newton step, the gradient there, and its relative size."""

    v: np.ndarray
    gradient: np.ndarray
    residual: Number


class Newton:
    """Momentum balance at the end of a step, and Newton steps towards its solution."""

    def __init__(
        self, problem: Problem, dt: float, held: Sequence[Number] = (), fixed: Number = 0.0
    ) -> None:
        self.p, self.dt, self.fixed = problem, dt, fixed
        self.held = dict(zip(map(id, problem.touches), held, strict=False))

    def _twists(self, v: np.ndarray) -> list[np.ndarray]:
        """Return relative twists of all carriers, summed along the tree to share partial sums."""
        found = []
        for J in self.p.carriers:
            twist: np.ndarray = zeros(6)
            for k in self.p.order:
                twist = twist + J[:, k] * v[k]
            found.append(twist)
        return found

    def velocities(self, v: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the linear and angular velocity of each slot along its axes."""
        twists, found = self._twists(v), []
        for touch in self.p.touches:
            w, u = twists[touch.carrier][:3], twists[touch.carrier][3:]
            moments = touch.law.torsion or touch.law.rolling
            turned = touch.axes @ w if moments else np.zeros(3)
            found.append((touch.axes @ (u + cross(w, touch.point)), turned))
        return found

    def _normal(self, touch: Touch) -> Normal:
        return Normal(touch.bound, touch.stiffness)

    def pushes(self, v: np.ndarray) -> list[Number]:
        """Return the normal impulses of all slots."""
        at = zip(self.p.touches, self.velocities(v), strict=True)
        return [self._normal(touch).impulse(u[2]) for touch, (u, _) in at]

    def _limiting(self, touch: Touch, push: Number) -> Number:
        """Return the normal impulse that bounds friction."""
        return select(self.fixed, self.held[id(touch)], push) if self.held else push

    def _impulse(self, touch: Touch, u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the impulse and moment of a slot along its axes."""
        push = self._normal(touch).impulse(u[2])
        linear, turning = zeros(3), zeros(3)
        linear[2] = push
        limiting = self._limiting(touch, push)
        for part, which, velocity, friction, _ in _frictions(touch, limiting, u, w):
            (linear if part == "force" else turning)[which] = friction.impulse(velocity)
        return linear, turning

    def _impulses(
        self, at: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        return [
            self._impulse(touch, u, w) for touch, (u, w) in zip(self.p.touches, at, strict=True)
        ]

    def forces(self, v: np.ndarray) -> np.ndarray:
        """Return the impulses on the bodies along the world axes (k, 3)."""
        found = self._impulses(self.velocities(v))
        each = [linear @ t.axes for (linear, _), t in zip(found, self.p.touches, strict=True)]
        return np.array(each, dtype=object).reshape(-1, 3)

    def work(self, v: np.ndarray) -> tuple[Number, Number]:
        """Return the work of impulses, and the most energy that overlaps and restitution release.

        The work is evaluated at end-of-step velocities: the kinetic energy grows at most by the
        work of smooth forces and this work (Anitescu and Potra 1997). It is computed from the
        momentum balance, so that it includes the error of the solution.
        """
        momentum = np.array([dot(row, v) for row in self.p.H], dtype=object) - self.p.p
        released: Number = 0.0
        for touch, (u, _) in zip(self.p.touches, self.velocities(v), strict=True):
            out = maximum(touch.bound, 0.0)
            released = released + self._normal(touch).impulse(u[2]) * out
        for stop in self.p.stops:
            push = stop.term.impulse(speed_along(stop.row, v))
            released = released + push * maximum(stop.bound, 0.0)
        return dot(momentum, v), released

    def gradient(self, v: np.ndarray) -> np.ndarray:
        """Return the momentum at the end of the step less that of smooth forces and impulses."""
        impulses = self._impulses(self.velocities(v))
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
            push = stop.term.impulse(speed_along(stop.row, v))
            for k, a in stop.row:
                g[k] = g[k] - a * push
        for dry in p.dry:
            rub = dry.term.impulse([speed_along(dry.row, v)])[0]
            for k, a in dry.row:
                g[k] = g[k] - a * rub
        return g

    def _derivative(self, v: np.ndarray, at: Any, exact: Number) -> np.ndarray:
        """Return the derivative of the gradient (nv, nv)."""
        p = self.p
        n, H = len(v), p.H.copy()
        spatial = [zeros(6, 6) for _ in p.carriers]
        for touch, (u, w) in zip(p.touches, at, strict=True):
            spatial[touch.carrier] = spatial[touch.carrier] + self._stiffness(touch, u, w, exact)
        signed = [columns(p.carriers, k) for k in range(n)]
        sums: dict[Any, np.ndarray] = {}
        for i in range(n):
            for j in range(n):
                H[i, j] = H[i, j] + _between(signed[i], signed[j], spatial, sums)
        for stop in p.stops:
            stiffen(H, stop.row, stop.term.slope(speed_along(stop.row, v)))
        for dry in p.dry:
            u = speed_along(dry.row, v)
            slope, inverse = dry.term.slope([u])
            stiffen(H, dry.row, slope * (1.0 - exact * inverse * u * u))
        return H

    def _stiffness(self, touch: Touch, u: np.ndarray, w: np.ndarray, exact: Number) -> np.ndarray:
        """Return the spatial stiffness (6, 6) of a slot about the origin, angular part first."""
        E, P = touch.axes, skew(touch.point)
        n, normal = E[2], self._normal(touch)
        push, slope = normal.impulse(u[2]), normal.slope(u[2])
        G: np.ndarray = slope * np.outer(n, n)
        B: np.ndarray = zeros(3, 3)
        force, moment = zeros(3), zeros(3)  # friction per unit of normal impulse
        limiting = self._limiting(touch, push)
        for part, which, velocity, friction, coefficient in _frictions(touch, limiting, u, w):
            k, c = friction.slope(velocity)
            t = velocity @ E[which]
            along = E[which].T @ E[which] if which != slice(0, 2) else np.eye(3) - np.outer(n, n)
            K = k * (along - exact * c * np.outer(t, t))
            grows = coefficient * dot(velocity, velocity) * c * sqrt(c) * t
            if part == "force":
                G, force = G + K, force + grows
            else:
                B, moment = B + K, moment + grows
        A = P @ G
        whole = np.block([[A @ P.T + B, A], [A.T, G]])
        if touch.law.friction or touch.law.torsion or touch.law.rolling:
            rows = np.concatenate([cross(touch.point, force) + moment, force])
            slope = slope * (1.0 - self.fixed)
            whole = whole - np.outer(rows, slope * np.concatenate([cross(touch.point, n), n]))
        return whole

    def step(self, v: np.ndarray, g: np.ndarray, careful: Number) -> Refined:
        """Take a Newton step from velocities with gradient g.

        careful: 1 lets friction also grow with the speed along the slip, which breaks cycles.
        """
        at = self.velocities(v)
        floor = PIVOT / self.p.inverse
        d = -solved_square(self._derivative(v, at, 1.0 - careful), g, self.p.order, floor)
        new = v + self._line(v, d, at, g) * d
        rest = self.gradient(new)
        residual = sqrt(np.sum(rest * rest * self.p.inverse) / self.p.scale)
        return Refined(new, rest, residual)

    def _line(self, v: np.ndarray, d: np.ndarray, at: Any, g: np.ndarray) -> Number:
        """Return the fraction of a direction, 0 to 1, at which the gradient along it vanishes."""
        p, first = self.p, dot(g, d)
        Hd = np.array([dot(row, d) for row in p.H], dtype=object)
        parts: list[Any] = [_Straight(dot(Hd, v) - dot(p.p, d), dot(Hd, d))]
        for touch, here, along in zip(p.touches, at, self.velocities(d), strict=True):
            parts.append(self._along(touch, here, along))
        for stop in p.stops:
            speed, change = speed_along(stop.row, v), speed_along(stop.row, d)
            parts.append(_Touching(stop.term, speed, change, [], 0.0, 0.0))
        for dry in p.dry:
            square = _Square.of(*(np.array([speed_along(dry.row, x)]) for x in (v, d)))
            parts.append(_Dry(dry.term, square))

        def slope(alpha: Number) -> np.ndarray:
            return total([np.array(part(alpha), dtype=object) for part in parts])

        low: Any = (0.0, first, 0.0)
        high: Any = (1.0, *slope(1.0))
        whole = maximum(less_equal(high[1], -ENOUGH * first), less_equal(0.0, first))
        for turn in TURNS:
            alpha: Number = 0.5 * (low[0] + high[0])
            if turn == "newton":
                guess = high[0] - high[1] / maximum(high[2], SLOW)
                alpha = select(less(low[0], guess) * less(guess, high[0]), guess, alpha)
            now = (alpha, *slope(alpha))
            left = less(now[1], 0.0)
            low, high = (
                tuple(select(left, new, old) for new, old in zip(now, low, strict=True)),
                tuple(select(left, old, new) for new, old in zip(now, high, strict=True)),
            )
        # Stop beyond a kink, so that the next derivative includes it, unless that is too far.
        beyond = less_equal(high[1], -first) + less_equal(low[0], 0.0)
        return select(whole, 1.0, select(beyond, high[0], low[0]))

    def _along(self, touch: Touch, at: Any, along: Any) -> "_Touching":
        """Return the contribution of a slot to the gradient along a direction."""
        (u, w), (du, dw) = at, along
        law, rubs = self._normal(touch), []
        for part, which, velocity, friction, coefficient in _frictions(touch, 0.0, u, w):
            rate = (du if part == "force" else dw)[which]
            square = _Square.of(velocity, rate)
            rubs.append((coefficient, friction.stiffness, square))
        return _Touching(law, u[2], du[2], rubs, self._limiting(touch, 0.0), self.fixed)


def _frictions(touch: Touch, push: Number, u: np.ndarray, w: np.ndarray) -> list[Any]:
    """Return the friction terms of a slot: kind, axes, velocity, law and coefficient of each."""
    law, stiff, found = touch.law, 1.0 / (TANGENT * touch.weight), []
    for coefficient, part, velocity, which, arm in (
        (law.friction, "force", u, slice(0, 2), 1.0),
        (law.torsion, "moment", w, slice(2, 3), law.torsion),
        (law.rolling, "moment", w, slice(0, 2), law.rolling),
    ):
        if coefficient:
            friction = Friction(coefficient * push, stiff * arm * arm)
            found.append((part, which, velocity[which], friction, coefficient))
    return found


def _between(a: list[Any], b: list[Any], spatial: list[np.ndarray], sums: Any) -> Number:
    """Return the entry of two columns, with the spatial stiffness of all carriers they share.

    sums: cached sums of stiffness, and their products with columns.
    """
    shared = [
        (c, x[1] * y[1], x[0], y[0])
        for c, (x, y) in enumerate(zip(a, b, strict=True))
        if x is not None and y is not None
    ]
    entry: Number = 0.0
    while shared:
        _, _, left, right = shared[0]
        same = [x for x in shared if x[2] is left and x[3] is right]
        shared = [x for x in shared if not (x[2] is left and x[3] is right)]
        key = tuple((c, s) for c, s, _, _ in same)
        if key not in sums:
            sums[key] = total([s * spatial[c] for c, s in key])
        column = ("F", key, id(right))
        if column not in sums:
            sums[column] = np.array([dot(row, right) for row in sums[key]], dtype=object)
        entry = entry + dot(left, sums[column])
    return entry


class _Straight(NamedTuple):
    """Slope of a quadratic potential along a line."""

    first: Number
    rate: Number

    def __call__(self, alpha: Number) -> tuple[Number, Number]:
        return self.first + alpha * self.rate, self.rate


class _Square(NamedTuple):
    """Square of a speed along a line: a + 2 b x + c x^2."""

    a: Number
    b: Number
    c: Number

    @staticmethod
    def of(v: np.ndarray, dv: np.ndarray) -> "_Square":
        return _Square(dot(v, v), dot(v, dv), dot(dv, dv))

    def __call__(self, alpha: Number) -> tuple[Number, Number]:
        """Return the square and half its rate."""
        rate = self.b + alpha * self.c
        return maximum(self.a + alpha * (self.b + rate), 0.0), rate


class _Touching(NamedTuple):
    """Slope of a slot along a line on which v changes by dv; rubs: its kinds of friction.

    held: the normal impulse that bounds friction if fixed is 1.
    """

    law: Normal
    v: Number
    dv: Number
    rubs: list[tuple[float, float, _Square]]
    held: Number
    fixed: Number

    def __call__(self, alpha: Number) -> tuple[Number, Number]:
        v = self.v + alpha * self.dv
        push, grows = self.law.impulse(v), -self.law.slope(v) * self.dv
        slope, rate = -push * self.dv, -grows * self.dv
        push, grows = select(self.fixed, self.held, push), (1.0 - self.fixed) * grows
        for coefficient, stiffness, speed in self.rubs:
            square, along = speed(alpha)
            k, inverse = Friction(coefficient * push, stiffness).factor(square)
            more = coefficient * grows * square * inverse * sqrt(inverse) - k * along * inverse
            slope, rate = slope + k * along, rate + more * along + k * speed.c
        return slope, rate


class _Dry(NamedTuple):
    """Slope of dry friction along a line."""

    law: Friction
    speed: _Square

    def __call__(self, alpha: Number) -> tuple[Number, Number]:
        square, along = self.speed(alpha)
        k, inverse = self.law.factor(square)
        return k * along, k * (self.speed.c - along * along * inverse)
