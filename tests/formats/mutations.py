"""Robot files with mistakes: real ones, changed at random; every one must load or be refused.

`python tests/formats/mutations.py 10000` tries that many and prints what goes wrong, with the seed
that makes it again; `10000 5 .xacro` those from seed 5 on of one format.
"""

import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import files
from pathlib import Path
from typing import Any
from unittest import mock

import sdf_files
import xacro_files

import chasles
from chasles.formats import mjcf_source, xacro, xacro_child, xml_file
from chasles.lint import lint
from chasles.model import ModelError

SECONDS = 5.0
"""The most that one file may take, of the processor."""

NUMBERS = (
    *("nan", "inf", "-inf", "1e308", "-1e308", "1e-320", "0", "-0", "-1", "1e400", "", "0x10"),
    *("1,5", "1.2.3", "1 2", "9" * 400, "true", "1.5708", "³", "1_0"),
)
TEXTS = ("", " ", "world", "__model__", "a::b", "\x00", "\ud7ff", "]]>", "<", "&amp;", "&#0;", "'")
NUMBER = re.compile(r"-?\d+\.?\d*(?:[eE][-+]?\d+)?")
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]{2,}")
QUOTED = re.compile(r'"[^"\n]*"')


def seeds() -> dict[str, str]:
    """Texts of real files, by name with the suffix of their format."""
    found = {f"{name}.sdf": text for name, text in sdf_files.FILES.items()}
    found |= {f"{name}.xacro": text for name, text in xacro_files.FILES.items()}
    listed = [f for f in files("example-robot-data") or () if f.name.endswith(".urdf")]
    for name in ("panda", "solo12", "ur5_robot", "double_pendulum", "cassie"):
        path = next((f for f in listed if f.stem == name), None)
        if path is not None:
            found[f"{name}.urdf"] = Path(str(path.locate())).read_text()
    with tempfile.TemporaryDirectory() as folder:
        for robot in ("planar", "general_tree"):
            made = getattr(chasles.robots, robot)(*(3, 2)[: 1 + (robot == "general_tree")])
            for suffix in (".urdf", ".sdf", ".toml", ".xml"):
                path = Path(folder, robot + suffix)
                chasles.save(made, path)
                found[path.name] = path.read_text()
        for robot in ("four_bar", "delta"):
            path = Path(folder, f"{robot}.toml")
            chasles.save(getattr(chasles.robots, robot)(), path)
            found[path.name] = path.read_text()
    source = Path(chasles.robots.__file__).with_name("puma560.toml")
    return found | {"puma560.toml": source.read_text()}


def mutated(text: str, rng: random.Random) -> bytes:
    """The text with one or two mistakes."""
    for _ in range(rng.randint(1, 2)):
        text = rng.choice(MISTAKES)(text, rng)
    data = text.encode("utf-8", "replace")
    if rng.random() < 0.1 and data:
        k = rng.randrange(len(data))
        data = data[:k] + bytes([rng.randrange(256)]) + data[k + 1 :]
    return data


def _swapped(pattern: re.Pattern[str], text: str, rng: random.Random, by: str) -> str:
    places = list(pattern.finditer(text))
    if not places:
        return text
    place = rng.choice(places)
    return text[: place.start()] + by + text[place.end() :]


def _number(text: str, rng: random.Random) -> str:
    return _swapped(NUMBER, text, rng, rng.choice(NUMBERS))


def _name(text: str, rng: random.Random) -> str:
    """Another word of the file, or an odd one."""
    words = WORD.findall(text) or ["a"]
    return _swapped(WORD, text, rng, rng.choice([*rng.choices(words, k=6), rng.choice(TEXTS)]))


def _value(text: str, rng: random.Random) -> str:
    quoted = QUOTED.findall(text) or ['""']
    return _swapped(QUOTED, text, rng, rng.choice([rng.choice(quoted), '""', '"x"']))


def _lines(text: str, rng: random.Random) -> str:
    """Lines left out, written twice, or in another place."""
    lines = text.split("\n")
    i, count = rng.randrange(len(lines)), rng.randint(1, 6)
    piece, rest = lines[i : i + count], lines[:i] + lines[i + count :]
    at = rng.randrange(len(rest) + 1)
    return "\n".join(
        rng.choice([rest, lines[:i] + piece + lines[i:], rest[:at] + piece + rest[at:]])
    )


def _cut(text: str, rng: random.Random) -> str:
    i, j = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    return rng.choice(
        [text[:i] + text[min(j, i + 30) :], text[:j], text[: i + 1] + text[i:j] + text[i:]]
    )


def _letters(text: str, rng: random.Random) -> str:
    i = rng.randrange(len(text) + 1)
    return text[:i] + rng.choice([*TEXTS, "\n", "é", "/>", '"']) + text[i:]


MISTAKES = (_number, _number, _name, _name, _value, _lines, _cut, _letters)


class Expander:
    """xacro in this process, which would take a hundred times longer in one for each file."""

    def ask(self, file: str, *arguments: str) -> dict[str, Any]:
        """What the wall answers; errors that would end the process behind it come through."""
        try:
            return dict(xacro_child.answer(os.path.abspath(file), *arguments))
        except ValueError as error:
            return {"error": str(error)}


def put(folder: Path) -> None:
    """What files include."""
    sdf_files.put(folder)
    xacro_files.put(folder)


def attempt(path: Path, hear: Callable[[str], object] = lambda text: None) -> bool:
    """Whether a file loads, and lint takes it; MJCF's compiler has a process of its own and is left
    out. Warnings of NumPy are faults here: a user should read what is wrong in the file."""
    with warnings.catch_warnings(), mock.patch.object(xacro, "XACRO", Expander()):
        warnings.simplefilter("error")
        try:
            if path.suffix == ".xml":
                mjcf_source._lines(xml_file.parse(str(path), path.read_bytes()))
            else:
                lint(path, meshes=False)
                chasles.load(path)
        except ModelError as error:
            hear(str(error))
            return False
    return True


def cases(count: int, first: int = 0, kind: str = "") -> Iterator[tuple[int, str, bytes]]:
    """Seeds, names and contents of mutated files, all or those of one suffix."""
    known = seeds()
    names = sorted(name for name in known if name.endswith(kind))
    for seed in range(first, first + count):
        rng = random.Random(seed)
        name = names[seed % len(names)]
        yield seed, name, mutated(known[name], rng)


def main(count: int, first: int = 0, kind: str = "") -> None:
    """Try many; a file that takes too long is stopped."""
    loaded, wrong, slowest = 0, 0, 0.0

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS:g} s")

    signal.signal(signal.SIGPROF, stop)
    with tempfile.TemporaryDirectory() as folder:
        put(Path(folder))
        for seed, name, data in cases(count, first, kind):
            path = Path(folder, name)
            path.write_bytes(data)
            start = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                loaded += attempt(path)
            except Exception:
                wrong += 1
                print(f"seed {seed}, {name}:", traceback.format_exc().strip()[-700:], flush=True)
            signal.setitimer(signal.ITIMER_PROF, 0)
            slowest = max(slowest, time.process_time() - start)
    print(f"{count} files, {loaded} loaded, {wrong} wrong; the slowest {slowest:.2f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
