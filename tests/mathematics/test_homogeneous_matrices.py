"""Compare Legnani's matrices with 4x4 products, Newton-Euler equations, and spatial vectors."""

import numpy as np
import pytest
from homogeneous_random import (
    MAKE,
    acceleration,
    hat,
    inertia,
    moving,
    numbers,
    position,
    rates,
    traced,
    vector,
    velocity,
)
from support import close, raises

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
    kinetic_energy,
    momentum,
    potential_energy,
)
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.spatial import Motion

EXACT = 2e-14  # rounding of a few dozen operations on values near one
FRAMED = [t for t in MAKE if t is not Position]
BY_TRANSPOSE = (Inertia, Momentum, Action)


@pytest.fixture(params=range(3))
def rng(request):
    return np.random.default_rng(request.param)


# Frames ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FRAMED)
def test_change_of_frame(kind, rng):
    """Changes of frame, in both directions, are M X M^-1 (Eq I.8, I.9) or M X M' (Eq I.17)."""
    M, X = MAKE[Position](rng), MAKE[kind](rng)
    m = np.asarray(M)
    right = m.T if kind in BY_TRANSPOSE else np.linalg.inv(m)
    there = M.to_first(X)
    assert type(there) is kind
    close(there, m @ np.asarray(X) @ right, EXACT)
    close(M.to_second(there), X, EXACT)
    close(M.to_second(X), np.linalg.inv(m) @ np.asarray(X) @ np.linalg.inv(right), EXACT)


def test_positions_compose_and_invert(rng):
    M, N, p = MAKE[Position](rng), MAKE[Position](rng), vector(rng)
    close(M @ N, np.asarray(M) @ np.asarray(N), EXACT)
    close(M.inverse(), np.linalg.inv(M), EXACT)
    close([*(M @ p), 1.0], np.asarray(M) @ [*p, 1.0], EXACT)
    close(Position.of(M.transform()), M, EXACT)
    close(Position.from_matrix(M.matrix()), M, EXACT)


def test_rototranslation_between_two_positions(rng):
    """Eq I.3 to I.5 hold: Q M01 = M02, and Q expressed in frame 1 or 2 is M12."""
    M1, M2, p = MAKE[Position](rng), MAKE[Position](rng), vector(rng)
    Q = Rototranslation.between(M1, M2)
    close(Q, np.asarray(M2) @ np.linalg.inv(M1), EXACT)
    close(Q @ M1, M2, EXACT)
    close(Q @ Q, np.asarray(Q) @ np.asarray(Q), EXACT)
    close([*(Q @ p), 1.0], np.asarray(Q) @ [*p, 1.0], EXACT)
    M12 = M1.inverse() @ M2
    close(M1.to_second(Q), M12, EXACT)
    close(M2.to_second(Q), M12, EXACT)


# Products --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (left, right)
        for left in (Velocity, Screw, Acceleration)
        for right in (Position, Inertia, Velocity, Screw)
        if not (left is Acceleration and right in (Velocity, Screw))
    ],
)
def test_products(left, right, rng):
    X, Y = MAKE[left](rng), MAKE[right](rng)
    product = X @ Y
    assert type(product) is Block
    last = np.zeros(4) if right is not Inertia else np.asarray(X)[3] @ np.asarray(Y)
    close(product, np.vstack([(np.asarray(X) @ np.asarray(Y))[:3], last]), EXACT)


@pytest.mark.parametrize("kind", [Velocity, Screw, Acceleration])
def test_product_with_a_point(kind, rng):
    X, p = MAKE[kind](rng), vector(rng)
    close([*(X @ p), 0.0], np.asarray(X) @ [*p, 1.0], EXACT)


def test_bracket_trace_and_carried(rng):
    W, L, H, J = (MAKE[t](rng) for t in (Velocity, Screw, Acceleration, Inertia))
    w, l, h, j = map(np.asarray, (W, L, H, J))
    close(W.bracket(L), w @ l - l @ w, EXACT)
    close((H @ J).trace(L), np.trace(h @ j @ l.T), EXACT)
    close(J.carried(W), w @ j + j @ w.T, EXACT)
    close(J + J, 2 * j, EXACT)
    close((W @ J - L @ J) * 3.0 + H @ J, 3 * (w - l) @ j + h @ j, EXACT)


