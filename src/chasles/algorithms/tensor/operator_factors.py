"""The mass matrix and its inverse as products of operators."""

from chasles.algorithms.tensor.operators import gains, links
from chasles.mathematics.linear import Matrix
from chasles.model.model import Model
from chasles.model.spaces import JointMatrix, Position


def operator_factors(model: Model, q: Position) -> tuple[JointMatrix, JointMatrix, JointMatrix]:
    """A, B, D with M = A D A', M^-1 = B' D^-1 B, A B = 1 (Rodriguez and Kreutz 1988).

    A = 1 + H Psi L and B = 1 - H Phi L (Balafoutis and Patel 1991, Eq 6.2.18-19), which have a
    block for each joint and each joint inward of it; D has the inertia that each joint feels. Psi
    passes on the force of a joint, Phi what is left of it after the joints on the way have given
    in: there the book's Phi is not that of its algorithm 5.5, which here is Psi.
    """
    _, Phi, H, I = links(model, q)
    G, D = gains(model, Phi, H, I)
    A: dict[tuple[int, int], Matrix] = {}
    B: dict[tuple[int, int], Matrix] = {}
    for i, p, joint, _ in model.outward():
        A[i, i] = B[i, i] = Matrix.identity(joint.nv)
        passed, left, child = G[i], G[i], i
        for j in model.support(p):
            passed, left = Phi[child].T @ passed, Phi[child].T @ left  # (6.2.18, 6.2.19)
            A[j, i], B[j, i] = H[j].T @ passed, -(H[j].T @ left)  # (6.2.18, 6.2.19)
            left += G[j] @ B[j, i]  # (6.2.19)
            child = j
    return A, B, {(i, i): block for i, block in D.items()}
