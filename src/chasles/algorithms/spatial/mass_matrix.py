"""The joint-space inertia matrix."""

from chasles.mathematics.linear import Matrix
from chasles.mathematics.spatial import RigidInertia
from chasles.model.joints import diagonal
from chasles.model.model import WORLD, Model
from chasles.model.spaces import JointMatrix, Position


def mass_matrix(model: Model, q: Position) -> JointMatrix:
    """Composite bodies (Featherstone 2008, table 6.2); armature on the diagonal."""
    M: dict[tuple[int, int], Matrix] = {}
    I = {i: inertia for i, _, _, inertia in model.outward()} | {WORLD: RigidInertia.zero()}
    X = {i: joint.transform(q[i]) for i, _, joint, _ in model.outward()}
    S = {i: joint.subspace(q[i]) for i, _, joint, _ in model.outward()}
    for i, p, joint, _ in model.inward():
        F = I[i] @ S[i]
        M[i, i] = S[i].T @ F + diagonal(joint.armature)
        I[p] += X[i].T @ I[i]
        child = i
        for j in model.support(p):
            F = X[child].T @ F
            M[i, j] = F.T @ S[j]
            M[j, i] = M[i, j].T
            child = j
    return M
