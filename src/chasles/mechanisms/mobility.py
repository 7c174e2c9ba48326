"""Mobility of closed loops: degrees of freedom, clusters of loops, equivalent mechanisms."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from chasles.algorithms.homogeneous import around, loop_coordinates, loop_matrix
from chasles.errors import InputError
from chasles.mechanisms.closing import Loops
from chasles.mechanisms.equations import clustered, column_scales, row_scales
from chasles.mechanisms.mechanism import Mechanism
from chasles.mechanisms.ranks import RANK, rank_of, spans
from chasles.mechanisms.reports import LoopError, Mobility, finite
from chasles.model import LOOP_JOINTS, Model
from chasles.model.build import with_loop
from chasles.model.spaces import loop_rows

STATES = 8

_OFFERED = tuple(
    kind
    for kind in sorted(LOOP_JOINTS, key=lambda kind: -LOOP_JOINTS[kind].nv)
    if LOOP_JOINTS[kind].nv and not LOOP_JOINTS[kind].data and LOOP_JOINTS[kind].bounds != "none"
)
"""Joint types that may replace a more restrictive loop joint: all types without parameters.

Types with the most degrees of freedom come first.
"""


def mobility(loops: Loops, q: Any, tolerance: float) -> Mobility:
    """Return the mobility at the closed configuration q (default: a reference configuration)."""
    at = loops.references[0] if q is None else finite("mobility", "q", q, loops.model.nq)
    if at.ndim != 1 or loops.time.ndim:
        size = loops.model.nq
        problem = f"q must have shape ({size},), not {at.shape}, and t must be a single number"
        raise InputError("E-LOOP-018", problem, part="mobility")
    loops.check_closed("mobility", at, tolerance)
    A = loops.matrix(at)
    rank, values = rank_of(A)
    redundant, first, before = [], 0, 0
    for constraint in loops.model.constraints:
        first += constraint.rows
        upto, _ = rank_of(A[:first], values[0])
        redundant.append((constraint.name, constraint.rows - (upto - before)))
        before = upto
    parts = values / max(values[0], 1e-300)
    still = loops.immobile if q is None else np.flatnonzero(spans(A, rank) <= RANK)
    share = loops.tolerance if loops.misfits else RANK
    weaker = weaker_joints(loops.model, float(loops.time), at, dict(redundant), share)
    return Mobility(
        loops.model.nv - rank,
        loops.model.nv,
        rank,
        loops.model.loop_rows,
        tuple(redundant),
        RANK,
        float(parts[rank - 1]) if rank else 0.0,
        float(max(parts[rank:], default=0.0)),
        tuple(coupling.name for coupling in loops.model.couplings),
        tuple((loop.name, weaker[loop.name]) for loop in loops.model.loops if loop.name in weaker),
        tuple(loops.freedoms[k] for k in still),
        loops.misfits,
        loops.model.nv - rank_of(loops.positions.matrix(at))[0],
    )


# Clusters of loops ----------------------------------------------------------------------------


class Cluster(NamedTuple):
    """Names of loops and couplings that share joints, and the names of all their joints."""

    loops: tuple[str, ...]
    joints: tuple[str, ...]


def clusters(model: Model) -> tuple[Cluster, ...]:
    """Return the clusters of loops and couplings that share joints."""
    return tuple(
        Cluster(
            tuple(model.constraints[k].name for k in numbers),
            tuple(model.bodies[i].data.name for i in model.movers if i in movers),
        )
        for numbers, movers in clustered(model)
    )


def weaker_joints(
    model: Model, t: float, q: np.ndarray, spare: dict[str, int], share: float
) -> dict[str, str]:
    """Return the least restrictive joint type for each loop with redundant equations.

    These types do not change the rank of the loop matrix. Each type transmits a subset of the
    forces of the original joint (Featherstone 2008, section 8.10). "free" means that all equations
    of the loop are redundant. For `share`, see `rank_of`.
    """
    if not any(spare.values()):
        return {}
    model, scales, offered = model.at(t), column_scales(model), {}
    loops = [replace(model, loops=(loop,), couplings=()) for loop in model.loops]
    blocks = [_block(part, q) * scales for part in (*loops, replace(model, loops=()))]
    rank = rank_of(np.concatenate(blocks), share=share)[0]
    for k in reversed(range(len(model.loops))):
        loop = model.loops[k].data
        for kind in _OFFERED if spare[loop.name] else ():
            if LOOP_JOINTS[kind].nv <= model.loops[k].joint.nv:
                break
            trial = with_loop(model, replace(loop, kind=kind, custom=None))
            if not _within(trial, loops[k], q):
                continue
            others = [*blocks[:k], _block(trial, q) * scales, *blocks[k + 1 :]]
            if rank_of(np.concatenate(others), share=share)[0] == rank:
                blocks, offered[loop.name] = others, kind
                break
    return offered


def _within(trial: Model, model: Model, q: np.ndarray) -> bool:
    """Return True if `model`'s loop joint transmits every force that `trial`'s loop joint does."""
    some, all_of = _transmitted(trial, q), _transmitted(model, q)
    left = some - all_of @ np.linalg.lstsq(all_of, some, rcond=None)[0]
    return bool(np.max(np.abs(left), initial=0.0) < 1e-9 * max(1.0, np.max(np.abs(all_of))))


def _transmitted(model: Model, q: np.ndarray) -> np.ndarray:
    """Return a basis (6, rows) of the forces that the model's only loop joint transmits.

    Forces are expressed in the frame of the loop joint's successor body.
    """
    (loop,) = model.loops
    T = loop.joint.constraint(
        loop_coordinates(loop, around(model, loop, model.positions(q.tolist())))
    )
    columns = [[*(loop.successor.placement.T @ f)] for f in T.columns]
    return np.array(columns, dtype=float).reshape(len(columns), 6).T


def _block(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the constraint Jacobian of loops and couplings, with dimensionless rows."""
    K = loop_rows(model, loop_matrix(model, model.positions(q.tolist())), model.movers)
    A = np.array(K, dtype=float).reshape(model.loop_rows, model.nv)
    return np.asarray(row_scales(model)[:, None] * A)


