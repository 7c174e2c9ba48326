"""Compare friction laws of the NumPy reference with closed forms, for steps of 2 ms.

The law "lagged" holds the normal impulse constant while each convex problem is solved. It keeps
sliding bodies on the ground, where the associated cone of SAP and MuJoCo lifts them by mu v_t dt.
It needs two Newton steps, where projected sweeps need hundreds.
"""

import math

import numpy as np
import pytest
from contact_steps import (
    associated,
    ball,
    between_balls,
    brick,
    gauss_seidel,
    lagged,
    on_plane,
    run,
    stacked,
)

DT = 0.002


def slope(angle):
    """Return the normal of a slope that descends along -x, and its axes as columns."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([-s, 0.0, c]), np.array([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]])


def slid(mu, angle, law, steps=250):
    """Return speed, distance, largest height of the lowest corner, and mean iterations."""
    n, R = slope(angle)
    gaps, counts = [], []

    def each(bodies, p, v, g, count):
        gaps.append(min(c.gap for c in p.contacts))
        counts.append(count)

    start = brick(1.0, (0.2, 0.1, 0.05), 0.025 * n, R=R)
    end = run([start], lambda b: on_plane(b, n, mu), DT, steps, law, each=each)[0]
    return -end.v @ R[:, 0], -(end.x - start.x) @ R[:, 0], max(gaps), np.mean(counts)


def test_a_brick_sticks_below_the_angle_of_friction_and_slides_above_it():
    mu = 0.5
    speed, way, _, _ = slid(mu, 0.95 * math.atan(mu), lagged)
    assert abs(speed) < 2e-5  # creep due to the compliance of friction
    assert abs(way) < 1e-5
    angle = 1.05 * math.atan(mu)
    expected = 9.81 * (math.sin(angle) - mu * math.cos(angle)) * 250 * DT
    assert slid(mu, angle, lagged)[0] == pytest.approx(expected, rel=1e-6)


def test_the_associated_cone_lifts_what_slides_and_held_impulses_do_not():
    mu, angle = 1.5, 1.2
    speed, _, lifted, _ = slid(mu, angle, associated)
    assert lifted == pytest.approx(mu * speed * DT, rel=0.02)  # 6 mm at 1.9 m/s
    speed, _, lifted, count = slid(mu, angle, lagged)
    expected = 9.81 * (math.sin(angle) - mu * math.cos(angle)) * 250 * DT
    assert speed == pytest.approx(expected, rel=1e-6)
    assert lifted < 1e-7
    assert count < 2.0


def test_held_impulses_and_projected_sweeps_agree():
    mu, angle = 0.5, 0.7
    few = slid(mu, angle, lambda p: gauss_seidel(p, 300), 20)
    assert slid(mu, angle, lagged, 20)[0] == pytest.approx(few[0], rel=1e-5)


def test_a_ball_that_slides_begins_to_roll_with_five_sevenths_of_its_speed():
    start = ball(1.0, 0.1, (0.0, 0.0, 0.1), v=np.array([2.0, 0.0, 0.0]))
    end = run([start], lambda b: on_plane(b, (0, 0, 1), 0.3), DT, 300)[0]
    assert end.v[0] == pytest.approx(10.0 / 7.0, rel=2e-3)
    assert end.w[1] == pytest.approx(end.v[0] / 0.1, rel=1e-4)


def test_a_ball_bounces_to_the_square_of_restitution_of_its_height():
    e, high = 0.8, []
    start = ball(1.0, 0.05, (0.0, 0.0, 1.05))

    def each(bodies, *_):
        high.append(bodies[0].x[2] - 0.05)

    run([start], lambda b: on_plane(b, (0, 0, 1), 0.3, e), DT, 1300, each=each)
    high = np.array(high)
    peaks = high[1:-1][(high[1:-1] > high[:-2]) & (high[1:-1] > high[2:])]
    assert np.allclose(peaks[:3], [e**2, e**4, e**6], rtol=0.01)


@pytest.mark.parametrize("masses", [[1.0] * 5, [1.0, 1.0, 100.0]])
def test_stacks_stand(masses):
    bodies = [brick(m, (0.2, 0.2, 0.1), (0, 0, 0.05 + 0.1 * k)) for k, m in enumerate(masses)]

    def contacts(b):
        found = on_plane(b[:1], (0, 0, 1), 0.6)
        for k in range(len(b) - 1):
            found += stacked(b[k], b[k + 1], k, k + 1, 0.6)
        return found

    end = run(bodies, contacts, DT, 100)
    for one, other in zip(bodies, end, strict=True):
        assert np.linalg.norm(one.x - other.x) < 1e-4
    assert max(np.linalg.norm(b.v) for b in end) < 1e-4


def test_the_first_two_of_three_balls_with_gaps_pass_the_blow_on():
    row = [ball(1.0, 0.05, (0.12 * k, 0, 0)) for k in range(3)]
    row[0].v = np.array([1.0, 0.0, 0.0])
    loads = -np.concatenate([[0, 0, 0, *np.array([0, 0, -9.81])] for _ in row])  # weightless
    end = run(row, lambda b: between_balls(b, 0.0, 1.0), DT, 60, loads=loads)
    assert np.allclose([b.v[0] for b in end], [0.0, 0.0, 1.0], atol=1e-2)
