"""Programs for a time step with contact, as a convex problem in the velocities.

The velocities v at the end of a step satisfy

    (M + dt D + dt^2 K) v = M v0 + dt (tau - h) + dt D v0 + J' g(J v)

where M is the mass matrix, v0 are the initial velocities, tau joint torques and h bias forces. K
and D are the symmetric parts of the negative derivatives of joint torques (damping, controllers)
with respect to position and velocity. J is the Jacobian of contacts, limits and dry friction, and g
are their impulses (`impulses`).

A step consists of several programs. `begin` computes everything that stays constant in the step and
takes a first Newton step. `refine` takes another Newton step. `rescue` takes a step with a line
search, for states for which full Newton steps do not converge. `rescue` consists of `search` and
`brake` (the velocity correction in `braking`), which are separate programs on the CPU, because few
states need a correction. `end` computes the state after the step. Free joints keep their linear
velocity along the world axes, so that spinning adds no energy to the linear motion.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from chasles.expr import RULES, Arena, Number, Program, Variable, jacobian
from chasles.functions.programs import Derivative, program
from chasles.motion.contact.pairs import Compliant, Rigid
from chasles.motion.controls import OWN, durations, kept_within, named_results, only_forces
from chasles.motion.geometry.closed_forms import (
    absolute,
    cross,
    less,
    less_equal,
    maximum,
    minimum,
    select,
)
from chasles.motion.geometry.kinematics import result, symbols
from chasles.motion.steps import braking
from chasles.motion.steps.algebra import absent, solved, symmetric, zeros
from chasles.motion.steps.apart import SOLVE, Apart, Pick, narrowing, solving
from chasles.motion.steps.bodies import (
    Own,
    Weights,
    body_jacobian,
    centered,
    computed,
    described,
    dry_friction,
    free_places,
    mass_matrices,
    moved,
    origin_of,
    span_of,
    unheated,
)
from chasles.motion.steps.bouncing import Free, bouncing
from chasles.motion.steps.carried import Carried
from chasles.motion.steps.closing import Reduction, closed, reduction
from chasles.motion.steps.convex import Newton, Problem
from chasles.motion.steps.impulses import NORMAL
from chasles.motion.steps.lines import (
    Row,
    drawn,
    gathered,
    joint_friction,
    joint_stops,
    line_friction,
    line_stops,
    speed_along,
)
from chasles.motion.steps.parameters import MODEL, Parameters
from chasles.motion.steps.passive import Passive
from chasles.motion.steps.scene import Scene
from chasles.motion.steps.sharing import closest
from chasles.motion.steps.spots import FAR
from chasles.motion.steps.systems import work
from chasles.motion.steps.touching import Slope, Touch, direct, touched

TOLERANCE, ROUGH = 1e-6, 1e-3
"""Tolerances for the relative residual of the momentum balance, in float64 and in float32. Stiff
contacts amplify rounding errors in velocities, which requires a larger tolerance in float32.
"""

FLOOR = 1e-9
"""Velocity (m/s or rad/s) that sets a minimum for the reference momentum by which residuals are
divided. The minimum keeps relative residuals finite if the robot is at rest."""

CARRIED = ("point", "memory", "data")
"""Arrays passed between programs: velocities, solver state (`MEMORY`), and problem data."""

MEMORY = 5
"""Number of leading entries of the solver state `memory`: status, iterations, residual, and the two
previous residuals.

These entries are followed by the gradient, the normal impulses that bound friction after `HOLD`
iterations, the sliding directions, the impulses of dry friction, and the velocity correction
(`braking`). The status is 0 (in
progress), 1 (solved), 2 (solved only with fixed normal impulses) or 3 (not solved).
"""

EFFORT = ("iterations", "unsolved", "residual", "work", "excess", "overflow", "held")
"""Statistics of a simulation.

- iterations: number of Newton iterations.
- unsolved: number of steps that did not converge, or whose friction is inconsistent with the normal
  impulses.
- residual: largest residual of the momentum balance.
- work: work of impulses (J).
- excess: largest difference (J) between the work of impulses in a step and the energy that may be
  released by overlaps and restitution.
- overflow: number of steps in which some overlapping points were ignored, because there were too
  few shared contact slots.
