"""Gradients of time steps with contact agree with central differences and closed forms."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import raises
from test_loops_in_steps import ball_on_plate, extensions

import chasles
from chasles import backends, contact
from chasles.motion.drivers.stepping import Stepped, chosen
from chasles.motion.steps.backward import Backward
from chasles.motion.steps.scene import Scene
from chasles.motion.steps.stepping import QUICK, STATISTICS

DT = 0.002
STEPPING = {"integrator": "time-stepping"}

EXACT = 1e-12
"""Residual of steps that are differenced; a residual of 1e-6 would make differences noisy."""


class Steps:
    """Steps of a scene, solved to rounding, and their adjoint."""

    def __init__(
        self, robot: chasles.Robot, scene: Scene, control: Any = None, m: int = 0, *free: str
    ) -> None:
        self.robot, self.made = robot, Stepped(scene.model, scene, DT, control, m, free)
        steps = self.made.steps
        self.names = [v.name for v in steps.inputs]
        self.sizes = {v.name: v.size for v in steps.inputs}
        parts = [steps.begin(EXACT), steps.refine(EXACT), steps.rescue(EXACT), steps.end]
        self._loop = self._looped(parts)
        back = Backward(steps, ())
        self.moving, self.sums = back.states, back.sums
        self._back = self._looped([back.begin(EXACT), *parts[1:3], back.end])

    @staticmethod
    def _looped(programs: Any) -> Any:
        kernels = [backends.compile(program) for program in programs]
        return backends.loop(backends.iterated(kernels, quick=QUICK))

    def _inputs(self, given: dict[str, np.ndarray]) -> tuple[list[Any], list[Any]]:
        count = len(given["q"])
        rows = {n: np.zeros((count, size)) for n, size in self.sizes.items()} | given
        rows = {n: np.array(a, dtype=float) for n, a in rows.items()}
        states = [n for n in self.names if n in self.made.steps.states]
        return [rows[n] for n in states], [rows[n][:, None] for n in self.names if n not in states]

    def __call__(self, steps: int, **given: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict]:
        """Return q, qd and statistics of a batch after the given number of steps."""
        states, controls = self._inputs(given)
        self._loop(states, controls, [], steps, 1, 1)
        return states[0], states[1], dict(zip(STATISTICS, states[-1].T, strict=True))

    def pulled(self, by_q: Any, by_qd: Any, **given: np.ndarray) -> dict[str, np.ndarray]:
        """Return the covectors before one step of a single state."""
        states, controls = self._inputs({n: a[None] for n, a in given.items()})
        bars = [np.zeros((1, self.robot.nv)) for _ in self.moving]
        bars += [np.zeros((1, self.sizes[n])) for n in self.sums]
        weights = [by_q[None, None], by_qd[None, None]]
        others = [s[:, None] for s in states] + controls + weights
        self._back(bars, others, [], 1, 1, 1)
        return {n: b[0] for n, b in zip([*self.moving, *self.sums], bars, strict=True)}


def check(steps: Steps, tolerance: float = 1e-6, h: float = 1e-6, **given: np.ndarray) -> dict:
    """Compare the gradient of a random loss of one step with central differences."""
    robot, rng = steps.robot, np.random.default_rng(3)
    by_q, by_qd = rng.normal(size=(2, robot.nv))
    found = steps.pulled(by_q, by_qd, **given)
    names = [n for n in ("q", "qd", "tau", "parameters", "model_parameters") if n in found]
    rows: dict[str, list[np.ndarray]] = {n: [] for n in given}
    for name in names:
        for k in range(len(found[name])):
            for sign in (1.0, -1.0):
                d = np.zeros(len(found[name]))
                d[k] = sign * h
                there = robot.integrate(given["q"], d) if name == "q" else given[name] + d
                for other, a in given.items():
                    rows[other].append(there if other == name else a)
    q, qd, effort = steps(1, **{n: np.array(r) for n, r in rows.items()})
    assert effort["residual"].max() < 1e-10
    base, _, now = steps(1, **{n: a[None] for n, a in given.items()})
    change = robot.difference(np.broadcast_to(base[0], q.shape), q)
    loss = change @ by_q + qd @ by_qd
    slopes = (loss[::2] - loss[1::2]) / (2.0 * h)
    whole = np.concatenate([found[name] for name in names])
    assert np.abs(whole).max() > 1e-3
    np.testing.assert_allclose(whole, slopes, atol=tolerance * np.abs(slopes).max())
    return now


def file(folder: Path, text: str) -> chasles.Robot:
    (folder / "robot.xml").write_text(text)
    return chasles.load(folder / "robot.xml")


BRICK = """<mujoco><worldbody><geom type="plane" size="5 5 1" friction="0.5"/>
<body name="brick" pos="0 0 0.5"><freejoint/>
<geom type="box" size="0.1 0.05 0.025" mass="1" friction="0.5"/></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def brick(tmp_path_factory: pytest.TempPathFactory) -> Steps:
    robot = file(tmp_path_factory.mktemp("brick"), BRICK)
    return Steps(robot, Scene(robot.model, tuple(contact.file_pairs(robot))))


