"""Closed loops of one robot: what can be asked of them, and the answers' types."""

from chasles.loops.closing import Loops
from chasles.loops.reports import (
    ImpossiblePosition,
    LoopError,
    Mobility,
    OpenLoop,
    SingularPosition,
)

__all__ = [
    "ImpossiblePosition",
    "LoopError",
    "Loops",
    "Mobility",
    "OpenLoop",
    "SingularPosition",
]
