"""Motions computed in machine code from start to end: a step, traced, and the loop around it."""

from chasles.rollouts.adjoint import RolloutGradient
from chasles.rollouts.controls import (
    ComputedTorque,
    GravityCompensation,
    PDControl,
    parameter_count,
    traced,
)
from chasles.rollouts.rollout import Occurrence, Rollout, Touching, Trajectory
from chasles.rollouts.steps import STEPS

__all__ = [
    "STEPS",
    "ComputedTorque",
    "GravityCompensation",
    "Occurrence",
    "PDControl",
    "Rollout",
    "RolloutGradient",
    "Touching",
    "Trajectory",
    "parameter_count",
    "traced",
]
