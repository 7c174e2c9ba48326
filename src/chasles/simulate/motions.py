"""How positions follow steps along the configuration space: of a tree, or of closed loops."""

from collections.abc import Callable

import numpy as np

from chasles.loops import OpenLoop, SingularPosition
from chasles.loops.charts import Chart, Charts
from chasles.loops.closing import CLOSED, at_index
from chasles.robot import Robot
from chasles.simulate.runge_kutta import Accelerate, Place, runge_kutta

FALLEN = 0.1
"""Other coordinates are chosen where the margin of a chart, which is the square of a pivot, falls
below this part of what it was when the chart was chosen."""

STEPS = 20
"""Newton's at most; two or three are usual."""

CONSISTENT = 1e-6
"""A state may be open by this much at the start (rad, parts of the loop's size; and of qd)."""

Placed = tuple[np.ndarray, np.ndarray, np.ndarray]


def rate_of_steps(robot: Robot) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """The function rate(q, there, v): that of difference(q, there) while `there` moves with v."""
    if all(robot.model.bodies[i].joint.additive for i in robot.model.movers):
        return lambda q, there, v: v

    def rate(q: np.ndarray, there: np.ndarray, v: np.ndarray) -> np.ndarray:
        J = robot.derivatives("difference", q, there, wrt="q1")
        return (J @ v[..., None])[..., 0]

    return rate


def tree(robot: Robot) -> Place:
    """The places of a tree, or of one whose loops something else keeps closed."""
    rate = rate_of_steps(robot)

    def place(q: np.ndarray, d: np.ndarray, v: np.ndarray) -> Placed:
        there = robot.integrate(q, d)
        return there, v, rate(q, there, v)

    return place


class Lost(Exception):
    """Some members of a batch need other independent coordinates: their mask."""

    def __init__(self, members: np.ndarray) -> None:
        super().__init__()
        self.members = members


class Closed:
    """Closed loops: of d and v the independent entries count, and the others follow them.

    Every member of a batch has a chart of its own, since each comes to its dead points by itself.
    Past one of these the margin has another sign than where the chart was chosen.
    """

    def __init__(self, robot: Robot, charts: Charts, q: np.ndarray) -> None:
        self._robot, self._charts, self._rate = robot, charts, rate_of_steps(robot)
        charts.loops.check_closed("simulate", q, CONSISTENT)
        lead = q.shape[:-1]
        self.rechosen: list[float] = []
        self._used: list[Chart] = []
        self._which, self._start = np.zeros(lead, dtype=int), np.ones(lead)
        self.choose(q, np.full(lead, True))

    def begin(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A state near enough to closed, closed to rounding."""
        try:
            there, speed, _ = self.place(q, np.zeros_like(qd), qd)
        except Lost as lost:
            raise self._singular(q, lost.members, 0.0) from None
        scale = np.maximum(1.0, np.max(np.abs(qd), axis=-1, initial=0.0))
        wrong = np.abs(speed - qd) > CONSISTENT * scale[..., None]
        if np.any(wrong):
            *member, freedom = map(int, np.argwhere(wrong)[0])
            where = f" at index {tuple(member)}" if member else ""
            raise OpenLoop(
                f"simulate: qd opens the loops{where}: {self._charts.loops.freedoms[freedom]!r} has "
                f"{qd[(*member, freedom)]:.6g}, and must have {speed[(*member, freedom)]:.6g} with "
                "the independent ones as they are; give robot.complete(q, yd)"
            )
        return there, speed

    def step(
        self, accelerate: Accelerate, t: float, h: float, q: np.ndarray, qd: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A step of Runge and Kutta, in other coordinates where those of a member will not do."""
        chosen = np.full(q.shape[:-1], False)
        while True:
            try:
                return runge_kutta(self.place, accelerate, t, h, q, qd)
            except Lost as lost:
                if np.any(lost.members & chosen):
                    raise self._singular(q, lost.members & chosen, t) from None
                self.choose(q, lost.members)
                chosen |= lost.members
                self.rechosen.append(t)

    def place(self, q: np.ndarray, d: np.ndarray, v: np.ndarray) -> Placed:
        """The closed position with these independent entries of d, its velocity, the rate of d.

        Newton's method from integrate(q, d); on rotations its steps add up to d but for a factor
        1 + O(d), so that it converges a little slower there. Raises `Lost`.
        """
        for _ in range(STEPS):
            there = self._robot.integrate(q, d)
            step, qd, health = self._closing(there, v)
            is_open = ~(health[..., 0] <= CLOSED * CLOSED)
            if not is_open.any():
                break
            d = d + np.where(is_open[..., None], step, 0.0)
        lost = is_open | ~(health[..., 1] / self._start > FALLEN)
        if lost.any():
            raise Lost(lost)
        return there, qd, self._rate(q, there, qd)

    def _closing(self, q: np.ndarray, v: np.ndarray) -> Placed:
        """`closing_step` of every member, by its own chart."""
        if len(self._used) == 1:
            return self._used[0].closing(q, v)
        step, qd, health = np.empty_like(v), np.empty_like(v), np.empty((*v.shape[:-1], 2))
        for k, chart in enumerate(self._used):
            members = self._which == k
            step[members], qd[members], health[members] = chart.closing(q[members], v[members])
        return step, qd, health

    def choose(self, q: np.ndarray, members: np.ndarray) -> None:
        """Other charts for some members, at their positions."""
        chart = [self._used[k] for k in self._which.flat] if self._used else [None] * members.size
        for k in np.flatnonzero(members):
            chart[k] = self._charts.at(q.reshape(members.size, -1)[k])
        self._used = list(dict.fromkeys(chart))
        numbers = [self._used.index(c) for c in chart]
        self._which = np.array(numbers, dtype=int).reshape(members.shape)
        margin = self._closing(q, np.zeros((*members.shape, self._robot.nv)))[2][..., 1]
        self._start = np.where(members, margin, self._start)

    def _singular(self, q: np.ndarray, members: np.ndarray, t: float) -> SingularPosition:
        """What to say where new coordinates are no better than the last."""
        k = int(np.flatnonzero(members)[0])
        loops, chart = self._charts.loops, self._used[self._which.flat[k]]
        where = at_index(k, members.shape)
        loose = loops.undetermined(loops.matrix(q.reshape(members.size, -1)[k]), chart.independent)
        return SingularPosition(
            f"robot {self._robot.name!r}: singular position near t = {t:.6g} s{where}: {loose}, and "
            "no other choice does; the motion can go on in more than one way: stop before it, or "
            "start so that it is not met"
        )
