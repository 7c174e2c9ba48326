"""Linearization about a state, compared with differences of motions, and in discrete time.

Fourth-order differences with steps of 1e-3 have relative errors of about 1e-10.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
from support import close, raises, state, tree
from test_derivatives import KINDS, small

import chasles
from chasles.functions.numeric import exponential
from chasles.robots import planar, puma560, quadruped

DIFFERENCES = 1e-7


def rate(value: Callable[[float], np.ndarray], h: float = 1e-3) -> np.ndarray:
    """Return the derivative at zero."""
    return (8.0 * (value(h) - value(-h)) - value(2 * h) + value(-2 * h)) / (12.0 * h)


def numpy_backed(robot: chasles.Robot, function: str, **options: Any) -> Any:
    return chasles.compile(robot, function, backend="numpy", **options)


def by_differences(
    robot: chasles.Robot,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    forces: Sequence[np.ndarray] = (),
    **options: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Return A and B from differences of neighboring motions under the same external forces."""
    integrate, difference = (numpy_backed(robot, f) for f in ("integrate", "difference"))
    accelerate = numpy_backed(robot, "forward_dynamics", **options)
    n = robot.nv

    def parting(s: float) -> np.ndarray:
        d, e, u = np.split(s * np.eye(3 * n), 3, axis=1)  # all columns as a batch
        other = integrate(q, d)
        gap = rate(lambda t: difference(integrate(q, t * qd), integrate(other, t * (qd + e))))
        return np.concatenate([gap, accelerate(other, qd + e, tau + u, *forces)], axis=1)

    both = rate(parting).T
    return both[:, : 2 * n], both[:, 2 * n :]


GROUNDED = [tuple(sorted(kinds, key=lambda kind: kind != "rolling")) for kinds in KINDS]
"""Joint types, with rolling joints first. A rolling joint must be on the ground, because the
linearization is not defined on a moving body.
"""

ROBOTS = {" ".join(kinds): lambda kinds=kinds: small(kinds) for kinds in GROUNDED} | {
    "mimic": lambda: tree(6, 3, floating=False, mimics=True),
    "child before parent": lambda: tree(5, 1, floating=True),
}


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("dissipation", [False, True])
def test_neighbouring_motions_part_as_it_says(name: str, dissipation: bool) -> None:
    """A and B agree with differences for all joint types.

    This includes the top left block, -ad(qd), which is nonzero for rotations.
    """
    robot = ROBOTS[name]()
    at = state(robot, 11)
    chosen = {"dissipation": dissipation}
    A, B = numpy_backed(robot, "linearize", **chosen)(*at)
    expected_A, expected_B = by_differences(robot, *at, **chosen)
    close(A, expected_A, DIFFERENCES)
    close(B, expected_B, DIFFERENCES)
    n = robot.nv
    close(A[:n, n:], np.eye(n), 1e-15)
    close(A[:n, :n], expected_A[:n, :n], 1e-6, scale=1.0)
    assert not np.any(B[:n])


def test_the_top_left_block() -> None:
    """The top left block is -crm(v) for a free joint and zero for an arm.

    It depends only on the velocity of the same joint.
    """
    walker = quadruped()
    q, qd, tau = state(walker, 1)
    A, _ = walker.linearize(q, qd, tau)
    w, v = (np.cross(part, np.eye(3)).T for part in (qd[:3], qd[3:6]))
    n = walker.nv
    close(A[:6, :6], -np.block([[w, np.zeros((3, 3))], [v, w]]), 1e-15)
    assert not np.any(A[6:n, :n])
    assert not np.any(A[:6, 6:n])
    arm = puma560()
    A, _ = arm.linearize(*state(arm, 1))
    assert not np.any(A[:6, :6])


def test_a_pendulum_swings() -> None:
    """A rod of 1 m that hangs from its end swings with omega^2 = 3 g / (2 l)."""
    rod = planar(1)
    A, B = rod.linearize([-math.pi / 2], [0.0], [0.0])
    omega = math.sqrt(1.5 * 9.81)
    close(sorted(np.linalg.eigvals(A).imag), [-omega, omega], 1e-13)
    close(B, [[0.0], [3.0]], 1e-14)
    dt = 0.1
    A, B = rod.linearize([-math.pi / 2], [0.0], [0.0], dt=dt)
    c, s = math.cos(omega * dt), math.sin(omega * dt)
    close(A, [[c, s / omega], [-s * omega, c]], 1e-13)
    close(B, 3.0 * np.array([[(1.0 - c) / omega**2], [s / omega]]), 1e-13)


def test_damping_enters_with_dissipation() -> None:
    robot = small(("revolute", "prismatic"))
    at = state(robot, 2)
    n = robot.nv
    (plain, B), (damped, _) = (robot.linearize(*at, dissipation=d) for d in (False, True))
    damping = np.diag([robot.joint(name).damping for name in robot.joints])
    close(damped[n:, n:] - plain[n:, n:], -B[n:] @ damping, 1e-11)


