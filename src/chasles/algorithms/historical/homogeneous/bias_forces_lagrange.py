"""Joint forces that keep all joint accelerations at zero, by traces."""

from chasles.algorithms.homogeneous.chain import chain
from chasles.mathematics.homogeneous import Action, Block
from chasles.mathematics.linear import Matrix, Vector
from chasles.model import spaces
from chasles.model.model import WORLD, Model
from chasles.model.spaces import ABSENT


def bias_forces_lagrange(
    model: Model, q: spaces.Position, qd: spaces.Velocity, f_ext: spaces.Wrenches = ABSENT
) -> spaces.Effort:
    """C[m] = trace(sum of (H~_h - Hg) J_h L_m') - L_m (x) sum of Phi_h (section 3).

    The sums are over the bodies h beyond joint m. H~ is the acceleration with all qdd zero; Phi are
    the external actions.
    """
    M, L, _, H, J = chain(model, q, qd, model.undriven(2))
    HJ, Phi, C = {WORLD: Block(Matrix.zero(), Vector.zero())}, {WORLD: Action.zero()}, {}
    for i, *_ in model.outward():
        HJ[i], Phi[i] = H[i] @ J[i], M[i].to_first(Action.of(f_ext[i]))
    for m, p, joint, _ in model.inward():
        C[m] = Vector(tuple(HJ[m].trace(l) - Phi[m].pseudo(l) for l in L[m]))
        C[m] += joint.resistance(qd[m])
        HJ[p] += HJ[m]
        Phi[p] += Phi[m]
    return C
