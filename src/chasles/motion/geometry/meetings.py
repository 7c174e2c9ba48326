"""Bodies that touch by other features as they move: which there are, and how far apart they are.

Each pair of features (a corner and a face, two edges, a rim and the ground) is a possible contact
of its own. Its gap is that of the features, wherever they are; its `room` says how far it is from
handing over to its neighbours: beyond an edge of the face, an end of an edge, or where another
feature is turned towards the other body.
"""

from typing import Any, Protocol

import numpy as np

from chasles.motion.geometry.capsules import Capsules
from chasles.motion.geometry.carriers import Carrier, cross
from chasles.motion.geometry.closed_forms import Box, Capsule, Contact, Ground, Plane, Point
from chasles.motion.geometry.features import UPRIGHT, ball_contact, rim_contact
from chasles.motion.geometry.polyhedra import LEANS, Polyhedra, joined
from chasles.motion.geometry.shapes import ConvexMesh, Cylinder


class Meeting(Protocol):
    """The pairs of features of two bodies, numbered."""

    @property
    def size(self) -> int:
        """How many."""

    def gaps(self, over: Carrier, under: Carrier) -> tuple[np.ndarray, np.ndarray]:
        """gap (k,) and room (k,) in m, from how the bodies move; room < 0: others are nearer."""

    def contacts(self, which: np.ndarray, over: Carrier, under: Carrier) -> Contact:
        """Some of them, by their numbers (m,), as contacts: (m, 3) of each."""


class Standing:
    """A cylinder on a plane or a ground: the lowest point of each rim, and fixed ones of both.

    A rim that leans touches by its lowest point, which moves around it. The fixed ones, `rim` of
    each, take its place where it is level and has no lowest point.
    """

    def __init__(self, body: Cylinder, surface: Plane | Ground) -> None:
        self._body, self._surface = body, surface
        self._places = np.array([at for at, _ in body.balls()])

    @property
    def size(self) -> int:
        """Two lowest points, and the fixed ones."""
        return 2 + len(self._places)

    def gaps(self, over: Carrier, under: Carrier) -> tuple[np.ndarray, np.ndarray]:
        """gap (k,) and room (k,), see `Meeting`."""
        body, lowest = self._body, self.contacts(np.arange(2), over, under)
        axis = over.turned(body.rims[0].out)
        leans = np.linalg.norm(cross(axis, lowest.normal), axis=-1)
        fixed, _, _ = self._surface.nearest(*under.seen(*over.point(self._places)))
        gap = np.concatenate([lowest.gap, fixed])
        level = np.repeat(LEANS - leans, body.rim)
        return gap, body.radius * np.concatenate([leans - 2.0 * UPRIGHT, level])

    def contacts(self, which: np.ndarray, over: Carrier, under: Carrier) -> Contact:
        """Some of them, see `Meeting`."""
        frames, surface = (self._body.frame, self._surface.frame), self._surface
        rims, fixed = which[which < 2], which[which >= 2] - 2
        found = [rim_contact(frames, over, self._body.rims[k], under, surface) for k in rims]
        found.append(ball_contact(frames, over, (self._places[fixed], 0.0), under, surface))
        return joined(found, np.argsort(which >= 2, kind="stable"))


MEETINGS: list[tuple[Any, Any, Any]] = [
    (Point | Box | ConvexMesh, Box | ConvexMesh, Polyhedra),
    (Capsule, Box | ConvexMesh, Capsules),
    (Cylinder, Plane | Ground, Standing),
]
"""Bodies on surfaces that touch by other features as they move: one row each."""


def meeting(body: Any, surface: Any) -> Meeting | None:
    """The features by which a body touches a surface, if these vary."""
    for bodies, surfaces, features in MEETINGS:
        if isinstance(body, bodies) and isinstance(surface, surfaces):
            found: Meeting = features(body, surface)
            return found
    return None


def meets(body: Any, surface: Any) -> bool:
    """Whether these vary."""
    return any(isinstance(body, b) and isinstance(surface, s) for b, s, _ in MEETINGS)
