"""Values printed in Featherstone (2008), with errata corrected, that no other file tests.

The zig-zag arm (10.2) is in test_published.py, box and cylinder (7.1) in
test_operational_inertia.py, the geared arm (9.6) in test_equivalent_mechanisms.py, the parent array
of a reduced tree (9.1) in test_hybrid.py, the spatial four-bar (8.10) in test_loops.py.
"""

from collections.abc import Callable
from dataclasses import fields
from itertools import count

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import chasles
from chasles.expr import RULES, Arena, Program, Variable, interpret
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.planar import PlanarForce, PlanarInertia, PlanarMotion, PlanarTransform
from chasles.mathematics.spatial import (
    ArticulatedInertia,
    Motion,
    RigidInertia,
    Transform,
)
from chasles.model import Description, FrameData, JointData, LinkData
from chasles.model.model import WORLD
from chasles.numeric.subspaces import active_subspace
from chasles.robots import general_chain
from chasles.robots._solids import box, sphere

# 10.1: a body of unit mass and inertia in a distant frame ---------------------------------------


def far(x: float, y: float) -> tuple[np.ndarray, np.ndarray]:
    """Return I and f - v x* I v at O, for f = (1, -1, 1) and v = (1, 0, 0) at the center."""
    to_origin = PlanarTransform.of(0.0, -x, -y)
    I = to_origin @ PlanarInertia.from_center(1.0, 0.0, 0.0, 1.0)
    v, f = to_origin @ PlanarMotion(1.0, 0.0, 0.0), to_origin @ PlanarForce(1.0, -1.0, 1.0)
    assert (v.w, v.x, v.y) == (1.0, y, -x)
    return np.array(I.matrix()), np.array(list((f - v.cross(I @ v)).vector()))


def test_far_frame() -> None:
    """Eq 10.1: matrix, right side, solution, condition number, and loss of four digits."""
    I, right = far(100.0, 10.0)
    np.testing.assert_array_equal(I, [[10101.0, -10.0, 100.0], [-10.0, 1.0, 0.0], [100.0, 0.0, 1]])
    np.testing.assert_array_equal(right, [111.0, -1.0, 1.0])
    assert np.linalg.cond(I) == pytest.approx(1.0205e8, rel=1e-4)
    error = np.max(np.abs(np.linalg.solve(I, right) - [1.0, 9.0, -99.0])) / 99.0
    assert 0.0 < error < 1e-10


def test_error_grows_as_the_square_of_the_distance() -> None:
    """Fig 10.2: the error is constant below distance 1, and grows with its square above."""
    rng = np.random.default_rng(10)
    distances = np.array([0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5])
    means = []
    for distance in distances:
        errors = []
        for angle in rng.uniform(0.0, 2.0 * np.pi, size=200):
            x, y = float(distance * np.cos(angle)), float(distance * np.sin(angle))
            a = PlanarMotion(*np.linalg.solve(*far(x, y)).tolist())
            at_center = PlanarTransform.of(0.0, x, y) @ a
            errors.append(np.max(np.abs(np.array([*at_center.vector()]) - [1.0, -1.0, 1.0])))
        means.append(np.mean(errors))
    assert max(means[:3]) < 1e-15
    slope = np.polyfit(np.log10(distances[3:]), np.log10(means[3:]), 1)[0]
    assert 1.7 < slope < 2.3
    assert means[4] == pytest.approx(9e-13, rel=1.0)


# 4.1.4: sets of a tree --------------------------------------------------------------------------


def tree(parents: tuple[int, ...]) -> chasles.Robot:
    """Return boxes on revolute joints, numbered from 1 as in the book; 0 is the base."""
    links = [LinkData("0", RigidInertia.zero())]
    joints = []
    for i, p in enumerate(parents, start=1):
        links.append(LinkData(str(i), box(1.0, (0.3, 0.2, 0.1))))
        place = Transform.from_pose(Matrix.identity(), Vector.of(0.1 * i, 0.2, 0.3))
        axis = Vector.of(0.0, 0.6, 0.8)
        joints.append(JointData(f"j{i}", "revolute", str(p), str(i), place, axis))
    return chasles.Robot(Description("tree", tuple(links), tuple(joints)))


