"""Shapes of an MJCF model: to look at are those of the groups that MuJoCo's viewer shows."""

import os
from collections.abc import Iterator

from chasles.formats.mjcf_source import Source, pose
from chasles.mathematics.spatial import Transform, inverted
from chasles.model import SHAPE_TRAITS, SHAPES, ShapeData
from chasles.model.build import compose

_SHOWN = (0, 1, 2)
"""Groups; shapes for contact only are by custom in others."""


def shapes(source: Source) -> Iterator[ShapeData]:
    """Of all bodies, in their frames; planes and height fields are ground, not robot.

    Left out are meshes that are not there.
    """
    for k, kind in enumerate(source["geom_type"]):
        size = _size(kind, source["geom_size"][k])
        place, file = pose(source["geom_pos"][k], source["geom_quat"][k]), ""
        if kind == "mesh":
            mesh = source["geom_dataid"][k]
            file, size = _relative(source, source["mesh_file"][mesh]), source["mesh_scale"][mesh]
            place = compose(inverted(_moved(source, mesh)), place)
        if k in source["stubs"] or size is None or (kind == "mesh" and not file):
            continue
        link, color = source.bodies[source["geom_bodyid"][k]], tuple(source["geom_color"][k])
        if source["geom_group"][k] in _SHOWN:
            yield ShapeData(link, kind, tuple(size), place, file, color)
        else:
            yield ShapeData(link, kind, tuple(size), place, file, role="collision")


def _size(kind: str, given: list[float]) -> list[float] | None:
    """MuJoCo has half lengths; None of planes and height fields."""
    if kind not in SHAPES:
        return None
    halved = SHAPE_TRAITS[kind].halved
    return [2.0 * x if k in halved else x for k, x in enumerate(given[: SHAPES[kind]])]


def _moved(source: Source, mesh: int) -> Transform:
    """Where in the file's mesh MuJoCo puts the frame of its own: the principal axes."""
    return pose(source["mesh_pos"][mesh], source["mesh_quat"][mesh])


def _relative(source: Source, file: str) -> str:
    """The name of a file as seen from the folder of the model, if it is there."""
    folder = os.path.dirname(os.path.abspath(source.file))
    inside = file.startswith(folder + os.sep)
    return os.path.relpath(file, folder) if inside else file
