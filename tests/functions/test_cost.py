"""Cost of functions: by statement, along the longest path, and values that are live at once."""

from itertools import pairwise

import pytest
from support import raises, tree

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
    places = {(step.file, step.function) for step in steps}
    assert places == {("spatial/dynamics.py", "newton_euler_vector")}
    by_text = {step.source: step.count for step in steps}
    assert by_text["X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])"].flops == 0
    assert by_text["f[p] += passed"].multiplications == 0
    wd = by_text["wd[i] = E @ wd[p] + aJ.angular + w[i].cross(vJ.angular)"]
    assert wd.multiplications > wd.additions > 0


def test_one_pendulum_by_hand() -> None:
    """The torque (m l^2 + I) qdd + m g l cos(q) takes two products, one sum and one cosine."""
    found = chasles.cost(planar(1), "inverse_dynamics")
    assert (found.multiplications, found.additions, found.sines_and_cosines) == (2, 1, 1)
    assert found.depth == 3  # cosine, product, sum
    assert found.live == 2  # the first product, and the value that becomes the second one


def test_depth_and_live_bound_each_other() -> None:
    """The depth and the number of live values are less than the number of operations.

    A tree has less depth than a chain of the same size.
    """
    for robot in (puma560(), tree(8, 1)):
        found = chasles.cost(robot, "forward_dynamics")
        assert 0 < found.depth < found.flops
        assert 0 < found.live < found.flops
    bush, chain = chasles.robots.quadruped(), chasles.robots.general_chain(18)
    assert chasles.cost(bush, "mass_matrix").depth < chasles.cost(chain, "mass_matrix").depth


def test_book_rules_by_hand() -> None:
    """Zeros, signs, cosines and constants are free in tau = qdd Jxx + qdd Jyy + u (g cos q)."""
    found = chasles.cost(planar(1), "inverse_dynamics", method="augmented-tensor", rules="book")
    assert (found.multiplications, found.additions) == (4, 2)
    assert (found.divisions, found.sines_and_cosines, found.negations) == (0, 0, 0)
    by_equation = {step.equation: step.count for step in found.steps}
    assert by_equation["5.3.45e"].multiplications == 1  # gravity times the cosine


def test_book_rules_reproduce_the_slopes_of_the_book() -> None:
    """Costs per link agree with table 5.3: 93 and 81 for algorithm 5.7, 96 and 84 for 5.6."""
    chains = [chasles.robots.general_chain(n) for n in (5, 6, 7)]
    for method, slope in (("augmented-tensor", (93, 81)), ("newton-euler-tensor", (96, 84))):
        costs = [
            chasles.cost(chain, "inverse_dynamics", method=method, rules="book") for chain in chains
        ]
        for one, next_one in pairwise(costs):
            products = next_one.multiplications - one.multiplications
            assert (products, next_one.additions - one.additions) == slope


def test_book_rules_share_nothing_between_equations() -> None:
    """Book rules count an operation in every statement that contains it."""
    plain = chasles.cost(puma560(), "inverse_dynamics", method="kane")
    book = chasles.cost(puma560(), "inverse_dynamics", method="kane", rules="book")
    assert book.flops > plain.flops
    assert book.flops == sum(step.count.flops for step in book.steps)


