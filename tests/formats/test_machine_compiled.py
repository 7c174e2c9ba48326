"""Actuators and springs in compiled code, in derivatives and in simulations."""

import sys
from pathlib import Path

import numpy as np
import pytest
from c_compiler import STRICT, Native, compiler, run
from test_mjcf_machine import MACHINE

import chasles
from chasles.backends.cuda import build as cuda_build

mujoco = pytest.importorskip("mujoco")

FUNCTIONS = ("actuate", "activation_rate", "spring_forces", "forward_dynamics")

SWING = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.001" integrator="RK4"><flag contact="disable"/></option>
  <worldbody>
    <site name="post" pos="0.4 0 1"/>
    <body name="base" pos="0 0 1">
      <joint name="lift" type="slide" axis="0 0 1" stiffness="40" springref="0.2"/>
      <geom type="box" size="0.1 0.05 0.2" mass="2"/>
      <body name="arm" pos="0.1 0 0.1">
        <joint name="pitch" axis="0 1 0" stiffness="7" springref="0.1"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0.4 0.1 0" mass="1"/>
        <site name="tip" pos="0.4 0.1 0"/>
        <body name="hand" pos="0.4 0.1 0">
          <joint name="wrist" type="ball" stiffness="2"/>
          <geom type="ellipsoid" size="0.05 0.08 0.04" pos="0.1 0.02 0" mass="0.5"/>
        </body>
      </body>
    </body>
    <body name="loose" pos="0 1 1.2">
      <joint name="free" type="free" stiffness="5"/>
      <geom type="box" size="0.1 0.2 0.05" pos="0.05 0 0" mass="1"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="sum" stiffness="9" springlength="0.1 0.3">
      <joint joint="lift" coef="0.8"/><joint joint="pitch" coef="-1.1"/>
    </fixed>
    <spatial name="rope" stiffness="30" springlength="0.2">
      <site site="post"/><site site="tip"/>
    </spatial>
  </tendon>
</mujoco>
"""


def loaded(text: str, folder: Path) -> chasles.Robot:
    path = folder / "machine.xml"
    path.write_text(text, "utf-8")
    return chasles.load(path)


def arrays(robot: chasles.Robot, count: int = 5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    sizes = {"qd": robot.nv, "tau": robot.nv, "ctrl": len(robot.actuators)}
    found = {name: rng.normal(size=(count, size)) for name, size in sizes.items()}
    found["act"] = rng.normal(size=(count, len(robot.actuators.active)))
    return found | {"q": robot.random(rng, count)}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_exported_c_equals_the_compiled_function(function: str, tmp_path: Path) -> None:
    robot = loaded(MACHINE, tmp_path)
    program = chasles.compile(robot, function, backend="interpret").program
    every = arrays(robot)
    given = [every[v.name] for v in program.inputs]
    expected = getattr(robot, function)(*given)
    native = Native(program, tmp_path, "-O2")
    scale = np.max(np.abs(expected))
    for (found,) in (native.one(*given), native.batch(*given)):
        assert np.allclose(found, expected, rtol=0, atol=1e-12 * scale)


def test_the_exported_test_of_a_machine_passes(tmp_path: Path) -> None:
    robot = loaded(MACHINE, tmp_path)
    chasles.export(robot, FUNCTIONS, tmp_path / "c")
    sources = sorted((tmp_path / "c").glob("*.c"))
    run(compiler(), *STRICT, "-O1", *sources, "-lm", "-o", tmp_path / "try")
    run(tmp_path / "try")


@pytest.mark.skipif(sys.platform != "linux", reason="NVIDIA's compiler is a test dependency there")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_kernels_compile_for_a_gpu(function: str, tmp_path: Path) -> None:
    program = chasles.compile(loaded(MACHINE, tmp_path), function, backend="interpret").program
    assert cuda_build.build(program, "float32", "sm_90", "rows").registers > 0


def test_derivatives_of_actuators_are_those_of_differences(tmp_path: Path) -> None:
    robot, h = loaded(MACHINE, tmp_path), 1e-6
    every = arrays(robot)
    q, qd, ctrl, act = (every[name][0] * 0.1 for name in ("q", "qd", "ctrl", "act"))
    q = robot.integrate(robot.neutral(), every["tau"][0] * 0.1)
    for name, size in (("q", robot.nv), ("qd", robot.nv), ("ctrl", len(ctrl)), ("act", len(act))):
        exact = robot.derivatives("actuate", q, qd, ctrl, act, wrt=name)
        columns = []
        for step in np.eye(size) * h:
            ends = []
            for sign in (1.0, -1.0):
                at = {"q": q, "qd": qd, "ctrl": ctrl, "act": act}
                at[name] = (
                    robot.integrate(q, sign * step) if name == "q" else at[name] + sign * step
                )
                ends.append(robot.actuate(*at.values()))
            columns.append((ends[0] - ends[1]) / (2.0 * h))
        differences = np.stack(columns, axis=-1)
        assert np.max(np.abs(exact)) > 0, name
        assert np.allclose(exact, differences, rtol=0, atol=1e-7 * np.max(np.abs(exact))), name


def test_activations_are_zero_where_they_are_not_given(tmp_path: Path) -> None:
    robot = loaded(MACHINE, tmp_path)
    q, qd, ctrl = (arrays(robot)[name] for name in ("q", "qd", "ctrl"))
    zeros = np.zeros((len(q), len(robot.actuators.active)))
    assert np.array_equal(robot.actuate(q, qd, ctrl), robot.actuate(q, qd, ctrl, zeros))


def test_springs_swing_as_in_mujoco_and_keep_their_energy(tmp_path: Path) -> None:
    robot = loaded(SWING, tmp_path)
    model = mujoco.MjModel.from_xml_string(SWING)
    data, convention = mujoco.MjData(model), chasles.conventions.mujoco(robot)
    rng = np.random.default_rng(0)
    q = robot.integrate(robot.neutral(), 0.2 * rng.normal(size=robot.nv))
    qd = 0.5 * rng.normal(size=robot.nv)
    data.qpos[:], data.qvel[:] = convention.to_position(q), convention.to_velocity(q, qd)
    for _ in range(1000):
        mujoco.mj_step(model, data)
    end = convention.from_position(data.qpos)
    motions = {
        "simulate": robot.simulate(q, qd, duration=1.0, dt=1e-3),
        "rollout": robot.rollout(q, qd, np.zeros(robot.nv), dt=1e-3, steps=1000, integrator="rk4"),
    }
    for name, run_ in motions.items():
        energy = robot.kinetic_energy(run_.q, run_.qd) + robot.potential_energy(run_.q)
        assert np.max(np.abs(robot.difference(end, run_.q[-1]))) < 1e-7, name
        assert np.ptp(energy) < 1e-6, name
        assert np.ptp(robot.kinetic_energy(run_.q, run_.qd)) > 1.0, name
