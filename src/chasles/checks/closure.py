"""Check that loops stay closed and that their constraint forces do no work."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from chasles.algorithms import CLOSED_LOOPS, Method
from chasles.algorithms.homogeneous import around, loop_coordinates
from chasles.checks.agreement import effort, mixed
from chasles.checks.comparing import Comparison, Loss
from chasles.checks.mechanics import at_joint
from chasles.checks.trial import Trial
from chasles.model.model import Loop, Model


def loops_close(trial: Trial) -> Iterator[Comparison]:
    """Compare loop matrix, loop rate and loop bias with finite differences of the loop residual.

    With the loop matrix A, the identities are A = d residual / dq, d residual / dt = A qd - rate,
    and d(A qd - rate) / dt = A qdd - bias. Constraints on velocities have no residual and are
    excluded from the first two comparisons.
    """
    q, qd, units = trial.q, trial.qd, trial.units.closing
    still = np.array(trial.model.holonomic_rows)
    A = trial.run("loop_matrix", q)
    opened = trial.slope(lambda x: trial.run("loop_residual", x))
    loss = trial.misfit
    along = still * (A @ trial.direction)
    yield Comparison("loop_matrix", "d residual/dq", along, opened, 1.0, loss, units)
    drift = trial.rate(lambda at: at.run("loop_residual", at.q))
    rate = trial.run("loop_rate", q)
    moved = still * (A @ qd - rate)
    yield Comparison("loop_rate", "homogeneous", moved, drift, trial.speed, loss, units)
    slip = trial.rate(lambda at: at.run("loop_matrix", at.q) @ at.qd - at.run("loop_rate", at.q))
    bias = trial.run("loop_bias", q, qd)
    size = _fast(trial, trial.qdd)
    yield Comparison("loop_bias", "homogeneous", A @ trial.qdd - bias, slip, size, loss, units)


def _fast(trial: Trial, qdd: np.ndarray) -> float:
    """Return the larger of max |qdd| and speed^2, in rad/s^2 or robot lengths per s^2."""
    return float(np.max(np.abs(qdd * trial.units.rate), initial=trial.speed**2))


def constrained_motion(trial: Trial) -> Iterator[Comparison]:
    """Check that results of constrained dynamics satisfy the equations of motion, for each method.

    The equations are M qdd + h = tau + A' lambda and A qdd = bias, where A is the loop matrix. The
    bias forces h include an external wrench.
    """
    model, q, qd, rows = trial.closed, trial.q, trial.qd, trial.units.closing
    load = trial.load
    A, M, efforts = trial.run("loop_matrix", q), trial.M, trial.units.effort
    h, bias = trial.run("bias_forces", q, qd, f_ext=load), trial.run("loop_bias", q, qd)
    tau = trial.tau + trial.direction * trial.units.rate**2 * trial.force
    for way in _ways(model):
        name = "constrained_dynamics"
        qdd, lam, health = trial.ask(model, name, q, qd, tau, method=way.name, f_ext=load)
        size = float(np.max(np.abs(A.T @ lam * efforts), initial=trial.force))
        loss = max(trial.inverting, _near(health[1], 1e-2))
        pushed = M @ qdd + h - A.T @ lam
        fast = _fast(trial, qdd)
        yield Comparison(name, f"{way.name}, forces", pushed, tau, size, loss, efforts)
        yield Comparison(name, f"{way.name}, loops", A @ qdd, bias, fast, loss, rows)
        for known in ((), *_leading(model)):
            name = "constrained_hybrid_dynamics"
            given, wanted = mixed(trial, known, qdd, tau), mixed(trial, known, tau, qdd)
            found, left, _ = trial.ask(model, name, q, qd, given, f_ext=load, known=known)
            found, wanted = (effort(trial, x, known) for x in (found, wanted))
            yield Comparison(name, f"known {known}", found, wanted, size, loss, efforts)
            yield Comparison(name, "left", left, 0.0 * left, fast, loss, rows)
        e1, e2, e3 = trial.ask(model, "loop_equations", q, qd, qdd, lam, f_ext=load)
        name = "loop_equations"
        yield Comparison(name, "forces", e1, tau, size, loss, efforts)
        yield Comparison(name, "loops", e2, 0.0 * e2, fast, loss, rows)
        yield Comparison(name, "rates", e3, 0.0 * e3, trial.speed, units=rows)


def _ways(model: Model) -> list[Method]:
    """Return the constrained-dynamics methods that support a mechanism.

    Methods that are never chosen automatically are omitted. These methods invert inertia matrices
    whose entries have different units, which is inaccurate for robots thousands of meters long.
    """
    known = (way for way in CLOSED_LOOPS["constrained_dynamics"] if not way.by_name)
    return [way for way in known if not (way.needs and way.needs(model, {}))]


def _near(margin: float, usual: float) -> Loss:
    """Return the accuracy loss near a singularity, given the singularity margin.

    The loss is infinite if the margin is below `POOR`. A margin of at least `usual` causes no loss.
    """
    margin = abs(float(margin))
    times = max(1.0, usual / margin) if margin >= POOR else np.inf
    return Loss(times, f"the loops are near a singular configuration (margin {margin:.0e})")


def _leading(model: Model) -> list[tuple[str, ...]]:
    """Return a test value of the option `known`: the first joint with independent DoFs only.

    The result is [(name,)], or [] if there is no such joint.
    """
    slices = model.velocity_slices
    free = [
        i for i in model.movers if {*range(slices[i].start, slices[i].stop)} <= {*model.independent}
    ]
    return [(model.bodies[i].data.name,) for i in free[:1]]


POOR = 1e-5
"""Singularity margin below which solutions of the loop equations are too inaccurate to check."""


def freedoms(trial: Trial) -> Iterator[Comparison]:
    """Check loop-closing steps, the mass matrix in independent coordinates, and actuator forces."""
    model, q, qd, units = trial.closed, trial.q, trial.qd, trial.units
    step, rates, health = trial.ask(model, "closing_step", q, qd)
    near = _near(health[1], POOR)
    loss = max(trial.inverting, near)
    yield Comparison("closing_step", "step", step, 0.0 * step, 1.0, near, units.rate)
    yield Comparison("closing_step", "rates", rates, qd, trial.speed, near, units.rate)
    A = trial.run("loop_matrix", q)
    free = list(model.independent)
    G = np.zeros((model.nv, len(free)))
    G[free] = np.eye(len(free))
    rest, rows = list(model.closure.dependent), trial.units.closing
    scaled = rows[:, None] * A * units.effort
    within = np.linalg.lstsq(scaled[:, rest], scaled[:, free], rcond=None)[0]
    G[rest] = -within * units.effort[rest, None] * units.rate[free]
    H, _ = trial.ask(model, "independent_mass_matrix", q)
    name, kind = "independent_mass_matrix", units.inertia[np.ix_(free, free)]
    yield Comparison(name, "G'MG", H, G.T @ trial.M @ G, 0.0, loss, kind)
    moved = trial.run("integrate", q, 0.05 * trial.direction)
    back, _, _ = trial.ask(model, "closing_step", moved, qd)
    left = trial.run("loop_residual", moved)
    kept = [r for r in model.closure.rows if model.holonomic_rows[r]]
    error = trial.run("loop_matrix", moved)[kept] @ back + left[kept]
    yield Comparison("closing_step", "Newton", error, 0.0 * error, 1.0, near, rows[kept])
    if free:
        yield from _actuators(trial, G, loss)


def _actuators(trial: Trial, G: np.ndarray, loss: Loss) -> Iterator[Comparison]:
    """Check actuator forces for a robot with actuators at all DoFs.

    The forces must do the same work as the joint torques, and have minimum norm.
    """
    model, name, units = trial.closed, "actuator_forces", trial.units
    everywhere = {"actuated": tuple(range(model.nv)), "weights": (1.0,) * model.nv}
    u, _ = trial.ask(model, name, trial.q, trial.qd, trial.qdd, **everywhere)
    free = list(model.independent)
    work, force = G.T @ trial.tau, trial.force
    yield Comparison(name, "G'u", G.T @ u, work, force, loss, units.effort[free])
    least = G @ np.linalg.lstsq(G, u, rcond=None)[0]
    yield Comparison(name, "least", u, least, force, loss, units.effort)


def health(trial: Trial) -> Iterator[Comparison]:
    """Check the closure error and the singularity margin that solvers report.

    The closure error is a sum of squared scaled residuals. Every solver includes position
    residuals, and some solvers add velocity and acceleration residuals. The margin is the smallest
    ratio of a pivot of K M^-1 K' to the corresponding diagonal entry, where K is the loop matrix
    and M the mass matrix.
    """
    model, kept = trial.closed, list(trial.closed.closure.rows)
    at = replace(trial, q=trial.run("integrate", trial.q, 0.05 * trial.direction))
    q, v, a = at.q, trial.qd + trial.direction, trial.qdd - trial.direction
    scales, K = np.array(model.closure.scales), at.run("loop_matrix", q)
    slip = scales * (K @ v - at.run("loop_rate", q))
    slide = scales * (K @ a - at.run("loop_bias", q, v))
    gap = float(np.sum((scales * at.run("loop_residual", q)) ** 2))
    rates, every = (float(np.sum(x**2) / (1.0 + v @ v)) for x in (slip[kept], slip))
    bent = float(np.sum(slide[kept] ** 2) / (1.0 + a @ a + (v @ v) ** 2))
    everywhere = {"actuated": tuple(range(model.nv)), "weights": (1.0,) * model.nv}
    for name, arrays, options, far in (
        ("closing_step", (q, v), {}, gap),
        ("independent_mass_matrix", (q,), {}, gap),
        ("constrained_hybrid_dynamics", (q, v, trial.tau), {"known": ()}, gap + every),
        ("actuator_forces", (q, v, a), everywhere, gap + rates + bent),
    ):
        if name in ("actuator_forces", "independent_mass_matrix") and not model.independent:
            continue
        found = trial.ask(model, name, *arrays, **options)[-1]
        yield Comparison(name, "distance", found[0], far)
    for way in _ways(model):
        name = "constrained_dynamics"
        found = trial.ask(model, name, q, v, trial.tau, method=way.name)[-1]
        yield Comparison(name, f"{way.name}, distance", found[0], gap + rates)
        if way.name in PIVOTED:
            least = _least_pivot(at.M, K[kept])
            yield Comparison(name, f"{way.name}, margin", found[1], least, 1.0, trial.inverting)


def errors_decay(trial: Trial) -> Iterator[Comparison]:
    """Check that Baumgarte stabilization reduces loop errors with critical damping.

    The accelerations must satisfy A qdd = bias - 2/T (A qd - rate) - 1/T^2 residual for the
    independent constraints (Featherstone 2008, Eq 8.22). A is the loop matrix, T the time constant.
    """
    model, kept, name = trial.closed, list(trial.closed.closure.rows), "constrained_dynamics"
    q, v = trial.run("integrate", trial.q, 0.02 * trial.direction), trial.qd + trial.direction
    A, bias = trial.run("loop_matrix", q), trial.run("loop_bias", q, v)
    slip, open_by = A @ v - trial.run("loop_rate", q), trial.run("loop_residual", q)
    closing = bias - 2.0 / SOON * slip - open_by / SOON**2
    M, h, efforts = trial.run("mass_matrix", q), trial.run("bias_forces", q, v), trial.units.effort
    tau, rows = trial.tau, trial.units.closing[kept]
    for way in _ways(model):
        qdd, lam, health = trial.ask(model, name, q, v, tau, method=way.name, stabilization=SOON)
        loss = max(trial.inverting, _near(health[1], 1e-2))
        found, fast = (A @ qdd)[kept], _fast(trial, qdd)
        yield Comparison(name, f"{way.name}, loops", found, closing[kept], fast, loss, rows)
        size = float(np.max(np.abs(A.T @ lam * efforts), initial=trial.force))
        pushed = M @ qdd + h - A.T @ lam
        yield Comparison(name, f"{way.name}, forces", pushed, tau, size, loss, efforts)


SOON = 0.1
"""Time constant T (s) of the Baumgarte stabilization in `errors_decay`."""

PIVOTED = ("multipliers", "direct")
"""Methods of constrained dynamics that measure singularity by the smallest relative pivot of
K M^-1 K', where K is the loop matrix and M the mass matrix."""


