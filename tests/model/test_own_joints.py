"""User-defined joint types: agreement with built-in types, caching, pickling, bad classes."""

import pickle
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from own_joints import Parabola, Swivel
from support import close, direct, raises, relative, ways

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.backends.llvm import kernel as llvm
from chasles.functions.tracing import signature
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import General, Rotation, about
from chasles.mathematics.spatial import Motions, RigidInertia, Transform
from chasles.model import Description, Joint, JointData, LinkData, LoopData
from chasles.model.joints import RackAndPinion, Universal, YawPitchRoll
from chasles.robots import random_tree
from chasles.robots.mechanisms import four_bar

BODY = RigidInertia.from_center(2.0, Vector.of(0.1, -0.2, 0.05), Symmetric(3, 4, 5, 0.1, 0.2, 0.3))


@dataclass(frozen=True)
class Rack(Joint):
    """Rack and pinion that defines only its motion."""

    radius: float = 0.0

    nq = nv = 1
    units = ("rad",)

    def motion(self, q: Vector) -> Transform:
        return RackAndPinion(radius=self.radius).motion(q)


class Gimbal(Joint):
    """Yaw-pitch-roll joint that defines only its motion."""

    nq = nv = 3
    units = ("rad", "rad", "rad")

    def motion(self, q: Vector) -> Transform:
        return YawPitchRoll().motion(q)


class Cardan(Joint):
    """Universal joint that defines only its motion. Its axes are x and y."""

    nq = nv = 2
    units = ("rad", "rad")

    def motion(self, q: Vector) -> Transform:
        return Universal().motion(q)


def alone(custom: Joint, **more: Any) -> Description:
    """Return a robot with one body on a user-defined joint."""
    joint = JointData("own", "custom", None, "body", custom=custom, **more)
    return Description("alone", (LinkData("body", BODY),), (joint,))


@cache
def pair() -> tuple[chasles.Robot, chasles.Robot]:
    """Return a tree with built-in joints, and the same tree with user-defined joints."""
    source = random_tree(8, 2, floating=False, fixed=False).model.source
    kinds = ("rack_and_pinion", "revolute", "yaw_pitch_roll", "spherical", "universal")
    kinds += ("prismatic", "rack_and_pinion", "yaw_pitch_roll")
    x, z = Vector.of(1.0, 0.0, 0.0), Vector.of(0.0, 0.0, 1.0)
    built, own = [], []
    for joint, kind in zip(source.joints, kinds, strict=True):
        known = replace(joint, kind=kind, axis=z, second_axis=None, pitch=0.0, radius=0.1)
        own_type = {
            "rack_and_pinion": Rack(radius=0.1),
            "yaw_pitch_roll": Gimbal(),
            "universal": Cardan(),
        }.get(kind)
        if kind == "universal":
            known = replace(known, axis=x, second_axis=Vector.of(0.0, 1.0, 0.0))
        built.append(known)
        more = {"kind": "custom", "custom": own_type, "axis": z} if own_type else {}
        own.append(replace(known, **more))
    return tuple(chasles.Robot(replace(source, joints=tuple(j))) for j in (built, own))  # type: ignore[return-value]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_motion_is_all_that_physics_needs(function: str) -> None:
    """Every method of every function gives the same results as with built-in types."""
    rng = np.random.default_rng(5)
    built, own = pair()
    q = built.random(rng)
    able = ways(built, function)
    for method in (way for way in FUNCTIONS[function] if way.name in able):
        sign = signature(method.algorithm)
        arrays: list[np.ndarray] = []
        for name in (name for name in sign.inputs if name != "f_ext"):
            given = q if name in ("q", "q0", "q1") else rng.normal(size=built.nv)
            arrays.append(given)
        given_options: dict[str, object] = {"frame": "tip", "known": ()}
        frame = {k: v for k, v in given_options.items() if k in sign.options}
        found, known = (
            direct(robot.model, function, *arrays, method=method.name, **frame)
            for robot in (own, built)
        )
        several = isinstance(known, tuple)
        for a, b in zip(found, known, strict=True) if several else [(found, known)]:
            close(a, b, 1e-10, scale=1.0)


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
def test_compiled_and_differentiated(function: str) -> None:
    rng = np.random.default_rng(6)
    robots = [chasles.Robot(alone(joint)) for joint in (Rack(radius=0.3),)]
    known = replace(alone(Rack()).joints[0], kind="rack_and_pinion", custom=None, radius=0.3)
    robots.append(chasles.Robot(replace(alone(Rack()), joints=(known,))))
    state = rng.normal(size=(3, 4, 1))
    values = [getattr(robot, function)(*state) for robot in robots]
    close(*values, 1e-13)
    slopes = [robot.derivatives(function, *state) for robot in robots]
    for a, b in zip(*slopes, strict=True):
        close(a, b, 1e-12)
    for a, b in zip(*(robot.linearize(*state) for robot in robots), strict=True):
        close(a, b, 1e-12)


