"""Joint-motion property matrices D and their time derivatives of any order (Mitra)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import matmul

from chasles.algorithms.spatial.kinematics import (
    At,
    Axes,
    Kind,
    Viewpoint,
    body_transforms,
    point_in_body,
)
from chasles.mathematics.derivatives import leibniz
from chasles.mathematics.homogeneous import Block, Position, Velocity
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motion, Motions, Transform
from chasles.model import spaces
from chasles.model.model import WORLD, Frame, Model


@dataclass(frozen=True, slots=True)
class Property:
    """Mitra's property matrices [D] of a joint, or their time derivatives.

    Each degree of freedom has one matrix, the 4x4 matrix of its screw.
    """

    columns: tuple[Velocity, ...]

    @staticmethod
    def of(S: Motions, X: Transform, view: Viewpoint) -> "Property":
        """Create a joint's property matrices from its motion subspace S in body coordinates.

        X is the transform from the base to the body.
        """
        seen = view.from_body(X, S).columns
        return Property(tuple(Velocity.of(view.turned(column)) for column in seen))

    def __add__(self, other: "Property") -> "Property":
        return Property(tuple(a + b for a, b in zip(self.columns, other.columns, strict=True)))

    def __matmul__(self, qd: Vector) -> Velocity:
        """Return D qd, the velocity across the joint."""
        moving = (column * rate for rate, column in zip(qd, self.columns, strict=True))
        return sum(moving, Velocity.zero())


def joint_motion_rates(
    model: Model,
    q: Mapping[int, Vector],
    rates: Sequence[Mapping[int, Vector]],
    body: int,
    X0: Mapping[int, Transform],
    view: Viewpoint,
) -> tuple[dict[int, list[Property]], list[Velocity]]:
    """Return the property matrices D of the joints that move a body, and the velocity of the body.

    The time derivatives of D and of the velocity Omega are included. The property matrix D of a
    joint moves with the joint's body: Ddot = Omega D - D Omega (Mitra, Eq 3). The Leibniz rule
    gives n derivatives of D and n - 1 derivatives of Omega for n time derivatives of q. In the
    code, D[i][j][0] is the j-th derivative of D_i relative to body i, and D[i][j][k] is the k-th
    time derivative of D[i][j][0]. For j > 0, both are zero unless S changes in body coordinates.

    Mitra expresses all quantities in the base frame. Here, the point and axes of `view` may also
    move with the body. All velocities and derivatives are then relative to this point and these
    axes.
    """
    chain = model.support(body)[::-1]
    qd = {i: [rate[i] for rate in rates] for i in chain}
    Omega: dict[int, list[Velocity]] = {i: [] for i in (WORLD, *chain)}
    S = {i: model.bodies[i].joint.subspace_rates(q[i], qd[i]) for i in chain}
    D = {i: [[Property.of(rate, X0[i], view)] for rate in S[i]] for i in chain}
    for k in range(len(rates)):
        added = {i: leibniz(lambda rate, D: D @ rate, qd[i], D[i][0], k) for i in chain}
        Omega[WORLD].append(-_of_view(view, sum(added.values(), Velocity.zero())))
        for i in chain:
            Omega[i].append(Omega[model.bodies[i].parent][k] + added[i])
            for j in range(len(rates) - k):
                D[i][j].append(D[i][j + 1][k] + leibniz(_bracket, Omega[i], D[i][j], k))
    return {i: D[i][0] for i in chain}, Omega[body]


def _bracket(Omega: Velocity, D: Property) -> Property:
    """Return Omega D - D Omega, the time derivative of D if it moves with velocity Omega."""
    return Property(tuple(Omega.bracket(column) for column in D.columns))


def _of_view(view: Viewpoint, W: Velocity) -> Velocity:
    """Return the velocity of the reference point and axes in `view`, for a body with velocity W."""
    return Velocity(W.w * float(view.turns), W.v * float(view.moves))


def motion_matrices(Omega: Sequence[Velocity]) -> list[Block]:
    """Return the matrices that map a body point to its velocity, acceleration, jerk and so on.

    The matrices are Omega = Mdot M^-1, A_H = Mddot M^-1, J_H, ... (Mitra, sections 2.6, 2.7), where
    M is the position matrix of the body. The matrices are computed from Omega and its derivatives
    by the Leibniz rule: Mdot = Omega M, Mddot M^-1 = Omegadot + Omega Omega, and so on.
    """
    found: list[Block] = []
    for k in range(len(Omega)):
        found.append(leibniz(matmul, Omega, [Position.identity(), *found], k))
    return found


def jacobian_rates(
    model: Model,
    q: spaces.Position,
    *rates: spaces.Velocity,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
) -> spaces.Jacobian:
    """Return a derivative of the Jacobian J: Jdot for rates (qd), Jddot for rates (qd, qdd), etc.

    Each entry of J is differentiated. The columns of J are the property matrices D relative to the
    point `at` and the selected axes (Mitra, section 2.9).
    """
    X0 = body_transforms(model, q)
    view = Viewpoint.of(frame.placement @ X0[frame.body], axes, at)
    D, _ = joint_motion_rates(model, q, rates, frame.body, X0, view)
    return {i: Motions(tuple(d.motion() for d in D[i][-1].columns)) for i in D}


def frame_motion(
    model: Model,
    q: spaces.Position,
    *rates: spaces.Velocity,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
) -> spaces.Twists:
    """Return a body's angular velocity, the velocity of a body point, and their time derivatives.

    All derivatives are computed in the base frame. Omega follows from the property matrices D. The
    motion of a point at R follows from Rdot = Omega R, Rddot = A_H R, Rdddot = J_H R (Mitra,
    section 2).
    """
    X0 = body_transforms(model, q)
    base = Viewpoint.of(Transform.identity(), "world", "world")
    _, Omega = joint_motion_rates(model, q, rates, frame.body, X0, base)
    view = Viewpoint.of(frame.placement @ X0[frame.body], axes, at)
    return [
        view.turned(Motion(rate.w, B @ view.P))
        for rate, B in zip(Omega, motion_matrices(Omega), strict=True)
    ]


def frame_motion_link_frames(
    model: Model,
    q: spaces.Position,
    *rates: spaces.Velocity,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
) -> spaces.Twists:
    """Compute `frame_motion` by a recursion from the point to the base, in link frames.

    r is the position of the point, and w is the angular velocity of its body. Both are transformed,
    with their derivatives, from each body to its parent, and the joint velocity is added at each
    step. This method needs the fewest operations: in the frame of the joint's body, D is constant,
    and rotation about z leaves z components unchanged.
    """
    orders = range(len(rates))
    X = body_transforms(model, q)[frame.body]
    view = Viewpoint.of(frame.placement @ X, axes, at)
    r = [point_in_body(frame, X, at), *(Vector.zero() for _ in orders)]
    w = [Vector.zero() for _ in orders]
    for i in model.support(frame.body):
        joint, qd = model.bodies[i].joint, [rate[i] for rate in rates]
        X, S = joint.transform(q[i]), joint.subspace_rates(q[i], qd)
        v = [leibniz(lambda rate, S: S @ rate, qd, S, k) for k in orders]
        wJ = [rate.angular for rate in v]
        rd = [r[k + 1] + leibniz(Vector.cross, wJ, r, k) + v[k].linear for k in orders]
        r = [X.locate(r[0]), *(X.E.T @ x for x in _turning(rd, wJ))]
        w = [X.E.T @ x for x in _turning([w[k] + wJ[k] for k in orders], wJ)]
    return [view.turned(Motion(w[k], r[k + 1])) for k in orders]


def _turning(x: Sequence[Vector], w: Sequence[Vector]) -> list[Vector]:
    """Return the time derivatives of R x, expressed in axes that rotate with R (Rdot = R w~).

    x[k] and w[k] are the k-th time derivatives of the components of x and w in these axes.
    """
    found = []
    while x:
        found.append(x[0])
        x = [x[k + 1] + leibniz(Vector.cross, w, x, k) for k in range(len(x) - 1)]
    return found


def frame_velocity(
    model: Model,
    q: spaces.Position,
    qd: spaces.Velocity,
    *,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
) -> spaces.Twist:
    """Return the frame's angular velocity and the linear velocity of the body point `at`."""
    (v,) = frame_motion_link_frames(model, q, qd, frame=frame, axes=axes, at=at)
    return v


def frame_acceleration(
    model: Model,
    q: spaces.Position,
    qd: spaces.Velocity,
    qdd: spaces.Velocity,
    *,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
    kind: Kind = "classical",
) -> spaces.Twist:
    """Return the frame's angular acceleration and the linear acceleration of the point `at`.

    `kind` selects classical, spatial or proper acceleration.
    """
    v, a = frame_motion_link_frames(model, q, qd, qdd, frame=frame, axes=axes, at=at)
    E, g = (frame.placement @ body_transforms(model, q)[frame.body]).E, model.gravity_vector
    less = {
        "classical": Vector.zero(),
        "spatial": v.angular.cross(v.linear),
        "proper": E @ g if axes == "frame" else g,
    }[kind]
    return Motion(a.angular, a.linear - less)
