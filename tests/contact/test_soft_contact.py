"""Soft contact agrees with exact solutions: impacts, rest, creep, sticking, slipping, energy."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.linalg import expm
from scipy.optimize import brentq
from support import close, raises

from chasles import backends
from chasles.backends.arrays import call
from chasles.contact import (
    AzadFeatherstone,
    HuntCrossley,
    NormalLaw,
    SoftContact,
    SoftFriction,
    SoftSurface,
    StandardSolid,
    TwoSoftSurfaces,
)
from chasles.expr import RULES, Arena, Program, Variable, forward

STIFF = SoftSurface(4000.0, 30.0)
FRICTION = SoftFriction(0.6, 3000.0, 20.0)
NORMAL: dict[str, NormalLaw] = {
    "surface": STIFF,
    "two surfaces": TwoSoftSurfaces(STIFF, SoftSurface(2500.0, 60.0)),
    "standard solid": StandardSolid(9000.0, 4000.0, 30.0),
    "Hunt-Crossley": HuntCrossley(5e4, 0.3),
    "Hunt-Crossley, cubic": HuntCrossley(5e6, 1.0, exponent=3.0),
    "Azad-Featherstone": AzadFeatherstone(5e4, 200.0),
}
PLACES = {"plane": 1, "space": 2}


def samples(law: SoftContact, n: int) -> tuple[np.ndarray, ...]:
    """Return states, gaps, gap rates and slips; in half of them, the body is on the surface."""
    rng = np.random.default_rng(0)
    state = rng.normal(scale=0.01, size=(law.states, n))
    normal = law.normal.states
    state[:normal] = -np.abs(state[:normal])
    gap = rng.normal(scale=0.01, size=n)
    touching = rng.uniform(size=n) < 0.5
    if normal:
        gap = np.where(touching, state[:normal].sum(axis=0), gap)
    return state, gap, rng.normal(size=n), rng.normal(size=(law.tangents, n))


def program(law: SoftContact) -> Program:
    """Return the program of a law traced on symbols."""
    sizes = {"state": law.states, "gap": 1, "rate": 1, "slip": law.tangents}
    inputs = [Variable(name, (size,)) for name, size in sizes.items()]
    arena = Arena(RULES)
    state, (gap,), (rate,), slip = ([arena.input(v.name, k) for k in range(v.size)] for v in inputs)
    forces, rates = law.response(state, gap, rate, slip)
    outputs = [(Variable("forces", (len(forces),)), forces)]
    outputs.append((Variable("rates", (len(rates),)), rates))
    return Program.from_outputs("law", inputs, outputs)


# Numbers, arrays and symbols ------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NORMAL)
def test_numbers_arrays_and_compiled_symbols_agree(name: str, place: str) -> None:
    law = SoftContact(NORMAL[name], FRICTION, tangents=PLACES[place])
    state, gap, rate, slip = samples(law, 200)
    arrays = [np.array(part) for part in law.response(list(state), gap, rate, list(slip))]
    assert np.any(arrays[0][-1] > 0.0)
    assert np.any(arrays[0][-1] == 0.0)
    kernel = backends.compile(program(law))
    rows = (state.T, gap[:, None], rate[:, None], slip.T)
    for found, expected in zip(call(kernel, "law", rows), arrays, strict=True):
        close(found, expected.reshape(-1, 200).T, 1e-13)
    for k in range(0, 200, 7):
        one = law.response(state[:, k].tolist(), float(gap[k]), float(rate[k]), slip[:, k].tolist())
        for found, expected in zip(one, arrays, strict=True):
            close(found, expected.reshape(-1, 200)[:, k], 1e-13)


@pytest.mark.parametrize("name", NORMAL)
def test_derivatives_at_the_first_touch_are_finite(name: str) -> None:
    law = SoftContact(NORMAL[name], FRICTION)
    slope = backends.compile(forward(program(law), ["gap", "rate", "slip"]), backend="interpret")
    ones = np.ones(1), np.ones(1), np.ones(2)
    for result in call(slope, "slope", (np.zeros(law.states), [0.0], [-1.0], [0.0, 0.0], *ones)):
        assert np.isfinite(result).all()


# The first-order surface ------------------------------------------------------------------------


def test_a_surface_is_a_damped_oscillator_until_it_is_left_and_then_decays() -> None:
    m, v, law = 2.0, 0.7, STIFF
    K, D = law.stiffness, law.damping
    gamma, pace = 0.5 * D / m, K / D
    omega = math.sqrt(K / m - gamma**2)

    def right(t: float, y: np.ndarray) -> list[float]:
        force, (zd,) = law.response([float(y[2])], float(y[0]), float(y[1]))
        return [float(y[1]), force / m, zd]

    leave = (math.pi - math.atan2(omega, pace - gamma)) / omega
    end = leave + 0.05
    times = [0.5 * leave, leave, end]
    run = solve_ivp(
        right, (0.0, end), [0.0, -v, 0.0], rtol=1e-11, atol=1e-13, t_eval=times, max_step=1e-4
    )

    def exact(t: float) -> tuple[float, float]:
        decay = v * math.exp(-gamma * t)
        p = -decay / omega * math.sin(omega * t)
        return p, -decay * (math.cos(omega * t) - gamma / omega * math.sin(omega * t))

    for k, t in enumerate(times[:2]):
        close(run.y[:2, k], exact(t), 1e-8)
        close(run.y[2, k], exact(t)[0], 1e-8)
    p, pd = exact(leave)
    close(pd, -pace * p, 1e-12)  # the force is zero
    close(run.y[:, 2], [p + 0.05 * pd, pd, p * math.exp(-pace * 0.05)], 1e-6)


def test_steps_without_a_differential_equation_come_to_the_same_motion() -> None:
    """`advanced` in short steps agrees with the differential equation over several touches."""
    m, g, law = 1.0, 9.81, SoftSurface(2000.0, 5.0)

    def right(t: float, y: np.ndarray) -> list[float]:
        force, (zd,) = law.response([float(y[2])], float(y[0]), float(y[1]))
        return [float(y[1]), force / m - g, zd]

    run = solve_ivp(right, (0.0, 0.6), [0.05, 0.0, 0.0], rtol=1e-9, atol=1e-12, max_step=5e-4)
    p, v, z, h = 0.05, 0.0, [0.0], 1e-5
    for _ in range(60_000):
        force, _ = law.response(z, p, v)
        v += h * (force / m - g)
        p += h * v
        z = law.advanced(z, force, p, h)
    close([p, z[0]], run.y[[0, 2], -1], 5e-3, scale=0.05)


@pytest.mark.parametrize("name", NORMAL)
def test_what_rests_is_carried(name: str) -> None:
    m, g, law = 1.5, 9.81, NORMAL[name]
    p, v, z, h = 0.01, 0.0, [0.0] * law.states, 1e-3
    for _ in range(12_000):
        force, _ = law.response(z, p, v)
        v += h * (force / m - g)
        p += h * v
        z = law.advanced(z, force, p, h)
    force, _ = law.response(z, p, v)
    close(force, m * g, 1e-6)
    if isinstance(law, SoftSurface):
        close(p, -m * g / law.stiffness, 1e-6)


# The standard solid -----------------------------------------------------------------------------


def test_a_standard_solid_creeps_and_relaxes() -> None:
    """z depends only on K and D under a constant force; the force decreases at a constant gap."""
    law, t = StandardSolid(9000.0, 4000.0, 30.0), 0.004
    force = 12.0
    run = solve_ivp(
        lambda _, y: law.response(y, float(y[0]) - force / law.series, 0.0)[1],
        (0.0, t),
        [0.0],
        rtol=1e-11,
        atol=1e-14,
    )
    close(run.y[0, -1], -force / 4000.0 * (1.0 - math.exp(-4000.0 / 30.0 * t)), 1e-9)
    gap, both = -0.002, 13000.0
    (z,) = law.advanced([0.0], 1.0, gap, t)
    lasting = 9000.0 * 4000.0 / both
    found, _ = law.response([z], gap, 0.0)
    expected = -gap * (lasting + (9000.0 - lasting) * math.exp(-both / 30.0 * t))
    close(found, expected, 1e-12)
    assert law.response([0.0], gap, -5.0)[0] == -9000.0 * gap  # a fast blow compresses one spring
    close(law.advanced([-0.001], 0.0, 1.0, t), [-0.001 * math.exp(-4000.0 / 30.0 * t)], 1e-12)


def test_an_impact_on_a_standard_solid() -> None:
    """The motion agrees with the matrix exponential until the body leaves.

    Energy never increases.
    """
    m, v, law = 2.0, 0.7, StandardSolid(9000.0, 4000.0, 30.0)
    A = np.array(
        [
            [0.0, 1.0, 0.0],
            [-law.series / m, 0.0, law.series / m],
            [law.series / law.damping, 0.0, -(law.series + law.stiffness) / law.damping],
        ]
    )

    def right(t: float, y: np.ndarray) -> list[float]:
        force, (zd,) = law.response([float(y[2])], float(y[0]), float(y[1]))
        return [float(y[1]), force / m, zd]

    run = solve_ivp(
        right, (0.0, 0.1), [0.0, -v, 0.0], rtol=1e-10, atol=1e-13, max_step=2e-4, dense_output=True
    )
    t = 0.03
    close(run.sol(t), expm(A * t) @ [0.0, -v, 0.0], 1e-7)
    held = [law.energy([z], p) + 0.5 * m * s * s for p, s, z in run.y.T]
    assert np.all(np.diff(held) < 1e-9)
    rebound = run.y[1, -1] / v
    assert 0.2 < rebound < 1.0
    p, s, z, h = 0.0, -v, [0.0], 1e-5
    for _ in range(10_000):
        force, _ = law.response(z, p, s)
        s += h * force / m
        p += h * s
        z = law.advanced(z, force, p, h)
    close(s / v, rebound, 1e-3)


def test_a_stiff_standard_solid_is_a_soft_surface() -> None:
    """The laws agree to the accuracy of the series spring's time constant, D/K_s."""
    m, v, found = 2.0, 0.7, []
    for law in (StandardSolid(1e7, 4000.0, 30.0), SoftSurface(4000.0, 30.0)):
        run = solve_ivp(
            lambda t, y, law=law: (
                [y[1], law.response([y[2]], y[0], y[1])[0] / m]
                + law.response([y[2]], y[0], y[1])[1]
            ),
            (0.0, 0.01),
            [0.0, -v, 0.0],
            max_step=2e-5,
            rtol=1e-7,
            atol=1e-10,
        )
        found.append(run.y[:2, -1])
    close(found[0], found[1], 2e-3)


