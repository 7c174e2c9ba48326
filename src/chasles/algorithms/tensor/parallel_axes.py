"""Joint forces for given accelerations, by tensors, with the angles of parallel joints summed."""

from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force
from chasles.mathematics.tensor import AngularAcceleration, euler_from_inertia
from chasles.model.model import WORLD, Model
from chasles.model.passes import turns
from chasles.model.spaces import ABSENT, Effort, Position, Velocity, Wrenches


def parallel_axes(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Newton and Euler about the origins, with angular acceleration tensors (section 5.3).

    A body turns against its carrier g, which carries the first of several parallel joints, by the
    sum of their angles; its origin moves with its parent p. What its joint transmits (f, and eta
    about the origin) goes to the parent, but the moment normal to parallel axes, which none of
    them feels, goes to the carrier at once.
    """
    X, S, turn = {}, {}, turns(model, q)
    vJ, aJ, Omega = {}, {}, {WORLD: AngularAcceleration.zero()}
    sdd = {WORLD: -model.gravity_vector}
    f, eta, tau = {WORLD: Vector.zero()}, {WORLD: Vector.zero()}, {}
    for i, p, joint, I in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        vJ[i], aJ[i] = S[i] @ qd[i], S[i] @ qdd[i] + joint.bias(q[i], qd[i])
        g, joints, Xg, _ = turn[i]
        spin = sum((vJ[j].angular for j in joints), Vector.zero())
        rate = sum((aJ[j].angular for j in joints), Vector.zero())
        carried = Xg.E @ Omega[g].w
        w = carried + spin
        Omega[i] = AngularAcceleration(w, Xg.E @ Omega[g].wd + carried.cross(spin) + rate)
        zeta = (w + carried).cross(vJ[i].linear) + aJ[i].linear
        sdd[i] = X[i].E @ (sdd[p] + Omega[p] @ X[i].r) + zeta
        f[i] = Omega[i] @ I.h + sdd[i] * I.m - f_ext[i].force
        moment = Omega[i].moment_of(euler_from_inertia(I.I)) + I.h.cross(sdd[i])
        eta[i] = moment - f_ext[i].moment
    for i, p, joint, _ in model.inward():
        tau[i] = S[i].T @ Force(eta[i], f[i]) + joint.rotor(qdd[i]) + joint.resistance(qd[i])
        t = X[i].E.T @ f[i]
        f[p] += t
        g, _, Xg, z = turn[i]
        axial = z * z.dot(eta[i])
        eta[p] += X[i].r.cross(t) + axial
        eta[g] += Xg.E.T @ (eta[i] - axial)
    return tau
