"""Mechanisms: trees, closed loops and motion in time behind one contract."""

from chasles.mechanisms.assembly import assemble
from chasles.mechanisms.closed import Closed
from chasles.mechanisms.closing import Loops
from chasles.mechanisms.contract import Coordinates, Mechanism
from chasles.mechanisms.dynamics import TOLERANCE
from chasles.mechanisms.equivalence import equivalent
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
from chasles.mechanisms.timed import Timed
from chasles.mechanisms.tree import Tree
from chasles.model import Model, ModelError

__all__ = [
    "TOLERANCE",
    "Cluster",
    "Coordinates",
    "ImpossiblePosition",
    "LockedMechanism",
    "LoopError",
    "Loops",
    "Mechanism",
    "Mobility",
    "OpenLoop",
    "OverDetermined",
    "SingularPosition",
    "UnderActuated",
    "assemble",
    "clusters",
    "equivalent",
    "mobility",
    "of",
    "require_tree",
]


def of(model: Model) -> Mechanism:
    """The mechanism of a model: the one place that asks which kind it is."""
    kind = Closed(model) if model.loop_rows else Tree(model)
    if model.idle and model.source.closure is None:
        check_inertia(kind.loops)
    return Timed(kind) if model.timed else kind


def require_tree(model: Model, what: str, remedy: str, *, loops: bool = False) -> None:
    """Refuse a model that has loops (unless they are allowed) or depends on time."""
    if model.timed or (model.loop_rows and not loops):
        problem = f"robot {model.name!r} has loops or depends on time"
        raise ModelError("E-LOOP-031", problem, remedy, part=what)
