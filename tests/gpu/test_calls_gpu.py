"""Calls with arrays on a GPU, directly and in graphs. The tests are skipped without a GPU."""

import threading
from typing import Any

import numpy as np
import pytest
from support import close, state

import chasles
from chasles.backends.cuda import driver as cuda_driver
from chasles.robots import puma560, quadruped

cupy = pytest.importorskip("cupy", reason="no CuPy: calls on a GPU are not tested here")
torch = pytest.importorskip("torch", reason="no PyTorch: calls on a GPU are not tested here")


def _usable() -> bool:
    try:
        return bool(cuda_driver.devices()) and torch.cuda.is_available()
    except RuntimeError:
        return False


pytestmark = pytest.mark.skipif(not _usable(), reason="no GPU: calls on it are not tested here")

ARM, WALKER = puma560(), quadruped()
KINDS = {
    "torch": (lambda a: torch.from_numpy(np.asarray(a)).cuda(), lambda a: a.cpu().numpy()),
    "cupy": (lambda a: cupy.asarray(a), lambda a: cupy.asnumpy(a)),
}
TOLERANCE = {"float64": 1e-9, "float32": 2e-5}


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_prepared_calls(kind: Any, dtype: str) -> None:
    """The first call in a range of batch sizes prepares later calls. All results are correct."""
    there, host = kind
    for robot, name, count in (
        (puma560(), "inverse_dynamics", 3),
        (quadruped(), "mass_matrix", 1),
        (puma560(), "ltdl_factors", 1),
        (puma560(), "kinetic_energy", 2),
    ):
        function = chasles.compile(robot, name)
        for size in ((), (7,), (2, 5), (4096,), (4097,), (4098,), (131072,), (131073,), (3,)):
            arrays = [a.astype(dtype) for a in state(robot, 2, size)[:count]]
            right = function(*(a.astype(float) for a in arrays))
            given = [there(a) for a in arrays]
            for call in (getattr(robot, name), function):
                found = call(*given)
                assert type(given[0]) in function.quick
                again = call(*given, out=found)
                assert again is found
                pairs = (
                    zip(found, right, strict=True) if isinstance(found, tuple) else [(found, right)]
                )
                for a, b in pairs:
                    close(host(a), b, TOLERANCE[dtype])


def test_columns(kind: Any) -> None:
    """Calls with columns are prepared, too. CuPy results are in columns, as in the first call."""
    there, host = kind
    for robot, name, count in ((puma560(), "inverse_dynamics", 3), (quadruped(), "mass_matrix", 1)):
        function = chasles.compile(robot, name)
        for size in (7, 5000, 131073):
            arrays = state(robot, 2, size)[:count]
            given = [there(np.ascontiguousarray(a.T)).T for a in arrays]
            first, again = function(*given), function(*given)
            for found in (first, again, function(*given, out=first)):
                close(host(found), function(*arrays), 1e-9)
            if there is KINDS["cupy"][0]:
                assert first.strides == again.strides
                assert again.strides[0] == 8
            else:
                assert again.is_contiguous()


def test_a_function_of_the_gpu() -> None:
    function = chasles.compile(puma560(), "inverse_dynamics", backend="cuda")
    for dtype in TOLERANCE:
        arrays = [a.astype(dtype) for a in state(ARM, 2, 9)]
        given = [cupy.asarray(a) for a in arrays]
        for _ in range(2):
            found = function(*given)
            assert found.dtype == dtype
            close(
                cupy.asnumpy(found), ARM.inverse_dynamics(*(a.astype(float) for a in arrays)), 2e-5
            )
        assert cupy.ndarray in function.quick


