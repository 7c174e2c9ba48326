"""Motion of contact points, computed with arrays or by a compiled function.

The compiled function includes surfaces with a closed form. Other surfaces are evaluated between two
programs. The first program computes the centers of balls in the frames of the surfaces. Then
`Surface.nearest` computes distances and normals, from which the second program computes the motion
of the contact points.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.errors import InputError
from chasles.expr import RULES, Arena, Number, Program, Variable
from chasles.functions.programs import program
from chasles.functions.tracing import clock
from chasles.mechanisms import Mechanism
from chasles.model import Model
from chasles.motion.geometry.closed_forms import (
    Box,
    Capsule,
    Nearby,
    Nearest,
    Place,
    Plane,
    Sphere,
    applied,
    contact_axes,
    cross,
)
from chasles.motion.geometry.shapes import Body, Surface

Array = Any

NEAR = 1e-9
"""Tolerance (m or rad) for the gap of points in contact. With this tolerance, points that make
contact at the same time are detected together despite rounding errors."""

ALIKE = 1e-9
"""Relative tolerance for equal Jacobians. Contact points with equal Jacobians, such as two corners
that coincide, are merged.
"""


# Frames and contacts ---------------------------------------------------------------------------


class Carrier(NamedTuple):
    """Rotation, position and velocities of a frame in the world, as arrays or symbols."""

    R: np.ndarray
    o: np.ndarray
    w: np.ndarray
    v: np.ndarray
    frame: str | None = None

    def point(self, at: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the world position and velocity of a point fixed in the frame.

        Parameters
        ----------
        at : array_like, shape (3,)
            Point in the frame (m).

        Returns
        -------
        point : ndarray, shape (..., 3)
            Position in the world (m).
        velocity : ndarray, shape (..., 3)
            Velocity along the world axes (m/s).

        Examples
        --------
        >>> import numpy as np
        >>> from chasles.rollouts import FrameMotion
        >>> turning = FrameMotion.of(np.eye(4), np.array([0.0, 0.0, 2.0, 0.0, 0.0, 0.0]), "link")
        >>> turning.point([0.5, 0.0, 0.0])
        (array([0.5, 0. , 0. ]), array([0., 1., 0.]))
        """
        r = self.turned(np.array(at))
        return self.o + r, self.v + cross(self.w, r)

    def turned(self, direction: np.ndarray) -> np.ndarray:
        """Rotate a direction from the frame's axes to the world axes.

        Parameters
        ----------
        direction : ndarray, shape (..., 3)
            Direction in the frame.

        Returns
        -------
        direction : ndarray, shape (..., 3)
            The same direction in world axes.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles.rollouts import FrameMotion
        >>> still = FrameMotion.of(np.eye(4), np.zeros(6), "link")
        >>> still.turned(np.array([1.0, 0.0, 0.0]))
        array([1., 0., 0.])
        """
        return applied(self.R, direction)

    def velocity(self, place: np.ndarray) -> np.ndarray:
        """Return the velocity of the body point at a position in the world.

        Parameters
        ----------
        place : ndarray, shape (..., 3)
            Position in the world (m).

        Returns
        -------
        velocity : ndarray, shape (..., 3)
            Velocity along the world axes (m/s).

        Examples
        --------
        >>> import numpy as np
        >>> from chasles.rollouts import FrameMotion
        >>> turning = FrameMotion.of(np.eye(4), np.array([0.0, 0.0, 2.0, 0.0, 0.0, 0.0]), "link")
        >>> turning.velocity(np.array([0.5, 0.0, 0.0]))
        array([0., 1., 0.])
        """
        return self.v + cross(self.w, place - self.o)

    def back(self, direction: np.ndarray) -> np.ndarray:
        """Rotate a direction from the world axes to the frame's axes.

        Parameters
        ----------
        direction : ndarray, shape (..., 3)
            Direction in world axes.

        Returns
        -------
        direction : ndarray, shape (..., 3)
            The same direction in the frame's axes.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles.rollouts import FrameMotion
        >>> still = FrameMotion.of(np.eye(4), np.zeros(6), "link")
        >>> still.back(np.array([1.0, 0.0, 0.0]))
        array([1., 0., 0.])
        """
        return applied(np.swapaxes(self.R, -1, -2), direction)

    def seen(self, c: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Transform a point and its velocity from the world to the frame.

        Parameters
        ----------
        c : ndarray, shape (..., 3)
            Position in the world (m).
        v : ndarray, shape (..., 3)
            Velocity in the world (m/s).

        Returns
        -------
        point : ndarray, shape (..., 3)
            Position in the frame (m).
        velocity : ndarray, shape (..., 3)
            Relative velocity along the frame's axes (m/s).

        Examples
        --------
        >>> import numpy as np
        >>> from chasles.rollouts import FrameMotion
        >>> sliding = FrameMotion.of(np.eye(4), np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0]), "link")
        >>> sliding.seen(np.array([0.5, 0.0, 0.0]), np.zeros(3))
        (array([0.5, 0. , 0. ]), array([-1.,  0.,  0.]))
        """
        return self.back(c - self.o), self.back(v - self.velocity(c))

    @staticmethod
    def of(pose: np.ndarray, velocity: np.ndarray, frame: str) -> "Carrier":
        """Return the motion of a frame from its pose and velocity.

        Parameters
        ----------
        pose : ndarray, shape (..., 4, 4)
            Pose in the world.
        velocity : ndarray, shape (..., 6)
            Angular (rad/s), then linear velocity of the frame's origin (m/s), along the world axes.
        frame : str
            Name of the frame.

        Returns
        -------
        motion : FrameMotion
            The motion.

        Examples
        --------
        >>> import numpy as np
        >>> from chasles.rollouts import FrameMotion
        >>> FrameMotion.of(np.eye(4), np.zeros(6), "link").o
        array([0., 0., 0.])
        """
        R, o = pose[..., :3, :3], pose[..., :3, 3]
        return Carrier(R, o, velocity[..., :3], velocity[..., 3:], frame)


STILL = Carrier(np.eye(3), *np.zeros((3, 3)))
"""World frame, with zero velocity."""


def carrier(mechanism: Mechanism, q: Array, qd: Array, frame: str | None) -> Carrier:
    """Return the motion of a frame, or of the world (None), as arrays."""
    if frame is None:
        return STILL
    pose = mechanism.forward_kinematics(q, frame=frame)
    return Carrier.of(pose, mechanism.frame_velocity(q, qd, frame=frame), frame)


class Contact(NamedTuple):
    """Contact point, or nearest point, of two bodies; vectors are in the world frame.

    The contact point C is a point in space that moves relative to both bodies.

    Attributes
    ----------
    successor, predecessor : str or None
        Frames of the two bodies, None for the world.
    point : array, shape (..., 3)
        Contact point C (m): the nearest point of the successor.
    normal : array, shape (..., 3)
        Unit vector from the predecessor to the successor.
    gap : array, shape (...)
        Distance (m), negative for penetration.
    point_rate : array, shape (..., 3)
        Velocity of C (m/s).
    normal_rate : array, shape (..., 3)
        Rate of the normal (1/s).
    friction : float
        Coulomb's friction coefficient mu.
    torsion : float
        Coefficient (m) of the friction moment about the normal. Without a tangential force, the
        moment is at most `torsion` times the normal force.
    """

    successor: str | None
    predecessor: str | None
    point: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    point_rate: np.ndarray
    normal_rate: np.ndarray
    friction: float = 0.0
    torsion: float = 0.0


def ball_contact(
    over: Carrier, ball: tuple[Array, float], under: Carrier, surface: Nearby
) -> Contact:
    """Return the contact of a ball (center, radius) with a surface, for arrays or symbols."""
    center, radius = ball
    c, rate = over.point(center)
    distance, normal, normal_rate = nearest_on(under, surface, c, rate)
    if normal.dtype == float and np.any(np.isnan(normal)) and np.all(np.isfinite(c)):
        problem = (
            "the contact normal is undefined: a center or corner of one shape lies at the "
            "center or on the axis of the other"
        )
        raise InputError("E-CONTACT-016", problem, part="contact_points")
    point, moved, gap = c - radius * normal, rate - radius * normal_rate, distance - radius
    return Contact(over.frame, under.frame, point, normal, gap, moved, normal_rate)


def nearest_on(under: Carrier, surface: Nearby, place: np.ndarray, v: np.ndarray) -> Nearest:
    """Return a moving point's distance from a surface, and the normal and its rate in the world."""
    distance, n, turn = surface.nearest(*under.seen(place, v))
    normal = under.turned(n)
    return distance, normal, under.turned(turn) + cross(under.w, normal)


