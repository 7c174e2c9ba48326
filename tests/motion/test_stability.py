"""Explicit integrators reject damping that their steps would amplify, and suggest a step size."""

import numpy as np
import pytest
from support import raises

import chasles
from chasles.rollouts import ComputedTorque, PDControl

EXPLICIT = {"euler": 2.0, "semi-implicit": 2.0, "heun2": 2.0, "heun3": 2.513, "rk4": 2.786}


@pytest.fixture(scope="module")
def cart(tmp_path_factory):
    """Mass of 0.5 kg on a damper of 100 N s/m, whose velocity decays at 200 1/s."""
    file = tmp_path_factory.mktemp("cart") / "cart.xml"
    file.write_text(
        "<mujoco><option gravity='0 0 0'/><worldbody><body name='cart'>"
        "<joint name='slide' type='slide' axis='1 0 0' damping='100'/>"
        "<inertial pos='0 0 0' mass='0.5' diaginertia='1 1 1'/></body></worldbody></mujoco>"
    )
    return chasles.load(file)


@pytest.mark.parametrize(("integrator", "limit"), EXPLICIT.items())
def test_the_limit_is_where_steps_begin_to_amplify(cart, integrator, limit):
    """A velocity decays just below the limit; just above it, an error states the limit."""
    options = {"steps": 2000, "dissipation": True, "integrator": integrator}
    run = cart.rollout([0.0], [1.0], dt=0.999 * limit / 200.0, **options)
    assert abs(run.qd[-1, 0]) < 0.5
    for move in (cart.rollout, cart.simulate):
        with raises("E-MOTION-186") as told:
            move([0.0], [1.0], dt=1.001 * limit / 200.0, **options)
        assert f"dt < {limit / 200.0:.3g} s" in str(told.value)
        assert "'slide'" in str(told.value)


@pytest.mark.parametrize("integrator", ["implicit-euler", "sdirk2", "time-stepping"])
def test_implicit_steps_take_any_damping(cart, integrator):
    run = cart.simulate([0.0], [1.0], duration=1.0, dt=0.1, dissipation=True, integrator=integrator)
    assert abs(run.qd[-1, 0]) < 1e-3


def test_damping_of_controllers_counts():
    """The rate is the largest eigenvalue of M^-1 D, which exceeds the rates of single joints."""
    robot, q = chasles.robots.planar(2), np.array([0.3, 0.8])
    d = np.array([2.0, 5.0])
    rate = np.max(np.linalg.eigvals(np.linalg.solve(robot.mass_matrix(q), np.diag(d))).real)
    for law, fastest in ((PDControl(0.0, d, q), rate), (ComputedTorque(0.0, d, q), 5.0)):
        options = {"steps": 2, "control": law, "integrator": "euler"}
        robot.rollout(q, [0.0, 0.0], dt=1.99 / fastest, **options)
        with raises("E-MOTION-186"):
            robot.rollout(q, [0.0, 0.0], dt=2.01 / fastest, **options)


def test_the_check_is_not_repeated_for_the_same_state(monkeypatch):
    """The check is repeated for another state, step size or controller, and after an error."""
    robot, q = chasles.robots.planar(2), np.array([0.3, 0.8])
    rows = []
    inverse = np.linalg.inv
    monkeypatch.setattr(np.linalg, "inv", lambda a: rows.append(a) or inverse(a))
    law, other = PDControl(0.0, [2.0, 5.0], q), PDControl(0.0, [2.0, 5.0], q)

    def checked(law, q, dt):
        rows.clear()
        robot.rollout(q, [0.0, 0.0], control=law, dt=dt, steps=2, integrator="euler")
        return bool(rows)

    assert checked(law, q, 1e-3)
    assert not checked(law, q, 1e-3)
    assert checked(law, q + 0.1, 1e-3)
    assert checked(law, q + 0.1, 2e-3)
    assert checked(other, q + 0.1, 2e-3)
    for _ in range(2):
        with raises("E-MOTION-186"):
            checked(other, q, 1.0)


def test_damping_is_checked_without_tracing(monkeypatch):
    """The check does not trace the mass matrix again, which took longer than the motion."""
    arm, law = chasles.robots.planar(3), PDControl(50.0, 1.0, 0.0)
    arm.rollout([0.1, 0.2, 0.3], [0.0] * 3, control=law, dt=1e-4, steps=2)
    monkeypatch.setattr("chasles.functions.tracing.trace", None)
    monkeypatch.setattr("chasles.functions.programs.trace", None)
    again = arm.rollout([0.4, 0.2, 0.3], [0.0] * 3, control=law, dt=1e-4, steps=2)
    assert again.q[0, 0] == 0.4
