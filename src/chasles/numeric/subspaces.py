"""Subspaces of motions and forces, and constrained bodies (Featherstone 2008, chapter 3).

Motion subspaces S (6, m) and force subspaces T (6, k) are represented by columns that span them.
Motions and forces are dual: the entries of T' S are powers. Inner products of two motions are never
computed, because they would depend on the units. If a function returns a basis of a subspace, the
choice of the basis is arbitrary.
"""

from typing import Any, NamedTuple

import numpy as np

from chasles.errors import InputError

RANK = 1e-10
"""Relative tolerance below which singular values are treated as zero."""


def span(S: Any) -> np.ndarray:
    """Return orthonormal columns that span the same subspace as S.

    Parameters
    ----------
    S : array_like, shape (n, m)
        Matrix whose columns may be linearly dependent.

    Returns
    -------
    columns : ndarray, shape (n, rank)
        Orthonormal columns.

    Raises
    ------
    InputError
        If S does not have shape (n, m), or is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import subspaces
    >>> S = np.eye(6)[:, 2:3]  # rotation about z
    >>> subspaces.span(np.hstack([S, 2.0 * S])).shape
    (6, 1)
    """
    columns = _columns("span", S)
    U, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return U[:, : _rank(sizes)]


def complement(S: Any) -> np.ndarray:
    """Return a basis T of the forces that do no work on motions in S, so that T' S = 0.

    Parameters
    ----------
    S : array_like, shape (n, m)
        Columns that span a motion subspace or a force subspace.

    Returns
    -------
    T : ndarray, shape (n, n - rank)
        Basis of the forces. If S is a force subspace, T is a basis of the motions on which these
        forces do no work (Featherstone 2008, table 3.1).

    Raises
    ------
    InputError
        If S does not have shape (n, m), or is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import subspaces
    >>> S = np.eye(6)[:, 2:3]  # rotation about z
    >>> subspaces.complement(S).shape
    (6, 5)
    """
    columns = _columns("complement", S)
    U, sizes, _ = np.linalg.svd(columns, full_matrices=True)
    return U[:, _rank(sizes) :]


def decompose(v: Any, *subspaces: Any) -> tuple[np.ndarray, ...]:
    """Return the coordinates of a vector in several subspaces (Featherstone 2008, Eq 3.24 to 3.27).

    The coordinates alpha_i satisfy v = S_1 alpha_1 + S_2 alpha_2 + ...

    Parameters
    ----------
    v : array_like, shape (n,)
        Vector.
    *subspaces : array_like, shape (n, m)
        Columns of each subspace. The whole space must be the direct sum of the subspaces.

    Returns
    -------
    coordinates : tuple of ndarray, shape (m,)
        Coordinates in each subspace.

    Raises
    ------
    InputError
        If a subspace does not have shape (n, m) or is not finite, if the space is not the direct
        sum of the subspaces, or if v does not have shape (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import subspaces
    >>> S = np.eye(6)[:, 2:3]  # rotation about z
    >>> about_z, rest = subspaces.decompose(np.arange(6.0), S, np.delete(np.eye(6), 2, axis=1))
    >>> about_z
    array([2.])
    """
    parts = [_columns("decompose", S) for S in subspaces]
    whole = np.hstack(parts)
    vector = np.asarray(v, dtype=float)
    if whole.shape[0] != whole.shape[1] or span(whole).shape[1] < len(whole):
        sizes = " + ".join(str(part.shape[1]) for part in parts)
        problem = f"subspaces with {sizes} columns do not form a basis of dimension {len(whole)}"
        remedy = "pass complementary subspaces"
        raise InputError("E-MATH-037", problem, remedy, part="decompose")
    if vector.shape != (len(whole),):
        problem = f"v must have shape ({len(whole)},), not {vector.shape}"
        raise InputError("E-MATH-038", problem, part="decompose")
    alpha = np.linalg.solve(whole, vector)
    return tuple(np.split(alpha, np.cumsum([part.shape[1] for part in parts])[:-1]))


def split_force(I: Any, S: Any, f: Any) -> tuple[np.ndarray, np.ndarray]:
    """Split f = f_a + f_c into an active force and a constraint force (Featherstone 2008, Eq 3.28).

    Parameters
    ----------
    I : array_like, shape (6, 6)
        Spatial inertia of the body.
    S : array_like, shape (6, m)
        Columns that span the allowed motions.
    f : array_like, shape (6,)
        Force on the body: moment (N m), followed by force (N).

    Returns
    -------
    f_a : ndarray, shape (6,)
        Active force, which is in the range of I S and accelerates the body along S.
    f_c : ndarray, shape (6,)
        Constraint force, which does no work on motions in S.

    Raises
    ------
    InputError
        If an array does not have the documented shape, or if S is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import subspaces
    >>> S = np.eye(6)[:, 2:3]  # rotation about z
    >>> active, constraint = subspaces.split_force(np.eye(6), S, np.ones(6))
    >>> active
    array([0., 0., 1., 0., 0., 0.])
    """
    inertia, S, f = _body("split_force", I, S, f)
    f_a = inertia @ S @ np.linalg.solve(S.T @ inertia @ S, S.T @ f)
    return f_a, f - f_a


