"""Check the contract of joints for all types in `JOINTS`, reversed joints and user types."""

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
from own_joints import OWN
from support import raises

from chasles.expr import RULES, Arena, Program, Variable, interpret, jacobian
from chasles.mathematics.linear import Matrix, Symmetric, Vector, diagonal
from chasles.mathematics.rotations import Rotation, matrix_from_quaternion
from chasles.mathematics.spatial import Motion, RigidInertia, Transform
from chasles.model.joints import JOINTS, Fixed, Joint, Reversed, Steady
from chasles.model.passes import by_moments, by_products

BASE = {f.name for f in dataclasses.fields(Joint)}
REVERSED = "reversed "
TYPES = JOINTS | OWN
WELD = {"fixed": Fixed}
CASES = (*TYPES, *(REVERSED + name for name in TYPES))


def _vector(x):
    return Vector(tuple(float(a) for a in x))


def _skew(v):
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _crm(v):
    w, u = _skew(v[:3]), _skew(v[3:])
    return np.block([[w, np.zeros((3, 3))], [u, w]])


def _dense(X):
    E = np.array(X.E.matrix().rows, dtype=float)
    return np.block([[E, np.zeros((3, 3))], [-E @ _skew(X.r), E]])


def _columns(S):
    return np.array([list(c) for c in S.columns], dtype=float).reshape(-1, 6).T


def _pose(rng):
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    Q = Q * np.sign(np.linalg.det(Q))
    E = Matrix(tuple(map(tuple, Q.tolist())))
    return Transform(Rotation.of(E), _vector(rng.normal(size=3)))


def _inertia(rng):
    A = rng.normal(size=(3, 3))
    about_center = Symmetric.of(Matrix(tuple(map(tuple, (A @ A.T).tolist()))))
    return RigidInertia.from_center(
        float(rng.uniform(0.5, 2.0)), _vector(rng.normal(size=3)), about_center
    )


def _has_quaternion(joint):
    """Return True if the joint has a quaternion: its first four coordinates have unit 1."""
    return "1" in joint.units


def _make(case):
    rng = np.random.default_rng(sum(case.encode()))
    kind = (TYPES | WELD)[case.removeprefix(REVERSED)]
    own = {
        f.name: float(rng.uniform(0.1, 0.5)) for f in dataclasses.fields(kind) if f.name not in BASE
    }
    inner = kind(**own)
    made = Reversed(inner=inner) if case.startswith(REVERSED) else inner
    loads = {
        name: _vector(rng.uniform(0.1, 1.0, size=kind.nv))
        for name in ("armature", "damping", "friction", "load")
    }
    return dataclasses.replace(made, placement=_pose(rng), **loads)


@pytest.fixture(params=CASES)
def joint(request):
    """Joint of each type, with random placement and parameters."""
    return _make(request.param)


@pytest.fixture(params=[name for name in CASES if _has_quaternion(_make(name))])
def ball(request):
    """Joint of each type whose coordinates begin with a quaternion."""
    return _make(request.param)


@pytest.fixture(params=(*CASES, *WELD))
def closing(request):
    """Joint of each type, and the fixed joint, which can also close loops."""
    return _make(request.param)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def _velocity(joint, rng, scale=1.0):
    """Return a random velocity that rotates by less than half a turn in unit time."""
    v = rng.uniform(-1.0, 1.0, size=joint.nv)
    return _vector(v * scale)


def _configuration(joint, rng):
    q = joint.integrate(joint.neutral(), _velocity(joint, rng, 1.5))
    q = joint.integrate(q, _velocity(joint, rng, 1.5))
    if _has_quaternion(joint):
        k = rng.uniform(0.5, 2.0)
        q = Vector((*(a * k for a in q.entries[:4]), *q.entries[4:]))
    return q


def _entries(X):
    return [*(e for row in X.E.matrix().rows for e in row), *X.r]


def _rate(function, t, h=1e-3):
    """Return the time derivative by fourth-order central differences."""
    return (
        8.0 * (function(t + h) - function(t - h)) - function(t + 2 * h) + function(t - 2 * h)
    ) / (12.0 * h)


@pytest.mark.parametrize("kind", JOINTS.values(), ids=JOINTS)
def test_table(kind):
    assert issubclass(kind, JOINTS[kind.kind])  # a variant is a subclass of its type
    assert set(kind.data) == {f.name for f in dataclasses.fields(kind)} - BASE - {"offset"}


