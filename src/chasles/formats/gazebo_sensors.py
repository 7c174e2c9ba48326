"""Read Gazebo sensors from SDF files and from `<gazebo>` elements in URDF files.

Supported types are imu, force_torque, magnetometer and ray (including lidar, gpu_ray and
gpu_lidar), as defined at sdformat.org. Sensors of other types are ignored with a note.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from lxml import etree

from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.rotations import matrix_from_rpy
from chasles.mathematics.spatial import Transform
from chasles.model.build import compose
from chasles.model.description import Description, JointData
from chasles.model.graph import unused_name
from chasles.model.sensors import SURFACES, NoiseData, SensorData, Surface

RAYS = ("ray", "gpu_ray", "lidar", "gpu_lidar")

MOST_RAYS = 64
"""Maximum number of rays per sensor."""

FIELD = (5.5645e-6, 22.8758e-6, -42.3884e-6)
"""Default magnetic field in SDF (T)."""

_FORWARD = Matrix(((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)))
"""Rotation from the z axis (ray direction in chasles) to the x axis (ray direction in SDF)."""


class _Unread(Exception):
    """Exception raised for a sensor that is ignored; the message gives the reason."""


def with_sensors(made: Description, owners: Iterable[tuple[str, etree._Element]]) -> Description:
    """Add the sensors in the given XML elements to a description.

    Each entry of `owners` is a pair: the name of a link or joint, and the XML element that contains
    the sensors of this link or joint. An IMU named `imu` becomes three sensors: `imu.orientation`,
    `imu.angular_velocity` and `imu.linear_acceleration`. The rays of a ray sensor named `scan`
    become the sensors `scan[0]`, `scan[1]`, ...
    """
    links, found, notes, taken = {x.name for x in made.links}, list[SensorData](), [], set[str]()
    joints = {joint.name: joint for joint in (*made.joints, *made.loops)}
    for owner, element in owners:
        for sensor in element.iterfind("{*}sensor"):
            name = unused_name(sensor.get("name") or f"{owner}_sensor", taken)
            try:
                on = joints.get(owner) if owner not in links else None
                found += _read(made, sensor, SensorData(name, "clock", owner), on)
            except (_Unread, ValueError, OverflowError, KeyError) as reason:
                what = f"sensor {name!r} of type {sensor.get('type')!r} is ignored: {reason}"
                notes.append(f"{made.where}:{sensor.sourceline}: {what}")
    kept = tuple(dict.fromkeys((*made.notes, *notes)))
    return replace(made, sensors=tuple(found), notes=kept)


def _read(
    made: Description, sensor: etree._Element, data: SensorData, joint: JointData | None
) -> Iterator[SensorData]:
    kind, place = sensor.get("type", ""), _pose(sensor)
    if kind == "force_torque" and joint is not None:
        yield _force_torque(sensor, replace(data, kind=kind, frame=joint.child), joint, place)
        return
    if joint is not None or kind not in ("imu", "magnetometer", *RAYS):
        raise _Unread("this type is not supported" + " on a joint" * (joint is not None))
    if data.frame not in {link.name for link in made.links}:
        raise _Unread(f"there is no link {data.frame!r}")
    data = replace(data, pose=place)
    if kind == "imu":
        yield from _imu(sensor, data)
    elif kind == "magnetometer":
        yield replace(data, kind=kind, numbers=FIELD, noise=_noise(sensor, "magnetometer/x"))
    else:
        yield from _scan(made, sensor, data)


def _imu(sensor: etree._Element, data: SensorData) -> Iterator[SensorData]:
    kinds = {
        "orientation": "frame_quaternion",
        "angular_velocity": "gyroscope",
        "linear_acceleration": "accelerometer",
    }
    for what, kind in kinds.items():
        noise = _noise(sensor, f"imu/{what}/x")
        yield replace(data, name=f"{data.name}.{what}", kind=kind, noise=noise)


def _force_torque(
    sensor: etree._Element, data: SensorData, joint: JointData, place: Transform
) -> SensorData:
    """Return the force-torque sensor of a joint, which measures a moment followed by a force."""
    axes = _text(sensor, "force_torque/frame", "child")
    direction = _text(sensor, "force_torque/measure_direction", "child_to_parent")
    if axes not in ("child", "sensor") or direction not in ("child_to_parent", "parent_to_child"):
        raise _Unread(f"frame {axes!r} with direction {direction!r} is not supported")
    at = compose(place, joint.child_pose)
    if axes == "child":
        at = Transform.from_pose(Matrix.identity(), at.r)
    sign = -1.0 if direction == "child_to_parent" else 1.0
    noise = _noise(sensor, "force_torque/force/x")
    return replace(data, pose=at, numbers=(sign,), noise=noise)


def _scan(made: Description, sensor: etree._Element, data: SensorData) -> Iterator[SensorData]:
    """Yield one range sensor per ray, rotated by the ray's yaw (about z) and pitch (upward)."""
    part = next(
        (f"{{*}}{tag}" for tag in ("lidar", "ray") if sensor.find(f"{{*}}{tag}") is not None), ""
    )
    if not part:
        raise _Unread("it has no <ray> or <lidar>")
    yaws, pitches = (
        _angles(sensor, f"{part}/{{*}}scan/{{*}}{x}") for x in ("horizontal", "vertical")
    )
    if not 0 < len(yaws) * len(pitches) <= MOST_RAYS:
        raise _Unread(f"it has {len(yaws) * len(pitches)} rays, more than {MOST_RAYS}")
    most = float(sensor.findtext(f"{part}/{{*}}range/{{*}}max") or "inf")
    seen = tuple(
        Surface(shape.link, shape.kind, shape.size, shape.pose)
        for shape in made.shapes
        if shape.collides and shape.link != data.frame
    )
    if odd := {shape.kind for shape in seen if not SURFACES.get(shape.kind)}:
        raise _Unread(f"its rays may hit shapes of type {', '.join(sorted(odd))}")
    numbers = (most,) if math.isfinite(most) else ()
    base = replace(data, kind="range", seen=seen, numbers=numbers, noise=_noise(sensor, part[3:]))
    directions = [(pitch, yaw) for pitch in pitches for yaw in yaws]
    for k, (pitch, yaw) in enumerate(directions):
        turn = matrix_from_rpy(0.0, -pitch, yaw) @ _FORWARD
        at = compose(Transform.from_pose(turn, Vector.zero()), data.pose)
        name = data.name if len(directions) == 1 else f"{data.name}[{k}]"
        yield replace(base, name=name, pose=at)


