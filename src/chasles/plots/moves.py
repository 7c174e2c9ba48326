"""Plots of trajectories."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles.errors import InputError, shown
from chasles.formats.motion import columns
from chasles.plots.paper import Axes, curves, finish
from chasles.trajectory import Move

INSTANTS = 401
"""Number of evenly spaced samples per curve, in addition to samples around each breakpoint."""

TITLES = ("position", "velocity", "acceleration", "jerk")


def move(given: Move, axes: Sequence[Axes] | None = None) -> Sequence[Axes]:
    """Plot positions, velocities, accelerations and jerks of a trajectory over time.

    Parameters
    ----------
    given : Move
        Trajectory from `chasles.trajectory`.
    axes : sequence of matplotlib Axes, optional
        One to four axes, for position, velocity, acceleration and jerk, in this order. Default: a
        new figure with four axes.

    Returns
    -------
    axes : sequence of matplotlib Axes
        The axes.

    Raises
    ------
    InputError
        If the number of axes is not between 1 and 4.

    Examples
    --------
    >>> import chasles
    >>> from chasles import plots
    >>> trajectory = chasles.trajectory.minimum_jerk([0.0], [1.0], duration=2.0)
    >>> len(plots.move(trajectory))
    4
    """
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots(2, 2, figsize=(9.0, 5.5), layout="constrained")[1].ravel()
    if not 1 <= len(axes) <= len(TITLES):
        problem = f"`axes` must contain 1 to {len(TITLES)} axes, not {len(axes)}"
        raise InputError("E-PLOT-022", problem)
    t = np.unique(np.concatenate([np.linspace(0.0, given.duration, INSTANTS), _around(given)]))
    names = None if given.robot is None else columns(given.robot.model)
    for k, (drawn, values) in enumerate(zip(axes, given(t, len(axes) - 1), strict=True)):
        rows = values.reshape(len(t), -1).T
        known = None if names is None else names["q" if k == 0 else "qd"]
        labels = [f"{i}" for i in range(len(rows))]
        if known is not None:
            labels = [
                name.rpartition(".")[0] + name.rpartition(".")[2].lstrip("qd") for name in known
            ]
        labels = [shown(label, 24) for label in labels]  # longer labels would cover the plot
        curves(drawn, t, dict(zip(labels, rows, strict=True)))
        unit = ("rad, m", "rad/s, m/s", "rad/s², m/s²", "rad/s³, m/s³")[k]
        finish(drawn, f"{TITLES[k]} ({unit})", "time (s)")
    return axes


def _around(given: Any) -> np.ndarray:
    """Return times just before and after each breakpoint, where derivatives may jump."""
    near = 1e-9 * given.duration
    inner = given.breaks[1:-1][: 10 * INSTANTS]
    return np.clip(np.concatenate([inner - near, inner + near]), 0.0, given.duration)
