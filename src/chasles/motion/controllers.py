"""Controllers for compiled simulations: joint torques as expressions of time and state.

A controller is a function tau(t, q, qd), written with arithmetic and functions of `chasles.expr`,
or an instance of a controller class in this module. A trainable controller is a function
tau(t, q, qd, p), where p are its parameters.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice, pairwise
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.errors import InputError, ModelError
from chasles.expr import RULES, Arena, Number, Program, Variable
from chasles.functions.doors import is_trajectory, library_of
from chasles.mechanisms import Mechanism, require_tree
from chasles.model import Model
from chasles.model.given import settle, some_numbers
from chasles.motion.contract import read_only
from chasles.motion.controls import Controls, called
from chasles.motion.keywords import renamed
from chasles.motion.references import (
    check_reference,
    interpolated,
    quaternion_places,
    row_size,
    samples,
    stages,
)
from chasles.motion.tracking import (
    NUMBERS,
    entry,
    evaluated,
    linear_errors,
    tracked,
    tracking,
)

Numbers = Sequence[Number]


@dataclass(frozen=True)
class _Law:
    """Base class of controllers. Arrays in the fields are converted to tuples."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list | np.ndarray):
                object.__setattr__(self, field.name, _nested(value))
        checked = replace(self, target=0.0) if follows(self) else self  # type: ignore[call-arg]
        if fault := settle(checked):
            raise ModelError("E-MOTION-104", fault, part=type(self).__name__)

    def __call__(
        self, model: Model, arena: Arena, t: Number, q: Numbers, qd: Numbers
    ) -> list[Number]:
        """Return the joint torques for symbolic arguments; gains and target are constants."""
        return self._torques(model, arena, q, qd, **self._values(model))

    @staticmethod
    def _torques(
        model: Model, arena: Arena, q: Numbers, qd: Numbers, **values: Numbers
    ) -> list[Number]:
        """Return the joint torques for given values of the fields, one per coordinate."""
        raise NotImplementedError

    def _values(self, model: Model) -> dict[str, list[float]]:
        """Return the gains and the target, one value per coordinate."""
        gains = self._joint_gains(model)
        return {
            name: gains[name] if name in gains else self._gains(name, getattr(model, size))
            for name, size in self._sizes().items()
        }

    def _joint_gains(self, model: Model) -> dict[str, list[float]]:
        """Return the values of all fields except the target, one per degree of freedom."""
        return {name: self._gains(name, model.nv) for name in self._sizes() if name != "target"}

    @classmethod
    def _sizes(cls) -> dict[str, str]:
        """Return, for each field, the attribute of the model that contains its size."""
        return {f.name: "nq" if f.name == "target" else "nv" for f in fields(cls)}

    def _gains(self, name: str, size: int) -> list[float]:
        """Return the gains in the field `name`, one for each coordinate; a scalar is repeated."""
        value = getattr(self, name)
        array = np.asarray(value, dtype=float)
        if array.shape not in ((), (size,)):
            problem = f"{name} must be a scalar or {size} values, not {value!r:.60}"
            raise ModelError("E-MOTION-012", problem, part="rollout")
        return [float(x) for x in np.broadcast_to(array, (size,))]


def follows(control: Any) -> bool:
    """Return True if the target of a controller is a trajectory (a function t -> q, qd, qdd)."""
    return isinstance(control, _Law) and callable(getattr(control, "target", None))


def _nested(value: Any) -> Any:
    held = value.tolist() if isinstance(value, np.ndarray) else value
    return tuple(map(_nested, held)) if isinstance(held, list | tuple) else held


