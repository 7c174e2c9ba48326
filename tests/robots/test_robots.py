"""Built-in robots: published poses, torques and inertias, and properties of random trees."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from support import raises

from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import JOINTS, WORLD, Description, Model, ShapeData, build
from chasles.robots import ROBOTS
from chasles.robots._solids import box, capsule, cylinder, mirrored, sphere
from chasles.robots.arms import microbot, puma560, stanford_arm
from chasles.robots.legged import humanoid, quadruped
from chasles.robots.mechanisms import four_bar
from chasles.robots.synthetic import general_chain, general_tree, planar, random_tree, zigzag

ARGUMENTS = {
    "planar": (4,),
    "zigzag": (6,),
    "general_chain": (6,),
    "general_tree": (7, 2),
    "random_tree": (14, 3),
}
INCH = 0.0254


# Independent kinematics and dynamics, in NumPy ---------------------------------------------------


def homogeneous(X: Transform) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.array(X.R.rows, dtype=float), list(X.r)
    return T


def pose(model: Model, name: str, q: np.ndarray) -> np.ndarray:
    """Return the pose of a frame in the world, computed link by link."""
    frame, joints = model.frame(name), model.positions(list(q))
    T = homogeneous(frame.placement)
    for i in model.support(frame.body) if frame.body != WORLD else ():
        T = homogeneous(model.bodies[i].joint.transform(joints[i])) @ T
    return T


def skew(v: np.ndarray) -> np.ndarray:
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def six_by_six(inertia: RigidInertia) -> np.ndarray:
    h = skew(np.array(list(inertia.h), dtype=float))
    I = np.array(inertia.I.matrix().rows, dtype=float)
    return np.block([[I, h], [h.T, inertia.m * np.eye(3)]])


def about_center(inertia: RigidInertia) -> np.ndarray:
    c = np.array(list(inertia.h), dtype=float) / inertia.m
    return six_by_six(inertia)[:3, :3] + inertia.m * skew(c) @ skew(c)


def dynamics(model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mass matrix and gravity torques as sums over bodies of J' I J and of -J' I g."""
    joints = model.positions(list(q))
    T, J = {WORLD: np.eye(4)}, {WORLD: np.zeros((6, model.nv))}
    M, tau = np.zeros((model.nv, model.nv)), np.zeros(model.nv)
    g = np.array([0.0, 0.0, 0.0, *model.gravity_vector])
    for i, body in enumerate(model.bodies):
        T[i] = T[body.parent] @ homogeneous(body.joint.transform(joints[i]))
        R, p = T[i][:3, :3], T[i][:3, 3]
        to_world = np.block([[R, np.zeros((3, 3))], [skew(p) @ R, R]])
        columns = [[*s.angular, *s.linear] for s in body.joint.subspace(joints[i]).columns]
        ((owner, _, ratio),) = model.shares(i)
        J[i] = J[body.parent].copy()
        J[i][:, model.velocity_slices[owner]] += ratio * to_world @ np.array(columns, float).T
        back = np.linalg.inv(to_world)
        I = back.T @ six_by_six(body.inertia) @ back
        M, tau = M + J[i].T @ I @ J[i], tau - J[i].T @ I @ g
        diagonal = np.zeros(model.nv)
        diagonal[model.velocity_slices[owner]] = ratio**2 * np.array(list(body.joint.armature))
        M = M + np.diag(diagonal)
    return M, tau


def neutral(model: Model) -> np.ndarray:
    return np.array([x for i in model.movers for x in model.bodies[i].joint.neutral()])


def standard_dh(a: float, alpha: float, d: float, theta: float) -> np.ndarray:
    """Return the matrix of a row of standard Denavit-Hartenberg parameters."""
    c, s, ca, sa = math.cos(theta), math.sin(theta), math.cos(alpha), math.sin(alpha)
    upper = [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s]]
    return np.array([*upper, [0.0, sa, ca, d], [0.0, 0.0, 0.0, 1.0]])


# Every robot -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROBOTS)
def test_builds_with_possible_inertias(name: str) -> None:
    robot = ROBOTS[name](*ARGUMENTS.get(name, ())).model.source
    model = build(robot, strict=True)
    assert isinstance(robot, Description)
    assert robot.name == name
    M, _ = dynamics(model, neutral(model))
    assert np.linalg.eigvalsh(M)[0] > 0.0
    for link in robot.links:
        if link.inertia.m:
            low, middle, high = np.linalg.eigvalsh(about_center(link.inertia))
            assert low > 0.0
            assert low + middle >= high * (1.0 - 1e-9)


