"""Descriptions of mechanisms by a file or a builder, before any choice of numbering or frames."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar

from chasles.errors import ModelError as ModelError
from chasles.expr import Program
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model.joints import JOINTS, TYPES, Fixed, Joint
from chasles.model.machine import (
    UNBOUNDED,
    ActuatorData,
    FluidData,
    Interval,
    KeyframeData,
)
from chasles.model.machine import (
    RotorData as RotorData,
)
from chasles.model.machine import StretchData as StretchData
from chasles.model.sensors import SensorData
from chasles.model.shapes import ShapeData


@dataclass(frozen=True)
class Limits:
    """Bounds of a joint's coordinates; infinite by default.

    For a spherical joint, `upper` is the largest angle of its rotation.
    """

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf


@dataclass(frozen=True)
class Mimic:
    """This joint's coordinate is multiplier times that of another joint, plus an offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class LinkData:
    """A link and its inertia in its own frame. `where` is "file:line". `massless` means that it has
    no inertia by intention. `lifted` is the part of its weight that is compensated (MuJoCo's
    gravcomp), 1 for all.
    """

    name: str
    inertia: RigidInertia
    where: str = ""
    massless: bool = False
    lifted: float = 0.0


@dataclass(frozen=True)
class JointData:
    """A joint between two links.

    parent: the parent link, or None for the world. pose: the joint's frame in the parent link's
    frame; child_pose: in the child link's frame (its own, unless given). The two coincide at zero
    displacement. axis: unit vector in the joint's frame (the second axis of a universal joint, its
    y, is perpendicular and arbitrary unless `second_axis` says which; that of a rack and pinion is
    the rack's direction). pitch: meters per radian of a helical joint. radius: of a pinion or a
    rolling sphere, in m. reversed: the joint's motion is that of the parent against the child.
    custom: a joint of a user-defined type (then kind is "custom"); its own numbers count, all
    others are those given here. motion: a prescribed motion, made by `chasles.model.motion`; the
    joint then has no coordinates. stiffness: that of a spring in each degree of freedom, at rest
    where the coordinates are `rest` (default: zero displacement). start: coordinates of
    `robot.neutral()`. forces: the range of all actuators' force on it; lifted: actuators exert its
    share of the compensated weight, too.
    """

    name: str
    kind: str
    parent: str | None
    child: str
    pose: Transform = field(default_factory=Transform.identity)
    axis: Vector = Vector.of(0.0, 0.0, 1.0)
    second_axis: Vector | None = None
    pitch: float = 0.0
    limits: Limits = Limits()
    armature: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    mimic: Mimic | None = None
    where: str = ""
    radius: float = 0.0
    reversed: bool = False
    custom: Joint | None = None
    child_pose: Transform = field(default_factory=Transform.identity)
    motion: Program | None = None
    stiffness: float = 0.0
    rest: tuple[float, ...] = ()
    start: tuple[float, ...] = ()
    forces: Interval = UNBOUNDED
    lifted: bool = False

    @property
    def traits(self) -> type[Joint]:
        """Class of its type, with the data that files and other libraries need."""
        return traits(self.kind)

    @property
    def resists(self) -> bool:
        """Return True if forces of its own act along its motion: such a joint needs coordinates."""
        return any((self.armature, self.damping, self.friction, self.stiffness))


def freedom_names(joint: str, count: int) -> tuple[str, ...]:
    """Return the names of a joint's degrees of freedom: its own name, or with [k] for several."""
    return (joint,) if count == 1 else tuple(f"{joint}[{k}]" for k in range(count))


@dataclass(frozen=True)
class LoopData(JointData):
    """A joint that closes a loop: between two links that the tree connects already.

    parent (None for the world) and pose are those of its predecessor frame, child and child_pose
    those of its successor frame. kind: any joint type, or "fixed" for a weld. It has no
    coordinates: its constraints are equations between those of the tree.
    """


