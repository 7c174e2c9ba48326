"""Sensors: values of all types as in MuJoCo, contacts, noise, edits, batches, derivatives."""

import pickle
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from oracles.mujoco_sensors import EVERY_SENSOR, differences, states
from support import raises

import chasles
from chasles import contact
from chasles.algorithms.spatial.sensors import READINGS
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Transform
from chasles.model import SENSORS, NoiseData, SensorData, Surface

TIGHT = 1e-9
"""Tolerance for differences between the libraries' definitions; rounding is below 1e-12."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sensors") / "every.xml"
    path.write_text(EVERY_SENSOR, "utf-8")
    return path


@pytest.fixture(scope="module")
def robot(file: Path) -> chasles.Robot:
    return chasles.load(file)


def on(frame: str, kind: str, **fields: object) -> SensorData:
    return SensorData(kind, kind, frame, **fields)


def test_every_kind_has_a_reading() -> None:
    motion = {kind for kind, row in SENSORS.items() if row.of == "motion"}
    assert {*READINGS} == motion


def test_every_type_of_sensor_equals_mujocos(file: Path) -> None:
    worst, told = differences(file, 5)
    assert not told
    assert {*worst} == {*SENSORS} - {"force_torque"}
    assert max(worst.values()) < TIGHT


@pytest.mark.skipif(int(mujoco.__version__.split(".")[0]) < 4, reason="MuJoCo 4 counts tendons")
def test_force_sensors_feel_springs_and_dampers_of_spatial_tendons(tmp_path: Path) -> None:
    sprung = '<spatial name="string" stiffness="40" damping="3" springlength="0.1">'
    text = EVERY_SENSOR.replace('<spatial name="string">', sprung)
    path = tmp_path / "sprung.xml"
    path.write_text(text, "utf-8")
    worst, _ = differences(path, 3)
    assert worst["force"] < TIGHT
    assert worst["torque"] < TIGHT


def test_names_are_those_of_the_file(file: Path, robot: chasles.Robot) -> None:
    model = mujoco.MjModel.from_xml_path(str(file))
    names = [model.sensor(k).name or f"sensor{k}" for k in range(model.nsensor)]
    assert robot.sensors == tuple(names)
    assert robot.sensor("s_mag").cutoff == 0.2
    assert robot.sensor("s_force2").noise.deviation == 0.1


def test_a_sensor_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "user.xml"
    path.write_text(
        '<mujoco><worldbody><body name="b"><freejoint/><geom size=".1"/></body></worldbody>'
        '<sensor><user name="own" dim="2"/><clock name="t"/></sensor></mujoco>'
    )
    with pytest.warns(chasles.errors.LeftOutWarning, match=r"sensor 'own' \(user\) is ignored"):
        robot = chasles.load(path)
    assert robot.sensors == ("t",)


RAYS = """<mujoco><compiler angle="radian"/><asset><mesh name="m" vertex=
"-.3 -.2 -.1  .3 -.2 -.1  0 .4 -.1  0 0 .35"/></asset><worldbody>
<body name="target"><freejoint/><geom type="{kind}" {size} pos=".02 .01 -.03" euler=".2 .3 .4"
mass="1"/></body>
<body name="eye" pos="0 0 1"><freejoint name="eye"/><geom size=".01" rgba="0 0 0 0"/>
<site name="{{n}}"/></body></worldbody><sensor>{sensors}</sensor></mujoco>"""


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("sphere", 'size=".3"'),
        ("capsule", 'size=".2 .3"'),
        ("ellipsoid", 'size=".2 .4 .3"'),
        ("cylinder", 'size=".25 .3"'),
        ("box", 'size=".2 .3 .25"'),
        ("mesh", 'mesh="m"'),
    ],
)
def test_rays_meet_shapes_where_mujocos_do(tmp_path: Path, kind: str, size: str) -> None:
    """Rays from outside and inside a shape hit it, and others miss it, as in MuJoCo."""
    text = RAYS.format(kind=kind, size=size, sensors='<rangefinder name="r" site="s"/>')
    path = tmp_path / "rays.xml"
    path.write_text(text.replace("{n}", "s"))
    robot, model, rng = chasles.load(path), mujoco.MjModel.from_xml_path(str(path)), _rng()
    data, found = mujoco.MjData(model), []
    for _ in range(300):
        data.qpos[:] = [*rng.normal(size=3) * 0.1, *rng.normal(size=4)] + [0.0] * 7
        data.qpos[7:] = [*rng.normal(size=3) * 0.7, *rng.normal(size=4)]
        toward = data.qpos[:3] - data.qpos[7:10] + 0.1 * rng.normal(size=3)
        data.qpos[10:] = _turned_to(toward)
        mujoco.mj_forward(model, data)
        q = np.concatenate([data.qpos[3:7], data.qpos[:3], data.qpos[10:], data.qpos[7:10]])
        still = np.zeros(robot.nv)
        expected = data.sensordata[0]
        found.append(expected)
        assert abs(robot.sense(q, still, still)["r"][0] - expected) < TIGHT
    assert sum(x < 0.0 for x in found) > 1
    assert sum(x > 0.0 for x in found) > 100


def test_a_site_in_the_plane_of_a_camera_has_mujocos_pixel(tmp_path: Path) -> None:
    """A site in the camera plane has no pixel; coordinates are large, finite and as in MuJoCo."""
    text = """<mujoco><worldbody><camera name="eye"/><site name="aside" pos="0.3 0 0"/>
      <body><joint/><geom size="1"/></body></worldbody>
      <sensor><camprojection name="seen" site="aside" camera="eye"/></sensor></mujoco>"""
    (tmp_path / "eye.xml").write_text(text)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    found = chasles.load(tmp_path / "eye.xml").sense([0.0], [0.0], [0.0])["seen"]
    np.testing.assert_allclose(found, data.sensordata, rtol=1e-9)


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _turned_to(direction: np.ndarray) -> np.ndarray:
    """Return the quaternion that turns z to a direction."""
    unit, z = direction / np.linalg.norm(direction), np.array([0.0, 0.0, 1.0])
    turn = np.array([1.0 + unit @ z, *np.cross(z, unit)])
    return turn / np.linalg.norm(turn)


# Contacts ----------------------------------------------------------------------------------------

BALL = """<mujoco><worldbody><geom name="floor" type="plane" size="0 0 1"/><body name="ball"
pos="0 0 .095"><freejoint name="free"/><geom size=".1" mass="2" condim="{condim}"/>
<site name="zone" type="sphere" size=".12"/><site name="top" pos="0 0 .2" size=".05"/></body>
</worldbody><sensor><touch name="all" site="zone"/><touch name="none" site="top"/>
<force name="force" site="zone"/><torque name="torque" site="zone"/></sensor></mujoco>"""


@pytest.mark.parametrize("condim", [1, 6])
def test_touch_and_force_feel_the_contacts_of_mujoco(tmp_path: Path, condim: int) -> None:
    path = tmp_path / "ball.xml"
    path.write_text(BALL.format(condim=condim))
    robot, model = chasles.load(path), mujoco.MjModel.from_xml_path(str(path))
    [(data, _)] = states(robot, model, 1)
    model.opt.disableflags = 0
    data.qpos[:], data.qvel[:] = model.qpos0, [0.3, 0.1, -0.05, 0.4, -0.2, 0.5]
    mujoco.mj_forward(model, data)
    assert data.ncon == 1
    wrench, point = np.zeros(6), data.contact[0]
    mujoco.mj_contactForce(model, data, 0, wrench)
    axes = point.frame.reshape(3, 3)  # points from the floor to the ball
    force = contact.ContactForce(
        "ball", point.pos, axes[0] * wrench[0], axes[1:].T @ wrench[1:3], axes.T @ wrench[3:]
    )
    convention = chasles.conventions.mujoco(robot, ["free"])
    x, v = data.qpos, data.qvel
    q, qd = convention.from_position(x), convention.from_velocity(x, v)
    values = robot.sense(q, qd, convention.from_acceleration(x, v, data.qacc), [force])
    flat = np.concatenate([values[name] for name in robot.sensors])
    assert flat[0] > 1.0
    assert np.allclose(flat, data.sensordata, rtol=0.0, atol=TIGHT)


def test_a_force_sensor_feels_a_wrench_beyond_it_only(robot: chasles.Robot) -> None:
    """The sensor shows the wrench with the opposite sign, in its own frame."""
    q, zero = robot.random(seed=0), np.zeros(robot.nv)
    still = robot.sense(q, zero, zero, sensors=["s_force", "s_torque", "s_force2"])
    push = chasles.Wrench([0.0, 0.0, 0.0, 1.0, 2.0, 3.0])
    pushed = robot.sense(q, zero, zero, {"finger": push}, sensors=[*still])
    R = robot.forward_kinematics(q, frame="ft")[:3, :3]
    change = pushed["s_force2"] - still["s_force2"]
    assert np.allclose(change, -R.T @ [1.0, 2.0, 3.0], atol=1e-12)
    inward = robot.sense(q, zero, zero, {"base": push}, sensors=[*still])
    for name in still:
        assert np.allclose(inward[name], still[name], atol=1e-12)


def test_a_sensor_at_a_joint_feels_its_reaction() -> None:
    robot = chasles.robots.puma560()
    link, joint = robot.joint(robot.joints[2]).child, 2
    robot = robot.with_sensors(on(link, "force_torque"))
    rng = _rng()
    q, qd, qdd = robot.random(rng), rng.normal(size=6), rng.normal(size=6)
    reaction = robot.joint_reactions(q, qd, qdd)[joint]
    assert np.allclose(robot.sense(q, qd, qdd)["force_torque"], reaction, atol=1e-12)


def test_loops_pull_at_force_sensors() -> None:
    robot = chasles.robots.four_bar()
    link = robot.joint(robot.joints[-1]).child
    robot = robot.with_sensors(on(link, "force_torque"), on(link, "gyroscope"))
    q = robot.assemble([0.3])
    qd = robot.complete(q, [0.7])
    tau = np.zeros(robot.nv)
    qdd, multipliers = robot.constrained_dynamics(q, qd, tau)
    values = robot.sense(q, qd, qdd, multipliers=multipliers)
    reactions = robot.joint_reactions(q, qd, qdd, multipliers=multipliers)
    assert np.allclose(values["force_torque"], reactions[-1], atol=1e-10)
    assert robot.sense(q, qd, qdd, sensors="gyroscope")["gyroscope"].shape == (3,)
    with pytest.raises(chasles.ChaslesError, match="multipliers"):
        robot.sense(q, qd, qdd)


# Sensors made in Python, edits, errors -----------------------------------------------------------


def test_an_accelerometer_at_rest_shows_gravity() -> None:
    robot = chasles.robots.puma560().with_sensors(on("tool", "accelerometer"))
    q, zero = robot.random(seed=1), np.zeros(6)
    R = robot.forward_kinematics(q, frame="tool")[:3, :3]
    values = robot.sense(q, zero, zero)["accelerometer"]
    assert np.allclose(values, -R.T @ robot.gravity, atol=1e-12)


def test_a_changed_robot_keeps_the_sensors_that_it_can(robot: chasles.Robot) -> None:
    part = robot.subtree("palm")
    assert {"s_torque", "s_force2", "s_bq", "s_t"} <= {*part.sensors}
    assert "s_gyro" not in part.sensors
    assert "s_range" not in part.sensors
    locked = robot.lock({"a": 0.1})
    assert "s_jp" not in locked.sensors
    assert "s_jv" in locked.sensors
    assert robot.without_sensors().sensors == ()
    assert pickle.loads(pickle.dumps(robot)).sensors == robot.sensors
    other = robot.with_sensors(replace(robot.sensor("s_jp"), cutoff=0.01))
    assert other.sensors == robot.sensors
    assert other.sensor("s_jp").cutoff == 0.01


def test_a_robot_that_is_locked_measures_the_same(robot: chasles.Robot) -> None:
    q, zero = robot.random(seed=3), np.zeros(robot.nv)
    place = robot.position_slice("a")
    locked = robot.lock({"a": q[place]})
    whole = robot.sense(q, zero, zero)
    rest = np.delete(q, place.start)
    for name, value in locked.sense(rest, *[np.zeros(locked.nv)] * 2).items():
        if name not in ("s_fq", "s_fq2", "sensor21", "s_ep"):  # signs differ; a spring is locked
            assert np.allclose(value, whole[name], atol=1e-9), name


@pytest.mark.parametrize(
    ("sensor", "code"),
    [
        (SensorData("x", "sonar", "tool"), "E-SENSE-006"),
        (SensorData("x", "gyroscope"), "E-SENSE-007"),
        (SensorData("x", "joint_position", joint="none"), "E-SENSE-008"),
        (SensorData("x", "joint_quaternion", joint="joint1"), "E-SENSE-009"),
        (SensorData("x", "touch", "tool"), "E-SENSE-010"),
        (SensorData("x", "magnetometer", "tool"), "E-SENSE-011"),
        (SensorData("x", "gyroscope", "tool", cutoff=-1.0), "E-SENSE-012"),
        (SensorData("x", "gyroscope", "hand"), "E-MODEL-034"),
        ("gyroscope", "E-SENSE-004"),
        (SensorData("x", "subtree_center_of_mass", "tool"), "E-SENSE-020"),
        (SensorData("x", {}, "tool"), "E-CALL-110"),  # type: ignore[arg-type]
        (SensorData(3, "gyroscope", "tool"), "E-CALL-110"),  # type: ignore[arg-type]
        (SensorData("x", "gyroscope", "tool", cutoff=10**400), "E-SENSE-012"),
        (SensorData("x", "gyroscope", "tool", pose=1.0), "E-SENSE-023"),  # type: ignore[arg-type]
        (SensorData("x", "gyroscope", "tool", noise=0.1), "E-SENSE-024"),  # type: ignore[arg-type]
        (SensorData("x", "gyroscope", "tool", noise=NoiseData(-1.0)), "E-SENSE-025"),
        (
            SensorData("x", "gyroscope", "tool", noise=NoiseData(correlation_time=0.0)),
            "E-SENSE-026",
        ),
        (SensorData("x", "gyroscope", "tool", noise=NoiseData(offset=(1.0,))), "E-SENSE-027"),
        (SensorData("x", "gyroscope", "tool", numbers=(np.nan,)), "E-SENSE-022"),
        (SensorData("x", "force", "tool", numbers=(1.0, 2.0)), "E-SENSE-011"),
        (SensorData("x", "range", "tool", seen=3), "E-SENSE-021"),  # type: ignore[arg-type]
        (SensorData("x", "range", "tool", seen=("box",)), "E-SENSE-028"),  # type: ignore[arg-type]
        (SensorData("x", "range", "tool", seen=(Surface("tool", "cone", ()),)), "E-SENSE-029"),
        (SensorData("x", "range", "tool", seen=(Surface("tool", "box", (1.0,)),)), "E-SENSE-030"),
        (SensorData("x", "range", "tool", seen=(Surface("tool", "mesh", ()),)), "E-SENSE-031"),
        (SensorData("x", "touch", "tool", zone=Surface("tool", "sphere", 0.1)), "E-SENSE-032"),  # type: ignore[arg-type]
    ],
)
def test_sensors_that_are_wrong_are_refused(sensor: object, code: str) -> None:
    robot = chasles.robots.puma560()
    if isinstance(sensor, SensorData) and sensor.joint == "joint1":
        sensor = replace(sensor, joint=robot.joints[0])
    with pytest.raises(chasles.ChaslesError) as refused:
        robot.with_sensors(sensor)  # type: ignore[arg-type]
    assert refused.value.code == code


def test_a_sensor_on_a_frame_does_not_need_its_joint() -> None:
    """The sensor is kept for any value of `joint`, which its type does not use."""
    robot = chasles.robots.puma560()
    made = robot.with_sensors(SensorData("x", "gyroscope", "tool", joint="none"))
    assert made.sensors == ("x",)


def test_motions_forces_and_times_that_do_not_fit_are_refused() -> None:
    robot = chasles.robots.puma560().with_sensors(SensorData("t", "clock"))
    still = robot.neutral(), np.zeros(6), np.zeros(6)
    for t, code in ((np.ones(3), "E-SENSE-018"), (None, "E-CALL-113"), (10**400, "E-CALL-113")):
        with raises(code):
            robot.sense(*still, t=t)
    with raises("E-SENSE-019"):
        robot.sense(*still, 2.0)  # type: ignore[arg-type]
    for point, code in ((np.ones(4), "E-CALL-056"), (np.ones((2, 3)), "E-CALL-057")):
        with raises(code):
            robot.sense(*still, [contact.ContactForce("link6", point, np.ones((3, 3)))])
    for names in (2.0, [["t"]]):
        with raises("E-CALL-110|E-CALL-111"):
            robot.sense(*still, sensors=names)  # type: ignore[arg-type]


def test_a_range_sensor_by_api_sees_what_it_is_given() -> None:
    floor = Surface("", "plane", (np.inf, np.inf))
    down = Transform.from_pose(_down(), Vector.zero())
    robot = chasles.robots.puma560().with_sensors(on("tool", "range", pose=down, seen=(floor,)))
    q, zero = robot.neutral(), np.zeros(6)
    height = robot.forward_kinematics(q, frame="tool")[2, 3]
    assert height > 0.1
    assert np.isclose(robot.sense(q, zero, zero)["range"][0], height)


def _down() -> object:
    from chasles.mathematics.linear import Matrix

    return Matrix(((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0)))


# Noise -------------------------------------------------------------------------------------------


def test_noise_has_its_deviation_bias_and_seed() -> None:
    noise = NoiseData(deviation=0.2, offset=(1.0, 2.0, 3.0), bias=0.5)
    robot = chasles.robots.puma560().with_sensors(on("tool", "gyroscope", noise=noise))
    state = np.zeros((4000, 6))
    exact = robot.sense(state, state, state)["gyroscope"]
    first, again = (robot.sense(state, state, state, noise=7)["gyroscope"] for _ in range(2))
    assert np.array_equal(first, again)
    error = first - exact
    assert np.allclose(error.std(axis=0), 0.2, rtol=0.05)  # standard error 1.1 % each
    bias = error.mean(axis=0) - [1.0, 2.0, 3.0]
    assert np.all(np.abs(bias) < 2.0)
    assert np.max(np.abs(bias)) > 0.1
    other = robot.sense(state, state, state, noise=8)["gyroscope"] - exact
    assert not np.allclose(other.mean(axis=0), error.mean(axis=0), atol=0.01)


def test_a_drift_has_its_correlation_time() -> None:
    noise = NoiseData(drift=0.3, correlation_time=0.05)
    robot = chasles.robots.planar(1)
    robot = robot.with_sensors(
        SensorData("angle", "joint_position", joint=robot.joints[0], noise=noise)
    )
    run = robot.simulate([0.0], [0.0], duration=20.0, dt=1e-3, sensors=True, noise=0)
    error = run.sensors["angle"][:, 0] - run.q[:, 0]
    lag = 50
    correlation = np.mean(error[lag:] * error[:-lag]) / np.mean(error * error)
    assert np.isclose(error.std(), 0.3, rtol=0.2)  # 20 s are 400 correlation times
    assert np.isclose(correlation, np.exp(-1.0), atol=0.12)


# Batches, derivatives, backends, export ----------------------------------------------------------


def test_batches_derivatives_and_backends_agree(robot: chasles.Robot) -> None:
    rng = _rng()
    q, qd, qdd = robot.random(rng, size=5), *rng.normal(size=(2, 5, robot.nv))
    values = robot.sense(q, qd, qdd, ctrl=np.ones(4), act=[0.5])
    alone = [
        robot.sense(*state, ctrl=np.ones(4), act=[0.5]) for state in zip(q, qd, qdd, strict=True)
    ]
    for name, value in values.items():
        assert np.array_equal(value, np.array([one[name] for one in alone]))
    smooth = [s for s in robot.sensors if robot.sensor(s).traits.of == "motion"]
    options = {"sensors": tuple(robot.sensor(name) for name in smooth)}
    flat = chasles.compile(robot, "sensor_values", **options)(q, qd, qdd)
    other = chasles.compile(robot, "sensor_values", backend="interpret", **options)(q, qd, qdd)
    assert np.allclose(flat, other, rtol=1e-12, atol=1e-12)
    slope = robot.derivatives("sensor_values", q, qd, qdd, wrt="q", **options)
    h, d = 1e-6, rng.normal(size=robot.nv)
    ahead, behind = (
        chasles.compile(robot, "sensor_values", **options)(robot.integrate(q, x * d), qd, qdd)
        for x in (h, -h)
    )
    assert np.allclose(slope @ d, (ahead - behind) / (2.0 * h), rtol=1e-5, atol=1e-4)


def test_float32_is_near(robot: chasles.Robot) -> None:
    rng = _rng()
    q, qd, qdd = robot.random(rng), *rng.normal(size=(2, robot.nv))
    exact, single = (
        robot.sense(*(a.astype(kind) for a in (q, qd, qdd)), sensors=["s_acc", "s_force", "s_fq"])
        for kind in (np.float64, np.float32)
    )
    for name, value in exact.items():
        assert single[name].dtype == np.float32
        assert np.allclose(single[name], value, rtol=1e-4, atol=1e-3)


def test_exported_c_has_the_sensors(robot: chasles.Robot, tmp_path: Path) -> None:
    paths = chasles.export(robot, "sensor_values", tmp_path, sensors=["s_acc", "s_range"])
    header = next(path for path in paths if path.suffix == ".h").read_text()
    assert "sensor_values" in header
    assert "result[4]" in header


def test_a_simulation_records_sensors() -> None:
    """The recorded values of a falling pendulum equal those of `sense` at the recorded states."""
    robot = chasles.robots.planar(1)
    tip = on(robot.frames[-1], "accelerometer"), on(robot.frames[-1], "frame_position")
    robot = robot.with_sensors(*tip, SensorData("t", "clock"))
    run = robot.simulate([0.3], [0.0], duration=0.5, dt=0.01, sensors=True)
    assert run.compiled
    qdd = robot.forward_dynamics(run.q, run.qd, np.zeros(1))
    expected = robot.sense(run.q, run.qd, qdd)
    assert np.allclose(run.sensors["accelerometer"], expected["accelerometer"], atol=1e-12)
    assert np.array_equal(run.sensors["t"][:, 0], run.t)
    named = robot.simulate([0.3], [0.0], duration=0.1, dt=0.01, sensors="frame_position")
    assert [*named.sensors] == ["frame_position"]
    assert not robot.simulate([0.3], [0.0], duration=0.1, dt=0.01).sensors


def test_time_stepping_records_sensors() -> None:
    """Positions belong to the recorded states; sensors of forces reject rigid contacts."""
    robot = chasles.robots.planar(1)
    tip = robot.frames[-1]
    robot = robot.with_sensors(on(tip, "frame_position"), on(tip, "accelerometer"))
    options = {"duration": 0.1, "dt": 0.01, "integrator": "time-stepping"}
    run = robot.simulate([0.3], [0.0], sensors="frame_position", **options)
    expected = robot.forward_kinematics(run.q, frame=tip)[..., :3, 3]
    assert np.allclose(run.sensors["frame_position"], expected, atol=1e-12)
    ground = contact.Pair(contact.Sphere(tip, 0.1), contact.Plane(), contact.Rigid(friction=0.5))
    with raises("E-SENSE-014"):
        robot.simulate([0.3], [0.0], sensors=True, contacts=[ground], **options)


def test_a_simulation_feels_soft_ground(tmp_path: Path) -> None:
    """The touch sensor shows the ground's force; the force sensor at the free base shows none."""
    path = tmp_path / "ball.xml"
    path.write_text(BALL.format(condim=1))
    ball = chasles.load(path)
    law = contact.SoftContact(contact.HuntCrossley(1e4, 5e4))
    ground = contact.Pair(contact.Sphere("ball", 0.1), contact.Plane(), law)
    q = ball.neutral()
    q[6] = 0.1
    run = ball.simulate(q, np.zeros(6), duration=3.0, dt=1e-3, contacts=[ground], sensors=True)
    assert run.touching is not None
    pressed = run.touching.forces[:, 0, 2]
    assert pressed.max() > 19.62
    assert np.allclose(run.sensors["all"][:, 0], pressed, atol=1e-9)
    assert np.allclose(run.sensors["force"], 0.0, atol=1e-9)
