"""Unknowns in addition to link inertias: joint terms, motor constants, delays, payloads."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles.identification.constrained import unknown_bodies
from chasles.identification.equations import Equations
from chasles.identification.linear import LinearModel, base
from chasles.identification.shapes import box, ellipsoid, inequalities, regions
from chasles.identification.unknowns import (
    INCLUDED,
    TERMS,
    At,
    Body,
    own_bodies,
    parameters,
    pseudo_inertia,
)
from chasles.model import gear

NOISE = 0.01


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def measured(
    robot: chasles.Robot, seed: int = 0, count: int = 600
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return random states of an arm, its torques, and noise for them."""
    rng = np.random.default_rng(seed)
    at = list(rng.normal(size=(3, count, robot.nv)))
    return at, robot.inverse_dynamics(*at), NOISE * rng.normal(size=(count, robot.nv))


def identified(robot: chasles.Robot, at: list[np.ndarray], tau: np.ndarray, **options: Any) -> Any:
    q, qd, qdd = at
    return chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau, **options)


@pytest.mark.parametrize("kind", TERMS)
def test_every_joint_term_is_recovered(kind: str) -> None:
    """Estimates are within four deviations; the new robot contains the terms that it supports."""
    robot, row = chasles.robots.planar(2), TERMS[kind]
    at, tau, noise = measured(robot)
    q, qd, qdd = at
    tau = tau + 0.4 * row.column(At(q, qd, qdd, np.sign(qd), 0.1)) + noise
    found = identified(robot, at, tau, include=["inertia", row.include])
    x = np.zeros(len(found.model.names))
    x[:20] = robot.inertial_parameters()
    x[20:] = [0.4 if each == kind else 0.0 for each, _ in found.model.unknowns]
    assert np.all(np.abs(found.base - found.combination @ x) < 4.0 * found.deviations)
    assert np.all(found.deviations < 0.02)
    for joint in robot.joints[1:]:  # the first armature acts like the inertia of its link
        assert found.joint_terms[f"{joint}.{kind}"] == pytest.approx(0.4, abs=0.02)
    if row.written is not None:
        alike = [other for other in TERMS if TERMS[other].include == row.include]
        parts = [TERMS[k].written[1] * found.joint_terms[f"joint2.{k}"] for k in alike]  # type: ignore[index]
        assert getattr(found.robot.joint("joint2"), row.written[0]) == pytest.approx(sum(parts))


@pytest.mark.parametrize("kind", TERMS)
def test_slopes_of_columns_by_differences(kind: str) -> None:
    """Derivatives with a smoothed sign of velocities, as used for excitation, are correct."""
    model, rng, h, width = (
        LinearModel(chasles.robots.planar(1), ()),
        np.random.default_rng(0),
        1e-6,
        0.3,
    )
    at = list(rng.normal(size=(3, 20, 1)))

    def column(k: int, step: float) -> np.ndarray:
        moved = [x + step * (j == k) for j, x in enumerate(at)]
        _, state = model.state("joint1", *moved, sign=lambda qd: np.tanh(qd / width))
        return np.broadcast_to(TERMS[kind].column(state), (20,))

    for k, slope in enumerate(model.slopes(kind, "joint1", at, width)):
        want = (column(k, h) - column(k, -h)) / (2.0 * h)
        np.testing.assert_allclose(slope, want, rtol=1e-6, atol=1e-8)


def test_the_page_lists_every_joint_term() -> None:
    page = (Path(__file__).parents[2] / "docs" / "identification.md").read_text("utf-8")
    assert [name for name in INCLUDED if f'| `"{name}"` |' not in page] == []


def test_compiled_equations_are_those_of_the_linear_model() -> None:
    """Compiled equations agree for all joint terms, single terms, and symmetric bodies."""
    robot = chasles.robots.planar(3).with_parameters({"joint2.friction": 0.3})
    rows = ("joint1.friction", "stribeck", "stiffness", "friction_forward", "offset", "armature")
    at, tau, _ = measured(robot, count=70)
    _, bodies = unknown_bodies(robot, None, {"link1": "link2"})
    for given in (None, bodies):
        model = LinearModel(robot, rows, given)
        chosen = base(model, np.random.default_rng(0), at)
        sums = Equations(model, chosen).grams((*at, tau)).sums  # type: ignore[arg-type]
        A = model.matrix(*at)
        e = tau - model.known(*at) - A @ model.nominal
        W = np.concatenate([A[..., chosen.columns], e[..., None]], axis=-1)
        np.testing.assert_allclose(
            sums, np.einsum("nji,njk->jik", W, W), rtol=1e-9, atol=1e-9 * np.abs(sums).max()
        )


