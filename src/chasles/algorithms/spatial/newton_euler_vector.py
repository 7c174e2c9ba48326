"""Joint forces for given accelerations, in three-vectors."""

from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def newton_euler_vector(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Newton-Euler on classical accelerations (Luh, Walker, Paul 1980; Featherstone table 5.2).

    w, wd, a: angular velocity, angular acceleration, and acceleration of the body frame's origin
    less gravity, in body axes; no linear velocities. The body is its mass m, first moment h and
    inertia about the origin, so that inertias regrouped by dynamic equivalence work too.
    Numbers are those of the same equations in Balafoutis and Patel (1991), algorithm 5.3.
    """
    X, S = {}, {}
    w, wd, a = {WORLD: Vector.zero()}, {WORLD: Vector.zero()}, {WORLD: -model.gravity_vector}
    f, n = {WORLD: Vector.zero()}, {WORLD: Vector.zero()}
    for i, p, joint, I in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        E, r = X[i].E, X[i].r
        vJ, aJ = S[i] @ qd[i], S[i] @ qdd[i] + joint.bias(q[i], qd[i])
        carried = E @ w[p]  # (5.2.23a)
        w[i] = carried + vJ.angular  # (5.2.23a)
        wd[i] = E @ wd[p] + aJ.angular + w[i].cross(vJ.angular)  # (5.2.23b)
        a[i] = (
            E @ (a[p] + _of_point(w[p], wd[p], r)) + aJ.linear + (w[i] + carried).cross(vJ.linear)
        )  # (5.2.23c)
        f[i] = a[i] * I.m + _of_point(w[i], wd[i], I.h) - f_ext[i].force  # (5.2.23d, 5.2.23e)
        turning = I.I @ wd[i] + w[i].cross(I.I @ w[i])  # (5.2.23f)
        n[i] = turning + I.h.cross(a[i]) - f_ext[i].moment  # (5.2.24b)
    tau = {}
    for i, p, joint, _ in model.inward():
        tau[i] = S[i].T @ Force(n[i], f[i])  # (5.2.24c)
        tau[i] += joint.rotor(qdd[i]) + joint.resistance(qd[i])
        passed = X[i].E.T @ f[i]  # (5.2.24a)
        f[p] += passed  # (5.2.24a)
        n[p] += X[i].E.T @ n[i] + X[i].r.cross(passed)  # (5.2.24b)
    return tau


def _of_point(w: Vector, wd: Vector, r: Vector) -> Vector:
    """The acceleration of a point at r on a body that turns about its origin."""
    return wd.cross(r) + w.cross(w.cross(r))
