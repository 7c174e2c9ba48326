"""Check dynamics against the Newton-Euler equations of each link and the energy balance."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from chasles.checks.comparing import Comparison
from chasles.checks.trial import Trial
from chasles.mathematics.linear import Vector
from chasles.model import WORLD, Model
from chasles.model.transmissions import tendons


class Moving(NamedTuple):
    """Body index, mass, first moment, momentum and kinetic energy of a moving link.

    The first moment and the momentum (angular, then linear) are about the world origin.
    """

    body: int
    mass: float
    moment: np.ndarray
    momentum: np.ndarray
    energy: float


def links(trial: Trial) -> list[Moving]:
    """Compute the momentum and energy of every moving link from its pose and velocity."""
    found = []
    for link in trial.model.source.links:
        body = trial.model.frames[link.name].body
        if body < 0:
            continue
        T = trial.run("forward_kinematics", trial.q, frame=link.name)
        twist = trial.run("frame_velocity", trial.q, trial.qd, frame=link.name)
        R, p, w, v = T[:3, :3], T[:3, 3], twist[:3], twist[3:]
        m, h = float(link.inertia.m), R @ np.array(list(link.inertia.h), dtype=float)
        I = R @ np.array(link.inertia.I.matrix().rows, dtype=float) @ R.T
        linear = m * v + np.cross(w, h)
        angular = I @ w + np.cross(h, v)
        momentum = np.concatenate([angular + np.cross(p, linear), linear])
        energy = 0.5 * float(w @ angular + v @ linear)
        found.append(Moving(body, m, m * p + h, momentum, energy))
    return found


def sums_over_links(trial: Trial) -> Iterator[Comparison]:
    """Compare the center of mass, momentum and energy with sums over the links."""
    if not trial.model.bodies:
        return
    q, qd, units, each = trial.q, trial.qd, trial.units, links(trial)
    mass = sum(link.mass for link in each)
    g = np.array(list(trial.model.gravity_vector))
    first = np.sum([link.moment for link in each], axis=0)
    if mass > 0.0:
        center = first / mass
        found = trial.run("center_of_mass", q)
        yield Comparison("center_of_mass", "spatial", found, center, units.length)
    total = np.sum([link.momentum for link in each], axis=0)
    size = mass * trial.speed * units.length**2
    found = trial.run("momentum", q, qd, at="world")
    yield Comparison("momentum", "at world", found, total, size, units=units.wrench)
    if mass > 0.0:
        about = total.copy()
        about[:3] -= np.cross(center, total[3:])
        found = trial.run("momentum", q, qd, at="com")
        yield Comparison("momentum", "at com", found, about, size, units=units.wrench)
        if not trial.model.driven:
            A = trial.run("centroidal_momentum_matrix", q)
            name = "centroidal_momentum_matrix"
            yield Comparison(name, "spatial", A @ qd, about, size, units=units.wrench)
    V = -float(first @ g) + stored(trial) + float(lifted_moment(trial) @ g)
    weight = mass * float(np.linalg.norm(g)) * units.length
    for way in trial.ways("potential_energy"):
        found = trial.run("potential_energy", q, method=way.name)
        yield Comparison("potential_energy", way.name, found, V, weight)
    rates = trial.model.velocities(qd.tolist(), 1)
    rotors = sum(
        0.5 * float(a) * float(x) ** 2
        for i, body in enumerate(trial.model.parts)
        for a, x in zip(body.joint.armature, rates[i], strict=True)
    )
    T = sum(link.energy for link in each) + rotors
    for way in trial.ways("kinetic_energy"):
        found = trial.run("kinetic_energy", q, qd, method=way.name)
        yield Comparison("kinetic_energy", way.name, found, T, 1e-3 * size * trial.speed)
    if not trial.model.driven:
        M = trial.M
        yield Comparison("mass_matrix", "energy", 0.5 * qd @ M @ qd, T, 1e-6 * trial.force)


def stored(trial: Trial) -> float:
    """Return the potential energy of joint springs and tendons."""
    model, V = trial.model, 0.0
    q = model.positions(trial.q.tolist())
    for i, body in enumerate(model.bodies):
        V += 0.5 * body.data.stiffness * sum(float(x) ** 2 for x in body.joint.displacement(q[i]))
    for tendon in tendons(model):
        length = float(tendon.offset) + sum(float(q[i][k]) * r for i, k, r in tendon.geared)
        for a, r, b, s, factor in tendon.path:
            ends = [_place(trial, body, point) for body, point in ((a, r), (b, s))]
            length += factor * float(np.linalg.norm(ends[1] - ends[0]))
        lower, upper = tendon.data.rest
        x = max(length - upper, 0.0) + min(length - lower, 0.0)
        V += 0.5 * tendon.data.stiffness * x**2
    return V


def _place(trial: Trial, i: int, point: Vector) -> np.ndarray:
    """Return the world position of a body-fixed point."""
    if i == WORLD:
        return np.array(list(point), dtype=float)
    body = trial.model.bodies[i]
    T = trial.run("forward_kinematics", trial.q, frame=body.name)
    back = trial.model.frames[body.name].placement
    inside = back.E @ (point - back.r)
    return T[:3, :3] @ np.array(list(inside), dtype=float) + T[:3, 3]


def lifted_moment(trial: Trial) -> np.ndarray:
    """Return the sum of the links' first moments, weighted by gravity-compensation fractions.

    The result is zero if actuators provide the gravity compensation.
    """
    total = np.zeros(3)
    if any(joint.lifted for joint in trial.model.source.joints):
        return total
    for link in trial.model.source.links:
        if link.lifted and trial.model.frames[link.name].body != WORLD:
            T = trial.run("forward_kinematics", trial.q, frame=link.name)
            m, h = link.inertia.m, np.array(list(link.inertia.h), dtype=float)
            total += link.lifted * (T[:3, :3] @ h + m * T[:3, 3])
    return total


def lift(trial: Trial) -> np.ndarray:
    """Return the joint torques of gravity compensation, computed from center-of-mass Jacobians."""
    model, total = trial.model, np.zeros(trial.model.nv)
    g = np.array(list(model.gravity_vector))
    for link in model.source.links:
        if link.lifted and link.inertia.m and model.frames[link.name].body != WORLD:
            center = tuple(float(x) / link.inertia.m for x in link.inertia.h)
            J = trial.run("jacobian", trial.q, frame=link.name, at=center)
            total -= link.lifted * link.inertia.m * (J[3:].T @ g)
    for i, place in model.velocity_slices.items():
        if model.bodies[i].data.lifted:
            total[place] = 0.0
    return total


def newton_and_euler(trial: Trial) -> Iterator[Comparison]:
    """Check joint reactions against the momentum balance of the outboard links.

    A reaction equals the momentum rate of these links minus gravity and external wrenches on them.
    """
    if not trial.model.bodies:
        return
    model, g = trial.model, np.array(list(trial.model.gravity_vector))
    loaded = trial.robot.tool
    q = trial.q

    def momenta(at: Trial) -> np.ndarray:
        return np.array([link.momentum for link in links(at)])

    each, rates = links(trial), trial.rate(momenta)
    point = trial.run("forward_kinematics", q, frame=loaded)[:3, 3]
    push = np.concatenate([trial.wrench[:3] + np.cross(point, trial.wrench[3:]), trial.wrench[3:]])
    found = trial.run("joint_reactions", q, trial.qd, trial.qdd, f_ext=trial.load)
    expected = np.zeros_like(found)
    for row, i in enumerate(model.in_file_order):
        carried = set(model.subtree(i))
        wrench = np.zeros(6)
        for link, rate in zip(each, rates, strict=True):
            if link.body in carried:
                wrench += rate
                wrench[:3] -= np.cross(link.moment, g)
                wrench[3:] -= link.mass * g
        if model.frames[loaded].body in carried:
            wrench -= push
        expected[row] = at_joint(trial, i, wrench)
    units = trial.units.wrench
    yield Comparison("joint_reactions", "spatial", found, expected, trial.force, units=units)


def at_joint(trial: Trial, i: int, wrench: np.ndarray) -> np.ndarray:
    """Return a wrench about joint i in the link's axes, given the wrench about the world origin."""
    body = trial.model.bodies[i]
    T = trial.run("forward_kinematics", trial.q, frame=body.name)
    R, p = T[:3, :3], T[:3, 3] + T[:3, :3] @ np.array(list(body.data.child_pose.r))
    return np.concatenate([R.T @ (wrench[:3] - np.cross(p, wrench[3:])), R.T @ wrench[3:]])


