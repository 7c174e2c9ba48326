"""What makes numbers of one array comparable: lengths beside the robot's own.

A torque of a hand a millimetre long is nothing beside the forces of its slides, as numbers, and one
of a crane is everything: a wrong one would not be seen, or nothing else. So lengths are measured by
the robot's own, and each array is multiplied by what makes its entries of one kind.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from chasles.mechanisms.equations import row_scales
from chasles.model import Model
from chasles.model.units import freedom_units


@dataclass(frozen=True)
class Units:
    """Factors of the entries of arrays, by what these are.

    length: the robot's own, in m. effort (nv): 1 where a freedom turns, the length where it slides.
    position (nq): 1 over the length for coordinates in m. closing: of the equations of loops.
    """

    length: float
    effort: np.ndarray
    position: np.ndarray
    closing: np.ndarray

    @cached_property
    def rate(self) -> np.ndarray:
        """Of velocities, accelerations and steps (nv)."""
        return 1.0 / self.effort

    @cached_property
    def inertia(self) -> np.ndarray:
        """Of a mass matrix and its like (nv, nv)."""
        return np.outer(self.effort, self.effort)

    @cached_property
    def twist(self) -> np.ndarray:
        return np.array([1.0] * 3 + [1.0 / self.length] * 3)

    @cached_property
    def wrench(self) -> np.ndarray:
        """Of a moment and a force, and of momentum."""
        return np.array([1.0] * 3 + [self.length] * 3)

    @cached_property
    def jacobian(self) -> np.ndarray:
        return np.outer(self.twist, self.effort)

    @cached_property
    def pose(self) -> np.ndarray:
        """Of a homogeneous matrix (4, 4)."""
        factors = np.ones((4, 4))
        factors[:3, 3] = 1.0 / self.length
        return factors

    def of(self, function: str, result: int = 0) -> Any:
        """Of a result of a function; 1 where it is of one kind, or of kinds of its own."""
        kinds = OF.get(function, ("",))
        kind = kinds[min(result, len(kinds) - 1)]
        return getattr(self, kind) if kind else 1.0

    @cached_property
    def centroidal(self) -> np.ndarray:
        return np.outer(self.wrench, self.effort)

    @cached_property
    def mobility(self) -> np.ndarray:
        """Of an inverse mass matrix (nv, nv)."""
        return 1.0 / self.inertia

    @cached_property
    def accelerance(self) -> np.ndarray:
        """Of an inverse inertia at a frame (6, 6)."""
        return np.outer(self.twist, self.twist)

    @cached_property
    def loops(self) -> np.ndarray:
        """Of a matrix from velocities to rates of the equations of loops."""
        return np.outer(self.closing, self.effort)

    @cached_property
    def symbols(self) -> np.ndarray:
        """Of coefficients of two velocities (nv, nv, nv)."""
        return np.multiply.outer(self.inertia, self.effort)


OF: dict[str, tuple[str, ...]] = {
    "forward_kinematics": ("pose",),
    "frame_velocity": ("twist",),
    "frame_acceleration": ("twist",),
    "frame_motion": ("twist",),
    "jacobian": ("jacobian",),
    "generalized_jacobian": ("jacobian",),
    "jacobian_rate": ("jacobian",),
    "inverse_dynamics": ("effort",),
    "gravity_forces": ("effort",),
    "bias_forces": ("effort",),
    "forward_dynamics": ("effort",),
    "hybrid_dynamics": ("effort",),
    "coriolis_matrix": ("inertia",),
    "closed_form": ("inertia", "symbols", "effort"),
    "mass_matrix": ("inertia",),
    "mass_matrix_inverse": ("mobility",),
    "inverse_dynamics_sensitivities": ("inertia",),
    "operational_inertia_inverse": ("accelerance",),
    "joint_reactions": ("wrench",),
    "momentum": ("wrench",),
    "centroidal_momentum_matrix": ("centroidal",),
    "difference": ("rate",),
    "integrate": ("position",),
    "loop_residual": ("closing",),
    "loop_rate": ("closing",),
    "loop_bias": ("closing",),
    "loop_matrix": ("loops",),
}
"""What the results of functions are. Accelerations are compared as the forces that they need."""


def units_of(model: Model) -> Units:
    """By the largest distance that the robot's data have; 1 m where they have none."""
    length = max(_lengths(model), default=0.0) or 1.0
    units = [unit for i in model.movers for unit in model.bodies[i].joint.units]
    position = np.array([1.0 / length if unit == "m" else 1.0 for unit in units])
    effort = np.array(freedom_units(model, length))
    return Units(length, effort, position, row_scales(model))


def _lengths(model: Model) -> Iterator[float]:
    """Distances of joints, frames and ends of loops, how far slides go, radii of gyration; in m."""
    for X in (
        *(body.joint.placement for body in model.bodies),
        *(frame.placement for frame in model.frames.values()),
        *(end.placement for loop in model.loops for end in (loop.predecessor, loop.successor)),
    ):
        yield math.sqrt(float(X.r.dot(X.r)))
    for body in model.bodies:
        limits, I = body.data.limits, body.inertia
        if body.joint.units == ("m",) and math.isfinite(limits.upper - limits.lower):
            yield max(abs(limits.lower), abs(limits.upper))
        if float(I.m) > 0.0:
            yield math.sqrt(max(float(I.I.xx + I.I.yy + I.I.zz), 0.0) / (2.0 * float(I.m)))
