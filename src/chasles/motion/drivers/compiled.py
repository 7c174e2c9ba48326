"""Compiled simulations: check the arguments, compile the step, and run the loop."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import COMPILING, checked_count
from chasles.errors import ArgumentError, InputError, NotFiniteError
from chasles.expr import Program, Variable
from chasles.functions.doors import leading_shape, refuse
from chasles.mechanisms import require_tree
from chasles.model import Description, Model
from chasles.model.given import check_hash, checked_step, is_finite
from chasles.model.parameters import shape
from chasles.motion.contact import watch as watching
from chasles.motion.contact.pairs import Contacts, given_pairs
from chasles.motion.contract import Machine
from chasles.motion.controllers import checked_parameters, traced
from chasles.motion.controls import Controls
from chasles.motion.drivers.places import (
    Place,
    constant_rows,
    given_rows,
    place_of,
    within_memory,
)
from chasles.motion.drivers.running import check_resolution
from chasles.motion.options import MOST_STEPS
from chasles.motion.records import End, Touching, Trajectory
from chasles.motion.steps.parameters import MODEL
from chasles.motion.steps.stiction import check_tendons
from chasles.motion.steps.traced import (
    STEPS,
    RolloutGradient,
    adjoint_program,
    check_holonomic,
    checked_weights,
    entries_of,
    gone_back,
    step_program,
)
from chasles.names import one_of

DONE, WATCH, FORCES = "compiled steps", "watch", "contact forces"
"""Keys in `End.memory`, the data for resuming a motion: number of completed steps, data for
detecting unstable contacts (`contact.watch`), and contact forces in the last step.
"""


@dataclass(frozen=True)
class Recipe:
    """Cache key of a compiled step: all data that determine its code."""

    source: Description
    mimic: bool
    integrator: str
    control: str
    dissipation: bool
    contacts: str = ""
    dt: float | None = None
    free: tuple[str, ...] = ()


@dataclass(frozen=True)
class Course:
    """Initial state, inputs and step counts of a simulation.

    Attributes
    ----------
    q, qd, contact_states, act : array_like
        Initial positions, velocities, states of soft contacts, and activations.
    tau, ctrl : array_like or None
        Joint torques and actuator controls; None if a controller computes them.
    parameters, model_parameters : array_like or None
        Controller parameters, and the concatenated model parameters.
    dt, start : float
        Step size and initial time (s).
    steps, every : int
        Number of steps in this part of the motion, and the interval between recorded states.
    threads : int or None
        Number of CPU threads.
    done : int
        Number of steps completed before this part.
    total : int or None
        Number of steps in the entire motion; None if this part is the entire motion.
    function : str
        Function name in error messages.
    known : array or None
        For a resumed motion, data from the end of the earlier part: the contact forces, or the data
        for detecting unstable contacts.
    """

    q: Any
    qd: Any
    tau: Any
    contact_states: Any
    parameters: Any
    dt: float
    steps: int
    every: int
    start: float
    threads: int | None
    done: int = 0
    total: int | None = None
    function: str = "rollout"
    known: Any = None
    ctrl: Any = None
    act: Any = None
    model_parameters: Any = None


TOO_FAST = (
    "reduce `dt`, or use integrator='time-stepping'; the built-in controllers, such as PDControl, "
    "check `dt` against their gains"
)
"""Remedy for motions with explicit integrators that become infinite."""


class Rollout:
    """Compiled simulation of a robot with a fixed step size.

    Parameters
    ----------
    model : Model
        Model of a robot without loops.
    integrator : str
        Name of an explicit integrator.
    control : controller or None
        Controller to trace into the step; None if joint torques are inputs.
    dissipation : bool
        True to include damping and dry friction of joints.
    contacts : Contacts, optional
        Soft contacts.
    dt : float, optional
        Step size (s), required with contacts.
    parameters : int, optional
        Number of controller parameters.
    free : tuple of str, optional
        Names of the model parameters that are inputs of the step.
    """

    def __init__(
        self,
        model: Model,
        integrator: str,
        control: Callable[..., Any] | None,
        dissipation: bool,
        contacts: Contacts | None = None,
        dt: float | None = None,
        parameters: int = 0,
        free: tuple[str, ...] = (),
    ) -> None:
        if not isinstance(integrator, str) or integrator not in STEPS:
            problem = f"unknown integrator {integrator!r}"
            raise InputError("E-MOTION-016", problem, one_of(integrator, STEPS), part="rollout")
        require_tree(model, "rollout", "use chasles.simulate")
        if dissipation:
            check_tendons(model)
        self.model, self.contacts, self.parameters = model, contacts, parameters
        self.control = None if control is None else traced(model, control, parameters)
        self._touching: Program | None = None
        if contacts is not None:
            assert dt is not None, "contact surfaces need dt"
            self._touching = contacts.program(dt)
        digests = ("" if p is None else p.hash for p in (self.control, self._touching))
        own = (model.source, model.mimics, integrator)
        self.recipe = Recipe(*own, next(digests), dissipation, next(digests), dt, free)
        places = entries_of(model, free).values()
        self._free = {MODEL: max(place.stop for place in places)} if free else {}
        self._sizes = {"q": model.nq, "qd": model.nv}
        if contacts is not None and contacts.states:
            self._sizes["contact_states"] = contacts.states
        taken = {v.name: v.size for v in self.control.inputs} if self.control else {}
        self._given = {"ctrl": taken["ctrl"]} if "ctrl" in taken else {}
        if "act" in taken:
            self._sizes["act"] = taken["act"]
        self._loops: dict[tuple[str, ...], Any] = {}
        self._touchers: dict[tuple[str, ...], Any] = {}
        self._adjoints: dict[tuple[str, ...], Any] = {}

    def _loop(self, *target: str, watch: bool = False) -> Any:
        """Return the compiled loop over all steps for a backend and dtype.

        If `watch` is True, the loop also detects unstable contacts.
        """
        key = (*target, WATCH) if watch else target
        if key not in self._loops:
            recipe = (self.recipe, WATCH) if watch else self.recipe
            kernel = compiled_kernel(recipe, partial(self._program, watch=watch), *target)
            self._loops[key] = backends.loop(kernel, target[0])
        return self._loops[key]

    def _program(self, *, watch: bool = False) -> Program:
        given = self.recipe
        return step_program(
            self.model,
            given.integrator,
            self.control,
            dissipation=given.dissipation,
            contacts=self.contacts,
            dt=given.dt,
            watch=watch,
            free=given.free,
        )

    def __call__(self, course: Course) -> Trajectory:
        """Run the steps that `course` describes, and return the trajectory."""
        place, dt, steps = self._place(course), course.dt, course.steps
        every, done, total = course.every, course.done, course.total or steps
        if not backends.takes_numpy(place.backend):
            check_threads(course)
        watch = self.contacts is not None and bool(self.contacts.laws)
        loop = self._loop(place.backend, place.dtype, watch=watch)
        often = math.gcd(every, done)
        with place.device, within_memory(course):
            lead, states, controls = self._start(place, course)
            numbers = kept_steps(steps, often) + done
            records = place.records(states, len(numbers))
            rest, seen = [record[:, 1:] for record in records], None
            if watch:
                states.append(self._watch(place, course, lead))
                unrecorded, seen = place.latest(states[-1], len(numbers) - 1)
                rest += unrecorded
            if math.prod(lead):
                loop(states, controls, rest, steps, often, course.threads)
            place.check(records, TOO_FAST)
            along = [r.reshape(*lead, *r.shape[1:]) for r in records]
            q, qd, *surfaces = (a[..., -1, :] for a in along)
            q, gone = place.joined([q, *surfaces]) if surfaces else q, done + steps
            time, memory = course.start + dt * gone, {DONE: np.array(gone)}
            unstable = None
            if seen is not None:
                memory[WATCH] = seen = seen.reshape(*lead, seen.shape[-1])
                unstable = watching.first_unstable(seen, gone)
            end = End(time, q, qd, gone == total, memory)
            if done or steps < total:
                wanted = (numbers % every == 0) | (numbers == total)
                wanted[0] &= not done
                which = np.flatnonzero(wanted).tolist()
                numbers, along = numbers[which], [a[..., which, :] for a in along]
            touching = self._touched(place, along, course.threads)
        t, act = course.start + dt * numbers, along[-1] if "act" in self._sizes else None
        return Trajectory(
            t,
            along[0],
            along[1],
            touching=touching,
            end=end,
            compiled=True,
            unstable=unstable,
            act=act,
            contacts=() if self.contacts is None else self.contacts.pairs,
        )

    def _watch(self, place: Place, course: Course, lead: tuple[int, ...]) -> Any:
        """Return the initial array for detecting unstable contacts, with one row per state."""
        assert self.contacts is not None
        shape = (math.prod(lead), watching.size(len(self.contacts.laws)))
        before = np.zeros(shape) if course.known is None else course.known.reshape(shape).copy()
        return place.sent(before) if isinstance(before, np.ndarray) else before

    def pullback(self, course: Course, covectors: Any) -> RolloutGradient:
        """Return the gradient of a function of the recorded states with respect to the inputs.

        Parameters
        ----------
        course : Course
            Initial state, steps and inputs of the rollout.
        covectors : pair of array_like
            Derivatives of a scalar with respect to the recorded positions and velocities, each of
            shape (..., records, nv).

        Returns
        -------
        gradient : RolloutGradient
            Derivatives of the scalar with respect to the inputs.

        Raises
        ------
        NotFiniteError
            If the gradient is not finite.
        ArgumentError
            If an array is not a NumPy array, or if a required array is missing.
        InputError
            If an array has the wrong shape or is not finite, or if an array is given that no
            actuator or contact uses.
        ModelError
            If the robot has a nonholonomic joint, or does not have a parameter.

        Examples
        --------
        `Robot.rollout_pullback` calls this function:

        >>> import numpy as np
        >>> import chasles
        >>> arm, last = chasles.robots.planar(1), np.zeros((2, 1))
        >>> last[-1] = 1.0
        >>> options = {"dt": 0.01, "steps": 10, "every": 10}
        >>> found = arm.rollout_pullback([0.0], [0.0], covectors=(last, 0.0 * last), **options)
        >>> found.qd.shape
        (1,)
        """
        given = (course.q, course.qd, course.tau, course.contact_states, course.parameters)
        refuse("rollout_pullback", *given, course.ctrl, course.act, course.model_parameters)
        check_holonomic(self.model)
        lead, states, controls = self._start(self._place(course), course)
        names = ("tau",) if self.control is None else ("parameters",) if self.parameters else ()
        names = (*names, *self._given, *self._free)
        shapes = {name: shape(self.model.source, name) for name in self.recipe.free}
        arrays = (states, controls, self._sizes)
        return pulled_back(self._adjoint, course, covectors, lead, names, *arrays, shapes)

    def _adjoint(self, along: tuple[str, ...]) -> Any:
        """Return the compiled backward pass; `along` names inputs that vary from step to step."""
        if along not in self._adjoints:
            kernel = compiled_kernel(
                ("adjoint", self.recipe, along),
                lambda: adjoint_program(self.model, self._program(), along),
            )
            loops = self._loop("llvm", "float64"), backends.loop(kernel)
            self._adjoints[along] = backends.adjoint(*loops)
        return self._adjoints[along]

    @cached_property
    def _arguments(self) -> tuple[list[Variable], dict[str, int]]:
        """Return a `Variable` for each argument, and the sizes of all arguments by name."""
        own = {"parameters": self.parameters} if self.parameters else {}
        sizes = self._sizes | own | {"tau": self.model.nv} | self._given | self._free
        return [Variable(name, (n,)) for name, n in sizes.items()], sizes

    def _place(self, course: Course) -> Place:
        """Check all arguments, and return their location (host or GPU)."""
        surfaces, given = self._sizes.get("contact_states", 0), course.contact_states
        if given is not None and not surfaces:
            problem = "`contact_states` was given, but no contact has internal state"
            raise InputError("E-MOTION-021", problem, part=course.function)
        variables, sizes = self._arguments
        check_given(course, self._sizes, self._given)
        arguments = {name: getattr(course, name) for name in sizes}
        for name in ("contact_states", "act"):
            if name in sizes and arguments[name] is None:
                arguments[name] = [0.0] * sizes[name]
        for name in ("q", "qd"):
            if arguments[name] is None:
                raise ArgumentError("E-CALL-118", f"{name} is missing", part=course.function)
        return place_of(course.function, variables, list(arguments.values()))

    def _start(self, place: Place, course: Course) -> tuple[tuple[int, ...], list[Any], list[Any]]:
        """Return the batch shape, the flattened initial states, and the inputs of all steps.

        For n batch members, the states have shape (n, size), and the inputs have shape
        (n or 1, steps or 1, size).
        """
        steps, given = course.steps, place.given
        shared = ({"parameters": self.parameters} if self.parameters else {}, self._free)
        names = (*self._sizes, *(name for some in shared for name in some))
        lead = leading_shape(place.function, **{name: given[name] for name in names})
        states = [place.flat(given[name], lead, (n,)) for name, n in self._sizes.items()]
        controls = (
            [] if self.control is not None else [given_rows(place, lead, steps, self.model.nv)]
        )
        controls += [constant_rows(place, lead, *each) for each in shared[0].items()]
        controls += [given_rows(place, lead, steps, n, name) for name, n in self._given.items()]
        controls += [constant_rows(place, lead, *each) for each in self._free.items()]
        times = course.start + course.dt * np.arange(course.done, course.done + steps, dtype=float)
        controls.append(place.sent(times.reshape(1, steps, 1)))
        if self.contacts is None:
            controls.append(place.sent(np.full((1, 1, 1), course.dt)))
        return lead, states, controls

    def _touched(self, place: Place, records: list[Any], threads: int | None) -> Touching | None:
        """Return the contact forces and gaps at the recorded states."""
        if self._touching is None:
            return None
        found, target = self._touching, (place.backend, place.dtype)
        if target not in self._touchers:
            self._touchers[target] = compiled_kernel(
                ("contacts", found.hash), lambda: found, *target
            )
        states = records[2] if "contact_states" in self._sizes else records[0][..., :0]
        arguments = (*records[:2], states)
        forces, gaps, _ = place.call(self._touchers[target], arguments, threads)
        return Touching(forces, gaps, states)


def pulled_back(
    adjoint: Callable[[tuple[str, ...]], Any],
    course: Course,
    covectors: Any,
    lead: tuple[int, ...],
    names: Sequence[str],
    states: Sequence[np.ndarray],
    controls: Sequence[np.ndarray],
    sizes: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
) -> RolloutGradient:
    """Return the gradient of a rollout, computed by its adjoint loop.

    Parameters
    ----------
    adjoint : callable
        Function that returns the adjoint loop, given the names of the inputs that vary in time.
    course : Course
        Inputs and step counts of the rollout.
    covectors : pair of array_like
        Derivatives of a scalar with respect to the recorded positions and velocities.
    lead : tuple of int
        Batch shape.
    names : sequence of str
        Inputs, in addition to the initial state, for which gradients are computed.
    states, controls : sequence of ndarray
        Flattened initial states, and the inputs of all steps.
    sizes : mapping from str to int
        Names and sizes of the arrays that make up a state.
    shapes : mapping from str to tuple of int
        Shapes of the model parameters that are inputs.
    """
    steps, every = course.steps, course.every
    records = len(kept_steps(steps, every))
    first, second, *others = sizes
    weights = checked_weights(covectors, lead, records, sizes[second])
    weights += [np.zeros((1, records, sizes[name])) for name in others]
    arrays, length = (states, controls, weights), (steps, every, course.threads)
    found, rest = gone_back(adjoint, names, *arrays, *length)
    if not all(np.isfinite(a).all() for a in (*found, *rest.values())):
        problem = "the gradient is not finite"
        remedy = "reduce `dt`, or inspect the motion and its forces"
        raise NotFiniteError("E-MOTION-020", problem, remedy, part="rollout_pullback")
    own = {n: a.reshape(*lead, a.shape[1]) for n, a in zip(sizes, found, strict=True)}
    rows = {name: a.reshape(*lead, *a.shape[1:]) for name, a in rest.items()}
    each = {name: a[..., 0, :] for name, a in rows.items()}
    tau, ctrl = (
        (each if np.ndim(getattr(course, name)) < 2 else rows).get(name) for name in ("tau", "ctrl")
    )
    felt, act, parameters = own.get("contact_states"), own.get("act"), each.get("parameters")
    model: dict[str, np.ndarray] | None = None
    if shapes:
        ends = np.cumsum([math.prod(shape) for shape in shapes.values()])[:-1]
        parts = zip(shapes.items(), np.split(each[MODEL], ends, axis=-1), strict=True)
        model = {name: a.reshape(*lead, *shape) for (name, shape), a in parts}
    return RolloutGradient(own[first], own[second], tau, parameters, felt, ctrl, act, model)


def check_threads(course: Course) -> None:
    """Raise an error if a number of threads was given on a GPU."""
    if course.threads is not None:
        problem = "`threads` applies only to the CPU"
        remedy = "omit `threads` on a GPU"
        raise ArgumentError("E-MOTION-019", problem, remedy, part=course.function)


def compiled_kernel(
    recipe: object, trace: Callable[[], Program], backend: str = "llvm", dtype: str = "float64"
) -> Any:
    """Return the compiled kernel for the cache key `recipe`.

    The function `trace` is called, and its program compiled, only if the kernel is not cached.
    """
    with COMPILING:
        known = backends.known(recipe, trace, backend, dtype)
        return known or backends.compile(trace(), backend, dtype, recipe)


def prepared(
    robot: Machine,
    integrator: str,
    control: Any,
    dissipation: bool,
    contacts: Any = None,
    dt: float = 0.0,
    parameters: Any = None,
    *,
    free: tuple[str, ...] = (),
    again: bool = False,
) -> Rollout:
    """Return the `Rollout` for the given options, from the robot's cache if possible.

    If `again` is True, the controller is traced even if its step is cached.
    """
    known_law = callable(control) or isinstance(control, Controls)
    control = control if known_law else None
    count = checked_parameters(parameters, control)
    check_hash("rollout", "dissipation", dissipation)
    pairs = None if contacts is None else given_pairs("rollout", contacts)
    constant, known = None if pairs is None else dt, robot.mechanism.recent
    key: Any = ("rollout", integrator, control, dissipation, pairs, constant, count, free)
    try:
        found: Rollout | None = None if again else known.get(key)
        if found is not None:
            return found
    except (TypeError, ValueError):  # the key is not hashable
        key = None
    with COMPILING:
        touch = None if pairs is None else Contacts(robot.model, pairs)
        rest = (dissipation, touch, constant, count, free)
        made = Rollout(robot.model, integrator, control, *rest)
    kept: Rollout = known.setdefault(("rollout", made.recipe), made)
    if key is not None and not again:
        known[key] = kept
    return kept


def checked_steps(
    dt: Any, steps: Any, every: Any, start: Any, threads: Any, function: str = "rollout"
) -> tuple[float, int, int, float, int | None]:
    """Check the step size, step counts, start time and number of threads of a simulation.

    Parameters
    ----------
    dt : float
        Step size (s).
    steps : int
        Number of steps.
    every : int
        Number of steps between recorded states.
    start : float
        Initial time (s).
    threads : int or None
        Number of threads.
    function : str, optional
        Name of the function, for messages.

    Returns
    -------
    dt, steps, every, start, threads
        The checked values, with the types above.

    Raises
    ------
    InputError
        If a value is out of range, if there are too many steps, or if `dt` is too small to change
        the time.
    ArgumentError
        If `dt` is not a number.

    Examples
    --------
    >>> from chasles import rollouts
    >>> rollouts.checked_steps(1e-3, 100, 10, 0, None)
    (0.001, 100, 10, 0.0, None)
    """
    counts = (
        checked_count(f"{function}: steps", steps),
        checked_count(f"{function}: every", every),
    )
    if threads is not None:
        threads = checked_count(f"{function}: threads", threads)
    if not is_finite(start):
        problem = f"`start` must be a finite time, not {start!r:.60}"
        raise InputError("E-MOTION-022", problem, part=function)
    if counts[0] > MOST_STEPS:
        problem = f"the motion has {counts[0]:,} steps, more than the limit of {MOST_STEPS:,}"
        remedy = "simulate fewer steps, and continue from the last state; set `start` to its time"
        raise InputError("E-MOTION-121", problem, remedy, part=function)
    step, begin = checked_step(dt, f"{function}: dt"), float(start)
    check_resolution(begin, step, function)
    return step, *counts, begin, threads


def kept_steps(steps: int, every: int) -> np.ndarray:
    """Return the step numbers after which states are recorded; 0 is the initial state."""
    numbers = np.arange(0, steps + 1, every)
    return numbers if numbers[-1] == steps else np.append(numbers, steps)


def check_given(course: Course, states: Collection[str], rows: Collection[str]) -> None:
    """Raise an error for activations or controls that no actuator uses."""
    for name, known in (("act", states), ("ctrl", rows)):
        if getattr(course, name) is not None and name not in known:
            problem = f"`{name}` was given, but no actuator uses it"
            raise InputError("E-MOTION-142", problem, f"omit `{name}`", part=course.function)
