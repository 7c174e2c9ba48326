"""Model changes by method "fastest", which reduce operations of the equation of motion.

Joint torques and the mass matrix of the changed model, computed with floats, must agree with those
of the original model to 1e-12 (relative).
"""

from dataclasses import replace
from importlib.metadata import files
from pathlib import Path

import numpy as np
import pytest
from support import close, direct, relative, state, tree, ways

import chasles
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import about
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Model
from chasles.model.passes import (
    Rotor,
    by_products,
    equivalent,
    is_round,
    natural_units,
    still_rotors,
    summed_angles,
    turns,
)
from chasles.robots import general_chain, microbot, planar, puma560, stanford_arm

ROUNDING = 1e-12


def published(name: str) -> chasles.Robot:
    found = [f for f in files("example-robot-data") or () if f.name == name]
    return chasles.load(Path(str(found[0].locate())))


def same_motion(changed: Model, given: Model, seed: int) -> None:
    robot = chasles.Robot(given.source)
    q, qd, qdd = state(robot, seed)
    for function, arrays in (("inverse_dynamics", (q, qd, qdd)), ("mass_matrix", (q,))):
        for method in ("spatial", "parallel-axes"):
            found = direct(changed, function, *arrays, method=method)
            close(found, direct(given, function, *arrays, method="spatial"), ROUNDING)


# Units -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_units_of_length_change_no_torque(seed: int) -> None:
    for robot in (puma560(), general_chain(6), published("ur5_robot.urdf")):
        model = robot.model.frictionless()
        changed = natural_units(model)
        assert changed != model
        same_motion(changed, model, seed)


def test_the_most_frequent_offset_is_one() -> None:
    """Two offsets become 1, because upper arm and forearm of the PUMA have equal lengths."""
    offsets = [x for b in natural_units(puma560().model).bodies for x in b.joint.placement.r]
    assert sum(abs(x) == 1.0 for x in offsets) == 2


@pytest.mark.parametrize("build", [stanford_arm, lambda: tree(6, 1, floating=True)])
def test_units_stay_where_something_slides(build) -> None:
    """Units are not changed for prismatic joints, whose forces would have another unit."""
    model = build().model
    assert natural_units(model) is model


# Round bodies ----------------------------------------------------------------------------------


def test_round_bodies_need_no_angle() -> None:
    """Link 6 of the PUMA is treated as a rotor: equal moments, and center of mass on the axis."""
    model = puma560().model.frictionless()
    still = still_rotors(model)
    assert [isinstance(body.joint, Rotor) for body in still.bodies] == [False] * 5 + [True]
    same_motion(still, model, 5)
    count = chasles.cost(puma560(), "inverse_dynamics")
    assert count.sines_and_cosines == 8  # the first angle, about gravity, is not needed either


@pytest.mark.parametrize(
    "inertia",
    [
        RigidInertia(1.0, Vector.of(0.1, 0.0, 0.2), Symmetric(0.3, 0.3, 0.2, 0.0, 0.0, 0.0)),
        RigidInertia(1.0, Vector.of(0.0, 0.0, 0.2), Symmetric(0.3, 0.4, 0.2, 0.0, 0.0, 0.0)),
        RigidInertia(1.0, Vector.of(0.0, 0.0, 0.2), Symmetric(0.3, 0.3, 0.2, 0.01, 0.0, 0.0)),
        RigidInertia(1.0, Vector.of(0.0, 0.0, 0.2), Symmetric(0.3, 0.3, 0.2, 0.0, 0.01, 0.0)),
        RigidInertia(1.0, Vector.of(0.0, 0.0, 0.2), Symmetric(0.3, 0.3, 0.2, 0.0, 0.0, 0.01)),
    ],
)
def test_what_is_not_round_turns(inertia: RigidInertia) -> None:
    """Inertias that change under rotation about z are not treated as round."""
    assert not is_round(inertia)
    turned = Transform(about(2, 0.4), Vector.zero()) @ inertia
    assert relative([*turned.h, *turned.I], [*inertia.h, *inertia.I]) > 1e-3
    model = puma560().model
    last = replace(model.bodies[-1], inertia=inertia)
    still = still_rotors(replace(model, bodies=(*model.bodies[:-1], last)))
    assert not any(isinstance(body.joint, Rotor) for body in still.bodies)


def test_forces_from_outside_turn_with_a_round_body() -> None:
    """A force on the tool of the PUMA, in tool axes, makes torques depend on the last angle."""
    robot = puma560()
    q, qd, qdd = state(robot, 8)
    push = {"tool": chasles.Wrench([0.1, 0.2, 0.3, 4.0, 5.0, 6.0], axes="frame")}
    found = robot.inverse_dynamics(q, qd, qdd, f_ext=push)
    close(found, robot.inverse_dynamics(q, qd, qdd, f_ext=push, method="spatial"), ROUNDING)
    turned = q + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.5])
    assert relative(robot.inverse_dynamics(turned, qd, qdd, f_ext=push), found) > 1e-3


