"""Legnani's seven matrices: each holds its independent numbers and behaves as a 4x4 matrix.

Subscripts follow the paper (Legnani, Casolo, Righettini, Zappa 1996): the motion of body j relative
to body i, written in frame k. `@` is the matrix product, where the product means something; wrong
combinations are type errors. Everything works on floats and on symbols.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self, TypeVar, overload

from chasles.expr import Number
from chasles.mathematics.homogeneous.dense import Dense
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Force, Motion, RigidInertia, Transform
from chasles.mathematics.tensor import (
    AngularAcceleration,
    euler_from_inertia,
    inertia_from_euler,
)


def _mismatch(operation: str, a: object, b: object) -> TypeError:
    return TypeError(f"cannot {operation} {type(a).__name__} and {type(b).__name__}")


def _bordered(A: Matrix, b: Vector, last: tuple[Number, Number, Number, Number]) -> Matrix:
    rows = ((*row, x) for row, x in zip(A.rows, b, strict=True))
    return Matrix((*rows, last))


_ZERO_ROW = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, repr=False)
class Block(Dense):
    """Any 4x4 matrix [A b; 0 0] whose last row is zero: what products of the matrices below are."""

    A: Matrix
    b: Vector

    def matrix(self) -> Matrix:
        return _bordered(self.A, self.b, _ZERO_ROW)

    def __add__(self, other: "Block") -> "Block":
        if type(other) is not Block:
            raise _mismatch("add", self, other)
        return Block(self.A + other.A, self.b + other.b)

    def __sub__(self, other: "Block") -> "Block":
        if type(other) is not Block:
            raise _mismatch("subtract", self, other)
        return Block(self.A - other.A, self.b - other.b)

    def __mul__(self, factor: Number) -> "Block":
        return Block(self.A * factor, self.b * factor)

    __rmul__ = __mul__

    def trace(self, other: "Velocity | Screw | Acceleration") -> Number:
        """trace(X Y') with a velocity, acceleration or screw Y: the sum of products of entries."""
        block = other.block()
        pairs = zip(self.A.rows, block.A.rows, strict=True)
        total = self.b.dot(block.b)
        for row, column in pairs:
            total = total + Vector(row).dot(Vector(column))
        return total

    def skew(self) -> tuple[Vector, Vector]:
        """X - X' as (c, f): the numbers of [c~ f; -f' 0]."""
        A = self.A
        return Vector.of(A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]), self.b


# Where bodies are ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Position(Dense):
    """M = [R t; 0 1]: a second frame in a first one; `P0 = M01 @ P1` takes points to the first.

    `to_first` and `to_second` change the frame in which any of the matrices is written: M X M^-1
    for Q, W, H and L, M X M' for J, Gamma and Phi. No inverse is ever formed.
    """

    R: Rotation
    t: Vector

    @staticmethod
    def identity() -> "Position":
        return Position(Rotation(), Vector.zero())

    @staticmethod
    def of(X: Transform) -> "Position":
        """From the spatial transform, which takes coordinates of the first frame to the second."""
        return Position(X.E.T, X.r)

    @staticmethod
    def from_matrix(M: Matrix) -> "Position":
        """From a 4x4 matrix."""
        R = Matrix(tuple(row[:3] for row in M.rows[:3]))
        return Position(Rotation.of(R), Vector(tuple(row[3] for row in M.rows[:3])))

    def transform(self) -> Transform:
        """The spatial transform from the first frame to the second."""
        return Transform(self.R.T, self.t)

    def matrix(self) -> Matrix:
        return _bordered(self.R.matrix(), self.t, (0.0, 0.0, 0.0, 1.0))

    def inverse(self) -> "Position":
        """[R' -R't; 0 1]: the first frame in the second."""
        return Position(self.R.T, -(self.R.T @ self.t))

    @overload
    def __matmul__(self, other: "Position") -> "Position": ...
    @overload
    def __matmul__(self, other: Vector) -> Vector: ...
    def __matmul__(self, other: "Position | Vector") -> "Position | Vector":
        if type(other) is Vector:
            return self.R @ other + self.t
        if type(other) is Position:
            return Position(self.R @ other.R, self.R @ other.t + self.t)
        raise _mismatch("multiply", self, other)

    def to_first(self, X: "Framed") -> "Framed":
        """A matrix that is written in the second frame, written in the first."""
        R, t = self.R, self.t
        match X:
            case Velocity() | Screw():
                w = R @ X.w
                return type(X)(w, R @ X.v + t.cross(w))
            case Acceleration():
                turned = Acceleration(R @ X.w, R @ X.wd, R @ X.a)
                return replace(turned, a=turned.a - turned.G @ t)
            case Momentum() | Action():
                f = R @ X.f
                return type(X)(R @ X.c + t.cross(f), f)
            case Inertia():
                carried = R @ X.h
                h = carried + t * X.m
                return Inertia(R @ X.K + _outer_sum(carried, t, h), h, X.m)
            case Rototranslation():
                turned = self.R @ X.R @ self.R.T
                return Rototranslation(turned, R @ X.t + t - turned @ t)
        raise _mismatch("change the frame by", self, X)

    def to_second(self, X: "Framed") -> "Framed":
        """A matrix that is written in the first frame, written in the second."""
        R, t = self.R.T, self.t
        match X:
            case Velocity() | Screw():
                return type(X)(R @ X.w, R @ (X.v + X.w.cross(t)))
            case Acceleration():
                return Acceleration(R @ X.w, R @ X.wd, R @ (X @ t))
            case Momentum() | Action():
                return type(X)(R @ (X.c - t.cross(X.f)), R @ X.f)
            case Inertia():
                h = X.h - t * X.m
                return Inertia(R @ (X.K - _outer_sum(h, t, X.h)), R @ h, X.m)
            case Rototranslation():
                return self.inverse().to_first(X)
        raise _mismatch("change the frame by", self, X)


