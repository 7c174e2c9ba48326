"""PyTorch tensors: bitwise results of NumPy, exact derivatives, and compiled graphs."""

import pickle
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from support import close, pairwise, raises, state, tree

import chasles
from chasles.robots import planar, puma560, quadruped

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck
func = torch.func

STATES: dict[str, int] = {
    "inverse_dynamics": 3,
    "forward_dynamics": 3,
    "mass_matrix": 1,
    "kinetic_energy": 2,
    "ltdl_factors": 1,
    "integrate": 2,
}
"""Functions with one result, several results or a scalar, and the number of array arguments."""


def tensors(robot: chasles.Robot, count: int, size: Any = (), seed: int = 0) -> list[Any]:
    return [torch.from_numpy(a) for a in state(robot, seed, size)[:count]]


def learning(arrays: list[Any]) -> list[Any]:
    return [a.clone().requires_grad_() for a in arrays]


def equal(actual: Any, expected: Any) -> None:
    """Check that results have the same type and are bitwise identical."""
    if isinstance(expected, tuple):
        assert isinstance(actual, tuple)
        for a, b in zip(actual, expected, strict=True):
            equal(a, b)
        return
    assert type(actual) is torch.Tensor
    assert np.array_equal(actual.numpy(), expected)
    assert actual.numpy().dtype == expected.dtype


# Values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "size", "dtype"),
    pairwise(STATES, [(), (5,), (2, 3)], ["float64", "float32"]),
)
def test_same_bits_as_numpy(function: str, size: tuple[int, ...], dtype: str) -> None:
    robot = tree(3, 1, floating=True)
    arrays = [a.astype(dtype) for a in state(robot, 0, size)[: STATES[function]]]
    method = getattr(robot, function)
    equal(method(*map(torch.from_numpy, arrays)), method(*arrays))


def test_strides_shapes_and_types_that_numpy_takes() -> None:
    robot = puma560()
    q, qd, qdd = state(robot, 1, 8)
    tau = robot.inverse_dynamics(q, qd[0], qdd)
    columns = torch.from_numpy(np.asfortranarray(q))
    every_other = torch.from_numpy(np.repeat(qdd, 2, axis=0))[::2]
    equal(robot.inverse_dynamics(columns, torch.from_numpy(qd[0]), every_other), tau)
    turned = torch.complex(every_other, -every_other).conj().imag  # lazy negation
    assert turned.is_neg()
    equal(robot.inverse_dynamics(columns, torch.from_numpy(qd[0]), turned), tau)
    mixed = robot.inverse_dynamics(columns, torch.zeros(6, dtype=torch.float32), every_other)
    equal(mixed, robot.inverse_dynamics(q, np.zeros(6), qdd))
    whole = robot.inverse_dynamics(columns, torch.ones(6, dtype=torch.int64), [1.0] * 6)
    equal(whole, robot.inverse_dynamics(q, np.ones(6), np.ones(6)))


def test_options_forces_threads_and_derivatives() -> None:
    robot = puma560()
    q, qd, qdd = state(robot, 2, 4)
    x, xd, xdd = map(torch.from_numpy, (q, qd, qdd))
    wrench = np.arange(6.0)
    force = {"tool": chasles.Wrench(torch.from_numpy(wrench), axes="frame")}
    expected = robot.inverse_dynamics(
        q, qd, qdd, f_ext={"tool": chasles.Wrench(wrench, axes="frame")}
    )
    equal(robot.inverse_dynamics(x, xd, xdd, f_ext=force), expected)
    equal(
        robot.jacobian(x, frame="tool", axes="frame"), robot.jacobian(q, frame="tool", axes="frame")
    )
    equal(robot.mass_matrix(x, threads=2), robot.mass_matrix(q))
    arguments = ("inverse_dynamics", q, qd, qdd)
    equal(robot.derivatives("inverse_dynamics", x, xd, xdd), robot.derivatives(*arguments))


@pytest.mark.parametrize("threads", ["x", -1, True, 2**64 + 1])
@pytest.mark.parametrize("function", ["inverse_dynamics", "ltdl_factors"])
def test_threads_are_checked_with_and_without_out(function: str, threads: Any) -> None:
    robot = planar(2)
    given = tensors(robot, STATES[function], 5)
    call = getattr(robot, function)
    results = call(*given)
    out = tuple(map(torch.empty_like, results)) if type(results) is tuple else 0.0 * results
    equal(call(*given, out=out, threads=2), call(*(t.numpy() for t in given)))
    for options in ({}, {"out": out}):
        with raises("E-CALL-003", "threads"):
            call(*given, threads=threads, **options)


