"""Compare `chasles.homogeneous` with dense arrays, SciPy and robots; refuse bad input."""

import inspect
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation as Oracle
from support import close, raises

import chasles
from chasles import homogeneous as hm
from chasles.expr import RULES, Arena
from chasles.mathematics.angles import SEQUENCES

EXACT = 4e-15
NAN, INF = math.nan, math.inf


def pose(R=None, t=(0.0, 0.0, 0.0)):
    M = np.eye(4)
    M[:3, :3] = np.eye(3) if R is None else R
    M[:3, 3] = t
    return M


def about(axis, angle):
    return pose(Oracle.from_euler(axis, angle).as_matrix())


def hat(w, v):
    (x, y, z), (a, b, c) = w, v
    return np.array([[0, -z, y, a], [z, 0, -x, b], [-y, x, 0, c], [0, 0, 0, 0]], dtype=float)


# Positions -------------------------------------------------------------------------------------


def test_denavit_and_hartenberg():
    theta, d, a, alpha = 0.4, 0.2, -0.3, 1.1
    expected = about("z", theta) @ pose(t=(0, 0, d)) @ pose(t=(a, 0, 0)) @ about("x", alpha)
    close(hm.position_from_dh(theta, d, a, alpha), expected, EXACT)


@pytest.mark.parametrize(
    ("kind", "q", "turn", "slide"),
    [
        ("revolute", 0.25, 0.25, 0.0),
        ("prismatic", 0.25, 0.0, 0.25),
        ("helical", 0.25, 0.25, 0.25 * -0.3),
        ("cylindrical", (0.25, 0.6), 0.25, 0.6),
        ("cylindrical", 0.0, 0.0, 0.0),
    ],
)
def test_extended_denavit_and_hartenberg(kind, q, turn, slide):
    theta, s, b, a, alpha = 0.4, 0.2, 0.7, -0.3, 1.1
    M = hm.position_from_extended_dh(theta, s, b, a, alpha, kind=kind, q=q, pitch=-0.3)
    theta, s = theta + turn, s + slide
    c, d = math.cos(theta), math.sin(theta)
    rotation = (about("z", theta) @ about("x", alpha))[:3, :3]
    close(M, pose(rotation, (a * c - b * d, a * d + b * c, s)), EXACT)
    straight = pose(t=(0, 0, s)) @ pose(t=(a, 0, 0)) @ pose(t=(0, b, 0)) @ about("x", alpha)
    close(M, about("z", theta) @ straight, EXACT)


def test_right_angles_are_exact():
    M = np.asarray(hm.position_from_dh(math.pi, 0.0, 0.0, -math.pi / 2))
    assert set(np.abs(M).ravel().tolist()) == {0.0, 1.0}


def test_axis_and_angle():
    axis, angle = np.array([1.0, -2.0, 2.0]) / 3, 2.2
    M = hm.position_from_axis_angle(axis * 5.0, angle, origin=(1, 2, 3))
    close(M, pose(Oracle.from_rotvec(axis * angle).as_matrix(), (1, 2, 3)), EXACT)
    found, turned = hm.axis_angle_from_position(M)
    close(found, axis, EXACT)
    close(turned, angle, EXACT)
    none, zero = hm.axis_angle_from_position(np.eye(4))
    assert none.tolist() == [0.0, 0.0, 1.0]
    assert zero == 0.0


@pytest.mark.parametrize("axes", ["moving", "fixed"])
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_angles(sequence, axes):
    angles = [0.3, -1.2, 2.5]
    M = hm.position_from_angles(sequence, angles, (1, 2, 3), axes=axes)
    name = sequence.upper() if axes == "moving" else sequence
    close(M, pose(Oracle.from_euler(name, angles).as_matrix(), (1, 2, 3)), EXACT)
    solutions = hm.angles_from_position(np.asarray(M), sequence, axes=axes)
    assert min(np.abs(s - angles).max() for s in solutions) < 1e-14
    for found in solutions:
        close(hm.position_from_angles(sequence, found, (1, 2, 3), axes=axes), M, EXACT)