def test_friction_that_differs_by_direction() -> None:
    robot = chasles.robots.planar(2)
    at, tau, noise = measured(robot)
    tau = tau + np.where(at[1] > 0.0, 0.5, -0.2) + noise
    found = identified(robot, at, tau, include=["inertia", "asymmetric"])
    for joint in robot.joints:
        assert found.joint_terms[f"{joint}.friction_forward"] == pytest.approx(0.5, abs=0.01)
        assert found.joint_terms[f"{joint}.friction_backward"] == pytest.approx(0.2, abs=0.01)
        assert found.robot.joint(joint).friction == pytest.approx(0.35, abs=0.01)


def test_friction_is_found_from_positions() -> None:
    """Filters of positions do not smooth the jumps of friction."""
    robot, rng = chasles.robots.planar(2), np.random.default_rng(0)
    t = np.arange(0.0, 10.0, 0.005)
    w = 2.0 * np.pi * np.array([[0.1, 0.3], [0.2, 0.5]])
    angle = t[:, None, None] * w
    q, qd, qdd = np.sin(angle).sum(-1), (w * np.cos(angle)).sum(-1), -(w**2 * np.sin(angle)).sum(-1)
    tau = robot.inverse_dynamics(q, qd, qdd) + 0.5 * np.sign(qd) + 0.2 * qd
    found = chasles.identify(
        robot,
        t=t,
        q=q + 1e-5 * rng.normal(size=q.shape),
        tau=tau + NOISE * rng.normal(size=tau.shape),
    )
    for joint in robot.joints:
        assert found.joint_terms[f"{joint}.friction"] == pytest.approx(0.5, abs=0.01)
        assert found.joint_terms[f"{joint}.damping"] == pytest.approx(0.2, abs=0.01)


def test_the_stribeck_velocity_is_estimated() -> None:
    robot = chasles.robots.planar(2)
    at, tau, noise = measured(robot)
    qd = at[1]
    tau = tau + 0.5 * np.sign(qd) + 0.8 * np.sign(qd) / (1.0 + (qd / 0.2) ** 2) + noise
    include = ["inertia", "friction", "stribeck"]
    found = identified(robot, at, tau, include=include, stribeck_velocity="estimate")
    assert found.model.slip == pytest.approx(0.2, rel=0.05)
    assert found.joint_terms["joint1.stribeck"] == pytest.approx(0.8, abs=0.03)
    assert np.all(found.noise < 1.1 * NOISE)


def test_motor_constants_are_found_from_currents() -> None:
    """Noise of the currents, which are columns of the regression, does not bias the estimates."""
    robot = chasles.robots.puma560()
    true = np.array([0.2, 0.5, 0.3, 0.05, 0.07, 0.04])
    gain = dict.fromkeys(robot.joints[1:]) | {robot.joints[0]: 0.2}
    away = []
    for seed in range(4):
        at, tau, _ = measured(robot, seed, 400)
        size = np.sqrt(np.mean(tau**2, axis=0))
        noise = NOISE * size * np.random.default_rng(100 + seed).normal(size=tau.shape)
        found = identified(robot, at, (tau + noise) / true, include=["inertia"], gain=gain)
        k = np.array([found.gain[joint] for joint in robot.joints])
        np.testing.assert_allclose(k, true, rtol=0.01)
        truth = found.combination @ robot.inertial_parameters()
        away.append((found.base - truth) / found.deviations)
        np.testing.assert_allclose(found.noise, NOISE * size, rtol=0.2)
    whole = np.concatenate(away)
    assert np.mean(np.abs(whole) < 3.0) > 0.97
    assert 0.7 < np.sqrt(np.mean(whole**2)) < 1.4


def test_motor_constants_need_a_scale() -> None:
    robot = chasles.robots.planar(2)
    at, tau, noise = measured(robot)
    with raises("E-IDENT-029"):
        identified(robot, at, tau + noise, include=["inertia"], gain=dict.fromkeys(robot.joints))
    with raises("E-IDENT-028", "elbow"):
        identified(robot, at, tau, gain={"elbow": 1.0})
    push = {"tip": chasles.Wrench(np.array([0.0, 0.0, 0.0, 8.0, 0.0, -5.0]))}
    loaded = robot.inverse_dynamics(*at, f_ext=push)
    found = identified(
        robot, at, (loaded + noise) / 0.3, include=["inertia"], f_ext=push,
        gain=dict.fromkeys(robot.joints),
    )  # fmt: skip
    np.testing.assert_allclose([found.gain[joint] for joint in robot.joints], 0.3, rtol=0.01)


