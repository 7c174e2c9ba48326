"""Actuator controls in a simulation, and the resulting joint torques and activations.

Activations are integrated together with q and qd. Each activation is driven by its control, and is
clamped to the range in the robot's file (see "Actuation model" on mujoco.readthedocs.io).
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chasles.algorithms.spatial.actuation import SHORTEST, within
from chasles.errors import InputError, ModelError, said
from chasles.expr import RULES, Arena, Number, Program, Variable, is_number
from chasles.functions.doors import numbers
from chasles.functions.programs import program
from chasles.mechanisms import Mechanism
from chasles.model import Model
from chasles.motion.contract import Array, read_only
from chasles.motion.references import interpolated, row_size

OWN = ("parameters", "ctrl")
"""Names of optional inputs of a controller's program, besides the time and the state."""


@dataclass(frozen=True)
class Controls:
    """Actuators of a robot and the source of their controls.

    Attributes
    ----------
    function : callable or None
        Function ctrl(t, q, qd), or ctrl(t, q, qd, p) with parameters p, that returns the controls
        (..., nu). None if the controls are given as arrays.
    parts : tuple of float
        Fractions of a step at which a trajectory of controls is sampled; empty if the controls are
        not a trajectory.
    """

    function: Callable[..., Any] | None = None
    parts: tuple[float, ...] = ()

    @staticmethod
    def of(ctrl: Any) -> "Controls":
        """Return `Controls` for the argument `ctrl` of `simulate`."""
        if not callable(ctrl):
            return Controls()
        return Controls(_in_time(ctrl) if _takes_time_alone(ctrl) else ctrl)

    def program(self, model: Model, parameters: int = 0) -> Program:
        """Return the program for joint torques, activation rates and controls."""
        arena, nu, na = Arena(RULES), len(model.source.actuators), activations(model)
        sizes = {"q": model.nq, "qd": model.nv} | ({"act": na} if na else {})
        sizes |= {"parameters": parameters} if parameters else {}
        row = row_size(nu, self.parts) if self.parts else nu
        sizes |= {} if self.function else {"ctrl": row}
        inputs = [Variable("t", ()), *(Variable(name, (n,)) for name, n in sizes.items())]
        given: dict[str, Any] = {v.name: _symbols(arena, v) for v in inputs}
        if self.function is not None:
            names = ("q", "qd", "parameters") if parameters else ("q", "qd")
            state = read_only(*(np.array(given[name], dtype=object) for name in names))
            given["ctrl"] = called(self.function, (given["t"][0], *state), nu, "controls")
        elif self.parts:
            given["ctrl"] = interpolated(given["ctrl"], given["t"][0], nu, self.parts)
        given.setdefault("act", [])
        found = {"tau": program(model, "actuate").applied(given, arena)[0]}
        if na:
            found["rate"] = program(model, "activation_rate").applied(given, arena)[0]
        found["ctrl"] = given["ctrl"]
        outputs = [(Variable(name, (len(x),)), x) for name, x in found.items()]
        return Program.from_outputs("control", inputs, outputs)


def activations(model: Model) -> int:
    """Return the number of actuators with an activation state."""
    return sum(data.active for data in model.source.actuators)


def _symbols(arena: Arena, variable: Variable) -> list[Number]:
    return [arena.input(variable.name, k) for k in range(variable.size)]


def _takes_time_alone(ctrl: Callable[..., Any]) -> bool:
    """Return True for a function of time alone, such as a trajectory."""
    try:
        every = inspect.signature(ctrl).parameters.values()
    except (TypeError, ValueError):
        return False
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(p.kind is p.VAR_POSITIONAL for p in every):
        return False
    return sum(p.kind in places and p.default is p.empty for p in every) == 1


def _in_time(given: Callable[..., Any]) -> Callable[..., Any]:
    """Convert a function of time, or a trajectory of positions, to a function ctrl(t, q, qd)."""

    def ctrl(t: Any, q: Any, qd: Any) -> Any:
        found = given(t)
        return found[0] if isinstance(found, tuple) and np.ndim(found[0]) else found

    return ctrl


def called(
    function: Callable[..., Any], arguments: Sequence[Any], size: int, what: str
) -> list[Number]:
    """Call a user's function with symbolic arguments and return its `size` results.

    `what` names the results in error messages.
    """
    try:
        forces: Any = function(*arguments)
    except ModelError:
        raise
    except Exception as error:
        wanted = "(t, q, qd, p)" if len(arguments) > 3 else "(t, q, qd)"
        problem = f"the controller failed when traced: {type(error).__name__}: {said(error)}"
        remedy = (
            f"give the controller the arguments {wanted}, "
            "and take sin, sqrt and other functions from chasles.expr"
        )
        raise ModelError("E-MOTION-008", problem, remedy, part="rollout") from error
    found = list(forces) if isinstance(forces, Sequence | np.ndarray) else [forces]
    if len(found) != size or not all(map(is_number, found)):
        problem = f"the controller returned {found!r:.60}"
        remedy = f"return a sequence of {size} numbers ({what})"
        raise ModelError("E-MOTION-009", problem, remedy, part="rollout")
    return found


