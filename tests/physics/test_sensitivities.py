"""D0, V0, P0 of the linearised model: closed forms of the book, its lemmas, structure theorems.

Everything here is Balafoutis and Patel (1991), chapter 7 and appendix C, in base coordinates.
"""

from typing import NamedTuple

import numpy as np
import pytest
from support import close, direct, state, tree

import chasles
from chasles.robots import general_chain, planar, puma560, stanford_arm

ROUNDING = 1e-11
METHODS = ("spatial", "augmented-tensor", "closed-form")


def dual(v: np.ndarray) -> np.ndarray:
    """The tensor of the cross product."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


class Chain(NamedTuple):
    """A chain's links in base coordinates: axes, places, motion (gravity in sdd), masses."""

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
    """From poses and accelerations of the links, which are checked elsewhere."""
    parts = []
    for name, ten in zip(robot.joints, robot.inertial_parameters().reshape(-1, 10), strict=True):
        joint = robot.joint(name)
        pose = robot.forward_kinematics(q, frame=joint.child)
        R = pose[:3, :3]
        v = robot.frame_velocity(q, qd, frame=joint.child)
        a = robot.frame_acceleration(q, qd, qdd, frame=joint.child, kind="proper")
        m, (xx, yy, zz, xy, xz, yz) = ten[0], ten[4:]
        I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        w = dual(v[:3])
        axis = R @ np.array(list(joint.axis))
        motion = v[:3], dual(a[:3]) + w @ w, v[3:], a[3:]
        parts.append((axis, pose[:3, 3], *motion, m, R @ ten[1:4], R @ I @ R.T))
    return Chain(*map(np.array, zip(*parts, strict=True)))


class Carried(NamedTuple):
    """What each link carries, about its own origin."""

    U: np.ndarray
    Ud: np.ndarray
    Udd: np.ndarray
    E: np.ndarray
    L: np.ndarray
    eta: np.ndarray


def carried(c: Chain) -> Carried:
    """Sums over all mass beyond a joint, body by body."""
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