def test_nothing_is_copied() -> None:
    """Inputs are read and `out` is written in place, without allocating memory."""
    robot = planar(2)
    arrays = tensors(robot, 3, 20_000)
    out = torch.empty(20_000, 2, dtype=torch.float64)
    robot.inverse_dynamics(*arrays, out=out)
    tracemalloc.start()
    assert robot.inverse_dynamics(*arrays, out=out) is out
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000
    equal(out, robot.inverse_dynamics(*(a.numpy() for a in arrays)))


def test_several_results_into_out() -> None:
    robot = planar(2)
    q = tensors(robot, 1, 3)[0]
    out = (torch.empty(3, 2, 2, dtype=torch.float64), torch.empty(3, 2, dtype=torch.float64))
    assert robot.ltdl_factors(q, out=out) is out
    equal(out, robot.ltdl_factors(q.numpy()))


# Derivatives -------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", STATES)
def test_gradients_with_quaternions_of_any_length(function: str) -> None:
    """Derivatives agree with differences in all nq entries, for quaternions of any length."""
    robot = tree(3, 1, floating=True)
    q, *rates = tensors(robot, STATES[function], 2)
    assert robot.nq > robot.nv
    assert gradcheck(getattr(robot, function), learning([1.3 * q, *rates]), check_forward_ad=True)


@pytest.mark.parametrize("function", ["inverse_dynamics", "mass_matrix", "kinetic_energy"])
def test_gradients_are_pullbacks_along_the_configuration_space(function: str) -> None:
    """The gradient by the entries of q, mapped to the tangent space, is the robot's pullback."""
    robot = tree(4, 3, floating=True)
    arrays = learning(tensors(robot, STATES[function], seed=5))
    result = getattr(robot, function)(*arrays)
    covector = torch.from_numpy(np.random.default_rng(6).normal(size=tuple(result.shape)))
    gradients = [g.numpy() for g in torch.autograd.grad(result, arrays, covector)]
    plain = [a.detach().numpy() for a in arrays]
    along = robot.derivatives("integrate", plain[0], np.zeros(robot.nv), wrt="v")
    gradients[0] = gradients[0] @ along
    for name, actual in zip(("q", "qd", "qdd"), gradients, strict=False):
        expected = robot.pullback(function, *plain, covector=covector.numpy(), wrt=name)
        close(actual, expected, 1e-10, scale=1.0)


def test_shared_arguments_get_the_sum_of_their_gradients() -> None:
    robot = planar(2)
    q, qd, _ = tensors(robot, 3, 3)
    qdd = torch.ones(2, 1, 2, dtype=torch.float64)
    assert gradcheck(robot.inverse_dynamics, learning([q, qd[0], qdd]), check_forward_ad=True)


def test_only_asked_gradients_are_computed() -> None:
    robot = planar(2)
    q, qd, qdd = tensors(robot, 3)
    inverse = chasles.compile(robot, "inverse_dynamics")
    inverse(q, qd, qdd.requires_grad_()).sum().backward()
    (made,) = inverse._differentials
    assert made.wrt == ("qdd",)
    close(qdd.grad.numpy(), robot.mass_matrix(q.numpy()).sum(axis=0), 1e-14)


@pytest.mark.parametrize("function", ["forward_dynamics", "potential_energy", "difference"])
def test_second_derivatives(function: str) -> None:
    robot = planar(2) if function != "difference" else tree(1, 0, floating=True)
    arrays = tensors(robot, {"forward_dynamics": 3, "potential_energy": 1}.get(function, 1))
    if function == "difference":
        arrays = [1.2 * arrays[0], 0.9 * tensors(robot, 1, seed=4)[0]]
    assert gradgradcheck(getattr(robot, function), learning(arrays))


def test_gradients_of_derivatives_and_of_parameters() -> None:
    robot = planar(2)
    q, qd, qdd = tensors(robot, 3)
    slopes = partial(robot.derivatives, "inverse_dynamics", wrt=("q", "qd"))
    assert gradcheck(slopes, learning([q, qd, qdd]))
    free = ("link2.mass", "gravity")
    inverse = chasles.compile(robot, "inverse_dynamics", parameters=free)
    numbers = [torch.from_numpy(np.asarray(robot.parameter(name))) for name in free]
    assert gradcheck(inverse, learning([q, qd, qdd, *numbers]))


