"""Other forward dynamics by spatial vectors (Featherstone 2008): methods used only by name."""

from collections.abc import Iterator
from dataclasses import dataclass

from chasles.algorithms.spatial.dynamics import accelerations, bias_forces, mass_matrix
from chasles.mathematics.linear import Matrix, Vector, invert_symmetric
from chasles.mathematics.spatial import (
    ArticulatedInertia,
    Force,
    Forces,
    InverseInertia,
    Motion,
    Motions,
    Transform,
)
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def forward_dynamics_mass_matrix(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Solve M qdd = tau - h with the sparse factors of M (Featherstone 2008, chapter 6)."""
    return accelerations(model, mass_matrix(model, q), bias_forces(model, q, qd, f_ext), tau)


def forward_dynamics_assembly_inertia(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """I^A = I_1 + T W T' with W = (T' I_2^-1 T)^-1 (Featherstone 2008, table 7.2, variant 2).

    T are the forces that a joint transmits, instead of the motions S that it allows.
    """
    X, c, T, Ta, Phi, W, z, f, qdd = {}, {}, {}, {}, {}, {}, {}, {}, {}
    v, a = {WORLD: Motion.zero()}, {WORLD: -model.gravity}
    IA, pA = {WORLD: ArticulatedInertia.zero()}, {WORLD: Force.zero()}
    for i, p, joint, I in model.outward():
        X[i], T[i], Ta[i] = joint.transform(q[i]), joint.constraint(q[i]), joint.active(q[i])
        vJ = joint.subspace(q[i]) @ qd[i]
        v[i] = X[i] @ v[p] + vJ
        c[i] = joint.bias(q[i], qd[i]) + v[i].cross(vJ)
        IA[i] = ArticulatedInertia.of(I)
        pA[i] = v[i].cross(I @ v[i]) - f_ext[i]
    for i, p, joint, _ in model.inward():
        Phi[i] = InverseInertia.of_articulated(IA[i])
        W[i] = invert_symmetric(T[i].T @ (Phi[i] @ T[i]))
        f[i] = Ta[i] @ (tau[i] - joint.resistance(qd[i]))
        z[i] = T[i].T @ (c[i] - Phi[i] @ (f[i] - pA[i]))
        F = X[i].T @ T[i]
        IA[p] = IA[p].without(F, F @ -W[i])
        pA[p] += X[i].T @ f[i] + F @ (W[i] @ z[i])
    for i, p, *_ in model.outward():
        carried = X[i] @ a[p]
        f[i] += T[i] @ (W[i] @ (z[i] + T[i].T @ carried))
        a[i] = Phi[i] @ (f[i] - pA[i])
        qdd[i] = Ta[i].T @ (a[i] - carried - c[i])
    return qdd


def forward_dynamics_assembly_inverse(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Phi^A = Phi_1 - Phi_1 T W T' Phi_1 with W = (T' (Phi_1 + Phi_2) T)^-1.

    Featherstone 2008, table 7.2, variant 1, from the tips to the root: Phi_1 is what has been put
    together of the parent so far, Phi_2 all of the child, lam the forces that the joint transmits.
    The world is a body with Phi = 0.
    """
    X, c, T, Ta, F, U, W, z, qdd = {}, {}, {}, {}, {}, {}, {}, {}, {}
    v, a, f = {WORLD: Motion.zero()}, {WORLD: -model.gravity}, {WORLD: Force.zero()}
    Phi, b = {WORLD: InverseInertia.zero()}, {WORLD: -model.gravity}
    for i, p, joint, I in model.outward():
        X[i], T[i], Ta[i] = joint.transform(q[i]), joint.constraint(q[i]), joint.active(q[i])
        vJ = joint.subspace(q[i]) @ qd[i]
        v[i] = X[i] @ v[p] + vJ
        c[i] = joint.bias(q[i], qd[i]) + v[i].cross(vJ)
        Phi[i] = InverseInertia.of(I)
        b[i] = Phi[i] @ (f_ext[i] - v[i].cross(I @ v[i]))
    for i, p, joint, _ in model.inward():
        f[i] = Ta[i] @ (tau[i] - joint.resistance(qd[i]))
        F[i] = X[i].T @ T[i]
        U[i] = Phi[p] @ F[i]
        W[i] = invert_symmetric(F[i].T @ U[i] + T[i].T @ (Phi[i] @ T[i]))
        b[p] -= Phi[p] @ (X[i].T @ f[i])
        z[i] = T[i].T @ (c[i] + X[i] @ b[p] - b[i] - Phi[i] @ f[i])
        Phi[p] = Phi[p].without(U[i], U[i] @ W[i])
        b[p] -= U[i] @ (W[i] @ z[i])
    for i, p, *_ in model.outward():
        f[i] += T[i] @ (W[i] @ (z[i] + U[i].T @ f[p]))
        f[p] -= X[i].T @ f[i]
        a[i] = Phi[i] @ f[i] + b[i]
        qdd[i] = Ta[i].T @ (a[i] - X[i] @ a[p] - c[i])
    return qdd


