"""The fast entry gives the same results and the same errors as the Python path."""

import dataclasses
import inspect
import math
import pickle
import pydoc
import types
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import hypothesis
import numpy as np
import pytest
from entries import (
    FORMS,
    LAYOUTS,
    OUTS,
    SEVERAL,
    SUBJECTS,
    Subject,
    both,
    fails,
    frozen,
    outcome,
    states,
    subject,
)
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from support import raises, state

import chasles
from chasles.backends import objects
from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm.source import WORTH_THREADS
from chasles.expr import RULES, Arena, Program, Variable
from chasles.robots import planar, puma560

pytestmark = pytest.mark.skipif(not objects.supported(), reason="this Python has no fast entry")


@pytest.fixture(params=SUBJECTS)
def chosen(request: pytest.FixtureRequest) -> Subject:
    return subject(request.param)


@pytest.fixture(params=[name for name in SUBJECTS if name not in SEVERAL])
def lone(request: pytest.FixtureRequest) -> Subject:
    """Return a subject with one result."""
    return subject(request.param)


# Appearance ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function", ["inverse_dynamics", "mass_matrix", "potential_energy", "gravity_forces"]
)
def test_it_looks_like_the_method(function: str) -> None:
    """After the first call, the method is a built-in with the same signature and docstring."""
    robot = planar(2)
    before = getattr(robot, function)
    assert isinstance(before, types.MethodType)
    before(*(a[0] for a in states(robot, function)))
    entry = getattr(robot, function)
    assert isinstance(entry, types.BuiltinFunctionType)
    assert inspect.isbuiltin(entry)
    assert getattr(robot, function) is entry
    bare = [p.replace(annotation=p.empty) for p in inspect.signature(before).parameters.values()]
    assert list(inspect.signature(entry).parameters.values()) == bare
    assert inspect.getdoc(entry) == inspect.getdoc(before)
    assert entry.__name__ == function
    assert function in repr(entry)
    text = pydoc.plain(pydoc.render_doc(entry))
    names = [str(p) for p in bare if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert f"{function}({','.join(names)}" in "".join(text.split())
    assert (inspect.getdoc(before) or "").splitlines()[0] in text
    assert function in dir(robot)


def test_options_lead_to_their_own_kernels() -> None:
    """Calls with options use their own kernels, whichever options were used first."""
    robot = planar(2)
    q, qd, qdd = (a[0] for a in states(robot, "inverse_dynamics"))
    other = planar(2)
    calls: list[dict[str, Any]] = [
        {"method": "spatial"},
        {"f_ext": {"tip": np.ones(6)}},
        {"f_ext": {"tip": np.ones(6)}, "method": "spatial"},
        {"f_ext": None},
        {},
        {"threads": 2},
        {"dissipation": True},
        {"dissipation": True, "f_ext": {"tip": chasles.Wrench(np.ones(6), "frame")}},
    ]
    expected = [chasles.Robot.inverse_dynamics(other, q, qd, qdd, **named) for named in calls]
    for _ in range(4):
        for named, tau in zip(calls, expected, strict=True):
            found = robot.inverse_dynamics(q, qd, qdd, **named)
            assert np.array_equal(found, tau), named
    assert isinstance(robot.inverse_dynamics, types.BuiltinFunctionType)
    assert not np.allclose(expected[1], expected[4])
    np.testing.assert_allclose(expected[0], expected[4], rtol=0.0, atol=1e-13)


def test_functions_of_a_frame() -> None:
    """Frames, axes and reference points are not confused between calls."""
    robot, other = puma560(), puma560()
    q, qd, _ = (a[0] for a in state(robot, 3, 2))
    views = [("tool", "world", "frame"), ("tool", "frame", "frame"), ("tool", "world", "world")]
    views += [("tool", "world", (0.0, 0.0, 1.0)), (robot.bodies[2], "world", "frame")]
    for _ in range(3):
        for frame, axes, at in views:
            found = robot.frame_velocity(q, qd, frame=frame, axes=axes, at=at)
            compiled = chasles.compile(other, "frame_velocity", frame=frame, axes=axes, at=at)
            assert np.array_equal(found, compiled(q, qd))
    with raises("E-CALL-017"):
        robot.frame_velocity(q, qd, frame="tool", axes="bogus")
    assert not np.array_equal(robot.momentum(q, qd), robot.momentum(q, qd, at="world"))


def test_several_results() -> None:
    """The method and its fast entry return a tuple of arrays, with and without `out=`."""
    robot, q = planar(2), np.array([0.3, 0.4])
    for _ in range(2):
        found = robot.ltdl_factors(q)
        assert type(found) is tuple
        L, D = found
        np.testing.assert_allclose(L.T @ np.diag(D) @ L, robot.mass_matrix(q))
        outs = np.empty((2, 2)), np.empty(2)
        again = robot.ltdl_factors(q, out=outs)
        assert all(a is b for a, b in zip(again, outs, strict=True))
        assert np.array_equal(outs[0], L)
        assert np.array_equal(outs[1], D)
    assert isinstance(robot.ltdl_factors, types.BuiltinFunctionType)


# Every form of argument ------------------------------------------------------------------------


@pytest.mark.parametrize("form", LAYOUTS | FORMS)
def test_any_form_of_input(chosen: Subject, form: str) -> None:
    """Outcomes agree if one argument has the form, for each argument, and if all have it."""
    make = (LAYOUTS | FORMS)[form]
    for lead in ((), (1,), (5,), (2, 3)):
        for k in range(len(chosen.inputs)):
            given = chosen.some(*lead)
            given[k] = make(given[k])
            both(chosen, given, {})
            both(chosen, given, {"out": chosen.room(*lead)})
        both(chosen, [make(a) for a in chosen.some(*lead)], {})


@pytest.mark.parametrize("form", OUTS)
def test_any_form_of_output(chosen: Subject, form: str) -> None:
    make = OUTS[form]
    for lead in ((), (1,), (5,), (2, 3), (0,)):
        both(chosen, chosen.some(*lead), {"out": chosen.out(make, *lead)})


def test_what_out_must_be() -> None:
    """Errors state the problem and the function, and leave `out` unchanged."""
    forces = subject("forces")
    for out, kind, part in (
        (frozen(np.zeros(6)), ValueError, "`out` is read-only"),
        (np.zeros(5), ValueError, "`out` must have shape (6,), not (5,)"),
        (np.zeros((6, 1)), ValueError, "`out` must have shape (6,), not (6, 1)"),
        (np.zeros(6, complex), TypeError, "`out` must have dtype float64, not complex128"),
        ([0.0] * 6, TypeError, "`out` must be a NumPy array, not list"),
    ):
        found = both(forces, forces.some(), {"out": out})
        assert issubclass(found[0], kind)
        assert found[1].startswith("inverse_dynamics: ")
        assert part in found[1]


# Numbers of arguments and keywords -------------------------------------------------------------


def calls(subject: Subject) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield argument lists of all lengths and with all kinds of keywords."""
    given = subject.some()
    n = len(given)
    for count in range(n + 3):
        yield (given * 3)[:count], {}
        yield (given * 3)[:count], {"out": subject.room()}
    names = ["q", "qd", "qdd", "tau", "arguments", "self", "out", "threads", "bogus", "", "Out"]
    for name in names:
        yield given, {name: subject.room()}
        yield given[:-1], {name: given[-1]}
        yield given, {name: None}
        yield given, {name: 1, "out": subject.room()}
        yield given, {"out": subject.room(), name: 1}
    yield given, {"".join(["o", "ut"]): subject.room()}
    yield given, {"out": None, "threads": None}
    for threads in (1, 2, 5, 0, -1, 1.5, "2", True, np.int64(2)):
        yield given, {"threads": threads}
        yield subject.some(3), {"threads": threads, "out": subject.room(3)}
    for option, value in (("method", "bogus"), ("method", None), ("dissipation", True)):
        yield given, {option: value}
    for force in ({}, None, {"tip": np.ones(6)}, {"bogus": np.ones(6)}, {"tip": None}, 3.0):
        yield given, {"f_ext": force}


def test_any_number_of_arguments_and_keywords(chosen: Subject) -> None:
    for given, named in calls(chosen):
        both(chosen, given, named)


def test_every_way_to_call() -> None:
    """All calling conventions of CPython give the same result."""
    forces = subject("forces")
    q, qd, qdd = forces.some()
    expected = outcome(forces.entry, (q, qd, qdd), {})
    nothing, place = dict[str, Any](), {"out": np.empty(6)}
    for way in (
        lambda: forces.entry(*[q, qd], qdd),
        lambda: forces.entry(*(q, qd, qdd), **nothing),
        lambda: forces.entry.__call__(q, qd, qdd),
        lambda: type(forces.entry).__call__(forces.entry, q, qd, qdd),
        lambda: partial(forces.entry, q)(qd, qdd),
        lambda: next(map(forces.entry, [q], [qd], [qdd])),
        lambda: forces.entry(q, qd, qdd, out=np.empty(6)),
        lambda: forces.entry(*[q, qd, qdd], **place),
        lambda: partial(forces.entry, out=np.empty(6))(q, qd, qdd),
        lambda: forces.entry.__self__(q, qd, qdd),
    ):
        assert outcome(way, (), {}) == expected


def test_keywords_are_the_names_of_the_arguments() -> None:
    forces = subject("forces")
    q, qd, qdd = forces.some()
    expected = outcome(forces.entry, (q, qd, qdd), {})
    assert both(forces, (), {"q": q, "qd": qd, "qdd": qdd}) == expected
    assert both(forces, (q,), {"qdd": qdd, "qd": qd}) == expected
    assert fails(both(forces, (q, qd, qdd), {"q": q}), TypeError)
    assert fails(both(forces, (q, qd, qdd, np.empty(6)), {}), TypeError)


def test_an_unknown_keyword_of_any_type_of_text() -> None:
    class Word(str):
        pass

    forces = subject("forces")
    assert fails(both(forces, forces.some(), {"\ud800": 1}), TypeError)
    found = both(forces, forces.some(), {Word("out"): np.empty(6)})
    assert not fails(found)


# Batches ---------------------------------------------------------------------------------------

LEADS = [(n,) for n in (*range(21), 31, 32, 33, 64, 300)]
LEADS += [(0, 3), (3, 0), (1, 1), (2, 1, 3), (1, 1, 1, 7), (2, 2, 2, 2, 2)]


def test_batches_of_any_shape(chosen: Subject) -> None:
    for lead in LEADS:
        found = both(chosen, chosen.some(*lead), {})
        shapes = [found[2]] if len(chosen.shapes) == 1 else [part[2] for part in found]
        assert shapes == [(*lead, *shape) for shape in chosen.shapes]
        assert both(chosen, chosen.some(*lead), {"out": chosen.room(*lead)}) == "out itself"


def test_leading_shapes_that_differ(chosen: Subject) -> None:
    """Leading shapes broadcast, or an error is raised."""
    leads = ((), (1,), (3,), (4,), (3, 1), (0,))
    for first in leads:
        for other in leads:
            given = chosen.some(*first)[:1] + chosen.some(*other)[1:]
            found = both(chosen, given, {})
            if len(given) > 1 and (first, other) in (((3,), (4,)), ((0,), (3,))):
                assert fails(found, ValueError)


def test_one_more_state_than_the_entry_takes() -> None:
    """Results agree around the batch size above which threads are used."""
    small = subject("one freedom")
    work = small.python.args[0].function("forward_dynamics").kernel.artifact.work
    most = WORTH_THREADS // work
    for count in (most - 1, most, most + 1):
        both(small, small.some(count), {})
        both(small, small.some(count), {"out": small.room(count)})


def test_more_states_than_any_memory_holds() -> None:
    """Huge shapes made by stride tricks raise an error and do not crash."""
    forces = subject("forces")
    row = forces.some()
    for count in (2**50, 2**57):
        huge = [np.broadcast_to(a, (count, 6)) for a in row]
        assert fails(both(forces, huge, {}), MemoryError, ValueError)
        assert fails(both(forces, [huge[0], *row[1:]], {}), MemoryError, ValueError)
        assert fails(both(forces, huge, {"out": np.empty(6)}), ValueError)
    nothing = np.empty((2**57, 0))
    assert fails(both(forces, [nothing] * 3, {}), ValueError)


def test_one_row_of_any_stride() -> None:
    """A batch of one row is contiguous, whatever the stride of its leading axis."""
    forces = subject("forces")
    given = [as_strided(a, (1, 6), (12345678, 8)) for a in forces.some()]
    assert all(a.flags.c_contiguous for a in given)
    out = as_strided(np.full(6, 7.0), (1, 6), (-800, 8))
    expected = outcome(forces.entry, forces.some(1), {})
    assert both(forces, given, {}) == expected
    assert both(forces, given, {"out": out}) == "out itself"
    assert out.tobytes() == expected[3]


# In place --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lead", [(), (1,), (2,), (9,), (24,), (2, 5)], ids=str)
def test_out_may_be_an_input(lone: Subject, lead: tuple[int, ...]) -> None:
    """`out` may be one of the inputs if the shapes agree."""
    expected = outcome(lone.entry, lone.some(*lead), {})[3]
    for k, a in enumerate(lone.inputs):
        if a.shape[1:] == lone.shape:
            given = lone.some(*lead)
            assert both(lone, given, {"out": given[k]}) == "out itself"
            given = lone.some(*lead)
            lone.entry(*given, out=given[k])
            assert given[k].tobytes() == (expected if lone.shape else given[k].tobytes())


@pytest.mark.parametrize("count", [0, 1, 2, 9, 24])
def test_out_may_overlap_an_input(lone: Subject, count: int) -> None:
    """`out` may overlap an input by any number of entries, in either direction.

    A count of 0 means one state without a batch axis.
    """
    lead = (count,) if count else ()
    for k, a in enumerate(lone.inputs):
        sizes = [int(np.prod((*lead, *shape))) for shape in (a.shape[1:], lone.shape)]
        for shift in (-7, -6, -1, 1, 2, 6, 12, 37):
            given = lone.some(*lead)
            buffer = np.full(sum(sizes) + 200, 7.0, lone.dtype)
            taken = buffer[100 : 100 + sizes[0]].reshape(given[k].shape)
            taken[...] = given[k]
            given[k] = taken
            start = 100 + shift
            out = buffer[start : start + sizes[1]].reshape((*lead, *lone.shape))
            clean = outcome(lone.entry, [b.copy() for b in given], {})[3]
            before = buffer.copy()
            assert lone.entry(*given, out=out) is out
            assert out.tobytes() == clean
            outside = np.ones(len(buffer), bool)
            outside[start : start + sizes[1]] = False
            assert np.array_equal(buffer[outside], before[outside])


@pytest.mark.parametrize("lead", [(), (3,)])
def test_outputs_may_not_overlap(lead: tuple[int, ...]) -> None:
    """Outputs that overlap each other raise an error, and nothing is written."""
    derivatives = subject("derivatives")
    memory = np.full((3, *lead, 2, 2), 7.0)
    shifted = memory.ravel()[1 : 1 + memory[0].size].reshape(memory[0].shape)
    for out in ((memory[0], memory[1], memory[0]), (memory[0], shifted, memory[2])):
        with raises("E-CALL-015"):
            derivatives.entry(*derivatives.some(*lead), out=out)
    assert np.all(memory == 7.0)
    derivatives.entry(*derivatives.some(*lead), out=tuple(memory))
    assert not np.any(memory == 7.0)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("lead", [(), (1,), (9,)], ids=str)
def test_several_outputs_may_be_inputs(name: str, lead: tuple[int, ...]) -> None:
    """Outputs may be inputs if the shapes agree."""
    several = subject(name)
    expected = [part[3] for part in outcome(several.entry, several.some(*lead), {})]
    for k, a in enumerate(several.inputs):
        for j, shape in enumerate(several.shapes):
            if a.shape[1:] == shape:
                given, outs = several.some(*lead), list(several.room(*lead))
                outs[j] = given[k]
                several.entry(*given, out=tuple(outs))
                assert [out.tobytes() for out in outs] == expected


def test_all_arguments_the_same_array() -> None:
    forces = subject("forces")
    for lead in ((), (5,), (20,)):
        a = forces.some(*lead)[0]
        expected = outcome(forces.entry, [a.copy(), a.copy(), a.copy()], {})
        assert both(forces, [a, a, a], {}) == expected
        forces.entry(a, a, a, out=a)
        assert a.tobytes() == expected[3]


# Invalid and extreme values --------------------------------------------------------------------


def test_zero_quaternions() -> None:
    """A zero quaternion raises the same error alone and in a batch, and `out` is unchanged.

    A quaternion of NaN or of tiny entries is not zero.
    """
    moving = subject("quaternions")
    for lead in ((), (1,), (6,), (20,)):
        for value, bad in ((0.0, True), (-0.0, True), (np.nan, False), (5e-324, False)):
            given = moving.some(*lead)
            given[0][(..., -1, slice(0, 4)) if lead else slice(0, 4)] = value
            for named in ({}, {"out": moving.room(*lead)}):
                found = both(moving, given, named)
                assert fails(found, ValueError) == bad
                assert not bad or "quaternion of joint" in found[1]
    shared = [np.zeros(8), np.zeros((2, 7)), np.ones((2, 7), int)]
    assert "at index" not in both(moving, shared, {})[1]
    assert both(moving, [np.zeros(8), np.zeros(7), np.zeros((0, 7), ">f8")], {})[2] == (0, 7)


def test_half_turns_among_many() -> None:
    """A quaternion whose first entry is zero is valid, unless all four entries are zero."""
    moving = subject("quaternions")
    for row in (0, 7, 19):
        given = moving.some(20)
        given[0][row, :4] = (0.0, 1.0, 0.0, 0.0)
        assert not fails(both(moving, given, {}), ValueError)
        given[0][row, 1] = 0.0
        assert fails(both(moving, given, {}), ValueError)


def test_floating_point_errors_stay_silent(chosen: Subject) -> None:
    """NaN, infinity and overflow give results, even if NumPy is set to raise errors."""
    with np.errstate(all="raise"):
        for bad in (np.nan, np.inf, np.finfo(chosen.dtype).max):
            for lead in ((), (9,)):
                given = [np.full_like(a, bad) for a in chosen.some(*lead)]
                assert not fails(both(chosen, given, {}))


# Random argument lists -------------------------------------------------------------------------


def anything(choose: Callable[[Sequence[Any]], Any]) -> np.ndarray:
    """Return an array with random shape, type, order and strides."""
    shape = [choose(range(8)) for _ in range(choose(range(4)))]
    steps = tuple(slice(None, None, choose([1, 1, 2, -1])) for _ in shape)
    dtype = choose(["f8", "f8", "f4", "f2", "i8", "u1", ">f8", "c16", "O", "?", "U3", "m8[s]"])
    return np.ones(shape, dtype, order=choose("CF"))[steps]


def arguments(subject: Subject, choose: Callable[[Sequence[Any]], Any]) -> tuple[list[Any], dict]:
    """Return random arguments that are nearly valid, so that most checks are reached."""
    lead = choose([(), (), (), (1,), (2,), (7,), (16,), (2, 3), (0,)])
    given: list[Any] = subject.some(*lead)
    for k in range(len(given)):
        if choose([False, False, True]):
            make = choose([*LAYOUTS.values(), *FORMS.values()])
            given[k] = make(given[k])
    change = choose(["none", "none", "none", "drop", "add", "swap", "lead", "any"])
    if change == "drop":
        given.pop()
    elif change == "add":
        given.append(choose([None, subject.room(), 3]))
    elif change == "swap":
        given.reverse()
    elif change == "lead":
        given[-1] = subject.some(*choose([(), (1,), (3,)]))[-1]
    elif change == "any":
        given[choose(range(len(given)))] = anything(choose)
    named: dict[str, Any] = {}
    for _ in range(choose([0, 0, 1, 1, 1, 2])):
        name = choose(["out", "out", "out", "out", "threads", "q", "qd", "tau", "method", "x"])
        good = subject.room(*lead)
        arrays = [a for a in given if type(a) is np.ndarray]
        value: dict[str, list[Any]] = {
            "out": [good, good, subject.out(choose(list(OUTS.values())), *lead), *arrays],
            "threads": [None, 1, 2, 0, "x"],
            "method": ["fastest", "bogus"],
        }
        named[name] = choose(value.get(name, [None, 1.0, *arrays]))
    return given, named


@hypothesis.settings(max_examples=400)
@hypothesis.given(data=st.data(), name=st.sampled_from(list(SUBJECTS)))
def test_random_argument_lists(data: st.DataObject, name: str) -> None:
    def choose(options: Sequence[Any]) -> Any:
        return options[data.draw(st.integers(0, len(options) - 1))]

    both(subject(name), *arguments(subject(name), choose))


# One state, one output -------------------------------------------------------------------------


def _joined(count: int, shape: tuple[int, ...], taken: list[bool]) -> Callable[..., np.ndarray]:
    """Return an entry for vectors of 3, 4, ... entries. `taken` records calls handled by Python."""
    arena, inputs = Arena(RULES), [Variable(f"x{k}", (3 + k,)) for k in range(count)]
    given = [[arena.input(v.name, k) for k in range(v.size)] for v in inputs]
    numbers = [sum(x[k % 3] for x in given) * (k + 1.0) for k in range(math.prod(shape))]
    kernel = llvm.compile(Program.from_outputs("f", inputs, [(Variable("y", shape), numbers)]))

    def python(*arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        taken.append(True)
        whole = sum(x[:3] for x in arrays)
        found = np.array([whole[k % 3] * (k + 1.0) for k in range(math.prod(shape))])
        return found.reshape(shape)

    return kernel.fast_entry(name="joined", signature="", doc="", holder=None, fallback=python)


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 1, 2)])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_python_takes_exactly_the_overlaps(count: int, shape: tuple[int, ...]) -> None:
    """Machine code writes outputs next to an input. Python handles outputs that overlap it."""
    taken: list[bool] = []
    entry = _joined(count, shape, taken)
    size = math.prod(shape)
    for k in range(count):
        for shift in range(-size - 1, 3 + k + 2):
            memory = np.arange(60.0)
            arrays = [np.linspace(1.0, 2.0, 3 + n) for n in range(count)]
            arrays[k] = memory[20 : 23 + k]
            out = memory[20 + shift : 20 + shift + size].reshape(shape)
            expected = entry(*arrays)
            assert not taken
            entry(*arrays, out=out)
            assert bool(taken) == np.shares_memory(arrays[k], out)
            assert taken or np.array_equal(out, expected)
            taken.clear()


@pytest.mark.parametrize(("named", "parts"), [({}, 1), ({"threads": 1}, 200)])
def test_python_takes_batches_that_take_long(named: dict[str, int], parts: int) -> None:
    """Python divides such batches into parts, and handles interrupts between the parts."""
    taken: list[bool] = []
    arena, x = Arena(RULES), Variable("x", (1,))
    program = Program.from_outputs("f", [x], [(Variable("y", (1,)), [arena.input("x", 0) * 2.0])])
    artifact = dataclasses.replace(llvm.compile(program).artifact, work=WORTH_THREADS // 3)
    entry = llvm.Kernel(artifact).fast_entry(
        name="f",
        signature="",
        doc="",
        holder=None,
        fallback=lambda x, **_: taken.append(True),
    )
    assert (entry(np.ones((3 * parts, 1)), **named) == 2.0).all()
    assert not taken
    entry(np.ones((3 * parts + 1, 1)), **named)
    assert taken


def test_copies_of_a_dtype_are_as_good() -> None:
    """Unpickled arrays, whose dtype objects are equal copies, use machine code.

    Arrays of other dtypes use the Python path.
    """
    taken: list[bool] = []
    entry, x = _joined(2, (4,), taken), [np.array([1.0, 2.0, 3.0]), np.arange(4.0)]
    copies = [pickle.loads(pickle.dumps(a)) for a in x]
    out = pickle.loads(pickle.dumps(np.zeros(4)))
    assert copies[0].dtype is not x[0].dtype
    assert np.array_equal(entry(*copies, out=out), entry(*x))
    assert not taken
    entry(*(a.astype(">f8") for a in x))
    entry(*x, out=np.zeros(4, ">f8"))
    entry(*x, out=np.zeros(4, np.int64))
    assert len(taken) == 3
