"""Equation of motion tau = M qdd + h: factors of M, Coriolis and gravity forces, energy and power.

Rounding errors are at most 1e-11: a few hundred operations of 1e-16, times the condition number of
M where a system is solved. Errors of time differences are at most 1e-7 (see `Machine.rate`).
"""

import numpy as np
import pytest
from machines import TREES, Machine, dot, matvec, steps
from support import CUBIC, close, direct, tree, ways

from chasles.algorithms import FUNCTIONS
from chasles.functions.tracing import signature
from chasles.model import JOINTS
from chasles.model.passes import Choice, by_moments, by_products, equivalent

ROUNDING = 1e-11
DIFFERENCE = 1e-7


def test_inverse_dynamics_undoes_forward_dynamics(machine: Machine) -> None:
    q, qd, tau = machine.q, machine.qd, machine.qdd
    qdd = machine.run("forward_dynamics", q, qd, tau)
    close(machine.run("inverse_dynamics", q, qd, qdd), tau, 1e-9)


def test_equation_of_motion(machine: Machine) -> None:
    q, qd, qdd = machine.q, machine.qd, machine.qdd
    M, h = machine.run("mass_matrix", q), machine.run("bias_forces", q, qd)
    close(machine.run("inverse_dynamics", q, qd, qdd), matvec(M, qdd) + h, ROUNDING)


SEVERAL = [f for f, rows in FUNCTIONS.items() if len({m.name for m in rows} - set(CUBIC)) > 1]


FORMALISMS = ("spatial", "homogeneous", "lagrange", "augmented-tensor", "joint-motion")
"""One or two methods of each formalism."""


@pytest.mark.parametrize("function", SEVERAL)
def test_methods_agree(light: Machine, function: str) -> None:
    """All methods of each function agree, on one backend."""
    agree(light, function, [way for way in ways(light.robot, function) if way not in CUBIC])


@pytest.mark.parametrize("function", SEVERAL)
def test_formalisms_agree(machine: Machine, function: str) -> None:
    """One or two methods of each formalism agree on several backends."""
    able = ways(machine.robot, function)
    agree(machine, function, [way for way in FORMALISMS if way in able and way not in CUBIC])


def agree(machine: Machine, function: str, methods: list[str]) -> None:
    """Assert that methods agree with the fastest one."""
    sign = signature(FUNCTIONS[function][0].algorithm)
    options = {"frame": machine.robot.frames[-1]} if "frame" in sign.options else {}
    state = (machine.q, machine.qd, machine.qdd)[: len(sign.inputs.keys() - {"f_ext"})]
    fastest = machine.run(function, *state, **options)
    for way in methods:
        close(machine.run(function, *state, method=way, **options), fastest, ROUNDING)


@pytest.mark.parametrize("choice", [by_moments, by_products], ids=lambda f: f.__name__)
def test_regrouped_inertias_move_the_same(compiled: Machine, choice: Choice) -> None:
    """`equivalent(model)` has the same equation of motion as the model."""
    model = compiled.robot.model.frictionless()
    twin = equivalent(model, choice)
    assert any(a.inertia != b.inertia for a, b in zip(model.bodies, twin.bodies, strict=True))
    q, qd, qdd = (a[0] for a in (compiled.q, compiled.qd, compiled.qdd))
    for function, arrays in (
        ("inverse_dynamics", (q, qd, qdd)),
        ("forward_dynamics", (q, qd, qdd)),
        ("mass_matrix", (q,)),
        ("gravity_forces", (q,)),
    ):
        close(direct(twin, function, *arrays), direct(model, function, *arrays), 1e-9)


# The mass matrix -------------------------------------------------------------------------------


def test_mass_matrix_is_symmetric_and_positive(machine: Machine) -> None:
    M = machine.run("mass_matrix", machine.q)
    close(M, np.swapaxes(M, -1, -2), 1e-15)  # one joint's block may round asymmetrically
    assert np.all(np.linalg.eigvalsh(M) > 0.0)


def test_inverse_of_the_mass_matrix(machine: Machine) -> None:
    M, W = machine.run("mass_matrix", machine.q), machine.run("mass_matrix_inverse", machine.q)
    close(M @ W, np.broadcast_to(np.eye(machine.nv), M.shape), 1e-9)


