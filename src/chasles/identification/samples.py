"""Consecutive samples of one log, with checks for wrong units and swapped joints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any, Literal, cast

import numpy as np

from chasles.errors import InputError, ModelError
from chasles.functions.doors import Wrench
from chasles.functions.tracing import WrenchKey
from chasles.model.given import a_mapping
from chasles.robot import Robot

LOOKED_AT = 10_000
"""Maximum number of log rows that are checked for swapped joints and wrong units."""

LEAST = 50
"""Minimum number of rows in a log that is checked for swapped joints and wrong units."""

TRIED, PAIRS = 2000, 300
"""Limits of the search for swapped joints.

At most `PAIRS` pairs of joints are tested, each with at most `TRIED` rows.
"""

ALIKE, DOUBTFUL = 0.9, 0.99
"""Correlation thresholds for swapped columns of a log.

A column may belong to another joint if its correlation with the data of that joint exceeds the
first threshold, and its correlation with the data of its own joint is below the second.
"""

CLEARLY = 5.0
"""Factor by which a swap of columns must reduce the unexplained variance, to be reported."""

UNIT = 0.2
"""Relative difference between velocities and position derivatives that suggests wrong units."""

PROBABLE = {"rad": "deg", "m": "mm", "rad/s": "deg/s", "m/s": "mm/s"}
"""Probable units of columns that are not in SI units, by SI unit."""

LOAD = ("mx", "my", "mz", "fx", "fy", "fz")
"""Columns of a wrench: moment (N m), then force (N)."""

Measuring = Literal["sensor", "plate"]
"""Instruments that measure wrenches: a force-torque sensor at a frame, or a force plate."""

PLACES: dict[Any, dict[str, Any]] = {
    "sensor": {"axes": "frame", "at": "frame"},
    "plate": {"axes": "world", "at": "world"},
}
"""Axes and reference point of a wrench, by measuring instrument."""


@dataclass(frozen=True)
class Log:
    """Consecutive samples of one log.

    `first` is the number of the first row, counted from 1. `begins` is True if the samples start a
    file or follow a gap. `tau` is empty (n, 0) if torques are not read. `loads` are the external
    wrenches, six columns for each frame.
    """

    file: str
    first: int
    begins: bool
    t: np.ndarray | None
    q: np.ndarray
    qd: np.ndarray | None
    qdd: np.ndarray | None
    tau: np.ndarray
    loads: np.ndarray


def checked_wrenches(robot: Robot, given: Mapping[str, Measuring] | None) -> tuple[WrenchKey, ...]:
    """Return the frame, axes and reference point of each wrench in the logs."""
    found = []
    for frame, how in a_mapping("wrenches", given or {}, "identify").items():
        robot.model.frame(frame)
        if how not in PLACES:
            problem = f"the instrument must be 'sensor' or 'plate', not {how!r:.60}"
            raise InputError("E-IDENT-042", problem, part=f"wrenches: {frame}")
        found.append(WrenchKey(frame, **PLACES[how]))
    return tuple(found)


def load_columns(wrenches: Sequence[WrenchKey]) -> list[str]:
    """Return the column names of logged wrenches."""
    return [f"{key.frame}.{entry}" for key in wrenches for entry in LOAD]


def external(wrenches: Sequence[WrenchKey], loads: np.ndarray) -> dict[str, Wrench] | None:
    """Return measured columns as external wrenches by frame; None if there are no wrenches."""
    return {
        key.frame: Wrench(loads[:, 6 * k : 6 * k + 6], key.axes, cast(Any, key.at))
        for k, key in enumerate(wrenches)
    } or None


def other_unit(
    quantity: str, name: str, doubtful: Sequence[str], units: Mapping[str, str]
) -> tuple[str, str]:
    """Return the column to convert and its probable unit: "elbow.q" and "deg".

    If several of the doubtful columns have the same SI unit, return the quantity instead of one
    column. `units` contains the SI units of the columns.
    """
    alike = [other for other in doubtful if units[other] == units[name]]
    return quantity if len(alike) > 1 else name, PROBABLE[units[name]]


def check(
    robot: Robot,
    names: Mapping[str, Sequence[str]],
    units: Mapping[str, str],
    log: Log,
    wrenches: Sequence[WrenchKey],
) -> None:
    """Raise an error if the velocities of a log have wrong units, or if joints are swapped.

    `names` contains the column names by quantity, and `units` the SI units of the columns, for
    error messages.
    """
    n = min(len(log.q), LOOKED_AT)
    if n < LEAST or robot.nq != robot.nv or log.qd is None:
        return
    if log.t is not None:
        rate = np.gradient(log.q[:n], log.t[:n], axis=0)
        _check_rates(names, units, log, rate, log.qd[:n])
    if log.qdd is None or not log.tau.size:
        return
    f_ext = external(wrenches, log.loads[:n])
    predicted = robot.inverse_dynamics(log.q[:n], log.qd[:n], log.qdd[:n], f_ext=f_ext)
    pair = swapped(predicted, log.tau[:n])
    if pair is not None:
        one, other = (names["tau"][k] for k in pair)
        problem = f"{one} and {other} are probably swapped: each fits the other joint's motion"
        remedy = f"pass columns={{{one!r}: {other!r}, {other!r}: {one!r}}}"
        raise ModelError("E-LOG-016", problem, remedy, file=log.file, line=log.first)
    fit = np.diagonal(_correlations(predicted, log.tau[:n]))
    pair = _exchanged(robot, log, fit, wrenches)
    if pair is not None:
        one, other = (names["q"][k].removesuffix(".q") for k in pair)
        problem = (
            f"joints {one} and {other} are probably swapped: "
            "swapping their columns makes the torques fit"
        )
        remedy = f"swap the column names of {one} and {other} (option `columns`)"
        raise ModelError("E-LOG-025", problem, remedy, file=log.file, line=log.first)


def _check_rates(
    names: Mapping[str, Sequence[str]],
    units: Mapping[str, str],
    log: Log,
    rate: np.ndarray,
    qd: np.ndarray,
) -> None:
    pair = swapped(rate, qd)
    if pair is not None:
        one, other = (names["qd"][k] for k in pair)
        problem = f"{one} and {other} are probably swapped: each matches the other joint's velocity"
        remedy = f"pass columns={{{one!r}: {other!r}, {other!r}: {one!r}}}"
        raise ModelError("E-LOG-017", problem, remedy, file=log.file, line=log.first)
    alike = np.diagonal(_correlations(rate, qd))
    slopes = {}
    for k, name in enumerate(names["qd"]):
        squares = float(np.sum(rate[:, k] ** 2))
        if squares == 0.0 or alike[k] < ALIKE:
            continue
        slope = float(np.sum(rate[:, k] * qd[:, k])) / squares
        if abs(slope - 1.0) > UNIT:
            slopes[name] = slope
    if slopes:
        name, slope = next(iter(slopes.items()))
        position = names["q"][names["qd"].index(name)]
        problem = f"{name} is {slope:.4g} times the rate of {position}, so their units differ"
        column, unit = other_unit("qd", name, list(slopes), units)
        remedy = f"pass the unit, such as units={{{column!r}: {unit!r}}}, or the units of q or t"
        raise ModelError("E-LOG-018", problem, remedy, file=log.file, line=log.first)


def _correlations(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the correlations between the columns of x and the columns of y."""
    a, b = x - x.mean(axis=0), y - y.mean(axis=0)
    sizes = np.outer(np.linalg.norm(a, axis=0), np.linalg.norm(b, axis=0))
    return np.asarray(a.T @ b / np.maximum(sizes, 1e-300))


