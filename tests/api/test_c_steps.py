"""Time steps with contact in C, compiled by gcc, agree with those in Python."""

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_compiler import STRICT, compiler, run
from support import raises

import chasles
from chasles import contact
from chasles.rollouts import PDControl

DT = 0.002
STEPPING = {"integrator": "time-stepping"}
CHECKS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
FLAGS = (*STRICT, "-O1", "-ffp-contract=fast", "-fno-math-errno")
QUICK = (*STRICT, "-O0")
"""Options for long programs, which gcc compiles in half the time without optimization."""

BRICK = """<mujoco><worldbody><geom type="plane" size="5 5 1" friction="0.5"/>
<body name="brick" pos="0 0 0.5"><freejoint/>
<geom type="box" size="0.1 0.05 0.025" mass="1" friction="0.5"/></body></worldbody></mujoco>"""

ARM = """<mujoco><compiler angle="radian"/><worldbody>
<geom type="plane" size="5 5 1" pos="0 0 -0.4"/>
<body><joint name="a" axis="0 1 0" range="-0.5 0.5" damping="0.1"/>
<geom size="0.05" pos="0.3 0 0" mass="1"/>
<body pos="0.3 0 0"><joint name="b" axis="0 1 0" frictionloss="0.5"/>
<geom name="tip" size="0.05" pos="0.3 0 0" mass="1"/></body></body></worldbody>
<actuator><motor joint="a" gear="2"/><general joint="b" dyntype="filter" dynprm="0.05"/></actuator>
</mujoco>"""


class Built:
    """An exported time step, compiled as a library."""

    def __init__(
        self, robot: chasles.Robot, folder: Path, flags: tuple[str, ...] = FLAGS, **options: Any
    ) -> None:
        chasles.export(robot, "time_step", folder, prefix="it", dt=DT, **options)
        self.header, self._folder = (folder / "it.h").read_text(), folder
        self._flags = flags
        run(compiler(), *flags, "-fPIC", "-c", "it.c", "-o", "it.o", cwd=folder)
        run(compiler(), "-shared", "it.o", "-o", "it.so", "-lm", cwd=folder)
        self._step = ctypes.CDLL(str(folder / "it.so")).it_time_step
        (room,) = (line.split() for line in self.header.splitlines() if "_ROOM " in line)
        self._room = np.full(int(room[2]), np.nan)
        self.effort = int(re.findall(r"(?:double|float) effort\[(\d+)\]", self.header)[0])

    def tested(self, *checks: str) -> bool:
        """Return True if the exported test passes; `checks` are options of sanitizers."""
        files = ("it.c" if checks else "it.o", "it_test.c", "-o", "tried", "-lm")
        run(compiler(), *self._flags, *checks, *files, cwd=self._folder)
        return "all agree" in run(self._folder / "tried").stdout

    def __call__(self, *arrays: np.ndarray) -> int:
        pointers = (a.__array_interface__["data"][0] for a in (*arrays, self._room))
        return int(self._step(*map(ctypes.c_void_p, pointers)))


def compare(built: Built, trajectory: Any, *given: np.ndarray) -> np.ndarray:
    """Compare each step in C with Python's motion; return the numbers of iterations."""
    counts, time = [], np.zeros(1)
    touching, act = trajectory.touching, trajectory.act
    for k in range(len(trajectory.t) - 1):
        time[0] = trajectory.t[k]
        states = [trajectory.q[k].copy(), trajectory.qd[k].copy()]
        states += [] if act is None else [act[k].copy()]
        forces, effort = touching.forces[k].ravel().copy(), np.empty(built.effort)
        counts.append(built(*given, time, *states, forces, effort))
        assert abs(counts[-1]) == effort[0]
        after = [trajectory.q[k + 1], trajectory.qd[k + 1]]
        after += [] if act is None else [act[k + 1]]
        for mine, theirs in zip(states, after, strict=True):
            # Contact stiffness, 1e4 times the mass, amplifies the rounding of a linear solve.
            assert np.abs(mine - theirs).max() <= 1e-11 * max(np.abs(theirs).max(), 1.0), k
        theirs = touching.forces[k + 1].ravel()
        # A force is a velocity times a stiffness of 1e4 masses per step.
        assert np.abs(forces - theirs).max() <= 1e-8 * max(np.abs(theirs).max(), 1.0)
    return np.array(counts)


