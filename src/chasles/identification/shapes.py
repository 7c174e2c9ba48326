"""Limits on mass distributions: boxes and ellipsoids around the collision shapes of links.

A box or ellipsoid is defined by conditions x' Q x >= 0, with x = (position, 1) and a symmetric
matrix Q (4, 4). If all mass of a body lies where a condition holds, then tr(Q P) >= 0 for the
body's pseudo-inertia P. The condition is a linear inequality in the parameters of the body
(Wensing, Kim and Slotine 2018).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from chasles.identification.unknowns import (
    Body,
    moved,
    moving_links,
    parameters,
    pose_in_link,
    pseudo_inertia,
)
from chasles.motion.geometry.closed_forms import Sphere
from chasles.robot import Robot

Enclosing = Literal["box", "ellipsoid"]

ROUNDS, CLOSE = 200, 1e-3
"""Limits of the search for an enclosing ellipsoid.

`ROUNDS` is the maximum number of steps. `CLOSE` is the relative tolerance at convergence.
"""


@dataclass(frozen=True)
class Region:
    """A region in the frame of a link: x' Q x >= 0 for each of the quadratic forms Q (k, 4, 4).

    `typical` is the pseudo-inertia (4, 4) of a 1 kg body inside the region.
    """

    Q: np.ndarray
    typical: np.ndarray


def box(points: np.ndarray) -> Region:
    """Return the box around points (n, 3): (x - low) (high - x) >= 0 along each axis."""
    low, high = points.min(axis=0), points.max(axis=0)
    Q = np.zeros((3, 4, 4))
    for k in range(3):
        Q[k, k, k], Q[k, 3, 3] = -1.0, -low[k] * high[k]
        Q[k, k, 3] = Q[k, 3, k] = 0.5 * (low[k] + high[k])
    return Region(Q, _filled(0.5 * (low + high), np.diag((high - low) ** 2 / 20.0)))


def ellipsoid(points: np.ndarray) -> Region:
    """Return the minimum-volume enclosing ellipsoid of points (n, 3), by Khachiyan's algorithm."""
    n = len(points)
    lifted = np.column_stack([points, np.ones(n)])
    weights = np.full(n, 1.0 / n)
    for _ in range(ROUNDS):
        whole = np.linalg.inv(lifted.T @ (weights[:, None] * lifted))
        reach = np.einsum("ni,ij,nj->n", lifted, whole, lifted)
        far = int(np.argmax(reach))
        if reach[far] < 4.0 * (1.0 + CLOSE):
            break
        step = (reach[far] - 4.0) / (4.0 * (reach[far] - 1.0))
        weights *= 1.0 - step
        weights[far] += step
    center = weights @ points
    spread = (weights[:, None] * (points - center)).T @ (points - center)
    E = np.linalg.inv(spread)
    E /= np.max(np.einsum("ni,ij,nj->n", points - center, E, points - center))
    Q = np.zeros((1, 4, 4))
    Q[0, :3, :3], Q[0, 3, 3] = -E, 1.0 - center @ E @ center
    Q[0, :3, 3] = Q[0, 3, :3] = E @ center
    return Region(Q, _filled(center, np.linalg.inv(E) / 5.0))


def _filled(center: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return the pseudo-inertia (4, 4) of a 1 kg body with the given center of mass.

    `spread` contains the second moments of mass (3, 3) about the center of mass.
    """
    P = np.eye(4)
    P[:3, :3] = spread + np.outer(center, center)
    P[:3, 3] = P[3, :3] = center
    return P


REGIONS = {"box": box, "ellipsoid": ellipsoid}


def regions(robot: Robot, kind: Enclosing) -> dict[int, Region]:
    """Return the region around the collision shapes of each moving body that has shapes."""
    points: dict[int, list[np.ndarray]] = {}
    directions = np.vstack([np.eye(3), -np.eye(3)])
    for sphere in robot.enclosing_shapes("spheres"):
        assert isinstance(sphere, Sphere)
        assert sphere.frame is not None
        index, pose = pose_in_link(robot, sphere.frame)
        center = np.asarray(sphere.center, float)
        # points of the sphere along the axes of the link
        around = center + sphere.radius * directions @ pose[:3, :3]
        points.setdefault(index, []).append(around @ pose[:3, :3].T + pose[:3, 3])
    points.pop(-1, None)
    return {index: REGIONS[kind](np.concatenate(some)) for index, some in points.items()}


def inequalities(body: Body, found: dict[int, Region]) -> np.ndarray:
    """Return the matrix A (k, 10) of the condition A p >= 0 on the body's parameters p."""
    rows = [
        [np.sum(Q * pseudo_inertia(e)) for e in np.eye(10)] @ T
        for index, T in body.parts
        if index in found
        for Q in found[index].Q
    ]
    return np.array(rows).reshape(-1, 10)


def inside(body: Body, found: dict[int, Region]) -> np.ndarray | None:
    """Return parameters strictly inside a body's regions, or None if the body has no region."""
    some = [
        np.linalg.solve(T, parameters(found[index].typical))
        for index, T in body.parts
        if index in found
    ]
    if not some:
        return None
    return max(some, key=lambda p: float(np.min(inequalities(body, found) @ p)))


def mirrored(robot: Robot, left: str, right: str) -> np.ndarray:
    """Return the matrix (10, 10) that maps parameters of a left link to those of the right link.

    The right link has equal parameters, or is the mirror image of the left link in a plane normal
    to a world axis when the robot is in its neutral position. The function chooses the matrix that
    agrees best with the parameters in the model file.
    """
    values = robot.inertial_parameters().reshape(-1, 10)
    links = moving_links(robot)
    one, other = values[links.index(left)], values[links.index(right)]
    X, Y = (robot.forward_kinematics(robot.neutral(), frame=name) for name in (left, right))
    middle = 0.5 * (X[:3, 3] + Y[:3, 3])
    made = [np.eye(10)]
    for axis in range(3):
        M = np.eye(4)
        M[axis, axis], M[axis, 3] = -1.0, 2.0 * middle[axis]
        made.append(moved(np.linalg.solve(Y, M @ X)))
    return min(made, key=lambda T: float(np.linalg.norm(T @ one - other)))
