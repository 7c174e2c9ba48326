"""Program for one velocity step of a controller, with prioritized tasks and joint bounds.

Each priority is a damped least-squares problem with bounds. The solution is the velocity v in
[low, high] that minimizes |w (J v - x)|^2 + damping |v - preferred|^2 without affecting tasks of
higher priority. J is the task Jacobian, x contains the desired task velocities, and w scales each
row. Each problem is solved by a primal active-set method. Each pass holds the joints of the active
set at their bounds, and moves the other joints toward the solution as far as their bounds allow.
The pass then adds the joint that reached its bound to the active set, or releases the joint with
the largest velocity away from its bound. Every pass ends at a feasible velocity, and no pass
increases the cost. Therefore a fixed number of passes can be traced as a straight-line program. See
Nocedal and Wright 2006, section 16.5; for priorities, see Kanoun, Lamiraux and Wieber 2011.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chasles.expr import (
    RULES,
    Arena,
    Number,
    Program,
    Variable,
    less,
    less_equal,
    maximum,
    minimum,
    select,
    sqrt,
)
from chasles.functions.targets import CENTER, Posture, Rows
from chasles.mathematics.linear import Matrix, Vector, invert_symmetric, solve_symmetric
from chasles.model import Model
from chasles.model.spaces import PositionSpace, rate_places, size

Kind = Literal["twist", "position", "orientation"]

LEAST = {"float64": 1e-10, "float32": 1e-5}
"""Damping far from singularities, for each dtype.

This minimum damping keeps the equations nonsingular when joints are at their bounds.
"""

DEPENDENT = 1e-10
"""Relative tolerance for the squared norm of a row's linearly independent component.

A row with a smaller component counts as linearly dependent.
"""

WRONG = 10.0
"""Threshold for releasing a joint from a bound, relative to the minimum damping.

