"""Robot files, read and written by the format that their suffix names."""

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
