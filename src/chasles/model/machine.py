"""Data classes for tendons, actuators, fluids and keyframes."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Transform

Interval = tuple[float, float]
"""Pair of a lower and an upper limit."""

UNBOUNDED: Interval = (-math.inf, math.inf)

Triple = tuple[float, float, float]


class StretchData(NamedTuple):
    """A straight tendon segment between points on two links (m, in the link frames).

    `factor` is the weight of the segment in the tendon length. The weight is below 1 after a
    pulley.
    """

    start: str
    start_point: Vector
    end: str
    end_point: Vector
    factor: float = 1.0


@dataclass(frozen=True)
class RotorData:
    """A tendon, or a rotor driven by several joints, with inertia, spring and damping.

    The velocity of a tendon or rotor is the sum of the velocities in `freedoms`, weighted with
    `ratios`. The tendon length or rotor angle is the sum of the joint coordinates, weighted in the
    same way, plus `offset`.

    Attributes
    ----------
    freedoms
        Names of velocities, as in `robot.independent`: "joint", or "joint[k]" for a joint with
        several degrees of freedom.
    path
        Segments of a spatial tendon between points on links, instead of `freedoms`.
    armature
        Rotor inertia: kg m2 if the velocity is in rad/s, kg if it is in m/s. The armature times the
        outer product of the ratios is added to the mass matrix.
    stiffness
        Stiffness of a spring that pulls if the length is above `rest[1]` and pushes if it is below
        `rest[0]`.
    damping
        Viscous damping coefficient.
    forces
        Range of the total actuator force.
    limits
        Range of the tendon length or rotor angle, with stops at both ends.
    friction
        Dry friction (N m or N).
    """

    name: str
    freedoms: tuple[str, ...]
    ratios: tuple[float, ...]
    armature: float = 0.0
    where: str = field(default="", repr=False, compare=False)
    path: tuple[StretchData, ...] = ()
    offset: float = 0.0
    stiffness: float = 0.0
    rest: Interval = (0.0, 0.0)
    damping: float = 0.0
    forces: Interval = UNBOUNDED
    limits: Interval = UNBOUNDED
    friction: float = 0.0


@dataclass(frozen=True)
class ActuatorData:
    """An actuator that exerts the force gain * input + bias along its transmission.

    Attributes
    ----------
    kind
        Type of the driven part: "joint", "tendon", "site" (a frame), "crank" (a slider-crank whose
        slider is the frame `reference`), or "" for an unsupported actuator, which exerts no force.
    target
        Name of the driven part.
    gear
        Gear ratios: one for a joint or tendon, and six (force, then moment) for a frame or a joint
        with several degrees of freedom, as in MuJoCo.
    in_parent
        True if `gear` is expressed in the parent frame.
    reference
        Frame relative to which a frame is driven; "" for the world.
    gain, bias
        Three coefficients each, for a constant term and for the transmission's length and velocity.
    dynamics
        "none": the input is the control. "integrator" or "filter": the input is an activation,
        whose time derivative is control or (control - activation)/constant, respectively.
    constant
        Time constant in s.
    rod
        Length of a crank's rod in m.
    controls, forces, activations
        Ranges of the controls, forces and activations. `actuate` clips controls and forces.
    """

    name: str
    kind: str
    target: str = ""
    gear: tuple[float, ...] = (1.0,)
    gain: Triple = (1.0, 0.0, 0.0)
    bias: Triple = (0.0, 0.0, 0.0)
    reference: str = ""
    in_parent: bool = False
    dynamics: str = "none"
    constant: float = 0.0
    rod: float = 0.0
    controls: Interval = UNBOUNDED
    forces: Interval = UNBOUNDED
    activations: Interval = UNBOUNDED
    where: str = field(default="", repr=False, compare=False)

    @property
    def active(self) -> bool:
        """Return True if the actuator has an activation, which is part of the state."""
        return self.dynamics != "none"


DYNAMICS = ("none", "integrator", "filter")
"""Kinds of activation dynamics of an actuator."""

TRANSMISSIONS = ("joint", "tendon", "site", "crank", "")
"""Kinds of objects that an actuator can drive (values of `ActuatorData.kind`)."""


class BoxData(NamedTuple):
    """Box that approximates a link in a fluid.

    `size` contains the edge lengths (m), and `pose` is the pose in the link frame.
    """

    link: str
    pose: Transform
    size: Triple


@dataclass(frozen=True)
class FluidData:
    """The fluid around a mechanism: density (kg/m3), viscosity (Pa s), wind (m/s, world axes)."""

    density: float
    viscosity: float
    wind: Vector
    boxes: tuple[BoxData, ...]


Named = tuple[tuple[str, tuple[float, ...]], ...]
"""Values for joints or actuators, as pairs (name, values)."""


@dataclass(frozen=True)
class KeyframeData:
    """A named state of a robot, with values for joints and actuators.

    Missing positions are taken from `JointData.start`. Other missing values are zero.
    """

    name: str
    positions: Named = ()
    velocities: Named = ()
    controls: Named = ()
    activations: Named = ()
    where: str = field(default="", repr=False, compare=False)
