"""Closed-form inverse kinematics: compare all postures with brute force and known counts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import SAME, Chain
from published_arms import published
from support import pairwise

import chasles
from chasles.expr import interpret
from chasles.functions.branches import Arm, arm, chosen, forms, jointed, traced
from chasles.functions.chains import Displacement, Joint
from chasles.functions.closed_form import arm_angle
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.trigonometric import Angle
from chasles.robots import puma560
from chasles.targets import Pose

X, Y, Z = np.eye(3)


# Arms defined by their axes ---------------------------------------------------------------------


def tool(rng: np.random.Generator) -> np.ndarray:
    """Return a random pose."""
    T = np.eye(4)
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    T[:3, :3], T[:3, 3] = R * np.linalg.det(R), rng.uniform(-0.5, 0.5, 3)
    return T


def chain(kind: str, first: int, seed: int, slides: tuple[int, ...] = ()) -> Chain:
    """Return six random axes. Three axes, from `first` on, intersect ("wrist") or are parallel."""
    rng = np.random.default_rng(seed)
    axes, points = rng.normal(size=(6, 3)), rng.uniform(-0.5, 0.5, (6, 3))
    if kind == "wrist":
        points[first : first + 3] = points[first]
    else:
        axes[first : first + 3] = np.outer([1.0, -1.0, 1.0], axes[first])
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return Chain(axes, points, tool(rng), slides)


def arm_of(known: Chain) -> Arm:
    """Convert a chain to an arm for the closed form."""
    pairs = enumerate(zip(known.axes.tolist(), known.points.tolist(), strict=True))
    joints = tuple(Joint(k, tuple(h), tuple(o), k in known.slides) for k, (h, o) in pairs)
    R = Matrix(tuple(map(tuple, known.home[:3, :3].tolist())))
    home = Displacement(R, Vector(tuple(known.home[:3, 3].tolist())))
    return Arm(tuple(range(len(joints))), joints, home, 1.0)


def branches(known: Arm, goals: np.ndarray, limit: float = np.inf) -> list[np.ndarray]:
    """Return the closed-form postures for goals (n, 4, 4), with the same limit for all joints."""
    form, exact = chosen(known)
    assert form is not None
    assert exact
    bounds = np.full(len(known.joints), limit)
    program = traced(known, form, -bounds, bounds)
    found = []
    for T in goals:
        out = interpret(program, {"goal": [*T[:3, :3].ravel(), *T[:3, 3]]})
        rows = np.array(out["q"]).reshape(-1, len(known.joints))
        found.append(rows[np.array(out["found"]) > 0.0])
    return found


def starts(known: Chain, rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.uniform(-np.pi, np.pi, (count, len(known.axes)))


def same_postures(known: Chain, seed: int, poses: int, count: int) -> int:
    """Assert that the closed form finds all postures of brute force; count its other postures."""
    rng, total = np.random.default_rng(seed), 0
    q = starts(known, rng, poses)
    q[:, known.slides] *= 0.2
    goals = known.forward(q)[0]
    for own, T, mine in zip(q, goals, branches(arm_of(known), goals), strict=True):
        assert np.abs(known.forward(mine)[0] - T).max() < 1e-8
        assert known.apart(own, mine).min() < 1e-6
        theirs = known.postures(T, starts(known, rng, count))
        assert len(mine) >= len(theirs)
        for x in theirs:
            assert known.apart(x, mine).min() < SAME
        for x in mine:
            assert (known.apart(x, mine) < SAME).sum() == 1
        total += len(mine) - len(theirs)
    return total


@pytest.mark.parametrize(
    ("kind", "first", "seed"), pairwise(["wrist", "plane"], range(4), [1, 2, 3])
)
def test_general_arms_have_the_postures_of_brute_force(kind: str, first: int, seed: int) -> None:
    """The three intersecting or parallel axes may be anywhere in the chain; the others are skew."""
    more = same_postures(chain(kind, first, seed), seed, 2, 300)
    assert more == 0


@pytest.mark.parametrize("slides", [(0,), (1,), (0, 1), (0, 2), (1, 2), (0, 1, 2)], ids=str)
def test_arms_with_prismatic_joints(slides: tuple[int, ...]) -> None:
    assert same_postures(chain("wrist", 3, 5, slides), 3, 2, 200) == 0


PUMA = (
    [Z, -Y, -Y, Z, -Y, Z],
    [(0, 0, 0), (0, 0.15, 0), (0.43, 0.15, 0), *[(0.41, 0.15, 0.43)] * 3],
)
ELBOW = (
    [Z, Y, Y, X, Y, X],
    [(0, 0, 0), (0.1, 0.05, 0.3), (0.1, 0, 0.9), *[(0.7, 0.02, 1.0)] * 3],
)
SHOULDER = [(0, 0, 0.0892), (0, 0.1, 0.0892), (0.425, 0, 0.0892), (0.817, 0, 0.0892)]
UR5 = ([Z, Y, Y, Y, -Z, Y], [*SHOULDER, (0.817, 0.109, 0), (0.817, 0.2, -0.0055)])
SKEW = (UR5[0], [*SHOULDER, (0.817, 0.109, 0), (0.85, 0.2, -0.0055)])
PRISMATIC = ([Z, X, Y, Y, X, Y], [(0, 0, 0), (0.1, 0, 0.2), (0, 0, 0), *[(0.1, 0.5, 0.2)] * 3])
KNOWN: dict[str, tuple[Any, int, tuple[int, ...]]] = {
    "PUMA 560": (PUMA, 8, ()),
    "offsets at shoulder and wrist": (ELBOW, 8, ()),
    "UR5": (UR5, 8, ()),
    "UR5 with a bent wrist": (SKEW, 8, ()),
    "Stanford arm": (PRISMATIC, 8, (2,)),
    "first three intersect": ((PUMA[0][::-1], PUMA[1][::-1]), 8, ()),
    "UR5 from its tool": ((UR5[0][::-1], UR5[1][::-1]), 8, ()),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_arms_have_up_to_eight_postures(name: str) -> None:
    (axes, points), most, slides = KNOWN[name]
    rng = np.random.default_rng(3)
    base = tool(rng)
    known = Chain(
        np.array(axes) @ base[:3, :3].T,
        np.array(points, float) @ base[:3, :3].T + base[:3, 3],
        base @ tool(rng),
        slides,
    )
    assert same_postures(known, 4, 1, 300) == 0
    goals = known.forward(starts(known, rng, 30))[0]
    counts = [len(x) for x in branches(arm_of(known), goals)]
    assert max(counts) == most
    assert min(counts) >= 2


# Shoulder, elbow and wrist ----------------------------------------------------------------------

IIWA = ([Z, Y, Z, -Y, Z, Y, Z], [*[(0, 0, 0.36)] * 3, (0, 0, 0.78), *[(0, 0, 1.18)] * 3])


def bending(seed: int) -> Chain:
    """Return the axes of an iiwa (seed 0), or seven random axes.

    The first three and the last three axes intersect.
    """
    if not seed:
        return Chain(np.array(IIWA[0]), np.array(IIWA[1], float), np.eye(4))
    rng = np.random.default_rng(seed)
    axes, points = rng.normal(size=(7, 3)), rng.uniform(-0.5, 0.5, (7, 3))
    points[:3], points[4:] = points[0], points[4]
    return Chain(axes / np.linalg.norm(axes, axis=1, keepdims=True), points, tool(rng))


def by_arm_angle(known: Chain, q: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Return the postures that reach a pose and have the arm angle of another posture q."""
    own = arm_of(known)
    form, exact = chosen(own)
    assert form is not None
    assert exact
    assert form.kind == "elbow"
    moves = [Angle(float(np.cos(x)), float(np.sin(x))) for x in q]
    angle = arm_angle(jointed(own.joints), moves)
    bounds = np.full(7, np.inf)
    given = {"goal": [*T[:3, :3].ravel(), *T[:3, 3]], "given": [np.arctan2(angle.s, angle.c)]}
    out = interpret(traced(own, form, -bounds, bounds), given)
    return np.array(out["q"]).reshape(-1, 7)[np.array(out["found"]) > 0.0]