def test_coordinates(joint):
    assert len(joint.units) == joint.nq
    assert len(joint.neutral()) == joint.nq
    assert len(joint.velocity_units) == joint.nv
    assert set(joint.units) <= {"rad", "m", "1"}
    # The tests below support quaternions only. Other redundant coordinates need new tests.
    assert joint.nq == joint.nv or _has_quaternion(joint)
    assert joint.units[:4] == ("1",) * 4 or not _has_quaternion(joint)
    assert joint.nq == joint.nv + _has_quaternion(joint) or not joint.holonomic


def test_base_class_asks_for_the_contract():
    for method in (Joint().motion, Joint().constraint, Joint().fit):
        with raises("E-JOINT-015|E-JOINT-017|E-JOINT-018"):
            method(Vector(()))


def test_frames_coincide_in_neutral(joint):
    np.testing.assert_allclose(_dense(joint.motion(joint.neutral())), np.eye(6), atol=1e-15)
    X = joint.transform(joint.neutral())
    np.testing.assert_allclose(_dense(X), _dense(joint.placement), atol=1e-15)


def test_transform_is_placement_then_motion(joint, rng):
    q = _configuration(joint, rng)
    expected = _dense(joint.motion(q)) @ _dense(joint.placement)
    np.testing.assert_allclose(_dense(joint.transform(q)), expected, atol=1e-13)


def test_subspace_has_full_rank(joint, rng):
    S = _columns(joint.subspace(_configuration(joint, rng)))
    assert S.shape == (6, joint.nv)
    assert np.linalg.svd(S, compute_uv=False).min() > 1e-3


@pytest.mark.parametrize("t", [0.0, 0.4])
def test_transform_rate_is_minus_joint_velocity_cross(joint, rng, t):
    """dX/dt = -(S v) x X if the joint moves with constant velocity v (Eq 2.45)."""
    q0, v = _configuration(joint, rng), _velocity(joint, rng)

    def q(time):
        return joint.integrate(q0, v * time)

    rate = _rate(lambda time: _dense(joint.transform(q(time))), t)
    X, vJ = joint.transform(q(t)), joint.subspace(q(t)) @ v
    np.testing.assert_allclose(rate, -_crm(list(vJ)) @ _dense(X), atol=1e-9)


def _along(joint, q0, v, result):
    """Return the program of `result(q(t))` for a motion from q0 with constant velocity v."""
    arena = Arena(RULES)
    t = arena.input("t", 0)
    entries = result(joint.integrate(q0, v * t))
    return Program.from_outputs(
        "along", [Variable("t", ())], [(Variable("y", (len(entries),)), entries)]
    )


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("t", [0.0, 1e-9, 0.05, 0.9])
def test_transform_rate_by_exact_derivatives(joint, rng, t, mode):
    q0, v = _configuration(joint, rng), _velocity(joint, rng)
    program = _along(joint, q0, v, lambda q: _entries(joint.transform(q)))
    rate = np.array(interpret(jacobian(program, ["t"], mode=mode), {"t": [t]})["d_y_d_t"])
    E_rate, r_rate = rate[:9].reshape(3, 3), rate[9:]
    q = joint.integrate(q0, v * t)
    X, vJ = joint.transform(q), joint.subspace(q) @ v
    E = np.array(X.E.matrix().rows)
    np.testing.assert_allclose(E_rate, -_skew(vJ.angular) @ E, atol=1e-13)
    np.testing.assert_allclose(r_rate, E.T @ list(vJ.linear), atol=1e-13)


@pytest.mark.parametrize("t", [0.0, 0.4])
def test_subspace_rate_and_bias(joint, rng, t):
    q0, v = _configuration(joint, rng), _velocity(joint, rng)
    q = joint.integrate(q0, v * t)
    expected = _rate(lambda time: _columns(joint.subspace(joint.integrate(q0, v * time))), t)
    rate = joint.subspace_rate(q, v)
    np.testing.assert_allclose(_columns(rate), expected, atol=1e-10)
    bias = np.array(list(joint.bias(q, v)))
    np.testing.assert_allclose(bias, _columns(rate) @ list(v), atol=1e-14)
    # The bias is the rate of the joint's velocity S v for constant v.
    velocity = _rate(
        lambda time: np.array(list(joint.subspace(joint.integrate(q0, v * time)) @ v)), t
    )
    np.testing.assert_allclose(bias, velocity, atol=1e-10)


