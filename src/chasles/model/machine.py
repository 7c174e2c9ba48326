"""Parts of a machine other than links and joints: tendons, actuators, fluid, keyframes."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Transform

Interval = tuple[float, float]
"""A lower and an upper limit."""

UNBOUNDED: Interval = (-math.inf, math.inf)

Triple = tuple[float, float, float]


class StretchData(NamedTuple):
    """A straight piece of a tendon, between points of two links (in m, in their frames).

    factor: how much its length counts, below 1 behind a pulley.
    """

    start: str
    start_point: Vector
    end: str
    end_point: Vector
    factor: float = 1.0


@dataclass(frozen=True)
class RotorData:
    """A tendon, or a rotor that several joints turn: one length, with inertia, spring and damper.

    Its velocity is the sum of ratio * velocity over `freedoms`, and its length the same sum of
    coordinates, plus offset. `freedoms` names the velocities it is geared to, as
    `robot.independent` does: joints, with [k] for a joint with several. path: instead of these, a
    tendon between points of links. armature: kg m2 if the velocity is in rad/s, kg if it is in m/s;
    the mass matrix gains armature times the outer product of the ratios with themselves. stiffness:
    of a spring that pulls where the length is above `rest[1]`, and pushes where it is below
    `rest[0]`. damping: viscous coefficient of its velocity. forces: the range of all actuators'
    force on it.
    """

    name: str
    freedoms: tuple[str, ...]
    ratios: tuple[float, ...]
    armature: float = 0.0
    where: str = ""
    path: tuple[StretchData, ...] = ()
    offset: float = 0.0
    stiffness: float = 0.0
    rest: Interval = (0.0, 0.0)
    damping: float = 0.0
    forces: Interval = UNBOUNDED


@dataclass(frozen=True)
class ActuatorData:
    """An actuator: the force gain * input + bias, along the velocity of its transmission.

    kind: what it drives: "joint", "tendon", "site" (a frame), "crank" (a slider-crank, whose slider
    is the frame `reference`), or "" for one that is not supported and exerts no force. target: the
    name of that part. gear: factors of the force, one for a joint or tendon; of joints with several
    degrees of freedom and of frames six, as MuJoCo has them: force, then moment. in_parent: gears
    are along the axes of the parent. reference: the frame in which a frame is moved; "" for the
    world. gain, bias: (constant, per length, per velocity), of the transmission. dynamics: "none"
    (the input is the control), "integrator" or "filter" (the input is an activation, whose rate is
    the control, or (control - activation)/constant). constant: time constant in s. rod: length of a
    crank's rod in m. controls, forces, activations: ranges; the first two are kept by `actuate`.
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
    where: str = ""

    @property
    def active(self) -> bool:
        """Return True if it has an activation, which is part of the state."""
        return self.dynamics != "none"


DYNAMICS = ("none", "integrator", "filter")
"""Dynamics between an actuator's control and its input."""

TRANSMISSIONS = ("joint", "tendon", "site", "crank", "")
"""Parts that an actuator may drive."""


class BoxData(NamedTuple):
    """A link as a fluid meets it: a box of edges `size` (m), at `pose` in the link's frame."""

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
"""Numbers by the names of joints or actuators."""


@dataclass(frozen=True)
class KeyframeData:
    """A state that a file has under a name: numbers by joint and by actuator, absent ones zero.

    Positions that are absent are those of `JointData.start`.
    """

    name: str
    positions: Named = ()
    velocities: Named = ()
    controls: Named = ()
    activations: Named = ()
    where: str = ""
