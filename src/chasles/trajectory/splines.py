"""Splines through points: vectors, configurations, rotations and poses."""

from math import factorial
from typing import Literal, get_args

import numpy as np
import scipy

from chasles.errors import InputError
from chasles.model.given import some_numbers
from chasles.robot import Robot
from chasles.trajectory.charts import Chart, chart, steps
from chasles.trajectory.given import all_finite, increasing, points
from chasles.trajectory.moves import Array, Move
from chasles.trajectory.polynomials import hermite
from chasles.trajectory.spaces import Space, poses, rotations

Ends = Literal["natural", "clamped", "periodic"]
"""End conditions: "natural" (zero accelerations), "clamped" (zero velocities), "periodic"."""

MOST_STEPS, SETTLED = 200, 1e-13
"""Limits of the iteration for the velocities at the points.

`MOST_STEPS` is the maximum number of steps. `SETTLED` is the tolerance at convergence, relative to
the largest velocity or to 1, whichever is larger.
"""

ORTHOGONAL = 1e-6
"""Tolerance for the entries of R'R - 1, where R is a given rotation matrix."""


def spline(
    times: Array,
    through: Array,
    *,
    ends: Ends = "natural",
    degree: int = 3,
    robot: Robot | None = None,
) -> Move:
    """Return a spline through points, with continuous accelerations.

    Parameters
    ----------
    times : array_like, shape (m,)
        Times (s) of the points, increasing from 0.
    through : array_like, shape (m, n), (m, 3, 3) or (m, 4, 4)
        Configurations (rad or m), rotations or poses. For rotations and poses,
        velocities are expressed in body axes: angular, then linear.
    ends : {"natural", "clamped", "periodic"}, optional
        "natural": zero accelerations at both ends (degree 5: zero derivatives of order 3 and 4;
        degree 7: of order 4 to 6). "clamped": zero velocities at both ends (degree 5: also zero
        accelerations; degree 7: also zero jerks). "periodic": the last point equals the first one.
    degree : {3, 5, 7}, optional
        Rotations, poses and joints with quaternions support only degree 3. With
        ends="clamped", degree 5 minimizes the integral of squared jerk, and degree 7 the integral
        of squared snap.
    robot : Robot, optional
        The robot that moves. Joints with quaternions follow the exponential map; loops stay closed.

    Returns
    -------
    Move
        `move(t)` returns positions, velocities and accelerations.

    Raises
    ------
    InputError
        If `ends` or `degree` is not one of the values above, if an array has the wrong shape or is
        not finite, if `times` does not increase from 0, if the ends of a periodic spline differ, or
        if a matrix is not a rotation or a pose.
    ArgumentError
        If `robot` is not a Robot, or if an argument is not numeric.
    OpenLoop
        If the robot has loops, and a given configuration does not close them.

    Notes
    -----
    For vectors, SciPy's splines are used. Otherwise, each piece is a cubic polynomial in
    exponential coordinates about its first point, and the velocities at the points are chosen so
    that accelerations are continuous. This is the method of
    `scipy.spatial.transform.RotationSpline`, extended to poses, robots and all values of `ends`.

    Examples
    --------
    >>> move = chasles.trajectory.spline([0.0, 1.0, 3.0], [[0.0], [1.0], [0.0]])
    >>> move(1.0)[0]
    array([1.])
    """
    if ends not in get_args(Ends):
        problem = f"`ends` must be 'natural', 'clamped' or 'periodic', not {ends!r}"
        raise InputError("E-PATH-018", problem, part="spline")
    if degree not in (3, 5, 7):
        raise InputError("E-PATH-019", f"`degree` must be 3, 5 or 7, not {degree!r}", part="spline")
    given = some_numbers("through", through, "spline").astype(float)
    if robot is None and given.shape[1:] in ((3, 3), (4, 4)):
        space, elements = rigid(given)
        at = Chart(space, elements, None, elements)
    else:
        at = chart(robot, points("through", given, robot, "spline"), "spline")
    t = increasing(times, len(at.points), "spline")
    gap = np.abs(at.space.difference(at.points[-1], at.points[0])).max()
    if ends == "periodic" and gap > 1e-9:
        problem = f"the first and last points of a periodic spline are {gap:.3g} apart"
        raise InputError("E-PATH-020", problem, "repeat the first point at the end", part="spline")
    curved = [row for where, _ in at.space.brackets for row in range(where.start, where.stop)]
    if degree > 3 and curved:
        problem = "rotations, poses and joints with quaternions support only degree 3"
        raise InputError("E-PATH-021", problem, "omit `degree`", part="spline")
    if not curved:
        return _flat(at, t, ends, degree)
    return _curved(at, t, ends, curved)


def rigid(given: np.ndarray) -> tuple[Space, np.ndarray]:
    """Check rotations or poses; return their space and the checked matrices."""
    all_finite("through", given, "spline")
    R = given[..., :3, :3]
    off = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2))
    bad = (off > ORTHOGONAL) | (np.linalg.det(R) < 0.0)
    if given.shape[-1] == 4:
        bad |= np.abs(given[..., 3, :] - np.array([0.0, 0.0, 0.0, 1.0])).max(axis=-1) > ORTHOGONAL
    if np.any(bad):
        problem = f"matrix {int(np.argmax(bad))} is not a rotation or a pose"
        remedy = "pass rotation matrices with determinant 1, or poses with the last row 0, 0, 0, 1"
        raise InputError("E-PATH-022", problem, remedy, part="spline")
    return (rotations() if given.shape[-1] == 3 else poses()), given


