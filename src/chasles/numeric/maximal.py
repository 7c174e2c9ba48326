"""Dynamics in maximal coordinates, with all body accelerations and joint forces as unknowns.

SciPy factorizes one large sparse system (Featherstone 2008, sections 3.7 and 8.13). Unlike the
compiled methods, this method computes accelerations and forces without recursion over the tree. The
method supports all closed loops, including loops with redundant equations. For chains and
ladder-like mechanisms, the cost is linear in the number of bodies. The same code builds the
equations from floats for one state, or from symbols as a program for many states. With a program,
the sparsity pattern and the elimination order are determined only once.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from chasles.algorithms.homogeneous import (
    across,
    around,
    coupling_bias,
    coupling_drift,
    coupling_matrix,
    loop_matrix,
    loop_residual,
)
from chasles.algorithms.spatial.passive import loads
from chasles.expr import RULES, Arena, Number, Program, Variable
from chasles.functions.numeric import singular
from chasles.functions.tracing import WrenchKey, clock, external_loads
from chasles.mathematics.linear import Matrix, Vector, absent, diagonal
from chasles.mathematics.spatial import Force, Forces, Motion, Motions, Transform
from chasles.model import WORLD, Model
from chasles.model.joints import Joint
from chasles.model.loads import by_body
from chasles.model.model import Loop

PROXIMAL = 1e-8
"""Compliance of the constraint equations, multiplied by the largest diagonal entry of M to make it
dimensionless.

