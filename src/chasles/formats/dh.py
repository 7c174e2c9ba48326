"""Read and write Denavit-Hartenberg tables in TOML files (docs/dh.md)."""

import os
from dataclasses import fields, replace
from pathlib import PurePath
from typing import Any

from chasles.errors import ModelError
from chasles.formats.toml_file import TomlFile, lines
from chasles.mathematics.angles import angles_from_matrix, rotation_from_angles
from chasles.mathematics.linear import Matrix
from chasles.model import Description, build
from chasles.model.denavit_hartenberg import Convention, DHRow, DHTable, row_of
from chasles.model.dh_fields import FIELDS, IDENTITY, TABLE, Field, Pose, numbers
from chasles.model.dh_fit import dh_table
from chasles.writing import store

_TOP = TABLE | {"inertia_about": FIELDS["inertia_about"]}
_POSE = {
    "position": Field(numbers(3), "three finite numbers"),
    "rpy": Field(numbers(3), "three finite numbers: roll, pitch, yaw"),
}


def described(source: TomlFile, *, floating: bool) -> Description:
    """Convert a Denavit-Hartenberg table to a `Description`.

    The links are named base, link1, ... and the frames base, dh1, ..., tool. If `floating` is True,
    raise an error, because the table does not contain the mass of the base.
    """
    if floating:
        problem = (
            "the base cannot float, because a Denavit-Hartenberg table does not contain the mass "
            "of the base"
        )
        raise ModelError("E-TOML-001", problem, "omit `floating`", file=source.file)
    return _table(source).description()


def _table(source: TomlFile) -> DHTable:
    """Read a Denavit-Hartenberg table from a TOML file."""
    top = source.top(_TOP, {"base": _POSE, "tool": _POSE, "joint": FIELDS})
    if "convention" not in top:
        remedy = "give convention = 'modified' or 'standard'"
        raise ModelError(
            "E-TOML-002", "the convention is missing", remedy, file=source.file, line=1
        )
    if not isinstance(source.data.get("joint"), list) or not source.data["joint"]:
        problem = "the table has no joints"
        raise source.error("E-TOML-003", problem, "give one [[joint]] table for each row", "joint")
    about = {"inertia_about": top.pop("inertia_about", "center"), "kind": DHRow.kind}
    given = source.rows("joint", FIELDS, DHRow.kind)
    return DHTable(
        tuple(_row(source, i, about | values) for i, values in enumerate(given)),
        **({"name": PurePath(source.file).stem} | top),
        base=_pose(source, "base"),
        tool=_pose(source, "tool"),
        notes=tuple(source.notes),
        where=source.file,
    )


def _row(source: TomlFile, i: int, values: dict[str, Any]) -> DHRow:
    try:
        row = row_of(values)
    except ModelError as error:
        raise source.placed(error, "joint", i) from None
    return replace(row, where=source.where("joint", i))


def _pose(source: TomlFile, name: str) -> Pose:
    values = source.table(name, _POSE)
    R = rotation_from_angles("xyz", values.get("rpy", (0.0, 0.0, 0.0)), "fixed").matrix()
    p = values.get("position", (0.0, 0.0, 0.0))
    return (*((*row, x) for row, x in zip(R.rows, p, strict=True)), IDENTITY[3])


# Writing ---------------------------------------------------------------------------------------


def write(
    description: Description,
    path: str | os.PathLike[str],
    *,
    convention: Convention = "modified",
    tool: str | None = None,
) -> None:
    """Write a serial arm as a Denavit-Hartenberg table in SI units and radians.

    Reading the file gives the same arm. For `convention` and `tool`, see `chasles.to_dh`, which
    also lists the requirements on the arm. Fixed links and frames other than the tool are not
    written.
    """
    table = dh_table(build(description), convention, tool)
    top = {"convention": table.convention, "name": table.name, "gravity": table.gravity}
    text = ["# Denavit-Hartenberg table; m, kg, rad", 'format = "dh"', *lines(top)]
    for name, pose in (("base", table.base), ("tool", table.tool)):
        if pose != IDENTITY:
            R, position = Matrix(tuple(row[:3] for row in pose[:3])), [row[3] for row in pose[:3]]
            rpy = angles_from_matrix(R, "xyz", "fixed")[0]
            text += ["", f"[{name}]", *lines({"position": position, "rpy": tuple(rpy)})]
    usual = {known.name: known.default for known in fields(DHRow)} | {"kind": None}
    for row in table.rows:
        said = {key: getattr(row, key) for key in usual if key in FIELDS}
        text += ["", "[[joint]]", *lines({k: x for k, x in said.items() if x != usual[k]})]
    store(path, "\n".join(text) + "\n")