def test_urdf_angles():
    """Roll, pitch and yaw of URDF are x, y, z about fixed axes."""
    M = hm.position_from_angles("xyz", (0.1, 0.2, 0.3), axes="fixed")
    close(M, about("z", 0.3) @ about("y", 0.2) @ about("x", 0.1), EXACT)


def test_frame_from_its_axes():
    R = Oracle.from_rotvec([0.3, 0.2, -1.0]).as_matrix()
    close(hm.position_from_axes(*R.T, origin=(1, 2, 3)), pose(R, (1, 2, 3)), EXACT)


def test_rototranslation():
    M1 = hm.position_from_angles("zyx", (0.1, 0.5, 0.7), (1, 0, 2))
    M2 = hm.position_from_angles("zxz", (1.1, -0.5, 0.2), (0, 3, 1))
    Q = hm.rototranslation(M1, np.asarray(M2))
    close(Q, np.asarray(M2) @ np.linalg.inv(M1), EXACT)
    axis, point, angle, travel, pitch = hm.screw_motion(Q)
    close(hm.rototranslation_from_axis(axis, angle, point, travel=travel), Q, EXACT)
    close(hm.exponential(hm.screw_from_axis(axis, point, pitch), angle), Q, EXACT)
    close(hm.exponential(hm.logarithm(Q)), Q, EXACT)


# Motion ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "pitch", "u", "b"),
    [
        ("revolute", 0.0, (0, 0, 1), (0, 0, 0)),
        ("prismatic", 0.0, (0, 0, 0), (0, 0, 1)),
        ("helical", 0.3, (0, 0, 1), (0, 0, 0.3)),
    ],
)
def test_joint_matrices(kind, pitch, u, b):
    """Joint matrices are those of Eq II.1, with the pitch of the screw pair, omitted in print."""
    L = hat(u, b)
    assert np.array_equal(hm.joint_screw(kind, pitch), L)
    close(hm.joint_velocity(kind, 2.0, pitch=pitch), 2 * L, EXACT)
    close(hm.joint_acceleration(kind, 2.0, -0.5, pitch=pitch), 4 * L @ L - 0.5 * L, EXACT)
    Q = hm.exponential(hm.joint_screw(kind, pitch), 0.8)
    close(Q, expm(L * 0.8), EXACT)


def test_change_of_reference_takes_the_robots_arrays():
    arm = chasles.robots.puma560()
    q, qd = arm.random(seed=1), np.linspace(0.1, 0.6, 6)
    six = arm.frame_velocity(q, qd, frame="tool", axes="frame", at="frame")
    W = hm.change_reference(hm.velocity_from_six(six), arm.forward_kinematics(q, frame="tool"))
    world = arm.frame_velocity(q, qd, frame="tool", axes="world", at="world")
    close(hm.six_numbers(W), world, 1e-13)
    close(hm.angular_part(W), world[:3], 1e-13)
    close(hm.linear_part(W), world[3:], 1e-13)


def test_composition():
    W1, W2 = hm.velocity((1, 2, 3), (4, 5, 6)), hm.velocity((-1, 0, 2), (0, 1, 0))
    H1, H2 = (
        hm.acceleration(W1, (0, 1, 0), (2, 0, 0)),
        hm.acceleration(W2, (1, 1, 1), (0, 0, 3)),
    )
    w1, w2, h1, h2 = map(np.asarray, (W1, W2, H1, H2))
    close(hm.compose_velocities(W1, W2, W2), w1 + 2 * w2, EXACT)
    composed = hm.compose_accelerations(H1, W1, H2, W2)
    close(composed, h1 + h2 + 2 * w1 @ w2, EXACT)
    coriolis = np.cross((1, 2, 3), (-1, 0, 2))
    close(hm.angular_part(composed), np.add(coriolis, (1, 2, 1)), EXACT)


