"""chasles works on systems without folder handles, file owners, resource limits and fork.

These features are removed here, because Windows does not have them.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import chasles
from chasles.backends import arrays, cache
from chasles.backends.llvm import kernel as llvm
from chasles.cli import app
from chasles.formats import walled_program
from chasles.functions import compiled

ROOT = Path(chasles.__file__).parent
Q = np.array([0.3])

ONLY_SOME = {
    "fcntl",
    "resource",
    "pwd",
    "grp",
    "termios",
    "tty",
    "pty",
    "syslog",
    "winreg",
    "msvcrt",
}
"""Modules that exist only on some systems."""

GUARDED = {"formats/walled_program.py": {"resource"}, "writing.py": {"fcntl"}}
"""Files that may import such a module if it exists."""

GONE = {"imp", "distutils", "asyncore", "asynchat", "smtpd", "cgi", "cgitb", "pipes", "telnetlib"}
"""Modules that newer versions of Python have removed."""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Simulate Windows; yield the user's home folder. The shared entry code is already loaded."""
    chasles.robots.planar(1).mass_matrix(Q)  # compiles the entry code, which all functions share

    def without_handles(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def called(*arguments: Any, **options: Any) -> Any:
            for name in ("dir_fd", "src_dir_fd", "dst_dir_fd"):
                if options.get(name) is not None:
                    raise NotImplementedError(f"{name} unavailable on this platform")
            if function.__name__ == "open" and os.path.isdir(arguments[0]):
                raise PermissionError(13, "Permission denied", arguments[0])
            return function(*arguments, **options)

        return called

    for name in ("open", "replace", "unlink", "stat", "utime"):
        monkeypatch.setattr(os, name, without_handles(getattr(os, name)))
    monkeypatch.setattr(os, "supports_dir_fd", set())
    monkeypatch.setattr(os, "supports_fd", set())
    for name in ("geteuid", "getuid", "sched_getaffinity", "register_at_fork"):
        monkeypatch.delattr(os, name, raising=False)
    home = tmp_path / "user"
    home.mkdir()
    monkeypatch.setattr(Path, "home", classmethod(lambda cls: home))
    monkeypatch.setenv("CHASLES_CACHE", str(home / "cache"))
    forget()
    yield home
    forget()


def forget() -> None:
    """Forget compiled code and traces, as in a new process."""
    llvm.forget()
    compiled._TRACED.clear()


def test_code_is_kept_without_handles_of_folders(elsewhere: Path) -> None:
    torque = chasles.robots.planar(1).gravity_forces(Q)
    ((name, size, _),) = cache.entries()
    assert (elsewhere / "cache" / f"{name}.code").stat().st_size == size
    assert cache.load(name) is not None
    forget()
    assert np.array_equal(chasles.robots.planar(1).gravity_forces(Q), torque)
    assert len(cache.entries()) == 1
    text = CliRunner().invoke(app, ["cache"]).output
    assert "1 entry" in text
    assert "removed 1 entry" in CliRunner().invoke(app, ["cache", "--clear"]).output
    assert not list((elsewhere / "cache").iterdir())


def test_code_of_a_folder_that_others_may_write_is_not_used(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without file owners, only folders in the user's home are known to be closed to others."""
    shared = elsewhere.parent / "shared"
    shared.mkdir(mode=0o700)
    monkeypatch.setenv("CHASLES_CACHE", str(shared))
    chasles.robots.planar(1).gravity_forces(Q)
    assert not list(shared.iterdir())
    assert "not used" in " ".join(CliRunner().invoke(app, ["cache"]).output.split())


def test_a_link_is_no_cache(elsewhere: Path) -> None:
    (elsewhere / "real").mkdir()
    (elsewhere / "cache").symlink_to(elsewhere / "real")
    chasles.robots.planar(1).gravity_forces(Q)
    assert not list((elsewhere / "real").iterdir())


def test_cores_are_counted_without_affinity(elsewhere: Path) -> None:
    assert arrays.cores() == os.cpu_count()


def test_limits_are_left_out_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has no module `resource`; then no limits are read or set."""
    resource = pytest.importorskip("resource")
    before = [resource.getrlimit(what) for what in (resource.RLIMIT_CPU, resource.RLIMIT_AS)]
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "resource", None)
    walled_program.limit(1, 2**20)
    after = [resource.getrlimit(what) for what in (resource.RLIMIT_CPU, resource.RLIMIT_AS)]
    assert after == before


def test_a_user_without_a_home_has_a_cache_of_his_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user in a container may have no name; the cache must not be a folder named "~"."""
    monkeypatch.delenv("CHASLES_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert cache.folder().is_absolute()
    assert str(os.getuid()) in cache.folder().name
    assert CliRunner().invoke(app, ["robots"]).exit_code == 0


def imported(path: Path) -> set[str]:
    """Return the packages that a file imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: p.stem)
def test_no_file_needs_what_some_systems_lack(path: Path) -> None:
    allowed = GUARDED.get(path.relative_to(ROOT).as_posix(), set())
    assert not imported(path) & (ONLY_SOME | GONE) - allowed


def test_nothing_deprecated_is_used_on_import() -> None:
    """Features that newer versions of Python or NumPy will remove cause warnings beforehand."""
    code = "import chasles.cli"
    command = [sys.executable, "-W", "error::DeprecationWarning:chasles", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
