"""What a robot's frame can do at its positions: manipulability, condition, workspace."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from chasles.errors import InputError
from chasles.plots.paper import Axes, finish, new
from chasles.plots.subject import (
    ROWS,
    Rows,
    Subject,
    frame_of,
    open_tree,
    path,
    span,
    state,
    times,
    unit,
)

Plane = Literal["xy", "xz", "yz", "3d"]
"""Where points are shown: along the axis that is left out, or in space."""

_CLOSED = "its Jacobian is that of the tree; plot a robot without them"


def singular_values(robot: Subject, q: np.ndarray, frame: str, rows: Rows) -> np.ndarray:
    """Of the Jacobian's rows, axes of the world, at the frame: (..., min(rows, nv)), falling."""
    if rows not in ROWS:
        raise InputError("E-PLOT-007", f"rows are {', '.join(map(repr, ROWS))}, not {rows!r}")
    if not robot.nv:
        raise InputError("E-PLOT-008", f"robot {robot.name!r} has no freedoms, so no Jacobian")
    J = robot.jacobian(q, frame=frame)[..., ROWS[rows], :]
    return np.linalg.svd(J, compute_uv=False)


def manipulability(
    robot: Subject,
    q: Any,
    frame: str | None,
    joints: Sequence[str] | None,
    rows: Rows,
    t: Any,
    points: int,
    axes: Axes | None,
) -> Axes:
    """The product of the Jacobian's singular values along a path, or over two joints."""
    open_tree(robot, "manipulability", _CLOSED)
    chosen = frame_of(robot, frame)
    title = f"manipulability of {chosen!r}, {rows}"
    if joints is None:
        states = path("q", q, robot.nq)
        instants, across = times(t, len(states))
        values = np.prod(singular_values(robot, states, chosen, rows), axis=-1)
        drawn = new(axes)
        drawn.plot(instants, values)
        drawn.set_ylim(bottom=0.0)
        return finish(drawn, title, across)
    if t is not None:
        raise InputError("E-PLOT-009", "t belongs to a path", "leave out t, or joints")
    first, second, states = swept(robot, q, joints, points)
    values = np.prod(singular_values(robot, states, chosen, rows), axis=-1)
    drawn = new(axes)
    filled = drawn.contourf(first, second, values.T, levels=20)
    drawn.figure.colorbar(filled, ax=drawn)
    labels = [f"{joint} ({unit(robot, joint)})" for joint in joints]
    return finish(drawn, title, *labels)


def swept(
    robot: Subject, q: Any, joints: Sequence[str], points: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions of two joints between their limits, and all states (points, points, nq) of them."""
    if isinstance(joints, str) or len(joints) != 2 or joints[0] == joints[1]:
        raise InputError("E-PLOT-010", f"joints must be the names of two joints, not {joints!r}")
    if points < 2:
        raise InputError("E-PLOT-011", f"points must be 2 or more, not {points}")
    sides = [np.linspace(*span(robot, joint), points) for joint in joints]
    states = np.tile(state(robot, q), (points, points, 1))
    for values, joint in zip(np.meshgrid(*sides, indexing="ij"), joints, strict=True):
        states[..., robot.position_slice(joint)] = values[..., None]
    return sides[0], sides[1], states


def condition(
    robot: Subject,
    q: Any,
    of: Literal["mass_matrix", "jacobian"],
    frame: str | None,
    rows: Rows,
    t: Any,
    axes: Axes | None,
) -> Axes:
    """The largest singular value by the smallest at each instant, where it is not infinite."""
    states = path("q", q, robot.nq)
    instants, across = times(t, len(states))
    if of == "mass_matrix":
        values = np.linalg.svd(robot.mass_matrix(states, coordinates="independent"))[1]
        title = "condition of the mass matrix"
    elif of == "jacobian":
        open_tree(robot, "condition", _CLOSED)
        chosen = frame_of(robot, frame)
        values = singular_values(robot, states, chosen, rows)
        title = f"condition of the Jacobian of {chosen!r}, {rows}"
    else:
        raise InputError("E-PLOT-012", f"of is 'mass_matrix' or 'jacobian', not {of!r}")
    if not values.shape[-1]:
        raise InputError("E-PLOT-013", f"robot {robot.name!r} has no freedoms, so no mass matrix")
    low = values[..., -1] > np.finfo(float).eps * values[..., 0]
    ratio = np.divide(values[..., 0], values[..., -1], out=np.full(len(low), np.nan), where=low)
    drawn = new(axes)
    drawn.semilogy(instants, ratio)
    return finish(drawn, title, across)


def workspace(
    robot: Subject,
    frame: str | None,
    q: Any,
    samples: int,
    seed: int,
    plane: Plane,
    axes: Axes | None,
) -> Axes:
    """Where a frame's origin is at random positions, or at those that are given."""
    if plane not in ("xy", "xz", "yz", "3d"):
        raise InputError("E-PLOT-014", f"plane is 'xy', 'xz', 'yz' or '3d', not {plane!r}")
    chosen = frame_of(robot, frame)
    if q is None:
        open_tree(robot, "workspace", "give positions that close them as q, from robot.assemble")
        if samples < 2:
            raise InputError("E-PLOT-015", f"samples must be 2 or more, not {samples}")
        q = robot.random(np.random.default_rng(seed), size=samples)
    points = robot.forward_kinematics(path("q", q, robot.nq), frame=chosen)[:, :3, 3]
    title = f"positions of {chosen!r} (m)"
    if plane == "3d":
        drawn = new(axes, "3d")
        drawn.scatter(*points.T, s=2.0, alpha=0.4, c=points[:, 2])
        drawn.set_zlabel("z")
        drawn.set_aspect("equal")
        return finish(drawn, title, "x", "y")
    drawn = new(axes)
    across, up = ("xyz".index(letter) for letter in plane)
    drawn.plot(points[:, across], points[:, up], ".", markersize=2.0, alpha=0.4)
    drawn.set_aspect("equal")
    return finish(drawn, title, plane[0], plane[1])
