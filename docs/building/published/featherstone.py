"""Operation counts printed in Featherstone, Rigid Body Dynamics Algorithms (Springer 2008).

m is the number of multiplications, a the number of additions and subtractions. This file contains
only the printed counts, each with its table or equation. The counts of chasles are computed
elsewhere.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from chasles.errors import InputError
from chasles.expr import Count


class Printed(NamedTuple):
    """Number of multiplications and additions."""

    m: int
    a: int


# Spatial arithmetic ------------------------------------------------------------------------------

TABLE_A_4 = {
    "a v": Printed(6, 0),
    "a f": Printed(6, 0),
    "a I": Printed(10, 0),
    "a IA": Printed(21, 0),
    "v + v": Printed(0, 6),
    "f + f": Printed(0, 6),
    "I + I": Printed(0, 10),
    "IA + IA": Printed(0, 21),
    "IA + I": Printed(0, 15),
    "v . f": Printed(6, 5),
    "v x v": Printed(18, 12),
    "v x* f": Printed(18, 12),
    "I v": Printed(24, 18),
    "IA v": Printed(36, 30),
    "X1 X2": Printed(33, 24),
    "X^-1": Printed(9, 6),
    "X v": Printed(24, 18),
    "X^-1 v": Printed(24, 18),
    "X* f": Printed(24, 18),
    "X' f": Printed(24, 18),
    "X* I X^-1": Printed(52, 56),
    "X' I X": Printed(52, 56),
    "X* IA X^-1": Printed(137, 137),
    "X' IA X": Printed(137, 137),
}
"""Table A.4 (section A.3, p. 247).

a is a scalar, v a motion, f a force, I a rigid-body inertia, IA an articulated-body inertia, and X
a general transform.
"""

SECTION_A_5 = {
    "E1 E2": Printed(24, 15),
    "E A E'": Printed(40, 39),
    "E S E'": Printed(28, 29),
}
"""Section A.5 (pp. 252 to 254), for a rotation E, a general 3x3 matrix A and a symmetric one S."""

TABLE_A_5 = {
    "X v": Printed(10, 6),
    "X* f": Printed(10, 6),
    "X* I X^-1": Printed(16 + 2, 15 + 3),
    "X* IA X^-1": Printed(38 + 2, 40 + 3),
    "X' Ia X, axis z": Printed(28 + 2, 34 + 3),
    "X' Ia X, axis x or y": Printed(32 + 2, 28 + 3),
    "E A E'": Printed(12 + 2, 12),
    "E S E'": Printed(8 + 2, 7 + 3),
}
"""Table A.5 (section A.4, p. 250), for an axial screw transform X.

The third row and column of the articulated inertia Ia are zero. The last two rows are from section
A.5 (pp. 255, 256), for rotations about one axis. The operations that are needed once for a new
angle, 2m + 3a (2m for A), are included.
"""


# Dynamics of unbranched chains -------------------------------------------------------------------


@dataclass(frozen=True)
class ChainCost:
    """A row of table 10.1: operations of an algorithm for n joints, as polynomials in n.

    Coefficients are in ascending powers of n. Divisions count as multiplications.
    """

    algorithm: str
    m: tuple[Fraction | int, ...]
    a: tuple[Fraction | int, ...]
    source: str

    def at(self, n: int) -> Printed:
        """Return the count for n joints."""
        m, a = (sum(Fraction(c) * n**k for k, c in enumerate(row)) for row in (self.m, self.a))
        assert m.denominator == a.denominator == 1, self
        return Printed(int(m), int(a))


TABLE_10_1 = (
    ChainCost("RNEA", (-108, 93), (-100, 81), "Balafoutis and Patel 1991"),
    ChainCost("RNEA", (-69, 93), (-66, 81), "Balafoutis et al. 1988"),
    ChainCost("RNEA", (-68, 130), (-56, 101), "Featherstone 1987"),
    ChainCost("RNEA", (-48, 150), (-48, 131), "Hollerbach 1980"),
    ChainCost("CRBA", (-32, 22, 10), (-43, 37, 6), "Eq 10.3"),
    ChainCost("CRBA", (-41, 31, 10), (-46, 40, 6), "Featherstone 1987"),
    ChainCost("CRBA", (-51, 41, 10), (-58, 52, 6), "Lilly and Orin 1991"),
    ChainCost(
        "CRBA",
        (-42, 11, 11),
        (-54, Fraction(65, 2), Fraction(11, 2)),
        "Balafoutis and Patel 1989",
    ),
    ChainCost("CRBA", (-27, 56, 12), (-53, 67, 7), "Walker and Orin 1982"),
    ChainCost(
        "F&S",
        (0, Fraction(-2, 3), Fraction(3, 2), Fraction(1, 6)),
        (0, Fraction(-7, 6), 1, Fraction(1, 6)),
        "Table 6.6, Eq 6.28",
    ),
    ChainCost("ABA", (-259, 224), (-248, 205), "McMillan et al. 1995"),
    ChainCost("ABA", (-222, 250), (-198, 220), "Brandl et al. 1988"),
    ChainCost("ABA", (-267, 300), (-259, 279), "Featherstone 1987"),
)
"""Table 10.1 (section 10.3, p. 202), for chains of revolute joints with general parameters (GU).

