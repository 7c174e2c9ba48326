"""Draw a robot in the viewer scene."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from chasles.errors import shown
from chasles.model import WORLD
from chasles.robot import Robot
from chasles.view import posture
from chasles.view.solids import Solid, joined, solids

BLACK = 0.15
"""Brightness (0 to 1) with which black is drawn, so that the shape of black parts is visible."""


class Figure:
    """Drawing of one robot in the scene.

    Attributes
    ----------
    q
        Current configuration.
    start
        Initial configuration.
    t
        Current time (s), for time-dependent robots.
    size
        Approximate size of the robot (m).
    bounds
        Bounding box (2, 3) of all shapes at the start, in the world frame.
    nodes
        Scene nodes by body.
    shapes
        Nodes and opacities of the drawn shapes.
    notes
        Messages about shapes that cannot be drawn.
    overlays
        Objects whose `draw` is called after each move.
    clicked
        Callback that is called with the name of a clicked link.
    """

    def __init__(
        self,
        server: Any,
        robot: Robot,
        root: str,
        offset: np.ndarray,
        triangles: int,
        q: np.ndarray | None = None,
    ) -> None:
        self.server, self.whole, self.root, self.t = server, robot, root, 0.0
        self.triangles = triangles
        self.start = posture.start(self.robot) if q is None else q
        self.q = self.start
        self.size = _size(self.robot, self.q)
        self.overlays: list[Any] = []
        self.felt: Callable[[float], tuple[np.ndarray, np.ndarray]] | None = None
        self.clicked: Callable[[str], None] = lambda link: None
        self._lay_out(offset)
        self.move(self.q)

    @property
    def robot(self) -> Robot:
        """The robot, evaluated at the current time."""
        return self.whole.at(self.t)

    def _lay_out(self, offset: np.ndarray) -> None:
        model, scene = self.whole.model, self.server.scene
        scene.add_frame(self.root, show_axes=False, position=offset)
        names = {i: f"{self.root}/{i} {step(b.name)}" for i, b in enumerate(model.bodies)}
        names[WORLD] = f"{self.root}/fixed to the world"
        self.nodes = {i: scene.add_frame(name, show_axes=False) for i, name in names.items()}
        self._drawn, self.notes = solids(model, self.size, self.triangles)
        self._offset, self._tips = offset, [_tips(solid.vertices) for solid in self._drawn]
        points = self.outline([(self.q, self.t)])
        self.bounds = np.array([points.min(axis=0), points.max(axis=0)])
        self.shapes = [(node, node.opacity) for node in self.add("shape", self._drawn)]
        self.selectable(True)

    def selectable(self, wanted: bool) -> None:
        """Enable or disable clicks on links; clickable links interfere with dragging a handle."""
        for (node, _), solid in zip(self.shapes, self._drawn, strict=True):
            if wanted:
                node.on_click(lambda _, link=solid.link: self.clicked(link))
            else:
                node.remove_click_callback("all")

    def outline(self, states: Iterable[tuple[np.ndarray, float]]) -> np.ndarray:
        """Return the base and the outermost points (n, 3) of all shapes in states (q, t).

        The points are in the world frame.
        """
        found = [np.zeros((1, 3))]
        for q, t in states:
            R, p = posture.poses(self.whole.model.at(t), q)
            for solid, tips in zip(self._drawn, self._tips, strict=True):
                i = solid.body
                found.append(tips if i == WORLD else tips @ R[i].T + p[i])
        return np.asarray(self._offset + np.concatenate(found))

    def add(self, what: str, drawn: list[Solid]) -> list[Any]:
        """Add solids to the scene, attached to their bodies; return the scene nodes."""
        made = []
        for k, solid in enumerate(drawn):
            *color, opacity = solid.color
            node = self.server.scene.add_mesh_simple(
                f"{self.nodes[solid.body].name}/{what} {k}",
                vertices=np.asarray(solid.vertices, dtype=np.float32),
                faces=np.asarray(solid.faces, dtype=np.uint32),
                color=tuple(round(255 * (BLACK + (1.0 - BLACK) * x)) for x in color),
                opacity=None if opacity >= 1.0 else max(opacity, 0.05),
                side="front" if solid.closed else "double",
                cast_shadow=opacity >= 1.0,
                receive_shadow=False,  # coarse shadow maps would darken thin and open surfaces
            )
            made.append(node)
        return made

    def move(self, q: np.ndarray, t: float | None = None) -> None:
        """Draw the robot at configuration q and time t (default: the previous time)."""
        self.q, self.t = q, self.t if t is None else t
        R, p = posture.poses(self.whole.model.at(self.t), q)
        turns = posture.quaternions(R) if len(R) else R
        with self.server.atomic():
            for i, (turn, place) in enumerate(zip(turns, p, strict=True)):
                self.nodes[i].wxyz, self.nodes[i].position = turn, place
            for overlay in self.overlays:
                overlay.draw(self)


def step(name: str) -> str:
    """Escape a name for use in a scene path."""
    return shown(name).replace("/", "\N{DIVISION SLASH}")


def _tips(vertices: np.ndarray) -> np.ndarray:
    """Return the outermost vertices in directions about 15 degrees apart."""
    from trimesh import creation

    directions = np.asarray(creation.icosphere(subdivisions=2).vertices)
    return vertices[np.unique(np.argmax(vertices @ directions.T, axis=0))]


def _size(robot: Robot, q: np.ndarray) -> float:
    """Return the diagonal (m) of the bounding box of all joints, frames and centers of mass."""
    model = robot.model.at(0.0)
    R, p = posture.poses(model, q)
    points = [np.zeros(3), *joined(model, WORLD)]
    for i, body in enumerate(model.bodies):
        inside = [np.zeros(3), *joined(model, i)]
        if body.inertia.m:
            inside.append(np.array([x / body.inertia.m for x in body.inertia.h], dtype=float))
        points += [R[i] @ point + p[i] for point in inside]
    return max(float(np.linalg.norm(np.ptp(points, axis=0))), 0.05)
