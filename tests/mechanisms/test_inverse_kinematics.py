"""Check inverse kinematics with forward kinematics, limits and closed forms."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from published_arms import published
from scipy.spatial.transform import Rotation
from support import raises, tree

import chasles
from chasles.expr import RULES, Arena, Program, Variable, interpret
from chasles.functions.reaching import MEMORY, MOST, SHARE, STATUS, Task
from chasles.functions.targets import Posture
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Description, FrameData, JointData, LinkData
from chasles.model.description import Limits
from chasles.robots import delta, five_bar, planar, puma560, random_tree, stanford_arm, stewart
from chasles.targets import (
    CENTER,
    Axis,
    CenterOfMass,
    LookAt,
    Orientation,
    Pose,
    Position,
    Relative,
    Target,
)

PUMA = puma560()
TREE = tree(3, 7, floating=True)
"""Floating tree with several joint types."""


def poses(robot: chasles.Robot, frame: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random postures, uniform within the limits, and their poses."""
    q = robot.random(np.random.default_rng(1), size=count)
    return q, robot.forward_kinematics(q, frame=frame)


@pytest.mark.parametrize("make", [puma560, stanford_arm])
def test_reachable_poses_are_solved(make: Any) -> None:
    """99.95 % of 10,000 poses are reached to 1e-6 rad and m, within the limits."""
    robot = make()
    _, T = poses(robot, "tool", 10_000)
    found = robot.inverse_kinematics({"tool": T})
    assert found.solved.mean() >= 0.9995
    error = robot.forward_kinematics(found.q, frame="tool")[found.solved] - T[found.solved]
    assert np.abs(error[:, :3, 3]).max() <= 1e-6
    assert np.linalg.norm(error[:, :3, :3], axis=(1, 2)).max() < 3e-6  # norm = sqrt(2) |angle|
    assert (found.q >= robot.limits.lower).all()
    assert (found.q <= robot.limits.upper).all()
    assert np.array_equal(found.limits == -1, found.q == robot.limits.lower)


def test_a_problem_has_the_same_bits_in_any_batch_and_with_any_threads() -> None:
    _, T = poses(PUMA, "tool", 300)
    whole = PUMA.inverse_kinematics({"tool": T}, threads=1)
    shared = PUMA.inverse_kinematics({"tool": T}, threads=3)
    turned = PUMA.inverse_kinematics({"tool": T[::-1].reshape(3, 100, 4, 4)})
    alone = [PUMA.inverse_kinematics({"tool": T[k]}) for k in range(0, 300, 60)]
    assert np.array_equal(whole.q, shared.q)
    assert np.array_equal(whole.q[::-1], turned.q.reshape(300, 6))
    assert np.array_equal(whole.iterations[::-1], turned.iterations.ravel())
    assert all(np.array_equal(one.q, whole.q[60 * k]) for k, one in enumerate(alone))
    assert alone[0].q.shape == (6,)
    assert alone[0].solved.shape == ()


TARGETS: dict[str, Any] = {
    "pose": lambda T, to, com: ("tool", Pose(T)),
    "position and quaternion": lambda T, to, com: ("tool", Pose((T[..., :3, 3], [0, 0, 1, 0]))),
    "position": lambda T, to, com: ("tool", Position(T[..., :3, 3])),
    "orientation": lambda T, to, com: ("tool", Orientation(T[..., :3, :3])),
    "axis": lambda T, to, com: ("tool", Axis(T[..., :3, 1], axis=(0, 2, 0))),
    "look at": lambda T, to, com: ("tool", LookAt(T[..., :3, 3] + 0.5 * T[..., :3, 2])),
    "relative": lambda T, to, com: ("tool", Relative("link2", np.linalg.inv(to) @ T)),
    "centre of mass": lambda T, to, com: (CENTER, CenterOfMass(com)),
}


def _target(name: str, q: np.ndarray) -> tuple[str, Target]:
    T, to = (PUMA.forward_kinematics(q, frame=f) for f in ("tool", "link2"))
    found: tuple[str, Target] = TARGETS[name](T, to, PUMA.center_of_mass(q))
    return found