def test_a_quadruped_lands_and_stands_for_1000_steps(tmp_path: Path) -> None:
    robot = chasles.robots.quadruped()
    feet = [f for f in robot.frames if f.endswith("_foot")]
    law = contact.Rigid(friction=0.7)
    pairs = [contact.Pair(contact.Point(f, (0, 0, 0)), contact.Plane(), law) for f in feet]
    q = robot.neutral()
    q[7:] = np.tile([0.0, 0.8, -1.6], 4)
    legs = np.r_[np.zeros(6), np.ones(12)]
    hold = PDControl(stiffness=150.0 * legs, damping=4.0 * legs, target=q.copy())
    q[6] += 0.05 - min(robot.forward_kinematics(q, frame=f)[2, 3] for f in feet)
    qd = np.zeros(18)
    qd[3:5] = 0.4, 0.1
    options = {"contacts": pairs, "control": hold}
    motion = robot.simulate(q, qd, steps=1000, dt=DT, integrator="time-stepping", **options)
    assert motion.touching.forces[-1, :, 2].min() > 1.0
    built = Built(robot, tmp_path, QUICK, **options)
    counts = compare(built, motion)
    assert (counts > 0).all()
    assert counts.max() > 1
    assert built.tested()  # sanitizers are slow for so much code; smaller steps below use them


def test_a_box_slides_turns_and_rests_for_1000_steps(tmp_path: Path) -> None:
    (tmp_path / "brick.xml").write_text(BRICK)
    robot = chasles.load(tmp_path / "brick.xml")
    q, qd = [0.98, 0.1, 0.17, 0.0, 0.0, 0.0, 0.2], [3.0, 1.0, 4.0, 1.0, 0.3, 0.0]
    motion = robot.simulate(q, qd, steps=1000, dt=DT, contacts="file")
    options = {"contacts": "file", "limits": True, "dissipation": True}
    built = Built(robot, tmp_path / "c", **options)
    counts = compare(built, motion, np.zeros(6))
    assert np.abs(counts).max() > 2
    assert np.mean(counts < 0) <= motion.unsolved / 1000
    assert built.tested(*CHECKS)


