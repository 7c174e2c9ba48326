"""URDF, MJCF and SDF writers: the mechanism that is read back is the same; refusals."""

import math
import resource
from dataclasses import replace
from importlib.metadata import files
from pathlib import Path

import numpy as np
import pytest
from same_motion import assert_same_motion, in_coordinates_of
from support import close, raises, tree

import chasles
from chasles import formats
from chasles.expr import sin
from chasles.formats import suffixes
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import matrix_from_vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.model import (
    JOINTS,
    Description,
    FrameData,
    JointData,
    Limits,
    LinkData,
    LoopData,
    Mimic,
    ShapeData,
    coupling,
    gear,
)
from chasles.robots import ROBOTS
from chasles.robots._solids import box

TOLERANCE = 1e-12
SIZES: dict[str, tuple[int, ...]] = {
    "planar": (3,),
    "zigzag": (3,),
    "general_chain": (4,),
    "general_tree": (5, 2),
    "random_tree": (12, 3),
}
REAL = (
    *("panda", "ur5_robot", "ur5_gripper", "talos_reduced", "solo12", "kinova", "baxter"),
    *("simple_humanoid", "g1_29dof_rev_1_0", "xarm7"),
)
"""Published robots with physically valid inertias."""

LACKS = {
    ".urdf": ("spherical", "sphere_in_cylinder", "rolling"),
    ".xml": ("planar", "free", "sphere_in_cylinder", "rolling"),
    ".sdf": ("planar", "free", "sphere_in_cylinder", "rolling"),
}
"""Joint types that a format supports neither directly nor as joints in series."""


def published(name: str) -> Path:
    listed = files("example-robot-data") or ()
    return next(Path(str(f.locate())) for f in listed if f.name == f"{name}.urdf")


def written(robot: chasles.Robot, path: Path) -> chasles.Robot:
    chasles.save(robot, path, overwrite=True)
    return chasles.load(path)


def possible(source: Description, suffix: str) -> Description:
    """Return the mechanism with supported features only; free joints start at the origin."""
    joints = []
    for joint in source.joints:
        kind = "revolute" if joint.kind in LACKS[suffix] else joint.kind
        if suffix != ".urdf" and joint.parent is None and joint.kind == "free":
            kind, joint = "free", replace(joint, pose=Transform.identity())
        if suffix == ".sdf" and kind == "free":
            joint = replace(joint, name="root_joint", damping=0.0, friction=0.0)
        armature = joint.armature if suffix == ".xml" else 0.0
        joints.append(replace(joint, kind=kind, armature=armature))
    gravity = Description.gravity if suffix == ".urdf" else Vector.of(1.0, 2.0, -3.0)
    return replace(source, joints=tuple(joints), gravity=gravity)


# Round trips -----------------------------------------------------------------------------------

EXPRESSED = {
    ".urdf": ("microbot", "planar", "general_chain", "general_tree"),
    ".xml": (
        *("puma560", "stanford_arm", "microbot", "planar", "zigzag", "general_chain"),
        *("general_tree", "quadruped", "humanoid", "slider_crank", "stewart", "delta"),
    ),
    ".sdf": ("microbot", "planar", "zigzag", "general_chain", "general_tree"),
    ".toml": tuple(ROBOTS),
}
"""Built-in robots that each format can represent; the others are refused."""


PINNED = ("four_bar", "triangle", "five_bar", "six_bar")
"""Robots with revolute loop joints, which MJCF replaces by two points with other equations."""


def assert_same_accelerations(robot: chasles.Robot, again: chasles.Robot) -> None:
    """Check accelerations at a closed position, for random velocities and torques."""
    y = robot.assemble(robot.random(seed=0)[: len(robot.independent)])
    rng = np.random.default_rng(1)
    qd = robot.complete(y, rng.normal(size=len(robot.independent)))
    tau = rng.normal(size=robot.nv)
    expected = robot.forward_dynamics(y, qd, tau)
    p, order = in_coordinates_of(again, robot, y)
    assert int(again.mobility()) == int(robot.mobility())
    close(again.forward_dynamics(p, qd[order], tau[order]), expected[order], 1e-11)


