"""Soft contact with steps that are too long issues a warning; converging motions do not."""

import warnings
from typing import Any

import numpy as np
import pytest
from contact_bodies import ball, body

import chasles
from chasles.contact import (
    HuntCrossley,
    Pair,
    Plane,
    Point,
    SoftContact,
    SoftFriction,
    SoftSurface,
    Sphere,
)
from chasles.expr import sin
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Description, JointData, LinkData
from chasles.motion.contact import watch as watching
from chasles.robots import quadruped

BALL, DROP = ball(1.0, 0.1), np.r_[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4]
MILD = SoftContact(SoftSurface(37_400.0, 100.0), SoftFriction(0.8, 37_400.0, 100.0))
STIFF = SoftContact(SoftSurface(1e5, 500.0), SoftFriction(0.8, 1e5, 500.0))
HARD = SoftContact(SoftSurface(4e5, 1e3), SoftFriction(0.8, 1e6, 2e3))


def hopper() -> chasles.Robot:
    """Free trunk of 5 kg with a thigh of 1 kg and a shank of 0.4 kg, each 0.2 m long."""
    links = (body(5.0, (0.05, 0.05, 0.05), "trunk"), rod("thigh", 1.0), rod("shank", 0.4))
    below = Transform(Rotation(), Vector.of(0.0, 0.0, -0.2))
    joints = (
        JointData("base", "free", None, "trunk"),
        JointData("hip", "revolute", "trunk", "thigh", Transform.identity(), Y),
        JointData("knee", "revolute", "thigh", "shank", below, Y),
    )
    return chasles.Robot(Description("hopper", links, joints))


Y = Vector.of(0.0, 1.0, 0.0)


def rod(name: str, mass: float) -> LinkData:
    """A rod that hangs 0.2 m down from its joint."""
    moment = mass * 0.2**2 / 12.0
    moments = Symmetric(moment, moment, 1e-5, 0.0, 0.0, 0.0)
    return LinkData(name, RigidInertia.from_center(mass, Vector.of(0.0, 0.0, -0.1), moments))


HOPPER, QUADRUPED = hopper(), quadruped()


def swing(t: Any, q: Any, qd: Any) -> list[Any]:
    """Return torques of strong motors (up to 100 Nm) that make the leg kick at 30 rad/s."""
    kick = 0.15 * sin(30.0 * t)
    hip = 200.0 * (0.5 + kick - q[7]) - 2.0 * qd[6]
    knee = 200.0 * (-1.0 - 2.0 * kick - q[8]) - 2.0 * qd[7]
    return [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, hip, knee]


def trot(t: Any, q: Any, qd: Any) -> list[Any]:
    """Return torques that lift the legs of a quadruped alternately, at 12 rad/s."""
    tau: list[Any] = [0.0] * 6
    for k in range(12):
        rest, amplitude = ((0.0, 0.0), (0.7, 0.25), (-1.4, -0.4))[k % 3]
        phase = 0.0 if k // 3 in (0, 3) else np.pi
        angle = rest + amplitude * sin(12.0 * t + phase)
        tau.append(150.0 * (angle - q[7 + k]) - 3.0 * qd[6 + k])
    return tau


def hop(law: SoftContact, dt: float, **options: Any) -> chasles.Trajectory:
    pairs = [Pair(Point("shank", (0.0, 0.0, -0.2)), Plane(), law)]
    q = np.r_[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4, 0.5, -1.0]
    given: dict[str, Any] = {"duration": 0.3, "integrator": "semi-implicit", "control": swing}
    return HOPPER.simulate(
        q, np.zeros(8), dt=dt, contacts=pairs, **({"compiled": True} | given | options)
    )


def feet() -> list[str]:
    return [name for name in QUADRUPED.frames if name.endswith("foot")]


def standing() -> np.ndarray:
    """Configuration of the quadruped 2 cm above the ground."""
    q = QUADRUPED.neutral()
    q[7:] = np.tile([0.0, 0.7, -1.4], 4)
    q[6] += 0.04 - min(QUADRUPED.forward_kinematics(q, frame=f)[2, 3] for f in feet())
    return q


def walk(law: SoftContact, dt: float) -> chasles.Trajectory:
    pairs = [Pair(Sphere(f, 0.02), Plane(), law) for f in feet()]
    given: dict[str, Any] = {"integrator": "semi-implicit", "control": trot, "compiled": True}
    return QUADRUPED.simulate(
        standing(), np.zeros(18), dt=dt, duration=0.2, contacts=pairs, **given
    )


def bounce(law: SoftContact, dt: float, **options: Any) -> chasles.Trajectory:
    """Simulate a spinning ball that falls 0.3 m."""
    pairs, given = [Pair(Sphere("body", 0.1), Plane(), law)], {"duration": 0.6} | options
    return BALL.simulate(DROP, np.r_[0.0, 5.0, 0, 1.0, 0, 0], dt=dt, contacts=pairs, **given)


