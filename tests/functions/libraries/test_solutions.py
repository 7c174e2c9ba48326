"""Derivatives of inverse kinematics, compared with differences and closed forms."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support import raises, tree

import chasles
from chasles.contact import Sphere
from chasles.distances import Avoid
from chasles.robots import planar, puma560, stewart
from chasles.targets import (
    CENTER,
    Axis,
    CenterOfMass,
    LookAt,
    Orientation,
    Pose,
    Position,
    Relative,
)

jax = pytest.importorskip("jax", reason="JAX is not installed")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
jnp = pytest.importorskip("jax.numpy")

PUMA = puma560()
Q = np.array([0.3, 0.5, -1.0, 0.2, 0.9, -0.4])
ARM = planar(4)
FINE = 1e-12
STEP = 1e-5
"""Step of central differences. Their truncation error is 1e-10, and their rounding error 1e-11."""


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def derivatives(solve: Callable[[Any], Any], x: np.ndarray, dx: np.ndarray) -> list[np.ndarray]:
    """Return derivatives of solve(x) along dx in both modes of both libraries."""
    t, dt, j, dj = torch.tensor(x), torch.tensor(dx), jnp.asarray(x), jnp.asarray(dx)
    forward = [torch.func.jvp(solve, (t,), (dt,))[1], jax.jvp(jax.jit(solve), (j,), (dj,))[1]]
    t.requires_grad_(True)
    q = solve(t)
    rows = [torch.autograd.grad(e, t, retain_graph=True)[0] for e in q]
    back = [torch.stack(rows), jax.jacrev(solve)(j)]
    axes = tuple(range(1, np.ndim(dx) + 1))
    return [*map(np.asarray, forward), *((np.asarray(b) * dx).sum(axis=axes) for b in back)]


def check(solve: Callable[[Any], Any], x: np.ndarray, dx: np.ndarray, tolerance: float) -> None:
    """Check that derivatives agree with differences of the search, and values with NumPy."""
    plain = np.asarray(solve(x))
    assert np.array_equal(solve(torch.tensor(x)).numpy(), plain)
    expected = (solve(x + STEP * dx) - solve(x - STEP * dx)) / (2.0 * STEP)
    assert np.abs(expected).max() > 0.1
    for found in derivatives(solve, x, dx):
        assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()


def reach(robot: chasles.Robot, frame: str, make: Any, guess: np.ndarray, **options: Any) -> Any:
    def solve(x: Any) -> Any:
        found = robot.inverse_kinematics({frame: make(x)}, guess=guess, tries=1, **options)
        assert type(x) is not np.ndarray or found.solved
        return found.q

    return solve


T, TO = (PUMA.forward_kinematics(Q, frame=f) for f in ("tool", "link2"))
TARGETS: dict[str, tuple[str, Any, np.ndarray]] = {
    "position": ("tool", lambda x: Position(x, tolerance=FINE), T[:3, 3]),
    "axis": ("tool", lambda x: Axis(x, tolerance=FINE), T[:3, 2]),
    "centre of mass": (CENTER, lambda x: CenterOfMass(x, tolerance=FINE), PUMA.center_of_mass(Q)),
}


@pytest.mark.parametrize("name", TARGETS)
def test_of_every_target(name: str) -> None:
    """The derivative of a redundant arm is the shortest motion, as for a step of the search."""
    frame, make, x = TARGETS[name]
    dx = np.array([0.2, -0.5, 0.3])
    dx = dx - x * (dx @ x) if name == "axis" else dx
    check(reach(PUMA, frame, make, Q), x, dx, 1e-5)


def test_of_poses_is_the_inverse_of_the_jacobian() -> None:
    """The derivative along poses of a joint motion is this joint motion."""
    qd = np.array([0.5, -0.3, 0.8, 0.2, -0.7, 0.4])
    ahead, behind = (PUMA.forward_kinematics(Q + s * STEP * qd, frame="tool") for s in (1, -1))
    solve = reach(PUMA, "tool", lambda x: Pose(x, tolerance=FINE), Q)
    for found in derivatives(solve, T, (ahead - behind) / (2.0 * STEP)):
        assert np.abs(found - qd).max() < 1e-8


def test_of_looking_at_a_point_and_of_relative_poses() -> None:
    """Derivatives are shortest motions, computed from differences of forward kinematics."""
    point, dx = T[:3, 3] + 0.7 * T[:3, 2], np.array([0.2, -0.5, 0.3])

    def off(q: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the cross product of the tool axis and the direction to a point."""
        at = PUMA.forward_kinematics(q, frame="tool")
        return np.cross(at[:3, 2], (x - at[:3, 3]) / np.linalg.norm(x - at[:3, 3]))

    by_q = np.stack([off(Q + STEP * e, point) - off(Q - STEP * e, point) for e in np.eye(6)], 1)
    by_x = off(Q, point + STEP * dx) - off(Q, point - STEP * dx)
    expected = -np.linalg.pinv(by_q, rcond=1e-6) @ by_x
    solve = reach(PUMA, "tool", lambda x: LookAt(x, tolerance=FINE), Q)
    for found in derivatives(solve, point, dx):
        assert np.abs(found - expected).max() < 1e-8

    qd = np.array([0.0, 0.0, 0.8, 0.2, -0.7, 0.4])

    def seen(q: np.ndarray) -> np.ndarray:
        """Return the pose of the tool relative to a link, independent of the first two joints."""
        at, to = (PUMA.forward_kinematics(q, frame=f) for f in ("tool", "link2"))
        found: np.ndarray = np.linalg.inv(to) @ at
        found[3] = T[3]
        return found

    slope = (seen(Q + STEP * qd) - seen(Q - STEP * qd)) / (2.0 * STEP)
    solve = reach(PUMA, "tool", lambda x: Relative("link2", x, tolerance=FINE), Q)
    for found in derivatives(solve, seen(Q), slope)[:2]:
        assert np.abs(seen(Q + STEP * found) - seen(Q + STEP * qd)).max() < 1e-8 * STEP


