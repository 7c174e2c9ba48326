"""Messages in the shell name options, not Python; simulated logs can be identified."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import chasles
from chasles.cli import app
from chasles.cli.scenario import with_flags
from chasles.cli.scene import Scene, made
from chasles.cli.wording import REMEDIES, options_of, outside_limits, renamed

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
from building.errors import entries

ENV = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}

ARM = """<robot name="arm">
<link name="base"/>
<link name="upper"><inertial><mass value="2"/><origin xyz="0 0 0.2"/>
<inertia ixx="0.03" iyy="0.03" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="fore"><inertial><mass value="1"/><origin xyz="0 0 0.15"/>
<inertia ixx="0.01" iyy="0.01" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
<axis xyz="0 1 0"/><limit lower="-3" upper="3" velocity="2" effort="50"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/>
<origin xyz="0 0 0.4"/><axis xyz="0 1 0"/><dynamics damping="0.2"/>
<limit lower="-3" upper="3" velocity="2" effort="30"/></joint>
</robot>"""

BRICK = """<robot name="brick"><link name="body"><inertial><mass value="2"/>
<inertia ixx="0.03" iyy="0.03" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size="0.3 0.2 0.1"/></geometry></collision></link></robot>"""

PYTHON = re.compile(r"\b[a-z]\w*=(?!=)\S|chasles\.\w|robot\.\w|\w\(")
"""Signs of Python code in a remedy."""

PYTHON_ONLY = (
    *("EXPR", "GPU", "LEARN", "CONVENTION", "CONTROL", "MATH", "DIST", "CACHE", "PLOT", "TABLE"),
    *("ACCURACY", "CONTACT", "JOINT", "ROBOT", "IDENT", "SENSE"),
)
"""Areas whose errors come from Python calls; no command passes such values."""

SPOKEN = {
    "E-CLI-011": "says that a Python function is needed",
    "E-CLI-013": "JOINT=NUMBERS is the form of an option",
    "E-CLI-014": "friction=0.8 is the form of an option",
    "E-CLI-252": "JOINT=X is the form of an option",
    "E-CLI-260": "NAME=VALUE is the form of an option",
    "E-SWEEP-001": "NAME=A,B is the form of an option",
    "E-FILE-033": "says that a Python function is needed",
    "E-FILE-410": "commands find built-in robots by name",
    "E-FILE-590": "no command takes a list of loops to keep",
    "E-TOML-011": "says that a Python function is needed",
    "E-URDF-008": "names another format first",
    "E-CALL-036": "no file describes such a robot",
    "E-CALL-042": "no command calls graphs",
    "E-CALL-053": "no command takes tensors",
    "E-CALL-072": "no command differentiates at a state",
    "E-CALL-096": "no command asks for packed matrices",
    "E-CALL-360": "has a row of REMEDIES",
    "E-CALL-378": "no command asks for wrapped solutions",
    "E-DH-010": "converts in Python",
    "E-DH-016": "names a loading option of files",
    "E-LOOP-012": "no command gives accelerations of loops",
    "E-LOOP-026": "no command takes a function",
    "E-LOOP-039": "no file describes such a robot",
    "E-LOOP-324": "no command linearizes loops",
    "E-MODEL-055": "commands load files",
    "E-MODEL-047": "names the option of the function",
    "E-MOTION-008": "no command takes a function",
    "E-MOTION-018": "no command takes a function",
    "E-MOTION-061": "no command takes events",
    "E-MOTION-071": "no command takes a batch",
    "E-MOTION-099": "no command takes a torque for each step",
    "E-MOTION-190": "a scenario names its controllers",
    "E-MOTION-197": "no command takes tensors",
    "E-CALL-423": "commands load the robot",
    "E-LOOP-043": "commands take independent coordinates by position",
    "E-MOTION-206": "no command takes model parameters",
    "E-MOTION-209": "no command takes model parameters",
    "E-MOTION-212": "no command saves a batch",
    "E-MOTION-590": "commands compile by default",
    "E-PATH-051": "commands give the robot",
    "E-VIEW-031": "commands pass files",
}
"""Codes whose remedy may look like Python in a shell, with reasons."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(ARM)
    (tmp_path / "brick.urdf").write_text(BRICK)
    return tmp_path


