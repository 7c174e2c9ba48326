"""All ways of evaluating an expression under stated rules, with their operation counts.

The programs of this package evaluate each printed expression in one way. If no way has the printed
count, the tests compare the count with the complete sets of this module. All ways compute the same
values, which the tests check, too.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import product as ways_of
from math import cos, sin

from building.published.printed.counting import (
    Block,
    Counts,
    Number,
    Rows,
    Sheet,
    Symmetric,
    Vector,
    dot,
    turned,
)

Both = tuple[Counts, Counts]
"""Counts for general twists, and for twists of 90 degrees."""


class Circular(Exception):
    """Two quantities of an angle are each computed from the other."""


class Angle:
    """Sine, cosine, squares and double angles; each is computed once, when it is first used.

    `ways` contains the identity for each of "cc", "ss", "sc", "sin 2" and "cos 2".
    """

    def __init__(self, c: Number, s: Number, ways: Mapping[str, "Way"]) -> None:
        self.known: dict[str, Number] = {"c": c, "s": s}
        self.ways = ways
        self.open: set[str] = set()

    def __getitem__(self, name: str) -> Number:
        if name not in self.known:
            if name in self.open:
                raise Circular(name)
            self.open.add(name)
            self.known[name] = self.ways[name](self)
        return self.known[name]


Way = Callable[[Angle], Number]

IDENTITIES: dict[str, tuple[Way, ...]] = {
    "cc": (
        lambda t: t["c"] * t["c"],
        lambda t: (1.0 + t["cos 2"]) * 0.5,
        lambda t: 1.0 - t["ss"],
    ),
    "ss": (
        lambda t: t["s"] * t["s"],
        lambda t: (1.0 - t["cos 2"]) * 0.5,
        lambda t: 1.0 - t["cc"],
    ),
    "sc": (lambda t: t["s"] * t["c"], lambda t: t["sin 2"] * 0.5),
    "sin 2": (lambda t: t["s"] * t["c"] * 2, lambda t: t["sc"] * 2),
    "cos 2": (
        lambda t: 1.0 - t["ss"] * 2,
        lambda t: t["cc"] * 2 - 1.0,
        lambda t: t["cc"] - t["ss"],
    ),
}
"""Identities for squares and double angles: those of section 6.4, and definitions."""


def identities() -> Iterator[dict[str, Way]]:
    """Yield all choices of one identity for each quantity."""
    for chosen in ways_of(*IDENTITIES.values()):
        yield dict(zip(IDENTITIES, chosen, strict=True))


def known(angle: float) -> Angle:
    """Return a constant angle, whose squares and double angles are not counted."""
    first = {name: ways[0] for name, ways in IDENTITIES.items()}
    return Angle(cos(angle), sin(angle), first)


# The last entry of a rotated symmetric tensor ---------------------------------------------------

Entry = Callable[[Angle, Number, Number, Number], Number]


def _half_way(t: Angle, a: Number, b: Number, ab: Number) -> Number:
    half = (a - b) * 0.5
    return b + half - (half * t["cos 2"] - t["sin 2"] * ab)


SECOND: tuple[Entry, ...] = (
    lambda t, a, b, ab: t["ss"] * a + t["cc"] * b + t["sin 2"] * ab,
    lambda t, a, b, ab: t["ss"] * a + t["cc"] * b + t["sc"] * ab * 2,
    lambda t, a, b, ab: a + b - (t["cc"] * a + t["ss"] * b - t["sin 2"] * ab),
    lambda t, a, b, ab: b + t["ss"] * (a - b) + t["sin 2"] * ab,
    lambda t, a, b, ab: a + t["cc"] * (b - a) + t["sin 2"] * ab,
    lambda t, a, b, ab: (a + b + t["cos 2"] * (b - a)) * 0.5 + t["sin 2"] * ab,
    lambda t, a, b, ab: (a + b + t["cos 2"] * (b - a) + t["sin 2"] * ab * 2) * 0.5,
    lambda t, a, b, ab: a + b - ((a + b + t["cos 2"] * (a - b)) * 0.5 - t["sin 2"] * ab),
    _half_way,
    lambda t, a, b, ab: t["s"] * (t["s"] * a + t["c"] * ab) + t["c"] * (t["s"] * ab + t["c"] * b),
    lambda t, a, b, ab: t["s"] * (t["s"] * a + t["c"] * ab * 2) + t["cc"] * b,
    lambda t, a, b, ab: t["s"] * (t["s"] * a + t["c"] * ab * 2) + t["c"] * (t["c"] * b),
    lambda t, a, b, ab: b + t["s"] * (t["s"] * (a - b) + t["c"] * ab * 2),
)
"""Second diagonal entry of a symmetric tensor of two rows after a rotation by an angle."""

LAST: tuple[Entry, ...] = (
    lambda t, b, c, bc: t["cc"] * c + t["ss"] * b + t["sin 2"] * bc,
    lambda t, b, c, bc: c + t["ss"] * (b - c) + t["sin 2"] * bc,
    lambda t, b, c, bc: b + t["cc"] * (c - b) + t["sin 2"] * bc,
    lambda t, b, c, bc: b + c - (t["cc"] * b + t["ss"] * c - t["sin 2"] * bc),
    lambda t, b, c, bc: (b + c + t["cos 2"] * (c - b)) * 0.5 + t["sin 2"] * bc,
    lambda t, b, c, bc: c + t["s"] * (t["s"] * (b - c) + 2.0 * float(t["c"]) * bc),
    lambda t, b, c, bc: t["s"] * (t["s"] * b + 2.0 * float(t["c"]) * bc) + t["cc"] * c,
    lambda t, b, c, bc: t["c"] * (t["c"] * c + 2.0 * float(t["s"]) * bc) + t["ss"] * b,
    lambda t, b, c, bc: t["s"] * (t["s"] * b + t["c"] * bc) + t["c"] * (t["s"] * bc + t["c"] * c),
)
"""Last diagonal entry after a second rotation by a constant angle."""


def _expanded(v: Vector, S: Symmetric) -> Number:
    x, y, z = v
    return dot((x * x, y * y, z * z, x * y * 2, x * z * 2, y * z * 2), S)


def _completely(v: Vector, S: Symmetric) -> Number:
    (x, y, z), (xx, yy, zz, xy, xz, yz) = v, S
    return dot(v, (dot(v, (xx, xy, xz)), dot(v, (xy, yy, yz)), dot((x, y, z), (xz, yz, zz))))


def _nested(v: Vector, S: Symmetric) -> Number:
    (x, y, z), (xx, yy, zz, xy, xz, yz) = v, S
    return x * (x * xx + (y * xy + z * xz) * 2) + y * (y * yy + z * yz * 2) + z * z * zz


BY_ROW: tuple[Callable[[Vector, Symmetric], Number], ...] = (_expanded, _completely, _nested)
"""Last entry of A S A' by the third row of A, which is known."""

