"""Hybrid dynamics of closed loops: agreement with a dense system, limiting cases, and errors."""

import numpy as np
import pytest
from mechanisms import MECHANISMS, PLANAR, mechanism, motion
from support import close, raises

import chasles
from chasles.mechanisms import singular_values
from chasles.model import gear


def places(robot: chasles.Robot, known: tuple[str, ...]) -> np.ndarray:
    """Return a mask of the velocity coordinates of the given joints."""
    mask = np.zeros(robot.nv, dtype=bool)
    for name in known:
        mask[robot.velocity_slice(name)] = True
    return mask


def dense(
    robot: chasles.Robot, q: np.ndarray, qd: np.ndarray, given: np.ndarray, held: np.ndarray
) -> np.ndarray:
    """Return the result for one state from a dense system in qdd, unknown tau, and multipliers."""
    M, h, K = robot.mass_matrix(q), robot.bias_forces(q, qd), robot.loop_matrix(q)
    n, m, unit = robot.nv, len(K), np.eye(robot.nv)[:, held]
    whole = np.block(
        [
            [M, -unit, -K.T],
            [K, np.zeros((m, unit.shape[1] + m))],
            [unit.T, np.zeros((unit.shape[1], unit.shape[1] + m))],
        ]
    )
    right = np.concatenate([np.where(held, 0.0, given) - h, robot.loop_bias(q, qd), given[held]])
    x = np.linalg.pinv(whole, rcond=1e-11) @ right
    found = x[:n].copy()
    found[held] = x[n : n + unit.shape[1]]
    return found


@pytest.mark.parametrize("name", MECHANISMS)
def test_one_driven_joint_as_by_one_dense_system(name: str) -> None:
    """Results agree with a dense system, although compiled equations lose about four digits."""
    robot, (q, qd, given) = mechanism(name), motion(name)
    known = (robot.independent[0].split("[")[0],)
    held = places(robot, known)
    found = robot.hybrid_dynamics(q, qd, given, known=known)
    assert found.shape == qd.shape
    for k in range(len(q)):
        close(found[k], dense(robot, q[k], qd[k], given[k], held), 1e-9)


@pytest.mark.parametrize("name", PLANAR)
def test_both_ends(name: str) -> None:
    """Hybrid dynamics is forward dynamics if no joint is known, inverse dynamics if all are."""
    robot, (q, qd, tau) = mechanism(name), motion(name)
    qdd = robot.forward_dynamics(q, qd, tau)
    close(robot.hybrid_dynamics(q, qd, tau, known=()), qdd, 1e-9)
    found = robot.hybrid_dynamics(q, qd, qdd, known=robot.joints)
    close(found, robot.inverse_dynamics(q, qd, qdd), 1e-9)


@pytest.mark.parametrize("name", ["four_bar", "five_bar"])
def test_driven_like_the_motor_that_moves_it_so(name: str) -> None:
    """If the independent joints are known, their torques are those of inverse dynamics."""
    robot, (q, qd, _) = mechanism(name), motion(name)
    rng = np.random.default_rng(2)
    _, qdd = robot.complete(
        q, qd[:, robot.mechanism.closing.independent], rng.normal(size=len(MECHANISMS[name]))
    )
    mask = places(robot, robot.independent)
    given = np.where(mask, qdd, 0.0)
    found = robot.hybrid_dynamics(q, qd, given, known=robot.independent)
    tau = robot.inverse_dynamics(q, qd, qdd, actuated=robot.independent)
    close(np.where(mask, tau, qdd), found, 1e-9)


def test_more_known_than_free_must_agree() -> None:
    robot, (q, qd, _) = mechanism("four_bar"), motion("four_bar")
    qdd = robot.forward_dynamics(q, qd, np.zeros(robot.nv))
    known = ("crank", "rocker")
    found = robot.hybrid_dynamics(q, qd, np.where([True, False, True], qdd, 0.0), known=known)
    close(found[:, 1], qdd[:, 1], 1e-9)
    tau = np.where([True, False, True], found, 0.0)
    close(robot.forward_dynamics(q, qd, tau), qdd, 1e-9)
    wrong = qdd + np.array([0.0, 0.0, 1e-3])
    with raises("E-LOOP-012", "'crank'", "'rocker'"):
        robot.hybrid_dynamics(q, qd, np.where([True, False, True], wrong, 0.0), known=known)
    with raises("E-LOOP-012", "'pin'"):
        robot.hybrid_dynamics(q[0], qd[0], wrong[0], known=robot.joints)


def test_joints_outside_the_loops_are_not_blamed() -> None:
    robot, (q, qd, tau) = mechanism("triangle"), motion("triangle")
    qdd = robot.forward_dynamics(q, qd, tau)
    with raises("E-LOOP-012", "'q1'", "'q2'", "'q3'"):
        robot.hybrid_dynamics(q, qd, qdd + np.array([0.1, 0.0, 0.0, 0.0]), known=robot.joints)
    robot.hybrid_dynamics(q, qd, qdd + np.array([0.0, 0.0, 0.0, 5.0]), known=robot.joints)


def test_by_singular_values() -> None:
    """Solving by singular values, which is used near singular positions, agrees elsewhere too."""
    robot = mechanism("slider_crank")
    q = robot.assemble([0.7])
    qd = robot.complete(q, [1.0])
    given, held = np.array([0.5, 1.0, -1.0, 2.0])[: robot.nv], places(robot, ("alpha1",))
    found, left = singular_values.hybrid_dynamics(
        robot.mechanism.closing, (q, qd, given), np.flatnonzero(held)
    )
    close(found, robot.hybrid_dynamics(q, qd, given, known="alpha1"), 1e-10)
    assert np.max(np.abs(left)) < 1e-11
    close(found, dense(robot, q, qd, given, held), 1e-9)


def test_forces_outside_and_gears() -> None:
    """Hybrid dynamics of a geared arm with a wrench agrees with inverse dynamics."""
    arm = chasles.robots.planar(3).with_couplings(gear("drive", "joint3", {"joint2": -0.5}))
    rng = np.random.default_rng(1)
    q = arm.assemble([0.3, -0.4])
    qd = arm.complete(q, rng.normal(size=2))
    given, wrench = rng.normal(size=3), {"link3": rng.normal(size=6)}
    found = arm.hybrid_dynamics(q, qd, given, known="joint1", f_ext=wrench)
    qdd = np.array([given[0], *found[1:]])
    tau = np.array([found[0], *given[1:]])
    close(qdd[2], -0.5 * qdd[1], 1e-12)
    moved = arm.inverse_dynamics(q, qd, qdd, f_ext=wrench) - tau
    close(moved[0], 0.0, 1e-12, 1.0)
    close(moved[1], 0.5 * moved[2], 1e-12)  # the gear torques do no work


def test_the_door() -> None:
    robot, (q, qd, tau) = mechanism("four_bar"), motion("four_bar")
    with raises("E-LOOP-021", "hybrid_dynamics"):
        robot.hybrid_dynamics(q + 0.1, qd, tau, known="crank")
    with raises("E-MODEL-037", "'pin'"):
        robot.hybrid_dynamics(q, qd, tau, known="pin")
    with raises("E-CALL-073", "'mass-matrix'", "'fastest'"):
        robot.hybrid_dynamics(q, qd, tau, known="crank", method="mass-matrix")
    out = np.empty_like(qd)
    assert robot.hybrid_dynamics(q, qd, tau, known="crank", out=out) is out
