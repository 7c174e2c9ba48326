"""Options, wrenches and checks in the fast entry, which registers the calls that it has seen."""

import concurrent.futures
import gc
import itertools
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from entries import fails, outcome
from support import state, tree

import chasles
from chasles import Wrench
from chasles.backends import objects
from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm import ways as llvm_ways
from chasles.robots import four_bar, planar, puma560

pytestmark = pytest.mark.skipif(not objects.supported(), reason="this Python has no fast entry")

TURNS = 4
"""Number of calls after which an entry exists and has registered a call."""


def by_python(robot: chasles.Robot, function: str) -> Any:
    """Return a method of an equal robot that never uses fast entries."""

    def call(*arguments: Any, **named: Any) -> Any:
        other = chasles.Robot(robot.model.source, mimic=robot.mimic)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(objects, "supported", lambda: False)
            return getattr(other, function)(*arguments, **named)

    return call


def agree(robot: chasles.Robot, function: str, given: Any, named: dict[str, Any]) -> Any:
    """Return the outcome of a method call, repeatedly checked against the Python path."""
    expected = outcome(by_python(robot, function), given, named)
    for _ in range(TURNS):
        assert outcome(getattr(robot, function), given, named) == expected, named
    return expected


def ways(entry: Any) -> list[Any]:
    """Return the calls that an entry has registered."""
    found: list[Any] = entry.__self__[1]
    return found


# Registered calls ------------------------------------------------------------------------------


def views(robot: chasles.Robot) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield functions, the number of arrays that they take, and options."""
    for frame, axes, at in itertools.product(
        ("tool", robot.bodies[2]), ("world", "frame"), ("frame", "world", (0.1, 0.0, 0.2))
    ):
        yield "frame_velocity", 2, {"frame": frame, "axes": axes, "at": at}
        yield "jacobian", 1, {"at": at, "frame": frame}
    for kind in ("classical", "spatial", "proper"):
        yield "frame_acceleration", 3, {"frame": "tool", "kind": kind}
    for count in (2, 3):
        yield "frame_motion", count, {"frame": "tool"}
    yield "jacobian_rate", 2, {"frame": "tool", "order": 1}
    yield "jacobian_rate", 3, {"frame": "tool", "order": 2}
    for method, dissipation in itertools.product(("fastest", "spatial"), (False, True)):
        yield "inverse_dynamics", 3, {"method": method, "dissipation": dissipation}
    yield "momentum", 2, {"at": "com"}


def test_every_option_leads_to_its_own_kernel() -> None:
    """Calls of one robot with many options agree with Python, and later need only machine code."""
    robot = puma560()
    arrays = [a[0] for a in state(robot, 3, 2)]
    for function, count, named in views(robot):
        agree(robot, function, arrays[:count], named)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llvm.Owner, "__call__", None)
        for function, count, named in views(robot):
            getattr(robot, function)(*arrays[:count], **named)


FRAMED = {"forward_kinematics": 1, "jacobian": 1, "generalized_jacobian": 1, "frame_velocity": 2}
FRAMED |= {"frame_acceleration": 3, "operational_inertia_inverse": 1}
FRAMED |= {"frame_motion": 3, "jacobian_rate": 2}
"""Functions of a frame, and the number of arrays that they take."""


@pytest.mark.parametrize("function", FRAMED)
def test_a_frame_by_position_is_the_frame_by_name(function: str) -> None:
    """A positional frame gives bitwise identical results and is later handled by machine code.

    Errors are those of the Python path.
    """
    robot = puma560()
    arrays = [a[0] for a in state(robot, 3, 2)][: FRAMED[function]]
    for more in ({}, {"method": "fastest"} if function == "forward_kinematics" else {}):
        expected = agree(robot, function, arrays, {"frame": "tool", **more})
        assert not fails(expected)
        assert agree(robot, function, [*arrays, "".join(["to", "ol"])], more) == expected
    assert len(ways(getattr(robot, function))) == 1 + (function == "forward_kinematics")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llvm.Owner, "__call__", None)
        getattr(robot, function)(*arrays, "tool")
        getattr(robot, function)(*arrays, frame="tool")
    for bad in ([*arrays, "nowhere"], [*arrays, Text("tool")], [*arrays[1:], "tool"], ["tool"]):
        agree(robot, function, bad, {})
    assert fails(agree(robot, function, [*arrays, "tool"], {"frame": "tool"}))
    assert agree(robot, function, arrays, {}) == agree(robot, function, arrays, {"frame": "tool"})


def test_text_is_the_frame_of_no_other_function() -> None:
    robot = puma560()
    arrays = [a[0] for a in state(robot, 3, 2)]
    for given in ([arrays[0], "tool"], ["tool"], [arrays[0], "tool", "tool"]):
        assert fails(agree(robot, "mass_matrix", given, {}))


def test_equal_values_are_the_same_option() -> None:
    """Strings and points that are equal but not identical are the same option."""
    robot = puma560()
    arrays = [a[0] for a in state(robot, 3, 2)]
    for k in range(TURNS):
        named = {"frame": "".join(["to", "ol"]), "at": (0.25, 0.5, float(3 + 0 * k))}
        assert not fails(agree(robot, "frame_velocity", arrays[:2], named))
    assert len(ways(robot.frame_velocity)) == 1
    for _ in range(TURNS):
        robot.jacobian(arrays[0], **{"".join(["fra", "me"]): "tool"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llvm.Owner, "__call__", None)
        robot.jacobian(arrays[0], frame="tool")
    for at in ((-0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0, 0, 0), (True, 0, 0), [0.0, 0.0, 1.0]):
        agree(robot, "frame_velocity", arrays[:2], {"frame": "tool", "at": at})


class Text(str):
    """String that compares equal to everything."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("tool")