SIX: Symmetric = (1.3, 2.1, 0.7, 0.4, -0.3, 0.9)
THETA, ALPHA = 0.7, 0.6


def last_entries() -> set[Both]:
    """Return the counts of all ways to compute the last entry of A S A'.

    The tensor is rotated in the plane of the joint angle and then in that of the twist, or the
    third row of A is used. At 90 degrees, the second rotation costs nothing.
    """
    found: set[Both] = set()
    for chosen in identities():
        for second in SECOND:
            pair = _second(chosen, second)
            if pair:
                found |= {(_added(pair[0], last), pair[1]) for last in _lasts()}
    for by_row in BY_ROW:
        counts = []
        for sa, ca in ((sin(ALPHA), cos(ALPHA)), (1, 0)):
            sheet = Sheet()
            row = (sheet.live(sa * sin(THETA)), sheet.live(sa * cos(THETA)), ca)
            by_row(row, _live_six(sheet))
            counts.append(sheet.whole())
        found.add((counts[0], counts[1]))
    return found


def _second(chosen: Mapping[str, Way], second: Entry) -> tuple[Counts, Counts] | None:
    """Return the counts of the entries yy and yz, and of yy, after a rotation by a joint angle."""
    sheet = Sheet()
    t = Angle(sheet.live(cos(THETA)), sheet.live(sin(THETA)), chosen)
    xx, yy, _, xy, xz, yz = _live_six(sheet)
    try:
        second(t, xx, yy, xy)
    except Circular:
        return None
    alone = sheet.whole()
    turned(xz, yz, t["c"], t["s"])
    M, A = sheet.whole()
    return (M - 2, A - 1), alone


