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
from chasles.functions.doors import is_trajectory, leading_shape, library_of, numbers
from chasles.functions.programs import program
from chasles.mechanisms import TOLERANCE, Mechanism, require_tree
from chasles.model import Model
from chasles.model.given import settle, some_numbers
from chasles.model.spaces import PositionSpace
from chasles.motion.contract import Array, Machine, read_only
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
        return self.torques(model, arena, q, qd, **self.values(model))

    @staticmethod
    def torques(
        model: Model, arena: Arena, q: Numbers, qd: Numbers, **values: Numbers
    ) -> list[Number]:
        """Return the joint torques for given values of the fields, one per coordinate."""
        raise NotImplementedError

    def values(self, model: Model) -> dict[str, list[float]]:
        """Return the gains and the target, one value per coordinate."""
        gains = self.gains(model)
        return {
            name: gains[name] if name in gains else self._gains(name, getattr(model, size))
            for name, size in self.sizes().items()
        }

    def gains(self, model: Model) -> dict[str, list[float]]:
        """Return the values of all fields except the target, one per degree of freedom."""
        return {name: self._gains(name, model.nv) for name in self.sizes() if name != "target"}

    @classmethod
    def sizes(cls) -> dict[str, str]:
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


def _evaluated(model: Model, function: str, arena: Arena, **arguments: Numbers) -> list[Number]:
    """Return the result of a robot function for symbolic arguments."""
    return program(model, function).applied(arguments, arena)[0]


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

    def gains(self, model: Model) -> dict[str, list[float]]:
        """Return the gains, one per degree of freedom. A scalar gain is 0 for free joints."""
        gains = super().gains(model)
        for name, values in gains.items():
            if np.ndim(getattr(self, name)) == 0:
                for i, place in model.velocity_slices.items():
                    if model.bodies[i].joint.floating:
                        values[place] = [0.0] * model.bodies[i].joint.nv
        return gains

    @staticmethod
    def torques(
        model: Model, arena: Arena, q: Numbers, qd: Numbers, **values: Numbers
    ) -> list[Number]:
        error = _evaluated(model, "difference", arena, q0=q, q1=values["target"])
        kp, kd, more = (values[name] for name in ("stiffness", "damping", "feedforward"))
        return [p * e - d * v + f for p, e, d, v, f in zip(kp, error, kd, qd, more, strict=True)]


@renamed(kd="damping")
@dataclass(frozen=True)
class GravityCompensation(_Law):
    """Gravity-compensation controller with joint damping (N m s/rad or N s/m)."""

    damping: Any = 0.0

    @staticmethod
    def torques(
        model: Model, arena: Arena, q: Numbers, qd: Numbers, **values: Numbers
    ) -> list[Number]:
        gravity = _evaluated(model, "gravity_forces", arena, q=q)
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
    def torques(
        model: Model, arena: Arena, q: Numbers, qd: Numbers, **values: Numbers
    ) -> list[Number]:
        qdd = PDControl.torques(model, arena, q, qd, feedforward=[0.0] * model.nv, **values)
        return _evaluated(model, "inverse_dynamics", arena, q=q, qd=qd, qdd=qdd)


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
        values = _divided(model, self.kind.sizes(), parameters)
        return self.kind.torques(model, arena, q, qd, **values)


def _divided(
    model: Model, sizes: Mapping[str, str], parameters: Numbers
) -> dict[str, list[Number]]:
    """Divide parameters among fields with the given sizes (`_Law.sizes`)."""
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
        error = _evaluated(model, "difference", arena, q0=q, q1=place)
        gains: Mapping[str, Numbers] = self.law.gains(model)
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
            tau = _evaluated(model, "inverse_dynamics", arena, q=q, qd=qd, qdd=qdd)
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


