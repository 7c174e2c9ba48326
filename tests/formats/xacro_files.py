"""xacro files that use most features of the language, and the files that they include."""

from pathlib import Path

HEAD = '<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">\n'
ARM = (
    HEAD
    + """<xacro:arg name="count" default="2"/>
<xacro:include filename="parts.xacro"/>
<link name="link0"/>
<xacro:macro name="arm" params="k n">
  <xacro:rod name="link${k}" length="${0.1 * k}"/>
  <joint name="joint${k}" type="continuous">
    <parent link="link${k - 1}"/><child link="link${k}"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 ${0.1 * k}" rpy="0 0 ${pi / 2}"/>
  </joint>
  <xacro:if value="${k &lt; n}"><xacro:arm k="${k + 1}" n="${n}"/></xacro:if>
</xacro:macro>
<xacro:arm k="1" n="$(arg count)"/>
</robot>"""
)
PARTS = (
    HEAD
    + """<xacro:macro name="rod" params="name length">
  <link name="${name}">
    <inertial><mass value="2"/><inertia ixx="${2 * length}" iyy="1" izz="1"
      ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
</xacro:macro>
</robot>"""
)
LEGS = (
    HEAD
    + """<xacro:property name="mass" value="1.5"/>
<xacro:property name="sides" value="${['left', 'right']}"/>
<xacro:property name="inertia"><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>
</xacro:property>
<xacro:include filename="$(find legs)/parts.xacro" ns="parts"/>
<xacro:parts.rod name="body" length="1"/>
<xacro:macro name="leg" params="side reach:=${2 * 0.1} *origin **more">
  <xacro:property name="turn" value="${1 if side == 'left' else -1}" scope="local"/>
  <link name="${side}_leg"><inertial><mass value="${mass}"/>
    <xacro:insert_block name="inertia"/></inertial></link>
  <joint name="${side}_hip" type="revolute"><parent link="body"/><child link="${side}_leg"/>
    <axis xyz="0 ${turn} 0"/><xacro:insert_block name="origin"/>
    <xacro:insert_block name="more"/></joint>
  <xacro:unless value="${reach &lt; 0.1}"><link name="${side}_foot"/>
    <joint name="${side}_sole" type="fixed"><parent link="${side}_leg"/>
      <child link="${side}_foot"/><origin xyz="0 0 -${reach}"/></joint></xacro:unless>
</xacro:macro>
<xacro:macro name="legs" params="todo">
  <xacro:if value="${len(todo) > 0}">
    <xacro:leg side="${todo[0]}"><origin xyz="${radians(30)} 0 0"/>
      <more><limit lower="-1" upper="1" effort="${mass * 9.81}" velocity="3"/></more></xacro:leg>
    <xacro:legs todo="${todo[1:]}"/>
  </xacro:if>
</xacro:macro>
<xacro:legs todo="${sides}"/>
</robot>"""
)

FILES = {"arm": ARM, "legs": LEGS}


def put(folder: Path) -> Path:
    """Write the included files next to the robot files and into the package `legs`."""
    for place in (folder, folder / "legs"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "parts.xacro").write_text(PARTS)
    return folder
