"""Load and evaluate robots in MuJoCo, from MJCF and URDF files."""

from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from chasles.errors import InputError
from chasles.formats.files import load
from chasles.formats.xml_file import parse
from chasles.peers.terms import Answers, Machine, ten


class MuJoCo:
    """A robot loaded by MuJoCo. Equality constraints are compared as loops."""

    def __init__(self, path: Path, *, floating: bool) -> None:
        import mujoco

        self._mujoco, self.model = mujoco, _read(mujoco, path)
        if floating and not np.any(self.model.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
            problem = "MuJoCo cannot add a floating base to a file without a free joint"
            remedy = "add a free joint to the file, or load without floating=True"
            raise InputError("E-PEER-005", problem, remedy, file=path)
        self.data = mujoco.MjData(self.model)
        self.joints = tuple(self.model.joint(j).name for j in range(self.model.njnt))
        self.circles = ()
        weightless = self.model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY
        self.gravity = np.zeros(3) if weightless else np.array(self.model.opt.gravity)
        self.nv = int(self.model.nv)

    def answers(self, x: np.ndarray, v: np.ndarray) -> Answers:
        """Return MuJoCo's results at positions x and velocities v, in MuJoCo's coordinates."""
        mujoco, model, data = self._mujoco, self.model, self.data
        data.qpos[:], data.qvel[:] = x, 0.0
        mujoco.mj_forward(model, data)
        gravity = np.array(data.qfrc_bias)
        data.qvel[:] = v
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        for row, unit in zip(M, np.eye(model.nv), strict=True):
            mujoco.mj_mulM(model, data, row, unit)
        names = {model.body(b).name: b for b in range(1, model.nbody)}
        poses, jacobians = {}, {}
        for name, b in names.items():
            poses[name] = np.eye(4)
            poses[name][:3, :3], poses[name][:3, 3] = data.xmat[b].reshape(3, 3), data.xpos[b]
            linear, angular = np.zeros((2, 3, model.nv))
            mujoco.mj_jacBody(model, data, linear, angular, b)
            jacobians[name] = np.concatenate([angular, linear])
        moved = [name for name, b in names.items() if model.body_weldid[b]]
        lifted = np.where(model.jnt_actgravcomp[model.dof_jntid], 0.0, data.qfrc_gravcomp)
        bias = np.array(data.qfrc_bias - data.qfrc_spring - lifted)
        equality = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        return Answers(
            poses,
            {name: self._inertia(names[name]) for name in moved},
            jacobians,
            M,
            gravity,
            bias,
            np.array(data.efc_pos[equality]),
            self._machine(),
        )

    def _machine(self) -> Machine:
        """Return accelerations for fixed values (-1 to 1) of the controls and activations."""
        model, data = self.model, self.data
        data.ctrl[:], data.act[:] = np.cos(np.arange(model.nu)), np.sin(np.arange(model.na))
        self._mujoco.mj_forward(model, data)
        found = Machine(np.array(data.ctrl), np.array(data.act), np.array(data.qacc_smooth))
        data.ctrl[:], data.act[:] = 0.0, 0.0
        return found

    def _inertia(self, body: int) -> np.ndarray:
        """Return the inertia of a body and all bodies welded to it, in the body's frame."""
        model, data, total = self.model, self.data, np.zeros(10)
        R, p = data.xmat[body].reshape(3, 3), data.xpos[body]
        for b in np.flatnonzero(model.body_weldid == model.body_weldid[body]):
            turn = R.T @ data.ximat[b].reshape(3, 3)
            about = turn @ np.diag(model.body_inertia[b]) @ turn.T
            total += ten(float(model.body_mass[b]), R.T @ (data.xipos[b] - p), about)
        return total


def _read(mujoco: Any, path: Path) -> Any:
    """Compile a file; omit meshes in URDF files, because MuJoCo cannot resolve their names."""
    if path.suffix != ".urdf":
        return mujoco.MjModel.from_xml_path(str(path))
    robot = parse(str(path), load(str(path)))
    for link in robot.iterfind("link"):
        for shape in (*link.findall("visual"), *link.findall("collision")):
            if shape.find("geometry/mesh") is not None:
                link.remove(shape)
    return mujoco.MjModel.from_xml_string(etree.tostring(robot, encoding="unicode"))
