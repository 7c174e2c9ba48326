"""Closed loops of one robot: what can be asked of them, and the answers' types."""

from chasles.loops.assembly import assemble
from chasles.loops.closing import Loops
from chasles.loops.dynamics import TOLERANCE, ClosedLoops
from chasles.loops.mobility import check_inertia, mobility
from chasles.loops.reports import (
    ImpossiblePosition,
    LockedMechanism,
    LoopError,
    Mobility,
    OpenLoop,
    OverDetermined,
    SingularPosition,
    UnderActuated,
)
from chasles.loops.structure import Cluster, clusters

__all__ = [
    "TOLERANCE",
    "ClosedLoops",
    "Cluster",
    "ImpossiblePosition",
    "LockedMechanism",
    "LoopError",
    "Loops",
    "Mobility",
    "OpenLoop",
    "OverDetermined",
    "SingularPosition",
    "UnderActuated",
    "assemble",
    "check_inertia",
    "clusters",
    "mobility",
]
