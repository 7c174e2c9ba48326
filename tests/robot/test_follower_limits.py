"""Limits of mimic joints also limit their leaders.

They are checked by brute force, in inverse kinematics, in simulation and for real files.
"""

from dataclasses import replace

import numpy as np
import pytest

import chasles
from chasles.formats import registry
from chasles.model.description import Limits, Mimic


def arm(*joints: tuple[Limits, Mimic | None]) -> chasles.Robot:
    """Return a planar arm whose joints have the given limits and leaders."""
    source = chasles.robots.planar(len(joints)).model.source
    made = (replace(j, limits=x, mimic=m) for j, (x, m) in zip(source.joints, joints, strict=True))
    return chasles.Robot(replace(source, joints=tuple(made)))


def moved(robot: chasles.Robot, q: np.ndarray) -> dict[str, np.ndarray]:
    """Return the positions of all joints by name, from the mimic relations of the file."""
    found = {name: q[..., robot.position_slice(name).start] for name in robot.joints}
    pending = [joint for joint in robot.model.source.joints if joint.mimic is not None]
    while pending:
        joint = pending.pop(0)
        if joint.mimic.joint not in found:
            pending.append(joint)
            continue
        found[joint.name] = joint.mimic.multiplier * found[joint.mimic.joint] + joint.mimic.offset
    return found


def satisfied(robot: chasles.Robot, q: np.ndarray, slack: float = 0.0) -> np.ndarray:
    """Return True where every joint in the file is within its own limits."""
    inside = np.ones(q.shape[:-1], dtype=bool)
    for name, x in moved(robot, q).items():
        limits = robot.joint(name).limits
        inside &= (x >= limits.lower - slack) & (x <= limits.upper + slack)
    return inside


CHAIN = arm(
    (Limits(-2.0, 3.0, 5.0, 7.0), None),
    (Limits(-1.0, 1.5, 4.0, 0.5), Mimic("joint1", -2.0, 0.4)),
    (Limits(-np.inf, 1.1, 0.0, 0.0), Mimic("joint2", 0.5, 0.3)),
    (Limits(-0.5, 0.9, 2.0), None),
)
"""A leader, a follower with a negative multiplier, a follower of this follower, a plain joint."""


def test_range_is_where_every_joint_satisfies_its_own_limits() -> None:
    rng = np.random.default_rng(0)
    q = rng.uniform(-4.0, 4.0, (20_000, 2))
    np.testing.assert_array_equal(CHAIN.within(q), satisfied(CHAIN, q))
    assert satisfied(CHAIN, CHAIN.clip(q), 1e-15).all()
    drawn = CHAIN.random(1, size=20_000)
    assert satisfied(CHAIN, drawn, 1e-15).all()
    wide = q[satisfied(CHAIN, q)]
    np.testing.assert_allclose(np.ptp(drawn, axis=0), np.ptp(wide, axis=0), atol=5e-3)
    assert not satisfied(CHAIN, CHAIN.neutral() - 3.0)
    shifted = arm((Limits(), None), (Limits(0.5, 1.0), Mimic("joint1", 2.0)))
    assert shifted.neutral(within=True) == pytest.approx(0.25)


def test_rates_of_followers_limit_the_leader_and_efforts_do_not() -> None:
    """Velocity limits of followers limit the leader, but effort limits do not.

    The velocity limit of a follower is divided by |multiplier|; a limit of 0 means no limit.
    """
    np.testing.assert_array_equal(CHAIN.limits.velocity, [2.0, 2.0])
    np.testing.assert_array_equal(CHAIN.limits.effort, [7.0, np.inf])


