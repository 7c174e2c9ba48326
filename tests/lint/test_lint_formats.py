"""Lint finds the same inertia in every format, and in files that their reader refuses."""

import math
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lint_files import arm, inertial, joint, link, urdf
from support import raises

import chasles
from chasles.formats import dat, dh
from chasles.lint import findings, lint, surveyed
from chasles.lint.surveys import urdf as survey_urdf
from chasles.mathematics.linear import Symmetric

SDF = """<sdf version="1.9"><model name="arm">
  <link name="tip"><inertial><pose>{pose}</pose><mass>1</mass>
    <inertia><ixx>0.01</ixx><iyy>0.02</iyy><izz>{izz}</izz></inertia></inertial>
    <collision name="c"><geometry><box><size>0.3 0.3 0.2</size></box></geometry></collision></link>
  <joint name="elbow" type="revolute"><parent>world</parent><child>tip</child>
    <axis><xyz>0 0 1</xyz><limit><lower>{lower}</lower><upper>1</upper></limit></axis></joint>{more}
</model></sdf>
"""
MJCF = """<mujoco>
  <worldbody><body name="tip"><joint name="elbow"/>
    <inertial pos="0 0 0" mass="1" {moments}/></body></worldbody>{more}
</mujoco>
"""
TOML = """format = "mechanism"
{more}
[units]
length = "mm"
mass = "g"
[[link]]
name = "base"
[[link]]
name = "tip"
mass = 1000
center = [100, 0, 0]
inertia = [10e6, 20e6, {izz}e6, 0, 0, 0]
[[joint]]
name = "elbow"
kind = "revolute"
parent = "base"
child = "tip"
"""


def written(tmp_path: Path, text: str, suffix: str = ".urdf") -> str:
    path = tmp_path / f"arm{suffix}"
    path.write_text(text)
    return str(path)


def checks(tmp_path: Path, text: str, suffix: str) -> set[tuple[str, str]]:
    found = lint(written(tmp_path, text, suffix))
    return {(f.check, f.part) for f in found if f.severity != "note"}


IMPOSSIBLE, TIP = ("triangle", "link 'tip'"), "link 'tip'"


def sdf(izz: float = 0.02, lower: float = -1, more: str = "", pose: str = "0 0 0 0 0 0") -> str:
    return SDF.format(izz=izz, lower=lower, more=more, pose=pose)


def test_sdf(tmp_path: Path) -> None:
    assert checks(tmp_path, sdf(), ".sdf") == set()
    assert checks(tmp_path, sdf(0.04), ".sdf") == {IMPOSSIBLE}
    assert checks(tmp_path, sdf(lower=2), ".sdf") == {("limit-inverted", "joint 'elbow'")}
    assert checks(tmp_path, sdf(pose="1 0 0 0 0 0"), ".sdf") == {("center-outside", TIP)}


def test_sdf_that_is_refused(tmp_path: Path) -> None:
    text = sdf(0.04, more='<joint name="x" type="belt"/>')
    assert checks(tmp_path, text, ".sdf") == {IMPOSSIBLE, ("refused", "joint 'x'")}


def test_every_refused_part_of_a_urdf(tmp_path: Path) -> None:
    """The reader raises an error for the first part only, but lint reports all four."""
    more = (
        joint("belt", "base", "tip", kind="belt"),
        '  <joint name="loose" type="fixed"><parent link="tip"/></joint>\n',
        joint("flat", "base", "tip").replace('xyz="0 0 1"', 'xyz="0 0 0"'),
        link("tip"),
    )
    found = lint(written(tmp_path, arm(more="".join(more))))
    refused = {f.part: f.what for f in found if f.check == "refused"}
    assert set(refused) == {"joint 'belt'", "joint 'loose'", "joint 'flat'", "link 'tip'"}
    assert "unknown type" in refused["joint 'belt'"]
    assert "no <child>" in refused["joint 'loose'"]
    assert len({f.line for f in found if f.check == "refused"}) == 4


def test_moments_along_turned_axes_are_those_of_the_link(tmp_path: Path) -> None:
    """Rotations by pi/2 about z, given as an angle or a quaternion, swap x and y."""
    half = math.sqrt(0.5)
    for pose in ("0 0 0 0 0 1.5707963267948966", f"0 0 0 0 0 {half} {half}"):
        text = sdf(pose=pose)
        if len(pose.split()) == 7:
            text = text.replace("<pose>", '<pose rotation_format="quat_xyzw">')
        path = tmp_path / "arm.sdf"
        path.write_text(text)
        tip = surveyed(str(path), meshes=False).links[-1]
        np.testing.assert_allclose(np.diag(tip.inertia), [0.02, 0.01, 0.02], rtol=1e-12)


