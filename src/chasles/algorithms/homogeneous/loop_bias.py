"""The right-hand side of the acceleration equations of loops and couplings."""

from chasles.algorithms.homogeneous.loop_residual import around, ends, loop_coordinates
from chasles.mathematics.homogeneous import Acceleration, Velocity
from chasles.model import spaces
from chasles.model.model import Model


def loop_bias(model: Model, q: spaces.Position, qd: spaces.Velocity) -> spaces.LoopVector:
    """b in A qdd = b: what W and H leave where the joints do not accelerate (Eq II.3bis and II.6).

    Across a weld the relative H is zero; across any other joint it is the one that the joint makes
    with its own rates, which are those of the velocities around the loop (so A qd = 0 is assumed).
    Of a coupling it is -d/dt(d phi/dq) qd - d/dt(d phi/dt). Joints that are driven in time have
    accelerations of their own.
    """
    b, driven = [], model.undriven(2)
    for loop in model.loops:
        M = around(model, loop, q)
        W, H = {loop.root: Velocity.zero()}, {loop.root: Acceleration.zero()}
        for i, _ in loop.path:
            p, joint = model.bodies[i].parent, model.bodies[i].joint
            moving = M[i].to_first(Velocity.of(joint.subspace(q[i]) @ qd[i]))
            bend = joint.bias(q[i], qd[i]) + joint.subspace(q[i]) @ driven[i]
            rate = M[i].to_first(Velocity.of(bend))
            W[i] = W[p] + moving
            H[i] = H[p].after(W[p], Acceleration.of(moving, rate), moving)
        P, S = loop.predecessor.body, loop.successor.body
        W_PS = W[S] - W[P]
        rate = H[S].rate(W[S]) - H[P].rate(W[P]) - W[P].bracket(W_PS)
        _, M_S = ends(loop, M)
        qJ = loop_coordinates(loop, M)
        own = loop.joint.bias(qJ, loop.joint.rates(qJ, M_S.to_second(W_PS).motion()))
        b.append(loop.joint.constraint(qJ).T @ (own - M_S.to_second(rate).motion()))
    for coupling in model.couplings:
        K = coupling.matrix(q)
        b.append(sum((-(K[i] @ driven[i]) for i in K), coupling.bias(q, qd)))
    return b