def test_values_that_are_no_options() -> None:
    """Unknown or unhashable values raise the same errors before and after calls are registered."""
    robot = puma560()
    q = state(robot, 3, 2)[0][0]
    agree(robot, "jacobian", [q], {"frame": "tool"})
    values: list[Any] = [
        "bogus",
        None,
        3,
        1.5,
        ["tool"],
        ("tool",),
        b"tool",
        np.str_("tool"),
        {},
        q,
    ]
    for value in values:
        agree(robot, "jacobian", [q], {"frame": value})
        agree(robot, "jacobian", [q], {"frame": "tool", "axes": value})
    assert fails(outcome(robot.jacobian, [q], {"frame": "tool", "f_ext": None}), TypeError)
    assert fails(outcome(robot.jacobian, [q, q], {"frame": "tool"}), TypeError)
    outcome(robot.jacobian, [q], {"frame": Text("other")})
    agree(robot, "jacobian", [q], {"frame": "tool"})


def test_more_options_than_are_remembered() -> None:
    robot, q = puma560(), np.linspace(0.1, 0.6, 6)
    compiled = chasles.compile(robot, "jacobian", frame="tool")(q)
    for k in range(llvm_ways.MOST_WAYS + 5):
        for _ in range(3):
            found = robot.jacobian(q, frame="tool", at=(0.0, 0.0, 1.0 * k))
        if k == 0:
            assert np.array_equal(found, compiled)
        assert np.array_equal(found[:3], compiled[:3])
        assert np.array_equal(found[3:, 0], compiled[3:, 0]) == (k == 0)
    assert len(ways(robot.jacobian)) == llvm_ways.MOST_WAYS


def test_a_method_of_a_subclass_is_not_replaced() -> None:
    class Doubled(chasles.Robot):
        def mass_matrix(self, q: Any, **named: Any) -> np.ndarray:
            return 2.0 * super().mass_matrix(q, **named)

    robot, q = Doubled(planar(2).model.source), np.array([0.3, 0.4])
    expected = 2.0 * planar(2).mass_matrix(q)
    for _ in range(TURNS):
        assert np.array_equal(robot.mass_matrix(q), expected)


