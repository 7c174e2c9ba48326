"""Simulation: the motion of a robot from a state under forces."""

from typing import Unpack

from chasles.motion import simulation
from chasles.motion.contract import Array, Machine
from chasles.motion.drivers.loops import ClosureFunction
from chasles.motion.keywords import shown
from chasles.motion.options import Options
from chasles.motion.records import End, Event, Occurrence, Trajectory
from chasles.motion.steps.integrators import INTEGRATORS

__all__ = ["INTEGRATORS", "ClosureFunction", "End", "Event", "Occurrence", "Trajectory", "simulate"]


@shown(Options, simulation.DEFAULTS)
def simulate(
    robot: Machine,
    q: Array,
    qd: Array,
    *,
    compiled: bool | None = False,
    device: str | None = None,
    threads: int | None = None,
    **options: Unpack[Options],
) -> Trajectory:
    """Return `robot.simulate(q, qd, ...)` with all its options, by default not compiled."""
    return simulation.simulate(
        robot, q, qd, compiled=compiled, device=device, threads=threads, **options
    )
