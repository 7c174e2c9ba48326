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
from typing import Any

import numpy as np

from chasles.expr import RULES, Arena, Number, Program, Variable, jacobian
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
from chasles.motion.steps.algebra import dot, solved, symmetric, zeros
from chasles.motion.steps.bodies import (
    body_jacobian,
    centred,
    free_places,
    moved,
    neutral_posture,
    numbers_of,
    origin_of,
    placed,
    span_of,
    viscous_damping,
    weight_of,
)
from chasles.motion.steps.carried import Carried
from chasles.motion.steps.convex import Newton, Problem, Stop, Touch
from chasles.motion.steps.impulses import IMPACT, NORMAL, TANGENT, bound
from chasles.motion.steps.slots import Spot, meeting
from chasles.motion.steps.stiction import dry_friction

TOLERANCE = 1e-6
"""The residual of the momentum balance at which a convex problem is solved, of the momentum."""

CONSISTENT = 3e-3
"""Inconsistency with friction by the new normal impulses below which these are not updated again,
as a part of the impulse of all smooth forces in the step.
"""

NEARLY = 1e-1
"""Residual of the convex problem from which on they are updated again."""

HELD_ANEW = 3
"""Largest number of updates in a step of the normal impulses that bound friction."""

FLOOR = 1e-9
"""Added to that momentum: of a velocity of this many m/s or rad/s."""

MEMORY = 5
"""Numbers of a memory before the impulses that are held: status, iterations, residual, times held,
and 1 where the next step is a cautious one.

Status: 0 while it goes on, 1 solved, 2 not solved."""

MOST = 40
"""Iterations of a step, at most."""


