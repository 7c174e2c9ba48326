"""Damaged robot files, with random changes of the text or of the XML tree."""

import random
import re
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import mutating
import mutations
from lxml import etree
from readers_here import readers_here

import chasles
from chasles import formats
from chasles.lint import lint
from fuzz import CORPUS
from fuzz.forked import forked
from fuzz.target import Case, allowed
from fuzz.targets import TARGETS

MOST = 400_000
"""Maximum number of characters of a file, since a mutation can repeat parts many times."""


SMALL = 0.97
"""Share of the files made from small robots, which are tested ten times as fast as others."""

XACRO = 0.03
"""Share of xacro among files read in this process; xacro is ten times as slow as other formats."""

NEW = 0.02
"""Share of the files for isolated readers that are read by a new interpreter."""

DEEP = 0.05
"""Share of the files whose robot is also built, and then linted or saved and reloaded."""


PLAIN = (".urdf", ".sdf", ".toml", ".dat")


@cache
def corpus(folder: str, *suffixes: str) -> tuple[tuple[str, str], ...]:
    """Return names and texts of the sample files with the given suffixes."""
    paths = [path for path in sorted(CORPUS.glob(f"{folder}/*")) if path.suffix in suffixes]
    return tuple((path.name, path.read_text("utf-8")) for path in paths)


def changed(rng: random.Random, text: str, others: tuple[tuple[str, str], ...]) -> bytes:
    """Return a file with random changes of its text, or of its tree if it is an XML file."""
    if rng.random() < 0.6 and text.lstrip().startswith("<"):
        text = tree(rng, text, rng.choice(others)[1])
        if rng.random() < 0.7:
            return text.encode("utf-8", "replace")
    for _ in range(rng.choice((0, 0, 1))):
        text = many(rng, text)
    kind = "xml" if text.lstrip().startswith("<") else "toml"
    return mutating.mutated(text[:MOST].encode("utf-8", "replace"), kind, rng)


def many(rng: random.Random, text: str) -> str:
    """Return a text with one change in many places: of numbers, or of all uses of a word."""
    if rng.random() < 0.5:
        number = rng.choice(mutating.NUMBERS)[:40]
        return mutating.NUMBER.sub(lambda m: number if rng.random() < 0.3 else m[0], text)
    words = mutating.WORD.findall(text) or ["a"]
    return text.replace(rng.choice(words), rng.choice((*words[:20], *mutating.TEXTS)))


def tree(rng: random.Random, text: str, other: str) -> str:
    """Return an XML file with elements copied, nested, removed, or taken from another file."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        root, donor = (etree.fromstring(t.encode(), parser) for t in (text, other))
    except etree.XMLSyntaxError:
        return text
    for _ in range(rng.randint(1, 4)):
        elements = [e for e in root.iter() if isinstance(e.tag, str)]
        e, f = rng.choice(elements), rng.choice(elements)
        strange = rng.choice([x for x in donor.iter() if isinstance(x.tag, str)])
        turn = rng.randrange(9)
        if turn == 0 and e.getparent() is not None:
            e.getparent().remove(e)
        elif turn == 1:
            f.append(_copy(e))
        elif turn == 2:
            f.append(_copy(strange))
        elif turn == 3 and e.attrib:
            e.attrib.pop(rng.choice(list(e.attrib)))
        elif turn == 4 and f.attrib:
            name = rng.choice(list(f.attrib))
            e.set(name, f.get(name, ""))
        elif turn == 5 and e.attrib:
            e.set(rng.choice(list(e.attrib)), _value(rng))
        elif turn == 6:
            e.text = _value(rng)
        elif turn == 7:
            e.tag = f.tag
        else:
            for _ in range(rng.choice((1, 3, 30))):
                f = _nested(f, e)
    return etree.tostring(root, encoding="unicode")


def _copy(element: etree._Element) -> etree._Element:
    return etree.fromstring(etree.tostring(element, with_tail=False))


def _nested(under: etree._Element, element: etree._Element) -> etree._Element:
    new = etree.SubElement(under, element.tag)
    for name, value in element.attrib.items():
        new.set(name, value)
    return new


def _value(rng: random.Random) -> str:
    numbers = [rng.choice(mutating.NUMBERS)[:60] for _ in range(rng.choice((1, 1, 3, 6)))]
    text = " ".join(numbers) if rng.random() < 0.7 else rng.choice(mutating.TEXTS)
    return re.sub(r"[^\t\n\r -\ud7ff\ue000-\ufffd]", "?", text)


def _put(rng: random.Random, folder: Path, *suffixes: str) -> Path:
    files = corpus("small" if rng.random() < SMALL else "robots", *suffixes)
    name, text = rng.choice(files)
    path = folder / name
    path.write_bytes(changed(rng, text, files))
    return path


def readers() -> Case:
    """Prepare cases for readers in this process, including xacro without its separate process."""

    def case(rng: random.Random, folder: Path) -> None:
        mutations.put(folder)
        with readers_here():
            for _ in range(TARGETS["readers"].calls):
                suffixes = (".xacro",) if rng.random() < XACRO else PLAIN
                path = _put(rng, folder, *suffixes)
                try:
                    _read(rng, path, folder)
                except Exception as error:
                    if not allowed(error):
                        raise

    return case


def _read(rng: random.Random, path: Path, folder: Path) -> None:
    """Read a file; for a share `DEEP` of the files, also build and use the robot."""
    turn = rng.random()
    if turn < DEEP / 2.0:
        mutations.attempt(path)
    elif turn < DEEP:
        _used(rng, chasles.load(path, **_options(rng)), folder)
    else:
        formats.read(str(path), floating=rng.random() < 0.1)


def _options(rng: random.Random) -> dict[str, bool]:
    return {name: True for name in ("floating", "strict") if rng.random() < 0.15}


def _used(rng: random.Random, robot: chasles.Robot, folder: Path) -> None:
    """Check that a loaded robot can be saved, and the saved file loaded."""
    if rng.random() < 0.3:
        path = folder / f"again{rng.choice(('.urdf', '.sdf', '.toml'))}"
        chasles.save(robot, path)
        again = chasles.load(path)
        assert again.nv == robot.nv or robot.loops, f"{path.suffix} changes the degrees of freedom"


def walls() -> Case:
    """Prepare cases for readers in a separate process.

    The process is usually a fork; for a share `NEW` of the files it is a new interpreter, as in
    normal use.
    """

    def case(rng: random.Random, folder: Path) -> None:
        mutations.put(folder)
        for _ in range(TARGETS["walls"].calls):
            path = _put(rng, folder, ".xml", ".xacro")
            read = lint if rng.random() < 0.1 else chasles.load if rng.random() < 0.2 else _source
            try:
                with nullcontext() if rng.random() < NEW else forked():
                    read(path)
            except Exception as error:
                if not allowed(error):
                    raise

    return case


def _source(path: Path) -> None:
    formats.read(str(path))
