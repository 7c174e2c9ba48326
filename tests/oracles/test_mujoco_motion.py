"""A second of motion against MuJoCo: the same integrators, no contact, no limits."""

import mujoco
import numpy as np
import pytest
from test_mujoco import Twin, possible

import chasles
from chasles.robots import puma560, quadruped, random_tree

STEPS = 1000
"""Of a millisecond."""

ROBOTS = {
    "puma560": puma560(),
    "quadruped": quadruped(),
    "fixed tree": random_tree(7, 5, floating=False),
    "floating tree": random_tree(7, 6, floating=True),
}


def motion_there(twin: Twin, integrator: mujoco.mjtIntegrator) -> np.ndarray:
    """MuJoCo's positions after each step, as they are here."""
    twin.there.opt.integrator, twin.there.opt.timestep = integrator, 1e-3
    off = mujoco.mjtDisableBit
    twin.there.opt.disableflags |= off.mjDSBL_CONSTRAINT | off.mjDSBL_EULERDAMP
    states = [np.array(twin.data.qpos)]
    for _ in range(STEPS):
        mujoco.mj_step(twin.there, twin.data)
        states.append(np.array(twin.data.qpos))
    here = np.empty((STEPS + 1, twin.robot.nq))
    for name in twin.robot.joints:
        first = mujoco.mj_name2id(twin.there, mujoco.mjtObj.mjOBJ_JOINT, f"{name}.0")
        slot, start = twin.robot.position_slice(name), twin.there.jnt_qposadr[first]
        part = np.array(states)[:, start : start + slot.stop - slot.start]
        if twin.robot.joint(name).kind == "free":
            part = np.roll(part, 4, axis=1)
        here[:, slot] = part
    return here


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize(
    ("integrator", "there", "tolerance"),
    [
        ("semi-implicit", mujoco.mjtIntegrator.mjINT_EULER, 1e-10),
        ("rk4", mujoco.mjtIntegrator.mjINT_RK4, 1e-9),
    ],
)
def test_a_second_of_motion(
    name: str, integrator: str, there: mujoco.mjtIntegrator, tolerance: float
) -> None:
    """With damping, from a random state; the largest difference of all steps.

    Rounding grows to 1e-12 on the way. Euler's own error is 1e-3, and so is the difference of
    Euler's steps along a floating body's axes.
    """
    twin = Twin(possible(ROBOTS[name].model.source), seed=3)
    mixed = {"free": "mixed"} if integrator == "semi-implicit" else {}
    motion = chasles.simulate(
        twin.robot,
        twin.q,
        twin.qd,
        duration=1.0,
        dt=1e-3,
        integrator=integrator,
        dissipation=True,
        **mixed,
    )
    expected = motion_there(twin, there)
    found = np.max(np.abs(twin.robot.difference(motion.q, expected)))
    assert found < tolerance
