"""Compare closed loops with Pinocchio's constraintDynamics and MuJoCo's equality constraints."""

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from mechanisms import MECHANISMS, PLANAR, mechanism, motion
from support import close
from test_mujoco import mjcf

import chasles
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import Transform
from chasles.model import LoopData
from chasles.robots import quadruped

pytest.importorskip("pinocchio")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Class for robots with loops in Pinocchio."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.pinocchio_loops import Mechanism

    return Mechanism


def compiled(robot: chasles.Robot, *arrays: np.ndarray) -> list[np.ndarray]:
    """Return qdd and the multipliers."""
    return chasles.compile(robot, "constrained_dynamics", backend="numpy")(*arrays)[:2]


@pytest.mark.parametrize("name", MECHANISMS)
def test_pinocchio(name: str, peer: Any) -> None:
    """Accelerations and loop forces agree with Pinocchio.

    Pinocchio closes loops with point contacts (three equations) or welds (six), with mu = 1e-8 and
    without Baumgarte terms.
    """
    robot, (q, qd, tau) = mechanism(name), motion(name)
    qdd, multipliers = compiled(robot, q, qd, tau)
    theirs = peer(robot, flat=name in PLANAR)
    close(qdd, theirs.forward_dynamics(q, qd, tau), 1e-9)
    forces = robot.loop_forces(q[-1], multipliers[-1])
    close(forces, theirs.loop_forces(), 1e-7, scale=float(np.max(np.abs(forces))))


def test_pinocchio_with_feet_on_the_ground(peer: Any) -> None:
    """A quadruped agrees with one foot on a point, one foot welded, and two feet in the air."""
    walker, rng = quadruped(), np.random.default_rng(3)
    q = walker.random(rng)
    loops = []
    for foot, kind in (("front_left_foot", "spherical"), ("rear_right_foot", "fixed")):
        T = walker.forward_kinematics(q, frame=foot)
        place = Transform.from_pose(Matrix(tuple(map(tuple, T[:3, :3]))), Vector(tuple(T[:3, 3])))
        loops.append(LoopData(foot, kind, None, foot, place))
    robot = walker.with_loops(*loops)
    assert int(robot.mobility(q)) == 18 - 9
    states = np.tile(q, (3, 1))
    qd = robot.complete(states, rng.normal(size=(3, 9)))
    tau = rng.normal(size=(3, robot.nv))
    expected = peer(robot).forward_dynamics(states, qd, tau)
    close(compiled(robot, states, qd, tau)[0], expected, 1e-9)


# MuJoCo ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "six_bar", "triangle"])
def test_mujoco(name: str) -> None:
    """Accelerations agree to 1e-3. MuJoCo's equalities are soft; their impedance is 0.9999."""
    robot, (q, qd, tau) = mechanism(name), motion(name)
    source, soft = robot.model.source, 'anchor="0 0 0" solimp="0.9999 0.9999 0.001"'
    loops = [f'<connect body1="{p.parent}" body2="{p.child}" {soft}/>' for p in source.loops]
    text = mjcf(source).replace("</mujoco>", f"<equality>{''.join(loops)}</equality></mujoco>")
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.tolerance, model.opt.iterations = 1e-14, 1000
    for row, pin in zip(model.eq_data, source.loops, strict=True):
        row[:6] = [*pin.pose.r, *pin.child_pose.r]
    names = [model.joint(k).name.removesuffix(".0") for k in range(model.njnt)]
    there, data = chasles.conventions.mujoco(robot, names), mujoco.MjData(model)
    expected = []
    for x, v, f in zip(
        there.to_position(q), there.to_velocity(q, qd), there.to_effort(q, tau), strict=True
    ):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = x, v, f
        mujoco.mj_forward(model, data)
        expected.append(there.from_acceleration(x, v, data.qacc))
    close(compiled(robot, q, qd, tau)[0], np.array(expected), 1e-3)
