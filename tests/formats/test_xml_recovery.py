"""XML that is not well-formed is read with a note if its meaning is clear, else refused."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import raises

import chasles
from chasles.formats import sdf, urdf
from chasles.formats.xml_file import parse

BODY = """<robot name="arm">
  <link name="base"/>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 0.2 0.3"/>
      <mass value="2"/>
      <inertia ixx="0.1" ixy="0.01" ixz="0.02" iyy="0.2" iyz="0.03" izz="0.15"/>
    </inertial>
  </link>
  <joint name="shoulder" type="continuous">
    <origin xyz="0 0 0.5"/><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
  </joint>
</robot>
"""
HEAD = '<?xml version="1.0"?>\n'
PLAIN = HEAD + BODY


def inside(text: str) -> str:
    """Return the robot with a text as its first content, on line 3."""
    return PLAIN.replace('"arm">\n', f'"arm">\n{text}', 1)


SLIPS = {
    "no such version": ('<?xml version="0.0"?>\n' + BODY, ":1: ", "begin the file with"),
    "no version": ('<?xml encoding="utf-8"?>\n' + BODY, ":1: ", "begin the file with"),
    "no quotes": ("<?xml version=1.0?>\n" + BODY, ":1: ", "begin the file with"),
    "two declarations": (HEAD + PLAIN, ":2: ", "begin the file with"),
    "capital letters": ('<?XML version="1.0"?>\n' + BODY, ":1: ", "begin the file with"),
    "space in the declaration": ('<? xml version="1.0"?>\n' + BODY, ":1: ", "begin the file with"),
    "null characters at the end": (PLAIN + "\0\0\n", ":15: XML: null", "remove them"),
    "second robot": (PLAIN + BODY, ":15: XML: <robot> after the end", "remove it"),
    "end tag twice": (PLAIN + "</robot>\n", ":15: XML: </robot> after the end", "remove it"),
    "end tags of others": (PLAIN + "\n</body></html>", ":16: XML: </body> after", "remove it"),
    "element and end tag": (PLAIN + "<a b='1'><c/></a></robot>", ":15: XML: <a> after", "remove"),
    "blank line first": ("\n" + PLAIN, ":2: ", "begin the file with"),
    "comment first": ("<!-- a\n -->" + PLAIN, ":2: ", "begin the file with"),
    "text first": ('hello "' + PLAIN, ":1: XML: text", "remove it"),
    "tag cut": (PLAIN[1:], ":1: XML: text", "remove it"),
    "prefix of an element": (inside("<a:b/><a:c/>"), ":3: XML: namespace prefix 'a'", "xmlns:a="),
    "prefix of an attribute": (inside("<b a:c='1'/>"), ":3: XML: namespace prefix 'a'", "xmlns:a="),
    "empty namespace": (inside("<b xmlns:a=''/>"), ":3: XML: namespace prefix 'a'", "xmlns:a="),
    "hyphens": (inside("<!-- a -- b -->"), ":3: XML: a comment", "other characters"),
    "hyphens at the end": (inside("<!--- a --->"), ":3: XML: a comment", "other characters"),
    "control character": (inside("<!-- \x01 -->"), ":3: XML: a comment", "other characters"),
    "ampersand": (inside("<b c='a & d'/>"), ":3: XML: '&'", "&amp;"),
    "no such encoding": (PLAIN.replace("?>", ' encoding="UTF9"?>'), ":1: ", "save it as UTF-8"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored(text: str, encoding: str = "utf-8") -> str:
    Path("arm.urdf").write_bytes(text.encode(encoding))
    return "arm.urdf"


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_read_and_noted(folder: Path, name: str) -> None:
    text, *said = SLIPS[name]
    expected, found = urdf.read(stored(PLAIN)), urdf.read(stored(text))
    assert replace(expected, links=(), joints=(), notes=()) == replace(
        found, links=(), joints=(), notes=()
    )
    assert [link.inertia for link in found.links] == [link.inertia for link in expected.links]
    assert [joint.axis for joint in found.joints] == [joint.axis for joint in expected.joints]
    assert len(found.notes) == 1
    assert found.notes[0].startswith("arm.urdf")
    assert all(words in found.notes[0] for words in said)


@pytest.mark.parametrize("name", SLIPS)
def test_pinocchio_reads_the_same_of_it(folder: Path, name: str) -> None:
    pin = pytest.importorskip("pinocchio")
    if name in ("comment first", "text first"):
        pytest.skip("TinyXML refuses a declaration after it")
    model = pin.buildModelFromUrdf(stored(SLIPS[name][0]))
    robot, q = chasles.load("arm.urdf"), np.array([0.3])
    x = np.array([np.cos(0.3), np.sin(0.3)])
    M = pin.crba(model, model.createData(), x)
    assert robot.mass_matrix(q) == pytest.approx(M, rel=1e-12)


def test_lines_keep_their_numbers(folder: Path) -> None:
    text = '\n<?xml version="1.0"\n?>\n<!-- a -- \n b -->' + BODY
    places = [link.where for link in urdf.read(stored(text)).links]
    assert places == ["arm.urdf:6", "arm.urdf:7"]


def test_bytes_of_another_encoding(folder: Path) -> None:
    named = PLAIN.replace("upper", "épaule")
    assert urdf.read(stored(named)).notes == ()
    found = urdf.read(stored(named, "latin-1"))
    assert found.links[1].name == "épaule"
    assert "ISO 8859-1" in found.notes[0]


def test_a_declared_encoding_counts_beside_other_slips(folder: Path) -> None:
    named = inside("<a:b/>").replace("?>", ' encoding="iso-8859-2"?>').replace("upper", "łokieć")
    found = urdf.read(stored(named, "iso-8859-2"))
    assert found.links[1].name == "łokieć"
    assert ["namespace" in note for note in found.notes] == [True]


OPEN = {
    "cut": PLAIN[:-12],
    "mismatch": PLAIN.replace("</inertial>", "</inertia>"),
    "attribute twice": inside('<b c="1" c="2"/>'),
    "no quotes": inside("<b c=1/>"),
    "entity": inside("&a;"),
    "text after the end": PLAIN + "hello",
    "text after a second end tag": PLAIN + "</robot>hello",
    "second end tag that is cut": PLAIN + "</robot",
    "second document that is cut": PLAIN + BODY[:-12],
    "text after a second document": PLAIN + BODY + "hello",
    "null characters within": HEAD + "\0" + BODY,
    "second document with an entity": PLAIN + inside("&a;")[len(HEAD) :],
    "slip and entity": "\n" + inside("<!-- -- -->&a;"),
    "comment without end": inside("<!-- "),
}


@pytest.mark.parametrize("name", OPEN)
def test_a_document_whose_meaning_is_open_is_refused(folder: Path, name: str) -> None:
    with raises("E-XML-001", "arm.urdf", "invalid XML"):
        urdf.read(stored(OPEN[name]))


@pytest.mark.parametrize("start", ["\n", "<!-- -- -->", "<?xml version='0'?>"])
def test_document_types_do_not_hide_behind_slips(folder: Path, start: str) -> None:
    text = start + HEAD + '<!DOCTYPE robot [<!ENTITY a "b">]>' + inside("&a;")[len(HEAD) :]
    with raises("E-XML-003"):
        urdf.read(stored(text))
    with raises("E-XML-001|E-XML-003"):
        urdf.read(stored(text, "utf-16"))


def test_many_slips_take_linear_time() -> None:
    for unit in ("<!-- ", "&", "<?xml ", "<!-- -- -->"):
        data = f"\n<robot>{unit * 100_000}</robot>".encode()
        start = time.process_time()
        with raises("E-XML-001"):
            parse("arm.urdf", data + b"<")
        assert time.process_time() - start < 5.0


def test_sdf_files_are_recovered_too(folder: Path) -> None:
    text = (
        '\n<?xml version="1.0"?><sdf version="1.7"><model name="m"><link name="a"/></model></sdf>'
    )
    Path("m.sdf").write_text(text)
    assert any("m.sdf:2: XML: '<?xml" in note for note in sdf.read("m.sdf").notes)


def test_an_end_tag_twice_in_other_formats(folder: Path) -> None:
    """MuJoCo and sdformat ignore end tags after the root element."""
    mujoco = pytest.importorskip("mujoco")
    body = '<body name="b"><joint/><geom size="0.1"/></body>'
    text = f"<mujoco><worldbody>{body}</worldbody></mujoco>\n</mujoco>\n"
    assert mujoco.MjModel.from_xml_string(text).nv == 1
    Path("m.xml").write_text(text)
    Path("m.sdf").write_text(
        '<sdf version="1.7"><model name="m"><link name="a"/></model></sdf></sdf>'
    )
    for name, line in (("m.xml", 2), ("m.sdf", 1)):
        notes = chasles.load(name).notes
        assert any(f"{name}:{line}: XML: </" in note and "remove it" in note for note in notes)


def test_mjcf_files_are_recovered_too(folder: Path) -> None:
    pytest.importorskip("mujoco")
    body = '<body name="b"><joint/><geom size="0.1"/></body>'
    Path("m.xml").write_text(f"<!-- a -- b --><mujoco><worldbody>{body}</worldbody></mujoco>")
    robot = chasles.load("m.xml")
    assert robot.nv == 1
    assert any("m.xml:1: XML: a comment" in note for note in robot.notes)


# Inertias ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["", "<mass/>"])
def test_without_a_mass_a_link_has_no_inertia(folder: Path, given: str) -> None:
    found = urdf.read(stored(PLAIN.replace('<mass value="2"/>', given)))
    assert not any((found.links[1].inertia.m, *found.links[1].inertia.I))
    assert any("arm.urdf:5: link 'upper': <inertial> has no mass" in x for x in found.notes)


def test_moments_that_are_absent_are_zero(folder: Path) -> None:
    zero = urdf.read(stored(PLAIN.replace('ixy="0.01"', 'ixy="0"'))).links[1].inertia
    found = urdf.read(stored(PLAIN.replace('ixy="0.01"', "")))
    assert found.links[1].inertia == zero
    assert any("link 'upper': inertia has no ixy; 0 is used" in note for note in found.notes)


def test_a_mass_without_moments_is_a_point(folder: Path) -> None:
    tensor = PLAIN[PLAIN.index("<inertia ") : PLAIN.index("</inertial>")]
    robot = chasles.load(stored(PLAIN.replace(tensor, "")))
    assert robot.mass_matrix([0.0]) == pytest.approx(np.array([[2.0 * (0.1**2 + 0.3**2)]]))
    assert any("no ixx, iyy, izz, ixy, ixz, iyz" in note for note in robot.notes)
