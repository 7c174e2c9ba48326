"""Forward dynamics by assembly, with loops and couplings (Featherstone 2008, sections 7.4, 7.5).

The assembled tree has a hinge for every joint, including mimic joints, and every body has an
invertible inertia. Linear equations with multipliers restore the mechanism: each equation applies
forces, and the assembly computes the accelerations due to these forces.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from chasles.algorithms.closed_loops.dynamics import closing, health
from chasles.algorithms.historical.assembly import (
    Hinge,
    Loads,
    Respond,
    Tree,
    from_tips,
    in_halves,
    of_inertias,
    of_inverses,
)
from chasles.expr import Number
from chasles.mathematics.linear import Vector, factor_ltdl, solve_ltdl
from chasles.mathematics.spatial import Force, Forces, Motion
from chasles.model.auxiliary import auxiliary_inertias
from chasles.model.joints.contract import LOADS, Joint
from chasles.model.model import WORLD, Model
from chasles.model.spaces import (
    ABSENT,
    Effort,
    Health,
    Multipliers,
    Position,
    Velocity,
    Wrenches,
    unstack,
)

Assembly = Callable[[Tree], Respond]

# The tree ----------------------------------------------------------------------------------------


def opened(model: Model, q: Position) -> Tree:
    """Return the tree to assemble: all joints are independent, and all inertias invertible."""
    added = auxiliary_inertias(model)
    inertias, hinges = {}, {}
    for i, p, joint, I in model.bare().outward():
        inertias[i] = I + added[i] if i in added else I
        hinges[i] = hinge(i, p, joint, q[i], driven=model.bodies[i].drive is not None)
    return Tree(inertias, hinges)


def hinge(i: int, p: int, joint: Joint, q: Vector, *, driven: bool) -> Hinge:
    """Return the hinge of a joint.

    If `driven` is True, the acceleration of the joint is prescribed.
    """
    X, active = joint.transform(q), Forces(()) if driven else joint.active(q)
    if driven:
        return Hinge(i, p, X, Forces(LOADS), active, ())
    if any(joint.armature) or type(joint).constraint is Joint.constraint:
        free = zip(joint.subspace(q).columns, joint.armature, strict=True)
        return Hinge(i, p, X, Forces(LOADS), active, tuple(free))
    return Hinge(i, p, X, joint.constraint(q), active, ())


def loads(
    model: Model, tree: Tree, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches
) -> Loads:
    """Return the loads on the tree due to its velocities, joint torques and external forces.

    Resistances of mimic joints and rotors act on the joints that move them.
    """
    v, f, c, driven = {WORLD: Motion.zero()}, {}, {}, model.undriven(2)
    for i, p, joint, I in model.bare().outward():
        S = joint.subspace(q[i])
        vJ = S @ qd[i]
        v[i] = tree.hinges[i].X @ v[p] + vJ
        f[i] = f_ext[i] - v[i].cross(I @ v[i])
        c[i] = joint.bias(q[i], qd[i]) + v[i].cross(vJ) + S @ driven[i]
    losses = model.efforts({i: joint.resistance(qd[i]) for i, _, joint, _ in model.outward()})
    net = {i: tau[i] - losses[i] for i in model.movers}
    return Loads(tree.pushed(net, f), c, -model.gravity)


# Equations ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Equation:
    """Linear equation: sum of tau_i qdd_i + sum of f_i a_i + compliance lam = k.

    qdd_i is the acceleration of hinge i, and a_i that of body i. The multiplier lam applies the
    generalized forces tau_i lam at hinges and the forces f_i lam to bodies.
    """

    tau: Mapping[int, Vector] = field(default_factory=dict)
    f: Mapping[int, Force] = field(default_factory=dict)
    k: Number = 0.0
    compliance: Number = 0.0

    def value(self, a: Mapping[int, Motion], qdd: Mapping[int, Vector]) -> Number:
        """Return the sum of tau_i qdd_i and f_i a_i."""
        total = sum((tau.dot(qdd[i]) for i, tau in self.tau.items()), 0.0)
        return sum((force.dot(a[i]) for i, force in self.f.items()), total)


def auxiliary_forces(model: Model) -> Iterator[Equation]:
    """Yield an equation for each entry of the force J a that accelerates an auxiliary inertia J.

    The multiplier of the equation applies the entry to the body, so that the auxiliary inertia has
    no effect.
    """
    for i, J in auxiliary_inertias(model).items():
        sizes = (J.I.xx, J.I.yy, J.I.zz, J.m, J.m, J.m)
        for unit, size in zip(LOADS, sizes, strict=True):
            if size:
                yield Equation(f={i: unit}, compliance=-1.0 / size)


def rotor_torques(model: Model) -> Iterator[Equation]:
    """Yield an equation for the torque lam that accelerates each rotor: -lam / I = g qdd + d.

    I is the armature of the rotor, and its acceleration g qdd + d depends on the gear ratios g.
    """
    drift = model.undriven(2)
    for i, rotor in enumerate(model.rotors, start=len(model.bodies)):
        (I,) = rotor.joint.armature
        yield Equation(model.efforts({i: Vector.of(1.0)}), k=-drift[i][0], compliance=1.0 / I)


def mimic_torques(model: Model) -> Iterator[Equation]:
    """Yield an equation for each mimic joint, which accelerates in proportion to its leader."""
    for i, body in enumerate(model.bodies):
        if body.follow:
            leader, ratio, _ = body.follow
            yield Equation({i: Vector.of(1.0), leader: Vector.of(-ratio)})


def solved(
    model: Model,
    q: Position,
    qd: Velocity,
    tau: Effort,
    f_ext: Wrenches,
    assembly: Assembly,
    loops: Sequence[Equation] = (),
) -> tuple[Velocity, Vector, list[Number]]:
    """Return qdd, the multipliers of the loop equations, and their margins (see `health`).

    The multipliers of all equations solve A lam = k - K qdd, where qdd are the accelerations of the
    tree. A = K H^-1 K', plus the compliances on the diagonal (Featherstone 2008, Eq 8.37-8.41).
    H^-1 K' are the accelerations due to unit multipliers. Factorization starts at the last
    equation. In the order used here, no pivot vanishes if the loop equations are
    independent and the mass matrix of the mechanism is regular.
    """
    auxiliary = [*auxiliary_forces(model)]
    equations = [*auxiliary, *loops, *rotor_torques(model), *mimic_torques(model)]
    tree = opened(model, q)
    respond, still = assembly(tree), dict.fromkeys(tree.hinges, Motion.zero())

    def moved(given: Loads) -> tuple[dict[int, Motion], dict[int, Vector]]:
        a = respond(given)
        return a, tree.rates(a, given.c)

    a, qdd = moved(loads(model, tree, q, qd, tau, f_ext))
    unit = [moved(Loads(tree.pushed(each.tau, each.f), still, Motion.zero())) for each in equations]
    A = [[row.value(*column) for column in unit[: r + 1]] for r, row in enumerate(equations)]
    for r, row in enumerate(equations):
        A[r][r] = A[r][r] + row.compliance
    L, D = factor_ltdl(A)
    lam = solve_ltdl(L, D, Vector(tuple(row.k - row.value(a, qdd) for row in equations)))
    total = {i: qdd[i] for i in model.movers}
    for (_, rates), size in zip(unit, lam, strict=True):
        total = {i: rate + rates[i] * size for i, rate in total.items()}
    own = range(len(auxiliary), len(auxiliary) + len(loops))
    diagonal = [sum((L[s][r] * L[s][r] * D[s] for s in own if s >= r), 0.0) for r in own]
    margins = [D[r] / d for r, d in zip(own, diagonal, strict=True)]
    return total, Vector(tuple(lam[r] for r in own)), margins


def closed(
    model: Model,
    q: Position,
    qd: Velocity,
    tau: Effort,
    f_ext: Wrenches,
    assembly: Assembly,
    stabilization: float,
) -> tuple[Velocity, Multipliers, Health]:
    """Return qdd, the multipliers lam and the health of a mechanism with loops and couplings.

    Loops and couplings have the equations K qdd = k and the constraint forces K' lam.
    """
    K, k, stray = closing(model, q, qd, stabilization)
    rows = [unstack(model, Vector(row), model.in_tree_order) for row in K.rows]
    loops = [Equation(tau=row, k=e) for row, e in zip(rows, k, strict=True)]
    qdd, lam, margins = solved(model, q, qd, tau, f_ext, assembly, loops)
    return qdd, lam, health(model, q, margins, stray)


# Methods -----------------------------------------------------------------------------------------


def by_inverses(tree: Tree) -> Respond:
    """Assemble inverse inertias from the tips to the root."""
    return of_inverses(tree, from_tips(tree))


def by_halves(tree: Tree) -> Respond:
    """Assemble pieces of about equal size."""
    return of_inverses(tree, in_halves(tree))


def forward_dynamics_assembly_inertia(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Compute qdd by assembling articulated inertias (Featherstone 2008, table 7.2, variant 2)."""
    return solved(model, q, qd, tau, f_ext, of_inertias)[0]