def test_sets_of_a_tree() -> None:
    """Kappa, mu and nu of a tree of eight bodies agree with the book."""
    model = tree((0, 1, 1, 0, 3, 4, 4, 4)).model
    name = {WORLD: 0} | {i: int(body.name) for i, body in enumerate(model.bodies)}
    support = {name[i]: {name[k] for k in model.support(i)} for i in range(8)}
    children = {name[i]: {name[k] for k in held} for i, held in model.children.items()}
    carried = {j: {i for i in support if j in support[i]} for j in support}
    assert [support[i] for i in (1, 2, 3, 8)] == [{1}, {1, 2}, {1, 3}, {4, 8}]
    assert [children[i] for i in (0, 1, 2, 8)] == [{1, 4}, {2, 3}, set(), set()]
    assert [carried[i] for i in (1, 2, 8)] == [{1, 2, 3, 5}, {2}, {8}]

    def below(j: int) -> set[int]:
        return {j}.union(*(below(k) for k in children[j]))

    assert all(below(j) == carried[j] for j in carried)


def test_mass_of_a_tree_in_either_order() -> None:
    """The mass matrix as a sum over bodies (Eq 4.3) agrees with the composite-body result."""
    robot = tree((0, 1, 1, 0, 3, 4, 4, 4))
    q = robot.random(seed=1)
    total = np.zeros((8, 8))
    for link in robot.bodies[1:]:
        J = robot.jacobian(q, frame=link, axes="frame")
        inertia = (
            robot.model.frames[link].placement
            @ robot.model.bodies[robot.model.frames[link].body].inertia
        )
        columns = [list(inertia @ Motion.of(*column)) for column in J.T.tolist()]
        total += J.T @ np.array(columns).T
    np.testing.assert_allclose(total, robot.mass_matrix(q), atol=1e-13)


# 3.5, example 3.2: a pinion -----------------------------------------------------------------------


def test_pinion() -> None:
    """A force at the rim of a gear has the active subspace T_a = (0, 0, 1, 0, -1/r, 0)."""
    r, S = 0.25, np.eye(6)[:, 2:3]
    f = np.array([[0.0, 0.0, -r * 7.0, 0.0, 7.0, 0.0]]).T
    Ta = active_subspace(S, f)
    np.testing.assert_allclose(Ta[:, 0], [0.0, 0.0, 1.0, 0.0, -1.0 / r, 0.0], atol=1e-15)
    np.testing.assert_allclose(Ta.T @ S, 1.0, atol=1e-15)


# 10.4: symbolic simplification ------------------------------------------------------------------


def spin(arena: Arena) -> Program:
    """Return the program for tau = s . (v x I v) with I = diag(1.5, 1.6, 1.7), s = (0, 0, 1)."""
    v = Vector(tuple(arena.input("v", k) for k in range(3)))
    I = Matrix(((1.5, 0.0, 0.0), (0.0, 1.6, 0.0), (0.0, 0.0, 1.7)))
    h = [row[0] * v[0] + row[1] * v[1] + row[2] * v[2] for row in I.rows]
    x, y, z = v.cross(Vector(tuple(h)))
    tau = 0.0 * x + 0.0 * y + 1.0 * z
    return Program.from_outputs("spin", [Variable("v", (3,))], [(Variable("tau", ()), [tau])])


