"""Joint forces for given accelerations, by Lagrange's equations in homogeneous coordinates."""

from chasles.algorithms.historical.tensor.chain_4x4 import chain_4x4
from chasles.algorithms.tensor.external import external_efforts
from chasles.mathematics import homogeneous
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.tensor import double_dot
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def lagrange_4x4(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Hollerbach's recursion with 4x4 matrices (Balafoutis and Patel 1991, algorithm 5.1).

    W takes homogeneous coordinates of a body to the base frame; D and c gather J Wdd' and first
    moments of all bodies beyond a joint.
    """
    A, L, W, Wdd = chain_4x4(model, q, qd, qdd)
    D, c, tau = {WORLD: Matrix.zero(4, 4)}, {WORLD: Vector.zero(4)}, {}
    for i, _, _, I in model.outward():
        J = homogeneous.Inertia.of(I)
        D[i] = J.matrix() @ Wdd[i].T  # (5.2.13a)
        c[i] = Vector((*J.h, J.m))  # (5.2.13b)
    g, external = Vector((*model.gravity_vector, 0.0)), external_efforts(model, q, f_ext)
    for i, p, joint, _ in model.inward():
        moving = [W[i] @ l.matrix() for l in L[i]]  # (5.2.13c)
        tau[i] = Vector(tuple(double_dot(U, D[i]) - g.dot(U @ c[i]) for U in moving))  # (5.2.13c)
        tau[i] += joint.rotor(qdd[i]) + joint.resistance(qd[i]) - external[i]
        D[p] += A[i] @ D[i]  # (5.2.13a)
        c[p] += A[i] @ c[i]  # (5.2.13b)
    return tau