def test_streams_of_the_caller(kind: Any) -> None:
    """A call runs after earlier work on the caller's stream and does not block the CPU."""
    there, host = kind
    arrays = state(ARM, 3, 200)
    given, right = [there(a) for a in arrays], ARM.inverse_dynamics(*arrays)
    own = cupy.cuda.Stream(non_blocking=True)
    side = torch.cuda.ExternalStream(own.ptr)
    with torch.cuda.stream(side) if there is KINDS["torch"][0] else own:
        for busy in (False, True):  # the first pass compiles what the libraries need
            side.synchronize()
            if busy:
                with torch.cuda.stream(side):
                    torch.cuda._sleep(1_000_000_000)
            q = given[0] + 1.0
            found = ARM.inverse_dynamics(q - 1.0, *given[1:])
        assert not side.query()
    side.synchronize()
    close(host(found), right, 1e-9)


def test_threads(kind: Any) -> None:
    """Several new threads can call functions on the GPU at the same time."""
    there, host = kind
    arrays = state(ARM, 3, 50)
    given, right = [there(a) for a in arrays], ARM.inverse_dynamics(*arrays)
    ARM.inverse_dynamics(*given)
    torch.cuda.synchronize()
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(200):
            found = host(ARM.inverse_dynamics(*given))
            if not np.allclose(found, right):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_in_a_loop_of_allocations(kind: Any) -> None:
    """Results of earlier calls do not change when later calls allocate memory."""
    there, host = kind
    arrays = [state(ARM, seed, 300) for seed in range(20)]
    given = [[there(a) for a in each] for each in arrays]
    found = [ARM.inverse_dynamics(*each) for each in given for _ in range(3)][::3]
    for result, each in zip(found, arrays, strict=True):
        close(host(result), ARM.inverse_dynamics(*each), 1e-9)


@pytest.mark.parametrize("library", KINDS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_graphs_of_functions(library: Any, dtype: str) -> None:
    there, host = KINDS[library]
    graph = WALKER.graph("inverse_dynamics", 64, library=library, dtype=dtype)
    for seed in range(3):
        arrays = [a.astype(dtype) for a in state(WALKER, seed, 64)]
        right = WALKER.inverse_dynamics(*(a.astype(float) for a in arrays))
        if seed:
            found = graph(*(there(a) for a in arrays))
        else:
            for name, a in zip(("q", "qd", "qdd"), arrays, strict=True):
                graph.inputs[name][...] = there(a)
            found = graph()
        assert found is graph.outputs
        close(host(found), right, 5e-4 if dtype == "float32" else 1e-9)
    found = graph(*arrays)  # NumPy arrays are copied to the GPU
    close(host(found), right, 5e-4 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("library", KINDS)
def test_graphs_of_several_functions(library: Any) -> None:
    """Temporary arrays of a control step belong to its graph. Other calls do not change them."""
    there, host = KINDS[library]

    def step(q: Any, qd: Any, target: Any) -> Any:
        wanted = 100.0 * (target - q) - 20.0 * qd
        tau = ARM.inverse_dynamics(q, qd, wanted)
        faster = qd + 1e-3 * ARM.forward_dynamics(q, qd, tau)
        return q + 1e-3 * faster, faster

    graph = ARM.graph(step, 33, library=library, shapes={"target": (ARM.nq,)})
    for seed in range(3):
        arrays = state(ARM, seed, 33)
        found = graph(*(there(a) for a in arrays))
        noise = [ARM.mass_matrix(there(a)) for a in arrays]
        for a, b in zip(found, step(*arrays), strict=True):
            close(host(a), b, 1e-9)
        assert len(noise) == 3


def test_a_function_that_cannot_be_captured(kind: Any) -> None:
    """The error of the function is raised, and the GPU remains usable."""
    there, host = kind
    library = "torch" if there is KINDS["torch"][0] else "cupy"
    calls: list[int] = []

    def fails(q: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise ZeroDivisionError
        return ARM.mass_matrix(q)

    with pytest.raises(ZeroDivisionError):
        ARM.graph(fails, 4, library=library)
    q = ARM.random(0, size=4)
    close(host(ARM.mass_matrix(there(q))), ARM.mass_matrix(q), 1e-9)