@dataclass(frozen=True)
class CouplingData:
    """Equations between coordinates, velocities and frames: a gear, a wheel, any residual = 0.

    `freedoms` names coordinates by joint, with [k] for a joint with several, or [x], [qw], ...
    where velocities are not their rates. rates: velocities, as `robot.independent` names them.
    frames: links and frames. residual: the program of one row or more, its inputs `q`, `v`, `pose`
    and `twist` of these in turn, and the time `t`, each if there is any. `chasles.model.gear`,
    `chasles.model.coupling` and `chasles.model.rolling` make it.
    """

    name: str
    freedoms: tuple[str, ...]
    residual: Program
    where: str = ""
    rates: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """The number of equations."""
        return self.residual.outputs[0].size

    @property
    def timed(self) -> bool:
        """Return True if it depends on time."""
        return any(variable.name == "t" for variable in self.residual.inputs)

    @property
    def plain(self) -> bool:
        """Return True for one equation between coordinates only."""
        return self.rows == 1 and not self.rates and not self.frames


@dataclass(frozen=True)
class RollingData(CouplingData):
    """Contact without slipping, made by `chasles.model.rolling`.

    `frames` are the rolling one and its ground. `kind` is "blade", "wheel" or "ball". `radius` is
    in m. `axis` is that of the blade or wheel, in its frame. `touching` is True if it also stays on
    the plane.
    """

    kind: str = "wheel"
    radius: float = 0.0
    axis: Vector = Vector.of(0.0, 1.0, 0.0)
    touching: bool = False


@dataclass(frozen=True)
class FrameData:
    """A named frame fixed to a link."""

    name: str
    link: str
    pose: Transform


@dataclass(frozen=True)
class Closure:
    """Solution method of the loops of one mechanism: decided once, checked in every state.

    `rows` are independent equations of the loops (rows of `loop_matrix`), in the order of their
    use. `dependent` is the velocity coordinate that each is solved for. `pivots` are the divisors
    at the configuration of the choice; if one becomes small, another choice is better. `scales`
    make all rows dimensionless (1 for angles, 1/size of the loop for lengths).
    """

    rows: tuple[int, ...]
    dependent: tuple[int, ...]
    pivots: tuple[float, ...]
    scales: tuple[float, ...]


@dataclass(frozen=True)
class Precision:
    """Precision of the numbers of a mechanism, which decides whether its loops agree.

    `significant` and `decimals` are the most digits of any number in its file, in total and after
    the point; numbers in memory have all digits. `loops` is the allowed contradiction between loop
    equations, in rad and relative to the size of the loop; None derives it from the digits.
    """

    significant: int = 17
    decimals: int = 17
    loops: float | None = None

    MADE: ClassVar = 1e-4
    """Manufacturing precision, regardless of the digits of a file."""

    MOST: ClassVar = 1e-3
    """Loops that are open by more than this are not meant to close."""

    ROUNDED: ClassVar = 4
    """Number of significant digits below which a number is exact, not rounded."""

    AROUND: ClassVar = 8
    """Number of rounded numbers that add up around a loop."""

    @property
    def counts(self) -> bool:
        """Return True if a copy with all digits may be judged otherwise."""
        few = min(self.significant, self.decimals) < self.ROUNDED + 3
        return self.loops is not None or (few and self.significant >= self.ROUNDED)

    def closure(self, size: float) -> float:
        """Return the allowed contradiction between equations of a loop of a size (m),
        dimensionless.

        A length is known to half a unit of its last digit, and so is a direction, whose entries are
        about 1.
        """
        if self.loops is not None:
            return self.loops
        if self.significant < self.ROUNDED:
            return self.MADE
        places = (self.significant, self.significant - 1 - math.floor(math.log10(size)))
        turn, length = (0.5 * 10.0 ** -min(self.decimals, place) for place in places)
        return min(self.MOST, max(self.MADE, self.AROUND * (turn + length / size)))


