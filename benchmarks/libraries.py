"""Time calls with arrays of other array libraries: `python -m benchmarks.libraries`.

The function is inverse dynamics of the PUMA 560 in float64, called from Python. Every result is
compared with that for NumPy arrays before the call is timed. On the CPU, one thread is used, a call
ends when its result is available, and processor time is measured (see `timing`).

With `--gpu`, the arrays are on the GPU. Many calls are issued one after another, and only the
result of the last one is awaited. The measured wall time per call is therefore the time in Python
or the time on the GPU, whichever is longer.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import chasles
from benchmarks.timing import Rounds, interleaved

SIZES: tuple[tuple[int, ...], ...] = ((), (4096,))
FULL, QUICK = Rounds(200, 400), Rounds(2, 2, quiet=0)
ON_GPU = Rounds(20, 40)
CALLS = 100

Route = tuple[str, Callable[[], Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the time (us) per call. Return 1 if a result is wrong, else 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.libraries", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short trial run with few rounds")
    parser.add_argument("--gpu", action="store_true", help="use arrays on the GPU")
    options = parser.parse_args(arguments)
    robot = chasles.robots.puma560()
    columns: list[dict[str, float]] = []
    for size in SIZES:
        rng = np.random.default_rng(0)
        states = [robot.random(rng, size=size), *rng.normal(size=(2, *size, robot.nv))]
        measure = gpu_times if options.gpu else cpu_times
        try:
            columns.append(measure(robot, states, QUICK if options.quick else None))
        except ArithmeticError as error:
            print(f"wrong result: {error}", file=sys.stderr)
            return 1
    table = Table("inverse dynamics, PUMA 560", "one state, us", f"{SIZES[1][0]} states, us")
    for name in columns[0]:
        table.add_row(name, *(f"{column[name]:.1f}" for column in columns))
    Console().print(table)
    return 0


def cpu_times(
    robot: chasles.Robot, states: Sequence[np.ndarray], rounds: Rounds | None
) -> dict[str, float]:
    """Return the time (us) per call of each route on the CPU."""
    import jax

    def waiting(run: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: jax.block_until_ready(run())

    routes = [
        ("NumPy", lambda: robot.inverse_dynamics(*states)),
        *torch_routes(robot, states, "cpu"),
        *((name, waiting(run)) for name, run in jax_routes(robot, states, "cpu")),
    ]
    expected = robot.inverse_dynamics(*states)
    for name, run in routes:
        if not np.array_equal(np.asarray(answer(run())), expected):
            raise ArithmeticError(name)
    times = interleaved([run for _, run in routes], rounds or FULL)
    return {name: 1e6 * t.minimum for (name, _), t in zip(routes, times, strict=True)}


def gpu_times(
    robot: chasles.Robot, states: Sequence[np.ndarray], rounds: Rounds | None
) -> dict[str, float]:
    """Return the time (us) per call of each route on the GPU, for consecutive calls."""
    import jax
    import torch

    routes = [
        *cupy_routes(robot, states),
        *torch_routes(robot, states, "cuda"),
        *jax_routes(robot, states, "cuda"),
    ]
    expected = robot.inverse_dynamics(*states)
    for name, run in routes:
        got = answer(run())
        host = got.cpu() if hasattr(got, "cpu") else got.get() if hasattr(got, "get") else got
        if not np.allclose(np.asarray(host), expected, rtol=1e-9, atol=1e-9):
            raise ArithmeticError(name)

    def repeated(run: Callable[[], Any]) -> Callable[[], Any]:
        def calls() -> None:
            for _ in range(CALLS):
                last = run()
            jax.block_until_ready(last)
            torch.cuda.synchronize()

        return calls

    runs = [repeated(run) for _, run in routes]
    times = interleaved(runs, rounds or ON_GPU, repeats=1, clock=time.perf_counter_ns)
    return {name: 1e6 / CALLS * t.minimum for (name, _), t in zip(routes, times, strict=True)}


def answer(result: Any) -> Any:
    """Return the joint torques of a result, which may be a tuple of torques and gradients."""
    return result[0] if isinstance(result, tuple) else result


def cupy_routes(robot: chasles.Robot, states: Sequence[np.ndarray]) -> list[Route]:
    """Return routes with CuPy arrays: robot method, CUDA graph, and compiled function."""
    import cupy

    arrays = [cupy.asarray(a) for a in states]
    out = cupy.empty_like(arrays[0])
    compiled = chasles.compile(robot, "inverse_dynamics", backend="cuda")
    count = arrays[0].shape[:-1]
    graph = robot.graph("inverse_dynamics", count)
    graph(*arrays)
    return [
        ("CuPy", lambda: robot.inverse_dynamics(*arrays)),
        ("CuPy, out=", lambda: robot.inverse_dynamics(*arrays, out=out)),
        ("CuPy, CUDA graph", graph),
        ("CuPy, backend='cuda'", lambda: compiled(*arrays)),
        ("CuPy, backend='cuda', out=", lambda: compiled(*arrays, out=out)),
    ]


def torch_routes(robot: chasles.Robot, states: Sequence[np.ndarray], device: str) -> list[Route]:
    """Return routes with PyTorch tensors: plain, recorded, with gradient, and `torch.compile`."""
    import torch

    torch.set_num_threads(1)
    plain = [torch.from_numpy(a).to(device) for a in states]
    learning = [a.clone().requires_grad_() for a in plain]
    ones = torch.ones_like(plain[0])
    compiled = chasles.compile(robot, "inverse_dynamics")
    graph = torch.compile(lambda *a: compiled(*a), fullgraph=True, backend="aot_eager")

    def gradient() -> Any:
        tau = robot.inverse_dynamics(*learning)
        return tau.detach(), torch.autograd.grad(tau, learning, ones)

    out = torch.empty_like(plain[0])
    return [
        ("PyTorch", lambda: robot.inverse_dynamics(*plain)),
        ("PyTorch, out=", lambda: robot.inverse_dynamics(*plain, out=out)),
        ("PyTorch, recorded for a gradient", lambda: robot.inverse_dynamics(*learning).detach()),
        ("PyTorch, with its gradient", gradient),
        ("PyTorch, torch.compile", lambda: graph(*plain)),
    ]


def jax_routes(robot: chasles.Robot, states: Sequence[np.ndarray], device: str) -> list[Route]:
    """Return routes with JAX arrays: outside and inside `jit`, with gradient, and by a callback."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    arrays = [jax.device_put(a, jax.devices(device)[0]) for a in states]
    kind = jax.ShapeDtypeStruct(states[0].shape, jnp.float64)

    def inverse(*a: Any) -> Any:
        return robot.inverse_dynamics(*a)

    def called(*a: Any) -> Any:
        return jax.pure_callback(lambda *b: inverse(*map(np.asarray, b)), kind, *a)

    def total(*a: Any) -> Any:
        tau = inverse(*a)
        return tau.sum(), tau

    def gradient(*a: Any) -> Any:
        slopes, tau = jax.grad(total, argnums=(0, 1, 2), has_aux=True)(*a)
        return tau, slopes

    def bound(function: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: function(*arrays)

    return [
        ("JAX, outside jit", bound(inverse)),
        ("JAX, jit", bound(jax.jit(inverse))),
        ("JAX, jit, with its gradient", bound(jax.jit(gradient))),
        ("JAX, jit, NumPy function by pure_callback", bound(jax.jit(called))),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
