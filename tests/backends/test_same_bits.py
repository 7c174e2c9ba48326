"""One state gives bitwise identical results alone and in batches, with any memory layout."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support import TARGETS, raises, tree

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.backends import arrays
from chasles.backends.llvm import kernel as llvm
from chasles.backends.llvm import source as llvm_source
from chasles.backends.llvm.code import Machine
from chasles.expr import Program
from chasles.functions.tracing import signature
from chasles.model import LoopData
from chasles.robots import planar, puma560, quadruped

STATES = 64
SIZES = (*range(1, 21), STATES)

CASES = {
    "one freedom": (lambda: planar(1), "inverse_dynamics"),
    "three freedoms": (lambda: planar(3), "forward_dynamics"),
    "matrix": (puma560, "mass_matrix"),
    "forces": (puma560, "inverse_dynamics"),
    "one number": (puma560, "potential_energy"),
    "pose": (puma560, "forward_kinematics"),
    "two outputs": (puma560, "ltdl_factors"),
    "quaternions": (lambda: tree(5, 3, floating=True), "forward_dynamics"),
    "large matrix": (quadruped, "mass_matrix"),
    "configurations": (lambda: tree(5, 1, floating=True), "integrate"),
}
"""A robot and a function for each kind of row size."""


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Return True if two arrays have the same shape and are bitwise identical."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def arguments(program: Program, robot: chasles.Robot, count: int) -> list[np.ndarray]:
    """Return random inputs of a program, with one row per state."""
    rng = np.random.default_rng(1)
    found = []
    for variable in program.inputs:
        position = variable.name in ("q", "q0", "q1")
        draw = (
            robot.random(rng, size=count) if position else rng.normal(size=(count, *variable.shape))
        )
        found.append(draw)
    return found


def listed(found: object) -> list[np.ndarray]:
    """Return the one or several results of a function as a list."""
    return list(found) if isinstance(found, tuple) else [found]


def frame_option(robot: chasles.Robot, function: str) -> dict[str, str]:
    """Return the frame option if the function needs one."""
    needs = "frame" in signature(FUNCTIONS[function][0].algorithm).options
    return {"frame": robot.frames[-1]} if needs else {}


class Subject:
    """A compiled function, states, and the results for each state alone."""

    def __init__(self, name: str) -> None:
        make, function = CASES[name]
        robot = make()
        self.function = function
        self.compiled = chasles.compile(robot, function, **frame_option(robot, function))
        self.program = self.compiled.program
        self.inputs = arguments(self.program, robot, STATES)
        self.alone = self.stack([self.call(*(a[k] for a in self.inputs)) for k in range(STATES)])

    def call(self, *inputs: np.ndarray, out: object = None) -> list[np.ndarray]:
        if isinstance(out, list):
            out = out[0] if len(out) == 1 else tuple(out)
        return listed(self.compiled(*inputs, out=out))

    @staticmethod
    def stack(rows: list[list[np.ndarray]]) -> list[np.ndarray]:
        return [np.stack(column) for column in zip(*rows, strict=True)]


@cache
def subject(name: str) -> Subject:
    return Subject(name)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Subject:
    return subject(request.param)


def check(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert all(same(a, b) for a, b in zip(found, expected, strict=True))


# Any place in any batch ------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_any_size(case: Subject, size: int) -> None:
    check(case.call(*(a[:size] for a in case.inputs)), [e[:size] for e in case.alone])


def test_any_place(case: Subject) -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        chosen = rng.integers(STATES, size=rng.integers(2, 40))
        check(case.call(*(a[chosen] for a in case.inputs)), [e[chosen] for e in case.alone])


def test_any_leading_shape(case: Subject) -> None:
    inputs = [a.reshape(4, 1, 16, *a.shape[1:]) for a in case.inputs]
    check(case.call(*inputs), [e.reshape(4, 1, 16, *e.shape[1:]) for e in case.alone])


def test_angles_beyond_the_limit() -> None:
    """Lanes that use the exact reduction of large angles are bitwise identical to single states."""
    case = subject("forces")
    q, qd, qdd = (a[:21].copy() for a in case.inputs)
    q[3], q[10, 2], q[20] = 1e7, 1e300, -3e6
    together = case.call(q, qd, qdd)[0]
    for k in range(21):
        assert same(case.call(q[k], qd[k], qdd[k])[0], together[k])


def test_broadcasting(case: Subject) -> None:
    """The first input broadcasts with the others along a new axis."""
    first, *others = case.inputs
    if not others:
        pytest.skip("one input has nothing to broadcast with")
    found = case.call(first[:5, None], *(a[None, :7] for a in others))
    for k in range(5):
        expected = case.call(np.repeat(first[k : k + 1], 7, axis=0), *(a[:7] for a in others))
        check([f[k] for f in found], expected)


def test_a_public_method_has_the_same_bits() -> None:
    """A method, its fast entry and the compiled function give bitwise identical results."""
    robot = puma560()
    states = subject("forces").inputs
    expected = subject("forces").alone[0]
    for k in range(4):
        row = [a[k] for a in states]
        assert same(robot.inverse_dynamics(*row), expected[k])
        assert same(robot.inverse_dynamics(*row, out=np.empty(6)), expected[k])
    assert same(robot.inverse_dynamics(*states), expected)


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_any_number_of_threads(threads: int) -> None:
    """Large batches on any number of threads are bitwise identical, even if `out` is an input."""
    case = subject("forces")
    inputs = [np.tile(a, (100, 1)) for a in case.inputs]
    expected = np.tile(case.alone[0], (100, 1))
    for count in (2, 9, 1000, 6400):
        parts = [a[:count].copy() for a in inputs]
        assert same(case.compiled(*parts, threads=threads), expected[:count])
        assert same(case.compiled(*parts, threads=threads, out=parts[1]), expected[:count])


# Single precision ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["one freedom", "forces", "two outputs", "quaternions", "pose"])
def test_single_precision(name: str) -> None:
    """float32 arguments give bitwise identical results alone and in batches, close to float64."""
    case = subject(name)
    inputs = [a.astype(np.float32) for a in case.inputs]
    alone = Subject.stack([case.call(*(a[k] for a in inputs)) for k in range(STATES)])
    exact = case.call(*(a.astype(float) for a in inputs))
    for found, expected in zip(alone, exact, strict=True):
        assert found.dtype == np.float32
        scale = float(np.max(np.abs(expected)))
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-4 * scale)
    for size in SIZES:
        check(case.call(*(a[:size] for a in inputs)), [a[:size] for a in alone])
    spaced = [np.repeat(a, 2, axis=0)[::2] for a in inputs]
    check(case.call(*spaced), alone)
    outs = [np.empty_like(a) for a in alone]
    assert all(a is b for a, b in zip(case.call(*inputs, out=outs), outs, strict=True))
    check(outs, alone)
    with raises("E-CALL-012"):
        case.call(*inputs, out=[a.astype(float) for a in alone])


# Layouts of inputs -----------------------------------------------------------------------------


def layouts(a: np.ndarray) -> Iterator[np.ndarray]:
    """Yield arrays with the same values but other memory layouts."""
    spaced = np.zeros((2 * len(a), *a.shape[1:]))
    spaced[::2] = a
    yield spaced[::2]
    yield np.ascontiguousarray(a[::-1])[::-1]
    yield np.asfortranarray(a)
    wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1] + 1))
    wide[..., 1::2] = a
    yield wide[..., 1::2]
    yield np.frombuffer(b"." + a.tobytes(), dtype=np.uint8)[1:].view(a.dtype).reshape(a.shape)
    yield a.astype(">f8")
    frozen = a.copy()
    frozen.flags.writeable = False
    yield frozen


def test_any_layout_of_inputs(case: Subject) -> None:
    for k, a in enumerate(case.inputs):
        for layout in layouts(a):
            inputs = list(case.inputs)
            inputs[k] = layout
            check(case.call(*inputs), case.alone)
            for state in (0, STATES - 1):
                row = [a[state] for a in inputs]
                check(case.call(*row), [e[state] for e in case.alone])


def test_other_numbers_are_converted(case: Subject) -> None:
    """Integers, lists, and float32 among float64 arguments are converted to float64."""
    rounded = [np.round(8.0 * a) / 8.0 for a in case.inputs]
    for a in rounded:
        a[..., 0] = 1.0  # avoid zero quaternions
    expected = case.call(*rounded)
    check(case.call(*(a.tolist() for a in rounded)), expected)
    if len(rounded) > 1:
        check(case.call(rounded[0].astype(np.float32), *rounded[1:]), expected)
    whole = [np.ones_like(a) for a in rounded]
    check(case.call(*(a.astype(int) for a in whole)), case.call(*whole))


# Layouts of outputs ----------------------------------------------------------------------------


def outs(shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Yield arrays of one shape with different memory layouts."""
    count, *rest = shape
    yield np.full(shape, 7.0)
    yield np.full((2 * count, *rest), 7.0)[::2]
    yield np.full(shape, 7.0)[::-1]
    yield np.full(shape, 7.0, order="F")
    if rest:
        yield np.full((*shape[:-1], 2 * shape[-1]), 7.0)[..., ::2]
        yield np.full((count, rest[0] + 3, *rest[1:]), 7.0)[:, 1 : rest[0] + 1]
    yield np.full(8 * int(np.prod(shape)) + 1, 7, np.uint8)[1:].view(float).reshape(shape)


