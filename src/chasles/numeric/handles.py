"""Divide-and-conquer forward dynamics of long chains (Featherstone 2008, section 7.5).

The chain is assembled level by level from subchains, whose two end bodies are called handles. At
each level, one program joins all pairs of adjacent subchains as a batch with one row per pair.
Forward dynamics of N joints takes about 3 log2(N) batches in succession. The rows of each batch run
in parallel, in SIMD lanes and threads. Velocities along the chain are computed as a prefix sum with
the same number of levels.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import checked_count, real_array
from chasles.errors import ModelError
from chasles.expr import RULES, Arena, Number, Program, Variable
from chasles.functions.doors import leading_shape
from chasles.mathematics.linear import Matrix, Symmetric, Vector, invert_symmetric
from chasles.mathematics.rotations import Rotation, about
from chasles.mathematics.spatial import (
    Force,
    InverseInertia,
    Motion,
    RigidInertia,
    Transform,
)
from chasles.model.model import WORLD, Model
from chasles.model.validate import is_solid

KINDS = frozenset({"revolute", "continuous", "prismatic"})
"""Supported joint types, each with one degree of freedom: rotation or translation along z."""

_FLOAT = np.dtype(float)

Numbers = Sequence[Number]

SIZES = {
    "place": 12,
    "joint": 4,
    "state": 3,
    "first": 18,
    "second": 18,
    "inertia": 10,
    "inverse": 21,
    "hinge": 20,
    "A": 90,
    "B": 90,
    "record": 41,
    "force": 12,
}
"""Number of columns of each array. A spatial transform X has 12 entries: rotation E and position r.

