"""Inverse dynamics by Lagrange's equations."""

from typing import NamedTuple

from chasles.algorithms.historical.homogeneous import along, screws
from chasles.algorithms.tensor.closed_form import external_efforts
from chasles.mathematics import homogeneous
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.tensor import double_dot, dual, euler_from_inertia, tensor_product
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


class Chain4x4(NamedTuple):
    """A takes homogeneous coordinates of a body to its parent, W to the base frame.

    L has the joint's screws in the frame of its body, so that dA/dq is A L: the book's A Q for
    turning and sliding, and right for every other joint. Wdd is the second rate of W.
    """

    A: dict[int, Matrix]
    L: dict[int, tuple[homogeneous.Screw, ...]]
    W: dict[int, Matrix]
    Wdd: dict[int, Matrix]


def chain_4x4(model: Model, q: Position, qd: Velocity, qdd: Velocity) -> Chain4x4:
    """W = W_p A, with its first two rates (Balafoutis and Patel 1991, Eq 5.2.10)."""
    W, zero, A, L = {WORLD: Matrix.identity(4)}, Matrix.zero(4, 4), {}, {}
    Wd, Wdd = {WORLD: zero}, {WORLD: zero}
    for i, p, joint, _ in model.outward():
        A[i] = homogeneous.Position.of(joint.transform(q[i])).matrix()  # (2.3.2)
        L[i] = screws(joint, q[i])
        bias = homogeneous.Velocity.of(joint.bias(q[i], qd[i]))
        V, Vd = along(L[i], qd[i]).matrix(), (along(L[i], qdd[i]) + bias).matrix()
        moved = Wd[p] @ A[i]  # (5.2.10b, 5.2.12b)
        W[i] = W[p] @ A[i]  # (5.2.10a, 5.2.12a)
        Wd[i] = moved + W[i] @ V  # (5.2.10b, 5.2.12b)
        Wdd[i] = Wdd[p] @ A[i] + moved @ V * 2.0 + W[i] @ (V @ V + Vd)  # (5.2.10c, 5.2.12c)
    return Chain4x4(A, L, W, Wdd)


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
