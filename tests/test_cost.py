"""What a function costs: by statement, along the longest path, at one time."""

import pytest
from support import tree

import chasles
from chasles.expr import Count
from chasles.robots import planar, puma560


@pytest.mark.parametrize("method", ["newton-euler-vector", "spatial", "homogeneous", "lagrange"])
def test_steps_are_the_whole(method: str) -> None:
    """Every operation belongs to one statement of an algorithm."""
    found = chasles.cost(puma560(), "inverse_dynamics", method=method)
    for name in vars(Count()):
        assert sum(getattr(step.count, name) for step in found.steps) == getattr(found, name)


def test_steps_are_statements() -> None:
    steps = chasles.cost(puma560(), "inverse_dynamics", method="newton-euler-vector").steps
    assert {step.file for step in steps} == {"spatial/newton_euler_vector.py"}
    by_text = {step.source: step.count for step in steps}
    assert by_text["X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])"].flops == 0
    assert by_text["f[p] += passed"].multiplications == 0
    wd = by_text["wd[i] = E @ wd[p] + aJ.angular + w[i].cross(vJ.angular)"]
    assert wd.multiplications > wd.additions > 0


def test_one_pendulum_by_hand() -> None:
    """tau = (m l2 + I) qdd + m g l cos(q): two products, one sum, one cosine; the sum is last."""
    found = chasles.cost(planar(1), "inverse_dynamics")
    assert (found.multiplications, found.additions, found.sines_and_cosines) == (2, 1, 1)
    assert found.depth == 3  # cosine, product, sum
    assert found.live == 2  # the product, and what becomes the other one


def test_depth_and_live_bound_each_other() -> None:
    """A path is no longer than the program, and a tree is shallower than a chain of its size."""
    for robot in (puma560(), tree(8, 1)):
        found = chasles.cost(robot, "forward_dynamics")
        assert 0 < found.depth < found.flops
        assert 0 < found.live < found.flops
    bush, chain = chasles.robots.quadruped(), chasles.robots.general_chain(18)
    assert chasles.cost(bush, "mass_matrix").depth < chasles.cost(chain, "mass_matrix").depth
