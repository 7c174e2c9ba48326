"""How bodies move: velocities W, screws L and accelerations H."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self, overload

from chasles.expr import Number
from chasles.mathematics.homogeneous.dense import Block, Factor, Framed, mismatch, product
from chasles.mathematics.linear import Additive, Matrix, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Motion
from chasles.mathematics.tensor import AngularAcceleration


@dataclass(frozen=True, slots=True, repr=False)
class _Twist(Framed, Factor):
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
    def __matmul__(self, other: Factor) -> Block: ...
    def __matmul__(self, other: Vector | Factor) -> Vector | Block:
        """X P (the velocity of a point), X M (the derivative of M), X W, X L, X J, X Y."""
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
        """X Y - Y X: the rate of Y where it is carried along by X (dL/dt = W L - L W)."""
        if not isinstance(other, _Twist):
            raise mismatch("take the bracket of", self, other)
        return Velocity(self.w.cross(other.w), self.w.cross(other.v) - other.w.cross(self.v))


@dataclass(frozen=True, slots=True, repr=False)
class Velocity(_Twist, Additive):
    """W = [w~ v; 0 0]: angular velocity w, velocity v of the pole; `W @ P` is a point's velocity.

    The pole is the point of the body that passes through the origin of the frame used.
    Velocities add: W_ik = W_ij + W_jk (Eq I.10).
    """

    @staticmethod
    def zero() -> "Velocity":
        return Velocity(Vector.zero(), Vector.zero())


@dataclass(frozen=True, slots=True, repr=False)
class Screw(_Twist):
    """L = [u~ b; 0 0]: the axis of a joint; u = w is a unit vector, b = v = -u~ p + pitch u.

    p is a point of the axis. A translation has u = 0 and b along it.
    """

    def velocity(self, qd: Number) -> Velocity:
        """W = L qd, also written `L * qd`."""
        return Velocity(self.w * qd, self.v * qd)

    __mul__ = __rmul__ = velocity

    def acceleration(self, qd: Number, qdd: Number) -> "Acceleration":
        """H = L^2 qd^2 + L qdd (Eq II.1)."""
        return Acceleration.of(self.velocity(qd), self.velocity(qdd))


@dataclass(frozen=True, slots=True, repr=False)
class Acceleration(Framed):
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
        return AngularAcceleration(self.w, self.wd).tensor

    def block(self) -> Block:
        return Block(self.G, self.a)

    def matrix(self) -> Matrix:
        return self.block().matrix()

    def to_first(self, R: Rotation, t: Vector) -> "Acceleration":
        turned = Acceleration(R @ self.w, R @ self.wd, R @ self.a)
        return replace(turned, a=turned.a - turned.G @ t)

    def to_second(self, R: Rotation, t: Vector) -> "Acceleration":
        return Acceleration(R.T @ self.w, R.T @ self.wd, R.T @ (self @ t))

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
    def __matmul__(self, other: Factor) -> Block: ...
    def __matmul__(self, other: Vector | Factor) -> Vector | Block:
        """H P (a point's acceleration), H M (= d2M/dt2), H J."""
        if type(other) is Vector:
            return self.G @ other + self.a
        if isinstance(other, _Twist):
            raise mismatch("multiply", self, other)
        return product(self.block(), self, other)
