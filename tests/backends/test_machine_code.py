"""Validation of counts passed to machine code, and lifetime of loaded code."""

import copy
import gc
import pickle
import signal
import threading
import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from entry_stress import resident
from support import raises
from test_threads import trial

import chasles
from chasles.backends import arrays, cache
from chasles.backends.llvm import calls
from chasles.backends.llvm import code as llvm_code
from chasles.backends.llvm import kernel as llvm
from chasles.expr import RULES, Arena, Program, Variable
from chasles.robots import planar, puma560

LARGE = (2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 2**64 + 64, 10**5000)
"""Integers above 2^53, around 2^63 and 2^64, and a very large one."""

MAPS = pytest.mark.skipif(
    not Path("/proc/self/maps").exists(), reason="this system does not say what a process holds"
)


# Counts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", LARGE, ids=[f"{n.bit_length()} bits {n % 100}" for n in LARGE])
@pytest.mark.parametrize("name", ["steps", "every", "threads"])
def test_counts_that_are_too_large(name: str, value: int) -> None:
    """All functions reject a count that is too large with the same error."""
    robot = planar(2)
    q, qd = np.zeros((2, 3, 2))
    given: dict[str, Any] = {"dt": 1e-3, "steps": 200, name: value}
    with raises("E-CALL-003", f"rollout: {name}"):
        robot.rollout(q, qd, **given)
    if name == "every":
        with raises("E-CALL-003", "simulate: every"):
            robot.simulate(q, qd, duration=0.01, dt=1e-3, every=value)
        given["tau"] = np.zeros(2)
        with raises("E-CALL-003", "rollout: every"):
            robot.rollout_pullback(q, qd, covectors=(q, qd), **given)
    if name == "threads":
        for call in (robot.gravity_forces, chasles.compile(robot, "gravity_forces")):
            for _ in range(2):  # before and after the fast entry is created
                with raises("E-CALL-003", "gravity_forces: threads"):
                    call(q, threads=value)


@pytest.mark.parametrize("every", [199_999, 200_000, 200_001, 2**40, 2**53])
def test_records_are_as_many_as_fit(every: int) -> None:
    """If the interval between records exceeds the steps, the first and last states are recorded."""
    q, qd = np.full((2, 2, 2), 0.1)
    for row in (slice(0, 1), slice(0, 2)):
        found = planar(2).rollout(q[row], qd[row], dt=1e-5, steps=200_000, every=every)
        kept = list(range(0, 200_001, every))
        numbers = kept if kept[-1] == 200_000 else [*kept, 200_000]
        assert np.array_equal(np.rint(found.t / 1e-5), numbers)


def test_words() -> None:
    """`arrays.words` raises an error for integers that 64 bits cannot represent."""
    assert list(arrays.words([-(2**63), -1, 0, 2**63 - 1])) == [-(2**63), -1, 0, 2**63 - 1]
    for bad in (2**63, -(2**63) - 1, 2**64, 2**64 + 1, 1.0, "1", None):
        with raises("E-CALL-098"):
            arrays.words([1, bad])  # type: ignore[list-item]


@pytest.mark.parametrize("change", [("workspace", -1), ("workspace", 2**64), ("workspace", 1.5)])
def test_sizes_in_a_file_of_the_cache(change: tuple[str, Any]) -> None:
    """A cache entry with an impossible workspace size is rejected."""
    artifact = chasles.compile(planar(2), "gravity_forces").kernel.artifact
    assert cache.Artifact.from_bytes(artifact.to_bytes()) == artifact
    name, value = change
    with raises("E-CALL-003", name):
        cache.Artifact.from_bytes(replace(artifact, **{name: value}).to_bytes())


