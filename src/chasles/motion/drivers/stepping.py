"""Simulation by time stepping: contact, limits and dry friction in one convex problem per step.

A step consists of several programs (`steps.stepping`), which are compiled into one loop over all
steps.

This module compiles the programs of a step, checks their input arrays and records their results.
"""

import gc
import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import COMPILING, Link
from chasles.errors import InputError, ModelError
from chasles.expr import RULES, Arena, Program, Variable
from chasles.expr.scalar import uncollected
from chasles.functions.doors import leading_shape, library_of, numbers, refuse
from chasles.functions.programs import check_inertia
from chasles.mechanisms import SingularPosition, require_tree
from chasles.model import Description, Model
from chasles.model.given import check_hash
from chasles.motion.contact.pairs import Compliant, Pair, Rigid, given_pairs
from chasles.motion.contract import Machine
from chasles.motion.controllers import checked_parameters, traced
from chasles.motion.controls import Controls
from chasles.motion.drivers.compiled import (
    DONE,
    FORCES,
    Course,
    check_given,
    check_threads,
    compiled_kernel,
    kept_steps,
    pulled_back,
)
from chasles.motion.drivers.loops import CONSISTENT, FALLEN
from chasles.motion.drivers.places import (
    Place,
    constant_rows,
    given_rows,
    place_of,
    within_memory,
)
from chasles.motion.drivers.unseen import Contacts
from chasles.motion.geometry.kinematics import symbols
from chasles.motion.options import Plan
from chasles.motion.records import End, Touching, Trajectory
from chasles.motion.steps import braking
from chasles.motion.steps.apart import SOLVE, called
from chasles.motion.steps.backward import Backward
from chasles.motion.steps.parameters import MODEL, Parameters, parameter_shape
from chasles.motion.steps.scene import Scene
from chasles.motion.steps.sharing import smallest
from chasles.motion.steps.slots import check_pairs
from chasles.motion.steps.stepping import CARRIED, QUICK, ROUGH, STATISTICS, TOLERANCE, Steps
from chasles.motion.steps.traced import RolloutGradient, check_holonomic

TIME_STEPPING = "time-stepping"
"""Name of the integrator that solves for contact impulses in each step."""


MANY = 1_000_000
"""Number of objects above which the expressions of a compiled step are freed. The expressions for
contacts of detailed meshes take hundreds of megabytes."""


SLOW = 3.0
"""Compilation time (s) after which `announced` prints a message."""


def _readable() -> bool:
    """Return True if a user can read messages; commands show a progress bar instead."""
    interactive = hasattr(sys, "ps1")  # Python, IPython and notebooks
    return (interactive or sys.stderr.isatty()) and "chasles.cli" not in sys.modules


