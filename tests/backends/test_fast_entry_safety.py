"""The fast entry never crashes or leaks memory, and exists as long as it is needed."""

import concurrent.futures
import copy
import gc
import io
import mmap
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from types import BuiltinFunctionType
from typing import Any

import entry_stress
import numpy as np
import pytest
from entries import fails, outcome, states, subject
from support import raises, state

import chasles
from chasles.backends import objects
from chasles.backends.llvm import kernel as llvm
from chasles.robots import planar, puma560

FUZZ = int(os.environ.get("CHASLES_FUZZ", "20000"))
"""Number of argument lists in the fuzz test; a long run uses a million."""

GUARDED = pytest.mark.skipif(not hasattr(mmap, "PROT_READ"), reason="no page protection here")
pytestmark = pytest.mark.skipif(not objects.supported(), reason="this Python has no fast entry")


# Tests in separate processes -------------------------------------------------------------------


PERTURBED = {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "255"}
"""Environment in which the GNU C library overwrites freed memory, so that its use is detected."""


def stress(*arguments: str, seconds: float = 300.0, **environment: str) -> str:
    """Return the output of a trial. A crash fails the test."""
    path = {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", entry_stress.__file__, *arguments],
        env=os.environ | path | environment,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_many_random_argument_lists() -> None:
    """Random arguments cause no crash, no leak and no result that differs from the Python path."""
    if not Path("/proc/self/statm").exists():
        print("memory is not watched: this system does not say how much a process holds")
    print(stress("fuzz", str(FUZZ), seconds=60.0 + FUZZ / 200.0))


@GUARDED
def test_no_byte_outside_the_arrays() -> None:
    """Arrays lie next to a protected page, so that any access outside them ends the process."""
    assert "guarded" in stress("guard")


@GUARDED
def test_the_guard_itself() -> None:
    with pytest.raises(AssertionError, match="exit -"):
        stress("untouchable")


@pytest.mark.parametrize("environment", [{}, PERTURBED], ids=["plain", "perturbed"])
def test_garbage_with_an_entry_is_collected(environment: dict[str, str]) -> None:
    assert "collected 15000" in stress("collected", **environment)


@pytest.mark.parametrize("environment", [{}, PERTURBED], ids=["plain", "perturbed"])
def test_entries_that_outlive_the_interpreter(environment: dict[str, str]) -> None:
    """A process exits without errors even if entries are kept in places that are cleared late."""
    assert "ending" in stress("ended", **environment)


def test_nothing_is_used_after_it_was_freed() -> None:
    """A short fuzz run frees all objects at exit without using freed memory."""
    stress("fuzz", "3000", **PERTURBED)


def test_a_layout_that_is_not_known_is_noticed() -> None:
    """All offsets that the code relies on are tested, and a wrong offset does no harm."""
    assert "noticed" in stress("probe")


def test_without_support_the_python_path_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python path is used on unsupported Pythons or if the layout of arrays is unknown."""
    monkeypatch.setattr(objects, "supported", lambda: False)
    robot = planar(2)
    q, qd, qdd = (a[0] for a in states(robot, "inverse_dynamics"))
    for _ in range(2):
        tau = robot.inverse_dynamics(q, qd, qdd)
        assert isinstance(robot.inverse_dynamics, types.MethodType)
    assert np.array_equal(tau, planar(2).inverse_dynamics(q, qd, qdd))
    compiled = chasles.compile(robot, "mass_matrix")
    assert np.array_equal(compiled.fast(q), compiled(q))


# Lifetime --------------------------------------------------------------------------------------


def test_the_entry_outlives_the_robot() -> None:
    """An entry keeps everything that it needs, including the Python path."""
    robot = planar(2)
    q, qd, qdd = (a[0] for a in states(robot, "inverse_dynamics"))
    expected = robot.inverse_dynamics(q, qd, qdd)
    entry = robot.inverse_dynamics
    del robot
    gc.collect()
    assert np.array_equal(entry(q, qd, qdd), expected)
    assert np.array_equal(entry(list(q), list(qd), list(qdd)), expected)
    assert np.array_equal(entry(q, qd, qdd, method="spatial"), entry(q, qd, qdd, method="spatial"))
    compiled = chasles.compile(planar(2), "inverse_dynamics")
    entry = compiled.fast
    ghost = weakref.ref(compiled)
    del compiled
    gc.collect()
    assert ghost() is not None
    assert np.array_equal(entry(q, qd, qdd), expected)
    del entry
    gc.collect()
    assert ghost() is None


def test_robots_are_forgotten_and_share_their_code() -> None:
    """Many robots with entries are created and collected, and equal robots share one kernel."""
    q = np.array([0.3, 0.4])
    source = planar(2).model.source
    expected = chasles.Robot(source).mass_matrix(q)
    ghosts, kernels = [], set()
    for _ in range(100):
        robot = chasles.Robot(source)
        assert np.array_equal(robot.mass_matrix(q), expected)
        assert np.array_equal(robot.mass_matrix(q), expected)
        ghosts.append(weakref.ref(robot))
        kernels.add(robot.function("mass_matrix").kernel)
    del robot
    gc.collect()
    assert not [g for g in ghosts if g() is not None]
    assert len(kernels) == 1


def test_an_entry_taken_apart() -> None:
    """After the garbage collector clears the registered calls, the calls are handled by Python."""
    robot, q = planar(2), np.array([0.3, 0.4])
    expected = robot.mass_matrix(q)
    entry = robot.mass_matrix
    ways = entry.__self__[1]
    for _ in range(3):
        assert np.allclose(entry(q, method="spatial"), expected)
    assert len(ways) == 1
    ways.clear()
    assert np.array_equal(entry(q), expected)
    assert np.array_equal(entry(q[None], out=np.empty((1, 2, 2)))[0], expected)
    assert np.array_equal(entry([0.3, 0.4]), expected)
    assert np.allclose(entry(q, method="spatial"), expected)


@pytest.fixture
def no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise an error for calls that the machine code does not handle."""

    def refused(owner: Any, *_: Any, **__: Any) -> Any:
        raise RuntimeError("not in machine code")

    monkeypatch.setattr(llvm.Owner, "__call__", refused)


@pytest.mark.usefixtures("no_python")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_that_the_machine_code_gathers(dtype: str) -> None:
    """Lists, tuples, strided and integer arrays and `threads=1` are handled without Python."""
    compiled = chasles.compile(planar(2), "gravity_forces", dtype=dtype)
    whole = np.array([3.0, -7.0], dtype)
    expected = compiled(whole)
    assert isinstance(compiled.fast, BuiltinFunctionType)
    wide = np.zeros((2, 3), dtype)
    wide[:, 1] = whole
    kinds = ("int32", "int64", "longlong", "float64", dtype)
    given = [[3, -7], (3.0, -7), [np.float64(3.0), -7.0], wide[:, 1], wide[::-1, 1][::-1]]
    for q in [*given, *(whole.astype(kind) for kind in kinds)]:
        for named in ({}, {"threads": 1}, {"threads": None, "out": None}):
            found = compiled(q, **named)
            assert found.dtype == dtype
            assert np.array_equal(found, expected), q
    assert np.array_equal(compiled([3, -1]), compiled(np.array([3.0, -1.0], dtype)))
    assert np.array_equal(compiled(np.tile(whole, (7, 1)), threads=1), np.tile(expected, (7, 1)))
    refused = [[3, True], [3, 10**400], [3, None], [3.0], "37", [3, -1j], np.array([True, False])]
    for q in [*refused, whole.astype(">f8"), whole.astype(np.float16)]:
        with pytest.raises(RuntimeError, match="not in machine code"):
            compiled.fast(q)


def test_two_entries_of_one_function() -> None:
    """A robot's method and `compile(...).fast` share code, but each has its own Python path."""
    robot = planar(2)
    compiled = chasles.compile(robot, "inverse_dynamics")
    q, qd, qdd = (a[0] for a in states(robot, "inverse_dynamics"))
    expected = robot.inverse_dynamics(q, qd, qdd)
    method, fast = robot.inverse_dynamics, compiled.fast
    assert method is not fast
    for entry in (method, fast, method):
        assert np.array_equal(entry(q, qd, qdd), expected)
        assert np.array_equal(entry(list(q), qd, qdd), expected)
    with raises("E-CALL-422", "missing the required argument"):
        method(q, qd)
    with raises("E-CALL-035"):
        fast(q, qd)
    del robot, method, compiled
    gc.collect()
    assert np.array_equal(fast(list(q), qd, qdd), expected)


def test_entries_made_at_once() -> None:
    """If threads create entries of one kernel at once, each entry has its own Python path."""
    compiled = planar(2).function("gravity_forces")
    made: dict[int, Callable[..., Any]] = {}
    start = threading.Barrier(4)

    def slowly(frame: types.FrameType, event: str, argument: Any) -> Any:
        if frame.f_code is llvm.Kernel.fast_entry.__code__:
            time.sleep(0.01)  # let another thread continue
            return slowly
        return None

    def work(k: int) -> None:
        start.wait(timeout=60)
        made[k] = compiled.entry(holder=None, fallback=lambda *a, **b: k)

    threading.settrace(slowly)
    try:
        workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for worker in workers:
            worker.start()
    finally:
        threading.settrace(None)  # type: ignore[arg-type]
    for worker in workers:
        worker.join()
    assert {k: entry("not an array") for k, entry in made.items()} == {k: k for k in range(4)}


# Copies ----------------------------------------------------------------------------------------


def test_copies_and_pickles_of_entries() -> None:
    """Copies and unpickled entries compute the same results for single states and batches."""
    robot = planar(2)
    states = state(robot, 5, 4)
    row = [a[0] for a in states]
    one, many = robot.inverse_dynamics(*row), robot.inverse_dynamics(*states)
    compiled = chasles.compile(robot, "inverse_dynamics")
    for entry in (robot.inverse_dynamics, compiled.fast):
        again = [copy.copy(entry), copy.deepcopy(entry)]
        again += [pickle.loads(pickle.dumps(entry, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
        for other in again:
            assert other.__name__ == "inverse_dynamics"
            assert np.array_equal(other(*row), one)
            assert np.array_equal(other(*states), many)
    for other in (copy.copy(robot), copy.deepcopy(robot), pickle.loads(pickle.dumps(robot))):
        assert other is not robot
        assert np.array_equal(other.inverse_dynamics(*row), one)
        assert np.array_equal(other.inverse_dynamics(*row), one)
    several = copy.deepcopy({"robot": robot, "entry": robot.inverse_dynamics})
    assert np.array_equal(several["robot"].inverse_dynamics(*row), one)
    stream = io.BytesIO()
    pickle.dump((robot, robot.inverse_dynamics, compiled.fast, compiled), stream)
    stream.seek(0)
    found, *calls = pickle.load(stream)
    assert all(np.array_equal(f(*row), one) for f in (found.inverse_dynamics, *calls))


def _there(things: Sequence[Callable[..., Any]], states: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Call functions with single states, batches and lists, which use the Python path."""
    row = [a[0] for a in states]
    return [f(*form) for f in things for form in (row, states, [a.tolist() for a in states])]


def test_entries_go_to_other_processes() -> None:
    robot = planar(2)
    states = state(robot, 6, 9)
    robot.inverse_dynamics(*states)
    compiled = chasles.compile(robot, "inverse_dynamics", parameters=("gravity",))
    things = [robot.inverse_dynamics, chasles.compile(robot, "inverse_dynamics").fast]
    expected = _there(things, states)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        found = pool.submit(_there, things, states).result(timeout=120)
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
        more = pool.submit(compiled.fast, *states, robot.gravity).result(timeout=120)
        assert np.array_equal(more, compiled(*states, robot.gravity))


# Threads ---------------------------------------------------------------------------------------


def test_threads_hammer_one_entry() -> None:
    """Threads compute states, batches, outputs and errors while another thread collects garbage."""
    robot = puma560()
    q, qd, qdd = state(robot, 7, 600)
    tau = robot.inverse_dynamics(q, qd, qdd)
    entry, over = robot.inverse_dynamics, threading.Event()
    start = threading.Barrier(7)
    switch = sys.getswitchinterval()

    def collect() -> bool:
        start.wait(timeout=60)
        while not over.is_set():
            gc.collect(1)
            time.sleep(1e-3)
        return True

    def work(seed: int) -> bool:
        rng, right = random.Random(seed), True
        out, block = np.empty(6), np.empty((600, 6))
        start.wait(timeout=60)
        for _ in range(150):
            k, n = rng.randrange(500), rng.randrange(1, 100)
            part = slice(k, k + n)
            right &= np.array_equal(entry(q[k], qd[k], qdd[k]), tau[k])
            right &= np.array_equal(entry(q[k], qd[k], qdd[k], out=out), tau[k])
            found = entry(q[part], qd[part], qdd[part], out=block[:n])
            right &= np.array_equal(found, tau[part])
            right &= np.array_equal(entry(q[part], qd[k], qdd[part])[0], tau[k])
            right &= fails(outcome(entry, (q[k], qd[part], None), {}), TypeError)
        return right

    sys.setswitchinterval(1e-5)
    try:
        with concurrent.futures.ThreadPoolExecutor(7) as pool:
            collector = pool.submit(collect)
            assert all(pool.map(work, range(6)))
            over.set()
            assert collector.result(timeout=60)
    finally:
        over.set()
        sys.setswitchinterval(switch)


def test_a_thread_with_a_small_stack() -> None:
    """Workspaces fit into a stack of 256 KiB."""
    matrix = subject("matrix")
    given, found = matrix.some(100), []
    usual = threading.stack_size(256 * 1024)
    try:
        worker = threading.Thread(target=lambda: found.append(matrix.entry(*given)))
        worker.start()
        worker.join()
    finally:
        threading.stack_size(usual)
    assert np.array_equal(found[0], matrix.python(*given))
