"""Report of an identification as an HTML page: torques, residuals, parameters, validation."""

import base64
import html
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from chasles.errors import escaped
from chasles.identification.equations import Sample
from chasles.identification.result import Identified
from chasles.identification.samples import external

SHOWN = 2000
"""Maximum number of plotted samples."""

STYLE = (
    "body{font:15px sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:right;"
    "border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}img{max-width:100%}"
)


Errors = Mapping[str, Sequence[float]]
"""Rms error of each torque (N m or N), for "training" and "validation" logs."""


def errors(found: Identified, samples: Iterable[Sample]) -> list[float]:
    """Return the identified robot's rms error of each torque, as `Identified.validate` defines it.

    Blocks of `SHOWN` samples bound the memory use.
    """
    squares = counts = np.zeros(len(found.noise))
    for sample in samples:
        for k in range(0, len(sample[0]), SHOWN):
            q, qd, qdd, tau, loads = (array[k : k + SHOWN] for array in sample)
            moving = found.model.moving(q, qd).sum(axis=0)
            error = found.validate(q, qd, qdd, tau, f_ext=external(found.model.wrenches, loads))
            squares, counts = squares + moving * error**2, counts + moving
    return [float(x) for x in np.sqrt(squares / np.maximum(counts, 1))]


def torques(found: Identified, errors: Errors) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the headings and rows of a table with the noise and the errors of each torque."""
    head = ["torque", "noise (training log)", *(f"rms error ({log} log)" for log in errors)]
    columns = [found.noise, *errors.values()]
    rows = zip(found.model.robot.independent, *columns, strict=True)
    return head, [(name, *(f"{x:.4g}" for x in row)) for name, *row in rows]


def extent(found: Identified) -> str:
    """Return a sentence about the states of the training error, or "" if it includes all states."""
    if found.samples <= SHOWN:
        return ""
    return f"The training error is that of the first {SHOWN} of {found.samples} states."


def page(found: Identified, samples: Sequence[Sample], errors: Errors) -> str:
    """Return the report as an HTML page.

    The last logs in `errors` are the logs of `samples`, which are plotted.
    """
    robot, log = found.model.robot, list(errors)[-1]
    q, qd, qdd, tau, loads = (np.concatenate(x)[:SHOWN] for x in zip(*samples, strict=True))
    f_ext = external(found.model.wrenches, loads)
    predicted, measured = found.predict(q, qd, qdd, f_ext=f_ext), found.model.rows(q, tau)
    parts = [
        f"<h1>Identification of {_text(robot.name)}</h1>",
        f"<p>{len(found.base)} base parameters from {found.samples} states; condition number "
        f"{found.condition:.3g}.</p>",
        *(f"<p>Note: {_text(note)}.</p>" for note in found.notes),
        "<h2>Errors of predicted torques</h2>",
        _table(*torques(found, errors)),
        *(f"<p>{text}</p>" for text in [extent(found)] if text),
        f"<h2>Torques of the {log} log, first {len(measured)} states</h2>",
        _picture(robot.independent, predicted, measured),
        "<h2>Base parameters</h2>",
        _parameters(found),
    ]
    body = "\n".join(parts)
    title = f"Identification of {_text(robot.name)}"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _text(value: str) -> str:
    return html.escape(escaped(value))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["<table><tr>" + "".join(f"<th>{_text(cell)}</th>" for cell in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return "\n".join([*lines, "</table>"])


def _parameters(found: Identified) -> str:
    """Return a table of prior and identified base parameters, with three-sigma intervals."""
    rows = [
        (name, f"{old:.4g}", f"{value:.4g}", f"{value - 3 * d:.4g} to {value + 3 * d:.4g}")
        for name, old, value, d in zip(
            found.names, found.before, found.base, found.deviations, strict=True
        )
    ]
    return _table(("parameter", "before", "after", "99.7 % interval"), rows)


def _picture(names: Sequence[str], predicted: np.ndarray, measured: np.ndarray) -> str:
    """Return an embedded image with plots of measured torques, predicted torques and residuals."""
    from matplotlib.figure import Figure

    count = len(names)
    figure = Figure(figsize=(11.0, 2.2 * count), layout="constrained")
    axes: Any = figure.subplots(count, 2, squeeze=False, sharex=True)
    for k, name in enumerate(names):
        left, right = axes[k]
        left.plot(measured[:, k], "0.6", label="measured")
        left.plot(predicted[:, k], "C0", linewidth=0.9, label="predicted")
        left.set_ylabel(name)
        right.plot(measured[:, k] - predicted[:, k], "C3", linewidth=0.7)
    axes[0, 0].legend(loc="upper right")
    axes[0, 0].set_title("torque (N m or N)")
    axes[0, 1].set_title("residual (N m or N)")
    for axis in axes[-1]:
        axis.set_xlabel("sample")
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=80)
    coded = base64.b64encode(stream.getvalue()).decode()
    alt = "measured and predicted torques, and their differences"
    return f'<img alt="{alt}" src="data:image/png;base64,{coded}">'
