"""Link quantities of a chain in base coordinates (Balafoutis and Patel 1991), in plain NumPy.

They are computed from poses and motions of the links, which other tests check. Every joint is
revolute or prismatic.
"""

from typing import NamedTuple

import numpy as np
from support import direct

import chasles


def dual(v: np.ndarray) -> np.ndarray:
    """Return the cross-product matrix of a vector."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


class Chain(NamedTuple):
    """Link axes, origins, motion and inertias in base coordinates; sdd includes gravity."""

    z: np.ndarray
    o: np.ndarray
    w: np.ndarray
    Omega: np.ndarray
    sd: np.ndarray
    sdd: np.ndarray
    m: np.ndarray
    h: np.ndarray
    I: np.ndarray


def chain(robot: chasles.Robot, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> Chain:
    """Return the link quantities at a state, from functions evaluated on floats."""
    parts, model = [], robot.model
    for name, ten in zip(robot.joints, robot.inertial_parameters().reshape(-1, 10), strict=True):
        joint = robot.joint(name)
        pose = direct(model, "forward_kinematics", q, frame=joint.child)
        R = pose[:3, :3]
        v = direct(model, "frame_velocity", q, qd, frame=joint.child)
        a = direct(model, "frame_acceleration", q, qd, qdd, frame=joint.child, kind="proper")
        m, (xx, yy, zz, xy, xz, yz) = ten[0], ten[4:]
        I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        w = dual(v[:3])
        axis = R @ np.array(list(joint.axis))
        motion = v[:3], dual(a[:3]) + w @ w, v[3:], a[3:]
        parts.append((axis, pose[:3, 3], *motion, m, R @ ten[1:4], R @ I @ R.T))
    return Chain(*map(np.array, zip(*parts, strict=True)))


class Carried(NamedTuple):
    """Composite moments of the mass beyond each joint, about the origin of the joint's link."""

    U: np.ndarray
    Ud: np.ndarray
    Udd: np.ndarray
    E: np.ndarray
    L: np.ndarray
    eta: np.ndarray


def carried(c: Chain) -> Carried:
    """Return the composite moments of each link, summed over all links beyond its joint."""
    rows = []
    for i in range(len(c.m)):
        U, Ud, Udd, eta = np.zeros((4, 3))
        E, L = np.zeros((2, 3, 3))
        for k in range(i, len(c.m)):
            s, sd = c.o[k] - c.o[i], c.sd[k] - c.sd[i]
            sdd = c.sdd[k] - c.sdd[i]
            h, w, Omega = c.h[k], dual(c.w[k]), c.Omega[k]
            U = U + h + c.m[k] * s
            Ud = Ud + w @ h + c.m[k] * sd
            Udd = Udd + Omega @ h + c.m[k] * sdd
            J = np.trace(c.I[k]) / 2.0 * np.eye(3) - c.I[k]
            E = E + c.I[k] - dual(s) @ dual(h) - dual(h) @ dual(s) - c.m[k] * dual(s) @ dual(s)
            L = L + w @ J + dual(s) @ dual(w @ h) + dual(h + c.m[k] * s) @ dual(sd)
            mu = Omega @ J - (Omega @ J).T
            force = c.m[k] * c.sdd[k] + Omega @ h
            eta = eta + np.array([mu[2, 1], mu[0, 2], mu[1, 0]])
            eta = eta + np.cross(h, c.sdd[k]) + np.cross(s, force)
        rows.append((U, Ud, Udd, E, L, eta))
    return Carried(*map(np.array, zip(*rows, strict=True)))


def eta_changes(c: Chain, b: Carried, i: int, j: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return partial derivatives of eta_i with respect to qdd_j, qd_j and q_j (lemma C-12).

    The components of eta_i in the axes of link i are differentiated. The results are in base axes.
    """
    z, zd, zdd = c.z[j], np.cross(c.w[j], c.z[j]), c.Omega[j] @ c.z[j]
    if j <= i:
        U, s, sd = dual(b.U[i]), dual(c.o[i] - c.o[j]), dual(c.sd[i] - c.sd[j])
        A, B, last = b.E[i] - U @ s, b.L[i] + U @ sd, U @ dual(c.sdd[j])
    else:
        s, U = dual(c.o[j] - c.o[i]), dual(b.U[j])
        A, B = b.E[j] - s @ U, b.L[j] + s @ dual(b.Ud[j])
        last = U @ dual(c.sdd[j]) - s @ dual(b.Udd[j]) - dual(b.eta[j])
    return A @ z, 2.0 * (A @ zd - B @ z), A @ zdd - 2.0 * B @ zd + last @ z
