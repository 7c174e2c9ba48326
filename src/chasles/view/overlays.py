"""Overlays drawn on a robot: frames, center of mass, ellipsoids, forces, traces and a target."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from chasles.errors import said
from chasles.functions.targets import Pose
from chasles.view import posture
from chasles.view.figure import Figure, step
from chasles.view.solids import collision_solids

LONGEST = 0.3
"""Length of the longest arrow, relative to the robot's size."""

WEIGHT, MOST = 0.8, 1.6
"""Length of a contact-force arrow for the robot's weight, and maximum length of such an arrow,
relative to the robot's size. Arrows for the feet of a standing robot then extend beyond its legs.
"""

REACHED = 1e-4
"""Tolerance (m and rad) within which a target counts as reached."""

MOST_POINTS = 3000
"""Maximum number of points in a trace. Older points are dropped."""

PER_RATE = 0.25
"""Scale factor (s) from velocity to length in manipulability ellipsoids."""


# Overlays -------------------------------------------------------------------------------------


class Overlay:
    """Base class of overlays, such as coordinate axes. `said` is a message shown in the panel."""

    label: ClassVar[str]

    def __init__(self, figure: Figure) -> None:
        self.wanted, self.said, self.figure = False, "", figure
        self.nodes: list[Any] = []

    def show(self, wanted: bool) -> None:
        """Show or hide the overlay. Scene nodes are created on first use."""
        if wanted and not self.nodes:
            self.nodes = list(self.made(self.figure))
        self.wanted, self.said = wanted, ""
        for node in self.nodes:
            node.visible = wanted
        self.draw(self.figure)

    def draw(self, figure: Figure) -> None:
        """Update the overlay if it is shown. Errors are reported in `said`."""
        if not self.wanted:
            return
        try:
            self.update(figure)
        except (ValueError, TypeError) as error:
            self.said = said(error)
            for node in self.nodes:
                node.visible = False

    def made(self, figure: Figure) -> Iterator[Any]:
        """Create the scene nodes of the overlay."""
        raise NotImplementedError

    def update(self, figure: Figure) -> None:
        """Update the scene nodes. Nodes attached to bodies move with the bodies."""


class Transparency(Overlay):
    """Overlay that makes the robot transparent, so that overlays inside it are visible."""

    label = "See through"

    def show(self, wanted: bool) -> None:
        self.wanted = wanted
        for node, opacity in self.figure.shapes:
            node.opacity = 0.35 if wanted else opacity


class CollisionShapes(Overlay):
    """Collision shapes and meshes of the robot."""

    label = "Collision shapes"

    def made(self, figure: Figure) -> Iterator[Any]:
        yield from figure.add("collision shape", collision_solids(figure.whole.model))

    def update(self, figure: Figure) -> None:
        self.said = "" if self.nodes else "the robot has no collision shapes"


class Frames(Overlay):
    """Coordinate axes of all links and frames: x red, y green, z blue."""

    label = "Frames"

    def made(self, figure: Figure) -> Iterator[Any]:
        frames = figure.whole.model.frames.values()
        for i, node in figure.nodes.items():
            here = [frame.placement for frame in frames if frame.body == i]
            if here:
                yield figure.server.scene.add_batched_axes(
                    f"{node.name}/axes",
                    batched_wxyzs=posture.quaternions(
                        np.array([x.R.rows for x in here], dtype=float)
                    ),
                    batched_positions=np.array([tuple(x.r) for x in here], dtype=float),
                    axes_length=0.08 * figure.size,
                    axes_radius=0.004 * figure.size,
                )


class CenterOfMass(Overlay):
    """A ball at the center of mass of all moving bodies."""

    label = "Center of mass"

    def made(self, figure: Figure) -> Iterator[Any]:
        name = f"{figure.root}/center of mass"
        radius = 0.025 * figure.size
        yield figure.server.scene.add_icosphere(name, radius=radius, color=(220, 40, 40))

    def update(self, figure: Figure) -> None:
        center = figure.robot.center_of_mass(figure.q)
        self.nodes[0].position, self.nodes[0].visible = center, True
        self.said = "({:.4g}, {:.4g}, {:.4g}) m".format(*center)