# Code that is freed ----------------------------------------------------------------------------


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Disable the caching of unused kernels."""
    monkeypatch.setenv("CHASLES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(llvm, "RECENT", 0)
    llvm.pool()
    llvm.forget()


def pieces() -> int:
    """Return the number of loaded pieces of machine code."""
    gc.collect()
    return sum(isinstance(each, llvm_code.Piece) for each in gc.get_objects())


def test_code_goes_with_its_last_owner(alone: None) -> None:
    """A robot, a function, an entry and a rollout keep code loaded only as long as they need it."""
    q, before = np.array([0.3, 0.4]), pieces()
    robot = planar(2).with_gravity([0.0, 0.0, -3.0])
    expected = robot.gravity_forces(q)
    assert pieces() == before + 1
    entry = robot.gravity_forces
    function = robot.function("gravity_forces").fast
    del robot
    assert pieces() == before + 1
    assert np.array_equal(entry(q), expected)
    del entry
    assert pieces() == before + 1
    assert np.array_equal(function(q), expected)
    del function
    assert pieces() == before
    robot = planar(2).with_gravity([0.0, 0.0, -3.0])
    robot.rollout(q, q, dt=1e-3, steps=3)
    assert pieces() > before
    del robot
    assert pieces() == before


def test_an_entry_alone_keeps_its_code(alone: None) -> None:
    """An entry keeps its code even after everything else was collected."""
    robot, q = planar(2).with_gravity([0.0, 0.0, -4.0]), np.array([0.3, 0.4])
    expected = robot.gravity_forces(q)
    kernel = robot.function("gravity_forces").kernel
    facts: dict[str, Any] = {"name": "gravity_forces", "signature": "", "doc": "", "holder": None}
    entry = kernel.fast_entry(fallback=print, **facts)
    kernel = weakref.ref(kernel)
    del robot
    gc.collect()
    assert kernel() is None
    assert np.array_equal(entry(q), expected)
    assert np.array_equal(entry(q[None])[0], expected)


def test_a_batch_with_a_large_workspace_needs_no_python() -> None:
    """The workspace is allocated for each call and freed, even if the call is refused."""
    size = 1200
    arena, x, y = Arena(RULES), Variable("x", (size,)), Variable("y", (size,))
    sums = [a + a for a in (arena.input("x", k) for k in range(size))]
    program = Program.from_outputs("doubled", [x], [(y, sums)])
    kernel = llvm.compile(program)
    assert kernel.artifact.workspace > calls.SMALL_WORKSPACE
    facts: dict[str, Any] = {"name": "doubled", "signature": "x", "doc": "", "holder": None}
    refused: list[Any] = []
    entry = kernel.fast_entry(fallback=lambda *_, **named: refused.append(named), **facts)
    rows, out = np.random.default_rng(0).normal(size=(13, size)), np.empty((13, size))
    wrong = np.empty((12, size))
    before = resident()
    for _ in range(2000):
        assert entry(rows, out=out) is out
        entry(rows, out=wrong)
    assert resident() - before < 2000 * kernel.artifact.workspace // 4, "memory is given back"
    assert len(refused) == 2000, "only the calls with a wrong array"
    assert np.array_equal(out, 2.0 * rows)
    assert np.array_equal(entry(rows), 2.0 * rows)


def test_a_finaliser_in_the_garbage_may_call(alone: None) -> None:
    """The collector runs all finalizers of a cycle, in any order, before it clears objects."""
    answers: list[np.ndarray] = []

    class Late:
        def __init__(self, robot: chasles.Robot) -> None:
            self.entry, self.robot, self.itself = robot.mass_matrix, robot, self

        def __del__(self) -> None:
            answers.append(self.entry(np.zeros(2)))
            answers.append(self.robot.mass_matrix(np.zeros((3, 2)), threads=2)[0])

    before = pieces()
    for k in range(20):
        robot = planar(2).with_gravity([0.0, 0.0, -5.0 - k])
        robot.mass_matrix(np.zeros(2))
        first, second = Late(robot), Late(robot)
        first.itself, second.itself = second, first
        robot.__dict__["late"] = first
        del robot, first, second
    assert pieces() == before
    assert len(answers) == 80
    assert all(np.array_equal(a, answers[0]) for a in answers)


def test_equal_robots_share_and_the_last_frees(alone: None) -> None:
    before, q = pieces(), np.zeros(2)
    robots = [planar(2).with_gravity([0.0, 0.0, -7.5]) for _ in range(5)]
    for robot in robots:
        robot.gravity_forces(q)
    assert pieces() == before + 1
    del robot, robots
    assert pieces() == before


def test_recent_kernels_are_kept(alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limited number of recently used kernels is kept, so that equal robots find them again."""
    monkeypatch.setattr(llvm, "RECENT", 3)
    llvm.forget()
    before = pieces()
    kernels = []
    for k in (1, 2, 3, 1, 4, 5, 1):
        robot = planar(1).with_gravity([0.0, 0.0, -float(k)])
        robot.gravity_forces(np.zeros(1))
        kernels.append(id(robot.function("gravity_forces").kernel))
        del robot
    assert pieces() == before + 3
    assert kernels[0] == kernels[3] == kernels[6]
    llvm.forget()
    assert pieces() == before


