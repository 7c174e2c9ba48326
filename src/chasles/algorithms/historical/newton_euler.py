"""Inverse dynamics by recursion on forces and moments."""

from chasles.algorithms.spatial.kinematics import body_transforms
from chasles.algorithms.tensor.closed_form import external_efforts
from chasles.algorithms.tensor.dynamics import chain
from chasles.expr import Number
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force, Motion
from chasles.mathematics.tensor import Center, euler_from_inertia
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def newton_euler_tensor(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Run the Newton-Euler recursion about the centers of mass.

    See Balafoutis and Patel 1991, algorithm 5.6. f and eta are the force and moment transmitted by
    a joint, in body axes. The moment eta is about the body origin.
    """
    X, S, Omega, _, sdd = chain(model, q, qd, qdd)
    f, eta, tau = {WORLD: Vector.zero()}, {WORLD: Vector.zero()}, {}
    for i, _, _, I in model.outward():
        body = Center.of(I)
        rdd = Omega[i] @ body.r + sdd[i]  # (5.3.7e)
        F = rdd * body.m  # (5.3.7f)
        M = Omega[i].moment(euler_from_inertia(body.I))  # (5.3.7g)
        f[i] = F - f_ext[i].force  # (5.3.8a)
        eta[i] = M + body.r.cross(F) - f_ext[i].moment  # (5.3.8b)
    for i, p, joint, _ in model.inward():
        tau[i] = S[i].T @ Force(eta[i], f[i]) + joint.rotor(qdd[i]) + joint.resistance(qd[i])
        A, s = X[i].E.T, X[i].r
        g = A @ f[i]  # (5.3.8a)
        f[p] += g  # (5.3.8a)
        eta[p] += s.cross(g) + A @ eta[i]  # (5.3.8b)
    return tau


def kane(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Evaluate Kane's equations by recursion.

    See Angeles, Ma, Rojas 1989; Balafoutis and Patel 1991, Eq 5.2.36.

    The motion subspace of a joint contains the partial velocities of all bodies beyond it, at the
    joint origin. R and N are the inertia forces and moments of these bodies minus the external
    forces and moments. R and N are accumulated from link to link in link axes. Center-of-mass
    accelerations are computed with the tensor Omega. Euler's equation is used in vector form.
    """
    X, S, Omega, _, sdd = chain(model, q, qd, qdd)
    R, N, tau = {WORLD: Vector.zero()}, {WORLD: Vector.zero()}, {}
    for i, _, _, I in model.outward():
        body, w, wd = Center.of(I), Omega[i].w, Omega[i].wd
        F = (Omega[i] @ body.r + sdd[i]) * body.m  # (5.2.21)
        M = body.I @ wd + w.cross(body.I @ w)  # (5.2.22)
        R[i] = F - f_ext[i].force  # (5.2.37)
        N[i] = M + body.r.cross(F) - f_ext[i].moment  # (5.2.36)
    for i, p, joint, _ in model.inward():
        tau[i] = S[i].T @ Force(N[i], R[i])  # (5.2.36, 5.2.37)
        tau[i] += joint.rotor(qdd[i]) + joint.resistance(qd[i])
        passed = X[i].E.T @ R[i]  # (5.2.37)
        R[p] += passed  # (5.2.37)
        N[p] += X[i].r.cross(passed) + X[i].E.T @ N[i]  # (5.2.36)
    return tau


def kane_sum(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Compute joint torques as sums over all bodies beyond each joint.

    tau_i = z_i . sum of (M_cj + r_ij x F_j), or z_i . sum of F_j for a prismatic joint. The sums
    are over all bodies j beyond joint i, in base axes (Balafoutis and Patel 1991, Eq 5.2.36;
    Angeles, Ma, Rojas 1989). F_j and M_cj are the force and moment that accelerate body j. r_ij is
    the vector from the origin of joint i to the center of mass of body j.
    """
    _, S, Omega, _, sdd = chain(model, q, qd, qdd)
    W, external = body_transforms(model, q), external_efforts(model, q, f_ext)
    tau = {
        i: joint.rotor(qdd[i]) + joint.resistance(qd[i]) - external[i]
        for i, _, joint, _ in model.outward()
    }
    axes = {i: [(W[i].E.T @ l.angular, W[i].E.T @ l.linear) for l in S[i].columns] for i in S}
    for j, _, _, I in model.outward():
        body = Center.of(I)
        F = W[j].E.T @ (Omega[j] @ body.r + sdd[j]) * body.m  # (5.2.21)
        M = W[j].E.T @ Omega[j].moment(euler_from_inertia(body.I))  # (5.2.22)
        for i in model.support(j):
            N = M + (W[j].locate(body.r) - W[i].r).cross(F)  # (5.2.36)
            tau[i] += Vector(tuple(z.dot(N) + v.dot(F) for z, v in axes[i]))  # (5.2.36, 5.2.37)
    return tau


def spatial_1987(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Compute joint torques by Featherstone's 1987 method.

    This is a corrected version of algorithm 5.4 in Balafoutis and Patel 1991. Force vectors start
    with the linear component, and motion vectors start with the angular component. The same
    transform and cross product then apply to both, and `_dot` computes the scalar product of a
    motion and a force. In the book, the base is at rest; here it accelerates against gravity.
    """
    X, S, tau = {}, {}, {}
    v, a, f = {WORLD: Motion.zero()}, {WORLD: -model.gravity}, {WORLD: Motion.zero()}
    for i, p, joint, I in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        vJ = S[i] @ qd[i]
        v[i] = X[i] @ v[p] + vJ  # (5.2.26a)
        a[i] = X[i] @ a[p] + v[i].cross(vJ) + S[i] @ qdd[i] + joint.bias(q[i], qd[i])  # (5.2.26b)
        F = _force_first(I @ a[i]) + v[i].cross(_force_first(I @ v[i]))  # (5.2.26c)
        f[i] = F - _force_first(f_ext[i])  # (5.2.27a)
    for i, p, joint, _ in model.inward():
        tau[i] = Vector(tuple(_dot(s, f[i]) for s in S[i].columns))  # (5.2.27b)
        tau[i] += joint.rotor(qdd[i]) + joint.resistance(qd[i])
        f[p] += X[i].inverse() @ f[i]  # (5.2.27a)
    return tau


def _force_first(f: Force) -> Motion:
    """Return a spatial force as [force; moment], which transforms like a motion vector."""
    return Motion(f.force, f.moment)


def _dot(s: Motion, f: Motion) -> Number:
    """Return the spatial dot product [a; b].[c; d] = a.d + b.c."""
    return s.angular.dot(f.linear) + s.linear.dot(f.angular)