def test_two_surfaces_of_one_pace_are_one() -> None:
    a, b = SoftSurface(4000.0, 20.0), SoftSurface(1000.0, 5.0)
    both, one = TwoSoftSurfaces(a, b), TwoSoftSurfaces(a, b).lumped()
    assert one == SoftSurface(800.0, 4.0)

    def right(law: NormalLaw) -> Callable[[float, np.ndarray], list[float]]:
        def rate(t: float, y: np.ndarray) -> list[float]:
            force, rates = law.response(list(y[2:]), float(y[0]), float(y[1]))
            return [float(y[1]), force - 9.81, *rates]

        return rate

    options: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "max_step": 1e-3}
    two = solve_ivp(right(both), (0.0, 0.5), [0.02, 0.0, 0.0, 0.0], **options)
    lumped = solve_ivp(right(one), (0.0, 0.5), [0.02, 0.0, 0.0], **options)
    close(two.y[:2, -1], lumped.y[:2, -1], 1e-6)
    for rate in (-1.0, 0.5, 3.0):
        z = [-0.001, -0.004]
        close(both.response(z, -0.005, rate)[0], one.response([-0.005], -0.005, rate)[0], 1e-14)
    with raises("E-CONTACT-086"):
        TwoSoftSurfaces(a, SoftSurface(1000.0, 6.0)).lumped()