def test_mjcf(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    sound = MJCF.format(moments='diaginertia="0.01 0.02 0.02"', more="")
    assert checks(tmp_path, sound, ".xml") == set()
    for moments in ('diaginertia="0.01 0.02 0.04"', 'fullinertia="0.01 0.02 0.04 0 0 0"'):
        found = checks(tmp_path, MJCF.format(moments=moments, more=""), ".xml")
        assert IMPOSSIBLE in found
        assert {check for check, _ in found} <= {"triangle", "refused"}


def test_mechanism_file(tmp_path: Path) -> None:
    assert checks(tmp_path, TOML.format(izz=20, more=""), ".toml") == set()
    assert checks(tmp_path, TOML.format(izz=40, more=""), ".toml") == {IMPOSSIBLE}
    refused = TOML.format(izz=40, more="colour = 3")
    assert checks(tmp_path, refused, ".toml") == {IMPOSSIBLE, ("refused", "file")}


def test_mechanism_file_with_moments_about_the_frame(tmp_path: Path) -> None:
    """For 1 kg at x = 0.1 m, moments about y and z are 0.01 kg m^2 less about the center."""
    text = TOML.format(izz=20, more="{more}").replace("10e6, 20e6", "25e6, 20e6")
    for wrong in ("", "colour = 3"):
        about_frame = text.format(more=f'inertia_about = "frame"\n{wrong}')
        assert IMPOSSIBLE not in checks(tmp_path, text.format(more=wrong), ".toml")
        assert IMPOSSIBLE in checks(tmp_path, about_frame, ".toml")


def test_xacro(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    text = arm(inertial(1, 0.01, 0.02, "${2 * 0.02}")).replace(
        "<robot ", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" '
    )
    assert checks(tmp_path, text, ".xacro") == {IMPOSSIBLE}


def test_tables(tmp_path: Path) -> None:
    """Files of Denavit-Hartenberg tables are checked, too: a link has invalid moments."""
    puma = chasles.robots.puma560().model.source
    hand = puma.links[-1]
    moments = hand.inertia.I + Symmetric(0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    wrong = replace(hand, inertia=replace(hand.inertia, I=moments))
    joints = tuple(replace(x, armature=0.0, damping=0.0, friction=0.0) for x in puma.joints)
    robot = replace(puma, links=(*puma.links[:-1], wrong), joints=joints)
    for write, file in ((dat.write, "puma.dat"), (dh.write, "puma.toml")):
        write(robot, tmp_path / file)
        assert "triangle" in {f.check for f in lint(tmp_path / file)}


@pytest.mark.parametrize(
    ("text", "suffix", "words"),
    [
        ("<robot>", ".urdf", "E-XML-001"),
        ("", ".urdf", "E-FILE-006"),
        ("a = [", ".toml", "E-TOML-017"),
        ("<robot/>", ".step", "E-FILE-003 '.step'"),
    ],
)
def test_what_cannot_be_read_is_an_error(
    text: str, suffix: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / f"arm{suffix}"
    path.write_text(text)
    with raises(words):
        lint(path)


@pytest.mark.parametrize("suffix", [".urdf", ".sdf", ".toml"])
@pytest.mark.parametrize("seed", range(30))
def test_damaged_files_are_looked_at_or_refused(seed: int, suffix: str, tmp_path: Path) -> None:
    """Removed or changed characters cause findings or an error of the reader, but no crash."""
    rng = np.random.default_rng(seed)
    drive = '<transmission name="t"><joint name="elbow"/></transmission>'
    sound = {".urdf": arm(more=drive), ".sdf": sdf(), ".toml": TOML.format(izz=20, more="")}
    text = list(sound[suffix])
    for _ in range(rng.integers(1, 8)):
        place = int(rng.integers(len(text)))
        text[place] = "" if rng.random() < 0.5 else str(rng.choice(list('0.-e"<>/ xnl')))
    path = tmp_path / f"arm{suffix}"
    path.write_text("".join(text))
    try:
        said = [finding.where for finding in lint(path)]
    except chasles.ModelError as error:
        said = [str(error)]
    assert all(text.startswith(str(path)) for text in said)


EXTREME = ["1e308", "-1e308", "1e200", "1e155", "1e-308", "1e-320", "1e400", "nan"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", EXTREME)
def test_extreme_numbers(number: str, tmp_path: Path) -> None:
    """Extreme values cause findings, but no NumPy warnings."""
    for tip in (inertial(number, 1, 1, 1), inertial(1, number, number, number)):
        assert checks(tmp_path, arm(tip), ".urdf")
    assert checks(tmp_path, sdf(izz=float(number)), ".sdf")
    assert checks(tmp_path, sdf(pose=f"{number} 0 0 0 0 0"), ".sdf") or float(number) < 1.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", ["1e308", "1e-308", "-1e308", "nan", "inf", "9" * 400])
def test_extreme_numbers_of_mechanism_files(number: str, tmp_path: Path) -> None:
    text = TOML.format(izz=20, more='inertia_about = "frame"')
    for old, new in (
        ("mass = 1000", f"mass = {number}"),
        ("[100, 0, 0]", f"[{number}, 0, 0]"),
        ("[10e6, 20e6", f"[{number}, {number}"),
    ):
        found = checks(tmp_path, text.replace(old, new), ".toml")
        assert found or number == "1e-308"


def test_a_long_chain_without_masses_takes_no_time(tmp_path: Path) -> None:
    """Only the last of 4000 links has a mass."""
    links = [link(f"l{k}", "" if k < 3999 else inertial(1, 1, 1, 1)) for k in range(4000)]
    joints = [joint(f"j{k}", f"l{k}", f"l{k + 1}") for k in range(3999)]
    sheet = survey_urdf(written(tmp_path, urdf(*links, *joints)), meshes=False)
    start = time.process_time()
    found = findings(sheet)
    assert time.process_time() - start < 2.0
    assert sum(f.check == "virtual" for f in found) == 3998
