"""Random matrices of every type, moving bodies, and their derivatives by differences."""

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
    """A uniformly random rotation, with nine numbers that are all different from zero."""
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    Q = Q * np.sign(np.linalg.det(Q))
    return Rotation.of(Matrix(tuple(map(tuple, Q.tolist()))))


def inertia(rng):
    """The inertia of a dozen random mass points: every number general, and possible."""
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
"""A random matrix of each type."""


def hat(w: Sequence[float], v: Sequence[float]) -> np.ndarray:
    """[w~ v; 0 0], written here once more: it shares nothing with the library."""
    (x, y, z), (a, b, c) = w, v
    return np.array([[0, -z, y, a], [z, 0, -x, b], [-y, x, 0, c], [0, 0, 0, 0]], dtype=float)


def moving(rng) -> Callable[[float], np.ndarray]:
    """A smooth motion t -> M(t) of a body, general in all of its derivatives."""
    start, A, B, C = (hat(*rng.normal(size=(2, 3))) for _ in range(4))
    return lambda t: expm(start) @ expm(A * t + B * t**2) @ expm(C * t)


def rates(f: Callable[[float], np.ndarray], t: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivative by central differences of sixth order."""
    h = 2e-3 if t == 0.0 else 1e-3
    y = {k: f(t + k * h) for k in range(-3, 4)}
    first = sum(c * (y[k] - y[-k]) for k, c in ((1, 45), (2, -9), (3, 1))) / (60 * h)
    second = sum(c * (y[k] + y[-k]) for k, c in ((1, 270), (2, -27), (3, 2))) - 490 * y[0]
    return first, second / (180 * h * h)


def velocity(W: np.ndarray) -> Velocity:
    """The matrix W as its type."""
    return Velocity(
        Vector.of(float(W[2, 1]), float(W[0, 2]), float(W[1, 0])), Vector(tuple(W[:3, 3].tolist()))
    )


def acceleration(H: np.ndarray, W: np.ndarray) -> Acceleration:
    """The matrix H as its type: it holds w too, whose sign H alone does not tell."""
    rate = velocity(H - W @ W)
    return Acceleration.of(velocity(W), rate)


def position(M: np.ndarray) -> Position:
    return Position.from_matrix(Matrix(tuple(map(tuple, M.tolist()))))


def traced(f: Callable[..., Sequence], *inputs: Sequence[float]) -> tuple[np.ndarray, Program]:
    """A function of flat arguments, traced on symbols and interpreted on the given numbers."""
    arena = Arena(RULES)
    variables = [Variable(f"x{k}", (len(x),)) for k, x in enumerate(inputs)]
    symbols = [[arena.input(v.name, k) for k in range(v.size)] for v in variables]
    entries = list(f(*symbols))
    program = Program.from_outputs("f", variables, [(Variable("y", (len(entries),)), entries)])
    values = interpret(program, {v.name: list(x) for v, x in zip(variables, inputs, strict=True)})
    return np.array(values["y"]), program


def numbers(X) -> list:
    """The sixteen entries of a matrix."""
    return [x for row in X.matrix().rows for x in row]
