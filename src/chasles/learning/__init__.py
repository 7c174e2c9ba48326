"""Reinforcement learning: Gymnasium vector environments with batched, compiled steps.

env = chasles.learning.RobotVectorEnv(robot, task, 256, control=pd, contacts=pairs)

The package gymnasium is needed: `pip install 'chasles[learn]'`.
"""

from chasles.learning.environment import RobotVectorEnv
from chasles.learning.task import State, Task

__all__ = ["RobotVectorEnv", "State", "Task"]
