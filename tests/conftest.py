"""Settings that all tests share. Its folder is on the import path, and so is `docs`: tests can
import `support`, and `building`, which makes the documentation."""

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
    # Numbers of all files here would be examples, too, which change with any of them; and each
    # worker would read all files first.
    providers._get_local_constants = lambda: providers._local_constants  # type: ignore[union-attr]

AS_USERS_HAVE_IT = (
    *("backends", "libraries"),
    *("test_continuing.py", "test_pinocchio_compiled.py", "test_robot.py", "test_tiers.py"),
)
"""Folders and files whose robots and machine code are those of users."""

WALLED = (
    *("cli", "peers", "tests"),
    *("test_file_doors.py", "test_followed.py", "test_hostile_files.py", "test_memory.py"),
    *("test_mjcf.py", "test_mjcf_elements.py"),
)
"""Folders and files whose tests read MJCF as users do, by MuJoCo in a process of its own."""

QUICK = replace(Machine.host(), effort=0)
"""This computer, for code that is made in a fifth of the time."""

BEGIN, TRACED, ASK = Identity.__init__, compiled._TRACED, Tool.ask
COMMANDS = cache(typer.testing._get_command)

_OWN_CACHE = "CHASLES_CACHE" not in os.environ
if _OWN_CACHE:  # a new one for every run; the workers of pytest-xdist share that of their parent
    os.environ["CHASLES_CACHE"] = tempfile.mkdtemp(prefix="chasles-tests-")
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    # Threads of NumPy and PyTorch in several workers wait for each other by turning in loops.
    os.environ.setdefault(name, "1")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs so, and tests of Ctrl-C would wait for what never comes.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a file if its name alone says that none of its tests will run."""
    return slow.left_out(collection_path.name, config.option.markexpr) or None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Let every second worker collect files from the last to the first.

    On a fresh checkout, the worker that comes to a file first compiles it, and what it imports, for
    the other. `pytest_collection_modifyitems` brings the tests of all workers into one order.
    """
    report = yield
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    if isinstance(collector, pytest.Directory) and int(worker.removeprefix("gw")) % 2:
        report.result.reverse()
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark slow tests before pytest looks at marks; then bring those that are left into order."""
    names = [(item.path.name, item.name) for item in items]
    for item, is_slow in zip(items, slow.marked(names), strict=True):
        if is_slow:
            item.add_marker("slow")
    yield
    ranks = slow.ranks((item.path.name, item.name) for item in items)
    items.sort(key=lambda item: ranks[item.path.name])


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there by now (tests, libraries) stays: the collector need not look through it.

    A trace makes many objects and keeps them to its end, so it need not look often either.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(300_000, 20, 20)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist, which need not be there
def pytest_xdist_auto_num_workers() -> int:
    """At least two processes, whatever the cores: each has only so many memory maps (65,530 on
    Linux), of which kernels take some. More would load and collect all files once more each."""
    return max(2, os.cpu_count() or 1)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start a module's `RNG` anew for each test, so that no test depends on those run before it."""
    generator = getattr(getattr(item, "module", None), "RNG", None)
    if isinstance(generator, np.random.Generator):
        fresh = np.random.default_rng(zlib.crc32(item.name.encode()))
        generator.bit_generator.state = fresh.bit_generator.state


def pytest_unconfigure(config: pytest.Config) -> None:
    if _OWN_CACHE:
        shutil.rmtree(os.environ.pop("CHASLES_CACHE"), ignore_errors=True)


@pytest.fixture(autouse=True, scope="module")
def less_work(request: pytest.FixtureRequest) -> Iterator[None]:
    """LLVM does not try hard where a test is not about its code: the results are the same bits.

    `backends/test_same_bits.py` shows that they are. Nor does a file's next test trace and compile
    the functions of an equal robot again: its mechanism and its programs are kept. Typer need not
    make the commands again for every call, nor MuJoCo be loaded for every file.
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
    """A test that changes something of chasles shares no robot with others."""
    with pytest.MonkeyPatch.context() as patch:
        if "monkeypatch" in request.fixturenames:
            patch.setattr(Identity, "__init__", BEGIN)
            patch.setattr(compiled, "_TRACED", TRACED)
        yield


def asked_here(tool: Tool, file: str, *arguments: str) -> dict[str, Any]:
    """The answer of `Tool.ask`, by MuJoCo in this process."""
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
    """Return a beginning of robots that takes the known mechanism of an equal description."""

    @wraps(BEGIN)
    def begin(robot: Identity, source: Any, *, mimic: bool = True, strict: bool = False) -> None:
        try:
            key = pickle.dumps((source, mimic, strict))
        except (AttributeError, TypeError, pickle.PicklingError):  # joint classes of a test
            key = b""
        mechanism = known.get(key)
        if mechanism is None:
            mechanism = mechanisms.of(build(source, mimic=mimic, strict=strict))
        if key:
            known[key] = mechanism
        robot._begin(mechanism)

    return begin
