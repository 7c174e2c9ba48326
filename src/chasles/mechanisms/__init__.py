"""Mechanisms: trees, closed loops and time-dependent robots with the same interface."""

from chasles.mechanisms.closed import Closed
from chasles.mechanisms.closing import Chart, assemble
from chasles.mechanisms.dynamics import TOLERANCE
from chasles.mechanisms.mechanism import KINDS, Coordinates, Mechanism, Named, Timed, of
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
    """Time-dependent mechanism with closed loops."""


KINDS.update(
    {
        (False, False): Mechanism,
        (False, True): Timed,
        (True, False): Closed,
        (True, True): TimedClosed,
    }
)


def require_tree(model: Model, what: str, remedy: str, *, loops: bool = False) -> None:
    """Raise an error if a model depends on time, or if it has loops and `loops` is False."""
    if model.timed or (model.loop_rows and not loops):
        fault = "depends on time" if model.timed else "has closed loops"
        problem = f"robot {model.name!r} {fault}"
        raise ModelError("E-LOOP-031", problem, remedy, part=what)
