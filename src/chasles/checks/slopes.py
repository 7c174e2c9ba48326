"""Check kinematics, and compare derivatives with finite differences."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from chasles.checks.comparing import Comparison
from chasles.checks.mechanics import lift
from chasles.checks.trial import Trial, slope_at


def poses_move(trial: Trial) -> Iterator[Comparison]:
    """Check that rotation matrices are orthogonal and that pose rates match `frame_velocity`."""
    for frame in trial.frames:
        T = trial.run("forward_kinematics", trial.q, frame=frame)
        R = T[:3, :3]
        yield Comparison("forward_kinematics", "spatial", R.T @ R, np.eye(3))
        yield Comparison("forward_kinematics", "spatial", T[3], [0.0, 0.0, 0.0, 1.0])
        rate = trial.rate_of("forward_kinematics", "q", frame=frame)
        W = rate[:3, :3] @ R.T
        twist = [W[2, 1], W[0, 2], W[1, 0], *rate[:3, 3]]
        v = trial.run("frame_velocity", trial.q, trial.qd, frame=frame)
        yield trial.twists("frame_velocity", "spatial", v, twist)


def velocities_accelerate(trial: Trial) -> Iterator[Comparison]:
    """Compare accelerations and jerks with finite differences of velocities and accelerations."""
    q, qd, qdd = trial.q, trial.qd, trial.qdd
    for frame in trial.frames:
        for view in ({"at": "frame"}, {"at": trial.views[-1]["at"]}):
            where = {"frame": frame, **view}
            a = trial.rate_of("frame_velocity", "q", "qd", **where)
            found = trial.run("frame_acceleration", q, qd, qdd, **where)
            yield trial.twists("frame_acceleration", "classical", found, a, 2)
            motion = trial.run("frame_motion", q, qd, qdd, 0.0 * qd, **where)
            v = trial.run("frame_velocity", q, qd, **where)
            yield trial.twists("frame_motion", "velocity", motion[0], v)
            yield trial.twists("frame_motion", "acceleration", motion[1], found, 2)
            if not trial.model.driven:
                jerk = trial.rate_of("frame_acceleration", "q", "qd", "qdd", **where)
                yield trial.twists("frame_motion", "jerk", motion[2], jerk, 3)


def jacobians_map_rates(trial: Trial) -> Iterator[Comparison]:
    """Check that the Jacobian times the joint velocities gives the frame velocity.

    Also check that classical, spatial and proper accelerations are consistent.
    """
    q, qd, qdd = trial.q, trial.qd, trial.qdd
    g = np.array(list(trial.model.gravity_vector))
    for where in trial.places:
        R = trial.run("forward_kinematics", q, frame=where["frame"])[:3, :3]
        v = trial.run("frame_velocity", q, qd, **where)
        if not trial.model.driven:
            J = trial.run("jacobian", q, **where)
            yield trial.twists("jacobian", "spatial", J @ qd, v)
        a, b, c = (
            trial.run("frame_acceleration", q, qd, qdd, kind=kind, **where)
            for kind in ("classical", "spatial", "proper")
        )
        across = np.concatenate([np.zeros(3), np.cross(v[:3], v[3:])])
        yield trial.twists("frame_acceleration", "spatial", a - b, across, 2)
        fall = np.concatenate([np.zeros(3), R.T @ g if where["axes"] == "frame" else g])
        yield trial.twists("frame_acceleration", "proper", a - c, fall, 2)


def views_of_velocity(trial: Trial) -> Iterator[Comparison]:
    """Check that frame velocities are consistent for all choices of `at` and `axes`."""
    for frame in trial.frames:
        T = trial.run("forward_kinematics", trial.q, frame=frame)
        R, p = T[:3, :3], T[:3, 3]
        plain = trial.run("frame_velocity", trial.q, trial.qd, frame=frame)
        for view in trial.views:
            at = view["at"]
            point = p + R @ np.array(at) if not isinstance(at, str) else p * (at == "frame")
            w, v = plain[:3], plain[3:] + np.cross(plain[:3], point - p)
            if view["axes"] == "frame":
                w, v = R.T @ w, R.T @ v
            found = trial.run("frame_velocity", trial.q, trial.qd, frame=frame, **view)
            shown = f"axes={view['axes']}, at={at if isinstance(at, str) else 'a point'}"
            yield trial.twists("frame_velocity", shown, found, [*w, *v])


def jacobians_change(trial: Trial) -> Iterator[Comparison]:
    """Check that `jacobian_rate` returns the Jacobian's first and second time derivatives."""
    if trial.model.driven:
        return
    q, qd, qdd = trial.q, trial.qd, trial.qdd
    for where in trial.places:
        units = trial.units.jacobian
        rate = trial.rate_of("jacobian", "q", **where)
        found = trial.run("jacobian_rate", q, qd, **where)
        yield Comparison("jacobian_rate", "order 1", found, rate, trial.speed, units=units)
        rate = trial.rate_of("jacobian_rate", "q", "qd", **where)
        found = trial.run("jacobian_rate", q, qd, qdd, **where)
        size = trial.speed**2
        yield Comparison("jacobian_rate", "order 2", found, rate, size, units=units)


