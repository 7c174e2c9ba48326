"""First contact with a robot: its tool, its printed form, and short forms of results."""

import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from support import raises

import chasles
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import Transform
from chasles.model import Description, FrameData, JointData, LinkData
from chasles.model.notes import grouped
from chasles.motion.options import Integrators
from chasles.motion.rollouts import StepIntegrators
from chasles.motion.steps.traced import STEPS
from chasles.robots._solids import rod

ROOT = Path(__file__).parents[2]


def arm_with_fingers(fingers: int) -> chasles.Robot:
    """Return an arm of two rods with the given number of sliding fingers at its end."""
    end = Transform(Rotation(), Vector.of(1.0, 0.0, 0.0))
    names = ["upper", "lower", *(f"finger{k}" for k in range(fingers))]
    parents = [None, "upper", *["lower"] * fingers]
    kinds = ["revolute", "revolute", *["prismatic"] * fingers]
    joints = [
        JointData(f"j{k}", kind, parent, name, end, axis=Vector.of(0.0, 1.0, 0.0))
        for k, (kind, parent, name) in enumerate(zip(kinds, parents, names, strict=True))
    ]
    links = [LinkData(name, rod(1.0, 1.0)) for name in names]
    return chasles.Robot(Description("arm", tuple(links), tuple(joints)))


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("puma560", "tool"),
        ("quadruped", "front_left_foot"),
        ("humanoid", "left_hand"),
        ("stewart", "platform"),
        ("delta", "platform"),
        ("panda", "panda_hand_tcp"),
        ("kinova", "j2s6s200_end_effector"),
        ("ur5", "tool0"),
        # frames of force-torque sensors and IMUs are not tools
        ("talos_reduced", "gripper_left_base_link"),
        ("talos_full_v2", "gripper_left_base_link"),
        ("alexander_v1.lowerBodyOnly", "LEFT_FOOT"),
        # neither are fingers, but the finger of a robot that is a finger
        ("romeo", "l_gripper"),
        ("pr2", "r_gripper_tool_frame"),
        ("g1_29dof_with_hand_rev_1_0", "left_hand_palm_link"),
        ("so101", "gripper_frame_link"),
        ("z1", "gripperStator"),
        ("finger_edu", "finger_tip_link"),
        ("allegro_right_hand", "link_3.0_tip"),
        # of several longest chains, the first
        ("solo12", "FL_FOOT"),
        ("icub", "l_hand_dh_frame"),
        ("baxter", "right_gripper"),
    ],
)
def test_the_tool_is_the_end_of_the_machine(name: str, tool: str) -> None:
    made = chasles.robots.ROBOTS.get(name)
    assert (made() if made else chasles.load(name)).tool == tool


@pytest.mark.parametrize(("fingers", "tool"), [(0, "lower"), (1, "lower"), (2, "lower")])
def test_fingers_of_a_gripper_are_not_the_tool(fingers: int, tool: str) -> None:
    assert arm_with_fingers(fingers).tool == tool


def test_a_frame_of_the_file_is_the_tool_by_its_name() -> None:
    source = arm_with_fingers(1).model.source
    frame = FrameData("left_TCP", "upper", Transform.identity())
    named = Description("arm", source.links, source.joints, (frame,))
    assert chasles.Robot(named).tool == "left_TCP"


def test_functions_use_the_tool_if_no_frame_is_named() -> None:
    robot = chasles.robots.puma560()
    q, qd = robot.random(seed=1), np.linspace(-1.0, 1.0, 6)
    for function, arguments in (
        ("forward_kinematics", (q,)),
        ("jacobian", (q,)),
        ("frame_velocity", (q, qd)),
        ("frame_acceleration", (q, qd, qd)),
        ("frame_motion", (q, qd, qd)),
        ("operational_inertia_inverse", (q,)),
    ):
        run = getattr(robot, function)
        here, there = run(*arguments), run(*arguments, frame="tool")
        assert np.array_equal(here, there), function
        assert not np.array_equal(there, run(*arguments, frame="link2")), function
    assert np.array_equal(chasles.compile(robot, "jacobian")(q), robot.jacobian(q, "tool"))


def test_a_target_without_a_frame_is_one_for_the_tool() -> None:
    robot = chasles.robots.puma560()
    poses = robot.forward_kinematics(robot.random(size=3, seed=2))
    found = robot.inverse_kinematics(poses)
    assert np.all(found.solved)
    assert np.array_equal(found.q, robot.inverse_kinematics({"tool": poses}).q)
    with raises("E-CALL-360"):
        robot.inverse_kinematics([1.0, 2.0])


def test_a_lone_integer_for_random_is_refused() -> None:
    robot = chasles.robots.planar(2)
    for shape in ((3, 2), [5], np.array([5])):
        with raises("E-ROBOT-063", "or random(size="):
            chasles.robots.planar(2).random(shape)  # type: ignore[arg-type]
    with raises("E-ROBOT-063", "random(size=5)"):
        robot.random(5)
    with raises("E-ROBOT-064"):
        robot.random(np.random.default_rng(0), seed=0)
    assert robot.random(size=5).shape == (5, 2)
    assert np.array_equal(robot.random(seed=7), robot.random(np.random.default_rng(7)))


