"""Forward dynamics by assembling articulated bodies (Featherstone 2008, sections 7.4 and 7.5).

A piece is a set of connected bodies, initially a single body with an invertible inertia. A hinge
connects two pieces by one joint, or by several joints with massless links between them. The handles
of a piece are the bodies on which other pieces and loop joints exert forces.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from chasles.algorithms.closed_loops.dynamics import (
    closing,
    health,
)
from chasles.algorithms.homogeneous import (
    across,
    around,
    loop_coordinates,
)
from chasles.mathematics.linear import (
    Matrix,
    Vector,
    diagonal,
    factor_ltdl,
    invert_symmetric,
    solve_ltdl,
)
from chasles.mathematics.spatial import (
    ArticulatedInertia,
    Force,
    Forces,
    InverseInertia,
    Motion,
    Motions,
    RigidInertia,
    Transform,
)
from chasles.model.joints.contract import LOADS, Joint
from chasles.model.model import WORLD, Loop, Model
from chasles.model.spaces import (
    ABSENT,
    Effort,
    Health,
    Multipliers,
    Position,
    Velocity,
    Wrenches,
    stack,
)
from chasles.model.validate import is_massless


@dataclass(frozen=True)
class Hinge:
    """Joints between body i and its nearest ancestor p with inertia.

    X is the transform from p to i. S and c describe the acceleration: a_i = X a_p + S qdd + c. T
    spans the constraint forces. If the constraint forces are unknown, if a joint has armature, or
    if there are massless links in between, T spans all six directions. Ta satisfies Ta' S = 1. f is
    a wrench for which S' f equals the generalized forces at the joints. `joints` lists the joints
    in the order of qdd.
    """

    i: int
    p: int
    X: Transform
    S: Motions
    c: Motion
    T: Forces
    Ta: Forces
    f: Force
    armature: Vector
    joints: tuple[tuple[int, int], ...]

    def compliance(self, Phi: Matrix) -> Matrix:
        """Return the matrix W that maps relative accelerations to the multipliers of a hinge.

        The hinge transmits the force T lam, where lam are the multipliers. Phi is T' (Phi_1 +
        Phi_2) T, where Phi_1 and Phi_2 are the inverse inertias of the bodies on both sides. W is
        Phi^-1, unless T spans all six directions. In that case the motion subspace S is removed:
        W = Y - Y S (S' Y S + armature)^-1 S' Y with Y = Phi^-1.
        """
        Y = invert_symmetric(Phi)
        if self.T.columns != LOADS:
            return Y
        S = [Y @ Vector(tuple(s)) for s in self.S.columns]
        D = [[Vector(tuple(s)).dot(y) for y in S] for s in self.S.columns]
        held = invert_symmetric(Matrix(tuple(map(tuple, D))) + diagonal(self.armature))
        given = Matrix(tuple(y.entries for y in S))
        return Y - given.T @ (held @ given)

    def accelerations(self, a: Motion, a_p: Motion) -> Iterator[tuple[int, Vector]]:
        """Yield the index and the acceleration qdd of each joint of the hinge."""
        rates, start = self.Ta.T @ (a - self.X @ a_p - self.c), 0
        for i, size in self.joints:
            yield i, Vector(rates.entries[start : start + size])
            start += size


@dataclass(frozen=True)
class Parts:
    """Bodies with inertia, the forces on them, and the hinges to their parents.

    Parents precede children.
    """

    hinges: dict[int, Hinge]
    inertias: dict[int, RigidInertia]
    loads: dict[int, Force]
    children: dict[int, list[int]] = field(default_factory=dict)


def parts(model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT) -> Parts:
    """Return the bodies and hinges of a tree, where joints at a massless link form one hinge."""
    v, found = {WORLD: Motion.zero()}, Parts({}, {}, {WORLD: Force.zero()})
    passing: dict[int, Hinge] = {}
    for i, p, joint, I in model.outward():
        X, S = joint.transform(q[i]), joint.subspace(q[i])
        vJ, Ta = S @ qd[i], joint.active(q[i])
        v[i] = X @ v[p] + vJ
        c, force = joint.bias(q[i], qd[i]) + v[i].cross(vJ), tau[i] - joint.resistance(qd[i])
        plain = not any(joint.armature) and type(joint).constraint is not Joint.constraint
        T = joint.constraint(q[i]) if plain else Forces(LOADS)
        own = Hinge(i, p, X, S, c, T, Ta, Ta @ force, joint.armature, ((i, joint.nv),))
        if p in passing:
            own = _in_series(passing[p], own, force)
        if is_massless(I):
            found.loads[own.p] += own.X.T @ f_ext[i]
            passing[i] = replace(own, f=own.f + own.Ta @ (own.S.T @ f_ext[i]))
            continue
        found.hinges[i], found.inertias[i] = own, I
        found.loads[i] = f_ext[i] - v[i].cross(I @ v[i])
        found.children.setdefault(own.p, []).append(i)
        found.children.setdefault(i, [])
    return found


def _in_series(first: Hinge, second: Hinge, force: Vector) -> Hinge:
    """Combine two joints in series, connected by a massless link, into one joint."""
    S = Motions((second.X @ first.S).columns + second.S.columns)
    dual = Forces(tuple(Force(s.angular, s.linear) for s in S.columns))
    Ta = dual @ invert_symmetric(dual.T @ S)
    efforts = Vector((*(first.S.T @ first.f), *force))
    return Hinge(
        second.i,
        first.p,
        second.X @ first.X,
        S,
        second.X @ first.c + second.c,
        Forces(LOADS),
        Ta,
        Ta @ efforts,
        Vector((*first.armature, *second.armature)),
        first.joints + second.joints,
    )


def forward_dynamics_assembly_inertia(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Compute qdd by assembling articulated inertias (Featherstone 2008, table 7.2, variant 2).

    I^A = I_1 + T W T' with W = (T' I_2^-1 T)^-1. I_1 belongs to the parent with the children
    assembled so far, and I_2 to the child with its whole subtree. T, which spans the constraint
    forces of their joint, replaces the motion subspace S.
    """
    Phi, W, z, f = {}, {}, {}, {}
    qdd: dict[int, Vector] = {}
    a, whole = {WORLD: -model.gravity}, parts(model, q, qd, tau, f_ext)
    IA = {i: ArticulatedInertia.of(I) for i, I in whole.inertias.items()}
    IA[WORLD] = ArticulatedInertia.zero()
    pA = {i: -load for i, load in whole.loads.items()}
    for i, hinge in reversed(whole.hinges.items()):
        X, T, p = hinge.X, hinge.T, hinge.p
        Phi[i] = InverseInertia.of_articulated(IA[i])
        W[i] = hinge.compliance(T.T @ (Phi[i] @ T))
        z[i] = T.T @ (hinge.c - Phi[i] @ (hinge.f - pA[i]))
        F = X.T @ T
        IA[p] = IA[p].without(F, F @ -W[i])
        pA[p] += X.T @ hinge.f + F @ (W[i] @ z[i])
    for i, hinge in whole.hinges.items():
        T, carried = hinge.T, hinge.X @ a[hinge.p]
        f[i] = hinge.f + T @ (W[i] @ (z[i] + T.T @ carried))
        a[i] = Phi[i] @ (f[i] - pA[i])
        qdd |= dict(hinge.accelerations(a[i], a[hinge.p]))
    return qdd


def forward_dynamics_assembly_inverse(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Compute qdd by assembling inverse inertias (Featherstone 2008, table 7.2, variant 1).

    The recursion runs from the tips to the root: Phi^A = Phi_1 - Phi_1 T W T' Phi_1 with W = (T'
    (Phi_1 + Phi_2) T)^-1. Phi_1 belongs to the parent with the children assembled so far, and Phi_2
    to the child with its whole subtree. The world is a body with Phi = 0.
    """
    U, W, z = {}, {}, {}
    qdd: dict[int, Vector] = {}
    a, f = {WORLD: -model.gravity}, {WORLD: Force.zero()}
    Phi, b = {WORLD: InverseInertia.zero()}, {WORLD: -model.gravity}
    whole = parts(model, q, qd, tau, f_ext)
    for i, I in whole.inertias.items():
        Phi[i] = InverseInertia.of(I)
        b[i] = Phi[i] @ whole.loads[i]
    for i, hinge in reversed(whole.hinges.items()):
        X, T, p = hinge.X, hinge.T, hinge.p
        F = X.T @ T
        U[i] = Phi[p] @ F
        W[i] = hinge.compliance(F.T @ U[i] + T.T @ (Phi[i] @ T))
        b[p] -= Phi[p] @ (X.T @ hinge.f)
        z[i] = T.T @ (hinge.c + X @ b[p] - b[i] - Phi[i] @ hinge.f)
        Phi[p] = Phi[p].without(U[i], U[i] @ W[i])
        b[p] -= U[i] @ (W[i] @ z[i])
    for i, hinge in whole.hinges.items():
        p = hinge.p
        f[i] = hinge.f + hinge.T @ (W[i] @ (z[i] + U[i].T @ f[p]))
        f[p] -= hinge.X.T @ f[i]
        a[i] = Phi[i] @ f[i] + b[i]
        qdd |= dict(hinge.accelerations(a[i], a[p]))
    return qdd


def forward_dynamics_divide_and_conquer(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Compute qdd by multi-handle assembly (Featherstone 2008, section 7.5).

    Sets of connected bodies are assembled recursively, at joints that connect two sets of about
    equal size. Velocities are first computed by a sequential recursion. After that, the longest
    sequence of dependent operations grows with the logarithm of the chain length. The world is a
    body with Phi = 0 that accelerates against gravity.
    """
    return dict(taken_apart(assembled(model, parts(model, q, qd, tau, f_ext), set()), {}))


def constrained_dynamics_divide_and_conquer(
    model: Model,
    q: Position,
    qd: Velocity,
    tau: Effort,
    f_ext: Wrenches = ABSENT,
    *,
    stabilization: float = 0.0,
) -> tuple[Velocity, Multipliers, Health]:
    """Assemble the tree with handles at loop joints, then close the loops.

    See Featherstone 2008, section 7.5. A handle is a body on which a loop joint exerts a force. The
    entries of A = K H^-1 K' are inverse inertias between handles. The multipliers solve A lam = k -
    K qdd, where qdd are the accelerations of the open tree.
    """
    K, k, stray = closing(model, q, qd, stabilization)
    pushes = [push for loop in model.loops for push in loop_pushes(model, loop, q)]
    pushes = [pushes[r] for r in model.closure.rows]
    whole = assembled(model, parts(model, q, qd, tau, f_ext), {h for push in pushes for h in push})
    loose = dict(taken_apart(whole, dict.fromkeys(whole.b, Force.zero())))
    moved = [whole.moved(push) for push in pushes]
    A = Matrix(
        tuple(
            tuple(sum((force.dot(a[h]) for h, force in push.items() if h in a), 0.0) for a in moved)
            for push in pushes
        )
    )
    factors = factor_ltdl(A.rows)
    lam = solve_ltdl(*factors, k - K @ stack(loose, model.in_tree_order))
    total = dict.fromkeys(whole.b, Force.zero())
    for push, size in zip(pushes, lam, strict=True):
        total |= {h: total[h] + force * size for h, force in push.items()}
    margins = [pivot / A[r, r] for r, pivot in enumerate(factors[1])]
    return dict(taken_apart(whole, total)), lam, health(model, q, margins, stray)


def loop_pushes(model: Model, loop: Loop, q: Position) -> list[dict[int, Force]]:
    """Return the forces on the two links of a loop joint due to each of its unit constraint forces.

    See Featherstone 2008, Eq 8.28.
    """
    P, S = loop.predecessor, loop.successor
    M = around(model, loop, q)
    X = across(loop, M).transform()
    found = []
    for f in loop.joint.constraint(loop_coordinates(loop, M)).columns:
        push = {S.body: S.placement.T @ f}
        push[P.body] = push.get(P.body, Force.zero()) - P.placement.T @ (X.T @ f)
        found.append({h: force for h, force in push.items() if h != WORLD})
    return found


# Subassemblies -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """Set of connected bodies, described by the accelerations of its handles.

    A handle is a body on which another set of bodies or a loop joint exerts a force. If forces f_k
    act on the handles k, the acceleration of handle h is b[h] + sum over k of Phi[h, k] f_k.
    """

    Phi: dict[tuple[int, int], InverseInertia]
    b: dict[int, Motion]
    joined: "Joined | None" = None

    def acceleration(self, h: int, f: Mapping[int, Force]) -> Motion:
        total = self.b[h]
        for k, force in f.items():
            total = total + self.Phi[h, k] @ force
        return total

    def moved(self, f: Mapping[int, Force]) -> dict[int, Motion]:
        """Return the change in the acceleration of every handle due to forces on the handles."""
        return {h: self.acceleration(h, f) - self.b[h] for h in self.b}


@dataclass(frozen=True)
class Joined:
    """Two sets of connected bodies, joined by a hinge.

    The hinge transmits the force T lam (see `Hinge`), where lam = W (beta + sum of U_h' f_h), and
    f_h is the external force on body h.
    """

    first: Piece
    second: Piece
    hinge: Hinge
    U: dict[int, Motions]
    W: Matrix
    beta: Vector


def assembled(model: Model, whole: Parts, held: set[int]) -> Piece:
    """Assemble all bodies and the world into one `Piece` whose handles are the bodies in `held`."""
    alone = {WORLD: Piece({(WORLD, WORLD): InverseInertia.zero()}, {WORLD: -model.gravity})}
    for i, I in whole.inertias.items():
        Phi = InverseInertia.of(I)
        alone[i] = Piece({(i, i): Phi}, {i: Phi @ whole.loads[i]})

    def made(top: int, joints: frozenset[int]) -> Piece:
        if not joints:
            return alone[top]
        i, beyond = halves(whole, joints)
        first, second = made(top, joints - beyond - {i}), made(i, beyond)
        return join(first, second, whole.hinges[i], handles(whole, joints, held))

    return made(WORLD, frozenset(whole.hinges))


def halves(whole: Parts, joints: frozenset[int]) -> tuple[int, frozenset[int]]:
    """Return the joint that splits connected bodies most evenly, and all joints beyond it."""
    beyond: dict[int, frozenset[int]] = {}
    for i in sorted(joints, reverse=True):
        children = [k for k in whole.children[i] if k in joints]
        beyond[i] = frozenset(children).union(*(beyond[k] for k in children))
    best = min(joints, key=lambda i: (abs(2 * len(beyond[i]) + 1 - len(joints)), i))
    return best, beyond[best]


def handles(whole: Parts, joints: frozenset[int], held: set[int]) -> set[int]:
    """Return the handles among the bodies that the given joints connect.

    A body is a handle if it is in `held` or is also connected to other joints.
    """
    ends = {*joints, *(whole.hinges[i].p for i in joints)}
    inner = {h for h in ends if joints.issuperset({h, *whole.children[h]} - {WORLD})}
    return (ends - inner) | (ends & held)


def join(first: Piece, second: Piece, hinge: Hinge, kept: set[int]) -> Piece:
    """Join two sets of connected bodies at a hinge whose parent body belongs to `first`.

    See Featherstone 2008, Eq 7.57 to 7.63.
    """
    X, i, p = hinge.X, hinge.i, hinge.p
    on_parent, on_child = X.T @ hinge.T, hinge.T * -1.0
    U = {h: first.Phi[h, p] @ on_parent for h in first.b}
    U |= {h: second.Phi[h, i] @ on_child for h in second.b}
    W = hinge.compliance(on_parent.T @ U[p] + on_child.T @ U[i])
    b = {h: bias - first.Phi[h, p] @ (X.T @ hinge.f) for h, bias in first.b.items()}
    b |= {h: bias + second.Phi[h, i] @ hinge.f for h, bias in second.b.items()}
    beta = hinge.T.T @ (hinge.c + X @ b[p] - b[i])
    whole, K, Phi = first.Phi | second.Phi, {h: U[h] @ W for h in U}, {}
    for h, k in ((h, k) for h in kept for k in kept if h <= k):
        Phi[h, k] = whole.get((h, k), InverseInertia.zero()).without(U[h], K[k])
        Phi[k, h] = Phi[h, k].T
    made = Joined(first, second, hinge, {h: U[h] for h in kept}, W, beta)
    return Piece(Phi, {h: b[h] - K[h] @ beta for h in kept}, made)


def taken_apart(piece: Piece, f: Mapping[int, Force]) -> Iterator[tuple[int, Vector]]:
    """Yield qdd for all joints of an assembly of bodies, given the forces on its handles."""
    if piece.joined is None:
        return
    made, hinge = piece.joined, piece.joined.hinge
    first, second, i, p = made.first, made.second, hinge.i, hinge.p
    lam = made.W @ sum((made.U[h].T @ force for h, force in f.items()), made.beta)
    transmitted = hinge.f + hinge.T @ lam
    on_first = {h: f.get(h, Force.zero()) for h in first.b}
    on_second = {h: f.get(h, Force.zero()) for h in second.b}
    on_first[p] -= hinge.X.T @ transmitted
    on_second[i] += transmitted
    a, a_p = second.acceleration(i, on_second), first.acceleration(p, on_first)
    yield from hinge.accelerations(a, a_p)
    yield from taken_apart(first, on_first)
    yield from taken_apart(second, on_second)
