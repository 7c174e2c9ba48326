"""Long chains assembled by halves: accuracy, number of steps, and operation counts."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support import close, raises

import chasles
from chasles.backends.cuda import driver
from chasles.backends.cuda.source import source
from chasles.mathematics.spatial import RigidInertia
from chasles.model import Description, Mimic, coupling
from chasles.numeric import handles
from chasles.numeric.handles import ALGORITHMS, Chain, traced


def states(n: int, lead: tuple[int, ...] = ()) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(3, *lead, n))


def mixed(n: int) -> chasles.Robot:
    """Return a chain in which every third joint is prismatic and every second has armature."""
    given = chasles.robots.general_chain(n).model.source
    joints = [
        replace(j, kind="prismatic" if k % 3 == 2 else j.kind, armature=0.1 * (k % 2))
        for k, j in enumerate(given.joints)
    ]
    return chasles.Robot(Description("mixed", given.links, tuple(joints)))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 21])
def test_accelerations_are_those_of_articulated_bodies(n: int) -> None:
    robot, (q, qd, tau) = mixed(n), states(n, (2, 3))
    expected = robot.forward_dynamics(q, qd, tau, method="articulated-body")
    close(Chain(robot).forward_dynamics(q, qd, tau), expected, 1e-11)


def test_arms_of_the_library() -> None:
    for robot in (chasles.robots.puma560(), chasles.robots.stanford_arm()):
        q, qd, tau = states(6)
        expected = robot.forward_dynamics(q, qd, tau)
        close(Chain(robot).forward_dynamics(q, qd, tau), expected, 1e-10)


def test_forces_that_hold_it_still() -> None:
    """Gravity torques keep a chain of 200 joints at rest."""
    robot = chasles.robots.general_chain(200)
    q = 0.1 * states(200)[0]
    tau, still = robot.gravity_forces(q), np.zeros(200)
    moved = Chain(robot).forward_dynamics(q, still, 1.001 * tau)
    error = Chain(robot).forward_dynamics(q, still, tau)
    assert np.max(np.abs(error)) < 1e-6 * np.max(np.abs(moved))


@pytest.mark.parametrize("n", [7, 8, 100])
def test_batches_grow_with_the_logarithm(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel calls grow with log2 n: prefix sums of n steps, and a tree of n + 1 pieces."""
    calls, real = [], handles.step
    monkeypatch.setattr(handles, "step", lambda name: (calls.append(name), real(name))[1])
    Chain(chasles.robots.general_chain(n)).forward_dynamics(*states(n))
    levels = math.ceil(math.log2(n + 1))
    assert [calls.count(a.__name__) for a in ALGORITHMS] == [
        1,
        math.ceil(math.log2(n)),
        1,
        levels,
        levels,
    ]


def test_a_state_has_the_same_bits_alone_and_on_threads() -> None:
    chain, (q, qd, tau) = Chain(mixed(40)), states(40, (5,))
    found = chain.forward_dynamics(q, qd, tau, threads=2)
    assert np.array_equal(found[3], chain.forward_dynamics(q[3], qd[3], tau[3], threads=1))


def test_work_that_processors_must_share() -> None:
    """The method needs 8 to 10 times the operations of articulated bodies.

    At least as many processors are needed for a speedup.
    """
    n = 64
    work = {a.__name__: traced(a).count.multiplications for a in ALGORITHMS}
    total = n * (sum(work.values()) + work["composed"] * (math.log2(n) - 1))
    bodies = chasles.cost(
        chasles.robots.general_chain(n), "forward_dynamics", method="articulated-body"
    ).multiplications
    assert 8.0 < total / bodies < 10.0


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.__name__)
def test_programs_are_kernels_of_a_gpu(algorithm) -> None:
    """NVIDIA's compiler accepts each program as a kernel with one row per thread."""
    try:
        made = driver.compile(source(traced(algorithm), "float64", "rows", block=64).text, "sm_90")
    except chasles.errors.ChaslesError as error:
        pytest.skip(str(error))
    assert made