def test_derivatives_travel() -> None:
    """A pickled derivative is recreated from its function."""
    inverse = chasles.compile(planar(2), "inverse_dynamics")
    slope = inverse.pullback(("q",)).pushforward(("qd",))
    again = pickle.loads(pickle.dumps(slope))
    assert again.recipe == slope.recipe
    assert again.parent.parent.recipe == inverse.recipe
    assert again.key == slope.key


def test_a_method_without_derivatives_says_so() -> None:
    robot = planar(2)
    arrays = learning(tensors(robot, 3))
    qdd = robot.forward_dynamics(*arrays, method="conjugate-gradient")
    with raises("E-CALL-064"):
        qdd.sum().backward()


# torch.func --------------------------------------------------------------------------------------


def test_jacobians_are_the_robots_own() -> None:
    robot = puma560()
    q, qd, qdd = state(robot, 3)
    expected = robot.derivatives("inverse_dynamics", q, qd, qdd)
    arrays = list(map(torch.from_numpy, (q, qd, qdd)))
    for jacobian in (func.jacrev, func.jacfwd):
        made = jacobian(robot.inverse_dynamics, argnums=(0, 1, 2))(*arrays)
        for actual, wanted in zip(made, expected, strict=True):
            close(actual.numpy(), wanted, 1e-11)


def test_hessians_and_mapped_gradients() -> None:
    robot = puma560()
    q = tensors(robot, 1, 4)[0]
    energy = robot.potential_energy
    slopes = robot.derivatives("gravity_forces", q.numpy(), wrt="q")
    close(func.vmap(func.hessian(energy))(q).numpy(), slopes, 1e-11)
    close(func.vmap(func.grad(energy))(q).numpy(), robot.gravity_forces(q.numpy()), 1e-12)


@pytest.mark.parametrize("places", [(0, 0, 0), (0, None, None), (None, 1, 0), (1, 0, None)])
def test_vmap_over_any_axis(places: tuple[int | None, ...]) -> None:
    """Mapped arguments may be batches themselves, next to shared arguments."""
    robot = planar(2)
    batches = [torch.randn(5, 3, 2, dtype=torch.float64) for _ in range(3)]
    arguments = [
        a[0] if p is None else a.movedim(0, p) for a, p in zip(batches, places, strict=True)
    ]
    expected = [
        robot.inverse_dynamics(
            *(a[0] if p is None else a[k] for a, p in zip(batches, places, strict=True))
        )
        for k in range(5)
    ]
    made = func.vmap(robot.inverse_dynamics, in_dims=places)(*arguments)
    assert torch.equal(made, torch.stack(expected))


def test_forward_mode_outside_torch_func() -> None:
    robot = planar(2)
    q, qd, qdd = tensors(robot, 3)
    with torch.autograd.forward_ad.dual_level():
        moving = torch.autograd.forward_ad.make_dual(qdd, torch.ones_like(qdd))
        pushed = torch.autograd.forward_ad.unpack_dual(robot.inverse_dynamics(q, qd, moving))
        close(pushed.tangent.numpy(), robot.mass_matrix(q.numpy()).sum(axis=1), 1e-14)


# torch.compile -----------------------------------------------------------------------------------


