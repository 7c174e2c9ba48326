"""Lint finds all physically invalid inertias of published robots, and no others."""

import xml.etree.ElementTree as xml
from pathlib import Path

import numpy as np
import pytest
from lint_page import (
    PACKAGE,
    PAGE,
    documented_version,
    found,
    installed,
    published_table,
    robots,
    section,
)

IMPOSSIBLE = ("negative-mass", "not-positive", "triangle")

SOUND = (
    *("panda", "go2", "solo12", "laikago", "xarm7", "z1", "so100", "kinova", "ur10_robot"),
    "alexander_v1.lowerBodyOnly",
)
"""Robots that were checked manually, as described in docs/lint.md."""

COUNTS = {"5.0.0": (77, 18), "6.0.0": (69, 18)}
"""Number of files, and of files with invalid inertias, by version of the package."""

pytestmark = pytest.mark.skipif(not installed(), reason="example-robot-data is not installed")


def impossible(path: Path) -> set[str]:
    """Return links whose pseudo-inertia has a negative eigenvalue, by XML parsing and NumPy only.

    The pseudo-inertia about the center of mass is diag(S, m) with S = tr(I)/2 - I. The tolerance is
    relative to the largest moment, because files contain few digits.
    """
    wrong = set()
    for link in xml.parse(path).getroot().findall("link"):
        mass, inertia = link.find("inertial/mass"), link.find("inertial/inertia")
        if mass is None or inertia is None:
            continue
        xx, xy, xz, yy, yz, zz = (
            float(inertia.get(k, "0")) for k in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        )
        I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        m = float(mass.get("value", "0"))
        pseudo = np.zeros((4, 4))
        pseudo[:3, :3], pseudo[3, 3] = np.trace(I) / 2.0 * np.eye(3) - I, m
        size = np.max(np.abs(np.linalg.eigvalsh(I)))
        if m < 0.0 or (m > 0.0 and np.linalg.eigvalsh(pseudo)[0] < -0.5e-6 * size):
            wrong.add(str(link.get("name")))
    return wrong


def test_exactly_the_impossible_inertias_are_found() -> None:
    wrong = {name: impossible(path) for name, path in robots().items()}
    for name, path in robots().items():
        links = {f.part for f in found(path) if f.check in IMPOSSIBLE}
        assert links == {f"link {link!r}" for link in wrong[name]}, name
    counts = len(wrong), sum(bool(links) for links in wrong.values())
    assert counts == COUNTS.get(installed(), counts)


@pytest.mark.parametrize("name", SOUND)
def test_no_false_alarm_on_robots_that_were_checked_by_hand(name: str) -> None:
    paths = [path for path in robots().values() if path.stem == name]
    if not paths:
        pytest.skip(f"this version of {PACKAGE} has no {name}")
    assert [str(f) for f in found(paths[0]) if f.severity != "note"] == []


def test_the_page_is_in_step() -> None:
    """For another version of the package, only files that are also in the page are compared."""
    text, of = PAGE.read_text("utf-8"), documented_version()
    start, end = section(text, f"{PACKAGE} {of}")
    shown = text[start:end].strip("\n").splitlines()
    rows = published_table().strip("\n").splitlines()
    if installed() != of:
        names = {row.split("|")[1] for row in rows} & {row.split("|")[1] for row in shown}
        assert len(names) > 50
        rows, shown = ([x for x in some if x.split("|")[1] in names] for some in (rows, shown))
    assert shown == rows, "run python tests/lint/lint_page.py"