def test_symbolic_simplification() -> None:
    """There are 29 operations as written, 5 by simple rules, 2 at the optimum 0.1 v1 v2."""
    steps = count()
    written = spin(Arena({}, lambda: next(steps), apart=True))
    simplified = spin(Arena(RULES))
    assert written.count.flops == 29
    assert simplified.count.flops <= 5
    v = [0.3, -0.7, 1.1]
    for program in (written, simplified):
        (tau,) = interpret(program, {"v": v})["tau"]
        assert tau == pytest.approx(0.1 * v[0] * v[1], rel=1e-14)


# Numbers of parameters --------------------------------------------------------------------------


def size(value: object) -> int:
    """Return the number of scalars in a value."""
    if isinstance(value, Vector):
        return len(value)
    if isinstance(value, Matrix):
        return value.shape[0] * value.shape[1]
    if isinstance(value, Symmetric | RigidInertia | ArticulatedInertia | PlanarInertia):
        return sum(size(getattr(value, field.name)) for field in fields(value))
    return 1


def matrix_of(A: RigidInertia | ArticulatedInertia) -> np.ndarray:
    return np.array([[*(A @ Motion.of(*unit))] for unit in np.eye(6).tolist()]).T


def dimension(matrices: list[np.ndarray]) -> int:
    """Return the dimension of the span of matrices."""
    return int(np.linalg.matrix_rank(np.array([A.ravel() for A in matrices]), tol=1e-9))


def particles(rng: np.random.Generator, *, planar: bool = False) -> np.ndarray:
    """Return the spatial inertia of a few particles, the sum of m X' X (Eq 2.62)."""
    total = np.zeros((6, 6))
    for m, x, y, z in rng.uniform(0.5, 1.5, size=(6, 4)):
        c = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        total += m * np.block([[c @ c.T, c], [c.T, np.eye(3)]])
    return total[2:5, 2:5] if planar else total


def articulated(rng: np.random.Generator) -> np.ndarray:
    """Return the articulated inertia of a body that carries another on a joint (Eq 7.2)."""
    inner, outer, s = particles(rng), particles(rng), rng.normal(size=6)
    return inner + outer - np.outer(outer @ s, outer @ s) / (s @ outer @ s)


def test_types_hold_as_many_numbers_as_it_takes() -> None:
    """A rigid inertia has 10 parameters, an articulated one 21, a transform 12.

    A planar rigid inertia has 4, and a planar articulated one 6. These are the dimensions of the
    spans of inertias of particles, articulated inertias, rotations and translations.
    """
    rng = np.random.default_rng(24)
    rigid, handles = ([make(rng) for _ in range(60)] for make in (particles, articulated))
    assert size(RigidInertia.zero()) == dimension(rigid) == 10
    assert size(ArticulatedInertia.zero()) == dimension(handles) == 21
    plane = [particles(rng, planar=True) for _ in range(60)]
    assert size(PlanarInertia(1.0, 0.0, 0.0, 1.0)) == dimension(plane) == 4
    assert dimension([A[2:5, 2:5] for A in handles]) == 6
    X = Transform.identity()
    turns = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(60)]
    shifts = [rng.normal(size=3) for _ in range(60)]
    assert size(X.E.matrix()) + size(X.r) == dimension(turns) + dimension(shifts) == 12


def test_what_the_types_hold_is_what_particles_have() -> None:
    """A rigid inertia built from the moments of particles reproduces their matrix."""
    A = particles(np.random.default_rng(5))
    h = Vector.of(A[2, 4], A[0, 5], A[1, 3])
    I = RigidInertia(float(A[3, 3]), h, Symmetric.of(Matrix(tuple(map(tuple, A[:3, :3].tolist())))))
    assert np.allclose(matrix_of(I), A, rtol=1e-14)


