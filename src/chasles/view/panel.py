"""Control panel of the viewer page: joint sliders, overlays and motion playback."""

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from chasles.errors import ArgumentError, InputError, said, shown
from chasles.formats import archive
from chasles.formats import motion as motions
from chasles.functions.doors import numbers
from chasles.motion.contact.points import contact_points, fixed_planes
from chasles.motion.records import Trajectory
from chasles.robot import Robot
from chasles.trajectory import Move
from chasles.view.figure import Figure
from chasles.view.graphs import Efforts, Graphs, simulated
from chasles.view.overlays import OVERLAYS, ContactForces, Manipulability, Overlay, Target, Trace
from chasles.view.posture import displacement, freedoms, moved

RESOLUTION = 1000
"""Number of steps in the range of a slider."""

SAMPLES = 24
"""Number of evenly spaced states of a motion to which the camera is fitted."""

RATE = 30.0
"""Playback frame rate (1/s), also used as the sampling rate of motions without times."""

PANEL_RATE = 3.0
"""Update rate (1/s) of the sliders during playback. A higher rate slows down rendering."""

DIGITS = 4
"""Number of decimal places in the number fields next to the sliders (more for a small range)."""

LONGEST = 17
"""Maximum number of characters of a slider's label, which must fit on one line."""

SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4", "10")
FORMATS = (".mp4", ".gif")


def _slider(
    server: Any, label: str, span: tuple[float, float], value: float, disabled: bool = False
) -> Any:
    """Add a slider with a number field. `span` contains the ends of the range."""
    step, short = (span[1] - span[0]) / RESOLUTION, shortened(label)
    made = server.gui.add_slider(
        short,
        min=span[0],
        max=span[1],
        step=step,
        initial_value=value,
        disabled=disabled,
        marks=tuple((end, f"{end:.4g}") for end in span),
        hint=None if short == label else label,
    )
    made.precision = max(DIGITS, math.ceil(-math.log10(step)))
    return made


def shortened(label: str) -> str:
    """Replace the middle of a label by an ellipsis if it has more than `LONGEST` characters.

    The start and the end, with the unit, usually distinguish joints such as left_shoulder_roll and
    right_shoulder_yaw.
    """
    if len(label) <= LONGEST:
        return label
    end = LONGEST // 2
    return f"{label[: LONGEST - 1 - end]}\N{HORIZONTAL ELLIPSIS}{label[-end:]}"


