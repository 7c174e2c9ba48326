"""Solvers for linear complementarity problems, quadratic programs and cone programs.

    w = M z + d,   w >= 0,   z >= 0,   w'z = 0

z are the magnitudes of contact forces and w the resulting separation accelerations (Featherstone
2008, Eq 11.42). Lemke's method solves one problem; projected Gauss-Seidel solves batches. Quadratic
programs (DAQP, extra `contact`), in forces or accelerations, have the same solutions (Eq 11.43 and
11.44). The program in accelerations is Gauss' principle of least constraint: it is strictly convex
for any contacts, and therefore preferable if there are more contacts than degrees of freedom. Cone
programs model friction (Clarabel, extra `contact`).
"""

import math
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy

from chasles.errors import ConvergenceError, InputError, MissingPackageError
from chasles.motion.least import farkas, least_motion

Array = Any

SLACK = 1e-11
"""Tolerance for negative w, relative to the largest |d| after scaling, to absorb rounding errors.
Without this tolerance, there might be no solution for a body that just fits between opposite
contacts.
"""

PIVOT = 1e-11
"""Minimum pivot: entries of a scaled column that are smaller count as zero."""

PENETRATE = "allow a small penetration, or check the contact geometry"
"""Suggested remedy in error messages for contact problems without a solution."""

TIE = 1e-12
"""Tolerance for ties in Lemke's method: scaled ratios that differ by less count as equal."""

ROUGH = 1e-10
"""Tolerance for |min(w, z)| in Lemke's method, after scaling, relative to the largest |d| or z.
A larger value is not a rounding error; it indicates that a basis was nearly singular."""

OPTIMAL, INFEASIBLE = 1, -1
"""Exit flags of DAQP."""

PROXIMAL = 1e-4
"""Weight of DAQP's proximal term, for a matrix with a unit diagonal. If M is singular, the term
makes the solution of each step unique; it vanishes as the iteration converges. Of the values from
1e-3 to 1e-6, only this one detected every unbounded program within DAQP's iteration limit.
"""

SETTLED = 1e-12
"""Tolerance for the change of z in a proximal step, for problems that are scaled to max |d| = 1."""

TOLERANCE = 1e-10
"""Constraint tolerance of DAQP, for problems scaled to a largest entry of 1."""

CLARABEL = 1e-10
"""Tolerance of Clarabel. With smaller values, Clarabel may not converge."""


class Infeasible(InputError):
    """Error raised if no forces satisfy a contact problem; `ray` is a certificate, if known.

    For a symmetric positive semidefinite M, `ray` is u >= 0 with M u = 0 and d.u < 0: the forces u
    have no effect, although the bodies accelerate toward each other (Farkas' lemma). The largest
    entry of `ray` is 1.
    """

    def __init__(self, *text: str, ray: np.ndarray | None = None, **place: Any) -> None:
        super().__init__(*text, **place)
        self.ray = ray / np.max(ray) if ray is not None and np.any(ray) else None


class Iterated(NamedTuple):
    """Result of an iterative solver: forces (..., n), residuals (...), and number of sweeps.

    The residual is the largest violation of a problem's optimality conditions, in the units of d.
    """

    forces: np.ndarray
    residual: np.ndarray
    sweeps: int


