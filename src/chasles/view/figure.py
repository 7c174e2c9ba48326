"""A robot in the scene: a node for each of its bodies, with what is drawn of it below."""

from typing import Any

import numpy as np

from chasles.model import WORLD
from chasles.robot import Robot
from chasles.view.posture import poses, start
from chasles.view.solids import Solid, joined, solids


class Figure:
    """A robot and where it stands now.

    q: its configuration. t: the time (s) that it is asked at, if it depends on it. size: about how
    large it is, in m. bounds: of what was drawn at the start, least and greatest (2, 3), in the
    world. nodes: of the scene, by body. shapes: nodes of what is drawn, with their opacity. notes:
    what could not be drawn. overlays: what is drawn anew when it has moved, by their `draw`.
    """

    def __init__(self, server: Any, robot: Robot, root: str, offset: np.ndarray) -> None:
        self.server, self.whole, self.root, self.t = server, robot, root, 0.0
        self.q = start(self.robot)
        self.size = _size(self.robot, self.q)
        self.overlays: list[Any] = []
        self._lay_out(offset)
        self.move(self.q)

    @property
    def robot(self) -> Robot:
        """At its time, if it depends on it."""
        return self.whole.at(self.t)

    def _lay_out(self, offset: np.ndarray) -> None:
        model, scene = self.whole.model, self.server.scene
        scene.add_frame(self.root, show_axes=False, position=offset)
        names = {i: f"{self.root}/{body.name}" for i, body in enumerate(model.bodies)}
        names[WORLD] = f"{self.root}/fixed to the world"
        self.nodes = {i: scene.add_frame(name, show_axes=False) for i, name in names.items()}
        drawn, self.notes = solids(model, self.size)
        self.bounds = offset + _bounds(self.robot, self.q, drawn)
        self.shapes = []
        for k, solid in enumerate(drawn):
            *color, opacity = solid.color
            node = scene.add_mesh_simple(
                f"{names[solid.body]}/shape {k}",
                vertices=np.asarray(solid.vertices, dtype=np.float32),
                faces=np.asarray(solid.faces, dtype=np.uint32),
                color=tuple(round(255 * x) for x in color),
                opacity=None if opacity >= 1.0 else max(opacity, 0.05),
                flat_shading=True,
                side="front" if solid.closed else "double",
                cast_shadow=False,
                receive_shadow=False,
            )
            self.shapes.append((node, node.opacity))

    def move(self, q: np.ndarray, t: float | None = None) -> None:
        """Put the robot into a configuration, at a time."""
        from viser.transforms import SO3

        self.q, self.t = q, self.t if t is None else t
        R, p = poses(self.whole.model.at(self.t), q)
        turns = SO3.from_matrix(R).wxyz if len(R) else R
        with self.server.atomic():
            for i, (turn, place) in enumerate(zip(turns, p, strict=True)):
                self.nodes[i].wxyz, self.nodes[i].position = turn, place
            for overlay in self.overlays:
                overlay.draw(self)


def _bounds(robot: Robot, q: np.ndarray, drawn: list[Solid]) -> np.ndarray:
    """Of all triangles, in the world."""
    R, p = poses(robot.model.at(0.0), q)
    points = [
        solid.vertices if solid.body == WORLD else solid.vertices @ R[solid.body].T + p[solid.body]
        for solid in drawn
    ]
    corners = np.concatenate([np.zeros((1, 3)), *points])
    return np.array([corners.min(axis=0), corners.max(axis=0)])


def _size(robot: Robot, q: np.ndarray) -> float:
    """The diagonal of the box around all joints, frames and centres of mass."""
    model = robot.model.at(0.0)
    R, p = poses(model, q)
    points = [np.zeros(3), *joined(model, WORLD)]
    for i, body in enumerate(model.bodies):
        inside = [np.zeros(3), *joined(model, i)]
        if body.inertia.m:
            inside.append(np.array([x / body.inertia.m for x in body.inertia.h], dtype=float))
        points += [R[i] @ point + p[i] for point in inside]
    return max(float(np.linalg.norm(np.ptp(points, axis=0))), 0.05)
