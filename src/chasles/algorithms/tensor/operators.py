"""Links along base axes, and the operators of Rodriguez and Kreutz that join them.

Motions at one origin become those at another by Phi', forces go back by Phi: along common axes both
are a shift. A mass matrix H Phi I Phi' H' then reads as the covariance of what a filter of Kalman's
measures, link by link from the tips inward, and has the factors of one.
"""

from itertools import pairwise
from typing import NamedTuple

from chasles.algorithms.spatial.kinematics import body_transforms
from chasles.mathematics.linear import Matrix, Vector, diagonal, invert_symmetric
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import ArticulatedInertia, Forces, Motions, RigidInertia, Transform
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Blocks, JointMatrix, Position


def transition(a: Vector, b: Vector) -> Transform:
    """Phi'(a, b), from motions at the point a to those at b; its transpose is Phi (5.2.32)."""
    return Transform(Rotation(), b - a)  # (5.2.32)


class Links(NamedTuple):
    """Every body along base axes and about its own origin.

    turn: from base axes to the body's own, where joints have their numbers. Phi: the transition
    from its parent, Phi'(p, i). H: the freedoms of its joint (H' in the book). I: its inertia.
    """

    turn: dict[int, Transform]
    Phi: dict[int, Transform]
    H: dict[int, Motions]
    I: dict[int, RigidInertia]


def links(model: Model, q: Position) -> Links:
    """Return all bodies where they are at q."""
    W = body_transforms(model, q)
    found = Links({}, {}, {}, {})
    for i, p, joint, I in model.outward():
        turn = Transform(W[i].E, Vector.zero())
        found.turn[i], found.Phi[i] = turn, transition(W[p].r, W[i].r)
        found.H[i] = turn.inverse() @ joint.subspace(q[i])  # (z of 5.2.34a)
        found.I[i] = turn.T @ I  # (5.2.31)
    return found


def gains(model: Model, bodies: Links) -> tuple[dict[int, Forces], dict[int, Matrix]]:
    """G, what a joint's force passes on inward, and D, the inertia that the joint feels.

    The Riccati recursion for P, the articulated inertia of a link with all that it carries. D is H
    P H', with the armature instead of noise, and G = P H' D^-1; what the joint leaves of P goes on
    to the parent (Rodriguez, Kreutz 1988).
    """
    (_, Phi, H, I), G, D = bodies, {}, {}
    P = {i: ArticulatedInertia.of(inertia) for i, inertia in I.items()}
    P[WORLD] = ArticulatedInertia.zero()
    for i, p, joint, _ in model.inward():
        U = P[i] @ H[i]  # (D of 6.2.18)
        D[i] = H[i].T @ U + diagonal(joint.armature)  # (D of 6.2.18)
        G[i] = U @ invert_symmetric(D[i])  # (L of 6.2.18)
        P[p] += Phi[i].T @ P[i].without(U, G[i])  # (L of 6.2.18)
    return G, D


def congruence(A: JointMatrix, D: JointMatrix) -> Blocks:
    """A D A' by blocks, of a D that has them on its diagonal only."""
    M = Blocks()
    for k, _ in D:
        column = {i: block for (i, c), block in A.items() if c == k}
        for i, left in column.items():
            scaled = left @ D[k, k]  # (6.2.18, 6.2.19)
            for j in (j for j in column if j <= i):
                block = scaled @ column[j].T  # (6.2.18, 6.2.19)
                M[i, j] = M[i, j] + block if (i, j) in M else block  # (6.2.18, 6.2.19)
    return M | {(j, i): block.T for (i, j), block in M.items() if i != j}


def operator_factors(model: Model, q: Position) -> tuple[JointMatrix, JointMatrix, JointMatrix]:
    """A, B, D with M = A D A', M^-1 = B' D^-1 B, A B = 1 (Rodriguez and Kreutz 1988).

    A = 1 + H Psi L and B = 1 - H Phi L (Balafoutis and Patel 1991, Eq 6.2.18-19), which have a
    block for each joint and each joint inward of it; D has the inertia that each joint feels. Psi
    passes on the force of a joint, Phi what is left of it after the joints on the way have given
    in: there the book's Phi is not that of its algorithm 5.5, which here is Psi.
    """
    _, Phi, H, _ = bodies = links(model, q)
    G, D = gains(model, bodies)
    A, B = Blocks(), Blocks()
    for i, _, joint, _ in model.outward():
        A[i, i] = B[i, i] = Matrix.identity(joint.nv)
        passed, left = G[i], G[i]
        for child, j in pairwise(model.support(i)):
            passed, left = Phi[child].T @ passed, Phi[child].T @ left  # (6.2.18, 6.2.19)
            A[j, i], B[j, i] = H[j].T @ passed, -(H[j].T @ left)  # (6.2.18, 6.2.19)
            left += G[j] @ B[j, i]  # (6.2.19)
    return A, B, {(i, i): block for i, block in D.items()}