def power_balance(trial: Trial) -> Iterator[Comparison]:
    """Check that joint power equals the rate of change of the total energy, without damping."""
    model, q, qd, qdd = trial.model, trial.q, trial.qd, trial.qdd
    rate = trial.rate(
        lambda at: at.run("kinetic_energy", at.q, at.qd) + at.run("potential_energy", at.q)
    )
    power = float(trial.tau @ qd)
    if model.driven:
        lam = trial.force * np.random.default_rng(0).normal(size=len(trial.units.closing))
        lam *= model.steady_rows
        driving = trial.run("driving_forces", q, qd, qdd, lam)
        speeds = model.velocities(qd.tolist(), 1)
        power += float(driving @ np.concatenate([list(speeds[i]) for i in model.driven]))
        power -= float(lam @ trial.run("loop_rate", q))
    size = trial.force * trial.speed
    yield Comparison("inverse_dynamics", "power", power, rate, size)


def terms_of_motion(trial: Trial) -> Iterator[Comparison]:
    """Check the equations of motion tau = M qdd + h - J'F and h = C qd + g.

    Also check that forward dynamics returns qdd for the torques tau.
    """
    q, qd, qdd, M = trial.q, trial.qd, trial.qdd, trial.M
    h = trial.run("bias_forces", q, qd)
    yield trial.forces("bias_forces", "M qdd + h", M @ qdd + h, trial.tau)
    inertia = trial.units.inertia
    yield Comparison("mass_matrix", "symmetry", M, M.T, units=inertia)
    if trial.has("forward_dynamics"):
        solver, lost = trial.ways("forward_dynamics")[0].name, trial.inverting
        found = trial.run("forward_dynamics", q, qd, trial.tau, method=solver)
        yield trial.forces("forward_dynamics", "back", M @ found, M @ qdd, lost)
        W = trial.run("mass_matrix_inverse", q)
        if np.all(np.isfinite(W)):
            yield Comparison("mass_matrix_inverse", "M W M", M @ W @ M, M, 0.0, lost, inertia)
    if trial.model.driven:
        return
    g = trial.run("gravity_forces", q)
    rest = trial.run("bias_forces", q, 0.0 * qd)
    bent = trial.run("spring_forces", q) - lift(trial)
    yield trial.forces("gravity_forces", "at rest", g + bent, rest)
    C = trial.run("coriolis_matrix", q, qd)
    h = h - bent
    yield trial.forces("coriolis_matrix", "C qd", C @ qd, h - g)
    for way in trial.ways("closed_form"):
        D, S, G = trial.run("closed_form", q, method=way.name)
        yield Comparison("closed_form", f"{way.name}, D", D, M, units=inertia)
        force = np.einsum("ijk,j,k->i", S, qd, qd)
        yield trial.forces("closed_form", f"{way.name}, C", force, h - g)
        yield trial.forces("closed_form", f"{way.name}, G", G, g)
    for frame in trial.frames:
        J = trial.run("jacobian", q, frame=frame)
        pushed = trial.run("inverse_dynamics", q, qd, qdd, f_ext=trial.on(frame))
        expected = trial.tau - J.T @ trial.wrench
        yield trial.forces("inverse_dynamics", "f_ext", pushed, expected)


