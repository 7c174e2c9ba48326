"""Position integration for robots with closed loops."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.errors import ArgumentError, InputError, ModelError
from chasles.expr import RULES, Arena, Number, Program, Variable, forward
from chasles.mechanisms import (
    CLOSED,
    Chart,
    ImpossiblePosition,
    Mechanism,
    OpenLoop,
    SingularPosition,
)
from chasles.motion.contract import Array, Machine
from chasles.motion.drivers.running import Memory, Remembering
from chasles.motion.steps.system import Placed, State, Taken, Tree

FALLEN = 0.1
"""Smallest allowed margin to a singularity, as a fraction of the initial margin. If the margin is
smaller, other independent coordinates of the loops are chosen. The margin is the square of a pivot
of the loop equations; at a fraction of 0.1, the pivot is a third of its initial value. At a
fraction of 0.01, the equations are still accurate, but the independent coordinates reverse their
direction of motion within a few steps of 1 ms, and the energy becomes inaccurate. The table lists
the energy error of a five-bar linkage after ten seconds with rates up to 15 rad/s, relative to the
kinetic energy.

fraction   energy error
0.01       5e-3
0.1        4e-6
1/3        3e-7
"""

STEPS = 20
"""Maximum number of Newton iterations for closing loops; two or three are typical."""

CONSISTENT = 1e-6
"""Tolerance for initial positions (rad, or relative to the loop size) and velocities that do not
satisfy the loop equations.
"""

BRANCH = 1e-3
"""Largest allowed change (rad or m) of any coordinate of the initial q when the loops are closed.
After a larger change, the closed configuration is on a different branch from the given q."""


# User-defined closure functions ------------------------------------------------------------------

Gamma = Callable[..., Sequence[Number]]
"""Function gamma(y) or gamma(y, t) that returns the full vector q, given the time t and the
independent coordinates y, which are in the order of `robot.independent`.
"""


class ClosureFunction:
    """Loop closure q = gamma(y), qd = G yd, qdd = G ydd + g (Featherstone 2008, section 8.11).

    For a time-dependent robot, q = gamma(y, t) and qd = G yd + d gamma/dt; the last argument of
    gamma must then be named t. gamma is called once, with symbolic arguments, and may use
    + - * / and functions of `chasles.expr`, such as `sin`, `cos`, `atan2`, `sqrt` and `select`.
    gamma determines the branch; G and g are derivatives of gamma. The velocities of every joint
    must be the time derivatives of its coordinates, which excludes spherical, planar and free
    joints.
    """

    def __init__(self, robot: Machine, gamma: Gamma) -> None:
        model, self.robot = robot.model, robot
        remedy = "simulate without a ClosureFunction"
        robot.mechanism.require_loops("ClosureFunction", "the robot has no loops to close")
        if model.rolls:
            problem = (
                f"{', '.join(map(repr, model.rolls))}: nonholonomic constraints are not supported"
            )
            part = f"ClosureFunction: robot {model.name!r}"
            raise ModelError("E-MOTION-320", problem, remedy, part=part)
        for body in (model.bodies[i] for i in model.movers):
            if not body.joint.additive:
                problem = (
                    f"the velocities of joint {body.data.name!r} are not the time derivatives "
                    "of its positions"
                )
                part = f"ClosureFunction: robot {model.name!r}"
                raise ModelError("E-MOTION-026", problem, remedy, part=part)
        loops = robot.mechanism.loops
        self.independent, self.freedoms = loops.independent, loops.freedoms
        self._kernel = backends.compile(_program(gamma, len(self.independent), model.nq))

    def __call__(self, y: Array, yd: Array = None, ydd: Array = None, *, t: Array = 0.0) -> Any:
        """Return q for independent coordinates y and, if rates are given, qd and qdd.

        Parameters
        ----------
        y : array_like, shape (..., n)
            Independent coordinates (rad or m).
        yd, ydd : array_like, shape (..., n), optional
            Velocities and accelerations of the independent coordinates.
        t : array_like, shape (...), optional
            Time (s), ignored if gamma depends only on y.

        Returns
        -------
        q : ndarray, shape (..., nq)
            Joint positions. With yd, the result is the tuple (q, qd); with ydd, it is the tuple
            (q, qd, qdd).

        Raises
        ------
        ImpossiblePosition
            If gamma is undefined at y.
        """
        zero = np.zeros(len(self.independent))
        rates = [zero if rate is None else rate for rate in (yd, ydd)]
        found = call(self._kernel, "ClosureFunction", (y, *rates, t))
        bad = ~np.isfinite(found[0])
        if np.count_nonzero(bad) and np.all(np.isfinite(y)):
            where = tuple(int(k) for k in np.argwhere(bad)[0][:-1])
            names = ", ".join(repr(self.freedoms[k]) for k in self.independent)
            values = np.broadcast_to(y, (*bad.shape[:-1], len(zero)))[where].tolist()
            problem = f"the closure function is undefined at {names} = {values}"
            part = f"robot {self.robot.model.name!r}"
            raise ImpossiblePosition("E-MOTION-027", problem, part=part)
        if yd is None and ydd is None:
            return found[0]
        return found[:2] if ydd is None else found


def _program(gamma: Gamma, n: int, nq: int) -> Program:
    """Return the program that computes q, qd and qdd from independent coordinates and time t.

    y, yd and ydd are the positions, velocities and accelerations of the independent coordinates.
    """
    moment = Variable("t", ())
    inputs = [Variable(name, (n,)) for name in ("y", "yd", "ydd")]
    arena = Arena(RULES)
    y, (t,) = ([arena.input(v.name, k) for k in range(v.size)] for v in (inputs[0], moment))
    timed = list(inspect.signature(gamma).parameters)[1:] == ["t"]
    q = list(gamma(y, t) if timed else gamma(y))
    if len(q) != nq:
        problem = f"`gamma` must return {nq} values (q), not {len(q)}"
        raise InputError("E-MOTION-028", problem, part="ClosureFunction")
    position = Program.from_outputs("gamma", [inputs[0], moment], [(Variable("q", (nq,)), q)])
    velocity = forward(position, ["y", "t"])
    names = {"d_y": "yd", "d_t": "td"}  # separate inputs for dy/dt and dt/dt = 1
    rates = tuple(Variable(names.get(v.name, v.name), v.shape) for v in velocity.inputs)
    velocity = replace(velocity, inputs=rates)
    acceleration = forward(velocity, ["y", "t", "yd"])
    arena = Arena(RULES)
    y, yd, ydd = ([arena.input(v.name, k) for k in range(n)] for v in inputs)
    given: dict[str, list[Number]] = {"y": y, "t": [arena.input("t", 0)], "d_t": [1.0], "td": [1.0]}
    given |= {"yd": yd, "d_y": yd, "d_yd": ydd}
    outputs = []
    for name, part in (("q", position), ("qd", velocity), ("qdd", acceleration)):
        outputs.append((Variable(name, (nq,)), part.applied(given, arena)[0]))
    return Program.from_outputs("gamma", [*inputs, moment], outputs)


# Position updates -------------------------------------------------------------------------------


class Looped(Tree):
    """Base class of position updates for closed loops.

    Small closure errors in the initial state are removed.
    """

    def begin(self, at: State) -> State:
        (t, q, qd), mechanism = at, self._mechanism
        mechanism.at(t).closing.check_closed("simulate", q, CONSISTENT)
        there, speed, _ = self.place(t, q, np.zeros_like(qd), qd)
        scale = np.maximum(1.0, np.max(np.abs(qd), axis=-1, initial=0.0))
        moved, wrong = np.abs(mechanism.difference(q, there)), np.abs(speed - qd)
        branch = np.full_like(scale, BRANCH)
        for name, fault, error, limit, verb in (
            ("q", "is on another branch", moved, branch, "assemble"),
            ("qd", "violates the loops", wrong, CONSISTENT * scale, "complete"),
        ):
            bad = error > limit[..., None]
            if np.any(bad):
                *member, freedom = map(int, np.argwhere(bad)[0])
                index = f" at index {tuple(member)}" if member else ""
                joint, size = mechanism.loops.freedoms[freedom], error[(*member, freedom)]
                problem = f"{name} {fault}{index}: {joint!r} is off by {size:.3g}"
                remedy = f"compute {name} with robot.{verb}"
                raise OpenLoop("E-MOTION-054", problem, remedy, part="simulate")
        return State(t, there, speed)


class ByFunction(Looped):
    """Position updates in which a user-defined `ClosureFunction` closes the loops."""

    def __init__(self, mechanism: Mechanism, closure: ClosureFunction) -> None:
        super().__init__(mechanism)
        loops = mechanism.loops
        if not isinstance(closure, ClosureFunction) or closure.freedoms != loops.freedoms:
            problem = f"`closure` must be a ClosureFunction of robot {mechanism.name!r}"
            raise ArgumentError("E-MOTION-053", problem, part="simulate")
        self._closure, self._free = closure, closure.independent
        self._where = [loops.places[k] for k in closure.independent]

    def place(self, t: float, q: np.ndarray, d: np.ndarray, v: np.ndarray) -> Placed:
        free = self._free
        there, qd = self._closure(q[..., self._where] + d[..., free], v[..., free], t=t)
        return there, qd, qd


class Lost(SingularPosition):
    """Error raised if some batch members need a different choice of independent coordinates.

    The mask `members` selects these batch members.
    """

    def __init__(self, *text: str, members: np.ndarray, **place: Any) -> None:
        super().__init__(*text, **place)
        self.members = members


class Closed(Looped, Remembering):
    """Position updates in which Newton's method closes the loops.

    The result of `place` depends only on the independent entries of the displacement d and the
    velocity v. Members of a batch may use different charts (choices of independent coordinates),
    because they reach singularities at different times. The margin of a chart changes sign at a
    singularity of the chart.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        self._charts: list[Chart] = []
        self._which, self._start = np.zeros(0, int), np.zeros(0)

    def begin(self, at: State) -> State:
        """Choose independent coordinates for all batch members, and close the loops."""
        self._charts, lead = [], at.q.shape[:-1]
        self._which, self._start = np.full(lead, -1), np.ones(lead)
        self._choose(at.t, at.q, self._which < 0)
        return super().begin(at)

    def step(self, step: Callable[..., Taken], at: State, goal: float) -> Taken:
        """Take a step; choose new independent coordinates for batch members that need them."""
        chosen: Any = False
        while True:
            try:
                return step(self.place, at, goal)
            except Lost as lost:
                alone = at.q[..., : self._mechanism.nq]
                if np.any(lost.members & chosen):
                    raise self._singular(at.t, alone, lost.members & chosen) from None
                self._choose(at.t, alone, lost.members)
                chosen = chosen | lost.members
                self.rechosen.append(at.t)

    def place(self, t: float, q: np.ndarray, d: np.ndarray, v: np.ndarray) -> Placed:
        """Return a position near integrate(q, d), joint velocities, and the rate of change of d.

        The loops are closed at this position. Newton's method changes only the dependent
        coordinates. If the independent coordinates are joint coordinates, they are therefore
        displaced by exactly d. Raises `Lost` if batch members need a new choice of coordinates.
        """
        for _ in range(STEPS):
            there = self._integrate(q, d)
            step, qd, health = self._closing(t, there, v)
            is_open = ~(health[..., 0] <= CLOSED * CLOSED)
            if not np.count_nonzero(is_open):
                break
            d = d + np.where(is_open[..., None], self._rate(q, there, step), 0.0)
        lost = is_open | ~(health[..., 1] / self._start > FALLEN)
        if np.count_nonzero(lost):
            problem = "the loops cannot be closed near this state"
            raise Lost("E-MOTION-074", problem, part="simulate", members=lost)
        return there, qd, self._rate(q, there, qd)

    def memory(self) -> dict[str, np.ndarray]:
        """Return the data needed to resume an interrupted motion.

        The data contain all choices of independent coordinates (charts) and, for each member of the
        batch, its current chart and its margin at the start of this chart.
        """
        known, arrays = self._mechanism.charts.memory()
        used = np.array([known.index(chart) for chart in self._charts], dtype=int)
        return arrays | {"charts": used, "chart": self._which, "margin": self._start}

    def recall(self, memory: Memory) -> None:
        """Restore the choices of independent coordinates (charts) of an interrupted motion."""
        known = self._mechanism.charts.recall(memory)
        self._charts = [known[k] for k in memory["charts"]]
        self._which, self._start = memory["chart"], memory["margin"]

    def _closing(self, t: float, q: np.ndarray, v: np.ndarray) -> Placed:
        """Return the Newton step that closes the loops, the velocities, and the accuracy.

        For each member of the batch, `closing_step` is evaluated with the independent coordinates
        (chart) of this member. The accuracy is the closure error and the singularity margin.
        """
        if len(self._charts) == 1:
            return self._charts[0].closing(t, q, v)
        step, qd, health = np.empty_like(v), np.empty_like(v), np.empty((*v.shape[:-1], 2))
        for k, chart in enumerate(self._charts):
            members = self._which == k
            step[members], qd[members], health[members] = chart.closing(t, q[members], v[members])
        return step, qd, health

    def _choose(self, t: float, q: np.ndarray, members: np.ndarray) -> None:
        """Choose new independent coordinates (charts) for the batch members in the mask `members`.

        Members share a chart if its margin is large enough for all of them.
        """
        left, loops = np.array(members), self._mechanism.at(t).closing
        while np.any(left):
            first = np.unravel_index(np.argmax(left), left.shape)
            chart = self._mechanism.charts.at(loops, q[first])
            margin = chart.closing(t, q, np.zeros((*q.shape[:-1], self._mechanism.nv)))[2][..., 1]
            taken = np.array(left & (np.abs(margin) > FALLEN))
            taken[first] = True
            if chart not in self._charts:
                self._charts.append(chart)
            self._which = np.where(taken, self._charts.index(chart), self._which)
            self._start = np.where(taken, margin, self._start)
            left &= ~taken
        used = np.unique(self._which)
        self._charts = [self._charts[k] for k in used]
        self._which = np.searchsorted(used, self._which)

    def _singular(self, t: float, q: np.ndarray, members: np.ndarray) -> SingularPosition:
        """Return the error for a state near which no choice of independent coordinates is valid."""
        at = np.unravel_index(int(np.argmax(members)), members.shape)
        loops, chart = self._mechanism.at(t).closing, self._charts[self._which[at]]
        index = f" at index {tuple(map(int, at))}" if at else ""
        loose = loops.undetermined(loops.matrix(q[at]), chart.independent)
        problem = (
            f"singular configuration{index}: {loose}, and no other choice of coordinates avoids it"
        )
        remedy = (
            "end the motion before this time, or start from another state (at a singularity, "
            "the motion can continue in several ways)"
        )
        return SingularPosition("E-MOTION-055", problem, remedy, part=loops.part)
