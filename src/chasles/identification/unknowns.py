"""Unknowns in identification: joint terms, and bodies with ten inertial parameters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from chasles.robot import Robot

ENTRIES = ("mass", "hx", "hy", "hz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
"""Ten inertial parameters: mass, first moment, and inertia about the link frame's origin."""


@dataclass(frozen=True)
class At:
    """State of a joint with one degree of freedom, as arrays or as symbols.

    `q` is the position relative to the rest position of the joint's spring, `sign` is the sign of
    qd, and `slip` is the Stribeck velocity, a constant of the joint's friction.
    """

    q: Any
    qd: Any
    qdd: Any
    sign: Any
    slip: float


@dataclass(frozen=True)
class Term:
    """Kind of unknown joint coefficient, such as damping, for joints with one degree of freedom.

    The torque of the term is the coefficient times `column`, a function of the joint's state.

    Attributes
    ----------
    unit
        Unit of the unknown at a revolute joint.
    include
        Name in the option `include`.
    positive
        True if the unknown cannot be negative.
    written
        Name of the joint parameter to which the unknown is added, and the factor of the unknown in
        this sum.
    counted
        True if `inverse_dynamics` includes the parameter.
    dry
        True for friction whose torque at rest is not a function of the state.
    """

    column: Callable[[At], Any]
    unit: str
    include: str
    positive: bool = True
    written: tuple[str, float] | None = None
    counted: bool = False
    dry: bool = False


TERMS = {
    "armature": Term(
        lambda at: at.qdd, "kg m²", "armature", written=("armature", 1.0), counted=True
    ),
    "damping": Term(lambda at: at.qd, "N m s/rad", "damping", written=("damping", 1.0)),
    "friction": Term(lambda at: at.sign, "N m", "friction", written=("friction", 1.0), dry=True),
    "friction_forward": Term(
        lambda at: 0.5 * at.sign * (at.sign + 1.0),
        "N m",
        "asymmetric",
        written=("friction", 0.5),
        dry=True,
    ),
    "friction_backward": Term(
        lambda at: 0.5 * at.sign * (1.0 - at.sign),
        "N m",
        "asymmetric",
        written=("friction", 0.5),
        dry=True,
    ),
    "stribeck": Term(
        lambda at: at.sign / (1.0 + at.qd * at.qd * (1.0 / at.slip**2)),
        "N m",
        "stribeck",
        dry=True,
    ),
    "stiffness": Term(
        lambda at: at.q, "N m/rad", "stiffness", written=("stiffness", 1.0), counted=True
    ),
    "offset": Term(lambda at: 1.0, "N m", "offset", positive=False),
}
"""Joint terms, such as friction, by name, in the order of the unknowns."""

INCLUDED = tuple(dict.fromkeys(term.include for term in TERMS.values()))
"""Names of joint terms in the option `include`."""


def single_joints(robot: Robot) -> tuple[str, ...]:
    """Return the joints with one degree of freedom.

    Only these joints may have the terms in `TERMS`, such as armature, damping and friction.
    """
    places = {name: robot.velocity_slice(name) for name in robot.joints}
    return tuple(name for name, at in places.items() if at.stop - at.start == 1)


def pseudo_inertia(p: np.ndarray) -> np.ndarray:
    """Return the pseudo-inertia (4, 4) for a body's ten parameters."""
    m, h, (xx, yy, zz, xy, xz, yz) = p[0], p[1:4], p[4:]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    P = np.zeros((4, 4))
    P[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    P[:3, 3] = P[3, :3] = h
    P[3, 3] = m
    return P


def parameters(P: np.ndarray) -> np.ndarray:
    """Return the ten inertial parameters of a pseudo-inertia."""
    inertia = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia
    return np.array([P[3, 3], *P[:3, 3], xx, yy, zz, xy, xz, yz])


def moved(H: np.ndarray) -> np.ndarray:
    """Return the matrix (10, 10) that maps a body's parameters from one frame to another.

    `H` (4, 4) is the pose of the first frame in the second, or a reflection.
    """
    return np.column_stack([parameters(H @ pseudo_inertia(e) @ H.T) for e in np.eye(10)])


@dataclass(frozen=True)
class Body:
    """A body with ten unknown parameters.

    `nominal` contains the values of the parameters in the given robot. `parts` lists the moving
    bodies that share these parameters. Each entry is a body index and the matrix (10, 10) that
    transforms the parameters to the frame of the body's link. `attached` is the frame that carries
    the body if it is a payload, and None for a body of the robot.
    """

    name: str
    nominal: np.ndarray
    parts: tuple[tuple[int, np.ndarray], ...]
    attached: str | None = None


def moving_links(robot: Robot) -> tuple[str, ...]:
    """Return, for each moving body, the name of the link whose frame its parameters refer to."""
    return tuple(robot.model.bodies[i].name for i in robot.model.in_file_order)


def own_bodies(robot: Robot) -> tuple[Body, ...]:
    """Return the moving bodies of a robot, each with its own ten inertial parameters."""
    values = robot.inertial_parameters().reshape(-1, 10)
    links = moving_links(robot)
    return tuple(Body(links[k], values[k], ((k, np.eye(10)),)) for k in range(len(links)))


def pose_in_link(robot: Robot, frame: str) -> tuple[int, np.ndarray]:
    """Return the index of the moving body that carries a frame, and the frame's pose (4, 4).

    The pose is relative to the body's link. The index is -1 for a frame that does not move.
    """
    found = robot.model.frame(frame)
    places = robot.model.in_file_order
    if found.body not in places:
        return -1, np.eye(4)
    link = robot.model.frames[robot.model.bodies[found.body].name]
    of_link, of_frame = (np.array(each.placement.homogeneous.rows, float) for each in (link, found))
    return list(places).index(found.body), np.linalg.solve(of_link, of_frame)
