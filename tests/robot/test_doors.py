"""Invalid robots, tolerances and files are rejected with the name of the called function."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles import writing
from chasles.formats import is_name

ARM = chasles.robots.planar(2)
BARS = chasles.robots.four_bar()
ZERO = np.zeros(2)

TAKE_A_ROBOT: dict[str, Callable[[Any], Any]] = {
    "save": lambda robot: chasles.save(robot, "robot.urdf"),
    "to_dh": lambda robot: chasles.to_dh(robot),
    "compile": lambda robot: chasles.compile(robot, "mass_matrix"),
    "cost": lambda robot: chasles.cost(robot, "mass_matrix"),
    "export": lambda robot: chasles.export(robot, "mass_matrix", "c"),
    "verify": lambda robot: chasles.verify(robot),
    "compare": lambda robot: chasles.compare(robot, "pinocchio"),
    "simulate": lambda robot: chasles.simulate(robot, ZERO, ZERO, duration=1.0),
    "condition": lambda robot: chasles.condition(robot, ZERO),
    "maximal_dynamics": lambda robot: chasles.maximal_dynamics(robot, ZERO, ZERO, ZERO),
    "is_equivalent": lambda robot: ARM.is_equivalent(robot),
}
"""Functions that take a robot, called with another object instead."""


@pytest.mark.parametrize("given", ["robot.urdf", Path("robot.urdf"), None, ARM.model.source])
@pytest.mark.parametrize("name", TAKE_A_ROBOT)
def test_a_path_is_no_robot(
    name: str, given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with raises("E-CALL-055", name):
        TAKE_A_ROBOT[name](given)
    assert not list(tmp_path.iterdir())


# Tolerances ------------------------------------------------------------------------------------

CLOSED = BARS.assemble([0.5])
REST = np.zeros(3)

TAKE_A_TOLERANCE: dict[str, Callable[[Any], Any]] = {
    "mobility": lambda x: BARS.mobility(CLOSED, tolerance=x),
    "complete": lambda x: BARS.complete(CLOSED, [1.0], tolerance=x),
    "constrained_dynamics": lambda x: BARS.constrained_dynamics(CLOSED, REST, REST, tolerance=x),
    "maximal_dynamics": lambda x: chasles.maximal_dynamics(ARM, ZERO, ZERO, ZERO, tolerance=x),
    "is_equivalent": lambda x: ARM.is_equivalent(ARM, tolerance=x),
    "base_parameters": lambda x: ARM.base_parameters(tolerance=x),
    "compare": lambda x: chasles.compare(ARM, "pinocchio", tolerance=x),
}


@pytest.mark.parametrize("bad", [True, np.inf, np.nan, 0.0, -1e-9, "a", None, [1e-6]], ids=str)
@pytest.mark.parametrize("name", TAKE_A_TOLERANCE)
def test_a_tolerance_is_a_finite_positive_number(name: str, bad: Any) -> None:
    with raises("E-CALL-004", name):
        TAKE_A_TOLERANCE[name](bad)


@pytest.mark.parametrize("name", sorted(set(TAKE_A_TOLERANCE) - {"compare"}))
def test_a_tolerance_may_be_of_numpy(name: str) -> None:
    for given in (np.float64(1e-6), np.float32(1e-6)):
        found, plain = (TAKE_A_TOLERANCE[name](x) for x in (given, float(given)))
        assert str(found) == str(plain)


# Name of the called function ----------------------------------------------------------------------

WRONG_OF_LOOPS: dict[str, Callable[[chasles.Robot], Any]] = {
    "forward_dynamics: q": lambda robot: robot.forward_dynamics(np.zeros(2), REST, REST),
    "forward_dynamics: qd": lambda robot: robot.forward_dynamics(CLOSED, [0.0], REST),
    "forward_dynamics: tau": lambda robot: robot.forward_dynamics(CLOSED, REST, ["a"] * 3),
    "forward_dynamics: unknown method 'x'": lambda robot: robot.forward_dynamics(
        CLOSED, REST, REST, method="x"
    ),
    "forward_dynamics: f_ext['coupler']": lambda robot: robot.forward_dynamics(
        CLOSED, REST, REST, f_ext={"coupler": np.zeros(5)}
    ),
    "hybrid_dynamics: qd": lambda robot: robot.hybrid_dynamics(CLOSED, ZERO, REST, known="crank"),
    "inverse_dynamics: qdd": lambda robot: robot.inverse_dynamics(
        CLOSED, REST, ZERO, actuated=["crank"]
    ),
    "mass_matrix: q": lambda robot: robot.mass_matrix(ZERO, coordinates="independent"),
    "linearize: tau": lambda robot: robot.linearize(CLOSED, REST, ZERO),
}


@pytest.mark.parametrize("called", [False, True], ids=["first call", "fast entry"])
@pytest.mark.parametrize("message", WRONG_OF_LOOPS)
def test_an_error_names_what_was_called(message: str, called: bool) -> None:
    robot = chasles.Robot(BARS.model.source)
    if called:
        robot.forward_dynamics(CLOSED, REST, REST)
    with pytest.raises(chasles.ChaslesError) as caught:
        WRONG_OF_LOOPS[message](robot)
    assert caught.value.message.startswith(message)
    assert caught.value.part == message.partition(": ")[0]


def test_an_option_that_a_function_needs_is_named(tmp_path: Path) -> None:
    with raises("E-CALL-027", "actuator_forces", "actuated="):
        chasles.export(BARS, "actuator_forces", tmp_path / "c")
    with raises("E-CALL-027", "actuator_forces", "weights="):
        chasles.export(BARS, "actuator_forces", tmp_path / "c", actuated=(0,))
    given = {"actuated": (0,), "weights": (1.0,)}
    assert chasles.export(BARS, "actuator_forces", tmp_path / "c", **given)


# Files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["arm_v1.2", "arm.2024", "panda", "nothing.txt"])
def test_a_name_may_have_a_dot(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("path", ["arm.urdf", "arm.URDF", "a/arm_v1.2", "", ".", "robot.v1.sdf"])
def test_a_file_is_no_name(path: str) -> None:
    assert not is_name(path)


def test_an_installed_robot_may_have_a_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm_v1.2.urdf").write_text('<robot name="arm"><link name="base"/></robot>')
    assert chasles.load("arm_v1.2").name == "arm"
    with raises("E-FILE-035", "'arm_v1.2'"):
        chasles.load("arm_v1.3")


def test_a_directory_is_no_robot_file(tmp_path: Path) -> None:
    with raises("E-FILE-003"):
        chasles.load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """Files are replaced by renaming a new file, which would remove a device."""
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    (tmp_path / "link.toml").symlink_to(pipe)
    for path in (pipe, tmp_path / "link.toml"):
        with raises("E-FILE-010", path):
            writing.store(path, "text")
    assert pipe.is_fifo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.toml", "pipe.toml"]
