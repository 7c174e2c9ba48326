"""A motion and its playing: positions between instants, a time bar, play, pause and speed."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chasles.formats import motion as motions
from chasles.robot import Robot
from chasles.view.panel import Panel

RATE = 30.0
"""Pictures in a second; also instants, of a motion that has no times."""

PANEL_RATE = 3.0
"""How often in a second sliders follow a motion: a page takes longer for thirty than to draw."""

SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4", "10")


@dataclass(frozen=True)
class Motion:
    """Positions q (n, nq) at times t (n,), in s, none before the one above it."""

    t: np.ndarray
    q: np.ndarray

    def at(self, robot: Robot, t: float) -> np.ndarray:
        """The configuration at a time, on the way that is straight between instants."""
        k = int(np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 1))
        after = min(k + 1, len(self.t) - 1)
        span = self.t[after] - self.t[k]
        if not span > 0.0 or t <= self.t[k]:
            return np.array(self.q[k])
        share = min((t - self.t[k]) / span, 1.0)
        return robot.integrate(self.q[k], share * robot.difference(self.q[k], self.q[after]))


def read(path: Path, robot: Robot) -> Motion:
    """The motion of a file of `chasles simulate` (or its folder), or of one that docs/motion.md
    describes."""
    path = path / "motion.npz" if path.is_dir() else path
    if path.suffix.lower() == ".npz":
        return Motion(*motions.read_archive(path, robot.nq))
    chunks = list(motions.read(path, robot.model))
    q = np.concatenate([chunk.q for chunk in chunks])
    times = [chunk.t for chunk in chunks if chunk.t is not None]
    return Motion(np.concatenate(times) if times else np.arange(len(q)) / RATE, q)


class Playback:
    """A motion that the robots of panels play; `lock` is held while they move.

    clock: the time it stands at, in s. frames: how many pictures it has played.
    """

    def __init__(self, server: Any, motion: Motion, panels: Sequence[Panel], lock: Any) -> None:
        self.motion, self.panels, self._lock = motion, panels, lock
        self.first, self.last = float(motion.t[0]), float(motion.t[-1])
        self.clock, self.playing, self.frames = self.first, False, 0
        self._end = threading.Event()
        with server.gui.add_folder("Motion"):
            self.button = server.gui.add_button("Play")
            self.bar = server.gui.add_slider(
                "Time, s",
                min=self.first,
                max=max(self.last, self.first + 1e-6),
                step=max((self.last - self.first) / 1000.0, 1e-9),
                initial_value=self.first,
            )
            self.speed = server.gui.add_dropdown("Speed", SPEEDS, initial_value="1")
            self.repeat = server.gui.add_checkbox("Repeat", initial_value=True)
        self.button.on_click(lambda _: self.play(not self.playing))
        self.bar.on_update(self._dragged)
        self.go(self.first)
        self._thread = threading.Thread(target=self._run, daemon=True, name="chasles playback")
        self._thread.start()

    def play(self, wanted: bool) -> None:
        """Play, from the start if the end was reached; or pause."""
        if wanted and self.clock >= self.last:
            self.clock = self.first
        self.playing = wanted
        self.button.label = "Pause" if wanted else "Play"
        if not wanted:
            self._refresh()

    def go(self, t: float) -> None:
        """Put all figures where the motion is at a time."""
        self._move(t)
        self._refresh()

    def _move(self, t: float) -> None:
        self.clock = min(max(t, self.first), self.last)
        with self._lock:
            for panel in self.panels:
                figure = panel.figure
                figure.move(self.motion.at(figure.whole, self.clock), self.clock)

    def _refresh(self) -> None:
        with self._lock:
            for panel in self.panels:
                panel.refresh()
            self.bar.value = self.clock

    def stop(self) -> None:
        """End the thread that plays."""
        self._end.set()
        self._thread.join(timeout=2.0)

    def _dragged(self, event: Any) -> None:
        if event.client is not None:
            self.go(float(self.bar.value))

    def _run(self) -> None:
        last = due = time.monotonic()
        while not self._end.wait(max(0.0, due - time.monotonic())):
            now = time.monotonic()
            passed, last, due = now - last, now, max(due + 1.0 / RATE, now)
            if not self.playing:
                continue
            t = self.clock + passed * float(self.speed.value)
            if t > self.last and self.repeat.value:
                t = self.first
            self._move(t)
            self.frames += 1
            if self.frames % round(RATE / PANEL_RATE) == 0:
                self._refresh()
            if t >= self.last:
                self.play(False)
