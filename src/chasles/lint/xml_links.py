"""Links of XML files as lint sees them, from what the readers of `chasles.formats` find."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from chasles.formats.xml_part import Fault, Inertial, Part, Source
from chasles.lint import solids
from chasles.lint.sheet import Found, Link
from chasles.model import ROLES, ModelError, ShapeData


def tolerant(file: str, space: str = "") -> tuple[Source, list[Fault]]:
    """A file whose faults are collected, and the list of them."""
    faults: list[Fault] = []
    return Source(file, space, False, [], faults), faults


def found(faults: list[Fault]) -> tuple[Found, ...]:
    """Faults as a check gives them."""
    return tuple(Found(*fault) for fault in faults)


def owned(part: Part, what: str = "") -> Part:
    """The same element, with faults named by it."""
    return replace(part, owner=f"{what or part.tag} {part.element.get('name', '')!r}")


def link(
    part: Part,
    inertial: Callable[[Part], Inertial],
    drawn: Callable[[Part], ShapeData],
    *,
    meshes: bool,
) -> Link:
    """A link by the reader's functions for its `<inertial>` and for a shape.

    One whose inertia cannot be read has none here: the faults say so.
    """
    name, faults = part.element.get("name", ""), part.source.faults
    assert faults is not None, "faults are collected"
    roles = (
        [solids.of(_shape(each, drawn), part.source.file, meshes=meshes) for each in part.all(role)]
        for role in reversed(ROLES)
    )
    bare = Link(name, part.where, shapes=solids.outer(*roles))
    given, known = part.find("inertial"), len(faults)
    if given is None:
        return bare
    try:
        mass, pose, moments = inertial(given)
    except ModelError:  # which the reader says too
        return bare
    if len(faults) > known:
        return bare
    inertia = given.find("inertia")
    return replace(
        bare,
        mass=mass,
        center=np.array([*pose.r]),
        moments=tensor(*moments),
        axes=np.array(pose.R.rows),
        place=None if inertia is None else inertia.element,
    )


def _shape(part: Part, drawn: Callable[[Part], ShapeData]) -> ShapeData | None:
    try:
        return drawn(part)
    except ModelError:  # which the reader notes
        return None


def tensor(xx: float, yy: float, zz: float, xy: float, xz: float, yz: float) -> np.ndarray:
    """The symmetric matrix of six moments."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def six(moments: np.ndarray) -> list[float]:
    """The moments of a symmetric matrix, in the order of `tensor`."""
    return [float(moments[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
