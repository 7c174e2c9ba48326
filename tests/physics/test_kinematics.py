"""Poses, velocities, accelerations and Jacobians are derivatives of one another.

Rounding errors are at most 1e-11, errors of differences at most 1e-7 (see `Machine.rate`).
"""

import numpy as np
import pytest
from machines import VIEWS, Machine, matvec, steps
from support import close

ROUNDING = 1e-11
DIFFERENCE = 1e-7


def vee(A: np.ndarray) -> np.ndarray:
    """Return w of the skew part [w x] of A."""
    w = np.stack([A[..., 2, 1], A[..., 0, 2], A[..., 1, 0]], axis=-1)
    v = np.stack([A[..., 1, 2], A[..., 2, 0], A[..., 0, 1]], axis=-1)
    return (w - v) / 2.0


def test_poses_are_rigid(machine: Machine) -> None:
    T = machine.run("forward_kinematics", machine.q, frame="tip")
    R = T[:, :3, :3]
    close(np.swapaxes(R, -1, -2) @ R, np.broadcast_to(np.eye(3), R.shape), 1e-14)
    close(np.linalg.det(R), np.ones(len(R)), 1e-14)
    assert np.array_equal(T[:, 3], np.tile([0.0, 0.0, 0.0, 1.0], (len(T), 1)))


def test_velocity_is_the_rate_of_the_pose(machine: Machine) -> None:
    T = machine.run("forward_kinematics", machine.q, frame="tip")
    rate = machine.rate(lambda q, qd: machine.run("forward_kinematics", q, frame="tip"))
    w = vee(rate[:, :3, :3] @ np.swapaxes(T[:, :3, :3], -1, -2))
    v = machine.run("frame_velocity", machine.q, machine.qd, frame="tip")
    close(v, np.concatenate([w, rate[:, :3, 3]], axis=-1), DIFFERENCE)


def test_jacobian_is_the_gradient_of_the_pose(machine: Machine) -> None:
    """The Jacobian agrees with differences of integrate(q, d) at d = 0, column by column."""
    q, t = machine.q, 1e-5
    T = machine.run("forward_kinematics", q, frame="tip")
    columns = []
    for step in steps(machine.nv, t):
        ahead, behind = (
            machine.run("forward_kinematics", machine.run("integrate", q, s * step), frame="tip")
            for s in (1.0, -1.0)
        )
        rate = (ahead - behind) / (2.0 * t)
        w = vee(rate[:, :3, :3] @ np.swapaxes(T[:, :3, :3], -1, -2))
        columns.append(np.concatenate([w, rate[:, :3, 3]], axis=-1))
    J = machine.run("jacobian", q, frame="tip")
    close(J, np.stack(columns, axis=-1), DIFFERENCE)


@pytest.mark.parametrize(("axes", "at"), VIEWS)
def test_views_of_one_motion(compiled: Machine, axes: str, at: object) -> None:
    """In every view, J qd is the velocity, its rate is J qdd + Jdot qd, and Jdot is dJ/dt."""
    q, qd, qdd = compiled.q, compiled.qd, compiled.qdd
    view = {"frame": "tip", "axes": axes, "at": at}
    J, rate = compiled.run("jacobian", q, **view), compiled.run("jacobian_rate", q, qd, **view)
    close(compiled.run("frame_velocity", q, qd, **view), matvec(J, qd), ROUNDING)
    close(rate, compiled.rate(lambda q, qd: compiled.run("jacobian", q, **view)), DIFFERENCE)
    moving = compiled.rate(lambda q, qd: compiled.run("frame_velocity", q, qd, **view))
    close(matvec(J, qdd) + matvec(rate, qd), moving, DIFFERENCE)