@dataclass(frozen=True)
class Description:
    """Links, joints and frames in file order. `lock`, `attach` and similar functions make new ones.

    `joints` form the tree; `loops` close it, and `couplings` relate its coordinates; `rotors` add
    inertia to several joints at once. `independent` names the coordinates that the others follow
    through loops and couplings, as in `robot.independent`; by default the library chooses.
    `closure` is the library's choice of how dynamics solves the loops. `massless` means that no
    masses are known, so that only kinematics is available. `shapes` are visual and collision
    shapes; only distances and contact depend on them. `planes` are infinite and solid below z = 0
    of their pose, of kind "plane". `excluded` are pairs of links that the file does not let
    collide; `paired` are pairs of shapes that collide regardless of their bits, with the friction
    of the pair. `sensors` are in file order; nothing else depends on them. `precision` decides
    whether loops are meant to close. `actuators` are in file order, which is the order of controls.
    `fluid` surrounds the links. `unsupported` lists ignored parts of the file that act on the
    machine.
    """

    name: str
    links: tuple[LinkData, ...]
    joints: tuple[JointData, ...]
    frames: tuple[FrameData, ...] = ()
    gravity: Vector = Vector.of(0.0, 0.0, -9.81)
    notes: tuple[str, ...] = ()
    where: str = ""
    loops: tuple[LoopData, ...] = ()
    independent: tuple[str, ...] = ()
    closure: Closure | None = None
    massless: bool = False
    couplings: tuple[CouplingData, ...] = ()
    rotors: tuple[RotorData, ...] = ()
    shapes: tuple[ShapeData, ...] = field(default=(), repr=False, compare=False)
    excluded: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)
    precision: Precision = field(default=Precision(), compare=False)
    sensors: tuple[SensorData, ...] = field(default=(), repr=False, compare=False)
    actuators: tuple[ActuatorData, ...] = ()
    keyframes: tuple[KeyframeData, ...] = field(default=(), compare=False)
    fluid: FluidData | None = None
    unsupported: tuple[str, ...] = field(default=(), compare=False)
    planes: tuple[ShapeData, ...] = field(default=(), repr=False, compare=False)
    paired: tuple[tuple[ShapeData, ShapeData], ...] = field(default=(), repr=False, compare=False)


Part = LinkData | JointData | CouplingData | RotorData | ActuatorData | KeyframeData
Named = Part | FrameData | Description
"""Parts that errors refer to: each has a name and, except a frame, its place in a file."""


def part_of(data: Named) -> str:
    """Return the name of a part of a mechanism in errors and notes: its kind and name."""
    word = type(data).__name__.removesuffix("Data").lower()
    return f"{'robot' if isinstance(data, Description) else word} {data.name!r}"


def faulty(code: str, data: Named, problem: str, remedy: str = "") -> ModelError:
    """Return the error of a part of a mechanism, with its name and its place in the file."""
    return ModelError(code, problem, remedy, part=part_of(data), file=getattr(data, "where", ""))


def some(names: Iterable[str], most: int = 6) -> str:
    """Return the first few of some names, in quotes."""
    first = list(islice(names, most + 1))
    return ", ".join(map(repr, first[:most])) + ", ..." * (len(first) > most)


# Joint types -----------------------------------------------------------------------------------


def traits(kind: str) -> type[Joint]:
    """Return the class of a joint type by its name; the contract itself for user-defined types."""
    return TYPES.get(kind, Joint)


def spelled(format: str, *, own: bool = False) -> dict[str, str]:
    """Return the joint types by a format's words; own: types without a word use their own names."""
    found: dict[str, str] = {}
    types: dict[str, type[Joint]] = {**JOINTS, Fixed.kind: Fixed}
    for kind, joint in types.items():
        for word in joint.names.get(format, kind if own else "").split():
            found.setdefault(word, kind)
    return found


def spelling(kind: str, format: str) -> str:
    """Return the word of a file format for a joint type; "" if it has none."""
    return traits(kind).names.get(format, "").partition(" ")[0]


def as_bounded(kind: str, bounded: bool) -> str:
    """Return the type with bounds, or without: a revolute joint without is continuous."""
    joint = traits(kind)
    return joint.twin if joint.twin and (joint.bounds == "none") is bounded else kind
