"""Joint limits beside the points of contact of a motion."""

import numpy as np

from chasles.motion.contact.rigid import limit_rows
from chasles.motion.contract import Machine
from chasles.motion.geometry.kinematics import Moves


class Stops:
    """Joint limits as points of contact: one direction each, in rad or m."""

    def __init__(self, robot: Machine, used: bool) -> None:
        self._robot, self._start = robot, robot.neutral()
        rows = limit_rows(robot, self._start, np.zeros(robot.nv), within=np.inf) if used else []
        rows = [row for row in rows if np.isfinite(row[2])]
        self._freedom = np.array([k for k, _, _ in rows], dtype=int)
        self._sign, self._gap = (np.array([row[k] for row in rows]) for k in (1, 2))
        self._J = np.zeros((len(rows), 3, robot.nv))
        self._J[np.arange(len(rows)), 2, self._freedom] = self._sign
        ends = {1.0: "lower", -1.0: "upper"}
        freedoms = [
            name
            for name in robot.joints
            for _ in range(*robot.velocity_slice(name).indices(robot.nv))
        ]
        self.names = [f"{freedoms[k]} {ends[sign]} limit" for k, sign, _ in rows]

    def __call__(self, q: np.ndarray, qd: np.ndarray) -> Moves:
        """How far joints are from their limits, and how they move there."""
        moved = self._robot.difference(self._start, q)[self._freedom]
        still = np.zeros((len(moved), 3))
        speed = still.copy()
        speed[:, 2] = self._sign * qd[self._freedom]
        axes = np.broadcast_to(np.eye(3), (len(moved), 3, 3))
        room = np.full(len(moved), np.inf)
        return Moves(self._gap + self._sign * moved, axes, speed, self._J, still, room)
