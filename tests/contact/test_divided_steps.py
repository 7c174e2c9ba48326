"""Steps whose programs call other programs give the same values and motion as whole programs."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import chasles
from chasles import contact
from chasles.expr import interpret
from chasles.motion.drivers.stepping import Stepped, scene_of
from chasles.motion.options import Plan
from chasles.motion.steps import scene, stepping
from chasles.motion.steps.apart import called

BALLS, SHARED = 3, 2
NAMES = ("begin", "refine", "search")


@pytest.fixture(scope="module")
def balls(tmp_path_factory):
    """Free balls in a row, and a ball on a hinge with limits and dry friction."""
    rows = "".join(
        f'<body name="b{k}" pos="{0.09 * k} 0 0.049"><freejoint/><inertial pos="0 0 0" '
        f'mass="{1 + 0.3 * k}" diaginertia="1e-3 2e-3 1e-3"/></body>'
        for k in range(BALLS - 1)
    )
    rows += (
        f'<body name="b{BALLS - 1}" pos="0.1 0.09 0.05"><inertial pos="0 0 0" mass="1" '
        'diaginertia="1e-3 1e-3 1e-3"/><joint type="hinge" axis="0 0 1" pos="0 0.1 0" '
        'range="-0.1 0.1" limited="true" frictionloss="0.1"/></body>'
    )
    path = tmp_path_factory.mktemp("balls") / "balls.xml"
    path.write_text(f'<mujoco><compiler angle="radian"/><worldbody>{rows}</worldbody></mujoco>')
    return chasles.load(path)


def pairs(torsion):
    shapes = [contact.Sphere(f"b{k}", 0.05) for k in range(BALLS)]
    law = contact.Rigid(friction=0.4, torsion=torsion)
    own = [contact.Pair(a, b, law, shared=SHARED) for a, b in combinations(shapes, 2)]
    return [contact.Pair(a, contact.Plane(), law) for a in shapes] + own


def plan_of(torsion):
    return Plan(contacts=pairs(torsion), limits=True, dissipation=True, integrator="time-stepping")


def run(program, arrays):
    return interpret(program, {v.name: arrays[v.name] for v in program.inputs})


@pytest.mark.parametrize("torsion", [0.0, 0.02])
def test_parts_and_calls_give_the_numbers_of_whole_programs(balls, torsion):
    place = scene_of(balls, plan_of(torsion), balls.model)
    whole = stepping.Steps(place, 0.002, None)
    divided = stepping.Steps(place, 0.002, None, crowded=True)
    rng = np.random.default_rng(0)
    arrays = {v.name: list(0.1 * rng.normal(size=v.size)) for v in whole.inputs}
    arrays["q"] = list(balls.neutral())
    known = arrays.copy()  # data of divided programs may have other signs
    for name in NAMES:
        arrays |= run(getattr(whole, name)(), arrays)
        first, *parts = divided.parts(name, stepping.TOLERANCE)
        known |= run(first, known)
        for calls, part in zip(called(name, [SHARED]), parts, strict=True):
            for call in calls:
                other = divided.called(call.program)
                names = {v.name: call.inputs.get(v.name, v.name) for v in other.inputs}
                found = interpret(other, {n: known[at] for n, at in names.items()})
                known |= {call.outputs.get(n, n): x for n, x in found.items()}
            known |= run(part, known)
        for key in ("point", "memory"):
            size = np.abs(arrays[key]).max()
            assert np.allclose(known[key], arrays[key], rtol=1e-9, atol=1e-12 * size), (name, key)
    assert np.abs(arrays["memory"]).max() > 0.0


def test_divided_steps_move_like_whole_ones(balls, monkeypatch):
    plan = plan_of(0.02)
    found = []
    for many in (10**9, 0):
        monkeypatch.setattr(scene, "MANY", many)
        made = Stepped(balls.model, scene_of(balls, plan, balls.model), 0.002, None)
        made.recipe = replace(made.recipe, control=f"test {many}")
        assert bool(made.scene.picks) == (not many)
        rng = np.random.default_rng(1)
        sizes = [v.size for v in made.steps.inputs[: len(made.steps.states)]]
        states = [np.zeros((19, n)) for n in sizes]
        states[0][:] = balls.neutral()
        states[1][:] = 0.3 * rng.normal(size=(19, sizes[1]))
        controls = [np.zeros((1, 1, balls.nv)), np.zeros((1, 1, 1))]
        made.loop("llvm", "float64")(states, controls, [], 50, 50, 1)
        found.append(states)
    for a, b in zip(*found, strict=True):
        assert np.allclose(a[:, : sizes[1]], b[:, : sizes[1]], rtol=1e-6, atol=1e-8)
    assert found[0][2].max() > 1.0  # contact forces (N)


def test_gradients_of_divided_steps_are_those_of_whole_ones(balls, monkeypatch):
    rng = np.random.default_rng(2)
    qd, covectors = 0.3 * rng.normal(size=(5, balls.nv)), rng.normal(size=(2, 5, 11, balls.nv))
    options = {"steps": 10, "contacts": pairs(0.0), "integrator": "time-stepping"}
    found = []
    for many, dt in ((10**9, 0.002), (0, 0.002 * (1.0 + 1e-14))):  # avoid the cached step
        monkeypatch.setattr(scene, "MANY", many)
        q = np.tile(balls.neutral(), (5, 1))
        found.append(balls.rollout_pullback(q, qd, covectors=tuple(covectors), dt=dt, **options).qd)
    assert np.abs(found[0]).max() > 0.1
    assert np.allclose(*found, rtol=1e-6, atol=1e-8)
