"""Joint accelerations for given forces, by the natural orthogonal complement."""

from chasles.algorithms.equation_of_motion import net_forces
from chasles.algorithms.tensor.bias_forces_augmented_tensor import bias_forces_augmented_tensor
from chasles.mathematics.linear import Matrix, Vector, orthogonalize, solve_ltdl
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Motion, RigidInertia, Transform
from chasles.mathematics.tensor import Center
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches, unstack


def forward_dynamics_orthogonal_complement(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """P'x = tau - b by least norm, P qdd = x by least squares; P'P is never formed.

    Angeles and Ma's second method (1988; Balafoutis and Patel 1991, Eq 6.2.16-17). P = N T, where T
    has the twists of all bodies and N'N are their inertias M; columns are made orthogonal from
    the last to the first, P = Q L, which leaves L'(Q'Q) L qdd = tau - b. Only products p'p = t'M t
    occur, so that no root N is needed, and bodies without mass do no harm.
    """
    order = model.in_tree_order
    units = map(Vector, Matrix.identity(model.nv).rows)
    rates = [model.followed(unstack(model, unit, order)) for unit in units]
    T = [_rates(model, q, v) for v in rates]  # (6.2.14)
    L, D = orthogonalize(T, lambda t: _momenta(model, t))  # (6.2.15)
    b = bias_forces_augmented_tensor(model, q, qd, f_ext)
    return unstack(model, solve_ltdl(L, D, net_forces(model, b, tau)), order)  # (6.2.17a, 6.2.17b)


def _rates(model: Model, q: Position, qd: Velocity) -> Vector:
    """For each body its twist, at its centre of mass and along its own axes, and its joint's qd."""
    v, rows = {WORLD: Motion.zero()}, []
    for i, p, joint, I in model.outward():
        v[i] = joint.transform(q[i]) @ v[p] + joint.subspace(q[i]) @ qd[i]
        rows += [*(Transform(Rotation(), Center.of(I).r) @ v[i]), *qd[i]]
    return Vector(tuple(rows))


def _momenta(model: Model, t: Vector) -> Vector:
    """M t: the momentum of each body at its centre of mass, and that of its joint's rotor."""
    rows, rest = [], t.entries
    for _, _, joint, I in model.outward():
        twist, qd, rest = rest[:6], rest[6 : 6 + joint.nv], rest[6 + joint.nv :]
        body = Center.of(I)
        M = RigidInertia(body.m, Vector.zero(), body.I)
        rows += [*(M @ Motion.of(*twist)), *joint.rotor(Vector(qd))]
    return Vector(tuple(rows))
