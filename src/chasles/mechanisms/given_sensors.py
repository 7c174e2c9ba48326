"""Checks of user-defined sensors: their fields, and the frames and joints they refer to."""

import math
from dataclasses import replace
from typing import Any

from chasles.errors import InputError
from chasles.mathematics.spatial import Transform
from chasles.model.given import a_name, a_number, is_finite, some_numbers
from chasles.model.model import Model
from chasles.model.sensors import SENSORS, SURFACES, NoiseData, SensorData, Surface
from chasles.names import suggest

NUMBERS = {
    "magnetometer": (3,),
    "camera_projection": (4,),
    "frame_quaternion": (0, 4),
    "joint_limit_position": (0, 1),
    "joint_limit_velocity": (0, 1),
    "range": (0, 1),
    "force": (0, 1),
    "torque": (0, 1),
    "force_torque": (0, 1),
}
"""Allowed lengths of the field `numbers`, by sensor kind. Other kinds allow any length."""


def checked(model: Model, sensor: SensorData) -> SensorData:
    """Return a user-defined sensor after checking its fields, frames and joint."""
    sensor = _with_parts(sensor)
    part = f"sensor {sensor.name!r:.60}"
    on = sensor.traits.on
    for name in sensor.frames:
        model.frame(name)
    if on in ("frame", "link") and not sensor.frame:
        raise InputError("E-SENSE-007", f"a {sensor.kind} sensor requires `frame`", part=part)
    links = {link.name: link for link in model.source.links}
    if on == "link" and sensor.frame not in links:
        problem = f"a {sensor.kind} sensor requires a link, but {sensor.frame!r:.60} is not a link"
        raise InputError("E-SENSE-020", problem, suggest(sensor.frame, links), part=part)
    if on in ("tendon", "actuator"):
        parts = model.source.rotors if on == "tendon" else model.source.actuators
        names = {each.name: each for each in parts}
        if sensor.joint not in names:
            problem = f"there is no {on} {sensor.joint!r}"
            raise InputError("E-SENSE-017", problem, suggest(sensor.joint, names), part=part)
    if on == "joint":
        joints = {body.data.name: body.joint for body in model.bodies}
        if sensor.joint not in joints:
            problem = f"there is no moving joint {sensor.joint!r}"
            raise InputError("E-SENSE-008", problem, suggest(sensor.joint, joints), part=part)
        _check_joint(sensor, joints[sensor.joint])
    if sensor.kind in ("touch", "inside") and sensor.zone is None:
        raise InputError("E-SENSE-010", f"a {sensor.kind} sensor requires `zone`", part=part)
    return sensor if on in ("joint", "tendon", "actuator") else replace(sensor, joint="")


def _check_joint(sensor: SensorData, joint: Any) -> None:
    """Raise an error unless the joint of a sensor has one degree of freedom, or is spherical."""
    ball = sensor.kind in ("joint_quaternion", "joint_angular_velocity")
    fits = joint.units == ("1",) * 4 if ball else joint.nq == joint.nv == 1
    if not fits:
        wanted = "a spherical joint" if ball else "a joint with one degree of freedom"
        problem = f"a {sensor.kind} sensor requires {wanted}, but {sensor.joint!r} is {joint.kind}"
        raise InputError("E-SENSE-009", problem, part=f"sensor {sensor.name!r}")


def _with_parts(sensor: SensorData) -> SensorData:
    """Check the fields of a sensor, and return the sensor with its field `numbers` as floats."""
    part = f"sensor {a_name('a sensor', sensor.name, 'with_sensors')!r:.60}"
    for name in ("kind", "frame", "reference", "joint"):
        a_name(name, getattr(sensor, name), part)
    if sensor.kind not in SENSORS:
        problem = f"unknown sensor kind {sensor.kind!r:.60}"
        raise InputError("E-SENSE-006", problem, suggest(sensor.kind, SENSORS), part=part)
    for name in ("pose", "reference_pose"):
        _check_pose(name, getattr(sensor, name), part)
    if not (sensor.cutoff == 0.0 or (is_finite(sensor.cutoff) and sensor.cutoff > 0.0)):
        problem = f"`cutoff` must be non-negative, not {sensor.cutoff!r:.60}"
        raise InputError("E-SENSE-012", problem, part=part)
    _check_noise(sensor.noise, sensor.traits.size, part)
    given = _row("numbers", sensor.numbers, part)
    wanted = NUMBERS.get(sensor.kind, (len(given),))
    if len(given) not in wanted:
        counts = " or ".join(map(str, wanted))
        problem = f"a {sensor.kind} sensor requires {counts} entries in `numbers`, not {len(given)}"
        raise InputError("E-SENSE-011", problem, part=part)
    seen = sensor.seen
    if not isinstance(seen, tuple | list):
        problem = f"`seen` must be a tuple of Surface objects, not {type(seen).__name__}"
        raise InputError("E-SENSE-021", problem, part=part)
    surfaces = tuple(_with_numbers(each, part) for each in seen)
    zone = None if sensor.zone is None else _with_numbers(sensor.zone, part)
    return replace(sensor, numbers=given, seen=surfaces, zone=zone, cutoff=float(sensor.cutoff))


