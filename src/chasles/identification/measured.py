"""Samples for identification from logs, with checks for wrong units and swapped joints."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from chasles import tasks
from chasles.errors import InputError, ModelError
from chasles.identification.equations import Equations, Grams, Sample
from chasles.identification.filtering import Smoothing, delay, smoothed
from chasles.identification.logs import Log, Reader, Skipped, column_names, partitions
from chasles.robot import Robot
from chasles.tasks import THREADS, Told

LOOKED_AT = 20_000
"""Number of rows of a log that are checked for swapped joints and wrong units."""

ALIKE, UNLIKE = 0.9, 0.5
"""Correlations above and below which columns belong to the same or to different joints."""

UNIT = 0.2
"""Relative difference between velocities and rates of positions that indicates another unit."""


@dataclass
class Measured:
    """Samples of logs.

    lag: time (s) by which torques lag behind positions; None estimates it for each log.
    """

    reader: Reader
    smoothing: Smoothing = "low-pass"
    cutoff: float | None = None
    lag: float | None = 0.0
    cutoffs: list[float] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)

    def samples(self, data: Any) -> Iterator[Sample]:
        """Yield states and torques of logs."""
        self.cutoffs.clear()
        self.lags.clear()
        self.reader.skipped.counts.clear()
        for log in self._whole(self.reader.read(data)):
            if log.begins:
                check(self.reader.robot, log)
            yield self.sample(log)

    def _whole(self, logs: Iterator[Log]) -> Iterator[Log]:
        """Join the blocks of a motion if rates are missing or there is a lag."""
        held: list[Log] = []
        for log in logs:
            if log.qd is not None and log.qdd is not None and self.lag == 0.0:
                yield log
                continue
            if held and log.begins:
                yield _joined(held)
                held = []
            held.append(log)
        if held:
            yield _joined(held)

    def sample(self, log: Log) -> Sample:
        tau, t = log.tau, log.t
        if (self.lag != 0.0 or log.qd is None or log.qdd is None) and t is None:
            problem = "velocities, accelerations and delays need times"
            raise ModelError("E-LOG-015", problem, "add a column t (s)", file=log.file, line=1)
        if self.lag != 0.0 and t is not None:
            late = self.lag if self.lag is not None else self._estimated(log, t)
            self.lags.append(late)
            moved = [np.interp(t + late, t, column) for column in tau.T]
            tau = np.column_stack(moved)
        if log.qd is not None and log.qdd is not None:
            return log.q, log.qd, log.qdd, tau
        assert t is not None
        found = smoothed(t, log.q, tau, self.smoothing, self.cutoff)
        self.cutoffs.append(found.cutoff)
        return found.q, found.qd, found.qdd, found.tau

    def _estimated(self, log: Log, t: np.ndarray) -> float:
        """Return the delay of a log's torques behind those that the robot predicts."""
        if log.qd is not None and log.qdd is not None:
            state = (log.q, log.qd, log.qdd)
            return delay(t, log.tau, self.reader.robot.inverse_dynamics(*state))
        found = smoothed(t, log.q, log.tau, self.smoothing, self.cutoff)
        predicted = self.reader.robot.inverse_dynamics(found.q, found.qd, found.qdd)
        even = np.column_stack([np.interp(t, found.t, column) for column in predicted.T])
        inside = (t >= found.t[0]) & (t <= found.t[-1])
        return delay(t[inside], log.tau[inside], even[inside])

    def add(self, remarks: "Remarks") -> None:
        """Add the remarks on a log."""
        self.cutoffs += remarks.cutoffs
        self.lags += remarks.lags
        for reason, count in remarks.skipped.items():
            self.reader.skipped.add(reason, count)

    def notes(self) -> tuple[str, ...]:
        """Return remarks: cut-offs, delays, and skipped data."""
        found = []
        if self.cutoffs:
            how = "chosen from the spectrum" if self.cutoff is None else "given"
            low, high = min(self.cutoffs), max(self.cutoffs)
            span = f"{low:.3g} Hz" if low == high else f"{low:.3g} to {high:.3g} Hz"
            found.append(f"velocities and accelerations by {self.smoothing}, cut-off {span}, {how}")
        if self.lags:
            found.append(f"torques lag by {1e3 * float(np.mean(self.lags)):.2f} ms")
        if self.reader.skipped.counts:
            found.append(f"left out: {self.reader.skipped}")
        return tuple(found)


@dataclass(frozen=True)
class Remarks:
    """Cut-off frequencies (Hz) and delays (s) of logs, and skipped rows and files by reason."""

    cutoffs: list[float]
    lags: list[float]
    skipped: Mapping[str, int]


@dataclass(frozen=True)
class Summing:
    """A task that reads a log and returns its Gram matrices, and remarks on it."""

    equations: Equations
    measured: Measured
    threads: int

    def __call__(self, data: Any, told: Told) -> tuple[Grams, Remarks]:
        threaded = self.threads > 1
        reader = replace(self.measured.reader, skipped=Skipped(), threaded=threaded)
        logs = replace(self.measured, reader=reader, cutoffs=[], lags=[])

        def samples() -> Iterator[Sample]:
            for sample in logs.samples(data):
                yield sample
                told(len(sample[0]))

        found = self.equations.total(samples(), self.threads)
        return found, Remarks(logs.cutoffs, logs.lags, reader.skipped.counts)


