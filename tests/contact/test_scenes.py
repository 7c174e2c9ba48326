"""Scenes with known outcomes at 2 ms by the compiled time-stepping integrator."""

import itertools
import math

import numpy as np
import pytest

import chasles
from chasles import contact

DT = 0.002


def loaded(tmp_path, bodies, gravity="0 0 -9.81"):
    file = tmp_path / "scene.xml"
    file.write_text(
        f"<mujoco><compiler angle='radian'/><option gravity='{gravity}'/>"
        f"<worldbody>{bodies}</worldbody></mujoco>"
    )
    return chasles.load(file)


def brick(name, mass, edges, joint="<freejoint/>", pos="0 0 0", center="0 0 0"):
    a, b, c = np.array(edges) ** 2
    ixx, iyy, izz = mass / 12.0 * np.array([b + c, a + c, a + b])
    return (
        f'<body name="{name}" pos="{pos}">{joint}<inertial pos="{center}" mass="{mass}" '
        f'diaginertia="{ixx} {iyy} {izz}"/></body>'
    )


def stepped(robot, q, pairs, duration, qd=None, dt=DT, **more):
    qd = np.zeros(robot.nv) if qd is None else qd
    return robot.simulate(
        q, qd, duration=duration, dt=dt, contacts=pairs, integrator="time-stepping", **more
    )


