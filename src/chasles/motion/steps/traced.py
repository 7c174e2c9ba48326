"""Programs for a time step and its adjoint, traced through integrator, contacts and controller.

Positions are integrated on the configuration space, so that quaternions keep their length.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError, ModelError
from chasles.expr import RULES, Arena, Number, Program, Variable, reverse
from chasles.functions.derivatives import pulled_back
from chasles.functions.doors import numbers, refuse
from chasles.functions.programs import Derivative, program
from chasles.functions.tracing import with_limbs
from chasles.model import Description, Model
from chasles.model.build import connected
from chasles.model.parameters import shape, substituted
from chasles.motion.contact import watch as watching
from chasles.motion.contact.pairs import Contacts, Numbers, Pressed
from chasles.motion.controls import OWN, kept_within, named_results
from chasles.motion.geometry.kinematics import result, symbols
from chasles.motion.steps.bodies import dry_friction
from chasles.motion.steps.integrators import INTEGRATORS
from chasles.motion.steps.parameters import MODEL
from chasles.motion.steps.stiction import Pivoted
from chasles.motion.steps.system import System, path

Accelerate = Callable[..., tuple[np.ndarray, Pressed, np.ndarray]]
"""Function that returns qdd, the contact response (`Pressed`), and the activation rates.

