"""Empty batches, robots without degrees of freedom, NaN among valid states, threads, processes."""

import concurrent.futures
import multiprocessing
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from support import TARGETS, runner, state, tree

import chasles
from chasles.functions.compiled import Compiled, Recipe
from chasles.robots import puma560, random_tree

ROBOT = puma560()


# Empty batches and robots without degrees of freedom -------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_empty_batches(target: str) -> None:
    run = runner(ROBOT, target)
    for lead in ((0,), (3, 0), (0, 5)):
        q = np.empty((*lead, 6))
        assert run("inverse_dynamics", q, q, q).shape == (*lead, 6)
        assert run("mass_matrix", q).shape == (*lead, 6, 6)
        assert run("potential_energy", q).shape == lead
        L, D = run("ltdl_factors", q)
        assert (L.shape, D.shape) == ((*lead, 6, 6), (*lead, 6))
    one = np.zeros(6)
    assert run("inverse_dynamics", np.empty((0, 6)), one, one).shape == (0, 6)
    out = np.empty((0, 6))
    compiled = chasles.compile(ROBOT, "inverse_dynamics", backend=target)
    assert compiled(out, out, out, out=out) is out


@pytest.mark.parametrize("target", TARGETS)
def test_a_robot_without_freedoms(target: str) -> None:
    """Functions of a robot without degrees of freedom return results, for one state and many."""
    still = ROBOT.lock(dict.fromkeys(ROBOT.joints, 0.3))
    run = runner(still, target)
    pose = ROBOT.forward_kinematics(np.full(6, 0.3), frame="tool")
    for lead in ((), (4,), (2, 3)):
        q = np.empty((*lead, 0))
        assert run("inverse_dynamics", q, q, q).shape == (*lead, 0)
        assert run("forward_dynamics", q, q, q).shape == (*lead, 0)
        assert run("mass_matrix", q).shape == (*lead, 0, 0)
        assert run("jacobian", q, frame="tool").shape == (*lead, 6, 0)
        assert run("integrate", q, q).shape == (*lead, 0)
        assert run("joint_reactions", q, q, q).shape == (*lead, 0, 6)
        assert np.array_equal(run("kinetic_energy", q, q), np.zeros(lead))
        found = run("forward_kinematics", q, frame="tool")
        np.testing.assert_allclose(found, np.broadcast_to(pose, (*lead, 4, 4)), atol=1e-14)


# NaN -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_one_bad_state_does_not_touch_the_others(target: str, bad: float) -> None:
    robot = tree(5, 1, floating=True)
    run = runner(robot, target)
    q, qd, tau = state(robot, 1, 19)
    expected = run("forward_dynamics", q, qd, tau)
    for k in (0, 7, 8, 18):
        spoiled = q.copy()
        spoiled[k, 8] = bad
        found = run("forward_dynamics", spoiled, qd, tau)
        good = np.arange(19) != k
        assert np.array_equal(found[good], expected[good])
        assert not np.all(np.isfinite(found[k]))


# Pickling --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_a_compiled_function_survives_pickling(target: str) -> None:
    compiled = chasles.compile(ROBOT, "jacobian", backend=target, frame="tool", axes="frame")
    q, _, _ = state(ROBOT, 1, 5)
    again = pickle.loads(pickle.dumps(compiled))
    assert np.array_equal(again(q), compiled(q))
    assert again.recipe == compiled.recipe


def test_a_robot_survives_pickling() -> None:
    """A robot can be pickled before and after compiling, with its options and mimic joints."""
    robot = random_tree(6, 3, mimics=True)
    states = state(robot, 2, 4)
    early = pickle.loads(pickle.dumps(robot))
    expected = robot.inverse_dynamics(*states)
    late = pickle.loads(pickle.dumps(robot))
    method = pickle.loads(pickle.dumps(robot.inverse_dynamics))
    for call in (early.inverse_dynamics, late.inverse_dynamics, method):
        assert np.array_equal(call(*states), expected)
    assert (early.joints, early.nq, early.nv) == (robot.joints, robot.nq, robot.nv)
    loose = chasles.Robot(robot.model.source, mimic=False)
    assert pickle.loads(pickle.dumps(loose)).nv == loose.nv


def test_another_process_has_the_same_bits() -> None:
    """Robots, methods and compiled functions give bitwise identical results in another process."""
    q, qd, qdd = state(ROBOT, 3, 9)
    tau = ROBOT.inverse_dynamics(q, qd, qdd)
    compiled = chasles.compile(ROBOT, "mass_matrix")
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        there = pool.submit(ROBOT.inverse_dynamics, q, qd, qdd)
        alone = pool.submit(ROBOT.inverse_dynamics, q[0], qd[0], qdd[0])
        mass = pool.submit(compiled, q)
        assert np.array_equal(there.result(timeout=120), tau)
        assert np.array_equal(alone.result(timeout=120), tau[0])
        assert np.array_equal(mass.result(timeout=120), compiled(q))


# Threads ---------------------------------------------------------------------------------------


def test_threads_share_a_robot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight threads start at once on a new robot, and each function is compiled only once."""
    robot, made, begin = chasles.Robot(ROBOT.model.source), [], Compiled.__init__

    def counted(self: Compiled, recipe: Recipe, *rest: Any) -> None:
        made.append(recipe.function)
        begin(self, recipe, *rest)

    q, qd, qdd = state(robot, 4, 200)
    tau, M = ROBOT.inverse_dynamics(q, qd, qdd), ROBOT.mass_matrix(q)
    monkeypatch.setattr(Compiled, "__init__", counted)
    start = threading.Barrier(8)

    def work(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        start.wait(timeout=60)
        right = True
        out = np.empty(6)
        for _ in range(150):
            k, size = rng.integers(150), rng.integers(1, 50)
            part = slice(k, k + size)
            found = robot.inverse_dynamics(q[part], qd[part], qdd[part])
            right &= np.array_equal(found, tau[part])
            right &= np.array_equal(robot.inverse_dynamics(q[k], qd[k], qdd[k], out=out), tau[k])
            right &= np.array_equal(robot.mass_matrix(q[part]), M[part])
        return right

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert sorted(made) == ["inverse_dynamics", "mass_matrix"]
    assert robot.function("inverse_dynamics") is robot.function("inverse_dynamics")