def test_limits_friction_actuators_and_activations(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(ARM)
    robot = chasles.load(tmp_path / "arm.xml")
    ctrl = np.array([0.4, 1.5])
    motion = robot.simulate([0.4, 0.1], [0.0, 0.0], steps=300, dt=DT, contacts="file", ctrl=ctrl)
    assert np.abs(motion.act[-1]).max() > 0.1
    options = {"contacts": "file", "limits": True, "dissipation": True, "ctrl": True}
    built = Built(robot, tmp_path / "c", **options)
    compare(built, motion, ctrl)
    assert built.tested(*CHECKS)


def test_a_four_bar_lands_on_its_foot(tmp_path: Path) -> None:
    """Loops are closed in C; the last entry of effort is 1 minus the loop margin."""
    robot = chasles.robots.four_bar()
    q = robot.assemble([0.6], robot.neutral())
    up, high = (0.0, 1.0, 0.0), robot.forward_kinematics(q, frame="coupler")[1, 3]
    plane = contact.Plane(None, up, (0.0, high - 0.05, 0.0))
    pair = contact.Pair(contact.Point("coupler"), plane, contact.Rigid(friction=0.5))
    stepping = {"integrator": "time-stepping", "contacts": [pair]}
    motion = robot.simulate(q, np.zeros(3), steps=1000, dt=DT, **stepping)
    assert motion.touching.forces[-1].any()
    built = Built(robot, tmp_path, contacts=[pair], q=q)
    assert "independent coordinates: crank" in built.header
    counts = compare(built, motion, np.zeros(3))
    assert counts.max() > 1
    assert np.abs(robot.loop_residual(motion.q)).max() < 1e-13
    assert built.tested(*CHECKS)


def test_a_delta_robot_with_the_coordinates_of_its_neutral_posture(tmp_path: Path) -> None:
    """Loops in space, dry friction and a controller agree; the neutral position is closed."""
    robot = chasles.robots.delta()
    hold = PDControl(20.0, 0.5, robot.neutral())
    motion = robot.simulate(
        robot.neutral(), np.zeros(robot.nv), steps=50, dt=DT, control=hold, **STEPPING
    )
    built = Built(robot, tmp_path, QUICK, control=hold)
    for k in range(50):
        states = [motion.q[k].copy(), motion.qd[k].copy()]
        effort = np.empty(built.effort)
        assert built(np.full(1, motion.t[k]), *states, effort) > 0
        for mine, theirs in zip(states, (motion.q[k + 1], motion.qd[k + 1]), strict=True):
            assert np.abs(mine - theirs).max() <= 1e-12 * max(np.abs(theirs).max(), 1.0)
        assert -1e-9 < effort[-1] < 0.9
    assert built.tested()


@pytest.mark.parametrize("own_sine", [False, True])
def test_single_precision(tmp_path: Path, own_sine: bool) -> None:
    (tmp_path / "brick.xml").write_text(BRICK)
    robot = chasles.load(tmp_path / "brick.xml")
    options = {"dtype": "float", "own_sine": own_sine}
    assert Built(robot, tmp_path / "c", QUICK, contacts="file", **options).tested()


def test_its_test_notices_a_change(tmp_path: Path) -> None:
    (tmp_path / "brick.xml").write_text(BRICK)
    robot = chasles.load(tmp_path / "brick.xml")
    chasles.export(robot, "time_step", tmp_path, dt=DT, contacts="file", prefix="it")
    source = tmp_path / "it.c"
    assert "9.81" in source.read_text()
    source.write_text(source.read_text().replace("9.81", "9.7"))
    run(compiler(), "it.c", "it_test.c", "-o", "t", "-lm", cwd=tmp_path)
    with pytest.raises(AssertionError, match="FAILED"):
        run(tmp_path / "t")


def test_the_header_is_cpp_and_the_code_needs_math_alone(tmp_path: Path) -> None:
    (tmp_path / "brick.xml").write_text(BRICK)
    robot = chasles.load(tmp_path / "brick.xml")
    chasles.export(robot, ["time_step", "mass_matrix"], tmp_path, dt=DT, contacts="file")
    run(compiler(), *FLAGS, "-c", "brick.c", "-o", "brick.o", cwd=tmp_path)
    main = "static double room[BRICK_TIME_STEP_ROOM]; double q[7] = {1, 0, 0, 0, 0, 0, 0.025};"
    call = "brick_time_step(tau, t, q, qd, forces, effort, room) > 0 ? 0 : 1"
    arrays = "double tau[6] = {0}, t[1] = {0}, qd[6] = {0}, forces[24] = {0}, effort[7];"
    text = f'#include "brick.h"\nint main() {{ {main} {arrays} return {call}; }}'
    (tmp_path / "main.cpp").write_text(text)
    run(compiler("g++"), "-Wall", "-Werror", "main.cpp", "brick.o", "-o", "t", cwd=tmp_path)
    run(tmp_path / "t")
    wanted = run("nm", "--undefined-only", "brick.o", cwd=tmp_path).stdout.split()
    assert set(wanted) - {"U", "_GLOBAL_OFFSET_TABLE_"} <= {"sin", "cos", "sincos", "sqrt", "fabs"}


def test_refusals(tmp_path: Path) -> None:
    robot = chasles.robots.quadruped()
    with raises("E-EXPORT-014"):
        chasles.export(robot, "time_step", tmp_path)
    with raises("E-EXPORT-015"):
        hold = PDControl(1.0, 1.0, robot.neutral())
        chasles.export(robot, "time_step", tmp_path, dt=DT, control=hold, ctrl=True)
    bar = chasles.robots.four_bar()
    with raises("E-MOTION-184"):
        chasles.export(bar, "time_step", tmp_path, dt=DT, q=[0.6, 0.1, 0.2])
    with raises("E-EXPORT-005"):
        chasles.export(robot, "mass_matrix", tmp_path, dt=DT)
