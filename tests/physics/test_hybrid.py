"""Hybrid dynamics with some known forces and accelerations (Featherstone 2008, 9.1 and 9.2).

Expected values are from a dense system: tau = M qdd + h with rows and columns split by the known
joints. Rounding errors are at most 1e-11, times the condition number of the block of M that is
solved if it is ill-conditioned.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from building.published.featherstone import Branching
from hypothesis import given
from hypothesis import strategies as st
from support import close, direct, raises, relative, state, tree

import chasles
from chasles.mathematics.linear import Vector, factor_ltdl
from chasles.model import Description, JointData, LinkData
from chasles.model.spaces import tree_places
from chasles.robots import random_tree
from chasles.robots._solids import box

SEEDS = st.integers(min_value=0, max_value=10**6)
METHODS = ("articulated-body", "mass-matrix")


def mask(robot: chasles.Robot, known: tuple[str, ...]) -> np.ndarray:
    """Return the mask of velocity coordinates with known accelerations."""
    found = np.zeros(robot.nv, dtype=bool)
    for name in known:
        found[robot.velocity_slice(name)] = True
    return found


def dense(M: np.ndarray, h: np.ndarray, x: np.ndarray, here: np.ndarray) -> np.ndarray:
    """Return the solution of tau = M qdd + h for its unknowns, from a dense linear system."""
    free = ~here
    found = np.empty_like(x)
    forces = x[free] - h[free] - M[np.ix_(free, here)] @ x[here]
    found[free] = np.linalg.solve(M[np.ix_(free, free)], forces)
    found[here] = M[np.ix_(here, here)] @ x[here] + M[np.ix_(here, free)] @ found[free] + h[here]
    return found


def subset(robot: chasles.Robot, seed: int) -> tuple[str, ...]:
    rng = np.random.default_rng(seed)
    return tuple(name for name in robot.joints if rng.random() < 0.5)


@given(st.integers(1, 10), SEEDS, st.booleans(), st.booleans(), SEEDS)
def test_any_subset_of_any_tree(
    n: int, seed: int, floating: bool, mimics: bool, choice: int
) -> None:
    """Methods agree with the dense system on plain floats, with external and friction forces."""
    robot = random_tree(n, seed, floating=floating, mimics=mimics)
    model, known = robot.model, subset(robot, choice)
    q, qd, x = state(robot, choice)
    here = mask(robot, known)
    wrench = {"f_ext": {"tip": np.random.default_rng(choice).normal(size=6)}}
    M, h = direct(model, "mass_matrix", q), direct(model, "bias_forces", q, qd, **wrench)
    expected = dense(M, h, x, here)
    free = M[np.ix_(~here, ~here)]
    worst = float(np.linalg.cond(free)) if free.size else 1.0
    coupled = any(body.follow is not None for body in model.bodies)
    for method in METHODS[1:] if coupled else METHODS:
        found = direct(model, "hybrid_dynamics", q, qd, x, method=method, known=known, **wrench)
        close(found, expected, 1e-14 * max(1e3, worst))


@pytest.mark.parametrize("method", [*METHODS, "fastest"])
@pytest.mark.parametrize("floating", [False, True])
def test_extremes_are_inverse_and_forward_dynamics(method: str, floating: bool) -> None:
    robot = tree(5, 4 if floating else 3, floating=floating)
    q, qd, x = state(robot, 5, 3)
    options: dict[str, Any] = {
        "f_ext": {"tip": chasles.Wrench(np.arange(6.0), axes="frame")},
        "dissipation": True,
    }
    tau = robot.hybrid_dynamics(q, qd, x, known=robot.joints, method=method, **options)
    close(tau, robot.inverse_dynamics(q, qd, x, **options), 1e-11)
    qdd = robot.hybrid_dynamics(q, qd, x, known=(), method=method, **options)
    close(qdd, robot.forward_dynamics(q, qd, x, **options), 1e-11)


def test_undone_by_what_is_left() -> None:
    """Solving with the complementary joints known returns the original input."""
    robot = tree(5, 4, floating=True)
    q, qd, x = state(robot, 6, (2, 2))
    known = robot.joints[1:3]
    rest = [name for name in robot.joints if name not in known]
    found = robot.hybrid_dynamics(q, qd, x, known=known)
    close(robot.hybrid_dynamics(q, qd, found, known=rest), x, 1e-10)


def test_known_joints_need_no_part_of_the_mass_matrix() -> None:
    """Entries of the mass matrix that H11 does not need are not computed (table 9.1)."""
    chain = chasles.robots.general_chain(6)
    found = []
    for k in range(7):
        cost = chasles.cost(chain, "hybrid_dynamics", method="mass-matrix", known=chain.joints[:k])
        steps = [s.count.flops for s in cost.steps if s.function == "mass_matrix"]
        found.append(sum(steps))
    assert all(less < more for more, less in pairwise(found[:-1]))
    assert found[-1] == 0
    inverse = chasles.cost(chain, "inverse_dynamics", method="newton-euler-vector")
    assert cost.flops == inverse.flops


def binary_tree() -> chasles.Robot:
    """Return seven bodies: joints 2 and 3 on body 1, 4 and 5 on body 2, 6 and 7 on body 3."""
    inertia = box(2.0, (0.1, 0.2, 0.3), Vector.of(0.3, 0.1, 0.2))
    parents = (None, 1, 1, 2, 2, 3, 3)
    links = tuple(LinkData(f"link{k}", inertia) for k in range(1, 8))
    joints = tuple(
        JointData(f"joint{k}", "revolute", p and f"link{p}", f"link{k}")
        for k, p in enumerate(parents, start=1)
    )
    return chasles.Robot(Description("binary", links, joints))


def test_reduced_parents_of_the_book() -> None:
    """If joints 1 and 2 are known, nodes 3 to 7 are 1 to 5 with parents 0, 0, 0, 1, 1 (Fig 9.1).

    The robot with joints 1 and 2 locked is this tree, and its mass matrix is H11.
    """
    robot = binary_tree()
    reduced = Branching.even(7, 2).reduced({0, 1})
    assert tuple(p + 1 for p in reduced.parents) == (0, 0, 0, 1, 1)
    q = state(robot, 1)[0]
    locked = robot.lock({"joint1": q[0], "joint2": q[1]})
    names = [body.name for body in locked.model.bodies]
    hung = {body.name: body.parent for body in locked.model.bodies}
    assert {f"link{k + 3}": p for k, p in enumerate(reduced.parents)} == {
        name: int(names[p][4:]) - 3 if p >= 0 else -1 for name, p in hung.items()
    }
    H11 = robot.mass_matrix(q)[2:, 2:]
    close(locked.mass_matrix(q[2:]), H11, 1e-13)
    assert np.count_nonzero(H11) == 5 + 2 * reduced.D1


@given(st.integers(2, 9), SEEDS, st.booleans(), SEEDS)
def test_reduced_parents_are_the_zeros_of_the_matrix_that_is_solved(
    n: int, seed: int, floating: bool, choice: int
) -> None:
    """H11 and its factors are zero between coordinates on different branches."""
    robot = random_tree(n, seed, floating=floating)
    model, order = robot.model, robot.model.in_tree_order
    known = subset(robot, choice)
    parents = [order.index(p) if (p := model.bodies[i].parent) >= 0 else -1 for i in order]
    tree = Branching.expanded(parents, [model.bodies[i].joint.nv for i in order])
    places = tree_places(model)
    here = np.empty(robot.nv, dtype=bool)
    here[places] = mask(robot, known)
    reduced = tree.reduced(set(np.flatnonzero(here).tolist()))
    held = np.eye(reduced.n, dtype=bool)
    for i, p in enumerate(reduced.parents):
        held[i] |= held[p] if p >= 0 else False
    H = np.empty((robot.nv, robot.nv))
    H[np.ix_(places, places)] = direct(model, "mass_matrix", state(robot, choice)[0])
    H11 = H[np.ix_(~here, ~here)]
    assert not np.any(H11[~(held | held.T)])
    if H11.size:
        assert not np.any(np.array(factor_ltdl(H11.tolist())[0])[~held])


def test_derivatives_and_batches() -> None:
    """Derivatives agree with differences; batches are bitwise identical to single states."""
    robot = tree(4, 2, floating=False)
    known = robot.joints[:2]
    q, qd, x = state(robot, 3, 5)
    found = robot.hybrid_dynamics(q, qd, x, known=known)
    alone = [
        robot.hybrid_dynamics(*arrays, known=list(known)) for arrays in zip(q, qd, x, strict=True)
    ]
    assert np.array_equal(found, np.stack(alone))
    here = mask(robot, known)
    by_q, by_given = robot.derivatives(
        "hybrid_dynamics", q[0], qd[0], x[0], wrt=("q", "given"), known=known
    )

    def problem(q: np.ndarray, x: np.ndarray) -> np.ndarray:
        return dense(robot.mass_matrix(q), robot.bias_forces(q, qd[0]), x, here)

    step = 1e-5
    for k, unit in enumerate(np.eye(robot.nv) * step):
        ahead, behind = (problem(robot.integrate(q[0], s * unit), x[0]) for s in (1.0, -1.0))
        close(by_q[:, k], (ahead - behind) / (2 * step), 1e-6, scale=float(np.max(np.abs(by_q))))
        linear = problem(q[0], x[0] + unit / step) - problem(q[0], x[0])
        close(by_given[:, k], linear, 1e-9, scale=float(np.max(np.abs(by_given))))


def test_names_are_in_no_order() -> None:
    robot = chasles.robots.puma560()
    q, qd, x = state(robot, 2)
    a, b = robot.joints[1], robot.joints[4]
    first = robot.hybrid_dynamics(q, qd, x, known=(a, b))
    assert np.array_equal(first, robot.hybrid_dynamics(q, qd, x, known=[b, a, b]))
    assert relative(robot.hybrid_dynamics(q, qd, x, known=a), first) > 1e-3


def test_unknown_names_are_refused() -> None:
    robot = chasles.robots.puma560()
    zero = np.zeros(6)
    with raises("E-MODEL-037", "'elbow'"):
        robot.hybrid_dynamics(zero, zero, zero, known=("elbow",))
    with raises("E-CALL-030"):
        robot.hybrid_dynamics(zero, zero, zero, known=3)  # type: ignore[arg-type]
    coupled = tree(9, 1, floating=False, mimics=True)
    follower = next(name for name in coupled.moving_joints if name not in coupled.joints)
    none = np.zeros(coupled.nv)
    with raises("E-MODEL-036"):
        coupled.hybrid_dynamics(coupled.neutral(), none, none, known=follower)
    with raises("E-CALL-071", "'mass-matrix'"):
        coupled.hybrid_dynamics(coupled.neutral(), none, none, known=(), method="articulated-body")
