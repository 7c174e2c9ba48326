"""Public names for compiled simulation: controllers, soft contacts and results."""

from chasles.motion.contact.pairs import Contacts, Pressed, Spot, given_pairs
from chasles.motion.contact.pairs import Pair as SoftPair
from chasles.motion.controllers import (
    BUILT_IN,
    ComputedTorque,
    GravityCompensation,
    PDControl,
    computed,
    parameter_count,
    traced,
)
from chasles.motion.drivers.compiled import Rollout, checked_steps
from chasles.motion.geometry.kinematics import Carrier as FrameMotion
from chasles.motion.records import End, Occurrence, Touching, Trajectory
from chasles.motion.steps.traced import STEPS, RolloutGradient

__all__ = [
    "BUILT_IN",
    "STEPS",
    "ComputedTorque",
    "Contacts",
    "End",
    "FrameMotion",
    "GravityCompensation",
    "Occurrence",
    "PDControl",
    "Pressed",
    "Rollout",
    "RolloutGradient",
    "SoftPair",
    "Spot",
    "Touching",
    "Trajectory",
    "checked_steps",
    "computed",
    "given_pairs",
    "parameter_count",
    "traced",
]
