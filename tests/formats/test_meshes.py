"""Mesh files that expand to far more data than they contain are refused; others are read."""

import struct
from pathlib import Path

import numpy as np
import pytest
from support import raises

from chasles.formats import meshes, solids
from chasles.formats.registry import MESHES

trimesh = pytest.importorskip("trimesh")

CORNERS = b"v 0 0 0\nv 1 0 0\nv 0 1 0\n"
DAE = (
    '<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">'
    '<library_geometries><geometry id="g"><mesh>{}</mesh></geometry></library_geometries>'
    '<library_nodes>{}</library_nodes><library_visual_scenes><visual_scene id="s">{}'
    "</visual_scene></library_visual_scenes></COLLADA>"
)
SHOWN = '<instance_geometry url="#g"/>'


def doubled(levels: int) -> str:
    """Return nodes that each show the previous node twice."""
    nodes = "".join(
        f'<node id="n{k}">{f"""<instance_node url="#n{k - 1}"/>""" * 2}</node>'
        for k in range(1, levels)
    )
    return f'<node id="n0">{SHOWN}</node>{nodes}'


def glb(text: str) -> bytes:
    data = text.encode()
    return b"glTF" + struct.pack("<IIII", 2, 20 + len(data), len(data), 0x4E4F534A) + data


HOSTILE = {
    "materials.obj": CORNERS + b"".join(b"usemtl a%d\nf 1 2 3\n" % k for k in range(10**4)),
    "instances.dae": DAE.format("0 " * 999, "", f"<node>{SHOWN * 9999}</node>").encode(),
    "doubled.dae": DAE.format("0 " * 99, doubled(40), '<instance_node url="#n39"/>').encode(),
    "cycle.dae": DAE.format("", '<node id="a"><instance_node url="#a"/></node>', "").encode(),
    "entity.dae": b"<!DOCTYPE a [<!ENTITY x SYSTEM '/etc/passwd'>]>" + DAE.encode(),
    "broken.dae": b"<COLLADA>",
    "accessor.glb": glb('{"accessors": [{"count": 2000000000, "type": "VEC3"}]}'),
    "nodes.glb": glb(
        '{"accessors": [{"count": 9}], "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]'
        '}], "nodes": [' + ",".join(['{"mesh": 0}'] * 9999) + "]}"
    ),
    "deep.glb": glb("[" * 10**5),
    "short.glb": b"glTF",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_meshes_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(HOSTILE[name])
    with raises("E-FILE-065|E-FILE-066|E-FILE-067|E-FILE-068|E-FILE-093", name):
        meshes.check(path)
    assert solids.mesh(path) is None


@pytest.mark.parametrize("suffix", MESHES)
def test_ordinary_meshes_are_read(suffix: str, tmp_path: Path) -> None:
    if suffix == ".dae":
        pytest.importorskip("collada")
    path = tmp_path / f"box{suffix}"
    trimesh.creation.box((1.0, 2.0, 3.0)).export(path)
    meshes.check(path)
    found = solids.mesh(path)
    assert found is not None
    assert found.volume == pytest.approx(6.0)


def test_other_files_are_not_meshes(tmp_path: Path) -> None:
    """Other files are not used as meshes, even if trimesh can read them."""
    (tmp_path / "a.zip").write_bytes(b"PK")
    assert solids.located(str(tmp_path / "a.urdf"), "a.zip") is None


def test_binary_stl_files_are_read_without_trimesh(tmp_path: Path) -> None:
    """Binary STL files give the vertices and faces that trimesh finds; trimesh reads text files."""
    shape = trimesh.creation.icosphere(subdivisions=2, radius=0.3)
    path = tmp_path / "ball.stl"
    shape.export(path)
    ((vertices, faces),) = meshes.triangles(path)
    (known,) = meshes.loaded(path)
    assert np.array_equal(np.unique(known.vertices, axis=0), vertices)
    assert np.array_equal(known.triangles, vertices[faces])
    text = tmp_path / "text.stl"
    shape.export(text, file_type="stl_ascii")
    ((again, _),) = meshes.triangles(text)
    assert len(again) == len(vertices)
