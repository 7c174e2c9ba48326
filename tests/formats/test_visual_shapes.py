"""Shapes of links are read, written and preserved in each format, without effect on dynamics."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import close, raises

import chasles
from chasles import formats
from chasles.formats.registry import mesh_file
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_from_vector
from chasles.mathematics.spatial import Transform
from chasles.model import SHAPES, ShapeData

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
    """Return the description of a file with the given text."""
    path = tmp_path / name
    path.write_text(text)
    return formats.read(path)


def test_urdf(tmp_path: Path) -> None:
    box, cylinder, ball, mesh, felt = described(tmp_path, URDF.format(tip="")).shapes
    assert (box.link, box.kind, box.size, box.color) == ("base", "box", (1, 2, 3), (1, 0, 0, 0.5))
    assert box.pose.r == Vector.of(1.0, 2.0, 3.0)
    turned = np.array(box.pose.R.rows)
    assert turned[1, 0] == pytest.approx(1.0, abs=1e-9)  # x of the shape lies along y of the link
    assert turned[0, 0] != 0.0  # 1.5708 is not rounded to pi/2
    assert (cylinder.kind, cylinder.size) == ("cylinder", (0.5, 2.0))
    assert (ball.kind, ball.size) == ("sphere", (0.1,))
    assert (mesh.kind, mesh.file, mesh.size) == ("mesh", "package://p/a.stl", (1, 1, -1))
    assert felt == ShapeData("base", "sphere", (9.0,), role="collision")


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
    assert len(source.shapes) == 5
    (note,) = source.notes
    assert note.startswith(f"{tmp_path / 'r.urdf'}:1")
    assert said in note
    assert "is ignored" in note


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
        ('link = "b"\nkind = "sphere"\nsize = [1]', "E-TOML-008 'b'"),
        ('link = "a"\nkind = "sphere"\nsize = [1, 2]', "E-TOML-010"),
        ('link = "a"\nkind = "box"\nsize = [1, 0, 1]', "E-DH-006"),
        ('link = "a"\nkind = "cone"\nsize = [1]', "E-DH-006"),
        ('link = "a"\nkind = "mesh"\nsize = [1]', "E-TOML-009"),
        ('link = "a"\nkind = "box"\nsize = [1, 1, 1]\ncolor = [2, 0, 0, 1]', "E-DH-006"),
    ],
)
def test_bad_rows_of_a_mechanism_file(tmp_path: Path, row: str, said: str) -> None:
    with raises(said):
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
    """MuJoCo moves a mesh to its principal axes; the vertices must still be at the same places."""
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "assets").mkdir()
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS]
    faces = ["f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]
    (tmp_path / "assets" / "m.obj").write_text("\n".join(lines + faces) + "\n")
    mesh, capsule, felt = described(tmp_path, MJCF, "m.xml").shapes
    assert (mesh.file, mesh.link, mesh.color) == ("assets/m.obj", "a", (1.0, 0.0, 0.0, 1.0))
    assert (capsule.kind, capsule.size) == ("capsule", (0.1, 1.0))
    assert capsule.pose.r == Vector.of(0.5, 0.0, 0.0)
    friction = (1.0, 0.005, 0.0001)  # MuJoCo's default
    assert felt == ShapeData(
        "a", "sphere", (0.7,), role="collision", bits=(1, 1), friction=friction
    )
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    theirs = model.mesh_vert @ data.geom_xmat[1].reshape(3, 3).T + data.geom_xpos[1]
    place = mesh.pose
    ours = CORNERS * mesh.size @ np.array(place.R.rows).T + list(place.r)
    for corner in ours:
        assert np.min(np.linalg.norm(theirs - corner, axis=1)) < 1e-6  # MuJoCo's meshes are float32


def test_shapes_decide_nothing_that_is_computed(tmp_path: Path) -> None:
    source = described(tmp_path, URDF.format(tip=""))
    robot, bare = chasles.Robot(source), chasles.Robot(replace(source, shapes=()))
    first, second = (r.function("mass_matrix").key for r in (robot, bare))
    assert first == second


def test_shapes_of_a_part_are_those_of_its_links(tmp_path: Path) -> None:
    tip = "<visual><geometry><sphere radius='1'/></geometry></visual>"
    robot = chasles.Robot(described(tmp_path, URDF.format(tip=tip)))
    assert len(robot.lock({"j": 0.3}).model.source.shapes) == 6
    assert robot.subtree("tip").model.source.shapes == (ShapeData("tip", "sphere", (1.0,)),)


SDF = """<sdf version="1.9"><model name="m">
  <link name="a"><pose>0 0 5 0 0 0</pose>
    <inertial><mass>1</mass></inertial>
    <visual name="v"><pose>1 2 3 0 0 1.5708</pose>
      <geometry><box><size>1 2 3</size></box></geometry>
      <material><diffuse>1 0 0 0.8</diffuse></material><transparency>0.5</transparency></visual>
    <visual name="w"><pose relative_to="f"/>
      <geometry><ellipsoid><radii>1 2 3</radii></ellipsoid></geometry></visual>
    <visual name="x"><geometry><mesh><uri>model://p/a.stl</uri></mesh></geometry></visual>
    <collision name="c">
      <geometry><capsule><radius>0.1</radius><length>2</length></capsule></geometry></collision>
    {more}
  </link>
  <frame name="f"><pose>0 0 7 0 0 0</pose></frame>
