"""Checks of a mechanism's physics: inertias that no body can have, freedoms without inertia."""

import math
import random

import numpy as np

from chasles.mathematics.linear import Matrix, factor_ltdl
from chasles.mathematics.spatial import ArticulatedInertia, RigidInertia
from chasles.model.description import Description, LinkData, ModelError
from chasles.model.joints import diagonal
from chasles.model.model import WORLD, Model

_TOLERANCE = 1e-6
"""Relative: published inertias are printed with few digits, so equalities hold only roughly."""

_SINGULAR = 1e-13
"""A freedom whose inertia is this small beside that of everything it carries has none."""


def check_inertias(source: Description, model: Model, *, strict: bool) -> tuple[str, ...]:
    """A note for each link whose inertia is impossible; with `strict` the first is an error."""
    notes = []
    for link in source.links:
        if not all(map(math.isfinite, (link.inertia.m, *link.inertia.h, *link.inertia.I))):
            raise ModelError(f"{_name(link)}: inertia is not finite; give finite numbers")
        fault = _fault(link.inertia)
        if fault is None and not any((link.inertia.m, *link.inertia.I)) and _carries(model, link):
            fault = "a moving link has zero inertia; it is legal only because others move with it"
        if fault is not None:
            if strict:
                raise ModelError(f"{_name(link)}: {fault}")
            notes.append(f"{_name(link)}: {fault}")
    return tuple(notes)


def check_regular(model: Model) -> None:
    """Every freedom must move some inertia, or the mass matrix is singular.

    Pivots of the articulated-body recursion at an arbitrary configuration; a pivot that vanishes
    there vanishes everywhere but on a set of measure zero.
    """
    rng = random.Random(1)
    zero = ArticulatedInertia.zero()
    A = {i: ArticulatedInertia.of(I) for i, _, _, I in model.outward()} | {WORLD: zero}
    rigid = dict(A)
    for i, p, joint, _ in model.inward():
        q = joint.integrate(joint.neutral(), _random(rng, joint.nv))
        X, S = joint.transform(q), joint.subspace(q)
        U = A[i] @ S
        D = S.T @ U + diagonal(joint.armature)
        whole = S.T @ (rigid[i] @ S) + diagonal(joint.armature)
        _, pivots = factor_ltdl(_safe(D).rows)
        for k, pivot in enumerate(pivots):
            if not abs(pivot) > _SINGULAR * abs(whole[k, k]) or not abs(whole[k, k]) > 0.0:
                data = model.bodies[i].data
                at = f"{data.where}: " if data.where else ""
                raise ModelError(
                    f"{at}joint {data.name!r} moves no inertia, which makes the mass matrix "
                    f"singular; give link {data.child!r} a mass and an inertia, give the joint an "
                    "armature, or make the joint fixed"
                )
        inverse = Matrix(tuple(map(tuple, np.linalg.inv(np.array(D.rows)).tolist())))
        K = type(U)(tuple((U @ inverse).columns))
        A[p] = A[p] + X.T @ A[i].without(U, K)
        rigid[p] = rigid[p] + X.T @ rigid[i]


def _safe(D: Matrix) -> Matrix:
    """D with its exact zeros on the diagonal replaced, so that the factorisation can go on."""
    rows = [list(row) for row in D.rows]
    for k, row in enumerate(rows):
        row[k] = row[k] if row[k] != 0.0 else 1e-300
    return Matrix(tuple(map(tuple, rows)))


def _random(rng: random.Random, n: int):  # type: ignore[no-untyped-def]
    from chasles.mathematics.linear import Vector

    return Vector(tuple(rng.uniform(-1.0, 1.0) for _ in range(n)))


def _carries(model: Model, link: LinkData) -> bool:
    """Whether the link is a body's own link: it has a moving joint of its own."""
    return any(body.name == link.name for body in model.bodies)


def _name(link: LinkData) -> str:
    return f"{link.where}: link {link.name!r}" if link.where else f"link {link.name!r}"


def _fault(inertia: RigidInertia) -> str | None:
    """What is impossible about an inertia, or None."""
    m = inertia.m
    if m < 0.0:
        return f"mass {m:g} kg is negative"
    about_center = _about_center(inertia)
    if m == 0.0:
        return "inertia without mass; give the link a mass" if np.any(about_center) else None
    moments = np.linalg.eigvalsh(about_center)
    scale = max(abs(moments[-1]), 1e-300)
    if moments[0] < -_TOLERANCE * scale:
        return f"rotational inertia is not positive definite (smallest moment {moments[0]:.3g})"
    if moments[0] + moments[1] < moments[2] - _TOLERANCE * scale:
        return (
            "principal moments violate the triangle inequality "
            f"({moments[0]:.3g} + {moments[1]:.3g} < {moments[2]:.3g})"
        )
    if not np.any(about_center):
        return None
    if moments[0] <= 0.0:
        return f"rotational inertia is singular (smallest moment {moments[0]:.3g})"
    return None


def _about_center(inertia: RigidInertia) -> np.ndarray:
    I = np.array(inertia.I.matrix().rows, dtype=float)  # noqa: E741
    if inertia.m == 0.0:
        return I
    h = np.array(list(inertia.h), dtype=float)
    return I - (h @ h * np.eye(3) - np.outer(h, h)) / inertia.m
