"""Compiled code on disk is used if it can be trusted and replaced otherwise, without errors."""

import concurrent.futures
import errno
import io
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np
import pytest

import chasles
from chasles import backends, writing
from chasles.backends import cache, objects
from chasles.backends.cache import Artifact
from chasles.backends.llvm import kernel as llvm
from chasles.functions import compiled
from chasles.functions.programs import Derivative
from chasles.functions.tracing import WrenchKey
from chasles.mathematics.linear import Vector
from chasles.robots import planar, puma560, random_tree

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="nothing is cached here")

Q = np.array([0.3])
TORQUE = planar(1).gravity_forces(Q)
INTERFACE = planar(1).function("gravity_forces").interface


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a separate cache folder, which does not exist yet."""
    place = tmp_path / "cache"
    monkeypatch.setenv("CHASLES_CACHE", str(place))
    return place


def forget() -> None:
    """Forget all traced programs and loaded code, as in a new process."""
    llvm.forget()
    compiled._TRACED.clear()


@pytest.fixture(autouse=True)
def nothing_loaded() -> None:
    forget()


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of the functions that were traced since the test began."""
    found: list[str] = []
    original = compiled.runnable

    def program(model: Any, function: str, **options: Any) -> Any:
        found.append(function)
        return original(model, function, **options)

    monkeypatch.setattr(compiled, "runnable", program)
    return found


def use() -> None:
    """Check that the robot computes correct values in a process that has loaded nothing."""
    forget()
    assert np.array_equal(planar(1).gravity_forces(Q), TORQUE)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def entry(folder: Path) -> Path:
    """Create an entry and return the path of its file."""
    use()
    (found,) = folder.glob("*.code")
    return found


# Hits ------------------------------------------------------------------------------------------


