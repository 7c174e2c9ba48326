"""Numeric columns from files and from tables in memory, block by block.

Parquet, Arrow and csv files are read by pyarrow. Without pyarrow, csv files are read by the
standard library. A .npz file contains an array for each column or quantity, as in `motion.npz`.
ROS 2 bags (.mcap, .db3) are read by rosbags: messages of type sensor_msgs/msg/JointState become the
columns J.q, J.qd and J.tau of their joints.
"""

import csv
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from chasles.errors import InputError, ModelError, said
from chasles.formats import archive

SUFFIXES = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".npz": "npz",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".mcap": "bag",
    ".db3": "bag",
}
"""File formats by suffix: "bag", or the name of a pyarrow format."""

ROWS = 16_384
"""Number of rows of a log file that are read at once."""

GROUP = 2**26
"""Maximum size (bytes) of a Parquet row group that is read as a whole."""

BYTES = 2**20
"""Number of bytes of a .csv file that are parsed at once."""

RELEASED = 64
"""Number of blocks after which unused memory of pyarrow is released.

Blocks are counted across files, because releasing memory takes as long as reading a small file.
"""

_read = itertools.count(1)

JOINTS = "sensor_msgs/msg/JointState"
"""ROS message type that is read from bags."""

FIELDS = {"position": "q", "velocity": "qd", "effort": "tau"}
"""Array fields of a JointState message, with the quantity that each holds."""

Columns = Mapping[str, np.ndarray]
"""Columns of doubles (n,) by name; missing values are NaN."""


def blocks(
    file: str, groups: Mapping[str, Sequence[str]], threaded: bool = True
) -> Iterator[Columns]:
    """Yield blocks of a file with at most `ROWS` rows each, in bounded memory.

    `groups` contains the names of columns by quantity; columns missing from the file are omitted.
    If `threaded` is True, allow pyarrow to use several threads.
    """
    wanted = list(itertools.chain.from_iterable(groups.values()))
    kind = SUFFIXES[Path(file).suffix.lower()]
    if kind == "npz":
        yield from _archived(file, groups)
        return
    if kind == "bag":
        yield from _bag(file, set(wanted))
        return
    try:
        import pyarrow
    except ImportError:
        if kind == "csv":
            yield from _csv(file, set(wanted))
            return
        remedy = "run pip install 'chasles[data]', or use .csv files or arrays"
        raise ModelError("E-LOG-011", f"{kind} logs require pyarrow", remedy, file=file) from None
    try:
        read = {"parquet": _parquet, "csv": _streamed}.get(kind, _scanned)
        for batch in read(file, set(wanted), threaded):
            found = {name: _numbers(file, batch, name) for name in batch.schema.names}
            del batch  # free the memory before the next block is read
            yield found
            del found
            if next(_read) % RELEASED == 0:
                pyarrow.default_memory_pool().release_unused()
    except (pyarrow.ArrowException, OSError) as error:
        problem = f"the file is truncated, or is not a {kind} table ({said(error)})"
        raise ModelError("E-LOG-012", problem, "write the file again, or pass skip_bad=True",
                         file=file) from None  # fmt: skip


def names(file: str) -> set[str] | None:
    """Return the names of the columns or quantities in a file, without reading its rows.

    The result is None if the names are not known, for example because the file is damaged.
    """
    kind = SUFFIXES[Path(file).suffix.lower()]
    try:
        if kind == "npz":
            return {*archive.members(file)}
        if kind == "csv":
            with open(file, encoding="utf-8", newline="") as stream:
                return {name.strip() for name in next(csv.reader(stream), [])}
        if kind == "parquet":
            from pyarrow.parquet import read_schema

            return {*read_schema(file).names}
        if kind == "ipc":
            from pyarrow import dataset

            return {*dataset.dataset(file, format=kind).schema.names}
    except (ImportError, OSError, ValueError, csv.Error):  # reading the rows reports the error
        return None
    return None