@pytest.mark.parametrize(
    ("height", "speed", "spin", "acting"),
    [
        (0.5, (1.0, 0.3, -0.2), (0.5, 0.2, 3.0), False),
        (0.0249, (1.0, 0.3, 0.0), (0.0, 0.0, 2.0), True),
        (0.0249, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), True),
        (0.0252, (0.1, 0.0, -0.5), (0.0, 0.0, 0.0), True),
    ],
    ids=["flight", "sliding", "sticking", "landing"],
)
def test_a_box(brick: Steps, height: float, speed: Any, spin: Any, acting: bool) -> None:
    """A box flies, slides while it spins, rests in a slight overlap, or lands on all corners."""
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.1, 0.2, height])
    tau = np.array([0.01, -0.02, 0.03, 0.5, -0.3, 0.2])
    effort = check(brick, q=q, qd=np.array([*spin, *speed]), tau=tau, tolerance=3e-6)
    assert (abs(effort["work"][0]) > 1e-9) == acting


@pytest.fixture(scope="module")
def ball(tmp_path_factory: pytest.TempPathFactory) -> chasles.Robot:
    text = """<mujoco><worldbody><body name="ball"><freejoint/>
    <geom type="sphere" size="0.1" mass="1"/></body></worldbody></mujoco>"""
    return file(tmp_path_factory.mktemp("ball"), text)


