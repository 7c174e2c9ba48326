"""Models of mechanisms: bodies, joints, trees and loops."""

from chasles.model.build import build
from chasles.model.constraints import Coupling, FrameState
from chasles.model.couplings import coupling, gear, motion
from chasles.model.description import (
    CouplingData,
    Description,
    FrameData,
    JointData,
    Limits,
    LinkData,
    LoopData,
    Mimic,
    ModelError,
    RollingData,
    RotorData,
    StretchData,
)
from chasles.model.joints import JOINTS, LOOP_JOINTS, Joint, Steady
from chasles.model.model import WORLD, Body, Frame, Loop, Model
from chasles.model.rolling import rolling
from chasles.model.sensors import SENSORS, NoiseData, SensorData, Surface
from chasles.model.shapes import ROLES, SHAPE_TRAITS, SHAPES, HeightFieldData, ShapeData

__all__ = [
    "JOINTS",
    "LOOP_JOINTS",
    "ROLES",
    "SENSORS",
    "SHAPES",
    "SHAPE_TRAITS",
    "WORLD",
    "Body",
    "Coupling",
    "CouplingData",
    "Description",
    "Frame",
    "FrameData",
    "FrameState",
    "HeightFieldData",
    "Joint",
    "JointData",
    "Limits",
    "LinkData",
    "Loop",
    "LoopData",
    "Mimic",
    "Model",
    "ModelError",
    "NoiseData",
    "RollingData",
    "RotorData",
    "SensorData",
    "ShapeData",
    "Steady",
    "StretchData",
    "Surface",
    "build",
    "coupling",
    "gear",
    "motion",
    "rolling",
]
