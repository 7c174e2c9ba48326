"""Motions computed in machine code from start to end: a step, traced, and the loop around it."""

from chasles.rollouts.adjoint import RolloutGradient
from chasles.rollouts.contacts import (
    Contacts,
    FrameMotion,
    Pressed,
    SoftPair,
    Spot,
    given_pairs,
)
from chasles.rollouts.controls import (
    BUILT_IN,
    ComputedTorque,
    GravityCompensation,
    PDControl,
    computed,
    parameter_count,
    traced,
)
from chasles.rollouts.rollout import (
    End,
    Occurrence,
    Rollout,
    Touching,
    Trajectory,
    checked_steps,
)
from chasles.rollouts.steps import STEPS

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
