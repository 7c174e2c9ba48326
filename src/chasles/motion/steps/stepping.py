"""A step of time with contact, by a convex problem in the velocities: three programs.

The velocities v at the end of a step satisfy

    (M + dt D + dt^2 K) v = M v0 + dt (tau - h) + dt D v0 + J' g(J v)

with K and D the symmetric parts of the derivatives of joint forces (damping, controllers) by
position and velocity, and impulses g of a convex potential (`impulses`). `begin` computes all that
stays the same, `refine` makes a step of Newton's method with a line search, `end` moves the robot.
Free joints keep their linear velocity along the world's axes, so that spinning does not feed it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from chasles.expr import RULES, Arena, Number, Program, Scalar, Variable, interpret, jacobian
from chasles.functions.programs import Derivative, program
from chasles.model import Model
from chasles.motion.contact.pairs import Compliant, Pair, Rigid
from chasles.motion.geometry.closed_forms import (
    contact_axes,
    cross,
    less,
    less_equal,
    maximum,
    minimum,
    select,
    sqrt,
)
from chasles.motion.geometry.kinematics import result, symbols
from chasles.motion.steps.impulses import (
    IMPACT,
    NORMAL,
    SLOW,
    TANGENT,
    Friction,
    Normal,
    bound,
)
from chasles.motion.steps.slots import Placed, Spot, meeting
from chasles.motion.steps.stiction import dry_friction

TOLERANCE = 1e-6
"""The residual of the momentum balance at which a convex problem is solved, of the momentum."""

CONSISTENT = 3e-3
"""That with friction by the new normal impulses, below which these are not held anew, as a part of
the impulse of all smooth forces in the step."""

NEARLY = 1e-1
"""The residual of the convex problem from which on they are held anew."""

HELD_ANEW = 3
"""How often normal impulses that bound friction are held anew in a step, at most."""

FLOOR = 1e-9
"""Added to that momentum: of a velocity of this many m/s or rad/s."""

MEMORY = 5
"""Numbers of a memory before the impulses that are held: status, iterations, residual, times held,
and 1 where the next step is a cautious one.

