"""The joint-space inertia matrix by composite bodies, with the angles of parallel joints summed."""

from collections.abc import Iterator, Mapping

from chasles.mathematics.linear import Matrix
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model.joints import diagonal
from chasles.model.model import WORLD, Model
from chasles.model.passes import Turn, turns
from chasles.model.spaces import JointMatrix, Position


def mass_matrix_parallel_axes(model: Model, q: Position) -> JointMatrix:
    """Composite bodies (Featherstone 2008, table 6.2); armature on the diagonal.

    Inertias and forces of bodies on parallel joints go at once to the carrier of the first of them.
    I: a body and all that it carries, so without what its own axis carries on; along: the latter.
    """
    M: dict[tuple[int, int], Matrix] = {}
    I = {i: inertia for i, _, _, inertia in model.outward()} | {WORLD: RigidInertia.zero()}
    along = {i: RigidInertia.zero() for i in I}
    X = {i: joint.transform(q[i]) for i, _, joint, _ in model.outward()}
    S = {i: joint.subspace(q[i]) for i, _, joint, _ in model.outward()}
    turn = turns(model, q)
    for i, p, joint, _ in model.inward():
        composite = I[i] + along[i]
        I[turn[i].carrier] += turn[i].X.T @ I[i]
        if turn[i].carrier != p:
            along[p] += X[i].T @ composite
        F = {i: composite @ S[i]}
        M[i, i] = S[i].T @ F[i] + diagonal(joint.armature)
        for j, beyond, Xj in _inward(model, turn, X, i):
            F[j] = Xj.T @ F[beyond]
            M[i, j] = F[j].T @ S[j]
            M[j, i] = M[i, j].T
    return M


def _inward(
    model: Model, turn: Mapping[int, Turn], X: Mapping[int, Transform], i: int
) -> Iterator[tuple[int, int, Transform]]:
    """The bodies j that carry body i, each with the one that passes it force, and from j to that.

    A parent gets it from its child; a carrier, from the last of its bodies on parallel joints.
    """
    last = child = i
    for j in model.support(model.bodies[i].parent):
        if j == turn[last].carrier:
            yield j, last, turn[last].X
            last = j
        else:
            yield j, child, X[child]
        child = j