def forward_dynamics_divide_and_conquer(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Multi-handle assembly (Featherstone 2008, section 7.5).

    A joint joins two pieces of about the same size, each made of two in turn: with the velocities
    known, which are found one after the other, the longest path of operations along a chain grows
    with the logarithm of its length. The world is a body with Phi = 0 that accelerates against
    gravity.
    """
    v, across = {WORLD: Motion.zero()}, {}
    alone = {WORLD: Piece({(WORLD, WORLD): InverseInertia.zero()}, {WORLD: -model.gravity})}
    for i, p, joint, I in model.outward():
        X, vJ, Phi = joint.transform(q[i]), joint.subspace(q[i]) @ qd[i], InverseInertia.of(I)
        v[i] = X @ v[p] + vJ
        alone[i] = Piece({(i, i): Phi}, {i: Phi @ (f_ext[i] - v[i].cross(I @ v[i]))})
        c, Ta = joint.bias(q[i], qd[i]) + v[i].cross(vJ), joint.active(q[i])
        f = Ta @ (tau[i] - joint.resistance(qd[i]))
        across[i] = Across(i, p, X, joint.constraint(q[i]), Ta, c, f)

    def assembled(top: int, joints: frozenset[int]) -> Piece:
        if not joints:
            return alone[top]
        i, beyond = halves(model, joints)
        first, second = assembled(top, joints - beyond - {i}), assembled(i, beyond)
        return join(first, second, across[i], handles(model, joints))

    return dict(taken_apart(assembled(WORLD, frozenset(across)), {}))


@dataclass(frozen=True)
class Across:
    """Joint i of parent p: X to body coordinates, T and T_a, bias c, and an actuator's force f."""

    i: int
    p: int
    X: Transform
    T: Forces
    Ta: Forces
    c: Motion
    f: Force


@dataclass(frozen=True)
class Piece:
    """Connected bodies: handle h accelerates by b_h and by Phi[h, k] f_k for every force f_k."""

    Phi: dict[tuple[int, int], InverseInertia]
    b: dict[int, Motion]
    joined: "Joined | None" = None

    def acceleration(self, h: int, f: dict[int, Force]) -> Motion:
        total = self.b[h]
        for k, force in f.items():
            total = total + self.Phi[h, k] @ force
        return total


@dataclass(frozen=True)
class Joined:
    """Two pieces and their joint, which transmits T lam with lam = W (beta + sum of U_h' f_h)."""

    first: Piece
    second: Piece
    joint: Across
    U: dict[int, Motions]
    W: Matrix
    beta: Vector


def halves(model: Model, joints: frozenset[int]) -> tuple[int, frozenset[int]]:
    """The joint that divides the joints of a connected piece best, and those beyond it."""
    beyond: dict[int, frozenset[int]] = {}
    for i in sorted(joints, reverse=True):
        children = [k for k in model.children[i] if k in joints]
        beyond[i] = frozenset(children).union(*(beyond[k] for k in children))
    best = min(joints, key=lambda i: (abs(2 * len(beyond[i]) + 1 - len(joints)), i))
    return best, beyond[best]


def handles(model: Model, joints: frozenset[int]) -> set[int]:
    """The bodies between some joints that other joints hold too."""
    ends = joints | {model.bodies[i].parent for i in joints}
    return {h for h in ends if not joints.issuperset({h, *model.children[h]} - {WORLD})}


def join(first: Piece, second: Piece, joint: Across, kept: set[int]) -> Piece:
    """Two pieces joined (Eq 7.57 to 7.63): on the first, which has the parent, forces act back."""
    X, i, p = joint.X, joint.i, joint.p
    on_parent, on_child = X.T @ joint.T, joint.T * -1.0
    U = {h: first.Phi[h, p] @ on_parent for h in first.b}
    U |= {h: second.Phi[h, i] @ on_child for h in second.b}
    W = invert_symmetric(on_parent.T @ U[p] + on_child.T @ U[i])
    b = {h: bias - first.Phi[h, p] @ (X.T @ joint.f) for h, bias in first.b.items()}
    b |= {h: bias + second.Phi[h, i] @ joint.f for h, bias in second.b.items()}
    beta = joint.T.T @ (joint.c + X @ b[p] - b[i])
    whole, K, Phi = first.Phi | second.Phi, {h: U[h] @ W for h in U}, {}
    for h, k in ((h, k) for h in kept for k in kept if h <= k):
        Phi[h, k] = whole.get((h, k), InverseInertia.zero()).without(U[h], K[k])
        Phi[k, h] = Phi[h, k].T
    made = Joined(first, second, joint, {h: U[h] for h in kept}, W, beta)
    return Piece(Phi, {h: b[h] - K[h] @ beta for h in kept}, made)


def taken_apart(piece: Piece, f: dict[int, Force]) -> Iterator[tuple[int, Vector]]:
    """qdd of the joints within a piece, from the forces on its handles: taken apart again."""
    if piece.joined is None:
        return
    made, joint = piece.joined, piece.joined.joint
    first, second, i, p = made.first, made.second, joint.i, joint.p
    lam = made.W @ sum((made.U[h].T @ force for h, force in f.items()), made.beta)
    transmitted = joint.f + joint.T @ lam
    on_first = {h: f.get(h, Force.zero()) for h in first.b}
    on_second = {h: f.get(h, Force.zero()) for h in second.b}
    on_first[p] -= joint.X.T @ transmitted
    on_second[i] += transmitted
    a, a_p = second.acceleration(i, on_second), first.acceleration(p, on_first)
    yield i, joint.Ta.T @ (a - joint.X @ a_p - joint.c)
    yield from taken_apart(first, on_first)
    yield from taken_apart(second, on_second)
