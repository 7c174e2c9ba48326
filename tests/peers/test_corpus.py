"""The corpus of robot files: finding, counting and explaining files, and readers that crash."""

import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest
from benchmarks import command_corpus, corpus
from benchmarks.corpus import Case, Outcome, Reader

GOOD = """<?xml version="0.0"?>
<robot name="r"><link name="a"/>
<link name="b"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" MORE/></inertial></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>
"""
MJCF = """<mujoco><worldbody><body name="b"><joint name="j"/><geom size="0.1"/></body>
</worldbody></mujoco>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    within = tmp_path / "arms"
    (within / "deep").mkdir(parents=True)
    (within / "deep" / "good.urdf").write_text(GOOD.replace("MORE", 'ixy="0" ixz="0" iyz="0"'))
    (within / "idle.urdf").write_text(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="revolute">'
        '<origin xyz="0.3 0.2 0.1" rpy="0.4 0.5 0.6"/><parent link="a"/><child link="b"/>'
        '<axis xyz="1 2 3"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>'
    )
    (within / "short.urdf").write_text(GOOD.replace("MORE", 'ixy="0" ixz="0"'))
    (within / "cut.urdf").write_text(GOOD[:-12])
    (within / "ball.xml").write_text(MJCF)
    (within / "other.xml").write_text("<launch/>")
    return within


def test_files_of_a_folder(folder: Path) -> None:
    found = list(corpus.in_folder(folder))
    assert {case.package for case in found} == {"arms"}
    names = {(case.format, case.path.name) for case in found}
    robots = ("good", "idle", "short", "cut")
    assert names == {("MJCF", "ball.xml"), *(("URDF", f"{name}.urdf") for name in robots)}


def test_files_of_packages() -> None:
    pytest.importorskip("pinocchio")
    found = [case for case in corpus.in_packages(sys.path) if case.package == "example-robot-data"]
    if not found:
        pytest.skip("example-robot-data is not installed")
    assert "panda.urdf" in [case.path.name for case in found if case.format == "URDF"]


def test_files_that_agree_now_are_counted_again() -> None:
    page = (
        "| format | files | read by the reference | read by both | agree | differ | other |\n"
        "| MJCF | 9 | 8 | 8 | 6 | 2 | 0 |\n| URDF | 9 | 8 | 8 | 6 | 2 | 0 |\n"
        "| arms | MJCF | 5 | 4 | 4 | 2 | 2 | 0 |\n| legs | MJCF | 4 | 4 | 4 | 4 | 0 | 0 |\n"
        "| arms: a.xml | nothing |\n| arms: b.xml | nothing |\n"
    )
    good = {"notes": [], "first": "", "cause": ""}
    bad = good | {"first": "mass matrix"}
    cases = [Case("arms", "MJCF", Path(f"{name}.xml")) for name in "ab"]
    outcomes = [Outcome(case, found) for case, found in zip(cases, (good, bad), strict=True)]
    assert command_corpus.corrected(page, outcomes) == page.replace(
        "| MJCF | 9 | 8 | 8 | 6 | 2 | 0 |", "| MJCF | 9 | 8 | 8 | 7 | 1 | 0 |"
    ).replace("| 5 | 4 | 4 | 2 | 2 | 0 |", "| 5 | 4 | 4 | 3 | 1 | 0 |").replace(
        "| arms: a.xml | nothing |\n", ""
    )


def test_tables(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    page, record, parser = tmp_path / "page.md", tmp_path / "record.jsonl", ArgumentParser()
    page.write_text("Before\n\n<!-- corpus -->\nold\n<!-- end -->\nAfter\n")
    command_corpus.arguments(parser)
    words = ["--folders", str(folder), "--record", str(record)]
    assert command_corpus.run(parser.parse_args(words)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "| URDF | 4 | 3 | 3 | 2 | 1 | 0 | 0 | 0 |" in lines
    assert "| arms | MJCF | 1 | 1 | 1 | 1 | 0 | 0 | 0 | 0 |" in lines
    assert any("short.urdf" in line and "inertia has no iyz; 0 is used" in line for line in lines)
    assert len(record.read_text().splitlines()) == 5
    assert command_corpus.run(parser.parse_args([*words, "--page", str(page)])) == 0
    assert page.read_text().startswith("Before\n\n<!-- corpus -->\n\n| format | files |")
    assert page.read_text().endswith("<!-- end -->\nAfter\n")


def test_robots_without_inertia_agree_in_kinematics(folder: Path) -> None:
    pytest.importorskip("pinocchio")
    reader = Reader()
    try:
        found = reader.tried(Case("arms", "URDF", folder / "idle.urdf"))
    finally:
        reader.close()
    assert found.agrees
    assert found.found["idle"] == ["j"]
    assert 0.0 < found.kinematics < 1e-12


STUB = """
import json, os, sys, time
for line in sys.stdin:
    print(json.dumps("reference"), flush=True)
    print(json.dumps("here"), flush=True)
    name = json.loads(line)["path"]
    if name == "crash":
        os._exit(3)
    if name == "hang":
        time.sleep(60)
    print(json.dumps({"notes": [], "idle": [], "first": "", "cause": ""}), flush=True)
"""


def test_a_crash_and_a_hang_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that crashes or hangs is ended, and another process reads the next file."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "corpus_child.py").write_text(STUB)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    reader = Reader(seconds=5.0)
    try:
        outcomes = [reader.tried(Case("p", "URDF", Path(x))) for x in ("a", "crash", "hang", "b")]
    finally:
        reader.close()
    assert [x.ended for x in outcomes] == ["", "crash (here)", "hang (here)", ""]
    assert [x.known for x in outcomes] == [True] * 4
    assert [x.agrees for x in outcomes] == [True, False, False, True]


def outcome(**found: object) -> Outcome:
    return Outcome(Case("p", "URDF", Path("a/b.urdf")), {"notes": [], "first": "", **found})


def test_what_counts() -> None:
    unlike = {"first": "mass of link 'b': 1 here, 2 there", "cause": "mass: link 'b'"}
    said = outcome(
        notes=["a/b.urdf:1: link 'a': odd", "a/b.urdf:3: link 'b': taken as 0"], **unlike
    )
    assert said.explanation == "b.urdf:3: link 'b': taken as 0"
    cited = {"first": unlike["first"], "cause": "inertia: a/b.urdf:3: link 'b': taken as 0"}
    both = ["a/b.urdf: link 'b' floats", "a/b.urdf:3: link 'b': taken as 0"]
    assert outcome(notes=both, **cited).explanation == said.explanation
    assert not outcome(notes=["a/b.urdf:1: link 'a': odd"], **unlike).explanation
    assert not Outcome(said.case, {"unread": "ValueError"}).known
    assert not Outcome(said.case, {"crash": "reference"}).known
