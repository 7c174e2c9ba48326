"""Where two bodies touch, in closed form: a ball against a surface, each carried by a frame.

Points, balls, the ends of a capsule and the corners of a box are balls (of radius zero or more);
planes, grounds of a given height, balls, capsules and boxes are surfaces. A surface is asked, in
its own frame, for the point nearest to a ball's moving centre; what the pair does follows from
that, whatever the two frames do. Lengths in m; centres, ends and poses are in the frame that
carries the shape. frame: of the robot, or None for the world.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from chasles import backends
from chasles.backends.arrays import call
from chasles.expr import RULES, Arena, Number, Program, Variable, jacobian
from chasles.robot import Robot

Array = Any
Place = tuple[float, float, float]
Nearest = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Of a moving point before a surface: distance (...), normal (..., 3) and its rate (..., 3)."""

ROUNDING = 1e-14
STEPS = 50
"""Newton's at most, for the nearest point of a ground."""


class Contact(NamedTuple):
    """A point where two bodies touch, or would touch first; along the world's axes.

    successor, predecessor: the frames that carry the two bodies, None for the world. point C
    (..., 3): on the successor, where it is nearest; normal (..., 3): a unit vector from the
    predecessor to the successor. gap (...): their distance, negative where they penetrate.
    point_rate, normal_rate (..., 3): how C and the normal move, as places, in m/s and 1/s. C slides
    and rolls over both bodies. friction: Coulomb's coefficient mu.
    """

    successor: str | None
    predecessor: str | None
    point: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    point_rate: np.ndarray
    normal_rate: np.ndarray
    friction: float = 0.0


# Shapes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """A point of a body."""

    frame: str | None
    at: Place = (0.0, 0.0, 0.0)

    def balls(self) -> list[tuple[Place, float]]:
        """Itself, as a ball without radius."""
        return [(self.at, 0.0)]


@dataclass(frozen=True)
class Sphere:
    """A ball."""

    frame: str | None
    radius: float
    center: Place = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        _check("Sphere: radius", self.radius)

    def balls(self) -> list[tuple[Place, float]]:
        """Itself."""
        return [(self.center, self.radius)]

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """From the centre."""
        return _from_point(c - np.array(self.center), v, self.radius)


@dataclass(frozen=True)
class Capsule:
    """All points within `radius` of a segment from `start` to `end`."""

    frame: str | None
    radius: float
    start: Place
    end: Place

    def __post_init__(self) -> None:
        _check("Capsule: radius", self.radius)
        _check("Capsule: the distance of its ends", math.dist(self.start, self.end))

    def balls(self) -> list[tuple[Place, float]]:
        """Its ends, which touch a plane first."""
        return [(self.start, self.radius), (self.end, self.radius)]

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """From the nearest point of the segment, which follows along it between the ends."""
        start, along = np.array(self.start), np.subtract(self.end, self.start)
        length = along @ along
        part = (c - start) @ along / length
        inside = (part > 0.0) & (part < 1.0)
        r = c - start - np.clip(part, 0.0, 1.0)[..., None] * along
        follow = np.where(inside, v @ along / length, 0.0)[..., None] * along
        return _from_point(r, v - follow, self.radius)


@dataclass(frozen=True)
class Box:
    """A cuboid with edges `size` along the axes of its frame."""

    frame: str | None
    size: Place
    center: Place = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        _check("Box: every edge", *self.size)

    def balls(self) -> list[tuple[Place, float]]:
        """Its corners, which touch a plane first."""
        (x, y, z), (a, b, c) = self.center, self.size
        return [
            ((x + 0.5 * a * sx, y + 0.5 * b * sy, z + 0.5 * c * sz), 0.0)
            for sx, sy, sz in product((-1.0, 1.0), repeat=3)
        ]

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """From outside the nearest point of face, edge or corner; from inside the nearest face."""
        c, half = c - np.array(self.center), 0.5 * np.array(self.size)
        beyond = np.abs(c) > half
        outside = np.any(beyond, axis=-1)
        r = c - np.clip(c, -half, half)
        face = np.where(np.arange(3) == np.argmin(half - np.abs(c), axis=-1)[..., None], 1.0, 0.0)
        depth = np.min(half - np.abs(c), axis=-1)
        normal = face * np.where(c < 0.0, -1.0, 1.0)
        r = np.where(outside[..., None], r, normal)
        distance, n, rate = _from_point(r, np.where(beyond, v, 0.0), 0.0)
        return np.where(outside, distance, -depth), n, rate


