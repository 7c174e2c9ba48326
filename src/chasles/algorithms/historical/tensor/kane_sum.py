"""Joint forces for given accelerations, by partial velocities of each body."""

from chasles.algorithms.spatial.forward_kinematics import body_transforms
from chasles.algorithms.tensor.chain import chain
from chasles.algorithms.tensor.external import external_efforts
from chasles.mathematics.linear import Vector
from chasles.mathematics.tensor import Center, euler_from_inertia
from chasles.model.model import Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def kane_sum(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """tau_i = z_i . sum of (M_cj + r_ij x F_j), or z_i . sum of F_j, over all bodies j beyond.

    The sum as it stands (Balafoutis and Patel 1991, Eq 5.2.36; Angeles, Ma, Rojas 1989), in base
    axes: F and M_c are what moves body j, r_ij goes from the origin of joint i to its centre.
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
