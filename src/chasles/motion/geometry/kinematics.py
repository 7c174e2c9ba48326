"""Motion of frames and of points of contact, as arrays and as one compiled function.

The compiled function has the surfaces in it. Surfaces without a closed form stand between two: the
first gives the centres of balls as they see them, `Surface.nearest` gives distances and normals,
and the second what these mean for the robot's velocities and accelerations.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.errors import InputError
from chasles.expr import RULES, Arena, Number, Program, Variable
from chasles.functions.programs import program
from chasles.functions.tracing import clock
from chasles.mathematics.linear import Matrix, Vector
from chasles.mechanisms import Mechanism
from chasles.model import Model
from chasles.motion.geometry.closed_forms import (
    Box,
    Capsule,
    Nearby,
    Place,
    Plane,
    Sphere,
    tangents,
)
from chasles.motion.geometry.shapes import Body, Surface, cross

Array = Any

NEAR = 1e-9
"""Points this near (m, rad) to a surface touch it: those that land together, but for rounding."""

ALIKE = 1e-9
"""Points that move alike, but for this part, are one: a corner on a corner."""


# Frames -----------------------------------------------------------------------------------------


def applied(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Matrices (..., m, n) times vectors (..., n)."""
    product: np.ndarray = (matrix @ vector[..., None])[..., 0]
    return product


