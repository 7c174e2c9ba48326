"""HTML table of a robot's joints, and its notes, for notebooks."""

import html
import math
from collections.abc import Iterable

from chasles.errors import shown
from chasles.model import Model
from chasles.model.notes import grouped

MOST_ROWS = 60
"""Maximum number of joints in the table."""

MOST_NOTES = 10
"""Maximum number of notes below the table."""


def as_html(model: Model, title: str, tool: str, notes: Iterable[str]) -> str:
    """Return a title, a table of joint types, links and limits, and grouped notes as HTML."""
    rows = [_row(model, i) for i in model.movers[:MOST_ROWS]]
    more = len(model.movers) - len(rows)
    rows += [f'<tr><td colspan="5">{more} more joints</td></tr>'] * (more > 0)
    mass = sum(float(body.inertia.m) for body in model.bodies)
    lines = grouped(notes)
    told = [html.escape(shown(note)) for note in lines[:MOST_NOTES]]
    told += [f"{len(lines) - MOST_NOTES} more in robot.notes"] * (len(lines) > MOST_NOTES)
    head = "".join(f"<th>{name}</th>" for name in ("joint", "type", "from", "to", "limits"))
    return (
        f"<div><b>{html.escape(title)}</b>, moving mass {mass:.4g} kg, "
        f"tool {html.escape(shown(tool))}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        f"{''.join(f'<p>Note: {note}</p>' for note in told)}</div>"
    )


def _row(model: Model, i: int) -> str:
    data, joint, limits = model.bodies[i].data, model.bodies[i].joint, model.limits[i]
    bounded = len(joint.units) == 1 and math.isfinite(limits.upper - limits.lower)
    span = f"{limits.lower:.4g} to {limits.upper:.4g} {joint.units[0]}" if bounded else ""
    cells = (data.name, data.kind, data.parent or "world", data.child, span)
    return "<tr>" + "".join(f"<td>{html.escape(shown(cell))}</td>" for cell in cells) + "</tr>"
