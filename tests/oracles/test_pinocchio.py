"""Compare every function with Pinocchio on every robot of example-robot-data, with floats.

The algorithms run without compilation; `test_pinocchio_compiled.py` tests machine code. Errors are
relative to the largest entry of Pinocchio's result.
"""

import statistics
from functools import cache, partial
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from pinocchio_oracle import Oracle, allowed, cases, condition, robot_files, worst_errors
from support import CUBIC, EPS, close, direct, ways

import chasles
from chasles.algorithms import DIVIDING, FUNCTIONS
from chasles.model.auxiliary import auxiliary_inertias

FILES = robot_files()
NOT_LOADED = "Pinocchio does not load it"


SEVERAL = [name for name, rows in FUNCTIONS.items() if len(rows) > 1]
SEED = 1

STEPWISE = {"unit-acceleration", "conjugate-gradient", *CUBIC}
STEPWISE |= {"orthogonal-complement", "factored-complement"}
"""Methods with a recursion per degree of freedom.

With floats, they take seconds for a hundred degrees of freedom.
"""
MANY = 30

TURNS = 12
"""Each robot tests the first method, and one in `TURNS` of the others.

The next robot tests different methods, so each method is tested with about 12 robots.
"""


@cache
def errors(path: Path, floating: bool) -> tuple[dict[str, float], float] | str:
    """Return the error of every function and the condition number of M, or a reason to skip."""
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
    with np.errstate(all="ignore"):  # forward dynamics with a singular M
        questions = [*cases(oracle, robot, seed=SEED, poses=links, frames=2, methods=methods)]
    if robot.model.idle:
        questions = [case for case in questions if case.function not in DIVIDING]
        return worst_errors(questions, partial(direct, robot.model.frictionless())), 1.0
    found = worst_errors(questions, partial(direct, robot.model.frictionless()))
    return found, condition(oracle, robot, seed=SEED)


def _is_singular(model: pin.Model) -> bool:
    """Return True if Pinocchio's mass matrix is singular at a random configuration."""
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


@pytest.mark.parametrize("name", ["human", "icub_reduced"])
def test_assembly_with_massless_links(name: str) -> None:
    """Assemblies of articulated bodies support chains of massless links, joined in any order."""
    path = next(path for path in FILES if path.stem == name)
    robot = chasles.load(path, floating=False, snap=False, mimic=False)
    assert len(auxiliary_inertias(robot.model)) > 5
    model, rng = pin.buildModelFromUrdf(str(path)), np.random.default_rng(SEED)
    q, v, tau = rng.normal(size=(3, model.nv))
    order = [model.joints[model.getJointId(joint)].idx_v for joint in robot.joints]
    expected = pin.aba(model, model.createData(), q, v, tau)[order]
    given = (q[order], v[order], tau[order])
    for way in ("assembly-inertia", "assembly-inverse", "divide-and-conquer"):
        found = direct(robot.model.frictionless(), "forward_dynamics", *given, method=way)
        close(found, expected, 1e-11)


def test_medians_over_all_robots() -> None:
    """The median error of every function is at most 1e-11, and 90 % of the robots are compared."""
    results = [errors(path, floating) for path in FILES for floating in (False, True)]
    compared = [found[0] for found in results if not isinstance(found, str)]
    assert len(compared) >= 0.9 * len(results)
    for name in dict.fromkeys(name for worst in compared for name in worst):
        column = [worst[name] for worst in compared if name in worst]
        print(f"{name:32} median {statistics.median(column):.1e}, largest {max(column):.1e}")
        assert statistics.median(column) <= 1e-11, name