@pytest.mark.parametrize("suffix", EXPRESSED)
@pytest.mark.parametrize("name", ROBOTS)
def test_built_in_robots(name: str, suffix: str, tmp_path: Path) -> None:
    robot, path = ROBOTS[name](*SIZES.get(name, ())), tmp_path / f"copy{suffix}"
    if (suffix, name) in [(".xml", pinned) for pinned in PINNED]:
        again = written(robot, path)
        assert again.loops == tuple(x for loop in robot.loops for x in (loop, f"{loop}.axis"))
        assert_same_accelerations(robot, again)
        return
    if name in EXPRESSED[suffix]:
        assert_same_motion(robot, written(robot, path), TOLERANCE)
        return
    with raises(
        "E-MJCF-010|E-SDF-036|E-SDF-037|E-SDF-038|E-URDF-007|E-URDF-008|E-URDF-009|E-URDF-010"
    ):
        chasles.save(robot, path, overwrite=True)
    assert not path.exists()


@pytest.mark.parametrize("suffix", LACKS)
@pytest.mark.parametrize("name", REAL)
def test_published_robots(name: str, suffix: str, tmp_path: Path) -> None:
    robot = chasles.load(published(name))
    assert_same_motion(robot, written(robot, tmp_path / f"copy{suffix}"), TOLERANCE)


@pytest.mark.parametrize("suffix", LACKS)
@pytest.mark.parametrize("seed", range(3))
def test_random_trees(seed: int, suffix: str, tmp_path: Path) -> None:
    """Trees have all supported joint types, also in series, mimic joints and fixed links."""
    source = tree(14, seed, mimics=True).model.source
    robot = chasles.Robot(possible(source, suffix))
    again = written(robot, tmp_path / f"tree{suffix}")
    assert_same_motion(robot, again, TOLERANCE)
    twice = written(again, tmp_path / f"again{suffix}")
    assert (twice.joints, twice.frames) == (again.joints, again.frames)


@pytest.mark.parametrize("name", ["panda", "solo12", "xarm7", "random"])
def test_through_every_format(name: str, tmp_path: Path) -> None:
    """Each file is written from the one before, and the last robot moves like the first."""
    if name == "random":
        source = tree(14, 1, mimics=True).model.source
        single = ("fixed", "revolute", "continuous", "prismatic")
        joints = tuple(
            replace(j, armature=0.0, kind=j.kind if j.kind in single else "revolute")
            for j in source.joints
        )
        robot = chasles.Robot(replace(source, joints=joints))
    else:
        robot = chasles.load(published(name))
    again = robot
    for suffix in (".sdf", ".urdf", ".toml", ".xml", ".sdf", ".toml"):
        again = written(again, tmp_path / f"copy{suffix}")
    assert_same_motion(robot, again, TOLERANCE)


def in_frames(kind: str) -> Description:
    """Return two links in series whose joint frames differ from the link frames."""
    R = matrix_from_vector(Vector.of(0.3, -0.5, 0.9))
    pose = Transform.from_pose(R, Vector.of(0.1, 0.2, 0.3))
    names = ("a", "b")
    links = tuple(LinkData(name, box(2.0, (0.1, 0.2, 0.3), Vector.of(0.1, 0, 0))) for name in names)
    axis = Vector.of(0.6, 0.0, 0.8)
    first = JointData("first", kind, None, "a", pose, axis, child_pose=pose, pitch=0.1, radius=0.2)
    second = replace(first, name="second", parent="a", child="b", damping=0.3, friction=0.2)
    return Description("frames", links, (first, second), (FrameData("eye", "a", pose),))


@pytest.mark.parametrize("suffix", LACKS)
@pytest.mark.parametrize("kind", ["fixed", *JOINTS])
def test_joints_with_frames_of_their_own(kind: str, suffix: str, tmp_path: Path) -> None:
    robot, path = chasles.Robot(in_frames(kind)), tmp_path / f"copy{suffix}"
    if kind not in LACKS[suffix]:
        assert_same_motion(robot, written(robot, path), TOLERANCE)
        return
    codes = {".xml": "E-MJCF-009|E-MJCF-010", ".sdf": "E-SDF-035|E-SDF-037", ".urdf": "E-URDF-009"}
    with raises(codes[suffix], kind):
        chasles.save(robot, path, overwrite=True)


@pytest.mark.parametrize("suffix", LACKS)
def test_reversed_joints(suffix: str, tmp_path: Path) -> None:
    source = in_frames("universal")
    for kind in ("prismatic", "helical", "universal"):
        joints = tuple(replace(joint, kind=kind, reversed=True) for joint in source.joints)
        robot = chasles.Robot(replace(source, joints=joints))
        assert_same_motion(robot, written(robot, tmp_path / f"a{suffix}"), TOLERANCE)


