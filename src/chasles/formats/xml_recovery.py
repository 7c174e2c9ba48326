"""Parse XML documents that are malformed but unambiguous."""

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.parsers import expat

from lxml import etree

from chasles.formats.files import short

_DECLARATION = re.compile(r"(\ufeff?\s*)(<\?\s*xml(?=[\s?>])[^<>]*>)", re.IGNORECASE)
_USUAL = re.compile(r"""<\?xml\s+version\s*=\s*["']1\.\d["'][^<>]*\?>""")
_ENCODING = re.compile(rb"""(?i)<\?\s*xml\b[^<>]*?encoding\s*=\s*["']([\w.-]+)["']""")
_AMPERSAND = re.compile(r"&(?!(?:\w{1,64}|#\w{1,64});)")
_TAG = re.compile(r"<(?P<end>/?)[^\W\d][^<>]*?(?P<whole>/?)>")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")

_PLAIN = ("utf-8", "ascii", "iso8859", "cp125")
"""Name prefixes of encodings in which the byte for "<" is not part of any other character."""

_UNBOUND = etree.ErrorTypes.NS_ERR_UNDEFINED_NAMESPACE
_MISNAMED = (etree.ErrorTypes.NS_ERR_XML_NAMESPACE, etree.ErrorTypes.WAR_NS_URI)


class Slip(NamedTuple):
    """An error in a malformed document: its line number, a description, and a remedy."""

    line: int
    fault: str
    remedy: str


def recovered(data: bytes) -> tuple[etree._Element, list[Slip]] | None:
    """Parse a malformed document; return its root and errors, or None if it is ambiguous.

    The rules follow TinyXML, which urdfdom, MuJoCo and sdformat use. Comments may contain any
    characters. Text before the first tag, malformed or misplaced XML declarations, elements and end
    tags after the root element, and null characters at the end are ignored. A lone "&" is literal.
    Namespace prefixes need not be declared. A document that is invalid in its declared encoding is
    read as UTF-8 or, if that fails, as ISO 8859-1. Line numbers are preserved.
    """
    slips: list[Slip] = []
    text = _decoded(data, slips)
    for mended in (_without_comments, _without_head, _without_declarations, _with_ampersands):
        text = mended(text, slips)
    if "<!DOCTYPE" in text:
        return None
    text = _without_others(_without_nulls(text, slips), slips)
    parser = etree.XMLParser(recover=True, remove_pis=True, resolve_entities=False)
    try:
        root = etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError:  # lxml cannot recover anything
        return None
    if root is None or not _is_known(parser):
        return None
    return root, [*slips, *_prefixes(parser)]


def _decoded(data: bytes, slips: list[Slip]) -> str:
    """Decode a document, using its declared encoding if possible."""
    found = _ENCODING.search(data[:1000])
    declared = found[1].decode() if found else "utf-8"
    try:
        plain = codecs.lookup(declared).name.startswith(_PLAIN)
        return data.decode(declared if plain else "utf-8")
    except (LookupError, UnicodeDecodeError):
        pass
    try:
        text, taken = data.decode("utf-8"), "UTF-8"
    except UnicodeDecodeError:
        text, taken = data.decode("latin-1"), "ISO 8859-1"
    fault = f"the file is not encoded in {declared!r}; it is read as {taken}"
    slips.append(Slip(1, fault, "save it as UTF-8"))
    return text


def _without_comments(text: str, slips: list[Slip]) -> str:
    """Remove all comments; report the first malformed comment."""
    kept, end, known = [], 0, False
    while (start := text.find("<!--", end)) >= 0:
        stop = text.find("-->", start + 4)
        if stop < 0:
            break
        inside = text[start + 4 : stop]
        if not known and ("--" in inside or inside.endswith("-") or _CONTROL.search(inside)):
            fault = "a comment contains '--' or control characters"
            slips.append(Slip(_line(text, start), fault, "use other characters"))
            known = True
        kept += [text[end:start], "\n" * inside.count("\n")]
        end = stop + 3
    return "".join([*kept, text[end:]])


def _without_head(text: str, slips: list[Slip]) -> str:
    """Remove any text before the first tag, and report it."""
    head, tag, rest = text.partition("<")
    said = head.strip("\ufeff").strip()
    if not said or not tag:
        return text
    fault = f"text {short(said)} before the first tag is ignored"
    slips.append(Slip(_line(text, text.index(said)), fault, "remove it"))
    return "\n" * head.count("\n") + tag + rest


