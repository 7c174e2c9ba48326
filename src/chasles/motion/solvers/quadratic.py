"""Quadratic programs by DAQP and cone programs by Clarabel (extra `contact`).

The quadratic programs, in forces or accelerations, have the solutions of the complementarity
problem (Featherstone 2008, Eq 11.43 and 11.44). The one in accelerations is Gauss' principle of
least constraint: strictly convex whatever the contacts, so the better one where more contacts touch
than there are freedoms.
"""

from importlib import import_module
from typing import Any

import numpy as np
import scipy

from chasles.errors import ConvergenceError, InputError, MissingPackageError
from chasles.motion.solvers.complementarity import (
    PENETRATE,
    Array,
    Infeasible,
    checked_problem,
    scales,
)

OPTIMAL, INFEASIBLE = 1, -1
"""Exit flags of DAQP."""

PROXIMAL = 1e-4
"""The weight of DAQP's proximal term, beside a diagonal of ones: it makes steps unique where M is
singular, and vanishes as they converge. Of 1e-3 to 1e-6, this one found every unbounded program
within DAQP's limit of iterations."""

SETTLED = 1e-12
"""How little a proximal step changes z, beside a largest |d| of one, where it ends."""

TOLERANCE = 1e-10
"""To which DAQP satisfies bounds, beside a largest entry of one."""

CLARABEL = 1e-10
"""Tolerances of Clarabel; with less it may not end."""

CERTAIN = 1e-6
"""How far from zero A u may be beside b.u = -1, where u proves that a problem has no solution."""


def forces_program(M: Array, d: Array) -> np.ndarray:
    """The z (n,) that minimises z'M z / 2 + z'd over z >= 0 (Featherstone 2008, Eq 11.43).

    M (n, n) symmetric without negative eigenvalues, d (n,). The same z as the complementarity
    problem has; any of them where M is singular. A program without a minimum is `Infeasible`.
    """
    M, d = checked_problem("forces_program", M, d)
    if np.all(d >= 0.0):
        return np.zeros_like(d)
    scale = scales(M)
    A, b = scale[:, None] * M * scale, scale * d
    size = np.max(np.abs(b))
    n = len(d)
    z, _, flag = solve_quadratic(A, b / size, np.zeros((0, n)), np.zeros(n), proximal=PROXIMAL)
    if flag != OPTIMAL and (ray := _ray(A, b / size)) is not None:
        problem = "the program is unbounded: no forces keep the contacts from penetrating"
        raise Infeasible(
            "E-CONTACT-054", problem, PENETRATE, ray=scale * ray, part="forces_program"
        )
    if flag != OPTIMAL:
        problem = f"DAQP gives up (exit flag {flag})"
        raise ConvergenceError("E-CONTACT-055", problem, "use lemke", part="forces_program")
    return scale * size * _polished(A, b / size, np.maximum(z, 0.0))


def _polished(A: np.ndarray, b: np.ndarray, z: np.ndarray) -> np.ndarray:
    """z without what the proximal term left: the same forces act, and their w vanish exactly."""
    acting = z > 0.0
    exact = z.copy()
    step = np.linalg.lstsq(A[np.ix_(acting, acting)], -(A @ z + b)[acting], rcond=1e-12)[0]
    exact[acting] += step
    return exact if np.all(exact >= 0.0) else z