def test_names_of_any_letters(tmp_path: Path) -> None:
    source, odd = in_frames("revolute"), "<a&\"b'> é\n\t"
    names = {"a": f"{odd}a", "b": f"{odd}b"}
    joints = [
        replace(j, name=odd + j.name, parent=names.get(j.parent or ""), child=names[j.child])
        for j in source.joints
    ]
    links = tuple(replace(link, name=names[link.name]) for link in source.links)
    frames = tuple(replace(frame, link=names[frame.link]) for frame in source.frames)
    robot = chasles.Robot(Description(odd, links, tuple(joints), frames))
    for suffix in (".urdf", ".xml"):
        again = written(robot, tmp_path / f"odd{suffix}")
        assert again.name == odd
        assert_same_motion(robot, again, TOLERANCE)
    bad = replace(source, name="bell \x07")
    with raises("E-XML-004"):
        formats.write(bad, tmp_path / "bad.urdf")


# Other values ----------------------------------------------------------------------------------

BOUNDS = {
    "both": Limits(-1.5, 2.5, 3.0, 40.0),
    "none": Limits(),
    "lower": Limits(-1.5, math.inf),
    "upper": Limits(-math.inf, 0.5, 2.0, math.inf),
    "effort": Limits(effort=7.0),
}


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_limits(kind: str, bounds: str, tmp_path: Path) -> None:
    limits = BOUNDS[bounds]
    source = in_frames(kind)
    joints = tuple(replace(joint, limits=limits) for joint in source.joints)
    robot = chasles.Robot(replace(source, joints=joints))
    assert written(robot, tmp_path / "a.urdf").joint("first").limits == limits
    notes = chasles.save(robot, tmp_path / "a.xml")
    found = chasles.load(tmp_path / "a.xml").joint("first").limits
    assert found == replace(limits, velocity=math.inf)
    none = limits.velocity == math.inf
    assert notes == (() if none else ("MJCF does not store velocity limits: 'first', 'second'",))


def test_joints_keep_their_numbers(tmp_path: Path) -> None:
    source = in_frames("revolute")
    source = replace(
        source,
        joints=(source.joints[0], replace(source.joints[1], mimic=Mimic("first", -2.0, 0.1))),
    )
    robot = chasles.Robot(source, mimic=False)
    for suffix in LACKS:
        again = written(robot, tmp_path / f"a{suffix}")
        joint = again.joint("second")
        assert (joint.damping, joint.friction) == (0.3, 0.2)
        assert joint.mimic == Mimic("first", -2.0, 0.1)
        assert again.joints == ("first",)


def test_limits_of_balls_are_noted(tmp_path: Path) -> None:
    source = in_frames("spherical")
    joints = (source.joints[0], replace(source.joints[1], limits=Limits(0.0, 1.0)))
    notes = formats.write(replace(source, joints=joints), tmp_path / "a.xml")
    assert notes == ("limits of ball and free joints are not written: 'second'",)


def test_balls_turn_about_any_point_without_links_between(tmp_path: Path) -> None:
    place = Transform.from_pose(Matrix.identity(), Vector.of(0.1, 0.2, 0.3))
    source = in_frames("spherical")
    joints = tuple(replace(joint, child_pose=place) for joint in source.joints)
    robot = chasles.Robot(replace(source, joints=joints))
    again = written(robot, tmp_path / "a.xml")
    assert_same_motion(robot, again, TOLERANCE)
    assert again.bodies == ("world", *robot.bodies)


def test_a_range_that_is_a_point_is_noted(tmp_path: Path) -> None:
    source = in_frames("revolute")
    joints = tuple(replace(joint, limits=Limits(0.0, 0.0)) for joint in source.joints)
    notes = formats.write(replace(source, joints=joints), tmp_path / "a.xml")
    assert "joint 'first': range 0 to 0 is not written; MuJoCo requires lower < upper" in notes


def test_what_is_left_out_is_noted(tmp_path: Path) -> None:
    crank = chasles.robots.slider_crank().with_independent("alpha1")
    (note,) = chasles.save(crank, tmp_path / "a.xml")
    assert note.startswith("MJCF does not store the choice of 'alpha1' as independent")
    branched = chasles.robots.general_tree(5, 2)
    (note,) = chasles.save(branched, tmp_path / "b.xml")
    order = ", ".join(map(repr, chasles.load(tmp_path / "b.xml").joints))
    assert note == f"coordinates are written in MuJoCo's order: {order}"


