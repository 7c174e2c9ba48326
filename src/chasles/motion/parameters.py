"""Robot and contact parameters whose values vary between simulations (`model_parameters=`)."""

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.functions.doors import library_of
from chasles.model import Description
from chasles.model.given import some_numbers
from chasles.motion.drivers.stepping import TIME_STEPPING
from chasles.motion.options import Plan
from chasles.motion.steps.parameters import FRICTION, STIFFNESS, parameter_shape

POSITIVE = ("mass", "damping", "friction", "armature", "stiffness")
"""Kinds of parameters that must not be negative. For the kind "stiffness", this applies only to
contacts."""


def check_names(source: Description, plan: Plan) -> None:
    """Raise an error for model parameters that are unknown or that the integrator rejects."""
    given = plan.model_parameters
    if given is not None and not isinstance(given, Mapping):
        problem = f"`model_parameters` must map names to values, not {given!r:.60}"
        remedy = "pass, for example, {'link3.mass': 2.0}"
        raise ArgumentError("E-MOTION-204", problem, remedy, part="model_parameters")
    for name in given or ():
        stepped = plan.integrator == TIME_STEPPING
        parameter_shape(source, _pairs(plan.contacts) if stepped else (), name)
        own = name in (FRICTION, STIFFNESS) or name.endswith(".friction")
        if own and not stepped:
            problem = f"`{name}` needs integrator {TIME_STEPPING!r}, not {plan.integrator!r:.60}"
            raise ArgumentError("E-MOTION-207", problem, part="model_parameters")


def _pairs(contacts: Any) -> Sequence[Any]:
    return () if contacts is None or isinstance(contacts, str) else tuple(contacts)


def given_values(
    source: Description, contacts: Any, given: Mapping[str, Any] | None, function: str
) -> Any:
    """Return the values of all model parameters, concatenated along the last axis (..., m).

    The result is an array from the same library as the values: NumPy, CuPy, PyTorch or JAX.
    """
    if not given:
        return None
    libraries = [row for row in map(library_of, given.values()) if row is not None]
    if libraries:
        package = libraries[0].package
        xp: Any = sys.modules["jax.numpy" if package == "jax" else package]
    else:
        xp = np
    parts = []
    for name, value in given.items():
        size = parameter_shape(source, _pairs(contacts), name)
        if library_of(value) is None:
            array = some_numbers(name, value, function).astype(float)
            _check_numbers(name, array)
            array = array if xp is np else xp.asarray(array)
        else:
            array = value
        shape = tuple(array.shape)
        if shape[len(shape) - len(size) :] != size:
            problem = f"{name} must have shape (..., {', '.join(map(str, size))})"
            raise InputError("E-MOTION-201", problem, part="model_parameters")
        parts.append(array.reshape((*shape[: len(shape) - len(size)], math.prod(size))))
    try:
        lead = np.broadcast_shapes(*(tuple(part.shape)[:-1] for part in parts))
    except ValueError:
        problem = "the leading shapes of `model_parameters` do not broadcast"
        raise InputError("E-MOTION-208", problem, part="model_parameters") from None
    return xp.concatenate([xp.broadcast_to(x, (*lead, x.shape[-1])) for x in parts], -1)


def _check_numbers(name: str, array: np.ndarray) -> None:
    what = name.rpartition(".")[2]
    signed = what not in POSITIVE or (what == "stiffness" and name != STIFFNESS)
    if not np.all(np.isfinite(array)) or (not signed and array.min(initial=1.0) < 0.0):
        problem = f"{name} must be finite{'' if signed else ' and not negative'}"
        raise InputError("E-MOTION-202", problem, part="model_parameters")
