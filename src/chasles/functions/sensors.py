"""Check the sensor names passed to functions."""

from typing import Any

from chasles.errors import InputError
from chasles.model import Model
from chasles.model.given import some_names
from chasles.model.sensors import SensorData
from chasles.names import suggest


def checked_sensors(model: Model, function: str, names: Any) -> tuple[SensorData, ...]:
    """Return the sensors with the given names, or all supported sensors if `names` is None."""
    known = {sensor.name: sensor for sensor in model.source.sensors}
    of = "control" if function == "actuator_values" else "motion"
    if names is None:
        return tuple(sensor for sensor in known.values() if sensor.traits.of == of)
    if isinstance(names, tuple) and names and all(isinstance(s, SensorData) for s in names):
        return names
    chosen = [names] if isinstance(names, str) else list(some_names("sensors", names, function))
    for name in chosen:
        if name not in known:
            problem, part = f"no sensor {name!r}", f"robot {model.name!r}"
            raise InputError("E-SENSE-001", problem, suggest(name, known), part=part)
        if known[name].traits.of != of:
            problem = (
                f"sensor {name!r} has type {known[name].kind}, which {function} does not support"
            )
            raise InputError("E-SENSE-002", problem, "use robot.sense", part=function)
    return tuple(known[name] for name in dict.fromkeys(chosen))
