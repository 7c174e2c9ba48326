"""Measure the accuracy of identification for simulated robots with known parameters."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import chasles
from benchmarks.robots import CASES, chasles_robot
from chasles.identification import Identified
from chasles.identification.unknowns import pseudo_inertia

NOISE = 0.01
"""Standard deviation of torque noise, relative to the rms torque."""

SPOILED = 1.3
"""Factor for all masses of the robot that is passed to `identify`."""

DAMPING, FRICTION, OFFSET = 0.05, 0.1, 0.02
"""True damping, friction and offset torques of every motor, relative to the rms torque."""

FASTEST = 5.0
"""Maximum velocity of a joint of a closed loop for unit velocities of the motors."""

States = list[np.ndarray]


def panda() -> chasles.Robot:
    return chasles_robot(CASES["panda"])


def ur5() -> chasles.Robot:
    return chasles_robot(CASES["ur5"])


def talos_leg() -> chasles.Robot:
    return chasles_robot(CASES["talos"]).subtree("base_link").subtree("leg_left_1_link")


def solo12() -> chasles.Robot:
    return chasles_robot(CASES["solo12"])


ROBOTS: dict[str, tuple[str, Callable[[], chasles.Robot]]] = {
    "panda": ("Panda", panda),
    "ur5": ("UR5", ur5),
    "talos-leg": ("Talos leg", talos_leg),
    "solo12": ("Solo12, floating", solo12),
    "four-bar": ("four-bar", chasles.robots.four_bar),
    "stewart": ("Stewart platform", chasles.robots.stewart),
}
"""Title of each robot, and function that creates it."""


def states(robot: chasles.Robot, seed: int, count: int) -> States:
    """Return q, qd and qdd of a smooth motion or, for closed loops, of random assembled states."""
    rng = np.random.default_rng(seed)
    if len(robot.independent) < robot.nv:
        return _closed(robot, rng, count)
    t, k = np.linspace(0.0, 6.0, count), 2.0 * np.pi / 6.0 * np.arange(1, 6)
    a, b = rng.normal(size=(2, robot.nv, 5)) / np.arange(1, 6)
    s, c = np.sin(np.outer(t, k)), np.cos(np.outer(t, k))
    steps = s @ a.T + c @ b.T
    q = steps if robot.nq == robot.nv else robot.integrate(robot.neutral(), steps)
    return [q, (c * k) @ a.T - (s * k) @ b.T, -((s * k**2) @ a.T + (c * k**2) @ b.T)]


def _closed(robot: chasles.Robot, rng: np.random.Generator, count: int) -> States:
    """Return random states near the first assembled configuration."""
    free = len(robot.independent)
    neutral = robot.neutral()
    home = _assembled(robot, robot.assemble(neutral[:free] + 0.5) if free == 1 else neutral)
    places: list[np.ndarray] = []
    while len(places) < count // 10:
        step = 0.6 if free == 1 else 0.2
        q = _assembled(
            robot, robot.integrate(home, robot.complete(home, step * rng.normal(size=free)))
        )
        if np.abs(robot.loop_residual(q)).max() < 1e-12 and _regular(robot, q):
            places.append(q)
    q = np.repeat(np.array(places), 10, axis=0)
    yd, ydd = rng.normal(size=(2, len(q), free))
    return [q, *robot.complete(q, 2.0 * yd, 10.0 * ydd)]


def _regular(robot: chasles.Robot, q: np.ndarray) -> bool:
    """Return True if no joint moves much faster than the motors, as it would near a singularity."""
    return bool(np.abs(robot.complete(q, np.eye(len(robot.independent)))).max() < FASTEST)


def _assembled(robot: chasles.Robot, q: np.ndarray) -> np.ndarray:
    """Close the loops from a guess by Gauss-Newton steps."""
    for _ in range(20):
        q = robot.integrate(q, -np.linalg.pinv(robot.loop_matrix(q)) @ robot.loop_residual(q))
    return q


@dataclass(frozen=True)
class Machine:
    """Robot with true damping, friction and offset (nv,), which its file does not contain."""

    robot: chasles.Robot
    damping: np.ndarray
    friction: np.ndarray
    offset: np.ndarray

    @classmethod
    def from_robot(cls, robot: chasles.Robot, at: States) -> "Machine":
        """Choose the joint terms of motors in proportion to the rms torques and velocities."""
        tau = _torques(robot, at)
        size, speed = np.sqrt(np.mean(tau**2, axis=0)), np.sqrt(np.mean(at[1] ** 2, axis=0))
        motors = np.array([_single(robot, k) for k in range(robot.nv)]) * (size > 0.0)
        damping = motors * DAMPING * size / speed
        return cls(robot, damping, motors * FRICTION * size, motors * OFFSET * size)

    def torques(self, at: States) -> np.ndarray:
        """Return the torques without noise."""
        _, qd, _ = at
        more = self.damping * qd + self.friction * np.sign(qd) + self.offset
        return np.asarray(_torques(self.robot, at) + more)

    def truth(self, found: Identified) -> np.ndarray:
        """Return the true base parameters."""
        rest = [
            getattr(self, kind)[self.robot.velocity_slice(joint).start]
            for kind, joint in found.model.unknowns
        ]
        whole = np.concatenate([self.robot.inertial_parameters(), rest])
        return np.asarray(found.combination @ whole)


def _torques(robot: chasles.Robot, at: States) -> np.ndarray:
    """Return the joint torques or, for closed loops, motor torques at the independent joints."""
    more = {} if len(robot.independent) == robot.nv else {"actuated": robot.independent}
    return np.asarray(robot.inverse_dynamics(*at, **more))


def _single(robot: chasles.Robot, k: int) -> bool:
    """Return True if coordinate k belongs to a joint with one degree of freedom."""
    at = [robot.velocity_slice(name) for name in robot.joints]
    return any(place.start == k and place.stop == k + 1 for place in at)


def spoiled(robot: chasles.Robot) -> chasles.Robot:
    """Return the robot with wrong masses."""
    masses = {link.name: link.inertia.m for link in robot.model.source.links if link.inertia.m}
    return robot.with_parameters({f"{name}.mass": SPOILED * m for name, m in masses.items()})


@dataclass(frozen=True)
class Accuracy:
    """Results for one robot.

    Attributes
    ----------
    base : int
        Number of base parameters.
    condition : float
        Condition number of the regression.
    inside : float
        Fraction of base parameters within three standard deviations, over all draws of the noise.
    rms : float
        Root mean square of (value - truth) / deviation, ideally 1.
    error : float
        Largest rms error of predicted torques on a new noisy motion, divided by the noise.
    possible : bool
        True if all pseudo-inertias are positive definite, also for bad data.
    terms : float
        Largest error of a motor's damping, friction or offset torque, relative to its rms torque.
    diagnosed : tuple of str
        Cases of bad data for which a note is issued.
    """

    base: int
    condition: float
    inside: float
    rms: float
    error: float
    possible: bool
    terms: float
    diagnosed: tuple[str, ...]


def measure(name: str, count: int, draws: int) -> Accuracy:
    """Identify a robot from several draws of the noise, and from bad data."""
    robot = ROBOTS[name][1]()
    at, new = states(robot, 0, count), states(robot, 1, count)
    machine = Machine.from_robot(robot, at)
    exact, target = machine.torques(at), machine.torques(new)
    noise = NOISE * np.sqrt(np.mean(exact**2, axis=0))
    given, away, errors, possible, terms = spoiled(robot), [], [], [], []
    for draw in range(draws):
        rng = np.random.default_rng(100 + draw)
        found = _identified(given, at, exact + noise * rng.normal(size=exact.shape))
        away.append((found.base - machine.truth(found)) / found.deviations)
        noisy = target + noise * rng.normal(size=target.shape)
        errors.append(np.max(found.validate(*new, noisy) / found.noise))
        possible.append(is_possible(found))
        terms.append(_term_error(found, machine, at, exact))
    bad = {case: _bad(given, at, exact, noise, case) for case in BAD}
    whole = np.concatenate(away)
    return Accuracy(
        base=len(away[0]),
        condition=found.condition,
        inside=float(np.mean(np.abs(whole) < 3.0)),
        rms=float(np.sqrt(np.mean(whole**2))),
        error=float(np.max(errors)),
        possible=all([*possible, *(is_possible(each) for each in bad.values())]),
        terms=float(np.max(terms)),
        diagnosed=tuple(case for case, each in bad.items() if each.notes),
    )


def _identified(robot: chasles.Robot, at: States, tau: np.ndarray) -> Identified:
    q, qd, qdd = at
    include = ["inertia", *_motor_terms(robot)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the notes contain the same text
        return chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau, include=include)


BAD = ("ten samples", "bad excitation", "wrong units")
"""Cases of bad data. Each must lead to physically consistent parameters and to a note."""


def _bad(
    robot: chasles.Robot, at: States, exact: np.ndarray, noise: np.ndarray, case: str
) -> Identified:
    tau = exact + noise * np.random.default_rng(7).normal(size=exact.shape)
    q, qd, qdd = at
    if case == "ten samples":
        return _identified(
            robot, [x[:: len(tau) // 10][:10] for x in at], tau[:: len(tau) // 10][:10]
        )
    if case == "wrong units":
        return _identified(robot, at, 1000.0 * tau)
    still: Any = [q[:1].repeat(200, axis=0), 0.0 * qd[:200], 0.0 * qdd[:200]]
    return _identified(robot, still, tau[:1] + noise * 0.1 * tau[:200])


def _motor_terms(robot: chasles.Robot) -> list[str]:
    """Return the names of damping, friction and offset of all joints with motors."""
    motors = [name for name in robot.independent if name in robot.joints]
    singles = [name for name in motors if _single(robot, robot.velocity_slice(name).start)]
    return [f"{name}.{term}" for name in singles for term in ("damping", "friction", "offset")]


def is_possible(found: Identified) -> bool:
    """Return True if every pseudo-inertia is positive definite."""
    for p in found.vector[: 10 * len(found.model.links)].reshape(-1, 10):
        P = pseudo_inertia(p)
        size = np.sqrt(np.maximum(np.diagonal(P), 1e-300))
        if not np.linalg.eigvalsh(P / np.outer(size, size))[0] > 0.0:
            return False
    return True


def _term_error(found: Identified, machine: Machine, at: States, exact: np.ndarray) -> float:
    """Return the largest error of a motor's damping, friction or offset torque (see `Accuracy`)."""
    speed, worst = np.sqrt(np.mean(at[1] ** 2, axis=0)), 0.0
    for kind, joint in found.model.unknowns:
        k = machine.robot.velocity_slice(joint).start
        wrong = abs(found.joint_terms[f"{joint}.{kind}"] - getattr(machine, kind)[k])
        size = np.sqrt(np.mean(exact[:, k] ** 2))
        worst = max(worst, wrong * (speed[k] if kind == "damping" else 1.0) / size)
    return float(worst)