- held: number of unsolved steps that converged once friction was bounded by the normal impulses of
  an earlier iteration.
"""

STATISTICS = (*EFFORT, "singular")
"""Names of the statistics in the array "effort" of the simulation state. The entry "singular" is 1
minus the smallest loop margin (`closing`); the other entries are explained at `EFFORT`."""

QUICK = 5
"""Maximum number of full Newton steps. Further iterations use a line search."""

REPEATED = 1e-3
"""Relative tolerance for equal residuals. If an iteration has the same residual as the iteration
before the last one, the iterations alternate between two states."""

LARGEST, WORSE = 1e30, 10.0
"""Limits on the residual after a Newton step. A step is rejected if its residual exceeds `LARGEST`.
If the iterations alternate between two states, a step is also rejected if the residual grows by
more than the factor `WORSE`. Without these limits, a nearly singular Jacobian may lead to
velocities of 1e5 m/s, from which the line search (`rescue`) may not converge.
"""

LATE = (
    (0, Slope()),
    (8, Slope(0.9, 0.5)),
    (24, Slope(1.0, 0.0)),
    (32, Slope()),
    (36, Slope(1.0, 0.0)),
    (44, Slope()),
    (48, Slope(1.0, 0.0)),
    (56, Slope()),
)
"""Pairs (iteration, factors): from this iteration on, the program `rescue` multiplies the friction
derivatives by these factors.

Steps without the derivative with respect to the normal impulse approach the solution slowly but
steadily. Near the solution, Newton's method usually converges in a few steps; if not, both kinds of
steps alternate.
"""

HOLD, MOST = 60, 100
"""Number of iterations after which friction limits are fixed, and maximum number of iterations.

