"""Actuator, loop and joint forces in mechanisms with closed loops."""

from collections.abc import Iterator, Sequence
from itertools import islice

from chasles.algorithms.closed_loops.dynamics import (
    constraints,
    eliminated,
    entries,
    health,
    slipping,
    strayed,
)
from chasles.algorithms.homogeneous import (
    across,
    around,
    loop_bias,
    loop_coordinates,
    loop_matrix,
    loop_screws,
)
from chasles.algorithms.spatial.dynamics import (
    inverse_dynamics,
    joint_reactions,
    newton_euler_vector,
)
from chasles.algorithms.spatial.sensors import sensor_values
from chasles.mathematics.linear import Matrix, Vector, solve_symmetric
from chasles.mathematics.spatial import Force
from chasles.model.loads import Load
from chasles.model.model import WORLD, Model
from chasles.model.sensors import SensorData
from chasles.model.spaces import (
    ABSENT,
    DrivenEffort,
    Health,
    Loads,
    LoopForces,
    LoopJointMatrix,
    LoopNumbers,
    Position,
    Reactions,
    SensorNumbers,
    TreeVector,
    Velocity,
    Wrenches,
    stack,
    tree_places,
)


def loop_equations(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    multipliers: LoopNumbers,
    f_ext: Wrenches = ABSENT,
) -> tuple[TreeVector, LoopNumbers, LoopNumbers]:
    """Return the joint torques, and the acceleration and velocity residuals of all loop equations.

    The torques are tau = H qdd + h - K' lam, and the residuals are K qdd - k and K qd - b
    (Featherstone 2008, Eq 8.1-8.6). Redundant loop equations are included. `linearize`
    differentiates these expressions for mechanisms with loops.
    """
    order, rows = model.in_tree_order, range(model.loop_rows)
    tau = stack(model.efforts(newton_euler_vector(model, q, qd, qdd, f_ext)), order)
    K, k = constraints(model, q, rows), entries(loop_bias(model, q, qd), rows)
    slip = slipping(model, q, K, stack(qd, order), rows)
    return tau - K.T @ multipliers, K @ stack(qdd, order) - k, slip


def actuator_forces(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    f_ext: Wrenches = ABSENT,
    *,
    actuated: Sequence[int],
    weights: Sequence[float],
) -> tuple[TreeVector, Health]:
    """Solve G_u' u = G' tau for the actuator forces u (Featherstone 2008, Eq 8.61-8.63).

    G maps velocities of the independent coordinates to joint velocities, and G_u contains the rows
    of G for the actuated joints. tau follows from inverse dynamics of the tree. If there are more
    actuators than degrees of freedom, the weighted sum of u^2 is minimized. All independent
    coordinates of the closure are actuated, so G_u contains an identity matrix.
    """
    order, place, rows = model.in_tree_order, tree_places(model), model.closure.rows
    tau = stack(model.efforts(newton_euler_vector(model, q, qd, qdd, f_ext)), order)
    K, k = constraints(model, q, rows), entries(loop_bias(model, q, qd), rows)
    v, a = stack(qd, order), stack(qdd, order)
    speed = v.dot(v)
    stray = strayed(model, rows, slipping(model, q, K, v, rows), speed)
    stray += strayed(model, rows, K @ a - k, a.dot(a) + speed * speed)
    solved = eliminated(model, K, Vector.zero(len(K.rows)))
    G = solved.G
    used = [place[c] for c in actuated]
    G_u = Matrix(tuple(G.rows[c] for c in used))
    eased = Matrix(
        tuple(tuple(e * (1.0 / w) for e in row) for row, w in zip(G_u.rows, weights, strict=True))
    )
    u = dict(zip(used, eased @ solve_symmetric(G_u.T @ eased, G.T @ tau), strict=True))
    forces = Vector(tuple(u.get(c, 0.0) for c in range(model.nv)))
    return forces, health(model, q, solved.margins, stray)


def loop_joint_matrix(model: Model, q: Position) -> LoopJointMatrix:
    """Return B = T_a' J_L, which maps qd to loop-joint velocities (Featherstone 2008, section 8.4).

    T_a spans the active forces of a loop joint (T_a' S = 1). J_L maps qd to the relative velocity
    of the two links that the loop joint connects. By virtual work, forces f at the loop joints are
    equivalent to forces B' f at the tree joints (Featherstone 2008, Eq 8.31).
    """
    B: list[dict[int, Matrix]] = []
    for loop in model.loops:
        qJ, J = loop_screws(model, loop, q)
        Ta = loop.joint.active(qJ)
        B.append({i: Ta.T @ J[i] * sign for i, sign in loop.path})
    return B


def loop_forces(model: Model, q: Position, multipliers: LoopNumbers) -> LoopForces:
    """Return the force f = T lam of each loop joint on its successor (Featherstone 2008, Eq 8.28).

    The force is expressed in the successor frame.
    """
    found, numbers = [], iter(multipliers)
    for loop in model.loops:
        T = loop.joint.constraint(loop_coordinates(loop, around(model, loop, q)))
        found.append(T @ Vector(tuple(islice(numbers, loop.rows))))
    return found


def closed_joint_reactions(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    multipliers: LoopNumbers,
    f_ext: Wrenches = ABSENT,
) -> Reactions:
    """Return the joint reactions, including loop-joint forces on both connected links.

    See Featherstone 2008, Eq 8.2.
    """
    loads = {WORLD: Force.zero()} | {i: f_ext[i] for i in range(len(model.parts))}
    for load in _loop_loads(model, q, multipliers):
        loads[load.body] += load.f
    return joint_reactions(model, q, qd, qdd, loads)


def closed_sensor_values(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    multipliers: LoopNumbers,
    f_ext: Loads = (),
    *,
    sensors: tuple[SensorData, ...],
) -> SensorNumbers:
    """Return concatenated sensor values, including the effects of external and loop forces."""
    loads = [*f_ext, *_loop_loads(model, q, multipliers)]
    return sensor_values(model, q, qd, qdd, loads, sensors=sensors)


def _loop_loads(model: Model, q: Position, multipliers: LoopNumbers) -> Iterator[Load]:
    """Yield the force that each loop joint exerts on each of its two links."""
    for loop, f in zip(model.loops, loop_forces(model, q, multipliers), strict=True):
        P, S = loop.predecessor, loop.successor
        X = across(loop, around(model, loop, q)).transform()  # from predecessor to successor frame
        on_both = ((S, loop.data.child, f), (P, loop.data.parent, -(X.T @ f)))
        for end, link, force in on_both:
            yield Load(end.body, end.placement.T @ force, Vector.zero(), True, True, link or "")


def driving_forces(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    multipliers: LoopNumbers,
    f_ext: Wrenches = ABSENT,
) -> DrivenEffort:
    """Return the generalized forces that produce the prescribed motions.

    The result is tau = S'f - K' lam (Featherstone 2008, Eq 8.4), where S'f are the generalized
    forces from inverse dynamics of the tree, and K' lam are the loop and coupling forces.
    """
    tau, numbers = dict(inverse_dynamics(model, q, qd, qdd, f_ext)), iter(multipliers)
    for constraint, K in zip(model.constraints, loop_matrix(model, q), strict=True):
        lam = Vector(tuple(islice(numbers, constraint.rows)))
        for i, block in K.items():
            tau[i] -= block.T @ lam
    return tau
