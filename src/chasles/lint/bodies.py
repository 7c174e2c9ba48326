"""Checks for links: inertias, units, agreement with shapes, and left-right symmetry."""

import math
import re
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from chasles.formats.registry import package_of, package_remedy
from chasles.formats.solids import Solid, together
from chasles.lint.sheet import Found, Joint, Link, Sheet
from chasles.model.validate import inertia_fault

LIGHTEST = 5.0
"""Minimum plausible density (kg/m3) of a uniform box with the mass and inertia of a link.

For comparison, foam has a density of about 20 kg/m3.
"""

DENSEST = 22_600.0
"""Density of osmium (kg/m3), the densest material."""

FAR = 30.0
"""Maximum plausible size of a shape (m).

The same value limits the distance of a joint or center of mass from its link frame.
"""

MARGIN = 0.25
"""Maximum plausible distance of a center of mass from the bounding box of a link's shapes.

The distance is relative to the longest edge of the box.
"""

SMALLEST = 0.2
"""Minimum plausible radius of gyration, relative to a uniform body with the same shape."""

LARGEST = 1.2
"""Maximum plausible radius of gyration, relative to the extent of a link.

The extent is the distance from the center of mass to the farthest corner of the link's shapes.
"""

VOLUMES = 5.0, 30_000.0
"""Minimum and maximum plausible ratios of a link's mass to the volume of its shapes (kg/m3)."""

TOLERANCE = 0.05
"""Tolerance for relative differences between left and right parts.

Measured inertias of the left and right parts of real robots differ by less than 5 %.
"""

_WORDS = (("left", "right"), ("Left", "Right"), ("LEFT", "RIGHT"))
_LETTERS = (("l", "r"), ("L", "R"))

Check = Callable[[Sheet], Iterator[Found]]


def impossible(check: str) -> Check:
    """Return a function that finds links whose inertia has the fault `check`.

    `inertia_fault` defines the faults.
    """

    def find(sheet: Sheet) -> Iterator[Found]:
        for link in sheet.links:
            fault = None if link.mass is None else inertia_fault(link.mass, link.moments)
            if fault is not None and fault.check == check:
                yield link.found(fault.what.partition(";")[0])

    return find


def zero_mass(sheet: Sheet) -> Iterator[Found]:
    """Find moving links without mass that do not carry links with mass."""
    carriers = sheet.carriers(fixed=False)
    for link, joint in _weightless(sheet):
        if link.name not in carriers:
            what = (
                f"joint {joint.name!r} moves this link, but neither the link nor its "
                "descendants have mass"
            )
            yield link.found(what)


def weightless_shape(sheet: Sheet) -> Iterator[Found]:
    """Find massless moving links with shapes that carry links with mass through moving joints."""
    for link, joint in _carrying(sheet):
        if link.shaped:
            yield link.found(f"joint {joint.name!r} moves this link, which has shapes but no mass")


def virtual(sheet: Sheet) -> Iterator[Found]:
    """Find massless moving links without shapes that carry mass only through moving joints."""
    for link, joint in _carrying(sheet):
        if not link.shaped:
            what = (
                f"joint {joint.name!r} moves this link, which has no mass; "
                "only its descendants have mass; add an inertia if the link is not massless"
            )
            yield link.found(what)


def _carrying(sheet: Sheet) -> Iterator[tuple[Link, Joint]]:
    """Yield massless moving links that carry links with mass, but only through moving joints."""
    carriers = sheet.carriers(fixed=False) - sheet.carriers(fixed=True)
    return ((link, joint) for link, joint in _weightless(sheet) if link.name in carriers)


def _weightless(sheet: Sheet) -> Iterator[tuple[Link, Joint]]:
    for link in sheet.links:
        joint = sheet.moved.get(link.name)
        none = not link.mass and not np.any(link.moments) and not link.meant_massless
        if joint is not None and none:
            yield link, joint


def point_mass(sheet: Sheet) -> Iterator[Found]:
    """Find links with mass but without rotational inertia."""
    for link in sheet.links:
        if link.mass and link.mass > 0.0 and not np.any(link.moments):
            yield link.found(f"{link.mass:g} kg without rotational inertia")


def placeholder(sheet: Sheet) -> Iterator[Found]:
    """Find inertias that are equal to the identity matrix.

    A 1 kg ball with this inertia has a radius of 1.6 m.
    """
    for link in sheet.links:
        if link.mass and np.array_equal(link.moments, np.eye(3)):
            yield link.found(f"{link.mass:g} kg with 1 kg m2 about every axis")


def copied(sheet: Sheet) -> Iterator[Found]:
    """Find links with the same inertia as their parent link."""
    links = {link.name: link for link in sheet.links}
    for joint in sheet.joints:
        parent, child = links.get(joint.parent or ""), links.get(joint.child)
        if parent is None or child is None or parent is child:
            continue
        if child.mass and np.any(child.moments) and _same(parent, child):
            what = f"the mass, center of mass and inertia equal those of {parent.part}"
            yield child.found(what)


