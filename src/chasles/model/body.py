"""Parts of a model: bodies with their joints, rotors, named frames, and joints that close loops."""

from dataclasses import dataclass
from typing import NamedTuple

from chasles.expr import Number
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model.couplings import Drive
from chasles.model.description import JointData, LoopData
from chasles.model.joints import Joint


class Follow(NamedTuple):
    """A coordinate without freedom of its own: ratio times that of body `leader`, plus offset."""

    leader: int
    ratio: float
    offset: float


class Share(NamedTuple):
    """What freedom k of the joint of body i adds to a velocity: ratio times its own.

    Where it stands for all freedoms of a joint, k is the first.
    """

    i: int
    k: int
    ratio: Number


class Stretch(NamedTuple):
    """A straight piece of a tendon between points r and s (m) of bodies a and b.

    Its length counts by `factor`.
    """

    a: int
    r: Vector
    b: int
    s: Vector
    factor: float


@dataclass(frozen=True)
class Body:
    """A moving body, and the joint to its parent, which may follow others or be driven in time.

    Of a rotor, which has no coordinate and no link: geared, the freedoms that turn it. That of a
    tendon has a path, from which `algorithms.spatial.tendons` has its gears for a position, and
    its acceleration with all others zero, the drift.
    """

    name: str
    parent: int
    joint: Joint
    inertia: RigidInertia
    data: JointData
    follow: Follow | None = None
    drive: Drive | None = None
    geared: tuple[Share, ...] = ()
    path: tuple[Stretch, ...] = ()
    drift: Number = 0.0

    @property
    def turned(self) -> bool:
        """Whether it is a rotor, which other joints turn."""
        return bool(self.geared or self.path)

    @property
    def owns(self) -> bool:
        """Whether its joint has coordinates of its own."""
        return self.follow is None and self.drive is None and not self.turned


@dataclass(frozen=True)
class Frame:
    """A named frame: fixed to a body (or to the world), at `placement` in the body's frame."""

    name: str
    body: int
    placement: Transform


Handles = Frame | tuple[Frame, ...]
"""A frame, or several that are asked about together."""


def each_of(handles: Handles) -> tuple[Frame, ...]:
    """The frames, one or more."""
    return (handles,) if isinstance(handles, Frame) else handles


class Passage(NamedTuple):
    """A body of a loop; its joint's motion adds to that around the loop with this sign."""

    i: int
    sign: float


@dataclass(frozen=True)
class Loop:
    """A joint that closes a loop, from a frame of one body to a frame of another.

    The loop runs from the predecessor inward to body `root`, where the two branches part, and
    outward to the successor: `path` has its moving bodies, each after its parent, with sign -1 on
    the predecessor's branch and +1 on the successor's.
    """

    joint: Joint
    predecessor: Frame
    successor: Frame
    root: int
    path: tuple[Passage, ...]
    data: LoopData

    @property
    def name(self) -> str:
        return self.data.name

    @property
    def rows(self) -> int:
        """The number of equations: freedoms that the joint takes away."""
        return 6 - self.joint.nv

    @property
    def bodies(self) -> tuple[int, ...]:
        """The bodies whose joints move around the loop."""
        return tuple(i for i, _ in self.path)


class Step(NamedTuple):
    """One body as an algorithm meets it."""

    i: int
    p: int
    joint: Joint
    I: RigidInertia
