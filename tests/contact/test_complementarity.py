"""Lemke's method, both quadratic programs and Gauss-Seidel agree on complementarity problems."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from support import raises

from chasles import contact

pytest.importorskip("daqp", reason="quadratic programs need the extra contact")

COUNT = 10_000


def problems(seed: int, count: int):
    """Yield random systems H, force, T, bias with 1 to 6 coordinates and 1 to 10 contacts.

    Each system has a motion x that separates all contacts: T'x + bias > 0.
    """
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n, nc = rng.integers(1, 7), rng.integers(1, 11)
        A = rng.normal(size=(n, n + 4))
        T = rng.normal(size=(n, nc))
        bias = rng.uniform(0.01, 1.0, size=nc) - T.T @ rng.normal(size=n)
        yield A @ A.T, rng.normal(size=n), T, bias


def test_three_ways_agree_on_feasible_problems() -> None:
    """Accelerations and M lambda + d agree; lambda agrees too if M is definite (Eq 11.41-11.44)."""
    acting, unique = 0, 0
    for H, force, T, bias in problems(0, COUNT):
        free = np.linalg.solve(H, np.column_stack([force, T]))
        M, d = T.T @ free[:, 1:], T.T @ free[:, 0] + bias
        z = contact.lemke(M, d)
        by_forces = contact.forces_program(M, d)
        qdd, multipliers = contact.accelerations_program(H, force, T, bias)
        size = np.max(np.abs(d))
        w = M @ z + d
        assert np.min(z) >= 0.0
        assert np.min(w) >= -1e-9 * size
        assert np.max(np.abs(w * z)) <= 1e-9 * size * max(1.0, np.max(z))
        reach = np.max(np.abs(free[:, 0])) + np.max(np.abs(free[:, 1:] @ z))
        for other in (by_forces, multipliers):
            assert np.max(np.abs(M @ (other - z))) <= 1e-9 * size
        for a in (free[:, 0] + free[:, 1:] @ by_forces, qdd):
            assert np.max(np.abs(a - free[:, 0] - free[:, 1:] @ z)) <= 1e-9 * reach
        if np.linalg.cond(M) < 1e6:
            for other in (by_forces, multipliers):
                assert np.max(np.abs(other - z)) <= 1e-9 * np.max(z)
            unique += 1
        acting += np.count_nonzero(z)
    assert acting > COUNT
    assert unique > COUNT / 10


def test_infeasible_problems_are_reported_by_all_three() -> None:
    """No forces exist: a positive sum of the normals is zero, but the same sum of d is negative."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        n, nc = rng.integers(1, 5), rng.integers(2, 8)
        A, T = rng.normal(size=(n, n + 4)), rng.normal(size=(n, nc))
        share = rng.uniform(0.2, 1.0, size=nc)
        T[:, -1] = -T[:, :-1] @ share[:-1] / share[-1]
        force = rng.normal(size=n)
        bias = rng.normal(size=nc)
        bias -= share * (share @ bias + rng.uniform(0.1, 1.0)) / (share @ share)
        H = A @ A.T
        M, d = T.T @ np.linalg.solve(H, T), T.T @ np.linalg.solve(H, force) + bias
        with raises("E-CONTACT-003") as found:
            contact.lemke(M, d)
        rays = [found.value.ray]
        with raises("E-CONTACT-054") as found:
            contact.forces_program(M, d)
        rays.append(found.value.ray)
        with raises("E-CONTACT-057"):
            contact.accelerations_program(H, force, T, bias)
        for ray in rays:
            assert ray is not None
            assert np.min(ray) >= 0.0
            assert np.max(np.abs(M @ ray)) <= 1e-5 * np.max(np.abs(M))
            assert d @ ray < 0.0


def test_lemke_gives_basic_solutions() -> None:
    """Contacts with a force are linearly independent, even if each contact is given three times."""
    for H, force, T, bias in problems(2, 300):
        T, bias = np.tile(T, 3), np.tile(bias, 3)
        M, d = T.T @ np.linalg.solve(H, T), T.T @ np.linalg.solve(H, force) + bias
        acting = contact.lemke(M, d) > 0.0
        assert np.linalg.matrix_rank(T[:, acting]) == np.count_nonzero(acting)


