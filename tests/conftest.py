"""Settings for all tests.

This folder and `docs` are on the import path, so tests can import `support` and `building`, the
package that builds the documentation.
"""

import contextlib
import gc
import json
import os
import pickle
import shutil
import signal
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import slow
import typer.testing
from hypothesis import settings

from chasles import mechanisms
from chasles.backends.llvm.code import Machine
from chasles.formats.walled import Tool
from chasles.functions import compiled
from chasles.mechanisms import Mechanism
from chasles.model.build import build
from chasles.robot.identity import Identity

sys.path.append(str(Path(__file__).parents[1] / "docs"))

settings.register_profile("chasles", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("chasles")

providers = sys.modules.get("hypothesis.internal.conjecture.providers")
if hasattr(providers, "_get_local_constants"):
    # Hypothesis would also draw constants from all files here as examples. These examples would
    # change with every edit, and each worker would have to read all files first.
    providers._get_local_constants = lambda: providers._local_constants  # type: ignore[union-attr]

AS_USERS_HAVE_IT = (
    *("backends", "libraries"),
    *("test_continuing.py", "test_pinocchio_compiled.py", "test_robot.py", "test_tiers.py"),
)
"""Folders and files whose tests use robots and machine code exactly as users do."""

WALLED = (
    *("cli", "peers", "tests"),
    *("test_file_doors.py", "test_followed.py", "test_hostile_files.py", "test_memory.py"),
    *("test_mjcf.py", "test_mjcf_elements.py"),
)
"""Folders and files whose tests read MJCF as users do, with MuJoCo in a separate process."""

QUICK = replace(Machine.host(), effort=0)
"""This computer with low optimization effort, so that code compiles in a fifth of the time."""

BEGIN, TRACED, ASK = Identity.__init__, compiled._TRACED, Tool.ask
COMMANDS = cache(typer.testing._get_command)

_OWN_CACHE = "CHASLES_CACHE" not in os.environ
if _OWN_CACHE:  # a new cache for every run; pytest-xdist workers share the cache of their parent
    os.environ["CHASLES_CACHE"] = tempfile.mkdtemp(prefix="chasles-tests-")
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    # Threads of NumPy and PyTorch in several workers would wait for each other in busy loops.
    os.environ.setdefault(name, "1")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Shells start background jobs with SIGINT ignored; tests of Ctrl-C would then wait forever.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of a file if its name shows that none of its tests will run."""
    return slow.left_out(collection_path.name, config.option.markexpr) or None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Let every second worker collect files in reverse order.

    On a fresh checkout, the first worker that imports a file compiles it and its imports, and the
    other worker uses the result. `pytest_collection_modifyitems` then sorts the tests of all
    workers in the same order.
    """
    report = yield
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    if isinstance(collector, pytest.Directory) and int(worker.removeprefix("gw")) % 2:
        report.result.reverse()
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark slow tests before pytest selects tests by marks; then sort the selected tests."""
    names = [(item.path.name, item.name) for item in items]
    for item, is_slow in zip(items, slow.marked(names), strict=True):
        if is_slow:
            item.add_marker("slow")
    yield
    ranks = slow.ranks((item.path.name, item.name) for item in items)
    items.sort(key=lambda item: ranks[item.path.name])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude existing objects (tests, libraries) from garbage collection, and collect rarely.

    Tracing makes many objects that live until its end, so frequent collections are useless.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(300_000, 20, 20)


@pytest.hookimpl(optionalhook=True)  # a hook of pytest-xdist, which may not be installed
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of cores, but at least two processes.

    Each process has a limited number of memory maps (65,530 on Linux), and compiled kernels use
    some of them. Each additional process would have to import and collect all files again.
    """
    return max(2, os.cpu_count() or 1)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Reset a module's `RNG` before each test, so that no test depends on earlier tests."""
    generator = getattr(getattr(item, "module", None), "RNG", None)
    if isinstance(generator, np.random.Generator):
        fresh = np.random.default_rng(zlib.crc32(item.name.encode()))
        generator.bit_generator.state = fresh.bit_generator.state


def pytest_unconfigure(config: pytest.Config) -> None:
    if _OWN_CACHE:
        shutil.rmtree(os.environ.pop("CHASLES_CACHE"), ignore_errors=True)


@pytest.fixture(autouse=True, scope="module")
def less_work(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile with low effort and reuse robots where a test is not about the machine code.

    `backends/test_same_bits.py` shows that the results are bitwise identical. Mechanisms and
    traced programs of equal robots are kept for all tests of a file. Typer's commands are built
    only once, and MuJoCo is not started in a separate process for every file.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", COMMANDS)
        names = {request.path.name, request.path.parent.name}
        if not names & set(WALLED) and find_spec("mujoco"):
            patch.setattr(Tool, "ask", asked_here)
        if not names & set(AS_USERS_HAVE_IT):
            patch.setattr(Machine, "host", staticmethod(lambda: QUICK))
            patch.setattr(Identity, "__init__", sharing({}))
            patch.setattr(compiled, "_TRACED", {})
        yield


@pytest.fixture(autouse=True)
def own_robots(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give a test that uses `monkeypatch` its own robots."""
    with pytest.MonkeyPatch.context() as patch:
        if "monkeypatch" in request.fixturenames:
            patch.setattr(Identity, "__init__", BEGIN)
            patch.setattr(compiled, "_TRACED", TRACED)
        yield


def asked_here(tool: Tool, file: str, *arguments: str) -> dict[str, Any]:
    """Return the result of `Tool.ask`, with MuJoCo in this process."""
    if tool.package != "mujoco":
        return ASK(tool, file, *arguments)
    from chasles.formats import mjcf_child  # loads MuJoCo

    path = os.path.abspath(file)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # for MuJoCo's log
        try:
            found = mjcf_child.answer(path, *arguments)
        except ValueError as error:
            found = {"error": str(error)}
    answer: dict[str, Any] = json.loads(json.dumps(found))
    return answer


def sharing(known: dict[bytes, Mechanism]) -> Callable[..., None]:
    """Return an initializer of robots that reuses the mechanism of an equal description."""

    @wraps(BEGIN)
    def begin(robot: Identity, source: Any, *, mimic: bool = True, strict: bool = False) -> None:
        try:
            key = pickle.dumps((source, mimic, strict))
        except (AttributeError, TypeError, pickle.PicklingError):  # joint classes defined in a test
            key = b""
        mechanism = known.get(key)
        if mechanism is None:
            mechanism = mechanisms.of(build(source, mimic=mimic, strict=strict))
        if key:
            known[key] = mechanism
        robot._begin(mechanism)

    return begin
