"""Check arrays and counts passed by callers, and convert them to what compiled code expects."""

import array as standard
import math
import operator
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.expr import Interface, Variable

Rows = Sequence[np.ndarray]
"""Arrays of shape (count, size), with one row per state."""


class Kernel(Protocol):
    """A compiled program, which fills output rows (count, size) from input rows (count, size)."""

    interface: Interface
    dtype: np.dtype[Any]

    def __call__(self, inputs: Rows, outputs: Rows, threads: int | None = None) -> None: ...


@runtime_checkable
class DeviceKernel(Kernel, Protocol):
    """A kernel that also accepts arrays in GPU memory and leaves its results there."""

    def call(self, name: str, arguments: Sequence[Any], out: Any = None) -> Any: ...


class Link(NamedTuple):
    """A kernel in a chain (`llvm.chain`), and the arrays that it reads and writes.

    inputs, outputs: maps from variable names of the kernel to array names. A variable that is not
    listed belongs to the array of the same name.
    """

    kernel: Any
    inputs: Mapping[str, str] = {}
    outputs: Mapping[str, str] = {}

    @property
    def read(self) -> list[str]:
        """Names of the arrays that the kernel reads."""
        return [self.inputs.get(v.name, v.name) for v in self.kernel.interface.inputs]

    @property
    def written(self) -> dict[str, Variable]:
        """The arrays that the kernel writes, by name."""
        return {self.outputs.get(v.name, v.name): v for v in self.kernel.interface.outputs}


class Load(NamedTuple):
    """Description of an entry of `f_ext`.

    - key: key of the entry.
    - kind: type of the wrench object, or None if the wrench is an array.
    - places: offsets (bytes) at which the wrench object stores its value, axes and point
      (`objects.places`).
    - axes, at: required axes and point of the wrench.
    """

    key: str
    kind: type | None = None
    places: tuple[int, ...] = (0, 0, 0)
    axes: Any = None
    at: Any = None


class Target(NamedTuple):
    """A resolved call: the fast entry of a kernel, and the sources of the kernel's inputs.

    - sources: an integer 4 k + s for each input. The input is argument k of the call if s is 0,
      wrench k of `loads` if s is 1, and item k of `fixed` if s is 2.
    - fixed: inputs that are not arguments of the call, such as the time of a robot at a fixed time.
    - loads: the wrenches in the order of `f_ext`, or None if `f_ext` is not passed.
    - shown: number of results returned to the caller, by default all.
    - gap, margin: limits for a call that does not return all results. The kernel's last result then
      holds each state's squared closure error and singularity margin (`callers.Guarded`). The entry
      handles the call only if no squared error exceeds `gap` and every margin exceeds `margin`.
    """

    entry: Callable[..., Any]
    sources: Sequence[int]
    fixed: tuple[Any, ...] = ()
    loads: Sequence[Load] | None = None
    shown: int | None = None
    gap: float = 0.0
    margin: float = 0.0


LARGEST = 2**53
"""Maximum count. Up to this value, float64 represents all integers exactly."""


def checked_count(what: str, value: Any, *, least: int = 1, most: int = LARGEST) -> int:
    """Return a value as an integer; raise InputError unless it is in the range `least` to `most`.

    what: name of the value in the message.
    """
    try:
        count = operator.index(value)
    except TypeError:
        count = least - 1
    if not least <= count <= most or isinstance(value, bool):
        wanted = "a positive integer" if least == 1 else f"an integer of at least {least}"
        given = f"an integer of {count.bit_length()} bits" if count > LARGEST else repr(value)
        raise InputError("E-CALL-003", f"{what} must be {wanted}, at most {most}, not {given}")
    return count


def words(numbers: Iterable[int]) -> "standard.array[int]":
    """Return integers (counts, sizes, addresses) as an array of 64-bit words for machine code.

    All integers passed to machine code are converted with this function, which rejects integers
    that do not fit in a word; `ctypes` would reduce them modulo 2**64.
    """
    try:
        return standard.array("q", numbers)
    except (OverflowError, TypeError) as error:
        raise InputError(
            "E-CALL-098", f"a size or count must be a 64-bit integer: {error}"
        ) from None


def check_tolerance(function: str, tolerance: Any) -> None:
    """Check that a tolerance is positive and finite."""
    number = isinstance(tolerance, int | float | np.integer | np.floating)
    if not number or isinstance(tolerance, bool) or not 0.0 < tolerance < math.inf:
        problem = f"`tolerance` must be a positive finite number, not {tolerance!r}"
        raise InputError("E-CALL-004", problem, part=function)


class Given(NamedTuple):
    """Checked input arrays of a kernel, and the common shape of their leading axes (batch axes)."""

    arrays: list[np.ndarray]
    batch: tuple[int, ...]


def checked(kernel: Kernel, name: str, arguments: Sequence[Any]) -> Given:
    """Return the arguments as checked arrays with the kernel's dtype.

    name: function name that appears in messages.
    """
    inputs = kernel.interface.inputs
    arrays = [
        real_array(name, v, argument, kernel.dtype)
        for v, argument in zip(inputs, arguments, strict=True)
    ]
    return Given(arrays, batch_shape(name, kernel.interface, leads(inputs, arrays)))


