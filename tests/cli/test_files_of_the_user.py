"""No command loses a user's file: files are replaced only on request, and always completely."""

import errno
import json
import os
import resource
import signal
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kill_stress
import pytest
from support import raises
from typer.testing import CliRunner

import chasles
from chasles import writing
from chasles.cli import app, command
from chasles.cli.manifest import Manifest

demo, bench = (import_module(f"chasles.cli.commands.{name}") for name in ("demo", "bench"))

QUICK = ["simulate", "planar:1", "--duration", "0.01", "--no-plots"]
SCENARIO = 'format = "scenario"\nrobot = "arm.urdf"\nduration = 0.01\n'
WRITERS: dict[str, tuple[str, list[str]]] = {
    "convert": ("out.toml", ["convert", "arm.urdf", "TARGET"]),
    "motion": ("out.csv", ["motion", "planar:1", "swing.csv", "--output", "TARGET"]),
    "motion plot": ("out.svg", ["motion", "planar:1", "swing.csv", "--plot", "TARGET"]),
    "demo": ("out.png", ["demo", "--output", "TARGET"]),
    "bench": ("out.pdf", ["bench", "planar:1", "--batch", "2", "--output", "TARGET"]),
    "simulate table": ("out.csv", [*QUICK, "--table", "TARGET"]),
    "scenario": ("out.toml", ["simulate", "planar:1", "--write-scenario", "TARGET"]),
}
"""Arguments of every command that writes a given file, and the name of the file."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with input files, where benchmarks and plots take no time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "picture", lambda figure, suffix: b"a picture")

    def plot(_: Any, path: Path, *, overwrite: bool) -> None:
        command.write_picture(None, path, overwrite=overwrite)

    for module in (demo, bench):
        monkeypatch.setattr(module, "run", lambda *_, **__: SimpleNamespace(checks=()))
        monkeypatch.setattr(module, "_data", lambda _: {})
        monkeypatch.setattr(module, "_plot", plot)
    monkeypatch.setattr(demo, "_show", lambda *_: None)
    monkeypatch.setattr(bench, "show", lambda *_: None)
    (tmp_path / "arm.urdf").write_text('<robot name="arm"><link name="base"/></robot>')
    (tmp_path / "swing.csv").write_text("t,joint1.q,joint1.qd,joint1.qdd\n0,0,1,0\n1,1,1,0\n")
    return tmp_path


def invoke(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "80", "NO_COLOR": "1"})
    assert result.exit_code == code, (words, result.output)
    return result.output


def runs(name: str) -> tuple[Path, Callable[..., str]]:
    """Return the target of a writer and a function that runs it, with a new folder each time."""
    target, words = WRITERS[name]
    folders = iter(range(100))

    def call(*more: str, to: str = target, code: int = 0) -> str:
        given = [to if word == "TARGET" else word for word in words]
        given += ["--output", f"folder{next(folders)}"] if name == "simulate table" else []
        return invoke(*given, *more, code=code)

    return Path(target), call


def temporary(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.startswith(".")]


# One file --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_is_there_stays_unless_told(name: str, here: Path) -> None:
    target, call = runs(name)
    target.write_text("mine")
    target.chmod(0o640)
    text = call(code=2)
    assert f"{target}: the file already exists; choose another name" in text
    assert "--overwrite" in text
    assert target.read_text() == "mine"
    call("--overwrite")
    assert target.stat().st_size > 4
    assert target.stat().st_mode & 0o777 == 0o640
    assert not temporary(here)


@pytest.mark.parametrize("name", WRITERS)
def test_folders_links_and_places_that_cannot_be_written(name: str, here: Path) -> None:
    target, call = runs(name)
    target.mkdir()
    (target / "mine").write_text("mine")
    assert "E-" in call(code=2)
    assert "E-" in call("--overwrite", code=2)
    assert (target / "mine").read_text() == "mine"
    elsewhere = here / "elsewhere" / f"mine{target.suffix}"
    elsewhere.parent.mkdir()
    link = f"link{target.suffix}"
    Path(link).symlink_to(elsewhere)
    call(to=link, code=2)  # also a link without a target
    assert not elsewhere.exists()
    elsewhere.write_text("mine")
    call(to=link, code=2)
    assert elsewhere.read_text() == "mine"
    call("--overwrite", to=link)  # the link stays, and its target is replaced
    assert Path(link).is_symlink()
    assert elsewhere.read_bytes() != b"mine"
    for place in ("/proc", "/dev/null", "arm.urdf"):
        call(to=f"{place}/x{target.suffix}", code=2)
    assert "E-" in call(to=f"{'x' * 300}{target.suffix}", code=2)
    assert not temporary(here)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("old", [True, False])
def test_full_disks_and_interrupts(
    name: str, old: bool, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old file remains complete, or no file exists; a second run succeeds."""
    target, call = runs(name)
    if old:
        target.write_text("old")
    how, before = ["--overwrite"] if old else [], resource.getrlimit(resource.RLIMIT_FSIZE)
    if name != "simulate table":  # its folder reaches the limit first
        resource.setrlimit(resource.RLIMIT_FSIZE, (2, before[1]))
        try:
            assert "File too large; choose another path; nothing was written" in call(*how, code=2)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert (target.read_text() == "old") if old else not target.exists()
    replace, link = os.replace, os.link

    def interrupted(step: Callable[..., None], path: Any, to: Any, **place: Any) -> None:
        if Path(to).name == target.name:
            raise KeyboardInterrupt
        step(path, to, **place)

    monkeypatch.setattr(os, "replace", partial(interrupted, replace))
    monkeypatch.setattr(os, "link", partial(interrupted, link))
    call(*how, code=130)
    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "link", link)
    assert (target.read_text() == "old") if old else not target.exists()
    assert not temporary(here)
    call(*how)
    assert target.stat().st_size > 4


