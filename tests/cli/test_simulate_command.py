"""`chasles simulate`: results, saved files, messages, and bitwise reproducibility."""

import errno
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import chasles
from chasles.cli import app
from chasles.cli.commands import simulate as command
from chasles.cli.simulate import Task, run

ENV = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}

DOG = """
<robot name="dog">
  <link name="trunk">
    <inertial><mass value="2"/><inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.4 0.2 0.1"/></geometry></collision>
  </link>
</robot>"""  # noqa: E501

ANT = """<mujoco model="ant"><worldbody><body><freejoint/><geom size="0.25"/>
<body pos="0.25 0 0"><joint name="hip_1"/><geom type="capsule" size="0.08" fromto="0 0 0 0.2 0 0"/>
<body pos="0.2 0 0"><joint name="ankle_1" axis="0 1 0"/>
<geom type="capsule" size="0.08" fromto="0 0 0 0.4 0 0"/></body></body></body></worldbody>
<actuator><motor name="hip_1" joint="hip_1"/><motor name="ankle_1" joint="ankle_1"/></actuator>
</mujoco>"""
"""One leg of an ant with two motors."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str, code: int = 0) -> str:
    """Run a command and return what it prints; plots are off by default, because they are slow."""
    plots = [] if "--plots" in arguments or "--write-scenario" in arguments else ["--no-plots"]
    words = ["simulate", *(word for word in arguments if word != "--plots"), *plots]
    result = CliRunner().invoke(app, words, env=ENV)
    assert result.exit_code == code, result.output
    return result.output


def refused(*arguments: str) -> str:
    """Return the one line that a refused command prints."""
    text = call(*arguments, code=2)
    assert re.fullmatch(r"error: [^\n]+\n", text), text
    return text


def motion(folder: str | Path) -> dict[str, np.ndarray]:
    with np.load(Path(folder) / "motion.npz") as file:
        return dict(file)


# Results ---------------------------------------------------------------------------------------


def test_examples_of_the_help_work(here: Path) -> None:
    """All examples run in order in a new folder."""
    examples = re.findall(r"^ *chasles (simulate .*)$", command.__doc__ or "", re.MULTILINE)
    assert len(examples) == 8
    (here / "ant.xml").write_text(ANT)
    (here / "dog.urdf").write_text(DOG)
    moved = "trajectory puma560 --to joint1=1 --duration 2 -o a.csv"
    for line in (moved, *examples):
        result = CliRunner().invoke(app, line.split(), env=ENV)
        assert result.exit_code == 0, (line, result.output)
    for plot in ("motion.png", "energy.png"):
        assert (here / "simulation" / plot).read_bytes().startswith(b"\x89PNG")
    assert (here / "hold.csv").stat().st_size > 1e5
    assert motion("hold")["t"][-1] == 2.0
    assert not list(here.rglob("part-*"))


def test_a_floating_base_fits_the_terminal(here: Path) -> None:
    """The final state has one row for the orientation of the base and one for its position."""
    (here / "dog.urdf").write_text(DOG)
    flags = ["--floating", "--ground", "rigid,friction=0.8", "--duration", "0.01"]
    text = call("dog.urdf", *flags, "--qd", "root_joint=0.1,0.2,0.3,0.4,0.5,0.6")
    rows = [row for row in text.splitlines() if row.startswith(" root_joint")]
    assert len(rows) == 2
    assert max(map(len, rows)) < 100


def test_pieces_and_parts_are_the_motion_of_simulate() -> None:
    """Results are bitwise equal to one call in Python, however the command divides the motion."""
    call("puma560", "--random", "3", "--duration", "0.35", "--save", "0", "-o", "a")
    robot = chasles.robots.puma560()
    whole = robot.simulate(robot.random(seed=3), np.zeros(6), duration=0.35)
    found = motion("a")
    for name in ("t", "q", "qd"):
        assert np.array_equal(found[name], getattr(whole, name))
    assert str(found["format"]) == "chasles-motion-1"
    assert str(found["robot"]) == "puma560"
    assert np.array_equal(found["potential"], robot.potential_energy(whole.q))


def test_computed_torque_gives_damped_springs() -> None:
    """Each coordinate follows x = x0 (1 + w t) exp(-w t), with kp = w^2 and kd = 2 w."""
    start = ["--q", ",".join(["0.4"] * 6), "--target", ",".join(["0"] * 6)]
    control = ["--control", "computed-torque", "--kp", "64", "--kd", "16"]
    call("puma560", *start, *control, "--duration", "0.5", "-o", "a")
    assert np.allclose(motion("a")["q"][-1], 0.4 * 5.0 * math.exp(-4.0), rtol=1e-9)


def test_other_controllers_hold_their_target() -> None:
    """Gravity compensation holds the start; PD control sags by the gravity torque over kp."""
    call("puma560", "--random", "1", "--control", "gravity", "--duration", "0.1", "-o", "a")
    q = motion("a")["q"]
    assert np.max(np.abs(q - q[0])) < 1e-12
    pd = ["--control", "pd", "--kp", "1000", "--kd", "100", "--target", "joint1=0.1"]
    call("planar:1", *pd, "--duration", "3", "--dt", "2e-3", "-o", "b")
    sag = 0.1 - motion("b")["q"][-1, 0]
    assert math.isclose(sag, 0.5 * 9.81 * math.cos(0.1 - sag) / 1000.0, rel_tol=1e-6)


def test_scalar_gains_leave_a_floating_base_without_motors() -> None:
    pd = ["quadruped", "--keyframe", "standing", "--control", "pd", "--qd", "front_left_knee=1"]
    pd += ["--duration", "0.01"]
    call(*pd, "--kp", "60", "--kd", "2", "-o", "a")
    each = [",".join(["0"] * 6 + [gain] * 12) for gain in ("60", "2")]
    call(*pd, "--kp", each[0], "--kd", each[1], "-o", "b")
    assert np.array_equal(motion("a")["q"], motion("b")["q"])


def test_disturbances_come_from_their_seed_and_interval() -> None:
    """For a rod without gravity, the accelerations in one-interval steps are independent draws."""
    scenario = 'format = "scenario"\nrobot = "rod.toml"\nduration = 20.0\ndt = 0.01\n'
    chasles.save(chasles.robots.planar(1).with_gravity([0.0, 0.0, 0.0]), "rod.toml")
    table = "[disturbance]\neffort = 2.0\nhold = 0.01\nseed = 5\n"
    Path("s.toml").write_text(scenario + 'integrator = "euler"\n' + table)
    call("s.toml", "-o", "a")
    call("s.toml", "-o", "b", "--save", "0")
    call("s.toml", "--disturbance", "effort=2,hold=0.01,seed=6", "-o", "c")
    push = np.diff(motion("a")["qd"][:, 0]) / 0.01 / 3.0
    assert len(push) == 2000
    assert abs(np.std(push) - 2.0) < 0.15
    assert abs(np.corrcoef(push[1:], push[:-1])[0, 1]) < 0.08
    assert np.array_equal(motion("a")["q"], motion("b")["q"])
    assert not np.array_equal(motion("a")["q"], motion("c")["q"])


def test_loops_start_closed() -> None:
    """Independent coordinates are as given, and the others follow from the loops."""
    call("four_bar", "--q", "crank=0.6", "--qd", "crank=2", "--duration", "0.2", "-o", "a")
    found, robot = motion("a"), chasles.robots.four_bar()
    assert found["q"][0, 0] == pytest.approx(0.6, abs=1e-12)
    assert found["qd"][0, 0] == pytest.approx(2.0, abs=1e-12)
    assert np.max(np.abs(robot.loop_residual(found["q"]))) < 1e-12
    energy = found["kinetic"] + found["potential"]
    assert np.max(np.abs(energy - energy[0])) < 1e-8


def test_tables_have_a_column_for_each_number() -> None:
    call("planar:2", "--random", "2", "--duration", "0.05", "--table", "moves.csv", "-o", "a")
    header, *lines = Path("moves.csv").read_text().splitlines()
    joints = [f"joint{k}.{part}" for part in ("q", "qd", "tau") for k in (1, 2)]
    assert header == ",".join(["t", *joints, "kinetic", "potential"])
    rows = np.array([[float(x) for x in line.split(",")] for line in lines])
    assert np.array_equal(rows[:, 1:3], motion("a")["q"])
    assert np.array_equal(rows[:, 5:7], np.zeros_like(rows[:, 5:7]))
    assert np.array_equal(rows[:, 8], motion("a")["potential"])
    call("quadruped", "--duration", "0.01", "--table", "dog.parquet", "-o", "b")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = parquet.read_table("dog.parquet")
    assert columns.column_names[:3] == ["t", "floating_base.q0", "floating_base.q1"]
    assert np.array_equal(columns["floating_base.q6"], motion("b")["q"][:, 6])
    assert np.array_equal(columns["kinetic"], motion("b")["kinetic"])


def test_json_is_for_programs() -> None:
    found = json.loads(call("planar:1", "--duration", "0.1", "--json", "-o", "a"))
    assert found["finished"] is True
    assert (found["t"], found["states"]) == (0.1, 101)
    assert found["q"] == motion("a")["q"][-1].tolist()
    assert found["energy"]["largest_change"] < 1e-9
    assert found["files"] == {"motion": str(Path("a") / "motion.npz")}


# Scenarios -------------------------------------------------------------------------------------


FLAGS = [
    *("--duration", "0.3", "--dt", "2e-3", "--integrator", "heun3", "--rtol", "1e-8"),
    *("--every", "2", "--random", "7", "--q", "joint2=0.25", "--qd", "0,0,0,1,0,1e-3"),
    *("--control", "pd", "--kp", "50", "--kd", "1,2,3,4,5,6", "--target", "joint1=1"),
    *("--disturbance", "effort=0.5,hold=0.02,seed=3", "--dissipation"),
]


def test_a_scenario_of_flags_is_the_same_simulation(here: Path) -> None:
    """A scenario written from flags is the same when written again, and gives the same motion."""
    call("puma560", *FLAGS, "--write-scenario", "s.toml")
    (here / "other").mkdir()
    call("s.toml", "--write-scenario", "other/again.toml")
    assert (here / "s.toml").read_text() == (here / "other" / "again.toml").read_text()
    call("puma560", *FLAGS, "-o", "a")
    call("s.toml", "-o", "b")
    assert (here / "a/motion.npz").read_bytes() == (here / "b/motion.npz").read_bytes()
    call("s.toml", "--duration", "0.1", "--q", "0,0,0,0,0,0", "-o", "c")
    assert motion("c")["t"][-1] == 0.1
    assert not motion("c")["q"][0].any()
    assert np.array_equal(motion("c")["qd"][0], motion("a")["qd"][0])


def test_robot_files_are_found_beside_the_scenario(here: Path) -> None:
    (here / "deep").mkdir()
    chasles.save(chasles.robots.planar(2), "deep/arm.toml")
    call("deep/arm.toml", "--duration", "0.02", "--write-scenario", "deep/s.toml")
    assert 'robot = "arm.toml"' in (here / "deep/s.toml").read_text()
    call("deep/s.toml", "-o", "a")
    assert 'robot = "../deep/arm.toml"' in (here / "a/scenario.toml").read_text()


def test_installed_robots_are_found_by_name_from_anywhere(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The robot is also found from a scenario in another folder, and when a motion is resumed."""
    cache = here / "cache" / "arms"
    cache.mkdir(parents=True)
    chasles.save(chasles.robots.planar(2), cache / "swinger.urdf")
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(cache.parent))
    (here / "deep").mkdir()
    call("swinger", "--duration", "0.02", "--write-scenario", "deep/s.toml")
    call("deep/s.toml", "-o", "a")
    call("--resume", "-o", "a")
    assert motion("a")["t"][-1] == 0.02