- place: transform from the parent frame to the joint frame.
- joint: rotation and translation per unit of q, offset of q, armature.
- state: q, qd, tau.
- first, second: a transform and a velocity.
- inertia: mass, first moment and rotational inertia of the body.
- inverse: upper triangle of the inverse spatial inertia.
- hinge: transform X of a joint, the angular and linear entries of its axis S along z, and its bias
acceleration c.
- A, B: blocks 11, 12 and 22 of a subchain's inverse inertia (1 and 2 are its end bodies), and bias
accelerations of the end bodies.
- record: quantities of a joint that connects two subchains: W, Y S, 1/D, g, the force due to tau,
and tau (see `joined`).
- force: forces on both end bodies.
"""


# Programs ----------------------------------------------------------------------------------------


def moved(place: Numbers, joint: Numbers, state: Numbers) -> list[Numbers]:
    """Return the transform X and the velocity of a joint."""
    turn, slide, offset, _ = joint
    at = state[0] + offset
    own = Transform(about(2, turn * at), Vector.of(0.0, 0.0, slide * at))
    vJ = Motion(Vector.of(0.0, 0.0, turn), Vector.of(0.0, 0.0, slide)) * state[1]
    return [(*_flat(own @ _transform(place)), *vJ)]


def composed(first: Numbers, second: Numbers) -> list[Numbers]:
    """Compose the transforms and velocities of two successive subchains: X2 X1 and X2 v1 + v2."""
    X = _transform(second)
    return [(*_flat(X @ _transform(first)), *(X @ _motion(first[12:]) + _motion(second[12:])))]


def loaded(
    inertia: Numbers, inverse: Numbers, joint: Numbers, first: Numbers, second: Numbers
) -> list[Numbers]:
    """Return the arrays `A` and `hinge` (see `SIZES`) for a subchain that consists of one body.

    `first` contains the transform and velocity of the body, and `second` the transform X and the
    velocity of its joint.
    """
    m, hx, hy, hz, *rest = inertia
    I = RigidInertia(m, Vector.of(hx, hy, hz), Symmetric(*rest))
    v, Phi = _motion(first[12:]), _symmetric(inverse)
    b = InverseInertia(Phi) @ (v.cross(I @ v) * -1.0)
    c = v.cross(_motion(second[12:]))
    return [(*inverse, *_entries(Phi), *inverse, *b, *b), (*second[:12], *joint[:2], *c)]


def joined(A: Numbers, B: Numbers, hinge: Numbers, joint: Numbers, state: Numbers) -> list[Numbers]:
    """Join two subchains, and return the new subchain and a record that `parted` uses later.

    See Featherstone 2008, Eq 7.57 to 7.63. The joint connects the last body of A to the first body
    of B. The joint force on B is f = Y (g + S qdd), with Y = (Phi_B + X Phi_A X')^-1. Phi_A and
    Phi_B are the inverse inertias of these bodies, and g is the difference of their bias
    accelerations plus c. Since S'f = tau - armature qdd, f = W g + Y S tau / D, where D = S'Y S +
    armature and W = Y - Y S S'Y / D.
    """
    (A11, A12, A22, a1, a2), (B11, B12, B22, b1, b2) = _piece(A), _piece(B)
    X, S, c = _hinge(hinge)
    Y = invert_symmetric((X @ InverseInertia(A22)).entries + B11)
    y = Y @ S
    over = 1.0 / (S.dot(y) + joint[3])
    W = Y - Matrix(tuple(tuple(a * b * over for b in y) for a in y))
    g = Vector(tuple(c + X @ a2 - b1))
    own = W @ g + y * (state[2] * over)
    across = _carried(X, A12.T)
    U, V = W @ across, W @ B12
    A11, B22 = A11 - across.T @ U, B22 - B12.T @ V
    ends = Vector(tuple(a1)) - across.T @ own, Vector(tuple(b2)) + B12.T @ own
    made = (*_upper(A11), *_entries(across.T @ V), *_upper(B22), *ends[0], *ends[1])
    return [made, (*_upper(W), *y, over, *g, *(y * (state[2] * over)), state[2])]


def parted(
    A: Numbers, B: Numbers, hinge: Numbers, record: Numbers, force: Numbers
) -> list[Numbers]:
    """Compute qdd of a connecting joint, and the forces on the end bodies of both subchains.

    `force` contains the forces on the first and last body of the joined chain.
    """
    X = _transform(hinge)
    W, y, over = _symmetric(record[:21]), Vector(tuple(record[21:27])), record[27]
    across, B12 = _carried(X, _piece(A)[1].T), _piece(B)[1]
    one, two = Vector(tuple(force[:6])), Vector(tuple(force[6:]))
    g = Vector(tuple(record[28:34])) + across @ one - B12 @ two
    f = W @ g + Vector(tuple(record[34:40]))
    back = X.T @ Force(Vector(f.entries[:3]), Vector(f.entries[3:]))
    qdd = (record[40] - y.dot(g)) * over
    return [(*one, *(back * -1.0)), (*f, *two), (qdd,)]


def _piece(numbers: Numbers) -> tuple[Matrix, Matrix, Matrix, Motion, Motion]:
    rows = tuple(tuple(numbers[21 + 6 * k : 27 + 6 * k]) for k in range(6))
    first, last = _symmetric(numbers[:21]), _symmetric(numbers[57:78])
    return first, Matrix(rows), last, _motion(numbers[78:84]), _motion(numbers[84:90])


def _hinge(numbers: Numbers) -> tuple[Transform, Vector, Motion]:
    S = Vector((0.0, 0.0, numbers[12], 0.0, 0.0, numbers[13]))
    return _transform(numbers), S, _motion(numbers[14:20])


def _carried(X: Transform, A: Matrix) -> Matrix:
    """Return X A, where the columns of A are motions."""
    columns = [X @ _motion(column) for column in A.T.rows]
    return Matrix(tuple(tuple(m) for m in columns)).T


def _symmetric(numbers: Numbers) -> Matrix:
    place = {pair: k for k, pair in enumerate((i, j) for i in range(6) for j in range(i, 6))}
    six = range(6)
    return Matrix(tuple(tuple(numbers[place[min(i, j), max(i, j)]] for j in six) for i in six))


def _upper(A: Matrix) -> Numbers:
    return tuple(A[i, j] for i in range(6) for j in range(i, 6))


def _entries(A: Matrix) -> Numbers:
    return tuple(entry for row in A.rows for entry in row)


def _transform(numbers: Numbers) -> Transform:
    rows = tuple(tuple(numbers[3 * k : 3 * k + 3]) for k in range(3))
    return Transform(Rotation.of(Matrix(rows)), Vector(tuple(numbers[9:12])))


def _flat(X: Transform) -> Numbers:
    return (*(entry for row in X.E.matrix().rows for entry in row), *X.r)


def _motion(numbers: Numbers) -> Motion:
    return Motion(Vector(tuple(numbers[:3])), Vector(tuple(numbers[3:6])))


ALGORITHMS = (moved, composed, loaded, joined, parted)
"""Functions of this module that are compiled, in order of use."""


@cache
def kernel(algorithm: Callable[..., list[Numbers]]) -> Any:
    """Compile one of `ALGORITHMS`. The sizes of its inputs are listed in `SIZES`."""
    program = traced(algorithm)
    return backends.prepare(("handles", algorithm.__name__, program.hash), program)


def traced(algorithm: Callable[..., list[Numbers]]) -> Program:
    """Return the traced program of one of the `ALGORITHMS`."""
    code = algorithm.__code__
    inputs = [Variable(name, (SIZES[name],)) for name in code.co_varnames[: code.co_argcount]]
    arena = Arena(RULES)
    results = algorithm(*([arena.input(v.name, k) for k in range(v.size)] for v in inputs))
    outputs = [(Variable(f"result{k}", (len(r),)), r) for k, r in enumerate(results)]
    return Program.from_outputs(algorithm.__name__, inputs, outputs)


# Evaluation --------------------------------------------------------------------------------------


class Chain:
    """Serial chain of revolute and prismatic joints, assembled recursively from two halves.

    Parameters
    ----------
    robot : Robot
        Robot that is a single chain. All links must have mass and moments of inertia. Loops,
        couplings, mimic joints, prescribed motions, springs, tendons and fluid forces are not
        supported.

    Raises
    ------
    ModelError
        If the robot is not such a chain.
    """

    def __init__(self, robot: Any) -> None:
        model: Model = robot.model
        for constraint in model.constraints:
            raise _not_a_chain(model, f"{constraint.name!r} constrains joints")
        if model.loaded or model.rotors:
            why = "springs, tendons, rotors, gravity compensation or fluid forces act on joints"
            raise _not_a_chain(model, why)
        bodies, last = list(model.outward()), WORLD
        place, joint, inertia, inverse = [], [], [], []
        for (i, p, _, I), body in zip(bodies, model.bodies, strict=True):
            given, name = body.joint, body.data.name
            if p != last:
                raise _not_a_chain(model, f"joint {name!r} starts a branch")
            if i in model.driven:
                raise _not_a_chain(model, f"joint {name!r} has a prescribed motion")
            if not body.owns:
                raise _not_a_chain(model, f"joint {name!r} mimics another joint")
            if given.kind not in KINDS:
                raise _not_a_chain(model, f"joint {name!r} is a {given.kind} joint")
            if not is_solid(I):
                raise _not_a_chain(model, f"link {body.name!r} lacks mass or a moment of inertia")
            place.append([float(x) for x in _flat(given.placement)])
            turns = given.kind != "prismatic"
            offset = float(getattr(given, "offset", 0.0))
            joint.append([turns, not turns, offset, float(given.armature[0])])
            inertia.append([float(x) for x in (I.m, *I.h, *I.I)])
            inverse.append([float(x) for x in _upper(InverseInertia.of(I).entries)])
            last = i
        self.gravity = np.array([float(x) for x in model.gravity])
        self._place, self._joint, self._inertia, self._inverse = (
            np.array(x, dtype=float) for x in (place, joint, inertia, inverse)
        )

    def forward_dynamics(self, q: Any, qd: Any, tau: Any, *, threads: int | None = None) -> Any:
        """Return joint accelerations (..., n) for q, qd, tau (..., n), without external forces.

        The arguments and the result are NumPy arrays in the memory of the CPU. `threads` is the
        maximum number of threads. By default, all cores are used.
        """
        name, n = "Chain.forward_dynamics", (len(self._joint),)
        named = {"q": q, "qd": qd, "tau": tau}
        arrays = {k: real_array(name, Variable(k, n), x, _FLOAT) for k, x in named.items()}
        given, lead = list(arrays.values()), leading_shape(name, **arrays)
        if threads is not None:
            checked_count(f"{name}: threads", threads)
        states = np.stack([np.broadcast_to(x, (*lead, len(self._joint))) for x in given], axis=-1)
        rows = states.reshape(-1, len(self._joint), 3).swapaxes(0, 1)
        return self._solved(rows, threads).T.reshape(*lead, len(self._joint))

    def _solved(self, states: np.ndarray, threads: int | None) -> np.ndarray:
        """Return the accelerations (n, k) of n joints in k states.

        `states` has shape (n, k, 3). The last axis holds q, qd and tau.
        """
        n, count = states.shape[:2]
        run, joint = partial(_run, threads), self._joint[:, None]
        (step,) = run(moved, self._place[:, None], joint, states)
        whole, reach = step, 1
        while reach < n:
            (further,) = run(composed, whole[:-reach], whole[reach:])
            whole, reach = np.concatenate([whole[:reach], further]), 2 * reach
        masses = self._inertia[:, None], self._inverse[:, None]
        pieces, hinges = run(loaded, *masses, joint, whole, step)
        world = np.zeros((1, count, SIZES["A"]))
        world[..., 78:] = -np.tile(self.gravity, 2)
        pieces, first = np.concatenate([world, pieces]), np.arange(n + 1)
        levels = []
        while len(first) > 1:
            even = len(first) // 2 * 2
            A, B, at = pieces[0:even:2], pieces[1:even:2], first[1:even:2] - 1
            made, record = run(joined, A, B, hinges[at], joint[at], states[at])
            levels.append((A, B, at, record))
            pieces = np.concatenate([made, pieces[even:]])
            first = np.concatenate([first[0:even:2], first[even:]])
        qdd, force = np.empty((n, count)), np.zeros((1, count, SIZES["force"]))
        for A, B, at, record in reversed(levels):
            on_A, on_B, found = run(parted, A, B, hinges[at], record, force[: len(at)])
            qdd[at] = found[..., 0]
            both = np.stack([on_A, on_B], axis=1).reshape(2 * len(at), count, -1)
            force = np.concatenate([both, force[len(at) :]])
        return qdd


def _run(
    threads: int | None, algorithm: Callable[..., list[Numbers]], *arrays: np.ndarray
) -> list[np.ndarray]:
    """Apply an algorithm to arrays (rows, states, size), whose first two axes broadcast."""
    compiled, shape = kernel(algorithm), np.broadcast_shapes(*(a.shape[:2] for a in arrays))
    flat = [np.broadcast_to(a, (*shape, a.shape[2])).reshape(-1, a.shape[2]) for a in arrays]
    out = [np.empty((shape[0] * shape[1], v.size)) for v in compiled.interface.outputs]
    compiled(flat, out, threads)
    return [a.reshape(*shape, -1) for a in out]


def _not_a_chain(model: Model, reason: str) -> ModelError:
    problem = f"`Chain` does not support this robot: {reason}"
    remedy = (
        "use robot.forward_dynamics; `Chain` requires a serial chain of revolute and prismatic "
        "joints, where every link has inertia"
    )
    return ModelError("E-MATH-350", problem, remedy, part=f"robot {model.name!r}")
