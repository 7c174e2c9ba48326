"""Sensor values at the recorded states of a trajectory."""

from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.errors import InputError
from chasles.expr import RULES, Arena, Program, Variable
from chasles.functions.doors import library_of
from chasles.mechanisms import Mechanism
from chasles.mechanisms.sensing import ContactForce, chosen, exerted, sense, with_errors
from chasles.model.sensors import SensorData
from chasles.motion.contact.pairs import Contacts
from chasles.motion.controllers import BUILT_IN, controlled
from chasles.motion.controls import Controls
from chasles.motion.geometry.kinematics import symbols
from chasles.motion.options import Plan
from chasles.motion.records import Trajectory

_OF_FORCES = ("accelerometer", "force", "torque", "force_torque", "touch")
"""Sensor kinds that depend on accelerations or contact forces. Kinds whose names contain
"acceleration" are not listed, because `_feels` recognizes them by name."""


def measured(mechanism: Mechanism, run: Trajectory, plan: Plan) -> Trajectory:
    """Return a trajectory with the values of the requested sensors added."""
    names = None if isinstance(plan.sensors, bool) else plan.sensors
    sensors = chosen(mechanism.model, names)
    if any(library_of(array) for array in (run.q, run.qd)):
        problem = "sensors= requires NumPy arrays on the CPU"
        remedy = "pass `q` and `qd` as NumPy arrays"
        raise InputError("E-SENSE-013", problem, remedy, part="simulate")
    qdd, forces = np.zeros_like(run.qd), None
    if any(map(_feels, sensors)):
        forces = _contacts(mechanism, run, plan)
        qdd = _accelerations(mechanism, run, plan, forces)
    arrays, moved = (run.q, run.qd, qdd), mechanism.at(run.t)
    controls: tuple[Any, Any] = (None, None)
    if isinstance(plan.control, Controls) and any(s.traits.of == "control" for s in sensors):
        controls = (_controls(mechanism, run, plan), run.act)
    options: dict[str, Any] = {"t": run.t, "f_ext": plan.f_ext, "controls": controls}
    values = sense(moved, arrays, [*(forces or ())], sensors=sensors, **options)
    if plan.noise is not None:
        step = float(np.min(np.diff(run.t), initial=np.inf, where=np.diff(run.t) > 0.0))
        values = with_errors(sensors, values, plan.noise, step)
    return replace(run, sensors=values)


def _feels(sensor: SensorData) -> bool:
    """Return True if a sensor depends on accelerations or contact forces."""
    return sensor.kind in _OF_FORCES or "acceleration" in sensor.kind


def _contacts(mechanism: Mechanism, run: Trajectory, plan: Plan) -> list[ContactForce]:
    """Return the soft-contact forces on both bodies at the states of a trajectory."""
    pairs = tuple(plan.contacts or ())
    if not pairs or run.touching is None:
        return []
    if any(pair.varies or not hasattr(pair.law, "states") for pair in pairs):
        problem = "acceleration and force sensors do not support rigid contacts"
        remedy = "request only position and velocity sensors"
        raise InputError("E-SENSE-014", problem, remedy, part="simulate")
    points, normals = _spots(Contacts(mechanism.model, pairs), run.q)
    sides = [pair.frames for pair in pairs for _ in range(pair.points)]
    found = []
    for k, ends in enumerate(sides):
        force, n = run.touching.forces[..., k, :], normals[..., k, :]
        normal = np.sum(force * n, axis=-1, keepdims=True) * n
        for frame, sign in zip(ends, (1.0, -1.0), strict=True):
            if frame is not None:
                rest = sign * (force - normal)
                found.append(ContactForce(frame, points[..., k, :], sign * normal, rest))
    return found


def _spots(contacts: Contacts, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and normals (..., points, 3) of all contact points, in the world frame."""
    arena, model = Arena(RULES), contacts.model
    spots = contacts.spots(arena, symbols(arena, "q", (model.nq,)), np.zeros(model.nv))
    shape = (len(spots), 3)
    outputs = [
        (Variable("points", shape), np.ravel([spot.point for spot in spots]).tolist()),
        (Variable("normals", shape), np.ravel([spot.axes[2] for spot in spots]).tolist()),
    ]
    made = Program.from_outputs("spots", [Variable("q", (model.nq,))], outputs)
    points, normals = call(backends.compile(made, "numpy"), "simulate", (q,))
    return points, normals


def _accelerations(
    mechanism: Mechanism, run: Trajectory, plan: Plan, forces: list[ContactForce]
) -> np.ndarray:
    """Return the joint accelerations at the states of a trajectory."""
    keys, values = exerted(mechanism.model, forces, plan.f_ext)
    function = "constrained_dynamics" if mechanism.rows else "forward_dynamics"
    compiled = mechanism.function(function, wrenches=keys, dissipation=plan.dissipation)
    found = compiled.at(mechanism.at(run.t).t)(
        run.q, run.qd, _torques(mechanism, run, plan), *values
    )
    return found[0] if mechanism.rows else found


def _torques(mechanism: Mechanism, run: Trajectory, plan: Plan) -> np.ndarray:
    """Return the joint torques at the states of a trajectory, broadcastable to (..., n, nv)."""
    control: Any = plan.control
    if isinstance(control, Controls):
        act = np.zeros(0) if run.act is None else run.act
        ctrl = _controls(mechanism, run, plan)
        tau: np.ndarray = mechanism.function("actuate")(run.q, run.qd, ctrl, act)
        return tau
    if control is None:
        return np.zeros(mechanism.nv)
    if not callable(control):
        return _constant("tau", control, run)
    if isinstance(control, BUILT_IN):
        control = controlled(mechanism, control)
    elif not isinstance(control, FunctionType):
        problem = "acceleration and force sensors require a controller without internal state"
        remedy = "use a function of t, q and qd as the controller, or omit these sensors"
        raise InputError("E-SENSE-016", problem, remedy, part="simulate")
    return _along(control, mechanism.nv, run, plan)


def _constant(name: str, given: Any, run: Trajectory) -> np.ndarray:
    """Return constant torques or controls, with an axis that broadcasts over the time steps."""
    found = np.asarray(given, dtype=float)
    if found.ndim > run.qd.ndim - 1 and found.ndim > 1:
        problem = (
            f"for acceleration and force sensors, {name} must be constant or a function, "
            "not an array with one row per step"
        )
        remedy = "use a function of time, or only position and velocity sensors"
        raise InputError("E-SENSE-015", problem, remedy, part="simulate")
    return found if found.ndim < 2 else found[..., None, :]


def _controls(mechanism: Mechanism, run: Trajectory, plan: Plan) -> np.ndarray:
    """Return the actuator controls at the states of a trajectory."""
    assert isinstance(plan.control, Controls)
    if plan.control.function is None:
        return _constant("ctrl", plan.ctrl, run)
    return _along(plan.control.function, len(mechanism.model.source.actuators), run, plan)


def _along(function: Any, size: int, run: Trajectory, plan: Plan) -> np.ndarray:
    """Return the values (..., n, size) of a function at the states of a trajectory."""
    extra = () if plan.parameters is None else (np.asarray(plan.parameters, dtype=float),)
    rows = [
        np.broadcast_to(function(float(t), run.q[..., k, :], run.qd[..., k, :], *extra), shape)
        for k, t in enumerate(run.t)
        for shape in [(*run.qd[..., k, :].shape[:-1], size)]
    ]
    return np.stack(rows, axis=-2)
