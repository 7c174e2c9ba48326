"""Compare accelerations of MJCF models in chasles and MuJoCo.

Springs, tendons, actuators and damping are included. Contacts, limits, dry friction and equality
constraints are disabled, because they are soft in MuJoCo and exact in chasles.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import chasles
from chasles import conventions
from chasles.checks.floats import evaluate
from chasles.errors import ChaslesError
from chasles.model.edit import opened

STATES = 3
"""Number of random states and controls at which a model is compared."""

TOLERANCE = 1e-9
"""Tolerance for accelerations, relative to the largest acceleration or 1, whichever is larger."""


@dataclass(frozen=True)
class Compared:
    """Largest relative errors for a model, and its elements that chasles does not support."""

    path: Path
    passive: float = np.nan
    actuated: float = np.nan
    unsupported: tuple[str, ...] = ()
    refused: str = ""

    @property
    def agrees(self) -> bool:
        """Return True if passive and actuated accelerations agree."""
        return self.passive <= TOLERANCE and self.actuated <= TOLERANCE

    @property
    def explained(self) -> bool:
        """Return True if accelerations agree, or the model has unsupported elements."""
        return self.agrees or bool(self.unsupported)


def compared(path: Path, seed: int = 0) -> Compared:
    """Compare passive and actuated accelerations of a model at random states."""
    import mujoco

    there = mujoco.MjModel.from_xml_path(str(path))
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        try:
            read = chasles.load(path, mimic=False, loops=False)
        except ChaslesError as error:
            return Compared(path, refused=str(error)[:300])
    source = read.model.source
    robot = chasles.Robot(_free(opened(source, None)), mimic=False)
    if robot.nv != there.nv:
        return Compared(path, refused=f"nv is {robot.nv} in chasles, {there.nv} in MuJoCo")
    worst = [max(errors) for errors in zip(*_errors(robot, there, seed), strict=True)]
    return Compared(path, *worst, unsupported=source.unsupported)


def _free(source: Any) -> Any:
    """Remove dry friction, which is a constraint in MuJoCo, and mimic relations of joints."""
    joints = tuple(replace(joint, friction=0.0, mimic=None) for joint in source.joints)
    return replace(source, joints=joints)


def _errors(robot: chasles.Robot, there: Any, seed: int) -> Iterator[tuple[float, float]]:
    import mujoco

    rng, data = np.random.default_rng(seed), mujoco.MjData(there)
    there.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    convention = conventions.mujoco(robot)
    act = np.zeros(sum(x.active for x in robot.model.source.actuators))
    for _ in range(STATES):
        q, qd = robot.random(rng), rng.normal(size=robot.nv)
        x = convention.to_position(q)
        data.qpos[:], data.qvel[:] = x, convention.to_velocity(q, qd)
        ctrl = rng.normal(size=there.nu) * 2.0
        act = rng.normal(size=act.shape)
        found = []
        for level in (0.0, 1.0):
            data.ctrl[:] = ctrl * level
            data.act[:] = act if len(act) == there.na else 0.0
            flags = there.opt.disableflags
            if not level:
                there.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
            mujoco.mj_forward(there, data)
            there.opt.disableflags = flags
            expected = convention.from_acceleration(x, data.qvel, data.qacc_smooth)
            tau = np.zeros(robot.nv)
            if level:
                (tau,) = evaluate(robot.model, "actuate", (q, qd, ctrl, act))
            (qdd,) = evaluate(robot.model, "forward_dynamics", (q, qd, tau), method=_way(robot))
            scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
            found.append(float(np.max(np.abs(qdd - expected), initial=0.0)) / scale)
        yield found[0], found[1]


def _way(robot: chasles.Robot) -> str:
    """Return the method of forward dynamics. Articulated bodies do not support tendon inertia."""
    return "augmented-tensor" if robot.model.rotors else "articulated-body"
