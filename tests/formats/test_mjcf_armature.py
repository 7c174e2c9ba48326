"""Armature of joints, actuators and fixed tendons in MJCF files, compared with MuJoCo."""

import random
from pathlib import Path

import numpy as np
import pytest
from support import direct, raises, relative
from test_mjcf import SPHERE, Saved, Twin, document, saved

import chasles
from chasles.accuracy import maximal_dynamics
from chasles.algorithms import FUNCTIONS

__all__ = ["saved"]

TOLERANCE = 1e-12  # rounding in both programs

ACTUATORS = {
    "motor": "",
    "general": 'gainprm="2"',
    "position": 'kp="3"',
    "velocity": 'kv="2"',
    "intvelocity": 'kp="2" actrange="-1 1"',
    "damper": 'kv="1" ctrlrange="0 1"',
    "cylinder": 'diameter="2"',
}
"""Actuator types for joints and tendons, each with its required attributes."""


def chain(rng: random.Random, joints: int) -> str:
    """Return a file with a random chain on a free body, with armature everywhere."""
    body, names = "", []
    for k in reversed(range(joints)):
        kind = rng.choice(["hinge", "hinge", "slide", "ball"])
        axis = " ".join(f"{rng.uniform(-1.0, 1.0):.3f}" for _ in range(3))
        armature = rng.choice([0.0, rng.uniform(0.0, 1.0)])
        body = f"""<body name="b{k}" pos="0.1 {rng.uniform(-1, 1):.3f} 0.3" euler="10 20 {k}">
          <joint name="j{k}" type="{kind}" axis="{axis}" pos="0 0.1 0" armature="{armature:.3f}"/>
          <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 {rng.uniform(-0.5, 0.5):.3f}"/>
          {body}</body>"""
        names.append((f"j{k}", kind))
    single = [name for name, kind in names if kind != "ball"]
    driven = [name for name, _ in names] + ["root"]
    tendons = "".join(
        f'<fixed name="t{k}" armature="{rng.uniform(0.0, 1.0):.3f}">'
        + "".join(
            f'<joint joint="{name}" coef="{rng.uniform(-2.0, 2.0):.3f}"/>'
            for name in rng.sample(single, rng.randint(1, len(single)))
        )
        + "</fixed>"
        for k in range(3 if single else 0)
    )
    targets = [f'joint="{x}"' for x in driven] + [f'jointinparent="{x}"' for x in driven]
    targets += [f'tendon="t{k}"' for k in range(3 if single else 0)]
    actuators = "".join(
        f'<{kind} {rng.choice(targets)} gear="{rng.uniform(-5.0, 5.0):.3f} 2 3 4 5 6" '
        f'armature="{rng.uniform(0.0, 0.1):.4f}" {needs}/>'
        for kind, needs in ACTUATORS.items()
    )
    root = f'<joint name="root" type="free" armature="{rng.uniform(0.0, 2.0):.3f}"/>'
    return document(
        f"""<option gravity="1 2 -8"/><worldbody><body name="ship">{root}
        <geom type="box" size="0.3 0.2 0.1" pos="0.1 0 0"/>{body}</body></worldbody>
        <tendon>{tendons}</tendon><actuator>{actuators}</actuator>"""
    )


@pytest.mark.filterwarnings("ignore:.*position servo:chasles.errors.LeftOutWarning")
@pytest.mark.parametrize("seed", range(8))
def test_armature_is_that_of_mujoco(seed: int, saved: Saved) -> None:
    """Mass matrix, bias and inverse dynamics of random files equal MuJoCo's."""
    twin = Twin(saved(chain(random.Random(seed), 2 + seed % 4)))
    model, rng = twin.robot.model, np.random.default_rng(seed)
    q = twin.robot.random(rng)
    qd, qdd = rng.normal(size=(2, twin.robot.nv))
    there = twin.place(q, qd)
    M = twin.mass_matrix()
    assert relative(there.to_mass_matrix(q, direct(model, "mass_matrix", q)), M) < TOLERANCE
    tau = M @ there.to_acceleration(q, qd, qdd) + twin.data.qfrc_bias
    found = direct(model.frictionless(), "inverse_dynamics", q, qd, qdd)
    assert relative(there.to_effort(q, found), tau) < TOLERANCE
    back = direct(model.frictionless(), "forward_dynamics", q, qd, found, method="mass-matrix")
    assert relative(back, qdd) < 1e-9  # rounding errors grow by 2 cond(M)


