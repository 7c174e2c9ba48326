"""Joint forces for given accelerations."""

from chasles.mathematics.spatial import Force, Motion, Motions
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def inverse_dynamics(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Recursive Newton-Euler in body coordinates (Featherstone 2008, table 5.1)."""
    f, S = transmitted_forces(model, q, qd, qdd, f_ext)
    return {
        i: S[i].T @ f[i] + joint.rotor(qdd[i]) + joint.resistance(qd[i])
        for i, _, joint, _ in model.outward()
    }


def transmitted_forces(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> tuple[dict[int, Force], dict[int, Motions]]:
    """The force each joint exerts on its body, in body coordinates, and the joint's subspace."""
    X, S = {}, {}
    v, a, f = {WORLD: Motion.zero()}, {WORLD: -model.gravity}, {WORLD: Force.zero()}
    for i, p, joint, I in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        vJ = S[i] @ qd[i]
        v[i] = X[i] @ v[p] + vJ
        a[i] = X[i] @ a[p] + S[i] @ qdd[i] + joint.bias(q[i], qd[i]) + v[i].cross(vJ)
        f[i] = I @ a[i] + v[i].cross(I @ v[i]) - f_ext[i]
    for i, p, *_ in model.inward():
        f[p] += X[i].T @ f[i]
    return f, S
