"""Read and write springs (a Gazebo extension) and transmissions (a ROS extension) in URDF files.

`<gazebo reference="joint">` contains springStiffness and springReference. A `<transmission>` of
type SimpleTransmission connects a motor to a joint; its gear ratio is mechanicalReduction.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from lxml import etree

from chasles.formats.files import words
from chasles.formats.writable import single_rest
from chasles.formats.xml_file import Part, add_texts, added
from chasles.model import Description, JointData
from chasles.model.graph import unused_name
from chasles.model.machine import ActuatorData

SIMPLE = "transmission_interface/SimpleTransmission"


def with_springs(blocks: Iterable[Part], joints: tuple[JointData, ...]) -> tuple[JointData, ...]:
    """Add the springs in `<gazebo>` elements to the joints."""
    found = {joint.name: joint for joint in joints}
    for part in blocks:
        joint = found.get(part.element.get("reference", ""))
        stiffness = _number(part, "springStiffness")
        if joint is None or joint.kind == "fixed" or not stiffness:
            continue
        reference = _number(part, "springReference")
        rest = (reference,) if reference and joint.traits.nq == 1 else ()
        found[joint.name] = replace(joint, stiffness=stiffness, rest=rest)
    return tuple(found.values())


def transmissions(blocks: Iterable[Part], joints: tuple[JointData, ...]) -> Iterator[ActuatorData]:
    """Yield a motor for each simple transmission; its control input is the motor torque."""
    moving = {joint.name for joint in joints if joint.kind != "fixed" and joint.traits.nv == 1}
    taken: set[str] = set()
    for part in blocks:
        actuator, driven = part.find("actuator"), part.find("joint")
        kind = part.element.findtext("type") or part.element.get("type") or ""
        if driven is None or actuator is None or "SimpleTransmission" not in kind:
            continue
        joint = driven.element.get("name", "")
        if joint not in moving:
            continue
        reduction = _number(actuator, "mechanicalReduction")
        if reduction is None:
            reduction = _number(part, "mechanicalReduction")
        name = unused_name(actuator.element.get("name") or f"{joint}_motor", taken)
        gear = 1.0 if reduction is None else reduction
        yield ActuatorData(name, "joint", joint, (gear,), where=part.where)


def _number(part: Part, tag: str) -> float | None:
    """Return the number in a child element; None if it is missing or not a finite number."""
    text = (part.element.findtext(tag) or "").strip()
    if not text:
        return None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        part.note(f"{tag} {text!r:.40} is not a number and is ignored")
        return None
    return found


def add_springs(root: etree._Element, source: Description) -> None:
    """Write springs as `<gazebo>` elements."""
    for joint in source.joints:
        if joint.stiffness:
            block = added(root, "gazebo", reference=joint.name)
            rest = single_rest(joint, "URDF")
            add_texts(
                block,
                springReference=words([rest]),
                springStiffness=words([joint.stiffness]),
            )


def add_transmissions(root: etree._Element, source: Description) -> list[str]:
    """Write joint motors as transmissions; return a note on actuators that URDF cannot store."""
    left = []
    for data in source.actuators:
        usual = ActuatorData(data.name, "joint", data.target, data.gear, where=data.where)
        if replace(data, controls=usual.controls, forces=usual.forces) != usual:
            left.append(data.name)
            continue
        if data != usual:
            left.append(f"ranges of {data.name}")
        block = added(root, "transmission", name=f"{data.name}_transmission")
        add_texts(block, type=SIMPLE)
        added(block, "joint", name=data.target)
        motor = added(block, "actuator", name=data.name)
        add_texts(motor, mechanicalReduction=words([data.gear[0]]))
    if not left:
        return []
    return [f"URDF cannot store some or all actuators: {', '.join(left[:6])}"]