@pytest.mark.parametrize("delay", ["estimate", 0.0123])
def test_arrays_with_a_delay(delay: Any) -> None:
    """Torques that lag by 12.3 ms are shifted back."""
    robot = chasles.robots.planar(2)
    t = np.arange(0.0, 8.0, 0.002)
    w = np.array([[3.1, 7.3], [5.7, 4.4]])

    def state(t: np.ndarray) -> list[np.ndarray]:
        angle = t[:, None, None] * w
        return [np.sin(angle).sum(-1), (w * np.cos(angle)).sum(-1), -(w**2 * np.sin(angle)).sum(-1)]

    at, late = state(t), robot.inverse_dynamics(*state(t - 0.0123))
    tau = late + NOISE * np.random.default_rng(0).normal(size=late.shape)
    found = identified(robot, at, tau, t=t, delay=delay, include=["inertia"])
    assert np.all(found.noise < 1.5 * NOISE)
    assert float(found.notes[0].split()[-2]) == pytest.approx(12.3, abs=0.2)
    assert np.all(identified(robot, at, tau, include=["inertia"]).noise > 10.0 * NOISE)


def test_a_payload_at_a_frame() -> None:
    """Mass and center of a payload are found; the rest of the robot does not change."""
    robot = chasles.robots.puma560()
    inertia = np.diag([0.004, 0.005, 0.006])
    loaded = robot.attach("tool", mass=1.7, center=(0.03, -0.02, 0.05), inertia=inertia)
    at, tau, noise = measured(loaded)
    found = identified(robot, at, tau + noise, include=["inertia"], payload="tool")
    assert found.robot.mass == pytest.approx(robot.mass + 1.7, abs=0.01)
    assert found.parameters["payload.mass"] == pytest.approx(1.7, abs=0.01)
    np.testing.assert_allclose(found.parameters["payload.center"], [0.03, -0.02, 0.05], atol=1e-3)
    np.testing.assert_allclose(found.parameters["payload.inertia"], inertia, atol=1e-3)
    q = at[0][:10]
    np.testing.assert_allclose(found.robot.mass_matrix(q), loaded.mass_matrix(q), atol=0.01)
    with raises("E-IDENT-025"):
        identified(robot, at, tau, payload=robot.bodies[0])


def test_a_known_total_mass() -> None:
    """A known total mass determines the mass of a link that only turns, which torques cannot."""
    robot = chasles.robots.planar(2)
    at, tau, noise = measured(robot)
    for mass in (2.0, 5.0):
        found = identified(robot, at, tau + noise, include=["inertia"], total_mass=mass)
        assert found.robot.mass == pytest.approx(mass, rel=2e-3)
        assert np.all(found.validate(*at, tau) < NOISE)
    with raises("E-IDENT-023"):
        identified(robot, at, tau, total_mass=-1.0)


def test_symmetric_links_have_equal_or_mirrored_parameters() -> None:
    robot = chasles.robots.quadruped()
    links = [body.name for body in own_bodies(robot)]
    pairs = {name: name.replace("left", "right") for name in links if "left" in name}
    assert pairs
    assert set(pairs.values()) <= set(links)
    left = next(iter(pairs))
    odd = robot.with_parameters({f"{left}.mass": 9.0})
    even, bodies = unknown_bodies(odd, None, pairs)
    assert bodies is not None
    assert len(bodies) == len(links) - len(pairs)
    masses = {link.name: link.inertia.m for link in even.model.source.links}
    assert all(masses[one] == pytest.approx(masses[other]) for one, other in pairs.items())
    q = even.neutral()
    c = even.center_of_mass(q) - robot.forward_kinematics(q, frame=links[0])[:3, 3]
    assert abs(c[1]) < 1e-12  # the plane between left and right
    with raises("E-IDENT-026", "wing"):
        unknown_bodies(robot, None, {left: "wing"})


