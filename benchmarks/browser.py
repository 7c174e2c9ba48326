"""Chromium without a screen or graphics card, controlled by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

SOFTWARE = (
    *("--no-sandbox", "--headless=new", "--use-gl=angle", "--use-angle=swiftshader"),
    *("--enable-unsafe-swiftshader", "--no-proxy-server"),
)
"""Chromium flags: rendering on the CPU, and no proxy server."""

COUNT_PICTURES = """
window.drawn = 0; window.corners = 0; let frame = 0, last = -1;
const tick = () => { frame++; requestAnimationFrame(tick); };
requestAnimationFrame(tick);
for (const [name, which] of [["drawElements", 1], ["drawArrays", 2]]) {
  const original = WebGL2RenderingContext.prototype[name];
  WebGL2RenderingContext.prototype[name] = function (...rest) {
    if (frame !== last) { last = frame; window.drawn++; window.corners = 0; }
    window.corners += rest[which];
    if (window.corners >= (window.wanted ?? 1)) window.first ??= performance.now();
    return original.apply(this, rest);
  };
}
"""
"""Script for a page that counts rendered frames (`drawn`) and vertices of the last one (`corners`).

`first` is the time (ms after the page request) of the first frame with at least `wanted` vertices.
"""


@contextmanager
def chromium(*flags: str) -> Iterator[Any]:
    """Start a browser with additional flags, and close it at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=[*SOFTWARE, *flags])
        try:
            yield browser
        finally:
            browser.close()