</model></sdf>"""


def test_sdf(tmp_path: Path) -> None:
    box, ellipsoid, mesh, capsule = described(tmp_path, SDF.format(more=""), "m.sdf").shapes
    assert (box.link, box.kind, box.size, box.color) == ("a", "box", (1, 2, 3), (1, 0, 0, 0.4))
    assert box.pose.r == Vector.of(1.0, 2.0, 3.0)
    assert np.array(box.pose.R.rows)[1, 0] == pytest.approx(1.0, abs=1e-9)
    assert ellipsoid.pose.r == Vector.of(0.0, 0.0, 2.0)  # the frame is 2 m above the link
    assert (mesh.kind, mesh.file, mesh.size) == ("mesh", "model://p/a.stl", (1, 1, 1))
    assert capsule == ShapeData("a", "capsule", (0.1, 2.0), role="collision")


@pytest.mark.parametrize(
    ("geometry", "said"),
    [
        ("", "no <geometry>"),
        ("<geometry><plane/></geometry>", "none of box"),
        ("<geometry><sphere><radius>0</radius></sphere></geometry>", "no volume"),
        ("<geometry><box><size>1 2</size></box></geometry>", "3 finite numbers"),
        ("<geometry><mesh/></geometry>", "no <uri>"),
    ],
)
def test_a_shape_of_sdf_that_cannot_be_is_left_out_with_a_note(
    tmp_path: Path, geometry: str, said: str
) -> None:
    text = SDF.format(more=f"<visual name='y'>{geometry}</visual>")
    source = described(tmp_path, text, "m.sdf")
    assert len(source.shapes) == 4
    (note,) = [note for note in source.notes if "is ignored" in note]
    assert note.startswith(f"{tmp_path / 'm.sdf'}:12: ")
    assert said in note


def test_meshes_of_included_models_are_named_from_the_first_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    part = SDF.format(more="").replace("model://p/a.stl", "meshes/a.stl")
    (tmp_path / "sub" / "model.sdf").write_text(part)
    whole = '<sdf version="1.9"><world name="w"><include><uri>sub</uri></include></world></sdf>'
    assert described(tmp_path, whole, "w.sdf").shapes[2].file == "sub/meshes/a.stl"


def all_kinds(folder: Path, lacks: Collection[str] = ()) -> chasles.model.Description:
    """Return an arm with all kinds of shapes in both roles, in oblique poses, with a mesh file."""
    trimesh = pytest.importorskip("trimesh")
    (folder / "meshes").mkdir(parents=True)
    mesh = trimesh.creation.icosphere(subdivisions=1)
    mesh.vertices[:, 0] *= 2.0
    (folder / "meshes" / "m.stl").write_bytes(mesh.export(file_type="stl"))
    robot = chasles.robots.planar(2)
    links = robot.model.source.links
    R = matrix_from_vector(Vector.of(0.3, -0.5, 0.7))
    shapes = []
    for k, (kind, count) in enumerate(SHAPES.items()):
        if kind in lacks:
            continue
        size = tuple(0.1 * (k + 1) + 0.01 * i for i in range(count))
        pose = Transform.from_pose(R, Vector.of(0.1 * k, 0.2, -0.3))
        file = "meshes/m.stl" if kind == "mesh" else ""
        color = (0.25, 0.5, 0.75, 1.0)
        shapes.append(ShapeData(links[-1].name, kind, size, pose, file, color))
        shapes.append(ShapeData(links[-2].name, kind, size, pose, file, role="collision"))
    where = str(folder / "arm.urdf")
    return replace(robot.model.source, shapes=tuple(shapes), where=where)


def same(a: ShapeData, b: ShapeData) -> None:
    """Check equality up to rounding; MuJoCo moves frames of meshes and stores float32 vertices."""
    assert (a.link, a.kind, a.role, a.color) == (b.link, b.kind, b.role, b.color)
    digits = 1e-6 if a.kind == "mesh" else 1e-12
    for x, y in ((a.size, b.size), (a.pose.r, b.pose.r), (a.pose.R.rows, b.pose.R.rows)):
        np.testing.assert_allclose(np.array(list(x)), np.array(list(y)), atol=digits)


@pytest.mark.parametrize(
    ("suffix", "lacks"),
    [(".toml", ()), (".sdf", ()), (".xml", ()), (".urdf", ("capsule", "ellipsoid"))],
)
def test_shapes_are_written_and_read_back(
    tmp_path: Path, suffix: str, lacks: tuple[str, ...]
) -> None:
    """The mesh is found after the robot is written into another folder."""
    if suffix == ".xml":
        pytest.importorskip("mujoco")
    source = all_kinds(tmp_path / "from", lacks)
    (tmp_path / "to").mkdir()
    file = tmp_path / "to" / f"arm{suffix}"
    assert not any("not written" in note for note in formats.write(source, file))
    found = formats.read(file)
    for shape, again in zip(in_order(source), in_order(found), strict=True):
        same(shape, again)
        if shape.kind == "mesh":
            path = mesh_file(again.file, str(file))
            assert path is not None
            assert path.samefile(tmp_path / "from" / "meshes" / "m.stl")
    close(*(chasles.Robot(x).mass_matrix(np.array([0.3, 0.4])) for x in (source, found)), 1e-12)


def in_order(source: chasles.model.Description) -> list[ShapeData]:
    return sorted(source.shapes, key=lambda shape: (shape.link, shape.kind))


def test_urdf_has_no_capsules_and_no_ellipsoids(tmp_path: Path) -> None:
    """A capsule is written as a cylinder and two spheres that cover the same points."""
    source = all_kinds(tmp_path, [kind for kind in SHAPES if kind not in ("capsule", "ellipsoid")])
    notes = formats.write(source, tmp_path / "arm.urdf")
    ends = [
        f"link {shape.link!r}: URDF does not support shapes of type ell"
        for shape in source.shapes[2:]
    ]
    assert [note.startswith(end) for note, end in zip(notes, ends, strict=True)] == [True, True]
    cylinder, *balls = formats.read(tmp_path / "arm.urdf").shapes[:3]
    capsule = next(s for s in source.shapes if s.link == cylinder.link)
    same(replace(capsule, kind="cylinder"), cylinder)
    for ball, sign in zip(balls, (-0.5, 0.5), strict=True):
        middle = np.array(capsule.pose.R.rows)[:, 2] * sign * capsule.size[1] + list(capsule.pose.r)
        close(np.array(list(ball.pose.r)), middle, 1e-12)
        assert (ball.kind, ball.size) == ("sphere", capsule.size[:1])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("no.stl", None, "was not found"),
        ("a.dae", b"<COLLADA/>", "that MuJoCo does not read"),
        ("text.stl", b"solid of nothing", "not a binary STL"),
    ],
)
def test_mjcf_is_written_without_meshes_that_mujoco_would_refuse(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    robot = chasles.robots.planar(1)
    link = robot.bodies[-1]
    shapes = (ShapeData(link, "mesh", (1.0, 1.0, 1.0), file=name), ShapeData(link, "sphere", (1,)))
    source = replace(robot.model.source, shapes=shapes, where=str(tmp_path / "r.urdf"))
    (note,) = formats.write(source, tmp_path / "r.xml")
    assert note.startswith(f"link {link!r}: mesh {name} ")
    assert said in note
    pytest.importorskip("mujoco")
    (kept,) = formats.read(tmp_path / "r.xml").shapes
    assert (kept.kind, kept.link) == ("sphere", link)
