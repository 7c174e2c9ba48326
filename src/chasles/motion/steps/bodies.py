"""Bodies in a time step: poses, motion of free joints, and inverse masses at contacts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chasles.algorithms.spatial.kinematics import At, body_transforms, jacobian
from chasles.expr import Arena, Number, Program, interpret
from chasles.functions.programs import program
from chasles.functions.tracing import signature
from chasles.model import WORLD, Model
from chasles.model.build import connected
from chasles.model.parameters import substituted
from chasles.motion.contact.pairs import Pair
from chasles.motion.geometry.closed_forms import cross, less, maximum, minimum, select, sqrt
from chasles.motion.geometry.kinematics import result
from chasles.motion.steps.algebra import dot, solved, zeros
from chasles.motion.steps.impulses import SLOW, bounded
from chasles.motion.steps.spots import Placed

Own = Mapping[str, Any]
"""Model parameters passed to a step: mapping from name to flat array of values or symbols."""

NO_OWN: Own = {}


def computed(
    model: Model, function: str, arena: Arena, given: Mapping[str, Any], own: Own, **options: Any
) -> np.ndarray:
    """Evaluate a robot function symbolically, with the model parameters in `own`."""
    made = program(model, function, parameters=tuple(own), **options)
    return result(made, arena, {**given, **own})


def mass_matrices(
    model: Model, arena: Arena, q: np.ndarray, own: Own
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mass matrix at q, and the inverse of the mass matrix in the neutral posture."""
    made, still = program(model, "mass_matrix", parameters=tuple(own)), neutral_posture(model)
    M = result(made, arena, {"q": q, **own})
    if not own:
        return M, np.asarray(np.linalg.pinv(numbers_of(made, q=still)))
    there = result(made, arena, {"q": still, **own})
    order = [k for i in model.in_tree_order for k in range(*span_of(model, i))]
    columns = [solved(there, unit, order, None) for unit in np.eye(model.nv)]
    return M, np.stack(columns, axis=-1)


def described(model: Model, own: Own) -> Model:
    """Return the model with parameters replaced by the given values or symbols."""
    return connected(substituted(model.source, own), mimic=model.mimics) if own else model


def placed(
    model: Model, q: np.ndarray, pairs: Sequence[Pair], own: Own = NO_OWN
) -> dict[str | None, Placed]:
    """Return the poses of all frames that contact pairs refer to, at positions q."""
    here = described(model, own)
    transforms = body_transforms(here, here.positions(list(q)))
    found: dict[str | None, Placed] = {None: Placed(np.eye(3), np.zeros(3))}
    for name in dict.fromkeys(f for pair in pairs for f in pair.frames if f is not None):
        frame = here.frame(name)
        seen = (frame.placement @ transforms[frame.body]).homogeneous.rows
        pose = np.array(seen, dtype=object)
        found[name] = Placed(pose[:3, :3], pose[:3, 3])
    return found


def span_of(model: Model, body: int) -> tuple[int, int]:
    part = model.velocity_slices[body]
    return part.start, part.stop


def free_places(model: Model) -> list[int]:
    """Return the index in qd of the first velocity of each free joint."""
    return [
        model.velocity_slices[i].start for i in model.movers if model.bodies[i].data.traits.floating
    ]


def moved(
    model: Model, arena: Arena, q: np.ndarray, way: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the configuration after a displacement `way`, and the joint velocities there.

    The linear velocities of free joints are constant in the world frame; the returned components
    are along the new body axes.
    """
    turn, last = way.copy(), v.copy()
    free = [i for i in model.movers if model.bodies[i].data.traits.floating]
    for i in free:
        at = model.velocity_slices[i].start
        turn[at + 3 : at + 6] = 0.0
    there = result(program(model, "integrate"), arena, {"q": q, "v": turn})
    for i in free:
        at, place = model.velocity_slices[i].start, model.position_slices[i].start
        old, new = (_rotation(x[place : place + 4]) for x in (q, there))
        shift = old @ way[at + 3 : at + 6]
        there[place + 4 : place + 7] = q[place + 4 : place + 7] + shift
        last[at + 3 : at + 6] = new.T @ (old @ v[at + 3 : at + 6])
    return there, last


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a quaternion (w, x, y, z) of any length."""
    w, x, y, z = quaternion
    s = 2.0 / (w * w + x * x + y * y + z * z)
    return np.array(
        [
            [1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)],
            [s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x)],
            [s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y)],
        ],
        dtype=object,
    )


def along_velocities(model: Model, what: str, own: Own = NO_OWN) -> np.ndarray:
    """Return a joint property (damping or stiffness) for each velocity coordinate."""
    return _along(model, what, own, lambda ratio: ratio * ratio)


def dry_friction(model: Model, own: Own = NO_OWN) -> np.ndarray:
    """Return the magnitude of dry friction (nv,) for each velocity coordinate, in N m or N.

    The friction of a mimic joint acts on the joint that it mimics, multiplied by the ratio.
    """
    return _along(model, "friction", own, abs)


