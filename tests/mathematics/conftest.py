"""Reference implementation with dense 6x6 matrices (Featherstone 2008, chapter 2)."""

from types import SimpleNamespace

import numpy as np
import pytest

from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.rotations import Rotation
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


def skew(v):
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def crm(v):
    """Return the matrix of the motion cross product (Eq 2.31)."""
    w, u = skew(v[:3]), skew(v[3:])
    return np.block([[w, np.zeros((3, 3))], [u, w]])


def crf(v):
    """Return the matrix of the force cross product (Eq 2.32)."""
    return -crm(v).T


def dense(value):
    """Convert a vector, rotation, transform or inertia to an array (Eq 2.24, 2.63, section 7.1)."""
    match value:
        case Vector() | Motion() | Force():
            return np.array(list(value), dtype=float)
        case Matrix():
            return np.array(value.rows, dtype=float)
        case Symmetric():
            return np.array(value.matrix().rows, dtype=float)
        case Rotation():
            return np.array(value.matrix().rows, dtype=float)
        case Motions() | Forces():
            return np.array([list(c) for c in value.columns], dtype=float).T
        case Transform():
            E = dense(value.E)
            return np.block([[E, np.zeros((3, 3))], [-E @ skew(value.r), E]])
        case RigidInertia():
            h = skew(value.h)
            return np.block([[dense(value.I), h], [-h, float(value.m) * np.eye(3)]])
        case ArticulatedInertia():
            H = dense(value.H)
            return np.block([[dense(value.I), H], [H.T, dense(value.M)]])
        case CoriolisInertia():
            zero = np.zeros((3, 3))
            return np.block([[dense(value.A), zero], [-skew(value.l), zero]])
    raise TypeError(type(value))


def rotation_matrix(rng):
    """Return a uniformly random rotation matrix R."""
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q * np.sign(np.linalg.det(Q))


def symmetric(rng):
    A = rng.normal(size=(3, 3))
    return Symmetric.of(Matrix(tuple(map(tuple, (A @ A.T + 0.1 * np.eye(3)).tolist()))))


def matrix(A):
    return Matrix(tuple(map(tuple, np.asarray(A, dtype=float).tolist())))


def vector(rng, n=3):
    return Vector(tuple(rng.normal(size=n).tolist()))


def rigid(rng):
    return RigidInertia.from_center(float(rng.uniform(0.5, 3.0)), vector(rng), symmetric(rng))


def articulated(rng):
    return ArticulatedInertia(symmetric(rng), matrix(rng.normal(size=(3, 3))), symmetric(rng))


@pytest.fixture(scope="session")
def reference():
    return SimpleNamespace(
        skew=skew,
        crm=crm,
        crf=crf,
        dense=dense,
        rotation_matrix=rotation_matrix,
        matrix=matrix,
        vector=vector,
        symmetric=symmetric,
        rigid=rigid,
        articulated=articulated,
        motion=lambda rng: Motion.of(*rng.normal(size=6).tolist()),
        force=lambda rng: Force.of(*rng.normal(size=6).tolist()),
    )


@pytest.fixture
def rng():
    return np.random.default_rng(20)
