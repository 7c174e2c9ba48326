"""Arrows for what holds a robot still against gravity: forces of its joints, and reactions."""

import numpy as np

from chasles.mathematics.linear import Vector
from chasles.robot import Robot
from chasles.view.posture import poses


def holding_forces(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Joint forces (nv,) that hold the robot still; with loops, of its independent freedoms."""
    rest = np.zeros(robot.nv)
    return robot.inverse_dynamics(q, rest, rest, actuated=robot.independent)


def joint_vectors(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Holding forces as vectors of the world: where (n, 3), torques (n, 3, N m), forces (n, 3, N).

    One row for each joint that owns coordinates, at the origin of its frame on the child link.
    """
    model, tau = robot.model, holding_forces(robot, q)
    own = model.positions(q.tolist())
    R, p = poses(model, q)
    torques, forces = [], []
    for i in model.movers:
        effort = Vector(tuple(tau[model.velocity_slices[i]].tolist()))
        motion = model.bodies[i].joint.subspace(own[i]) @ effort
        torques.append(R[i] @ list(motion.angular))
        forces.append(R[i] @ list(motion.linear))
    where = p[list(model.movers)]
    return where, np.reshape(torques, (-1, 3)), np.reshape(forces, (-1, 3))


def reaction_vectors(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What parents exert on children in the held robot: where (n, 3), forces (n, 3, N), world axes.

    One row for each of `moving_joints`.
    """
    model, rest = robot.model, np.zeros(robot.nv)
    multipliers = robot.mechanism.multipliers(q, rest, holding_forces(robot, q))
    reactions = robot.joint_reactions(q, rest, rest, multipliers=multipliers)[:, 3:]
    R, p = poses(model, q)
    forces = []
    for i, force in zip(model.in_file_order, reactions, strict=True):
        link = np.array(model.frames[model.bodies[i].name].placement.R.rows, dtype=float)
        forces.append(R[i] @ link @ force)
    return p[list(model.in_file_order)], np.reshape(forces, (-1, 3))


def arrows(where: np.ndarray, vectors: np.ndarray, longest: float) -> np.ndarray:
    """Start and end (k, 2, 3) of arrows, the largest of some length in m; hardly any left out."""
    sizes = np.linalg.norm(vectors, axis=1)
    largest = np.max(sizes, initial=0.0)
    if not largest > 1e-9:
        return np.zeros((0, 2, 3))
    shown = sizes > 0.01 * largest
    ends = where[shown] + vectors[shown] * (longest / largest)
    return np.stack([where[shown], ends], axis=1)
