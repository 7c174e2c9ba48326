"""Common interface of trees, closed loops and time-dependent robots."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property, partial
from itertools import chain
from typing import Any, Literal, Self, get_args

import numpy as np

from chasles.algorithms import CLOSED_LOOPS
from chasles.backends.arrays import check_tolerance
from chasles.errors import InputError
from chasles.functions.callers import Caller, Loaded
from chasles.functions.compiled import AtTime, Compiled, Functions
from chasles.functions.doors import checked_time, derivative_names, order_option, wrench_arguments
from chasles.functions.numeric import singular
from chasles.functions.programs import Derivative, Recent, check_inertia, spaces
from chasles.functions.tracing import WrenchKey
from chasles.mechanisms.closing import Charts, Loops
from chasles.model import Model, ModelError
from chasles.model.given import UNHASHABLE, a_name, some_names, some_numbers

Coordinates = Literal["tree", "independent"]
"""Set of coordinates: all coordinates of the tree, or only the independent ones."""

Accelerations = Callable[..., np.ndarray]
"""Function that returns qdd at (t, q, qd, tau, *wrenches)."""

Key = tuple[str, tuple[Any, ...]]
"""Key of a cached function: its name, and its options as alternating names and values."""


def typed(key: Key) -> tuple[Any, ...]:
    """Return a key that also contains the types of the values, so that 1 and True differ.

    The options of a cached function have been checked. An equal value of another type, which the
    check may refuse, must not find this function.
    """
    return *key, *map(type, key[1])


class Called:
    """Descriptor that makes a public function a method, for example `mechanism.mass_matrix(q)`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, mechanism: "Mechanism", owner: type | None = None) -> Caller:
        return partial(mechanism.call, self._name)


