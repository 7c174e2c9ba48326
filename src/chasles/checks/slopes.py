"""Derivatives against extrapolated differences, along a random direction."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from chasles.checks.comparing import Comparison
from chasles.checks.trial import Trial, at_frame, slope_at


def gradients(trial: Trial) -> Iterator[Comparison]:
    """Gravity is the gradient of potential energy, and C + C' the rate of M."""
    if not trial.has("gravity_forces"):
        return
    q, d = trial.q, trial.direction
    climbed = trial.slope(lambda x: trial.run("potential_energy", x))
    if not trial.model.driven:
        g = trial.run("gravity_forces", q)
        yield Comparison("gravity_forces", "dV/dq", g @ d, climbed, trial.force)
    if trial.has("coriolis_matrix"):
        C = trial.run("coriolis_matrix", q, trial.qd)
        rate = trial.rate_of("mass_matrix", "q")
        units = trial.units.inertia
        yield Comparison("coriolis_matrix", "C + C'", C + C.T, rate, trial.force, units=units)


def sensitivities(trial: Trial) -> Iterator[Comparison]:
    """D0, V0, P0 of each method are the slopes of inverse dynamics, with a load and damping."""
    if not trial.has("inverse_dynamics"):
        return
    state, load = (trial.q, trial.qd, trial.qdd), _load(trial)
    expected = _slopes(trial, "inverse_dynamics", state, load)
    size = trial.force * trial.speed
    for way in trial.ways("inverse_dynamics_sensitivities"):
        D0, V0, P0 = trial.ask(
            trial.whole, "inverse_dynamics_sensitivities", *state, method=way.name, f_ext=load
        )
        for name, found, slope in zip("PVD", (P0, V0, D0), expected, strict=True):
            function, method = "inverse_dynamics_sensitivities", f"{way.name}, {name}0"
            along, units = found @ trial.direction, trial.units.effort
            yield Comparison(function, method, along, slope, size, units=units)


def inverse_recursion(trial: Trial) -> Iterator[Comparison]:
    """The recursion for derivatives of inverse dynamics, with a load and damping."""
    if not trial.has("inverse_dynamics"):
        return
    state, load = (trial.q, trial.qd, trial.qdd), _load(trial)
    expected = _slopes(trial, "inverse_dynamics", state, load)
    found = trial.derivatives("inverse_dynamics", *state, f_ext=load)
    for k, (slopes, slope) in enumerate(zip(found, expected, strict=True)):
        along, size = slopes @ trial.direction, trial.force * trial.speed
        method, units = f"derivative {k + 1}", trial.units.effort
        yield Comparison("inverse_dynamics", method, along, slope, size, units=units)


def forward_recursion(trial: Trial) -> Iterator[Comparison]:
    """That of forward dynamics, and A and B of linearize: as the forces that changes need."""
    if not trial.has("inverse_dynamics") or trial.model.idle:
        return
    q, qd, d, n, load = trial.q, trial.qd, trial.direction, trial.model.nv, _load(trial)
    tau = trial.ask(trial.whole, "inverse_dynamics", q, qd, trial.qdd, f_ext=load)
    solver = trial.ways("forward_dynamics")[0].name
    push = trial.force * d * trial.units.rate**2
    expected = _slopes(trial, "forward_dynamics", (q, qd, tau), load, push, method=solver)
    found = trial.derivatives("forward_dynamics", q, qd, tau, f_ext=load)
    rows = [("forward_dynamics", f"derivative {k + 1}", x) for k, x in enumerate(found)]
    linear = trial.model.nv > 0 and not trial.nonholonomic
    if linear:
        A, B = trial.ask(trial.whole, "linearize", q, qd, tau, f_ext=load)
        rows += [("linearize", name, x) for name, x in _blocks(A, B)]
    size = trial.force * trial.speed
    for k, (function, name, block) in enumerate(rows):
        needed, change = trial.M @ (block @ (d, d, push)[k % 3]), trial.M @ expected[k % 3]
        units = trial.units.effort
        yield Comparison(function, name, needed, change, size, trial.inverting, units)
    if linear:
        drift, rate = _drift(trial), trial.units.rate
        yield Comparison("linearize", "A, step", A[:n, :n] @ d, drift, trial.speed, units=rate)
        yield Comparison("linearize", "A, rate", A[:n, n:], np.eye(n))
        yield Comparison("linearize", "B, step", B[:n], np.zeros((n, n)))


def _blocks(A: np.ndarray, B: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Of qdd by q, qd and tau."""
    n = len(A) // 2
    return [("A, q", A[n:, :n]), ("A, qd", A[n:, n:]), ("B", B[n:])]


def _drift(trial: Trial) -> np.ndarray:
    """How a neighbouring motion with the same velocity moves away: by differences of positions.

    Both start apart by the direction and go on with qd for a moment.
    """
    q, qd, d = trial.q, trial.qd, trial.direction

    def apart(s: float, e: float) -> np.ndarray:
        here = trial.run("integrate", q, s * qd)
        there = trial.run("integrate", trial.run("integrate", q, e * d), s * qd)
        return trial.run("difference", here, there)

    return slope_at(lambda s: slope_at(lambda e: apart(s, e)))


def _load(trial: Trial) -> dict[Any, np.ndarray]:
    return at_frame(trial.robot.frames[-1], trial.wrench)


def _slopes(
    trial: Trial,
    function: str,
    state: tuple[np.ndarray, ...],
    load: Any,
    push: np.ndarray | None = None,
    **options: Any,
) -> list[np.ndarray]:
    """Of a function of q and two more arrays, with damping, along the direction in each.

    push: along another one in the last, which are forces.
    """
    q, x, y = state
    d, model = trial.direction, trial.whole

    def value(*arrays: np.ndarray) -> np.ndarray:
        return trial.ask(model, function, *arrays, f_ext=load, **options)

    return [
        trial.slope(lambda at: value(at, x, y)),
        slope_at(lambda s: value(q, x + s * d, y)),
        slope_at(lambda s: value(q, x, y + s * (d if push is None else push))),
    ]
