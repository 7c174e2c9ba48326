"""How the loops of one mechanism are solved: decided once, checked in every state."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Closure:
    """A choice of independent equations, each of which gives one dependent freedom.

    rows: equations of the loops (rows of `loop_matrix`) that say all that they say, in the order
    in which they are used. dependent: the velocity coordinate that each is solved for; the others
    are independent. pivots: what each is divided by in that elimination, at the position where the
    choice was made; where one becomes small beside that, another choice is better. scales: factors
    that make all rows dimensionless (1 for angles, 1/size of the loop for lengths).
    """

    rows: tuple[int, ...]
    dependent: tuple[int, ...]
    pivots: tuple[float, ...]
    scales: tuple[float, ...]
