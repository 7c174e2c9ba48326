"""Controllers that become part of a step: joint forces as expressions of time and state.

A controller is a function tau(t, q, qd) of numbers, written with the functions of `chasles.expr`
where it needs more than arithmetic, or one of the classes here. One that can be trained is a
function tau(t, q, qd, p) of parameters too.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.expr import RULES, Arena, Number, Program, Variable, is_number
from chasles.loops import TOLERANCE
from chasles.model import Model, ModelError
from chasles.motion.contract import Array, Machine, at_time, closing, depends_on_time, has_loops
from chasles.motion.renamed import renamed
from chasles.names import leading_shape, numbers
from chasles.programs import program

Numbers = Sequence[Number]


def evaluated(
    model: Model, function: str, arena: Arena, arguments: dict[str, Numbers], **options: Any
) -> list[Number]:
    """A function of the robot on expressions: its program replayed."""
    found = program(model, function, **options)
    values = found.replay(arguments, arena)
    return [values[r] for r in found.results[0]]


def _as_values(control: Any) -> None:
    """Arrays of gains as tuples: equal controllers are then found to be equal."""
    for field in fields(control):
        value = getattr(control, field.name)
        if isinstance(value, list | np.ndarray):
            object.__setattr__(control, field.name, _nested(value))


def _nested(value: Any) -> Any:
    held = value.tolist() if isinstance(value, np.ndarray) else value
    return tuple(map(_nested, held)) if isinstance(held, list | tuple) else held


@renamed(kp="stiffness", kd="damping")
@dataclass(frozen=True)
class PDControl:
    """tau = stiffness (target - q) - damping qd (+ feedforward), joint by joint.

    stiffness in N m/rad (N/m), damping in N m s/rad (N s/m), one number or nv; target (nq,):
    differences are taken along the configuration space. feedforward (nv,) in N m (N).
    """

    stiffness: Any
    damping: Any
    target: Any
    feedforward: Any = 0.0

    def __post_init__(self) -> None:
        _as_values(self)

    def __call__(
        self, model: Model, arena: Arena, t: Number, q: Numbers, qd: Numbers
    ) -> list[Number]:
        names = ("stiffness", "damping", "feedforward")
        kp, kd, more = (_numbers(name, getattr(self, name), model.nv) for name in names)
        target = _numbers("target", self.target, model.nq)
        error = evaluated(model, "difference", arena, {"q0": q, "q1": target})
        return [p * e - d * v + f for p, e, d, v, f in zip(kp, error, kd, qd, more, strict=True)]


@renamed(kd="damping")
@dataclass(frozen=True)
class GravityCompensation:
    """Joint torques that hold the robot against gravity; damping in N m s/rad (N s/m)."""

    damping: Any = 0.0

    def __post_init__(self) -> None:
        _as_values(self)

    def __call__(
        self, model: Model, arena: Arena, t: Number, q: Numbers, qd: Numbers
    ) -> list[Number]:
        kd = _numbers("damping", self.damping, model.nv)
        gravity = evaluated(model, "gravity_forces", arena, {"q": q})
        return [g - d * v for g, d, v in zip(gravity, kd, qd, strict=True)]


@renamed(kp="stiffness", kd="damping")
@dataclass(frozen=True)
class ComputedTorque:
    """Inverse dynamics of qdd = stiffness (target - q) - damping qd: independent damped springs.

    stiffness in 1/s2, damping in 1/s, one number or nv; target (nq,). On a robot with loops its
    independent coordinates are these springs (`computed_torque`).
    """

    stiffness: Any
    damping: Any
    target: Any

    def __post_init__(self) -> None:
        _as_values(self)

    def __call__(
        self, model: Model, arena: Arena, t: Number, q: Numbers, qd: Numbers
    ) -> list[Number]:
        wanted = PDControl(self.stiffness, self.damping, self.target)(model, arena, t, q, qd)
        return evaluated(model, "inverse_dynamics", arena, {"q": q, "qd": qd, "qdd": wanted})


BUILT_IN = PDControl | GravityCompensation | ComputedTorque


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
    """Joint forces (..., nv) that make errors decay as independent oscillators.

    tau = M (qdd_wanted + damping edot + stiffness e) + h, with e the step along `integrate` from q
    to q_wanted; stiffness in 1/s2 and damping in 1/s, numbers or (..., nv). Balafoutis and Patel
    (1991), section 7.2.1: feedback that makes the whole motion linear.

    Of a robot with loops the errors of its n `independent` freedoms decay so, with gains (..., n),
    and the others follow them; of q_wanted, which must be closed, and its rates these count.
    actuated: the freedoms that have forces, as in `Robot.inverse_dynamics`; the independent ones by
    default.
    """
    places = {"q": q, "q_wanted": q_wanted}
    rates = {"qd": qd, "qd_wanted": qd_wanted, "qdd_wanted": qdd_wanted}
    given = {
        name: numbers(f"computed_torque: {name}", value, size)
        for group, size in ((places, robot.nq), (rates, robot.nv))
        for name, value in group.items()
    }
    free = closing(robot).independent if has_loops(robot) else np.arange(robot.nv)
    gains = {"stiffness": np.asarray(stiffness), "damping": np.asarray(damping)}
    for name, gain in gains.items():
        if gain.shape[-1:] not in ((), (1,), (len(free),)):
            raise ValueError(
                f"computed_torque: {name} must be a number or have {len(free)} numbers in its last "
                f"axis, not shape {gain.shape}"
            )
    leading_shape("computed_torque", **given, **gains)
    e = robot.difference(given["q"], given["q_wanted"])[..., free]
    edot = (given["qd_wanted"] - given["qd"])[..., free]
    ydd = given["qdd_wanted"][..., free] + gains["stiffness"] * e + gains["damping"] * edot
    q, qd = given["q"], given["qd"]
    if not has_loops(robot):
        return robot.inverse_dynamics(q, qd, ydd, actuated=actuated)
    closing(robot).check_closed("computed_torque: q_wanted", given["q_wanted"], TOLERANCE)
    _, qdd = robot.complete(q, qd[..., free], ydd, tolerance=TOLERANCE)
    chosen = robot.independent if actuated is None else actuated
    return robot.inverse_dynamics(q, qd, qdd, actuated=chosen)


def traced(model: Model, control: Callable[..., Any], parameters: int = 0) -> Program:
    """The program of a controller: inputs t, q, qd, and `parameters` where it has some; output tau.

    parameters: how many it takes.
    """
    arena = Arena(RULES)
    t = arena.input("t", 0)
    sizes = _sizes(model) + ((("parameters", parameters),) if parameters else ())
    given = [np.array([arena.input(name, k) for k in range(n)], dtype=object) for name, n in sizes]
    try:
        if isinstance(control, BUILT_IN):
            forces: Any = control(model, arena, t, *map(list, given))
        else:
            forces = control(t, *given)
    except ModelError:
        raise
    except Exception as error:
        wanted = "(t, q, qd, p)" if parameters else "(t, q, qd)"
        raise ModelError(
            f"rollout: the controller failed on symbols, {type(error).__name__}: {error}; let it "
            f"take {wanted}, and write it with the functions of chasles.expr"
        ) from error
    found = list(forces) if isinstance(forces, Sequence | np.ndarray) else [forces]
    if len(found) != model.nv or not all(map(is_number, found)):
        raise ModelError(
            f"rollout: the controller gives {found!r:.60}; return {model.nv} numbers, the joint "
            "forces"
        )
    inputs = [Variable("t", ()), *(Variable(name, (n,)) for name, n in sizes)]
    return Program.from_outputs("control", inputs, [(Variable("tau", (model.nv,)), found)])


@contextmanager
def sheltered(control: Any) -> Iterator[None]:
    """Let a function be tried: what it keeps in its closure or its module is as before, after."""
    code = getattr(control, "__code__", None)
    if code is None:
        yield
        return
    cells = [(cell, cell.cell_contents) for cell in control.__closure__ or ()]
    names = {n: control.__globals__[n] for n in code.co_names if n in control.__globals__}
    kept = (list, dict, set, np.ndarray)
    try:
        for cell, value in cells:
            cell.cell_contents = copy.deepcopy(value) if isinstance(value, kept) else value
        for name, value in names.items():
            if isinstance(value, kept):
                control.__globals__[name] = copy.deepcopy(value)
        yield
    finally:
        for cell, value in cells:
            cell.cell_contents = value
        control.__globals__.update(names)


def controlled(robot: Machine, control: Any) -> Callable[..., np.ndarray]:
    """A built-in controller as a function tau(t, q, qd) of arrays, of robots with loops too."""
    if not isinstance(control, ComputedTorque) or not (has_loops(robot) or depends_on_time(robot)):
        return computed(robot.model, control)
    gains = {"stiffness": control.stiffness, "damping": control.damping}
    target, still = np.asarray(control.target, dtype=float), np.zeros(robot.nv)
    return lambda t, q, qd: computed_torque(at_time(robot, t), q, qd, target, still, still, **gains)


def computed(model: Model, control: Any) -> Callable[..., np.ndarray]:
    """A built-in controller as a function tau(t, q, qd) of arrays, compiled."""
    if depends_on_time(model) or (has_loops(model) and isinstance(control, ComputedTorque)):
        raise ModelError(
            f"{type(control).__name__}: robot {model.name!r} has loops or depends on time; give a "
            "function tau(t, q, qd) of your own, which chasles.control may help with"
        )
    found = traced(model, control)
    kernel = backends.prepare(("control", found.hash), lambda: found)
    return lambda t, q, qd: call(kernel, "control", (t, q, qd))


def parameter_count(parameters: Any) -> int:
    """How many parameters a controller is given: (m,), or (..., m) for a batch; None for none."""
    if parameters is None:
        return 0
    shape = np.shape(parameters)
    if not shape or not shape[-1]:
        raise ValueError(
            f"rollout: parameters must be an array (m,) or (..., m), not {parameters!r:.60}"
        )
    return shape[-1]


def _sizes(model: Model) -> tuple[tuple[str, int], ...]:
    return ("q", model.nq), ("qd", model.nv)


def _numbers(name: str, value: Any, size: int) -> list[float]:
    array = np.asarray(value, dtype=float)
    if array.shape not in ((), (size,)) or not np.isfinite(array).all():
        raise ModelError(f"rollout: {name} must be one finite number or {size}, not {value!r:.60}")
    return [float(x) for x in np.broadcast_to(array, (size,))]
