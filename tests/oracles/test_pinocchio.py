"""Every function against Pinocchio on every robot of example-robot-data, on plain floats.

No compiler is involved: the algorithms run on numbers. `test_pinocchio_compiled.py` has machine
code. Errors are relative to the largest entry of Pinocchio's answer.
"""

import statistics
from functools import cache, partial
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from pinocchio_oracle import Oracle, allowed, cases, condition, robot_files, worst_errors
from support import CUBIC, EPS, direct, ways

import chasles
from chasles.algorithms import DIVIDING, FUNCTIONS

FILES = robot_files()
NOT_LOADED = "Pinocchio does not load it"


SEVERAL = [name for name, rows in FUNCTIONS.items() if len(rows) > 1]
SEED = 1

STEPWISE = {"unit-acceleration", "conjugate-gradient", *CUBIC}
STEPWISE |= {"orthogonal-complement", "factored-complement"}
"""Methods with a recursion for each freedom: seconds on plain numbers, for a hundred freedoms."""
MANY = 30

TURNS = 12
"""Of the methods after the first, a robot takes one in so many, and the next robot others: each is
tried on about 12."""


@cache
def errors(path: Path, floating: bool) -> tuple[dict[str, float], float] | str:
    """The errors of every function for one robot and its M's condition, or why there are none."""
    try:
        oracle = Oracle(path, floating=floating)
    except ValueError:
        return NOT_LOADED
    robot = chasles.load(path, floating=floating, snap=False, mimic=False)
    assert not robot.model.idle or _is_singular(oracle.model)
    oracle.order(robot)
    links = len(robot.bodies)
    turn = 2 * FILES.index(path) + floating
    methods = {}
    for name in SEVERAL:
        able = [way for way in ways(robot, name) if robot.nv <= MANY or way not in STEPWISE]
        methods[name] = [w for k, w in enumerate(able) if k == 0 or (k + turn) % TURNS == 0]
    with np.errstate(all="ignore"):  # forward dynamics of a robot that has none
        questions = [*cases(oracle, robot, seed=SEED, poses=links, frames=2, methods=methods)]
    if robot.model.idle:
        questions = [case for case in questions if case.function not in DIVIDING]
        return worst_errors(questions, partial(direct, robot.model.frictionless())), 1.0
    found = worst_errors(questions, partial(direct, robot.model.frictionless()))
    return found, condition(oracle, robot, seed=SEED)


def _is_singular(model: pin.Model) -> bool:
    """Whether Pinocchio's mass matrix is singular too, at a random configuration."""
    data, rng = model.createData(), np.random.default_rng(1)
    q = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
    M = np.triu(pin.crba(model, data, q))
    moments = np.linalg.eigvalsh(M + np.triu(M, 1).T)
    return bool(moments[0] <= 10.0 * EPS * moments[-1])


@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_function(path: Path, floating: bool) -> None:
    found = errors(path, floating)
    if found == NOT_LOADED:
        pytest.skip(found)
    worst, cond = found
    assert not {name: e for name, e in worst.items() if not e <= allowed(name, cond)}


def test_medians_over_all_robots() -> None:
    """Half of the robots agree to 1e-11 in every function; most robots are compared at all."""
    results = [errors(path, floating) for path in FILES for floating in (False, True)]
    compared = [found[0] for found in results if not isinstance(found, str)]
    assert len(compared) >= 0.9 * len(results)
    for name in dict.fromkeys(name for worst in compared for name in worst):
        column = [worst[name] for worst in compared if name in worst]
        print(f"{name:32} median {statistics.median(column):.1e}, largest {max(column):.1e}")
        assert statistics.median(column) <= 1e-11, name