class Panel:
    """Control panel for one robot. Only sliders for independent coordinates are enabled.

    `figure` is the drawing of the robot. Methods hold `lock` while they change the drawing.
    """

    def __init__(self, server: Any, figure: Figure, lock: Any) -> None:
        self.figure, self.lock = figure, lock
        robot = figure.robot
        self.freedoms = freedoms(robot)
        self.selected: str | None = None
        self.boxes: dict[str, Any] = {}
        active = set(robot.independent_positions)
        with server.gui.add_folder(shown(figure.whole.name)):
            # A text input shows names verbatim; Markdown and HTML would interpret them as markup.
            self.message = server.gui.add_text(
                "Values", "", multiline=True, disabled=True, visible=False
            )
            with server.gui.add_folder("Show", expand_by_default=False):
                self.overlays = [self._overlay(server, kind(figure)) for kind in OVERLAYS]
            with server.gui.add_folder("Joints"):
                reset = server.gui.add_button("Start position")
                self.sliders = [
                    _slider(
                        server,
                        f"{shown(freedom.name)}, {freedom.unit}",
                        (freedom.lower, freedom.upper),
                        freedom.shown(0.0),
                        disabled=freedom.name not in active,
                    )
                    for freedom in self.freedoms
                ]
        figure.clicked = self._select
        for k, slider in enumerate(self.sliders):
            slider.on_update(partial(self._dragged, k))
        reset.on_click(lambda _: self.go(figure.start))
        self.refresh()

    def _overlay(self, server: Any, overlay: Overlay) -> Overlay:
        box = server.gui.add_checkbox(overlay.label, initial_value=False)
        self.boxes[overlay.label] = box
        if isinstance(overlay, Target):
            overlay.dragged = partial(self._follow, overlay)
        if isinstance(overlay, Manipulability | Target | Trace):
            names = self.figure.whole.frames
            menu = server.gui.add_dropdown("of frame", names, initial_value=overlay.frame)
            menu.on_update(lambda _: self._choose(overlay, menu.value))
        box.on_update(lambda _: self.show(overlay, box.value))
        self.figure.overlays.append(overlay)
        return overlay

    def show(self, overlay: Overlay, wanted: bool) -> None:
        """Show or hide an overlay."""
        with self.lock:
            overlay.show(wanted)
            self.refresh()

    def _follow(self, target: Target, phase: str) -> None:
        """Move the robot to follow a dragged target."""
        with self.lock:
            trouble = ""
            try:
                target.follow(phase)
            except ValueError as error:
                trouble = f"Target not reachable: {said(error)}"
            self.refresh(trouble)

    def _choose(self, overlay: Manipulability | Target | Trace, frame: str) -> None:
        with self.lock:
            overlay.frame = frame
            overlay.show(overlay.wanted)
            self.refresh()

    def _select(self, link: str) -> None:
        """Show a description of a clicked link."""
        with self.lock:
            self.selected = link
            self.refresh()

    def go(self, q: np.ndarray) -> None:
        """Move the robot to a configuration."""
        with self.lock:
            self.figure.move(q)
            self.refresh()

    def _dragged(self, k: int, event: Any) -> None:
        if event.client is None:  # the value was set by `refresh`, not by the user
            return
        with self.lock:
            figure, trouble = self.figure, ""
            try:
                value = self.freedoms[k].within(float(self.sliders[k].value))
                figure.move(moved(figure.robot, figure.q, k, value))
            except ValueError as error:
                trouble = f"Target not reachable: {said(error)}"
            self.refresh(trouble)

    def refresh(self, trouble: str = "") -> None:
        """Update the sliders and the text field, which also shows the error message `trouble`."""
        values = displacement(self.figure.robot, self.figure.q)
        for slider, freedom, value in zip(self.sliders, self.freedoms, values, strict=True):
            position = freedom.shown(float(value))
            visible = abs(position) >= 0.5 * 10.0**-slider.precision  # avoids -0.0000
            slider.value = position if visible else 0.0
        said = [f"{o.label}: {o.said}" for o in self.overlays if o.wanted and o.said]
        link = self.selected
        about = "" if link is None else described(self.figure.robot, self.figure.q, link)
        self.message.value = "\n".join(filter(None, [trouble, about, *said]))
        self.message.visible = bool(self.message.value)


def described(robot: Robot, q: np.ndarray, link: str) -> str:
    """Describe a link by name, mass, joint and the position of its frame in configuration q.

    An empty name stands for the world.
    """
    if not link:
        return "Fixed to the world"
    model = robot.model
    data = next(each for each in model.source.links if each.name == link)
    above = next((each for each in model.source.joints if each.child == link), None)
    joint = f", carried by {above.kind} joint {shown(above.name)}" if above else ""
    origin = robot.forward_kinematics(q, frame=link)[:3, 3].round(6) + 0.0
    place = "({:.4g}, {:.4g}, {:.4g}) m".format(*origin)
    mass = f"{float(data.inertia.m):.4g} kg"
    return f"Link {shown(link)}: {mass}{joint}\nFrame {shown(link)}: origin at {place}"