OF_THE_BOOK = [
    ("inverse_dynamics", "newton-euler-vector", "5.2.23a 5.2.23b 5.2.23c 5.2.23f 5.2.24a 5.2.24b"),
    ("inverse_dynamics", "lagrange-4x4", "5.2.12a 5.2.12b 5.2.12c 5.2.13a 5.2.13b 5.2.13c"),
    ("inverse_dynamics", "lagrange-3x3", "5.2.15a 5.2.15c 5.2.15d 5.2.16a 5.2.16b 5.2.16c 5.2.16d"),
    ("inverse_dynamics", "spatial-1987", "5.2.26a 5.2.26b 5.2.26c 5.2.27a"),
    ("inverse_dynamics", "spatial-operator", "5.2.31 5.2.32 5.2.34a 5.2.34b 5.2.35a 5.2.35b"),
    ("inverse_dynamics", "kane", "5.2.21 5.2.22 5.2.36 5.2.37"),
    ("inverse_dynamics", "kane-sum", "5.2.21 5.2.22 5.2.36 5.2.37"),
    ("inverse_dynamics", "uicker-kahn", "5.2.7 5.2.17"),
    ("inverse_dynamics", "waters", "5.2.9 5.2.10a 5.2.10b 5.2.10c"),
    ("inverse_dynamics", "christoffel", "5.2.17 5.2.18"),
    ("inverse_dynamics", "vukobratovic", "5.2.19a 5.2.19b 5.2.19c 5.2.20a 5.2.20b"),
    ("inverse_dynamics", "augmented-tensor", "5.3.45a 5.3.45e 5.3.46a 5.3.46b"),
    ("inverse_dynamics", "newton-euler-tensor", "5.3.7e 5.3.7f 5.3.7g 5.3.8a 5.3.8b"),
    ("mass_matrix", "augmented-tensor", "6.3.29a 6.3.29c 6.3.30a 6.3.30b"),
    ("mass_matrix", "composite-3x3", "6.2.8b 6.2.8c 6.2.8d 6.2.8g"),
    ("mass_matrix", "unit-acceleration", "5.3.45b"),
    ("mass_matrix", "orthogonal-complement", "6.2.12 6.2.13 6.2.14 6.2.15"),
    ("mass_matrix", "factored-complement", "6.2.12 6.2.14 6.2.15"),
    ("mass_matrix", "spatial-operator", "6.2.18"),
    ("mass_matrix_inverse", "spatial-operator", "6.2.19"),
    ("forward_dynamics", "augmented-tensor", "6.2.16 6.3.29a"),
    ("forward_dynamics", "composite-3x3", "6.2.16 6.2.8b"),
    ("forward_dynamics", "unit-acceleration", "6.2.16"),
    ("forward_dynamics", "conjugate-gradient", "6.2.16"),
    ("forward_dynamics", "orthogonal-complement", "6.2.14 6.2.15 6.2.17a 6.2.17b"),
    ("forward_dynamics", "spatial-operator", "6.2.19 5.2.34b"),
    ("inverse_dynamics_sensitivities", "augmented-tensor", "7.3.18d 7.3.19e"),
]


@pytest.mark.parametrize(("function", "method", "equations"), OF_THE_BOOK)
def test_every_step_of_the_book_has_the_number_of_its_equation(
    function: str, method: str, equations: str
) -> None:
    """All statements of algorithms by Balafoutis and Patel have equation numbers.

    The method christoffel also calls gravity_forces, which is not from their book.
    """
    steps = chasles.cost(
        chasles.robots.general_chain(4), function, method=method, rules="book"
    ).steps
    bare = {step.source for step in steps if not step.equation}
    assert not bare or {s.function for s in steps if not s.equation} == {"gravity_forces"}
    named = {part.split(" ")[-1] for step in steps for part in step.equation.split(", ")}
    assert set(equations.split()) <= named


def test_unknown_rules_are_refused() -> None:
    with raises("E-COST-001"):
        chasles.cost(planar(1), "inverse_dynamics", rules="fair")  # type: ignore[arg-type]


def test_steps_are_in_the_order_of_the_book() -> None:
    """Velocities come before forces, and forces before joint torques, in any source files."""
    steps = chasles.cost(puma560(), "inverse_dynamics", method="augmented-tensor").steps
    equations = list(dict.fromkeys(step.equation for step in steps if step.equation))
    order = ["5.3.45a", "5.3.45b", "5.3.45c", "5.3.45e", "5.3.45f", "5.3.46a", "5.3.46b", "5.3.46c"]
    assert equations == order


@pytest.mark.parametrize("function", ["inverse_dynamics", "mass_matrix", "forward_dynamics"])
def test_book_rules_count_the_program_that_runs(function: str) -> None:
    """Counting rules do not change the method that "fastest" selects."""
    runs, book = (
        chasles.cost(puma560(), function, rules=rules) for rules in ("simplified", "book")
    )
    assert {s.function for s in runs.steps} == {s.function for s in book.steps}


def test_external_forces_are_counted() -> None:
    """A wrench along the axes of the last body adds one addition, as in a calculation by hand."""
    robot = planar(1)
    free, pushed = (
        chasles.cost(robot, "inverse_dynamics", method="spatial", f_ext=f_ext)
        for f_ext in (None, {"link1": chasles.Wrench(None, axes="frame")})
    )
    assert (pushed.multiplications, pushed.additions) == (free.multiplications, free.additions + 1)
    with raises("E-CALL-066", "mass_matrix"):
        chasles.cost(robot, "mass_matrix", f_ext={"link1": chasles.Wrench(None)})
    with raises("E-MODEL-034", "'hand'"):
        chasles.cost(robot, "inverse_dynamics", f_ext={"hand": chasles.Wrench(None)})
