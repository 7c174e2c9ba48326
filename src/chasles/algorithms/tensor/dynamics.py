"""Tensor-based algorithms for dynamics, which require the fewest operations.

See Balafoutis and Patel 1991, chapters 5 and 6.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from chasles.algorithms.spatial.dynamics import accelerations
from chasles.expr import Scalar
from chasles.mathematics.linear import Vector, diagonal
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import (
    Force,
    Forces,
    Motions,
    RigidInertia,
    Transform,
    shift_of_inertia,
)
from chasles.mathematics.tensor import AngularAcceleration, euler_from_inertia, point_mass
from chasles.model.model import WORLD, Model
from chasles.model.passes import Turn, turns
from chasles.model.spaces import (
    ABSENT,
    Blocks,
    Effort,
    InertiaMatrix,
    Position,
    Velocity,
    Wrenches,
)


def parallel_axes(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Run the Newton-Euler recursion about body origins, with angular acceleration tensors.

    See Balafoutis and Patel 1991, section 5.3. Consecutive parallel joints are combined: relative
    to its carrier g, the body before the first of these joints, a body rotates by the sum of the
    joint angles. The body origin moves with the parent p. The joint force f and the moment eta
    about the origin are transmitted to the parent, except for the moment normal to the parallel
    axes. That moment does no work at these joints and is transmitted directly to the carrier.
    """
    X, S, turn = {}, {}, turns(model, q)
    vJ, aJ, Omega = {}, {}, {WORLD: AngularAcceleration.zero()}
    sdd = {WORLD: -model.gravity_vector}
    f, eta, tau = {WORLD: Vector.zero()}, {WORLD: Vector.zero()}, {}
    for i, p, joint, I in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        vJ[i], aJ[i] = S[i] @ qd[i], S[i] @ qdd[i] + joint.bias(q[i], qd[i])
        g, joints, Xg, _ = turn[i]
        spin = sum((vJ[j].angular for j in joints), Vector.zero())
        rate = sum((aJ[j].angular for j in joints), Vector.zero())
        carried = Xg.E @ Omega[g].w
        w = carried + spin
        Omega[i] = AngularAcceleration(w, Xg.E @ Omega[g].wd + carried.cross(spin) + rate)
        zeta = (w + carried).cross(vJ[i].linear) + aJ[i].linear
        sdd[i] = X[i].E @ (sdd[p] + Omega[p] @ X[i].r) + zeta
        f[i] = Omega[i] @ I.h + sdd[i] * I.m - f_ext[i].force
        moment = Omega[i].moment_of(euler_from_inertia(I.I)) + I.h.cross(sdd[i])
        eta[i] = moment - f_ext[i].moment
    for i, p, joint, _ in model.inward():
        tau[i] = S[i].T @ Force(eta[i], f[i]) + joint.rotor(qdd[i]) + joint.resistance(qd[i])
        t = X[i].E.T @ f[i]
        f[p] += t
        g, _, Xg, z = turn[i]
        axial = z * z.dot(eta[i])
        eta[p] += X[i].r.cross(t) + axial
        eta[g] += Xg.E.T @ (eta[i] - axial)
    return tau


class Chain(NamedTuple):
    """Motion of every body in body axes.

    See Balafoutis and Patel 1991, section 5.3, steps 1 and 2 of the recursions.

    X and S are the transform and motion subspace of the joint. Omega is the angular acceleration
    tensor. sdd is the acceleration of the body origin minus gravity, and zeta is the part of sdd
    due to joint translation.
    """

    X: dict[int, Transform]
    S: dict[int, Motions]
    Omega: dict[int, AngularAcceleration]
    zeta: dict[int, Vector]
    sdd: dict[int, Vector]


def chain(model: Model, q: Position, qd: Velocity, qdd: Velocity) -> Chain:
    """Compute the motion of every body (Balafoutis and Patel 1991, Eq 5.3.7 and 5.3.45).

    The recursion is Omega_k = wd~ + w~ w~ and sdd_k = A'(sdd_i + Omega_i s) + zeta_k.
    """
    X, S, zeta = {}, {}, {}
    Omega, sdd = {WORLD: AngularAcceleration.zero()}, {WORLD: -model.gravity_vector}
    for i, p, joint, _ in model.outward():
        X[i], S[i] = joint.transform(q[i]), joint.subspace(q[i])
        E, s = X[i].E, X[i].r
        vJ, aJ = S[i] @ qd[i], S[i] @ qdd[i] + joint.bias(q[i], qd[i])
        carried = E @ Omega[p].w  # (5.3.45a)
        w = carried + vJ.angular  # (5.3.45a)
        wd = E @ Omega[p].wd + carried.cross(vJ.angular) + aJ.angular  # (5.3.45b)
        Omega[i] = AngularAcceleration(w, wd)  # (5.3.45c)
        zeta[i] = (w + carried).cross(vJ.linear) + aJ.linear  # (5.3.45d)
        sdd[i] = E @ (sdd[p] + Omega[p] @ s) + zeta[i]  # (5.3.45e)
    return Chain(X, S, Omega, zeta, sdd)


