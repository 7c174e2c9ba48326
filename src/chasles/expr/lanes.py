"""Find operations that occur in several limbs, so that one vector operation can replace them.

The legs of a quadruped differ only in a few parameters. If these parameters are symbols, and
corresponding inputs of all legs have the same digest (hash), then corresponding operations of all
legs also have the same digest. A single vector operation with one lane per leg can replace these
operations.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from chasles.expr.scalar import Scalar, Seat


class Lane(NamedTuple):
    """Limb to which a node belongs.

    Limbs with the same structure have the same `kind`. `lane` is the index of the limb among the
    limbs of this kind.
    """

    kind: int
    lane: int


def packs(order: Sequence[Scalar], seats: Mapping[Scalar, Seat]) -> list[tuple[Scalar, ...]]:
    """Group nodes that perform the same operation in different limbs of the same kind.

    Each group has one node per limb, ordered by lane. An argument of a group is either one node
    shared by all limbs, or another group. `order` contains all nodes, each after its arguments.
    `seats` maps each input to its position in a limb (`Seat`).
    """
    if not seats:
        return []
    lanes = {seat.kind: seat.lanes for seat in seats.values()}
    same: dict[int, list[Scalar]] = {}
    for node in order:
        if node.op != "const":
            same.setdefault(node.digest, []).append(node)
    pack: dict[Scalar, tuple[Scalar, ...]] = {}
    lane: dict[Scalar, Lane] = {}
    found = []
    for node in order:
        group = same.get(node.digest, ())
        if len(group) < 2 or node is not group[-1]:
            continue
        where = [_lane(each, seats, lane) for each in group]
        kinds = {each.kind if each else -1 for each in where}
        (kind, *others), given = kinds, {each.lane: k for k, each in enumerate(where) if each}
        if (
            others
            or kind < 0
            or sorted(given) != list(range(lanes[kind]))
            or len(group) > len(given)
        ):
            continue
        ordered = tuple(group[given[k]] for k in range(len(group)))
        columns = list(zip(*(each.args for each in ordered), strict=True))
        if all(a.count(a[0]) == len(a) or pack.get(a[0]) == a for a in columns):
            found.append(ordered)
            pack |= dict.fromkeys(ordered, ordered)
            lane |= {each: Lane(kind, k) for k, each in enumerate(ordered)}
    return found


def _lane(node: Scalar, seats: Mapping[Scalar, Seat], lane: Mapping[Scalar, Lane]) -> Lane | None:
    """Return the lane (limb) of an input or operation, or None if it does not belong to a limb.

    The lane of an operation is that of its first argument with a lane.
    """
    if node.op == "input":
        seat = seats.get(node)
        return Lane(seat.kind, seat.lane) if seat else None
    return next((lane[a] for a in node.args if a in lane), None)
