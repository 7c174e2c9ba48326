"""Joint forces for given accelerations, in the first notation of spatial vectors."""

from chasles.expr import Number
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force, Motion, RigidInertia
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def spatial_1987(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Featherstone (1987) as Balafoutis and Patel restate him (1991, algorithm 5.4), repaired.

    Forces are written force first, motions angle first: so one transform and one cross product
    serve both, and `_dot` pairs them. The book's base rests; here it accelerates against gravity.
    """
    X, S, tau = {}, {}, {}
    v, a, f = {WORLD: Motion.zero()}, {WORLD: -model.gravity}, {WORLD: Motion.zero()}
    for i, p, joint, I in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        vJ = S[i] @ qd[i]
        v[i] = X[i] @ v[p] + vJ  # (5.2.26a)
        a[i] = X[i] @ a[p] + v[i].cross(vJ) + S[i] @ qdd[i] + joint.bias(q[i], qd[i])  # (5.2.26b)
        F = _momentum(I, a[i]) + v[i].cross(_momentum(I, v[i]))  # (5.2.26c)
        f[i] = F - _force_first(f_ext[i])  # (5.2.27a)
    for i, p, joint, _ in model.inward():
        tau[i] = Vector(tuple(_dot(s, f[i]) for s in S[i].columns))  # (5.2.27b)
        tau[i] += joint.rotor(qdd[i]) + joint.resistance(qd[i])
        f[p] += X[i].inverse() @ f[i]  # (5.2.27a)
    return tau


def _force_first(f: Force) -> Motion:
    """[force; moment], which transforms as a motion does."""
    return Motion(f.force, f.moment)


def _momentum(I: RigidInertia, v: Motion) -> Motion:
    """[[-m r~, m 1], [I_o, m r~]] v."""
    return _force_first(I @ v)


def _dot(s: Motion, f: Motion) -> Number:
    """The spatial dot product [a; b].[c; d] = a.d + b.c."""
    return s.angular.dot(f.linear) + s.linear.dot(f.angular)
