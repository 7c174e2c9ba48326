"""The freedoms of joints one by one, for closed forms that have a number for each few of them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement

from chasles.algorithms.tensor.external import external_efforts
from chasles.expr import Number
from chasles.mathematics.linear import Vector
from chasles.mathematics.spatial import Motion
from chasles.model.joints import Joint
from chasles.model.model import Model
from chasles.model.spaces import (
    Effort,
    Freedom,
    FreedomMatrix,
    Position,
    Symbols,
    Velocity,
    Wrenches,
)


def freedoms(model: Model) -> dict[int, tuple[Freedom, ...]]:
    """Those of every joint."""
    return {i: tuple(Freedom(i, k) for k in range(joint.nv)) for i, _, joint, _ in model.outward()}


def paths(model: Model) -> Iterator[tuple[int, list[Freedom]]]:
    """Every body, and all freedoms that move it: the outer ones first."""
    own = freedoms(model)
    for i in own:
        yield i, [a for j in model.support(i) for a in own[j]]


def pairs(model: Model) -> Iterator[tuple[Freedom, Freedom]]:
    """Freedoms b and c that move one body both, each pair once; c belongs to the outer joint."""
    for i, path in paths(model):
        yield from ((b, c) for c, b in combinations_with_replacement(path, 2) if c.i == i)


def triples(model: Model) -> Iterator[tuple[Freedom, Freedom, Freedom]]:
    """The same with any a that moves the body too."""
    for i, path in paths(model):
        for c, b in combinations_with_replacement(path, 2):
            yield from ((a, b, c) for a in path if i in (a.i, c.i))


def bends(joint: Joint, q: Vector) -> list[list[Motion]]:
    """Half of dS_l/dq_k + dS_k/dq_l at [k][l]: zero for all joints with a constant S."""
    rest, n = Vector.zero(joint.nv), range(joint.nv)
    slopes = [dS.columns for dS in joint.slopes(q, rest, rest).subspace]
    return [[(slopes[k][l] + slopes[l][k]) * 0.5 for l in n] for k in n]


def rotors(model: Model) -> defaultdict[tuple[Freedom, Freedom], Number]:
    """What armature adds to D; zero elsewhere."""
    D = defaultdict[tuple[Freedom, Freedom], Number](float)
    for i, own in freedoms(model).items():
        D |= {(a, a): model.bodies[i].joint.armature[a.k] for a in own}
    return D


def by_joint(model: Model, numbers: Mapping[Freedom, Number]) -> dict[int, Vector]:
    """A number for each freedom, as a vector for each joint."""
    return {i: Vector(tuple(numbers[a] for a in own)) for i, own in freedoms(model).items()}


def efforts(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    f_ext: Wrenches,
    form: tuple[FreedomMatrix, Symbols, Effort],
) -> dict[int, Vector]:
    """tau_a = sum of D_ab qdd_b + sum of C_bc(a) qd_b qd_c + G_a (5.2.17), less external forces."""
    D, C, G = form
    total = defaultdict[Freedom, Number](float)
    for (a, b), d in D.items():
        total[a] += d * qdd[b.i][b.k]  # (D of 5.2.17)
    for (a, b, c), symbol in C.items():
        total[a] += symbol * (qd[b.i][b.k] * qd[c.i][c.k])  # (C of 5.2.17)
    tau, external = by_joint(model, total), external_efforts(model, q, f_ext)
    return {
        i: tau[i] + G[i] + joint.resistance(qd[i]) - external[i]
        for i, _, joint, _ in model.outward()
    }  # (G of 5.2.17)
