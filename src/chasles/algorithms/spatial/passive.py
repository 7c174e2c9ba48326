"""Passive forces from springs, tendons, gravity compensation and fluid.

`spring_forces` and `loads` return the generalized forces that balance the passive forces, just as
`gravity_forces` balances gravity. The definitions follow mujoco.readthedocs.io, "Computation",
passive forces, and its inertia-based fluid model.
"""

from dataclasses import replace

from chasles.algorithms.spatial.dynamics import gravity_forces
from chasles.algorithms.spatial.tendons import in_world, stretch, tendon_course
from chasles.expr import Number, absolute
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Force, Motion, RigidInertia
from chasles.model.build import compose
from chasles.model.machine import BoxData, FluidData
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Effort, Position, Velocity
from chasles.model.transmissions import Tendon, tendons

PI = 3.141592653589793


def spring_forces(model: Model, q: Position) -> Effort:
    """Return the gradient of the spring energy of joints and tendons."""
    tau = _nothing(model)
    for i, body in enumerate(model.bodies):
        k, d = body.joint.stiffness, body.joint.displacement(q[i])
        tau[i] = Vector(tuple(a * x for a, x in zip(k, d, strict=True)))
    for tendon, length, arms in _courses(model, q):
        pull = tendon.data.stiffness * stretch(tendon, length)
        _add(tau, arms, pull)
    return tau


def spring_energy(model: Model, q: Position) -> Number:
    """Return the spring energy of joints and tendons."""
    V: Number = 0.0
    for i, body in enumerate(model.bodies):
        for k, x in zip(body.joint.stiffness, body.joint.displacement(q[i]), strict=True):
            V = V + 0.5 * k * x * x
    for tendon, length, _ in _courses(model, q):
        x = stretch(tendon, length)
        V = V + 0.5 * tendon.data.stiffness * x * x
    return V


def loads(model: Model, q: Position, qd: Velocity) -> Effort:
    """Return the generalized forces that balance all passive forces.

    Damping and fluid forces are omitted if the model is lossless.
    """
    tau = dict(spring_forces(model, q))
    for i, lift in compensation(model, q).items():
        if not model.bodies[i].data.lifted:
            tau[i] -= lift
    if model.lossless:
        return tau
    for tendon, _, arms in _courses(model, q):
        speed = sum((qd[i][k] * arm for (i, k), arm in arms.items()), 0.0)
        _add(tau, arms, tendon.data.damping * speed)
    for i, drag in fluid_forces(model, q, qd).items():
        tau[i] -= drag
    return tau


def compensation(model: Model, q: Position) -> Effort:
    """Return the generalized forces of gravity compensation (`gravcomp` in MJCF) for all links."""
    if not any(link.lifted for link in model.source.links):
        return _nothing(model)
    return gravity_forces(lifted(model), q)


def lifted(model: Model) -> Model:
    """Return a model whose link masses include only the gravity-compensated part."""
    parts = [RigidInertia.zero() for _ in model.bodies]
    for link in model.source.links:
        frame = model.frames[link.name]
        if link.lifted and frame.body != WORLD:
            m, h = link.inertia.m * link.lifted, link.inertia.h * link.lifted
            moved = frame.placement.T @ RigidInertia(m, h, Symmetric(*(0.0,) * 6))
            parts[frame.body] = parts[frame.body] + moved
    bodies = tuple(
        replace(body, inertia=inertia) for body, inertia in zip(model.bodies, parts, strict=True)
    )
    return replace(model.bare(), bodies=bodies)


def _nothing(model: Model) -> dict[int, Vector]:
    return {i: Vector.zero(body.joint.nv) for i, body in enumerate(model.bodies)}


def _courses(
    model: Model, q: Position
) -> list[tuple[Tendon, Number, dict[tuple[int, int], Number]]]:
    """Return all tendons that have a spring or a damper, with their lengths and moment arms."""
    acting = [t for t in tendons(model) if t.data.stiffness or t.data.damping]
    moving = in_world(model.bare(), q, None) if any(t.path for t in acting) else None
    found = []
    for tendon in acting:
        length, arms, _ = tendon_course(model, q, tendon, moving)
        found.append((tendon, length, arms))
    return found


def _add(tau: dict[int, Vector], arms: dict[tuple[int, int], Number], force: Number) -> None:
    """Add to `tau` the generalized forces of a tendon: its force times the moment arms."""
    for (i, k), arm in arms.items():
        entries = list(tau[i])
        entries[k] = entries[k] + arm * force
        tau[i] = Vector(tuple(entries))


# Fluid forces -----------------------------------------------------------------------------------


def fluid_forces(model: Model, q: Position, qd: Velocity) -> Effort:
    """Return the generalized forces that the fluid exerts on links, which are modeled as boxes."""
    if (fluid := model.source.fluid) is None:
        return _nothing(model)
    X, v, f, E = {}, {WORLD: Motion.zero()}, {WORLD: Force.zero()}, {WORLD: Rotation()}
    for i, p, joint, _ in model.bare().outward():
        X[i] = joint.transform(q[i])
        v[i] = X[i] @ v[p] + joint.subspace(q[i]) @ qd[i]
        E[i], f[i] = E[p].then(X[i].E), Force.zero()
    for box in fluid.boxes:
        frame = model.frames[box.link]
        if (i := frame.body) != WORLD:
            place = compose(box.pose, frame.placement)
            f[i] += place.T @ _on_box(place @ v[i], place.E @ (E[i] @ fluid.wind), fluid, box)
    tau = {}
    for i, p, joint, _ in model.bare().inward():
        tau[i] = joint.subspace(q[i]).T @ f[i]
        f[p] += X[i].T @ f[i]
    return tau


def _on_box(v: Motion, wind: Vector, fluid: FluidData, box: BoxData) -> Force:
    """Return the fluid force on a moving box, at its center and in its axes."""
    a, b, c = box.size
    w, u = v.angular, v.linear - wind
    round_ = (a + b + c) / 3.0
    turning = w * (-PI * round_**3 * fluid.viscosity)
    sliding = u * (-3.0 * PI * round_ * fluid.viscosity)
    flat = Vector.of(b * c, a * c, a * b)
    thick = Vector.of(a * (b**4 + c**4), b * (a**4 + c**4), c * (a**4 + b**4))
    force = tuple(
        s - 0.5 * fluid.density * A * absolute(x) * x
        for s, A, x in zip(sliding, flat, u, strict=True)
    )
    moment = tuple(
        t - fluid.density / 64.0 * A * absolute(x) * x
        for t, A, x in zip(turning, thick, w, strict=True)
    )
    return Force(Vector(moment), Vector(force))
