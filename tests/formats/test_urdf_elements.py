"""Every element and attribute of URDF changes the robot that is read, or is listed as unused.

The elements are those of wiki.ros.org/urdf/XML, with the transmissions of ROS and the blocks of
Gazebo and MuJoCo.
"""

from dataclasses import fields
from pathlib import Path

import pytest
from lxml import etree

from chasles.formats import urdf

DOCUMENT = """<robot name="r" version="1.0">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base">
    <visual name="v"><origin xyz="0 0 0" rpy="0 0 0"/><geometry><box size="1 1 1"/></geometry>
      <material name="red"/></visual>
    <collision name="c"><origin xyz="0 0 0" rpy="0 0 0"/>
      <geometry><sphere radius="0.5"/></geometry></collision>
    <inertial><origin xyz="0 0 0" rpy="0 0 0"/><mass value="2"/>
      <inertia ixx="1" iyy="2" izz="2" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="arm"><visual><geometry><cylinder radius="0.1" length="1"/></geometry></visual>
    <inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="hand"><visual><geometry><mesh filename="a.stl" scale="1 1 1"/></geometry></visual>
    <inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="revolute"><origin xyz="0 0 1" rpy="0 0 0"/>
    <parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
    <calibration rising="0.1" falling="0.2"/><dynamics damping="0.1" friction="0.2"/>
    <limit lower="-1" upper="1" effort="10" velocity="5"/>
    <safety_controller soft_lower_limit="-0.9" soft_upper_limit="0.9" k_position="10"
      k_velocity="3"/></joint>
  <joint name="k" type="revolute"><parent link="arm"/><child link="hand"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="5"/>
    <mimic joint="j" multiplier="2" offset="0.1"/></joint>
  <transmission name="t"><type>transmission_interface/SimpleTransmission</type>
    <joint name="j"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
    <actuator name="m"><mechanicalReduction>50</mechanicalReduction></actuator></transmission>
  <gazebo reference="j"><springStiffness>3</springStiffness>
    <springReference>0.1</springReference></gazebo>
  <gazebo reference="base"><mu1>0.3</mu1><mu2>0.3</mu2><kp>1e5</kp>
    <selfCollide>true</selfCollide></gazebo>
  <mujoco><compiler meshdir="x"/></mujoco>
</robot>"""

UNUSED = {
    "robot@version": "the only version",
    "visual@name": "a name that nothing refers to",
    "collision@name": "a name that nothing refers to",
    "transmission@name": "a name that nothing refers to",
    "calibration@rising": "of encoders",
    "calibration@falling": "of encoders",
    "safety_controller@soft_lower_limit": "of the controllers of ROS",
    "safety_controller@soft_upper_limit": "of the controllers of ROS",
    "safety_controller@k_position": "of the controllers of ROS",
    "safety_controller@k_velocity": "of the controllers of ROS",
    "hardwareInterface": "of the controllers of ROS",
    "mu1": "friction of contacts in Gazebo",
    "mu2": "friction of contacts in Gazebo",
    "kp": "stiffness of contacts in Gazebo",
    "selfCollide": "contacts in Gazebo",
    "compiler@meshdir": "where MuJoCo looks for files",
}
"""Elements and attributes without effect, with reasons."""

REFERENCES = ("link", "joint", "reference")
"""Attributes that name another part."""

NAMED = ("link", "joint", "material")
"""Elements that others refer to by their names."""

VALUES = {
    "name": "other",
    "xyz": "0.1 0.2 0.3",
    "rpy": "0.1 0.2 0.3",
    "rgba": "0 1 0 1",
    "size": "2 2 2",
    "scale": "2 2 2",
    "filename": "b.stl",
    "type": "prismatic",
    "length": "3",
    "value": "3",
}
OTHER = "0.37"
"""Value for attributes that take one number."""


def read(folder: Path, root: etree._Element) -> str:
    """Return everything that is read from a document, including notes and warnings."""
    path = folder / "robot.urdf"
    path.write_bytes(etree.tostring(root))
    found = urdf.read(path)
    return repr([(f.name, getattr(found, f.name)) for f in fields(found)])


def places() -> list[tuple[str, str | None]]:
    """Return elements by path, each with its attributes, or with None for its text."""
    root = etree.fromstring(DOCUMENT)
    tree, found = etree.ElementTree(root), list[tuple[str, str | None]]()
    for element in root.iter():
        path = tree.getpath(element)
        named = (*REFERENCES, "name") if element.tag in NAMED else REFERENCES
        found += [(path, str(name)) for name in element.attrib if name not in named]
        if (element.text or "").strip():
            found.append((path, None))
    return found


def changed(path: str, attribute: str | None) -> tuple[str, etree._Element]:
    """Return the key of a place in `UNUSED`, and the document with another value there."""
    root = etree.fromstring(DOCUMENT)
    [element] = root.xpath(path)
    if attribute is None:
        element.text = "7"
        return str(element.tag), root
    element.set(attribute, VALUES.get(attribute, OTHER))
    return f"{element.tag}@{attribute}", root


@pytest.mark.parametrize(("path", "attribute"), places())
def test_an_element_changes_the_robot_or_is_listed(
    path: str, attribute: str | None, tmp_path: Path
) -> None:
    word, other = changed(path, attribute)
    same = read(tmp_path, etree.fromstring(DOCUMENT)) == read(tmp_path, other)
    assert same == (word in UNUSED), word


def test_the_list_has_no_other_words() -> None:
    assert {changed(*place)[0] for place in places()} >= UNUSED.keys()
