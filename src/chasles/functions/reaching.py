"""Programs for one step of inverse kinematics, and for ranking initial postures.

A step is a Gauss-Newton step in the tangent space, with damping proportional to the squared error
(Sugihara 2011). A joint at a limit is fixed if the step would move it beyond the limit (active
set). No coordinate moves by more than `REACH` in a step, and the result is clamped to the limits.
Steps do not use a line search, so each step evaluates the errors only once.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import Kernel
from chasles.expr import (
    RULES,
    Arena,
    Number,
    Program,
    Variable,
    absolute,
    less,
    less_equal,
    maximum,
    minimum,
    select,
    sqrt,
)
from chasles.functions.programs import program
from chasles.functions.targets import Pose, Posture, Relative, Rows, Target
from chasles.mathematics.linear import Matrix, Vector, solve_symmetric, symmetric_products
from chasles.model import Model
from chasles.model.spaces import freedom_units, rate_places, size

DAMPING, LEAST = 0.03, 1e-14
"""Damping parameters of an inverse-kinematics step.

`DAMPING` is relative to the squared error. `LEAST` is an additive constant that keeps the equations
nonsingular.
"""

ROUGH, ROUGH_LEAST = 1e-4, 1e-7
"""Parameters of searches in float32.

A float32 search continues in float64 when the error (rad, or relative to the size of the robot or
loop) is at most `ROUGH`. `ROUGH_LEAST` is the additive damping constant in float32.
"""

NOTHING = 1e-26
"""Constant added to the squared norm of the changeable errors if other errors are constant.

No joint can change a constant error (see `_costs`). When only constant errors remain, the sum stops
decreasing, and the search ends.
"""

REACH = 1.0
"""Maximum step of a coordinate (rad, or relative to the robot size)."""

TURNING = 0.5
"""Weight of squared differences between rotation matrices when configurations are compared."""

CLOSED = 1e-11
"""Tolerance of the loop equations (rad, or relative to the loop size)."""

SETTLING, SETTLED = 0.5, 1e-6
"""Parameters of steps toward a preferred posture.

A step covers the fraction `SETTLING` of the remaining distance. The posture counts as reached when
a step is shorter than `SETTLED` (rad, or relative to the robot size).
"""

STATUS, COST, COUNT, BEFORE, EARLIER, MOST, SHARE, FIRM, ANGLE, LENGTH, MEMORY = range(11)
"""Indices and size (MEMORY) of the array `memory`, which stores the state of a search.

- STATUS: 0 (running), 1 (solved) or 2 (abandoned).
- COST: squared error.
- BEFORE, EARLIER: reducible part of the squared error (the part that joint motions can change),
  one step and two steps ago.
- COUNT, MOST: number of steps so far, and maximum number of steps.
- SHARE: maximum ratio of the reducible squared error to EARLIER; if the ratio is larger, the search
  is abandoned.