@pytest.mark.parametrize("name", TARGETS)
def test_rows_of_a_target_are_its_slopes(name: str) -> None:
    """Jacobian rows of targets agree with differences near the goal, where they are exact."""
    rng = np.random.default_rng(5)
    reached = PUMA.random(rng)
    frame, target = _target(name, reached)
    q = reached + 1e-5 * rng.normal(size=6)
    if name == "position and quaternion":
        frame, target = "tool", Pose(PUMA.forward_kinematics(reached, frame="tool"))
    arena = Arena(RULES)
    at = Posture(PUMA.model, [arena.input("q", k) for k in range(6)], arena)
    errors, rows = target.errors(at, frame, target.numbers().tolist())
    entries = [x for row in rows for x in row]
    outputs = [(Variable("e", (len(errors),)), errors), (Variable("J", (len(entries),)), entries)]
    program = Program.from_outputs("errors", [Variable("q", (6,))], outputs)

    def found(x: np.ndarray, what: str) -> np.ndarray:
        return np.array(interpret(program, {"q": x})[what])

    h = 1e-6 * np.eye(6)
    slopes = [(found(q + d, "e") - found(q - d, "e")) / 2e-6 for d in h]
    assert np.allclose(-np.array(slopes).T, found(q, "J").reshape(len(errors), 6), atol=1e-4)


@pytest.mark.parametrize("name", TARGETS)
def test_every_kind_of_target(name: str) -> None:
    """Every kind of target is reached, as verified by other functions of the robot."""
    q = PUMA.random(np.random.default_rng(2), size=50)
    frame, target = _target(name, q)
    found = PUMA.inverse_kinematics({frame: target})
    reached = found.solved.mean()
    assert reached == 1.0 or (name == "position and quaternion" and 0.2 < reached < 1.0)
    assert (found.residual[found.solved] <= 1e-6).all()
    T = PUMA.forward_kinematics(found.q, frame="tool")
    wanted = PUMA.forward_kinematics(q, frame="tool")
    misses = {
        "pose": lambda: T - wanted,
        "position and quaternion": lambda: T[..., :3, :3] - np.diag([-1.0, 1.0, -1.0]),
        "position": lambda: (T - wanted)[..., :3, 3],
        "orientation": lambda: (T - wanted)[..., :3, :3],
        "axis": lambda: (T - wanted)[..., :3, 1],
        "look at": lambda: np.cross(
            wanted[..., :3, 3] + 0.5 * wanted[..., :3, 2] - T[..., :3, 3], T[..., :3, 2]
        ),
        "relative": lambda: (
            np.linalg.inv(PUMA.forward_kinematics(found.q, frame="link2")) @ T
            - np.linalg.inv(PUMA.forward_kinematics(q, frame="link2")) @ wanted
        ),
        "centre of mass": lambda: PUMA.center_of_mass(found.q) - PUMA.center_of_mass(q),
    }
    assert np.abs(misses[name]()[found.solved]).max() < 2e-6


def test_several_targets_with_weights_and_tolerances() -> None:
    """If targets conflict, the one with the larger weight has the smaller error.

    With a wide tolerance, the problem counts as solved.
    """
    q = PUMA.random(np.random.default_rng(3))
    T = PUMA.forward_kinematics(q, frame="tool")
    point, other = T[:3, 3], T[:3, 3] + [0.1, 0.0, 0.0]

    def miss(first: float, second: float, **more: Any) -> tuple[float, float, bool]:
        both = [Position(point, weight=first, **more), Position(other, weight=second, **more)]
        found = PUMA.inverse_kinematics({"tool": both})
        at = PUMA.forward_kinematics(found.q, frame="tool")[:3, 3]
        return *(float(np.linalg.norm(at - p)) for p in (point, other)), bool(found.solved)

    light, heavy, solved = miss(1.0, 3.0)
    assert not solved
    assert light == pytest.approx(0.09, abs=1e-4)  # the point is the mean with weights 1 and 9
    assert heavy == pytest.approx(0.01, abs=1e-4)
    assert miss(1.0, 3.0, tolerance=0.2)[2]


