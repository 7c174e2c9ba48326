"""Dynamics with the spatial operators of Rodriguez and Kreutz."""

from chasles.algorithms.tensor.operators import congruence, gains, links, operator_factors
from chasles.mathematics.linear import invert_symmetric, solve_symmetric
from chasles.mathematics.spatial import Force, Motion
from chasles.model.model import WORLD, Model
from chasles.model.spaces import (
    ABSENT,
    Effort,
    InertiaMatrix,
    JointMatrix,
    Position,
    Velocity,
    Wrenches,
)


def spatial_operator(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Run Rodriguez and Kreutz's method (Balafoutis and Patel 1991, algorithm 5.5, corrected).

    v contains the angular velocity and the velocity of the body origin. a is the time derivative of
    v minus gravity. alpha and beta, which the book does not define, are the velocity-dependent
    terms in the accelerations and forces, respectively.
    """
    turn, Phi, H, I = links(model, q)
    v, a, f = {WORLD: Motion.zero()}, {WORLD: -model.gravity}, {WORLD: Force.zero()}
    tau = {}
    for i, p, joint, _ in model.outward():
        vJ, s = H[i] @ qd[i], Phi[i].r  # (5.2.34a)
        v[i] = Phi[i] @ v[p] + vJ  # (5.2.34a)
        carried, w = v[p].angular, v[i].angular
        alpha = turn[i].inverse() @ joint.bias(q[i], qd[i]) + Motion(
            carried.cross(vJ.angular),
            carried.cross(carried.cross(s)) + (carried + w).cross(vJ.linear),
        )  # (alpha of 5.2.34b)
        beta = Force(w.cross(I[i].I @ w), w.cross(w.cross(I[i].h)))  # (beta of 5.2.35a)
        a[i] = Phi[i] @ a[p] + H[i] @ qdd[i] + alpha  # (5.2.34b)
        f[i] = I[i] @ a[i] + beta - turn[i].T @ f_ext[i]  # (5.2.35a)
    for i, p, joint, _ in model.inward():
        tau[i] = H[i].T @ f[i] + joint.rotor(qdd[i]) + joint.resistance(qd[i])  # (5.2.35b)
        f[p] += Phi[i].T @ f[i]  # (5.2.35a)
    return tau


def mass_matrix_spatial_operator(model: Model, q: Position) -> InertiaMatrix:
    """Compute the mass matrix M = (1 + H Psi L) D (1 + H Psi L)'.

    See Balafoutis and Patel 1991, Eq 6.2.18. The factors are explained in `operator_factors`.
    """
    A, _, D = operator_factors(model, q)
    return congruence(A, D)


def mass_matrix_inverse_spatial_operator(model: Model, q: Position) -> JointMatrix:
    """Compute the inverse mass matrix M^-1 = (1 - H Phi L)' D^-1 (1 - H Phi L).

    See Balafoutis and Patel 1991, Eq 6.2.19. The factors are explained in `operator_factors`.
    """
    _, B, D = operator_factors(model, q)
    transposed = {(i, j): block.T for (j, i), block in B.items()}
    inverse = {key: invert_symmetric(block) for key, block in D.items()}  # (6.2.19)
    return congruence(transposed, inverse)


def forward_dynamics_spatial_operator(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Compute qdd = (1 - H Phi L)' D^-1 (1 - H Phi L) (tau - b) without forming a matrix.

    See Rodriguez, Kreutz 1988; Balafoutis and Patel 1991, Eq 6.2.19. The first pass, from the tips
    to the base (the filter), computes e = (1 - H Phi L)(tau - b). The second pass, from the base to
    the tips (the smoother), computes qdd. b contains the bias forces, computed by algorithm 5.5. z
    is the force exerted on a joint by the links beyond it. a contains the accelerations caused by
    the forces e.
    """
    _, Phi, H, _ = bodies = links(model, q)
    G, D = gains(model, bodies)
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
