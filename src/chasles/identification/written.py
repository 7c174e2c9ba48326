"""Conversion of identified values to robot parameters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.identification.linear import LinearModel
from chasles.identification.unknowns import TERMS, Body, moving_links, pseudo_inertia
from chasles.robot import Robot


def written(model: LinearModel, x: np.ndarray) -> tuple[Robot, dict[str, Any]]:
    """Return the robot with the identified values, and a dict of these values by parameter name."""
    robot, count = model.robot, 10 * len(model.bodies)
    values = x[:count].reshape(-1, 10)
    own = [k for k, body in enumerate(model.bodies) if body.attached is None]
    found = link_values(robot, [model.bodies[k] for k in own], [values[k] for k in own])
    found |= _joint_values(model, x[count:])
    changed = robot.with_parameters(found)
    for body, p in zip(model.bodies, values, strict=True):
        if body.attached is not None:
            mass, center, inertia = _about_center(p)
            changed = changed.attach(
                body.attached, mass=mass, center=center, inertia=inertia, name=body.name
            )
            found |= {f"{body.name}.mass": mass, f"{body.name}.center": center}
            found[f"{body.name}.inertia"] = inertia
    return changed, found


def _about_center(p: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Convert ten parameters to mass, center of mass, and inertia about the center of mass."""
    P = pseudo_inertia(p)
    m, c = float(P[3, 3]), P[:3, 3] / P[3, 3]
    second = P[:3, :3] - m * np.outer(c, c)
    return m, c, np.trace(second) * np.eye(3) - second


def link_values(
    robot: Robot, bodies: Sequence[Body], values: Sequence[np.ndarray]
) -> dict[str, Any]:
    """Return mass, center of mass and inertia of links, by parameter name.

    A body's mass is assigned to its main link; the other links of the body become massless.
    """
    links, found = moving_links(robot), dict[str, Any]()
    carried = _carried(robot)
    for body, p in zip(bodies, values, strict=True):
        for index, T in body.parts:
            link = links[index]
            mass, center, inertia = _about_center(T @ p)
            found |= {f"{link}.mass": mass, f"{link}.center": center, f"{link}.inertia": inertia}
            for other in carried[link]:
                found |= {f"{other}.mass": 0.0, f"{other}.inertia": np.zeros((3, 3))}
    return found


def _carried(robot: Robot) -> dict[str, list[str]]:
    """Return, for the main link of each moving body, the body's other links that have mass."""
    found: dict[str, list[str]] = {link: [] for link in moving_links(robot)}
    for data in robot.model.source.links:
        body = robot.model.frames[data.name].body
        owner = robot.model.bodies[body].name if body in robot.model.in_file_order else None
        if owner is not None and owner != data.name and data.inertia.m:
            found[owner].append(data.name)
    return found


def _joint_values(model: LinearModel, x: np.ndarray) -> dict[str, float]:
    """Return joint parameters by name, from the joint terms that determine them."""
    found: dict[str, float] = {}
    for (kind, joint), value in zip(model.unknowns, x, strict=True):
        row = TERMS[kind].written
        if row is not None:
            name, factor = f"{joint}.{row[0]}", row[1]
            found[name] = found.get(name, 0.0) + factor * float(value)
    return found