# Masses ----------------------------------------------------------------------------------------


def test_inertia_from_mass_data():
    """Entries are J11 = (-jxx + jyy + jzz)/2 + m x^2 and J12 = -jxy + m x y."""
    m, (x, y, z) = 2.5, (0.3, -0.2, 0.5)
    jxx, jyy, jzz, jxy, jxz, jyz = 0.4, 0.5, 0.6, 0.02, -0.03, 0.05
    J = hm.inertia_from_mass(m, (x, y, z), (jxx, jyy, jzz, jxy, jxz, jyz))
    A = np.asarray(J)
    close(A[0, 0], (-jxx + jyy + jzz) / 2 + m * x * x, EXACT)
    close(A[0, 1], -jxy + m * x * y, EXACT)
    close(A[0, 2], -jxz + m * x * z, EXACT)
    close(A[1, 2], -jyz + m * y * z, EXACT)
    close(A[3], [m * x, m * y, m * z, m], EXACT)
    assert np.array_equal(A, A.T)
    mass, center, tensor = hm.mass_from_inertia(J)
    assert mass == m
    close(center, (x, y, z), EXACT)
    close(tensor, [[jxx, jxy, jxz], [jxy, jyy, jyz], [jxz, jyz, jzz]], EXACT)
    close(hm.inertia_from_mass(mass, center, tensor), J, EXACT)
    assert hm.mass_from_inertia(hm.Inertia.zero()).center.tolist() == [0.0, 0.0, 0.0]


def test_forces_and_energy_of_a_robot():
    """Forces and energies of a payload agree with those of a robot with this payload."""
    arm = chasles.robots.puma560()
    m, c, I = 1.5, (0.02, 0.03, 0.1), np.diag([0.01, 0.02, 0.025])
    loaded = arm.attach("tool", mass=m, center=c, inertia=I)
    rng = np.random.default_rng(0)
    q, qd, qdd = arm.random(rng), *rng.normal(size=(2, 6))
    J = hm.change_reference(hm.inertia_from_mass(m, c, I), arm.forward_kinematics(q, frame="tool"))
    view = {"frame": "tool", "axes": "world", "at": "world"}
    W = hm.velocity_from_six(arm.frame_velocity(q, qd, **view))
    rate = hm.velocity_from_six(arm.frame_acceleration(q, qd, qdd, kind="spatial", **view))
    H, Hg = hm.Acceleration.of(W, rate), hm.gravity(arm.gravity)
    close(hm.six_numbers(H), arm.frame_acceleration(q, qd, qdd, **view), 1e-12)
    phi = hm.action(H, J) - hm.weight(J, Hg)
    A = arm.jacobian(q, **view)
    extra = [hm.pseudo_product(phi, hm.Screw(u.w, u.v)) for u in map(hm.velocity_from_six, A.T)]
    tau = loaded.inverse_dynamics(q, qd, qdd) - arm.inverse_dynamics(q, qd, qdd)
    close(extra, tau, 1e-12)
    kinetic = loaded.kinetic_energy(q, qd) - arm.kinetic_energy(q, qd)
    close(hm.kinetic_energy(W, J), kinetic, 1e-12)
    potential = loaded.potential_energy(q) - arm.potential_energy(q)
    close(hm.potential_energy(Hg, J), potential, 1e-11, scale=1.0)
    gain = loaded.momentum(q, qd, at="world") - arm.momentum(q, qd, at="world")
    close(hm.six_numbers(hm.momentum(W, J)), gain, 1e-12)


def test_action_of_a_force_at_a_point():
    Phi = hm.action_from_force((1, 2, 3), (0.1, 0.2, 0.3), point=(0, 1, -1))
    close(hm.linear_part(Phi), [1, 2, 3], EXACT)
    close(hm.angular_part(Phi), np.array([0.1, 0.2, 0.3]) + np.cross((0, 1, -1), (1, 2, 3)), EXACT)
    A = np.asarray(Phi)
    assert np.array_equal(A, -A.T)