class Carrier(NamedTuple):
    """How a frame moves: rotation, place, angular velocity and velocity, in the world."""

    R: np.ndarray
    o: np.ndarray
    w: np.ndarray
    v: np.ndarray

    def point(self, at: Array) -> tuple[np.ndarray, np.ndarray]:
        """A point of the frame in the world, and its velocity."""
        r = self.turned(np.array(at))
        return self.o + r, self.v + cross(self.w, r)

    def turned(self, direction: np.ndarray) -> np.ndarray:
        """A direction of the frame in the world."""
        return applied(self.R, direction)

    def velocity(self, place: np.ndarray) -> np.ndarray:
        """The velocity of the body's point that is at a place of the world."""
        return self.v + cross(self.w, place - self.o)

    def back(self, direction: np.ndarray) -> np.ndarray:
        """A direction of the world in the frame."""
        return applied(np.swapaxes(self.R, -1, -2), direction)

    def seen(self, c: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A point of the world in the frame, and its velocity there."""
        return self.back(c - self.o), self.back(v - self.velocity(c))


def carrier(mechanism: Mechanism, q: Array, qd: Array, frame: str | None) -> Carrier:
    """The motion of a frame as arrays; None is the world."""
    if frame is None:
        return Carrier(np.eye(3), *np.zeros((3, 3)))
    pose = mechanism.forward_kinematics(q, frame=frame)
    velocity = mechanism.frame_velocity(q, qd, frame=frame)
    return Carrier(pose[..., :3, :3], pose[..., :3, 3], velocity[..., :3], velocity[..., 3:])


class FrameMotion(NamedTuple):
    """How a frame moves: its axes and origin o, its angular velocity w and velocity v of o.

    All in the world. Entries are numbers, symbols, or arrays of a batch.
    """

    axes: tuple[Vector, Vector, Vector]
    o: Vector
    w: Vector
    v: Vector

    @staticmethod
    def of(pose: Sequence[Number], velocity: Sequence[Number]) -> "FrameMotion":
        """The motion with a pose (4, 4), by rows, and a velocity (6,), angular part first."""
        x, y, z, o = (Vector(tuple(pose[k:12:4])) for k in range(4))
        return FrameMotion((x, y, z), o, Vector(tuple(velocity[:3])), Vector(tuple(velocity[3:])))

    @staticmethod
    def still() -> "FrameMotion":
        """The world."""
        axes = Vector.of(1.0, 0.0, 0.0), Vector.of(0.0, 1.0, 0.0), Vector.of(0.0, 0.0, 1.0)
        return FrameMotion(axes, Vector.zero(), Vector.zero(), Vector.zero())

    def along(self, direction: Vector) -> Vector:
        """A direction of the frame along the world's axes."""
        rows = zip(*self.axes, strict=True)
        return Vector(tuple([Vector(row).dot(direction) for row in rows]))

    def point(self, at: Sequence[Number]) -> tuple[Vector, Vector]:
        """A point of the frame in the world, and its velocity."""
        c = self.o + self.along(Vector(tuple(at)))
        return c, self.velocity(c)

    def velocity(self, point: Vector) -> Vector:
        """That of the frame's body at a point of the world."""
        return self.v + self.w.cross(point - self.o)

    def seen(self, c: Vector, v: Vector) -> tuple[Vector, Vector]:
        """A moving point of the world in the frame, and its velocity there."""
        place, rate = (
            Vector(tuple([a.dot(x) for a in self.axes])) for x in (c - self.o, v - self.velocity(c))
        )
        return place, rate


# Points -----------------------------------------------------------------------------------------


class Moves(NamedTuple):
    """The points of contact of one state, in the order of the pairs, k of them.

    gap (k,), in m. axes (k, 3, 3): tangent, tangent and normal as rows, in the world. Along these,
    of the body relative to the surface: velocity (k, 3) = J qd, J (k, 3, nv), and the acceleration
    J qdd + bias (k, 3), whose normal part is that of the gap. room (k,): how far, in m, until other
    features of the bodies are the nearest; infinite where none are, negative where others are.
    """

    gap: np.ndarray
    axes: np.ndarray
    velocity: np.ndarray
    J: np.ndarray
    bias: np.ndarray
    room: np.ndarray

    def of(self, which: np.ndarray) -> "Moves":
        """Some of the points."""
        return Moves(*(part[which] for part in self))

    @property
    def touch(self) -> np.ndarray:
        """Which points touch: (k,)."""
        return (self.gap <= NEAR) & (self.room >= 0.0)

    def alike(self, some: np.ndarray) -> np.ndarray:
        """Of some points (truth, (k,)), the first that moves as each does; -1 of others: (k,)."""
        which, alike = np.flatnonzero(some), np.full(len(some), -1)
        if which.size:
            J = self.J[which]
            same = np.max(np.abs(J[:, None] - J), axis=(-2, -1)) <= ALIKE * np.max(np.abs(J))
            alike[which] = which[np.argmax(same, axis=1)]
        return alike


Closed = Sphere | Capsule | Box | Plane
"""Surfaces with a closed form of what is nearest."""


class Ball(NamedTuple):
    """A ball of a body (its frame, its centre there, its radius), and the frame of a surface.

    surface: itself, where it has a closed form.
    """

    over: str | None
    at: Place
    radius: float
    under: str | None
    surface: Closed | None


class Points:
    """The points of contact of some pairs, of a robot in one state.

    They are those of `contact_points`, and move as `touch` says.
    """

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
        """Where the points are at a time and how they move."""
        state = (q, qd, *(np.array(t) for _ in self._clock))
        gap, *moves = self._moves(*state, *self._nearest(state))
        if np.isnan(gap).any():
            problem = "two centres coincide, so that no normal is nearest"
            raise InputError("E-CONTACT-037", problem, part="simulate")
        axes, velocity, J, bias = moves
        return Moves(gap, axes, velocity, J, bias, np.full(self._count, np.inf))

    def _nearest(self, state: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """Distances (k,), normals and their rates (k, 3) of surfaces without a closed form."""
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
    """A program of the points as a function of arrays."""
    own = any(joint.custom is not None for joint in model.source.joints)
    traced = trace(model, balls).hash if own else ""
    recipe = (trace.__name__, model.source, model.mimics, balls, traced)  # all that decides it
    known = backends.known(recipe, lambda: trace(model, balls))
    kernel = known or backends.compile(trace(model, balls), recipe=recipe)

    def slow(*arrays: Any) -> Any:
        return call(kernel, "contact", arrays)

    names = ", ".join(variable.name for variable in kernel.interface.inputs)
    facts = {"name": "contact", "signature": names, "doc": "", "holder": None}
    return backends.fast_entry(kernel, fallback=slow, **facts)


# Programs --------------------------------------------------------------------------------------


def replayed(traced: Program, arena: Arena, given: Mapping[str, Sequence[Number]]) -> list[Number]:
    """The first result of a program, recorded in an arena for given inputs."""
    values = traced.replay(given, arena)
    return [values[r] for r in traced.results[0]]


class _Frame(NamedTuple):
    """A frame's motion, its acceleration at qdd = 0, and its Jacobian by columns."""

    motion: FrameMotion
    alpha: Vector
    a: Vector
    J: list[tuple[Vector, Vector]]

    def passing(self, point: Vector, rate: Vector) -> Vector:
        """The rate, at qdd = 0, of the velocity of the body's point at a place that moves."""
        o, w, v = self.motion[1:]
        return self.a + self.alpha.cross(point - o) + w.cross(rate - v)

    def columns(self, point: Vector) -> list[Vector]:
        """The Jacobian of the body's point at a place."""
        r = point - self.motion.o
        return [linear + angular.cross(r) for angular, linear in self.J]


def centers_program(model: Model, balls: Sequence[Ball]) -> Program:
    """Centres and their velocities (k, 3), each in the frame of its surface, of q and qd."""
    inputs, _, frames = _frames(model, balls)
    seen = [
        frames[ball.under].motion.seen(*frames[ball.over].motion.point(ball.at)) for ball in balls
    ]
    shape = (len(balls), 3)
    outputs = [
        (Variable(name, shape), [x for vector in vectors for x in vector])
        for name, vectors in zip(("center", "rate"), zip(*seen, strict=True), strict=True)
    ]
    return Program.from_outputs("centers", inputs, outputs)


def moves_program(model: Model, balls: Sequence[Ball]) -> Program:
    """gap, axes, velocity, J and bias of `Moves`, of q and qd.

    Of surfaces without a closed form distance (k,), normal and turn (k, 3), its rate, are inputs,
    in their frames. The contact moves on over both bodies, and its acceleration is that of
    whichever points are there (Featherstone 2008, Eq 11.25 and 11.30).
    """
    inputs, arena, frames = _frames(model, balls)
    asked, k = sum(ball.surface is None for ball in balls), len(balls)
    given = {"distance": (asked,), "normal": (asked, 3), "turn": (asked, 3)}
    inputs += [Variable(name, shape) for name, shape in given.items()] if asked else []
    known = iter(range(asked))
    shapes: dict[str, tuple[int, ...]] = {"gap": (k,), "axes": (k, 3, 3), "velocity": (k, 3)}
    shapes |= {"J": (k, 3, model.nv), "bias": (k, 3)}
    found: dict[str, list[Number]] = {name: [] for name in shapes}
    for ball in balls:
        body, ground = frames[ball.over], frames[ball.under]
        over, under = body.motion, ground.motion
        c, speed = over.point(ball.at)
        distance, n, turn = (
            _given(arena, next(known))
            if ball.surface is None
            else ball.surface.near(*under.seen(c, speed))
        )
        normal = under.along(n)
        n_rate = under.along(turn) + under.w.cross(normal)
        point, rate = c - ball.radius * normal, speed - ball.radius * n_rate
        E = Matrix(tuple(tuple(row) for row in (*tangents(normal), normal)))
        v = over.velocity(point) - under.velocity(point)
        a = E @ (body.passing(point, rate) - ground.passing(point, rate))
        columns = [
            E @ (first - second)
            for first, second in zip(body.columns(point), ground.columns(point), strict=True)
        ]
        found["gap"].append(distance - ball.radius)
        found["axes"] += [x for row in E.rows for x in row]
        found["velocity"] += E @ v
        found["J"] += [column[row] for row in range(3) for column in columns]
        found["bias"] += [a[0], a[1], a[2] + n_rate.dot(v)]
    outputs = [(Variable(name, shape), found[name]) for name, shape in shapes.items()]
    return Program.from_outputs("moves", inputs, outputs)


def _given(arena: Arena, k: int) -> tuple[Number, Vector, Vector]:
    """Distance, normal and its rate as inputs."""
    normal, turn = (
        Vector(tuple(arena.input(name, 3 * k + j) for j in range(3))) for name in ("normal", "turn")
    )
    return arena.input("distance", k), normal, turn


def _frames(
    model: Model, balls: Sequence[Ball]
) -> tuple[list[Variable], Arena, dict[str | None, _Frame]]:
    """Inputs (the state, and the time where it counts), and frames by name; the world's is None."""
    arena, n, zero = Arena(RULES), model.nv, Vector.zero()
    inputs = [Variable("q", (model.nq,)), Variable("qd", (n,)), *clock(model)]
    state = {v.name: [arena.input(v.name, k) for k in range(v.size)] for v in inputs}
    frames: dict[str | None, _Frame] = {
        None: _Frame(FrameMotion.still(), zero, zero, [(zero, zero)] * n)
    }
    for name in dict.fromkeys(name for ball in balls for name in (ball.over, ball.under)):
        if name is None:
            continue
        pose, velocity, rate, J = (
            replayed(program(model, function, frame=name), arena, state | {"qdd": [0.0] * n})
            for function in (
                "forward_kinematics",
                "frame_velocity",
                "frame_acceleration",
                "jacobian",
            )
        )
        columns = [Vector(tuple(J[k : k + 3 * n : n])) for k in (*range(n), *range(3 * n, 4 * n))]
        alpha, a = Vector(tuple(rate[:3])), Vector(tuple(rate[3:]))
        by_column = list(zip(columns[:n], columns[n:], strict=True))
        frames[name] = _Frame(FrameMotion.of(pose, velocity), alpha, a, by_column)
    return inputs, arena, frames
