"""The equation of motion in closed form, by Lagrange's equations with 4x4 matrices."""

from collections import defaultdict
from itertools import combinations_with_replacement

from chasles.algorithms.homogeneous.chain import screws
from chasles.algorithms.tensor.freedoms import bends, by_joint, efforts, freedoms, rotors
from chasles.expr import Number
from chasles.mathematics import homogeneous
from chasles.mathematics.linear import Matrix, Vector
from chasles.mathematics.tensor import double_dot
from chasles.model.model import WORLD, Model
from chasles.model.spaces import (
    ABSENT,
    Effort,
    Freedom,
    FreedomMatrix,
    Position,
    Symbols,
    Velocity,
    Wrenches,
)


def uicker_kahn(
    model: Model, q: Position, qd: Velocity, qdd: Velocity, f_ext: Wrenches = ABSENT
) -> Effort:
    """Uicker's and Kahn's sums (Balafoutis and Patel 1991, Eq 5.2.7-8), of order n^4."""
    return efforts(model, q, qd, qdd, f_ext, closed_form_uicker_kahn(model, q))


def closed_form_uicker_kahn(model: Model, q: Position) -> tuple[FreedomMatrix, Symbols, Effort]:
    """D_ab = sum of tr(W_a J W_b'), C_bc(a) = sum of tr(W_a J W_bc'), G_a = -sum of g . W_a c.

    The sums are over all bodies; J is a body's pseudo-inertia, c its last column. W takes
    homogeneous coordinates of the body to the base frame, W_a is its derivative by a freedom, W_bc
    the second one. Where velocities are not rates of coordinates, W_bc is the symmetric part of
    what makes the acceleration Wdd = sum of W_b qdd_b + sum of W_bc qd_b qd_c.
    """
    own, g, W = freedoms(model), Vector((*model.gravity_vector, 0.0)), {WORLD: Matrix.identity(4)}
    first: dict[int, dict[Freedom, Matrix]] = {WORLD: {}}
    second: dict[int, dict[tuple[Freedom, Freedom], Matrix]] = {WORLD: {}}
    D, G = rotors(model), defaultdict[Freedom, Number](float)
    C = defaultdict[tuple[Freedom, Freedom, Freedom], Number](float)
    for j, p, joint, I in model.outward():
        A = homogeneous.Position.of(joint.transform(q[j])).matrix()  # (2.3.2)
        L, J = [l.matrix() for l in screws(joint, q[j])], homogeneous.Inertia.of(I)
        W[j], carried = W[p] @ A, {a: Wa @ A for a, Wa in first[p].items()}  # (dW of 5.2.7)
        first[j] = carried | {a: W[j] @ L[a.k] for a in own[j]}  # (dW of 5.2.7)
        second[j] = {both: Wab @ A for both, Wab in second[p].items()}  # (ddW of 5.2.7)
        second[j] |= {
            (a, b): U @ L[b.k] for a, U in carried.items() for b in own[j]
        }  # (ddW of 5.2.7)
        for a, b in combinations_with_replacement(own[j], 2):
            bend = homogeneous.Velocity.of(bends(joint, q[j])[a.k][b.k]).matrix()
            twice = L[a.k] @ L[b.k] + L[b.k] @ L[a.k]
            second[j][a, b] = W[j] @ (twice * 0.5 + bend)  # (ddW of 5.2.7)
        for a, Wa in first[j].items():
            WaJ = Wa @ J.matrix()  # (dW J of 5.2.7)
            for b, Wb in first[j].items():
                D[a, b] += double_dot(WaJ, Wb.T)  # (D of 5.2.7)
            for (b, c), Wbc in second[j].items():
                C[a, b, c] += double_dot(WaJ, Wbc.T)  # (C of 5.2.7)
            G[a] -= g.dot(Wa @ Vector((*J.h, J.m)))  # (G of 5.2.7)
    symmetric = {key: symbol for (a, b, c), symbol in C.items() for key in ((a, b, c), (a, c, b))}
    return D, symmetric, by_joint(model, G)
