"""`chasles.excite`: motions from which parameters can be identified accurately.

A motion is a Fourier series or a spline that is at rest at both ends. Many random motions are
evaluated at once. The best ones are improved together by gradient steps, with derivatives of the
compiled regressor. The result is the best motion that satisfies all limits on a finer grid (Swevers
et al. 1997).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from chasles.errors import InputError
from chasles.functions.doors import check_robot, numbers
from chasles.identification.bounds import SHARES, Bounds, States, checked_workspace
from chasles.identification.curves import CURVES, FourierSeries, Shape, Spline
from chasles.identification.linear import Base, LinearModel, base, checked_terms
from chasles.model.given import a_name
from chasles.names import one_of
from chasles.robot import Robot
from chasles.trajectory.moves import Move

Goal = Literal["condition", "information"]
"""Objectives: the condition number, or the determinant of the information matrix."""

PER_HARMONIC = 20
"""Number of samples in the shortest period of the Fourier series."""

FINE = 10
"""Ratio of the search's time step to the time step of the final limit check."""

BATCH = 64
"""Number of motions that are evaluated at once."""

POWERS = (6.0, 40.0)
"""Exponents of power sums of the eigenvalues, at the start and at the end of the search.

The search approximates the largest and smallest eigenvalues by these sums.
"""

MARGIN = 0.02
"""Fraction by which the search tightens every limit, because limits may be exceeded between
samples."""

TURNING = 0.05
"""Width over which the sign of a velocity is smoothed when gradients are computed.

The width is relative to the velocity limit.
"""

INSIDE = 1.0 - 1e-3
"""Largest fraction of a limit that a motion may reach on the fine grid."""

WEIGHTS = (3.0, 3000.0)
"""Initial and final penalty weights for violated limits."""

RATE, RATE_END, FIRST, SECOND = 0.05, 0.005, 0.9, 0.99
"""Parameters of the Adam method (Kingma and Ba 2015).

The step size decreases from `RATE` to `RATE_END`. `FIRST` and `SECOND` are the decay rates of the
mean gradient and the mean squared gradient.
"""


@dataclass(frozen=True)
class Excitation:
    """A motion for identifying a robot's parameters.

    Attributes
    ----------
    move : Move
        The motion, at rest at both ends: `move(t)`, `move.save("motion.csv")`.
    condition : float
        Condition number of the base regressor along the motion, with columns scaled to unit length.
    margins : dict
        Smallest margin to each limit, as a fraction of the limit (for positions, of half the
        range); for distances and workspaces, in m.
    random : float
        Smallest condition number of the initial random motions. These motions satisfy the position,
        velocity and acceleration limits, but may violate other limits.
    """

    move: Move
    condition: float
    margins: dict[str, float]
    random: float

    def __repr__(self) -> str:
        return f"<Excitation of {self.move.duration:g} s: condition number {self.condition:.4g}>"