class InertiaEllipsoids(Overlay):
    """Uniform ellipsoids with the same masses and inertias as the links."""

    label = "Inertia ellipsoids"

    def made(self, figure: Figure) -> Iterator[Any]:
        model = figure.whole.model
        for k, link in enumerate(model.source.links):
            found, frame = posture.of_inertia(link.inertia), model.frames[link.name]
            if found is None:
                continue
            R: np.ndarray = np.array(frame.placement.R.rows, dtype=float)
            yield figure.server.scene.add_icosphere(
                f"{figure.nodes[frame.body].name}/inertia {k} {step(link.name)}",
                color=(120, 90, 200),
                opacity=0.45,
                scale=tuple(np.maximum(found.half, 1e-3 * figure.size)),
                wxyz=posture.quaternions(R @ found.R),
                position=R @ found.center + list(frame.placement.r),
            )


class Arrows(Overlay):
    """Base class of overlays that draw one or more sets of arrows, each in its own color."""

    colors: ClassVar[dict[str, tuple[int, int, int]]]

    def made(self, figure: Figure) -> Iterator[Any]:
        for what, color in self.colors.items():
            yield figure.server.scene.add_arrows(
                f"{figure.root}/{what}",
                points=np.zeros((1, 2, 3)),
                colors=color,
                shaft_radius=0.006 * figure.size,
                head_radius=0.015 * figure.size,
                head_length=0.03 * figure.size,
            )

    def put(self, figure: Figure, where: np.ndarray, vectors: list[np.ndarray]) -> None:
        """Draw several sets of vectors at the same points.

        The longest arrow in each set has the length `LONGEST`, relative to the robot's size.
        """
        for node, found in zip(self.nodes, vectors, strict=True):
            points = posture.arrows(where, found, LONGEST * figure.size)
            node.visible = bool(len(points))
            if len(points):
                node.points = points.astype(np.float32)


class HoldingForces(Arrows):
    """Joint torques and forces that balance gravity, drawn along the joint axes."""

    label = "Gravity torques"
    colors: ClassVar = {"holding torques": (240, 140, 20), "holding forces": (30, 120, 220)}

    def update(self, figure: Figure) -> None:
        where, torques, forces = posture.joint_vectors(figure.robot, figure.q)
        self.put(figure, where, [torques, forces])
        self.said = f"at most {_largest(torques):.4g} N m, {_largest(forces):.4g} N"


class Reactions(Arrows):
    """Reaction forces that parent links exert on child links in static equilibrium."""

    label = "Reaction forces"
    colors: ClassVar = {"reactions": (20, 150, 90)}

    def update(self, figure: Figure) -> None:
        where, forces = posture.reaction_vectors(figure.robot, figure.q)
        self.put(figure, where, [forces])
        self.said = f"at most {_largest(forces):.4g} N"


class ContactForces(Arrows):
    """Contact forces on the robot during a simulated motion.

    An arrow of length `WEIGHT` corresponds to the robot's weight.
    """

    label = "Contact forces"
    colors: ClassVar = {"contact forces": (200, 30, 60)}

    def update(self, figure: Figure) -> None:
        if figure.felt is None:
            self.said = "the motion has no contact forces; simulate with `contacts`"
            self.nodes[0].visible = False
            return
        where, forces = figure.felt(figure.t)
        weight = figure.whole.mass * float(np.linalg.norm(figure.whole.gravity))
        sizes = np.linalg.norm(forces, axis=-1)
        scale = WEIGHT * figure.size / max(weight, 1e-9)
        scale = np.minimum(scale, MOST * figure.size / np.maximum(sizes, 1e-9))
        shown = (sizes > 1e-3 * max(weight, 1e-9)) & np.isfinite(where).all(axis=-1)
        ends = where + forces * scale[:, None]
        self.nodes[0].visible = bool(shown.any())
        if shown.any():
            self.nodes[0].points = np.stack([where, ends], axis=1)[shown].astype(np.float32)
        total = forces.sum(axis=0)
        self.said = "total ({:.4g}, {:.4g}, {:.4g}) N".format(*total)


