"""Contacts of a simulation: points where rigid bodies may touch, and soft surfaces.

The states of soft surfaces are appended to q and integrated with it. They are followed by one
number per point: 1 if the point was in contact at the beginning of the step, else 0.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.errors import ArgumentError, ConvergenceError, InputError
from chasles.expr import RULES, Arena, Program, Variable
from chasles.functions.doors import numbers
from chasles.mechanisms import Mechanism
from chasles.motion.contact.dynamics import response
from chasles.motion.contact.impact import paired
from chasles.motion.contact.modes import Mode
from chasles.motion.contact.pairs import Contacts, Pair, Rigid, meeting
from chasles.motion.contract import Array
from chasles.motion.drivers.joints import Resting, Stops
from chasles.motion.drivers.running import Begin
from chasles.motion.geometry.features import Meeting
from chasles.motion.geometry.fields import HeightField
from chasles.motion.geometry.kinematics import (
    NEAR,
    Frame,
    Moves,
    Points,
    carrier,
    contact_moves,
    symbols,
)
from chasles.motion.laws.sliding import NoUniqueMotion
from chasles.motion.records import Event, Occurrence, Touching
from chasles.motion.solvers import Infeasible
from chasles.motion.steps.integrators import INTEGRATORS, Table
from chasles.motion.steps.system import Advance, State

ROUNDED = 1e-12
"""Relative size below which the difference between two velocities is treated as zero."""


class Varying:
    """Feature pairs of two bodies, as contact points of a robot in a single state."""

    def __init__(self, mechanism: Mechanism, pair: Pair, features: Meeting) -> None:
        self._mechanism, self._frames, self._features = mechanism, pair.frames, features
        self.size = features.size

    def __call__(self, at: State, held: np.ndarray, alone: bool) -> Moves:
        """Return the gaps of all feature pairs, and the motion of held and touching pairs.

        Gaps are infinite where other features are nearer. alone: evaluate only the held pairs, and
        skip gaps and room.
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
    """Numbered slots where a robot may touch; row (slots,) maps each slot to its row.

    A row is a point of a body, a pair with varying points, a joint limit, or a joint with dry
    friction; the latter come last. bodies (slots,): equal numbers for slots between the same two
    bodies. bound (slots,): dry friction of joints (N m or N), infinite for other slots.
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
            assert isinstance(pair.law, Rigid), "others are refused before"
            assert not isinstance(pair.surface, HeightField), "refused before"
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
        """Return positions and velocities of the points in a state.

        held (slots,): mask of slots that are always evaluated. alone: of varying features, evaluate
        only these.
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
        """Return q with the gaps of selected slots closed; selected joints at rest do not move."""
        shift = self._shift(at, moves.J[which, 2], moves.gap[which])
        shift[self.freedoms(which)] = 0.0
        return self._mechanism.integrate(at.q, shift)

    def stopped(self, at: State, moves: Moves, rows: np.ndarray) -> np.ndarray:
        """Return qd without velocities in the directions of the mask rows (slots, 3)."""
        shift = self._shift(at, moves.J[rows], moves.velocity[rows])
        qd = at.qd + shift
        qd[np.abs(qd) <= ROUNDED * np.abs(shift)] = 0.0
        qd[self.freedoms(rows[:, 2])] = 0.0
        return qd

    def freedoms(self, which: np.ndarray) -> np.ndarray:
        """Return the velocity indices of joints with dry friction among selected slots (slots,)."""
        return self.resting.freedom[which[np.isfinite(self.bound)]]

    def kept(self, at: State, start: State, held: np.ndarray) -> State:
        """Return the state after a step with held joints unmoved by the closing of loops."""
        if not self._mechanism.rows:
            return at
        return self.resting.kept(at, start, held[np.isfinite(self.bound)])

    def _shift(self, at: State, J: np.ndarray, excess: np.ndarray) -> np.ndarray:
        """Return the displacement d with the least d'M d for which J d = -excess."""
        B = response(self._mechanism.at(at.t), at.q, J.T)
        return B @ np.linalg.lstsq(J @ B, -excess, rcond=1e-11)[0]

    def seen(self, moves: Moves, forces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the forces (contacts, 3), along the world axes, and the gaps (contacts,)."""
        found, gaps = np.zeros((len(self.names), 3)), np.full(len(self.names), np.inf)
        turned = np.swapaxes(moves.axes, 1, 2) @ forces[:, :, None]
        np.add.at(found, self.row, turned[..., 0])
        np.minimum.at(gaps, self.row, moves.gap)
        return found[: self.contacts], gaps[: self.contacts]

    def rows(self, which: np.ndarray) -> np.ndarray:
        """Return the mask (rows,) of rows that have a slot selected by `which` (slots,)."""
        return np.bincount(self.row[which], minlength=len(self.names)) > 0

    def named(self, which: np.ndarray) -> str:
        """Return the names of the selected slots, separated by commas."""
        return ", ".join(dict.fromkeys(self.names[k] for k in self.row[which]))

    def told(
        self, at: State, hits: np.ndarray, old: Mode, new: Mode, late: np.ndarray
    ) -> list[Occurrence]:
        """Return the contact changes by name; late (slots,): time until a point comes to rest."""
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
        """Add the time and place to the error of a contact problem without a solution."""
        try:
            yield
        except (Infeasible, NoUniqueMotion, ConvergenceError) as error:
            raise error.within(f"simulate: at t = {t:.6g} s, {self.named(which)}") from None


def _names(pair: Pair) -> list[str]:
    """Return a name for each row of a pair."""
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
            what = shape if pair.round or pair.on_field else "torsion and rolling"
            problem = f"{what} needs integrator 'time-stepping', not {name!r}"
            raise InputError("E-MOTION-137", problem, part="simulate")
    if q.ndim > 1:
        problem = f"rigid contacts and limits need a single state, not a batch {q.shape[:-1]}"
        remedy = "simulate the states one by one, or use robot.rollout with soft contacts"
        raise InputError("E-MOTION-071", problem, remedy, part="simulate")
    if not isinstance(advance, Table) or not advance.explicit:
        problem = f"rigid contacts and limits need an explicit integrator, not {name!r}"
        raise InputError("E-MOTION-072", problem, "use 'rk4' or 'dopri5'", part="simulate")
    if stabilization is not None:
        problem = (
            "stabilization cannot be combined with contacts and limits, which keep the loops closed"
        )
        raise InputError("E-MOTION-073", problem, "omit `stabilization`", part="simulate")


def touched(kept: Sequence[tuple[np.ndarray, np.ndarray]], points: int) -> Touching:
    """Return the contact forces and gaps at the states of a trajectory, which may be empty."""
    forces, gaps = zip(*kept, strict=True) if kept else ((), ())
    n = len(kept)
    return Touching(
        np.reshape(forces, (n, points, 3)), np.reshape(gaps, (n, points)), np.zeros((n, 0))
    )


def seen(event: Event, n: int) -> Event:
    """Return an event that sees only the first n entries of q, without appended states."""

    def function(t: float, q: np.ndarray, qd: np.ndarray) -> float:
        return event.function(t, q[:n], qd)

    def then(t: float, q: np.ndarray, qd: np.ndarray) -> tuple[Any, Any]:
        assert event.then is not None
        after, speed = event.then(t, q[:n], qd)
        return np.concatenate([np.asarray(after, dtype=float), q[n:]]), speed

    return replace(event, function=function, then=None if event.then is None else then)


# Soft surfaces -----------------------------------------------------------------------------------


class Surfaces:
    """Soft contacts of a robot.

    In a step of fixed size, each point keeps the contact status that it had at the beginning of the
    step, because an implicit step may have no solution at a force discontinuity. An adaptive
    integrator must see the discontinuity, so that it can reduce the step size there.
    """

    def __init__(self, mechanism: Mechanism, pairs: Sequence[Pair], integrator: str) -> None:
        row = INTEGRATORS[integrator]
        if row.hamiltonian:
            problem = f"integrator {integrator!r} does not support contacts with internal state"
            remedy = "use 'rk4', or 'sdirk2' on stiff ground"
            raise InputError("E-MOTION-065", problem, remedy, part="simulate")
        mechanism.refuse_time("simulate", "omit the contacts, which do not support this yet")
        self.contacts = Contacts(mechanism.model, tuple(pairs))
        self.nq, self.states = mechanism.nq, self.contacts.states
        self.size = self.states + len(self.contacts.laws)
        self._pressing, self._settling, self._seen, self._moving = (
            backends.prepare(("contacts", program.hash), program)
            for program in self._programs(held=not row.adaptive)
        )

    def begin(self, q: np.ndarray, qd: np.ndarray, states: Array) -> np.ndarray:
        """Return q with the contact states appended, (..., nq + size)."""
        given = np.zeros(self.states) if states is None else states
        found = numbers("simulate: contact_states", given, self.states).astype(float)
        if not np.isfinite(found).all():
            problem = "contact_states must be finite"
            raise InputError("E-MOTION-067", problem, part="simulate")
        behind = np.zeros((*q.shape[:-1], self.size))
        try:
            behind[..., : self.states] = found
        except ValueError:
            shapes = f"leading shape {found.shape[:-1]} of contact_states", q.shape[:-1]
            problem = f"{shapes[0]} does not broadcast to {shapes[1]} of q and qd"
            raise InputError("E-MOTION-068", problem, part="simulate") from None
        whole = np.concatenate([q, behind], -1)
        whole[..., self.nq + self.states :] = self._call(self._settling, whole, qd)[1]
        return whole

    def beginning(self, begin: Begin) -> Begin:
        """Return the begin function for positions with contact states appended."""

        def begun(at: State) -> State:
            place, behind = np.split(at.q, [self.nq], axis=-1)
            here = begin(at._replace(q=place))
            whole = np.concatenate([here.q, behind], -1)
            return here._replace(q=self.settled(whole, here.qd))

        return begun

    def pressing(
        self, q: np.ndarray, qd: np.ndarray
    ) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
        """Return q without states, the wrenches on `frames`, and the rates of appended states."""
        *wrenches, rates = self._call(self._pressing, q, qd)
        still = np.zeros((*qd.shape[:-1], self.size - self.states))
        return q[..., : self.nq], wrenches, [rates, still]

    def settled(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return q after a step, with surfaces moved exactly onto the bodies that press on them."""
        return np.concatenate([q[..., : self.nq], *self._call(self._settling, q, qd)], -1)

    def seen_by(self, event: Event) -> Event:
        """Return an event that sees q without appended states."""
        return seen(event, self.nq)

    def touching(self, q: np.ndarray, qd: np.ndarray) -> Touching:
        """Return forces, gaps and states along a trajectory."""
        forces, gaps = self._call(self._seen, q, qd)
        return Touching(forces, gaps, q[..., self.nq : self.nq + self.states])

    def moving(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the velocities of points (..., points, 3) and normal forces (..., points)."""
        velocities, normal = self._call(self._moving, q, qd)
        return velocities, normal

    def _call(self, kernel: Any, q: np.ndarray, qd: np.ndarray) -> Any:
        n, m = self.nq, self.nq + self.states
        return call(kernel, "simulate", (q[..., :n], qd, q[..., n:m], q[..., m:]))

    def _programs(self, *, held: bool) -> list[Program]:
        """Return the programs of the soft contacts.

        They compute wrenches and rates; corrected states and the contact status; forces and gaps;
        velocities of points and normal forces. held: True if points keep the contact status from
        the beginning of the step.
        """
        contacts, arena = self.contacts, Arena(RULES)
        model, points, states = contacts.model, (len(contacts.laws),), (contacts.states,)
        inputs = {"q": (model.nq,), "qd": (model.nv,), "states": states, "touching": points}
        q, qd, state, touching = (symbols(arena, name, size) for name, size in inputs.items())
        found = contacts.pressed(arena, q, qd, state, touching if held else None)
        wrenches = contacts.wrenches(arena, q, found).items()
        exact = contacts.settled(arena, state, found, q)
        again = contacts.pressed(arena, q, qd, exact)
        forces = np.ravel(contacts.forces(again)).tolist()
        gaps = [spot.gap for spot in found.spots]
        velocities = [v for spot in found.spots for v in (*spot.slip, spot.rate)]
        normal = [force[-1] for force in again.forces]
        groups = (
            [*((name, (6,), w) for name, w in wrenches), ("rates", states, found.rates)],
            [("states", states, exact), ("touching", points, again.touching)],
            [("forces", (*points, 3), forces), ("gaps", points, gaps)],
            [("velocities", (*points, 3), velocities), ("normal", points, normal)],
        )
        given = [Variable(name, size) for name, size in inputs.items()]
        return [
            Program.from_outputs("contacts", given, [(Variable(n, m), x) for n, m, x in group])
            for group in groups
        ]