@pytest.mark.parametrize("kind", [box, ellipsoid])
def test_regions_hold_their_points_and_nothing_far_away(kind: Any) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 3)) * [0.1, 0.3, 0.02] + [0.5, 0.0, -0.2]
    region = kind(points)

    def least(point: np.ndarray) -> float:
        x = np.append(point, 1.0)
        return float(min(x @ Q @ x for Q in region.Q))

    assert min(least(point) for point in points) > -1e-9
    middle, far = points.mean(axis=0), points.max(axis=0) + 0.1
    assert least(middle) > 0.0 > least(far)
    assert least(2.0 * points[np.argmax(np.abs(points[:, 1]))] - middle) < 0.0
    assert min(np.sum(Q * region.typical) for Q in region.Q) > 0.0
    assert np.linalg.eigvalsh(region.typical)[0] > 0.0


def boxes(folder: Path) -> chasles.Robot:
    """Return an arm of three links with boxes as collision shapes."""
    parts = ['<robot name="boxes"><link name="link0"/>']
    for k, axis in enumerate(("0 0 1", "0 1 0", "1 0 0"), 1):
        parts.append(
            f'<joint name="joint{k}" type="continuous"><origin xyz="0.3 0 0.1"/>'
            f'<axis xyz="{axis}"/><parent link="link{k - 1}"/><child link="link{k}"/></joint>'
            f'<link name="link{k}"><inertial><origin xyz="0.15 0 0.02"/><mass value="{4 - k}"/>'
            '<inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial>'
            '<collision><origin xyz="0.15 0 0"/><geometry><box size="0.3 0.1 0.1"/></geometry>'
            "</collision></link>"
        )
    path = folder / "boxes.urdf"
    path.write_text("".join([*parts, "</robot>"]))
    return chasles.load(path)


@pytest.mark.parametrize("prior", ["pull-back", "entropic"])
@pytest.mark.parametrize("kind", ["box", "ellipsoid"])
def test_mass_stays_within_the_shapes_of_links(kind: Any, prior: Any, tmp_path: Path) -> None:
    """Mass stays within the shapes for random torques and for a prior outside the shapes."""
    robot = boxes(tmp_path)
    rng = np.random.default_rng(0)
    at = list(rng.normal(size=(3, 60, 3)))
    wrong = robot.with_parameters({"link3.center": [0.0, 3.0, 0.0]})
    tau = 100.0 * rng.normal(size=(60, 3))
    found = identified(wrong, at, tau, enclosed=kind, prior=prior, include=["inertia"])
    around = regions(robot, kind)
    assert len(around) == 3
    for k, body in enumerate(own_bodies(robot)):
        p = found.vector[10 * k : 10 * k + 10]
        assert np.linalg.eigvalsh(pseudo_inertia(p))[0] > 0.0
        assert np.min(inequalities(body, around) @ p) > -1e-11  # rounding, for a prior of 1 kg
    free = identified(wrong, at, tau, prior=prior, include=["inertia"])
    assert any(
        np.min(inequalities(body, around) @ free.vector[10 * k : 10 * k + 10]) < 0.0
        for k, body in enumerate(own_bodies(robot))
    )
    with raises("E-IDENT-024", "sphere"):
        identified(robot, at, tau, enclosed="sphere")


def test_parameters_and_pseudo_inertias_are_inverse_to_each_other() -> None:
    p = np.random.default_rng(0).normal(size=10)
    np.testing.assert_allclose(parameters(pseudo_inertia(p)), p, rtol=1e-14)
    assert Body("a", p, ()).attached is None


def test_options_of_the_command(tmp_path: Path) -> None:
    """The command identifies a payload, and accepts a known mass and the entropic prior."""
    from typer.testing import CliRunner

    from chasles.cli.app import app

    robot = chasles.robots.planar(2)
    chasles.save(robot, tmp_path / "robot.toml")
    at, tau, noise = measured(robot.attach("tip", mass=0.6))
    columns = {
        f"{joint}.{name}": x[:, k]
        for name, x in zip(("q", "qd", "qdd", "tau"), (*at, tau + noise), strict=True)
        for k, joint in enumerate(robot.joints)
    }
    log = str(tmp_path / "log.csv")
    rows = np.column_stack(list(columns.values()))
    np.savetxt(log, rows, delimiter=",", header=",".join(columns), comments="")
    for name, options, mass in (
        ("load", ["--payload", "tip"], 2.6),
        ("whole", ["--prior", "entropic", "--total-mass", "4", "--deviation", "2"], 4.0),
    ):
        out = tmp_path / f"{name}.toml"
        given = ["identify", str(tmp_path / "robot.toml"), log, "-o", str(out), *options]
        answer = CliRunner().invoke(app, [*given, "--include", "inertia"])
        assert answer.exit_code == 0, answer.output
        assert chasles.load(out).mass == pytest.approx(mass, rel=0.01)


