"""Links in base axes, and the spatial operators of Rodriguez and Kreutz between them.

Phi' maps motions from one origin to another, and Phi maps forces back. In common axes, both are
translations. The mass matrix H Phi I Phi' H' then has the form of the innovations covariance of a
Kalman filter that runs link by link from the tips to the base. The mass matrix is factored like
this covariance.
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
    """Return Phi'(a, b), which maps motions at point a to motions at b.

    The transpose of the result is Phi (Balafoutis and Patel 1991, Eq 5.2.32).
    """
    return Transform(Rotation(), b - a)  # (5.2.32)


class Links(NamedTuple):
    """Motion subspaces and inertias of every body, in base axes and about the body origin.

    `turn` is the rotation from base axes to body axes. Phi is the transition from the parent
    (Phi'(p, i) in the book). H is the motion subspace of the joint (H' in the book). I is the
    inertia.
    """

    turn: dict[int, Transform]
    Phi: dict[int, Transform]
    H: dict[int, Motions]
    I: dict[int, RigidInertia]


def links(model: Model, q: Position) -> Links:
    """Compute the `Links` of a model at the configuration q."""
    W = body_transforms(model, q)
    found = Links({}, {}, {}, {})
    for i, p, joint, I in model.outward():
        turn = Transform(W[i].E, Vector.zero())
        found.turn[i], found.Phi[i] = turn, transition(W[p].r, W[i].r)
        found.H[i] = turn.inverse() @ joint.subspace(q[i])  # (z of 5.2.34a)
        found.I[i] = turn.T @ I  # (5.2.31)
    return found


def gains(model: Model, bodies: Links) -> tuple[dict[int, Forces], dict[int, Matrix]]:
    """Return the gains G, which transmit joint forces to parents, and the joint-space inertias D.

    P is the articulated inertia of a link's subtree, computed by a Riccati recursion. In the book's
    notation, D is H P H' plus the armature, which plays the role of measurement noise in a Kalman
    filter, and G = P H' D^-1. H' is the motion subspace of the joint. The inertia that the joint
    transmits is added to the parent (Rodriguez, Kreutz 1988).
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
    """Return A D A' block by block, for a block-diagonal D."""
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
    """Return A, B and D with M = A D A', M^-1 = B' D^-1 B, A B = 1 (Rodriguez and Kreutz 1988).

    A = 1 + H Psi L and B = 1 - H Phi L (Balafoutis and Patel 1991, Eq 6.2.18-19) have an identity
    block (i, i) for each joint i, and a block (j, i) for each joint j between joint i and the base.
    D contains the articulated inertia at each joint. Psi transmits force through locked joints.
    Phi transmits force through joints that move freely. Phi in Eq 6.2.19 differs from Phi in
    algorithm 5.5, which is called Psi here.
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