@pytest.mark.parametrize("seed", range(4))
def test_arms_with_shoulder_and_wrist_have_the_postures_of_brute_force(seed: int) -> None:
    """Postures of a numerical search are among the closed-form postures with their arm angle.

    There are at most eight postures for each arm angle.
    """
    known, rng = bending(seed), np.random.default_rng(seed)
    T = known.forward(starts(known, rng, 1))[0][0]
    most = 0
    for q in known.postures(T, starts(known, rng, 40))[:8]:
        found = by_arm_angle(known, q, T)
        assert np.abs(known.forward(found)[0] - T).max() < 1e-8
        assert known.apart(q, found).min() < 1e-6
        for x in found:
            assert (known.apart(x, found) < SAME).sum() == 1
        most = max(most, len(found))
    assert most >= (8 if not seed else 2)


QUARTER, HALF = np.pi / 2.0, np.pi
PUBLISHED_IIWA = (  # Drake's iiwa14: position, roll-pitch-yaw and limit of each joint
    ((0, 0, 0.1575), (0, 0, 0), 2.96706),
    ((0, 0, 0.2025), (QUARTER, 0, HALF), 2.0944),
    ((0, 0.2045, 0), (QUARTER, 0, HALF), 2.96706),
    ((0, 0, 0.2155), (QUARTER, 0, 0), 2.0944),
    ((0, 0.1845, 0), (-QUARTER, HALF, 0), 2.96706),
    ((0, 0, 0.2155), (QUARTER, 0, 0), 2.0944),
    ((0, 0.081, 0), (-QUARTER, HALF, 0), 3.05433),
)


