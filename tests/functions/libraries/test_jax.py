"""JAX arrays: bitwise results of NumPy, with any combination of jit, vmap and grad."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import close, pairwise, raises, state, tree

import chasles
from chasles.backends import arrays as pool
from chasles.backends import xla
from chasles.backends.llvm.source import WORTH_THREADS
from chasles.robots import planar, puma560

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = pytest.importorskip("jax.numpy")
check_grads = pytest.importorskip("jax.test_util").check_grads

STATES: dict[str, int] = {
    "inverse_dynamics": 3,
    "mass_matrix": 1,
    "kinetic_energy": 2,
    "ltdl_factors": 1,
    "integrate": 2,
}
"""Functions with one result, several results or a scalar, and the number of array arguments."""


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    """Enable double precision, which JAX disables by default."""
    with jax.enable_x64(True):
        yield


def arrays(robot: chasles.Robot, count: int, size: Any = (), seed: int = 0) -> list[Any]:
    return [jnp.asarray(a) for a in state(robot, seed, size)[:count]]


def equal(actual: Any, expected: Any) -> None:
    """Check that results have the same type and are bitwise identical."""
    if isinstance(expected, tuple):
        assert isinstance(actual, tuple)
        for a, b in zip(actual, expected, strict=True):
            equal(a, b)
        return
    assert isinstance(actual, jax.Array)
    assert actual.dtype == expected.dtype
    assert np.array_equal(actual, expected)


# Values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "size", "dtype"),
    pairwise(STATES, [(), (5,), (2, 3), (0,)], ["float64", "float32"]),
)
def test_same_bits_as_numpy(function: str, size: tuple[int, ...], dtype: str) -> None:
    robot = tree(3, 1, floating=True)
    given = [a.astype(dtype) for a in state(robot, 0, size)[: STATES[function]]]
    method = getattr(robot, function)
    expected = method(*given)
    equal(method(*map(jnp.asarray, given)), expected)
    equal(jax.jit(lambda *a: method(*a))(*given), expected)


def test_shared_arguments_lists_and_numpy() -> None:
    robot = puma560()
    q, qd, qdd = state(robot, 1, (4, 3))
    expected = robot.inverse_dynamics(q, qd[0, 0], qdd[:, :1])
    x, xdd = map(jnp.asarray, (q, qdd))
    equal(robot.inverse_dynamics(x, qd[0, 0], xdd[:, :1]), expected)
    equal(robot.inverse_dynamics(x, list(qd[0, 0]), xdd[:, :1]), expected)
    whole = robot.inverse_dynamics(x, jnp.ones(6, int), xdd)
    equal(whole, robot.inverse_dynamics(q, np.ones(6), qdd))


def test_single_precision_is_what_jax_has_by_itself() -> None:
    """Without x64, all arrays are float32, even NumPy's float64 arrays."""
    robot = planar(2)
    given = state(robot, 2, 3)
    with jax.enable_x64(False):
        made = robot.inverse_dynamics(jnp.asarray(given[0]), *given[1:])
    equal(made, robot.inverse_dynamics(*(a.astype("float32") for a in given)))


def test_options_forces_and_derivatives() -> None:
    robot = puma560()
    q, qd, qdd = state(robot, 2, 4)
    x, xd, xdd = map(jnp.asarray, (q, qd, qdd))
    wrench = np.arange(6.0)
    equal(
        robot.inverse_dynamics(x, xd, xdd, f_ext={"tool": jnp.asarray(wrench)}),
        robot.inverse_dynamics(q, qd, qdd, f_ext={"tool": wrench}),
    )
    equal(robot.jacobian(x, frame="tool"), robot.jacobian(q, frame="tool"))
    equal(
        robot.derivatives("inverse_dynamics", x, xd, xdd),
        robot.derivatives("inverse_dynamics", q, qd, qdd),
    )


