"""Joint and tendon limits, and dry friction, as contact points with one direction (rad or m)."""

import numpy as np

from chasles.algorithms.spatial.lines import lines
from chasles.mechanisms import Mechanism
from chasles.motion.contact.dynamics import limit_rows
from chasles.motion.contact.modes import SLOW
from chasles.motion.geometry.kinematics import Moves
from chasles.motion.steps.stiction import dry_friction
from chasles.motion.steps.system import State


def _columns(nv: int, freedom: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """Return Jacobians J (k, 3, nv) of joints; their velocities are along the normal."""
    J = np.zeros((len(freedom), 3, nv))
    J[np.arange(len(freedom)), 2, freedom] = sign
    return J


def _moves(gap: np.ndarray, speed: np.ndarray, J: np.ndarray) -> Moves:
    k = len(gap)
    velocity = np.column_stack([np.zeros((k, 2)), speed])
    axes = np.broadcast_to(np.eye(3), (k, 3, 3))
    return Moves(gap, axes, velocity, J, np.zeros((k, 3)), np.full(k, np.inf))


class Stops:
    """Limits of joints and tendons as contact points with one direction each (rad or m)."""

    def __init__(self, mechanism: Mechanism, used: bool) -> None:
        self._mechanism, self._start = mechanism, mechanism.neutral()
        still = np.zeros(mechanism.nv)
        rows = limit_rows(mechanism.model, self._start, still, within=np.inf) if used else []
        rows = [row for row in rows if np.isfinite(row[2])]
        self._freedom = np.array([k for k, _, _ in rows], dtype=int)
        self._sign, self._gap = (np.array([row[k] for row in rows]) for k in (1, 2))
        self._J = _columns(mechanism.nv, self._freedom, self._sign)
        ends, freedoms = {1.0: "lower", -1.0: "upper"}, mechanism.loops.freedoms
        self.names = [f"{freedoms[k]} {ends[sign]} limit" for k, sign, _ in rows]
        ended = [
            (k, each.name, sign, limit)
            for k, each in enumerate(lines(mechanism.model) if used else ())
            for sign, limit in zip((1.0, -1.0), each.limits, strict=True)
            if np.isfinite(limit)
        ]
        self._line = [k for k, *_ in ended]
        self._ends = np.array([(sign, limit) for *_, sign, limit in ended]).reshape(-1, 2)
        self._motion = mechanism.function("line_motion") if ended else None
        self.names += [f"{name} {ends[sign]} limit" for _, name, sign, _ in ended]

    def __call__(self, at: State) -> Moves:
        """Return the distances of joints and tendons from their limits, and their motion."""
        moved = self._mechanism.difference(self._start, at.q)[self._freedom]
        speed = self._sign * at.qd[self._freedom]
        joints = _moves(self._gap + self._sign * moved, speed, self._J)
        if self._motion is None:
            return joints
        parts = zip(joints, self._lines(at), strict=True)
        return Moves(*(np.concatenate(pair) for pair in parts))

    def _lines(self, at: State) -> Moves:
        """Return the motion of tendons and ball joints with limits; their directions vary."""
        assert self._motion is not None
        nv, (sign, limit) = self._mechanism.nv, self._ends.T
        every = self._motion(at.q, at.qd).reshape(-1, nv + 2)[self._line] * sign[:, None]
        J = np.zeros((len(every), 3, nv))
        J[:, 2] = every[:, :nv]
        moves = _moves(every[:, nv] - sign * limit, J[:, 2] @ at.qd, J)
        moves.bias[:, 2] = every[:, nv + 1]
        return moves


class Resting:
    """Joints with dry friction: joints at rest are in contact, moving joints are separated.

    `freedom` (k,): velocity indices of these joints. `bound` (k,): their dry friction (N m or N).
    """

    def __init__(self, mechanism: Mechanism, used: bool) -> None:
        self._mechanism, model = mechanism, mechanism.model
        self._friction = dry_friction(model) if used else np.zeros(mechanism.nv)
        self.freedom = np.flatnonzero(self._friction)
        self.bound = self._friction[self.freedom]
        self._J = _columns(mechanism.nv, self.freedom, np.ones(len(self.freedom)))
        self.names = [f"{mechanism.loops.freedoms[k]} friction" for k in self.freedom]
        places = {
            model.velocity_slices[i].start: slot.start
            for i, slot in model.position_slices.items()
            if model.bodies[i].joint.nq == model.bodies[i].joint.nv == 1
        }
        self._places = np.array([places.get(int(k), -1) for k in self.freedom], dtype=int)

    def __call__(self, at: State) -> Moves:
        """Return the motion of joints; the gap is 0 for slow joints, and infinite for others."""
        speed = at.qd[self.freedom]
        return _moves(np.where(np.abs(speed) <= SLOW, 0.0, np.inf), speed, self._J)

    def force(self, tau: np.ndarray, qd: np.ndarray, signs: np.ndarray) -> np.ndarray:
        """Return joint torques with the model's friction, -f sign(qd), replaced by -f signs."""
        if not self.names:
            return tau
        wrong = np.sign(qd)
        wrong[self.freedom] -= signs
        return tau + self._friction * wrong

    def kept(self, at: State, start: State, held: np.ndarray) -> State:
        """Return the state with held joints, a mask (k,), at their initial positions."""
        q, places = at.q.copy(), self._places[held & (self._places >= 0)]
        q[places] = start.q[places]
        return at._replace(q=q)
