"""Kinematics of frames, loops and couplings with 4x4 matrices (Legnani et al. 1996)."""

from collections.abc import Iterable, Mapping
from itertools import islice

from chasles.expr import Number
from chasles.mathematics.derivatives import by_time, replayed
from chasles.mathematics.homogeneous import Acceleration, Position, Screw, Velocity
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import vector_from_matrix
from chasles.mathematics.spatial import Motion, Motions
from chasles.model import constraints, spaces
from chasles.model.constraints import Coupling
from chasles.model.joints import Joint
from chasles.model.model import WORLD, Frame, Loop, Model


def forward_kinematics(model: Model, q: spaces.Position, *, frame: Frame) -> spaces.Pose:
    """Multiply the position matrices from the base to the frame (Legnani et al. 1996, Eq I.3)."""
    M = Position.of(frame.placement)
    for i in model.support(frame.body):
        M = Position.of(model.bodies[i].joint.transform(q[i])) @ M
    return M.transform()


def loop_residual(model: Model, q: spaces.Position) -> spaces.LoopVector:
    """Return the closure error of each loop in the constrained directions.

    See Legnani et al. 1996, Eq II.4. Around a closed loop, the product M of the position matrices
    is the identity. The loop joint absorbs the displacement in its free directions. The rotation
    vector and translation that remain are expressed in the successor frame and projected onto the
    constraint directions T. When the loop is closed, the derivative of this error is A from
    `loop_matrix`. The residuals phi(q) of couplings, which are zero for velocity constraints, are
    appended.
    """
    r = []
    for loop in model.loops:
        M = around(model, loop, q)
        (M_P, M_S), qJ = ends(loop, M), loop_coordinates(loop, M)
        M_J = M_P @ Position.of(loop.joint.motion(qJ))
        turned = vector_from_matrix((M_J.inverse() @ M_S).R.matrix())
        d = Motion(turned, M_S.R.T @ (M_S.t - M_J.t))
        r.append(loop.joint.constraint(qJ).T @ d)
    return r + [coupling_residual(model, coupling, q) for coupling in model.couplings]


def around(model: Model, loop: Loop, q: spaces.Position) -> dict[int, Position]:
    """Return the position matrix M_0i of each body i in a loop.

    Body 0 is the body at which the two branches of the loop separate.
    """
    return placed(model, loop.root, loop.bodies, q)


def placed(model: Model, root: int, path: Iterable[int], q: spaces.Position) -> dict[int, Position]:
    """Return the position matrix M_0i of each body i on a path.

    Body 0 is the root of the path. `path` lists each body after its parent.
    """
    M = {root: Position.identity()}
    for i in path:
        body = model.bodies[i]
        M[i] = M[body.parent] @ Position.of(body.joint.transform(q[i]))
    return M


def carried(
    model: Model,
    M: Mapping[int, Position],
    q: spaces.Position,
    qd: spaces.Velocity,
    qdd: spaces.Velocity,
) -> tuple[dict[int, Velocity], dict[int, Acceleration]]:
    """Return the velocities W_0i and accelerations H_0i of all bodies i in `M`, root first."""
    root, *path = M
    W, H = {root: Velocity.zero()}, {root: Acceleration.zero()}
    for i in path:
        p, joint = model.bodies[i].parent, model.bodies[i].joint
        moving = M[i].to_first(Velocity.of(joint.subspace(q[i]) @ qd[i]))
        bend = joint.bias(q[i], qd[i]) + joint.subspace(q[i]) @ qdd[i]
        rate = M[i].to_first(Velocity.of(bend))
        W[i] = W[p] + moving
        H[i] = H[p].after(W[p], Acceleration.of(moving, rate), moving)
    return W, H


def ends(loop: Loop, M: dict[int, Position]) -> tuple[Position, Position]:
    """Return the poses M_0P and M_0S of the two frames of a loop joint in the base frame."""
    P, S = loop.predecessor, loop.successor
    return M[P.body] @ Position.of(P.placement), M[S.body] @ Position.of(S.placement)


def across(loop: Loop, M: dict[int, Position]) -> Position:
    """Return M_PS, the pose of the successor frame in the predecessor frame of a loop joint."""
    M_P, M_S = ends(loop, M)
    return M_P.inverse() @ M_S


def loop_coordinates(loop: Loop, M: dict[int, Position]) -> Vector:
    """Return the loop-joint coordinates, or the closest coordinates if the loop is open."""
    return loop.joint.fit(across(loop, M).transform())


def loop_matrix(model: Model, q: spaces.Position) -> spaces.LoopMatrix:
    """Return the loop matrix A of the loop equations A qd = b (see `loop_rate`).

    Each column contains the screw L_i of a tree joint in the loop (Legnani et al. 1996, Eq II.7),
    expressed in the successor frame of the loop joint and projected onto the constrained
    directions. The coupling matrices are appended.
    """
    A: list[dict[int, Matrix]] = []
    for loop in model.loops:
        qJ, J = loop_screws(model, loop, q)
        T = loop.joint.constraint(qJ)
        A.append({i: T.T @ J[i] * sign for i, sign in loop.path})
    return A + [coupling_matrix(model, coupling, q) for coupling in model.couplings]