@pytest.mark.parametrize(
    ("law", "height", "qd"),
    [
        (contact.Rigid(0.5, torsion=0.01, rolling=0.02), 0.0999, (0.3, 2.0, 4.0, 0.7, 0.2, 0.0)),
        (contact.Rigid(0.5, torsion=0.01, rolling=0.02), 0.0999, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
        (contact.Compliant(2e4, 0.01, friction=0.4), 0.0999, (0.0, 3.0, 1.0, 0.9, 0.1, -0.1)),
        (contact.Rigid(0.3, restitution=0.8), 0.102, (0.0, 3.0, 1.0, 0.9, 0.1, -2.0)),
    ],
    ids=["sliding, turning and rolling friction", "rest", "compliant", "rebound"],
)
def test_a_ball(ball: chasles.Robot, law: Any, height: float, qd: Any) -> None:
    """Laws have friction moments, compliance, or restitution with the time of impact."""
    pair = contact.Pair(contact.Sphere("ball", 0.1), contact.Plane(), law)
    steps = Steps(ball, Scene(ball.model, (pair,)))
    q = np.array([0.8, 0.6, 0.0, 0.0, 0.0, 0.0, height])
    tau = np.array([0.1, 0.05, -0.1, 0.2, 0.1, 0.3])
    check(steps, q=q, qd=np.array(qd), tau=tau, tolerance=1e-5)


def test_limits_and_dry_friction_of_joints(tmp_path: Path) -> None:
    """One joint presses against its limit, one sticks by friction, one slides, one is free."""
    text = """<mujoco><compiler angle="radian"/><worldbody>
    <body><joint name="a" axis="0 1 0" range="-0.5 0.5" limited="true"/>
      <geom size="0.1" pos="0.3 0 0" mass="1"/>
    <body pos="0.3 0 0"><joint name="b" axis="0 1 0" frictionloss="20"/>
      <geom size="0.1" pos="0.3 0 0" mass="1"/>
    <body pos="0.3 0 0"><joint name="c" axis="0 0 1" frictionloss="0.2" damping="0.1"/>
      <geom size="0.1" pos="0.3 0 0.1" mass="1"/>
    <body pos="0.3 0 0"><joint name="d" axis="1 0 0" armature="0.01"/>
      <geom size="0.1" pos="0.2 0.1 0" mass="1"/></body></body></body></body>
    </worldbody></mujoco>"""
    robot = file(tmp_path, text)
    scene = Scene(robot.model, (), ((0, 0, -0.5, 0.5),), True, True)
    q, qd = np.array([0.5001, 0.1, -0.3, 0.4]), np.array([0.0, 0.0, 2.0, -1.0])
    check(Steps(robot, scene), q=q, qd=qd, tau=np.array([1.0, 0.5, 0.3, 0.1]))


STRING = """<mujoco><worldbody><site name="hook" pos="0 0 1"/>
<body name="weight" pos="0.2 0 0.5">
  <joint name="x" type="slide" axis="1 0 0"/>
  <joint name="z" type="slide" axis="0 0 1" frictionloss="{}"/>
  <geom size="0.02" mass="0.5" contype="0" conaffinity="0"/><site name="eye"/></body>
</worldbody><tendon><spatial name="string" frictionloss="{}">
  <site site="hook"/><site site="eye"/></spatial></tendon></mujoco>"""


@pytest.mark.parametrize(
    ("joint", "tendon", "qd"),
    [
        (0.0, 20.0, (1.0, 0.4)),
        (0.0, 20.0, (0.0, 0.0)),
        (0.0, 0.5, (0.3, 0.7)),
        (1.0, 20.0, (1.0, 0.4)),
        (20.0, 20.0, (0.01, 0.005)),
        (20.0, 0.2, (0.0, 0.0)),
        (1.0, 0.2, (0.0, 0.0)),
    ],
    ids=["tendon held", "at rest", "sliding", "both", "all held", "joint held", "breakaway"],
)
def test_dry_friction_of_a_tendon_and_a_joint(
    tmp_path: Path, joint: float, tendon: float, qd: Any
) -> None:
    """The direction in which the tendon holds a body changes with the position of the body."""
    robot = file(tmp_path, STRING.format(joint, tendon))
    steps = Steps(robot, Scene(robot.model, (), (), True))
    now = check(steps, q=np.array([0.1, 0.2]), qd=np.array(qd), tau=np.array([1.3, 0.4]))
    assert now["unsolved"] == 0


def stance(robot: chasles.Robot) -> np.ndarray:
    """Return a configuration with bent legs, and feet slightly in the ground.

    Gradients have a kink at a gap of zero.
    """
    q = robot.neutral()
    q[7:] = np.tile([0.0, 0.8, -1.6], 4)
    feet = [f for f in robot.frames if f.endswith("_foot")]
    q[6] -= min(robot.forward_kinematics(q, frame=f)[2, 3] for f in feet) - 0.0199
    return q


def feet(robot: chasles.Robot, friction: float) -> tuple[contact.Pair, ...]:
    names = [f for f in robot.frames if f.endswith("_foot")]
    law = contact.Rigid(friction)
    return tuple(contact.Pair(contact.Sphere(f, 0.02), contact.Plane(), law) for f in names)


@pytest.mark.parametrize("slides", [False, True])
def test_a_quadruped_with_a_controller_and_its_parameters(slides: bool) -> None:
    """Four feet stick or slide; the gains are parameters and enter the step implicitly."""
    robot, rng = chasles.robots.quadruped(), np.random.default_rng(2)
    target = stance(robot)[7:]

    def law(t: Any, q: Any, qd: Any, p: Any) -> list[Any]:
        rows = zip(target, q[7:], qd[6:], strict=True)
        return [0.0] * 6 + [p[0] * (goal - x) - p[1] * v for goal, x, v in rows]

    steps = Steps(robot, Scene(robot.model, feet(robot, 0.6)), law, 2)
    q, qd = stance(robot), 0.01 * rng.normal(size=18)
    qd[3] += 0.8 * slides
    check(steps, q=q, qd=qd, parameters=np.array([40.0, 3.0]), tolerance=1e-5)


# Motions -----------------------------------------------------------------------------------------


def test_many_steps_of_a_sliding_box(brick: Steps) -> None:
    """The gradient of a rollout agrees with differences of steps solved to rounding."""
    robot, n, h = brick.robot, 60, 1e-6
    q, qd = np.array([1.0, 0, 0, 0, 0, 0, 0.025]), np.array([0.0, 0, 2.0, 1.0, 0.3, 0])
    rng = np.random.default_rng(5)
    by_q, by_qd = np.zeros((2, n // 20 + 1, 6))
    by_q[-1], by_qd[-1] = rng.normal(size=(2, 6))
    options = {"dt": DT, "steps": n, "every": 20, "contacts": "file", "integrator": "time-stepping"}
    tau = 0.1 * rng.normal(size=6)
    found = robot.rollout_pullback(q, qd, tau, covectors=(by_q, by_qd), **options)
    assert found.tau is not None
    moves = rng.normal(size=(3, 6)) * np.array([[0.0, 0.0, 1.0, 1.0, 1.0, 0.0]])
    there = [
        (robot.integrate(q, s * moves[0]), qd + s * moves[1], tau + s * moves[2]) for s in (h, -h)
    ]
    given = dict(zip(("q", "qd", "tau"), map(np.array, zip(*there, strict=True)), strict=True))
    end, rates, _ = brick(n, **given)
    slope = by_q[-1] @ robot.difference(end[1], end[0]) + by_qd[-1] @ (rates[0] - rates[1])
    got = sum((a * d).sum() for a, d in zip((found.q, found.qd, found.tau), moves, strict=True))
    assert got == pytest.approx(slope / (2.0 * h), rel=1e-4)


def test_batches_threads_and_rows_of_torques(brick: Steps) -> None:
    """Gradients of batch members are bitwise identical to those of single rollouts."""
    robot, rng = brick.robot, np.random.default_rng(6)
    q = np.tile([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.025], (70, 1))
    qd, tau = rng.normal(size=(70, 6)) * [0, 0, 3, 1, 1, 0], 0.1 * rng.normal(size=(70, 9, 6))
    options = {"dt": DT, "steps": 9, "contacts": "file", "integrator": "time-stepping"}
    by_q, by_qd = rng.normal(size=(2, 70, 10, 6))
    found = robot.rollout_pullback(q, qd, tau, covectors=(by_q, by_qd), threads=2, **options)
    assert found.tau is not None
    assert found.tau.shape == tau.shape
    for k in (0, 69):
        own = {"covectors": (by_q[k], by_qd[k]), **options}
        alone = robot.rollout_pullback(q[k], qd[k], tau[k], **own)
        for whole, one in zip(found, alone, strict=True):
            assert (whole is None) == (one is None)
            assert whole is None or (whole[k] == one).all()


def test_a_box_that_slides_to_rest_has_the_closed_form(brick: Steps) -> None:
    """The sliding distance v^2 / (2 mu g) has the derivative v / (mu g), to 1 % at 2 ms."""
    robot, speed = brick.robot, 1.0
    q, qd = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.025]), np.array([0.0, 0, 0, speed, 0, 0])
    options = {"dt": DT, "steps": 150, "every": 150, "contacts": "file"}
    by_q = np.zeros((2, 6))
    by_q[-1, 3] = 1.0
    run = robot.rollout(q, qd, integrator="time-stepping", **options)
    assert np.abs(run.qd[-1]).max() < 1e-3
    found = robot.rollout_pullback(
        q, qd, covectors=(by_q, None), integrator="time-stepping", **options
    )
    assert found.qd[3] == pytest.approx(speed / (0.5 * 9.81), rel=1e-2)


def test_refusals(brick: Steps) -> None:
    robot = brick.robot
    q, qd = robot.neutral(), np.zeros(6)
    with raises("E-MOTION-196"):
        robot.rollout(q, qd, dt=DT, steps=1, limits=True)
    with raises("E-MOTION-196"):
        robot.rollout(q, qd, dt=DT, steps=1, contacts="file")


# Closed loops ------------------------------------------------------------------------------------


def looped(
    robot: chasles.Robot, q: np.ndarray, pairs: Any, *stops: Any, dry: bool = False
) -> Steps:
    """Return steps of a robot with loops; its independent coordinates are chosen for q."""
    model = chosen(robot, q)
    return Steps(robot, Scene(model, tuple(pairs), stops, dry, bool(stops)))


def check_along_loops(
    steps: Steps, y: np.ndarray, yd: np.ndarray, place: Any, tau: np.ndarray, tolerance: float
) -> dict:
    """Compare a gradient with differences along states that satisfy the loops.

    The function `place` returns the configuration q with closed loops for the coordinates y.
    """
    robot, rng, h = steps.robot, np.random.default_rng(4), 1e-5
    by_q, by_qd = rng.normal(size=(2, robot.nv))
    here = {"q": place(y), "qd": robot.complete(place(y), yd), "tau": tau}
    found = steps.pulled(by_q, by_qd, **here)
    base, _, effort = steps(1, **{n: a[None] for n, a in here.items()})
    assert effort["residual"].max() < 1e-10
    moves = np.eye(2 * len(y) + robot.nv)
    for d, e, f in zip(*np.split(moves, [len(y), 2 * len(y)], axis=1), strict=True):
        sides = []
        for s in (h, -h):
            q = place(y + s * d)
            sides.append((q, robot.complete(q, yd + s * e), tau + s * f))
        q, qd, forces = (np.array(a) for a in zip(*sides, strict=True))
        after, rates, _ = steps(1, q=q, qd=qd, tau=forces)
        change = robot.difference(base[0], after[0]) - robot.difference(base[0], after[1])
        slope = (by_q @ change + by_qd @ (rates[0] - rates[1])) / (2.0 * h)
        moved = robot.difference(here["q"], q[0]) - robot.difference(here["q"], q[1])
        got = (
            found["q"] @ moved
            + found["qd"] @ (qd[0] - qd[1])
            + found["tau"] @ (forces[0] - forces[1])
        )
        scale = max(np.abs(found["q"]).max(), np.abs(found["qd"]).max(), abs(slope))
        assert got / (2.0 * h) == pytest.approx(slope, abs=tolerance * scale)
    return effort


def rises(robot: chasles.Robot, q: np.ndarray) -> float:
    """Return 1 if the foot rises while the crank turns forward, else -1."""
    J = robot.jacobian(q, frame="coupler", axes="world")
    return float(np.sign((J @ robot.complete(q, [1.0]))[4]))


@pytest.mark.parametrize(("turning", "acting"), [(2.0, True), (-2.0, False), (0.0, True)])
def test_a_four_bar_whose_foot_lands_lifts_or_rests(turning: float, acting: bool) -> None:
    robot = chasles.robots.four_bar()
    start = robot.assemble([0.6], robot.neutral())
    foot = robot.forward_kinematics(start, frame="coupler")[:3, 3]
    plane = contact.Plane(None, (0.0, 1.0, 0.0), (0.0, foot[1] + 1e-4, 0.0))
    pair = contact.Pair(contact.Point("coupler"), plane, contact.Rigid(0.3))
    y, yd = np.array([0.6]), np.array([-turning])
    rise = rises(robot, start)
    effort = check_along_loops(
        looped(robot, start, [pair]),
        y,
        yd * rise,
        lambda y: robot.assemble(y, start),
        np.array([-0.2 * rise, 0.01, 0.02]),
        1e-6,
    )
    assert (abs(effort["work"][0]) > 1e-9) == acting


def test_a_four_bar_with_restitution_limits_and_dry_friction() -> None:
    """A foot rebounds at its time of impact; a rocker presses against its limit, with friction."""
    robot = chasles.robots.four_bar().with_parameters({"crank.friction": 0.01})
    start = robot.assemble([0.6], robot.neutral())
    foot = robot.forward_kinematics(start, frame="coupler")[:3, 3]
    plane = contact.Plane(None, (0.0, 1.0, 0.0), (0.0, foot[1] - 2e-4, 0.0))
    pair = contact.Pair(contact.Point("coupler"), plane, contact.Rigid(0.3, restitution=0.7))
    rise = rises(robot, start)
    steps = looped(robot, start, [pair])
    place, down = (lambda y: robot.assemble(y, start)), -2.0 * rise
    effort = check_along_loops(steps, np.array([0.6]), np.array([down]), place, np.zeros(3), 1e-5)
    assert effort["work"][0] > 1e-3  # the work includes the rebound
    stop = (2, 2, -10.0, float(start[2]) - 1e-4)
    pressed = looped(robot, start, [], stop, dry=True)
    toward = np.sign(robot.complete(start, [1.0])[2])
    effort = check_along_loops(
        pressed, np.array([0.6]), np.array([toward]), place, np.zeros(3), 1e-6
    )
    assert abs(effort["work"][0]) > 1e-6


@pytest.mark.parametrize("friction", [0.1, 2.0, 50.0])
def test_a_five_bar_with_dry_friction(friction: float) -> None:
    """Dry friction of dependent joints opposes combinations of the independent velocities."""
    robot = chasles.robots.five_bar()
    y = np.array([2.0, 0.9])
    others = set(range(robot.nv)) - set(chosen(robot, robot.assemble(y)).independent)
    first, second = (robot.model.source.joints[k].name for k in sorted(others))
    robot = robot.with_parameters({f"{first}.friction": friction, f"{second}.friction": 0.1})
    start = robot.assemble(y)
    steps = looped(robot, start, [], dry=True)
    assert len(steps.made.steps._problem.ties) == 2
    tau, yd = np.array([0.2, -0.1, 0.3, 0.1]), np.array([0.2, -0.1])
    check_along_loops(steps, y, yd, lambda y: robot.assemble(y, start), tau, 1e-6)


def test_many_steps_with_a_loop() -> None:
    """The gradient of 80 steps that land and slide agrees with differences of rollouts."""
    robot = chasles.robots.four_bar()
    start = robot.assemble([0.6], robot.neutral())
    foot = robot.forward_kinematics(start, frame="coupler")[:3, 3]
    plane = contact.Plane(None, (0.2, 1.0, 0.0), (foot[0], foot[1] - 0.02, 0.0))
    pair = contact.Pair(contact.Point("coupler"), plane, contact.Compliant(1e4, 0.01, 0.2))
    options = {"dt": DT, "steps": 80, "every": 80, "contacts": [pair], **STEPPING}
    rng, h, n = np.random.default_rng(8), 1e-4, 7
    y, tau = 0.6 + np.linspace(0.0, 0.05, n)[:, None], 0.1 * rng.normal(size=(n, 80, 3))
    by_q, by_qd = rng.normal(size=(2, n, 2, 3))

    def motion(y: np.ndarray, yd: float, tau: np.ndarray) -> tuple[Any, ...]:
        q = robot.assemble(y, start)
        return q, robot.complete(q, np.full((n, 1), yd)), tau

    def loss(*state: np.ndarray) -> np.ndarray:
        run = robot.rollout(*state, **options)
        return (by_q * run.q + by_qd * run.qd).sum((1, 2))

    here = motion(y, -0.5, tau)
    found = robot.rollout_pullback(*here, covectors=(by_q, by_qd), **options)
    assert robot.rollout(*here, **options).touching.forces[:, -1].any(axis=(1, 2)).all()
    e, rates = rng.normal(size=tau.shape), (1.0, 0.7)
    sides = [motion(y + s * rates[0], -0.5 + s * rates[1], tau + s * e) for s in (h, -h)]
    slope = (loss(*sides[0]) - loss(*sides[1])) / (2.0 * h)
    assert found.tau is not None
    got = sum(
        (bar * (a - b)).reshape(n, -1).sum(1)
        for bar, a, b in zip(found[:3], sides[0], sides[1], strict=True)
    )
    np.testing.assert_allclose(got / (2.0 * h), slope, atol=1e-4 * np.abs(slope).max())


def test_a_ball_on_a_stewart_platform() -> None:
    """The loops contain ball joints, and a ball slides on the plate."""
    robot, pair, high = ball_on_plate()
    start = robot.assemble(np.r_[extensions(np.eye(3)), np.zeros(6)], robot.neutral())
    at = robot.position_slice("ball").start + 4
    start[at : at + 3] = robot.forward_kinematics(start, frame="platform")[:3, 3]
    start[at + 2] += high - 1e-4
    ball = robot.velocity_slice("ball")
    assert robot.independent[6:] == tuple(f"ball[{k}]" for k in range(6))

    def place(y: np.ndarray) -> np.ndarray:
        moved = np.zeros(robot.nv)
        moved[ball] = y[6:]
        return robot.integrate(robot.assemble(np.r_[y[:6], np.zeros(6)], start), moved)

    y, yd = np.r_[extensions(np.eye(3)), np.zeros(6)], np.zeros(12)
    yd[:6], yd[6:] = 0.02 * np.arange(6), [0.1, 3.0, 0.2, 0.9, 0.1, 0.0]
    steps = looped(robot, start, [pair])
    effort = check_along_loops(steps, y, yd, place, np.zeros(robot.nv), 1e-6)
    assert abs(effort["work"][0]) > 1e-9


# Model parameters --------------------------------------------------------------------------------


def values(robot: chasles.Robot, *names: str, **others: Any) -> np.ndarray:
    """Return the parameters in the order of the step; `others` are parameters of contacts."""
    return np.concatenate([*(robot.parameter(n).ravel() for n in names), *others.values()])


@pytest.mark.parametrize(
    ("height", "qd"),
    [
        (0.0249, (0.0, 0.0, 2.0, 1.0, 0.3, 0.0)),
        (0.0249, (0,) * 6),
        (0.0252, (0, 0, 0, 0.1, 0, -0.5)),
    ],
    ids=["sliding", "sticking", "landing"],
)
def test_mass_inertia_gravity_and_friction_of_a_box(brick: Steps, height: float, qd: Any) -> None:
    robot, names = brick.robot, ("brick.mass", "brick.center", "brick.inertia", "gravity")
    scene = brick.made.scene
    steps = Steps(robot, scene, None, 0, *names, "contacts.friction")
    q, tau = np.array([1.0, 0, 0, 0, 0.1, 0.2, height]), np.array([0.01, 0.02, 0, 0.5, -0.3, 0.2])
    given = values(robot, *names, friction=[0.5])
    given[1:4] += [0.01, -0.02, 0.005]
    given[-2] += 1.0  # the last entries are gravity along z and friction
    rest = {"tau": tau, "model_parameters": given, "tolerance": 3e-6}
    check(steps, q=q, qd=np.array(qd, dtype=float), **rest)


def test_stiffness_of_compliant_ground(ball: chasles.Robot) -> None:
    law = contact.Compliant(2e4, 0.01, friction=0.4)
    pair = contact.Pair(contact.Sphere("ball", 0.1), contact.Plane(), law)
    names = ("contacts.stiffness", "contacts.friction")
    steps = Steps(ball, Scene(ball.model, (pair,)), None, 0, *names)
    q, qd = np.array([0.8, 0.6, 0, 0, 0, 0, 0.0999]), np.array([0.0, 3.0, 1.0, 0.9, 0.1, -0.1])
    rest = {"tau": np.zeros(6), "tolerance": 1e-5}
    found = check(steps, q=q, qd=qd, model_parameters=np.array([1.0, 0.4]) * [2e4, 1.0], **rest)
    assert found["work"][0] < 0.0


ARM = """<mujoco><compiler angle="radian"/><worldbody>
<body name="one"><joint name="a" axis="0 1 0" range="-0.5 0.5" limited="true"/>
  <geom size="0.1" pos="0.3 0 0" mass="1"/>
<body name="two" pos="0.3 0 0"><joint name="b" axis="0 1 0" frictionloss="20"/>
  <geom size="0.1" pos="0.3 0 0" mass="1"/>
<body name="three" pos="0.3 0 0"><joint name="c" axis="0 0 1" frictionloss="0.2" damping="0.1"/>
  <geom size="0.1" pos="0.3 0 0.1" mass="1"/>
<body name="four" pos="0.3 0 0"><joint name="d" axis="1 0 0" armature="0.01" stiffness="3"/>
  <geom size="0.1" pos="0.2 0.1 0" mass="1"/></body></body></body></body>
</worldbody></mujoco>"""


def test_parameters_of_joints(tmp_path: Path) -> None:
    """Gradients by friction, damping, stiffness, armature, placement and mass are correct.

    One joint is at its limit, one sticks, and one slides.
    """
    robot = file(tmp_path, ARM)
    names = [f"{joint}.friction" for joint in "bc"] + ["a.damping", "c.damping", "d.armature"]
    names += ["a.armature", "d.stiffness", "b.stiffness", "c.placement", "three.mass"]
    scene = Scene(robot.model, (), ((0, 0, -0.5, 0.5),), True, True)
    q, qd = np.array([0.5001, 0.1, -0.3, 0.4]), np.array([0.0, 0.0, 2.0, -1.0])
    steps = Steps(robot, scene, None, 0, *names)
    rest = {"tau": np.array([1.0, 0.5, 0.3, 0.1]), "model_parameters": values(robot, *names)}
    check(steps, q=q, qd=qd, **rest)


def test_parameters_of_a_robot_with_a_loop() -> None:
    robot = chasles.robots.four_bar()
    start = robot.assemble([0.6], robot.neutral())
    foot = robot.forward_kinematics(start, frame="coupler")[:3, 3]
    plane = contact.Plane(None, (0.0, 1.0, 0.0), (0.0, foot[1] + 1e-4, 0.0))
    pair = contact.Pair(contact.Point("coupler"), plane, contact.Rigid(0.3))
    names = ("coupler.mass", "crank.damping", "gravity")
    model = chosen(robot, start)
    scene = Scene(model, (pair,), (), True)
    steps = Steps(robot, scene, None, 0, *names, "contacts.friction")
    qd, given = robot.complete(start, [-2.0]), values(robot, *names, friction=[0.3])
    rng, h = np.random.default_rng(4), 1e-6
    by_q, by_qd = rng.normal(size=(2, 3))
    rest = {"q": start, "qd": qd, "tau": np.zeros(3)}
    found = steps.pulled(by_q, by_qd, model_parameters=given, **rest)["model_parameters"]
    moves = np.concatenate([given + h * np.eye(6), given - h * np.eye(6)])
    tiled = {n: np.tile(a, (12, 1)) for n, a in rest.items()}
    q, rates, _ = steps(1, model_parameters=moves, **tiled)
    loss = q @ by_q + rates @ by_qd
    slope = (loss[:6] - loss[6:]) / (2.0 * h)
    np.testing.assert_allclose(found, slope, atol=1e-6 * np.abs(slope).max())


def test_motions_with_parameters_are_those_of_other_robots(brick: Steps) -> None:
    """Batch members move like robots with the same parameters, also with shared slots."""
    robot, mass, mu = brick.robot, np.array([0.5, 2.0]), np.array([[0.2], [0.7]])
    q, qd = np.array([1.0, 0, 0, 0, 0, 0, 0.025]), np.array([0.0, 0, 2.0, 1.0, 0.3, 0])
    options = {"dt": DT, "steps": 60, "tau": 0.1 * np.arange(6.0), **STEPPING}
    given = {"brick.mass": mass, "contacts.friction": mu}
    (pair,) = contact.file_pairs(robot)
    for shared in (0, 8):
        pairs = [replace(pair, shared=shared)]
        run = robot.simulate(q, qd, contacts=pairs, model_parameters=given, **options)
        for k in range(2):
            other = robot.with_parameters({"brick.mass": mass[k]})
            law = contact.Rigid(friction=mu[k, 0])
            alone = other.simulate(q, qd, contacts=[replace(pairs[0], law=law)], **options)
            np.testing.assert_allclose(run.q[k], alone.q, atol=1e-11)
            np.testing.assert_allclose(run.touching.forces[k], alone.touching.forces, atol=1e-6)


def test_the_way_of_a_sliding_box_by_friction_and_mass(brick: Steps) -> None:
    """The distance v^2 / (2 mu g) has the derivative -v^2 / (2 mu^2 g) by mu, and 0 by mass."""
    robot, mu = brick.robot, np.array([[0.3], [0.5], [0.8]])
    q, qd = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.025]), np.array([0.0, 0, 0, 1.0, 0, 0])
    options = {"dt": DT, "steps": 250, "every": 250, "contacts": "file", **STEPPING}
    options["model_parameters"] = {"contacts.friction": mu, "brick.mass": 1.0}
    by_q = np.zeros((2, 6))
    by_q[-1, 3] = 1.0
    found = robot.rollout_pullback(q, qd, covectors=(by_q, None), **options).model_parameters
    assert found["contacts.friction"].shape == (3, 1)
    np.testing.assert_allclose(found["contacts.friction"], -1.0 / (2 * 9.81 * mu**2), rtol=1e-2)
    np.testing.assert_allclose(found["brick.mass"], 0.0, atol=1e-4)


