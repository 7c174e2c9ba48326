"""Other body frames and regrouped inertias: the same dynamics with fewer operations."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support import close, direct, state, tree

import chasles
from chasles.algorithms.spatial.dynamics import newton_euler_vector
from chasles.expr import Scalar
from chasles.functions.tracing import trace
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.mathematics.tensor import euler_from_inertia
from chasles.model import Model
from chasles.model.joints import Revolute
from chasles.model.passes import by_moments, by_products, equivalent, sparse_frames
from chasles.robots import four_bar, puma560, quadruped, stanford_arm

ROUNDING = 1e-11
TREES = [(9, seed, floating) for seed in range(4) for floating in (False, True)]


@pytest.mark.parametrize(("n", "seed", "floating"), TREES)
def test_nothing_moves_otherwise(n: int, seed: int, floating: bool) -> None:
    """Forces, matrices and frame motions stay the same, with external forces on each frame."""
    robot = tree(n, seed, floating=floating)
    model, twin = robot.model, sparse_frames(robot.model)
    assert any(
        a.joint.placement != b.joint.placement
        for a, b in zip(model.bodies, twin.bodies, strict=True)
    )
    q, qd, qdd = state(robot, seed)
    f_ext = {name: np.random.default_rng(k).normal(size=6) for k, name in enumerate(robot.frames)}
    for function in ("inverse_dynamics", "forward_dynamics"):
        expected = direct(model, function, q, qd, qdd, f_ext=f_ext)
        close(direct(twin, function, q, qd, qdd, f_ext=f_ext), expected, 1e-9)
    for function in ("mass_matrix", "potential_energy", "center_of_mass"):
        close(direct(twin, function, q), direct(model, function, q), ROUNDING)
    for frame in robot.frames:
        for function, arrays in (
            ("forward_kinematics", (q,)),
            ("frame_acceleration", (q, qd, qdd)),
        ):
            expected = direct(model, function, *arrays, frame=frame)
            close(direct(twin, function, *arrays, frame=frame), expected, ROUNDING)


@pytest.mark.parametrize("build", [puma560, stanford_arm, quadruped], ids=lambda f: f.__name__)
def test_offsets_become_fewer(build) -> None:
    model = build().model
    twin = sparse_frames(model)
    entries = [
        sum(x != 0.0 for body in m.bodies if body.parent >= 0 for x in body.joint.placement.r)
        for m in (model, twin)
    ]
    assert entries[1] <= entries[0]


def test_loops_close_where_they_did() -> None:
    """Loop equations stay the same when the frames of their bodies move."""
    robot = four_bar()
    model = robot.model
    bodies = [
        replace(
            body, inertia=RigidInertia.from_center(1.0, Vector.of(0.3, 0.2, 0.1), body.inertia.I)
        )
        for body in model.bodies
    ]
    twin = sparse_frames(replace(model, bodies=tuple(bodies)))
    assert any(a != b for a, b in zip(model.loops, twin.loops, strict=True))
    q, qd, _ = state(robot, 1)
    for function, arrays in (
        ("loop_residual", (q,)),
        ("loop_matrix", (q,)),
        ("loop_bias", (q, qd)),
    ):
        close(direct(twin, function, *arrays), direct(model, function, *arrays), ROUNDING)


def test_axes_through_one_point_share_it() -> None:
    """Frames with intersecting axes get a common origin, wherever the file places the origins."""
    model = puma560().model
    wrist = model.bodies[5]
    E = wrist.joint.placement.E
    raised = replace(wrist.joint, placement=Transform(E, E.T @ Vector.of(0.0, 0.0, 0.3)))
    twin = sparse_frames(replace(model, bodies=(*model.bodies[:5], replace(wrist, joint=raised))))
    assert all(x == 0.0 for i in (4, 5) for x in twin.bodies[i].joint.placement.r)


def test_last_bodies_turn_to_their_centres() -> None:
    for seed in range(6):
        model = tree(9, seed).model
        twin = sparse_frames(model)
        for i, body in enumerate(twin.bodies):
            if isinstance(body.joint, Revolute) and not model.children[i]:
                assert body.inertia.h[1] == 0.0
                x, y, _ = model.bodies[i].inertia.h
                assert body.joint.offset == math.atan2(y, x)
                close(body.inertia.h[0], math.hypot(x, y), ROUNDING)
            elif isinstance(body.joint, Revolute):
                assert body.joint.offset == 0.0


def test_balanced_last_body_turns_to_its_principal_axes() -> None:
    model = puma560().model
    last = model.bodies[-1]
    tilted = replace(last.inertia.I, xx=2.0, yy=1.0, xy=0.3)
    balanced = replace(last, inertia=RigidInertia(1.0, Vector.zero(), tilted))
    twin = sparse_frames(replace(model, bodies=(*model.bodies[:-1], balanced)))
    I = twin.bodies[-1].inertia.I
    assert I.xy == 0.0
    close(sorted([I.xx, I.yy]), np.linalg.eigvalsh([[2.0, 0.3], [0.3, 1.0]]), ROUNDING)


def test_joints_keep_their_neutral_frames() -> None:
    """The two frames of a joint coincide at `neutral`, also if the joint has an angle offset."""
    joint = replace(puma560().model.bodies[0].joint, offset=0.3)
    X = joint.motion(joint.neutral())
    close(np.array(X.E.matrix().rows), np.eye(3), 1e-15)
    close(list(joint.fit(joint.motion(Vector.of(0.7)))), [0.7], 1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_no_rounding_is_left_of_what_was_regrouped(seed: int) -> None:
    """Entries that are moved to the parent are exactly zero; rounding errors cost operations."""
    for model in (tree(9, seed).model, sparse_frames(tree(9, seed).model)):
        twin = equivalent(model, by_products)
        for body in twin.bodies:
            if body.joint.kind == "revolute":
                assert euler_from_inertia(body.inertia.I).zz == 0.0
                assert (body.inertia.m, body.inertia.h[2]) == (0.0, 0.0)
        for body in equivalent(model, by_moments).bodies:
            if body.joint.kind == "revolute":
                assert body.inertia.I.yy == 0.0


def test_symbols_stay_where_they_are() -> None:
    """Parameters keep their meaning: a function compiled with parameters gives equal results."""
    robot = puma560()
    q, qd, qdd = state(robot, 3)
    names = ("link6.center", "joint3.placement", "link2.mass")
    compiled = chasles.compile(robot, "inverse_dynamics", backend="interpret", parameters=names)
    values = [robot.parameter(name) for name in names]
    close(compiled(q, qd, qdd, *values), robot.inverse_dynamics(q, qd, qdd), 1e-10)


def test_symbolic_offsets_are_not_slid() -> None:
    """A symbolic joint placement is not changed; constant placements of neighbors may change."""
    seen = []

    def record(model: Model) -> Model:
        seen.extend((model, sparse_frames(model)))
        return seen[1]

    parameters = ("joint3.placement",)
    trace(puma560().model, newton_euler_vector, parameters=parameters, prepare=record)
    given, found = (model.bodies[2].joint.placement.r for model in seen)
    assert all(isinstance(x, Scalar) for x in given)
    assert given == found


def test_origins_do_not_run_away() -> None:
    """Origins that are moved along skew axes stay near, which bounds rounding errors."""
    model = chasles.robots.general_chain(100).model
    rng = np.random.default_rng(0)
    moved = sparse_frames(model)
    before, after = (
        max(np.linalg.norm(list(body.joint.placement.r)) for body in some.bodies)
        for some in (model, moved)
    )
    assert after <= 5.0 * before
    arrays = 0.1 * rng.normal(size=(3, model.nv))
    for choice in (by_moments, by_products):
        close(
            direct(equivalent(moved, choice), "inverse_dynamics", *arrays),
            direct(model, "inverse_dynamics", *arrays, method="spatial"),
            ROUNDING,
        )
