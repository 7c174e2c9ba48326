"""Arrays of .npz files are read completely, or refused before memory is allocated."""

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hostile_families import npy, zipped
from support import raises

from chasles.formats.archive import arrays


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
