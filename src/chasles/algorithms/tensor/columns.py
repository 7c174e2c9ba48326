"""Blocks of the mass matrix from the forces that one joint's accelerations ask for."""

from collections.abc import Mapping

from chasles.mathematics.linear import Matrix
from chasles.mathematics.spatial import Forces, Motions, Transform
from chasles.model.joints import diagonal
from chasles.model.model import Model


def columns(
    model: Model, X: Mapping[int, Transform], S: Mapping[int, Motions], F: Mapping[int, Forces]
) -> dict[tuple[int, int], Matrix]:
    """M[i, j]: F of joint i, passed inward to joint j, along the freedoms there.

    F[i] has a column for each freedom of joint i: what accelerates all bodies beyond it, in the
    axes and about the origin of body i. Armature stands on the diagonal.
    """
    M: dict[tuple[int, int], Matrix] = {}
    for i, p, joint, _ in model.outward():
        passed, child = F[i], i
        M[i, i] = S[i].T @ passed + diagonal(joint.armature)
        for j in model.support(p):
            passed = X[child].T @ passed  # (6.3.30a, 6.3.30b)
            M[i, j] = passed.T @ S[j]
            M[j, i] = M[i, j].T
            child = j
    return M