def named_results(
    control: Program, arena: Arena, given: Mapping[str, Any]
) -> dict[str, list[Number]]:
    """Evaluate a controller's program for given inputs, and return its outputs by name."""
    found = control.applied(given, arena)
    return {v.name: x for v, x in zip(control.outputs, found, strict=True)}


def only_forces(control: Program) -> Program:
    """Return a controller's program with joint torques as its only output."""
    arena = Arena(RULES)
    tau = named_results(control, arena, control.variables(arena))["tau"]
    return Program.from_outputs("control", control.inputs, [(control.outputs[0], tau)])


# Activations ------------------------------------------------------------------------------------


def kept_within(model: Model, act: Any) -> list[Number]:
    """Return the activations, clamped to the ranges in the robot's file."""
    active = [data for data in model.source.actuators if data.active] if len(act) else []
    return [within(x, data.activations) for x, data in zip(act, active, strict=True)]


def durations(model: Model, dt: float) -> list[float]:
    """Return the effective step size (s) of each activation for a step of dt seconds.

    A step changes an activation by its rate times its effective step size. For first-order filters,
    this change is exact if the control is constant, because the difference between activation and
    control decays as exp(-t / time constant).
    """
    found = []
    for data in model.source.actuators:
        if data.active:
            constant = max(data.constant, SHORTEST)
            filtered = -constant * math.expm1(-dt / constant)
            found.append(filtered if data.dynamics == "filter" else dt)
    return found


# Evaluation with arrays -------------------------------------------------------------------------


def host_controls(
    mechanism: Mechanism, control: Controls, ctrl: Array, lead: tuple[int, ...]
) -> Callable[..., np.ndarray]:
    """Return a function ctrl(t, q, qd) that takes arrays and returns checked controls (..., nu)."""
    nu = len(mechanism.model.source.actuators)
    if control.function is None:
        given = _finite("ctrl", numbers("simulate: ctrl", ctrl, nu).astype(float))
        if given.ndim > 1:
            _fits("ctrl", given, (*lead, nu))
        return lambda t, q, qd: given
    function = control.function

    def found(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        given = numbers("simulate: ctrl(t, q, qd)", function(t, *read_only(q, qd)), nu)
        return _finite("ctrl(t, q, qd)", np.asarray(given, dtype=float))

    return found


def _finite(name: str, array: np.ndarray) -> np.ndarray:
    if not np.isfinite(array).all():
        raise InputError("E-MOTION-140", f"{name} must be finite", part="simulate")
    return array


def _fits(name: str, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    try:
        return np.array(np.broadcast_to(array, shape))
    except ValueError:
        problem = f"{name} has shape {array.shape}, which does not broadcast to {shape}"
        raise InputError("E-MOTION-141", problem, part="simulate") from None


class Activated:
    """Actuators in simulations that run in Python, where activations are appended to q."""

    def __init__(
        self, mechanism: Mechanism, control: Controls, ctrl: Array, lead: tuple[int, ...]
    ) -> None:
        self._model, self._nq = mechanism.model, mechanism.nq
        self.size, self._lead = activations(mechanism.model), lead
        self.controls = host_controls(mechanism, control, ctrl, lead)
        self._actuate = mechanism.function("actuate")
        self._rate = mechanism.function("activation_rate")

    def begin(self, q: np.ndarray, act: Array) -> np.ndarray:
        """Return q with the activations appended."""
        given = np.zeros(self.size) if act is None else act
        found = _finite("act", numbers("simulate: act", given, self.size).astype(float))
        return np.concatenate([q, _fits("act", found, (*self._lead, self.size))], -1)

    def force(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the joint torques of the actuators; q may have activations appended."""
        place, act = q[..., : self._nq], q[..., self._nq :]
        found: np.ndarray = self._actuate(place, qd, self.controls(t, place, qd), act)
        return found

    def rates(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the time derivatives of the activations, which are the last entries of q."""
        place, act = q[..., : self._nq], q[..., self._nq :]
        found: np.ndarray = self._rate(place, qd, self.controls(t, place, qd), act)
        return found

    def settled(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Clamp the activations, which are the last entries of q, to their ranges after a step."""
        active = [data for data in self._model.source.actuators if data.active]
        lower, upper = np.array([data.activations for data in active]).reshape(-1, 2).T
        act = np.clip(q[..., self._nq :], lower, upper)
        return np.concatenate([q[..., : self._nq], act], -1)