@pytest.mark.parametrize(
    ("limits", "mimic"),
    [
        (Limits(2.0, 3.0), Mimic("joint1")),
        (Limits(0.0, 1.0), Mimic("joint1", -1.0)),
        (Limits(0.0, 0.0), Mimic("joint1")),
        (Limits(0.5, 1.0), Mimic("joint1", 0.0, 0.2)),
    ],
    ids=["apart", "touching", "none", "constant"],
)
def test_limits_that_exclude_each_other_are_named(limits: Limits, mimic: Mimic) -> None:
    robot = arm((Limits(0.0, 1.0), None), (limits, mimic))
    (note,) = robot.notes
    assert all(word in note for word in ("'joint1'", "joint 'joint2'", "ignored"))
    np.testing.assert_array_equal((robot.limits.lower, robot.limits.upper), [[0.0], [1.0]])


def test_fitting_limits_have_no_note() -> None:
    assert CHAIN.notes == ()
    assert arm((Limits(0.3, 0.3), None), (Limits(0.0, 0.5), Mimic("joint1"))).notes == ()


def test_inverse_kinematics_keeps_followers_within_their_limits() -> None:
    """Without the followers' limits, some of these targets are reached outside these limits."""
    loose = arm(
        (Limits(-2.0, 2.0), None),
        (Limits(), Mimic("joint1", 1.5)),
        (Limits(-2.0, 2.0), None),
        (Limits(-2.0, 2.0), None),
    )
    source = loose.model.source
    tight = chasles.Robot(
        replace(
            source,
            joints=tuple(
                replace(j, limits=Limits(-0.6, 1.2)) if j.mimic else j for j in source.joints
            ),
        )
    )
    postures = loose.random(2, size=200)
    points = loose.forward_kinematics(postures, frame="tip")[:, :3, 3]
    target = {"tip": chasles.targets.Position(points)}
    free, kept = (robot.inverse_kinematics(target) for robot in (loose, tight))
    assert satisfied(tight, kept.q, 1e-12).all()
    assert free.solved.all()
    assert not satisfied(tight, free.q, 1e-12).all()
    reached = tight.forward_kinematics(kept.q[kept.solved], frame="tip")[:, :3, 3]
    np.testing.assert_allclose(reached, points[kept.solved], atol=2e-6)
    assert kept.solved[satisfied(tight, postures)].all()


@pytest.mark.parametrize("integrator", [None, "time-stepping"])
def test_simulation_stops_once_at_the_follower(integrator: str | None) -> None:
    """The motion is bitwise identical to that of a leader with the narrowed limits."""
    follow = Mimic("joint1", 2.0)
    outer = Limits(-3.0, 3.0)
    robot = arm((outer, None), (Limits(-0.8, 3.0), follow))
    known = arm((Limits(-0.4, 1.5), None), (Limits(), follow))
    options = {} if integrator is None else {"integrator": integrator}
    run, expected = (
        each.simulate([0.3], [0.0], duration=1.0, dt=2e-3, limits=True, **options)
        for each in (robot, known)
    )
    np.testing.assert_array_equal(run.q, expected.q)
    assert run.q.min() == pytest.approx(-0.4, abs=2e-3)


def real() -> list[registry.Found]:
    wanted = ("panda", "talos_full_v2", "baxter", "romeo", "tiago_pro", "pr2")
    return [robot for robot in registry.installed() if robot.name in wanted]


@pytest.mark.parametrize("found", real(), ids=lambda robot: robot.name)
def test_real_files(found: registry.Found) -> None:
    """Random and clipped positions satisfy all limits in the file, except those named in a note."""
    robot = chasles.load(found.path)
    ignored = [note for note in robot.notes if "are ignored: its position" in note]
    odd = [name for name in robot.moving_joints if any(f"{name!r}: its" in x for x in ignored)]
    parallel = [f"{side}_gripper_r_parallel_root_joint" for side in "rl"]
    assert odd == (parallel if found.name == "pr2" else [])
    for q in (robot.random(3, size=300), robot.clip(robot.random(4, size=50) + 1.0)):
        for name, x in moved(robot, q).items():
            if name in odd or robot.joint(name).traits.nv != 1:
                continue
            limits = robot.joint(name).limits
            assert np.all((x >= limits.lower - 1e-12) & (x <= limits.upper + 1e-12)), name
