"""Motions of PyTorch and JAX arrays agree with NumPy, and their gradients with differences."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import close, raises

import chasles
from chasles import contact
from chasles.robots import planar, quadruped

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = pytest.importorskip("jax.numpy")

RNG = np.random.default_rng(4)
ARM = planar(2)
RUN = {"dt": 0.01, "steps": 12, "every": 5}


def law(t: Any, q: Any, qd: Any, p: Any) -> list[Any]:
    return [p[0] * (0.3 - x) - p[1] * v for x, v in zip(q, qd, strict=True)]


def tensors(*arrays: Any) -> list[Any]:
    return [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]


def test_torch_has_numpys_motion_and_differences() -> None:
    q, qd, p = RNG.normal(size=(3, 2)), RNG.normal(size=2), np.array([5.0, 0.7])
    given = tensors(q, qd, p)

    def moved(q: Any, qd: Any, p: Any) -> Any:
        run = ARM.rollout(q, qd, law, parameters=p, **RUN)
        return run.q, run.qd

    run = ARM.rollout(q, qd, law, parameters=p, **RUN)
    here = moved(*given)
    assert (here[0].detach().numpy() == run.q).all()
    assert (here[1].detach().numpy() == run.qd).all()
    assert torch.autograd.gradcheck(moved, given)


@pytest.mark.parametrize("rows", [False, True])
def test_torques_as_tensors(rows: bool) -> None:
    shape = (2, 12, 2) if rows else (2,)
    given = tensors(RNG.normal(size=(2, 2)), RNG.normal(size=(2, 2)), RNG.normal(size=shape))
    assert torch.autograd.gradcheck(lambda q, v, tau: ARM.rollout(q, v, tau, **RUN).q, given)
    other = ARM.simulate(*given[:2], tau=given[2], dt=0.01, steps=12, every=5, integrator="euler")
    same = ARM.rollout(*given, integrator="euler", **RUN)
    assert (other.q == same.q).all()
    other.q.sum().backward()
    bar = given[0].grad.clone()
    given[0].grad = None
    same.q.sum().backward()
    assert (given[0].grad == bar).all()


def test_quaternions_have_tangent_gradients() -> None:
    robot = quadruped()
    q = robot.integrate(robot.neutral(), 0.3 * RNG.normal(size=18))
    qd, bar = RNG.normal(size=18), RNG.normal(size=(3, 19))
    (start,) = tensors(q)
    run = robot.rollout(start, torch.tensor(qd), dt=1e-3, steps=2)
    (run.q * torch.tensor(bar)).sum().backward()
    found = start.grad.numpy()
    assert abs(found[:4] @ q[:4]) < 1e-12
    move, h = RNG.normal(size=18), 1e-6

    def loss(h: float) -> float:
        there = robot.integrate(q, h * move)
        return float((robot.rollout(there, qd, dt=1e-3, steps=2).q * bar).sum())

    along = (robot.integrate(q, h * move) - robot.integrate(q, -h * move)) / (2 * h)
    assert found @ along == pytest.approx((loss(h) - loss(-h)) / (2 * h), rel=1e-6)


def test_single_precision_and_wrong_arguments() -> None:
    q = torch.zeros(2, requires_grad=True)
    run = ARM.rollout(q, torch.ones(2), **RUN)
    assert run.q.dtype == torch.float32
    run.q.sum().backward()
    assert q.grad.dtype == torch.float32
    with raises("E-CALL-039"):
        ARM.rollout(q, np.zeros(2), **RUN)
    with raises("E-CALL-057"):
        ARM.rollout(torch.zeros(3, 2), torch.zeros(4, 2), **RUN)
    with raises("E-MOTION-198"):
        ARM.simulate(q, q, control=abs_law, dt=0.01, steps=2, integrator="time-stepping")


def abs_law(t: Any, q: Any, qd: Any) -> Any:
    return -np.abs(np.asarray(q, dtype=float))


def test_jax_under_jit_grad_and_vmap() -> None:
    q, qd, p = RNG.normal(size=(3, 2)), RNG.normal(size=2), np.array([5.0, 0.7])
    by_q = RNG.normal(size=(3, 4, 2))
    with jax.enable_x64(True):

        def loss(q: Any, qd: Any, p: Any) -> Any:
            return (ARM.rollout(q, qd, law, parameters=p, **RUN).q * by_q).sum()

        found = jax.jit(jax.grad(loss, (0, 1, 2)))(*map(jnp.asarray, (q, qd, p)))
        alone = jax.vmap(lambda q: ARM.rollout(q, jnp.asarray(qd), **RUN).q)(jnp.asarray(q))
    expected = ARM.rollout_pullback(q, qd, law, parameters=p, covectors=(by_q, None), **RUN)
    close(found[0], expected.q, 1e-12)
    close(found[1], expected.qd.sum(axis=0), 1e-12)
    close(found[2], expected.parameters.sum(axis=0), 1e-12)
    assert (np.asarray(alone) == ARM.rollout(q, qd, **RUN).q).all()


def _ball(folder: Path) -> Path:
    body = '<body name="ball"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>'
    (folder / "ball.xml").write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    return folder / "ball.xml"


def test_time_steps_with_contact_of_tensors_are_differentiable(tmp_path: Path) -> None:
    """The derivative of a frictionless ball's distance by its speed is the duration."""
    robot = chasles.load(_ball(tmp_path))
    pair = contact.Pair(contact.Sphere("ball", 0.1), contact.Plane(), contact.Rigid(0.0))
    q = torch.tensor([1.0, 0, 0, 0, 0, 0, 0.1], dtype=torch.float64)
    (qd,) = tensors([0.0, 0, 0, 2.0, 0, 0])
    options = {"dt": 2e-3, "steps": 50, "contacts": [pair], "integrator": "time-stepping"}
    run = robot.rollout(q, qd, **options)
    run.q[-1, 4].backward()
    assert qd.grad[3].item() == pytest.approx(0.1, rel=1e-9)


