"""`Robot.simulate`: compilation, equality with its aliases, motions in parts, option groups."""

import copy
import dataclasses
import inspect
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support import close, raises

import chasles
from chasles import contact
from chasles.motion.options import Loads, Options, Output, Stepping
from chasles.robots import four_bar, planar, puma560, quadruped
from chasles.rollouts import ComputedTorque, GravityCompensation, PDControl

ARM = puma560()
RNG = np.random.default_rng(5)
Q, QD = ARM.random(RNG, size=3), RNG.normal(size=(3, 6))
HOLD = PDControl(50.0, 5.0, np.zeros(6))


def spring(t: float, q: Any, qd: Any) -> Any:
    return -2.0 * q - 0.5 * qd + 0.1 * t


def same(a: chasles.Trajectory, b: chasles.Trajectory) -> None:
    assert np.array_equal(a.t, b.t)
    assert np.array_equal(a.q, b.q)
    assert np.array_equal(a.qd, b.qd)


# Compiled or not -------------------------------------------------------------------------------


@pytest.mark.parametrize("simulate", [chasles.simulate, chasles.Robot.simulate])
def test_torques_may_be_the_third_argument(simulate: Callable[..., chasles.Trajectory]) -> None:
    """As in `rollout`, torques may be positional: constant torques, or a controller."""
    for tau in (0.2 * QD[0], spring):
        given = simulate(ARM, Q, QD, tau, duration=0.01)
        same(given, simulate(ARM, Q, QD, tau=tau, duration=0.01))
    with raises("E-MOTION-089"):
        simulate(ARM, Q, QD, spring, control=spring, duration=0.01)


@pytest.mark.parametrize("integrator", ["semi-implicit", "euler", "heun2", "heun3", "rk4"])
@pytest.mark.parametrize("control", [None, HOLD, GravityCompensation(1.0), spring])
def test_compiled_is_the_rollout(integrator: str, control: Any) -> None:
    """The results are identical, except for rounding errors due to gains that are inputs."""
    run = ARM.simulate(
        Q, QD, duration=0.03, dt=1e-3, integrator=integrator, control=control, every=4
    )
    assert run.compiled
    assert not run.why
    other = ARM.rollout(Q, QD, control, dt=1e-3, steps=30, integrator=integrator, every=4)
    if control in (None, spring):
        same(run, other)
    close(run.q, other.q, 1e-12)
    close(run.qd, other.qd, 1e-12)


LAWS: dict[str, Callable[[chasles.Robot, float], Any]] = {
    "PD": lambda robot, k: PDControl(k, k / 10, np.full(robot.nq, k / 100), feedforward=k / 50),
    "gravity": lambda robot, k: GravityCompensation(k / 10),
    "computed torque": lambda robot, k: ComputedTorque(k, k / 5, np.full(robot.nq, k / 100)),
    "PD along a path": lambda robot, k: PDControl(k, k / 10, path(robot, k)),
    "computed torque along a path": lambda robot, k: ComputedTorque(k, k / 5, path(robot, k)),
}


def path(robot: chasles.Robot, k: float) -> Any:
    q = robot.neutral()
    return chasles.trajectory.minimum_jerk(q, q + k / 100, 0.03, robot=robot)


@pytest.mark.parametrize("integrator", ["rk4", "time-stepping"])
@pytest.mark.parametrize("law", LAWS)
def test_other_gains_and_targets_need_no_compilation(
    monkeypatch: pytest.MonkeyPatch, law: str, integrator: str
) -> None:
    """Gains and target are inputs of the compiled simulation, and have the same effect in Python.

    With `parameters`, which these controllers do not have, the call raises an error.
    """
    robot = chasles.robots.planar(3)
    q, qd = np.array([0.3, -0.4, 0.5]), np.array([0.2, 0.1, -0.3])
    step = {"duration": 0.03, "dt": 1e-3, "integrator": integrator}
    robot.simulate(q, qd, control=LAWS[law](robot, 20.0), **step)

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("a program was compiled")

    with monkeypatch.context() as patch:
        patch.setattr("chasles.backends.begin", refused)
        patch.setattr("chasles.backends.compile", refused)
        run = robot.simulate(q, qd, control=LAWS[law](robot, 45.0), **step)
    assert run.compiled
    control = LAWS[law](robot, 45.0)
    if integrator == "rk4":
        other = chasles.simulate(robot, q, qd, control=control, **step)
        close(run.q, other.q, 1e-12)
    else:
        kept = robot.rollout(q, qd, control, dt=1e-3, steps=30, integrator=integrator)
        close(run.q, kept.q, 1e-12)
    with raises("E-MOTION-018"):
        robot.simulate(q, qd, control=control, parameters=[1.0, 2.0], **step)