def leads(variables: Sequence[Variable], arrays: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the leading (batch) shape of each array, without the axes of its variable."""
    return [a.shape[: a.ndim - len(v.shape)] for v, a in zip(variables, arrays, strict=True)]


FEW = 4096
"""Maximum number of states for which `relaid` copies arrays. For larger batches, copying would take
longer than the call itself."""


def relaid(kernel: Kernel, arrays: Rows) -> Given | None:
    """Copy real-valued arrays to contiguous rows with the kernel's dtype.

    Return None if the dtypes or shapes are not valid, if there are more than `FEW` states, or if
    the arrays are already contiguous.
    """
    inputs = kernel.interface.inputs
    leads = [a.shape[: max(a.ndim - len(v.shape), 0)] for v, a in zip(inputs, arrays, strict=True)]
    batch = max(leads, key=len)
    if not {batch, ()}.issuperset(leads):
        try:
            batch = np.broadcast_shapes(*leads)
        except ValueError:
            return None
    count, laid = math.prod(batch), []
    for variable, array, lead in zip(inputs, arrays, leads, strict=True):
        if array.dtype.kind not in "fiu" or array.shape != lead + variable.shape or count > FEW:
            return None
        if lead == batch:
            plain = np.asarray(array, kernel.dtype, order="C")
        else:
            plain = np.empty(batch + variable.shape, kernel.dtype)
            plain[...] = array
        laid.append(plain.reshape(count, *variable.shape) if len(batch) > 1 else plain)
    if all(a is b for a, b in zip(laid, arrays, strict=True)):
        return None
    return Given(laid, batch)


def call(
    kernel: Kernel, name: str, arguments: Sequence[Any], out: Any = None, threads: int | None = None
) -> Any:
    """Run a kernel on arrays whose leading dimensions broadcast together.

    The result is one array, or a tuple if the interface has several outputs.
    """
    return run(kernel, name, checked(kernel, name, arguments), out, threads)


def run(kernel: Kernel, name: str, given: Given, out: Any, threads: int | None) -> Any:
    """Run a kernel on arrays that have been checked."""
    interface, (arrays, batch) = kernel.interface, given
    if threads is not None:
        threads = checked_count(f"{name}: threads", threads)
    results = _outputs(name, interface, batch, out, kernel.dtype)
    count = math.prod(batch)
    rows_out = [_result_rows(a, count, v) for v, a in zip(interface.outputs, results, strict=True)]
    rows_in = [_rows(a, batch, count, v) for v, a in zip(interface.inputs, arrays, strict=True)]
    rows_in = [_apart(a, rows_out) for a in rows_in]
    if count and rows_out:
        kernel(rows_in, rows_out, threads)
    for result, rows in zip(results, rows_out, strict=True):
        if not np.may_share_memory(result, rows):
            result[...] = rows.reshape(result.shape)
    if isinstance(out, tuple) and len(out) > 1:
        return out
    values = [a if a.ndim or out is not None else a[()] for a in results]
    return values[0] if len(values) == 1 else tuple(values)


def batch_shape(
    name: str, interface: Interface, ahead: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """Return the broadcast leading shape of all arrays."""
    if all(lead == ahead[0] for lead in ahead):
        return ahead[0] if ahead else ()
    try:
        return np.broadcast_shapes(*ahead)
    except ValueError:
        pairs = zip(interface.inputs, ahead, strict=True)
        shapes = ", ".join(f"{v.name} {lead}" for v, lead in pairs)
        problem = f"leading shapes do not broadcast: {shapes}"
        raise InputError("E-CALL-005", problem, part=name) from None


def real_array(name: str, variable: Variable, argument: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return an argument of function `name` as an array of the variable's shape, or a batch."""
    try:
        array = np.asarray(argument)
    except (ValueError, TypeError) as error:
        problem = f"{variable.name} is not a numeric array: {error}"
        raise ArgumentError("E-CALL-006", problem, part=name) from None
    if np.any(getattr(argument, "mask", False)):
        problem = f"{variable.name} has masked entries"
        raise ArgumentError("E-CALL-007", problem, "fill the masked entries first", part=name)
    check_numbers(name, variable, array)
    return array if array.dtype == dtype else array.astype(dtype)


def check_numbers(name: str, variable: Variable, array: Any) -> None:
    """Check that an array holds real numbers and that its shape ends in the variable's shape."""
    if array.dtype.kind not in "fiu":
        problem = f"{variable.name} must be an array of real numbers, not {array.dtype}"
        raise ArgumentError("E-CALL-008", problem, part=name)
    check_shape(name, variable, array.shape)


def check_shape(name: str, variable: Variable, shape: tuple[int, ...]) -> None:
    """Check that the last axes of an array have the variable's shape."""
    ahead = len(shape) - len(variable.shape)
    if ahead < 0 or shape[ahead:] != variable.shape:
        wanted = ", ".join(map(str, variable.shape))
        problem = f"{variable.name} must have shape (..., {wanted}), not {shape}"
        raise InputError("E-CALL-009", problem, part=name)


def _rows(a: np.ndarray, batch: tuple[int, ...], count: int, variable: Variable) -> np.ndarray:
    lead = a.shape[: a.ndim - len(variable.shape)]
    size = variable.size
    if lead == batch:
        rows = a.reshape(count, size)
    elif math.prod(lead) == 1:
        rows = np.broadcast_to(a.reshape(1, size), (count, size))
    else:
        rows = np.broadcast_to(a, batch + variable.shape).reshape(count, size)
    straight = rows.shape[1] <= 1 or rows.strides[1] == rows.itemsize
    return rows if straight and rows.flags.aligned else np.ascontiguousarray(rows)


def _outputs(
    name: str, interface: Interface, batch: tuple[int, ...], out: Any, dtype: np.dtype[Any]
) -> list[np.ndarray]:
    if out is None:
        return [np.empty(batch + v.shape, dtype) for v in interface.outputs]
    outs = list(out) if isinstance(out, tuple) else [out]
    if len(outs) != len(interface.outputs):
        problem = f"`out` must be a tuple of {len(interface.outputs)} arrays"
        raise InputError("E-CALL-010", problem, part=name)
    for variable, array in zip(interface.outputs, outs, strict=True):
        check_out(name, array, batch + variable.shape, dtype)
    for k, array in enumerate(outs):
        if any(np.shares_memory(array, other) for other in outs[:k]):
            problem = "the arrays in `out` overlap"
            raise InputError(
                "E-CALL-015", problem, "use a separate array for each result", part=name
            )
    return outs


def check_out(name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise an error if the `out` array cannot hold a result of the given shape and dtype."""
    if not isinstance(array, np.ndarray):
        problem = f"`out` must be a NumPy array, not {type(array).__name__}"
        raise ArgumentError("E-CALL-011", problem, part=name)
    if array.dtype != dtype:
        problem = f"`out` must have dtype {dtype}, not {array.dtype}"
        raise ArgumentError("E-CALL-012", problem, part=name)
    if array.shape != shape:
        raise InputError(
            "E-CALL-013", f"`out` must have shape {shape}, not {array.shape}", part=name
        )
    if not array.flags.writeable:
        raise InputError("E-CALL-014", "`out` is read-only", "pass a writeable array", part=name)


def _result_rows(a: np.ndarray, count: int, variable: Variable) -> np.ndarray:
    """Return a view of an output array with one row per state, or a new array if necessary."""
    if a.flags.c_contiguous and a.flags.aligned:
        return a.reshape(count, variable.size)
    shape = (count, variable.size)
    if a.ndim == 1 + len(variable.shape) and count and a[0].flags.c_contiguous and a.flags.aligned:
        stride = a.strides[0]
        if abs(stride) >= variable.size * a.itemsize:
            return np.lib.stride_tricks.as_strided(a, shape, (stride, a.itemsize), writeable=True)
    return np.empty(shape, a.dtype)


def _apart(rows: np.ndarray, outputs: Rows) -> np.ndarray:
    """Return the input rows themselves if the rows do not overlap an output, else return a copy.

    In a batch with a single output, an input may be the same array as the output: the kernel reads
    each block of rows before it overwrites the block.
    """
    for out in outputs:
        if np.may_share_memory(rows, out):
            same = rows.shape == out.shape and rows.strides == out.strides and len(rows) > 1
            if not same or rows.ctypes.data != out.ctypes.data or len(outputs) > 1:
                return rows.copy()
    return rows


class LoopSizes:
    """Array sizes that the machine code of a loop (`llvm.loop`) assumes."""

    def __init__(self, kernel: Kernel) -> None:
        self._dtype = kernel.dtype
        self.inputs = [v.size for v in kernel.interface.inputs]
        outputs = [v.size for v in kernel.interface.outputs]
        self._states = len(outputs)
        assert outputs == self.inputs[: self._states], "outputs and first inputs differ"

    def check(self, states: Rows, controls: Rows, records: Rows, steps: int, every: int) -> None:
        """Assert that the arrays passed to a `Loop` have the expected shapes.

        steps: number of steps.
        every: number of steps between records.
        """
        count, n, dtype, inputs = len(states[0]), self._states, self._dtype, self.inputs
        assert (len(states), len(controls)) == (n, len(inputs) - n), "inputs"
        for a, size in zip(states, inputs, strict=False):
            assert a.shape == (count, size), "states"
        for a, size in zip(controls, inputs[n:], strict=True):
            rows, along, numbers = a.shape
            assert numbers == size and rows in (1, count) and along in (1, steps)  # noqa: PT018
        kept = -(-steps // every)
        for a, size in zip(records, inputs, strict=False):
            assert a.shape == (count, kept, size), "records"
        for a in (*states, *controls, *records):
            assert a.dtype is dtype or a.dtype == dtype, "dtypes"


# Threads ---------------------------------------------------------------------------------------


def cores() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


COMPILING = threading.RLock()
"""Lock held while code is compiled. `os.fork` waits until compilation ends, because the child
process could not release a lock that is held by another thread."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=COMPILING.acquire,
        after_in_parent=COMPILING.release,
        after_in_child=COMPILING.release,
    )