def test_factors_of_the_mass_matrix(machine: Machine) -> None:
    M = machine.run("mass_matrix", machine.q)
    L, D = machine.run("ltdl_factors", machine.q)
    close(np.swapaxes(L, -1, -2) @ (D[..., :, None] * L), M, ROUNDING)
    assert np.all(np.diagonal(L, axis1=-2, axis2=-1) == 1.0)
    assert np.all(D > 0.0)
    L = machine.run("ltl_factor", machine.q)
    close(np.swapaxes(L, -1, -2) @ L, M, ROUNDING)


def test_branches_do_not_couple(machine: Machine) -> None:
    """Entries of M and its factors between different branches are exactly zero."""
    model = machine.robot.model
    apart = np.ones((machine.nv, machine.nv), dtype=bool)
    for i, here in model.velocity_slices.items():
        for j in model.support(i):
            there = model.velocity_slices[j]
            apart[here, there] = apart[there, here] = False
    assert np.any(apart)
    L, _ = machine.run("ltdl_factors", machine.q)
    for matrix in (machine.run("mass_matrix", machine.q), L, machine.run("ltl_factor", machine.q)):
        assert np.all(matrix[..., apart] == 0.0)


# Coriolis, gravity and dissipative forces ------------------------------------------------------


def test_coriolis_matrix(machine: Machine) -> None:
    """C qd = h - g and dM/dt = C + C', so dM/dt - 2C is skew-symmetric."""
    q, qd = machine.q, machine.qd
    C = machine.run("coriolis_matrix", q, qd)
    h, g = machine.run("bias_forces", q, qd), machine.run("gravity_forces", q)
    close(matvec(C, qd), h - g, 1e-10)
    rate = machine.rate(lambda q, qd: machine.run("mass_matrix", q))
    close(C + np.swapaxes(C, -1, -2), rate, DIFFERENCE)


def test_gravity_is_the_gradient_of_potential_energy(machine: Machine) -> None:
    t = 1e-4
    columns = []
    for step in steps(machine.nv, t):
        ahead, behind = (
            machine.run("potential_energy", machine.run("integrate", machine.q, s * step))
            for s in (1.0, -1.0)
        )
        columns.append((ahead - behind) / (2.0 * t))
    close(machine.run("gravity_forces", machine.q), np.stack(columns, axis=-1), DIFFERENCE)


def test_bias_at_rest_is_gravity(machine: Machine) -> None:
    rest = np.zeros_like(machine.qd)
    g = machine.run("gravity_forces", machine.q)
    close(machine.run("bias_forces", machine.q, rest), g, ROUNDING)


def test_dissipation_takes_power(machine: Machine) -> None:
    """Damping and friction resist with d qd + f sign(qd) and always dissipate power."""
    q, qd, qdd = machine.q, machine.qd, machine.qdd
    tau = machine.run("inverse_dynamics", q, qd, qdd)
    resisted = machine.run("inverse_dynamics", q, qd, qdd, dissipation=True)
    damping, friction = np.zeros((2, machine.nv))
    for name in machine.robot.joints:
        data, where = machine.robot.joint(name), machine.robot.velocity_slice(name)
        damping[where], friction[where] = data.damping, data.friction
    assert np.any(damping)
    assert np.any(friction)
    close(resisted - tau, damping * qd + friction * np.sign(qd), 1e-10, np.max(np.abs(tau)))
    assert np.all(dot(resisted - tau, qd) > 0.0)
    back = machine.run("forward_dynamics", q, qd, resisted, dissipation=True)
    close(back, qdd, 1e-9)


# Energy ----------------------------------------------------------------------------------------


def test_kinetic_energy_is_that_of_the_mass_matrix(machine: Machine) -> None:
    T, M = (
        machine.run("kinetic_energy", machine.q, machine.qd),
        machine.run("mass_matrix", machine.q),
    )
    close(T, 0.5 * dot(machine.qd, matvec(M, machine.qd)), ROUNDING)


def test_power_balance(machine: Machine) -> None:
    """Without dissipation, d(T + V)/dt = tau . qd."""
    tau = machine.run("inverse_dynamics", machine.q, machine.qd, machine.qdd)

    def energy(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return machine.run("kinetic_energy", q, qd) + machine.run("potential_energy", q)

    close(machine.rate(energy), dot(tau, machine.qd), DIFFERENCE)


def test_the_trees_have_every_joint_type() -> None:
    found = {tree(n, seed, floating=floating) for n, seed, floating in TREES.values()}
    kinds = {robot.joint(name).kind for robot in found for name in robot.joints}
    assert kinds == set(JOINTS)
