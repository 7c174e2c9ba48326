"""XML documents: parsed with bounds, without entities and without other files; and written."""

import re
from collections.abc import Iterable

from lxml import etree

from chasles.errors import ModelError
from chasles.expr import Number

MAX_BYTES = 8 * 2**20
"""Larger documents are refused unread: a robot's has less than one MB, shapes aside."""

MAX_MARKS = 500_000
"""Of "<" and "=" in a document, which bound its elements and attributes, of any encoding: an
element takes a hundred times the memory of its text. The largest model of dm_control has 24,000."""


def parse(file: str, data: bytes) -> etree._Element:
    """The root of a document without entities, which could grow without bound."""
    if len(data) > MAX_BYTES:
        raise _too_large(file, f"{len(data) / 2**20:.0f} MB of XML", f"{MAX_BYTES // 2**20} MB")
    marks = data.count(b"<") + data.count(b"=")
    if marks > MAX_MARKS:
        raise _too_large(file, f"{marks} signs of tags and attributes", f"{MAX_MARKS}")
    if b"<!ENTITY" in data:
        raise _declares(file, data)
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        fault = re.split(", line|, use XML_PARSE_HUGE", error.msg)[0]
        raise ModelError(
            "E-XML-001", f"not readable XML: {fault}", "correct it", file=file, line=error.lineno
        ) from error
    if root.getroottree().docinfo.internalDTD is not None:
        raise _declares(file, data)
    return root


def _too_large(file: str, size: str, most: str) -> ModelError:
    problem = f"{size}, and a robot file may have {most}"
    return ModelError("E-XML-002", problem, "check that this is the right file", file=file)


def _declares(file: str, data: bytes) -> ModelError:
    line = data.count(b"\n", 0, max(0, data.find(b"<!DOCTYPE"))) + 1
    problem = "document types and entities are not read"
    remedy = "remove the DOCTYPE and write out what its entities stand for"
    return ModelError("E-XML-003", problem, remedy, file=file, line=line)


# Writing ---------------------------------------------------------------------------------------


def words(numbers: Iterable[Number]) -> str:
    """Numbers with all their digits."""
    return " ".join(repr(float(x) + 0.0) for x in numbers)


def begun(tag: str, **attributes: str) -> etree._Element:
    """The first element of a document."""
    return _with(etree.Element(tag), attributes)


def added(parent: etree._Element, tag: str, **attributes: str) -> etree._Element:
    """A new element at the end of another one."""
    return _with(etree.SubElement(parent, tag), attributes)


def _with(element: etree._Element, attributes: dict[str, str]) -> etree._Element:
    for key, value in attributes.items():
        try:
            element.set(key, value)
        except ValueError:
            problem = f"{element.tag} {key} {value!r}: XML has no such characters"
            raise ModelError("E-XML-004", problem, "give it another name") from None
    return element


def printed(root: etree._Element) -> str:
    """The document, an element a line."""
    etree.indent(root)
    text: str = etree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'
