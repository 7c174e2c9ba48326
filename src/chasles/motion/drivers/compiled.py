"""Motions in machine code: arrays checked, the step compiled, the loop run."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import COMPILING, checked_count
from chasles.errors import ArgumentError, InputError, ModelError, NotFiniteError
from chasles.expr import Program, Variable
from chasles.functions.doors import leading_shape, refuse
from chasles.functions.numeric import checked_step
from chasles.mechanisms import require_tree
from chasles.model import Description, Model
from chasles.motion.adjoint import RolloutAdjoint, RolloutGradient, checked_weights
from chasles.motion.contact.soft import Contacts, given_pairs
from chasles.motion.contract import Machine
from chasles.motion.controllers import BUILT_IN, parameter_count, traced
from chasles.motion.drivers.places import Place, place_of
from chasles.motion.records import End, Touching, Trajectory
from chasles.motion.steps.traced import STEPS, step_program

DONE = "compiled steps"
"""What a compiled motion remembers: how many steps are behind."""


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a step's code."""

    source: Description
    mimic: bool
    integrator: str
    control: str
    dissipation: bool
    contacts: str = ""
    dt: float | None = None


class Rollout:
    """A step of a robot by one integrator, under one controller or given forces, compiled.

    contacts: soft ones, for steps of dt seconds, which are then part of the code. parameters: how
    many the controller takes.
    """

    def __init__(
        self,
        model: Model,
        mimic: bool,
        integrator: str,
        control: Callable[..., Any] | None,
        dissipation: bool,
        contacts: Contacts | None = None,
        dt: float | None = None,
        parameters: int = 0,
    ) -> None:
        if not isinstance(integrator, str) or integrator not in STEPS:
            problem = f"unknown integrator {integrator!r}"
            remedy = f"use one of {', '.join(STEPS)}"
            raise InputError("E-MOTION-016", problem, remedy, part="rollout")
        require_tree(model, "rollout", "use chasles.simulate")
        if parameters and (control is None or isinstance(control, BUILT_IN)):
            problem = "parameters are those of a controller"
            remedy = "give tau as a function of t, q, qd and p"
            raise ModelError("E-MOTION-018", problem, remedy, part="rollout")
        self.model, self.contacts, self.parameters = model, contacts, parameters
        self.control = None if control is None else traced(model, control, parameters)
        self._touching: Program | None = None
        if contacts is not None:
            assert dt is not None, "which surfaces need"
            self._touching = contacts.program(dt)
        digests = ("" if p is None else p.hash for p in (self.control, self._touching))
        self.recipe = Recipe(
            model.source, mimic, integrator, next(digests), dissipation, next(digests), dt
        )
        self._loops: dict[tuple[str, str], Any] = {}
        self._touchers: dict[tuple[str, str], Any] = {}

    def _loop(self, backend: str, dtype: str) -> Any:
        """The step of a backend, repeated."""
        if (backend, dtype) not in self._loops:
            with COMPILING:
                target = backend, dtype
                known = backends.known(self.recipe, self._program, *target)
                kernel = known or backends.compile(self._program(), *target, self.recipe)
                self._loops[backend, dtype] = backends.loop(kernel, backend)
        return self._loops[backend, dtype]

    def _program(self) -> Program:
        given = self.recipe
        return step_program(
            self.model,
            given.integrator,
            self.control,
            dissipation=given.dissipation,
            contacts=self.contacts,
            dt=given.dt,
        )

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
        parameters: Any = None,
        done: int = 0,
        total: int | None = None,
        function: str = "rollout",
    ) -> Trajectory:
        """The motion; tau as in `Robot.rollout`, None where a controller gives it.

        done: steps that came before, whose last state is not kept again. total: of the motion.
        function: as messages call it.
        """
        place = self._place(function, q, qd, tau, contact_states, parameters)
        if threads is not None and not backends.takes_numpy(place.backend):
            problem = "threads= is for processors"
            raise ArgumentError("E-MOTION-019", problem, "leave it out on a GPU", part=function)
        loop, often = self._loop(place.backend, place.dtype), math.gcd(every, done)
        with place.device:
            lead, states, controls = self._start(place, dt, steps, start, done)
            kept = _kept(steps, often)
            records = place.records(states, len(kept))
            if math.prod(lead):
                rest = [record[:, 1:] for record in records]
                loop(states, controls, rest, steps, often, threads)
            place.check(records)
            along = [r.reshape(*lead, *r.shape[1:]) for r in records]
            numbers, total = kept + done, total or steps
            end = self._end(place, along, start, dt, done + steps, total)
            if done or steps < total:
                wanted = (numbers % every == 0) | (numbers == total)
                wanted[0] &= not done
                which = np.flatnonzero(wanted).tolist()
                numbers, along = numbers[which], [a[..., which, :] for a in along]
            touching = self._touched(place, along, threads)
        t = start + dt * numbers
        return Trajectory(t, along[0], along[1], touching=touching, end=end, compiled=True)

    def _end(
        self, place: Place, along: list[Any], start: float, dt: float, done: int, total: int
    ) -> End:
        """The last state, with those of surfaces behind q."""
        q, qd, *surfaces = (a[..., -1, :] for a in along)
        q = place.joined([q, *surfaces]) if surfaces else q
        return End(start + dt * done, q, qd, done == total, {DONE: np.array(done)})

    def pullback(
        self,
        q: Any,
        qd: Any,
        tau: Any,
        *,
        covectors: Any,
        dt: float,
        steps: int,
        every: int,
        start: float,
        threads: int | None,
        contact_states: Any = None,
        parameters: Any = None,
    ) -> RolloutGradient:
        """Covectors of the states that the motion keeps, pulled back (`Robot.rollout_pullback`)."""
        refuse("rollout_pullback", q, qd, tau, contact_states, parameters)
        place = self._place("rollout", q, qd, tau, contact_states, parameters)
        lead, states, controls = self._start(place, dt, steps, start)
        records = len(_kept(steps, every))
        weights = checked_weights(covectors, lead, records, self.model.nv)
        weights += [np.zeros((1, records, a.shape[1])) for a in states[2:]]
        found, others = self._adjoint(states, controls, weights, steps, every, threads)
        if not all(np.isfinite(a).all() for a in (*found, *others.values())):
            problem = "the gradient is not finite"
            remedy = "make dt smaller, or look at the motion and its forces"
            raise NotFiniteError("E-MOTION-020", problem, remedy, part="rollout_pullback")
        by = [a.reshape(*lead, a.shape[1]) for a in found]
        rows = {name: a.reshape(*lead, *a.shape[1:]) for name, a in others.items()}
        each = {name: a[..., 0, :] for name, a in rows.items()}
        return RolloutGradient(
            q=by[0],
            qd=by[1],
            tau=(each if np.ndim(tau) < 2 else rows).get("tau"),
            parameters=each.get("parameters"),
            contact_states=by[2] if len(by) > 2 else None,
        )

    @cached_property
    def _adjoint(self) -> RolloutAdjoint:
        others = ("tau",) if self.control is None else ("parameters",) if self.parameters else ()
        loop = self._loop("llvm", "float64")
        return RolloutAdjoint(self.model, self.recipe, self._program, loop, others)

    @property
    def _sizes(self) -> dict[str, int]:
        """The states that go round."""
        surfaces = self.contacts.states if self.contacts is not None else 0
        more = {"contact_states": surfaces} if surfaces else {}
        return {"q": self.model.nq, "qd": self.model.nv} | more

    def _place(
        self, function: str, q: Any, qd: Any, tau: Any, contact_states: Any, parameters: Any
    ) -> Place:
        """All arguments, checked, where they are."""
        surfaces = self._sizes.get("contact_states", 0)
        if surfaces and contact_states is None:
            contact_states = [0.0] * surfaces
        elif contact_states is not None and not surfaces:
            problem = "contact_states was given, but no contact has internal state"
            raise InputError("E-MOTION-021", problem, part=function)
        own = {"parameters": self.parameters} if self.parameters else {}
        sizes = self._sizes | own | {"tau": self.model.nv}
        variables = [Variable(name, (n,)) for name, n in sizes.items()]
        arguments = {
            "q": q,
            "qd": qd,
            "contact_states": contact_states,
            "parameters": parameters,
            "tau": tau,
        }
        return place_of(function, variables, [arguments[v.name] for v in variables])

    def _start(
        self, place: Place, dt: float, steps: int, start: float, done: int = 0
    ) -> tuple[tuple[int, ...], list[Any], list[Any]]:
        """The shape of the batch, its states (count, size), and the step's other inputs (count or
        1, steps or 1, size)."""
        m = self.parameters
        names = (*self._sizes, "parameters") if m else tuple(self._sizes)
        lead = leading_shape(place.function, **{name: place.given[name] for name in names})
        states = [place.flat(place.given[name], lead, (n,)) for name, n in self._sizes.items()]
        controls = [] if self.control is not None else [_forces(place, lead, steps, self.model.nv)]
        if m:
            own = place.given["parameters"]
            shared = own.ndim == 1
            controls.append(place.flat(own[..., None, :], (1,) if shared else lead, (1, m)))
        times = start + dt * np.arange(done, done + steps, dtype=float)
        controls.append(place.sent(times.reshape(1, steps, 1)))
        controls += [place.sent(np.full((1, 1, 1), dt))] if self.contacts is None else []
        return lead, states, controls

    def _touched(self, place: Place, records: list[Any], threads: int | None) -> Touching | None:
        """Forces and gaps of the states that are kept."""
        if self._touching is None:
            return None
        found, target = self._touching, (place.backend, place.dtype)
        if target not in self._touchers:
            with COMPILING:
                made = backends.prepare(("contacts", found.hash), found, *target)
                self._touchers[target] = made
        kernel = self._touchers[target]
        states = records[2] if len(records) > 2 else records[0][..., :0]
        forces, gaps, _ = place.call(kernel, (*records[:2], states), threads)
        return Touching(forces, gaps, states)