def _flat(at: Chart, t: np.ndarray, ends: Ends, degree: int) -> Move:
    """Return a spline through vectors; it interpolates displacements from the first point."""
    values = at.points - at.points[0]
    if ends == "periodic":
        values = np.array(values)
        values[-1] = values[0]
    if degree == 3:
        curve = scipy.interpolate.CubicSpline(t, values, bc_type=ends)
        curve = scipy.interpolate.PPoly.construct_fast(curve.c, curve.x)
    else:
        curve = in_pieces(_interpolating(t, values, ends, degree))
    return at.move(curve, at.points[:1], periodic=ends == "periodic")


def _interpolating(
    t: np.ndarray, values: np.ndarray, ends: Ends, degree: int
) -> "scipy.interpolate.BSpline":
    zero, half = np.zeros(values.shape[1:]), (degree - 1) // 2
    if ends == "periodic":
        return scipy.interpolate.make_interp_spline(t, values, degree, bc_type="periodic")
    orders = range(1, half + 1) if ends == "clamped" else range(half + 1, degree)
    conditions = [(order, zero) for order in orders]
    return scipy.interpolate.make_interp_spline(t, values, degree, bc_type=(conditions, conditions))


def in_pieces(curve: "scipy.interpolate.BSpline") -> "scipy.interpolate.PPoly":
    """Convert a B-spline to piecewise polynomials between its knots."""
    x = np.unique(curve.t[curve.k : -curve.k])
    jets = [curve(x[:-1], nu) / factorial(nu) for nu in range(curve.k, -1, -1)]
    return scipy.interpolate.PPoly(np.array(jets), x)


# Rotations ---------------------------------------------------------------------------------------


def _curved(at: Chart, t: np.ndarray, ends: Ends, curved: list[int]) -> Move:
    """Return cubic polynomials in exponential coordinates with continuous accelerations.

    The velocities w at the points are found by the iteration w <- w - A^-1 (jump of accelerations),
    where A is the cubic spline matrix. A is the exact Jacobian in the limit of small rotations.
    """
    h, d = np.diff(t)[:, None], steps(at)
    A = _matrix(h[:, 0], ends)
    w = scipy.linalg.solve(A, _right_side(h, d, ends))
    for _ in range(MOST_STEPS):
        change = scipy.linalg.solve(A, _jumps(at.space, h, d, w, ends))
        w = w - change
        if np.abs(change).max() <= SETTLED * max(np.abs(w).max(), 1.0):
            break
    else:
        problem = "the iteration for a spline with continuous accelerations did not converge"
        remedy = "add points, so that consecutive points are less than a quarter turn apart"
        raise InputError("E-PATH-023", problem, remedy, part="spline")
    ends_at = at.space.rates(d, [w[1:]])[0]
    pieces = [
        hermite([0.0, float(each)], [np.array([0.0 * a, a]), np.array([b, c])]).c
        for each, a, b, c in zip(h[:, 0], d, w[:-1], ends_at, strict=True)
    ]
    curve = scipy.interpolate.PPoly(np.concatenate(pieces, axis=1), t)
    return at.move(curve, at.points[:-1], periodic=ends == "periodic")


def _accelerations(
    space: Space, h: np.ndarray, d: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return accelerations at the start and end of each cubic, for velocities w at the points."""
    (z,) = space.rates(d, [w[1:]])
    begin = (6.0 * d - h * (4.0 * w[:-1] + 2.0 * z)) / h**2
    finish = (-6.0 * d + h * (2.0 * w[:-1] + 4.0 * z)) / h**2
    return begin, space.velocities(d, [z, finish])[1]


def _jumps(space: Space, h: np.ndarray, d: np.ndarray, w: np.ndarray, ends: Ends) -> np.ndarray:
    """Return the residual of the spline equations: zero where accelerations are continuous."""
    begin, finish = _accelerations(space, h, d, w)
    inner = finish[:-1] - begin[1:]
    if ends == "natural":
        return np.concatenate([-begin[:1], inner, finish[-1:]])
    if ends == "clamped":
        return np.concatenate([w[:1], inner, w[-1:]])
    return np.concatenate([finish[-1:] - begin[:1], inner, w[-1:] - w[:1]])


def _matrix(h: np.ndarray, ends: Ends) -> np.ndarray:
    """Return the matrix of the linear equations for the velocities at a cubic spline's points."""
    m = len(h) + 1
    A = np.zeros((m, m))
    for k in range(1, m - 1):
        A[k, k - 1], A[k, k + 1] = 2.0 / h[k - 1], 2.0 / h[k]
        A[k, k] = 4.0 / h[k - 1] + 4.0 / h[k]
    if ends == "natural":
        A[0, :2], A[-1, -2:] = (4.0 / h[0], 2.0 / h[0]), (2.0 / h[-1], 4.0 / h[-1])
    elif ends == "clamped":
        A[0, 0] = A[-1, -1] = 1.0
    else:
        A[0, 0], A[0, 1] = 4.0 / h[0], 2.0 / h[0]
        A[0, -1] += 4.0 / h[-1]
        A[0, -2] += 2.0 / h[-1]
        A[-1, 0], A[-1, -1] = -1.0, 1.0
    return A


def _right_side(h: np.ndarray, d: np.ndarray, ends: Ends) -> np.ndarray:
    """Return the right-hand side of the spline equations for coordinates in a vector space.

    h contains the durations of the segments, and d the displacements over them.
    """
    rate = 6.0 * d / h**2
    inner = rate[:-1] + rate[1:]
    none = np.zeros_like(rate[:1])
    if ends == "natural":
        return np.concatenate([rate[:1], inner, rate[-1:]])
    first = none if ends == "clamped" else rate[-1:] + rate[:1]
    return np.concatenate([first, inner, none])