@renamed(kp="stiffness", kd="damping")
@dataclass(frozen=True)
class PDControl(_Law):
    """PD controller: tau = stiffness (target - q) - damping qd + feedforward, for each joint.

    A scalar stiffness, damping or feedforward applies to all joints except free joints, such as a
    floating base, which have no motors. Arrays apply as given. In a robot with closed loops, set
    stiffness and damping to 0 for joints without a motor.

    Attributes
    ----------
    stiffness : float or array_like, shape (nv,)
        Proportional gain, in N m/rad (N/m).
    damping : float or array_like, shape (nv,)
        Derivative gain, in N m s/rad (N s/m).
    target : array_like, shape (nq,), or trajectory
        Desired position; target - q is computed by `Robot.difference`. The target may be a
        trajectory (`chasles.trajectory`); damping then acts on velocities relative to that
        trajectory.
    feedforward : float or array_like, shape (nv,)
        Joint torques to add, in N m (N).
    """

    stiffness: Any
    damping: Any
    target: Any
    feedforward: Any = 0.0

    def _joint_gains(self, model: Model) -> dict[str, list[float]]:
        """Return the gains, one per degree of freedom. A scalar gain is 0 for free joints."""
        gains = super()._joint_gains(model)
        for name, values in gains.items():
            if np.ndim(getattr(self, name)) == 0:
                for i, place in model.velocity_slices.items():
                    if model.bodies[i].joint.floating:
                        values[place] = [0.0] * model.bodies[i].joint.nv
        return gains

    @staticmethod
    def _torques(
        model: Model, arena: Arena, q: Numbers, qd: Numbers, **values: Numbers
    ) -> list[Number]:
        error = evaluated(model, "difference", arena, q0=q, q1=values["target"])
        kp, kd, more = (values[name] for name in ("stiffness", "damping", "feedforward"))
        return [p * e - d * v + f for p, e, d, v, f in zip(kp, error, kd, qd, more, strict=True)]


@renamed(kd="damping")
@dataclass(frozen=True)
class GravityCompensation(_Law):
    """Gravity-compensation controller with joint damping (N m s/rad or N s/m)."""

    damping: Any = 0.0

    @staticmethod
    def _torques(
        model: Model, arena: Arena, q: Numbers, qd: Numbers, **values: Numbers
    ) -> list[Number]:
        gravity = evaluated(model, "gravity_forces", arena, q=q)
        return [g - d * v for g, d, v in zip(gravity, values["damping"], qd, strict=True)]


@renamed(kp="stiffness", kd="damping")
@dataclass(frozen=True)
class ComputedTorque(_Law):
    """Computed-torque controller for accelerations qdd = stiffness (target - q) - damping qd.

    For a robot with closed loops, the independent coordinates have these accelerations (see
    `computed_torque`).

    Attributes
    ----------
    stiffness : float or array_like, shape (nv,)
        Proportional gain (1/s2).
    damping : float or array_like, shape (nv,)
        Derivative gain (1/s).
    target : array_like, shape (nq,), or trajectory
        Desired position, or a trajectory (`chasles.trajectory`). The accelerations of a trajectory
        are added to qdd.
    """

    stiffness: Any
    damping: Any
    target: Any

    @staticmethod
    def _torques(
        model: Model, arena: Arena, q: Numbers, qd: Numbers, **values: Numbers
    ) -> list[Number]:
        qdd = PDControl._torques(model, arena, q, qd, feedforward=[0.0] * model.nv, **values)
        return evaluated(model, "inverse_dynamics", arena, q=q, qd=qd, qdd=qdd)


BUILT_IN = PDControl | GravityCompensation | ComputedTorque


@dataclass(frozen=True)
class Tunable:
    """Built-in controller whose gains and target are the controller's parameters.

    Code that is compiled for one set of values runs with all others.
    """

    kind: type[_Law]

    def __call__(
        self, model: Model, arena: Arena, t: Number, q: Numbers, qd: Numbers, parameters: Numbers
    ) -> list[Number]:
        values = _divided(model, self.kind._sizes(), parameters)
        return self.kind._torques(model, arena, q, qd, **values)


def _divided(
    model: Model, sizes: Mapping[str, str], parameters: Numbers
) -> dict[str, list[Number]]:
    """Divide parameters among fields with the given sizes (`_Law._sizes`)."""
    left = iter(parameters)
    return {name: list(islice(left, getattr(model, size))) for name, size in sizes.items()}