# External forces ---------------------------------------------------------------------------------

POINTS = ("frame", "world", (0.3, -0.2, 0.1))
VIEWS = [(axes, at) for axes in ("world", "frame") for at in POINTS]


def pushed(
    robot: chasles.Robot, views: Sequence[tuple[str, Any]], size: tuple[int, ...] = ()
) -> dict[str, Any]:
    """Return a wrench for each view, on the last body, the one before, and so on."""
    rng = np.random.default_rng(12)
    values = 3.0 * rng.normal(size=(len(views), *size, 6))
    pairs = zip(robot.bodies[::-1], values, views, strict=False)
    return {name: chasles.Wrench(value, *view) for name, value, view in sorted(pairs)}


FORCED = [("free revolute", [view]) for view in VIEWS]
FORCED += [("spherical universal", VIEWS[1:3]), ("mimic", VIEWS)]


@pytest.mark.parametrize(("name", "views"), FORCED)
def test_external_forces_keep_their_numbers(name: str, views: list[tuple[str, Any]]) -> None:
    """Wrenches are constant in the axes and about the point in which they are given."""
    robot = ROBOTS["mimic"]() if name == "mimic" else small(tuple(name.split()))
    given, f_ext = state(robot, 13), pushed(robot, views)
    values = [wrench.value for wrench in f_ext.values()]
    A, B = numpy_backed(robot, "linearize", f_ext=f_ext)(*given, *values)
    expected_A, expected_B = by_differences(robot, *given, forces=values, f_ext=f_ext)
    close(A, expected_A, DIFFERENCES)
    close(B, expected_B, DIFFERENCES)
    plain, _ = numpy_backed(robot, "linearize")(*given)
    assert np.max(np.abs(A - plain)) > 0.1


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_sensitivities_with_external_forces(view: tuple[str, Any]) -> None:
    """All methods agree with the derivatives of another method's program."""
    robot = small(("free", "revolute"))
    given, f_ext = state(robot, 14), pushed(robot, [view, view])
    values = [wrench.value for wrench in f_ext.values()]
    wrt = ("qdd", "qd", "q")
    slow = numpy_backed(robot, "inverse_dynamics", f_ext=f_ext, method="kane", wrt=wrt)
    expected = slow(*given, *values)
    for method in ("spatial", "augmented-tensor", "closed-form"):
        made = numpy_backed(robot, "inverse_dynamics_sensitivities", f_ext=f_ext, method=method)
        for mine, theirs in zip(made(*given, *values), expected, strict=True):
            close(mine, theirs, 1e-11)


def test_batches_of_external_forces() -> None:
    """Each state can have its own force, also in discrete time and with actuators."""
    robot = puma560()
    at, f_ext = state(robot, 15, (4,)), pushed(robot, [("world", "frame")], (4,))
    A, B = robot.linearize(*at, f_ext=f_ext)
    for k in (0, 3):
        alone = {n: chasles.Wrench(w.value[k], w.axes, w.at) for n, w in f_ext.items()}
        one = robot.linearize(*(x[k] for x in at), f_ext=alone)
        assert np.array_equal(one[0], A[k])
        assert np.array_equal(one[1], B[k])
    Ad, Bd = robot.linearize(*at, f_ext=f_ext, dt=0.01, actuation=robot.joints[:2])
    for k in range(4):
        whole = np.zeros((14, 14))
        whole[:12, :12], whole[:12, 12:] = A[k], B[k][:, :2]
        after = scipy.linalg.expm(0.01 * whole)
        close(Ad[k], after[:12, :12], 1e-12)
        close(Bd[k], after[:12, 12:], 1e-12)
    with raises("E-MODEL-034", "'hand'"):
        robot.linearize(*at, f_ext={"hand": np.zeros(6)})


# Actuators ---------------------------------------------------------------------------------------


def test_actuators_by_name_and_by_matrix() -> None:
    walker = quadruped()
    at = state(walker, 3, 4)
    A, B = walker.linearize(*at)
    legs = walker.joints[1:]
    assert walker.linearize(*at, actuation=legs)[1].shape == (4, 36, 12)
    assert np.array_equal(walker.linearize(*at, actuation=legs)[1], B[..., 6:])
    assert np.array_equal(walker.linearize(*at, actuation=legs)[0], A)
    turned = legs[::-1]
    assert np.array_equal(walker.linearize(*at, actuation=turned)[1], B[..., :5:-1])
    S = np.random.default_rng(4).normal(size=(18, 3))
    close(walker.linearize(*at, actuation=S)[1], B @ S, 1e-13)
    assert walker.linearize(*at, actuation=())[1].shape == (4, 36, 0)