def _lasts() -> set[Counts]:
    """Return the counts of the last entry after a rotation by a constant angle."""
    found = set()
    for last in LAST:
        sheet = Sheet()
        last(known(ALPHA), *(sheet.live(x) for x in (2.1, 0.7, 0.9)))
        found.add(sheet.whole())
    return found


def _added(a: Counts, b: Counts) -> Counts:
    return a[0] + b[0], a[1] + b[1]


def _live_six(sheet: Sheet) -> Symmetric:
    xx, yy, zz, xy, xz, yz = (sheet.live(float(x)) for x in SIX)
    return xx, yy, zz, xy, xz, yz


# A rotated general tensor ----------------------------------------------------------------------

Rotated = Callable[[Angle, Number, Number, Number, Number], Block]
"""Rotation of a block of the entries a, ab, ba, b in its plane."""


def _by_mean(t: Angle, a: Number, ab: Number, ba: Number, b: Number) -> Block:
    """Rotate the symmetric part; the skew-symmetric part is an entry less the mean."""
    mean, half = (ab + ba) * 0.5, (a - b) * 0.5
    skew, middle = ab - mean, b + half
    D, side = half * t["cos 2"] - mean * t["sin 2"], half * t["sin 2"] + mean * t["cos 2"]
    return (middle + D, side + skew), (side - skew, middle - D)


def _by_halves(t: Angle, a: Number, ab: Number, ba: Number, b: Number) -> Block:
    """Rotate the symmetric part; the skew-symmetric part is half a difference."""
    mean, skew, half = (ab + ba) * 0.5, (ab - ba) * 0.5, (a - b) * 0.5
    middle = b + half
    D, side = half * t["cos 2"] - mean * t["sin 2"], half * t["sin 2"] + mean * t["cos 2"]
    return (middle + D, side + skew), (side - skew, middle - D)


def _by_squares(t: Angle, a: Number, ab: Number, ba: Number, b: Number) -> Block:
    """Rotate the symmetric part by squares; both parts are halves."""
    mean, skew = (ab + ba) * 0.5, (ab - ba) * 0.5
    first = t["cc"] * a + t["ss"] * b - t["sin 2"] * mean
    side = t["sc"] * (a - b) + t["cos 2"] * mean
    return (first, side + skew), (side - skew, a + b - first)


def _by_sums(t: Angle, a: Number, ab: Number, ba: Number, b: Number) -> Block:
    """Rotate sums and differences, and halve the results."""
    m, d, u, v = a + b, a - b, ab + ba, ab - ba
    D, U = t["cos 2"] * d - t["sin 2"] * u, t["sin 2"] * d + t["cos 2"] * u
    return ((m + D) * 0.5, (U + v) * 0.5), ((U - v) * 0.5, (m - D) * 0.5)


def _by_half_sums(t: Angle, a: Number, ab: Number, ba: Number, b: Number) -> Block:
    """Halve sums and differences, and rotate them."""
    m, d, u, v = (a + b) * 0.5, (a - b) * 0.5, (ab + ba) * 0.5, (ab - ba) * 0.5
    D, U = t["cos 2"] * d - t["sin 2"] * u, t["sin 2"] * d + t["cos 2"] * u
    return (m + D, U + v), (U - v, m - D)


