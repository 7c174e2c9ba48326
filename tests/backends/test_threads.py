"""Batches on several threads: bitwise identical results, forks, interrupts and failures."""

import concurrent.futures
import contextlib
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import code_stress
import numpy as np
import pytest
from support import TARGETS, raises, state, tree

import chasles
from chasles.backends import arrays, objects
from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm import loop as llvm_loop
from chasles.backends.llvm import threads as llvm_threads
from chasles.robots import planar, puma560

THREADS = (1, 2, 3, 7, None)
ROBOT = puma560()
FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine with eight cores on which every batch uses all of them."""
    monkeypatch.setattr(arrays, "cores", lambda: 8)
    monkeypatch.setattr(llvm, "WORTH_THREADS", 0)


# Bitwise identical results ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("make", "function"),
    [
        (puma560, "inverse_dynamics"),
        (puma560, "mass_matrix"),
        (puma560, "potential_energy"),
        (puma560, "ltdl_factors"),
        (lambda: tree(2, 4, floating=True), "forward_dynamics"),
    ],
    ids=["forces", "matrix", "number", "two results", "quaternions"],
)
def test_any_number_of_threads(
    crowded: None, make: Callable[[], chasles.Robot], function: str, dtype: str
) -> None:
    """Results do not depend on threads, for batch sizes around multiples of the threads' shares."""
    robot = make()
    compiled = chasles.compile(robot, function, dtype=dtype)
    inputs = [a.astype(dtype) for a in state(robot, 1, 1000)][: len(compiled.interface.inputs)]
    for size in (1, 2, 63, 64, 65, 128, 129, 200, 448, 449, 1000):
        part = [a[:size] for a in inputs]
        spread = [np.repeat(a, 2, axis=0)[::2] for a in part]
        first = compiled(*part, threads=1)
        for threads in THREADS:
            for given in (part, spread):
                found = compiled(*given, threads=threads)
                for a, b in zip(_several(found), _several(first), strict=True):
                    assert a.tobytes() == b.tobytes()


def _several(found: Any) -> list[np.ndarray]:
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("threads", THREADS)
def test_in_place_with_threads(crowded: None, threads: int | None) -> None:
    """`out` may be an input or overlap one."""
    compiled = chasles.compile(ROBOT, "inverse_dynamics")
    q, qd, qdd = state(ROBOT, 2, 500)
    expected = compiled(q, qd, qdd, threads=1)
    for shift in (0, 1, 6, 65 * 6, -6):
        buffer = np.zeros(500 * 6 + 1000)
        taken = buffer[500 : 500 + 3000].reshape(500, 6)
        taken[...] = q
        out = buffer[500 + shift : 3500 + shift].reshape(500, 6)
        assert compiled(taken, qd, qdd, out=out, threads=threads) is out
        assert np.array_equal(out, expected)


def test_large_batches_by_default() -> None:
    """Large batches use threads by default, in the method and in the fast entry."""
    robot = planar(2)
    compiled = chasles.compile(robot, "inverse_dynamics")
    count = 2 * llvm.WORTH_THREADS // compiled.kernel.artifact.work
    inputs = [np.resize(a, (count, 2)) for a in state(robot, 3, 1000)]
    expected = compiled(*inputs, threads=1)
    for call in (compiled, compiled.fast, robot.inverse_dynamics, robot.inverse_dynamics):
        assert np.array_equal(call(*inputs), expected)
    assert np.array_equal(robot.inverse_dynamics(*inputs, threads=2), expected)


@pytest.mark.parametrize("target", TARGETS)
def test_every_backend_takes_threads(target: str) -> None:
    compiled = chasles.compile(planar(2), "gravity_forces", backend=target)
    q = state(planar(2), 4, 5)[0]
    assert np.array_equal(compiled(q, threads=2), compiled(q))


# Invalid numbers of threads --------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0, -1, 1.0, 2.5, "2", [1], (2,), np.nan, "all"])
def test_a_wrong_number_of_threads(bad: Any) -> None:
    """The message contains the function, and `out` is unchanged."""
    q = np.zeros((5, 6))
    out = np.full((5, 6), 7.0)
    robot = puma560()
    for _ in range(2):  # before and after the fast entry is created
        with raises("E-CALL-003", "gravity_forces"):
            robot.gravity_forces(q, threads=bad, out=out)
        robot.gravity_forces(q)
    assert np.all(out == 7.0)


def test_more_threads_than_states() -> None:
    q = state(ROBOT, 5, 3)[0]
    assert np.array_equal(ROBOT.gravity_forces(q, threads=10**6), ROBOT.gravity_forces(q))
    assert ROBOT.gravity_forces(np.empty((0, 6)), threads=5).shape == (0, 6)
    assert np.array_equal(ROBOT.gravity_forces(q[0], threads=5), ROBOT.gravity_forces(q[0]))


