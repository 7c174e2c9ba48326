"""How fast a robot is seen: the first picture, updates of the server, pictures of the page."""

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
"""Width and height in pixels: what the processor draws with takes time in proportion."""

WAIT = 60_000.0
"""Milliseconds for a first picture at most."""


@dataclass(frozen=True)
class Seen:
    """Of a robot that plays a motion in a browser.

    first: seconds from the page's request to a picture with all of its triangles. updates: that the
    server applied in a second. pictures: that the page drew in a second. server, browser: seconds
    of processor time for one update, and for one picture.
    """

    first: float
    updates: float
    pictures: float
    server: float
    browser: float

    def better(self, other: "Seen") -> "Seen":
        """The best of two, number by number: other work on the machine only makes them worse."""
        return Seen(
            min(self.first, other.first),
            max(self.updates, other.updates),
            max(self.pictures, other.pictures),
            min(self.server, other.server),
            min(self.browser, other.browser),
        )


def measure(robot: chasles.Robot, rounds: int, seconds: float) -> Seen:
    """The best of several rounds, each on a page of its own, all in one browser."""
    with TemporaryDirectory() as folder, chromium() as browser:
        motion = swaying(robot, Path(folder) / "motion.npz")
        found = one_round(browser, robot, motion, seconds)
        for _ in range(rounds - 1):
            found = found.better(one_round(browser, robot, motion, seconds))
    return found


def swaying(robot: chasles.Robot, file: Path) -> Path:
    """A motion of two seconds in which every joint moves, written as a file."""
    t = np.linspace(0.0, 2.0, 61)
    way = 0.3 * np.sin(np.pi * t)[:, None] * np.ones(robot.nv)
    q = robot.integrate(np.tile(robot.neutral(), (len(t), 1)), way)
    np.savez(file, t=t, q=q, format=np.array("chasles-motion-1"))
    return file


def one_round(browser: Any, robot: chasles.Robot, motion: Path, seconds: float) -> Seen:
    """Of a page that plays a motion for some seconds."""
    tab = browser.new_page(viewport={"width": PAGE[0], "height": PAGE[1]})
    system = browser.new_browser_cdp_session()
    with show(robot, motion=motion, port=0) as viewer:
        tab.add_init_script(f"window.wanted = {_corners(viewer)};" + COUNT_PICTURES)
        tab.goto(viewer.url)
        until = time.monotonic() + WAIT / 1e3
        while tab.evaluate("window.first") is None:  # the page's policy refuses wait_for_function
            assert time.monotonic() < until, f"no picture of {robot.name}"
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
        raise RuntimeError(f"{robot.name}: {updates:g} updates, {pictures:g} pictures")
    return Seen(first, updates / passed, pictures / passed, server / updates, drawing / pictures)


def _corners(viewer: Viewer) -> int:
    """Of all triangles of the robot."""
    return 3 * sum(len(node.faces) for node, _ in viewer.figures[0].shapes)


def _counts(tab: Any, system: Any, viewer: Viewer) -> np.ndarray:
    """The time, updates, pictures, and processor times of this process and of the browser's."""
    assert viewer.playback is not None, "a motion was given"
    drawn = tab.evaluate("window.drawn")
    processes = system.send("SystemInfo.getProcessInfo")["processInfo"]
    spent = sum(process["cpuTime"] for process in processes)
    return np.array(
        [time.monotonic(), viewer.playback.frames, drawn, time.process_time(), float(spent)]
    )
