"""What moves and what moves it: inertias J from mass data, actions Phi, gravity, products."""

from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError
from chasles.expr import Number, Scalar
from chasles.homogeneous.door import (
    ORIGIN,
    Array,
    array,
    has_form,
    matrix,
    number,
    numbers,
    typed,
    vector,
)
from chasles.mathematics import homogeneous
from chasles.mathematics.homogeneous import (
    Acceleration,
    Action,
    Block,
    Inertia,
    Momentum,
    Screw,
    Velocity,
    action,
)
from chasles.mathematics.homogeneous.frames import Dense
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia


class MassData(NamedTuple):
    """Mass (kg), centre of mass (m), and the 3x3 inertia tensor about the centre (kg m2)."""

    mass: Number
    center: np.ndarray
    inertia: np.ndarray


def inertia_from_mass(mass: Number, center: Array, inertia: Array) -> Inertia:
    """J from mass, centre of mass and the moments about the centre, along the frame's axes.

    inertia: (xx, yy, zz, xy, xz, yz) or the 3x3 tensor. Products are entries of the tensor, which
    are minus the integrals: J12 = -jxy + m x y (the jxy of Legnani's program).
    """
    m = number("mass", mass)
    if type(m) is not Scalar and m < 0.0:
        raise InputError("E-MATH-013", f"mass is {m}: give the mass in kg, not below zero")
    rigid = RigidInertia.from_center(m, vector("center", center), _moments(inertia))
    return Inertia.of(rigid)


def _moments(inertia: Array) -> Symmetric:
    if np.shape(inertia) == (6,):
        return Symmetric(*numbers("inertia", inertia, (6,)))
    if np.shape(inertia) != (3, 3):
        raise InputError(
            "E-MATH-014",
            "inertia must be (xx, yy, zz, xy, xz, yz) or a 3x3 tensor, not of shape "
            f"{np.shape(inertia)}",
        )
    given = matrix("inertia", inertia, 3)
    moments = Symmetric.of(given)
    has_form("inertia", given, moments.matrix(), "symmetric")
    return moments


def mass_from_inertia(J: Inertia) -> MassData:
    """Mass, centre of mass and inertia tensor about the centre: `inertia_from_mass` undone.

    Without mass the centre is taken at the origin.
    """
    typed("J", J, Inertia)
    m, c, I = J.rigid().about_center()
    return MassData(m, array(c), np.array([array(row) for row in I.matrix().rows]))


def action_from_force(force: Array, couple: Array = ORIGIN, point: Array = ORIGIN) -> Action:
    """Phi of a force (N) that acts at a point, and a couple (N m), along the frame's axes.

    The matrix holds the couple about the frame's origin: couple + point x force.
    """
    f, c, p = vector("force", force), vector("couple", couple), vector("point", point)
    return Action(c + p.cross(f), f)


def gravity(g: Array = (0.0, 0.0, -9.81)) -> Acceleration:
    """Hg: the acceleration of gravity (m/s2), the same for all points."""
    return Acceleration.uniform(vector("g", g))


def weight(J: Inertia, Hg: Acceleration) -> Action:
    """skew(Hg J): the action of gravity on a body, J and Hg in one frame."""
    return action(Hg, J)


def skew(X: Any) -> np.ndarray:
    """X - X' of a 4x4 matrix: Gamma = skew(W J), Phi = skew(H J)."""
    A = X.matrix() if isinstance(X, Block) else matrix("X", X)
    return np.array([array(row) for row in (A - A.T).rows])


def pseudo_product(Phi: Action | Momentum, X: Velocity | Screw) -> Number:
    """Phi (x) X: power on a velocity (W), generalised force on a screw (N m or N)."""
    typed("Phi", Phi, Action, Momentum)
    return Phi.pseudo(X)


_PARTED = (Velocity, Screw, Acceleration, Momentum, Action, Block)
"""The matrices that have an angular and a linear part."""


def angular_part(X: Dense) -> np.ndarray:
    """w of W, u of L, wd of H, the angular momentum of Gamma, the couple of Phi (Mitra's m4v3)."""
    typed("X", X, *_PARTED)
    return array(homogeneous.angular(X))


def linear_part(X: Dense) -> np.ndarray:
    """The last column: of the pole v or a, the linear momentum, the force, b of a screw."""
    typed("X", X, *_PARTED)
    return array(homogeneous.linear(X))


def six_numbers(X: Dense) -> np.ndarray:
    """Angular part, then linear part, as everywhere in chasles (Mitra's m4v6)."""
    typed("X", X, *_PARTED)
    return array((*homogeneous.angular(X), *homogeneous.linear(X)))


def velocity_from_six(x: Array) -> Velocity:
    """W from (wx, wy, wz, vx, vy, vz) (Mitra's v6m4): what `robot.frame_velocity` gives."""
    six = vector("x", x, 6).entries
    return Velocity(Vector(six[:3]), Vector(six[3:]))


def three_numbers(P: Array) -> np.ndarray:
    """A homogeneous point (x, y, z, 1) or direction (x, y, z, 0) as (x, y, z) (Mitra's v4v3)."""
    return array(vector("P", P, 4).entries[:3])