def loop_screws(model: Model, loop: Loop, q: spaces.Position) -> tuple[Vector, dict[int, Motions]]:
    """Return the loop-joint coordinates, and the tree joints' screws in the successor frame."""
    M = around(model, loop, q)
    _, M_S = ends(loop, M)
    J = {}
    for i, _ in loop.path:
        L = map(Screw.of, model.bodies[i].joint.subspace(q[i]).columns)
        J[i] = Motions(tuple(M_S.to_second(M[i].to_first(l)).motion() for l in L))
    return loop_coordinates(loop, M), J


def loop_rate(model: Model, q: spaces.Position) -> spaces.LoopVector:
    """Return the right-hand side b of the loop equations A qd = b.

    b is nonzero only for time-dependent joints or couplings.

    For a loop, b is minus the velocity around the loop due to joints with prescribed motions. For a
    coupling, b is -d phi/dt (Featherstone 2008, section 3.5), or the velocity that a velocity
    constraint prescribes.
    """
    driven = model.undriven(1)
    drifts = [Vector.zero(loop.rows) for loop in model.loops]
    drifts += [coupling_drift(model, coupling, q) for coupling in model.couplings]
    return [
        -sum((A[i] @ driven[i] for i in A), drift)
        for A, drift in zip(loop_matrix(model, q), drifts, strict=True)
    ]


def loop_bias(model: Model, q: spaces.Position, qd: spaces.Velocity) -> spaces.LoopVector:
    """Return the right-hand side b of the loop equations A qdd = b.

    b is computed from velocity matrices W, and from acceleration matrices H for qdd = 0 (Legnani et
    al. 1996, Eq II.3bis and II.6). For a weld, the relative H across the loop joint is zero. For
    other loop joints, the relative H depends on the loop-joint velocities, which are computed from
    W on the assumption that qd satisfies the loop equations. Prescribed joint accelerations are
    included. For a coupling, b is -d/dt(d phi/dq) qd - d/dt(d phi/dt).
    """
    b, driven = [], model.undriven(2)
    for loop in model.loops:
        M = around(model, loop, q)
        W, H = carried(model, M, q, qd, driven)
        P, S = loop.predecessor.body, loop.successor.body
        W_PS = W[S] - W[P]
        rate = H[S].rate(W[S]) - H[P].rate(W[P]) - W[P].bracket(W_PS)
        _, M_S = ends(loop, M)
        qJ = loop_coordinates(loop, M)
        own = loop.joint.bias(qJ, loop.joint.rates(qJ, M_S.to_second(W_PS).motion()))
        b.append(loop.joint.constraint(qJ).T @ (own - M_S.to_second(rate).motion()))
    for coupling in model.couplings:
        K = coupling_matrix(model, coupling, q)
        b.append(sum((-(K[i] @ driven[i]) for i in K), coupling_bias(model, coupling, q, qd)))
    return b


# User-defined constraints -------------------------------------------------------------------------


def coupling_residual(model: Model, coupling: Coupling, q: spaces.Position) -> Vector:
    """Return the residual phi(q, t) of a coupling, which is zero if the constraint is satisfied.

    Entries that belong to velocity constraints are 0.
    """
    program, M = coupling.data.residual, placed(model, WORLD, coupling.carried, q)
    given = _at_position(model, coupling, q, M) | constraints.resting(program)
    rows = zip(coupling.holonomic, replayed(program, given), strict=True)
    return Vector(tuple(phi if held else 0.0 for held, phi in rows))


