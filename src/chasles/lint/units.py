"""Checks of units: bodies denser than metal or lighter than air, kilometres for metres."""

import math
from collections.abc import Iterator

import numpy as np

from chasles.lint.sheet import Found, Sheet

LIGHTEST = 5.0
"""kg/m3, of the uniform box with the same mass and moments; foam has 20, air 1.2."""

DENSEST = 22_600.0
"""kg/m3: osmium. Of all bodies that are nowhere denser the ball has the smallest moments."""

FAR = 30.0
"""m: from one joint to the next, or to a centre of mass."""


def density(sheet: Sheet) -> Iterator[Found]:
    """Mass and moments that belong to no material."""
    for link in sheet.links:
        if not link.mass or link.mass < 0.0 or not np.sum(link.principal) > 0.0:
            continue
        radius = math.sqrt(5.0 / 6.0 * float(np.sum(link.principal)) / link.mass)
        ball = 4.0 / 3.0 * math.pi * radius * radius * radius
        if link.mass > DENSEST * ball:
            what = f"{link.mass:g} kg with such moments fits into a ball of {1e3 * radius:.3g} mm"
            yield Found(link.part, link.where, f"{what} radius, {_density(link.mass, ball)}")
        elif link.extended:
            edges = np.sqrt(12.0 * link.second_moments / link.mass)
            box = float(np.prod(edges))
            if link.mass < LIGHTEST * box:
                size = " x ".join(f"{1e3 * edge:.4g}" for edge in edges[::-1])
                what = f"{link.mass:g} kg with such moments is a box of {size} mm"
                yield Found(link.part, link.where, f"{what}, {_density(link.mass, box)}")


def _density(mass: float, volume: float) -> str:
    return f"{mass / volume if volume else math.inf:.2g} kg/m3"


def size(sheet: Sheet) -> Iterator[Found]:
    """Joints, centres of mass and shapes that are tens of metres away."""
    for joint in sheet.joints:
        distance = math.hypot(*joint.position)
        if distance > FAR:
            what = f"it is {distance:g} m from its parent's frame"
            yield Found(joint.part, joint.where, what)
    for link in sheet.links:
        distance = math.hypot(*link.center)
        if link.mass and distance > FAR:
            yield Found(link.part, link.where, f"its centre of mass is {distance:g} m away")
        for shape in link.shapes:
            edge = float(np.max(np.ptp(shape.corners, axis=0)))
            if edge > FAR:
                yield Found(link.part, link.where, f"a shape of it measures {edge:.3g} m")
                break