A joint is released if its velocity away from the bound (rad/s or m/s) exceeds the threshold.
"""

FAR = 1e9
"""Distance to a joint limit (rad or m) beyond which the limit is ignored."""

INPUTS = ("q", "qd", "rates", "preferred", "weights", "lower", "upper", "velocity", "acceleration")
"""Names of the input arrays of the program, in order; the last input, dt, is not listed."""


@dataclass(frozen=True)
class Task:
    """Task for the angular velocity of a frame, the velocity of its origin, or both.

    Each velocity component is one row of the task Jacobian.
    """

    frame: str
    kind: Kind

    @property
    def angles(self) -> int:
        """Number of rows for the angular velocity (rad/s), which come first."""
        return 0 if self.kind == "position" else 3

    @property
    def rows(self) -> int:
        """Number of velocity components of the task (rows of its Jacobian)."""
        return 6 if self.kind == "twist" else 3

    def matrix(self, at: Posture) -> Rows:
        """Return the task Jacobian."""
        if self.frame == CENTER:
            return at.center_jacobian()
        angular, linear = at.jacobian(self.frame)
        return [*(angular if self.angles else []), *(linear if self.kind != "orientation" else [])]


@dataclass(frozen=True)
class Step:
    """Differential inverse kinematics with prioritized tasks, damping and bounds on velocities."""

    model: Model
    levels: tuple[tuple[Task, ...], ...]
    damping: float
    singular: float
    passes: int
    scales: tuple[float, ...] = ()
    """Factors that make the loop equations dimensionless. Equations with factor 0 are omitted."""
    least: float = LEAST["float64"]

    @property
    def rows(self) -> int:
        """Number of Jacobian rows of all tasks."""
        return sum(task.rows for level in self.levels for task in level)

    @property
    def key(self) -> tuple[object, ...]:
        """Values that determine the program, for use as a cache key."""
        law = (self.damping, self.singular, self.passes, self.scales, self.least)
        return (self.model.source, self.model.mimics, self.levels, *law)

    def program(self) -> Program:
        """Return the program that computes joint velocities (nv,) from the `INPUTS` and dt."""
        model, n = self.model, self.model.nv
        sizes = (model.nq, n, self.rows, n, self.rows, model.nq, model.nq, n, n)
        inputs = [Variable(name, (k,)) for name, k in zip(INPUTS, sizes, strict=True)]
        inputs.append(Variable("dt", ()))
        arena = Arena(RULES)
        given = {v.name: [arena.input(v.name, k) for k in range(v.size)] for v in inputs}
        at = Posture(model, given["q"], arena)
        low, high = self._bounds(given)
        search = _Search(given["preferred"], low, high, self.passes, WRONG * self.least)
        if any(self.scales):
            search.solve(*self._closing(at, given["dt"][0]), self.least)
        for J, x, marks in self._problems(at, given):
            apart = _without(J, _orthogonal(search.above, [1.0] * n), [1.0] * n)
            search.solve(J, x, self._damping(apart, marks))
        output = [(Variable("command", (n,)), search.v)]
        made = Program.from_outputs("resolved_rate", inputs, output)
        places = PositionSpace().quaternions(model)
        return replace(made, nonzero=tuple((0, first) for first in places))

    def _closing(self, at: Posture, dt: Number) -> tuple[Rows, list[Number]]:
        """Return the scaled loop Jacobian J and the right-hand side x of J v = x.

        Joint velocities v that satisfy this equation close the loops in one step.
        """
        residual, matrix = at.closure()
        kept = [(scale, k) for k, scale in enumerate(self.scales) if scale]
        rates = [residual[k] * -scale / dt for scale, k in kept]
        return [[e * scale for e in matrix[k]] for scale, k in kept], rates

    def _problems(
        self, at: Posture, given: dict[str, list[Number]]
    ) -> list[tuple[Rows, list[Number], list[Number]]]:
        """Return weighted Jacobian rows, weighted task velocities and flags for each priority.

        The flag of a row is 1 if its weight is nonzero, otherwise 0.
        """
        found = []
        first = 0
        for level in self.levels:
            J, x, marks = [], [], []
            for task in level:
                for k, row in enumerate(task.matrix(at)):
                    unit = 1.0 if k < task.angles else 1.0 / size(self.model)
                    w = given["weights"][first + k]
                    root = sqrt(w) * unit
                    J.append([e * root for e in row])
                    x.append(given["rates"][first + k] * root)
                    marks.append(less(0.0, w))
                first += task.rows
            found.append((J, x, marks))
        return found

    def _damping(self, J: Rows, marks: Sequence[Number]) -> Number:
        """Return the damping for a priority level; it increases near singularities.

        If s < singular, damping^2 (1 - (s / singular)^2)^2 is added to the minimum damping, where
        s^2 = 1 / trace((J J')^-1). If J has m rows and the smallest singular value s_min, then
        s_min^2 / m <= s^2 <= s_min^2. Rows with weight 0 are ignored.
        """
        rows = [Vector(tuple(row)) for row in J]
        m = range(len(rows))
        K = Matrix(
            tuple(
                tuple(
                    rows[r].dot(rows[c]) + (self.least + 1.0 - marks[r] if r == c else 0.0)
                    for c in m
                )
                for r in m
            )
        )
        inverse = invert_symmetric(K)
        trace = sum((inverse[k, k] * marks[k] for k in m), 0.0)
        share = 1.0 / (maximum(trace, 1e-30) * self.singular**2)
        lack = maximum(0.0, 1.0 - share)
        return self.least + self.damping**2 * lack * lack

    def _bounds(self, given: dict[str, list[Number]]) -> tuple[list[Number], list[Number]]:
        """Return velocity bounds for the position, velocity and acceleration limits.

        The velocity v toward a limit at distance d satisfies v dt + v^2 / (2 a) <= d. After such a
        step, the joint can still stop before the limit, so position and acceleration limits do not
        conflict in the next step. If limits conflict, acceleration limits take precedence.
        """
        dt, low, high = given["dt"][0], [], []
        places = dict(rate_places(self.model))
        for i in range(self.model.nv):
            most, a, now = given["velocity"][i], given["acceleration"][i], given["qd"][i]
            below, above = -most, most
            if i in places:
                k = places[i]
                down = _reach(given["q"][k] - given["lower"][k], a, dt)
                up = _reach(given["upper"][k] - given["q"][k], a, dt)
                below, above = _inside(-down, -most, most), _inside(up, -most, most)
            low.append(_inside(below, now - a * dt, now + a * dt))
            high.append(_inside(above, now - a * dt, now + a * dt))
        return low, high


def _reach(d: Number, a: Number, dt: Number) -> Number:
    """Return the maximum speed toward a limit at distance d (negative d: past the limit)."""
    d = minimum(d, FAR)
    return 2.0 * d / (dt + sqrt(dt * dt + 2.0 * maximum(d, 0.0) / a))


def _inside(x: Number, low: Number, high: Number) -> Number:
    return minimum(maximum(x, low), high)


class _Search:
    """State of the active-set method: velocity, active bounds, and higher-priority task rows."""

    def __init__(
        self,
        preferred: Sequence[Number],
        low: Sequence[Number],
        high: Sequence[Number],
        passes: int,
        wrong: float,
    ) -> None:
        self._preferred, self._low, self._high, self._passes = preferred, low, high, passes
        self._wrong, n = wrong, len(low)
        every = zip(preferred, low, high, strict=True)
        self.v: list[Number] = [_inside(x, a, b) for x, a, b in every]
        self.above: Rows = []
        self._at_low: list[Number] = [0.0] * n
        self._at_high: list[Number] = [0.0] * n

    def solve(self, J: Rows, x: Sequence[Number], damping: Number) -> None:
        """Solve the next priority level subject to the bounds and the higher-priority tasks."""
        if not self.above:
            self._start(J, x, damping)
        for _ in range(self._passes):
            self._pass(J, x, damping)
        self.above = [*self.above, *J]

    def _free(self) -> list[Number]:
        pairs = zip(self._at_low, self._at_high, strict=True)
        return [1.0 - low - high for low, high in pairs]

    def _wanted(self, J: Rows, x: Sequence[Number], damping: Number) -> list[Number]:
        """Return the step from the current velocity to the solution for the active bounds.

        The entry of a joint at a bound is the step that the joint would make if it were released.

        The rows of higher-priority tasks are orthonormalized over the free joints. The step is
        projected onto their null space.
        """
        free, n, m = self._free(), len(self.v), range(len(J))
        basis = _orthogonal(self.above, free)
        rest = [p - v for p, v in zip(self._preferred, self.v, strict=True)]
        (rest,) = _without([rest], basis, free)
        rows = _without(J, basis, free)
        held = [[e * f for e, f in zip(row, free, strict=True)] for row in rows]
        K = Matrix(
            tuple(
                tuple(_dot(held[r], rows[c]) + (damping if r == c else 0.0) for c in m) for r in m
            )
        )
        lack = [
            x[k] - _dot(J[k], self.v) - _dot(J[k], [e * f for e, f in zip(rest, free, strict=True)])
            for k in m
        ]
        y = solve_symmetric(K, Vector(tuple(lack)))
        way = [rest[i] + sum((rows[k][i] * y[k] for k in m), 0.0) for i in range(n)]
        # Project again, because y is large for infeasible rows and amplifies rounding errors.
        return _without([way], basis, free)[0]

    def _start(self, J: Rows, x: Sequence[Number], damping: Number) -> None:
        """Start at the unconstrained solution, clamped to the bounds. Fix the clamped joints."""
        way = self._wanted(J, x, damping)
        for i, step in enumerate(way):
            there = self.v[i] + step
            self._at_low[i] = less_equal(there, self._low[i])
            self._at_high[i] = less_equal(self._high[i], there) * (1.0 - self._at_low[i])
            self.v[i] = _inside(there, self._low[i], self._high[i])

    def _pass(self, J: Rows, x: Sequence[Number], damping: Number) -> None:
        way, free, n = self._wanted(J, x, damping), self._free(), range(len(self.v))
        share: Number = 1.0
        shares: list[Number] = []
        for i in n:
            up, down = less(0.0, way[i]) * free[i], less(way[i], 0.0) * free[i]
            room = select(up, self._high[i] - self.v[i], self._low[i] - self.v[i])
            moves = less(0.0, up + down)
            shares.append(select(moves, room / select(moves, way[i], 1.0), 2.0))
            share = minimum(share, shares[i])
        share = maximum(share, 0.0)
        whole = less_equal(1.0, share)
        draws = [self._at_low[i] * way[i] - self._at_high[i] * way[i] for i in n]
        most: Number = self._wrong
        for i in n:
            most = maximum(most, draws[i])
        for i in n:
            met = less_equal(shares[i], share) * (1.0 - whole)
            leaves = whole * less_equal(most, draws[i])
            up = less(0.0, way[i])
            there = _inside(self.v[i] + share * way[i] * free[i], self._low[i], self._high[i])
            bound = select(up, self._high[i], self._low[i])
            self.v[i] = select(met, bound, there)
            self._at_high[i] = select(met, up, self._at_high[i] * (1.0 - leaves))
            self._at_low[i] = select(met, 1.0 - up, self._at_low[i] * (1.0 - leaves))


def _dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    return Vector(tuple(a)).dot(Vector(tuple(b)))


def _orthogonal(rows: Rows, free: Sequence[Number]) -> Rows:
    """Orthonormalize rows, with inner products over the free joints; dependent rows become 0."""
    found: Rows = []
    for row in rows:
        (left,) = _without([row], found, free)
        (left,) = _without([left], found, free)  # a second projection suffices (Giraud et al. 2005)
        whole, square = _inner(row, row, free), _inner(left, left, free)
        counts = less(DEPENDENT * whole, square)
        factor = select(counts, 1.0, 0.0) / sqrt(select(counts, square, 1.0))
        found.append([e * factor for e in left])
    return found


def _without(rows: Rows, basis: Rows, free: Sequence[Number]) -> Rows:
    """Make rows orthogonal to an orthonormal basis; only free joints count in inner products."""
    found = []
    for row in rows:
        for unit in basis:
            part = _inner(row, unit, free)
            row = [e - part * u for e, u in zip(row, unit, strict=True)]
        found.append(row)
    return found


def _inner(a: Sequence[Number], b: Sequence[Number], free: Sequence[Number]) -> Number:
    return _dot([x * f for x, f in zip(a, free, strict=True)], b)
