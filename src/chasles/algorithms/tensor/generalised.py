"""Every link with all that it carries: generalised links, and the rates of their moments."""

from collections.abc import Mapping
from typing import NamedTuple

from chasles.algorithms.tensor.chain import Chain
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.spatial import RigidInertia, shift_of_inertia
from chasles.mathematics.tensor import GeneralisedLink, dual, euler_from_inertia
from chasles.model.model import WORLD, Model
from chasles.model.spaces import Velocity


class Generalised(NamedTuple):
    """Of every link, in its own frame: with all that it carries, about its origin.

    sd: the rate of the link's place in its parent, along the parent's axes.
    """

    links: dict[int, GeneralisedLink]
    sd: dict[int, Vector]


def generalised(
    model: Model, moving: Chain, links: Mapping[int, RigidInertia], qd: Velocity
) -> Generalised:
    """Step 1 of algorithm 7.1 on augmented links; where these branch, what they carry adds up."""
    X, S, Omega = moving.X, moving.S, moving.Omega
    U, E = {i: link.h for i, link in links.items()}, {i: link.I for i, link in links.items()}
    Ud, L, sd = {WORLD: Vector.zero()}, {WORLD: Matrix.zero()}, {}
    for i, *_ in model.outward():
        Ud[i] = Omega[i].w.cross(U[i])  # (7.3.18b)
        L[i] = dual(Omega[i].w) @ euler_from_inertia(E[i]).matrix()  # (7.3.18d)
    for i, p, *_ in model.inward():
        A, s, slide = X[i].E.T, X[i].r, (S[i] @ qd[i]).linear
        sd[i] = Omega[p].w.cross(s) + A @ slide  # (sd of 7.3.18d)
        Up = A @ U[i]  # (7.3.18a)
        U[p] += Up  # (7.3.18a)
        Udp = A @ (Ud[i] + slide * links[i].m)  # (7.3.18b)
        Ud[p] += Udp  # (7.3.18b)
        E[p] += shift_of_inertia(s, Up, Up) + A @ E[i]  # (7.3.18c)
        L[p] += dual(s) @ dual(Udp) + dual(Up) @ dual(sd[i]) + A @ L[i]  # (7.3.18d)
    carried = {i: GeneralisedLink(links[i].m, U[i], Ud[i], E[i], L[i]) for i in X}
    return Generalised(carried, sd)
