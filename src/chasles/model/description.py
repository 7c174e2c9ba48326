"""Descriptions of mechanisms from files or builders, before bodies are numbered."""

import math
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from itertools import islice
from typing import Any, ClassVar

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
from chasles.model.shapes import HeightFieldData, ShapeData


@cache
def _defaults(kind: Any) -> dict[str, str]:
    """Return the text of each default value of a data class."""
    values = {x.name: x.default for x in fields(kind) if x.default is not MISSING}
    made = {x.name: x.default_factory() for x in fields(kind) if x.default_factory is not MISSING}
    return {name: repr(value) for name, value in (values | made).items()}


def _changed(data: Any) -> str:
    """Return the text of a data class, with only the fields that differ from their defaults."""
    texts = {x.name: repr(getattr(data, x.name)) for x in fields(data)}
    usual = _defaults(data.__class__)
    shown = (f"{name}={text}" for name, text in texts.items() if usual.get(name) != text)
    return f"{type(data).__name__}({', '.join(shown)})"


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
    """Relation of a mimic joint: q = multiplier * (coordinate of `joint`) + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class LinkData:
    """A link and its inertia in the link frame.

    where: "file:line". massless: True if the link intentionally has no inertia. lifted: fraction of
    the link's weight that is compensated (MuJoCo's gravcomp).
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
    frame. child_pose: the joint's frame in the child link's frame (the identity by default). The
    two frames coincide at zero displacement. axis: unit vector in the joint's frame. second_axis:
    the second axis (y) of a universal joint, perpendicular to the first and arbitrary by default;
    for a rack and pinion, the direction of the rack. pitch: meters per radian of a helical joint.
    radius: radius of a pinion or a rolling sphere, in m. reversed: the coordinates describe the
    motion of the parent relative to the child. custom: a joint of a user-defined type (kind is then
    "custom"), with additional parameters. motion: a prescribed motion from `chasles.model.motion`;
    the joint then has no coordinates. stiffness: stiffness of a spring in each degree of freedom.
    rest: rest position of the spring (default: zero displacement). start: coordinates in
    `robot.neutral()`. forces: range of the total actuator force on the joint. lifted: True if
    actuators also exert the joint's share of the compensated weight.
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

    __repr__ = _changed

    @property
    def traits(self) -> type[Joint]:
        """Class of the joint type, with properties for files and other libraries."""
        return traits(self.kind)

    @property
    def resists(self) -> bool:
        """Return True if the joint has armature, damping, friction or a spring.

        Such a joint needs coordinates.
        """
        return any((self.armature, self.damping, self.friction, self.stiffness))


def freedom_names(joint: str, count: int) -> tuple[str, ...]:
    """Return the names of a joint's degrees of freedom: its name, or name[k] if it has several."""
    return (joint,) if count == 1 else tuple(f"{joint}[{k}]" for k in range(count))


@dataclass(frozen=True)
class LoopData(JointData):
    """A joint that closes a loop, between two links that the tree already connects.

    parent (None for the world) and pose define its predecessor frame, child and child_pose its
    successor frame. kind: any joint type, or "fixed" for a weld. A loop joint has no coordinates;
    its constraints are equations between the coordinates of the tree.
    """

    __repr__ = _changed


@dataclass(frozen=True)
class CouplingData:
    """Equations between coordinates, velocities and frames: a gear, a wheel or any residual = 0.

    `freedoms`: names of coordinates, each the name of a joint, with [k] for a joint with several
    coordinates. If velocities are not the rates of coordinates, names such as [x] and [qw] replace
    [k]. `rates`: velocities, as `robot.independent` names them. `frames`: links and frames.
    `residual`: program with one or more rows; its inputs are `q`, `v`, `pose` and `twist` of these
    parts, and the time `t`. Empty inputs are omitted. Use `chasles.model.gear`,
    `chasles.model.coupling` or `chasles.model.rolling` to make a coupling.
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
        """Return True if the coupling depends on time."""
        return any(variable.name == "t" for variable in self.residual.inputs)

    @property
    def plain(self) -> bool:
        """Return True if the coupling is a single equation that uses only coordinates."""
        return self.rows == 1 and not self.rates and not self.frames


@dataclass(frozen=True)
class RollingData(CouplingData):
    """Contact without slipping, created by `chasles.model.rolling`.

    frames: the rolling frame, and the ground's frame if given. kind: "blade", "wheel" or
    "ball". radius: in m. axis: axis of the blade or wheel, in its frame. touching: True if the
    contact must also stay on the plane.
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
    """Order of elimination for the loops of a mechanism, chosen once and checked in every state.

    rows: independent equations of the loops (rows of `loop_matrix`), in the order of elimination.
    dependent: the velocity coordinate for which each row is solved. pivots: pivots at the
    configuration where the rows were chosen; if a pivot becomes small, another choice is better.
    scales: factors that make all rows dimensionless (1 for angles, 1/size of the loop for lengths).
    """

    rows: tuple[int, ...]
    dependent: tuple[int, ...]
    pivots: tuple[float, ...]
    scales: tuple[float, ...]