def test_higher_rates_of_the_subspace(joint, rng):
    """Each rate is the derivative of the previous one along a motion with changing velocity."""
    q0, *rates = _configuration(joint, rng), *(_velocity(joint, rng) for _ in range(4))
    if isinstance(joint, Steady):
        other = _configuration(joint, rng)
        assert np.array_equal(_columns(joint.subspace(other)), _columns(joint.subspace(q0)))
        S = joint.subspace_rates(q0, rates)
        assert all(not np.any(_columns(rate)) for rate in S[1:])
        assert np.array_equal(_columns(S[0]), _columns(joint.subspace(q0)))
        return

    def rate(t, k):
        """Return the k-th rate of S at time t, correct to first order in t."""
        now = [a + b * t for a, b in pairwise(rates)][:k]
        return _columns(joint.subspace_rates(joint.integrate(q0, rates[0] * t), now)[k])

    found = joint.subspace_rates(q0, rates)
    for k in range(4):
        expected = _rate(lambda t, k=k: rate(t, k), 0.0)
        np.testing.assert_allclose(_columns(found[k + 1]), expected, atol=1e-9)


def test_bias_is_quadratic_in_velocity(joint, rng):
    q, v = _configuration(joint, rng), _velocity(joint, rng)
    once, twice = (np.array(list(joint.bias(q, v * k))) for k in (1.0, -2.0))
    np.testing.assert_allclose(twice, 4.0 * once, atol=1e-14)


def test_slopes(joint, rng):
    """Slopes agree with differences in each coordinate; slopes of c_J also in each velocity."""
    q, v, a = _configuration(joint, rng), _velocity(joint, rng), _velocity(joint, rng)
    slopes = joint.slopes(q, v, a)

    def acceleration(at):
        return joint.subspace(at) @ a + joint.bias(at, v)

    assert len(slopes.subspace) == joint.nv
    for k, unit in enumerate(map(_vector, np.eye(joint.nv))):

        def by_step(value, d=unit):
            return _rate(lambda t: np.array(value(joint.integrate(q, d * t)), dtype=float), 0.0)

        expected = by_step(lambda at: _columns(joint.subspace(at)))
        np.testing.assert_allclose(_columns(slopes.subspace[k]), expected, atol=1e-10)
        expected = by_step(lambda at: list(joint.subspace(at) @ v))
        np.testing.assert_allclose(_columns(slopes.velocity)[:, k], expected, atol=1e-10)
        expected = by_step(lambda at: list(acceleration(at)))
        np.testing.assert_allclose(_columns(slopes.acceleration)[:, k], expected, atol=1e-10)
        expected = _rate(lambda t, d=unit: np.array(list(joint.bias(q, v + d * t))), 0.0)
        np.testing.assert_allclose(_columns(slopes.bias)[:, k], expected, atol=1e-10)


def test_what_is_written_is_what_follows_from_the_motion(joint, rng):
    """Formulas of a type agree with exact derivatives of its transform along `integrate`."""
    q, v = _configuration(joint, rng), _velocity(joint, rng)
    pairs = [
        (joint.subspace(q), Joint.subspace(joint, q)),
        (joint.subspace_rate(q, v), Joint.subspace_rates(joint, q, (v,))[1]),
        (joint.slopes(q, v, v).bias, Joint.slopes(joint, q, v, v).bias),
    ]
    for written, derived in pairs:
        np.testing.assert_allclose(_columns(written), _columns(derived), atol=1e-13)


# Configuration space ----------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.7, 1.0, 0.1, 1e-4, 1e-8, 1e-12, 0.0])
def test_difference_undoes_integrate(joint, rng, scale):
    q0, v = _configuration(joint, rng), _velocity(joint, rng, scale)
    back = joint.difference(q0, joint.integrate(q0, v))
    size = max(1.0, max(map(abs, q0)))
    np.testing.assert_allclose(list(back), list(v), rtol=1e-12, atol=4e-15 * size)


