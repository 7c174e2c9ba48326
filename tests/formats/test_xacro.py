"""xacro: expansion, source locations in messages, and limits."""

import importlib.util
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import raises
from xacro_files import ARM, FILES, HEAD, LEGS, PARTS, put

import chasles
from chasles.formats import xacro
from chasles.model import ModelError

Saved = Callable[..., Path]


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Saved:
    """Return a function that writes two files to the working folder and returns the robot file."""
    monkeypatch.chdir(tmp_path)

    def save(text: str = ARM, parts: str = PARTS, name: str = "arm.urdf.xacro") -> Path:
        Path("parts.xacro").write_text(parts)
        Path(name).write_bytes(text.encode(errors="surrogateescape"))
        return Path(name)

    return save


def test_macros_conditions_and_arguments(saved: Saved) -> None:
    robot = chasles.load(saved())
    assert robot.joints == ("joint1", "joint2")
    assert [link.inertia.I.xx for link in robot.model.source.links[1:]] == [0.2, 0.4]
    three = chasles.load(saved(), arguments={"count": "3"})
    assert three.joints == ("joint1", "joint2", "joint3")
    pose = three.forward_kinematics(np.zeros(3), frame="link3")
    np.testing.assert_allclose(pose[:3, 3], [0.0, 0.0, 0.6], atol=1e-12)
    assert three.notes == robot.notes


@pytest.mark.parametrize("trust", [False, True])
def test_unused_arguments_are_noted(saved: Saved, trust: bool) -> None:
    """Including a misspelled one, which would otherwise have no effect without a message."""
    (note,) = (
        note
        for note in chasles.load(saved(), arguments={"cuont": "3"}, trust=trust).notes
        if "argument" in note
    )
    assert note == (
        "arm.urdf.xacro: the file does not use the argument 'cuont'; did you mean 'count'?"
    )


def test_messages_say_where_an_element_was_written(saved: Saved) -> None:
    """The location is found in an included file, through two macros."""
    bad = PARTS.replace('<mass value="2"/>', '<mass value="${name}"/>')
    with raises("E-XML-007", "mass value is 'link1'") as caught:
        chasles.load(saved(parts=bad))
    assert caught.value.file.endswith("/parts.xacro")
    assert (caught.value.line, caught.value.part) == (4, "link 'link1'")
    notes = chasles.load(saved(ARM.replace("${pi / 2}", "1.5708"))).notes
    assert any("arm.urdf.xacro:9: joint 'joint1': angle 1.5708 taken as pi/2" in x for x in notes)


@pytest.mark.parametrize("name", FILES)
def test_all_of_the_language(name: str, tmp_path: Path) -> None:
    (put(tmp_path) / "robot.xacro").write_text(FILES[name])
    assert chasles.load(tmp_path / "robot.xacro").nv == 2


WRONG = {
    "expression": (
        ARM.replace('0.1 * k}"/>\n  <joint', '0.1 * m}"/>\n  <joint'),
        "arm.urdf.xacro:6: in macro 'rod', in macro 'arm', xacro: name 'm' is not defined when",
    ),
    "macro": (
        ARM.replace("xacro:rod", "xacro:rot"),
        "arm.urdf.xacro:6: in macro 'arm', xacro: unknown macro name: xacro:rot",
    ),
    "argument": (
        ARM.replace('<xacro:arg name="count" default="2"/>', ""),
        "arm.urdf.xacro:13: in macro 'arm', xacro: Undefined substitution argument count; pass it: "
        "chasles.load(path, arguments=",
    ),
    "xml": (ARM.replace("</robot>", ""), "arm.urdf.xacro:14: invalid XML: "),
    "file": (
        ARM.replace("parts.xacro", "pats.xacro"),
        "arm.urdf.xacro:3: xacro: the included file 'pats.xacro' does not exist",
    ),
    "package": (
        ARM.replace("parts.xacro", "$(find nowhere)/parts.xacro"),
        "arm.urdf.xacro:3: xacro: package 'nowhere' was not found in the parent folders of the "
        "file or their subfolders; put the package in one of these folders",
    ),
    "escape": (
        ARM.replace("${0.1 * k}", "${().__class__}", 1),
        "arm.urdf.xacro:6: in macro 'rod', in macro 'arm', xacro: attribute '__class__' of a tuple "
        "is not supported: ${().__class__}; if you trust the file, allow it to run Python "
        "with trust=True [E-XACRO-003]",
    ),
    "block": (
        LEGS.replace('name="origin"', 'name="place"').replace("$(find legs)/", ""),
        "arm.urdf.xacro:13: in macro 'leg', in macro 'legs', xacro: Undefined block \"place\";",
    ),
    "bytes": (ARM.replace("</robot>", "\udcff"), "arm.urdf.xacro:14: invalid XML"),
    "endless": (ARM.replace("${k &lt; n}", "1"), "files are infinitely recursive"),
    "elements": (
        ARM.replace("</robot>", "<a/>" * 500_000 + "</robot>"),
        "arm.urdf.xacro: the file contains 500",
    ),
    "entity": (
        "<!DOCTYPE r [<!ENTITY a 'b'>]>" + ARM,
        "document type declarations and entities are not supported",
    ),
    "no robot": (
        ARM.replace("robot", "robbot"),
        "the root element is <robbot>, not <robot>; use <robot>",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused_with_reason(name: str, saved: Saved) -> None:
    text, message = WRONG[name]
    with pytest.raises(ModelError) as caught:
        chasles.load(saved(text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_packages_are_above_the_file(saved: Saved, tmp_path: Path) -> None:
    folder = tmp_path / "arm_description" / "urdf"
    folder.mkdir(parents=True)
    saved(name="arm_description/parts.xacro", text=PARTS)
    text = ARM.replace("parts.xacro", "$(find arm_description)/parts.xacro")
    robot = chasles.load(saved(text, name="arm_description/urdf/arm.xacro"))
    assert robot.joints == ("joint1", "joint2")


@pytest.mark.parametrize(
    "expression", ["${max(range(10**12))}", "${[0] * 10**10}", "${9**9**9**9}"]
)
def test_a_file_that_takes_for_ever_is_stopped(
    expression: str, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xacro, "XACRO", replace(xacro.XACRO, seconds=1.5))
    start = sum(os.times()[:4])  # processor time, including ended child processes
    with raises("E-FILE-038|E-XACRO-002"):
        chasles.load(saved(ARM.replace("${0.1 * k}", expression, 1)), trust=True)
    assert sum(os.times()[:4]) - start < 10.0


def test_text_that_grows_without_end_is_refused(
    saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each macro calls the previous one ten times."""
    monkeypatch.setattr(xacro, "XACRO", replace(xacro.XACRO, seconds=1.5))
    macros = "".join(
        f'<xacro:macro name="m{k}">' + f"<xacro:m{k - 1}/>" * 10 + "</xacro:macro>"
        for k in range(1, 9)
    )
    first = '<xacro:macro name="m0"><link name="a"/></xacro:macro>'
    with raises("E-FILE-038"):
        chasles.load(saved(f"{HEAD}{first}{macros}<xacro:m8/></robot>"))


def test_arguments_are_for_xacro_only() -> None:
    with raises("E-FILE-001"):
        chasles.load("a.urdf", arguments={"a": "b"})


def test_without_the_package_the_remedy_is_named(
    saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with raises("E-FILE-036", "'chasles[xacro]'"):
        chasles.load(saved())