def excite(
    robot: Robot,
    *,
    duration: float = 10.0,
    harmonics: int = 5,
    shape: Shape = "fourier",
    goal: Goal = "condition",
    include: Sequence[str] = ("inertia", "damping", "friction"),
    velocity: Any = None,
    acceleration: Any = None,
    effort: Any = None,
    clearance: float | None = 0.0,
    obstacles: Any = None,
    workspace: Mapping[str, Any] | None = None,
    starts: int = 1000,
    improved: int = 16,
    steps: int = 400,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Excitation:
    """Find a motion from which the robot's parameters can be identified accurately.

    The motion is a Fourier series or a spline that is at rest at both ends. By default, the motion
    minimizes the condition number of the base parameters' regressor (with columns scaled to unit
    length) within the limits.

    Parameters
    ----------
    robot : Robot
        A robot without loops whose joints have one coordinate each. The robot's parameters are used
        only for torque limits. Positions stay within `robot.limits`.
    duration : float
        Duration (s).
    harmonics : int
        Number of harmonics of the series. A spline has twice as many points.
    shape : {"fourier", "spline"}
        Fourier series, which ends at its initial position, or quintic spline.
    goal : {"condition", "information"}
        Minimize the condition number, or maximize the determinant of the base parameters'
        information matrix, assuming equal torque noise at all joints. Maximizing the determinant
        favors large motions.
    include : sequence of str
        Terms to identify, as in `chasles.identify`.
    velocity, acceleration, effort : float or array_like, (nv,), optional
        Maximum absolute joint velocities (rad/s or m/s), accelerations (rad/s² or m/s²) and torques
        (N m or N). By default, velocities and torques are limited by `robot.limits`, and
        accelerations are not limited.
    clearance : float, optional
        Minimum distance (m) between links, and between links and obstacles; None for no
        limit.
    obstacles : dict, optional
        Obstacles, as in `robot.distance`.
    workspace : dict, optional
        {frame: (lower, upper)}: corners of a box in the world in which the frame's origin must
        stay.
    starts, improved, steps : int
        Numbers of random motions, motions to improve, and gradient steps, respectively.
    seed : int
        Seed of the random motions.
    progress : callable, optional
        Function that is called after each gradient step, with the number 1.

    Returns
    -------
    Excitation
        Motion, condition number of the base regressor, and margins to the limits.

    Raises
    ------
    InputError
        If the robot has loops or joints with quaternions, if an option is out of range or unknown,
        if a joint has no velocity limit, or if no motion satisfies the limits.
    ArgumentError
        If `robot` is not a Robot, or if `shape` or `goal` is not a string.

    Notes
    -----
    The final limit check uses time steps ten times smaller than those of the search.
    During the search, links are replaced by enclosing capsules (`robot.enclosing_shapes`); the
    final check uses the robot's collision shapes if the capsules are too close.

    Examples
    --------
    >>> found = chasles.excite(chasles.robots.planar(2), velocity=2.0, effort=50.0, steps=50)
    >>> found.condition < found.random
    True
    """
    check_robot("excite", robot)
    if robot.nq != robot.nv or len(robot.independent) < robot.nv:
        problem = "robots with loops, a floating base or spherical joints are not supported"
        remedy = "use an open chain, or pass measured motions to chasles.identify"
        raise InputError("E-IDENT-021", problem, remedy, part="excite")
    for name, count in (("harmonics", harmonics), ("starts", starts), ("improved", improved)):
        least = 2 if name == "harmonics" else 1
        if count < least:
            problem = f"`{name}` must be at least {least}, not {count}"
            raise InputError("E-IDENT-011", problem, f"increase `{name}`", part="excite")
    for name, value, known in (("shape", shape, CURVES), ("goal", goal, get_args(Goal))):
        if a_name(name, value, "excite") not in known:
            problem = f"unknown {name} {value!r:.60}"
            raise InputError("E-IDENT-045", problem, one_of(value, known), part="excite")
    bounds = _bounds(robot, velocity, acceleration, effort, clearance, obstacles, workspace)
    model, rng = LinearModel(robot, checked_terms(robot, include)), np.random.default_rng(seed)
    chosen = base(model, rng, _none(robot))
    search = Search(model, chosen, bounds, harmonics, float(duration), shape, goal)
    random = search.random(rng, starts)
    conditions, values = search.conditions(random)
    start = random[np.argsort(values)[:improved]]
    found = search.improve(start, steps, progress)
    return search.best(found, float(np.min(conditions)))


def _none(robot: Robot) -> States:
    """Return empty arrays for the measured states, which `base` ignores for an open chain."""
    return np.zeros((0, robot.nq)), np.zeros((0, robot.nv)), np.zeros((0, robot.nv))


def _bounds(
    robot: Robot, velocity: Any, acceleration: Any, effort: Any, clearance: Any, *rest: Any
) -> Bounds:
    """Return the motion limits after checking their values."""
    limits, found = robot.limits, {}
    standard = {
        "velocity": limits.velocity,
        "acceleration": np.full(robot.nv, np.inf),
        "effort": limits.effort,
    }
    given = {"velocity": velocity, "acceleration": acceleration, "effort": effort}
    for name, value in given.items():
        whole = standard[name] if value is None else np.broadcast_to(value, (robot.nv,))
        found[name] = numbers(f"excite: {name}", whole, robot.nv).astype(float)
        if np.any(~(found[name] > 0.0)):
            problem = f"`{name}` must be positive"
            raise InputError(
                "E-IDENT-012", problem, f"pass positive values for `{name}`", part="excite"
            )
    if not np.all(np.isfinite(found["velocity"])):
        problem = "some joints have no velocity limit"
        raise InputError("E-IDENT-013", problem, "pass `velocity` limits", part="excite")
    obstacles, workspace = rest
    if clearance is not None and not obstacles and not robot.collision_pairs():
        clearance = None
    boxes = checked_workspace(robot, workspace)
    return Bounds(
        robot, limits.lower, limits.upper, **found,
        clearance=clearance, obstacles=obstacles, workspace=boxes,
    )  # fmt: skip


@dataclass(frozen=True)
class Search:
    """Search for the best excitation motion.

    S motions of n joints are represented by coefficients (S, P, n) of P basis functions.
    """

    model: LinearModel
    base: Base
    bounds: Bounds
    harmonics: int
    duration: float
    shape: Shape = "fourier"
    goal: Goal = "condition"

    @cached_property
    def curve(self) -> FourierSeries | Spline:
        """Family of curves (Fourier series or splines) over which the motion is optimized."""
        return CURVES[self.shape](self.harmonics, self.duration)

    @cached_property
    def basis(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Basis functions of the curves, and their first two derivatives, at the sample times."""
        count = PER_HARMONIC * self.harmonics
        return self.curve.at(np.arange(count) * (self.duration / count))

    def states(self, theta: np.ndarray) -> States:
        """Return q, qd and qdd (S, N, n) of S motions at N sample times."""
        q, qd, qdd = (part @ theta for part in self.basis)
        return q, qd, qdd

    def random(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return random motions within the position, velocity and acceleration limits."""
        n, bounds = self.model.robot.nv, self.bounds
        theta = rng.normal(size=(count, self.basis[0].shape[1], n))
        theta[:, -1] = 0.0
        q, qd, qdd = self.states(theta)
        low, high = q.min(axis=1), q.max(axis=1)
        shares = [
            (high - low) / (bounds.upper - bounds.lower),
            np.abs(qd).max(axis=1) / bounds.velocity,
            np.abs(qdd).max(axis=1) / bounds.acceleration,
        ]
        size = np.maximum.reduce(shares)
        scale = rng.uniform(0.3, 1.0 - MARGIN, size=(count, n)) / size
        theta *= scale[:, None]
        lower, upper = bounds.lower - low * scale, bounds.upper - high * scale
        first = np.where(np.isfinite(upper), upper - 2.0 * np.pi, -np.pi)
        first = np.where(np.isfinite(lower), lower, first)
        last = np.where(np.isfinite(upper), upper, first + 2.0 * np.pi)
        theta[:, -1] = rng.uniform(first, last)
        return theta

    def _columns(self, at: States) -> np.ndarray:
        """Return the base regressors (S, N nv, b) of S motions, each with N samples."""
        S, (q, qd, qdd) = len(at[0]), (x.reshape(-1, x.shape[-1]) for x in at)
        A = self.model.matrix(q, qd, qdd)[..., self.base.columns]
        return A.reshape(S, -1, len(self.base))

    def conditions(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays (S,): the condition number and the objective of each motion."""
        found, goals = [], []
        for first in range(0, len(theta), BATCH):
            W = self._columns(self.states(theta[first : first + BATCH]))
            length = np.maximum(np.linalg.norm(W, axis=1, keepdims=True), 1e-300)
            W = W / length
            values = np.maximum(np.linalg.eigvalsh(np.swapaxes(W, 1, 2) @ W), 1e-300)
            found.append(np.sqrt(values[:, -1] / values[:, 0]))
            logs = np.log(values).sum(axis=1) + 2.0 * np.log(length[:, 0]).sum(axis=1)
            goals.append(found[-1] if self.goal == "condition" else -logs)
        return np.concatenate(found), np.concatenate(goals)

    def objective(
        self, theta: np.ndarray, weight: float, power: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the smoothed objective (S,) of S motions, with penalties, and its gradient."""
        at = self.states(theta)
        condition = self.goal == "condition"
        value, bars = self._excitation(at, power) if condition else self._information(at)
        penalty, more = self.bounds.penalty(at, MARGIN)
        gradient = sum(
            part.T @ (bar + weight * other)
            for part, bar, other in zip(self.basis, bars, more, strict=True)
        )
        return value + weight * penalty, np.asarray(gradient)

    def _excitation(self, at: States, p: float) -> tuple[np.ndarray, States]:
        """Approximate the log condition number of the base regressor; also return its gradient.

        The value is 1/(2p) log (sum l^p sum l^-p), where l are the eigenvalues of W'W, and W is the
        base regressor with columns of unit length. With the eigenvectors V, the gradient with
        respect to W is W V diag(dl) V', propagated through the scaling of the columns of W. The
        compiled pullback of the regressor propagates this gradient to q, qd and qdd.
        """
        W = self._columns(at)
        length = np.maximum(np.linalg.norm(W, axis=1, keepdims=True), 1e-300)
        unit = W / length
        values, V = np.linalg.eigh(np.swapaxes(unit, 1, 2) @ unit)
        values = np.maximum(values, 1e-12)
        top, low = values / values[:, -1:], values[:, :1] / values
        up, down = np.sum(top**p, axis=1), np.sum(low**p, axis=1)
        value = 0.5 * (np.log(values[:, -1] / values[:, 0]) + np.log(up * down) / p)
        share = (top**p / up[:, None] - low**p / down[:, None]) / values
        P = unit @ (V * share[:, None]) @ np.swapaxes(V, 1, 2)
        P = (P - unit * np.sum(unit * P, axis=1, keepdims=True)) / length
        return value, self._pulled(at, P)

    def _information(self, at: States) -> tuple[np.ndarray, States]:
        """Return -1/(2b) log det W'W for the base regressor W with b columns, and its gradient."""
        W = self._columns(at)
        length = np.maximum(np.linalg.norm(W, axis=1, keepdims=True), 1e-300)
        unit, b = W / length, W.shape[-1]
        values, V = np.linalg.eigh(np.swapaxes(unit, 1, 2) @ unit)
        values = np.maximum(values, 1e-12)
        value = -0.5 / b * np.log(values).sum(axis=1) - np.log(length[:, 0]).mean(axis=1)
        P = -(unit @ (V / values[:, None]) @ np.swapaxes(V, 1, 2)) / (b * length)
        return value, self._pulled(at, P)

    def _pulled(self, at: States, P: np.ndarray) -> States:
        """Convert the gradient P w.r.t. the base regressor to gradients w.r.t. q, qd and qdd."""
        S, N, n = at[0].shape
        count = 10 * len(self.model.links)
        full = np.zeros((S * N, n, len(self.model.names)))
        full[..., self.base.columns] = P.reshape(S * N, n, -1)
        flat = [np.ascontiguousarray(x.reshape(-1, n)) for x in at]
        pull = self.model.robot.mechanism.function("regressor").pullback(("q", "qd", "qdd"))
        bars = list(pull(*flat, np.ascontiguousarray(full[..., :count])))
        for k, (kind, joint) in enumerate(self.model.unknowns):
            row = self.model.place(joint)[0]
            width = TURNING * self.bounds.velocity[row]
            for bar, slope in zip(bars, self.model.slopes(kind, joint, flat, width), strict=True):
                bar[:, row] += full[:, row, count + k] * slope
        q, qd, qdd = (bar.reshape(S, N, n) for bar in bars)
        return q, qd, qdd

    def improve(
        self, theta: np.ndarray, steps: int, told: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Return the motions after gradient steps (Adam) with increasing penalty weights.

        `told` is called with 1 after each step.
        """
        theta, mean, square = theta.copy(), np.zeros_like(theta), np.zeros_like(theta)
        scale = np.maximum(np.abs(theta).max(axis=1, keepdims=True), 1e-3)
        for k in range(steps):
            part = k / max(steps - 1, 1)
            weight = WEIGHTS[0] * (WEIGHTS[1] / WEIGHTS[0]) ** part
            power = POWERS[0] * (POWERS[1] / POWERS[0]) ** part
            _, gradient = self.objective(theta, weight, power)
            gradient = gradient * scale
            mean = FIRST * mean + (1.0 - FIRST) * gradient
            square = SECOND * square + (1.0 - SECOND) * gradient**2
            ahead = mean / (1.0 - FIRST ** (k + 1))
            spread = np.sqrt(square / (1.0 - SECOND ** (k + 1))) + 1e-12
            rate = RATE * (RATE_END / RATE) ** part
            theta = theta - rate * scale * ahead / spread
            if told is not None:
                told(1)
        return theta

    def within(self, theta: np.ndarray, fine: Sequence[np.ndarray]) -> np.ndarray:
        """Scale and shift motions to satisfy the position, velocity and acceleration limits."""
        bounds, motion = self.bounds, theta.copy()
        motion[:, -1] = 0.0
        q, qd, qdd = (part @ motion for part in fine)
        low, high = q.min(axis=1), q.max(axis=1)
        shares = [
            (high - low) / (bounds.upper - bounds.lower),
            np.abs(qd).max(axis=1) / bounds.velocity,
            np.abs(qdd).max(axis=1) / bounds.acceleration,
        ]
        scale = INSIDE / np.maximum(np.maximum.reduce(shares), INSIDE)
        motion *= scale[:, None]
        motion[:, -1] = np.clip(
            theta[:, -1], bounds.lower - low * scale, bounds.upper - high * scale
        )
        return motion

    def best(self, theta: np.ndarray, random: float) -> Excitation:
        """Return the best motion that satisfies the limits at all times of a finer grid."""
        count = FINE * PER_HARMONIC * self.harmonics
        fine = self.curve.at(np.arange(count + 1) * (self.duration / count))
        broken: dict[str, float] = {}
        theta = self.within(theta, fine)
        conditions, values = self.conditions(theta)
        for k in np.argsort(values):
            q, qd, qdd = (part @ theta[k] for part in fine)
            margins = self.bounds.margins((q, qd, qdd))
            broken = {name: left for name, left in margins.items() if left < 0.0}
            if not broken:
                move = self.curve.move(theta[k], self.model.robot)
                return Excitation(move, float(conditions[k]), margins, random)
        violated = ", ".join(
            f"{name} by {-100.0 * left:.2g} %" if name in SHARES else f"{name} by {-left:.2g} m"
            for name, left in broken.items()
        )
        problem = (
            f"no motion was found within the limits; violations by the best motion: {violated}"
        )
        remedy = "use a longer duration, wider limits, or more steps"
        raise InputError("E-IDENT-014", problem, remedy, part="excite")
