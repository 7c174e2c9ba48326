"""chasles: rigid-body kinematics and dynamics, written as in the books and compiled.

import chasles
robot = chasles.robots.puma560()          # or chasles.load("robot.urdf")
tau = robot.inverse_dynamics(q, qd, qdd)  # one state, or any batch of states
"""

from chasles import conventions as conventions
from chasles import robots
from chasles.api import compile, cost, load
from chasles.compiled import Wrench
from chasles.model import ModelError
from chasles.robot import Robot

__version__ = "0.1.0"

__all__ = ["ModelError", "Robot", "Wrench", "compile", "cost", "load", "robots"]
