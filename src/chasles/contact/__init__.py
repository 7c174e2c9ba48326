"""Contact of rigid bodies: where they touch, what forces act, how they move.

from chasles import contact
ground, foot = contact.Plane(), contact.Sphere("foot", 0.02)
contacts = contact.contact_points(robot, q, qd, foot, ground, friction=0.8)
motion = contact.contact_dynamics(robot, q, qd, tau, contacts)  # qdd, forces

Featherstone (2008), chapter 11, and Coulomb's law beyond it.
"""

from chasles.contact.complementarity import Infeasible, Iterated, gauss_seidel, lemke
from chasles.contact.dynamics import ContactMotion, contact_dynamics
from chasles.contact.friction import (
    Inconsistent,
    Indeterminate,
    NoUniqueMotion,
    cone_gauss_seidel,
    cone_program,
    convex,
    coulomb,
    polyhedral,
    project,
)
from chasles.contact.geometry import (
    Box,
    Capsule,
    Contact,
    Ground,
    Plane,
    Point,
    Sphere,
    contact_points,
    minimal,
)
from chasles.contact.quadratic import accelerations_program, forces_program
from chasles.contact.rigid import (
    Motion,
    Problem,
    body_problem,
    contact_problem,
    single_contact,
    solve,
)
from chasles.contact.sets import Event, Sets, State, events, held, new_sets, state, without

__all__ = [
    "Box",
    "Capsule",
    "Contact",
    "ContactMotion",
    "Event",
    "Ground",
    "Inconsistent",
    "Indeterminate",
    "Infeasible",
    "Iterated",
    "Motion",
    "NoUniqueMotion",
    "Plane",
    "Point",
    "Problem",
    "Sets",
    "Sphere",
    "State",
    "accelerations_program",
    "body_problem",
    "cone_gauss_seidel",
    "cone_program",
    "contact_dynamics",
    "contact_points",
    "contact_problem",
    "convex",
    "coulomb",
    "events",
    "forces_program",
    "gauss_seidel",
    "held",
    "lemke",
    "minimal",
    "new_sets",
    "polyhedral",
    "project",
    "single_contact",
    "solve",
    "state",
    "without",
]