@dataclass(frozen=True)
class Precision:
    """Precision of a mechanism's numbers, which determines whether loop equations are consistent.

    significant, decimals: largest number of digits of any number in the file, in total and after
    the decimal point. Numbers from Python have full precision. loops: tolerance for inconsistent
    loop equations, in rad and relative to the size of the loop; None derives it from the digits.
    """

    significant: int = 17
    decimals: int = 17
    loops: float | None = None

    MADE: ClassVar = 1e-4
    """Manufacturing precision, which does not depend on the digits in a file."""

    MOST: ClassVar = 1e-3
    """Largest tolerance of loop equations; a larger residual is not due to rounding."""

    ROUNDED: ClassVar = 4
    """A number with fewer significant digits than this is considered exact, not rounded."""

    AROUND: ClassVar = 8
    """Number of rounded values whose errors add up around a loop."""

    @property
    def counts(self) -> bool:
        """Return True if a file written with full precision might have a different tolerance."""
        few = min(self.significant, self.decimals) < self.ROUNDED + 3
        return self.loops is not None or (few and self.significant >= self.ROUNDED)

    def closure(self, size: float) -> float:
        """Return the largest dimensionless residual of a closed loop, given its size (m).

        Lengths and the entries of direction vectors (about 1) have an error of half a unit in their
        last digit.
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
    """Links, joints and frames of a mechanism in file order; immutable.

    `lock`, `attach` and similar functions return new descriptions. `joints` form the tree, `loops`
    close it, and `couplings` relate its coordinates. `rotors` are tendons, and rotors that add
    inertia to several joints at once. `independent` names the coordinates that determine the others
    through loops and couplings, as in `robot.independent`; by default they are chosen
    automatically. `closure` is the order of elimination for the loops in dynamics. `massless` means
    that no masses are known, so that only kinematics is available. `shapes` are visual and
    collision shapes; only distances and contact depend on them. `planes` are infinite shapes of
    kind "plane", solid below the plane z = 0 of their frame; `fields` are height fields. `excluded`
    are pairs of links that do not collide. `paired` are pairs of shapes that collide regardless of
    their collision bits, with the friction of the pair. `sensors` are in file order; no computation
    other than sensing depends on them. `precision` determines the tolerance of loop equations.
    `actuators` are in file order, which is the order of controls. `fluid` surrounds the links.
    `unsupported` lists parts of the file that act on the mechanism but are ignored.
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
    fields: tuple[HeightFieldData, ...] = field(default=(), repr=False, compare=False)


Part = LinkData | JointData | CouplingData | RotorData | ActuatorData | KeyframeData
Named = Part | FrameData | Description
"""Parts that error messages refer to. All have a name, and all but frames have a file and line."""


def part_of(data: Named) -> str:
    """Return the kind and name of a part of a mechanism, for errors and notes."""
    word = type(data).__name__.removesuffix("Data").lower()
    return f"{'robot' if isinstance(data, Description) else word} {data.name!r}"


def faulty(code: str, data: Named, problem: str, remedy: str = "") -> ModelError:
    """Return an error about a part of a mechanism, with its name, file and line."""
    return ModelError(code, problem, remedy, part=part_of(data), file=getattr(data, "where", ""))


def some(names: Iterable[str], most: int = 6) -> str:
    """Return the first few names, in quotes."""
    first = list(islice(names, most + 1))
    return ", ".join(map(repr, first[:most])) + ", ..." * (len(first) > most)


# Joint types -----------------------------------------------------------------------------------


def traits(kind: str) -> type[Joint]:
    """Return the class of a joint type by name; the base class `Joint` for user-defined types."""
    return TYPES.get(kind, Joint)


def spelled(format: str, *, own: bool = False) -> dict[str, str]:
    """Map each word of a file format to its joint type.

    own: include types without a word in the format, under the names that chasles uses.
    """
    found: dict[str, str] = {}
    types: dict[str, type[Joint]] = {**JOINTS, Fixed.kind: Fixed}
    for kind, joint in types.items():
        for word in joint.names.get(format, kind if own else "").split():
            found.setdefault(word, kind)
    return found


def spelling(kind: str, format: str) -> str:
    """Return a file format's word for a joint type, or "" if the format has none."""
    return traits(kind).names.get(format, "").partition(" ")[0]


def as_bounded(kind: str, bounded: bool) -> str:
    """Return the bounded or unbounded form of a joint type, such as revolute or continuous."""
    joint = traits(kind)
    return joint.twin if joint.twin and (joint.bounds == "none") is bounded else kind