XACRO = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="m" default="1"/><link name="base"/><link name="rod"><inertial>
    <mass value="$(arg m)"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
  </inertial></link>
  <joint name="slide" type="prismatic"><parent link="base"/><child link="rod"/>
    <axis xyz="0 0 1"/><limit lower="0.5" upper="1" effort="1" velocity="1"/></joint></robot>"""


def test_robots_are_loaded_as_by_every_command(here: Path) -> None:
    """Arguments of a xacro file come from a flag or the scenario; --strict refuses the file."""
    pytest.importorskip("xacro")
    (here / "arm.xacro").write_text(XACRO)
    call("arm.xacro", "--argument", "m=3", "--strict", "--write-scenario", "s.toml")
    text = (here / "s.toml").read_text()
    assert re.search('strict = true\narguments = {"m" = "3"}', text)
    found = json.loads(call("s.toml", "--q", "0.5", "--duration", "0.01", "--json", "-o", "a"))
    assert found["energy"]["first"] == pytest.approx(3 * 9.81 * 0.5)
    (here / "arm.xacro").write_text(XACRO.replace('izz="1"', 'izz="9"'))
    assert "rod" in refused("s.toml", "-o", "b")
    assert "--argument m: give NAME=VALUE" in refused("arm.xacro", "--argument", "m", "-o", "c")


def test_a_start_outside_limits_is_said(here: Path) -> None:
    (here / "arm.urdf").write_text(XACRO.replace("$(arg m)", "1").replace("xacro:arg", "x"))
    text = call("arm.urdf", "--duration", "0.01", "-o", "a")
    assert (
        "note: the initial state is outside the limits of 'slide' (0, limits 0.5 to 1); set "
        in text
    )
    assert "note" not in call("arm.urdf", "--duration", "0.01", "--q", "0.5", "-o", "b")


HEAD = 'format = "scenario"\nrobot = "quadruped"\n'
CONTACT = """
[[contact]]
body = {kind = "sphere", frame = "front_left_foot", radius = 0.02}
surface = {kind = "plane"}
law = {kind = "hunt-crossley", stiffness = 5e4, damping = 0.3}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("durations = 1", r"s.toml:3: unknown key 'durations'; did you mean 'duration'"),
        ("duration = -1", r"s.toml:3: duration is -1; give a positive number"),
        ("dt = nan", r"s.toml:3: dt is nan; give a positive number"),
        ("every = 1.5", r"s.toml:3: every is 1.5; give a positive integer"),
        ('integrator = "rk5"', r"s.toml:3: integrator is 'rk5'; did you mean 'rk4'"),
        ("arguments = 'm'", r"s.toml:3: arguments is 'm'; give {name = text} for a .xacro file"),
        ("floating = 1", r"s.toml:3: floating is 1; give true or false"),
        ("[units]\nlength = 'mm'", r"s.toml:3: scenarios use SI units and radians"),
        (
            "[start]\nq = [1, 2]",
            r"s.toml:4: start: q must have 19 entries, not 2",
        ),
        ("[start]\nq = {knee = 1}", r"s.toml:4: start: .*'knee'.*front_left_knee"),
        ("[start]\nqd = {front_left_knee = [1, 2]}", r"s.toml:4: start: .*front_left_knee"),
        ("[start]\nrandom = -1", r"s.toml:4: start: random is -1; give a non-negative integer"),
        (
            "[control]\nkp = 1",
            r"s.toml:3: control: the control has no law; give one of pd, gravity",
        ),
        (
            "[control]\nlaw = 'pd'\nkp = 1",
            r"s.toml:4: control: law 'pd' needs stiffness and damping",
        ),
        (
            "[control]\nlaw = 'gravity'\nkp = 1",
            r"s.toml:5: control: kp is not a parameter of law 'g",
        ),
        ("[control]\nlaw = 'pd'\nkp = [1, 2]\nkd = 1", r"s.toml:5: control: kp has 2 entries"),
        ("[control]\nlaw = 'pid'", r"s.toml:4: control: law is 'pid'; did you mean 'pd'"),
        ("[disturbance]\neffort = 1", r"s.toml:3: the disturbance lacks hold, seed"),
        (
            CONTACT.replace("sphere", "ball"),
            r"s.toml:5: contact 1: body: unknown kind 'ball'; use one of 'point'",
        ),
        (CONTACT.replace("radius", "radios"), r"s.toml:5: contact 1: .*'radios'; did you mean 'ra"),
        (CONTACT.replace("0.02", "-0.02"), r"s.toml:5: contact 1: Sphere: radius must be positi"),
        (CONTACT.replace("left_foot", "toe"), r"s.toml:5: contact 1: .*no frame 'front_toe'; did"),
        (CONTACT.replace('"plane"', '"plane", normal = [0, 0]'), r"s.toml:6: contact 1: .*three"),
        (
            CONTACT.replace(", damping = 0.3", ""),
            r"s.toml:7: contact 1: .* the table has no damping",
        ),
        (
            CONTACT.replace("0.3}", "0.3, friction = 1}"),
            r"s.toml:7: .*friction is not a table: 1; give an inline tab",
        ),
        (CONTACT.replace('surface = {kind = "plane"}', ""), r"s.toml:4: contact 1: the contact ha"),
    ],
)
def test_wrong_scenarios_are_refused_where_they_are_wrong(text: str, message: str) -> None:
    Path("s.toml").write_text(HEAD + text + "\n")
    assert re.search(message, refused("s.toml", "-o", "a")), refused("s.toml", "-o", "a")
    assert not Path("a").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pumas"], r"error: robot: pumas: there is no such file.*'puma560'"),
        ([], r"give a robot or a scenario to simulate"),
        (["puma560", "--duration", "0"], r"--duration: duration is 0.0; give a positive"),
        (
            ["puma560", "--q", "1,2"],
            r"--q: q must have 6 entries, not 2",
        ),
        (["puma560", "--q", "1,x,3"], r"--q: 'x' is not a number"),
        (["puma560", "--q", "joint9=1"], r"--q: .*'joint9' is not a joint.*did you mean 'joint6'"),
        (["puma560", "--control", "pid"], r"--control: law is 'pid'; did you mean 'pd'"),
        (
            ["puma560", "--control", "pd", "--kp", "1"],
            r"--control: law 'pd' needs stiffness and damping; "
            r"give both gains.*--stiffness 100 --damp",
        ),
        (
            ["puma560", "--follow", "a.csv"],
            r"the control has no law; .*: --control computed-torque --stiffness 100 --damping 20",
        ),
        (["puma560", "--foot", "tool"], r"--foot needs a contact law; add --ground rigid"),
        (["puma560", "--foot", "tol", "--ground", "rigid"], r"--foot: .*no frame 'tol'; did you"),
        (
            ["puma560", "--foot", "tool", "--ground", "mud"],
            r"--foot: law: unknown kind 'mud'; use one of 'rigid'",
        ),
        (["puma560", "--table", "x.txt"], r"x.txt: unknown table format"),
        (["puma560", "--table", "no/x.csv"], r"no/x.csv: the folder does not exist"),
        (["four_bar", "--q", "crank=9e9x"], r"--q: '9e9x' is not a number"),
        (["planar:1", "--resume"], r"simulation: there is no simulation to continue"),
        (["--resume", "-o", "void"], r"void: the folder has no simulation to continue"),
        (["planar:1", "--resume", "--overwrite"], r"use --resume to continue, or --overwrite"),
    ],
)
def test_wrong_flags_are_refused_by_name(arguments: list[str], message: str) -> None:
    text = refused(*arguments)
    assert re.search(message, text), text


