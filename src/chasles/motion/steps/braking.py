"""Limit on the kinetic energy that velocity-product forces add in steps with fast rotation.

A step treats centrifugal and Coriolis forces explicitly, with the mass matrix at its start. In
exact motion, the work of these forces equals the change of the kinetic energy due to the change of
the mass matrix. In a step in which a joint turns by about 1 rad, the two differ by as much as the
energy itself, and velocities could grow without bound. Therefore the kinetic energy after a step
with fast rotation is limited to the initial energy plus the work of all other forces at the end
velocities:

    T(q1, v1) <= T(q0, v0) + v1 . (dt (tau - g) + dt D (v0 - v1) - dt^2 K v1 + J' gamma)

Here T is the kinetic energy, and q and v are positions and velocities before (0) and after (1) the
step. The forces are joint torques tau, gravity g, damping D, stiffness K, and the impulses gamma of
contacts and limits with Jacobian J.

If the kinetic energy is larger, the motion relative to the centers of mass is slowed down. This
velocity correction is called a brake here. Only steps of the program `rescue` (`stepping`) can
apply a brake, so other steps take no additional time.
"""

from typing import NamedTuple

import numpy as np

from chasles.expr import Arena, Number
from chasles.functions.programs import program
from chasles.mathematics.linear import Vector
from chasles.model import WORLD, Model
from chasles.motion.geometry.closed_forms import less, maximum, minimum, select, sqrt
from chasles.motion.geometry.kinematics import result
from chasles.motion.steps.algebra import dot, zeros
from chasles.motion.steps.bodies import Own, described
from chasles.motion.steps.impulses import SLOW

FAST = 0.2
"""Threshold (rad) for the rotation of a joint in one step. If a joint rotates further, the kinetic
energy after the step is limited."""


class Start(NamedTuple):
    """Initial state of a step.

    Attributes
    ----------
    q, v : np.ndarray
        Positions and velocities.
    steady : np.ndarray
        Velocities v, corrected for the rotation of free joints during the step (`stepping.Steps`).
        If the step ends with velocities v1, the impulse of all forces, including velocity
        products, is M (v1 - steady).
    """

    q: np.ndarray
    v: np.ndarray
    steady: np.ndarray


def articulated(model: Model) -> bool:
    """Return True if a robot has no loops and its mass matrix depends on the configuration."""
    return model.source.closure is None and len(_roots(model)) < len(model.movers)


def size(model: Model) -> int:
    """Return the number of entries of the velocity correction that `brake` computes."""
    return 1 + 3 * len(_roots(model))


class Inertia:
    """Function that returns the joint torques for given accelerations, without loads.

    The torques are the mass matrix times the accelerations, plus velocity products. Loads such as
    gravity and springs are not included.
    """

    def __init__(self, model: Model, arena: Arena, own: Own) -> None:
        self.model, self.own, self._arena = model, own, arena
        self._free = {**own, "gravity": [0.0, 0.0, 0.0]} if own else own
        bare = model if own else model.weightless()
        self._dynamics = program(bare, "inverse_dynamics", parameters=tuple(self._free))

    def __call__(self, q: np.ndarray, v: np.ndarray, rate: np.ndarray) -> np.ndarray:
        still = zeros(self.model.nv)
        return self._forces(q, v, rate) - self._forces(q, still, still)

    def _forces(self, q: np.ndarray, v: np.ndarray, rate: np.ndarray) -> np.ndarray:
        given = {"q": q, "qd": v, "qdd": rate, **self._free}
        return result(self._dynamics, self._arena, given)


def allowed(inertia: Inertia, start: Start, v: np.ndarray, dt: float) -> Number:
    """Return the largest allowed kinetic energy (J) after a step with end velocities v.

    This limit is the initial energy plus the work of all forces other than velocity products. By
    the momentum balance, the impulse of these forces is M (v - steady) + dt C. Here C is the
    vector of velocity products (Coriolis and centrifugal terms) at the start of the step. For
    `steady`, see `Start`.
    """
    still, rate = zeros(len(v)), (1.0 / dt) * (v - start.steady)
    energy = 0.5 * dot(start.v, inertia(start.q, still, start.v))
    return energy + dt * dot(v, inertia(start.q, start.v, rate))


def brake(
    inertia: Inertia, q: np.ndarray, v: np.ndarray, allowed: Number, dt: float
) -> list[Number]:
    """Return the velocity correction (brake) for a step that ends at q with velocities v.

    The first entry is the fraction to remove from the velocity relative to the centers of mass. The
    other entries are the center-of-mass velocities of floating robots, along their base axes.
    `allowed` is the largest allowed kinetic energy (J).
    """
    model, momentum = inertia.model, inertia(q, zeros(len(v)), v)
    here = described(model, inertia.own)
    carried: Number = 0.0
    centers: list[Number] = []
    for i, at in _roots(model).items():
        mass: Number = sum(here.bodies[k].inertia.m for k in model.subtree(i))
        mean = momentum[at] / mass
        carried = carried + 0.5 * dot(momentum[at], mean)
        centers += list(mean)
    relative = 0.5 * dot(v, momentum) - carried
    part = _slower(allowed - carried, relative)
    whole = _slower(allowed, carried)  # the factor is below 1 only due to integration errors
    return [select(turns_far(model, v, dt), 1.0 - part, 0.0), *(whole * x for x in centers)]


def _slower(allowed: Number, energy: Number) -> Number:
    """Return the velocity factor (at most 1) that reduces a kinetic energy to `allowed` (J)."""
    return sqrt(minimum(maximum(allowed, 0.0) / maximum(energy, SLOW), 1.0))


def slowed(model: Model, v: np.ndarray, brake: np.ndarray) -> np.ndarray:
    """Apply a velocity correction (the result of the function `brake`) to the velocities v."""
    along = zeros(model.nv)
    for k, at in enumerate(_roots(model).values()):
        along[at] = brake[1 + 3 * k : 4 + 3 * k]
    return v - brake[0] * (v - along)


def turns_far(model: Model, v: np.ndarray, dt: float) -> Number:
    """Return 1 if a joint turns by an angle of more than `FAST` (rad) in a step, else 0."""
    most: Number = 0.0
    for i in model.movers:
        joint, start = model.bodies[i].joint, model.velocity_slices[i].start
        columns = joint.subspace(Vector(tuple(joint.neutral()))).columns
        for k, column in enumerate(columns):
            if any(float(x) != 0.0 for x in column.angular):
                most = maximum(most, v[start + k] * v[start + k])
    return less(min(FAST / dt, 1e150) ** 2, most)


def _roots(model: Model) -> dict[int, slice]:
    """Return the slice of qd with the linear velocity, for each body with a free root joint."""
    return {
        i: slice(model.velocity_slices[i].start + 3, model.velocity_slices[i].stop)
        for i in model.movers
        if model.bodies[i].parent == WORLD and model.bodies[i].data.traits.floating
    }