@dataclass(frozen=True)
class Plane:
    """All that lies below a plane through `point`, `normal` up."""

    frame: str | None = None
    normal: Place = (0.0, 0.0, 1.0)
    point: Place = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        _check("Plane: the length of its normal", math.hypot(*self.normal))

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Straight down."""
        n = np.array(self.normal) / np.linalg.norm(self.normal)
        up = np.broadcast_to(n, c.shape)
        return (c - np.array(self.point)) @ n, up, np.zeros_like(up)


@dataclass(frozen=True)
class Ground:
    """All that lies below z = height(x, y), in the world or another frame.

    height is called once, on symbols, and written with arithmetic and the functions of
    `chasles.expr`; it must be smooth. The nearest point of it is found by Newton's method, from
    below the ball's centre, so curvatures must be less than 1/distance.
    """

    height: Callable[[Number, Number], Number]
    frame: str | None = None

    @cached_property
    def _slopes(self) -> Any:
        """Compiled functions of (x, y): the height, its gradient and its Hessian."""
        arena, place = Arena(RULES), Variable("at", (2,))
        x, y = (arena.input("at", k) for k in range(2))
        program = Program.from_outputs(
            "height", [place], [(Variable("height", ()), [self.height(x, y)])]
        )
        first = jacobian(program, ["at"])
        return [backends.compile(p) for p in (program, first, jacobian(first, ["at"]))]

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        """Where c - p is along the normal at p = (x, y, height)."""
        at = np.array(c[..., :2])
        for _ in range(STEPS):
            h, g, K = (call(f, "height", (at,)) for f in self._slopes)
            above = c[..., 2] - h
            miss = c[..., :2] - at + above[..., None] * g
            slope = np.eye(2) + g[..., :, None] * g[..., None, :] - above[..., None, None] * K
            step = np.linalg.solve(slope, miss[..., None])[..., 0]
            at = at + step
            if np.all(np.abs(step) <= ROUNDING * (1.0 + np.abs(at))):
                break
        else:
            raise ValueError("Ground: no nearest point found; is the ball beyond the curvature?")
        moved = np.linalg.solve(slope, (v[..., :2] + v[..., 2:] * g)[..., None])
        rise = -(K @ moved)[..., 0]
        up = np.concatenate([-g, np.ones_like(h)[..., None]], axis=-1)
        size = np.linalg.norm(up, axis=-1, keepdims=True)
        n = up / size
        rate = _across(n, np.concatenate([rise, np.zeros_like(h)[..., None]], axis=-1)) / size
        foot = np.concatenate([at, h[..., None]], axis=-1)
        return np.sum(n * (c - foot), axis=-1), n, rate


Ball = Point | Sphere | Capsule | Box
Surface = Sphere | Capsule | Box | Plane | Ground


def _check(what: str, *lengths: float) -> None:
    """Refuse shapes without extent."""
    if not all(0.0 < length < math.inf for length in lengths):
        raise ValueError(f"{what} must be positive and finite, not {', '.join(map(str, lengths))}")


def _from_point(r: np.ndarray, v: np.ndarray, radius: float) -> Nearest:
    """Before a ball around the origin: r is a place, v its rate."""
    distance = np.linalg.norm(r, axis=-1)
    with np.errstate(invalid="ignore"):  # coinciding centres have no normal: not a number
        n = r / distance[..., None]
        return distance - radius, n, _across(n, v) / distance[..., None]


def _across(n: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v without its part along n."""
    return v - n * np.sum(n * v, axis=-1, keepdims=True)


# Pairs -----------------------------------------------------------------------------------------


