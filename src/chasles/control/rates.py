"""Joint velocities that track desired frame velocities."""

import math
from typing import Any

from chasles.control.tasks import Array
from chasles.functions.doors import check_robot
from chasles.motion.rates import ResolvedRate
from chasles.robot import Robot


def resolved_rate(
    robot: Robot,
    tasks: Any,
    *,
    dt: float,
    acceleration: Array = math.inf,
    weights: Array = 1.0,
    damping: float = 0.05,
    singular: float = 0.05,
    passes: int | None = None,
) -> ResolvedRate:
    """Return a compiled function that tracks desired frame velocities within the joint limits.

    Parameters
    ----------
    robot : Robot
        The robot.
    tasks : dict or sequence of dict
        {frame: "twist", "position" or "orientation"}, or a list of such dictionaries in order of
        decreasing priority. The key "center of mass" accepts only "position". Velocities are in
        world axes, at the frame origin; angular velocities come first.
    dt : float
        Time step (s), during which positions must not pass their limits.
    acceleration : float or array_like, shape (nv,), optional
        Maximum joint acceleration (rad/s2 or m/s2).
    weights : float or array_like, optional
        Weights of the squared errors: a scalar, or one value for each row of the tasks. A row with
        weight 0 is ignored.
    damping, singular : float, optional
        Damping near singularities. The damping term is 1e-10, plus damping^2 (1 - (s /
        singular)^2)^2 where s < singular. The measure s, with s^2 = 1 / trace((J J')^-1), is zero
        at a singularity. The linear rows of the Jacobian J are divided by the robot's size.
    passes : int, optional
        Number of active-set iterations for each priority: by default nv + 4, at most 12. With fewer
        iterations, velocities stay within all limits but may not be optimal.

    Returns
    -------
    ResolvedRate
        Callable `step(q, qd, rates, preferred=None, out=None)`, which returns the joint velocities
        for the next time step. The robot's position and velocity limits apply. To change the
        limits, assign to their arrays, for example `step.velocity[:] = 0.5`.

    Raises
    ------
    ArgumentError
        If `robot` is not a Robot.
    InputError
        If `tasks` is not valid, or if an option is out of range or has the wrong shape.
    ModelError
        If a frame in `tasks` does not exist.

    Notes
    -----
    Each priority is a least-squares problem with bounds, which a primal active-set method solves in
    the null space of higher priorities. Acceleration bounds take precedence over velocity bounds,
    and velocity bounds over position bounds. Loop-closure equations have the highest priority.

    Examples
    --------
    >>> robot = chasles.robots.puma560()
    >>> step = chasles.control.resolved_rate(robot, {"tool": "twist"}, dt=0.001)
    >>> qd = step(robot.neutral(), np.zeros(6), [0.0, 0.0, 0.1, 0.0, 0.0, 0.0])
    """
    check_robot("resolved_rate", robot)
    limits = {name: getattr(robot.limits, name) for name in ("lower", "upper", "velocity")}
    options: dict[str, Any] = {"acceleration": acceleration, "weights": weights, "passes": passes}
    options |= {"damping": damping, "singular": singular}
    return ResolvedRate(robot.mechanism, limits, tasks, dt=dt, **options)
