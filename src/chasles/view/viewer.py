"""Viewer server with its scene and panels."""

import atexit
import html
import importlib.util
import re
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from chasles.errors import ArgumentError, InputError, ModelError, shown
from chasles.functions.doors import numbers
from chasles.motion.records import Trajectory
from chasles.robot import Robot
from chasles.trajectory import Move
from chasles.view.door import Door, checked, open_server
from chasles.view.figure import Figure
from chasles.view.panel import Motion, Panel, Playback, read
from chasles.view.pictures import RATE, moving_picture, writer
from chasles.view.solids import MOST_TRIANGLES
from chasles.view.stage import Stage, ground, is_quick

LOCAL = "127.0.0.1"
"""Address for connections from this machine only."""

PORT = 8080
PICTURE = (1600, 1000)
"""Maximum width and height (pixels) of a screenshot."""

FRAME = 'referrerpolicy="no-referrer" sandbox="allow-scripts allow-same-origin allow-downloads"'
"""HTML attributes of the iframe that embeds the page in a notebook."""


NO_MOTION = """This view has no motion. Give a motion to play and record it, with plots of torques \
and energy: robot.show(motion=...), or chasles view --motion FILE."""
"""Note on a page without a motion."""


class Look(NamedTuple):
    """Drawing options: maximum number of triangles per robot, and shadows.

    If `shadows` is None, shadows are drawn in recordings, and in browsers that are fast enough.
    """

    triangles: int = MOST_TRIANGLES
    shadows: bool | None = None


