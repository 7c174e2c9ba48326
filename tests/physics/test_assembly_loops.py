"""Loops, couplings and velocity constraints in dynamics by assembly.

The results agree with those of `multipliers`, or of `minimal` if the mass matrix of the tree is
singular.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chains import spatial
from mechanisms import MECHANISMS, mechanism, motion
from support import close, direct, raises
from test_assembly import WAYS, heavy, mixed, with_inertia

import chasles
from chasles.accuracy import maximal_dynamics
from chasles.errors import ChaslesError
from chasles.expr import cos, sin
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import LOOP_JOINTS, LoopData, Mimic, Model, coupling, gear
from chasles.model.auxiliary import auxiliary_inertias
from chasles.robots import general_chain, planar

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]
JOINTS = sorted(set(LOOP_JOINTS) - {"free", "continuous"})
"""Types of loop joints that constrain the motion, without duplicates."""


def solve(model: Model, arrays: Arrays, method: str, **options: Any) -> list[np.ndarray]:
    """Return qdd, the multipliers and the health of a model whose loops are selected."""
    return direct(model, "constrained_dynamics", *arrays, method=method, **options)


def agree(robot: chasles.Robot, arrays: Arrays, tolerance: float = 1e-9) -> None:
    """Assert that all assemblies agree with another method, with wrenches on two links."""
    model = robot.mechanism.closed_by().model.at(0.7)
    rng = np.random.default_rng(1)
    names = {robot.bodies[0], robot.bodies[-1]}
    f_ext = {name: rng.normal(size=6) for name in sorted(names)}
    oracle = "minimal" if model.idle else "multipliers"
    for stabilization in (0.0, 0.1):
        options = {"f_ext": f_ext, "stabilization": stabilization}
        qdd, lam, health = solve(model, arrays, oracle, **options)
        for way in WAYS:
            found = solve(model, arrays, way, **options)
            close(found[0], qdd, tolerance)
            close(found[1], lam, tolerance)
            same = not auxiliary_inertias(model)  # they change the margin to a singularity
            close(found[2][: 1 + same], health[: 1 + same], 1e-8, scale=1.0)


def consistent(robot: chasles.Robot, q: np.ndarray, seed: int) -> Arrays:
    """Return q, random velocities that satisfy the constraints, and random torques."""
    rng, model = np.random.default_rng(seed), robot.model.at(0.7)
    K, b = direct(model, "loop_matrix", q), direct(model, "loop_rate", q)
    v = rng.normal(size=robot.nv)
    return q, v + np.linalg.pinv(K, rcond=1e-9) @ (b - K @ v), rng.normal(size=robot.nv)


# Loops -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rotors", [False, True])
@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms(name: str, rotors: bool) -> None:
    robot = heavy(mechanism(name)) if rotors else mechanism(name)
    q, qd, tau = motion(name)
    agree(robot, (q[0], qd[0], tau[0]))


@pytest.mark.parametrize("kind", JOINTS)
def test_loop_joints(kind: str) -> None:
    source, q = spatial(kind, 1)
    robot = chasles.Robot(source)
    agree(robot, consistent(robot, np.asarray(q), 2))


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "stewart"])
def test_massless_links_in_loops(name: str) -> None:
    """Any link may be massless, even if the loop joint is at this link."""
    robot = mechanism(name)
    q, qd, tau = motion(name)
    lights = [with_inertia(robot, RigidInertia.zero(), link) for link in robot.bodies]
    assert any(light.model.idle for light in lights)
    for light in lights:
        agree(light, (q[0], qd[0], tau[0]))


def test_mechanisms_that_move_without_inertia() -> None:
    names = ("left", "left_coupler", "right_coupler")
    robot = with_inertia(mechanism("five_bar"), RigidInertia.zero(), *names)
    q, still = robot.assemble([0.8] * len(robot.independent)), np.zeros(robot.nv)
    for way in WAYS:
        with raises("E-LOOP-017 'five_bar'"):
            robot.constrained_dynamics(q, still, still, method=way)


@pytest.mark.parametrize("way", WAYS)
def test_an_independent_oracle(way: str) -> None:
    """Compiled methods agree with Newton-Euler equations of all bodies with joint constraints."""
    robot, (q, qd, tau) = mechanism("five_bar"), motion("five_bar")
    qdd, lam = robot.constrained_dynamics(q, qd, tau, method=way)
    close(qdd, maximal_dynamics(robot, q, qd, tau)[0], 1e-9)
    close(lam, robot.constrained_dynamics(q, qd, tau, method="direct")[1], 1e-9)


# Couplings and mimic joints ----------------------------------------------------------------------

COUPLINGS = {
    "gear": gear("belt", "joint3", {"joint2": 0.5}),
    "differential": gear("belt", "joint3", {"joint1": 0.5, "joint4": -2.0}),
    "cam": coupling("cam", ["joint2", "joint4"], lambda a, b: sin(a) - cos(2.0 * a) * b),
    "two": coupling("two", ["joint1", "joint2", "joint4"], lambda a, b, c: (a * b - c, b + c * c)),
    "timed": coupling("timed", ["joint2", "joint4"], lambda a, b, t: a - b * b - 0.3 * sin(t)),
    "knife": coupling(
        "knife", ["joint1"], lambda a, u, v: u * cos(a) - v * sin(a), rates=["joint3", "joint4"]
    ),
    "height": coupling("height", [], lambda tool: tool.position[2] - 0.1, frames=["tool"]),
    "rail": coupling("rail", [], lambda tool: tool.velocity[0] - 0.1, frames=["tool"]),
}
"""Holonomic constraints, with one or two equations and with time, and velocity constraints."""


def start(robot: chasles.Robot, seed: int) -> np.ndarray:
    """Return a configuration that satisfies the constraints at t = 0.7, by Newton steps."""
    model, q = robot.model.at(0.7), 0.5 * robot.random(np.random.default_rng(seed))
    for _ in range(50):
        K, residual = direct(model, "loop_matrix", q), direct(model, "loop_residual", q)
        q = q - np.linalg.pinv(K) @ residual
    assert np.max(np.abs(residual)) < 1e-12
    return q


@pytest.mark.parametrize("massless", [False, True])
@pytest.mark.parametrize("name", COUPLINGS)
def test_couplings(name: str, massless: bool) -> None:
    robot = heavy(general_chain(5)).with_couplings(COUPLINGS[name])
    robot = with_inertia(robot, RigidInertia.zero(), "link3", "link5") if massless else robot
    agree(robot, consistent(robot, start(robot, 3), 4))


def test_a_gear_is_a_mimic_joint() -> None:
    """Accelerations agree, and the armature of the follower is included in both cases."""
    source = heavy(planar(3)).model.source
    follower = Mimic("joint2", 0.5)
    joints = tuple(replace(j, mimic=follower) if j.name == "joint3" else j for j in source.joints)
    bound = chasles.Robot(replace(source, joints=joints))
    geared = chasles.Robot(source).with_couplings(gear("belt", "joint3", {"joint2": 0.5}))
    q, qd, tau = np.random.default_rng(5).normal(size=(3, 2))
    full = [np.array([*x, 0.5 * x[1]]) for x in (q, qd)]
    model = geared.mechanism.closed_by().model
    for way in WAYS:
        expected = direct(bound.model, "forward_dynamics", q, qd, tau, method=way)
        qdd, *_ = solve(model, (*full, np.array([*tau, 0.0])), way)
        close(qdd[:2], expected, 1e-11)


# Everything together -----------------------------------------------------------------------------


def tied(seed: int) -> tuple[chasles.Robot, np.ndarray]:
    """Return a robot as in `mixed`, with a loop and couplings, in a configuration that fits."""
    rng, robot = np.random.default_rng(seed), mixed(seed)
    model, q, names = robot.model, robot.random(rng), [None, *robot.bodies]
    a, b = (names[k] for k in sorted(rng.choice(len(names), size=2, replace=False)))
    start, end = (
        np.eye(4) if name is None else direct(model, "forward_kinematics", q, frame=name)
        for name in (a, b)
    )
    T = np.linalg.inv(start) @ end
    pose = Transform.from_pose(Matrix(tuple(map(tuple, T[:3, :3]))), Vector(tuple(T[:3, 3])))
    kind = str(rng.choice(["spherical", "revolute", "universal", "cylindrical"]))
    loops = (LoopData("pin", kind, a, b, pose=pose),) * int(rng.integers(2))
    scalar = [n for n in robot.joints if model.bodies[model.mover(n)].joint.nv == 1][:3]
    here = [float(q[robot.position_slice(name)][0]) for name in scalar]

    def cam(x: Any, y: Any, z: Any) -> Any:
        return (x - here[0]) - 0.7 * (y - here[1]) + z * z - here[2] ** 2

    def knife(x: Any, u: Any, v: Any) -> Any:
        return u * (1.0 + x * x) - v * x

    couplings = ()
    if len(scalar) == 3:
        slip = coupling("knife", scalar[:1], knife, rates=scalar[:2])
        couplings = (coupling("cam", scalar, cam), slip)
    source = replace(model.source, loops=loops, couplings=couplings)
    return chasles.Robot(source), q


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_random_mechanisms(first: int) -> None:
    """Loops, couplings, mimic joints, rotors and singular inertias agree in combination.

    Mechanisms without constraints or degrees of freedom, or with a singular mass matrix, are
    omitted.
    """
    tested = 0
    for seed in range(first, first + 20):
        robot, q = tied(seed)
        if not robot.model.constraints:
            continue
        try:
            model = robot.mechanism.closed_by().model
        except ChaslesError:
            continue
        K = direct(model, "loop_matrix", q)[list(model.closure.rows)]
        N = np.linalg.svd(K)[2][len(K) :]
        H = N @ direct(model, "mass_matrix", q) @ N.T
        if len(H) and np.linalg.cond(H) < 1e6:
            agree(robot, consistent(robot, q, seed))
            tested += 1
    assert tested > 5


def test_a_loop_without_independent_equations() -> None:
    """A second hinge on the axis of the first does not change the motion, with any method."""
    arm = planar(2)
    source = arm.model.source
    hinge = source.joints[0]
    twin = LoopData("twin", "revolute", hinge.parent, hinge.child, hinge.pose, hinge.axis)
    closed = chasles.Robot(replace(source, loops=(twin,)))
    state = [0.1, 0.2], [0.3, 0.4], [1.0, 2.0]
    for way in ("multipliers", "direct", "minimal", *WAYS):
        qdd, multipliers = closed.constrained_dynamics(*state, method=way)
        close(qdd, arm.forward_dynamics(*state), 1e-12)
        assert not np.any(multipliers)