def test_code_is_freed_while_others_call(alone: None) -> None:
    """Threads can call, drop and create robots at the same time."""
    wrong: list[int] = []

    def work(seed: int) -> None:
        for k in range(8):
            gravity = 1.0 + seed + k / 16.0
            robot = planar(1).with_gravity([0.0, 0.0, -gravity])
            for _ in range(50):
                if robot.gravity_forces(np.zeros(1))[0] != 0.5 * gravity:
                    wrong.append(seed)

    before = pieces()
    workers = [threading.Thread(target=work, args=(10 * k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    assert pieces() == before


def test_dropping_a_robot_waits_for_no_compilation(alone: None) -> None:
    """If LLVM is busy, code is freed after its work is done."""
    before = pieces()
    robot = planar(1).with_gravity([0.0, 0.0, -8.5])
    robot.gravity_forces(np.zeros(1))
    with llvm_code.BUSY:
        del robot
        assert pieces() == before
        assert llvm_code._GONE
    llvm.assemble("define void @f() {\n  ret void\n}\n", llvm.Machine.host())
    assert not llvm_code._GONE


def test_no_signal_interrupts_work_with_llvm() -> None:
    """LLVM runs in a separate thread. Signals are handled after its result is returned."""
    assert llvm_code.undisturbed(threading.current_thread) is not threading.main_thread()
    with pytest.raises(ZeroDivisionError):
        llvm_code.undisturbed(lambda: 1 / 0)
    steps: list[str] = []

    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.05)
        steps.append("done")

    with pytest.raises(KeyboardInterrupt):
        llvm_code.undisturbed(work)
    assert steps == ["done"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_llvm_is_interrupted_at_any_moment() -> None:
    """An interrupt never leaves LLVM's lock taken, which would block other threads forever."""
    assert "300 interrupts" in trial("compiling", "300")


def test_code_is_not_copied() -> None:
    code = chasles.compile(puma560(), "gravity_forces").kernel.code
    for again in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="machine code"):
            again(code)


def test_the_collector_does_not_know_the_code() -> None:
    """The owner of code consists of tuples and arrays, which the collector does not clear."""
    robot = planar(2)
    robot.gravity_forces(np.zeros(2))
    _, code, *_ = robot.gravity_forces.__self__[-1][1]
    assert isinstance(code, tuple)
    assert not gc.is_tracked(code.hidden)
    assert all(each is not code.piece for each in gc.get_referents(code, code.hidden))


@MAPS
@pytest.mark.parametrize(
    ("kind", "count"),
    [("distinct", 250), ("equal", 2500)],
    ids=["distinct", "equal"],
)
def test_robots_that_come_and_go(kind: str, count: int) -> None:
    """Creating and dropping robots does not increase the memory or the number of mappings."""
    print(trial(kind, str(count)))