def _angles(sensor: etree._Element, path: str) -> list[float]:
    part = sensor.find(path)
    if part is None:
        return [0.0]
    count = int(part.findtext("{*}samples") or "1")
    first, last = (_finite(part.findtext(f"{{*}}{x}_angle") or "0") for x in ("min", "max"))
    if not 0 < count <= MOST_RAYS:
        raise _Unread(f"it has {count} rays per row")
    if count == 1:
        return [0.5 * (first + last)]
    return [first + (last - first) * k / (count - 1) for k in range(count)]


def _noise(sensor: etree._Element, path: str) -> NoiseData:
    """Read the noise of a sensor from the `<noise>` element inside the element at `path`."""
    part = sensor.find("/".join(f"{{*}}{tag}" for tag in (*path.split("/"), "noise")))
    if part is None:
        return NoiseData()

    def number(tag: str, usual: float = 0.0) -> float:
        return _finite(part.findtext(f"{{*}}{tag}") or str(usual))

    offset = number("mean") + number("bias_mean")
    time = part.findtext("{*}dynamic_bias_correlation_time")
    return NoiseData(
        deviation=abs(number("stddev")),
        offset=(offset,) if offset else (),
        bias=abs(number("bias_stddev")),
        drift=abs(number("dynamic_bias_stddev")) if time else 0.0,
        correlation_time=_finite(time) if time and float(time) > 0.0 else math.inf,
    )


def _pose(sensor: etree._Element) -> Transform:
    part = sensor.find("{*}pose")
    if part is None or not (part.text or "").strip():
        return Transform.identity()
    if part.get("relative_to") or part.get("rotation_format", "euler_rpy") != "euler_rpy":
        raise _Unread("its pose is relative to another frame, or not given as roll, pitch, yaw")
    numbers = [_finite(word) for word in (part.text or "").split()]
    if len(numbers) != 6:
        raise _Unread(f"its pose has {len(numbers)} numbers, not 6")
    if part.get("degrees") in ("true", "1"):
        numbers[3:] = map(math.radians, numbers[3:])
    return Transform.from_pose(matrix_from_rpy(*numbers[3:]), Vector(tuple(numbers[:3])))


def _text(sensor: etree._Element, path: str, usual: str) -> str:
    found = sensor.findtext("/".join(f"{{*}}{tag}" for tag in path.split("/")))
    return (found or usual).strip()


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise _Unread(f"{word!r} is not a finite number")
    return number
