"""Read logs for identification: differentiate, correct delays, and sum Gram matrices."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from chasles import tasks
from chasles.errors import InputError, ModelError
from chasles.functions.doors import wrench_arguments
from chasles.identification.equations import Equations, Grams, Sample
from chasles.identification.filtering import Smoothing, delay, smoothed
from chasles.identification.logs import Reader, Skipped
from chasles.identification.samples import Log, external
from chasles.tasks import THREADS, Told

Lag = float | None | Mapping[str, float | None]
"""Delay of the torques (s), or a mapping from joint or wrench frame to delay.

None means that the delay is estimated.
"""


@dataclass
class Measured:
    """Samples read from logs, with missing derivatives computed and delays corrected.

    `lag` is the delay of torques relative to positions, or None if the delay is estimated for each
    log. `lags` are the delays of the logs read so far, by joint or frame; the key "" means all
    torques.
    """

    reader: Reader
    smoothing: Smoothing = "low-pass"
    cutoff: float | None = None
    lag: Lag = 0.0
    cutoffs: list[float] = field(default_factory=list)
    lags: dict[str, list[float]] = field(default_factory=dict)

    def samples(self, data: Any) -> Iterator[Sample]:
        """Yield states, torques and external wrenches from logs."""
        self.cutoffs.clear()
        self.lags.clear()
        self.reader.skipped.counts.clear()
        for log in self._whole(self.reader.read(data)):
            yield self.sample(log)

    def _whole(self, logs: Iterator[Log]) -> Iterator[Log]:
        """Join the blocks of a motion if derivatives are missing or a delay must be corrected."""
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
        """Return the joint states, torques and external wrenches of a log at common times."""
        t, n = log.t, log.tau.shape[1]
        if log.qd is not None and log.qdd is not None and self.lag == 0.0:
            return log.q, log.qd, log.qdd, log.tau, log.loads
        if t is None:
            problem = "sample times are necessary to compute velocities, accelerations or delays"
            raise ModelError("E-LOG-015", problem, "add a column t (s)", file=log.file, line=1)
        channels, known = np.concatenate([log.tau, log.loads], axis=1), slice(None)
        if self.lag != 0.0:
            late = self._late(log, t)
            for column, lag in zip(channels.T, late, strict=True):
                column[:] = np.interp(t + lag, t, column) if lag else column
            first = np.searchsorted(t, t[0] - late.min(initial=0.0))
            last = np.searchsorted(t, t[-1] - late.max(initial=0.0), side="right")
            known = slice(int(first), int(last))
        channels = channels[known]
        if log.qd is not None and log.qdd is not None:
            states = log.q[known], log.qd[known], log.qdd[known]
            return *states, channels[:, :n], channels[:, n:]
        found = smoothed(t[known], log.q[known], channels, self.smoothing, self.cutoff)
        self.cutoffs.append(found.cutoff)
        return found.q, found.qd, found.qdd, found.tau[:, :n], found.tau[:, n:]

    def _late(self, log: Log, t: np.ndarray) -> np.ndarray:
        """Return the delay (s) of each torque and wrench column."""
        late = np.zeros(log.tau.shape[1] + log.loads.shape[1])
        robot, n = self.reader.robot, log.tau.shape[1]
        places = {name: robot.velocity_slice(name) for name in robot.joints}
        for k, key in enumerate(self.reader.wrenches):
            places[key.frame] = slice(n + 6 * k, n + 6 * k + 6)
        places[""] = slice(0, n)
        given = self.lag if isinstance(self.lag, Mapping) else {"": self.lag}
        for name, lag in given.items():
            place = places[name]
            late[place] = self._estimated(log, t, place) if lag is None else lag
            self.lags.setdefault(name, []).append(float(late[place][0]))
        return late

    def _estimated(self, log: Log, t: np.ndarray, place: slice) -> float:
        """Estimate the delay (s) of the given torque columns relative to predicted torques."""
        robot, f_ext = self.reader.robot, external(self.reader.wrenches, log.loads)
        if log.qd is not None and log.qdd is not None:
            predicted = robot.inverse_dynamics(log.q, log.qd, log.qdd, f_ext=f_ext)
            return delay(t, log.tau[:, place], predicted[:, place])
        channels = np.concatenate([log.tau, log.loads], axis=1)
        found = smoothed(t, log.q, channels, self.smoothing, self.cutoff)
        loads = external(self.reader.wrenches, found.tau[:, log.tau.shape[1] :])
        predicted = robot.inverse_dynamics(found.q, found.qd, found.qdd, f_ext=loads)[:, place]
        even = np.column_stack([np.interp(t, found.t, column) for column in predicted.T])
        inside = (t >= found.t[0]) & (t <= found.t[-1])
        return delay(t[inside], log.tau[inside, place], even[inside])

    def add(self, remarks: "Remarks") -> None:
        """Merge a log's cut-off frequencies, delays and skip counts with those of earlier logs."""
        self.cutoffs += remarks.cutoffs
        for name, lags in remarks.lags.items():
            self.lags.setdefault(name, []).extend(lags)
        for reason, count in remarks.skipped.items():
            self.reader.skipped.add(reason, count)

    def delays(self) -> dict[str, float]:
        """Return the mean delay (s) of each measured joint torque and wrench, by name."""
        found = {name: float(np.mean(lags)) for name, lags in self.lags.items()}
        every = found.pop("", None)
        return found if every is None else dict.fromkeys(self.reader.robot.joints, every)

    def notes(self) -> tuple[str, ...]:
        """Return notes about cut-offs, delays and skipped data."""
        found = []
        if self.cutoffs:
            how = "chosen from the spectrum" if self.cutoff is None else "given"
            low, high = min(self.cutoffs), max(self.cutoffs)
            span = f"{low:.3g} Hz" if low == high else f"{low:.3g} to {high:.3g} Hz"
            found.append(f"velocities and accelerations: {self.smoothing}, cut-off {span}, {how}")
        for name, lags in self.lags.items():
            what = f"the torque or wrench {name!r}" if name else "the torques"
            ms = 1e3 * float(np.mean(lags))
            found.append(f"delay of {what} relative to the positions: {ms:.2f} ms")
        if self.reader.skipped.counts:
            found.append(f"skipped: {self.reader.skipped}")
        return tuple(found)


