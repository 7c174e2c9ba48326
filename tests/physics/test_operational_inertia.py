"""Operational-space inertia of a frame, by J M^-1 J' and by articulated bodies.

The source is Featherstone (2008), 7.2. Rounding errors are at most 1e-11, times the condition
number of M.
"""

from typing import Any

import numpy as np
import pytest
from support import close, direct, raises, state, tree

import chasles
from chasles import control
from chasles.mathematics.linear import Symmetric, Vector, invert_symmetric
from chasles.mathematics.spatial import ArticulatedInertia, Motion, Motions, RigidInertia
from chasles.model import Description, JointData, LinkData
from chasles.robots import planar, puma560, quadruped

VIEWS = [(axes, at) for axes in ("world", "frame") for at in ("frame", "world", (0.2, -0.1, 0.4))]


@pytest.mark.parametrize("method", ["projection", "propagation"])
@pytest.mark.parametrize("floating", [False, True])
def test_both_routes_are_the_definition(method: str, floating: bool) -> None:
    robot = tree(9, 4 if floating else 3, floating=floating)
    q = state(robot, 1)[0]
    M = direct(robot.model, "mass_matrix", q)
    for axes, at in VIEWS:
        view: dict[str, Any] = {"frame": "tip", "axes": axes, "at": at}
        J = direct(robot.model, "jacobian", q, **view)
        found = direct(robot.model, "operational_inertia_inverse", q, method=method, **view)
        close(found, J @ np.linalg.solve(M, J.T), 1e-14 * max(1e3, np.linalg.cond(M)))
        assert np.array_equal(found, found.T)


def test_mimic_joints() -> None:
    robot = tree(9, 12, floating=True, mimics=True)
    q = state(robot, 2)[0]
    J = direct(robot.model, "jacobian", q, frame="tip")
    W = direct(robot.model, "mass_matrix_inverse", q)
    Phi = direct(robot.model, "operational_inertia_inverse", q, frame="tip")
    close(Phi, J @ W @ J.T, 1e-11)
    with raises("E-CALL-071", "'projection'"):
        robot.operational_inertia_inverse(q, frame="tip", method="propagation")


@pytest.mark.parametrize("method", ["projection", "propagation", "fastest"])
def test_what_a_wrench_adds(method: str) -> None:
    """Phi w is the change of the frame's acceleration by a wrench w, in a batch."""
    robot = puma560()
    q, qd, tau = state(robot, 3, 4)
    w = np.random.default_rng(3).normal(size=(4, 6))
    a, b = (
        robot.frame_acceleration(
            q, qd, robot.forward_dynamics(q, qd, tau, f_ext=f_ext), frame="tool"
        )
        for f_ext in ({"tool": w}, None)
    )
    Phi = robot.operational_inertia_inverse(q, frame="tool", method=method)
    close((Phi @ w[..., None])[..., 0], a - b, 1e-9)
    Lambda, _ = control.operational_dynamics(robot, q, qd, frame="tool")
    close(np.linalg.inv(Phi), Lambda, 1e-8)


def test_rank_is_the_number_of_freedoms() -> None:
    robot = planar(2)
    Phi = robot.operational_inertia_inverse(np.array([0.3, 0.8]), frame="tip")
    assert np.linalg.matrix_rank(Phi) == 2
    assert np.all(np.linalg.eigvalsh(Phi) > -1e-12)


# Several frames ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["projection", "propagation"])
def test_several_frames_at_once(method: str) -> None:
    """Several frames on one branch, on different branches and on one body agree with Eq 7.4."""
    robot = tree(12, 5, floating=True)
    q = state(robot, 4)[0]
    names = [*robot.bodies[-3:], "tip", robot.bodies[1]]
    M = direct(robot.model, "mass_matrix", q)
    for view in ({}, {"axes": "frame"}, {"at": "world"}):
        J = np.vstack([direct(robot.model, "jacobian", q, frame=name, **view) for name in names])
        found = direct(
            robot.model, "operational_inertia_inverse", q, method=method, frame=tuple(names), **view
        )
        close(found, J @ np.linalg.solve(M, J.T), 1e-14 * max(1e3, np.linalg.cond(M)))
        assert np.array_equal(found, found.T)


