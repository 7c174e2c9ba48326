"""Compare rigid-body tensors (Balafoutis and Patel 1991, chapter 4) with NumPy.

The tolerance 1e-13 is the rounding of a few dozen operations on values near one. Central
differences of fourth order with a step of 1e-3 have errors of 1e-8, and second differences of 1e-6.
"""

import itertools

import numpy as np
import pytest
import scipy.linalg
from support import close

from chasles.expr import RULES, Arena, Program, Variable
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import matrix_from_vector
from chasles.mathematics.tensor import (
    AngularAcceleration,
    Center,
    angular_momentum,
    angular_velocity,
    dual,
    euler_about,
    euler_from_inertia,
    inertia_about,
    inertia_from_euler,
    inertia_rate,
    point_mass,
    vect,
)

ROUNDING = 1e-13


def vector(v) -> Vector:
    return Vector(tuple(np.asarray(v, dtype=float).tolist()))


def tensor(T) -> Matrix:
    return Matrix(tuple(map(tuple, np.asarray(T, dtype=float).tolist())))


def array(x) -> np.ndarray:
    x = x.matrix() if isinstance(x, Symmetric) else x
    return np.array(x.rows if isinstance(x, Matrix) else list(x), dtype=float)


def t(v) -> np.ndarray:
    return array(dual(vector(v)))


@pytest.fixture(params=range(5))
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(request.param)


def cloud(rng) -> tuple[np.ndarray, np.ndarray]:
    """Return the masses and positions of the points of a random body."""
    return rng.uniform(0.1, 1.0, size=8), rng.normal(size=(8, 3))


def moments(masses, places) -> tuple[Symmetric, Symmetric]:
    """Return I and J of points about the origin, from their definitions."""
    J = np.einsum("n,ni,nj->ij", masses, places, places)
    I = sum(-m * t(r) @ t(r) for m, r in zip(masses, places, strict=True))
    return Symmetric.of(tensor(I)), Symmetric.of(tensor(J))


def motion(rng):
    """Return the rotation R(s) of a body that rotates as exp(a s + b s^2)."""
    a, b = rng.normal(size=(2, 3))

    def R(s: float) -> np.ndarray:
        return array(matrix_from_vector(vector(a * s + b * s * s)))

    return R


def differences(f, h: float = 1e-3):
    """Return f(1) and its first and second derivatives, by differences of fourth order."""
    values = {k: f(1.0 + k * h) for k in range(-2, 3)}
    first = (8 * (values[1] - values[-1]) - (values[2] - values[-2])) / (12 * h)
    second = 16 * (values[1] + values[-1]) - (values[2] + values[-2]) - 30 * values[0]
    return values[0], first, second / (12 * h * h)


def test_spin(rng) -> None:
    """Theorems 4.1 and 4.2 hold: Rd R' = w~ is skew, and Rdd R' = wd~ + w~ w~.

    vect(Rdd R') is wd.
    """
    R = motion(rng)
    value, rate, second = differences(R)
    spin = array(angular_velocity(tensor(value), tensor(rate)))
    close(spin, -spin.T, 1e-8)
    w = vect(tensor(spin))

    def w_of(s: float) -> np.ndarray:
        h = 1e-3
        ahead, behind = R(s + h), R(s - h)
        further = 8 * (ahead - behind) - (R(s + 2 * h) - R(s - 2 * h))
        return array(vect(tensor(further / (12 * h) @ R(s).T)))

    wd = vector(differences(w_of)[1])
    Omega = AngularAcceleration(w, wd)
    close(array(Omega.tensor), second @ value.T, 1e-6)
    close(array(vect(Omega.tensor)), array(wd), ROUNDING)
    r = rng.normal(size=3)
    close(array(Omega @ vector(r)), t(wd) @ r + t(w) @ t(w) @ r, ROUNDING)


