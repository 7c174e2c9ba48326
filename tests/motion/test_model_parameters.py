"""`simulate(model_parameters=)`: robots with different parameters share a compiled program."""

from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles.contact import HuntCrossley, Pair, Plane, SoftContact, Sphere
from chasles.rollouts import ComputedTorque, PDControl

RNG = np.random.default_rng(5)
MASSES = np.array([0.3, 1.0, 4.0])


def alone(robot: chasles.Robot, k: int, values: dict[str, Any], *state: Any, **options: Any) -> Any:
    """Return the motion of a robot with the parameter values of member k."""
    return robot.with_parameters({name: x[k] for name, x in values.items()}).simulate(
        *state, **options
    )


@pytest.mark.parametrize("case", ["free", "controlled", "dry", "ground"])
def test_a_batch_of_masses_moves_like_single_robots(case: str) -> None:
    robot = chasles.robots.planar(2)
    values: dict[str, Any] = {
        "link2.mass": MASSES,
        "link1.center": RNG.normal(size=(3, 3)),
        "gravity": np.array([[0.0, 0.0, -9.81], [0.0, 0.0, -1.6], [1.0, 0.0, -3.7]]),
    }
    options: dict[str, Any] = {"duration": 0.2, "dt": 0.002}
    if case == "controlled":
        options["control"] = PDControl(5.0, 0.5, [0.1, 0.2])
    elif case == "dry":
        robot = robot.with_parameters({"joint1.friction": 0.4, "joint2.damping": 0.2})
        options["dissipation"] = True
    elif case == "ground":
        law = SoftContact(HuntCrossley(2e3, 0.3))
        options["contacts"] = [Pair(Sphere("tip", 0.1), Plane(), law)]
    q, qd = RNG.normal(size=(2, 3, 2))
    found = robot.simulate(q, qd, model_parameters=values, **options)
    assert found.compiled
    for k in range(3):
        one = alone(robot, k, values, q[k], qd[k], **options)
        np.testing.assert_allclose(found.q[k], one.q, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(found.qd[k], one.qd, rtol=1e-9, atol=1e-9)
    shared = robot.simulate(q, qd, model_parameters={"link2.mass": 2.0}, **options)
    one = robot.with_parameters({"link2.mass": 2.0}).simulate(q, qd, **options)
    np.testing.assert_allclose(shared.q, one.q, rtol=1e-9, atol=1e-10)


def test_parts_of_a_motion_and_floating_bases() -> None:
    """A motion in two parts is bitwise identical to the motion in one part."""
    robot = chasles.robots.quadruped()
    q = robot.neutral()
    qd = 0.3 * RNG.normal(size=robot.nv)
    options: Any = {"duration": 0.02, "model_parameters": {robot.bodies[-1] + ".mass": 0.2}}
    whole = robot.simulate(q, qd, **options)
    first = robot.simulate(q, qd, steps=7, **options)
    rest = robot.simulate(q, qd, resume=first.end, **options)
    assert np.array_equal(np.concatenate([first.q, rest.q]), whole.q)
    changed = robot.with_parameters({robot.bodies[-1] + ".mass": 0.2})
    np.testing.assert_allclose(whole.q, changed.simulate(q, qd, duration=0.02).q, atol=1e-9)


def test_refusals() -> None:
    robot, state = chasles.robots.planar(2), ([0.1, 0.2], [0.0, 0.0])

    def run(values: Any, **options: Any) -> Any:
        return robot.simulate(*state, duration=0.01, model_parameters=values, **options)

    with raises("E-MODEL-038", "link9.mass"):
        run({"link9.mass": 1.0})
    with raises("E-MOTION-201", "link1.center"):
        run({"link1.center": 1.0})
    for wrong in (np.nan, -1.0):
        with raises("E-MOTION-202", "link1.mass"):
            run({"link1.mass": wrong})
    with raises("E-MOTION-203", "sensors"):
        run({"link1.mass": 1.0}, sensors=True)
    law = ComputedTorque(1.0, 1.0, [0.0, 0.0])
    for options in ({"control": law}, {"compiled": False}, {"integrator": "dopri5"}):
        with raises("E-MOTION-098", "model_parameters"):
            run({"link1.mass": 1.0}, **options)
