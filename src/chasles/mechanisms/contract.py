"""The contract of a mechanism, in which trees, closed loops and motion in time differ.

Nothing above asks which of them a mechanism is.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, get_args

import numpy as np

from chasles.errors import InputError
from chasles.functions.compiled import AtTime, Compiled
from chasles.mechanisms.charts import Charts
from chasles.mechanisms.closing import Loops
from chasles.model import Model

Coordinates = Literal["tree", "independent"]
"""All coordinates of the tree, or those that its closed loops leave independent."""

COORDINATES = get_args(Coordinates)

Caller = Callable[..., Any]
"""Computes a function: called with its arrays, `out=` and `threads=`."""


Accelerations = Callable[..., np.ndarray]
"""qdd of (t, q, qd, tau, *wrenches)."""


class Mechanism(Protocol):
    """A tree, a mechanism with closed loops, or one that depends on time."""

    @property
    def model(self) -> Model:
        """The bodies, joints, loops and couplings."""

    @property
    def traits(self) -> tuple[str, ...]:
        """Reasons why it is not a plain tree, in words: ("it has loops", "it depends on time")."""

    @property
    def kept(self) -> dict[Any, Any]:
        """Compiled steps of its motion, by all that decides them."""

    @property
    def rows(self) -> int:
        """The number of equations of its loops and couplings."""

    # Time

    @property
    def t(self) -> np.ndarray | None:
        """The time (...) at which it is asked, in s; None if none was given."""

    def at(self, t: Any) -> "Mechanism":
        """The mechanism at a time; itself if it does not depend on time."""

    # Coordinates

    @property
    def loops(self) -> Loops:
        """Names of all freedoms, and which are independent: chosen once, at t = 0."""

    @property
    def closing(self) -> Loops:
        """Positions and rates that keep the loops closed, at its time."""

    @property
    def charts(self) -> Charts:
        """Independent coordinates that suit a position."""

    def reduced(self, name: str, q: Any) -> tuple[np.ndarray, np.ndarray]:
        """G with qd = G yd, and the mass matrix of yd, at closed q; `name` is used in messages."""

    def closed(self, q: Any, qd: Any, *, anywhere: bool) -> tuple[np.ndarray, np.ndarray]:
        """A closed state with the independent coordinates and rates of q and qd.

        anywhere: on any branch, not the one near q.
        """

    def near(self, q: np.ndarray) -> np.ndarray:
        """A closed position near q, or where else a few tries find one."""

    def towards(self, q: np.ndarray, target: np.ndarray, k: int) -> np.ndarray:
        """The closed position on the branch of q in which freedom k is as in a target."""

    # Functions

    def function(self, name: str, **options: Any) -> Compiled:
        """A compiled function; not one whose program would leave loops open."""

    def chosen(self, name: str) -> Model:
        """The model that a function is traced on: with a closure, if the function needs one."""

    def bound(self, compiled: Compiled) -> Compiled | AtTime:
        """A compiled function without the argument t, if it has one."""

    def caller(self, name: str, f_ext: Mapping[str, Any] | None = None, **options: Any) -> Caller:
        """A public function under loads and with options, loops kept closed."""

    def accelerations(
        self, f_ext: Mapping[str, Any] | None, frames: Sequence[str], **options: Any
    ) -> Accelerations:
        """Joint accelerations as a function of t, q, qd, tau and the wrenches on some frames.

        options: dissipation; of closed loops also stabilization and tolerance.
        """

    def multipliers(self, q: Any, qd: Any, tau: Any) -> np.ndarray:
        """The forces that loops exert in a motion under joint forces: (..., rows)."""

    def loads(self, name: str, multipliers: Any) -> tuple[Any, ...]:
        """The arrays by which the forces of loops enter a function."""

    # Doors

    def require_loops(self, what: str, remedy: str = "use forward_dynamics") -> None:
        """Raise if there are no loops or couplings."""

    def refuse_loops(self, what: str, remedy: str) -> None:
        """Raise if there are loops or couplings."""

    def refuse_time(self, what: str, remedy: str) -> None:
        """Raise if it depends on time."""

    def opens(self, function: str) -> bool:
        """Return True if a program of this function would leave loops open."""

    def refuse_open(self, what: str, function: str) -> None:
        """Raise if a program of this function would leave loops open."""


def check_coordinates(function: str, coordinates: Any) -> None:
    """The inverse of a mass matrix may be asked for without saying in which coordinates."""
    unsaid = coordinates is None and function == "mass_matrix_inverse"
    if coordinates not in COORDINATES and not unsaid:
        problem = f'coordinates must be "tree" or "independent", not {coordinates!r}'
        raise InputError("E-LOOP-037", problem, part=function)
