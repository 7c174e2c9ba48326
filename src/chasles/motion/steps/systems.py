"""Linear systems of Newton steps, and conversion of such systems to and from flat lists."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from chasles.expr import Number
from chasles.motion.steps.algebra import absent
from chasles.motion.steps.touching import Near, Rub, Touch

TERMS = 4
"""Approximate number of operations per possible contact to compute one entry of a system matrix."""


class System(NamedTuple):
    """Linear system of a Newton step, in terms of the linearized impulses.

    Attributes
    ----------
    slots : Sequence[Near]
        Linearized impulses at the contact slots (potential contact points).
    stopping : Sequence[Number]
        Derivatives of the impulses of joint and tendon limits.
    rubbing : Sequence[Number]
        Slopes of dry friction (`convex.Rubbed`).
    g : np.ndarray
        Right-hand side: the momentum residual, and the velocities of combinations of coordinates
        that dry friction holds.
    """

    slots: Sequence[Near]
    stopping: Sequence[Number]
    rubbing: Sequence[Number]
    g: np.ndarray

    @property
    def entries(self) -> list[Number]:
        """All values of the system as a flat list, from which `system_of` restores the system."""
        found: list[Number] = []
        for near in self.slots:
            found.append(near.slope)
            for rub in near.rubs:
                found += [rub.stiffness, *rub.direction, rub.along, rub.growth]
        return [*found, *self.stopping, *self.rubbing, *self.g]


def system_size(touches: Sequence[Touch], others: int) -> int:
    """Return the number of entries of `System.entries` for given contacts.

    `others` is the number of entries that do not belong to contacts.
    """
    still = np.zeros(3)
    rubs = [rub for touch in touches for rub in touch.frictions(0.0, still, still)]
    return len(touches) + sum(3 + len(rub.velocity) for rub in rubs) + others


def work(
    H: np.ndarray, carriers: Sequence[np.ndarray], touches: Sequence[Touch], order: Sequence[int]
) -> int:
    """Return the approximate number of operations to assemble and solve a linear system."""
    there = np.vectorize(lambda x: not absent(x), otypes=[bool])
    full, count = there(H), 0
    for touch in touches:
        moved = there(carriers[touch.carrier]).any(0)
        full |= np.outer(moved, moved)
        count += TERMS * int(moved.sum()) ** 2
    full = full[np.ix_(order, order)]
    for k in range(len(full) - 1, 0, -1):
        row = full[k, :k]
        count += 2 * int(row.sum()) ** 2
        full[:k, :k] |= np.outer(row, row)
    return count


def system_of(entries: Sequence[Number], touches: Sequence[Touch], stops: int, dry: int) -> System:
    """Create a system from a flat list of its entries (`System.entries`).

    The impulses at contacts are set to zero, because the solution of the linear system does not
    depend on them.
    """
    left = iter(entries)
    slots = []
    for touch in touches:
        slope, rubs = next(left), []
        for of in touch.frictions(0.0, np.zeros(3), np.zeros(3)):
            zero = np.zeros(len(of.velocity))
            stiffness, direction = next(left), np.array([next(left) for _ in zero], dtype=object)
            rubs.append(Rub(of, zero, stiffness, direction, next(left), next(left)))
        slots.append(Near(0.0, slope, rubs))
    stopping, rubbing = ([next(left) for _ in range(n)] for n in (stops, dry))
    return System(slots, stopping, rubbing, np.array(list(left), dtype=object))