- FIRM: for unreachable goals, ratio of an additional damping term to the norm of the error.
- ANGLE, LENGTH: largest angular error (rad) and largest position error (m).
"""


@dataclass(frozen=True, eq=False)
class Task:
    """Inverse-kinematics problem: targets for frames, joint limits (nq,), and compiled programs."""

    model: Model
    targets: tuple[tuple[str, Target], ...]
    lower: np.ndarray
    upper: np.ndarray
    scales: tuple[float, ...] = ()
    """Scales that make the loop equations dimensionless. Equations with scale 0 are omitted."""

    @property
    def key(self) -> tuple[Any, ...]:
        """Values that determine the programs, for use as a cache key."""
        each = tuple((frame, *target.key) for frame, target in self.targets)
        return (self.model.source, self.model.mimics, each, self.scales)

    @property
    def rows(self) -> int:
        """Number of error components of all targets."""
        return sum(target.angles + target.lengths for _, target in self.targets)

    @property
    def numbers(self) -> int:
        """Number of parameters (scalars) that define all targets."""
        return sum(target.size for _, target in self.targets)

    @property
    def poses(self) -> list[int]:
        """Indices of the first parameter of each pose target in the vector of target parameters."""
        sizes = itertools.accumulate((t.size for _, t in self.targets), initial=0)
        pairs = zip(sizes, self.targets, strict=False)
        return [k for k, (_, target) in pairs if isinstance(target, Pose | Relative)]

    @cached_property
    def idle(self) -> list[int]:
        """Indices in q of coordinates that affect neither the targets nor the loops."""
        model = self.model
        moving = {i for frame, target in self.targets for i in target.movers(model, frame)}
        moving |= {i for constraint in model.constraints for i in constraint.bodies}
        used = model.owners(moving)
        places = (model.position_slices[i] for i in model.movers if i not in used)
        return [k for place in places for k in range(place.start, place.stop)]

    @cached_property
    def step(self) -> Kernel:
        """Kernel for one step of the inverse-kinematics search.

        The inputs are q, memory (solver state), goals, weights, tolerances and a mask of movable
        joints. The outputs are the new q and memory.
        """
        return self._compiled("reaching step", self.step_program)

    @cached_property
    def settling(self) -> Kernel:
        """Kernel for one step toward a preferred posture while the targets stay satisfied.

        The inputs are those of `step`, followed by the posture and the compliances.
        """
        return self._compiled("settling step", self.settling_program)

    @cached_property
    def reached(self) -> Kernel:
        """Kernel for the target parameters that q satisfies exactly (zeros if not unique)."""
        return self._compiled("reached", self._reached_program)

    def step_on(self, backend: str, dtype: str) -> Kernel:
        """Return the kernel `step` for another backend.

        In float32, the tolerance of the loop equations is `ROUGH`.
        """
        trace = partial(self.step_program, rough=dtype == "float32")
        return self._compiled("reaching step", trace, backend, dtype)

    def _compiled(
        self, name: str, trace: Any, backend: str = backends.USUAL, dtype: str = "float64"
    ) -> Kernel:
        own = any(joint.custom is not None for joint in self.model.source.joints)
        recipe, where = (name, *self.key, trace().hash if own else ""), (backend, dtype)
        found = backends.known(recipe, trace, *where)
        return found or backends.compile(trace(), *where, recipe=recipe)

    @cached_property
    def _programs(self) -> dict[tuple[str, str], Program]:
        """Traced programs of model functions, shared by all programs of this problem."""
        return {}

    def _posture(self, q: Sequence[Number], arena: Arena) -> Posture:
        return Posture(self.model, q, arena, self._programs)

    # Programs -----------------------------------------------------------------------------------

    def _errors(self, at: Posture, goals: Sequence[Number]) -> tuple[list[Number], Rows]:
        """Return the errors of all targets in order, and the rows of their negative Jacobian."""
        errors: list[Number] = []
        rows: Rows = []
        for frame, target in self.targets:
            some, matrix = target.errors(at, frame, goals[: target.size])
            goals = goals[target.size :]
            errors, rows = errors + some, rows + matrix
        return errors, rows

    @cached_property
    def lengths(self) -> np.ndarray:
        """Mask of the target errors: True for position errors, False for angular errors."""
        flags = [[False] * t.angles + [True] * t.lengths for _, t in self.targets]
        return np.array([flag for some in flags for flag in some], dtype=bool)

    def _loops(self, at: Posture) -> tuple[list[Number], Rows]:
        """Return the scaled closure errors of the loops and the rows of their negative Jacobian."""
        if not any(self.scales):
            return [], []
        residual, matrix = at.closure()
        kept = [(scale, k) for k, scale in enumerate(self.scales) if scale]
        errors = [residual[k] * -scale for scale, k in kept]
        return errors, [[x * scale for x in matrix[k]] for scale, k in kept]

    def step_program(self, *, rough: bool = False) -> Program:
        """Return a program for one iteration, with tolerances for float32 if `rough` is True."""
        least, closed = (ROUGH_LEAST, ROUGH) if rough else (LEAST, CLOSED)
        arena, inputs, given = self._inputs()
        q, memory, *_, movable = given
        at = self._posture(q, arena)
        errors, r, K, solved = self._equations(at, *given[2:5], closed=closed)
        costs, r, K = _costs(r, K)
        damping = DAMPING * costs[1] + memory[FIRM] * sqrt(costs[1]) + least
        dq = self._step(q, r, K, damping, movable)
        status = _status(solved, costs[1], memory)
        return self._moved(arena, inputs, given, errors, costs, dq, status)

    def settling_program(self) -> Program:
        """Return a program for one step toward a preferred posture; the targets stay satisfied.

        Among all steps that still meet the targets, the program takes the one nearest to the direct
        step toward the posture. To measure this distance, the squared difference of each coordinate
        is divided by its compliance. The method is the gradient projection of Liegeois (1977),
        applied to finite steps.
        """
        nq, nv = self.model.nq, self.model.nv
        arena, inputs, given = self._inputs(("posture", nq), ("compliance", nv))
        q, memory, *_, movable, posture, compliance = given
        errors, r, K, solved = self._equations(self._posture(q, arena), *given[2:5])
        costs, r, K = _costs(r, K)
        pair = {"q0": q, "q1": posture}
        way = program(self.model, "difference").applied(pair, arena)[0]
        free, dq = list(movable), [0.0 * x for x in way]
        for _ in range(2):  # the second pass fixes joints that would leave their limits
            soft = [c * f for c, f in zip(compliance, free, strict=True)]
            wanted = [SETTLING * x * f for x, f in zip(way, free, strict=True)]
            dq = _towards(wanted, r, K, soft, DAMPING * costs[1] + LEAST)
            free = self._free(q, dq, free)
        longest, dq = self._cut(dq)
        done = less_equal(longest, SETTLED)
        late = less_equal(memory[MOST], memory[COUNT] + 1.0)
        ended = select(less(0.0, done + late), 1.0, 0.0)
        status = select(less(0.0, solved), ended, select(less(0.0, late), 2.0, 0.0))
        return self._moved(arena, inputs, given, errors, costs, dq, status)

    def _inputs(self, *more: tuple[str, int]) -> tuple[Arena, list[Variable], list[list[Number]]]:
        """Return a new expression graph, the input variables of a step, and their symbols."""
        model, m = self.model, self.rows
        arena, sizes = Arena(RULES), (model.nq, MEMORY, self.numbers, m, m, model.nv)
        names = ("q", "memory", "goals", "weights", "tolerances", "movable")
        every = [*zip(names, sizes, strict=True), *more]
        inputs = [Variable(name, (n,)) for name, n in every]
        return arena, inputs, [[arena.input(v.name, k) for k in range(v.size)] for v in inputs]

    def _equations(
        self,
        at: Posture,
        goals: Sequence[Number],
        weights: Sequence[Number],
        tolerances: Sequence[Number],
        *,
        closed: float = CLOSED,
    ) -> tuple[list[Number], list[Number], Rows, Number]:
        """Return target errors, weighted residuals, their Jacobian, and 1 if solved (else 0).

        The residuals and the Jacobian include the loop equations. The sign of the Jacobian is
        reversed, as in `functions.targets`.
        """
        scale = size(self.model)
        errors, J = self._errors(at, goals)
        solved: Number = 1.0
        for error, tolerance in zip(errors, tolerances, strict=True):
            solved = solved * less_equal(absolute(error), tolerance)
        by = [
            w * (1.0 / scale if far else 1.0) for w, far in zip(weights, self.lengths, strict=True)
        ]
        r = [e * w for e, w in zip(errors, by, strict=True)]
        K = [[x * w for x in row] for row, w in zip(J, by, strict=True)]
        open_, closing = self._loops(at)
        for error in open_:
            solved = solved * less_equal(absolute(error), closed)
        return errors, r + open_, K + closing, solved

    def _moved(
        self,
        arena: Arena,
        inputs: Sequence[Variable],
        given: Sequence[Sequence[Number]],
        errors: Sequence[Number],
        costs: tuple[Number, Number],
        dq: Sequence[Number],
        status: Number,
    ) -> Program:
        """Return the program that moves q by the step dq, unless the search has ended.

        `costs` contains the squared errors returned by `_costs`.
        """
        model, (q, memory, _, weights, *_) = self.model, given
        moved = self._clipped(program(model, "integrate").applied({"q": q, "v": dq}, arena)[0])
        stays = less(0.0, status)
        after = [select(stays, old, new) for old, new in zip(q, moved, strict=True)]
        kept = [status, costs[0], memory[COUNT] + 1.0, costs[1], memory[BEFORE]]
        kept += [memory[MOST], memory[SHARE], memory[FIRM], *self._largest(errors, weights)]
        outputs = [(Variable("q", (model.nq,)), after), (Variable("memory", (MEMORY,)), kept)]
        return Program.from_outputs("reaching", inputs, outputs)

    def _largest(self, errors: Sequence[Number], weights: Sequence[Number]) -> list[Number]:
        """Return the largest angular and position errors, ignoring errors with weight 0."""
        found: list[Number] = [0.0, 0.0]
        for error, weight, far in zip(errors, weights, self.lengths, strict=True):
            counted = select(less(0.0, weight), absolute(error), 0.0)
            found[int(far)] = maximum(found[int(far)], counted)
        return found

    def _step(
        self,
        q: Sequence[Number],
        r: Sequence[Number],
        K: Rows,
        damping: Number,
        movable: Sequence[Number],
    ) -> list[Number]:
        """Return the damped step of the free coordinates.

        The smaller of two equivalent linear systems is solved.
        """
        n, m = self.model.nv, len(r)
        push = [sum((K[k][i] * r[k] for k in range(m)), 0.0) for i in range(n)]
        free = self._free(q, push, movable)
        F = [[x * f for x, f in zip(row, free, strict=True)] for row in K]
        if m <= n:
            rows, held = [Vector(tuple(row)) for row in K], [Vector(tuple(row)) for row in F]
            y = solve_symmetric(_damped(symmetric_products(held, rows), damping), Vector(tuple(r)))
            dq = [sum((F[k][i] * y[k] for k in range(m)), 0.0) for i in range(n)]
        else:
            columns = [Vector(tuple(F[k][i] for k in range(m))) for i in range(n)]
            given = Vector(tuple(p * f for p, f in zip(push, free, strict=True)))
            dq = list(
                solve_symmetric(_damped(symmetric_products(columns, columns), damping), given)
            )
        return self._cut(dq)[1]

    def _cut(self, dq: Sequence[Number]) -> tuple[Number, list[Number]]:
        """Return a step's largest entry (rad, or relative to the robot size), and the limited step.

        If this entry exceeds REACH, the step is scaled down so that its largest entry equals REACH.
        """
        longest: Number = 0.0
        for step, unit in zip(dq, freedom_units(self.model, size(self.model)), strict=True):
            longest = maximum(longest, absolute(step) * (1.0 / unit))
        cut = minimum(1.0, REACH / maximum(longest, REACH))
        return longest, [step * cut for step in dq]

    def _free(
        self, q: Sequence[Number], push: Sequence[Number], movable: Sequence[Number]
    ) -> list[Number]:
        """Return a mask of the coordinates: 0 if fixed or pushed against a limit, else 1."""
        free = list(movable)
        for i, k in self._places():
            low = less_equal(q[k], float(self.lower[k])) * less(push[i], 0.0)
            high = less_equal(float(self.upper[k]), q[k]) * less(0.0, push[i])
            free[i] = free[i] * (1.0 - low) * (1.0 - high)
        return free

    def _clipped(self, q: Sequence[Number]) -> list[Number]:
        """Clamp every coordinate to its limits."""
        inside = list(q)
        for _, k in self._places():
            if math.isfinite(self.lower[k]):
                inside[k] = maximum(inside[k], float(self.lower[k]))
            if math.isfinite(self.upper[k]):
                inside[k] = minimum(inside[k], float(self.upper[k]))
        return inside

    def _places(self) -> list[tuple[int, int]]:
        """Return the indices in qd and q of all coordinates with limits."""
        limited = np.isfinite(self.lower) | np.isfinite(self.upper)
        return [(i, k) for i, k in rate_places(self.model) if limited[k]]

    def _reached_program(self) -> Program:
        arena, q = Arena(RULES), Variable("q", (self.model.nq,))
        at = self._posture([arena.input("q", k) for k in range(q.size)], arena)
        found: list[Number] = []
        for frame, target in self.targets:
            found += target.reached(at, frame) or [0.0] * target.size
        output = (Variable("met", (self.numbers,)), found)
        return Program.from_outputs("reached", [q], [output])

    def weights(self) -> np.ndarray:
        """Return the weights of target parameters in the distance from a target.

        This distance ranks starting configurations. The weight is 0 for parameters that a
        configuration does not determine.
        """
        near, found = 1.0 / size(self.model) ** 2, []
        for _, target in self.targets:
            rotation = 9 if target.size >= 9 else 0
            other = near if target.lengths else 0.0
            found += [TURNING] * rotation + [other] * (target.size - rotation)
        return np.array(found)


def _costs(r: Sequence[Number], K: Rows) -> tuple[tuple[Number, Number], list[Number], Rows]:
    """Separate the errors that joints can change from constant errors.

    Return a pair of squared norms (of all errors, and of the changeable errors), the changeable
    errors, and their Jacobian rows. Constant errors, such as the height error of a planar arm, must
    not increase the damping.
    """
    kept = [k for k, row in enumerate(K) if any(x != 0.0 for x in row)]
    some = [r[k] for k in kept]
    none = NOTHING if len(kept) < len(r) else 0.0
    costs = (sum((x * x for x in r), 0.0), sum((x * x for x in some), none))
    return costs, some, [K[k] for k in kept]


def _status(solved: Number, cost: Number, memory: Sequence[Number]) -> Number:
    """Return the status of the search: 0 (running), 1 (solved) or 2 (abandoned)."""
    slow = less_equal(2.0, memory[COUNT]) * less(memory[SHARE] * memory[EARLIER], cost)
    late = less_equal(memory[MOST], memory[COUNT] + 1.0)
    return select(less(0.0, solved), 1.0, select(less(0.0, slow + late), 2.0, 0.0))


def _towards(
    wanted: Sequence[Number], r: Sequence[Number], K: Rows, soft: Sequence[Number], damping: Number
) -> list[Number]:
    """Return the step that removes the errors r and is closest to `wanted`.

    To measure the distance from `wanted`, the squared difference of each coordinate is divided by
    its compliance in `soft`.
    """
    F = [[x * c for x, c in zip(row, soft, strict=True)] for row in K]
    rows, held = [Vector(tuple(row)) for row in K], [Vector(tuple(row)) for row in F]
    left = [
        e - sum((x * w for x, w in zip(row, wanted, strict=True)), 0.0)
        for e, row in zip(r, K, strict=True)
    ]
    y = solve_symmetric(_damped(symmetric_products(held, rows), damping), Vector(tuple(left)))
    each = range(len(wanted))
    return [wanted[i] + sum((F[k][i] * y[k] for k in range(len(r))), 0.0) for i in each]


def _damped(A: Matrix, damping: Number) -> Matrix:
    n = range(len(A.rows))
    return Matrix(tuple(tuple(A[r, c] + (damping if r == c else 0.0) for c in n) for r in n))