# Thread pool -----------------------------------------------------------------------------------

BODY = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t)


def shared(
    count: int, step: int, threads: int, work: Callable[[int, int], Any], weight: int = 1
) -> None:
    """Divide rows among threads that call a Python function in place of machine code."""

    def called(_: int, first: int, last: int) -> int:
        return work(first, last) or 0

    body = BODY(called)
    llvm.pool()(objects.at_address(body), 0, count, step, threads, weight)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 1000])
@pytest.mark.parametrize("threads", [1, 2, 3, 7, 100])
def test_ranges_cover_all_rows_once(crowded: None, count: int, threads: int) -> None:
    """Ranges cover all rows once, start at multiples of the step, and are few per thread."""
    seen: list[tuple[int, int]] = []
    shared(count, 64, threads, lambda first, last: seen.append((first, last)))
    seen.sort()
    assert [k for first, last in seen for k in range(first, last)] == list(range(count))
    assert all(first % 64 == 0 for first, _ in seen)
    assert len(seen) <= max(min(threads, 8) * llvm_threads.PIECES, 1)


@pytest.mark.parametrize("where", [0, 64, 128])
def test_memory_that_is_not_there(crowded: None, where: int) -> None:
    """If a thread cannot allocate memory, the others finish first, and the pool stays usable."""
    left: list[int] = []

    def work(first: int, last: int) -> int:
        if first != where:
            time.sleep(0.05)
        left.append(first)
        return int(first == where)

    for _ in range(3):
        left.clear()
        with pytest.raises(MemoryError):
            shared(192, 64, 3, work)
        before = list(left)
        time.sleep(0.1)
        assert where in left
        assert left == before
    left.clear()
    shared(192, 64, 3, lambda first, last: left.append(first))
    assert sorted(left) == [0, 64, 128]


def test_all_threads_take_part(crowded: None) -> None:
    """The requested number of threads works at the same time."""
    for threads in (2, 3, 5, 8):
        meeting, met = threading.Barrier(threads), []

        def work(first: int, last: int, meeting: Any = meeting, met: Any = met) -> None:
            meeting.wait(timeout=60)
            met.append(threading.get_ident())

        shared(threads * 64, 64, threads, work)
        assert len(set(met)) == threads


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads here")
def test_an_interrupt_waits_for_the_threads(crowded: None) -> None:
    """An interrupt is raised after all threads have finished their current calls.

    Threads write into memory of the caller, so none may continue afterwards. Later rows are not
    computed.
    """
    compiled = chasles.compile(ROBOT, "inverse_dynamics")
    kernel, done = compiled.kernel, []

    def interrupt(*_: Any) -> None:
        done.append(time.perf_counter())
        raise KeyboardInterrupt

    inputs = [np.resize(a, (1000, 6)) for a in state(ROBOT, 7, 100)]
    rows = [np.broadcast_to(a.reshape(1, -1)[:, :6], (4_000_000, 6)) for a in inputs]
    out = np.full((4_000_000, 6), 7.0)

    def begun() -> None:
        """Interrupt the main thread as soon as the first row is written."""
        while out[0, 0] == 7.0:
            time.sleep(1e-4)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)

    usual = signal.signal(signal.SIGALRM, interrupt)
    try:
        for threads in (1, 3):
            out.fill(7.0)
            watch = threading.Thread(target=begun)
            watch.start()
            with pytest.raises(KeyboardInterrupt), patience(10_000_000):
                kernel(rows, [out], threads)
            watch.join()
            before = out[:, 0] != 7.0
            time.sleep(0.05)
            assert np.array_equal(out[:, 0] != 7.0, before)
            assert 0 < np.count_nonzero(before) < len(out)
    finally:
        signal.signal(signal.SIGALRM, usual)


@contextlib.contextmanager
def patience(operations: int) -> Iterator[None]:
    """Limit the number of operations in one call to machine code."""
    usual, llvm_threads.PATIENCE = llvm_threads.PATIENCE, operations
    try:
        yield
    finally:
        llvm_threads.PATIENCE = usual


