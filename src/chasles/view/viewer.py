"""The server of a view: the scene, its panels, and where a browser finds them."""

import atexit
import html
import importlib.util
import re
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from os import PathLike
from typing import Any

import numpy as np

from chasles.errors import ArgumentError, InputError, ModelError, shown
from chasles.robot import Robot
from chasles.trajectory import Move
from chasles.view.door import Door, checked, open_server
from chasles.view.overlays import Figure
from chasles.view.panel import Panel, Playback, read

LOCAL = "127.0.0.1"
"""This machine alone."""

PORT = 8080
PICTURE = (1600, 1000)
"""Width and height of a screenshot at most, in pixels."""

FRAME = 'referrerpolicy="no-referrer" sandbox="allow-scripts allow-same-origin allow-downloads"'
"""Attributes of a notebook's frame around a page."""


class Viewer:
    """A running view. url: its page, with the token that opens it. notes: what could not be drawn.

    In a notebook it shows itself, elsewhere it prints as where its page is. It lasts until
    `stop()`, the end of `with`, or that of Python; a script stays for it with `wait()`.
    """

    def __init__(
        self,
        robots: Sequence[Robot],
        *,
        motion: str | PathLike[str] | Move | None = None,
        host: str = LOCAL,
        port: int = PORT,
        allow: Sequence[str] = (),
    ) -> None:
        for package in ("viser", "trimesh"):
            if importlib.util.find_spec(package) is None:
                problem = f"the viewer needs {package}"
                raise ModelError("E-VIEW-005", problem, "run pip install 'chasles[view]'")
        played = None if motion is None else read(motion, robots[0])
        door = Door(host, checked(allow))
        with _quiet():
            self.server = open_server(door, port)
        try:
            self._lay_out(robots)
        except BaseException:
            with _quiet():
                self.server.stop()
            raise
        atexit.register(self.stop)  # before viser's own, which would print
        self.playback = None
        if played is not None:
            same = (robots[0].joints, robots[0].nq)  # whose positions are those of the motion
            shown = [(panel, panel.figure.whole) for panel in self.panels]
            able = [panel for panel, robot in shown if (robot.joints, robot.nq) == same]
            self.playback = Playback(self.server, played, able, self._lock)
        self.url = door.url(self.server.get_port())

    def _lay_out(self, robots: Sequence[Robot]) -> None:
        server, self._lock = self.server, threading.RLock()
        server.gui.configure_theme(show_logo=False, show_share_button=False)
        server.gui.set_panel_label(" | ".join(shown(robot.name) for robot in robots))
        up = _up(robots[0])
        server.scene.set_up_direction(up)
        # Without a graphics card these two take most of the time of a picture.
        server.scene.configure_environment_map(hdri=None)
        server.scene.configure_default_lights(cast_shadow=False)
        server.scene.add_light_ambient("/light", intensity=1.5)
        picture = server.gui.add_button("Screenshot")
        picture.on_click(self._send_picture)
        self.figures: list[Figure] = []
        self.panels: list[Panel] = []
        offset = np.zeros(3)
        aside = np.roll(up, 2)  # a direction across the vertical one
        for k, robot in enumerate(robots):
            figure = Figure(server, robot, f"/robot {k + 1}", offset)
            self.figures.append(figure)
            self.panels.append(Panel(server, figure, self._lock))
            width = float(np.ptp(figure.bounds, axis=0) @ np.abs(aside))
            offset = offset + aside * (1.2 * width + 0.3 * figure.size)
        self.notes = [note for figure in self.figures for note in figure.notes]
        self._place_camera(up, aside)

    def _place_camera(self, up: np.ndarray, aside: np.ndarray) -> None:
        bounds = np.concatenate([figure.bounds for figure in self.figures])
        low, high = bounds.min(axis=0), bounds.max(axis=0)
        middle, size = 0.5 * (low + high), float(np.linalg.norm(high - low))
        ahead = np.cross(aside, up)
        middle = middle + 0.12 * size * aside  # the panel covers that side of the page
        camera = self.server.initial_camera
        camera.position = middle + size * (0.65 * ahead + 0.25 * aside + 0.25 * up)
        camera.look_at = middle
        camera.up = up

    def _send_picture(self, event: Any) -> None:
        """Send a client its picture, as a file that its browser saves."""
        import imageio.v3 as imageio

        client = event.client
        if client is None:
            return
        width = min(PICTURE[0], client.camera.image_width)
        height = min(PICTURE[1], client.camera.image_height)
        picture = client.get_render(height, width, transport_format="png", timeout=20.0)
        stream = BytesIO()
        imageio.imwrite(stream, picture, extension=".png")
        name = re.sub(r"[^\w.-]+", "-", self.figures[0].whole.name)[:80]
        client.send_file_download(f"{name}.png", stream.getvalue(), save_immediately=True)

    def wait(self) -> None:
        """Stay until Ctrl-C, then end: for scripts, with which the view would end at once."""
        with self, suppress(KeyboardInterrupt):
            threading.Event().wait()

    def stop(self) -> None:
        """End the server and all that runs for it."""
        atexit.unregister(self.stop)
        if self.playback is not None:
            self.playback.stop()
        with _quiet():
            self.server.stop()

    def __enter__(self) -> "Viewer":
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        names = " | ".join(shown(figure.whole.name) for figure in self.figures)
        return f"<Viewer of {names} at {self.url}; stop() ends it>"

    def _repr_html_(self) -> str:
        page = html.escape(self.url, quote=True)
        return f'<iframe src="{page}" {FRAME} width="100%" height="600" style="border: 0"></iframe>'


def show(
    robot: Robot,
    *,
    beside: Robot | None = None,
    motion: str | PathLike[str] | Move | None = None,
    host: str = LOCAL,
    port: int = PORT,
    allow: Sequence[str] = (),
) -> Viewer:
    """Show a robot in a browser, optionally next to another one; return the running viewer.

    motion: a file, the folder of a simulation, or a trajectory to play; the second robot plays it
    too if its joints have the same names. host: the interface to listen on; by default other
    machines have no access. port: the first port to try; 0 is any free one. allow: further hosts
    that browsers reach the page by, such as a reverse proxy or a notebook server: "hub.example.org"
    or "hub.example.org:8000". Only requests with the token of `url` are answered.
    """
    for given in (robot, beside):
        if not isinstance(given, Robot | None):
            problem = f"give a robot, not {type(given).__name__}"
            raise ArgumentError("E-VIEW-002", problem, part="show")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
        problem = f"port must be an integer from 0 to 65535, not {port!r}"
        raise InputError("E-VIEW-003", problem, part="show")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, 0), family=family).close()
    except OSError as error:
        problem = f"cannot listen on {host!r} ({error})"
        remedy = "omit `host`, or give an address of this machine"
        raise InputError("E-VIEW-004", problem, remedy, part="show") from None
    robots = [robot] if beside is None else [robot, beside]
    return Viewer(robots, motion=motion, host=host, port=port, allow=allow)


@contextmanager
def _quiet() -> Iterator[None]:
    """While viser starts and stops, of which it prints more than its `verbose` can turn off."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


def _up(robot: Robot) -> np.ndarray:
    """Against gravity, to the nearest axis of the world; z where there is none."""
    g = robot.gravity
    if not np.any(g):
        return np.array([0.0, 0.0, 1.0])
    k = int(np.argmax(np.abs(g)))
    return np.asarray(-np.sign(g[k]) * np.eye(3)[k])
