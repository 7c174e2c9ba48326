"""The joint-space inertia matrix, by traces."""

from chasles.algorithms.homogeneous.chain import chain
from chasles.mathematics.homogeneous import Inertia
from chasles.mathematics.linear import Matrix
from chasles.model import spaces
from chasles.model.joints import diagonal
from chasles.model.model import WORLD, Model


def mass_matrix_lagrange(model: Model, q: spaces.Position) -> spaces.JointMatrix:
    """M[i, j] = trace(L_i (sum of J_h) L_j'), over the bodies h beyond both joints (section 3)."""
    rest = model.at_rest()
    _, L, _, _, J = chain(model, q, rest, rest)
    J[WORLD] = Inertia.zero()
    M: dict[tuple[int, int], Matrix] = {}
    for i, p, joint, _ in model.inward():
        LJ = [l @ J[i] for l in L[i]]
        for j in model.support(i):
            M[i, j] = Matrix(tuple(tuple(x.trace(l) for l in L[j]) for x in LJ))
            M[j, i] = M[i, j].T
        M[i, i] += diagonal(joint.armature)
        J[p] += J[i]
    return M
