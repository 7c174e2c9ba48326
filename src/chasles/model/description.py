"""Data classes that describe a mechanism, as read from a file or created in Python."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar

from chasles.errors import ModelError as ModelError
from chasles.errors import brief
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


@dataclass(frozen=True)
class Limits:
    """Position, velocity and effort limits of a joint (infinite by default).

    For a spherical joint, `upper` is the maximum rotation angle.
    """

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf


@dataclass(frozen=True)
class Mimic:
    """Mimic relation: q = multiplier * (coordinate of `joint`) + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class LinkData:
    """A link and its inertia in the link frame.

    Attributes
    ----------
    where
        File and line of the link, for error messages.
    massless
        True if the link is meant to have no inertia.
    lifted
        Fraction of the link's weight that is compensated (`gravcomp` in MuJoCo).
    """

    name: str
    inertia: RigidInertia
    where: str = field(default="", repr=False, compare=False)
    massless: bool = False
    lifted: float = 0.0


@dataclass(frozen=True)
class JointData:
    """A joint between two links.

    Attributes
    ----------
    parent
        The parent link, or None for the world.
    pose
        Pose of the joint frame in the parent link.
    child_pose
        Pose of the joint frame in the child link (default: identity). The two joint frames coincide
        at zero displacement.
    axis
        Unit vector in the joint frame.
    second_axis
        Second axis (y) of a universal joint, perpendicular to the first axis and arbitrary by
        default; for a rack and pinion, the direction of the rack.
    pitch
        Pitch of a helical joint (m/rad).
    radius
        Radius of a pinion or a rolling sphere (m).
    reversed
        True if the coordinates describe the motion of the parent relative to the child.
    custom
        Instance of a user-defined joint type (kind is then "custom").
    motion
        Prescribed motion from `chasles.model.motion`; the joint then has no coordinates.
    stiffness
        Spring stiffness in each degree of freedom.
    rest
        Rest position of the spring (default: zero displacement).
    start
        Coordinates in `robot.neutral()`.
    forces
        Range of the total actuator force on the joint.
    lifted
        True if the actuators provide the joint's gravity compensation.
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
    where: str = field(default="", repr=False, compare=False)
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

    __repr__ = brief

    @property
    def traits(self) -> type[Joint]:
        """Class that implements the joint's type."""
        return traits(self.kind)

    @property
    def resists(self) -> bool:
        """Return True if the joint has armature, damping, friction or a spring.

        Such a joint must have coordinates, so it cannot be a loop joint.
        """
        return any((self.armature, self.damping, self.friction, self.stiffness))


def freedom_names(joint: str, count: int) -> tuple[str, ...]:
    """Return names for a joint's degrees of freedom: joint, or joint[0], joint[1], ..."""
    return (joint,) if count == 1 else tuple(f"{joint}[{k}]" for k in range(count))


@dataclass(frozen=True)
class LoopData(JointData):
    """A joint that closes a kinematic loop.

    `parent` (None for the world) and `pose` define the predecessor frame; `child` and `child_pose`
    define the successor frame. `kind` is any joint type, or "fixed" for a weld. A loop joint has no
    coordinates; it constrains the coordinates of the tree.
    """

    __repr__ = brief


@dataclass(frozen=True)
class CouplingData:
    """Coupling of coordinates, velocities and frames by equations `residual` = 0, such as a gear.

    Couplings are created by `chasles.model.gear`, `chasles.model.coupling` or
    `chasles.model.rolling`.

    Attributes
    ----------
    freedoms
        Names of coordinates, which are joint names, or "joint[k]" for a joint with several
        coordinates. If velocities are not the rates of coordinates, names such as "joint[x]" and
        "joint[qw]" are used instead.
    rates
        Names of velocities, as in `robot.independent`.
    frames
        Names of links and frames.
    residual
        Program with one or more residuals. The inputs are `q`, `v`, `pose`, `twist` and the time
        `t`; inputs of size zero are omitted.
    """

    name: str
    freedoms: tuple[str, ...]
    residual: Program
    where: str = field(default="", repr=False, compare=False)
    rates: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Number of equations."""
        return self.residual.outputs[0].size

    @property
    def timed(self) -> bool:
        """Return True if the coupling depends on time."""
        return any(variable.name == "t" for variable in self.residual.inputs)

    @property
    def plain(self) -> bool:
        """Return True if the coupling is one equation for coordinates, without rates or frames."""
        return self.rows == 1 and not self.rates and not self.frames


@dataclass(frozen=True)
class RollingData(CouplingData):
    """A rolling contact without slip, created by `chasles.model.rolling`.

    Attributes
    ----------
    frames
        The rolling frame and, optionally, the ground frame.
    kind
        "blade", "wheel" or "ball".
    radius
        Radius in m.
    axis
        Axis of the blade or wheel, in its frame.
    touching
        True if the contact point must also stay on the plane.
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
    """Elimination order for the loop equations of a mechanism.

    Attributes
    ----------
    rows
        Independent loop equations (rows of `loop_matrix`), in elimination order.
    dependent
        Velocity coordinate for which each row is solved.
    pivots
        Pivots at the configuration where the rows were chosen; a much smaller pivot means that
        other rows are better.
    scales
        Factors that make all rows dimensionless (1 for angles, 1 / loop size for lengths).
    """

    rows: tuple[int, ...]
    dependent: tuple[int, ...]
    pivots: tuple[float, ...]
    scales: tuple[float, ...]