# Parallel axes ---------------------------------------------------------------------------------

ARMS = {
    "puma560": (puma560, {2: (1, 2)}),
    "microbot": (microbot, {2: (1, 2), 3: (1, 2, 3)}),
    "planar": (lambda: planar(4), {1: (0, 1), 2: (0, 1, 2), 3: (0, 1, 2, 3)}),
    "ur5": (lambda: published("ur5_robot.urdf"), {2: (1, 2), 3: (1, 2, 3)}),
    "general": (lambda: general_chain(5), {}),
}


@pytest.mark.parametrize("name", ARMS)
def test_parallel_axes(name: str) -> None:
    """Angles of parallel joints are added; body poses and forces stay the same."""
    build, expected = ARMS[name]
    robot = build()
    model = robot.model.frictionless()
    q, *_ = state(robot, 3)
    places = model.positions(q.tolist())
    found = turns(summed_angles(model), places)
    assert {i: t.joints for i, t in found.items() if len(t.joints) > 1} == expected
    for turn in found.values():
        X = Transform.identity()
        for j in turn.joints:
            X = model.bodies[j].joint.transform(places[j]) @ X
        close(turn.X.R.rows, X.R.rows, ROUNDING)
        close([*turn.X.r], [*X.r], ROUNDING, scale=1.0)
    same_motion(model, model, 3)


def test_summed_angles_pay() -> None:
    """Adding the angles saves operations if, and only if, a robot has parallel axes."""
    for build, plain in (("mass_matrix", "spatial"), ("inverse_dynamics", "homogeneous-link")):
        for name in ("puma560", "ur5"):
            robot = ARMS[name][0]()
            found = chasles.cost(robot, build, method="parallel-axes").flops
            assert found < chasles.cost(robot, build, method=plain).flops - 5
        general = general_chain(5)
        found = chasles.cost(general, build, method="parallel-axes").flops
        assert found == chasles.cost(general, build, method=plain).flops


# All together ----------------------------------------------------------------------------------

COUNTS = {
    "puma560": (294, 142),
    "stanford_arm": (207, 88),
    "ur5": (242, 99),
    "panda": (550, 340),
}


@pytest.mark.parametrize("name", COUNTS)
def test_multiplications_and_additions(name: str) -> None:
    """Numbers of operations do not increase.

    For the PUMA 560, inverse dynamics takes fewer than the 305 operations of Armstrong, Khatib and
    Burdick (1986), who omit terms below 1 %. They also measured the parameters that are used here.
    """
    build = {
        "puma560": puma560,
        "stanford_arm": stanford_arm,
        "ur5": lambda: published("ur5_robot.urdf"),
        "panda": lambda: published("panda.urdf").lock({"panda_finger_joint1": 0.0}),
    }
    robot, (torques, masses) = build[name](), COUNTS[name]
    assert chasles.cost(robot, "inverse_dynamics").flops <= torques
    assert chasles.cost(robot, "mass_matrix").flops <= masses


@pytest.mark.parametrize("name", ARMS)
def test_the_default_program_keeps_every_digit(name: str) -> None:
    robot = ARMS[name][0]()
    q, qd, qdd = state(robot, 4, 20)
    for function in ("inverse_dynamics", "forward_dynamics", "bias_forces", "mass_matrix"):
        arrays = {"mass_matrix": (q,), "bias_forces": (q, qd)}.get(function, (q, qd, qdd))
        named = {"forward_dynamics": "mass-matrix", "bias_forces": "newton-euler-vector"}
        expected = getattr(robot, function)(*arrays, method=named.get(function, "spatial"))
        tolerance = 1e-9 if function == "forward_dynamics" else ROUNDING
        close(getattr(robot, function)(*arrays), expected, tolerance)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("floating", [False, True])
def test_trees_of_any_joints(seed: int, floating: bool) -> None:
    """All changes combined keep the dynamics of random trees with every joint type."""
    model = tree(9, seed, floating=floating).model.frictionless()
    same_motion(natural_units(still_rotors(equivalent(model, by_products))), model, seed)


def test_a_robot_as_given_is_tried_too() -> None:
    """The default is at least as cheap as every method, also if changes to the model do not help.

    For an arm of prismatic joints, moving the origins only adds operations.
    """
    rows = [
        {"theta": 0.0, "d": 0.0, "a": 0.0, "alpha": alpha, "kind": "prismatic", "mass": 1.0}
        for alpha in (0.0, 1.2, 0.7)
    ]
    arm = chasles.from_dh(rows, convention="modified")
    for function in ("inverse_dynamics", "mass_matrix"):
        least = chasles.cost(arm, function).weight
        for method in ways(arm, function):
            assert least <= chasles.cost(arm, function, method=method).weight, method
