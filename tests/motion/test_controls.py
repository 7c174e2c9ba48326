"""Controls and activations of actuators agree with MuJoCo and closed forms along motions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import chasles
from chasles import conventions
from chasles.errors import ArgumentError, InputError

mujoco = pytest.importorskip("mujoco")

ARM = """
<mujoco>
  <compiler angle="radian"/>
  <option integrator="RK4"><flag constraint="disable"/></option>
  <worldbody>
    <body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0" damping="0.1" stiffness="2"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.05" mass="1"/>
      <body name="lower" pos="0 0 -0.5"><joint name="elbow" axis="0 1 0" damping="0.05"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.05" mass="1"/></body></body>
  </worldbody>
  <actuator>
    <motor joint="shoulder" gear="3" ctrllimited="true" ctrlrange="-1 1"/>
    <general joint="elbow" dyntype="filter" dynprm="0.05" gainprm="2"/>
    <general joint="elbow" dyntype="filterexact" dynprm="0.02" gainprm="1"/>
    <general joint="shoulder" dyntype="integrator" gainprm="2"/>
    <position joint="elbow" kp="5"/>
  </actuator>
</mujoco>"""

CTRL, ACT = np.array([2.0, 1.0, -0.5, 1.0, 0.3]), np.array([0.1, 0.2, 0.05])
Q, QD = np.array([0.3, -0.2]), np.array([0.0, 0.5])


def arm(folder: Path) -> chasles.Robot:
    path = folder / "arm.xml"
    path.write_text(ARM)
    return chasles.load(path)


def there(
    model: Any, state: tuple[np.ndarray, ...], ctrl: np.ndarray, dt: float, steps: int
) -> np.ndarray:
    """Return MuJoCo's qpos, qvel and act after steps under constant controls."""
    model.opt.timestep = dt
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.act[:] = state
    data.ctrl[:] = ctrl
    for _ in range(steps):
        mujoco.mj_step(model, data)
    return np.concatenate([data.qpos, data.qvel, data.act])


def last(run: Any) -> np.ndarray:
    return np.concatenate([run.q[-1], run.qd[-1], run.act[-1]])


OPTIONS = {"duration": 0.5, "act": ACT, "dissipation": True}


def test_a_motion_is_that_of_mujoco_with_the_same_integrator(tmp_path: Path) -> None:
    """All values agree with MuJoCo to rounding, except those of the exact filter.

    MuJoCo's RK4 does not integrate the exact filter to fourth order. Here the filter is at rest and
    exerts no force.
    """
    robot, model = arm(tmp_path), mujoco.MjModel.from_xml_string(ARM)
    ctrl, act = CTRL * [1.0, 1.0, 0.0, 1.0, 1.0], ACT * [1.0, 0.0, 1.0]
    for dt in (4e-3, 2e-3):
        run = robot.simulate(Q, QD, ctrl=ctrl, dt=dt, **OPTIONS | {"act": act})
        assert run.compiled
        expected = there(model, (Q, QD, act), ctrl, dt, round(0.5 / dt))
        assert last(run) == pytest.approx(expected, rel=1e-11, abs=1e-12)


def test_an_exact_filter_is_that_of_mujoco_at_small_steps(tmp_path: Path) -> None:
    """MuJoCo's Euler steps are of first order, so half the step gives half the error."""
    robot, model = arm(tmp_path), mujoco.MjModel.from_xml_string(ARM)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    exact = last(robot.simulate(Q, QD, ctrl=CTRL, dt=1e-3, **OPTIONS))
    errors = [
        np.max(np.abs(exact - there(model, (Q, QD, ACT), CTRL, dt, round(0.5 / dt))))
        for dt in (2e-4, 1e-4)
    ]
    assert errors[1] == pytest.approx(0.5 * errors[0], rel=0.05)
    assert errors[1] < 1e-3


def policy(t: float, q: np.ndarray, qd: np.ndarray) -> list[float]:
    return [2.0, 1.0 - q[0], -0.5 * t, qd[1], 0.3]


