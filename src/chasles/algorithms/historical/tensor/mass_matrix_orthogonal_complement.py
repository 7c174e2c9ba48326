"""The joint-space inertia matrix, by the natural orthogonal complement."""

from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Motions, RigidInertia, Transform
from chasles.mathematics.tensor import Center
from chasles.model.joints import diagonal
from chasles.model.model import WORLD, Model
from chasles.model.spaces import JointMatrix, Position


def mass_matrix_orthogonal_complement(model: Model, q: Position) -> JointMatrix:
    """D = T' M T (Angeles and Ma 1988; Balafoutis and Patel 1991, Eq 6.2.10-15).

    T[k] has the twists of body k, in its own axes, for unit rates of the joints that move it; at
    its centre of mass the inertia M is a block of rotation and a mass.
    """
    T: dict[int, dict[int, Motions]] = {WORLD: {}}
    D: dict[tuple[int, int], Matrix] = {}
    for k, p, joint, I in model.outward():
        X, body = joint.transform(q[k]), Center.of(I)
        T[k] = {i: X @ twists for i, twists in T[p].items()} | {k: joint.subspace(q[k])}  # (6.2.14)
        M = RigidInertia(body.m, Vector.zero(), body.I)
        shift = Transform(Rotation(), body.r)
        centred = {i: shift @ twists for i, twists in T[k].items()}  # (6.2.12)
        for i, left in centred.items():
            momenta = M @ left  # (6.2.13)
            for j in (j for j in centred if j <= i):
                block = momenta.T @ centred[j]  # (6.2.15)
                D[i, j] = D[i, j] + block if (i, j) in D else block  # (6.2.15)
        D[k, k] += diagonal(joint.armature)
    return D | {(j, i): block.T for (i, j), block in D.items() if i != j}