def test_integrate_undoes_difference(joint, rng):
    for _ in range(5):
        q0, q1 = _configuration(joint, rng), _configuration(joint, rng)
        reached = joint.integrate(q0, joint.difference(q0, q1))
        known = 6 if joint.holonomic else 3  # positions of rolling joints depend on the path
        np.testing.assert_allclose(
            _dense(joint.motion(reached))[:known, :known],
            _dense(joint.motion(q1))[:known, :known],
            atol=1e-12,
        )
        if not _has_quaternion(joint):
            np.testing.assert_allclose(list(reached), list(q1), atol=1e-12)


def test_differences_there_and_back_are_opposite(joint, rng):
    q0, q1 = _configuration(joint, rng), _configuration(joint, rng)
    there, back = joint.difference(q0, q1), joint.difference(q1, q0)
    np.testing.assert_allclose(list(there), [-a for a in back], atol=1e-12)


def test_drift_is_the_rate_of_a_small_step(joint, rng):
    """`drift` is the rate of a small displacement between two motions with equal velocity."""
    q, v = _configuration(joint, rng), _velocity(joint, rng)

    def gap(t, d):
        return joint.difference(
            joint.integrate(q, v * t), joint.integrate(joint.integrate(q, d), v * t)
        )

    for unit, column in zip(np.eye(joint.nv), np.array(joint.drift(v).T.rows), strict=True):

        def parting(e, d=unit):
            return _rate(lambda t: np.array(list(gap(t, _vector(d * e)))), 0.0)

        rate = _rate(parting, 0.0)
        np.testing.assert_allclose(column, rate, atol=1e-7)


def test_turn_is_the_rotation_of_the_motion(joint, rng):
    """`turn` is a unit quaternion of the motion's rotation. It may have either sign."""
    q = _configuration(joint, rng)
    turn = joint.turn(q)
    found = np.array(matrix_from_quaternion(turn).rows, dtype=float)
    np.testing.assert_allclose(found, np.array(joint.motion(q).R.rows, dtype=float), atol=1e-14)
    np.testing.assert_allclose(float(turn.dot(turn)), 1.0, rtol=1e-14)