def test_a_point_out_of_reach_is_approached_as_far_as_possible() -> None:
    """The arm points at the target, and the error is the remaining distance."""
    arm = planar(2)
    tip = arm.frames[-1]
    reach = np.linalg.norm(arm.forward_kinematics([0.0, 0.0], frame=tip)[:3, 3])
    T = arm.forward_kinematics([0.4, 0.0], frame=tip)[:3, 3]
    found = arm.inverse_kinematics({tip: Position(1.5 * T)})
    assert not found.solved
    at = arm.forward_kinematics(found.q, frame=tip)[:3, 3]
    assert np.linalg.norm(1.5 * T - at) == pytest.approx(0.5 * reach, rel=1e-6)
    assert found.residual[1] == pytest.approx(np.abs(1.5 * T - at).max(), rel=1e-6)


def test_limits_hold_a_joint_that_is_pushed_against_them() -> None:
    """Joints stay at their limits if the target is beyond them, and the result reports this."""
    arm = planar(2)
    limited = chasles.Robot(
        _limited(arm.model.source, {arm.joints[0]: (-0.5, 0.5), arm.joints[1]: (-0.1, 0.1)})
    )
    tip = arm.frames[-1]
    beyond = arm.forward_kinematics([1.0, 0.0], frame=tip)[:3, 3]
    found = limited.inverse_kinematics({tip: Position(beyond)})
    assert not found.solved
    assert found.limits.tolist() == [1, 1]
    assert np.array_equal(found.q, [0.5, 0.1])


def _limited(source: Any, limits: dict[str, tuple[float, float]]) -> Any:
    joints = tuple(
        replace(j, limits=replace(j.limits, lower=limits[j.name][0], upper=limits[j.name][1]))
        if j.name in limits
        else j
        for j in source.joints
    )
    return replace(source, joints=joints)


def test_all_postures_of_an_arm_with_a_spherical_wrist() -> None:
    """A PUMA without limits has eight postures: two each for shoulder, elbow and wrist."""
    free = dict.fromkeys(PUMA.joints, (-np.pi, np.pi))
    robot = chasles.Robot(_limited(PUMA.model.source, free))
    q = np.array([0.3, -0.8, 0.5, 0.6, 0.9, -0.4])
    T = robot.forward_kinematics(q, frame="tool")
    found = robot.inverse_kinematics({"tool": T}, solutions="all")
    assert found.q.shape == (16, 6)
    assert found.solved.sum() == 8
    assert np.isnan(found.q[8:]).all()
    assert np.allclose(robot.forward_kinematics(found.q[:8], frame="tool"), T, atol=3e-6)
    assert np.abs(found.q[:8] - q).max(axis=1).min() < 1e-5
    some = robot.inverse_kinematics({"tool": T}, solutions="all", count=3)
    assert np.array_equal(some.q, found.q[:3])


def test_the_solution_near_a_posture() -> None:
    """`near` selects the nearest of several postures, or of the family of a redundant arm."""
    rng = np.random.default_rng(8)
    q = PUMA.random(rng, size=20)
    T = PUMA.forward_kinematics(q, frame="tool")
    inside = np.clip(q + 0.01 * rng.normal(size=q.shape), PUMA.limits.lower, PUMA.limits.upper)
    found = PUMA.inverse_kinematics({"tool": T}, near=inside)
    assert found.solved.all()
    assert np.median(np.abs(found.q - q).max(axis=1)) < 1e-5
    arm, wanted = planar(3), np.array([0.3, 0.4, 0.5])
    tip = arm.frames[-1]
    point = arm.forward_kinematics([0.5, 0.6, -0.3], frame=tip)[:3, 3]
    near = arm.inverse_kinematics({tip: Position(point)}, near=wanted)
    assert near.solved
    # Optimality: the difference to the posture is normal to the motions that keep the point.
    J = arm.jacobian(near.q, frame=tip)[3:]
    still = np.linalg.svd(J)[2][2]
    assert abs(still @ (near.q - wanted)) < 1e-4 * np.linalg.norm(near.q - wanted)


