"""Forward dynamics methods of Balafoutis and Patel (1991), chapter 6.

All methods agree with `mass-matrix` and `articulated-body` to 1e-11, or to rounding error times the
condition number of the mass matrix if that is more. `test_pinocchio.py` tests them on published
robots.
"""

import numpy as np
import pytest
from support import TARGETS, close, direct, raises, runner, state, tree
from test_tensor import ROBOTS, random_chain

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import Description, JointData, LinkData
from chasles.robots import general_chain, puma560

WAYS = ("augmented-tensor", "unit-acceleration", "composite-3x3", "conjugate-gradient")
WAYS += ("orthogonal-complement", "spatial-operator")
TAKING_MIMICS = tuple(m.name for m in FUNCTIONS["forward_dynamics"] if m.followers)


def agree(robot: chasles.Robot, seed: int, *methods: str, forces: bool = False) -> None:
    """Assert that methods agree with `mass-matrix`, including damping and friction."""
    q, qd, tau = state(robot, seed)
    rng = np.random.default_rng(seed)
    f_ext = {name: rng.normal(size=6) for name in robot.bodies[-2:]} if forces else None
    asked = {"f_ext": f_ext} if forces else {}
    expected = direct(robot.model, "forward_dynamics", q, qd, tau, method="mass-matrix", **asked)
    M = direct(robot.model, "mass_matrix", q)
    for method in methods:
        found = direct(robot.model, "forward_dynamics", q, qd, tau, method=method, **asked)
        close(found, expected, 1e-15 * np.linalg.cond(M) + 1e-11)
    if forces:
        without = direct(robot.model, "forward_dynamics", q, qd, tau, method="mass-matrix")
        assert not np.allclose(expected, without)


@pytest.mark.parametrize("name", [name for name in ROBOTS if name != "panda"])
def test_arms(name: str) -> None:
    agree(ROBOTS[name](), 1, *WAYS, "articulated-body")


def test_panda() -> None:
    """Methods agree for the Panda with mimic fingers, and with independent fingers."""
    panda = ROBOTS["panda"]()
    agree(panda, 2, *set(WAYS) & set(TAKING_MIMICS))
    agree(chasles.Robot(panda.model.source, mimic=False), 2, *WAYS)


@pytest.mark.parametrize("seed", range(4))
def test_trees_and_external_forces(seed: int) -> None:
    agree(tree(9, seed), seed, *WAYS, forces=True)


@pytest.mark.parametrize("seed", range(3))
def test_mimic_joints(seed: int) -> None:
    robot = tree(9, seed, mimics=True)
    assert len(robot.moving_joints) > len(robot.joints)
    agree(robot, seed, *set(WAYS) & set(TAKING_MIMICS), forces=True)


def test_links_without_mass() -> None:
    """Methods agree for a massless link, because they take no square root of an inertia."""
    robot = random_chain("RRR", 4)
    source = robot.model.source
    hollow = tuple(
        LinkData(link.name, RigidInertia.zero()) if link.name == "link1" else link
        for link in source.links
    )
    light = chasles.Robot(Description("hollow", hollow, source.joints))
    agree(light, 3, *WAYS)


# Conjugate gradients ---------------------------------------------------------------------------


def gantry() -> chasles.Robot:
    """Return three perpendicular prismatic joints without gravity: M = diag(7, 6, 4)."""
    links, joints = [LinkData("base", RigidInertia.zero())], []
    for row, mass in zip(Matrix.identity().rows, (1.0, 2.0, 4.0), strict=True):
        name = f"slide{len(joints)}"
        joints.append(
            JointData(name, "prismatic", links[-1].name, f"{name} link", axis=Vector(row))
        )
        block = Symmetric(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
        links.append(LinkData(f"{name} link", RigidInertia.from_center(mass, Vector.zero(), block)))
    return chasles.Robot(Description("gantry", tuple(links), tuple(joints), gravity=Vector.zero()))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "tau", [(0.0, 0.0, 0.0), (0.0, 3.0, 0.0), (1.0, 0.0, 1e-200), (7.0, 6.0, 4.0)]
)
def test_residual_that_vanishes_early(target: str, tau: tuple[float, ...]) -> None:
    """Steps after the residual has vanished change nothing and do not divide by zero."""
    rest = np.zeros(3)
    run = runner(gantry(), target)
    with np.errstate(all="raise", under="ignore"):
        qdd = run("forward_dynamics", rest, rest, np.array(tau), method="conjugate-gradient")
    np.testing.assert_allclose(qdd, np.array(tau) / [7.0, 6.0, 4.0], rtol=1e-15, atol=1e-17)