def _outer_sum(a: Vector, t: Vector, h: Vector) -> Symmetric:
    """a t' + t h' with h = a + m t, which is symmetric."""
    (x, y, z), (p, q, s), (u, v, w) = a, t, h
    return Symmetric(
        x * p + p * u, y * q + q * v, z * s + s * w, x * q + p * v, x * s + p * w, y * s + q * w
    )


@dataclass(frozen=True, slots=True, repr=False)
class Rototranslation(Dense):
    """Q = [R t; 0 1]: a displacement, all in one frame: Q = M02 M01^-1 takes frame 1 to frame 2."""

    R: Rotation
    t: Vector

    @staticmethod
    def between(M01: Position, M02: Position) -> "Rototranslation":
        """The displacement, written in frame 0, that takes frame 1 to frame 2."""
        R = M02.R @ M01.R.T
        return Rototranslation(R, M02.t - R @ M01.t)

    def matrix(self) -> Matrix:
        return _bordered(self.R.matrix(), self.t, (0.0, 0.0, 0.0, 1.0))

    @overload
    def __matmul__(self, other: "Rototranslation") -> "Rototranslation": ...
    @overload
    def __matmul__(self, other: Position) -> Position: ...
    @overload
    def __matmul__(self, other: Vector) -> Vector: ...
    def __matmul__(
        self, other: "Rototranslation | Position | Vector"
    ) -> "Rototranslation | Position | Vector":
        """One displacement after another, a displaced frame, or a displaced point."""
        if type(other) is Vector:
            return self.R @ other + self.t
        if type(other) is Rototranslation or type(other) is Position:
            return type(other)(self.R @ other.R, self.R @ other.t + self.t)
        raise _mismatch("multiply", self, other)


# How they move ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class _Twist(Dense):
    """The numbers of a matrix [w~ v; 0 0]."""

    w: Vector
    v: Vector

    @classmethod
    def of(cls, motion: Motion) -> Self:
        """From a spatial vector."""
        return cls(motion.angular, motion.linear)

    def motion(self) -> Motion:
        """As a spatial vector."""
        return Motion(self.w, self.v)

    def block(self) -> Block:
        return Block(Matrix.skew(self.w), self.v)

    def matrix(self) -> Matrix:
        return self.block().matrix()

    def __iter__(self) -> Iterator[Number]:
        return iter((*self.w, *self.v))

    @overload
    def __matmul__(self, other: Vector) -> Vector: ...
    @overload
    def __matmul__(self, other: "Position | Velocity | Screw | Inertia") -> Block: ...
    def __matmul__(self, other: "Vector | Position | Velocity | Screw | Inertia") -> Vector | Block:
        """X P (the velocity of a point), X M (the derivative of M), X W, X L, X J."""
        if type(other) is Vector:
            return self.w.cross(other) + self.v
        return _product(self.block(), self, other)

    def bracket(self, other: "Velocity | Screw") -> "Velocity":
        """X Y - Y X: the rate of Y where it is carried along by X (dL/dt = W L - L W)."""
        if not isinstance(other, _Twist):
            raise _mismatch("take the bracket of", self, other)
        return Velocity(self.w.cross(other.w), self.w.cross(other.v) - other.w.cross(self.v))


