"""Robot arms from the package example-robot-data, and two built-in arms."""

from functools import cache
from importlib.metadata import files
from pathlib import Path

import chasles
from chasles.robots import puma560, stanford_arm


@cache
def published(name: str) -> tuple[chasles.Robot, str]:
    """Return a published robot and the name of its tool frame."""
    if name in ("puma560", "stanford_arm"):
        return {"puma560": puma560, "stanford_arm": stanford_arm}[name](), "tool"
    found = [f for f in files("example-robot-data") or () if f.name == f"{name}.urdf"]
    robot = chasles.load(Path(str(found[0].locate())))
    if name == "panda":
        return robot.lock({"panda_finger_joint1": 0.0}), "panda_hand"
    return robot, "ee_link"
