"""Contact of bodies: where they touch, what forces act, how they move; impact and soft contact.

from chasles import contact
ground, foot = contact.Plane(), contact.Sphere("foot", 0.02)
contacts = contact.contact_points(robot, q, qd, foot, ground, friction=0.8)
motion = contact.contact_dynamics(robot, q, qd, tau, contacts)  # qdd, forces
after = contact.impact(robot, q, qd, contacts, contact.Stronge(0.5, 0.8))  # qd, impulses
law = contact.SoftContact(contact.HuntCrossley(5e4, 0.3))  # forces from gap and rate

Featherstone (2008), chapter 11, and Coulomb's law beyond it.
"""

from chasles.motion.contact.dynamics import ContactMotion, contact_dynamics
from chasles.motion.contact.impact import Impact, collide, contact_forces, impact, velocity_step
from chasles.motion.contact.impact_map import impact_derivatives
from chasles.motion.contact.pairs import Pair, Rigid
from chasles.motion.contact.rigid import (
    Motion,
    Problem,
    body_problem,
    contact_problem,
    single_contact,
    solve,
)
from chasles.motion.contact.sets import Event, Sets, State, events, held, new_sets, state, without
from chasles.motion.geometry.closed_forms import (
    Box,
    Capsule,
    Contact,
    Ground,
    Plane,
    Point,
    Sphere,
    minimal,
)
from chasles.motion.geometry.points import contact_points
from chasles.motion.geometry.shapes import ConvexMesh, Cylinder
from chasles.motion.laws.friction import (
    Inconsistent,
    Indeterminate,
    NoUniqueMotion,
    cone_gauss_seidel,
    convex,
    coulomb,
    polyhedral,
)
from chasles.motion.laws.moreau import Moreau
from chasles.motion.laws.restitution import ImpactLaw, Newton, Poisson, Sticking, Stronge
from chasles.motion.laws.soft import SoftContact, SoftFriction
from chasles.motion.laws.soft_normal import (
    AzadFeatherstone,
    HuntCrossley,
    NormalLaw,
    SoftSurface,
    TwoSoftSurfaces,
)
from chasles.motion.solvers.complementarity import Infeasible, Iterated, gauss_seidel, lemke
from chasles.motion.solvers.cones import cone_program, project
from chasles.motion.solvers.quadratic import accelerations_program, forces_program

__all__ = [
    "AzadFeatherstone",
    "Box",
    "Capsule",
    "Contact",
    "ContactMotion",
    "ConvexMesh",
    "Cylinder",
    "Event",
    "Ground",
    "HuntCrossley",
    "Impact",
    "ImpactLaw",
    "Inconsistent",
    "Indeterminate",
    "Infeasible",
    "Iterated",
    "Moreau",
    "Motion",
    "Newton",
    "NoUniqueMotion",
    "NormalLaw",
    "Pair",
    "Plane",
    "Point",
    "Poisson",
    "Problem",
    "Rigid",
    "Sets",
    "SoftContact",
    "SoftFriction",
    "SoftSurface",
    "Sphere",
    "State",
    "Sticking",
    "Stronge",
    "TwoSoftSurfaces",
    "accelerations_program",
    "body_problem",
    "collide",
    "cone_gauss_seidel",
    "cone_program",
    "contact_dynamics",
    "contact_forces",
    "contact_points",
    "contact_problem",
    "convex",
    "coulomb",
    "events",
    "forces_program",
    "gauss_seidel",
    "held",
    "impact",
    "impact_derivatives",
    "lemke",
    "minimal",
    "new_sets",
    "polyhedral",
    "project",
    "single_contact",
    "solve",
    "state",
    "velocity_step",
    "without",
]
