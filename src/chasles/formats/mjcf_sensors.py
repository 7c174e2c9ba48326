"""Read sensors from the mjModel arrays of an MJCF file."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from chasles.formats.mjcf_source import Source, pose
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import conjugate, quaternion_product
from chasles.mathematics.spatial import Transform
from chasles.model.sensors import SENSORS, SURFACES, NoiseData, SensorData, Surface
from chasles.model.shapes import SHAPE_TRAITS

_KINDS = {row.mjcf: kind for kind, row in SENSORS.items() if row.mjcf}
"""Sensor kind for each MuJoCo sensor type."""

MOST_TRIANGLES = 2000
"""Maximum total number of triangles in the meshes that a sensor's ray may hit."""

_FRAMES = ("xbody", "body", "geom", "site", "camera")
"""MuJoCo object types with a frame; "body" is the inertial frame of a body."""


class _Unsupported(Exception):
    """Exception raised for an unsupported sensor; the message gives the reason."""


def sensors(
    source: Source, held: set[str], tendons: Mapping[int, str]
) -> tuple[list[SensorData], list[str]]:
    """Return the sensors in a file, and messages about omitted or incomplete sensors.

    `held` contains the names of joints fixed by equalities. `tendons` maps the MuJoCo index of each
    supported tendon to its name.
    """
    found, left, taken = list[SensorData](), list[str](), set(source["sensor"])
    for k, name in enumerate(source["sensor"]):
        unnamed = f"sensor{k}"
        while not name and unnamed in taken:
            unnamed += "_"
        name = name or unnamed
        taken.add(name)
        try:
            found.append(_sensor(source, k, name, held, tendons))
            if found[-1].kind in ("force", "torque") and _pulled(source):
                left.append(
                    f"{found[-1].where}: sensor {name!r} ignores forces from the actuators, "
                    "limits and friction of spatial tendons"
                )
        except _Unsupported as reason:
            what = f"{source.where('sensor', k)}: sensor {name!r} ({source['sensor_type'][k]})"
            left.append(f"{what} is ignored: {reason}")
    return found, left


def _pulled(source: Source) -> bool:
    """Return True if any spatial tendon has an actuator, limits or friction."""
    driven = {row["ends"][0] for row in source["actuators"] if row["trn"] == "tendon"}
    return any(
        source["tendon_limited"][t] or source["tendon_frictionloss"][t] or t in driven
        for t in range(len(source["tendon"]))
        if source.tendon(t) is None
    )


def _sensor(
    source: Source, k: int, name: str, held: set[str], tendons: Mapping[int, str]
) -> SensorData:
    word, i = source["sensor_type"][k], source["sensor_objid"][k]
    if word not in _KINDS:
        raise _Unsupported("its type is not supported")
    kind, noise = _KINDS[word], NoiseData(deviation=source["sensor_noise"][k])
    data = SensorData(name, kind, cutoff=source["sensor_cutoff"][k], noise=noise)
    data = replace(data, where=source.where("sensor", k))
    if data.traits.size != source["sensor_dim"][k]:
        raise _Unsupported(
            f"it has {source['sensor_dim'][k]} numbers instead of {data.traits.size}"
        )
    if data.traits.on == "joint":
        return _on_joint(source, i, data, held)
    if data.traits.on == "tendon":
        if i not in tendons:
            raise _Unsupported("its tendon is not supported")
        return replace(data, joint=tendons[i])
    if data.traits.on == "actuator":
        actuator = source["actuators"][i]
        if actuator["unsupported"]:
            raise _Unsupported(f"its actuator has {actuator['unsupported']}")
        return replace(data, joint=actuator["name"])
    if data.traits.on == "link":
        return replace(data, frame=source.bodies[i])
    if data.traits.on == "frame":
        return _on_frame(source, k, data)
    return data


def _on_joint(source: Source, j: int, data: SensorData, held: set[str]) -> SensorData:
    joint, limit = source.joints[j], data.kind.startswith("joint_limit")
    if joint in held:
        raise _Unsupported(f"an equality fixes joint {joint!r}")
    if limit and source["jnt_type"][j] == "ball":
        raise _Unsupported("limits of ball joints are not supported")
    numbers = (source["jnt_margin"][j],) if limit else ()
    return replace(data, joint=joint, numbers=numbers)


