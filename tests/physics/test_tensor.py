"""Tensor algorithms of Balafoutis and Patel (1991): agreement, sums, and operation counts.

`test_methods_agree` tests them on random trees. Here they are tested on the robots that the book's
recursions are made for, with closed sums in NumPy, and with the book's tables of operation counts.
Rounding errors are at most 1e-11.
"""

import random
from importlib.metadata import files
from pathlib import Path

import numpy as np
import pytest
from support import close, direct, relative, state, tree, ways

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.algorithms.spatial.kinematics import body_transforms
from chasles.algorithms.tensor.dynamics import augmented
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import matrix_from_vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.mathematics.tensor import Center
from chasles.model import Description, JointData, LinkData, Model
from chasles.robots import general_chain, puma560, stanford_arm

ROUNDING = 1e-11
INVERSE = (
    *("augmented-tensor", "newton-euler-tensor", "lagrange-4x4", "lagrange-3x3"),
    *("spatial-1987", "kane", "kane-sum", "spatial-operator"),
    *("uicker-kahn", "waters", "christoffel", "vukobratovic"),
)
MASS = ("augmented-tensor", "composite-3x3", "orthogonal-complement", "factored-complement")
MASS += ("unit-acceleration",)


def random_chain(kinds: str, seed: int) -> chasles.Robot:
    """Return a chain of revolute (R) and prismatic (P) joints with random geometry and inertias."""
    rng = random.Random(seed)

    def vector(size: float) -> Vector:
        return Vector.of(*(rng.uniform(-size, size) for _ in range(3)))

    links, joints = [LinkData("base", RigidInertia.zero())], []
    for k, kind in enumerate(kinds):
        axis = vector(1.0)
        axis = axis * (1.0 / axis.dot(axis) ** 0.5)
        pose = Transform.from_pose(matrix_from_vector(vector(2.0)), vector(0.4))
        name = {"R": "revolute", "P": "prismatic"}[kind]
        joints.append(JointData(f"joint{k}", name, links[-1].name, f"link{k}", pose, axis))
        I = Symmetric(*(rng.uniform(0.2, 0.3) for _ in range(3)), *vector(0.05))
        inertia = RigidInertia.from_center(rng.uniform(0.5, 2.0), vector(0.2), I)
        links.append(LinkData(f"link{k}", inertia))
    return chasles.Robot(Description("chain", tuple(links), tuple(joints)))


def published(name: str) -> chasles.Robot:
    found = [f for f in files("example-robot-data") or () if f.name == name]
    return chasles.load(Path(str(found[0].locate())))


ROBOTS = {
    **{kinds: lambda k=kinds: random_chain(k, 7) for kinds in ("RRPRRR", "PRRPPRR", "RPRPPR")},
    "puma560": puma560,
    "stanford_arm": stanford_arm,
    "panda": lambda: published("panda.urdf"),
    "ur5": lambda: published("ur5_robot.urdf"),
}


@pytest.fixture(params=ROBOTS, scope="module")
def robot(request: pytest.FixtureRequest) -> chasles.Robot:
    return ROBOTS[request.param]()


# Agreement of methods --------------------------------------------------------------------------


def test_inverse_dynamics(robot: chasles.Robot) -> None:
    q, qd, qdd = state(robot, 1)
    model = robot.model.frictionless()
    expected = direct(model, "inverse_dynamics", q, qd, qdd, method="spatial")
    bias = direct(model, "bias_forces", q, qd)
    for method in INVERSE:
        close(direct(model, "inverse_dynamics", q, qd, qdd, method=method), expected, ROUNDING)
        close(direct(model, "inverse_dynamics", q, qd, 0 * qdd, method=method), bias, ROUNDING)


def test_mass_matrix(robot: chasles.Robot) -> None:
    q, *_ = state(robot, 2)
    expected = direct(robot.model, "mass_matrix", q, method="spatial")
    for method in MASS:
        close(direct(robot.model, "mass_matrix", q, method=method), expected, ROUNDING)