def recoil_keeps_momentum(trial: Trial) -> Iterator[Comparison]:
    """Check that `generalized_jacobian` gives frame velocities if the total momentum is zero."""
    q, qd, units = trial.q, trial.qd.copy(), trial.units
    if trial.model.floating:
        base = trial.model.velocity_slices[0]
        A = trial.run("centroidal_momentum_matrix", q) * units.centroidal
        rest = np.delete(np.arange(trial.model.nv), np.arange(base.start, base.stop))
        pushed = A[:, rest] @ (qd * units.rate)[rest]
        qd[base] = np.linalg.solve(A[:, base], -pushed) * units.effort[base]
    size = float(np.max(np.abs(qd * units.rate), initial=1.0))
    for where in trial.places:
        v = trial.run("frame_velocity", q, qd, **where)
        J = trial.run("generalized_jacobian", q, **where)
        name = "generalized_jacobian"
        yield Comparison(name, "spatial", J @ qd, v, size, trial.inverting, units.twist)


def steps_add_up(trial: Trial) -> Iterator[Comparison]:
    """Check that `difference` inverts `integrate`, and that two half steps equal one step."""
    q, v = trial.q, 0.7 * trial.direction
    moved = trial.run("integrate", q, v)
    found, units = trial.run("difference", q, moved), trial.units.rate
    yield Comparison("difference", "spatial", found, v, 1.0, units=units)
    half, units = trial.run("integrate", q, 0.5 * v), trial.units.position
    twice, still = trial.run("integrate", half, 0.5 * v), trial.run("integrate", q, 0.0 * v)
    yield Comparison("integrate", "twice half", twice, moved, 1.0, units=units)
    yield Comparison("integrate", "no step", still, q, 1.0, units=units)


# Derivatives ----------------------------------------------------------------------------------


def gradients(trial: Trial) -> Iterator[Comparison]:
    """Check that gravity and spring forces are the gradient of the potential energy.

    Also check that C + C' = dM/dt for the Coriolis matrix C and the mass matrix M.
    """
    q, d = trial.q, trial.direction
    climbed = trial.slope(lambda x: trial.run("potential_energy", x))
    if not trial.model.driven:
        g = trial.run("gravity_forces", q) + trial.run("spring_forces", q) - lift(trial)
        yield Comparison("gravity_forces", "dV/dq", g @ d, climbed, trial.force)
    if trial.has("coriolis_matrix"):
        C = trial.run("coriolis_matrix", q, trial.qd)
        rate = trial.rate_of("mass_matrix", "q")
        units = trial.units.inertia
        yield Comparison("coriolis_matrix", "C + C'", C + C.T, rate, trial.force, units=units)


def sensitivities(trial: Trial) -> Iterator[Comparison]:
    """Compare `inverse_dynamics_sensitivities` with finite differences of inverse dynamics."""
    name, state = "inverse_dynamics_sensitivities", (trial.q, trial.qd, trial.qdd)
    expected = _slopes(trial, "inverse_dynamics", state)
    for way in trial.ways(name):
        found = trial.ask(trial.whole, name, *state, method=way.name, f_ext=trial.load)
        for letter, block, slope in zip("PVD", reversed(found), expected, strict=True):
            yield _along(trial, name, f"{way.name}, {letter}0", block, slope)