# Loops and couplings ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["spherical", "fixed"])
def test_loops(kind: str, tmp_path: Path) -> None:
    """Loops join links to each other and to the world, in any frames, and are open at the start."""
    R = matrix_from_vector(Vector.of(0.3, -0.5, 0.9))
    ends = [Transform.from_pose(R, Vector.of(0.1 * k, 0.2, 0.3)) for k in (1, 2)]
    arm = chasles.robots.general_chain(7)
    robot = arm.with_loops(
        LoopData("hand", kind, None, "link7", ends[0], child_pose=ends[1]),
        LoopData("knee", "spherical", "link5", "link2", ends[1], child_pose=ends[0]),
    )
    again = written(robot, tmp_path / "a.xml")
    assert again.loops == robot.loops
    assert_same_motion(robot, again, TOLERANCE)
    twice = written(again, tmp_path / "b.xml")
    assert twice.frames == again.frames


def test_gears_stay_equations(tmp_path: Path) -> None:
    robot = chasles.robots.planar(4).with_couplings(
        gear("g", "joint2", {"joint1": -1.0 / 3.0}, 0.1),
        gear("d", "joint3", {"joint1": 0.5, "joint4": 0.25}),
        coupling("cam", ["joint4", "joint1"], lambda a, b: a - 0.1 - b * (2.0 - b * b * (0.3 + b))),
    )
    again = written(robot, tmp_path / "a.xml")
    assert again.couplings == robot.couplings
    assert again.nv == robot.nv
    assert_same_motion(robot, again, TOLERANCE)


def test_closed_robots_move_the_same(tmp_path: Path) -> None:
    """A slider-crank with a welded loop has the same accelerations in each format."""
    robot = chasles.robots.slider_crank().with_independent("alpha1")
    q = robot.assemble([0.7])
    qd = robot.complete(q, [1.3])
    tau = np.linspace(-1.0, 1.0, robot.nv)
    expected = robot.forward_dynamics(q, qd, tau)
    for suffix in (".toml", ".xml"):
        again = written(robot, tmp_path / f"a{suffix}")
        p, order = in_coordinates_of(again, robot, q)
        close(again.forward_dynamics(p, qd[order], tau[order]), expected[order], 1e-11)


# Refusals --------------------------------------------------------------------------------------


def with_inertia(inertia: RigidInertia) -> Description:
    return replace(
        in_frames("revolute"), links=(LinkData("a", inertia), *in_frames("fixed").links[1:])
    )


FLAT = RigidInertia(1.0, Vector.zero(), Symmetric(1.0, 1.0, 3.0, 0.0, 0.0, 0.0))
PLAIN = in_frames("revolute")
POINT = RigidInertia(1.0, Vector.zero(), Symmetric.zero())
LOOP = LoopData("pin", "revolute", None, "b")
CAM = coupling("cam", ["first", "second"], lambda a, b: b - sin(a))
CROSS = coupling("cross", ["first", "second"], lambda a, b: b * a - 1.0)

REFUSED: dict[str, tuple[str, Description, str]] = {
    "loop": (".urdf", replace(PLAIN, loops=(LOOP,)), "E-URDF-007 'pin'"),
    "gear": (
        ".urdf",
        replace(PLAIN, couplings=(gear("g", "first", {"second": 2.0}),)),
        "E-URDF-007 'g'",
    ),
    "gravity": (
        ".urdf",
        replace(PLAIN, gravity=Vector.zero()),
        "E-URDF-008 (0, 0, 0)",
    ),
    "armature": (
        ".urdf",
        replace(PLAIN, joints=(replace(PLAIN.joints[0], armature=1.0), PLAIN.joints[1])),
        "E-URDF-010 'first'",
    ),
    "no masses": (".urdf", replace(PLAIN, massless=True), "E-FILE-031 'frames'"),
    "moment": (
        ".urdf",
        with_inertia(RigidInertia(0.0, Vector.of(1.0, 0.0, 0.0), Symmetric.zero())),
        "E-FILE-041 'a'",
    ),
    "loop of another type": (
        ".xml",
        replace(PLAIN, loops=(replace(LOOP, kind="planar"),)),
        "E-MJCF-014 'pin'",
    ),
    "no polynomial": (".xml", replace(PLAIN, couplings=(CAM,)), "E-MJCF-015 'cam'"),
    "product": (".xml", replace(PLAIN, couplings=(CROSS,)), "E-MJCF-015 'cross'"),
    "reversed": (
        ".xml",
        replace(
            PLAIN, joints=tuple(replace(j, kind="spherical", reversed=True) for j in PLAIN.joints)
        ),
        "E-MJCF-010 'first'",
    ),
    "impossible inertia": (
        ".xml",
        with_inertia(FLAT),
        "E-MJCF-013 'a'",
    ),
    "no inertia": (
        ".xml",
        with_inertia(POINT),
        "E-MJCF-012 'a'",
    ),
    "the world's name": (
        ".xml",
        replace(
            PLAIN,
            links=(replace(PLAIN.links[0], name="world"), PLAIN.links[1]),
            joints=(
                replace(PLAIN.joints[0], child="world"),
                replace(PLAIN.joints[1], parent="world"),
            ),
            frames=(),
        ),
        "E-MJCF-008 'world'",
    ),
    "free on a link": (
        ".xml",
        replace(PLAIN, joints=(PLAIN.joints[0], replace(PLAIN.joints[1], kind="free"))),
        "E-MJCF-009 'second'",
    ),
}


