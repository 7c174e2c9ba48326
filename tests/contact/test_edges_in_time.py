"""Boxes that slide off edges of boxes move according to equations derived by hand."""

import math

import edge_scenes
import numpy as np
import pytest
from contact_bodies import GRAVITY, block, free
from scipy.integrate import solve_ivp

import chasles
from chasles.contact import Box, Pair, Plane, Rigid

TABLE = Box(None, (1.0, 1.0, 0.2), (0.0, 0.0, -0.1))
EDGE = 0.5


def crate(speed: float, mu: float, size: float = 0.2, start: float = 0.35) -> chasles.Trajectory:
    """Trajectory of a cube that slides over the table towards its edge at x = EDGE."""
    return chasles.simulate(
        block(2.0, (size, size, size)),
        [1.0, 0, 0, 0, start, 0, 0.5 * size],
        [0.0, 0, 0, speed, 0, 0],
        duration=0.3,
        dt=5e-3,
        contacts=[Pair(Box("body", (size, size, size)), TABLE, Rigid(mu))],
    )


def by_hand(
    speed: float, mu: float, size: float = 0.2, start: float = 0.35
) -> tuple[float, float, float]:
    """Return x, z and the angle of the cube at 0.3 s, from Newton's and Euler's laws in the plane.

    The cube has unit mass, radius of gyration k and half height h. Its center is a distance s
    before the edge. Friction -mu N along its base and the edge force N give the angular
    acceleration (mu h - s) N/k^2. The cube tips by an angle a once s is below mu h. It slides on
    until its end has passed the edge, or until N vanishes, and then falls freely.
    """
    h, k2, end = 0.5 * size, size * size / 6.0, 0.3
    s = EDGE - start

    def push(y: np.ndarray) -> float:
        s, a, ds, da = y
        free_of_turning = GRAVITY * math.cos(a) + 2.0 * ds * da - h * da * da
        return free_of_turning / (1.0 - s * (mu * h - s) / k2)

    def rates(t: float, y: np.ndarray) -> list[float]:
        s, a, ds, da = y
        N = push(y)
        dda = (mu * h - s) * N / k2
        dds = h * dda + s * da * da - GRAVITY * math.sin(a) + mu * N
        return [ds, da, dds, dda]

    def off(t: float, y: np.ndarray) -> float:
        return min(y[0] + h, push(y))

    off.terminal = True
    braked = mu * GRAVITY
    way = s - mu * h
    v = math.sqrt(speed**2 - 2.0 * braked * way)
    t = way / (0.5 * (speed + v))
    options = {"rtol": 1e-11, "atol": 1e-13, "events": off}
    tipping = solve_ivp(rates, (t, end), [mu * h, 0.0, -v, 0.0], **options)
    (s, a, ds, da), left = tipping.y[:, -1], end - tipping.t[-1]
    c, n = math.cos(a), math.sin(a)
    x, z = EDGE - s * c + h * n, s * n + h * c
    u, w = h * da - ds, s * da
    fallen = w * c - u * n
    return x + (u * c + w * n) * left, z + fallen * left - 0.5 * GRAVITY * left**2, a + da * left


@pytest.mark.parametrize(("speed", "mu"), [(2.0, 0.4), (2.5, 0.4), (1.0, 0.0), (3.0, 0.2)])
def test_a_crate_that_slides_off_moves_as_equations_by_hand_say(speed: float, mu: float) -> None:
    motion = crate(speed, mu)
    w, _, y, _ = motion.q[-1, :4]
    found = motion.q[-1, 4], motion.q[-1, 6], 2.0 * math.atan2(y, w)
    assert np.allclose(found, by_hand(speed, mu), atol=2e-7)
    assert [event.name for event in motion.events] == ["gain body", "loss body"]
    assert np.min(motion.touching.gaps) > -1e-9


