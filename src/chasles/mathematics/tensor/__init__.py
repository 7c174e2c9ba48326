"""Cartesian tensors of second order, and what they say of a rigid body.

Tensors are `Matrix` (or `Symmetric`, by its six numbers), vectors are `Vector`; letters, signs and
factors are those of Balafoutis and Patel (1991), chapters 3 and 4. Everything works on floats and
on symbols, but for `spectral`, which needs floats.
"""

from chasles.mathematics.tensor.algebra import (
    Fourth,
    across,
    along,
    angle,
    change_basis,
    double_dot,
    dual,
    invariants,
    left_dual,
    norm,
    skew_part,
    spectral,
    symmetric_part,
    tensor_product,
    trace,
    vect,
    wedge,
)
from chasles.mathematics.tensor.bodies import (
    AngularAcceleration,
    Center,
    GeneralisedLink,
    angular_momentum,
    angular_velocity,
    euler_about,
    euler_from_inertia,
    inertia_about,
    inertia_from_euler,
    inertia_rate,
    point_mass,
)

__all__ = [
    "AngularAcceleration",
    "Center",
    "Fourth",
    "GeneralisedLink",
    "across",
    "along",
    "angle",
    "angular_momentum",
    "angular_velocity",
    "change_basis",
    "double_dot",
    "dual",
    "euler_about",
    "euler_from_inertia",
    "inertia_about",
    "inertia_from_euler",
    "inertia_rate",
    "invariants",
    "left_dual",
    "norm",
    "point_mass",
    "skew_part",
    "spectral",
    "symmetric_part",
    "tensor_product",
    "trace",
    "vect",
    "wedge",
]