def test_two_surfaces_held_together_creep_to_the_share_of_their_springs() -> None:
    """z1 tends to p K2/(K1 + K2) at the rate (K1 + K2)/(D1 + D2)."""
    a, b, p = SoftSurface(300.0, 40.0), SoftSurface(900.0, 10.0), -0.02
    law = TwoSoftSurfaces(a, b)
    start = [0.8 * p, 0.2 * p]
    run = solve_ivp(
        lambda t, z: law.response(list(z), p, 0.0)[1], (0.0, 0.03), start, rtol=1e-11, atol=1e-14
    )
    last = p * b.stiffness / (a.stiffness + b.stiffness)
    decay = math.exp(-0.03 * (a.stiffness + b.stiffness) / (a.damping + b.damping))
    close(run.y[0, -1], last + (start[0] - last) * decay, 1e-8)
    close(sum(run.y[:, -1]), p, 1e-12)


# Nonlinear laws ---------------------------------------------------------------------------------


def rebound(law: NormalLaw, m: float, v: float) -> float:
    """Return rebound speed divided by impact speed, for a law without states."""

    def left(t: float, y: np.ndarray) -> float:
        return float(y[0])

    left.terminal, left.direction = True, 1.0  # type: ignore[attr-defined]
    run = solve_ivp(
        lambda t, y: [y[1], law.response([], y[0], y[1])[0] / m],
        (0.0, 1.0),
        [0.0, -v],
        rtol=1e-11,
        atol=1e-14,
        events=left,
    )
    return float(run.y[1, -1] / v)


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("v", [0.1, 2.0])
def test_hunt_crossley_restitution_in_closed_form(exponent: float, v: float) -> None:
    """v - log(1 + a v)/a is the same before and after the impact, for any K, n and mass."""
    a = 0.4
    e = brentq(lambda e: v - math.log1p(a * v) / a + e * v + math.log1p(-a * e * v) / a, 1e-3, 1.0)
    close(rebound(HuntCrossley(4e4, a, exponent), 0.7, v), e, 1e-7)


