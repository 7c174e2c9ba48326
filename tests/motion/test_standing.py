"""Robots of files that land and stand under PD control, in steps of 2 and 5 ms."""

from importlib.metadata import files

import numpy as np
import pytest

import chasles
from chasles import contact

STIFFNESS, DAMPING = 20.0, 0.5
POSTURE = [0, 0.7, -1.4, 0, 0.7, -1.4, 0, -0.7, 1.4, 0, -0.7, 1.4]
RADIUS = 0.016


@pytest.fixture(scope="module")
def solo():
    found = next(p for p in files("example-robot-data") if str(p).endswith("solo12.urdf"))
    return chasles.load(str(found.locate()), floating=True)


@pytest.mark.parametrize("dt", [0.002, 0.005])
def test_solo12_lands_and_stands(solo, dt):
    feet = [name for name in solo.frames if name.endswith("FOOT")]
    law, ground = contact.Rigid(friction=0.7), contact.Plane()
    pairs = [contact.Pair(contact.Sphere(name, RADIUS), ground, law) for name in feet]
    q = solo.neutral()
    q[7:] = POSTURE
    lowest = min(solo.forward_kinematics(q, frame=name)[2, 3] for name in feet) - RADIUS
    q[6] = 0.05 - lowest
    gains = [np.r_[np.zeros(6), np.full(12, gain)] for gain in (STIFFNESS, DAMPING)]
    control = chasles.rollouts.PDControl(*gains, q)
    run = solo.simulate(
        q, np.zeros(18), duration=10.0, dt=dt, contacts=pairs, control=control,
        integrator="time-stepping",
    )  # fmt: skip
    half = len(run.t) // 2
    drift = np.abs(run.q[half:] - run.q[half])
    assert run.compiled
    assert run.unsolved == 0
    assert run.q[-1, 6] > 0.2
    assert drift[:, 4:7].max() < 1e-3
    assert 2.0 * drift[:, 1:4].max() < np.radians(0.1)
    assert -run.touching.gaps.min() < 1e-3
    weight = 9.81 * solo.mass_matrix(q)[3, 3]  # along the base, of all bodies
    assert run.touching.forces[-1, :, 2].sum() == pytest.approx(weight, rel=1e-4)