@dataclass(frozen=True, slots=True, repr=False)
class Velocity(_Twist):
    """W = [w~ v; 0 0]: angular velocity w, velocity v of the pole; `W @ P` is a point's velocity.

    The pole is the point of the body that passes through the origin of the frame used.
    Velocities add: W_ik = W_ij + W_jk (Eq I.10).
    """

    @staticmethod
    def zero() -> "Velocity":
        return Velocity(Vector.zero(), Vector.zero())

    def __add__(self, other: "Velocity") -> "Velocity":
        if type(other) is not Velocity:
            raise _mismatch("add", self, other)
        return Velocity(self.w + other.w, self.v + other.v)

    def __sub__(self, other: "Velocity") -> "Velocity":
        if type(other) is not Velocity:
            raise _mismatch("subtract", self, other)
        return Velocity(self.w - other.w, self.v - other.v)

    def __neg__(self) -> "Velocity":
        return Velocity(-self.w, -self.v)

    def __mul__(self, factor: Number) -> "Velocity":
        return Velocity(self.w * factor, self.v * factor)

    __rmul__ = __mul__


@dataclass(frozen=True, slots=True, repr=False)
class Screw(_Twist):
    """L = [u~ b; 0 0]: the axis of a joint; u = w is a unit vector, b = v = -u~ p + pitch u.

    p is a point of the axis. A translation has u = 0 and b along it.
    """

    def velocity(self, qd: Number) -> Velocity:
        """W = L qd."""
        return Velocity(self.w * qd, self.v * qd)

    def acceleration(self, qd: Number, qdd: Number) -> "Acceleration":
        """H = L^2 qd^2 + L qdd (Eq II.1)."""
        return Acceleration.of(self.velocity(qd), self.velocity(qdd))


@dataclass(frozen=True, slots=True, repr=False)
class Acceleration(Dense):
    """H = [G a; 0 0] with G = wd~ + w~ w~ and a the pole's acceleration; `H @ P` a point's.

    Accelerations compose by Coriolis' theorem, `after`: H_ik = H_ij + H_jk + 2 W_ij W_jk (Eq I.13).
    """

    w: Vector
    wd: Vector
    a: Vector

    @staticmethod
    def zero() -> "Acceleration":
        return Acceleration(Vector.zero(), Vector.zero(), Vector.zero())

    @staticmethod
    def of(W: Velocity, rate: Velocity) -> "Acceleration":
        """H = dW/dt + W W, from a velocity and its rate."""
        return Acceleration(W.w, rate.w, rate.v + W.w.cross(W.v))

    @staticmethod
    def uniform(a: Vector) -> "Acceleration":
        """All points have the same acceleration: gravity's Hg."""
        return Acceleration(Vector.zero(), Vector.zero(), a)

    def rate(self, W: Velocity) -> Velocity:
        """dW/dt = H - W W: the spatial acceleration."""
        return Velocity(self.wd, self.a - self.w.cross(W.v))

    @property
    def G(self) -> Matrix:
        """wd~ + w~ w~."""
        return AngularAcceleration(self.w, self.wd).tensor()

    def block(self) -> Block:
        return Block(self.G, self.a)

    def matrix(self) -> Matrix:
        return self.block().matrix()

    def after(self, W: Velocity, relative: "Acceleration", moving: Velocity) -> "Acceleration":
        """Coriolis: H_ij.after(W_ij, H_jk, W_jk) is H_ik."""
        return Acceleration(
            self.w + relative.w,
            self.wd + relative.wd + W.w.cross(moving.w),
            self.a + relative.a + W.w.cross(moving.v) * 2.0,
        )

    @overload
    def __matmul__(self, other: Vector) -> Vector: ...
    @overload
    def __matmul__(self, other: "Position | Inertia") -> Block: ...
    def __matmul__(self, other: "Vector | Position | Inertia") -> Vector | Block:
        """H P (a point's acceleration), H M (= d2M/dt2), H J."""
        if type(other) is Vector:
            return self.G @ other + self.a
        if isinstance(other, _Twist):
            raise _mismatch("multiply", self, other)
        return _product(self.block(), self, other)


# What moves ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Inertia(Dense):
    """J = [K h; h' m]: K the integral of x x' dm, h = m times the centre of mass, m the mass."""

    K: Symmetric
    h: Vector
    m: Number

    @staticmethod
    def zero() -> "Inertia":
        return Inertia(Symmetric.zero(), Vector.zero(), 0.0)

    @staticmethod
    def of(rigid: RigidInertia) -> "Inertia":
        """K = trace(I)/2 1 - I from the usual moments about the origin."""
        return Inertia(euler_from_inertia(rigid.I), rigid.h, rigid.m)

    def rigid(self) -> RigidInertia:
        """The usual moments, as a spatial inertia."""
        return RigidInertia(self.m, self.h, inertia_from_euler(self.K))

    def matrix(self) -> Matrix:
        return _bordered(self.K.matrix(), self.h, (*self.h, self.m))

    def __add__(self, other: "Inertia") -> "Inertia":
        if type(other) is not Inertia:
            raise _mismatch("add", self, other)
        return Inertia(self.K + other.K, self.h + other.h, self.m + other.m)

    def carried(self, X: Velocity | Screw) -> "Inertia":
        """X J + J X': the rate of J when the body moves with X (dJ/dt, or dJ/dq with a screw)."""
        if not isinstance(X, Velocity | Screw):
            raise _mismatch("carry", self, X)
        half = X @ self
        return Inertia(Symmetric.of(half.A + half.A.T), half.b, 0.0)


