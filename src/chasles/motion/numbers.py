"""Types of array arguments, used in annotations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:

    class HasShape(Protocol):
        """Array from any supported array library."""

        @property
        def shape(self) -> Any:
            """Shape of the array."""

    _Row = Sequence[float] | Sequence[HasShape]
    Numbers = HasShape | float | _Row | Sequence[_Row] | Sequence[Sequence[_Row]]
else:
    Numbers = Any
"""Type of a required array argument. Type checkers reject strings and None."""
