"""Location of the arrays and computations of a rollout: host (CPU) or GPU."""

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from chasles.backends.arrays import call, check_shape
from chasles.errors import ArgumentError, InputError, NotFiniteError
from chasles.expr import Variable
from chasles.functions.doors import common, module, numbers


def place_of(function: str, variables: Sequence[Variable], arguments: Sequence[Any]) -> "Place":
    """Return the common location (host or GPU) of a rollout's arguments."""
    library = common(function, variables, arguments)
    if library is None:
        return Place(function, variables, arguments)
    if library.package != "cupy":
        problem = f"this function accepts only NumPy or CuPy arrays, not {library.name} arrays"
        remedy = "convert them, for example with cupy.from_dlpack; derivatives are not propagated"
        raise ArgumentError("E-MOTION-013", problem, remedy, part=function)
    return _GPU(function, variables, arguments)


class Place:
    """Host memory: NumPy arrays and array_likes, in float64. All values must be finite.

    Attributes
    ----------
    function : str
        Function name in error messages.
    backend, dtype : str
        Backend and floating-point type of the compiled step.
    device : context manager
        Context in which arrays are created.
    given : dict from str to array or None
        The arguments as checked arrays; None for an omitted argument.
    """

    backend, dtype = "llvm", "float64"
    device: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()

    def __init__(
        self, function: str, variables: Sequence[Variable], arguments: Sequence[Any]
    ) -> None:
        self.function = function
        self.given: dict[str, Any] = dict.fromkeys(v.name for v in variables)
        for variable, value in zip(variables, arguments, strict=True):
            if value is None:
                continue
            name = f"{function}: {variable.name}"
            array = np.asarray(numbers(name, value, variable.size), dtype=float)
            if not np.isfinite(array).all():
                problem = f"{variable.name} must be finite"
                raise InputError("E-MOTION-015", problem, part=function)
            self.given[variable.name] = array

    def flat(self, array: Any, lead: tuple[int, ...], tail: tuple[int, ...]) -> Any:
        """Broadcast an array to a leading shape, and flatten the leading axes."""
        shape = lead + tail
        given = array if array.shape == shape else np.broadcast_to(array, shape)
        whole = np.array(given, order="C")  # a copy: states are advanced in place
        return whole.reshape(math.prod(lead), *tail)

    def sent(self, array: np.ndarray) -> Any:
        """Return a NumPy array transferred to this location."""
        return array

    def records(self, states: Sequence[Any], kept: int) -> list[Any]:
        """Return arrays (n, kept, size) for `kept` records of n states; record 0 is `states`."""
        made = [np.empty((len(a), kept, a.shape[1])) for a in states]
        for record, state in zip(made, states, strict=True):
            record[:, 0] = state
        return made

    def latest(self, state: Any, kept: int) -> tuple[list[Any], Any]:
        """Return output arrays for a state, and the array that will contain its final value.

        Only the final value of the state is kept. On the host, the list of output arrays is empty,
        and the compiled loop over the steps updates `state` in place. On a GPU, every record in the
        output array overwrites the one before.
        """
        return [], state

    def joined(self, parts: Sequence[Any]) -> Any:
        """Return arrays concatenated along the last axis."""
        return np.concatenate(parts, axis=-1)

    def call(self, kernel: Any, arguments: Sequence[Any], threads: int | None) -> Any:
        """Call a kernel and return its results."""
        return call(kernel, self.function, tuple(arguments), None, threads)

    def check(self, records: Sequence[Any], remedy: str) -> None:
        """Raise an error with the given remedy if recorded velocities are not finite."""
        if not np.isfinite(records[1][:, -1]).all():  # non-finite velocities remain non-finite
            bad = ~np.isfinite(records[1]).all(axis=-1)
            row, kept = (int(k) for k in np.argwhere(bad)[0])
            problem = f"velocities of state {row} are not finite at record {kept}"
            raise NotFiniteError("E-MOTION-014", problem, remedy, part=self.function)


