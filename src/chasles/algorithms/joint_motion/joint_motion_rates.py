"""Joint-motion properties D and velocities Omega, with their derivatives of any order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chasles.algorithms.spatial.viewpoint import Viewpoint
from chasles.mathematics.homogeneous import Velocity
from chasles.mathematics.leibniz import leibniz
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motions, Transform
from chasles.model.model import WORLD, Model


@dataclass(frozen=True, slots=True)
class Property:
    """[D] of a joint, or a derivative of it: a matrix for each freedom."""

    columns: tuple[Velocity, ...]

    @staticmethod
    def of(S: Motions, X: Transform, view: Viewpoint) -> "Property":
        """From a subspace in the coordinates of a body, to which X leads from the base."""
        seen = view.from_body(X, S).columns
        return Property(tuple(Velocity.of(view.turned(column)) for column in seen))

    def __add__(self, other: "Property") -> "Property":
        return Property(tuple(a + b for a, b in zip(self.columns, other.columns, strict=True)))


def joint_motion_rates(
    model: Model,
    q: Mapping[int, Vector],
    rates: Sequence[Mapping[int, Vector]],
    body: int,
    X0: Mapping[int, Transform],
    view: Viewpoint,
) -> tuple[dict[int, list[Property]], list[Velocity]]:
    """D, Ddot, ... of each joint that moves a body, and Omega, Omegadot, ... of the body.

    A property moves with its body, Ddot = Omega D - D Omega (Mitra, Eq 3); by Leibniz' rule n rates
    give n derivatives of D and n - 1 of Omega. D[j][k] is the k-th derivative of a matrix that is
    itself the j-th derivative of D as seen in the body: zero for j > 0 unless S changes there.

    The document's view is the base frame. Another one may move with the body: derivatives are then
    those of the entries as written there, and all velocities are relative to it.
    """
    chain = model.support(body)[::-1]
    qd = {i: [rate[i] for rate in rates] for i in chain}
    Omega: dict[int, list[Velocity]] = {i: [] for i in (WORLD, *chain)}
    S = {i: model.bodies[i].joint.subspace_rates(q[i], qd[i]) for i in chain}
    D = {i: [[Property.of(rate, X0[i], view)] for rate in S[i]] for i in chain}
    for k in range(len(rates)):
        added = {i: leibniz(_velocity, qd[i], D[i][0], k) for i in chain}
        Omega[WORLD].append(-_of_view(view, sum(added.values(), Velocity.zero())))
        for i in chain:
            Omega[i].append(Omega[model.bodies[i].parent][k] + added[i])
            for j in range(len(rates) - k):
                D[i][j].append(D[i][j + 1][k] + leibniz(_bracket, Omega[i], D[i][j], k))
    return {i: D[i][0] for i in chain}, Omega[body]


def _velocity(qd: Vector, D: Property) -> Velocity:
    """D qd: what the joint adds to the velocity."""
    total = Velocity.zero()
    for rate, column in zip(qd, D.columns, strict=True):
        total = total + column * rate
    return total


def _bracket(Omega: Velocity, D: Property) -> Property:
    """Omega D - D Omega."""
    return Property(tuple(Omega.bracket(column) for column in D.columns))


def _of_view(view: Viewpoint, W: Velocity) -> Velocity:
    """The part of a body's velocity that the view follows."""
    return Velocity(W.w * float(view.turns), W.v * float(view.moves))