def computed_torque(
    robot: Machine,
    q: Array,
    qd: Array,
    q_wanted: Array,
    qd_wanted: Array,
    qdd_wanted: Array,
    *,
    stiffness: Array,
    damping: Array,
    actuated: Sequence[str] | None = None,
) -> np.ndarray:
    """Return the joint torques of a computed-torque controller.

    The torques are tau = M (qdd_wanted + damping edot + stiffness e) + h, where e is the
    displacement from q to q_wanted, as in `integrate(q, e)`. Errors decay like independent damped
    oscillators.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Joint positions (rad or m).
    qd : array_like, shape (..., nv)
        Joint velocities (rad/s or m/s).
    q_wanted, qd_wanted, qdd_wanted : array_like
        Desired positions, velocities and accelerations; for a robot with loops, they must keep the
        loops closed.
    stiffness : float or array_like, shape (..., nv)
        Proportional gain (1/s2).
    damping : float or array_like, shape (..., nv)
        Derivative gain (1/s).
    actuated : sequence of str, optional
        Degrees of freedom with motors, as in `Robot.inverse_dynamics`. Default: the independent
        degrees of freedom.

    Returns
    -------
    tau : ndarray, shape (..., nv)
        Joint torques or forces (N m or N).

    Notes
    -----
    See Balafoutis and Patel (1991), section 7.2.1. For a robot with loops, the errors of the n
    independent coordinates decay like damped oscillators, with gains (..., n). The errors of the
    other coordinates follow from these errors.

    Examples
    --------
    >>> import chasles
    >>> robot = chasles.robots.planar(2)
    >>> still = [0.0, 0.0]
    >>> chasles.control.computed_torque(
    ...     robot, [0.1, 0.0], still, still, still, still, stiffness=100.0, damping=20.0
    ... ).round(3)
    array([-7.145, -3.453])
    """
    mechanism = robot.mechanism
    key = ("computed_torque", type(stiffness) in _NUMBERS, type(damping) in _NUMBERS)
    run = mechanism.kept.get(key) if actuated is None else None
    if run is None:
        run = partial(_tracked, mechanism, actuated)
        if actuated is None and not mechanism.traits:
            run = mechanism.kept[key] = _tracking(mechanism, key[1:], run)
    found: np.ndarray = run(q, qd, q_wanted, qd_wanted, qdd_wanted, stiffness, damping)
    return found


_NUMBERS = frozenset({float, int, np.float64})


def _tracking(
    mechanism: Mechanism, single: Sequence[bool], fallback: Callable[..., Any]
) -> Callable[..., Any]:
    """Return `computed_torque` for a robot without loops as one compiled function of arrays.

    `single` has two flags, for stiffness and damping, that are True if the gain is a scalar for all
    joints. `fallback` is called for arguments that the compiled function does not accept.
    """
    model = mechanism.model
    own = any(joint.custom is not None for joint in model.source.joints)
    trace = partial(_tracking_program, model, single)
    recipe = ("computed_torque", model.source, model.mimics, single, trace().hash if own else "")
    kernel = backends.known(recipe, trace) or backends.compile(trace(), recipe=recipe)
    return _entry("computed_torque", kernel, fallback)


def _tracking_program(model: Model, single: Sequence[bool]) -> Program:
    arena, spaces = Arena(RULES), {"q": model.nq, "qd": model.nv, "q_wanted": model.nq}
    spaces |= {"qd_wanted": model.nv, "qdd_wanted": model.nv}
    inputs = [Variable(name, (n,)) for name, n in spaces.items()]
    inputs += [
        Variable(name, () if one else (model.nv,))
        for name, one in zip(("stiffness", "damping"), single, strict=True)
    ]
    given = {v.name: [arena.input(v.name, k) for k in range(v.size)] for v in inputs}
    gains = (given["stiffness"], given["damping"])
    kp, kd = (x * model.nv if one else x for x, one in zip(gains, single, strict=True))
    q, qd = given["q"], given["qd"]
    error = _evaluated(model, "difference", arena, q0=q, q1=given["q_wanted"])
    rates = zip(kp, error, kd, given["qd_wanted"], qd, given["qdd_wanted"], strict=True)
    qdd = [a + p * e + d * (wanted - v) for p, e, d, wanted, v, a in rates]
    tau = _evaluated(model, "inverse_dynamics", arena, q=q, qd=qd, qdd=qdd)
    traced = Program.from_outputs("computed_torque", inputs, [(Variable("tau", (model.nv,)), tau)])
    places = PositionSpace().quaternions(model)
    return replace(traced, nonzero=tuple((k, first) for k in (0, 2) for first in places))


