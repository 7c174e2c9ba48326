"""Random matrices of every type, random motions, and numerical derivatives."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import expm

from chasles.expr import RULES, Arena, Program, Variable, interpret
from chasles.mathematics.homogeneous import (
    Acceleration,
    Action,
    Inertia,
    Momentum,
    Position,
    Rototranslation,
    Screw,
    Velocity,
)
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import Rotation


def vector(rng, n=3):
    return Vector(tuple(rng.normal(size=n).tolist()))


def rotation(rng):
    """Return a uniformly random rotation, all nine entries of which are nonzero."""
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    Q = Q * np.sign(np.linalg.det(Q))
    return Rotation.of(Matrix(tuple(map(tuple, Q.tolist()))))


def inertia(rng):
    """Return the inertia of 12 random point masses, the masses, and the points.

    The inertia is physically consistent and has no special entries.
    """
    masses, points = rng.uniform(0.1, 1.0, size=12), rng.normal(size=(12, 3))
    P = np.hstack([points, np.ones((12, 1))])
    J = np.einsum("k,ki,kj->ij", masses, P, P)
    K = Symmetric.of(Matrix(tuple(map(tuple, J[:3, :3].tolist()))))
    return Inertia(K, Vector(tuple(J[:3, 3].tolist())), float(J[3, 3])), masses, points


MAKE: dict[type, Callable] = {
    Position: lambda rng: Position(rotation(rng), vector(rng)),
    Rototranslation: lambda rng: Rototranslation(rotation(rng), vector(rng)),
    Velocity: lambda rng: Velocity(vector(rng), vector(rng)),
    Screw: lambda rng: Screw(vector(rng), vector(rng)),
    Acceleration: lambda rng: Acceleration(vector(rng), vector(rng), vector(rng)),
    Inertia: lambda rng: inertia(rng)[0],
    Momentum: lambda rng: Momentum(vector(rng), vector(rng)),
    Action: lambda rng: Action(vector(rng), vector(rng)),
}
"""Functions that return a random matrix of each type."""


def hat(w: Sequence[float], v: Sequence[float]) -> np.ndarray:
    """Return the matrix [w~ v; 0 0]. This implementation shares no code with the library."""
    (x, y, z), (a, b, c) = w, v
    return np.array([[0, -z, y, a], [z, 0, -x, b], [-y, x, 0, c], [0, 0, 0, 0]], dtype=float)


def moving(rng) -> Callable[[float], np.ndarray]:
    """Return a smooth random motion t -> M(t) of a body."""
    start, A, B, C = (hat(*rng.normal(size=(2, 3))) for _ in range(4))
    return lambda t: expm(start) @ expm(A * t + B * t**2) @ expm(C * t)


def rates(f: Callable[[float], np.ndarray], t: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and second derivatives by central differences of sixth order."""
    h = 2e-3 if t == 0.0 else 1e-3
    y = {k: f(t + k * h) for k in range(-3, 4)}
    first = sum(c * (y[k] - y[-k]) for k, c in ((1, 45), (2, -9), (3, 1))) / (60 * h)
    second = sum(c * (y[k] + y[-k]) for k, c in ((1, 270), (2, -27), (3, 2))) - 490 * y[0]
    return first, second / (180 * h * h)


def velocity(W: np.ndarray) -> Velocity:
    """Convert a 4x4 matrix W to a Velocity."""
    return Velocity(
        Vector.of(float(W[2, 1]), float(W[0, 2]), float(W[1, 0])), Vector(tuple(W[:3, 3].tolist()))
    )


def acceleration(H: np.ndarray, W: np.ndarray) -> Acceleration:
    """Convert a 4x4 matrix H to an Acceleration.

    An Acceleration also contains w. W is needed because H determines w only up to sign.
    """
    rate = velocity(H - W @ W)
    return Acceleration.of(velocity(W), rate)


def position(M: np.ndarray) -> Position:
    return Position.from_matrix(Matrix(tuple(map(tuple, M.tolist()))))


def traced(f: Callable[..., Sequence], *inputs: Sequence[float]) -> tuple[np.ndarray, Program]:
    """Trace a function of flat arguments; return its values at the given inputs and the program."""
    arena = Arena(RULES)
    variables = [Variable(f"x{k}", (len(x),)) for k, x in enumerate(inputs)]
    symbols = [[arena.input(v.name, k) for k in range(v.size)] for v in variables]
    entries = list(f(*symbols))
    program = Program.from_outputs("f", variables, [(Variable("y", (len(entries),)), entries)])
    values = interpret(program, {v.name: list(x) for v, x in zip(variables, inputs, strict=True)})
    return np.array(values["y"]), program


def numbers(X) -> list:
    """Return the sixteen entries of a matrix, row by row."""
    return [x for row in X.matrix().rows for x in row]
