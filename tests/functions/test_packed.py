"""Packed matrices contain the required entries of full matrices, on every backend."""

import numpy as np
import pytest
from support import TARGETS, Floats, close, raises, state, tree

import chasles
from chasles.errors import ArgumentError, InputError
from chasles.robots import general_chain, general_tree, quadruped


def robots() -> dict[str, chasles.Robot]:
    return {
        "chain": general_chain(6),
        "binary tree": general_tree(7, 2),
        "quadruped": quadruped(),
        "every joint": tree(20, 1),
        "mimics": tree(14, 2, mimics=True),
    }


@pytest.mark.parametrize("name", robots())
@pytest.mark.parametrize("backend", TARGETS)
def test_the_lower_triangle_of_the_mass_matrix(name: str, backend: str) -> None:
    robot = robots()[name]
    n = robot.nv
    q, *_ = state(robot, 1, 5)
    packed = chasles.compile(robot, "mass_matrix", backend=backend, packed=True)(q)
    assert packed.shape == (5, n * (n + 1) // 2)
    rows, columns = robot.packed_entries("mass_matrix")
    assert np.array_equal((rows, columns), np.tril_indices(n))
    whole = np.array([Floats(robot).mass_matrix(each) for each in q])
    close(packed, whole[:, rows, columns], 1e-11)


@pytest.mark.parametrize("name", robots())
def test_factors_have_the_entries_of_branches(name: str) -> None:
    """The product of factors that are zero outside the packed entries is M.

    Entries between different branches are omitted.
    """
    robot = robots()[name]
    q, *_ = state(robot, 1)
    M, L = robot.mass_matrix(q), np.zeros((robot.nv, robot.nv))
    L[robot.packed_entries("ltl_factor")] = robot.ltl_factor(q, packed=True)
    close(L.T @ L, M, 1e-12)
    packed, D = robot.ltdl_factors(q, packed=True)
    L[robot.packed_entries("ltdl_factors")] = packed
    close(L.T @ np.diag(D) @ L, M, 1e-12)
    if name == "binary tree":
        assert packed.shape == (1 + 2 * 2 + 4 * 3,)


def test_packed_results_take_out_and_threads_and_have_derivatives() -> None:
    robot = general_chain(4)
    q, *_ = state(robot, 1, 9)
    out = np.empty((9, 10))
    found = robot.mass_matrix(q, packed=True, out=out, threads=2)
    assert found is out
    whole = robot.mass_matrix(q)
    rows, columns = robot.packed_entries("mass_matrix")
    close(out, whole[:, rows, columns], 1e-14)
    assert np.array_equal(robot.mass_matrix(q, packed=False), whole)
    slopes = robot.derivatives("mass_matrix", q[0], packed=True, wrt="q")
    close(slopes, robot.derivatives("mass_matrix", q[0], wrt="q")[rows, columns], 1e-13)


def test_closed_loops_have_packed_matrices_of_the_tree() -> None:
    robot = chasles.robots.four_bar()
    q = robot.random(seed=0)
    rows, columns = robot.packed_entries("mass_matrix")
    close(robot.mass_matrix(q, packed=True), robot.mass_matrix(q)[rows, columns], 1e-14)
    with raises("E-CALL-096", kind=InputError):
        robot.mass_matrix(q, coordinates="independent", packed=True)


def test_what_is_not_packed_is_refused() -> None:
    robot = general_chain(3)
    with raises("E-CALL-095", "'yes'", kind=ArgumentError):
        robot.mass_matrix(np.zeros(3), packed="yes")  # type: ignore[arg-type]
    with raises("E-CALL-026", kind=ArgumentError):
        chasles.compile(robot, "coriolis_matrix", packed=True)
    with raises("E-CALL-097", "coriolis_matrix", kind=InputError):
        robot.packed_entries("coriolis_matrix")