@dataclass(frozen=True)
class Remarks:
    """Data about one log: cut-off frequencies (Hz), delays (s), and reasons for skipped data.

    `skipped` contains the number of skipped items for each reason.
    """

    cutoffs: list[float]
    lags: Mapping[str, list[float]]
    skipped: Mapping[str, int]


@dataclass(frozen=True)
class Summing:
    """A task that reads a log and returns its Gram matrices and `Remarks`."""

    equations: Equations
    measured: Measured
    threads: int

    def __call__(self, data: Any, told: Told) -> tuple[Grams, Remarks]:
        threaded = self.threads > 1
        reader = replace(self.measured.reader, skipped=Skipped(), threaded=threaded)
        logs = replace(self.measured, reader=reader, cutoffs=[], lags={})

        def samples() -> Iterator[Sample]:
            for sample in logs.samples(data):
                yield sample
                told(len(sample[0]))

        found = self.equations.total(samples(), self.threads)
        return found, Remarks(logs.cutoffs, logs.lags, reader.skipped.counts)


def summed(
    equations: Equations, logs: Measured, data: Any, cluster: str | None, told: Told | None
) -> Grams:
    """Return the sum of the Gram matrices of all logs in `data`.

    Files are read by threads of this process or by a cluster's workers. Gram matrices are added in
    the order of the logs, and the `Remarks` about each log are added to `logs`.
    """
    found, parts = equations.none(), logs.reader.partitions(data)
    here = THREADS if cluster is None and len(parts) == 1 else 1
    told = told or (lambda count: None)
    summing = Summing(equations, logs, here)
    for some, remarks in tasks.run(summing, parts, cluster=cluster, told=told):
        found = found + some
        logs.add(remarks)
    return found


def _joined(logs: list[Log]) -> Log:
    """Join consecutive blocks of a log."""
    if len(logs) == 1:
        return logs[0]
    parts: dict[str, Any] = {}
    for name in ("t", "q", "qd", "qdd", "tau", "loads"):
        arrays = [getattr(log, name) for log in logs]
        parts[name] = None if arrays[0] is None else np.concatenate(arrays)
    return Log(logs[0].file, logs[0].first, logs[0].begins, **parts)


def arrays(
    logs: Measured, t: Any, q: Any, qd: Any, qdd: Any, tau: Any, f_ext: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Any]:
    """Compute missing derivatives and correct delays; return q, qd, qdd, tau and f_ext."""
    robot = logs.reader.robot
    if t is None:
        problem = "t is missing, but is necessary to compute velocities, accelerations or delays"
        remedy = "pass `t`, or pass `qd` and `qdd` and omit `delay`"
        raise InputError("E-IDENT-018", problem, remedy, part="identify")
    missing = qd is None or qdd is None
    if robot.nq != robot.nv and missing:
        problem = "velocities of joints with quaternions cannot be computed from positions"
        raise InputError("E-IDENT-019", problem, "pass `qd` and `qdd`", part="identify")
    times, place, torque = (np.asarray(x, float) for x in (t, q, tau))
    speed, push = (None if missing else np.asarray(x, float) for x in (qd, qdd))
    keys, values = wrench_arguments(robot.model, f_ext)
    every = [np.zeros((len(torque), 0)), *(np.broadcast_to(x, (len(torque), 6)) for x in values)]
    logs = replace(logs, reader=replace(logs.reader, wrenches=keys))
    loads = np.concatenate(every, axis=1)
    q, qd, qdd, tau, loads = logs.sample(
        Log("arrays", 1, True, times, place, speed, push, torque, loads)
    )
    return q, qd, qdd, tau, external(keys, loads)