class _GPU(Place):
    """GPU memory: CuPy arrays on one device, in float32 if all arrays are float32.

    Values are not checked, to avoid synchronization. Records are row-major if all states are
    row-major; otherwise, the batch index varies fastest.
    """

    backend = "cuda"

    def __init__(
        self, function: str, variables: Sequence[Variable], arguments: Sequence[Any]
    ) -> None:
        import cupy

        self.function = function
        given = [(v, a) for v, a in zip(variables, arguments, strict=True) if a is not None]
        cupys = module("cupy")
        self.dtype = "float32" if cupys.single(arguments) else "float64"
        arrays = cupys.converted(function, *zip(*given, strict=True), self.dtype)
        self.given = dict.fromkeys(v.name for v in variables)
        for (v, _), array in zip(given, arrays, strict=True):
            check_shape(function, v, array.shape)
            self.given[v.name] = array
        self.device, self.cupy = arrays[0].device, cupy

    def flat(self, array: Any, lead: tuple[int, ...], tail: tuple[int, ...]) -> Any:
        return self.cupy.broadcast_to(array, lead + tail).reshape(math.prod(lead), *tail)

    def sent(self, array: np.ndarray) -> Any:
        return self.cupy.asarray(array.astype(self.dtype))

    def records(self, states: Sequence[Any], kept: int) -> list[Any]:
        rows = all(a.shape[1] <= 1 or a.strides[1] == a.itemsize for a in states)
        made = []
        for state in states:
            count, size = state.shape
            if rows:
                record = self.cupy.empty((count, kept, size), self.dtype)
            else:
                record = self.cupy.empty((kept, size, count), self.dtype).transpose(2, 0, 1)
            record[:, 0] = state
            made.append(record)
        return made

    def latest(self, state: Any, kept: int) -> tuple[list[Any], Any]:
        count, size = state.shape
        last = state.copy()
        return [self.cupy.broadcast_to(last[:, None], (count, kept, size))], last

    def joined(self, parts: Sequence[Any]) -> Any:
        return self.cupy.concatenate(parts, axis=-1)

    def call(self, kernel: Any, arguments: Sequence[Any], threads: int | None) -> Any:
        return kernel.call(self.function, arguments)

    def check(self, records: Sequence[Any], remedy: str) -> None:
        """Accept all results: on a GPU, values that are not finite do not raise an error."""


def constant_rows(place: Place, lead: tuple[int, ...], name: str, size: int) -> Any:
    """Return parameters that do not change in time, as an array (n or 1, 1, size) for n states."""
    own = place.given[name]
    return place.flat(own[..., None, :], (1,) if own.ndim == 1 else lead, (1, size))


def given_rows(place: Place, lead: tuple[int, ...], steps: int, nv: int, name: str = "tau") -> Any:
    """Return torques or controls as an array (n or 1, steps or 1, size).

    An axis has length 1 if the values are the same for all n states, or for all steps.
    """
    array = place.given[name]
    if array is None:
        return place.sent(np.zeros((1, 1, nv)))
    if array.ndim == 1:
        return place.flat(array, (1,), (1, nv))
    if array.shape[-2] not in (1, steps):
        problem = f"{name} must have shape ({nv},) or (..., {steps}, {nv}), not {array.shape}"
        raise InputError("E-MOTION-023", problem, part=place.function)
    if array.ndim == 2:
        return place.flat(array, (1,), array.shape)
    try:
        return place.flat(array, lead, array.shape[-2:])
    except ValueError:
        shape = array.shape[:-2]
        problem = f"leading shape {shape} of {name} does not broadcast to shape {lead} of q and qd"
        raise InputError("E-MOTION-024", problem, part=place.function) from None


@contextlib.contextmanager
def within_memory(course: Any) -> Iterator[None]:
    """Replace a MemoryError by an error that states how much memory the records need.

    `course` is the `Course` of a rollout.
    """
    try:
        yield
    except MemoryError:
        records = course.steps // course.every + 1
        states = max(math.prod(np.shape(each)[:-1]) for each in (course.q, course.qd))
        numbers = states * (np.shape(course.q)[-1] + np.shape(course.qd)[-1])
        each, all_times = 8e-9 * records * numbers, 8e-9 * course.steps
        problem = (
            f"not enough memory: {records} records need {each:.3g} GB, and the times of "
            f"{course.steps} steps need {all_times:.3g} GB"
        )
        remedy = "increase `every`, or run fewer steps in each call"
        raise InputError("E-MOTION-219", problem, remedy, part=course.function) from None
