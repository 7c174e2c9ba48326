"""Derivatives of joint accelerations with respect to positions, velocities and forces."""

from collections.abc import Mapping

from chasles.algorithms.spatial.gravity_forces import gravity_forces
from chasles.algorithms.spatial.inverse_dynamics_derivatives import inverse_dynamics_derivatives
from chasles.algorithms.spatial.load_efforts import load_efforts
from chasles.algorithms.spatial.mass_matrix import mass_matrix
from chasles.mathematics.linear import Matrix, Vector, factor_ltdl, invert_ltdl, solve_ltdl
from chasles.model.model import Model
from chasles.model.spaces import (
    Effort,
    Loads,
    Position,
    TreeMatrix,
    Velocity,
    assemble,
    stack,
    unstack,
)


def forward_dynamics_derivatives(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Loads = ()
) -> tuple[TreeMatrix, TreeMatrix, TreeMatrix]:
    """d qdd / d q, d qdd / d qd and d qdd / d tau = M^-1.

    At the accelerations that the forces cause, a change of forces that inverse dynamics would ask
    for is one that forward dynamics does not get: -M^-1 times its derivatives (Carpentier and
    Mansard 2018), by the sparse factors of M.
    """
    order = model.in_tree_order
    L, D = factor_ltdl(assemble(model, mass_matrix(model, q), order))
    h = stack(model.efforts(_bias_forces(model, q, qd, f_ext)), order)
    qdd = unstack(model, solve_ltdl(L, D, stack(tau, order) - h), order)
    dq, dqd, _ = inverse_dynamics_derivatives(model, q, qd, model.followed(qdd, 2), f_ext)

    def missing(blocks: Mapping[tuple[int, int], Matrix]) -> Matrix:
        columns = zip(*assemble(model, blocks, order), strict=True)
        return Matrix(tuple(tuple(solve_ltdl(L, D, -Vector(c))) for c in columns)).T

    return missing(dq), missing(dqd), invert_ltdl(L, D)


def _bias_forces(model: Model, q: Position, qd: Velocity, f_ext: Loads) -> dict[int, Vector]:
    """Gravity, resistance, external and Coriolis forces: the last are quadratic in qd, hence half
    their derivative times qd, which is at hand (Euler's theorem on homogeneous functions). What
    driven joints accelerate is added."""
    g, h = gravity_forces(model, q), {}
    external, _ = load_efforts(model, q, f_ext)
    for i, _, joint, _ in model.outward():
        h[i] = g[i] - external[i] + joint.resistance(qd[i])
    _, C, _ = inverse_dynamics_derivatives(model.frictionless(), q, qd, model.at_rest())
    for (i, j), block in C.items():
        h[i] += (block @ qd[j]) * 0.5
    driven = model.undriven(2)
    for (i, j), block in mass_matrix(model, q).items():
        if model.bodies[j].drive is not None:
            h[i] += block @ driven[j]
    return h