@pytest.mark.parametrize("n", [2, 4, 5])
def test_spin_of_any_dimension(rng, n: int) -> None:
    """Qd Q' is skew for every orthogonal Q (theorem 4.1)."""
    A, B = (X - X.T for X in rng.normal(size=(2, n, n)))
    Q, rate, _ = differences(lambda s: scipy.linalg.expm(A * s + B * s * s), 1e-4)
    spin = array(angular_velocity(tensor(Q), tensor(rate)))
    close(spin, -spin.T, 1e-8)


def test_points_of_a_body(rng) -> None:
    """A point has velocity sd + w~ r and acceleration sdd + Omega r (4.2.15)-(4.2.24)."""
    R, (a, b, c), r = motion(rng), rng.normal(size=(3, 3)), rng.normal(size=3)
    s, sd, sdd = differences(lambda x: a + b * x + c * x * x)
    turn, rate, second = differences(R)
    point, velocity, acceleration = differences(lambda x: a + b * x + c * x * x + R(x) @ r)
    w = vect(angular_velocity(tensor(turn), tensor(rate)))
    wd = vect(tensor(second @ turn.T))
    close(velocity, sd + t(w) @ (point - s), 1e-8)
    arm = AngularAcceleration(w, wd) @ vector(point - s)
    close(acceleration, sdd + array(arm), 1e-6)


def test_momentum_and_torque_about_another_point(rng) -> None:
    """L_o = L_c + r x m v and M_o = M_c + r x m a equal sums over points.

    Source: (4.3.20)-(4.3.22) and (4.3.33)-(4.3.36).
    """
    masses, places = cloud(rng)
    w, wd, v, a = rng.normal(size=(4, 3))
    m = float(masses.sum())
    r = masses @ places / m
    _, Jc = moments(masses, places - r)
    Omega = AngularAcceleration(vector(w), vector(wd))
    O = array(Omega.tensor)
    velocities = v + np.cross(w, places - r)
    accelerations = a + (places - r) @ O.T
    L = array(angular_momentum(vector(w), Jc)) + np.cross(r, m * v)
    M = array(Omega.moment(Jc)) + np.cross(r, m * a)
    close(L, masses @ np.cross(places, velocities), ROUNDING)
    close(M, masses @ np.cross(places, accelerations), ROUNDING)


def test_inertia_and_euler_tensors(rng) -> None:
    """(4.3.3)-(4.3.14) hold: sums over points, conversions, and parallel axes."""
    masses, places = cloud(rng)
    I, J = moments(masses, places)
    close(array(euler_from_inertia(I)), array(J), ROUNDING)
    close(array(inertia_from_euler(J)), array(I), ROUNDING)
    m = float(masses.sum())
    r = masses @ places / m
    Ic, Jc = moments(masses, places - r)
    close(array(inertia_about(Ic, m, vector(r))), array(I), ROUNDING)
    close(array(euler_about(Jc, m, vector(r))), array(J), ROUNDING)
    rigid = point_mass(m, vector(r))
    close(array(rigid.I), -m * t(r) @ t(r), ROUNDING)
    about = Center.of(type(rigid)(m, vector(m * r), I))
    close(array(about.r), r, ROUNDING)
    close(array(about.I), array(Ic), 1e-12)
    assert Center.of(type(rigid)(0.0, Vector.zero(), I)) == Center(0.0, Vector.zero(), I)


def test_rates(rng) -> None:
    """dI/dt = w~ I - I w~ (4.3.16), and dJ/dt = -dI/dt by the same formula (4.3.19)."""
    I, J = moments(*cloud(rng))
    R = motion(rng)
    value, rate, _ = differences(R)
    w = vect(tensor(rate @ value.T))
    for A in (array(I), array(J)):
        turned, slope, _ = differences(lambda s, A=A: R(s) @ A @ R(s).T)
        close(array(inertia_rate(w, Symmetric.of(tensor(turned)))), slope, 1e-8)
    opposite = -array(inertia_rate(w, J))
    close(array(inertia_rate(w, inertia_from_euler(J))), opposite, ROUNDING)