@pytest.mark.parametrize("lead", [(), (0,), (2, 3)])
def test_arrays_of_other_libraries(lead: tuple[int, ...]) -> None:
    """Results have the same bits as with NumPy, and float32 arrays give float32 results."""
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    chain, arrays = Chain(mixed(7)), states(7, lead)
    single = arrays.astype(np.float32)
    expected, rough = chain.forward_dynamics(*arrays), chain.forward_dynamics(*single)
    assert (expected.dtype, rough.dtype) == (np.float64, np.float32)
    tensors = [torch.from_numpy(a) for a in arrays]
    found = chain.forward_dynamics(*tensors, threads=1)
    assert np.array_equal(found.numpy(), expected)
    assert np.array_equal(chain.forward_dynamics(*(t.float() for t in tensors)).numpy(), rough)
    with jax.enable_x64(True):
        given = [jax.numpy.asarray(a) for a in arrays]
        for function in (chain.forward_dynamics, jax.jit(chain.forward_dynamics)):
            assert np.array_equal(function(*given), expected)
    assert np.array_equal(chain.forward_dynamics(*map(jax.numpy.asarray, single)), rough)


def test_derivatives_by_other_libraries() -> None:
    """Gradients by PyTorch and JAX equal central differences."""
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    chain, arrays, weights = Chain(mixed(5)), states(5), np.random.default_rng(0).normal(size=5)
    h, around = 1e-6, np.concatenate([np.eye(5), -np.eye(5)])
    given = [torch.from_numpy(a).requires_grad_() for a in arrays]
    (chain.forward_dynamics(*given) @ torch.from_numpy(weights)).backward()
    with jax.enable_x64(True):
        gradient = jax.grad(lambda *a: chain.forward_dynamics(*a) @ weights, (0, 1, 2))
        by_jax = [np.asarray(g) for g in gradient(*map(jax.numpy.asarray, arrays))]
    for k in range(3):
        moved = [a + h * around if j == k else a for j, a in enumerate(arrays)]
        ahead, behind = np.split(chain.forward_dynamics(*moved) @ weights, 2)
        close(given[k].grad.numpy(), (ahead - behind) / (2.0 * h), 1e-6)
        close(by_jax[k], given[k].grad.numpy(), 1e-12)


def test_other_robots_are_refused() -> None:
    plain = chasles.robots.planar(3)
    source = plain.model.source
    bare = [
        replace(k, inertia=RigidInertia.zero(), massless=True) if k.name == "link2" else k
        for k in source.links
    ]
    first, second, third = source.joints
    hung = [replace(first, stiffness=5.0), second, third]
    geared = [first, second, replace(third, mimic=Mimic("joint2", 2.0))]
    skewed = [first, second, replace(third, kind="helical", pitch=0.1)]
    for robot, reason in (
        (chasles.robots.general_tree(5, 2), "branch"),
        (chasles.robots.four_bar(), "constrains"),
        (plain.with_couplings(coupling("cam", ["joint1", "joint2"], lambda a, b: a - b)), "'cam'"),
        (plain.drive({"joint1": lambda t: t}), "prescribed motion"),
        (chasles.Robot(replace(source, joints=tuple(hung))), "springs"),
        (chasles.Robot(replace(source, joints=tuple(geared))), "mimics"),
        (chasles.Robot(replace(source, joints=tuple(skewed))), "helical"),
        (chasles.Robot(replace(source, links=tuple(bare))), "'link2' lacks mass"),
    ):
        with raises("E-MATH-350", reason, "robot.forward_dynamics"):
            Chain(robot)


def test_arguments_are_checked_as_for_a_robot() -> None:
    class OnGpu:
        def __array__(self, *_: object) -> None:
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

    chain, x = Chain(chasles.robots.planar(2)), np.zeros(2)
    for q, code in ((OnGpu(), "E-CALL-006"), (["a", "b"], "E-CALL-008"), ([0.0], "E-CALL-009")):
        with raises(code, "Chain.forward_dynamics", "q"):
            chain.forward_dynamics(q, x, x)
    with raises("E-CALL-057"):
        chain.forward_dynamics(np.zeros((2, 2)), np.zeros((3, 2)), x)
    torch = pytest.importorskip("torch")
    with raises("E-CALL-039", "PyTorch", "NumPy"):
        chain.forward_dynamics(torch.zeros(2), x, x)
    with raises("E-CALL-009", "Chain.forward_dynamics", "qd"):
        chain.forward_dynamics(torch.zeros(2), torch.zeros(3), 0.0)
    with raises("E-CALL-003", "threads"):
        chain.forward_dynamics(x, x, x, threads=0)
