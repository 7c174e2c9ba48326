"""Every documented way of calling a function for one state, and for a batch, beside Pinocchio.

A way is a row: it says what becomes of the arrays of a state and which options are given. Each
cell is one function called that way. Answers are compared with those of the plain call before and
after the times are taken.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import chasles
from benchmarks import pinocchio_peer
from benchmarks.robots import CASES, chasles_robot, pinocchio_model
from benchmarks.routes import WrongAnswer, loop
from benchmarks.states import Array, States
from benchmarks.timing import Rounds, interleaved

ROBOT = "panda"
FUNCTIONS = (
    "inverse_dynamics",
    "forward_dynamics",
    "mass_matrix",
    "forward_kinematics",
    "jacobian",
)
COUNT = 256
"""States that a loop of single calls runs over."""

BATCH = 512
"""States in a batch."""

WRENCHES = ("panda_link2", "panda_link4", "panda_link6", "panda_hand")
"""Links on which the four prebuilt wrenches act."""

Call = Callable[..., Any]
Make = Callable[[chasles.Robot, str, dict[str, Any]], Call]
"""What is called: from a robot, the name of a function and the options that it needs."""


@dataclass(frozen=True)
class Way:
    """A way of calling.

    convert: what becomes of each array. make: what is called with them. functions: those that can
    be called so. tolerance: relative error against the plain call.
    """

    name: str
    convert: Callable[[Array], Any] = np.ascontiguousarray
    make: Make = lambda robot, name, needed: partial(getattr(robot, name), **needed)
    functions: Sequence[str] = FUNCTIONS
    tolerance: float = 1e-12
    plain: bool = False


@dataclass(frozen=True)
class Cell:
    """A function called one way: seconds a state, and Pinocchio's for one."""

    way: str
    function: str
    seconds: float
    peer: float


def _strided(array: Array) -> Array:
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]))
    wide[..., ::2] = array
    return wide[..., ::2]


def _method(robot: chasles.Robot, name: str, needed: dict[str, Any]) -> Call:
    """The method as one writes it; a `partial` only where an option is needed."""
    return partial(getattr(robot, name), **needed) if needed else getattr(robot, name)


def _with(**options: Any) -> Make:
    return lambda robot, name, needed: partial(getattr(robot, name), **needed, **options)


def _compiled(robot: chasles.Robot, name: str, needed: dict[str, Any]) -> Call:
    made: Call = chasles.compile(robot, name, **needed)
    return made


def _into(robot: chasles.Robot, name: str, needed: dict[str, Any]) -> Call:
    arrays = [np.ascontiguousarray(a[0]) for a in States.draw(robot, 1).inputs(name)]
    out = getattr(robot, name)(*arrays, **needed)
    return partial(getattr(robot, name), **needed, out=out)


def _loaded(robot: chasles.Robot, name: str, needed: dict[str, Any]) -> Call:
    wrenches = {frame: chasles.Wrench(np.zeros(6)) for frame in WRENCHES}
    return partial(getattr(robot, name), **needed, f_ext=wrenches)


def _computed_torque(robot: chasles.Robot, name: str, needed: dict[str, Any]) -> Call:
    """Computed torque without gains on the wanted motion, which is inverse dynamics."""

    def call(q: Any, qd: Any, qdd: Any) -> Any:
        return chasles.control.computed_torque(robot, q, qd, q, qd, qdd, stiffness=0.0, damping=0.0)

    return call


WAYS = (
    Way("arrays", make=_method, plain=True),
    Way("out=", make=_into),
    Way("compile(...)", make=_compiled),
    Way("lists", lambda a: a.tolist(), _method),
    Way("tuples", lambda a: tuple(a.tolist()), _method),
    Way("float32", lambda a: a.astype(np.float32), _method, tolerance=1e-4),
    Way("strided", _strided, _method),
    Way("threads=1", make=_with(threads=1)),
    Way('method="fastest"', make=_with(method="fastest"), functions=FUNCTIONS[:4]),
    Way("f_ext=, four", make=_loaded, functions=FUNCTIONS[:2]),
    Way("computed_torque", make=_computed_torque, functions=FUNCTIONS[:1]),
)
"""One row a way of calling with one state."""

