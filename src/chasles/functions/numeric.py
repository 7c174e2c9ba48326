"""NumPy routines for compiled functions: linear systems, Newton's method, base parameters."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from chasles.backends.arrays import check_out
from chasles.errors import ArgumentError, InputError, ModelError
from chasles.functions.doors import numbers
from chasles.model import Model
from chasles.model.spaces import freedom_units, size

_PADE = tuple(math.comb(13, k) / math.perm(26, k) for k in range(14))
"""Numerator coefficients of the [13/13] Pade approximant to the exponential."""

_REACH = 5.371920351148152
"""Maximum 1-norm for which the [13/13] Pade approximant is accurate to machine precision (Higham
2005, table 2.3).
"""


def singular(function: str) -> ModelError:
    """Return the error for a configuration in which some motion of the robot moves no inertia."""
    problem = "the mass matrix is singular in this configuration"
    remedy = "use another configuration, or give the joints an armature"
    return ModelError("E-CALL-590", problem, remedy, part=function)


def exponential(matrix: np.ndarray) -> np.ndarray:
    """Return the exponential of matrices (..., n, n) by scaling and squaring (Higham 2005)."""
    lead = matrix.shape[:-2]
    stack = np.asarray(matrix, dtype=float).reshape(math.prod(lead), *matrix.shape[-2:])
    norms = np.abs(stack).sum(axis=-2).max(axis=-1, initial=0.0)
    _, halvings = np.frexp(norms / _REACH)
    halvings = np.where(norms > _REACH, halvings, 0)
    result = np.full_like(stack, np.nan)
    for k in np.unique(halvings[np.isfinite(norms)]):
        chosen = np.isfinite(norms) & (halvings == k)
        power = _approximant(np.ldexp(stack[chosen], -k))
        for _ in range(k):
            power = power @ power
        result[chosen] = power
    return result.reshape(matrix.shape)


def _approximant(A: np.ndarray) -> np.ndarray:
    """Return the Pade approximant (V - U)^-1 (V + U) of the matrix exponential of A.

    U contains the odd terms and V the even terms of the numerator.
    """
    b, one = _PADE, np.eye(A.shape[-1])
    A2 = A @ A
    A4 = A2 @ A2
    A6 = A2 @ A4
    U = A6 @ (b[13] * A6 + b[11] * A4 + b[9] * A2) + b[7] * A6 + b[5] * A4 + b[3] * A2 + b[1] * one
    V = A6 @ (b[12] * A6 + b[10] * A4 + b[8] * A2) + b[6] * A6 + b[4] * A4 + b[2] * A2 + b[0] * one
    U = A @ U
    return np.linalg.solve(V - U, V + U)


def discretized(A: np.ndarray, B: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Discretize the linear system dx/dt = A x + B u, exactly for a constant input u.

    Return A' and B' in x(t + dt) = A' x(t) + B' u. These matrices are the upper blocks of the
    exponential of [[A, B], [0, 0]] dt (Van Loan 1978).
    """
    n, m = B.shape[-2:]
    whole = np.zeros((*A.shape[:-2], n + m, n + m))
    whole[..., :n, :n], whole[..., :n, n:] = A, B
    after = exponential(whole * dt)
    return after[..., :n, :n].astype(A.dtype), after[..., :n, n:].astype(B.dtype)


def actuation_matrix(actuation: Any, nv: int, velocity_slice: Callable[[str], slice]) -> np.ndarray:
    """Return the matrix S (nv, m) that maps inputs u to joint torques S u.

    `actuation` is this matrix, or the names of the actuated joints. A named joint has one input for
    each degree of freedom, in the order of the names.
    """
    wanted = f"an array ({nv}, m) or a sequence of joint names"
    if isinstance(actuation, str):
        problem = f"`actuation` must be {wanted}, not the string {actuation!r}"
        raise ArgumentError("E-MATH-032", problem, f"pass [{actuation!r}]", part="linearize")
    if isinstance(actuation, Sequence) and all(isinstance(name, str) for name in actuation):
        if len(set(actuation)) < len(actuation):
            problem = f"`actuation` names a joint twice: {list(actuation)}"
            raise InputError("E-MATH-033", problem, part="linearize")
        columns = [k for name in actuation for k in range(nv)[velocity_slice(name)]]
        return np.eye(nv)[:, columns]
    try:
        S = np.asarray(actuation, dtype=float)
    except (TypeError, ValueError, OverflowError):
        problem = f"`actuation` must be {wanted}, not {actuation!r}"
        raise ArgumentError("E-MATH-034", problem, part="linearize") from None
    if S.ndim != 2 or S.shape[0] != nv:
        problem = f"`actuation` must have shape ({nv}, m), not {S.shape}"
        raise InputError("E-MATH-035", problem, part="linearize")
    if not np.all(np.isfinite(S)):
        raise InputError("E-MATH-036", "`actuation` must be finite", part="linearize")
    return S


