"""Checks of left against right: parts whose names are twins should be mirror images."""

import re
from collections.abc import Iterable, Iterator

import numpy as np

from chasles.lint.sheet import Found, Link, Sheet

TOLERANCE = 0.05
"""Relative: twins that were measured, or weighed, differ by less."""

_WORDS = (("left", "right"), ("Left", "Right"), ("LEFT", "RIGHT"))
_LETTERS = (("l", "r"), ("L", "R"))


def twins(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of names, left and right, that differ in that only, everywhere in the name."""
    known = set(names)
    for name in sorted(known):
        for right in _mirrored(name):
            if right != name and right in known:
                yield name, right
                break


def _mirrored(name: str) -> Iterator[str]:
    """A left name with right for left: as a word, or as a letter or two apart from the others."""
    for left, right in _WORDS:
        if left in name:
            yield name.replace(left, right)
    for left, right in _LETTERS:
        yield re.sub(rf"(?<![A-Za-z]){left}(?![A-Za-z])", right, name)
        yield re.sub(rf"(?<![A-Za-z]){left}(?=[FHBMfhbm]?(?![A-Za-z]))", right, name)
        yield re.sub(rf"(?<![A-Za-z])([FHBMfhbm]){left}(?![A-Za-z])", rf"\g<1>{right}", name)
        yield re.sub(rf"(?<![A-Za-z]){left}(?=[A-Z][a-z])", right, name)


def inertia(sheet: Sheet) -> Iterator[Found]:
    """Twins that no reflection takes into each other, whatever frames they have.

    Masses, distances of centres from the origin and principal moments do not depend on axes.
    """
    links = {link.name: link for link in sheet.links}
    for left, right in twins(links):
        a, b = links[left], links[right]
        if not a.mass or not b.mass:
            if bool(a.mass) != bool(b.mass):
                yield a.found(f"it has {_kg(a)}, and {b.part} has {_kg(b)}")
            continue
        differences = list(_differences(a, b))
        if differences:
            yield b.found(f"unlike {a.part} it has {', '.join(differences)}")


def _kg(link: Link) -> str:
    return f"{link.mass:g} kg" if link.mass else "no mass"


def _differences(a: Link, b: Link) -> Iterator[str]:
    assert a.mass, "only what has a mass is compared"
    assert b.mass, "only what has a mass is compared"
    if abs(a.mass - b.mass) > TOLERANCE * max(abs(a.mass), abs(b.mass)):
        yield f"{b.mass:.4g} kg for {a.mass:.4g} kg"
    radius = np.sqrt(np.abs(np.sum(a.principal) / (2.0 * a.mass)))
    one, other = float(np.linalg.norm(a.center)), float(np.linalg.norm(b.center))
    if abs(one - other) > TOLERANCE * max(one, other, radius):
        yield f"its centre of mass {1e3 * other:.3g} mm from its origin for {1e3 * one:.3g} mm"
    largest = np.max(np.abs([a.principal, b.principal]))
    if np.max(np.abs(a.principal - b.principal)) > 2.0 * TOLERANCE * largest:
        yield f"moments {_list(b.principal)} for {_list(a.principal)} kg m2"
    elif not _mixed(a, b):
        yield "a centre of mass that lies otherwise to its principal axes (a sign, perhaps)"


def _mixed(a: Link, b: Link) -> bool:
    """Whether the centres lie alike to the principal axes: c'Ic does not depend on axes.

    Without the mean moment, which is the same in all directions; moments that differ count too.
    """
    one, other = (
        float(x.center @ (x.inertia - np.mean(x.principal) * np.eye(3)) @ x.center) for x in (a, b)
    )
    spread = float(np.ptp(a.principal)) * 3.0 * TOLERANCE
    spread += float(np.max(np.abs(a.principal - b.principal)))
    return abs(one - other) <= float(a.center @ a.center) * spread


def _list(numbers: Iterable[float]) -> str:
    return f"({', '.join(f'{x:.3g}' for x in numbers)})"


def limits(sheet: Sheet) -> Iterator[Found]:
    """Twins whose ranges are neither the same nor the same mirrored."""
    for left, right in twins(sheet.by_name):
        a, b = sheet.by_name[left], sheet.by_name[right]
        if a.range is not None and b.range is not None and not _alike(a.range, b.range):
            own, other = (f"{low:.4g} to {high:.4g}" for low, high in (b.range, a.range))
            yield b.found(f"it moves from {own}, and {a.part} from {other}")
        for key in ("effort", "velocity"):
            one, two = a.limits.get(key), b.limits.get(key)
            if one is not None and two is not None and one != two:
                yield b.found(f"its {key} limit is {two:g}, and that of {a.part} {one:g}")


def _alike(a: tuple[float, float], b: tuple[float, float]) -> bool:
    slack = TOLERANCE * (a[1] - a[0])
    return any(np.max(np.abs(np.subtract(a, x))) <= slack for x in (b, (-b[1], -b[0])))