def swapped(expected: np.ndarray, given: np.ndarray) -> tuple[int, int] | None:
    """Return the indices of two columns that are probably swapped, or None.

    Each of the two columns is far better correlated with the expected values of the other joint
    than with those of its own joint.
    """
    found = _correlations(expected, given)
    for i, j in combinations(range(len(found)), 2):
        own = max(found[i, i], found[j, j])
        if _better(own, min(found[i, j], found[j, i])):
            return i, j
    return None


def _better(own: float, other: float) -> bool:
    """Return True if the correlation `other` is clearly better than the correlation `own`."""
    left = CLEARLY * (1.0 - other**2)
    return own < DOUBTFUL and other > ALIKE and 1.0 - max(own, 0.0) ** 2 > left


def _exchanged(
    robot: Robot, log: Log, fit: np.ndarray, wrenches: Sequence[WrenchKey]
) -> tuple[int, int] | None:
    """Return two joints whose columns are swapped in the log, or None.

    `fit` is the correlation of each measured torque with its prediction. The columns count as
    swapped if exchanging them makes both torques fit, improves the fit of one torque greatly, and
    improves the overall fit.
    """
    assert log.qd is not None, "checked"
    assert log.qdd is not None, "checked"
    doubtful = np.flatnonzero(fit < DOUBTFUL)
    for i, j in islice(combinations(doubtful.tolist(), 2), PAIRS):
        order = np.arange(robot.nv)
        order[[i, j]] = j, i
        states = (x[:TRIED, order] for x in (log.q, log.qd, log.qdd))
        predicted = robot.inverse_dynamics(*states, f_ext=external(wrenches, log.loads[:TRIED]))
        found = np.diagonal(_correlations(predicted, log.tau[:TRIED, order]))
        if _better(min(fit[i], fit[j]), min(found[i], found[j])) and found.sum() > fit.sum():
            return i, j
    return None