def test_of_quaternions() -> None:
    """Quaternions may have any length. A change along the quaternion itself has no effect."""
    q = np.array([0.9, 0.1, -0.3, 0.2])
    start = PUMA.inverse_kinematics({"tool": Orientation(q, tolerance=FINE)}, guess=Q).q
    solve = reach(PUMA, "tool", lambda x: Orientation(x, tolerance=FINE), start)
    check(solve, q, np.array([0.1, 0.4, -0.2, 0.3]), 1e-6)
    for found in derivatives(solve, q, q):
        assert np.abs(found).max() < 1e-12


def test_is_the_shortest_motion_of_a_redundant_arm() -> None:
    """The derivative for a redundant arm is dq = J^+ dx."""
    q = np.array([0.4, 0.6, -0.5, 0.8])
    p = ARM.forward_kinematics(q, frame="tip")[:3, 3]
    J = ARM.jacobian(q, frame="tip")[3:]
    dx = np.array([0.3, -0.7, 0.0])
    solve = reach(ARM, "tip", lambda x: Position(x, tolerance=FINE), q)
    for found in derivatives(solve, p, dx):
        assert np.abs(found - np.linalg.pinv(J) @ dx).max() < 1e-12


def test_holds_joints_at_their_limits_and_fixed_ones() -> None:
    """A joint at its limit has the same derivatives as a fixed joint."""
    q = Q.copy()
    q[1] = PUMA.limits.upper[1]
    x = PUMA.forward_kinematics(q, frame="tool")[:3, 2]
    dx = np.cross(x, [0.2, -0.5, 0.3])
    held = reach(PUMA, "tool", lambda x: Axis(x, tolerance=FINE), q, fixed=[PUMA.joints[1]])
    check(held, x, dx, 1e-6)
    free = reach(PUMA, "tool", lambda x: Axis(x, tolerance=FINE), q)
    assert PUMA.inverse_kinematics({"tool": Axis(x)}, guess=q).limits[1] == 1
    for a, b in zip(derivatives(free, x, dx), derivatives(held, x, dx), strict=True):
        assert a[1] == 0.0
        assert np.array_equal(a, b)