def summed(
    equations: Equations, logs: Measured, data: Any, cluster: str | None, told: Told | None
) -> Grams:
    """Return the Gram matrices of logs, added in their order; remarks are added to `logs`.

    Files are read on threads of this process, or on the workers of a cluster.
    """
    found, parts = equations.none(), partitions(data)
    here = THREADS if cluster is None and len(parts) == 1 else 1
    told = told or (lambda count: None)
    summing = Summing(equations, logs, here)
    for some, remarks in tasks.run(summing, parts, cluster=cluster, told=told):
        found = found + some
        logs.add(remarks)
    return found


def _joined(logs: list[Log]) -> Log:
    """Return consecutive blocks as one log."""
    if len(logs) == 1:
        return logs[0]
    parts: dict[str, Any] = {}
    for name in ("t", "q", "qd", "qdd", "tau"):
        arrays = [getattr(log, name) for log in logs]
        parts[name] = None if arrays[0] is None else np.concatenate(arrays)
    return Log(logs[0].file, logs[0].first, logs[0].begins, **parts)


def check(robot: Robot, log: Log) -> None:
    """Raise an error for a log whose rates are in other units, or whose joints are swapped."""
    n = min(len(log.q), LOOKED_AT)
    if n < 50 or robot.nq != robot.nv:
        return
    if log.t is not None and log.qd is not None:
        rate = np.gradient(log.q[:n], log.t[:n], axis=0)
        _check_rates(robot, log, rate, log.qd[:n])
    if log.qd is not None and log.qdd is not None:
        predicted = robot.inverse_dynamics(log.q[:n], log.qd[:n], log.qdd[:n])
        pair = _swapped(predicted, log.tau[:n])
        if pair is not None:
            one, other = (column_names(robot)["tau"][k] for k in pair)
            problem = f"{one} and {other} are probably swapped: each fits the other's joint"
            remedy = f"give columns={{{one!r}: {other!r}, {other!r}: {one!r}}}"
            raise ModelError("E-LOG-016", problem, remedy, file=log.file, line=log.first)


def _check_rates(robot: Robot, log: Log, rate: np.ndarray, qd: np.ndarray) -> None:
    names = column_names(robot)
    pair = _swapped(rate, qd)
    if pair is not None:
        one, other = (names["qd"][k] for k in pair)
        problem = f"{one} and {other} are probably swapped: each is the rate of the other's q"
        remedy = f"give columns={{{one!r}: {other!r}, {other!r}: {one!r}}}"
        raise ModelError("E-LOG-017", problem, remedy, file=log.file, line=log.first)
    alike = np.diagonal(_correlations(rate, qd))
    for k, name in enumerate(names["qd"]):
        squares = float(np.sum(rate[:, k] ** 2))
        if squares == 0.0 or alike[k] < ALIKE:
            continue
        slope = float(np.sum(rate[:, k] * qd[:, k])) / squares
        if abs(slope - 1.0) > UNIT:
            problem = f"{name} is {slope:.4g} times the rate of {names['q'][k]}: units differ"
            remedy = f"give units={{{name!r}: 'deg/s'}}, or those of q or t"
            raise ModelError("E-LOG-018", problem, remedy, file=log.file, line=log.first)


def _correlations(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return correlations of columns of x with columns of y."""
    a, b = x - x.mean(axis=0), y - y.mean(axis=0)
    sizes = np.outer(np.linalg.norm(a, axis=0), np.linalg.norm(b, axis=0))
    return np.asarray(a.T @ b / np.maximum(sizes, 1e-300))


def _swapped(expected: np.ndarray, given: np.ndarray) -> tuple[int, int] | None:
    """Return two columns that each fit the other's place but not their own, or None."""
    found = _correlations(expected, given)
    n = len(found)
    for i in range(n):
        for j in range(i + 1, n):
            crossed = min(found[i, j], found[j, i])
            if crossed > ALIKE and max(found[i, i], found[j, j]) < UNLIKE:
                return i, j
    return None


def arrays(logs: Measured, t: Any, q: Any, qd: Any, qdd: Any, tau: Any) -> Sample:
    """Return samples of arrays, like those of a log without the missing rates or with a delay."""
    robot = logs.reader.robot
    if t is None:
        problem = "t is missing; velocities, accelerations and delays need times"
        raise InputError("E-IDENT-018", problem, "give t, or qd and qdd", part="identify")
    missing = qd is None or qdd is None
    if robot.nq != robot.nv and missing:
        problem = "velocities of joints with quaternions are not found from positions"
        raise InputError("E-IDENT-019", problem, "give qd and qdd", part="identify")
    times, place, torque = (np.asarray(x, float) for x in (t, q, tau))
    speed, push = (None if missing else np.asarray(x, float) for x in (qd, qdd))
    return logs.sample(Log("arrays", 1, True, times, place, speed, push, torque))
