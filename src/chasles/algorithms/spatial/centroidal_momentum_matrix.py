"""Momentum about the centre of mass for each unit joint velocity."""

from chasles.algorithms.spatial.center_of_mass import center_of_mass
from chasles.algorithms.spatial.forward_kinematics import body_transforms
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model.model import WORLD, Model
from chasles.model.spaces import MomentumMatrix, Position


def centroidal_momentum_matrix(model: Model, q: Position) -> MomentumMatrix:
    """A with momentum A qd at the centre of mass, world axes (Orin and Goswami 2008)."""
    X0, G = body_transforms(model, q), center_of_mass(model, q)
    I = {i: inertia for i, _, _, inertia in model.outward()} | {WORLD: RigidInertia.zero()}
    A = {}
    for i, p, joint, _ in model.inward():
        I[p] += joint.transform(q[i]).T @ I[i]
        to_center = Transform(X0[i].E, X0[i].r - G)
        A[i] = to_center.T @ (I[i] @ joint.subspace(q[i]))
    return A
