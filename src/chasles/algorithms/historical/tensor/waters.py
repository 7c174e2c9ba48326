"""Joint forces for given accelerations, by Lagrange's equations with one sum over bodies."""

from chasles.algorithms.historical.tensor.chain_4x4 import chain_4x4
from chasles.algorithms.tensor.external import external_efforts
from chasles.mathematics import homogeneous
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.tensor import double_dot
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def waters(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """tau_i = sum of tr(dW_j/dq_i J_j Wdd_j') - g . dW_j/dq_i c_j over all bodies j beyond.

    Waters' form of Uicker's and Kahn's sums (Balafoutis and Patel 1991, Eq 5.2.9-10): of order n^2,
    since Wdd comes by recursion instead of from second derivatives. c is m r, and m last.
    """
    A, L, W, Wdd = chain_4x4(model, q, qd, qdd)
    dW: dict[int, dict[int, list[Matrix]]] = {WORLD: {}}
    g, external = Vector((*model.gravity_vector, 0.0)), external_efforts(model, q, f_ext)
    tau = {
        i: joint.rotor(qdd[i]) + joint.resistance(qd[i]) - external[i]
        for i, _, joint, _ in model.outward()
    }
    for j, p, _, I in model.outward():
        J = homogeneous.Inertia.of(I)
        D, c = J.matrix() @ Wdd[j].T, Vector((*J.h, J.m))  # (5.2.9)
        dW[j] = {i: [U @ A[j] for U in inner] for i, inner in dW[p].items()}  # (5.2.9)
        dW[j][j] = [W[j] @ l.matrix() for l in L[j]]  # (5.2.9)
        for i, moving in dW[j].items():
            tau[i] += Vector(tuple(double_dot(U, D) - g.dot(U @ c) for U in moving))  # (5.2.9)
    return tau
