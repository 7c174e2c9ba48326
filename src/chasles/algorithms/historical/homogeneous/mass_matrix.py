"""The joint-space inertia matrix, by joint actions."""

from chasles.algorithms.homogeneous.chain import chain
from chasles.mathematics.homogeneous import Action, Inertia
from chasles.mathematics.linear import Matrix
from chasles.model import spaces
from chasles.model.joints import diagonal
from chasles.model.model import WORLD, Model


def mass_matrix(model: Model, q: spaces.Position) -> spaces.JointMatrix:
    """The action that unit acceleration of one joint asks of another: L_j (x) skew(L_i J).

    J is that of all bodies beyond joint i (section 2.3, with one qdd equal to one and W zero).
    """
    rest = model.at_rest()
    _, L, _, _, J = chain(model, q, rest, rest)
    J[WORLD] = Inertia.zero()
    M: dict[tuple[int, int], Matrix] = {}
    for i, p, joint, _ in model.inward():
        Phi = [Action(*(l @ J[i]).skew()) for l in L[i]]
        for j in model.support(i):
            M[i, j] = Matrix(tuple(tuple(phi.pseudo(l) for l in L[j]) for phi in Phi))
            M[j, i] = M[i, j].T
        M[i, i] += diagonal(joint.armature)
        J[p] += J[i]
    return M