# Data types ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lead", [(), (1,), (5,), (2, 3)], ids=str)
def test_single_precision(lead: tuple[int, ...]) -> None:
    """Arguments that are all float32 are computed in float32, and mixed ones in float64."""
    robot = tree(2, 4, floating=True)
    arrays = list(state(robot, 4, lead))
    short = [a.astype(np.float32) for a in arrays]
    for named in ({}, {"method": "spatial"}, {"f_ext": {robot.bodies[1]: np.ones(6)}}):
        expected = "float64" if "f_ext" in named else "float32"
        assert agree(robot, "inverse_dynamics", short, named)[1] == expected
        assert agree(robot, "inverse_dynamics", [*short[:2], arrays[2]], named)[1] == "float64"
    load = {robot.bodies[1]: np.ones(6, np.float32)}
    assert agree(robot, "inverse_dynamics", short, {"f_ext": load})[1] == "float32"


# Wrenches --------------------------------------------------------------------------------------


class Push(Wrench):
    """Wrench of a subclass."""


class Given(dict[str, Any]):
    """Dictionary of a subclass."""


class Growing:
    """Array-like object that clears the loads when it is converted to an array."""

    def __init__(self, loads: dict[str, Any]) -> None:
        self.loads = loads

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        self.loads.clear()
        return np.ones(6)


def loads(frames: tuple[str, ...]) -> Iterator[Any]:
    """Yield valid and invalid values of `f_ext`."""
    a, b = frames
    six = np.linspace(1.0, 6.0, 6)
    values = [six, six[::-1], six.tolist(), tuple(six), six.astype(np.float32), six.astype(int)]
    values += [np.zeros((2, 6)), np.ones(5), None, "six", [1.0, 2.0], six.astype(">f8"), 3.0]
    for value in values:
        yield {a: value}
        yield {a: value, b: Wrench(six)}
        yield {b: Wrench(six, "frame", (0.0, 0.1, 0.2)), a: Wrench(value)}
    yield {a: Wrench(six), b: Wrench(six, "frame")}
    yield {b: Wrench(six), a: Wrench(six, "frame")}
    yield {a: Wrench(six, at="world")}
    yield {a: Push(six)}
    yield Given({a: six})
    yield types.MappingProxyType({a: six})
    yield {}
    yield {a: six, "bogus": six}
    yield {a: six, 3: six}
    yield {Text(a): six}
    yield [six]
    broken = Wrench(six)
    object.__delattr__(broken, "value")
    yield {a: broken}


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
def test_wrenches(function: str) -> None:
    """Wrenches in any order, type and form agree with Python, before and after registration."""
    robot = puma560()
    for lead in ((), (2,)):
        arrays = list(state(robot, 5, lead))
        for _ in range(2):
            for f_ext in loads(("tool", robot.bodies[2])):
                agree(robot, function, arrays, {"f_ext": f_ext})
                agree(robot, function, arrays, {"f_ext": f_ext, "out": np.full((*lead, 6), 7.0)})


def test_wrenches_that_change_in_the_call() -> None:
    robot = puma560()
    arrays = [a[0] for a in state(robot, 5, 2)]
    agree(robot, "inverse_dynamics", arrays, {"f_ext": {"tool": np.ones(6)}})
    expected = robot.inverse_dynamics(*arrays, f_ext={"tool": np.ones(6)})
    for _ in range(TURNS):
        f_ext: dict[str, Any] = {}
        f_ext["tool"] = Growing(f_ext)
        found = outcome(robot.inverse_dynamics, arrays, {"f_ext": f_ext})
        assert not fails(found)
        assert found[3] == expected.tobytes()
    value = np.ones(6)
    wrench = Wrench(value)
    assert robot.inverse_dynamics(*arrays, f_ext={"tool": wrench}).tobytes() == expected.tobytes()
    value[:] = 2.0
    assert robot.inverse_dynamics(*arrays, f_ext={"tool": wrench}).tobytes() != expected.tobytes()


