"""Rollouts on a GPU compared with the CPU. The tests are skipped without a GPU."""

from typing import Any

import numpy as np
import pytest
from support import close, gpus

from chasles import contact
from chasles.expr import sin
from chasles.robots import humanoid, puma560, quadruped
from chasles.rollouts import GravityCompensation, PDControl, Trajectory

cupy = pytest.importorskip("cupy", reason="no CuPy: rollouts on a GPU are not tested here")
pytestmark = pytest.mark.skipif(not gpus(), reason="no GPU: rollouts on it are not tested here")

RNG = np.random.default_rng(4)
CASES = [
    (puma560, "semi-implicit"),
    (puma560, "rk4"),
    (quadruped, "semi-implicit"),
    (humanoid, "euler"),
]
TOLERANCE = {"float64": 1e-12, "float32": 1e-4}
"""Tolerances for a hundred steps. In float32, rounding errors of 6e-8 per step grow with the
motion.
"""


def same(got: Trajectory, right: Trajectory, dtype: str, times: float = 1.0) -> None:
    assert np.array_equal(got.t, right.t)
    for a, b in ((got.q, right.q), (got.qd, right.qd)):
        assert isinstance(a, cupy.ndarray)
        assert a.dtype == dtype
        close(cupy.asnumpy(a), b, times * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("robot", "method"), CASES)
def test_as_on_the_cpu(robot: Any, method: str, dtype: str) -> None:
    """Rollouts agree with the CPU for rows and columns, and with forces for each robot and step."""
    made, count = robot(), 100
    q, qd = made.random(RNG, size=count), RNG.uniform(-0.3, 0.3, (count, made.nv))
    tau = RNG.uniform(-0.1, 0.1, (count, 100, made.nv))
    q, qd, tau = (a.astype(dtype).astype(float) for a in (q, qd, tau))
    options: dict[str, Any] = {"dt": 1e-3, "steps": 100, "every": 30, "integrator": method}
    right = made.rollout(q, qd, tau, **options)
    for order in "CF":
        arrays = [cupy.asarray(a, dtype, order=order) for a in (q, qd, tau)]
        same(made.rollout(*arrays, **options), right, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_contacts(dtype: str) -> None:
    """A quadruped that lands on soft ground has the motion, forces, gaps and states of the CPU.

    Rounding errors grow tenfold in an impact, because the feet weigh 0.1 kg and the ground is
    stiff.
    """
    robot = quadruped()
    q = robot.neutral()
    q[7:] = np.tile([0.0, 0.8, -1.6], 4)
    feet = [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]
    q[6] = 0.02 - min(robot.forward_kinematics(q, frame=foot)[2, 3] for foot in feet)
    law = contact.SoftContact(contact.HuntCrossley(5e5, 0.5), contact.SoftFriction(0.8, 2e4, 400.0))
    pairs = [contact.Pair(contact.Point(foot), contact.Plane(), law) for foot in feet]
    lead = q + 0.01 * RNG.normal(size=(50, robot.nq))
    lead = lead.astype(dtype).astype(float)
    options: dict[str, Any] = {"dt": 5e-4, "steps": 200, "every": 40, "contacts": pairs}
    right = robot.rollout(lead, np.zeros(18), **options)
    arrays = [cupy.asarray(a, dtype) for a in (lead, np.zeros(18))]
    got = robot.rollout(*arrays, **options)
    same(got, right, dtype, 10.0)
    for a, b in zip(got.touching, right.touching, strict=True):  # type: ignore[arg-type]
        close(cupy.asnumpy(a), b, 100.0 * TOLERANCE[dtype])


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-3)])
def test_time_stepping(dtype: str, tolerance: float) -> None:
    """A quadruped lands on rigid ground with the motion, forces and iterations of the CPU.

    Rounding may change the number of iterations, or whether a foot sticks or slides. Therefore only
    95 % of the robots must agree.
    """
    robot = quadruped()
    q = robot.neutral()
    feet = [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]
    q[6] = 0.03 - min(robot.forward_kinematics(q, frame=foot)[2, 3] for foot in feet)
    law = contact.Rigid(friction=0.7)
    pairs = [contact.Pair(contact.Sphere(foot, 0.02), contact.Plane(), law) for foot in feet]
    gains = [[0.0] * 6 + [gain] * 12 for gain in (200.0, 10.0)]
    options: dict[str, Any] = {"dt": 2e-3, "steps": 100, "every": 30, "contacts": pairs}
    options |= {"control": PDControl(*gains, q), "integrator": "time-stepping"}
    lead = np.tile(q, (5000, 1))
    lead[:, 6:] += 0.01 * RNG.normal(size=(5000, 13))
    lead = lead.astype(dtype).astype(float)
    right = robot.simulate(lead[:200], np.zeros(18), **options)
    arrays = [cupy.asarray(a, dtype) for a in (lead, np.zeros(18))]
    got = robot.simulate(*arrays, **options)
    assert got.compiled
    assert got.q.shape == (5000, 5, 19)
    assert np.array_equal(got.t, right.t)
    few = lead[[7, 4999]], np.zeros(18)
    alone = robot.simulate(*(cupy.asarray(a, dtype) for a in few), **options)
    assert np.array_equal(alone.q.get(), got.q.get()[[7, 4999]]), "the same bits in any batch"
    off = np.abs(got.q[:200].get() - right.q).max(axis=(1, 2))
    near = off < tolerance
    assert near.mean() > 0.95
    assert right.touching.forces[:, -1, :, 2].max() > 1.0
    if dtype == "float64":
        sent = robot.simulate(lead[:50], np.zeros(18), device="cuda", **options)
        assert np.array_equal(sent.q, got.q[:50].get())
        assert np.array_equal(sent.work, got.work[:50].get())
        close(got.touching.forces[:200].get()[near], right.touching.forces[near], 1e-6)
        close(got.touching.gaps[:200].get()[near], right.touching.gaps[near], 1e-6)
        more = np.abs(got.iterations[:200].get() - right.iterations)[near]
        assert more.max() < 0.1, "rounding may decide about an iteration"


