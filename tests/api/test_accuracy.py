"""Condition numbers of mechanisms, and notes on robots whose dynamics lose digits."""

from dataclasses import replace
from pathlib import Path
from sysconfig import get_path

import numpy as np
import pytest
from support import close, raises

import chasles
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.rotations import Rotation
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.robots import ROBOTS, four_bar, planar, puma560, random_tree, zigzag

FILES = Path(get_path("purelib"), "cmeel.prefix/share/example-robot-data/robots")
DIGITS = "of 16 digits"

# Condition -------------------------------------------------------------------------------------


def test_condition_is_what_errors_grow_by() -> None:
    """The worst torque error is amplified by the condition number, random errors by less."""
    arm = zigzag(6)
    q, still = arm.neutral(), np.zeros(6)
    found = chasles.condition(arm, q)
    assert found == pytest.approx(725.388, rel=1e-6)
    assert found.heaviest / found.lightest == found == found.number
    stiff = np.linalg.eigh(arm.mass_matrix(q))[1][:, -1]
    exact = arm.forward_dynamics(q, still, stiff)

    def growth(error: np.ndarray) -> float:
        changed = arm.forward_dynamics(q, still, stiff + 1e-3 * error) - exact
        return float(np.linalg.norm(changed) / np.linalg.norm(exact) / 1e-3)

    assert growth(found.worst_force) == pytest.approx(found, rel=1e-9)
    for error in np.random.default_rng(1).normal(size=(20, 6)):
        assert growth(error / np.linalg.norm(error)) < found
    assert str(found) == (
        "condition number 725.4: forward dynamics amplifies relative torque errors up to "
        "725.4 times; about 2.9 of 16 digits are lost"
    )


def test_condition_of_closed_loops() -> None:
    """A four-bar has one degree of freedom and condition 1; that of its open tree is larger."""
    robot = four_bar()
    q = robot.assemble([0.7])
    assert chasles.condition(robot, q) == 1.0
    of_tree = chasles.condition(robot, q, coordinates="tree")
    assert of_tree == pytest.approx(np.linalg.cond(robot.mass_matrix(q)))


def test_condition_at_the_door() -> None:
    with raises("E-CALL-056"):
        chasles.condition(puma560(), np.zeros(5))
    with raises("E-ACCURACY-001"):
        chasles.condition(puma560(), np.zeros((2, 6)))
    with raises("E-ACCURACY-001"):
        chasles.condition(puma560(), np.full(6, np.nan))
    with raises("E-ACCURACY-002"):
        chasles.condition(planar(1).lock({"joint1": 0.0}), [])


# Notes -----------------------------------------------------------------------------------------


def about_digits(robot: chasles.Robot) -> list[str]:
    return [note for note in robot.notes if DIGITS in note]


ASIDE = np.array([0.48, -0.6, 0.64])
MOMENTS = Symmetric(0.6, 0.65, 0.75, 0.03, -0.02, 0.01)


def far(distance: float) -> chasles.Robot:
    """Return a free body with a radius of gyration of about 1 m, at a distance from its frame."""
    source = random_tree(1, 0, floating=True, fixed=False).model.source
    inertia = RigidInertia.from_center(1.0, Vector(tuple((distance * ASIDE).tolist())), MOMENTS)
    links = (replace(source.links[0], inertia=inertia),)
    return chasles.Robot(replace(source, links=links, gravity=Vector.zero()))


def test_far_frames_are_noted() -> None:
    (note,) = about_digits(far(1000.0))
    assert note == (
        "link 'link1': the center of mass is 1000 radii of gyration from the joint, which can cost "
        "6 of 16 digits; move the joint's frame closer to the center of mass, or check the units "
        "of the inertia"
    )
    assert not about_digits(far(20.0))


def test_far_frames_lose_the_digits_they_say() -> None:
    """Errors of the angular acceleration due to a moment grow with the square of the distance."""
    errors = []
    push, moment = np.random.default_rng(2).normal(size=(2, 50, 3))
    for distance in (100.0, 1000.0):
        robot, c = far(distance), distance * ASIDE
        q, tau = robot.neutral(), np.hstack([np.cross(c, push) + moment, push])
        a = robot.forward_dynamics(q, np.zeros(6), tau)
        exact = np.linalg.solve(np.array(MOMENTS.matrix()), moment.T).T
        errors.append(np.mean(np.abs(a[:, :3] - exact)))
    assert 1.5 < np.log10(errors[1] / errors[0]) < 2.5
    assert 1e-14 < errors[0] < 1e-11


def light_gimbal(mass: float) -> chasles.Robot:
    """Return a robot with two joints on the same axis, and a light link between them."""
    source = planar(2).model.source
    ring = RigidInertia.from_center(mass, Vector.zero(), Symmetric(mass, mass, mass, 0.0, 0.0, 0.0))
    links = tuple(replace(k, inertia=ring) if k.name == "link1" else k for k in source.links)
    here = Transform(Rotation(), Vector.zero())
    joints = tuple(replace(j, pose=here) if j.name == "joint2" else j for j in source.joints)
    return chasles.Robot(replace(source, links=links, joints=joints))


def test_light_links_that_carry_heavy_ones_are_noted() -> None:
    (note,) = about_digits(light_gimbal(1e-8))
    assert note == (
        "joint 'joint1': link 'link1' is so light compared with the links it carries that forward "
        "dynamics can lose 8 of 16 digits; correct its inertia, give the joint an armature, "
        "or lock it"
    )
    assert not about_digits(light_gimbal(1e-3))


@pytest.mark.parametrize("name", [name for name in ROBOTS if name != "random_tree"])
def test_built_in_robots_are_sound(name: str) -> None:
    sizes = {"planar": (6,), "zigzag": (6,), "general_chain": (6,), "general_tree": (7, 2)}
    assert not about_digits(ROBOTS[name](*sizes.get(name, ())))


def test_published_robots_are_hardly_ever_noted() -> None:
    """Published URDF robots, with fixed or floating base, get no note about lost digits."""
    noted, loaded = {}, 0
    for path in sorted(FILES.glob("*/*/*.urdf")) + sorted(FILES.glob("*/*.urdf")):
        for floating in (False, True):
            try:
                robot = chasles.load(path, floating=floating, mimic=False)
            except chasles.ModelError:
                continue
            loaded += 1
            if about_digits(robot):
                noted[path.stem, floating] = about_digits(robot)
    assert loaded > 100
    assert not noted, noted


def test_maximal_dynamics_agrees_where_digits_are_kept() -> None:
    """For a very light link, results differ by about as much as the note predicts."""
    q, still, tau = np.array([0.3, 0.2]), np.zeros(2), np.array([1.0, 2.0])
    sound, light = (light_gimbal(mass) for mass in (1e-1, 1e-8))
    for robot, tolerance in ((sound, 1e-12), (light, 1e-6)):
        found, _ = chasles.maximal_dynamics(robot, q, still, tau)
        close(found, robot.forward_dynamics(q, still, tau), tolerance)