BATCHES = (
    Way("arrays", make=_method, plain=True),
    Way("compile(...)", make=_compiled),
    Way("threads=1", make=_with(threads=1)),
    Way("float32", lambda a: a.astype(np.float32), _method, tolerance=1e-4),
    Way("strided", _strided, _method),
    Way("Fortran order", np.asfortranarray, _method),
    Way("f_ext=, four", make=_loaded, functions=FUNCTIONS[:2]),
)
"""One row a way of calling with a batch."""


def measure(
    rounds: Rounds, progress: Callable[[str], None] = lambda _: None
) -> tuple[list[Cell], list[Cell]]:
    """Cells of single calls and of batches. Raises WrongAnswer where ways disagree."""
    robot, model = chasles_robot(CASES[ROBOT]), pinocchio_model(CASES[ROBOT])
    states = States.draw(robot, BATCH)
    single: list[Cell] = []
    batched: list[Cell] = []
    for function in FUNCTIONS:
        progress(f"{function} ...")
        peer = _peer(robot, model, function, states)
        for ways, cells, count in ((WAYS, single, COUNT), (BATCHES, batched, 0)):
            cells += _column(robot, function, states, ways, peer, count, rounds)
    return single, batched


def _peer(robot: chasles.Robot, model: Any, function: str, states: States) -> Callable[[], object]:
    """Pinocchio's own call for each of COUNT states."""
    few = States(*(a[:COUNT] for a in (states.q, states.qd, states.qdd, states.tau)))
    theirs = pinocchio_peer.coordinates(robot, model, few)
    routes = pinocchio_peer.routes(model, function, few, theirs, CASES[ROBOT].tip)
    return next(route.run for route in routes if not route.whole)


def _column(
    robot: chasles.Robot,
    function: str,
    states: States,
    ways: Sequence[Way],
    peer: Callable[[], object],
    count: int,
    rounds: Rounds,
) -> Iterator[Cell]:
    """All ways of calling one function, timed in turns; count: single calls, 0 for one batch."""
    needed = {"frame": CASES[ROBOT].tip} if function in ("jacobian", "forward_kinematics") else {}
    inputs = states.inputs(function)
    chosen = [way for way in ways if function in way.functions]
    runs, checks = [], []
    for way in chosen:
        call = way.make(robot, function, needed)
        if count:
            rows = [tuple(way.convert(x[k]) for x in inputs) for k in range(count)]
            call(*rows[0])  # compiled, and a method replaced by its fast entry
            call = way.make(robot, function, needed)
            runs.append(partial(loop, call, rows))
            checks.append(partial(_singles, call, rows))
        else:
            arrays = [way.convert(x) for x in inputs]
            call(*arrays)
            call = way.make(robot, function, needed)
            runs.append(partial(call, *arrays))
            checks.append(partial(call, *arrays))
    _compare(function, chosen, checks)
    times = interleaved([peer, *runs], rounds)
    _compare(function, chosen, checks)
    other = times[0].minimum / COUNT
    for way, taken in zip(chosen, times[1:], strict=True):
        yield Cell(way.name, function, taken.minimum / (count or BATCH), other)


def _singles(call: Call, rows: Sequence[tuple[Any, ...]]) -> Array:
    return np.array([np.array(call(*row)) for row in rows])


def _compare(function: str, ways: Sequence[Way], checks: Sequence[Callable[[], Any]]) -> None:
    plain = np.asarray(next(c for w, c in zip(ways, checks, strict=True) if w.plain)())
    for way, check in zip(ways, checks, strict=True):
        error = np.max(np.abs(np.asarray(check()) - plain)) / np.max(np.abs(plain))
        if not error <= way.tolerance:
            raise WrongAnswer(f"{function} by {way.name}: relative error {error:.1e}")