# Points -----------------------------------------------------------------------------------------


class Moves(NamedTuple):
    """Motion of the k contact points of one state, in the order of the pairs.

    Velocities and accelerations are those of the body relative to the surface, along `axes`. The
    acceleration is J qdd + bias; its normal component is the acceleration of the gap.

    Attributes
    ----------
    gap : array, shape (k,)
        Gaps (m).
    axes : array, shape (k, 3, 3)
        Two tangents and the normal as rows, in the world.
    velocity : array, shape (k, 3)
        Velocity J qd (m/s).
    J : array, shape (k, 3, nv)
        Jacobian of the velocity.
    bias : array, shape (k, 3)
        Acceleration at qdd = 0 (m/s2).
    room : array, shape (k,)
        Distance (m) that the bodies can move before other features become the nearest. Infinite if
        there are no other features, negative if other features are already nearer.
    """

    gap: np.ndarray
    axes: np.ndarray
    velocity: np.ndarray
    J: np.ndarray
    bias: np.ndarray
    room: np.ndarray

    def of(self, which: np.ndarray) -> "Moves":
        """Return the motion of the contact points with the indices or mask `which`."""
        return Moves(*(part[which] for part in self))

    @property
    def touch(self) -> np.ndarray:
        """Mask (k,) of the points that touch."""
        return (self.gap <= NEAR) & (self.room >= 0.0)

    def alike(self, some: np.ndarray) -> np.ndarray:
        """Return, for each point in a mask (k,), the index of the first one with the same Jacobian.

        The index is -1 for points outside the mask.
        """
        which, alike = np.flatnonzero(some), np.full(len(some), -1)
        if which.size:
            J = self.J[which]
            same = np.max(np.abs(J[:, None] - J), axis=(-2, -1)) <= ALIKE * np.max(np.abs(J))
            alike[which] = which[np.argmax(same, axis=1)]
        return alike


