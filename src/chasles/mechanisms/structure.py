"""How the loops of a mechanism hang together, and where a loop joint holds more than it must."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from chasles.algorithms.homogeneous import around, loop_coordinates, loop_matrix
from chasles.mathematics.linear import Vector
from chasles.mechanisms.ranks import rank_of
from chasles.mechanisms.scales import column_scales, row_scales
from chasles.model import LOOP_JOINTS, Model
from chasles.model.build import connected
from chasles.model.spaces import loop_rows

_OFFERED = tuple(
    kind
    for kind in sorted(LOOP_JOINTS, key=lambda kind: -LOOP_JOINTS[kind].nv)
    if LOOP_JOINTS[kind].nv and not LOOP_JOINTS[kind].data and LOOP_JOINTS[kind].bounds != "none"
)
"""Joint types that may take the place of a stronger one, those with most freedoms first: all that
need no number of their own."""


class Cluster(NamedTuple):
    """Loops and couplings that share joints, directly or through others, and these joints."""

    loops: tuple[str, ...]
    joints: tuple[str, ...]


def clusters(model: Model) -> tuple[Cluster, ...]:
    """The smallest sets of loops and couplings of which no two share a joint (Featherstone 8.9).

    K has no entries between them, so that each is solved by itself; joints in none are free.
    """
    found: list[tuple[set[str], set[int]]] = []
    for constraint in model.constraints:
        names, movers = {constraint.name}, model.owners(constraint.bodies)
        apart = []
        for cluster in found:
            if cluster[1] & movers:
                names, movers = names | cluster[0], movers | cluster[1]
            else:
                apart.append(cluster)
        found = [*apart, (names, movers)]
    order = [constraint.name for constraint in model.constraints]
    found.sort(key=lambda cluster: min(map(order.index, cluster[0])))
    return tuple(
        Cluster(
            tuple(name for name in order if name in names),
            tuple(model.bodies[i].data.name for i in model.movers if i in movers),
        )
        for names, movers in found
    )


def weaker_joints(model: Model, t: float, q: np.ndarray, spare: dict[str, int]) -> dict[str, str]:
    """For loops with spare equations at t and q, the weakest joint type that leaves the rank.

    What it transmits is a part of what the loop's own joint does, so that it allows every motion
    that this allows (Featherstone 2008, section 8.10). Taken together they still leave the rank;
    "free" means that the loop says nothing. Loops without such a type are not among them.
    """
    if not any(spare.values()):
        return {}
    model = model.at(t)
    rank, offered = _rank(model, q), {}
    for k in reversed(range(len(model.loops))):
        loop = model.loops[k].data
        for kind in _OFFERED if spare[loop.name] else ():
            if LOOP_JOINTS[kind].nv <= model.loops[k].joint.nv:
                break
            loops = list(model.source.loops)
            loops[k] = replace(loop, kind=kind, custom=None)
            source = replace(model.source, loops=tuple(loops))
            trial = connected(source, mimic=model.mimics).at(t)
            if _within(trial, model, k, q) and _rank(trial, q) == rank:
                model, offered[loop.name] = trial, kind
                break
    return offered


def _within(trial: Model, model: Model, k: int, q: np.ndarray) -> bool:
    """Whether the forces that loop k transmits in one model are among those in the other."""
    some, all_of = _transmitted(trial, k, q), _transmitted(model, k, q)
    left = some - all_of @ np.linalg.lstsq(all_of, some, rcond=None)[0]
    return bool(np.max(np.abs(left), initial=0.0) < 1e-9 * max(1.0, np.max(np.abs(all_of))))


def _transmitted(model: Model, k: int, q: np.ndarray) -> np.ndarray:
    """T of loop k, its columns in coordinates of the successor body: (6, rows)."""
    loop = model.loops[k]
    T = loop.joint.constraint(loop_coordinates(loop, around(model, loop, _split(model, q))))
    columns = [[*(loop.successor.placement.T @ f)] for f in T.columns]
    return np.array(columns, dtype=float).reshape(len(columns), 6).T


def _rank(model: Model, q: np.ndarray) -> int:
    """The rank of the dimensionless matrix of all loops and couplings."""
    K = loop_rows(model, loop_matrix(model, _split(model, q)), model.movers)
    A = np.array(K, dtype=float).reshape(model.loop_rows, model.nv)
    return rank_of(row_scales(model)[:, None] * A * column_scales(model))[0]


def _split(model: Model, q: np.ndarray) -> dict[int, Vector]:
    return model.positions(q.tolist())