With this compliance, constraint forces are unique even if equations are redundant. Iterative
refinement removes its effect on the accelerations.
"""

STEPS = 30
"""Maximum number of iterative refinement steps. Consistent equations need only a few steps."""


CONSISTENT = 1e-7
"""Relative tolerance for K a = k. With a larger residual, the joint equations are considered
inconsistent."""


_AXES = [Vector(row) for row in Matrix.identity().rows]

UNITS = Motions(
    tuple([Motion(e, Vector.zero()) for e in _AXES] + [Motion(Vector.zero(), e) for e in _AXES])
)
"""Unit rotations about the three coordinate axes, then unit translations along them."""

Entries = dict[tuple[int, int], Number]
"""Sparse matrix, stored as nonzero entries by row and column."""


class Bridge(NamedTuple):
    """Acceleration equation of a tree or loop joint: (sum of X a over its two bodies) = S qdd + c.

    Here a are body accelerations, S is the motion subspace of the joint, and c its bias
    acceleration. `ends` contains the index of each moving body that the joint connects, and the
    transform X from body to joint coordinates, which is negated for the predecessor. The columns of
    T span the constraint forces, and those of Ta the active forces.
    """

    ends: tuple[tuple[int, Motions], ...]
    T: Forces
    Ta: Forces
    c: Motion


class Row(NamedTuple):
    """Equations sum_i A_i a_i = value, where a_i is the acceleration of body i.

    `terms` contains the pairs (i, A_i).
    """

    terms: tuple[tuple[int, Matrix], ...]
    value: Vector


class Equations(NamedTuple):
    """Equations of motion M a - K' lam = f, and joint equations K a = k.

    a has six entries per body. The last rows of K belong to loops and couplings. The joint
    accelerations are qdd = J a - d. `residual` contains the closure errors of loops and couplings
    (rad or m), and `opening` their time derivatives (rad/s or m/s).
    """

    M: Entries
    K: Entries
    f: list[Number]
    k: list[Number]
    J: Entries
    d: list[Number]
    residual: list[Number]
    opening: list[Number]


def equations(
    model: Model,
    q: Sequence[Number],
    qd: Sequence[Number],
    tau: Sequence[Number],
    f_ext: Mapping[int, Force],
) -> Equations:
    """Return the equations for one state. `f_ext` contains external forces in body coordinates.

    For a time-dependent model, pass `model.at(t)`. A joint with a prescribed motion constrains all
    six components of the relative acceleration.
    """
    x, xd = model.positions(q), model.velocities(qd, 1)
    given = {i: Vector(tuple(tau[s])) for i, s in model.velocity_slices.items()}
    driven = model.undriven(2)
    v, tree, M = {WORLD: Motion.zero()}, list[Bridge](), Entries()
    f = {i: f_ext.get(i, Force.zero()) for i in range(len(model.parts))}
    bent = model.bearing(loads(model, x, xd)) if model.loaded else model
    for i, p, joint, I in bent.outward():
        X, S = joint.transform(x[i]), joint.subspace(x[i])
        vJ = S @ xd[i]
        v[i] = X @ v[p] + vJ
        bridge = _bridge(model, joint, x[i], (i, Transform.identity()), (p, X))
        bend = joint.bias(x[i], xd[i]) + v[i].cross(vJ) + S @ driven[i]
        tree.append(bridge._replace(c=bridge.c + bend))
        _add(M, 6 * i, 6 * i, _columns(I @ UNITS))
        f[i] = f[i] - v[i].cross(I @ v[i])
        push = given.get(i, Vector.zero(joint.nv)) - joint.resistance(xd[i])
        _drive(M, f, tree[-1], push, joint.armature)
    loops = [_loop(model, loop, x, v) for loop in model.loops]
    rows = [_held(b, body.drive is not None) for b, body in zip(tree, model.parts, strict=True)]
    rows += [*_followers(model, tree), *(_held(b, False) for b in loops)]
    for coupling in model.couplings:
        A = coupling_matrix(model, coupling, x)
        bias = sum((-(A[i] @ driven[i]) for i in A), coupling_bias(model, coupling, x, xd))
        rows.append(_combined([(tree[i], A[i]) for i in A], bias))
    K, k = _stacked(rows)
    J, d = _stacked([_combined([(tree[i], None)]) for i in model.velocity_slices])
    residual = [e for part in loop_residual(model, x) for e in part]
    drift = [Vector.zero(loop.rows) for loop in model.loops]
    drift += [coupling_drift(model, coupling, x) for coupling in model.couplings]
    rates = zip(loop_matrix(model, x), drift, strict=True)
    opening = [e for A, at in rates for e in sum((A[i] @ xd[i] for i in A), at)]
    return Equations(M, K, [e for i in f for e in f[i]], k, J, d, residual, opening)


def _drive(M: Entries, f: dict[int, Force], joint: Bridge, push: Vector, armature: Vector) -> None:
    """Add the forces of a joint torque on both bodies to f, and the rotor inertia to M."""
    rotor = diagonal(armature)
    force = push + rotor @ (joint.Ta.T @ joint.c)
    for i, X in joint.ends:
        R = joint.Ta.T @ X
        f[i] = f[i] + Force.of(*(R.T @ force)) if len(force) else f[i]
        for k, X_k in joint.ends if any(not absent(a) for a in armature) else ():
            _add(M, 6 * i, 6 * k, R.T @ rotor @ (joint.Ta.T @ X_k))


def _bridge(
    model: Model,
    joint: Joint,
    q: Vector,
    successor: tuple[int, Transform],
    predecessor: tuple[int, Transform],
) -> Bridge:
    """Return the equation that a joint imposes on the accelerations of two bodies.

    If one of the bodies is the world, the known acceleration of the world is included in
    the bias acceleration c of the equation (`Bridge`).
    """
    (s, X_s), (p, X_p) = successor, predecessor
    c, ends = Motion.zero(), []
    for i, X, sign in ((s, X_s, 1.0), (p, X_p, -1.0)):
        if i == WORLD:
            c = c + X @ model.gravity * sign
        else:
            ends.append((i, X @ UNITS * sign))
    return Bridge(tuple(ends), joint.constraint(q), joint.active(q), c)


def _loop(model: Model, loop: Loop, x: dict[int, Vector], v: dict[int, Motion]) -> Bridge:
    """Return the equation that a loop joint imposes on accelerations, in the successor frame.

    See Featherstone 2008, Eq 3.40 to 3.44.
    """
    P, S = loop.predecessor, loop.successor
    X = across(loop, around(model, loop, x)).transform()
    qJ, X_p = loop.joint.fit(X), X @ P.placement
    v_s = S.placement @ v[S.body]
    vJ = v_s - X_p @ v[P.body]
    bridge = _bridge(model, loop.joint, qJ, (S.body, S.placement), (P.body, X_p))
    own = loop.joint.bias(qJ, loop.joint.rates(qJ, vJ)) + v_s.cross(vJ)
    return bridge._replace(c=bridge.c + own)


def _held(joint: Bridge, driven: bool) -> Row:
    """Return a joint's constraint equations T' (sum of X a) = T' c for the body accelerations a.

    T spans the constraint forces, or all six directions if the joint has a prescribed motion
    (`driven`).
    """
    T = Forces((*joint.T.columns, *joint.Ta.columns)) if driven else joint.T
    return Row(tuple((i, T.T @ X) for i, X in joint.ends), T.T @ joint.c)


def _combined(parts: Sequence[tuple[Bridge, Matrix | None]], value: Vector | None = None) -> Row:
    """Return the equation that sets the sum of A qdd over the given joints to `value`.

    A is the identity matrix by default, and `value` is zero by default.
    """
    terms: list[tuple[int, Matrix]] = []
    for joint, A in parts:
        bend = joint.Ta.T @ joint.c
        bend = bend if A is None else A @ bend
        value = bend if value is None else value + bend
        for i, X in joint.ends:
            across_it = joint.Ta.T @ X
            terms.append((i, across_it if A is None else A @ across_it))
    assert value is not None
    return Row(tuple(terms), value)


def _followers(model: Model, tree: Sequence[Bridge]) -> list[Row]:
    """Return the equations that couple mimic joints and rotors to their driving joints."""
    found = []
    for i, body in enumerate(model.parts):
        if body.follow is None and not body.geared:
            continue
        n = body.joint.nv
        terms: list[tuple[Bridge, Matrix | None]] = [(tree[i], Matrix.identity(n))]
        for j, k, w in model.shares(i):
            size = model.parts[j].joint.nv
            rows = (tuple(-w if c == k + r else 0.0 for c in range(size)) for r in range(n))
            terms.append((tree[j], Matrix(tuple(rows))))
        found.append(_combined(terms, Vector.zero(n)))
    return found


def _columns(F: Forces) -> Matrix:
    return Matrix(tuple(map(tuple, F.columns))).T


def _add(entries: Entries, row: int, column: int, block: Matrix) -> None:
    """Add a block to a sparse matrix, with its upper left entry at (row, column)."""
    for r, line in enumerate(block.rows, start=row):
        for c, x in enumerate(line, start=column):
            if not absent(x):
                entries[r, c] = entries[r, c] + x if (r, c) in entries else x


def _stacked(rows: Iterable[Row]) -> tuple[Entries, list[Number]]:
    """Stack equations, and return their matrix and right-hand side."""
    matrix, values = Entries(), list[Number]()
    for row in rows:
        for i, A in row.terms:
            _add(matrix, len(values), 6 * i, A)
        values += row.value
    return matrix, values


# Solving ---------------------------------------------------------------------------------------


class Solution(NamedTuple):
    """Accelerations a (6 per body), multipliers lam, and `met`, which is True if K a = k holds."""

    a: np.ndarray
    lam: np.ndarray
    met: bool


class Columns(NamedTuple):
    """Sparsity pattern of a matrix in compressed-column (CSC) format.

    `order` contains the elimination order, `rows` the row of each stored value, and `starts` the
    index of the first value of each column. `slots` maps stored values to `Solver.places`.
    """

    order: np.ndarray
    slots: np.ndarray
    rows: np.ndarray
    starts: np.ndarray


class Solver:
    """Solver for linear systems with the matrix [M K'; K -mu] and a fixed sparsity pattern.

    The matrix is nonsingular for any rank of K. Iterative refinement removes the effect of mu
    (proximal method). `M` and `K` contain the row and column indices of the nonzero entries. The
    elimination order is determined for the first matrix and reused for all others.
    """

    def __init__(self, M: Iterable[tuple[int, int]], K: Iterable[tuple[int, int]], n: int, m: int):
        self.n, self.m = n, m
        upper, lower = np.array([*M], int).reshape(-1, 2), np.array([*K], int).reshape(-1, 2)
        below, own = lower + np.array([n, 0]), np.arange(n, n + m)
        self.places = np.vstack([upper, below, below[:, ::-1], np.column_stack([own, own])])
        self.diagonal = np.flatnonzero(upper[:, 0] == upper[:, 1])
        self.chosen: Columns | None = None

    def _laid(self, order: np.ndarray) -> Columns:
        """Return the sparsity pattern in compressed-column format, with columns in this order."""
        row, column = self.places[:, 0], np.argsort(order)[self.places[:, 1]]
        slots = np.lexsort((row, column))
        counts = np.bincount(column, minlength=self.n + self.m)
        starts = np.concatenate([[0], np.cumsum(counts)])
        return Columns(order, slots, row[slots].astype(np.int32), starts.astype(np.int32))

    def __call__(self, M: np.ndarray, K: np.ndarray, f: np.ndarray, k: np.ndarray) -> Solution:
        """Solve M qdd - K' lam = f and K qdd = k for the accelerations and multipliers.

        M and K are arrays of the nonzero matrix entries, in the order of their indices.
        """
        n = self.n
        if not n:
            return Solution(np.zeros(0), np.zeros(len(k)), True)
        mu = PROXIMAL / np.max(np.abs(M[self.diagonal]))
        exact, solve = self._factored(np.concatenate([M, K, K, np.zeros(self.m)]), mu)
        right = np.concatenate([f, k])
        x = solve(right)
        for _ in range(STEPS):
            step = solve(right - exact(x))
            x = x + step
            if np.max(np.abs(step[:n])) <= 1e-14 * np.max(np.abs(x[:n]), initial=1e-300):
                break
        unmet = np.max(np.abs(exact(x)[n:] - k), initial=0.0)
        size = max(np.max(np.abs(x[:n])), np.max(np.abs(k), initial=0.0))
        return Solution(x[:n], -x[n:], float(unmet) <= CONSISTENT * float(size))

    def _factored(self, entries: np.ndarray, mu: float) -> tuple[Any, Any]:
        """Return two functions: product with [M K'; K 0], and solution of [M K'; K -mu] x = b."""
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu

        def factored(values: np.ndarray, laid: Columns, **options: Any) -> Any:
            try:
                return splu(matrix(values, laid), **options)
            except RuntimeError:  # exactly singular
                raise singular("maximal_dynamics") from None

        def matrix(values: np.ndarray, laid: Columns) -> Any:
            return csc_array((values[laid.slots], laid.rows, laid.starts), shape=(size, size))

        size, given = self.n + self.m, entries.copy()
        given[len(given) - self.m :] = -mu
        laid = self.chosen
        if laid is None:
            first = factored(given, self._laid(np.arange(size)))
            laid = self.chosen = self._laid(np.argsort(first.perm_c))
        exact, order = matrix(entries, laid), laid.order
        factors = factored(given, laid, permc_spec="NATURAL")

        def solve(right: np.ndarray) -> np.ndarray:
            x = np.empty_like(right)
            x[order] = factors.solve(right)
            return x

        return (lambda x: exact @ x[order]), solve


class Analysed(NamedTuple):
    """Program that computes the equations of a model from q, qd, tau, wrenches and time.

    The outputs are the fields of `Equations`, in order. Each matrix is output as a list of
    entries, with their row and column indices in `M`, `K` or `J`.
    """

    program: Program
    M: tuple[tuple[int, int], ...]
    K: tuple[tuple[int, int], ...]
    J: tuple[tuple[int, int], ...]


def analysed(model: Model, keys: tuple[WrenchKey, ...]) -> Analysed:
    """Trace the equations of a model, and find the entries that are not identically zero."""
    arena, wrenches = Arena(RULES), [f"wrench{k}" for k in range(len(keys))]
    sizes = {"q": model.nq, "qd": model.nv, "tau": model.nv, **dict.fromkeys(wrenches, 6)}
    symbols = {name: [arena.input(name, k) for k in range(n)] for name, n in sizes.items()}
    moved = model.at(arena.input("t", 0))
    q, qd, tau, *given = symbols.values()
    loads = external_loads(moved, moved.positions(q), keys, [list(wrench) for wrench in given])
    found = equations(moved, q, qd, tau, by_body(moved, loads))
    outputs = []
    for name, part in found._asdict().items():
        numbers = list(part.values()) if isinstance(part, dict) else part
        outputs.append((Variable(name, (len(numbers),)), numbers))
    inputs = [Variable(name, (n,)) for name, n in sizes.items()] + clock(model)
    program = Program.from_outputs("maximal", inputs, outputs)
    return Analysed(program, tuple(found.M), tuple(found.K), tuple(found.J))


def joint_accelerations(
    places: Iterable[tuple[int, int]], J: np.ndarray, d: np.ndarray, a: np.ndarray
) -> np.ndarray:
    """Return the joint accelerations qdd = J a - d, where a contains the body accelerations."""
    row, column = np.array([*places], int).reshape(-1, 2).T
    return np.bincount(row, J * a[column], minlength=len(d)) - d