def traced(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function as one graph, without generating code, which needs a C++ compiler."""
    return torch.compile(function, fullgraph=True, backend="aot_eager", **options)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_one_graph_with_its_gradient(dtype: Any) -> None:
    robot = tree(3, 1, floating=True)
    inverse = chasles.compile(robot, "inverse_dynamics")

    def loss(q: Any, qd: Any, qdd: Any) -> Any:
        return (inverse(2.0 * q, qd, qdd) ** 2).sum()

    values, gradients = [], []
    for function in (loss, traced(loss)):
        arrays = learning([a.to(dtype) for a in tensors(robot, 3, 4)])
        value = function(*arrays)
        value.backward()
        values.append(value.detach())
        gradients.append([a.grad for a in arrays])
    assert values[0].dtype == dtype
    assert torch.equal(*values)
    assert all(map(torch.equal, *gradients))


def test_one_graph_for_all_batches_and_several_results() -> None:
    robot = planar(2)
    factors = chasles.compile(robot, "ltdl_factors")
    compiled = traced(lambda q: factors(q + 1.0), dynamic=True)
    for size in (2, 3, 7):
        q = tensors(robot, 1, size)[0]
        equal(compiled(q), factors((q + 1.0).numpy()))


def test_prepared_calls_are_not_in_graphs() -> None:
    """Calls outside a graph use prepared calls, and calls inside a graph stay one operation."""
    robot = puma560()
    function, called = chasles.compile(robot, "gravity_forces"), list[Any]()
    (q,) = tensors(robot, 1, 4)
    function.quick[torch.Tensor] = lambda *a, **_: called.append(a)
    compiled = torch.compile(lambda x: 2.0 * function(x), fullgraph=True, backend="aot_eager")
    equal(compiled(q), 2.0 * robot.gravity_forces(q.numpy()))
    assert not called
    function(q)
    robot.gravity_forces(q)
    assert len(called) == 2


def test_the_operation_keeps_pytorchs_rules() -> None:
    from chasles.functions.libraries import torch as library

    inverse = chasles.compile(planar(2), "inverse_dynamics")
    arrays = learning([torch.randn(3, 2, dtype=torch.float64) for _ in range(3)])
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    arguments = (*library._address(inverse), arrays, None)
    torch.library.opcheck(torch.ops.chasles.evaluate.default, arguments, test_utils=checks)


def test_a_graph_that_outlives_its_robot_says_so() -> None:
    from chasles.functions.compiled import recall

    with raises("E-CALL-042"):
        recall("nobody")


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (
            [torch.zeros(2), np.zeros(2), torch.zeros(2)],
            TypeError,
            "E-CALL-039",
        ),
        ([torch.zeros(2)] * 2 + [torch.zeros(2).half()], TypeError, "E-CALL-051"),
        ([torch.zeros(2)] * 2 + [torch.zeros(2, device="meta")], ValueError, "E-CALL-049"),
        ([torch.zeros(2, device="meta")] * 3, ValueError, "E-CALL-050"),
        ([torch.zeros(2)] * 2 + [torch.zeros(3)], ValueError, "E-CALL-009 (..., 2)"),
        ([torch.zeros(3, 2), torch.zeros(4, 2), torch.zeros(2)], ValueError, "E-CALL-005"),
        ([torch.zeros(2)] * 2, TypeError, "E-CALL-035"),
    ],
)
def test_bad_arguments(arguments: list[Any], error: type[Exception], match: str) -> None:
    inverse = chasles.compile(planar(2), "inverse_dynamics")
    with raises(match, kind=error):
        inverse(*arguments)


def test_bad_out() -> None:
    robot = planar(2)
    arrays = tensors(robot, 3)
    right = torch.empty(2, dtype=torch.float64)
    cases: list[tuple[list[Any], Any, type[Exception], str]] = [
        (arrays, np.empty(2), TypeError, "E-CALL-040"),
        (learning(arrays), right, TypeError, "E-CALL-052"),
        (arrays, right.clone().requires_grad_(), TypeError, "E-CALL-053"),
        (arrays, right.float(), TypeError, "E-CALL-012"),
        (arrays, torch.empty(3, dtype=torch.float64), ValueError, "E-CALL-013"),
        (arrays, right.to("meta"), ValueError, "E-CALL-054"),
        ([a.numpy() for a in arrays], right, TypeError, "E-CALL-011"),
    ]
    for given, out, error, match in cases:
        with raises(match, kind=error):
            robot.inverse_dynamics(*given, out=out)


def test_a_zero_quaternion_is_named() -> None:
    robot = quadruped()
    with raises("E-CALL-037"):
        robot.mass_matrix(torch.zeros(robot.nq, dtype=torch.float64).requires_grad_())


def test_what_numpy_decides_refuses_tensors() -> None:
    crank = chasles.robots.slider_crank()
    q, qd, tau = tensors(crank, 3)
    robot = planar(2)
    calls: list[Callable[[], Any]] = [
        lambda: crank.assemble(torch.zeros(1)),
        lambda: crank.complete(q, torch.zeros(1)),
        lambda: crank.forward_dynamics(q, qd, tau),
        lambda: crank.constrained_dynamics(q, qd, tau),
        lambda: crank.hybrid_dynamics(q, qd, tau, known="alpha1"),
        lambda: crank.mass_matrix(q, coordinates="independent"),
        lambda: crank.inverse_dynamics(q, qd, tau, actuated=["alpha1"]),
        lambda: robot.linearize(*tensors(robot, 3), dt=0.01),
    ]
    for refused in calls:
        with raises("E-CALL-041"):
            refused()
    arm = puma560()
    with raises("E-CALL-041"):
        arm.rollout_pullback(*tensors(arm, 2), dt=1e-3, steps=1, covectors=(None, None))
