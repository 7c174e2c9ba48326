"""Write sensors to an MJCF model."""

from collections.abc import Mapping

from lxml import etree

from chasles.formats.files import words
from chasles.formats.mjcf_equalities import placed
from chasles.formats.xml_file import added
from chasles.mathematics.spatial import Transform
from chasles.model import Description
from chasles.model.build import compose
from chasles.model.graph import unused_name
from chasles.model.sensors import NoiseData, SensorData, Surface
from chasles.model.shapes import SHAPE_TRAITS

_TAGS = {"jointactfrc": "jointactuatorfrc", "tendonactfrc": "tendonactuatorfrc"}
"""XML element name of each MuJoCo sensor type whose name differs from its element name."""

Bodies = Mapping[str | None, etree._Element]


def add_sensors(
    root: etree._Element, source: Description, bodies: Bodies, joints: list[str]
) -> list[str]:
    """Write sensors; return notes on omitted sensors.

    `joints` contains the names of the joints in the MJCF model.
    """
    writer, notes = _Writer(root, source, bodies, joints), []
    sensors = added(root, "sensor")
    for sensor in source.sensors:
        if why := writer.lacking(sensor):
            notes.append(f"sensor {sensor.name!r} is not written: {why}")
            continue
        tag = _TAGS.get(sensor.traits.mjcf, sensor.traits.mjcf)
        given = {"name": sensor.name, **writer.mounted(sensor)}
        given |= {"cutoff": words([sensor.cutoff])} if sensor.cutoff else {}
        if sensor.noise.deviation:
            given["noise"] = words([sensor.noise.deviation])
        if sensor.noise != NoiseData(deviation=sensor.noise.deviation):
            notes.append(f"sensor {sensor.name!r}: MJCF stores its noise, but not its bias")
        added(sensors, tag, **given)
    if not len(sensors):
        root.remove(sensors)
    return notes


class _Writer:
    """Writer for sensors and for the sites to which they are attached."""

    def __init__(
        self, root: etree._Element, source: Description, bodies: Bodies, joints: list[str]
    ) -> None:
        self.root, self.bodies = root, bodies
        self.places = {link.name: (link.name, Transform.identity()) for link in source.links}
        self.places |= {frame.name: (frame.link, frame.pose) for frame in source.frames}
        self.frames = {frame.name for frame in source.frames}
        self.taken = {*self.places, *(sensor.name for sensor in source.sensors)}
        self.on = {
            "joint": {*joints},
            "tendon": {rotor.name for rotor in source.rotors},
            "actuator": {data.name for data in source.actuators if data.kind},
        }

    def lacking(self, sensor: SensorData) -> str:
        """Return the reason why MJCF cannot represent a sensor, or ""."""
        kind, mount = sensor.kind, sensor.traits.on
        if not sensor.traits.mjcf:
            return f"MJCF has no sensor of kind {kind!r}"
        if mount in self.on and sensor.joint not in self.on[mount]:
            return f"{mount} {sensor.joint!r} is not in the file"
        if any(self.places[name][0] not in self.bodies for name in sensor.frames):
            return "its link is not a body in MJCF"
        if kind == "camera_projection":
            return "cameras are not written"
        if kind in ("touch", "inside") and sensor.zone is None:
            return "it has no zone, which MJCF requires"
        if kind in ("force", "torque", "range") and sensor.numbers:
            return "MJCF does not store its factor or range"
        if kind.startswith("joint_limit") and any(sensor.numbers):
            return "margins of joints are not written"
        return ""

    def mounted(self, sensor: SensorData) -> dict[str, str]:
        """Return MJCF attributes that attach a sensor to its joint, body or site."""
        mount, kind = sensor.traits.on, sensor.kind
        if not mount:
            return {}
        if mount in self.on:
            return {mount: sensor.joint}
        if mount == "link":
            return {"body": str(self.bodies[sensor.frame].get("name", "world"))}
        if kind == "magnetometer":
            for option in self.root.iterfind("option"):
                option.set("magnetic", words(sensor.numbers))
        if kind == "touch":
            assert sensor.zone is not None
            return {"site": self._zone(sensor, sensor.zone)}
        site = self._site(sensor.name, sensor.frame, sensor.pose)
        if kind == "inside":
            assert sensor.zone is not None
            zone = self._zone(sensor, sensor.zone)
            return {"site": zone, "objtype": "site", "objname": site}
        if not kind.startswith("frame_"):
            return {"site": site}
        found = {"objtype": "site", "objname": site}
        if sensor.reference:
            other = self._site(sensor.name, sensor.reference, sensor.reference_pose)
            found |= {"reftype": "site", "refname": other}
        return found

    def _site(self, name: str, frame: str, pose: Transform) -> str:
        """Return the name of a site with the given pose in a frame; add the site if necessary."""
        if frame in self.frames and pose.is_identity:
            return frame
        return self._made(name, frame, pose)

    def _zone(self, sensor: SensorData, zone: Surface) -> str:
        """Add a site with the shape of a sensor's detection zone, and return its name."""
        halved = SHAPE_TRAITS[zone.kind].halved
        size = words(0.5 * x if k in halved else x for k, x in enumerate(zone.size))
        return self._made(sensor.name, zone.frame, zone.pose, type=zone.kind, size=size)

    def _made(self, name: str, frame: str, pose: Transform, **shape: str) -> str:
        site = unused_name(f"{name}.site", self.taken)
        link, at = self.places[frame]
        added(self.bodies[link], "site", name=site, **placed(compose(pose, at)), **shape)
        return site
