"""Estimation of physically consistent parameters, with a prior and constraints on masses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.identification.consistent import LEAST, Kind, Prior, Problem, matrices, prior, solved
from chasles.identification.linear import LinearModel
from chasles.identification.log_cholesky import log_cholesky
from chasles.identification.regression import Factors, Fit
from chasles.identification.shapes import (
    REGIONS,
    Enclosing,
    inequalities,
    inside,
    mirrored,
    regions,
)
from chasles.identification.unknowns import (
    TERMS,
    Body,
    moved,
    moving_links,
    own_bodies,
    parameters,
    pose_in_link,
)
from chasles.identification.written import link_values
from chasles.model.given import a_mapping, a_name, a_number
from chasles.model.spaces import size
from chasles.robot import Robot

WEIGHED = 1e-3
"""Relative standard deviation of a given total mass."""

GUESS = 0.05
"""Expected mass and radius of gyration of a payload, relative to the robot's mass and size."""


@dataclass(frozen=True)
class Constraints:
    """Optional constraints: total mass (kg) of the moving bodies, and shapes that enclose them."""

    total_mass: float | None = None
    enclosed: Enclosing | None = None


def checked_constraints(total_mass: Any, enclosed: Any) -> Constraints:
    """Return the constraints; raise an error for invalid values."""
    if total_mass is not None:
        total_mass = a_number("total_mass", total_mass, "identify")
        if not total_mass > 0.0:
            problem = f"`total_mass` must be positive, not {total_mass:g}"
            raise InputError("E-IDENT-023", problem, "pass the mass in kg", part="identify")
    if enclosed is not None and a_name("enclosed", enclosed, "identify") not in REGIONS:
        problem = f"`enclosed` must be {' or '.join(map(repr, REGIONS))}, not {enclosed!r:.60}"
        raise InputError("E-IDENT-024", problem, part="identify")
    return Constraints(total_mass, enclosed)


def unknown_bodies(
    robot: Robot, payload: str | None, symmetry: Mapping[str, str] | None
) -> tuple[Robot, tuple[Body, ...] | None]:
    """Return the robot, and the bodies whose parameters are unknown (None: all bodies).

    With a payload, only the payload has unknown parameters. With symmetry, a pair of links counts
    as one body, and the second link of each pair in the returned robot has the parameters of the
    first.
    """
    if payload is not None:
        index, pose = pose_in_link(robot, a_name("payload", payload, "identify"))
        if index < 0:
            problem = f"frame {payload!r} does not move"
            raise InputError(
                "E-IDENT-025", problem, "pass the name of a frame on a moving link", part="payload"
            )
        return robot, (Body("payload", np.zeros(10), ((index, moved(pose)),), payload),)
    if not symmetry:
        return robot, None
    links, repeated = moving_links(robot), dict[str, list[tuple[int, np.ndarray]]]()
    pairs = a_mapping("symmetry", symmetry, "identify")
    for left, right in pairs.items():
        for name in (left, right):
            if name not in links or [*pairs, *pairs.values()].count(name) > 1:
                problem = f"{name!r} is not a moving link, or is named twice"
                remedy = "name every link once, for example {'left_thigh': 'right_thigh'}"
                raise InputError("E-IDENT-026", problem, remedy, part="symmetry")
        repeated[left] = [(links.index(right), mirrored(robot, left, right))]
    bodies = tuple(
        Body(body.name, body.nominal, (*body.parts, *repeated.get(body.name, ())))
        for body in own_bodies(robot)
        if body.name not in pairs.values()
    )

    return robot.with_parameters(link_values(robot, bodies, [b.nominal for b in bodies])), bodies