@pytest.mark.parametrize(
    ("robot", "mass"),
    [
        (puma560(), 13.0 + 23.45),  # Armstrong et al. weighed links 2 to 6: 23.45 kg
        (stanford_arm(), 20.77),
        (microbot(), 3.95),
        (planar(5), 5.0),
        (quadruped(), 18.64),
        (humanoid(), 67.2),
    ],
    ids=lambda value: value.name if isinstance(value, Description) else "",
)
def test_total_mass(robot: Description, mass: float) -> None:
    assert sum(link.inertia.m for link in robot.links) == pytest.approx(mass)


@pytest.mark.parametrize(
    "make",
    [planar, zigzag, general_chain, lambda n: general_tree(n, 2), lambda n: random_tree(n, 0)],
    ids=lambda f: f.__name__,
)
def test_needs_a_joint(make) -> None:
    with raises("E-ROBOT-032"):
        make(0)


# Arms of the literature --------------------------------------------------------------------------


def test_puma_pose() -> None:
    """Nominal pose as printed in Corke, Robotics, Vision and Control (2011), section 7.2."""
    T = pose(build(puma560()), "tool", np.array([0.0, math.pi / 4, math.pi, 0.0, math.pi / 4, 0.0]))
    expected = [[0, 0, 1, 0.5963], [0, 1, 0, -0.1501], [-1, 0, 0, -0.0144], [0, 0, 0, 1]]
    np.testing.assert_allclose(T, expected, atol=0.6e-4)


def test_puma_frames_are_the_table() -> None:
    model, q = build(puma560()), np.array([0.3, -0.8, 1.1, 0.4, -0.6, 2.0])
    half = math.pi / 2
    rows = [(0, half, 0), (0.4318, 0, 0), (0.0203, -half, 0.15005), (0, half, 0.4318)]
    rows += [(0, -half, 0), (0, 0, 0)]
    T = np.eye(4)
    for i, ((a, alpha, d), angle) in enumerate(zip(rows, q, strict=True), start=1):
        T = T @ standard_dh(a, alpha, d, angle)
        np.testing.assert_allclose(pose(model, f"dh{i}", q), T, atol=1e-15)


def test_puma_dynamics() -> None:
    """Mass matrix and gravity torques at q = (1, ..., 6) agree with those of Corke's toolbox.

    The toolbox prints four decimals. Its link 1 has no mass, and its link 3 has impossible moments
    of inertia, which the data file replaces by equivalent ones.
    """
    M, tau = dynamics(build(puma560()), np.arange(1.0, 7.0))
    upper = [2.6152, -0.6550, -0.0363, 0.0001, 0.0010, 0.0, 4.3038, 0.2953, -0.0008, -0.0017, 0.0]
    upper += [0.9366, -0.0009, -0.0006, 0.0, 0.1926, 0.0, 0.0, 0.1713, 0.0, 0.1941]
    np.testing.assert_allclose(M[np.triu_indices(6)], upper, atol=0.6e-4)
    np.testing.assert_allclose(tau, [0.0, -7.9683, 8.4581, -0.0197, 0.0027, 0.0], atol=0.6e-4)


def test_puma_gravity_constants() -> None:
    """Armstrong, Khatib and Burdick (1986) give g1 = -37.2 and g4 = 0.249 N m with three digits.

    With the upper arm horizontal and the forearm up, the torques are g4 - g1 at joint 2 and g4 at
    joint 3.
    """
    _, tau = dynamics(build(puma560()), np.zeros(6))
    np.testing.assert_allclose(tau[1:3], [37.2 + 0.249, 0.249], rtol=2e-3)


@pytest.mark.parametrize("make", [puma560, stanford_arm, microbot])
def test_zeros_of_the_table_stay_zeros(make) -> None:
    numbers = [x for link in make().links for x in (*link.inertia.h, *link.inertia.I)]
    numbers += [x for joint in make().joints for row in joint.pose.R.rows for x in row]
    assert all(x == 0.0 or abs(x) > 1e-6 for x in numbers)


def test_puma_motors() -> None:
    first = puma560().joints[0]
    assert first.armature == pytest.approx(62.6111**2 * 200e-6)
    assert first.damping == pytest.approx(62.6111**2 * 1.48e-3)
    assert first.friction == pytest.approx(62.6111 * 0.415)
    assert math.degrees(first.limits.upper) == pytest.approx(160.0)


