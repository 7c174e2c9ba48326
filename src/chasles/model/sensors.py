"""Sensors of a mechanism, their noise, and the table of sensor kinds."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from chasles.mathematics.spatial import Transform

Mount = Literal["frame", "link", "joint", "tendon", "actuator", ""]
"""Kind of object to which a sensor is attached, or "" for none.

A sensor on a "link" measures a quantity of the link together with all its descendants.
"""


Source = Literal["motion", "control", "time"]
"""Input of a sensor: motion (with external forces), actuator controls, or time."""


class SensorTraits(NamedTuple):
    """Properties of a kind of sensor.

    Attributes
    ----------
    size
        Number of values.
    unit
        Unit of the values.
    on
        Kind of object to which the sensor is attached.
    mjcf
        Name of this kind in MJCF.
    positive
        True if the values are not negative, so that the cutoff is only an upper limit.
    cuts
        True if values can be clipped to a cutoff (unit vectors and quaternions cannot).
    of
        Quantities that determine the values: motion, control or time.
    """

    size: int
    unit: str
    on: Mount = "frame"
    mjcf: str = ""
    positive: bool = False
    cuts: bool = True
    of: Source = "motion"


CLOCK = "clock"
"""Kind of sensor that returns the time of a simulation."""

_ROWS = SensorTraits

SENSORS: dict[str, SensorTraits] = {
    "accelerometer": _ROWS(3, "m/s2", mjcf="accelerometer"),
    "gyroscope": _ROWS(3, "rad/s", mjcf="gyro"),
    "velocimeter": _ROWS(3, "m/s", mjcf="velocimeter"),
    "magnetometer": _ROWS(3, "T", mjcf="magnetometer"),
    "force": _ROWS(3, "N", mjcf="force"),
    "torque": _ROWS(3, "N m", mjcf="torque"),
    "force_torque": _ROWS(6, "N m, N"),
    "touch": _ROWS(1, "N", mjcf="touch", positive=True),
    "range": _ROWS(1, "m", mjcf="rangefinder"),
    "inside": _ROWS(1, "1", mjcf="insidesite"),
    "camera_projection": _ROWS(2, "pixel", mjcf="camprojection"),
    "frame_position": _ROWS(3, "m", mjcf="framepos"),
    "frame_quaternion": _ROWS(4, "1", mjcf="framequat", cuts=False),
    "frame_x_axis": _ROWS(3, "1", mjcf="framexaxis", cuts=False),
    "frame_y_axis": _ROWS(3, "1", mjcf="frameyaxis", cuts=False),
    "frame_z_axis": _ROWS(3, "1", mjcf="framezaxis", cuts=False),
    "frame_linear_velocity": _ROWS(3, "m/s", mjcf="framelinvel"),
    "frame_angular_velocity": _ROWS(3, "rad/s", mjcf="frameangvel"),
    "frame_linear_acceleration": _ROWS(3, "m/s2", mjcf="framelinacc"),
    "frame_angular_acceleration": _ROWS(3, "rad/s2", mjcf="frameangacc"),
    "subtree_center_of_mass": _ROWS(3, "m", "link", mjcf="subtreecom"),
    "subtree_linear_velocity": _ROWS(3, "m/s", "link", mjcf="subtreelinvel"),
    "subtree_angular_momentum": _ROWS(3, "N m s", "link", mjcf="subtreeangmom"),
    "joint_position": _ROWS(1, "rad or m", "joint", mjcf="jointpos"),
    "joint_velocity": _ROWS(1, "rad/s or m/s", "joint", mjcf="jointvel"),
    "joint_quaternion": _ROWS(4, "1", "joint", mjcf="ballquat", cuts=False),
    "joint_angular_velocity": _ROWS(3, "rad/s", "joint", mjcf="ballangvel"),
    "joint_limit_position": _ROWS(1, "rad or m", "joint", mjcf="jointlimitpos"),
    "joint_limit_velocity": _ROWS(1, "rad/s or m/s", "joint", mjcf="jointlimitvel"),
    "joint_actuator_force": _ROWS(1, "N m or N", "joint", mjcf="jointactfrc", of="control"),
    "tendon_position": _ROWS(1, "m", "tendon", mjcf="tendonpos"),
    "tendon_velocity": _ROWS(1, "m/s", "tendon", mjcf="tendonvel"),
    "tendon_actuator_force": _ROWS(1, "N", "tendon", mjcf="tendonactfrc", of="control"),
    "actuator_position": _ROWS(1, "rad or m", "actuator", mjcf="actuatorpos", of="control"),
    "actuator_velocity": _ROWS(1, "rad/s or m/s", "actuator", mjcf="actuatorvel", of="control"),
    "actuator_force": _ROWS(1, "N m or N", "actuator", mjcf="actuatorfrc", of="control"),
    "potential_energy": _ROWS(1, "J", "", mjcf="e_potential"),
    "kinetic_energy": _ROWS(1, "J", "", mjcf="e_kinetic"),
    CLOCK: _ROWS(1, "s", "", mjcf="clock", of="time"),
}
"""Properties of each kind of sensor. `algorithms.spatial.sensors` computes the values."""

SURFACES = {
    "sphere": 1,
    "capsule": 2,
    "ellipsoid": 3,
    "cylinder": 2,
    "box": 3,
    "plane": 2,
    "mesh": 0,
}
"""Number of size parameters of each shape that rays can hit."""  # fmt: skip


class Surface(NamedTuple):
    """A shape that the ray of a range sensor can hit, or the detection zone of another sensor.

    `pose` is the pose of the shape in `frame`. `size` is as in `ShapeData`. For a plane z = 0,
    `size` contains the lengths along x and y, which may be infinite. `triangles` contains the
    triangles of a mesh, with nine coordinates each (m).
    """

    frame: str
    kind: str
    size: tuple[float, ...]
    pose: Transform = Transform.identity()
    triangles: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class NoiseData:
    """Noise and offsets of a sensor, in the unit of its values.

    Random errors of different values are independent.

    Attributes
    ----------
    deviation
        Standard deviation of white noise.
    offset
        Constant error.
    bias
        Standard deviation of an error that is drawn once for each run.
    drift
        Standard deviation of an error that varies slowly (a Gauss-Markov process).
    correlation_time
        Correlation time of the slowly varying error, in s.
    """

    deviation: float = 0.0
    offset: tuple[float, ...] = ()
    bias: float = 0.0
    drift: float = 0.0
    correlation_time: float = math.inf


@dataclass(frozen=True)
class SensorData:
    """A sensor on a frame, joint, tendon or actuator.

    Parameters
    ----------
    name
        Name of the sensor in results.
    kind
        A key of `SENSORS`.
    frame
        Link or frame that carries the sensor. Joint sensors use `joint` instead.
    pose
        Pose of the sensor in `frame`. Vector values are along the sensor's axes.
    reference, reference_pose
        For kinds frame_*: reference frame of the values; "" for the world.
    joint
        For kinds joint_*, tendon_* and actuator_*: the joint, tendon or actuator.
    cutoff
        Largest absolute value; 0 means no cutoff.
    noise
        Errors that `robot.sense` adds if it is called with a seed.
    numbers
        Magnetometer: magnetic field in the world. camera_projection: fx, fy, cx, cy in pixels.
        frame_quaternion: quaternion at the neutral configuration, which determines the sign of all
        values. joint_limit_*: margin. Range sensor: maximum range, in m. Force and torque sensors:
        a factor, which is -1 for the force that the link exerts on its parent.
    zone
        For kind "touch": a contact force is measured if its line of action intersects the zone.
        For kind "inside": the value is 1 if the sensor's origin is in the zone, and 0 otherwise.
    seen
        Shapes that the ray of a range sensor, along the sensor's z axis, can hit.
    """

    name: str
    kind: str
    frame: str = ""
    pose: Transform = field(default_factory=Transform.identity)
    reference: str = ""
    reference_pose: Transform = field(default_factory=Transform.identity)
    joint: str = ""
    cutoff: float = 0.0
    noise: NoiseData = NoiseData()
    numbers: tuple[float, ...] = ()
    zone: Surface | None = None
    seen: tuple[Surface, ...] = ()
    where: str = field(default="", compare=False, repr=False)

    @property
    def traits(self) -> SensorTraits:
        """Properties of this kind of sensor."""
        return SENSORS[self.kind]

    @property
    def frames(self) -> tuple[str, ...]:
        """All links and frames that the sensor refers to."""
        others = (self.zone, *self.seen) if self.zone else self.seen
        named = (self.frame, self.reference, *(part.frame for part in others))
        return tuple(dict.fromkeys(filter(None, named)))


def slices(sensors: Iterable[SensorData]) -> dict[str, slice]:
    """Return the slice of each sensor in the concatenated values of all sensors."""
    found, start = {}, 0
    for sensor in sensors:
        stop = start + sensor.traits.size
        found[sensor.name], start = slice(start, stop), stop
    return found
