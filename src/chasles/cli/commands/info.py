"""The command `chasles info`."""

import math
from functools import partial
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from chasles.cli.command import Answer, table, vector
from chasles.cli.options import Asked
from chasles.model import Body
from chasles.model.notes import grouped
from chasles.robot import Robot

MOST_NOTES = 50
"""Maximum number of notes shown."""


def info(asked: Asked) -> Answer:
    """Show a robot's joints, links, masses, frames and notes.

    Append arguments of a built-in robot after a colon, as in planar:4.

    Examples:
        chasles info puma560
        chasles info planar:4
        chasles info robot.urdf --floating --strict
        chasles info robot.xacro --argument arm=left --json
    """
    robot = asked.robot()
    return Answer(_facts(robot), partial(_show, robot))


def _facts(robot: Robot) -> dict[str, Any]:
    """Return the robot's properties in SI units.

    Entries `q` and `qd` of a joint are half-open index ranges.
    """
    source = robot.model.source
    return {
        "name": robot.name,
        "mass": robot.mass,
        "nq": robot.nq,
        "nv": robot.nv,
        "gravity": robot.gravity,
        "joints": [_joint(robot, i) for i in robot.model.in_file_order],
        "links": [
            {
                "name": link.name,
                "joint": _carrier(robot, link.name),
                "mass": link.inertia.m,
                "center": [h / link.inertia.m for h in link.inertia.h] if link.inertia.m else None,
            }
            for link in source.links
        ],
        "loops": [
            {"name": x.name, "type": x.kind, "parent": x.parent, "child": x.child}
            for x in source.loops
        ],
        "couplings": [
            {"name": x.name, "freedoms": x.freedoms, "rates": x.rates, "frames": x.frames}
            for x in source.couplings
        ],
        "frames": robot.frames,
        "tool": robot.tool,
        "notes": robot.notes,
    }


def _joint(robot: Robot, i: int) -> dict[str, Any]:
    body = robot.model.bodies[i]
    own = body.follow is None and body.drive is None
    spans = {
        "q": robot.model.position_slices[i] if own else None,
        "qd": robot.model.velocity_slices[i] if own else None,
    }
    mimic = body.follow and {
        "joint": robot.model.bodies[body.follow.leader].data.name,
        "ratio": body.follow.ratio,
        "offset": body.follow.offset,
    }
    return {
        "name": body.data.name,
        "type": _kind(body),
        "axis": list(body.data.axis) if _axis(body) else None,
        "lower": body.data.limits.lower,
        "upper": body.data.limits.upper,
        "effort": body.data.limits.effort,
        "velocity": body.data.limits.velocity,
        **{key: x and [x.start, x.stop] for key, x in spans.items()},
        "mimic": mimic,
    }


def _carrier(robot: Robot, link: str) -> str | None:
    """Return the joint that moves a link, or None for a link fixed to the world."""
    carrier = robot.model.frames[link].body
    return robot.model.bodies[carrier].data.name if carrier >= 0 else None


def _show(robot: Robot, console: Console) -> None:
    """Print joints, links, loops, frames and notes."""
    console.print(
        f"[bold]{escape(robot.name)}[/]: {robot.mass:.6g} kg, {len(robot.bodies)} links, "
        f"nq {robot.nq}, nv {robot.nv}, gravity {vector(robot.gravity)} m/s²"
    )
    rows = table(["q", "qd", "joint", "type", "axis", "limits"])
    for i in robot.model.in_file_order:
        body = robot.model.bodies[i]
        lower, upper = body.data.limits.lower, body.data.limits.upper
        unlimited = not (math.isfinite(lower) or math.isfinite(upper))
        limits = "" if unlimited else f"{lower:.3g} to {upper:.3g} {body.joint.units[0]}"
        name = f"[cyan]{escape(body.data.name)}[/]"
        rows.add_row(*_where(robot, i), name, _kind(body), _axis(body), limits)
    console.print(rows)
    rows = table(["link", "moved by"], ["mass kg", "center of mass (m)"])
    for link in robot.model.source.links:
        moved, m = _carrier(robot, link.name) or "(the world)", link.inertia.m
        center = vector([h / m for h in link.inertia.h]) if m else ""
        rows.add_row(f"[cyan]{escape(link.name)}[/]", escape(moved), f"{m:.5g}", center)
    console.print(rows)
    for loop in robot.model.source.loops:
        ends = f"{loop.parent or '(the world)'} to {loop.child}"
        console.print(f"[bold]loop[/] [cyan]{escape(loop.name)}[/]: {loop.kind}, {escape(ends)}")
    for coupling in robot.model.source.couplings:
        parts = (*coupling.freedoms, *coupling.rates, *coupling.frames)
        between = escape(", ".join(parts))
        console.print(f"[bold]coupling[/] [cyan]{escape(coupling.name)}[/]: between {between}")
    console.print(f"[bold]default frame[/] (tool): {escape(robot.tool)}")
    extra = [name for name in robot.frames if name not in set(robot.bodies)]
    if extra:
        console.print(f"[bold]other frames[/]: {escape(', '.join(extra))}")
    notes = grouped(robot.notes)
    if notes:
        console.print(f"[bold]notes[/] ({len(notes)})")
        lines = Table.grid(Column(), Column(overflow="fold"), padding=(0, 1))
        for note in notes[:MOST_NOTES]:
            lines.add_row("[yellow]•[/]", escape(note))
        console.print(lines)
    if robot.model.source.where:
        console.print("`chasles lint` also checks inertias, limits, meshes and names")
    if len(notes) > MOST_NOTES:
        console.print(f"and {len(notes) - MOST_NOTES} more (--json lists all)")


def _where(robot: Robot, i: int) -> tuple[str, str]:
    """Return a joint's entries in the table columns q and qd.

    The entries are index ranges, the formula of a mimic joint, or "prescribed motion".
    """
    follow = robot.model.bodies[i].follow
    if robot.model.bodies[i].drive is not None:
        return "prescribed motion", ""
    if follow is None:
        return _span(robot.model.position_slices[i]), _span(robot.model.velocity_slices[i])
    leader = _span(robot.model.position_slices[follow.leader])
    offset = f"{follow.offset:+g}" if follow.offset else ""
    return f"{follow.ratio:g}·q{leader}{offset}", ""


def _span(where: slice) -> str:
    return f"{where.start}" if where.stop - where.start == 1 else f"{where.start}:{where.stop}"


def _kind(body: Body) -> str:
    """Return the joint type, or the class name of a user-defined joint."""
    own = body.data.custom
    kind = body.data.kind if own is None else type(own).__name__
    return f"reversed {kind}" if body.data.reversed else kind


def _axis(body: Body) -> str:
    return vector(body.data.axis) if body.data.traits.along else ""