def active_subspace(S: Any, forces: Any) -> np.ndarray:
    """Return a basis T_a of the actuator forces, scaled so that T_a' S is the identity matrix.

    Parameters
    ----------
    S : array_like, shape (6, m)
        Columns that span the allowed motions.
    forces : array_like, shape (6, m)
        Actuator forces, with one column per degree of freedom.

    Returns
    -------
    T_a : ndarray, shape (6, m)
        Active forces.

    Raises
    ------
    InputError
        If a matrix is not two-dimensional or not finite, if the number of forces is not m, or if
        the matrix S.T @ forces is singular.

    Notes
    -----
    See Featherstone (2008), Eq 3.33. An example is the force that a pinion exerts at the rim of a
    gear. This force has the same effect on the motion as a torque about the gear axis, but loads
    the bearings differently (example 3.2).

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import subspaces
    >>> S = np.eye(6)[:, 2:3]  # rotation about z
    >>> subspaces.active_subspace(S, 2.0 * S)[2]
    array([1.])
    """
    S, F = _columns("active_subspace", S), _columns("active_subspace", forces)
    work = S.T @ F
    sizes = np.linalg.svd(work, compute_uv=False)
    if work.shape[0] != work.shape[1] or _rank(sizes) < len(work):
        problem = (
            f"`forces` has {F.shape[1]} columns, and S.T @ forces has rank {_rank(sizes)}; both "
            f"numbers must equal the number of columns of S ({S.shape[1]})"
        )
        remedy = "pass as many independent actuator forces as there are degrees of freedom"
        raise InputError("E-MATH-039", problem, remedy, part="active_subspace")
    return F @ np.linalg.inv(work)


class Constrained(NamedTuple):
    """Acceleration `a` of a constrained body, and the constraint force `force` on the body.

    For a force f applied to the body, the acceleration is a = Phi f + b.
    """

    a: np.ndarray
    Phi: np.ndarray
    b: np.ndarray
    force: np.ndarray


def by_projection(I: Any, S: Any, f: Any, p: Any, c: Any) -> Constrained:
    """Solve for the acceleration of a constrained body by projection onto S.

    The inverse inertia Phi = S (S' I S)^-1 S' has rank m (Featherstone 2008, Eq 3.45 to 3.54).

    Parameters
    ----------
    I : array_like, shape (6, 6)
        Spatial inertia of the body.
    S : array_like, shape (6, m)
        Columns that span the allowed motions.
    f : array_like, shape (6,)
        Force on the body: moment (N m), followed by force (N).
    p : array_like, shape (6,)
        Bias force.
    c : array_like, shape (6,)
        Velocity-dependent acceleration.

    Returns
    -------
    result : Constrained
        Acceleration a = Phi f + b of the body, and the constraint force.

    Raises
    ------
    InputError
        If I, S or f does not have the documented shape, or if S is not finite.

    Notes
    -----
    The acceleration of the body is a = S qdd + c.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import subspaces
    >>> S = np.eye(6)[:, 2:3]  # rotation about z
    >>> subspaces.by_projection(np.eye(6), S, np.ones(6), np.zeros(6), np.zeros(6)).a
    array([0., 0., 1., 0., 0., 0.])
    """
    inertia, S, f, p, c = _body("by_projection", I, S, f, p, c)
    Phi = S @ np.linalg.solve(S.T @ inertia @ S, S.T)
    b = c - Phi @ (inertia @ c + p)
    a = Phi @ f + b
    return Constrained(a, Phi, b, inertia @ a + p - f)


def by_multipliers(I: Any, T: Any, f: Any, p: Any, c: Any) -> Constrained:
    """Solve for the acceleration of a constrained body, using Lagrange multipliers.

    The constraint force is T lam, where lam contains the multipliers (Featherstone 2008, Eq 3.55 to
    3.58).

    Parameters
    ----------
    I : array_like, shape (6, 6)
        Spatial inertia of the body.
    T : array_like, shape (6, k)
        Columns that span the constraint forces, with T' S = 0.
    f : array_like, shape (6,)
        Force on the body: moment (N m), followed by force (N).
    p : array_like, shape (6,)
        Bias force.
    c : array_like, shape (6,)
        Velocity-dependent acceleration.

    Returns
    -------
    result : Constrained
        Acceleration a = Phi f + b of the body, and the constraint force.

    Raises
    ------
    InputError
        If I, T or f does not have the documented shape, or if T is not finite.

    Notes
    -----
    The equations are [I T; T' 0] (a, -lam) = (f - p, T' c).

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import subspaces
    >>> S = np.eye(6)[:, 2:3]  # rotation about z
    >>> T = subspaces.complement(S)
    >>> found = subspaces.by_multipliers(np.eye(6), T, np.ones(6), np.zeros(6), np.zeros(6))
    >>> bool(np.allclose(found.a, S[:, 0]))
    True
    """
    inertia, T, f, p, c = _body("by_multipliers", I, T, f, p, c)
    k = T.shape[1]
    inverse = np.linalg.inv(np.block([[inertia, T], [T.T, np.zeros((k, k))]]))
    Phi, rest = inverse[:6, :6], inverse[:6, 6:]
    b = rest @ (T.T @ c) - Phi @ p
    a = Phi @ f + b
    return Constrained(a, Phi, b, inertia @ a + p - f)


