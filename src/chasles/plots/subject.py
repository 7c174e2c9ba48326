"""What pictures ask of a robot, and checks of what they are asked to draw."""

import math
from collections.abc import Iterator
from typing import Any, Literal, Protocol

import numpy as np

from chasles.errors import InputError
from chasles.formats.motion import numbered
from chasles.functions.doors import numbers
from chasles.mechanisms import Mechanism
from chasles.model import Model

Rows = Literal["linear", "angular", "all"]
"""Rows of a Jacobian: of linear velocity, of angular velocity, or both (whose units differ)."""

ROWS = {"angular": slice(0, 3), "linear": slice(3, 6), "all": slice(0, 6)}


class Subject(Protocol):
    """A robot."""

    model: Model
    mechanism: Mechanism

    @property
    def name(self) -> str: ...
    @property
    def nq(self) -> int: ...
    @property
    def nv(self) -> int: ...
    @property
    def joints(self) -> tuple[str, ...]: ...
    @property
    def frames(self) -> tuple[str, ...]: ...

    def position_slice(self, joint: str) -> slice: ...
    def neutral(self) -> np.ndarray: ...
    def random(self, rng: Any = None, size: Any = ()) -> np.ndarray: ...
    def lock(self, positions: Any) -> Any: ...
    def forward_kinematics(self, q: Any, *, frame: str) -> np.ndarray: ...
    def jacobian(self, q: Any, *, frame: str) -> np.ndarray: ...
    def mass_matrix(self, q: Any, *, coordinates: Any = "tree") -> np.ndarray: ...
    def inverse_dynamics(self, q: Any, qd: Any, qdd: Any) -> np.ndarray: ...
    def kinetic_energy(self, q: Any, qd: Any) -> np.ndarray: ...
    def potential_energy(self, q: Any) -> np.ndarray: ...


def efforts(robot: Subject) -> Iterator[tuple[str, str]]:
    """The name and the unit of every joint force."""
    for i in robot.model.movers:
        joint, name = robot.model.bodies[i].joint, robot.model.bodies[i].data.name
        for label, unit in zip(numbered(name, joint.nv), joint.velocity_units, strict=True):
            yield label, {"rad": "N m", "m": "N"}[unit]


def path(what: str, value: Any, size: int) -> np.ndarray:
    """States one after the other: (n, size) finite numbers, two states or more."""
    found = numbers(what, value, size)
    if found.ndim != 2 or len(found) < 2:
        raise InputError(
            "E-PLOT-016",
            f"{what} must be (n, {size}), one row for each of two or more instants, not "
            f"{found.shape}",
        )
    return _finite(what, found)


def times(t: Any, count: int) -> tuple[np.ndarray, str]:
    """Instants to draw over, and what they are: those given in s, or their numbers."""
    if t is None:
        return np.arange(count), "instant"
    found = np.asarray(t, float)
    if found.shape != (count,):
        problem = f"t must have a time for each of {count} instants, not {found.shape}"
        raise InputError("E-PLOT-017", problem)
    return _finite("t", found), "time (s)"


def state(robot: Subject, q: Any) -> np.ndarray:
    """One position: (nq,) finite numbers."""
    found = numbers("q", q, robot.nq)
    if found.ndim != 1:
        problem = f"q must be one state of {robot.nq} numbers, not {found.shape}"
        raise InputError("E-PLOT-018", problem)
    return _finite("q", found)


def _finite(what: str, found: np.ndarray) -> np.ndarray:
    bad = np.argwhere(~np.isfinite(found))
    if len(bad):
        problem = f"{what} has a number that is not finite at index {tuple(bad[0].tolist())}"
        raise InputError("E-PLOT-019", problem)
    return found


def frame_of(robot: Subject, frame: str | None) -> str:
    """A frame by name, the last if none is given."""
    chosen = robot.frames[-1] if frame is None else frame
    robot.model.frame(chosen)
    return chosen


def open_tree(robot: Subject, what: str, remedy: str) -> None:
    """Refuse a robot with loops, whose joints do not move freely."""
    robot.mechanism.refuse_loops(what, remedy)


def span(robot: Subject, joint: str) -> tuple[float, float]:
    """The lowest and highest position of a joint of one coordinate: its limits, or a turn or 1 m
    each way where it has none, as `Robot.random` takes them."""
    body = robot.model.bodies[robot.model.mover(joint)]
    if body.joint.nq != 1:
        problem = f"joint {joint!r} has {body.joint.nq} coordinates"
        raise InputError("E-PLOT-021", problem, "name one that has one")
    low, high = body.data.limits.lower, body.data.limits.upper
    if math.isfinite(low) and math.isfinite(high) and low < high:
        return low, high
    reach = {"rad": math.pi, "m": 1.0}[body.joint.units[0]]
    return -reach, reach


def unit(robot: Subject, joint: str) -> str:
    """Of a joint's first coordinate: rad or m."""
    return robot.model.bodies[robot.model.mover(joint)].joint.units[0]
