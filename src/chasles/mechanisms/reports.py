"""What can be wrong with a closed position, and how many freedoms it leaves."""

from dataclasses import dataclass
from typing import Any, Self

from chasles.errors import InputError
from chasles.model.joints import traits


class LoopError(InputError):
    """A question about closed loops that has no answer; names the loop and the joints."""


class ImpossiblePosition(LoopError):
    """No position was found that closes the loops."""


class SingularPosition(LoopError):
    """The independent freedoms do not determine the others here."""


class OpenLoop(LoopError):
    """The loops are not closed at a given position."""


class UnderActuated(LoopError):
    """Some actuators cannot move a mechanism in all its freedoms."""


class OverDetermined(LoopError):
    """Known accelerations are more than the loops leave free, and do not agree with them."""


class LockedMechanism(LoopError):
    """The loops leave no freedom that could be chosen or moved."""


@dataclass(frozen=True, eq=False)
class Mobility(int):
    """How many freedoms a closed position leaves: a number that prints as how it was found.

    mobility = freedoms (of the tree) - rank (of the loops' matrix, which has `rows` rows).
    redundant: for each loop and coupling, rows that say nothing beyond those before them.
    tolerance: singular values below this part of the largest count as zero; kept and dropped are
    the smallest that counts and the largest that does not, as such parts. couplings: which of those
    in `redundant` are couplings. weaker: for loops with redundant rows, a joint type in place of
    theirs that leaves the motion as it is and has fewer of them. immobile: freedoms of the tree
    that are held here, also while others move.
    """

    mobility: int
    freedoms: int
    rank: int
    rows: int
    redundant: tuple[tuple[str, int], ...]
    tolerance: float
    kept: float
    dropped: float
    couplings: tuple[str, ...] = ()
    weaker: tuple[tuple[str, str], ...] = ()
    immobile: tuple[str, ...] = ()

    def __new__(cls, mobility: int, *found: Any, **named: Any) -> Self:
        return super().__new__(cls, mobility)

    def __str__(self) -> str:
        extra = ", ".join(
            f"{count} of {'coupling' if name in self.couplings else 'loop'} {name!r}"
            for name, count in self.redundant
            if count
        )
        if not self.rows:
            return f"mobility {self.mobility}: {self.freedoms} freedoms, no loops"
        parts = f"singular values {self.kept:.2g} and above kept"
        if self.rank < min(self.rows, self.freedoms):
            parts += f", {max(self.dropped, 1e-12):.0e} and below dropped"
        return (
            f"mobility {self.mobility}: {self.freedoms} freedoms, rank {self.rank} of {self.rows} "
            f"equations ({f'redundant: {extra}' if extra else 'none redundant'}; {parts}, rank "
            f"tolerance {self.tolerance:.0e}){self._held()}{self._offer()}"
        )

    def _held(self) -> str:
        """What cannot move while the rest does, in words."""
        names = ", ".join(map(repr, self.immobile)) if self.mobility else ""
        return f"; {names} cannot move" if names else ""

    def _offer(self) -> str:
        """Weaker joints that would do, in words."""
        words = [
            f"{name!r} {'left out' if traits(kind).floating else f'as {kind}'}"
            for name, kind in self.weaker
        ]
        return f"; as good with fewer equations: {', '.join(words)}" if words else ""
