"""MuJoCo MJX: bias forces by those stages of its pipeline that they need, under vmap and jit."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import mjx

import chasles


def model(robot: chasles.Robot) -> mujoco.MjModel:
    """The robot for MuJoCo, by way of a file that chasles writes; joints are in the same order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.xml"
        chasles.save(robot, path)
        made = mujoco.MjModel.from_xml_path(str(path))
    names = tuple(made.joint(k).name for k in range(made.njnt))
    if names != robot.joints or made.nq != robot.nv:
        raise ValueError(f"MuJoCo has joints {names} where chasles has {robot.joints}")
    return made


def runs(
    robot: chasles.Robot, inputs: Sequence[np.ndarray], dtype: str
) -> dict[str, Callable[[], Any]]:
    """Launch bias forces of all states (q, qd) where JAX computes, and return the array."""
    if dtype != "float32":
        raise ValueError("MJX computes in float32")
    theirs = mjx.put_model(model(robot), impl="jax")
    start = mjx.make_data(theirs, impl="jax")

    def bias(q: Any, qd: Any) -> Any:
        data = start.replace(qpos=q, qvel=qd)
        for stage in (mjx.kinematics, mjx.com_pos, mjx.com_vel, mjx.rne):
            data = stage(theirs, data)
        return data.qfrc_bias

    made = jax.jit(jax.vmap(bias))
    arrays = [jnp.asarray(a.astype(dtype)) for a in inputs]
    return {"MuJoCo MJX, vmap and jit": lambda: made(*arrays)}
