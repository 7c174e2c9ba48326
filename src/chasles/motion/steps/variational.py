"""The symplectic integrator: the midpoint rule in positions and momenta."""

import numpy as np

from chasles.errors import NotFiniteError
from chasles.motion.steps.local import Local
from chasles.motion.steps.system import Advanced

ITERATIONS = 100
"""At most; five to ten are usual, each better by a factor of about h times the fastest rate."""

SOLVED = 1e-11
"""The iteration ends at rounding: where a change below this, beside the step, no longer falls."""


def variational(local: Local, h: float, y: np.ndarray) -> Advanced:
    """A step that makes the action h L(q_m, d/h) stationary, q_m = integrate(q, d/2).

    Momenta p = M qd at both ends are the derivatives of that action by the ends (Marsden and West
    2001, section 1.5; on groups, Bou-Rabee and Marsden 2009): with the slopes D(a, b) of
    difference(a, b) by b, which are 1 where steps add, and the force f at the middle,

        p0 = D(q1, q0)' (p_m - h/2 D(q1, q_m)^-T f),  p1 = D(q0, q1)' (p_m + h/2 D(q0, q_m)^-T f).

    The first gives the step d; the second order of the rule is that of qd = M^-1 p too. Energy
    stays within a band, and momenta that the forces leave alone stay as they are.
    """
    robot, q, n = local.robot, local.q, local.freedoms(y)
    p = _applied(robot.mass_matrix(q), local.velocity(y))
    d, last = h * local.velocity(y), np.inf
    for _ in range(ITERATIONS):
        middle, end = robot.integrate(q, 0.5 * d), robot.integrate(q, d)
        f = _force(local, h, middle, d / h)
        back, half = _slopes(local, end, q), _slopes(local, end, middle)
        p_middle = _solved(_turned(back), p) + 0.5 * h * _solved(_turned(half), f)
        better = h * _solved(robot.mass_matrix(middle), p_middle)
        size = float(np.max(np.abs(better - d), initial=0.0))
        scale = float(np.max(np.abs(better), initial=0.0))
        d = better
        if size == 0.0 or (size <= SOLVED * scale and size > 0.5 * last):
            break
        last = size
    else:
        problem = f"the step after t = {local.t:.6g} s is not found"
        raise NotFiniteError("E-MOTION-069", problem, "make dt smaller", part="simulate")
    middle, end = robot.integrate(q, 0.5 * d), robot.integrate(q, d)
    f = _force(local, h, middle, d / h)
    forth, half = _slopes(local, q, end), _slopes(local, q, middle)
    p_middle = _applied(robot.mass_matrix(middle), d / h)
    p = _applied(_turned(forth), p_middle + 0.5 * h * _solved(_turned(half), f))
    return Advanced(np.concatenate([d, _solved(robot.mass_matrix(end), p), y[..., 2 * n :]], -1))


def _force(local: Local, h: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """dT/dq, gravity and all that is applied, which inverse dynamics finds from accelerations."""
    robot = local.robot
    applied = robot.inverse_dynamics(q, qd, local.accelerate(local.t + 0.5 * h, q, qd))
    slope: np.ndarray = robot.derivatives("kinetic_energy", q, qd, wrt="q")
    return slope - robot.gravity_forces(q) + applied


def _slopes(local: Local, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    D: np.ndarray = local.robot.derivatives("difference", a, b, wrt="q1")
    return D


def _turned(matrix: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrix, -1, -2)


def _applied(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    product: np.ndarray = (matrix @ vector[..., None])[..., 0]
    return product


def _solved(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.linalg.solve(matrix, vector[..., None])[..., 0]
