"""Closed loops of one robot: what can be asked of them, and the answers' types."""

from chasles.mechanisms.assembly import assemble
from chasles.mechanisms.closing import Loops
from chasles.mechanisms.dynamics import TOLERANCE, ClosedLoops
from chasles.mechanisms.mobility import check_inertia, mobility
from chasles.mechanisms.reports import (
    ImpossiblePosition,
    LockedMechanism,
    LoopError,
    Mobility,
    OpenLoop,
    OverDetermined,
    SingularPosition,
    UnderActuated,
)
from chasles.mechanisms.structure import Cluster, clusters

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