# Damped Newton method on a manifold, with separate damping for each state -------------------------

STEPS = 100
"""Maximum number of Newton steps. From a good initial guess, 4 to 10 steps are enough. A double
root, as at a dead point of a linkage, needs about 30 steps."""

REACH = 0.5
"""Maximum change of a coordinate in a Newton step, relative to the scale of the coordinate.

Larger changes may lead to another solution branch.
"""


@dataclass(frozen=True)
class Found:
    """Result of Newton's method for a batch of states: q, the final residual, and its norm.

    The norm is infinite if the residual is undefined.
    """

    q: np.ndarray
    residual: np.ndarray
    size: np.ndarray


def solve(
    residual: Callable[[np.ndarray], np.ndarray],
    matrix: Callable[[np.ndarray], np.ndarray],
    integrate: Callable[[np.ndarray, np.ndarray], np.ndarray],
    q: np.ndarray,
    *,
    rows: np.ndarray,
    columns: np.ndarray,
    tolerance: float,
    rank: float,
) -> Found:
    """Move each q (n, nq) by steps of `integrate` until its residual (n, m) is zero.

    `matrix` returns the derivative (n, m, nv) of the residual, which must be exact where the
    residual is zero. `rows` and `columns` are scales that make residuals and steps dimensionless. A
    coordinate with scale 0 does not move. Steps have minimum norm. Singular values below `rank`
    times the largest count as zero. Levenberg-Marquardt damping is proportional to the squared
    residual, so the last steps are Newton steps. The iteration stops when no step reduces the norm
    of the residual, or when the norm is at most `tolerance` and a step does not halve it. The
    iteration also stops when the residual or its derivative is undefined.
    """
    q = q.copy()
    r = rows * residual(q)
    size = np.linalg.norm(r, axis=-1)
    size[~np.isfinite(size)] = np.inf
    damping = np.full(len(q), 1e-2)
    moving = np.flatnonzero((size != 0.0) & (size != np.inf))
    for _ in range(STEPS):
        if not len(moving):
            break
        A = rows[:, None] * matrix(q[moving]) * columns
        able = np.isfinite(A).all(axis=(-1, -2))
        moving, A = moving[able], A[able]
        step = least_step(A, r[moving], damping[moving] * size[moving] ** 2, rank)
        trial = integrate(q[moving], columns * step)
        left = rows * residual(trial)
        norm = np.linalg.norm(left, axis=-1)
        better, halved = norm < size[moving], norm < 0.5 * size[moving]
        accepted = moving[better]
        q[accepted], r[accepted], size[accepted] = trial[better], left[better], norm[better]
        damping[moving] *= np.where(better, 0.2, 10.0)
        stuck = damping[moving] > 1e12
        moving = moving[~(stuck | ((size[moving] <= tolerance) & ~halved))]
    return Found(q, r, size)


