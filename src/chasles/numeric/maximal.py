"""Dynamics in maximal coordinates: the accelerations of all bodies and the forces of all joints.

One large sparse system (Featherstone 2008, sections 3.7 and 8.13), factored by SciPy. It shares no
recursion with the compiled methods and takes any loops, redundant ones included; along chains and
ladders its cost grows with the number of bodies. Everything is computed on plain floats, so that
nothing is compiled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from chasles.algorithms.homogeneous import across, around, loop_matrix, loop_residual
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Force, Motion, RigidInertia, Transform
from chasles.model import WORLD, Model
from chasles.model.joints import Joint
from chasles.model.model import Loop

PROXIMAL = 1e-8
"""How far each equation of a joint gives way to its force, beside the acceleration of the heaviest
body. Refinement takes it back; what is left is that redundant equations share one force."""

STEPS = 30
"""Steps of refinement at most; a few suffice where no two equations contradict each other."""


CONSISTENT = 1e-7
"""Beside the largest acceleration: the residual above which equations contradict each other."""


_AXES = [Vector(tuple(row)) for row in np.eye(3).tolist()]

UNITS = [*(Motion(e, Vector.zero()) for e in _AXES), *(Motion(Vector.zero(), e) for e in _AXES)]
"""Unit motions about and along the axes."""


class Bridge(NamedTuple):
    """A joint of the tree, or of a loop: sum of X a over its ends = S qdd + c.

    ends: the moving bodies it joins and X, (6, 6), from their coordinates to the joint's, negative
    for the predecessor. T, Ta: (6, rows) and (6, nv). armature, force: (nv,).
    """

    ends: tuple[tuple[int, np.ndarray], ...]
    T: np.ndarray
    Ta: np.ndarray
    c: np.ndarray
    armature: np.ndarray
    force: np.ndarray


class Equation(NamedTuple):
    """sum of A a over some bodies = value."""

    terms: tuple[tuple[int, np.ndarray], ...]
    value: np.ndarray


@dataclass(frozen=True)
class System:
    """M a - K' lam = f and K a = k: six accelerations a body, then the equations of the joints.

    M, K: sparse. tree: the joints of the bodies. loops: the rows of K that loops have, at the end.
    gap: how far the loops are from closed, in rad or m; opening: how fast they open, each per s.
    """

    M: Any
    K: Any
    f: np.ndarray
    k: np.ndarray
    tree: tuple[Bridge, ...]
    loops: int
    gap: float
    opening: float


def system(
    model: Model, q: np.ndarray, qd: np.ndarray, tau: np.ndarray, f_ext: Mapping[int, Force]
) -> System:
    """The equations of one state; f_ext are forces on bodies, in their coordinates."""
    x, xd = model.positions(q.tolist()), model.velocities(qd.tolist())
    given = {i: Vector(tuple(tau[s].tolist())) for i, s in model.velocity_slices.items()}
    v, tree, f, blocks = {WORLD: Motion.zero()}, [], np.zeros(6 * len(model.bodies)), []
    for i, p, joint, I in model.outward():
        X, vJ = joint.transform(x[i]), joint.subspace(x[i]) @ xd[i]
        v[i] = X @ v[p] + vJ
        bridge = _bridge(model, joint, x[i], (i, np.eye(6)), (p, _dense(X)))
        force = given.get(i, Vector.zero(joint.nv)) - joint.resistance(xd[i])
        c = bridge.c + _numbers(joint.bias(x[i], xd[i]) + v[i].cross(vJ))
        tree.append(bridge._replace(c=c, force=_numbers(force), armature=_numbers(joint.armature)))
        blocks.append((6 * i, 6 * i, _dense(I)))
        f[6 * i : 6 * i + 6] += _numbers(f_ext.get(i, Force.zero()) - v[i].cross(I @ v[i]))
    for joint_of in tree:
        push = joint_of.Ta @ (joint_of.force + joint_of.armature * (joint_of.Ta.T @ joint_of.c))
        rotor = joint_of.Ta * joint_of.armature @ joint_of.Ta.T
        for i, X_i in joint_of.ends:
            f[6 * i : 6 * i + 6] += X_i.T @ push
            blocks += [(6 * i, 6 * k, X_i.T @ rotor @ X_k) for k, X_k in joint_of.ends]
    loops = [_loop(model, loop, x, v) for loop in model.loops]
    equations = [_forbidden(bridge) for bridge in tree] + _followers(model, tree)
    equations += [_forbidden(bridge) for bridge in loops]
    starts = np.cumsum([0, *(len(e.value) for e in equations)])
    constraints = [
        (int(row), 6 * i, A) for row, e in zip(starts, equations, strict=False) for i, A in e.terms
    ]
    residual = [abs(e) for part in loop_residual(model, x) for e in part]
    rates = [
        np.sum([_numbers(block @ xd[i]) for i, block in rows.items()], axis=0)
        for rows in loop_matrix(model, x)
    ]
    return System(
        _sparse(blocks, (len(f), len(f))),
        _sparse(constraints, (int(starts[-1]), len(f))),
        f,
        np.concatenate([np.zeros(0), *(e.value for e in equations)]),
        tuple(tree),
        sum(loop.rows for loop in model.loops),
        max(residual, default=0.0),
        max((float(np.max(np.abs(rate), initial=0.0)) for rate in rates), default=0.0),
    )


class Solution(NamedTuple):
    """Accelerations (6 bodies,), multipliers of all equations, and whether these can be met."""

    a: np.ndarray
    lam: np.ndarray
    met: bool


def solved(equations: System) -> Solution:
    """All accelerations and multipliers, by the proximal method.

    [M K'; K -mu] is regular whatever the rank of K; what mu leaves is solved again.
    """
    from scipy.sparse import block_array, eye_array
    from scipy.sparse.linalg import splu

    M, K, n = equations.M, equations.K, len(equations.f)
    if not n:
        return Solution(np.zeros(0), np.zeros(len(equations.k)), True)
    mu = PROXIMAL / np.max(np.abs(M.diagonal()))
    exact = block_array([[M, K.T], [K, None]], format="csc") if K.shape[0] else M.tocsc()
    gives = block_array([[0.0 * eye_array(n), None], [None, mu * eye_array(K.shape[0])]])
    factors = splu((exact - gives).tocsc())
    right = np.concatenate([equations.f, equations.k])
    x = factors.solve(right)
    for _ in range(STEPS):
        step = factors.solve(right - exact @ x)
        x = x + step
        if np.max(np.abs(step[:n])) <= 1e-14 * np.max(np.abs(x[:n]), initial=1e-300):
            break
    unmet = np.max(np.abs(K @ x[:n] - equations.k), initial=0.0)
    size = max(np.max(np.abs(x[:n])), np.max(np.abs(equations.k), initial=0.0))
    return Solution(x[:n], -x[n:], float(unmet) <= CONSISTENT * float(size))


def joint_accelerations(model: Model, equations: System, a: np.ndarray) -> np.ndarray:
    """qdd (nv,) from the accelerations of the bodies."""
    qdd = np.zeros(model.nv)
    for i, where in model.velocity_slices.items():
        joint = equations.tree[i]
        across_it = sum((X @ a[6 * k : 6 * k + 6] for k, X in joint.ends), -joint.c)
        qdd[where] = joint.Ta.T @ across_it
    return qdd


def _bridge(
    model: Model,
    joint: Joint,
    q: Vector,
    successor: tuple[int, np.ndarray],
    predecessor: tuple[int, np.ndarray],
) -> Bridge:
    """A joint between two bodies; what the world accelerates goes to c."""
    (s, X_s), (p, X_p) = successor, predecessor
    both, up = ((s, X_s), (p, -X_p)), -_numbers(model.gravity)
    return Bridge(
        tuple((i, X) for i, X in both if i != WORLD),
        _columns(joint.constraint(q).columns),
        _columns(joint.active(q).columns),
        -sum((X @ up for i, X in both if i == WORLD), np.zeros(6)),
        np.zeros(joint.nv),
        np.zeros(joint.nv),
    )


def _loop(model: Model, loop: Loop, x: dict[int, Vector], v: dict[int, Motion]) -> Bridge:
    """A loop joint, in coordinates of its successor frame (Eq 3.40 to 3.44)."""
    P, S = loop.predecessor, loop.successor
    X = across(loop, around(model, loop, x)).transform()
    qJ, X_p = loop.joint.fit(X), X @ P.placement
    v_s = S.placement @ v[S.body]
    vJ = v_s - X_p @ v[P.body]
    bridge = _bridge(model, loop.joint, qJ, (S.body, _dense(S.placement)), (P.body, _dense(X_p)))
    own = loop.joint.bias(qJ, loop.joint.rates(qJ, vJ)) + v_s.cross(vJ)
    return bridge._replace(c=bridge.c + _numbers(own))


def _forbidden(joint: Bridge) -> Equation:
    """T' (sum of X a) = T' c."""
    return Equation(tuple((i, joint.T.T @ X) for i, X in joint.ends), joint.T.T @ joint.c)


def _followers(model: Model, tree: Sequence[Bridge]) -> list[Equation]:
    """The acceleration of each mimic joint less ratio times its leader's is zero."""
    found = []
    for i, follow in enumerate(body.follow for body in model.bodies):
        if follow is not None:
            pair = ((tree[i], 1.0), (tree[follow.leader], -follow.ratio))
            terms = [(k, w * joint.Ta.T @ X) for joint, w in pair for k, X in joint.ends]
            found.append(Equation(tuple(terms), sum(w * joint.Ta.T @ joint.c for joint, w in pair)))
    return found


def _sparse(blocks: Sequence[tuple[int, int, np.ndarray]], shape: tuple[int, int]) -> Any:
    """A matrix of blocks, each with the place of its upper left entry; blocks on others add."""
    from scipy.sparse import coo_array

    rows, places, entries = [np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0)]
    for r, c, block in blocks:
        i, j = np.nonzero(block)
        rows.append(r + i)
        places.append(c + j)
        entries.append(block[i, j])
    where = (np.concatenate(rows), np.concatenate(places))
    return coo_array((np.concatenate(entries), where), shape=shape).tocsc()


def _numbers(entries: Any) -> np.ndarray:
    return np.array(list(entries), dtype=float)


def _columns(vectors: Sequence[Any]) -> np.ndarray:
    return np.array([list(v) for v in vectors], dtype=float).reshape(len(vectors), 6).T


def _dense(A: Transform | RigidInertia) -> np.ndarray:
    """The 6x6 matrix of a map of motions (Eq 2.24 and 2.63)."""
    return _columns([A @ unit for unit in UNITS])
