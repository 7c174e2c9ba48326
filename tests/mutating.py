"""Introduce mistakes into files: `mutated(data, kind, rng)` changes the structure or the bytes.

kind is "xml", "toml", "json", "text" or "npz". One call makes one to three mistakes. Parts are
deleted, duplicated, moved or renamed; numbers, texts and lists are replaced by odd ones; the file
is truncated, encoded differently or has bytes changed. Equal states of the generator
(`random.Random`) give equal files.
"""

import io
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from lxml import etree

NUMBERS = (
    *("nan", "inf", "-inf", "1e308", "-1e308", "1e-320", "0", "-0", "-1", "1e400", "", "0x10"),
    *("1,5", "1.2.3", "1 2", "9" * 400, "true", "1.5708", "³", "1_0", " ", "１", "١", "1e99"),
    *("1e155", "-1e-160", "1e-308", "2147483648", "9223372036854775808", "1e5000", "None", "+.5"),
)
TEXTS = (
    *("", " ", "world", "__model__", "a::b", "\x00", "\ud7ff", "]]>", "<", "&amp;", "&#0;", "'"),
    *("../" * 30, "x" * 5000, "\u202eabc", "\x1b[31m", "ａ", "${1/0}", "$(arg x)", "package://"),
)
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**63, 2**64, 10**400, 0.5, -1.5, 1e308, 1e-320, float("nan")),
    *(float("inf"), "", "text", "1.0", [], {}, [[]], [1.0, "a"], [1.0] * 7, {"a": 1}, [None]),
)
"""JSON values that replace other values."""

TOML = (
    *("nan", "inf", "-inf", "-1", "-1.5", "0", "1e308", "1e-320", "1e400", "9" * 30, "true", '""'),
    *("[]", "{}", "[[]]", "[1.0]", "[1.0, 2.0]", "[1, 'a', 3]", "[1.0, 2.0, 3.0, 4.0]", "1.2.3"),
    *("2020-01-01", "'x'", '"\\u0000"', "１", "{a = 1}", "[nan, 0, 0]", "[-1, -1, -1]", "", "x y"),
)
"""TOML values that replace other values; some are not valid TOML."""

NUMBER = re.compile(r"-?\d+\.?\d*(?:[eE][-+]?\d+)?")
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]{2,}")
QUOTED = re.compile(r'"[^"\n]*"')
ASSIGNED = re.compile(r"^([ \t]*)([\w.-]+)([ \t]*=[ \t]*)(.*)$", re.MULTILINE)
ENCODINGS = ("utf-16", "utf-32", "latin-1", "utf-8-sig", "cp037", "utf-7")

Rng = random.Random


def mutated(data: bytes, kind: str, rng: Rng) -> bytes:
    """Return a file with one to three mistakes, most of them in its structure."""
    for _ in range(rng.randint(1, 3)):
        by_structure = rng.random() < 0.6
        try:
            data = STRUCTURED[kind](data, rng) if by_structure else _anyhow(data, kind, rng)
        except Exception:
            data = _bytes(data, rng)  # an earlier mistake has destroyed the structure
    return data


def _anyhow(data: bytes, kind: str, rng: Rng) -> bytes:
    if kind == "npz" or rng.random() < 0.1:
        return _bytes(data, rng)
    return rng.choice(MISTAKES)(data.decode("utf-8"), rng).encode("utf-8", "replace")


# Structure ---------------------------------------------------------------------------------------


def _xml(data: bytes, rng: Rng) -> bytes:
    """Change an element, an attribute or a text of a document."""
    root = etree.fromstring(data, etree.XMLParser(resolve_entities=False))
    elements = [x for x in root.iter() if isinstance(x.tag, str)]
    some, other = rng.choice(elements), rng.choice(elements)
    keys = list(some.attrib)
    key = rng.choice(keys) if keys else rng.choice(["name", "value", "xyz", "type"])
    act = rng.randrange(9)
    if act == 0 and some is not root:
        some.getparent().remove(some)
    elif act == 1 and some is not root:
        some.addnext(etree.fromstring(etree.tostring(some, with_tail=False)))
    elif act == 2:
        other.append(etree.fromstring(etree.tostring(some, with_tail=False)))
    elif act == 3:
        some.tag = rng.choice([other.tag, "x", "{urn:x}a"])
    elif act == 4 and keys:
        del some.attrib[key]
    elif act == 5:
        some.text = _odd(some.text, rng)
    else:
        some.set(key, _odd(some.get(key), rng))
    return bytes(etree.tostring(root, encoding="utf-8", xml_declaration=rng.random() < 0.5))


def _odd(text: str | None, rng: Rng) -> str:
    """Return a text with an odd, missing or additional number, or an odd text."""
    words = (text or "").split() or ["0"]
    k = rng.randrange(len(words))
    made = rng.choice(
        [
            [*words[:k], rng.choice(NUMBERS), *words[k + 1 :]],
            [*words[:k], *words[k + 1 :]],
            [*words, rng.choice(NUMBERS)],
            [rng.choice(NUMBERS)] * len(words),
            [rng.choice(TEXTS)],
        ]
    )
    return re.sub(r"[\x00-\x08\x0b-\x1f]", "", " ".join(made))