@pytest.mark.parametrize("move", [hop, walk])
@pytest.mark.parametrize("law", [MILD, STIFF], ids=["mild", "stiff"])
def test_motions_that_converge_are_not_suspected(move: Any, law: SoftContact) -> None:
    """Joint positions agree with those of steps a quarter as long, to a few millirad."""
    found, finer = move(law, 2e-4), move(law, 5e-5)
    assert found.unstable == finer.unstable == -1
    assert np.abs(found.q[-1] - finer.q[-1]).max() < 1e-2


@pytest.mark.parametrize(("move", "law"), [(hop, STIFF), (walk, HARD)], ids=["hop", "walk"])
def test_steps_too_long_for_the_ground_are_suspected(move: Any, law: SoftContact) -> None:
    """All values are finite, but joints are much faster than with short steps."""
    words = "simulate: soft contact becomes unstable at step"
    with pytest.warns(RuntimeWarning, match=words) as seen:
        found = move(law, 1e-3)
    truth = move(law, 5e-5)
    assert seen[0].filename == __file__
    assert np.isfinite(found.qd).all()
    assert np.abs(found.qd).max() > 1.5 * np.abs(truth.qd).max()
    assert 0 < found.unstable < 300
    assert truth.unstable == -1


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("law", ["spring", "surface"])
def test_bounces_are_not_suspected(law: str, compiled: bool) -> None:
    """Balls on elastic and damped ground bounce several times without a warning."""
    given = {
        "spring": SoftContact(HuntCrossley(1e5, 0.0), SoftFriction(0.5, 1e4, 20.0)),
        "surface": SoftContact(SoftSurface(4e3, 5.0), SoftFriction(0.5, 2e3, 5.0)),
    }[law]
    found = bounce(given, 1e-3, compiled=compiled)
    assert found.unstable == -1
    assert found.touching is not None
    assert found.touching.forces.max() > 10.0


@pytest.mark.parametrize("integrator", ["semi-implicit", "rk4"])
def test_a_body_thrown_by_one_step_is_suspected(integrator: str) -> None:
    """The ball rises higher than its start, after the only step in which it touched."""
    ground = SoftContact(SoftSurface(1e8, 1e3))
    with pytest.warns(RuntimeWarning, match="unstable"):
        found = bounce(ground, 5e-3, integrator=integrator)
    assert found.q[-1, 6] > 2.0 * DROP[6]


def test_both_drivers_say_the_same() -> None:
    """The ground has no states, so the steps of both drivers are equal."""
    law = SoftContact(HuntCrossley(3e8, 0.5))
    found = []
    for compiled in (True, False):
        with pytest.warns(RuntimeWarning, match="unstable"):
            found.append(bounce(law, 1e-3, integrator="semi-implicit", compiled=compiled))
    assert found[0].unstable == found[1].unstable


def test_a_batch_has_a_number_for_each_member() -> None:
    q = np.tile(np.r_[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4, 0.5, -1.0], (2, 1))
    q[1, 6] += 10.0
    pairs = [Pair(Point("shank", (0.0, 0.0, -0.2)), Plane(), STIFF)]
    options: dict[str, Any] = {"dt": 1e-3, "contacts": pairs, "integrator": "semi-implicit"}
    with pytest.warns(RuntimeWarning, match="in 1 of 2 members becomes unstable at step"):
        found = HOPPER.rollout(q, np.zeros(8), swing, steps=300, every=60, **options)
    assert found.unstable is not None
    assert found.unstable.shape == (2,)
    assert found.unstable[0] > 0
    assert found.unstable[1] == -1
    assert found.q.shape[-2] == 6


@pytest.mark.parametrize("compiled", [True, False])
def test_parts_of_a_motion_are_watched_as_the_whole(compiled: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        whole = hop(HARD, 1e-3, compiled=compiled)
        assert whole.unstable is not None
        assert whole.unstable > 3
        part = int(whole.unstable) - 3
        first = hop(HARD, 1e-3, compiled=compiled, steps=part)
        rest = hop(HARD, 1e-3, compiled=compiled, resume=first.end)
    assert first.unstable == -1
    assert rest.unstable == whole.unstable


def test_motions_without_soft_contact_are_not_watched() -> None:
    assert BALL.simulate(DROP, np.zeros(6), duration=0.1).unstable is None


def test_a_watch_sees_reversals_only_at_speed() -> None:
    """Results agree with a hand calculation for one point and steps of 1 ms; 0.1 m/s is slow."""

    def first(speeds: Any) -> int:
        watch: Any = [0.0] * watching.size(1)
        for speed in speeds:
            watch = watching.watched(watch, [[0.0, 0.0, speed]], [1.0], 1e-3)
        return int(watching.first_unstable(np.array(watch), len(speeds)))

    steps = np.arange(200)
    assert first(0.05 * (-1.0) ** steps) == -1
    assert first((-1.0) ** steps) == 5  # 1 + 0.9 + 0.81 + ... is 4 after five reversals
    assert first(np.cos(2.0 * np.pi * steps / 10.0)) == -1
