"""Compare the foot forces of a standing quadruped with MuJoCo.

In general, the forces of four feet on soft ground depend on its stiffness. Here the posture is
symmetric, so left and right forces are equal, and the balance of moments determines the others. The
forces thus depend on the positions of feet and masses, but hardly on the stiffness of the ground.
"""

import mujoco
import numpy as np
from test_mujoco import mjcf

from chasles import contact
from chasles.robots import quadruped
from chasles.rollouts import PDControl

FEET = tuple(f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right"))
RADIUS, MU, KP, KD = 0.02, 0.8, 300.0, 8.0


def standing_there(q: np.ndarray, stance: np.ndarray, steps: int, dt: float) -> np.ndarray:
    """Return the normal force on each foot after the given number of steps of MuJoCo."""
    spec = mujoco.MjSpec.from_string(mjcf(quadruped().model.source))
    ground = spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1.0, 1.0, 1.0])
    ground.friction[0] = MU
    for foot in FEET:
        geom = spec.body(foot).add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[RADIUS, 0.0, 0.0])
        geom.name, geom.friction[0] = foot, MU
    model = spec.compile()
    model.opt.timestep = dt
    data = mujoco.MjData(model)
    data.qpos[:] = np.r_[q[4:7], q[:4], q[7:]]
    for _ in range(steps):
        data.qfrc_applied[6:] = KP * (stance[7:] - data.qpos[7:]) - KD * data.qvel[6:]
        mujoco.mj_step(model, data)
    forces, found = np.zeros(4), np.zeros(6)
    for k in range(data.ncon):
        mujoco.mj_contactForce(model, data, k, found)
        names = [model.geom(g).name for g in data.contact[k].geom]
        forces[FEET.index(next(n for n in names if n))] += found[0]
    return forces


def test_what_each_foot_carries() -> None:
    robot = quadruped()
    assert list(robot.joints[1:4]) == [
        "front_left_abduction",
        "front_left_hip",
        "front_left_knee",
    ]
    stance = robot.neutral()
    stance[7:] = np.tile([0.0, 0.8, -1.6], 4)
    q = stance.copy()
    q[6] = RADIUS - min(robot.forward_kinematics(q, frame=foot)[2, 3] for foot in FEET)
    legs = np.r_[np.zeros(6), np.ones(12)]
    law = contact.SoftContact(contact.SoftSurface(5e4, 500.0), contact.SoftFriction(MU, 5e4, 500.0))
    motion = robot.rollout(
        q,
        np.zeros(18),
        PDControl(KP * legs, KD * legs, stance),
        dt=2e-4,
        steps=15000,
        every=15000,
        contacts=[contact.Pair(contact.Sphere(f, RADIUS), contact.Plane(), law) for f in FEET],
    )
    assert motion.touching is not None
    here = motion.touching.forces[-1, :, 2]
    there = standing_there(q, stance, 3000, 1e-3)
    weight = robot.mass * 9.81
    assert abs(here.sum() - weight) < 1e-6 * weight
    assert abs(there.sum() - weight) < 1e-6 * weight
    assert np.abs(here / there - 1.0).max() < 0.01
