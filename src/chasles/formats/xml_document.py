"""XML documents from anywhere: parsed with bounds, without entities and without other files."""

import re

from lxml import etree

from chasles.model import ModelError


def parse(file: str, data: bytes) -> etree._Element:
    """The root of a document without entities, which could grow without bound."""
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
        raise ModelError(f"{file}:{error.lineno}: not readable XML: {fault}; correct it") from error
    if root.getroottree().docinfo.internalDTD is not None:
        raise _declares(file, data)
    return root


def _declares(file: str, data: bytes) -> ModelError:
    line = data.count(b"\n", 0, max(0, data.find(b"<!DOCTYPE"))) + 1
    return ModelError(
        f"{file}:{line}: document types and entities are not read; "
        "remove the DOCTYPE and write out what its entities stand for"
    )
