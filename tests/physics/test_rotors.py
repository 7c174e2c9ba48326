"""Rotors driven by several joints, with kinetic energy a/2 (g . qd)^2.

Expected values are those of the robot without rotors, plus the constant matrix a g g'.
"""

from dataclasses import replace

import numpy as np
import pytest
from support import close, direct, raises, relative, state

import chasles
from chasles.accuracy import maximal_dynamics
from chasles.algorithms import FUNCTIONS
from chasles.expr import sin
from chasles.mathematics.spatial import Transform
from chasles.model import Description, RotorData
from chasles.model.description import freedom_names

TOLERANCE = 1e-11  # condition numbers of random mass matrices are up to 1e4


def geared(source: Description, seed: int, count: int = 2) -> tuple[chasles.Robot, np.ndarray]:
    """Return a robot with rotors driven by random coordinates, and their contribution to M."""
    rng, robot = np.random.default_rng(seed), chasles.Robot(source)
    model, rotors = robot.model, []
    names = [
        name
        for i, body in enumerate(model.bodies)
        for name in freedom_names(body.data.name, body.joint.nv)
    ]
    place = {
        name: (i, k)
        for i, body in enumerate(model.bodies)
        for k, name in enumerate(freedom_names(body.data.name, body.joint.nv))
    }
    added = np.zeros((robot.nv, robot.nv))
    for n in range(count):
        chosen = tuple(rng.choice(names, size=min(3, len(names)), replace=False).tolist())
        ratios, armature = tuple(rng.uniform(-2.0, 2.0, len(chosen)).tolist()), 0.3 + n
        rotors.append(RotorData(f"rotor{n}", chosen, ratios, armature))
        g = np.zeros(robot.nv)
        for name, ratio in zip(chosen, ratios, strict=True):
            i, k = place[name]
            follow = model.bodies[i].follow
            leader, own = (i, 1.0) if follow is None else (follow.leader, follow.ratio)
            g[model.velocity_slices[leader].start + k] += ratio * own
        added += armature * np.outer(g, g)
    return chasles.Robot(replace(source, rotors=tuple(rotors))), added


def tree(seed: int, n: int = 6, **options: bool) -> Description:
    return chasles.robots.random_tree(n, seed=seed, **options).model.source


@pytest.mark.parametrize("seed", range(4))
def test_every_method_has_the_outer_product(seed: int) -> None:
    source = tree(seed, mimics=seed == 3)
    plain, (robot, added) = chasles.Robot(source), geared(source, seed)
    (q, qd, qdd), model = state(robot, seed), robot.model.frictionless()
    M = direct(plain.model, "mass_matrix", q) + added
    h = direct(plain.model.frictionless(), "bias_forces", q, qd)
    kinetic = 0.5 * qd @ M @ qd
    wanted = {
        "mass_matrix": ((q,), M),
        "mass_matrix_inverse": ((q,), np.linalg.inv(M)),
        "inverse_dynamics": ((q, qd, qdd), M @ qdd + h),
        "bias_forces": ((q, qd), h),
        "forward_dynamics": ((q, qd, M @ qdd + h), qdd),
        "kinetic_energy": ((q, qd), kinetic),
    }
    for function, (arrays, expected) in wanted.items():
        for way in FUNCTIONS[function]:
            holonomic = all(body.joint.holonomic for body in model.bodies)
            if way.followers and not (way.needs and way.needs(model, {})) and holonomic:
                found = direct(model, function, *arrays, method=way.name)
                close(found, expected, TOLERANCE)
    L, D = direct(model, "ltdl_factors", q)
    close(L.T @ np.diag(D) @ L, M, TOLERANCE)
    close(
        direct(model, "coriolis_matrix", q, qd) @ qd, h - direct(model, "gravity_forces", q), 1e-9
    )


@pytest.mark.parametrize("method", ["articulated-body", "spatial-operator"])
def test_recursions_over_the_tree_refuse_them(method: str) -> None:
    robot, _ = geared(tree(0), 0)
    q, qd, qdd = state(robot, 0)
    with raises("E-CALL-071 rotors driven by several joints"):
        robot.forward_dynamics(q, qd, qdd, method=method)