class Viewer:
    """A running viewer.

    `url` is the address of the page, including the token, and `notes` lists shapes that cannot be
    drawn. Notebooks display the viewer inline, and printing it shows its address. The viewer runs
    until `stop()` is called, the `with` block ends, or Python exits. `wait()` keeps a script
    running.
    """

    def __init__(
        self,
        robots: Sequence[Robot],
        *,
        q: np.ndarray | None = None,
        motion: str | PathLike[str] | Move | Trajectory | None = None,
        host: str = LOCAL,
        port: int = PORT,
        allow: Sequence[str] = (),
        look: Look = Look(),  # noqa: B008  a value
    ) -> None:
        for package in ("viser", "trimesh"):
            if importlib.util.find_spec(package) is None:
                problem = f"the viewer needs {package}"
                raise ModelError("E-VIEW-005", problem, "run pip install 'chasles[view]'")
        self.look, played = look, None if motion is None else read(motion, robots[0])
        door = Door(host, checked(allow))
        with _quiet():
            self.server = open_server(door, port)
        try:
            self._lay_out(robots, look, q, played)
        except BaseException:
            with _quiet():
                self.server.stop()
            raise
        atexit.register(self.stop)  # runs before viser's handler, which prints a message
        self.playback = None
        if played is None:
            with self.server.gui.add_folder("Motion", expand_by_default=False):
                self.server.gui.add_text("Note", NO_MOTION, multiline=True, disabled=True)
        else:
            able = [panel for panel in self.panels if _same_joints(panel.figure.whole, robots[0])]
            self.playback = Playback(self.server, played, able, self._lock)
            self.playback.film.on_click(partial(self._answer, self._send_video))
        self.url = door.url(self.server.get_port())

    def _lay_out(
        self, robots: Sequence[Robot], look: Look, q: np.ndarray | None, played: Motion | None
    ) -> None:
        server, self._lock = self.server, threading.RLock()
        server.gui.set_panel_label(" | ".join(shown(robot.name) for robot in robots))
        up = _up(robots[0])
        server.scene.set_up_direction(up)
        with server.gui.add_folder("View"):
            fit = server.gui.add_button("Fit")
            picture = server.gui.add_button("Screenshot")
            shaded = server.gui.add_checkbox("Shadows", initial_value=bool(look.shadows))
            dark = server.gui.add_checkbox("Dark", initial_value=False)
        picture.on_click(partial(self._answer, self._send_picture))
        self.figures: list[Figure] = []
        self.panels: list[Panel] = []
        offset = np.zeros(3)
        aside = np.roll(up, 2)  # a horizontal direction
        for k, robot in enumerate(robots):
            given = q if k == 0 else None
            figure = Figure(server, robot, f"/robot {k + 1}", offset, look.triangles, given)
            self.figures.append(figure)
            self.panels.append(Panel(server, figure, self._lock))
            width = float(np.ptp(figure.bounds, axis=0) @ np.abs(aside))
            offset = offset + aside * (1.2 * width + 0.3 * figure.size)
        self.notes = [note for figure in self.figures for note in figure.notes]
        points = np.concatenate(
            [
                figure.outline(
                    [(figure.q, figure.t)]
                    if played is None or not _same_joints(figure.whole, robots[0])
                    else played.samples(figure.whole)
                )
                for figure in self.figures
            ]
        )
        planes = None if played is None else played.planes
        self.stage = Stage(server, points, up, aside, ground(robots[0], up, planes))
        fit.on_click(self._fit)
        server.gui.add_command("Fit", hotkey="F").on_trigger(self._fit)
        shaded.on_update(lambda _: self.stage.shadows(shaded.value))
        self.stage.shadows(bool(look.shadows))
        if look.shadows is None:
            server.on_client_connect(partial(_suit, self.stage, shaded))
        dark.on_update(lambda _: self.stage.dark(dark.value))

    def _fit(self, event: Any) -> None:
        if event.client is not None:
            self.stage.fit(event.client)

    def _answer(self, send: Callable[[Any], None], event: Any) -> None:
        """Call `send` with the client that pressed a button, unless its page has been closed."""
        client = event.client
        try:
            if client is not None:
                send(client)
        except (ModelError, RuntimeError):
            if client.client_id in self.server.get_clients():
                raise

    def _send_picture(self, client: Any) -> None:
        """Send a screenshot to a client as a download."""
        import imageio.v3 as imageio

        width, height = _size(client)
        picture = client.get_render(height, width, transport_format="png", timeout=20.0)
        stream = BytesIO()
        imageio.imwrite(stream, picture, extension=".png")
        client.send_file_download(self._file(".png"), stream.getvalue(), save_immediately=True)

    def _send_video(self, client: Any) -> None:
        """Play the motion once, and send the video to the client as a download."""
        playback, size = self.playback, _size(client)
        assert playback is not None
        with playback.filming, tempfile.TemporaryDirectory(prefix="chasles-") as folder:
            file = Path(folder, f"motion{playback.format.value}")
            with writer(file, file.suffix, RATE, size) as add:
                for _ in playback.pictures(RATE):
                    add(moving_picture(client, *size))
            film = file.read_bytes()
            client.send_file_download(self._file(file.suffix), film, save_immediately=True)

    def _file(self, suffix: str) -> str:
        """Return a download file name that contains the robot's name."""
        return re.sub(r"[^\w.-]+", "-", self.figures[0].whole.name)[:80] + suffix

    def wait(self) -> None:
        """Block until Ctrl-C is pressed, then stop the viewer."""
        with self, suppress(KeyboardInterrupt):
            threading.Event().wait()

    def stop(self) -> None:
        """Stop the server and its threads."""
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
    q: ArrayLike | None = None,
    *,
    beside: Robot | None = None,
    motion: str | PathLike[str] | Move | Trajectory | None = None,
    host: str = LOCAL,
    port: int = PORT,
    allow: Sequence[str] = (),
    triangles: int = MOST_TRIANGLES,
    shadows: bool | None = None,
) -> Viewer:
    """Show a robot in a browser.

    Parameters
    ----------
    robot : Robot
        Robot to show.
    q : array_like, shape (nq,), optional
        Initial configuration. Default: the keyframe "home" if there is one, otherwise the neutral
        configuration, adjusted to satisfy joint limits and close loops.
    beside : Robot, optional
        Second robot, shown next to the first.
    motion : path, trajectory or simulation result, optional
        Motion to play: a file, a simulation folder, a trajectory, or a result of `simulate` or
        `rollout`. The second robot also plays the motion if its joints have the same names as those
        of the first robot. The camera shows the whole motion.
    host : str
        Address of the network interface to listen on. With the default, only this machine can open
        the page. For other machines, pass the address of an interface on their network.
    port : int
        First port to try; if it is in use, the next free port is used. 0 chooses any free port.
    allow : sequence of str
        Further hosts through which browsers reach the page, such as a reverse proxy or a notebook
        server: "hub.example.org" or "hub.example.org:8000".
    triangles : int
        Maximum number of triangles to draw per robot. If a robot's meshes have more, they are
        simplified, and the viewer's `notes` report this. Fewer triangles help on a machine without
        a graphics card.
    shadows : bool, optional
        Draw shadows. By default they are drawn in recordings, and on pages if the browser is fast
        enough, which requires a graphics card.

    Returns
    -------
    Viewer
        The running viewer, whose `url` contains a token; requests without the token are refused.

    Examples
    --------
    >>> import chasles
    >>> with chasles.robots.puma560().show(port=0) as viewer:
    ...     print(viewer.url.startswith("http://127.0.0.1:"))
    True
    """
    for given in (robot, beside):
        if not isinstance(given, Robot | None):
            problem = f"pass a robot, not {type(given).__name__}"
            raise ArgumentError("E-VIEW-002", problem, part="show")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
        problem = f"`port` must be an integer from 0 to 65535, not {port!r}"
        raise InputError("E-VIEW-003", problem, part="show")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, 0), family=family).close()
    except OSError as error:
        problem = f"cannot listen on {host!r} ({error})"
        remedy = "omit `host`, or pass an address of this machine"
        raise InputError("E-VIEW-004", problem, remedy, part="show") from None
    if isinstance(triangles, bool) or not isinstance(triangles, int) or triangles < 1:
        problem = f"`triangles` must be a positive integer, not {triangles!r}"
        raise InputError("E-VIEW-029", problem, part="show")
    at = None if q is None else numbers("q", q, robot.nq)
    if at is not None and at.ndim != 1:
        problem = f"q must be one configuration with shape ({robot.nq},), not {at.shape}"
        remedy = "show several configurations with `motion`"
        raise InputError("E-VIEW-030", problem, remedy, part="show")
    robots = [robot] if beside is None else [robot, beside]
    look = Look(triangles, shadows)
    return Viewer(robots, q=at, motion=motion, host=host, port=port, allow=allow, look=look)


def _same_joints(robot: Robot, other: Robot) -> bool:
    """Return True if one robot can follow the motions of the other."""
    return (robot.joints, robot.nq) == (other.joints, other.nq)


def _size(client: Any) -> tuple[int, int]:
    """Return the image size for a page, at most `PICTURE` and rounded down to even numbers."""
    camera = client.camera
    width, height = min(PICTURE[0], camera.image_width), min(PICTURE[1], camera.image_height)
    return max(2 * (width // 2), 2), max(2 * (height // 2), 2)


def _suit(stage: Stage, shaded: Any, client: Any) -> None:
    """Switch on shadows if the client is fast enough, unless a video is being recorded."""
    if stage.recorded is None and is_quick(client):
        shaded.value = True  # calls `Stage.shadows`


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress messages that viser prints while it starts and stops."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


def _up(robot: Robot) -> np.ndarray:
    """Return the world axis closest to the upward direction, or z if there is no gravity."""
    g = robot.gravity
    if not np.any(g):
        return np.array([0.0, 0.0, 1.0])
    k = int(np.argmax(np.abs(g)))
    return np.asarray(-np.sign(g[k]) * np.eye(3)[k])