class Remembering:
    """Controls of `policy` as an object, which might have a state."""

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        q, qd = np.moveaxis(q, -1, 0), np.moveaxis(qd, -1, 0)
        rows = [2.0 + 0.0 * q[0], 1.0 - q[0], -0.5 * t + 0.0 * q[0], qd[1], 0.3 + 0.0 * q[0]]
        return np.stack(rows, axis=-1)


def test_ways_to_give_controls_agree(tmp_path: Path) -> None:
    robot, dt = arm(tmp_path), 5e-3
    constant = last(robot.simulate(Q, QD, ctrl=CTRL, dt=dt, **OPTIONS))
    rows = np.tile(CTRL, (100, 1))
    for given in (rows, lambda t: CTRL, lambda t, q, qd: list(CTRL)):
        run = robot.simulate(Q, QD, ctrl=given, dt=dt, **OPTIONS)
        assert run.compiled
        assert last(run) == pytest.approx(constant, rel=1e-12, abs=1e-12)
    by_hand = robot.simulate(Q, QD, ctrl=CTRL, dt=dt, compiled=False, **OPTIONS)
    assert last(by_hand) == pytest.approx(constant, rel=1e-10, abs=1e-10)
    traced = robot.simulate(Q, QD, ctrl=policy, dt=dt, **OPTIONS)
    called = robot.simulate(Q, QD, ctrl=Remembering(), dt=dt, **OPTIONS)
    assert traced.compiled
    assert not called.compiled
    assert last(called) == pytest.approx(last(traced), rel=1e-10, abs=1e-10)
    rolled = robot.rollout(
        Q, QD, ctrl=CTRL, act=ACT, dt=dt, steps=100, integrator="rk4", dissipation=True
    )
    assert last(rolled) == pytest.approx(constant, rel=1e-12, abs=1e-12)


def test_a_trajectory_of_controls(tmp_path: Path) -> None:
    """A trajectory gives the motion of an equal function of time, in simulations and rollouts."""
    robot, dt = arm(tmp_path), 5e-3
    move = chasles.trajectory.cubic(np.zeros(5), CTRL, 0.5)

    def by_hand(t: Any, q: Any, qd: Any) -> list[Any]:
        share = 12.0 * t * t - 16.0 * t * t * t  # 3 s^2 - 2 s^3 with s = t / 0.5
        return [x * share for x in CTRL.tolist()]

    wanted = last(robot.simulate(Q, QD, ctrl=by_hand, dt=dt, **OPTIONS))
    run = robot.simulate(Q, QD, ctrl=move, dt=dt, **OPTIONS)
    assert run.compiled
    slow = robot.simulate(Q, QD, ctrl=move, dt=dt, compiled=False, **OPTIONS)
    steps: Any = {"act": ACT, "dt": dt, "steps": 100, "integrator": "rk4", "dissipation": True}
    rolled = robot.rollout(Q, QD, ctrl=move, **steps)
    for each in (run, slow, rolled):
        assert last(each) == pytest.approx(wanted, rel=1e-10, abs=1e-11)
    stepped: Any = OPTIONS | {"dt": dt, "integrator": "time-stepping"}
    runs = [robot.simulate(Q, QD, ctrl=ctrl, **stepped) for ctrl in (move, by_hand)]
    assert last(runs[0]) == pytest.approx(last(runs[1]), rel=1e-10, abs=1e-11)
    assert runs[0].compiled


def test_a_batch_is_its_members(tmp_path: Path) -> None:
    robot, rng = arm(tmp_path), np.random.default_rng(0)
    q, qd, ctrl, act = (rng.normal(size=(3, n)) for n in (2, 2, 5, 3))
    for integrator in ("rk4", "time-stepping"):
        options = {"duration": 0.1, "dt": 5e-3, "integrator": integrator}
        run = robot.simulate(q, qd, ctrl=ctrl, act=act, **options)
        for k in range(3):
            alone = robot.simulate(q[k], qd[k], ctrl=ctrl[k], act=act[k], **options)
            assert np.array_equal(run.act[k], alone.act)
            assert np.array_equal(run.q[k], alone.q)


