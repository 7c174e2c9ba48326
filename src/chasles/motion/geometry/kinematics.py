"""How all points of contact of a robot move: one compiled function, with the surfaces in it.

Surfaces without a closed form stand between two: the first gives the centres of balls as they see
them, `Surface.nearest` gives distances and normals, and the second what these mean for the robot's
velocities and accelerations.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.errors import InputError
from chasles.expr import RULES, Arena, Number, Program, Variable
from chasles.functions.programs import program
from chasles.functions.tracing import clock
from chasles.mathematics.linear import Matrix, Vector
from chasles.model import Description, Model
from chasles.motion.contact.pairs import Pair, tangents
from chasles.motion.contract import Machine
from chasles.motion.geometry.closed_forms import Box, Capsule, Nearby, Plane, Sphere

NEAR = 1e-9
"""Points this near (m, rad) to a surface touch it: those that land together, but for rounding."""

ALIKE = 1e-9
"""Points that move alike, but for this part, are one: a corner on a corner."""


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
    at: tuple[float, float, float]
    radius: float
    under: str | None
    surface: Closed | None


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the code: the mechanism and the balls."""

    source: Description
    mimic: bool
    balls: tuple[Ball, ...]
    part: str
    program: str


class Points:
    """The points of contact of some pairs, of a robot in one state.

    They are those of `contact_points`, and move as `touch` says.
    """

    def __init__(self, robot: Machine, pairs: Sequence[Pair]) -> None:
        names = {
            name: _frame(robot, name) for p in pairs for name in (p.body.frame, p.surface.frame)
        }
        each = [(pair, *ball) for pair in pairs for ball in pair.body.balls()]
        balls = tuple(
            Ball(names[pair.body.frame], at, radius, names[pair.surface.frame], closed(pair))
            for pair, at, radius in each
        )
        self._count, self._clock = len(balls), clock(robot.model)
        self._surfaces = _grouped([pair.surface for pair, *_ in each if closed(pair) is None])
        self._moves = _compiled(robot, balls, moves_program)
        if self._surfaces:
            open_ones = tuple(ball for ball in balls if ball.surface is None)
            self._centers = _compiled(robot, open_ones, centers_program)

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


def closed(pair: Pair) -> Closed | None:
    """The surface of a pair, if it has a closed form."""
    return pair.surface if isinstance(pair.surface, Closed) else None


def _frame(robot: Machine, name: str | None) -> str | None:
    return None if name is None else robot.model.frame(name).name


def _grouped(surfaces: Sequence[Nearby]) -> list[tuple[Nearby, Any]]:
    """Each different surface with the numbers of its points."""
    different = dict.fromkeys(surfaces)
    return [(one, [k for k, other in enumerate(surfaces) if other == one]) for one in different]


def _compiled(
    robot: Machine, balls: tuple[Ball, ...], trace: Callable[[Model, Sequence[Ball]], Program]
) -> Callable[..., Any]:
    """A program of the points as a function of arrays."""
    model = robot.model
    own = any(joint.custom is not None for joint in model.source.joints)
    traced = trace(model, balls).hash if own else ""
    recipe = Recipe(model.source, robot.mimic, balls, trace.__name__, traced)
    known = backends.known(recipe, lambda: trace(model, balls))
    kernel = known or backends.compile(trace(model, balls), recipe=recipe)

    def slow(*arrays: Any) -> Any:
        return call(kernel, "contact", arrays)

    names = ", ".join(variable.name for variable in kernel.interface.inputs)
    facts = {"name": "contact", "signature": names, "doc": "", "holder": None}
    return backends.fast_entry(kernel, fallback=slow, **facts)


# Programs --------------------------------------------------------------------------------------


class _Frame(NamedTuple):
    """A frame's rotation, place, velocity and acceleration at qdd = 0, and Jacobian by columns."""

    R: Matrix
    o: Vector
    w: Vector
    v: Vector
    alpha: Vector
    a: Vector
    J: list[tuple[Vector, Vector]]

    def velocity(self, place: Vector) -> Vector:
        """That of the body's point which is at a place."""
        return self.v + self.w.cross(place - self.o)

    def point(self, at: tuple[float, float, float]) -> tuple[Vector, Vector]:
        """A point of the frame in the world, and its velocity."""
        place = self.o + self.R @ Vector(at)
        return place, self.velocity(place)

    def seen(self, place: Vector, rate: Vector) -> tuple[Vector, Vector]:
        """A moving place of the world in the frame, and its velocity there."""
        return self.R.T @ (place - self.o), self.R.T @ (rate - self.velocity(place))


def centers_program(model: Model, balls: Sequence[Ball]) -> Program:
    """Centres and their velocities (k, 3), each in the frame of its surface, of q and qd."""
    inputs, given, arena = _inputs(model)
    frames = _frames(model, balls, given, arena)
    centers: list[Number] = []
    rates: list[Number] = []
    for ball in balls:
        center, rate = frames[ball.under].seen(*frames[ball.over].point(ball.at))
        centers += center
        rates += rate
    shape = (len(balls), 3)
    outputs = [(Variable("center", shape), centers), (Variable("rate", shape), rates)]
    return Program.from_outputs("centers", inputs, outputs)


