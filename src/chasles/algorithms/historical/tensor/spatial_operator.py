"""Joint forces for given accelerations, by operators along base axes."""

from chasles.algorithms.tensor.operators import links
from chasles.mathematics.spatial import Force, Motion
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def spatial_operator(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Rodriguez and Kreutz, as Balafoutis and Patel restate them (1991, algorithm 5.5), repaired.

    v, a: angular velocity and that of the origin, and their rates, a less gravity. alpha, beta:
    what velocities add to accelerations and to forces, of which the book says nothing.
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
