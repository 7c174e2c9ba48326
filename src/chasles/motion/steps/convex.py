"""Momentum balance of a time step as expressions, and Newton steps that solve it.

Friction is bounded by the normal impulse at the same velocities, so the derivative of the impulses
is not symmetric: friction grows as the bodies approach each other. Newton's method with that
derivative converges to velocities that satisfy Coulomb's law at the end of the step. The laws are
piecewise linear, except for the sliding direction. Once it is known which contacts are active and
which of them stick, one step is exact for all contacts that stick. The first step predicts this:
contacts are active if gravity would close them, and stick or slide along their current velocity
(`touching.expected`).

Dry friction of joints and tendons has no compliance. A step sets the velocities that friction
holds to exactly zero; the momentum balance then determines the impulses. A held
velocity breaks away in the next step if its impulse exceeds the limit, and a sliding velocity that
reverses is held in the next step. A coordinate is held by a large stiffness in the linear system.
For a combination of coordinates, the impulse is an additional unknown.

If full Newton steps do not converge, each further step ends where the directional derivative of the
cost along the step vanishes (`Newton.part_step`). The gradient of the cost is the unbalanced
momentum. These steps use only a fraction of the derivatives of friction (`Slope`), so that they
resemble steps for a convex problem. Dry friction then follows a regularized law (`lines.Dry`),
until a step with the exact law satisfies both the momentum balance and this law. Finally, the
normal impulses that bound friction are fixed (`fixed`). The problem with fixed normal impulses is
convex, and its impulses add no energy. States that are solved only with fixed normal impulses are
reported as unsolved. States with a residual above the tolerance after the last iteration are also
unsolved; all their velocities are scaled down until the impulses do no positive work
(`Newton.passive`).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.expr import Number
from chasles.motion.geometry.closed_forms import (
    absolute,
    cross,
    less,
    less_equal,
    maximum,
    minimum,
    select,
    sqrt,
)
from chasles.motion.steps.algebra import (
    absent,
    columns,
    dot,
    grouped,
    solved_square,
    total,
    zeros,
)
from chasles.motion.steps.impulses import SLOW, TANGENT
from chasles.motion.steps.lines import Dry, Stop, speed_along, stiffen
from chasles.motion.steps.systems import System
from chasles.motion.steps.touching import (
    Near,
    Rows,
    Slope,
    Touch,
    expected,
    linearized,
    rows_of,
    spatial_stiffness,
)

PIVOT = 1e-9
"""Smallest pivot of the Jacobian, relative to the diagonal of M."""

HOLDING = 1e12
"""Stiffness that holds a velocity coordinate at rest in the linear system of a Newton step,
relative to the regularized stiffness of its dry friction."""

TIED = 1e-6
"""Smallest pivot for the friction impulse of a combination of coordinates, relative to the inverse
inertia. A smaller pivot means that other dry friction already holds the combination."""

ROUNDING = 1e-3
"""Relative velocity below which a held combination of coordinates is at rest, relative to the
tolerance for the residual."""

GAIN = 1e-12
"""Tolerance for positive work of dry friction, relative to the reference energy."""

ROUNDS = 12
"""Number of rounds of the line search, each with two evaluations of the directional derivative
of the cost along the step."""

NARROW = 1e-4
"""Smallest ratio of the lower to the upper end of a search interval in logarithmic bisection."""

Motions = Sequence[tuple[np.ndarray, np.ndarray]]


class Problem(NamedTuple):
    """Momentum balance H v = p + impulses of one step, as expressions of one program.

    Attributes
    ----------
    H, p : np.ndarray
        Matrix of the momentum balance, and momentum without contact impulses.
    inverse : np.ndarray
        Inverse of the diagonal of the mass matrix.
    scale : Number
        Square of a reference momentum, weighted with `inverse`. Squared residuals are divided by
        this value.
    carriers : list[np.ndarray]
        Jacobians that the entries of `touches` refer to.
    touches : list[Touch]
        Potential contact points.
    stops : list[Stop]
        Joint and tendon limits.
    dry : list[Dry]
        Dry friction of joints and tendons.
    order : tuple[int, ...]
        Order of the velocity coordinates for elimination.
    """

    H: np.ndarray
    p: np.ndarray
    inverse: np.ndarray
    scale: Number
    carriers: list[np.ndarray]
    touches: list[Touch]
    stops: list[Stop]
    dry: list[Dry]
    order: tuple[int, ...]

    @property
    def directions(self) -> int:
        """Total number of sliding-direction components of all contacts."""
        return sum(touch.directions for touch in self.touches)

    @property
    def ties(self) -> list[Dry]:
        """Dry friction that opposes a combination of several velocity coordinates."""
        return [dry for dry in self.dry if dry.combined]


class Refined(NamedTuple):
    """Result of a Newton step.

    Attributes
    ----------
    v : np.ndarray
        Velocities after the step.
    gradient : np.ndarray
        Unbalanced momentum.
    residual : Number
        Norm of the unbalanced momentum, relative to the reference momentum (`Problem.scale`).
    pushes : list[Number]
        Normal impulses of the contact slots.
    directions : list[Number]
        Sliding directions of contacts.
    rubs : list[Number]
        Impulses of dry friction at rest (`Dry.impulse`).
    pending : Number
        1 if dry friction does not yet satisfy its exact law, else 0.
    """

    v: np.ndarray
    gradient: np.ndarray
    residual: Number
    pushes: list[Number]
    directions: list[Number]
    rubs: list[Number]
    pending: Number

    def solved(self, tolerance: float, final: Number = 0.0) -> Number:
        """Return 1 if the momentum balance and the law of dry friction are satisfied, else 0.

        If `final` is 1, the law of dry friction is not checked.
        """
        return less_equal(self.residual, tolerance) * (1.0 - self.pending * (1.0 - final))


class Rubbed(NamedTuple):
    """Dry friction in a Newton step.

    Attributes
    ----------
    held : Number
        1 if the step brings the velocity exactly to zero, else 0.
    slope : Number
        Negative derivative of the impulse with respect to the velocity. For a combination of
        coordinates, it is 1 if the velocity is held, 0.5 for the regularized law, and 0 if the
        impulse is constant (`Newton._jacobian`).
    impulse : Number
        Impulse at the start or at the end of the step.
    u : Number
        Velocity at the start of the step.
    """

    held: Number
    slope: Number
    impulse: Number
    u: Number


class Line(NamedTuple):
    """Data for a line search along a step d from velocities v.

    Attributes
    ----------
    at, along : Motions
        Velocities of all contact slots at v, and the changes of these velocities along d.
    start, inertia : Number
        Directional derivative of the cost along d at v, and the growth of this derivative over the
        step due to inertia.
    begun : Number
        Dot product of d and the generalized impulses at v.
    """

    v: np.ndarray
    d: np.ndarray
    at: Motions
    along: Motions
    start: Number
    inertia: Number
    begun: Number


class Interval(NamedTuple):
    """Interval of step fractions in which a line search looks for the minimum of the cost.

    Attributes
    ----------
    low, high : Number
        Lower and upper fraction.
    least, most : Number
        Directional derivatives of the cost at the lower and upper fraction.
    """

    low: Number
    high: Number
    least: Number
    most: Number

    def zero(self, whole: Number) -> Number:
        """Return the fraction of the step at which the directional derivative is zero.

        The derivative is interpolated linearly. `whole` is 1 if the derivative is not positive at
        the end of the full step, and 0 otherwise. The result is used only if `whole` is 0.
        """
        low, high, least, most = self
        return low - least * (high - low) / select(whole, 1.0, most - least)


Solver = Callable[[System], np.ndarray]
"""Function that solves the linear system of a Newton step for the change in velocities."""

Search = Callable[[Line, Interval, Number], Interval]
"""Function that narrows the search interval of a line search in `ROUNDS` rounds."""


class Newton:
    """Momentum balance at the end of a step, and Newton steps towards its solution.

    Parameters
    ----------
    problem : Problem
        The momentum balance.
    held : Sequence[Number]
        Normal impulses of the potential contact points, which bound friction if `fixed` is 1.
    fixed : Number
        1 if friction is bounded by the impulses `held`, 0 if friction is bounded by the current
        normal impulses.
    rubs : Sequence[Number]
        Impulses of dry friction at rest (`Dry.impulse`), by default 0.
    tolerance : float
        Tolerance for the residual, and relative tolerance for the limit of dry friction.
    solve : Solver | None
        Solver of linear systems, by default `solution`.
    search : Search | None
        Line search along a step, by default `searched`.
    """

    def __init__(
        self,
        problem: Problem,
        held: Sequence[Number] = (),
        fixed: Number = 0.0,
        rubs: Sequence[Number] = (),
        tolerance: float = 0.0,
        solve: Solver | None = None,
        search: Search | None = None,
    ) -> None:
        self.p, self.fixed, self._tolerance = problem, fixed, tolerance
        self.rubs = list(rubs) or [0.0] * len(problem.dry)
        self.held = dict(zip(map(id, problem.touches), held, strict=False))
        self._solve, self._search = solve or self.solution, search or self.searched

    # Impulses -----------------------------------------------------------------------------------

    def _twists(self, v: np.ndarray) -> list[np.ndarray]:
        """Return J v for all contact Jacobians J, with shared partial sums along the tree."""
        found = []
        for J in self.p.carriers:
            twist: np.ndarray = zeros(len(J))
            for k in self.p.order:
                twist = twist + J[:, k] * v[k]
            found.append(twist)
        return found

    def velocities(self, v: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the linear and angular velocity of each potential contact, in contact axes."""
        twists, found = self._twists(v), []
        for touch in self.p.touches:
            if touch.direct:
                found.append((twists[touch.carrier], np.zeros(3)))
                continue
            w, u = twists[touch.carrier][:3], twists[touch.carrier][3:]
            turned = touch.axes @ w if touch.turns else np.zeros(3)
            found.append((touch.axes @ (u + cross(w, touch.point)), turned))
        return found

    def _limiting(self, touch: Touch, push: Number) -> tuple[Number, Number]:
        """Return the normal impulse that bounds friction, and its derivative.

        `push` is the current normal impulse. The derivative is with respect to `push`.
        """
        if not self.held:
            return push, 1.0
        return select(self.fixed, self.held[id(touch)], push), 1.0 - self.fixed

    def _impulse(self, touch: Touch, u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the linear and angular impulse of a contact point, given its velocities."""
        push = touch.normal.impulse(u[2])
        linear, turning = zeros(3), zeros(3)
        linear[2] = push
        for rub in touch.frictions(self._limiting(touch, push)[0], u, w):
            (turning if rub.moment else linear)[rub.which] = rub.law.impulse(rub.velocity)
        return linear, turning

    def _impulses(self, at: Motions) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the linear and angular impulse of each contact point, given its velocities."""
        each = zip(self.p.touches, at, strict=True)
        return [self._impulse(touch, u, w) for touch, (u, w) in each]

    def forces(self, v: np.ndarray) -> np.ndarray:
        """Return the contact impulses on the bodies along the world axes, one row per contact."""
        each = [
            linear @ touch.axes
            for (linear, _), touch in zip(
                self._impulses(self.velocities(v)), self.p.touches, strict=True
            )
        ]
        return np.array(each, dtype=object).reshape(-1, 3)

    def work(self, v: np.ndarray) -> tuple[Number, Number]:
        """Return the work of impulses, and the energy available from overlaps and restitution.

        The work is evaluated at the velocities at the end of the step. The kinetic energy grows at
        most by the work of smooth forces plus this work (Anitescu and Potra 1997). The work is
        computed from the momentum balance, so that it includes the error of the solution.
        """
        momentum = np.array([dot(row, v) for row in self.p.H], dtype=object) - self.p.p
        released: Number = 0.0
        for touch, (u, _) in zip(self.p.touches, self.velocities(v), strict=True):
            released = released + touch.normal.impulse(u[2]) * maximum(touch.bound, 0.0)
        for stop in self.p.stops:
            push = stop.term.impulse(speed_along(stop.row, v))
            released = released + push * maximum(stop.bound, 0.0)
        return dot(momentum, v), released

    def passive(self, v: np.ndarray) -> Number:
        """Return the largest factor s <= 1 such that u = s v satisfies u.(H u - p) <= 0.

        If the impulses that lead to v do no positive work, s is 1. A contact that is open at
        velocities v is also open at u.
        """
        supplied, energy = dot(v, self.p.p), dot(v, [dot(row, v) for row in self.p.H])
        return minimum(maximum(supplied, 0.0) / maximum(energy, SLOW), 1.0)

    # Balance of momentum ------------------------------------------------------------------------

    def _found(
        self,
        v: np.ndarray,
        at: Motions,
        directions: list[Number],
        dry: Sequence[Rubbed],
        exact: Number = 1.0,
        late: Number = 0.0,
    ) -> Refined:
        """Return the result of a Newton step that ends at the joint velocities v.

        `at` contains the corresponding velocities of the potential contact points, and `dry` the
        dry friction at the end of the step. `exact` is 1 if the step used the exact law of dry
        friction, and 0 if the step used a regularized law. If `late` is 1, dry friction that would
        add energy follows a regularized law without an impulse at rest.
        """
        dry = [
            rub._replace(impulse=select(late * self._gains(of, rub, v), 0.0, rub.impulse))
            for of, rub in zip(self.p.dry, dry, strict=True)
        ]
        impulses, ends = self._impulses(at), [rub.impulse for rub in dry]
        loads = self._rubbed(self._smooth(v, impulses), v, ends, combined=True)
        rubs: list[Number] = []
        pending: Number = 0.0
        for of, rub in zip(self.p.dry, dry, strict=True):
            u, center = speed_along(of.row, v), rub.impulse
            beyond: Number = 0.0
            if not of.combined:
                load = loads[of.row[0][0]]
                beyond = less((1.0 + self._tolerance) * of.limit, absolute(load))
                center = select(rub.held * (1.0 - beyond), of.bounded(load), center)
            # A held velocity breaks away if the load exceeds the limit; others must not reverse.
            fails = select(rub.held, beyond, less(0.0, center * u))
            creeps = less(absolute(of.impulse(center, u)), of.limit)
            creeps = creeps if of.combined else creeps * less(0.0, absolute(u))
            pending = maximum(pending, select(exact, fails, creeps))
            rubs.append(center)
        g = self._rubbed(loads, v, rubs, combined=False)
        pushes = [linear[2] for linear, _ in impulses]
        return Refined(v, g, self.residual(g), pushes, directions, rubs, pending)

    def _gains(self, dry: Dry, rub: Rubbed, v: np.ndarray) -> Number:
        """Return 1 if dry friction does positive work at the velocities v, else 0."""
        u = speed_along(dry.row, v)
        return less(GAIN * self.p.scale, dry.impulse(rub.impulse, u) * u)

    def residual(self, gradient: np.ndarray) -> Number:
        """Return the norm of the unbalanced momentum, relative to the reference momentum."""
        return sqrt(np.sum(gradient * gradient * self.p.inverse) / self.p.scale)

    def _balance(self, v: np.ndarray, impulses: Motions) -> np.ndarray:
        """Return the unbalanced momentum: H v minus the momentum of smooth forces and impulses."""
        g = self._smooth(v, impulses)
        for combined in (True, False):
            g = self._rubbed(g, v, self.rubs, combined=combined)
        return g

    def _rubbed(
        self, g: np.ndarray, v: np.ndarray, rubs: Sequence[Number], *, combined: bool
    ) -> np.ndarray:
        """Subtract the impulses of dry friction from the unbalanced momentum g.

        `rubs` contains the impulses at rest (see `Dry.impulse`). If `combined` is True, only
        friction that opposes combinations of coordinates is included, and otherwise only friction
        that opposes single coordinates.
        """
        found = g.copy()
        for dry, center in zip(self.p.dry, rubs, strict=True):
            rub = dry.impulse(center, speed_along(dry.row, v))
            for k, a in dry.row if dry.combined == combined else ():
                found[k] = found[k] - a * rub
        return found

    def _smooth(self, v: np.ndarray, impulses: Motions) -> np.ndarray:
        """Return the unbalanced momentum without dry friction."""
        p = self.p
        g = np.array([dot(row, v) for row in p.H], dtype=object) - p.p - self._applied(impulses)
        for stop in p.stops:
            push = stop.term.impulse(speed_along(stop.row, v))
            for k, a in stop.row:
                g[k] = g[k] - a * push
        return g

    def _applied(self, impulses: Motions) -> np.ndarray:
        """Convert the linear and angular impulses of all contacts to generalized impulses."""
        p = self.p
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
        found = zeros(len(p.p))
        for k in range(len(found)):
            for J, wrench in grouped(columns(p.carriers, k), wrenches):
                found[k] = found[k] + dot(J, wrench)
        return found

    def _step(
        self, v: np.ndarray, slots: Sequence[Near], dry: Sequence[Rubbed], g: np.ndarray
    ) -> tuple[np.ndarray, list[Rubbed]]:
        """Return the change of the velocities v in a Newton step, and dry friction at its end.

        `slots` are the linearized contact slots, `dry` is the dry friction at v, and g is the
        unbalanced momentum.
        """
        each, g, ties = list(zip(self.p.dry, dry, strict=True)), g.copy(), []
        for of, rub in each:
            if of.combined:
                ties.append(rub.held * rub.u)
            else:
                k = of.row[0][0]
                g[k] = g[k] + rub.held * rub.slope * rub.u
        slopes = [rub.slope for rub in dry]
        x = -self._solve(System(slots, self._stopping(v), slopes, np.append(g, ties)))
        d, more = x[: len(g)], iter(x[len(g) :])
        ends = []
        for of, rub in each:
            if of.combined:
                last = of.bounded(rub.impulse + next(more))
            else:
                k = of.row[0][0]
                # For a coordinate that was at rest, d[k] is the quotient of an impulse and a large
                # slope. Otherwise, the impulse is not known, and 0 stands for friction at rest.
                rests = less_equal(absolute(rub.u), 0.0)
                last = of.bounded(rests * (rub.impulse - rub.slope * d[k]))
                last = select(rub.held, last, rub.impulse)
                d[k] = select(rub.held, -rub.u, d[k])
            ends.append(rub._replace(impulse=last))
        return d, ends

    def _stopping(self, v: np.ndarray) -> list[Number]:
        """Return the velocity derivatives of the impulses at joint and tendon limits."""
        return [stop.term.slope(speed_along(stop.row, v)) for stop in self.p.stops]

    def solution(self, system: System) -> np.ndarray:
        """Return the solution of the linear system of a Newton step."""
        *slopes, g = system
        return self._eliminated(self._jacobian(*slopes), g)

    def _eliminated(self, A: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Solve A x = b for velocities and impulses of dry friction, impulses last."""
        p, ties = self.p, self.p.ties
        least = [TIED / (TANGENT * dry.stiffness) for dry in ties]
        order = (*range(len(p.p), len(p.p) + len(ties)), *p.order)
        return solved_square(A, b, order, np.append(PIVOT / p.inverse, least))

    def _jacobian(
        self, slots: Sequence[Near], stopping: Sequence[Number], rubbing: Sequence[Number]
    ) -> np.ndarray:
        """Return the derivative of the momentum balance with respect to the velocities.

        If dry friction opposes combinations of coordinates, there are more rows and columns. The
        additional unknowns are changes x of the friction impulses, and the additional equations
        are s a d + (1 - s) x / k = 0. Here s is the entry of `rubbing`, d the change of the
        velocities, a the row of the combination, and k the stiffness of the regularized law.
        """
        p = self.p
        n, H = len(p.p), p.H.copy()
        spatial = [zeros(len(J), len(J)) for J in p.carriers]
        own = []
        for touch, near in zip(p.touches, slots, strict=True):
            if touch.direct:
                own.append(rows_of(p.carriers[touch.carrier], near))
            else:
                K = spatial_stiffness(touch, near)
                spatial[touch.carrier] = spatial[touch.carrier] + K
        _add(H, own)
        shared = {touch.carrier for touch in p.touches if not touch.direct}
        signed = [columns([p.carriers[c] for c in sorted(shared)], k) for k in range(n)]
        spatial = [spatial[c] for c in sorted(shared)]
        sums: dict[Any, np.ndarray] = {}
        for i in range(n):
            for j in range(n):
                H[i, j] = H[i, j] + _between(signed[i], signed[j], spatial, sums)
        for stop, slope in zip(p.stops, stopping, strict=True):
            stiffen(H, stop.row, slope)
        ties = []
        for dry, slope in zip(p.dry, rubbing, strict=True):
            if dry.combined:
                ties.append((dry, slope))
            else:
                stiffen(H, dry.row, slope)
        found = zeros(n + len(ties), n + len(ties))
        found[:n, :n] = H
        for k, (dry, s) in enumerate(ties, n):
            found[k, k] = (1.0 - s) / dry.stiffness
            for i, a in dry.row:
                found[k, i], found[i, k] = s * a, -a
        return found

    # Adjoint ------------------------------------------------------------------------------------

    def balance(self, v: np.ndarray) -> np.ndarray:
        """Return the unbalanced momentum at velocities v.

        The last entries belong to combinations of coordinates with dry friction. Such an entry is
        the velocity if friction holds the combination at rest, and 0 otherwise.
        """
        g = self._balance(v, self._impulses(self.velocities(v)))
        each = zip(self.p.dry, self._dry(v), strict=True)
        return np.append(g, [rub.held * rub.u for of, rub in each if of.combined])

    def transposed(self, v: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Solve the linear system with the transposed Jacobian at v.

        The right-hand side is x, followed by zeros for the additional equations of dry friction.
        """
        slots = [
            linearized(touch, u, w, self._limiting, Slope(), ())
            for touch, (u, w) in zip(self.p.touches, self.velocities(v), strict=True)
        ]
        H = self._jacobian(slots, self._stopping(v), [rub.slope for rub in self._dry(v)])
        return self._eliminated(H.T, np.append(x, zeros(len(self.p.ties))))

    # Steps --------------------------------------------------------------------------------------

    def first(self, v: np.ndarray, slack: Number, before: np.ndarray) -> Refined:
        """Take the first step from the initial velocities v, with the expected contacts.

        `slack` is the change of a contact's velocity (m/s) that smooth forces may cause. `before`
        contains the impulses of the contact slots in the previous time step along the world axes,
        shape (slots, 3), or zeros.
        """
        at = zip(self.p.touches, self.velocities(v), before, strict=True)
        slots = [expected(touch, u, w, slack, f) for touch, (u, w), f in at]
        g = self._balance(v, [near.impulses for near in slots])
        d, dry = self._step(v, slots, self._dry(v), g)
        new = v + self._snapped(v, d, dry)
        along = [x for near in slots for x in near.directions]
        return self._found(new, self.velocities(new), along, dry)

    def whole_step(
        self, v: np.ndarray, g: np.ndarray, last: Sequence[Number], again: Number = 0.0
    ) -> Refined:
        """Take a full Newton step from v with gradient g.

        `last` contains the sliding directions in the previous iteration. `again` is 1 if iterations
        alternate between the same states (see `linearized`).
        """
        at, slope, each = self.velocities(v), Slope(), self._split(last)
        slots = [
            linearized(touch, u, w, self._limiting, slope, z, again)
            for touch, (u, w), z in zip(self.p.touches, at, each, strict=True)
        ]
        assumed = zip(slots, self._impulses(at), strict=True)
        change = [(a.impulses[0] - f, a.impulses[1] - t) for a, (f, t) in assumed]
        d, dry = self._step(v, slots, self._dry(v), g - self._applied(change))
        d = self._snapped(v, d, dry)
        along = [x for near in slots for x in near.directions]
        return self._found(v + d, _ahead(at, self.velocities(d), 1.0), along, dry)

    def part_step(
        self, v: np.ndarray, g: np.ndarray, slope: Slope, exact: Number = 0.0, late: Number = 0.0
    ) -> Refined:
        """Take a Newton step from v with gradient g, shortened by a line search (`_part`).

        The step uses the regularized law of dry friction (`Dry.impulse`). If `exact` is 1, a full
        step with the exact law is taken instead. If `late` is 1, no impulse at the end of the step
        adds energy (`_found`).
        """
        at = self.velocities(v)
        slots = [
            linearized(touch, u, w, self._limiting, slope)
            for touch, (u, w) in zip(self.p.touches, at, strict=True)
        ]
        d, dry = self._step(v, slots, self._dry(v, exact), g)
        d = self._snapped(v, d, dry)
        along = self.velocities(d)
        part = select(exact, 1.0, self._part(v, d, g, at, along))
        turned = [x for near in slots for x in near.directions]
        ends = [
            rub._replace(impulse=select(exact, rub.impulse, center))
            for rub, center in zip(dry, self.rubs, strict=True)
        ]
        return self._found(v + part * d, _ahead(at, along, part), turned, ends, exact, late)

    def _split(self, directions: Sequence[Number]) -> list[Sequence[Number]]:
        """Split a flat list of sliding directions into one list per contact."""
        found, start = [], 0
        for touch in self.p.touches:
            found.append(directions[start : start + touch.directions])
            start += touch.directions
        return found

    def _dry(self, v: np.ndarray, exact: Number = 1.0) -> list[Rubbed]:
        """Return the dry friction of joints and tendons in a Newton step that starts at v.

        If `exact` is 1, dry friction is held at rest if its impulse is below the limit, or if the
        last step reversed its velocity. Otherwise, friction follows the regularized law.
        """
        found = []
        for dry, center in zip(self.p.dry, self.rubs, strict=True):
            u = speed_along(dry.row, v)
            impulse = dry.impulse(center, u)
            sticks = less(absolute(impulse), dry.limit)
            held = exact * maximum(sticks, less(0.0, center * u))
            hard, soft = (1.0, 0.5) if dry.combined else (HOLDING * dry.stiffness, dry.stiffness)
            slope = select(exact, held * hard, sticks * soft)
            found.append(Rubbed(held, slope, impulse, u))
        return found

    def _snapped(self, v: np.ndarray, d: np.ndarray, dry: Sequence[Rubbed]) -> np.ndarray:
        """Return the change d of the velocities v, with rounding errors of coordinates removed.

        The coordinates of a held combination come exactly to rest if their velocities are zero to
        within rounding errors.
        """
        p, found = self.p, d.copy()
        least = (ROUNDING * self._tolerance) ** 2 * p.scale
        for of, rub in zip(p.dry, dry, strict=True):
            for k, _ in of.row if of.combined else ():
                u = v[k] + found[k]
                rests = rub.held * less_equal(u * u, least * p.inverse[k])
                found[k] = select(rests, -v[k], found[k])
        return found

    def _part(
        self, v: np.ndarray, d: np.ndarray, g: np.ndarray, at: Motions, along: Motions
    ) -> Number:
        """Return the step size, at most 1, that minimizes the cost along the direction d.

        At this step size, the directional derivative d.g of the cost is zero. The derivative may be
        small at first and rise steeply where a contact closes. Therefore, the search alternates
        between regula falsi and bisection on a logarithmic scale.
        """
        inertia = dot(d, [dot(row, d) for row in self.p.H])
        line = Line(v, d, at, along, dot(d, g), inertia, self._power(v, d, at, along))
        most = self._unbalanced(line, 1.0)
        whole = less_equal(most, 0.0)
        begun = Interval(0.0, 1.0, minimum(line.start, -SLOW), most)
        found = self._search(line, begun, whole)
        return select(whole, 1.0, found.zero(whole))

    def searched(self, line: Line, begun: Interval, whole: Number) -> Interval:
        """Return the interval that contains the minimum after all rounds of the line search."""
        for _ in range(ROUNDS):
            begun = self.narrowed(line, begun, whole)
        return begun

    def narrowed(self, line: Line, found: Interval, whole: Number) -> Interval:
        """Narrow the interval of the line search by a regula falsi step and a bisection step."""
        for falsi in (True, False):
            low, high, least, most = found
            between = found.zero(whole) if falsi else sqrt(maximum(low, NARROW * high) * high)
            power = self._unbalanced(line, between)
            over = less(0.0, power)
            high, most = select(over, between, high), select(over, power, most)
            low, least = select(over, low, between), select(over, least, minimum(power, -SLOW))
            found = Interval(low, high, least, most)
        return found

    def _unbalanced(self, line: Line, part: Number) -> Number:
        """Return the directional derivative d.g of the cost at the fraction `part` of a step d."""
        v, d, at, along, start, inertia, begun = line
        there = _ahead(at, along, part)
        return start + part * inertia + begun - self._power(v + part * d, d, there, along)

    def _power(self, v: np.ndarray, d: np.ndarray, at: Motions, along: Motions) -> Number:
        """Return the dot product of a velocity change d and the generalized impulses.

        The impulses are evaluated at velocities v. `at` contains the velocities of the contact
        points at v, and `along` contains the changes of these velocities along d.
        """
        total: Number = 0.0
        for (linear, turning), (du, dw) in zip(self._impulses(at), along, strict=True):
            total = total + dot(linear, du) + dot(turning, dw)
        for stop in self.p.stops:
            push = stop.term.impulse(speed_along(stop.row, v))
            total = total + push * speed_along(stop.row, d)
        for dry, center in zip(self.p.dry, self.rubs, strict=True):
            rub = dry.impulse(center, speed_along(dry.row, v))
            total = total + rub * speed_along(dry.row, d)
        return total


def _ahead(at: Motions, along: Motions, part: Number) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the velocities at the contacts after a fraction `part` of a Newton step."""
    pairs = zip(at, along, strict=True)
    return [(u + part * du, w + part * dw) for (u, w), (du, dw) in pairs]


def _add(H: np.ndarray, rows: Sequence[Rows]) -> None:
    """Subtract from H the impulse derivatives of contacts that have their own Jacobian.

    Symmetric terms are computed once for both sides of the diagonal.
    """
    for i in range(len(H)):
        for j in range(i + 1):
            both = H[i, j]
            for k, r in (term for each in rows for term in each.symmetric):
                if not absent(r[i]) and not absent(r[j]):
                    both = both + k * r[i] * r[j]
            H[i, j] = H[j, i] = both
            for _, left, n in rows:
                if left is not None and not absent(n[j]):
                    H[i, j] = H[i, j] + left[i] * n[j]
                if left is not None and not absent(n[i]) and i != j:
                    H[j, i] = H[j, i] + left[j] * n[i]


def _between(a: list[Any], b: list[Any], spatial: list[np.ndarray], sums: Any) -> Number:
    """Return the sum of a'K b over all contact Jacobians, where a and b are columns of a Jacobian.

    K is the negative derivative of contact impulses with respect to velocity, one matrix per
    Jacobian, in `spatial`. The arguments `a` and `b` contain one column of each Jacobian.
    Jacobians in which a or b is zero are skipped. `sums` caches sums of K, and the products of
    these sums with columns.
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
