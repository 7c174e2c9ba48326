"""`verify` passes for unusual robots, or states what it cannot check."""

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support import raises

import chasles
from chasles.checks import trial as trials
from chasles.checks.verify import Result, checks, left_out, results
from chasles.expr import Number
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import Description, JointData, Limits, LinkData, LoopData, gear

built = chasles.robots


def chain(*kinds: str, masses: tuple[float, ...] = (), **data: object) -> Description:
    """Return a chain of links with the given joint types, joint data and masses (default 1 kg)."""
    links, joints = [], []
    axes = (0.0, 0.0, 1.0), (0.6, 0.8, 0.0), (0.0, 1.0, 0.0)
    for k, kind in enumerate(kinds):
        mass = masses[k] if masses else 1.0
        inertia = solid(mass) if mass else RigidInertia.zero()
        links.append(LinkData(f"link{k}", inertia, massless=not mass))
        parent, pose = f"link{k - 1}" if k else None, at(0.3, 0.1, -0.2)
        axis = Vector.of(*axes[k % 3])
        joints.append(JointData(f"joint{k}", kind, parent, f"link{k}", pose, axis, **data))
    return Description("odd", tuple(links), tuple(joints))


def solid(mass: float) -> RigidInertia:
    moments = Symmetric(*(0.01 * mass * x for x in (1.0, 1.1, 1.3, 0.05, 0.02, -0.03)))
    return RigidInertia.from_center(mass, Vector.of(0.02, -0.03, 0.05), moments)


def at(x: float, y: float, z: float) -> Transform:
    return Transform(Rotation(), Vector.of(x, y, z))


def scaled(robot: chasles.Robot, length: float, mass: float) -> chasles.Robot:
    """Return a robot scaled by factors of length and mass, without rotors."""
    source = robot.model.source

    def far(X: Transform) -> Transform:
        return Transform(X.E, X.r * length)

    def heavy(I: RigidInertia) -> RigidInertia:
        return RigidInertia(I.m * mass, I.h * (mass * length), I.I * (mass * length**2))

    def joint(data: JointData) -> JointData:
        slides = data.kind == "prismatic"
        limits = data.limits
        if slides:
            limits = replace(limits, lower=limits.lower * length, upper=limits.upper * length)
        sizes = {"pitch": data.pitch * length, "radius": data.radius * length}
        poses = {"pose": far(data.pose), "child_pose": far(data.child_pose)}
        return replace(data, limits=limits, **poses, **sizes, armature=0.0)

    return chasles.Robot(
        replace(
            source,
            links=tuple(replace(link, inertia=heavy(link.inertia)) for link in source.links),
            joints=tuple(map(joint, source.joints)),
            frames=tuple(replace(frame, pose=far(frame.pose)) for frame in source.frames),
            loops=tuple(map(joint, source.loops)),
        )
    )


def twice(robot: chasles.Robot) -> chasles.Robot:
    """Return a robot in which every loop is closed twice by equal joints."""
    source = robot.model.source
    again = tuple(replace(loop, name=f"{loop.name} again") for loop in source.loops)
    return chasles.Robot(replace(source, loops=source.loops + again))


def pushed(t: Number) -> Number:
    return 0.3 + 0.5 * t * t


ONE = chasles.Robot(chain("revolute"))
TWO = chasles.Robot(chain("revolute", "revolute"))
SLIDES = chasles.Robot(chain("revolute", "prismatic", "revolute"))
GEARS = gear("gear", "joint1", {"joint0": 0.6}), gear("more", "joint1", {"joint0": 0.6})
BARS = built.four_bar()

