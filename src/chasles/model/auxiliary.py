"""Auxiliary inertias for algorithms that invert the inertia of every link."""

from chasles.expr import Number, Scalar
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model.model import WORLD, Model
from chasles.model.validate import is_solid


def auxiliary_inertias(model: Model) -> dict[int, RigidInertia]:
    """Return inertias to add to massless links, point masses and thin rods, by link index.

    With its auxiliary inertia, the inertia of each link is invertible. The size of an auxiliary
    inertia affects only rounding errors: its mass and its moments are sums over the link and all
    links that the link carries, or over the whole robot if such a sum is zero. A link with mass
    gets no additional mass. Symbolic inertias are assumed to be invertible.
    """
    bodies = list(enumerate(model.bodies))
    sizes = {WORLD: (0.0, 0.0)} | {i: _size(body.inertia) for i, body in bodies}
    for i, body in reversed(bodies):
        m, j = sizes[body.parent]
        sizes[body.parent] = m + sizes[i][0], j + sizes[i][1]
    found = {}
    for i, body in bodies:
        I = body.inertia
        if any(isinstance(x, Scalar) for x in (I.m, *I.h, *I.I)) or is_solid(I):
            continue
        m, j = (own or all_ or 1.0 for own, all_ in zip(sizes[i], sizes[WORLD], strict=True))
        moments = Symmetric(j, j, j, 0.0, 0.0, 0.0)
        found[i] = RigidInertia(0.0 if I.m else m, Vector.zero(), moments)
    return found


def _size(I: RigidInertia) -> tuple[float, float]:
    """Return the mass and the sum of the moments of inertia, without symbols."""
    xx, yy, zz, *_ = I.I
    return _number(I.m), _number(xx) + _number(yy) + _number(zz)


def _number(x: Number) -> float:
    """Return a number, or 0 for a symbol."""
    return 0.0 if isinstance(x, Scalar) else float(x)
