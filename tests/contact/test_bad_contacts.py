"""What is no contact is refused at the door, with a word on what would be one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from contact_bodies import ball

import chasles
from chasles import contact
from chasles.contact import HuntCrossley, Newton, Pair, Plane, Point, Rigid, SoftContact, Sphere

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
    "place": (lambda: Sphere("body", 0.1, (0.0, 0.0, np.nan)), "Sphere: center must be three fin"),
    "at": (lambda: Point("body", (0.0, 0.0)), "Point: at must be three finite numbers"),
    "text": (lambda: contact.Box("body", "big"), "Box: size must be three finite numbers"),
    "normal": (lambda: Plane(None, (0.0, np.nan, 1.0)), "Plane: normal must be three finite"),
    "friction": (lambda: Rigid("rough"), "Rigid: friction must be a number from 0 on"),
    "impact": (lambda: Rigid(0.5, impact=0.3), "Rigid: impact must be a law of impact"),
    "stiffness": (lambda: HuntCrossley("stiff", 0.3), "stiffness must be a finite positive"),
    "normal law": (lambda: SoftContact(1e5), "SoftContact: normal must be a law such as"),
    "coefficient": (lambda: SoftContact(HuntCrossley(1e5, 0.3), 0.5), "must be SoftFriction"),
    "two surfaces": (lambda: contact.TwoSoftSurfaces(1e5, 1e3), "give two of SoftSurface"),
    "bare law": (lambda: Pair(FOOT, Plane(), HuntCrossley(1e5, 0.3)), "must be Rigid.* or Soft"),
    "planes": (lambda: Pair(Plane("body"), Plane(), Rigid()), "no contact of Plane as body"),
    "one frame": (lambda: Pair(FOOT, Plane("body"), Rigid()), "both on frame 'body'"),
    "the world": (lambda: Pair(Point(None), Plane(), SOFT), "both in the world"),
    "no points": (
        lambda: Pair(contact.Box("body", (1.0, 1.0, 1.0)), BRICK, SOFT),
        "Box on Box has no fixed points of contact, which soft laws need",
    ),
    "cylinder on box": (
        lambda: Pair(contact.Cylinder("body", 0.1, (0, 0, 0), (0, 0, 1)), BRICK, Rigid()),
        r"Cylinder on Box is not known in motion.*\(ConvexMesh\) may serve.*cylinder.balls\(\)",
    ),
    "box on capsule": (
        lambda: Pair(
            contact.Box("body", (1, 1, 1)),
            contact.Capsule(None, 0.1, (0, 0, 0), (0, 0, 1)),
            Rigid(),
        ),
        "Box on Capsule is not known in motion.* the Capsule as body",
    ),
    "soft capsule on box": (
        lambda: Pair(contact.Capsule("body", 0.1, (0, 0, 0), (0, 0, 1)), BRICK, SOFT),
        "Capsule on Box has no fixed points of contact, which soft laws need",
    ),
    "simulate one": (lambda: moved(contacts=Pair(FOOT, Plane(), Rigid())), r"write \[pair\]"),
    "roll one": (lambda: rolled(contacts=Pair(FOOT, Plane(), SOFT)), r"write \[pair\]"),
    "states": (
        lambda: moved(contacts=[Pair(FOOT, Plane(), SOFT)], contact_states=np.zeros((2, 1))),
        r"leading shape \(2,\), which does not broadcast",
    ),
    "resume": (
        lambda: moved(
            contacts=[Pair(FOOT, Plane(), Rigid())] * 2,
            resume=moved(contacts=[Pair(FOOT, Plane(), Rigid())], steps=3).end,
        ),
        "resume is of another motion",
    ),
    "start": (lambda: rolled(start=None), "rollout: start must be a finite time"),
    "integrator": (lambda: rolled(integrator=["rk4"]), "rollout: unknown integrator"),
    "alone": (
        lambda: contact.contact_dynamics(ROBOT, STATE, STILL, STILL, touching()[0]),
        "contact_dynamics: contacts must be a list",
    ),
    "numbers": (
        lambda: contact.contact_problem(ROBOT, STATE, STILL, STILL, [1, 2]),
        "contact_problem: contacts must be a list",
    ),
    "hit alone": (
        lambda: contact.impact(ROBOT, STATE, STILL, touching()[0], Newton(0.5)),
        "impact: contacts must be a list",
    ),
    "hit by name": (
        lambda: contact.impact(ROBOT, STATE, STILL, touching(), "newton"),
        "impact: law must be a law of impact",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_contacts_are_named(name: str) -> None:
    make, message = WRONG[name]
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_pairs_may_come_in_anything() -> None:
    """From a generator as from a list, and none as None; places as arrays are the same places."""
    pairs = [Pair(Sphere("body", 0.3, np.zeros(3)), Plane(normal=[0, 0, 1]), SOFT)]
    assert pairs == [Pair(FOOT, Plane(), SOFT)]
    listed, once = moved(contacts=pairs), moved(contacts=(pair for pair in pairs))
    assert np.array_equal(listed.q, once.q)
    assert np.array_equal(moved(contacts=None).q, moved().q)
    assert contact.coulomb(np.zeros((0, 0)), [], []).shape == (0, 3)
