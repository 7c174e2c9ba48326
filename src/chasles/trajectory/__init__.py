"""Trajectories as small values: `move(t)` gives positions, velocities and accelerations.

move = chasles.trajectory.minimum_jerk(q0, q1, duration=2.0)
q, qd, qdd = move(t)                  # t of any shape; move(t, order=3) gives the jerk too

| function | motion |
|---|---|
| `cubic`, `quintic`, `septic` | polynomials between two states |
| `minimum_jerk`, `minimum_snap` | from rest to rest |
| `spline` | through points, rotations or poses |
"""

from chasles.trajectory.moves import Move
from chasles.trajectory.polynomials import cubic, minimum_jerk, minimum_snap, quintic, septic
from chasles.trajectory.profiles import s_curve, trapezoid
from chasles.trajectory.splines import spline
from chasles.trajectory.optimal import time_optimal

__all__ = ["Move", "cubic", "minimum_jerk", "minimum_snap", "quintic", "s_curve", "septic", "spline", "time_optimal", "trapezoid"]
