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
    q, qd, tau, **options
        As in `Robot.simulate`.
    compiled, device, threads : optional
        As in `Robot.simulate`; `compiled` is False by default. The integrator "time-stepping" needs
        compiled=None, because it is always compiled.

    Returns
    -------
    Trajectory
        Times, positions, velocities and records of contacts, events and sensors.

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