Status: 0 while it goes on, 1 solved, 2 not solved."""

MOST = 40
"""Iterations of a step, at most."""

TURNS = ("newton", "kink", "newton", "kink", "newton", "newton")
"""Points of the line search: Newton's from the last point, the slowest point of the friction that
bends most between the ends of the bracket, or the middle."""

ENOUGH = 0.1
"""A whole step is taken where the slope there is at most this part of that at its start."""

PIVOT = 1e-9
"""The least pivot of the Hessian, as a part of the diagonal of M."""


@dataclass(frozen=True)
class Scene:
    """What acts on a robot in a step: pairs that touch, stops of joints, dry friction, damping.

    limits: (velocity, lower, upper) of joints of one degree of freedom that stop there.
    """

    model: Model
    pairs: tuple[Pair, ...]
    limits: tuple[tuple[int, int, float, float], ...] = ()
    dissipation: bool = False

    @property
    def slots(self) -> int:
        """The number of slots of contact."""
        arena = Arena(RULES)
        return len(self.spots(arena, symbols(arena, "q", (self.model.nq,))))

    def spots(self, arena: Arena, q: np.ndarray) -> list[tuple[Pair, Spot]]:
        """All slots at a posture, each with its pair."""
        places = _placed(self.model, arena, q, self.pairs)
        found = []
        for pair in self.pairs:
            meet = meeting(pair.body, pair.surface)
            assert meet is not None, "checked before"
            over, under = (places[f] for f in (pair.body.frame, pair.surface.frame))
            found += [(pair, spot) for spot in meet(pair.body, over, pair.surface, under)]
        return found


def _placed(
    model: Model, arena: Arena, q: np.ndarray, pairs: Sequence[Pair]
) -> dict[str | None, Placed]:
    frames = dict.fromkeys(f for pair in pairs for f in (pair.body.frame, pair.surface.frame))
    found: dict[str | None, Placed] = {None: Placed(np.eye(3), np.zeros(3))}
    for name in frames:
        if name is not None:
            pose = result(program(model, "forward_kinematics", frame=name), arena, {"q": q})
            found[name] = Placed(pose[:3, :3], pose[:3, 3])
    return found


# What is carried from one program to the next ----------------------------------------------------


class Carried:
    """Expressions of `begin` that other programs need: one array `data`."""

    def __init__(self) -> None:
        self.entries: list[Number] = []
        self._known: dict[int, int] = {}

    def put(self, value: Any) -> None:
        """Keep all expressions of an array that are not numbers."""
        for x in np.ravel(np.asarray(value, dtype=object)):
            known, _ = _unsigned(x)
            if isinstance(known, Scalar) and id(known) not in self._known:
                self._known[id(known)] = len(self.entries)
                self.entries.append(known)

    def seen(self, data: np.ndarray, value: Any) -> np.ndarray:
        """The same array in another program, whose input is `data`."""
        array = np.asarray(value, dtype=object)
        flat = []
        for x in array.ravel():
            known, negative = _unsigned(x)
            there = data[self._known[id(known)]] if isinstance(known, Scalar) else known
            flat.append(-there if negative else there)
        return np.array(flat, dtype=object).reshape(array.shape)


def _unsigned(x: Any) -> tuple[Any, bool]:
    """What an expression is the negative of, if it is one."""
    if isinstance(x, Scalar) and x.op == "neg":
        return x.args[0], True
    return x, False


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


class Steps:
    """The three programs of a step; control: joint forces of t, q, qd and perhaps parameters."""

    def __init__(self, scene: Scene, dt: float, control: Program | None) -> None:
        self.scene, self.dt, self.control, self.model = scene, dt, control, scene.model
        self._carried = Carried()
        self._arena = Arena(RULES)
        self._begin()

    # The beginning ------------------------------------------------------------------------------

    def _begin(self) -> None:
        model, arena, dt = self.model, self._arena, self.dt
        own = {"tau": model.nv}
        if self.control is not None:
            own = {v.name: v.size for v in self.control.inputs if v.name == "parameters"}
        self.slots = self.scene.slots
        states = {"q": model.nq, "qd": model.nv, "forces": 3 * self.slots, "effort": 2}
        self.states = {name: n for name, n in states.items() if n}
        sizes = self.states | own
        self.inputs = [Variable(n, (s,)) for n, s in sizes.items()] + [Variable("t", ())]
        given = {name: symbols(arena, name, (n,)) for name, n in sizes.items()}
        given["t"] = symbols(arena, "t", (1,))
        self._given = given
        q, v = given["q"], given["qd"]
        M = result(program(model, "mass_matrix"), arena, {"q": q})
        h = result(program(model, "bias_forces"), arena, {"q": q, "qd": v})
        tau, K, D = self._forces(arena, given)
        H = M + dt * D + dt * dt * K
        # Linear velocities of free joints along the world's axes: without the rate of turning.
        steady = v.copy()
        for at in _free(model):
            w, u = v[at : at + 3], v[at + 3 : at + 6]
            steady[at + 3 : at + 6] = u + dt * cross(w, u)
        p = M @ steady + dt * (tau - h) + dt * (D @ v)
        self._set(arena, q, v, M, H, p)

    def _forces(
        self, arena: Arena, given: Mapping[str, Any]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Joint forces, and minus their derivatives by position and velocity, symmetric."""
        n, v = self.model.nv, given["qd"]
        K, D = _zeros(n, n), _zeros(n, n)
        if self.control is None:
            tau = given["tau"]
        else:
            known = {x.name: given[x.name] for x in self.control.inputs}
            tau = result(self.control, arena, known)
            used = {x.name for x in self.control.inputs}
            if "qd" in used:
                D = D - _symmetric(result(jacobian(self.control, ["qd"]), arena, known))
            if "q" in used:
                slope = result(jacobian(self.control, ["q"]), arena, known)
                rates = program(
                    self.model, "integrate", derivative=Derivative("jacobian", ("v",))
                )
                way = result(rates, arena, {"q": given["q"], "v": [0.0] * n})
                K = K - _symmetric(slope @ way)
        if self.scene.dissipation:
            damping = _damping(self.model)
            tau = tau - damping * v
            D = D + np.diag(damping)
        return tau, K, D

    def _set(
        self,
        arena: Arena,
        q: np.ndarray,
        v: np.ndarray,
        M: np.ndarray,
        H: np.ndarray,
        p: np.ndarray,
    ) -> None:
        """The problem, and what restitution makes of the way."""
        model, scene, dt = self.model, self.scene, self.dt
        near = _centred(model, q)
        spots = scene.spots(arena, q)
        shift = q - near
        origin = _origin(model, shift)
        keys = list(dict.fromkeys((p.body.frame, p.surface.frame) for p, _ in spots))
        neutral = _neutral(model)
        carriers, weights = [], []
        for over, under in keys:
            carriers.append(_jacobian(model, arena, over, near) - _jacobian(model, arena, under, near))
        mass = np.linalg.pinv(_numbers(program(model, "mass_matrix"), q=neutral))
        for pair, _ in spots:
            weights.append(_weight(model, pair, neutral, mass))
        order = model.in_tree_order
        places = [k for i in order for k in range(*_range(model, i))]
        touches, gaps = [], []
        for (pair, spot), weight in zip(spots, weights, strict=True):
            axes = contact_axes(np.asarray(spot.normal))
            which = keys.index((pair.body.frame, pair.surface.frame))
            ends = _normal(spot.gap, pair.law, weight, dt)
            touch = Touch(which, spot.point - origin, axes, *ends, pair.law, weight)
            touches.append(touch)
            gaps.append(spot.gap)
        self.early: Number = 0.0
        self._rate: Any = None
        if any(touch.law.restitution for touch in touches):
            touches = self._bouncing(v, H, p, carriers, touches, gaps, places)
        stops = []
        for place, coordinate, lower, upper in scene.limits:
            for sign, gap in ((1.0, q[coordinate] - lower), (-1.0, upper - q[coordinate])):
                if gap not in (np.inf, -np.inf):
                    stops.append(Stop(place, sign, bound(gap, dt), float(mass[place, place])))
        friction = dry_friction(model) if scene.dissipation else np.zeros(model.nv)
        dry = [
            (int(k), dt * float(friction[k]), 1.0 / (TANGENT * mass[k, k]))
            for k in np.flatnonzero(friction)
        ]
        diagonal = np.array([M[k, k] for k in range(model.nv)], dtype=object)
        inverse = 1.0 / diagonal
        moved = p - H @ v  # what smooth forces would add
        weight = np.sum(moved * moved * inverse) + FLOOR * FLOOR * np.sum(diagonal)
        scale = np.sum(p * p * inverse) + weight
        self._problem = Problem(
            H, p, inverse, scale, weight, carriers, touches, stops, dry, tuple(places)
        )
        for part in (H, p, inverse, scale, weight, *carriers, self.early):
            self._carried.put(part)
        for touch in touches:
            self._carried.put([*touch.point, *touch.axes.ravel(), touch.bound])
        for stop in stops:
            self._carried.put(stop.bound)
        if self._rate is not None:
            self._carried.put(self._rate)

    def _bouncing(
        self,
        v: np.ndarray,
        H: np.ndarray,
        p: np.ndarray,
        carriers: Sequence[np.ndarray],
        touches: Sequence[Touch],
        gaps: Sequence[Number],
        places: Sequence[int],
    ) -> list[Touch]:
        """Bounds with restitution, and the time of the first impact in the step.

        Stored velocities are those of half a step before, so that the parabola of a fall is exact.
        """
        dt, found = self.dt, []
        ahead_all = _solved(H, p, places, None)
        self._rate = (ahead_all - v) / dt
        early: Number = dt
        any_hit: Number = 0.0
        fall = IMPACT * float(np.linalg.norm([*self.model.gravity_vector])) * dt
        for touch, gap in zip(touches, gaps, strict=True):
            e = touch.law.restitution
            if not e:
                found.append(touch)
                continue
            row = _normal_row(carriers[touch.carrier], touch)
            before, ahead = _dot(row, v), _dot(row, ahead_all)
            u, a = 0.5 * (before + ahead), (ahead - before) / dt
            root = sqrt(maximum(u * u - 2.0 * a * gap, 0.0))
            when = 2.0 * maximum(gap, 0.0) / maximum(root - u, 1e-12)
            hit = -(u + a * when)
            strikes = less(gap + dt * ahead, 0.0) * less(fall, hit)
            leave = e * hit + a * (0.5 * dt - when)
            early = select(strikes, minimum(early, when), early)
            any_hit = maximum(any_hit, strikes)
            found.append(
                touch._replace(bound=select(strikes, maximum(leave, touch.bound), touch.bound))
            )
        self.early = select(any_hit, early, 0.0)
        return found

    @property
    def begin(self) -> Program:
        """Point, memory and data of a step."""
        n = self.model.nv
        outputs = [
            (Variable("point", (n,)), list(self._given["qd"])),
            (Variable("memory", (MEMORY + self.slots,)), [0.0] * (MEMORY + self.slots)),
            (Variable("data", (len(self._carried.entries),)), self._carried.entries),
        ]
        return Program.from_outputs("begin", self.inputs, outputs)

    def _elsewhere(self, data: np.ndarray) -> Problem:
        """The problem in another program."""
        known, seen = self._problem, self._carried.seen
        touches = [
            touch._replace(
                point=seen(data, touch.point),
                axes=seen(data, touch.axes),
                bound=seen(data, touch.bound).item(),
            )
            for touch in known.touches
        ]
        stops = [s._replace(bound=seen(data, s.bound).item()) for s in known.stops]
        return known._replace(
            H=seen(data, known.H),
            p=seen(data, known.p),
            inverse=seen(data, known.inverse),
            scale=seen(data, known.scale).item(),
            weight=seen(data, known.weight).item(),
            carriers=[seen(data, J) for J in known.carriers],
            touches=touches,
            stops=stops,
        )

    @property
    def _between(self) -> list[Variable]:
        sizes = {"point": self.model.nv, "memory": MEMORY + self.slots}
        sizes |= {"data": len(self._carried.entries)}
        return [Variable(name, (n,)) for name, n in sizes.items()]

    # The iteration ------------------------------------------------------------------------------

    @property
    def refine(self) -> Program:
        """Newton's step with a line search."""
        arena = Arena(RULES)
        v, memory, data = (symbols(arena, x.name, x.shape) for x in self._between)
        (done, count, _, times, careful), held = memory[:MEMORY], memory[MEMORY:]
        newton = Newton(self._elsewhere(data), self.dt)
        start = newton.held(newton.velocities(v))
        held = [select(less(0.5, count), old, new) for old, new in zip(held, start, strict=True)]
        found = newton.step(v, held, careful)
        solved = less_equal(found.residual, TOLERANCE)
        enough = maximum(less_equal(found.rest, CONSISTENT), less_equal(HELD_ANEW, times))
        over = maximum(solved * enough, 2.0 * less_equal(MOST, count + 1.0))
        anew = less_equal(found.residual, NEARLY) * (1.0 - enough)
        later = [over, count + 1.0, found.residual, times + anew, 1.0 - careful]
        # From the second time on half of the change: alternating impulses meet.
        part = anew * select(less(0.5, times), 0.5, 1.0)
        later += [old + part * (new - old) for old, new in zip(held, found.held, strict=True)]
        kept = [select(done, old, new) for old, new in zip(v, found.v, strict=True)]
        later = [select(done, old, new) for old, new in zip(memory, later, strict=True)]
        outputs = [(Variable("point", v.shape), kept), (Variable("memory", memory.shape), later)]
        return Program.from_outputs("refine", self._between, outputs)

    # The end ------------------------------------------------------------------------------------

    @property
    def end(self) -> Program:
        """The state after the step."""
        model, arena, dt = self.model, Arena(RULES), self.dt
        inputs = [*self.inputs, *self._between]
        given = {x.name: symbols(arena, x.name, (x.size,)) for x in inputs}
        q, v0, v, data = (given[name] for name in ("q", "qd", "point", "data"))
        way = dt * v
        early = self._carried.seen(data, self.early).item()
        if self._rate is not None:
            rate, rest = self._carried.seen(data, self._rate), dt - early
            before = v0 + 0.5 * rate * (dt + early)
            way = early * before + rest * (v + 0.5 * rate * early)
        there, last = _moved(model, arena, q, way, v)
        newton = Newton(self._elsewhere(data), dt)
        results = {"q": list(there), "qd": list(last)}
        results["forces"] = (newton.forces(v, given["memory"][MEMORY:]) / dt).ravel().tolist() if self.slots else []
        failed = less(1.5, given["memory"][0])
        effort = given["effort"] + np.array([given["memory"][1], failed], dtype=object)
        results["effort"] = list(effort)
        outputs = [(Variable(name, (n,)), results[name]) for name, n in self.states.items()]
        return Program.from_outputs("end", inputs, outputs)


