"""Joint accelerations for given forces, by the factors of the inverse mass matrix."""

from chasles.algorithms.historical.tensor.spatial_operator import spatial_operator
from chasles.algorithms.tensor.operators import gains, links
from chasles.mathematics.linear import solve_symmetric
from chasles.mathematics.spatial import Force, Motion
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def forward_dynamics_spatial_operator(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """(1 - H Phi L)' D^-1 (1 - H Phi L) (tau - b), of which no matrix is formed.

    A filter from the tips to the base, e = (1 - H Phi L)(tau - b), and a smoother back (Rodriguez,
    Kreutz 1988; Balafoutis and Patel 1991, Eq 6.2.19); b by algorithm 5.5. z: the force that the
    links beyond a joint exert on it, a: accelerations that the forces e cause.
    """
    _, Phi, H, I = links(model, q)
    G, D = gains(model, Phi, H, I)
    b = spatial_operator(model, q, qd, model.undriven(2), f_ext)
    e, qdd = {}, {}
    z = {i: Force.zero() for i in (WORLD, *H)}
    a = {WORLD: Motion.zero()}
    for i, p, *_ in model.inward():
        e[i] = tau[i] - b[i] - H[i].T @ z[i]  # (6.2.19)
        z[p] += Phi[i].T @ (z[i] + G[i] @ e[i])  # (6.2.19)
    for i, p, *_ in model.outward():
        a[i] = Phi[i] @ a[p]  # (6.2.19)
        qdd[i] = solve_symmetric(D[i], e[i]) - G[i].T @ a[i]  # (6.2.19)
        a[i] += H[i] @ qdd[i]  # (6.2.19)
    return qdd
