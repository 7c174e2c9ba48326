"""Where the keys of a TOML file stand: `tomllib` gives values without their lines."""

import bisect
import re
from typing import Any

_HEADER = re.compile(r"\s*\[{1,2}\s*[\"']?([\w-]+)[\"']?\s*\]{1,2}\s*(#.*)?")


class Lines:
    """The lines of the headers and keys of a file, found in its text.

    A header or key that is written in no plain way (in an inline table, say) is not found, and then
    nothing is said: headers that do not number as many as the tables they should begin are not
    trusted.
    """

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        found = ((k, _HEADER.fullmatch(line.rstrip("\r"))) for k, line in enumerate(self._lines))
        self._headers: list[int] = []
        self._starts: dict[str, list[int]] = {}
        for k, match in found:
            if match:
                self._headers.append(k)
                self._starts.setdefault(match[1], []).append(k)

    def of(self, data: dict[str, Any], *path: str | int) -> int | None:
        """The line, from 1, of a key by its path: ("units", "angle"), ("joint", 2, "theta").

        data: the values of the file. Where a key has no line of its own, that of its table.
        """
        block, *rest = path
        starts = self._starts.get(str(block), [])
        value = data.get(str(block))
        expected = len(value) if isinstance(value, list) else 1
        if not starts or len(starts) != expected:
            return self._key(str(block), 0)
        start = starts[int(rest.pop(0))] if isinstance(value, list) and rest else starts[0]
        return (self._key(str(rest[0]), start + 1) if rest else None) or start + 1

    def _key(self, key: str, first: int) -> int | None:
        """The line of `key = ...` among those from `first` on, up to the next header."""
        pattern = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]")
        k = bisect.bisect_left(self._headers, first)
        last = self._headers[k] if k < len(self._headers) else len(self._lines)
        found = [k for k in range(first, last) if pattern.match(self._lines[k])]
        return found[0] + 1 if len(found) == 1 else None
