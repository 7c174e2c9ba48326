"""Inverse kinematics and velocity steps in C, compiled by gcc, agree with Python."""

import ctypes
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_compiler import STRICT, compiler, run
from support import raises

import chasles
from chasles.functions.reaching import MEMORY, MOST, SHARE, Task
from chasles.robots import five_bar, puma560
from chasles.targets import Axis, Pose, Position

PUMA = puma560()
NUMBERS = {"double": np.float64, "float": np.float32}


def built(robot: chasles.Robot, names: Any, folder: Path, **options: Any) -> ctypes.CDLL:
    """Export and compile a library with gcc without warnings, and run its own test."""
    chasles.export(robot, names, folder, prefix="arm", **options)
    flags = [*STRICT, "-O1", "-ffp-contract=fast", "-fno-math-errno"]
    run(compiler(), *flags, "arm.c", "arm_test.c", "-o", "tried", "-lm", cwd=folder)
    run(folder / "tried")
    run(compiler(), *flags, "-shared", "-fPIC", "arm.c", "-o", "arm.so", "-lm", cwd=folder)
    return ctypes.CDLL(str(folder / "arm.so"))


def pointer(a: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(a.__array_interface__["data"][0])


def searched(
    library: ctypes.CDLL, goals: np.ndarray, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, residuals and step counts of complete searches in C."""
    q, residual = q.copy(), np.full((len(goals), 2), np.nan, q.dtype)
    steps = np.empty(len(goals), int)
    for k, row in enumerate(goals):
        steps[k] = library.arm_inverse_kinematics(pointer(row), pointer(q[k]), pointer(residual[k]))
    return q, residual, steps


def numbers(T: np.ndarray, dtype: type) -> np.ndarray:
    """Return poses as goals: the rotation by rows, then the position."""
    flat = np.concatenate([T[:, :3, :3].reshape(-1, 9), T[:, :3, 3]], axis=1)
    return np.ascontiguousarray(flat, dtype)


def test_the_whole_search_has_pythons_answers_on_1000_poses(tmp_path: Path) -> None:
    """C finds Python's solution from a guess nearby, and reaches the poses from the neutral one."""
    library = built(PUMA, "inverse_kinematics", tmp_path / "c", frame="tool", tries=64)
    rng = np.random.default_rng(0)
    q = PUMA.random(rng, size=1000)
    T = PUMA.forward_kinematics(q, frame="tool")
    goals = numbers(T, np.float64)
    near = np.clip(q + rng.normal(size=q.shape) * 0.05, PUMA.limits.lower, PUMA.limits.upper)
    theirs = PUMA.inverse_kinematics({"tool": T}, guess=near)
    found, residual, steps = searched(library, goals, near)
    assert theirs.solved.all()
    assert (steps > 0).all()
    same = np.abs(found - theirs.q).max(axis=1) < 1e-4
    assert same.mean() > 0.99  # rounding may decide between two branches at a singularity
    found, residual, steps = searched(library, goals, np.tile(PUMA.neutral(within=True), (1000, 1)))
    solved = steps > 0
    assert solved.mean() >= 0.999
    assert np.abs(steps).max() <= 65 * 16 + 200
    assert residual[solved].max() <= 1e-6
    error = PUMA.forward_kinematics(found[solved], frame="tool") - T[solved]
    assert np.abs(error[:, :3, 3]).max() <= 1e-6
    assert np.abs(error[:, :3, :3]).max() < 3e-6
    assert (found >= PUMA.limits.lower).all()
    assert (found <= PUMA.limits.upper).all()


def test_a_target_out_of_reach_is_not_solved_within_the_bound(tmp_path: Path) -> None:
    library = built(PUMA, "inverse_kinematics", tmp_path / "c", frame="tool", tries=8)
    goals = np.array([[1.0, 0, 0, 0, 1, 0, 0, 0, 1, 9.0, 0, 0], [np.nan] * 12])
    found, residual, steps = searched(library, goals, np.full((2, 6), 0.3))
    assert (steps < 0).all()
    assert (steps >= -(9 * 16 + 200)).all()
    assert 7.0 < residual[0, 1] < 9.0
    assert np.isinf(residual[1]).all()
    assert np.isfinite(found).all()


@pytest.mark.parametrize("dtype", ["double", "float"])
def test_one_iteration_is_pythons(tmp_path: Path, dtype: str) -> None:
    kind = NUMBERS[dtype]
    library = built(PUMA, "inverse_kinematics_step", tmp_path / "c", frame="tool", dtype=dtype)
    assert not hasattr(library, "arm_inverse_kinematics")
    rng = np.random.default_rng(1)
    q, wanted = PUMA.random(rng, size=50), PUMA.random(rng, size=50)
    memory = np.zeros((50, MEMORY))
    memory[:, [MOST, SHARE]] = 16.0, 0.5
    fixed = (np.ones(6), np.full(6, 1e-4), np.ones(6))
    T = PUMA.forward_kinematics(wanted, frame="tool")
    rows = [np.ascontiguousarray(a, kind) for a in (q, memory, numbers(T, kind))]
    rows += [np.tile(a, (50, 1)).astype(kind) for a in fixed]
    out = [np.empty((50, 6), kind), np.empty((50, MEMORY), kind)]
    for k in range(50):
        library.arm_inverse_kinematics_step(*(pointer(a[k]) for a in (*rows, *out)))
    limits = (PUMA.limits.lower, PUMA.limits.upper)
    task = Task(PUMA.model, (("tool", Pose(np.eye(4))),), *limits)
    expected = [np.empty((50, 6)), np.empty((50, MEMORY))]
    task.step([a.astype(float) for a in rows], expected)
    tolerance = 1e-10 if dtype == "double" else 2e-3
    assert np.abs(out[0] - expected[0]).max() < tolerance


def test_other_targets_loops_and_floats(tmp_path: Path) -> None:
    tool = [Position([0.4, 0.2, 0.3], tolerance=1e-4), Axis([0.0, 0.0, -1.0], tolerance=1e-4)]
    library = built(
        PUMA, "inverse_kinematics", tmp_path / "a", targets={"tool": tool}, dtype="float"
    )
    goals = np.array([[0.4, 0.2, 0.3, 0.0, 0.0, -1.0, 0.0, 0.0, 1.0]], np.float32)
    q, _, steps = searched(library, goals, np.full((1, 6), 0.3, np.float32))
    T = PUMA.forward_kinematics(q[0].astype(float), frame="tool")
    assert steps[0] > 0
    assert np.abs(T[:3, 3] - goals[0, :3]).max() < 2e-4
    assert np.abs(T[:3, 2] - goals[0, 3:6]).max() < 5e-4
    robot = five_bar()
    closed = robot.assemble(np.array([1.3, 1.8]))
    at = robot.forward_kinematics(closed, frame="left_coupler")[:3, 3]
    targets = {"left_coupler": Position(at)}
    library = built(robot, "inverse_kinematics", tmp_path / "b", targets=targets)
    q, _, steps = searched(library, at[None].copy(), np.full((1, 4), 0.9))
    assert steps[0] > 0
    assert np.abs(robot.loop_residual(q[0])).max() < 1e-10
    assert np.abs(robot.forward_kinematics(q[0], frame="left_coupler")[:3, 3] - at).max() < 1e-6


@pytest.mark.parametrize("dtype", ["double", "float"])
def test_resolved_rates_are_pythons(tmp_path: Path, dtype: str) -> None:
    kind = NUMBERS[dtype]
    library = built(PUMA, "resolved_rate", tmp_path / "c", frame="tool", dtype=dtype)
    step = chasles.control.resolved_rate(PUMA, {"tool": "twist"}, dt=0.004, acceleration=8.0)
    step.velocity[:] = 1.0
    rng = np.random.default_rng(3)
    fixed = (step.weights, step.lower, step.upper, step.velocity, step.acceleration, step.dt)
    same = 0
    for _ in range(100):
        q, qd, x = PUMA.random(rng), 0.3 * rng.normal(size=6), 0.3 * rng.normal(size=6)
        given = [np.array(a, kind).reshape(-1) for a in (q, qd, x, np.zeros(6), *fixed)]
        command = np.empty(6, kind)
        library.arm_resolved_rate(*map(pointer, (*given, command)))
        assert np.abs(command).max() <= 1.0
        assert np.abs(command - given[1]).max() <= 8.0 * 0.004 * (1.0 + 1e-5)
        same += bool(np.abs(command - step(q, qd, x)).max() < (1e-5 if dtype == "double" else 1e-2))
    assert same >= (100 if dtype == "double" else 90)


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    folder = itertools.count()

    def refused(code: str, names: Any, robot: chasles.Robot = PUMA, **options: Any) -> None:
        with raises(code):
            chasles.export(robot, names, tmp_path / str(next(folder)), **options)

    refused("E-EXPORT-013", "inverse_kinematics")
    refused("E-EXPORT-013", "resolved_rate")
    refused("E-EXPORT-005", "resolved_rate", frame="tool", tries=3)
    refused("E-MODEL-034", "inverse_kinematics", frame="hand")
    fine = {"tool": Pose(np.eye(4), tolerance=1e-6)}
    refused("E-EXPORT-011", "inverse_kinematics", targets=fine, dtype="float")
    loops = {"left_coupler": Position([0.0, 0.0, 0.0], tolerance=1e-3)}
    refused("E-EXPORT-012", "inverse_kinematics", five_bar(), targets=loops, dtype="float")
    assert not list(tmp_path.iterdir())