@dataclass(frozen=True, slots=True, repr=False)
class _Dual(Dense):
    """The numbers of a skew matrix [c~ f; -f' 0]."""

    c: Vector
    f: Vector

    @classmethod
    def zero(cls) -> Self:
        return cls(Vector.zero(), Vector.zero())

    @classmethod
    def of(cls, force: Force) -> Self:
        """From a spatial vector."""
        return cls(force.moment, force.force)

    def force(self) -> Force:
        """As a spatial vector."""
        return Force(self.c, self.f)

    def matrix(self) -> Matrix:
        return _bordered(Matrix.skew(self.c), self.f, (*(-self.f), 0.0))

    def __iter__(self) -> Iterator[Number]:
        return iter((*self.c, *self.f))

    def __neg__(self) -> Self:
        return type(self)(-self.c, -self.f)

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            raise _mismatch("add", self, other)
        return type(self)(self.c + other.c, self.f + other.f)

    def __sub__(self, other: Self) -> Self:
        if type(other) is not type(self):
            raise _mismatch("subtract", self, other)
        return type(self)(self.c - other.c, self.f - other.f)

    def __mul__(self, factor: Number) -> Self:
        return type(self)(self.c * factor, self.f * factor)

    __rmul__ = __mul__

    def pseudo(self, X: Velocity | Screw) -> Number:
        """The pseudo scalar product: power on a velocity, generalised force on a screw."""
        if not isinstance(X, Velocity | Screw):
            raise _mismatch("take the pseudo scalar product of", self, X)
        return self.c.dot(X.w) + self.f.dot(X.v)


@dataclass(frozen=True, slots=True, repr=False)
class Momentum(_Dual):
    """Gamma = skew(W J) = [c~ f; -f' 0]: angular momentum c about the origin, linear momentum f."""


@dataclass(frozen=True, slots=True, repr=False)
class Action(_Dual):
    """Phi = skew(H J) = [c~ f; -f' 0]: couple c about the origin, and force f."""


Framed = TypeVar(
    "Framed", Rototranslation, Velocity, Screw, Acceleration, Inertia, Momentum, Action
)
"""What changes its frame by `Position.to_first` and `to_second`."""


def momentum(W: Velocity, J: Inertia) -> Momentum:
    """Gamma = skew(W J) (Eq I.16)."""
    if type(W) is not Velocity or type(J) is not Inertia:
        raise _mismatch("take the momentum of", W, J)
    return Momentum(*(W @ J).skew())


def action(H: Acceleration, J: Inertia) -> Action:
    """Phi = skew(H J) (Eq I.17): what makes a body accelerate; with H = Hg, its weight.

    skew(G K) takes 15 multiplications (Balafoutis and Patel 1991, section 5.3).
    """
    if type(H) is not Acceleration or type(J) is not Inertia:
        raise _mismatch("take the action of", H, J)
    couple = AngularAcceleration(H.w, H.wd).moment(J.K)
    return Action(couple + J.h.cross(H.a), H.G @ J.h + H.a * J.m)


def kinetic_energy(W: Velocity, J: Inertia) -> Number:
    """1/2 trace(W J W')."""
    if type(W) is not Velocity or type(J) is not Inertia:
        raise _mismatch("take the kinetic energy of", W, J)
    return (W @ J).trace(W) * 0.5


def potential_energy(Hg: Acceleration, J: Inertia) -> Number:
    """-trace(Hg J), both in the inertial frame: zero with the centre of mass at the origin."""
    if type(Hg) is not Acceleration or type(J) is not Inertia:
        raise _mismatch("take the potential energy of", Hg, J)
    A = (Hg @ J).A
    return -(A[0, 0] + A[1, 1] + A[2, 2])


def _product(block: Block, X: object, other: object) -> Block:
    A, b = block.A, block.b
    match other:
        case Position():
            return Block(A @ other.R.matrix(), A @ other.t + b)
        case Velocity() | Screw():
            return Block(A @ Matrix.skew(other.w), A @ other.v)
        case Inertia():
            outer = Matrix(tuple(tuple(x * h for h in other.h) for x in b))
            return Block(A @ other.K.matrix() + outer, A @ other.h + b * other.m)
    raise _mismatch("multiply", X, other)