def _without_declarations(text: str, slips: list[Slip]) -> str:
    """Remove the XML declarations at the start; report the first malformed or misplaced one."""
    kept: list[str] = []
    end, known = 0, False
    while found := _DECLARATION.match(text, end):
        before = found[1].strip("\ufeff")
        if not known and (kept or before or not _USUAL.fullmatch(found[2])):
            fault = f"{short(found[2])} is malformed or not at the start; it is ignored"
            remedy = 'begin the file with <?xml version="1.0"?>'
            slips.append(Slip(_line(text, found.start(2)), fault, remedy))
            known = True
        kept += [before, "\n" * found[2].count("\n")]
        end = found.end()
    return "".join([*kept, text[end:]])


def _with_ampersands(text: str, slips: list[Slip]) -> str:
    """Replace every lone "&" by "&amp;", and report the first one."""
    first = _AMPERSAND.search(text)
    if first is not None:
        fault = "'&' is not part of an entity; it is read literally"
        slips.append(Slip(_line(text, first.start()), fault, "write &amp;"))
    return _AMPERSAND.sub("&amp;", text)


def _without_nulls(text: str, slips: list[Slip]) -> str:
    """Remove null characters at the end, and report them."""
    kept = text.rstrip("\0 \t\r\n")
    if "\0" not in text[len(kept) :]:
        return text
    fault = "null characters at the end are ignored"
    slips.append(Slip(_line(text, text.index("\0", len(kept))), fault, "remove them"))
    return kept


def _without_others(text: str, slips: list[Slip]) -> str:
    """Remove well-formed elements and end tags after the root element, and report the first."""
    root = _first_element(text)
    others, ends = _without_ends(text[len(root) :])
    parser = etree.XMLParser(recover=True, resolve_entities=False)
    try:
        found = etree.fromstring(f"<all>{others}</all>".encode(), parser)
    except etree.XMLSyntaxError:
        return text
    said = [found.text, *(element.tail for element in found)]
    if not _is_known(parser) or any(part and part.strip() for part in said):
        return text
    if len(found) or ends:
        tag = f"<{found[0].tag}>" if len(found) else ends[0][0]
        at = text.index("<", len(root)) if len(found) else len(root) + ends[0].start()
        fault = f"{tag} after the end of the root element is ignored"
        slips.append(Slip(_line(text, at), fault, "remove it"))
    return root


def _first_element(text: str) -> str:
    """Return a document up to the end of its root element, or all of a document without an end."""
    reader, data = expat.ParserCreate(), text.encode()
    depth, end = 0, len(data)

    def start(tag: str, attributes: object) -> None:
        nonlocal depth
        depth += 1

    def stop(tag: str) -> None:
        nonlocal depth, end
        depth -= 1
        if not depth:
            end = data.index(b">", reader.CurrentByteIndex) + 1

    reader.StartElementHandler, reader.EndElementHandler = start, stop
    try:
        reader.Parse(data, True)
    except expat.ExpatError:
        return data[:end].decode()
    return text


def _without_ends(text: str) -> tuple[str, list[re.Match[str]]]:
    """Remove the end tags that close no element; return the text and these tags."""
    depth, end, kept = 0, 0, []
    ends: list[re.Match[str]] = []
    for tag in _TAG.finditer(text):
        if tag["end"] and not depth:
            ends.append(tag)
            kept.append(text[end : tag.start()])
            end = tag.end()
        elif not tag["whole"]:
            depth += -1 if tag["end"] else 1
    return "".join([*kept, text[end:]]), ends


def _is_known(parser: etree.XMLParser) -> bool:
    """Return True if the errors of a parser are only undeclared or misnamed namespaces."""
    return all(error.type in (_UNBOUND, *_MISNAMED) for error in parser.error_log)


def _prefixes(parser: etree.XMLParser) -> Iterator[Slip]:
    """Yield an error for each undeclared namespace prefix, at its first occurrence."""
    seen: set[str] = set()
    for error in parser.error_log:
        # lxml's messages are "Namespace prefix a on b is not defined" or "xmlns:a: ..."
        words = error.message.removeprefix("Namespace prefix ").removeprefix("xmlns:")
        prefix = words.split()[0].rstrip(":")
        if prefix not in seen:
            seen.add(prefix)
            fault = f"namespace prefix {prefix!r} is not declared"
            remedy = f'add xmlns:{prefix}="..." to the root element'
            yield Slip(error.line, fault, remedy)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
