"""Simulation of a robot from an initial state."""

from typing import Unpack

from chasles.motion import simulation
from chasles.motion.contract import Machine
from chasles.motion.drivers.loops import ClosureFunction
from chasles.motion.keywords import shown
from chasles.motion.numbers import Numbers
from chasles.motion.options import Forces, Options
from chasles.motion.records import End, Event, Occurrence, Trajectory
from chasles.motion.steps.integrators import INTEGRATORS

__all__ = ["INTEGRATORS", "ClosureFunction", "End", "Event", "Occurrence", "Trajectory", "simulate"]


@shown(Options, simulation.DEFAULTS)
def simulate(
    robot: Machine,
    q: Numbers,
    qd: Numbers,
    tau: Forces = None,
    *,
    compiled: bool | None = False,
    device: str | None = None,
    threads: int | None = None,
    **options: Unpack[Options],
) -> Trajectory:
    """Simulate the motion of a robot from an initial state, by default without compilation.

    Parameters
    ----------
    robot : Robot
        The robot.
    q, qd, tau : array_like
        As in `Robot.simulate`.
    **options
        As in `Robot.simulate`.
    compiled, device, threads : optional
        As in `Robot.simulate`; `compiled` is False by default. The integrator "time-stepping" needs
        compiled=None, because it is always compiled.

    Returns
    -------
    Trajectory
        Times, positions, velocities and records of contacts, events and sensors.

    Raises
    ------
    ArgumentError
        If `robot` is not a Robot, if a keyword argument is unknown, if options cannot be combined,
        or if an option has the wrong type.
    InputError
        If an array has the wrong shape or is not finite, if an option is unknown or out of range,
        or if a controller or an event returns an invalid value.
    OpenLoop
        If `q` or `qd` violates the loop constraints.
    NotFiniteError
        If the accelerations are not finite.
    ModelError
        If the motion must be compiled (`compiled`, `device`, time-stepping) but cannot be, or if an
        option does not support the robot.
    MissingPackageError
        If a package that an option needs is not installed.

    Examples
    --------
    >>> import chasles
    >>> run = chasles.simulate(chasles.robots.planar(2), [0.0, 0.5], [0.0, 0.0], duration=0.01)
    >>> run.t.shape
    (11,)
    """
    return simulation.simulate(
        robot, q, qd, tau, compiled=compiled, device=device, threads=threads, **options
    )