@dataclass(frozen=True)
class Followed(Controls):
    """Controller that follows a trajectory, sampled at the Runge-Kutta stages of each step.

    If `tunable` is True, the gains are the controller's parameters (see `Tunable`), and the gains
    of `law` are ignored.
    """

    law: PDControl | ComputedTorque | None = None
    tunable: bool = False

    def program(self, model: Model, parameters: int = 0) -> Program:
        """Return the program for joint torques. Its input "ctrl" contains trajectory samples."""
        assert self.law is not None
        arena, size = Arena(RULES), model.nq + 2 * model.nv
        sizes = {"q": model.nq, "qd": model.nv} | ({"parameters": parameters} if parameters else {})
        sizes |= {"ctrl": row_size(size, self.parts)}
        inputs = [Variable("t", ()), *(Variable(name, (n,)) for name, n in sizes.items())]
        given = {v.name: [arena.input(v.name, k) for k in range(v.size)] for v in inputs}
        q, qd, row = given["q"], given["qd"], given["ctrl"]
        wanted = interpolated(row, given["t"][0], size, self.parts)
        place, rate, rise = (
            wanted[a:b]
            for a, b in pairwise((0, model.nq, model.nq + model.nv, model.nq + 2 * model.nv))
        )
        error = evaluated(model, "difference", arena, q0=q, q1=place)
        gains: Mapping[str, Numbers] = self.law._joint_gains(model)
        if parameters:
            gains = _divided(model, dict.fromkeys(gains, "nv"), given["parameters"])
        kp, kd = gains["stiffness"], gains["damping"]
        pulled = [
            p * e + d * (w - v) for p, e, d, w, v in zip(kp, error, kd, rate, qd, strict=True)
        ]
        if isinstance(self.law, PDControl):
            more = gains["feedforward"]
            tau = [x + f for x, f in zip(pulled, more, strict=True)]
        else:
            qdd = [x + a for x, a in zip(pulled, rise, strict=True)]
            tau = evaluated(model, "inverse_dynamics", arena, q=q, qd=qd, qdd=qdd)
        return Program.from_outputs("control", inputs, [(Variable("tau", (model.nv,)), tau)])


Rows = Callable[[float, float, int], np.ndarray]
"""Function that samples a trajectory, given start time (s), step size (s) and number of steps."""


def with_samples(model: Model, control: Any, ctrl: Any, integrator: str) -> tuple[Any, Rows | None]:
    """Replace the trajectory of a controller by samples, and return the function that samples it.

    A controller without a trajectory is returned unchanged, with None instead of the function.
    """
    parts = stages(integrator)
    if follows(control):
        check_reference("the robot has", control.target, model.nq)
        law = replace(control, target=0.0)
        rows = samples(control.target, quaternion_places(model), parts, whole=True)
        return Followed(parts=parts, law=law), rows
    if isinstance(control, Controls) and is_trajectory(ctrl):
        check_reference("the number of actuators is", ctrl, len(model.source.actuators))
        return Controls(parts=parts), samples(ctrl, (), parts, whole=False)
    return control, None


def traced(model: Model, control: Any, parameters: int = 0) -> Program:
    """Return the program of a controller.

    Parameters
    ----------
    model : Model
        Model of the robot (`robot.model`).
    control : callable or built-in controller
        Function tau(t, q, qd), or tau(t, q, qd, p) if there are parameters.
    parameters : int, optional
        Number of parameters.

    Returns
    -------
    program : Program
        Inputs t, q, qd (and parameters), output tau (nv,). The program of `Controls` has further
        inputs and outputs (`Controls.program`).

    Raises
    ------
    ModelError
        If the controller fails when it is traced, or does not return nv numbers.

    Examples
    --------
    >>> import chasles
    >>> from chasles import rollouts
    >>> program = rollouts.traced(chasles.robots.planar(1).model, lambda t, q, qd: -2.0 * qd)
    >>> [v.name for v in program.inputs]
    ['t', 'q', 'qd']
    """
    if isinstance(control, Controls):
        return control.program(model, parameters)
    arena = Arena(RULES)
    t, sizes = arena.input("t", 0), {"q": model.nq, "qd": model.nv}
    sizes |= {"parameters": parameters} if parameters else {}
    symbols = ([arena.input(name, k) for k in range(n)] for name, n in sizes.items())
    given = read_only(*(np.array(some, dtype=object) for some in symbols))
    function = control
    if isinstance(control, BUILT_IN | Tunable):
        function = partial(_law, control, model, arena)
    found = called(function, (t, *given), model.nv, "joint torques")
    inputs = [Variable("t", ()), *(Variable(name, (n,)) for name, n in sizes.items())]
    return Program.from_outputs("control", inputs, [(Variable("tau", (model.nv,)), found)])


def _law(control: Any, model: Model, arena: Arena, t: Number, *given: Any) -> list[Number]:
    """Return the joint torques of a built-in controller as symbolic expressions."""
    found: list[Number] = control(model, arena, t, *map(list, given))
    return found