def dissipation(trial: Trial) -> Iterator[Comparison]:
    """Check that damping d and dry friction f add exactly d qd + f sign(qd) to joint torques."""
    model, q, qd = trial.model, trial.q, trial.qd
    own = model.velocities(qd.tolist(), 1)
    lost = {
        i: Vector(
            tuple(body.data.damping * x + body.data.friction * float(np.sign(x)) for x in own[i])
        )
        for i, body in enumerate(model.bodies)
    }
    resistance = _efforts(model, lost)
    for way in trial.ways("inverse_dynamics"):
        found = trial.ask(trial.whole, "inverse_dynamics", q, qd, trial.qdd, method=way.name)
        yield trial.forces("inverse_dynamics", way.name, found, trial.tau + resistance)


def _efforts(model: Model, parts: dict[int, Vector]) -> np.ndarray:
    """Assemble the forces and torques of individual joints into generalized forces (nv,)."""
    found = np.zeros(model.nv)
    for i, part in model.efforts(parts).items():
        found[model.velocity_slices[i]] = list(part)
    return found


def factors(trial: Trial) -> Iterator[Comparison]:
    """Check factors of the mass matrix M, and the inverse operational-space inertia J M^-1 J'."""
    M, inertia, lost = trial.M, trial.units.inertia, trial.inverting
    if trial.has("ltdl_factors"):
        L, D = trial.run("ltdl_factors", trial.q)
        yield Comparison("ltdl_factors", "L'DL", L.T @ np.diag(D) @ L, M, units=inertia)
        L = trial.run("ltl_factor", trial.q)
        yield Comparison("ltl_factor", "L'L", L.T @ L, M, units=inertia)
    if trial.has("operator_factors"):
        A, B, D = trial.run("operator_factors", trial.q)
        yield Comparison("operator_factors", "A D A'", A @ D @ A.T, M, 0.0, lost, inertia)
        pure = np.outer(trial.units.effort, trial.units.rate)
        size = float(np.max(np.abs(A * pure), initial=0.0))
        yield Comparison("operator_factors", "A B", A @ B, np.eye(len(M)), size, lost, pure)
    if not trial.model.idle and not trial.model.driven:
        name = "operational_inertia_inverse"
        for frame in trial.frames:
            J = trial.run("jacobian", trial.q, frame=frame)
            expected = J @ np.linalg.solve(M, J.T) if len(M) else np.zeros((6, 6))
            for way in trial.ways(name):
                found = trial.run(name, trial.q, frame=frame, method=way.name)
                units = trial.units.accelerance
                yield Comparison(name, way.name, found, expected, 0.0, lost, units)


def inertia_parameters(trial: Trial) -> Iterator[Comparison]:
    """Check that the regressor times the inertial parameters gives the generalized forces.

    The regressor excludes rotors, springs and gravity compensation, so their forces are added.
    """
    model = trial.model
    numbers: list[Any] = []
    for i in model.in_file_order:
        I = model.frames[model.bodies[i].name].placement @ model.bodies[i].inertia
        numbers += [I.m, *I.h, *I.I]
    qd, qdd = model.velocities(trial.qd.tolist(), 1), model.velocities(trial.qdd.tolist(), 2)
    rotors = {
        i: body.joint.rotor(qdd[i]) + body.joint.turning(qd[i]) @ qd[i]
        for i, body in enumerate(model.parts)
    }
    Y = trial.run("regressor", trial.q, trial.qd, trial.qdd)
    found = Y @ np.array(numbers, dtype=float) + _efforts(model, rotors)
    found += trial.run("spring_forces", trial.q) - lift(trial)
    yield trial.forces("regressor", "newton-euler-vector", found, trial.tau)