def augmented(model: Model, X: Mapping[int, Transform]) -> dict[int, RigidInertia]:
    """Return the mass mbar, first moment u and inertia K of every augmented link.

    See Balafoutis and Patel 1991, Eq 5.3.9-12. An augmented link is a body with a point mass added
    at the origin of each child frame. Each point mass is the mass of all bodies beyond the joint of
    that frame. X contains the joint transforms. For revolute joints the result does not depend on
    the configuration, so it is computed at compile time.
    """
    I = {i: inertia for i, _, _, inertia in model.outward()} | {WORLD: RigidInertia.zero()}
    for i, p, *_ in model.inward():
        I[p] += point_mass(I[i].m, X[i].r)
    return I


def augmented_tensor(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Compute inverse dynamics with augmented links (Balafoutis and Patel 1991, algorithm 5.7).

    The method does not compute the forces between links.
    """
    moving = chain(model, q, qd, qdd)
    links, sdd = augmented(model, moving.X), moving.sdd
    Udd, eta = transmitted(model, moving, links, f_ext)
    tau = {}
    for i, _, joint, _ in model.outward():
        F = Force(eta[i], sdd[i] * links[i].m + Udd[i])
        tau[i] = moving.S[i].T @ F + joint.rotor(qdd[i]) + joint.resistance(qd[i])  # (5.3.46c)
    return tau


def transmitted(
    model: Model, moving: Chain, links: Mapping[int, RigidInertia], f_ext: Wrenches = ABSENT
) -> tuple[dict[int, Vector], dict[int, Vector]]:
    """Return Udd and eta for each joint, in body axes about the body origin.

    Udd is the second time derivative of the first moment of all bodies beyond the joint, minus the
    external forces on them. The joint transmits the force mbar sdd + Udd and the moment eta. Udd
    and eta are summed over all children, with additional terms for prismatic joints. `links` are
    the augmented links.
    """
    X, _, Omega, zeta, sdd = moving
    Udd, eta = {WORLD: Vector.zero()}, {WORLD: Vector.zero()}
    for i, *_ in model.outward():
        u, Khat = links[i].h, euler_from_inertia(links[i].I)
        mu = Omega[i].moment(Khat)  # (5.3.45f)
        Udd[i] = Omega[i] @ u - f_ext[i].force  # (5.3.46a)
        eta[i] = mu + u.cross(sdd[i]) - f_ext[i].moment  # (5.3.46b)
    for i, p, *_ in model.inward():
        A, s = X[i].E.T, X[i].r
        t = A @ (Udd[i] + zeta[i] * links[i].m)  # (5.3.46a)
        Udd[p] += t  # (5.3.46a)
        eta[p] += s.cross(t) + A @ eta[i]  # (5.3.46b)
    return Udd, eta


def bias_forces_parallel_axes(
    model: Model, q: Position, qd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Return the bias forces b = C + G, the inverse dynamics for qdd = 0.

    See Balafoutis and Patel 1991, section 6.2.
    """
    return parallel_axes(model, q, qd, model.undriven(2), f_ext)


def bias_forces_augmented_tensor(
    model: Model, q: Position, qd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Compute the bias forces by algorithm 5.7 (Balafoutis and Patel 1991, section 6.2)."""
    return augmented_tensor(model, q, qd, model.undriven(2), f_ext)


def mass_matrix_parallel_axes(model: Model, q: Position) -> InertiaMatrix:
    """Compute the mass matrix by the composite-rigid-body algorithm (Featherstone 2008, table 6.2).

    Inertias and forces of bodies on consecutive parallel joints are transmitted directly to the
    carrier, the body before the first of these joints (see `parallel_axes`). I[i] is the inertia of
    body i and of all bodies that it carries. along[i] is the inertia of the bodies beyond body i on
    the same parallel axes, and of all bodies that they carry. Armature is added to the diagonal.
    """
    M = Blocks()
    I = {i: inertia for i, _, _, inertia in model.outward()} | {WORLD: RigidInertia.zero()}
    along = {i: RigidInertia.zero() for i in I}
    X = {i: joint.transform(q[i]) for i, _, joint, _ in model.outward()}
    S = {i: joint.subspace(q[i]) for i, _, joint, _ in model.outward()}
    turn = turns(model, q)
    for i, p, joint, _ in model.inward():
        composite = I[i] + along[i]
        I[turn[i].carrier] += turn[i].X.T @ I[i]
        if turn[i].carrier != p:
            along[p] += X[i].T @ composite
        F = {i: composite @ S[i]}
        M[i, i] = S[i].T @ F[i] + diagonal(joint.armature)
        for j, beyond, Xj in _carriers(model, turn, X, i):
            F[j] = Xj.T @ F[beyond]
            M[i, j] = F[j].T @ S[j]
            M[j, i] = M[i, j].T
    return M


def _carriers(
    model: Model, turn: Mapping[int, Turn], X: Mapping[int, Transform], i: int
) -> Iterator[tuple[int, int, Transform]]:
    """Yield (j, k, X) for each body j that supports body i.

    Bodies j and k lie on the path from the base to body i. Body k transmits force to j, and X is
    the transform from j to k. For consecutive parallel joints, the body before the first joint (the
    carrier) receives force from the body after the last joint on the path. Any other body receives
    force from its child on the path.
    """
    last = i
    for child, j in pairwise(model.support(i)):
        if j == turn[last].carrier:
            yield j, last, turn[last].X
            last = j
        else:
            yield j, child, X[child]


def mass_matrix_augmented_tensor(model: Model, q: Position) -> InertiaMatrix:
    """Compute the mass matrix with generalized links (Balafoutis and Patel 1991, algorithm 6.2).

    U and E are the first and second moments of all bodies beyond a joint about its origin. The
    contribution of the augmented links is constant for revolute joints. A unit acceleration of a
    degree of freedom (w, v) requires the force w x U + mbar v and the moment E w + U x v. The book
    omits the last term.
    """
    X = {i: joint.transform(q[i]) for i, _, joint, _ in model.outward()}
    S = {i: joint.subspace(q[i]) for i, _, joint, _ in model.outward()}
    links = augmented(model, X)
    U, E = {i: link.h for i, link in links.items()}, {i: link.I for i, link in links.items()}
    F = {}
    for i, p, *_ in model.inward():
        F[i] = RigidInertia(links[i].m, U[i], E[i]) @ S[i]  # (6.3.29d, 6.3.29e)
        A, s = X[i].E.T, X[i].r
        turned = A @ U[i]  # (6.3.29a)
        U[p] += turned  # (6.3.29a)
        E[p] += A @ E[i] + shift_of_inertia(s, turned, turned)  # (6.3.29c)
    return columns(model, X, S, F)


def columns(
    model: Model, X: Mapping[int, Transform], S: Mapping[int, Motions], F: Mapping[int, Forces]
) -> Blocks:
    """Return the mass matrix, given the forces that unit joint accelerations require.

    M[i, j] is the force F[i], transmitted to joint j and projected onto its motion subspace.
    F[i] has a column for each degree of freedom of joint i. The column is the wrench that gives all
    bodies beyond the joint a unit acceleration in this degree of freedom, in the axes and about the
    origin of body i. Armature is added to the diagonal.
    """
    M = Blocks()
    parts = {i: _parts(transform) for i, transform in X.items()}
    for i, _, joint, _ in model.outward():
        passed = F[i]
        M[i, i] = S[i].T @ passed + diagonal(joint.armature)
        for child, j in pairwise(model.support(i)):
            passed = _inward(*parts[child], passed)  # (6.3.30a, 6.3.30b)
            M[i, j] = passed.T @ S[j]
            M[j, i] = M[i, j].T
    return M


def _inward(turn: Rotation, s: Vector, placed: Rotation, F: Forces) -> Forces:
    """Return X' F, where X is given by its factors (see `_parts`)."""
    forces = []
    for column in F.columns:
        f = turn.T @ column.force
        eta = turn.T @ column.moment + s.cross(f)
        forces.append(Force(placed.T @ eta, placed.T @ f))
    return Forces(tuple(forces))


def _parts(X: Transform) -> tuple[Rotation, Vector, Rotation]:
    """Split the rotation of X: X.E is a constant rotation followed by `turn`.

    The result is (turn, s, constant rotation), where s is X.r in the axes between the two
    rotations. The split that gives s the most zeros is chosen. For Denavit-Hartenberg parameters, s
    is (a, 0, d), in the axes between twist and joint rotation.
    """
    factors = X.E.factors
    ways = [(X.E, X.r, Rotation())]
    for k in range(1, len(factors)):
        placed = Rotation(factors[:k])
        if any(isinstance(e, Scalar) for row in placed.matrix().rows for e in row):
            break
        ways.append((Rotation(factors[k:]), _rounded(placed @ X.r), placed))
    return max(ways, key=lambda way: sum(type(x) is float and x == 0.0 for x in way[1]))


def _rounded(s: Vector) -> Vector:
    """Replace entries that differ from zero only by rounding errors with exact zeros."""
    size = max(abs(x) if type(x) is float else 0.0 for x in s)
    return Vector(tuple(0.0 if type(x) is float and abs(x) < 4e-16 * size else x for x in s))


def forward_dynamics_parallel_axes(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Solve M qdd = tau - b with a sparse factorization of M (Featherstone 2008, chapter 6)."""
    M = mass_matrix_parallel_axes(model, q)
    return accelerations(model, M, bias_forces_parallel_axes(model, q, qd, f_ext), tau)


def forward_dynamics_augmented_tensor(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Solve D qdd = tau - b, with D from algorithm 6.2 and b from algorithm 5.7.

    D is the mass matrix, and b is the vector of bias forces. See Balafoutis and Patel 1991,
    section 6.3.
    """
    D = mass_matrix_augmented_tensor(model, q)
    return accelerations(model, D, bias_forces_augmented_tensor(model, q, qd, f_ext), tau)
