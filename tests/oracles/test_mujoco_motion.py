"""Compare one second of motion with MuJoCo: same integrators, no contact, no limits."""

import mujoco
import numpy as np
import pytest
from test_mujoco import Twin, possible

import chasles
from chasles.robots import puma560, quadruped, random_tree

STEPS = 1000
"""Number of steps of 1 ms."""

ROBOTS = {
    "puma560": puma560(),
    "quadruped": quadruped(),
    "fixed tree": random_tree(7, 5, floating=False),
    "floating tree": random_tree(7, 6, floating=True),
}


def motion_there(twin: Twin, integrator: mujoco.mjtIntegrator) -> np.ndarray:
    """Return MuJoCo's positions after each step, in the coordinates of chasles."""
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
    """All positions agree, with damping, from a random state.

    Rounding errors grow to 1e-12. The error of Euler's method is 1e-3. Euler steps along the body
    axes of a floating base would differ as much, so this test uses free="mixed".
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
