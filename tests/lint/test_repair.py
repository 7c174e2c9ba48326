"""Repairs: the nearest physically valid inertia, in a copy that is otherwise unchanged."""

from pathlib import Path

import numpy as np
import pytest
from lint_files import EXAMPLES, LIMIT, arm, inertial
from test_lint_formats import MJCF, TOML, sdf

from chasles.lint import lint, surveyed
from chasles.lint.repair import THINNEST, nearest_inertia, repaired, unrepaired


def second_moments(I: np.ndarray) -> np.ndarray:
    return np.trace(I) / 2.0 * np.eye(3) - I


def fixed(tmp_path: Path, text: str, suffix: str = ".urdf") -> tuple[str, Path]:
    """Return the text of the repaired copy, and a file with that text."""
    path = tmp_path / f"arm{suffix}"
    path.write_bytes(text.encode())
    old, new = repaired(surveyed(str(path), meshes=False))
    assert old == text
    path.write_bytes(new.encode())
    return new, path


@pytest.mark.parametrize("seed", range(20))
def test_no_possible_inertia_is_nearer(seed: int) -> None:
    """The repaired second moments of mass are nearest in the Frobenius norm.

    They are compared with random valid ones, near and far, with the same least second moment.
    """
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3))
    wrong = A + A.T + 2.0 * np.eye(3)
    near = nearest_inertia(wrong)
    S, least = second_moments(near), THINNEST * np.linalg.eigvalsh(second_moments(wrong))[-1]
    if least <= 0.0:
        return
    assert np.linalg.eigvalsh(S)[0] >= least * (1.0 - 1e-9)
    distance = np.linalg.norm(S - second_moments(wrong))
    for size in 10.0 ** rng.uniform(-4, 1, size=200):
        E = rng.normal(size=(3, 3))
        other = S + size * (E + E.T)
        values, axes = np.linalg.eigh(other)
        other = axes @ np.diag(np.maximum(values, least)) @ axes.T
        assert np.linalg.norm(other - second_moments(wrong)) >= distance * (1.0 - 1e-12)


def test_a_possible_inertia_stays() -> None:
    I = np.diag([0.01, 0.02, 0.02])
    np.testing.assert_allclose(nearest_inertia(I), I, rtol=1e-14)


def test_urdf_inertia(tmp_path: Path) -> None:
    text = f"<?xml version='1.0'?>\r\n<!-- <link> -->\r\n{arm(inertial(1, 0.01, 0.02, 0.04))}"
    new, path = fixed(tmp_path, text)
    assert lint(path) == ()
    changed = [(a, b) for a, b in zip(text.split("\n"), new.split("\n"), strict=True) if a != b]
    assert len(changed) == 1
    old_line, new_line = changed[0]
    # S = diag(0.025, 0.015, -0.005), and the last entry becomes 0.000025.
    assert new_line == old_line.replace('"0.01"', '"0.015025"').replace('"0.02"', '"0.025025"')


def test_urdf_limits(tmp_path: Path) -> None:
    swapped = LIMIT.replace("-1", "3")
    new, path = fixed(tmp_path, arm(limit=swapped))
    assert new == arm(limit=LIMIT.replace('upper="2"', 'upper="3"').replace("-1", "2"))
    assert lint(path) == ()


def test_sdf(tmp_path: Path) -> None:
    new, path = fixed(tmp_path, sdf(0.04, lower=2), ".sdf")
    assert "<lower>1</lower><upper>2</upper>" in new
    assert "<ixx>0.015025</ixx><iyy>0.025025</iyy><izz>0.04</izz>" in new
    assert not [f for f in lint(path) if f.severity == "error"]


