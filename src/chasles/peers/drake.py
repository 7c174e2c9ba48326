"""Load and evaluate robots in Drake, from URDF, SDF and MJCF files."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from chasles.peers.terms import Answers, moments

STEP = 1e-3
"""Time step (s); Drake supports mimic joints and loops only in discrete-time plants."""


class Drake:
    """A robot loaded by Drake. The mass matrix includes reflected rotor inertias.

    Drake treats mimic joints and loops as constraints, but does not expose their equations in
    Python. All joints are therefore treated as independent.
    """

    def __init__(self, path: Path, *, floating: bool) -> None:
        from pydrake.multibody.parsing import Parser
        from pydrake.multibody.plant import MultibodyPlant
        from pydrake.multibody.tree import (
            BodyIndex,
            JacobianWrtVariable,
            ModelInstanceIndex,
            default_model_instance,
        )

        self._index, self._by_v = BodyIndex, JacobianWrtVariable.kV
        plant: Any = MultibodyPlant(STEP)
        self.plant = plant
        with _quiet():
            Parser(plant).AddModels(path)
            if path.suffix == ".urdf" and not floating:
                self._hold()
            plant.Finalize()
        self._default = default_model_instance()
        others = range(int(self._default) + 1, plant.num_model_instances())
        models = (plant.GetModelInstanceName(ModelInstanceIndex(k)) for k in others)
        self._single = len({name.partition("::")[0] for name in models}) == 1
        self.context = plant.CreateDefaultContext()
        joints = [plant.get_joint(k) for k in plant.GetJointIndices()]
        moving = [joint for joint in joints if joint.num_velocities()]
        moving.sort(key=lambda joint: joint.position_start())
        self.joints = tuple(self._name(joint) for joint in moving)
        self.circles = ()
        self.gravity = np.array(plant.gravity_field().gravity_vector())
        self.nv = int(plant.num_velocities())

    def answers(self, x: np.ndarray, v: np.ndarray) -> Answers:
        """Return Drake's results at positions x and velocities v, in Drake's coordinates."""
        plant, context, world = self.plant, self.context, self.plant.world_frame()
        plant.SetPositions(context, x)
        plant.SetVelocities(context, v)
        poses, inertias, jacobians = {}, {}, {}
        for body in self._bodies():
            name, at = self._name(body), (body.body_frame(), np.zeros(3), world, world)
            poses[name] = plant.EvalBodyPoseInWorld(context, body).GetAsMatrix4()
            inertias[name] = self._inertia(body)
            jacobians[name] = plant.CalcJacobianSpatialVelocity(context, self._by_v, *at)
        M, gravity = plant.CalcMassMatrix(context), -plant.CalcGravityGeneralizedForces(context)
        bias = plant.CalcBiasTerm(context) + gravity
        return Answers(poses, inertias, jacobians, M, gravity, bias, None)

    def _bodies(self) -> list[Any]:
        """Return all bodies except Drake's world body."""
        return [self.plant.get_body(self._index(k)) for k in range(1, self.plant.num_bodies())]

    def _hold(self) -> None:
        """Weld all root bodies to the world, because Drake treats them as free by default."""
        plant = self.plant
        joints = [plant.get_joint(k) for k in plant.GetJointIndices()]
        held = {joint.child_body().index() for joint in joints}
        for body in self._bodies():
            if body.index() not in held:
                plant.WeldFrames(plant.world_frame(), body.body_frame())

    def _inertia(self, body: Any) -> np.ndarray:
        """Return the inertia of a body and all bodies welded to it, in the body's frame."""
        carried = [b.index() for b in self.plant.GetBodiesWeldedTo(body)]
        whole = self.plant.CalcSpatialInertia(self.context, body.body_frame(), carried)
        about_origin = whole.CalcRotationalInertia().CopyToFullMatrix3()
        return moments(whole.get_mass(), whole.CalcComMoment(), about_origin)

    def _name(self, part: Any) -> str:
        """Return the name of a body or joint, with the model name if there are several models."""
        model = self.plant.GetModelInstanceName(part.model_instance())
        if part.model_instance() == self._default:
            return str(part.name())
        if self._single:
            model = model.partition("::")[2]
        return f"{model}::{part.name()}" if model else str(part.name())


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress parser warnings about elements that do not affect the motion."""
    log = logging.getLogger("drake")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