def run(line: str, status: int = 0) -> str:
    """Return everything that a command prints."""
    result = CliRunner().invoke(app, line.split(), env=ENV)
    assert result.exit_code == status, result.output
    return result.output


def every_option() -> tuple[str, ...]:
    """Return the options of all commands."""
    commands: dict[str, Any] = typer.main.get_command(app).commands
    return tuple(name for c in commands.values() for name in options_of(c.params))


def test_remedies_in_the_shell_are_not_python() -> None:
    """Each remedy is reworded with options, has its own shell version, or is listed."""
    options, known = every_option(), {e.code for e in entries()}
    assert set(REMEDIES) | set(SPOKEN) <= known
    assert not [code for code, remedy in REMEDIES.items() if PYTHON.search(remedy)]
    left = {
        e.code: e.remedy
        for e in entries()
        if e.code.split("-")[1] not in PYTHON_ONLY and e.code not in {*REMEDIES, *SPOKEN}
        if PYTHON.search(renamed(re.sub(r"\{\w+\}", "'X'", e.remedy), options))
    }
    assert not left


@pytest.mark.parametrize(
    ("text", "shell"),
    [
        ("give `velocity` or cutoff=", "give --velocity or --cutoff"),
        ("load with mimic=False", "load with --no-mimic"),
        ("name it with columns={'a.q': ...}", "name it with --column a.q=NAME"),
        ("give units={'a.q': 'deg'}", "give --unit a.q=deg"),
        ("give columns={'a': 'b', 'b': 'a'}", "give --column a=b --column b=a"),
        ("use integrator='rk4'", "use --integrator rk4"),
        ("call robot.sense", "call robot.sense"),
        ("add a ground with file_pairs(robot, ground=True)", "add a ground with --ground"),
        ("call load(file, mimic=False)", "call --no-mimic"),
        ("use Law(tangents=2)", "use Law(tangents=2)"),
    ],
)
def test_arguments_become_options(text: str, shell: str) -> None:
    options = ("--velocity", "--cutoff", "--no-mimic", "--column", "--unit", "--integrator")
    assert renamed(text, (*options, "--ground")) == shell


def test_motion_notes_missing_dissipation() -> None:
    """The note appears once if joints have damping and torques are computed, and else not."""
    names = [f"{joint}.{x}" for x in ("q", "qd", "qdd") for joint in ("shoulder", "elbow")]
    Path("log.csv").write_text(f"t,{','.join(names)}\n0{',0' * 6}\n1{',0' * 6}\n")
    Path("ideal.urdf").write_text(ARM.replace('<dynamics damping="0.2"/>', ""))
    words = "exclude damping and friction"
    assert run("motion arm.urdf log.csv").count(words) == 1
    assert words not in run("motion ideal.urdf log.csv")
    pytest.importorskip("pyarrow")
    assert run("motion arm.urdf log.csv --columns tau -o tau.parquet").count(words) == 1
    assert words not in run("motion arm.urdf log.csv --columns energy -o energy.parquet")


def test_an_error_names_the_option() -> None:
    Path("log.csv").write_text("t,shoulder.q,elbow.q\n0,0,0\n1,0,0\n")
    pytest.importorskip("pyarrow")
    assert "--column shoulder.tau=NAME" in run("identify arm.urdf log.csv", 2)


def test_a_simulation_is_a_log_for_identification() -> None:
    """The torques in the table are the controller's, and the fit predicts them."""
    law = "--control pd --stiffness 40 --damping 2 --target 0.5,0.3 --no-plots"
    run(f"simulate arm.urdf {law} --table log.csv")
    names, *rows = Path("log.csv").read_text().splitlines()
    table = dict(
        zip(names.split(","), np.array([r.split(",") for r in rows], float).T, strict=True)
    )
    wanted = 40.0 * (0.5 - table["shoulder.q"]) - 2.0 * table["shoulder.qd"]
    np.testing.assert_allclose(table["shoulder.tau"], wanted, rtol=1e-12)
    run("motion arm.urdf log.csv --differentiate")
    pytest.importorskip("pyarrow")
    assert "base parameters from" in run("identify arm.urdf log.csv")