def test_an_iiwa_file_is_solved_by_its_arm_angle(tmp_path: Path) -> None:
    """Inverse kinematics uses the closed form for arms with shoulder, elbow and wrist."""
    parts = ["<robot name='iiwa'>", *(f"<link name='l{k}'/>" for k in range(8))]
    for k, (place, angles, most) in enumerate(PUBLISHED_IIWA):
        xyz, rpy = (" ".join(f"{x:.15g}" for x in row) for row in (place, angles))
        parts.append(
            f"<joint name='j{k}' type='revolute'><origin xyz='{xyz}' rpy='{rpy}'/>"
            f"<parent link='l{k}'/><child link='l{k + 1}'/><axis xyz='0 0 1'/>"
            f"<limit lower='{-most}' upper='{most}' velocity='1' effort='1'/></joint>"
        )
    file = tmp_path / "iiwa.urdf"
    file.write_text("".join([*parts, "</robot>"]))
    robot = chasles.load(file)
    T = robot.forward_kinematics(robot.random(0, size=200), frame="l7")
    found = robot.inverse_kinematics({"l7": T})
    assert np.all(found.solved)
    assert np.abs(robot.forward_kinematics(found.q, frame="l7") - T).max() < 2e-6
    kept = robot.mechanism.kept["branches", "l7", frozenset()]
    assert (kept.form.kind, kept.exact) == ("elbow", True)


def test_singular_poses_of_arms_with_shoulder_and_wrist() -> None:
    """A posture is found for a stretched arm, for a wrist above the shoulder, and aligned axes."""
    known = bending(0)
    for q in (
        [0.3, 0.4, 0.1, 0.0, 0.7, 0.2, 0.5],
        np.zeros(7),
        [0.3, 0.7, 0.1, 1.4, 0.0, 0.7, 0.2],
    ):
        T = known.forward(np.array(q, float))[0]
        found = by_arm_angle(known, np.array(q, float), T)
        assert len(found)
        assert np.abs(known.forward(found)[0] - T).max() < 1e-7


def test_singular_poses_have_postures() -> None:
    """Postures are found at elbow, wrist and shoulder singularities, also combined."""
    known = Chain(np.array(PUMA[0]), np.array(PUMA[1], float), np.eye(4))
    elbow = np.arctan2(0.43, 0.02) - np.pi  # upper arm and forearm in line
    over = np.zeros(6)
    for q in ([0.3, 0.2, elbow, 0.1, 0.7, 0.2], [0.3, 0.2, 0.4, 0.5, 0.0, 0.2], over):
        T = known.forward(np.array(q))[0]
        (found,) = branches(arm_of(known), T[None])
        assert len(found)
        assert np.abs(known.forward(found)[0] - T).max() < 1e-7
    ur5 = Chain(np.array(UR5[0]), np.array(UR5[1]), np.eye(4))
    for q in ([0.1, 0.2, 0.0, 0.3, 0.4, 0.5], [0.1, 0.2, 0.3, 0.3, np.pi / 2, 0.5], over):
        T = ur5.forward(np.array(q))[0]
        (found,) = branches(arm_of(ur5), T[None])
        assert len(found)
        assert np.abs(ur5.forward(found)[0] - T).max() < 1e-7