def by_coordinates(I: Any, S: Any, f: Any, p: Any, c: Any) -> tuple[np.ndarray, ...]:
    """Return H, C and qdd in the equation of motion H qdd + C = S' f of a constrained body.

    The equation follows by projection onto S (Featherstone 2008, Eq 3.59 to 3.64).

    Parameters
    ----------
    I : array_like, shape (6, 6)
        Spatial inertia of the body.
    S : array_like, shape (6, m)
        Columns that span the allowed motions.
    f : array_like, shape (6,)
        Force on the body: moment (N m), followed by force (N).
    p : array_like, shape (6,)
        Bias force.
    c : array_like, shape (6,)
        Velocity-dependent acceleration.

    Returns
    -------
    H : ndarray, shape (m, m)
        Mass matrix.
    C : ndarray, shape (m,)
        Bias force.
    qdd : ndarray, shape (m,)
        Accelerations.

    Raises
    ------
    InputError
        If I, S or f does not have the documented shape, or if S is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import subspaces
    >>> S = np.eye(6)[:, 2:3]  # rotation about z
    >>> subspaces.by_coordinates(np.eye(6), S, np.ones(6), np.zeros(6), np.zeros(6))[2]
    array([1.])
    """
    inertia, S, f, p, c = _body("by_coordinates", I, S, f, p, c)
    H, C = S.T @ inertia @ S, S.T @ (inertia @ c + p)
    return H, C, np.linalg.solve(H, S.T @ f - C)


def collect(*subsystems: tuple[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Combine the equations of motion of several subsystems (Featherstone 2008, Eq 3.10).

    Parameters
    ----------
    *subsystems : pair of array_like
        For each subsystem, the pair (H, C) in the equation of motion H qdd + C = tau. H has shape
        (..., n, n), and C has shape (..., n). For a free rigid body, H is the spatial inertia
        (6, 6), and C is the bias force (6,). Batch shapes broadcast.

    Returns
    -------
    H : ndarray, shape (..., N, N)
        Block diagonal mass matrix of all subsystems.
    C : ndarray, shape (..., N)
        Bias forces of all subsystems.

    Raises
    ------
    InputError
        If the shapes of H and C do not match, or if the batch shapes of the subsystems do not
        broadcast.

    Notes
    -----
    Constraints between subsystems, which have the form T' qdd = T' c, are not included.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles.numeric import subspaces
    >>> H, C = subspaces.collect((np.eye(6), np.zeros(6)), (np.eye(2), np.zeros(2)))
    >>> H.shape, C.shape
    ((8, 8), (8,))
    """
    pairs = [(np.asarray(H, dtype=float), np.asarray(C, dtype=float)) for H, C in subsystems]
    for k, (H, C) in enumerate(pairs):
        if H.ndim < 2 or C.ndim < 1 or H.shape[-2:] != (C.shape[-1],) * 2:
            shapes = f"{H.shape} and {C.shape}"
            problem = f"subsystem {k}: H must have shape (..., n, n) and C (..., n), not {shapes}"
            raise InputError("E-MATH-348", problem, part="collect")
    try:
        lead = np.broadcast_shapes(
            *(H.shape[:-2] for H, _ in pairs), *(C.shape[:-1] for _, C in pairs)
        )
    except ValueError:
        problem = "the batch shapes of the subsystems do not broadcast"
        raise InputError("E-MATH-349", problem, part="collect") from None
    n = sum(C.shape[-1] for _, C in pairs)
    whole, bias, start = np.zeros((*lead, n, n)), np.zeros((*lead, n)), 0
    for H, C in pairs:
        own = slice(start, start + C.shape[-1])
        whole[..., own, own], bias[..., own] = H, C
        start = own.stop
    return whole, bias


def _rank(sizes: np.ndarray) -> int:
    return int(np.sum(sizes > RANK * np.max(sizes, initial=0.0)))


def _columns(function: str, S: Any) -> np.ndarray:
    columns = np.asarray(S, dtype=float)
    if columns.ndim != 2 or not np.all(np.isfinite(columns)):
        wrong = f"shape {columns.shape}" if columns.ndim != 2 else "values that are not finite"
        problem = f"the matrix must have shape (n, m) and finite values, but it has {wrong}"
        raise InputError("E-MATH-040", problem, part=function)
    return columns


def _body(function: str, I: Any, S: Any, f: Any, *more: Any) -> tuple[np.ndarray, ...]:
    inertia, columns, force = _columns(function, I), _columns(function, S), np.asarray(f, float)
    if inertia.shape != (6, 6) or len(columns) != 6 or force.shape != (6,):
        found = f"{inertia.shape}, {columns.shape} and {force.shape}"
        problem = f"I, S and f must have the shapes (6, 6), (6, m) and (6,), not {found}"
        raise InputError("E-MATH-041", problem, part=function)
    return inertia, columns, force, *(np.asarray(each, dtype=float) for each in more)
