"""Elements and attributes of MJCF in MuJoCo's own schema, and a document that has most of them."""

import re
from pathlib import Path

import mujoco
from lxml import etree

Schema = dict[tuple[str, ...], frozenset[str]]


def schema() -> Schema:
    """Return the attributes of every element, by its path below <mujoco>."""
    found: dict[tuple[str, ...], set[str]] = {}
    path: list[str] = []
    for line in mujoco.mj_printSchema(False, False).splitlines():
        head = re.match(r"^( *)(\S+) \([!?*R]\)", line)
        if head:
            depth, name = len(head[1]) // 3, head[2].replace("(world)", "")
            path = [*path[:depth], name]
            rest = line[head.end() :]
        else:
            rest = line
        if path:
            found.setdefault(tuple(path[1:]), set()).update(rest.split())
    return {path: frozenset(names) for path, names in found.items()}


DOCUMENT = """
<mujoco model="m">
  <compiler angle="radian"/>
  <option density="2" viscosity="1"><flag/></option>
  <worldbody>
    <site name="post" pos="0.4 0 1"/>
    <geom name="floor" type="plane" size="1 1 1"/>
    <camera name="eye"/>
    <body name="base" pos="0 0 1">
      <inertial pos="0.01 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>
      <freejoint name="root"/>
      <geom name="box" size="0.1 0.05 0.2" type="box"/>
      <body name="arm" pos="0.1 0 0.1">
        <joint name="yaw" axis="0 0 1" range="-1 1" limited="true" stiffness="1" damping="0.1"
          frictionloss="0.1"/>
        <geom name="rod" type="capsule" size="0.03 0.2" mass="1"/>
        <site name="tip" pos="0.4 0.1 0"/>
        <body name="hand" pos="0.4 0.1 0">
          <joint name="lift" type="slide"/>
          <geom name="ball" size="0.1" mass="0.5"/>
          <site name="palm"/>
        </body>
      </body>
    </body>
    <body name="other" pos="1 0 1"><joint name="turn"/><geom name="puck" size="0.1"/></body>
  </worldbody>
  <contact>
    <pair name="touch" geom1="ball" geom2="puck"/><exclude name="apart" body1="base" body2="arm"/>
  </contact>
  <tendon>
    <spatial name="rope" stiffness="1" damping="0.1" limited="true" range="0 9" frictionloss="0.1">
      <site site="post"/><site site="tip"/><pulley divisor="2"/><site site="tip"/>
      <site site="post"/></spatial>
    <fixed name="sum" stiffness="1" damping="0.1" limited="true" range="-2 2" frictionloss="0.1">
      <joint joint="yaw" coef="0.8"/><joint joint="lift" coef="0.5"/></fixed>
  </tendon>
  <equality>
    <connect name="pin" body1="hand" body2="other" anchor="0.1 0 0"/>
    <joint name="gear" joint1="turn" polycoef="0 1 0 0 0"/>
  </equality>
  <actuator>
    <general name="a" joint="yaw" dyntype="filter" dynprm="0.1" gainprm="2" biastype="affine"
      biasprm="0 1 1"/>
    <motor name="b" joint="yaw"/><position name="c" joint="yaw" kp="3"/>
    <velocity name="d" joint="yaw" kv="2"/>
    <intvelocity name="e" joint="yaw" kp="2" actrange="-1 1"/>
    <damper name="f" joint="yaw" kv="2" ctrlrange="0 1"/><cylinder name="g" joint="yaw" area="2"/>
  </actuator>
  <sensor>
    <accelerometer name="s1" site="tip"/><jointpos name="s2" joint="yaw"/>
    <framepos name="s3" objtype="body" objname="hand"/>
    <actuatorfrc name="s4" actuator="b"/><tendonpos name="s5" tendon="rope"/>
  </sensor>
  <keyframe><key name="k" qpos="0 0 1 1 0 0 0 0 0 0"/></keyframe>
</mujoco>"""

TURNS = {
    "quat": "0.8 0.2 0.1 0.3",
    "axisangle": "1 2 3 0.4",
    "euler": "0.1 0.2 0.3",
    "xyaxes": "1 1 0 -1 1 0",
    "zaxis": "1 2 3",
}
GENERAL = TURNS | {
    "pos": "0.11 0.12 0.13",
    "name": "renamed",
    "armature": "0.3",
    "damping": "0.7",
    "stiffness": "8",
    "frictionloss": "0.6",
    "range": "-0.4 0.6",
    "springlength": "0.05 0.2",
    "springref": "0.2",
    "springdamper": "0.3 0.8",
    "springyield": "0.7",
    "actuatorfrcrange": "-3 4",
    "actuatorgravcomp": "true",
    "axis": "1 2 3",
    "ref": "0.2",
    "margin": "0.07",
    "mass": "3",
    "size": "0.21 0.22 0.23",
    "friction": "0.3 0.02 0.003",
    "condim": "4",
    "contype": "4",
    "conaffinity": "4",
    "gravcomp": "0.4",
    "mocap": "true",
    "ctrlrange": "-0.7 0.6",
    "forcerange": "-0.7 0.6",
    "actrange": "-0.7 0.6",
    "lengthrange": "0.1 0.9",
    "gear": "2 1 1 1 1 1",
    "kp": "17",
    "kv": "13",
    "coef": "0.9",
    "divisor": "3",
    "active": "false",
    "cutoff": "3",
    "noise": "0.3",
    "density": "700",
    "gravity": "1 2 3",
    "solimp": "0.8 0.9 0.002 0.4 3",
    "solref": "0.03 0.9",
    "delay": "0.01",
    "interval": "0.01",
    "inheritrange": "0.8",
    "nsample": "3",
    "interp": "linear",
    "group": "4",
    "user": "1 2",
}


