"""Rollouts with PyTorch and JAX arrays, with gradients computed by `rollout_pullback`.

Array libraries compute gradients with respect to the entries of q, but a rollout is differentiated
with respect to displacements in the configuration space. The covectors of q are converted between
the two, so that gradients with respect to quaternions are tangent to the unit sphere.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from chasles.backends.arrays import check_shape
from chasles.expr import Variable
from chasles.functions.doors import Library, common, leading_shape, library_of, module
from chasles.motion.contract import Machine
from chasles.motion.drivers.compiled import Course, Rollout, kept_steps
from chasles.motion.drivers.stepping import Stepped
from chasles.motion.records import Trajectory

GIVEN = ("q", "qd", "tau", "contact_states", "parameters", "ctrl", "act", "model_parameters")
"""Names of the arguments of a rollout that may be arrays."""

SHAPING = ("q", "qd", "contact_states", "parameters", "act", "model_parameters")
"""Names of the arguments whose leading shapes determine the batch shape of a rollout."""

DIFFERENTIABLE = ("torch", "jax")


def array_library(course: Course) -> Library | None:
    """Return the library of a rollout's arrays if it supports gradients, else None."""
    values = [getattr(course, name) for name in GIVEN]
    if not any(map(library_of, values)):
        return None
    found = common(course.function, [Variable(name, ()) for name in GIVEN], values)
    return found if found is not None and found.package in DIFFERENTIABLE else None


def moved(robot: Machine, made: Rollout | Stepped, course: Course, library: Library) -> Trajectory:
    """Run a rollout and return its q and qd as differentiable arrays from the given library."""
    names = [name for name in GIVEN if getattr(course, name) is not None]
    given = [getattr(course, name) for name in names]
    for name, n in (("q", robot.model.nq), ("qd", robot.model.nv)):
        check_shape(course.function, Variable(name, (n,)), np.shape(getattr(course, name)))
    sizes = {name: np.shape(a) for name, a in zip(names, given, strict=True)}
    shaping = {name: np.broadcast_to(0.0, sizes[name]) for name in SHAPING if name in names}
    numbers = kept_steps(course.steps, course.every)
    shape = (*leading_shape(course.function, **shaping), len(numbers))

    def ahead(*arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        taken: dict[str, Any] = dict(zip(names, arrays, strict=True))
        run = made(replace(course, **taken))
        return run.q, run.qd

    def back(*arrays: np.ndarray) -> list[np.ndarray]:
        taken: dict[str, Any] = dict(zip(names, arrays, strict=False))
        q, _, by_q, by_qd = arrays[len(names) :]
        covectors = (_displacements(robot, q, by_q), by_qd)
        found = made.pullback(replace(course, **taken), covectors)._asdict()
        found["q"] = _entries(robot, q[..., 0, :], found["q"])
        if found["model_parameters"]:
            lead = found["qd"].shape[:-1]
            parts = [a.reshape(*lead, -1) for a in found["model_parameters"].values()]
            found["model_parameters"] = np.concatenate(parts, axis=-1)
        return [_summed(found[name], value.shape) for name, value in taken.items()]

    shapes = [(*shape, robot.model.nq), (*shape, robot.model.nv)]
    q, qd = module(f"moving_{library.package}").moved(ahead, back, given, shapes)
    return Trajectory(course.start + course.dt * numbers, q, qd, compiled=True)


def _displacements(robot: Machine, q: np.ndarray, bar: np.ndarray) -> np.ndarray:
    """Convert gradients (..., nq) with respect to q to gradients (..., nv) in the tangent space.

    The results are gradients with respect to displacements v in integrate(q, v).
    """
    pull = robot.mechanism.function("integrate").pullback(("v",))
    return np.asarray(pull(q, np.zeros(robot.model.nv), bar))


def _entries(robot: Machine, q: np.ndarray, bar: np.ndarray) -> np.ndarray:
    """Convert gradients (..., nv) in the tangent space to gradients (..., nq) with respect to q.

    The argument `bar` contains gradients with respect to displacements v in integrate(q, v).
    """
    pull = robot.mechanism.function("difference").pullback(("q1",))
    return np.asarray(pull(q, q, bar))


def _summed(bar: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Sum the gradients of an argument over the batch members that share the argument.

    The result has the argument's `shape`.
    """
    found = bar.sum(axis=tuple(range(bar.ndim - len(shape))))
    single = tuple(k for k, n in enumerate(shape) if n == 1 and found.shape[k] != 1)
    return np.asarray(found.sum(axis=single, keepdims=True)).reshape(shape)
