"""Lagrange's equations, by recursion or in closed form as sums over all bodies."""

from collections import defaultdict
from itertools import combinations_with_replacement
from typing import NamedTuple

from chasles.algorithms.historical.homogeneous import along, screws
from chasles.algorithms.spatial.dynamics import gravity_forces
from chasles.algorithms.spatial.kinematics import body_transforms
from chasles.algorithms.tensor.closed_form import (
    Form,
    bends,
    by_joint,
    efforts,
    external_efforts,
    freedoms,
    pairs,
    paths,
    rotors,
    triples,
    turning,
)
from chasles.expr import Number
from chasles.mathematics import homogeneous
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import Force, Motion, RigidInertia
from chasles.mathematics.tensor import double_dot, dual, euler_from_inertia, tensor_product
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Freedom, Position, Velocity, Wrenches


class Chain4x4(NamedTuple):
    """Homogeneous transforms A (body to parent) and W (body to base frame).

    L contains the joint's screws in its body frame, so that dA/dq = A L for all types of joints.
    Balafoutis and Patel use A Q instead, which equals A L for revolute and prismatic joints. Wdd
    is the second time derivative of W.
    """

    A: dict[int, Matrix]
    L: dict[int, tuple[homogeneous.Screw, ...]]
    W: dict[int, Matrix]
    Wdd: dict[int, Matrix]


