"""SDF files that use most features of the format, each with joint positions for the tests."""

from pathlib import Path

INERTIAL = """<inertial><pose>0.05 -0.02 0.1 0.3 -0.2 0.5</pose><mass>1.5</mass>
  <inertia><ixx>0.03</ixx><iyy>0.04</iyy><izz>0.05</izz><ixy>0.001</ixy><ixz>-0.002</ixz>
  <iyz>0.003</iyz></inertia></inertial>"""


def link(name: str, pose: str = "") -> str:
    return f'<link name="{name}">{pose}{INERTIAL}</link>'


ARM = f"""<sdf version="1.9"><model name="arm">
  <pose>0.1 0.2 0.3 0.1 0.2 0.3</pose>
  {link("base")}
  <frame name="mount"><pose relative_to="base">0 0 0.4 0 0.5 0</pose></frame>
  {link("upper", '<pose relative_to="shoulder">0.1 0 0 0 0 0.2</pose>')}
  {link("fore", '<pose relative_to="upper">0.5 0.1 0 0.4 0 0</pose>')}
  <frame name="tip" attached_to="fore"><pose>0.3 0 0 0 0 1</pose></frame>
  <frame name="eye" attached_to="tip"><pose relative_to="base">0 1 0 0 0 0</pose></frame>
  {link("slider", '<pose degrees="true" relative_to="tip">0 0 0.1 90 0 30</pose>')}
  <joint name="hold" type="fixed"><parent>world</parent><child>base</child></joint>
  <joint name="shoulder" type="revolute"><pose relative_to="mount">0 0.1 0 0 0 0.3</pose>
    <parent>base</parent><child>upper</child>
    <axis><xyz expressed_in="__model__">0 1 1</xyz><dynamics><damping>0.5</damping></dynamics>
    <limit><lower>-1</lower><upper>2</upper><velocity>3</velocity></limit></axis></joint>
  <joint name="elbow" type="continuous"><pose>0.02 0 0 0 0 0</pose>
    <parent>upper</parent><child>fore</child><axis><xyz expressed_in="upper">1 0 0</xyz></axis>
    </joint>
  <joint name="slide" type="prismatic"><parent>tip</parent><child>slider</child>
    <axis><xyz>0 0.6 0.8</xyz></axis></joint>
</model></sdf>"""

JOINTS = f"""<sdf version="1.11"><model name="joints">
  {link("base")}
  {link("a", "<pose>0.3 0 0 0 0 0.5</pose>")}
  {link("b", "<pose>0.3 0.4 0 0 0.5 0</pose>")}
  {link("c", "<pose>0.3 0.4 0.5 0.5 0 0</pose>")}
  {link("d", '<pose rotation_format="quat_xyzw">0.6 0.4 0.5 0.5 0.5 0.5 0.5</pose>')}
  <joint name="hold" type="fixed"><parent>world</parent><child>base</child></joint>
  <joint name="cross" type="universal"><pose>0 0.1 0 0 0 0</pose>
    <parent>base</parent><child>a</child>
    <axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint>
  <joint name="ball" type="ball"><parent>a</parent><child>b</child></joint>
  <joint name="screw" type="screw"><screw_thread_pitch>0.2</screw_thread_pitch>
    <parent>b</parent><child>c</child><axis><xyz>0 0.6 0.8</xyz></axis></joint>
  <joint name="turn" type="revolute"><parent>c</parent><child>d</child>
    <axis><xyz>1 0 0</xyz></axis></joint>
</model></sdf>"""

NESTED = f"""<sdf version="1.8"><world name="lab"><gravity>0.5 -1 -9</gravity>
  <model name="robot" placement_frame="foot"><pose>1 2 3 0 0 0.7</pose>
    {link("body", "<pose>0 0 1 0.1 0 0</pose>")}
    <frame name="foot" attached_to="body"><pose>0 0 -1 0 0.2 0</pose></frame>
    <joint name="hold" type="fixed"><parent>world</parent><child>body</child></joint>
    <model name="arm"><pose relative_to="foot">0.5 0 0 0 0 0.4</pose>
      {link("one")}{link("two", "<pose>0 0 0.5 0 0 0</pose>")}
      <joint name="bend" type="revolute"><parent>one</parent><child>two</child>
        <axis><xyz expressed_in="__model__">0 1 0</xyz></axis></joint>
    </model>
    <joint name="neck" type="revolute"><parent>body</parent><child>arm</child>
      <axis><xyz expressed_in="foot">0 0 1</xyz></axis></joint>
    <joint name="wave" type="revolute"><pose relative_to="arm::two">0 0 0.2 0 0 0</pose>
      <parent>arm::two</parent><child>hand</child><axis><xyz>1 0 0</xyz></axis></joint>
    {link("hand", '<pose relative_to="arm::two">0 0.1 0.3 0 0 0</pose>')}
  </model></world></sdf>"""

