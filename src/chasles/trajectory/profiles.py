"""Fastest motions within limits: trapezoidal velocities, and S-curves with limited jerk.

The velocity of a coordinate changes from v0 to a peak value, stays constant, and changes to v1.
With limited jerk, accelerations are zero at both ends and at the peak. Without a jerk limit, a
change of velocity dv takes dv / a seconds. With limited jerk, the change takes dv / a + a / j
seconds, or 2 sqrt(dv / j) if the acceleration limit a is not reached. The distance covered is this
time multiplied by the mean velocity (Biagiotti and Melchiorri, Trajectory Planning for Automatic
Machines and Robots, 2008, sections 3.2 and 3.4).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from chasles.errors import InputError
from chasles.robot import Robot
from chasles.trajectory.charts import Chart, chart, steps
from chasles.trajectory.given import bounds, finite, positive, two_points
from chasles.trajectory.moves import Array, Move

SAMPLES = 129
"""Number of equally spaced peak velocities at which `Axis.peaks` looks for sign changes."""

CLOSE = np.concatenate([-np.logspace(-12, -2, 11), np.logspace(-12, -2, 11)])
"""Offsets of additional peak velocities from v0 and v1, as fractions of the velocity limit.

`Axis.peaks` also looks for sign changes at these peak velocities, because near v0 and v1 the
distance covered changes rapidly with the peak velocity.
"""

NEARLY = 1e-12
"""Relative difference below which durations count as equal."""

SLOWER = 1.02
"""Factor by which a trial duration is increased until it is possible for all coordinates."""


def trapezoid(
    q0: Array,
    q1: Array,
    *,
    velocity: Array,
    acceleration: Array,
    qd0: Array = None,
    qd1: Array = None,
    duration: float | None = None,
    synchronize: bool = True,
    robot: Robot | None = None,
) -> Move:
    """Return the fastest motion between two states with limited velocity and acceleration.

    Parameters
    ----------
    q0, q1 : array_like, shape (n,)
        Positions at the start and at the end (rad or m).
    velocity, acceleration : float or array_like, shape (nv,)
        Maximum absolute values, in rad/s and rad/s2 (or m/s and m/s2).
    qd0, qd1 : array_like, shape (nv,), optional
        Velocities at the ends, within the limits. Default: zero.
    duration : float, optional
        Duration (s), at least the shortest possible duration, which is the default.
    synchronize : bool, optional
        Let all coordinates arrive at the same time (the default). Otherwise, each coordinate
        arrives as early as possible.
    robot : Robot, optional
        The robot that moves; see `cubic`. A joint with a quaternion rotates about one axis.

    Returns
    -------
    Move
        The trajectory. `move.duration` is the shortest duration, unless `duration` is given.

    Raises
    ------
    InputError
        If an array has the wrong shape or is not finite, if a limit is not positive, if a velocity
        at an end exceeds its limit, if both positions are equal, if `duration` is too short, or if
        no common duration exists.
    ArgumentError
        If `robot` is not a Robot, or if an argument is not numeric.
    OpenLoop
        If the robot has loops, and a given configuration does not close them.

    Examples
    --------
    >>> move = chasles.trajectory.trapezoid([0.0], [2.0], velocity=1.0, acceleration=2.0)
    >>> move.duration
    2.5
    """
    given = (velocity, acceleration, np.inf)
    return _fastest("trapezoid", q0, q1, given, (qd0, qd1), duration, synchronize, robot)


def s_curve(
    q0: Array,
    q1: Array,
    *,
    velocity: Array,
    acceleration: Array,
    jerk: Array,
    qd0: Array = None,
    qd1: Array = None,
    duration: float | None = None,
    synchronize: bool = True,
    robot: Robot | None = None,
) -> Move:
    """Return the fastest motion between two states with limited velocity, acceleration and jerk.

    Parameters
    ----------
    q0, q1 : array_like, shape (n,)
        Positions at the start and at the end.
    velocity, acceleration, jerk : float or array_like, shape (nv,)
        Maximum absolute values, in rad/s, rad/s2 and rad/s3 (or m/s, m/s2 and m/s3).
    qd0, qd1 : array_like, shape (nv,), optional
        Velocities at the ends, within the limits. Default: zero. The accelerations at the ends are
        zero.
    duration : float, optional
        Duration (s), at least the shortest possible duration, which is the default.
    synchronize : bool, optional
        Let all coordinates arrive at the same time (the default). Otherwise, each coordinate
        arrives as early as possible.
    robot : Robot, optional
        The robot that moves; see `cubic`. A joint with a quaternion rotates about one axis.

    Returns
    -------
    move : Move
        The trajectory. `move.duration` is the shortest duration, unless `duration` is given.

    Raises
    ------
    InputError
        If an array has the wrong shape or is not finite, if a limit is not positive, if a velocity
        at an end exceeds its limit, if both positions are equal, if `duration` is too short, or if
        no common duration exists.
    ArgumentError
        If `robot` is not a Robot, or if an argument is not numeric.
    OpenLoop
        If the robot has loops, and a given configuration does not close them.

    Examples
    --------
    >>> import chasles
    >>> limits = {"velocity": 1.0, "acceleration": 2.0, "jerk": 10.0}
    >>> move = chasles.trajectory.s_curve([0.0, 0.0], [2.0, 0.5], **limits)
    >>> round(move.duration, 6)
    2.7
    """
    given = (velocity, acceleration, jerk)
    return _fastest("s_curve", q0, q1, given, (qd0, qd1), duration, synchronize, robot)


@dataclass(frozen=True)
class Axis:
    """Motion of one coordinate by `distance`, subject to limits.

    `v`, `a` and `j` are the velocity, acceleration and jerk limits. `v0` and `v1` are the end
    velocities.
    """

    distance: float
    v: float
    a: float
    j: float
    v0: float = 0.0
    v1: float = 0.0

    def time(self, change: np.ndarray | float) -> np.ndarray:
        """Return the minimum duration (s) of a velocity change within the limits a and j."""
        dv = np.abs(change)
        if math.isinf(self.j):
            return np.asarray(dv / self.a)
        short = 2.0 * np.sqrt(dv / self.j)
        return np.where(dv < self.a**2 / self.j, short, dv / self.a + self.a / self.j)

    def ramps(self, peak: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        """Return the total duration and distance of the changes from v0 to `peak` and on to v1."""
        up, down = self.time(peak - self.v0), self.time(self.v1 - peak)
        return up + down, 0.5 * ((self.v0 + peak) * up + (peak + self.v1) * down)

    def peaks(self, lacks: Callable[[np.ndarray], np.ndarray]) -> list[float]:
        """Return the zeros of `lacks`, a continuous function of the peak velocity."""
        turn = 0.0 if math.isinf(self.j) else self.a**2 / self.j
        special = [x + s * turn for x in (self.v0, self.v1) for s in (-1.0, 0.0, 1.0)] + [0.0]
        even = np.linspace(-self.v, self.v, SAMPLES)
        near = np.add.outer([self.v0, self.v1], self.v * CLOSE).ravel()
        x = np.unique(np.clip(np.concatenate([even, special, near]), -self.v, self.v))
        y = np.asarray(lacks(x))
        found = [float(each) for each in x[y == 0.0]]
        for k in np.flatnonzero(np.sign(y[:-1]) * np.sign(y[1:]) < 0.0):
            root = scipy.optimize.brentq(
                lambda p: float(lacks(p)), x[k], x[k + 1], xtol=1e-300, rtol=8.9e-16
            )
            found.append(float(root))
        return found

    @cached_property
    def fastest(self) -> tuple[float, float]:
        """Shortest duration (s), and the corresponding peak velocity."""
        if self.still:
            return 0.0, 0.0
        found = []
        for peak in self.peaks(lambda p: self.ramps(p)[1] - self.distance):
            found.append((float(self.ramps(peak)[0]), peak))
        for peak in (self.v, -self.v):
            time, far = self.ramps(peak)
            if (self.distance - far) / peak >= 0.0:
                found.append((float(time + (self.distance - far) / peak), peak))
        return min(found)

    @property
    def still(self) -> bool:
        """Return True if the coordinate stays at rest."""
        return self.distance == 0.0 and self.v0 == self.v1 == 0.0

    def peak(self, duration: float) -> float | None:
        """Return the smallest peak velocity in magnitude for a duration; None if impossible."""
        shortest, quick = self.fastest
        if self.still or abs(duration - shortest) <= NEARLY * duration:
            return quick

        def lacks(p: np.ndarray) -> np.ndarray:
            time, far = self.ramps(p)
            return np.asarray(far + p * (duration - time) - self.distance)

        found = [p for p in self.peaks(lacks) if self.ramps(p)[0] <= duration]
        return min(found, key=abs) if found else None

    def curve(self, peak: float, duration: float) -> "scipy.interpolate.PPoly":
        """Return the displacement as a piecewise polynomial in time, with peak velocity `peak`."""
        up, down = float(self.time(peak - self.v0)), float(self.time(self.v1 - peak))
        flat = max(duration - up - down, 0.0)
        pieces = [
            *self._ramp(peak - self.v0, up),
            (flat, 0.0, 0.0),
            *self._ramp(self.v1 - peak, down),
        ]
        rows, t, x, v = [], [0.0], 0.0, self.v0
        for time, a, j in pieces:
            if time > 0.0:
                rows.append([j / 6.0, a / 2.0, v, x])
                t.append(t[-1] + time)
                x += time * (v + time * (a / 2.0 + time * j / 6.0))
                v += time * (a + time * j / 2.0)
        return scipy.interpolate.PPoly(np.array(rows).T, np.array(t))

    def _ramp(self, change: float, time: float) -> list[tuple[float, float, float]]:
        """Return the duration, initial acceleration and jerk of each piece of a velocity change."""
        sign = math.copysign(1.0, change)
        if math.isinf(self.j):
            return [(time, sign * self.a, 0.0)]
        rise = min(self.a / self.j, 0.5 * time)
        high, jerk = sign * self.j * rise, sign * self.j
        return [(rise, 0.0, jerk), (time - 2.0 * rise, high, 0.0), (rise, high, -jerk)]


def _fastest(
    name: str,
    q0: Array,
    q1: Array,
    limits: tuple[Array, Array, Array],
    ends: tuple[Array, Array],
    duration: float | None,
    synchronize: bool,
    robot: Robot | None,
) -> Move:
    at = chart(robot, two_points(q0, q1, robot, name), name)
    words = ("velocity", "acceleration", "jerk")
    given = [
        at.rate(bounds(w, x, at.sizes, name, infinite=w == "jerk" and name == "trapezoid"))
        for w, x in zip(words, limits, strict=True)
    ]
    rates = [
        at.rate(np.zeros(at.sizes) if v is None else finite(w, v, at.sizes, name))
        for w, v in zip(("qd0", "qd1"), ends, strict=True)
    ]
    for w, v in zip(("qd0", "qd1"), rates, strict=True):
        beyond = np.abs(v) > given[0]
        if np.any(beyond):
            k = int(np.argmax(beyond))
            problem = f"{w}[{k}] is {v[k]:g}, which exceeds the velocity limit {given[0][k]:g}"
            raise InputError(
                "E-PATH-033", problem, f"reduce `{w}`, or increase `velocity`", part=name
            )
    axes, directions = _axes(at, given, rates, name)
    longest = max((axis.fastest[0] for axis in axes), default=0.0)
    if longest == 0.0:
        problem = "the start and end positions are equal, so there is no motion"
        raise InputError("E-PATH-034", problem, "pass different start and end positions", part=name)
    if duration is not None:
        wanted = positive("duration", duration, name)
        if wanted < longest * (1.0 - NEARLY):
            problem = f"the limits require {longest:.9g} s, more than duration={wanted:g}"
            raise InputError("E-PATH-035", problem, "increase `duration`, or omit it", part=name)
        longest = max(wanted, longest)
    if synchronize:
        longest = _common(axes, longest, name)
    moving = [k for k, axis in enumerate(axes) if not axis.still]
    curves = []
    for axis in (axes[k] for k in moving):
        time = longest if synchronize else axis.fastest[0]
        peak = axis.peak(time)
        assert peak is not None, "the common duration is feasible"
        curves.append(axis.curve(peak, time))
    return at.move(_together(curves, np.array(directions)[moving], longest), at.points[:1])


def _axes(
    at: Chart, limits: list[np.ndarray], rates: list[np.ndarray], name: str
) -> tuple[list[Axis], list[np.ndarray]]:
    """Return the scalar coordinates of a motion, and the joint displacement (n,) per unit of each.

    A joint with a quaternion is treated as a single coordinate that moves from 0 to 1.
    """
    (d,) = steps(at)
    axes, directions, unit = [], [], np.eye(len(d))
    turning = {k: w for w, _ in at.space.brackets for k in range(w.start, w.stop)}
    for k in range(len(d)):
        if k not in turning:
            rest = (float(v[k]) for v in rates)
            axes.append(Axis(float(d[k]), *(float(x[k]) for x in limits), *rest))
            directions.append(unit[k])
    for where in dict.fromkeys((w.start, w.stop) for w in turning.values()):
        part = slice(*where)
        if any(np.any(v[part]) for v in rates):
            problem = "joints with quaternions must start and end at rest"
            raise InputError(
                "E-PATH-036", problem, "set their entries in `qd0` and `qd1` to zero", part=name
            )
        if np.any(d[part]):
            far = np.abs(d[part])
            most = [float(np.min(x[part][far > 0.0] / far[far > 0.0])) for x in limits]
            axes.append(Axis(1.0, most[0], most[1], most[2]))
            directions.append(np.where(np.isin(np.arange(len(d)), range(*where)), d, 0.0))
    return axes, directions


def _common(axes: list[Axis], shortest: float, name: str) -> float:
    """Return the shortest duration that is possible for all coordinates.

    A coordinate that must reverse its direction can arrive early or late, but not at every time in
    between.
    """

    def possible(duration: float) -> bool:
        return all(axis.peak(duration) is not None for axis in axes)

    low, high = shortest, shortest
    while not possible(high):
        low, high = high, high * SLOWER
        if high > 1e3 * shortest:
            problem = "no common duration was found for all coordinates"
            raise InputError("E-PATH-037", problem, "use synchronize=False", part=name)
    while high - low > NEARLY * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if possible(middle) else (middle, high)
    return high


def _together(
    curves: "list[scipy.interpolate.PPoly]", directions: np.ndarray, duration: float
) -> "scipy.interpolate.PPoly":
    """Return the sum of k scalar curves, each multiplied by its row of `directions` (k, n).

    A curve that ends before `duration` keeps its final value.
    """
    x = np.unique(np.concatenate([[0.0, duration], *(curve.x for curve in curves)]))
    x = x[np.append(True, np.diff(x) > NEARLY * duration)]
    x[-1] = duration
    middle = 0.5 * (x[:-1] + x[1:])  # used to find the piece that contains each interval
    values = np.zeros((4, len(middle), len(curves)))
    for k, curve in enumerate(curves):
        piece = np.clip(np.searchsorted(curve.x, middle) - 1, 0, len(curve.x) - 2)
        j, a, v, q = curve.c[:, piece]
        t = x[:-1] - curve.x[piece]
        rows = [j, a + 3.0 * j * t, v + t * (2.0 * a + 3.0 * j * t), q + t * (v + t * (a + t * j))]
        over = middle > curve.x[-1]
        end = curve(curve.x[-1])
        values[:, :, k] = [
            *(np.where(over, 0.0, row) for row in rows[:3]),
            np.where(over, end, rows[3]),
        ]
    return scipy.interpolate.PPoly(values @ directions, x)