def test_limits_are_met_by_full_turns() -> None:
    """A joint with limits [2, 9] rad reaches 0.5 rad after a full turn; one with [1, 2] cannot."""
    known = arm_of(Chain(np.array(PUMA[0]), np.array(PUMA[1], float), np.eye(4)))
    q = np.array([0.5, -0.3, 0.4, 1.0, 0.8, -0.6])
    T = Chain(np.array(PUMA[0]), np.array(PUMA[1], float), np.eye(4)).forward(q)[0]
    form, _ = chosen(known)
    assert form is not None
    lower, upper = np.full(6, -np.pi), np.full(6, np.pi)

    def first_joint(low: float, high: float) -> np.ndarray:
        lower[0], upper[0] = low, high
        program = traced(known, form, lower, upper)
        out = interpret(program, {"goal": [*T[:3, :3].ravel(), *T[:3, 3]]})
        return np.array(out["q"]).reshape(-1, 6)[np.array(out["found"]) > 0.0, 0]

    whole = first_joint(-np.pi, np.pi)
    assert len(whole) == 8
    turned = first_joint(2.0, 9.0)
    assert len(turned) == 8
    assert np.abs(turned - 0.5 - 2.0 * np.pi).min() < 1e-12
    assert ((turned >= 2.0) & (turned <= 9.0)).all()
    assert np.abs(first_joint(0.4, 0.6) - 0.5).max() < 1e-12
    assert len(first_joint(1.0, 2.0)) == 0


# Robots -----------------------------------------------------------------------------------------


def reached(robot: chasles.Robot, frame: str, T: np.ndarray, found: Any) -> None:
    """Assert that every solution reaches its pose, within the limits."""
    q = found.q[found.solved]
    each = np.repeat(T, found.solved.sum(axis=-1), axis=0)
    assert np.abs(robot.forward_kinematics(q, frame=frame) - each).max() < 3e-6
    assert ((q >= robot.limits.lower) & (q <= robot.limits.upper)).all()
    assert np.isnan(found.q[~found.solved]).all()


@pytest.mark.parametrize("name", ["puma560", "stanford_arm", "ur5_robot", "ur10_robot"])
def test_all_postures_of_published_arms(name: str) -> None:
    """The original posture is found, modulo full turns, and no posture is found twice."""
    robot, frame = published(name)
    q = robot.random(np.random.default_rng(1), size=500)
    T = robot.forward_kinematics(q, frame=frame)
    found = robot.inverse_kinematics({frame: T}, solutions="all")
    reached(robot, frame, T, found)
    assert np.all(found.complete)
    assert found.residual[found.solved].max() < 1e-9
    turns = np.where(np.array([robot.joint(j).kind == "prismatic" for j in robot.joints]), 0, 1)
    far = found.q[:, :, None] - np.concatenate([q[:, None], found.q], axis=1)[:, None]
    far = np.abs(far - turns * 2.0 * np.pi * np.round(far / (2.0 * np.pi)))
    same = (far < 1e-4).all(axis=-1)
    assert same[:, :, 0].any(axis=1).all()
    assert same[:, :, 1:].sum() == found.solved.sum()
    # The boom of the Stanford arm extends in one direction only, which halves the number.
    assert found.solved.sum(axis=1).max() == (4 if name == "stanford_arm" else 8)


def test_poses_out_of_reach_have_no_posture() -> None:
    robot, frame = published("ur5_robot")
    T = np.eye(4)
    T[:3, 3] = 5.0, 0.0, 0.0
    found = robot.inverse_kinematics({frame: T}, solutions="all")
    assert not found.solved.any()
    assert found.complete
    assert np.isnan(found.q).all()
    one = robot.inverse_kinematics({frame: T})
    assert not one.solved
    assert np.isfinite(one.q).all()


def test_postures_have_the_same_bits_in_any_batch() -> None:
    robot, frame = published("ur5_robot")
    q = robot.random(np.random.default_rng(2), size=200)
    T = robot.forward_kinematics(q, frame=frame)
    whole = robot.inverse_kinematics({frame: T}, solutions="all", threads=1)
    turned = robot.inverse_kinematics({frame: T[::-1]}, solutions="all", threads=3)
    alone = robot.inverse_kinematics({frame: T[17]}, solutions="all")
    assert np.array_equal(whole.q, turned.q[::-1], equal_nan=True)
    assert np.array_equal(whole.q[17], alone.q, equal_nan=True)
    few = robot.inverse_kinematics({frame: T}, solutions="all", count=2)
    assert np.array_equal(few.q, whole.q[:, :2], equal_nan=True)
    assert np.array_equal(few.complete, whole.solved.sum(axis=1) <= 2)
    none = robot.inverse_kinematics({frame: T[:0]}, solutions="all")
    assert none.q.shape == (0, 16, 6)