def test_torques_of_actuators_are_those_of_the_file() -> None:
    Path("motor.xml").write_text(
        '<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom size="0.1"/></body>'
        '</worldbody><actuator><motor name="m" joint="j" gear="3"/></actuator></mujoco>'
    )
    run("simulate motor.xml --ctrl 0.5 --duration 0.01 --no-plots --table t.csv")
    with np.load("simulation/motion.npz") as found:
        np.testing.assert_allclose(found["tau"], 1.5, rtol=1e-12)


def test_a_urdf_stands_on_the_floor() -> None:
    """A brick falls from 0.5 m and comes to rest at half its own height."""
    said = run("simulate brick.urdf --floating --ground rigid,friction=0.8 --no-plots "
               "--q root_joint=1,0,0,0,0,0,0.5 --dt 0.002 --write-scenario fall.toml")  # fmt: skip
    said = run("simulate fall.toml --no-plots -o fall")
    assert "contact: final force" in said
    with np.load("fall/motion.npz") as found:
        assert abs(found["q"][-1, 6] - 0.05) < 1e-5
        assert np.abs(found["qd"][-1]).max() < 1e-9


GROUND = "simulate brick.urdf --floating --ground rigid --no-plots --duration 0.001"
RAISE = "raise it with --q root_joint=1,0,0,0,0,0,0.05"


def test_a_base_without_a_position_is_placed_on_the_ground() -> None:
    """A given position is kept, with a note."""
    assert "note: the base was raised by 0.05 m to stand on the ground" in run(GROUND)
    with np.load("simulation/motion.npz") as found:
        assert abs(found["q"][0, 6] - 0.05) < 1e-12
    said = run(f"{GROUND} --overwrite --q root_joint=1,0,0,0,0,0,0")
    assert f"the robot starts 0.05 m deep in the ground; {RAISE}" in said
    assert "was raised" not in said
    assert "force per contact" in said


def scene(**values: Any) -> Scene:
    return made(with_flags(None, {"robot": "brick.urdf", "ground": {"kind": "rigid"}, **values}))


def test_a_base_is_raised_along_the_vertical() -> None:
    """The frame of a free joint may be rotated; the lowest corner then touches the ground."""
    free = '<robot name="brick"><link name="world"/><joint name="free" type="floating"><parent '
    free += 'link="world"/><child link="body"/><origin rpy="0.3 0.4 0.5"/></joint>'
    Path("brick.urdf").write_text(BRICK.replace('<robot name="brick">', free))
    found, start = scene(), {"q": {"free": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]}}
    pose = found.robot.forward_kinematics(found.q, frame="body")
    corners = np.array(np.meshgrid([-0.15, 0.15], [-0.1, 0.1], [-0.05, 0.05])).reshape(3, -1)
    heights = (pose[:3, :3] @ corners).T + pose[:3, 3]
    assert abs(heights[:, 2].min()) < 1e-12
    np.testing.assert_allclose(pose[:2, 3], 0.0, atol=1e-12)
    assert scene(start=start).sunken() == pytest.approx(found.raised)
    above = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    assert not scene(start={"q": {"free": above}}).sunken()


def test_a_fixed_base_in_the_ground_is_said() -> None:
    box = '<collision><origin xyz="0 0 0.3"/><geometry><box size="0.1 0.1 0.4"/></geometry>'
    text = ARM.replace(
        '</inertial></link>\n<joint name="sh',
        f'</inertial>{box}</collision></link>\n<joint name="sh',
    )
    Path("arm.urdf").write_text(text)
    line = "simulate arm.urdf --ground rigid --no-plots --duration 0.001 --q 3,0"
    said = run(line)
    assert "the base is fixed, and the robot starts 0.8" in said
    assert "free the base with --floating" in said
    assert "links without collision shapes touch nothing: 'upper'" in said


