"""Linear complementarity problems: Lemke's method for one, projected Gauss-Seidel for batches.

    w = M z + d,   w >= 0,   z >= 0,   w'z = 0

z are the magnitudes of contact forces, w the separation accelerations that they leave
(Featherstone 2008, Eq 11.42).
"""

from typing import Any, NamedTuple

import numpy as np

from chasles.errors import ConvergenceError, InputError

Array = Any

SLACK = 1e-11
"""The part of the largest |d|, after scaling, by which w may be negative: rounding, no penetration.
Two opposite contacts that just fit are a feasible problem, whatever the last digit of d says."""

PIVOT = 1e-11
"""Entries of a column up to this, after scaling, are zero but for rounding: no pivots."""

PENETRATE = "tolerate a little penetration, or look at the contact geometry"
"""The remedy where no forces keep contacts apart."""

TIE = 1e-12
"""Ratios nearer to each other than this, after scaling, are equal."""


class Infeasible(InputError):
    """No forces satisfy a contact problem; `ray` says why, where it is known.

    For a symmetric M without negative eigenvalues `ray` is u >= 0 with M u = 0 and d.u < 0: forces
    that move nothing, at contacts which approach each other all the same (Farkas' lemma); its
    largest entry is 1.
    """

    def __init__(self, *text: str, ray: np.ndarray | None = None, **place: Any) -> None:
        super().__init__(*text, **place)
        self.ray = ray / np.max(ray) if ray is not None and np.any(ray) else None


class Iterated(NamedTuple):
    """What an iteration found: forces (..., n), residuals (...), and how many sweeps it made.

    residual: the largest distance of a problem from its solution's conditions, in the units of d.
    """

    forces: np.ndarray
    residual: np.ndarray
    sweeps: int


def lemke(M: Array, d: Array) -> np.ndarray:
    """A basic solution z (n,) of w = M z + d, w >= 0, z >= 0, w'z = 0, by Lemke's method.

    M (n, n), d (n,). Where z > 0 the columns of M are independent: that is a basic solution. Ties
    are broken by the lexicographic rule, so that no basis comes twice (Cottle, Pang and Stone 1992,
    chapter 4). For a symmetric M without negative eigenvalues (or any that is copositive-plus) the
    method ends at a solution, or on a ray which proves that there is none: `Infeasible`. For other
    M a ray says only that none was found.
    """
    M, d = checked_problem("lemke", M, d)
    if np.all(d >= 0.0):
        return np.zeros_like(d)
    scale = scales(M)
    A, b = scale[:, None] * M * scale, scale * d
    basic = _basic(A, b / np.max(np.abs(b)) + SLACK, scale)
    z = np.zeros_like(d)
    z[basic] = np.linalg.solve(A[np.ix_(basic, basic)], -b[basic])
    return np.maximum(scale * z, 0.0)


def _basic(A: np.ndarray, b: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Which z are basic in a solution of w = A z + b.

    Variables are numbered w, z, z0 in w - A z - e z0 = b. The complement of what left the basis
    enters it until the artificial z0 has left. Each basis is inverted anew: no rounding adds up.
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
    problem = f"no end after {100 * (n + 1)} pivots"
    raise ConvergenceError("E-CONTACT-002", problem, "look for rounding in M", part="lemke")


def _least(rows: np.ndarray) -> int:
    """The number of the lexicographically least row."""
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
    """What to say where a variable can grow without end."""
    growth = np.zeros(2 * n + 1)
    growth[basis], growth[entering] = np.maximum(-step, 0.0), 1.0
    ray = scale * growth[n : 2 * n]
    contacts = ", ".join(map(str, np.flatnonzero(growth[n : 2 * n] > PIVOT)))
    problem = f"no forces keep the contacts from penetrating (secondary ray along {contacts})"
    return Infeasible("E-CONTACT-003", problem, PENETRATE, ray=ray, part="lemke")


def gauss_seidel(
    M: Array, d: Array, *, start: Array = None, sweeps: int = 1000, tolerance: float = 1e-12
) -> Iterated:
    """z of many problems w = M z + d, w >= 0, z >= 0, w'z = 0, by projected Gauss-Seidel.

    M (..., n, n), d (..., n); leading shapes broadcast, and all problems advance together. M must
    be symmetric without negative eigenvalues and with a positive diagonal. start (..., n): forces
    to begin with, such as those of the last step. It stops where every residual, the largest
    |min(w, M_ii z)|, is below `tolerance` times the largest |d| of its problem, or after `sweeps`;
    it never raises for problems without a solution, whose residual stays large.
    """
    M, d = (np.asarray(a, dtype=float) for a in (M, d))
    n = d.shape[-1] if d.ndim else -1
    if M.shape[-2:] != (n, n):
        problem = f"M {M.shape} and d {d.shape} must be (..., n, n), (..., n)"
        raise InputError("E-CONTACT-004", problem, part="gauss_seidel")
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    if not np.all(diagonal > 0.0):
        problem = "M needs a positive diagonal"
        remedy = "leave out forces without work"
        raise InputError("E-CONTACT-005", problem, remedy, part="gauss_seidel")
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
    """S that makes the diagonal of S M S one, where it is positive: (n,)."""
    diagonal = np.diagonal(M)
    return np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 1.0)


def checked_problem(name: str, M: Array, d: Array) -> tuple[np.ndarray, np.ndarray]:
    """M (n, n) and d (n,), finite; name: the function that says so."""
    M, d = (np.asarray(a, dtype=float) for a in (M, d))
    if d.ndim != 1 or M.shape != (len(d), len(d)):
        problem = f"M {M.shape} and d {d.shape} must be (n, n) and (n,)"
        raise InputError("E-CONTACT-006", problem, part=name)
    if not (np.all(np.isfinite(M)) and np.all(np.isfinite(d))):
        problem = "M and d must be finite"
        raise InputError("E-CONTACT-007", problem, "look at the state and the forces", part=name)
    return M, d