def arm_of_frames(x: np.ndarray, n: int) -> chasles.Robot:
    """Return n revolute joints and a tool, each placed by six numbers."""
    poses = [
        Transform.from_pose(Matrix(tuple(map(tuple, T[:3, :3].tolist()))), Vector(tuple(T[:3, 3])))
        for T in map(placement, x.reshape(n + 1, 6))
    ]
    names = [None, *(f"link{k}" for k in range(n))]
    links = tuple(LinkData(str(name), RigidInertia.zero()) for name in names[1:])
    joints = tuple(
        JointData(f"joint{k}", "revolute", names[k], str(names[k + 1]), pose=poses[k])
        for k in range(n)
    )
    tool = FrameData("tool", str(names[-1]), poses[n])
    return chasles.Robot(Description("arm", links, joints, frames=(tool,)))


def arm_of_rows(x: np.ndarray, n: int) -> chasles.Robot:
    """Return n rows of four numbers, with base and tool placed by six numbers each."""
    base, tool, rows = placement(x[:6]), placement(x[6:12]), x[12:].reshape(n, 4)
    return chasles.from_dh(rows, convention="modified", base=base, tool=tool)


def placement(six: np.ndarray) -> np.ndarray:
    """Return the pose given by a rotation vector and a translation."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_rotvec(six[:3]).as_matrix(), six[3:]
    return T


@pytest.mark.parametrize(
    ("made", "n", "size"),
    [(arm_of_frames, 1, 12), (arm_of_frames, 2, 18), (arm_of_rows, 1, 16), (arm_of_rows, 4, 28)],
)
def test_geometry_of_a_chain_has_four_numbers_a_joint_and_six(
    made: Callable[[np.ndarray, int], chasles.Robot], n: int, size: int
) -> None:
    """Tool poses of n revolute joints identify 4n + 6 numbers, however the arm is parametrized.

    General frames have 6n + 6 parameters; a table with base and tool has 4n + 12.
    """
    rng = np.random.default_rng(n)
    x, angles = rng.normal(size=size), rng.uniform(-3.0, 3.0, size=(4 * n + 8, n))

    def seen(change: np.ndarray) -> np.ndarray:
        T: np.ndarray = made(x + change, n).forward_kinematics(angles, frame="tool")
        return T[:, :3].ravel()

    h = 1e-5
    columns = [(seen(h * unit) - seen(-h * unit)) / (2.0 * h) for unit in np.eye(size)]
    assert np.linalg.matrix_rank(np.array(columns), tol=1e-6) == 4 * n + 6


def test_a_sphere_ten_times_as_large() -> None:
    """A sphere of ten times the radius has 1e3 times the mass and 1e5 times the inertia."""
    small, large = (sphere(4.0e3 * np.pi / 3.0 * r**3, r) for r in (0.01, 0.1))
    assert large.m / small.m == pytest.approx(1e3)
    assert large.I.xx / small.I.xx == pytest.approx(1e5)


def test_equivalent_inertias_save_a_seventh() -> None:
    """Equivalent inertias save about 15 % of the operations for mostly revolute arms."""
    arm = general_chain(6)
    before, after = (
        chasles.cost(robot, "inverse_dynamics", method="spatial").flops
        for robot in (arm, arm.simplified())
    )
    assert 0.10 < 1.0 - after / before < 0.25


def test_recursion_against_closed_form() -> None:
    """The vector recursion is cheaper than the spatial one; the closed form costs 100 times more.

    The factor 100 in the book refers to the closed form of Uicker and Kahn, in which every entry of
    every product of 4x4 matrices is counted. Its counts for six joints are printed in Balafoutis
    and Patel (1991, table 5.3). The method "uicker-kahn" computes common terms once and omits zeros
    of these matrices, and therefore costs only ten times as much as the recursion.
    """
    closed, spatial, original = (
        chasles.cost(general_chain(6), "inverse_dynamics", method=method, rules="book").flops
        for method in ("uicker-kahn", "spatial", "newton-euler-vector")
    )
    published = 66271 + 51548
    assert published == pytest.approx(100 * spatial, rel=0.05)
    assert closed == pytest.approx(10 * spatial, rel=0.05)
    assert 0.75 * spatial < original < spatial
