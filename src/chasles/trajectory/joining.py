"""Concatenation of trajectories."""

from itertools import pairwise

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.trajectory.moves import Joined, Move

GAP = 1e-9
"""Maximum distance (rad or m) between the end of a trajectory and the start of the next one."""


def join(*moves: Move) -> Move:
    """Return the concatenation of trajectories, each of which begins where the previous one ends.

    Parameters
    ----------
    *moves : Move
        Trajectories in order. Positions must agree to within 1e-9; velocities may jump.

    Returns
    -------
    move : Move
        The whole trajectory.

    Raises
    ------
    InputError
        If no trajectory is given, shapes differ, or a trajectory does not start at the end of the
        previous one.
    ArgumentError
        If an argument is not a trajectory.

    Examples
    --------
    >>> import chasles
    >>> out = chasles.trajectory.minimum_jerk([0.0], [1.0], duration=1.0)
    >>> back = chasles.trajectory.minimum_jerk([1.0], [0.0], duration=2.0)
    >>> chasles.trajectory.join(out, back).duration
    3.0
    """
    if not moves:
        raise InputError("E-PATH-046", "pass at least one trajectory", part="join")
    for k, move in enumerate(moves):
        if not isinstance(move, Move):
            problem = f"argument {k} must be a trajectory, not {type(move).__name__}"
            raise ArgumentError(
                "E-PATH-064", problem, "pass each trajectory as a separate argument", part="join"
            )
    for k, (before, after) in enumerate(pairwise(moves)):
        if before.start.shape != after.start.shape:
            problem = f"trajectories {k} and {k + 1} have positions of different shapes"
            raise InputError("E-PATH-047", problem, part="join")
        gap = float(np.abs(after.start - before.end).max())
        if gap > GAP:
            problem = f"trajectory {k + 1} starts {gap:.3g} away from the end of trajectory {k}"
            raise InputError(
                "E-PATH-048",
                problem,
                "start each trajectory where the previous one ends",
                part="join",
            )
    return Joined(tuple(moves))
