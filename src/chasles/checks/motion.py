"""Kinematics against itself: velocities are rates of poses, Jacobians their coefficients."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from chasles.checks.agreement import frames, views
from chasles.checks.comparing import Comparison
from chasles.checks.trial import Trial


def poses_move(trial: Trial) -> Iterator[Comparison]:
    """Poses are rigid, and their rates are what frame_velocity says."""
    for frame in frames(trial):
        T = trial.run("forward_kinematics", trial.q, frame=frame)
        R = T[:3, :3]
        yield Comparison("forward_kinematics", "spatial", R.T @ R, np.eye(3))
        yield Comparison("forward_kinematics", "spatial", T[3], [0.0, 0.0, 0.0, 1.0])
        rate = trial.rate_of("forward_kinematics", "q", frame=frame)
        W = rate[:3, :3] @ R.T
        twist = [W[2, 1], W[0, 2], W[1, 0], *rate[:3, 3]]
        v = trial.run("frame_velocity", trial.q, trial.qd, frame=frame)
        yield _motions(trial, "frame_velocity", "spatial", v, twist)


def _motions(
    trial: Trial, function: str, method: str, found: Any, expected: Any, order: int = 1
) -> Comparison:
    """Twists, or what has so many velocities multiplied."""
    return Comparison(
        function, method, found, expected, trial.speed**order, units=trial.units.twist
    )


def velocities_accelerate(trial: Trial) -> Iterator[Comparison]:
    """Accelerations are rates of velocities, jerk that of accelerations, in every view.

    Of a point fixed in the frame; at the world's origin other points pass, so there is no such
    rate, but numbers of a Jacobian have rates anywhere.
    """
    q, qd, qdd = trial.q, trial.qd, trial.qdd
    for frame in frames(trial):
        for view in ({"at": "frame"}, {"at": views(trial)[-1]["at"]}):
            where = {"frame": frame, **view}
            a = trial.rate_of("frame_velocity", "q", "qd", **where)
            found = trial.run("frame_acceleration", q, qd, qdd, **where)
            yield _motions(trial, "frame_acceleration", "classical", found, a, 2)
            motion = trial.run("frame_motion", q, qd, qdd, 0.0 * qd, **where)
            v = trial.run("frame_velocity", q, qd, **where)
            yield _motions(trial, "frame_motion", "velocity", motion[0], v)
            yield _motions(trial, "frame_motion", "acceleration", motion[1], found, 2)
            if not trial.model.driven:
                jerk = trial.rate_of("frame_acceleration", "q", "qd", "qdd", **where)
                yield _motions(trial, "frame_motion", "jerk", motion[2], jerk, 3)


def jacobians_map_rates(trial: Trial) -> Iterator[Comparison]:
    """J qd is the velocity in every view; kinds of acceleration differ as they should."""
    q, qd, qdd = trial.q, trial.qd, trial.qdd
    g = np.array(list(trial.model.gravity_vector))
    for frame in frames(trial):
        R = trial.run("forward_kinematics", q, frame=frame)[:3, :3]
        for view in views(trial):
            where = {"frame": frame, **view}
            v = trial.run("frame_velocity", q, qd, **where)
            if not trial.model.driven:
                J = trial.run("jacobian", q, **where)
                yield _motions(trial, "jacobian", "spatial", J @ qd, v)
            a, b, c = (
                trial.run("frame_acceleration", q, qd, qdd, kind=kind, **where)
                for kind in ("classical", "spatial", "proper")
            )
            across = np.concatenate([np.zeros(3), np.cross(v[:3], v[3:])])
            yield _motions(trial, "frame_acceleration", "spatial", a - b, across, 2)
            fall = np.concatenate([np.zeros(3), R.T @ g if view["axes"] == "frame" else g])
            yield _motions(trial, "frame_acceleration", "proper", a - c, fall, 2)


def views_of_velocity(trial: Trial) -> Iterator[Comparison]:
    """Every view of a velocity is the plain one, moved to its point and turned to its axes."""
    for frame in frames(trial):
        T = trial.run("forward_kinematics", trial.q, frame=frame)
        R, p = T[:3, :3], T[:3, 3]
        plain = trial.run("frame_velocity", trial.q, trial.qd, frame=frame)
        for view in views(trial):
            at = view["at"]
            point = p + R @ np.array(at) if not isinstance(at, str) else p * (at == "frame")
            w, v = plain[:3], plain[3:] + np.cross(plain[:3], point - p)
            if view["axes"] == "frame":
                w, v = R.T @ w, R.T @ v
            found = trial.run("frame_velocity", trial.q, trial.qd, frame=frame, **view)
            shown = f"axes={view['axes']}, at={at if isinstance(at, str) else 'a point'}"
            yield _motions(trial, "frame_velocity", shown, found, [*w, *v])


def jacobians_change(trial: Trial) -> Iterator[Comparison]:
    """jacobian_rate has the rates of the Jacobian's numbers, of first and second order."""
    if trial.model.driven:
        return
    q, qd, qdd = trial.q, trial.qd, trial.qdd
    for frame in frames(trial):
        for view in views(trial):
            where = {"frame": frame, **view}
            units = trial.units.jacobian
            rate = trial.rate_of("jacobian", "q", **where)
            found = trial.run("jacobian_rate", q, qd, **where)
            yield Comparison("jacobian_rate", "order 1", found, rate, trial.speed, units=units)
            rate = trial.rate_of("jacobian_rate", "q", "qd", **where)
            found = trial.run("jacobian_rate", q, qd, qdd, **where)
            size = trial.speed**2
            yield Comparison("jacobian_rate", "order 2", found, rate, size, units=units)


def recoil_keeps_momentum(trial: Trial) -> Iterator[Comparison]:
    """On a base that floats, generalized_jacobian is that of motions without momentum."""
    if not trial.has("generalized_jacobian"):
        return
    q, qd, units = trial.q, trial.qd.copy(), trial.units
    if trial.model.floating:
        base = trial.model.velocity_slices[0]
        A = trial.run("centroidal_momentum_matrix", q) * units.centroidal
        rest = np.delete(np.arange(trial.model.nv), np.arange(base.start, base.stop))
        pushed = A[:, rest] @ (qd * units.rate)[rest]
        qd[base] = np.linalg.solve(A[:, base], -pushed) * units.effort[base]
    size = float(np.max(np.abs(qd * units.rate), initial=1.0))
    for frame in frames(trial):
        for view in views(trial):
            where = {"frame": frame, **view}
            v = trial.run("frame_velocity", q, qd, **where)
            J = trial.run("generalized_jacobian", q, **where)
            name = "generalized_jacobian"
            yield Comparison(name, "spatial", J @ qd, v, size, trial.inverting, units.twist)


def steps_add_up(trial: Trial) -> Iterator[Comparison]:
    """difference undoes integrate; half a step twice is a step; no step stays."""
    q, v = trial.q, 0.7 * trial.direction
    moved = trial.run("integrate", q, v)
    found, units = trial.run("difference", q, moved), trial.units.rate
    yield Comparison("difference", "spatial", found, v, 1.0, units=units)
    half, units = trial.run("integrate", q, 0.5 * v), trial.units.position
    twice, still = trial.run("integrate", half, 0.5 * v), trial.run("integrate", q, 0.0 * v)
    yield Comparison("integrate", "twice half", twice, moved, 1.0, units=units)
    yield Comparison("integrate", "no step", still, q, 1.0, units=units)
