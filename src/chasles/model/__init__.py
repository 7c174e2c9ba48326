"""Bodies, joints, trees and loops."""

from chasles.model.build import build
from chasles.model.couplings import Coupling, coupling, gear, motion
from chasles.model.description import (
    ROLES,
    SHAPE_TRAITS,
    SHAPES,
    CouplingData,
    Description,
    FrameData,
    JointData,
    Limits,
    LinkData,
    LoopData,
    Mimic,
    ModelError,
    ShapeData,
)
from chasles.model.joints import JOINTS, LOOP_JOINTS, Joint, Steady
from chasles.model.model import WORLD, Body, Frame, Loop, Model

__all__ = [
    "JOINTS",
    "LOOP_JOINTS",
    "ROLES",
    "SHAPES",
    "SHAPE_TRAITS",
    "WORLD",
    "Body",
    "Coupling",
    "CouplingData",
    "Description",
    "Frame",
    "FrameData",
    "Joint",
    "JointData",
    "Limits",
    "LinkData",
    "Loop",
    "LoopData",
    "Mimic",
    "Model",
    "ModelError",
    "ShapeData",
    "Steady",
    "build",
    "coupling",
    "gear",
    "motion",
]
