"""Measure the speed of the viewer: time to the first frame, updates, and rendered frames."""

import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import chasles
from benchmarks.browser import COUNT_PICTURES, chromium
from chasles.view import Viewer, show

PAGE = (720, 480)
"""Width and height of the page in pixels. The rendering time is proportional to its area."""

WAIT = 60_000.0
"""Maximum time (ms) to the first frame."""


@dataclass(frozen=True)
class Seen:
    """Measurements for a robot that plays a motion in a browser.

    Attributes
    ----------
    first : float
        Time (s) from the page request to the first frame with all triangles.
    updates : float
        Updates per second that the server applies.
    pictures : float
        Frames per second that the page renders.
    server, browser : float
        Processor time (s) of the server per update, and of the browser per frame.
    """

    first: float
    updates: float
    pictures: float
    server: float
    browser: float

    def better(self, other: "Seen") -> "Seen":
        """Return the better value of each measurement. Other programs only make values worse."""
        return Seen(
            min(self.first, other.first),
            max(self.updates, other.updates),
            max(self.pictures, other.pictures),
            min(self.server, other.server),
            min(self.browser, other.browser),
        )


def measure(robot: chasles.Robot, rounds: int, seconds: float) -> Seen:
    """Return the best values of several rounds, each on a new page of the same browser."""
    with TemporaryDirectory() as folder, chromium() as browser:
        motion = swaying(robot, Path(folder) / "motion.npz")
        found = one_round(browser, robot, motion, seconds)
        for _ in range(rounds - 1):
            found = found.better(one_round(browser, robot, motion, seconds))
    return found


def swaying(robot: chasles.Robot, file: Path) -> Path:
    """Write a motion of two seconds, in which all joints move, to a file; return its path."""
    t = np.linspace(0.0, 2.0, 61)
    way = 0.3 * np.sin(np.pi * t)[:, None] * np.ones(robot.nv)
    q = robot.integrate(np.tile(robot.neutral(), (len(t), 1)), way)
    np.savez(file, t=t, q=q, format=np.array("chasles-motion-1"))
    return file


def one_round(browser: Any, robot: chasles.Robot, motion: Path, seconds: float) -> Seen:
    """Measure a page that plays a motion for the given time (s)."""
    tab = browser.new_page(viewport={"width": PAGE[0], "height": PAGE[1]})
    system = browser.new_browser_cdp_session()
    with show(robot, motion=motion, port=0) as viewer:
        tab.add_init_script(f"window.wanted = {_corners(viewer)};" + COUNT_PICTURES)
        tab.goto(viewer.url)
        until = time.monotonic() + WAIT / 1e3
        while tab.evaluate("window.first") is None:  # the page blocks wait_for_function
            assert time.monotonic() < until, f"no frame of {robot.name} was rendered"
            tab.wait_for_timeout(20.0)
        first = tab.evaluate("window.first") / 1e3
        assert viewer.playback is not None, "a motion was given"
        viewer.playback.play(True)
        tab.wait_for_timeout(500.0)
        before = _counts(tab, system, viewer)
        tab.wait_for_timeout(1e3 * seconds)
        passed, updates, pictures, server, drawing = _counts(tab, system, viewer) - before
        tab.close()
    if not (updates and pictures):
        raise RuntimeError(f"{robot.name}: {updates:g} updates, {pictures:g} frames")
    return Seen(first, updates / passed, pictures / passed, server / updates, drawing / pictures)


def _corners(viewer: Viewer) -> int:
    """Return the number of vertices of all triangles of the robot."""
    return 3 * sum(len(node.faces) for node, _ in viewer.figures[0].shapes)


def _counts(tab: Any, system: Any, viewer: Viewer) -> np.ndarray:
    """Return time, updates, frames, and processor times of this process and of the browser."""
    assert viewer.playback is not None, "a motion was given"
    drawn = tab.evaluate("window.drawn")
    processes = system.send("SystemInfo.getProcessInfo")["processInfo"]
    spent = sum(process["cpuTime"] for process in processes)
    return np.array(
        [time.monotonic(), viewer.playback.frames, drawn, time.process_time(), float(spent)]
    )
