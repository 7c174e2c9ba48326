"""Joint-motion properties D and velocities Omega in the base frame, with their derivatives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chasles.mathematics.homogeneous import Position, Velocity
from chasles.mathematics.leibniz import leibniz
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motions
from chasles.model.model import WORLD, Model


@dataclass(frozen=True, slots=True)
class Property:
    """[D] of a joint, or a derivative of it, in the base frame: a matrix for each freedom."""

    columns: tuple[Velocity, ...]

    @staticmethod
    def of(M: Position, S: Motions) -> "Property":
        """From a subspace in the frame of the body, whose position is M."""
        return Property(tuple(M.to_first(Velocity.of(column)) for column in S.columns))

    def __add__(self, other: "Property") -> "Property":
        return Property(tuple(a + b for a, b in zip(self.columns, other.columns, strict=True)))


def joint_motion_rates(
    model: Model, q: Mapping[int, Vector], rates: Sequence[Mapping[int, Vector]], body: int
) -> tuple[Position, dict[int, list[Property]], list[Velocity]]:
    """M of a body, D, Ddot, ... of each joint that moves it, and its Omega, Omegadot, ...

    A property moves with its body, Ddot = Omega D - D Omega (Mitra, Eq 3); by Leibniz' rule n rates
    give n derivatives of D and n - 1 of Omega. D[j][k] is the k-th derivative of a matrix that is
    itself the j-th derivative of D as seen in the body: zero for j > 0 unless S changes there.
    """
    M, Omega, D = {WORLD: Position.identity()}, {WORLD: [Velocity.zero()] * len(rates)}, {}
    for i in reversed(model.support(body)):
        p, joint = model.bodies[i].parent, model.bodies[i].joint
        qd = [rate[i] for rate in rates]
        M[i], Omega[i] = M[p] @ Position.of(joint.transform(q[i])), []
        D[i] = [[Property.of(M[i], S)] for S in joint.subspace_rates(q[i], qd)]
        for k in range(len(rates)):
            Omega[i].append(Omega[p][k] + leibniz(_velocity, qd, D[i][0], k))
            for j in range(len(rates) - k):
                D[i][j].append(D[i][j + 1][k] + leibniz(_bracket, Omega[i], D[i][j], k))
    return M[body], {i: seen[0] for i, seen in D.items()}, Omega[body]


def _velocity(qd: Vector, D: Property) -> Velocity:
    """D qd: what the joint adds to the velocity."""
    total = Velocity.zero()
    for rate, column in zip(qd, D.columns, strict=True):
        total = total + column * rate
    return total


def _bracket(Omega: Velocity, D: Property) -> Property:
    """Omega D - D Omega."""
    return Property(tuple(Omega.bracket(column) for column in D.columns))