class Named:
    """Base class with the robot's name, its joint names, and the sizes and slices of q and qd."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.model.name

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates (degrees of freedom)."""
        return self.model.nv

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of joints that have coordinates, in the order of their coordinates."""
        return tuple(self.model.bodies[i].data.name for i in self.model.movers)

    @property
    def driven_joints(self) -> tuple[str, ...]:
        """Names of joints with a prescribed motion, which have no entries in q, in file order."""
        return tuple(self.model.bodies[i].data.name for i in self.model.driven)

    def position_slice(self, joint: str) -> slice:
        """Return the slice of a joint's coordinates in q.

        Parameters
        ----------
        joint : str
            Name of the joint.

        Returns
        -------
        slice
            Slice of q (nq,).

        Raises
        ------
        ModelError
            If there is no such joint, or if its motion is prescribed or follows another joint.
        ArgumentError
            If `joint` is not a string.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.quadruped().position_slice("floating_base")
        slice(0, 7, None)
        """
        return self.model.position_slices[self.model.mover(joint)]

    def velocity_slice(self, joint: str) -> slice:
        """Return the slice of a joint's velocities in qd, and of its torques in tau.

        Parameters
        ----------
        joint : str
            Name of the joint.

        Returns
        -------
        slice
            Slice of qd (nv,) and tau (nv,).

        Raises
        ------
        ModelError
            If there is no such joint, or if its motion is prescribed or follows another joint.
        ArgumentError
            If `joint` is not a string.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.quadruped().velocity_slice("floating_base")
        slice(0, 6, None)
        """
        return self.model.velocity_slices[self.model.mover(joint)]


class Mechanism(Named):
    """Base class of mechanisms, with the methods of a kinematic tree without closed loops."""

    traits: tuple[str, ...] = ()
    """Reasons why a mechanism is not a plain tree, such as "it has closed loops", for messages."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.functions = Functions(model)
        self.t: np.ndarray | None = None
        """Evaluation time (s) of shape (...), or None if no time was given."""
        self.kept: dict[Any, Any] = {}
        """Cache of compiled programs and other data."""
        self.recent: dict[Any, Any] = Recent()
        """Cache of compiled programs whose number has no bound, such as those of controllers."""
        self.ready: dict[tuple[Any, ...], Caller] = Recent()
        """Cache of functions from earlier calls, to reduce the call overhead. See `typed`."""
        self.called: set[str] = set()
        """Names of functions whose next call may install a fast entry point in the robot."""

    @property
    def rows(self) -> int:
        """Number of loop and coupling equations."""
        return self.model.loop_rows

    @property
    def independent(self) -> tuple[str, ...]:
        """Coordinates that determine all others through the loops."""
        return tuple(self.loops.freedoms[k] for k in self.loops.independent)

    def neutral(self) -> np.ndarray:
        """Return the configuration in which the two frames of every joint coincide: (nq,)."""
        return self.loops.neutral.copy()

    def at(self, t: Any) -> Self:
        """Return the mechanism at a time, or this object if the mechanism is time-independent."""
        return self

    # Coordinates --------------------------------------------------------------------------------

    @cached_property
    def loops(self) -> Loops:
        """Loops at t = 0, with the names of all coordinates and the choice of independent ones."""
        return Loose(self.model, self.function)

    @property
    def closing(self) -> Loops:
        """Loops at the mechanism's time, with methods that close and check the loops."""
        return self.loops

    @cached_property
    def charts(self) -> Charts:
        """Choices of independent coordinates (charts) for different ranges of configurations."""
        return Charts(self.functions)

    def reduced(self, name: str, q: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix G that maps independent velocities to qd, and the reduced mass matrix.

        The reduced mass matrix is G' M G, where M is the mass matrix without loops. The loops must
        be closed at q. `name` is the function name in error messages.
        """
        return np.eye(self.model.nv), self.mass_matrix(q)

    def check_inertia(self, name: str) -> None:
        """Raise an error if the robot can move without moving any mass or inertia.

        `name` is the function name in error messages.
        """
        check_inertia(self.model, name)

    def closed(self, q: Any, qd: Any, *, anywhere: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return q and qd with new dependent entries, so that the loops are closed.

        The independent coordinates and their rates do not change. If `anywhere` is True, the state
        may be on any branch, not only on the one near q.
        """
        return q, qd

    def near(self, q: np.ndarray) -> np.ndarray:
        """Return a configuration near q that closes the loops; all coordinates may change."""
        return q

    def towards(self, q: np.ndarray, target: np.ndarray, k: int) -> np.ndarray:
        """Move coordinate k of q to its target; the loops stay closed on the same branch."""
        return target

    # Functions ----------------------------------------------------------------------------------

    integrate = Called()
    difference = Called()
    forward_kinematics = Called()
    frame_velocity = Called()
    frame_acceleration = Called()
    jacobian = Called()
    jacobian_rate = Called()
    mass_matrix = Called()
    bias_forces = Called()
    gravity_forces = Called()
    inverse_dynamics = Called()
    constrained_dynamics = Called()
    loop_matrix = Called()

    def call(
        self,
        name: str,
        *arrays: Any,
        f_ext: Mapping[str, Any] | None = None,
        out: Any = None,
        threads: int | None = None,
        **options: Any,
    ) -> Any:
        """Evaluate a public function with the arguments and options of the robot method."""
        key = (name, tuple(chain.from_iterable(options.items())) if options else ())
        found = self.found(key) if f_ext is None else self.asked(key, f_ext)
        if found is None:
            found = self.keep(key, self.asked(key))
        if out is None and threads is None:
            return found(*arrays)
        return found(*arrays, out=out, threads=threads)

    def found(self, key: Key) -> Caller | None:
        """Return the cached function for a key, or None if there is none."""
        try:
            return self.ready.get(typed(key))
        except UNHASHABLE:  # an option is not hashable, such as a list
            return None

    def asked(self, key: Key, f_ext: Mapping[str, Any] | None = None) -> Caller:
        """Return the public function for a cache key (name, options) and external forces."""
        name, words = key
        return self.caller(name, f_ext, **dict(zip(words[::2], words[1::2], strict=True)))

    def keep(self, key: Key, here: Caller) -> Caller:
        """Cache a function and return it, or its fast entry point if it has one."""
        found: Caller = getattr(here, "fast", here)
        with suppress(*UNHASHABLE):  # an option is not hashable
            self.ready[typed(key)] = found
        return found

    def derivatives(self, name: str, *arrays: Any, wrt: Any = None, **options: Any) -> Any:
        """Return exact derivatives of a function, as `robot.derivatives` does."""
        options = order_option(name, arrays) | options
        key = ("derivatives", (name, wrt, *chain.from_iterable(options.items())))
        found = self.found(key) or self.keep(key, self.derived("jacobian", name, wrt, **options)[0])
        return found(*arrays)

    def derived(
        self,
        kind: Literal["jacobian", "pullback"],
        function: str,
        wrt: str | Sequence[str] | None,
        degree: int = 1,
        f_ext: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> tuple[Compiled | AtTime, Sequence[Any]]:
        """Return the compiled derivatives of a function, and the external forces as arrays."""
        self.refuse_open("derivatives", function)
        order = options.get("order", 1)
        names = derivative_names(function, wrt, order=order, model=self.model)
        keys, forces = wrench_arguments(self.model, f_ext)
        derivative = Derivative(kind, names, degree)
        compiled = self.function(function, wrenches=keys, derivative=derivative, **options)
        return compiled.at(self.t), forces

    def function(self, name: str, **options: Any) -> Compiled:
        """Return a compiled function; raise an error if it does not support this robot."""
        if a_name("a function", name) in CLOSED_LOOPS:
            self.require_loops(name)
        return self.functions(name, **options)

    def chosen(self, name: str) -> Model:
        """Return the model for tracing a function, with a loop closure if one is needed."""
        if a_name("a function", name) in CLOSED_LOOPS:
            self.require_loops(name)
        return self.model

    def caller(
        self,
        name: str,
        f_ext: Mapping[str, Any] | None = None,
        *,
        coordinates: Any = "tree",
        actuated: Any = None,
        weights: Any = None,
        **options: Any,
    ) -> Caller:
        """Return a public function with its options and external forces set.

        An error is raised if the function would not keep the loops closed.
        """
        check_coordinates(name, coordinates)
        chosen = None if actuated is None else {*some_names("actuated", actuated, name)}
        if weights is not None or (chosen is not None and chosen != {*self.loops.freedoms}):
            self.require_loops(f"{name}(actuated=)")
        if f_ext is None:
            return self.function(name, **options).at(self.t)
        keys, forces = wrench_arguments(self.model, f_ext)
        key = (name, (keys, *chain.from_iterable(options.items())))
        here = self.found(key)
        if here is None:
            here = self.keep(key, self.function(name, wrenches=keys, **options).at(self.t))
        return Loaded(here, keys, forces)

    def accelerations(
        self, f_ext: Mapping[str, Any] | None, frames: Sequence[str], **options: Any
    ) -> Accelerations:
        """Return a function that computes qdd from t, q, qd, tau and wrenches on the frames.

        `options` may include dissipation and, for closed loops, stabilization and tolerance.
        """
        keys, constant = wrench_arguments(self.model, f_ext)
        keys = (*keys, *map(WrenchKey, frames))
        compiled = self.function("forward_dynamics", wrenches=keys, **options)
        return lambda t, *arrays: compiled.at(t)(*arrays[:3], *constant, *arrays[3:])

    def multipliers(self, q: Any, qd: Any, tau: Any) -> np.ndarray:
        """Return the loop forces (..., rows) for a state and joint torques."""
        return np.zeros(0)

    def loads(self, name: str, multipliers: Any) -> tuple[Any, ...]:
        """Return the loop forces (multipliers) as a tuple of arguments for a function.

        The tuple is empty if the function has no such argument.
        """
        if multipliers is not None and some_numbers("multipliers", multipliers, name).size:
            self.require_loops(f"{name}(multipliers=)")
        return (np.zeros(0),) if "multipliers" in spaces(name).inputs else ()

    # Checks -------------------------------------------------------------------------------------

    def require_loops(self, what: str, remedy: str = "use forward_dynamics") -> None:
        """Raise an error if there are no loops or couplings."""
        problem = f"robot {self.model.name!r} has no loops or couplings"
        raise ModelError("E-LOOP-041", problem, remedy, part=what)

    def refuse_loops(self, what: str, remedy: str) -> None:
        """Raise an error if there are loops or couplings."""

    def refuse_time(self, what: str, remedy: str) -> None:
        """Raise an error if the mechanism depends on time."""

    def opens(self, function: str) -> bool:
        """Return True if the compiled program of a function would not keep the loops closed."""
        return False

    def refuse_open(self, what: str, function: str) -> None:
        """Raise an error for a function whose compiled program would not keep the loops closed."""


KINDS: dict[tuple[bool, bool], type[Mechanism]] = {}
"""Mechanism class for each combination of two flags: has loops, depends on time.

The package's `__init__.py` fills this mapping, because other modules define some of the classes.
"""


def of(model: Model) -> Mechanism:
    """Return the mechanism for a model, an instance of the matching class in `KINDS`."""
    return KINDS[model.loop_rows > 0, model.timed](model)


class Loose(Loops):
    """Coordinates of a robot without loops: all are independent, and closure checks always pass."""

    def at(self, time: np.ndarray) -> Self:
        moved = copy(self)
        moved.time = time
        return moved

    @property
    def independent(self) -> np.ndarray:
        return np.arange(self.model.nv)

    def check_closed(self, function: str, q: np.ndarray, tolerance: float) -> None:
        check_tolerance(function, tolerance)

    def check_rates(self, function: str, q: Any, *rates: Any, tolerance: float) -> None:
        pass

    def directions(self, q: Any) -> np.ndarray:
        return np.eye(self.model.nv)

    def accelerated(self, q: Any, qd: np.ndarray, ydd: np.ndarray, tolerance: float) -> np.ndarray:
        return ydd


class Timed(Mechanism):
    """Time-dependent mechanism without loops, and base class of time-dependent closed mechanisms.

    Independent coordinates and active equations are chosen at t = 0.
    """

    TIMELESS = ("integrate", "difference")
    """Names of functions whose results are the same at all times."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.traits = (*self.traits, "it depends on time")
        self._compiled: dict[tuple[Any, ...], Compiled] = Recent()

    def at(self, t: Any) -> Self:
        time, moved = checked_time(t), object.__new__(type(self))
        shared = {"loops": self.loops, "charts": self.charts}
        moved.__dict__ |= self.__dict__ | shared | {"t": time, "ready": Recent(), "called": set()}
        return moved

    @property
    def closing(self) -> Loops:
        if self.t is None:
            problem = f"robot {self.model.name!r} depends on time"
            raise ModelError("E-ROBOT-013", problem, "evaluate it at a time: robot.at_time(t)")
        return self.loops.at(self.t)

    def found(self, key: Key) -> Caller | None:
        """Return the function cached for a key, or None if the key is not cached.

        A function that was compiled for another time is reused, and set to the robot's time.
        """
        found = super().found(key)
        if found is None and self.t is not None:
            with suppress(*UNHASHABLE):
                compiled = self._compiled.get(typed(key))
                return None if compiled is None else compiled.at(self.t)
        return found

    def keep(self, key: Key, here: Caller) -> Caller:
        if isinstance(here, AtTime):
            with suppress(*UNHASHABLE):
                self._compiled[typed(key)] = here.compiled
        return super().keep(key, here)

    def caller(self, name: str, f_ext: Mapping[str, Any] | None = None, **options: Any) -> Caller:
        if self.t is None and name not in self.TIMELESS:
            problem = f"robot {self.model.name!r} depends on time"
            remedy = f"evaluate it at a time: robot.at_time(t).{name}(...)"
            raise ModelError("E-LOOP-039", problem, remedy, part=name)
        return super().caller(name, f_ext, **options)

    def refuse_time(self, what: str, remedy: str) -> None:
        problem = f"robot {self.model.name!r} depends on time"
        raise ModelError("E-LOOP-040", problem, remedy, part=what)


def accelerated(M: np.ndarray, forces: np.ndarray, function: str) -> np.ndarray:
    """Return M^-1 forces, where M (..., n, n) contains mass matrices.

    Error messages refer to the calculation by `function`.
    """
    try:
        return np.asarray(np.linalg.solve(M, forces))
    except np.linalg.LinAlgError:
        raise singular(function) from None


def check_coordinates(function: str, coordinates: Any) -> None:
    """Check the option `coordinates`, which may be None for the inverse mass matrix."""
    unsaid = coordinates is None and function == "mass_matrix_inverse"
    if coordinates not in get_args(Coordinates) and not unsaid:
        problem = f'`coordinates` must be "tree" or "independent", not {coordinates!r}'
        raise InputError("E-LOOP-037", problem, part=function)