def _parquet(file: str, wanted: set[str], threaded: bool) -> Iterator[Any]:
    """Yield batches of a Parquet file.

    On one thread, row groups of up to `GROUP` bytes are read column by column. Other row groups are
    read in batches of `ROWS` rows; the current page and dictionary of each column are also in
    memory.
    """
    from pyarrow.parquet import ParquetFile

    with ParquetFile(file, memory_map=True, pre_buffer=False) as opened:
        read = [name for name in opened.schema_arrow.names if name in wanted]
        for k in range(opened.num_row_groups):
            size = 8 * len(read) * opened.metadata.row_group(k).num_rows
            if threaded or not 0 < size <= GROUP:
                options = {"columns": read, "use_threads": threaded}
                yield from opened.iter_batches(ROWS, [k], **options)
            else:
                yield from _row_group(opened, k, read)


def _row_group(opened: Any, k: int, read: Sequence[str]) -> list[Any]:
    """Return the batches of a row group."""
    from pyarrow import table

    parts = [opened.read_row_group(k, [name], use_threads=False) for name in read]
    found = table({name: part[name] for name, part in zip(read, parts, strict=True)})
    return list(found.to_batches(ROWS))


def _streamed(file: str, wanted: set[str], threaded: bool) -> Iterator[Any]:
    """Yield batches of a .csv file, which is parsed in blocks of `BYTES` bytes."""
    import pyarrow
    from pyarrow import csv as table

    read = table.ReadOptions(block_size=BYTES, use_threads=threaded)
    with table.open_csv(file, read_options=read) as opened:
        found = [name for name in opened.schema.names if name in wanted]
    if not found:
        yield pyarrow.record_batch({})
        return
    numbers = dict.fromkeys(found, pyarrow.float64())
    convert = table.ConvertOptions(include_columns=found, column_types=numbers)
    with table.open_csv(file, read_options=read, convert_options=convert) as opened:
        yield from opened


def _scanned(file: str, wanted: set[str], threaded: bool) -> Iterator[Any]:
    from pyarrow import dataset

    opened = dataset.dataset(file, format=SUFFIXES[Path(file).suffix.lower()])
    read = [name for name in opened.schema.names if name in wanted]
    options = {"batch_size": ROWS, "batch_readahead": 2, "fragment_readahead": 1}
    yield from opened.scanner(columns=read, use_threads=threaded, **options).to_batches()


def _numbers(file: str, table: Any, name: str) -> np.ndarray:
    """Return a pyarrow column as doubles; missing values are NaN."""
    column = table.column(name)
    try:
        return np.asarray(column.to_numpy(zero_copy_only=False), float)
    except TypeError:
        return np.asarray(column.to_numpy(), float)
    except ValueError:
        problem = f"column {name!r} does not contain numbers"
        remedy = "write only numbers in this column"
        raise ModelError("E-LOG-014", problem, remedy, file=file, line=1) from None


def _csv(file: str, wanted: set[str]) -> Iterator[Columns]:
    """Yield blocks of a .csv file with a header, without pyarrow."""
    with open(file, encoding="utf-8", newline="") as stream:
        lines = csv.reader(stream)
        names = [name.strip() for name in next(lines, [])]
        places = {name: k for k, name in enumerate(names) if name in wanted}
        first = 1
        while rows := list(itertools.islice(lines, ROWS)):
            for k, row in enumerate(rows):
                if len(row) != len(names):
                    problem = f"the row has {len(row)} values, but there are {len(names)} columns"
                    remedy = "correct the row, or pass skip_bad=True"
                    raise ModelError("E-LOG-020", problem, remedy, file=file, line=first + k)
            yield {name: _parsed(file, first, name, [r[k] for r in rows])
                   for name, k in places.items()}  # fmt: skip
            first += len(rows)


def _archived(file: str, groups: Mapping[str, Sequence[str]]) -> Iterator[Columns]:
    """Yield the columns of a .npz file: arrays (n,) by column name, or (n, k) by quantity."""
    try:
        columns = archive.table(file, groups)
    except ModelError as error:
        raise error.at(remedy=f"{error.remedy}, or pass skip_bad=True") from None
    count = len(next(iter(columns.values()), ()))
    for first in range(0, count, ROWS):
        yield {name: x[first : first + ROWS] for name, x in columns.items()}
    if not count:
        yield columns


