"""Options `comfort` and `wraps` of inverse kinematics, and limits of joints in loops."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import null_space
from support import raises

import chasles
from chasles.robots import delta, planar, puma560, stewart
from chasles.targets import Pose, Position

PUMA = puma560()
WRIST = "link4"
"""Frame whose position depends on three joints only, so that the other three are free."""


def limited(robot: chasles.Robot, limits: dict[str, tuple[float, float]]) -> chasles.Robot:
    source = robot.model.source
    joints = tuple(
        replace(j, limits=replace(j.limits, lower=limits[j.name][0], upper=limits[j.name][1]))
        if j.name in limits
        else j
        for j in source.joints
    )
    return chasles.Robot(replace(source, joints=joints))


def targets(count: int) -> np.ndarray:
    """Return points within reach of the tip of a planar arm."""
    arm = planar(4)
    q = np.random.default_rng(1).uniform(-1.0, 1.0, (count, 4))
    return arm.forward_kinematics(q, frame=arm.frames[-1])[:, :3, 3]


@pytest.mark.parametrize("weight", [None, [1.0, 4.0, 0.5, 2.0]])
def test_the_comfort_of_a_redundant_arm_is_stationary(weight: Any) -> None:
    """The gradient of the squared distance is zero along the null space of the Jacobian."""
    arm, point = planar(4), targets(40)
    tip = arm.frames[-1]
    wanted = np.array([0.4, -0.3, 0.5, 0.2])
    found = arm.inverse_kinematics({tip: Position(point)}, comfort=wanted, comfort_weight=weight)
    plain = arm.inverse_kinematics({tip: Position(point)})
    assert found.solved.all()
    at = arm.forward_kinematics(found.q, frame=tip)[:, :3, 3]
    assert np.abs(at - point).max() < 1e-6
    W = np.ones(4) if weight is None else np.array(weight)
    settled = 0
    for q in found.q:
        N = null_space(arm.jacobian(q, frame=tip)[3:])
        settled += bool(np.abs(N.T @ (W * (q - wanted))).max() < 1e-4)
    assert settled >= 38  # the others could not be improved

    def away(q: np.ndarray) -> np.ndarray:
        return np.sum(W * (q - wanted) ** 2, axis=-1)

    assert (away(found.q) <= away(plain.q) + 1e-12).all()
    assert away(found.q).mean() < 0.5 * away(plain.q).mean()
    assert (found.iterations >= plain.iterations).all()


def test_comfort_has_the_same_bits_in_any_batch() -> None:
    arm, point = planar(4), targets(20)
    tip, wanted = arm.frames[-1], np.random.default_rng(2).normal(size=(20, 4))
    many = arm.inverse_kinematics({tip: Position(point)}, comfort=wanted)
    for k in range(0, 20, 4):
        one = arm.inverse_kinematics({tip: Position(point[k])}, comfort=wanted[k])
        assert np.array_equal(one.q, many.q[k])
        assert np.array_equal(one.iterations, many.iterations[k])


def test_the_middle_between_the_limits_keeps_away_from_them() -> None:
    q = PUMA.random(np.random.default_rng(3), size=50)
    point = PUMA.forward_kinematics(q, frame=WRIST)[:, :3, 3]
    found = PUMA.inverse_kinematics({WRIST: Position(point)}, comfort="limits")
    assert found.solved.all()
    assert np.abs(PUMA.forward_kinematics(found.q, frame=WRIST)[:, :3, 3] - point).max() < 1e-6
    middle = 0.5 * (PUMA.limits.lower + PUMA.limits.upper)
    assert np.abs(found.q[:, 4:] - middle[4:]).max() < 1e-5  # these do not move the wrist center
    assert not found.limits[:, 4:].any()


def test_comfort_respects_limits_and_fixed_joints() -> None:
    arm, point = planar(4), targets(30)
    tip = arm.frames[-1]
    inside = limited(arm, dict.fromkeys(arm.joints, (-1.2, 1.2)))
    found = inside.inverse_kinematics({tip: Position(point)}, comfort=[2.0, 2.0, 2.0, 2.0])
    assert found.solved.all()
    assert (np.abs(found.q) <= 1.2).all()
    assert (found.limits == 1).any()
    name = arm.joints[1]
    held = arm.inverse_kinematics({tip: Position(point[0])}, comfort=np.ones(4), fixed=name)
    assert held.q[1] == 0.0
    with raises("E-CALL-375"):
        arm.inverse_kinematics({tip: Position(point[0])}, comfort_weight=np.ones(4))
    with raises("E-CALL-376"):
        arm.inverse_kinematics({tip: Position(point[0])}, comfort="middle")
    with raises("E-CALL-377"):
        arm.inverse_kinematics(
            {tip: Position(point[0])}, comfort=np.ones(4), comfort_weight=-np.ones(4)
        )
    with raises("E-CALL-378"):
        arm.inverse_kinematics({tip: Position(point[0])}, comfort=np.ones(4), solutions="all")
    with raises("E-CALL-378"):
        arm.inverse_kinematics({tip: Position(point[0])}, wraps=True)
    with raises("E-CALL-379"):
        arm.inverse_kinematics({tip: Position(point[0])}, comfort=np.full(4, np.nan))


def test_full_turns_are_added_on_request() -> None:
    """A joint with a range of three turns has each solution at three angles."""
    arm = planar(2)
    tip = arm.frames[-1]
    wide = limited(arm, {arm.joints[0]: (-9.5, 9.5), arm.joints[1]: (-3.0, 3.0)})
    point = Position(arm.forward_kinematics([0.2, 0.9], frame=tip)[:3, 3])
    few = wide.inverse_kinematics({tip: point}, solutions="all")
    every = wide.inverse_kinematics({tip: point}, solutions="all", wraps=True)
    assert few.solved.sum() == 2
    assert every.solved.sum() == 6
    assert np.array_equal(every.q[:2], few.q[:2])
    q = every.q[every.solved]
    assert (np.abs(q) <= [9.5, 3.0]).all()
    assert len(np.unique(np.round(q, 6), axis=0)) == 6
    assert np.allclose(arm.forward_kinematics(q, frame=tip)[:, :3, 3], point.point, atol=1e-6)
    assert wide.inverse_kinematics({tip: point}, solutions="all", wraps=True, count=3).solved.all()


@pytest.mark.parametrize("make", [stewart, delta])
def test_limits_of_joints_in_loops(make: Any) -> None:
    """Poses within the limits of the legs (or arms) are solved, and other poses are not.

    Limits are respected in both cases.
    """
    free = make()
    names = [n for n in free.joints if n.startswith("leg" if make is stewart else "arm")]
    limit = 0.05 if make is stewart else 0.15
    robot = limited(free, dict.fromkeys(names, (-limit, limit)))
    start = free.mechanism.loops.references[0]
    places = [free.position_slice(name).start for name in names]
    rng = np.random.default_rng(4)
    y = start[places] + rng.uniform(-2.0 * limit, 2.0 * limit, (60, len(places)))
    y[:20] = start[places] + rng.uniform(-limit, limit, (20, len(places)))
    T = free.forward_kinematics(free.assemble(y, start), frame="platform")
    target = Pose(T) if make is stewart else Position(T[:, :3, 3])
    found = robot.inverse_kinematics({"platform": target}, guess=start)
    inside = (np.abs(y - start[places]) <= limit).all(axis=1)
    assert inside[:20].all()
    assert not inside[20:].all()
    assert (np.abs(found.q[:, places]) <= limit).all()
    assert found.solved[inside].all()
    assert not found.solved[~inside].any()
    assert found.limits[~inside][:, places].any(axis=1).all()