def test_azad_featherstone_loss_in_closed_form() -> None:
    """The loss of energy is, to first order, 2 D times the integral of d^(1/2) v(d).

    The relative loss of speed therefore grows as v^(1/5).
    """
    K, D, m = 3e4, 2.0, 0.5
    found = []
    for v in (0.05, 0.05 * 32.0):
        deep = (1.25 * m * v * v / K) ** 0.4
        area, _ = quad(
            lambda d, v=v: math.sqrt(d * max(v * v - 0.8 * K / m * d**2.5, 0.0)), 0.0, deep
        )
        loss = 2.0 * D * area / (0.5 * m * v * v)
        e = rebound(AzadFeatherstone(K, D), m, v)
        close(1.0 - e * e, loss, 0.02)
        found.append(1.0 - e)
    close(found[1] / found[0], 2.0, 0.02)


# Friction ---------------------------------------------------------------------------------------


def test_friction_in_the_plane_is_clipped() -> None:
    """Forces and rates agree with Eq 11.79."""
    rng = np.random.default_rng(1)
    for x, v, normal in rng.normal(size=(200, 3)) * (0.01, 0.5, 20.0):
        normal = abs(normal)
        stick = -FRICTION.stiffness * x - FRICTION.damping * v
        (force,), (rate,) = FRICTION.response([x], normal, [v])
        close(force, min(max(stick, -0.6 * normal), 0.6 * normal), 1e-14, scale=1e-9)
        close(rate, -(FRICTION.stiffness * x + force) / FRICTION.damping, 1e-13)


def test_friction_in_space_is_a_cone_that_knows_no_axes() -> None:
    rng = np.random.default_rng(2)
    x, v = rng.normal(scale=0.01, size=(2, 300)), rng.normal(scale=0.5, size=(2, 300))
    normal = rng.uniform(0.0, 40.0, size=300)
    forces, _ = FRICTION.response(list(x), normal, list(v))
    size = np.hypot(*forces)
    assert np.all(size <= 0.6 * normal * (1.0 + 1e-14))
    assert np.any(size < 0.5 * normal)
    assert np.any(size > 0.59 * normal)
    c, s = math.cos(0.7), math.sin(0.7)
    turn = np.array([[c, -s], [s, c]])
    turned, _ = FRICTION.response(list(turn @ x), normal, list(turn @ v))
    close(np.array(turned), turn @ np.array(forces), 1e-13)


def test_dragged_at_constant_speed_it_sticks_then_slips() -> None:
    """x = v t until K x + D v = mu N; then K x tends to mu N as exp(-K t/D)."""
    v, normal = 0.02, 10.0
    K, D, bound = FRICTION.stiffness, FRICTION.damping, 0.6 * normal
    start = (bound - D * v) / (K * v)
    run = solve_ivp(
        lambda t, x: FRICTION.response(list(x), normal, [v])[1],
        (0.0, start + 0.01),
        [0.0],
        rtol=1e-10,
        atol=1e-14,
        t_eval=[0.5 * start, start, start + 0.01],
        max_step=1e-4,
    )
    after = bound / K + (v * start - bound / K) * math.exp(-K / D * 0.01)
    close(run.y[0], [0.5 * v * start, v * start, after], 1e-6)