def test_single_precision() -> None:
    """Squares of residuals do not underflow in single precision."""
    robot, rest = gantry(), np.zeros(3, dtype=np.float32)
    tau = np.array([1e-3, 0.0, 1e-6], dtype=np.float32)
    qdd = robot.forward_dynamics(rest, rest, tau, method="conjugate-gradient")
    assert qdd.dtype == np.float32
    np.testing.assert_allclose(qdd, tau / np.array([7.0, 6.0, 4.0], dtype=np.float32), rtol=1e-6)


def test_forces_that_hold_still() -> None:
    """For tau = h the residual is only rounding error, and so is the acceleration."""
    robot = puma560()
    q, qd, _ = state(robot, 5, 100)
    h = robot.bias_forces(q, qd)
    qdd = robot.forward_dynamics(q, qd, h, method="conjugate-gradient")
    assert np.max(np.abs(qdd)) < 1e-13 * np.max(np.abs(h))


def short_recurrence(M: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the textbook solution by conjugate gradients, with n steps and a short recurrence."""
    x, r = np.zeros_like(b), b
    p = r
    for _ in b:
        step = (r @ r) / (p @ M @ p)
        x, left = x + step * p, r - step * (M @ p)
        p, r = left + (left @ left) / (r @ r) * p, left
    return x


def test_the_short_recurrence_is_not_enough() -> None:
    """The short recurrence is inaccurate after n steps, so the library keeps all directions."""
    robot = tree(9, 0)
    q, qd, tau = state(robot, 6)
    M, h = direct(robot.model, "mass_matrix", q), direct(robot.model, "bias_forces", q, qd)
    expected = np.linalg.solve(M, tau - h)
    with pytest.raises(AssertionError, match="relative error"):
        close(short_recurrence(M, tau - h), expected, 1e-6)
    model = robot.model
    found = direct(model, "forward_dynamics", q, qd, tau, method="conjugate-gradient")
    close(found, expected, 1e-11)


def test_derivatives_are_refused() -> None:
    """Derivatives are rejected: where the residual is zero, they would be zero instead of M^-1."""
    robot, rest = gantry(), np.zeros(3)
    given = {"method": "conjugate-gradient"}
    with raises("E-CALL-064", "'conjugate-gradient'"):
        robot.derivatives("forward_dynamics", rest, rest, rest, **given)
    with raises("E-CALL-064", "'conjugate-gradient'"):
        robot.pullback("forward_dynamics", rest, rest, rest, covector=rest, **given)


# Complexity ------------------------------------------------------------------------------------

ORDER = {
    1: (
        ("inverse_dynamics", "spatial-operator"),
        ("forward_dynamics", "articulated-body"),
        ("forward_dynamics", "spatial-operator"),
    ),
    2: (
        ("mass_matrix", "augmented-tensor"),
        ("mass_matrix", "composite-3x3"),
        ("mass_matrix", "unit-acceleration"),
        ("operator_factors", "fastest"),
    ),
    3: (
        ("mass_matrix", "orthogonal-complement"),
        ("mass_matrix", "spatial-operator"),
        ("mass_matrix_inverse", "spatial-operator"),
        *(("forward_dynamics", name) for name in WAYS if name != "spatial-operator"),
    ),
}
"""Methods by the exponent of n in their operation count, for an arm with n revolute joints.

The count includes the solution of linear systems.
"""


@pytest.mark.parametrize(
    ("order", "function", "method"), [(n, *way) for n, ways in ORDER.items() for way in ways]
)
def test_growth(order: int, function: str, method: str) -> None:
    """Second differences of the operation count are zero, constant or growing with n."""
    cost = {
        n: chasles.cost(general_chain(n), function, method=method).flops
        for n in (4, 5, 6, 10, 11, 12)
    }
    short, long = (cost[n] - 2 * cost[n + 1] + cost[n + 2] for n in (4, 10))
    if order == 1:
        assert max(abs(short), abs(long)) <= 0.001 * cost[12]
    else:
        assert short > 0.005 * cost[12]
        assert (long > 1.05 * short) == (order == 3)
