"""Inverse kinematics and distances on a GPU, compared with the CPU and forward kinematics."""

from typing import Any

import numpy as np
import pytest
from support import close, gpus

import chasles
from chasles.functions.targets import CenterOfMass, Position
from chasles.robots import delta, humanoid, puma560, stanford_arm

cupy = pytest.importorskip("cupy", reason="no CuPy: nothing is solved on a GPU here")
pytestmark = pytest.mark.skipif(not gpus(), reason="no GPU: nothing is solved on it here")

RNG = np.random.default_rng(3)


def poses(robot: chasles.Robot, frame: str, count: int) -> np.ndarray:
    return np.asarray(robot.forward_kinematics(robot.random(RNG, size=count), frame=frame))


@pytest.mark.parametrize("make", [puma560, stanford_arm])
def test_arms(make: Any) -> None:
    """Nearly all of 20,000 poses are reached within the limits, with correct solutions."""
    robot = make()
    frame = robot.frames[-1]
    T = poses(robot, frame, 20_000)
    found = robot.inverse_kinematics({frame: cupy.asarray(T)})
    q, solved = found.q.get(), found.solved.get()
    assert solved.mean() > 0.9995
    assert robot.within(q).all()
    assert np.abs(robot.forward_kinematics(q, frame=frame) - T)[solved].max() < 2e-6
    assert found.residual.get()[solved].max() <= 1e-6
    sides = np.where(q >= robot.limits.upper, 1, 0) - np.where(q <= robot.limits.lower, 1, 0)
    assert np.array_equal(found.limits.get(), sides)


def test_a_problem_has_the_same_bits_anywhere() -> None:
    """Results are bitwise identical in any order, alone, and next to hard problems.

    A whole warp works on each hard problem.
    """
    robot = puma560()
    T = poses(robot, "tool", 5_000)
    T[::50, :3, 3] *= 3.0  # out of reach
    whole = robot.inverse_kinematics({"tool": cupy.asarray(T)})
    order = RNG.permutation(len(T))
    mixed = robot.inverse_kinematics({"tool": cupy.asarray(T[order])})
    for a, b in ((whole.q, mixed.q), (whole.iterations, mixed.iterations)):
        assert np.array_equal(a.get()[order], b.get())
    for k in (0, 7, 50):
        alone = robot.inverse_kinematics({"tool": cupy.asarray(T[k])})
        assert np.array_equal(alone.q.get(), whole.q[k].get())


def test_targets_out_of_reach() -> None:
    """The median difference from the CPU's residuals is below 1e-6."""
    robot = puma560()
    T = poses(robot, "tool", 500)
    T[:, :3, 3] *= 3.0
    found = robot.inverse_kinematics({"tool": cupy.asarray(T)})
    right = robot.inverse_kinematics({"tool": T})
    assert not found.solved.any()
    assert not right.solved.any()
    off = np.linalg.norm(found.residual.get(), axis=-1) - np.linalg.norm(right.residual, axis=-1)
    assert np.median(np.abs(off)) < 1e-6


def test_malformed_targets() -> None:
    robot = puma560()
    T = poses(robot, "tool", 4)
    T[1, 0, 0], T[2, 2, 3] = np.nan, np.inf
    T[3, :3, :3] *= 1.01
    found = robot.inverse_kinematics({"tool": cupy.asarray(T)})
    assert found.solved.tolist() == [True, False, False, False]
    assert cupy.isnan(found.q[1:]).all()


def test_loops_and_humanoid() -> None:
    robot = delta()
    q = robot.assemble(RNG.uniform(-0.3, 0.3, (200, 3)), robot.neutral())
    points = robot.forward_kinematics(q, frame="platform")[:, :3, 3]
    found = robot.inverse_kinematics({"platform": Position(cupy.asarray(points))})
    assert found.solved.mean() > 0.99
    closed = robot.loop_residual(found.q.get()[found.solved.get()])
    assert np.abs(closed).max() < 1e-10
    walker = humanoid()
    q = walker.neutral() + 0.0
    target = CenterOfMass(cupy.asarray(walker.center_of_mass(q)[None] + [[0.0, 0.01, -0.02]]))
    assert walker.inverse_kinematics({"center of mass": target}, guess=q).solved.all()


def test_pytorch_and_jax() -> None:
    """PyTorch results are bitwise those of CuPy. Tensors with gradients are solved on the CPU."""
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    robot = puma560()
    T = poses(robot, "tool", 100)
    right = robot.inverse_kinematics({"tool": cupy.asarray(T)})
    tensor = torch.from_numpy(T).cuda()
    found = robot.inverse_kinematics({"tool": tensor})
    assert found.q.is_cuda
    assert found.solved.dtype == torch.bool
    assert np.array_equal(found.q.cpu().numpy(), right.q.get())
    sloped = robot.inverse_kinematics({"tool": tensor.requires_grad_()})
    sloped.q.sum().backward()
    assert tensor.grad is not None
    single = jax.numpy.asarray(T, "float32")
    found = robot.inverse_kinematics({"tool": single})
    assert isinstance(found.q, jax.Array)
    assert found.q.dtype == np.float32
    assert bool(found.solved.all())
    at = robot.forward_kinematics(np.asarray(found.q, float), frame="tool")
    assert np.abs(at - T).max() < 1e-5


def balls(name: str, radius: float) -> Any:
    return chasles.contact.Sphere(name, radius)


def rods(name: str, radius: float) -> Any:
    return chasles.contact.Capsule(name, radius, (0.0, 0.0, 0.0), (0.1, 0.02, 0.15))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("shape", [balls, rods])
def test_distances_of_compiled_shapes(shape: Any, dtype: str, tolerance: float) -> None:
    robot = puma560()
    links = [name for name in robot.bodies if name.startswith("link")]
    shapes = [shape(name, 0.05 + 0.01 * k) for k, name in enumerate(links)]
    q = robot.random(RNG, size=1000)
    right = robot.distance(q, shapes=shapes)
    found = robot.distance(cupy.asarray(q, dtype), shapes=shapes)
    assert found.distance.dtype == dtype
    close(found.distance.get(), right.distance, tolerance)
    close(found.least.get(), right.least, tolerance)
    close(found.points.get(), right.points, 100 * tolerance)
    close(found.gradient.get(), right.gradient, 100 * tolerance)
