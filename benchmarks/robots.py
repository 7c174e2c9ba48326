"""Robots of the comparison, and functions that load them into chasles and Pinocchio."""

import math
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import files
from pathlib import Path
from typing import Any

import chasles


@dataclass(frozen=True)
class Case:
    """Robot of the package example-robot-data.

    The joints in `locked` are fixed at zero in every library. `tip` is the link whose pose and
    Jacobian are timed.
    """

    title: str
    file: str
    tip: str
    floating: bool = False
    locked: tuple[str, ...] = ()


CASES: dict[str, Case] = {
    "ur5": Case("UR5", "ur_description/urdf/ur5_robot.urdf", "ee_link"),
    "panda": Case(
        "Panda",
        "panda_description/urdf/panda.urdf",
        "panda_hand",
        locked=("panda_finger_joint1", "panda_finger_joint2"),
    ),
    "solo12": Case("Solo12, floating", "solo_description/robots/solo12.urdf", "FL_FOOT", True),
    "talos": Case(
        "Talos, floating", "talos_data/robots/talos_reduced.urdf", "gripper_left_base_link", True
    ),
}
"""Robots of the comparison."""


@lru_cache(maxsize=1)
def _robot_files() -> dict[str, Path]:
    """Return all robot files, by their path below the package's folder `robots`.

    The files come from the folder in the environment variable ROBOT_DATA, if it is set, or else
    from the installed package.
    """
    if folder := os.environ.get("ROBOT_DATA"):
        found = Path(folder).rglob("*.urdf")
        return {path.relative_to(folder).as_posix(): path for path in found}
    return {
        path.as_posix().partition("/robots/")[2]: Path(str(path.locate()))
        for path in files("example-robot-data") or ()
        if path.suffix == ".urdf"
    }


def path_of(case: Case) -> Path:
    """Return the path of a robot's file."""
    return _robot_files()[case.file]


def chasles_robot(case: Case, *, snap: bool = True) -> chasles.Robot:
    """Load a robot, without compiling functions. Mimic joints are independent, as in Pinocchio."""
    robot = chasles.load(path_of(case), floating=case.floating, mimic=False, snap=snap)
    return robot.lock(dict.fromkeys(case.locked, 0.0)) if case.locked else robot


def snapped_angle(case: Case) -> float:
    """Return the sum of all changes (rad) that `snap=True` makes to angles of the file."""
    robot = chasles.load(path_of(case), floating=case.floating, mimic=False)
    found = (re.search(r"angle (\S+) taken as", note) for note in robot.notes)
    angles = [float(match[1]) for match in found if match]
    return sum(abs(math.remainder(angle, math.pi / 2)) for angle in angles)


def pinocchio_model(case: Case) -> Any:
    """Load a robot into Pinocchio."""
    import pinocchio

    root = [pinocchio.JointModelFreeFlyer()] if case.floating else []
    model = pinocchio.buildModelFromUrdf(str(path_of(case)), *root)
    locked = [model.getJointId(name) for name in case.locked]
    if locked:
        model = pinocchio.buildReducedModel(model, locked, pinocchio.neutral(model))
    return model