# Newton's method ----------------------------------------------------------------------------------


class Refined(NamedTuple):
    """Velocities after a step of Newton's method; residuals there, and new normal impulses.

    residual: with friction by the impulses that were held; rest: by the new ones.
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
            twist: np.ndarray = _zeros(6)
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
            self._normal(touch).impulse(u[2]) for touch, (u, _) in zip(self.p.touches, at, strict=True)
        ]

    def _impulse(
        self, touch: Touch, held: Number, u: np.ndarray, w: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Impulse and moment of a slot along its axes."""
        law, stiff = touch.law, 1.0 / (TANGENT * touch.weight)
        linear = np.array([0.0, 0.0, self._normal(touch).impulse(u[2])], dtype=object)
        turning = _zeros(3)
        if law.friction:
            linear[:2] = Friction(law.friction * held, stiff).impulse(u[:2])
        if law.torsion:
            turning[2:] = Friction(law.torsion * held, stiff * law.torsion**2).impulse(w[2:])
        if law.rolling:
            turning[:2] = Friction(law.rolling * held, stiff * law.rolling**2).impulse(w[:2])
        return linear, turning

    def _impulses(
        self, at: Sequence[tuple[np.ndarray, np.ndarray]], held: Sequence[Number]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        return [
            self._impulse(touch, f, u, w)
            for touch, f, (u, w) in zip(self.p.touches, held, at, strict=True)
        ]

    def forces(self, v: np.ndarray, held: Sequence[Number]) -> np.ndarray:
        """Impulses on the bodies along the world's axes (k, 3)."""
        found = self._impulses(self.velocities(v), held)
        each = [linear @ t.axes for (linear, _), t in zip(found, self.p.touches, strict=True)]
        return np.array(each, dtype=object).reshape(-1, 3)

    def _gradient(
        self, v: np.ndarray, impulses: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> np.ndarray:
        p = self.p
        g = np.array([_dot(row, v) for row in p.H], dtype=object) - p.p
        total: list[np.ndarray] = [_zeros(6) for _ in p.carriers]
        for (linear, turning), touch in zip(impulses, p.touches, strict=True):
            f = linear @ touch.axes
            moment = cross(touch.point, f)
            if touch.law.torsion or touch.law.rolling:
                moment = moment + turning @ touch.axes
            total[touch.carrier] = total[touch.carrier] + np.concatenate([moment, f])
        for k in range(len(v)):
            columns = _columns(p.carriers, k)
            for J, wrench in _grouped(columns, total):
                g[k] = g[k] - _dot(J, wrench)
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
        held: Sequence[Number],
        exact: Number,
    ) -> np.ndarray:
        p = self.p
        n, H = len(v), p.H.copy()
        spatial = [_zeros(6, 6) for _ in p.carriers]
        for touch, f, (u, w) in zip(p.touches, held, at, strict=True):
            spatial[touch.carrier] = spatial[touch.carrier] + self._stiffness(touch, f, u, w, exact)
        signed = [_columns(p.carriers, k) for k in range(n)]
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
                        sums[key] = _total([s * spatial[c] for c, s in key])
                    column = ("F", key, id(b))
                    if column not in sums:
                        sums[column] = np.array([_dot(row, b) for row in sums[key]], dtype=object)
                    H[i, j] = H[i, j] + _dot(a, sums[column])
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
        P = _skew(touch.point)
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

    def step(self, v: np.ndarray, held: Sequence[Number], careful: Number) -> Refined:
        """A step of Newton's method with normal impulses held, and the residuals after it.

        careful: 1 takes friction to grow with the speed along the slip too, a bound from above of
        the potential. Such steps find what sticks, others what slides; they are taken in turn.
        """
        at = self.velocities(v)
        g = self._gradient(v, self._impulses(at, held))
        floor = PIVOT / self.p.inverse
        d = -_solved(self._hessian(v, at, held, 1.0 - careful), g, self.p.order, floor)
        new = v + self._line(v, d, at, held, g) * d
        there = self.velocities(new)
        later = self.held(there)
        residuals = []
        for which, scale in ((held, self.p.scale), (later, self.p.weight)):
            rest = self._gradient(new, self._impulses(there, which))
            residuals.append(sqrt(np.sum(rest * rest * self.p.inverse) / scale))
        return Refined(new, *residuals, later)

    def _line(
        self,
        v: np.ndarray,
        d: np.ndarray,
        at: Sequence[tuple[np.ndarray, np.ndarray]],
        held: Sequence[Number],
        g: np.ndarray,
    ) -> Number:
        """The part of a direction at which the potential is least, between 0 and 1."""
        p, first = self.p, _dot(g, d)
        Hd = np.array([_dot(row, d) for row in p.H], dtype=object)
        parts = [_Straight(_dot(Hd, v) - _dot(p.p, d), _dot(Hd, d))]
        for touch, f, u, du in zip(p.touches, held, at, self.velocities(d), strict=True):
            parts += self._along(touch, f, u, du)
        for stop in p.stops:
            term, k = Normal(stop.bound, 1.0 / (NORMAL * stop.weight)), stop.place
            parts.append(_Push(term, stop.sign * v[k], stop.sign * d[k]))
        for k, limit, stiff in p.dry:
            parts.append(_Rub.of(Friction(limit, stiff), v[k : k + 1], d[k : k + 1]))

        def slope(alpha: Number) -> np.ndarray:
            return _total([np.array(part(alpha), dtype=object) for part in parts])

        low, high = (0.0, first, 0.0), (1.0, *slope(1.0))
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
        low, above, high = low[0], high[1], high[0]
        # Beyond a kink, so that the next Hessian knows of it, unless that is too far.
        last = select(less_equal(above, -first) + less_equal(low, 0.0), high, low)
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
        return _Rub(law, _dot(v, v), _dot(v, dv), _dot(dv, dv))

    def __call__(self, alpha: Number) -> tuple[Number, Number]:
        rate = self.b + alpha * self.c
        k, inverse = self.law.factor(maximum(self.a + alpha * (self.b + rate), 0.0))
        return k * rate, k * (self.c - rate * rate * inverse)


def _sharpest(parts: Sequence[Any], low: Number, high: Number, middle: Number) -> Number:
    """Where friction turns round that has the largest jump, inside a bracket; else its middle."""
    best: Number = 0.0
    place = middle
    for part in parts:
        if isinstance(part, _Rub):
            at, jump = -part.b / maximum(part.c, SLOW), part.law.limit * part.law.limit * part.c
            better = less(low, at) * less(at, high) * less(best, jump)
            best, place = select(better, jump, best), select(better, at, place)
    return place


# Small parts --------------------------------------------------------------------------------------


def absent(x: Any) -> bool:
    """Return True for a number that is zero, which no symbol is."""
    return not isinstance(x, Scalar) and x == 0.0


def _zeros(*shape: int) -> np.ndarray:
    """An array of numbers that may become expressions."""
    return np.full(shape, 0.0, dtype=object)


def _dot(a: Any, b: Any) -> Number:
    total: Number = 0.0
    for x, y in zip(a, b, strict=True):
        if not absent(x) and not absent(y):
            total = total + x * y
    return total


def _total(parts: Sequence[np.ndarray]) -> np.ndarray:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole


def _normal(
    gap: Number, law: Rigid | Compliant, weight: float, dt: float
) -> tuple[Number, float]:
    """Bound and stiffness of a normal impulse: at the end of the step, implicit."""
    if isinstance(law, Compliant):
        time = dt + law.relaxation
        return (-1.0 / time) * gap, dt * law.stiffness * time
    return bound(gap, dt), 1.0 / (NORMAL * weight)


def _symmetric(A: np.ndarray) -> np.ndarray:
    return 0.5 * (A + A.T)


def _skew(r: np.ndarray) -> np.ndarray:
    x, y, z = r
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]], dtype=object)


