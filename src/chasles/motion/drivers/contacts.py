"""Possible rigid contacts of a robot: body points, limits, and joints with dry friction.

Every possible contact has an index, its slot. Joint limits, tendon limits and joints at rest are
treated as contacts with a single direction, with gaps in rad or m.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from chasles.algorithms.spatial.lines import lines
from chasles.errors import ArgumentError, ConvergenceError, InputError
from chasles.mechanisms import Mechanism
from chasles.motion.contact.dynamics import limit_rows, paired, response
from chasles.motion.contact.modes import SLOW, Mode
from chasles.motion.contact.pairs import Pair, Rigid, meeting
from chasles.motion.geometry.features import Meeting
from chasles.motion.geometry.fields import HeightField
from chasles.motion.geometry.kinematics import (
    NEAR,
    Frame,
    Moves,
    Points,
    carrier,
    contact_moves,
)
from chasles.motion.records import Occurrence, Touching
from chasles.motion.solvers import Infeasible, NoUniqueMotion
from chasles.motion.steps.bodies import dry_friction
from chasles.motion.steps.integrators import Table
from chasles.motion.steps.system import Advance, State

ROUNDED = 1e-12
"""Relative tolerance for canceled velocities. After a velocity change, velocities of at most this
fraction of the change are set to exactly zero."""


class Varying:
    """Contact points of two bodies whose touching features (such as corners and edges) vary.

    Only single states are supported.
    """

    def __init__(self, mechanism: Mechanism, pair: Pair, features: Meeting) -> None:
        self._mechanism, self._frames, self._features = mechanism, pair.frames, features
        self.size = features.size

    def __call__(self, at: State, held: np.ndarray, alone: bool) -> Moves:
        """Return the gaps of all feature pairs, and the motion of the pairs in contact.

        The gap of a pair is set to infinity if other features of the two bodies are closer
        together, unless the pair is in the mask `held`. If `alone` is True, only the pairs in
        `held` are evaluated. The gaps of other pairs, and all of `Moves.room`, are then infinite.
        """
        here, (_, q, qd) = self._mechanism.at(at.t), at
        over, under = (carrier(here, q, qd, frame) for frame in self._frames)
        gap, room = np.full((2, self.size), np.inf)
        if not alone:
            gap, room = self._features.gaps(over, under)
            gap = np.where(held | (room >= 0.0), gap, np.inf)
        axes, J = np.zeros((self.size, 3, 3)), np.zeros((self.size, 3, len(qd)))
        velocity, bias = np.zeros((2, self.size, 3))
        which = np.flatnonzero(held | (gap <= NEAR))
        if which.size:
            contacts = self._features.contacts(which, over, under)
            body, surface = (Frame.of(here, q, qd, motion) for motion in (over, under))
            found = contact_moves(body, surface, contacts)
            gap[which], axes[which], velocity[which], J[which], bias[which], _ = found
        return Moves(gap, axes, velocity, J, bias, room)


class Slots:
    """Potential contacts (slots) of a robot, in groups (rows) with one name and contact law each.

    A row is a body point, a pair of bodies with varying contact points, a joint limit, or a joint
    with dry friction. Joints with dry friction come last.

    Attributes
    ----------
    names, laws : list
        Name and contact law of each row.
    row : ndarray, shape (slots,)
        Index of the row that each slot belongs to.
    bodies : ndarray, shape (slots,)
        Identifier of the two bodies, equal for all slots between the same two bodies.
    friction : ndarray, shape (slots,)
        Friction coefficients.
    bound : ndarray, shape (slots,)
        Dry friction of joints (N m or N); infinite for other slots.
    contacts : int
        Number of rows that are contacts between bodies.
    """

    def __init__(
        self, mechanism: Mechanism, pairs: Sequence[Pair], limits: bool, dry: bool
    ) -> None:
        self._varying: list[Varying] = []
        self.names: list[str] = []
        self.laws: list[Rigid] = []
        balls: list[int] = []
        fixed, meetings = [], []
        for pair in pairs:
            rows = range(len(self.names), len(self.names) + pair.points)
            self.names += _names(pair)
            assert isinstance(pair.law, Rigid), "other laws are rejected earlier"
            assert not isinstance(pair.surface, HeightField), "rejected earlier"
            self.laws += [pair.law] * pair.points
            if (found := meeting(pair.body, pair.surface)) is None:
                fixed.append((pair.body, pair.surface))
                balls += rows
            else:
                self._varying.append(Varying(mechanism, pair, found))
                meetings += [rows[0]] * found.size
        self._points, self._stops = Points(mechanism.model, fixed), Stops(mechanism, limits)
        self._mechanism, self.contacts, self._balls = mechanism, len(self.names), len(balls)
        self.resting = Resting(mechanism, dry)
        self.names += self._stops.names
        self._told = len(self.names)
        self.names += self.resting.names
        stops = range(self.contacts, len(self.names))
        self.laws += [Rigid()] * len(stops)
        self.row: Any = np.array([*balls, *meetings, *stops], dtype=int)
        self.bound: Any = np.full(len(self.row), np.inf)
        self.bound[self.row >= self._told] = self.resting.bound
        self.friction = np.array([self.laws[k].friction for k in self.row])
        frames = [pair.frames for pair in pairs for _ in range(pair.points)]
        numbers = paired(mechanism.model, frames)
        self.bodies: Any = np.append(numbers, stops).astype(int)[self.row]

    def __call__(self, at: State, held: np.ndarray, alone: bool = False) -> Moves:
        """Return the gaps, velocities and Jacobians of all potential contacts (slots) in a state.

        If `alone` is True, contacts with moving contact points are evaluated only if they are in
        the mask `held` (slots,).
        """
        parts, start = [self._points(*at)] if self._balls else [], self._balls
        for one in self._varying:
            parts.append(one(at, held[start : start + one.size], alone))
            start += one.size
        parts += [self._stops(at)] if self._stops.names or not parts else []
        parts += [self.resting(at)] if self.resting.names else []
        if len(parts) == 1:
            return parts[0]
        return Moves(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def onto(self, at: State, moves: Moves, which: np.ndarray) -> np.ndarray:
        """Return q, corrected so that the gaps of the selected contacts are zero.

        Joints held by dry friction do not move.
        """
        shift = self._shift(at, moves.J[which, 2], moves.gap[which])
        shift[self.freedoms(which)] = 0.0
        return self._mechanism.integrate(at.q, shift)

    def stopped(self, at: State, moves: Moves, rows: np.ndarray) -> np.ndarray:
        """Return qd with the contact velocities selected by the mask `rows` (n, 3) set to zero."""
        shift = self._shift(at, moves.J[rows], moves.velocity[rows])
        qd = at.qd + shift
        qd[np.abs(qd) <= ROUNDED * np.abs(shift)] = 0.0
        qd[self.freedoms(rows[:, 2])] = 0.0
        return qd + 0.0  # avoid -0

    def freedoms(self, which: np.ndarray) -> np.ndarray:
        """Return the indices in qd of the selected joints with dry friction.

        The mask `which` selects potential contacts (slots); each such joint has one slot.
        """
        return self.resting.freedom[which[np.isfinite(self.bound)]]

    def kept(self, at: State, start: State, held: np.ndarray) -> State:
        """Return the state after a step, in which joints held by friction do not move.

        The positions of these joints are copied from the state `start`. Only robots with loops need
        this correction.
        """
        if not self._mechanism.rows:
            return at
        return self.resting.kept(at, start, held[np.isfinite(self.bound)])

    def _shift(self, at: State, J: np.ndarray, excess: np.ndarray) -> np.ndarray:
        """Return the displacement d that minimizes d'M d subject to J d = -excess.

        M is the mass matrix at the state `at`.
        """
        B = response(self._mechanism.at(at.t), at.q, J.T)
        return B @ np.linalg.lstsq(J @ B, -excess, rcond=1e-11)[0]

    def seen(self, moves: Moves, forces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the contact forces (contacts, 3) along the world axes, and the gaps (contacts,).

        `forces` (slots, 3) are along the contact axes. For each contact, the forces of its slots
        are added, and the smallest gap is returned.
        """
        found, gaps = np.zeros((len(self.names), 3)), np.full(len(self.names), np.inf)
        turned = np.swapaxes(moves.axes, 1, 2) @ forces[:, :, None]
        np.add.at(found, self.row, turned[..., 0])
        np.minimum.at(gaps, self.row, moves.gap)
        return found[: self.contacts], gaps[: self.contacts]

    def rows(self, which: np.ndarray) -> np.ndarray:
        """Return a mask (rows,) of the rows with a contact point that `which` (slots,) selects."""
        return np.bincount(self.row[which], minlength=len(self.names)) > 0

    def named(self, which: np.ndarray) -> str:
        """Return the names of the selected contacts, separated by commas."""
        return ", ".join(dict.fromkeys(self.names[k] for k in self.row[which]))

    def told(
        self, at: State, hits: np.ndarray, old: Mode, new: Mode, late: np.ndarray
    ) -> list[Occurrence]:
        """Return an `Occurrence` for each impact and each change from mode `old` to mode `new`.

        `late` contains the time (s) until each contact point comes to rest. The event "gain" is
        delayed by this time. All other events occur at the time of the state `at`.
        """
        (was, slid), (current, slides) = (
            (self.rows(mode.current), self.rows(mode.slides)) for mode in (old, new)
        )
        rests = np.zeros(len(self.names))
        np.maximum.at(rests, self.row, late)
        kinds = {
            "impact": self.rows(hits),
            "loss": was & ~current,
            "gain": current & ~was,
            "slip": was & current & slides & ~slid,
            "stick": was & current & slid & ~slides,
        }
        return [
            Occurrence(f"{kind} {self.names[k]}", at.t + rests[k] * (kind == "gain"), *at[1:])
            for kind, which in kinds.items()
            for k in np.flatnonzero(which[: self._told])
        ]

    @contextmanager
    def said(self, t: float, which: np.ndarray) -> Iterator[None]:
        """Return a context manager that adds time and contact names to contact solver errors."""
        try:
            yield
        except (Infeasible, NoUniqueMotion, ConvergenceError) as error:
            raise error.within(f"simulate: at t = {t:.6g} s, {self.named(which)}") from None


