"""Time rollouts of an arm and of a quadruped on soft ground, and compare them with MuJoCo."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import mujoco
import numpy as np
from mujoco import rollout

import chasles
from benchmarks import mujoco_peer
from benchmarks.console import WrongAnswer
from benchmarks.robots import CASES, chasles_robot
from benchmarks.states import Array
from benchmarks.timing import Rounds, interleaved
from chasles import contact
from chasles.rollouts import PDControl

TOLERANCE = 1e-8
"""Tolerance for positions after a hundred steps without contact."""

SHARE = 0.03
"""Tolerance for relative differences of the mean depth of the feet at rest, and of the force."""

FEET = tuple(f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right"))
RADIUS, MU, KP, KD = 0.02, 0.8, 150.0, 4.0
GROUND = contact.SoftContact(
    contact.SoftSurface(37_400.0, 100.0), contact.SoftFriction(MU, 37_400.0, 100.0)
)
"""Soft ground in which the feet sink as deep as in MuJoCo by default, 1.22 mm on average."""

STEP_HERE = 2e-3
STEPS_THERE = {
    "Euler": (mujoco.mjtIntegrator.mjINT_EULER, 5e-3),
    "implicitfast": (mujoco.mjtIntegrator.mjINT_IMPLICITFAST, 6e-3),
}
"""Longest step sizes (s) with which the quadruped comes to rest.

For chasles, the step size is a multiple of 0.5 ms for which `Trajectory.unstable` reports no robot.
For MuJoCo, step sizes are multiples of 1 ms, by integrator.
"""


@dataclass(frozen=True)
class Motion:
    """Processor times (s) of chasles (`here`) and MuJoCo (`there`) per simulated second and robot.

    `steps` is the number of steps of one robot per second of processor time.
    """

    title: str
    name: str
    batch: int
    here: float
    there: float
    steps: float

    @property
    def ratio(self) -> float:
        """Speed relative to MuJoCo."""
        return self.there / self.here


def measure(
    batch: int, steps: int, rounds: Rounds, progress: Callable[[str], None] = lambda _: None
) -> list[Motion]:
    """Measure all motions. Raise WrongAnswer if the motions of the libraries differ."""
    found = []
    for title, name, count, length, every in (
        ("Panda, batch", "panda batch", batch, 100, 100),
        ("Panda, batch, all states stored", "panda batch kept", batch, 100, 1),
        ("Panda, one robot, all states stored", "panda one", 1, steps, 1),
    ):
        progress(title)
        found.append(_panda(title, name, count, length, every, rounds))
    for title, name, count in (
        ("quadruped on soft ground, batch", "quadruped batch", min(batch, 256)),
        ("quadruped on soft ground, one robot", "quadruped one", 1),
    ):
        progress(title)
        found.append(_quadruped(title, name, count, rounds))
    return found


def _panda(title: str, name: str, count: int, steps: int, every: int, rounds: Rounds) -> Motion:
    """Measure the Panda with semi-implicit Euler steps of 1 ms from random states.

    MuJoCo stores every state in an existing array. chasles stores states in a new array.
    """
    case, dt = CASES["panda"], 1e-3
    robot = chasles_robot(case, snap=False)
    model = mujoco_peer.model(case, robot)
    model.opt.timestep = dt
    rng = np.random.default_rng(0)
    q, qd = robot.random(rng, size=count), 0.1 * rng.normal(size=(count, robot.nv))
    start = np.hstack([np.zeros((count, 1)), q, qd])
    there = np.empty((count, steps, start.shape[1]))
    run_there = partial(
        rollout.rollout,
        model,
        mujoco.MjData(model),
        start,
        nstep=steps,
        state=there,
    )
    run_here = partial(robot.rollout, q, qd, dt=dt, steps=steps, every=every, threads=1)

    def check() -> None:
        run_there()
        last = min(steps, 100)
        here = robot.rollout(q, qd, dt=dt, steps=last, every=last, threads=1)
        wrong = np.abs(here.q[:, -1] - there[:, last - 1, 1 : 1 + robot.nq]).max()
        if not wrong < TOLERANCE:
            raise WrongAnswer(f"{title}: positions differ by {wrong:.2g}")

    check()
    here, peer = interleaved([run_here, run_there], rounds, repeats=1)
    check()
    whole = count * steps
    share = whole * dt
    return Motion(
        title, name, count, here.minimum / share, peer.minimum / share, whole / here.minimum
    )


def _quadruped(title: str, name: str, count: int, rounds: Rounds, duration: float = 1.5) -> Motion:
    """Measure the quadruped, dropped from 5 to 10 cm, with legs held by PD control."""
    robot = chasles.robots.quadruped()
    stance = robot.neutral()
    stance[7:] = np.tile([0.0, 0.8, -1.6], 4)
    low = min(robot.forward_kinematics(stance, frame=foot)[2, 3] for foot in FEET)
    q = np.tile(stance, (count, 1))
    q[:, 6] = RADIUS - low + np.linspace(0.05, 0.1, count)
    legs = np.r_[np.zeros(6), np.ones(12)]
    hold = PDControl(tuple(KP * legs), tuple(KD * legs), tuple(stance))
    pairs = [contact.Pair(contact.Sphere(f, RADIUS), contact.Plane(), GROUND) for f in FEET]
    steps = round(duration / STEP_HERE)
    still = np.zeros(robot.nv)
    run_here = partial(
        robot.rollout,
        q,
        still,
        hold,
        dt=STEP_HERE,
        steps=steps,
        every=steps,
        contacts=pairs,
        threads=1,
    )
    peers = [_Peer(robot, stance, q, duration, *row) for row in STEPS_THERE.values()]
    weight = robot.mass * 9.81

    def check() -> None:
        found = run_here(steps=4 * steps, every=4 * steps).touching
        assert found is not None
        rest = _standing(robot, stance, q[:1], 4.0 * duration)
        depth, force = -found.gaps[:, -1].mean(), found.forces[:, -1, :, 2].sum(axis=1)
        if not (abs(depth / rest - 1.0) < SHARE and np.abs(force / weight - 1.0).max() < SHARE):
            raise WrongAnswer(
                f"{title}: depth at rest {1e3 * depth:.3f} mm and force {force.mean():.2f} N, "
                f"but {1e3 * rest:.3f} mm in MuJoCo and weight {weight:.2f} N"
            )

    check()
    here, *there = interleaved([run_here, *(p.run for p in peers)], rounds, repeats=1)
    check()
    share = count * duration
    best = min(t.minimum for t in there)
    rate = count * steps / here.minimum
    return Motion(title, name, count, here.minimum / share, best / share, rate)


class _Peer:
    """Simulation of the quadruped with MuJoCo's rollout and one of its integrators."""

    def __init__(
        self,
        robot: chasles.Robot,
        stance: Array,
        q: Array,
        duration: float,
        integrator: mujoco.mjtIntegrator,
        dt: float,
    ) -> None:
        self.model = _on_feet(robot)
        self.model.opt.integrator, self.model.opt.timestep = integrator, dt
        self.data, self.steps = mujoco.MjData(self.model), round(duration / dt)
        place = np.concatenate([q[:, 4:7], q[:, :4], q[:, 7:]], axis=1)
        self.start = np.hstack([np.zeros((len(q), 1)), place, np.zeros((len(q), robot.nv))])
        self.control = np.tile(stance[7:], (len(q), self.steps, 1))
        self.state = np.empty((len(q), self.steps, self.start.shape[1]))

    def run(self) -> None:
        """Run all steps from all initial states."""
        rollout.rollout(
            self.model,
            self.data,
            self.start,
            self.control,
            nstep=self.steps,
            state=self.state,
        )


