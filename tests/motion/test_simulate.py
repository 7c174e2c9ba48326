"""Arguments of `chasles.simulate`: times, shapes, stored states, and each invalid argument."""

import itertools
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support import close, raises

import chasles
from chasles.control import computed_torque
from chasles.expr import Number, atan2, cos, sin, sqrt
from chasles.model import Description, JointData, LinkData
from chasles.robots._solids import sphere
from chasles.rollouts import ComputedTorque

ROD = chasles.robots.planar(1)
BARS = chasles.robots.four_bar()
SHORT: dict[str, Any] = {"duration": 0.01, "dt": 1e-3}


@cache
def closed() -> tuple[np.ndarray, np.ndarray]:
    q = BARS.assemble([0.5])
    return q, BARS.complete(q, [1.0])


def triangle(y: list[Number]) -> list[Number]:
    across, up = 2.0 * cos(y[0]) - 1.0, 2.0 * sin(y[0])
    return [y[0], atan2(up, across), sqrt(across * across + up * up), y[1]]


def test_steps_are_at_most_dt_and_end_at_the_duration() -> None:
    motion = chasles.simulate(ROD, [0.0], [0.0], duration=0.01, dt=3e-3)
    close(motion.t, np.linspace(0.0, 0.01, 5), 1e-15)
    assert len(chasles.simulate(ROD, [0.0], [0.0], duration=0.3, dt=0.1).t) == 4
    assert len(chasles.simulate(ROD, [0.0], [0.0], duration=1e-12, dt=0.1).t) == 2
    assert chasles.simulate(ROD, [0.0], [0.0], duration=0.03).t[-1] == 0.03


def test_every_keeps_some_states_and_the_last() -> None:
    whole = chasles.simulate(ROD, [0.1], [0.2], **SHORT)
    some = chasles.simulate(ROD, [0.1], [0.2], every=np.int64(4), **SHORT)
    assert np.array_equal(some.q, whole.q[[0, 4, 8, 10]])
    assert np.array_equal(some.qd, whole.qd[[0, 4, 8, 10]])
    assert np.array_equal(some.t, whole.t[[0, 4, 8, 10]])


def test_leading_shapes_broadcast() -> None:
    q, qd = closed()
    motion = chasles.simulate(BARS, np.stack([q, q])[:, None], qd, tau=[0.1, 0.0, 0.0], **SHORT)
    assert motion.q.shape == (2, 1, 11, 3)
    none = chasles.simulate(BARS, np.empty((0, 3)), np.empty((0, 3)), **SHORT)
    assert none.q.shape == (0, 11, 3)


def test_given_arrays_stay_as_they_are() -> None:
    q, qd = (np.array(x) for x in closed())
    motion = chasles.simulate(BARS, q, qd, **SHORT)
    assert np.array_equal(q, closed()[0])
    assert np.array_equal(qd, closed()[1])
    motion.q[:] = 0.0
    assert np.any(q)


def test_forces_constant_or_by_function() -> None:
    force = np.array([0.3])
    constant = chasles.simulate(ROD, [0.1], [0.2], tau=force, **SHORT)
    function = chasles.simulate(ROD, [0.1], [0.2], tau=lambda t, q, qd: force, **SHORT)
    assert np.array_equal(constant.q, function.q)
    free = chasles.simulate(ROD, [0.1], [0.2], **SHORT)
    assert np.max(np.abs(free.q - constant.q)) > 1e-6


