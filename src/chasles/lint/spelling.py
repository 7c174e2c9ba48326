"""Attributes of URDF elements that are probably misspelled."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from chasles.formats.xml_file import MOMENTS, Part
from chasles.lint.sheet import Found
from chasles.model import SHAPE_TRAITS
from chasles.model.joints import TYPES
from chasles.names import similar

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "joint": ("type", *dict.fromkeys(key for row in TYPES.values() for key in row.data)),
    "parent": ("link",),
    "child": ("link",),
    "origin": ("xyz", "rpy"),
    "axis": ("xyz",),
    "axis2": ("xyz",),
    "limit": ("lower", "upper", "effort", "velocity", "acceleration", "jerk"),
    "dynamics": ("damping", "friction"),
    "mimic": ("joint", "multiplier", "offset"),
    "calibration": ("rising", "falling"),
    "safety_controller": ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity"),
    "mass": ("value",),
    "inertia": MOMENTS,
    **{kind: tuple(key for key, _ in row.sizes) for kind, row in SHAPE_TRAITS.items()},
    "mesh": ("filename", "scale"),
    "color": ("rgba",),
    "texture": ("filename",),
}
"""Attributes of the elements in links and joints. Every element may also have a name."""


def misspelled(parts: Iterable[Part]) -> Iterator[Found]:
    """Find unknown attributes, in links and joints, whose names are similar to absent attributes.

    If the known attribute is also present, the unknown one is an extension.
    """
    for part in parts:
        for element in part.element.iter():
            known = ATTRIBUTES.get(str(element.tag).removeprefix(part.source.space), ())
            absent = [key for key in known if key not in element.attrib]
            each = replace(part, element=element)
            for name in map(str, element.attrib):
                remedy = "" if name in (*known, "name") else similar(name, absent)
                if remedy:
                    what = f"<{each.tag}> has the unknown attribute {name!r}"
                    yield Found(part.owner, each.where, what, remedy)
