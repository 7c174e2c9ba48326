"""Mechanisms: trees, closed loops and time-dependent robots behind one interface."""

from chasles.mechanisms.closed import Closed
from chasles.mechanisms.closing import Chart, assemble
from chasles.mechanisms.dynamics import TOLERANCE
from chasles.mechanisms.mechanism import Coordinates, Mechanism, Named, Timed
from chasles.mechanisms.mobility import Cluster, clusters, equivalent, mobility
from chasles.mechanisms.ranks import CLOSED
from chasles.mechanisms.reports import (
    ImpossiblePosition,
    LoopError,
    Mobility,
    OpenLoop,
    SingularPosition,
)
from chasles.model import Model, ModelError

__all__ = [
    "CLOSED",
    "TOLERANCE",
    "Chart",
    "Cluster",
    "Coordinates",
    "ImpossiblePosition",
    "LoopError",
    "Mechanism",
    "Mobility",
    "Named",
    "OpenLoop",
    "SingularPosition",
    "assemble",
    "clusters",
    "equivalent",
    "mobility",
    "of",
    "require_tree",
]


class TimedClosed(Timed, Closed):
    """Mechanism with closed loops that depends on time."""


def of(model: Model) -> Mechanism:
    """Return the mechanism for a model; its class depends on loops and time dependence."""
    still, moving = (Closed, TimedClosed) if model.loop_rows else (Mechanism, Timed)
    return (moving if model.timed else still)(model)


def require_tree(model: Model, what: str, remedy: str, *, loops: bool = False) -> None:
    """Raise an error for a model that has loops (unless allowed) or depends on time."""
    if model.timed or (model.loop_rows and not loops):
        problem = f"robot {model.name!r} has loops or depends on time"
        raise ModelError("E-LOOP-031", problem, remedy, part=what)