@pytest.mark.parametrize("kind", [Velocity, Momentum, Action])
def test_linear_operations(kind, rng):
    X, Y = MAKE[kind](rng), MAKE[kind](rng)
    x, y = np.asarray(X), np.asarray(Y)
    close(X + Y, x + y, EXACT)
    close(X - Y, x - y, EXACT)
    close(-X, -x, EXACT)
    close(X * 2.5, 2.5 * x, EXACT)
    close(np.float64(2.5) * X, 2.5 * x, EXACT)


def test_acceleration_has_the_blocks_of_the_paper(rng):
    """The blocks agree: H = Wdot + W^2, wdot~ = (G - G')/2, w~^2 = (G + G')/2."""
    W, rate = MAKE[Velocity](rng), MAKE[Velocity](rng)
    H = Acceleration.of(W, rate)
    w, G = np.asarray(W)[:3, :3], np.asarray(H)[:3, :3]
    close(H, np.asarray(rate) + np.asarray(W) @ np.asarray(W), EXACT)
    close((G - G.T) / 2, np.asarray(rate)[:3, :3], EXACT)
    close((G + G.T) / 2, w @ w, EXACT)
    close(H.rate(W), rate, EXACT)


def test_screw_gives_velocity_and_acceleration(rng):
    """A screw gives W = L qd and H = L^2 qd^2 + L qdd (section II.2.1)."""
    L = MAKE[Screw](rng)
    l = np.asarray(L)
    close(L.velocity(0.7), 0.7 * l, EXACT)
    close(L.acceleration(0.7, -1.3), 0.49 * l @ l - 1.3 * l, EXACT)


# Wrong combinations ----------------------------------------------------------------------------


def _wrong(rng):
    M, Q, W, L, H, J, G, F = (MAKE[t](rng) for t in MAKE)
    block = W @ J
    return {
        "W + L": lambda: W + L,
        "W - H": lambda: W - H,
        "W + H": lambda: W + H,
        "H + H": lambda: H + H,
        "L + L": lambda: L + L,
        "Gamma + Phi": lambda: G + F,
        "Phi - Gamma": lambda: F - G,
        "J + M": lambda: J + M,
        "block + W": lambda: block + W,
        "block - J": lambda: block - J,
        "M @ W": lambda: M @ W,
        "M @ Q": lambda: M @ Q,
        "M @ J": lambda: M @ J,
        "Q @ W": lambda: Q @ W,
        "W @ Phi": lambda: W @ F,
        "W @ Q": lambda: W @ Q,
        "H @ W": lambda: H @ W,
        "H @ Phi": lambda: H @ F,
        "M in another frame": lambda: M.to_first(M),
        "a block in another frame": lambda: M.to_second(block),
        "momentum of H": lambda: momentum(H, J),
        "momentum of L": lambda: momentum(L, J),
        "action of W": lambda: action(W, J),
        "action on M": lambda: action(H, M),
        "kinetic energy of M": lambda: kinetic_energy(W, M),
        "potential energy with W": lambda: potential_energy(W, J),
        "Phi (x) H": lambda: F.pseudo(H),
        "Phi (x) Phi": lambda: F.pseudo(F),
        "bracket with H": lambda: W.bracket(H),
        "J carried by H": lambda: J.carried(H),
        "array + W": lambda: np.eye(4) + W,
        "array @ W": lambda: np.eye(4) @ W,
    }


@pytest.mark.parametrize("combination", _wrong(np.random.default_rng(0)))
def test_wrong_combinations_are_type_errors(combination):
    with pytest.raises(TypeError):
        _wrong(np.random.default_rng(0))[combination]()


# Kinematics ------------------------------------------------------------------------------------


def test_three_moving_bodies(rng):
    """Eq I.6, I.7 and I.10 to I.13 agree with numerical derivatives of positions."""
    ij, jk = moving(rng), moving(rng)
    motions = (ij, jk, lambda t: ij(t) @ jk(t))
    W, H = [], []
    for M in motions:
        first, second = rates(M)
        W.append(first @ np.linalg.inv(M(0.0)))
        H.append(second @ np.linalg.inv(M(0.0)))
    Mij = position(ij(0.0))
    Wij, Wjk = velocity(W[0]), Mij.to_first(velocity(W[1]))
    Hij, Hjk = acceleration(H[0], W[0]), Mij.to_first(acceleration(H[1], W[1]))
    close(Wij + Wjk, W[2], 1e-9)
    close(Hij.after(Wij, Hjk, Wjk), H[2], 1e-8)
    close(Wij @ position(ij(0.0)), rates(ij)[0], 1e-9)
    close(Hij @ position(ij(0.0)), rates(ij)[1], 1e-8)
    point = vector(rng)
    fixed = [*point, 1.0]
    path = lambda t: motions[2](t) @ fixed  # noqa: E731
    there = Vector(tuple(path(0.0)[:3].tolist()))
    close((Wij + Wjk) @ there, rates(path)[0][:3], 1e-9)
    close(Hij.after(Wij, Hjk, Wjk) @ there, rates(path)[1][:3], 1e-8)