def _columns(carriers: Sequence[np.ndarray], k: int) -> list[Any]:
    """Column k of each carrier as (shared column, sign), None where it is zero.

    Columns that are equal, or opposite, are one object.
    """
    found: list[Any] = []
    unique: list[np.ndarray] = []
    for J in carriers:
        column = J[:, k]
        if all(absent(x) for x in column):
            found.append(None)
            continue
        for known in unique:
            if _same(known, column):
                found.append((known, 1.0))
                break
            if _same(known, -column):
                found.append((known, -1.0))
                break
        else:
            unique.append(column)
            found.append((column, 1.0))
    return found


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return all(x is y or (not isinstance(x, Scalar) and x == y) for x, y in zip(a, b, strict=True))


def _grouped(columns: Sequence[Any], wrenches: Sequence[np.ndarray]) -> list[tuple[Any, Any]]:
    """Each distinct column with the sum of the wrenches that act along it."""
    found: list[list[Any]] = []
    for column, wrench in zip(columns, wrenches, strict=True):
        if column is None:
            continue
        for row in found:
            if row[0] is column[0]:
                row[1] = row[1] + column[1] * wrench
                break
        else:
            found.append([column[0], column[1] * wrench])
    return [(a, b) for a, b in found]


def _solved(
    A: np.ndarray, b: np.ndarray, order: Sequence[int], floor: np.ndarray | None
) -> np.ndarray:
    """x of A x = b by A = L' D L from the last row of the tree order on, with pivots above floor."""
    n, places = len(order), list(order)
    lower = [
        [A[max(places[i], places[j]), min(places[i], places[j])] for j in range(i + 1)]
        for i in range(n)
    ]
    D: list[Number] = [0.0] * n
    for k in range(n - 1, -1, -1):
        pivot = lower[k][k]
        D[k] = 1.0 / (pivot if floor is None else maximum(pivot, floor[places[k]]))
        for i in (i for i in range(k - 1, -1, -1) if not absent(lower[k][i])):
            a = lower[k][i] * D[k]
            for j in range(i + 1):
                if not absent(lower[k][j]):
                    lower[i][j] = lower[i][j] - a * lower[k][j]
            lower[k][i] = a
    x = [b[k] for k in places]
    for i in range(n - 1, -1, -1):
        for j in range(i):
            if not absent(lower[i][j]):
                x[j] = x[j] - lower[i][j] * x[i]
    x = [value * d for value, d in zip(x, D, strict=True)]
    for i in range(n):
        for j in range(i):
            if not absent(lower[i][j]):
                x[i] = x[i] - lower[i][j] * x[j]
    found = _zeros(n)
    found[places] = x
    return found


