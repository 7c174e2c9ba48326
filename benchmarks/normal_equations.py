"""Time normal equations of identification, and compare with NumPy and Pinocchio's regressor."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.console import WrongAnswer
from benchmarks.robots import CASES, chasles_robot, pinocchio_model
from chasles.identification.equations import Equations
from chasles.identification.linear import LinearModel, base

PINOCCHIO_STATES = 2000
"""Number of states in a timed run of Pinocchio's loop."""

REPEATS = 5
"""Number of timed runs. The fastest run counts."""


@dataclass(frozen=True)
class Throughput:
    """States per second on one core, and largest relative difference of predicted torques."""

    ours: float
    theirs: float
    difference: float


def measure(name: str, states: int) -> Throughput:
    """Time both implementations for a fixed-base arm, and compare the predicted torques."""
    import pinocchio

    robot, model = chasles_robot(CASES[name], snap=False), pinocchio_model(CASES[name])
    rng = np.random.default_rng(0)
    q = robot.random(rng, size=states)
    qd, qdd = rng.normal(size=(2, states, robot.nv))
    tau = robot.inverse_dynamics(q, qd, qdd) + 0.1 * rng.normal(size=q.shape)
    data = model.createData()
    few = slice(0, PINOCCHIO_STATES)

    def theirs(part: slice) -> tuple[np.ndarray, np.ndarray]:
        N, right = np.zeros((10 * model.nv, 10 * model.nv)), np.zeros(10 * model.nv)
        for state in zip(q[part], qd[part], qdd[part], tau[part], strict=True):
            Y = pinocchio.computeJointTorqueRegressor(model, data, *state[:3])
            N += Y.T @ Y
            right += Y.T @ state[3]
        return N, right

    linear = LinearModel(robot, ())
    none = np.zeros((0, robot.nq)), np.zeros((0, robot.nv)), np.zeros((0, robot.nv))
    chosen = base(linear, rng, none)
    equations = Equations(linear, chosen)
    if [joint for joint in model.names if joint != "universe"] != list(robot.joints):
        raise WrongAnswer(f"{name}: the joint order differs from Pinocchio's")
    fast = _seconds(lambda: equations.grams((q, qd, qdd, tau))) / states
    slow = _seconds(lambda: theirs(few)) / PINOCCHIO_STATES
    ours = _ours(equations, (q[few], qd[few], qdd[few], tau[few]))
    N, right = theirs(few)
    x = np.linalg.lstsq(N, right, rcond=1e-10)[0]
    new = slice(0, 20)
    mine = robot.regressor(q[new], qd[new], qdd[new])[..., chosen.columns] @ ours
    rows = zip(q[new], qd[new], qdd[new], strict=True)
    other = np.array([pinocchio.computeJointTorqueRegressor(model, data, *row) @ x for row in rows])
    difference = float(np.abs(mine - other).max() / np.abs(other).max())
    if difference > 1e-6:
        raise WrongAnswer(f"{name}: predicted torques differ by {difference:.1e}")
    return Throughput(1.0 / fast, 1.0 / slow, difference)


def _ours(equations: Equations, sample: Any) -> np.ndarray:
    """Return the least-squares solution for the base parameters, from the Gram matrices."""
    sums = equations.grams(sample).sums.sum(axis=0)
    start = equations.base.combination @ equations.model.nominal
    return np.asarray(start + np.linalg.solve(sums[:-1, :-1], sums[:-1, -1]))


def _seconds(run: Any) -> float:
    """Return the minimum processor time (s) of a run on one thread."""
    run()
    taken = []
    for _ in range(REPEATS):
        start = time.thread_time()
        run()
        taken.append(time.thread_time() - start)
    return min(taken)
