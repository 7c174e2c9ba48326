"""Additions to the viewer page, and its content security policy."""

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from chasles.errors import ModelError

_ALPHABET = bytes(c for c in range(0x21, 0x7F) if c not in b"\"&<>'`")
_DIGITS = np.zeros(256, dtype=np.int64)
_DIGITS[list(_ALPHABET)] = np.arange(len(_ALPHABET))

_SCRIPT = re.compile(rb"<script([^>]*)>(.*?)</script>", re.DOTALL)


STYLE = b"""
.mantine-Slider-root + .mantine-NumberInput-root { width: 3.9rem !important }
div:has(> .mantine-Text-root > label):has(+ div .mantine-Checkbox-root) { width: 11em !important }
.mantine-Text-root:has(> label) {
  overflow: hidden !important; text-overflow: ellipsis !important; white-space: nowrap !important
}
.mantine-Text-root > label > wbr { display: none !important }
div:has(> .mantine-Text-root > label):has(+ div .mantine-Slider-root) { width: 8em !important }
.mantine-Slider-markWrapper:first-of-type .mantine-Slider-markLabel {
  transform: translate(-0.1rem, 0.03rem) !important
}
.mantine-Slider-markWrapper:last-of-type .mantine-Slider-markLabel {
  transform: translate(-85%, 0.03rem) !important
}
.mantine-Slider-markLabel { color: var(--mantine-color-dimmed) !important }
.mantine-Button-root:not([data-variant=default]) {
  --button-bg: #1b6ec2 !important; --button-hover: #1760ab !important
}
:root[data-mantine-color-scheme=light] { --mantine-color-dimmed: #5c636a !important }
:root[data-mantine-color-scheme=dark] { --mantine-color-dimmed: #a6a9ad !important }
"""
"""Style sheet that widens number fields next to sliders and the labels of sliders and check boxes,
keeps labels on one line, and gives labels and buttons enough contrast (WCAG 2.1, 1.4.3)."""

SCRIPT = b"""
const page = document.documentElement
const typed = "textarea, input:not([type=checkbox])"
const release = event => {
  const used = document.activeElement
  const chosen = event.type === "click" && event.target.closest("[role=option]")
  if (chosen || !used?.matches(typed)) used?.blur()
}
addEventListener("pointerup", release)
addEventListener("click", event => setTimeout(release, 0, event))  // after a label or a menu
page.addEventListener("keydown", event => {
  if (["ArrowLeft", "ArrowRight"].includes(event.key)) event.stopPropagation()
})
const handle = "[style*='cursor: pointer'][style*='height: 3.5em']"
if (matchMedia("(max-width: 36em)").matches) new MutationObserver((_, observer) => {
  const found = page.querySelector(handle)
  if (found) { observer.disconnect(); found.click() }
}).observe(page, { childList: true, subtree: true })
"""
"""Script that makes the keys work after a click, and closes the panel at the start on a phone.

Keys go to a control that has been clicked, so the control loses the focus, unless it is a text
field. The arrow keys step through the motion, so they must not turn the camera as well. Below 36 em
(576 pixels), viser shows its panel over the scene, at the bottom.
"""

ADDED = b"<style>" + STYLE + b"</style><script>" + SCRIPT + b"</script>"
"""HTML code that is appended to viser's page."""

NOTHING = "default-src 'none'; frame-ancestors 'none'"
"""Content security policy of all responses other than the viewer page."""


def policy(scripts: Sequence[str], host: str, frames: Sequence[str]) -> str:
    """Return the content security policy of a page served from `host`.

    Only pages from the same origin or from an origin in `frames` can embed the page. Only scripts
    whose hashes are in `scripts` can run. The page cannot evaluate strings as code or connect to
    other hosts.
    """
    rules = {
        "default-src": "'none'",
        "script-src": " ".join([*scripts, "'wasm-unsafe-eval'"]),
        "style-src": "'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "data:",
        "connect-src": f"'self' ws://{host} wss://{host} data: blob:",
        "worker-src": "blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": " ".join(["'self'", *frames]),
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


@cache
def hashes(page: Path) -> tuple[str, ...]:
    """Return the hashes of all scripts in a page and in `ADDED`, as text for the policy.

    Raises `chasles.ModelError` if the scripts cannot be found in the page.
    """
    import zstandard

    try:
        scripts = list(_scripts(page.read_bytes() + ADDED))
    except (OSError, zstandard.ZstdError):
        scripts = []
    if len(scripts) < 3:
        import viser

        problem = f"viser {viser.__version__} is not supported"
        raise ModelError("E-VIEW-008", problem, "run pip install 'chasles[view]'")
    digests = (hashlib.sha256(script).digest() for script in scripts)
    return tuple(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def _scripts(page: bytes) -> Iterator[bytes]:
    """Yield the scripts in a page, including the script that its loader unpacks.

    viser compresses the style sheet and the script with zstandard, and stores them in base 88 in an
    attribute of the loader.
    """
    import zstandard

    for attributes, script in _SCRIPT.findall(page):
        yield script
        packed = re.search(rb'data-p="([^"]*)" data-ss="(\d+)" data-cs="(\d+)"', attributes)
        if packed:
            style, code = int(packed[2]), int(packed[3])
            frame = unpacked(packed[1])
            both = zstandard.ZstdDecompressor().decompress(frame, max_output_size=style + code)
            yield both[style : style + code]


def unpacked(text: bytes) -> bytes:
    """Decode base 88.

    Five characters encode four bytes. A shorter last group of n characters encodes n - 1 bytes.
    """
    digits = _DIGITS[np.frombuffer(text, dtype=np.uint8)]
    whole = len(digits) // 5 * 5
    words = digits[:whole].reshape(-1, 5) @ 88 ** np.arange(4, -1, -1)
    last, rest = 0, digits[whole:].tolist()
    for digit in rest:
        last = 88 * last + digit
    return words.astype(">u4").tobytes() + last.to_bytes(max(len(rest) - 1, 0), "big")