# Playback -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Motion:
    """Positions q (n, nq) at non-decreasing times t (n,), in s.

    `points` are the contact points (n, count, 3) in m, and `forces` are the forces on the robot in
    N, if known. `efforts` returns the joint torques, or None if they are not known.
    `planes` (n, 2, 3) are points (m) and unit normals of the contact planes of the world, if known.
    """

    t: np.ndarray
    q: np.ndarray
    points: np.ndarray | None = None
    forces: np.ndarray | None = None
    efforts: Callable[[], Efforts | None] = lambda: None
    planes: np.ndarray | None = None

    def at(self, robot: Robot, t: float) -> np.ndarray:
        """Return the configuration interpolated at time t."""
        share, k = math.modf(np.interp(t, self.t, np.arange(len(self.t))))
        here = np.array(self.q[int(k)])
        if share == 0.0:
            return here
        return robot.integrate(here, share * robot.difference(here, self.q[int(k) + 1]))

    def samples(self, robot: Robot) -> list[tuple[np.ndarray, float]]:
        """Return evenly spaced configurations and their times (s), including both ends."""
        times = np.linspace(self.t[0], self.t[-1], SAMPLES)
        return [(self.at(robot, float(t)), float(t)) for t in times]

    def felt(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Return contact points and forces (count, 3) at the last stored time up to t."""
        if self.points is None or self.forces is None:
            return np.zeros((0, 3)), np.zeros((0, 3))
        k = max(int(np.searchsorted(self.t, t, side="right")) - 1, 0)
        return self.points[k], self.forces[k]


CONTACT = ("contact_points", "contact_forces")
"""Names of the contact arrays in a simulation's motion file."""


def read(given: str | os.PathLike[str] | Move | Trajectory, robot: Robot) -> Motion:
    """Return a motion from a motion file, a simulation or a trajectory.

    docs/motion.md describes motion files. A simulation is the result of `robot.simulate` or
    `robot.rollout`, or the file or folder that `chasles simulate` writes.
    """
    if isinstance(given, Move):
        t = given.times(1.0 / RATE)
        return Motion(t, numbers("motion", given(t, 0)[0], robot.nq))
    if isinstance(given, Trajectory):
        q = numbers("motion", given.q, robot.nq)
        if q.ndim != 2:
            problem = f"`motion` is a batch of simulations, with q of shape {q.shape}"
            remedy = "pass a single simulation, such as dataclasses.replace(run, q=run.q[0])"
            raise InputError("E-VIEW-032", problem, remedy, part="show")
        t, pressed = np.asarray(given.t, dtype=float), _pressed(given, robot, q)
        return Motion(
            t, q, *pressed, partial(simulated, given, robot), fixed_planes(given.contacts)
        )
    if not isinstance(given, str | os.PathLike):
        problem = f"`motion` cannot be of type {type(given).__name__}"
        remedy = "pass a file, a result of `simulate`, or chasles.trajectory.spline(t, q)"
        raise ArgumentError("E-VIEW-031", problem, remedy, part="show")
    chunks = list(motions.read(given, robot.model))
    q = np.concatenate([chunk.q for chunk in chunks])
    times = [chunk.t for chunk in chunks if chunk.t is not None]
    t = np.concatenate(times) if times else np.arange(len(q)) / RATE
    file = motions.motion_file(given)
    tau = _arrays(file, ("tau",))
    known = Efforts(t, tau[0]) if tau and tau[0].shape == (len(t), robot.nv) else None
    (planes,) = _arrays(file, ("contact_planes",)) or (None,)
    if planes is not None and planes.shape != (len(planes), 2, 3):
        planes = None
    return Motion(t, q, *_felt(file, len(t)), lambda: known, planes)


Pressed = tuple[np.ndarray | None, np.ndarray | None]
"""Contact points and forces, or (None, None) if they are not known."""


def _pressed(run: Trajectory, robot: Robot, q: np.ndarray) -> Pressed:
    """Return contact points and forces of a simulation."""
    if run.touching is None:
        return None, None
    forces = np.asarray(run.touching.forces, dtype=float)
    stepped, count = run.iterations is not None, forces.shape[1]
    points = contact_points(robot.model, run.contacts, q, count=count, stepped=stepped)
    return (None, None) if points is None else (points, forces)


def _arrays(file: str, names: Sequence[str]) -> tuple[np.ndarray, ...]:
    """Read arrays of a simulation file. If the file lacks an array, return ()."""
    if os.path.splitext(file)[1].lower() != ".npz":
        return ()
    try:
        arrays = archive.arrays(file, names)
        return tuple(np.asarray(arrays[name], dtype=float) for name in names)
    except (ValueError, TypeError):
        return ()


def _felt(file: str, count: int) -> Pressed:
    """Read contact points and forces from a simulation file."""
    found = _arrays(file, CONTACT)
    if not found:
        return None, None
    points, forces = found
    fits = points.shape == forces.shape == (count, *points.shape[1:2], 3)
    return (points, forces) if fits and np.isfinite(forces).all() else (None, None)


class Playback:
    """Playback of a motion on one or more robots.

    Methods hold `lock` while they change the drawings. `clock` is the current time (s). `frames` is
    the number of frames shown so far. `film` is a button that records a video, and `format` a menu
    with its file suffix. `filming` is a lock that prevents concurrent recordings.
    """

    def __init__(self, server: Any, motion: Motion, panels: Sequence[Panel], lock: Any) -> None:
        self.motion, self.panels, self._lock = motion, panels, lock
        self.first, self.last = float(motion.t[0]), float(motion.t[-1])
        self.clock, self.playing, self.frames = self.first, False, 0
        self._end, self.filming = threading.Event(), threading.Lock()
        for panel in panels:
            panel.figure.felt = motion.felt
            if motion.points is not None:
                panel.boxes[ContactForces.label].value = True  # setting the value calls `show`
        with server.gui.add_folder("Motion"):
            self.button = server.gui.add_button("Play")
            span = (self.first, max(self.last, self.first + 1e-6))
            self.bar = _slider(server, "Time, s", span, self.first)
            self.speed = server.gui.add_dropdown("Speed", SPEEDS, initial_value="1")
            self.repeat = server.gui.add_checkbox("Repeat", initial_value=True)
            self.film = server.gui.add_button("Save video")
            self.format = server.gui.add_dropdown("Format", FORMATS, initial_value=FORMATS[0])
            self.graphs = Graphs(server, panels[0].figure.whole, motion, self.first, self.last)
        for label, key, action in (
            ("Play or pause", "space", lambda _: self.play(not self.playing)),
            ("One frame forward", "arrowright", lambda _: self.step(1)),
            ("One frame back", "arrowleft", lambda _: self.step(-1)),
        ):
            server.gui.add_command(label, hotkey=key).on_trigger(action)
        self.button.on_click(lambda _: self.play(not self.playing))
        self.bar.on_update(self._dragged)
        self.go(self.first)
        self._thread = threading.Thread(target=self._run, daemon=True, name="chasles playback")
        self._thread.start()

    def play(self, wanted: bool) -> None:
        """Play or pause. If the motion has ended, playback starts again from the beginning."""
        if wanted and self.clock >= self.last:
            self.clock = self.first
        self.playing = wanted
        self.button.label = "Pause" if wanted else "Play"
        if not wanted:
            self._refresh()

    def step(self, pictures: int) -> None:
        """Pause, and step by a number of frames. At speed 1, a frame lasts 1/30 s."""
        if self.playing:
            self.play(False)
        self.go(self.clock + pictures * float(self.speed.value) / RATE)

    def pictures(self, rate: float) -> Iterator[float]:
        """Pause, then step through the motion frame by frame; yield the time of each frame."""
        self.play(False)
        label, step = self.film.label, float(self.speed.value) / rate
        self.film.disabled = True
        try:
            for t in np.arange(self.first, self.last + 0.5 * step, step):
                self.film.label = f"Recording: {t:.1f} of {self.last:.1f} s"
                self.go(float(t))
                yield float(t)
        finally:
            self.film.label, self.film.disabled = label, False

    def go(self, t: float) -> None:
        """Show all robots at time t of the motion."""
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
            self.graphs.draw(self.clock)

    def stop(self) -> None:
        """Stop the playback thread."""
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