def inverse_recursion(trial: Trial) -> Iterator[Comparison]:
    """Check recursively computed derivatives of inverse dynamics.

    Damping and an external wrench are included.
    """
    name, state = "inverse_dynamics", (trial.q, trial.qd, trial.qdd)
    expected = _slopes(trial, name, state)
    found = trial.derivatives(name, *state, f_ext=trial.load)
    for k, (block, slope) in enumerate(zip(found, expected, strict=True)):
        yield _along(trial, name, f"derivative {k + 1}", block, slope)


def _along(
    trial: Trial, function: str, method: str, block: np.ndarray, slope: np.ndarray
) -> Comparison:
    """Compare the derivative of joint torques along `trial.direction` with a finite difference."""
    along, size, units = block @ trial.direction, trial.force * trial.speed, trial.units.effort
    return Comparison(function, method, along, slope, size, units=units)


def forward_recursion(trial: Trial) -> Iterator[Comparison]:
    """Check the derivatives of forward dynamics and the matrices returned by `linearize`.

    Accelerations are multiplied by the mass matrix and compared as generalized forces.
    """
    if trial.model.idle:
        return
    q, qd, d, n, load = trial.q, trial.qd, trial.direction, trial.model.nv, trial.load
    tau = trial.ask(trial.whole, "inverse_dynamics", q, qd, trial.qdd, f_ext=load)
    solver = trial.ways("forward_dynamics")[0].name
    push = trial.force * d * trial.units.rate**2
    expected = _slopes(trial, "forward_dynamics", (q, qd, tau), push, method=solver)
    found = trial.derivatives("forward_dynamics", q, qd, tau, f_ext=load)
    rows = [("forward_dynamics", f"derivative {k + 1}", x) for k, x in enumerate(found)]
    linear = trial.model.nv > 0 and not trial.nonholonomic
    if linear:
        A, B = trial.ask(trial.whole, "linearize", q, qd, tau, f_ext=load)
        blocks = {"A, q": A[n:, :n], "A, qd": A[n:, n:], "B": B[n:]}
        rows += [("linearize", name, block) for name, block in blocks.items()]
    size = trial.force * trial.speed
    for k, (function, name, block) in enumerate(rows):
        needed, change = trial.M @ (block @ (d, d, push)[k % 3]), trial.M @ expected[k % 3]
        units = trial.units.effort
        yield Comparison(function, name, needed, change, size, trial.inverting, units)
    if linear:
        drift, rate = _drift(trial), trial.units.rate
        yield Comparison("linearize", "A, step", A[:n, :n] @ d, drift, trial.speed, units=rate)
        yield Comparison("linearize", "A, rate", A[:n, n:], np.eye(n))
        yield Comparison("linearize", "B, step", B[:n], np.zeros((n, n)))


def _drift(trial: Trial) -> np.ndarray:
    """Return the rate at which two motions with the same joint velocity move apart.

    The motions start at nearby configurations that differ along `trial.direction`. The rate is
    per unit of the initial difference.
    """
    q, qd, d = trial.q, trial.qd, trial.direction

    def apart(s: float, e: float) -> np.ndarray:
        here = trial.run("integrate", q, s * qd)
        there = trial.run("integrate", trial.run("integrate", q, e * d), s * qd)
        return trial.run("difference", here, there)

    return slope_at(lambda s: slope_at(lambda e: apart(s, e)))


def _slopes(
    trial: Trial,
    function: str,
    state: tuple[np.ndarray, ...],
    push: np.ndarray | None = None,
    **options: Any,
) -> list[np.ndarray]:
    """Return the directional derivatives of a function with respect to each array in `state`.

    The derivatives are finite differences along `trial.direction`. If `push` is given, the
    last array changes along `push` instead.
    """
    q, x, y = state
    d, model = trial.direction, trial.whole

    def value(*arrays: np.ndarray) -> np.ndarray:
        return trial.ask(model, function, *arrays, f_ext=trial.load, **options)

    return [
        trial.slope(lambda at: value(at, x, y)),
        slope_at(lambda s: value(q, x + s * d, y)),
        slope_at(lambda s: value(q, x, y + s * (d if push is None else push))),
    ]
