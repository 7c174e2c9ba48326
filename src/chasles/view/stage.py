"""Scene around the robots: floor, lights, shadows and camera."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from chasles.robot import Robot
from chasles.view.posture import quaternions

FIELD_OF_VIEW = math.radians(38.0)
"""Vertical field of view of the camera (rad). A narrow view reduces perspective distortion."""

MARGIN = 0.86
"""Fraction of the visible area that the robots fill."""

NEAREST = 1.2
"""Minimum distance of a fitted camera, relative to the diagonal of the robots' bounding box.

A closer camera would enlarge the parts in front too much.
"""

CENTERING = 12
"""Number of iterations that center the robots in the image."""

PANEL = 345.0
"""Width (pixels) of the panel on the right side of the page."""

ASPECT, WIDTH = 1.6, 1280.0
"""Aspect ratio and width (pixels) assumed until a page reports its size."""


class Colors(NamedTuple):
    """RGB colors (0 to 255) of the floor and its grid lines."""

    floor: tuple[int, int, int]
    cells: tuple[int, int, int]
    sections: tuple[int, int, int]


QUICK = 0.2
"""Maximum rendering time (s) for which shadows are switched on.

A graphics card takes about 0.05 s, and software rendering about 0.5 s.
"""

PATIENCE = 10.0
"""Timeout (s) for rendering the image with which the rendering speed is measured."""

LEVEL = 0.999
"""Minimum cosine of the angle between the normal of a horizontal plane and the vertical."""

LIGHT = Colors((181, 189, 200), (167, 176, 188), (139, 150, 164))
DARK = Colors((40, 44, 50), (60, 66, 74), (88, 96, 106))


class Camera(NamedTuple):
    """Position and target point of a camera, in the world frame."""

    position: np.ndarray
    look_at: np.ndarray


class View(NamedTuple):
    """Camera of a rendered image: orientation (w, x, y, z), position, and vertical angle (rad).

    The x axis of the camera points to the right, the y axis down, and the z axis forward.
    """

    wxyz: np.ndarray
    position: np.ndarray
    fov: float


def aimed(camera: Camera, up: np.ndarray) -> View:
    """Return the view of a camera, with `up` upward in the image."""
    ahead = camera.look_at - camera.position
    right = np.cross(ahead, up)
    R = np.array([right, np.cross(ahead, right), ahead])
    R = R / np.linalg.norm(R, axis=1)[:, None]
    return View(quaternions(R.T), camera.position, FIELD_OF_VIEW)


def fitted(
    points: np.ndarray, direction: np.ndarray, up: np.ndarray, aspect: float, covered: float = 0.0
) -> Camera:
    """Place a camera so that it sees all points.

    Parameters
    ----------
    points : array (n, 3)
        Points that must be visible, in the world frame.
    direction, up : array (3,)
        Direction from the points to the camera, and the upward direction in the image.
    aspect : float
        Width of the image divided by its height.
    covered : float
        Fraction of the image width that the panel covers on the right.

    Returns
    -------
    Camera
        The closest position with this direction that shows all points in the uncovered area, but no
        closer than `NEAREST` allows.
    """
    ahead = direction / np.linalg.norm(direction)
    right = np.cross(up, ahead)
    right = right / np.linalg.norm(right)
    axes = np.array([right, np.cross(ahead, right), ahead])
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    x, y, z = axes @ (points - middle).T
    tall = math.tan(0.5 * FIELD_OF_VIEW)
    wide = tall * aspect
    half = MARGIN * (1.0 - covered)
    spans = (
        (x, wide * (-covered - half), wide * (-covered + half)),
        (y, -MARGIN * tall, MARGIN * tall),
    )
    # From `place` and `distance`, (w, z) is in view if low <= (w - place) / (distance - z) <= high.
    distance = max(
        NEAREST * float(np.linalg.norm(np.ptp(points, axis=0))),
        *(float(np.max(w + b * z) + np.max(-w - a * z)) / (b - a) for w, a, b in spans),
    )
    across, along = (_centered(w, z, distance, 0.5 * (a + b)) for w, a, b in spans)
    look_at = middle + across * right + along * axes[1]
    return Camera(look_at + distance * ahead, look_at)


def _centered(w: np.ndarray, z: np.ndarray, distance: float, middle: float) -> float:
    """Return the place of a camera at which the slopes (w - place) / (distance - z) are centered.

    The largest and the smallest slope have the mean `middle`.
    """
    place = 0.0
    for _ in range(CENTERING):
        slopes = (w - place) / (distance - z)
        place += distance * (0.5 * (float(slopes.max()) + float(slopes.min())) - middle)
    return place


class Stage:
    """Floor, lights and camera of a scene.

    `points` (n, 3) are the outermost points of all robots, including their motion if there is one.
    `height` is the height of the floor along `up` (m). Default: the lowest point of the robots.
    `shaded` is True if shadows are drawn. `recorded` is the aspect ratio of the video or picture
    that is being recorded, or None; recordings do not show the panel.

    Only lights illuminate the robots. An environment map would be loaded by the page later, so
    pictures with and without it would differ.
    """

    def __init__(
        self,
        server: Any,
        points: np.ndarray,
        up: np.ndarray,
        aside: np.ndarray,
        height: float | None = None,
    ) -> None:
        self.server, self.up, self.aside = server, up, aside
        self._refitted: list[Any] = []
        """Pages whose camera was fitted a second time."""
        self.recorded: float | None = None
        self.view: View | None = None
        self.points = points
        bounds = np.array([points.min(axis=0), points.max(axis=0)])
        self.size = float(np.linalg.norm(np.ptp(bounds, axis=0)))
        server.scene.configure_default_lights(enabled=False)
        server.scene.configure_environment_map(hdri=None)  # a map would arrive late
        middle = 0.5 * (bounds[0] + bounds[1])
        ahead = np.cross(aside, up)
        self.sun, _ = (
            server.scene.add_light_directional(
                f"/{name}", intensity=intensity, position=tuple(middle + 2.0 * self.size * toward)
            )
            for name, intensity, toward in (
                ("sun", 4.0, 1.8 * up + 0.6 * ahead - 1.1 * aside),
                ("fill light", 0.45, 0.2 * up + ahead + 0.9 * aside),
            )
        )
        self.sky = server.scene.add_light_hemisphere(
            "/sky", intensity=0.95, sky_color=(240, 246, 255), ground_color=(90, 94, 104)
        )
        self.floor = server.scene.add_grid(
            "/floor",
            infinite_grid=True,
            cell_size=_round(0.1 * self.size),
            section_size=10.0 * _round(0.1 * self.size),
            cell_thickness=0.7,
            section_thickness=1.2,
            fade_distance=20.0 * self.size,
            fade_strength=1.0,
            shadow_opacity=0.35,
            plane_opacity=1.0,
            position=up * (float(np.min(self.points @ up)) if height is None else height),
            wxyz=_turn(up),
        )
        self.dark(False)
        self.shadows(False)
        camera = server.initial_camera
        camera.position, camera.look_at = self._fitted(ASPECT, PANEL / WIDTH)
        camera.up, camera.fov = up, FIELD_OF_VIEW
        server.on_client_connect(self._welcome)

    @contextmanager
    def recording(self, size: tuple[int, int], shadows: bool) -> Iterator[None]:
        """Within this context, new pages show all robots in a picture of the given size.

        `size` is (width, height) in pixels.
        """
        camera, shaded = self.server.initial_camera, self.shaded
        before = Camera(camera.position, camera.look_at)
        self.recorded = size[0] / size[1]
        wanted = self._fitted(self.recorded, 0.0)
        camera.position, camera.look_at = wanted
        self.view = aimed(wanted, self.up)
        self.shadows(shadows)
        try:
            yield
        finally:
            self.recorded = self.view = None
            camera.position, camera.look_at = before
            self.shadows(shaded)

    def _welcome(self, client: Any) -> None:
        """Fit the camera of a new page, and refit it if the page returns to its initial camera.

        A page applies its initial camera when it has loaded the scene, which may be after `fit`.
        """
        client.camera.on_update(self._refit)
        self.fit(client)

    def _refit(self, camera: Any) -> None:
        """Fit the camera once more if a page has returned to its initial camera."""
        initial = np.allclose(camera.position, self.server.initial_camera.position, rtol=1e-4)
        if initial and camera.client not in self._refitted:
            self._refitted.append(camera.client)
            self.fit(camera.client)

    def _fitted(self, aspect: float, covered: float) -> Camera:
        ahead = np.cross(self.aside, self.up)
        direction = ahead + 0.55 * self.aside + 0.5 * self.up
        return fitted(self.points, direction, self.up, aspect, covered)

    def fit(self, client: Any) -> None:
        """Move a client's camera so that all robots are visible."""
        if client.client_id not in self.server.get_clients():
            return  # the page has been closed
        camera = client.camera
        width, height = max(camera.image_width, 1), max(camera.image_height, 1)
        covered = PANEL / width if width > 1.6 * PANEL else 0.0
        with client.atomic():
            if self.recorded is None:
                camera.position, camera.look_at = self._fitted(width / height, covered)
            else:
                camera.position, camera.look_at = self._fitted(self.recorded, 0.0)
            camera.up_direction, camera.fov = self.up, FIELD_OF_VIEW

    def shadows(self, wanted: bool) -> None:
        """Switch shadows (slow without a graphics card) on or off."""
        self.shaded = self.sun.cast_shadow = wanted

    def dark(self, wanted: bool) -> None:
        """Select dark or light colors for the page and the floor."""
        self.server.gui.configure_theme(show_logo=False, show_share_button=False, dark_mode=wanted)
        colors = DARK if wanted else LIGHT
        self.floor.plane_color = colors.floor
        self.floor.cell_color, self.floor.section_color = colors.cells, colors.sections