@dataclass(frozen=True)
class Precision:
    """Precision of the numbers in a file, which sets the tolerance for loop equations.

    Numbers from Python have full precision.

    Attributes
    ----------
    significant, decimals
        Maximum number of significant digits and of decimal places of the numbers in the file.
    loops
        Tolerance for residuals of loop equations: angles in rad, lengths relative to the loop size.
        If None, the tolerance is derived from `significant` and `decimals`.
    """

    significant: int = 17
    decimals: int = 17
    loops: float | None = None

    MADE: ClassVar = 1e-4
    """Smallest tolerance derived from the number of digits of the values in a file.

    Typical manufacturing tolerances are of this order.
    """

    MOST: ClassVar = 1e-3
    """Largest tolerance derived from the number of digits of the values in a file.

    Larger errors are not rounding errors.
    """

    ROUNDED: ClassVar = 4
    """Number of significant digits below which the values in a file are taken as not rounded."""

    AROUND: ClassVar = 8
    """Assumed number of rounding errors that add up around a loop."""

    @property
    def counts(self) -> bool:
        """Return True if a file saved with full precision must also state the original precision.

        If this precision were missing, the tolerance derived from the file's digits could differ.
        """
        few = min(self.significant, self.decimals) < self.ROUNDED + 3
        return self.loops is not None or (few and self.significant >= self.ROUNDED)

    def closure(self, size: float) -> float:
        """Return the tolerance for the dimensionless residual of a loop of the given size (m).

        Lengths and direction vectors are assumed to be rounded in their last digit.
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
    """An immutable description of a mechanism.

    Functions such as `lock` and `attach` return new descriptions.

    Attributes
    ----------
    joints, loops, couplings
        Joints of the tree, joints that close loops, and equations between coordinates.
    rotors
        Tendons, and rotors that add inertia to several joints.
    independent
        Names of the independent coordinates, as in `robot.independent`; chosen automatically
        by default.
    closure
        Elimination order for the loop equations in dynamics.
    massless
        True if no masses are known. Only kinematics is then available.
    shapes
        Visual and collision shapes, which affect only distances and contact.
    planes
        Infinite shapes of kind "plane", solid below the plane z = 0 of their frame.
    fields
        Height fields.
    excluded
        Pairs of links that do not collide.
    paired
        Pairs of shapes that collide regardless of their collision bits, with the friction of the
        pair.
    sensors
        Sensors in file order, which affect only sensing.
    precision
        Precision of the numbers, which determines the tolerance of loop equations.
    actuators
        Actuators in file order, which is the order of the controls.
    fluid
        Fluid that surrounds the links, or None.
    unsupported
        Parts of the file that affect the mechanism but are ignored.
    """

    name: str
    links: tuple[LinkData, ...]
    joints: tuple[JointData, ...]
    frames: tuple[FrameData, ...] = ()
    gravity: Vector = Vector.of(0.0, 0.0, -9.81)
    notes: tuple[str, ...] = field(default=(), repr=False, compare=False)
    where: str = field(default="", repr=False, compare=False)
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
    unsupported: tuple[str, ...] = field(default=(), repr=False, compare=False)
    planes: tuple[ShapeData, ...] = field(default=(), repr=False, compare=False)
    paired: tuple[tuple[ShapeData, ShapeData], ...] = field(default=(), repr=False, compare=False)
    fields: tuple[HeightFieldData, ...] = field(default=(), repr=False, compare=False)


Part = LinkData | JointData | CouplingData | RotorData | ActuatorData | KeyframeData
Named = Part | FrameData | Description
"""Types of objects that error messages can name."""


def part_of(data: Named) -> str:
    """Return the kind and name of a described object for error messages, such as "link 'arm'"."""
    word = type(data).__name__.removesuffix("Data").lower()
    return f"{'robot' if isinstance(data, Description) else word} {data.name!r}"


def faulty(code: str, data: Named, problem: str, remedy: str = "") -> ModelError:
    """Create an error that gives the name, file and line of a described object."""
    return ModelError(code, problem, remedy, part=part_of(data), file=getattr(data, "where", ""))


def some(names: Iterable[str], most: int = 6) -> str:
    """Return the first `most` names in quotes, separated by commas."""
    first = list(islice(names, most + 1))
    return ", ".join(map(repr, first[:most])) + ", ..." * (len(first) > most)


# Joint types -----------------------------------------------------------------------------------


def traits(kind: str) -> type[Joint]:
    """Return the class of a joint type, or the base class `Joint` for user-defined types."""
    return TYPES.get(kind, Joint)


def spelled(format: str, *, own: bool = False) -> dict[str, str]:
    """Return a mapping from the joint type names of a file format to joint types.

    If `own` is True, types that the format does not name are included under their chasles names.
    """
    found: dict[str, str] = {}
    types: dict[str, type[Joint]] = {**JOINTS, Fixed.kind: Fixed}
    for kind, joint in types.items():
        for word in joint.names.get(format, kind if own else "").split():
            found.setdefault(word, kind)
    return found


def spelling(kind: str, format: str) -> str:
    """Return the name of a joint type in a file format, or "" if the format has none."""
    return traits(kind).names.get(format, "").partition(" ")[0]


def as_bounded(kind: str, bounded: bool) -> str:
    """Return the variant of a joint type with or without limits, such as revolute or continuous."""
    joint = traits(kind)
    return joint.twin if joint.twin and (joint.bounds == "none") is bounded else kind