@pytest.mark.parametrize("count", [1, 40])
def test_the_nearest_of_a_family_of_solutions_within_limits(count: int) -> None:
    """No motion that keeps the pose and the active limits leads nearer.

    A single problem and a batch give bitwise identical results.
    """
    robot, frame = published("panda")
    rng = np.random.default_rng(2)
    q, wanted = robot.random(rng, size=(2, 40))[:, :count]
    T = robot.forward_kinematics(q, frame=frame)
    found = robot.inverse_kinematics({frame: T}, near=wanted)
    assert found.solved.all()
    first = robot.inverse_kinematics({frame: T[0]}, near=wanted[0])
    assert np.array_equal(first.q, found.q[0])
    for at, end, sides in zip(found.q, wanted, found.limits, strict=True):
        free = sides == 0
        still = np.linalg.svd(robot.jacobian(at, frame=frame)[:, free])[2][6:]
        assert np.abs(still @ (end - at)[free]).max(initial=0.0) < 1e-4


def test_fixed_joints_stay_where_the_guess_has_them() -> None:
    rng = np.random.default_rng(4)
    q = PUMA.random(rng, size=5)
    T = PUMA.forward_kinematics(q, frame="tool")
    names = PUMA.joints[3:4]
    found = PUMA.inverse_kinematics({"tool": Position(T[:, :3, 3])}, guess=q[::-1], fixed=names)
    assert found.solved.all()
    assert np.array_equal(found.q[:, 3], q[::-1, 3])
    one = PUMA.inverse_kinematics({"tool": Position(T[0, :3, 3])}, fixed=names[0])
    assert one.q[3] == np.clip(0.0, PUMA.limits.lower[3], PUMA.limits.upper[3])


def test_a_floating_tree_with_several_types_of_joints() -> None:
    """Two frames of a tree with quaternions are reached at once, from nearby guesses."""
    rng = np.random.default_rng(6)
    q = TREE.random(rng, size=30)
    frames = TREE.bodies[-1], TREE.bodies[2]
    goals = {f: TREE.forward_kinematics(q, frame=f) for f in frames}
    guess = TREE.integrate(q, 0.2 * rng.normal(size=(30, TREE.nv)))
    found = TREE.inverse_kinematics(goals, guess=guess)
    assert found.solved.all()
    for f in frames:
        assert np.allclose(TREE.forward_kinematics(found.q, frame=f), goals[f], atol=3e-6)


@pytest.mark.parametrize("make", [five_bar, delta, stewart])
def test_closed_loops_are_solved_with_the_targets(make: Any) -> None:
    """Targets from assembled configurations are reached, with loop residuals below 1e-10."""
    robot = make()
    rng = np.random.default_rng(0)
    start = robot.mechanism.loops.references[0]
    y = np.array([start[robot.position_slice(name)][0] for name in robot.independent])
    size = 0.03 if make is stewart else 0.1
    q = robot.assemble(y + size * rng.uniform(-1.0, 1.0, (40, len(y))), start)
    frame = "right_coupler" if make is five_bar else "platform"
    T = robot.forward_kinematics(q, frame=frame)
    target = Pose(T) if make is stewart else Position(T[:, :3, 3])
    found = robot.inverse_kinematics({frame: target})
    assert found.solved.all()
    assert np.abs(robot.loop_residual(found.q)).max() < 1e-10
    error = robot.forward_kinematics(found.q, frame=frame)[:, :3, 3] - T[:, :3, 3]
    assert np.abs(error).max() < 1e-6


def test_empty_batches_and_broken_targets() -> None:
    T = np.eye(4)
    nothing = PUMA.inverse_kinematics({"tool": np.zeros((0, 4, 4)) + T})
    assert nothing.q.shape == (0, 6)
    assert nothing.solved.shape == (0,)
    lost = T.copy()
    lost[0, 3] = np.nan
    for code, call in {
        "E-CALL-361": lambda: PUMA.inverse_kinematics({"tool": lost}),
        "E-CALL-360": lambda: PUMA.inverse_kinematics({"tool": np.eye(3)}),
        "E-CALL-364": lambda: PUMA.inverse_kinematics({"tool": np.diag([1.0, 1.0, 2.0, 1.0])}),
        "E-CALL-365": lambda: PUMA.inverse_kinematics({"tool": np.ones((4, 4))}),
        "E-CALL-362": lambda: PUMA.inverse_kinematics({"tool": Axis([0.0, 0.0, 0.0])}),
        "E-CALL-363": lambda: PUMA.inverse_kinematics({"tool": Orientation([0.0] * 4)}),
        "E-CALL-370": lambda: PUMA.inverse_kinematics({"tool": CenterOfMass([0.0] * 3)}),
        "E-CALL-371": lambda: PUMA.inverse_kinematics({"tool": T}, solutions="some"),  # type: ignore[arg-type]
        "E-CALL-372": lambda: PUMA.inverse_kinematics({}),
        "E-CALL-373": lambda: PUMA.inverse_kinematics({"tool": Pose(T, weight=-1.0)}),
        "E-CALL-374": lambda: PUMA.inverse_kinematics({"tool": T}, guess=np.full(6, np.inf)),
        "E-CALL-056": lambda: PUMA.inverse_kinematics({"tool": T}, guess=[0.0]),
        "E-CALL-003": lambda: PUMA.inverse_kinematics({"tool": T}, tries=0),
        "E-CALL-057": lambda: PUMA.inverse_kinematics(
            {"tool": np.zeros((2, 1, 1)) + T, "link2": np.zeros((3, 1, 1)) + T}
        ),
    }.items():
        with raises(code):
            call()