def test_refused_parameters(brick: Steps) -> None:
    robot = brick.robot
    state = (robot.neutral(), np.zeros(6))
    run = {"dt": DT, "steps": 1, "contacts": "file"} | STEPPING
    for code, given in (
        ("E-MOTION-204", [1.0]),
        ("E-MOTION-206", {"contacts.stiffness": [1.0]}),
        ("E-MOTION-201", {"contacts.friction": [1.0, 2.0]}),
        ("E-MOTION-202", {"contacts.friction": [-1.0]}),
        ("E-MOTION-208", {"contacts.friction": np.ones((2, 1)), "brick.mass": np.ones(3)}),
        ("E-MODEL-038", {"brick.weight": 1.0}),
    ):
        with raises(code):
            robot.rollout(*state, model_parameters=given, **run)
    with raises("E-MOTION-207"):
        robot.rollout(*state, dt=DT, steps=1, model_parameters={"contacts.friction": [1.0]})
    field = contact.HeightField(None, np.zeros((3, 3)), (1.0, 1.0))
    pair = contact.Pair(contact.Sphere("brick", 0.1), field, contact.Rigid())
    (joint,) = robot.model.source.joints
    with raises("E-MOTION-209"):
        moved = {f"{joint.name}.placement": np.eye(4)}
        robot.rollout(*state, model_parameters=moved, **run | {"contacts": [pair]})
    with raises("E-MOTION-205"):
        robot.rollout(
            *state, model_parameters={"contacts.friction": [1.0]}, **run | {"contacts": [pair]}
        )