def _normal_row(J: np.ndarray, touch: Touch) -> np.ndarray:
    """The Jacobian (nv,) of the velocity along the normal of a slot."""
    n = touch.axes[2]
    wrench = np.concatenate([cross(touch.point, n), n])
    return np.array([_dot(wrench, J[:, k]) for k in range(J.shape[1])], dtype=object)


def _range(model: Model, body: int) -> tuple[int, int]:
    part = model.velocity_slices[body]
    return part.start, part.stop


def _free(model: Model) -> list[int]:
    """Where the velocities of free joints begin."""
    return [
        model.velocity_slices[i].start
        for i in model.movers
        if model.bodies[i].data.traits.floating
    ]


def _moved(
    model: Model, arena: Arena, q: np.ndarray, way: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Position after a way, and velocities along the axes that bodies have then."""
    turn, last = way.copy(), v.copy()
    free = [i for i in model.movers if model.bodies[i].data.traits.floating]
    for i in free:
        at = model.velocity_slices[i].start
        turn[at + 3 : at + 6] = 0.0
    there = result(program(model, "integrate"), arena, {"q": q, "v": turn})
    for i in free:
        at, place = model.velocity_slices[i].start, model.position_slices[i].start
        old, new = (_rotation(x[place : place + 4]) for x in (q, there))
        shift = old @ way[at + 3 : at + 6]
        there[place + 4 : place + 7] = q[place + 4 : place + 7] + shift
        last[at + 3 : at + 6] = new.T @ (old @ v[at + 3 : at + 6])
    return there, last


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    """The rotation of a quaternion (w, x, y, z) of any length."""
    w, x, y, z = quaternion
    s = 2.0 / (w * w + x * x + y * y + z * z)
    return np.array(
        [
            [1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)],
            [s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x)],
            [s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y)],
        ],
        dtype=object,
    )


def _damping(model: Model) -> np.ndarray:
    """Viscous damping along each velocity."""
    found = np.zeros(model.nv)
    for i, body in enumerate(model.bodies):
        for owner, first, ratio in model.shares(i):
            start = model.velocity_slices[owner].start + first
            damping = np.array([float(f) for f in body.joint.damping])
            found[start : start + len(damping)] += ratio * ratio * damping
    return found


def _centred(model: Model, q: np.ndarray) -> np.ndarray:
    """q with its first free joint at the origin, and others beside it: places near zero."""
    roots = [i for i in model.movers if model.bodies[i].parent < 0]
    if not roots or not all(model.bodies[i].data.traits.floating for i in roots):
        return q
    near = q.copy()
    first = model.position_slices[roots[0]].start + 4
    for i in roots:
        at = model.position_slices[i].start + 4
        near[at : at + 3] = q[at : at + 3] - q[first : first + 3]
    return near


def _origin(model: Model, shift: np.ndarray) -> np.ndarray:
    """Where the origin of centred coordinates is in the world."""
    roots = [i for i in model.movers if model.bodies[i].parent < 0]
    if not roots or not all(model.bodies[i].data.traits.floating for i in roots):
        return np.zeros(3)
    at = model.position_slices[roots[0]].start + 4
    return shift[at : at + 3]


def _jacobian(
    model: Model, arena: Arena, frame: str | None, q: np.ndarray
) -> np.ndarray:
    """The Jacobian (6, nv) of a frame's body about the origin, along the world's axes."""
    if frame is None:
        return _zeros(6, model.nv)
    return result(program(model, "jacobian", frame=frame, at="world"), arena, {"q": q})


def _neutral(model: Model) -> np.ndarray:
    joints = (model.bodies[i].joint for i in model.movers)
    return np.array([float(x) for joint in joints for x in joint.neutral()])


def _numbers(found: Program, **given: np.ndarray) -> np.ndarray:
    values = interpret(found, {name: list(x) for name, x in given.items()})
    only = found.outputs[0]
    return np.array(values[only.name]).reshape(only.shape)


def _weight(model: Model, pair: Pair, neutral: np.ndarray, inverse: np.ndarray) -> float:
    """The inverse mass (1/kg) that a pair feels at the neutral posture: mean of three axes."""
    total = 0.0
    for shape in (pair.body, pair.surface):
        if shape.frame is not None:
            J = _numbers(program(model, "jacobian", frame=shape.frame), q=neutral)[3:]
            total += float(np.trace(J @ inverse @ J.T)) / 3.0
    return max(total, 1e-12)

