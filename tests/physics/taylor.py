"""Forward kinematics on power series in time, an oracle for derivatives of any order.

A series is an array whose first axis holds the Taylor coefficients. Only the data of a model are
used: parents, joint types, placements and ratios of mimic joints.
"""

from math import factorial

import numpy as np
from scipy.spatial.transform import Rotation

from chasles.mathematics.spatial import Transform
from chasles.model import WORLD, Model
from chasles.model.joints import Joint


def times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product of two series of matrices or of scalars."""
    dot = np.multiply if b.ndim == 1 else np.matmul
    return np.array([sum(dot(a[j], b[k - j]) for j in range(k + 1)) for k in range(len(a))])


def cosine_and_sine(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosine and sine of a scalar series, from c' = -s x' and s' = c x'."""
    c, s = np.zeros_like(x), np.zeros_like(x)
    c[0], s[0] = np.cos(x[0]), np.sin(x[0])
    for k in range(1, len(x)):
        for j in range(1, k + 1):
            c[k] -= j * x[j] * s[k - j] / k
            s[k] += j * x[j] * c[k - j] / k
    return c, s


def turn(axis: int, angle: np.ndarray) -> np.ndarray:
    """Return the series of a rotation about a coordinate axis."""
    c, s = cosine_and_sine(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    M = shift(np.zeros((len(angle), 3)))
    M[:, i, i], M[:, j, j], M[:, j, i], M[:, i, j] = c, c, s, -s
    return M


def shift(place: np.ndarray) -> np.ndarray:
    """Return the series of a translation."""
    M = np.zeros((len(place), 4, 4))
    M[0] = np.eye(4)
    M[:, :3, 3] = place
    return M


def along_z(distance: np.ndarray) -> np.ndarray:
    return shift(np.stack([0.0 * distance, 0.0 * distance, distance], axis=-1))


def driven(start: np.ndarray, twist: np.ndarray) -> np.ndarray:
    """Return the series of M with M' = M [w~ v; 0 0], for a twist (w, v) in the moving frame."""
    W = np.zeros((len(twist), 4, 4))
    W[:, :3, 3] = twist[:, 3:]
    for k, (i, j) in enumerate(((2, 1), (0, 2), (1, 0))):
        W[:, i, j], W[:, j, i] = twist[:, k], -twist[:, k]
    M = np.zeros((len(twist) + 1, 4, 4))
    M[0] = start
    for k in range(len(twist)):
        M[k + 1] = sum(M[j] @ W[k - j] for j in range(k + 1)) / (k + 1)
    return M


def rolled(turned: np.ndarray, start: np.ndarray, radius: float) -> np.ndarray:
    """Return the pose series of a rolling sphere, whose center has velocity w x (radius z)."""
    steps = np.arange(1, len(turned))
    spin = times(steps[:, None, None] * turned[1:, :3, :3], turned[:-1, :3, :3].transpose(0, 2, 1))
    place = np.zeros((len(turned), 3))
    place[0, :2] = start
    place[1:, :2] = radius * spin[:, :2, 2] / steps[:, None]
    return times(shift(place), turned)


def joint_series(joint: Joint, q: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the pose series of a joint; rates (order, nv) are its velocity's derivatives."""
    n = len(rates)
    V = np.array([rate / factorial(k) for k, rate in enumerate(rates)])
    kind, twist, M = joint.kind, np.zeros((n, 6)), np.eye(4)
    if kind in ("spherical", "free", "sphere_in_cylinder", "rolling"):
        w, x, y, z = q[:4]
        M[:3, :3] = Rotation.from_quat([x, y, z, w]).as_matrix()
        if kind == "sphere_in_cylinder":
            twist[:, :3] = V[:, :3]
            along = np.concatenate([q[4:], V[:, 3] / np.arange(1, n + 1)])
            return times(along_z(along), driven(M, twist))
        if kind == "rolling":
            twist[:, :3] = V
            return rolled(driven(M, twist), q[4:], joint.radius)
        M[:3, 3] = q[4:] if kind == "free" else 0.0
        twist[:, : V.shape[1]] = V
        return driven(M, twist)
    if kind == "planar":
        M = turn(2, q[:1])[0]
        M[:2, 3] = q[1:]
        twist[:, [2, 3, 4]] = V
        return driven(M, twist)
    x = np.concatenate([q[None], V / np.arange(1, n + 1)[:, None]]).T
    if kind == "universal":
        return times(turn(0, x[0]), turn(1, x[1]))
    if kind == "yaw_pitch_roll":
        return times(times(turn(2, x[0]), turn(1, x[1])), turn(0, x[2]))
    if kind == "rack_and_pinion":
        travel = joint.radius * x[0]
        return times(shift(np.stack([travel, 0.0 * travel, 0.0 * travel], axis=-1)), turn(2, x[0]))
    rise = {"revolute": 0.0 * x[0], "prismatic": x[0], "cylindrical": x[-1]}
    if kind == "helical":
        rise["helical"] = joint.pitch * x[0]
    M = along_z(rise[kind])
    return M if kind == "prismatic" else times(M, turn(2, x[0]))


def constant(X: Transform, n: int) -> np.ndarray:
    M = np.zeros((n + 1, 4, 4))
    M[0] = np.eye(4)
    M[0, :3, :3] = np.array(X.E.matrix().rows, dtype=float).T
    M[0, :3, 3] = list(X.r)
    return M


def pose_series(model: Model, q: np.ndarray, rates: np.ndarray, frame: str) -> np.ndarray:
    """Return the pose series of a frame; rates (order, nv) are qd and its derivatives."""
    n, where = len(rates), model.frame(frame)
    chain, i = [constant(where.placement, n)], where.body
    while i != WORLD:
        body = model.bodies[i]
        if body.follow is None:
            own, speed = q[model.position_slices[i]], rates[:, model.velocity_slices[i]]
        else:
            leader, ratio, offset = body.follow
            own = ratio * q[model.position_slices[leader]] + offset
            speed = ratio * rates[:, model.velocity_slices[leader]]
        chain += [joint_series(body.joint, own, speed), constant(body.joint.placement, n)]
        i = body.parent
    M = chain.pop()
    while chain:
        M = times(M, chain.pop())
    return M


def frame_motion(
    model: Model, q: np.ndarray, *rates: np.ndarray, frame: str, point: np.ndarray
) -> np.ndarray:
    """Return derivatives (order, 6) of angular velocity and of a point's position, in world axes.

    The point is fixed in the frame.
    """
    n = len(rates)
    M = pose_series(model, q, np.array(rates), frame)
    steps = np.arange(1, n + 1)
    spin = times(steps[:, None, None] * M[1:, :3, :3], M[:-1, :3, :3].transpose(0, 2, 1))
    w = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=-1)
    p = M[1:, :3, :3] @ point + M[1:, :3, 3]
    scale = np.array([factorial(k) for k in steps])
    return np.concatenate([w * (scale / steps)[:, None], p * scale[:, None]], axis=-1)