OLD = f"""<sdf version="1.4"><model name="old"><pose>0 0 1 0 0.3 0</pose>
  {link("base")}{link("arm", "<pose>0 0 0.5 0.7 0 0</pose>")}
  <joint name="hold" type="fixed"><parent>world</parent><child>base</child></joint>
  <joint name="turn" type="revolute"><pose>0 0 0.1 0 0 0.4</pose>
    <child>arm</child><parent>base</parent><axis><xyz>0 1 0</xyz>
    <limit><lower>-1e16</lower><upper>1e16</upper></limit></axis></joint>
</model></sdf>"""

FLOATING = f"""<sdf version="1.7"><model name="ship"><pose>5 5 5 0 0 0</pose>
  {link("hull", "<pose>0.1 0 0 0 0 0</pose>")}{link("mast", "<pose>0.1 0 2 0 0 0</pose>")}
  <joint name="sway" type="revolute"><parent>hull</parent><child>mast</child>
    <axis><xyz>1 0 0</xyz></axis></joint>
</model></sdf>"""

GRIPPER = f"""<sdf version="1.9"><model name="gripper" canonical_link="palm">
  <pose>9 9 9 0 0 0</pose>
  {link("finger", '<pose relative_to="close">0.05 0 0 0 0.1 0</pose>')}
  {link("palm", "<pose>0.1 0 0.2 0.3 0 0</pose>")}
  <frame name="grip"><pose>0 0.1 0.1 0 0 0.6</pose></frame>
  <frame name="flange" attached_to="palm"><pose>0 0 -0.1 0 0.2 0</pose></frame>
  <joint name="close" type="prismatic"><pose relative_to="__model__">0 0 0.3 0 0 0</pose>
    <parent>palm</parent><child>finger</child><axis><xyz expressed_in="__model__">0 1 0</xyz></axis>
    </joint>
</model></sdf>"""

TOOL = f"""<sdf version="1.8"><model name="tool">{link("shank", "<pose>0 0 0.1 0 0.4 0</pose>")}
  <model name="bit"><pose relative_to="shank">0.1 0 0 0 0 0.3</pose>{link("edge")}
    <frame name="point"><pose>0.2 0 0 0 0 0</pose></frame></model>
  <joint name="spin" type="continuous"><parent>shank</parent><child>bit</child>
    <axis><xyz expressed_in="bit">1 0 0</xyz></axis></joint>
  <frame name="work" attached_to="bit::point"><pose>0 0 0.1 0.2 0 0</pose></frame>
</model></sdf>"""

MANIFEST = """<model><sdf version="1.5">old.sdf</sdf><sdf version="1.9">gripper.sdf</sdf>
  <sdf version="1.99">new.sdf</sdf></model>"""

INCLUDED = {
    "gripper/model.config": MANIFEST,
    "gripper/gripper.sdf": GRIPPER,
    "tool/tool.sdf": TOOL,
}
"""Files that the files below include, by relative path."""


def put(folder: Path, **texts: str) -> Path:
    """Write the included files, and files by their names without .sdf; return the folder."""
    for file, text in (INCLUDED | {f"{name}.sdf": text for name, text in texts.items()}).items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    return folder


MERGED = f"""<sdf version="1.9"><model name="merged"><pose>0 0.5 0 0 0 0.2</pose>
  {link("base", "<pose>0.2 0 0.1 0 0 0</pose>")}
  <joint name="hold" type="fixed"><parent>world</parent><child>base</child></joint>
  <include merge="true"><uri>model://gripper/gripper.sdf</uri><name>hand</name>
    <pose relative_to="base">0.3 0.1 0 0 0 0.5</pose></include>
  <joint name="wrist" type="revolute"><parent>base</parent><child>_merged__hand__model__</child>
    <axis><xyz expressed_in="grip">1 0 0.5</xyz></axis></joint>
  <include merge="1"><uri>package://tool/tool.sdf</uri><placement_frame>work</placement_frame>
    <pose relative_to="flange">0 0 0.1 0 0.3 0</pose></include>
  <joint name="mount" type="revolute"><parent>grip</parent><child>shank</child>
    <axis><xyz expressed_in="bit::point">0 0 1</xyz></axis></joint>
</model></sdf>"""

PLACED = f"""<sdf version="1.9"><model name="placed" placement_frame="tool::work">
  <pose>0.3 0.2 0.1 0 0 0</pose>{link("base", "<pose>0.2 0 0.1 0 0 0</pose>")}
  <joint name="hold" type="fixed"><parent>world</parent><child>base</child></joint>
  <frame name="seat" attached_to="tool"><pose relative_to="base">0 0 0.1 0 0 0</pose></frame>
  <frame name="rim" attached_to="hand"><pose>0 0 0.1 0 0 0</pose></frame>
  <include><uri>model://gripper/gripper.sdf</uri><name>hand</name><placement_frame>flange</placement_frame>
    <pose relative_to="base">0.3 0.1 0 0 0 0.5</pose></include>
  <include><uri>package://tool/tool.sdf</uri></include>
  <joint name="wrist" type="revolute"><parent>base</parent><child>rim</child>
    <axis><xyz expressed_in="hand::grip">1 0 0.5</xyz></axis></joint>
  <joint name="mount" type="ball"><parent>hand::grip</parent><child>seat</child></joint>
</model></sdf>"""