@pytest.mark.parametrize("size", [1, 5, 8, 19])
def test_any_layout_of_outputs(case: Subject, size: int) -> None:
    """Results are written to `out`, which is returned. No other memory is changed."""
    inputs, expected = [a[:size] for a in case.inputs], [e[:size] for e in case.alone]
    for candidates in zip(*(outs(e.shape) for e in expected), strict=True):
        given = list(candidates)
        found = case.call(*inputs, out=given)
        assert all(f is g for f, g in zip(found, given, strict=True))
        check(given, expected)
        for g in given:
            whole = g.base if g.base is not None else g
            if whole.dtype == g.dtype:
                assert np.count_nonzero(whole == 7.0) >= whole.size - g.size


def test_an_output_may_be_an_input() -> None:
    """`out` may be an input, or overlap one by any amount."""
    case = subject("forces")
    n = 6
    q, qd, qdd = case.inputs
    for size in (1, 3, 8, 21):
        for place in range(3):
            inputs = [a[:size].copy() for a in (q, qd, qdd)]
            found = case.call(*inputs, out=inputs[place])[0]
            assert found is inputs[place]
            assert same(found, case.alone[0][:size])
    for size in (2, 9, 17):
        for shift in (-n * 2, -n, -1, 1, 3, n, 2 * n + 1):
            buffer = np.zeros(4 * STATES * n)
            start = STATES * n
            taken = buffer[start : start + size * n].reshape(size, n)
            taken[...] = qdd[:size]
            given = buffer[start + shift : start + shift + size * n].reshape(size, n)
            case.call(q[:size], qd[:size], taken, out=given)
            assert same(given, case.alone[0][:size])
    buffer = np.array([*qdd[0], 0.0, 0.0])
    case.call(q[0], qd[0], buffer[:6], out=buffer[2:])
    assert same(buffer[2:], case.alone[0][0])


