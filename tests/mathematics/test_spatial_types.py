"""Types distinguish motions, forces and inertias (Featherstone 2008, section A.3)."""

import pytest

from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import (
    ArticulatedInertia,
    CoriolisInertia,
    Force,
    Forces,
    Motion,
    Motions,
    RigidInertia,
    Transform,
)

m, f, v = Motion.zero(), Force.zero(), Vector.zero()
S, F = Motions((m,) * 6), Forces((f,) * 6)
I, A = RigidInertia.zero(), ArticulatedInertia.zero()
B = CoriolisInertia(Matrix.zero(), v)
X = Transform.identity()

WRONG = {
    "motion + force": lambda: m + f,
    "force + motion": lambda: f + m,
    "motion - force": lambda: m - f,
    "force - motion": lambda: f - m,
    "motion + vector": lambda: m + v,
    "vector + motion": lambda: v + m,
    "motion + number": lambda: m + 1.0,
    "number + motion": lambda: 1.0 + m,
    "force + number": lambda: f + 0.0,
    "motion . motion": lambda: m.dot(m),
    "force . force": lambda: f.dot(f),
    "motion . vector": lambda: m.dot(v),
    "motion * motion": lambda: m * m,
    "motion * force": lambda: m * f,
    "force * force": lambda: f * f,
    "force * vector": lambda: f * v,
    "motion x vector": lambda: m.cross(v),
    "motion x inertia": lambda: m.cross(I),
    "I f": lambda: I @ f,
    "IA f": lambda: A @ f,
    "B f": lambda: B @ f,
    "B v of one motion": lambda: B @ m,
    "I v of a vector": lambda: I @ v,
    "I I": lambda: I @ I,
    "I F": lambda: I @ F,
    "I + IA": lambda: I + A,
    "IA + I": lambda: A + I,
    "I - IA": lambda: I - A,
    "I + B": lambda: I + B,
    "B + I": lambda: B + I,
    "I * I": lambda: I * I,
    "I * m": lambda: I * m,
    "X vector": lambda: X @ v,
    "X number": lambda: X @ 1.0,
    "X.T motion": lambda: X.T @ m,
    "X.T motions": lambda: X.T @ S,
    "X.T X": lambda: X.T @ X,
    "X.inverse vector": lambda: X.inverse() @ v,
    "X + X": lambda: X + X,
    "X motion on the left": lambda: m @ X,
    "S + F": lambda: S + F,
    "F + S": lambda: F + S,
    "no columns of two kinds": lambda: Motions(()) + Forces(()),
    "S m": lambda: S @ m,
    "S f": lambda: S @ f,
    "F m": lambda: F @ m,
    "S S": lambda: S @ S,
    "S.T m": lambda: S.T @ m,
    "S.T S": lambda: S.T @ S,
    "S.T vector": lambda: S.T @ v,
    "F.T f": lambda: F.T @ f,
    "F.T F": lambda: F.T @ F,
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kinds_do_not_combine(name):
    with pytest.raises(TypeError):
        WRONG[name]()


def test_messages_name_both_kinds():
    for name, kinds in {
        "motion + force": ("add", "Motion", "Force"),
        "force + motion": ("add", "Force", "Motion"),
        "I f": ("multiply", "RigidInertia", "Force"),
        "motion . motion": ("power", "Motion", "Motion"),
        "X.T motion": ("transpose", "Transform", "Motion"),
        "I + IA": ("add", "RigidInertia", "ArticulatedInertia"),
    }.items():
        with pytest.raises(TypeError) as caught:
            WRONG[name]()
        assert all(word in str(caught.value) for word in kinds)


def test_forces_have_no_cross_product():
    assert not hasattr(f, "cross")


def test_columns_need_as_many_rates():
    with pytest.raises(ValueError, match="zip"):
        S @ Vector.zero(3)
    with pytest.raises(ValueError, match="zip"):
        Motions((m,)) + Motions((m, m))


def test_values_are_frozen():
    for value, name in ((m, "angular"), (f, "force"), (I, "m"), (X, "r"), (v, "entries")):
        with pytest.raises(AttributeError):
            setattr(value, name, None)
        assert hash(value) == hash(value)


def test_entries_come_angular_first():
    assert list(Motion.of(1, 2, 3, 4, 5, 6)) == [1, 2, 3, 4, 5, 6]
    assert Motion.of(1, 2, 3, 4, 5, 6).angular == Vector.of(1, 2, 3)
    assert Force.of(1, 2, 3, 4, 5, 6).moment == Vector.of(1, 2, 3)