def test_joints_of_ones_own_are_reversed_and_turned() -> None:
    """A user-defined joint can have another axis, and it can be reversed."""
    turned = chasles.Robot(alone(Parabola(curve=0.5), axis=Vector.of(1.0, 0.0, 0.0)))
    v = turned.frame_velocity([0.3], [2.0], frame="body")
    assert v[0] == pytest.approx(2.0 * 1.0 / (1.0 + 0.09))
    assert v[3] == pytest.approx(0.0, abs=1e-15)
    back = chasles.Robot(alone(Parabola(curve=0.5), reversed=True))
    there = chasles.Robot(alone(Parabola(curve=0.5)))
    T, B = (robot.forward_kinematics([0.3], frame="body") for robot in (there, back))
    np.testing.assert_allclose(T @ B, np.eye(4), atol=1e-15)


def test_a_quaternion_of_ones_own() -> None:
    robot = chasles.Robot(alone(Swivel(above=0.4)))
    assert (robot.nq, robot.nv) == (4, 3)
    q = robot.random(seed=3)
    place = robot.forward_kinematics(q, frame="body") @ [0.0, 0.0, 0.4, 1.0]
    np.testing.assert_allclose(place[:3], [0.0, 0.0, 0.4], atol=1e-15)
    with raises("E-CALL-037", "'own'"):
        robot.mass_matrix(np.zeros(4))


def test_it_closes_a_loop() -> None:
    """A user-defined joint can close a loop: the coupler's end moves in a groove of the rocker."""
    source = four_bar()
    loop = replace(source.loops[0], kind="custom", custom=Parabola(curve=0.5))
    robot = chasles.Robot(replace(source, loops=(loop,)))
    assert int(robot.mobility()) == 1
    q = robot.assemble([0.8])
    ends = []
    for link, X in ((loop.parent, loop.pose), (loop.child, loop.child_pose)):
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = X.R.rows, list(X.r)
        ends.append(robot.forward_kinematics(q, frame=str(link)) @ T)
    across = np.linalg.inv(ends[0]) @ ends[1]
    x, y, z = across[:3, 3]
    np.testing.assert_allclose([y, z], [0.5 * x * x, 0.0], atol=1e-13)
    assert np.arctan2(across[1, 0], across[0, 0]) == pytest.approx(np.arctan(x), abs=1e-13)


def test_locked_and_with_symbols() -> None:
    robot = chasles.Robot(alone(Parabola(curve=0.5), reversed=True))
    held = robot.lock({"own": 0.3})
    T = robot.forward_kinematics([0.3], frame="body")
    np.testing.assert_allclose(held.forward_kinematics([], frame="body"), T, atol=1e-15)
    moved = chasles.compile(
        robot, "forward_kinematics", frame="body", parameters=("own.placement",), backend="numpy"
    )
    place = np.eye(4)
    place[:3, 3] = [1.0, 2.0, 3.0]
    np.testing.assert_allclose(moved(np.array([0.3]), place), place @ T, atol=1e-15)


def test_other_libraries_have_no_such_joints() -> None:
    own = chasles.Robot(alone(Parabola()))
    with raises("E-CONVENTION-002", "'own'", "'alone'"):
        chasles.conventions.pinocchio(own)
    joint = replace(alone(Parabola()).joints[0], kind="revolute", custom=None, reversed=True)
    back = chasles.Robot(replace(alone(Parabola()), joints=(joint,)))
    with raises("E-CONVENTION-001"):
        chasles.conventions.pinocchio(back)
    message = chasles.conventions.to_joint_state(own, [0.3], [1.0])
    assert message["name"] == ["own"]
    assert message["velocity"] == [1.0]


# Pickling and caching ----------------------------------------------------------------------------


def test_pickled_where_the_class_can_be_imported() -> None:
    robot = chasles.Robot(alone(Parabola(curve=0.7)))
    again = pickle.loads(pickle.dumps(robot))
    assert np.array_equal(again.mass_matrix([0.2]), robot.mass_matrix([0.2]))
    compiled = pickle.loads(pickle.dumps(chasles.compile(robot, "mass_matrix")))
    assert np.array_equal(compiled(np.array([0.2])), robot.mass_matrix([0.2]))