def _by_two_results(t: Angle, a: Number, ab: Number, ba: Number, b: Number) -> Block:
    """Rotate sums and differences, halve two results, and subtract them from sums."""
    m, d, u, v = a + b, a - b, ab + ba, ab - ba
    D, U = t["cos 2"] * d - t["sin 2"] * u, t["sin 2"] * d + t["cos 2"] * u
    first, side = (m + D) * 0.5, (U + v) * 0.5
    return (first, side), (side - v, m - first)


def _by_increments(t: Angle, a: Number, ab: Number, ba: Number, b: Number) -> Block:
    """Add increments to the entries."""
    d, u = a - b, ab + ba
    D, side = t["ss"] * d + t["sc"] * u, t["sc"] * d - t["ss"] * u
    return (a - D, ab + side), (ba + side, b + D)


def _by_invariants(t: Angle, a: Number, ab: Number, ba: Number, b: Number) -> Block:
    """Compute two entries; the others follow from a + b and ab - ba."""
    first = t["cc"] * a + t["ss"] * b - t["sc"] * (ab + ba)
    side = t["cc"] * ab - t["ss"] * ba + t["sc"] * (a - b)
    return (first, side), (side - (ab - ba), a + b - first)


def _by_pairs(t: Angle, a: Number, ab: Number, ba: Number, b: Number) -> Block:
    """Compute all entries; entries on one diagonal share a product."""
    u, d = t["sc"] * (ab + ba), t["sc"] * (a - b)
    return (
        (t["cc"] * a + t["ss"] * b - u, t["cc"] * ab - t["ss"] * ba + d),
        (t["cc"] * ba - t["ss"] * ab + d, t["ss"] * a + t["cc"] * b + u),
    )


def _expanded_block(t: Angle, a: Number, ab: Number, ba: Number, b: Number) -> Block:
    """Compute all entries as sums of four products."""
    cc, ss, sc = t["cc"], t["ss"], t["sc"]
    return (
        (cc * a + ss * b - sc * ab - sc * ba, cc * ab - ss * ba + sc * a - sc * b),
        (cc * ba - ss * ab + sc * a - sc * b, ss * a + cc * b + sc * ab + sc * ba),
    )


def _in_turn(t: Angle, a: Number, ab: Number, ba: Number, b: Number) -> Block:
    """Rotate the columns, and then the rows."""
    c, s = t["c"], t["s"]
    (a, ba), (ab, b) = turned(a, ba, c, s), turned(ab, b, c, s)
    return turned(a, ab, c, s), turned(ba, b, c, s)


BLOCKS: tuple[Rotated, ...] = (
    _by_mean,
    _by_halves,
    _by_squares,
    _by_sums,
    _by_half_sums,
    _by_two_results,
    _by_increments,
    _by_invariants,
    _by_pairs,
    _expanded_block,
    _in_turn,
)

NINE: Rows = ((1.3, 0.4, -0.3), (0.8, 2.1, 0.9), (0.2, -1.1, 0.7))
PAIRS: Counts = (8, 4)
"""Cost of the two pairs of entries that a plane rotation transforms like vectors."""


def tensor_rotations() -> set[Both]:
    """Return the counts of all ways to compute A T A' for a general tensor T.

    The tensor is rotated in the plane of the joint angle and then in that of the twist. In each
    plane, a block of four entries is rotated in one of the ways of `BLOCKS`, and two pairs of
    entries like vectors. The double angles are counted, or are known from another equation. A
    tensor may also be split into its symmetric and its skew-symmetric part (`split_rotations`).
    """
    found = split_rotations()
    constant = {_block_cost(block, known(ALPHA), Sheet()) for block in BLOCKS} - {None}
    for chosen in identities():
        for block in BLOCKS:
            for shared in (False, True):
                sheet = Sheet()
                t = Angle(sheet.live(cos(THETA)), sheet.live(sin(THETA)), chosen)
                cost = _block_cost(block, t, sheet, shared=shared)
                if cost:
                    right = _added(cost, PAIRS)
                    after = _added(right, PAIRS)
                    found |= {(_added(after, other), right) for other in constant if other}
    return found