def test_stanford_pose() -> None:
    """Pose of the example in Paul (1972), AIM-177, table 2.1, printed to 0.01 inch and 0.01.

    The example's base is 16.24 inches below the shoulder, and its theta4 is relative to a frame 3
    that is turned by -90 degrees.
    """
    angles = np.radians([-95.7, -112.4, 0.0, -38.2 - 90.0, 80.4, 68.9])
    angles[2] = 22.16 * INCH
    T = pose(build(stanford_arm()), "tool", angles)
    position = T[:3, 3] / INCH + [0.0, 0.0, 16.24]
    np.testing.assert_allclose(position, [0.0, 19.78, 1.30], atol=0.01)
    printed = [[-0.63, 0.0, -0.78], [0.0, 1.0, 0.0], [0.78, 0.0, -0.63]]
    np.testing.assert_allclose(T[:3, :3], printed, atol=0.01)


@pytest.mark.parametrize("d4", [0.0, 0.17])
def test_stanford_frames_are_legnani(d4: float) -> None:
    """Frames agree with M01 ... M56 in Legnani et al. (1996), part II, section 4."""
    q1, q2, d3, q4, q5, q6 = q = [0.4, -0.7, 0.6, 1.2, 0.9, -2.1]
    half, d2 = math.pi / 2, 6.05 * INCH
    M = [standard_dh(0, -half, 0, q1), standard_dh(0, half, d2, q2), standard_dh(0, 0, d3, 0)]
    M += [standard_dh(0, -half, d4, q4), standard_dh(0, half, 0, q5), standard_dh(0, 0, 0, q6)]
    model = build(stanford_arm())
    at = np.array([*q[:2], d3 + d4, *q[3:]])
    for i, T in enumerate(itertools.accumulate(M, np.matmul), start=1):
        if i != 3:  # in the book, frame 3 is at a distance d4 from the wrist
            np.testing.assert_allclose(pose(model, f"dh{i}", at), T, atol=1e-15)


def test_stanford_boom_is_a_boom() -> None:
    """The boom's moments about its center are those of a bar of about 1.4 m, its actual length."""
    boom = next(link for link in stanford_arm().links if link.name == "link3").inertia
    moment = about_center(boom)[0, 0]
    assert 1.2 < math.sqrt(12.0 * moment / float(boom.m)) < 1.5


def test_microbot_pose() -> None:
    """Mitra's point P agrees with the recomputed value, because one printed digit is wrong."""
    q = np.array([*np.radians([30.0, 60.0, -30.0, 0.0]), 0.097])
    model = build(microbot())
    expected = [280.2913, 161.8263, 298.7224]
    np.testing.assert_allclose(1e3 * pose(model, "P", q)[:3, 3], expected, atol=0.6e-4)
    along = pose(model, "P", q)[:3, 3] - pose(model, "tool", q)[:3, 3]
    assert np.linalg.norm(along) == pytest.approx(0.064)


# Rods, and the general chain ---------------------------------------------------------------------


def test_planar_lifts_with_positive_angles() -> None:
    model, q = build(planar(3)), np.array([0.3, 0.4, -0.2])
    directions = np.cumsum(q)
    expected = [np.cos(directions).sum(), 0.0, np.sin(directions).sum()]
    np.testing.assert_allclose(pose(model, "tip", q)[:3, 3], expected, atol=1e-15)
    _, tau = dynamics(model, np.zeros(3))
    np.testing.assert_allclose(tau, 9.81 * np.array([4.5, 2.0, 0.5]))  # half the squared length


def test_zigzag_is_featherstones() -> None:
    """Torques, effect of rounded torques, condition number: Featherstone (2008), section 10.2."""
    M, tau = dynamics(build(zigzag(6)), np.zeros(6))
    assert not tau.any()
    exact = [126.49367594, 97.46632362, 69.97622844, 43.79984753, 21.93718091, 6.16468570]
    np.testing.assert_allclose(M @ np.ones(6), exact, rtol=1e-9)
    response = np.linalg.solve(M, [126.0, 97.5, 70.0, 43.8, 21.9, 6.16])
    printed = [0.6592, 1.3654, 1.3808, 0.5894, 0.9057, 1.0705]
    np.testing.assert_allclose(response, printed, atol=0.6e-4)
    assert np.linalg.cond(M) == pytest.approx(725.388, rel=1e-6)


@pytest.mark.parametrize(("n", "condition"), [(6, 5685.06), (10, 43523.4)])
def test_straight_arm_is_worse(n: int, condition: float) -> None:
    M, _ = dynamics(build(planar(n)), np.zeros(n))
    assert np.linalg.cond(M) == pytest.approx(condition, rel=1e-5)