def test_skew_and_weight():
    J, Hg = hm.inertia_from_mass(2.0, (0.1, 0.2, 0.3), (1, 1, 1, 0, 0, 0)), hm.gravity()
    product = np.asarray(Hg) @ np.asarray(J)
    close(hm.skew(Hg @ J), product - product.T, EXACT)
    close(hm.skew(product), hm.weight(J, Hg), EXACT)
    assert hm.linear_part(hm.weight(J, Hg)).tolist() == [0.0, 0.0, -19.62]


# Screws, lines, conversions --------------------------------------------------------------------


def test_screws_and_lines():
    L = hm.screw_from_axis((0, 0, 2), (1, 0, 5), 0.5)
    assert np.array_equal(L, hat((0, 0, 1), (0, -1, 0.5)))
    axis, point, pitch = hm.axis_of_screw(L)
    assert (axis.tolist(), point.tolist(), pitch) == ([0, 0, 1], [1, 0, 0], 0.5)
    again, rate = hm.screw_of_velocity(L.velocity(3.0))
    assert rate == 3.0
    close(again, L, EXACT)
    slide = hm.screw_from_axis((0, 3, 0), pitch=INF)
    assert np.array_equal(slide, hat((0, 0, 0), (0, 1, 0)))
    six = hm.plucker_from_line((1, 0, 5), (0, 0, 2))
    assert six.tolist() == [0, 0, 1, 0, -1, 0]
    point, direction = hm.line_from_plucker(six)
    assert (point.tolist(), direction.tolist()) == ([1, 0, 0], [0, 0, 1])


@pytest.mark.parametrize(
    "X",
    [
        hm.position_from_angles("xyz", (0.1, 0.2, 0.3), (1, 2, 3)),
        hm.rototranslation_from_axis((1, 2, 3), 0.4, (1, 0, 0), travel=0.3),
        hm.velocity((1, 2, 3), (4, 5, 6)),
        hm.screw_from_axis((1, 2, 3), (4, 5, 6), 0.1),
        hm.inertia_from_mass(1.0, (0.1, 0.2, 0.3), (1, 2, 2.5, 0.1, 0.2, 0.3)),
        hm.momentum(hm.velocity((1, 2, 3), (4, 5, 6)), hm.inertia_from_mass(1, (1, 2, 3), [1] * 6)),
        hm.action_from_force((1, 2, 3), (4, 5, 6)),
    ],
    ids=lambda X: type(X).__name__,
)
def test_arrays_and_back(X):
    A = np.asarray(X)
    again = hm.from_array(type(X), A)
    assert type(again) is type(X)
    close(again, A, 1e-15)
    spoiled = A.copy()
    spoiled[0, 1] += 0.01
    with raises("E-MATH-009|E-MATH-012"):
        hm.from_array(type(X), spoiled)


def test_acceleration_from_array():
    W = hm.velocity((1, 2, 3), (4, 5, 6))
    H = hm.acceleration(W, (0.1, 0.2, 0.3), (7, 8, 9))
    again = hm.acceleration_from_array(np.asarray(H), W)
    close([*again.w, *again.wd, *again.a], [*H.w, *H.wd, *H.a], EXACT)
    with raises("E-MATH-012"):
        hm.acceleration_from_array(np.asarray(H), hm.velocity((1, 2, 2), (0, 0, 0)))
    with raises("E-MATH-010", "acceleration_from_array"):
        hm.from_array(hm.Acceleration, np.asarray(H))


def test_mitras_conversions():
    """v6m4, m4v6, m4v3, v4v3 and AO_H have the entries printed in the paper."""
    a, b, c, d, e, f = six = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    W = hm.velocity_from_six(six)
    printed = [[0, -c, b, d], [c, 0, -a, e], [-b, a, 0, f], [0, 0, 0, 0]]
    assert np.array_equal(W, printed)
    assert hm.six_numbers(W).tolist() == list(six)
    assert hm.angular_part(W).tolist() == [a, b, c]
    assert hm.three_numbers((7, 8, 9, 1)).tolist() == [7, 8, 9]
    M = hm.position_from_axes((0, 1, 0), (0, 0, 1), (1, 0, 0), (7, 8, 9))
    assert np.array_equal(M, [[0, 0, 1, 7], [1, 0, 0, 8], [0, 1, 0, 9], [0, 0, 0, 1]])


