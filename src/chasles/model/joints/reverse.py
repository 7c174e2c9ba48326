"""A joint given from the body to its parent."""

from collections.abc import Sequence
from dataclasses import dataclass

from chasles.expr import Number
from chasles.mathematics.leibniz import leibniz
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import Forces, Motion, Motions, RigidInertia, Transform
from chasles.model.joints.contract import Joint


@dataclass(frozen=True, kw_only=True)
class Reversed(Joint):
    """Another joint with its two frames exchanged (Featherstone 2008, table 4.2).

    X is the inverse; S, c_J and T are the negative ones, as the other frame sees them. Coordinates
    and the forces on them stay what they are, as does the power.
    """

    inner: Joint

    @property
    def kind(self) -> str:  # type: ignore[override]
        return f"reversed {self.inner.kind}"

    @property
    def nq(self) -> int:  # type: ignore[override]
        return self.inner.nq

    @property
    def nv(self) -> int:  # type: ignore[override]
        return self.inner.nv

    @property
    def units(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.inner.units

    @property
    def additive(self) -> bool:  # type: ignore[override]
        return self.inner.additive

    @property
    def holonomic(self) -> bool:  # type: ignore[override]
        return self.inner.holonomic

    @property
    def path(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.inner.path

    def motion(self, q: Vector) -> Transform:
        return inverted(self.inner.motion(q))

    def subspace(self, q: Vector) -> Motions:
        return self.subspace_rates(q, ())[0]

    def subspace_rates(self, q: Vector, rates: Sequence[Vector]) -> list[Motions]:
        """What the one frame sees as A with rate Ad, the other sees with rate Ad + vJ x A."""
        back = self.inner.motion(q).inverse()
        A = self.inner.subspace_rates(q, rates)
        vJ = [leibniz(_velocity, rates, A, k) for k in range(len(rates))]
        found = []
        while A:
            found.append(back @ _negative(A[0]))
            A = [A[k + 1] + leibniz(_cross, vJ, A, k) for k in range(len(A) - 1)]
        return found

    def bias_slopes(self, q: Vector, qd: Vector) -> Motions:
        back, c = self.inner.motion(q).inverse(), self.inner.bias(q, qd)
        S, slopes = self.inner.subspace(q).columns, self.inner.bias_slopes(q, qd).columns
        turned = Motions(tuple(slope + s.cross(c) for s, slope in zip(S, slopes, strict=True)))
        return back @ _negative(turned)

    def constraint(self, q: Vector) -> Forces:
        return self.inner.motion(q).T @ (self.inner.constraint(q) * -1.0)

    def fit(self, X: Transform) -> Vector:
        return self.inner.fit(inverted(X))

    def neutral(self) -> Vector:
        return self.inner.neutral()

    def integrate(self, q: Vector, v: Vector) -> Vector:
        return self.inner.integrate(q, v)

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        return self.inner.difference(q0, q1)

    def drift(self, qd: Vector) -> Matrix:
        return self.inner.drift(qd)

    def transferable(self, inertia: RigidInertia, k: Number) -> RigidInertia:
        """What does not change with q and is not felt by one frame is not felt by the other."""
        return self.inner.transferable(inertia, k)


def inverted(X: Transform) -> Transform:
    """The transform back, as a transform."""
    return Transform(X.E.T, -(X.E @ X.r))


def _negative(S: Motions) -> Motions:
    return Motions(tuple(-column for column in S.columns))


def _velocity(qd: Vector, S: Motions) -> Motion:
    return S @ qd


def _cross(v: Motion, A: Motions) -> Motions:
    return v.cross(A)