def _ray(A: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """u >= 0 with A u = 0 and b.u < 0, or None where there is none.

    By Farkas' lemma that is where A'x + b >= 0 has no solution x.
    """
    u, miss = scipy.optimize.nnls(np.vstack([A, b]), np.append(np.zeros(len(A)), -1.0))
    return u if miss < CERTAIN else None


def accelerations_program(
    H: Array, force: Array, T: Array, bias: Array
) -> tuple[np.ndarray, np.ndarray]:
    """qdd (n,) nearest to the free motion H^-1 force with T' qdd + bias >= 0, and forces (nc,).

    Nearest by (qdd - H^-1 force)' H (qdd - H^-1 force): Gauss' principle (Eq 11.44). H (n, n) the
    mass matrix, force (n,) that of everything but contacts, T (n, nc) the normals, bias (nc,). The
    forces are the multipliers: H qdd = force + T forces. Without a qdd it is `Infeasible`.
    """
    H, force = checked_problem("accelerations_program", H, force)
    T, bias = (np.asarray(a, dtype=float) for a in (T, bias))
    if bias.ndim != 1 or T.shape != (len(force), len(bias)):
        problem = f"T {T.shape} and bias {bias.shape} must be ({len(force)}, nc) and (nc,)"
        raise InputError("E-CONTACT-056", problem, part="accelerations_program")
    L = np.linalg.cholesky(H)
    free = np.linalg.solve(L, force)
    rows = np.linalg.solve(L, T).T  # of x = L' (qdd - H^-1 force), whose length is least
    norms = np.linalg.norm(rows, axis=-1)
    d = rows @ free + bias
    if np.all(d >= 0.0):
        return np.linalg.solve(L.T, free), np.zeros_like(d)
    size = np.max(np.abs(d / norms))
    x, multipliers, flag = solve_quadratic(
        np.eye(len(force)), np.zeros(len(force)), rows / norms[:, None], -d / norms / size
    )
    if flag == INFEASIBLE:
        problem = "the program is infeasible: no accelerations keep the contacts from penetrating"
        part = "accelerations_program"
        raise Infeasible("E-CONTACT-057", problem, PENETRATE, ray=_ray(T, bias), part=part)
    if flag != OPTIMAL:
        problem = f"DAQP gives up (exit flag {flag})"
        raise ConvergenceError("E-CONTACT-058", problem, "use lemke", part="accelerations_program")
    return np.linalg.solve(L.T, free + size * x), size * multipliers / norms


def solve_quadratic(
    H: np.ndarray, f: np.ndarray, A: np.ndarray, lower: np.ndarray, *, proximal: float = 0.0
) -> tuple[np.ndarray, np.ndarray, int]:
    """x that minimises x'H x / 2 + f'x with A x >= lower, its multipliers, DAQP's exit flag.

    Where A has no rows the bounds are those of x itself. x means something only if the flag is
    `OPTIMAL`; the multipliers are >= 0.
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


def cones_program(P: np.ndarray, c: np.ndarray, rows: list[np.ndarray]) -> np.ndarray:
    """The x that minimises x'P x / 2 + x'c, each block of rows times its part of x in a cone.

    Clarabel's second-order cone is first entry >= length of the others; a block of 1 is a ray.
    """
    clarabel = optional("clarabel")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = CLARABEL
    solution = clarabel.DefaultSolver(
        scipy.sparse.csc_matrix(np.triu(P)),
        c,
        scipy.sparse.csc_matrix(-scipy.linalg.block_diag(*rows)),
        np.zeros(len(c)),
        [
            clarabel.SecondOrderConeT(len(k)) if len(k) > 1 else clarabel.NonnegativeConeT(1)
            for k in rows
        ],
        settings,
    ).solve()
    status = str(solution.status)
    if status in ("DualInfeasible", "AlmostDualInfeasible"):
        problem = "the program is unbounded: no forces keep the contacts from penetrating"
        raise Infeasible("E-CONTACT-008", problem, PENETRATE, part="cone_program")
    if status not in ("Solved", "AlmostSolved"):
        problem = f"Clarabel found no solution ({status})"
        raise ConvergenceError("E-CONTACT-009", problem, part="cone_program")
    return np.array(solution.x)


def optional(package: str) -> Any:
    """A solver that is installed with the extra `contact`."""
    try:
        return import_module(package)
    except ImportError:
        problem = f"this contact law needs the package {package!r}: pip install 'chasles[contact]'"
        raise MissingPackageError("E-CONTACT-059", problem) from None
