"""Bodies, joints and trees."""

from chasles.model.build import build
from chasles.model.description import (
    Description,
    FrameData,
    JointData,
    Limits,
    LinkData,
    Mimic,
    ModelError,
)
from chasles.model.joints import JOINTS, Joint
from chasles.model.model import WORLD, Body, Frame, Model

__all__ = [
    "JOINTS",
    "WORLD",
    "Body",
    "Description",
    "Frame",
    "FrameData",
    "Joint",
    "JointData",
    "Limits",
    "LinkData",
    "Mimic",
    "Model",
    "ModelError",
    "build",
]
