"""The door of `Robot.rollout`: arrays checked, the step compiled, the loop run."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from chasles import backends
from chasles.backends.pool import COMPILING
from chasles.expr import Program, Variable
from chasles.model import Description, Model, ModelError
from chasles.names import leading_shape
from chasles.rollouts.controls import traced
from chasles.rollouts.places import Place, place_of
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


class Rollout:
    """A step of a robot by one method, under one controller or given forces, compiled."""

    def __init__(
        self,
        model: Model,
        mimic: bool,
        method: str,
        control: Callable[..., Any] | None,
        dissipation: bool,
    ) -> None:
        if method not in STEPS:
            raise ValueError(f"rollout: unknown method {method!r}; use one of {', '.join(STEPS)}")
        if model.loop_rows or model.timed:
            raise ModelError(
                f"rollout: robot {model.name!r} has loops or depends on time; use chasles.simulate"
            )
        self.model = model
        self.control: Program | None = None if control is None else traced(model, control)
        digest = "" if self.control is None else self.control.hash
        self.recipe = Recipe(model.source, mimic, method, digest, dissipation)
        self._loops: dict[tuple[str, str], Any] = {}

    def _loop(self, backend: str, dtype: str) -> Any:
        """The step of a backend, repeated."""
        if (backend, dtype) not in self._loops:
            with COMPILING:
                kernel = backends.prepare(self.recipe, self._program, backend, dtype)
                self._loops[backend, dtype] = backends.loop(kernel, backend)
        return self._loops[backend, dtype]

    def _program(self) -> Program:
        given = self.recipe
        return step_program(self.model, given.method, self.control, dissipation=given.dissipation)

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
    ) -> Trajectory:
        """The motion; tau as in `Robot.rollout`, None where a controller gives it."""
        nq, nv = self.model.nq, self.model.nv
        variables = [Variable("q", (nq,)), Variable("qd", (nv,)), Variable("tau", (nv,))]
        place = place_of(variables, (q, qd, tau))
        if threads is not None and place.backend == "cuda":
            raise TypeError("rollout: threads= is for processors; leave it out on a GPU")
        loop = self._loop(place.backend, place.dtype)
        with place.device:
            sizes = {"q": nq, "qd": nv}
            lead = leading_shape("rollout", **{name: place.given[name] for name in sizes})
            states = [place.flat(place.given[name], lead, (n,)) for name, n in sizes.items()]
            controls = [] if self.control is not None else [_forces(place, lead, steps, nv)]
            times = start + dt * np.arange(steps, dtype=float)
            controls += map(place.sent, (times.reshape(1, steps, 1), np.full((1, 1, 1), dt)))
            kept = np.unique(np.r_[0 : steps + 1 : every, steps])
            records = place.records(states, len(kept))
            if math.prod(lead):
                rest = [record[:, 1:] for record in records]
                loop(states, controls, rest, steps, every, threads)
            place.check(records)
            moved, speeds = (r.reshape(*lead, *r.shape[1:]) for r in records)
        return Trajectory(start + dt * kept, moved, speeds)


def _forces(place: Place, lead: tuple[int, ...], steps: int, nv: int) -> Any:
    """Joint forces as (count or 1, steps or 1, nv)."""
    array = place.given["tau"]
    if array is None:
        return place.sent(np.zeros((1, 1, nv)))
    if array.ndim == 1:
        return place.flat(array, (1,), (1, nv))
    if array.shape[-2] not in (1, steps):
        raise ValueError(
            f"rollout: tau must have shape ({nv},) or (..., {steps}, {nv}), one row a step, not "
            f"{array.shape}"
        )
    if array.ndim == 2:
        return place.flat(array, (1,), array.shape)
    try:
        return place.flat(array, lead, array.shape[-2:])
    except ValueError:
        raise ValueError(
            f"rollout: tau has leading shape {array.shape[:-2]}, which does not broadcast to that "
            f"of the states, {lead}"
        ) from None
