"""Compare dM, dW, dJ and dL (Legnani II, section 3) with differences on a random chain."""

import numpy as np
import pytest
from homogeneous_random import hat, inertia, numbers, position, rates, traced, velocity
from scipy.linalg import expm
from support import close

from chasles.mathematics.homogeneous import Inertia, Position, Screw, Velocity
from chasles.mathematics.homogeneous.derivatives import dJ, dL, dM, dM_inverse, dW_dq, dW_dt
from chasles.mathematics.linear import Matrix, Symmetric, Vector

JOINTS = 5
SLOPE = 1e-9  # error of sixth-order differences of values near one


class Chain:
    """Chain of five joints with random screws.

    It uses dense arrays only, and thus shares no code with the library.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.before = [expm(hat(*rng.normal(size=(2, 3)))) for _ in range(JOINTS)]
        self.screws = [self._screw(rng) for _ in range(JOINTS)]
        self.q, self.qd, self.qdd = rng.normal(size=(3, JOINTS))
        self.J = np.asarray(inertia(rng)[0])

    @staticmethod
    def _screw(rng) -> np.ndarray:
        u = rng.normal(size=3)
        return hat(u / np.linalg.norm(u), rng.normal(size=3))

    def M(self, q, body=JOINTS):
        """Return M_0,body, the product of the first matrices."""
        total = np.eye(4)
        for B, L, x in list(zip(self.before, self.screws, q, strict=True))[:body]:
            total = total @ B @ expm(L * x)
        return total

    def L(self, q, joint):
        """Return the screw matrix L of a joint in frame 0."""
        M = self.M(q, joint) @ self.before[joint]
        return M @ self.screws[joint] @ np.linalg.inv(M)

    def W(self, q, qd, body=JOINTS, after=0):
        """Return the velocity matrix W of a body relative to body `after`, in frame 0."""
        return sum((self.L(q, i) * qd[i] for i in range(after, body)), start=np.zeros((4, 4)))

    def J0(self, q):
        return self.M(q) @ self.J @ self.M(q).T

    def along(self, f):
        """Return the time derivative of f(q, qd) along the motion."""
        motion = lambda t: (  # noqa: E731
            self.q + self.qd * t + self.qdd * t * t / 2,
            self.qd + self.qdd * t,
        )
        return rates(lambda t: f(*motion(t)))[0]

    def by(self, f, m):
        """Return the derivative of f(q) with respect to coordinate m."""
        unit = np.eye(JOINTS)[m]
        return rates(lambda t: f(self.q + unit * t))[0]


@pytest.fixture(params=range(3))
def chain(request):
    return Chain(request.param)


def screw(L):
    W = velocity(L)
    return Screw(W.w, W.v)


def mass(J):
    rows = Matrix(tuple(map(tuple, J.tolist())))
    return Inertia(Symmetric.of(rows), Vector(rows.T.rows[3][:3]), rows[3, 3])


def test_by_time(chain):
    W, M = velocity(chain.W(chain.q, chain.qd)), position(chain.M(chain.q))
    close(dM(W, M), chain.along(lambda q, _: chain.M(q)), SLOPE)
    inverse = lambda q, _: np.linalg.inv(chain.M(q))  # noqa: E731
    close(dM_inverse(W, M), chain.along(inverse), SLOPE)
    close(dJ(W, mass(chain.J0(chain.q))), chain.along(lambda q, _: chain.J0(q)), SLOPE)


@pytest.mark.parametrize("joint", range(JOINTS))
def test_screws_by_time(chain, joint):
    """dL_i/dt = W L - L W holds for the velocity W of either body of the joint.

    The motion of a joint does not move the joint's own axis.
    """
    slope = chain.along(lambda q, _: chain.L(q, joint))
    L = screw(chain.L(chain.q, joint))
    for body in (joint, joint + 1):
        W = velocity(chain.W(chain.q, chain.qd, body))
        close(dL(W, L), slope, SLOPE, scale=1.0)


def test_velocity_by_time(chain):
    screws = [screw(chain.L(chain.q, i)) for i in range(JOINTS)]
    rate = dW_dt(zip(screws, chain.qd.tolist(), chain.qdd.tolist(), strict=True))
    close(rate, chain.along(chain.W), SLOPE)


@pytest.mark.parametrize("m", range(JOINTS))
def test_by_a_coordinate(chain, m):
    """Derivatives with respect to q_m agree with differences.

    The test covers position, inertia and velocity of the last body, and all screws.
    """
    L = screw(chain.L(chain.q, m))
    close(dM(L, position(chain.M(chain.q))), chain.by(chain.M, m), SLOPE)
    close(dJ(L, mass(chain.J0(chain.q))), chain.by(chain.J0, m), SLOPE)
    relative = velocity(chain.W(chain.q, chain.qd, after=m + 1))
    slope = chain.by(lambda q: chain.W(q, chain.qd), m)
    close(dW_dq(L, relative), slope, SLOPE, scale=1.0)
    for i in range(JOINTS):
        slope = chain.by(lambda q, i=i: chain.L(q, i), m)
        expected = dL(L, screw(chain.L(chain.q, i))) if i > m else np.zeros((4, 4))
        close(expected, slope, SLOPE, scale=1.0)


def test_everything_works_on_symbols(chain):
    def f(m, w, l, j, q):
        M = Position.from_matrix(Matrix(tuple(tuple(m[4 * k : 4 * k + 4]) for k in range(4))))
        W = Velocity(Vector(tuple(w[:3])), Vector(tuple(w[3:])))
        L = Screw(Vector(tuple(l[:3])), Vector(tuple(l[3:])))
        J = Inertia(Symmetric(*j[:6]), Vector(tuple(j[6:9])), j[9])
        rate = dW_dt([(L, q[0], q[1]), (Screw(W.w, W.v), q[2], q[3])])
        made = [dM(W, M), dM_inverse(W, M), dL(W, L), dJ(L, J), dW_dq(L, W), rate]
        return [x for X in made for x in numbers(X)]

    rng = np.random.default_rng(0)
    inputs = [chain.M(chain.q).ravel().tolist()]
    inputs += [rng.normal(size=n).tolist() for n in (6, 6, 10, 4)]
    close(traced(f, *inputs)[0], f(*inputs), 1e-14)
