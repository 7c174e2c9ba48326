"""Motions by time stepping: contact, stops and dry friction in one convex problem a step.

The step is three programs (`steps.stepping`) that machine code repeats as one kernel.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import COMPILING, call
from chasles.errors import InputError, ModelError
from chasles.expr import RULES, Arena, Program, Variable
from chasles.functions.doors import leading_shape
from chasles.mechanisms import require_tree
from chasles.model import Description, Model
from chasles.model.given import check_hash
from chasles.motion.contact.pairs import Compliant, Pair, Rigid, given_pairs
from chasles.motion.contract import Machine
from chasles.motion.controllers import checked_parameters, traced
from chasles.motion.drivers.compiled import (
    DONE,
    Course,
    compiled_kernel,
    joint_forces,
    kept_steps,
)
from chasles.motion.drivers.places import Place, place_of
from chasles.motion.geometry.kinematics import symbols
from chasles.motion.options import Plan
from chasles.motion.records import End, Touching, Trajectory
from chasles.motion.steps.slots import check_pairs
from chasles.motion.steps.stepping import Scene, Steps

TIME_STEPPING = "time-stepping"
"""The integrator that has contact in its step."""


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the code of a step."""

    source: Description
    mimic: bool
    scene: str
    control: str
    dt: float


class Stepped:
    """The compiled step of a robot in a scene; control: None where joint forces are given."""

    def __init__(
        self, model: Model, scene: Scene, dt: float, control: Any, parameters: int = 0
    ) -> None:
        require_tree(model, "time-stepping", "use another integrator")
        self.model, self.scene, self.dt, self.parameters = model, scene, dt, parameters
        self.control = None if control is None else traced(model, control, parameters)
        words = repr((scene.pairs, scene.limits, scene.dissipation))
        digest = "" if self.control is None else self.control.hash
        self.recipe = Recipe(model.source, model.mimics, words, digest, dt)
        self._made: Steps | None = None
        self._loops: dict[str, Any] = {}
        self._gaps: Any = None

    @property
    def steps(self) -> Steps:
        """The programs."""
        if self._made is None:
            self._made = Steps(self.scene, self.dt, self.control)
        return self._made

    def _program(self, name: str) -> Program:
        found: Program = getattr(self.steps, name)
        return found

    def loop(self, dtype: str) -> Any:
        """The step in a type of numbers, repeated."""
        if dtype not in self._loops:
            kernels = [
                compiled_kernel((name, self.recipe), partial(self._program, name), dtype=dtype)
                for name in ("begin", "refine", "end")
            ]
            self._loops[dtype] = backends.loop(backends.iterated(kernels))
        return self._loops[dtype]

    @cached_property
    def slots(self) -> int:
        """The number of slots of contact."""
        return self.scene.slots

    def __call__(self, course: Course, host: Callable[..., Any] | None = None) -> Trajectory:
        """The motion; host: a function tau(t, q, qd) that is called before each step."""
        place = self._place(course)
        lead, states, controls = self._start(place, course)
        often = math.gcd(course.every, course.done)
        numbers = kept_steps(course.steps, often) + course.done
        records = place.records(states[:-1], len(numbers))
        rest = [record[:, 1:] for record in records]
        if states[0].shape[0]:
            run = self.loop(place.dtype)
            if host is None:
                run(states, controls, rest, course.steps, often, course.threads)
            else:
                self._by_host(run, states, rest, lead, course, often, host)
        place.check(records)
        q, qd, *forces = (r.reshape(*lead, *r.shape[1:]) for r in records)
        gone, total = course.done + course.steps, course.total or course.steps
        memory = {DONE: np.array(gone)}
        time = course.start + course.dt * gone
        end = End(time, q[..., -1, :].copy(), qd[..., -1, :].copy(), gone == total, memory)
        wanted = (numbers % course.every == 0) | (numbers == total)
        wanted[0] &= not course.done
        which = np.flatnonzero(wanted).tolist()
        q, qd = q[..., which, :], qd[..., which, :]
        touching = self._touched(q, [f[..., which, :] for f in forces], course.threads)
        t = course.start + course.dt * numbers[which]
        effort = states[-1].reshape(*lead, 2)
        kept = Trajectory(t, q, qd, touching=touching, end=end, compiled=host is None)
        return replace(kept, iterations=effort[..., 0] / course.steps, unsolved=effort[..., 1])

    def _by_host(
        self,
        run: Any,
        states: list[Any],
        records: list[Any],
        lead: tuple[int, ...],
        course: Course,
        often: int,
        host: Callable[..., Any],
    ) -> None:
        """One step at a time, with joint forces of a function."""
        kept, nv = 0, self.model.nv
        for k in range(course.steps):
            t = course.start + course.dt * (course.done + k)
            now = [a.reshape(*lead, a.shape[1]) for a in states[:2]]
            tau = np.broadcast_to(host(t, *now), (*lead, nv)).reshape(-1, 1, nv)
            controls = [np.ascontiguousarray(tau), np.full((1, 1, 1), t)]
            run(states, controls, [], 1, 1, 1)
            if (k + 1) % often == 0 or k + 1 == course.steps:
                for record, state in zip(records, states, strict=False):
                    record[:, kept] = state
                kept += 1

    def _place(self, course: Course) -> Place:
        """All arguments, checked."""
        if course.contact_states is not None:
            problem = "contact_states was given, but time stepping has no internal state"
            raise InputError("E-MOTION-131", problem, part=course.function)
        own = {"parameters": self.parameters} if self.parameters else {}
        sizes = {"q": self.model.nq, "qd": self.model.nv} | own | {"tau": self.model.nv}
        variables = [Variable(name, (n,)) for name, n in sizes.items()]
        place = place_of(course.function, variables, [getattr(course, name) for name in sizes])
        if not backends.takes_numpy(place.backend):
            problem = "time stepping runs only on the CPU"
            raise InputError("E-MOTION-132", problem, "use NumPy arrays", part=course.function)
        return place

    def _start(self, place: Place, course: Course) -> tuple[tuple[int, ...], list[Any], list[Any]]:
        """The shape of the batch, its states (count, size), and other inputs of the step."""
        given, m, nv = place.given, self.parameters, self.model.nv
        names = ("q", "qd", "parameters") if m else ("q", "qd")
        lead = leading_shape(place.function, **{name: given[name] for name in names})
        states = [
            place.flat(given[name], lead, (n,)) for name, n in (("q", self.model.nq), ("qd", nv))
        ]
        count = len(states[0])
        if self.slots:
            states.append(np.zeros((count, 3 * self.slots)))
        states.append(np.zeros((count, 2)))
        controls = []
        if self.control is None:
            controls.append(joint_forces(place, lead, course.steps, nv))
        elif m:
            shared = given["parameters"].ndim == 1
            rows = (1,) if shared else lead
            controls.append(place.flat(given["parameters"][..., None, :], rows, (1, m)))
        times = course.start + course.dt * np.arange(course.done, course.done + course.steps)
        controls.append(times.astype(float).reshape(1, -1, 1))
        return lead, states, controls

    def _touched(
        self, q: np.ndarray, forces: list[np.ndarray], threads: int | None
    ) -> Touching | None:
        """Forces during the last step before each kept state, and gaps at it."""
        if not self.slots:
            return None
        if self._gaps is None:
            self._gaps = compiled_kernel(("gaps", self.recipe), self._gap_program)
        gaps = call(self._gaps, "simulate", (q,), None, threads)
        return Touching(forces[0].reshape(*gaps.shape, 3), gaps, q[..., :0])

    def _gap_program(self) -> Program:
        arena, n = Arena(RULES), self.model.nq
        spots = self.scene.spots(arena, symbols(arena, "q", (n,)))
        gaps = [spot.gap for _, spot in spots]
        output = (Variable("gaps", (len(gaps),)), gaps)
        return Program.from_outputs("gaps", [Variable("q", (n,))], [output])