TWO_FINGERS = """<worldbody><body name="palm"><joint name="wrist" axis="0 1 0"/>{ball}
    <body name="a"><joint name="left"/>{ball}</body>
    <body name="b" pos="1 0 0"><joint name="right"/>{ball}</body></body></worldbody>
    <tendon><fixed name="grip" armature="0.5"><joint joint="left" coef="1"/>
    <joint joint="right" coef="-2"/><joint joint="wrist" coef="0.5"/></fixed></tendon>"""


def test_a_tendon_over_branches_couples_them(saved: Saved) -> None:
    """The kinetic energy is m v^2 / 2, as MuJoCo documents, although MuJoCo omits M[1, 2]."""
    twin = Twin(saved(document(TWO_FINGERS.format(ball=SPHERE))))
    q, none = np.array([0.3, -0.4, 0.9]), np.zeros(3)
    twin.place(q, none)
    g = np.array([0.5, 1.0, -2.0])
    bare = chasles.load(
        saved(document(TWO_FINGERS.format(ball=SPHERE).replace('0.5"><j', '0"><j')))
    )
    added = direct(twin.robot.model, "mass_matrix", q) - direct(bare.model, "mass_matrix", q)
    assert relative(added, 0.5 * np.outer(g, g)) < TOLERANCE
    expected = twin.mass_matrix()
    assert expected[1, 2] == 0.0
    expected[1, 2] = expected[2, 1] = -1.0
    assert relative(direct(twin.robot.model, "mass_matrix", q), expected) < TOLERANCE
    assert any("'grip': its armature couples joints of different" in x for x in twin.robot.notes)


ROPES = """<option gravity="1 2 -8"/><worldbody><site name="o" pos="0 1 0.3"/>
    <body name="a" pos="0 0 1"><joint name="x" type="slide" axis="1 1 0"/><joint name="j"/>{ball}
      <site name="s" pos="0.1 0 0.2"/><site name="t" pos="0.3 0.1 0"/>
      <body name="b" pos="0.5 0 0"><joint name="k" type="ball"/>{ball}<site name="u" pos="0 0.2 0"/>
        <body name="c" pos="0 0.4 0"><joint name="l" axis="0 1 1"/>{ball}
          <site name="v" pos="0.1 0.1 0.1"/></body></body></body>
    </worldbody><tendon>
      <spatial name="rope" armature="2"><site site="o"/><site site="s"/><site site="t"/>
        <site site="u"/><pulley divisor="2"/><site site="t"/><site site="v"/>
        <pulley divisor="3"/><site site="o"/><site site="v"/></spatial>
      <spatial name="string"><site site="o"/><site site="v"/></spatial></tendon>
    <actuator><motor tendon="string" gear="3" armature="0.1"/></actuator>"""


def test_spatial_tendons_have_inertia(saved: Saved) -> None:
    """Mass matrix, bias and inverse dynamics with pulleys equal MuJoCo's."""
    twin = Twin(saved(document(ROPES.format(ball=SPHERE))))
    assert [rotor.name for rotor in twin.robot.model.source.rotors] == ["rope", "string"]
    rng, model = np.random.default_rng(3), twin.robot.model
    q = twin.robot.random(rng)
    qd, qdd = rng.normal(size=(2, twin.robot.nv))
    there = twin.place(q, qd)
    M = twin.mass_matrix()
    assert relative(there.to_mass_matrix(q, direct(model, "mass_matrix", q)), M) < TOLERANCE
    tau = M @ there.to_acceleration(q, qd, qdd) + twin.data.qfrc_bias
    for way in FUNCTIONS["inverse_dynamics"]:
        found = direct(model, "inverse_dynamics", q, qd, qdd, method=way.name)
        assert relative(there.to_effort(q, found), tau) < TOLERANCE
    assert relative(twin.robot.forward_dynamics(q, qd, found), qdd) < 1e-9
    kinetic = 0.5 * there.to_velocity(q, qd) @ M @ there.to_velocity(q, qd)
    assert relative(twin.robot.kinetic_energy(q, qd), kinetic) < TOLERANCE


