"""How bodies move: velocities W, accelerations H, those of joints, and how they compose."""

import math

from chasles.errors import InputError
from chasles.expr import Number, Scalar
from chasles.homogeneous.door import Array, has_form, matrix, number, position, typed, vector
from chasles.homogeneous.screws import screw_from_axis
from chasles.mathematics.homogeneous import (
    Acceleration,
    Block,
    Screw,
    Velocity,
    angular,
    linear,
)
from chasles.mathematics.homogeneous.dense import AnyFramed
from chasles.mathematics.linear import Matrix, Vector


def velocity(w: Array, v: Array) -> Velocity:
    """W from the angular velocity w (rad/s) and the velocity v of the pole (m/s)."""
    return Velocity(vector("w", w), vector("v", v))


def acceleration(W: Velocity, wd: Array, a: Array) -> Acceleration:
    """H of a body with velocity W, from angular acceleration wd and the pole's acceleration a."""
    typed("W", W, Velocity)
    return Acceleration(W.w, vector("wd", wd), vector("a", a))


def acceleration_from_array(A: Array, W: Velocity) -> Acceleration:
    """H from its 4x4 array and the velocity of the body, whose sign the array does not tell."""
    typed("W", W, Velocity)
    rows = matrix("A", A)
    read = Block(Matrix(tuple(row[:3] for row in rows.rows[:3])), Vector(rows.T.rows[3][:3]))
    H = Acceleration(W.w, angular(read), linear(read))
    form = "of type Acceleration: [wd~ + w~ w~, a; 0 0 0 0] with the w of W"
    has_form("A", rows, H.matrix(), form)
    return H


def joint_screw(kind: str, pitch: Number = 0.0) -> Screw:
    """L of a joint in its own frame, whose z is the axis (Eq II.1).

    kind: "revolute", "prismatic", or "helical" with its pitch in m/rad.
    """
    p = number("pitch", pitch)
    pitches = {"revolute": 0.0, "prismatic": math.inf, "helical": p}
    if kind not in pitches:
        raise InputError("E-MATH-015", f"kind must be one of {', '.join(pitches)}, not {kind!r}")
    if kind != "helical" and (type(p) is Scalar or p != 0.0):
        raise InputError("E-MATH-016", f"a {kind} joint has no pitch", "kind='helical' has one")
    return screw_from_axis((0.0, 0.0, 1.0), pitch=pitches[kind])


def joint_velocity(kind: str, qd: Number, *, pitch: Number = 0.0) -> Velocity:
    """W = L qd of a joint, in its own frame."""
    return joint_screw(kind, pitch).velocity(number("qd", qd))


def joint_acceleration(kind: str, qd: Number, qdd: Number, *, pitch: Number = 0.0) -> Acceleration:
    """H = L^2 qd^2 + L qdd of a joint, in its own frame."""
    return joint_screw(kind, pitch).acceleration(number("qd", qd), number("qdd", qdd))


def change_reference(X: AnyFramed, M: Array) -> AnyFramed:
    """A matrix that is written in the second frame of M, written in the first.

    M X M^-1 for Q, W, H and L (SPACELIB's trasf_mami), M X M' for J, Gamma and Phi (trasf_mamt).
    `M.to_second` is the way back.
    """
    return position("M", M).to_first(X)


def compose_velocities(*velocities: Velocity) -> Velocity:
    """W_ik = W_ij + W_jk + ...: relative velocities add, all in one frame (Eq I.10)."""
    return sum(velocities, start=Velocity.zero())


def compose_accelerations(
    H_ij: Acceleration, W_ij: Velocity, H_jk: Acceleration, W_jk: Velocity
) -> Acceleration:
    """Coriolis' theorem: H_ik = H_ij + H_jk + 2 W_ij W_jk, all in one frame (Eq I.11)."""
    for name, H, W in (("ij", H_ij, W_ij), ("jk", H_jk, W_jk)):
        typed(f"H_{name}", H, Acceleration)
        typed(f"W_{name}", W, Velocity)
    return H_ij.after(W_ij, H_jk, W_jk)
