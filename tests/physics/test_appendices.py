"""Derivatives of link quantities by joint coordinates.

The source is Balafoutis and Patel (1991), appendices B and C. The library's functions are evaluated
on symbols and differentiated as programs. The book's closed expressions are evaluated in NumPy in
base coordinates, and then rotated to link axes. All joints are revolute, as in the lemmas. Rounding
errors are at most 1e-11.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from book import Carried, Chain, carried, chain, dual, eta_changes
from support import close, direct, state
from test_tensor import random_chain

import chasles
from chasles.algorithms.spatial.dynamics import transmitted_forces
from chasles.algorithms.spatial.kinematics import body_transforms
from chasles.algorithms.tensor.dynamics import augmented
from chasles.algorithms.tensor.dynamics import chain as tensor_chain
from chasles.expr import RULES, Arena, Number, Program, Variable, forward, interpret, jacobian
from chasles.mathematics.linear import Matrix
from chasles.mathematics.tensor import euler_from_inertia

ROUNDING = 1e-11
RATES = ("q", "qd", "qdd")
Partials = tuple[np.ndarray, np.ndarray, np.ndarray]


class Symbols:
    """Symbols for q, qd and qdd of a robot, and values of expressions of them at one state."""

    def __init__(self, robot: chasles.Robot, at: Sequence[np.ndarray]) -> None:
        self.n, self.at = robot.nv, dict(zip(RATES, (x.tolist() for x in at), strict=True))
        self.arena = Arena(RULES)
        self.inputs = [Variable(name, (self.n,)) for name in RATES]
        self.symbols: dict[str, list[Number]] = {
            name: [self.arena.input(name, k) for k in range(self.n)] for name in RATES
        }
        q, qd, qdd = self.symbols.values()
        model = robot.model
        self.split = model.positions(q), model.velocities(qd), model.velocities(qdd)

    def program(self, entries: Sequence[Number]) -> Program:
        outputs = [(Variable("y", (len(entries),)), entries)]
        return Program.from_outputs("f", self.inputs, outputs)

    def rate(self, entries: Sequence[Number]) -> list[Number]:
        """Return the time derivative of expressions, with qd and qdd as the rates of q and qd."""
        along = forward(self.program(entries), ("q", "qd"))
        directions = {"d_q": self.symbols["qd"], "d_qd": self.symbols["qdd"]}
        values = along.replay(self.symbols | directions, self.arena)
        return [values[r] for r in along.results[0]]

    def value(self, entries: Sequence[Number]) -> np.ndarray:
        return np.array(interpret(self.program(entries), self.at)["y"])

    def partials(self, entries: Sequence[Number], *shape: int) -> Partials:
        """Return partial derivatives by q, qd and qdd, each of the given shape with n columns."""
        found = interpret(jacobian(self.program(entries), RATES), self.at)
        q, qd, qdd = (np.array(found[f"d_y_d_{name}"]).reshape(*shape, self.n) for name in RATES)
        return q, qd, qdd


class Case(NamedTuple):
    """A chain at a state, with symbols and with values; R rotates link axes to base axes."""

    robot: chasles.Robot
    at: tuple[np.ndarray, np.ndarray, np.ndarray]
    symbols: Symbols
    c: Chain
    b: Carried
    R: list[np.ndarray]
    zd: np.ndarray
    zdd: np.ndarray

    def own(self, i: int, x: np.ndarray) -> np.ndarray:
        """Return a vector or tensor in the axes of link i, given in base axes."""
        return self.R[i].T @ x if x.ndim == 1 else self.R[i].T @ x @ self.R[i]

    def check(self, i: int, found: Partials, *expected: Callable[[int], np.ndarray]) -> None:
        """Compare partial derivatives of link i with expressions of j; they are zero for j > i.

        The expressions are in base axes.
        """
        for mine, theirs in zip(found, expected, strict=True):
            for j in range(self.robot.nv):
                value = self.own(i, theirs(j))
                close(mine[..., j], value if j <= i else 0.0 * value, ROUNDING, scale=1.0)


@pytest.fixture(scope="module")
def case() -> Case:
    robot = random_chain("RRRR", 31)
    at = state(robot, 32)
    c = chain(robot, *at)
    places = body_transforms(robot.model, robot.model.positions(at[0].tolist()))
    R = [np.array(places[i].E.T.matrix().rows, dtype=float) for i in range(robot.nv)]
    for i in range(robot.nv):
        close(np.array(list(places[i].r)), c.o[i], ROUNDING)
        close(R[i][:, 2], c.z[i], ROUNDING)
    zd, zdd = np.cross(c.w, c.z), np.einsum("nij,nj->ni", c.Omega, c.z)
    return Case(robot, at, Symbols(robot, at), c, carried(c), R, zd, zdd)


def flat(T: Matrix) -> list[Number]:
    return [x for row in T.rows for x in row]


def orientations(case: Case, i: int) -> tuple[list[Number], list[Number], list[Number]]:
    """Return W_i and its first and second time derivatives, computed by differentiation."""
    places = body_transforms(case.robot.model, case.symbols.split[0])
    W = flat(places[i].E.T.matrix())
    Wd = case.symbols.rate(W)
    return W, Wd, case.symbols.rate(Wd)


def links(case: Case) -> range:
    return range(case.robot.nv)


# Appendix B ------------------------------------------------------------------------------------


def test_b_moment_of_a_link_as_a_trace(case: Case) -> None:
    """Equation (B.4) holds with automatic derivatives: z_i . M_oj = tr(dW_j/dq_i J_oj Wdd_j')."""
    c = case.c
    for j in links(case):
        J = np.trace(c.I[j]) / 2.0 * np.eye(3) - c.I[j]
        J = case.own(j, J)
        W, _, Wdd = orientations(case, j)
        dW, _, _ = case.symbols.partials(W, 3, 3)
        second = case.symbols.value(Wdd).reshape(3, 3)
        wd = (c.Omega[j] - c.Omega[j].T) / 2.0
        M = c.I[j] @ [wd[2, 1], wd[0, 2], wd[1, 0]] + np.cross(c.w[j], c.I[j] @ c.w[j])
        for i in range(j + 1):
            close(np.trace(dW[..., i] @ J @ second.T), c.z[i] @ M, ROUNDING, scale=1.0)


def test_lagrange_equation_as_traces(case: Case) -> None:
    """Equation (5.4.1), with explicit gravity and automatic derivatives, is inverse dynamics."""
    c, g, model = case.c, case.robot.gravity, case.robot.model
    places = body_transforms(model, case.symbols.split[0])
    tau = np.zeros(case.robot.nv)
    for j in links(case):
        J, h = case.own(j, np.trace(c.I[j]) / 2.0 * np.eye(3) - c.I[j]), case.own(j, c.h[j])
        W, _, Wdd = orientations(case, j)
        s = list(places[j].r)
        sdd = case.symbols.value(case.symbols.rate(case.symbols.rate(s)))
        second = case.symbols.value(Wdd).reshape(3, 3)
        (dW, _, _), (ds, _, _) = case.symbols.partials(W, 3, 3), case.symbols.partials(s, 3)
        for i in range(j + 1):
            tau[i] += ds[:, i] @ (c.m[j] * sdd + second @ h) + dW[..., i] @ h @ sdd
            tau[i] += np.trace(dW[..., i] @ J @ second.T)
            tau[i] -= g @ (c.m[j] * ds[:, i] + dW[..., i] @ h)
    close(direct(model, "inverse_dynamics", *case.at, method="augmented-tensor"), tau, ROUNDING)


# Appendix C: orientations ----------------------------------------------------------------------


def test_c_preliminaries(case: Case) -> None:
    """Tensor identities (C.1), (C.2), (C.6), (C.7), (C.9) and (C.11) hold.

    (C.1) and (C.2) are w~ = W'Wd and Omega = W'Wdd; (C.6) and (C.7) are for relative orientations.
    """
    c = case.c
    relative = [case.R[0].T @ R for R in case.R]
    for i in links(case):
        W, Wd, Wdd = (case.symbols.value(x).reshape(3, 3) for x in orientations(case, i))
        close(W, case.R[i], ROUNDING)
        w, Omega = case.own(i, dual(c.w[i])), case.own(i, c.Omega[i])
        close(W.T @ Wd, w, ROUNDING)
        close(W.T @ Wdd, Omega, ROUNDING)
        # relative orientation jW_i = W_j' W_i and its rates, with j the first link
        W0, W0d, W0dd = (case.symbols.value(x).reshape(3, 3) for x in orientations(case, 0))
        jWd, jWdd = W0d.T @ W + W0.T @ Wd, W0dd.T @ W + 2.0 * W0d.T @ Wd + W0.T @ Wdd
        w0, Omega0 = case.own(i, dual(c.w[0])), case.own(i, c.Omega[0])
        close(relative[i].T @ jWd, w - w0, ROUNDING, scale=1.0)
        close(relative[i].T @ jWdd, Omega + Omega0.T - 2.0 * w0 @ w, ROUNDING, scale=1.0)
        z = dual(c.z[i])
        close(dual(case.zd[i]), dual(c.w[i]) @ z - z @ dual(c.w[i]), ROUNDING, scale=1.0)
        expanded = -c.Omega[i].T @ z - z @ c.Omega[i] + np.trace(c.Omega[i]) * z
        close(dual(case.zdd[i]), expanded, ROUNDING, scale=1.0)


def test_c_1_one_joint(case: Case) -> None:
    """Lemma C-1: partial derivatives of A_i and its rates by q_i and its rates."""
    z = dual(np.array([0.0, 0.0, 1.0]))
    for i, _, joint, _ in case.robot.model.outward():
        A = flat(joint.transform(case.symbols.split[0][i]).E.T.matrix())
        Ad = case.symbols.rate(A)
        Add = case.symbols.rate(Ad)
        value, first, second = (case.symbols.value(x).reshape(3, 3) for x in (A, Ad, Add))
        by, by_d, by_dd = (case.symbols.partials(x, 3, 3) for x in (A, Ad, Add))
        for same in (by[0], by_d[1], by_dd[2]):
            close(same[..., i], value @ z, ROUNDING)
        close(by_d[0][..., i], first @ z, ROUNDING)
        close(by_dd[0][..., i], second @ z, ROUNDING)
        close(by_dd[1][..., i], 2.0 * by_d[0][..., i], ROUNDING)


def test_c_2_c_3_c_4_orientations(case: Case) -> None:
    """Lemmas C-2 to C-4: partial derivatives of W_i, Wd_i and Wdd_i; C-4 is C-3 times W_i'."""
    c = case.c
    for i in links(case):
        W, Wd, Wdd = (case.symbols.partials(x, 3, 3) for x in orientations(case, i))
        for zero in (W[1], W[2], Wd[2]):
            assert not np.any(zero)
        close(Wd[1], W[0], ROUNDING)
        close(Wdd[2], W[0], ROUNDING)
        close(Wdd[1], 2.0 * Wd[0], ROUNDING, scale=1.0)
        found = tuple(np.einsum("ai,abj->ibj", case.R[i], x[0]) for x in (W, Wd, Wdd))
        w, Omega = dual(c.w[i]), c.Omega[i]
        case.check(
            i,
            found,
            lambda j: dual(c.z[j]),
            lambda j, w=w: dual(case.zd[j]) + dual(c.z[j]) @ w,
            lambda j, w=w, O=Omega: dual(case.zdd[j]) + 2 * dual(case.zd[j]) @ w + dual(c.z[j]) @ O,
        )


# Appendix C: motion ----------------------------------------------------------------------------


def test_c_5_angular_velocity(case: Case) -> None:
    motion = tensor_chain(case.robot.model, *case.symbols.split)
    for i in links(case):
        found = case.symbols.partials(list(motion.Omega[i].w), 3)
        case.check(i, found, lambda j: case.zd[j], lambda j: case.c.z[j], lambda j: np.zeros(3))


def test_c_6_angular_acceleration_tensor(case: Case) -> None:
    motion = tensor_chain(case.robot.model, *case.symbols.split)
    for i in links(case):
        w = dual(case.c.w[i])
        case.check(
            i,
            case.symbols.partials(flat(motion.Omega[i].tensor), 3, 3),
            lambda j, w=w: dual(case.zdd[j]) + 2.0 * dual(case.zd[j]) @ w,
            lambda j, w=w: 2.0 * (dual(case.zd[j]) + dual(case.c.z[j]) @ w),
            lambda j: dual(case.c.z[j]),
        )


def test_c_7_angular_acceleration(case: Case) -> None:
    motion = tensor_chain(case.robot.model, *case.symbols.split)
    for i in links(case):
        w = case.c.w[i]
        case.check(
            i,
            case.symbols.partials(list(motion.Omega[i].wd), 3),
            lambda j, w=w: case.zdd[j] + np.cross(case.zd[j], w),
            lambda j, w=w: 2.0 * case.zd[j] + np.cross(case.c.z[j], w),
            lambda j: case.c.z[j],
        )


def test_c_10_offsets(case: Case) -> None:
    """Lemma C-10: sdd_(i,i+1) = Omega_i s_(i,i+1) between origins of neighboring links."""
    motion = tensor_chain(case.robot.model, *case.symbols.split)
    for i in links(case)[:-1]:
        s = case.c.o[i + 1] - case.c.o[i]
        sd = np.cross(case.c.w[i], s)
        case.check(
            i,
            case.symbols.partials(list(motion.Omega[i] @ motion.X[i + 1].r), 3),
            lambda j, s=s, sd=sd: np.cross(case.zdd[j], s) + 2.0 * np.cross(case.zd[j], sd),
            lambda j, s=s, sd=sd: 2.0 * (np.cross(case.zd[j], s) + np.cross(case.c.z[j], sd)),
            lambda j, s=s: np.cross(case.c.z[j], s),
        )


def test_c_11_origins(case: Case) -> None:
    """Lemma C-11: accelerations sdd_(0,i) of link origins, including gravity."""
    motion, c = tensor_chain(case.robot.model, *case.symbols.split), case.c

    for i in links(case):

        def by_q(j: int, i: int = i) -> np.ndarray:
            s, sd = c.o[i] - c.o[j], c.sd[i] - c.sd[j]
            turned = np.cross(case.zdd[j], s) + 2.0 * np.cross(case.zd[j], sd)
            return turned - np.cross(c.z[j], c.sdd[j])

        def by_qd(j: int, i: int = i) -> np.ndarray:
            s, sd = c.o[i] - c.o[j], c.sd[i] - c.sd[j]
            return 2.0 * (np.cross(case.zd[j], s) + np.cross(c.z[j], sd))

        found = case.symbols.partials(list(motion.sdd[i]), 3)
        case.check(i, found, by_q, by_qd, lambda j, i=i: np.cross(c.z[j], c.o[i] - c.o[j]))


# Appendix C: moments ---------------------------------------------------------------------------


def test_c_8_moments_of_augmented_links(case: Case) -> None:
    """Lemma C-8: mu_i = dual(Omega Khat - (Omega Khat)')."""
    motion = tensor_chain(case.robot.model, *case.symbols.split)
    bodies = augmented(case.robot.model, motion.X)
    for i in links(case):
        inertia = np.array(bodies[i].I.matrix().rows, dtype=float)
        K = case.R[i] @ inertia @ case.R[i].T
        Lhat = dual(case.c.w[i]) @ (np.trace(K) / 2.0 * np.eye(3) - K)
        mu = motion.Omega[i].moment(euler_from_inertia(bodies[i].I))
        case.check(
            i,
            case.symbols.partials(list(mu), 3),
            lambda j, K=K, L=Lhat: K @ case.zdd[j] - 2.0 * L @ case.zd[j],
            lambda j, K=K, L=Lhat: 2.0 * (K @ case.zd[j] - L @ case.c.z[j]),
            lambda j, K=K: K @ case.c.z[j],
        )


def test_c_9_first_moments(case: Case) -> None:
    """Lemma C-9: Udd_i = f_i - mbar_i sdd_i, which also depends on joints beyond i."""
    motion, (b, z) = tensor_chain(case.robot.model, *case.symbols.split), (case.b, case.c.z)
    forces, _ = transmitted_forces(case.robot.model, *case.symbols.split)
    bodies = augmented(case.robot.model, motion.X)
    for i in links(case):
        Udd = forces[i].force - motion.sdd[i] * bodies[i].m
        by_q, by_qd, by_qdd = case.symbols.partials(list(Udd), 3)
        for j in links(case):
            k = max(i, j)
            expected = np.cross(case.zdd[j], b.U[k]) + 2.0 * np.cross(case.zd[j], b.Ud[k])
            expected += np.cross(z[j], b.Udd[j]) * (j > i)
            close(by_q[:, j], case.own(i, expected), ROUNDING, scale=1.0)
            expected = 2.0 * (np.cross(case.zd[j], b.U[k]) + np.cross(z[j], b.Ud[k]))
            close(by_qd[:, j], case.own(i, expected), ROUNDING, scale=1.0)
            close(by_qdd[:, j], case.own(i, np.cross(z[j], b.U[k])), ROUNDING, scale=1.0)


def test_c_12_transmitted_moments(case: Case) -> None:
    """Lemma C-12: all components of eta_i; along z_i they are the sensitivities of section 7.3."""
    forces, _ = transmitted_forces(case.robot.model, *case.symbols.split)
    for i in links(case):
        found = case.symbols.partials(list(forces[i].moment), 3)[::-1]
        for j in links(case):
            for mine, theirs in zip(found, eta_changes(case.c, case.b, i, j), strict=True):
                close(mine[:, j], case.own(i, theirs), ROUNDING, scale=1.0)