def test_time_stepping_converges_to_the_motion_and_has_exact_filters(tmp_path: Path) -> None:
    robot = arm(tmp_path)
    exact = robot.simulate(Q, QD, ctrl=CTRL, dt=1e-3, **OPTIONS)
    errors = []
    for dt in (4e-3, 2e-3):
        run = robot.simulate(Q, QD, ctrl=CTRL, dt=dt, integrator="time-stepping", **OPTIONS)
        decay = np.exp(-run.t / 0.05)
        assert run.act[:, 0] == pytest.approx(1.0 - 0.9 * decay, rel=1e-12)
        errors.append(np.max(np.abs(last(run) - last(exact))))
    assert errors[1] < 0.6 * errors[0]
    called = robot.simulate(
        Q, QD, ctrl=Remembering(), dt=4e-3, integrator="time-stepping", **OPTIONS
    )
    traced = robot.simulate(Q, QD, ctrl=policy, dt=4e-3, integrator="time-stepping", **OPTIONS)
    assert last(called) == pytest.approx(last(traced), rel=1e-9, abs=1e-9)


def test_activations_stay_within_their_ranges(tmp_path: Path) -> None:
    path = tmp_path / "limited.xml"
    ranged = 'dyntype="integrator" actlimited="true" actrange="-0.1 0.3"'
    path.write_text(ARM.replace('dyntype="integrator"', ranged))
    robot = chasles.load(path)
    for options in ({}, {"compiled": False}, {"integrator": "time-stepping"}):
        run = robot.simulate(Q, QD, ctrl=CTRL, dt=5e-3, duration=0.6, **options)
        assert run.act[:, 2] == pytest.approx(np.minimum(run.t, 0.3), abs=1e-12)


def test_a_stopped_motion_goes_on(tmp_path: Path) -> None:
    robot = arm(tmp_path)
    rows = np.random.default_rng(1).normal(size=(40, 5))
    for integrator in ("rk4", "time-stepping"):
        options = {"ctrl": rows, "act": ACT, "dt": 5e-3, "duration": 0.2, "integrator": integrator}
        whole = robot.simulate(Q, QD, **options)
        first = robot.simulate(Q, QD, steps=15, **options)
        rest = robot.simulate(Q, QD, resume=first.end, **options)
        assert np.array_equal(np.concatenate([first.act, rest.act]), whole.act)
        assert np.array_equal(np.concatenate([first.q, rest.q]), whole.q)


def test_gradients_by_controls_and_activations(tmp_path: Path) -> None:
    robot, rng = arm(tmp_path), np.random.default_rng(2)
    ctrl, act = 0.5 * rng.normal(size=(8, 5)), rng.normal(size=3)
    options = {"dt": 0.01, "steps": 8, "integrator": "rk4"}

    def height(ctrl: np.ndarray, act: np.ndarray) -> float:
        return float(robot.rollout(Q, QD, ctrl=ctrl, act=act, **options).q[-1, 1])

    weights = np.zeros((9, 2))
    weights[-1, 1] = 1.0
    found = robot.rollout_pullback(Q, QD, ctrl=ctrl, act=act, covectors=(weights, None), **options)
    for by, given, place in ((found.ctrl, ctrl, (3, 1)), (found.act, act, (2,))):
        step = np.zeros_like(given)
        step[place] = 1e-6
        ends = [
            height(ctrl + s * step, act) if by is found.ctrl else height(ctrl, act + s * step)
            for s in (1.0, -1.0)
        ]
        assert by[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-9)


def test_sensors_along_a_motion_feel_the_actuators(tmp_path: Path) -> None:
    path = tmp_path / "sensed.xml"
    own = '<sensor><actuatorfrc name="drive" actuator="lag"/></sensor></mujoco>'
    path.write_text(
        ARM.replace(
            '<general joint="elbow" dyntype="filter" ',
            '<general name="lag" joint="elbow" dyntype="filter" ',
        ).replace("</mujoco>", own)
    )
    robot = chasles.load(path)
    run = robot.simulate(Q, QD, ctrl=CTRL, dt=5e-3, sensors=True, **OPTIONS)
    assert run.sensors["drive"][:, 0] == pytest.approx(2.0 * run.act[:, 0], rel=1e-12)


MODELS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


