"""Arrays of PyTorch, JAX and CuPy on a GPU. The tests are skipped without a GPU.

The reference is machine code on the CPU, or the same library on the CPU, whose derivatives other
tests compare with finite differences.
"""

import os
import threading
from typing import Any

import numpy as np
import pytest
from support import close, state, tree

import chasles
from chasles.backends.cuda import driver as cuda_driver
from chasles.robots import puma560, quadruped

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leaves memory for PyTorch

cupy = pytest.importorskip("cupy", reason="no CuPy: libraries on a GPU are not tested here")
torch = pytest.importorskip("torch", reason="no PyTorch: libraries on a GPU are not tested here")
jax = pytest.importorskip("jax", reason="no JAX: libraries on a GPU are not tested here")
jnp = pytest.importorskip("jax.numpy")


def _usable() -> bool:
    try:
        return (
            bool(cuda_driver.devices()) and torch.cuda.is_available() and bool(jax.devices("gpu"))
        )
    except RuntimeError:
        return False


pytestmark = pytest.mark.skipif(
    not _usable(), reason="no GPU that PyTorch and JAX can use: libraries on it are not tested here"
)

TOLERANCE = {"float64": 1e-9, "float32": 2e-5}
SIZES: list[tuple[int, ...]] = [(), (5,), (2, 3), (0,), (5001,)]

ARM, WALKER, FLOATING = puma560(), quadruped(), tree(3, 1, floating=True)
INVERSE = chasles.compile(ARM, "inverse_dynamics")
FUNCTIONS = (
    (FLOATING, "inverse_dynamics", 3),
    (FLOATING, "mass_matrix", 1),
    (FLOATING, "kinetic_energy", 2),
    (ARM, "ltdl_factors", 1),
)
"""Functions with one result, several results or a scalar, and the number of array arguments."""


@pytest.fixture(autouse=True)
def double() -> Any:
    with jax.enable_x64(True):
        yield


def host(array: Any) -> np.ndarray:
    """Copy an array from the GPU, after checking that it is there."""
    if isinstance(array, torch.Tensor):
        assert array.device.type == "cuda"
        return np.asarray(array.detach().cpu())
    if isinstance(array, jax.Array):
        assert {device.platform for device in array.devices()} == {"gpu"}
        return np.asarray(array)
    return np.asarray(cupy.asnumpy(array))


def same(got: Any, right: Any, dtype: str = "float64") -> None:
    pairs = zip(got, right, strict=True) if isinstance(right, tuple) else [(got, right)]
    for a, b in pairs:
        assert str(a.dtype).removeprefix("torch.") == dtype
        close(host(a), b, TOLERANCE[dtype])


def tensors(arrays: Any) -> list[Any]:
    return [torch.from_numpy(a).cuda() for a in arrays]


# Values ------------------------------------------------------------------------------------------

