"""Momentum balance of a step on expressions, and steps of Newton's method.

Friction is bounded by the normal impulse at the same velocities, so the derivative of the impulses
is not symmetric: friction grows with the approach of the bodies. Newton's method with that
derivative converges to velocities that satisfy Coulomb's law at the end of the step. Three things
keep it from cycling, without a line search:

- The first step predicts which contacts act: those that gravity would close. They stick or slide
  along their current velocity (`touching.expected`).
- The direction of friction is a separate unknown (`touching`).
- A step ends just after the first inactive contact has closed (`Newton._closing`).

If Newton's method does not converge within some iterations, the normal impulses of the first step
bound friction from then on (`fixed`). That problem is convex, its impulses add no energy, and
Newton's method rarely cycles on it. If it does, contacts are softened (`Problem.softened`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.expr import Number
from chasles.motion.geometry.closed_forms import (
    cross,
    less,
    less_equal,
    maximum,
    select,
    sqrt,
)
from chasles.motion.steps.algebra import columns, dot, grouped, solved_square, total, zeros
from chasles.motion.steps.impulses import bounded
from chasles.motion.steps.lines import Dry, Stop, speed_along, stiffen
from chasles.motion.steps.touching import (
    Near,
    Touch,
    directed,
    expected,
    follow,
    linearized,
    stiffness,
    turned,
)

PIVOT = 1e-9
"""Smallest pivot of the Jacobian, relative to the diagonal of M."""

MARGIN = 1e-5
"""Speed at which a step leaves the first contact that it closes, relative to the speed that the
momentum of the robot would give the contact. The margin exceeds the rounding of float32, which
would leave the contact open, so that no further step could pass it.
"""


class Problem(NamedTuple):
    """Data of one step, as expressions of one program."""

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

    @property
    def duals(self) -> int:
        """Total number of entries in all directions of friction."""
        return sum(touch.duals for touch in self.touches) + len(self.dry)

    def softened(self, factor: Number) -> "Problem":
        """Return the problem with the stiffness of contacts and limits multiplied by a factor."""
        touches = [touch._replace(firmness=factor) for touch in self.touches]
        stops = [stop._replace(firmness=factor) for stop in self.stops]
        return self._replace(touches=touches, stops=stops)


class Refined(NamedTuple):
    """Velocities after a Newton step, with gradient, residual and directions of friction."""

    v: np.ndarray
    gradient: np.ndarray
    residual: Number
    duals: list[Number]


class Newton:
    """Momentum balance at the end of a step, and Newton steps towards its solution."""

    def __init__(
        self, problem: Problem, dt: float, held: Sequence[Number] = (), fixed: Number = 0.0
    ) -> None:
        self.p, self.dt, self.fixed = problem, dt, fixed
        self.held = dict(zip(map(id, problem.touches), held, strict=False))

    # Impulses -----------------------------------------------------------------------------------

    def _twists(self, v: np.ndarray) -> list[np.ndarray]:
        """Return relative twists of all carriers, summed along the tree to share partial sums."""
        found = []
        for J in self.p.carriers:
            twist: np.ndarray = zeros(len(J))
            for k in self.p.order:
                twist = twist + J[:, k] * v[k]
            found.append(twist)
        return found

    def velocities(self, v: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the linear and angular velocity of each slot along its axes."""
        twists, found = self._twists(v), []
        for touch in self.p.touches:
            if touch.direct:
                found.append((twists[touch.carrier], np.zeros(3)))
                continue
            w, u = twists[touch.carrier][:3], twists[touch.carrier][3:]
            turned = touch.axes @ w if touch.turns else np.zeros(3)
            found.append((touch.axes @ (u + cross(w, touch.point)), turned))
        return found

    def pushes(self, v: np.ndarray) -> list[Number]:
        """Return the normal impulses of all slots."""
        at = zip(self.p.touches, self.velocities(v), strict=True)
        return [touch.normal.impulse(u[2]) for touch, (u, _) in at]

    def _limiting(self, touch: Touch, push: Number) -> tuple[Number, Number]:
        """Return the impulse that bounds friction, and its derivative with respect to `push`."""
        if not self.held:
            return push, 1.0
        return select(self.fixed, self.held[id(touch)], push), 1.0 - self.fixed

    def _impulse(self, touch: Touch, u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the impulse and moment of a slot along its axes."""
        push = touch.normal.impulse(u[2])
        linear, turning = zeros(3), zeros(3)
        linear[2] = push
        for rub in touch.frictions(self._limiting(touch, push)[0], u, w):
            (turning if rub.moment else linear)[rub.which] = rub.law.impulse(rub.velocity)
        return linear, turning

    def _impulses(self, v: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        at = zip(self.p.touches, self.velocities(v), strict=True)
        return [self._impulse(touch, u, w) for touch, (u, w) in at]

    def forces(self, v: np.ndarray) -> np.ndarray:
        """Return the impulses on the bodies along the world axes (k, 3)."""
        each = [
            linear @ touch.axes
            for (linear, _), touch in zip(self._impulses(v), self.p.touches, strict=True)
        ]
        return np.array(each, dtype=object).reshape(-1, 3)

    def work(self, v: np.ndarray) -> tuple[Number, Number]:
        """Return the work of impulses, and the energy that overlaps and restitution may release.

        The work is evaluated at end-of-step velocities: the kinetic energy grows at most by the
        work of smooth forces plus this work (Anitescu and Potra 1997). It is computed from the
        momentum balance, so that it includes the error of the solution.
        """
        momentum = np.array([dot(row, v) for row in self.p.H], dtype=object) - self.p.p
        released: Number = 0.0
        for touch, (u, _) in zip(self.p.touches, self.velocities(v), strict=True):
            released = released + touch.normal.impulse(u[2]) * maximum(touch.bound, 0.0)
        for stop in self.p.stops:
            push = stop.term.impulse(speed_along(stop.row, v))
            released = released + push * maximum(stop.bound, 0.0)
        return dot(momentum, v), released

    # Balance of momentum ------------------------------------------------------------------------

    def gradient(self, v: np.ndarray) -> np.ndarray:
        """Return the final momentum minus that due to smooth forces and impulses."""
        return self._balance(v, self._impulses(v))

    def residual(self, gradient: np.ndarray) -> Number:
        """Return the size of a gradient, relative to the momentum."""
        return sqrt(np.sum(gradient * gradient * self.p.inverse) / self.p.scale)

    def _balance(
        self, v: np.ndarray, impulses: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> np.ndarray:
        """Return the gradient with given impulses and moments of all slots."""
        p = self.p
        g = np.array([dot(row, v) for row in p.H], dtype=object) - p.p
        wrenches: list[np.ndarray] = [zeros(len(J)) for J in p.carriers]
        for (linear, turning), touch in zip(impulses, p.touches, strict=True):
            wrench = linear
            if not touch.direct:
                f = linear @ touch.axes
                moment = cross(touch.point, f)
                if touch.turns:
                    moment = moment + turning @ touch.axes
                wrench = np.concatenate([moment, f])
            wrenches[touch.carrier] = wrenches[touch.carrier] + wrench
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

    def _solved(
        self, v: np.ndarray, slots: Sequence[Near], rubbing: Sequence[Number], g: np.ndarray
    ) -> np.ndarray:
        """Return the inverse Jacobian times g; rubbing: directions of dry friction."""
        p = self.p
        n, H = len(v), p.H.copy()
        spatial = [zeros(len(J), len(J)) for J in p.carriers]
        for touch, near in zip(p.touches, slots, strict=True):
            spatial[touch.carrier] = spatial[touch.carrier] + stiffness(touch, near)
        signed = [columns(p.carriers, k) for k in range(n)]
        sums: dict[Any, np.ndarray] = {}
        for i in range(n):
            for j in range(n):
                H[i, j] = H[i, j] + _between(signed[i], signed[j], spatial, sums)
        for stop in p.stops:
            stiffen(H, stop.row, stop.term.slope(speed_along(stop.row, v)))
        for dry, z in zip(p.dry, rubbing, strict=True):
            u = speed_along(dry.row, v)
            k, square = dry.term.slope([u])
            stiffen(H, dry.row, k * (1.0 - z * u * sqrt(square)))
        return solved_square(H, g, p.order, PIVOT / p.inverse)

    # Steps --------------------------------------------------------------------------------------

    def first(self, v: np.ndarray, slack: float) -> Refined:
        """Take the first step from the initial velocities v, with the expected contacts.

        slack: change of a contact's velocity (m/s) that smooth forces may cause.
        """
        at = zip(self.p.touches, self.velocities(v), strict=True)
        slots = [expected(touch, u, w, slack) for touch, (u, w) in at]
        rubbing: list[Number] = [0.0] * len(self.p.dry)
        g = self._balance(v, [near.impulses for near in slots])
        new = v - self._solved(v, slots, rubbing, g)
        there = zip(self.p.touches, slots, self.velocities(new), strict=True)
        duals = [x for touch, near, (u, w) in there for x in directed(touch, near, u, w)]
        rest = self.gradient(new)
        return Refined(new, rest, self.residual(rest), duals + rubbing)

    def step(
        self, later: "Newton", v: np.ndarray, g: np.ndarray, duals: Sequence[Number]
    ) -> Refined:
        """Take a Newton step from v with gradient g; later: the problem of the next step."""
        at, (each, rubbing) = self.velocities(v), self._split(duals)
        slots = [
            linearized(touch, u, w, self._limiting, z)
            for touch, (u, w), z in zip(self.p.touches, at, each, strict=True)
        ]
        d = -self._solved(v, slots, rubbing, g)
        along = self.velocities(d)
        part = self._closing(v, d, at, along)
        new, rest = v + part * d, later.gradient(v + part * d)
        turns = zip(slots, along, strict=True)
        turning = [x for near, (du, dw) in turns for x in turned(near, part * du, part * dw)]
        for dry, z in zip(self.p.dry, rubbing, strict=True):
            u, du = speed_along(dry.row, v), part * speed_along(dry.row, d)
            turning += follow([z], [u], [du], sqrt(dry.term.slope([u])[1]))
        return Refined(new, rest, self.residual(rest), turning)

    def _split(self, duals: Sequence[Number]) -> tuple[list[np.ndarray], list[Number]]:
        """Return the directions of friction of each slot, and those of dry friction."""
        found, start = [], 0
        for touch in self.p.touches:
            found.append(np.array(duals[start : start + touch.duals], dtype=object))
            start += touch.duals
        return found, list(duals[start:])

    def _closing(self, v: np.ndarray, d: np.ndarray, at: Any, along: Any) -> Number:
        """Return the fraction of a step, at most 1, that closes the first inactive contact."""
        speeds = [
            (touch.bound, u[2], du[2], touch.weight)
            for touch, (u, _), (du, _) in zip(self.p.touches, at, along, strict=True)
        ]
        for stop in self.p.stops:
            speed, change = speed_along(stop.row, v), speed_along(stop.row, d)
            speeds.append((stop.bound, speed, change, bounded(stop.weight)))
        margin = MARGIN * sqrt(self.p.scale)
        # Find the smallest ratio of two negative numbers, with a single division at the end.
        way: Number = -1.0
        whole: Number = -1.0
        for bound, u, du, weight in speeds:
            left = bound - u
            closed = left - sqrt(weight) * margin
            first = less_equal(left, 0.0) * less(du, closed) * less(closed * whole, way * du)
            way, whole = select(first, closed, way), select(first, du, whole)
        return way / whole


def _between(a: list[Any], b: list[Any], spatial: list[np.ndarray], sums: Any) -> Number:
    """Return the entry a'K b of two columns, summed over all carriers that both use.

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
