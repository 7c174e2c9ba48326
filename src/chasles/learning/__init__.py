"""Reinforcement learning: Gymnasium vector environments with batched, compiled steps.

For example, `RobotVectorEnv(robot, task, 256, control=pd)` simulates 256 copies of a robot.

The package gymnasium is required: run `pip install 'chasles[learn]'`.
"""

from chasles.learning.environment import RobotVectorEnv
from chasles.learning.task import State, Task

__all__ = ["RobotVectorEnv", "State", "Task"]