def lemke(M: Array, d: Array) -> np.ndarray:
    """Return a basic solution z of w = M z + d, w >= 0, z >= 0, w'z = 0 by Lemke's method.

    Parameters
    ----------
    M : array_like, shape (n, n)
        Matrix.
    d : array_like, shape (n,)
        Vector.

    Returns
    -------
    z : ndarray, shape (n,)
        Solution. The columns of M for which z > 0 are linearly independent.

    Raises
    ------
    Infeasible
        If the method ends on a ray.
    InputError
        If M does not have shape (n, n), if d does not have shape (n,), or if one of them is not
        finite.
    ConvergenceError
        If the number of pivots exceeds the limit.

    Notes
    -----
    The lexicographic rule breaks ties, so that no basis repeats (Cottle, Pang and Stone 1992,
    chapter 4). For a symmetric positive semidefinite M (or any copositive-plus M), a ray
    proves that there is no solution. For other M, it means only that no solution was found.

    Examples
    --------
    >>> from chasles import contact
    >>> contact.lemke([[2.0, 1.0], [1.0, 2.0]], [-5.0, 1.0])
    array([2.5, 0. ])
    """
    M, d = checked_problem("lemke", M, d)
    if np.all(d >= 0.0):
        return np.zeros_like(d)
    scale = scales(M)
    A, b = scale[:, None] * M * scale, scale * d
    z, size = np.zeros_like(d), np.max(np.abs(b))
    try:
        basic = _basic(A, b / size + SLACK, scale)
        z[basic] = np.linalg.solve(A[np.ix_(basic, basic)], -b[basic])
        wrong = np.max(np.abs(np.minimum(z, A @ z + b))) > ROUGH * max(size, np.max(z))
        least = least_motion(A, b / size + SLACK) if wrong else None
    except (Infeasible, np.linalg.LinAlgError):
        least = least_motion(A, b / size + SLACK)
        if least is None:
            raise
    return scale * np.maximum(z if least is None else size * least, 0.0)