def _tracked(
    mechanism: Mechanism,
    actuated: Sequence[str] | None,
    q: Array,
    qd: Array,
    q_wanted: Array,
    qd_wanted: Array,
    qdd_wanted: Array,
    stiffness: Array,
    damping: Array,
) -> np.ndarray:
    """Evaluate `computed_torque` for any array_like arguments and for robots with closed loops."""
    wanted, gains = (q_wanted, qd_wanted, qdd_wanted), (stiffness, damping)
    return _linear_errors(mechanism, q, qd, wanted, gains, actuated)


def _linear_errors(
    mechanism: Mechanism,
    q: Array,
    qd: Array,
    wanted: tuple[Array, Array, Array],
    gains: tuple[Array, Array],
    actuated: Sequence[str] | None = None,
) -> np.ndarray:
    """Evaluate `computed_torque` for desired (q, qd, qdd) and gains (stiffness, damping)."""
    names = ("q", "q_wanted", "qd", "qd_wanted", "qdd_wanted")
    values, sizes = (q, wanted[0], qd, *wanted[1:]), (mechanism.nq,) * 2 + (mechanism.nv,) * 3
    given = {
        name: numbers(f"computed_torque: {name}", value, size)
        for name, value, size in zip(names, values, sizes, strict=True)
    }
    q, goal, qd, rate, acceleration = given.values()
    loops = mechanism.closing
    free = loops.independent
    stiffness, damping = map(np.asarray, gains)
    for name, gain in (("stiffness", stiffness), ("damping", damping)):
        if gain.shape[-1:] not in ((), (1,), (len(free),)):
            problem = (
                f"{name} must be a scalar or have {len(free)} entries along its last "
                f"axis, not shape {gain.shape}"
            )
            raise InputError("E-CONTROL-007", problem, part="computed_torque")
    leading_shape("computed_torque", **given, stiffness=stiffness, damping=damping)
    e, edot = mechanism.difference(q, goal)[..., free], (rate - qd)[..., free]
    ydd = acceleration[..., free] + stiffness * e + damping * edot
    loops.check_closed("computed_torque: q_wanted", goal, TOLERANCE)
    qdd = loops.accelerated(q, qd, ydd, TOLERANCE)
    chosen = mechanism.independent if actuated is None else actuated
    return mechanism.inverse_dynamics(q, qd, qdd, actuated=chosen, weights=None, method="fastest")


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
    return lambda t, q, qd: _linear_errors(mechanism.at(t), q, qd, wanted, gains)


def _following(mechanism: Mechanism, control: Any) -> Callable[..., np.ndarray]:
    """Return a trajectory-following controller as a function tau(t, q, qd) of arrays."""
    check_reference("the robot has", control.target, mechanism.nq)
    if isinstance(control, ComputedTorque):
        given = (control.stiffness, control.damping)
        single = [type(gain) in _NUMBERS for gain in given]
        run: Callable[..., Any] = partial(_tracked, mechanism, None)
        if not mechanism.traits:
            run = _tracking(mechanism, single, run)
        gains = [g if one else np.array(g) for g, one in zip(given, single, strict=True)]
        return lambda t, q, qd: run(q, qd, *control.target(t)[:3], *gains)
    require_tree(mechanism.model, "PDControl", "use ComputedTorque", loops=True)
    kp, kd, more = map(np.array, control.gains(mechanism.model).values())

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
        If the robot depends on time, or has loops that the controller does not support.

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
    return _entry("control", kernel, lambda t, q, qd: call(kernel, "control", (t, q, qd)))


def _entry(name: str, kernel: Any, fallback: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls a kernel, or `fallback` if the kernel rejects the arguments."""
    names = ", ".join(variable.name for variable in kernel.interface.inputs)
    facts = {"name": name, "signature": names, "doc": "", "holder": None}
    return backends.fast_entry(kernel, fallback=fallback, **facts)


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
