"""chasles: rigid-body kinematics and dynamics, written as in the books and compiled.

import chasles
robot = chasles.robots.puma560()          # or chasles.load("robot.urdf")
tau = robot.inverse_dynamics(q, qd, qdd)  # one state, or any batch of states
"""

import importlib
from typing import TYPE_CHECKING, Any

from chasles.accuracy import condition, maximal_dynamics
from chasles.api import compile, cost, from_dh, load, save, to_dh
from chasles.checks import Verification, verify
from chasles.compiled import Wrench
from chasles.errors import ChaslesError, ModelError
from chasles.exporting import export
from chasles.lint import Finding, lint
from chasles.loops import (
    ImpossiblePosition,
    LockedMechanism,
    LoopError,
    OpenLoop,
    OverDetermined,
    SingularPosition,
    UnderActuated,
)
from chasles.model.denavit_hartenberg import DHRow, DHTable
from chasles.robot import Robot
from chasles.simulate import INTEGRATORS, ClosureFunction, Event, Trajectory, simulate
from chasles.version import VERSION

if TYPE_CHECKING:
    from chasles import contact, control, conventions, errors, homogeneous, robots
    from chasles.peers import compare

__version__ = VERSION

__all__ = [
    "INTEGRATORS",
    "ChaslesError",
    "ClosureFunction",
    "DHRow",
    "DHTable",
    "Event",
    "Finding",
    "ImpossiblePosition",
    "LockedMechanism",
    "LoopError",
    "ModelError",
    "OpenLoop",
    "OverDetermined",
    "Robot",
    "SingularPosition",
    "Trajectory",
    "UnderActuated",
    "Verification",
    "Wrench",
    "compare",
    "compile",
    "condition",
    "contact",
    "control",
    "conventions",
    "cost",
    "errors",
    "export",
    "from_dh",
    "homogeneous",
    "lint",
    "load",
    "maximal_dynamics",
    "robots",
    "save",
    "simulate",
    "to_dh",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Parts of the package that load on use."""
    if name in ("contact", "control", "conventions", "homogeneous", "robots"):
        return importlib.import_module(f"chasles.{name}")
    if name == "compare":
        return importlib.import_module("chasles.peers").compare
    raise AttributeError(f"module 'chasles' has no attribute {name!r}")
