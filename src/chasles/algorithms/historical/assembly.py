"""Assembly of articulated bodies (Featherstone 2008, sections 7.4 and 7.5).

An assembly joins the bodies of a tree at its hinges. The first part of an assembly computes
inertias from the configuration alone, and returns the second part: a function that computes the
accelerations due to given loads. This function can be called several times, with different loads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Vector, invert_symmetric
from chasles.mathematics.spatial import (
    ArticulatedInertia,
    Force,
    Forces,
    InverseInertia,
    Motion,
    RigidInertia,
    Transform,
)
from chasles.model.model import WORLD


@dataclass(frozen=True)
class Hinge:
    """Joint between body i and its parent p.

    X is the transform from p to i. T spans the constraint forces of the joint, or all six
    directions if the constraint forces are unknown, if the joint has armature, or if its
    acceleration is prescribed. `free` lists the motions that T resists but the joint allows, each
    with its armature. Ta satisfies Ta' S = 1, where S spans the unknown relative motions.
    """

    i: int
    p: int
    X: Transform
    T: Forces
    Ta: Forces
    free: tuple[tuple[Motion, Number], ...]

    def compliance(self, Phi: Matrix) -> Matrix:
        """Return the matrix W that maps relative accelerations to the multipliers of the hinge.

        The hinge transmits the force T lam, where lam are the multipliers. Phi is T' (Phi_1 +
        Phi_2) T, where Phi_1 and Phi_2 are the inverse inertias of the bodies on both sides. W is
        Phi^-1, from which the free motions s are removed one after the other: W - W s (s' W s +
        armature)^-1 s' W.
        """
        W = invert_symmetric(Phi)
        for motion, armature in self.free:
            s = Vector(tuple(motion))
            u = W @ s
            k = u * (1.0 / (s.dot(u) + armature))
            W = W - Matrix(tuple((k * x).entries for x in u))
        return W


@dataclass(frozen=True)
class Tree:
    """Bodies, each with an invertible inertia, and the hinges to their parents.

    Parents precede children.
    """

    inertias: dict[int, RigidInertia]
    hinges: dict[int, Hinge]

    def pushed(self, tau: Mapping[int, Vector], f: Mapping[int, Force]) -> dict[int, Force]:
        """Return the forces on all bodies due to generalized forces tau and forces f on bodies.

        A hinge exerts the force Ta tau on its body and the opposite force on the parent.
        """
        total = dict.fromkeys((WORLD, *self.hinges), Force.zero()) | dict(f)
        for i, effort in tau.items():
            hinge = self.hinges[i]
            active = hinge.Ta @ effort
            total[i] += active
            total[hinge.p] -= hinge.X.T @ active
        return total

    def rates(self, a: Mapping[int, Motion], c: Mapping[int, Motion]) -> dict[int, Vector]:
        """Return qdd for each hinge, given the accelerations of the bodies (see `Loads`)."""
        return {
            i: hinge.Ta.T @ (a[i] - hinge.X @ a[hinge.p] - c[i]) for i, hinge in self.hinges.items()
        }


@dataclass(frozen=True)
class Loads:
    """Causes of the accelerations of a tree.

    f are the forces on the bodies, including those of the joint actuators (see `Tree.pushed`), c
    are the accelerations across the hinges for qdd = 0, and `world` is the acceleration of the
    world.
    """

    f: Mapping[int, Force]
    c: Mapping[int, Motion]
    world: Motion


Respond = Callable[[Loads], dict[int, Motion]]
"""Function that returns the accelerations of the bodies and of the world due to loads."""


def of_inertias(tree: Tree) -> Respond:
    """Assemble articulated inertias (Featherstone 2008, table 7.2, variant 2).

    I^A = I_1 + T W T' with W = (T' I_2^-1 T)^-1. I_1 belongs to the parent with the children
    assembled so far, and I_2 to the child with its whole subtree. T spans the constraint forces of
    the joint between parent and child, and replaces the motion subspace S.
    """
    Phi, W, K = {}, {}, {}
    IA = {i: ArticulatedInertia.of(I) for i, I in tree.inertias.items()}
    IA[WORLD] = ArticulatedInertia.zero()
    for i, hinge in reversed(tree.hinges.items()):
        T, p = hinge.T, hinge.p
        Phi[i] = InverseInertia.of_articulated(IA[i])
        W[i] = hinge.compliance(T.T @ (Phi[i] @ T))
        F = hinge.X.T @ T
        K[i] = F @ W[i]
        IA[p] = IA[p].without(F * -1.0, K[i])

    def respond(loads: Loads) -> dict[int, Motion]:
        lam, a = {}, {WORLD: loads.world}
        pA = {i: -f for i, f in loads.f.items()}
        for i, hinge in reversed(tree.hinges.items()):
            z = hinge.T.T @ (loads.c[i] + Phi[i] @ pA[i])
            lam[i] = W[i] @ z
            pA[hinge.p] += K[i] @ z
        for i, hinge in tree.hinges.items():
            lam[i] += K[i].T @ a[hinge.p]
            a[i] = Phi[i] @ (hinge.T @ lam[i] - pA[i])
        return a

    return respond


def of_inverses(tree: Tree, order: Iterable[int]) -> Respond:
    """Assemble inverse inertias of pieces with several handles (Featherstone 2008, section 7.5).

    A piece is a set of connected bodies, initially a single body. Its handles are the bodies at
    which it will be joined to other pieces. If forces f_k act on the handles k, the acceleration of
    handle h is b[h] + sum over k of Phi[h, k] f_k. Hinges are joined in the given order (Eq 7.57 to
    7.63). The hinge to body i transmits the force T lam with lam = W beta + sum of K[h]' f_h, where
    f_h are the forces on the handles of the joined piece. The world is a body with Phi = 0.
    """
    Phi = {(i, i): InverseInertia.of(I) for i, I in tree.inertias.items()}
    Phi[WORLD, WORLD] = InverseInertia.zero()
    alone, piece = {i: Phi[i, i] for i, _ in Phi}, {i: {i} for i, _ in Phi}
    left = [end for i, hinge in tree.hinges.items() for end in (i, hinge.p)]
    own, F, W, K = {}, {}, {}, {}
    for i in order:
        hinge = tree.hinges[i]
        T, p = hinge.T, hinge.p
        F[i] = hinge.X.T @ T
        own[i] = {h: Phi[i, h] for h in piece[i]}
        U = {h: Phi[h, p] @ F[i] for h in piece[p]}
        U |= {h: Phi[h, i] @ (T * -1.0) for h in piece[i]}
        W[i] = hinge.compliance(F[i].T @ U[p] + (T * -1.0).T @ U[i])
        left.remove(i)
        left.remove(p)
        K[i] = {h: u @ W[i] for h, u in U.items() if h in left}
        for h, k in ((h, k) for h in K[i] for k in K[i] if h <= k):
            Phi[h, k] = Phi.get((h, k), InverseInertia.zero()).without(U[h], K[i][k])
            Phi[k, h] = Phi[h, k].T
        piece |= {h: set(K[i]) for h in K[i]}

    def respond(loads: Loads) -> dict[int, Motion]:
        a, free, lam, f = {WORLD: loads.world}, {}, {}, dict.fromkeys(alone, Force.zero())
        b = {i: alone[i] @ force for i, force in loads.f.items()} | {WORLD: loads.world}
        for i, k in K.items():
            hinge = tree.hinges[i]
            beta = hinge.T.T @ (loads.c[i] + hinge.X @ b[hinge.p] - b[i])
            free[i], lam[i] = b[i], W[i] @ beta
            for h in k:
                b[h] -= k[h] @ beta
        for i, k in reversed(K.items()):
            lam[i] = sum((k[h].T @ f[h] for h in k), lam[i])
            f[i] += tree.hinges[i].T @ lam[i]
            f[tree.hinges[i].p] -= F[i] @ lam[i]
            a[i] = sum((phi @ f[h] for h, phi in own[i].items()), free[i])
        return a

    return respond


def from_tips(tree: Tree) -> Iterator[int]:
    """Yield the hinges from the tips to the root, so that each piece has only one handle.

    See Featherstone 2008, table 7.2, variant 1.
    """
    return reversed(tree.hinges)


def in_halves(tree: Tree) -> Iterator[int]:
    """Yield the hinges in an order that joins pieces of about equal size.

    The longest sequence of dependent operations then grows with the logarithm of the chain length.
    """

    def order(joints: frozenset[int]) -> Iterator[int]:
        if joints:
            i, beyond = halves(tree, joints)
            yield from order(joints - beyond - {i})
            yield from order(beyond)
            yield i

    return order(frozenset(tree.hinges))


def halves(tree: Tree, joints: frozenset[int]) -> tuple[int, frozenset[int]]:
    """Return the hinge that splits connected bodies most evenly, and all hinges beyond it."""
    beyond: dict[int, frozenset[int]] = dict.fromkeys(joints, frozenset())
    for i in sorted(joints, reverse=True):
        p = tree.hinges[i].p
        if p in joints:
            beyond[p] |= beyond[i] | {i}
    best = min(joints, key=lambda i: (abs(2 * len(beyond[i]) + 1 - len(joints)), i))
    return best, beyond[best]