def _least_pivot(M: np.ndarray, K: np.ndarray) -> float:
    """Return the smallest ratio of a pivot of K M^-1 K' to the corresponding diagonal entry.

    K is the loop matrix, and M the mass matrix. The result is 0 if the product is singular.
    """
    try:
        A = K @ np.linalg.solve(M, K.T)
        pivots = np.diag(np.linalg.cholesky(A[::-1, ::-1]))[::-1] ** 2
    except np.linalg.LinAlgError:
        return 0.0
    return float(np.min(pivots / np.diag(A), initial=1.0))


def loop_joints(trial: Trial) -> Iterator[Comparison]:
    """Check the wrenches and velocities at loop joints.

    The wrenches must produce the generalized forces A' lambda, where A is the loop matrix and
    lambda the constraint multipliers.
    """
    if not trial.model.loops or trial.model.driven:
        return
    model, q, qd, rng = trial.model, trial.q, trial.qd, np.random.default_rng(0)
    lam = rng.normal(size=len(trial.units.closing)) * trial.units.closing * trial.force
    lam[sum(loop.rows for loop in model.loops) :] = 0.0
    work, across, pushed = np.zeros(model.nv), [], {i: np.zeros(6) for i in model.in_file_order}
    for loop, wrench in zip(model.loops, trial.run("loop_forces", q, lam), strict=True):
        J = _across(trial, loop)
        across.append(J @ qd)
        work += J.T @ wrench
        T = trial.run("forward_kinematics", q, frame=loop.successor)
        moment, force = T[:3, :3] @ wrench[:3], T[:3, :3] @ wrench[3:]
        in_world = np.concatenate([moment + np.cross(T[:3, 3], force), force])
        for i in pushed:
            carried = model.subtree(i)
            pushed[i] += in_world * ((loop.predecessor.body in carried) * 1.0)
            pushed[i] -= in_world * ((loop.successor.body in carried) * 1.0)
    loaded, free = (
        trial.run("closed_joint_reactions", q, qd, trial.qdd, forces) for forces in (lam, 0.0 * lam)
    )
    expected = np.array([at_joint(trial, i, wrench) for i, wrench in pushed.items()])
    units = trial.units
    found, name = loaded - free, "closed_joint_reactions"
    yield Comparison(name, "spatial", found, expected, trial.force, units=units.wrench)
    A = trial.run("loop_matrix", q)
    yield Comparison("loop_forces", "A' lam", work, A.T @ lam, trial.force, units=units.effort)
    B, first = trial.run("loop_joint_matrix", q), 0
    values = model.positions(q.tolist())
    for loop, twist in zip(model.loops, across, strict=True):
        S = loop.joint.subspace(loop_coordinates(loop, around(model, loop, values)))
        columns = np.array([list(column) for column in S.columns], dtype=float).reshape(-1, 6)
        rates = B[first : first + len(columns)] @ qd
        first += len(columns)
        found, size, loss = columns.T @ rates, trial.speed, trial.misfit
        yield Comparison("loop_joint_matrix", "S B qd", found, twist, size, loss, units.twist)


def _across(trial: Trial, loop: Loop) -> np.ndarray:
    """Return the Jacobian of a loop joint's relative velocity, expressed in its successor frame."""
    S, P = (
        trial.run("jacobian", trial.q, frame=frame, axes="world", at="world")
        for frame in (loop.successor, loop.predecessor)
    )
    T = trial.run("forward_kinematics", trial.q, frame=loop.successor)
    angular, linear = (S - P)[:3], (S - P)[3:]
    linear = linear + np.cross(angular, T[:3, 3], axis=0)
    return np.concatenate([T[:3, :3].T @ angular, T[:3, :3].T @ linear])
