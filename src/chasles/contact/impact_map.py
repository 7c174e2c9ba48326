"""The derivative of an impact: how velocities after it change with the state before it."""

from typing import Any

import numpy as np

from chasles.contact.impact import ContactPoint, checked_state, contact_axes
from chasles.contact.restitution import ImpactLaw
from chasles.contact.slip import applied
from chasles.model import ModelError
from chasles.robot import Robot

Array = Any


def impact_derivatives(
    robot: Robot, q: Array, qd: Array, contact: ContactPoint, law: ImpactLaw
) -> tuple[np.ndarray, np.ndarray]:
    """Those of the velocities after an impact at one point by q and by qd: (..., nv, nv) each.

    With respect to q along `integrate`, as in `derivatives`. The point moves with its body and the
    normal stays as it is in the world. Exact for `Sticking` and for `Newton` without friction; the
    other laws have central differences of their own, to about 1e-9. Where slip changes its kind
    between neighbouring impacts there is no derivative. For robots without loops; `Sticking` needs
    a point that can move in all three directions.
    """
    if robot.model.loop_rows:
        raise ModelError(
            f"impact_derivatives: robot {robot.name!r} has closed loops, for which there are none; "
            "take differences of impact"
        )
    q, qd = checked_state(robot, q, qd)
    axes = contact_axes(contact.normal).T
    J = contact.jacobian(robot, q)
    dJ = np.einsum("ij,...jkl->...ikl", axes, _jacobian_slopes(robot, q, contact))
    dM = robot.derivatives("mass_matrix", q, wrt="q")
    M = robot.mass_matrix(q)
    B = np.linalg.solve(M, np.swapaxes(J, -1, -2))
    W, zeta = J @ B, applied(J, qd)
    impulse = law.impulse(W, zeta)
    by_W, by_zeta = law.derivatives(W, zeta)
    step = applied(B, impulse)
    across = np.einsum("...ikl,...kj->...ijl", dJ, B)
    dW = across + np.swapaxes(across, -2, -3) - np.einsum("...ki,...klm,...lj->...ijm", B, dM, B)
    dzeta = np.einsum("...ikl,...k->...il", dJ, qd)
    dimpulse = np.einsum("...ijk,...jkl->...il", by_W, dW) + by_zeta @ dzeta
    forced = np.einsum("...kil,...k->...il", dJ, impulse)
    forced -= np.einsum("...ikl,...k->...il", dM, step)
    by_q: np.ndarray = np.linalg.solve(M, forced) + B @ dimpulse
    by_qd: np.ndarray = np.eye(robot.nv) + B @ by_zeta @ J
    return by_q, by_qd


def _jacobian_slopes(robot: Robot, q: np.ndarray, contact: ContactPoint) -> np.ndarray:
    """The derivative of the point's Jacobian along the world's axes: (..., 3, nv, nv)."""
    slopes: np.ndarray = robot.derivatives(
        "jacobian", q, wrt="q", frame=contact.frame, at=contact.at
    )[..., 3:, :, :]
    if contact.other is None:
        return slopes
    other = robot.jacobian(q, frame=contact.other)
    change = robot.derivatives("jacobian", q, wrt="q", frame=contact.other)
    own = robot.jacobian(q, frame=contact.frame, at=contact.at)[..., 3:, :]
    r, dr = contact.offset(robot, q), own - other[..., 3:, :]
    turned = np.cross(change[..., :3, :, :], r[..., :, None, None], axis=-3)
    moved = np.cross(other[..., :3, :, None], dr[..., :, None, :], axis=-3)
    return slopes - change[..., 3:, :, :] - turned - moved