def _same(a: Link, b: Link) -> bool:
    return a.mass == b.mass and all(
        np.array_equal(x, y)
        for x, y in ((a.moments, b.moments), (a.center, b.center), (a.axes, b.axes))
    )


# Units ----------------------------------------------------------------------------------------


def density(sheet: Sheet) -> Iterator[Found]:
    """Find masses and moments of inertia that imply an implausible density."""
    for link in sheet.links:
        if not link.mass or link.mass < 0.0 or not np.sum(link.principal) > 0.0:
            continue
        radius = math.sqrt(5.0 / 6.0 * float(np.sum(link.principal)) / link.mass)
        ball = 4.0 / 3.0 * math.pi * radius * radius * radius
        if link.mass > DENSEST * ball:
            what = (
                f"a uniform ball of the same mass and inertia has a radius of {1e3 * radius:.3g} mm"
            )
            yield link.found(f"{what} and a density of {_density(link.mass, ball)}")
        elif link.extended:
            edges = np.sqrt(12.0 * link.second_moments / link.mass)
            box = float(np.prod(edges))
            if link.mass < LIGHTEST * box:
                size = " x ".join(f"{1e3 * edge:.4g}" for edge in edges[::-1])
                what = f"a uniform box of the same mass and inertia measures {size} mm"
                yield link.found(f"{what} and has a density of {_density(link.mass, box)}")


def _density(mass: float, volume: float) -> str:
    return f"{mass / volume if volume else math.inf:.2g} kg/m3"


def size(sheet: Sheet) -> Iterator[Found]:
    """Find joints and centers of mass far from their link frame, and shapes that are too large."""
    for joint in sheet.joints:
        distance = math.hypot(*joint.position)
        if distance > FAR:
            yield joint.found(f"the origin is {distance:g} m from the frame of the parent link")
    for link in sheet.links:
        distance = math.hypot(*link.center)
        if link.mass and distance > FAR:
            yield link.found(f"the center of mass is {distance:g} m from the link frame")
        for shape in link.shapes:
            edge = float(np.max(np.ptp(shape.corners, axis=0)))
            if edge > FAR:
                yield link.found(f"a shape measures {edge:.3g} m")
                break


# Comparison with shapes of uniform density ----------------------------------------------------


def mesh_missing(sheet: Sheet) -> Iterator[Found]:
    """Find links whose mesh files do not exist."""
    for where, link, name in sheet.missing:
        what, plain = f"the mesh file {name!r} was not found", "correct the path of the mesh file"
        yield Found(f"link {link!r}", where, what, package_remedy(package_of(name)) or plain)


def outside(sheet: Sheet) -> Iterator[Found]:
    """Find centers of mass outside the bounding box of a link's shapes."""
    for link, body in _with_shapes(sheet):
        low, high = np.min(body.corners, axis=0), np.max(body.corners, axis=0)
        gap = np.maximum(low - link.center, link.center - high)
        if np.max(gap) > MARGIN * np.max(high - low):
            yield link.found(f"the center of mass is {1e3 * np.max(gap):.3g} mm outside the shapes")


def gyration(sheet: Sheet) -> Iterator[Found]:
    """Find radii of gyration that are implausible for the shapes of a link."""
    for link, body in _with_shapes(sheet):
        if not link.mass or not np.sum(link.principal) > 0.0:
            continue
        own = np.sqrt(np.sum(link.principal) / (2.0 * link.mass))
        uniform = np.sqrt(np.trace(body.moments) / (2.0 * body.volume))
        farthest = np.max(np.linalg.norm(body.corners - link.center, axis=1))
        if own > LARGEST * farthest or own < SMALLEST * uniform:
            kind = "meshes" if body.mesh else "shapes"
            what = f"the radius of gyration is {1e3 * own:.3g} mm"
            expected = f"{1e3 * uniform:.3g} mm for the {kind} with uniform density"
            yield link.found(f"{what}, but {expected}")


def volume(sheet: Sheet) -> Iterator[Found]:
    """Find masses that are implausible for the volume of a link's shapes."""
    for link, body in _with_shapes(sheet):
        density = (link.mass or 0.0) / body.volume
        if not VOLUMES[0] <= density <= VOLUMES[1]:
            what = f"mass {link.mass:g} kg and volume {1e6 * body.volume:.3g} cm3"
            yield link.found(f"{what} give a density of {density:.2g} kg/m3")


def _with_shapes(sheet: Sheet) -> Iterator[tuple[Link, Solid]]:
    """Yield each link that has mass and shapes, with its shapes combined into one solid."""
    for link in sheet.links:
        body = together(link.shapes) if link.mass and link.mass > 0.0 else None
        if body is not None:
            yield link, body