def test_no_thread_can_be_started(crowded: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no thread can be started, the caller computes everything.

    This occurs when the interpreter exits or if the system has no more threads.
    """

    def refuse(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    compiled = chasles.compile(ROBOT, "inverse_dynamics")
    inputs = state(ROBOT, 11, 300)
    expected = compiled(*inputs, threads=1)
    with monkeypatch.context() as changed:
        changed.setattr(llvm.pool(), "_started", 0)
        changed.setattr(llvm_threads._thread, "start_new_thread", refuse)
        assert np.array_equal(compiled(*inputs, threads=4), expected)


@pytest.mark.parametrize("every", [1, 3, 64, 1000])
def test_rollouts_in_parts(monkeypatch: pytest.MonkeyPatch, every: int) -> None:
    """Rollouts divided into parts, between which interrupts are handled, are bitwise identical."""
    q, qd, tau = state(ROBOT, 12, 130)
    forces = np.repeat(tau[:, None], 200, axis=1) * np.linspace(0.0, 1.0, 200)[:, None]
    for rows in (1, 2, 65, 130):
        given = (q[:rows], qd[:rows], forces[:rows])
        whole = ROBOT.rollout(*given, dt=1e-3, steps=200, every=every, threads=1)
        for operations in (1, 10_000_000):
            monkeypatch.setattr(llvm_loop, "PATIENCE", operations)
            monkeypatch.setattr(llvm_threads, "PATIENCE", operations)
            for threads in (1, 3):
                parts = ROBOT.rollout(*given, dt=1e-3, steps=200, every=every, threads=threads)
                assert parts.q.tobytes() == whole.q.tobytes()
                assert parts.qd.tobytes() == whole.qd.tobytes()
            monkeypatch.undo()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize("rows", [1, 200])
def test_a_long_rollout_is_interrupted(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """An interrupted rollout stops after the current part."""
    q, qd, _ = state(ROBOT, 13, rows)
    parts, part = [], llvm_loop.Loop._part

    def counted(*given: Any) -> None:
        part(*given)
        parts.append(given[4])
        if len(parts) == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(llvm_loop, "PATIENCE", 100_000_000)
    monkeypatch.setattr(llvm_loop.Loop, "_part", counted)
    with pytest.raises(KeyboardInterrupt):
        ROBOT.rollout(q, qd, dt=1e-9, steps=100_000, every=10**9, threads=2)
    assert len(parts) == 2
    assert sum(parts) < 100_000


def trial(*arguments: str, seconds: float = 300.0) -> str:
    """Run a trial in a separate process and return its output."""
    done = subprocess.run(
        [sys.executable, code_stress.__file__, *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_interrupts_of_threaded_calls() -> None:
    """Interrupts neither crash the process nor leave a thread behind."""
    assert "25000 interrupts" in trial("interrupts", "25000")


def test_what_is_compiled_waits_for_nothing() -> None:
    """Compiled functions can be called in all ways while another thread compiles."""
    robot = puma560()
    q, qd, qdd = state(robot, 12)
    ways = [
        lambda: robot.inverse_dynamics(q, qd, qdd),
        lambda: robot.inverse_dynamics(q.tolist(), qd, qdd),
        lambda: robot.inverse_dynamics(q, qd, qdd, f_ext={"tool": np.ones(6)}),
        lambda: robot.jacobian(q, frame="tool", at=[0.0, 0.0, 1.0]),
        lambda: robot.derivatives("gravity_forces", q, out=np.empty((6, 6))),
    ]
    expected = [way() for way in ways]
    busy, over = threading.Event(), threading.Event()

    def compile_long() -> None:
        with arrays.COMPILING:
            busy.set()
            over.wait(timeout=60)

    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        executor.submit(compile_long)
        busy.wait(timeout=60)
        try:
            for way, before in zip(ways, expected, strict=True):
                np.testing.assert_array_equal(executor.submit(way).result(timeout=5), before)
        finally:
            over.set()


def test_threads_share_the_pool(crowded: None) -> None:
    """Eight callers at once, each with several threads, get correct results."""
    compiled = chasles.compile(ROBOT, "inverse_dynamics")
    inputs = state(ROBOT, 6, 700)
    expected = compiled(*inputs, threads=1)
    start = threading.Barrier(8)

    def work(k: int) -> bool:
        start.wait(timeout=60)
        right = True
        for _ in range(20):
            found = compiled(*inputs, threads=2 + k % 3)
            right &= np.array_equal(found, expected)
        return right

    with concurrent.futures.ThreadPoolExecutor(8) as callers:
        assert all(callers.map(work, range(8)))


def test_the_lock_of_python_is_free_meanwhile() -> None:
    """Python code in another thread continues while a long batch is computed.

    On a busy machine, the other thread may not be scheduled, so several batches are tried.
    """
    compiled = chasles.compile(ROBOT, "inverse_dynamics")
    inputs = [np.resize(a, (400_000, 6)) for a in state(ROBOT, 7, 100)]
    out = np.empty((400_000, 6))

    def work(over: threading.Event) -> float:
        start = time.perf_counter()
        compiled(*inputs, out=out, threads=1)
        over.set()
        return time.perf_counter() - start

    def free() -> bool:
        over = threading.Event()
        running = other.submit(work, over)
        gaps, last = [], time.perf_counter()
        while not over.is_set():
            time.sleep(1e-4)
            gaps.append(time.perf_counter() - last)
            last = time.perf_counter()
        took = running.result(timeout=60)
        return len(gaps) > 5 and sorted(gaps)[len(gaps) // 2] < 0.5 * took

    with concurrent.futures.ThreadPoolExecutor(1) as other:
        assert any(free() for _ in range(20))


# Forks -----------------------------------------------------------------------------------------


def forked(work: Callable[[], bool]) -> bool:
    """Return True if `work` returns True in a child process within twenty seconds."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        except BaseException:
            os._exit(2)
    for _ in range(2000):
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


@FORK
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_fork_after_threads_were_used() -> None:
    """A child process has no threads of its parent and starts its own, as does its own child."""
    compiled = chasles.compile(ROBOT, "inverse_dynamics")
    inputs = state(ROBOT, 8, 1000)
    expected = compiled(*inputs, threads=2)
    assert llvm.pool()._started

    def right() -> bool:
        alone = not llvm.pool()._started
        found = compiled(*inputs, threads=2)
        return alone and np.array_equal(found, expected)

    assert forked(lambda: right() and forked(right))
    assert np.array_equal(compiled(*inputs, threads=2), expected)


@FORK
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_fork_while_threads_work() -> None:
    """If the process forks while threads compute batches, the child can call all functions."""
    compiled = chasles.compile(ROBOT, "inverse_dynamics")
    inputs = state(ROBOT, 9, 5000)
    expected = compiled(*inputs)
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            compiled(*inputs, threads=2)

    def child() -> bool:
        fresh = planar(2).gravity_forces(np.zeros(2)).shape == (2,)
        return fresh and all(
            np.array_equal(compiled(*inputs, threads=n), expected) for n in THREADS
        )

    others = [threading.Thread(target=work) for _ in range(2)]
    for other in others:
        other.start()
    try:
        assert all(forked(child) for _ in range(5))
    finally:
        over.set()
        for other in others:
            other.join()


@FORK
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_fork_while_another_thread_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child does not wait for a compilation in its parent."""
    monkeypatch.setenv("CHASLES_CACHE", str(tmp_path / "cache"))
    started, over = threading.Event(), threading.Event()

    def work() -> None:
        k = 0
        while not over.is_set():
            k += 1
            robot = ROBOT.with_gravity([0.0, 0.0, -k])
            started.set()
            robot.function("gravity_forces")

    def child() -> bool:
        robot = planar(1).with_gravity([0.0, 0.0, -1.5])
        return robot.gravity_forces(np.zeros(1)).shape == (1,)

    other = threading.Thread(target=work)
    other.start()
    try:
        started.wait(timeout=60)
        for pause in (0.05, 0.02, 0.07):
            time.sleep(pause)
            assert forked(child)
    finally:
        over.set()
        other.join()


@FORK
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_fork_while_code_is_freed() -> None:
    """If the process forks while threads load and free code, LLVM's lock is free in the child."""
    artifact, over = chasles.compile(planar(1), "gravity_forces").kernel.artifact, threading.Event()

    def work() -> None:
        while not over.is_set():
            kernel = llvm.Kernel(artifact)
            kernel([np.zeros((3, 1))], [np.zeros((3, 1))])

    def child() -> bool:
        robot = planar(1).with_gravity([0.0, 0.0, -1.0])
        return robot.gravity_forces(np.zeros(1)).shape == (1,)

    others = [threading.Thread(target=work) for _ in range(2)]
    for other in others:
        other.start()
    try:
        assert all(forked(child) for _ in range(20))
    finally:
        over.set()
        for other in others:
            other.join()


def _there(q: np.ndarray) -> np.ndarray:
    return ROBOT.gravity_forces(q, threads=2)


@FORK
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_pool_of_forked_processes() -> None:
    q = state(ROBOT, 10, 300)[0]
    expected = ROBOT.gravity_forces(q, threads=2)
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as processes:
        for found in processes.map_async(_there, [q] * 6).get(timeout=120):
            assert np.array_equal(found, expected)


def test_a_process_that_used_threads_ends() -> None:
    """Neither the thread pool nor a call in an exit handler prevents a clean exit."""
    code = """
import atexit
import numpy as np
from chasles.robots import planar
robot = planar(2)
q = np.zeros((1000, 2))
robot.gravity_forces(q, threads=3)
atexit.register(lambda: print(robot.gravity_forces(q, threads=2).shape))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "(1000, 2)\n")
