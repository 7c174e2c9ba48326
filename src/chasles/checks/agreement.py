"""Every method of every function against the first: the formalisms check each other."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from chasles.algorithms import FUNCTIONS, KINEMATICS, solid_bodies
from chasles.checks.comparing import NOTHING, Comparison, Loss
from chasles.checks.trial import Trial, arguments, at_frame
from chasles.functions.tracing import signature


def views(trial: Trial) -> tuple[dict[str, Any], ...]:
    """Ways to write a twist or a wrench, with every change of axes and of point among them."""
    point = tuple(trial.units.length * x for x in (0.4, -0.2, 0.8))
    return (
        {"axes": "world", "at": "frame"},
        {"axes": "frame", "at": "world"},
        {"axes": "frame", "at": point},
    )


INVERTING = {"forward_dynamics", "hybrid_dynamics"}
"""Functions that solve for accelerations: these are compared as the forces that they need."""

ILL = {"mass_matrix_inverse", "operational_inertia_inverse", "linearize"}
"""Functions that invert the mass matrix, and lose the digits that it costs."""


def loss_of(trial: Trial, function: str, method: str = "") -> Loss:
    """What a method loses by what it inverts: nothing, the mass matrix, or each link's inertia."""
    if function not in ILL | INVERTING:
        return NOTHING
    needs = {m.name: m.needs for m in FUNCTIONS[function]}
    return trial.assembling if needs.get(method) is solid_bodies else trial.inverting


FORCES = {"inverse_dynamics", "bias_forces", "gravity_forces", *INVERTING}
"""Functions that give joint forces, which may all be zero."""

RATES = {"frame_velocity": 1, "frame_acceleration": 2, "frame_motion": 3, "jacobian_rate": 1}
"""Functions of so many velocities multiplied, whose results may be zero where nothing moves. Other
kinematics are measured beside 1 rad, or the robot's length."""


def size_of(trial: Trial, function: str) -> float:
    """What results of a function are measured beside, where they are smaller."""
    if function in FORCES:
        return trial.force
    return trial.speed ** RATES.get(function, 0) if function in KINEMATICS else 0.0


def frames(trial: Trial) -> tuple[str, ...]:
    """The last frame, and one that half of the joints move."""
    bodies = trial.model.bodies
    middle = [bodies[len(bodies) // 2].name] if bodies else []
    return tuple(dict.fromkeys([trial.robot.frames[-1], *middle]))


def options_of(trial: Trial, function: str) -> list[dict[str, Any]]:
    """With which options a function is asked: frames and views, or known joints, or none."""
    known = signature(FUNCTIONS[function][0].algorithm).options
    if "frame" in known:
        shown = views(trial) if "axes" in known else ({},)
        return [{"frame": frame, **view} for frame in frames(trial) for view in shown]
    if "known" in known:
        names = [trial.model.bodies[i].data.name for i in trial.model.movers]
        base = [names[1:]] if trial.model.floating else []
        return [{"known": tuple(some)} for some in (names[::2], *base)]
    return [{}]


def methods_agree(trial: Trial) -> Iterator[Comparison]:
    """With damping, friction and an external force: each method against the first of the table."""
    for function, rows in FUNCTIONS.items():
        if len(rows) == 1:
            continue
        for options in options_of(trial, function):
            order = 3 if signature(rows[0].algorithm).any_order else 1
            for k in range(1, order + 1):
                yield from _of_one(trial, function, options, k)


def _of_one(
    trial: Trial, function: str, options: dict[str, Any], order: int
) -> Iterator[Comparison]:
    ways = [
        m for m in trial.ways(function, **options) if order == 1 or signature(m.algorithm).any_order
    ]
    if len(ways) < 2:
        return
    loaded = "f_ext" in signature(ways[0].algorithm).inputs
    extra: dict[str, Any] = (
        {"f_ext": at_frame(trial.robot.frames[-1], trial.wrench)} if loaded else {}
    )
    model, (q, qd, qdd) = trial.whole, (trial.q, trial.qd, trial.qdd)
    given: dict[str, Any] = {"q": q, "qd": qd, "qdd": qdd, "qddd": qdd[::-1].copy()}
    if function in INVERTING:
        tau = trial.ask(model, "inverse_dynamics", q, qd, qdd, **extra)
        given |= {"tau": tau, "given": mixed(trial, options.get("known", ()), qdd, tau)}
    expected: Any = None
    for way in ways:
        arrays = arguments(function, way, given, order)
        found = trial.ask(model, function, *arrays, method=way.name, **extra, **options)
        parts = found if isinstance(found, tuple) else (found,)
        if function in INVERTING:
            parts = tuple(effort(trial, part, options.get("known", ())) for part in parts)
        if expected is None:
            expected = parts
            continue
        size = size_of(trial, function)
        loss = loss_of(trial, function, way.name)
        for k, (a, b) in enumerate(zip(parts, expected, strict=True)):
            first = expected[0] * trial.units.of(function)
            beside = size if len(parts) == 1 else max(size, _size(first))
            name = way.name if len(parts) == 1 else f"{way.name}, result {k + 1}"
            yield Comparison(function, name, a, b, beside, loss, trial.units.of(function, k))


def mixed(trial: Trial, known: Any, qdd: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Accelerations of the known joints, forces of the others."""
    given = tau.copy()
    for name in known:
        where = trial.model.velocity_slices[trial.model.mover(name)]
        given[where] = qdd[where]
    return given


def effort(trial: Trial, found: np.ndarray, known: Any) -> np.ndarray:
    """Accelerations as the forces that they need, M qdd; forces of known joints as they are."""
    part = np.zeros(trial.model.nv, dtype=bool)
    for name in known:
        part[trial.model.velocity_slices[trial.model.mover(name)]] = True
    return np.where(part, found, trial.M @ np.where(part, 0.0, found))


def _size(array: np.ndarray) -> float:
    return float(np.max(np.abs(array), initial=0.0))
