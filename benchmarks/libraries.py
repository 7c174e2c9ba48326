"""What a call costs with arrays of other libraries: `python -m benchmarks.libraries`.

Inverse dynamics of the PUMA 560, float64, on one thread, from Python, results new. Every answer is
compared with NumPy's before it is timed. The clock is that of the process (see `timing`).
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import chasles
from benchmarks.timing import Rounds, interleaved

SIZES: tuple[tuple[int, ...], ...] = ((), (4096,))
FULL, QUICK = Rounds(200, 400), Rounds(2, 2, quiet=0)

Route = tuple[str, Callable[[], Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print microseconds a call; 1 where an answer was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.libraries", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds, to try the command")
    rounds = QUICK if parser.parse_args(arguments).quick else FULL
    robot = chasles.robots.puma560()
    columns: list[dict[str, float]] = []
    for size in SIZES:
        rng = np.random.default_rng(0)
        states = [robot.random(rng, size=size), *rng.normal(size=(2, *size, robot.nv))]
        expected = robot.inverse_dynamics(*states)
        routes = [
            ("NumPy", lambda a=states: robot.inverse_dynamics(*a)),
            *torch_routes(robot, states),
            *jax_routes(robot, states),
        ]
        for name, run in routes:
            answer = run()
            tau = answer[0] if isinstance(answer, tuple) else answer
            if not np.array_equal(np.asarray(tau), expected):
                print(f"wrong answer: {name}", file=sys.stderr)
                return 1
        times = interleaved([run for _, run in routes], rounds)
        columns.append({n: 1e6 * t.minimum for (n, _), t in zip(routes, times, strict=True)})
    table = Table("inverse dynamics, PUMA 560", "one state, us", f"{SIZES[1][0]} states, us")
    for name in columns[0]:
        table.add_row(name, *(f"{column[name]:.1f}" for column in columns))
    Console().print(table)
    return 0


def torch_routes(robot: chasles.Robot, states: Sequence[np.ndarray]) -> list[Route]:
    """Tensors as they are, recorded, with a gradient, and in a compiled graph."""
    import torch

    torch.set_num_threads(1)
    plain = [torch.from_numpy(a) for a in states]
    learning = [a.clone().requires_grad_() for a in plain]
    ones = torch.ones_like(plain[0])
    compiled = chasles.compile(robot, "inverse_dynamics")
    graph = torch.compile(lambda *a: compiled(*a), fullgraph=True, backend="aot_eager")

    def gradient() -> Any:
        tau = robot.inverse_dynamics(*learning)
        return tau.detach(), torch.autograd.grad(tau, learning, ones)

    return [
        ("PyTorch", lambda: robot.inverse_dynamics(*plain)),
        ("PyTorch, recorded", lambda: robot.inverse_dynamics(*learning).detach()),
        ("PyTorch, with its gradient", gradient),
        ("PyTorch, torch.compile", lambda: graph(*plain)),
    ]


def jax_routes(robot: chasles.Robot, states: Sequence[np.ndarray]) -> list[Route]:
    """Arrays outside and inside `jit`, with a gradient, and by a callback to Python."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    arrays = [jnp.asarray(a) for a in states]
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

    def ready(function: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: jax.block_until_ready(function(*arrays))

    return [
        ("JAX, outside jit", ready(inverse)),
        ("JAX, jit", ready(jax.jit(inverse))),
        ("JAX, jit, with its gradient", ready(jax.jit(gradient))),
        ("JAX, jit, NumPy's function by pure_callback", ready(jax.jit(called))),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
