"""Time all documented ways of calling a function, for one state and for a batch.

Each row of the table is a way of calling, defined by the type of the arguments and the options.
Each cell is the time of one function called in this way. Results are compared with those of a plain
call with arrays of the same values, before and after timing. The kernel alone is timed by a loop in
machine code; the remaining time of a call is its overhead.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import chasles
from benchmarks import pinocchio_peer
from benchmarks.console import WrongAnswer
from benchmarks.robots import CASES, chasles_robot, pinocchio_model
from benchmarks.routes import loop
from benchmarks.states import Array, States
from benchmarks.timing import Rounds, interleaved
from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm.code import load

ROBOT = "panda"
FUNCTIONS = (
    "inverse_dynamics",
    "forward_dynamics",
    "mass_matrix",
    "forward_kinematics",
    "jacobian",
)
COUNT = 256
"""Number of states for which single calls are timed."""

BATCH = 512
"""Number of states in a batch."""

WRENCHES = ("panda_link2", "panda_link4", "panda_link6", "panda_hand")
"""Links on which the four external wrenches act."""

REPEATED = """
define void @repeated(ptr %one, ptr %in, ptr %out, i64 %count) {
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void %one(ptr %in, ptr %out)
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""
"""Loop that calls a kernel for one state repeatedly, in LLVM IR."""

Call = Callable[..., Any]
Make = Callable[[chasles.Robot, str, dict[str, Any]], Call]
"""Function that returns the callable, given a robot, a function name and required options."""


@dataclass(frozen=True)
class Way:
    """Way of calling a function.

    Attributes
    ----------
    convert : callable
        Converts each input array to the argument that is passed.
    make : callable
        Returns the callable that is timed.
    functions : sequence of str
        Functions that can be called in this way.
    tolerance : float
        Tolerance for the relative difference from the plain call.
    shared : bool
        If True, only the first argument is a batch; the others belong to a single state.
    """

    name: str
    convert: Callable[[Array], Any] = np.ascontiguousarray
    make: Make = lambda robot, name, needed: _method(robot, name, needed)
    functions: Sequence[str] = FUNCTIONS
    tolerance: float = 1e-12
    shared: bool = False


@dataclass(frozen=True)
class Cell:
    """Time (s) per state of a function called in one way, and of Pinocchio's call for one state."""

    way: str
    function: str
    seconds: float
    peer: float


def _strided(array: Array) -> Array:
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]))
    wide[..., ::2] = array
    return wide[..., ::2]


def _method(robot: chasles.Robot, name: str, needed: dict[str, Any]) -> Call:
    """Return the method, wrapped in a `partial` only if it needs an option."""
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
    """Return a computed-torque controller that equals inverse dynamics: no error, zero gains."""

    def call(q: Any, qd: Any, qdd: Any) -> Any:
        return chasles.control.computed_torque(robot, q, qd, q, qd, qdd, stiffness=0.0, damping=0.0)

    return call


def _whole(array: Array) -> Array:
    return np.rint(3.0 * array).astype(int)


def _single(array: Array) -> Array:
    return array.astype(np.float32)


DYNAMICS, FRAMES = FUNCTIONS[:2], FUNCTIONS[3:]
WAYS = (
    Way("arrays"),
    Way("out=", make=_into),
    Way("compile(...)", make=_compiled),
    Way("lists", lambda a: a.tolist()),
    Way("tuples", lambda a: tuple(a.tolist())),
    Way("integers", _whole),
    Way("float32", _single, tolerance=1e-4),
    Way("strided", _strided),
    Way("threads=1", make=_with(threads=1)),
    Way('method="fastest"', make=_with(method="fastest"), functions=FUNCTIONS[:4]),
    Way("dissipation=False", make=_with(dissipation=False), functions=DYNAMICS),
    Way("axes=, at=", make=_with(axes="world", at="frame"), functions=FUNCTIONS[4:]),
    Way("f_ext=, four", make=_loaded, functions=DYNAMICS),
    Way("computed_torque", make=_computed_torque, functions=FUNCTIONS[:1]),
)
"""Ways of calling with one state."""

