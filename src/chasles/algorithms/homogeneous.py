"""Kinematics of frames, loops and couplings by 4x4 matrices (Legnani et al. 1996)."""

from chasles.mathematics.homogeneous import Acceleration, Position, Screw, Velocity
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import vector_from_matrix
from chasles.mathematics.spatial import Motion, Motions
from chasles.model import spaces
from chasles.model.model import Frame, Loop, Model


def forward_kinematics(model: Model, q: spaces.Position, *, frame: Frame) -> spaces.Pose:
    """The product of position matrices from the base to the frame (Eq I.3)."""
    M = Position.of(frame.placement)
    for i in model.support(frame.body):
        M = Position.of(model.bodies[i].joint.transform(q[i])) @ M
    return M.transform()


def loop_residual(model: Model, q: spaces.Position) -> spaces.LoopVector:
    """Errors of M around each loop (Eq II.4: it is 1) in what the loop joint forbids.

    The loop joint takes the displacement that it can; of the rest, the rotation vector and the
    translation, along the axes of its successor frame, are projected on T. The derivative at a
    closed position is A of `loop_matrix`. Couplings follow, each with its own phi(q).
    """
    r = []
    for loop in model.loops:
        M = around(model, loop, q)
        (M_P, M_S), qJ = ends(loop, M), loop_coordinates(loop, M)
        M_J = M_P @ Position.of(loop.joint.motion(qJ))
        turned = vector_from_matrix((M_J.inverse() @ M_S).R.matrix())
        d = Motion(turned, M_S.R.T @ (M_S.t - M_J.t))
        r.append(loop.joint.constraint(qJ).T @ d)
    return r + [coupling.residual(q) for coupling in model.couplings]


def around(model: Model, loop: Loop, q: spaces.Position) -> dict[int, Position]:
    """M_0i of the bodies of a loop, where body 0 is the one at which its branches part."""
    M = {loop.root: Position.identity()}
    for i, _ in loop.path:
        body = model.bodies[i]
        M[i] = M[body.parent] @ Position.of(body.joint.transform(q[i]))
    return M


def ends(loop: Loop, M: dict[int, Position]) -> tuple[Position, Position]:
    """M_0P and M_0S: the predecessor and the successor frame of the loop joint."""
    P, S = loop.predecessor, loop.successor
    return M[P.body] @ Position.of(P.placement), M[S.body] @ Position.of(S.placement)


def across(loop: Loop, M: dict[int, Position]) -> Position:
    """M_PS: the displacement that the loop joint has to make."""
    M_P, M_S = ends(loop, M)
    return M_P.inverse() @ M_S


def loop_coordinates(loop: Loop, M: dict[int, Position]) -> Vector:
    """The coordinates that the loop joint has, or comes nearest with."""
    return loop.joint.fit(across(loop, M).transform())


def loop_matrix(model: Model, q: spaces.Position) -> spaces.LoopMatrix:
    """A with A qd = 0: its columns are (u, b) of the joints' screws L_i around a loop (Eq II.7).

    Written in the successor frame of the loop joint, and of the six rows those that it forbids.
    Couplings follow, each with the slopes of its phi(q).
    """
    A: list[dict[int, Matrix]] = []
    for loop in model.loops:
        qJ, J = loop_screws(model, loop, q)
        T = loop.joint.constraint(qJ)
        A.append({i: T.T @ J[i] * sign for i, sign in loop.path})
    return A + [coupling.matrix(q) for coupling in model.couplings]


def loop_screws(model: Model, loop: Loop, q: spaces.Position) -> tuple[Vector, dict[int, Motions]]:
    """q of the loop joint, and the screws of the joints around it in its successor frame."""
    M = around(model, loop, q)
    _, M_S = ends(loop, M)
    J = {}
    for i, _ in loop.path:
        L = map(Screw.of, model.bodies[i].joint.subspace(q[i]).columns)
        J[i] = Motions(tuple(M_S.to_second(M[i].to_first(l)).motion() for l in L))
    return loop_coordinates(loop, M), J


def loop_rate(model: Model, q: spaces.Position) -> spaces.LoopVector:
    """b in A qd = b: zero, but where time moves a joint or a coupling (Featherstone 2008, 3.5).

    Then it is less the velocity that driven joints make around a loop, and -d phi/dt.
    """
    driven = model.undriven(1)
    drifts = [Vector.zero(loop.rows) for loop in model.loops]
    drifts += [coupling.drift(q) for coupling in model.couplings]
    return [
        -sum((A[i] @ driven[i] for i in A), drift)
        for A, drift in zip(loop_matrix(model, q), drifts, strict=True)
    ]


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
