"""Soft contact as part of a step: forces, and the states of surfaces, as expressions.

What touches, and by which law, is the business of `chasles.contact`; here are the shapes that its
answers have, and what the equations of motion make of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

from chasles.errors import ArgumentError, ModelError
from chasles.expr import RULES, Arena, Number, Program, Variable
from chasles.functions.programs import program
from chasles.functions.tracing import WrenchKey
from chasles.mathematics.linear import Vector
from chasles.model import Model

Numbers = Sequence[Number]


class FrameMotion(NamedTuple):
    """How a frame moves: its axes and origin o, its angular velocity w and velocity v of o.

    All in the world. Entries are numbers, symbols, or arrays of a batch.
    """

    axes: tuple[Vector, Vector, Vector]
    o: Vector
    w: Vector
    v: Vector

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
        r, u = c - self.o, v - self.velocity(c)
        return Vector(tuple([a.dot(r) for a in self.axes])), Vector(
            tuple([a.dot(u) for a in self.axes])
        )


class Spot(NamedTuple):
    """A point C where a body may touch another, and how it moves past it.

    axes: two tangents and the normal, from the other body to this one. gap: their distance (m).
    rate: that of the gap, slip: velocities along the tangents, of this body at C beside the other's
    (m/s).
    """

    point: Vector
    axes: tuple[Vector, Vector, Vector]
    gap: Number
    rate: Number
    slip: list[Number]


@runtime_checkable
class SoftLaw(Protocol):
    """Forces from gap, rate and slip; see `chasles.contact.SoftContact`."""

    @property
    def states(self) -> int:
        """The number of state variables."""

    def touches(self, state: Numbers, gap: Number) -> Number:
        """1.0 where there may be a force, else 0.0."""

    def response(
        self, state: Numbers, gap: Number, rate: Number, slip: Numbers, touching: Number = None
    ) -> tuple[list[Number], list[Number]]:
        """Forces along the axes of a spot, and the rates of the states."""

    def advanced(self, state: Numbers, forces: Numbers, gap: Number, dt: float) -> list[Number]:
        """The states after a step under these forces, at the gap after it."""

    def settled(self, state: Numbers, forces: Numbers, gap: Number) -> list[Number]:
        """States that an integrator has found, made exact."""


class SoftPair(Protocol):
    """A body that may touch a surface (frame names; None: the world), and the law between them."""

    @property
    def frames(self) -> tuple[str | None, str | None]:
        """The frames that carry the body and the surface."""

    @property
    def points(self) -> int:
        """In how many spots they may touch."""

    @property
    def law(self) -> Any:
        """A `SoftLaw`, where it is soft."""

    def spots(self, over: FrameMotion, under: FrameMotion) -> list[Spot]:
        """Where they may touch, from the motion of the two frames."""


def given_pairs(function: str, contacts: Any) -> tuple[Any, ...]:
    """The pairs that a function is given, whatever holds them; None is none."""
    try:
        return () if contacts is None else tuple(contacts)
    except TypeError:
        problem = f"contacts must be pairs in a list, not {contacts!r:.80}"
        raise ArgumentError("E-MOTION-006", problem, "write [pair]", part=function) from None


class Pressed(NamedTuple):
    """What a state does at all spots.

    forces: along each spot's axes. rates: of the states. touching: where there may be a force.
    """

    spots: list[Spot]
    forces: list[list[Number]]
    rates: list[Number]
    touching: list[Number]


@dataclass(frozen=True)
class Contacts:
    """All pairs of a robot, on expressions."""

    model: Model
    pairs: tuple[SoftPair, ...]

    def __post_init__(self) -> None:
        for pair in self.pairs:
            if not isinstance(getattr(pair, "law", None), SoftLaw):
                problem = f"{pair!r:.80} has no soft law"
                remedy = (
                    "give contact.Pair(body, surface, contact.SoftContact(...)), or use "
                    "chasles.simulate for rigid ones"
                )
                raise ModelError("E-MOTION-007", problem, remedy, part="contacts")
            for frame in pair.frames:
                if frame is not None:
                    self.model.frame(frame)

    @cached_property
    def frames(self) -> tuple[str, ...]:
        """The frames that feel forces."""
        return tuple(sorted({f for pair in self.pairs for f in pair.frames if f is not None}))

    @property
    def keys(self) -> tuple[WrenchKey, ...]:
        """How their wrenches are written: along the world's axes, about their origins."""
        return tuple(WrenchKey(frame) for frame in self.frames)

    @cached_property
    def laws(self) -> list[SoftLaw]:
        """The law of every spot."""
        return [pair.law for pair in self.pairs for _ in range(pair.points)]

    @property
    def states(self) -> int:
        """The number of states, those of each spot in turn."""
        return sum(law.states for law in self.laws)

    def spots(self, arena: Arena, q: Numbers, qd: Numbers) -> list[Spot]:
        """All spots at a state of the robot."""
        motions = self._motions(arena, q, qd)
        return [s for p in self.pairs for s in p.spots(*(motions[f] for f in p.frames))]

    def pressed(
        self,
        arena: Arena,
        q: Numbers,
        qd: Numbers,
        state: Numbers,
        touching: Sequence[Number] | None = None,
    ) -> Pressed:
        """What a state does; touching: as at the beginning of a step, by default as it is."""
        spots, states = self.spots(arena, q, qd), self.split(state)
        parts = list(zip(self.laws, spots, states, strict=True))
        if touching is None:
            touching = [law.touches(z, spot.gap) for law, spot, z in parts]
        found = [
            law.response(z, spot.gap, spot.rate, spot.slip, touch)
            for (law, spot, z), touch in zip(parts, touching, strict=True)
        ]
        rates = [rate for _, rates in found for rate in rates]
        return Pressed(spots, [forces for forces, _ in found], rates, list(touching))

    def wrenches(self, arena: Arena, q: Numbers, found: Pressed) -> dict[str, list[Number]]:
        """Six numbers for each of `frames`, by the name that a program has for them."""
        motions = self._motions(arena, q, [0.0] * self.model.nv)
        total = {frame: (Vector.zero(), Vector.zero()) for frame in self.frames}
        sides = [pair.frames for pair in self.pairs for _ in range(pair.points)]
        for (body, surface), spot, force in zip(
            sides, found.spots, self.forces(found), strict=True
        ):
            for frame, f in ((body, force), (surface, -force)):
                if frame is not None:
                    moment, push = total[frame]
                    arm = spot.point - motions[frame].o
                    total[frame] = moment + arm.cross(f), push + f
        return {f"f_ext[{frame!r}]": [*m, *f] for frame, (m, f) in total.items()}

    def forces(self, found: Pressed) -> list[Vector]:
        """The force on the body at every spot, along the world's axes (N)."""
        return [_sum(f, s.axes) for f, s in zip(found.forces, found.spots, strict=True)]

    def advanced(
        self, arena: Arena, state: Numbers, found: Pressed, q: Numbers, h: float
    ) -> list[Number]:
        """The states after a step of h seconds that ends at q, under the forces at its start."""
        return [
            z
            for law, part, forces, gap in self._ended(arena, state, found, q)
            for z in law.advanced(part, forces, gap, h)
        ]

    def settled(self, arena: Arena, state: Numbers, found: Pressed, q: Numbers) -> list[Number]:
        """Integrated states, made exact at q, under the forces there."""
        return [
            z
            for law, part, forces, gap in self._ended(arena, state, found, q)
            for z in law.settled(part, forces, gap)
        ]

    def program(self, h: float) -> Program:
        """Of q, qd and the states: forces (points, 3) along the world's axes, gaps (points,), and
        the states after h seconds without motion.

        All that a step knows of its contacts is in it, so its hash names them.
        """
        arena = Arena(RULES)
        sizes = {"q": self.model.nq, "qd": self.model.nv, "states": self.states}
        q, qd, state = ([arena.input(name, k) for k in range(n)] for name, n in sizes.items())
        found = self.pressed(arena, q, qd, state)
        forces = [x for force in self.forces(found) for x in force]
        gaps = [spot.gap for spot in found.spots]
        outputs = [
            (Variable("forces", (len(gaps), 3)), forces),
            (Variable("gaps", (len(gaps),)), gaps),
            (Variable("after", (self.states,)), self.advanced(arena, state, found, q, h)),
        ]
        inputs = [Variable(name, (n,)) for name, n in sizes.items()]
        return Program.from_outputs("contacts", inputs, outputs)

    def split(self, state: Numbers) -> list[Numbers]:
        """The states of every spot."""
        parts, start = [], 0
        for law in self.laws:
            parts.append(state[start : start + law.states])
            start += law.states
        return parts

    def _ended(
        self, arena: Arena, state: Numbers, found: Pressed, q: Numbers
    ) -> list[tuple[SoftLaw, Numbers, Numbers, Number]]:
        spots = self.spots(arena, q, [0.0] * self.model.nv)
        gaps = [spot.gap for spot in spots]
        return list(zip(self.laws, self.split(state), found.forces, gaps, strict=True))

    @cached_property
    def _programs(self) -> dict[str, tuple[Program, Program]]:
        return {
            frame: (
                program(self.model, "forward_kinematics", frame=frame),
                program(self.model, "frame_velocity", frame=frame),
            )
            for frame in self.frames
        }

    def _motions(self, arena: Arena, q: Numbers, qd: Numbers) -> dict[str | None, FrameMotion]:
        motions: dict[str | None, FrameMotion] = {None: FrameMotion.still()}
        for frame, (pose, velocity) in self._programs.items():
            T = _run(pose, arena, q=q)
            v = _run(velocity, arena, q=q, qd=qd)
            x, y, z, o = (Vector.of(T[k], T[4 + k], T[8 + k]) for k in range(4))
            motions[frame] = FrameMotion((x, y, z), o, Vector(tuple(v[:3])), Vector(tuple(v[3:])))
        return motions


def _run(found: Program, arena: Arena, **arguments: Numbers) -> list[Number]:
    values = found.replay(arguments, arena)
    return [values[r] for r in found.results[0]]


def _sum(factors: Numbers, vectors: Sequence[Vector]) -> Vector:
    total = Vector.zero()
    for factor, vector in zip(factors, vectors, strict=True):
        total = total + vector * factor
    return total
