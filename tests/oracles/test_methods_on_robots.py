"""Compare formalisms on published arms and quadrupeds, with every backend, to 1e-11."""

import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from pinocchio_oracle import robot_files
from support import TARGETS, close, direct, state

import chasles

LARGEST = 18
"""Maximum number of degrees of freedom, which includes arms and floating quadrupeds."""

LEGGED = ("a1_", "anymal_", "b1_", "go1_", "go2_", "hyq_", "laikago_", "quadruped_", "solo_")
"""Name prefixes of the folders of quadrupeds, which have a floating base."""

FEW = ("panda", "solo12", "ur5_robot")
"""Robots that are tested with every backend.

NumPy, which is fast, is also tested with every third of the other robots. `test_pinocchio.py` tests
every method and every robot in floating point.
"""

REFERENCE = {
    "forward_kinematics": ("spatial", ("homogeneous",)),
    "inverse_dynamics": ("spatial", ("homogeneous", "homogeneous-link", "lagrange")),
    "mass_matrix": ("spatial", ("homogeneous", "lagrange")),
    "forward_dynamics": ("mass-matrix", ("homogeneous", "lagrange")),
}
"""Reference method and methods with homogeneous matrices, for each function."""


@cache
def loaded(path: Path) -> chasles.Robot | None:
    package = path.parts[path.parts.index("example-robot-data") + 2]
    try:
        robot = chasles.load(path, floating=package.startswith(LEGGED))
    except (chasles.ModelError, chasles.errors.LeftOutWarning):
        return None  # its mass matrix is singular, or it mimics a missing joint
    return robot if 0 < robot.nv <= LARGEST else None


def taken(backend: str) -> list[Path]:
    every = 3 if backend == "numpy" else sys.maxsize
    return [p for k, p in enumerate(robot_files(), 1) if p.stem.startswith(FEW) or k % every == 0]


@pytest.mark.parametrize(
    ("backend", "path"),
    [(backend, path) for backend in TARGETS for path in taken(backend)],
    ids=lambda x: x.stem if isinstance(x, os.PathLike) else x,
)
def test_formalisms_agree(backend: str, path: Path) -> None:
    robot = loaded(path)
    if robot is None:
        pytest.skip("refused, without freedoms, or larger than an arm or a quadruped")
    q, qd, qdd = state(robot, 1)
    M = direct(robot.model, "mass_matrix", q)
    for function, (reference, others) in REFERENCE.items():
        options = {"frame": robot.bodies[-1]} if function == "forward_kinematics" else {}
        arrays = (q,) if function in ("forward_kinematics", "mass_matrix") else (q, qd, qdd)
        run = [
            chasles.compile(robot, function, backend=backend, method=name, **options)(*arrays)
            for name in (reference, *others)
        ]
        allowed = 1e-11 if function != "forward_dynamics" else 1e-15 * np.linalg.cond(M) + 1e-11
        for other in run[1:]:
            close(other, run[0], allowed)
