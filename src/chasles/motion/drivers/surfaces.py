"""Soft contacts in a simulation, and detection of step sizes that are too large for them.

The states of soft surfaces are appended to q and integrated with it. After these states, q also
contains the contact status of each point: 1 if it was in contact at the beginning of the step,
else 0.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.errors import InputError
from chasles.expr import RULES, Arena, Program, Variable
from chasles.functions.doors import numbers
from chasles.mechanisms import Mechanism
from chasles.motion.contact import watch as watching
from chasles.motion.contact.pairs import Contacts, Pair
from chasles.motion.contract import Array
from chasles.motion.drivers import running
from chasles.motion.geometry.kinematics import symbols
from chasles.motion.records import Event, Touching
from chasles.motion.steps.integrators import INTEGRATORS
from chasles.motion.steps.system import State, Taken


class Surfaces:
    """Soft contacts of a robot.

    In a step of fixed size, each point keeps the contact status that it had at the beginning of the
    step, because an implicit step may have no solution at a force discontinuity. An adaptive
    integrator updates the status within a step, and therefore reduces the step size at a
    discontinuity.
    """

    def __init__(self, mechanism: Mechanism, pairs: Sequence[Pair], integrator: str) -> None:
        row = INTEGRATORS[integrator]
        if row.hamiltonian:
            problem = f"integrator {integrator!r} does not support soft contacts"
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
            problem = "`contact_states` must be finite"
            raise InputError("E-MOTION-067", problem, part="simulate")
        behind = np.zeros((*q.shape[:-1], self.size))
        try:
            behind[..., : self.states] = found
        except ValueError:
            shapes = f"leading shape {found.shape[:-1]} of contact_states", q.shape[:-1]
            problem = f"{shapes[0]} does not broadcast to shape {shapes[1]} of q and qd"
            raise InputError("E-MOTION-068", problem, part="simulate") from None
        whole = np.concatenate([q, behind], -1)
        whole[..., self.nq + self.states :] = self._call(self._settling, whole, qd)[1]
        return whole

    def beginning(self, begin: running.Begin) -> running.Begin:
        """Extend the function `begin` to states in which contact states are appended to q."""

        def begun(at: State) -> State:
            place, behind = np.split(at.q, [self.nq], axis=-1)
            here = begin(at._replace(q=place))
            whole = np.concatenate([here.q, behind], -1)
            return here._replace(q=self.settled(whole, here.qd))

        return begun

    def pressing(
        self, q: np.ndarray, qd: np.ndarray
    ) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
        """Return q (without contact states), contact wrenches, and rates of the contact states."""
        *wrenches, rates = self._call(self._pressing, q, qd)
        still = np.zeros((*qd.shape[:-1], self.size - self.states))
        return q[..., : self.nq], wrenches, [rates, still]

    def settled(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Correct the contact states in q: a surface that exerts a force must touch the body."""
        return np.concatenate([q[..., : self.nq], *self._call(self._settling, q, qd)], -1)

    def seen_by(self, event: Event) -> Event:
        """Convert an event for use with states in which contact states are appended to q."""
        return running.seen(event, self.nq)

    def touching(self, q: np.ndarray, qd: np.ndarray) -> Touching:
        """Return contact forces, gaps and states along a trajectory."""
        forces, gaps = self._call(self._seen, q, qd)
        return Touching(forces, gaps, q[..., self.nq : self.nq + self.states])

    def moving(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return contact-point velocities (..., points, 3) and normal forces (..., points)."""
        velocities, normal = self._call(self._moving, q, qd)
        return velocities, normal

    def _call(self, kernel: Any, q: np.ndarray, qd: np.ndarray) -> Any:
        n, m = self.nq, self.nq + self.states
        return call(kernel, "simulate", (q[..., :n], qd, q[..., n:m], q[..., m:]))

    def _programs(self, *, held: bool) -> list[Program]:
        """Return the four programs of the soft contacts.

        The programs compute (1) wrenches and rates, (2) corrected states and the contact status,
        (3) forces and gaps, and (4) velocities of points and normal forces. If `held` is True,
        points keep the contact status from the beginning of the step.
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


class Watched(running.Pace):
    """Stepper that takes steps with `pace` and detects unstable soft contacts.

    `lead` is the batch shape.
    """

    def __init__(self, pace: running.Pace, soft: Surfaces, lead: tuple[int, ...]) -> None:
        self._pace, self._soft = pace, soft
        self._watch = np.zeros((*lead, watching.size(len(soft.contacts.laws))))
        self._steps = 0

    def __call__(self, at: State, most: float = math.inf) -> Taken:
        taken = self._pace(at, most)
        velocities, normal = self._soft.moving(at.q, at.qd)
        points = range(normal.shape[-1])
        after = watching.watched(
            np.moveaxis(self._watch, -1, 0),
            [np.moveaxis(velocities[..., k, :], -1, 0) for k in points],
            [normal[..., k] for k in points],
            taken.last.t - at.t,
        )
        self._watch = np.stack(np.broadcast_arrays(*after), -1)
        self._steps += 1
        return taken

    @property
    def unstable(self) -> np.ndarray:
        """First unstable step of each batch member, or -1 if there is none."""
        return np.asarray(watching.first_unstable(self._watch, self._steps))

    def memory(self) -> dict[str, np.ndarray]:
        return {"watch": self._watch, "watched steps": np.array(self._steps)}

    def recall(self, memory: running.Memory) -> None:
        self._watch, self._steps = memory["watch"].copy(), memory["watched steps"].item()
