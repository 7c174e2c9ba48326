"""Check that the methods of user-defined joint types are consistent with each other."""

import random
from dataclasses import is_dataclass

import numpy as np

from chasles.errors import ModelError, said
from chasles.expr import Number
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Forces, Motions
from chasles.model.description import JointData, LoopData, faulty, part_of
from chasles.model.joints import Joint

_SLACK = 1e-9
"""Relative tolerance for comparing two results, which allows for rounding errors."""


def check_custom(data: JointData, joint: Joint) -> None:
    """Raise an error if the methods of a user-defined joint type contradict each other.

    The methods are compared in a few random configurations.
    """
    name = f"joint type {type(joint).__name__}"
    try:
        _check(name, joint, closes=isinstance(data, LoopData))
    except ModelError as error:
        raise error.at(part=part_of(data), file=data.where) from None
    except NotImplementedError as error:
        raise faulty("E-JOINT-001", data, said(error)) from None


def _check(name: str, joint: Joint, *, closes: bool) -> None:
    _check_class(name, joint, closes=closes)
    still = joint.motion(joint.neutral())
    _agree(name, "motion(neutral()) is not the identity", still.homogeneous, np.eye(4))
    rng = random.Random(1)

    def drawn() -> Vector:
        return Vector(tuple(rng.uniform(-0.6, 0.6) for _ in range(joint.nv)))

    for _ in range(3):
        q, qd, qdd = joint.integrate(joint.neutral(), drawn()), drawn(), drawn()
        S = _columns(joint.subspace(q))
        E = np.array(joint.motion(q).E.matrix().rows, dtype=float)
        _agree(name, "E of motion(q) is not a rotation matrix", E @ E.T, np.eye(3))
        _agree(name, "subspace(q) does not match motion(q)", S, _columns(Joint.subspace(joint, q)))
        if np.linalg.matrix_rank(S, tol=_SLACK) < joint.nv:
            problem = f"{name}: the motion subspace has rank less than nv = {joint.nv}"
            raise ModelError("E-JOINT-002", problem, "remove redundant coordinates")
        written = joint.subspace_rates(q, (qd, qdd))
        for a, b in zip(written, Joint.subspace_rates(joint, q, (qd, qdd)), strict=True):
            _agree(name, "subspace_rates does not match subspace", _columns(a), _columns(b))
        back = joint.difference(q, joint.integrate(q, qd))
        _agree(name, "difference is not the inverse of integrate", list(back), list(qd))
        if closes:
            T = _columns(joint.constraint(q))
            _agree(name, "forces of constraint(q) do work: T'S is not 0", T.T @ S, 0.0 * (T.T @ S))
            X = joint.motion(q)
            back_again = joint.motion(joint.fit(X))
            _agree(name, "fit is not the inverse of motion", back_again.homogeneous, X.homogeneous)


def _check_class(name: str, joint: Joint, *, closes: bool) -> None:
    """Check the class attributes of a user-defined joint type."""
    own = vars(type(joint))
    if "__init__" in own and not ("__dataclass_fields__" in own and is_dataclass(type(joint))):
        raise ModelError(
            "E-JOINT-003",
            f"{name} must not define __init__",
            "declare its parameters as dataclass fields",
        )
    for number in ("nq", "nv", "units"):
        if not hasattr(joint, number):
            problem = f"{name} does not define {number}"
            raise ModelError("E-JOINT-004", problem, "define `nq`, `nv` and `units`")
    units, quaternion = joint.units, ("1",) * 4
    if len(units) != joint.nq or set(units) - {"rad", "m", "1"}:
        problem = f"{name} has invalid units {units}"
        raise ModelError(
            "E-JOINT-005", problem, f"give nq = {joint.nq} units, each 'rad', 'm' or '1'"
        )
    if "1" in units and (units[:4] != quaternion or "1" in units[4:]):
        problem = f"{name} has invalid units {units}"
        raise ModelError(
            "E-JOINT-006", problem, "use '1' only for a quaternion, and put its entries first"
        )
    if not 1 <= joint.nv <= 6 or (joint.additive and joint.nq != joint.nv):
        problem = f"{name} has invalid sizes: nq = {joint.nq}, nv = {joint.nv}"
        raise ModelError(
            "E-JOINT-007", problem, "use nv from 1 to 6, and nv = nq unless additive = False"
        )
    if closes and not joint.holonomic:
        problem = f"{name} constrains only velocities, so it cannot close a loop"
        raise ModelError("E-JOINT-008", problem, "close the loop with another joint type")
    if joint.holonomic == bool(joint.path) or not set(joint.path) <= set(range(joint.nq)):
        problem = f"{name} has invalid values: holonomic = {joint.holonomic}, path = {joint.path}"
        raise ModelError(
            "E-JOINT-009", problem, "set `path` to indices of q, and only for nonholonomic joints"
        )


def _agree(name: str, fault: str, actual: object, expected: object) -> None:
    """Raise an error if two results of a user-defined joint's methods differ."""
    a, b = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    if a.shape != b.shape or not np.all(np.abs(a - b) <= _SLACK * (1.0 + np.abs(b))):
        raise ModelError("E-JOINT-010", f"{name}: {fault}", "correct these methods")


def _columns(S: Motions | Forces) -> np.ndarray:
    columns: list[list[Number]] = [list(column) for column in S.columns]
    return np.array(columns, dtype=float).reshape(-1, 6).T
