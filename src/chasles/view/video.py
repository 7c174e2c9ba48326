"""Record viewer videos and pictures with a headless browser."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from chasles.errors import FileError, InputError, ModelError
from chasles.view.pictures import PATIENCE, RATE, moving_picture, writer
from chasles.view.viewer import Viewer
from chasles.writing import check_target, whole

STILL = ".png"
"""File suffix for a picture."""

SUFFIXES = (".mp4", ".gif", STILL)
"""Supported file suffixes for videos and pictures."""

SIZE = (1280, 720)
"""Default video width and height (pixels)."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Commands of browsers that can record videos, in order of preference."""

FLAGS = (
    *("--headless=new", "--hide-scrollbars", "--mute-audio", "--no-first-run", "--disable-sync"),
    *("--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"),
    *("--disable-background-networking", "--disable-component-update", "--no-proxy-server"),
)
"""Browser flags: no window, software rendering if needed, and no connections to other hosts."""


def check_video(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Check, before recording, that a video or picture can be written to a path."""
    file = Path(path)
    if file.suffix.lower() not in SUFFIXES:
        problem = "unknown video or picture format"
        raise InputError(
            "E-VIEW-020", problem, f"use a file name ending in {', '.join(SUFFIXES)}", file=file
        )
    if not file.absolute().parent.is_dir():
        raise FileError(
            "E-VIEW-021", "the folder does not exist", "create the folder first", file=file.parent
        )
    check_target(file, overwrite=overwrite)
    _writer_package(file)
    _browser()
    return file


def record(
    viewer: Viewer,
    path: str | os.PathLike[str],
    *,
    rate: float = RATE,
    size: tuple[int, int] = SIZE,
    speed: float = 1.0,
    at: float | None = None,
    overwrite: bool = False,
    progress: Callable[[float], None] = lambda t: None,
) -> Path:
    """Record a video of the motion in a viewer, or save a picture of one of its configurations.

    Parameters
    ----------
    viewer : Viewer
        Viewer with a motion, from `robot.show(motion=...)`. A picture does not need a motion.
    path : path
        File to write: .mp4 or .gif for a video, .png for a picture.
    rate : float
        Video frame rate (frames per second).
    size : (int, int)
        Width and height in pixels.
    speed : float
        Seconds of motion per second of video.
    at : float, optional
        Time (s) of the motion at which a picture is taken; default: the start.
    overwrite : bool
        Replace an existing file.
    progress : callable
        Called with the motion time (s) after each frame.

    Returns
    -------
    pathlib.Path
        The file.

    Notes
    -----
    A headless Chromium or Chrome browser renders the images. The result does not depend on the
    speed of the machine.
    """
    file = check_video(path, overwrite=overwrite)
    playback, still = viewer.playback, file.suffix.lower() == STILL
    if playback is None and not still:
        problem = "the viewer has no motion to record"
        remedy = f"pass `motion`, or save a picture with a file name ending in {STILL}"
        raise InputError("E-VIEW-022", problem, remedy, part="record")
    if not (rate > 0.0 and speed > 0.0 and all(8 <= each <= 8192 for each in size)):
        problem = (
            "`rate` and `speed` must be positive, and both entries of `size` from 8 to 8192, "
            f"not rate={rate!r}, speed={speed!r}, size={size!r}"
        )
        raise InputError("E-VIEW-023", problem, part="record")
    width, height = (2 * (each // 2) for each in size)  # the encoder needs even sizes
    first, last = (0.0, 0.0) if playback is None else (playback.first, playback.last)
    if at is not None and not (still and first <= at <= last):
        problem = f"`at` must be between {first:.6g} and {last:.6g} s, and only for pictures"
        raise InputError("E-VIEW-033", problem, part="record")
    moments = np.arange(first, last + 0.5 * speed / rate, speed / rate)
    moments = np.array([first if at is None else at]) if still else moments
    with (
        whole(file, overwrite=overwrite) as part,
        page(viewer, (width, height)) as client,
        writer(part, file.suffix.lower(), rate, (width, height)) as add,
    ):
        for t in moments:
            if playback is not None:
                playback.go(float(t))
            view = viewer.stage.view
            add(moving_picture(client, width, height, lossless=still, view=view))
            progress(float(t))
    return file


@contextmanager
def page(viewer: Viewer, size: tuple[int, int]) -> Iterator[Any]:
    """Open a viewer's page in a headless browser; yield the viser client."""
    flags = [*FLAGS, "--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else [*FLAGS]
    flags.append("--window-size=500,400")  # smaller is faster; images may exceed the window
    known = set(viewer.server.get_clients())
    with (
        viewer.stage.recording(size, shadows=viewer.look.shadows is not False),
        tempfile.TemporaryDirectory(prefix="chasles-", ignore_cleanup_errors=True) as profile,
    ):
        command = [_browser(), *flags, f"--user-data-dir={profile}", viewer.url]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, stdout=quiet, stderr=quiet) as browser:
            try:
                yield _client(viewer, browser, known)
            finally:
                browser.terminate()
                with suppress(subprocess.TimeoutExpired):
                    browser.wait(5.0)
                browser.kill()


def _client(viewer: Viewer, browser: Any, known: set[int]) -> Any:
    """Wait until the browser has opened the page and reported its size; return the viser client."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and browser.poll() is None:
        for number, client in viewer.server.get_clients().items():
            if number not in known and client.camera.image_width > 0:
                return client
        time.sleep(0.05)
    problem = "the browser did not open the page"
    remedy = f"check that the program {command_name(browser)} runs on this computer"
    raise ModelError("E-VIEW-025", problem, remedy)


def command_name(browser: Any) -> str:
    """Return the program name of a browser process."""
    return os.path.basename(browser.args[0])


def _browser() -> str:
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    problem = "no browser for recording was found"
    raise ModelError("E-VIEW-026", problem, f"install one of {', '.join(BROWSERS[:3])}")


def _writer_package(file: Path) -> None:
    """Raise an error if the package that writes the video format is not installed."""
    try:
        if file.suffix.lower() == ".mp4":
            import imageio_ffmpeg  # noqa: F401
        else:
            import imageio  # noqa: F401
    except ImportError:
        remedy = "run pip install 'chasles[view]'"
        raise ModelError("E-VIEW-027", f"{file.suffix} files need imageio", remedy) from None


def parse_size(text: str) -> tuple[int, int]:
    """Parse a size such as 1280x720 into width and height."""
    parts: Sequence[str] = text.lower().split("x")
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        problem = f"the size must be WIDTHxHEIGHT in pixels, not {text!r}"
        raise InputError("E-VIEW-028", problem, "try 1280x720", part="--size")
    return int(parts[0]), int(parts[1])
