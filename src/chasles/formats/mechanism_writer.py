"""Mechanism files, written: SI units and radians, all digits."""

import math
import os
from dataclasses import fields
from itertools import takewhile
from typing import Any

from chasles.errors import ModelError
from chasles.formats.files import store
from chasles.formats.mechanism import MOST_POWERS, SAME
from chasles.formats.toml_file import lines, word
from chasles.formats.writable import check_joint
from chasles.mathematics.linear import Matrix
from chasles.mathematics.spatial import Transform
from chasles.model import (
    CouplingData,
    Description,
    FrameData,
    JointData,
    Limits,
    LinkData,
    ShapeData,
)
from chasles.model.couplings import linear
from chasles.model.polynomials import terms

Row = dict[str, Any]
"""The values of a table, by key; None stands for what is not said."""


def write(description: Description, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a mechanism, in SI units and radians, with all digits; read back, it is the same.

    Refused: joints of one's own type, and couplings that are no polynomials. Left out, with a note
    in the answer, are limits whose lower is above the upper, which no coordinate can keep.
    """
    text = ["# Mechanism; m, kg, rad", 'format = "mechanism"']
    top = {"name": description.name, "gravity": description.gravity, "inertia_about": "frame"}
    top |= {"independent": description.independent or None}
    top |= {"massless": description.massless or None}
    text += lines(top)
    if description.notes:
        folder = os.path.join(os.path.dirname(description.where), "")  # not for others to know
        notes = (note.removeprefix(folder) for note in description.notes)
        text += ["notes = [", *(f"  {word(note)}," for note in notes), "]"]
    gears = list(takewhile(bool, map(_gear_row, description.couplings)))
    others = description.couplings[len(gears) :]  # a gear after one of them too: in order
    for table, rows in (
        ("link", map(_link_row, description.links)),
        ("joint", map(_joint_row, description.joints)),
        ("loop", map(_joint_row, description.loops)),
        ("frame", map(_frame_row, description.frames)),
        ("shape", map(_shape_row, description.shapes)),
        ("gear", gears),
        ("coupling", map(_coupling_row, others)),
    ):
        for row in rows:
            text += ["", f"[[{table}]]", *lines(row)]
    store(path, "\n".join(text) + "\n")
    return tuple(
        f"joint {joint.name!r}: limits {joint.limits.lower:g} to {joint.limits.upper:g} are no "
        "range; left out"
        for joint in (*description.joints, *description.loops)
        if joint.limits.lower > joint.limits.upper
    )


def _link_row(link: LinkData) -> Row:
    m, h, I = link.inertia.m, link.inertia.h, tuple(link.inertia.I)
    body = {"mass": m, "center": [x / m for x in h]} if m else {}
    inertia = I if any(I) else None
    return {"name": link.name, "massless": link.massless or None, **body, "inertia": inertia}


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
    return row | {"role": role, "color": shape.color}


def _joint_row(joint: JointData) -> Row:
    check_joint(joint)
    ends = joint.limits.lower, joint.limits.upper
    return (
        {"name": joint.name, "kind": joint.kind, "parent": joint.parent, "child": joint.child}
        | _pose_row(joint.pose)
        | _pose_row(joint.child_pose, "child_")
        | _unusual(joint, "axis", "second_axis")
        | {"limits": ends if ends != (-math.inf, math.inf) and ends[0] <= ends[1] else None}
        | _unusual(joint.limits, "velocity", "effort")
        | _unusual(joint, *SAME)
    )


def _unusual(part: JointData | Limits, *keys: str) -> Row:
    """The fields of a part that are not as they are without being said."""
    usual = {known.name: known.default for known in fields(part)}
    return {key: getattr(part, key) for key in keys if getattr(part, key) != usual[key]}


def _frame_row(frame: FrameData) -> Row:
    return {"name": frame.name, "link": frame.link} | _pose_row(frame.pose)


def _gear_row(data: CouplingData) -> Row:
    """The row of a gear; empty where the coupling is no sum with the first joint itself."""
    found = linear(data)
    if found is None or found[0][0] != 1.0:
        return {}
    (_, *slopes), constant = found
    ratios = {leader: -slope for leader, slope in zip(data.freedoms[1:], slopes, strict=True)}
    offset = -constant if constant else None
    return {"name": data.name, "joint": data.freedoms[0], "ratios": ratios, "offset": offset}


def _coupling_row(data: CouplingData) -> Row:
    """The row of a coupling that is no gear."""
    found = terms(data)
    if found is None or max(max(powers) for powers in found) > MOST_POWERS:
        problem = (
            f"coupling {data.name!r} is no polynomial (with powers up to {MOST_POWERS}), which is "
            "all that a file can say of couplings"
        )
        raise ModelError("E-TOML-011", problem, "keep it in Python, with robot.with_couplings")
    rows = [
        (factor, {name: n for name, n in zip(data.freedoms, powers, strict=True) if n})
        for powers, factor in found.items()
    ]
    if list(dict.fromkeys(name for _, row in rows for name in row)) != list(data.freedoms):
        rows[0] = rows[0][0], dict.fromkeys(data.freedoms, 0) | rows[0][1]  # says their order
    return {"name": data.name, "terms": rows}
