"""Convert arrays to typed 4x4 matrices, and compute inertia matrices J and action matrices Phi."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.expr import Number, Scalar
from chasles.mathematics import homogeneous
from chasles.mathematics.homogeneous import (
    Acceleration,
    Action,
    Block,
    Inertia,
    Momentum,
    Position,
    Rototranslation,
    Screw,
    Velocity,
    action,
)
from chasles.mathematics.homogeneous.frames import Dense
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import RigidInertia

Array = Any
"""Any array_like object. Its entries may be traced symbols."""

ORIGIN = (0.0, 0.0, 0.0)

SINGULAR = 1e-14
"""Principal moments of inertia below this fraction of the largest moment count as zero."""

TOLERANCE = 1e-6
"""Tolerance for the structure of a matrix, such as its symmetry.

The tolerance admits entries that were rounded to 7 digits.
"""


def number(name: str, x: Any) -> Number:
    """Convert a number to a finite float, and return a symbol unchanged."""
    if type(x) is Scalar:
        return x
    if isinstance(x, bool | str | bytes) or np.ndim(x):
        raise ArgumentError("E-MATH-001", f"{name} must be a number, not {x!r}")
    try:
        value = float(x)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError("E-MATH-002", f"{name} must be a number, not {x!r}") from None
    if not math.isfinite(value):
        raise InputError("E-MATH-003", f"{name} must be finite, not {value}")
    return value


def numbers(name: str, x: Array, shape: tuple[int, ...]) -> list[Number]:
    """Check the shape of an array, and return its entries as a flat list of finite numbers."""
    if isinstance(x, Dense) and shape != (4, 4):
        problem = f"{name} must be an array of shape {shape}, not a {type(x).__name__}"
        raise ArgumentError("E-MATH-004", problem)
    try:
        given = np.asarray(x)
    except ValueError:
        problem = f"{name} must have shape {shape}, but its rows have different lengths"
        raise InputError("E-MATH-005", problem) from None
    if given.shape != shape:
        raise InputError("E-MATH-006", f"{name} must have shape {shape}, not {given.shape}")
    places = np.ndindex(shape)
    return [
        number(f"{name}{list(k)}", e) for k, e in zip(places, given.ravel().tolist(), strict=True)
    ]


def vector(name: str, x: Array, n: int = 3) -> Vector:
    """Convert an array to a vector of n finite numbers."""
    return Vector(tuple(numbers(name, list(x) if isinstance(x, Vector) else x, (n,))))


def direction(name: str, x: Array) -> Vector:
    """Convert an array to a nonzero vector, scaled so that its largest component is 1 or -1."""
    u = vector(name, x)
    if any(type(e) is Scalar for e in u):
        return u
    largest = max(abs(e) for e in u)
    if largest == 0.0:
        raise InputError("E-MATH-007", f"{name} must not be zero")
    return Vector(tuple(e / largest for e in u))


def matrix(name: str, x: Array, n: int = 4) -> Matrix:
    """Convert an array to an n x n matrix of finite numbers."""
    entries = numbers(name, x, (n, n))
    return Matrix(tuple(tuple(entries[n * k : n * k + n]) for k in range(n)))


def array(v: Vector | Sequence[Number]) -> np.ndarray:
    """Convert a vector to a NumPy array without negative zeros."""
    return np.array([x + 0.0 for x in v])


def typed(name: str, x: Any, *kinds: type) -> None:
    """Raise an error unless the type of x is one of `kinds`."""
    if type(x) not in kinds:
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise ArgumentError("E-MATH-008", f"{name} must be a {wanted}, not {type(x).__name__}")


def position(name: str, M: Any) -> Position:
    """Convert a 4x4 array to a Position, and return a Position unchanged."""
    if isinstance(M, Dense):
        typed(name, M, Position)
        return cast(Position, M)
    return from_array(Position, M, name=name)


def _symbolic(A: Matrix) -> bool:
    return any(type(x) is Scalar for row in A.rows for x in row)


def rotation(name: str, R: Matrix) -> Rotation:
    """Convert a 3x3 matrix to a rotation, or raise an error if it is not a rotation matrix."""
    if not _symbolic(R):
        A = np.array(R.rows, dtype=float)
        error, volume = float(np.abs(A.T @ A - np.eye(3)).max()), np.linalg.det(A)
        if error > TOLERANCE or volume < 0.0:
            problem = (
                f"not a rotation matrix (R'R differs from the identity by {error:.1e}, "
                f"and the determinant is {volume:.3g})"
            )
            raise InputError("E-MATH-009", problem, part=name)
    return Rotation.of(R)


# Typed matrices from arrays --------------------------------------------------------------------


def _pose(A: Matrix) -> tuple[Rotation, Vector]:
    return rotation("the 3x3 block", Matrix(tuple(row[:3] for row in A.rows[:3]))), _last(A)


def _twist(A: Matrix) -> tuple[Vector, Vector]:
    return Vector.of(A[2, 1], A[0, 2], A[1, 0]), _last(A)


def _last(A: Matrix) -> Vector:
    return Vector(tuple(row[3] for row in A.rows[:3]))


READERS: dict[type, tuple[Callable[[Matrix], Any], str]] = {
    Position: (lambda A: Position(*_pose(A)), "[R t; 0 0 0 1] with a rotation R"),
    Rototranslation: (lambda A: Rototranslation(*_pose(A)), "[R t; 0 0 0 1] with a rotation R"),
    Velocity: (lambda A: Velocity(*_twist(A)), "[w~ v; 0 0 0 0] with skew-symmetric w~"),
    Screw: (lambda A: Screw(*_twist(A)), "[u~ b; 0 0 0 0] with skew-symmetric u~"),
    Inertia: (lambda A: Inertia(Symmetric.of(A), _last(A), A[3, 3]), "symmetric"),
    Momentum: (lambda A: Momentum(*_twist(A)), "skew-symmetric: [c~ f; -f' 0]"),
    Action: (lambda A: Action(*_twist(A)), "skew-symmetric: [c~ f; -f' 0]"),
}
"""Conversion function and required form of the 4x4 array, for each matrix type."""

T = TypeVar("T")


def from_array(kind: type[T], A: Array, *, name: str = "the array") -> T:
    """Convert a 4x4 array to a typed matrix, for example `from_array(Velocity, A)`.

    Parameters
    ----------
    kind : type
        Type of the matrix: Position, Rototranslation, Velocity, Screw, Inertia, Momentum or Action.
    A : array_like, shape (4, 4)
        Entries of the matrix.
    name : str, optional
        Name of the array in error messages.

    Returns
    -------
    X : kind
        The matrix, which stores only its independent entries.

    Raises
    ------
    InputError
        If the array does not have shape (4, 4), is not finite, or does not have the structure of
        the type. The tolerance for the 3x3 block is 1e-6 times its largest entry. The tolerance for
        the last row is 1e-6, or 1e-6 times the largest entry of the row for types whose last row
        mirrors the last column.
    ArgumentError
        If the type is unknown or Acceleration, or if an entry is not a number. An acceleration
        array alone does not determine the sign of the angular velocity; use
        `acceleration_from_array` and pass the velocity too.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> W = hm.velocity([0.0, 0.0, 2.0], [1.0, 0.0, 0.0])
    >>> hm.six_numbers(hm.from_array(hm.Velocity, np.asarray(W)))
    array([0., 0., 2., 1., 0., 0.])
    """
    if kind is Acceleration:
        problem = (
            "an acceleration array alone does not determine the sign of the angular velocity; "
            "use acceleration_from_array and pass the velocity too"
        )
        raise ArgumentError("E-MATH-010", problem)
    if kind not in READERS:
        problem = f"`kind` must be one of {', '.join(k.__name__ for k in READERS)}"
        raise ArgumentError("E-MATH-011", problem, part=f"{kind!r}")
    rows = matrix(name, A)
    read, form = READERS[kind]
    X = read(rows)
    has_form(name, rows, X.matrix(), f"of type {kind.__name__} ({form})")
    return X


def has_form(name: str, given: Matrix, made: Matrix, form: str) -> None:
    """Raise an error unless the matrix `given` equals `made` to within `TOLERANCE`.

    `made` is built from the independent entries of `given`, so it has exactly the structure of its
    type, for example skew-symmetry. `form` describes the structure in the error message.
    """
    if _symbolic(given):
        return
    A, B = np.array(given.rows, dtype=float), np.array(made.rows, dtype=float)
    mirrored = np.abs(B[3:, :3]).max(initial=0.0)  # blocks have different units
    for part, scale in (
        (np.s_[:3, :3], np.abs(A[:3, :3]).max()),
        (np.s_[3:, :3], mirrored or 1.0),
        (np.s_[3:, 3:], 1.0),
    ):
        error = float(np.abs(A[part] - B[part]).max(initial=0.0))
        if error > TOLERANCE * scale:
            raise InputError(
                "E-MATH-012",
                f"{name} is not {form}: its entries deviate by up to {error:.1e}",
                "correct the entries of the matrix",
            )


# Masses and actions ----------------------------------------------------------------------------


class MassData(NamedTuple):
    """Mass (kg), center of mass (m), and inertia tensor (kg m2) about the center of mass."""

    mass: Number
    center: np.ndarray
    inertia: np.ndarray


def inertia_from_mass(mass: Number, center: Array, inertia: Array) -> Inertia:
    """Return the inertia matrix J of a body with a given mass, center of mass and inertia tensor.

    Parameters
    ----------
    mass : float
        Mass (kg), not negative.
    center : array_like, shape (3,)
        Center of mass (m).
    inertia : array_like, shape (6,) or (3, 3)
        Inertia tensor about the center of mass, in the axes of the frame (kg m2), or its entries
        (xx, yy, zz, xy, xz, yz).

    Returns
    -------
    J : Inertia
        Inertia matrix about the origin of the frame.

    Raises
    ------
    InputError
        If `mass` is negative, if an array has the wrong shape or is not finite, or if the tensor is
        not symmetric.
    ArgumentError
        If `mass` or an entry of an array is not a number.

    Notes
    -----
    The products of inertia are the off-diagonal entries of the tensor; jxy, for example, is minus
    the integral of x y dm. The entry of J in row 1 and column 2 is m cx cy - jxy, where m is the
    mass, and cx and cy are coordinates of the center of mass. Legnani's program uses the same sign.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> J = hm.inertia_from_mass(2.0, (0.1, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
    >>> np.asarray(J)
    array([[0.04, 0.  , 0.  , 0.2 ],
           [0.  , 0.01, 0.  , 0.  ],
           [0.  , 0.  , 0.01, 0.  ],
           [0.2 , 0.  , 0.  , 2.  ]])
    """
    m = number("mass", mass)
    if type(m) is not Scalar and m < 0.0:
        raise InputError("E-MATH-013", f"`mass` must not be negative, but is {m} kg")
    rigid = RigidInertia.from_center(m, vector("center", center), _moments(inertia))
    return Inertia.of(rigid)


def _moments(inertia: Array) -> Symmetric:
    if np.shape(inertia) == (6,):
        return Symmetric(*numbers("inertia", inertia, (6,)))
    if np.shape(inertia) != (3, 3):
        problem = f"`inertia` must have shape (6,) or (3, 3), not {np.shape(inertia)}"
        raise InputError("E-MATH-014", problem, "pass xx, yy, zz, xy, xz, yz or the 3x3 tensor")
    given = matrix("inertia", inertia, 3)
    moments = Symmetric.of(given)
    has_form("inertia", given, moments.matrix(), "symmetric")
    return moments


def mass_from_inertia(J: Inertia) -> MassData:
    """Return the mass, center of mass and inertia tensor from J (inverse of `inertia_from_mass`).

    Parameters
    ----------
    J : Inertia
        Inertia matrix.

    Returns
    -------
    data : MassData
        Fields mass (kg), center (m, shape (3,)) and inertia (kg m2, shape (3, 3)).

    Raises
    ------
    ArgumentError
        If J is not an Inertia.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> J = hm.inertia_from_mass(2.0, (0.1, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
    >>> hm.mass_from_inertia(J).center
    array([0.1, 0. , 0. ])
    """
    typed("J", J, Inertia)
    m, c, I = J.rigid().about_center()
    return MassData(m, array(c), np.array([array(row) for row in I.matrix().rows]))


def action_from_force(force: Array, couple: Array = ORIGIN, point: Array = ORIGIN) -> Action:
    """Return the action matrix Phi of a couple and a force applied at a point.

    Parameters
    ----------
    force : array_like, shape (3,)
        Force (N).
    couple : array_like, shape (3,), optional
        Couple (N m). Default: zero.
    point : array_like, shape (3,), optional
        Point of application of the force (m). Default: the origin.

    Returns
    -------
    Phi : Action
        Action matrix, with the moment about the origin of the frame.

    Raises
    ------
    ArgumentError
        If an entry of an array is not a number.
    InputError
        If an array does not have shape (3,), or is not finite.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> hm.six_numbers(hm.action_from_force([0.0, 0.0, 5.0], point=[1.0, 0.0, 0.0]))
    array([ 0., -5.,  0.,  0.,  0.,  5.])
    """
    f, c, p = vector("force", force), vector("couple", couple), vector("point", point)
    return Action(c + p.cross(f), f)


def gravity(g: Array = (0.0, 0.0, -9.81)) -> Acceleration:
    """Return the gravitational acceleration matrix Hg.

    Parameters
    ----------
    g : array_like, shape (3,), optional
        Gravitational acceleration (m/s2). Default: (0, 0, -9.81).

    Returns
    -------
    Hg : Acceleration
        Acceleration matrix.

    Raises
    ------
    ArgumentError
        If an entry of `g` is not a number.
    InputError
        If `g` does not have shape (3,), or is not finite.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> hm.linear_part(hm.gravity())
    array([ 0.  ,  0.  , -9.81])
    """
    return Acceleration.uniform(vector("g", g))


def weight(J: Inertia, Hg: Acceleration) -> Action:
    """Return the action of gravity on a body, skew(Hg J), with J and Hg in the same frame.

    Parameters
    ----------
    J : Inertia
        Inertia matrix of the body.
    Hg : Acceleration
        Gravitational acceleration, from `gravity`.

    Returns
    -------
    Phi : Action
        Weight (N), and its moment about the origin of the frame (N m).

    Raises
    ------
    ArgumentError
        If an argument does not have the documented type.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> J = hm.inertia_from_mass(2.0, (0.1, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
    >>> hm.six_numbers(hm.weight(J, hm.gravity())).round(3)
    array([  0.   ,   1.962,   0.   ,   0.   ,   0.   , -19.62 ])
    """
    return action(Hg, J)


def velocity_from_momentum(Gamma: Momentum, J: Inertia) -> Velocity:
    """Solve Gamma = skew(W J) for the velocity W of a body (Legnani et al. 1996, Eq I.26).

    Parameters
    ----------
    Gamma : Momentum
        Momentum of the body.
    J : Inertia
        Inertia of the body, in the same frame as Gamma.

    Returns
    -------
    W : Velocity
        Velocity, in the same frame.

    Raises
    ------
    InputError
        If the equations are singular, because the mass is zero, or because a principal moment of
        inertia about the center of mass is zero.
    ArgumentError
        If an argument does not have the documented type.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> J = hm.inertia_from_mass(2.0, (0.1, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
    >>> W = hm.velocity([0.0, 0.0, 2.0], [1.0, 0.0, 0.0])
    >>> hm.six_numbers(hm.velocity_from_momentum(hm.momentum(W, J), J)).round(9)
    array([0., 0., 2., 1., 0., 0.])
    """
    _check_solid(J)
    return homogeneous.velocity_from_momentum(Gamma, J)


def acceleration_from_action(Phi: Action, J: Inertia, W: Velocity) -> Acceleration:
    """Solve Phi = skew(H J) for the acceleration H of a body (Legnani et al. 1996, Eq I.25).

    Parameters
    ----------
    Phi : Action
        Action on the body.
    J : Inertia
        Inertia of the body.
    W : Velocity
        Velocity of the body, which determines the velocity-dependent terms of H.

    Returns
    -------
    H : Acceleration
        Acceleration. All matrices are in the same frame.

    Raises
    ------
    InputError
        If the equations are singular, as in `velocity_from_momentum`.
    ArgumentError
        If an argument does not have the documented type.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> J = hm.inertia_from_mass(2.0, (0.0, 0.0, 0.0), (0.02, 0.03, 0.03, 0, 0, 0))
    >>> Phi = hm.action_from_force([4.0, 0.0, 0.0])
    >>> H = hm.acceleration_from_action(Phi, J, hm.Velocity.zero())
    >>> hm.linear_part(H)
    array([2., 0., 0.])
    """
    _check_solid(J)
    return homogeneous.acceleration_from_action(Phi, J, W)


def _check_solid(J: Inertia) -> None:
    """Raise an error if the mass or a principal moment is zero. Symbols are not checked."""
    typed("J", J, Inertia)
    m, _, I = J.rigid().about_center()
    if type(m) is Scalar or any(type(x) is Scalar for x in I):
        return
    moments = np.linalg.eigvalsh(np.array(I.matrix().rows, dtype=float))
    if not m > 0.0 or not moments[0] > SINGULAR * moments[2]:
        problem = f"J is singular: mass {m:g}, principal moments of inertia {moments.round(12)}"
        raise InputError(
            "E-MATH-042", problem, "use a body with positive mass and positive principal moments"
        )


def skew(X: Any) -> np.ndarray:
    """Return the skew-symmetric matrix X - X', such as Gamma = skew(W J) or Phi = skew(H J).

    Parameters
    ----------
    X : array_like or typed matrix, shape (4, 4)
        Matrix.

    Returns
    -------
    A : ndarray, shape (4, 4)
        Skew-symmetric matrix.

    Raises
    ------
    ArgumentError
        If an entry of an array is not a number.
    InputError
        If an array does not have shape (4, 4), or is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> hm.skew(np.diag([1.0, 1.0, 1.0], k=1))
    array([[ 0.,  1.,  0.,  0.],
           [-1.,  0.,  1.,  0.],
           [ 0., -1.,  0.,  1.],
           [ 0.,  0., -1.,  0.]])
    """
    A = X.matrix() if isinstance(X, Block) else matrix("X", X)
    return np.array([array(row) for row in (A - A.T).rows])


def pseudo_product(Phi: Action | Momentum, X: Velocity | Screw) -> Number:
    """Return the pseudo scalar product Phi (x) X, which is a power or a generalized force.

    Parameters
    ----------
    Phi : Action or Momentum
        Action (N m, N), or a momentum.
    X : Velocity or Screw
        Velocity or screw axis, in the same frame.

    Returns
    -------
    value : float
        Power (W) if X is a velocity, or generalized force (N m or N) if X is a screw.

    Raises
    ------
    ArgumentError
        If an argument does not have the documented type.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> Phi = hm.action_from_force([0.0, 2.0, 0.0], point=[0.5, 0.0, 0.0])
    >>> float(hm.pseudo_product(Phi, hm.joint_screw("revolute")))
    1.0
    """
    typed("Phi", Phi, Action, Momentum)
    return Phi.pseudo(X)


_PARTED = (Velocity, Screw, Acceleration, Momentum, Action, Block)
"""Matrix types that have an angular and a linear part."""


def angular_part(X: Dense) -> np.ndarray:
    """Return the angular part of a matrix, such as w for a velocity W.

    This function is called m4v3 in Mitra's paper (docs/mitra.md).

    Parameters
    ----------
    X : Velocity, Screw, Acceleration, Momentum, Action or Block
        Matrix.

    Returns
    -------
    x : ndarray, shape (3,)
        Angular velocity (rad/s), axis, angular acceleration (rad/s2), angular momentum (kg m2/s) or
        couple (N m).

    Raises
    ------
    ArgumentError
        If X is not a matrix with an angular and a linear part.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> hm.angular_part(hm.joint_velocity("revolute", 2.0))
    array([0., 0., 2.])
    """
    typed("X", X, *_PARTED)
    return array(homogeneous.angular(X))


def linear_part(X: Dense) -> np.ndarray:
    """Return the linear part of a matrix (its last column), such as v for a velocity W.

    Parameters
    ----------
    X : Velocity, Screw, Acceleration, Momentum, Action or Block
        Matrix.

    Returns
    -------
    x : ndarray, shape (3,)
        Velocity (m/s) or acceleration (m/s2) of the pole (the point of the body at the origin),
        linear momentum (kg m/s), force (N), or the vector b of a screw.

    Raises
    ------
    ArgumentError
        If X is not a matrix with an angular and a linear part.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> hm.linear_part(hm.joint_velocity("prismatic", 2.0))
    array([0., 0., 2.])
    """
    typed("X", X, *_PARTED)
    return array(homogeneous.linear(X))


def six_numbers(X: Dense) -> np.ndarray:
    """Return the angular part of a matrix, followed by the linear part.

    This function is called m4v6 in Mitra's paper (docs/mitra.md).

    Parameters
    ----------
    X : Velocity, Screw, Acceleration, Momentum, Action or Block
        Matrix.

    Returns
    -------
    x : ndarray, shape (6,)
        The six independent entries.

    Raises
    ------
    ArgumentError
        If X is not a matrix with an angular and a linear part.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> hm.six_numbers(hm.joint_velocity("helical", 2.0, pitch=0.1))
    array([0. , 0. , 2. , 0. , 0. , 0.2])
    """
    typed("X", X, *_PARTED)
    return array((*homogeneous.angular(X), *homogeneous.linear(X)))


def velocity_from_six(x: Array) -> Velocity:
    """Return the velocity matrix W from (wx, wy, wz, vx, vy, vz).

    This function is called v6m4 in Mitra's paper (docs/mitra.md).

    Parameters
    ----------
    x : array_like, shape (6,)
        Angular velocity (rad/s), then velocity (m/s) of the pole (the point of the body at the
        origin), as in `robot.frame_velocity`.

    Returns
    -------
    W : Velocity
        Velocity matrix.

    Raises
    ------
    ArgumentError
        If an entry of `x` is not a number.
    InputError
        If `x` does not have shape (6,), or is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from chasles import homogeneous as hm
    >>> np.asarray(hm.velocity_from_six([0.0, 0.0, 1.0, 2.0, 0.0, 0.0]))
    array([[ 0., -1.,  0.,  2.],
           [ 1.,  0.,  0.,  0.],
           [ 0.,  0.,  0.,  0.],
           [ 0.,  0.,  0.,  0.]])
    """
    six = vector("x", x, 6).entries
    return Velocity(Vector(six[:3]), Vector(six[3:]))


def three_numbers(P: Array) -> np.ndarray:
    """Return (x, y, z) for a point (x, y, z, 1) or a direction (x, y, z, 0).

    This function is called v4v3 in Mitra's paper (docs/mitra.md).

    Parameters
    ----------
    P : array_like, shape (4,)
        Homogeneous coordinates.

    Returns
    -------
    p : ndarray, shape (3,)
        The first three coordinates.

    Raises
    ------
    ArgumentError
        If an entry of P is not a number.
    InputError
        If P does not have shape (4,), or is not finite.

    Examples
    --------
    >>> from chasles import homogeneous as hm
    >>> hm.three_numbers([1.0, 2.0, 3.0, 1.0])
    array([1., 2., 3.])
    """
    return array(vector("P", P, 4).entries[:3])