def prepared(
    robot: Machine,
    integrator: str,
    control: Any,
    dissipation: bool,
    contacts: Any = None,
    dt: float = 0.0,
    parameters: Any = None,
    *,
    again: bool = False,
) -> Rollout:
    """A compiled step, made once for a controller and contacts that can be told from others.

    again: trace the controller again, which is a function that may have changed.
    """
    control, count = control if callable(control) else None, parameter_count(parameters)
    pairs = None if contacts is None else given_pairs("rollout", contacts)
    constant, known = None if pairs is None else dt, robot.mechanism.kept
    key: Any = ("rollout", integrator, control, dissipation, pairs, constant, count)
    try:
        if key in known and not again:
            found: Rollout = known[key]
            return found
    except TypeError:
        key = None
    with COMPILING:
        touch = None if pairs is None else Contacts(robot.model, pairs)
        mimic = robot.mimic
        made = Rollout(robot.model, mimic, integrator, control, dissipation, touch, constant, count)
    found = known.setdefault(("rollout", made.recipe), made)
    if key is not None and not again:
        known[key] = found
    return found


def checked_steps(
    dt: Any, steps: Any, every: Any, start: Any, threads: Any, function: str = "rollout"
) -> tuple[float, int, int, int | None]:
    """dt in s, steps, every and threads; an error says what is wrong with one of them or start."""
    counts = (
        checked_count(f"{function}: steps", steps),
        checked_count(f"{function}: every", every),
    )
    if threads is not None:
        threads = checked_count(f"{function}: threads", threads)
    if not isinstance(start, Real) or not math.isfinite(start):
        problem = f"start must be a finite time, not {start!r:.60}"
        raise InputError("E-MOTION-022", problem, part=function)
    return checked_step(dt, f"{function}: dt"), *counts, threads


def _kept(steps: int, every: int) -> np.ndarray:
    """The numbers of the steps after which a state is kept; 0 is the start."""
    numbers = np.arange(0, steps + 1, every)
    return numbers if numbers[-1] == steps else np.append(numbers, steps)


def _forces(place: Place, lead: tuple[int, ...], steps: int, nv: int) -> Any:
    """Joint forces as (count or 1, steps or 1, nv)."""
    array = place.given["tau"]
    if array is None:
        return place.sent(np.zeros((1, 1, nv)))
    if array.ndim == 1:
        return place.flat(array, (1,), (1, nv))
    if array.shape[-2] not in (1, steps):
        problem = (
            f"tau must have shape ({nv},) or (..., {steps}, {nv}), one row a step, not "
            f"{array.shape}"
        )
        raise InputError("E-MOTION-023", problem, part=place.function)
    if array.ndim == 2:
        return place.flat(array, (1,), array.shape)
    try:
        return place.flat(array, lead, array.shape[-2:])
    except ValueError:
        problem = (
            f"tau has leading shape {array.shape[:-2]}, which does not broadcast to that of the "
            f"states, {lead}"
        )
        raise InputError("E-MOTION-024", problem, part=place.function) from None