def test_no_velocity_no_motion(joint, rng):
    q = _configuration(joint, rng)
    still = joint.integrate(q, Vector.zero(joint.nv))
    np.testing.assert_allclose(list(still), list(q), rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(list(joint.difference(q, q)), np.zeros(joint.nv), atol=1e-15)


def test_constant_velocity_is_a_group(joint, rng):
    """Moving for 0.3 s and then for 0.7 s equals moving for 1 s."""
    q, v = _configuration(joint, rng), _velocity(joint, rng)
    two = joint.integrate(joint.integrate(q, v * 0.3), v * 0.7)
    one = joint.integrate(q, v)
    np.testing.assert_allclose(_dense(joint.motion(two)), _dense(joint.motion(one)), atol=1e-13)


def test_turns_of_almost_half_a_turn(ball, rng):
    """The rotation vector is exact up to pi and never longer than pi."""
    joint = ball
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    q0 = _configuration(joint, rng)
    for short in (1e-3, 1e-6, 1e-9, 1e-12):
        rest = rng.normal(size=joint.nv - 3)
        v = _vector([*(axis * (math.pi - short)), *rest])
        back = joint.difference(q0, joint.integrate(q0, v))
        np.testing.assert_allclose(list(back), list(v), atol=1e-13)
    v = _vector([*(axis * (math.pi + 0.1)), *np.zeros(joint.nv - 3)])
    back = joint.difference(q0, joint.integrate(q0, v))
    np.testing.assert_allclose(list(back)[:3], axis * (0.1 - math.pi), atol=1e-13)


def test_neutral_is_the_unit_quaternion_at_the_origin(ball):
    assert list(ball.neutral()) == [1.0] + [0.0] * (ball.nq - 1)


@pytest.mark.parametrize("scale", [2.0, -1.0, 1e-3, -37.0, 1e6])
def test_any_quaternion_but_zero(ball, rng, scale):
    joint = ball

    def scaled(q):
        return Vector((*(a * scale for a in q.entries[:4]), *q.entries[4:]))

    q0, q1 = _configuration(joint, rng), _configuration(joint, rng)
    for method in (joint.motion, joint.transform):
        np.testing.assert_allclose(_dense(method(scaled(q1))), _dense(method(q1)), atol=1e-14)
    expected = list(joint.difference(q0, q1))
    np.testing.assert_allclose(list(joint.difference(scaled(q0), q1)), expected, atol=1e-13)
    np.testing.assert_allclose(list(joint.difference(q0, scaled(q1))), expected, atol=1e-13)
    v = _velocity(joint, rng)
    moved, same = joint.integrate(scaled(q0), v), joint.integrate(q0, v)
    np.testing.assert_allclose(_dense(joint.motion(moved)), _dense(joint.motion(same)), atol=1e-13)


def _map(joint, sizes, function):
    arena = Arena(RULES)
    variables = [Variable(name, (n,)) for name, n in sizes.items()]
    values = [Vector(tuple(arena.input(v.name, k) for k in range(v.size))) for v in variables]
    entries = list(function(*values))
    return Program.from_outputs("map", variables, [(Variable("y", (len(entries),)), entries)])


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_integrate_has_derivatives_at_rest(joint, rng, mode):
    """`integrate` is differentiable at zero velocity.

    Compiled derivatives are those of f(integrate(q, d)) at d = 0.
    """
    program = _map(joint, {"q": joint.nq, "v": joint.nv}, joint.integrate)
    q, rest = _configuration(joint, rng), Vector.zero(joint.nv)
    first = jacobian(program, ["q", "v"], mode=mode)
    got = interpret(first, {"q": list(q), "v": list(rest)})
    assert np.isfinite(got["d_y_d_q"]).all()
    np.testing.assert_allclose(
        np.reshape(got["d_y_d_q"], (joint.nq, joint.nq)), np.eye(joint.nq), atol=1e-13
    )
    slopes = np.reshape(got["d_y_d_v"], (joint.nq, joint.nv))
    for k in range(joint.nv):
        direction = _vector(np.eye(joint.nv)[k])
        expected = _rate(lambda t, d=direction: np.array(list(joint.integrate(q, d * t))), 0.0)
        np.testing.assert_allclose(slopes[:, k], expected, atol=1e-9)
    second = jacobian(first, ["v"], mode=mode)
    for values in interpret(second, {"q": list(q), "v": list(rest)}).values():
        assert np.isfinite(values).all()


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_difference_has_derivatives_where_it_is_zero(joint, rng, mode):
    program = _map(joint, {"a": joint.nq, "b": joint.nq}, joint.difference)
    q = list(_configuration(joint, rng))
    first = jacobian(program, ["a", "b"], mode=mode)
    got = interpret(first, {"a": q, "b": q})
    A, B = (np.reshape(got[f"d_y_d_{x}"], (joint.nv, joint.nq)) for x in "ab")
    assert np.isfinite(A).all()
    assert np.isfinite(B).all()
    # The difference between q0 and integrate(q0, d) is d.
    steps = interpret(
        jacobian(_map(joint, {"q": joint.nq, "v": joint.nv}, joint.integrate), ["v"]),
        {"q": q, "v": [0.0] * joint.nv},
    )["d_y_d_v"]
    G = np.reshape(steps, (joint.nq, joint.nv))
    np.testing.assert_allclose(B @ G, np.eye(joint.nv), atol=1e-12)
    np.testing.assert_allclose(A @ G, -np.eye(joint.nv), atol=1e-12)


def test_symbols_give_what_floats_give(joint, rng):
    def everything(q, v):
        S = joint.subspace(q)
        return [
            *_entries(joint.transform(q)),
            *_entries(joint.motion(q)),
            *(x for column in S.columns for x in column),
            *joint.bias(q, v),
            *joint.integrate(q, v),
            *joint.difference(q, joint.integrate(q, v)),
        ]

    program = _map(joint, {"q": joint.nq, "v": joint.nv}, everything)
    for scale in (1.0, 1e-3):
        q, v = _configuration(joint, rng), _velocity(joint, rng, scale)
        got = interpret(program, {"q": list(q), "v": list(v)})["y"]
        np.testing.assert_allclose(got, everything(q, v), rtol=1e-12, atol=1e-14)


# Loop joints ------------------------------------------------------------------------------------


def test_constraint_forces_do_no_work(closing, rng):
    """T has 6 - nv independent columns, and T' S = 0 for every q."""
    joint = closing
    for _ in range(3):
        q = _configuration(joint, rng)
        T, S = _columns(joint.constraint(q)), _columns(joint.subspace(q))
        assert T.shape == (6, 6 - joint.nv)
        assert np.linalg.matrix_rank(np.hstack([T, S])) == 6
        np.testing.assert_allclose(T.T @ S, 0.0, atol=1e-14)


def test_fit_inverts_motion(closing, rng):
    joint = closing
    for _ in range(3):
        X = joint.motion(_configuration(joint, rng))
        again = joint.motion(joint.fit(X))
        np.testing.assert_allclose(_dense(again), _dense(X), atol=1e-14)


def test_rates_invert_the_subspace(closing, rng):
    joint = closing
    q, qd = _configuration(joint, rng), _velocity(joint, rng)
    found = joint.rates(q, joint.subspace(q) @ qd)
    np.testing.assert_allclose(list(found), list(qd), atol=1e-12)


# Inertia that can be moved to the parent --------------------------------------------------------


CHOICES = pytest.mark.parametrize("choice", [by_moments, by_products], ids=lambda f: f.__name__)


@CHOICES
def test_transferable_inertia_is_not_felt_and_does_not_change(joint, rng, choice):
    """The transferable inertia satisfies I S = 0 and X' I X = I for every q.

    Source: Featherstone 2008, section 9.7.
    """
    inertia = _inertia(rng)
    moved = joint.transferable(inertia, choice(inertia.I))
    for _ in range(4):
        q = _configuration(joint, rng)
        F = moved @ joint.subspace(q)
        assert max((abs(x) for f in F.columns for x in f), default=0.0) <= 1e-14
        back = joint.motion(q).T @ moved
        assert back.m == moved.m
        np.testing.assert_allclose(list(back.h), list(moved.h), atol=1e-14)
        np.testing.assert_allclose(list(back.I), list(moved.I), atol=1e-14)


@CHOICES
def test_transferring_again_finds_nothing(joint, rng, choice):
    """The remaining inertia has no transferable part of the same kind."""
    inertia = _inertia(rng)
    left = inertia - joint.transferable(inertia, choice(inertia.I))
    rest = joint.transferable(left, choice(left.I))
    np.testing.assert_allclose([rest.m, *rest.h, *rest.I], np.zeros(10), atol=1e-15)


@CHOICES
def test_equivalent_bodies_feel_the_same_joint_force(joint, rng, choice):
    """The joint torque S'(I a + v x* I v) does not change if inertia is moved to the parent.

    The moved part is attached to the predecessor frame. It has no effect on the joint torque.
    """
    inertia = _inertia(rng)
    moved = joint.transferable(inertia, choice(inertia.I))
    q, qd = _configuration(joint, rng), _velocity(joint, rng)
    parent_v = Motion.of(*rng.normal(size=6).tolist())
    parent_a = Motion.of(*rng.normal(size=6).tolist())
    X, S = joint.motion(q), joint.subspace(q)
    vJ = S @ qd
    v = X @ parent_v + vJ
    a = X @ parent_a + joint.bias(q, qd) + v.cross(vJ)

    def force(I, v, a):
        return I @ a + v.cross(I @ v)

    whole = force(inertia, v, a)
    left = force(inertia - moved, v, a)
    np.testing.assert_allclose(list(S.T @ whole), list(S.T @ left), atol=1e-12)
    # The force on the parent is also the same, with the moved part attached to it.
    through = X.T @ left + force(moved, parent_v, parent_a)
    np.testing.assert_allclose(list(X.T @ whole), list(through), atol=1e-11)


# Rotors and resistance --------------------------------------------------------------------------


def test_rotor_and_resistance(joint, rng):
    v = _velocity(joint, rng)
    assert list(joint.rotor(v)) == [a * x for a, x in zip(joint.armature, v, strict=True)]
    drag, opposite = joint.losses(v), joint.losses(-v)
    assert list(drag) == [-x for x in opposite]
    assert all(f * x > 0.0 for f, x in zip(drag, v, strict=True))  # losses always dissipate power
    turning = joint.resistance(v) - drag - joint.load
    assert abs(turning.dot(v)) < 1e-12  # rotor forces do no work
    assert joint.turning(v) == -joint.turning(v).T
    assert list(joint.resistance(Vector.zero(joint.nv))) == list(joint.load)


def test_diagonal():
    assert diagonal(Vector.of(2.0, 3.0)) == Matrix(((2.0, 0.0), (0.0, 3.0)))
    assert diagonal(Vector(())) == Matrix(())
