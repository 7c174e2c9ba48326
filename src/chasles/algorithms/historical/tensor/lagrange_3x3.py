"""Joint forces for given accelerations, by Lagrange's equations with rotations apart."""

from chasles.algorithms.tensor.external import external_efforts
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.tensor import double_dot, dual, euler_from_inertia, tensor_product
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def lagrange_3x3(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Hollerbach's recursion with 3x3 matrices (Balafoutis and Patel 1991, algorithm 5.2).

    W turns components of a body to the base axes, sdd is the acceleration of its origin there. D, e
    and c gather x xdd', xdd and x of all bodies beyond a joint, with x from the joint's origin in
    body axes; m is their mass. Sliding, which the book leaves out, adds to sdd, and has e as force.
    """
    W, zero, none = {WORLD: Matrix.identity()}, Matrix.zero(), Vector.zero()
    Wd, Wdd, D = {WORLD: zero}, {WORLD: zero}, {WORLD: zero}
    sdd, e, c, m = {WORLD: none}, {WORLD: none}, {WORLD: none}, {WORLD: 0.0}
    A, s, S, tau = {}, {}, {}, {}
    for i, p, joint, I in model.outward():
        X, S[i] = joint.transform(q[i]), joint.subspace(q[i])
        A[i], s[i] = X.R, X.r  # (2.3.3, 2.3.4)
        vJ, aJ = S[i] @ qd[i], S[i] @ qdd[i] + joint.bias(q[i], qd[i])
        moved, w = Wd[p] @ A[i], dual(vJ.angular)  # (5.2.15b)
        W[i] = W[p] @ A[i]  # (5.2.15a)
        Wd[i] = moved + W[i] @ w  # (5.2.15b)
        Wdd[i] = Wdd[p] @ A[i] + moved @ w * 2.0 + W[i] @ (w @ w + dual(aJ.angular))  # (5.2.15c)
        slid = moved @ vJ.linear * 2.0 + W[i] @ (w @ vJ.linear + aJ.linear)
        sdd[i] = sdd[p] + Wdd[p] @ s[i] + slid  # (5.2.15d)
        J = euler_from_inertia(I.I).matrix()
        D[i] = tensor_product(I.h, sdd[i]) + J @ Wdd[i].T  # (5.2.16b)
        e[i] = sdd[i] * I.m + Wdd[i] @ I.h  # (5.2.16a)
        c[i], m[i] = I.h, I.m  # (5.2.16c)
    external = external_efforts(model, q, f_ext)
    for i, p, joint, _ in model.inward():
        tau[i] = joint.rotor(qdd[i]) + joint.resistance(qd[i]) - external[i]
        tau[i] += Vector(
            tuple(
                double_dot(W[i] @ dual(l.angular), D[i])
                + (W[i] @ l.linear).dot(e[i])
                - model.gravity_vector.dot(W[i] @ (l.angular.cross(c[i]) + l.linear * m[i]))
                for l in S[i].columns
            )
        )  # (5.2.16d)
        D[p] += A[i] @ D[i] + tensor_product(s[i], e[i])  # (5.2.16b)
        e[p] += e[i]  # (5.2.16a)
        c[p] += s[i] * m[i] + A[i] @ c[i]  # (5.2.16c)
        m[p] = m[p] + m[i]  # (5.2.16c)
    return tau