def test_derivatives_and_linear_models() -> None:
    """Forward dynamics inverts inverse dynamics, and its linearization agrees with differences."""
    robot, _ = geared(chasles.robots.puma560().model.source, 1)
    q, qd, qdd = state(robot, 1)
    tau = robot.inverse_dynamics(q, qd, qdd)
    close(robot.forward_dynamics(q, qd, tau), qdd, TOLERANCE)
    A, B = robot.linearize(q, qd, tau)
    close(B[6:] @ robot.mass_matrix(q), np.eye(6), TOLERANCE)
    step = 1e-6
    for rows, arrays in ((A[6:, :6], (q, None)), (A[6:, 6:], (None, qd))):
        differences = [
            (
                robot.forward_dynamics(*_moved(q, qd, arrays, step * unit), tau)
                - robot.forward_dynamics(*_moved(q, qd, arrays, -step * unit), tau)
            )
            / (2.0 * step)
            for unit in np.eye(6)
        ]
        close(rows, np.array(differences).T, 1e-7)
    assert robot.regressor(q, qd, qdd).shape == (6, 60)
    assert robot.joint_reactions(q, qd, qdd).shape == (6, 6)
    assert robot.moving_joints == robot.joints


def _moved(q: np.ndarray, qd: np.ndarray, which: tuple, d: np.ndarray) -> tuple:
    return (q + d if which[0] is not None else q, qd + d if which[1] is not None else qd)


def test_a_driven_joint_turns_them_too() -> None:
    """A driven joint acts on other joints through a rotor, like a joint with coordinates."""
    source = replace(
        chasles.robots.puma560().model.source,
        rotors=(RotorData("t", ("joint1", "joint3", "joint5"), (1.0, -2.0, 0.5), 0.7),),
    )
    whole = chasles.Robot(source)
    driven = whole.drive({"joint3": lambda t: sin(2.0 * t)}).at_time(0.4)
    q, qd, qdd = state(driven, 3)
    rates = (np.sin(0.8), 2.0 * np.cos(0.8), -4.0 * np.sin(0.8))
    all_of = [np.insert(own, 2, x) for own, x in zip((q, qd, qdd), rates, strict=True)]
    tau = np.delete(whole.inverse_dynamics(*all_of), 2)
    for way in FUNCTIONS["inverse_dynamics"]:
        close(driven.inverse_dynamics(q, qd, qdd, method=way.name), tau, TOLERANCE)
    close(driven.forward_dynamics(q, qd, tau), qdd, TOLERANCE)
    _, B = driven.linearize(q, qd, tau)
    close(B[5:] @ driven.mass_matrix(q), np.eye(5), TOLERANCE)


def test_known_accelerations_and_maximal_coordinates() -> None:
    robot, _ = geared(chasles.robots.puma560().model.source, 2)
    q, qd, qdd = state(robot, 2)
    tau = robot.inverse_dynamics(q, qd, qdd)
    known = [robot.joints[0], robot.joints[3]]
    given, expected = tau.copy(), qdd.copy()
    for k in (0, 3):
        given[k], expected[k] = qdd[k], tau[k]
    close(robot.hybrid_dynamics(q, qd, given, known=known), expected, TOLERANCE)
    close(maximal_dynamics(robot, q, qd, tau)[0], qdd, 1e-9)


def test_energy_is_kept() -> None:
    robot, _ = geared(chasles.robots.planar(3).model.source, 3)
    run = robot.simulate(np.array([0.3, -0.4, 0.9]), np.zeros(3), duration=1.0, dt=1e-3)
    q, qd = np.asarray(run.q), np.asarray(run.qd)
    energy = robot.kinetic_energy(q, qd) + robot.potential_energy(q)
    assert np.ptp(energy) < 1e-6 * np.max(np.abs(robot.kinetic_energy(q, qd)))