def _names(pair: Pair) -> list[str]:
    """Return a name for each contact point of a pair, such as "foot[2] on box"."""
    other = "" if pair.surface.frame is None else f" on {pair.surface.frame}"
    body = pair.body.frame or "world"
    return [f"{body}{f'[{k}]' if pair.points > 1 else ''}{other}" for k in range(pair.points)]


def check_rigid(
    contacts: Sequence[Pair],
    q: np.ndarray,
    name: str,
    advance: Advance,
    stabilization: float | None,
) -> None:
    """Raise an error for options that rigid contact does not support."""
    for pair in contacts:
        if not isinstance(pair, Pair) or not isinstance(pair.law, Rigid):
            problem = (
                f"{pair!r:.80} must be rigid: soft contacts cannot be combined with joint "
                "limits or rigid contacts"
            )
            remedy = "use contact.Pair(body, surface, contact.Rigid(...)) for every contact"
            raise ArgumentError("E-MOTION-070", problem, remedy, part="simulate")
        if pair.round or pair.on_field or pair.law.torsion or pair.law.rolling:
            shape = "a Capsule on this shape" if pair.round else "a HeightField"
            what = shape if pair.round or pair.on_field else "torsional or rolling friction"
            problem = f"{what} needs integrator 'time-stepping', not {name!r}"
            raise InputError("E-MOTION-137", problem, part="simulate")
    if q.ndim > 1:
        problem = f"rigid contacts and limits need a single state, not a batch of {q.shape[:-1]}"
        remedy = "simulate the states one by one, or use robot.rollout with soft contacts"
        raise InputError("E-MOTION-071", problem, remedy, part="simulate")
    if not isinstance(advance, Table) or not advance.explicit:
        problem = f"rigid contacts and limits need an explicit integrator, not {name!r}"
        raise InputError("E-MOTION-072", problem, "use 'rk4' or 'dopri5'", part="simulate")
    if stabilization is not None:
        problem = (
            "`stabilization` cannot be combined with contacts or limits, "
            "which require loops without closure errors"
        )
        raise InputError("E-MOTION-073", problem, "omit `stabilization`", part="simulate")


