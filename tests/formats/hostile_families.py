"""Hostile files of any size, by format; `FAMILIES[name](n)` returns about n bytes.

`python hostile_families.py SIZE NAME...` prints for each file its size, the additional memory used
for reading it (both in bytes), the processor time (s) and the result. Each file is read in a forked
process, so that memory freed after an earlier file does not hide the memory of a later one.
"""

import io
import os
import resource
import struct
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

Family = Callable[[int], bytes]


def xml(head: str, tail: str) -> dict[str, Family]:
    """Return families of an XML format whose documents begin with `head` and end with `tail`."""

    def made(piece: Callable[[int], str], open: str = head, close: str = tail) -> Family:
        def data(n: int) -> bytes:
            count = n // max(1, len(piece(10**5)))
            return (open + "".join(map(piece, range(count))) + close).encode()

        return data

    start = head.split(">")[-2] + " "
    before = head.removesuffix(head.split(">")[-2] + ">")
    return {
        "deep": made(lambda i: "<a>", close=""),
        "deep_closed": lambda n: (head + "<a>" * (n // 7) + "</a>" * (n // 7) + tail).encode(),
        "elements": made(lambda i: "<a/>"),
        "links": made(lambda i: f"<link name='l{i}'/>"),
        "attributes": made(lambda i: f"a{i}='' ", before + start, ">" + tail),
        "spaces": made(lambda i: f"xmlns:a{i}='b' ", before + start, ">" + tail),
        "names": lambda n: f"{head}<link name='{'x' * n}'/>{tail}".encode(),
        "number": lambda n: f"{head}<link name='a'><inertial><mass value='{'9' * n}'/>".encode(),
        "text": lambda n: (head + "x" * n + tail).encode(),
        "comments": made(lambda i: "<!---->"),
        "instructions": made(lambda i: "<?a b?>"),
        "characters": made(lambda i: "&#1234;"),
        "entities": lambda n: ("<!DOCTYPE a [<!ENTITY a0 'x'>" + "".join(
            f"<!ENTITY a{k} '{f'&a{k - 1};' * 10}'>" for k in range(1, n // 80)
        ) + f"]>{head}&a{n // 80 - 1};{tail}").encode(),
    }  # fmt: skip


def toml(head: str) -> dict[str, Family]:
    """Return families of a TOML format whose documents begin with `head`."""

    def made(piece: Callable[[int], str], open: str = "", close: str = "") -> Family:
        count = len(piece(10**5))
        return lambda n: (head + open + "".join(map(piece, range(n // count))) + close).encode()

    return {
        "dotted": made(lambda i: ".a", "a", "=1\n"),
        "dotted_header": made(lambda i: ".a", "[a", "]\nb=1\n"),
        "dotted_in_table": made(lambda i: ".a", "a={a", "=1}\n"),
        "dotted_after_text": made(lambda i: ".a", 'b=["""c"""", {a', '=1}, "d"]\n'),
        "four_dots": made(lambda i: f"k{i}.a.a.a.a=1\n"),
        "four_dots_below": made(lambda i: f"k{i}.a.a.a.a=1\n", "[a.a.a.a.a]\n"),
        "keys": made(lambda i: f"k{i}=1\n"),
        "headers": made(lambda i: f"[k{i}]\n"),
        "rows": made(lambda i: "[[a]]\n"),
        "inline": made(lambda i: "{a=1},", "a=[", "]\n"),
        "inline_deep": made(lambda i: "{a=", "a="),
        "lists": made(lambda i: "[],", "a=[", "]\n"),
        "lists_deep": made(lambda i: "[", "a="),
        "floats": made(lambda i: "1.,", "a=[", "]\n"),
        "decimals": made(lambda i: "1.0,", "a=[", "]\n"),
        "digits": made(lambda i: "9", "a="),
        "fraction": made(lambda i: "9", "a=0."),
        "underscores": made(lambda i: "9_", "a=", "9\n"),
        "text": made(lambda i: "\\n", 'a="', '"\n'),
        "quotes": made(lambda i: '\\"""'),
        "lines": made(lambda i: "\n", "a=1"),
        "comments": made(lambda i: "#\n"),
    }


def zipped(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return stream.getvalue()


def npy(shape: str, data: bytes, kind: str = "<f8") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    head = text.ljust(-(10 + len(text) + 1) % 64 + len(text)) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def motion(t: bytes) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array("chasles-motion-1"))
    return zipped(format=stream.getvalue(), t=t, q=t)


ARCHIVES: dict[str, Family] = {
    "shape": lambda n: motion(npy("(1000000000000,)", os.urandom(n))),
    "shapes": lambda n: motion(npy(f"({'9999,' * 9})", os.urandom(n))),
    "zeros": lambda n: motion(npy(f"({4 * n},)", bytes(32 * n))),
    "objects": lambda n: motion(npy("(1,)", b"cos\nsystem\n(S'true'\ntR." + os.urandom(n), "|O")),
    "damaged": lambda n: motion(npy("(9,)", os.urandom(n)))[: n // 2],
}

URDF, SDF = (
    xml("<robot name='r'>", "</robot>"),
    xml("<sdf version='1.9'><model name='m'>", "</model></sdf>"),
)
FAMILIES: dict[str, Family] = {
    **{f"{name}.urdf": family for name, family in URDF.items()},
    **{f"{name}.sdf": family for name, family in SDF.items()},
    **{f"{name}.toml": family for name, family in toml('format = "mechanism"\n').items()},
    "dotted.scenario.toml": toml('format = "scenario"\n')["dotted"],
    "headers.scenario.toml": toml('format = "scenario"\n')["headers"],
    **{f"{name}.npz": family for name, family in ARCHIVES.items()},
    "numbers.dat": lambda n: b"1 " * (n // 2),
    "lines.dat": lambda n: b"1\n" * (n // 2),
    "digits.dat": lambda n: b"9" * n,
    "columns.csv": lambda n: b"t," * (n // 2) + b"\n",
    "lines.csv": lambda n: b"t,joint1.q\n" + b"1,1\n" * (n // 4),
    "digits.csv": lambda n: b"t,joint1.q\n" + b"9" * n,
    "quotes.csv": lambda n: b'"' * n,
}  # fmt: skip


def read(path: Path) -> str:
    """Read a file as a user would; return the error message, or "read"."""
    import chasles
    from chasles.cli import scenario
    from chasles.formats import motion as motions

    robot = chasles.robots.planar(1)
    try:
        if path.suffix in (".npz", ".csv"):
            list(motions.read(path, robot.model))
        elif path.name.endswith(".scenario.toml"):
            scenario.read(path)
        else:
            chasles.load(path)
    except chasles.ChaslesError as error:
        return str(error)
    return "read"


def main(size: int, names: list[str]) -> None:
    """Read one file of each family, each in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = Path(folder, name)
            path.write_bytes(FAMILIES[name](size))
        (Path(folder) / "warm.urdf").write_text("<robot name='r'><link name='a'/></robot>")
        (Path(folder) / "warm.toml").write_text("a = 1")
        for name in ("warm.urdf", "warm.toml", "warm.sdf", "warm.csv", "warm.npz"):
            read(Path(folder, name))
        for name in names:
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                before, start = (
                    resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
                    time.process_time(),
                )
                told = read(Path(folder, name))
                taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
                bytes_ = Path(folder, name).stat().st_size
                seconds = f"{time.process_time() - start:.2f}"
                told = told.replace("\n", " ")[:2000]
                print(name, bytes_, 1024 * taken, seconds, told, sep="\t")
                sys.stdout.flush()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0, name


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:] or list(FAMILIES))
