"""Divide-and-conquer forward dynamics of long chains (Featherstone 2008, section 7.5).

The chain is assembled level by level from subchains, whose two end bodies are called handles. At
each level, one program joins all pairs of adjacent subchains as a batch with one row per pair.
Forward dynamics of N joints takes about 3 log2(N) batches in succession. The rows of each batch run
in parallel, in SIMD lanes and threads. Velocities along the chain are computed as a prefix sum with
the same number of levels.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from chasles.backends import USUAL
from chasles.backends.arrays import check_shape, checked_count, real_array
from chasles.errors import ModelError
from chasles.expr import RULES, Arena, Number, Program, Variable
from chasles.functions.compiled import Compiled, Recipe
from chasles.functions.derivatives import differentiated
from chasles.functions.doors import common, is_single, leading_shape, library_of, module
from chasles.mathematics.linear import Matrix, Symmetric, Vector, invert_symmetric
from chasles.mathematics.rotations import Rotation, about
from chasles.mathematics.spatial import (
    Force,
    InverseInertia,
    Motion,
    RigidInertia,
    Transform,
)
from chasles.model import Description, LinkData
from chasles.model.model import WORLD, Model
from chasles.model.validate import is_solid

KINDS = frozenset({"revolute", "continuous", "prismatic"})
"""Supported joint types, each with one degree of freedom: rotation or translation along z."""

Numbers = Sequence[Number]

Run = Callable[..., tuple[Any, ...]]
"""Function that applies an algorithm of this module to arrays, row by row (see `_run`)."""

TITLE = "Chain.forward_dynamics"

LIBRARIES = ("torch", "jax", "cupy")
"""Supported array libraries other than NumPy."""

SIZES = {
    "q": 1,
    "qd": 1,
    "tau": 1,
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

- q, qd, tau: position, velocity, and torque or force of a joint.
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
"""Functions of this module that are compiled, in order of use, after `gathered`."""


def gathered(q: Numbers, qd: Numbers, tau: Numbers) -> list[Numbers]:
    """Return the state of a joint."""
    return [(q[0], qd[0], tau[0])]


def traced(algorithm: Callable[..., list[Numbers]]) -> Program:
    """Return the traced program of a function of this module. Its inputs are listed in `SIZES`."""
    code = algorithm.__code__
    inputs = [Variable(name, (SIZES[name],)) for name in code.co_varnames[: code.co_argcount]]
    arena = Arena(RULES)
    results = algorithm(*([arena.input(v.name, k) for k in range(v.size)] for v in inputs))
    outputs = [(Variable(f"result{k}", (len(r),)), r) for k, r in enumerate(results)]
    return Program.from_outputs(algorithm.__name__, inputs, outputs)


class Step(Compiled):
    """One of the algorithms, compiled for arrays of every supported library.

    The program does not belong to a robot. The method in the recipe is the name of the algorithm.
    """

    @cached_property
    def program(self) -> Program:
        """The straight-line program, or its derivative."""
        algorithms = {a.__name__: a for a in (gathered, *ALGORITHMS)}
        return differentiated(traced(algorithms[self.recipe.method]), self.recipe.chain)

    @cached_property
    def compiled(self) -> Program:
        """The program that the backend compiles, which is always `program`."""
        return self.program


@cache
def step(algorithm: str) -> Step:
    """Return the compiled algorithm with a given name."""
    nothing = Description(TITLE, (LinkData("world", RigidInertia.zero()),), ())
    return Step(Recipe(nothing, False, TITLE, algorithm, USUAL, False, (), ()))


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
        world = np.zeros((1, 1, SIZES["A"]))
        world[..., 78:] = -np.tile([float(x) for x in model.gravity], 2)
        rows = (np.reshape(x, (len(joint), 1, -1)) for x in (place, joint, inertia, inverse))
        self._constants = world, *rows

    def forward_dynamics(self, q: Any, qd: Any, tau: Any, *, threads: int | None = None) -> Any:
        """Compute joint accelerations, without external forces.

        Parameters
        ----------
        q, qd, tau : array_like, shape (..., n)
            Joint positions (rad or m), velocities (rad/s or m/s), and torques or forces (N m or N).
            Arrays of PyTorch, JAX and CuPy may be on a GPU.
        threads : int, optional
            Maximum number of threads on the CPU. Default: all cores. Omit it for JAX arrays and for
            arrays on a GPU.

        Returns
        -------
        qdd : array, shape (..., n)
            Joint accelerations (rad/s^2 or m/s^2), in an array of the same library on the same
            device: float32 if all arrays are float32, otherwise float64.

        Raises
        ------
        ArgumentError
            If an argument is not an array of real numbers, if the arrays belong to several
            libraries, or if `threads` is passed for arrays that do not accept it.
        InputError
            If an array does not have n entries along its last axis, if the leading shapes do not
            broadcast, or if `threads` is not a positive integer.

        Notes
        -----
        PyTorch and JAX can differentiate the result with respect to q, qd and tau, and JAX can
        compile the call with `jax.jit`.

        Examples
        --------
        >>> import chasles
        >>> from chasles.numeric.handles import Chain
        >>> Chain(chasles.robots.planar(1)).forward_dynamics([0.0], [0.0], [4.905])
        array([0.])
        """
        if threads is not None:
            checked_count(f"{TITLE}: threads", threads)
        arrays, like = _arrays(q, qd, tau, n=len(self._constants[1]))
        return _accelerations(partial(_run, threads), arrays, map(like, self._constants))


def _arrays(
    q: Any, qd: Any, tau: Any, *, n: int
) -> tuple[dict[str, Any], Callable[[np.ndarray], Any]]:
    """Check the arguments, and return them as arrays with n entries along the last axis.

    Also return a function that converts a NumPy array to an array of the same library.
    """
    given = {"q": q, "qd": qd, "tau": tau}
    wanted = {name: Variable(name, (n,)) for name in given}
    library = common(TITLE, list(wanted.values()), list(given.values()))
    if library is None or library.package not in LIBRARIES:
        dtype = np.dtype(np.float32 if all(map(is_single, given.values())) else float)
        found = {name: real_array(TITLE, wanted[name], a, dtype) for name, a in given.items()}
        return found, lambda a: a.astype(dtype)
    like = partial(module(library.package).like, next(a for a in given.values() if library_of(a)))
    for name, a in given.items():
        if library_of(a):
            check_shape(TITLE, wanted[name], tuple(a.shape))
        else:
            given[name] = like(real_array(TITLE, wanted[name], a, np.dtype(float)))
    return given, like


def _accelerations(run: Run, arrays: Mapping[str, Any], constants: Iterable[Any]) -> Any:
    """Return the accelerations (..., n) for arrays q, qd, tau (..., n) of one library."""
    lead = leading_shape(TITLE, **arrays)
    (states,) = run(gathered, *(a[..., None] for a in arrays.values()))
    n, count = states.shape[-2], math.prod(lead)
    states = states.reshape(count, n, SIZES["state"]).swapaxes(0, 1)
    world, place, joint, inertia, inverse = constants
    xp = _namespace(states)
    (local,) = run(moved, place, joint, states)
    whole, reach = local, 1
    while reach < n:
        (further,) = run(composed, whole[:-reach], whole[reach:])
        whole, reach = xp.concatenate([whole[:reach], further]), 2 * reach
    pieces, hinges = run(loaded, inertia, inverse, joint, whole, local)
    pieces = xp.concatenate([xp.broadcast_to(world, (1, count, SIZES["A"])), pieces])
    qdd, _ = _solved(run, xp, pieces, (hinges, joint, states))
    return qdd[..., 0].swapaxes(0, 1).reshape(*lead, n)


def _solved(run: Run, xp: Any, pieces: Any, hinges: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the accelerations of the joints between the pieces, and the forces on each piece.

    Adjacent pieces are joined in pairs, the shorter chain of pairs is solved, and the pairs are
    then parted. `hinges` contains the arrays `hinge`, `joint` and `state` of the joints.
    """
    if len(pieces) == 1:
        none = xp.zeros_like(pieces[..., : SIZES["force"]])
        return none[:0, :, :1], none
    even = len(pieces) // 2 * 2
    A, B = pieces[0:even:2], pieces[1:even:2]
    now, later = (tuple(a[k::2] for a in hinges) for k in (0, 1))
    made, record = run(joined, A, B, *now)
    qdd, force = _solved(run, xp, xp.concatenate([made, pieces[even:]]), later)
    on_A, on_B, found = run(parted, A, B, now[0], record, force[: len(A)])
    forces = xp.concatenate([_alternating(xp, on_A, on_B), force[len(A) :]])
    return _alternating(xp, found, qdd), forces


def _alternating(xp: Any, a: Any, b: Any) -> Any:
    """Return the rows a[0], b[0], a[1], b[1], ... `a` has as many rows as `b`, or one more."""
    pairs = xp.stack([a[: len(b)], b], 1).reshape(2 * len(b), *a.shape[1:])
    return xp.concatenate([pairs, a[len(b) :]])


def _run(threads: int | None, algorithm: Callable[..., list[Numbers]], *arrays: Any) -> Any:
    """Apply an algorithm to arrays of one library, and return a tuple of its results."""
    options = {} if threads is None else {"threads": threads}
    found = step(algorithm.__name__)(*arrays, **options)
    return found if isinstance(found, tuple) else (found,)


def _namespace(array: Any) -> Any:
    """Return the module with the array functions of an array's library."""
    library = library_of(array)
    return np if library is None else module(library.package).namespace


def _not_a_chain(model: Model, reason: str) -> ModelError:
    problem = f"`Chain` does not support this robot: {reason}"
    remedy = (
        "use robot.forward_dynamics; `Chain` requires a serial chain of revolute and prismatic "
        "joints, where every link has inertia"
    )
    return ModelError("E-MATH-350", problem, remedy, part=f"robot {model.name!r}")