def test_forward_dynamics(robot: chasles.Robot) -> None:
    q, qd, tau = state(robot, 3)
    expected = direct(robot.model, "forward_dynamics", q, qd, tau, method="mass-matrix")
    found = direct(robot.model, "forward_dynamics", q, qd, tau, method="augmented-tensor")
    M = direct(robot.model, "mass_matrix", q)
    close(found, expected, 1e-15 * np.linalg.cond(M) + ROUNDING)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mimics", [False, True])
def test_external_forces_and_followers(seed: int, mimics: bool) -> None:
    """Methods agree for every joint type, with external forces and mimic joints."""
    robot = tree(9, seed, mimics=mimics)
    q, qd, qdd = state(robot, seed)
    rng = np.random.default_rng(seed)
    f_ext = {name: rng.normal(size=6) for name in robot.bodies[-2:]}
    expected = direct(robot.model, "inverse_dynamics", q, qd, qdd, f_ext=f_ext, method="spatial")
    without = direct(robot.model, "inverse_dynamics", q, qd, qdd, method="spatial")
    assert not np.allclose(expected, without)
    for method in set(INVERSE) & set(ways(robot, "inverse_dynamics")):
        found = direct(robot.model, "inverse_dynamics", q, qd, qdd, f_ext=f_ext, method=method)
        close(found, expected, ROUNDING)
    M = direct(robot.model, "mass_matrix", q, method="spatial")
    for method in MASS:
        close(direct(robot.model, "mass_matrix", q, method=method), M, ROUNDING)
    expected = direct(
        robot.model, "forward_dynamics", q, qd, qdd, f_ext=f_ext, method="mass-matrix"
    )
    found = direct(
        robot.model, "forward_dynamics", q, qd, qdd, f_ext=f_ext, method="augmented-tensor"
    )
    close(found, expected, 1e-9)


def test_links_without_mass() -> None:
    """A massless link has no center of mass; methods that need one use the link's origin."""
    robot = random_chain("RRR", 3)
    empty = tuple(
        LinkData(link.name, RigidInertia.zero()) if link.name == "link1" else link
        for link in robot.model.source.links
    )
    source = robot.model.source
    light = chasles.Robot(Description("light", empty, source.joints))
    q, qd, qdd = state(light, 5)
    expected = direct(light.model, "inverse_dynamics", q, qd, qdd, method="spatial")
    for method in INVERSE:
        close(
            direct(light.model, "inverse_dynamics", q, qd, qdd, method=method), expected, ROUNDING
        )


# Structure -------------------------------------------------------------------------------------


def dense(x: Matrix | Symmetric | Vector) -> np.ndarray:
    x = x.matrix() if isinstance(x, Symmetric) else x
    return np.array(x.rows if isinstance(x, Matrix) else list(x), dtype=float)


def tilde(v: np.ndarray) -> np.ndarray:
    return np.cross(np.eye(3), v).T @ -np.eye(3)


def test_tilde() -> None:
    np.testing.assert_array_equal(tilde(np.array([1.0, 2.0, 3.0])) @ [4, 5, 6], [-3, 6, -3])


def world(robot: chasles.Robot, q: np.ndarray) -> dict[int, Transform]:
    return body_transforms(robot.model, robot.model.positions(q.tolist()))


