"""Scenes with known outcomes, in steps of 2 ms by the compiled time-stepping integrator."""

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


@pytest.mark.parametrize("masses", [[1.0] * 5, [1.0, 1.0, 1.0, 100.0]])
def test_a_stack_stands_for_ten_seconds(tmp_path, masses):
    edges, n = (0.2, 0.2, 0.1), len(masses)
    robot = loaded(tmp_path, "".join(brick(f"b{k}", m, edges) for k, m in enumerate(masses)))
    law = contact.Rigid(friction=0.6)
    shapes = [contact.Box(f"b{k}", edges) for k in range(n)]
    pairs = [contact.Pair(shapes[0], contact.Plane(), law)]
    pairs += [contact.Pair(b, a, law) for a, b in itertools.pairwise(shapes)]
    q = np.concatenate([[1, 0, 0, 0, 0, 0, 0.05 + 0.1 * k] for k in range(n)])
    run = stepped(robot, q, pairs, 10.0, every=100)
    high = run.q[-1].reshape(n, 7)[:, 6]
    assert np.allclose(high, 0.05 + 0.1 * np.arange(n), atol=1e-5)
    assert np.abs(run.q[len(run.t) // 2] - run.q[-1]).max() < 1e-4
    assert np.abs(run.qd[-1]).max() < 1e-6
    assert run.excess < 1e-6


@pytest.mark.parametrize(("mu", "stands"), [(0.4, True), (0.1, False)])
def test_two_cards_lean_on_each_other_if_friction_is_half_the_tangent(tmp_path, mu, stands):
    """A card inclined to the vertical needs mu >= tan(angle) / 2 on the ground."""
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


def cradle(tmp_path, masses, gap, **law):
    """Return balls of diameter 4 cm on a line without gravity, and the pairs of neighbors."""
    radius = 0.02
    ball = "<body name='b{k}' pos='{x} 0 0'><joint type='slide' axis='1 0 0'/>{i}</body>"
    inertial = "<inertial pos='0 0 0' mass='{m}' diaginertia='1e-5 1e-5 1e-5'/>"
    bodies = (
        ball.format(k=k, x=k * (2 * radius + gap), i=inertial.format(m=m))
        for k, m in enumerate(masses)
    )
    robot = loaded(tmp_path, "".join(bodies), "0 0 0")
    balls = [contact.Sphere(f"b{k}", radius) for k in range(len(masses))]
    return robot, [contact.Pair(b, a, contact.Rigid(**law)) for a, b in itertools.pairwise(balls)]


def test_a_cradle_with_gaps_passes_the_blow_on(tmp_path):
    n, gap = 5, 0.006
    robot, pairs = cradle(tmp_path, [0.1] * n, gap, restitution=1.0)
    run = stepped(robot, np.zeros(n), pairs, 0.1, np.array([1.0, 0, 0, 0, 0]))
    assert np.allclose(run.qd[-1], [0, 0, 0, 0, 1], atol=1e-3)
    # Each ball crosses one gap. The last ball moves at 1 m/s after 4 gaps have been crossed.
    assert run.q[-1, -1] == pytest.approx(0.1 - 4 * gap, rel=0.01)


@pytest.mark.parametrize("struck", [1, 2, 4])
def test_a_cradle_of_touching_balls_passes_the_blow_on_in_sequence(tmp_path, struck):
    """Equal numbers of balls arrive and leave; impacts solved together would move all balls."""
    n = 5
    law = {"restitution": 1.0, "friction": 0.3}
    robot, pairs = cradle(tmp_path, [0.1] * n, 0.0, sequence=True, **law)
    start = np.array([1.0] * struck + [0.0] * (n - struck))
    q = np.array([-0.0127] * struck + [0.0] * (n - struck))
    run = stepped(robot, q, pairs, 0.1, start)
    assert np.allclose(run.qd[-1], start[::-1], atol=1e-3)
    # The time of the impact within its step is taken into account.
    assert run.q[-1, -1] == pytest.approx(0.1 - 0.0127, rel=5e-4)
    assert run.unsolved == 0
    robot, pairs = cradle(tmp_path, [0.1] * n, 0.0, **law)
    together = stepped(robot, q, pairs, 0.1, start)
    assert np.abs(together.qd[-1] - start[::-1]).max() > 0.1
    if struck == 1:  # e = 1 at the contact that is hit, and e = 0 at the others
        assert np.allclose(together.qd[-1], [-0.6, 0.4, 0.4, 0.4, 0.4], atol=1e-3)


@pytest.mark.parametrize("restitution", [0.6, 1.0])
def test_unequal_touching_balls_move_as_after_sequential_impacts(tmp_path, restitution):
    """Momentum is conserved, and the velocities agree with `contact.impact`."""
    masses = [0.1, 0.4, 0.05, 0.2]
    robot, pairs = cradle(tmp_path, masses, 0.0, restitution=restitution, sequence=True)
    q, qd = np.array([-0.01, 0.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0])
    run = stepped(robot, q, pairs, 0.012, qd)
    found = [contact.contact_points(robot, 0 * q, qd, p.body, p.surface)[0] for p in pairs]
    law = contact.Newton(restitution)
    known = contact.impact(robot, 0 * q, qd, found, law, treatment="sequential")
    np.testing.assert_allclose(run.qd[-1], known.qd, atol=2e-3)
    assert masses @ run.qd[-1] == pytest.approx(masses @ qd, rel=1e-9)


@pytest.mark.parametrize("mu", [0.5, 1.5, 3.0])
@pytest.mark.parametrize("angle", [0.4, 0.8, 1.2])
def test_painleves_rod_does_not_fail(tmp_path, mu, angle):
    """A rod sliding on its end with mu > 4/3 has states without a rigid contact solution."""
    robot = loaded(tmp_path, brick("rod", 1.0, (1.0, 0.01, 0.01)))
    pair = contact.Pair(contact.Point("rod", (0.5, 0.0, 0.0)), contact.Plane(),
                        contact.Rigid(friction=mu))  # fmt: skip
    turned = [math.cos(angle / 2), 0.0, math.sin(angle / 2), 0.0]
    q = np.array([*turned, 0.0, 0.0, 0.5 * math.sin(angle)])
    slide = 5.0 * np.array([math.cos(angle), 0.0, math.sin(angle)])  # along the world's x
    for sign in (1.0, -1.0):
        run = stepped(robot, q, [pair], 0.5, np.concatenate([np.zeros(3), sign * slide]))
        energy = robot.kinetic_energy(run.q, run.qd) + robot.potential_energy(run.q)
        assert np.isfinite(run.qd).all()
        assert energy.max() <= energy[0]  # overlap of a rotating end is released later
        assert -run.touching.gaps.min() < 1e-3
        assert run.excess < 1e-9


def test_a_stack_with_offsets_stands_for_ten_seconds(tmp_path):
    """Each box is shifted, and rotated about the vertical, relative to the box below it."""
    edges, n, shift, turn = (0.2, 0.2, 0.1), 6, 0.02, 0.4
    robot = loaded(tmp_path, "".join(brick(f"b{k}", 1.0, edges) for k in range(n)))
    law = contact.Rigid(friction=0.6)
    shapes = [contact.Box(f"b{k}", edges) for k in range(n)]
    pairs = [contact.Pair(shapes[0], contact.Plane(), law)]
    pairs += [contact.Pair(b, a, law) for a, b in itertools.pairwise(shapes)]
    q = np.concatenate(
        [[math.cos(k * turn / 2), 0, 0, math.sin(k * turn / 2),
          shift * (k % 3 - 1), shift * (k % 2), 0.05 + 0.1 * k] for k in range(n)]
    )  # fmt: skip
    run = stepped(robot, q, pairs, 10.0, every=100)
    moved = np.abs(run.q - q)
    assert moved[:, np.arange(7 * n) % 7 >= 4].max() < 1e-4
    assert np.abs(run.qd[-1]).max() < 1e-5
    assert run.excess < 1e-6


DOMINO = (0.0075, 0.02, 0.04)
PITCH = 0.02


def dominoes(tmp_path, n):
    """Return dominoes that rotate about their lower front edges, and two lists of contact pairs.

    The dominoes cannot fall backwards.
    """
    center = np.array([-0.5 * DOMINO[0], 0.0, 0.5 * DOMINO[2]])
    joint = "<joint type='hinge' axis='0 1 0' limited='true' range='0 1.5'/>"
    rows = (
        brick(f"d{k}", 0.01, DOMINO, joint, f"{k * PITCH} 0 0", " ".join(map(str, center)))
        for k in range(n)
    )
    robot = loaded(tmp_path, "".join(rows))
    law = contact.Rigid(friction=0.2)
    top, back = (0.0, 0.0, DOMINO[2]), (-DOMINO[0], 0.0, 0.0)
    corners = [
        contact.Pair(
            contact.Point(f"d{k}", top), contact.Plane(f"d{k + 1}", (-1.0, 0.0, 0.0), back), law
        )
        for k in range(n - 1)
    ]
    boxes = [contact.Box(f"d{k}", DOMINO, tuple(center)) for k in range(n)]
    faces = [contact.Pair(a, b, law) for a, b in itertools.pairwise(boxes)]
    return robot, corners, faces


def speed_of_row(run, first):
    """Return the speed at which dominoes start to fall, counted at an angle of 0.05 rad."""
    n = run.q.shape[1]
    times = []
    for angle in run.q.T:
        k = np.argmax(angle > 0.05)
        assert k, "a domino stands"
        times.append(np.interp(0.05, angle[k - 1 : k + 1], run.t[k - 1 : k + 1]))
    return PITCH * (n - 1 - first) / (times[-1] - times[first])


def test_a_row_of_dominoes_falls_with_the_speed_of_the_event_driven_simulation(tmp_path):
    robot, corners, faces = dominoes(tmp_path, 8)
    start = np.zeros(8), np.array([6.0, *[0.0] * 7])
    known = robot.simulate(*start, duration=0.4, dt=0.0005, contacts=corners, limits=True)
    expected = speed_of_row(known, 2)
    steps = (0.002, 0.1), (0.0005, 0.02)  # dt (s), relative tolerance
    for pairs, (dt, tolerance) in itertools.product((corners, faces), steps):
        run = stepped(robot, start[0], pairs, 0.4, start[1], dt=dt, limits=True)
        assert speed_of_row(run, 2) == pytest.approx(expected, rel=tolerance)
        assert run.excess < 1e-9
        assert run.unsolved == 0


def test_free_dominoes_fall(tmp_path):
    n = 5
    robot = loaded(tmp_path, "".join(brick(f"d{k}", 0.01, DOMINO) for k in range(n)))
    boxes = [contact.Box(f"d{k}", DOMINO) for k in range(n)]
    law = contact.Rigid(friction=0.2)
    pairs = [contact.Pair(box, contact.Plane(), contact.Rigid(friction=0.8)) for box in boxes]
    pairs += [contact.Pair(b, a, law) for a, b in itertools.pairwise(boxes)]
    q = np.concatenate([[1, 0, 0, 0, k * PITCH, 0, 0.5 * DOMINO[2]] for k in range(n)])
    qd = np.zeros(6 * n)
    arm = np.array([-0.5 * DOMINO[0], 0.0, 0.5 * DOMINO[2]])  # relative to the lower front edge
    qd[1], qd[3:6] = 6.0, np.cross([0.0, 6.0, 0.0], arm)
    run = stepped(robot, q, pairs, 0.6, qd)
    turned = run.q[-1].reshape(n, 7)
    assert np.all(2.0 * np.arctan2(turned[:, 2], turned[:, 0]) > 0.8)
    assert run.excess < 1e-9