def consistent(
    model: LinearModel,
    factors: Factors,
    fit: Fit,
    kind: Kind,
    deviation: float,
    constraints: Constraints,
) -> tuple[Prior, np.ndarray]:
    """Return the prior, and the physically consistent solution as coordinates z (see `Prior`)."""
    if kind == "log-cholesky" and constraints.enclosed is not None:
        unable = "prior 'log-cholesky' cannot keep masses within shapes"
        raise InputError("E-IDENT-046", unable, "use prior='pull-back'", part="identify")
    start = _prior(model)
    R = factors.joined(fit.noise)
    rows, right = R[:-1, :-1], R[:-1, -1]
    if constraints.total_mass is not None:
        row, b = _weighed(model, constraints.total_mass)
        rows, right = np.vstack([rows, row]), np.append(right, b)
    A, b = rows @ start.map, right - rows @ start.nominal
    G, within = _inequalities(model, start, constraints)
    g = G @ start.nominal
    problem = Problem(A, b, start.bodies, deviation, G @ start.map, g, within)
    if kind != "log-cholesky":
        return start, solved(problem, kind)
    return start, log_cholesky(problem, solved(problem, "pull-back"))


def _prior(model: LinearModel) -> Prior:
    """Return the prior: the robot's own parameters, and assumed parameters of a payload."""
    robot, nominal = model.robot, model.nominal.copy()
    own = robot.inertial_parameters()[::10]
    typical = float(np.max(np.abs(own), initial=0.0)) or 1.0
    length = size(robot.model)
    for k, body in enumerate(model.bodies):
        if body.attached is not None:
            radii = np.append(np.full(3, (GUESS * length) ** 2), 1.0)
            nominal[10 * k : 10 * k + 10] = parameters(GUESS * np.sum(own) * np.diag(radii))
    return prior(nominal, len(model.bodies), typical, length)


def _weighed(model: LinearModel, mass: float) -> tuple[np.ndarray, float]:
    """Return the total-mass equation (row, right-hand side), divided by its standard deviation."""
    row = np.zeros(len(model.names))
    for k, body in enumerate(model.bodies):
        row[10 * k] = len(body.parts)
    known = float(np.sum(model.robot.inertial_parameters()[::10]) - row @ model.nominal)
    return row / (WEIGHED * mass), (mass - known) / (WEIGHED * mass)


def _inequalities(
    model: LinearModel, start: Prior, constraints: Constraints
) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix G of the constraints G x >= 0 on parameters x, and a feasible point z.

    The point is given by its coordinates z (see `Prior`), and satisfies all constraints strictly.
    """
    n, bodies = len(model.names), len(model.bodies)
    rows, z = [], np.zeros(n)
    for k, (kind, _) in enumerate(model.unknowns):
        if TERMS[kind].positive:
            rows.append(np.eye(n)[10 * bodies + k])
            z[10 * bodies + k] = 1.0
    if constraints.enclosed is None:
        return np.array(rows).reshape(-1, n), z
    found = regions(model.robot, constraints.enclosed)
    for k, body in enumerate(model.bodies):
        at = slice(10 * k, 10 * k + 10)
        within = None if body.attached else inside(body, found)
        if within is None:
            continue
        own = inequalities(body, found)
        own = own / np.linalg.norm(own @ start.map[at, at], axis=1, keepdims=True)
        if np.min(own @ within) <= 0.0:
            problem = (
                f"the shapes of {body.name!r} overlap too little with the mirrored shapes of "
                "the paired link"
            )
            raise InputError("E-IDENT-027", problem, "omit `enclosed`", part="symmetry")
        for each in own:
            rows.append(np.zeros(n))
            rows[-1][at] = each
        z[at] = _large_enough(start, at, within)
    return np.array(rows).reshape(-1, n), z


def _large_enough(start: Prior, at: slice, p: np.ndarray) -> np.ndarray:
    """Multiply the parameters p of one body by a factor, and return the product's coordinates z.

    The factor is increased until all eigenvalues of 1 + Z exceed `2 * LEAST`, where Z is the
    relative change of the pseudo-inertia for the coordinates z (see `Prior`).
    """
    own = start.map[at, at]
    factor = max(float(start.nominal[at][0] / p[0]), 1e-3)
    while True:
        z = np.linalg.solve(own, factor * p - start.nominal[at])
        if np.linalg.eigvalsh(matrices(z, 1))[0, 0] > 2.0 * LEAST:
            return np.asarray(z)
        factor *= 4.0