# State checks ----------------------------------------------------------------------------------


def closed_states(robot: chasles.Robot, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    q = np.stack([robot.assemble([y]) for y in np.linspace(0.4, 1.2, count)])
    return [q, robot.complete(q, rng.normal(size=(count, 1))), rng.normal(size=(count, robot.nv))]


@pytest.mark.parametrize("function", ["forward_dynamics", "constrained_dynamics"])
def test_closed_loops(function: str) -> None:
    """Machine code handles closed states. Open loops raise an error and leave `out` unchanged."""
    robot = four_bar()
    states = closed_states(robot, 6)
    for lead in (0, slice(None), slice(0, 1)):
        given = [a[lead] for a in states]
        options: list[dict[str, Any]] = [{}, {"threads": 1}, {"dissipation": True}]
        options += [{"tolerance": 1e-5}] if function == "constrained_dynamics" else []
        for named in options:
            assert not fails(agree(robot, function, given, named))
        found = getattr(robot, function)(*given)
        several = found if isinstance(found, tuple) else (found,)
        outs = tuple(np.full_like(a, 7.0) for a in several)
        out: Any = outs if len(outs) > 1 else outs[0]
        assert getattr(robot, function)(*given, out=out) is out
        assert all(np.array_equal(a, b) for a, b in zip(outs, several, strict=True))
        for bad in (0.01, np.nan):
            broken = [a.copy() for a in given]
            broken[0].reshape(-1, robot.nq)[-1] += bad
            before = [a.copy() for a in outs]
            assert fails(agree(robot, function, broken, {}), ValueError)
            with pytest.raises(ValueError, match=function):
                getattr(robot, function)(*broken, out=out)
            assert all(np.array_equal(a, b) for a, b in zip(outs, before, strict=True))
    assert len(ways(getattr(robot, function))) >= 2


def test_closed_loops_have_an_entry_after_one_call() -> None:
    """After one call, the method of a robot with closed loops is a fast entry that can be kept."""
    robot = four_bar()
    given = [a[0] for a in closed_states(robot, 1)]
    expected = robot.forward_dynamics(*given)
    kept = robot.forward_dynamics
    assert isinstance(kept, types.BuiltinFunctionType)
    kept(*given)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llvm.Owner, "__call__", None)
        assert np.array_equal(kept(*given), expected)


# Lifetime --------------------------------------------------------------------------------------