def test_augmented_links_by_their_definition(robot: chasles.Robot) -> None:
    """Augmented links have all masses beyond them at o_(i+1) (definition 5.1)."""
    q, *_ = state(robot, 6)
    model, places = robot.model, world(robot, q)
    X = {i: j.transform(model.positions(q.tolist())[i]) for i, _, j, _ in model.outward()}
    links = augmented(model, X)
    n = len(model.bodies)
    below = [[j for j in range(n) if i in model.support(j)] for i in range(n)]
    for i, _, _, I in model.outward():
        beyond = [c for c in range(n) if model.bodies[c].parent == i]
        masses = [sum(model.bodies[j].inertia.m for j in below[c]) for c in beyond]
        points = [dense(places[i].E @ (places[c].r - places[i].r)) for c in beyond]
        close(links[i].m, sum(model.bodies[j].inertia.m for j in below[i]), ROUNDING)
        pairs = list(zip(masses, points, strict=True))
        close(dense(links[i].h), dense(I.h) + sum(m * p for m, p in pairs), ROUNDING, scale=0.1)
        K = dense(I.I) + sum(-m * tilde(p) @ tilde(p) for m, p in pairs)
        close(dense(links[i].I), K, ROUNDING)


def test_mass_matrix_by_closed_sum(robot: chasles.Robot) -> None:
    """d_ji = z_j . [sum over k of I_ck - m_k r~_jk r~_ik] z_i for revolute joints (6.3.42)."""
    q, *_ = state(robot, 7)
    model, places = robot.model, world(robot, q)
    D = direct(model, "mass_matrix", q, method="augmented-tensor")
    turning = [i for i in model.movers if model.bodies[i].joint.kind == "revolute"]
    for i in turning:
        for j in (j for j in turning if j in model.support(i)):
            total = np.zeros((3, 3))
            for k in (k for k in range(len(model.bodies)) if i in model.support(k)):
                body, R = Center.of(model.bodies[k].inertia), dense(places[k].E.matrix()).T
                center = dense(places[k].locate(body.r))
                arms = [tilde(center - dense(places[x].r)) for x in (j, i)]
                total += R @ dense(body.I) @ R.T - body.m * arms[0] @ arms[1]
            z = [dense(places[x].E.T @ Vector.of(0.0, 0.0, 1.0)) for x in (j, i)]
            row, column = model.velocity_slices[j].start, model.velocity_slices[i].start
            armature = model.bodies[i].joint.armature[0] if i == j else 0.0
            close(D[row, column], z[0] @ total @ z[1] + armature, ROUNDING, scale=1e-3)


@pytest.mark.parametrize("method", INVERSE)
def test_first_axis_along_gravity_feels_no_weight(method: str) -> None:
    """Gravity along z_1 needs no torque at joint 1, and q_1 changes no torque (section 7.3)."""
    tilted = general_chain(5)
    axis = tilted.model.bodies[0].joint.placement.E.T @ Vector.of(0.0, 0.0, 1.0)
    robot = tilted.with_gravity(-9.81 * dense(axis))
    q, qd, qdd = state(robot, 9)
    turned = q + np.array([0.7, 0.0, 0.0, 0.0, 0.0])

    def forces(model: Model, q: np.ndarray, *rates: np.ndarray) -> np.ndarray:
        return direct(model, "inverse_dynamics", q, *rates, method=method)

    weight = forces(robot.model, q, 0 * qd, 0 * qdd)
    assert abs(weight[0]) < 1e-12 * np.max(np.abs(weight))
    close(forces(robot.model, turned, qd, qdd), forces(robot.model, q, qd, qdd), ROUNDING)
    assert not np.allclose(forces(tilted.model, turned, qd, qdd), forces(tilted.model, q, qd, qdd))


# Operation counts ------------------------------------------------------------------------------


def cost(n: int, function: str, method: str, right_angles: bool) -> tuple[int, int]:
    count = chasles.cost(general_chain(n, right_angles=right_angles), function, method=method)
    return count.multiplications, count.additions