@contextmanager
def announced(words: str) -> Iterator[None]:
    """Print a message to standard error if the `with` block takes longer than `SLOW`.

    The message is printed in interactive sessions, including notebooks, and in a terminal.
    """
    if not _readable():
        yield
        return
    timer = threading.Timer(SLOW, partial(print, words, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@dataclass(frozen=True)
class Recipe:
    """Cache key of a compiled step: all data that determine its code."""

    source: Description
    mimic: bool
    scene: str
    control: str
    dt: float
    free: tuple[str, ...] = ()


class Stepped:
    """Compiled time step of a robot in a scene.

    Parameters
    ----------
    model : Model
        Model of the robot.
    scene : Scene
        Contact pairs, joint limits, dry friction and damping.
    dt : float
        Step size (s).
    control : controller or None
        Controller to trace into the step; None if joint torques are inputs.
    parameters : int, optional
        Number of controller parameters.
    free : tuple of str, optional
        Names of the robot and contact parameters that are inputs.
    """

    def __init__(
        self,
        model: Model,
        scene: Scene,
        dt: float,
        control: Any,
        parameters: int = 0,
        free: tuple[str, ...] = (),
    ) -> None:
        require_tree(model, "time-stepping", "use another integrator", loops=True)
        if model.idle and model.source.closure is None:
            check_inertia(model, "simulate")
        self.model, self.scene, self.dt, self.parameters = model, scene, dt, parameters
        self.control = None if control is None else traced(model, control, parameters)
        words = repr((scene.pairs, scene.limits, scene.dissipation, scene.stopped))
        digest = "" if self.control is None else self.control.hash
        self.recipe = Recipe(model.source, model.mimics, words, digest, dt, free)
        self._own = Parameters.of(model, scene.pairs, free)
        self._free = {MODEL: self._own.size} if free else {}
        moved = next((name for name in free if name.endswith(".placement")), None)
        if moved and scene.unseen:
            problem = f"{moved} is not supported with height fields"
            remedy = "use robot.with_parameters(...) instead"
            raise ModelError("E-MOTION-209", problem, remedy, part="model_parameters")
        self._made: Steps | None = None
        self._parts: tuple[tuple[str, str], list[Program]] = ("", ""), []
        self._loops: dict[tuple[str, str], Any] = {}
        self._gaps: dict[tuple[str, str], Any] = {}
        self._adjoints: dict[tuple[str, ...], Any] = {}
        taken = {v.name: v.size for v in self.control.inputs} if self.control else {}
        self._given = {"ctrl": taken["ctrl"]} if "ctrl" in taken else {}
        self._behind = {"act": taken["act"]} if "act" in taken else {}
        self.suited: Callable[[Any], Stepped] | None = None
        """Function that returns the step for an initial q, or None.

        Set only if the robot has loops and q is a JAX or PyTorch array. The values of such an array
        may be unknown when this object is created.
        """

    @property
    def steps(self) -> Steps:
        """Programs of the time step. Long programs are not divided into parts."""
        if self._made is None:
            self._made = Steps(self.scene, self.dt, self.control, self._own)
        return self._made

    def program(self, name: str, dtype: str) -> Program:
        """Return one of the programs of a time step, such as "begin" (see `steps.stepping`)."""
        return self._whole(name, dtype, False)

    def _whole(self, name: str, dtype: str, divided: bool) -> Program:
        """Return a program of the step by its name, without dividing it into parts.

        If `divided` is True, the program must match other programs of the step that are divided.
        """
        steps = self._divided if divided else self.steps
        made = getattr(steps, name)
        found: Program = made if isinstance(made, Program) else made(_tolerance(dtype))
        return found

    @property
    def _iterations(self) -> tuple[str, ...]:
        """Names of the programs that iterate within a step on the CPU."""
        return ("refine", "search", *(["brake"] if braking.articulated(self.model) else []))

    def _iterated(self, kernels: Sequence[Any], backend: str = "llvm") -> Any:
        """Return the compiled loop over steps, given the compiled programs of a step."""
        options = {"quick": QUICK}
        if backends.takes_numpy(backend) and braking.articulated(self.model):
            options["marks"] = braking.size(self.model)
        return backends.loop(backends.iterated(kernels, backend, **options), backend)

    def loop(self, backend: str, dtype: str) -> Any:
        """Return the compiled loop over steps for a backend and dtype."""
        target = (backend, dtype)
        if target not in self._loops:
            host = backends.takes_numpy(backend)
            names = self._iterations if host else ("refine", "rescue")
            kernels = self._kernels(("begin", *names, "end"), *target)
            self._loops[target] = self._iterated(kernels, backend)
        return self._loops[target]

    def _kernels(
        self,
        names: Sequence[str],
        backend: str = "llvm",
        dtype: str = "float64",
        *,
        whole: bool = False,
    ) -> list[Any]:
        """Compile the programs of a time step; each one compiles while the next one is traced.

        Unless `whole` is True, long programs are divided into parts, and subprograms are called
        between the parts (`steps.apart`). The programs `brake` and `end` are never divided.
        """
        target, alone = (backend, dtype), ("brake", "end")
        words = f"compiling the step for {len(self.scene.pairs)} contact pairs ..."
        with COMPILING, announced(words), uncollected(), ExitStack() as stack:
            long = not whole and self._is_long(*target)
            divided = [n for n in names if n not in alone] if long else []
            calls = {name: called(name, self.scene.picks) for name in divided}
            others = sorted({each.program for x in calls.values() for y in x for each in y})

            def begin(name: str, trace: Callable[[], Program]) -> Callable[[], Any]:
                return backends.begin((name, self.recipe), trace, *target, stack)

            begun = {}
            if self.slots and target not in self._gaps:
                begun["gaps"] = begin("gaps", self.gap_program)
            for name in others:
                begun[name] = begin(name, partial(self._called, name))
            for name in names:
                if name not in divided:
                    begun[name] = begin(name, partial(self._whole, name, dtype, bool(divided)))
                    continue
                for k in range(len(calls[name]) + 1):
                    begun[f"{name} {k}"] = begin(f"{name} {k}", partial(self._part, name, dtype, k))
            self._parts = ("", ""), []
            heavy = gc.get_count()[0] > MANY  # new objects, because collection was paused
            if heavy:
                self._forget()  # while other processes compile
            made = {name: begun.pop(name)() for name in [*begun]}
            if heavy:
                gc.collect()
        if "gaps" in made:
            self._gaps[target] = made["gaps"]
        for name in divided:
            links = [Link(made[f"{name} 0"])]
            for k, each in enumerate(calls[name], 1):
                links += [Link(made[call.program], call.inputs, call.outputs) for call in each]
                links.append(Link(made[f"{name} {k}"]))
            given = CARRIED if name == "begin" else CARRIED[:2]
            made[name] = backends.chain(links, given, backend)
        return [made[name] for name in names]

    def _forget(self) -> None:
        """Free the traced expressions, which are traced again if they are needed."""
        self._made = None
        self.__dict__.pop("_divided", None)
        self.scene.forget()
        gc.collect()

    def _is_long(self, backend: str, dtype: str) -> bool:
        """Return True if the programs are long and the backend can run them in several parts."""
        if not backends.row(backend).chain:
            return False
        for name in (SOLVE, "refine"):  # a cached program is not traced
            trace = partial(self.program, name, dtype)
            if backends.known((name, self.recipe), trace, backend, dtype) is not None:
                return name == SOLVE
        return bool(self.scene.picks) or self.steps.long

    @cached_property
    def _divided(self) -> Steps:
        """Programs of the step; long programs are divided into parts."""
        if not self.scene.picks:
            return self.steps
        return Steps(self.scene, self.dt, self.control, self._own, crowded=True)

    def _called(self, name: str) -> Program:
        """Return the subprogram `name`, which is called between the parts of divided programs."""
        return self._divided.called(name)

    def _part(self, name: str, dtype: str, number: int) -> Program:
        """Return one part of a divided program ("begin", "refine" or "search").

        The first call for a program traces all its parts, and keeps them for the next calls.
        """
        key = name, dtype
        if self._parts[0] != key:
            self._parts = key, self._divided.parts(name, _tolerance(dtype))
        return self._parts[1][number]

    def _adjoint(self, along: tuple[str, ...]) -> Any:
        """Return the compiled adjoint loop; `along` names inputs that vary from step to step."""
        if along not in self._adjoints:
            back = cache(lambda: Backward(self.steps, along))
            ends = [
                compiled_kernel((f"backward {name}", self.recipe, along), trace)
                for name, trace in (
                    ("begin", lambda: back().begin()),
                    ("end", lambda: back().end),
                )
            ]
            # If subprograms find the closest points (`picks`), divided programs would pass arrays
            # `data` that differ from those that `Backward` reads, so the programs are not divided.
            whole = bool(self.scene.picks)
            kernels = [ends[0], *self._kernels(self._iterations, whole=whole), ends[1]]
            loop = self._iterated(kernels)
            self._adjoints[along] = backends.adjoint(self.loop("llvm", "float64"), loop)
        return self._adjoints[along]

    def pullback(self, course: Course, covectors: Any) -> RolloutGradient:
        """Return the gradient with respect to the rollout's inputs (`Robot.rollout_pullback`).

        `covectors` contains the derivatives of a function with respect to the recorded states.
        """
        if self.suited is not None:
            return self.suited(course.q).pullback(course, covectors)
        given = (course.q, course.qd, course.tau, course.parameters, course.ctrl, course.act)
        refuse("rollout_pullback", *given, course.model_parameters)
        check_holonomic(self.model)
        if self.unseen is not None:
            problem = "gradients of contact with height fields are not supported"
            remedy = "use finite differences of rollouts"
            raise ModelError("E-MOTION-195", problem, remedy, part="rollout_pullback")
        lead, states, controls = self._start(self._place(course, None), course)
        names = ("tau",) if self.control is None else ("parameters",) if self.parameters else ()
        sizes = {"q": self.model.nq, "qd": self.model.nv} | self._behind
        names = (*names, *self._given, *self._free)
        arrays = (states, controls, sizes)
        return pulled_back(self._adjoint, course, covectors, lead, names, *arrays, self._shapes)

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of those robot and contact parameters that are inputs of the compiled step."""
        source, pairs = self.model.source, self.scene.pairs
        return {name: parameter_shape(source, pairs, name) for name in self.recipe.free}

    @cached_property
    def unseen(self) -> Contacts | None:
        """Contacts with height fields, which are computed in NumPy; None without such contacts."""
        return Contacts(self.scene) if self.scene.unseen else None

    @property
    def slots(self) -> int:
        """Maximum number of simultaneous contacts (contact slots) in a step."""
        return self.scene.slots

    def __call__(self, course: Course, host: Callable[..., Any] | None = None) -> Trajectory:
        """Take all steps, and return the trajectory.

        If `host` is given, host(t, q, qd) is called before each step.
        """
        if self.suited is not None:
            return self.suited(course.q)(course, host)
        place = self._place(course, host)
        with place.device, within_memory(course):
            return self._moved(place, course, host)

    def _moved(self, place: Place, course: Course, host: Callable[..., Any] | None) -> Trajectory:
        lead, states, controls = self._start(place, course)
        often = math.gcd(course.every, course.done)
        numbers = kept_steps(course.steps, often) + course.done
        records = place.records(states[:-1], len(numbers))
        unrecorded, added = place.latest(states[-1], len(numbers) - 1)
        rest = [*(record[:, 1:] for record in records), *unrecorded]
        if states[0].shape[0]:
            run = self.loop(place.backend, place.dtype)
            if host is None and self.unseen is None:
                run(states, controls, rest, course.steps, often, course.threads)
            else:
                self._by_host(run, states, controls, rest, lead, course, often, host)
        place.check(records, "reduce `dt`, or check the forces")
        q, qd, *forces = (r.reshape(*lead, *r.shape[1:]) for r in records)
        act = forces.pop() if self._behind else None
        gone, total = course.done + course.steps, course.total or course.steps
        memory = {DONE: np.array(gone)}
        if self.slots:
            memory[FORCES] = forces[0][..., -1, :].copy()
        time = course.start + course.dt * gone
        last = q[..., -1, :] if act is None else np.concatenate([q, act], -1)[..., -1, :]
        end = End(time, last.copy(), qd[..., -1, :].copy(), gone == total, memory)
        wanted = (numbers % course.every == 0) | (numbers == total)
        wanted[0] &= not course.done
        which = np.flatnonzero(wanted).tolist()
        q, qd = q[..., which, :], qd[..., which, :]
        touching = self._touched(place, q, [f[..., which, :] for f in forces], course.threads)
        t = course.start + course.dt * numbers[which]
        effort = {name: added[:, k].reshape(lead) for k, name in enumerate(STATISTICS)}
        effort["iterations"] = effort["iterations"] / max(course.steps, 1)
        self._check_margin(effort.pop("singular"))
        compiled = host is None and self.unseen is None
        kept = Trajectory(t, q, qd, touching=touching, end=end, compiled=compiled)
        act = None if act is None else act[..., which, :]
        return replace(kept, **effort, act=act, contacts=self.scene.pairs)

    def _by_host(
        self,
        run: Any,
        states: list[Any],
        controls: list[Any],
        records: list[Any],
        lead: tuple[int, ...],
        course: Course,
        often: int,
        host: Callable[..., Any] | None,
    ) -> None:
        """Take the steps one by one; compute torques, controls or contacts before each step."""
        kept, nv = 0, self._given.get("ctrl", self.model.nv)
        for k in range(course.steps):
            *given, time = (x[:, [min(k, x.shape[1] - 1)]] for x in controls)
            if host is not None:
                now = [a.reshape(*lead, a.shape[1]) for a in states[:2]]
                tau = np.broadcast_to(host(float(time[0, 0, 0]), *now), (*lead, nv))
                given[:1] = [np.ascontiguousarray(tau.reshape(-1, 1, nv))]
            if self.unseen is not None:
                given.append(self.unseen.inputs(states[0])[:, None])
            run(states, [*given, time], [], 1, 1, 1)
            if (k + 1) % often == 0 or k + 1 == course.steps:
                for record, state in zip(records, states, strict=False):
                    record[:, kept] = state
                kept += 1

    def _check_margin(self, singular: Any) -> None:
        """Raise an error if the independent coordinates of loops came close to a singularity."""
        if self.model.source.closure and not bool((singular < 1.0 - FALLEN).all()):
            problem = "the independent coordinates of the loops became dependent on each other"
            remedy = "use an integrator that can change the coordinates, such as 'rk4'"
            raise SingularPosition("E-MOTION-183", problem, remedy, part="simulate")

    def _place(self, course: Course, host: Callable[..., Any] | None) -> Place:
        """Check all arguments, and return their location (host or GPU)."""
        if course.contact_states is not None:
            problem = (
                "`contact_states` was given, but contacts have no internal state in time stepping"
            )
            raise InputError("E-MOTION-131", problem, part=course.function)
        own = {"parameters": self.parameters} if self.parameters else {}
        sizes = {"q": self.model.nq, "qd": self.model.nv} | own | {"tau": self.model.nv}
        check_given(course, self._behind, self._given)
        sizes |= self._given | self._behind | self._free
        variables = [Variable(name, (n,)) for name, n in sizes.items()]
        given = {name: getattr(course, name) for name in sizes}
        if self._behind and given["act"] is None:
            given["act"] = [0.0] * sizes["act"]
        place = place_of(course.function, variables, list(given.values()))
        if not backends.takes_numpy(place.backend):
            if self.unseen is not None:
                problem = "contact with a height field runs only on the CPU"
                raise InputError("E-MOTION-182", problem, "use NumPy arrays", part=course.function)
            if host is not None:
                problem = "a controller that cannot be traced runs only on the CPU"
                remedy = "use NumPy arrays, or a controller that can be traced"
                raise InputError("E-MOTION-132", problem, remedy, part=course.function)
            check_threads(course)
        return place

    def _start(self, place: Place, course: Course) -> tuple[tuple[int, ...], list[Any], list[Any]]:
        """Return the batch shape, the flattened initial states (n, size), and the other inputs."""
        given, m, nv = place.given, self.parameters, self.model.nv
        names = ("q", "qd", "parameters") if m else ("q", "qd")
        names = (*names, *self._behind, *self._free)
        lead = leading_shape(place.function, **{name: given[name] for name in names})
        states = [
            place.flat(given[name], lead, (n,)) for name, n in (("q", self.model.nq), ("qd", nv))
        ]
        count = len(states[0])
        if self.slots:
            states.append(self._forces(place, course, (count, 3 * self.slots)))
        states += [place.flat(given[name], lead, (n,)) for name, n in self._behind.items()]
        states.append(place.sent(np.zeros((count, len(STATISTICS)))))
        controls = []
        if self.control is None:
            controls.append(given_rows(place, lead, course.steps, nv))
        elif m:
            controls.append(constant_rows(place, lead, "parameters", m))
        for name, n in self._given.items():
            controls.append(given_rows(place, lead, course.steps, n, name))
        controls += [constant_rows(place, lead, name, n) for name, n in self._free.items()]
        times = course.start + course.dt * np.arange(course.done, course.done + course.steps)
        controls.append(place.sent(times.astype(float).reshape(1, -1, 1)))
        return lead, states, controls

    def _forces(self, place: Place, course: Course, shape: tuple[int, int]) -> Any:
        """Return initial contact forces: zero, or the last forces of the motion that is resumed."""
        if course.known is None or course.known.size != math.prod(shape):
            return place.sent(np.zeros(shape))
        before = course.known.reshape(shape).copy()
        return place.sent(before) if isinstance(before, np.ndarray) else before

    def _touched(
        self, place: Place, q: Any, forces: list[Any], threads: int | None
    ) -> Touching | None:
        """Return contact forces and gaps for each recorded state.

        The forces are those of the step that ends in the recorded state.
        """
        if not self.slots:
            return None
        target = (place.backend, place.dtype)
        if target not in self._gaps:
            recipe = ("gaps", self.recipe)
            self._gaps[target] = compiled_kernel(recipe, self.gap_program, *target)
        own = [place.given[name] for name in self._free]
        own = [a if a.ndim == 1 else a[..., None, :] for a in own]
        gaps = place.call(self._gaps[target], (q, *own), threads)
        if self.unseen is not None:
            gaps = np.concatenate([gaps, self.unseen.gaps(q)], axis=-1)
        return Touching(forces[0].reshape(*gaps.shape, 3), gaps, q[..., :0])

    def gap_program(self) -> Program:
        """Return the program that computes the gaps of all compiled contacts in a configuration."""
        arena, sizes = Arena(RULES), {"q": self.model.nq} | self._free
        own, crowded = self.scene.usual
        if self._free:
            given = {name: symbols(arena, name, (n,)) for name, n in sizes.items()}
            own, crowded = self.scene.spots(given["q"], self._own.of_model(given[MODEL]))
        gaps = [spot.gap for _, spot in own]
        for crowd in crowded:
            gaps += smallest(crowd)
        output = (Variable("gaps", (len(gaps),)), gaps)
        inputs = [Variable(name, (n,)) for name, n in sizes.items()]
        return replace(Program.from_outputs("gaps", inputs, [output]), batched=True)


def _tolerance(dtype: str) -> float:
    return ROUGH if dtype == "float32" else TOLERANCE


def scene_of(robot: Machine, plan: Plan, model: Model) -> Scene:
    """Collect the contact pairs, joint limits, dry friction and damping of a simulation."""
    pairs = given_pairs("simulate", plan.contacts)
    for pair in pairs:
        if not isinstance(pair, Pair) or not isinstance(pair.law, Rigid | Compliant):
            problem = f"{pair!r:.80} has a contact law that time stepping does not support"
            remedy = "use contact.Rigid(...) or contact.Compliant(...), or another integrator"
            raise ModelError("E-MOTION-133", problem, remedy, part="simulate")
        for frame in pair.frames:
            if frame is not None:
                robot.model.frame(frame)
    check_pairs("simulate", pairs)
    limits = stops(robot.model) if plan.limits else ()
    check_hash("simulate", "dissipation", plan.dissipation)
    return Scene(model, pairs, limits, plan.dissipation or False, bool(plan.limits))


def stops(model: Model) -> tuple[tuple[int, int, float, float], ...]:
    """Return (velocity index, position index, lower, upper) of each 1-DoF joint with limits."""
    found = []
    for i in model.movers:
        joint, limits = model.bodies[i].joint, model.limits[i]
        if joint.nq == joint.nv == 1 and (np.isfinite(limits.lower) or np.isfinite(limits.upper)):
            places = (model.velocity_slices[i].start, model.position_slices[i].start)
            found.append((*places, float(limits.lower), float(limits.upper)))
    return tuple(found)


def chosen(robot: Machine, q: Any) -> Model:
    """Choose independent coordinates at the first state, and return the model with this choice."""
    mechanism, model = robot.mechanism, robot.model
    if not mechanism.rows or _is_later(robot, q):
        return model
    first = numbers("simulate: q", q, model.nq).astype(float).reshape(-1, model.nq)
    if not len(first) or not np.isfinite(first).all():
        return model  # the driver raises an error that names the argument
    chart = mechanism.charts.at(mechanism.closing, first[0])
    gap = chart.closing(0.0, first, np.zeros((len(first), model.nv)))[2][:, 0]
    if not (gap <= CONSISTENT * CONSISTENT).all():
        problem = f"q does not close the loops in state {int(np.argmax(gap))}"
        remedy = "close them first: q = robot.assemble(...)"
        raise InputError("E-MOTION-184", problem, remedy, part="simulate")
    closure = chart.closure
    return replace(model, source=replace(model.source, closure=closure))


def _is_later(robot: Machine, q: Any) -> bool:
    """Return True if a robot has loops and q is a JAX or PyTorch array.

    The values of such an array may be unknown, because the function may be traced.
    """
    library = library_of(q) if robot.mechanism.rows else None
    if library is None:
        return False
    if library.package == "cupy":
        problem = f"integrator {TIME_STEPPING!r} does not support loops on a GPU"
        raise ModelError("E-MOTION-210", problem, "use NumPy arrays", part="rollout")
    return True


def prepared(
    robot: Machine, plan: Plan, dt: float, control: Any, q: Any, *, again: bool = False
) -> Stepped:
    """Return the compiled time step for a plan, from the robot's cache if possible.

    The initial positions `q` determine the independent coordinates of closed loops. If `again` is
    True, the controller is traced even if its step is cached.
    """
    scene, known = scene_of(robot, plan, chosen(robot, q)), robot.mechanism.recent
    control = control if callable(control) or isinstance(control, Controls) else None
    count = checked_parameters(plan.parameters, control)
    own = (scene.pairs, scene.limits, scene.dissipation, scene.stopped, scene.model.source.closure)
    free = tuple(plan.model_parameters or ())
    key: Any = (TIME_STEPPING, *own, dt, control, count, free)
    if robot.mechanism.rows:
        robot.mechanism.check_inertia("simulate")
    try:
        found: Stepped | None = None if again else known.get(key)
        if found is not None:
            return found
    except (TypeError, ValueError):  # the key is not hashable
        key = None
    with COMPILING:
        made = Stepped(scene.model, scene, dt, control, count, free)
    if _is_later(robot, q):
        made.suited = partial(prepared, robot, plan, dt, control)
    kept: Stepped = known.setdefault((TIME_STEPPING, made.recipe), made)
    if key is not None and not again:
        known[key] = kept
    return kept