def _standing(robot: chasles.Robot, stance: Array, q: Array, duration: float) -> float:
    """Return the mean depth (m) of the feet at rest in MuJoCo; the integrators must agree."""
    depths = []
    for integrator, dt in STEPS_THERE.values():
        peer = _Peer(robot, stance, q, duration, integrator, dt)
        peer.data.qpos[:], peer.data.ctrl[:] = peer.start[0, 1 : 1 + robot.nq], stance[7:]
        for _ in range(peer.steps):
            mujoco.mj_step(peer.model, peer.data)
        if peer.data.ncon != len(FEET):
            raise WrongAnswer("the quadruped does not stand on four feet in MuJoCo")
        depths.append(-float(np.mean([c.dist for c in peer.data.contact])))
    if abs(depths[0] / depths[1] - 1.0) > SHARE:
        raise WrongAnswer(f"MuJoCo's integrators give different depths: {depths}")
    return depths[0]


def _on_feet(robot: chasles.Robot) -> mujoco.MjModel:
    """Return the quadruped as a MuJoCo model with spherical feet, a floor, and PD actuators."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "quadruped.xml"
        chasles.save(robot, path)
        spec = mujoco.MjSpec.from_file(str(path))
    for geom in spec.geoms:  # chasles simulates contact of the feet only
        geom.contype = geom.conaffinity = 0
    floor = spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1.0, 1.0, 1.0])
    floor.friction[0] = MU
    for foot in FEET:
        ball = spec.body(foot).add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[RADIUS, 0.0, 0.0])
        ball.friction[0], ball.mass = MU, 0.0
    for joint in robot.joints[1:]:
        motor = spec.add_actuator(name=joint, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.gaintype, motor.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        motor.gainprm[0], motor.biasprm[1], motor.biasprm[2] = KP, -KP, -KD
    return spec.compile()