Closed = Sphere | Capsule | Box | Plane
"""Types of surfaces with a closed form for the nearest point."""


class Ball(NamedTuple):
    """Ball on a body, and the surface that it may touch.

    Attributes
    ----------
    over : str | None
        Frame of the body.
    at, radius : Place and float
        Center of the ball in this frame, and radius (m).
    under : str | None
        Frame of the surface.
    surface : Closed | None
        The surface, or None if its nearest point has no closed form.
    """

    over: str | None
    at: Place
    radius: float
    under: str | None
    surface: Closed | None


class Points:
    """Compiled function for the motion of the contact points of shape pairs, in a single state."""

    def __init__(self, model: Model, pairs: Sequence[tuple[Body, Surface]]) -> None:
        def name(frame: str | None) -> str | None:
            return None if frame is None else model.frame(frame).name

        balls: list[Ball] = []
        asked: dict[Nearby, list[int]] = {}
        for body, surface in pairs:
            known = surface if isinstance(surface, Closed) else None
            for at, radius in body.balls():
                balls.append(Ball(name(body.frame), at, radius, name(surface.frame), known))
                if known is None:
                    numbers = asked.setdefault(surface, [])
                    numbers.append(sum(map(len, asked.values())))
        self._count, self._clock = len(balls), clock(model)
        self._surfaces: list[tuple[Nearby, Any]] = [*asked.items()]
        self._moves = _compiled(model, balls, moves_program)
        if self._surfaces:
            open_ones = [ball for ball in balls if ball.surface is None]
            self._centers = _compiled(model, open_ones, centers_program)

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray) -> Moves:
        """Return the contact points and their motion at a given time."""
        state = (q, qd, *(np.array(t) for _ in self._clock))
        gap, *moves = self._moves(*state, *self._nearest(state))
        if np.isnan(gap).any():
            problem = (
                "the contact normal is undefined: a center or corner of one shape lies at the "
                "center or on the axis of the other"
            )
            raise InputError("E-CONTACT-037", problem, part="simulate")
        axes, velocity, J, bias = moves
        return Moves(gap, axes, velocity, J, bias, np.full(self._count, np.inf))

    def _nearest(self, state: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """Return distances and normals of surfaces without a closed form, and rates of normals."""
        if not self._surfaces:
            return ()
        center, rate = self._centers(*state)
        distance, normal, turn = np.empty(len(center)), np.empty_like(center), np.empty_like(rate)
        for surface, those in self._surfaces:
            distance[those], normal[those], turn[those] = surface.nearest(
                center[those], rate[those]
            )
        return distance, normal, turn


def _compiled(
    model: Model, balls: Sequence[Ball], trace: Callable[[Model, Sequence[Ball]], Program]
) -> Callable[..., Any]:
    """Compile the program that `trace` returns for the balls, as a function of arrays."""
    own = any(joint.custom is not None for joint in model.source.joints)
    traced = trace(model, balls).hash if own else ""
    recipe = (
        trace.__name__,
        model.source,
        model.mimics,
        balls,
        traced,
    )  # all data that determine the program
    known = backends.known(recipe, lambda: trace(model, balls))
    kernel = known or backends.compile(trace(model, balls), recipe=recipe)

    def slow(*arrays: Any) -> Any:
        return call(kernel, "contact", arrays)

    names = ", ".join(variable.name for variable in kernel.interface.inputs)
    facts = {"name": "contact", "signature": names, "doc": "", "holder": None}
    return backends.fast_entry(kernel, fallback=slow, **facts)


# Motion of contacts ------------------------------------------------------------------------------


class Frame(NamedTuple):
    """Pose and velocity of a frame (`motion`), with its acceleration and its Jacobian.

    `rate` (6,) is the acceleration for qdd = 0, and `J` (6, nv) is the Jacobian.
    """

    motion: Carrier
    rate: np.ndarray
    J: np.ndarray

    @staticmethod
    def of(mechanism: Mechanism, q: Array, qd: Array, motion: Carrier) -> "Frame":
        """Return the motion of a frame with its acceleration and Jacobian, as arrays."""
        nv = mechanism.nv
        if motion.frame is None:
            return Frame(motion, np.zeros(6), np.zeros((6, nv)))
        rate = mechanism.frame_acceleration(q, qd, np.zeros(nv), frame=motion.frame)
        return Frame(motion, rate, mechanism.jacobian(q, frame=motion.frame))

    def passing(self, point: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Return the time derivative, for qdd = 0, of the body's velocity at a moving point.

        `point` and `rate` are the position and velocity of the moving point in the world.
        """
        (_, o, w, v, _), alpha, a = self.motion, self.rate[:3], self.rate[3:]
        return a + cross(alpha, point - o) + cross(w, rate - v)

    def columns(self, point: np.ndarray) -> np.ndarray:
        """Return the Jacobian (..., 3, nv) of the body point at a position."""
        return jacobian_at(self.J, point - self.motion.o)


def jacobian_at(J: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Return the Jacobian (..., 3, nv) of the body point at offset r from J's reference point."""
    turned = cross(np.swapaxes(J[..., :3, :], -1, -2), r[..., None, :])
    moved: np.ndarray = J[..., 3:, :] + np.swapaxes(turned, -1, -2)
    return moved


def contact_moves(over: Frame, under: Frame, contact: Contact) -> Moves:
    """Return the motion of one or several contacts between two bodies in one state.

    Accelerations are rates of the velocities of the body points that coincide with the moving
    contact point C (Featherstone 2008, Eq 11.25 and 11.30).
    """
    point, rate, E = contact.point, contact.point_rate, contact_axes(contact.normal)
    velocity = over.motion.velocity(point) - under.motion.velocity(point)
    bias = applied(E, over.passing(point, rate) - under.passing(point, rate))
    bias[..., 2] += np.sum(contact.normal_rate * velocity, axis=-1)
    J = E @ (over.columns(point) - under.columns(point))
    room = np.full(np.shape(contact.gap), np.inf)
    return Moves(contact.gap, E, applied(E, velocity), J, bias, room)


# Programs --------------------------------------------------------------------------------------


def result(traced: Program, arena: Arena, given: Mapping[str, Any]) -> np.ndarray:
    """Apply a program to expressions; return its first output as an array of expressions."""
    entries = traced.applied(given, arena)[0]
    return np.array(entries, dtype=object).reshape(traced.outputs[0].shape)


def centers_program(model: Model, balls: Sequence[Ball]) -> Program:
    """Return the program that computes ball centers and velocities (k, 3) in surface frames."""
    inputs, _, frames = _frames(model, balls)
    seen = [
        frames[ball.under].motion.seen(*frames[ball.over].motion.point(ball.at)) for ball in balls
    ]
    outputs = [
        (Variable(name, (len(balls), 3)), np.ravel(vectors).tolist())
        for name, vectors in zip(("center", "rate"), zip(*seen, strict=True), strict=True)
    ]
    return Program.from_outputs("centers", inputs, outputs)


def moves_program(model: Model, balls: Sequence[Ball]) -> Program:
    """Return the program that computes gap, axes, velocity, J and bias of `Moves` from q and qd.

    For surfaces without a closed form, the inputs include `distance` (k,), `normal` (k, 3) and
    the rate of the normal, `turn` (k, 3), in the surface frames.
    """
    inputs, arena, frames = _frames(model, balls)
    asked, k = sum(ball.surface is None for ball in balls), len(balls)
    given = {"distance": (asked,), "normal": (asked, 3), "turn": (asked, 3)}
    inputs += [Variable(name, size) for name, size in given.items()] if asked else []
    known = map(_Given, *(symbols(arena, name, size) for name, size in given.items()))
    shapes: dict[str, tuple[int, ...]] = {"gap": (k,), "axes": (k, 3, 3), "velocity": (k, 3)}
    shapes |= {"J": (k, 3, model.nv), "bias": (k, 3)}
    found: dict[str, list[Number]] = {name: [] for name in shapes}
    for at in balls:
        over, under, surface = frames[at.over], frames[at.under], at.surface or next(known)
        contact = ball_contact(over.motion, (at.at, at.radius), under.motion, surface)
        moves = contact_moves(over, under, contact)
        for name, numbers in found.items():
            numbers += np.ravel(getattr(moves, name)).tolist()
    outputs = [(Variable(name, shape), found[name]) for name, shape in shapes.items()]
    return Program.from_outputs("moves", inputs, outputs)


def symbols(arena: Arena, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return a program input as an array of symbols."""
    entries = [arena.input(name, k) for k in range(math.prod(shape))]
    return np.array(entries, dtype=object).reshape(shape)


class _Given(NamedTuple):
    """Surface whose nearest point is computed outside the program and passed as an input."""

    distance: Any
    normal: Any
    turn: Any

    def nearest(self, c: np.ndarray, v: np.ndarray) -> Nearest:
        return self


def _frames(
    model: Model, balls: Sequence[Ball]
) -> tuple[list[Variable], Arena, dict[str | None, Frame]]:
    """Return the program inputs, the arena that contains them, and a dictionary of frames.

    The inputs are q and qd, and the time if the model depends on it. The dictionary maps the frame
    names of balls and surfaces to their motions; the name of the world is None.
    """
    arena, n = Arena(RULES), model.nv
    inputs = [Variable("q", (model.nq,)), Variable("qd", (n,)), *clock(model)]
    state = {v.name: [arena.input(v.name, k) for k in range(v.size)] for v in inputs}
    frames: dict[str | None, Frame] = {None: Frame(STILL, np.zeros(6), np.zeros((6, n)))}
    functions = ("forward_kinematics", "frame_velocity", "frame_acceleration", "jacobian")
    for name in dict.fromkeys(name for ball in balls for name in (ball.over, ball.under) if name):
        pose, velocity, rate, J = (
            result(program(model, function, frame=name), arena, state | {"qdd": [0.0] * n})
            for function in functions
        )
        frames[name] = Frame(Carrier.of(pose, velocity, name), rate, J)
    return inputs, arena, frames