def test_large_batches_are_shared_among_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = puma560()
    work = robot.function("mass_matrix").kernel.artifact.work
    used = []

    def cores() -> int:
        used.append(2)
        return 2

    monkeypatch.setattr(pool, "cores", cores)
    q = robot.random(0, size=WORTH_THREADS // work + 100)
    expected = robot.mass_matrix(q)
    used.clear()
    equal(jax.jit(lambda q: robot.mass_matrix(q))(q), expected)
    assert used


def test_programs_with_much_memory_run_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs with large workspaces run in Python, because XLA's threads may have small stacks."""
    monkeypatch.setattr(xla, "SMALL_WORKSPACE", 0)
    robot = planar(2).with_gravity((0.0, 0.0, -1.25))  # no other test makes its handler
    for size in ((), 5):
        q = robot.random(0, size=size)
        equal(jax.jit(lambda q: robot.mass_matrix(q))(q), robot.mass_matrix(q))


# Derivatives -------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", STATES)
def test_derivatives_with_quaternions_of_any_length(function: str) -> None:
    """Derivatives agree with finite differences in all nq entries of q, forward and reverse."""
    robot = tree(3, 1, floating=True)
    q, *rates = arrays(robot, STATES[function], 2)
    method = getattr(robot, function)
    check_grads(lambda *a: method(*a), (1.3 * q, *rates), order=1)


def test_shared_arguments_get_the_sum_of_their_gradients() -> None:
    robot = planar(2)
    q, qd, _ = arrays(robot, 3, 3)
    arguments = (q, qd[0], jnp.ones((2, 1, 2)))
    check_grads(lambda *a: robot.inverse_dynamics(*a), arguments, order=1)


def test_second_derivatives() -> None:
    robot = planar(2)
    check_grads(lambda *a: robot.forward_dynamics(*a), arrays(robot, 3), order=2)


def test_jacobians_are_the_robots_own() -> None:
    robot = puma560()
    q, qd, qdd = state(robot, 3)
    expected = robot.derivatives("inverse_dynamics", q, qd, qdd)
    for jacobian in (jax.jacrev, jax.jacfwd):
        made = jax.jit(jacobian(lambda *a: robot.inverse_dynamics(*a), argnums=(0, 1, 2)))
        for actual, wanted in zip(made(q, qd, qdd), expected, strict=True):
            close(actual, wanted, 1e-11)


def test_transformations_of_transformations() -> None:
    robot = puma560()
    q = robot.random(0, size=4)

    def energy(q: Any) -> Any:
        return robot.potential_energy(q)

    slopes = robot.derivatives("gravity_forces", q, wrt="q")
    close(jax.jit(jax.vmap(jax.hessian(energy)))(q), slopes, 1e-11)
    close(jax.vmap(jax.jit(jax.grad(energy)))(q), robot.gravity_forces(q), 1e-12)
    total = jax.grad(lambda q: jax.vmap(energy)(q).sum())(q)
    close(total, robot.gravity_forces(q), 1e-12)

    def rolled(q: Any, _: None) -> Any:
        return q - 1e-4 * robot.gravity_forces(q), None

    expected = q[0]
    for _ in range(3):
        expected = expected - 1e-4 * robot.gravity_forces(expected)
    close(jax.lax.scan(rolled, jnp.asarray(q[0]), None, length=3)[0], expected, 1e-14)


@pytest.mark.parametrize("places", [(0, 0, 0), (0, None, None), (None, 1, 0), (1, 0, None)])
def test_vmap_over_any_axis(places: tuple[int | None, ...]) -> None:
    """Mapped arguments may be batches themselves, next to shared arguments."""
    robot = planar(2)
    batches = np.random.default_rng(0).normal(size=(3, 5, 3, 2))
    pairs = list(zip(batches, places, strict=True))
    arguments = [a[0] if p is None else np.moveaxis(a, 0, p) for a, p in pairs]
    expected = [
        robot.inverse_dynamics(*(a[0] if p is None else a[k] for a, p in pairs)) for k in range(5)
    ]
    mapped = jax.vmap(lambda *a: robot.inverse_dynamics(*a), in_axes=places)
    equal(mapped(*arguments), np.stack(expected))


def test_a_mapped_state_beside_a_shared_batch() -> None:
    robot = planar(2)
    q, qd = np.random.default_rng(0).normal(size=(2, 5, 2))
    mapped = jax.vmap(lambda q: robot.kinetic_energy(q, jnp.asarray(qd)))
    equal(mapped(q), robot.kinetic_energy(q[:, None], qd))


# Errors ------------------------------------------------------------------------------------------


def test_bad_arguments() -> None:
    robot = planar(2)
    good = jnp.zeros(2)
    cases: list[tuple[list[Any], dict[str, Any], type[Exception], str]] = [
        ([good, good, jnp.zeros(3)], {}, ValueError, "E-CALL-009 (..., 2)"),
        ([good, good, jnp.zeros(2, jnp.bfloat16)], {}, TypeError, "E-CALL-044"),
        ([good, good, jnp.zeros(2, bool)], {}, TypeError, "E-CALL-044"),
        ([jnp.zeros((3, 2)), jnp.zeros((4, 2)), good], {}, ValueError, "E-CALL-045"),
        ([good] * 3, {"out": good}, TypeError, "E-CALL-043 out="),
        ([good] * 3, {"threads": 2}, TypeError, "E-CALL-043 threads="),
    ]
    for arguments, options, error, match in cases:
        with raises(match, kind=error):
            robot.inverse_dynamics(*arguments, **options)
    slow = chasles.compile(robot, "mass_matrix", backend="numpy")
    with raises("E-CALL-046"):
        slow(good)


def test_arrays_outside_jit_are_compiled_as_a_whole() -> None:
    """Calls outside jit are prepared, whether the first call was traced or contained lists."""
    from chasles.functions.libraries.jax import concrete

    kinds: list[type] = []
    jax.jit(lambda x: kinds.append(concrete()) or x)(1.0)
    assert kinds == [type(jnp.zeros(2))]
    function = chasles.compile(puma560(), "inverse_dynamics")
    q, qd, qdd = state(puma560(), 1, 4)
    arrays = [jnp.asarray(a) for a in (q, qd, qdd)]
    right = function(q, qd, qdd)
    np.testing.assert_allclose(jax.jit(function)(*arrays), right)
    assert not function.quick
    for given in ((arrays[0], qd, [1.0] * 6), arrays, arrays):
        expected = function(q, qd, given[2]) if given is not arrays else right
        np.testing.assert_allclose(function(*given), expected)
        assert kinds[0] in function.quick
    with raises("E-CALL-043", kind=TypeError):
        function(*arrays, threads=2)
    with raises("E-CALL-035", kind=TypeError):
        function(*arrays[:2])
    with raises("E-CALL-009", kind=ValueError):
        function(arrays[0][:, :3], *arrays[1:])
