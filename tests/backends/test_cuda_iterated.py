"""Iterative steps in CUDA C, compiled as C++ for the CPU and compared with machine code."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assembly_on_cpu import translated
from cuda_on_cpu import shared_library
from loop_on_cpu import launched
from support import close, raises

from chasles import backends, contact
from chasles.backends.cuda import iterated
from chasles.motion.drivers.stepping import Stepped
from chasles.motion.steps.scene import Scene
from chasles.robots import quadruped

STEPS, EVERY = 7, 3
PROGRAMS = ("begin", "refine", "rescue", "end")
QUICK = 2
"""Number of iterations, fewer than in a simulation, so that some states are rescued."""

RUN = """
extern "C" void run(long long count, long long steps, long long every, real** arrays,
                    long long* strides) {{
  gridDim.x = 2;  /* blocks of one thread, each with several robots */
  for (blockIdx.x = 0; blockIdx.x < 2; blockIdx.x++)
    block(1, [=] {{ kernel(count, -1, steps, every, {arguments}); }});
}}
"""


@pytest.fixture(scope="module")
def step() -> Stepped:
    """Return the step of a quadruped that falls on two of its feet."""
    robot = quadruped()
    feet = [name for name in robot.frames if "foot" in name][:2]
    law = contact.Rigid(friction=0.7)
    pairs = tuple(contact.Pair(contact.Sphere(f, 0.02), contact.Plane(), law) for f in feet)
    return Stepped(robot.model, Scene(robot.model, pairs), 2e-3, None)


def given(step: Stepped, dtype: str, count: int = 5) -> tuple[list[Any], list[Any], list[Any]]:
    """Return states above and below the ground, torques and times, and arrays for records."""
    rng, model = np.random.default_rng(3), step.model
    q = np.tile([1.0, *np.zeros(model.nq - 1)], (count, 1)) + 0.1 * rng.normal(size=(count, 1))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    feet = [pair.body.frame for pair in step.scene.pairs]
    places = quadruped().forward_kinematics(q, frame=feet[0])[:, 2, 3]
    q[:, 6] += np.linspace(-0.01, 0.03, count) - places  # the balls have a radius of 0.02 m
    sizes = [v.size for v in step.steps.inputs]
    states = [q, rng.normal(size=(count, model.nv))]
    states += [np.zeros((count, size)) for size in sizes[2:4]]
    controls = [rng.normal(size=(count, STEPS, model.nv)), np.zeros((1, STEPS, 1))]
    records = [np.zeros((count, 3, a.shape[1])) for a in states]
    return tuple([a.astype(dtype) for a in arrays] for arrays in (states, controls, records))


@pytest.mark.parametrize(
    ("dtype", "tolerance", "target"),
    [("float64", 1e-12, "sm_90"), ("float32", 1e-3, "sm_90"), ("float32", 1e-3, "sm_75")],
)
def test_as_machine_code(
    step: Stepped, dtype: str, tolerance: float, target: str, tmp_path: Path
) -> None:
    """The kernel's records are those of machine code, also if the last record comes early.

    Both perform the same operations, so only the last digits of the sines differ. The contact
    equations may lose four more digits in each data type.
    """
    programs = [step.program(name, dtype) for name in PROGRAMS]
    states, controls, records = given(step, dtype)
    text = translated(iterated.source(programs, dtype, architecture=target, quick=QUICK))
    arrays = [*(a[:, None] for a in states), *controls, *records]
    arguments = ", ".join(
        f"arrays[{k}], " + ", ".join(f"strides[{3 * k + i}]" for i in range(3))
        for k in range(len(arrays))
    )
    kernel = shared_library(text + RUN.format(arguments=arguments), tmp_path)
    launched(kernel.run, arrays, len(states[0]), STEPS, EVERY)
    states, controls, right = given(step, "float64")
    loop = backends.loop(backends.iterated([backends.compile(p) for p in programs], quick=QUICK))
    loop(states, controls, right, STEPS, EVERY, 1)
    assert right[3][:, 0, 0].max() > EVERY * QUICK, "some are rescued"
    for a, b in zip(records[:2], right, strict=False):
        close(a, b, tolerance)
    forces, effort = records[2:]
    close(forces, right[2], 100.0 * tolerance)
    assert np.array_equal(effort[..., 0], right[3][..., 0]), "iterations"


@pytest.mark.skipif(sys.platform != "linux", reason="NVIDIA's compiler is there on Linux only")
def test_the_compiler_takes_it(step: Stepped, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [step.program(name, "float32") for name in PROGRAMS]
    built = iterated.build(programs, "float32", "sm_90", QUICK)
    assert built.code
    assert built.form == "loop"
    monkeypatch.setattr(iterated, "shared_memory", lambda _: 1024)
    with raises("E-GPU-037"):
        iterated.build(programs, "float32", "sm_90")