def test_penetration_is_refused_with_a_way_out() -> None:
    start = "simulate brick.urdf --floating --foot body:0.05 --ground rigid --integrator rk4"
    said = run(f"{start} --q root_joint=1,0,0,0,0,0,0", 2)
    assert "E-MOTION-059" in said
    assert RAISE in said


def test_a_robot_without_shapes_cannot_stand() -> None:
    """The single error message states that the robot needs frames for contact."""
    said = run("simulate planar:2 --ground rigid", 2)
    assert len(said.splitlines()) == 1
    assert "E-SCENARIO-040" in said


def test_doubtful_robots_are_questioned_before_they_move() -> None:
    """Checks of the model give notes; a base without mass cannot be simulated."""
    Path("arm.urdf").write_text(ARM.replace('ixx="0.01"', 'ixx="0.1"'))
    said = run("simulate arm.urdf --duration 0.01 --no-plots")
    assert re.search(r"note: .*link 'fore': .*triangle inequality", said)
    Path("empty.urdf").write_text(re.sub("<inertial>.*</inertial>", "", BRICK, flags=re.DOTALL))
    said = run("simulate empty.urdf --floating", 2)
    assert "'root_joint' moves no inertia: the base link 'body' has no mass" in said


def test_a_motion_that_gains_energy_is_questioned() -> None:
    """Too large a step size makes a double pendulum explode, but gravity alone does not."""
    start = "simulate planar:2 --random 1 --duration 2.1 --no-plots --overwrite"
    assert "note: the energy changed by" in run(f"{start} --dt 0.3")
    assert "energy changed" not in run(f"{start} --dt 0.1")
    rest = "simulate planar:2 --q=-1.5707963267948966,0 --duration 0.1 --no-plots --overwrite"
    assert "energy changed" not in run(rest)


def test_floors_that_do_not_fit_are_refused() -> None:
    start = "simulate brick.urdf --floating --ground"
    assert "E-SCENARIO-039" in run(f"{start} hunt-crossley,stiffness=1e4,damping=1e3", 2)
    assert "E-SCENARIO-038" in run(f"{start} rigid --contacts file", 2)
    assert "E-SCENARIO-040" in run("simulate arm.urdf --ground rigid", 2)
    assert "add --ground rigid" in run("simulate arm.urdf --foot fore", 2)


def test_time_stepping_is_an_integrator_of_the_shell() -> None:
    run("simulate brick.urdf --floating --integrator time-stepping --duration 0.01 --no-plots")


@pytest.mark.filterwarnings("default")
def test_warnings_are_notes_of_one_line() -> None:
    said = run("simulate brick.urdf --floating --contacts file --duration 0.01 --no-plots")
    (line,) = [each for each in said.splitlines() if "no plane or fixed shape" in each]
    assert line.startswith("note: contacts from the file: ")
    assert "--ground" in line


def test_damping_that_is_left_out_is_said() -> None:
    start = "simulate arm.urdf --duration 0.01 --no-plots --overwrite"
    assert "--dissipation" in run(start)
    assert "--dissipation" not in run(f"{start} --dissipation")


@pytest.mark.parametrize(
    "line",
    [
        "trajectory arm.urdf --to 90,45 -o move.csv",
        "reach arm.urdf --pose 0.3,0,0.3 --guess 90,45",
        "simulate arm.urdf --q 90,45 --duration 0.01 --no-plots",
        "motion arm.urdf degrees.csv --differentiate",
    ],
)
def test_degrees_are_questioned(line: str) -> None:
    Path("degrees.csv").write_text("t,shoulder.q,elbow.q\n0,0,0\n1,45,45\n2,90,45\n")
    result = CliRunner().invoke(app, line.split(), env=ENV)
    assert "'shoulder' (90, limits -3 to 3)" in result.output
    assert "angles are in rad, not in degrees" in result.output


def test_one_turn_is_not_questioned() -> None:
    free = chasles.robots.planar(2)
    assert outside_limits(free, np.array([6.0, -9.0]), "it") == ""
    assert "not in degrees" in outside_limits(free, np.array([90.0, 0.0]), "it")


