"""What `chasles convert` does: a robot into a file of another format, and what is said of it."""

from pathlib import Path

from rich.console import Console

from chasles.api import save
from chasles.robot import Robot


def report(robot: Robot, output: Path, console: Console) -> None:
    """Write the robot, and say what the file has and what it has no place for."""
    for note in save(robot, output):
        console.print(f"note: {note}", markup=False)
    parts = f"{len(robot.joints)} joints, {len(robot.bodies)} links"
    console.print(f"{robot.name} ({parts}) saved to {output}", markup=False, soft_wrap=True)