def test_a_number_goes_into_an_array_without_axes() -> None:
    """A scalar result is written to `out` by the first call and by the fast entry."""
    robot = puma560()
    q = subject("one number").inputs[0][0]
    for _ in range(2):
        out = np.empty(())
        assert robot.potential_energy(q, out=out) is out
        assert out == subject("one number").alone[0][0]
        assert isinstance(robot.potential_energy(q), float)


# Other machines, other backends ----------------------------------------------------------------


def machines() -> dict[str, Machine]:
    host = Machine.host()
    widths = {f"width {w}": replace(host, width=w) for w in (2, 4, 8) if w <= host.width}
    unfused = {f"no FMA, {name}": m.without_fma() for name, m in widths.items()}
    return widths | unfused | {f"effort {n}": replace(host, effort=n) for n in (0, 3)}


@pytest.mark.parametrize("machine", machines())
@pytest.mark.parametrize("name", ["one freedom", "quaternions", "large matrix", "two outputs"])
def test_other_machines(name: str, machine: str) -> None:
    """All vector widths and compiler efforts give bitwise identical results.

    Results with and without fused multiply-add may differ in the last digits.
    """
    case, chosen = subject(name), machines()[machine]
    kernel = llvm.compile(case.program, chosen)

    def call(*inputs: np.ndarray) -> list[np.ndarray]:
        return listed(arrays.call(kernel, case.function, inputs))

    alone = Subject.stack([call(*(a[k] for a in case.inputs)) for k in range(STATES)])
    for size in (*range(2, 18), STATES):
        check(call(*(a[:size] for a in case.inputs)), [e[:size] for e in alone])
    if chosen.fuse == Machine.host().fuse:
        check(alone, case.alone)
    for found, expected in zip(alone, case.alone, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * np.max(np.abs(expected)))