@pytest.mark.parametrize("beyond", [-1e-6, 1e-6, 0.03, 0.15])
def test_a_rod_that_overhangs_falls_as_a_pendulum_about_the_edge(beyond: float) -> None:
    """The rod tips if its center is beyond the edge; at first, friction holds it at the edge.

    Until it slips, (k^2 + d^2 + h^2) w^2/2 = g (d sin + h (1 - cos)) of its angle. The center is
    beyond the edge by d.
    """
    size = (0.5, 0.04, 0.02)
    h, k2 = 0.5 * size[2], (size[0] ** 2 + size[2] ** 2) / 12.0
    motion = chasles.simulate(
        block(1.0, size),
        [1.0, 0, 0, 0, EDGE + beyond, 0, h],
        np.zeros(6),
        duration=0.15,
        dt=5e-3,
        contacts=[Pair(Box("body", size), TABLE, Rigid(1.5))],
    )
    slips = min((event.t for event in motion.events if event.name == "slip body"), default=1.0)
    held = motion.t <= slips
    angle = 2.0 * np.arctan2(motion.q[held, 2], motion.q[held, 0])
    gained = GRAVITY * (beyond * np.sin(angle) + h * (1.0 - np.cos(angle)))
    spin = 0.5 * (k2 + beyond**2 + h * h) * motion.qd[held, 1] ** 2
    assert slips > 0.05
    assert (angle[-1] > 1e-7) == (beyond > 0.0)
    assert np.allclose(spin, gained, rtol=1e-6, atol=1e-9)
    first = GRAVITY * beyond / (k2 + beyond**2 + h * h)
    assert beyond < 0.01 or math.isclose(motion.qd[1, 1], first * 5e-3, rel_tol=1e-3)


@pytest.mark.parametrize("yaw", [0.0, 0.4])
def test_a_box_that_leaves_a_moving_one_keeps_the_momentum_of_both(yaw: float) -> None:
    """The ground has no friction, so no external force acts on the boxes along x and y."""
    sizes = (0.3, 0.3, 0.15), (0.2, 0.2, 0.2)
    robot = free(*map(edge_scenes.cuboid, "ab", (1.0, 2.0), sizes))
    low, high = (Box(name, size) for name, size in zip("ab", sizes, strict=True))
    over = edge_scenes.turned(yaw, (0.0, 0.0, 1.0))
    motion = chasles.simulate(
        robot,
        [1.0, 0, 0, 0, 0, 0, 0.075, *over, 0.0, 0.02, 0.25],
        [0, 0, 0, -0.5, 0, 0, 0, 0, 0, 1.5 * math.cos(yaw), -1.5 * math.sin(yaw), 0.0],
        duration=0.4,
        dt=5e-3,
        contacts=[
            Pair(low, Plane(), Rigid()),
            Pair(high, Plane(), Rigid()),
            Pair(high, low, Rigid(0.4)),
        ],
    )
    p = robot.momentum(motion.q, motion.qd, at="world")[:, 3:]
    assert np.allclose(p[:, :2], [-0.5 + 2.0 * 1.5, 0.0], atol=1e-6)  # velocities along body axes
    assert any(event.name.startswith("impact b[") for event in motion.events)  # with the ground
    energy = robot.kinetic_energy(motion.q, motion.qd) + robot.potential_energy(motion.q)
    assert np.max(np.diff(energy)) < 1e-7 * energy[0]


HARD = (50, 72, 141, 537, 760, 835)
"""Numbers of difficult scenes.

- 50: two points that stick and clamp each other
- 72: a box that slides flat or tilts
- 141: a point that separates slowly next to one that stays
- 537: five points in one plane
- 760: a slow point that appears below the surface
- 835: two boxes that satisfy Coulomb's law in nine ways
"""


@pytest.mark.parametrize("number", [*range(12), *HARD])
def test_random_boxes_leave_edges_without_an_error_or_a_gain_of_energy(number: int) -> None:
    found = edge_scenes.outcome(edge_scenes.scene(number)[1])
    assert found.grown < 1e-6 * found.size
    assert found.gap > -1e-6
