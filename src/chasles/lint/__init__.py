"""Find errors and suspicious values in a robot file, even if the file does not load."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from chasles import formats
from chasles.entry_points import imported
from chasles.errors import ModelError
from chasles.formats import registry
from chasles.formats.files import load
from chasles.formats.walled import NotInstalled
from chasles.lint.checks import CHECKS
from chasles.lint.repair import unrepaired
from chasles.lint.sheet import SEVERITIES, Finding, Found, Sheet, at_least
from chasles.lint.surveys import joined, missing, why
from chasles.model.given import admitted, outside
from chasles.robot import Robot

_quiet = partial(np.errstate, over="ignore", invalid="ignore", divide="ignore")
"""Context manager that suppresses NumPy's floating-point warnings."""


def lint(
    path: str | os.PathLike[str],
    *,
    meshes: bool = True,
    arguments: Mapping[str, str] | None = None,
    trust: bool = False,
) -> tuple[Finding, ...]:
    """Find errors and suspicious values in a robot file.

    Parameters
    ----------
    path : str or path
        Robot file, or the name of an installed robot.
    meshes : bool, optional
        Also check that mesh files exist and, if the package trimesh is installed, compare the
        inertias of links with their meshes.
    arguments : mapping from str to str, optional
        Arguments for a xacro file.
    trust : bool, optional
        Allow a xacro file to run Python code.

    Returns
    -------
    tuple of Finding
        Findings in line order, with severity, part, reason and remedy (docs/lint.md). If the file
        does not load, it is still checked, and the loading error is one of the findings.

    Raises
    ------
    ModelError
        If the file does not exist, is neither XML nor TOML, or requires a reader that is not
        installed.
    ArgumentError
        If `path` is not a file name.

    Examples
    --------
    >>> import chasles, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "arm.urdf"
    >>> notes = chasles.save(chasles.robots.planar(1), path)
    >>> chasles.lint(path)
    ()
    """
    sheet = surveyed(formats.a_path(path, "lint"), meshes=meshes, arguments=arguments, trust=trust)
    return findings(sheet)


def findings(sheet: Sheet) -> tuple[Finding, ...]:
    """Run all checks; omit a loading error if another check finds an error on the same line."""
    with _quiet():
        found = [_finding(sheet, key, what) for key in CHECKS for what in CHECKS[key].find(sheet)]
    errors = {f.where for f in found if f.severity == "error" and f.check != "refused"}
    kept = [f for f in found if f.check != "refused" or f.where not in errors]
    return tuple(sorted(kept, key=lambda f: f.line))


def _finding(sheet: Sheet, name: str, found: Found) -> Finding:
    row = CHECKS[name]
    left = {each.part for each in unrepaired(sheet)} if row.repair else set()
    repairable = bool(row.repair) and sheet.document is not None and found.part not in left
    remedy = found.remedy or row.remedy
    return Finding(
        name, row.severity, found.where, found.part, found.what, row.why, remedy, repairable
    )


def surveyed(
    path: str,
    *,
    meshes: bool = True,
    arguments: Mapping[str, str] | None = None,
    trust: bool = False,
) -> Sheet:
    """Read a robot file for the lint checks, and load the robot if possible."""
    file = str(registry.find(path)) if formats.is_name(path) else path
    row = formats.row_of(file)
    given = {"arguments": arguments, "trust": trust} if row.arguments else {}
    load(file)
    sheet = Sheet(file)
    if row.survey:
        with _quiet():
            sheet = imported(row.survey)(file, meshes=meshes, **given)
    try:
        description = formats.written(file, arguments=arguments, trust=trust)
        with _quiet():
            sheet = joined(sheet, description, row.seen)
            sheet = replace(sheet, outside=tuple(outside(description)))
            if meshes:
                sheet = replace(sheet, missing=tuple(missing(file, description)))
        return replace(sheet, robot=Robot(admitted(description)))
    except NotInstalled:
        raise
    except ModelError as error:
        return replace(sheet, refusals=(why(file, error), *sheet.refusals))


__all__ = ["CHECKS", "SEVERITIES", "Finding", "at_least", "findings", "lint", "surveyed"]
