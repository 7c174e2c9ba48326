"""Drop a quadruped on its feet with rigid contact, and compare the forces at rest with MuJoCo."""

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np

import chasles
from chasles.contact import Pair, Plane, Rigid, Sphere

FEET = [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]
RADIUS, STAND = 0.02, np.tile([0.0, 0.7, -1.4], 4)
STIFFNESS, DAMPING = 200.0, 10.0


def servo(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Return torques of springs and dampers that hold the legs."""
    return np.concatenate([np.zeros(6), STIFFNESS * (STAND - q[7:]) - DAMPING * qd[6:]])


def test_a_quadruped_dropped_on_its_feet_rests_as_in_mujoco(tmp_path: Path) -> None:
    """A quadruped that falls 0.3 m (mu = 0.8, e = 0) is at rest within 4 s.

    The ground force equals the weight to 1e-6, penetration is below 1e-6 m, and the normal force of
    each foot agrees with MuJoCo to 1 %. The torques of the twelve leg joints determine the forces
    of the four sticking feet, so that the forces are unique for a posture. MuJoCo starts at the
    posture at rest in chasles.
    """
    robot = chasles.robots.quadruped()
    q = robot.neutral()
    q[7:] = STAND
    q[6] = 0.3 + RADIUS - robot.forward_kinematics(q, frame=FEET[0])[2, 3]
    motion = chasles.simulate(
        robot,
        q,
        np.zeros(robot.nv),
        duration=4.0,
        dt=2e-3,
        tau=servo,
        contacts=[Pair(Sphere(foot, RADIUS), Plane(), Rigid(0.8)) for foot in FEET],
    )
    weight = robot.gravity_forces(robot.neutral())[5]
    last = motion.t > motion.t[-1] - 0.1
    ground = np.mean(np.sum(motion.touching.forces[last], axis=1), axis=0)
    assert np.max(np.abs(motion.qd[-1])) < 1e-6
    assert np.allclose(ground, [0.0, 0.0, weight], atol=1e-6 * weight)
    assert np.min(motion.touching.gaps) > -1e-6
    assert np.max(np.abs(motion.touching.gaps[-1])) < 1e-12
    here = motion.touching.forces[-1, :, 2]
    assert np.allclose(there(robot, tmp_path / "robot.xml", motion.q[-1]), here, rtol=1e-2)


def there(robot: chasles.Robot, path: Path, q: np.ndarray) -> np.ndarray:
    """Return the normal forces (4,) of the feet in MuJoCo, 0.3 s after a start at q."""
    chasles.save(chasles.Robot(replace(robot.model.source, shapes=())), path)
    spec = mujoco.MjSpec.from_file(str(path))
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[1, 1, 1],
        friction=[0.8, 0, 0],
        condim=3,
        name="ground",
    )
    for foot in FEET:
        spec.body(foot).add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=[RADIUS, 0, 0],
            friction=[0.8, 0, 0],
            mass=0.0,
            condim=3,
            name=foot,
            solref=[4e-3, 1.0],
        )
    model = spec.compile()
    data = mujoco.MjData(model)
    model.opt.timestep, model.opt.cone = 1e-3, mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.impratio = 100.0  # less creep
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS
    data.qpos[:] = np.concatenate([q[4:7], q[:4], q[7:]])
    for _ in range(300):
        here = np.concatenate([data.qpos[3:7], data.qpos[:3], data.qpos[7:]])
        data.qfrc_applied[:] = servo(0.0, here, data.qvel)
        mujoco.mj_step(model, data)
    forces, wrench = np.zeros(len(FEET)), np.zeros(6)
    for k, touching in enumerate(data.contact):
        mujoco.mj_contactForce(model, data, k, wrench)
        names = [model.geom(g).name for g in touching.geom]
        forces[next(FEET.index(name) for name in names if name in FEET)] += wrench[0]
    return forces
