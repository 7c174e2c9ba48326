"""The n-th time derivative of a Jacobian."""

from chasles.algorithms.joint_motion.carried import carried
from chasles.algorithms.joint_motion.joint_motion_rates import joint_motion_rates
from chasles.algorithms.joint_motion.motion_matrices import motion_matrices
from chasles.algorithms.spatial.viewpoint import At, Axes, Viewpoint
from chasles.mathematics.homogeneous import Velocity as Twist
from chasles.mathematics.leibniz import leibniz
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motion, Motions
from chasles.model.model import Frame, Model
from chasles.model.spaces import Jacobian, Position, Velocity


def jacobian_rates(
    model: Model,
    q: Position,
    *rates: Velocity,
    frame: Frame,
    axes: Axes = "world",
    at: At = "frame",
) -> Jacobian:
    """Jdot for one rate (qd), Jddot for two (qd, qdd), and so on: derivatives of the entries of J.

    A column is D seen at a point P: (w, v + w x P) for D = (w, v); P moves, and so may the axes
    (Mitra, 2.9: d, dd, ddd).
    """
    n = len(rates)
    M, D, Omega = joint_motion_rates(model, q, rates, frame.body)
    view = Viewpoint.of(frame.placement @ M.transform(), axes, at)
    P = [view.P, *((B @ view.P) * float(view.moves) for B in motion_matrices(Omega))]
    spin = [rate.w * -float(axes == "frame") for rate in Omega]

    def column(D: list[Twist]) -> Motion:
        w = [d.w for d in D]
        v = [D[k].v + leibniz(Vector.cross, w, P, k) for k in range(n + 1)]
        return view.turned(Motion(carried(w, spin)[n], carried(v, spin)[n]))

    return {
        i: Motions(tuple(column([d.columns[k] for d in D[i]]) for k in range(len(D[i][0].columns))))
        for i in D
    }