@pytest.mark.parametrize("integrator", ["semi-implicit", "euler", "heun2", "heun3", "rk4"])
@pytest.mark.parametrize("control", [None, HOLD, ComputedTorque(50.0, 10.0, np.zeros(6)), spring])
def test_both_drivers_take_the_same_steps(integrator: str, control: Any) -> None:
    """Both drivers use one integrator, on symbols and on arrays, and differ only by rounding."""
    fast, slow = (
        ARM.simulate(Q, QD, duration=0.03, integrator=integrator, control=control, compiled=choice)
        for choice in (True, False)
    )
    assert fast.compiled
    assert not slow.compiled
    assert slow.why == "compiled=False was given"
    close(fast.t, slow.t, 1e-14)
    close(fast.q, slow.q, 1e-12)
    close(fast.qd, slow.qd, 1e-11)
    same(slow, chasles.simulate(ARM, Q, QD, duration=0.03, integrator=integrator, tau=control))


def noisy(t: float, q: Any, qd: Any) -> Any:
    return np.random.default_rng().normal(size=6) - q


class Integral:
    """Controller with an internal state."""

    def __init__(self) -> None:
        self.sum: Any = 0.0

    def __call__(self, t: float, q: Any, qd: Any) -> Any:
        self.sum = self.sum + 0.1 * q
        return -5.0 * qd - self.sum


def integral() -> Callable[..., Any]:
    """Return an equal controller as a function."""
    total: Any = 0.0

    def law(t: float, q: Any, qd: Any) -> Any:
        nonlocal total
        total = total + 0.1 * q
        return -5.0 * qd - total

    return law


def test_controllers_that_remember_are_called() -> None:
    """An attempt to trace a controller changes neither its internal state nor its calls."""
    right = go(control=Integral(), compiled=False)
    for law in (Integral(), integral()):
        run = go(control=law)
        assert not run.compiled
        same(run, right)


GROUND = contact.Plane()
OBSTACLES: dict[str, tuple[Callable[[], chasles.Trajectory], str]] = {
    "dopri5": (lambda: go(integrator="dopri5"), "implicit or adaptive"),
    "sdirk2": (lambda: go(integrator="sdirk2"), "implicit"),
    "mixed": (lambda: go(integrator="semi-implicit", free="mixed"), "free='mixed'"),
    "events": (lambda: go(events=chasles.Event(lambda t, q, qd: q[0])), "events"),
    "times": (lambda: go(times=[0.0, 1e-3]), "times"),
    "limits": (lambda: go(limits=True), "rigid contacts or joint limits"),
    "f_ext": (lambda: go(f_ext={"tool": np.ones(6)}), "f_ext"),
    "sine": (lambda: go(control=lambda t, q, qd: np.sin(q)), "failed when traced"),
    "noise": (lambda: go(control=noisy), "does not depend only on t, q and qd"),
    "generator": (lambda: go(control=lambda t, q, qd: RNG.normal(size=6)), "'RNG' (Generator)"),
}


def go(**options: Any) -> chasles.Trajectory:
    return ARM.simulate(np.zeros(6), 0.1 * np.ones(6), **({"duration": 2e-3} | options))


@pytest.mark.parametrize("name", OBSTACLES)
def test_it_says_why_it_is_not_compiled(name: str) -> None:
    run, words = OBSTACLES[name]
    found = run()
    assert not found.compiled
    assert words in found.why
    assert np.isfinite(found.q).all()


def test_reasons_speak_of_no_other_function() -> None:
    def short(t: float, q: Any, qd: Any) -> Any:
        return [0.0]

    run = go(control=lambda t, q, qd: np.sin(q))
    assert run.why.startswith("the controller failed when traced")
    with raises("E-MOTION-093", "simulate", "the controller returned [0.0]") as found:
        go(control=short, compiled=True)
    assert "rollout" not in str(found.value)
    with raises("E-MOTION-011", "simulate"):
        go(control=short, parameters=3.0)