def least_step(A: np.ndarray, r: np.ndarray, damping: np.ndarray, rank: float) -> np.ndarray:
    """Return the x that minimizes |A x + r|^2 + damping |x|^2, scaled down to at most REACH."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    kept = s > rank * s[:, :1]
    gain = np.where(kept, s, 0.0) / np.where(kept, s * s + damping[:, None], 1.0)
    x = -np.einsum("nkv,nk,nmk,nm->nv", Vt, gain, U, r)
    longest = np.max(np.abs(x), axis=-1, initial=0.0, keepdims=True)
    return x * np.minimum(1.0, REACH / np.maximum(longest, REACH))


# Results, returned as new arrays or written to `out` ----------------------------------------------

Results = TypeVar("Results", bound=tuple[np.ndarray, ...])


def delivered(name: str, results: Results, out: Any) -> Results:
    """Return the results, or copy them to the arrays in the tuple `out` and return `out`."""
    if out is None:
        return results
    if not isinstance(out, tuple) or len(out) != len(results):
        raise InputError("E-CALL-058", f"`out` must be a tuple of {len(results)} arrays", part=name)
    for array, result in zip(out, results, strict=True):
        check_out(name, array, result.shape, result.dtype)
    if any(np.shares_memory(a, b) for k, a in enumerate(out) for b in out[:k]):
        problem = "the arrays in `out` overlap"
        raise InputError("E-CALL-059", problem, "use a separate array for each result", part=name)
    for array, result in zip(out, results, strict=True):
        array[...] = result
    return cast(Results, out)


def filled(name: str, result: np.ndarray, out: Any) -> np.ndarray:
    """Return the result, or copy it to `out` and return `out`."""
    if out is None:
        return result
    check_out(name, out, result.shape, result.dtype)
    out[...] = result
    return cast(np.ndarray, out)


# Base parameters: combinations of inertial parameters that determine the joint torques ------------

_POWERS = (0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0)
"""Powers of length in the units of the ten inertial parameters: kg, kg m (3), kg m2 (6)."""

_EQUAL = 1e-6
"""Relative tolerance within which column norms count as equal.

