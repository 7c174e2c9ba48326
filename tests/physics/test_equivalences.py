"""Lagrange, Kane and augmented links give the same joint moment (Balafoutis and Patel 1991).

The moments nu of Lagrange, h of Kane and eta of algorithm 5.7 are sums over all links beyond a
joint (sections 5.3, 5.4, 6.3 and appendix A). All methods of inverse dynamics return the same
moments if the joints are replaced by free joints. Vectors are in base coordinates. Rounding errors
of some hundred operations are at most 1e-11.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from book import Chain, carried, chain, dual
from support import close, direct, state
from test_tensor import INVERSE, random_chain

import chasles
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.tensor import Center, inertia_about
from chasles.robots import puma560, stanford_arm

ROUNDING = 1e-11
ROBOTS: dict[str, Callable[[], chasles.Robot]] = {
    "RRRRR": lambda: random_chain("RRRRR", 17),
    "RPRRP": lambda: random_chain("RPRRP", 18),
    "puma560": puma560,
    "stanford_arm": stanford_arm,
}


@pytest.fixture(params=ROBOTS, scope="module")
def robot(request: pytest.FixtureRequest) -> chasles.Robot:
    return ROBOTS[request.param]()


def moment(Omega: np.ndarray, I: np.ndarray) -> np.ndarray:
    """Return dual(Omega J - (Omega J)'), the moment that turns a body with inertia I (4.3.41)."""
    M = Omega @ (np.trace(I) / 2.0 * np.eye(3) - I)
    return np.array([M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1]])


def lagrange(c: Chain, i: int) -> np.ndarray:
    """Return nu, the sum of s_ij x m rdd_0j + m r_jj x sdd_0j + M_oj (5.4.12)."""
    total = np.zeros(3)
    for j in range(i, len(c.m)):
        force = c.m[j] * c.sdd[j] + c.Omega[j] @ c.h[j]
        total += np.cross(c.o[j] - c.o[i], force) + np.cross(c.h[j], c.sdd[j])
        total += moment(c.Omega[j], c.I[j])
    return total


def kane(c: Chain, i: int) -> np.ndarray:
    """Return h, the sum of M_cj + r_ij x m rdd_0j (5.4.19)."""
    total = np.zeros(3)
    for j in range(i, len(c.m)):
        r = c.h[j] / c.m[j]
        about_center = c.I[j] + c.m[j] * dual(r) @ dual(r)
        acceleration = c.sdd[j] + c.Omega[j] @ r
        arm = c.o[j] + r - c.o[i]
        total += moment(c.Omega[j], about_center) + np.cross(arm, c.m[j] * acceleration)
    return total


def augmented(c: Chain) -> tuple[np.ndarray, np.ndarray]:
    """Return eta and mbar sdd + Udd of all joints, by steps 1 and 3 of algorithm 5.7 (5.4.13)."""
    n = len(c.m)
    mbar, Udd, eta, force = 0.0, np.zeros(3), np.zeros((n + 1, 3)), np.zeros((n, 3))
    for i in reversed(range(n)):
        s, zeta = np.zeros((2, 3))
        if i + 1 < n:
            s = c.o[i + 1] - c.o[i]
            zeta = c.sdd[i + 1] - c.sdd[i] - c.Omega[i] @ s
        t = Udd + mbar * zeta
        u, K = c.h[i] + mbar * s, c.I[i] - mbar * dual(s) @ dual(s)
        eta[i] = moment(c.Omega[i], K) + np.cross(u, c.sdd[i]) + np.cross(s, t) + eta[i + 1]
        mbar, Udd = mbar + c.m[i], c.Omega[i] @ u + t
        force[i] = mbar * c.sdd[i] + Udd
    return eta[:n], force


def released(robot: chasles.Robot, *given: np.ndarray) -> tuple[chasles.Robot, list[np.ndarray]]:
    """Return the links in the same motion on free joints, whose joint forces are whole wrenches."""
    source = robot.model.source
    bare = {"kind": "free", "armature": 0.0, "damping": 0.0, "friction": 0.0}
    joints = tuple(replace(j, **bare) if j.name in robot.joints else j for j in source.joints)
    parts: list[list[float]] = [[], [], []]
    for name, q, qd, qdd in zip(robot.joints, *given, strict=True):
        joint = robot.joint(name)
        axis = np.array(list(joint.axis))
        turns = joint.kind != "prismatic"
        quaternion = [np.cos(q / 2), *(np.sin(q / 2) * axis)] if turns else [1.0, 0.0, 0.0, 0.0]
        parts[0] += [*quaternion, *(axis * q * (not turns))]
        for part, rate in zip(parts[1:], (qd, qdd), strict=True):
            part += [*(axis * rate * turns), *(axis * rate * (not turns))]
    free = chasles.Robot(replace(source, joints=joints, keyframes=()))
    return free, [np.array(part) for part in parts]