def _row(name: str, given: Any, part: str) -> tuple[float, ...]:
    """Return a sequence of finite numbers as a tuple of floats, or raise an error."""
    found = some_numbers(name, given, part)
    if found.ndim != 1 or not all(map(math.isfinite, found.tolist())):
        problem = f"{name} must be a tuple of finite numbers, not {given!r:.60}"
        raise InputError("E-SENSE-022", problem, part=part)
    return tuple(map(float, found.tolist()))


def _check_pose(name: str, pose: Any, part: str) -> None:
    """Raise an error unless a pose is a transform of finite numbers."""
    known = isinstance(pose, Transform)
    if not known or not all(map(is_finite, (*pose.r, *(x for row in pose.R.rows for x in row)))):
        problem = f"{name} must be a Transform of finite numbers, not {pose!r:.60}"
        raise InputError("E-SENSE-023", problem, part=part)


def _check_noise(noise: Any, size: int, part: str) -> None:
    """Raise an error unless the deviations, correlation time and offset of the noise are valid."""
    if not isinstance(noise, NoiseData):
        problem = f"`noise` must be a NoiseData object, not {type(noise).__name__}"
        raise InputError("E-SENSE-024", problem, part=part)
    for name in ("deviation", "bias", "drift"):
        value = getattr(noise, name)
        if not (is_finite(value) and value >= 0.0):
            problem = f"noise {name} must be non-negative, not {value!r:.60}"
            raise InputError("E-SENSE-025", problem, part=part)
    if not a_number("correlation_time", noise.correlation_time, part) > 0.0:
        problem = f"`correlation_time` must be positive, not {noise.correlation_time!r:.60}"
        raise InputError("E-SENSE-026", problem, part=part)
    if len(_row("offset", noise.offset, part)) not in (0, size):
        problem = f"the noise offset must have {size} entries, not {len(noise.offset)}"
        raise InputError("E-SENSE-027", problem, part=part)


def _with_numbers(surface: Any, part: str) -> Surface:
    """Check a sensor's surface, and convert its sizes and triangles to floats."""
    if not isinstance(surface, Surface):
        problem = f"`zone` and `seen` must contain Surface objects, not {type(surface).__name__}"
        raise InputError("E-SENSE-028", problem, part=part)
    a_name("frame of a surface", surface.frame, part)
    if a_name("kind of a surface", surface.kind, part) not in SURFACES:
        problem = f"unknown surface kind {surface.kind!r:.60}"
        raise InputError("E-SENSE-029", problem, suggest(surface.kind, SURFACES), part=part)
    _check_pose("pose of a surface", surface.pose, part)
    size = [a_number("size of a surface", x, part) for x in _several(surface.size, part)]
    most = math.inf if surface.kind == "plane" else math.nextafter(math.inf, 0.0)
    if len(size) != SURFACES[surface.kind] or not all(0.0 < x <= most for x in size):
        wanted = f"{SURFACES[surface.kind]} positive numbers"
        problem = f"the size of a {surface.kind} must be {wanted}, not {surface.size!r:.60}"
        raise InputError("E-SENSE-030", problem, part=part)
    rows = [_row("triangle", each, part) for each in _several(surface.triangles, part)]
    if any(len(row) != 9 for row in rows) or bool(rows) != (surface.kind == "mesh"):
        problem = (
            "a mesh needs triangles (nine coordinates each); other shapes must not have triangles"
        )
        raise InputError("E-SENSE-031", problem, part=part)
    return surface._replace(size=tuple(size), triangles=tuple(rows))


def _several(given: Any, part: str) -> Any:
    """Return a tuple or list unchanged; raise an error for anything else."""
    if not isinstance(given, tuple | list):
        kind = type(given).__name__
        problem = f"`size` and `triangles` of a surface must be lists or tuples, not {kind}"
        raise InputError("E-SENSE-032", problem, part=part)
    return given