def test_values_that_a_field_cannot_take_have_the_code_of_scenarios() -> None:
    """The code is the same for keys, tables, contacts and flags."""
    contact = CONTACT.replace('"plane"', '"plane", normal = [0, 0]')
    for text in ("duration = -1", "[start]\nrandom = -1", contact):
        Path("s.toml").write_text(HEAD + text + "\n")
        assert refused("s.toml", "-o", "a").endswith("[E-SCENARIO-019]\n")
    assert refused("puma560", "--duration", "0").endswith("[E-SCENARIO-019]\n")


def test_flags_beside_a_scenario_answer_for_what_they_begin() -> None:
    """Errors in a flag name the flag, and errors in the scenario name its line."""
    Path("s.toml").write_text(HEAD + "[start]\nrandom = 1\nqd = [1, 2]\n")
    for flags, message in (
        (["--disturbance", "effort=1"], "error: --disturbance: the disturbance lacks hold, seed"),
        (["--disturbance", "joint1=0.3"], "error: --disturbance: unknown field 'joint1'"),
        (["--kp", "1"], "error: --control: the control has no law; give one of pd"),
        (["--random", "2"], "error: s.toml:5: start: qd must have 18 entries, not 2"),
    ):
        assert refused("s.toml", *flags, "-o", "a").startswith(message)