class _Carrier(NamedTuple):
    """How a frame moves: rotation, place, angular velocity and velocity, in the world."""

    R: np.ndarray
    o: np.ndarray
    w: np.ndarray
    v: np.ndarray

    def point(self, at: Place) -> tuple[np.ndarray, np.ndarray]:
        """A point of the frame in the world, and its velocity."""
        r = self.R @ np.array(at)
        return self.o + r, self.v + np.cross(self.w, r)

    def seen(self, c: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A point of the world in the frame, and its velocity there."""
        r = c - self.o
        back = np.swapaxes(self.R, -1, -2)
        return (back @ r[..., None])[..., 0], (
            back @ (v - self.v - np.cross(self.w, r))[..., None]
        )[..., 0]


def _carrier(robot: Robot, q: Array, qd: Array, frame: str | None) -> _Carrier:
    if frame is None:
        return _Carrier(np.eye(3), *np.zeros((3, 3)))
    pose = robot.forward_kinematics(q, frame=frame)
    velocity = robot.frame_velocity(q, qd, frame=frame)
    return _Carrier(pose[..., :3, :3], pose[..., :3, 3], velocity[..., :3], velocity[..., 3:])


def contact_points(
    robot: Robot, q: Array, qd: Array, body: Ball, surface: Surface, *, friction: float = 0.0
) -> list[Contact]:
    """The contacts of a body with a surface, near or not: one for each of its points or ends.

    q (..., nq), qd (..., nv). Capsules and boxes touch by their ends and corners, which is all
    there is to them on a plane or a ground that is flat beside them; a ball against a capsule or a
    box is given with the ball as `body`. friction: Coulomb's coefficient mu.
    """
    check_pair("contact_points", body, surface)
    if not friction >= 0.0:
        raise ValueError(f"contact_points: friction must be a number from 0 on, not {friction!r}")
    under, over = (_carrier(robot, q, qd, shape.frame) for shape in (surface, body))
    found = []
    for at, radius in body.balls():
        c, rate = over.point(at)
        distance, n, turn = surface.nearest(*under.seen(c, rate))
        if np.any(np.isnan(n)) and np.all(np.isfinite(c)):
            raise ValueError("contact_points: two centres coincide, so that no normal is nearest")
        normal = (under.R @ n[..., None])[..., 0]
        normal_rate = (under.R @ turn[..., None])[..., 0] + np.cross(under.w, normal)
        found.append(
            Contact(
                body.frame,
                surface.frame,
                c - radius * normal,
                normal,
                distance - radius,
                rate - radius * normal_rate,
                normal_rate,
                friction,
            )
        )
    return found


def check_pair(function: str, body: Ball, surface: Surface) -> None:
    """Refuse two shapes whose contact has no closed form; function: who says so."""
    if isinstance(body, Capsule | Box) and not isinstance(surface, Plane | Ground):
        raise ValueError(
            f"{function}: {type(body).__name__} against {type(surface).__name__} has no closed "
            "form here; give a Point or Sphere as body, or a Plane or Ground as surface"
        )


def minimal(contacts: Sequence[Contact], *, tolerance: float = 1e-9) -> list[Contact]:
    """The contacts without those that say nothing beyond the others: a minimal set.

    One is left out where its normal, as a unit force along its line, is a sum of others of the same
    two bodies with factors >= 0 (Featherstone 2008, section 11.6). Of an edge on a plane its two
    ends are left, of a face the corners of its convex hull. Without friction nothing changes.
    contacts: of one state. tolerance: relative, with lengths in parts of the patch.
    """
    kept = list(contacts)
    for contact in contacts:
        others = [o for o in kept if o is not contact and o[:2] == contact[:2]]
        size = max((np.linalg.norm(o.point - contact.point) for o in others), default=0.0) or 1.0
        lines = [
            np.concatenate([np.cross(o.point - contact.point, o.normal) / size, o.normal])
            for o in (*others, contact)
        ]
        if others and nnls(np.transpose(lines[:-1]), lines[-1])[1] <= tolerance:
            kept = [o for o in kept if o is not contact]
    return kept