Friction limits are proportional to the normal impulses.
"""

PATIENT = 48
"""Number of iterations after which the regularized law of dry friction (`lines.Dry`) suffices."""

LONG = 16_000
"""Maximum number of operations for which a linear system is solved in the main program."""

SLACK = 0.5
"""Threshold for the contacts that the first Newton step treats as active. A contact is active if it
would close after a change of its normal velocity by this fraction of the velocity that gravity adds
in a step.
"""


class Steps:
    """Programs of a time step with contact: `begin`, `refine`, `rescue` and `end`.

    Parameters
    ----------
    control : Program | None
        Program for joint torques; None if tau is an input.
    free : Parameters | None
        Parameters of the model and of contacts that are inputs of the step.
    crowded : bool
        True if there are so many potential contact points that `begin` is divided into parts, with
        subprograms that find the closest points.
    """

    def __init__(
        self,
        scene: Scene,
        dt: float,
        control: Program | None,
        free: Parameters | None = None,
        *,
        crowded: bool = False,
    ) -> None:
        self.scene, self.dt, self.control, self.model = scene, dt, control, scene.model
        self._free = Parameters.of(scene.model, scene.pairs, ()) if free is None else free
        self._carried = Carried()
        self._arena, self._crowded = Arena(RULES), crowded
        self._picks: list[Pick] = []
        self._begin()

    # Setup and first Newton step ----------------------------------------------------------------

    def _begin(self) -> None:
        model, arena, dt = self.model, self._arena, self.dt
        own = {"tau": model.nv}
        if self.control is not None:
            own = {v.name: v.size for v in self.control.inputs if v.name in OWN}
        own |= {MODEL: self._free.size} if self._free.size else {}
        unseen = sum(group.size for group in self.scene.unseen)
        own |= {"seen": unseen} if unseen else {}
        self.slots = self.scene.slots
        states = {"q": model.nq, "qd": model.nv, "forces": 3 * self.slots}
        states |= {"act": self._activations, "effort": len(STATISTICS)}
        self.states = {name: n for name, n in states.items() if n}
        sizes = self.states | own
        self.inputs = [Variable(n, (s,)) for n, s in sizes.items()] + [Variable("t", ())]
        given = {name: symbols(arena, name, (n,)) for name, n in sizes.items()}
        given["t"] = symbols(arena, "t", (1,))
        self._given = given
        q, v = given["q"], given["qd"]
        self.own = self._free.of_model(given.get(MODEL))
        M, self._inverse = mass_matrices(model, arena, q, self.own)
        h = computed(model, "bias_forces", arena, {"q": q, "qd": v}, self.own)
        self._lines = drawn(model, arena, q, v, self._inverse, self.own)
        tau, K, D = self._forces(arena, given)
        H = M + (dt * D + dt * dt * K)
        # Free joints keep their linear velocity along the world axes; dt (w x u) cancels the
        # rotation of the body axes.
        steady = v.copy()
        for at in free_places(model):
            w, u = v[at : at + 3], v[at + 3 : at + 6]
            steady[at + 3 : at + 6] = u + dt * cross(w, u)
            steady[at : at + 3] = w + unheated(M[at : at + 3, at : at + 3], w, dt)
        momentum, damped = M @ v, dt * (D @ v)
        p = momentum + M @ (steady - v) + dt * (tau - h) + damped
        self._reduced: Reduction | None = None
        self._smooth: np.ndarray | None = None
        if braking.articulated(model):
            self._smooth = steady
            self._carried.put([*q, *v, *steady, *given.get(MODEL, ())])
        if model.source.closure is not None:
            self._reduced = found = reduction(model, arena, q, v, self.own)
            p = momentum - dt * (M @ found.g) + dt * (tau - h) + damped
            self._set(arena, q, v, found.matrix(M), found.matrix(H), found.vector(p))
        else:
            self._set(arena, q, v, M, H, p)

    def _forces(
        self, arena: Arena, given: Mapping[str, Any]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return joint torques, and the symmetric parts of -dtau/dq and -dtau/dqd."""
        n, v = self.model.nv, given["qd"]
        K, D = zeros(n, n), zeros(n, n)
        if self.control is None:
            tau = given["tau"]
        else:
            known = {x.name: given[x.name] for x in self.control.inputs}
            control = only_forces(self.control)
            tau = result(control, arena, known)
            used = {x.name for x in self.control.inputs}
            if "qd" in used:
                D = D - symmetric(result(jacobian(control, ["qd"]), arena, known))
            if "q" in used:
                slope = result(jacobian(control, ["q"]), arena, known)
                rates = program(self.model, "integrate", derivative=Derivative("jacobian", ("v",)))
                way = result(rates, arena, {"q": given["q"], "v": [0.0] * n})
                K = K - symmetric(slope @ way)
        lost = Passive(self.model, arena, given["q"], v, self._lines, self.own)
        K = K + lost.stiffness
        if self.scene.dissipation:
            tau, D = tau + lost.losses, D + lost.damping
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
        """Set up the contact problem, and compute the time of the first impact.

        The acceleration before the first impact is also computed. M is the mass matrix; H and p are
        the matrix and the right-hand side of the momentum balance.
        """
        model, scene, dt = self.model, self.scene, self.dt
        mass = self._inverse
        places = [k for i in model.in_tree_order for k in range(*span_of(model, i))]
        carriers, touches, gaps = self._touches(q, mass)
        loops = self._reduced
        if loops is not None:
            v, places = v[list(loops.independent)], list(range(len(p)))
            carriers = [loops.columns(J) for J in carriers]
            touches = [loops.touch(M, touch, carriers[touch.carrier]) for touch in touches]
            self._carried.put(loops.G)
        self.early: Number = 0.0
        self._rate: Any = None
        if any(touch.law.restitution for touch in touches):
            ahead = solved(H, p, places, None)
            self._rate = (ahead - v) / dt
            fall = self._free.fall(model, self.own)
            touches, self.early = bouncing(
                Free(v, ahead, H, places, dt), carriers, touches, gaps, fall
            )
        friction = dry_friction(model, self.own) if scene.dissipation else np.zeros(model.nv)
        dry = joint_friction(friction, mass, dt)
        dry += line_friction(self._lines, dt) if scene.dissipation else []
        diagonal = np.array([M[k, k] for k in range(len(p))], dtype=object)
        inverse = 1.0 / diagonal
        moved = p - H @ v  # momentum added by smooth forces
        added = np.sum(moved * moved * inverse) + FLOOR * FLOOR * np.sum(diagonal)
        scale: Number = np.sum(p * p * inverse) + added
        stops = joint_stops(scene.limits, q, mass, dt)
        stops += line_stops(self._lines, dt) if scene.stopped else []
        if loops is not None:
            stops, dry = loops.stops(M, stops), loops.dry(M, dry)
        else:
            dry = gathered(dry, lambda k: mass[k, k])
        for stop in stops:  # momentum that brings a joint back to its limit
            back = maximum(0.0, stop.bound)
            scale = scale + NORMAL * stop.term.stiffness * back * back
        self._problem = Problem(H, p, inverse, scale, carriers, touches, stops, dry, tuple(places))
        kept = [H, p, inverse, scale, *carriers, self.early, *(s.bound for s in stops)]
        kept += [self._missed, *(s.weight for s in stops), *(part.stiffness for part in dry)]
        kept += [part.limit for part in dry]
        rows = [*(stop.row for stop in stops), *(part.row for part in dry)]
        kept += [a for row in rows for _, a in row]
        for touch in touches:
            kept += [*([] if touch.direct else [touch.point]), touch.axes, touch.bound]
            kept += [touch.stiffness, touch.weight, touch.friction]
        kept += [] if self._rate is None else [self._rate]
        for part in kept:
            self._carried.put(part)

    def _touches(
        self, q: np.ndarray, mass: np.ndarray
    ) -> tuple[list[np.ndarray], list[Touch], list[Number]]:
        """Return the relative Jacobians of all body pairs, the contact points, and their gaps."""
        model, dt = self.model, self.dt
        near = centered(model, q)
        (spots, crowded), origin = self.scene.spots(q, self.own), origin_of(model, q - near)
        keys = list(dict.fromkeys(pair.frames for pair, _ in spots))
        here = described(model, self.own)
        of_body = cache(lambda frame: body_jacobian(here, frame, near))
        carriers = [of_body(over) - of_body(under) for over, under in keys]
        touches = []
        weight = Weights(model, mass, self.own)
        coefficients = partial(self._free.coefficients, self._given.get(MODEL))
        for pair, spot in spots:
            assert isinstance(pair.law, Rigid | Compliant), "checked before"
            rest = (pair.law, weight(pair), dt, coefficients(pair))
            touches.append(touched(keys.index(pair.frames), spot, origin, *rest))
        gaps = [spot.gap for _, spot in spots]
        self._missed: Number = FAR
        groups = []
        for k, crowd in enumerate(crowded):
            pick = Pick(k) if self._crowded else None
            groups.append((crowd.frames, closest(crowd, weight, coefficients, pick)))
            self._picks += [pick] if pick else []
        start = 0
        for group in self.scene.unseen:
            seen = self._given["seen"][start : start + group.size]
            groups.append((group.frames, group.given(seen)))
            start += group.size
        for frames, (found, missed) in groups:
            bodies = [of_body(frame) for frame in frames]
            self._missed = minimum(self._missed, missed)
            touches += [slot.touch(len(carriers) + k, origin, dt) for k, slot in enumerate(found)]
            carriers += [slot.jacobian(bodies) for slot in found]
            gaps += [slot.spot.gap for slot in found]
        return *direct(carriers, touches), gaps

    def begin(
        self,
        tolerance: float = TOLERANCE,
        before: Sequence[Variable] = (),
        after: Sequence[Variable] = (),
        apart: Apart | None = None,
    ) -> Program:
        """Return the program that sets up a step and takes the first Newton step.

        The outputs are the arrays in `CARRIED`. `before` and `after` are additional inputs that the
        program ignores: all programs of the adjoint step have the same inputs.
        """
        fall = self._free.fall(self.model, self.own)
        v = self._given["qd"]
        v = v if self._reduced is None else v[list(self._reduced.independent)]
        # Friction slides at moving coordinates. Combinations start at rest because of rounding.
        rubs = [
            0.0 if dry.combined else dry.opposing(speed_along(dry.row, v), tolerance)
            for dry in self._problem.dry
        ]
        solve = apart.solve if apart else None
        newton = Newton(self._problem, rubs=rubs, tolerance=tolerance, solve=solve)
        pushed = self.dt * self._given["forces"].reshape(-1, 3) if self.slots else zeros(0, 3)
        found = newton.first(v, SLACK * fall * self.dt, pushed)
        status = found.solved(tolerance) * (1.0 - self._fast(found.v))
        memory = [status, 1.0, found.residual, 0.0, 0.0]
        memory += [*found.gradient, *found.pushes, *found.directions, *found.rubs]
        memory += [0.0] * self._brakes
        results = (list(found.v), memory, self._carried.entries)
        outputs = list(zip(self._between, results, strict=True))
        return self._tiled("begin", [*before, *self.inputs, *after], outputs, apart)

    def _elsewhere(self, data: np.ndarray) -> Problem:
        """Return the step's contact problem as expressions in the symbols `data`.

        At run time, `data` contains values that the program `begin` has computed. Other programs
        can therefore use the problem without computing these values again.
        """
        known, seen = self._problem, self._carried.seen
        touches = [
            touch._replace(
                point=touch.point if touch.direct else seen(data, touch.point),
                axes=seen(data, touch.axes),
                bound=seen(data, touch.bound).item(),
                stiffness=seen(data, touch.stiffness).item(),
                weight=seen(data, touch.weight).item(),
                friction=seen(data, touch.friction).item(),
            )
            for touch in known.touches
        ]
        stops = [
            s._replace(
                row=self._row(data, s.row),
                bound=seen(data, s.bound).item(),
                weight=seen(data, s.weight).item(),
            )
            for s in known.stops
        ]
        dry = [
            part._replace(
                row=self._row(data, part.row),
                limit=seen(data, part.limit).item(),
                stiffness=seen(data, part.stiffness).item(),
            )
            for part in known.dry
        ]
        return known._replace(
            H=seen(data, known.H),
            p=seen(data, known.p),
            inverse=seen(data, known.inverse),
            scale=seen(data, known.scale).item(),
            carriers=[seen(data, J) for J in known.carriers],
            touches=touches,
            stops=stops,
            dry=dry,
        )

    def _row(self, data: np.ndarray, row: Row) -> Row:
        """Return a linear combination of velocities whose coefficients are entries of `data`."""
        return tuple((k, self._carried.seen(data, a).item()) for k, a in row)

    @property
    def _between(self) -> list[Variable]:
        n = len(self._problem.p)
        rest = self.slots + self._problem.directions + len(self._problem.dry) + self._brakes
        sizes = (n, MEMORY + n + rest, len(self._carried.entries))
        return [Variable(name, (size,)) for name, size in zip(CARRIED, sizes, strict=True)]

    def _remembered(self, memory: np.ndarray) -> list[np.ndarray]:
        """Return the arrays in the solver state `memory`, without the first `MEMORY` entries.

        The arrays are the gradient, the normal impulses that bound friction, the sliding
        directions, the impulses of dry friction, and the velocity correction.
        """
        p = self._problem
        sizes = [len(p.p), self.slots, p.directions, len(p.dry)]
        return np.split(memory[MEMORY:], np.cumsum(sizes))

    @property
    def _brakes(self) -> int:
        """Size of the velocity correction for fast rotation (`braking.brake`), or 0 if unused."""
        return 0 if self._smooth is None else braking.size(self.model)

    def _fast(self, v: np.ndarray) -> Number:
        """Return 1 if the velocities v after a step may need to be corrected for fast rotation."""
        return 0.0 if self._smooth is None else braking.turns_far(self.model, v, self.dt)

    # Iterations ---------------------------------------------------------------------------------

    def refine(self, tolerance: float = TOLERANCE, apart: Apart | None = None) -> Program:
        """Return the program for one full Newton step.

        The program does not change states that are solved or have taken `QUICK` iterations.
        """
        v, memory, problem, _ = self._between_symbols()
        g, held, last, rubs, brake = self._remembered(memory)
        again = less(absolute(memory[2] - memory[4]), REPEATED * memory[2])
        again = again * less(tolerance, memory[2])
        solve = apart.solve if apart else None
        newton = Newton(problem, rubs=list(rubs), tolerance=tolerance, solve=solve)
        found = newton.whole_step(v, g, list(last), again)
        status = found.solved(tolerance) * (1.0 - self._fast(found.v))
        most = select(again, WORSE * maximum(memory[2], memory[3]), LARGEST)
        fine = less_equal(found.residual, most)
        count = select(fine, memory[1] + 1.0, QUICK)
        new = [status, count, found.residual, *memory[2:4]]
        new += [*found.gradient, *held, *found.directions, *found.rubs, *brake]
        done = maximum(memory[0], less_equal(QUICK, memory[1]))
        return self._iteration("refine", v, memory, done, found.v, new, fine, apart)

    def rescue(self, tolerance: float = TOLERANCE) -> Program:
        """Return the program of a Newton iteration with line search, for unsolved states."""
        return self._late("rescue", tolerance, None)

    def search(self, tolerance: float = TOLERANCE, apart: Apart | None = None) -> Program:
        """Return the program `rescue` without the correction for fast rotation (`braking`).

        The program only marks the states that need this correction.
        """
        return self._late("search", tolerance, apart)

    def _late(self, name: str, tolerance: float, apart: Apart | None) -> Program:
        v, memory, problem, data = self._between_symbols()
        g, held, along, rubs, _ = self._remembered(memory)
        count = memory[1]
        after, fixed = count + 1.0, less_equal(HOLD, count)
        slope = LATE[0][1]
        for number, late in LATE[1:]:
            begun = less_equal(number, count)
            slope = Slope(*(select(begun, a, b) for a, b in zip(late, slope, strict=True)))
        hooks = (apart.solve, apart.search) if apart else (None, None)
        newton = Newton(problem, list(held), fixed, list(rubs), tolerance, *hooks)
        # States whose regularized problem is solved take a step with the exact law.
        enough = less_equal(PATIENT, after) if problem.dry else 1.0
        exact = less_equal(memory[2], tolerance) if problem.dry else 0.0
        slope = Slope(*(select(exact, 1.0, x) for x in slope)) if problem.dry else slope
        found = newton.part_step(v, g, slope, exact, enough)
        fine, final = less_equal(found.residual, LARGEST), less_equal(MOST, after)
        converged = found.solved(tolerance, enough)
        status = maximum(converged, final) * (3.0 - converged * (2.0 - fixed))
        bounds = [select(fixed, old, new) for old, new in zip(held, found.pushes, strict=True)]
        failed = less(2.5, status)
        factor = select(failed, newton.passive(found.v), 1.0)
        rest = failed * (1.0 - fine)
        point = np.array([select(rest, 0.0, factor * x) for x in found.v])
        new = [status, after, select(fine, found.residual, LARGEST), *memory[3:MEMORY]]
        mark = [self._fast(point), *[0.0] * self._brakes][: self._brakes]
        brake = mark if name == "search" else self._brake(point, data)
        new += [*found.gradient, *bounds, *along, *found.rubs, *brake]
        kept = maximum(fine, final)
        return self._iteration(name, v, memory, memory[0], point, new, kept, apart)

    @property
    def brake(self) -> Program:
        """Program that computes the velocity corrections of states that `search` has marked."""
        arena = Arena(RULES)
        v, memory, data = (symbols(arena, x.name, x.shape) for x in self._between)
        *known, marks = self._remembered(memory)
        brake = [select(marks[0], x, 0.0) for x in self._brake(v, data)]
        found = [*memory[:MEMORY], *(x for part in known for x in part), *brake]
        return self._tiled("brake", self._between, [(self._between[1], found)])

    def _brake(self, v: np.ndarray, data: np.ndarray) -> list[Number]:
        """Return the correction of the end velocities v by which `braking` limits the energy."""
        if self._smooth is None:
            return []
        arena, seen = data[0].arena, self._carried.seen
        q, v0 = (seen(data, self._given[name]) for name in ("q", "qd"))
        own = self._free.of_model(seen(data, self._given[MODEL]) if self.own else None)
        start = braking.Start(q, v0, seen(data, self._smooth))
        there, last, _ = self._ended(arena, q, v0, v, data, own)
        inertia = braking.Inertia(self.model, arena, own)
        allowed = braking.allowed(inertia, start, v, self.dt)
        return braking.brake(inertia, there, last, allowed, self.dt)

    def _between_symbols(self) -> tuple[np.ndarray, np.ndarray, Problem, np.ndarray]:
        """Return velocities, solver state, problem and problem data as symbols of a new program."""
        arena = Arena(RULES)
        v, memory, data = (symbols(arena, x.name, x.shape) for x in self._between)
        return v, memory, self._elsewhere(data), data

    def _iteration(
        self,
        name: str,
        v: np.ndarray,
        memory: np.ndarray,
        done: Number,
        point: np.ndarray,
        new: list[Number],
        fine: Number,
        apart: Apart | None,
    ) -> Program:
        """Return the program of one iteration. The program does not change finished states.

        Parameters
        ----------
        name : str
            Name of the program.
        v, memory : np.ndarray
            Velocities and solver state before the iteration.
        done : Number
            1 if the state must not change.
        point, new : np.ndarray or list
            Velocities and solver state after the iteration.
        fine : Number
            0 if the step is rejected; in this case, only the number of iterations changes.
        apart : Apart | None
            Calls to subprograms.
        """
        stays = maximum(done, 1.0 - fine)
        kept = [select(stays, old, now) for old, now in zip(v, point, strict=True)]
        last = [select(stays, old, now) for old, now in zip(memory, new, strict=True)]
        last[1] = select(done, memory[1], new[1])
        outputs = [(Variable("point", v.shape), kept), (Variable("memory", memory.shape), last)]
        return self._tiled(name, self._between, outputs, apart)

    def _tiled(
        self,
        name: str,
        inputs: Sequence[Variable],
        outputs: Sequence[tuple[Variable, list[Number]]],
        apart: Apart | None = None,
    ) -> Program:
        """Return a program that exchanges arrays with other programs in a tiled layout.

        If `apart` contains calls to subprograms, the program has the results of the calls as
        additional inputs, and the arguments of the calls as additional outputs.
        """
        if apart is not None:
            inputs, outputs = [*inputs, *apart.answers], [*outputs, *apart.requests]
        made = Program.from_outputs(name, inputs, outputs)
        return replace(made, tiled=frozenset(x.name for x in self._between))

    # Division into parts ------------------------------------------------------------------------

    @property
    def long(self) -> bool:
        """Return True if solving a linear system takes more than `LONG` operations."""
        p = self._problem
        return work(p.H, p.carriers, p.touches, p.order) > LONG

    def parts(self, name: str, tolerance: float) -> list[Program]:
        """Divide `begin`, `refine` or `search` into parts, between which subprograms are called."""
        calls = [pick.call for pick in self._picks] if name == "begin" else []
        apart = Apart(self._problem, calls)
        made: Program = getattr(self, name)(tolerance, apart=apart)
        return apart.parts(made)

    def called(self, name: str) -> Program:
        """Return the subprogram with a given name, which runs between two parts of a program."""
        for pick in self._picks:
            if pick.name == name:
                return pick.program()
        (v, past, problem, _), (_, memory, data) = self._between_symbols(), self._between
        arena = v[0].arena
        if name == SOLVE:
            return solving(problem, arena, data)
        _, held, _, rubs, _ = self._remembered(past)
        newton = Newton(problem, list(held), less_equal(HOLD, past[1]), list(rubs))
        return narrowing(newton, arena, memory, data)

    # State after the step -----------------------------------------------------------------------

    @property
    def end(self) -> Program:
        """Program that computes the state after the step."""
        model, arena, dt = self.model, Arena(RULES), self.dt
        inputs = [*self.inputs, *self._between]
        given = {x.name: symbols(arena, x.name, (x.size,)) for x in inputs}
        q, v0, v, data = (given[name] for name in ("q", "qd", "point", "data"))
        own = self._free.of_model(given.get(MODEL))
        there, last, margin = self._ended(arena, q, v0, v, data, own)
        _, held, *_, brake = self._remembered(given["memory"])
        if self._smooth is not None:
            last = braking.slowed(model, last, brake)
        fixed = less(HOLD, given["memory"][1])
        newton = Newton(self._elsewhere(data), list(held), fixed)
        results = {"q": list(there), "qd": list(last)}
        results["forces"] = (newton.forces(v) / dt).ravel().tolist() if self.slots else []
        if self._activations:
            results["act"] = self._activated(arena, given)
        missed = self._carried.seen(data, self._missed).item()
        ends = (given["effort"], given["memory"], missed, margin)
        results["effort"] = self._effort(newton, v, *ends)
        outputs = [(Variable(name, (n,)), results[name]) for name, n in self.states.items()]
        return self._tiled("end", inputs, outputs)

    def _ended(
        self,
        arena: Arena,
        q: np.ndarray,
        v0: np.ndarray,
        v: np.ndarray,
        data: np.ndarray,
        own: Own,
    ) -> tuple[np.ndarray, np.ndarray, Number]:
        """Return the configuration, the joint velocities and the loop margin after a step.

        v contains the velocities at the end of the step. For robots with loops, v contains only the
        independent velocities. For the loop margin, see `closed`.
        """
        seen = self._carried.seen
        early = seen(data, self.early).item()
        rate = None if self._rate is None else seen(data, self._rate)
        way = self._way(v0, v, early, rate)
        if self._reduced is None:
            return *moved(self.model, arena, q, way, v), 1.0
        G = seen(data, self._reduced.G)
        there, last, margin = closed(self.model, arena, q, G @ way, G @ v, own)
        return self._resting(q, there, G, way), last, margin

    def _resting(
        self, q: np.ndarray, there: np.ndarray, G: np.ndarray, way: np.ndarray
    ) -> np.ndarray:
        """Return the configuration `there` after a step, without rounding errors of joints at rest.

        A joint with dry friction in its mechanism rests if the displacements `way` of all
        independent coordinates that move the joint are zero. G maps `way` to the displacements of
        all coordinates.
        """
        model, found = self.model, there.copy()
        for i in model.movers if self._problem.dry else ():
            rows, place = G[model.velocity_slices[i]], model.position_slices[i]
            most: Number = 0.0
            for x, column in zip(way, rows.T, strict=True):
                if not all(map(absent, column)):
                    most = maximum(most, absolute(x))
            found[place] = [
                select(less(0.0, most), new, old)
                for new, old in zip(there[place], q[place], strict=True)
            ]
        return found

    def _way(self, v0: np.ndarray, v: np.ndarray, early: Number, rate: Any) -> np.ndarray:
        """Return the displacement in a step with velocities v0 at its beginning and v at its end.

        `early` is the time (s) of the first impact with restitution. `rate` is the acceleration
        before this impact, or None.
        """
        if rate is None:
            return self.dt * v
        if self._reduced is not None:
            v0 = v0[list(self._reduced.independent)]
        before = v0 + 0.5 * rate * (self.dt + early)
        way = early * before + (self.dt - early) * (v + 0.5 * rate * early)
        for k in {k for dry in self._problem.dry for k, _ in dry.row}:
            moves = maximum(absolute(v0[k]), absolute(v[k]))
            way[k] = select(less(0.0, moves), way[k], 0.0)  # `rate` does not include friction
        return way

    @property
    def _activations(self) -> int:
        """Number of actuator activations that the controller uses."""
        taken = self.control.inputs if self.control is not None else ()
        return sum(v.size for v in taken if v.name == "act")

    def _activated(self, arena: Arena, given: Mapping[str, Any]) -> list[Number]:
        """Return the actuator activations after the step, from their rates at its start."""
        assert self.control is not None
        rate = named_results(self.control, arena, given)["rate"]
        times = durations(self.model, self.dt)
        after = [x + dt * r for x, dt, r in zip(given["act"], times, rate, strict=True)]
        return kept_within(self.model, after)

    def _effort(
        self,
        newton: Newton,
        v: np.ndarray,
        known: Any,
        memory: Any,
        missed: Number,
        margin: Number,
    ) -> list[Number]:
        """Return the accumulated statistics of a simulation, in the order of `STATISTICS`."""
        iterations, unsolved, residual, work, excess, overflow, held, nearest = known
        done, released = newton.work(v)
        return [
            iterations + memory[1],
            unsolved + less(1.5, memory[0]),
            maximum(residual, memory[2]),
            work + done,
            maximum(excess, done - released),
            overflow + less(missed, 0.0),
            held + less(1.5, memory[0]) * less(memory[0], 2.5),
            maximum(nearest, 1.0 - margin),
        ]
