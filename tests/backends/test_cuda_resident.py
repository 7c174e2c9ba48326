"""Machine code that receives GPU arrays, with a driver imitated on the CPU.

Arrays are CPU tensors of PyTorch and arrays of an imitated CuPy. Launches run on the CPU.
"""

import ctypes
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import cupy_on_cpu
import numpy as np
import pytest
from gpu_on_cpu import STREAM
from support import state

import chasles
from chasles.backends.cuda.resident import Code, Library, Plan, Resident, exchange, resident
from chasles.expr import Interface, Variable
from chasles.functions import libraries
from chasles.robots import planar

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
forward_ad = pytest.importorskip("torch.autograd.forward_ad")

ROBOT = planar(2)
CPU, DEVICE = 1, 0
LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3
)
CURRENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


LOADED: list[Code] = []
"""Loaded machine code, which is never freed."""


class Driver:
    """Driver that runs a function on the CPU for each launch."""

    def __init__(self, function: str) -> None:
        self.compiled = chasles.compile(ROBOT, function)
        self.launches: list[tuple[int, ...]] = []
        self.status, self.device = 0, DEVICE
        self._kept = LAUNCH(self._launch), CURRENT(self._current)
        self.code = Code(*(ctypes.cast(f, ctypes.c_void_p).value or 0 for f in self._kept))
        LOADED.append(self.code)

    def _current(self, target: int) -> int:
        ctypes.c_int.from_address(target).value = self.device
        return 0

    def _launch(self, kernel: int, *rest: Any) -> int:
        blocks, _, _, threads, _, _, shared, stream, _, extra = rest
        self.launches.append((kernel, blocks, threads, shared, stream or 0))
        if self.status:
            return self.status
        pointer, start, size, length, end, held = (ctypes.c_int64 * 6).from_address(extra)
        assert (pointer, size, end, length) == (1, 2, 0, extra + 40)
        count, never, *places = (ctypes.c_int64 * (held // 8)).from_address(start)
        assert never == -1
        number = ctypes.c_double if kernel == 64 else ctypes.c_float
        variables = (*self.compiled.interface.inputs, *self.compiled.interface.outputs)
        rows = []
        for k, variable in enumerate(variables):
            address, row, column = places[3 * k : 3 * k + 3]
            last = (count - 1) * row + (variable.size - 1) * column
            flat = np.ctypeslib.as_array((number * (last + 1)).from_address(address))
            steps = row * flat.itemsize, column * flat.itemsize
            rows.append(np.lib.stride_tricks.as_strided(flat, (count, variable.size), steps))
        inputs = [r.reshape(count, *v.shape) for r, v in zip(rows, variables, strict=False)]
        n = len(self.compiled.interface.inputs)
        found = self.compiled(*inputs[:n])
        results = found if isinstance(found, tuple) else (found,)
        for target, result in zip(rows[n:], results, strict=True):
            target[...] = result.reshape(count, -1)
        return 0


def new(like: Any, *shape: int) -> Any:
    return cupy_on_cpu.empty(shape, like.dtype)


def turned(like: Any, *shape: int) -> Any:
    return np.moveaxis(cupy_on_cpu.empty((*shape[1:], shape[0]), like.dtype), -1, 0)


class Kind(NamedTuple):
    """An array library: functions that make and read arrays, kind of memory, and stream."""

    library: Library
    make: Callable[[np.ndarray], Any]
    host: Callable[[Any], np.ndarray]
    memory: int
    stream: int


TORCH = Library(
    "torch",
    (torch.Tensor, torch.nn.Parameter),
    torch.Tensor.new_empty,
    torch.Tensor.new_empty,
    forward_ad,
    *(exchange(torch.Tensor) or (0, 0)),
)
CUPY = Library(
    "cupy", (cupy_on_cpu.Array,), new, turned, cupy_on_cpu.module().cuda.get_current_stream
)
KINDS = {
    "torch": Kind(TORCH, torch.from_numpy, lambda a: np.asarray(a), CPU, 0),
    "cupy": Kind(CUPY, cupy_on_cpu.asarray, cupy_on_cpu.asnumpy, 2, STREAM),
}


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> Kind:
    if request.param == "torch" and not TORCH.read:
        pytest.skip("this PyTorch has no exchange interface of DLPack")
    return KINDS[request.param]


class Slow(Exception):
    """Exception raised when the Python path is taken."""


def slow(*arguments: Any, **named: Any) -> Any:
    raise Slow


def prepared(kind: Kind, function: str = "inverse_dynamics") -> tuple[Resident, Driver]:
    driver = Driver(function)
    made = Resident(driver.compiled.interface, kind.library, slow, driver.code)
    for bits in (64, 32):
        made.add(Plan(bits, DEVICE, 1, 9, True, bits, 4, 32, 100, kind.memory))
        made.add(Plan(bits, DEVICE, 10, 1000, True, bits, 8, 64, 200, kind.memory, blocks=5))
        made.add(Plan(bits, DEVICE, 1, 50, False, bits, 2, 32, 300, kind.memory))
    return made, driver


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results(kind: Kind, dtype: str) -> None:
    made, driver = prepared(kind)
    for lead in ((), (1,), (9,), (10,), (3, 5), (2, 1, 3), (7, 11)):
        arrays = [a.astype(dtype) for a in state(ROBOT, 1, lead)]
        given, right = [kind.make(a) for a in arrays], ROBOT.inverse_dynamics(*arrays)
        found = made.call(*given)
        assert type(found) is kind.library.types[0]
        assert np.array_equal(kind.host(found), right)
        out = kind.make(np.full_like(right, np.nan))
        assert made.call(*given, out=out) is out
        assert np.array_equal(kind.host(out), right)
        shared = ROBOT.inverse_dynamics(arrays[0], arrays[1][(0,) * len(lead)], arrays[2])
        one = kind.make(np.ascontiguousarray(arrays[1][(0,) * len(lead)]))
        assert np.array_equal(kind.host(made.call(given[0], one, given[2], out=None)), shared)
    bits = 64 if dtype == "float64" else 32
    small, large = (bits, 2, 32, 100, kind.stream), (bits, 2, 64, 200, kind.stream)
    assert driver.launches[3:6] == [(bits, 1, *small[2:])] * 3
    assert driver.launches[9:12] == [large] * 3
    assert driver.launches[18:21] == [(bits, 5, *large[2:])] * 3  # 77 states in blocks of 8


def test_several_results(kind: Kind) -> None:
    made, _ = prepared(kind, "ltdl_factors")
    q = ROBOT.random(0, size=5)
    right = ROBOT.ltdl_factors(q)
    found = made.call(kind.make(q))
    assert type(found) is tuple
    out = tuple(kind.make(np.zeros_like(a)) for a in right)
    assert made.call(kind.make(q), out=out) is out
    for results in (found, out):
        for a, b in zip(results, right, strict=True):
            assert np.array_equal(kind.host(a), b)
    for wrong in (list(out), out[:1], out[0], (out[0], out[0])):
        with pytest.raises(Slow):
            made.call(kind.make(q), out=wrong)


def columns(a: np.ndarray) -> np.ndarray:
    """Return a copy of an array in which the states are last in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0)


@pytest.mark.parametrize("function", ["inverse_dynamics", "mass_matrix", "ltdl_factors"])
def test_columns(kind: Kind, function: str) -> None:
    """All or some inputs may be in columns. Results are then in columns if possible."""
    made, driver = prepared(kind, function)
    count = len(driver.compiled.interface.inputs)
    arrays = state(ROBOT, 1, 7)[:count]
    found = driver.compiled(*arrays)
    rights = found if isinstance(found, tuple) else (found,)
    there = [kind.make(columns(a)) for a in arrays]
    for given in (there, [*there[:1], *(kind.make(a) for a in arrays[1:])]):
        results = made.call(*given)
        for a, b in zip(results if isinstance(found, tuple) else (results,), rights, strict=True):
            assert np.array_equal(kind.host(a), b)
            turned_too = kind.library is CUPY
            assert kind.host(a).flags.c_contiguous != turned_too
        for lay in (columns, np.array):
            out = tuple(kind.make(lay(np.zeros_like(b))) for b in rights)
            made.call(*given, out=out if len(out) > 1 else out[0])
            for a, b in zip(out, rights, strict=True):
                assert np.array_equal(kind.host(a), b)
    assert {launch[3] for launch in driver.launches} == {300}
    launched = len(driver.launches)
    wrong = tuple(kind.make(columns(np.zeros_like(b))) for b in rights)
    with pytest.raises(Slow):  # launches prepared for rows cannot write columns
        made.call(*(kind.make(a) for a in arrays), out=wrong if len(wrong) > 1 else wrong[0])
    wide = [kind.make(np.asfortranarray(np.zeros((14, *a.shape[1:]))))[::2] for a in arrays]
    with pytest.raises(Slow):
        made.call(*wide)
    assert len(driver.launches) == launched


def test_numbers(kind: Kind) -> None:
    """A result without axes is computed by the Python path unless `out` is given."""
    made, _ = prepared(kind, "kinetic_energy")
    q, qd, _ = state(ROBOT, 1, 3)
    assert np.array_equal(
        kind.host(made.call(kind.make(q), kind.make(qd))), ROBOT.kinetic_energy(q, qd)
    )
    one = kind.make(q[0].copy()), kind.make(qd[0].copy())
    with pytest.raises(Slow):
        made.call(*one)
    out = kind.make(np.zeros(()))
    assert made.call(*one, out=out) is out
    assert kind.host(out) == ROBOT.kinetic_energy(q[0], qd[0])


def test_the_python_path(kind: Kind) -> None:
    """The Python path handles all calls for which no launch was prepared."""
    made, driver = prepared(kind)
    q, qd, qdd = (kind.make(a) for a in state(ROBOT, 1, 5))
    single = kind.make(state(ROBOT, 1, 5)[0].astype("float32"))
    whole = kind.make(np.zeros((5, 2), int))
    cases: list[tuple[Any, ...]] = [
        (q, qd),
        (q, qd, qdd, qdd),
        (single, qd, qdd),
        (whole, qd, qdd),
        (q[:3], qd, qdd),
        (q[:, :1], qd, qdd),
        (q[::2], qd[::2], qdd[::2]),
        (q[:0], qd[:0], qdd[:0]),
        (q.T, qd.T, qdd.T),
        (kind.make(np.zeros((2, 3, 5)).T),) * 3,
        ([0.0, 0.0], qd, qdd),
        (np.zeros((5, 2)), qd, qdd),
        (None, None, None),
        (kind.make(np.zeros((1001, 2))),) * 3,
    ]
    if kind.library is CUPY:  # at most eight axes are supported
        cases.append((kind.make(np.zeros((1,) * 9 + (2,))),) * 3)
    for arguments in cases:
        with pytest.raises(Slow):
            made.call(*arguments)
    good = kind.make(np.zeros((5, 2)))
    outs = [
        kind.make(np.zeros((5, 2), "float32")),
        kind.make(np.zeros((4, 2))),
        kind.make(np.zeros((1, 5, 2))),
        kind.make(np.zeros((5, 4)))[:, ::2],
        kind.make(np.zeros((2, 5))).T,
        q,
        qdd,
        np.zeros((5, 2)),
        (good,),
    ]
    for out in outs:
        with pytest.raises(Slow):
            made.call(q, qd, qdd, out=out)
    for named in ({"threads": 1}, {"out": good, "threads": None}, {"where": good}):
        with pytest.raises(Slow):
            made.call(q, qd, qdd, **named)
    driver.device = 1
    with pytest.raises(Slow):
        made.call(q, qd, qdd)
    assert not driver.launches


def test_overlaps(kind: Kind) -> None:
    """If `out` shares memory with an argument, the Python path handles the call."""
    made, driver = prepared(kind)
    memory = kind.make(np.zeros(100))
    q, qd, qdd = (memory[10 * k : 10 * k + 10].reshape(5, 2) for k in range(3))
    for start in (0, 5, 21, 29):
        with pytest.raises(Slow):
            made.call(q, qd, qdd, out=memory[start : start + 10].reshape(5, 2))
    made.call(q, qd, qdd, out=memory[30:40].reshape(5, 2))
    made.call(q, q, q, out=memory[30:40].reshape(5, 2))
    assert len(driver.launches) == 2


def test_a_refused_launch(kind: Kind) -> None:
    """If the driver refuses a launch, the Python path launches again and reports the error."""
    made, driver = prepared(kind)
    driver.status = 700
    arrays = [kind.make(a) for a in state(ROBOT, 1, 5)]
    for named in ({}, {"out": kind.make(np.zeros((5, 2)))}):
        with pytest.raises(Slow):
            made.call(*arrays, **named)


def test_references(kind: Kind) -> None:
    """Calls neither lose nor gain references, whichever path they take."""
    made, _ = prepared(kind)
    arrays = [kind.make(a) for a in state(ROBOT, 1, 5)]
    out, other = kind.make(np.zeros((5, 2))), kind.make(np.zeros((5, 3)))
    held = (*arrays, out, other, kind.library.make, slow, made.call)

    def calls() -> None:
        made.call(*arrays)
        made.call(*arrays, out=out)
        for named in ({"out": other}, {"threads": 2}):
            with pytest.raises(Slow):
                made.call(*arrays, **named)

    calls()
    before = [sys.getrefcount(a) for a in held]
    for _ in range(50):
        calls()
    assert [sys.getrefcount(a) for a in held] == before


def test_no_memory_for_results(kind: Kind) -> None:
    """The library's own error is raised, and results that were already made are freed."""
    driver, made = Driver("ltdl_factors"), list[Any]()

    def short(like: Any, *shape: int) -> Any:
        if made:
            raise MemoryError
        made.append(weakref.ref(result := kind.make(np.zeros(shape))))
        return result

    library = kind.library._replace(make=short)
    function = Resident(driver.compiled.interface, library, slow, driver.code)
    function.add(Plan(64, DEVICE, 1, 9, True, 64, 4, 32, 100, kind.memory))
    with pytest.raises(MemoryError):
        function.call(kind.make(ROBOT.random(0, size=3)))
    assert made[0]() is None


def test_it_goes_with_its_owner(kind: Kind) -> None:
    class Owner:
        def call(self, *_: Any) -> None: ...

    owner, driver = Owner(), Driver("mass_matrix")
    owner.made = Resident(  # type: ignore[attr-defined]
        driver.compiled.interface, kind.library, owner.call, driver.code
    )
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(not TORCH.read, reason="this PyTorch has no exchange interface of DLPack")
def test_tensors_that_are_more_than_numbers() -> None:
    """Tensors with gradients, vmap, lazy negation or forward derivatives use the Python path."""
    made, driver = prepared(KINDS["torch"])
    q, qd, qdd = (torch.from_numpy(a) for a in state(ROBOT, 1, 5))
    right = ROBOT.inverse_dynamics(q.numpy(), qd.numpy(), qdd.numpy())
    still = torch.nn.Parameter(q, requires_grad=False)
    assert np.array_equal(made.call(still, qd, qdd), right)
    launched = len(driver.launches)
    lazy = torch.complex(qd, -qd).conj().imag
    for given in (
        (q.clone().requires_grad_(), qd, qdd),
        (q, lazy, qdd),
        (q, lazy.as_strided((5, 2), (2, 1)), qdd),
        (torch.nn.Parameter(q), qd, qdd),
    ):
        with pytest.raises(Slow):
            made.call(*given)
    with pytest.raises(Slow):
        made.call(q, qd, qdd, out=torch.zeros(5, 2, dtype=torch.float64, requires_grad=True))
    with forward_ad.dual_level(), pytest.raises(Slow):
        made.call(q, qd, qdd)

    def each(*row: Any) -> Any:
        with pytest.raises(Slow):
            made.call(*row)
        return row[0].sum()

    torch.func.vmap(each)(q, qd, qdd)
    torch.func.grad(each)(q, qd, qdd)
    assert len(driver.launches) == launched


def test_learning(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is requested once per range of batch sizes, and none if one launch is not enough."""
    function, driver, asked = (
        chasles.compile(planar(2), "inverse_dynamics"),
        Driver("gravity_forces"),
        [],
    )
    monkeypatch.setattr(libraries, "resident", lambda *a: Resident(*a, driver.code))

    class Kernel:
        dtype = np.dtype(float)

        def plan(self, device: int, count: int, *, rows: bool) -> Plan | None:
            asked.append((device, count, rows))
            edge = 10 * (count // 10)
            return None if count == 25 else Plan(64, device, edge, edge + 9, rows, 1, 32, 32, 0)

    for count in (3, 4, 14, 25, 25, 3, 0):
        libraries.learn(function, kind.library, Kernel(), 0, count, rows=True)
    assert asked == [(0, 3, True), (0, 14, True), (0, 25, True), (0, 25, True)]
    for count in (3, 3):
        libraries.learn(function, kind.library, Kernel(), 0, count, rows=False)
    assert asked[4:] == [(0, 3, False)]
    assert set(function.quick) == set(kind.library.types)


def test_functions_it_has_no_room_for() -> None:
    def shaped(*shapes: tuple[int, ...]) -> Interface:
        inputs = tuple(Variable(f"x{k}", shape) for k, shape in enumerate(shapes))
        return Interface("f", inputs, (Variable("y", (2,)),), ())

    for interface in (shaped(*[(2,)] * 16), shaped((1,) * 5), shaped()):
        assert resident(interface, CUPY, slow) is None


def test_no_exchange_interface() -> None:
    class Plain:
        pass

    class Wrong:
        __dlpack_c_exchange_api__ = 7

    assert exchange(Plain) is None
    assert exchange(Wrong) is None