def test_the_signature_shows_every_option() -> None:
    """`help` and editors show all options with their defaults."""
    shown = [inspect.signature(f) for f in (chasles.Robot.simulate, chasles.simulate)]
    for signature in shown:
        names = signature.parameters
        assert not any(p.kind is p.VAR_KEYWORD for p in names.values())
        assert {*Options.__annotations__, "compiled", "device", "threads"} < set(names)
        assert [names[n].default for n in ("integrator", "every", "rtol")] == ["auto", 1, 1e-6]
    assert [s.parameters["compiled"].default for s in shown] == [None, False]
    forward, back = map(inspect.signature, (chasles.Robot.rollout, chasles.Robot.rollout_pullback))
    assert [*forward.parameters.values()] == [
        p for name, p in back.parameters.items() if name != "covectors"
    ]
    assert forward.parameters["dt"].default is inspect.Parameter.empty


def calls(run: Callable[[], Any]) -> int:
    """Return the number of Python functions that a call runs."""
    count = 0

    def profile(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def test_the_verb_costs_little_more_than_the_rollout() -> None:
    """The overhead is at most 50 Python calls, which take about a dozen microseconds."""
    options: dict[str, Any] = {"dt": 1e-3, "steps": 5, "integrator": "rk4"}
    runs = [lambda f=f: f(Q[0], QD[0], **options) for f in (ARM.rollout, ARM.simulate)]
    for run in runs:
        run()
    old, new = map(calls, runs)
    assert 0 < new <= old + 50


def test_compiled_or_an_error() -> None:
    with pytest.raises(chasles.ModelError, match="cannot be compiled: the integrator is"):
        go(integrator="dopri5", compiled=True)
    bars = four_bar()
    q = bars.assemble([0.5])
    with pytest.raises(chasles.ModelError, match="cannot be compiled: the robot has closed loops"):
        bars.simulate(q, np.zeros(bars.nv), duration=1e-3, compiled=True)
    with pytest.raises(ValueError, match="unknown integrator 'leapfrog'; use one of 'euler'"):
        go(integrator="leapfrog")


def test_steps_fill_the_duration() -> None:
    close(go(duration=0.01, dt=3e-3).t, np.linspace(0.0, 0.01, 5), 1e-15)
    run = go(duration=None, steps=7, dt=1e-3)
    close(run.t, 1e-3 * np.arange(8), 1e-15)
    assert run.end is not None
    assert run.end.over
    with pytest.raises(TypeError, match="pass `duration`"):
        go(duration=None)


# Torques ---------------------------------------------------------------------------------------


def test_torques_of_members_and_of_steps() -> None:
    """Torques (..., nv) are constant, and torques (..., steps, nv) have a row for each step."""
    each = RNG.normal(size=(3, 6))
    run = ARM.simulate(Q, QD, duration=5e-3, tau=each)
    assert run.compiled
    slow = ARM.simulate(Q, QD, duration=5e-3, tau=each, compiled=False)
    close(run.q, slow.q, 1e-12)
    rows = RNG.normal(size=(5, 6))
    one = ARM.simulate(Q[0], QD[0], duration=5e-3, tau=rows)
    same(one, ARM.rollout(Q[0], QD[0], rows, dt=1e-3, steps=5, integrator="rk4"))
    many = ARM.simulate(Q, QD, duration=5e-3, tau=rows[None])
    assert np.array_equal(many.q[0], one.q)
    with pytest.raises(ValueError, match="one row per step requires a compiled simulation"):
        ARM.simulate(Q[0], QD[0], duration=5e-3, tau=rows, integrator="dopri5")
    with pytest.raises(TypeError, match="pass `control` or `tau`"):
        ARM.simulate(Q[0], QD[0], duration=5e-3, tau=rows, control=HOLD)


def test_parameters_of_a_controller() -> None:
    def law(t: Any, q: Any, qd: Any, p: Any) -> Any:
        return -p[0] * q - p[1] * qd

    run = ARM.simulate(Q, QD, duration=5e-3, control=law, parameters=[[2.0, 0.5]] * 3)
    assert run.compiled
    right = ARM.simulate(Q, QD, duration=5e-3, control=lambda t, q, qd: -2.0 * q - 0.5 * qd)
    close(run.q, right.q, 1e-13)


# Parts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("part", [1, 3, 4, 7])
def test_parts_are_the_whole(compiled: bool, part: int) -> None:
    """Parts of any length give the whole motion, also if `every` does not divide them."""
    rows = RNG.normal(size=(20, 6)) if compiled else None
    options: dict[str, Any] = {"duration": 0.02, "every": 3, "compiled": compiled, "tau": rows}
    whole = ARM.simulate(Q[0], QD[0], **options)
    found, end = [], None
    while end is None or not end.over:
        found.append(ARM.simulate(Q[0], QD[0], steps=part, resume=end, **options))
        end = found[-1].end
        assert end is not None
    for name in ("t", "q", "qd"):
        pieces = np.concatenate([getattr(piece, name) for piece in found])
        assert np.array_equal(pieces, getattr(whole, name))


def test_parts_on_soft_ground() -> None:
    robot = quadruped()
    feet = [f for f in robot.frames if f.endswith("foot")]
    law = contact.SoftContact(
        contact.SoftSurface(37_400.0, 100.0), contact.SoftFriction(0.8, 37_400.0, 100.0)
    )
    pairs = [contact.Pair(contact.Sphere(f, 0.02), GROUND, law) for f in feet]
    q = robot.neutral()
    q[6] += 0.02 - min(robot.forward_kinematics(q, frame=f)[2, 3] for f in feet)
    options: dict[str, Any] = {
        "duration": 0.02, "dt": 5e-4, "contacts": pairs, "integrator": "semi-implicit"
    }  # fmt: skip
    whole = robot.simulate(q, np.zeros(robot.nv), **options)
    first = robot.simulate(q, np.zeros(robot.nv), steps=17, **options)
    rest = robot.simulate(q, np.zeros(robot.nv), resume=first.end, **options)
    assert whole.compiled
    assert whole.touching is not None
    assert rest.touching is not None
    assert np.abs(whole.touching.forces).max() > 1.0
    assert np.array_equal(np.concatenate([first.q, rest.q]), whole.q)
    assert np.array_equal(whole.touching.forces[-len(rest.t) :], rest.touching.forces)
    other = planar(2)
    with pytest.raises(ValueError, match="`resume` belongs to another motion"):
        other.simulate(np.zeros(2), np.zeros(2), duration=0.02, resume=first.end)


def test_ends_belong_to_their_driver() -> None:
    """A motion that began step by step continues step by step."""
    first = go(duration=0.01, steps=3, compiled=False)
    rest = go(duration=0.01, resume=first.end)
    assert rest.why == "resume: the interrupted motion was not compiled"
    assert rest.end is not None
    with pytest.raises(ValueError, match="the motion already ended"):
        go(duration=0.01, resume=rest.end)
    whole = go(duration=0.01)
    with pytest.raises(ValueError, match="the motion already ended"):
        go(duration=0.01, resume=whole.end)


# Groups and old names --------------------------------------------------------------------------


def test_options_in_groups() -> None:
    """A single option takes precedence over its group."""
    groups: dict[str, Any] = {
        "stepping": Stepping("semi-implicit", dt=1e-3), "output": Output(every=5),
        "loads": Loads(dissipation=True),
    }  # fmt: skip
    run = ARM.simulate(Q, QD, duration=0.02, every=10, **groups)
    right = ARM.simulate(
        Q, QD, duration=0.02, integrator="semi-implicit", dt=1e-3, every=10, dissipation=True
    )
    same(run, right)
    assert len(run.t) == 3
    same(go(integrator="rk4", stepping=Stepping("euler")), go())
    same(go(dt=None, stepping=Stepping(dt=1e-4)), go())
    same(go(control=None, loads=Loads(HOLD)), go())
    same(go(stepping=None), go())
    with pytest.raises(TypeError, match=r"`output` must be an instance of Output"):
        go(output=10)
    with pytest.raises(TypeError, match="unexpected keyword argument 'evry'"):
        go(evry=10)


def test_old_names_are_accepted_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="method= is now integrator="):
        old = ARM.rollout(Q, QD, dt=1e-3, steps=3, method="rk4")  # type: ignore[call-arg]
    same(old, ARM.rollout(Q, QD, dt=1e-3, steps=3, integrator="rk4"))
    with pytest.warns(DeprecationWarning, match="kp= is now stiffness="):
        law = PDControl(kp=1.0, damping=2.0, target=np.zeros(6))  # type: ignore[call-arg]
    assert law == PDControl(1.0, 2.0, np.zeros(6))
    with pytest.warns(DeprecationWarning, match=r"\.kd is now \.damping"):
        assert law.kd == 2.0  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match="kd= is now damping="):
        GravityCompensation(kd=1.0)  # type: ignore[call-arg]
    with (
        pytest.warns(DeprecationWarning, match="kp="),
        pytest.raises(TypeError, match="pass only stiffness="),
    ):
        ComputedTorque(kp=1.0, stiffness=1.0, damping=1.0, target=0.0)  # type: ignore[call-arg]