def _basic(A: np.ndarray, b: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the indices of the basic variables z in a solution of w = A z + b (Lemke's method).

    Variables are numbered in the order w, z, z0, with w - A z - e z0 = b and e = (1, ..., 1). The
    method ends when the artificial variable z0 leaves the basis. The inverse of the basis matrix is
    recomputed at each pivot, not updated.
    """
    n = len(b)
    columns, right = np.hstack([np.eye(n), -A, -np.ones((n, 1))]), np.column_stack([b, np.eye(n)])
    basis, entering, leaving = np.arange(n), 2 * n, _least(right)
    for _ in range(100 * (n + 1)):
        left, basis[leaving] = int(basis[leaving]), entering
        if left == 2 * n:
            return np.sort(basis[basis >= n]) - n
        entering = (left + n) % (2 * n)
        inverse = np.linalg.inv(columns[:, basis])
        step = inverse @ columns[:, entering]
        able = np.flatnonzero(step > PIVOT)
        if not len(able):
            raise _on_a_ray(n, basis, entering, step, scale)
        ratios = (inverse[able] @ right) / step[able, None]
        last = np.flatnonzero(basis[able] == 2 * n)
        ends = len(last) and ratios[last[0], 0] <= np.min(ratios[:, 0]) + TIE
        leaving = able[last[0] if ends else _least(ratios)]
    problem = f"Lemke's method found no solution in {100 * (n + 1)} pivots"
    raise ConvergenceError("E-CONTACT-002", problem, "check M for rounding errors", part="lemke")


def _least(rows: np.ndarray) -> int:
    """Return the index of the lexicographically smallest row."""
    which = np.arange(len(rows))
    for column in rows.T:
        values = column[which]
        low = np.min(values)
        which = which[values <= low + TIE * max(1.0, abs(low))]
        if len(which) == 1:
            break
    return int(which[0])


def _on_a_ray(
    n: int, basis: np.ndarray, entering: int, step: np.ndarray, scale: np.ndarray
) -> Infeasible:
    """Return the error for an entering variable that can grow without bound (a secondary ray)."""
    growth = np.zeros(2 * n + 1)
    growth[basis], growth[entering] = np.maximum(-step, 0.0), 1.0
    ray = scale * growth[n : 2 * n]
    contacts = ", ".join(map(str, np.flatnonzero(growth[n : 2 * n] > PIVOT)))
    problem = f"no forces prevent penetration (forces {contacts} grow without bound)"
    return Infeasible("E-CONTACT-003", problem, PENETRATE, ray=ray, part="lemke")


def boxed(A: Array, b: Array, low: Array, high: Array) -> np.ndarray:
    """Solve the complementarity problem w = A z + b with bounds low <= z <= high.

    The solution z (n,) satisfies w >= 0 where z < high, and w <= 0 where z > low. A has shape
    (n, n); b, low and high have shape (n,), and high may be infinite. The problem is solved by
    Lemke's method, with Lagrange multipliers of the upper bounds as additional unknowns.
    If A is symmetric positive semidefinite and all bounds are finite, there is always a solution.
    Otherwise, the function may raise `Infeasible`, as `lemke` does.
    """
    A, b, low, high = (np.asarray(a, dtype=float) for a in (A, b, low, high))
    n, scale, ends = len(b), scales(A), np.flatnonzero(np.isfinite(high))
    one = np.eye(n)[:, ends]
    M = np.block([[scale[:, None] * A * scale, one], [-one.T, np.zeros((len(ends), len(ends)))]])
    d = np.concatenate([scale * (A @ low + b), ((high - low) / scale)[ends]])
    z, push = np.split(lemke(M, d), [n])
    found = np.minimum(low + scale * z, high)
    found[ends[push > 0.0]] = high[ends[push > 0.0]]
    return found


def gauss_seidel(
    M: Array, d: Array, *, start: Array = None, sweeps: int = 1000, tolerance: float = 1e-12
) -> Iterated:
    """Solve a batch of problems w = M z + d, w >= 0, z >= 0, w'z = 0 by projected Gauss-Seidel.

    Parameters
    ----------
    M : array_like, shape (..., n, n)
        Symmetric positive semidefinite matrices with a positive diagonal; leading dimensions
        broadcast.
    d : array_like, shape (..., n)
        Vectors.
    start : array_like, shape (..., n), optional
        Initial guess, such as the forces from the previous step.
    sweeps : int, optional
        Maximum number of sweeps.
    tolerance : float, optional
        Tolerance for the residual |min(w, M_ii z)|, relative to the largest |d| of a problem.

    Returns
    -------
    result : Iterated
        Forces, residuals and the number of sweeps. Problems without a solution do not raise an
        error; their residual stays large.

    Raises
    ------
    InputError
        If an array does not have the documented shape, or if the diagonal of M is not positive.

    Examples
    --------
    >>> from chasles import contact
    >>> contact.gauss_seidel([[2.0, 1.0], [1.0, 2.0]], [-5.0, 1.0]).forces.round(6)
    array([2.5, 0. ])
    """
    M, d = (np.asarray(a, dtype=float) for a in (M, d))
    n = d.shape[-1] if d.ndim else -1
    if M.shape[-2:] != (n, n):
        problem = f"M {M.shape} and d {d.shape} must have shapes (..., n, n) and (..., n)"
        raise InputError("E-CONTACT-004", problem, part="gauss_seidel")
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    if not np.all(diagonal > 0.0):
        what, remedy = "M needs a positive diagonal", "remove forces that do no work"
        raise InputError("E-CONTACT-005", what, remedy, part="gauss_seidel")
    lead = np.broadcast_shapes(M.shape[:-2], d.shape[:-1])
    z = np.zeros((*lead, n))
    z[...] = 0.0 if start is None else np.maximum(start, 0.0)
    limit = tolerance * np.max(np.abs(d), axis=-1, initial=0.0)
    done = 0
    while np.any((residual := _residual(M, d, z, diagonal)) > limit) and done < sweeps:
        for i in range(n):
            w = np.sum(M[..., i, :] * z, axis=-1) + d[..., i]
            z[..., i] = np.maximum(z[..., i] - w / diagonal[..., i], 0.0)
        done += 1
    return Iterated(z, residual, done)


def _residual(M: np.ndarray, d: np.ndarray, z: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    w = (M @ z[..., None])[..., 0] + d
    return np.max(np.abs(np.minimum(w, diagonal * z)), axis=-1, initial=0.0)


def scales(M: np.ndarray) -> np.ndarray:
    """Return factors s (n,) that scale positive diagonal entries of M to 1 in diag(s) M diag(s)."""
    diagonal = np.diagonal(M)
    return np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 1.0)


def checked_problem(name: str, M: Array, d: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return M (n, n) and d (n,) as float arrays, after checks of their shapes and values.

    `name` is the function name in error messages.
    """
    M, d = (np.asarray(a, dtype=float) for a in (M, d))
    if d.ndim != 1 or M.shape != (len(d), len(d)):
        problem = f"M {M.shape} and d {d.shape} must have shapes (n, n) and (n,)"
        raise InputError("E-CONTACT-006", problem, part=name)
    if not (np.all(np.isfinite(M)) and np.all(np.isfinite(d))):
        problem = "M and d must be finite"
        raise InputError("E-CONTACT-007", problem, "check the state and the forces", part=name)
    return M, d


# Quadratic and cone programs ----------------------------------------------------------------------


def forces_program(M: Array, d: Array) -> np.ndarray:
    """Return the z >= 0 that minimizes z'M z / 2 + z'd (Featherstone 2008, Eq 11.43).

    Parameters
    ----------
    M : array_like, shape (n, n)
        Symmetric positive semidefinite matrix.
    d : array_like, shape (n,)
        Vector.

    Returns
    -------
    z : ndarray, shape (n,)
        Minimizer, which also solves the complementarity problem; if M is singular, one of several
        solutions.

    Raises
    ------
    Infeasible
        If the program is unbounded.
    InputError
        If M does not have shape (n, n), if d does not have shape (n,), or if one of them is not
        finite.
    ConvergenceError
        If daqp fails.
    MissingPackageError
        If daqp is not installed.

    Examples
    --------
    >>> from chasles import contact
    >>> contact.forces_program([[2.0, 1.0], [1.0, 2.0]], [-5.0, 1.0]).round(6)
    array([2.5, 0. ])
    """
    M, d = checked_problem("forces_program", M, d)
    if np.all(d >= 0.0):
        return np.zeros_like(d)
    scale = scales(M)
    A, b = scale[:, None] * M * scale, scale * d
    n, size = len(d), np.max(np.abs(b))
    z, _, flag = solve_quadratic(A, b / size, np.zeros((0, n)), np.zeros(n), proximal=PROXIMAL)
    if flag != OPTIMAL and (ray := farkas(A, b / size)) is not None:
        what, part = "the problem is unbounded: no forces prevent penetration", "forces_program"
        raise Infeasible("E-CONTACT-054", what, PENETRATE, ray=scale * ray, part=part)
    if flag != OPTIMAL:
        problem, remedy = f"DAQP failed (exit flag {flag})", "pass M and d to `lemke`"
        raise ConvergenceError("E-CONTACT-055", problem, remedy, part="forces_program")
    return scale * size * _polished(A, b / size, np.maximum(z, 0.0))


def _polished(A: np.ndarray, b: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Remove the error due to the proximal term from z: w becomes zero where z > 0."""
    acting = z > 0.0
    exact = z.copy()
    step = np.linalg.lstsq(A[np.ix_(acting, acting)], -(A @ z + b)[acting], rcond=1e-12)[0]
    exact[acting] += step
    return exact if np.all(exact >= 0.0) else z


def accelerations_program(
    H: Array, force: Array, T: Array, bias: Array
) -> tuple[np.ndarray, np.ndarray]:
    """Return the constrained accelerations and the contact forces by Gauss' principle.

    See Featherstone (2008), Eq 11.44.

    Parameters
    ----------
    H : array_like, shape (n, n)
        Mass matrix.
    force : array_like, shape (n,)
        Generalized force without contacts.
    T : array_like, shape (n, nc)
        Contact normals.
    bias : array_like, shape (nc,)
        Separation accelerations at qdd = 0.

    Returns
    -------
    qdd : ndarray, shape (n,)
        Accelerations that minimize (qdd - H^-1 force)' H (qdd - H^-1 force) subject to
        T' qdd + bias >= 0.
    forces : ndarray, shape (nc,)
        Lagrange multipliers: H qdd = force + T forces.

    Raises
    ------
    Infeasible
        If no qdd satisfies the constraints.
    InputError
        If an array has the wrong shape or is not finite.
    ConvergenceError
        If daqp fails.
    MissingPackageError
        If daqp is not installed.

    Examples
    --------
    >>> from chasles import contact
    >>> contact.accelerations_program([[2.0]], [-19.62], [[1.0]], [0.0])
    (array([0.]), array([19.62]))
    """
    H, force = checked_problem("accelerations_program", H, force)
    T, bias = (np.asarray(a, dtype=float) for a in (T, bias))
    if bias.ndim != 1 or T.shape != (len(force), len(bias)):
        problem = f"T {T.shape} and bias {bias.shape} must have shapes ({len(force)}, nc) and (nc,)"
        raise InputError("E-CONTACT-056", problem, part="accelerations_program")
    L = np.linalg.cholesky(H)
    free = np.linalg.solve(L, force)
    rows = np.linalg.solve(L, T).T  # constraints on x = L' (qdd - H^-1 force)
    norms = np.linalg.norm(rows, axis=-1)
    d = rows @ free + bias
    if np.all(d >= 0.0):
        return np.linalg.solve(L.T, free), np.zeros_like(d)
    size = np.max(np.abs(d / norms))
    x, multipliers, flag = solve_quadratic(
        np.eye(len(force)), np.zeros(len(force)), rows / norms[:, None], -d / norms / size
    )
    if flag == INFEASIBLE:
        problem, part = "infeasible: no accelerations prevent penetration", "accelerations_program"
        raise Infeasible("E-CONTACT-057", problem, PENETRATE, ray=farkas(T, bias), part=part)
    if flag != OPTIMAL:
        problem = f"DAQP failed (exit flag {flag})"
        remedy = "pass M = T' H^-1 T and d = T' H^-1 force + bias to `lemke`"
        raise ConvergenceError("E-CONTACT-058", problem, remedy, part="accelerations_program")
    return np.linalg.solve(L.T, free + size * x), size * multipliers / norms


def solve_quadratic(
    H: np.ndarray, f: np.ndarray, A: np.ndarray, lower: np.ndarray, *, proximal: float = 0.0
) -> tuple[np.ndarray, np.ndarray, int]:
    """Minimize x'H x / 2 + f'x subject to A x >= lower; return x, multipliers and DAQP's exit flag.

    If A has no rows, `lower` bounds x itself. x is a solution only if the flag is `OPTIMAL`.
    """
    daqp = optional("daqp")
    x, _, flag, info = daqp.solve(
        *(np.ascontiguousarray(a, dtype=float) for a in (H, f, A)),
        np.full(len(lower), 1e30),
        np.ascontiguousarray(lower, dtype=float),
        np.zeros(len(lower), dtype=np.intc),
        eps_prox=proximal,
        eta_prox=SETTLED,
        primal_tol=TOLERANCE,
    )
    return np.array(x), np.maximum(-np.array(info["lam"]), 0.0), int(flag)


class Cone(NamedTuple):
    """Constraint that rows @ x + offsets is in a second-order cone or, if `flat`, non-negative."""

    rows: np.ndarray
    offsets: np.ndarray
    flat: bool


def cones_program(P: np.ndarray, c: np.ndarray, cones: list[Cone]) -> np.ndarray:
    """Return the x (n,) that minimizes x'P x / 2 + x'c subject to all cone constraints."""
    clarabel = optional("clarabel")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = CLARABEL
    ray, cone = clarabel.NonnegativeConeT, clarabel.SecondOrderConeT
    kinds = [(ray if one.flat else cone)(len(one.rows)) for one in cones]
    A = scipy.sparse.csc_matrix(-np.vstack([one.rows for one in cones]))
    P, b = scipy.sparse.csc_matrix(np.triu(P)), np.concatenate([one.offsets for one in cones])
    solution = clarabel.DefaultSolver(P, c, A, b, kinds, settings).solve()
    status = str(solution.status)
    if status in ("DualInfeasible", "AlmostDualInfeasible"):
        problem = "the problem is unbounded: no forces prevent penetration"
        raise Infeasible("E-CONTACT-008", problem, PENETRATE, part="cone_program")
    if status not in ("Solved", "AlmostSolved"):
        problem = f"Clarabel found no solution ({status})"
        raise ConvergenceError("E-CONTACT-009", problem, part="cone_program")
    return np.array(solution.x)


def optional(package: str) -> Any:
    """Import a solver that is installed with the extra `contact`."""
    try:
        return import_module(package)
    except ImportError:
        problem = f"this contact law needs the package {package!r}"
        remedy = "run pip install 'chasles[contact]'"
        raise MissingPackageError("E-CONTACT-059", problem, remedy) from None


# Sliding contacts ---------------------------------------------------------------------------------

REACH = 1e-13
"""Tolerance for diagonal entries of M, relative to the largest entry: smaller entries are
treated as rounding errors."""

SINGULAR = 1e-9
"""Tolerance for determinants of scaled matrices: smaller ones count as zero."""

ACCURATE, EXACT = 1e-9, 1e-12
"""Tolerances for the conditions on w (see `normal_forces`), relative to the largest |d|. Solutions
must satisfy the conditions to within `ACCURATE`, and to within `EXACT` to count as exact."""

STABLE = 1e-6
"""Tolerance for negative eigenvalues of M, relative to its largest entry. The tolerance is large,
because double zero eigenvalues are accurate only to the square root of the rounding error."""

MANY = 4096
"""Maximum number of cases to enumerate. A contact is open or closed: 2^12 cases for 12 contacts."""


class NoUniqueMotion(InputError):
    """Error raised if Coulomb's law has no unique solution for rigid bodies (Painleve 1895)."""


class Inconsistent(NoUniqueMotion):
    """Error raised if no finite force satisfies Coulomb's law (impact without collision)."""


class Indeterminate(NoUniqueMotion):
    """Error raised if several motions satisfy Coulomb's law.

    The attribute `solutions` contains the normal forces of each motion.
    """

    def __init__(self, *text: str, solutions: np.ndarray, **place: Any) -> None:
        super().__init__(*text, **place)
        self.solutions = solutions


def normal_forces(
    M: np.ndarray, d: np.ndarray, low: np.ndarray, high: np.ndarray, effect: np.ndarray, rubs: bool
) -> np.ndarray:
    """Return the normal forces z (n,) of sliding contacts, and the dry friction of joints at rest.

        w = M z + d,   low <= z <= high
        w >= 0 where z = low,   w <= 0 where z = high,   w = 0 where low < z < high

    The friction of a sliding contact is proportional to its normal force, so M is not symmetric,
    and there may be no solution, or several (Painleve 1895). A normal force has low = 0 and no
    upper bound. The dry friction of a joint at rest is between finite bounds low and high.

    The matrix `effect` (m, n) maps z to the accelerations of all points. `rubs` is False if no
    contact has friction; M is then symmetric.
    """
    cases = math.prod(2 + int(np.isfinite(x)) for x in high)
    certain = np.linalg.eigvalsh(M + M.T)[0] > 1e-9 * np.max(np.abs(M))
    if not rubs or cases > MANY or certain:
        return boxed(M, d, low, high)
    return _only(M, d, low, high, effect)


def _only(
    M: np.ndarray, d: np.ndarray, low: np.ndarray, high: np.ndarray, effect: np.ndarray
) -> np.ndarray:
    """Return the normal forces of sliding contacts, found by enumerating all cases.

    If there are several solutions, the first applicable rule selects one of them:

    1. If all solutions are equivalent (`_alike`), the smallest one is returned.
    2. If M is a P0 matrix (see `_contradicts`), the smallest solution is returned, because a small
       compliance of the contacts would make the solution unique.
    3. If all exact solutions are equivalent, the smallest exact solution is returned.
    4. If an exact solution keeps all contacts closed, it is returned, provided that the closed
       contacts are stable (`_stable`), or that no contact would separate without forces. For
       example, a body that lies flat on the ground stays flat.

    If no rule applies, `Indeterminate` is raised.
    """
    scale = np.max(np.abs(d), initial=0.0) or 1.0
    forces, left, exact = _answers(M, d, low, high, scale)
    if not len(forces):
        problem = "no finite forces satisfy Coulomb's law (the inconsistent Painleve paradox)"
        remedy = "use soft contacts, or reduce the coefficient of friction"
        raise Inconsistent("E-CONTACT-020", problem, remedy, part="coulomb")
    if _alike(forces, left, effect, scale) or not _contradicts(M):
        return _smallest(forces)
    if exact.any() and _alike(forces[exact], left[exact], effect, scale):
        return _smallest(forces[exact])
    stays = exact & np.all(np.abs(left) <= ACCURATE * scale, axis=-1)
    if stays.any() and (np.all(d <= 0.0) or _stable(M)):
        return _smallest(forces[stays])
    what = "Painleve paradox without a unique solution"
    problem = f"{len(forces)} sets of forces satisfy Coulomb's law in this state ({what})"
    remedy = "choose one of the error's `solutions`, or use soft contacts"
    raise Indeterminate("E-CONTACT-021", problem, remedy, solutions=forces, part="coulomb")


def _answers(
    M: np.ndarray, d: np.ndarray, low: np.ndarray, high: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all solutions: normal forces z (k, n), w (k, n), and a mask of exact solutions.

    For the problem and its variables z and w, see `normal_forces`.
    """
    found, apart, exact = [], [], []
    for case in product(*((-1, 0, 1) if np.isfinite(x) else (-1, 0) for x in high)):
        side = np.array(case)
        z, on = np.where(side < 0, low, np.where(side > 0, high, 0.0)), side == 0
        right = -(d + M @ z)[on]
        z[on] = np.linalg.lstsq(M[np.ix_(on, on)], right, rcond=1e-11)[0]
        w = M @ z + d
        room = np.min(np.where(on, -np.abs(w), -side * w), initial=0.0)
        if np.all((low <= z) & (z <= high)) and room >= -ACCURATE * scale:
            found.append(z)
            apart.append(w)
            exact.append(room >= -EXACT * scale)
    n = len(d)
    return np.reshape(found, (-1, n)), np.reshape(apart, (-1, n)), np.array(exact, dtype=bool)


def _alike(forces: np.ndarray, left: np.ndarray, effect: np.ndarray, scale: float) -> bool:
    """Return True if the solutions differ only in the distribution of a load among contacts.

    In this case, all solutions have the same accelerations, or the forces of each solution do no
    work on the contact accelerations of the others.
    """
    motions = forces @ effect.T
    work = forces @ left.T - np.sum(forces * left, axis=-1)
    same = np.max(np.abs(motions - motions[0])) <= 1e-6 * scale
    return bool(same or np.all(work <= 1e-6 * scale * np.max(np.abs(forces))))


def _smallest(forces: np.ndarray) -> np.ndarray:
    return np.asarray(forces[np.argmin(np.linalg.norm(forces, axis=-1))])


def _stable(M: np.ndarray) -> bool:
    """Return True if the contacts would stay closed on slightly compliant surfaces.

    With stiffness k, penetrations x follow x'' = -k M x and grow if an eigenvalue of M is negative.
    """
    return bool(np.min(np.linalg.eigvals(M).real) >= -STABLE * np.max(np.abs(M)))


def _contradicts(M: np.ndarray) -> bool:
    """Return True if M is not a P0 matrix (Cottle, Pang and Stone 1992, section 3.4).

    A principal minor of M is then negative by more than rounding errors. This means that some
    change in the normal forces accelerates each affected contact in the direction opposite to the
    change in its own force.
    """
    unit = np.sqrt(np.maximum(np.abs(np.diagonal(M)), REACH * np.max(np.abs(M))))
    scaled = M / np.outer(unit, unit)
    some = (np.flatnonzero(case) for case in product((False, True), repeat=len(M)))
    return any(np.linalg.det(scaled[np.ix_(on, on)]) < -SINGULAR for on in some)