# Left and right -------------------------------------------------------------------------------


def twins(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of names that differ only by "left" and "right", or "l" and "r"."""
    known = set(names)
    for name in sorted(known):
        for right in _mirrored(name):
            if right != name and right in known:
                yield name, right
                break


def _mirrored(name: str) -> Iterator[str]:
    """Yield possible names of the right part for a left part, such as "RF_leg" for "LF_leg"."""
    for left, right in _WORDS:
        if left in name:
            yield name.replace(left, right)
    for left, right in _LETTERS:
        yield re.sub(rf"(?<![A-Za-z]){left}(?![A-Za-z])", right, name)
        yield re.sub(rf"(?<![A-Za-z]){left}(?=[FHBMfhbm]?(?![A-Za-z]))", right, name)
        yield re.sub(rf"(?<![A-Za-z])([FHBMfhbm]){left}(?![A-Za-z])", rf"\g<1>{right}", name)
        yield re.sub(rf"(?<![A-Za-z]){left}(?=[A-Z][a-z])", right, name)


def unlike_bodies(sheet: Sheet) -> Iterator[Found]:
    """Find left and right links that differ in mass, center of mass or principal moments."""
    links = {link.name: link for link in sheet.links}
    for left, right in twins(links):
        a, b = links[left], links[right]
        if not a.mass or not b.mass:
            if bool(a.mass) != bool(b.mass):
                yield a.found(f"{_kg(a)}, but {b.part} has {_kg(b)}")
            continue
        differences = list(_differences(a, b))
        if differences:
            yield b.found(f"differs from {a.part}: {', '.join(differences)}")


def _kg(link: Link) -> str:
    return f"{link.mass:g} kg" if link.mass else "no mass"


def _differences(a: Link, b: Link) -> Iterator[str]:
    assert a.mass, "only links with a mass are compared"
    assert b.mass, "only links with a mass are compared"
    if abs(a.mass - b.mass) > TOLERANCE * max(abs(a.mass), abs(b.mass)):
        yield f"{b.mass:.4g} kg instead of {a.mass:.4g} kg"
    radius = np.sqrt(np.abs(np.sum(a.principal) / (2.0 * a.mass)))
    one, other = float(np.linalg.norm(a.center)), float(np.linalg.norm(b.center))
    if abs(one - other) > TOLERANCE * max(one, other, radius):
        yield (
            f"a center of mass {1e3 * other:.3g} mm from the link origin "
            f"instead of {1e3 * one:.3g} mm"
        )
    largest = np.max(np.abs([a.principal, b.principal]))
    if np.max(np.abs(a.principal - b.principal)) > 2.0 * TOLERANCE * largest:
        yield f"moments {_list(b.principal)} instead of {_list(a.principal)} kg m2"
    elif not _mixed(a, b):
        yield (
            "a center of mass that is placed differently relative to the principal "
            "axes (check the signs)"
        )


def _mixed(a: Link, b: Link) -> bool:
    """Return True if both centers of mass have the same position relative to the principal axes.

    The test compares c'(I - m 1)c for each center of mass c and inertia I, where m is the mean of
    the principal moments and 1 is the identity matrix.
    """
    one, other = (
        float(x.center @ (x.inertia - np.mean(x.principal) * np.eye(3)) @ x.center) for x in (a, b)
    )
    spread = float(np.ptp(a.principal)) * 3.0 * TOLERANCE
    spread += float(np.max(np.abs(a.principal - b.principal)))
    return abs(one - other) <= float(a.center @ a.center) * spread


def _list(numbers: Iterable[float]) -> str:
    return f"({', '.join(f'{x:.3g}' for x in numbers)})"


def unlike_limits(sheet: Sheet) -> Iterator[Found]:
    """Find left and right joints whose limits are neither equal nor mirrored."""
    for left, right in twins(sheet.by_name):
        a, b = sheet.by_name[left], sheet.by_name[right]
        if a.range is not None and b.range is not None and not _alike(a.range, b.range):
            own, other = (f"{low:.4g} to {high:.4g}" for low, high in (b.range, a.range))
            yield b.found(f"range {own}, but that of {a.part} is {other}")
        for key in ("effort", "velocity"):
            one, two = a.limits.get(key), b.limits.get(key)
            if one is not None and two is not None and one != two:
                yield b.found(f"{key} limit {two:g}, but that of {a.part} is {one:g}")


def _alike(a: tuple[float, float], b: tuple[float, float]) -> bool:
    slack = TOLERANCE * (a[1] - a[0])
    return any(np.max(np.abs(np.subtract(a, x))) <= slack for x in (b, (-b[1], -b[0])))
