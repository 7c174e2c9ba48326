"""Trajectories: `move(t)` returns positions, velocities and accelerations.

    move = chasles.trajectory.minimum_jerk(q0, q1, duration=2.0)
    q, qd, qdd = move(t)                  # t of any shape; move(t, order=3) also returns the jerk

| function | motion |
|---|---|
| `cubic`, `quintic`, `septic` | polynomials between two states |
| `minimum_jerk`, `minimum_snap` | from rest to rest |
| `spline` | through points, rotations or poses |
| `trapezoid`, `s_curve` | fastest within velocity, acceleration and jerk limits |
| `line`, `arc`, `path` | of a frame along straight lines, arcs or both, with blends |
| `fourier` | periodic, given as a Fourier series (`chasles.excite` chooses one) |
| `time_optimal` | fastest along a path within limits, including joint torques |
| `join` | several trajectories in sequence |
| `load` | from a motion file; `move.save` writes one |
"""

from chasles.trajectory.files import load
from chasles.trajectory.fourier import fourier
from chasles.trajectory.joining import join
from chasles.trajectory.lines import arc, line, path
from chasles.trajectory.moves import Move
from chasles.trajectory.optimal import time_optimal
from chasles.trajectory.polynomials import cubic, minimum_jerk, minimum_snap, quintic, septic
from chasles.trajectory.profiles import s_curve, trapezoid
from chasles.trajectory.splines import spline

__all__ = [
    "Move",
    "arc",
    "cubic",
    "fourier",
    "join",
    "line",
    "load",
    "minimum_jerk",
    "minimum_snap",
    "path",
    "quintic",
    "s_curve",
    "septic",
    "spline",
    "time_optimal",
    "trapezoid",
]