@pytest.mark.parametrize("moments", ['diaginertia="{} {} 0.04"', "fullinertia='{} {} 0.04 0 0 0'"])
def test_mjcf_that_mujoco_refuses(moments: str, tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    new, path = fixed(tmp_path, MJCF.format(moments=moments.format(0.01, 0.02), more=""), ".xml")
    assert new == MJCF.format(moments=moments.format(0.015025, 0.025025), more="")
    assert not [f for f in lint(path) if f.severity == "error"]


def test_mjcf_range_that_mujoco_leaves_out(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    sound = MJCF.format(moments='diaginertia="0.01 0.02 0.02"', more="").replace(
        '"elbow"', '"elbow" range="-2 0.5"'
    )
    new, path = fixed(tmp_path, sound.replace("-2 0.5", "0.5 -2"), ".xml")
    assert new == sound
    assert lint(path) == ()
    path.write_text(sound.replace("-2 0.5", "90 -90"))
    assert [f.check for f in lint(path)] == ["limit-inverted"]


XACRO = "xmlns:xacro='http://www.ros.org/wiki/xacro' "


def xacro(izz: str, mass: str = "1") -> str:
    """Return an arm whose tip is created by a macro."""
    text = arm("<xacro:tip/>").replace("<robot ", f"<robot {XACRO}")
    macro = f'<xacro:macro name="tip">{inertial(mass, 0.01, 0.02, izz)}</xacro:macro>\n'
    return text.replace("<link", f"{macro}<link", 1)


def test_xacro_with_literal_numbers(tmp_path: Path) -> None:
    """Values in macros are repaired, too, for any mass."""
    pytest.importorskip("xacro")
    new, path = fixed(tmp_path, xacro("0.04", "${1 + 0}"), ".xacro")
    moments = 'ixx="0.01" iyy="0.02"', 'ixx="0.015025" iyy="0.025025"'
    assert new == xacro("0.04", "${1 + 0}").replace(*moments, 1)
    assert lint(path) == ()


def test_xacro_with_expressions_is_left(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    text = xacro("${2 * 0.02}")
    new, path = fixed(tmp_path, text, ".xacro")
    assert new == text
    (left,) = unrepaired(surveyed(str(path), meshes=False))
    assert left.part == "link 'tip'"
    assert left.why == "the file does not contain the numbers literally"
    assert not any(finding.repairable for finding in lint(path))


@pytest.mark.parametrize("more", ["", "colour = 3"])
def test_mechanism_file(more: str, tmp_path: Path) -> None:
    """Repairs use the units of the file, also in a file that is refused for another reason."""
    new, _ = fixed(tmp_path, TOML.format(izz=40, more=more), ".toml")
    sound = TOML.format(izz=40, more=more).replace(
        "[10e6, 20e6, 40e6", "[15025000, 25025000, 40000000"
    )
    assert new == sound


def test_mechanism_file_about_the_frame(tmp_path: Path) -> None:
    """For 1 kg at x = 0.1 m, moments about y and z are 0.01 kg m^2 more than about the center."""
    text = TOML.format(izz=50, more='inertia_about = "frame"').replace("10e6, 20e6", "10e6, 30e6")
    new, path = fixed(tmp_path, text, ".toml")
    assert "inertia = [15025000, 35025000, 50000000, 0, 0, 0]" in new
    assert "triangle" not in {f.check for f in lint(path)}


def test_a_moment_that_has_no_place_is_not_lost(tmp_path: Path) -> None:
    """Nothing is changed if the repair needs a product of inertia that the file does not give."""
    tip = inertial(1, 0.01, 0.02, 0.04)
    text = arm(tip.replace('ixy="0" ixz="0" iyz="0"', 'ixz="3e-3" iyz="4e-3"'))
    new, _ = fixed(tmp_path, text)
    assert new == text


@pytest.mark.parametrize("name", ["negative-mass", "zero-mass", "mimic"])
def test_what_has_no_defensible_repair_stays(name: str, tmp_path: Path) -> None:
    new, _ = fixed(tmp_path, EXAMPLES[name].text)
    assert new == EXAMPLES[name].text
