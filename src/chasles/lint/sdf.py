"""SDF files as lint sees them: the links of a file that say their inertia, and their shapes."""

import math

import numpy as np

from chasles.formats.files import load
from chasles.formats.xml_document import parse
from chasles.formats.xml_part import MOMENTS, Part, Source
from chasles.lint import solids
from chasles.lint.documents import XmlDocument
from chasles.lint.sheet import Joint, Link, Sheet
from chasles.lint.solids import Solid
from chasles.lint.urdf import located
from chasles.lint.xml_values import Values, rotation, tensor

_UNIT = dict(zip(MOMENTS, ("1", "1", "1", "0", "0", "0"), strict=True))
"""What SDF takes for moments that are not given."""


def survey(file: str, *, meshes: bool) -> Sheet:
    """What a file says of its links and joints; what it includes is not looked at."""
    data = load(file)
    root = parse(file, data)
    values, source = Values(), Source(file, "", False, [])
    links, joints = [], []
    for element in root.iter("link"):
        part = Part(source, element, f"link {element.get('name', '')!r}")
        if part.find("inertial") is not None:
            links.append(_link(values, part, meshes))
    for element in root.iter("joint"):
        part = Part(source, element, f"joint {element.get('name', '')!r}")
        joints.append(_joint(values, part))
    return Sheet(
        file,
        tuple(links),
        tuple(joints),
        faults=tuple(values.faults),
        document=XmlDocument(file, data, root),
    )


def _link(values: Values, part: Part, meshes: bool) -> Link:
    inertial = part.need("inertial")
    name, inertia = part.element.get("name", ""), inertial.find("inertia")
    faults = len(values.faults)
    R, r = _pose(values, inertial)
    moments = [values.within(inertia, key, usual)[0] for key, usual in _UNIT.items()]
    mass = values.within(inertial, "mass", "1")[0]
    if len(values.faults) > faults:
        return Link(name, part.where)
    return Link(
        name,
        part.where,
        mass,
        r,
        tensor(*moments),
        R,
        solids.outer(*(_shapes(values, part, role, meshes) for role in ("collision", "visual"))),
        place=None if inertia is None else inertia.element,
    )


def _pose(values: Values, part: Part) -> tuple[np.ndarray, np.ndarray]:
    """The axes and the origin of an element's frame in the link's."""
    pose = part.find("pose")
    if pose is not None and pose.element.get("rotation_format") == "quat_xyzw":
        x, y, z, qx, qy, qz, qw = values.within(part, "pose", "0 0 0 0 0 0 1")
        return _turned(qw, qx, qy, qz), np.array([x, y, z])
    x, y, z, *angles = values.within(part, "pose", "0 0 0 0 0 0")
    if pose is not None and pose.element.get("degrees") in ("true", "1"):
        angles = [math.radians(a) for a in angles]
    return rotation(*angles), np.array([x, y, z])


def _turned(w: float, x: float, y: float, z: float) -> np.ndarray:
    """The rotation of a quaternion of any length."""
    v: np.ndarray = np.array([x, y, z])
    cross: np.ndarray = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    square = w * w + v @ v
    return np.eye(3) + 2.0 * (w * cross + cross @ cross) / (square or 1.0)


def _shapes(values: Values, link: Part, role: str, meshes: bool) -> list[Solid | None]:
    """Those for one purpose, None for each that cannot be seen."""
    found: list[Solid | None] = []
    for part in link.all(role):
        geometry = part.find("geometry")
        solid = None if geometry is None else _solid(values, geometry, meshes)
        found.append(solid and solid.placed(*_pose(values, part)))
    return found


def _solid(values: Values, geometry: Part, meshes: bool) -> Solid | None:
    if (part := geometry.find("box")) is not None:
        return solids.box(*values.within(part, "size", "1 1 1"))
    if (part := geometry.find("sphere")) is not None:
        return solids.sphere(*values.within(part, "radius", "1"))
    if (part := geometry.find("cylinder")) is not None:
        radius, length = (values.within(part, key, "1")[0] for key in ("radius", "length"))
        return solids.cylinder(radius, length)
    if meshes and (part := geometry.find("mesh")) is not None:
        uri = part.find("uri")
        path = located(part.source.file, "" if uri is None else (uri.element.text or "").strip())
        return solids.mesh(path, values.within(part, "scale", "1 1 1"))
    return None


def _joint(values: Values, part: Part) -> Joint:
    axis = part.find("axis")
    limit = None if axis is None else axis.find("limit")
    given = [] if limit is None else [key for key in ("lower", "upper") if limit.find(key)]
    return Joint(
        part.element.get("name", ""),
        part.where,
        part.element.get("type", ""),
        None,
        "",
        {key: values.within(limit, key, "0")[0] for key in given},
        place=None if limit is None else limit.element,
    )