def test_momentum_and_torque_tensors(rng) -> None:
    """Theorems 4.4 and 4.5, (4.3.23)-(4.3.44), agree with the vector forms, for I and J."""
    (I, J), (w, wd) = moments(*cloud(rng)), rng.normal(size=(2, 3))
    i, j = array(I), array(J)
    L = array(angular_momentum(vector(w), J))
    close(L, i @ w, ROUNDING)
    close(L, np.trace(j) * w - j @ w, ROUNDING)
    close(t(L), j @ t(w) + t(w) @ j, ROUNDING)
    close(t(L), (t(w) @ i).T - t(w) @ i + np.trace(i) * t(w), ROUNDING)
    Omega = AngularAcceleration(vector(w), vector(wd))
    M = array(Omega.moment(J))
    close(array(Omega.moment_of(J)), M, ROUNDING)
    O = array(Omega.tensor)
    close(M, i @ wd + np.cross(w, i @ w), ROUNDING)
    close(M, np.trace(j) * wd - j @ wd - t(w) @ j @ w, ROUNDING)
    close(t(M), O @ j - (O @ j).T, ROUNDING)
    close(t(M), (O @ i).T - O @ i + np.trace(i) * t(wd), ROUNDING)
    close(M, 2 * array(vect(tensor(O @ j))), ROUNDING)


# Counts ----------------------------------------------------------------------------------------


class Symbols:
    """Source of new symbols, and counter of the operations on them."""

    def __init__(self) -> None:
        self.arena, self.number = Arena(RULES), itertools.count()

    def new(self, n: int) -> tuple:
        return tuple(self.arena.input("x", next(self.number)) for _ in range(n))

    def count(self, *vectors) -> tuple[int, int]:
        entries = [x for v in vectors for x in v]
        inputs = [Variable("x", (next(self.number),))]
        outputs = [(Variable("y", (len(entries),)), entries)]
        count = Program.from_outputs("f", inputs, outputs).count
        return count.multiplications, count.additions


def test_one_body_by_vectors_takes_45_and_33() -> None:
    """Counts of section 4.3: acceleration 18M 15A, Euler's equation 24M 18A, m a 3M."""
    s = Symbols()
    w, wd, r, sdd = (Vector(s.new(3)) for _ in range(4))
    m, I = s.new(1)[0], Symmetric(*s.new(6))
    a = sdd + wd.cross(r) + w.cross(w.cross(r))
    M = I @ wd + w.cross(I @ w)
    assert s.count(a) == (18, 15)
    assert s.count(M) == (24, 18)
    assert s.count(a * m, M) == (45, 33)


def test_one_body_by_tensors_takes_27_and_24() -> None:
    """Counts for a known Omega: acceleration 9M 9A, moment 15M 15A, m a 3M.

    Omega itself takes 6M 9A.
    """
    s = Symbols()
    Omega = AngularAcceleration(Vector(s.new(3)), Vector(s.new(3)))
    r, sdd, m, J = Vector(s.new(3)), Vector(s.new(3)), s.new(1)[0], Symmetric(*s.new(6))
    rows = [Vector(row) for row in Omega.tensor.rows]
    assert s.count(*rows) == (6, 9)

    def beside_omega(*vectors: Vector) -> tuple[int, int]:
        M, A = s.count(*rows, *vectors)
        return M - 6, A - 9

    a = sdd + Omega @ r
    assert beside_omega(a) == (9, 9)
    assert beside_omega(Omega.moment(J)) == (15, 15)
    assert beside_omega(a * m, Omega.moment(J)) == (27, 24)


def test_a_body_with_principal_axes_needs_no_entry_of_omega() -> None:
    """The moment takes three products of w, six with constants, and three additions.

    Two equal principal moments save two products and one addition.
    """
    for diagonal, expected in (((0.5, 0.7, 0.2), (9, 3)), ((0.4, 0.4, 0.1), (7, 2))):
        s = Symbols()
        Omega = AngularAcceleration(Vector(s.new(3)), Vector(s.new(3)))
        assert s.count(Omega.moment_of(Symmetric(*diagonal, 0.0, 0.0, 0.0))) == expected