# Dry friction at rest -----------------------------------------------------------------------------


def stopping(robot: chasles.Robot, friction: float, seed: int = 0) -> list[np.ndarray]:
    """Return q, qd, qdd and torques with dry friction for an arm whose joints pause at random.

    Friction at a resting joint is a random fraction of its limit, and its velocity has noise.
    """
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.normal(size=(3, 1500, robot.nv))
    rests = rng.random(qd.shape) < 0.3
    qd, qdd = np.where(rests, 0.0, qd), np.where(rests, 0.0, qdd)
    share = np.where(rests, rng.uniform(-1.0, 1.0, qd.shape), np.sign(qd))
    tau = robot.inverse_dynamics(q, qd, qdd) + friction * share
    noise = NOISE * rng.normal(size=(2, *tau.shape))
    return [q, np.where(rests, 0.1 * noise[0], qd), qdd, tau + noise[1]]


@pytest.mark.parametrize("loss", ["squares", "huber"])
def test_friction_of_joints_that_pause(loss: str) -> None:
    """Friction is unbiased without the samples at rest, and too small with them."""
    robot = chasles.robots.planar(3)
    *at, tau = stopping(robot, 0.5)
    terms = ["inertia", "friction"]
    found = identified(robot, at, tau, include=terms, loss=loss)
    x = np.append(robot.inertial_parameters(), [0.5] * 3)
    assert np.all(np.abs(found.base - found.combination @ x) < 4.0 * found.deviations)
    if loss == "squares":  # the weights of the Huber loss reduce the residuals
        np.testing.assert_allclose(found.noise, NOISE, rtol=0.05)
    assert np.all(found.validate(*at, tau) < 1.1 * NOISE)
    biased = identified(robot, at, tau, include=terms, rest_velocity=0.0)
    assert all(biased.joint_terms[f"{joint}.friction"] < 0.45 for joint in robot.joints)


def test_logs_and_arrays_leave_out_the_same_samples(tmp_path: Path) -> None:
    robot = chasles.robots.planar(2)
    q, qd, qdd, tau = stopping(robot, 0.5)
    log: dict[str, np.ndarray] = {"t": 0.01 * np.arange(len(q))}
    for k, joint in enumerate(robot.joints):
        log |= {f"{joint}.q": q[:, k], f"{joint}.qd": qd[:, k]}
        log |= {f"{joint}.qdd": qdd[:, k], f"{joint}.tau": tau[:, k]}
    table = tmp_path / "log.csv"
    values = np.column_stack(list(log.values()))
    np.savetxt(table, values, delimiter=",", header=",".join(log), comments="", fmt="%.17g")
    options: dict[str, Any] = {"include": ["inertia", "friction"], "rest_velocity": {"joint2": 0.2}}
    want = identified(robot, [q, qd, qdd], tau, **options)
    found = chasles.identify(robot, str(table), **options)
    np.testing.assert_allclose(found.base, want.base, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.deviations, want.deviations, rtol=1e-9)
    np.testing.assert_allclose(found.noise, want.noise, rtol=1e-9)


def test_friction_of_a_coupled_joint_at_rest() -> None:
    """A torque is left out if friction is undetermined at any joint that it drives."""
    tree = chasles.robots.planar(3)
    robot = tree.with_couplings(gear("belt", "joint3", {"joint1": 1.0, "joint2": 1.0}))
    model = LinearModel(robot, ("joint3.friction",), slowest=(0.1,) * 3)
    q, yd = np.array([[0.3, 0.2, 0.5]] * 2), np.array([[1.0, -0.99], [1.0, 1.0]])
    qd = robot.complete(q, yd)
    assert model.moving(q, qd).tolist() == [[False, False], [True, True]]


def test_rest_velocities_are_checked() -> None:
    robot = chasles.robots.planar(2)
    at, tau, _ = measured(robot)
    for rest, code in ((-0.1, "E-IDENT-048"), ({"knee": 0.1}, "E-IDENT-047")):
        with raises(code):
            identified(robot, at, tau, rest_velocity=rest)
    still = identified(robot, at, tau, rest_velocity=1e3)
    assert sum("is at rest in 100% of the samples" in note for note in still.notes) == 2
    np.testing.assert_allclose(still.robot.inertial_parameters(), robot.inertial_parameters())
