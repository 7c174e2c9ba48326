"""Bias forces by MuJoCo MJX with vmap and jit, using only the required pipeline stages."""

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
    """Return the robot as a MuJoCo model with the same joint order, by way of an MJCF file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.xml"
        chasles.save(robot, path)
        made = mujoco.MjModel.from_xml_path(str(path))
    names = tuple(made.joint(k).name for k in range(made.njnt))
    if names != robot.joints or made.nq != robot.nv:
        raise ValueError(f"joints of MuJoCo {names} differ from those of chasles {robot.joints}")
    return made


def runs(
    robot: chasles.Robot, inputs: Sequence[np.ndarray], dtype: str
) -> dict[str, Callable[[], Any]]:
    """Return functions, by label, that compute the bias forces of all states (q, qd) with JAX."""
    if dtype != "float32":
        raise ValueError("MJX supports only float32")
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