@pytest.mark.parametrize("count", [1, 33, 200_001])
def test_controllers_and_any_number(count: int) -> None:
    robot = puma560()
    q, qd = robot.random(RNG, size=count), np.zeros(6)

    def law(t: Any, q: Any, qd: Any) -> list[Any]:
        return [sin(30.0 * t) - x - v for x, v in zip(q, qd, strict=True)]

    for control in (law, GravityCompensation(1.0)):
        right = robot.rollout(q[:50], qd, control, dt=1e-3, steps=100, every=100)
        got = robot.rollout(*map(cupy.asarray, (q, qd)), control, dt=1e-3, steps=100, every=100)
        first = Trajectory(got.t, got.q[:50], got.qd[:50])
        same(first, right, "float64")


def test_many_steps_in_single_precision_follow_the_time() -> None:
    robot = puma560()
    target = np.zeros(6)

    def follow(t: Any, q: Any, qd: Any) -> list[Any]:
        wanted = [sin(0.5 * t + k) for k in range(6)]
        return [100.0 * (w - x) - 20.0 * v for w, x, v in zip(wanted, q, qd, strict=True)]

    options: dict[str, Any] = {"dt": 1e-3, "steps": 100_000, "every": 100_000}
    right = robot.rollout(target, target, follow, **options)
    single = [cupy.zeros(6, "float32") for _ in range(2)]
    close(cupy.asnumpy(robot.rollout(*single, follow, **options).q[-1]), right.q[-1], 1e-3)


def test_streams() -> None:
    """A rollout runs on CuPy's current stream."""
    robot = puma560()
    q, qd = cupy.asarray(robot.random(RNG, size=10)), cupy.zeros(6)
    right = robot.rollout(q.get(), qd.get(), dt=1e-3, steps=100)
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        got = robot.rollout(q, qd, dt=1e-3, steps=100)
        stream.synchronize()
    same(got, right, "float64")


def test_a_motion_that_explodes_gives_nan() -> None:
    robot = puma560()
    got = robot.rollout(cupy.zeros(6), cupy.full(6, 1e200), dt=1e-3, steps=50)
    assert not np.isfinite(cupy.asnumpy(got.qd[-1])).any()
