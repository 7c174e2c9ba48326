"""Compare machine code with Pinocchio: all functions for arms, main ones for larger robots."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pinocchio_oracle import Oracle, allowed, cases, condition, robot_files, worst_errors

import chasles
from chasles.backends.llvm.code import Machine

PATHS = {path.stem: path for path in robot_files()}
ROBOTS = {
    "panda": False,
    "kinova": False,  # continuous joints
    "allegro_right_hand": False,
    "solo12": True,
    "tiago_no_hand": True,  # continuous wheels, children before their parents
    "talos_reduced": True,
}
"""Robots, and a flag: True for a floating base."""


LARGE = 25
SLOW = ("coriolis_matrix", "mass_matrix_inverse", "jacobian_rate")
"""Functions omitted for robots with more than LARGE degrees of freedom, to limit compile time.

External forces are also omitted for these robots.
"""


AS_USERS_HAVE_IT = ("panda", "solo12")
"""Robots that are compiled with the default optimization effort."""


@pytest.mark.parametrize(("name", "floating"), ROBOTS.items())
def test_public_functions(name: str, floating: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if name not in AS_USERS_HAVE_IT:
        quick = replace(Machine.host(), effort=0)
        monkeypatch.setattr(Machine, "host", staticmethod(lambda: quick))
    robot = chasles.load(PATHS[name], floating=floating, snap=False, mimic=False)
    oracle = Oracle(PATHS[name], floating=floating)
    oracle.order(robot)
    large = robot.nv > LARGE
    fastest = {"inverse_dynamics": ["fastest"], "forward_dynamics": ["fastest"]}
    pairs = [("world", "frame")]
    questions = cases(oracle, robot, seed=2, poses=1, frames=1, pairs=pairs, methods=fastest)
    asked = [
        c for c in questions if not large or (c.function not in SLOW and not c.options.get("f_ext"))
    ]

    def run(function: str, *arrays: np.ndarray, f_ext: Any = None, **options: Any) -> Any:
        """Call the public function for one state and a batch; results must be identical."""
        if f_ext is not None:
            options["f_ext"] = {
                frame: chasles.Wrench(value, axes="frame") for frame, value in f_ext.items()
            }
        call = getattr(robot, function)
        one = call(*arrays, **options)
        many = call(*(np.tile(a, (3, 1)) for a in arrays), **options)
        assert all(np.array_equal(row, one) for row in many)
        return one

    worst, cond = worst_errors(asked, run), condition(oracle, robot, seed=2)
    print({label: f"{error:.1e}" for label, error in worst.items()})
    assert not {label: e for label, e in worst.items() if not e <= allowed(label, cond)}
