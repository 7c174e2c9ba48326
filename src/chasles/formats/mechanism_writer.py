"""Write mechanisms as TOML files; docs/mechanism-files.md lists the tables and keys."""

import math
import os
from itertools import takewhile

from chasles.errors import ModelError
from chasles.formats.mechanism import MOST_POWERS, SAME, TOUCH
from chasles.formats.mechanism_machine import Row, tables, unusual
from chasles.formats.toml_file import lines, word
from chasles.formats.writable import check_joint
from chasles.mathematics.linear import Matrix
from chasles.mathematics.spatial import Transform
from chasles.model import (
    CouplingData,
    Description,
    JointData,
    LinkData,
    RollingData,
    ShapeData,
)
from chasles.model.couplings import linear, polynomial_rows
from chasles.writing import store


def write(source: Description, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a mechanism in SI units and radians; reading the file gives the same mechanism.

    Numbers are written at full precision. Couplings must be polynomials, or contacts of a blade, a
    wheel or a ball. Other couplings, and custom joint types, raise an error.
    """
    text = ["# Mechanism; m, kg, rad", 'format = "mechanism"']
    top = {"name": source.name, "gravity": source.gravity, "inertia_about": "frame"}
    top |= {"independent": source.independent or None, "massless": source.massless or None}
    if (source.loops or source.couplings) and source.precision.counts:
        top["precision"] = {k: x for k, x in vars(source.precision).items() if x is not None}
    text += lines(top)
    if source.notes:
        folder = os.path.join(os.path.dirname(source.where), "")
        # omit the source file's folder, because folder names may be private
        notes = (note.removeprefix(folder) for note in source.notes)
        text += ["notes = [", *(f"  {word(note)}," for note in notes), "]"]
    gears = list(takewhile(bool, map(_gear_row, source.couplings)))
    # also contains gears that follow a coupling of another type, to preserve the order
    others = source.couplings[len(gears) :]
    for table, rows in (
        ("link", map(_link_row, source.links)),
        ("joint", map(_joint_row, source.joints)),
        ("loop", map(_joint_row, source.loops)),
        ("frame", ({"name": x.name, "link": x.link} | _pose_row(x.pose) for x in source.frames)),
        ("shape", map(_shape_row, source.shapes)),
        ("plane", map(_plane_row, source.planes)),
        ("excluded", ({"links": pair} for pair in source.excluded)),
        ("gear", gears),
        ("coupling", map(_coupling_row, others)),
        *tables(source),
    ):
        for row in rows:
            text += ["", f"[[{table}]]", *lines(row)]
    store(path, "\n".join(text) + "\n")
    return ()


def _link_row(link: LinkData) -> Row:
    m, h, I = link.inertia.m, link.inertia.h, tuple(link.inertia.I)
    body = {"mass": m, "center": [x / m for x in h]} if m else {}
    inertia = I if any(I) else None
    named = {"name": link.name, "massless": link.massless or None}
    return {**named, **body, "inertia": inertia, "lifted": link.lifted or None}


def _pose_row(pose: Transform, end: str = "") -> Row:
    return {
        f"{end}position": pose.r if any(pose.r) else None,
        f"{end}rotation": pose.R.rows if Matrix.identity() != pose.R else None,
    }


def _shape_row(shape: ShapeData) -> Row:
    mesh = shape.kind == "mesh"
    sizes = {"file": shape.file, "scale": shape.size} if mesh else {"size": shape.size}
    role = None if shape.role == "visual" else shape.role
    row = {"link": shape.link, "kind": shape.kind, **sizes, **_pose_row(shape.pose)}
    return row | {"role": role, "color": shape.color} | unusual(shape, *TOUCH)


def _plane_row(plane: ShapeData) -> Row:
    return {"link": plane.link} | _pose_row(plane.pose) | unusual(plane, *TOUCH)


def _joint_row(joint: JointData) -> Row:
    check_joint(joint)
    ends = joint.limits.lower, joint.limits.upper
    return (
        {"name": joint.name, "kind": joint.kind, "parent": joint.parent, "child": joint.child}
        | _pose_row(joint.pose)
        | _pose_row(joint.child_pose, "child_")
        | unusual(joint, "axis", "second_axis")
        | {"limits": ends if ends != (-math.inf, math.inf) else None}
        | unusual(joint.limits, "velocity", "effort")
        | unusual(joint, *SAME)
    )


def _gear_row(data: CouplingData) -> Row:
    """Return a [[gear]] table for a linear coupling with first coefficient 1; {} for others."""
    found = linear(data)
    if found is None or found[0][0] != 1.0:
        return {}
    (_, *slopes), constant = found
    ratios = {leader: -slope for leader, slope in zip(data.freedoms[1:], slopes, strict=True)}
    offset = -constant if constant else None
    return {"name": data.name, "joint": data.freedoms[0], "ratios": ratios, "offset": offset}


def _coupling_row(data: CouplingData) -> Row:
    """Return a coupling (a contact or a polynomial) as a [[coupling]] table."""
    if isinstance(data, RollingData):
        frame, on = (*data.frames, None)[:2]
        row = {"name": data.name, "kind": data.kind, "frame": frame, "on": on}
        return row | unusual(data, "radius", "axis", "touching")
    rows = polynomial_rows(data)
    if rows is None or max(max(row.values(), default=0) for _, row in rows) > MOST_POWERS:
        problem = f"coupling {data.name!r} is not a polynomial with exponents up to {MOST_POWERS}"
        raise ModelError(
            "E-TOML-011", problem, "define the coupling in Python with robot.with_couplings"
        )
    return {"name": data.name, "terms": rows}