def test_references() -> None:
    """After many calls, all objects have as many references as before."""
    robot, loops = puma560(), four_bar()
    arrays = [a[0] for a in state(robot, 6, 2)]
    batch = list(state(robot, 6, 3))
    point, frame, value = (0.1, 0.2, 0.3), "".join(["to", "ol"]), np.ones(6)
    wrench = Wrench(value)
    f_ext, out = {frame: wrench, robot.bodies[2]: value}, np.empty(6)
    closed = [a[0] for a in closed_states(loops, 1)]
    compiled = chasles.compile(robot, "inverse_dynamics")
    calls: list[tuple[Callable[[], Any], Any, dict[str, Any]]] = [
        (lambda: robot.jacobian, arrays[:1], {"frame": frame, "at": point}),
        (lambda: robot.inverse_dynamics, arrays, {"f_ext": f_ext}),
        (lambda: robot.inverse_dynamics, batch, {"f_ext": f_ext}),
        (lambda: robot.inverse_dynamics, arrays, {"out": out, "method": "spatial"}),
        (lambda: robot.inverse_dynamics, [a.astype(np.float32) for a in arrays], {}),
        (lambda: robot.inverse_dynamics, [np.asfortranarray(a) for a in batch], {}),
        (lambda: robot.inverse_dynamics, [a.tolist() for a in arrays], {"threads": 1}),
        (lambda: robot.ltdl_factors, arrays[:1], {}),
        (lambda: robot.potential_energy, arrays[:1], {}),
        (lambda: loops.forward_dynamics, closed, {}),
        (lambda: loops.forward_dynamics, closed, {"out": np.empty(loops.nv)}),
        (lambda: loops.constrained_dynamics, closed, {}),
        (lambda: compiled, arrays, {"out": out}),
    ]
    for method, given, named in calls:
        for _ in range(TURNS):
            method()(*given, **named)
        call = method()
        owner = getattr(call, "__self__", ())
        watched = [*given, *named.values(), point, frame, value, wrench, *owner, None, out]
        watched += owner[1] if owner else []
        before = [sys.getrefcount(x) for x in watched]
        for _ in range(100_000 // len(calls)):
            call(*given, **named)
        after = [sys.getrefcount(x) for x in watched]
        drift = [b - a for a, b in zip(before, after, strict=True)]
        assert all(abs(d) < 20 for d in drift), (named, drift)


def test_robots_with_learned_ways_are_collected() -> None:
    ghosts = []
    for _ in range(5):
        robot = puma560()
        arrays = [a[0] for a in state(robot, 6, 2)]
        for _ in range(TURNS):
            robot.jacobian(arrays[0], frame="tool")
            robot.inverse_dynamics(*arrays, f_ext={"tool": np.ones(6)})
            robot.inverse_dynamics(*(a.astype(np.float32) for a in arrays))
        ghosts.append(weakref.ref(robot))
    entry = robot.jacobian
    del robot
    gc.collect()
    assert [g() is None for g in ghosts] == [True] * 4 + [False]
    assert entry(arrays[0], frame="tool").shape == (6, 6)
    del entry
    gc.collect()
    assert ghosts[-1]() is None


def test_threads_that_learn_at_once() -> None:
    """Threads that register calls of the same entries at once get correct results."""
    robot = puma560()
    arrays = list(state(robot, 7, 40))
    frames = ["tool", *robot.bodies[1:]]
    expected = {f: chasles.compile(robot, "jacobian", frame=f)(arrays[0]) for f in frames}
    pushed = {f: robot.inverse_dynamics(*arrays, f_ext={f: np.ones(6)}) for f in frames}
    start, switch = threading.Barrier(6), sys.getswitchinterval()

    def work(seed: int) -> bool:
        rng, right = np.random.default_rng(seed), True
        start.wait(timeout=60)
        for _ in range(150):
            f, k = frames[rng.integers(len(frames))], rng.integers(40)
            right &= np.array_equal(robot.jacobian(arrays[0][k], frame=f), expected[f][k])
            right &= np.array_equal(robot.jacobian(arrays[0], frame=f), expected[f])
            load = {f: Wrench(np.ones(6)) if k % 2 else np.ones(6)}
            right &= np.array_equal(robot.inverse_dynamics(*arrays, f_ext=load), pushed[f])
        return right

    sys.setswitchinterval(1e-5)
    try:
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            assert all(pool.map(work, range(6)))
    finally:
        sys.setswitchinterval(switch)


def test_time() -> None:
    """A robot has fast entries at a fixed time and at an array of times, one per state."""
    robot = puma560().drive({"joint1": lambda t: 0.3 + 0.5 * t * t})
    q, qd, qdd = state(robot, 8, 5)
    compiled = robot.function("inverse_dynamics")
    for t in (0.3, 1, np.linspace(0.0, 1.0, 5)):
        held = robot.at_time(t)
        time = np.asarray(t, dtype=float)
        for _ in range(TURNS):
            found = held.inverse_dynamics(q, qd, qdd)
            assert np.array_equal(found, compiled.call(q, qd, qdd, time))
            one = held.inverse_dynamics(q[0], qd[0], qdd[0])
            assert np.array_equal(one, compiled.call(q[0], qd[0], qdd[0], time))
        assert isinstance(held.inverse_dynamics, types.BuiltinFunctionType)