def test_statuses_of_the_step() -> None:
    """A search that starts at its goal is solved at once and does not move."""
    q = np.array([0.1, 0.2])
    arm = planar(2)
    task = Task(arm.model, ((arm.frames[-1], Position(None)),), *[np.full(2, x) for x in (-9, 9)])
    goal = arm.forward_kinematics(q, frame=arm.frames[-1])[:3, 3]
    memory = np.zeros(MEMORY)
    memory[[MOST, SHARE]] = 10.0, 0.5
    given = {"goals": goal, "weights": np.ones(3), "tolerances": np.full(3, 1e-9)}
    found = interpret(
        task.step_program(), {"q": q, "memory": memory, "movable": np.ones(2), **given}
    )
    assert found["memory"][STATUS] == 1.0
    assert np.array_equal(found["q"], q)


def test_a_weight_and_a_tolerance_may_differ_for_angles_and_lengths() -> None:
    """Only ratios of weights matter, even for very large or very small weights."""
    T = PUMA.forward_kinematics([0.3, 0.5, -1.0, 0.2, 0.9, -0.4], frame="tool")
    for weight in ((1.0, 2.0), [3, 1], np.ones(2), 1e300, 1e-200):
        found = PUMA.inverse_kinematics({"tool": Pose(T, weight=weight, tolerance=(1e-5, 1e-6))})
        assert found.solved
        assert np.allclose(PUMA.forward_kinematics(found.q, frame="tool"), T, atol=2e-5)


def test_directions_of_any_length_and_points_far_away() -> None:
    """Directions of any length are accepted; points so far that squares overflow are refused."""
    for length in (1e300, 1.0, 5e-324):
        found = PUMA.inverse_kinematics({"tool": Axis([0.0, 0.0, length])})
        turned = PUMA.forward_kinematics(found.q, frame="tool")[:3, 2]
        assert np.allclose(turned, [0.0, 0.0, 1.0], atol=1e-6)
    far = [0.0, 0.0, 1e300]
    for key, target in {
        "tool": LookAt(far),
        "link2": Position(far),
        "link3": Pose((far, [1.0, 0.0, 0.0, 0.0])),
        CENTER: CenterOfMass(far),
    }.items():
        with raises("E-CALL-361"):
            PUMA.inverse_kinematics({key: target})


def test_empty_guesses_and_options_that_are_not_counts() -> None:
    T = PUMA.forward_kinematics(np.zeros(6), frame="tool")
    assert PUMA.inverse_kinematics({"tool": np.zeros((0, 4, 4)) + T}, near=np.zeros(6)).q.size == 0
    still = planar(1).lock({"joint1": 0.3})
    place = still.forward_kinematics([], frame=still.frames[-1])
    found = still.inverse_kinematics({still.frames[-1]: place}, guess=np.zeros((2, 0)))
    assert found.solved.tolist() == [True, True]
    with raises("E-CALL-057"):
        PUMA.inverse_kinematics({"tool": np.zeros((2, 1, 1)) + T}, guess=np.zeros((3, 6)))
    with raises("E-CALL-057"):
        PUMA.inverse_kinematics({"tool": Pose((np.zeros((2, 3)), np.ones((3, 4))))})
    for option in ("threads", "tries", "count", "seed"):
        for wrong in (object(), -1, 1.5, "2", 2**63):
            with raises("E-CALL-003"):
                PUMA.inverse_kinematics({"tool": T}, **{option: wrong})