def scene_of(robot: Machine, plan: Plan) -> Scene:
    """Return the scene of a plan: everything that acts on the robot."""
    pairs = given_pairs("simulate", plan.contacts)
    for pair in pairs:
        if not isinstance(pair, Pair) or not isinstance(pair.law, Rigid | Compliant):
            problem = f"{pair!r:.80} has a law that time stepping does not support"
            remedy = "use contact.Rigid(...) or contact.Compliant(...), or another integrator"
            raise ModelError("E-MOTION-133", problem, remedy, part="simulate")
        for frame in pair.frames:
            if frame is not None:
                robot.model.frame(frame)
    check_pairs("simulate", pairs)
    limits = stops(robot.model) if plan.limits else ()
    check_hash("simulate", "dissipation", plan.dissipation)
    return Scene(robot.model, pairs, limits, plan.dissipation)


def stops(model: Model) -> tuple[tuple[int, int, float, float], ...]:
    """Velocity, coordinate, lower and upper limit of joints of one degree of freedom."""
    found = []
    for i in model.movers:
        joint, limits = model.bodies[i].joint, model.bodies[i].data.limits
        if joint.nq == joint.nv == 1 and (np.isfinite(limits.lower) or np.isfinite(limits.upper)):
            places = (model.velocity_slices[i].start, model.position_slices[i].start)
            found.append((*places, float(limits.lower), float(limits.upper)))
    return tuple(found)


def prepared(
    robot: Machine, plan: Plan, dt: float, control: Any, *, again: bool = False
) -> Stepped:
    """A compiled step, kept for the next call; again: the controller may have changed, trace it."""
    scene, known = scene_of(robot, plan), robot.mechanism.kept
    control = control if callable(control) else None
    count = checked_parameters(plan.parameters, control)
    key: Any = (TIME_STEPPING, scene.pairs, scene.limits, scene.dissipation, dt, control, count)
    try:
        if not again and key in known:
            found: Stepped = known[key]
            return found
    except (TypeError, ValueError):  # without hash
        key = None
    with COMPILING:
        made = Stepped(robot.model, scene, dt, control, count)
    found = known.setdefault((TIME_STEPPING, made.recipe), made)
    if key is not None and not again:
        known[key] = found
    return found