def test_what_is_read_is_never_written_over(here: Path) -> None:
    """Input files are recognized by other spellings of the path, hard links and symbolic links."""
    (here / "arm.toml").write_text(SCENARIO)
    for file, words in (
        ("arm.urdf", ["convert", "arm.urdf", "TARGET"]),
        ("swing.csv", ["motion", "planar:1", "swing.csv", "-o", "TARGET"]),
        ("arm.toml", ["simulate", "arm.toml", "--write-scenario", "TARGET"]),
    ):
        before, suffix = Path(file).read_bytes(), Path(file).suffix
        os.link(file, f"hard{suffix}")
        Path(f"soft{suffix}").symlink_to(here / file)
        spellings = [file, f"./{file}", f"../{here.name}/{file}", str(here / file)]
        for name in (*spellings, f"hard{suffix}", f"soft{suffix}"):
            given = [name if word == "TARGET" else word for word in words]
            text = invoke(*given, "--overwrite", code=2)
            assert "the output file is also an input file" in text
            assert Path(file).read_bytes() == before
        if Path(file.upper()).exists():  # a case-insensitive file system
            given = [file.upper() if word == "TARGET" else word for word in words]
            assert "is also an input file" in invoke(*given, "--overwrite", code=2)


def test_files_that_are_included_are_read(here: Path) -> None:
    """An included file of the robot counts as input."""
    (here / "base.xml").write_text(
        "<mujoco><worldbody><body name='a'><joint name='j' axis='0 0 1'/>"
        "<geom size='0.1'/></body></worldbody></mujoco>"
    )
    invoke("convert", "base.xml", "base.xml", "--overwrite", code=2)
    assert "geom" in (here / "base.xml").read_text()


def test_save(here: Path) -> None:
    robot = chasles.load("arm.urdf")
    before = (here / "arm.urdf").read_bytes()
    with raises("E-FILE-061", "arm.urdf", kind=FileExistsError):
        chasles.save(robot, "arm.urdf")
    assert (here / "arm.urdf").read_bytes() == before
    chasles.save(robot, "arm.urdf", overwrite=True)
    assert (here / "arm.urdf").read_bytes() != before
    with raises("E-FILE-062|E-FILE-011"):
        chasles.save(robot, "a\0.toml")


def test_a_file_that_comes_meanwhile_stays(here: Path) -> None:
    """A file that appears while the output is being written is kept."""
    with raises("E-FILE-063"), writing.whole("a.txt", overwrite=False) as part:
        part.write_text("new")
        (here / "a.txt").write_text("mine")
    assert (here / "a.txt").read_text() == "mine"
    assert not temporary(here)


@pytest.mark.parametrize("links", [True, False])
def test_disks_without_links(links: bool, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", refused)
    writing.store("a.txt", "new", overwrite=False)
    assert (here / "a.txt").read_text() == "new"


def test_a_repaired_copy_is_new(here: Path) -> None:
    """The copy of `lint --fix` never replaces another file, not even through a link."""
    inertia = '<inertia ixx="-1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    (here / "odd.urdf").write_text(
        f'<robot name="a"><link name="l"><inertial><mass value="1"/>{inertia}</inertial></link>'
        '<link name="k"/><joint name="j" type="continuous"><parent link="k"/><child link="l"/>'
        "</joint></robot>"
    )
    (here / "odd.fixed.urdf").symlink_to(here / "elsewhere.urdf")
    before = (here / "odd.urdf").read_bytes()
    assert "E-CLI-017" in invoke("lint", "odd.urdf", "--fix", code=2)
    assert not (here / "elsewhere.urdf").exists()
    (here / "odd.fixed.urdf").unlink()
    invoke("lint", "odd.urdf", "--fix", "--fail-on", "never")
    assert (here / "odd.fixed.urdf").exists()
    assert (here / "odd.urdf").read_bytes() == before


