"""Joints of a user's own type, held to the contract before a model is built of them."""

import random
from dataclasses import is_dataclass

import numpy as np

from chasles.errors import ModelError, said
from chasles.expr import Number
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Forces, Motions, Transform
from chasles.model.description import Description, LoopData
from chasles.model.joints import Joint

_SLACK = 1e-9
"""Beside 1: what rounding leaves of exact derivatives, far below what a slip in a formula does."""


def check_custom(source: Description) -> None:
    """Every joint of a user's own type has parts that agree with each other, at a few positions."""
    for data in (*source.joints, *source.loops):
        if isinstance(data.custom, Joint):
            part = f"{'loop' if isinstance(data, LoopData) else 'joint'} {data.name!r}"
            name = f"its type {type(data.custom).__name__}"
            try:
                _check(name, data.custom, closes=isinstance(data, LoopData))
            except ModelError as error:
                raise error.at(part=part, file=data.where) from None
            except NotImplementedError as error:
                raise ModelError("E-JOINT-001", said(error), part=part, file=data.where) from None


def _check(name: str, joint: Joint, *, closes: bool) -> None:
    _check_class(name, joint, closes=closes)
    still = joint.motion(joint.neutral())
    _agree(name, "motion(neutral()) is not the identity", _dense(still), np.eye(4))
    rng = random.Random(1)

    def drawn() -> Vector:
        return Vector(tuple(rng.uniform(-0.6, 0.6) for _ in range(joint.nv)))

    for _ in range(3):
        q, qd, qdd = joint.integrate(joint.neutral(), drawn()), drawn(), drawn()
        S = _columns(joint.subspace(q))
        E = np.array(joint.motion(q).E.matrix().rows, dtype=float)
        _agree(name, "the E of motion(q) is no rotation", E @ E.T, np.eye(3))
        _agree(name, "subspace(q) is not that of motion(q)", S, _columns(Joint.subspace(joint, q)))
        if np.linalg.matrix_rank(S, tol=_SLACK) < joint.nv:
            problem = f"{name}, S has not rank nv = {joint.nv}"
            raise ModelError("E-JOINT-002", problem, "drop a coordinate")
        written = joint.subspace_rates(q, (qd, qdd))
        for a, b in zip(written, Joint.subspace_rates(joint, q, (qd, qdd)), strict=True):
            _agree(name, "subspace_rates are not those of subspace", _columns(a), _columns(b))
        back = joint.difference(q, joint.integrate(q, qd))
        _agree(name, "difference does not undo integrate", list(back), list(qd))
        if closes:
            T = _columns(joint.constraint(q))
            _agree(name, "forces of constraint(q) do work: T'S is not 0", T.T @ S, 0.0 * (T.T @ S))
            X = joint.motion(q)
            _agree(name, "fit does not undo motion", _dense(joint.motion(joint.fit(X))), _dense(X))


def _check_class(name: str, joint: Joint, *, closes: bool) -> None:
    """What does not depend on a position."""
    own = vars(type(joint))
    if "__init__" in own and not ("__dataclass_fields__" in own and is_dataclass(type(joint))):
        problem = f"{name} has an __init__"
        raise ModelError("E-JOINT-003", problem, "write its numbers as fields of a dataclass")
    for number in ("nq", "nv", "units"):
        if not hasattr(joint, number):
            problem = f"{name} has no {number}"
            raise ModelError("E-JOINT-004", problem, "write nq, nv and units in the class")
    units, quaternion = joint.units, ("1",) * 4
    if len(units) != joint.nq or set(units) - {"rad", "m", "1"}:
        problem = f"{name} has units {units}"
        raise ModelError("E-JOINT-005", problem, f"give nq = {joint.nq} of 'rad', 'm' and '1'")
    if "1" in units and (units[:4] != quaternion or "1" in units[4:]):
        problem = f"{name} has units {units}"
        raise ModelError("E-JOINT-006", problem, "'1' is for a quaternion, which stands first")
    if not 1 <= joint.nv <= 6 or (joint.additive and joint.nq != joint.nv):
        problem = f"{name} has nq = {joint.nq} and nv = {joint.nv}"
        raise ModelError("E-JOINT-007", problem, "nv is 1 to 6, and is nq unless additive = False")
    if closes and not joint.holonomic:
        problem = f"{name} forbids velocities only, so it cannot close a loop"
        raise ModelError("E-JOINT-008", problem)
    if joint.holonomic == bool(joint.path) or not set(joint.path) <= set(range(joint.nq)):
        raise ModelError(
            "E-JOINT-009",
            f"{name} has holonomic = {joint.holonomic} and path = {joint.path}",
            "a joint that forbids velocities only names the entries of q that depend on the "
            "way, others none",
        )


def _agree(name: str, fault: str, actual: object, expected: object) -> None:
    """A fault of the type if two arrays differ by more than rounding."""
    a, b = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    if a.shape != b.shape or not np.all(np.abs(a - b) <= _SLACK * (1.0 + np.abs(b))):
        raise ModelError("E-JOINT-010", f"{name}, {fault}", "check its formulas")


def _dense(X: Transform) -> np.ndarray:
    M = np.eye(4)
    M[:3, :3], M[:3, 3] = X.R.rows, list(X.r)
    return M


def _columns(S: Motions | Forces) -> np.ndarray:
    columns: list[list[Number]] = [list(column) for column in S.columns]
    return np.array(columns, dtype=float).reshape(-1, 6).T
