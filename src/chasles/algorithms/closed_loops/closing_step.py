"""How the dependent coordinates of closed loops follow the independent ones."""

from functools import reduce
from operator import mul

from chasles.algorithms.closed_loops.elimination import eliminated
from chasles.algorithms.closed_loops.equations import constraints, health, kept
from chasles.algorithms.homogeneous.loop_rate import loop_rate
from chasles.algorithms.homogeneous.loop_residual import loop_residual
from chasles.expr import less, select
from chasles.mathematics.linear import Vector
from chasles.model.model import Model
from chasles.model.spaces import (
    Health,
    Position,
    TreeVector,
    Velocity,
    loop_entries,
    stack,
    tree_places,
)


def closing_step(model: Model, q: Position, qd: Velocity) -> tuple[TreeVector, TreeVector, Health]:
    """Newton's step that closes the loops, and rates that keep them closed (Eq 8.48-8.51).

    K d = -residual with d = 0 in the independent coordinates; of qd these count, the others are
    G yd, and what K qd = b adds where the mechanism is driven in time. The margin has the sign of
    the pivots' product beside that of the closure's choice, which changes where the motion passes a
    position that is singular for this choice.
    """
    place, v = tree_places(model), stack(qd, model.in_tree_order)
    error = kept(model, loop_entries(loop_residual(model, q)))
    K = constraints(model, q)
    solved = eliminated(model, K, -error)
    driven = eliminated(model, K, kept(model, loop_entries(loop_rate(model, q))))
    yd = Vector(tuple(v[place[c]] for c in model.independent))
    gap, margin = health(model, q, solved.margins)
    beyond = less(reduce(mul, solved.ratios, 1.0), 0.0)
    return solved.g, solved.G @ yd + driven.g, Vector.of(gap, select(beyond, -margin, margin))