def test_general_chain_has_nothing_special() -> None:
    robot = general_chain(6)
    assert robot == general_chain(6)
    assert robot.links == general_chain(9).links[:7]
    seen: list[float] = []
    for joint, link in zip(robot.joints, robot.links[1:], strict=True):
        R = np.array(joint.pose.R.rows, float)
        seen += [R[1, 1], R[2, 1], *joint.pose.r, link.inertia.m, *link.inertia.h, *link.inertia.I]
    sizes = np.abs(seen)
    assert len(np.unique(sizes)) == len(sizes)
    assert np.abs(sizes - np.round(sizes)).min() > 1e-5


def test_general_chain_at_right_angles() -> None:
    for joint in general_chain(5, right_angles=True).joints:
        np.testing.assert_array_equal(joint.pose.R.rows, [[1, 0, 0], [0, 0, -1], [0, 1, 0]])


@pytest.mark.parametrize("children", [1, 2, 3])
def test_general_tree_branches_and_has_nothing_special(children: int) -> None:
    """The pose of each first child is a translation (a, 0, d) and a rotation about x."""
    robot = general_tree(13, children)
    assert robot == general_tree(13, children)
    assert robot.joints == general_tree(20, children).joints[:13]
    carried: dict[str | None, list] = {}
    for joint in robot.joints:
        carried.setdefault(joint.parent, []).append(joint)
    assert len(carried.pop("base")) == 1
    assert [len(joints) for joints in carried.values()] == [children] * (12 // children)
    seen = [
        x for link in robot.links[1:] for x in (link.inertia.m, *link.inertia.h, *link.inertia.I)
    ]
    for first, *others in carried.values():
        R = np.array(first.pose.R.rows, float)
        np.testing.assert_array_equal(
            [*R[0], R[1, 0], R[2, 0], first.pose.r[1]], [1, 0, 0, 0, 0, 0]
        )
        seen += [R[1, 1], R[2, 1], first.pose.r[0], first.pose.r[2]]
        for joint in others:
            seen += [*np.array(joint.pose.R.rows, float)[:2].ravel(), *joint.pose.r]
    sizes = np.abs([x for x in seen if x != 0.0])
    assert len(np.unique(sizes)) == len(sizes)


def test_general_tree_needs_children() -> None:
    with raises("E-ROBOT-032", "children per link"):
        general_tree(3, 0)


# Legged machines, solids -------------------------------------------------------------------------


@pytest.mark.parametrize(("robot", "joints"), [(quadruped(), 12), (humanoid(), 30)])
def test_legged_are_symmetric(robot: Description, joints: int) -> None:
    """Mirrored joint angles give mirrored frames and a center of mass in the plane y = 0."""
    model = build(robot)
    assert (model.nq, model.nv) == (7 + joints, 6 + joints)
    q, rng = neutral(model), np.random.default_rng(0)
    angles: dict[str, float] = {}
    for i in model.movers[1:]:
        data = model.bodies[i].data
        twin = data.name.replace("right", "left")
        about_y = data.axis[1] != 0.0
        assert data.limits.lower < data.limits.upper
        angles[data.name] = rng.uniform(-0.5, 0.5) * ("left" in data.name or about_y)
        if twin != data.name:
            angles[data.name] = angles[twin] if about_y else -angles[twin]
        q[model.position_slices[i]] = angles[data.name]
    center = np.zeros(3)
    for link in robot.links:
        c = np.array([*link.inertia.h, link.inertia.m], float)
        center += (pose(model, link.name, q) @ c)[:3]
    assert abs(center[1]) < 1e-13
    flip = np.diag([1.0, -1.0, 1.0, 1.0])
    sided = [name for name in model.frames if "left" in name]
    assert len(sided) >= joints // 2
    for name in sided:
        left, right = (pose(model, n, q) for n in (name, name.replace("left", "right")))
        np.testing.assert_allclose(flip @ left @ flip, right, atol=1e-14)


def test_humanoid_stands_under_its_head() -> None:
    model = build(humanoid())
    q = neutral(model)
    eyes, sole = (pose(model, frame, q)[:3, 3] for frame in ("eyes", "left_sole"))
    assert eyes[2] - sole[2] == pytest.approx(1.77)


def test_solids_agree_with_their_slices() -> None:
    """Moments of inertia of solids of revolution agree with integrals of discs along the axis."""
    mass, r, length = 2.0, 0.3, 0.8
    z = (np.arange(200_000) + 0.5) / 200_000 * (length + 2 * r) - (length / 2 + r)
    beyond = np.maximum(np.abs(z) - length / 2, 0.0)
    ball = np.maximum(r * r - z * z, 0.0)
    for squares, inertia in (
        (r * r - beyond**2, capsule(mass, r, length, 2)),
        (np.where(beyond > 0.0, 0.0, r * r), cylinder(mass, r, length, 2)),
        (ball, sphere(mass, r)),
    ):
        dm = mass * squares / squares.sum()
        axial, transverse = (dm * squares).sum() / 2, (dm * (squares / 4 + z * z)).sum()
        np.testing.assert_allclose(list(inertia.I)[:3], [transverse, transverse, axial], rtol=1e-5)


def test_solids_mirror() -> None:
    left, right = (box(2.0, (0.1, 0.3, 0.4), Vector.of(0.3, y, -0.1)) for y in (0.2, -0.2))
    assert mirrored(left) == right


# Random trees ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("floating", [None, False, True])
def test_random_tree_has_every_joint(seed: int, floating: bool | None) -> None:
    robot = random_tree(len(JOINTS), seed, floating=floating)
    assert {joint.kind for joint in robot.joints} - {"fixed"} == set(JOINTS)
    model = build(robot)
    assert len(model.bodies) == len(JOINTS)
    root = model.bodies[0].joint.kind
    assert floating is None or (root == "free") == floating
    parents = [body.parent for body in model.bodies]
    assert max(parents.count(i) for i in range(len(JOINTS))) >= 2


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 20, 40])
@pytest.mark.parametrize("mimics", [False, True])
def test_random_tree_is_regular(n: int, mimics: bool) -> None:
    for seed in range(3):
        robot = random_tree(n, seed, mimics=mimics)
        model = build(robot, strict=True)
        rng = np.random.default_rng(seed)
        q = neutral(model) + rng.uniform(-0.4, 0.4, model.nq)
        M, _ = dynamics(model, q)
        assert np.linalg.eigvalsh(M)[0] > 0.0