def _parsed(file: str, first: int, name: str, words: Sequence[str]) -> np.ndarray:
    found = np.empty(len(words))
    for k, word in enumerate(words):
        try:
            found[k] = float(word) if word.strip() else np.nan
        except ValueError:
            problem = f"column {name!r} contains {word!r:.40}, which is not a number"
            raise ModelError("E-LOG-024", problem, "replace this value with a number", file=file,
                             line=first + k) from None  # fmt: skip
    return found


# Bags ------------------------------------------------------------------------------------------


def _bag(file: str, wanted: set[str]) -> Iterator[Columns]:
    """Yield blocks of joint states from a ROS bag, with times (s) since its first message."""
    try:
        from rosbags.highlevel import AnyReader, AnyReaderError
        from rosbags.rosbag2 import ReaderError
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        remedy = "run pip install 'chasles[bags]', or export the bag to .csv"
        raise ModelError("E-LOG-021", "reading bags requires rosbags", remedy, file=file) from None
    rows: list[list[float]] = []
    names: list[str] = []
    try:
        with AnyReader([Path(file)], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as bag:
            topic, start = _topic(file, bag), None
            for connection, stamp, data in bag.messages([topic]):
                message = bag.deserialize(data, connection.msgtype)
                time = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec or stamp
                start = time if start is None else start
                state = {"t": 1e-9 * (time - start), **_state(message)}
                names = names or [name for name in state if name in wanted]
                if not all(name in state for name in names):
                    continue  # skip messages about other joints
                rows.append([state[name] for name in names])
                if len(rows) == ROWS:
                    yield dict(zip(names, np.array(rows).T, strict=True))
                    rows = []
    except (AnyReaderError, ReaderError, OSError, AssertionError) as error:
        problem = f"the bag is truncated or damaged ({said(error)})"
        raise ModelError("E-LOG-023", problem, "record the bag again, or pass skip_bad=True",
                         file=file) from None  # fmt: skip
    if rows:
        yield dict(zip(names, np.array(rows).T, strict=True))


def _topic(file: str, bag: Any) -> Any:
    """Return the connection of topic /joint_states, or of the only topic with joint states."""
    found = {each.topic: each for each in bag.connections if each.msgtype == JOINTS}
    if "/joint_states" in found or len(found) == 1:
        return found.get("/joint_states") or next(iter(found.values()))
    problem = f"the bag has {len(found)} topics of type {JOINTS}, none of them /joint_states"
    remedy = "record /joint_states, or keep only one topic of this type"
    raise ModelError("E-LOG-022", problem, remedy, file=file)


def _state(message: Any) -> dict[str, float]:
    """Return the joint values in a message by column name, such as `elbow.q`."""
    found = {}
    for field, quantity in FIELDS.items():
        for joint, value in zip(message.name, getattr(message, field), strict=False):
            found[f"{joint}.{quantity}"] = float(value)
    return found


# Tables in memory ------------------------------------------------------------------------------


def table(data: Any) -> Columns:
    """Return the columns of a data frame, an xarray data set, a pyarrow table or a mapping."""
    if hasattr(data, "to_dataframe"):  # xarray
        data = data.to_dataframe().reset_index()
    if hasattr(data, "to_pandas") and hasattr(data, "column_names"):  # pyarrow
        return {name: _numbers("table", data, name) for name in _numeric(data)}
    if hasattr(data, "columns") and hasattr(data, "dtypes"):  # pandas
        numeric = data.select_dtypes("number")
        return {str(name): numeric[name].to_numpy(float, na_value=np.nan) for name in numeric}
    if isinstance(data, Mapping):
        return {name: np.asarray(x, float) for name, x in data.items()}
    problem = f"`data` must be paths or a table, not {type(data).__name__}"
    raise InputError("E-LOG-013", problem, "pass a data frame or file paths", part="identify")


def _numeric(data: Any) -> list[str]:
    """Return the names of a pyarrow table's numeric columns."""
    from pyarrow import types

    number = (types.is_floating, types.is_integer, types.is_null)
    return [f.name for f in data.schema if any(check(f.type) for check in number)]