def is_quick(client: Any) -> bool:
    """Return True if a client renders its window in less than `QUICK` seconds."""
    width, height = client.camera.image_width, client.camera.image_height
    try:
        client.get_render(height, width, timeout=PATIENCE)  # the first image compiles shaders
        began = time.monotonic()
        client.get_render(height, width, timeout=PATIENCE)
    except Exception:  # raised by viser if the page is closed or hidden
        return False
    return time.monotonic() - began < QUICK


def ground(robot: Robot, up: np.ndarray, planes: np.ndarray | None = None) -> float | None:
    """Return the height (m) of the highest horizontal plane, or None if there is none.

    `planes` (n, 2, 3) are points and unit normals of the contact planes of a motion. If none of
    them is horizontal, the planes of the robot's file are used.
    """
    own = [
        (np.array(list(plane.pose.r), dtype=float), np.array(plane.pose.R.rows, dtype=float)[:, 2])
        for plane in robot.model.source.planes
    ]
    for some in ([] if planes is None else planes, own):
        heights = [float(point @ up) for point, normal in some if normal @ up > LEVEL]
        if heights:
            return max(heights)
    return None


def _round(length: float) -> float:
    """Round a length down to a power of ten, for the size of the floor's grid cells (m)."""
    return 10.0 ** math.floor(math.log10(max(length, 1e-6)))


def _turn(up: np.ndarray) -> np.ndarray:
    """Return the quaternion (w, x, y, z) of the shortest rotation from z to a world axis."""
    if up[2] < -0.5:
        return np.array([0.0, 1.0, 0.0, 0.0])
    half = np.array([1.0 + up[2], *np.cross([0.0, 0.0, 1.0], up)])
    return half / np.linalg.norm(half)