If several columns have the largest norm, the first of them is chosen, so that the choice does not
depend on rounding errors.
"""


@dataclass(frozen=True)
class BaseParameters:
    """Base parameters: linear combinations of inertial parameters that determine the torques.

    For the regressor Y in any state and the inertial parameters p, Y p is equal to
    Y[..., columns] @ (combination @ p).

    `columns` contains the ascending indices (b,) of a minimal set of regressor columns.
    `combination` is the matrix (b, k) that maps all parameters to the base parameters. A column was
    dropped if the fraction of its norm that is independent of the kept columns was at most
    `tolerance`. `smallest_kept` and `largest_dropped` are the smallest such fraction among the
    kept columns and the largest among the dropped columns. A wide gap between them shows that the
    choice is reliable.
    """

    columns: np.ndarray
    combination: np.ndarray
    tolerance: float
    smallest_kept: float
    largest_dropped: float

    def __len__(self) -> int:
        return len(self.columns)

    def values(self, parameters: np.ndarray) -> np.ndarray:
        """Compute the base parameters from inertial parameters.

        Parameters
        ----------
        parameters : array_like, shape (..., k)
            Inertial parameters, ten for each body (SI units).

        Returns
        -------
        values : ndarray, shape (..., b)
            Base parameters.

        Raises
        ------
        ArgumentError
            If `parameters` is not an array of real numbers.
        InputError
            If `parameters` does not have k entries along its last axis.

        Examples
        --------
        >>> import chasles, numpy as np
        >>> base = chasles.robots.planar(1).base_parameters()
        >>> len(base.values(np.zeros(base.combination.shape[1]))) == len(base)
        True
        """
        size = self.combination.shape[1]
        return numbers("BaseParameters.values: parameters", parameters, size) @ self.combination.T


class States(NamedTuple):
    """Random states, as arrays of shape (count, nv).

    `steps` contains displacements from the neutral posture, `qd` velocities and `qdd`
    accelerations.
    """

    steps: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray


def random_states(model: Model, count: int, rng: np.random.Generator) -> States:
    """Return random states whose inertia forces are comparable to the weights of the bodies.

    Lengths are in units of the robot size, and times in units of sqrt(size / gravity), or in
    seconds if gravity is zero. In these units, the states are the same for robots that differ only
    in size.
    """
    length, weight = size(model), np.linalg.norm(list(model.gravity_vector))
    time = np.sqrt(length / weight) if weight else 1.0
    units = np.array(freedom_units(model, length))
    steps = rng.uniform(-np.pi, np.pi, size=(count, model.nv))
    qd, qdd = rng.normal(size=(2, count, model.nv))
    return States(units * steps, units / time * qd, 3.0 * units / time**2 * qdd)


def base_parameters(model: Model, regressors: np.ndarray, tolerance: float) -> BaseParameters:
    """Return base parameters from regressors (count, nv, k) by pivoted QR (Gautier 1991).

    Joint forces are multiplied by the robot size, so that they have the same unit as joint torques.
    Columns are normalized before they are compared. A column counts as zero if its norm is at most
    `tolerance` times the largest norm, with lengths in units of the robot size.
    """
    length = size(model)
    count, nv, k = regressors.shape
    work = regressors * np.array(freedom_units(model, length))[:, None]
    stack = work.reshape(count * nv, k)
    lengths: np.ndarray = np.linalg.norm(stack, axis=0)
    compared = lengths * np.tile(length ** np.array(_POWERS), k // len(_POWERS))
    lengths[compared <= tolerance * compared.max(initial=0.0)] = np.inf
    R = np.linalg.qr(stack / lengths).R
    left, kept, shares = R.copy(), [], []
    for _ in range(min(R.shape)):
        new = np.linalg.norm(left, axis=0)
        k = int(np.argmax(new >= (1.0 - _EQUAL) * new.max()))  # first column of largest norm
        if new[k] <= tolerance:
            break
        unit = left[:, k] / new[k]
        left -= np.outer(unit, unit @ left)
        left[:, k] = 0.0
        kept.append(k)
        shares.append(float(new[k]))
    dropped = np.linalg.norm(left, axis=0).max(initial=0.0)
    columns = np.array(sorted(kept), dtype=int)
    shared = np.linalg.lstsq(R[:, columns], R, rcond=None)[0]
    shared = np.where(np.abs(shared) > tolerance, shared, 0.0)
    finite = np.where(np.isfinite(lengths), lengths, 0.0)
    combination = shared * finite / lengths[columns, None]
    combination[:, columns] = np.eye(len(columns))
    return BaseParameters(
        columns, combination, float(tolerance), min(shares, default=np.inf), float(dropped)
    )


# Motion matrices ---------------------------------------------------------------------------------


def twist_matrices(twists: np.ndarray) -> np.ndarray:
    """Return the matrices [w~, v; 0, 0] (..., 4, 4) of twists (..., 6).

    A twist consists of an angular velocity w and a linear velocity v. w~ is the skew-symmetric
    matrix of w.
    """
    found = np.zeros((*twists.shape[:-1], 4, 4), twists.dtype)
    x, y, z = np.moveaxis(twists[..., :3], -1, 0)
    for row, column, entry in ((2, 1, x), (0, 2, y), (1, 0, z)):
        found[..., row, column], found[..., column, row] = entry, -entry
    found[..., :3, 3] = twists[..., 3:]
    return found


def motion_matrices(motion: np.ndarray) -> np.ndarray:
    """Return the matrices [R^(k) R', r^(k); 0, 0] (..., order, 4, 4) for k = 1, 2, ...

    R^(k) is the k-th time derivative of a body's rotation matrix R, and R' is the transpose of R.
    r^(k) is the k-th time derivative of the position of the body point that is currently at the
    world origin. Entry k of `motion` (..., order, 6) contains the derivative of order k - 1 of the
    angular velocity w, then r^(k). The first derivative of R is w~ R with the skew-symmetric matrix
    w~ of w. Higher derivatives follow from Leibniz' rule.
    """
    w = twist_matrices(motion)[..., :3, :3]
    turned = [np.broadcast_to(np.eye(3, dtype=w.dtype), w[..., 0, :, :].shape)]
    for k in range(motion.shape[-2]):
        terms = (math.comb(k, i) * w[..., i, :, :] @ turned[k - i] for i in range(k + 1))
        turned.append(sum(terms, np.zeros_like(turned[0])))
    found = np.zeros((*motion.shape[:-1], 4, 4), motion.dtype)
    found[..., :3, :3] = np.stack(turned[1:], axis=-3)
    found[..., :3, 3] = motion[..., 3:]
    return found