WRONG = """
import chasles

robot = chasles.robots.planar(2)
robot.mass_matrix("abc")
robot.mass_matrix(None)
robot.simulate([0.0, 0.0], [0.0, 0.0], duration=1.0, integrator="rk5")
robot.rollout([0.0, 0.0], [0.0, 0.0], dt=0.1, steps=2, integrator="rk5")
robot.inverse_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 0.0], method="spatal")
chasles.simulate(robot, "a", [0.0, 0.0], duration=1.0)
robot.simulate("a", [0.0, 0.0], duration=1.0)
"""

RIGHT = """
import numpy as np

import chasles

robot = chasles.robots.planar(2)
robot.mass_matrix([0, 1.0])
robot.mass_matrix((np.zeros(2), np.zeros(2)))
robot.mass_matrix([[[0.0, 1.0]]])
robot.inverse_dynamics(np.zeros((3, 2)), [0.0, 1.0], np.zeros(2, dtype=np.float32))
robot.simulate([0.0, 0.0], np.zeros(2), duration=1.0, integrator="rk4")
robot.rollout([0.0, 0.0], np.zeros(2), dt=0.1, steps=2, integrator="rk4")
robot.mass_matrix([0.0, 0.0], method="spatial")
chasles.simulate(robot, (0.0, 0.0), np.zeros(2), duration=1.0)
"""


def test_type_checkers_find_wrong_arguments(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    lines = []
    for name, text in (("wrong.py", WRONG), ("right.py", RIGHT)):
        (tmp_path / name).write_text(text)
        lines.append(str(tmp_path / name))
    command = [sys.executable, "-m", "mypy", "--strict", *lines]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    errors = [line for line in found.stdout.splitlines() if ": error:" in line]
    assert [line.split(":")[1] for line in errors] == [*"56789", "10", "11"], found.stdout
    assert all("wrong.py" in line for line in errors)


def test_names_of_integrators_for_type_checkers_are_all_of_them() -> None:
    assert set(get_args(StepIntegrators)) == {*STEPS, "time-stepping"}
    assert set(get_args(Integrators)) == {"auto", "time-stepping", *chasles.INTEGRATORS}


def test_results_print_briefly() -> None:
    robot = chasles.robots.planar(2)
    made = robot.simulate([0.1, 0.2], [0.0, 0.0], duration=0.1, dt=0.01)
    text = "<Trajectory: 11 states from 0 to 0.1 s; q (11, 2); qd (11, 2); compiled>"
    assert repr(made) == text
    goal = robot.forward_kinematics([0.1, 0.2], "tip")[:3, 3]
    found = robot.inverse_kinematics({"tip": chasles.targets.Position(goal)}, guess=[0.1, 0.3])
    assert repr(found).startswith("<Solution: solved; residual at most ")
    far = chasles.targets.Position(9.0 * goal)
    assert repr(robot.inverse_kinematics({"tip": far})).startswith("<Solution: not solved; ")


def test_notebooks_show_a_table_of_the_joints() -> None:
    joints = (JointData("<b>j</b>", "revolute", None, "a"),)
    text = chasles.Robot(Description("<i>", (LinkData("a", rod(1.0, 1.0)),), joints))._repr_html_()
    assert "&lt;b&gt;j&lt;/b&gt;" in text
    assert "<b>j" not in text
    assert chasles.robots.puma560()._repr_html_().count("<tr>") == 7


def test_notebooks_show_grouped_notes(tmp_path: Path) -> None:
    """Notes of one kind are one paragraph; other notes are not changed."""
    turn = '<origin rpy="1.5708 0 -3.14159"/>'
    joints = "".join(
        f'<link name="{k}"/><joint name="j{k}" type="fixed"><parent link="{k - 1}"/>'
        f'<child link="{k}"/>{turn}</joint>'
        for k in (1, 2)
    )
    path = tmp_path / "turned.urdf"
    path.write_text(f'<robot name="turned"><link name="0"/>{joints}</robot>')
    robot = chasles.load(path)
    assert len(robot.notes) == 4
    places = "joint 'j1' (line 1), joint 'j2' (line 1)"
    assert grouped(robot.notes) == (f"{path}: 4 angles taken as right angles: {places}",)
    assert robot._repr_html_().count("<p>Note: ") == 1


def test_groups_keep_values_and_single_notes() -> None:
    notes = (
        "a.urdf:3: link 'x': the inertia is wrong (1 < 2)",
        "the root is free",
        "a.urdf:5: link 'y': the inertia is wrong (3 < 4)",
        "b.urdf:5: link 'y': the inertia is wrong (3 < 4)",
    )
    together = "the inertia is wrong: link 'x' (line 3, 1 < 2), link 'y' (line 5, 3 < 4)"
    assert grouped(notes) == (f"a.urdf: {together}", notes[1], notes[3])
    many = [f"link 'a{k}': it has no mass" for k in range(20)]
    assert grouped(many)[0].endswith(", link 'a11', and 8 more")


@pytest.mark.parametrize(
    ("call", "start"),
    [
        (lambda robot: robot.verify(states=1), "<Verification of 'puma560': "),
        (lambda robot: robot.explain("mass_matrix"), "<Explanation of mass_matrix of 'puma560': "),
        (lambda robot: robot.model, "<Model 'puma560': 6 bodies, nq 6, nv 6>"),
        (chasles.online_estimator, "<OnlineEstimator of 'puma560': least-squares, "),
    ],
)
def test_objects_of_a_robot_print_on_one_line(call: Any, start: str) -> None:
    text = repr(call(chasles.robots.puma560()))
    assert text.startswith(start)
    assert len(text) < 200
    assert "\n" not in text
