"""A route: one way from Python to a function's results on a batch, for one library."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np

import chasles
from benchmarks.states import Array, States

SINGLE_CALLS = 512
"""How many states the loop of single chasles calls runs over."""


@dataclass(frozen=True)
class Route:
    """What is timed, and what it computed.

    whole: a run leaves the results of all states in one array, as a batch of chasles does;
    otherwise it is single calls from Python, whose results are not kept (which favours them).
    count: states in one run. run: compute all of them (this is timed). answers: the results, in
    chasles' conventions: what the last run left in its array, or what single calls return now.
    """

    library: str
    label: str
    whole: bool
    count: int
    run: Callable[[], object]
    answers: Callable[[], Array]


def loop(call: Callable[..., Any], rows: Iterable[tuple[Any, ...]]) -> None:
    """Call for every row and keep nothing: the loop itself runs in C."""
    deque(starmap(call, rows), maxlen=0)


def chasles_routes(
    robot: chasles.Robot, function: str, states: States, frame: dict[str, str]
) -> list[Route]:
    """The public method on the whole batch with `out=` reused, and called state by state.

    The method is taken after a first call, which may put a faster one in its place.
    """
    inputs = states.inputs(function)
    one = np.empty_like(getattr(robot, function)(*(x[0] for x in inputs), **frame))
    method = partial(getattr(robot, function), **frame)
    out = np.full((len(states.q), *one.shape), np.nan)
    rows = list(zip(*(x[:SINGLE_CALLS] for x in inputs), strict=True))
    return [
        Route("chasles", "batch", True, len(out), partial(method, *inputs, out=out), lambda: out),
        Route(
            "chasles",
            "single call",
            False,
            len(rows),
            partial(loop, partial(method, out=one), rows),
            lambda: np.array([method(*row) for row in rows]),
        ),
    ]