def test_locked_joints_no_longer_turn_them() -> None:
    robot, _ = geared(chasles.robots.puma560().model.source, 1)
    q, _, _ = state(robot, 1)
    rotor = robot.model.source.rotors[0]
    locked = robot.lock({rotor.freedoms[0]: q[robot.position_slice(rotor.freedoms[0])]})
    kept = [k for k, name in enumerate(robot.joints) if name != rotor.freedoms[0]]
    M = robot.mass_matrix(q)[np.ix_(kept, kept)]
    close(locked.mass_matrix(q[kept]), M, TOLERANCE)
    bare = robot.lock({name: q[robot.position_slice(name)] for name in rotor.freedoms})
    assert rotor.name not in {x.name for x in bare.model.source.rotors}


def test_a_subtree_keeps_its_share() -> None:
    """In a subtree, the joints outside are at rest, so the joints inside drive the rotor alone."""
    robot, _ = geared(chasles.robots.puma560().model.source, 1)
    link = robot.bodies[3]
    part = robot.subtree(link)
    q, _, _ = state(robot, 1)
    kept = [k for k, name in enumerate(robot.joints) if name in part.joints]
    bare = chasles.Robot(replace(part.model.source, rotors=()))
    gained = part.mass_matrix(q[kept]) - bare.mass_matrix(q[kept])
    whole = chasles.Robot(replace(robot.model.source, rotors=()))
    expected = (robot.mass_matrix(q) - whole.mass_matrix(q))[np.ix_(kept, kept)]
    close(gained, expected, TOLERANCE)


def test_a_joint_that_moves_only_a_rotor_is_no_fault() -> None:
    """A rotor on two massless joints has rank one, so one of them still moves no inertia."""
    source = chasles.robots.planar(2).model.source
    light = replace(
        source, links=tuple(replace(x, inertia=x.inertia - x.inertia) for x in source.links)
    )
    names = tuple(joint.name for joint in source.joints if joint.kind != "fixed")
    one = RotorData("one", names, (1.0, 2.0), 0.5)
    two = RotorData("two", names, (1.0, -1.0), 0.5)
    assert len(chasles.Robot(replace(light, rotors=(one,))).model.idle) == 1
    assert chasles.Robot(replace(light, rotors=(one, two))).model.idle == ()


def test_bad_rotors_are_refused() -> None:
    source = chasles.robots.planar(2).model.source
    name = next(joint.name for joint in source.joints if joint.kind != "fixed")
    for rotor, code in (
        (RotorData("r", ("nowhere",), (1.0,), 1.0), "E-MODEL-220"),
        (RotorData("r", (name,), (1.0, 2.0), 1.0), "E-MODEL-221"),
        (RotorData("r", (name,), (1.0,), -1.0), "E-MODEL-041"),
        (RotorData("r", (name,), (np.nan,), 1.0), "E-MODEL-041"),
        (RotorData(name, (name,), (1.0,), 1.0), "E-MODEL-051"),
    ):
        with raises(code):
            chasles.Robot(replace(source, rotors=(rotor,)))


@pytest.mark.parametrize("kind", ["free", "planar", "spherical"])
def test_armature_of_a_body_keeps_momentum(kind: str) -> None:
    """Armature a on all coordinates acts like a body with mass a and moments of inertia a.

    The linear momentum of the rotor is constant in the axes of the parent, as for free joints in
    MuJoCo.
    """
    source = tree(1, 1, floating=True)
    joint = replace(source.joints[0], kind=kind, armature=0.7, damping=0.0, friction=0.0)
    joint = replace(joint, pose=Transform.identity(), child_pose=Transform.identity())
    robot = chasles.Robot(replace(source, joints=(joint,), frames=())).with_gravity((0, 0, 0))
    q, qd, qdd = state(robot, 4)
    bare = chasles.Robot(
        replace(robot.model.source, joints=(replace(joint, armature=0.0),))
    ).with_gravity((0, 0, 0))
    S = np.array([list(c) for c in robot.model.bodies[0].joint.subspace(None).columns]).T
    twist, rate = S @ qd, S @ qdd
    force = 0.7 * np.concatenate([rate[:3], rate[3:] + np.cross(twist[:3], twist[3:])])
    expected = bare.inverse_dynamics(q, qd, qdd) + S.T @ force
    assert relative(robot.inverse_dynamics(q, qd, qdd), expected) < 1e-13
