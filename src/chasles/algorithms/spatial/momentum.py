"""Mass, momentum and energy of the whole mechanism."""

from typing import Literal

from chasles.algorithms.spatial.kinematics import body_transforms
from chasles.algorithms.spatial.passive import lifted, spring_energy
from chasles.errors import ModelError
from chasles.expr import Number
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force, Motion, RigidInertia, Transform
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Energy, MomentumMatrix, Point, Position, Velocity, Wrench6


def first_moment(model: Model, q: Position) -> tuple[Number, Vector]:
    """Return the mass of all moving bodies and their first moment about the world origin."""
    m, h = {WORLD: 0.0}, {WORLD: Vector.zero()}
    for i, _, _, I in model.outward():
        m[i], h[i] = I.m, I.h
    for i, p, joint, _ in model.inward():
        X = joint.transform(q[i])
        m[p] += m[i]
        h[p] += X.E.T @ h[i] + X.r * m[i]
    return m[WORLD], h[WORLD]


def center_of_mass(model: Model, q: Position) -> Point:
    """Return the center of mass of all moving bodies in the world frame."""
    m, h = first_moment(model, q)
    if isinstance(m, float) and m == 0.0:
        problem = "the moving bodies have no mass, so the center of mass is undefined"
        remedy = "assign masses to the links, or use the robot on which `simplified` was called"
        raise ModelError("E-CALL-001", problem, remedy, part=f"robot {model.name!r}")
    return h * (1.0 / m)


def momentum(
    model: Model, q: Position, qd: Velocity, *, at: Literal["world", "com"] = "com"
) -> Wrench6:
    """Return the angular momentum about a point, and the linear momentum, in world axes.

    See Featherstone 2008, Eq 2.58.
    """
    X, v, h = {}, {WORLD: Motion.zero()}, {WORLD: Force.zero()}
    for i, p, joint, I in model.outward():
        X[i] = joint.transform(q[i])
        v[i] = X[i] @ v[p] + joint.subspace(q[i]) @ qd[i]
        h[i] = I @ v[i]
    for i, p, *_ in model.inward():
        h[p] += X[i].T @ h[i]
    about = center_of_mass(model, q) if at == "com" else Vector.zero()
    whole = h[WORLD]
    return Force(whole.moment - about.cross(whole.force), whole.force)


def centroidal_momentum_matrix(model: Model, q: Position) -> MomentumMatrix:
    """Return the centroidal momentum matrix A (Orin and Goswami 2008).

    A qd is the momentum about the center of mass, in world axes.
    """
    X0, G = body_transforms(model, q), center_of_mass(model, q)
    I = {i: inertia for i, _, _, inertia in model.outward()} | {WORLD: RigidInertia.zero()}
    A = {}
    for i, p, joint, _ in model.inward():
        I[p] += joint.transform(q[i]).T @ I[i]
        to_center = Transform(X0[i].E, X0[i].r - G)
        A[i] = to_center.T @ (I[i] @ joint.subspace(q[i]))
    return A


def kinetic_energy(model: Model, q: Position, qd: Velocity) -> Energy:
    """Return the kinetic energy of bodies and rotors (Featherstone 2008, Eq 2.67)."""
    v, T = {WORLD: Motion.zero()}, 0.0
    for i, p, joint, I in model.outward():
        v[i] = joint.transform(q[i]) @ v[p] + joint.subspace(q[i]) @ qd[i]
        T = T + v[i].dot(I @ v[i]) + Vector(tuple(qd[i])).dot(joint.rotor(qd[i]))
    return 0.5 * T


def potential_energy(model: Model, q: Position) -> Energy:
    """Return the gravitational potential energy of all moving bodies, plus the spring energy.

    The gravitational energy -g . m c is zero if the center of mass is at the world origin. Weight
    balanced by passive gravity compensation is excluded. Weight compensated by actuators is
    included, because actuators do not store energy.
    """
    weight = -model.gravity_vector.dot(first_moment(model, q)[1])
    return weight - energy_of_lifted(model, q) + spring_energy(model, q)


def energy_of_lifted(model: Model, q: Position) -> Number:
    """Return the gravitational energy of masses balanced by passive gravity compensation."""
    by_actuators = any(joint.lifted for joint in model.source.joints)
    if by_actuators or not any(link.lifted for link in model.source.links):
        return 0.0
    return -model.gravity_vector.dot(first_moment(lifted(model), q)[1])
