"""Forces and accelerations of a mixed problem, through a part of the mass matrix."""

from dataclasses import replace

from chasles.algorithms.spatial.mass_matrix import mass_matrix
from chasles.algorithms.spatial.newton_euler_vector import newton_euler_vector
from chasles.mathematics.linear import Vector, factor_ltdl, solve_ltdl
from chasles.model.model import Model
from chasles.model.spaces import (
    ABSENT,
    Mixed,
    Position,
    Velocity,
    Wrenches,
    assemble,
    stack,
    unstack,
)


def hybrid_dynamics_mass_matrix(
    model: Model,
    q: Position,
    qd: Velocity,
    given: Mixed,
    f_ext: Wrenches = ABSENT,
    *,
    known: frozenset[int] = frozenset(),
) -> Mixed:
    """Solve H11 qdd1 = tau1 - C'1, then tau2 = C'2 + H21 qdd1 (Featherstone 2008, Eq 9.1 to 9.4).

    C' are the forces at the known accelerations and no others. Of M only H11 is used, so only
    that gets into the program: the guards of table 9.1 are what tracing does by itself, and its
    sparse factors fill nothing in, which is what the reduced parent array is for.
    """
    free = [i for i in model.in_tree_order if i not in known]
    still = {i: Vector.zero(model.bodies[i].joint.nv) for i in model.movers}
    chosen = still | {i: given[i] for i in known}
    C = model.efforts(newton_euler_vector(model, q, qd, model.followed(chosen, 2), f_ext))
    M = {
        (i, j): block
        for (i, j), block in mass_matrix(model, q).items()
        if model.owners((i, j)) <= set(free)
    }
    forces = stack(given, free) - stack(C, free)
    qdd = unstack(model, solve_ltdl(*factor_ltdl(assemble(model, M, free)), forces), free)
    moved = model.followed(still | qdd)
    weightless = replace(model, gravity_vector=Vector.zero())
    added = model.efforts(newton_euler_vector(weightless, q, model.at_rest(), moved))
    return qdd | {i: C[i] + added[i] for i in known}
