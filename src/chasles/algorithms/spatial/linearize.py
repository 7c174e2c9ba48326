"""The linear system that a mechanism is near one state."""

from chasles.algorithms.spatial.forward_dynamics_derivatives import forward_dynamics_derivatives
from chasles.mathematics.linear import Matrix
from chasles.model.model import Model
from chasles.model.spaces import (
    Effort,
    InputMatrix,
    Loads,
    Position,
    StateMatrix,
    Velocity,
    assemble,
)


def linearize(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Loads = ()
) -> tuple[StateMatrix, InputMatrix]:
    """A and B of xdot = A x + B u (Balafoutis and Patel 1991, Eq 7.2.3), x = (step, change of qd).

    The step is along `integrate`, so the top left block of A is -ad(qd), which is zero for joints
    whose steps add.
    """
    dq, dqd, dtau = forward_dynamics_derivatives(model, q, qd, tau, f_ext)
    order = model.in_tree_order
    drift = assemble(model, {(i, i): model.bodies[i].joint.drift(qd[i]) for i in order}, order)
    one, zero = Matrix.identity(model.nv), Matrix.zero(model.nv, model.nv)
    above = tuple((*a, *b) for a, b in zip(drift, one.rows, strict=True))
    below = tuple((*a, *b) for a, b in zip(dq.rows, dqd.rows, strict=True))
    return Matrix(above + below), Matrix(zero.rows + dtau.rows)