def test_spatial_tendons_keep_energy_and_have_derivatives(saved: Saved) -> None:
    robot = chasles.load(saved(document(ROPES.format(ball=SPHERE))))
    q = robot.random(np.random.default_rng(1))
    qd = np.random.default_rng(2).normal(size=robot.nv)
    run = robot.simulate(q, qd, duration=0.2, dt=1e-3)
    energy = robot.kinetic_energy(run.q, run.qd) + robot.potential_energy(run.q)
    assert np.ptp(energy) < 1e-6 * np.max(np.abs(robot.kinetic_energy(run.q, run.qd)))
    tau, step, zero = np.zeros(robot.nv), 1e-6, np.zeros(robot.nv)
    slope = chasles.compile(robot, "forward_dynamics", wrt="q")(q, qd, tau)
    for k, unit in enumerate(np.eye(robot.nv)):
        ahead, behind = (robot.integrate(q, sign * step * unit) for sign in (1.0, -1.0))
        change = robot.forward_dynamics(ahead, qd, tau) - robot.forward_dynamics(behind, qd, tau)
        assert relative(slope[:, k], change / (2.0 * step), scale=1.0) < 1e-5
    for function in (robot.linearize, robot.coriolis_matrix):
        arrays = (q, qd, zero)[: 3 if function.__name__ == "linearize" else 2]
        with raises("E-CALL-067 rope"):
            function(*arrays)
    chasles.save(robot, file := saved("").with_suffix(".toml"))
    assert relative(chasles.load(file).mass_matrix(q), robot.mass_matrix(q)) < 1e-12
    with raises("E-ACCURACY-220 rope"):
        maximal_dynamics(robot, q, qd, tau)


def test_edited_robots_keep_tendons(saved: Saved) -> None:
    robot = chasles.load(saved(document(ROPES.format(ball=SPHERE))))
    q = robot.random(np.random.default_rng(1))
    locked = robot.lock({"x": q[:1]})
    M = robot.mass_matrix(q)[1:, 1:]
    assert relative(locked.mass_matrix(q[1:]), M) < TOLERANCE
    part = robot.subtree("b")
    assert part.model.rotors == ()
    assert any(
        "tendon 'rope' is removed: it leads out of the subtree of 'b'" in note
        for note in part.notes
    )


def test_a_weld_to_a_mocap_body_is_no_weld_to_the_world(saved: Saved) -> None:
    world = f"""<worldbody><body name="grip" mocap="true"><site name="there"/>
        <body name="on"><site name="beyond"/></body></body>
      <body name="a"><freejoint name="f"/>{SPHERE}<site name="here"/></body></worldbody>"""
    welds = (
        '<weld name="w" body1="a" body2="grip"/>',
        '<connect name="w" body1="grip" body2="a" anchor="0 0 0"/>',
        '<weld name="w" site1="beyond" site2="here"/>',
    )
    for weld in welds:
        robot = chasles.load(saved(document(f"{world}<equality>{weld}</equality>")))
        assert robot.loops == ()
        assert robot.nv == 6
        assert any("'w' attaches a body to" in x and "mocap" in x for x in robot.notes)


def test_rotors_are_written_as_tendons(saved: Saved, tmp_path: Path) -> None:
    robot = chasles.load(saved(chain(random.Random(5), 4)))
    assert len(robot.model.source.rotors) > 1
    for suffix in ("xml", "toml"):
        chasles.save(robot, tmp_path / f"again.{suffix}")
        again = chasles.load(tmp_path / f"again.{suffix}")
        given, kept = robot.model.source.rotors, again.model.source.rotors
        assert [(x.name, x.freedoms, x.ratios, x.armature) for x in kept] == [
            (x.name, x.freedoms, x.ratios, x.armature) for x in given
        ]
    for suffix in ("urdf", "sdf"):
        with raises("E-FILE-220 t"):
            chasles.save(robot, tmp_path / f"again.{suffix}")