def test_closed_loops_choose_their_coordinates_when_the_motion_is_computed() -> None:
    """Coordinates are chosen when the motion is computed, since q is a tracer under `jit`."""
    robot = chasles.robots.four_bar()
    q, qd = robot.assemble([0.6], robot.neutral()), np.zeros(3)
    run = {"dt": 2e-3, "steps": 20, "every": 20, "integrator": "time-stepping"}
    by_q = RNG.normal(size=(2, 3))
    expected = robot.rollout_pullback(q, qd, covectors=(by_q, None), **run)
    (start,) = tensors(q)
    (robot.rollout(start, torch.zeros(3), **run).q * torch.tensor(by_q)).sum().backward()
    close(start.grad.numpy(), expected.q, 1e-12)
    with jax.enable_x64(True):

        def loss(q: Any) -> Any:
            return (robot.simulate(q, jnp.zeros(3), **run).q * by_q).sum()

        found = jax.jit(jax.grad(loss))(jnp.asarray(q))
    close(found, expected.q, 1e-12)


@pytest.mark.parametrize("integrator", ["semi-implicit", "time-stepping"])
def test_model_parameters_are_arrays_of_their_library(integrator: str) -> None:
    """Masses differ within a batch, and gravity is shared.

    Gradients agree with differences, NumPy and JAX.
    """
    q, qd, mass = RNG.normal(size=(3, 2)), RNG.normal(size=2), np.array([0.5, 1.0, 2.0])
    gravity, run = np.array([0.0, -9.81, 0.3]), {**RUN, "integrator": integrator}

    def moved(mass: Any, gravity: Any, library: Any = torch.tensor) -> Any:
        own = {"link2.mass": mass, "gravity": gravity}
        return ARM.rollout(library(q), library(qd), model_parameters=own, **run).q

    given = tensors(mass, gravity)
    assert torch.autograd.gradcheck(moved, given, rtol=1e-4, atol=1e-6)
    by_q = RNG.normal(size=(3, 4, 2))
    (moved(*given) * torch.tensor(by_q)).sum().backward()
    own = {"link2.mass": mass, "gravity": gravity}
    found = ARM.rollout_pullback(q, qd, covectors=(by_q, None), model_parameters=own, **run)
    close(given[0].grad, found.model_parameters["link2.mass"], 1e-12)
    close(given[1].grad, found.model_parameters["gravity"].sum(axis=0), 1e-12)
    with jax.enable_x64(True):

        def loss(mass: Any) -> Any:
            return (moved(mass, jnp.asarray(gravity), jnp.asarray) * by_q).sum()

        close(jax.jit(jax.grad(loss))(jnp.asarray(mass)), given[0].grad, 1e-12)
    each = ARM.with_parameters({"link2.mass": 2.0, "gravity": gravity})
    alone = each.rollout(q[2], qd, **run)
    close(moved(*given)[2].detach(), alone.q, 1e-12)
