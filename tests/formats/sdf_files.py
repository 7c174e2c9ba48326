"""SDF files that use what the format has, each with coordinates by joint name to ask about."""

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

FILES = {"arm": ARM, "joints": JOINTS, "nested": NESTED, "old": OLD, "floating": FLOATING}

STATES: dict[str, dict[str, list[float]]] = {
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
}
"""Positions of the joints; quaternions are (w, x, y, z)."""

GRAVITY = {"nested": (0.5, -1.0, -9.0)}
"""Of files with a world."""