def test_near_turns_joints_within_their_limits() -> None:
    """The solution nearest to a posture is the posture itself, including full turns.

    UR5 joints have a range of two turns.
    """
    robot, frame = published("ur5_robot")
    q = robot.random(np.random.default_rng(3), size=50)
    found = robot.inverse_kinematics({frame: robot.forward_kinematics(q, frame=frame)}, near=q)
    assert found.solved.all()
    assert np.abs(found.q - q).max() < 1e-6


def test_wide_tolerances_ask_for_more_than_the_branches() -> None:
    robot, frame = published("ur5_robot")
    T = robot.forward_kinematics([0.1, -0.5, 0.7, 0.3, 0.4, 0.5], frame=frame)
    assert robot.inverse_kinematics({frame: T}, solutions="all").complete
    wide = robot.inverse_kinematics({frame: Pose(T, tolerance=(0.1, 1e-6))}, solutions="all")
    assert not wide.complete


def test_seven_joints_are_sampled_along_the_redundancy() -> None:
    """A Panda has distinct postures from the whole family, or all branches for a fixed joint."""
    robot, frame = published("panda")
    q = robot.random(np.random.default_rng(4), size=40)
    T = robot.forward_kinematics(q, frame=frame)
    found = robot.inverse_kinematics({frame: T}, solutions="all", count=12)
    reached(robot, frame, T, found)
    assert found.solved.any(axis=1).all()
    assert np.median(found.solved.sum(axis=1)) == 12
    assert not np.any(found.complete)
    first = found.q[0][found.solved[0]]
    assert np.ptp(first[:, 6]) > 0.5
    away = np.abs(first[:, None] - first[None]).max(axis=-1)
    assert away[~np.eye(len(first), dtype=bool)].min() > 1e-4
    held = robot.inverse_kinematics({frame: T}, solutions="all", guess=q, fixed="panda_joint7")
    reached(robot, frame, T, held)
    assert np.all(held.complete)
    assert np.array_equal(held.q[..., 6][held.solved], np.repeat(q[:, 6], held.solved.sum(axis=1)))
    assert (np.abs(held.q - q[:, None]).max(axis=-1) < 1e-5).any(axis=1).all()


def test_every_pose_of_the_panda_is_reached() -> None:
    """Poses that the search misses are found by varying the redundant joint."""
    robot, frame = published("panda")
    q = robot.random(np.random.default_rng(5), size=20_000)
    T = robot.forward_kinematics(q, frame=frame)
    found = robot.inverse_kinematics({frame: T}, tries=3)
    assert found.solved.all()
    assert np.abs(robot.forward_kinematics(found.q, frame=frame) - T).max() < 3e-6
    usual = robot.inverse_kinematics({frame: T})
    assert usual.solved.all()
    for k in np.argsort(usual.iterations)[-5:]:  # single problems, bitwise identical
        for _ in range(2):  # the second call takes the fast path
            assert np.array_equal(robot.inverse_kinematics({frame: T[k]}).q, usual.q[k])


def test_axes_that_intersect_nearly_are_solved_but_promise_nothing() -> None:
    """Wrist axes that are 10 um apart are solved by a search that starts from closed forms.

    The list of postures is then not marked as complete.
    """
    robot = puma560()
    source = robot.model.source
    joints = tuple(
        replace(j, pose=replace(j.pose, r=j.pose.r + Vector.of(1e-5, 0.0, 1e-5)))
        if j.name == source.joints[4].name
        else j
        for j in source.joints
    )
    other = chasles.Robot(replace(source, joints=joints))
    q = other.random(np.random.default_rng(6), size=200)
    T = other.forward_kinematics(q, frame="tool")
    found = other.inverse_kinematics({"tool": T}, solutions="all")
    reached(other, "tool", T, found)
    assert found.solved.any(axis=1).all()
    assert not np.any(found.complete)


def test_arms_without_a_special_triple_have_no_closed_form() -> None:
    rng = np.random.default_rng(1)
    axes = rng.normal(size=(6, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    known = Chain(axes, rng.uniform(-0.5, 0.5, (6, 3)), tool(rng))
    assert not list(forms(arm_of(known)))
    assert chosen(arm_of(known)) == (None, False)
    robot, frame = published("panda")
    assert arm(robot.model, robot.frames[3]) is None  # fewer than six joints move it
    assert len(list(forms(arm(robot.model, frame)))) > 1  # type: ignore[arg-type]