def _toml(data: bytes, rng: Rng) -> bytes:
    """Change the value or key of a line `key = value`, or duplicate, remove or replace the line."""
    text = data.decode("utf-8")
    lines = list(ASSIGNED.finditer(text))
    if not lines:
        return _lines(text, rng).encode()
    line, other = rng.choice(lines), rng.choice(lines)
    indent, key, equals, value = line.groups()
    new = rng.choice(
        [
            *[f"{indent}{key}{equals}{rng.choice(TOML)}"] * 4,
            f"{indent}{key}{equals}{NUMBER.sub(lambda _: rng.choice(TOML[:10]), value, count=1)}",
            f"{indent}{key}{equals}{other[4]}",
            f"{indent}{other[2]}{equals}{value}",
            f"{indent}{key}.{other[2]}{equals}{value}",
            "",
            f"{line[0]}\n{line[0]}",
            f"[{key}]",
            f"[[{key}]]",
        ]
    )
    return (text[: line.start()] + new + text[line.end() :]).encode()


def _json(data: bytes, rng: Rng) -> bytes:
    """Replace, remove or rename a value of a document."""
    whole = [json.loads(data)]
    places = list(_places(whole))
    holder, key = rng.choice(places)
    if rng.random() < 0.2 and holder is not whole:
        del holder[key]
    elif rng.random() < 0.2 and isinstance(holder, dict):
        holder[rng.choice(["", "x", "format"])] = holder.pop(key)
    else:
        holder[key] = rng.choice(ODD)
    return json.dumps(whole[0]).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _npz(data: bytes, rng: Rng) -> bytes:
    """Change the shape, values or type of an array of an archive, or rename or remove the array."""
    with np.load(io.BytesIO(data)) as file:
        arrays: dict[str, Any] = dict(file)
    name = rng.choice(list(arrays))
    array = arrays[name]
    changes: list[Callable[[], Any]] = [
        lambda: array[:0] if array.ndim else np.zeros(0),
        lambda: array[..., None],
        lambda: np.full(array.shape, rng.choice([np.nan, np.inf, -1.0, 1e308])),
        lambda: array.astype(rng.choice(["U5", "complex", "int8", "S3", "float16", "?"])),
        lambda: np.array(rng.choice(["x", 1.0, "2020-01-01"])),
        lambda: np.array([{"a": 1}], dtype=object),
        lambda: array[..., :-1] if array.ndim else np.zeros((2, 2)),
        lambda: np.zeros(3, dtype=[("a", float), ("b", int)]),
    ]
    act = rng.random()
    if act < 0.15:
        del arrays[name]
    elif act < 0.3:
        arrays[rng.choice(["x", "t", "q", "end.q"])] = arrays.pop(name)
    else:
        arrays[name] = rng.choice(changes)()
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _text(data: bytes, rng: Rng) -> bytes:
    """Replace, remove or add a word of a table."""
    rows = data.decode("utf-8").split("\n")
    k = rng.randrange(len(rows))
    mark = "," if "," in rows[k] else " "
    words = rows[k].split(mark)
    i = rng.randrange(len(words))
    words[i : i + rng.randint(0, 1)] = [rng.choice(NUMBERS)][: rng.randint(0, 3)]
    rows[k] = mark.join(words)
    return "\n".join(rows).encode()


STRUCTURED: dict[str, Callable[[bytes, Rng], bytes]] = {
    "xml": _xml,
    "toml": _toml,
    "json": _json,
    "npz": _npz,
    "text": _text,
}
"""Functions that change the structure of a file, by kind of file."""

# Text and bytes ----------------------------------------------------------------------------------


def _swapped(pattern: re.Pattern[str], text: str, rng: Rng, by: str) -> str:
    places = list(pattern.finditer(text))
    if not places:
        return text
    place = rng.choice(places)
    return text[: place.start()] + by + text[place.end() :]


def _number(text: str, rng: Rng) -> str:
    return _swapped(NUMBER, text, rng, rng.choice(NUMBERS))


def _name(text: str, rng: Rng) -> str:
    """Replace a word by another word of the file or an odd one."""
    words = WORD.findall(text) or ["a"]
    return _swapped(WORD, text, rng, rng.choice([*rng.choices(words, k=6), rng.choice(TEXTS)]))


def _value(text: str, rng: Rng) -> str:
    quoted = QUOTED.findall(text) or ['""']
    return _swapped(QUOTED, text, rng, rng.choice([rng.choice(quoted), '""', '"x"']))


def _lines(text: str, rng: Rng) -> str:
    """Remove, duplicate or move some lines."""
    lines = text.split("\n")
    i, count = rng.randrange(len(lines)), rng.randint(1, 6)
    piece, rest = lines[i : i + count], lines[:i] + lines[i + count :]
    at = rng.randrange(len(rest) + 1)
    return "\n".join(
        rng.choice([rest, lines[:i] + piece + lines[i:], rest[:at] + piece + rest[at:]])
    )


def _cut(text: str, rng: Rng) -> str:
    i, j = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    return rng.choice(
        [text[:i] + text[min(j, i + 30) :], text[:j], text[: i + 1] + text[i:j] + text[i:]]
    )


def _letters(text: str, rng: Rng) -> str:
    i = rng.randrange(len(text) + 1)
    return text[:i] + rng.choice([*TEXTS, "\n", "é", "/>", '"']) + text[i:]


MISTAKES = (_number, _number, _name, _name, _value, _lines, _cut, _letters)


def _bytes(data: bytes, rng: Rng) -> bytes:
    """Change or remove some bytes, or change the encoding."""
    k = rng.randrange(len(data) + 1)
    act = rng.randrange(5)
    if act == 0:
        return data[:k]
    if act == 1:
        return data[:k] + data[k + rng.randint(1, 8) :]
    if act == 2:
        return data[:k] + rng.randbytes(rng.randint(1, 4)) + data[k:]
    if act == 3:
        text = data.decode("utf-8", "replace")
        return text.encode(rng.choice(ENCODINGS), "replace")
    return data[:k] + bytes([rng.randrange(256)]) + data[k + 1 :]