def forward_dynamics_assembly_inverse(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Compute qdd by assembling inverse inertias (Featherstone 2008, table 7.2, variant 1)."""
    return solved(model, q, qd, tau, f_ext, by_inverses)[0]


def forward_dynamics_divide_and_conquer(
    model: Model, q: Position, qd: Velocity, tau: Effort, f_ext: Wrenches = ABSENT
) -> Velocity:
    """Compute qdd by multi-handle assembly (Featherstone 2008, section 7.5).

    Velocities are first computed by a sequential recursion. After that, the longest sequence of
    dependent operations grows with the logarithm of the chain length.
    """
    return solved(model, q, qd, tau, f_ext, by_halves)[0]


def constrained_dynamics_assembly_inertia(
    model: Model,
    q: Position,
    qd: Velocity,
    tau: Effort,
    f_ext: Wrenches = ABSENT,
    *,
    stabilization: float = 0.0,
) -> tuple[Velocity, Multipliers, Health]:
    """Assemble articulated inertias of the tree, then close the loops."""
    return closed(model, q, qd, tau, f_ext, of_inertias, stabilization)


def constrained_dynamics_assembly_inverse(
    model: Model,
    q: Position,
    qd: Velocity,
    tau: Effort,
    f_ext: Wrenches = ABSENT,
    *,
    stabilization: float = 0.0,
) -> tuple[Velocity, Multipliers, Health]:
    """Assemble inverse inertias of the tree from the tips to the root, then close the loops."""
    return closed(model, q, qd, tau, f_ext, by_inverses, stabilization)


def constrained_dynamics_divide_and_conquer(
    model: Model,
    q: Position,
    qd: Velocity,
    tau: Effort,
    f_ext: Wrenches = ABSENT,
    *,
    stabilization: float = 0.0,
) -> tuple[Velocity, Multipliers, Health]:
    """Assemble the tree from pieces of about equal size, then close the loops."""
    return closed(model, q, qd, tau, f_ext, by_halves, stabilization)