The arguments are t, q, qd, contact states, activations and, optionally, a mask of touching points.
"""


class Traced(System):
    """Implementation of `System` with symbolic states, for compiled simulation.

    The soft contacts that touch at the start of a step count as touching during the whole step.
    """

    def __init__(
        self,
        contacts: Contacts,
        arena: Arena,
        accelerate: Accelerate,
        t: Number,
        q: np.ndarray,
        activations: int = 0,
    ) -> None:
        self.model, self.contacts, self.arena = contacts.model, contacts, arena
        self._sizes = [self.model.nv, self.model.nv, contacts.states, activations]
        self.t, self.q, self._accelerate = t, q, accelerate
        self.path, self.nv = path(self.model), self.model.nv

    def first(self, y: np.ndarray) -> np.ndarray:
        _, v, surfaces, act, _ = self._split(y)
        qdd, self.begun, rate = self._accelerate(self.t, self.q, v, surfaces, act)
        self._pressed, self._touching = self.begun, self.begun.touching
        return np.concatenate([v, qdd, self._pressed.rates, rate, self._path_rates(self.q, v)])

    def rates(self, s: Number, y: np.ndarray) -> np.ndarray:
        d, v, surfaces, act, x = self._split(y)
        there = self._placed(d, x)
        settled = self.contacts.settled(self.arena, surfaces, self._pressed, there)
        rate, now = self._step_rate(there, v), (self.t + s, there, v, settled, act)
        qdd, self._pressed, slope = self._accelerate(*now, self._touching)
        return np.concatenate([rate, qdd, self._pressed.rates, slope, self._path_rates(there, v)])

    def ways(self, d: np.ndarray) -> np.ndarray:
        return self._path_rates(self.q, d)

    def ended(self, y: np.ndarray) -> tuple[Numbers, ...]:
        """Convert y at the end of a step to q, qd, surface states and activations."""
        d, v, surfaces, act, x = self._split(y)
        there = self._placed(d, x)
        after = self.contacts.settled(self.arena, surfaces, self._pressed, there)
        return there, v, after, kept_within(self.model, act)

    def pushed(self, y: np.ndarray, surfaces: Numbers, h: Number) -> tuple[Numbers, ...]:
        """Return the state after a first-order step; `surfaces` are advanced in closed form."""
        d, v, _, act, _ = self._split(y)
        there = self._placed(d)
        after = self.contacts.advanced(self.arena, surfaces, self._pressed, there, h)
        return there, v, after, kept_within(self.model, act)

    def _split(self, y: np.ndarray) -> list[np.ndarray]:
        return np.split(y, np.cumsum(self._sizes))

    def _placed(self, d: np.ndarray, x: np.ndarray | None = None) -> np.ndarray:
        """Return the position integrate(q, d) after the displacement d.

        If x is given, the path-dependent entries of this position are replaced by x (see `System`).
        """
        there = self.run(program(self.model, "integrate"), q=self.q, v=d)
        there[self.path] = there[self.path] if x is None else x
        return there

    def _step_rate(self, there: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the time derivative of difference(q, there), if `there` moves with velocity v."""
        if all(self.model.bodies[i].joint.additive for i in self.model.movers):
            return v
        slopes = program(self.model, "difference", derivative=Derivative("jacobian", ("q1",)))
        rate: np.ndarray = self.run(slopes, q0=self.q, q1=there) @ v
        return rate

    def _path_rates(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the rates of the path-dependent entries of q."""
        if not self.path:
            return np.zeros(0)
        slopes = program(self.model, "integrate", derivative=Derivative("jacobian", ("v",)))
        rates: np.ndarray = self.run(slopes, q=q, v=np.zeros(self.nv)) @ qd
        return rates[self.path]

    def run(self, found: Program, **arguments: Numbers) -> np.ndarray:
        """Evaluate a program with expressions as inputs."""
        return result(found, self.arena, arguments)


STEPS = {name: row for name, row in INTEGRATORS.items() if row.traced}
"""Integrators for compiled simulations, by name."""


def step_program(
    model: Model,
    integrator: str,
    control: Program | None,
    *,
    dissipation: bool,
    contacts: Contacts | None = None,
    dt: float | None = None,
    watch: bool = False,
    free: Sequence[str] = (),
) -> Program:
    """Return the program for q, qd, surface states and activations after a step of h seconds.

    The inputs are q, qd, surface states, activations (if any), joint torques or the inputs of a
    controller, values of model parameters, t and h. With contacts, h is the constant `dt`, because
    soft surfaces with stiffness K and damping D recover as exp(-K h / D). If `watch` is True, the
    additional state "watch" records whether the step size is small enough for the contacts. `free`
    contains the names of the model parameters that are inputs.
    """
    arena, touch = Arena(RULES), contacts or Contacts(model, ())
    taken = {v.name: v.size for v in control.inputs} if control else {"tau": model.nv}
    states = {"q": model.nq, "qd": model.nv} | ({"states": touch.states} if touch.states else {})
    states |= {"act": taken["act"]} if "act" in taken else {}
    states |= {"watch": watching.size(len(touch.laws))} if watch else {}
    sizes = states | {name: n for name, n in taken.items() if name in ("tau", *OWN)}
    entries = entries_of(model, free)
    sizes |= {MODEL: sum(s.stop - s.start for s in entries.values())} if free else {}
    given = {name: symbols(arena, name, (n,)) for name, n in sizes.items()}
    t, h = arena.input("t", 0), arena.input("h", 0) if dt is None else dt
    row, friction = INTEGRATORS[integrator], dry_friction(model)
    dry = Pivoted(row.advance, friction) if dissipation and friction.any() else None
    own = {name: given[MODEL][place] for name, place in entries.items()}
    forward = _dynamics(model, touch, dry, own, dissipation=dissipation)

    def accelerate(
        t: Number, q: Numbers, qd: Numbers, z: Numbers, act: Numbers, touching: Any = None
    ) -> tuple[np.ndarray, Pressed, np.ndarray]:
        here = given | {"t": [t], "q": q, "qd": qd, "act": act}
        found = named_results(control, arena, here) if control else {"tau": given["tau"]}
        pressed = touch.pressed(arena, q, qd, z, touching)
        wrenches = touch.wrenches(arena, q, pressed)
        rate = np.array(found.get("rate", []), dtype=object)
        return forward(system.run, q, qd, found["tau"], wrenches), pressed, rate

    surfaces, act = (given.get(name, np.zeros(0)) for name in ("states", "act"))
    system = Traced(touch, arena, accelerate, t, given["q"], len(act))
    behind = np.concatenate([surfaces, act])
    last = (dry or row.advance)(system, h, system.start(given["qd"], behind)).y
    after = system.pushed(last, surfaces, h) if row.order == 1 else system.ended(last)
    inputs = [Variable(name, (n,)) for name, n in sizes.items()]
    inputs += [Variable(name, ()) for name in (("t", "h") if dt is None else ("t",))]
    results = dict(zip(("q", "qd", "states", "act"), map(list, after), strict=True))
    if watch:
        assert dt is not None, "contacts need dt"
        results["watch"] = _watched(given["watch"], system.begun, dt)
    found = [(Variable(name, (n,)), results[name]) for name, n in states.items()]
    return with_limbs(Program.from_outputs("step", inputs, found), model)


def entries_of(model: Model, names: Sequence[str]) -> dict[str, slice]:
    """Return the slice of each named model parameter in the concatenated array of values."""
    ends = np.cumsum([0, *(math.prod(shape(model.source, name)) for name in names)]).tolist()
    return {name: slice(*ends[k : k + 2]) for k, name in enumerate(names)}


def _frictionless(source: Description) -> Description:
    """Return the robot description without dry joint friction."""
    return substituted(source, {f"{joint.name}.friction": [0.0] for joint in source.joints})


def _dynamics(
    model: Model,
    touch: Contacts,
    dry: Pivoted | None,
    own: Mapping[str, Numbers],
    *,
    dissipation: bool,
) -> Callable[..., np.ndarray]:
    """Return a forward-dynamics function (run, q, qd, tau, wrenches) -> qdd with dry friction.

    Sticking joints stay at rest: their rows and columns are removed from the mass matrix. The
    argument `run` is a function that evaluates a program on symbols. `own` contains the values of
    model parameters.
    """
    free: dict[str, Any] = {"parameters": tuple(own)}
    loaded = free | {"wrenches": touch.keys}
    if dry is None:
        found = program(model, "forward_dynamics", dissipation=dissipation, **loaded)
        return lambda run, q, qd, tau, wrenches: run(found, q=q, qd=qd, tau=tau, **wrenches, **own)
    smooth, still = model.frictionless(damped=True), np.zeros(model.nv)
    if own:  # only a model built from a description can have symbolic parameters
        smooth = connected(_frictionless(model.source), mimic=model.mimics)
    mass = program(smooth, "mass_matrix", **free)
    inverse = program(smooth, "inverse_dynamics", dissipation=True, **loaded)

    def forward(run: Any, q: Numbers, qd: Numbers, tau: Any, wrenches: Any) -> np.ndarray:
        bias = run(inverse, q=q, qd=qd, qdd=still, **wrenches, **own)
        return dry.solve(run(mass, q=q, **own), np.asarray(tau, dtype=object) - bias)

    return forward


def _watched(watch: Numbers, begun: Pressed, h: float) -> list[Number]:
    velocities = [[*spot.slip, spot.rate] for spot in begun.spots]
    normal = [force[-1] for force in begun.forces]
    return watching.watched(list(watch), velocities, normal, h)


# Gradients ---------------------------------------------------------------------------------------


class RolloutGradient(NamedTuple):
    """Gradient of a scalar function of a trajectory, for each member of a batch.

    Each attribute is the derivative with respect to one input. Attributes for inputs that were not
    given are None.

    Attributes
    ----------
    q, qd : array, shape (..., nv)
        Initial state; changes of q are displacements, as in `integrate`.
    tau : array, shape (..., nv), or (..., steps, nv) if given per step
        Joint torques; None with a controller.
    parameters : array, shape (..., m)
        Parameters of the controller.
    contact_states : array, shape (..., states)
        Initial states of soft contacts.
    ctrl : array, shape (..., nu) or (..., steps, nu)
        Controls, if given as arrays.
    act : array, shape (..., na)
        Initial activations.
    model_parameters : dict of arrays
        Derivatives with respect to each of the given model parameters, by name.
    """

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray | None
    parameters: np.ndarray | None
    contact_states: np.ndarray | None
    ctrl: np.ndarray | None = None
    act: np.ndarray | None = None
    model_parameters: dict[str, np.ndarray] | None = None


def adjoint_program(model: Model, step: Program, along: Sequence[str]) -> Program:
    """Return the program for an adjoint step, which pulls covectors back through a step.

    A covector is the gradient of a scalar with respect to a state or an input of the step. The
    program reads and returns the covectors of:

    - the inputs in `along`, which vary from step to step (covectors of this step alone)
    - the states (for q, with respect to displacements)
    - all other inputs except t and h (sums over the steps)

    Further inputs are the inputs of the step, and weights that are added to the covectors of the
    states after the step.
    """
    states = [v.name for v in step.outputs]
    sums = [v.name for v in step.inputs if v.name not in (*states, *along, "t", "h")]
    names = [*along, *states, *sums]
    back = pulled_back(model, step, names, frozenset({"q"}))
    size = {name: v.size for name, v in zip(names, back.outputs, strict=True)}
    bars = [Variable(f"bar_{name}", (size[name],)) for name in names]
    weights = [Variable(f"weight_{name}", (size[name],)) for name in states]
    inputs = [*bars, *step.inputs, *weights]
    arena = Arena(RULES)
    given = {v.name: symbols(arena, v.name, (v.size,)) for v in inputs}
    values: dict[str, Any] = {v.name: given[v.name] for v in step.inputs}
    after = step.applied(values, arena)
    for name, there in zip(states, after, strict=True):
        bar = given[f"bar_{name}"] + given[f"weight_{name}"]
        if name == "q":
            bar = by_entries(model, arena, there, bar)
        values[f"bar_{name}"] = bar
    results = back.applied(values, arena)
    for k, name in enumerate(names):
        if name in sums:
            results[k] = list(given[f"bar_{name}"] + results[k])
    return Program.from_outputs(f"{step.name}_back", inputs, list(zip(bars, results, strict=True)))


def by_entries(model: Model, arena: Arena, q: Numbers, bar: np.ndarray) -> np.ndarray:
    """Convert a gradient with respect to displacements to one with respect to the entries of q.

    `bar` (nv,) is the gradient with respect to displacements, as in `integrate`. The result has
    shape (nq,).
    """
    pulled = reverse(program(model, "difference"), ["q1"])
    return result(pulled, arena, {"q0": q, "q1": q, "bar_result": bar})


def check_holonomic(model: Model) -> None:
    """Raise an error if a model has a nonholonomic joint."""
    for body in model.bodies:
        if not body.joint.holonomic:
            problem = f"nonholonomic joint {body.data.name!r} is not supported"
            part = f"rollout_pullback: robot {model.name!r}"
            raise ModelError(
                "E-MOTION-001", problem, "use finite differences of rollouts", part=part
            )


def gone_back(
    adjoint: Callable[[tuple[str, ...]], Any],
    names: Sequence[str],
    states: Sequence[np.ndarray],
    controls: Sequence[np.ndarray],
    weights: Sequence[np.ndarray],
    steps: int,
    every: int,
    threads: int | None,
) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Backpropagate through a rollout, and return gradients with respect to states and controls.

    `weights` contains the gradients with respect to the recorded states. The returned gradients
    have shapes (count, size) for the initial states, and (count, steps or 1, size) for the
    controls. `adjoint` is a function that returns the backward loop, given the names of the
    controls that vary from step to step.
    """
    count, others = len(states[0]), dict(zip(names, controls, strict=False))
    along = tuple(name for name, c in others.items() if c.shape[1] > 1)
    sums = {name: np.zeros((count, c.shape[2])) for name, c in others.items()}
    rows = {name: np.empty((count, steps, others[name].shape[2])) for name in along}
    start = [np.zeros((count, w.shape[2])) for w in weights]
    covectors = [*(sums.pop(name) for name in along), *start, *sums.values()]
    if count:
        found, length = list(rows.values()), (steps, every, threads)
        adjoint(along)(states, controls, weights, covectors, found, *length)
    for covector, w in zip(start, weights, strict=True):
        covector += w[:, 0]
    return start, rows | {name: total[:, None] for name, total in sums.items()}


def checked_weights(
    covectors: Any, lead: tuple[int, ...], records: int, nv: int
) -> list[np.ndarray]:
    """Check the given gradients with respect to recorded q and qd; return them as arrays.

    The shape of each array is (count, records, nv), or (1, records, nv) if all motions share it.
    """
    if not isinstance(covectors, Sequence) or len(covectors) != 2:
        problem = "`covectors` must be 2 arrays, for q and for qd"
        raise InputError("E-MOTION-002", problem, part="rollout_pullback")
    refuse("rollout_pullback", *covectors)
    found = []
    for name, given in zip(("q", "qd"), covectors, strict=True):
        if given is None:
            found.append(np.zeros((1, records, nv)))
            continue
        what = f"rollout_pullback: the array for {name} in `covectors`"
        array = numbers(what, given, nv).astype(float)
        if array.shape[-2:] != (records, nv):
            problem = f"{what} must have shape (..., {records}, {nv}), not {array.shape}"
            raise InputError("E-MOTION-003", problem, "pass one row per recorded state")
        if not np.isfinite(array).all():
            raise InputError("E-MOTION-004", f"{what} must be finite")
        try:
            whole = np.broadcast_to(array, (*lead, records, nv))
        except ValueError:
            problem = f"{what}: leading shape {array.shape[:-2]} does not broadcast to {lead}"
            raise InputError("E-MOTION-005", problem) from None
        shared = array.ndim == 2
        found.append(array[None] if shared else whole.reshape(-1, records, nv))
    return found
