"""Choice of the matrix columns whose entries share a SIMD vector.

A row of a branch-sparse matrix is nonzero only in the columns of a few limbs. If each vector holds
columns of one limb, more vectors are zero, and zero vectors are neither stored nor multiplied.
"""

from collections.abc import Sequence

from chasles.expr import Staged

Packing = list[tuple[int, ...]]
"""Indices of the matrix columns that each SIMD vector holds."""


def packings(staged: Staged, width: int) -> list[Packing]:
    """Return the packing of each result's columns into SIMD vectors.

    The columns are packed in order or as grouped by `packed`, whichever needs fewer vector
    multiplications. Results with the same number of columns share a packing.
    """
    sizes = [v.shape[1] for v in staged.outputs]
    found = {n: _best(staged, [k for k, m in enumerate(sizes) if m == n], width) for n in {*sizes}}
    return [found[n] for n in sizes]


def _best(staged: Staged, results: Sequence[int], width: int) -> Packing:
    n = staged.outputs[results[0]].shape[1]
    patterns = [0] * n
    for k in results:
        for r, some in enumerate(staged.present(staged.chains[k][-1])):
            for c in some:
                patterns[c] |= 1 << r
    ordered = [tuple(range(n))[c : c + width] for c in range(0, n, width)]
    ways = ordered, packed(patterns, width)
    return min(ways, key=lambda way: sum(_work(staged, k, way) for k in results))


def _work(staged: Staged, result: int, packing: Packing) -> int:
    """Return the number of vector multiplications that a result needs with a given packing."""
    *lefts, last = staged.chains[result]
    rows = [
        {b for b, columns in enumerate(packing) if not some.isdisjoint(columns)}
        for some in staged.present(last)
    ]
    count = 0
    for left in reversed(lefts):
        some = staged.present(left)
        count += sum(len(rows[k]) for row in some for k in row)
        rows = [set[int]().union(*(rows[k] for k in row)) for row in some]
    return count


def packed(patterns: Sequence[int], width: int) -> Packing:
    """Group columns into vectors so that rows need few vectors.

    Each column begins as a group of its own. Of all pairs of groups that fit in one vector, the
    pair with the most nonzero rows in common (such as two columns of one limb) is merged. Merging
    is repeated until no pair fits in one vector.

    patterns: bit mask of the nonzero rows of each column.
    """
    packs: list[tuple[tuple[int, ...], int]]
    packs = [((c,), rows) for c, rows in enumerate(patterns)]
    while True:
        best, pair = (-1, 0), None
        for i, (some, rows) in enumerate(packs):
            for j, (others, more) in enumerate(packs[i + 1 :], i + 1):
                alike = (rows & more).bit_count(), -(rows | more).bit_count()
                if alike > best and len(some) + len(others) <= width:
                    best, pair = alike, (i, j)
        if pair is None:
            return [columns for columns, _ in packs]
        i, j = pair
        (some, rows), (others, more) = packs[i], packs.pop(j)
        packs[i] = some + others, rows | more
