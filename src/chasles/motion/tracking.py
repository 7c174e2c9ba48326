"""Computed-torque control for any arrays, compiled for robots without loops."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from chasles import backends
from chasles.errors import InputError
from chasles.expr import RULES, Arena, Number, Program, Variable
from chasles.functions.doors import check_robot, is_single, leading_shape, numbers
from chasles.functions.programs import program
from chasles.mechanisms import TOLERANCE, Mechanism
from chasles.model import Model
from chasles.model.given import some_numbers
from chasles.model.spaces import PositionSpace
from chasles.motion.contract import Array, Machine

Numbers = Sequence[Number]


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

    Raises
    ------
    InputError
        If an array has the wrong shape, or if a quaternion is zero.
    ArgumentError
        If an argument is not an array of real numbers.
    ModelError
        If the robot depends on time, or does not have a degree of freedom in `actuated`.

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
    try:
        mechanism = robot.mechanism
    except AttributeError:
        check_robot("computed_torque", robot)
        raise
    if is_single(q):  # a gain given as a number does not change the precision
        gains = (stiffness, damping)
        stiffness, damping = (np.float32(x) if type(x) in NUMBERS else x for x in gains)
    key = ("computed_torque", type(stiffness) in NUMBERS, type(damping) in NUMBERS)
    run = mechanism.kept.get(key) if actuated is None else None
    if run is None:
        run = partial(tracked, mechanism, actuated)
        if actuated is None and not mechanism.traits:
            run = mechanism.kept[key] = tracking(mechanism, key[1:], run)
    found: np.ndarray = run(q, qd, q_wanted, qd_wanted, qdd_wanted, stiffness, damping)
    return found


NUMBERS = frozenset({float, int, np.float64})


def tracking(
    mechanism: Mechanism, single: Sequence[bool], fallback: Callable[..., Any]
) -> Callable[..., Any]:
    """Return `computed_torque` for a robot without loops as one compiled function of arrays.

    `single` has two flags, for stiffness and damping, that are True if the gain is a scalar for all
    joints. `fallback` is called for arguments that the compiled function does not accept.
    """
    model = mechanism.model
    own = any(joint.custom is not None for joint in model.source.joints)
    trace = partial(_program, model, single)
    recipe = ("computed_torque", model.source, model.mimics, single, trace().hash if own else "")
    kernel = backends.known(recipe, trace) or backends.compile(trace(), recipe=recipe)
    return entry("computed_torque", kernel, fallback)


def _program(model: Model, single: Sequence[bool]) -> Program:
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
    error = evaluated(model, "difference", arena, q0=q, q1=given["q_wanted"])
    rates = zip(kp, error, kd, given["qd_wanted"], qd, given["qdd_wanted"], strict=True)
    qdd = [a + p * e + d * (wanted - v) for p, e, d, wanted, v, a in rates]
    tau = evaluated(model, "inverse_dynamics", arena, q=q, qd=qd, qdd=qdd)
    traced = Program.from_outputs("computed_torque", inputs, [(Variable("tau", (model.nv,)), tau)])
    places = PositionSpace().quaternions(model)
    return replace(traced, nonzero=tuple((k, first) for k in (0, 2) for first in places))


def tracked(
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
    return linear_errors(mechanism, q, qd, wanted, gains, actuated)


def linear_errors(
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
    stiffness, damping = (
        some_numbers(name, gain, "computed_torque")
        for name, gain in zip(("stiffness", "damping"), gains, strict=True)
    )
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


def evaluated(model: Model, function: str, arena: Arena, **arguments: Numbers) -> list[Number]:
    """Return the result of a robot function for symbolic arguments."""
    return program(model, function).applied(arguments, arena)[0]


def entry(name: str, kernel: Any, fallback: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls a kernel, or `fallback` if the kernel rejects the arguments."""
    names = ", ".join(variable.name for variable in kernel.interface.inputs)
    facts = {"name": name, "signature": names, "doc": "", "holder": None}
    return backends.fast_entry(kernel, fallback=fallback, **facts)