# Dynamics --------------------------------------------------------------------------------------


def test_inertia_of_mass_points(rng):
    """J is the sum of m P P', and the converted rigid-body inertia is that of the points."""
    J, masses, points = inertia(rng)
    rigid = J.rigid()
    squares = (points**2).sum(axis=1)
    usual = np.einsum("k,kij->ij", masses, squares[:, None, None] * np.eye(3)) - np.einsum(
        "k,ki,kj->ij", masses, points, points
    )
    close(rigid.I.matrix().rows, usual, EXACT)
    close(rigid.h, masses @ points, EXACT)
    close(Inertia.of(rigid), J, EXACT)


def test_action_and_momentum_of_mass_points(rng):
    """Eq I.14 to I.26 equal sums over particles: f = m a, c = p x m a, also with velocities."""
    J, masses, points = inertia(rng)
    W, H = MAKE[Velocity](rng), MAKE[Acceleration](rng)
    P = np.hstack([points, np.ones((len(masses), 1))])
    for X, made in ((W, momentum(W, J)), (H, action(H, J))):
        pull = masses[:, None] * (P @ np.asarray(X).T)[:, :3]
        close(made.f, pull.sum(axis=0), EXACT)
        close(made.c, np.cross(points, pull).sum(axis=0), EXACT)
        product = np.asarray(X) @ np.asarray(J)
        close(made, product - product.T, EXACT)


def test_action_against_newton_and_euler(rng):
    """Eq I.19 holds: f = m a_G and c = I wdot + w x I w + (G - O) x f.

    I is the inertia about the center of mass G.
    """
    J, masses, points = inertia(rng)
    H = MAKE[Acceleration](rng)
    center = masses @ points / masses.sum()
    arms = points - center
    I = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, arms, strict=True))
    w, wd, a = (np.array(list(x)) for x in (H.w, H.wd, H.a))
    f = masses.sum() * (a + np.cross(wd, center) + np.cross(w, np.cross(w, center)))
    c = I @ wd + np.cross(w, I @ w) + np.cross(center, f)
    phi = action(H, J)
    close(phi.f, f, EXACT)
    close(phi.c, c, EXACT)


def test_weight(rng):
    J, masses, points = inertia(rng)
    g = np.array([0.3, -0.2, -9.81])
    phi = action(Acceleration.uniform(Vector(tuple(g.tolist()))), J)
    close(phi.f, masses.sum() * g, EXACT)
    close(phi.c, np.cross(masses @ points, g), EXACT)


def test_power_is_the_pseudo_scalar_product(rng):
    """Phi (x) W is the power, and equals the printed sum of six products of entries."""
    W, F = MAKE[Velocity](rng), MAKE[Action](rng)
    A, B = np.asarray(F), np.asarray(W)
    entries = [(3, 2), (1, 3), (2, 1), (1, 4), (2, 4), (3, 4)]
    printed = sum(A[i - 1, j - 1] * B[i - 1, j - 1] for i, j in entries)
    close(F.pseudo(W), printed, EXACT)
    p, f = vector(rng), vector(rng)
    at_point = Action(p.cross(f), f)
    close(at_point.pseudo(W), np.dot(list(f), list(W @ p)), EXACT)


def test_energies_against_spatial_vectors(rng):
    J, masses, points = inertia(rng)
    W = MAKE[Velocity](rng)
    motion = Motion(W.w, W.v)
    close(kinetic_energy(W, J), (J.rigid() @ motion).dot(motion) / 2, EXACT)
    velocities = points @ np.asarray(W)[:3, :3].T + np.asarray(W)[:3, 3]
    close(kinetic_energy(W, J), (masses * (velocities**2).sum(axis=1)).sum() / 2, EXACT)
    g = Vector.of(0.1, 0.2, -9.81)
    height = -(masses @ points) @ list(g)
    close(potential_energy(Acceleration.uniform(g), J), height, EXACT)