KINDS = {
    "PyTorch": lambda f, *arrays: f(*tensors(arrays)),
    "JAX": lambda f, *arrays: f(*map(jnp.asarray, arrays)),
    "JAX, jit": lambda f, *arrays: jax.jit(lambda *a: f(*a))(*arrays),
    "CuPy": lambda f, *arrays: f(*map(cupy.asarray, arrays)),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("kind", KINDS)
def test_functions(kind: str, dtype: str) -> None:
    """Functions accept all leading shapes, single states and empty batches."""
    for robot, function, count in FUNCTIONS:
        method = getattr(robot, function)
        for size in SIZES:
            arrays = [a.astype(dtype) for a in state(robot, 0, size)[:count]]
            right = method(*(a.astype(float) for a in arrays))
            same(KINDS[kind](method, *arrays), right, dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_results_too_large_for_shared_memory(kind: str) -> None:
    """Shared memory holds the distinct values of large results, from which rows are written."""
    kernel = chasles.compile(WALKER, "mass_matrix", backend="cuda").kernel
    built, _ = kernel.loaded(cuda_driver.architecture(0), "rows")  # type: ignore[attr-defined]
    assert built.form == "rows"
    assert built.columns == ()
    for size in (5, 5000):
        q = WALKER.random(0, size=size)
        same(KINDS[kind](WALKER.mass_matrix, q), WALKER.mass_matrix(q))


@pytest.mark.parametrize("kind", KINDS)
def test_broadcasting_and_columns(kind: str) -> None:
    q, qd, qdd = state(ARM, 1, (4, 3))
    mixed = q, qd[0, 0], qdd[:, :1]
    same(KINDS[kind](ARM.inverse_dynamics, *mixed), ARM.inverse_dynamics(*mixed))
    columns = [np.asfortranarray(a) for a in state(ARM, 1, 300)]
    same(KINDS[kind](ARM.inverse_dynamics, *columns), ARM.inverse_dynamics(*columns))


def test_lists_and_whole_numbers_follow() -> None:
    q, qd, _ = state(ARM, 1, 4)
    right = INVERSE(q, [1, 2, 3, 4, 5, 6], qd)
    for make in (lambda a: torch.from_numpy(a).cuda(), jnp.asarray, cupy.asarray):
        same(INVERSE(make(q), [1, 2, 3, 4, 5, 6], make(qd)), right)
        same(INVERSE(make(q), make(np.arange(1, 7)), make(qd)), right)
    same(INVERSE(jnp.asarray(q), np.arange(1.0, 7.0), jnp.asarray(qd)), right)


def test_a_new_thread() -> None:
    """Functions can be called from a thread that has not used the GPU before."""
    arrays, found = state(ARM, 1, 40), []
    given = [tensors(arrays), [cupy.asarray(a) for a in arrays]]
    torch.cuda.synchronize()
    cupy.cuda.Device().synchronize()
    thread = threading.Thread(target=lambda: found.extend(INVERSE(*each) for each in given))
    thread.start()
    thread.join()
    for result in found:
        same(result, INVERSE(*arrays))
    assert len(found) == 2


# PyTorch -----------------------------------------------------------------------------------------


def test_torch_out() -> None:
    arrays = state(ARM, 2, (5, 4))
    right, given = INVERSE(*arrays), tensors(arrays)
    for out in (
        torch.empty(5, 4, 6, dtype=torch.float64, device="cuda"),
        torch.empty(5, 4, 9, dtype=torch.float64, device="cuda")[..., 2:8],
        torch.empty(6, 4, 5, dtype=torch.float64, device="cuda").permute(2, 1, 0),
        given[1],
    ):
        assert INVERSE(*given, out=out) is out
        same(out, right)
    given = tensors(arrays)
    with pytest.raises(
        ValueError, match="`out` is on cpu, but q is on cuda:0; move the tensors to one device"
    ):
        INVERSE(*given, out=torch.empty(5, 4, 6, dtype=torch.float64))
    with pytest.raises(
        TypeError, match=r"`out` must have dtype torch\.float64, not torch\.float32"
    ):
        INVERSE(*given, out=torch.empty(5, 4, 6, device="cuda"))
    with pytest.raises(RuntimeError, match="single memory location"):
        INVERSE(*given, out=torch.empty(6, dtype=torch.float64, device="cuda").expand(5, 4, 6))


def test_torch_derivatives() -> None:
    """First and second gradients of `autograd` and `torch.func` agree with those on the CPU."""

    def measured(device: str) -> list[Any]:
        q, qd, qdd = (
            torch.from_numpy(a).to(device).requires_grad_() for a in state(FLOATING, 3, 7)
        )
        loss = FLOATING.inverse_dynamics(q, qd[0], qdd).sin().sum()
        slopes = torch.autograd.grad(loss, (q, qd, qdd), create_graph=True)
        twice = torch.autograd.grad(sum(s.square().sum() for s in slopes), (q, qd))
        energy = torch.func.vmap(torch.func.grad(FLOATING.potential_energy))(q.detach())
        moved = torch.func.jvp(FLOATING.mass_matrix, (q.detach(),), (torch.ones_like(q),))
        return [loss, *slopes, *twice, energy, *moved]

    for got, right in zip(measured("cuda"), measured("cpu"), strict=True):
        same(got, right.detach().numpy())


def test_torch_compile() -> None:
    arrays = state(ARM, 4, 33)

    def step(q: Any, qd: Any, tau: Any) -> Any:
        return qd + 1e-3 * INVERSE(q, qd, tau)

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    learning = [a.requires_grad_() for a in tensors(arrays)]
    made = compiled(*learning)
    same(made, step(*arrays))
    plain = [a.detach().requires_grad_() for a in learning]
    for a, b in zip(
        torch.autograd.grad(made.sum(), learning),
        torch.autograd.grad(step(*plain).sum(), plain),
        strict=True,
    ):
        same(a, host(b))


def test_torch_streams() -> None:
    """A call runs after earlier work on its stream and does not wait for it."""
    arrays = state(ARM, 5, 64)
    given, late = tensors(arrays), torch.zeros(64, 6, dtype=torch.float64, device="cuda")
    INVERSE(*given)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        late.copy_(given[2])
        result = INVERSE(given[0], given[1], late)
        assert not stream.query()
    stream.synchronize()
    same(result, INVERSE(*arrays))


@pytest.mark.parametrize("robot", [ARM, WALKER], ids=lambda robot: robot.name)
def test_torch_graphs(robot: chasles.Robot) -> None:
    """Calls can be captured with and without `out`, even for results larger than shared memory."""
    compiled = chasles.compile(robot, "mass_matrix")
    q = torch.from_numpy(robot.random(0, size=5000)).cuda()
    out = compiled(q)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        compiled(q, out=out)
        new = compiled(q)
    later = robot.random(1, size=5000)
    q.copy_(torch.from_numpy(later))
    graph.replay()
    torch.cuda.synchronize()
    for result in (out, new):
        same(result, compiled(later))


def test_torch_refuses() -> None:
    q, qd, qdd = tensors(state(ARM, 6, 3))
    with pytest.raises(
        ValueError, match="q is on cuda:0, but qd is on cpu; move the tensors to one device"
    ):
        INVERSE(q, qd.cpu(), qdd)
    with pytest.raises(TypeError, match="q is a PyTorch array, but qd is a NumPy array"):
        INVERSE(q, qd.cpu().numpy(), qdd)
    with pytest.raises(TypeError, match=r"float64 or float32, not torch\.float16"):
        INVERSE(q, qd.half(), qdd)
    with pytest.raises(ValueError, match=r"q must have shape \(\.\.\., 6\), not \(3, 5\)"):
        INVERSE(q[:, :5], qd, qdd)
    with pytest.raises(ValueError, match="leading shapes do not broadcast: q"):
        INVERSE(q[:2], qd, qdd)


# JAX ---------------------------------------------------------------------------------------------


def test_jax_derivatives() -> None:
    q, qd, qdd = state(FLOATING, 7, 6)

    def loss(q: Any, qd: Any, qdd: Any) -> Any:
        return jnp.sin(FLOATING.inverse_dynamics(q, qd, qdd)).sum()

    def all_of_them(q: Any, qd: Any, qdd: Any) -> Any:
        slopes = jax.grad(loss, argnums=(0, 1, 2))(q, qd[0], qdd)
        hessian = jax.vmap(jax.hessian(FLOATING.potential_energy))(q)
        moved = jax.jvp(FLOATING.mass_matrix, (q,), (jnp.ones_like(q),))
        return *slopes, hessian, *moved

    on_cpu = [jax.device_put(a, jax.devices("cpu")[0]) for a in (q, qd, qdd)]
    right = tuple(np.asarray(a) for a in jax.jit(all_of_them)(*on_cpu))
    same(jax.jit(all_of_them)(q, qd, qdd), right)
    same(all_of_them(*map(jnp.asarray, (q, qd, qdd))), right)


def test_jax_scan() -> None:
    """XLA runs a loop of steps on its own stream, without Python."""
    q, qd, _ = state(ARM, 8, 100)

    def step(state: Any, _: None) -> Any:
        q, qd = state
        qd = qd + 1e-3 * ARM.forward_dynamics(q, qd, qd * 0.0)
        return (q + 1e-3 * qd, qd), None

    found = jax.jit(lambda *s: jax.lax.scan(step, s, length=50)[0])(q, qd)
    for _ in range(50):
        (q, qd), _ = step((q, qd), None)
    same(found, (q, qd))


def test_jax_devices() -> None:
    arrays = state(ARM, 9, 4)
    on_cpu = [jax.device_put(a, jax.devices("cpu")[0]) for a in arrays]
    assert np.array_equal(INVERSE(*on_cpu), INVERSE(*arrays))
    on_gpu = [jax.device_put(a, jax.devices("gpu")[0]) for a in arrays]
    with pytest.raises(ValueError, match="incompatible devices"):
        INVERSE(on_gpu[0], on_cpu[1], on_gpu[2])


# CuPy --------------------------------------------------------------------------------------------


def test_cupy() -> None:
    arrays = state(ARM, 10, 9)
    given, right = [cupy.asarray(a) for a in arrays], ARM.inverse_dynamics(*arrays)
    out = cupy.empty((9, 6))
    assert ARM.inverse_dynamics(*given, out=out) is out
    same(out, right)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        found = ARM.inverse_dynamics(*given)
    stream.synchronize()
    same(found, right)
    with pytest.raises(TypeError, match="q is a CuPy array, but qd is a NumPy array"):
        ARM.inverse_dynamics(given[0], *arrays[1:])