def test_keeps_loops_closed() -> None:
    """Derivatives agree with differences for a Stewart platform, whose pose sets all joints."""
    robot = stewart()
    q = robot.assemble(0.1 * np.arange(1.0, 7.0))
    pose = robot.forward_kinematics(q, frame="platform")
    twist = np.array([0.2, -0.1, 0.3, 0.05, 0.1, -0.2])

    def moved(s: float) -> np.ndarray:
        """Return the pose after a rotation about z and a translation."""
        M = np.eye(4)
        M[:2, :2] = [
            [np.cos(s * twist[2]), -np.sin(s * twist[2])],
            [np.sin(s * twist[2]), np.cos(s * twist[2])],
        ]
        made = M @ pose
        made[:3, 3] += s * twist[3:]
        return made

    def solve(x: Any) -> Any:
        return robot.inverse_kinematics({"platform": Pose(x, tolerance=FINE)}, guess=q, tries=1).q

    dx = (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
    expected = (solve(moved(STEP)) - solve(moved(-STEP))) / (2.0 * STEP)
    for found in derivatives(solve, pose, dx):
        assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


def test_of_free_joints_is_by_the_numbers_of_q() -> None:
    """Derivatives are in the entries of q, and quaternions stay normalized."""
    robot = tree(3, 7, floating=True)
    q = robot.random(np.random.default_rng(0))
    frame = robot.frames[-1]
    x = robot.forward_kinematics(q, frame=frame)[:3, 3]
    solve = reach(robot, frame, lambda x: Position(x, tolerance=FINE), q)
    check(solve, x, np.array([0.2, -0.5, 0.3]), 1e-6)


def test_is_nan_where_a_problem_is_not_solved() -> None:
    far = np.stack([T[:3, 3], [9.0, 0.0, 0.0]])
    x = torch.tensor(far, requires_grad=True)
    found = PUMA.inverse_kinematics({"tool": Position(x)}, tries=8)
    assert found.solved.tolist() == [True, False]
    found.q.sum().backward()
    assert torch.isfinite(x.grad[0]).all()
    assert torch.isnan(x.grad[1]).all()
    rates = jax.jacfwd(lambda x: PUMA.inverse_kinematics({"tool": Position(x)}, tries=8).q)
    assert np.isnan(rates(jnp.asarray(far))[1, :, 1]).all()


def test_traced_targets_that_mean_nothing_are_not_solved() -> None:
    bad = np.stack([T, 2.0 * T, np.full((4, 4), np.nan)])
    bad[..., 3, :] = T[3]
    found = jax.jit(lambda x: PUMA.inverse_kinematics({"tool": x}).solved)(bad)
    assert found.tolist() == [True, False, False]
    with raises("E-CALL-364"):
        PUMA.inverse_kinematics({"tool": jnp.asarray(bad[1])})
    with raises("E-CALL-361"):
        PUMA.inverse_kinematics({"tool": torch.tensor(bad[2])})
    with raises("E-CALL-360"):
        jax.jit(lambda x: PUMA.inverse_kinematics({"tool": x}).q)(bad[0, :3])


def test_of_several_targets_maps_and_all_solutions() -> None:
    """A mapped function gives the results of a batch. All solutions have their own derivatives.

    Libraries normalize the axis themselves, so results differ from NumPy by rounding errors.
    """
    many = PUMA.forward_kinematics(Q + 0.1 * np.arange(3)[:, None], frame="tool")

    def solve(x: Any) -> Any:
        return PUMA.inverse_kinematics({"tool": [Position(x[..., :3, 3]), Axis(x[..., :3, 2])]}).q

    whole = solve(many)
    for mapped, alone in (
        (jax.vmap(solve)(jnp.asarray(many)), solve(jnp.asarray(many))),
        (torch.func.vmap(solve)(torch.tensor(many)), solve(torch.tensor(many))),
    ):
        assert np.array_equal(mapped, alone)
        assert np.allclose(mapped, whole, rtol=0.0, atol=1e-12)
    every = PUMA.inverse_kinematics({"tool": torch.tensor(T)}, solutions="all", count=4)
    x = torch.tensor(T, requires_grad=True)
    some = PUMA.inverse_kinematics({"tool": x}, solutions="all", count=4)
    assert every.q.shape == (4, 6)
    k = int(np.nanargmin(np.abs(every.q.numpy() - Q).max(axis=1)))
    (grad,) = torch.autograd.grad(some.q[k, 1], x)
    expected = jax.grad(lambda x: PUMA.inverse_kinematics({"tool": x}, guess=Q).q[1])(
        jnp.asarray(T)
    )
    assert np.abs(grad.numpy() - expected).max() < 1e-6


def test_second_derivatives_are_nan_never_wrong() -> None:
    solve = reach(PUMA, "tool", lambda x: Position(x), Q)
    x = T[:3, 3]
    assert np.isnan(jax.hessian(lambda x: solve(x)[0])(jnp.asarray(x))).all()
    assert torch.isnan(torch.func.hessian(lambda x: solve(x)[0])(torch.tensor(x))).all()
    twice = torch.func.jacfwd(torch.func.jacfwd(lambda x: solve(x)[0]))
    assert torch.isnan(twice(torch.tensor(x))).all()


def test_single_precision_and_other_libraries() -> None:
    found = PUMA.inverse_kinematics({"tool": torch.tensor(T, dtype=torch.float32)}, guess=Q)
    assert found.q.dtype == torch.float32
    assert bool(found.solved)
    assert np.abs(found.q.numpy() - Q).max() < 1e-5


@pytest.mark.parametrize("name", ["comfort", "wraps", "avoid"])
def test_options_without_derivatives_need_targets_without_derivatives(name: str) -> None:
    """Results equal NumPy's, in arrays of the library. Targets with gradients raise an error."""
    names = PUMA.bodies[2:]
    ball = Sphere(None, 0.1, center=(0.3, 0.3, 0.6))
    options: Any = {
        "comfort": {"comfort": "limits"},
        "wraps": {"solutions": "all", "wraps": True},
        "avoid": {
            "avoid": Avoid(
                {"ball": ball},
                shapes=[Sphere(link, 0.05) for link in names],
                pairs=[(link, "ball") for link in names],
            )
        },
    }[name]
    T = PUMA.forward_kinematics(Q, frame="tool")[None]
    plain = PUMA.inverse_kinematics({"tool": T}, **options)
    for make in (torch.tensor, jnp.asarray):
        found = PUMA.inverse_kinematics({"tool": make(T)}, **options)
        assert type(found.q) is type(make(T))
        assert repr(found) == repr(plain)
        for got, wanted in zip(vars(found).values(), vars(plain).values(), strict=True):
            assert np.array_equal(np.asarray(got), wanted, equal_nan=np.asarray(got).dtype == float)
    recorded = torch.tensor(T, requires_grad=True)
    with raises("E-CALL-385", f"`{name}` cannot"):
        PUMA.inverse_kinematics({"tool": recorded}, **options)
    with raises("E-CALL-385", f"`{name}` cannot"):
        jax.jit(lambda T: PUMA.inverse_kinematics({"tool": T}, **options).q)(jnp.asarray(T))
    with torch.no_grad():
        assert PUMA.inverse_kinematics({"tool": recorded}, **options).q.grad_fn is None
