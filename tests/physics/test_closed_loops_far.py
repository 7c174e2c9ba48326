"""Closed-loop dynamics is accurate far from the reference positions of its equations."""

from functools import cache

import numpy as np
import pytest
from chains import spatial
from mechanisms import MECHANISMS, constraint_forces, mechanism, motion
from support import close, raises, relative, runner

import chasles
from chasles.mechanisms import dynamics

SOLVERS = ("multipliers", "direct", "minimal")
CASES = (*MECHANISMS, "loop revolute", "loop cylindrical", "loop fixed")
"""Built-in mechanisms, and two chains with various joints between their tips."""

PATHS, STEPS, STEP = 8, 20, 0.06


@cache
def far(name: str) -> tuple[chasles.Robot, np.ndarray, np.ndarray, np.ndarray]:
    """Return a robot with states q, qd, tau along motions that lead up to 1.2 rad (m) away."""
    rng = np.random.default_rng(7)
    if name in MECHANISMS:
        robot, q = mechanism(name), motion(name)[0][0]
    else:
        source, q = spatial(name.removeprefix("loop "), 1)
        robot = chasles.Robot(source)
    run = runner(robot, "numpy")
    ways, at, found = rng.normal(size=(PATHS, robot.nv)), np.tile(q, (PATHS, 1)), []

    def along(at: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the projection of x onto the velocities that the loops allow."""
        K = run("loop_matrix", at)
        return x - np.einsum("...ij,...jk,...k->...i", np.linalg.pinv(K, rcond=1e-8), K, x)

    for _ in range(STEPS):
        step = along(at, ways)
        at = run("integrate", at, STEP * step / np.max(np.abs(step), axis=-1, keepdims=True))
        for _ in range(5):
            K, error = run("loop_matrix", at), run("loop_residual", at)
            back = np.einsum("...ij,...j->...i", np.linalg.pinv(K, rcond=1e-8), error)
            at = run("integrate", at, -back)
        found.append(at)
    there = np.concatenate(found)
    there = there[np.max(np.abs(run("loop_residual", there)), axis=-1) < 1e-12]
    qd = along(there, rng.normal(size=(len(there), robot.nv)))
    return robot, there, qd, rng.normal(size=qd.shape)


@cache
def dense(name: str) -> np.ndarray:
    """Return qdd of these states, from one dense system per state."""
    robot, q, qd, tau = far(name)
    run = runner(robot, "numpy")
    H, h, K = run("mass_matrix", q), run("bias_forces", q, qd), run("loop_matrix", q)
    return np.array(list(map(constraint_forces, H, h, K, run("loop_bias", q, qd), tau)))


@pytest.mark.parametrize("method", SOLVERS)
@pytest.mark.parametrize("name", CASES)
def test_compiled_equations_are_exact_or_say_that_they_are_not(name: str, method: str) -> None:
    """Results are accurate to 1e-10 where the margin exceeds `WEAK`, in most states."""
    robot, q, qd, tau = far(name)
    compiled = chasles.compile(robot, "constrained_dynamics", backend="numpy", method=method)
    qdd, _, health = compiled(q, qd, tau)
    good = health[:, 1] > dynamics.WEAK
    assert np.mean(good) > 0.8
    for mine, expected in zip(qdd[good], dense(name)[good], strict=True):
        close(mine, expected, 1e-10)


@pytest.mark.parametrize("name", ["stewart", "loop revolute"])
def test_a_direct_call_is_exact_everywhere(name: str) -> None:
    """Weak states are solved separately, and results of the others stay bitwise identical."""
    robot, q, qd, tau = far(name)
    qdd, multipliers = robot.constrained_dynamics(q, qd, tau, method="minimal")
    assert max(map(relative, qdd, dense(name))) < 1e-10
    forces = np.einsum("...ri,...r->...i", robot.loop_matrix(q), multipliers)
    left = np.einsum("...ij,...j->...i", robot.mass_matrix(q), qdd) + robot.bias_forces(q, qd) - tau
    close(forces, left, 1e-10)
    health = chasles.compile(robot, "constrained_dynamics", method="minimal")(q, qd, tau)[2]
    weak = ~(health[:, 1] > dynamics.WEAK)
    assert 0 < np.count_nonzero(weak) < len(q) // 4
    for k in (int(np.argmax(weak)), int(np.argmin(weak))):
        alone, _ = robot.constrained_dynamics(q[k], qd[k], tau[k], method="minimal")
        np.testing.assert_allclose(alone, qdd[k], rtol=0.0, atol=1e-13 * np.max(np.abs(alone)))
    good = np.flatnonzero(~weak)
    apart, _ = robot.constrained_dynamics(q[good], qd[good], tau[good], method="minimal")
    np.testing.assert_array_equal(apart, qdd[good])


def test_a_singular_state_is_named_by_its_place() -> None:
    """The error names the index of the singular state in a batch."""
    flat = chasles.robots.four_bar(1.0, 0.5, 1.0, 0.5)
    q = np.array([[0.6, -0.6, 0.6], [0.0, 0.0, 0.0], [0.7, -0.7, 0.7]])
    rest = np.zeros(3)
    for call in (
        lambda: flat.forward_dynamics(q, rest, rest),
        lambda: flat.mass_matrix(q, coordinates="independent"),
        lambda: flat.inverse_dynamics(q, rest, rest, actuated=["crank"]),
    ):
        with raises("E-LOOP-011", "(1,)"):
            call()
