"""Handler that XLA calls on a GPU, tested with imitated call frames on an imitated GPU.

The structures follow xla/ffi/api/c_api.h and share no code with the handler.
"""

import ctypes
from collections.abc import Sequence
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_uint, c_void_p
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gpu_on_cpu import Imitation, imitated
from support import close

import chasles
from chasles.backends import arrays, xla
from chasles.backends.cuda import driver as cuda_driver
from chasles.backends.cuda import kernel as cuda
from chasles.backends.cuda import tiles as cuda_tiles
from chasles.backends.llvm import kernel as llvm
from chasles.functions.compiled import Compiled
from chasles.robots import planar

STREAM, CONTEXT, ERROR = 0x51, 0x52, 0x53
START = [("struct_size", c_int64), ("extension_start", c_void_p)]


class Buffer(Structure):
    _fields_ = [
        *START,
        ("dtype", c_int),
        ("data", c_void_p),
        ("rank", c_int64),
        ("dims", POINTER(c_int64)),
    ]


class Buffers(Structure):
    _fields_ = [*START, ("size", c_int64), ("types", c_void_p), ("buffers", POINTER(c_void_p))]


class Attributes(Structure):
    _fields_ = [
        *START,
        ("size", c_int64),
        ("types", c_void_p),
        ("names", c_void_p),
        ("attributes", c_void_p),
    ]


class StreamQuestion(Structure):
    _fields_ = [*START, ("ctx", c_void_p), ("stream", c_void_p)]


class ErrorQuestion(Structure):
    _fields_ = [*START, ("message", c_char_p), ("code", c_int)]


class Version(Structure):
    _fields_ = [*START, ("major", c_int), ("minor", c_int)]


class Metadata(Structure):
    _fields_ = [("struct_size", c_int64), ("version", Version), ("traits", c_uint)]


class Extension(Structure):
    _fields_ = [
        ("struct_size", c_int64),
        ("type", c_int),
        ("next", c_void_p),
        ("metadata", POINTER(Metadata)),
    ]


ErrorCreate = CFUNCTYPE(c_void_p, POINTER(ErrorQuestion))
StreamGet = CFUNCTYPE(c_void_p, POINTER(StreamQuestion))
Handler = CFUNCTYPE(c_void_p, c_void_p)


class Api(Structure):
    _fields_ = [
        *START,
        ("version", Version),
        ("internal", c_void_p),
        ("error_create", ErrorCreate),
        *((name, c_void_p) for name in ("get_message", "destroy", "register")),
        ("stream_get", StreamGet),
    ]


class Frame(Structure):
    _fields_ = [
        *START,
        ("api", POINTER(Api)),
        ("ctx", c_void_p),
        ("stage", c_int),
        ("arguments", Buffers),
        ("results", Buffers),
        ("attributes", Attributes),
        ("future", c_void_p),
    ]


Launch = CFUNCTYPE(c_int, c_void_p, *[c_uint] * 7, *[c_void_p] * 3)
Explain = CFUNCTYPE(c_int, c_int, POINTER(c_char_p))


