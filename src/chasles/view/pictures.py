"""Take screenshots of a viewer page, and write them to video and picture files."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from chasles.errors import ModelError, said
from chasles.view.stage import View

RATE = 30.0
"""Default frame rate of an .mp4 file (frames per second)."""

PATIENCE = 60.0
"""Time limit (s) for rendering one image."""

TINY = (16, 9)
"""Width and height (pixels) of the small image that `moving_picture` renders first."""


def picture(
    client: Any, width: int, height: int, *, lossless: bool = False, view: View | None = None
) -> np.ndarray:
    """Render a page, and return an RGB image (height, width, 3).

    A lossless image takes longer to transfer; others are compressed as JPEG. The default view is
    the one that the page last reported, which can be an intermediate one while the page loads.
    """
    chosen = {} if view is None else view._asdict()
    kind = "png" if lossless else "jpeg"
    try:
        drawn = client.get_render(height, width, transport_format=kind, timeout=PATIENCE, **chosen)
    except Exception as error:  # viser and its futures raise various exceptions
        problem = f"the browser did not render an image ({said(error)})"
        raise ModelError("E-VIEW-024", problem, "try a smaller size") from error
    return opaque(np.asarray(drawn))


def opaque(image: np.ndarray) -> np.ndarray:
    """Return an RGB image (height, width, 3) on a white background from an RGB or RGBA image."""
    share = image[..., 3:] / 255.0 if image.shape[-1] == 4 else 1.0
    return np.ascontiguousarray(np.rint(255.0 + share * (image[..., :3] - 255.0)).astype(np.uint8))


def moving_picture(
    client: Any, width: int, height: int, *, lossless: bool = False, view: View | None = None
) -> np.ndarray:
    """Render a page with the latest poses.

    A small image is rendered first, because a busy page can lag by one frame.
    """
    client.flush()
    picture(client, *TINY, view=view)
    return picture(client, width, height, lossless=lossless, view=view)


@contextmanager
def writer(
    part: Path, suffix: str, rate: float, size: tuple[int, int]
) -> Iterator[Callable[[np.ndarray], object]]:
    """Open a video or picture file; yield a function that appends an image (height, width, 3)."""
    if suffix == ".mp4":
        from imageio_ffmpeg import write_frames

        kept = {"macro_block_size": 2, "quality": 8, "output_params": ["-f", "mp4"]}
        stream = write_frames(str(part), size, fps=rate, **kept)
        stream.send(None)
        try:
            yield lambda picture: stream.send(picture.tobytes())
        finally:
            stream.close()
        return
    import imageio.v3 as imageio

    with imageio.imopen(part, "w", plugin="pillow", extension=suffix) as opened:
        count = itertools.count(1)

        def add(picture: np.ndarray) -> None:
            timing = {"duration": durations(next(count), rate), "loop": 0}
            opened.write(picture, **(timing if suffix == ".gif" else {}))  # the last list is used

        yield add


def durations(count: int, rate: float) -> list[int]:
    """Return the durations (ms) of `count` frames of a GIF.

    GIF files store durations in hundredths of a second. The end of each frame is rounded, so that
    rounding errors do not accumulate.
    """
    ends = np.rint(np.arange(count + 1) * 100.0 / rate).astype(int)
    return [10 * each for each in np.diff(ends).tolist()]