def test_symbols_pass_through():
    x = Arena(RULES).input("q", 0)
    M = hm.position_from_dh(x, 0.1, 0.0, math.pi / 2)
    assert repr(M.matrix()[0, 0]) == "cos(q[0])"
    assert M.matrix()[0, 1] == 0.0
    assert hm.linear_part(hm.joint_velocity("prismatic", x))[2] is x


# Bad input -------------------------------------------------------------------------------------

W, J = hm.velocity((1, 2, 3), (4, 5, 6)), hm.inertia_from_mass(1.0, (0, 0, 0), [1] * 6)
Q = hm.rototranslation_from_axis((0, 0, 1), 0.5)
BAD = [
    (lambda: hm.position_from_dh(NAN, 0, 0, 0), ValueError, "E-MATH-003 theta"),
    (lambda: hm.position_from_dh(0, INF, 0, 0), ValueError, "E-MATH-003 s"),
    (lambda: hm.position_from_dh("x", 0, 0, 0), TypeError, "E-MATH-001 'x'"),
    (lambda: hm.position_from_dh([0.1], 0, 0, 0), TypeError, "E-MATH-001"),
    (lambda: hm.position_from_dh(True, 0, 0, 0), TypeError, "E-MATH-001"),
    (lambda: hm.position_from_extended_dh(0, 0, 0, 0, 0, kind="R"), ValueError, "E-MATH-017"),
    (lambda: hm.position_from_axis_angle((0, 0, 0), 1), ValueError, "E-MATH-007"),
    (lambda: hm.position_from_axis_angle((0, 1), 1), ValueError, "E-MATH-006 (3,)"),
    (lambda: hm.position_from_axis_angle((0, 1, NAN), 1), ValueError, "E-MATH-003"),
    (
        lambda: hm.position_from_angles("xxy", (0, 0, 0)),
        ValueError,
        "E-MATH-018 'xxy'",
    ),
    (lambda: hm.position_from_angles("xyz", (0, 0)), ValueError, "E-MATH-006"),
    (lambda: hm.position_from_angles("xyz", (0, 0, 0), axes="body"), ValueError, "E-MATH-019"),
    (lambda: hm.angles_from_position(np.eye(3), "xyz"), ValueError, "E-MATH-006 (4, 4)"),
    (lambda: hm.angles_from_position(2 * np.eye(4), "xyz"), ValueError, "E-MATH-009"),
    (
        lambda: hm.angles_from_position(np.diag([1, 1, -1, 1]), "xyz"),
        ValueError,
        "E-MATH-009 determinant is -1",
    ),
    (
        lambda: hm.angles_from_position(W, "xyz"),
        TypeError,
        "E-MATH-008",
    ),
    (lambda: hm.position_from_axes((1, 0, 0), (1, 0, 0), (0, 0, 1)), ValueError, "E-MATH-009"),
    (lambda: hm.rototranslation(np.eye(4), np.ones((4, 4))), ValueError, "E-MATH-009"),
    (lambda: hm.velocity((1, 2, 3), 4), ValueError, "E-MATH-006 (3,)"),
    (lambda: hm.velocity((1, 2, 3), [[1], [2, 3], 4]), ValueError, "E-MATH-005"),
    (lambda: hm.velocity((1, 2, 3j), (0, 0, 0)), TypeError, "E-MATH-002"),
    (lambda: hm.velocity(W, (0, 0, 0)), TypeError, "E-MATH-004"),
    (lambda: hm.acceleration(J, (0, 0, 0), (0, 0, 0)), TypeError, "E-MATH-008"),
    (lambda: hm.joint_screw("spherical"), ValueError, "E-MATH-015"),
    (lambda: hm.joint_screw("revolute", 0.1), ValueError, "E-MATH-016"),
    (lambda: hm.joint_velocity("revolute", NAN), ValueError, "E-MATH-003 qd"),
    (lambda: hm.change_reference(np.eye(4), np.eye(4)), TypeError, "E-MATH-022"),
    (lambda: hm.compose_velocities(W, J), TypeError, "E-MATH-022"),
    (lambda: hm.compose_accelerations(W, W, W, W), TypeError, "E-MATH-008"),
    (lambda: hm.inertia_from_mass(-1, (0, 0, 0), [1] * 6), ValueError, "E-MATH-013 1.0"),
    (lambda: hm.inertia_from_mass(1, (0, 0, 0), [1] * 5), ValueError, "E-MATH-014 (5,)"),
    (
        lambda: hm.inertia_from_mass(1, (0, 0, 0), np.arange(9).reshape(3, 3)),
        ValueError,
        "E-MATH-012",
    ),
    (lambda: hm.mass_from_inertia(W), TypeError, "E-MATH-008"),
    (lambda: hm.weight(J, W), TypeError, "E-MATH-022"),
    (lambda: hm.pseudo_product(W, W), TypeError, "E-MATH-008"),
    (lambda: hm.angular_part(J), TypeError, "E-MATH-008"),
    (lambda: hm.skew(np.eye(3)), ValueError, "E-MATH-006"),
    (lambda: hm.velocity_from_six((1, 2, 3)), ValueError, "E-MATH-006 (6,)"),
    (lambda: hm.screw_from_axis((0, 0, 1), pitch=NAN), ValueError, "E-MATH-003 pitch"),
    (lambda: hm.screw_of_velocity(hm.Velocity.zero()), ValueError, "E-MATH-020"),
    (
        lambda: hm.screw_motion(np.eye(4)),
        TypeError,
        "E-MATH-008",
    ),
    (lambda: hm.exponential(Q), TypeError, "E-MATH-008"),
    (lambda: hm.line_from_plucker((0, 0, 1, 0, 0, 1)), ValueError, "E-MATH-021"),
    (lambda: hm.line_from_plucker((0, 0, 0, 1, 0, 0)), ValueError, "E-MATH-007"),
    (lambda: hm.from_array(dict, np.eye(4)), TypeError, "E-MATH-011"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[row[2] for row in BAD])
def test_bad_input(call, error, message):
    with raises(message, kind=error):
        call()


# The module ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", hm.__all__)
def test_everything_is_documented(name):
    assert (inspect.getdoc(getattr(hm, name)) or "").strip()


def test_the_page_names_what_there_is():
    """Every function that docs/legnani.md names exists."""
    text = (Path(__file__).parents[2] / "docs/legnani.md").read_text("utf-8")
    named = set(re.findall(r"\b(?:homogeneous|hm)\.(\w+)", text)) - {"md"}
    assert len(named) > 20
    assert named <= set(hm.__all__) | {"derivatives"}


def test_it_loads_on_use():
    code = "import chasles, sys; print('chasles.homogeneous' in sys.modules, chasles.homogeneous)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False <module 'chasles.homogeneous'")


