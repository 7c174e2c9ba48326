"""What closed loops let move: how many freedoms, which of them not, and with what inertia."""

from typing import Any

import numpy as np

from chasles.errors import InputError, ModelError
from chasles.mechanisms.closing import Loops
from chasles.mechanisms.ranks import RANK, rank_of, spans
from chasles.mechanisms.reports import Mobility
from chasles.mechanisms.structure import weaker_joints

MASSLESS = 1e-13
"""Closed motions that move less than this part of the largest inertia move none."""


def check_inertia(loops: Loops) -> None:
    """Every closed motion must move some inertia, at a position in which nothing is special."""
    A, H = loops.reference_equations, loops.function("mass_matrix")(loops.references)
    free = np.swapaxes(np.linalg.svd(A)[2][:, len(loops.dependent) :], -1, -2)
    scaled = loops.columns[:, None] * H * loops.columns
    if not free.shape[-1]:
        return
    values, vectors = np.linalg.eigh(np.swapaxes(free, -1, -2) @ scaled @ free)
    share = values[:, 0] / np.max(np.abs(scaled), axis=(-1, -2))
    best = int(np.argmax(share))
    if not share[best] > MASSLESS:
        motion = np.abs(free[best] @ vectors[best, :, 0])
        moving = np.flatnonzero(motion > 0.1 * np.max(motion))
        problem = (
            f"{loops.around(moving)} lets {loops.names(moving)} move together without any inertia, "
            "so that a force would accelerate them without bound"
        )
        remedy = "give one of their links a mass and an inertia, or a joint an armature"
        raise ModelError("E-LOOP-017", problem, remedy, part=f"robot {loops.model.name!r}")


def mobility(loops: Loops, q: Any, tolerance: float) -> Mobility:
    """The freedoms left at a closed position (the first reference by default)."""
    at = loops.references[0] if q is None else loops.array("mobility", "q", q, loops.model.nq)
    if at.ndim != 1 or loops.time.ndim:
        problem = (
            f"q must have shape ({loops.model.nq},), not {at.shape}, and the time be one number"
        )
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
    weaker = weaker_joints(loops.model, float(loops.time), at, dict(redundant))
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
    )