BATCHES = (
    Way("arrays"),
    Way("compile(...)", make=_compiled),
    Way("threads=1", make=_with(threads=1)),
    Way("float32", _single, tolerance=1e-4),
    Way("strided", _strided),
    Way("every second row", lambda a: np.repeat(a, 2, axis=0)[::2]),
    Way("Fortran order", np.asfortranarray),
    Way("two axes", lambda a: a.reshape(2, -1, a.shape[-1])),
    Way("broadcast", shared=True, functions=DYNAMICS),
    Way("f_ext=, four", make=_loaded, functions=DYNAMICS),
)
"""Ways of calling with a batch."""


def measure(
    rounds: Rounds, progress: Callable[[str], None] = lambda _: None
) -> tuple[list[Cell], list[Cell]]:
    """Return the cells for single calls and for batches. Raise WrongAnswer if results differ."""
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
    """Return a function that calls Pinocchio for each of COUNT states."""
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
    """Yield the times of all ways of calling a function: `count` single calls, or a batch if 0."""
    needed: dict[str, Any] = {"frame": CASES[ROBOT].tip} if function in FRAMES else {}
    inputs, plain = states.inputs(function), chasles.compile(robot, function, **needed)
    chosen = [way for way in ways if function in way.functions]
    runs: list[Callable[[], object]] = []
    checks: list[Callable[[], None]] = []
    for way in chosen:
        rows = list(_rows(way, inputs, count))
        for _ in range(LEARNING):
            way.make(robot, function, needed)(*rows[0])
        call = way.make(robot, function, needed)
        runs.append(partial(loop, call, rows))
        checks.append(
            partial(_compare, f"{function} by {way.name}", way.tolerance, call, plain, rows)
        )
    each = [np.ascontiguousarray(x[0]) for x in inputs]
    runs.append(_kernel(plain, each, COUNT))
    for check in checks:
        check()
    times = interleaved([peer, *runs], rounds)
    for check in checks:
        check()
    other = times[0].minimum / COUNT
    if count:
        yield Cell("kernel alone", function, times[-1].minimum / COUNT, other)
    for way, taken in zip(chosen, times[1:-1], strict=True):
        yield Cell(way.name, function, taken.minimum / (count or BATCH), other)


LEARNING = 3
"""Number of calls after which a fast entry is specialized for its options."""