class Manipulability(Overlay):
    """Manipulability ellipsoid: velocities of a frame's origin for unit joint velocities."""

    label = "Manipulability"

    def __init__(self, figure: Figure) -> None:
        super().__init__(figure)
        self.frame = figure.whole.tool

    def made(self, figure: Figure) -> Iterator[Any]:
        name = f"{figure.root}/manipulability"
        yield figure.server.scene.add_icosphere(name, color=(230, 200, 40), opacity=0.5)

    def update(self, figure: Figure) -> None:
        found = posture.of_manipulability(figure.robot, figure.q, self.frame)
        node = self.nodes[0]
        node.wxyz, node.position = posture.quaternions(found.R), found.center
        node.scale = tuple(np.maximum(PER_RATE * found.half, 1e-3 * figure.size))
        node.visible = True
        self.said = "{:.4g}, {:.4g}, {:.4g} m".format(*found.half)


class Trace(Overlay):
    """Path of a frame's origin since the overlay was switched on."""

    label = "Trace"

    def __init__(self, figure: Figure) -> None:
        super().__init__(figure)
        self.frame = figure.whole.tool
        self.points: list[np.ndarray] = []

    def show(self, wanted: bool) -> None:
        self.points.clear()
        super().show(wanted)

    def made(self, figure: Figure) -> Iterator[Any]:
        yield figure.server.scene.add_line_segments(
            f"{figure.root}/trace",
            np.zeros((1, 2, 3), np.float32),
            (214, 60, 60),
            thickness=3.0,
            thickness_units="screen",
        )

    def update(self, figure: Figure) -> None:
        here = figure.robot.forward_kinematics(figure.q, frame=self.frame)[:3, 3]
        if self.points and np.linalg.norm(here - self.points[-1]) < 1e-3 * figure.size:
            return
        self.points = [*self.points, here][-MOST_POINTS:]
        path = np.array(self.points, dtype=np.float32)
        self.nodes[0].visible = len(path) > 1
        if len(path) > 1:
            self.nodes[0].points = np.stack([path[:-1], path[1:]], axis=1)


class Target(Overlay):
    """Draggable handle that moves a frame by inverse kinematics."""

    label = "Drag target"

    def __init__(self, figure: Figure) -> None:
        super().__init__(figure)
        self.frame, self.held = figure.whole.tool, False
        self.dragged: Callable[[str], None] = lambda phase: None
        """Callback for drag events, called with the phase: "start", "update" or "end"."""

    def show(self, wanted: bool) -> None:
        if wanted != self.wanted:
            self.figure.selectable(not wanted)
        super().show(wanted)

    def made(self, figure: Figure) -> Iterator[Any]:
        size = 0.2 * figure.size
        node = figure.server.scene.add_transform_controls(
            f"{figure.root}/target", scale=size, depth_test=False
        )
        node.on_update(lambda event: self.dragged(event.phase))
        yield node

    def update(self, figure: Figure) -> None:
        if self.held:  # the handle follows the mouse
            return
        T = figure.robot.forward_kinematics(figure.q, frame=self.frame)
        node = self.nodes[0]
        node.wxyz, node.position, node.visible = posture.quaternions(T[:3, :3]), T[:3, 3], True
        self.said = ""

    def follow(self, phase: str) -> None:
        """Move the robot so that the frame is as close to the handle as possible."""
        figure, node = self.figure, self.nodes[0]
        if phase == "update":  # update events may arrive after "end"
            target = {self.frame: Pose((node.position, node.wxyz), tolerance=REACHED)}
            found = figure.robot.inverse_kinematics(target, guess=figure.q, tries=1)
            angle, distance = found.residual
            self.said = "" if found.solved else f"{distance:.3g} m, {angle:.3g} rad away"
            figure.move(figure.robot.mechanism.near(found.q))
        else:
            self.held = phase == "start"
            self.draw(figure)


def _largest(vectors: np.ndarray) -> float:
    return float(np.max(np.linalg.norm(vectors, axis=-1), initial=0.0))


OVERLAYS = (
    *(Transparency, CollisionShapes, Frames, CenterOfMass, InertiaEllipsoids),
    *(HoldingForces, Reactions, ContactForces, Manipulability, Trace, Target),
)
"""Overlays listed in the panel."""
