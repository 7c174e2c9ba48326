"""Checks of inertias against the shapes of their links, at uniform density."""

from collections.abc import Iterator

import numpy as np

from chasles.lint.sheet import Found, Link, Sheet
from chasles.lint.solids import Solid, together

MARGIN = 0.25
"""Of the largest edge of a link's box: how far out a centre of mass may be."""

SMALLEST = 0.2
"""The radius of gyration beside that of the uniform body: a twenty-fifth of its moments."""

LARGEST = 1.2
"""The radius of gyration beside the distance of the farthest corner, which no mass exceeds."""

VOLUMES = 5.0, 30_000.0
"""kg/m3 of a link's shapes together."""


def outside(sheet: Sheet) -> Iterator[Found]:
    """Centres of mass outside the box around all shapes."""
    for link, body in _with_shapes(sheet):
        low, high = np.min(body.corners, axis=0), np.max(body.corners, axis=0)
        gap = np.maximum(low - link.center, link.center - high)
        if np.max(gap) > MARGIN * np.max(high - low):
            what = f"its centre of mass is {1e3 * np.max(gap):.3g} mm outside its shapes"
            yield Found(link.part, link.where, what)


def gyration(sheet: Sheet) -> Iterator[Found]:
    """Radii of gyration that mass within the shapes cannot have, or hardly."""
    for link, body in _with_shapes(sheet):
        if not link.mass or not np.sum(link.principal) > 0.0:
            continue
        own = np.sqrt(np.sum(link.principal) / (2.0 * link.mass))
        uniform = np.sqrt(np.trace(body.moments) / (2.0 * body.volume))
        farthest = np.max(np.linalg.norm(body.corners - link.center, axis=1))
        if own > LARGEST * farthest or own < SMALLEST * uniform:
            kind = "meshes" if body.mesh else "shapes"
            what = f"radius of gyration {1e3 * own:.3g} mm, and {1e3 * uniform:.3g} mm of its"
            yield Found(link.part, link.where, f"{what} {kind} at uniform density")


def volume(sheet: Sheet) -> Iterator[Found]:
    """Masses that the volume of the shapes cannot have."""
    for link, body in _with_shapes(sheet):
        density = (link.mass or 0.0) / body.volume
        if not VOLUMES[0] <= density <= VOLUMES[1]:
            what = f"{link.mass:g} kg in {1e6 * body.volume:.3g} cm3 of shapes"
            yield Found(link.part, link.where, f"{what}, {density:.2g} kg/m3")


def _with_shapes(sheet: Sheet) -> Iterator[tuple[Link, Solid]]:
    """Links that have both a mass and a volume."""
    for link in sheet.links:
        body = together(link.shapes) if link.mass and link.mass > 0.0 else None
        if body is not None:
            yield link, body