def first_with(**numbers: object) -> Description:
    """Return `PLAIN` with other values in the first joint."""
    joint = replace(PLAIN.joints[0], **numbers)  # type: ignore[arg-type]
    return replace(PLAIN, joints=(joint, *PLAIN.joints[1:]))


def seen(shape: ShapeData) -> Description:
    return replace(PLAIN, shapes=(shape,))


NO_FILE: dict[str, tuple[Description, str]] = {
    "no name": (first_with(name=""), "E-FILE-039"),
    "no text": (first_with(name="\ud800"), "E-FILE-040"),
    "far centre": (
        with_inertia(RigidInertia(1e-310, Vector.of(1.0, 0.0, 0.0), Symmetric.zero())),
        "E-FILE-042 'a'",
    ),
    "size": (
        seen(ShapeData("a", "sphere", (0.0,))),
        "E-FILE-043 link 'a':",
    ),
    "color": (
        seen(ShapeData("a", "sphere", (1.0,), color=(2.0, 0.0, 0.0, 1.0))),
        "E-FILE-044 link 'a':",
    ),
}


@pytest.mark.parametrize("suffix", [".toml", *LACKS])
@pytest.mark.parametrize("what", NO_FILE)
def test_what_no_file_can_hold(what: str, suffix: str, tmp_path: Path) -> None:
    source, message = NO_FILE[what]
    with raises(message):
        formats.write(source, tmp_path / f"no{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".toml", *LACKS])
def test_numbers_outside_their_ranges_are_written_as_they_are_read(
    suffix: str, tmp_path: Path
) -> None:
    source = first_with(limits=Limits(-1e300, 2.0, -1.0), damping=-1.0)
    velocity, damping = "velocity limit -1 is negative", "damping -1 is negative"
    notes = set(formats.write(source, tmp_path / f"a{suffix}"))
    assert {
        f"joint 'first': {velocity}; taken as no limit",
        f"joint 'first': {damping}; taken as 0",
    } <= notes
    found = chasles.load(tmp_path / f"a{suffix}").joint("first")
    assert (found.limits, found.damping) == (Limits(upper=2.0), 0.0)


def test_what_mujoco_means_otherwise_is_noted(tmp_path: Path) -> None:
    body = LinkData("a", box(2.0, (0.1, 0.2, 0.3)))
    free = JointData("root", "free", None, "a", friction=0.1)
    shape = ShapeData("a", "sphere", (1.0,), color=(1.0, 0.0, 0.0, 1.0), role="collision")
    notes = formats.write(Description("r", (body,), (free,), shapes=(shape,)), tmp_path / "a.xml")
    assert notes[0] == "MJCF does not store colors of collision shapes; .toml does"
    assert notes[1].startswith("joint 'root': translational friction of a free joint")


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str, tmp_path: Path) -> None:
    suffix, source, message = REFUSED[what]
    with raises(message):
        formats.write(source, tmp_path / f"no{suffix}")
    assert not list(tmp_path.iterdir())


def test_every_writer_has_a_reader() -> None:
    assert set(suffixes(written=True)) <= set(suffixes())
    with raises("E-FILE-003", "'.stl'"):
        chasles.save(chasles.robots.planar(1), "a.stl")


# Whole files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", suffixes(written=True))
def test_a_full_disk_leaves_the_old_file(suffix: str, tmp_path: Path) -> None:
    """A limit on file sizes acts like a full disk."""
    path = tmp_path / f"robot{suffix}"
    path.write_text("old")
    robot, before = chasles.robots.general_tree(8, 2), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with raises("E-FILE-011", f"robot{suffix}: File too large", kind=OSError):
            chasles.save(robot, path, overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in ("none", "file"):
        with raises("E-FILE-011"):
            chasles.save(chasles.robots.planar(1), tmp_path / folder / "a.urdf")