The algorithms are recursive Newton-Euler (RNEA), composite rigid body (CRBA), factorization and
solution (F&S) and articulated body (ABA). Figure 10.4 shows the first row of each algorithm. Sines
and cosines are not counted.
"""


SAME_ALGORITHM = {
    ("RNEA", "Balafoutis and Patel 1991"): ("inverse_dynamics", "augmented-tensor"),
    ("RNEA", "Featherstone 1987"): ("inverse_dynamics", "spatial"),
    ("RNEA", "Hollerbach 1980"): ("inverse_dynamics", "newton-euler-vector"),
    ("CRBA", "Eq 10.3"): ("mass_matrix", "spatial"),
    ("CRBA", "Balafoutis and Patel 1989"): ("mass_matrix", "augmented-tensor"),
    ("ABA", "McMillan et al. 1995"): ("forward_dynamics", "articulated-body"),
}
"""Function and method of chasles that implement the algorithm of a row of table 10.1."""


def best(algorithm: str) -> ChainCost:
    """Return the row of table 10.1 that the book uses for an algorithm (RNEA, CRBA, F&S, ABA)."""
    return next(row for row in TABLE_10_1 if row.algorithm == algorithm)


# Trees -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Branching:
    """Branching of a tree of joints with one degree of freedom, and the sums used in cost formulas.

    `parents` contains the index of each joint's parent, which is less than the joint's own index;
    -1 is the base. The first child of a body has a Denavit-Hartenberg transform, and all other
    children have general transforms.
    """

    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        for i, p in enumerate(self.parents):
            if not -1 <= p < i:
                problem = f"joint {i} has parent {p}"
                raise InputError("E-TABLE-001", problem, f"give -1 or a number below {i}")

    @staticmethod
    def even(n: int, children: int) -> "Branching":
        """Return a tree of n bodies, filled level by level, with the given number of children.

        One child gives a chain, two children give a binary tree.
        """
        return Branching(tuple((i - 1) // children if i else -1 for i in range(n)))

    @staticmethod
    def expanded(parents: Sequence[int], freedoms: Sequence[int]) -> "Branching":
        """Return a tree with a separate joint for each degree of freedom of the given joints.

        See table 6.4 (section 6.5, p. 114). Joints without degrees of freedom are allowed.
        """
        rows: list[int] = []
        last = {-1: -1}
        for i, (p, n) in enumerate(zip(parents, freedoms, strict=True)):
            first = len(rows)
            rows += [last[p], *range(first, first + n - 1)][:n]
            last[i] = len(rows) - 1 if n else last[p]
        return Branching(tuple(rows))

    def reduced(self, known: Collection[int]) -> "Branching":
        """Return the tree without the joints whose accelerations are known, by merging bodies.

        The result is the branching of H11 in hybrid dynamics (figure 9.1, section 9.1, p. 174).
        """
        rows: list[int] = []
        merged = {-1: -1}
        for i, p in enumerate(self.parents):
            if i not in known:
                rows.append(merged[p])
            merged[i] = merged[p] if i in known else len(rows) - 1
        return Branching(tuple(rows))

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Number of joints from each body to the base, including the body's own joint."""
        found: list[int] = []
        for p in self.parents:
            found.append(1 if p < 0 else found[p] + 1)
        return tuple(found)

    @cached_property
    def beyond(self) -> tuple[int, ...]:
        """Number of bodies that each joint carries."""
        found = [1] * len(self.parents)
        for i in range(len(self.parents) - 1, -1, -1):
            if self.parents[i] >= 0:
                found[self.parents[i]] += found[i]
        return tuple(found)

    @property
    def n(self) -> int:
        return len(self.parents)

    @property
    def D0(self) -> int:
        """Number of bodies whose parent is not the base (Eq 10.4)."""
        return len(self._on_bodies)

    @property
    def D1(self) -> int:
        """Number of nonzero entries below the diagonal (Eq 6.26 and 10.5)."""
        return sum(d - 1 for d in self.depths)

    @property
    def D2(self) -> int:
        """Sum of d (d - 1)/2 over all depths d (Eq 6.27)."""
        return sum(d * (d - 1) // 2 for d in self.depths)

    @property
    def _on_bodies(self) -> tuple[int, ...]:
        return tuple(i for i, p in enumerate(self.parents) if p >= 0)

    @cached_property
    def dh(self) -> tuple[int, ...]:
        """Bodies with a Denavit-Hartenberg transform from a parent other than the base."""
        return tuple(i for i in self._on_bodies if self.parents.index(self.parents[i]) == i)

    @cached_property
    def general(self) -> tuple[int, ...]:
        """Bodies with a general transform from a parent other than the base."""
        return tuple(i for i in self._on_bodies if i not in self.dh)


def composite_body(tree: Branching) -> Printed:
    """Return the cost of the mass matrix of a tree of revolute joints.

    See Eq 10.10 to 10.12 (section 10.3.2, p. 208).
    """
    D0dh, D0g = len(tree.dh), len(tree.general)
    D1dh, D1g = (sum(tree.beyond[i] for i in bodies) for bodies in (tree.dh, tree.general))
    return Printed(
        32 * D0dh + 47 * D0g + 20 * D1dh + 24 * D1g,
        43 * D0dh + 58 * D0g + 12 * D1dh + 18 * D1g,
    )


@dataclass(frozen=True)
class SparseCost:
    """An entry of table 6.6: coefficients of n, D1 and D2 for each operation."""

    square_roots: tuple[int, int, int] = (0, 0, 0)
    divisions: tuple[int, int, int] = (0, 0, 0)
    multiplications: tuple[int, int, int] = (0, 0, 0)
    additions: tuple[int, int, int] = (0, 0, 0)

    def on(self, tree: Branching) -> Count:
        """Return the count for a tree."""
        sizes = (tree.n, tree.D1, tree.D2)
        return Count(**{name: _dot(row, sizes) for name, row in vars(self).items()})


def _dot(row: Sequence[int], sizes: Sequence[int]) -> int:
    return sum(c * size for c, size in zip(row, sizes, strict=True))


_N, _D1, _2D1, _D2 = (1, 0, 0), (0, 1, 0), (0, 2, 0), (0, 0, 1)
_N_D1, _N_2D1 = (1, 1, 0), (1, 2, 0)

TABLE_6_6 = {
    "LTL": {
        "factor": SparseCost(_N, _D1, _D2, _D2),
        "solve": SparseCost(divisions=(2, 0, 0), multiplications=_2D1, additions=_2D1),
        "L x, L' x": SparseCost(multiplications=_N_D1, additions=_D1),
        "L^-1 x, L^-T x": SparseCost(divisions=_N, multiplications=_D1, additions=_D1),
        "H x": SparseCost(multiplications=_N_2D1, additions=_2D1),
    },
    "LTDL": {
        "factor": SparseCost(divisions=_D1, multiplications=_D2, additions=_D2),
        "solve": SparseCost(divisions=_N, multiplications=_2D1, additions=_2D1),
        "L x, L' x": SparseCost(multiplications=_D1, additions=_D1),
        "L^-1 x, L^-T x": SparseCost(multiplications=_D1, additions=_D1),
        "H x": SparseCost(multiplications=_N_2D1, additions=_2D1),
    },
}
"""Table 6.6 (section 6.5, p. 116), for sparse factorizations H = L' L and H = L' D L.

The rows are the factorization, and the operations of table 6.5.
"""


def factor_and_solve(tree: Branching) -> Printed:
    """Return the cost of factorizing by L' D L and solving; divisions count as multiplications."""
    parts = [TABLE_6_6["LTDL"][part].on(tree) for part in ("factor", "solve")]
    m = sum(part.multiplications + part.divisions for part in parts)
    return Printed(m, sum(part.additions for part in parts))