def touched(kept: Sequence[tuple[np.ndarray, np.ndarray]], points: int) -> Touching:
    """Stack the contact forces and gaps of all stored states in a `Touching` object."""
    forces, gaps = zip(*kept, strict=True) if kept else ((), ())
    n = len(kept)
    return Touching(
        np.reshape(forces, (n, points, 3)), np.reshape(gaps, (n, points)), np.zeros((n, 0))
    )


# Joints ------------------------------------------------------------------------------------------


def _columns(nv: int, freedom: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """Return contact Jacobians (k, 3, nv) for joints that are treated as contacts.

    The last row of each Jacobian yields the joint velocity times `sign`; the other rows are zero.
    """
    J = np.zeros((len(freedom), 3, nv))
    J[np.arange(len(freedom)), 2, freedom] = sign
    return J


def _moves(gap: np.ndarray, speed: np.ndarray, J: np.ndarray) -> Moves:
    k = len(gap)
    velocity = np.column_stack([np.zeros((k, 2)), speed])
    axes = np.broadcast_to(np.eye(3), (k, 3, 3))
    return Moves(gap, axes, velocity, J, np.zeros((k, 3)), np.full(k, np.inf))


class Stops:
    """Joint and tendon limits as contacts with only a normal direction; gaps are in rad or m."""

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
        """Return the gaps between joints or tendons and their limits, and the gap velocities."""
        moved = self._mechanism.difference(self._start, at.q)[self._freedom]
        speed = self._sign * at.qd[self._freedom]
        joints = _moves(self._gap + self._sign * moved, speed, self._J)
        if self._motion is None:
            return joints
        parts = zip(joints, self._lines(at), strict=True)
        return Moves(*(np.concatenate(pair) for pair in parts))

    def _lines(self, at: State) -> Moves:
        """Return the gaps of tendons and ball joints to their limits, and the gap velocities."""
        assert self._motion is not None
        nv, (sign, limit) = self._mechanism.nv, self._ends.T
        every = self._motion(at.q, at.qd).reshape(-1, nv + 2)[self._line] * sign[:, None]
        J = np.zeros((len(every), 3, nv))
        J[:, 2] = every[:, :nv]
        moves = _moves(every[:, nv] - sign * limit, J[:, 2] @ at.qd, J)
        moves.bias[:, 2] = every[:, nv + 1]
        return moves


class Resting:
    """Joints with dry friction, treated as contacts that are closed while the joint is at rest.

    The array `freedom` (k,) contains the velocity indices of these joints, and `bound` (k,) their
    dry friction (N m or N). `names` contains the names of the contacts, such as "elbow friction".
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
        """Return a gap, a velocity and a Jacobian for each joint with dry friction.

        Each joint is treated as a contact that is closed while the joint is at rest, and open while
        the joint moves.
        """
        speed = at.qd[self.freedom]
        return _moves(np.where(np.abs(speed) <= SLOW, 0.0, np.inf), speed, self._J)

    def force(self, tau: np.ndarray, qd: np.ndarray, signs: np.ndarray) -> np.ndarray:
        """Return the torques `tau` with dry friction that opposes motion in directions `signs`.

        The given `tau` contains dry friction that opposes motion in the directions sign(qd).
        """
        if not self.names:
            return tau
        wrong = np.sign(qd)
        wrong[self.freedom] -= signs
        return tau + self._friction * wrong

    def kept(self, at: State, start: State, held: np.ndarray) -> State:
        """Return the state with joints in the mask `held` (k,) reset to their `start` positions."""
        q, places = at.q.copy(), self._places[held & (self._places >= 0)]
        q[places] = start.q[places]
        return at._replace(q=q)