def stacked(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return M and d of a box on a box on the ground, with four contacts each.

    The boxes move along z, roll and pitch. The contacts between the boxes are displaced from the
    corners of a rectangle by up to about 1e-5 m. Contacts at the corners of a rectangle are exactly
    dependent; these contacts are only nearly dependent.
    """
    rng = np.random.default_rng(seed)
    off = 10.0 ** rng.uniform(-10.0, -5.0)
    low, high, masses = rng.uniform(0.1, 0.5, 3), rng.uniform(0.1, 0.3, 3), rng.uniform(0.5, 5.0, 2)
    H = np.diag(
        [
            m * x
            for m, (a, b, c) in zip(masses, (low, high), strict=True)
            for x in (1.0, (b * b + c * c) / 12.0, (a * a + c * c) / 12.0)
        ]
    )
    corners = 0.5 * np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]])
    under, middle = corners * low[:2], rng.uniform(-0.05, 0.05, 2)
    between = corners * high[:2] + off * rng.normal(size=(4, 2))
    T = [[1.0, y, -x, 0.0, 0.0, 0.0] for x, y in under]
    T += [[-1.0, -y - middle[1], x + middle[0], 1.0, y, -x] for x, y in between]
    weights = np.array([-9.81, 0.0, 0.0, -9.81, 0.0, 0.0])
    return T @ np.linalg.solve(H, np.transpose(T)), T @ weights


SINGULAR = (331, 381, 511, 541, 690, 1165, 1595, 1647, 1649, 2937)
"""Seeds of stacks for which bases of Lemke's method are singular up to rounding."""


@pytest.mark.parametrize("seed", [*range(20), *SINGULAR])
def test_lemke_on_contacts_that_are_dependent_almost(seed: int) -> None:
    """The complementarity conditions hold, and the forces carry the weight of both boxes."""
    M, d = stacked(seed)
    z = contact.lemke(M, d)
    w = M @ z + d
    assert np.min(z) >= 0.0
    assert np.min(w) >= -1e-8
    assert np.max(np.abs(w * z)) <= 1e-8 * np.max(z)
    assert np.max(np.abs(w)) <= 1e-8  # at rest


def test_lemke_on_matrices_that_are_not_symmetric() -> None:
    """The solution from which d was computed is found; it is unique if x'M x > 0 for all x."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        n = rng.integers(1, 9)
        A, B = rng.normal(size=(2, n, n))
        M = A @ A.T + 0.1 * np.eye(n) + B - B.T
        z, w = np.abs(rng.normal(size=(2, n)))
        acts = rng.random(n) < 0.5
        z, w = np.where(acts, z, 0.0), np.where(acts, 0.0, w)
        assert np.allclose(contact.lemke(M, w - M @ z), z, atol=1e-9)


def test_ties_do_not_cycle() -> None:
    """All ratios are equal, and Lemke's method does not cycle.

    The first problem makes the rule of the least ratio cycle if the first row wins ties. The others
    are a block on a plate with many equal supports.
    """
    M = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0]])
    assert contact.lemke(M, -np.ones(3)) == pytest.approx(np.full(3, 1.0 / 3.0))
    for n in (4, 9, 16):
        M, d = np.ones((n, n)), -np.ones(n)
        assert np.sum(contact.lemke(M, d)) == pytest.approx(1.0)


def test_units_do_not_matter() -> None:
    for H, force, T, bias in problems(3, 50):
        M, d = T.T @ np.linalg.solve(H, T), T.T @ np.linalg.solve(H, force) + bias
        S = 10.0 ** np.random.default_rng(4).uniform(-4.0, 4.0, size=len(d))
        z = contact.lemke(S[:, None] * M * S, S * d)
        assert np.allclose(M @ (S * z), M @ contact.lemke(M, d), atol=1e-9 * np.max(np.abs(d)))


def test_gauss_seidel_for_a_batch() -> None:
    rng = np.random.default_rng(5)
    J = rng.normal(size=(200, 6, 8))
    M = J @ np.swapaxes(J, -1, -2) + 0.3 * np.eye(6)
    d = rng.normal(size=(200, 6))
    found = contact.gauss_seidel(M, d, tolerance=1e-11)
    assert np.all(found.residual <= 1e-11 * np.max(np.abs(d), axis=-1))
    exact = np.array([contact.lemke(m, x) for m, x in zip(M, d, strict=True)])
    assert np.allclose(found.forces, exact, atol=1e-8)
    again = contact.gauss_seidel(M, d, start=exact, tolerance=1e-11)
    assert again.sweeps <= 1 < found.sweeps


def test_gauss_seidel_reports_what_has_no_solution() -> None:
    M = np.array([[1.0, -1.0], [-1.0, 1.0]])
    found = contact.gauss_seidel(M, [[-1.0, 0.5], [-1.0, 1.5]], sweeps=200)
    assert found.residual[0] > 0.1
    assert found.residual[1] < 1e-11


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: contact.lemke(np.eye(2), [1.0]), "E-CONTACT-004|E-CONTACT-006|E-CONTACT-056"),
        (lambda: contact.lemke([[np.nan]], [1.0]), "E-CONTACT-007"),
        (
            lambda: contact.gauss_seidel(np.eye(2), [1.0]),
            "E-CONTACT-004|E-CONTACT-006|E-CONTACT-056",
        ),
        (lambda: contact.gauss_seidel([[0.0]], [1.0]), "E-CONTACT-005"),
        (
            lambda: contact.accelerations_program(np.eye(2), [0.0, 0.0], np.eye(3), [1.0]),
            "E-CONTACT-004|E-CONTACT-006|E-CONTACT-056",
        ),
    ],
)
def test_bad_problems_are_refused(call, words: str) -> None:
    with raises(words):
        call()


def test_a_missing_solver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "daqp", None)
    with raises("E-CONTACT-059"):
        contact.forces_program(np.eye(1), [-1.0])


def test_a_solver_that_gives_up_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    given = np.ones(1), 0.0, -4, {"lam": np.ones(1)}
    monkeypatch.setitem(sys.modules, "daqp", SimpleNamespace(solve=lambda *_, **__: given))
    with raises("E-CONTACT-055"):
        contact.forces_program(np.eye(1), [-1.0])
    with raises("E-CONTACT-058"):
        contact.accelerations_program(np.eye(1), [-1.0], np.eye(1), [0.0])