@pytest.mark.parametrize(
    ("kind", "entries"),
    [
        (hm.Position, {(0, 3): 1e6, (3, 0): 0.7, (3, 3): 1.5}),
        (
            hm.Velocity,
            {(0, 0): 0, (1, 1): 0, (2, 2): 0, (3, 3): 0, (0, 1): -1, (1, 0): 1.9, (0, 3): 1e6},
        ),
        (hm.Inertia, {(0, 0): 1e-3, (1, 1): 1e-3, (2, 2): 1e-3, (3, 3): 5e3, (0, 1): 4e-3}),
    ],
)
def test_large_entries_hide_no_wrong_ones(
    kind: type, entries: dict[tuple[int, int], float]
) -> None:
    """A large translation does not hide an invalid rotation: blocks are checked separately."""
    A = np.eye(4)
    for place, value in entries.items():
        A[place] = value
    with raises("E-MATH-012"):
        hm.from_array(kind, A)


def test_axes_of_any_length() -> None:
    for length in (1e-200, 1.0, 1e200):
        L = hm.screw_from_axis(np.array([0.0, 1.0, 1.0]) * length)
        assert np.allclose(np.asarray(L)[:3, :3], hm.screw_from_axis([0.0, 1.0, 1.0]).block().A)
    assert np.allclose(
        hm.position_from_axis_angle([0, 0, 1e170], 0.3), hm.position_from_axis_angle([0, 0, 1], 0.3)
    )