@pytest.mark.parametrize(("axes", "at"), VIEWS)
def test_change_of_view(compiled: Machine, axes: str, at: object) -> None:
    """Velocities in any view agree with the one in world axes at the frame's origin."""
    q, qd = compiled.q, compiled.qd
    T = compiled.run("forward_kinematics", q, frame="tip")
    R, p = T[:, :3, :3], T[:, :3, 3]
    plain = compiled.run("frame_velocity", q, qd, frame="tip", axes="world", at="frame")
    point = (
        {"frame": p, "world": np.zeros_like(p)}.get(at)
        if isinstance(at, str)
        else (p + matvec(R, np.broadcast_to(at, p.shape)))
    )
    w, v = plain[:, :3], plain[:, 3:] + np.cross(plain[:, :3], point - p)
    if axes == "frame":
        w, v = (matvec(np.swapaxes(R, -1, -2), x) for x in (w, v))
    found = compiled.run("frame_velocity", q, qd, frame="tip", axes=axes, at=at)
    close(found, np.concatenate([w, v], axis=-1), ROUNDING)


def test_classical_acceleration_is_the_rate_of_velocity(machine: Machine) -> None:
    a = machine.run("frame_acceleration", machine.q, machine.qd, machine.qdd, frame="tip")
    close(
        a, machine.rate(lambda q, v: machine.run("frame_velocity", q, v, frame="tip")), DIFFERENCE
    )


@pytest.mark.parametrize(("axes", "at"), VIEWS)
def test_kinds_of_acceleration(compiled: Machine, axes: str, at: object) -> None:
    """Classical is spatial acceleration plus w x v; proper is classical minus gravity."""
    state, view = (compiled.q, compiled.qd, compiled.qdd), {"frame": "tip", "axes": axes, "at": at}
    a = {
        kind: compiled.run("frame_acceleration", *state, kind=kind, **view)
        for kind in ("classical", "spatial", "proper")
    }
    v = compiled.run("frame_velocity", compiled.q, compiled.qd, **view)
    close(a["classical"][:, :3], a["spatial"][:, :3], ROUNDING)
    close(a["classical"][:, 3:], a["spatial"][:, 3:] + np.cross(v[:, :3], v[:, 3:]), ROUNDING)
    T = compiled.run("forward_kinematics", compiled.q, frame="tip")
    R = T[:, :3, :3] if axes == "frame" else np.broadcast_to(np.eye(3), T[:, :3, :3].shape)
    g = matvec(np.swapaxes(R, -1, -2), np.broadcast_to(compiled.robot.gravity, (len(R), 3)))
    close(a["proper"][:, 3:], a["classical"][:, 3:] - g, ROUNDING)


# Configuration space ---------------------------------------------------------------------------


def test_difference_undoes_integrate(machine: Machine) -> None:
    moved = machine.run("integrate", machine.q, machine.qd)
    close(machine.run("difference", machine.q, moved), machine.qd, 1e-12)


def test_integrate_undoes_difference(machine: Machine) -> None:
    """`integrate` inverts `difference`; poses are compared, as q and -q are the same rotation."""
    q1 = machine.q[::-1].copy()
    moved = machine.run("integrate", machine.q, machine.run("difference", machine.q, q1))
    for link in machine.robot.bodies[-3:]:
        there = machine.run("forward_kinematics", q1, frame=link)
        close(machine.run("forward_kinematics", moved, frame=link), there, 1e-12)


def test_no_step_stays(machine: Machine) -> None:
    rest = np.zeros_like(machine.qd)
    close(machine.run("integrate", machine.q, rest), machine.q, 1e-15)
    close(machine.run("difference", machine.q, machine.q), rest, 1e-15, scale=1.0)


def test_half_steps_add_up(machine: Machine) -> None:
    """Two half steps at constant velocity are equal to one whole step."""
    half = machine.run("integrate", machine.q, 0.5 * machine.qd)
    close(
        machine.run("integrate", half, 0.5 * machine.qd),
        machine.run("integrate", machine.q, machine.qd),
        1e-14,
    )


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e-8, 1e-5, 1e-3, 1e-1, 1.0])
def test_steps_of_any_size(compiled: Machine, size: float) -> None:
    """`difference` recovers steps of any size with a small relative error."""
    step = size * compiled.qd / np.max(np.abs(compiled.qd))
    origin = np.broadcast_to(compiled.robot.neutral(), compiled.q.shape)
    moved = compiled.run("integrate", origin, step)
    close(compiled.run("difference", origin, moved), step, 1e-14)