@pytest.mark.parametrize(
    ("actuation", "error", "message"),
    [
        (np.zeros((5, 2)), ValueError, "E-MATH-035 (5, 2)"),
        (np.zeros(6), ValueError, "E-MATH-035 (6,)"),
        (np.full((6, 1), np.nan), ValueError, "E-MATH-036"),
        (("joint1", "elbow"), chasles.ModelError, "E-MODEL-037 'elbow'"),
        (("joint1", "joint1"), ValueError, "E-MATH-033"),
        ("joint1", TypeError, "E-MATH-032 'joint1'"),
        (({},), TypeError, "E-MATH-034"),
    ],
)
def test_wrong_actuators(actuation: Any, error: type, message: str) -> None:
    zero = np.zeros(6)
    with raises(message, kind=error):
        puma560().linearize(zero, zero, zero, actuation=actuation)


# Discrete time -----------------------------------------------------------------------------------


def test_exponential_is_that_of_scipy() -> None:
    """The exponential is accurate from zero to large norms, and equal alone and in batches."""
    rng = np.random.default_rng(5)
    scales = np.array([0.0, 1e-9, 1e-3, 1.0, 5.3, 5.4, 11.0, 40.0])
    matrices = rng.normal(size=(2, len(scales), 7, 7)) * scales[:, None, None] / 3.0
    found = exponential(matrices)
    for index in np.ndindex(found.shape[:2]):
        close(found[index], scipy.linalg.expm(matrices[index]), 1e-11)
        assert np.array_equal(found[index], exponential(matrices[index]))


def test_exponential_of_nothing_and_of_nan() -> None:
    assert exponential(np.zeros((0, 3, 3))).shape == (0, 3, 3)
    assert exponential(np.zeros((2, 0, 0))).shape == (2, 0, 0)
    pair = np.stack([np.full((2, 2), np.nan), np.zeros((2, 2))])
    found = exponential(pair)
    assert np.all(np.isnan(found[0]))
    assert np.array_equal(found[1], np.eye(2))


def test_discrete_pair_solves_the_system() -> None:
    """The discrete system agrees with integration of the continuous system for constant input."""
    robot = puma560()
    at = state(robot, 6)
    A, B = robot.linearize(*at)
    Ad, Bd = robot.linearize(*at, dt=0.03)
    rng = np.random.default_rng(7)
    x, u = rng.normal(size=12), rng.normal(size=6)
    solved = scipy.integrate.solve_ivp(
        lambda t, y: A @ y + B @ u, (0.0, 0.03), x, rtol=1e-12, atol=1e-12
    )
    close(Ad @ x + Bd @ u, solved.y[:, -1], 1e-9)
    half_A, half_B = robot.linearize(*at, dt=0.015)
    close(Ad, half_A @ half_A, 1e-12)
    close(Bd, half_A @ half_B + half_B, 1e-12)


@pytest.mark.parametrize("dt", [0.0, -0.1, math.nan, math.inf, "soon", None])
def test_wrong_steps(dt: Any) -> None:
    robot, zero = puma560(), np.zeros(6)
    if dt is None:
        assert robot.linearize(zero, zero, zero, dt=dt)[0].shape == (12, 12)
        return
    with raises("E-MATH-030|E-MATH-031"):
        robot.linearize(zero, zero, zero, dt=dt)


# Arrays ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"dt": 0.01}, {"actuation": ["joint2", "joint5"]}], ids=str
)
def test_batches_and_outputs(options: dict[str, Any]) -> None:
    """Results are the same alone, in a batch, with `out`, and nearly so in single precision."""
    robot = puma560()
    at = state(robot, 8, (2, 5))
    A, B = robot.linearize(*at, **options)
    m = 2 if "actuation" in options else 6
    assert (A.shape, B.shape) == ((2, 5, 12, 12), (2, 5, 12, m))
    one = robot.linearize(*(x[1, 3] for x in at), **options)
    assert np.array_equal(one[0], A[1, 3])
    close(one[1], B[1, 3], 1e-15)
    out = np.full_like(A, np.nan), np.full_like(B, np.nan)
    assert robot.linearize(*at, **options, out=out, threads=2) is out
    assert np.array_equal(out[0], A)
    assert np.array_equal(out[1], B)
    single = [x.astype(np.float32) for x in at]
    a, b = robot.linearize(*single, **options)
    assert a.dtype == b.dtype == np.float32
    close(a, A, 1e-3)
    with raises("E-CALL-010|E-CALL-058"):
        robot.linearize(*at, **options, out=(A,))
    with raises("E-CALL-013"):
        robot.linearize(*at, **options, out=(A[0], B))
    with raises("E-CALL-009"):
        robot.linearize(at[0], np.zeros(5), at[2], **options)
