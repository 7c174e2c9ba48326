"""Closed loops: they stay closed, and their forces do no work."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from chasles.algorithms import CLOSED_LOOPS
from chasles.algorithms.homogeneous.loop_residual import around, loop_coordinates
from chasles.checks.agreement import effort, mixed
from chasles.checks.comparing import Comparison
from chasles.checks.mechanics import at_joint
from chasles.checks.trial import Trial, at_frame
from chasles.model.model import Loop, Model


def loops_close(trial: Trial) -> Iterator[Comparison]:
    """A = d residual / dq, and A qd = rate, A qdd = bias keep the residual where it is."""
    if not trial.model.loop_rows:
        return
    q, qd = trial.q, trial.qd
    A = trial.run("loop_matrix", q)
    opened = trial.slope(lambda x: trial.run("loop_residual", x))
    yield Comparison("loop_matrix", "d residual/dq", A @ trial.direction, opened, 1.0)
    drift = trial.rate(lambda at: at.run("loop_residual", at.q))
    rate = trial.run("loop_rate", q)
    yield Comparison("loop_rate", "homogeneous", A @ qd - rate, drift, trial.speed)
    slip = trial.rate(lambda at: at.run("loop_matrix", at.q) @ at.qd - at.run("loop_rate", at.q))
    bias = trial.run("loop_bias", q, qd)
    size = max(trial.speed**2, float(np.max(np.abs(trial.qdd), initial=0.0)))
    yield Comparison("loop_bias", "homogeneous", A @ trial.qdd - bias, slip, size)


def constrained_motion(trial: Trial) -> Iterator[Comparison]:
    """M qdd + h = tau + A' multipliers and A qdd = bias, by every method, with a load."""
    if not trial.model.loop_rows or trial.model.source.massless:
        return
    model, q, qd = trial.closed, trial.q, trial.qd
    load = at_frame(trial.robot.frames[-1], trial.wrench)
    A, M = trial.run("loop_matrix", q), trial.M
    h, bias = trial.run("bias_forces", q, qd, f_ext=load), trial.run("loop_bias", q, qd)
    tau = trial.tau + trial.direction * trial.force
    for way in CLOSED_LOOPS["constrained_dynamics"]:
        if way.needs and way.needs(model, {}):
            continue
        qdd, lam, health = trial.ask(
            model, "constrained_dynamics", q, qd, tau, method=way.name, f_ext=load
        )
        if health[1] < POOR:
            continue
        size = max(trial.force, float(np.max(np.abs(A.T @ lam), initial=0.0)))
        looser = max(trial.looser, 1e-3 / float(health[1]))
        pushed = M @ qdd + h - A.T @ lam
        name = "constrained_dynamics"
        yield Comparison(name, f"{way.name}, forces", pushed, tau, size, looser)
        fast = max(trial.speed**2, float(np.max(np.abs(qdd), initial=0.0)))
        yield Comparison(name, f"{way.name}, loops", A @ qdd, bias, fast, looser)
        for known in ((), *_leading(model)):
            name = "constrained_hybrid_dynamics"
            given, wanted = mixed(trial, known, qdd, tau), mixed(trial, known, tau, qdd)
            found, left, _ = trial.ask(model, name, q, qd, given, f_ext=load, known=known)
            found, wanted = (effort(trial, x, known) for x in (found, wanted))
            yield Comparison(name, f"known {known}", found, wanted, size, looser)
            yield Comparison(name, "left", left, 0.0 * left, fast, looser)
        e1, e2, e3 = trial.ask(model, "loop_equations", q, qd, qdd, lam, f_ext=load)
        yield Comparison("loop_equations", "forces", e1, tau, size, looser)
        yield Comparison("loop_equations", "loops", e2, 0.0 * e2, fast, looser)
        yield Comparison("loop_equations", "rates", e3, 0.0 * e3, trial.speed)


def _leading(model: Model) -> list[tuple[str, ...]]:
    """A joint whose accelerations can be given, if there is one: all its freedoms independent."""
    slices = model.velocity_slices
    free = [
        i for i in model.movers if {*range(slices[i].start, slices[i].stop)} <= {*model.independent}
    ]
    return [(model.bodies[i].data.name,) for i in free[:1]]


POOR = 1e-5
"""Margins below this are of positions near singular ones, where compiled equations lose digits."""