@pytest.mark.parametrize("masses", [[1.0] * 10, [1.0, 1.0, 1.0, 100.0]])
def test_a_stack_dropped_by_a_millimetre_stands_for_ten_seconds(tmp_path, masses):
    edges, n = (0.2, 0.2, 0.1), len(masses)
    robot = loaded(tmp_path, "".join(brick(f"b{k}", m, edges) for k, m in enumerate(masses)))
    law = contact.Rigid(friction=0.6)
    shapes = [contact.Box(f"b{k}", edges) for k in range(n)]
    pairs = [contact.Pair(shapes[0], contact.Plane(), law)]
    pairs += [contact.Pair(b, a, law) for a, b in itertools.pairwise(shapes)]
    shift = 0.005 * np.random.default_rng(1).normal(size=(n, 2))
    q = np.concatenate([[1, 0, 0, 0, *shift[k], 0.051 + 0.101 * k] for k in range(n)])
    run = stepped(robot, q, pairs, 10.0, every=100)
    high = run.q[-1].reshape(n, 7)[:, 6]
    assert np.allclose(high, 0.05 + 0.1 * np.arange(n), atol=1e-5)
    assert np.abs(run.q[len(run.t) // 2] - run.q[-1]).max() < 1e-4
    assert np.abs(run.qd[-1]).max() < 1e-6
    assert run.excess < 1e-6


@pytest.mark.parametrize(("mu", "stands"), [(0.4, True), (0.1, False)])
def test_two_cards_lean_on_each_other_if_friction_is_half_the_tangent(tmp_path, mu, stands):
    """A card at an angle to the vertical needs mu >= tan(angle) / 2 on the ground."""
    edges, angle = (0.004, 0.1, 0.2), 0.35  # tan / 2 = 0.18
    robot = loaded(tmp_path, brick("left", 0.05, edges) + brick("right", 0.05, edges))
    law = contact.Rigid(friction=mu)
    left, right = contact.Box("left", edges), contact.Box("right", edges)
    pairs = [contact.Pair(card, contact.Plane(), law) for card in (left, right)]
    pairs.append(contact.Pair(right, left, law))
    half = 0.5 * np.array(edges)
    out = half[2] * math.sin(angle) + half[0] * math.cos(angle)
    up = half[2] * math.cos(angle) + half[0] * math.sin(angle)
    q = np.concatenate(
        [[math.cos(angle / 2), 0, sign * math.sin(angle / 2), 0, -sign * out, 0, up]
         for sign in (1.0, -1.0)]
    )  # fmt: skip
    run = stepped(robot, q, pairs, 3.0)
    fallen = up - run.q[-1, 6]
    assert fallen < 1e-4 if stands else fallen > 0.05


def dominoes(tmp_path, n, gap):
    """Dominoes that turn about their lower edges, and the contact of each with the next."""
    edges = (0.008, 0.02, 0.04)
    bodies = "".join(
        brick(f"d{k}", 0.01, edges, "<joint axis='0 1 0'/>", f"{k * (edges[0] + gap)} 0 0",
              f"{-edges[0] / 2} 0 {edges[2] / 2}")
        for k in range(n)
    )  # fmt: skip
    law = contact.Rigid()
    pairs = [
        contact.Pair(
            contact.Point(f"d{k}", (0.0, 0.0, edges[2])),
            contact.Box(f"d{k + 1}", edges, (-edges[0] / 2, 0.0, edges[2] / 2)),
            law,
        )
        for k in range(n - 1)
    ]
    return loaded(tmp_path, bodies), pairs


def arrival(run, n):
    """When the last domino begins to turn."""
    return run.t[np.argmax(run.q[:, n - 1] > 1e-3)]


@pytest.mark.parametrize(("dt", "tolerance"), [(0.002, 0.1), (0.0005, 0.02)])
def test_a_row_of_dominoes_falls_as_fast_as_with_events(tmp_path, dt, tolerance):
    n = 8
    robot, pairs = dominoes(tmp_path, n, 0.02)
    qd = np.zeros(n)
    qd[0] = 10.0
    exact = robot.simulate(np.zeros(n), qd, duration=0.6, dt=1e-3, contacts=pairs, integrator="rk4")
    run = stepped(robot, np.zeros(n), pairs, 0.6, qd, dt=dt)
    assert exact.q[-1, n - 1] > 0.5  # all fall
    assert arrival(run, n) == pytest.approx(arrival(exact, n), rel=tolerance)


def test_a_cradle_with_gaps_passes_the_blow_on(tmp_path):
    n, radius, gap = 5, 0.02, 0.006
    ball = "<body name='b{k}' pos='{x} 0 0'><joint type='slide' axis='1 0 0'/>{i}</body>"
    inertial = "<inertial pos='0 0 0' mass='0.1' diaginertia='1e-5 1e-5 1e-5'/>"
    bodies = (ball.format(k=k, x=k * (2 * radius + gap), i=inertial) for k in range(n))
    robot = loaded(tmp_path, "".join(bodies), "0 0 0")
    law = contact.Rigid(restitution=1.0)
    balls = [contact.Sphere(f"b{k}", radius) for k in range(n)]
    pairs = [contact.Pair(b, a, law) for a, b in itertools.pairwise(balls)]
    run = stepped(robot, np.zeros(n), pairs, 0.1, np.array([1.0, 0, 0, 0, 0]))
    assert np.allclose(run.qd[-1], [0, 0, 0, 0, 1], atol=1e-3)
    # All pass one gap; the last goes on with the blow's speed after 4 gaps at 1 m/s.
    assert run.q[-1, -1] == pytest.approx(0.1 - 4 * gap, rel=0.01)


@pytest.mark.parametrize("mu", [0.5, 1.5, 3.0])
@pytest.mark.parametrize("angle", [0.4, 0.8, 1.2])
def test_painleves_rod_does_not_fail(tmp_path, mu, angle):
    """A rod that slides on its end with friction above 4/3 has states without rigid motion."""
    robot = loaded(tmp_path, brick("rod", 1.0, (1.0, 0.01, 0.01)))
    pair = contact.Pair(contact.Point("rod", (0.5, 0.0, 0.0)), contact.Plane(),
                        contact.Rigid(friction=mu))  # fmt: skip
    turned = [math.cos(angle / 2), 0.0, math.sin(angle / 2), 0.0]
    q = np.array([*turned, 0.0, 0.0, 0.5 * math.sin(angle)])
    slide = 5.0 * np.array([math.cos(angle), 0.0, math.sin(angle)])  # along x in the rod's axes
    for sign in (1.0, -1.0):
        run = stepped(robot, q, [pair], 0.5, np.concatenate([np.zeros(3), sign * slide]))
        energy = robot.kinetic_energy(run.q, run.qd) + robot.potential_energy(run.q)
        assert np.isfinite(run.qd).all()
        assert np.diff(energy).max() < 1e-6 * energy[0]
        assert -run.touching.gaps.min() < 1e-3
        assert run.excess < 1e-9