class Driver:
    """Driver that launches kernels on the CPU, and an XLA with one stream."""

    def __init__(self, function: Imitation, monkeypatch: pytest.MonkeyPatch) -> None:
        self.function, self.status, self.stream_error = function, 0, 0
        self.asked: list[Any] = []
        self.calls = {
            "cuLaunchKernel": Launch(self.launch),
            "cuGetErrorString": Explain(self.explain),
        }
        pointers = {name: ctypes.cast(f, c_void_p).value for name, f in self.calls.items()}
        monkeypatch.setattr(cuda_driver, "address", pointers.__getitem__)
        self.api = Api(error_create=ErrorCreate(self.error), stream_get=StreamGet(self.stream))

    def launch(self, kernel: int, *rest: Any) -> int:
        *numbers, shared, stream, ordinary, extra = rest
        assert (kernel, stream, ordinary) == (self.function.pointer, STREAM, None)
        if self.status:
            return self.status
        words = (c_int64 * 5).from_address(extra)
        assert (words[0], words[2], words[4]) == (1, 2, 0)
        size = c_int64.from_address(words[3]).value
        parameters = list((c_int64 * (size // 8)).from_address(words[1]))
        self.function.launches.append((*numbers, shared))
        self.function.run(parameters)
        return 0

    def explain(self, status: int, text: Any) -> int:
        text[0] = f"reason {status}".encode()
        return 0

    def stream(self, question: Any) -> int | None:
        asked = question[0]
        assert (asked.struct_size, asked.extension_start, asked.ctx) == (32, None, CONTEXT)
        asked.stream = STREAM
        return self.stream_error or None

    def error(self, question: Any) -> int:
        asked = question[0]
        assert (asked.struct_size, asked.extension_start) == (28, None)
        self.asked.append((asked.message, asked.code))
        return ERROR

    def call(self, handler: int, inputs: Sequence[Any], outputs: Sequence[Any]) -> int | None:
        frame = Frame(api=ctypes.pointer(self.api), ctx=CONTEXT, stage=3)
        kept = []  # objects that the frame points to
        for name, given in (("arguments", inputs), ("results", outputs)):
            kept.append(table(given))
            setattr(frame, name, kept[-1][0])
        result: int | None = Handler(handler)(ctypes.addressof(frame))
        return result


def table(arrays: Sequence[np.ndarray]) -> tuple[Any, ...]:
    """Return the frame's table of buffers, and the objects that it points to."""
    sizes = [(c_int64 * 2)(*a.shape) for a in arrays]
    each = [
        Buffer(data=a.ctypes.data, rank=2, dims=ctypes.cast(s, POINTER(c_int64)))
        for a, s in zip(arrays, sizes, strict=True)
    ]
    pointers = (c_void_p * len(arrays))(*(ctypes.addressof(b) for b in each))
    return Buffers(size=len(arrays), buffers=pointers), sizes, each, pointers


@pytest.fixture(params=["float64", "float32"])
def dtype(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_rows_and_shared_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    compiled = chasles.compile(planar(2), "inverse_dynamics")
    kernel, function = imitated(compiled.program, dtype, tmp_path, monkeypatch)
    driver = Driver(function, monkeypatch)
    handler, columns = xla.gpu_handler(kernel, "sm_90", "rows", 3)
    assert columns == ()
    rng = np.random.default_rng(0)
    for count in (5, 1, 0):
        given = [rng.uniform(-1.0, 1.0, (n, 2)).astype(dtype) for n in (count, 1, count)]
        out = np.full((count, 2), np.nan, dtype)
        assert driver.call(handler, given, [out]) is None
        expected = compiled(*(a.astype(float) for a in (given[0], given[1][0], given[2])))
        close(out, expected, 1e-12 if dtype == "float64" else 1e-5)
    built, _ = kernel.loaded("sm_90", "rows")
    assert function.launches == [(1, 1, 1, 32, 1, 1, built.shared)] * 2, "none for no states"


def test_many_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = chasles.compile(planar(1), "mass_matrix")
    kernel, function = imitated(compiled.program, "float64", tmp_path, monkeypatch)
    function.run = lambda _: None
    driver = Driver(function, monkeypatch)
    handler, _ = xla.gpu_handler(kernel, "sm_90", "rows", 3)
    for count in (cuda.MANY - 1, cuda.MANY + 1):
        assert driver.call(handler, [np.zeros((count, 1))], [np.zeros((count, 1))]) is None
    shared = kernel.loaded("sm_90", "rows")[0].shared
    assert function.launches == [
        (cuda.MANY // 32, 1, 1, 32, 1, 1, shared),
        (cuda.MANY // 128 + 1, 1, 1, 128, 1, 1, 4 * shared),
    ]


def test_results_in_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a kernel has no space for a result's rows, XLA receives columns."""
    monkeypatch.setattr(cuda_tiles, "ROOM", 0)
    compiled = chasles.compile(planar(2), "mass_matrix")
    kernel, function = imitated(compiled.program, "float64", tmp_path, monkeypatch)
    driver = Driver(function, monkeypatch)
    handler, columns = xla.gpu_handler(kernel, "sm_90", "rows", 3)
    assert columns == (0,)
    q, out = np.random.default_rng(0).uniform(-1.0, 1.0, (5, 2)), np.full((4, 5), np.nan)
    assert driver.call(handler, [q], [out]) is None
    close(out.T.reshape(5, 2, 2), compiled(q), 1e-12)


def test_errors_reach_xla(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = chasles.compile(planar(1), "mass_matrix")
    kernel, function = imitated(compiled.program, "float64", tmp_path, monkeypatch)
    driver = Driver(function, monkeypatch)
    handler, _ = xla.gpu_handler(kernel, "sm_90", "rows", 3)
    arrays = [np.zeros((2, 1))], [np.zeros((2, 1))]
    driver.status = 209
    assert driver.call(handler, *arrays) == ERROR
    assert driver.asked == [(b"reason 209", 13)]
    driver.stream_error = 77
    assert driver.call(handler, *arrays) == 77
    assert not function.launches


def test_it_says_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler reports its version and no traits, so XLA does not put it in a command buffer."""
    compiled = chasles.compile(planar(1), "mass_matrix")
    kernel, function = imitated(compiled.program, "float64", tmp_path, monkeypatch)
    Driver(function, monkeypatch)
    handler, _ = xla.gpu_handler(kernel, "sm_90", "rows", 9)
    metadata = Metadata(traits=5)
    extension = Extension(type=1, metadata=ctypes.pointer(metadata))
    frame = Frame(extension_start=ctypes.addressof(extension))
    assert Handler(handler)(ctypes.addressof(frame)) is None
    assert (metadata.version.major, metadata.version.minor, metadata.traits) == (0, 9, 0)


def test_jax_calls_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX requests the kernel for the number of states, and transposes results in columns."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    monkeypatch.setattr(cuda_tiles, "ROOM", 0)
    robot = planar(2).with_gravity((0.0, 0.0, -1.5))
    compiled = chasles.compile(robot, "mass_matrix")
    kernel, function = imitated(compiled.program, "float64", tmp_path, monkeypatch)
    monkeypatch.setattr(cuda, "FEW", 3)
    Driver(function, monkeypatch)
    there = SimpleNamespace(kernel=kernel, key="key")
    monkeypatch.setattr(Compiled, "cuda", property(lambda self: there))
    monkeypatch.setattr(cuda_driver, "architecture", lambda _: "sm_90")
    gpus = [SimpleNamespace(local_hardware_id=0)]
    monkeypatch.setattr(jax, "local_devices", lambda backend: gpus)

    def lowered(count: int) -> str:
        traced = jax.jit(lambda q: robot.mass_matrix(q)).trace(np.zeros((count, 2)))
        return str(traced.lower(lowering_platforms=("cuda",)).as_text())

    with jax.enable_x64(True):
        few, many = lowered(3), lowered(5)
    assert "@chasles_key_few" in few
    assert "tensor<3x2xf64>) -> tensor<3x4xf64>" in few
    assert "transpose" not in few
    assert "@chasles_key_rows" in many
    assert "tensor<5x2xf64>) -> tensor<4x5xf64>" in many
    assert "(tensor<4x5xf64>) -> tensor<5x4xf64>" in many


def test_on_a_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few states are computed in XLA's own thread and many on several threads.

    If memory cannot be allocated, XLA receives an error.
    """
    compiled = chasles.compile(planar(2), "inverse_dynamics")
    driver = Driver(imitated(compiled.program, "float64", tmp_path, monkeypatch)[1], monkeypatch)
    monkeypatch.setattr(xla, "WORTH_THREADS", 100 * compiled.kernel.artifact.work)
    monkeypatch.setattr(arrays, "cores", lambda: 3)
    handler, rng = (
        xla.cpu_handler(llvm.Kernel(compiled.kernel.artifact), 3),
        np.random.default_rng(0),
    )
    for count in (0, 1, 100, 101, 1000):
        given = [rng.uniform(-1.0, 1.0, (n, 2)) for n in (count, 1, count)]
        out = np.full((count, 2), np.nan)
        assert driver.call(handler, given, [out]) is None
        assert np.array_equal(out, compiled(given[0], given[1][0], given[2]))
    greedy = llvm.Kernel(replace(compiled.kernel.artifact, workspace=2**60))
    out = np.full((1000, 2), np.nan)
    assert driver.call(xla.cpu_handler(greedy, 3), given, [out]) == ERROR
    assert driver.asked == [(b"out of memory", 13)]
    with pytest.raises(MemoryError):
        greedy([np.broadcast_to(a, (1000, 2)) for a in given], [out], 2)
    assert np.all(np.isnan(out))
