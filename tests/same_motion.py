"""Compare two robots that may have their joints in different orders."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from support import direct, relative, state

import chasles
from chasles.mathematics.linear import Matrix
from chasles.mathematics.rotations import quaternion_from_matrix
from chasles.model.description import freedom_names


def in_coordinates_of(
    again: chasles.Robot,
    robot: chasles.Robot,
    q: np.ndarray,
    called: Callable[[str], str] = str,
) -> tuple[np.ndarray, np.ndarray]:
    """Return q of `robot` in the coordinates of `again`, and the order of the velocities.

    Entry k of the order is the index in `robot` of velocity k of `again`. Joints are matched by
    name; a joint with several degrees of freedom may correspond to several joints in `again`. The
    pose of a free joint of `again` may be relative to the world's origin. `called` converts names
    of joints of `robot` to those of `again`.
    """
    there, order = np.full(again.nq, np.nan), np.zeros(again.nv, dtype=int)
    assert (again.nq, again.nv) == (robot.nq, robot.nv)
    for name in robot.joints:
        mine, places = q[robot.position_slice(name)], np.arange(robot.nv)
        places = places[robot.velocity_slice(name)]
        if called(name) in again.joints:
            there[again.position_slice(called(name))] = _position(again, robot, q, name, called)
            order[again.velocity_slice(called(name))] = places
            continue
        for k, part in enumerate(freedom_names(name, len(places))):
            there[again.position_slice(called(part))] = mine[k]
            order[again.velocity_slice(called(part))] = places[k]
    assert not np.isnan(there).any()
    return there, order


def _position(
    again: chasles.Robot,
    robot: chasles.Robot,
    q: np.ndarray,
    name: str,
    called: Callable[[str], str],
) -> ArrayLike:
    """Return the coordinates of a joint; those of a free joint are converted to the other robot."""
    joint, other = robot.joint(name), again.joint(called(name))
    mine = q[robot.position_slice(name)]
    if joint.kind != "free" or (joint.pose, joint.parent) == (other.pose, other.parent):
        return mine
    child = np.eye(4)
    child[:3, :3], child[:3, 3] = joint.child_pose.R.rows, list(joint.child_pose.r)
    T = direct(robot.model, "forward_kinematics", q, frame=joint.child) @ child
    R = Matrix(tuple(map(tuple, T[:3, :3].tolist())))
    return [*quaternion_from_matrix(R), *T[:3, 3]] if other.pose.is_identity else mine


def differences(robot: chasles.Robot, again: chasles.Robot, seed: int = 0) -> dict[str, float]:
    """Return relative differences of two robots at a random state.

    The mass matrix, inverse dynamics with damping, frames, loops and couplings are compared.
    """
    q, qd, qdd = state(robot, seed)
    p, order = in_coordinates_of(again, robot, q)
    M = direct(robot.model, "mass_matrix", q)[np.ix_(order, order)]
    tau = direct(robot.model, "inverse_dynamics", q, qd, qdd)[order]
    found = {
        "mass matrix": relative(direct(again.model, "mass_matrix", p), M),
        "inverse dynamics": relative(
            direct(again.model, "inverse_dynamics", p, qd[order], qdd[order]), tau
        ),
    }
    for frame in robot.frames:
        poses = (
            direct(one.model, "forward_kinematics", x, frame=frame)
            for one, x in ((again, p), (robot, q))
        )
        found[f"frame {frame}"] = relative(*poses)
    if robot.model.loop_rows:
        K = direct(robot.model, "loop_matrix", q)[:, order]
        residual = direct(robot.model, "loop_residual", q)
        other = direct(again.model, "loop_matrix", p)
        left = direct(again.model, "loop_residual", p)
        # The axes of the equations of a loop may differ, but these squares and products do not.
        found["loop matrix"] = relative(other.T @ other, K.T @ K)
        found["loop residual"] = relative(other.T @ left, K.T @ residual)
        found["loop gap"] = relative(left @ left, residual @ residual)
    return found


def assert_same_motion(robot: chasles.Robot, again: chasles.Robot, tolerance: float) -> None:
    """Assert that two robots agree at two random states."""
    for seed in range(2):
        found = differences(robot, again, seed)
        wrong = {what: error for what, error in found.items() if not error <= tolerance}
        assert not wrong