def test_a_hit_needs_neither_trace_nor_compiler(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use()

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("this should have come from the cache")

    monkeypatch.setattr(compiled, "runnable", never)
    monkeypatch.setattr(llvm, "build", never)
    monkeypatch.setattr(llvm, "assemble", never)
    use()
    robot = planar(1)
    assert np.array_equal(robot.gravity_forces(np.stack([Q] * 20)), np.stack([TORQUE] * 20))
    assert np.array_equal(robot.gravity_forces(Q), TORQUE)
    with pytest.raises(AssertionError, match="from the cache"):
        planar(1).mass_matrix(Q)


def test_a_file_in_another_folder_or_with_another_comment_is_a_hit(
    folder: Path, tmp_path: Path, traces: list[str]
) -> None:
    chasles.save(planar(1), tmp_path / "arm.urdf")
    text = (tmp_path / "arm.urdf").read_text("utf-8")
    (tmp_path / "moved").mkdir()
    for place, comment in (("", ""), ("moved", "<!-- mine -->\n")):
        path = tmp_path / place / "arm.urdf"
        path.write_text(text.replace("<link", f"{comment}<link", 1), "utf-8")
        forget()
        robot = chasles.load(path)
        assert np.array_equal(robot.gravity_forces(Q), TORQUE)
        assert traces == ["gravity_forces"]  # traced only once
        assert robot.joint(robot.joints[0]).where.startswith(f"{path}:")


def test_an_artifact_survives_as_bytes(folder: Path) -> None:
    for robot, function, options in (
        (planar(2), "ltdl_factors", {}),
        (random_tree(2, 4, floating=True), "inverse_dynamics", {"dtype": "float32"}),
        (planar(2), "potential_energy", {"parameters": ("link1.mass", "gravity")}),
    ):
        artifact = robot.function(function, **options).kernel.artifact
        again = Artifact.from_bytes(artifact.to_bytes())
        assert again == artifact
        assert [v.shape for v in again.interface.inputs] == [
            v.shape for v in artifact.interface.inputs
        ]


def test_the_folder_and_its_entries_are_private(folder: Path) -> None:
    """The folder and its entries are private for any `umask` of the process."""
    usual = os.umask(0)
    try:
        made = entry(folder)
    finally:
        os.umask(usual)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert files(folder) == [made.name]


def test_missing_parents_are_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = folder / "a" / "b"
    monkeypatch.setenv("CHASLES_CACHE", str(deep))
    use()
    assert len(files(deep)) == 1
    assert stat.S_IMODE(deep.stat().st_mode) == 0o700


def test_where_the_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHASLES_CACHE", str(tmp_path / "mine"))
    assert cache.folder() == tmp_path / "mine"
    for empty in (True, False):
        if empty:
            monkeypatch.setenv("CHASLES_CACHE", "")
        else:
            monkeypatch.delenv("CHASLES_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert cache.folder().name == "chasles"
        if sys.platform.startswith("linux"):
            assert cache.folder() == tmp_path / "xdg" / "chasles"


# Damage ----------------------------------------------------------------------------------------


def rewrite(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o600)


def test_a_flipped_byte_anywhere_is_noticed(folder: Path) -> None:
    path = entry(folder)
    name, good = path.stem, path.read_bytes()
    assert cache.load(name) is not None
    places = {*range(120), *range(len(good) - 20, len(good)), *range(0, len(good), 61)}
    for k in sorted(places):
        for bit in (0x01, 0x80):
            rewrite(path, good[:k] + bytes([good[k] ^ bit]) + good[k + 1 :])
            assert cache.load(name) is None, k
    rewrite(path, good)
    assert cache.load(name) is not None


def test_any_other_content_is_noticed(folder: Path) -> None:
    path = entry(folder)
    name, good = path.stem, path.read_bytes()
    magic = good.index(b"\n") + 1
    for content in (
        *(good[:size] for size in (0, 1, magic, magic + 31, magic + 32, magic + 40, 200)),
        good[:-1],
        good + b"\0",
        good[magic:],
        b"chasles 0\n" + good[magic:],
        b"chasles 12\n" + good[magic:],
        good.replace(b'"workspace": ', b'"workspace":  '),
        os.urandom(len(good)),
        b"\0" * len(good),
    ):
        rewrite(path, content)
        assert cache.load(name) is None


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff" * 8, b"\0" * 8, b"\2" + b"\0" * 7 + b"{}", b"\2" + b"\0" * 7 + b"[]code"],
    ids=repr,
)
def test_a_header_that_says_nothing_is_noticed(folder: Path, body: bytes) -> None:
    """A malformed header is detected, even if its digest is correct."""
    import hashlib

    path = entry(folder)
    magic = path.read_bytes()[: path.read_bytes().index(b"\n") + 1]
    rewrite(path, magic + hashlib.sha256(body).digest() + body)
    assert cache.load(path.stem) is None


@pytest.mark.parametrize("size", [0, 100, -1])
def test_a_damaged_entry_is_made_again(folder: Path, traces: list[str], size: int) -> None:
    path = entry(folder)
    good = path.read_bytes()
    rewrite(path, good[:size])
    use()
    assert traces == ["gravity_forces"] * 2
    assert path.read_bytes() == good
    use()
    assert traces == ["gravity_forces"] * 2


# Trust -----------------------------------------------------------------------------------------


def untrusted(traces: list[str]) -> bool:
    """Return True if a new robot traces its function despite the cache. Check its values."""
    before = len(traces)
    use()
    return len(traces) == before + 1


def test_a_foreign_owner(folder: Path, traces: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = entry(folder)
    content, someone = path.read_bytes(), os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: someone)
    assert untrusted(traces)
    assert cache.load(path.stem) is None
    assert not cache.save("other", Artifact.from_bytes(content))
    assert cache.entries() == []
    assert cache.clear() == (0, ())
    assert files(folder) == [path.name]


def test_a_foreign_entry_in_an_own_folder(
    folder: Path, traces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = entry(folder)
    original = os.fstat

    def fstat(fd: int) -> Any:
        found = original(fd)
        if stat.S_ISREG(found.st_mode) and found.st_ino == path.stat().st_ino:
            return os.stat_result([*found[:4], os.geteuid() + 1, *found[5:]])
        return found

    monkeypatch.setattr(os, "fstat", fstat)
    assert cache.load(path.stem) is None
    assert untrusted(traces)


@pytest.mark.parametrize("mode", [0o770, 0o720, 0o702, 0o777, 0o755, 0o750])
def test_a_folder_open_to_others(folder: Path, traces: list[str], mode: int) -> None:
    path = entry(folder)
    folder.chmod(mode)
    assert untrusted(traces)
    assert cache.load(path.stem) is None
    assert not cache.save("other", Artifact.from_bytes(path.read_bytes()))
    assert files(folder) == [path.name]
    folder.chmod(0o700)
    assert not untrusted(traces)


@pytest.mark.parametrize("mode", [0o660, 0o620, 0o602, 0o666, 0o640, 0o604])
def test_an_entry_open_to_others(folder: Path, traces: list[str], mode: int) -> None:
    path = entry(folder)
    path.chmod(mode)
    assert cache.load(path.stem) is None
    assert untrusted(traces)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600  # the new entry
    assert not untrusted(traces)


def test_a_linked_entry(folder: Path, traces: list[str], tmp_path: Path) -> None:
    """A symbolic link in place of an entry is not followed, neither to read nor to write."""
    path = entry(folder)
    target = tmp_path / "elsewhere"
    path.rename(target)
    path.symlink_to(target)
    target.write_bytes(target.read_bytes() + b"mark")
    target.chmod(0o600)
    assert cache.load(path.stem) is None
    assert untrusted(traces)
    assert not path.is_symlink()
    assert target.read_bytes().endswith(b"mark")


def test_a_linked_folder(folder: Path, traces: list[str], tmp_path: Path) -> None:
    path = entry(folder)
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert untrusted(traces)
    assert cache.entries() == []
    assert cache.clear() == (0, ())
    assert files(tmp_path / "elsewhere") == [path.name]


def test_a_linked_parent_is_no_trouble(
    folder: Path, traces: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Symbolic links in the path to the cache folder are allowed, as in many home folders."""
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "home", target_is_directory=True)
    monkeypatch.setenv("CHASLES_CACHE", str(tmp_path / "link" / "cache"))
    use()
    assert not untrusted(traces)


def descriptors() -> int:
    """Return the number of open files of this process."""
    return len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0


def test_something_else_in_the_place_of_an_entry(folder: Path, traces: list[str]) -> None:
    """A folder or pipe in place of an entry is ignored. Nothing blocks, and no file stays open."""
    path = entry(folder)
    path.unlink()
    path.mkdir()
    before = descriptors()
    for _ in range(5):
        assert cache.load(path.stem) is None
    assert descriptors() == before
    assert untrusted(traces)
    path.rmdir()
    os.mkfifo(path, 0o600)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cache.load, path.stem)
        done, _ = concurrent.futures.wait([waiting], timeout=5.0)
        if not done:  # let the other thread continue
            os.close(os.open(path, os.O_WRONLY))
    assert done, "a pipe was waited for"
    assert waiting.result() is None


def test_a_file_in_the_place_of_the_folder(folder: Path, traces: list[str]) -> None:
    folder.write_text("not a folder")
    assert untrusted(traces)
    assert cache.entries() == []
    assert cache.clear() == (0, ())
    assert folder.read_text() == "not a folder"


def test_a_file_in_the_place_of_a_parent(
    folder: Path, traces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write_text("not a folder")
    monkeypatch.setenv("CHASLES_CACHE", str(folder / "a" / "b"))
    assert untrusted(traces)


# Failed writes ---------------------------------------------------------------------------------


class Full(io.FileIO):
    """File on a full disk, which accepts a few bytes and then raises an error."""

    def write(self, data: Any) -> int:
        if self.tell():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(bytes(data)[:100])


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def _full(buffered: bool) -> Callable[..., Any]:
    def fdopen(fd: int, mode: str, **options: Any) -> Any:
        if "w" not in mode:
            return io.FileIO(fd, mode, **options)
        return (
            io.BufferedWriter(Full(fd, mode), 2**24)
            if buffered
            else io.BufferedWriter(Full(fd, mode), 1)
        )

    return fdopen


@pytest.mark.parametrize("when", ["writing", "closing", "renaming"])
def test_a_full_disk(
    folder: Path, traces: list[str], monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """A full disk leaves no file and raises no error. Entries are saved once there is space."""
    folder.mkdir(mode=0o700)
    with monkeypatch.context() as patch:
        if when == "renaming":
            patch.setattr(os, "replace", failing(errno.EDQUOT))
        else:
            patch.setattr(os, "fdopen", _full(buffered=when == "closing"))
        before = descriptors()
        assert untrusted(traces)
        assert untrusted(traces)
        assert descriptors() == before
    assert files(folder) == []
    assert untrusted(traces)
    assert not untrusted(traces)


def test_a_read_only_disk(folder: Path, traces: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a read-only disk, existing entries are used, and new entries are not saved."""
    use()
    original = os.open

    def read_only(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return original(path, flags, *args, **options)

    kept = files(folder)
    monkeypatch.setattr(os, "open", read_only)
    for name in ("utime", "rename", "unlink", "mkdir"):
        monkeypatch.setattr(os, name, failing(errno.EROFS))
    assert not untrusted(traces)
    for count in (1, 2):
        forget()
        assert planar(1).mass_matrix(Q).shape == (1, 1)
        assert traces.count("mass_matrix") == count
    assert files(folder) == kept


@pytest.mark.skipif(os.geteuid() == 0, reason="an administrator may write everywhere")
def test_a_folder_that_may_not_be_written(folder: Path, traces: list[str]) -> None:
    use()
    folder.chmod(0o500)
    assert not untrusted(traces)
    planar(1).mass_matrix(Q)
    folder.chmod(0o300)
    assert untrusted(traces)
    folder.chmod(0o700)
    assert len(files(folder)) == 1


# Age and size ----------------------------------------------------------------------------------


def small(k: int, size: int = 1000) -> Artifact:
    """Return an artifact whose entry takes about `size` bytes. Its code is never run."""
    return Artifact(INTERFACE, "float64", k, 1, bytes(size))


def test_the_oldest_entries_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    for k in range(5):
        assert cache.save(f"entry{k}", small(k))
        os.utime(folder / f"entry{k}.code", (now - 100 + k, now - 100 + k))
    size = (folder / "entry0.code").stat().st_size
    (folder / "notes.txt").write_text("not an entry" * 1000)
    assert cache.load("entry0") == small(0)  # counts as a use
    monkeypatch.setattr(cache, "LIMIT", 4 * size + size // 2)
    assert cache.save("entry5", small(5))
    left = [name for name, _, _ in cache.entries()]
    assert sorted(left) == ["entry0", "entry3", "entry4", "entry5"]
    assert (folder / "notes.txt").exists()
    monkeypatch.setattr(cache, "LIMIT", size // 2)
    cache.save("entry6", small(6))
    assert cache.entries() == []


def test_entries_and_clear(folder: Path) -> None:
    assert cache.entries() == []
    assert cache.clear() == (0, ())
    now = time.time()
    for k, size in enumerate((3000, 1000, 2000)):
        cache.save(f"entry{k}", small(k, size))
        os.utime(folder / f"entry{k}.code", (now - 10 * k, now - 10 * k))
    (folder / ".chasles-123-0123456789abcdef.part").write_bytes(b"left by a killed process")
    (folder / "notes.txt").write_text("mine")
    found = cache.entries()
    assert [name for name, _, _ in found] == ["entry0", "entry1", "entry2"]
    assert [size for _, size, _ in found] == [
        (folder / f"entry{k}.code").stat().st_size for k in range(3)
    ]
    assert [round(now - used) for _, _, used in found] == [0, 10, 20]
    assert cache.clear() == (3, ())
    assert files(folder) == ["notes.txt"]
    assert cache.entries() == []


def test_what_is_not_an_entry_stays(folder: Path) -> None:
    """Other files in the folder are kept, even with the suffix of entries."""
    assert cache.save("entry", small(0))
    (folder / "report.code").write_text("mine")
    (folder / "x.123.abc.tmp").write_text("another program's")
    (folder / ".notes.part").write_text("another program's")
    assert [name for name, _, _ in cache.entries()] == ["entry"]
    assert cache.clear() == (1, ())
    assert files(folder) == [".notes.part", "report.code", "x.123.abc.tmp"]


def test_clear_goes_on_past_what_it_cannot_remove(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for k in range(4):
        assert cache.save(f"entry{k}", small(k))
    remove = os.unlink

    def unlink(path: str, **place: Any) -> None:
        if path == "entry1.code":
            raise PermissionError(errno.EPERM, "Operation not permitted")
        if path == "entry2.code":  # another process removes the file first
            remove(path, **place)
        remove(path, **place)

    monkeypatch.setattr(cache.os, "unlink", unlink)
    assert cache.clear() == (2, ("entry1.code: Operation not permitted",))
    monkeypatch.undo()
    assert files(folder) == ["entry1.code"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork")
def test_what_a_killed_writer_left_is_collected(folder: Path) -> None:
    """The next process that writes removes temporary files of killed processes only."""
    assert cache.save("entry", small(0))
    living, descriptor = writing.begun(folder)
    pid = os.fork()
    if pid == 0:
        writing.begun(folder)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert len(list(folder.glob(".chasles-*.part"))) == 2
    cache._UNSEEN.clear()
    assert cache.save("entry", small(1))
    assert files(folder) == [Path(living).name, "entry.code"]
    os.close(descriptor)
    cache.clear()
    assert files(folder) == []


@pytest.mark.parametrize("opened", [1, 2])
def test_an_interrupt_leaves_no_file_open(
    folder: Path, monkeypatch: pytest.MonkeyPatch, opened: int
) -> None:
    """An interrupt after the folder or the entry was opened is raised once both are closed."""
    robot = planar(1)
    robot.gravity_forces(Q)
    name, opens, open_it = cache.entries()[0][0], [], os.open

    def interrupted(*given: Any, **named: Any) -> int:
        opens.append(open_it(*given, **named))
        if len(opens) == opened:
            signal.raise_signal(signal.SIGINT)
        return opens[-1]

    monkeypatch.setattr(os, "open", interrupted)
    monkeypatch.setattr(os, "supports_dir_fd", os.supports_dir_fd | {interrupted})
    with pytest.raises(KeyboardInterrupt):
        cache.load(name)
    assert len(opens) == 2
    for descriptor in opens:
        with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
            os.fstat(descriptor)


def test_saving_again_replaces(folder: Path) -> None:
    for k in range(3):
        assert cache.save("entry", small(k))
        assert cache.load("entry") == small(k)
    assert files(folder) == ["entry.code"]


# Keys ------------------------------------------------------------------------------------------


class Stop(Exception):
    """Exception raised when the key is known, so that nothing is compiled."""


@pytest.fixture
def name_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that gives the name of the cache entry for a function of a robot."""
    found: list[str] = []

    def load(name: str) -> None:
        found.append(name)
        raise Stop

    monkeypatch.setattr(cache, "load", load)
    forget()

    def name(robot: chasles.Robot, function: str = "inverse_dynamics", **options: Any) -> str:
        with pytest.raises(Stop):
            robot.function(function, **options)
        return found[-1]

    return name


def variants() -> Iterator[tuple[str, chasles.Robot, dict[str, Any]]]:
    """Functions of robots. No two of them may share code."""
    source = puma560().model.source
    link, joint = source.links[3], source.joints[3]
    heavier = replace(link, inertia=replace(link.inertia, m=link.inertia.m * (1.0 + 1e-15)))
    stiffer = replace(joint, armature=joint.armature + 1e-9)
    swap = {"links": (link, heavier), "joints": (joint, stiffer)}
    changed = {
        key: tuple(new if item is old else item for item in getattr(source, key))
        for key, (old, new) in swap.items()
    }
    yield "plain", puma560(), {}
    yield "mass", chasles.Robot(replace(source, links=changed["links"])), {}
    yield "armature", chasles.Robot(replace(source, joints=changed["joints"])), {}
    yield "gravity", puma560().with_gravity([0.0, 0.0, -9.8]), {}
    signed = replace(source, gravity=Vector.of(-0.0, 0.0, -9.81))
    yield "signed zero", chasles.Robot(signed), {}
    yield "method", puma560(), {"method": "spatial"}
    yield "dissipation", puma560(), {"dissipation": True}
    yield "single", puma560(), {"dtype": "float32"}
    yield "other function", puma560(), {"function": "bias_forces"}
    yield "parameter", puma560(), {"parameters": ("gravity",)}
    yield "two", puma560(), {"parameters": ("link2.mass", "gravity")}
    yield "two, in another order", puma560(), {"parameters": ("gravity", "link2.mass")}
    for wrt in (("q",), ("qd",), ("q", "qd"), ("qd", "q")):
        for kind, order in (("jacobian", 1), ("jacobian", 2), ("pullback", 1)):
            yield f"{kind} {wrt} {order}", puma560(), {"derivative": Derivative(kind, wrt, order)}
    for key in (WrenchKey("tool"), WrenchKey("link2"), WrenchKey("tool", "frame")):
        yield f"{key}", puma560(), {"wrenches": (key,)}
    for options in ({"frame": "tool"}, {"frame": "link2"}, {"frame": "tool", "at": (0, 0, 1)}):
        yield f"{options}", puma560(), {"function": "jacobian", **options}
    yield "axes", puma560(), {"function": "jacobian", "frame": "tool", "axes": "frame"}
    mimics = random_tree(6, 3, mimics=True)
    yield "mimic", mimics, {}
    yield "no mimic", chasles.Robot(mimics.model.source, mimic=False), {}


def test_every_choice_has_its_own_entry(name_of: Callable[..., str]) -> None:
    names = {label: name_of(robot, **options) for label, robot, options in variants()}
    again = {label: name_of(robot, **options) for label, robot, options in variants()}
    assert again == names
    assert len(set(names.values())) == len(names)


def test_other_machines_have_their_own_entries(
    name_of: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processor, the compiler, Python's object layout and chasles are part of the key."""
    host = llvm.Machine.host()
    names = [name_of(puma560())]
    for machine in (
        replace(host, cpu="generic"),
        replace(host, features=""),
        replace(host, width=16),
        replace(host, triple="none"),
        host.without_fma() if host.fuse else replace(host, fuse=True),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(llvm.Machine, "host", staticmethod(lambda machine=machine: machine))
            names.append(name_of(puma560()))
    for place, name, value in (
        (llvmlite, "__version__", "0.0.0"),
        (objects, "LAYOUT", (24, 32)),
        (backends, "sources", lambda: "others"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, value)
            names.append(name_of(puma560()))
    assert len(set(names)) == len(names)
    assert name_of(puma560()) == names[0]


# Other processes -------------------------------------------------------------------------------

USE = """
import sys, time
import numpy as np
from chasles.functions import compiled
from chasles.robots import planar
original = compiled.runnable
def program(*args, **options):
    print("traced")
    return original(*args, **options)
compiled.runnable = program
robot = planar(1)
while time.time() < float(sys.argv[1]):
    pass
print(robot.gravity_forces(np.array([0.3])).tobytes().hex())
"""


def start(folder: Path, when: float = 0.0, code: str = USE, **environment: str) -> Any:
    path = os.pathsep.join(p for p in sys.path if p)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(when)],
        env=os.environ | {"PYTHONPATH": path, "CHASLES_CACHE": str(folder)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: Any) -> list[str]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert not err
    return out.split()


def test_the_next_process_needs_no_trace(folder: Path) -> None:
    """A new process uses the cached program, whatever its hash seed is."""
    bits = TORQUE.tobytes().hex()
    assert finish(start(folder, PYTHONHASHSEED="1")) == ["traced", bits]
    assert finish(start(folder, PYTHONHASHSEED="2")) == [bits]
    assert len(files(folder)) == 2  # one for the program, and one shared by all fast entries


def test_processes_at_once(folder: Path) -> None:
    """Processes that start at once on an empty cache are correct and leave complete entries."""
    when = time.time() + 2.0
    processes = [start(folder, when) for _ in range(4)]
    assert {finish(process)[-1] for process in processes} == {TORQUE.tobytes().hex()}
    names = files(folder)
    assert len(names) == 2
    assert all(cache.load(name.removesuffix(".code")) is not None for name in names)
    assert finish(start(folder)) == [TORQUE.tobytes().hex()]


def test_readers_and_writers_at_once(folder: Path) -> None:
    """An entry is complete or absent, while other threads write, read and list entries."""
    good, over = [small(k, 200_000) for k in range(2)], threading.Event()
    cache.save("entry", good[0])

    def write(k: int) -> int:
        return sum(cache.save("entry", good[k]) for _ in range(60))

    def read() -> bool:
        right = True
        while not over.is_set():
            found = cache.load("entry")
            right &= found is None or found in good
            cache.entries()
        return right

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        assert list(pool.map(write, range(2))) == [60, 60]
        over.set()
        assert all(reader.result(timeout=60) for reader in readers)
    assert files(folder) == ["entry.code"]


def test_another_version_of_chasles_has_other_entries(tmp_path: Path) -> None:
    """The digest depends on the contents, the existence and the name of each source file."""
    copy = tmp_path / "chasles"
    root = Path(chasles.__file__).parent
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("__pycache__"))
    show = "from chasles.backends import sources; print(sources())"

    def digest() -> str:
        (found,) = finish(start(tmp_path / "cache", code=show, PYTHONPATH=str(tmp_path)))
        return found

    digests = [digest()]
    assert digests[0] == backends.sources()
    body = copy / "backends" / "llvm" / "source.py"
    body.write_text(body.read_text() + "\n")
    digests.append(digest())
    (copy / "new.py").write_text("")
    digests.append(digest())
    (copy / "new.py").rename(copy / "newer.py")
    digests.append(digest())
    assert len(set(digests)) == 4


def test_vectors_are_printed_whole() -> None:
    """Keys are made with `repr`, which must not round values or shorten arrays."""
    x = 0.1 + 1e-17 * 3
    for value in (Vector.of(x, 1e-300, -0.0), planar(40).model.source):
        assert "..." not in repr(value)
    assert repr(float(x)) in repr(Vector.of(x, 0.0, 0.0))
    driven = (planar(2).drive({"joint1": lambda t, k=k: k * t}).model.source for k in (0.1, 0.2))
    assert len(set(map(repr, driven))) == 2, "descriptions contain programs"