def test_random_tree_is_deterministic() -> None:
    assert random_tree(15, 7) == random_tree(15, 7)
    assert random_tree(15, 7) != random_tree(15, 8)
    assert random_tree(15, 7, mimics=True) != random_tree(15, 7)


def test_random_trees_vary() -> None:
    """Ten trees contain general axes, fixed links, losses, mimic joints, screws and second axes."""
    joints = [j for seed in range(10) for j in random_tree(12, seed, mimics=True).joints]
    aligned = [sum(a != 0.0 for a in j.axis) == 1 for j in joints if j.kind != "fixed"]
    assert 0.2 < np.mean(aligned) < 0.8
    for present in (
        [j.kind == "fixed" for j in joints],
        [j.mimic is not None for j in joints],
        [j.armature > 0.0 and j.damping > 0.0 and j.friction > 0.0 for j in joints],
        [j.second_axis is not None for j in joints],
    ):
        assert 0 < sum(present) < len(joints) / 2
    assert all(j.pitch for j in joints if j.kind == "helical")
    assert len(random_tree(30, 0, fixed=False).joints) == 30
    assert not any(j.mimic for j in random_tree(30, 0).joints)


def test_motors_and_bones_of_the_humanoid_have_no_common_surface() -> None:
    """Viewers cannot order coinciding surfaces, and show stripes of both colors."""
    by_link: dict[str, list[ShapeData]] = {}
    for shape in humanoid().shapes:
        by_link.setdefault(shape.link, []).append(shape)
    ratios = []
    for solid, motor in (pair for pair in by_link.values() if len(pair) == 2):
        first, second = (np.array(s.pose.R.rows, dtype=float)[:, 2] for s in (solid, motor))
        coaxial = solid.kind in ("capsule", "cylinder") and abs(first @ second) > 0.99
        if coaxial and solid.color != motor.color:
            ratios.append(solid.size[0] / motor.size[0])
    assert len(ratios) == 6  # waist, neck, upper arms, forearms
    assert min(abs(ratio - 1.0) for ratio in ratios) > 0.1


@pytest.mark.parametrize("count", ["a", 2.5, True, None, 0, -1])
def test_counts_of_joints_are_positive_integers(count: Any) -> None:
    for make in (
        planar,
        zigzag,
        general_chain,
        lambda n: general_tree(n, 2),
        lambda n: general_tree(2, n),
        lambda n: random_tree(n, 0),
    ):
        with raises("E-ROBOT-032", "must be a positive integer"):
            make(count)


@pytest.mark.parametrize("length", ["a", None, 0.0, math.inf, [1.0]])
def test_lengths_of_bars_are_positive_numbers(length: Any) -> None:
    with raises("E-ROBOT-030", "must be positive and finite"):
        four_bar(crank=length)