def independent_coordinates(trial: Trial) -> Iterator[Comparison]:
    """Rates that keep loops closed, the mass matrix of the freedoms left, forces of actuators."""
    if not trial.model.loop_rows or trial.model.source.massless:
        return
    model, q, qd = trial.closed, trial.q, trial.qd
    step, rates, health = trial.ask(model, "closing_step", q, qd)
    if abs(health[1]) < POOR:
        return
    yield Comparison("closing_step", "step", step, 0.0 * step, 1.0)
    yield Comparison("closing_step", "rates", rates, qd, trial.speed)
    A = trial.run("loop_matrix", q)
    free = list(model.independent)
    G = np.zeros((model.nv, len(free)))
    G[free] = np.eye(len(free))
    rest = list(model.closure.dependent)
    G[rest] = -np.linalg.lstsq(A[:, rest], A[:, free], rcond=None)[0]
    H, _ = trial.ask(model, "independent_mass_matrix", q)
    yield Comparison("independent_mass_matrix", "G'MG", H, G.T @ trial.M @ G, 0.0, trial.looser)
    near = 0.05 * trial.direction
    moved = trial.run("integrate", q, near)
    back, _, _ = trial.ask(model, "closing_step", moved, qd)
    left = trial.run("loop_residual", moved)
    kept = list(model.closure.rows)
    error = trial.run("loop_matrix", moved)[kept] @ back + left[kept]
    yield Comparison("closing_step", "Newton", error, 0.0 * error, 1.0)
    if free:
        everywhere = range(model.nv)
        u, _ = trial.ask(
            model,
            "actuator_forces",
            q,
            qd,
            trial.qdd,
            actuated=tuple(everywhere),
            weights=(1.0,) * model.nv,
        )
        work = G.T @ trial.tau
        yield Comparison("actuator_forces", "G'u", G.T @ u, work, trial.force, trial.looser)
        least = G @ np.linalg.lstsq(G, u, rcond=None)[0]
        yield Comparison("actuator_forces", "least", u, least, trial.force, trial.looser)


def health(trial: Trial) -> Iterator[Comparison]:
    """What solvers say of a state that is not closed: how far it is, and how near to singular.

    Squares of the scaled residual, and of what rates and accelerations do to the loops; the least
    pivot of K M^-1 K' beside its diagonal.
    """
    if not trial.model.loop_rows or trial.model.source.massless:
        return
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
        ("constrained_hybrid_dynamics", (q, v, trial.tau), {}, gap + every),
        ("actuator_forces", (q, v, a), everywhere, gap + rates + bent),
    ):
        if name in ("actuator_forces", "independent_mass_matrix") and not model.independent:
            continue
        found = trial.ask(model, name, *arrays, **options)[-1]
        yield Comparison(name, "distance", found[0], far)
    A = K[kept] @ np.linalg.solve(at.M, K[kept].T)
    pivots = np.diag(np.linalg.cholesky(A[::-1, ::-1]))[::-1] ** 2
    least = float(np.min(pivots / np.diag(A), initial=1.0))
    for way in CLOSED_LOOPS["constrained_dynamics"]:
        if way.needs and way.needs(model, {}):
            continue
        name = "constrained_dynamics"
        found = trial.ask(model, name, q, v, trial.tau, method=way.name)[-1]
        yield Comparison(name, f"{way.name}, distance", found[0], gap + rates)
        if way.name in PIVOTED:
            yield Comparison(name, f"{way.name}, margin", found[1], least, 1.0, trial.looser)


PIVOTED = ("multipliers", "direct")
"""Methods whose margins are those of K M^-1 K'."""


def loop_joints(trial: Trial) -> Iterator[Comparison]:
    """Forces of loop joints act on the tree as A' multipliers, and by their joints' rates."""
    if not trial.model.loops or trial.model.source.massless or trial.model.driven:
        return
    model, q, qd, rng = trial.model, trial.q, trial.qd, np.random.default_rng(0)
    lam = rng.normal(size=model.loop_rows)
    coupled = model.loop_rows - sum(loop.rows for loop in model.loops)
    lam[len(lam) - coupled :] = 0.0
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
    yield Comparison("closed_joint_reactions", "spatial", loaded - free, expected, trial.force)
    A = trial.run("loop_matrix", q)
    yield Comparison("loop_forces", "A' lam", work, A.T @ lam, 1.0)
    B, first = trial.run("loop_joint_matrix", q), 0
    values = model.positions(q.tolist())
    for loop, twist in zip(model.loops, across, strict=True):
        S = loop.joint.subspace(loop_coordinates(loop, around(model, loop, values)))
        columns = np.array([list(column) for column in S.columns], dtype=float).reshape(-1, 6)
        rates = B[first : first + len(columns)] @ qd
        first += len(columns)
        yield Comparison("loop_joint_matrix", "S B qd", columns.T @ rates, twist, trial.speed)


def _across(trial: Trial, loop: Loop) -> np.ndarray:
    """The Jacobian of the velocity across a loop joint, in its successor frame, from link poses."""
    S, P = (
        trial.run("jacobian", trial.q, frame=frame, axes="world", at="world")
        for frame in (loop.successor, loop.predecessor)
    )
    T = trial.run("forward_kinematics", trial.q, frame=loop.successor)
    angular, linear = (S - P)[:3], (S - P)[3:]
    linear = linear + np.cross(angular, T[:3, 3], axis=0)
    return np.concatenate([T[:3, :3].T @ angular, T[:3, :3].T @ linear])