def moves_program(model: Model, balls: Sequence[Ball]) -> Program:
    """gap, axes, velocity, J and bias of `Moves`, of q and qd.

    Of surfaces without a closed form distance (k,), normal and turn (k, 3), its rate, are inputs,
    in their frames. The contact moves on over both bodies, and its acceleration is that of
    whichever points are there (Featherstone 2008, Eq 11.25 and 11.30).
    """
    inputs, given, arena = _inputs(model)
    frames = _frames(model, balls, given, arena)
    asked = [ball for ball in balls if ball.surface is None]
    shapes = {"distance": (len(asked),), "normal": (len(asked), 3), "turn": (len(asked), 3)}
    inputs += [Variable(name, shape) for name, shape in shapes.items()] if asked else []
    known = iter(range(len(asked)))
    gap: list[Number] = []
    axes: list[Number] = []
    velocity: list[Number] = []
    J: list[Number] = []
    bias: list[Number] = []
    for ball in balls:
        over, under = frames[ball.over], frames[ball.under]
        c, speed = over.point(ball.at)
        distance, n, turn = (
            _given(arena, next(known))
            if ball.surface is None
            else ball.surface.near(*under.seen(c, speed))
        )
        gap.append(distance - ball.radius)
        seen = under.R @ n
        n_rate = under.R @ turn + under.w.cross(seen)
        point, rate = c - ball.radius * seen, speed - ball.radius * n_rate
        E = Matrix(tuple(tuple(row) for row in (*tangents(seen), seen)))
        v = over.velocity(point) - under.velocity(point)
        a = E @ (_passing(over, point, rate) - _passing(under, point, rate))
        columns = [
            E @ (_at(first, point - over.o) - _at(second, point - under.o))
            for first, second in zip(over.J, under.J, strict=True)
        ]
        axes += [x for row in E.rows for x in row]
        velocity += E @ v
        J += [column[row] for row in range(3) for column in columns]
        bias += [a[0], a[1], a[2] + n_rate.dot(v)]
    k = len(balls)
    shapes = {"gap": (k,), "axes": (k, 3, 3), "velocity": (k, 3)}
    shapes |= {"J": (k, 3, model.nv), "bias": (k, 3)}
    values = (gap, axes, velocity, J, bias)
    outputs = [(Variable(n, s), x) for (n, s), x in zip(shapes.items(), values, strict=True)]
    return Program.from_outputs("moves", inputs, outputs)


def _given(arena: Arena, k: int) -> tuple[Number, Vector, Vector]:
    """Distance, normal and its rate as inputs."""
    normal, turn = (
        Vector(tuple(arena.input(name, 3 * k + j) for j in range(3))) for name in ("normal", "turn")
    )
    return arena.input("distance", k), normal, turn


def _inputs(model: Model) -> tuple[list[Variable], dict[str, list[Number]], Arena]:
    """Symbols of the state, and of the time where it counts."""
    arena = Arena(RULES)
    inputs = [Variable("q", (model.nq,)), Variable("qd", (model.nv,))]
    inputs += clock(model)
    given: dict[str, list[Number]] = {
        v.name: [arena.input(v.name, k) for k in range(v.size)] for v in inputs
    }
    return inputs, given, arena


def _frames(
    model: Model, balls: Sequence[Ball], given: dict[str, list[Number]], arena: Arena
) -> dict[str | None, _Frame]:
    """The frames of balls and surfaces by name; the world's is None."""
    zero = Vector.zero()
    frames: dict[str | None, _Frame] = {
        None: _Frame(Matrix.identity(), zero, zero, zero, zero, zero, [(zero, zero)] * model.nv)
    }

    def numbers(function: str, name: str) -> list[Number]:
        found = program(model, function, frame=name)
        values = found.replay(given | {"qdd": [0.0] * model.nv}, arena)
        return [values[r] for r in found.results[0]]

    for name in dict.fromkeys(name for ball in balls for name in (ball.over, ball.under)):
        if name is None:
            continue
        T = numbers("forward_kinematics", name)
        twist, rate = (numbers(f, name) for f in ("frame_velocity", "frame_acceleration"))
        J, n = numbers("jacobian", name), model.nv
        columns = [Vector(tuple(J[k : k + 3 * n : n])) for k in (*range(n), *range(3 * n, 4 * n))]
        w, v, alpha, a = (Vector(tuple(part)) for x in (twist, rate) for part in (x[:3], x[3:]))
        R = Matrix(tuple(tuple(T[4 * i : 4 * i + 3]) for i in range(3)))
        by_column = list(zip(columns[:n], columns[n:], strict=True))
        frames[name] = _Frame(R, Vector(tuple(T[3:12:4])), w, v, alpha, a, by_column)
    return frames


def _at(motion: tuple[Vector, Vector], r: Vector) -> Vector:
    """The velocity at r from the frame's origin of a motion (angular, linear)."""
    return motion[1] + motion[0].cross(r)


def _passing(frame: _Frame, point: Vector, rate: Vector) -> Vector:
    """The rate, at qdd = 0, of the velocity of the body's point at a place that itself moves."""
    return frame.a + frame.alpha.cross(point - frame.o) + frame.w.cross(rate - frame.v)