def coupling_matrix(model: Model, coupling: Coupling, q: spaces.Position) -> dict[int, Matrix]:
    """Return the constraint matrix K of a coupling, as blocks of columns by body index.

    The constraint velocity K qd + `coupling_drift` is d phi/dt for a position constraint phi = 0,
    or the residual of a velocity constraint. See Featherstone 2008, Eq 3.11 and 3.29.
    """
    M = placed(model, WORLD, coupling.carried, q)
    program = constraints.slopes(coupling.data.residual)
    names = constraints.moving(program)
    given = _at_position(model, coupling, q, M) | constraints.resting(program)
    found = iter(replayed(program, given))
    by_name = {
        name: [Vector(tuple(islice(found, v.size // coupling.rows))) for _ in range(coupling.rows)]
        for name, v in zip(names, program.outputs, strict=True)
    }
    K = {}
    for i in coupling.bodies:
        units = [Vector(unit) for unit in Matrix.identity(model.bodies[i].joint.nv).rows]
        moved = [_velocities(model, coupling, q, {i: unit}, M) for unit in units]
        rows = (
            tuple(sum((by_name[x][r].dot(v[x]) for x in names), 0.0) for v in moved)
            for r in range(coupling.rows)
        )
        K[i] = Matrix(tuple(rows))
    return K


def coupling_drift(model: Model, coupling: Coupling, q: spaces.Position) -> Vector:
    """Return the constraint velocity psi for qd = 0 (see `coupling_matrix`).

    For a position constraint phi(q, t) = 0, the result is the partial derivative of phi with
    respect to t. For a velocity constraint, the result is phi_0 (Featherstone 2008, Eq 3.29).
    """
    psi = constraints.velocities(coupling.data.residual)
    given = _at_position(model, coupling, q, placed(model, WORLD, coupling.carried, q))
    return Vector(tuple(replayed(psi, given | constraints.resting(psi))))


def coupling_bias(
    model: Model, coupling: Coupling, q: spaces.Position, qd: spaces.Velocity
) -> Vector:
    """Return k = -d psi/dt for qdd = 0, where psi is the constraint velocity (`coupling_matrix`).

    Accelerations with K qdd = k keep psi constant (Featherstone 2008, Eq 3.11).
    """
    M = placed(model, WORLD, coupling.carried, q)
    psi = constraints.velocities(coupling.data.residual)
    given = _at_position(model, coupling, q, M)
    moving = _velocities(model, coupling, q, qd, M)
    given |= {name: list(moving[name]) for name in constraints.moving(psi)}
    still = [v.name for v in psi.inputs if v.name not in constraints.MOVING]
    changes = constraints.changes(given, still)
    if "rate" in given:
        curves = {i: _curve(model.bodies[i].joint, q[i], qd[i]) for i, _ in coupling.places}
        changes["d_rate"] = [curves[i][k] for i, k in coupling.places]
    if "v" in given:
        changes["d_v"] = [0.0] * len(coupling.rates)
    if "twist" in given:
        _, H = carried(model, M, q, qd, model.at_rest())
        frames = [model.frames[name] for name in coupling.data.frames]
        points = [(H[f.body], (M[f.body] @ Position.of(f.placement)).t) for f in frames]
        changes["d_twist"] = [x for h, p in points for x in (*h.wd, *(h @ p))]
    change = constraints.accelerations(coupling.data.residual)
    return -Vector(tuple(replayed(change, given | changes)))


def _at_position(
    model: Model, coupling: Coupling, q: spaces.Position, M: Mapping[int, Position]
) -> dict[str, list[Number]]:
    """Return the joint coordinates, frame poses and time on which a constraint depends."""
    given: dict[str, list[Number]] = {"q": [q[i][k] for i, k in coupling.places], "pose": []}
    for frame in (model.frames[name] for name in coupling.data.frames):
        X = M[frame.body] @ Position.of(frame.placement)
        given["pose"] += [*(x for row in X.R.matrix().rows for x in row), *X.t]
    return given | {"t": coupling.moment()}


def _velocities(
    model: Model,
    coupling: Coupling,
    q: spaces.Position,
    qd: Mapping[int, Vector],
    M: Mapping[int, Position],
) -> dict[str, Vector]:
    """Return the joint rates and frame twists that a velocity constraint depends on.

    Joints without an entry in qd have zero velocity.
    """
    moving = {i for i, _ in coupling.places if i in qd}
    rate = {i: _rate(model.bodies[i].joint, q[i], qd[i]) for i in moving}
    W = {WORLD: Velocity.zero()}
    for i in coupling.carried:
        W[i] = W[model.bodies[i].parent]
        if i in qd:
            S = model.bodies[i].joint.subspace(q[i])
            W[i] = W[i] + M[i].to_first(Velocity.of(S @ qd[i]))
    twist: list[Number] = []
    for frame in (model.frames[name] for name in coupling.data.frames):
        point = (M[frame.body] @ Position.of(frame.placement)).t
        twist += [*W[frame.body].w, *(W[frame.body] @ point)]
    return {
        "rate": Vector(tuple(rate[i][k] if i in rate else 0.0 for i, k in coupling.places)),
        "v": Vector(tuple(qd[i][k] if i in qd else 0.0 for i, k in coupling.rates)),
        "twist": Vector(tuple(twist)),
    }


def _rate(joint: Joint, q: Vector, v: Vector) -> Vector:
    """Return the time derivatives of a joint's coordinates."""
    if joint.additive:
        return v
    return Vector(tuple(by_time(lambda s, q, v: list(joint.integrate(q, v * s)), q, v)))


def _curve(joint: Joint, q: Vector, v: Vector) -> Vector:
    """Return the second time derivatives of a joint's coordinates for a constant velocity v."""
    if joint.additive:
        return Vector.zero(joint.nq)
    rates = by_time(lambda s, q, v: list(_rate(joint, joint.integrate(q, v * s), v)), q, v)
    return Vector(tuple(rates))