@pytest.mark.parametrize("name", ["half_cheetah", "swimmer", "reacher", "inverted_pendulum"])
def test_motions_of_gymnasium_are_those_of_mujoco(name: str) -> None:
    """Motions agree for small RK4 steps without constraints.

    Random controls last 20 steps each.
    """
    path = MODELS / f"{name}.xml"
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 5e-4
    robot = chasles.load(path)
    rng, convention = np.random.default_rng(3), conventions.mujoco(robot)
    q, qd = robot.integrate(robot.neutral(), 0.1 * rng.normal(size=robot.nv)), np.zeros(robot.nv)
    ctrl = np.repeat(rng.uniform(-1.0, 1.0, size=(10, model.nu)), 20, axis=0)
    data = mujoco.MjData(model)
    data.qpos[:] = convention.to_position(q)
    for row in ctrl:
        data.ctrl[:] = row
        mujoco.mj_step(model, data)
    smooth = chasles.Robot(_without_friction(robot))
    run = smooth.simulate(q, qd, ctrl=ctrl, dt=5e-4, duration=0.1, dissipation=True)
    assert run.compiled
    assert convention.to_position(run.q[-1]) == pytest.approx(data.qpos, abs=1e-7)


def _without_friction(robot: chasles.Robot) -> Any:
    source = robot.model.source
    return replace(source, joints=tuple(replace(x, friction=0.0) for x in source.joints))


def test_without_controls_actuators_exert_no_force(tmp_path: Path) -> None:
    robot = arm(tmp_path)
    run = robot.simulate(Q, QD, dt=5e-3, duration=0.1)
    assert run.act is None
    idle = robot.simulate(Q, QD, tau=[0.0, 0.0], dt=5e-3, duration=0.1)
    assert np.array_equal(run.q, idle.q)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    robot = arm(tmp_path)
    with pytest.raises(ArgumentError, match="E-MOTION-143"):
        robot.simulate(Q, QD, ctrl=CTRL, tau=Q, duration=0.1)
    with pytest.raises(ArgumentError, match="E-MOTION-144"):
        robot.rollout(Q, QD, Q, ctrl=CTRL, dt=0.01, steps=1)
    with pytest.raises(InputError, match="E-MOTION-142"):
        robot.simulate(Q, QD, act=ACT, duration=0.1)
    with pytest.raises(ArgumentError, match="E-MOTION-145"):
        robot.simulate(Q, QD, act=ACT, duration=0.1, compiled=False)
    with pytest.raises(InputError, match="E-MOTION-023"):
        robot.simulate(Q, QD, ctrl=np.zeros((7, 5)), dt=0.01, duration=0.1)
    with pytest.raises(InputError, match="E-MOTION-146"):
        robot.simulate(Q, QD, ctrl=CTRL, duration=0.1, limits=True)
    bad = np.full(5, np.nan)
    with pytest.raises(InputError, match="E-MOTION-140"):
        robot.simulate(Q, QD, ctrl=bad, duration=0.1, compiled=False)
    with pytest.raises(InputError, match="E-MOTION-141"):
        robot.simulate(Q, QD, ctrl=CTRL, act=np.zeros((2, 3)), duration=0.1, compiled=False)


def test_a_stiff_servo_is_stable_at_five_milliseconds(tmp_path: Path) -> None:
    """kp dt^2 is over 1000 times the inertia, so an explicit step would be unstable."""
    path = tmp_path / "servo.xml"
    path.write_text(
        '<mujoco><worldbody><body><joint name="j" axis="0 1 0" stiffness="1e5"/>'
        '<geom size="0.1" mass="1" pos="0.1 0 0" contype="0" conaffinity="0"/></body></worldbody>'
        '<actuator><position joint="j" kp="1e6" kv="1e3"/></actuator></mujoco>'
    )
    robot = chasles.load(path)
    options = {"integrator": "time-stepping", "dt": 5e-3, "duration": 2.0}
    run = robot.simulate([0.2], [0.0], ctrl=[0.3], **options)
    weight = robot.gravity_forces([0.3 * 1e6 / 1.1e6])[0]
    assert run.q[-1, 0] == pytest.approx((0.3e6 - weight) / 1.1e6, abs=1e-6)
    assert np.abs(run.q).max() < 0.4