def _block_cost(block: Rotated, t: Angle, sheet: Sheet, *, shared: bool = False) -> Counts | None:
    try:
        if shared:
            _ = t["sin 2"], t["cos 2"]
            sheet.counts.clear()
        block(t, *(sheet.live(x) for x in (1.3, 0.4, 0.8, 2.1)))
    except Circular:
        return None
    return sheet.whole()


def split_rotations() -> set[Both]:
    """Return the counts of rotating the symmetric and the skew-symmetric part.

    The symmetric part takes 21 and 18 operations, or 11 and 11 at right angles (section 6.4), less
    2 and 3 if the double angles are known. The skew-symmetric part is rotated as a vector. The
    parts have three sums and three differences, which are halved: all six, three of them because
    the others are differences from the means, or the nine entries of the result, with three doubled
    entries on the diagonal. Three sums and three differences join the parts.
    """
    found = set()
    for split in ((6, 6), (3, 6), (9, 6 + 3)):
        for saved in ((0, 0), (-2, -3)):
            general, right = ((21 + 8, 18 + 4), (11 + 4, 11 + 2))
            more = _added(_added(split, saved), (0, 6))
            found.add((_added(general, more), _added(right, more)))
    return found


# Products with scalars in recursions of matrices ------------------------------------------------

Linear = tuple[int, int]
"""Number of products as a n + b: a for each link, and b once."""


def scalings(size: int) -> set[Linear]:
    """Return the products with scalars in Eq 5.2.10 for matrices of a size.

    The factors of dA qd and dA qdd take one product for each entry. The factors 2 qd and qd^2 are
    multiplied first or one after the other, or the doubling is a sum. For the first link, the term
    with 2 Wd_0 = 0 is computed or not.
    """
    entries = size * size
    return {
        (2 * entries + double + square, -first)
        for double in (entries, entries + 1, 2 * entries)
        for square in (entries + 1, 2 * entries)
        for first in (0, double)
    }


def masses(*optional: Linear) -> set[Linear]:
    """Return the products with masses if each optional one is computed, or known in advance."""
    found = {(0, 0)}
    for a, b in optional:
        found |= {(x + a, y + b) for x, y in found}
    return found


def waters(n: int) -> set[int]:
    """Return the products of Eq 5.2.9 and 5.2.10 for n links.

    A pair of links takes three products of 4x4 matrices, and 16 + 4 products for the weight. The
    mass is a factor of each pair, or of r. J is known, or formed from its mass for each link or for
    each pair.
    """
    pairs, matrices = n * (n + 1) // 2, 64 * 7 * n - 64 * 8
    weights = {pairs, 0, 4 * n, 4 * pairs}
    tensors = {0, 16 * n, 16 * pairs}
    return {
        matrices + (3 * 64 + 16 + 4) * pairs + a * n + b + weight + tensor
        for a, b in scalings(4)
        for weight in weights
        for tensor in tensors
    }


def hollerbach(size: int) -> set[Linear]:
    """Return the products of algorithm 5.1 (matrices of size 4) or 5.2 (size 3), as a n + b.

    Each product of matrices and vectors in the printed equations is computed completely and once.
    Products with a zero matrix before the first or after the last link are left out, as in the
    printed counts. J, n = m r, m r of (5.2.16c) and mbar s are known, or formed from their masses.
    """
    cube, square = size**3, size * size
    a, b = 11 * cube + 2 * square + size, -(9 * cube + square)
    optional: tuple[Linear, ...] = ((square, 0), (size, 0))
    if size == 3:
        a, b = a + 4 * square + 3, b - 2 * square
        optional = (*optional, (size, 0), (size, -size))
    return {(a + x + y, b + u + v) for x, u in scalings(size) for y, v in masses(*optional)}
