"""Contact between bodies: contact points, forces and motion; impact and soft contact.

from chasles import contact
ground, foot = contact.Plane(), contact.Sphere("foot", 0.02)
contacts = contact.contact_points(robot, q, qd, foot, ground, friction=0.8)
motion = contact.contact_dynamics(robot, q, qd, tau, contacts)  # qdd, forces
after = contact.impact(robot, q, qd, contacts, contact.Stronge(0.5, 0.8))  # qd, impulses
law = contact.SoftContact(contact.HuntCrossley(5e4, 0.3))  # forces from gap and rate

For contact without friction, see Featherstone (2008), chapter 11.
"""

from chasles.mechanisms.sensing import ContactForce
from chasles.motion.contact.dynamics import (
    ContactMotion,
    Motion,
    Problem,
    State,
    body_problem,
    contact_dynamics,
    contact_problem,
    single_contact,
    solve,
    state,
)
from chasles.motion.contact.from_file import file_pairs
from chasles.motion.contact.impact import Impact, impact, impact_derivatives, velocity_step
from chasles.motion.contact.modes import Event, Sets, events, held, new_sets, without
from chasles.motion.contact.pairs import Compliant, Pair, Rigid
from chasles.motion.geometry.closed_forms import Box, Capsule, Ground, Plane, Point, Sphere
from chasles.motion.geometry.features import minimal
from chasles.motion.geometry.fields import HeightField
from chasles.motion.geometry.kinematics import Contact
from chasles.motion.geometry.patches import contact_points
from chasles.motion.geometry.shapes import ConvexMesh, Cylinder
from chasles.motion.laws.approximations import cone_gauss_seidel, polyhedral
from chasles.motion.laws.friction import cone_program, convex, coulomb, project
from chasles.motion.laws.restitution import (
    ImpactLaw,
    Moreau,
    Newton,
    Poisson,
    Sticking,
    Stronge,
    collide,
    contact_forces,
)
from chasles.motion.laws.soft import (
    AzadFeatherstone,
    HuntCrossley,
    NormalLaw,
    SoftContact,
    SoftFriction,
    SoftSurface,
    TwoSoftSurfaces,
)
from chasles.motion.laws.viscoelastic import StandardSolid
from chasles.motion.solvers import (
    Inconsistent,
    Indeterminate,
    Infeasible,
    Iterated,
    NoUniqueMotion,
    accelerations_program,
    forces_program,
    gauss_seidel,
    lemke,
)

__all__ = [
    "AzadFeatherstone",
    "Box",
    "Capsule",
    "Compliant",
    "Contact",
    "ContactForce",
    "ContactMotion",
    "ConvexMesh",
    "Cylinder",
    "Event",
    "Ground",
    "HeightField",
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
    "StandardSolid",
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
    "file_pairs",
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