def test_controllers_are_replaced_by_old_and_new_names() -> None:
    law = PDControl(1.0, 2.0, np.zeros(6))
    changed = PDControl(3.0, 2.0, np.zeros(6))
    assert dataclasses.replace(law, stiffness=3.0) == changed
    with pytest.warns(DeprecationWarning, match="kp= is now stiffness="):
        assert dataclasses.replace(law, kp=3.0) == changed  # type: ignore[call-arg]


# User-defined functions ---------------------------------------------------------------------------

TARGET = np.zeros(6)


def towards_target(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    return 20.0 * (TARGET - q) - qd


def test_a_function_whose_module_changes_is_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = chasles.robots.puma560()
    q, qd = np.zeros(6), np.zeros(6)
    options: dict[str, Any] = {"duration": 0.01, "control": towards_target}
    still = arm.simulate(q, qd, **options)
    for change in (np.ones(6), np.full(6, 2.0)):
        monkeypatch.setattr(sys.modules[__name__], "TARGET", change)
        found, expected = (arm.simulate(q, qd, **options, compiled=c) for c in (None, False))
        assert found.compiled
        close(found.q, expected.q, 1e-12)
        assert np.abs(found.q[-1] - still.q[-1]).max() > 1e-4


class Accumulating:
    """Controller with an internal state, called through a function."""

    def __init__(self) -> None:
        self.sum, self.times = np.zeros(6), []

    def step(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        self.sum = self.sum + 0.001 * q
        self.times.append(t)
        return -5.0 * q - self.sum


def test_an_object_behind_a_function_is_left_alone() -> None:
    arm, first, second = chasles.robots.puma560(), Accumulating(), Accumulating()
    q, qd = np.full(6, 0.1), np.zeros(6)
    run = arm.simulate(q, qd, duration=0.005, control=lambda t, q, qd: first.step(t, q, qd))
    same = arm.simulate(q, qd, duration=0.005, control=second.step, compiled=False)
    assert not run.compiled
    assert "'first'" in run.why
    np.testing.assert_array_equal(run.q, same.q)
    assert first.times == second.times


def test_functions_with_locks_and_unbound_cells_run() -> None:
    arm = chasles.robots.puma560()
    q, qd = np.zeros(6), np.zeros(6)
    kept = {"lock": threading.Lock(), "gain": 2.0}

    def law(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        if t < 0.0:
            return later
        return -kept["gain"] * qd

    assert not arm.simulate(q, qd, duration=0.002, control=law).compiled
    later = q
    assert arm.simulate(q, qd, duration=0.002, control=lambda t, q, qd: -2.0 * qd).compiled


def test_what_a_function_uses_stays_the_users() -> None:
    """Simulations in several threads replace nothing in the function's module."""
    arm, target = chasles.robots.puma560(), TARGET
    q, qd = np.zeros(6), np.zeros(6)
    with ThreadPoolExecutor(4) as pool:
        runs = list(
            pool.map(lambda _: arm.simulate(q, qd, duration=0.01, control=towards_target), range(8))
        )
    assert TARGET is target
    for run in runs:
        np.testing.assert_array_equal(run.q, runs[0].q)


def test_a_batch_is_compiled_only_if_members_are_treated_alike() -> None:
    arm = chasles.robots.puma560()
    q, qd = np.random.default_rng(2).normal(size=(2, 2, 6))

    def first_row(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return -5.0 * qd * q[0]

    run = arm.simulate(q, qd, duration=0.002, control=first_row)
    assert not run.compiled
    assert "batch" in run.why
    assert arm.simulate(q[0], qd[0], duration=0.002, control=first_row).compiled


def test_subclasses_are_changed_and_pickled() -> None:
    class Mine(chasles.Robot):
        def __init__(self) -> None:
            super().__init__(chasles.robots.puma560().model.source)

    mine = Mine()
    q = np.zeros(6)
    assert isinstance(mine.with_gravity([0.0, 0.0, 0.0]), Mine)
    close(copy.deepcopy(mine).gravity_forces(q), mine.gravity_forces(q), 1e-15)
    with raises("E-MOTION-103"):
        mine.rollout(q, q, q, control=lambda t, q, qd: q, dt=1e-3, steps=2)


def test_contacts_are_displayed_in_one_line() -> None:
    body = contact.Pair(contact.Sphere("tip", 0.1), contact.Plane(), contact.Rigid(friction=0.5))
    options = {"contacts": [body], "integrator": "time-stepping", "duration": 0.01, "dt": 0.005}
    run = planar(2).simulate([0.1, 0.2], [0.0, 0.0], **options)
    assert repr(run.touching) == (
        "<Touching: contact forces and gaps; forces (3, 1, 3), gaps (3, 1), states (3, 0)>"
    )