def closed_forms(c: Chain) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(7.3.1) to (7.3.4), revolute joints."""
    n, b = len(c.m), carried(c)
    D, V, P = np.zeros((3, n, n))
    for i in range(n):
        for j in range(n):
            zd, zdd = np.cross(c.w[j], c.z[j]), c.Omega[j] @ c.z[j]
            if j <= i:
                U, s, sd = dual(b.U[i]), dual(c.o[i] - c.o[j]), dual(c.sd[i] - c.sd[j])
                A, B, last = b.E[i] - U @ s, b.L[i] + U @ sd, U @ dual(c.sdd[j])
            else:
                s, U = dual(c.o[j] - c.o[i]), dual(b.U[j])
                A, B = b.E[j] - s @ U, b.L[j] + s @ dual(b.Ud[j])
                last = U @ dual(c.sdd[j]) - s @ dual(b.Udd[j]) - dual(b.eta[j])
            D[i, j] = c.z[i] @ A @ c.z[j]
            V[i, j] = 2.0 * (c.z[i] @ A @ zd - c.z[i] @ B @ c.z[j])
            P[i, j] = c.z[i] @ (A @ zdd - 2.0 * B @ zd + last @ c.z[j])
    return D, V, P


ROBOTS = {
    "puma560": puma560,
    "general chain": lambda: general_chain(5),
    "planar": lambda: planar(3),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ROBOTS)
def test_closed_forms(name: str, method: str) -> None:
    robot = ROBOTS[name]()
    at = state(robot, 1)
    found = robot.inverse_dynamics_sensitivities(*at, method=method)
    D, V, P = closed_forms(chain(robot, *at))
    D += np.diag([robot.joint(joint).armature for joint in robot.joints])
    size = float(np.max(np.abs(P)))
    for mine, theirs in zip(found, (D, V, P), strict=True):
        close(mine, theirs, ROUNDING, scale=size)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [puma560, stanford_arm], ids=lambda f: f.__name__)
def test_differences(make, method: str) -> None:
    """Revolute and prismatic joints; central differences of 1e-4 err by 1e-8 of what they take."""
    robot = make()
    at = state(robot, 2)
    found = robot.inverse_dynamics_sensitivities(*at, method=method)
    for k, mine in zip((2, 1, 0), found, strict=True):
        steps = 1e-4 * np.eye(robot.nv)
        ahead, behind = (
            robot.inverse_dynamics(*(x + s * steps * (n == k) for n, x in enumerate(at)))
            for s in (1.0, -1.0)
        )
        close(mine, (ahead - behind).T / 2e-4, 1e-6)


def test_structure_theorems() -> None:
    """D0 is the mass matrix; v_nn = 0; a vertical first axis makes the first column of P0 zero."""
    robot = puma560()
    q, qd, qdd = state(robot, 3, 5)
    for method in METHODS:
        D, V, P = robot.inverse_dynamics_sensitivities(q, qd, qdd, method=method)
        close(D, robot.mass_matrix(q), ROUNDING)
        assert np.all(np.linalg.eigvalsh(D) > 0.0)
        size = float(np.max(np.abs(P)))
        close(V[:, -1, -1], np.zeros(5), 1e-14, scale=size)
        close(P[:, :, 0], np.zeros((5, 6)), 1e-14, scale=size)
    tilted = robot.with_gravity((1.0, 0.0, -9.0))
    _, _, P = tilted.inverse_dynamics_sensitivities(q, qd, qdd)
    assert np.max(np.abs(P[:, :, 0])) > 0.1


@pytest.mark.parametrize("method", METHODS)
def test_dissipation(method: str) -> None:
    robot = stanford_arm()
    at = state(robot, 4)
    found = robot.inverse_dynamics_sensitivities(*at, method=method, dissipation=True)
    expected = robot.derivatives("inverse_dynamics", *at, dissipation=True)[::-1]
    for mine, theirs in zip(found, expected, strict=True):
        close(mine, theirs, ROUNDING)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mimics", [False, True])
def test_every_joint_type(seed: int, mimics: bool) -> None:
    """Trees, on plain floats, against differences of inverse dynamics along `integrate`."""
    robot = tree(9, seed, mimics=mimics, floating=seed % 2 == 1)
    at = state(robot, seed)
    steps = 1e-4 * np.eye(robot.nv)

    def moved(k: int, step: np.ndarray) -> np.ndarray:
        q, qd, qdd = at
        q = direct(robot.model, "integrate", q, step * (k == 0))
        qd, qdd = qd + step * (k == 1), qdd + step * (k == 2)
        return direct(robot.model, "inverse_dynamics", q, qd, qdd)

    expected = [
        np.stack([moved(k, s) - moved(k, -s) for s in steps], axis=1) / 2e-4 for k in (2, 1, 0)
    ]
    for method in METHODS:
        found = direct(robot.model, "inverse_dynamics_sensitivities", *at, method=method)
        for mine, theirs in zip(found, expected, strict=True):
            close(mine, theirs, 1e-6)


def test_lemmas_of_motion() -> None:
    """C-5, C-7, C-10, C-11: how the motion of link i changes with the coordinates of joint j."""
    robot = puma560()
    q, qd, qdd = at = state(robot, 5)
    c, n = chain(robot, *at), robot.nv
    for i, name in enumerate(robot.joints):
        frame = robot.joint(name).child
        R = robot.forward_kinematics(q, frame=frame)[:3, :3]
        view = {"frame": frame, "axes": "frame"}
        dw, dw_d = robot.derivatives("frame_velocity", q, qd, **view)
        dq, dqd, dqdd = robot.derivatives("frame_acceleration", q, qd, qdd, kind="proper", **view)
        expected = np.zeros((3, 6, n))
        for j in range(i + 1):
            z, zd, zdd = c.z[j], np.cross(c.w[j], c.z[j]), c.Omega[j] @ c.z[j]
            s, sd = c.o[i] - c.o[j], c.sd[i] - c.sd[j]
            close(dw[:3, j], R.T @ zd, ROUNDING, scale=1.0)
            close(dw_d[:3, j], R.T @ z, ROUNDING)
            by_q = np.cross(zdd, s) + 2.0 * np.cross(zd, sd) - np.cross(z, c.sdd[j])
            by_qd = 2.0 * (np.cross(zd, s) + np.cross(z, sd))
            turning = zdd + np.cross(zd, c.w[i]), 2.0 * zd + np.cross(z, c.w[i]), z
            straight = by_q, by_qd, np.cross(z, s)
            for k in range(3):
                expected[k, :, j] = [*(R.T @ turning[k]), *(R.T @ straight[k])]
        for mine, theirs in zip((dq, dqd, dqdd), expected, strict=True):
            close(mine, theirs, ROUNDING, scale=10.0)
