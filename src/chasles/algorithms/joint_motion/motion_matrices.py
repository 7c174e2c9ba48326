"""The matrices that take a point to its velocity, acceleration, jerk, and so on."""

from collections.abc import Sequence
from operator import matmul

from chasles.mathematics.homogeneous import Block, Position, Velocity
from chasles.mathematics.leibniz import leibniz


def motion_matrices(Omega: Sequence[Velocity]) -> list[Block]:
    """Omega, A_H, J_H, ...: the derivatives of a position M, each times M^-1 (Mitra, 2.6 and 2.7).

    From Omega and its derivatives. Mdot = Omega M, so Mddot M^-1 = Omegadot + Omega Omega, and so
    on by Leibniz' rule.
    """
    found: list[Block] = []
    for k in range(len(Omega)):
        found.append(leibniz(matmul, Omega, [Position.identity(), *found], k))
    return found
