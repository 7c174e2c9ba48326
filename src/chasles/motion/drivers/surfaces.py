"""Soft contact in a simulation: forces on bodies, and states of surfaces beside q and qd.

The states stand behind q, as entries with rates of their own; behind them, for steps of fixed
length, one number for each point that says whether it touched when the step began.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from chasles import backends
from chasles.backends.arrays import call
from chasles.errors import InputError
from chasles.expr import RULES, Arena, Program, Variable
from chasles.functions.doors import numbers
from chasles.mechanisms import Mechanism
from chasles.motion.contact.pairs import Contacts, Pair
from chasles.motion.contract import Array
from chasles.motion.drivers.running import Begin
from chasles.motion.records import Event, Occurrence, Touching
from chasles.motion.steps.integrators import INTEGRATORS


class Surfaces:
    """The soft contacts of a robot.

    Points touch through a step of fixed length as they do at its beginning. A surface with a state
    answers the first touch with a jump of force, at which an implicit step may have no solution; a
    method that chooses its steps must see the jump instead, to come near enough to it.
    """

    def __init__(self, mechanism: Mechanism, pairs: Sequence[Pair], integrator: str) -> None:
        row = INTEGRATORS[integrator]
        if row.hamiltonian:
            problem = f"integrator {integrator!r} has no place for states of surfaces"
            remedy = "take 'rk4', or 'sdirk2' on stiff ground"
            raise InputError("E-MOTION-065", problem, remedy, part="simulate")
        mechanism.refuse_time("simulate", "contacts do not yet; leave them out")
        self.contacts = Contacts(mechanism.model, tuple(pairs))
        self.nq, self.states = mechanism.nq, self.contacts.states
        self._held = not row.adaptive
        self.size = self.states + (len(self.contacts.laws) if self._held else 0)
        self._pressing, self._settling, self._seen = map(_compiled, self._programs())

    @property
    def frames(self) -> tuple[str, ...]:
        """The frames that feel forces."""
        return self.contacts.frames

    def begin(self, q: np.ndarray, qd: np.ndarray, states: Array) -> np.ndarray:
        """q with the states behind it, (..., nq + size)."""
        given = np.zeros(self.states) if states is None else states
        found = numbers("simulate: contact_states", given, self.states).astype(float)
        if not np.isfinite(found).all():
            problem = "contact_states must be finite numbers"
            raise InputError("E-MOTION-067", problem, part="simulate")
        behind = np.zeros((*q.shape[:-1], self.size))
        try:
            behind[..., : self.states] = found
        except ValueError:
            problem = (
                f"contact_states has leading shape {found.shape[:-1]}, which does not broadcast to "
                f"that of the states, {q.shape[:-1]}"
            )
            raise InputError("E-MOTION-068", problem, part="simulate") from None
        if self._held:
            whole = np.concatenate([q, behind], -1)
            behind[..., self.states :] = self._call(self._settling, whole, qd)[1]
        return np.concatenate([q, behind], -1)

    def beginning(self, begin: Begin) -> Begin:
        """begin(t, q, qd) of positions with the states behind them."""

        def begun(t: float, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            place, speed = begin(t, q[..., : self.nq], qd)
            return self.settled(np.concatenate([place, q[..., self.nq :]], -1), speed), speed

        return begun

    def pressing(
        self, q: np.ndarray, qd: np.ndarray
    ) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
        """q alone, the wrenches on `frames`, and the rates of what stands behind q."""
        *wrenches, rates = self._call(self._pressing, q, qd)
        still = np.zeros((*qd.shape[:-1], self.size - self.states))
        return q[..., : self.nq], wrenches, [rates, still]

    def settled(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """q after a step, with surfaces exactly on the bodies that press them."""
        states, touching = self._call(self._settling, q, qd)
        held = [touching] if self._held else []
        return np.concatenate([q[..., : self.nq], states, *held], -1)

    def seen_by(self, event: Event) -> Event:
        """An event of q without what stands behind it."""
        n = self.nq

        def function(t: float, q: np.ndarray, qd: np.ndarray) -> float:
            return event.function(t, q[:n], qd)

        def then(t: float, q: np.ndarray, qd: np.ndarray) -> tuple[Any, Any]:
            assert event.then is not None
            after, speed = event.then(t, q[:n], qd)
            return np.concatenate([np.asarray(after, dtype=float), q[n:]]), speed

        return replace(event, function=function, then=None if event.then is None else then)

    def occurred(self, found: Sequence[Occurrence]) -> list[Occurrence]:
        """What happened, with q alone."""
        return [o._replace(q=o.q[..., : self.nq]) for o in found]

    def touching(self, q: np.ndarray, qd: np.ndarray) -> Touching:
        """Forces, gaps and states along a trajectory."""
        forces, gaps = self._call(self._seen, q, qd)
        return Touching(forces, gaps, q[..., self.nq : self.nq + self.states])

    def _call(self, kernel: Any, q: np.ndarray, qd: np.ndarray) -> Any:
        place, behind = q[..., : self.nq], q[..., self.nq :]
        states = [behind[..., : self.states], behind[..., self.states :]]
        return call(kernel, "simulate", (place, qd, *states[: 1 + self._held]))

    def _programs(self) -> tuple[Program, Program, Program]:
        """Wrenches and rates; states made exact and what touches; forces and gaps."""
        contacts, arena = self.contacts, Arena(RULES)
        model, points = contacts.model, len(contacts.laws)
        sizes = {"q": model.nq, "qd": model.nv, "states": contacts.states}
        sizes |= {"touching": points} if self._held else {}
        q, qd, state, *held = ([arena.input(n, k) for k in range(m)] for n, m in sizes.items())
        found = contacts.pressed(arena, q, qd, state, held[0] if held else None)
        wrenches = contacts.wrenches(arena, q, found).items()
        exact = contacts.settled(arena, state, found, q)
        again = contacts.pressed(arena, q, qd, exact)
        inputs = [Variable(n, (m,)) for n, m in sizes.items()]
        forces = [x for force in contacts.forces(again) for x in force]
        gaps = [spot.gap for spot in found.spots]
        states = (contacts.states,)
        first, second, third = (
            Program.from_outputs("contacts", inputs, [(Variable(n, m), x) for n, m, x in group])
            for group in (
                [*((name, (6,), w) for name, w in wrenches), ("rates", states, found.rates)],
                [("states", states, exact), ("touching", (points,), again.touching)],
                [
                    ("forces", (points, 3), forces),
                    ("gaps", (points,), gaps),
                ],
            )
        )
        return first, second, third


def _compiled(program: Program) -> Any:
    return backends.prepare(("contacts", program.hash), program)
