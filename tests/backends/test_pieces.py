"""Long modules split into pieces that other processes compile, and failures of these processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import chasles
from chasles.backends.llvm import code as llvm_code
from chasles.backends.llvm import kernel as llvm
from chasles.functions.programs import program

MACHINE = {
    name: getattr(llvm.Machine.host(), name) for name in ("triple", "cpu", "features", "effort")
}


@pytest.fixture
def short_pieces(monkeypatch):
    """Split even short functions into pieces."""
    monkeypatch.setattr(llvm_code, "LONG", 50)
    monkeypatch.setattr(llvm_code, "WORTH", 100)


@pytest.fixture(scope="module")
def traced():
    return program(chasles.robots.puma560().model, "forward_dynamics")


def rows(kernel):
    rng = np.random.default_rng(3)
    inputs = [rng.normal(size=(11, v.size)) for v in kernel.interface.inputs]
    outputs = [np.empty((11, v.size)) for v in kernel.interface.outputs]
    kernel(inputs, outputs)
    return outputs


@pytest.fixture(scope="module")
def expected(traced):
    return rows(llvm.compile(traced))


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_each_piece_becomes_an_object(short_pieces, traced):
    text = llvm.source(traced).text
    pieces = llvm_code.split(text, 3)
    assert len(pieces) > 2
    code = llvm_code.compiled(text, MACHINE, 3, _refuse)
    assert len(llvm_code.objects(code)) == len(pieces)


def _refuse(text):
    """Assemble a piece in this process, which may only be the piece without long functions."""
    assert "@entry" in text or "@batch" in text, "a process failed"
    return llvm.assemble(text, llvm.Machine.host())


def test_kernels_of_pieces_run(short_pieces, traced, expected, monkeypatch):
    monkeypatch.setattr(llvm.arrays, "cores", lambda: 3)
    kernel = llvm.compile(traced)
    assert len(llvm_code.objects(kernel.artifact.object_code)) > 2
    assert same(rows(kernel), expected)


def test_pieces_survive_the_cache(short_pieces, traced, expected, monkeypatch):
    monkeypatch.setattr(llvm.arrays, "cores", lambda: 2)
    artifact = llvm.build(traced)
    again = type(artifact).from_bytes(artifact.to_bytes())
    assert same(rows(llvm.Kernel(again)), expected)


def test_one_core_one_module(short_pieces, traced):
    assert len(llvm_code.split(llvm.source(traced).text, 1)) == 1


@pytest.mark.parametrize("broken", ["killed", "missing", "garbage"])
def test_what_a_process_does_not_deliver_is_compiled_here(
    short_pieces, traced, expected, monkeypatch, broken
):
    monkeypatch.setattr(llvm.arrays, "cores", lambda: 2)
    start = subprocess.Popen

    def popen(command, **options):
        if broken == "missing":
            raise OSError("no such program")
        if broken == "garbage":
            command = [sys.executable, "-c", "print('not machine code')"]
        process = start(command, **options)
        if broken == "killed":
            process.kill()
        return process

    monkeypatch.setattr(llvm_code.subprocess, "Popen", popen)
    assert same(rows(llvm.compile(traced)), expected)


@pytest.mark.parametrize("program_name", ["", "/opt/blender/blender", "/usr/bin/app"])
def test_no_process_is_started_inside_an_application(monkeypatch, program_name):
    monkeypatch.setattr(sys, "executable", program_name)
    assert llvm_code.interpreter() is None


def test_no_process_is_started_by_a_frozen_program(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert llvm_code.interpreter() is None


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_the_processes(short_pieces, traced):
    text = llvm.source(traced).text
    begun = []

    def interrupted(_):
        begun.extend(workers())
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
        raise AssertionError("the interrupt did not come")

    with pytest.raises(KeyboardInterrupt):
        llvm_code.compiled(text, MACHINE, 2, interrupted)
    assert begun
    assert not set(begun) & set(workers())


def workers():
    """Return the child processes of this process."""
    own = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    if not own.exists():
        pytest.skip("no list of processes")
    return own.read_text().split()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_compiles_too(tmp_path):
    code = """
import os, sys
import chasles
from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm import code as llvm_code
from chasles.functions.programs import program
llvm_code.LONG, llvm_code.WORTH, llvm.arrays.cores = 50, 100, lambda: 2
traced = program(chasles.robots.puma560().model, "forward_dynamics")
llvm.compile(traced)
child = os.fork()
if child == 0:
    llvm.compile(traced)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=120, check=False)
    assert done.returncode == 0


def test_a_daemonic_process_compiles_without_a_guard(tmp_path):
    """The worker processes do not run the main module again, unlike those of multiprocessing."""
    script = tmp_path / "no_guard.py"
    script.write_text(
        """
import threading
import chasles
from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm import code as llvm_code
from chasles.functions.programs import program
print("main runs")
llvm_code.LONG, llvm_code.WORTH, llvm.arrays.cores = 50, 100, lambda: 2
traced = program(chasles.robots.puma560().model, "forward_dynamics")
thread = threading.Thread(target=llvm.compile, args=(traced,), daemon=True)
thread.start()
thread.join()
"""
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "main runs\n"
