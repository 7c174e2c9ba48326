"""Motions computed in machine code from start to end: a step, traced, and the loop around it."""

from chasles.rollouts.controls import (
    ComputedTorque,
    GravityCompensation,
    PDControl,
    traced,
)
from chasles.rollouts.rollout import End, Occurrence, Rollout, Touching, Trajectory
from chasles.rollouts.steps import STEPS

__all__ = [
    "STEPS",
    "ComputedTorque",
    "End",
    "GravityCompensation",
    "Occurrence",
    "PDControl",
    "Rollout",
    "Touching",
    "Trajectory",
    "traced",
]
