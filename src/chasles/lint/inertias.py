"""Checks of inertias: what no body can have, what is missing, what was copied."""

from collections.abc import Callable, Iterator

import numpy as np

from chasles.lint.sheet import Found, Joint, Link, Sheet
from chasles.model.validate import inertia_fault

Check = Callable[[Sheet], Iterator[Found]]


def impossible(check: str) -> Check:
    """Links with one of the faults that `chasles.model.validate` finds."""

    def find(sheet: Sheet) -> Iterator[Found]:
        for link in sheet.links:
            fault = None if link.mass is None else inertia_fault(link.mass, link.moments)
            if fault is not None and fault.check == check:
                yield Found(link.part, link.where, fault.what.partition(";")[0])

    return find


def zero_mass(sheet: Sheet) -> Iterator[Found]:
    """Moving links without mass that carry none either."""
    carriers = sheet.carriers(fixed=False)
    for link, joint in _weightless(sheet):
        if link.name not in carriers:
            what = f"joint {joint.name!r} moves it, and neither it nor what it carries has a mass"
            yield Found(link.part, link.where, what)


def virtual(sheet: Sheet) -> Iterator[Found]:
    """Moving links without mass that other joints connect to links with mass."""
    carriers = sheet.carriers(fixed=False) - sheet.carriers(fixed=True)
    for link, joint in _weightless(sheet):
        if link.name in carriers:
            what = f"joint {joint.name!r} moves it, and only what it carries has a mass"
            yield Found(link.part, link.where, what)


def _weightless(sheet: Sheet) -> Iterator[tuple[Link, Joint]]:
    for link in sheet.links:
        joint = sheet.moved.get(link.name)
        none = not link.mass and not np.any(link.moments) and not link.meant_massless
        if joint is not None and none:
            yield link, joint


def point_mass(sheet: Sheet) -> Iterator[Found]:
    """Masses without any rotational inertia."""
    for link in sheet.links:
        if link.mass and link.mass > 0.0 and not np.any(link.moments):
            yield Found(link.part, link.where, f"{link.mass:g} kg without rotational inertia")


def placeholder(sheet: Sheet) -> Iterator[Found]:
    """The unit matrix for an inertia: a ball of 1.6 m radius, if it weighs 1 kg."""
    for link in sheet.links:
        if link.mass and np.array_equal(link.moments, np.eye(3)):
            yield Found(link.part, link.where, f"{link.mass:g} kg with 1 kg m2 about every axis")


def copied(sheet: Sheet) -> Iterator[Found]:
    """Links that have every number of their inertia from the link that carries them."""
    links = {link.name: link for link in sheet.links}
    for joint in sheet.joints:
        parent, child = links.get(joint.parent or ""), links.get(joint.child)
        if parent is None or child is None or parent is child:
            continue
        if child.mass and np.any(child.moments) and _same(parent, child):
            what = f"mass, centre and inertia are those of {parent.part}, to the last digit"
            yield Found(child.part, child.where, what)


def _same(a: Link, b: Link) -> bool:
    return a.mass == b.mass and all(
        np.array_equal(x, y)
        for x, y in ((a.moments, b.moments), (a.center, b.center), (a.axes, b.axes))
    )
