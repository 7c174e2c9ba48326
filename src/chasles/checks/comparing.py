"""Compare arrays whose entries have different units.

In SI units, the joint torques of a millimeter-sized hand are negligible compared with its joint
forces, and the forces of a crane are negligible compared with its torques. Errors in the smaller
entries would go unnoticed. Arrays are therefore scaled with the robot's length before comparison.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from chasles.mechanisms.equations import row_scales
from chasles.model import Model
from chasles.model.spaces import freedom_units


class Loss(NamedTuple):
    """An expected loss of accuracy in a comparison.

    `times` multiplies the tolerance, and `why` gives the reason.
    """

    times: float = 1.0
    why: str = ""


NOTHING = Loss()


class Comparison(NamedTuple):
    """A computed array and its expected value.

    Differences are relative to the largest expected entry or to `size`, whichever is larger. `size`
    is needed if, for example, all expected forces are zero. Both arrays are multiplied by `units`
    before comparison, and `size` refers to the scaled arrays. `loss` increases the tolerance.
    """

    function: str
    method: str
    found: Any
    expected: Any
    size: float = 0.0
    loss: Loss = NOTHING
    units: Any = 1.0


def relative_error(compared: Comparison) -> float:
    """Return the largest relative difference, or infinity if the shapes differ."""
    a, b = (np.asarray(x, dtype=float) for x in (compared.found, compared.expected))
    if a.shape != b.shape:
        return np.inf
    if np.array_equal(a, b):
        return 0.0
    apart, size = _apart(compared, a, b)
    error = float(np.max(apart)) / size if size else np.inf
    return error if np.isfinite(error) else np.inf


def first_difference(compared: Comparison, tolerance: float) -> str:
    """Describe the first entry with an error above the tolerance; return "" if there is none."""
    a, b = (np.asarray(x, dtype=float) for x in (compared.found, compared.expected))
    if a.shape != b.shape:
        return f"shape {a.shape} instead of {b.shape}"
    apart, size = _apart(compared, a, b)
    wrong = np.argwhere(~(apart <= tolerance * size))
    if not len(wrong):
        return ""
    at = tuple(map(int, wrong[0]))
    return f"{list(at) if at else 'the number'}: {a[at]:.9g} instead of {b[at]:.9g}"


def _apart(compared: Comparison, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
    """Return absolute differences of the scaled arrays, and the magnitude that normalizes them."""
    with np.errstate(all="ignore"):
        apart = np.abs((a - b) * compared.units)
        size = float(np.max(np.abs(b * compared.units), initial=compared.size))
    return apart, size


INVERTING = ("forward_dynamics", "hybrid_dynamics")
"""Functions whose accelerations qdd are compared as generalized forces M qdd."""


# Units -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Units:
    """Scale factors that make array entries comparable.

    `length` is the robot's length in m. `effort` (nv) is 1 for rotations and the length for
    translations. `position` (nq) is 1 / length for coordinates in m, and 1 for other coordinates.
    `closing` scales the rows of the loop equations.

    Derived factors, and the quantities that they scale:

    - rate (nv): velocities, accelerations and steps.
    - inertia, mobility (nv, nv): the mass matrix and its inverse.
    - symbols (nv, nv, nv): Christoffel symbols.
    - twist, wrench (6,): twists and wrenches.
    - jacobian, centroidal (6, nv): Jacobians and the centroidal momentum matrix.
    - accelerance (6, 6): the inverse inertia at a frame.
    - loops: the loop matrix.
    """

    length: float
    effort: np.ndarray
    position: np.ndarray
    closing: np.ndarray

    rate = cached_property(lambda self: 1.0 / self.effort)
    inertia = cached_property(lambda self: np.outer(self.effort, self.effort))
    mobility = cached_property(lambda self: 1.0 / self.inertia)
    symbols = cached_property(lambda self: np.multiply.outer(self.inertia, self.effort))
    twist = cached_property(lambda self: np.repeat([1.0, 1.0 / self.length], 3))
    wrench = cached_property(lambda self: np.repeat([1.0, self.length], 3))
    jacobian = cached_property(lambda self: np.outer(self.twist, self.effort))
    centroidal = cached_property(lambda self: np.outer(self.wrench, self.effort))
    accelerance = cached_property(lambda self: np.outer(self.twist, self.twist))
    loops = cached_property(lambda self: np.outer(self.closing, self.effort))

    @cached_property
    def pose(self) -> np.ndarray:
        """Scale factors for the entries of a homogeneous transformation matrix (4, 4)."""
        factors = np.ones((4, 4))
        factors[:3, 3] = 1.0 / self.length
        return factors

    def of(self, function: str, result: int = 0) -> Any:
        """Return the scale factors for a function's result, or 1 if no scaling is needed."""
        kinds = OF.get(function, [""])
        kind = kinds[min(result, len(kinds) - 1)]
        return getattr(self, kind) if kind else 1.0


_FUNCTIONS = {
    "pose": ("forward_kinematics",),
    "twist": ("frame_velocity", "frame_acceleration", "frame_motion"),
    "jacobian": ("jacobian", "generalized_jacobian", "jacobian_rate"),
    "effort": ("inverse_dynamics", "gravity_forces", "bias_forces", *INVERTING),
    "inertia": ("coriolis_matrix", "mass_matrix", "inverse_dynamics_sensitivities"),
    "mobility": ("mass_matrix_inverse",),
    "accelerance": ("operational_inertia_inverse",),
    "wrench": ("joint_reactions", "momentum"),
    "centroidal": ("centroidal_momentum_matrix",),
    "rate": ("difference",),
    "position": ("integrate",),
    "closing": ("loop_residual", "loop_rate", "loop_bias"),
    "loops": ("loop_matrix",),
}
OF = {"closed_form": ["inertia", "symbols", "effort"]}
OF |= {function: [kind] for kind, functions in _FUNCTIONS.items() for function in functions}
"""For each function, the names of the `Units` attributes that contain the scales of its results."""


def units_of(model: Model, counted: np.ndarray | float = 1.0) -> Units:
    """Return scale factors based on the robot's largest dimension (1 m if all dimensions are zero).

    `counted` contains weights for the loop equations. Redundant equations that were dropped have
    small weights, because the other equations imply them only approximately.
    """
    length = max(_lengths(model), default=0.0) or 1.0
    units = [unit for i in model.movers for unit in model.bodies[i].joint.units]
    position = np.array([1.0 / length if unit == "m" else 1.0 for unit in units])
    effort = np.array(freedom_units(model, length))
    return Units(length, effort, position, counted * row_scales(model))


def _lengths(model: Model) -> Iterator[float]:
    """Yield the robot's dimensions (m); the largest one is the unit of length for comparisons.

    The dimensions are joint and frame offsets, limits of prismatic joints, and radii of gyration.
    """
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
