"""Distances between links and to obstacles, and collision avoidance in inverse kinematics.

from chasles import contact, distances
found = robot.distance(q, obstacles={"table": contact.Box(None, (1.0, 1.0, 0.1))})
scene = distances.Scene(robot, obstacles=...)  # reusable for many calls: scene(q)
robot.inverse_kinematics({"hand": T}, avoid=distances.Avoid(obstacles, margin=0.02))
"""

from chasles.distances.avoid import Avoid
from chasles.distances.scene import Distances, Scene

__all__ = ["Avoid", "Distances", "Scene"]