def made(name: str, factor: float) -> Joint:
    """Return a joint of a new class. Classes with equal names and code differ in `factor`."""

    class Hidden(Joint):
        nq = nv = 1
        units = ("rad",)

        def motion(self, q: Vector) -> Transform:
            return Transform(about(2, q[0] * factor), Vector.zero())

    Hidden.__qualname__ = Hidden.__name__ = name
    return Hidden()


def test_two_classes_of_one_name_are_two() -> None:
    slow, fast = (chasles.Robot(alone(made("Turn", factor))) for factor in (1.0, 3.0))
    assert repr(slow.model.source) == repr(fast.model.source)
    q = np.array([0.2])
    assert fast.mass_matrix(q)[0, 0] == pytest.approx(9.0 * slow.mass_matrix(q)[0, 0])


def test_the_same_type_finds_its_code_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = chasles.compile(chasles.Robot(alone(made("Turn", 5.0))), "mass_matrix")
    monkeypatch.setattr(llvm, "compile", None)  # nothing is compiled a second time
    again = chasles.compile(chasles.Robot(alone(made("Turn", 5.0))), "mass_matrix")
    assert relative(again(np.array([0.2])), first(np.array([0.2]))) == 0.0


# Bad classes -------------------------------------------------------------------------------------


def changed(**parts: Any) -> Joint:
    """Return a parabola joint with some attributes replaced."""
    return type("Bad", (Parabola,), parts)()


def grown(q: Vector) -> Rotation:
    return Rotation((General(Matrix.identity() * (1.0 + q[0])),))


def scaled(self: Joint, q: Vector) -> Motions:
    return Motions(tuple(s * 2.0 for s in Joint.subspace(self, q).columns))


BAD: dict[str, tuple[Joint, str]] = {
    "no motion": (changed(motion=Joint.motion), "E-JOINT-001 'own'"),
    "not at rest": (
        changed(motion=lambda self, q: Transform(about(2, q[0] + 1.0), Vector.zero())),
        "E-JOINT-010",
    ),
    "no rotation": (
        changed(motion=lambda self, q: Transform(about(2, q[0]).then(grown(q)), Vector.zero())),
        "E-JOINT-010",
    ),
    "S": (changed(subspace=scaled), "E-JOINT-010"),
    "rates": (
        changed(subspace_rates=lambda self, q, rates: [self.subspace(q)] * 3),
        "E-JOINT-010 subspace_rates",
    ),
    "rank": (
        changed(nq=2, nv=2, units=("m", "m")),
        "E-JOINT-002",
    ),
    "difference": (
        changed(difference=lambda self, a, b: a - b),
        "E-JOINT-010",
    ),
    "units": (changed(units=("m", "m")), "E-JOINT-005 'rad'"),
    "unknown unit": (changed(units=("deg",)), "E-JOINT-005 'rad'"),
    "quaternion": (changed(units=("1",)), "E-JOINT-006 '1'"),
    "nv": (changed(nv=2), "E-JOINT-007"),
    "init": (changed(__init__=lambda self: None), "E-JOINT-003"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_types(fault: str) -> None:
    joint, message = BAD[fault]
    with raises(message) as caught:
        chasles.Robot(alone(joint))
    assert "joint 'own'" in str(caught.value)


def test_what_depends_on_the_way_is_named() -> None:
    for parts in ({"holonomic": False}, {"path": (0,)}, {"holonomic": False, "path": (7,)}):
        with raises("E-JOINT-009"):
            chasles.Robot(alone(changed(**parts)))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"constraint": Joint.constraint}, "E-JOINT-001 'pin'"),
        ({"fit": Joint.fit}, "E-JOINT-001 'pin'"),
        ({"fit": lambda self, X: Vector.of(X.r[1])}, "E-JOINT-010"),
        ({"holonomic": False}, "E-JOINT-008"),
    ],
)
def test_bad_loop_types(parts: dict[str, Any], message: str) -> None:
    source = four_bar()
    loop: LoopData = replace(source.loops[0], kind="custom", custom=changed(**parts))
    with raises(message):
        chasles.Robot(replace(source, loops=(loop,)))


@pytest.mark.parametrize(
    "change", [{"kind": "revolute"}, {"custom": None}, {"custom": Parabola}, {"custom": "Groove"}]
)
def test_kind_and_custom_go_together(change: dict[str, Any]) -> None:
    source = alone(Parabola())
    joint = replace(source.joints[0], **change)
    with raises("E-MODEL-042", "'own'", "'custom'"):
        chasles.Robot(replace(source, joints=(joint,)))
