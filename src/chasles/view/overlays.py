"""What can be drawn over a robot: frames, centre of mass, ellipsoids, forces."""

from typing import Any, ClassVar

import numpy as np

from chasles.errors import said
from chasles.view.ellipsoids import of_inertia, of_manipulability
from chasles.view.figure import Figure
from chasles.view.forces import arrows, joint_vectors, reaction_vectors

LONGEST = 0.3
"""The longest arrow, in sizes of the robot."""

PER_RATE = 0.25
"""Seconds: how far a frame comes at a velocity is how an ellipsoid of velocities is drawn."""


class Overlay:
    """Something that is drawn over a figure while it is wanted.

    label: what the checkbox says. said: numbers of it, for people, if it has some.
    """

    label: ClassVar[str]

    def __init__(self, figure: Figure) -> None:
        self.wanted, self.said, self.figure = False, "", figure
        self.nodes: list[Any] = []

    def show(self, wanted: bool) -> None:
        """Begin or end to draw it; nodes are made when it is first wanted."""
        if wanted and not self.nodes:
            self.nodes = self.made(self.figure)
        self.wanted, self.said = wanted, ""
        for node in self.nodes:
            node.visible = wanted
        self.draw(self.figure)

    def draw(self, figure: Figure) -> None:
        """Draw it where the figure is now, if it is wanted; what has no answer says why."""
        if not self.wanted:
            return
        try:
            self.update(figure)
        except (ValueError, TypeError) as error:
            self.said = said(error)
            for node in self.nodes:
                node.visible = False

    def made(self, figure: Figure) -> list[Any]:
        """Its nodes of the scene."""
        raise NotImplementedError

    def update(self, figure: Figure) -> None:
        """What carried nodes need not do: they move with their bodies."""


class Transparency(Overlay):
    """The robot's shapes, seen through: centres of mass and ellipsoids lie inside them."""

    label = "See through"

    def show(self, wanted: bool) -> None:
        self.wanted = wanted
        for node, opacity in self.figure.shapes:
            node.opacity = 0.35 if wanted else opacity


class Frames(Overlay):
    """Axes of all links and frames: x red, y green, z blue."""

    label = "Frames"

    def made(self, figure: Figure) -> list[Any]:
        from viser.transforms import SO3

        nodes, frames = [], list(figure.whole.model.frames.values())
        for i, node in figure.nodes.items():
            here = [frame.placement for frame in frames if frame.body == i]
            if here:
                turns = SO3.from_matrix(np.array([x.R.rows for x in here], dtype=float)).wxyz
                nodes.append(
                    figure.server.scene.add_batched_axes(
                        f"{node.name}/axes",
                        batched_wxyzs=turns,
                        batched_positions=np.array([tuple(x.r) for x in here], dtype=float),
                        axes_length=0.08 * figure.size,
                        axes_radius=0.004 * figure.size,
                    )
                )
        return nodes


class CenterOfMass(Overlay):
    """A ball at the centre of mass of all moving bodies."""

    label = "Centre of mass"

    def made(self, figure: Figure) -> list[Any]:
        name = f"{figure.root}/centre of mass"
        radius = 0.025 * figure.size
        return [figure.server.scene.add_icosphere(name, radius=radius, color=(220, 40, 40))]

    def update(self, figure: Figure) -> None:
        center = figure.robot.center_of_mass(figure.q)
        self.nodes[0].position, self.nodes[0].visible = center, True
        self.said = "({:.4g}, {:.4g}, {:.4g}) m".format(*center)


class InertiaEllipsoids(Overlay):
    """For each link the ellipsoid of even density that has its mass and inertia."""

    label = "Inertia ellipsoids"

    def made(self, figure: Figure) -> list[Any]:
        from viser.transforms import SO3

        nodes, model = [], figure.whole.model
        for link in model.source.links:
            found, frame = of_inertia(link.inertia), model.frames[link.name]
            if found is None:
                continue
            R: np.ndarray = np.array(frame.placement.R.rows, dtype=float)
            nodes.append(
                figure.server.scene.add_icosphere(
                    f"{figure.nodes[frame.body].name}/inertia of {link.name}",
                    color=(120, 90, 200),
                    opacity=0.45,
                    scale=tuple(np.maximum(found.half, 1e-3 * figure.size)),
                    wxyz=SO3.from_matrix(R @ found.R).wxyz,
                    position=R @ found.center + list(frame.placement.r),
                )
            )
        return nodes


class Arrows(Overlay):
    """Sets of arrows, each of a colour."""

    colors: ClassVar[dict[str, tuple[int, int, int]]]

    def made(self, figure: Figure) -> list[Any]:
        return [
            figure.server.scene.add_arrows(
                f"{figure.root}/{what}",
                points=np.zeros((1, 2, 3)),
                colors=color,
                shaft_radius=0.006 * figure.size,
                head_radius=0.015 * figure.size,
                head_length=0.03 * figure.size,
            )
            for what, color in self.colors.items()
        ]

    def put(self, figure: Figure, where: np.ndarray, vectors: list[np.ndarray]) -> None:
        """Draw vectors of each set from the same places, the largest of a set as `LONGEST`."""
        for node, found in zip(self.nodes, vectors, strict=True):
            points = arrows(where, found, LONGEST * figure.size)
            node.visible = bool(len(points))
            if len(points):
                node.points = points.astype(np.float32)


class HoldingForces(Arrows):
    """Torques (along their axes) and forces of joints that hold the robot against gravity."""

    label = "Gravity torques"
    colors: ClassVar = {"holding torques": (240, 140, 20), "holding forces": (30, 120, 220)}

    def update(self, figure: Figure) -> None:
        where, torques, forces = joint_vectors(figure.robot, figure.q)
        self.put(figure, where, [torques, forces])
        self.said = f"at most {_largest(torques):.4g} N m, {_largest(forces):.4g} N"


class Reactions(Arrows):
    """Forces that parents exert on their children in the held robot."""

    label = "Reaction forces"
    colors: ClassVar = {"reactions": (20, 150, 90)}

    def update(self, figure: Figure) -> None:
        where, forces = reaction_vectors(figure.robot, figure.q)
        self.put(figure, where, [forces])
        self.said = f"at most {_largest(forces):.4g} N"


class Manipulability(Overlay):
    """How fast the origin of a frame can move along each direction, at joint rates of length 1."""

    label = "Manipulability"

    def __init__(self, figure: Figure) -> None:
        super().__init__(figure)
        self.frame = figure.whole.frames[-1]

    def made(self, figure: Figure) -> list[Any]:
        name = f"{figure.root}/manipulability"
        return [figure.server.scene.add_icosphere(name, color=(230, 200, 40), opacity=0.5)]

    def update(self, figure: Figure) -> None:
        from viser.transforms import SO3

        found = of_manipulability(figure.robot, figure.q, self.frame)
        node = self.nodes[0]
        node.wxyz, node.position = SO3.from_matrix(found.R).wxyz, found.center
        node.scale = tuple(np.maximum(PER_RATE * found.half, 1e-3 * figure.size))
        node.visible = True
        self.said = "{:.4g}, {:.4g}, {:.4g} m".format(*found.half)


def _largest(vectors: np.ndarray) -> float:
    return float(np.max(np.linalg.norm(vectors, axis=-1), initial=0.0))


OVERLAYS = (
    *(Transparency, Frames, CenterOfMass, InertiaEllipsoids),
    *(HoldingForces, Reactions, Manipulability),
)
"""One row for each that the panel offers."""
