"""Arguments of the wrong type raise an error of chasles that states the expected type."""

import importlib
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles import contact, control, names, rollouts
from chasles.names import with_suggestions
from chasles.robots import four_bar, planar

ROBOT = planar(2)
Q = np.zeros(2)

CALLS: dict[str, tuple[str, Callable[[], Any]]] = {
    "lock a number": ("E-CALL-111", lambda: ROBOT.lock(1)),
    "export to a list": (
        "E-EXPORT-040",
        lambda: chasles.export(ROBOT, "mass_matrix", ["folder"]),  # type: ignore[arg-type]
    ),
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
        (lambda: control.operational_dynamics(ROBOT, Q, Q, "tip", dampng=1), "damping"),
        (lambda: control.resolved_rate(ROBOT, "tip", dt=0.1, accelertion=1), "acceleration"),
        (lambda: rollouts.PDControl(stifness=1), "stiffness"),
        (lambda: chasles.identification.identify(ROBOT, colums={}), "columns"),
    ],
)
def test_misspelled_names_are_suggested(call: Callable[[], object], wanted: str) -> None:
    """Arguments, options and names of joints suggest similar names."""
    with pytest.raises(chasles.ChaslesError, match=rf"did you mean [^?]*'{wanted}'") as found:
        call()
    assert found.value.code


FORMS: list[tuple[Callable[[Any], object], str, str]] = [
    (lambda r: r.lock("joint1", "joint2"), "too many", 'lock({"joint6": 0.5})'),
    (lambda r: r.lock(joint1=0.0), "'joint1'", 'lock({"joint6": 0.5})'),
    (lambda r: r.attach("tip", 1.0), "too many", 'attach("tip", mass=0.5)'),
    (lambda r: r.attach("tip"), "'mass'", "attach(frame, mass=..., ...)"),
    (lambda r: r.subtree("link1", "link2"), "too many", 'subtree("link3")'),
    (lambda r: r.drive("joint1", abs), "too many", 'drive({"joint1": lambda t: 0.1 * t})'),
    (lambda r: r.with_parameters("link1.mass", 1.0), "too many", '({"link3.mass": 6.0})'),
    (lambda r: r.with_gravity(0, 0, -9.81), "too many", "with_gravity((0, 0, -1.62))"),
    (lambda r: r.state("joint1", 0.1), "too many", 'state({"joint2": 0.5})'),
    (lambda r: r.mass_matrix(), "'q'", "mass_matrix([0.0, 0.5])"),
    (lambda r: r.inverse_dynamics(Q, Q, Q, Q), "too many", "inverse_dynamics(q, qd, qdd, ...)"),
    (lambda r: r.simulate(Q), "'qd'", "simulate(q, qd, ...)"),
    (lambda r: r.rollout(Q, Q), "'dt'", "rollout(q, qd, dt=..., steps=..., ...)"),
    (lambda r: chasles.save(r), "'path'", "save(robot, path, ...)"),
    (lambda r: chasles.compile(r), "'function'", "compile(robot, function, ...)"),
    (lambda r: chasles.trajectory.cubic(Q), "'q1'", "cubic(q0, q1, duration, ...)"),
]


@pytest.mark.parametrize(("call", "fault", "form"), FORMS, ids=[form for _, _, form in FORMS])
def test_wrong_calls_show_the_form_of_the_call(
    call: Callable[[Any], object], fault: str, form: str
) -> None:
    """Missing and superfluous arguments raise an error with the signature and an example."""
    with raises("E-CALL-422", fault, form) as caught:
        call(ROBOT)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    "call",
    [
        lambda: chasles.trajectory.cubic(Q, Q, 1.0, robot="arm"),  # type: ignore[arg-type]
        lambda: contact.file_pairs("arm.urdf"),  # type: ignore[arg-type]
        lambda: chasles.conventions.pinocchio(Q),  # type: ignore[arg-type]
        lambda: chasles.conventions.position_by_name("arm", Q),  # type: ignore[arg-type]
        lambda: control.operational_dynamics(Q, Q, ROBOT, "tip"),  # type: ignore[arg-type]
        lambda: chasles.ClosureFunction(None, abs),  # type: ignore[arg-type]
    ],
)
def test_a_robot_of_another_type_is_refused(call: Callable[[], object]) -> None:
    with raises("E-CALL-423|E-CALL-055", "`robot` must be a Robot"):
        call()


def test_numbers_and_flags_of_another_type_are_refused() -> None:
    base, gains = ROBOT.base_parameters(), {"stiffness": 1.0, "damping": 1.0}
    for name in gains:
        for value in ("x", None):
            with raises("E-CALL-113", f"{name} must be real numbers"):
                control.computed_torque(ROBOT, Q, Q, Q, Q, Q, **gains | {name: value})
    with raises("E-CALL-055"):
        control.computed_torque("arm", Q, Q, Q, Q, Q, **gains)  # type: ignore[arg-type]
    with raises("E-CALL-056", "20 entries"):
        base.values(np.ones(3))
    with raises("E-CALL-017"):
        ROBOT.jacobian(Q, axes=np.ones(3))
    with raises("E-CALL-380", "dissipation"):
        ROBOT.simulate(Q, Q, duration=1.0, dt=0.1, dissipation=np.ones(2))


def test_identification_names_missing_data() -> None:
    with raises("E-IDENT-051", "`q` is missing"):
        chasles.identify(ROBOT, t=Q, tau=Q)
    with raises("E-IDENT-051", "`tau` is missing"):
        chasles.identify(ROBOT, q=[Q], qd=[Q], qdd=[Q])
    with raises("E-LOG-030", "sequence of dict"):
        chasles.identify(ROBOT, [{"t": Q}, {"t": Q}])


def test_errors_within_a_function_stay() -> None:
    def wrong(t: Any) -> Any:
        return t + None

    with pytest.raises(TypeError, match=r"NoneType'$"):
        with_suggestions(wrong)(1.0)


def test_misspelled_attributes_are_suggested() -> None:
    for owner, name, wanted in (
        (ROBOT, "inverse_dynamic", "inverse_dynamics"),
        (ROBOT, "q_lower", "limits.lower"),
        (chasles, "contct", "contact"),
    ):
        with pytest.raises(AttributeError, match=f"'{wanted}'"):
            getattr(owner, name)


def test_every_public_function_suggests_keywords() -> None:
    """Only functions that controllers call in each step do not, because suggestions take time."""
    for place in chasles.SUGGESTING:
        module = importlib.import_module(f"chasles.{place}")
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value) and name not in chasles.FAST:
                variable = inspect.signature(value).parameters.values()
                assert hasattr(value, "__wrapped__") or any(
                    p.kind is p.VAR_KEYWORD for p in variable
                ), (place, name)
    for name in chasles.FAST:
        assert not hasattr(getattr(control, name), "__wrapped__")


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