FLAGS = ("energy", "fwdinv", "invdiscrete", "multiccd", "sleep", "override", "diagexact", "ipc")
"""Flags that are off by default."""

OWN = {
    ("option", "actuatorgroupdisable"): "0",
    ("option", "magnetic"): "1 2 3",
    ("option", "viscosity"): "3",
    ("option", "wind"): "1 2 3",
    ("option", "timestep"): "0.003",
    ("option", "integrator"): "RK4",
    ("option", "cone"): "elliptic",
    ("option", "impratio"): "3",
    ("option", "o_friction"): "2 2 0.1 0.1 0.1",
    ("option", "o_margin"): "0.1",
    ("option", "o_solref"): "0.1 1",
    ("option", "o_solimp"): "0.8 0.9 0.002 0.4 3",
    ("body", "name"): "torso",
    ("body", "sleep"): "never",
    ("body", "fuse"): "false",
    ("inertial", "diaginertia"): "0.3 0.2 0.2",
    ("inertial", "fullinertia"): "0.3 0.2 0.2 0.01 0.01 0.01",
    ("joint", "type"): "slide",
    ("joint", "limited"): "false",
    ("joint", "actuatorfrclimited"): "false",
    ("geom", "type"): "ellipsoid",
    ("geom", "adhesion"): "3",
    ("geom", "surfacevel"): "1 0 0",
    ("geom", "priority"): "2",
    ("geom", "solmix"): "3",
    ("geom", "gap"): "0.1",
    ("geom", "fluidshape"): "ellipsoid",
    ("geom", "rgba"): "1 0 0 1",
    ("freejoint", "align"): "true",
    ("pair", "adhesion"): "3",
    ("pair", "geom1"): "rod",
    ("pair", "geom2"): "rod",
    ("exclude", "body1"): "other",
    ("exclude", "body2"): "hand",
    ("site", "site"): "palm",
    ("fixed/joint", "joint"): "turn",
    ("general", "dyntype"): "integrator",
    ("general", "dynprm"): "0.4",
    ("general", "gainprm"): "5",
    ("general", "gaintype"): "user",
    ("general", "inheritrange"): "0.8",
    ("general", "biasprm"): "3 4 5",
    ("general", "biastype"): "none",
    ("general", "actearly"): "true",
    ("cylinder", "area"): "5",
    ("cylinder", "diameter"): "5",
    ("cylinder", "timeconst"): "0.4",
    ("cylinder", "bias"): "1 2 3",
    ("position", "timeconst"): "0.3",
    ("position", "dampratio"): "0.4",
    ("position", "inheritrange"): "0.8",
    ("intvelocity", "dampratio"): "0.4",
    ("damper", "ctrlrange"): "0 0.6",
    ("connect", "body1"): "arm",
    ("connect", "body2"): "base",
    ("connect", "anchor"): "0.2 0 0",
    ("equality/joint", "joint1"): "lift",
    ("equality/joint", "joint2"): "lift",
    ("equality/joint", "polycoef"): "0.2 1 0 0 0",
    ("accelerometer", "site"): "palm",
    ("jointpos", "joint"): "lift",
    ("framepos", "objname"): "arm",
    ("framepos", "objtype"): "xbody",
    ("actuatorfrc", "actuator"): "c",
    ("tendonpos", "tendon"): "sum",
    ("key", "qpos"): "0 0 2 1 0 0 0 0 0 0",
    ("key", "qvel"): "0 0 2 1 0 0 0 0 0",
    ("key", "act"): "1 2 0",
    ("key", "ctrl"): "1 2 0 0 0 0 0",
    ("key", "time"): "3",
}
"""Values of attributes that need a specific value in an element."""


def value_of(path: tuple[str, ...], attribute: str) -> str | None:
    """Return a valid value of an attribute that differs from the one in the document, or None."""
    if path[-1] == "flag":
        return "enable" if attribute in FLAGS else "disable"
    for key in ("/".join(path[-2:]), path[-1]):
        if (key, attribute) in OWN:
            return OWN[key, attribute]
    return GENERAL.get(attribute)


def changed(path: tuple[str, ...], name: str | None, attribute: str, value: str) -> str:
    """Return the document with one attribute changed, in the named or first element at a path."""
    root = etree.fromstring(DOCUMENT)
    tag = path[-1]
    where = f".//{tag}" if path[0] == "body" else "./" + "/".join(path)
    name = "box" if tag == "geom" and name is None else name
    every = root.xpath(where + (f"[@name='{name}']" if name else ""))
    assert every, (path, name)
    every[0].set(attribute, value)
    if attribute in ("delay", "interval"):  # these need a buffer for past values
        every[0].set("nsample", "3")
    if attribute == "inheritrange":
        every[0].attrib.pop("actrange", None)
    return etree.tostring(root, encoding="unicode")


def written(folder: Path, text: str) -> Path:
    """Write the text to a file and return its path."""
    path = folder / "m.xml"
    path.write_text(text)
    return path
