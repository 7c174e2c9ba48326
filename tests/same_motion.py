"""Whether two robots are one mechanism, when the joints of one may be in another order."""

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
    """q of a robot in the coordinates of another, and which velocity of the one each of its is.

    By the names of joints; one with several freedoms may be as many joints there. A free joint of
    the other may have its zero at the world's origin. called: the other's names of joints.
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
    """The coordinates of a joint, of a free one those that it has in the other robot."""
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
    """Relative, at a random state: of M, joint forces with damping, frames, loops and couplings."""
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
        # Whatever axes the equations of a loop are along, their squares and products are the same.
        found["loop matrix"] = relative(other.T @ other, K.T @ K)
        found["loop residual"] = relative(other.T @ left, K.T @ residual)
        found["loop gap"] = relative(left @ left, residual @ residual)
    return found


def assert_same_motion(robot: chasles.Robot, again: chasles.Robot, tolerance: float) -> None:
    """At two random states."""
    for seed in range(2):
        found = differences(robot, again, seed)
        wrong = {what: error for what, error in found.items() if not error <= tolerance}
        assert not wrong
