"""chasles: rigid-body kinematics and dynamics with compiled textbook algorithms.

import chasles
robot = chasles.robots.puma560()          # or chasles.load("robot.urdf")
tau = robot.inverse_dynamics(q, qd, qdd)  # one state, or any batch of states
"""

import sys
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

from chasles.version import VERSION

if TYPE_CHECKING:  # editors and type checkers do not run __getattr__
    from chasles import contact, control, conventions, errors, homogeneous, robots, trajectory
    from chasles.accuracy import MaximalDynamics, condition, maximal_dynamics
    from chasles.api import compile, cost, from_dh, load, save, to_dh
    from chasles.checks.verify import Verification, verify
    from chasles.errors import ChaslesError, ModelError
    from chasles.exporting import export
    from chasles.functions.doors import Wrench
    from chasles.identification import (
        Calibrated,
        Excitation,
        Identified,
        OnlineEstimator,
        calibrate,
        excite,
        identify,
        online_estimator,
    )
    from chasles.lint import Finding, lint
    from chasles.mechanisms.reports import (
        ImpossiblePosition,
        LockedMechanism,
        LoopError,
        OpenLoop,
        OverDetermined,
        SingularPosition,
        UnderActuated,
    )
    from chasles.model.denavit_hartenberg import DHRow, DHTable
    from chasles.peers import compare
    from chasles.robot import Robot
    from chasles.simulate import INTEGRATORS, ClosureFunction, Event, Trajectory, simulate

__version__ = VERSION

__all__ = [
    "INTEGRATORS",
    "Calibrated",
    "ChaslesError",
    "ClosureFunction",
    "DHRow",
    "DHTable",
    "Event",
    "Excitation",
    "Finding",
    "Identified",
    "ImpossiblePosition",
    "LockedMechanism",
    "LoopError",
    "MaximalDynamics",
    "ModelError",
    "OnlineEstimator",
    "OpenLoop",
    "OverDetermined",
    "Robot",
    "SingularPosition",
    "Trajectory",
    "UnderActuated",
    "Verification",
    "Wrench",
    "calibrate",
    "compare",
    "compile",
    "condition",
    "contact",
    "control",
    "conventions",
    "cost",
    "errors",
    "excite",
    "export",
    "from_dh",
    "homogeneous",
    "identify",
    "lint",
    "load",
    "maximal_dynamics",
    "online_estimator",
    "robots",
    "save",
    "simulate",
    "to_dh",
    "trajectory",
    "verify",
]

PUBLIC = {
    name: module
    for module, names in {
        "chasles": (
            *("contact", "control", "conventions", "errors", "homogeneous", "robots"),
            "trajectory",
        ),
        "chasles.accuracy": ("MaximalDynamics", "condition", "maximal_dynamics"),
        "chasles.api": ("compile", "cost", "from_dh", "load", "save", "to_dh"),
        "chasles.checks.verify": ("Verification", "verify"),
        "chasles.functions.doors": ("Wrench",),
        "chasles.exporting": ("export",),
        "chasles.identification": (
            *("Calibrated", "Excitation", "Identified", "OnlineEstimator"),
            *("calibrate", "excite", "identify", "online_estimator"),
        ),
        "chasles.lint": ("Finding", "lint"),
        "chasles.mechanisms.reports": (
            "ImpossiblePosition",
            "LockedMechanism",
            "LoopError",
            "OpenLoop",
            "OverDetermined",
            "SingularPosition",
            "UnderActuated",
        ),
        "chasles.errors": ("ChaslesError", "ModelError"),
        "chasles.model.denavit_hartenberg": ("DHRow", "DHTable"),
        "chasles.peers": ("compare",),
        "chasles.robot": ("Robot",),
        "chasles.simulate": ("INTEGRATORS", "ClosureFunction", "Event", "Trajectory", "simulate"),
    }.items()
    for name in names
}
"""Map from public names to the modules that define them. Names mapped to `chasles` are submodules.
"""

FOREIGN = {
    "load_urdf": "load",
    "loadurdf": "load",
    "load_model": "load",
    "load_robot": "load",
    "from_urdf": "load",
    "read_urdf": "load",
    "urdf": "load",
    "save_urdf": "save",
    "write_urdf": "save",
}
"""Lower-case names of functions in other libraries, and the corresponding names in chasles."""


SUGGESTING = (
    *("checks", "contact", "control", "conventions", "distances", "homogeneous"),
    *("identification", "learning", "plots", "robots", "rollouts", "targets", "trajectory", "view"),
)
"""Submodules whose functions suggest similar names for unknown keyword arguments."""

FAST = ("computed_torque", "task_coordinates", "task_jacobian", "task_jacobian_rate")
"""Functions of `control` without suggestions.

Controllers call these functions in each step. Suggestions take 0.3 microseconds per call, which is
up to half of the time of these functions. Python 3.13 suggests keyword arguments itself.
"""


class _Package(ModuleType):
    """Module whose functions are not overwritten when subpackages of the same name are imported.

    Functions of the public subpackages suggest similar names for unknown keyword arguments.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name in SUGGESTING and isinstance(value, ModuleType):
            import_module("chasles.names").suggest_keywords(value, FAST)
        if not isinstance(value, ModuleType) or PUBLIC.get(name, __name__) == __name__:
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Import a public name or a submodule when it is first accessed."""
    names = import_module("chasles.names")
    if PUBLIC.get(name, __name__) != __name__:
        value = names.suggesting(getattr(import_module(PUBLIC[name]), name))
    elif not name.startswith("_") and name in _modules():
        value = import_module(f"{__name__}.{name}")
    else:
        ours = FOREIGN.get(name.lower(), "")
        hint = f"it is called {ours!r} here" if ours else ""
        if not ours and not name.startswith("_"):
            hint = names.similar(name, (*PUBLIC, *_modules()))
        problem = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(f"{problem}; {hint}" if hint else problem, name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the names of all public objects and submodules."""
    own = [name for name in globals() if name.startswith("__")]
    return sorted({*own, *__all__, *_modules()})


def _modules() -> list[str]:
    return [row.name for row in iter_modules(__path__) if not row.name.startswith("_")]
