"""The door of `Robot.rollout`: arrays checked, the step compiled, the loop run."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.expr import Program
from chasles.libraries import refuse
from chasles.model import Description, Model, ModelError
from chasles.names import leading_shape, numbers
from chasles.rollouts.contacts import Contacts
from chasles.rollouts.controls import traced
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
    contacts: str = ""
    dt: float | None = None


class Rollout:
    """A step of a robot by one method, under one controller or given forces, compiled.

    contacts: soft ones, for steps of dt seconds, which are then part of the code.
    """

    def __init__(
        self,
        model: Model,
        mimic: bool,
        method: str,
        control: Callable[..., Any] | None,
        dissipation: bool,
        contacts: Contacts | None = None,
        dt: float | None = None,
    ) -> None:
        if method not in STEPS:
            raise ValueError(f"rollout: unknown method {method!r}; use one of {', '.join(STEPS)}")
        if model.loop_rows or model.timed:
            raise ModelError(
                f"rollout: robot {model.name!r} has loops or depends on time; use chasles.simulate"
            )
        self.model, self.contacts = model, contacts
        self.control: Program | None = None if control is None else traced(model, control)
        self._touching: Program | None = None
        if contacts is not None:
            assert dt is not None, "which surfaces need"
            self._touching = contacts.program(dt)
        digests = ("" if p is None else p.hash for p in (self.control, self._touching))
        recipe = Recipe(model.source, mimic, method, next(digests), dissipation, next(digests), dt)
        self._kernel = backends.prepare(
            recipe,
            lambda: step_program(
                model, method, self.control, dissipation=dissipation, contacts=contacts, dt=dt
            ),
        )

    @cached_property
    def _loop(self) -> Any:
        return backends.loop(self._kernel)

    @cached_property
    def _contact_kernel(self) -> Any:
        assert self._touching is not None, "without contacts"
        program = self._touching
        return backends.prepare(("contacts", program.hash), lambda: program)

    def __call__(
        self,
        q: Any,
        qd: Any,
        tau: Any,
        *,
        dt: float,
        steps: int,
        every: int,
        start: float,
        threads: int | None,
        contact_states: Any = None,
    ) -> Trajectory:
        """The motion; tau as in `Robot.rollout`, None where a controller gives it."""
        refuse("rollout", q, qd, tau)
        nq, nv = self.model.nq, self.model.nv
        given = {"q": (q, nq), "qd": (qd, nv)}
        surfaces = self.contacts.states if self.contacts is not None else 0
        if surfaces:
            zero = np.zeros(surfaces)
            given["contact_states"] = zero if contact_states is None else contact_states, surfaces
        elif contact_states is not None:
            raise ValueError("rollout: contact_states are of contacts that have none, or are none")
        states = {name: _finite(name, value, n) for name, (value, n) in given.items()}
        lead = leading_shape("rollout", **states)
        count = math.prod(lead)
        moving = [
            np.array(np.broadcast_to(a, (*lead, a.shape[-1])), dtype=float).reshape(
                count, a.shape[-1]
            )
            for a in states.values()
        ]
        controls = [] if self.control is not None else [_forces(tau, lead, count, steps, nv)]
        times = start + dt * np.arange(steps, dtype=float)
        controls.append(times.reshape(1, steps, 1))
        controls += [np.full((1, 1, 1), dt)] if self.contacts is None else []
        kept = np.unique(np.r_[0 : steps + 1 : every, steps])
        records = [np.empty((count, len(kept), x.shape[-1])) for x in moving]
        for record, state in zip(records, moving, strict=True):
            record[:, 0] = state
        if count and steps:
            rest = [record[:, 1:] for record in records]
            self._loop(moving, controls, rest, steps, every, threads)
        self._check(records)
        along = [r.reshape(*lead, len(kept), r.shape[-1]) for r in records]
        touching = self._touched(along, threads)
        return Trajectory(start + dt * kept, along[0], along[1], touching=touching)

    def _touched(self, records: list[np.ndarray], threads: int | None) -> Touching | None:
        """Forces and gaps of the states that are kept."""
        if self.contacts is None:
            return None
        states = records[2] if len(records) > 2 else np.zeros((*records[0].shape[:-1], 0))
        found = call(self._contact_kernel, "rollout", (*records[:2], states), None, threads)
        return Touching(found[0], found[1], states)

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
