"""Regressor matrix, which maps inertial parameters to generalized forces."""

from chasles.expr import Number
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import Motion
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Blocks, Position, RegressorMatrix, Velocity


def regressor(model: Model, q: Position, qd: Velocity, qdd: Velocity) -> RegressorMatrix:
    """Return the regressor Y in M qdd + h = Y p, without armature (Atkeson, An, Hollerbach 1986).

    The ten parameters of a body are its mass, first moment (3) and inertia about the link origin
    (xx, yy, zz, xy, xz, yz), in link axes. Velocities and accelerations are computed by the
    three-vector Newton-Euler recursion. An entry of Y is the inertia force for a unit parameter,
    projected onto the motion subspace of a joint that supports the body.
    """
    X, S = {}, {}
    w, wd, a = {WORLD: Vector.zero()}, {WORLD: Vector.zero()}, {WORLD: -model.gravity_vector}
    Y = Blocks()
    for i, p, joint, _ in model.bare().outward():
        X[i], S[i, i] = joint.transform(q[i]), joint.subspace(q[i])
        E, r = X[i].E, X[i].r
        vJ, aJ = S[i, i] @ qd[i], S[i, i] @ qdd[i] + joint.bias(q[i], qd[i])
        carried = E @ w[p]
        w[i] = carried + vJ.angular
        wd[i] = E @ wd[p] + aJ.angular + w[i].cross(vJ.angular)
        a[i] = E @ (a[p] + _spin(w[p], wd[p]) @ r)
        a[i] = a[i] + aJ.linear + (w[i] + carried).cross(vJ.linear)
        to_link = model.frames[model.bodies[i].name].placement
        turn, there = to_link.E, a[i] + _spin(w[i], wd[i]) @ to_link.r
        seen = turn @ w[i], turn @ wd[i], turn @ there
        for j in model.support(i):
            if j != i:
                S[j, i] = X[i] @ S[j, p]
            columns = S[j, i].columns
            Y[j, i] = Matrix(tuple(tuple(_row(to_link @ s, *seen)) for s in columns))
    return Y


def _spin(w: Vector, wd: Vector) -> Matrix:
    """Return wd~ + w~ w~, the matrix that maps the position of a point to its acceleration."""
    return Matrix.skew(wd) + Matrix.skew(w) @ Matrix.skew(w)


def _row(s: Motion, w: Vector, wd: Vector, a: Vector) -> list[Number]:
    """Return the dot products of the axis s and the inertia forces for unit parameters."""
    m = s.linear.dot(a)
    h = a.cross(s.angular) + _spin(w, wd).T @ s.linear
    (x, y, z), (p, q, r), (u, v, t) = w, wd, s.angular
    k, l, n = s.angular.cross(w)
    I = (
        u * p + k * x,
        v * q + l * y,
        t * r + n * z,
        u * q + v * p + k * y + l * x,
        u * r + t * p + k * z + n * x,
        v * r + t * q + l * z + n * y,
    )
    return [m, *h, *I]
