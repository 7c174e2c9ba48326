"""Sensor values of a mechanism: exact values from compiled functions, plus simulated errors."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.functions.doors import leading_shape, numbers, wrench_arguments
from chasles.functions.sensors import checked_sensors
from chasles.functions.tracing import WrenchKey
from chasles.mechanisms.mechanism import Mechanism
from chasles.model import Model
from chasles.model.given import a_generator, some_names, some_numbers
from chasles.model.sensors import CLOCK, SensorData, slices

_FORCES = ("force", "torque", "force_torque")
"""Sensor kinds that measure joint reactions, which include the forces of closed loops."""


@dataclass(frozen=True)
class ContactForce:
    """Force of one contact on a link, as arrays (..., 3) in world coordinates.

    `point` is the contact point (m). `normal` is the force along the contact normal (N), which
    pushes the link away; touch sensors measure this force. `friction` is the tangential force (N).
    `moment` is the moment of torsional and rolling friction (N m). To describe a contact between
    two links, create one object for each link, with opposite forces.
    """

    link: str
    point: Any
    normal: Any
    friction: Any = None
    moment: Any = None


Forces = Mapping[str, Any] | Sequence[ContactForce] | None
"""External forces: a wrench for each frame, or a list of contact forces."""


def chosen(model: Model, names: str | Sequence[str] | None) -> tuple[SensorData, ...]:
    """Return sensors by name, in the given order, or all sensors if `names` is None."""
    if names is None:
        return model.source.sensors
    some = some_names("sensors", names, "sense")
    known = {s.name: s for s in model.source.sensors}
    checked_sensors(model, "sense", [name for name in some if name not in known])
    return tuple(known[name] for name in dict.fromkeys(some))


def sense(
    mechanism: Mechanism,
    arrays: Sequence[Any],
    forces: Forces = None,
    *,
    sensors: Sequence[SensorData],
    multipliers: Any = None,
    t: Any = 0.0,
    threads: int | None = None,
    f_ext: Mapping[str, Any] | None = None,
    controls: Sequence[Any] = (None, None),
) -> dict[str, Any]:
    """Return the exact values of sensors by name, as `robot.sense` does.

    `f_ext` contains wrenches in addition to contact forces, and `controls` contains actuator
    controls and activations.
    """
    traced = tuple(sensor for sensor in sensors if sensor.traits.of == "motion")
    keys, values = exerted(mechanism.model, forces, f_ext)
    felt = mechanism.model.loop_rows and any(s.kind in _FORCES for s in traced)
    name = "closed_sensor_values" if felt else "sensor_values"
    loads = mechanism.loads(name, multipliers) if felt else ()
    compiled = mechanism.function(name, wrenches=keys, sensors=traced)
    flat = compiled.at(mechanism.t)(*arrays, *loads, *values, threads=threads)
    found = {name: flat[..., place] for name, place in slices(traced).items()}
    if driven := tuple(sensor for sensor in sensors if sensor.traits.of == "control"):
        found |= _driven(mechanism, arrays[:2], controls, driven, threads)
    clock = _times(t, flat.shape[:-1])
    return {s.name: clock if s.kind == CLOCK else found[s.name] for s in sensors}


def _times(t: Any, lead: tuple[int, ...]) -> np.ndarray:
    """Return the time (..., 1) of each state."""
    times = some_numbers("t", t, "sense")
    try:
        return np.broadcast_to(times, lead)[..., None] + 0.0
    except ValueError:
        problem = f"t has shape {times.shape}, which does not broadcast to the batch shape {lead}"
        raise InputError("E-SENSE-018", problem, part="sense") from None


def _driven(
    mechanism: Mechanism,
    arrays: Sequence[Any],
    controls: Sequence[Any],
    sensors: tuple[SensorData, ...],
    threads: int | None,
) -> dict[str, Any]:
    """Return the values of actuator sensors; missing controls and activations are zero."""
    every = mechanism.model.source.actuators
    counts = len(every), sum(each.active for each in every)
    given = [np.zeros(n) if x is None else x for n, x in zip(counts, controls, strict=True)]
    compiled = mechanism.function("actuator_values", sensors=sensors)
    flat = compiled.at(mechanism.t)(*arrays, *given, threads=threads)
    return {name: flat[..., place] for name, place in slices(sensors).items()}


def exerted(
    model: Model, forces: Forces, f_ext: Mapping[str, Any] | None = None
) -> tuple[tuple[WrenchKey, ...], list[Any]]:
    """Convert external forces and contact forces to arguments of compiled functions.

    Return keys and wrench arrays. The key of a wrench contains its frame, axes and point.
    """
    if isinstance(forces, Mapping):
        forces, f_ext = None, forces
    keys, values = wrench_arguments(model, f_ext)
    named, arrays, counts = list(keys), list(values), dict[str, int]()
    if forces is not None and not isinstance(forces, list | tuple):
        problem = f"`forces` must be {{frame: Wrench}} or ContactForce, not {type(forces).__name__}"
        raise ArgumentError("E-SENSE-019", problem, part="sense")
    for contact in forces or ():
        if not isinstance(contact, ContactForce):
            problem = f"`forces` must be {{frame: Wrench}} or ContactForce, not {contact!r:.60}"
            raise ArgumentError("E-SENSE-005", problem, part="sense")
        name = model.frame(contact.link).name
        for at, array in _contact(contact):
            counts[name] = counts.get(name, 0) + 1
            named.append(WrenchKey(name, "world", at, counts[name]))
            arrays.append(array)
    return tuple(named), arrays


def _contact(contact: ContactForce) -> Any:
    """Yield the normal force at the contact point, and friction as a wrench at the world origin."""
    none = np.zeros(3)
    parts = {
        "point": contact.point,
        "normal": contact.normal,
        "friction": none if contact.friction is None else contact.friction,
        "moment": none if contact.moment is None else contact.moment,
    }
    found = {word: numbers(f"sense: {word} of a contact", x, 3) for word, x in parts.items()}
    leading_shape("sense", **found)
    point, normal, along, turn = np.broadcast_arrays(*found.values())
    yield "contact", np.concatenate([point, normal], axis=-1)
    if contact.friction is None and contact.moment is None:
        return
    yield "world", np.concatenate([np.cross(point, along) + turn, along], axis=-1)


def with_errors(
    sensors: Sequence[SensorData], values: Mapping[str, Any], rng: Any, dt: float = math.inf
) -> dict[str, np.ndarray]:
    """Add sensor errors to exact values.

    If dt is finite, the last batch axis is time with step dt (s), along which the drift varies.
    """
    generator = a_generator(rng, "sense")
    found = {}
    for sensor in sensors:
        exact, noise = np.asarray(values[sensor.name], dtype=float), sensor.noise
        added = np.array(noise.offset or 0.0)
        added = added + noise.bias * generator.standard_normal(_once(exact.shape, dt))
        added = added + noise.deviation * generator.standard_normal(exact.shape)
        if noise.drift:
            added = added + noise.drift * _wander(
                exact.shape, noise.correlation_time, dt, generator
            )
        found[sensor.name] = exact + added
    return found


def _once(shape: tuple[int, ...], dt: float) -> tuple[int, ...]:
    """Return the shape of sensor errors that are constant during a run.

    If dt is finite, the last batch axis is the time axis of a run. Otherwise, all states belong to
    one run.
    """
    return (*shape[:-2], 1, shape[-1]) if math.isfinite(dt) else shape[-1:]


def _wander(
    shape: tuple[int, ...], correlation_time: float, dt: float, generator: np.random.Generator
) -> np.ndarray:
    """Return samples of a Gauss-Markov process with standard deviation 1.

    The time increases along the second-to-last axis, in steps of dt.
    """
    steps = generator.standard_normal(shape)
    keeps = math.exp(-dt / correlation_time) if math.isfinite(dt) else 0.0
    for k in range(1, shape[-2] if len(shape) > 1 else 1):
        steps[..., k, :] = (
            keeps * steps[..., k - 1, :] + math.sqrt(1.0 - keeps * keeps) * steps[..., k, :]
        )
    return steps
