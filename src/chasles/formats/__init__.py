"""Read and write robot files; a file's suffix determines its format."""

from chasles.formats.files import (
    FORMATS,
    Format,
    a_path,
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
    "a_path",
    "endings",
    "inputs",
    "is_name",
    "read",
    "row_of",
    "suffixes",
    "write",
    "written",
]