def _on_frame(source: Source, k: int, data: SensorData) -> SensorData:
    kind, i = str(source["sensor_objtype"][k]), source["sensor_objid"][k]
    other, r = str(source["sensor_reftype"][k]), source["sensor_refid"][k]
    frame, place = _frame(source, kind, i)
    data = replace(data, frame=frame, pose=place)
    if data.kind == "inside":
        return replace(data, zone=_zone(source, r))
    if r >= 0 and other in _FRAMES:
        reference, at = _frame(source, other, r)
        data = replace(data, reference=reference, reference_pose=at)
    if data.kind == "magnetometer":
        return replace(data, numbers=tuple(source["magnetic"]))
    if data.kind == "camera_projection":
        return replace(data, numbers=_intrinsics(source, r))
    if data.kind == "frame_quaternion":
        turn = _at_rest(source, kind, i)
        if data.reference:
            turn = quaternion_product(conjugate(_at_rest(source, other, r)), turn)
        return replace(data, numbers=tuple(turn))
    if data.kind == "touch":
        return replace(data, zone=_zone(source, i))
    if data.kind == "range":
        return replace(data, seen=tuple(_seen(source, source["site_bodyid"][i])))
    return data


def _owner(source: Source, kind: str, i: int) -> tuple[int, list[float], list[float]]:
    """Return an object's body, and the object's position and quaternion in the body frame."""
    if kind not in _FRAMES:
        raise _Unsupported(f"it is attached to a {kind}")
    if kind == "camera" and source["cam_mode"][i] != "fixed":
        raise _Unsupported(f"its camera follows the robot (mode {source['cam_mode'][i]!r})")
    if kind == "xbody":
        return i, [0.0] * 3, [1.0, 0.0, 0.0, 0.0]
    if kind == "body":
        return i, source["body_ipos"][i], source["body_iquat"][i]
    word = {"camera": "cam"}.get(kind, kind)
    return source[f"{word}_bodyid"][i], source[f"{word}_pos"][i], source[f"{word}_quat"][i]


def _frame(source: Source, kind: str, i: int) -> tuple[str, Transform]:
    """Return an object's link, and the object's pose in the link frame."""
    body, position, quaternion = _owner(source, kind, i)
    if source["body_mocapid"][body] >= 0:
        raise _Unsupported(f"it is attached to the mocap body {source.bodies[body]!r}")
    return source.bodies[body], pose(position, quaternion)


def _at_rest(source: Source, kind: str, i: int) -> Vector:
    """Return an object's world quaternion in the reference configuration, signed as in MuJoCo."""
    body, _, quaternion = _owner(source, kind, i)
    found = Vector(tuple(quaternion))
    while body > 0:
        found = quaternion_product(Vector(tuple(source["body_quat"][body])), found)
        first, count = source["body_jntadr"][body], source["body_jntnum"][body]
        if count and source["jnt_type"][first] == "free":
            break
        body = source["body_parentid"][body]
    return found


def _intrinsics(source: Source, camera: int) -> tuple[float, ...]:
    """Return the focal lengths and the image center of a camera, in pixels."""
    width, height = source["cam_resolution"][camera]
    wide, high = source["cam_sensorsize"][camera]
    fx = fy = 0.5 / math.tan(source["cam_fovy"][camera] * math.pi / 360.0) * height
    if wide and high:
        fx, fy = (
            focal / size * pixels
            for focal, size, pixels in zip(
                source["cam_intrinsic"][camera], (wide, high), (width, height), strict=False
            )
        )
    return fx, fy, 0.5 * width, 0.5 * height


# Shapes ------------------------------------------------------------------------------------------


def _zone(source: Source, site: int) -> Surface:
    kind, body = source["site_type"][site], source["site_bodyid"][site]
    place = pose(source["site_pos"][site], source["site_quat"][site])
    return Surface(source.bodies[body], kind, _size(kind, source["site_size"][site]), place)


def _size(kind: str, halves: list[float]) -> tuple[float, ...]:
    """Convert MuJoCo's dimensions of a shape, often half lengths, to `ShapeData.size`."""
    if kind == "plane":
        return tuple(2.0 * x if x > 0.0 else math.inf for x in halves[:2])
    halved = SHAPE_TRAITS[kind].halved
    return tuple(2.0 * x if i in halved else x for i, x in enumerate(halves[: SURFACES[kind]]))


def _seen(source: Source, body: int) -> Iterator[Surface]:
    """Yield the shapes that a ray sensor on a body can hit: visible shapes on other bodies."""
    triangles = 0
    for k, kind in enumerate(source["geom_type"]):
        owner = source["geom_bodyid"][k]
        if owner == body or source["geom_color"][k][3] == 0.0:
            continue
        link, place = source.bodies[owner], pose(source["geom_pos"][k], source["geom_quat"][k])
        if kind == "mesh":
            faces = source["triangles"][str(source["geom_dataid"][k])]
            triangles += len(faces)
            if triangles > MOST_TRIANGLES:
                raise _Unsupported(f"its ray may hit more than {MOST_TRIANGLES} mesh triangles")
            yield Surface(link, kind, (), place, tuple(map(tuple, faces)))
        elif kind in SURFACES:
            yield Surface(link, kind, _size(kind, source["geom_size"][k]), place)
        else:
            raise _Unsupported(f"its ray may hit a shape of type {kind}")
