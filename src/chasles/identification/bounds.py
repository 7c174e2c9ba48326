"""Penalties for violated motion limits (with exact gradients), and margins to the limits.

A violation is the amount by which a value exceeds its limit, divided by a typical size: the limit
itself, half the width of a position range or workspace box, or 0.1 m for distances.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.functions.doors import numbers
from chasles.robot import Robot

States = tuple[np.ndarray, np.ndarray, np.ndarray]

SHARES = ("position", "velocity", "acceleration", "torque")
"""Keys of the relative margins in the dictionary returned by `Bounds.margins`."""

ALWAYS = 64
"""Number of random configurations that determine which pairs of shapes are ignored.

A pair is ignored if its enclosing shapes are closer than the clearance in all of these
configurations.
"""


@dataclass(frozen=True)
class Bounds:
    """Limits of a robot's motion.

    Attributes
    ----------
    lower, upper
        Position limits (n,).
    velocity, acceleration, effort
        Maximum absolute joint velocities, accelerations and torques (n,), possibly infinite.
    clearance
        Minimum distance (m) between links, and between links and obstacles; None to ignore
        distances.
    workspace
        Corners (2, 3), in world coordinates, of the box in which a frame's origin must stay, by
        frame name.
    """

    robot: Robot
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray
    clearance: float | None
    obstacles: Any
    workspace: Mapping[str, np.ndarray]

    @property
    def half(self) -> np.ndarray:
        """Half the width of each position range, or 1 if the range is infinite or empty."""
        width = 0.5 * (self.upper - self.lower)
        return np.where(np.isfinite(width) & (width > 0.0), width, 1.0)

    def penalty(self, at: States, margin: float) -> tuple[np.ndarray, States]:
        """Return the penalty of each motion, and its gradient with respect to q, qd and qdd.

        `at` contains the states (S, N, n) of S motions at N times. The penalty (S,) is the sum of
        squared violations divided by N. Limits are tightened by `margin`.
        """
        q, qd, qdd = at
        bars = [np.zeros_like(x) for x in at]
        total = np.zeros(len(q))
        half = self.half
        inside = np.where(self.lower < self.upper, margin * half, 0.0)
        size = half - inside
        above = np.maximum(q - (self.upper - inside), 0.0) / size
        below = np.maximum(self.lower + inside - q, 0.0) / size
        total += np.sum(above**2 + below**2, axis=(1, 2))
        bars[0] += 2.0 * (above - below) / size
        for k, limit in ((1, self.velocity), (2, self.acceleration)):
            size = limit * (1.0 - margin)
            share = at[k] / size
            over = np.maximum(np.abs(share) - 1.0, 0.0)
            total += np.sum(over**2, axis=(1, 2))
            bars[k] += 2.0 * over * np.sign(share) / size
        if np.any(np.isfinite(self.effort)):
            size = self.effort * (1.0 - margin)
            share = self.robot.inverse_dynamics(q, qd, qdd) / size
            over = np.maximum(np.abs(share) - 1.0, 0.0)
            total += np.sum(over**2, axis=(1, 2))
            pulled = self._dynamics(q, qd, qdd, 2.0 * over * np.sign(share) / size)
            bars = [bar + more for bar, more in zip(bars, pulled, strict=True)]
        for value, by_q in self._places(q, margin):
            total += value
            bars[0] += by_q
        N = q.shape[1]
        return total / N, (bars[0] / N, bars[1] / N, bars[2] / N)

    @cached_property
    def _dynamics(self) -> Any:
        function = self.robot.mechanism.function("inverse_dynamics")
        return function.pullback(("q", "qd", "qdd"))

    def _places(self, q: np.ndarray, margin: float) -> Any:
        """Yield sums (S,) of squared violations of clearance and workspaces, with gradients.

        Gradients are with respect to q.
        """
        if self.clearance is not None and len(self._enclosed):
            scale = 0.1
            found = self.robot.distance(q, self._enclosed, **self._scene)
            least = self.clearance + margin * scale
            over = np.maximum(least - found.distance, 0.0) / scale
            bad = np.any(over > 0.0, axis=-1)
            gradient = np.zeros_like(q)
            if np.any(bad):
                some = self.robot.distance(q[bad], self._enclosed, **self._scene)
                gradient[bad] = -np.einsum("rp,rpn->rn", 2.0 * over[bad] / scale, some.gradient)
            yield np.sum(over**2, axis=(1, 2)), gradient
        for frame, box in self.workspace.items():
            place = self.robot.forward_kinematics(q, frame=frame)[..., :3, 3]
            size = np.maximum(0.5 * (box[1] - box[0]), 1e-3)
            inside = margin * np.minimum(size, 0.5)
            low = np.maximum(box[0] + inside - place, 0.0) / size
            high = np.maximum(place - box[1] + inside, 0.0) / size
            J = self.robot.jacobian(q, frame=frame)[..., 3:, :]
            pull = 2.0 * np.einsum("...i,...in->...n", (high - low) / size, J)
            yield np.sum(low**2 + high**2, axis=(1, 2)), pull

    @cached_property
    def _scene(self) -> dict[str, Any]:
        """Arguments of `robot.distance`: capsules that enclose the links, and obstacles."""
        return {"shapes": self.robot.enclosing_shapes("capsules"), "obstacles": self.obstacles}

    @cached_property
    def _enclosed(self) -> list[tuple[str, str]]:
        """Pairs that are farther apart than the clearance in at least one random configuration."""
        q = self.robot.random(0, size=ALWAYS)
        found = self.robot.distance(q, **self._scene)
        apart = np.any(found.distance > self.clearance, axis=0)
        return [pair for pair, some in zip(found.pairs, apart, strict=True) if some]

    def margins(self, at: States) -> dict[str, float]:
        """Return the smallest margin to each limit over N states, negative for a violated limit.

        Joints without a limit have no margin; a limit that no joint has is omitted.
        Margins are relative to the limit or, for positions, to half the range. Clearance and
        workspace margins are in m. If the enclosing shapes are closer than the clearance, the
        distances between the collision shapes in the model file are used instead.
        """
        q, qd, qdd = at
        shares = (
            np.minimum(q - self.lower, self.upper - q) / self.half,
            _left(qd, self.velocity),
            _left(qdd, self.acceleration),
            _left(self.robot.inverse_dynamics(q, qd, qdd), self.effort),
        )
        found = {name: float(np.min(s)) for name, s in zip(SHARES, shares, strict=True)}
        found = {name: least for name, least in found.items() if least < np.inf}
        if self.clearance is not None:
            found["distance"] = self._distance(q) - self.clearance
        for frame, box in self.workspace.items():
            place = self.robot.forward_kinematics(q, frame=frame)[..., :3, 3]
            left = np.minimum(place - box[0], box[1] - place)
            found[f"workspace of {frame}"] = float(np.min(left))
        return found

    def _distance(self, q: np.ndarray) -> float:
        """Return the smallest distance between links, and between links and obstacles.

        Distances are first computed between shapes that enclose the links. For configurations in
        which these shapes are closer than the clearance, the collision shapes in the model file are
        used instead.
        """
        enclosing = self.robot.distance(q, **self._scene).least
        near = enclosing < self.clearance
        far = float(np.min(enclosing[~near], initial=np.inf))
        if not np.any(near):
            return far
        exact = self.robot.distance(q[near], obstacles=self.obstacles)
        return min(far, float(np.min(exact.least)))


def _left(value: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Return the margins of |value| to the limit, relative to the limit; inf without a limit."""
    return np.where(np.isfinite(limit), 1.0 - np.abs(value) / limit, np.inf)


def checked_workspace(robot: Robot, workspace: Any) -> dict[str, np.ndarray]:
    """Check the workspace box of each frame; return a dictionary of corner arrays, shape (2, 3)."""
    found = {}
    for frame, box in (workspace or {}).items():
        robot.model.frame(frame)
        corners = numbers(f"excite: workspace[{frame!r}]", box, 3)
        if corners.shape != (2, 3) or not np.all(corners[0] < corners[1]):
            problem = (
                f"the workspace of {frame!r} must be given by the lower and upper corners of a box"
            )
            remedy = "pass ((x, y, z), (x, y, z)), with the smaller coordinates in the first corner"
            raise InputError("E-IDENT-022", problem, remedy, part="excite")
        found[frame] = corners
    return found