def chain_4x4(model: Model, q: Position, qd: Velocity, qdd: Velocity) -> Chain4x4:
    """Compute W = W_p A and its first two time derivatives.

    See Balafoutis and Patel 1991, Eq 5.2.10.
    """
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
    """Run Hollerbach's recursion with 4x4 matrices (Balafoutis and Patel 1991, algorithm 5.1).

    W maps homogeneous coordinates from the body frame to the base frame. D is the sum of J Wdd',
    and c is the sum of the first moments, over all bodies beyond a joint.
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
    """Compute generalized forces by Waters' form of the sums of Uicker and Kahn.

    tau_i is the sum of tr(dW_j/dq_i J_j Wdd_j') - g . dW_j/dq_i c_j over all bodies j beyond
    joint i (Balafoutis and Patel 1991, Eq 5.2.9-10). The cost is of order n^2, because Wdd is
    computed by recursion instead of from second derivatives. c is the column (m r, m).
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
    """Run Hollerbach's recursion with 3x3 matrices (Balafoutis and Patel 1991, algorithm 5.2).

    W rotates vectors from body axes to base axes, and sdd is the acceleration of the body origin in
    base axes. D, e and c are the mass-weighted sums of x xdd', xdd and x over all bodies beyond a
    joint, with x measured from the joint origin in body axes. m is the total mass of these bodies.
    The book omits prismatic joints. The motion of a prismatic joint adds terms to sdd, and the
    joint force follows from e.
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


def uicker_kahn(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Evaluate the sums of Uicker and Kahn, at O(n^4) cost.

    See Balafoutis and Patel 1991, Eq 5.2.7-8.
    """
    return efforts(model, q, qd, qdd, f_ext, closed_form_uicker_kahn(model, q))


def closed_form_uicker_kahn(model: Model, q: Position) -> Form:
    """Return the mass matrix D, the Christoffel symbols C and the gravity forces G.

    D_ab = sum tr(W_a J W_b'), C_bc(a) = sum tr(W_a J W_bc') and G_a = -sum g . W_a c. The sums are
    over all bodies. J is the pseudo-inertia of a body, and c is its last column. W maps homogeneous
    coordinates from the body frame to the base frame. W_a and W_bc are the first and second
    derivatives of W with respect to the joint coordinates. If velocities are not rates of
    coordinates, W_bc are the symmetric coefficients in Wdd = sum of W_b qdd_b + sum of W_bc qd_b
    qd_c.
    """
    own, g, W = freedoms(model), Vector((*model.gravity_vector, 0.0)), {WORLD: Matrix.identity(4)}
    first: dict[int, dict[Freedom, Matrix]] = {WORLD: {}}
    second: dict[int, dict[tuple[Freedom, Freedom], Matrix]] = {WORLD: {}}
    D, G = rotors(model), defaultdict[Freedom, Number](float)
    C = defaultdict[tuple[Freedom, Freedom, Freedom], Number](float)
    for j, p, joint, I in model.outward():
        A = homogeneous.Position.of(joint.transform(q[j])).matrix()  # (2.3.2)
        L, J = [l.matrix() for l in screws(joint, q[j])], homogeneous.Inertia.of(I)
        W[j], carried = W[p] @ A, {a: Wa @ A for a, Wa in first[p].items()}  # (dW of 5.2.7)
        first[j] = carried | {a: W[j] @ L[a.k] for a in own[j]}  # (dW of 5.2.7)
        second[j] = {both: Wab @ A for both, Wab in second[p].items()}  # (ddW of 5.2.7)
        second[j] |= {
            (a, b): U @ L[b.k] for a, U in carried.items() for b in own[j]
        }  # (ddW of 5.2.7)
        for a, b in combinations_with_replacement(own[j], 2):
            bend = homogeneous.Velocity.of(bends(joint, q[j])[a.k][b.k]).matrix()
            twice = L[a.k] @ L[b.k] + L[b.k] @ L[a.k]
            second[j][a, b] = W[j] @ (twice * 0.5 + bend)  # (ddW of 5.2.7)
        for a, Wa in first[j].items():
            WaJ = Wa @ J.matrix()  # (dW J of 5.2.7)
            for b, Wb in first[j].items():
                D[a, b] += double_dot(WaJ, Wb.T)  # (D of 5.2.7)
            for (b, c), Wbc in second[j].items():
                C[a, b, c] += double_dot(WaJ, Wbc.T)  # (C of 5.2.7)
            G[a] -= g.dot(Wa @ Vector((*J.h, J.m)))  # (G of 5.2.7)
    symmetric = {key: symbol for (a, b, c), symbol in C.items() for key in ((a, b, c), (a, c, b))}
    return D, symmetric | turning(model, symmetric), by_joint(model, G)


def christoffel(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Compute the generalized forces D qdd + qd C qd + G with Christoffel symbols.

    See Balafoutis and Patel 1991, Eq 5.2.17-18.
    """
    return efforts(model, q, qd, qdd, f_ext, closed_form_christoffel(model, q))


def closed_form_christoffel(model: Model, q: Position) -> Form:
    """Return the mass matrix D, Christoffel symbols C from its derivatives, and gravity forces G.

    See Balafoutis and Patel 1991, Eq 5.2.18. If velocities are rates of coordinates,
    C_bc(a) = (dD_ab/dq_c + dD_ac/dq_b - dD_bc/dq_a) / 2. The motion subspaces S and the composite
    inertia I of all bodies beyond a joint are in base coordinates. D_ab = S_a . I S_b, where I
    belongs to the joint farther from the base. If velocities are not rates of coordinates, D is
    differentiated in the tangent space (`integrate`) and the Boltzmann-Hamel equations apply. Then
    ([a, b] . I S_c + [a, c] . I S_b) / 2 is added to C_bc(a), where [a, b] is the Lie bracket of
    two motion subspaces of one joint.
    """
    S, p, change, bracket = _in_base(model, q)  # (S, I of 5.2.17)
    none = Motion.zero()

    def slope(a: Freedom, b: Freedom, c: Freedom) -> Number:
        """Return dD_ab/dq_c, the derivative of an entry of the mass matrix D."""
        outer = max(a.i, b.i, c.i)
        first, second = change.get((a, c), none), change.get((b, c), none)
        return first.dot(p[outer, b]) + second.dot(p[outer, a])  # (dD of 5.2.18)

    def bracketed(a: Freedom, b: Freedom, c: Freedom) -> Number:
        """Return the scalar product of the Lie bracket [a, b] and the momentum I S_c."""
        return bracket.get((a, b), none).dot(p[max(a.i, c.i), c])

    D, C = rotors(model), {}
    for b, c in pairs(model):
        D[b, c] += S[b].dot(p[c.i, c])  # (D of 5.2.17)
        D[c, b] = D[b, c]
    for a, b, c in triples(model):
        total = slope(a, b, c) + slope(a, c, b) - slope(b, c, a)  # (5.2.18)
        C[a, b, c] = (total + bracketed(a, b, c) + bracketed(a, c, b)) * 0.5  # (5.2.18)
        C[a, c, b] = C[a, b, c]
    return D, C | turning(model, C), gravity_forces(model, q)


class _InBase(NamedTuple):
    """Motion subspaces S in base coordinates, and their derivatives.

    p[i, a] is the momentum I_i S_a of all bodies beyond joint i for a unit velocity of degree of
    freedom a. change[a, c] is the derivative of S_a with respect to q_c, relative to the bodies
    that c moves. If c is closer to the base than a, that derivative is zero and has no entry.
    bracket[a, b] is the Lie bracket of two degrees of freedom of one joint.
    """

    S: dict[Freedom, Motion]
    p: dict[tuple[int, Freedom], Force]
    change: dict[tuple[Freedom, Freedom], Motion]
    bracket: dict[tuple[Freedom, Freedom], Motion]


def _in_base(model: Model, q: Position) -> _InBase:
    S, p, change, bracket = base = _InBase({}, {}, {}, {})
    X0, own, I = body_transforms(model, q), freedoms(model), {WORLD: RigidInertia.zero()}
    for i, _, joint, inertia in model.outward():
        back, rest = X0[i].inverse(), Vector.zero(joint.nv)
        I[i], columns = X0[i].T @ inertia, back @ joint.subspace(q[i])
        S |= dict(zip(own[i], columns.columns, strict=True))
        slopes = joint.slopes(q[i], rest, rest).subspace
        for c, unit in zip(own[i], Matrix.identity(joint.nv).rows, strict=True):
            drift = joint.drift(Vector(unit)).T.rows
            for a in own[i]:
                change[a, c] = back @ slopes[c.k].columns[a.k]
                bracket[a, c] = columns @ Vector(drift[a.k])
    for i, parent, *_ in model.inward():
        I[parent] += I[i]
    p |= {(i, a): I[i] @ S[a] for i, path in paths(model) for a in path}
    change |= {(b, c): S[b].cross(S[c]) for b, c in pairs(model) if b.i != c.i}
    return base