def test_lagrange_kane_and_augmented_links_agree(robot: chasles.Robot) -> None:
    """nu = h = eta for each joint (5.4.17, 5.4.20), and their components along the axes are tau."""
    at = state(robot, 21)
    c = chain(robot, *at)
    eta, force = augmented(c)
    size = float(np.max(np.abs(eta)))
    for i in range(robot.nv):
        close(lagrange(c, i), eta[i], ROUNDING, scale=size)
        close(kane(c, i), eta[i], ROUNDING, scale=size)
        close(carried(c).eta[i], eta[i], ROUNDING, scale=size)
    slides = [robot.joint(name).kind == "prismatic" for name in robot.joints]
    along = [c.z[i] @ (force if slides[i] else eta)[i] for i in range(robot.nv)]
    rotors = [robot.joint(name).armature for name in robot.joints] * at[2]
    tau = direct(robot.model.frictionless(), "inverse_dynamics", *at, method="augmented-tensor")
    close(tau, along + rotors, ROUNDING)


@pytest.mark.parametrize("method", INVERSE)
def test_every_method_has_that_moment(robot: chasles.Robot, method: str) -> None:
    """All components of force and moment agree in link axes if free joints connect the links."""
    at = state(robot, 22)
    eta, force = augmented(chain(robot, *at))
    free, given = released(robot, *at)
    found = direct(free.model, "inverse_dynamics", *given, method=method).reshape(-1, 2, 3)
    for i, name in enumerate(robot.joints):
        R = robot.forward_kinematics(at[0], frame=robot.joint(name).child)[:3, :3]
        close(found[i, 0], R.T @ eta[i], ROUNDING, scale=float(np.max(np.abs(eta))))
        close(found[i, 1], R.T @ force[i], ROUNDING, scale=float(np.max(np.abs(force))))


def test_hollerbach_recursion_is_the_sum(robot: chasles.Robot) -> None:
    """Sums D_i, e_i and c_i of appendix A (A.13)-(A.15), in base axes, give tau (A.16)."""
    at = state(robot, 23)
    c, n = chain(robot, *at), robot.nv
    g = robot.gravity
    tau = direct(robot.model.frictionless(), "inverse_dynamics", *at, method="lagrange-3x3")
    for i in range(n):
        D, e, first = np.zeros((3, 3)), np.zeros(3), np.zeros(3)
        for j in range(i, n):
            J = np.trace(c.I[j]) / 2.0 * np.eye(3) - c.I[j]
            s, sdd = c.o[j] - c.o[i], c.sdd[j] + g
            D += np.outer(c.m[j] * s + c.h[j], sdd) + np.outer(s, c.Omega[j] @ c.h[j])
            D += J @ c.Omega[j].T
            e += c.m[j] * sdd + c.Omega[j] @ c.h[j]
            first += c.m[j] * s + c.h[j]
        joint = robot.joint(robot.joints[i])
        if joint.kind == "prismatic":
            expected = c.z[i] @ (e - np.sum(c.m[i:]) * g)
        else:
            expected = np.trace(dual(c.z[i]) @ D) - g @ dual(c.z[i]) @ first
        close(tau[i], expected + joint.armature * at[2][i], ROUNDING, scale=np.max(np.abs(tau)))


def test_generalized_links_are_composite_bodies(robot: chasles.Robot) -> None:
    """U_i = mbar_i R_i and E_oi = E_ci - mbar_i R~ R~ (6.3.7-8) for the composite body."""
    c = chain(robot, *state(robot, 24))
    b = carried(c)
    for i in range(robot.nv):
        parts = []
        for j in range(i, robot.nv):
            r = c.h[j] / c.m[j]
            I = c.I[j] + c.m[j] * dual(r) @ dual(r)
            place = Vector(tuple((c.o[j] + r - c.o[i]).tolist()))
            parts.append(Center(float(c.m[j]), place, Symmetric.of(matrix(I))))
        whole = Center.together(parts)
        E = inertia_about(whole.I, whole.m, whole.r).matrix()
        close(whole.m * np.array(list(whole.r)), b.U[i], ROUNDING)
        close(np.array(E.rows), b.E[i], ROUNDING)


def matrix(A: np.ndarray) -> Matrix:
    return Matrix(tuple(map(tuple, A.tolist())))


def test_recursions_of_generalized_links(robot: chasles.Robot) -> None:
    """Recursions for U, Udd and E (lemmas 5.1, 5.2, 6.1) and for L (C.15) agree with the sums."""
    c = chain(robot, *state(robot, 25))
    b = carried(c)
    mbar = np.array([np.sum(c.m[i:]) for i in range(robot.nv)])
    for i in range(robot.nv - 1):
        s, sd = c.o[i + 1] - c.o[i], c.sd[i + 1] - c.sd[i]
        zeta = c.sdd[i + 1] - c.sdd[i] - c.Omega[i] @ s
        slide = sd - np.cross(c.w[i], s)
        u, K = c.h[i] + mbar[i + 1] * s, c.I[i] - mbar[i + 1] * dual(s) @ dual(s)
        Khat = np.trace(K) / 2.0 * np.eye(3) - K
        cross = dual(s) @ dual(b.U[i + 1])
        L = dual(c.w[i]) @ Khat + dual(s) @ dual(b.Ud[i + 1] + mbar[i + 1] * slide)
        L += dual(b.U[i + 1]) @ dual(sd) + b.L[i + 1]
        close(b.U[i], u + b.U[i + 1], ROUNDING)
        close(b.Udd[i], c.Omega[i] @ u + b.Udd[i + 1] + mbar[i + 1] * zeta, ROUNDING)
        close(b.E[i], K - cross - cross.T + b.E[i + 1], ROUNDING)
        close(b.L[i], L, ROUNDING)
