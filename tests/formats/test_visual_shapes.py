"""What links look like: read from each format, kept by changes, decides nothing computed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import chasles
from chasles import formats
from chasles.mathematics.linear import Vector
from chasles.model import ModelError, ShapeData

URDF = """<robot name="r">
  <material name="red"><color rgba="1 0 0 0.5"/></material>
  <link name="base">
    <visual>
      <origin xyz="1 2 3" rpy="0 0 1.5708"/>
      <geometry><box size="1 2 3"/></geometry>
      <material name="red"/>
    </visual>
    <visual><geometry><cylinder radius="0.5" length="2"/></geometry></visual>
    <visual><geometry><sphere radius="0.1"/></geometry></visual>
    <visual><geometry><mesh filename="package://p/a.stl" scale="1 1 -1"/></geometry></visual>
    <collision><geometry><sphere radius="9"/></geometry></collision>
  </link>
  <link name="tip">{tip}
    <inertial><mass value="1"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
  </link>
  <joint name="j" type="continuous">
    <parent link="base"/><child link="tip"/><axis xyz="0 0 1"/>
  </joint>
</robot>"""


def described(tmp_path: Path, text: str, name: str = "r.urdf") -> chasles.model.Description:
    """What a file says."""
    path = tmp_path / name
    path.write_text(text)
    return formats.read(path)


def test_urdf(tmp_path: Path) -> None:
    box, cylinder, ball, mesh = described(tmp_path, URDF.format(tip="")).shapes
    assert (box.link, box.kind, box.size, box.color) == ("base", "box", (1, 2, 3), (1, 0, 0, 0.5))
    assert box.pose.r == Vector.of(1.0, 2.0, 3.0)
    turned = np.array(box.pose.R.rows)
    assert turned[1, 0] == pytest.approx(1.0, abs=1e-9)  # x of the shape lies along y of the link
    assert turned[0, 0] != 0.0  # the digits of an angle as printed
    assert (cylinder.kind, cylinder.size) == ("cylinder", (0.5, 2.0))
    assert (ball.kind, ball.size) == ("sphere", (0.1,))
    assert (mesh.kind, mesh.file, mesh.size) == ("mesh", "package://p/a.stl", (1, 1, -1))


@pytest.mark.parametrize(
    ("tip", "said"),
    [
        ("<visual/>", "no <geometry>"),
        ("<visual><geometry/></visual>", "none of box"),
        ("<visual><geometry><box size='1 2'/></geometry></visual>", "3 finite numbers"),
        ("<visual><geometry><sphere radius='-1'/></geometry></visual>", "no volume"),
        ("<visual><geometry><mesh/></geometry></visual>", "no filename"),
    ],
)
def test_a_shape_that_cannot_be_is_left_out_with_a_note(
    tmp_path: Path, tip: str, said: str
) -> None:
    source = described(tmp_path, URDF.format(tip=tip))
    assert len(source.shapes) == 4
    (note,) = source.notes
    assert note.startswith(f"{tmp_path / 'r.urdf'}:1")
    assert said in note
    assert "left out" in note


def test_mechanism_files_keep_all_shapes(tmp_path: Path) -> None:
    source = described(tmp_path, URDF.format(tip=""))
    formats.write(source, tmp_path / "r.toml")
    assert formats.read(tmp_path / "r.toml").shapes == source.shapes


MECHANISM = """format = "mechanism"
units = {{length = "mm"}}
[[link]]
name = "a"
[[shape]]
{0}
"""


def test_sizes_have_the_unit_of_lengths_and_scales_none(tmp_path: Path) -> None:
    for row, size in (
        ('link = "a"\nkind = "capsule"\nsize = [20, 300]', (0.02, 0.3)),
        ('link = "a"\nkind = "mesh"\nfile = "a.stl"\nscale = [2, 2, 2]', (2.0, 2.0, 2.0)),
    ):
        (shape,) = described(tmp_path, MECHANISM.format(row), "m.toml").shapes
        assert shape.size == size


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('link = "b"\nkind = "sphere"\nsize = [1]', "no link 'b'"),
        ('link = "a"\nkind = "sphere"\nsize = [1, 2]', "1 numbers for a sphere"),
        ('link = "a"\nkind = "box"\nsize = [1, 0, 1]', "give positive numbers"),
        ('link = "a"\nkind = "cone"\nsize = [1]', "one of box"),
        ('link = "a"\nkind = "mesh"\nsize = [1]', "a mesh has a file"),
        ('link = "a"\nkind = "box"\nsize = [1, 1, 1]\ncolor = [2, 0, 0, 1]', "from 0 to 1"),
    ],
)
def test_bad_rows_of_a_mechanism_file(tmp_path: Path, row: str, said: str) -> None:
    with pytest.raises(ModelError, match=r"m\.toml:\d+: shape 1: .*" + said):
        described(tmp_path, MECHANISM.format(row), "m.toml")


MJCF = """<mujoco>
  <compiler meshdir="assets"/>
  <asset>
    <mesh name="m" file="m.obj" scale="2 1 1"/><material name="red" rgba="1 0 0 1"/>
  </asset>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="a"><joint name="j"/>
      <geom type="mesh" mesh="m" pos="0 0 .5" euler="30 20 10" material="red"/>
      <geom type="capsule" fromto="0 0 0 1 0 0" size=".1"/>
      <geom type="sphere" size=".7" group="3"/>
    </body>
  </worldbody>
</mujoco>"""
CORNERS = np.array([[0.1, 0, 0], [0.4, 0, 0], [0.1, 0.7, 0], [0.1, 0.2, 0.9]])


def test_mjcf_meshes_stand_where_mujoco_has_them(tmp_path: Path) -> None:
    """MuJoCo moves a mesh to its principal axes; the file's corners must come to the same place."""
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "assets").mkdir()
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS]
    faces = ["f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]
    (tmp_path / "assets" / "m.obj").write_text("\n".join(lines + faces) + "\n")
    mesh, capsule = described(tmp_path, MJCF, "m.xml").shapes
    assert (mesh.file, mesh.link, mesh.color) == ("assets/m.obj", "a", (1.0, 0.0, 0.0, 1.0))
    assert (capsule.kind, capsule.size) == ("capsule", (0.1, 1.0))
    assert capsule.pose.r == Vector.of(0.5, 0.0, 0.0)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    theirs = model.mesh_vert @ data.geom_xmat[1].reshape(3, 3).T + data.geom_xpos[1]
    place = mesh.pose
    ours = CORNERS * mesh.size @ np.array(place.R.rows).T + list(place.r)
    for corner in ours:
        assert np.min(np.linalg.norm(theirs - corner, axis=1)) < 1e-6  # its meshes are float32


def test_shapes_decide_nothing_that_is_computed(tmp_path: Path) -> None:
    source = described(tmp_path, URDF.format(tip=""))
    robot, bare = chasles.Robot(source), chasles.Robot(replace(source, shapes=()))
    first, second = (r.function("mass_matrix").key for r in (robot, bare))
    assert first == second


def test_shapes_of_a_part_are_those_of_its_links(tmp_path: Path) -> None:
    tip = "<visual><geometry><sphere radius='1'/></geometry></visual>"
    robot = chasles.Robot(described(tmp_path, URDF.format(tip=tip)))
    assert len(robot.lock({"j": 0.3}).model.source.shapes) == 5
    assert robot.subtree("tip").model.source.shapes == (ShapeData("tip", "sphere", (1.0,)),)