def test_momentum_changes_by_the_action(rng):
    """Newton's law dGamma/dt = Phi holds for a moving body, by numerical differences."""
    J, *_ = inertia(rng)
    M = moving(rng)

    def gamma(t):
        W = velocity(rates(M, t)[0] @ np.linalg.inv(M(t)))
        return np.asarray(momentum(W, position(M(t)).to_first(J)))

    first, second = rates(M)
    inverse = np.linalg.inv(M(0.0))
    H = acceleration(second @ inverse, first @ inverse)
    h = 1e-2
    slope = (8 * (gamma(h) - gamma(-h)) - (gamma(2 * h) - gamma(-2 * h))) / (12 * h)
    close(slope, action(H, position(M(0.0)).to_first(J)), 1e-6)


def test_spatial_types_and_back(rng):
    """Velocities, forces and changes of frame agree between the matrices and spatial vectors."""
    M, W, F, G = (MAKE[t](rng) for t in (Position, Velocity, Action, Momentum))
    X = M.transform()
    assert Velocity.of(W.motion()) == W
    assert Action.of(F.force()) == F
    assert Momentum.of(G.force()) == G
    close(list(X @ W.motion()), list(M.to_second(W)), EXACT)
    close(list(X @ F.force()), list(M.to_second(F)), EXACT)
    J = MAKE[Inertia](rng)
    close(list(J.rigid() @ W.motion()), list(momentum(W, J)), EXACT)
    H = Acceleration.of(W, MAKE[Velocity](rng))
    a = H.rate(W).motion()  # spatial acceleration; Newton's law then has the bias v x* I v
    bias = W.motion().cross(J.rigid() @ W.motion())
    close(list(J.rigid() @ a + bias), list(action(H, J)), EXACT)


# Symbols, arrays, text -------------------------------------------------------------------------


def _six(kind, x):
    return kind(Vector(tuple(x[:3])), Vector(tuple(x[3:])))


def _every_operation(m, w, l, h, j, f):
    """Apply every product and change of frame to flat inputs; return a flat list of results."""
    M = Position.from_matrix(Matrix(tuple(tuple(m[4 * k : 4 * k + 4]) for k in range(4))))
    W, L, F, G = _six(Velocity, w), _six(Screw, l), _six(Action, f), _six(Momentum, f)
    H = Acceleration(Vector(tuple(h[:3])), Vector(tuple(h[3:6])), Vector(tuple(h[6:])))
    J = Inertia(Symmetric(*j[:6]), Vector(tuple(j[6:9])), j[9])
    Q = Rototranslation(M.R, M.t)
    matrices = [M @ M, M.inverse(), Rototranslation.between(M, M @ M), Q @ M, W @ M, H @ M, W @ J]
    matrices += [move(X) for move in (M.to_first, M.to_second) for X in (W, L, H, J, F, G, Q)]
    matrices += [W.bracket(L), J.carried(L), L.acceleration(w[0], w[1]), H.after(W, H, W)]
    matrices += [momentum(W, J), action(H, J), H.rate(W), Acceleration.of(W, W)]
    scalars = [F.pseudo(L), kinetic_energy(W, J), potential_energy(H, J), (H @ J).trace(L)]
    return [x for X in matrices for x in numbers(X)] + scalars


def test_everything_works_on_symbols(rng):
    M = MAKE[Position](rng)
    inputs = [numbers(M), *(rng.normal(size=n).tolist() for n in (6, 6, 9, 10, 6))]
    symbolic, program = traced(_every_operation, *inputs)
    assert program.count.flops > 500
    close(symbolic, _every_operation(*inputs), EXACT)


@pytest.mark.parametrize("kind", MAKE)
def test_arrays_and_text(kind, rng):
    X = MAKE[kind](rng)
    A = np.asarray(X)
    assert A.shape == (4, 4)
    assert A.dtype == float
    assert A.tolist() == [[x + 0.0 for x in row] for row in X.matrix().rows]
    assert np.array(X, dtype=np.float32).dtype == np.float32
    name, *lines = repr(X).splitlines()
    assert name == kind.__name__
    close([[float(x) for x in line.strip("[ ]").split()] for line in lines], A, 1e-5)
    with raises("E-MATH-023"):
        np.array(X, copy=False)


def test_text_of_symbols():
    from chasles.expr import RULES, Arena

    x = Arena(RULES).input("q", 0)
    W = Velocity(Vector.of(0.0, 0.0, x), Vector.zero())
    assert "q[0]" in repr(W)
    assert np.asarray(W)[1, 0] is x


def test_hat_is_the_velocity_matrix(rng):
    """`hat`, which shares no code with the library, gives the same matrix as Velocity."""
    W = MAKE[Velocity](rng)
    assert np.array_equal(hat(list(W.w), list(W.v)), np.asarray(W))
