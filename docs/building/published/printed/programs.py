"""Programs for each table of the book, and their operation counts."""

import math
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from typing import Any

from building.published.polynomial import Polynomial
from building.published.printed import closed_form, lagrange, mass_matrix, newton_euler, vectors
from building.published.printed.counting import Counts, Link, Number, Sheet
from building.published.printed.newton_euler import State
from building.published.printed.sensitivities import algorithm_7_1

Program = Callable[[Sequence[Link], State, Sheet], Any]
"""Function that computes results from links and a state, and counts operations on a sheet."""


def forward_dynamics(
    links: Sequence[Link],
    x: State,
    sheet: Sheet,
    *,
    mass: Program,
    bias: Program = newton_euler.algorithm_5_7,
) -> list[Number]:
    """Solve forward dynamics by steps (i) to (iii) of section 6.2, with the given mass matrix.

    The steps are D, the bias forces, and a linear system. The accelerations of the state are used
    as the given joint torques.
    """
    D = mass(links, x, sheet)
    b = bias(links, State(x.q, x.qd, [0.0] * len(links)), sheet)
    given = [Sheet().live(tau) - float(bias) for tau, bias in zip(x.qdd, b, strict=True)]
    sheet.equation = "D qdd = tau - b"
    live = {key: sheet.live(float(entry)) for key, entry in D.items()}
    return mass_matrix.solve(live, [sheet.live(float(f)) for f in given])


BY_TABLE: dict[str, Program] = {
    "5.1": partial(newton_euler.algorithm_5_7, optimised=False),
    "5.2": newton_euler.algorithm_5_7,
    "6.1": mass_matrix.algorithm_6_2,
    "7.1": algorithm_7_1,
    "7.2": algorithm_7_1,
}
"""Program of each table by equation."""

BY_METHOD: dict[tuple[str, str], Program] = {
    ("5.3", "Uicker, Kahn"): lagrange.uicker_kahn,
    ("5.3", "Waters"): lagrange.waters,
    ("5.3", "Hollerbach, 4x4"): lagrange.algorithm_5_1,
    ("5.3", "Hollerbach, 3x3"): lagrange.algorithm_5_2,
    ("5.3", "Vukobratovic, Li, Kircanski"): closed_form.vukobratovic,
    ("5.3", "Luh, Walker, Paul"): vectors.algorithm_5_3,
    ("5.3", "Featherstone"): vectors.algorithm_5_4,
    ("5.3", "algorithm 5.6"): newton_euler.algorithm_5_6,
    ("5.3", "algorithm 5.7"): BY_TABLE["5.1"],
    ("5.3", "the same, optimised"): BY_TABLE["5.2"],
    ("6.2", "Walker, Orin"): mass_matrix.algorithm_6_1,
    ("6.2", "Angeles, Ma"): mass_matrix.angeles_ma,
    ("6.2", "Featherstone"): mass_matrix.featherstone,
    ("6.2", "algorithm 6.2"): mass_matrix.algorithm_6_2,
    ("6.3", "Walker, Orin"): partial(forward_dynamics, mass=mass_matrix.algorithm_6_1),
    ("6.3", "Featherstone, composite bodies"): partial(
        forward_dynamics,
        mass=mass_matrix.featherstone,
        bias=partial(vectors.algorithm_5_4, bias=True),
    ),
    ("6.3", "Angeles, Ma"): partial(forward_dynamics, mass=mass_matrix.angeles_ma),
    ("6.3", "algorithms 6.2 and 5.7"): partial(forward_dynamics, mass=mass_matrix.algorithm_6_2),
}
"""Program of each row of a table by method, by table number and author."""

LENGTHS = range(3, 10)
"""Numbers of joints to which polynomials are fitted; the fit must be exact for all of them."""


def count(program: Program, links: Sequence[Link]) -> Sheet:
    """Return the operations of a program for an arm; they do not depend on the state."""
    n, sheet = len(links), Sheet()
    state = State(*([math.sin(k + i) for i in range(n)] for k in (1, 2, 3)))
    program(links, state, sheet)
    return sheet


def fitted(
    program: Program, arm: Callable[[int], Sequence[Link]], equations: Collection[str] | None = None
) -> tuple[Polynomial, Polynomial]:
    """Return products and sums of all or of the given equations, as polynomials in n."""
    M: dict[int, int] = {}
    A: dict[int, int] = {}
    for n in LENGTHS:
        counts = _counted(program, arm, n)
        chosen = [pair for name, pair in counts.items() if equations is None or name in equations]
        M[n], A[n] = sum(m for m, _ in chosen), sum(a for _, a in chosen)
    return Polynomial.through(M), Polynomial.through(A)


@cache
def _counted(program: Program, arm: Callable[[int], Sequence[Link]], n: int) -> dict[str, Counts]:
    return count(program, arm(n)).counts
