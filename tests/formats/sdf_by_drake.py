"""Write `sdf_by_drake.json`: Drake's results for the files of `sdf_files.py`. This is not a test.

Install Drake with `pip install drake`, then run `python tests/formats/sdf_by_drake.py`.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from pydrake.common.eigen_geometry import Quaternion
from pydrake.math import RollPitchYaw, RotationMatrix
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex, FrameIndex, JointIndex
from sdf_files import FILES, GRAVITY, STATES, put

HERE = Path(__file__).with_suffix(".json")


def full(plant: Any, part: Any) -> str:
    """Return the full name of a body in the file."""
    _, _, model = plant.GetModelInstanceName(part.model_instance()).partition("::")
    return f"{model}::{part.name()}" if model else str(part.name())


def in_file(plant: Any, frame: Any) -> bool:
    """Return True if a frame is a `<frame>`, not the frame of a model, a body or a joint end."""
    name = frame.name()
    body = plant.HasBodyNamed(name, frame.model_instance())
    return not (body or name.startswith("__") or name.endswith(("_F", "_M", "_parent", "_child")))


def answers(name: str) -> dict[str, Any]:
    """Return poses of links, mass matrix and gravity forces in the order and axes of chasles."""
    plant = MultibodyPlant(0.0)
    with tempfile.TemporaryDirectory() as folder:
        parser, place = Parser(plant), put(Path(folder), robot=FILES[name])
        for model in ("gripper", "tool"):
            parser.package_map().Add(model, str(place / model))
        parser.AddModels(str(place / "robot.sdf"))
    plant.mutable_gravity_field().set_gravity_vector(GRAVITY.get(name, (0.0, 0.0, -9.81)))
    plant.Finalize()
    joints = {}
    for k in range(plant.num_joints()):
        joint = plant.get_joint(JointIndex(k))
        known = {key.rpartition("::")[2]: key for key in STATES[name]}  # unique without model names
        joints[known.get(joint.name(), "root_joint")] = joint
    q, T, order = np.zeros(plant.num_positions()), np.eye(plant.num_velocities()), []
    for key, given in STATES[name].items():
        joint, values = joints[key], np.array(given)
        order += range(joint.velocity_start(), joint.velocity_start() + joint.num_velocities())
        if len(given) >= 4:
            values[:4] /= np.linalg.norm(values[:4])
            R = RotationMatrix(Quaternion(values[:4])).matrix()
            for k in range(joint.velocity_start(), order[-1] + 1, 3):  # in body axes
                T[k : k + 3, k : k + 3] = R
        if len(given) == 4:
            values = RollPitchYaw(Quaternion(values)).vector()
        q[joint.position_start() :][: len(values)] = values
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, q)
    bodies = [plant.get_body(BodyIndex(k)) for k in range(1, plant.num_bodies())]
    M = T.T @ plant.CalcMassMatrix(context) @ T
    return {
        "poses": {
            full(plant, b): plant.EvalBodyPoseInWorld(context, b).GetAsMatrix4().tolist()
            for b in bodies
        },
        "frames": {
            f.name(): f.CalcPoseInWorld(context).GetAsMatrix4().tolist()
            for k in range(plant.num_frames())
            if in_file(plant, f := plant.get_frame(FrameIndex(k)))
        },
        "mass_matrix": M[np.ix_(order, order)].tolist(),
        "gravity_forces": (-T.T @ plant.CalcGravityGeneralizedForces(context))[order].tolist(),
    }


if __name__ == "__main__":
    HERE.write_text(json.dumps({name: answers(name) for name in FILES}, indent=1) + "\n")
