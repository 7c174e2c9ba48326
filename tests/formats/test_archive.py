"""Arrays of .npz files are read completely, or refused before memory is allocated."""

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_families import npy, zipped
from support import raises

import chasles
from chasles.formats import motion
from chasles.formats.archive import arrays
from chasles.view import panel


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_come_back(save, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    given = {"t": np.linspace(0, 1, 999), "q": np.ones((3, 4), order="F"), "s": np.array("text")}
    save(tmp_path / "a.npz", **given)
    found = arrays(tmp_path / "a.npz")
    assert found.keys() == given.keys()
    for name, array in given.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    assert arrays(tmp_path / "a.npz", ["q"]).keys() == {"q"}
    with raises("E-FILE-072", "x.npy"):
        arrays(tmp_path / "a.npz", ["x"])


WRONG = {
    "shape": zipped(a=npy("(10000000000,)", b"0" * 80)),
    "negative": zipped(a=npy("(-1,)", b"0" * 80)),
    "objects": zipped(a=npy("(1,)", b"cos\nsystem\n(S'true'\ntR.", "|O")),
    "zeros": zipped(a=npy("(4000000,)", bytes(32_000_000))),
    "short": zipped(a=b"\x93NUM"),
    "version": zipped(a=b"\x93NUMPY\x07\x00" + struct.pack("<H", 10) + b" " * 10),
    "header": zipped(a=b"\x93NUMPY\x01\x00" + struct.pack("<H", 10) + b"__import__"),
    "no zip": b"PK",
    "empty": b"",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_a_value_error(name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        arrays(io.BytesIO(WRONG[name]))


def test_damaged_bytes_are_a_value_error() -> None:
    """Damage anywhere causes a ValueError, unless the array can be read completely."""
    good = zipped(a=npy("(64,)", np.random.default_rng(1).bytes(512)))
    for k in range(0, len(good), 3):
        data = bytearray(good)
        data[k] ^= 0xFF
        try:
            found = arrays(io.BytesIO(bytes(data)))
        except ValueError:
            continue
        assert found["a"].shape == (64,)


def test_a_member_of_an_unknown_kind() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.npy", npy("(1,)", bytes(8)))
    assert arrays(io.BytesIO(stream.getvalue()))["a"].shape == (1,)


# Tables ----------------------------------------------------------------------------------------

ARM = chasles.robots.planar(2)

TABLES: dict[str, Callable[[Path], Any]] = {
    "motion": lambda path: list(motion.read(path, ARM.model)),
    "poses": motion.read_poses,
    "forces": lambda path: list(motion.forces(path)),
    "trajectory": lambda path: chasles.trajectory.load(path, ARM),
    "log": lambda path: chasles.identify(ARM, path),
    "view": lambda path: panel.read(path, ARM),
}
"""Functions that read a .npz table."""

NAMES = ("q", "x", "fx", "joint1.q")
"""Columns or quantities of these tables."""

BAD: dict[str, bytes] = {
    "misnamed": b"t,joint1.q\n0,1\n",
    "damaged": zipped(**dict.fromkeys(NAMES, b"\x93NUM")),
    "pickled": zipped(**dict.fromkeys(NAMES, npy("(1,)", b"cos\nsystem\n(S'true'\ntR.", "|O"))),
    "huge": zipped(**dict.fromkeys(NAMES, npy("(4000000,)", bytes(32_000_000)))),
    "words": zipped(**dict.fromkeys(NAMES, npy("(1,)", b"abcd", "|S4"))),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("fault", BAD)
def test_every_reader_reports_the_same_error(table: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    path.write_bytes(BAD[fault])
    with raises("E-FILE-027", "table.npz"):
        TABLES[table](path)


def test_a_table_has_columns_or_quantities(tmp_path: Path) -> None:
    """Arrays that are not needed are not read, and a file needs no `format`."""
    q, other = np.arange(6.0).reshape(3, 2), np.array([{}], dtype=object)
    columns = {f"{joint}.q": q[:, k] for k, joint in enumerate(ARM.joints)}
    for given in ({"q": q}, columns):
        np.savez(tmp_path / "a.npz", t=np.arange(3.0), about=other, **given)
        (found,) = motion.read(tmp_path / "a.npz", ARM.model)
        np.testing.assert_array_equal(found.q, q)
        np.testing.assert_array_equal(found.t, np.arange(3.0))


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"format": np.array("chasles-motion-9"), "q": np.zeros((1, 2))}, "E-FILE-028"),
        ({"q": np.zeros((1, 3))}, "E-FILE-029"),
        ({"q": np.zeros((1, 9))}, "E-FILE-029 floating=True"),
        ({"t": np.zeros(2), "q": np.zeros((1, 2))}, "E-FILE-421"),
        ({"t": np.array(0.0), "q": np.zeros((1, 2))}, "E-FILE-421"),
        ({"t": np.array(["1", "2"]), "q": np.zeros((2, 2))}, "E-FILE-027 must contain numbers"),
        ({"q": np.zeros((2, 2)) + 1j}, "E-FILE-027 must contain numbers"),
        ({"joint1.q": np.zeros(2)}, "E-FILE-089 joint2.q"),
        ({"q": np.full((2, 2), np.nan)}, "E-FILE-091"),
        ({"t": np.array([1.0, 0.0]), "q": np.zeros((2, 2))}, "E-FILE-090"),
        ({"q": np.zeros((2, 2)), "solved": np.array([1, 0])}, "E-FILE-414 row 1"),
        ({"q": np.zeros((0, 2))}, "E-FILE-013"),
    ],
)
def test_bad_tables(tmp_path: Path, arrays: dict[str, np.ndarray], said: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with raises(said, "a.npz"):
        list(motion.read(tmp_path / "a.npz", ARM.model))