MOTORS = f"""<sdf version="1.7" xmlns:drake="http://drake.mit.edu"><model name="motors">
  {link("base", "0 0 0 0 0 0")}{link("arm", "0 0 0.5 0.1 0.2 0.3")}{link("rod", "0 0.3 1 0 0.4 0")}
  {link("hand", "0.2 0.3 1 0 0 0.5")}
  <joint name="stand" type="fixed"><parent>world</parent><child>base</child></joint>
  <joint name="turn" type="revolute"><parent>base</parent><child>arm</child>
    <axis><xyz>1 0 2</xyz><limit><effort>7</effort></limit></axis>
    <drake:rotor_inertia>0.002</drake:rotor_inertia><drake:gear_ratio>30</drake:gear_ratio></joint>
  <joint name="slide" type="prismatic"><parent>arm</parent><child>rod</child>
    <axis><xyz>0 1 0</xyz></axis><drake:rotor_inertia>0.7</drake:rotor_inertia></joint>
  <joint name="loose" type="revolute"><parent>rod</parent><child>hand</child>
    <axis><xyz>1 0 0</xyz><limit><effort>0</effort></limit></axis>
    <drake:rotor_inertia>5</drake:rotor_inertia></joint>
</model></sdf>"""

_SHAPES = {
    "box": "<size>0.1 0.2 0.3</size>",
    "sphere": "<radius>0.2</radius>",
    "cylinder": "<radius>0.1</radius><length>0.5</length>",
    "capsule": "<radius>0.1</radius><length>0.4</length>",
    "ellipsoid": "<radii>0.1 0.2 0.4</radii>",
    "cone": "<radius>0.3</radius><length>0.4</length>",
}


def _solids(*kinds: str, density: str = "") -> str:
    """Return collision shapes next to each other."""
    return "".join(
        f"""<collision name="c{k}"><pose>{k} 0.1 {0.2 * k} {0.3 * k} 0.5 -0.2</pose>{density}
        <geometry><{kind}>{_SHAPES[kind]}</{kind}></geometry></collision>"""
        for k, kind in enumerate(kinds)
    )


SOLIDS = f"""<sdf version="1.11"><model name="solids">
  <link name="base"><inertial auto="true"/>{_solids("box")}</link>
  <link name="one"><pose>0 0 1 0 0 0.3</pose><inertial auto="true"/>{_solids(*_SHAPES)}</link>
  <link name="two"><pose>0 1 1 0 0 0.3</pose><inertial auto="true"><mass>2.5</mass></inertial>
    {_solids("capsule", "cone", density="<density>300</density>")}</link>
  <link name="three"><pose>0 2 1 0 0 0.3</pose>
    <inertial auto="true"><density>50</density></inertial>{_solids("cylinder", "sphere")}</link>
  <joint name="stand" type="fixed"><parent>world</parent><child>base</child></joint>
  <joint name="a" type="revolute"><parent>base</parent><child>one</child>
    <axis><xyz>1 0 2</xyz></axis></joint>
  <joint name="b" type="revolute"><parent>one</parent><child>two</child>
    <axis><xyz>0 1 2</xyz></axis></joint>
  <joint name="c" type="prismatic"><parent>two</parent><child>three</child>
    <axis><xyz>1 1 0</xyz></axis></joint>
</model></sdf>"""

ANCIENT = OLD.replace('version="1.4"', 'version="1.3"')
"""The changes from SDF 1.3 to 1.4 do not affect models."""

FILES = {
    "motors": MOTORS,
    "solids": SOLIDS,
    "ancient": ANCIENT,
    "arm": ARM,
    "joints": JOINTS,
    "nested": NESTED,
    "old": OLD,
    "floating": FLOATING,
    "merged": MERGED,
    "placed": PLACED,
}

STATES: dict[str, dict[str, list[float]]] = {
    "motors": {"turn": [0.3], "slide": [-0.7], "loose": [1.2]},
    "solids": {"a": [0.3], "b": [-0.7], "c": [0.2]},
    "ancient": {"turn": [0.6]},
    "arm": {"shoulder": [0.3], "elbow": [-0.7], "slide": [0.2]},
    "joints": {
        "cross": [0.4, -0.6],
        "ball": [0.5, 0.5, -0.1, 0.7],
        "screw": [0.9],
        "turn": [-1.1],
    },
    "nested": {"arm::bend": [-0.4], "neck": [0.5], "wave": [1.2]},
    "old": {"turn": [0.6]},
    "floating": {"root_joint": [0.5, 0.5, -0.1, 0.7, 1.0, 2.0, 3.0], "sway": [0.4]},
    "merged": {"close": [0.1], "wrist": [0.3], "spin": [0.7], "mount": [-0.8]},
    "placed": {
        "hand::close": [0.1],
        "tool::spin": [-0.8],
        "wrist": [0.3],
        "mount": [0.5, 0.5, -0.1, 0.7],
    },
}
"""Positions of the joints; quaternions are (w, x, y, z)."""

GRAVITY = {"nested": (0.5, -1.0, -9.0)}
"""Gravity of the files with a world (m/s^2)."""