def test_contacts_are_pairs_with_their_numbers() -> None:
    """Every shape and law of a scenario equals the one created in Python."""
    from chasles import contact
    from chasles.cli.scenario import pair, read
    from chasles.cli.scenario_fields import KINDS

    soft = 'kind = "soft-surface", stiffness = 1e5, damping = 2e3'
    Path("s.toml").write_text(
        HEAD
        + CONTACT
        + f"""
[[contact]]
body = {{kind = "box", frame = "trunk", size = [1, 2, 3.5], center = [0, 0, 0.1]}}
surface = {{kind = "plane", normal = [0, 0.1, 1], point = [0, 0, -1]}}
law = {{kind = "rigid", friction = 0.8, restitution = 0.5}}
[[contact]]
body = {{kind = "point", frame = "rear_left_foot", at = [0, 0, -0.02]}}
surface = {{kind = "capsule", frame = "trunk", radius = 0.1, start = [0, 0, 0], end = [1, 0, 0]}}
law = {{{soft}, friction = {{coefficient = 0.8, stiffness = 1e4, damping = 200}}}}
"""
    )
    plane = contact.Plane()
    ball = contact.Sphere("front_left_foot", 0.02)
    rows = read("s.toml").contacts
    assert pair(rows[0]) == contact.Pair(
        ball, plane, contact.SoftContact(contact.HuntCrossley(5e4, 0.3))
    )
    assert pair(rows[1]) == contact.Pair(
        contact.Box("trunk", (1.0, 2.0, 3.5), (0.0, 0.0, 0.1)),
        contact.Plane(normal=(0.0, 0.1, 1.0), point=(0.0, 0.0, -1.0)),
        contact.Rigid(0.8, 0.5),
    )
    friction = contact.SoftFriction(0.8, 1e4, 200.0)
    assert pair(rows[2]) == contact.Pair(
        contact.Point("rear_left_foot", (0.0, 0.0, -0.02)),
        contact.Capsule("trunk", 0.1, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
        contact.SoftContact(contact.SoftSurface(1e5, 2e3), friction),
    )
    law = "hunt-crossley,stiffness=5e4,damping=0.3"
    call("s.toml", "--foot", "front_left_foot:0.02", "--ground", law, "--write-scenario", "f.toml")
    assert tuple(map(pair, read("f.toml").contacts)) == (pair(rows[0]),)
    soft_laws = {"soft-surface", "standard-solid", "hunt-crossley", "azad-featherstone"}
    assert KINDS["law"].keys() == {"rigid", *soft_laws}


BALL = """
format = "mechanism"
[[link]]
name = "ball"
mass = 2.0
inertia = [0.1, 0.1, 0.1]
[[joint]]
name = "fall"
kind = "prismatic"
child = "ball"
axis = [0, 0, 1]
"""
SOFT = "soft-surface,stiffness=2e4,damping=300"


def test_joints_stop_at_their_limits(here: Path) -> None:
    """A mass falls 0.1 m to its lower limit and stays there, by flag or by scenario."""
    (here / "ball.toml").write_text(BALL + "limits = [-0.1, 1.0]\n")
    call("ball.toml", "--duration", "0.3", "-o", "free")
    assert motion("free")["q"][-1, 0] == pytest.approx(-0.5 * 9.81 * 0.3**2, abs=1e-9)
    flags = ["ball.toml", "--duration", "0.3", "--limits"]
    found = json.loads(call(*flags, "--json", "-o", "a"))
    assert found["q"] == pytest.approx([-0.1], abs=1e-9)
    assert "contact" not in found
    call(*flags, "--write-scenario", "s.toml")
    assert "limits = true" in (here / "s.toml").read_text()
    call("s.toml", "-o", "b", "--plots")
    assert np.array_equal(motion("a")["q"], motion("b")["q"])
    text = refused(*flags, "--foot", "ball:0.1", "--ground", SOFT, "--q", "0.2", "-o", "c")
    assert "--foot: soft contact laws cannot be combined with joint limits" in text


@pytest.mark.parametrize("ground", [SOFT, "rigid,restitution=0.4"])
def test_a_ball_comes_to_rest_on_the_ground(ground: str, here: Path) -> None:
    """The final contact force is the weight, also if the simulation is stopped and resumed.

    Not all pieces of 100 steps have a saved state.
    """
    (here / "ball.toml").write_text(BALL)
    flags = ["--foot", "ball:0.1", "--ground", ground, "--q", "0.2", "--every", "250"]
    call("ball.toml", *flags, "--duration", "1.5", "--plots", "-o", "whole")
    call("ball.toml", *flags, "--duration", "1.5", "--write-scenario", "s.toml")
    stopped("b", "s.toml", parts=9)
    found = json.loads(call("--resume", "-o", "b", "--json"))
    assert (here / "b/motion.npz").read_bytes() == (here / "whole/motion.npz").read_bytes()
    assert np.allclose(found["contact"]["last_force"], [0.0, 0.0, 2.0 * 9.81], rtol=1e-6)
    deep = 2.0 * 9.81 / 2e4 if ground == SOFT else 0.0
    assert found["q"][0] == pytest.approx(0.1 - deep, rel=1e-6)
    assert motion("whole")["contact_gaps"].shape == (len(motion("whole")["t"]), 1)
    assert (here / "whole/contact.png").read_bytes().startswith(b"\x89PNG")


def test_a_capsule_lands_on_a_box_of_a_scenario(here: Path) -> None:
    """The capsule falls 0.1 m and stays there."""
    (here / "ball.toml").write_text(BALL)
    (here / "s.toml").write_text(
        """format = "scenario"
robot = "ball.toml"
duration = 0.3
[start]
q = [0.2]
[[contact]]
body = {kind = "capsule", frame = "ball", radius = 0.1, start = [-0.2, 0, 0], end = [0.3, 0, 0]}
surface = {kind = "box", size = [0.4, 0.4, 0.2], center = [0, 0, -0.1]}
law = {kind = "rigid"}
"""
    )
    found = json.loads(call("s.toml", "--json", "-o", "a"))
    assert found["q"] == pytest.approx([0.1], abs=1e-9)
    assert np.allclose(found["contact"]["last_force"], [0.0, 0.0, 2.0 * 9.81], rtol=1e-9)


# Interruptions ---------------------------------------------------------------------------------

LONG = "planar:2 --random 1 --integrator dopri5 --duration 25 --rtol 1e-9 --save 0.01 --every 7"
"""Arguments of a simulation that takes a second or more."""


def child(*arguments: str, limit: int | None = None) -> int:
    """Start a command in a forked process with all modules loaded; return its process ID."""
    pid = os.fork()
    if pid == 0:
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            app(["simulate", *arguments, "--no-plots"], standalone_mode=True)
        except SystemExit as exit:
            os._exit(exit.code if isinstance(exit.code, int) else 1)
        finally:
            os._exit(99)
    return pid


def test_ctrl_c_keeps_what_was_computed(here: Path) -> None:
    """The printed command resumes a real process, and the result is bitwise identical."""
    call(*LONG.split(), "-o", "whole")
    words = [sys.executable, "-m", "chasles", "simulate", *LONG.split(), "-o", "stopped"]
    env = os.environ | {"PYTHONPATH": str(Path(chasles.__file__).parents[1])}
    process = subprocess.Popen([*words, "--json"], stdout=-1, stderr=-1, text=True, env=env)
    while process.poll() is None and not list(here.glob("stopped/part-*")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    found = json.loads(output)
    assert found["finished"] is False
    assert 0.0 < found["t"] < 25.0
    line = re.search(r"Continue with: chasles (simulate .*)", said)
    assert line, said
    assert CliRunner().invoke(app, line[1].split(), env=ENV).exit_code == 0
    assert (here / "stopped/motion.npz").read_bytes() == (here / "whole/motion.npz").read_bytes()


def stopped(folder: str, *arguments: str, parts: int = 4) -> None:
    """Run the given number of parts of a simulation, one piece each, without finishing it."""
    given = flags_of(*arguments)
    recording = Task(arguments[0], given, Path(folder)).recording()
    pieces = iter(range(parts + 1))
    run(recording, lambda t: None, lambda: next(pieces) == parts, save=0.0)
    assert len(list(Path(folder).glob("part-*"))) == parts


def flags_of(*arguments: str) -> dict[str, object]:
    """Convert flags to a dictionary of top-level values."""
    pairs = zip(arguments[1::2], arguments[2::2], strict=True)
    return {key.removeprefix("--"): float(value) for key, value in pairs}


def test_a_loop_goes_on_in_its_coordinates(here: Path) -> None:
    """A four-bar linkage that is stopped and resumed from disk moves as in one run."""
    call("four_bar", "--duration", "0.7", "-o", "whole")
    stopped("b", "four_bar", "--duration", "0.7")
    call("four_bar", "--duration", "0.7", "-o", "b", "--resume")
    assert (here / "b/motion.npz").read_bytes() == (here / "whole/motion.npz").read_bytes()


def test_damaged_parts_are_computed_again(here: Path) -> None:
    """Damaged or missing parts are computed again, but parts of another folder are kept."""
    call("planar:2", "--duration", "0.7", "-o", "whole")
    for folder in ("last", "early", "gone", "foreign"):
        stopped(folder, "planar:2", "--duration", "0.7")
    parts = {name: sorted((here / name).glob("part-*")) for name in ("last", "early", "gone")}
    for path in (parts["last"][3], parts["early"][1]):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    parts["gone"][2].unlink()
    stopped("other", "planar:2", "--dt", "0.0009")
    third = next(here.glob("foreign/part-000003-*"))
    third.unlink()
    stranger = next(here.glob("other/part-000003-*"))
    (here / "foreign" / stranger.name).write_bytes(stranger.read_bytes())
    for folder, left in (("last", 1), ("early", 3), ("gone", 1), ("foreign", 1)):
        text = call("--resume", "-o", folder)
        assert (
            text.count("the part is damaged or follows a damaged part; computed again") == left
        ), text
        found = (here / folder / "motion.npz").read_bytes()
        assert found == (here / "whole/motion.npz").read_bytes()
    assert (here / "foreign" / stranger.name).read_bytes() == stranger.read_bytes()


def test_a_folder_is_of_one_scenario_and_one_robot(here: Path) -> None:
    chasles.save(chasles.robots.planar(2), "arm.toml")
    stopped("a", "arm.toml", "--duration", "0.7")
    before = {path.name: path.read_bytes() for path in (here / "a").iterdir()}
    assert "different scenario" in refused("arm.toml", "--duration", "0.8", "--resume", "-o", "a")
    assert "different scenario" in refused("--dt", "0.002", "--resume", "-o", "a")
    other = refused("planar:3", "--duration", "0.7", "--resume", "-o", "a")
    assert "different robot" in other
    assert "the folder already contains a simulation; continue it with --resume" in refused(
        "arm.toml", "--duration", "0.7", "-o", "a"
    )
    text = (here / "arm.toml").read_text()
    (here / "arm.toml").write_text(text.replace("mass = 1.0", "mass = 1.001", 1))
    assert "different robot" in refused("--resume", "-o", "a")
    assert {path.name: path.read_bytes() for path in (here / "a").iterdir()} == before
    (here / "arm.toml").write_text("# the same arm, a line further down\n" + text)
    call("--resume", "-o", "a")
    call("arm.toml", "--duration", "0.1", "-o", "a", "--overwrite")
    assert motion("a")["t"][-1] == 0.1


def test_a_full_disk_loses_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full at the third part and at the motion file; saved data remain each time."""
    call("planar:2", "--duration", "0.5", "-o", "whole")
    synced = os.fsync
    for room, kept in ((13, "0.1"), (4, "0.3"), (8, "0.5")):
        calls = iter(range(10**6))

        def fsync(file: int, room: int = room, calls: Any = calls) -> None:
            if next(calls) >= room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            synced(file)

        monkeypatch.setattr(os, "fsync", fsync)
        how = ["--resume"] if Path("a").exists() else ["planar:2", "--duration", "0.5"]
        text = refused(*how, "--save", "0", "-o", "a")
        assert f"a: No space left on device; the motion up to t = {kept} s is saved; free" in text
        assert "continue with: chasles simulate --output a --resume [E-CLI-" in text
        monkeypatch.setattr(os, "fsync", synced)
    call("--resume", "-o", "a")
    assert (here / "a/motion.npz").read_bytes() == (here / "whole/motion.npz").read_bytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork")
def test_a_limit_of_the_system_on_files_loses_nothing(here: Path) -> None:
    """The motion file exceeds a limit on file sizes, which parts do not, and is written later."""
    call("planar:2", "--duration", "0.5", "-o", "whole")
    pid = child("planar:2", "--duration", "0.5", "--save", "0", "-o", "a", limit=12_000)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2
    assert len(list(here.glob("a/part-*"))) == 5
    call("--resume", "-o", "a")
    assert (here / "a/motion.npz").read_bytes() == (here / "whole/motion.npz").read_bytes()


def test_folders_that_cannot_be_made_are_refused(here: Path) -> None:
    (here / "file").write_text("")
    text = refused("planar:1", "-o", "file/deep")
    assert "file/deep: Not a directory; the folder cannot be used; choose another --output" in text


def test_a_motion_that_fails_keeps_what_came_before(here: Path) -> None:
    """A controller is too stiff for the step size."""
    control = ["--control", "pd", "--kp", "32000", "--kd", "0", "--qd", "1"]
    text = refused("planar:1", *control, "--dt", "0.01", "--duration", "20", "-o", "a")
    assert "E-MOTION-014" in text
    assert "the motion so far is in a, up to t = " in text
    assert list(here.glob("a/part-*"))


# Contacts in the robot file ---------------------------------------------------------------------

BALL_ON_PLANE = """
<mujoco model="ball">
  <worldbody>
    <geom type="plane" size="1 1 0.1"/>
    <body name="ball" pos="0 0 0.5">
      <freejoint name="free"/><geom type="sphere" size="0.1" mass="1"/>
    </body>
  </worldbody>
</mujoco>
"""


def test_a_robot_stands_on_the_plane_of_its_file(here: Path) -> None:
    """A ball falls from 0.5 m and stays on the plane; without contacts, it falls further."""
    (here / "ball.xml").write_text(BALL_ON_PLANE)
    said = call("ball.xml", "--duration", "1", "--dt", "0.002", "-o", "lies")
    assert "contact: " in said
    height = motion("lies")["q"][:, 6]
    assert height[0] == 0.5
    assert abs(height[-1] - 0.1) < 1e-4
    assert height.min() > 0.0999
    call("ball.xml", "--duration", "1", "--contacts", "none", "-o", "falls")
    np.testing.assert_allclose(motion("falls")["q"][-1, 6], 0.5 - 9.81 / 2.0, rtol=1e-9)
    assert "E-SCENARIO" in refused("ball.xml", "--contacts", "all", "-o", "none")


def test_a_robot_that_follows_a_motion_starts_where_it_does(tmp_path: Path) -> None:
    arm = chasles.robots.planar(2)
    move = chasles.trajectory.cubic([0.4, -0.3], [0.6, 0.1], duration=0.2)
    move.save(tmp_path / "move.csv", arm)
    words = ["simulate", "planar:2", "--control", "computed-torque", "--duration", "0.1"]
    words += ["--stiffness", "100", "--damping", "20"]
    words += ["--follow", str(tmp_path / "move.csv"), "-o", str(tmp_path / "run")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    with np.load(tmp_path / "run" / "motion.npz") as found:
        np.testing.assert_allclose(found["q"], move(found["t"], 0)[0], atol=1e-6)
