"""Accelerations of MJCF models here and in MuJoCo, with springs, tendons, actuators and damping.

Contacts, limits, friction loss and equalities are soft there and exact here, so they are off.
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
"""Random states and controls at which a model is compared."""

TOLERANCE = 1e-9
"""Relative to the largest acceleration, or to 1."""


@dataclass(frozen=True)
class Compared:
    """One model: the worst relative errors, and what the reader said is not supported."""

    path: Path
    passive: float = np.nan
    actuated: float = np.nan
    unsupported: tuple[str, ...] = ()
    refused: str = ""

    @property
    def agrees(self) -> bool:
        """Return True if passive and actuated accelerations are the same."""
        return self.passive <= TOLERANCE and self.actuated <= TOLERANCE

    @property
    def explained(self) -> bool:
        """Return True if they are the same, or a warning names what is not supported."""
        return self.agrees or bool(self.unsupported)


def compared(path: Path, seed: int = 0) -> Compared:
    """Passive and actuated accelerations of a model at random states."""
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
        return Compared(path, refused=f"nv is {robot.nv} here, {there.nv} there")
    worst = [max(errors) for errors in zip(*_errors(robot, there, seed), strict=True)]
    return Compared(path, *worst, unsupported=source.unsupported)


def _free(source: Any) -> Any:
    """Without dry friction, which is a constraint in MuJoCo."""
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
    """Tendons with inertia couple joints, which articulated bodies do not take."""
    return "augmented-tensor" if robot.model.rotors else "articulated-body"
