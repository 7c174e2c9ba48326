"""The door of `Robot.rollout`: arrays checked, the step compiled, the loop run."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from chasles import backends
from chasles.expr import Program
from chasles.libraries import refuse
from chasles.model import Description, Model, ModelError
from chasles.names import leading_shape, numbers
from chasles.numeric.linear_systems import checked_step
from chasles.rollouts.adjoint import RolloutAdjoint, RolloutGradient, checked_weights
from chasles.rollouts.controls import BUILT_IN, traced
from chasles.rollouts.steps import STEPS, step_program


class Occurrence(NamedTuple):
    """An event that happened: its name, its time, and the state before it did anything."""

    name: str
    t: float
    q: np.ndarray
    qd: np.ndarray


class Touching(NamedTuple):
    """What happened at the points of contact of a trajectory, at its times.

    forces (..., n, points, 3): on the body, along the world's axes, in N. gaps (..., n, points): in
    m. states (..., n, states): of soft surfaces and of friction, those of each point in turn.
    """

    forces: np.ndarray
    gaps: np.ndarray
    states: np.ndarray


@dataclass(frozen=True)
class Trajectory:
    """States at times t (n,): q (..., n, nq) and qd (..., n, nv).

    rechosen: the times at which some member of the batch was given other independent coordinates,
    where loops are closed. events: those that happened, in order. touching: at points of
    contact, where `contacts` were given.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    rechosen: tuple[float, ...] = ()
    events: tuple[Occurrence, ...] = ()
    touching: Touching | None = None


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a step's code."""

    source: Description
    mimic: bool
    method: str
    control: str
    dissipation: bool


class Start(NamedTuple):
    """A motion that can start, its arguments checked.

    states (count, size) and the step's other inputs (count or 1, steps or 1, size), for a batch of
    shape `lead`; kept: the numbers of the steps after which a state is kept.
    """

    lead: tuple[int, ...]
    states: list[np.ndarray]
    controls: list[np.ndarray]
    kept: np.ndarray