def _rows(way: Way, inputs: Sequence[Array], count: int) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of single calls, or of one call with a batch."""
    if count:
        yield from (tuple(way.convert(x[k]) for x in inputs) for k in range(count))
    elif way.shared:
        yield (inputs[0], *(np.ascontiguousarray(x[0]) for x in inputs[1:]))
    else:
        yield tuple(map(way.convert, inputs))


def _kernel(compiled: Any, arrays: Sequence[Array], count: int) -> Callable[[], object]:
    """Return a function that calls a kernel for one state `count` times in machine code."""
    code = llvm.assemble(REPEATED, llvm.Machine.host())
    library = load(code, {}, ["repeated"])
    out = [np.empty(v.shape) for v in compiled.interface.outputs]
    tables = [np.array([a.ctypes.data for a in part]) for part in (arrays, out)]
    kinds = [ctypes.c_void_p] * 3 + [ctypes.c_ssize_t]
    run = ctypes.CFUNCTYPE(None, *kinds)(library.address("repeated"))
    places = [table.ctypes.data for table in tables]

    def call() -> object:
        run(compiled.kernel.one_address, *places, count)
        return library, arrays, out, tables

    return call


def _compare(
    what: str, tolerance: float, call: Call, plain: Call, rows: Sequence[tuple[Any, ...]]
) -> None:
    """Compare the results of a way of calling with those for plain arrays of the same values."""
    for row in rows:
        expected = plain(*(np.ascontiguousarray(a, dtype=float) for a in row))
        error = np.max(np.abs(np.asarray(call(*row)) - expected)) / np.max(np.abs(expected))
        if not error <= tolerance:
            raise WrongAnswer(f"{what}: relative error {error:.1e}")


# Other robots ----------------------------------------------------------------------------------

Case = tuple[Callable[[], Call], Sequence[Array], Any]
"""Function that returns the callable, its arguments, and the compiled function behind it."""


def _closed(robot: chasles.Robot, q: Array) -> Case:
    """Return a case: forward dynamics of a robot with closed loops."""
    rng = np.random.default_rng(0)
    qd = robot.complete(q, rng.normal(size=len(robot.independent)))
    state = q, qd, rng.normal(size=robot.nv)
    return _late(robot, "forward_dynamics"), state, robot.function("constrained_dynamics")


def _late(robot: chasles.Robot, name: str, **options: Any) -> Callable[[], Call]:
    """Return a function that looks up a method, so that a fast entry is found once it exists."""
    return lambda: _method(robot, name, options)


def _own(robot: chasles.Robot, name: str, count: int, **options: Any) -> Case:
    states = States.draw(robot, 1)
    arrays = [np.ascontiguousarray(x[0]) for x in (states.q, states.qd, states.qdd)][:count]
    order: dict[str, Any] = {"order": count - 1} if name == "frame_motion" else {}
    return _late(robot, name, **options), arrays, chasles.compile(robot, name, **options, **order)


def _driven(held: bool) -> Case:
    """Return a case: time-dependent robot, with a fixed time or with a time in each call."""
    robot = chasles.robots.puma560().drive({"joint1": lambda t: 0.3 + 0.5 * t * t})
    states, t = States.draw(robot, 1), np.array(0.25)
    arrays = [np.ascontiguousarray(x[0]) for x in (states.q, states.qd, states.qdd)]
    call = _late(robot.at_time(0.25), "inverse_dynamics")
    if not held:
        call = lambda: lambda *arrays: robot.at_time(0.25).inverse_dynamics(*arrays)  # noqa: E731
    compiled = chasles.compile(robot, "inverse_dynamics")
    return call, arrays, partial(_at_end, compiled, t)


def _at_end(compiled: Any, t: Array, *arrays: Array) -> Any:
    return compiled(*arrays, t)


def others() -> Iterator[tuple[str, Case]]:
    """Yield functions with options, and functions of other kinds of robots."""
    panda, tip = chasles_robot(CASES[ROBOT]), CASES[ROBOT].tip
    yield "Panda: frame_velocity", _own(panda, "frame_velocity", 2, frame=tip)
    view: dict[str, Any] = {"frame": tip, "axes": "frame", "at": (0.0, 0.0, 0.1)}
    yield "Panda: frame_velocity, axes=, at=", _own(panda, "frame_velocity", 2, **view)
    kind: dict[str, Any] = {"frame": tip, "kind": "proper"}
    yield "Panda: frame_acceleration, kind=", _own(panda, "frame_acceleration", 3, **kind)
    yield "Panda: frame_motion", _own(panda, "frame_motion", 3, frame=tip)
    yield "Panda: jacobian_rate", _own(panda, "jacobian_rate", 2, frame=tip)
    solo = chasles_robot(CASES["solo12"])
    yield "Solo12, floating: inverse_dynamics", _own(solo, "inverse_dynamics", 3)
    yield "Solo12, floating: mass_matrix", _own(solo, "mass_matrix", 1)
    bars, platform = chasles.robots.four_bar(), chasles.robots.stewart()
    yield "four-bar: forward_dynamics", _closed(bars, bars.assemble([0.7]))
    yield "Stewart platform: forward_dynamics", _closed(platform, platform.neutral())
    yield "driven arm, fixed time: inverse_dynamics", _driven(True)
    yield "driven arm, at_time(t): inverse_dynamics", _driven(False)


@dataclass(frozen=True)
class Other:
    """Time (s) of a call, and of its kernel alone (None if it was not timed)."""

    name: str
    seconds: float
    kernel: float | None


def measure_others(rounds: Rounds) -> Iterator[Other]:
    """Yield the times of single calls of `others`. Raise WrongAnswer if results differ."""
    for name, (make, arrays, compiled) in others():
        rows = [tuple(arrays)] * COUNT
        for _ in range(LEARNING):
            make()(*arrays)
        call, expected = make(), compiled(*arrays)
        first = expected[0] if isinstance(expected, tuple) else expected
        if not np.allclose(call(*arrays), first, rtol=1e-12, atol=1e-12 * np.abs(first).max()):
            raise WrongAnswer(name)
        runs: list[Callable[[], object]] = [partial(loop, call, rows)]
        if not isinstance(compiled, partial):
            runs.append(_kernel(compiled, arrays, COUNT))
        times = [taken.minimum / COUNT for taken in interleaved(runs, rounds)]
        yield Other(name, times[0], times[1] if len(times) > 1 else None)
