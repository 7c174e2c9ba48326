"""Compiled functions for a frame's roll, pitch, yaw and position, and for their Jacobians.

With R = Rz(yaw) Ry(pitch) Rx(roll), the angular velocity is w = T d(roll, pitch, yaw)/dt. The
columns of T are the current axes of roll, pitch and yaw. The yaw rate rotates the pitch axis with
the angular velocity wy. The yaw and pitch rates rotate the roll axis with the angular velocity wx
(Balafoutis and Patel 1991, section 7.4).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.expr import RULES, Arena, Program, Variable, atan2, sqrt
from chasles.functions.programs import program
from chasles.model import Model
from chasles.model.spaces import PositionSpace

Matrix = np.ndarray
"""NumPy array of symbolic expressions, with dtype object."""

NAMES = ("q", "qd", "qdd")


def pose_task(
    model: Model, frame: str, order: int, check: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the compiled function for a frame's pose coordinates, or for their Jacobian.

    `order` is -1 for the coordinates, 0 for the Jacobian, and k for its k-th time derivative, which
    also depends on the first k derivatives of q. For a robot with prescribed motions, the function
    for coordinates also takes the time. `check` is called if the arguments are not plain arrays,
    and raises an error if they are invalid.
    """
    own = any(joint.custom is not None for joint in model.source.joints)
    trace = partial(_traced, model, frame, order)
    recipe = ("pose_task", model.source, model.mimics, frame, order, trace().hash if own else "")
    kernel = backends.known(recipe, trace) or backends.compile(trace(), recipe=recipe)

    def slow(*arrays: Any) -> Any:
        check(*arrays)
        return call(kernel, "pose", arrays)

    names = ", ".join(variable.name for variable in kernel.interface.inputs)
    facts = {"name": "pose_task", "signature": names, "doc": "", "holder": None}
    return backends.fast_entry(kernel, fallback=slow, **facts)


def _traced(model: Model, frame: str, order: int) -> Program:
    arena, sizes = Arena(RULES), (model.nq, model.nv, model.nv)
    inputs = [Variable(name, (n,)) for name, n in zip(NAMES, sizes, strict=True)]
    inputs = inputs[: max(order, 0) + 1]
    if order < 0 and model.driven:
        inputs.append(Variable("t", ()))
    given = {v.name: [arena.input(v.name, k) for k in range(v.size)] for v in inputs}

    def found(function: str, *shape: int, **options: Any) -> Matrix:
        """Return a kinematic function of the frame, such as "jacobian", as a symbolic matrix.

        If the time is not an input, the function is evaluated at time 0.
        """
        made = program(model, function, frame=frame, **options)
        assert order < 0 or not model.driven
        values = made.applied({v.name: given.get(v.name, [0.0]) for v in made.inputs}, arena)
        return np.array(values[0], dtype=object).reshape(shape)

    pose = found("forward_kinematics", 4, 4)
    results = [_coordinates(pose)]
    if order >= 0:
        J = [found("jacobian", 6, model.nv)]
        J += [found("jacobian_rate", 6, model.nv, order=k) for k in range(1, order + 1)]
        results = _rates(pose, J, [np.array(given[v.name], dtype=object) for v in inputs[1:]])
    last = results[-1]
    output = (Variable("result", last.shape), list(last.ravel()))
    made = Program.from_outputs("pose_task", inputs, [output])
    places = PositionSpace().quaternions(model)
    return replace(made, nonzero=tuple((0, first) for first in places))


def _coordinates(pose: Matrix) -> Matrix:
    """Return the coordinates roll, pitch, yaw, x, y and z of a pose."""
    R = pose[:3, :3]
    flat = sqrt(R[0, 0] * R[0, 0] + R[1, 0] * R[1, 0])
    angles = [atan2(R[2, 1], R[2, 2]), atan2(-R[2, 0], flat), atan2(R[1, 0], R[0, 0])]
    return np.array([*angles, *pose[:3, 3]], dtype=object)


def _rates(pose: Matrix, J: Sequence[Matrix], motion: Sequence[Matrix]) -> list[Matrix]:
    """Return the Jacobian of the pose coordinates, followed by its time derivatives.

    J contains the geometric Jacobian of the frame, followed by its time derivatives.
    """
    x = pose[:3, 0]
    flat = sqrt(x[0] * x[0] + x[1] * x[1])
    c, s, slope = x[0] / flat, x[1] / flat, -x[2] / flat
    y, z = np.array([-s, c, 0.0], dtype=object), np.array([0.0, 0.0, 1.0], dtype=object)
    back = np.array(
        [[c / flat, s / flat, 0.0], [-s, c, 0.0], [c * slope, s * slope, 1.0]], dtype=object
    )
    results = [back @ J[0][:3]]
    if motion:
        v = results[0] @ motion[0]
        wy = z * v[2]
        wx = wy + y * v[1]
        xd, yd = _cross(wx, x), _cross(wy, y)
        Td = np.stack([xd, yd, 0.0 * z], axis=-1)
        results.append(back @ (J[1][:3] - Td @ results[0]))
    if len(motion) > 1:
        a = results[0] @ motion[1] + results[1] @ motion[0]
        ay = z * a[2]
        ax = ay + y * a[1] + yd * v[1]
        xdd = _cross(ax, x) + _cross(wx, xd)
        ydd = _cross(ay, y) + _cross(wy, yd)
        Tdd = np.stack([xdd, ydd, 0.0 * z], axis=-1)
        results.append(back @ (J[2][:3] - Tdd @ results[0] - 2.0 * Td @ results[1]))
    return [np.concatenate([top, whole[3:]]) for top, whole in zip(results, J, strict=True)]


def _cross(a: Matrix, b: Matrix) -> Matrix:
    entries = [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.array(entries, dtype=object)
