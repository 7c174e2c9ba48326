"""Dynamics with 4x4 matrices (Legnani et al. 1996, part II), selected only by `method=`."""

from collections.abc import Callable
from typing import NamedTuple

from chasles.algorithms.spatial.dynamics import accelerations
from chasles.algorithms.spatial.momentum import energy_of_lifted
from chasles.algorithms.spatial.passive import spring_energy
from chasles.expr import Number
from chasles.mathematics import homogeneous
from chasles.mathematics.homogeneous import Acceleration, Action, Block, Inertia, Screw, action
from chasles.mathematics.linear import Matrix, Vector, diagonal
from chasles.model.joints import Joint
from chasles.model.model import WORLD, Model
from chasles.model.spaces import (
    ABSENT,
    Blocks,
    Effort,
    Energy,
    InertiaMatrix,
    Position,
    Velocity,
    Wrenches,
)


class Chain(NamedTuple):
    """Position M, screws L, velocity W, acceleration H and inertia J of every body.

    All matrices are in the base frame. There is one matrix L per degree of freedom. Gravity is
    subtracted from H, as if the base accelerated upward.
    """

    M: dict[int, homogeneous.Position]
    L: dict[int, tuple[Screw, ...]]
    W: dict[int, homogeneous.Velocity]
    H: dict[int, Acceleration]
    J: dict[int, Inertia]


def chain(model: Model, q: Position, qd: Velocity, qdd: Velocity) -> Chain:
    """Compute the matrices of all bodies in the base frame.

    See Legnani et al. 1996, part II, section 2.1. The recursion is M0h = M0p Mph, W0h = W0p + Wph,
    H0h = H0p + Hph + 2 W0p Wph.
    """
    M, L, J = {WORLD: homogeneous.Position.identity()}, {}, {}
    W = {WORLD: homogeneous.Velocity.zero()}
    H = {WORLD: Acceleration.uniform(-model.gravity_vector)}
    for i, p, joint, I in model.outward():
        M[i] = M[p] @ homogeneous.Position.of(joint.transform(q[i]))
        L[i] = tuple(M[i].to_first(l) for l in screws(joint, q[i]))
        moving, rate = along(L[i], qd[i]), along(L[i], qdd[i])
        rate += M[i].to_first(homogeneous.Velocity.of(joint.bias(q[i], qd[i])))
        W[i] = W[p] + moving
        H[i] = H[p].after(W[p], Acceleration.of(moving, rate), moving)
        J[i] = M[i].to_first(Inertia.of(I))
    return Chain(M, L, W, H, J)


def screws(joint: Joint, q: Vector) -> tuple[Screw, ...]:
    """Return a joint's screw matrices L, one per degree of freedom, in the child body's frame."""
    return tuple(map(Screw.of, joint.subspace(q).columns))


def along(screws: tuple[Screw, ...], rates: Vector) -> homogeneous.Velocity:
    """Return a joint's velocity matrix W, the sum of L qd over its degrees of freedom."""
    moving = (l.velocity(rate) for l, rate in zip(screws, rates, strict=True))
    return sum(moving, homogeneous.Velocity.zero())


