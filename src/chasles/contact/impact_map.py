"""The derivative of an impact: how velocities after it change with the state before it."""

from typing import Any

import numpy as np

from chasles.contact.dynamics import contact_axes
from chasles.contact.geometry import Contact
from chasles.contact.impact import checked_state, contact_jacobian
from chasles.contact.restitution import ImpactLaw
from chasles.contact.rigid import point_jacobian
from chasles.contact.slip import applied
from chasles.model import ModelError
from chasles.robot import Robot

Array = Any


def impact_derivatives(
    robot: Robot, q: Array, qd: Array, contact: Contact, law: ImpactLaw
) -> tuple[np.ndarray, np.ndarray]:
    """Those of the velocities after an impact at one contact by q and by qd: (..., nv, nv) each.

    With respect to q along `integrate`, as in `derivatives`. The point moves with the successor and
    the normal stays as it is in the world. Exact for `Sticking` and for `Newton` without friction;
    the other laws have central differences of their own, to about 1e-9. Where slip changes its kind
    between neighbouring impacts there is no derivative. For robots without loops; `Sticking` needs
    a point that can move in all three directions.
    """
    if robot.model.loop_rows:
        raise ModelError(
            f"impact_derivatives: robot {robot.name!r} has closed loops, for which there are none; "
            "take differences of impact"
        )
    q, qd = checked_state(robot, q, qd)
    J, dJ = contact_jacobian(robot, q, contact), _jacobian_slopes(robot, q, contact)
    M, dM = robot.mass_matrix(q), robot.derivatives("mass_matrix", q, wrt="q")
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


def _jacobian_slopes(robot: Robot, q: np.ndarray, contact: Contact) -> np.ndarray:
    """The derivative of `contact_jacobian`: (..., 3, nv, nv)."""
    moved = point_jacobian(robot, q, contact.successor, contact.point)
    over, under = (
        _point_slopes(robot, q, frame, contact.point, moved)
        for frame in (contact.successor, contact.predecessor)
    )
    slopes: np.ndarray = np.einsum(
        "...ij,...jkl->...ikl", contact_axes(contact.normal), over - under
    )
    return slopes


def _point_slopes(
    robot: Robot, q: np.ndarray, frame: str | None, point: np.ndarray, moved: np.ndarray
) -> np.ndarray:
    """The derivative of `point_jacobian`, at a point with the derivative `moved` (..., 3, nv)."""
    if frame is None:
        return np.zeros((*moved.shape, robot.nv))
    J, dJ = robot.jacobian(q, frame=frame), robot.derivatives("jacobian", q, wrt="q", frame=frame)
    r = point - robot.forward_kinematics(q, frame=frame)[..., :3, 3]
    dr = moved - J[..., 3:, :]
    turned = np.cross(dJ[..., :3, :, :], r[..., :, None, None], axis=-3)
    shifted = np.cross(J[..., :3, :, None], dr[..., :, None, :], axis=-3)
    slopes: np.ndarray = dJ[..., 3:, :, :] + turned + shifted
    return slopes