def test_matrices_and_screws_as_the_paper_writes_them() -> None:
    """NumPy accepts `.matrix()` as an array, and W = L qd gives a Velocity."""
    L = hm.joint_screw("revolute")
    W = L * 2.0
    assert type(W) is hm.Velocity
    assert np.array_equal(np.array(W.matrix()), np.asarray(hm.joint_velocity("revolute", 2.0)))
    assert np.allclose(W.matrix(), 2.0 * np.array(L.matrix()))


# Motions from momenta and actions ----------------------------------------------------------------


def six_columns(J):
    """Return skew(X J) for six unit twists as a dense system, and the indices of its rows."""
    rows, columns = np.array([2, 0, 1, 0, 1, 2]), np.array([1, 2, 0, 3, 3, 3])
    dense = np.asarray(J)
    found = [hat(e[:3], e[3:]) @ dense for e in np.eye(6)]
    return np.array([(X - X.T)[rows, columns] for X in found]).T, (rows, columns)


def test_momentum_and_action_are_solved_for_velocity_and_acceleration():
    rng = np.random.default_rng(3)
    for _ in range(20):
        A = rng.normal(size=(3, 3))
        J = hm.inertia_from_mass(2.0, rng.normal(size=3), A @ A.T + 3.0 * np.eye(3))
        system, entries = six_columns(J)
        Gamma = hm.from_array(hm.Momentum, hm.skew(rng.normal(size=(4, 4))))
        W = hm.velocity_from_momentum(Gamma, J)
        solved = np.linalg.solve(system, np.asarray(Gamma)[entries])
        close(np.asarray(W), hat(solved[:3], solved[3:]), 1e-12)
        close(np.asarray(hm.momentum(W, J)), np.asarray(Gamma), 1e-12)
        Phi = hm.action_from_force(rng.normal(size=3), rng.normal(size=3))
        W = hm.velocity(rng.normal(size=3), rng.normal(size=3))
        H = hm.acceleration_from_action(Phi, J, W)
        square = hat(np.asarray(hm.angular_part(W)), (0, 0, 0))
        square = square @ square @ np.asarray(J)
        solved = np.linalg.solve(system, (np.asarray(Phi) - (square - square.T))[entries])
        close(
            np.asarray(H),
            hat(solved[:3], solved[3:])
            + np.linalg.matrix_power(hat(np.asarray(hm.angular_part(W)), (0, 0, 0)), 2),
            1e-11,
        )
        close(np.asarray(hm.action(H, J)), np.asarray(Phi), 1e-12)


def test_bodies_that_momenta_do_not_determine_are_refused():
    rod = hm.inertia_from_mass(1.0, (0, 0, 0.3), (0.1, 0.1, 0, 0, 0, 0))
    Gamma = hm.momentum(hm.velocity((1, 0, 0), (0, 0, 0)), rod)
    with raises("E-MATH-042"):
        hm.velocity_from_momentum(Gamma, rod)
    with raises("E-MATH-042"):
        hm.acceleration_from_action(
            hm.action_from_force((1, 0, 0)), rod, hm.velocity((0, 0, 1), (0, 0, 0))
        )
