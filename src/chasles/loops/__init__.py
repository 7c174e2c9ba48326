"""Closed loops of one robot: what can be asked of them, and the answers' types."""

from chasles.loops.closing import Loops
from chasles.loops.dynamics import ClosedLoops
from chasles.loops.reports import (
    ImpossiblePosition,
    LockedMechanism,
    LoopError,
    Mobility,
    OpenLoop,
    SingularPosition,
    UnderActuated,
)

__all__ = [
    "ClosedLoops",
    "ImpossiblePosition",
    "LockedMechanism",
    "LoopError",
    "Loops",
    "Mobility",
    "OpenLoop",
    "SingularPosition",
    "UnderActuated",
]