def controlled(mechanism: Mechanism, control: Any) -> Callable[..., np.ndarray]:
    """Return a built-in controller as a function tau(t, q, qd) of arrays.

    Unlike `computed`, this function supports `ComputedTorque` for robots with closed loops.
    """
    if follows(control):
        return _following(mechanism, control)
    if not isinstance(control, ComputedTorque) or not mechanism.traits:
        return computed(mechanism.model, control)
    gains, still = (control.stiffness, control.damping), np.zeros(mechanism.nv)
    wanted = (np.asarray(control.target, dtype=float), still, still)
    return lambda t, q, qd: linear_errors(mechanism.at(t), q, qd, wanted, gains)


def _following(mechanism: Mechanism, control: Any) -> Callable[..., np.ndarray]:
    """Return a trajectory-following controller as a function tau(t, q, qd) of arrays."""
    check_reference("the robot has", control.target, mechanism.nq)
    if isinstance(control, ComputedTorque):
        given = (control.stiffness, control.damping)
        single = [type(gain) in NUMBERS for gain in given]
        run: Callable[..., Any] = partial(tracked, mechanism, None)
        if not mechanism.traits:
            run = tracking(mechanism, single, run)
        gains = [g if one else np.array(g) for g, one in zip(given, single, strict=True)]
        return lambda t, q, qd: run(q, qd, *control.target(t)[:3], *gains)
    require_tree(mechanism.model, "PDControl", "use ComputedTorque", loops=True)
    kp, kd, more = map(np.array, control._joint_gains(mechanism.model).values())

    def law(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        place, rate = control.target(t)[:2]
        return np.asarray(kp * mechanism.difference(q, place) + kd * (rate - qd) + more)

    return law


def computed(model: Model, control: Any) -> Callable[..., np.ndarray]:
    """Return a built-in controller as a compiled function tau(t, q, qd) of arrays.

    Parameters
    ----------
    model : Model
        Model of a robot (`robot.model`). ComputedTorque requires a robot without loops.
    control : PDControl, ComputedTorque or GravityCompensation
        Controller.

    Returns
    -------
    function : callable
        Function of t (s), q (..., nq) and qd (..., nv) that returns joint torques (..., nv).

    Raises
    ------
    ModelError
        If the robot depends on time or has loops that the controller does not support, or if the
        controller fails when it is traced.
    InputError
        If the compiled function is called with an array of the wrong shape.
    ArgumentError
        If the compiled function is called with an argument that is not numeric.

    Examples
    --------
    >>> import chasles
    >>> from chasles import rollouts
    >>> law = rollouts.computed(chasles.robots.planar(1).model, rollouts.GravityCompensation())
    >>> law(0.0, [0.0], [0.0])
    array([4.905])
    """
    require_tree(
        model,
        type(control).__name__,
        "write your own function tau(t, q, qd), for example with chasles.control",
        loops=not isinstance(control, ComputedTorque),
    )
    found = traced(model, control)
    kernel = backends.prepare(("control", found.hash), found)
    return entry("control", kernel, lambda t, q, qd: call(kernel, "control", (t, q, qd)))


def checked_parameters(parameters: Any, control: Any) -> int:
    """Return the number of parameters of a controller.

    Raise an error if parameters were given, but the controller is not a function.
    """
    count = parameter_count(parameters)
    tunable = isinstance(control, Followed) and control.tunable
    if count and (control is None or (isinstance(control, BUILT_IN | Followed) and not tunable)):
        problem = "`parameters` were given, but `tau` is not a controller"
        remedy = "pass a function tau(t, q, qd, p), or omit `parameters`"
        raise ModelError("E-MOTION-018", problem, remedy, part="rollout")
    return count


def parameter_count(parameters: Any) -> int:
    """Return the number of controller parameters.

    Parameters
    ----------
    parameters : array_like, shape (..., m), or None
        Parameters.

    Returns
    -------
    m : int
        Number of parameters; 0 for None.

    Raises
    ------
    InputError
        If the array is empty or a single number.
    ArgumentError
        If `parameters` is not numeric.

    Examples
    --------
    >>> from chasles import rollouts
    >>> rollouts.parameter_count([[1.0, 2.0, 3.0]])
    3
    """
    if parameters is None:
        return 0
    shape = np.shape(
        parameters if library_of(parameters) else some_numbers("parameters", parameters)
    )
    if not shape or not shape[-1]:
        problem = f"`parameters` must be an array (m,) or (..., m), not {parameters!r:.60}"
        raise InputError("E-MOTION-011", problem, part="rollout")
    return shape[-1]
