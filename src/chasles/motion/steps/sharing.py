"""Selection of the closest contact points of many pairs of shapes.

A robot may have hundreds of self-collision pairs, but only a few touch at the same time. If the
step contained a contact point for each pair, it would be too large to compile. Instead, the pairs
share a few contact points (slots): the gaps of all pairs are computed, and only the closest points
enter the step. The Jacobians of these points are assembled from the Jacobians of the bodies.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.expr import Number, equal
from chasles.motion.contact.pairs import Compliant, Pair, Rigid
from chasles.motion.geometry.closed_forms import less, maximum, minimum, select
from chasles.motion.steps.algebra import columns, zeros
from chasles.motion.steps.slots import outside
from chasles.motion.steps.spots import FAR, Spot
from chasles.motion.steps.touching import Coefficients, Touch, touched

ROW = 10
"""Number of values that describe a contact computed outside the compiled step: gap, point, normal,
inverse mass, and two frame indices.
"""

MOST_SLOTS = 16
"""Maximum number of contacts in a group that is computed outside the compiled step. A larger value
of `Pair.shared` in the group replaces this maximum.
"""


class Shared(NamedTuple):
    """Slot shared by several contacts, for the closest contact point that has no slot yet.

    Attributes
    ----------
    weight : Number
        Inverse mass (1/kg).
    over, under : Number
        Frame indices of body and surface.
    own : Coefficients | None
        Friction and stiffness, if they are inputs of the step.
    """

    law: Rigid | Compliant
    spot: Spot
    weight: Number
    over: Number
    under: Number
    own: Coefficients | None = None

    def touch(self, carrier: int, origin: np.ndarray, dt: float) -> Touch:
        """Convert the potential contact point to a `Touch`; positions are relative to `origin`."""
        return touched(carrier, self.spot, origin, self.law, self.weight, dt, self.own)

    def jacobian(self, bodies: Sequence[np.ndarray]) -> np.ndarray:
        """Return the Jacobian (6, nv) of the body relative to the surface.

        `bodies` contains the Jacobians of the group's frames. Columns that are equal in all these
        Jacobians cancel, and are zero in the result.
        """
        signs = [
            equal(self.over, float(f)) - equal(self.under, float(f)) for f in range(len(bodies))
        ]
        J = zeros(*bodies[0].shape)
        for k in range(J.shape[1]):
            found = [(sign, c) for sign, c in zip(signs, columns(bodies, k), strict=True) if c]
            for column in {id(c[0]): c[0] for _, c in found}.values():
                same = [(sign, c[1]) for sign, c in found if c[0] is column]
                if len(same) < len(bodies) or len({c for _, c in same}) > 1:
                    J[:, k] = J[:, k] + sum(sign * c for sign, c in same) * column
        return J


class Unseen(NamedTuple):
    """Contact pairs with the same law whose contact points are inputs of the compiled step.

    `slots` is the maximum number of contacts in a step.
    """

    slots: int
    law: Rigid | Compliant
    pairs: list[Pair]

    @property
    def size(self) -> int:
        """Number of input entries: `ROW` per slot, and 1 for the smallest gap of other contacts."""
        return self.slots * ROW + 1

    @property
    def frames(self) -> list[str | None]:
        """Frames of the bodies and surfaces of all pairs, each listed once."""
        return list(dict.fromkeys(f for pair in self.pairs for f in pair.frames))

    def given(self, inputs: np.ndarray) -> tuple[list[Shared], Number]:
        """Return the contacts stored in `inputs`, and the smallest gap of all other contacts."""
        found = []
        for row in inputs[:-1].reshape(self.slots, ROW):
            found.append(Shared(self.law, Spot(row[1:4], row[4:7], row[0]), *row[7:]))
        return found, inputs[-1]


def unseen(pairs: Sequence[Pair]) -> list[Unseen]:
    """Group contact pairs by contact law, for contacts computed outside the compiled step."""
    found: dict[Any, Unseen] = {}
    for pair in pairs:
        assert isinstance(pair.law, Rigid | Compliant), "checked before"
        group = found.setdefault(pair.law, Unseen(0, pair.law, []))
        group.pairs.append(pair)
    made = []
    for group in found.values():
        rows = [outside(pair.body, pair.surface) for pair in group.pairs]
        every = sum(r.slots(p.body) for r, p in zip(rows, group.pairs, strict=True) if r)
        most = max(MOST_SLOTS, *(pair.shared for pair in group.pairs))
        made.append(group._replace(slots=min(every, most)))
    return made


class Crowd(NamedTuple):
    """Group of potential contact points that share slots and a contact law, with their pairs."""

    slots: int
    law: Rigid | Compliant
    spots: list[tuple[Pair, Spot]]

    @property
    def frames(self) -> list[str | None]:
        """Frames of the bodies and surfaces of all pairs, each listed once."""
        return list(dict.fromkeys(f for pair, _ in self.spots for f in pair.frames))


def crowds(spots: Sequence[tuple[Pair, Spot]]) -> list[Crowd]:
    """Group potential contact points by contact law and number of shared contact slots."""
    found: dict[Any, Crowd] = {}
    for pair, spot in spots:
        assert isinstance(pair.law, Rigid | Compliant), "checked before"
        crowd = found.setdefault((pair.shared, pair.law), Crowd(pair.shared, pair.law, []))
        crowd.spots.append((pair, spot))
    return [crowd._replace(slots=min(crowd.slots, len(crowd.spots))) for crowd in found.values()]


Rows = Sequence[list[Any]]
"""One row for each potential contact point: gap, position, normal, inverse mass, indices of the two
frames, and contact coefficients."""


def closest(
    crowd: Crowd,
    weight: Callable[[Pair], Number],
    own: Callable[[Pair], Coefficients | None] = lambda pair: None,
    pick: Callable[[Rows, int], tuple[Rows, Sequence[Number]]] | None = None,
) -> tuple[list[Shared], Number]:
    """Return the closest contact points of a group, and the smallest gap of all other points.

    The group can use at most `crowd.slots` contact points at a time.

    Parameters
    ----------
    crowd : Crowd
        Group of potential contact points.
    weight : Callable[[Pair], Number]
        Function that returns the inverse mass (1/kg) at the contact of a pair of shapes.
    own : Callable[[Pair], Coefficients | None]
        Function that returns the friction and stiffness of a pair if they are inputs of the step,
        else None.
    pick : Callable, optional
        Function that returns the rows of the closest points, and the gaps of the other points.
        Default: `picked`.
    """
    rows, frames = [], crowd.frames
    for pair, spot in crowd.spots:
        over, under = (float(frames.index(f)) for f in pair.frames)
        row = [spot.gap, *spot.point, *spot.normal, weight(pair), over, under]
        rows.append([*row, *(own(pair) or ())])
    bests, left = (pick or picked)(rows, crowd.slots)
    found: list[Shared] = []
    for best in bests:
        gap, point, normal = best[0], np.array(best[1:4]), np.array(best[4:7])
        inverse, over, under, *rest = best[7:]
        coefficients = Coefficients(*rest) if rest else None
        spot = Spot(point, normal, gap)
        found.append(Shared(crowd.law, spot, inverse, over, under, coefficients))
    return found, _least(left, [[gap] for gap in left])[1][0]


def picked(rows: Rows, count: int) -> tuple[Rows, Sequence[Number]]:
    """Select the `count` rows with the smallest gaps.

    Also return the gaps of all rows, in which the gaps of the selected rows are replaced by `FAR`.
    """
    gaps: Sequence[Number] = [row[0] for row in rows]
    found = []
    for _ in range(count):
        best, gaps = nearest(gaps, rows)
        found.append(best)
    return found, gaps


def nearest(gaps: Sequence[Number], rows: Rows) -> tuple[list[Any], list[Number]]:
    """Select the row with the smallest gap.

    Also return the gaps of all rows, in which the gap of the selected row is replaced by `FAR`.
    """
    which, best = _least(gaps, rows)
    return best, [select(equal(which, float(k)), FAR, gap) for k, gap in enumerate(gaps)]


def smallest(crowd: Crowd) -> list[Number]:
    """Return the gaps of the closest contact points of a group, smallest first."""
    rest: list[Number] = [spot.gap for _, spot in crowd.spots]
    found = []
    for _ in range(crowd.slots):
        least, *others = rest
        rest = []
        for gap in others:
            rest.append(maximum(least, gap))
            least = minimum(least, gap)
        found.append(least)
    return found


def _least(gaps: Sequence[Number], rows: Rows) -> tuple[Number, list[Any]]:
    """Return the index of the smallest gap in `gaps`, and the row of `rows` with this index.

    The first entry of the returned row is replaced by the smallest gap.
    """
    which: Number = 0.0
    best = [gaps[0], *rows[0][1:]]
    for k, (gap, row) in enumerate(zip(gaps[1:], rows[1:], strict=True), 1):
        closer = less(gap, best[0])
        which = select(closer, float(k), which)
        best = [select(closer, a, b) for a, b in zip([gap, *row[1:]], best, strict=True)]
    return which, best