def inverse_dynamics(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Compute generalized forces from the action matrices Phi = skew(H J) of the bodies.

    See Legnani et al. 1996, part II, section 2.3. The generalized force at a joint is the pseudo
    scalar product of the joint screw and the sum of Phi over all bodies beyond the joint.
    """
    M, L, _, H, J = chain(model, q, qd, qdd)
    Phi, tau = {WORLD: Action.zero()}, {}
    for i, *_ in model.outward():
        Phi[i] = action(H[i], J[i]) - M[i].to_first(Action.of(f_ext[i]))
    for i, p, joint, _ in model.inward():
        tau[i] = Vector(tuple(Phi[i].pseudo(l) for l in L[i]))
        tau[i] += joint.rotor(qdd[i]) + joint.resistance(qd[i])
        Phi[p] += Phi[i]
    return tau


def inverse_dynamics_link(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Compute `inverse_dynamics` in link frames, in which J and L are constant.

    See Legnani et al. 1996, part II, section 2.3. W and H are propagated from the base to the tips,
    and Phi from the tips to the base, with a change of frame at each joint.
    """
    M, L, tau = {}, {}, {}
    W = {WORLD: homogeneous.Velocity.zero()}
    H = {WORLD: Acceleration.uniform(-model.gravity_vector)}
    Phi = {WORLD: Action.zero()}
    for i, p, joint, I in model.outward():
        M[i], L[i] = homogeneous.Position.of(joint.transform(q[i])), screws(joint, q[i])
        moving = along(L[i], qd[i])
        rate = along(L[i], qdd[i]) + homogeneous.Velocity.of(joint.bias(q[i], qd[i]))
        carried = M[i].to_second(W[p])
        W[i] = carried + moving
        H[i] = M[i].to_second(H[p]).after(carried, Acceleration.of(moving, rate), moving)
        Phi[i] = action(H[i], Inertia.of(I)) - Action.of(f_ext[i])
    for i, p, joint, _ in model.inward():
        tau[i] = Vector(tuple(Phi[i].pseudo(l) for l in L[i]))
        tau[i] += joint.rotor(qdd[i]) + joint.resistance(qd[i])
        Phi[p] += M[i].to_first(Phi[i])
    return tau


def mass_matrix(model: Model, q: Position) -> InertiaMatrix:
    """Compute the mass matrix from the joint screws and the action matrices of unit accelerations.

    M[i, j] = L_j (x) skew(L_i J), where J is the inertia of all bodies beyond joint i. (x) is the
    pseudo scalar product. skew(L_i J) is the action matrix for a unit acceleration of joint i if
    all velocities are zero (Legnani et al. 1996, part II, section 2.3).
    """
    return _paired(model, q, lambda LJ: Action(*LJ.skew()).pseudo)


def mass_matrix_lagrange(model: Model, q: Position) -> InertiaMatrix:
    """Compute the mass matrix as traces of products of joint screws and inertias.

    M[i, j] = trace(L_i (sum of J_h) L_j'), summed over all bodies h beyond both joints (Legnani et
    al. 1996, part II, section 3).
    """
    return _paired(model, q, lambda LJ: LJ.trace)


def _paired(
    model: Model, q: Position, product: Callable[[Block], Callable[[Screw], Number]]
) -> Blocks:
    """Return the mass matrix, whose blocks M[i, j] are computed by `product` from L_i J and L_j.

    J is the inertia of all bodies beyond joint i. Armature is added to the diagonal.
    """
    rest, M = model.at_rest(), Blocks()
    _, L, _, _, J = chain(model, q, rest, rest)
    J[WORLD] = Inertia.zero()
    for i, p, joint, _ in model.inward():
        products = [product(l @ J[i]) for l in L[i]]
        for j in model.support(i):
            M[i, j] = Matrix(tuple(tuple(times(l) for l in L[j]) for times in products))
            M[j, i] = M[i, j].T
        M[i, i] += diagonal(joint.armature)
        J[p] += J[i]
    return M


def bias_forces_lagrange(
    model: Model, q: Position, qd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Return the bias forces C[m] = trace(sum of (H~_h - Hg) J_h L_m') - L_m (x) sum of Phi_h.

    See Legnani et al. 1996, part II, section 3. The sums include all bodies h beyond joint m. H~ is
    the acceleration when all qdd are zero, and Hg is the acceleration of gravity. (x) is the pseudo
    scalar product. Phi_h is the action matrix of the external force on body h.
    """
    given = model.undriven(2)
    M, L, _, H, J = chain(model, q, qd, given)
    HJ, Phi, C = {WORLD: Block(Matrix.zero(), Vector.zero())}, {WORLD: Action.zero()}, {}
    for i, *_ in model.outward():
        HJ[i], Phi[i] = H[i] @ J[i], M[i].to_first(Action.of(f_ext[i]))
    for m, p, joint, _ in model.inward():
        C[m] = Vector(tuple(HJ[m].trace(l) - Phi[m].pseudo(l) for l in L[m]))
        C[m] += joint.rotor(given[m]) + joint.resistance(qd[m])
        HJ[p] += HJ[m]
        Phi[p] += Phi[m]
    return C


def inverse_dynamics_lagrange(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Return the generalized forces F = M qdd + C.

    C includes the effect of prescribed joint accelerations. See Legnani et al. 1996, part II,
    section 3.
    """
    F, driven = dict(bias_forces_lagrange(model, q, qd, f_ext)), model.undriven(2)
    for (i, j), block in mass_matrix_lagrange(model, q).items():
        F[i] += block @ (qdd[j] - driven[j])
    return F


def forward_dynamics(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Solve M qdd = tau - h, where h is the inverse dynamics for qdd = 0.

    See Legnani et al. 1996, part II, section 2.3.
    """
    h = inverse_dynamics(model, q, qd, model.undriven(2), f_ext)
    return accelerations(model, mass_matrix(model, q), h, tau)


def forward_dynamics_lagrange(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Solve M qdd + C = F for qdd (Legnani et al. 1996, part II, section 3)."""
    C = bias_forces_lagrange(model, q, qd, f_ext)
    return accelerations(model, mass_matrix_lagrange(model, q), C, tau)


def kinetic_energy(model: Model, q: Position, qd: Velocity) -> Energy:
    """Return the kinetic energy, 1/2 trace(W J W') plus rotor energy.

    See Legnani et al. 1996, part I, section 4.5.
    """
    _, _, W, _, J = chain(model, q, qd, model.at_rest())
    total = 0.0
    for i, _, joint, _ in model.outward():
        total = total + homogeneous.kinetic_energy(W[i], J[i])
        total = total + 0.5 * qd[i].dot(joint.rotor(qd[i]))
    return total


def potential_energy(model: Model, q: Position) -> Energy:
    """Return the potential energy: the sum of -trace(Hg J) over all bodies, plus spring energy.

    Hg is the acceleration matrix of gravity, and J is the inertia matrix of a body, both in the
    base frame. Weight balanced by passive gravity compensation is excluded. See Legnani et al.
    1996, part I, section 4.5.
    """
    rest = model.at_rest()
    Hg, J = Acceleration.uniform(model.gravity_vector), chain(model, q, rest, rest).J
    weight = sum((homogeneous.potential_energy(Hg, J[i]) for i, *_ in model.outward()), 0.0)
    return weight - energy_of_lifted(model, q) + spring_energy(model, q)
