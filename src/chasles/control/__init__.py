"""Models for control: task-space dynamics, sensitivities, resolved rates and computed torque.

from chasles import control
Lambda, bias = control.operational_dynamics(robot, q, qd, frame="hand")

A task selects a part of a frame's motion, in world axes and at the frame origin:

| task | rows | coordinates chi |
|---|---|---|
| "twist" | angular velocity, then linear velocity: 6 | none (the integral depends on the path) |
| "position" | linear velocity: 3 | x, y, z (m) |
| "pose" | time derivative of chi: 6 | roll, pitch, yaw (rad; R = Rz Ry Rx), then x, y, z |

For "pose", the rates of roll and yaw are undefined at a pitch of +-90 degrees. Leading dimensions
of the arguments broadcast. Jacobians ignore closed loops and have nv columns. Dynamics functions
keep loops closed, or raise an error. See Balafoutis and Patel (1991), section 7.4; Khatib (1987).
"""

from chasles.control.operational import operational_dynamics, operational_torques
from chasles.control.perturbations import (
    joint_perturbations,
    operational_sensitivities,
    task_perturbations,
)
from chasles.control.rates import resolved_rate
from chasles.control.tasks import task_coordinates, task_jacobian, task_jacobian_rate
from chasles.motion.perturbations import torque_perturbations
from chasles.motion.tracking import computed_torque

__all__ = [
    "computed_torque",
    "joint_perturbations",
    "operational_dynamics",
    "operational_sensitivities",
    "operational_torques",
    "resolved_rate",
    "task_coordinates",
    "task_jacobian",
    "task_jacobian_rate",
    "task_perturbations",
    "torque_perturbations",
]
