"""Lazy evaluation of Dask data frames, with one call to a compiled function for each partition.

The columns of an argument are its entries, in order. The columns of a result have names such as
`inverse_dynamics.0`, or `mass_matrix.0.1` for a matrix. The index and divisions of a result are
those of the first argument. As for Dask arrays, tasks contain the specification of the
function instead of its code.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import dask.dataframe as lazy
import numpy as np
import pandas
from dask.dataframe.dispatch import make_meta

from chasles.backends.arrays import check_shape, checked_count
from chasles.errors import ArgumentError
from chasles.expr import Variable
from chasles.functions.libraries.dask_array import check_out, result_type
from chasles.tasks import Portable


def call(function: Any, arguments: Sequence[Any], out: Any, threads: int | None) -> Any:
    """Return the lazy results (data frames) of a function.

    Arguments that are not data frames apply to all states.
    """
    title, interface = function.recipe.function, function.interface
    check_out(title, out)
    threads = 1 if threads is None else checked_count(f"{title}: threads", threads)
    fixed: dict[int, np.ndarray] = {}
    frames, types = [], []
    for k, (variable, given) in enumerate(zip(interface.inputs, arguments, strict=True)):
        if isinstance(given, lazy.DataFrame):
            check_shape(title, variable, (1, len(given.columns)))
            frames.append(given)
            types += list(given.dtypes)
        else:
            fixed[k] = np.asarray(given)
            check_shape(title, variable, fixed[k].shape)
            types.append(fixed[k].dtype)
    if len({frame.divisions for frame in frames}) > 1:
        problem = "the data frames have different partitions"
        raise ArgumentError("E-CALL-421", problem, "use columns of one data frame", part=title)
    several = len(interface.outputs) > 1
    names = [_names(title, variable, several) for variable in interface.outputs]
    columns = list(itertools.chain.from_iterable(names))
    dtype = result_type(function, types)
    rows = Portable(_Rows(function, fixed, columns, dtype, threads))
    meta = pandas.DataFrame(index=make_meta(frames[0]).index, columns=columns, dtype=dtype)
    found = lazy.map_partitions(rows, *frames, meta=meta, align_dataframes=False)
    return tuple(found[some] for some in names) if several else found


def _names(title: str, variable: Variable, several: bool) -> list[str]:
    """Return the column names of a result."""
    start = f"{title}.{variable.name}" if several else title
    places = itertools.product(*map(range, variable.shape))
    return [".".join([start, *map(str, place)]) for place in places]


class _Rows:
    """Function that calls a compiled function with the rows of one partition of a data frame."""

    def __init__(
        self,
        function: Any,
        fixed: dict[int, np.ndarray],
        columns: list[str],
        dtype: np.dtype,
        threads: int,
    ) -> None:
        self.function, self.fixed, self.threads = function, fixed, threads
        self.columns, self.dtype = columns, dtype

    def __call__(self, *frames: Any) -> Any:
        rest = iter(frames)
        count = len(self.fixed) + len(frames)
        arrays = [self.fixed[k] if k in self.fixed else _array(next(rest)) for k in range(count)]
        found = self.function(*arrays, threads=self.threads)
        parts = found if isinstance(found, tuple) else (found,)
        rows = [np.reshape(part, (len(frames[0]), -1)) for part in parts]
        values = np.concatenate(rows, axis=1).astype(self.dtype, copy=False)
        return pandas.DataFrame(values, frames[0].index, self.columns)


def _array(frame: Any) -> np.ndarray:
    """Return a data frame as an array: float32 if all columns are float32, else float64."""
    dtype = np.float32 if all(t == np.float32 for t in frame.dtypes) else np.float64
    return np.ascontiguousarray(frame.to_numpy(dtype))
