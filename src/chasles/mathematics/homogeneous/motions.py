"""Velocity W, screw L, acceleration H, inertia J, momentum Gamma and action Phi of a body."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self, overload

from chasles.expr import Number
from chasles.mathematics.homogeneous.frames import (
    Block,
    Factor,
    Framed,
    bordered,
    mismatch,
    product,
)
from chasles.mathematics.linear import Additive, Matrix, Symmetric, Vector, solve_symmetric
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Force, Motion, RigidInertia
from chasles.mathematics.tensor import (
    AngularAcceleration,
    euler_from_inertia,
    inertia_from_euler,
    tensor_product,
)


@dataclass(frozen=True, slots=True, repr=False)
class _Twist(Framed, Factor):
    """Base class of matrices [w~ v; 0 0]: velocities and screws."""

    w: Vector
    v: Vector

    @classmethod
    def of(cls, motion: Motion) -> Self:
        """Create the matrix from a spatial motion vector.

        Parameters
        ----------
        motion : Motion
            Angular and linear parts, about the origin of the frame.

        Returns
        -------
        X : same type
            Matrix [w~ v; 0 0].

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> W = hm.joint_velocity("revolute", 2.0)
        >>> hm.Velocity.of(W.motion()) == W
        True
        """
        return cls(motion.angular, motion.linear)

    def motion(self) -> Motion:
        """Convert the matrix to a spatial motion vector.

        Returns
        -------
        motion : Motion
            Angular and linear parts, about the origin of the frame (rad/s and m/s for a velocity).

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> hm.joint_velocity("revolute", 2.0).motion().angular
        Vector(entries=(0.0, 0.0, 2.0))
        """
        return Motion(self.w, self.v)

    def block(self) -> Block:
        """Convert the matrix to a `Block`, the general matrix [A b; 0 0].

        Returns
        -------
        block : Block
            [A b; 0 0] with A = w~ and b = v.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> hm.joint_velocity("prismatic", 2.0).block().b
        Vector(entries=(0.0, 0.0, 2.0))
        """
        return Block(Matrix.skew(self.w), self.v)

    def matrix(self) -> Matrix:
        return self.block().matrix()

    def __iter__(self) -> Iterator[Number]:
        return iter((*self.w, *self.v))

    @overload
    def __matmul__(self, other: Vector) -> Vector: ...
    @overload
    def __matmul__(self, other: Factor) -> Block: ...
    def __matmul__(self, other: Vector | Factor) -> Vector | Block:
        """Return the product X @ other, where X is this matrix.

        If X is a velocity, X @ P is the velocity of a point P, and X @ M is the derivative dM/dt of
        a pose M. If X is a screw, these products are per unit joint velocity.
        """
        if type(other) is Vector:
            return self.w.cross(other) + self.v
        return product(self.block(), self, other)

    def from_left(self, left: Block) -> Block:
        return Block(left.A @ Matrix.skew(self.w), left.A @ self.v)

    def to_first(self, R: Rotation, t: Vector) -> Self:
        w = R @ self.w
        return type(self)(w, R @ self.v + t.cross(w))

    def to_second(self, R: Rotation, t: Vector) -> Self:
        return type(self)(R.T @ self.w, R.T @ (self.v + self.w.cross(t)))

    def bracket(self, other: "Velocity | Screw") -> "Velocity":
        """Return the Lie bracket X Y - Y X, which is dY/dt if Y moves with the velocity X.

        Parameters
        ----------
        other : Velocity or Screw
            Matrix Y, expressed in the same frame.

        Returns
        -------
        rate : Velocity
            The Lie bracket, for example dL/dt = W L - L W.

        Raises
        ------
        ArgumentError
            If `other` is not a velocity or a screw.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> slide = hm.joint_velocity("prismatic", 1.0)
        >>> hm.six_numbers(hm.joint_velocity("revolute", 2.0).bracket(slide))  # the axes coincide
        array([0., 0., 0., 0., 0., 0.])
        """
        if not isinstance(other, _Twist):
            raise mismatch("take the bracket of", self, other)
        return Velocity(self.w.cross(other.w), self.w.cross(other.v) - other.w.cross(self.v))


@dataclass(frozen=True, slots=True, repr=False)
class Velocity(_Twist, Additive):
    """Velocity W = [w~ v; 0 0], with the angular velocity w and the velocity v of the pole.

    The pole is the point of the body at the origin of the frame. `W @ P` is the velocity of a
    point. Velocities add: W_ik = W_ij + W_jk (Legnani et al. 1996, Eq I.10).
    """

    @staticmethod
    def zero() -> "Velocity":
        """Return a zero velocity.

        Returns
        -------
        W : Velocity
            Zero.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> hm.six_numbers(hm.Velocity.zero())
        array([0., 0., 0., 0., 0., 0.])
        """
        return Velocity(Vector.zero(), Vector.zero())


@dataclass(frozen=True, slots=True, repr=False)
class Screw(_Twist):
    """Screw axis L = [u~ b; 0 0] of a joint, with a unit vector u and b = -u~ p + pitch u.

    p is a point on the axis. For a translation, u = 0, and b is the direction. The attributes `w`
    and `v` contain u and b.
    """

    def velocity(self, qd: Number) -> Velocity:
        """Return the velocity W = L qd (also available as `L * qd`).

        Parameters
        ----------
        qd : float
            Joint velocity (rad/s or m/s).

        Returns
        -------
        W : Velocity
            Velocity of the body relative to the previous body.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> hm.six_numbers(hm.joint_screw("revolute").velocity(2.0))
        array([0., 0., 2., 0., 0., 0.])
        """
        return Velocity(self.w * qd, self.v * qd)

    __mul__ = __rmul__ = velocity

    def acceleration(self, qd: Number, qdd: Number) -> "Acceleration":
        """Return the acceleration H = L^2 qd^2 + L qdd (Legnani et al. 1996, Eq II.1).

        Parameters
        ----------
        qd : float
            Joint velocity (rad/s or m/s).
        qdd : float
            Joint acceleration (rad/s2 or m/s2).

        Returns
        -------
        H : Acceleration
            Acceleration of the body relative to the previous body.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> hm.joint_screw("revolute").acceleration(2.0, 0.5).wd
        Vector(entries=(0.0, 0.0, 0.5))
        """
        return Acceleration.of(self.velocity(qd), self.velocity(qdd))


@dataclass(frozen=True, slots=True, repr=False)
class Acceleration(Framed):
    """Acceleration H = [G a; 0 0], with G = wd~ + w~ w~ and the acceleration a of the pole.

    `H @ P` is the acceleration of a point. Accelerations compose by the Coriolis theorem (`after`):
    H_ik = H_ij + H_jk + 2 W_ij W_jk (Legnani et al. 1996, Eq I.11).
    """

    w: Vector
    wd: Vector
    a: Vector

    @staticmethod
    def zero() -> "Acceleration":
        """Return a zero acceleration.

        Returns
        -------
        H : Acceleration
            Zero.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> hm.Acceleration.zero().a
        Vector(entries=(0.0, 0.0, 0.0))
        """
        return Acceleration(Vector.zero(), Vector.zero(), Vector.zero())

    @staticmethod
    def of(W: Velocity, rate: Velocity) -> "Acceleration":
        """Return the acceleration H = dW/dt + W W from the velocity W and dW/dt.

        Parameters
        ----------
        W : Velocity
            Velocity.
        rate : Velocity
            Spatial acceleration dW/dt.

        Returns
        -------
        H : Acceleration
            Acceleration.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> W = hm.joint_velocity("revolute", 2.0)
        >>> H = hm.Acceleration.of(W, hm.Velocity.zero())
        >>> (H @ hm.joint_velocity("prismatic", 1.0).v).entries  # a point on the axis
        (0.0, 0.0, 0.0)
        """
        return Acceleration(W.w, rate.w, rate.v + W.w.cross(W.v))

    @staticmethod
    def uniform(a: Vector) -> "Acceleration":
        """Return an acceleration that is the same at all points, such as Hg for gravity.

        Parameters
        ----------
        a : Vector
            Acceleration of all points (m/s2).

        Returns
        -------
        H : Acceleration
            Matrix [0 a; 0 0].

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> hm.Acceleration.uniform(hm.joint_velocity("prismatic", -9.81).v) == hm.gravity()
        True
        """
        return Acceleration(Vector.zero(), Vector.zero(), a)

    def rate(self, W: Velocity) -> Velocity:
        """Return the spatial acceleration dW/dt = H - W W.

        Parameters
        ----------
        W : Velocity
            Velocity of the same body, expressed in the same frame.

        Returns
        -------
        rate : Velocity
            Spatial acceleration dW/dt.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> L = hm.joint_screw("revolute")
        >>> hm.six_numbers(L.acceleration(2.0, 0.5).rate(L.velocity(2.0)))
        array([0. , 0. , 0.5, 0. , 0. , 0. ])
        """
        return Velocity(self.wd, self.a - self.w.cross(W.v))

    @property
    def G(self) -> Matrix:
        """3x3 block wd~ + w~ w~."""
        return AngularAcceleration(self.w, self.wd).tensor

    def block(self) -> Block:
        """Convert the matrix to a `Block`, the general matrix [A b; 0 0].

        Returns
        -------
        block : Block
            [A b; 0 0] with A = wd~ + w~ w~ and b = a.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> hm.joint_acceleration("revolute", 2.0, 0.5).block().A[0, 0]
        -4.0
        """
        return Block(self.G, self.a)

    def matrix(self) -> Matrix:
        return self.block().matrix()

    def to_first(self, R: Rotation, t: Vector) -> "Acceleration":
        turned = Acceleration(R @ self.w, R @ self.wd, R @ self.a)
        return replace(turned, a=turned.a - turned.G @ t)

    def to_second(self, R: Rotation, t: Vector) -> "Acceleration":
        return Acceleration(R.T @ self.w, R.T @ self.wd, R.T @ (self @ t))

    def after(self, W: Velocity, relative: "Acceleration", moving: Velocity) -> "Acceleration":
        """Compose accelerations by the Coriolis theorem: H_ij.after(W_ij, H_jk, W_jk) is H_ik.

        Parameters
        ----------
        W : Velocity
            Velocity W_ij of this motion.
        relative : Acceleration
            Acceleration H_jk of the relative motion.
        moving : Velocity
            Velocity W_jk of the relative motion. All matrices are expressed in the same frame.

        Returns
        -------
        H : Acceleration
            H_ik = H_ij + H_jk + 2 W_ij W_jk (Legnani et al. 1996, Eq I.11).

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> L = hm.joint_screw("revolute")  # two joints on one axis
        >>> W, H = L.velocity(1.0), L.acceleration(1.0, 0.0)
        >>> H.after(W, H, W) == L.acceleration(2.0, 0.0)
        True
        """
        return Acceleration(
            self.w + relative.w,
            self.wd + relative.wd + W.w.cross(moving.w),
            self.a + relative.a + W.w.cross(moving.v) * 2.0,
        )

    @overload
    def __matmul__(self, other: Vector) -> Vector: ...
    @overload
    def __matmul__(self, other: Factor) -> Block: ...
    def __matmul__(self, other: Vector | Factor) -> Vector | Block:
        """Return H P, the acceleration of a point P, or H M, which is d2M/dt2 for a pose M."""
        if type(other) is Vector:
            return self.G @ other + self.a
        if isinstance(other, _Twist):
            raise mismatch("multiply", self, other)
        return product(self.block(), self, other)


# Inertias, momenta and actions --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Inertia(Framed, Factor, Additive):
    """Inertia J = [K h; h' m] of a body with mass m.

    K is the integral of x x' dm, and h is m times the center of mass.
    """

    K: Symmetric
    h: Vector
    m: Number

    @staticmethod
    def zero() -> "Inertia":
        """Return the inertia of a massless body.

        Returns
        -------
        J : Inertia
            Zero.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> hm.Inertia.zero().m
        0.0
        """
        return Inertia(Symmetric.zero(), Vector.zero(), 0.0)

    @staticmethod
    def of(rigid: RigidInertia) -> "Inertia":
        """Create the matrix from a spatial inertia, with K = (trace(I) / 2) 1 - I.

        Parameters
        ----------
        rigid : RigidInertia
            Mass (kg), mass times center of mass (kg m), and moments about the origin (kg m2).

        Returns
        -------
        J : Inertia
            Matrix [K h; h' m].

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> J = hm.inertia_from_mass(2.0, (0.5, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
        >>> hm.Inertia.of(J.rigid()).h
        Vector(entries=(1.0, 0.0, 0.0))
        """
        return Inertia(euler_from_inertia(rigid.I), rigid.h, rigid.m)

    def rigid(self) -> RigidInertia:
        """Convert the matrix to a spatial inertia.

        Returns
        -------
        rigid : RigidInertia
            Mass (kg), mass times center of mass (kg m), and moments about the origin (kg m2).

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> J = hm.inertia_from_mass(2.0, (0.0, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
        >>> round(J.rigid().I.matrix()[0, 0], 9)
        0.02
        """
        return RigidInertia(self.m, self.h, inertia_from_euler(self.K))

    def matrix(self) -> Matrix:
        return bordered(self.K.matrix(), self.h, (*self.h, self.m))

    def from_left(self, left: Block) -> Block:
        A, b = left.A, left.b
        return Block(A @ self.K.matrix() + tensor_product(b, self.h), A @ self.h + b * self.m)

    def to_first(self, R: Rotation, t: Vector) -> "Inertia":
        carried = R @ self.h
        h = carried + t * self.m
        return Inertia(R @ self.K + _outer_sum(carried, t, h), h, self.m)

    def to_second(self, R: Rotation, t: Vector) -> "Inertia":
        h = self.h - t * self.m
        return Inertia(R.T @ (self.K - _outer_sum(h, t, self.h)), R.T @ h, self.m)

    def carried(self, X: Velocity | Screw) -> "Inertia":
        """Return X J + J X', which is dJ/dt or dJ/dq if the body moves with X.

        Parameters
        ----------
        X : Velocity or Screw
            Velocity of the body, or screw axis of a joint that moves it, expressed in the frame of
            J.

        Returns
        -------
        rate : Inertia
            Derivative of J, with zero mass.

        Raises
        ------
        ArgumentError
            If X is not a velocity or a screw.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> J = hm.inertia_from_mass(2.0, (0.5, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
        >>> J.carried(hm.joint_velocity("revolute", 2.0)).h  # mass times velocity of the center
        Vector(entries=(0.0, 2.0, 0.0))
        """
        if not isinstance(X, Velocity | Screw):
            raise mismatch("combine", self, X)
        half = X @ self
        return Inertia(Symmetric.of(half.A + half.A.T), half.b, 0.0)


def _outer_sum(a: Vector, t: Vector, h: Vector) -> Symmetric:
    """Return the symmetric matrix a t' + t h', where h = a + m t."""
    return Symmetric.of(tensor_product(a, t) + tensor_product(t, h))


@dataclass(frozen=True, slots=True, repr=False)
class _Dual(Framed, Additive):
    """Base class of skew-symmetric matrices [c~ f; -f' 0]: momenta and actions."""

    c: Vector
    f: Vector

    @classmethod
    def zero(cls) -> Self:
        """Return the zero matrix of this type.

        Returns
        -------
        X : same type
            Zero.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> hm.six_numbers(hm.Action.zero())
        array([0., 0., 0., 0., 0., 0.])
        """
        return cls(Vector.zero(), Vector.zero())

    @classmethod
    def of(cls, force: Force) -> Self:
        """Create the matrix from a spatial force vector.

        Parameters
        ----------
        force : Force
            Moment about the origin (N m) and force (N); for a momentum, angular and linear
            momentum.

        Returns
        -------
        X : same type
            Matrix [c~ f; -f' 0].

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> J = hm.inertia_from_mass(2.0, (0.5, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
        >>> weight = hm.action(hm.gravity(), J)
        >>> hm.Action.of(weight.force()) == weight
        True
        """
        return cls(force.moment, force.force)

    def force(self) -> Force:
        """Convert the matrix to a spatial force vector.

        Returns
        -------
        force : Force
            Moment about the origin (N m) and force (N); for a momentum, angular and linear
            momentum.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> J = hm.inertia_from_mass(2.0, (0.5, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
        >>> hm.action(hm.gravity(), J).force().force
        Vector(entries=(0.0, 0.0, -19.62))
        """
        return Force(self.c, self.f)

    def matrix(self) -> Matrix:
        return bordered(Matrix.skew(self.c), self.f, (*(-self.f), 0.0))

    def __iter__(self) -> Iterator[Number]:
        return iter((*self.c, *self.f))

    def to_first(self, R: Rotation, t: Vector) -> Self:
        f = R @ self.f
        return type(self)(R @ self.c + t.cross(f), f)

    def to_second(self, R: Rotation, t: Vector) -> Self:
        return type(self)(R.T @ (self.c - t.cross(self.f)), R.T @ self.f)

    def pseudo(self, X: Velocity | Screw) -> Number:
        """Return the pseudo scalar product with a velocity or a screw.

        Parameters
        ----------
        X : Velocity or Screw
            Velocity of the body, or screw axis of a joint, expressed in the same frame.

        Returns
        -------
        product : float
            Product c . w + f . v, which is the power (W) for a velocity, and the joint torque (N m)
            or joint force (N) for a screw.

        Raises
        ------
        ArgumentError
            If X is not a velocity or a screw.

        Examples
        --------
        >>> from chasles import homogeneous as hm
        >>> J = hm.inertia_from_mass(2.0, (0.5, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
        >>> hm.action(hm.gravity(), J).pseudo(hm.joint_screw("prismatic"))  # N, along z
        -19.62
        """
        if not isinstance(X, Velocity | Screw):
            raise mismatch("take the pseudo scalar product of", self, X)
        return self.c.dot(X.w) + self.f.dot(X.v)


@dataclass(frozen=True, slots=True, repr=False)
class Momentum(_Dual):
    """Momentum Gamma = skew(W J) = [c~ f; -f' 0].

    c is the angular momentum about the origin, and f is the linear momentum.
    """


@dataclass(frozen=True, slots=True, repr=False)
class Action(_Dual):
    """Action Phi = skew(H J) = [c~ f; -f' 0], with couple c about the origin and force f."""


def momentum(W: Velocity, J: Inertia) -> Momentum:
    """Return the momentum of a body, Gamma = skew(W J) (Legnani et al. 1996, Eq I.20 and I.26).

    Parameters
    ----------
    W : Velocity
        Velocity of the body.
    J : Inertia
        Inertia of the body, in the same frame.

    Returns
    -------
    Gamma : Momentum
        Angular momentum about the origin (kg m2/s) and linear momentum (kg m/s).

    Raises
    ------
    ArgumentError
        If an argument does not have the documented type.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> J = hm.inertia_from_mass(2.0, (0.0, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
    >>> hm.six_numbers(hm.momentum(hm.joint_velocity("revolute", 2.0), J))
    array([0.  , 0.  , 0.06, 0.  , 0.  , 0.  ])
    """
    if type(W) is not Velocity or type(J) is not Inertia:
        raise mismatch("take the momentum of", W, J)
    return Momentum(*(W @ J).skew())


def action(H: Acceleration, J: Inertia) -> Action:
    """Return the action Phi = skew(H J) that accelerates a body.

    See Legnani et al. 1996, Eq I.18 and I.25.

    Parameters
    ----------
    H : Acceleration
        Acceleration of the body.
    J : Inertia
        Inertia of the body, in the same inertial frame.

    Returns
    -------
    Phi : Action
        Couple about the origin (N m) and force (N). For H = Hg, Phi is the weight of the body.

    Raises
    ------
    ArgumentError
        If an argument does not have the documented type.

    Notes
    -----
    For the 3 x 3 blocks G of H and K of J, computing skew(G K) requires 15 multiplications
    (Balafoutis and Patel 1991, section 5.3).

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> J = hm.inertia_from_mass(2.0, (0.1, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
    >>> hm.six_numbers(hm.action(hm.joint_acceleration("revolute", 2.0, 0.5), J)).round(6)
    array([ 0.   ,  0.   ,  0.025, -0.8  ,  0.1  ,  0.   ])
    """
    if type(H) is not Acceleration or type(J) is not Inertia:
        raise mismatch("take the action of", H, J)
    couple = AngularAcceleration(H.w, H.wd).moment(J.K)
    return Action(couple + J.h.cross(H.a), H.G @ J.h + H.a * J.m)


def velocity_from_momentum(Gamma: Momentum, J: Inertia) -> Velocity:
    """Solve Gamma = skew(W J) for W, using the inertia about the center of mass.

    See Legnani et al. 1996, Eq I.26.
    """
    if type(Gamma) is not Momentum or type(J) is not Inertia:
        raise mismatch("take the velocity of", Gamma, J)
    m, g, I = J.rigid().about_center()
    w = solve_symmetric(I.matrix(), Gamma.c - g.cross(Gamma.f))
    return Velocity(w, Gamma.f * (1.0 / m) - w.cross(g))


def acceleration_from_action(Phi: Action, J: Inertia, W: Velocity) -> Acceleration:
    """Solve Phi = skew(H J) for the acceleration H of a body with velocity W.

    See Legnani et al. 1996, Eq I.25.
    """
    if type(Phi) is not Action or type(J) is not Inertia or type(W) is not Velocity:
        raise mismatch("take the acceleration of", Phi, J)
    m, g, I = J.rigid().about_center()
    wd = solve_symmetric(I.matrix(), Phi.c - g.cross(Phi.f) - W.w.cross(I @ W.w))
    turning = Acceleration(W.w, wd, Vector.zero())
    return Acceleration(W.w, wd, Phi.f * (1.0 / m) - turning.G @ g)


def kinetic_energy(W: Velocity, J: Inertia) -> Number:
    """Return the kinetic energy 1/2 trace(W J W') of a body.

    Parameters
    ----------
    W : Velocity
        Velocity of the body.
    J : Inertia
        Inertia of the body, in the same inertial frame.

    Returns
    -------
    energy : float
        Kinetic energy (J).

    Raises
    ------
    ArgumentError
        If an argument does not have the documented type.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> J = hm.inertia_from_mass(2.0, (0.1, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
    >>> round(float(hm.kinetic_energy(hm.joint_velocity("revolute", 2.0), J)), 9)
    0.1
    """
    if type(W) is not Velocity or type(J) is not Inertia:
        raise mismatch("take the kinetic energy of", W, J)
    return (W @ J).trace(W) * 0.5


def potential_energy(Hg: Acceleration, J: Inertia) -> Number:
    """Return the potential energy -trace(Hg J) of a body, with Hg and J in the inertial frame.

    Parameters
    ----------
    Hg : Acceleration
        Gravitational acceleration, from `gravity`.
    J : Inertia
        Inertia of the body.

    Returns
    -------
    energy : float
        Potential energy (J), which is zero if the center of mass is at height 0.

    Raises
    ------
    ArgumentError
        If an argument does not have the documented type.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> J = hm.inertia_from_mass(2.0, (0.0, 0.0, 1.0), (0.02, 0.03, 0.03, 0, 0, 0))
    >>> round(float(hm.potential_energy(hm.gravity(), J)), 9)
    19.62
    """
    if type(Hg) is not Acceleration or type(J) is not Inertia:
        raise mismatch("take the potential energy of", Hg, J)
    A = (Hg @ J).A
    return -(A[0, 0] + A[1, 1] + A[2, 2])
