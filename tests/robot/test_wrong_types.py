"""Arguments of the wrong type raise an error of chasles that states the expected type."""

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles import names
from chasles.robots import four_bar, planar

ROBOT = planar(2)
Q = np.zeros(2)

CALLS: dict[str, tuple[str, Callable[[], Any]]] = {
    "lock a number": ("E-CALL-111", lambda: ROBOT.lock(1)),
    "lock at text": ("E-CALL-113", lambda: ROBOT.lock({"joint1": "x"})),
    "drive a number": ("E-CALL-112", lambda: ROBOT.drive(1)),
    "attach text": ("E-CALL-113", lambda: ROBOT.attach("tip", mass="heavy")),
    "attach several masses": ("E-CALL-114", lambda: ROBOT.attach("tip", mass=[1.0, 2.0])),
    "attach under a number": ("E-CALL-110", lambda: ROBOT.attach("tip", mass=1.0, name=3)),
    "gravity of text": ("E-CALL-113", lambda: ROBOT.with_gravity("down")),
    "gravity beyond floats": ("E-CALL-113", lambda: ROBOT.with_gravity([0, 0, 10**400])),
    "a subtree of a list": ("E-CALL-110", lambda: ROBOT.subtree(["link1"])),
    "a subtree that floats by an array": (
        "E-CALL-380",
        lambda: ROBOT.subtree("link1", floating=np.zeros(2)),
    ),
    "a joint of an array": ("E-CALL-110", lambda: ROBOT.joint(Q)),
    "a slice of an array": ("E-CALL-110", lambda: ROBOT.position_slice(Q)),
    "a parameter of a number": ("E-CALL-110", lambda: ROBOT.parameter(1.0)),
    "a seed of text": ("E-CALL-115", lambda: ROBOT.random("seed")),
    "a size of text": ("E-CALL-003", lambda: ROBOT.random(0, size="x")),
    "entries of a list": ("E-CALL-110", lambda: ROBOT.packed_entries(["mass_matrix"])),
    "derivatives of a list": ("E-CALL-110", lambda: ROBOT.derivatives(["mass_matrix"], Q)),
    "derivatives by a number": ("E-CALL-111", lambda: ROBOT.derivatives("mass_matrix", Q, wrt=1)),
    "an order of an array": ("E-ROBOT-022", lambda: ROBOT.derivatives("mass_matrix", Q, order=Q)),
    "a method of a list": ("E-CALL-110", lambda: ROBOT.mass_matrix(Q, method=[])),
    "dissipation of a list": (
        "E-CALL-116",
        lambda: ROBOT.inverse_dynamics(Q, Q, Q, dissipation=[]),
    ),
    "a point of text": ("E-CALL-113", lambda: ROBOT.jacobian(Q, frame="tip", at=["a", "b", "c"])),
    "actuated by a number": (
        "E-CALL-111",
        lambda: four_bar().inverse_dynamics(*[np.zeros(3)] * 3, actuated=3),
    ),
    "wrenches of text": (
        "E-CALL-117",
        lambda: ROBOT.function("inverse_dynamics", wrenches=("tip",)),
    ),
    "a rollout without a state": ("E-CALL-118", lambda: ROBOT.rollout(None, Q, dt=0.1, steps=1)),
    "a rollout with parts of a row": (
        "E-CALL-113",
        lambda: ROBOT.rollout([[1.0], [1.0, 2.0]], Q, dt=0.1, steps=1),
    ),
    "a step beyond floats": ("E-MATH-030", lambda: ROBOT.rollout(Q, Q, dt=10**400, steps=1)),
    "multipliers with parts of a row": (
        "E-CALL-113",
        lambda: ROBOT.driving_forces(Q, Q, Q, multipliers=[[1.0], [1.0, 2.0]]),
    ),
    "an actuation beyond floats": (
        "E-MATH-034",
        lambda: ROBOT.linearize(Q, Q, Q, actuation=[[10**400], [0]]),
    ),
    "a buffer for dissipation": (
        "E-CALL-116",
        lambda: ROBOT.inverse_dynamics(Q, Q, Q, dissipation=memoryview(np.zeros(2))),
    ),
    "a position beyond floats": ("E-LOOP-006", lambda: four_bar().complete([10**400, 0, 0], [0.0])),
    "torques with parts of a row": (
        "E-CALL-113",
        lambda: ROBOT.simulate(
            Q, Q, duration=0.1, dt=0.1, control=[[1.0], [1.0, 2.0]], compiled=False
        ),
    ),
    "a start beyond floats": (
        "E-MOTION-022",
        lambda: ROBOT.rollout(Q, Q, dt=0.1, steps=1, start=10**400),
    ),
}


@pytest.mark.parametrize(("code", "call"), CALLS.values(), ids=CALLS)
def test_wrong_types_are_refused(code: str, call: Callable[[], Any]) -> None:
    with raises(code):
        call()


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda: chasles.robots.humanoid().joint("left_kne"), "left_knee"),
        (lambda: chasles.robots.humanoid().lock({"left_kne": 0}), "left_knee"),
        (lambda: ROBOT.mass_matrix([0.0, 0.0], method="spatal"), "spatial"),
        (lambda: ROBOT.simulate([0, 0], [0, 0], duration=1, dt=0.1, integrator="rk5"), "rk4"),
        (lambda: chasles.compile(ROBOT, "mass_matrix", backend="llv"), "llvm"),
        (lambda: chasles.compare(ROBOT, "pinochio"), "pinocchio"),
        (lambda: ROBOT.show([0, 0], motionn=1), "motion"),
        (lambda: chasles.load("arm.urdf", pth=1), "path"),
        (lambda: chasles.verify(ROBOT, stats=1), "states"),
        (lambda: chasles.trajectory.spline([0, 1], [[0], [1]], degre=5), "degree"),
        (lambda: chasles.targets.Position([0, 0, 0], weigt=1), "weight"),
    ],
)
def test_misspelled_names_are_suggested(call: Callable[[], object], wanted: str) -> None:
    """Arguments, options and names of joints suggest similar names."""
    with pytest.raises(chasles.ChaslesError, match=rf"did you mean [^?]*'{wanted}'") as found:
        call()
    assert found.value.code


def test_misspelled_attributes_are_suggested() -> None:
    for owner, name, wanted in (
        (ROBOT, "inverse_dynamic", "inverse_dynamics"),
        (ROBOT, "q_lower", "limits.lower"),
        (chasles, "contct", "contact"),
    ):
        with pytest.raises(AttributeError, match=f"'{wanted}'"):
            getattr(owner, name)


def test_functions_of_the_package_are_suggested_to_robots() -> None:
    """Each public function that takes a robot first is a method, or is suggested."""
    public = {name: getattr(chasles, name) for name in chasles.__all__}
    taking = {
        name
        for name, value in public.items()
        if inspect.isfunction(value) and next(iter(inspect.signature(value).parameters)) == "robot"
    }
    assert {name for name in taking if not hasattr(chasles.Robot, name)} == set(names.FUNCTIONS)
    with pytest.raises(AttributeError, match=r"'save'; use chasles\.save\(robot, \.\.\.\)"):
        ROBOT.save("arm.urdf")


def test_functions_with_suggestions_can_be_pickled() -> None:
    for function in (chasles.load, chasles.verify, chasles.trajectory.spline):
        assert pickle.loads(pickle.dumps(function)) is function