# Comparison ---------------------------------------------------------------------------------------


def equivalent(a: Mechanism, b: Mechanism, tolerance: float, rng: np.random.Generator) -> bool:
    """Return True if two mechanisms with the same joints have the same equation of motion."""
    if a.rows or b.rows:
        return _closed_alike(a, b, tolerance, rng)
    q = a.integrate(a.neutral(), rng.uniform(-np.pi, np.pi, size=(STATES, a.nv)))
    qd, qdd = rng.normal(size=(2, STATES, a.nv))
    asked = (("inverse_dynamics", q, qd, qdd), ("mass_matrix", q))
    return all(_near(a.call(*each), b.call(*each), tolerance) for each in asked)


def _closed_alike(a: Mechanism, b: Mechanism, tolerance: float, rng: np.random.Generator) -> bool:
    """Return True if two mechanisms, at least one with loops, have the same accelerations."""
    loops = (a if a.rows else b).closing
    q = loops.solve(loops.references, loops.columns).q
    tau = rng.normal(size=(len(q), a.nv))
    try:
        n, other = (int(mobility(one.loops, None, 1e-9)) for one in (a, b))
        if n != other:
            return False
        qd = a.closing.complete(q, rng.normal(size=(len(q), n)), None, 1e-9)
        x, y = (one.call("forward_dynamics", q, qd, tau) for one in (a, b))
    except LoopError:
        return False
    return _near(x, y, tolerance)


def _near(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    error, size = (np.max(np.abs(x), initial=0.0) for x in (a - b, a))
    return bool(error <= tolerance * size)