def test_exported_files_are_all_new_or_all_old(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's file, a full disk at any write, or an interrupt leaves no new files."""
    words = ["export", "planar:1", "-f", "mass_matrix", "-o", "c"]
    (here / "c").mkdir()
    (here / "c/CMakeLists.txt").write_text("mine")
    assert "c/CMakeLists.txt: the file already exists" in invoke(*words, code=2)
    assert [path.name for path in (here / "c").iterdir()] == ["CMakeLists.txt"]
    synced = os.fsync
    full = OSError(errno.ENOSPC, "No space left on device")

    def fsync(room: int, calls: Any, failure: BaseException, file: int) -> None:
        if next(calls) >= room:
            raise failure
        synced(file)

    for room in range(4):
        for failure, code in ((full, 2), (KeyboardInterrupt(), 130)):
            monkeypatch.setattr(os, "fsync", partial(fsync, room, iter(range(100)), failure))
            invoke(*words, "--overwrite", code=code)
            assert [path.name for path in (here / "c").iterdir()] == ["CMakeLists.txt"]
            assert (here / "c/CMakeLists.txt").read_text() == "mine"
    monkeypatch.setattr(os, "fsync", synced)
    invoke(*words, "--overwrite")
    assert len(list((here / "c").iterdir())) == 4
    (here / "file").write_text("mine")
    for place in ("file", "/proc/c", "no/such"):
        invoke(*words[:-1], place, code=2)
    assert (here / "file").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork")
def test_killed_writers_leave_whole_files(here: Path) -> None:
    kill_stress.files(10)


# Files of killed writers -----------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork")
def test_what_killed_writers_left_is_collected(here: Path) -> None:
    """A writer removes files of killed writers, but not files in use or of other programs."""
    pid = os.fork()
    if pid == 0:
        with writing.whole("a.txt") as part:
            part.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert len(temporary(here)) == 1
    for name in (".a.txt.12.part", ".chasles-1-0123456789abcdef.part.gz", ".x.part"):
        (here / name).write_text("another program's")
    (here / ".chasles-2-0123456789abcdef.part").mkdir()
    (here / ".chasles-3-0123456789abcdef.part").symlink_to(here / "arm.urdf")
    os.mkfifo(here / ".chasles-4-0123456789abcdef.part")
    with writing.whole("living.txt") as held:
        writing.store("b.txt", "new")
        assert held.exists()
        left = {path.name for path in temporary(here)} - {held.name}
        held.write_text("new")
    kept = [".a.txt.12.part", ".chasles-1-0123456789abcdef.part.gz", ".x.part"]
    assert left == {*kept, *(f".chasles-{n}-0123456789abcdef.part" for n in (2, 3, 4))}
    assert (here / "living.txt").read_text() == "new"


# Folders of simulations ------------------------------------------------------------------------

SIMULATE = ["simulate", "planar:1", "--duration", "0.01", "-o", "out"]


@pytest.mark.parametrize(
    "name", ["motion.npz", "scenario.toml", "motion.png", "energy.png", "contact.png", "run.json"]
)
@pytest.mark.parametrize("more", [[], ["--overwrite"]])
def test_a_file_of_the_users_in_the_folder_is_named(name: str, more: list[str], here: Path) -> None:
    (here / "out").mkdir()
    (here / "out" / name).write_text("mine")
    text = invoke(*SIMULATE, *more, code=2)
    assert f"out/{name}: " in text
    assert "move the file elsewhere, or choose another --output" in text
    assert [path.name for path in (here / "out").iterdir()] == [name]
    assert (here / "out" / name).read_text() == "mine"


def test_other_files_in_the_folder_stay(here: Path) -> None:
    (here / "out").mkdir()
    digest = "0123456789abcdef"
    mine = ["notes.txt", f"part-000001-{digest}.npz", ".download.part", "part-1.npz"]
    for name in mine:
        (here / "out" / name).write_text("mine")
    invoke(*SIMULATE, "--no-plots")
    invoke(*SIMULATE, "--no-plots", "--overwrite")
    invoke(*SIMULATE, "--resume")
    assert all((here / "out" / name).read_text() == "mine" for name in mine)
    names = {path.name for path in (here / "out").iterdir()}
    assert names == {*mine, "run.json", "scenario.toml", "motion.npz", "motion.png", "energy.png"}


@pytest.mark.parametrize("name", ["motion.npz", "scenario.toml", "energy.png"])
def test_what_was_changed_since_is_the_users(name: str, here: Path) -> None:
    """Edited scenarios and replaced motions count as the user's files."""
    invoke(*SIMULATE)
    (here / "out" / name).write_text("edited")
    before = {path.name: path.read_bytes() for path in (here / "out").iterdir()}
    assert f"out/{name}: this file is not part of the simulation" in invoke(
        *SIMULATE, "--overwrite", code=2
    )
    assert {path.name: path.read_bytes() for path in (here / "out").iterdir()} == before
    (here / "out" / name).unlink()
    invoke(*SIMULATE, "--overwrite")


def test_the_scenario_in_the_folder_is_not_read_and_written(here: Path) -> None:
    invoke(*SIMULATE, "--no-plots")
    before = (here / "out/scenario.toml").read_bytes()
    (here / "link.toml").symlink_to("out/scenario.toml")
    for name in ("out/scenario.toml", "link.toml"):
        words = ["simulate", name, "--dt", "0.005", "-o", "out", "--overwrite"]
        assert "is also an input file" in invoke(*words, code=2)
    assert (here / "out/scenario.toml").read_bytes() == before


DAMAGES: list[dict[str, Any]] = [
    {"files": {"../arm.urdf": []}},
    {"files": {"motion.npz": "x"}},
    {"files": []},
    {"format": "chasles-run-1"},
    {"name": 3},
]


def test_a_manifest_cannot_name_other_files(here: Path) -> None:
    invoke(*SIMULATE, "--no-plots")
    path = here / "out/run.json"
    whole = json.loads(path.read_text())
    for damage in DAMAGES:
        path.write_text(json.dumps(whole | damage))
        for more in ("--overwrite", "--resume"):
            assert "out/run.json: the manifest is damaged or" in invoke(*SIMULATE, more, code=2)
    assert (here / "arm.urdf").exists()
    for text in ("", "[]", "null", "[" * 10**5, "\xff"):
        path.write_text(text, "latin-1")
        assert " is damaged or " in invoke(*SIMULATE, "--resume", code=2)
    path.unlink()
    path.mkdir()
    assert "out/run.json: Is a directory" in invoke(*SIMULATE, "--resume", code=2)


def test_a_full_disk_at_any_write(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full once at each file of a run; the resumed run is bitwise identical."""
    words = ["simulate", "planar:1", "--duration", "0.25", "--save", "0", "--no-plots"]
    invoke(*words, "-o", "whole")
    (here / "out").mkdir()
    (here / "out/mine.txt").write_text("mine")
    synced, room = os.fsync, 0
    while True:
        calls = iter(range(10**6))

        def fsync(file: int, room: int = room, calls: Any = calls) -> None:
            if next(calls) >= room % 7:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            synced(file)

        monkeypatch.setattr(os, "fsync", fsync)
        how = ["--resume"] if (here / "out/run.json").exists() else []
        given = [*words, "-o", "out", *how]
        result = CliRunner().invoke(app, given, env={"COLUMNS": "80", "NO_COLOR": "1"})
        monkeypatch.setattr(os, "fsync", synced)
        assert not temporary(here)
        if result.exit_code == 0:
            break
        assert "No space left on device" in result.output
        room += 1
    assert room > 4
    found = (here / "out/motion.npz").read_bytes()
    assert found == (here / "whole/motion.npz").read_bytes()
    assert (here / "out/mine.txt").read_text() == "mine"


def test_one_process_at_a_time(here: Path) -> None:
    invoke(*SIMULATE, "--no-plots")
    other = Manifest(here / "out")
    other.lock()
    for more in ("--overwrite", "--resume"):
        assert "another process is writing a simulation to this folder" in invoke(
            *SIMULATE, more, code=2
        )
    other.unlock()
    invoke(*SIMULATE, "--no-plots", "--overwrite")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork")
@pytest.mark.parametrize("way", kill_stress.WAYS)
def test_kills(way: str) -> None:
    """Run a few of the kills of `kill_stress`, which has run a thousand."""
    assert kill_stress.main(3, ways=[way]).total() == 3
