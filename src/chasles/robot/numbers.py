"""Arrays in signatures, for type checkers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:

    class HasShape(Protocol):
        """An array of any library."""

        @property
        def shape(self) -> Any:
            """Length of each axis."""

    _Row = Sequence[float] | Sequence[HasShape]
    Numbers = HasShape | float | _Row | Sequence[_Row] | Sequence[Sequence[_Row]]
else:
    Numbers = Any
"""A required array; type checkers reject text and None."""
