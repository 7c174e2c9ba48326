"""Read and write robot files; the suffix of a file determines its format."""

from chasles.formats.files import (
    FORMATS,
    Format,
    endings,
    inputs,
    is_name,
    read,
    row_of,
    suffixes,
    write,
    written,
)

__all__ = [
    "FORMATS",
    "Format",
    "endings",
    "inputs",
    "is_name",
    "read",
    "row_of",
    "suffixes",
    "write",
    "written",
]