def test_both_feet_of_a_quadruped() -> None:
    """Phi gives the change of two feet's accelerations by wrenches on them, in a batch."""
    robot, rng = quadruped(), np.random.default_rng(5)
    feet = ["front_left_foot", "rear_right_foot"]
    q, qd, tau = state(robot, 5, 3)
    wrenches = rng.normal(size=(2, 3, 6))
    Phi = robot.operational_inertia_inverse(q, frame=feet)
    assert Phi.shape == (3, 12, 12)

    def accelerations(f_ext: dict[str, np.ndarray] | None) -> np.ndarray:
        qdd = robot.forward_dynamics(q, qd, tau, f_ext=f_ext)
        each = [robot.frame_acceleration(q, qd, qdd, frame=foot) for foot in feet]
        return np.concatenate(each, axis=-1)

    added = accelerations(dict(zip(feet, wrenches, strict=True))) - accelerations(None)
    both = np.concatenate(list(wrenches), axis=-1)
    close((Phi @ both[..., None])[..., 0], added, 1e-9)
    one = robot.operational_inertia_inverse(q, frame=feet[1])
    close(Phi[:, 6:, 6:], one, 1e-12)
    compiled = chasles.compile(robot, "operational_inertia_inverse", frame=tuple(feet))
    np.testing.assert_array_equal(compiled(q), Phi)


def test_frames_at_the_door() -> None:
    robot = planar(2)
    q = np.zeros(2)
    with raises("E-CALL-029", "operational_inertia_inverse"):
        robot.operational_inertia_inverse(q, frame=[])
    with raises("E-MODEL-034", "'tap'"):
        robot.operational_inertia_inverse(q, frame=["tip", "tap"])
    with raises("E-MODEL-033", "`frame` must be a name"):
        robot.jacobian(q, frame=["tip", "link1"])  # type: ignore[arg-type]


# A cylinder in a box ---------------------------------------------------------------------------


def uniform(m: float, moment: float) -> RigidInertia:
    return RigidInertia.from_center(
        m, Vector.zero(), Symmetric(moment, moment, moment, 0.0, 0.0, 0.0)
    )


BOX, CYLINDER = uniform(5.0, 2.0), uniform(7.0, 3.0)
FELT = np.diag([2.0, 5.0, 5.0, 12.0, 5.0, 12.0])
"""Expected apparent inertia (section 7.1): I1, I1 + I2, I1 + I2, m1 + m2, m1, m1 + m2."""


def test_box_and_cylinder_assembled() -> None:
    """The assembled inertia agrees with Eq 7.19, for rotation about x and translation along y."""
    S = Motions((Motion.of(1.0, 0, 0, 0, 0, 0), Motion.of(0, 0, 0, 0, 1.0, 0)))
    I = ArticulatedInertia.of(CYLINDER)
    U = I @ S
    felt = I.without(U, U @ invert_symmetric(S.T @ U)) + ArticulatedInertia.of(BOX)
    for k, row in enumerate(FELT):
        unit = Motion.of(*(float(j == k) for j in range(6)))
        assert list(felt @ unit) == list(row)


@pytest.mark.parametrize("method", ["projection", "propagation"])
def test_box_and_cylinder_as_a_robot(method: str) -> None:
    """A floating box with a cylinder on a massless intermediate link has the expected inertia."""
    links = ("box", BOX), ("pin", RigidInertia.zero()), ("cylinder", CYLINDER)
    joints = (
        JointData("float", "free", None, "box"),
        JointData("slide", "prismatic", "box", "pin", axis=Vector.of(0.0, 1.0, 0.0)),
        JointData("turn", "revolute", "pin", "cylinder", axis=Vector.of(1.0, 0.0, 0.0)),
    )
    robot = chasles.Robot(Description("box", tuple(LinkData(*entry) for entry in links), joints))
    q = robot.neutral()
    q[-1] = 0.7
    Phi = robot.operational_inertia_inverse(q, frame="box", axes="frame", method=method)
    close(np.linalg.inv(Phi), FELT, 1e-13)
