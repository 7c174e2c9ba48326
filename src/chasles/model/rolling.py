"""Nonholonomic contact of blades (skates), wheels and balls with a plane that may move."""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields

from chasles.errors import ModelError
from chasles.expr import Number, sqrt
from chasles.mathematics.linear import Matrix, Vector
from chasles.model.constraints import FrameState
from chasles.model.couplings import coupling
from chasles.model.description import CouplingData, RollingData
from chasles.model.given import is_finite, value_fault
from chasles.names import one_of

_GROUND = FrameState(Vector.zero(), Matrix.identity(), Vector.zero(), Vector.zero())


def rolling(
    name: str,
    kind: str,
    frame: str,
    *,
    on: str | None = None,
    radius: float = 0.0,
    axis: Sequence[float] = (0.0, 1.0, 0.0),
    touching: bool = False,
    where: str = "",
) -> RollingData:
    """Create a constraint for rolling without slipping (Featherstone 2008, Eq 3.29).

    Parameters
    ----------
    name : str
        Name of the constraint.
    kind : {"blade", "wheel", "ball"}
        Kind of contact. For a blade (a knife edge or a skate), the frame's origin does not slip
        along `axis`. A wheel is a thin disc of `radius` about `axis`, centered at the frame's
        origin. A ball is a sphere. The lowest point of a wheel or ball does not slip.
    frame : str
        Frame of the blade, wheel or ball.
    on : str, optional
        Link or frame whose plane z = 0 is the ground. Default: the world.
    radius : float, optional
        Radius of a wheel or ball (m).
    axis : array_like, shape (3,), optional
        Axis of the blade or wheel, in `frame`.
    touching : bool, optional
        Add an equation that keeps the contact point on the plane. The equation is redundant if the
        joints of the tree already keep the point on the plane.
    where : str, optional
        File and line of the constraint, for error messages.

    Returns
    -------
    rolling : RollingData
        The constraint, for `Robot.with_couplings` and `Description`.

    Raises
    ------
    ModelError
        If `kind` is unknown, if `radius` or `axis` is not valid, or if both frames are the same.

    Notes
    -----
    Lagrange multipliers are forces (N). For a blade, the force is along its axis. For a wheel,
    forces are along its heading and its axle, both projected onto the plane. For a ball, forces are
    along x and y of the plane. If `touching` is True, the last multiplier is the normal force.

    Examples
    --------
    >>> import chasles
    >>> chasles.model.rolling("wheel", "wheel", "axle", radius=0.1).kind
    'wheel'
    """
    if kind not in KINDS:
        raise _refused("E-LOOP-321", name, f"kind is {kind!r}", one_of(kind, KINDS), where)
    if kind == "blade" and radius != 0.0:
        raise _refused("E-LOOP-325", name, "a blade has no radius", "omit it", where)
    if kind != "blade" and (fault := value_fault("rolling.radius", radius)):
        raise _refused("E-LOOP-322", name, fault, "give the radius in m", where)
    if len(axis) != 3 or not all(map(is_finite, axis)) or not any(axis):
        problem = f"axis {axis!r:.60} does not define a direction"
        raise _refused("E-LOOP-323", name, problem, "give three numbers, not all zero", where)
    size = math.hypot(*axis)
    unit = Vector(tuple(float(x) / size for x in axis))

    def slip(body: FrameState, *plane: FrameState) -> list[Number]:
        ground = plane[0] if plane else _GROUND
        point, directions = KINDS[kind](body, ground, unit, radius)
        v = body.velocity_at(point) - ground.velocity_at(point)
        height = (point - ground.position).dot(ground.axis(2))
        return [e.dot(v) for e in directions] + [height] * touching

    frames = (frame,) if on is None else (frame, on)
    made = coupling(name, (), slip, frames=frames, where=where)
    same = {each.name: getattr(made, each.name) for each in fields(CouplingData)}
    return RollingData(**same, kind=kind, radius=float(radius), axis=unit, touching=touching)


def _refused(code: str, name: str, problem: str, remedy: str, where: str) -> ModelError:
    return ModelError(code, problem, remedy, part=f"rolling {name!r}", file=where)


Contact = tuple[Vector, list[Vector]]
"""Contact point, and the directions along which it does not slip."""


def _blade(body: FrameState, plane: FrameState, axis: Vector, radius: float) -> Contact:
    return body.position, [body.rotation @ axis]


def _wheel(body: FrameState, plane: FrameState, axis: Vector, radius: float) -> Contact:
    """Return a disc's lowest point, and the directions of its heading and axle in the plane."""
    normal, axle = plane.axis(2), body.rotation @ axis
    lean = axle.dot(normal)
    upright = normal - axle * lean
    scale = 1.0 / sqrt(upright.dot(upright))
    point = body.position - upright * (radius * scale)
    return point, [axle.cross(normal) * scale, (axle - normal * lean) * scale]


def _ball(body: FrameState, plane: FrameState, axis: Vector, radius: float) -> Contact:
    point = body.position - plane.axis(2) * radius
    return point, [plane.axis(0), plane.axis(1)]


KINDS: dict[str, Callable[[FrameState, FrameState, Vector, float], Contact]] = {
    "blade": _blade,
    "wheel": _wheel,
    "ball": _ball,
}
"""Functions that compute the contact point and no-slip directions of each kind of body."""