def test_a_ball_that_rolls_has_more_coordinates_than_velocities() -> None:
    robot = random_tree(1, 2)
    assert (robot.nq, robot.nv) == (6, 3)
    frame = robot.frames[-1]
    q = robot.random(np.random.default_rng(1))
    T = robot.forward_kinematics(q, frame=frame)
    found = robot.inverse_kinematics({frame: Orientation(T[:3, :3])})
    assert found.solved
    turned = robot.forward_kinematics(found.q, frame=frame)[:3, :3]
    assert np.allclose(turned, T[:3, :3], atol=1e-5)


def test_one_guess_for_a_batch_is_that_guess_for_each() -> None:
    """One guess for a batch gives bitwise the same results as copies of it for each problem."""
    q, T = poses(PUMA, "tool", 50)
    found = PUMA.inverse_kinematics({"tool": T}, guess=q[0])
    assert found.solved.all()
    assert np.allclose(PUMA.forward_kinematics(found.q, frame="tool"), T, atol=1e-5)
    assert ((found.q >= PUMA.limits.lower) & (found.q <= PUMA.limits.upper)).all()
    rows = PUMA.inverse_kinematics({"tool": T}, guess=np.tile(q[0], (50, 1)))
    assert np.array_equal(rows.q, found.q)


def test_a_batch_of_quaternions_is_the_batch_of_their_matrices() -> None:
    Q = np.random.default_rng(2).normal(size=(20, 4)) * 1e3
    R = np.array([Rotation.from_quat(q, scalar_first=True).as_matrix() for q in Q])
    rows = [PUMA.inverse_kinematics({"tool": Orientation(x)}, tries=20) for x in (Q, R)]
    assert rows[0].solved.all()
    for q in (each.q for each in rows):
        turned = PUMA.forward_kinematics(q, frame="tool")[:, :3, :3]
        assert np.allclose(turned, R, atol=1e-5)


def test_limits_of_joints_with_several_angles_are_held() -> None:
    """Each angle of a universal joint stays within the joint's limits."""
    x, y = Vector.of(1.0, 0.0, 0.0), Vector.of(0.0, 1.0, 0.0)
    up = replace(Transform.identity(), r=Vector.of(0.0, 0.0, 0.5))
    axes: dict[str, Any] = {"axis": x, "second_axis": y, "limits": Limits(-0.5, 0.6)}
    inertia = RigidInertia.from_center(
        1.0, Vector.of(0.0, 0.0, 0.2), Symmetric(*[0.01] * 3, *[0.0] * 3)
    )
    joints = (
        JointData("base", "universal", None, "arm", **axes),
        JointData("wrist", "universal", "arm", "hand", up, **axes),
    )
    links = tuple(LinkData(name, inertia) for name in ("arm", "hand"))
    robot = chasles.Robot(Description("crane", links, joints, (FrameData("tip", "hand", up),)))
    rng = np.random.default_rng(3)
    q = rng.uniform(robot.limits.lower, robot.limits.upper, (200, 4))
    points = robot.forward_kinematics(q, frame="tip")[:, :3, 3]
    found = robot.inverse_kinematics({"tip": Position(points)})
    assert found.solved.all()
    assert robot.within(found.q).all()
    beyond = robot.forward_kinematics([1.0, 1.0, 1.0, 1.0], frame="tip")
    found = robot.inverse_kinematics({"tip": beyond})
    assert not found.solved
    assert robot.within(found.q)
    assert found.limits.any()


def test_a_solution_is_true_if_every_problem_is_solved() -> None:
    robot = chasles.robots.puma560()
    near = robot.forward_kinematics([0.3, 0.5, -1.0, 0.2, 0.9, -0.4], frame="tool")
    far = near.copy()
    far[:3, 3] *= 9.0
    for solutions in ("first", "all"):
        for targets, expected in (
            (near, True),
            (far, False),
            (np.array([near, near]), True),
            (np.array([near, far]), False),
        ):
            found = robot.inverse_kinematics({"tool": targets}, solutions=solutions)
            assert bool(found) is expected
