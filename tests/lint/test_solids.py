"""Solids in lint: volume, center and moments agree with trimesh, alone, combined and from files."""

import math
from pathlib import Path

import numpy as np
import pytest
from lint_files import ORIGIN, arm, inertial

from chasles.formats import solids
from chasles.formats.solids import located
from chasles.lint import lint
from chasles.mathematics.spatial import Transform
from chasles.model import ShapeData

trimesh = pytest.importorskip("trimesh")


def test_primitives_are_those_of_trimesh() -> None:
    """Boxes are exact; cylinders and spheres agree with trimesh to 2 % and 1 %."""
    R = trimesh.transformations.rotation_matrix(0.7, [1, 2, 3])
    R[:3, 3] = [0.1, -0.2, 0.3]
    for ours, theirs, tolerance in (
        (solids.box(0.1, 0.2, 0.3), trimesh.primitives.Box([0.1, 0.2, 0.3], R), 1e-9),
        (solids.cylinder(0.1, 0.4), trimesh.primitives.Cylinder(0.1, 0.4, R), 0.02),
        (solids.sphere(0.3), trimesh.creation.icosphere(4, 0.3).apply_transform(R), 0.01),
    ):
        placed = ours.placed(R[:3, :3], R[:3, 3])
        np.testing.assert_allclose(placed.volume, theirs.volume, rtol=tolerance)
        np.testing.assert_allclose(placed.center, theirs.center_mass, atol=1e-9)
        scale = np.max(theirs.moment_inertia)
        np.testing.assert_allclose(placed.moments, theirs.moment_inertia, atol=tolerance * scale)


def test_two_halves_are_one_box() -> None:
    half, whole = solids.box(0.1, 0.2, 0.3), solids.box(0.2, 0.2, 0.3)
    halves = [half.placed(np.eye(3), np.array([x, 0.0, 0.0])) for x in (-0.05, 0.05)]
    both = solids.together(halves)
    assert both is not None
    assert math.isclose(both.volume, whole.volume)
    np.testing.assert_allclose(both.moments, whole.moments, atol=1e-15)


@pytest.mark.parametrize("kind", list(solids._PLAIN))
@pytest.mark.parametrize("edge", [0.0, 1e-200, 1e-110, 1e110, 1e200, 1e308])
def test_sizes_of_any_magnitude_are_known_or_unknown(kind: str, edge: float) -> None:
    """Quantities that overflow are unknown, as for unreadable meshes, without errors or NaN."""
    sizes = [edge] * {"sphere": 1, "cylinder": 2, "capsule": 2}.get(kind, 3)
    shape = ShapeData("ball", kind, tuple(sizes), Transform.identity())
    found = solids.of(shape, "arm.urdf", meshes=False)
    assert (found is None) == (edge > 1e100)
    assert found is None or np.all(np.isfinite([found.volume, *found.moments.flat]))


def test_a_capsule_is_a_cylinder_and_a_ball() -> None:
    """Limits are a rod (no radius) and a sphere (no length); else trimesh agrees to 1 %."""
    theirs = trimesh.creation.capsule(height=0.4, radius=0.1, count=[64, 64])
    ours = solids.capsule(0.1, 0.4)
    np.testing.assert_allclose(ours.volume, theirs.volume, rtol=0.01)
    np.testing.assert_allclose(np.diag(ours.moments), np.diag(theirs.moment_inertia), rtol=0.01)
    ball = solids.sphere(0.3)
    np.testing.assert_allclose(solids.capsule(0.3, 0.0).moments, ball.moments, rtol=1e-14)


@pytest.mark.parametrize("radius", ["1e103", "1e200"])
def test_a_shape_beyond_all_numbers_is_linted(tmp_path: Path, radius: str) -> None:
    """Fuzzing found this case, in which the volume overflowed."""
    file = tmp_path / "arm.urdf"
    ball = f'<collision><geometry><sphere radius="{radius}"/></geometry></collision>'
    file.write_text(arm(inertial(1, 2e-3, 8e-3, 8e-3) + ball))
    assert isinstance(lint(file), tuple)


def test_a_mesh_is_compared_with_the_inertia(tmp_path: Path) -> None:
    """A box of 0.3 m, given in mm, is reported without its scale and accepted with it."""
    (tmp_path / "arm_description/meshes").mkdir(parents=True)
    trimesh.creation.box([300, 100, 100]).export(tmp_path / "arm_description/meshes/tip.stl")
    shape = '<visual>{}<geometry><mesh filename="package://arm_description/meshes/tip.stl"{}/></geometry></visual>'
    file = tmp_path / "arm_description/arm.urdf"
    sound = inertial(1, 2e-3, 8e-3, 8e-3)
    expected = {
        "": {"size", "gyration", "volume"},
        ' scale="0.001 0.001 0.001"': set(),
    }
    for scale, checks in expected.items():
        file.write_text(arm(sound + shape.format("", scale)))
        assert {f.check for f in lint(file)} == checks
        assert lint(file, meshes=False) == ()
    moved = shape.format(ORIGIN.format("2 0 0"), ' scale="0.001 0.001 0.001"')
    file.write_text(arm(sound + moved))
    assert {f.check for f in lint(file)} == {"center-outside"}


def test_a_mesh_that_is_none_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "tip.stl").write_text("solid nothing")
    shape = '<visual><geometry><mesh filename="tip.stl"/></geometry></visual>'
    (tmp_path / "arm.urdf").write_text(arm(inertial(1, 2e-3, 8e-3, 8e-3) + shape))
    assert lint(tmp_path / "arm.urdf") == ()


def test_meshes_are_found_by_package_by_path_and_beside(tmp_path: Path) -> None:
    mesh = tmp_path / "arm/meshes/tip.stl"
    mesh.parent.mkdir(parents=True)
    mesh.touch()
    (tmp_path / "arm/urdf").mkdir()
    robot = str(tmp_path / "arm/urdf/arm.urdf")
    for name in ("package://arm/meshes/tip.stl", "../meshes/tip.stl", f"file://{mesh}", str(mesh)):
        found = located(robot, name)
        assert found is not None, name
        assert found.resolve() == mesh.resolve()
    assert located(robot, "package://leg/meshes/tip.stl") is None