ODD: dict[str, Callable[[], chasles.Robot]] = {
    "no joints": lambda: chasles.Robot(Description("plate", (LinkData("plate", solid(1.0)),), ())),
    "only fixed": lambda: chasles.Robot(chain("fixed", "fixed")),
    "one link": lambda: ONE,
    "a point mass": lambda: chasles.Robot(
        replace(
            ONE.model.source,
            links=(
                LinkData(
                    "link0",
                    RigidInertia.from_center(1.0, Vector.of(0.0, 0.3, 0.0), Symmetric.zero()),
                ),
            ),
        )
    ),
    "no gravity": lambda: built.random_tree(3, 3).with_gravity((0.0, 0.0, 0.0)),
    "loops without gravity": lambda: BARS.with_gravity((0.0, 0.0, 0.0)),
    "masses unknown": lambda: chasles.Robot(replace(SLIDES.model.source, massless=True)),
    "a massless link between": lambda: chasles.Robot(
        chain("revolute", "revolute", "prismatic", masses=(0.0, 1.0, 1.0))
    ),
    "only rotors": lambda: chasles.Robot(
        chain("revolute", "revolute", masses=(0.0, 0.0), armature=0.1)
    ),
    "no limits": lambda: chasles.Robot(chain("continuous", "prismatic", "cylindrical")),
    "a joint that cannot move": lambda: chasles.Robot(chain("revolute", limits=Limits(0.5, 0.5))),
    "limits far away": lambda: chasles.Robot(
        chain("revolute", "prismatic", limits=Limits(-1e6, 1e6))
    ),
    "a floating body": lambda: chasles.Robot(chain("free")),
    "only spherical": lambda: chasles.Robot(chain("spherical", "spherical")),
    "only planar": lambda: chasles.Robot(chain("planar", "planar")),
    "only couplings": lambda: SLIDES.with_couplings(GEARS[0]),
    "the same gear twice": lambda: TWO.with_couplings(*GEARS),
    "only driven": lambda: TWO.drive({"joint0": pushed, "joint1": pushed}),
    "over-constrained": lambda: twice(BARS),
    "welded": lambda: TWO.with_loops(
        LoopData("weld", "fixed", "link0", "link1", at(0.3, 0.1, -0.2))
    ),
    "micrometres": lambda: scaled(built.random_tree(4, 10), 1e-6, 1.0),
    "thousands of kilometres": lambda: scaled(built.random_tree(4, 10), 1e6, 1.0),
    "micrometres and milligrams": lambda: scaled(BARS, 1e-6, 1e-6),
    "as large as the moon": lambda: scaled(BARS, 1e6, 1e6),
    "milligrams": lambda: scaled(SLIDES, 1.0, 1e-6),
    "a feather that carries a rock": lambda: chasles.Robot(
        chain("revolute", "revolute", masses=(1e-6, 1e6))
    ),
    "a rock that carries a feather": lambda: chasles.Robot(
        chain("free", "revolute", masses=(1e9, 1e-9))
    ),
}

UNCHECKED = {
    "limits far away": "times its inertia",
    "a feather that carries a rock": "times its inertia",
    "a rock that carries a feather": "the mass matrix has a condition number of",
}
"""Robots for which all methods lose digits, and a part of the reported reason."""

LEFT_OUT = {"masses unknown": ("dynamics: no masses are given, so only kinematics was checked",)}


def on_floats(robot: chasles.Robot) -> list[Result]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return list(results([trials.trial(robot, 1)], 1, checks(compiled=False)))


@pytest.mark.parametrize("name", ODD)
def test_odd_robots_pass(name: str) -> None:
    """No warnings are issued; checks that are impossible have a reason, and all others pass."""
    robot = ODD[name]()
    found = on_floats(robot)
    assert len(found) > 40
    assert not [str(result) for result in found if not result.ok]
    reasons = {result.detail for result in found if not result.checked}
    assert bool(reasons) == (name in UNCHECKED), reasons
    assert all(UNCHECKED[name] in reason for reason in reasons)
    assert sum(result.checked for result in found) > 0.7 * len(found)
    assert left_out(trials.trial(robot, 1)) == LEFT_OUT.get(name, ())


@pytest.mark.parametrize("name", ["no joints", "masses unknown", "only driven"])
def test_odd_robots_pass_compiled(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ODD[name]().verify(states=1)
    assert found.ok, str(found)
    assert found.left_out == LEFT_OUT.get(name, ())
    assert str(found).count("unchecked: ") == len(found.left_out)


def test_a_small_robot_is_checked_as_closely_as_a_large_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wrong torques are found next to forces whose values are a million times larger."""
    whole = trials.evaluate

    def wrong(model, function, arrays, **options):
        found = whole(model, function, arrays, **options)
        if function == "inverse_dynamics" and options.get("method") == "kane":
            found[0][0] *= 1.0 + 1e-6  # a torque
        return found

    monkeypatch.setattr(trials, "evaluate", wrong)
    failed = {
        length: {(r.function, r.method) for r in on_floats(scaled(SLIDES, length, 1.0)) if not r.ok}
        for length in (1e-6, 1.0, 1e6)
    }
    assert set(map(frozenset, failed.values())) == {frozenset({("inverse_dynamics", "kane")})}


def test_loops_that_cannot_close_are_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "TRIES", 2)
    far = LoopData("far", "spherical", None, "link1", at(50.0, 0.0, 0.0))
    with raises("E-VERIFY-001", "'odd'"):
        TWO.with_loops(far).verify()


def test_states_stay_within_limits() -> None:
    limits = Limits(7.0, 8.0)  # more than one revolution from zero
    robot = chasles.Robot(chain("revolute", "prismatic", limits=limits))
    for seed in range(5):
        q = trials.trial(robot, seed).q
        assert np.all((limits.lower <= q) & (q <= limits.upper))


def test_lost_digits_excuse_errors_but_no_missing_result() -> None:
    at = ("methods agree", "mass_matrix", "spatial")
    assert Result(*at, error=0.5, tolerance=1.0, seed=0).ok
    assert Result(*at, error=2.0, tolerance=1.0, seed=0).ok
    assert not Result(*at, error=2.0, tolerance=1e-9, seed=0).ok
    assert not Result(*at, error=np.inf, tolerance=1.0, seed=0).ok
