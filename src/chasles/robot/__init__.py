"""Public class `Robot` and its base classes."""

from chasles.mechanisms import Coordinates
from chasles.robot.identity import Array
from chasles.robot.machine import Limits
from chasles.robot.robot import Robot

__all__ = ["Array", "Coordinates", "Limits", "Robot"]
