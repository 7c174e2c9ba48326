"""Blocks of the mass matrix from the forces that one joint's accelerations ask for."""

from collections.abc import Mapping

from chasles.expr import Scalar
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Force, Forces, Motions, Transform
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
    parts = {i: _parts(transform) for i, transform in X.items()}
    for i, p, joint, _ in model.outward():
        passed, child = F[i], i
        M[i, i] = S[i].T @ passed + diagonal(joint.armature)
        for j in model.support(p):
            passed = _inward(*parts[child], passed)  # (6.3.30a, 6.3.30b)
            M[i, j] = passed.T @ S[j]
            M[j, i] = M[i, j].T
            child = j
    return M


def _inward(turn: Rotation, s: Vector, placed: Rotation, F: Forces) -> Forces:
    """X' F, with the offset s along the axes in which it has most zeros."""
    forces = []
    for column in F.columns:
        f = turn.T @ column.force
        eta = turn.T @ column.moment + s.cross(f)
        forces.append(Force(placed.T @ eta, placed.T @ f))
    return Forces(tuple(forces))


def _parts(X: Transform) -> tuple[Rotation, Vector, Rotation]:
    """(turn, s, placed): X.E is the constant rotation `placed`, then `turn`; s is X.r in between.

    Between the twist and the turn of a joint the offset of a Denavit-Hartenberg row is (a, 0, d).
    """
    factors = X.E.factors
    ways = [(X.E, X.r, Rotation())]
    for k in range(1, len(factors)):
        placed = Rotation(factors[:k])
        if any(isinstance(e, Scalar) for row in placed.matrix().rows for e in row):
            break
        ways.append((Rotation(factors[k:]), _rounded(placed @ X.r), placed))
    return max(ways, key=lambda way: sum(type(x) is float and x == 0.0 for x in way[1]))


def _rounded(s: Vector) -> Vector:
    """Without what rounding leaves of a zero."""
    size = max(abs(x) if type(x) is float else 0.0 for x in s)
    return Vector(tuple(0.0 if type(x) is float and abs(x) < 4e-16 * size else x for x in s))
