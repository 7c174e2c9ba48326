"""Mechanisms return the same results as their robots: trees, closed loops, driven joints."""

from typing import Any

import numpy as np
import pytest
from mechanisms import mechanism
from support import close, raises

import chasles
from chasles.mechanisms import Mechanism
from chasles.robots import planar, puma560

TIME = 0.3


def robot(kind: str) -> chasles.Robot:
    if kind == "loops":
        return mechanism("five_bar")
    if kind == "loops in time":
        return mechanism("five_bar").drive({"left": lambda t: 0.3 + 0.1 * t}).at_time(TIME)
    arm = puma560()
    return arm if kind == "tree" else arm.drive({"joint2": lambda t: 0.2 * t}).at_time(TIME)


KINDS = ("tree", "loops", "time", "loops in time")


def calls(one: Any, q: np.ndarray, qd: np.ndarray, frame: str) -> dict[str, Any]:
    """Return the results of functions that simulations use, for a robot or its mechanism."""
    return {
        "integrate": one.integrate(q, qd),
        "difference": one.difference(q, q + 0.1 * qd),
        "forward_kinematics": one.forward_kinematics(q, frame=frame),
        "frame_velocity": one.frame_velocity(q, qd, frame=frame),
        "frame_acceleration": one.frame_acceleration(q, qd, 0.0 * qd, frame=frame),
        "jacobian": one.jacobian(q, frame=frame, axes="frame"),
        "jacobian at a point": one.jacobian(q, frame=frame, at=[0.1, 0.2, 0.3]),
        "jacobian_rate": one.jacobian_rate(q, qd, frame=frame),
        "mass_matrix": one.mass_matrix(q),
        "bias_forces": one.bias_forces(q, qd),
        "gravity_forces": one.gravity_forces(q),
        "inverse_dynamics": one.inverse_dynamics(q, qd, 0.0 * qd, dissipation=True),
        "f_ext": one.inverse_dynamics(q, qd, qd, f_ext={frame: np.ones(6)}),
        "loop_matrix": one.loop_matrix(q),
        "derivatives": one.derivatives("mass_matrix", q, wrt="q"),
        "neutral": one.neutral(),
        "slices": one.velocity_slice(one.joints[-1]).start,
        "sizes": [one.nq, one.nv, len(one.joints), len(one.independent), len(one.driven_joints)],
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_mechanism_answers_as_its_robot(kind: str) -> None:
    """Results are identical to the robot's, at the first call and at later, cached calls."""
    made = robot(kind)
    rng = np.random.default_rng(0)
    q, qd = rng.uniform(-1.0, 1.0, (2, made.nv))
    frame = made.frames[-1]
    expected = calls(made, q, qd, frame)
    for _ in range(3):
        for name, found in calls(made.mechanism, q, qd, frame).items():
            assert np.array_equal(found, expected[name]), name
    assert (made.mechanism.name, made.mechanism.joints) == (made.name, made.joints)
    assert made.mechanism.independent == made.independent


def test_functions_are_kept_for_all_times() -> None:
    arm = puma560()
    driven = arm.drive({"joint2": lambda t: 0.2 * t})
    rng = np.random.default_rng(1)
    q, qd, tau = rng.uniform(-1.0, 1.0, (3, 5))
    for t in (0.0, 0.5, np.array([0.1, 0.7])):
        whole = np.insert(np.broadcast_to(q, (*np.shape(t), 5)), 1, 0.2 * np.asarray(t), axis=-1)
        for _ in range(2):
            at = driven.at_time(t)
            pose = arm.forward_kinematics(whole, frame="tool")
            close(at.forward_kinematics(q, frame="tool"), pose, 1e-12)
            qdd = at.forward_dynamics(q, qd, tau)
            close(at.inverse_dynamics(q, qd, qdd), np.broadcast_to(tau, qdd.shape), 1e-9)
            assert at.mechanism.at(1.0).t == 1.0
    with raises("E-LOOP-039", "at_time"):
        driven.mechanism.mass_matrix(q)
    close(driven.mechanism.integrate(q, qd), driven.integrate(q, qd), 0.0)


def test_functions_of_loops_are_prepared_for_their_options() -> None:
    """A function prepared for some options is not used for others."""
    made = mechanism("five_bar")
    q = made.assemble([2.2, 0.9])
    qd = made.complete(q, [0.4, -0.3])
    tau = np.random.default_rng(2).normal(size=made.nv)
    qdd = made.forward_dynamics(q, qd, tau)
    for known in (made.joints[:1], made.joints[1:3], made.joints[:1]):
        held = np.isin(made.joints, known)
        found = made.hybrid_dynamics(q, qd, np.where(held, qdd, tau), known=known)
        close(np.where(held, qdd, found), qdd, 1e-9)
    wrench = {made.frames[-1]: np.ones(6)}
    pushed = made.forward_dynamics(q, qd, tau, f_ext=wrench)
    assert np.max(np.abs(pushed - qdd)) > 1e-3
    close(made.forward_dynamics(q, qd, tau), qdd, 0.0)
    close(made.forward_dynamics(q, qd, tau, f_ext=wrench), pushed, 0.0)
    lam = made.mechanism.multipliers(q, qd, tau)
    close(lam, made.constrained_dynamics(q, qd, tau)[1], 0.0)
    accelerate = made.mechanism.accelerations(wrench, [made.frames[0]], dissipation=False)
    close(accelerate(0.0, q, qd, tau, np.zeros(6)), pushed, 1e-12)


def test_what_a_tree_has_not() -> None:
    tree = planar(2).mechanism
    assert isinstance(tree, Mechanism)
    assert (tree.rows, tree.traits, tree.opens("forward_dynamics")) == (0, (), False)
    with raises("E-LOOP-041"):
        tree.constrained_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_of_calling_again(kind: str) -> None:
    """Repeated calls give the same values with `out`, threads, lists, options and loads."""
    made = robot(kind)
    q = made.mechanism.near(made.neutral())
    loops = "loops" in kind
    qd = made.complete(q, np.zeros(len(made.independent))) if loops else np.zeros(made.nv)
    tau = np.random.default_rng(3).normal(size=made.nv)
    frame, load = made.frames[-1], {made.frames[-1]: chasles.Wrench(np.ones(6))}
    asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("forward_dynamics", (q, qd, tau), {}),
        ("forward_dynamics", (q, qd, tau), {"f_ext": load}),
        ("forward_dynamics", (q, qd, tau), {"dissipation": True}),
        ("gravity_forces", (q,), {}),
        ("jacobian", (q,), {"frame": frame}),
    ]
    for name, arrays, options in asked:
        call = getattr(made, name)
        right = call(*arrays, **options)
        for _ in range(2):
            out = np.empty_like(right)
            assert getattr(made, name)(*arrays, **options, out=out) is out
            found = [
                out,
                getattr(made, name)(*arrays, **options, threads=1),
                getattr(made, name)(*(a.tolist() for a in arrays), **options),
                made.mechanism.call(name, *arrays, **options, threads=1),
            ]
            for other in found:
                close(other, right, 1e-12)