@pytest.mark.parametrize("longest", [50, 333, 2000])
def test_long_programs_in_parts(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are bitwise identical for any part length, even if `out` is an input."""
    case = subject("quaternions")
    monkeypatch.setattr(llvm_source, "LONGEST", longest)
    kernel = llvm.compile(case.program)
    expected = np.tile(case.alone[0], (20, 1))
    for size in (1, 2, 8, 13, STATES, 20 * STATES - 3):
        inputs = [np.tile(a, (20, 1))[:size] for a in case.inputs]
        assert same(arrays.call(kernel, case.function, inputs), expected[:size])
        found = arrays.call(kernel, case.function, inputs, out=inputs[2])
        assert same(found, expected[:size])
    row = [a[0].copy() for a in case.inputs]
    assert same(arrays.call(kernel, case.function, row, out=row[1]), case.alone[0][0])


def test_without_fma_and_angles_the_interpreter_has_the_same_bits() -> None:
    """Without fused multiply-add and sines, IEEE 754 defines one correct result per operation."""
    slider = _slider()
    program = chasles.compile(slider, "forward_dynamics").program
    assert program.count.sines_and_cosines == 0
    inputs = arguments(program, slider, 21)
    kernel = llvm.compile(program, Machine.host().without_fma())
    exact = chasles.compile(slider, "forward_dynamics", backend="interpret")(*inputs)
    assert same(arrays.call(kernel, "forward_dynamics", inputs), exact)
    vectorised = chasles.compile(slider, "forward_dynamics", backend="numpy")(*inputs)
    assert same(vectorised, exact)


def _slider() -> chasles.Robot:
    """Return a tree whose rotary joints are spherical, because quaternions need no sines."""
    source = tree(6, 2, floating=True).model.source
    slow = {"revolute", "continuous", "helical", "universal", "cylindrical", "planar"}
    joints = (
        replace(j, kind="spherical" if k % 2 else "prismatic") if j.kind in slow else j
        for k, j in enumerate(source.joints)
    )
    return chasles.Robot(replace(source, joints=tuple(joints)))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_backends_agree_with_the_interpreter(function: str) -> None:
    """Backends agree with the interpreter to 1e-12 (norm-wise). Fused products and sines differ."""
    source = tree(5, 1, floating=True).model.source
    hinge = LoopData("hinge", "revolute", source.links[0].name, source.links[-1].name)
    loops = (hinge,) if function.startswith("loop_") else ()
    robot = chasles.Robot(replace(source, loops=loops))
    if function == "driving_forces":
        robot = robot.drive({"joint4": lambda t: t * t})
    by = {
        target: chasles.compile(robot, function, backend=target, **frame_option(robot, function))
        for target in TARGETS
    }
    inputs = arguments(by["interpret"].program, robot, 11)
    exact = listed(by.pop("interpret")(*inputs))
    assert by
    for target, found in by.items():
        for a, b in zip(listed(found(*inputs)), exact, strict=True):
            most = 1e-12 * np.max(np.abs(b), initial=0.0)
            np.testing.assert_allclose(a, b, rtol=0.0, atol=most, err_msg=target)
