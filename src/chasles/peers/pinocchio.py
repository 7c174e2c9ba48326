"""Load and evaluate robots in Pinocchio, from URDF and MJCF files."""

from pathlib import Path
from typing import Any

import numpy as np

from chasles.conventions import swap
from chasles.peers.terms import Answers, ten


class Pinocchio:
    """A robot loaded by Pinocchio. All joints are treated as independent, and loops are ignored.

    Continuous joints from URDF files use a cosine and a sine as coordinates.
    """

    def __init__(self, path: Path, *, floating: bool) -> None:
        import pinocchio as pin

        build = pin.buildModelFromUrdf if path.suffix == ".urdf" else pin.buildModelFromMJCF
        self.library, self.model = pin, build(str(path))
        free = pin.JointModelFreeFlyer()
        if floating and free.shortname() not in [joint.shortname() for joint in self.model.joints]:
            self.model = build(str(path), free)
        self.data = self.model.createData()
        self.joints = tuple(self.model.names)[1:]
        sizes = zip(self.model.names, self.model.nqs, self.model.nvs, strict=True)
        self.circles = tuple(name for name, *size in sizes if size == [2, 1])
        self.nv = int(self.model.nv)

    @property
    def gravity(self) -> np.ndarray:
        """Gravitational acceleration (m/s2). Pinocchio does not read it from the robot file."""
        return np.array(self.model.gravity.linear)

    @gravity.setter
    def gravity(self, g: np.ndarray) -> None:
        self.model.gravity.linear = g

    def answers(self, x: np.ndarray, v: np.ndarray) -> Answers:
        """Return Pinocchio's results for its positions x and velocities v, without conversion."""
        pin, model, data = self.library, self.model, self.data
        pin.computeJointJacobians(model, data, x)
        pin.updateFramePlacements(model, data)
        bodies = [(k, f) for k, f in enumerate(model.frames) if f.type == pin.BODY]
        poses = {f.name: np.array(data.oMf[k].homogeneous) for k, f in bodies}
        world = pin.LOCAL_WORLD_ALIGNED
        jacobians = {f.name: np.zeros((6, 0)) for _, f in bodies}
        if model.nv:  # Pinocchio 4.1 crashes if nv is 0
            for k, f in bodies:
                # The Jacobian has shape (6,) instead of (6, 1) if nv is 1.
                J = pin.getFrameJacobian(model, data, k, world).reshape(6, -1)
                jacobians[f.name] = swap(J, axis=0)
        upper = np.triu(pin.crba(model, data, x))
        return Answers(
            poses,
            {f.name: self._inertia(f) for _, f in bodies if f.parentJoint},
            jacobians,
            upper + np.triu(upper, 1).T,
            np.array(pin.computeGeneralizedGravity(model, data, x)),
            np.array(pin.nonLinearEffects(model, data, x, v)),
            None,
        )

    def _inertia(self, frame: Any) -> np.ndarray:
        """Return the inertia of all bodies fixed to the frame's joint, expressed in the frame."""
        whole = frame.placement.actInv(self.model.inertias[frame.parentJoint])
        return ten(float(whole.mass), np.array(whole.lever), np.array(whole.inertia))