def test_controllers_of_rollouts_are_forces_too() -> None:
    """Controllers give the motion of `rollout`, or of `computed_torque` for closed loops."""
    robot = chasles.robots.puma560()
    q = np.stack([robot.random(seed=k) for k in range(2)])
    hold = ComputedTorque(50.0, 10.0, q[0] + 0.1)
    found = chasles.simulate(robot, q, np.zeros(6), duration=0.05, tau=hold)
    expected = robot.rollout(q, np.zeros(6), hold, dt=1e-3, steps=50, integrator="rk4")
    assert np.allclose(found.q, expected.q, rtol=0.0, atol=1e-12)
    goal, still = closed()[0], np.zeros(BARS.nv)

    def law(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        gains = {"stiffness": 50.0, "damping": 10.0}
        return computed_torque(BARS, q, qd, goal, still, still, **gains)

    runs = [
        chasles.simulate(BARS, *closed(), duration=0.02, tau=tau).q
        for tau in (ComputedTorque(50.0, 10.0, goal), law)
    ]
    assert np.array_equal(*runs)


def test_a_function_sees_the_times_of_the_stages() -> None:
    seen: list[float] = []

    def tau(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        seen.append(t)
        return np.zeros_like(qd)

    chasles.simulate(ROD, [0.0], [0.0], duration=0.2, dt=0.1, tau=tau)
    close(seen, [0.0, 0.05, 0.05, 0.1, 0.1, 0.15, 0.15, 0.2], 1e-15)


def test_a_bar_is_shown_only_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    chasles.simulate(ROD, [0.0], [0.0], **SHORT)
    assert capsys.readouterr().out == ""
    chasles.simulate(ROD, [0.0], [0.0], progress=True, **SHORT)
    assert "simulate" in capsys.readouterr().out


@pytest.mark.parametrize("options", [{}, {"integrator": "variational"}, {"limits": True}])
def test_nothing_is_asked_of_the_robot(options: dict[str, Any]) -> None:
    """`simulate` uses only the model and the mechanism of a robot."""
    robots = [chasles.robots.puma560()] + ([] if options else [BARS])
    for robot in robots:
        bare: Any = SimpleNamespace(model=robot.model, mechanism=robot.mechanism)
        state = (np.full(6, 0.1), np.zeros(6)) if robot is not BARS else closed()
        for compiled in (None, False):
            runs = [
                chasles.simulate(one, *state, duration=2e-3, compiled=compiled, **options)
                for one in (robot, bare)
            ]
            assert np.array_equal(runs[0].q, runs[1].q)


def rattling() -> Any:
    """Return a force that changes its sign at each call."""
    sign = itertools.cycle([1e9, -1e9])
    return lambda t, q, qd: 0.0 * qd + next(sign)


def simulate(robot: chasles.Robot, q: Any, qd: Any, **more: Any) -> None:
    chasles.simulate(robot, q, qd, **(SHORT | more))


TREE = chasles.robots.triangle(1.0, 2.0)
BALL = chasles.robots.delta()
ROLLING = chasles.Robot(
    Description(
        "ball",
        (LinkData("ball", sphere(2.0, 0.1)),),
        (JointData("roll", "rolling", None, "ball", radius=0.1),),
    )
)

WRONG = {
    "q short": (lambda: simulate(BARS, [0.0], [0.0] * 3), ValueError, "E-CALL-056"),
    "qd short": (lambda: simulate(ROD, [0.0], [0.0] * 2), ValueError, "E-CALL-056"),
    "nan": (lambda: simulate(ROD, [np.nan], [0.0]), ValueError, "E-MOTION-032"),
    "inf": (lambda: simulate(ROD, [0.0], [np.inf]), ValueError, "E-MOTION-032"),
    "shapes": (
        lambda: simulate(ROD, [[0.0]] * 2, [[0.0]] * 3),
        ValueError,
        "E-CALL-057 (2,)",
    ),
    "duration": (lambda: simulate(ROD, [0.0], [0.0], duration=0.0), ValueError, "E-MATH-031"),
    "dt": (
        lambda: simulate(ROD, [0.0], [0.0], dt=-1.0),
        ValueError,
        "E-MATH-031",
    ),
    "dt word": (lambda: simulate(ROD, [0.0], [0.0], dt="fast"), TypeError, "E-MATH-030"),
    "every": (lambda: simulate(ROD, [0.0], [0.0], every=0), ValueError, "E-CALL-003"),
    "every that is true": (
        lambda: simulate(ROD, [0.0], [0.0], every=True),
        ValueError,
        "E-CALL-003",
    ),
    "limits": (
        lambda: simulate(ROD, [0.0], [0.0], limits="yes"),
        TypeError,
        "E-MOTION-030 'yes'",
    ),
    "tau": (lambda: simulate(ROD, [0.0], [0.0], tau=[1.0, 2.0]), ValueError, "E-CALL-056"),
    "tau batch": (
        lambda: simulate(ROD, [0.0], [0.0], tau=[[1.0], [2.0]]),
        ValueError,
        "E-MOTION-034|E-MOTION-099 (2,)",
    ),
    "tau inf": (lambda: simulate(ROD, [0.0], [0.0], tau=[np.inf]), ValueError, "E-MOTION-033"),
    "tau nan": (
        lambda: simulate(ROD, [0.0], [0.0], tau=lambda t, q, qd: [np.nan]),
        FloatingPointError,
        "E-MOTION-039 integrator='time-stepping'",
    ),
    "tau nan in a loop": (
        lambda: simulate(BARS, *closed(), tau=lambda t, q, qd: qd * (np.nan if t > 0.0 else 1.0)),
        FloatingPointError,
        "E-MOTION-039 0.0005",
    ),
    "open": (
        lambda: simulate(BARS, [0.5, 0.0, 0.0], [0.0] * 3),
        chasles.OpenLoop,
        "E-LOOP-021 'pin'",
    ),
    "opening": (
        lambda: simulate(BARS, closed()[0], [1.0, 1.0, 1.0]),
        chasles.OpenLoop,
        "E-MOTION-054",
    ),
    "opening in a batch": (
        lambda: simulate(BARS, [closed()[0]] * 2, [closed()[1], [1.0, 1.0, 1.0]]),
        chasles.OpenLoop,
        "E-MOTION-054 (1,)",
    ),
    "nothing to stabilize": (
        lambda: simulate(ROD, [0.0], [0.0], stabilization=0.1),
        chasles.ModelError,
        "E-LOOP-041",
    ),
    "stabilization": (
        lambda: simulate(BARS, *closed(), stabilization=0.0),
        ValueError,
        "E-MATH-031",
    ),
    "two ways": (
        lambda: simulate(TREE, [0.0], [0.0], stabilization=0.1, closure=triangle),
        TypeError,
        "E-MOTION-029",
    ),
    "forces of a wrong shape": (
        lambda: simulate(ROD, [0.0], [0.0], tau=lambda t, q, qd: [0.0, 1.0]),
        ValueError,
        "E-MOTION-038 (2,)",
    ),
    "forces of more states": (
        lambda: simulate(ROD, [0.0], [0.0], tau=lambda t, q, qd: np.zeros((3, 1))),
        ValueError,
        "E-MOTION-038 (3, 1)",
    ),
    "a number for forces": (
        lambda: simulate(BARS, *closed(), tau=lambda t, q, qd: 0.0),
        ValueError,
        "E-MOTION-038",
    ),
    "no forces": (
        lambda: simulate(BARS, *closed(), tau=lambda t, q, qd: None),
        (TypeError, ValueError),
        "E-MOTION-038",
    ),
    "words for forces": (
        lambda: simulate(ROD, [0.0], [0.0], tau=lambda t, q, qd: ["a"]),
        TypeError,
        "E-MOTION-037 'a'",
    ),
    "not a closure": (
        lambda: simulate(BARS, *closed(), closure=triangle),
        TypeError,
        "E-MOTION-053 'four_bar'",
    ),
    "another robot's closure": (
        lambda: simulate(BARS, *closed(), closure=chasles.ClosureFunction(TREE, triangle)),
        TypeError,
        "E-MOTION-053 'four_bar'",
    ),
    "closure of a tree": (
        lambda: simulate(ROD, [0.0], [0.0], closure=chasles.ClosureFunction(TREE, triangle)),
        TypeError,
        "E-MOTION-053",
    ),
    "another branch": (
        lambda: simulate(
            TREE,
            TREE.assemble([1.0, 0.3], guess=[1.0, 1.5 - np.pi, -1.7, 0.3]),
            np.zeros(4),
            closure=chasles.ClosureFunction(TREE, triangle),
        ),
        chasles.OpenLoop,
        "E-MOTION-054 q is on",
    ),
    "integrator": (
        lambda: simulate(ROD, [0.0], [0.0], integrator="rk5"),
        ValueError,
        "E-MOTION-046 'rk5'",
    ),
    "free": (
        lambda: simulate(ROD, [0.0], [0.0], free="world"),
        ValueError,
        "E-MOTION-047 'body'",
    ),
    "free of another integrator": (
        lambda: simulate(ROD, [0.0], [0.0], free="mixed"),
        ValueError,
        "E-MOTION-075 'rk4'",
    ),
    "free of loops": (
        lambda: simulate(BARS, *closed(), free="mixed", integrator="semi-implicit"),
        ValueError,
        "E-LOOP-033 'four_bar'",
    ),
    "rtol": (
        lambda: simulate(ROD, [0.0], [0.0], integrator="dopri5", rtol=0.0),
        ValueError,
        "E-MATH-031",
    ),
    "atol": (
        lambda: simulate(ROD, [0.0], [0.0], integrator="dopri5", atol=np.inf),
        ValueError,
        "E-MATH-031",
    ),
    "no Hamiltonian in loops": (
        lambda: simulate(BARS, *closed(), integrator="variational"),
        chasles.ModelError,
        "E-MOTION-049 'four_bar'",
    ),
    "no Hamiltonian where it rolls": (
        lambda: simulate(ROLLING, ROLLING.neutral(), [0.0] * 3, integrator="variational"),
        chasles.ModelError,
        "E-MOTION-049 'roll'",
    ),
    "no step is short enough": (
        lambda: simulate(ROD, [0.0], [0.0], integrator="dopri5", tau=rattling()),
        FloatingPointError,
        "E-MOTION-056",
    ),
    "events of a batch": (
        lambda: simulate(ROD, [[0.0]] * 2, [0.0], events=chasles.Event(lambda t, q, qd: 1.0)),
        ValueError,
        "E-MOTION-044 (2,)",
    ),
    "no event": (
        lambda: simulate(ROD, [0.0], [0.0], events=[lambda t, q, qd: 1.0]),
        TypeError,
        "E-MOTION-043",
    ),
    "direction": (
        lambda: chasles.Event(lambda t, q, qd: 1.0, 2, name="floor"),
        ValueError,
        "E-MOTION-040 'floor'",
    ),
    "event nan": (
        lambda: simulate(ROD, [0.0], [0.0], events=chasles.Event(lambda t, q, qd: np.nan)),
        ValueError,
        "E-MOTION-041 'event'",
    ),
    "event of two numbers": (
        lambda: simulate(ROD, [0.0], [0.0], events=chasles.Event(lambda t, q, qd: [1.0, 2.0])),
        ValueError,
        "E-MOTION-041",
    ),
    "what an event does": (
        lambda: simulate(
            ROD,
            [0.0],
            [1.0],
            events=chasles.Event(lambda t, q, qd: q[0] - 1e-3, then=lambda t, q, qd: qd),
        ),
        ValueError,
        "E-MOTION-042 'event'",
    ),
    "times": (
        lambda: simulate(ROD, [0.0], [0.0], times=[0.0, 0.02]),
        ValueError,
        "E-MOTION-063 0.01",
    ),
    "times that fall": (
        lambda: simulate(ROD, [0.0], [0.0], times=[0.005, 0.002]),
        ValueError,
        "E-MOTION-062",
    ),
    "no loops": (
        lambda: chasles.ClosureFunction(ROD, triangle),
        chasles.ModelError,
        "E-LOOP-041",
    ),
    "rotations": (
        lambda: chasles.ClosureFunction(BALL, triangle),
        chasles.ModelError,
        "E-MOTION-026 'platform'",
    ),
    "too few": (
        lambda: chasles.ClosureFunction(TREE, lambda y: y),
        ValueError,
        "E-MOTION-028",
    ),
    "no value": (
        lambda: chasles.ClosureFunction(TREE, lambda y: [y[0], y[0], sqrt(y[0] - 2.0), y[1]])(
            [[3.0, 0.0], [1.0, 0.5]]
        ),
        chasles.ImpossiblePosition,
        "E-MOTION-027 'q1'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_named(name: str) -> None:
    call, error, message = WRONG[name]
    with raises(message, kind=error):
        call()
