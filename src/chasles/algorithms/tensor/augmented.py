"""Augmented links: every body with the mass of all it carries (Balafoutis and Patel 5.3.2)."""

from collections.abc import Mapping

from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.mathematics.tensor import point_mass
from chasles.model.model import WORLD, Model


def augmented(model: Model, X: Mapping[int, Transform]) -> dict[int, RigidInertia]:
    """mbar, u and K of every body: its own moments and those of a point mass at each joint beyond.

    The point's mass is that of all bodies beyond the joint, its place the origin of the frame that
    the joint carries (5.3.9-12). X are the transforms of the joints. Where those only turn, nothing
    here depends on the configuration, and a trace has numbers.
    """
    I = {i: inertia for i, _, _, inertia in model.outward()} | {WORLD: RigidInertia.zero()}
    for i, p, *_ in model.inward():
        I[p] += point_mass(I[i].m, X[i].r)
    return I