def test_a_line_may_leave_the_orientation_free() -> None:
    """A planar arm follows a line only if its orientation is free."""
    arm = chasles.robots.planar(2)
    x, y, z = arm.forward_kinematics([0.5, 1.0])[:3, 3] - [0.2, 0.0, 0.0]
    start = f"trajectory planar:2 --kind line --from 0.5,1.0 --position {x},{y},{z}"
    assert "E-PATH" in run(f"{start} -o a.csv", 2)
    run(f"{start} --orientation free -o b.csv")
    move = chasles.trajectory.load("b.csv", arm)
    np.testing.assert_allclose(arm.forward_kinematics(move.end)[:3, 3], [x, y, z], atol=1e-6)


def test_jumps_of_acceleration_have_no_jerk() -> None:
    said = run("trajectory arm.urdf --to 1,1 --kind time-optimal --acceleration 9 -o t.csv")
    assert said.count("unbounded") == 2


def test_exceeded_velocity_and_effort_limits_are_said() -> None:
    said = run("trajectory arm.urdf --to 1,1 --duration 0.1 -o fast.csv")
    assert said.count("note: the trajectory exceeds the velocity limits of 'shoulder' (") == 1
    said = run("motion arm.urdf fast.csv")
    for quantity in ("velocity", "effort"):
        assert said.count(f"note: the motion exceeds the {quantity} limits of 'shoulder' (") == 1
    run("trajectory arm.urdf --to 0.1,0.1 --duration 10 -o slow.csv")
    assert "velocity limits" not in run("motion arm.urdf slow.csv")


def test_flags_are_named_once() -> None:
    """A remedy names either a Python argument, which the shell replaces, or the option."""
    options = every_option()
    for entry in entries():
        if entry.code not in REMEDIES:
            told = renamed(entry.remedy, options)
            flags = re.findall("--[a-z-]+", told)
            assert told == entry.remedy or len(flags) == len(set(flags)), (entry.code, told)
    run("trajectory arm.urdf --to 1,1 -o a.csv")
    said = run("trajectory arm.urdf --to 1,1 -o a.csv", 2)
    assert "choose another name, or replace the file with --overwrite [" in said


def test_names_are_suggested() -> None:
    assert "did you mean 'arm.urdf'?" in run("info arm.urf", 2)
    for command in ("explain arm.urdf inverse_dynamic", "cost arm.urdf -f inverse_dynamic"):
        assert "did you mean 'inverse_dynamics'" in run(command, 2)
    assert "it is called 'inverse_dynamics' here" in run("explain arm.urdf rnea", 2)


def test_reach_takes_a_position_and_lists_only_solutions() -> None:
    assert "reached" in run("reach puma560 --position 0.4,0.2,0.3")
    said = run("reach arm.urdf --pose 0.3,0,0.3,0,0,0", 1)
    assert "give only x,y,z" in said
    assert (
        "null" not in run("reach puma560 --pose 0.4,0.2,0.3,0,1,0 --all --json").split('"t"')[1][9:]
    )


def test_a_second_demo_keeps_the_first(here: Path) -> None:
    Path("demo.png").write_bytes(b"mine")
    assert "demo-2.png" in run("demo")
    assert Path("demo.png").read_bytes() == b"mine"


def test_commands_name_the_default_frame() -> None:
    """The frame that a command uses is printed and in the data, if a function depends on it."""
    for line in (
        "info puma560",
        "explain puma560 jacobian",
        "cost puma560 -f jacobian",
        "export puma560 -f jacobian -o exported --overwrite",
        "reach puma560 --pose 0.4,0.2,0.3",
    ):
        words = line.split()
        assert re.search(r"[Ff]rame.*\btool\b", run(line)), line
        found = json.loads(run(f"{line} --json"))
        assert found["tool" if words[0] == "info" else "frame"] == "tool"
    assert "frame" not in run("explain puma560 mass_matrix").split("\n")[1]


def test_help_shows_examples_and_both_forms_of_a_flag() -> None:
    assert re.search(r"Examples: *\n +chasles demo *\n +chasles info", run("--help"))
    assert "--no-gpu" in run("bench --help")
