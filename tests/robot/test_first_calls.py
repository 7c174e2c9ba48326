"""First calls of new users: names from other libraries, built-in robots, wrong arguments."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chasles
from chasles.cli.options import located
from chasles.formats.registry import BUILT_IN, Found
from chasles.model import JointData
from chasles.model.description import LoopData
from chasles.names import FOREIGN
from chasles.robot import Robot
from chasles.targets import Position

ARM = chasles.robots.planar(4)


@pytest.mark.parametrize("name", FOREIGN)
def test_names_of_other_libraries_lead_to_ours(name: str) -> None:
    assert name == name.lower()
    found = ARM
    for attribute in FOREIGN[name].split("."):
        assert hasattr(found, attribute), FOREIGN[name]
        found = getattr(found, attribute)
    assert not hasattr(Robot, name)
    with pytest.raises(AttributeError, match=f"it is called '{FOREIGN[name]}' here"):
        getattr(ARM, name)


def test_names_of_other_packages_lead_to_ours(monkeypatch: Any) -> None:
    for name, ours in chasles.FOREIGN.items():
        assert ours in chasles.__all__
        with pytest.raises(AttributeError, match=f"it is called '{ours}' here"):
            getattr(chasles, name)
    panda = Found("panda", "example-robot-data", Path("panda.urdf"))
    monkeypatch.setattr(chasles.robots, "installed", lambda: [panda])
    with pytest.raises(AttributeError, match=r"chasles\.load\('panda'\)"):
        chasles.robots.panda()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"did you mean 'puma560'\?$"):
        chasles.robots.puma()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"did you mean 'four_bar'\?$"):
        chasles.robots.four_bars()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"`chasles robots` lists all robots$"):
        chasles.robots.xyzzy()  # type: ignore[attr-defined]
    assert not hasattr(chasles.robots, "__wrapped__")


def test_misspelled_keywords_are_suggested() -> None:
    robot, q = chasles.robots.puma560(), np.zeros(6)
    for _ in range(3):  # by Python, and by the fast entry
        for function, given, ours in (
            (robot.forward_kinematics, {"link": "tool"}, "frame"),
            (robot.jacobian, {"fram": "tool"}, "frame"),
            (robot.inverse_kinematics, {"start": q}, "guess"),
            (robot.inverse_kinematics, {"gues": q}, "guess"),
            (robot.within, {"tolerence": 0.1}, "tolerance"),
        ):
            call: Any = function
            with pytest.raises(chasles.errors.ArgumentError) as caught:
                call(q, **given)
            wrong = next(iter(given))
            problem = rf"Robot\.\w+\(\) got an unexpected keyword argument '{wrong}'"
            assert re.fullmatch(
                rf"{problem}; did you mean '{ours}'\? \[E-CALL-422\]", str(caught.value)
            )
        robot.forward_kinematics(q, frame="tool")
    with pytest.raises(TypeError, match=r"missing the required argument: 'q'; call forward_kin"):
        robot.forward_kinematics()


def test_unknown_attributes_are_ordinary_errors() -> None:
    with pytest.raises(AttributeError, match=r"'Robot' object has no attribute 'xyzzy'$"):
        ARM.xyzzy  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(ARM, "__torch_function__")


@pytest.mark.parametrize("call", [chasles.compile, chasles.cost, Robot.explain])
def test_functions_are_suggested(call: Any) -> None:
    for name in ("rnea", "computeRNEA", "inverse_dynamic"):
        with pytest.raises(chasles.ChaslesError, match="'inverse_dynamics'"):
            call(ARM, name if name != "computeRNEA" else "compute_rnea")


def test_built_in_robots_are_not_files() -> None:
    assert set(BUILT_IN) == set(chasles.robots.ROBOTS)
    for name in ("puma560", "PUMA_560", "four-bar"):
        with pytest.raises(chasles.ChaslesError, match=r"use chasles\.robots\.\w+\(\)") as caught:
            chasles.load(name)
        assert caught.value.code == "E-FILE-410"


def test_files_with_similar_names_are_suggested(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("arm.urdf").write_text('<robot name="arm"><link name="base"/></robot>')
    with pytest.raises(chasles.ChaslesError, match=r"did you mean 'arm\.urdf'"):
        chasles.load("arm.urf")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (None, "E-FILE-411"),
        (3, "E-FILE-411"),
        ("", "E-FILE-412"),
        ('<robot name="arm">\n<link name="base"/>\n</robot>', "E-FILE-413"),
        ("[mechanism]\nname = 'arm'\n", "E-FILE-413"),
    ],
)
def test_only_paths_are_loaded(path: Any, code: str) -> None:
    for door in (chasles.load, chasles.lint, partial(chasles.save, ARM)):
        with pytest.raises(chasles.ChaslesError) as caught:
            door(path)
        assert caught.value.code == code
        assert len(str(caught.value)) < 150


def test_the_home_folder_is_expanded(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    chasles.save(ARM, "~/arm.urdf")
    assert (tmp_path / "arm.urdf").is_file()
    assert chasles.load("~/arm.urdf").nv == chasles.load(Path("~/arm.urdf")).nv == 4
    assert chasles.lint("~/arm.urdf") is not None


def test_a_file_without_its_suffix_is_suggested(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.urdf").write_text('<robot name="arm"><link name="base"/></robot>')
    with pytest.raises(chasles.ChaslesError, match=r"did you mean 'my\.urdf'"):
        chasles.load("my")


def test_a_directory_does_not_hide_a_robot(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("puma560").mkdir()
    Path("output").mkdir()
    with pytest.raises(chasles.ChaslesError, match=r"use chasles\.robots\.puma560\(\)"):
        chasles.load("puma560")
    with pytest.raises(chasles.ChaslesError, match="the path is a directory, and no installed"):
        chasles.load("output")
    assert located("puma560") is None


def test_a_robot_is_not_made_from_a_path() -> None:
    for given in ("arm.urdf", None, ARM):
        with pytest.raises(chasles.errors.ArgumentError, match=r"use chasles\.load\(path\)"):
            Robot(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "misspelled", "meant"),
    [
        ('child link="link2"', 'child link="Link_2"', "link2"),
        ('type="continuous"', 'type="Continuous"', "continuous"),
    ],
)
def test_names_in_files_are_suggested(
    tmp_path: Path, written: str, misspelled: str, meant: str
) -> None:
    file = tmp_path / "arm.urdf"
    chasles.save(ARM, file)
    file.write_text(file.read_text().replace(written, misspelled))
    with pytest.raises(chasles.ModelError, match=f"did you mean '{meant}'"):
        chasles.load(file)


@pytest.mark.parametrize("name", ["linc2.mass", "link2.mas"])
def test_parameters_are_suggested(name: str) -> None:
    with pytest.raises(chasles.ModelError, match=r"did you mean 'link2\.mass'"):
        ARM.with_parameters({name: 2.0})


def test_seven_numbers_are_not_a_pose() -> None:
    with pytest.raises(chasles.ChaslesError, match=r"or \(position, quaternion\)"):
        ARM.inverse_kinematics({ARM.tool: [0.1, 0.0, 0.2, 1.0, 0.0, 0.0, 0.0]})


def test_a_point_is_not_a_pose() -> None:
    with pytest.raises(chasles.ChaslesError, match=r"Position\(point\)") as caught:
        ARM.inverse_kinematics({ARM.tool: [0.1, 0.0, 0.2]})
    assert caught.value.code == "E-CALL-360"


def test_a_solution_is_not_a_configuration() -> None:
    found = ARM.inverse_kinematics({ARM.tool: Position([0.5, 0.0, 1.0])})
    with pytest.raises(chasles.ChaslesError, match="pass the attribute `q` of the Solution"):
        chasles.trajectory.minimum_jerk(ARM.neutral(), found, 1.0)


def test_too_few_joints_are_said_only_for_poses_that_are_not_reached() -> None:
    arm = chasles.robots.planar(4)
    tilted = np.eye(4)
    tilted[:3, :3] = [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
    tilted[:3, 3] = [0.5, 0.0, 0.5]
    missed = arm.inverse_kinematics({arm.tool: tilted})
    assert "the robot 4: constrain less, for example with Position" in repr(missed)
    far = arm.inverse_kinematics({arm.tool: Position([9.0, 0.0, 0.0])})
    assert "constrain less" not in repr(far)


def test_all_solutions_have_a_finite_residual() -> None:
    arm = chasles.robots.puma560()
    T = arm.forward_kinematics(arm.random(seed=0))
    found = arm.inverse_kinematics({arm.tool: T}, solutions="all")
    assert "inf" not in repr(found)
    assert "nan" not in repr(found).partition("; q")[0]


def test_a_controller_is_not_a_word() -> None:
    with pytest.raises(chasles.ChaslesError, match="PDControl") as caught:
        ARM.simulate(ARM.neutral(), np.zeros(4), duration=0.01, control="pd")
    assert caught.value.code == "E-MOTION-190"


def test_a_controller_is_not_a_trajectory() -> None:
    move = chasles.trajectory.minimum_jerk(ARM.neutral(), np.full(4, 0.3), duration=1.0)
    with pytest.raises(chasles.ChaslesError, match="ComputedTorque") as caught:
        ARM.simulate(ARM.neutral(), np.zeros(4), duration=0.01, control=move)
    assert caught.value.code == "E-MOTION-190"


def test_a_base_without_mass_is_named(tmp_path: Path) -> None:
    file = tmp_path / "light.urdf"
    file.write_text('<robot name="light"><link name="base"/></robot>')
    (note,) = [n for n in chasles.load(file, floating=True).notes if "singular" in n]
    assert "the base link 'base' has no mass" in note


@pytest.mark.parametrize("kind", [JointData, LoopData])
def test_joints_print_what_differs_from_the_default(kind: type[JointData]) -> None:
    assert repr(kind("j", "revolute", "a", "b")) == (
        f"{kind.__name__}(name='j', kind='revolute', parent='a', child='b')"
    )
    assert repr(kind("j", "revolute", "a", "b", damping=0.5)).endswith("damping=0.5)")


def test_equal_joints_and_only_those_have_equal_texts() -> None:
    """Keys of the cache depend on these texts."""
    joints = [joint for robot in (ARM, chasles.robots.stewart()) for joint in
              (*robot.model.source.joints, *robot.model.source.loops)]  # fmt: skip
    for a in joints:
        for b in joints:
            assert (repr(a) == repr(b)) == (a == b)
    turned = chasles.robots.puma560().model.source.joints
    assert len({repr(j.pose) for j in turned}) == len({j.pose for j in turned})