def test_a_thrown_block_slides_as_far_as_coulomb_says() -> None:
    m, g, v, h = 2.0, 9.81, 1.2, 1e-4
    law = SoftContact(SoftSurface(4e5, 1e3), SoftFriction(0.5, 1e6, 2e3), tangents=1)
    x, p, pd, state = 0.0, -m * g / 4e5, 0.0, [-m * g / 4e5, 0.0]
    for _ in range(6000):
        (side, up), _ = law.response(state, p, pd, [v])
        v, pd = v + h * side / m, pd + h * (up / m - g)
        x, p = x + h * v, p + h * pd
        state = law.advanced(state, [side, up], p, h)
    close(x, 1.2**2 / (2.0 * 0.5 * g), 1e-3)
    assert abs(v) < 1e-6


# Energy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NORMAL)
def test_no_law_creates_energy(name: str) -> None:
    """Springs never gain more power than the bodies supply, for any state and motion."""
    law = SoftContact(NORMAL[name], FRICTION)
    state, gap, rate, slip = samples(law, 5000)
    forces, rates = law.response(list(state), gap, rate, list(slip))
    given = -forces[2] * rate - forces[0] * slip[0] - forces[1] * slip[1]
    h = 1e-6
    moved = [
        law.energy([z + sign * h * zd for z, zd in zip(state, rates, strict=True)],
                   gap + sign * h * rate)
        for sign in (1.0, -1.0)
    ]  # fmt: skip
    gained = (moved[0] - moved[1]) / (2.0 * h)
    real = gap >= state[: law.normal.states].sum(axis=0) - 1e-12  # not below the surface
    possible = real if law.normal.states else np.ones_like(real)
    scale = np.abs(given) + np.abs(gained) + 1e-3
    assert np.all((gained - given)[possible] <= 1e-6 * scale[possible])


def test_bodies_lose_energy_step_by_step() -> None:
    """The energy of a point mass and of its contact springs never grows during its motion."""
    m, g = 0.8, 9.81
    law = SoftContact(SoftSurface(3000.0, 12.0), FRICTION)

    def right(t: float, y: np.ndarray) -> list[float]:
        forces, rates = law.response(list(y[6:]), float(y[2]), float(y[5]), list(y[3:5]))
        return [*y[3:6], forces[0] / m, forces[1] / m, forces[2] / m - g, *rates]

    start = [0.0, 0.0, 0.05, 0.8, -0.3, 0.0, 0.0, 0.0, 0.0]
    run = solve_ivp(right, (0.0, 0.5), start, rtol=1e-9, atol=1e-12, max_step=1e-3)
    y = run.y
    held = np.asarray(law.energy(list(y[6:]), y[2]))
    energy = 0.5 * m * np.sum(y[3:6] ** 2, axis=0) + m * g * y[2] + held
    assert np.max(np.diff(energy)) < 1e-8 * energy[0]
    assert energy[-1] < 0.5 * energy[0]


# Invalid input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SoftSurface(0.0, 1.0), "E-CONTACT-088"),
        (lambda: SoftSurface(1.0, math.nan), "E-CONTACT-088"),
        (lambda: HuntCrossley(1.0, -1.0), "E-CONTACT-088"),
        (lambda: HuntCrossley(1.0, 0.1, 1.3), "E-CONTACT-087"),
        (lambda: SoftFriction(-0.1, 1.0, 1.0), "E-CONTACT-088"),
        (lambda: SoftContact(STIFF, tangents=3), "E-CONTACT-082"),
        (lambda: SoftContact(STIFF).response([], 0.0, 0.0, [0.0, 0.0]), "E-CONTACT-084"),
        (lambda: SoftContact(STIFF).response([0.0], 0.0, 0.0, [0.0]), "E-CONTACT-083"),
    ],
)
def test_bad_numbers_are_refused(make: Callable[[], Any], message: str) -> None:
    with raises(message):
        make()