@dataclass(frozen=True)
class Scene:
    """Everything that acts on a robot in a step: contact pairs, joint limits, dry friction,
    damping.

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
        places = placed(self.model, arena, q, self.pairs)
        found = []
        for pair in self.pairs:
            meet = meeting(pair.body, pair.surface)
            assert meet is not None, "checked before"
            over, under = (places[f] for f in (pair.body.frame, pair.surface.frame))
            found += [(pair, spot) for spot in meet(pair.body, over, pair.surface, under)]
        return found


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
        for at in free_places(model):
            w, u = v[at : at + 3], v[at + 3 : at + 6]
            steady[at + 3 : at + 6] = u + dt * cross(w, u)
            steady[at : at + 3] = w + _unheated(M[at : at + 3, at : at + 3], w, dt)
        p = M @ steady + dt * (tau - h) + dt * (D @ v)
        self._set(arena, q, v, M, H, p)

    def _forces(
        self, arena: Arena, given: Mapping[str, Any]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Joint forces, and minus their derivatives by position and velocity, symmetric."""
        n, v = self.model.nv, given["qd"]
        K, D = zeros(n, n), zeros(n, n)
        if self.control is None:
            tau = given["tau"]
        else:
            known = {x.name: given[x.name] for x in self.control.inputs}
            tau = result(self.control, arena, known)
            used = {x.name for x in self.control.inputs}
            if "qd" in used:
                D = D - symmetric(result(jacobian(self.control, ["qd"]), arena, known))
            if "q" in used:
                slope = result(jacobian(self.control, ["q"]), arena, known)
                rates = program(self.model, "integrate", derivative=Derivative("jacobian", ("v",)))
                way = result(rates, arena, {"q": given["q"], "v": [0.0] * n})
                K = K - symmetric(slope @ way)
        if self.scene.dissipation:
            damping = viscous_damping(self.model)
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
        mass = np.linalg.pinv(numbers_of(program(model, "mass_matrix"), q=neutral_posture(model)))
        places = [k for i in model.in_tree_order for k in range(*span_of(model, i))]
        carriers, touches, gaps = self._touches(arena, q, mass)
        self.early: Number = 0.0
        self._rate: Any = None
        if any(touch.law.restitution for touch in touches):
            touches = self._bouncing(v, H, p, carriers, touches, gaps, places)
        friction = dry_friction(model) if scene.dissipation else np.zeros(model.nv)
        dry = [
            (int(k), dt * float(friction[k]), 1.0 / (TANGENT * mass[k, k]))
            for k in np.flatnonzero(friction)
        ]
        diagonal = np.array([M[k, k] for k in range(model.nv)], dtype=object)
        inverse = 1.0 / diagonal
        moved = p - H @ v  # what smooth forces add
        weight = np.sum(moved * moved * inverse) + FLOOR * FLOOR * np.sum(diagonal)
        scale = np.sum(p * p * inverse) + weight
        stops = self._stops(q, mass)
        self._problem = Problem(
            H, p, inverse, scale, weight, carriers, touches, stops, dry, tuple(places)
        )
        kept = [H, p, inverse, scale, weight, *carriers, self.early, *(s.bound for s in stops)]
        for touch in touches:
            kept += [touch.point, touch.axes, touch.bound]
        for part in (*kept, *([] if self._rate is None else [self._rate])):
            self._carried.put(part)

    def _touches(
        self, arena: Arena, q: np.ndarray, mass: np.ndarray
    ) -> tuple[list[np.ndarray], list[Touch], list[Number]]:
        """Relative Jacobians of all pairs of bodies, slots of contact, and their gaps."""
        model, near, neutral = self.model, centred(self.model, q), neutral_posture(self.model)
        spots, origin = self.scene.spots(arena, q), origin_of(model, q - near)
        keys = list(dict.fromkeys(pair.frames for pair, _ in spots))
        carriers = [
            body_jacobian(model, arena, over, near) - body_jacobian(model, arena, under, near)
            for over, under in keys
        ]
        touches = []
        for pair, spot in spots:
            weight = weight_of(model, pair, neutral, mass)
            assert isinstance(pair.law, Rigid | Compliant), "checked before"
            ends = _normal(spot.gap, pair.law, weight, self.dt)
            which, axes = keys.index(pair.frames), contact_axes(np.asarray(spot.normal))
            touches.append(Touch(which, spot.point - origin, axes, *ends, pair.law, weight))
        return carriers, touches, [spot.gap for _, spot in spots]

    def _stops(self, q: np.ndarray, mass: np.ndarray) -> list[Stop]:
        """Joints at their limits."""
        found = []
        for place, coordinate, lower, upper in self.scene.limits:
            for sign, limit in ((1.0, lower), (-1.0, upper)):
                if np.isfinite(limit):
                    gap = sign * (q[coordinate] - limit)
                    weight = float(mass[place, place])
                    found.append(Stop(place, sign, bound(gap, self.dt), weight))
        return found

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
        ahead_all = solved(H, p, places, None)
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
            before, ahead = dot(row, v), dot(row, ahead_all)
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
        (done, count, _, times, careful), known = memory[:MEMORY], memory[MEMORY:]
        newton = Newton(self._elsewhere(data), self.dt)
        start = newton.held(newton.velocities(v))
        held = [select(less(0.5, count), old, new) for old, new in zip(known, start, strict=True)]
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
        there, last = moved(model, arena, q, way, v)
        newton = Newton(self._elsewhere(data), dt)
        results = {"q": list(there), "qd": list(last)}
        results["forces"] = (
            (newton.forces(v, given["memory"][MEMORY:]) / dt).ravel().tolist() if self.slots else []
        )
        failed = less(1.5, given["memory"][0])
        effort = given["effort"] + np.array([given["memory"][1], failed], dtype=object)
        results["effort"] = list(effort)
        outputs = [(Variable(name, (n,)), results[name]) for name, n in self.states.items()]
        return Program.from_outputs("end", inputs, outputs)


# Small parts --------------------------------------------------------------------------------------


def _normal(gap: Number, law: Rigid | Compliant, weight: float, dt: float) -> tuple[Number, float]:
    """Bound and stiffness of a normal impulse: at the end of the step, implicit."""
    if isinstance(law, Compliant):
        time = dt + law.relaxation
        return (-1.0 / time) * gap, dt * law.stiffness * time
    return bound(gap, dt), 1.0 / (NORMAL * weight)


def _unheated(inertia: np.ndarray, w: np.ndarray, dt: float) -> np.ndarray:
    """The change of an angular velocity that takes back energy of an explicit gyroscopic torque."""
    momentum = inertia @ w
    ahead = w - dt * solved(inertia, cross(w, momentum), (0, 1, 2), None)
    before, after = dot(w, momentum), dot(ahead, inertia @ ahead)
    part = sqrt(minimum(before / maximum(after, 1e-300), 1.0))
    return (part - 1.0) * ahead


def _normal_row(J: np.ndarray, touch: Touch) -> np.ndarray:
    """The Jacobian (nv,) of the velocity along the normal of a slot."""
    n = touch.axes[2]
    wrench = np.concatenate([cross(touch.point, n), n])
    return np.array([dot(wrench, J[:, k]) for k in range(J.shape[1])], dtype=object)