@pytest.mark.parametrize("n", range(2, 9))
def test_tables_5_1_and_5_2(n: int) -> None:
    """Algorithm 5.7 on general twists has the cost per joint of the tables, and a lower constant.

    Table 5.2 treats the first links separately and prints 93n - 108 and 81n - 100; constant folding
    saves four more of each. With twists of 90 degrees, offsets also have a zero, which saves five
    operations of each kind per link.
    """
    assert cost(n, "inverse_dynamics", "augmented-tensor", False) == (93 * n - 112, 81 * n - 104)
    assert cost(n, "inverse_dynamics", "augmented-tensor", True) == (68 * n - 78, 66 * n - 85)
    for right_angles, printed in (
        (False, (93 * n - 69, 81 * n - 66)),
        (True, (73 * n - 50, 71 * n - 56)),
    ):
        found = cost(n, "inverse_dynamics", "augmented-tensor", right_angles)
        assert found[0] <= printed[0]
        assert found[1] <= printed[1]


@pytest.mark.parametrize("n", range(2, 9))
def test_table_5_3(n: int) -> None:
    """Algorithm 5.6 has the printed cost per joint of 96n - 77 and 84n - 70, and less in total."""
    found = cost(n, "inverse_dynamics", "newton-euler-tensor", False)
    assert found == (96 * n - 112, 84 * n - 103)
    vector = cost(n, "inverse_dynamics", "newton-euler-vector", False)
    assert sum(found) < sum(vector)


@pytest.mark.parametrize("n", range(2, 9))
def test_kane_by_recursion(n: int) -> None:
    """Counts are below the 105n - 109 and 90n - 105 printed by Angeles, Ma and Rojas."""
    assert cost(n, "inverse_dynamics", "kane", False) == (105 * n - 121, 87 * n - 106)


def test_closed_forms_for_six_joints() -> None:
    """Counts are below those printed for 4x4 matrices, and methods are in the expected order."""
    for method, (M, A) in {"uicker-kahn": (66271, 51548), "waters": (7051, 5652)}.items():
        found = cost(6, "inverse_dynamics", method, False)
        assert found[0] <= M
        assert found[1] <= A
    order = ("kane", "kane-sum", "waters", "vukobratovic", "christoffel", "uicker-kahn")
    counts = [sum(cost(6, "inverse_dynamics", method, False)) for method in order]
    assert counts == sorted(counts)


@pytest.mark.parametrize("n", range(2, 9))
def test_table_6_1(n: int) -> None:
    """Algorithm 6.2 needs at most the multiplications of table 6.1, and the corrected additions.

    The printed additions omit three for each evaluation of (6.3.30b). The full count is
    7n^2 + 28n - 54, or 5n^2 + 22n - 37 with twists of 90 degrees.
    """
    M, A = cost(n, "mass_matrix", "augmented-tensor", False)
    assert 11 * n * n + 11 * n - 42 >= M
    assert 7 * n * n + 28 * n - 54 >= A
    M, A = cost(n, "mass_matrix", "augmented-tensor", True)
    assert 7 * n * n + 7 * n - 23 >= M
    assert 5 * n * n + 22 * n - 37 >= A


def test_six_joints_as_the_book_compares_them() -> None:
    """Counts for six joints are at most those of table 6.2."""
    printed = {"augmented-tensor": (420, 339), "composite-3x3": (741, 601)}
    for method, (M, A) in printed.items():
        found = cost(6, "mass_matrix", method, False)
        assert found[0] <= M
        assert found[1] <= A


def test_every_tensor_method_is_in_the_table() -> None:
    assert set(INVERSE) <= {way.name for way in FUNCTIONS["inverse_dynamics"]}
    assert set(MASS) <= {way.name for way in FUNCTIONS["mass_matrix"]}


def test_the_fastest_inverse_dynamics() -> None:
    """Regrouped inertias in sparse frames need as few operations as the best published programs."""
    panda = published("panda.urdf").lock({"panda_finger_joint1": 0.0})
    ur5 = published("ur5_robot.urdf")
    for robot, bound in ((panda, 570), (ur5, 285)):
        assert chasles.cost(robot, "inverse_dynamics").flops <= bound
        q, qd, qdd = state(robot, 10, 4)
        expected = robot.inverse_dynamics(q, qd, qdd, method="spatial")
        assert relative(robot.inverse_dynamics(q, qd, qdd), expected) < 1e-12