def _along(model: Model, what: str, own: Own, share: Callable[[float], float]) -> np.ndarray:
    names = {name for name in own if name.endswith(f".{what}")}
    found = zeros(model.nv) if names else np.zeros(model.nv)
    for i, body in enumerate(model.bodies):
        for owner, first, ratio in model.shares(i):
            start = model.velocity_slices[owner].start + first
            each = [float(f) for f in getattr(body.joint, what)]
            if f"{body.data.name}.{what}" in names:
                each = [own[f"{body.data.name}.{what}"][0]] * len(each)
            for k, value in enumerate(each):
                found[start + k] = found[start + k] + share(ratio) * value
    return found


def centered(model: Model, q: np.ndarray) -> np.ndarray:
    """Return q shifted so that the first free joint attached to the world is at the origin.

    Positions are then close to zero, which preserves their precision. If a joint attached to the
    world is not free, q is returned unchanged.
    """
    roots = [i for i in model.movers if model.bodies[i].parent == WORLD]
    if not roots or not all(model.bodies[i].data.traits.floating for i in roots):
        return q
    near = q.copy()
    first = model.position_slices[roots[0]].start + 4
    for i in roots:
        at = model.position_slices[i].start + 4
        near[at : at + 3] = q[at : at + 3] - q[first : first + 3]
    return near


def origin_of(model: Model, shift: np.ndarray) -> np.ndarray:
    """Return the world position of the origin of the shifted coordinates (see `centered`).

    `shift` is the difference between q and the result of `centered`.
    """
    roots = [i for i in model.movers if model.bodies[i].parent == WORLD]
    if not roots or not all(model.bodies[i].data.traits.floating for i in roots):
        return np.zeros(3)
    at = model.position_slices[roots[0]].start + 4
    return shift[at : at + 3]


def body_jacobian(model: Model, frame: str | None, q: np.ndarray) -> np.ndarray:
    """Return the Jacobian (6, nv) of the body that carries a frame.

    The Jacobian is in world axes, about the world origin. For the world (None), it is zero.
    """
    if frame is None:
        return zeros(6, model.nv)
    return _jacobian(model, frame, "world", q).astype(object)


def _jacobian(model: Model, frame: str, at: At, q: np.ndarray) -> np.ndarray:
    """Return the Jacobian (6, nv) of a frame about the reference point `at`.

    q may contain floats or symbols.
    """
    found = jacobian(model, model.positions(list(q)), frame=model.frame(frame), at=at)
    return np.array(signature(jacobian).outputs[0].join(model, found)).reshape(6, model.nv)


def neutral_posture(model: Model) -> np.ndarray:
    joints = (model.bodies[i].joint for i in model.movers)
    return np.array([float(x) for joint in joints for x in joint.neutral()])


def numbers_of(found: Program, **given: np.ndarray) -> np.ndarray:
    values = interpret(found, {name: list(x) for name, x in given.items()})
    only = found.outputs[0]
    return np.array(values[only.name]).reshape(only.shape)


class Weights:
    """Function that returns the inverse effective mass (1/kg) of the robot at a pair of shapes.

    The inverse mass is the mean over three axes in the neutral posture. `inverse` is the inverse of
    the mass matrix in that posture (`mass_matrices`).
    """

    def __init__(self, model: Model, inverse: np.ndarray, own: Own = NO_OWN) -> None:
        self._model, self._inverse = described(model, own), inverse
        self._known: dict[tuple[str, At], Number] = {}

    def __call__(self, pair: Pair) -> Number:
        total: Number = 0.0
        for shape in (pair.body, pair.surface):
            if shape.frame is not None:
                x, y, z = map(float, _middle(shape))
                total = total + self._at(shape.frame, (x, y, z))
        return bounded(total)

    def _at(self, frame: str, point: At) -> Number:
        """Return the inverse effective mass at a point in a frame, averaged over all directions."""
        key = frame, point
        if key not in self._known:
            J = _jacobian(self._model, *key, neutral_posture(self._model))[3:]
            self._known[key] = np.trace(J @ self._inverse @ J.T) / 3.0
        return self._known[key]


def _middle(shape: Any) -> np.ndarray:
    """Return the center of a shape in its frame; for a plane, a point on the plane."""
    if hasattr(shape, "balls"):
        return np.mean([at for at, _ in shape.balls()], axis=0)
    return np.array(getattr(shape, "point", (0.0, 0.0, 0.0)))


def unheated(inertia: np.ndarray, w: np.ndarray, dt: float) -> np.ndarray:
    """Return the change in angular velocity that compensates for the energy error of a step.

    The step of dt seconds treats the gyroscopic torque at the angular velocity w explicitly, which
    adds energy.
    """
    momentum = inertia @ w
    ahead = w - dt * solved(inertia, cross(w, momentum), (0, 1, 2), None)
    before, after = dot(w, momentum), dot(ahead, inertia @ ahead)
    ratio = minimum(before / maximum(after, SLOW), 1.0)
    part = sqrt(select(less(SLOW, after), ratio, 1.0))  # the factor is 1 at rest
    return (part - 1.0) * ahead
