"""Array types for annotations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:

    class HasShape(Protocol):
        """Array of any library."""

        @property
        def shape(self) -> Any:
            """Length of each axis."""

    _Row = Sequence[float] | Sequence[HasShape]
    Numbers = HasShape | float | _Row | Sequence[_Row] | Sequence[Sequence[_Row]]
else:
    Numbers = Any
"""Type of a required array argument. Type checkers reject strings and None."""