class Rollout:
    """A step of a robot by one method, under one controller or given forces, compiled."""

    def __init__(
        self,
        model: Model,
        mimic: bool,
        method: str,
        control: Callable[..., Any] | None,
        dissipation: bool,
        parameters: int = 0,
    ) -> None:
        if method not in STEPS:
            raise ValueError(f"rollout: unknown method {method!r}; use one of {', '.join(STEPS)}")
        if model.loop_rows or model.timed:
            raise ModelError(
                f"rollout: robot {model.name!r} has loops or depends on time; use chasles.simulate"
            )
        if parameters and (control is None or isinstance(control, BUILT_IN)):
            raise ModelError(
                "rollout: parameters are those of a controller; give tau as a function of t, q, qd "
                "and p"
            )
        self.model = model
        self.control = None if control is None else traced(model, control, parameters)
        self.parameters = parameters
        digest = "" if self.control is None else self.control.hash
        self.recipe = Recipe(model.source, mimic, method, digest, dissipation)
        self._kernel = backends.prepare(self.recipe, self.program)

    def program(self) -> Program:
        """The step."""
        recipe = self.recipe
        return step_program(self.model, recipe.method, self.control, dissipation=recipe.dissipation)

    @cached_property
    def loop(self) -> Any:
        """The step repeated."""
        return backends.loop(self._kernel)

    def __call__(
        self,
        q: Any,
        qd: Any,
        tau: Any,
        parameters: Any = None,
        *,
        dt: float,
        steps: int,
        every: int,
        start: float,
        threads: int | None,
    ) -> Trajectory:
        """The motion; tau as in `Robot.rollout`, None where a controller gives it."""
        begin = self.begin(q, qd, tau, parameters, dt=dt, steps=steps, every=every, start=start)
        lead, states, controls, kept = begin
        records = [np.empty((len(a), len(kept), a.shape[1])) for a in states]
        for record, state in zip(records, states, strict=True):
            record[:, 0] = state
        if len(states[0]):
            rest = [record[:, 1:] for record in records]
            self.loop(states, controls, rest, steps, every, threads)
        self._check(records)
        moved, speeds = (r.reshape(*lead, len(kept), r.shape[-1]) for r in records)
        return Trajectory(start + dt * kept, moved, speeds)

    def pullback(
        self,
        q: Any,
        qd: Any,
        tau: Any,
        parameters: Any = None,
        *,
        covectors: Any,
        dt: float,
        steps: int,
        every: int,
        start: float,
        threads: int | None,
    ) -> RolloutGradient:
        """Covectors of the states that the motion keeps, pulled back (`Robot.rollout_pullback`)."""
        begin = self.begin(q, qd, tau, parameters, dt=dt, steps=steps, every=every, start=start)
        lead, states, controls, kept = begin
        weights = checked_weights(covectors, ("q", "qd"), lead, len(kept), self.model.nv)
        found, others = self._adjoint(states, controls, weights, steps, every, threads)
        if not all(np.isfinite(a).all() for a in (*found, *others.values())):
            raise FloatingPointError(
                "rollout_pullback: the gradient is not finite; make dt smaller, or look at the "
                "motion and its forces"
            )
        x, v = (a.reshape(*lead, a.shape[1]) for a in found)
        by = {name: a.reshape(*lead, *a.shape[1:]) for name, a in others.items()}
        if np.ndim(tau) < 2 and "tau" in by:
            by["tau"] = by["tau"][..., 0, :]
        own = by["parameters"][..., 0, :] if "parameters" in by else None
        return RolloutGradient(x, v, by.get("tau"), own)

    @cached_property
    def _adjoint(self) -> RolloutAdjoint:
        others = ("tau",) if self.control is None else ("parameters",) if self.parameters else ()
        return RolloutAdjoint(self.model, self.recipe, self.program, self.loop, others)

    def begin(
        self,
        q: Any,
        qd: Any,
        tau: Any,
        parameters: Any,
        *,
        dt: float,
        steps: int,
        every: int,
        start: float,
    ) -> Start:
        """All arguments, checked and brought to the shapes that the loop takes."""
        refuse("rollout", q, qd, tau, parameters)
        step = checked_step(dt, "rollout: dt")
        for name, number in (("steps", steps), ("every", every)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ValueError(f"rollout: {name} must be a positive integer, not {number!r}")
        if not np.isfinite(start):
            raise ValueError(f"rollout: start must be a finite time, not {start!r}")
        nq, nv, m = self.model.nq, self.model.nv, self.parameters
        given = {"q": _finite("q", q, nq), "qd": _finite("qd", qd, nv)}
        if m:
            given["parameters"] = _finite("parameters", parameters, m)
        lead = leading_shape("rollout", **given)
        count = math.prod(lead)

        def spread(a: np.ndarray) -> np.ndarray:
            whole = np.broadcast_to(a, (*lead, a.shape[-1]))
            return np.array(whole, dtype=float, order="C").reshape(count, a.shape[-1])

        controls = []
        if self.control is None:
            controls.append(_forces(tau, lead, count, steps, nv))
        elif m:
            own = given["parameters"]
            controls.append((own if own.ndim == 1 else spread(own)).reshape(-1, 1, m))
        times = start + step * np.arange(steps, dtype=float)
        controls += [times.reshape(1, steps, 1), np.full((1, 1, 1), step)]
        states = [spread(given[name]) for name in ("q", "qd")]
        return Start(lead, states, controls, np.unique(np.r_[0 : steps + 1 : every, steps]))

    def _check(self, records: list[np.ndarray]) -> None:
        bad = ~np.isfinite(records[1]).all(axis=-1)
        if bad.any():
            row, kept = (int(k) for k in np.argwhere(bad)[0])
            raise FloatingPointError(
                f"rollout: velocities of state {row} are no longer finite by record {kept}; make "
                "dt smaller, or look at the forces"
            )


def _finite(name: str, value: Any, size: int) -> np.ndarray:
    array = numbers(f"rollout: {name}", value, size).astype(float)
    if not np.isfinite(array).all():
        raise ValueError(f"rollout: {name} must be finite numbers")
    return array


def _forces(tau: Any, lead: tuple[int, ...], count: int, steps: int, nv: int) -> np.ndarray:
    """Joint forces as (count or 1, steps or 1, nv)."""
    if tau is None:
        return np.zeros((1, 1, nv))
    array = np.ascontiguousarray(_finite("tau", tau, nv))
    if array.ndim == 1:
        return array.reshape(1, 1, nv)
    if array.shape[-2] not in (1, steps):
        raise ValueError(
            f"rollout: tau must have shape ({nv},) or (..., {steps}, {nv}), one row a step, not "
            f"{array.shape}"
        )
    if array.ndim == 2:
        return array[None]
    try:
        whole = np.broadcast_to(array, (*lead, *array.shape[-2:]))
    except ValueError:
        raise ValueError(
            f"rollout: tau has leading shape {array.shape[:-2]}, which does not broadcast to that "
            f"of the states, {lead}"
        ) from None
    return np.ascontiguousarray(whole).reshape(count, *array.shape[-2:])
