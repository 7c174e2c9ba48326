"""Invalid contacts are rejected with messages that contain a remedy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from contact_bodies import ball
from support import raises

import chasles
from chasles import contact
from chasles.contact import HuntCrossley, Newton, Pair, Plane, Point, Rigid, SoftContact, Sphere
from chasles.expr import RULES, Arena
from chasles.motion.geometry.closed_forms import less, less_equal, maximum, minimum, select

ROBOT, STATE, STILL = ball(), np.array([1.0, 0, 0, 0, 0, 0, 0.3]), np.zeros(6)
BRICK = contact.Box(None, (1.0, 1.0, 1.0))
FOOT, SOFT = Sphere("body", 0.3), SoftContact(contact.SoftSurface(1e5, 1e3))


def moved(**options: Any) -> Any:
    return chasles.simulate(ROBOT, STATE, STILL, **{"duration": 0.01, **options})


def rolled(**options: Any) -> Any:
    return ROBOT.rollout(STATE, STILL, dt=1e-3, steps=3, **options)


def touching() -> list[contact.Contact]:
    return contact.contact_points(ROBOT, STATE, STILL, FOOT, Plane())


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "place": (lambda: Sphere("body", 0.1, (0.0, 0.0, np.nan)), "E-CONTACT-001"),
    "at": (lambda: Point("body", (0.0, 0.0)), "E-CONTACT-001"),
    "far": (lambda: Point("body", (1e300, 0.0, 0.0)), "E-CONTACT-001 1e+300"),
    "text": (lambda: contact.Box("body", "big"), "E-CONTACT-001"),
    "normal": (lambda: Plane(None, (0.0, np.nan, 1.0)), "E-CONTACT-001"),
    "friction": (lambda: Rigid("rough"), "E-CONTACT-042"),
    "impact": (lambda: Rigid(0.5, impact=0.3), "E-CONTACT-060"),
    "stiffness": (lambda: HuntCrossley("stiff", 0.3), "E-CONTACT-088"),
    "normal law": (lambda: SoftContact(1e5), "E-CONTACT-080"),
    "coefficient": (lambda: SoftContact(HuntCrossley(1e5, 0.3), 0.5), "E-CONTACT-081"),
    "two surfaces": (lambda: contact.TwoSoftSurfaces(1e5, 1e3), "E-CONTACT-085"),
    "bare law": (lambda: Pair(FOOT, Plane(), HuntCrossley(1e5, 0.3)), "E-CONTACT-043"),
    "planes": (lambda: Pair(Plane("body"), Plane(), Rigid()), "E-CONTACT-051"),
    "one frame": (lambda: Pair(FOOT, Plane("body"), Rigid()), "E-CONTACT-045 'body'"),
    "the world": (lambda: Pair(Point(None), Plane(), SOFT), "E-CONTACT-045"),
    "no points": (
        lambda: Pair(contact.Box("body", (1.0, 1.0, 1.0)), BRICK, SOFT),
        "E-CONTACT-046",
    ),
    "cylinder on box": (
        lambda: Pair(contact.Cylinder("body", 0.1, (0, 0, 0), (0, 0, 1)), BRICK, Rigid()),
        "E-CONTACT-047",
    ),
    "box on capsule": (
        lambda: Pair(
            contact.Box("body", (1, 1, 1)),
            contact.Capsule(None, 0.1, (0, 0, 0), (0, 0, 1)),
            Rigid(),
        ),
        "E-CONTACT-047",
    ),
    "soft capsule on box": (
        lambda: Pair(contact.Capsule("body", 0.1, (0, 0, 0), (0, 0, 1)), BRICK, SOFT),
        "E-CONTACT-046",
    ),
    "simulate one": (lambda: moved(contacts=Pair(FOOT, Plane(), Rigid())), "E-MOTION-006"),
    "roll one": (lambda: rolled(contacts=Pair(FOOT, Plane(), SOFT)), "E-MOTION-006"),
    "states": (
        lambda: moved(contacts=[Pair(FOOT, Plane(), SOFT)], contact_states=np.zeros((2, 1))),
        "E-MOTION-068 (2,)",
    ),
    "resume": (
        lambda: moved(
            contacts=[Pair(FOOT, Plane(), Rigid())] * 2,
            resume=moved(contacts=[Pair(FOOT, Plane(), Rigid())], steps=3).end,
        ),
        "E-MOTION-058",
    ),
    "start": (lambda: rolled(start=None), "E-MOTION-022"),
    "integrator": (lambda: rolled(integrator=["rk4"]), "E-MOTION-016"),
    "alone": (
        lambda: contact.contact_dynamics(ROBOT, STATE, STILL, STILL, touching()[0]),
        "E-CONTACT-024 contact_dynamics",
    ),
    "numbers": (
        lambda: contact.contact_problem(ROBOT, STATE, STILL, STILL, [1, 2]),
        "E-CONTACT-024 contact_problem",
    ),
    "hit alone": (
        lambda: contact.impact(ROBOT, STATE, STILL, touching()[0], Newton(0.5)),
        "E-CONTACT-024",
    ),
    "hit by name": (
        lambda: contact.impact(ROBOT, STATE, STILL, touching(), "newton"),
        "E-CONTACT-060",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_contacts_are_named(name: str) -> None:
    make, message = WRONG[name]
    with raises(message):
        make()


def test_pairs_may_come_in_anything() -> None:
    """Pairs may come from a list or a generator, and None means no pairs.

    A place given as an array equals the same place given as a tuple.
    """
    pairs = [Pair(Sphere("body", 0.3, np.zeros(3)), Plane(normal=[0, 0, 1]), SOFT)]
    assert pairs == [Pair(FOOT, Plane(), SOFT)]
    listed, once = moved(contacts=pairs), moved(contacts=(pair for pair in pairs))
    assert np.array_equal(listed.q, once.q)
    assert np.array_equal(moved(contacts=None).q, moved().q)
    assert contact.coulomb(np.zeros((0, 0)), [], []).shape == (0, 3)


def test_numbers_of_laws_are_floats() -> None:
    """Any real type gives the same law, and traced programs can compare the parameters."""
    for number in (np.array(0.5), np.float32(0.5), 0.5):
        law = Rigid(number, number, torsion=number, rolling=number)
        assert law == Rigid(0.5, 0.5, torsion=0.5, rolling=0.5)
        assert {type(law.friction), type(law.torsion)} == {float}
        other = contact.Compliant(number, friction=number)
        assert {type(other.stiffness), type(other.friction)} == {float}
        assert type(contact.SoftSurface(number, 1).damping) is float


@pytest.mark.parametrize("number", [np.float64(2.0), np.array(2.0)])
def test_symbols_are_compared_with_any_number(number: Any) -> None:
    x = Arena(RULES).input("x", 0)
    for operation in (less, less_equal, maximum, minimum):
        assert operation(x, number) is operation(x, 2.0)
        assert operation(number, x) is operation(2.0, x)
    assert select(x, number, 1.0) is select(x, 2.0, 1.0)
