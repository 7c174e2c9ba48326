"""Mechanism files, written: SI units and radians, all digits."""

import math
import os
from collections.abc import Sequence
from dataclasses import MISSING, fields
from itertools import takewhile
from typing import Any

from chasles.errors import ModelError
from chasles.formats.files import store
from chasles.formats.mechanism import MOST_POWERS, SAME
from chasles.formats.toml_file import bounds, word
from chasles.formats.writable import check_joint
from chasles.mathematics.linear import Matrix, Vector
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


def write(description: Description, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a mechanism, in SI units and radians, with all digits; read back, it is the same.

    Refused: joints of one's own type, and couplings that are no polynomials. Left out, with a note
    in the answer, are limits whose lower is above the upper, which no coordinate can keep.
    """
    text = ["# Mechanism; m, kg, rad", 'format = "mechanism"', f"name = {word(description.name)}"]
    text += [f"gravity = {_numbers(description.gravity)}", 'inertia_about = "frame"']
    if description.independent:
        text.append(f"independent = {word(description.independent)}")
    if description.massless:
        text.append("massless = true")
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
            text += ["", f"[[{table}]]", *(f"{key} = {value}" for key, value in row.items())]
    store(path, "\n".join(text) + "\n")
    return tuple(
        f"joint {joint.name!r}: limits {joint.limits.lower:g} to {joint.limits.upper:g} are no "
        "range; left out"
        for joint in (*description.joints, *description.loops)
        if joint.limits.lower > joint.limits.upper
    )


def _numbers(values: Sequence[Any] | Vector) -> str:
    return word(tuple(values))


def _link_row(link: LinkData) -> dict[str, str]:
    row = {"name": word(link.name)} | ({"massless": "true"} if link.massless else {})
    m, h, I = link.inertia.m, tuple(link.inertia.h), tuple(link.inertia.I)
    if m:
        row |= {"mass": word(m), "center": _numbers([x / m for x in h])}
    return row | ({"inertia": word(I)} if any(I) else {})


def _pose_rows(pose: Transform, end: str = "") -> dict[str, str]:
    row = {f"{end}position": _numbers(pose.r)} if any(pose.r) else {}
    if Matrix.identity() != pose.R:
        row[f"{end}rotation"] = word(pose.R.rows)
    return row


def _shape_row(shape: ShapeData) -> dict[str, str]:
    row = {"link": word(shape.link), "kind": word(shape.kind)}
    if shape.kind == "mesh":
        row |= {"file": word(shape.file), "scale": _numbers(shape.size)}
    else:
        row["size"] = _numbers(shape.size)
    row |= _pose_rows(shape.pose)
    row |= {} if shape.role == "visual" else {"role": word(shape.role)}
    return row | ({} if shape.color is None else {"color": _numbers(shape.color)})


def _joint_row(joint: JointData) -> dict[str, str]:
    """The fields of a joint that are not as they are without being said."""
    check_joint(joint)
    row = {"name": word(joint.name), "kind": word(joint.kind)}
    row |= {} if joint.parent is None else {"parent": word(joint.parent)}
    row |= {"child": word(joint.child)} | _pose_rows(joint.pose)
    row |= _pose_rows(joint.child_pose, "child_")
    default = {known.name: known.default for known in fields(JointData)}
    for key in ("axis", "second_axis"):
        if getattr(joint, key) != default[key]:
            row[key] = _numbers(getattr(joint, key))
    limits, none = joint.limits, Limits()
    if (limits.lower, limits.upper) != (none.lower, none.upper) and limits.lower <= limits.upper:
        row["limits"] = bounds((limits.lower, limits.upper))
    row |= {
        key: bounds(getattr(limits, key))
        for key in ("velocity", "effort")
        if getattr(limits, key) != math.inf
    }
    for key in SAME:
        value = getattr(joint, key)
        assert default[key] is not MISSING
        if value != default[key]:
            row[key] = word(vars(value) if key == "mimic" else value)
    return row


def _frame_row(frame: FrameData) -> dict[str, str]:
    return {"name": word(frame.name), "link": word(frame.link)} | _pose_rows(frame.pose)


def _gear_row(data: CouplingData) -> dict[str, str]:
    """The row of a gear; none where the coupling is no sum with the first joint itself."""
    found = linear(data)
    if found is None or found[0][0] != 1.0:
        return {}
    (_, *slopes), constant = found
    ratios = {leader: -slope for leader, slope in zip(data.freedoms[1:], slopes, strict=True)}
    row = {"name": word(data.name), "joint": word(data.freedoms[0]), "ratios": word(ratios)}
    return row | ({"offset": word(-constant)} if constant else {})


def _coupling_row(data: CouplingData) -> dict[str, str]:
    """The row of a coupling that is no gear."""
    found = terms(data)
    if found is None or max(max(powers) for powers in found) > MOST_POWERS:
        problem = (
            f"coupling {data.name!r} is no polynomial (with powers up to {MOST_POWERS}), which is "
            "all that a file can say of couplings"
        )
        raise ModelError("E-TOML-011", problem, "keep it in Python, with robot.with_couplings")
    rows = [(factor, _powers(data.freedoms, powers)) for powers, factor in found.items()]
    if list(dict.fromkeys(name for _, row in rows for name in row)) != list(data.freedoms):
        rows[0] = rows[0][0], dict.fromkeys(data.freedoms, 0) | rows[0][1]  # says their order
    written = (f"[{word(factor)}, {_inline(row)}]" for factor, row in rows)
    return {"name": word(data.name), "terms": f"[{', '.join(written)}]"}


def _powers(freedoms: Sequence[str], powers: Sequence[int]) -> dict[str, int]:
    named = zip(freedoms, powers, strict=True)
    return {freedom: power for freedom, power in named if power}


def _inline(row: dict[str, int]) -> str:
    return f"{{{', '.join(f'{word(name)} = {power}' for name, power in row.items())}}}"
