"""MJCF models of gymnasium and dm_control, compared with MuJoCo; missing mesh files."""

import importlib.util
from functools import cache
from pathlib import Path

import mujoco
import numpy as np
import pytest
from support import direct, raises, relative
from test_mjcf import Twin, document

import chasles

TOLERANCE = 1e-9

CHOSEN = {
    "gymnasium": ("ant", "half_cheetah", "humanoid", "inverted_pendulum", "pusher_v5", "swimmer"),
    "dm_control": ("cheetah", "manipulator", "quadruped", "stacker", "acrobot"),
}
"""Tested models; `python tests/formats/test_mjcf_published.py` checks all in a few minutes."""


@cache
def models(package: str) -> dict[str, Path]:
    """Return the models of a package by name, or {} if it is not installed."""
    spec = importlib.util.find_spec(package)
    found: dict[str, Path] = {}
    if spec is not None and spec.origin:
        for path in sorted(Path(spec.origin).parent.rglob("*.xml")):
            found[path.stem if path.stem not in found else str(path)] = path
    return found


def differences(path: Path) -> float:
    """Return the largest relative error of poses, mass matrix and bias forces at two states."""
    twin = Twin(path, mimic=False)
    robot, data, rng = twin.robot, twin.data, np.random.default_rng(5)
    bodies = [link.name for link in robot.model.source.links if not link.massless]
    worst = 0.0
    for _ in range(2):
        q, qd = robot.random(rng), rng.normal(size=robot.nv)
        there = twin.place(q, qd)
        M = direct(robot.model, "mass_matrix", q)
        worst = max(worst, relative(there.to_mass_matrix(q, M), twin.mass_matrix()))
        still = there.from_acceleration(data.qpos, data.qvel, np.zeros(twin.there.nv))
        h = direct(robot.model.frictionless(), "inverse_dynamics", q, qd, still)
        bias = data.qfrc_bias - data.qfrc_spring - data.qfrc_gravcomp
        worst = max(worst, relative(there.to_effort(q, h), bias, scale=1e-3))
        for body in (bodies[-1], bodies[len(bodies) // 2]):
            pose = direct(robot.model, "forward_kinematics", q, frame=body)
            i = bodies.index(body)
            worst = max(worst, relative(pose[:3, 3], data.xpos[i], scale=1.0))
            worst = max(worst, relative(pose[:3, :3], data.xmat[i].reshape(3, 3)))
    return worst


@pytest.mark.parametrize(
    ("package", "name"), [(package, name) for package, names in CHOSEN.items() for name in names]
)
def test_published_models_are_those_of_mujoco(package: str, name: str) -> None:
    if name not in models(package):
        pytest.skip(f"{package} is not installed, or has no {name}")
    assert differences(models(package)[name]) < TOLERANCE


MESH = """<asset><mesh name="skin" file="gone.stl"/>
  <texture name="paint" type="2d" file="gone.png"/><material name="m" texture="paint"/></asset>
  <worldbody><body name="arm"><joint name="turn" axis="0 1 0"/>
    {inertial}<geom type="mesh" mesh="skin" material="m"/></body></worldbody>"""


def written(folder: Path, inertial: str) -> Path:
    path = folder / "mesh.xml"
    path.write_text(document(MESH.format(inertial=inertial)))
    return path


def test_meshes_that_are_not_there_are_not_needed(tmp_path: Path) -> None:
    given = '<inertial pos="0 0 1" mass="2" diaginertia="1 2 3"/>'
    robot = chasles.load(written(tmp_path, given))
    assert robot.mass_matrix([0.3]).tolist() == [[4.0]]
    assert "2 missing files, not needed to load the robot: gone.png, gone.stl" in str(robot.notes)


def test_meshes_that_give_masses_are_needed(tmp_path: Path) -> None:
    with raises("E-MJCF-002", "'gone.stl'", "'arm'"):
        chasles.load(written(tmp_path, ""))


if __name__ == "__main__":
    for package in CHOSEN:
        for path in sorted(models(package).values()):
            try:
                mujoco.MjModel.from_xml_path(str(path))
            except ValueError:
                print("not MuJoCo's either:", path.name)
                continue
            print(f"{differences(path):.1e}", path.name, flush=True)
