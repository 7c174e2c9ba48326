"""One step of time as a program: the state after it from the state before it.

Positions move along the configuration space, so that quaternions keep their length.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from chasles.expr import RULES, Arena, Number, Program, Variable
from chasles.model import Model
from chasles.motion.contact.soft import Contacts, Pressed
from chasles.programs import Derivative, program

Numbers = Sequence[Number]
State = tuple[Numbers, Numbers, Numbers]
"""q, qd, and the states of soft surfaces and of friction."""
Accelerate = Callable[..., tuple[list[Number], Pressed]]
"""qdd of t, q, qd and the states of surfaces, and what these do; where they touch may be given."""


@dataclass(frozen=True)
class Space:
    """The configuration space of a model, on expressions of an arena."""

    model: Model
    arena: Arena

    def along(self, q: Numbers, d: Numbers) -> list[Number]:
        """integrate(q, d)."""
        return self.run(program(self.model, "integrate"), q=q, v=d)

    def rate(self, q: Numbers, there: Numbers, v: Numbers) -> list[Number]:
        """The rate of difference(q, there) while `there` moves with velocities v."""
        if all(self.model.bodies[i].joint.additive for i in self.model.movers):
            return list(v)
        slopes = program(self.model, "difference", derivative=Derivative("jacobian", ("q1",)))
        J = self.run(slopes, q0=q, q1=there)
        n = self.model.nv
        rows = [J[n * i : n * (i + 1)] for i in range(n)]
        return [_product(row, v) for row in rows]

    @cached_property
    def paths(self) -> list[int]:
        """Entries of q that depend on the way, not on the step alone: where a sphere has rolled."""
        return [
            slot.start + k
            for i, slot in self.model.position_slices.items()
            for k in self.model.bodies[i].joint.path
        ]

    def path_rates(self, q: Numbers, qd: Numbers) -> list[Number]:
        """The rates of these entries."""
        if not self.paths:
            return []
        slopes = program(self.model, "integrate", derivative=Derivative("jacobian", ("v",)))
        n = self.model.nv
        J = self.run(slopes, q=q, v=[0.0] * n)
        return [_product(J[n * k : n * (k + 1)], qd) for k in self.paths]

    def put(self, q: Numbers, path: Numbers) -> list[Number]:
        """A position with other values of these entries."""
        return [dict(zip(self.paths, path, strict=True)).get(k, x) for k, x in enumerate(q)]

    def run(self, found: Program, **arguments: Numbers) -> list[Number]:
        """A program on expressions."""
        values = found.replay(arguments, self.arena)
        return [values[r] for r in found.results[0]]


@dataclass(frozen=True)
class Mechanics:
    """What a step asks: where velocities lead, what surfaces do, and accelerations."""

    space: Space
    contacts: Contacts
    accelerate: Accelerate

    def pushed(self, z: Numbers, pressed: Pressed, there: Numbers, h: Number) -> list[Number]:
        """States of surfaces a step later, at a new position."""
        return self.contacts.advanced(self.space.arena, z, pressed, there, h)

    def settled(self, z: Numbers, pressed: Pressed, there: Numbers) -> list[Number]:
        """States of surfaces that were moved by their own rates."""
        return self.contacts.settled(self.space.arena, z, pressed, there)


def euler(of: Mechanics, t: Number, h: Number, state: State) -> State:
    """Positions by the velocity before the step (Euler)."""
    q, qd, z = state
    qdd, pressed = of.accelerate(t, q, qd, z)
    there = of.space.along(q, _scaled(h, qd))
    return there, _moved(qd, h, qdd), of.pushed(z, pressed, there, h)


def semi_implicit(of: Mechanics, t: Number, h: Number, state: State) -> State:
    """Positions by the velocity after the step (semi-implicit, or symplectic, Euler)."""
    q, qd, z = state
    qdd, pressed = of.accelerate(t, q, qd, z)
    after = _moved(qd, h, qdd)
    there = of.space.along(q, _scaled(h, after))
    return there, after, of.pushed(z, pressed, there, h)


def runge_kutta(of: Mechanics, t: Number, h: Number, state: State) -> State:
    """The classical method of fourth order on steps from q (Munthe-Kaas 1998).

    Entries that depend on the way are integrated beside the velocities, by their own rates; so are
    the states of surfaces, which touch, or do not, as they do at the beginning of the step.
    """
    (q, qd, z), space = state, of.space
    start = [q[k] for k in space.paths]
    qdd, pressed = of.accelerate(t, q, qd, z)
    touching, rate, roll = pressed.touching, list(qd), space.path_rates(q, qd)
    sums = [list(rate), qdd, roll, pressed.rates]
    for part, weight in ((0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
        s = part * h
        speed = _moved(qd, s, qdd)
        there = space.put(space.along(q, _scaled(s, rate)), _moved(start, s, roll))
        surfaces = of.settled(_moved(z, s, pressed.rates), pressed, there)
        rate = space.rate(q, there, speed)
        qdd, pressed = of.accelerate(t + s, there, speed, surfaces, touching)
        roll = space.path_rates(there, speed)
        slopes = (rate, qdd, roll, pressed.rates)
        sums = [_moved(total, weight, k) for total, k in zip(sums, slopes, strict=True)]
    sixth = h * (1.0 / 6.0)
    d, v, p, w = sums
    there = space.put(space.along(q, _scaled(sixth, d)), _moved(start, sixth, p))
    return there, _moved(qd, sixth, v), of.settled(_moved(z, sixth, w), pressed, there)


STEPS: dict[str, Callable[[Mechanics, Number, Number, State], State]] = {
    "semi-implicit": semi_implicit,
    "euler": euler,
    "rk4": runge_kutta,
}
"""One row a method."""


def step_program(
    model: Model,
    method: str,
    control: Program | None,
    *,
    dissipation: bool,
    contacts: Contacts | None = None,
    dt: float | None = None,
) -> Program:
    """q, qd and states of surfaces after a step of h seconds.

    Inputs q, qd, states (if there are any), tau or a controller's parameters, t, h. With contacts h
    is the constant dt, since surfaces recover as exp(-K h / D).
    """
    arena, touch = Arena(RULES), contacts or Contacts(model, ())
    states = {"q": model.nq, "qd": model.nv} | ({"states": touch.states} if touch.states else {})
    own = {v.name: v.size for v in control.inputs if v.name == "parameters"} if control else None
    sizes = states | ({"tau": model.nv} if own is None else own)
    given = {name: [arena.input(name, k) for k in range(n)] for name, n in sizes.items()}
    t, h = arena.input("t", 0), arena.input("h", 0) if dt is None else dt
    space = Space(model, arena)
    keys = touch.keys
    forward = program(model, "forward_dynamics", dissipation=dissipation, wrenches=keys)

    def accelerate(
        t: Number, q: Numbers, qd: Numbers, z: Numbers, touching: Numbers | None = None
    ) -> tuple[list[Number], Pressed]:
        here = given | {"t": [t], "q": q, "qd": qd}
        tau = space.run(control, **here) if control else given["tau"]
        pressed = touch.pressed(arena, q, qd, z, touching)
        wrenches = touch.wrenches(arena, q, pressed)
        return space.run(forward, q=q, qd=qd, tau=tau, **wrenches), pressed

    start = given["q"], given["qd"], given.get("states", [])
    after = STEPS[method](Mechanics(space, touch, accelerate), t, h, start)
    inputs = [Variable(name, (n,)) for name, n in sizes.items()]
    inputs += [Variable(name, ()) for name in (("t", "h") if dt is None else ("t",))]
    outputs = [(Variable(n, (k,)), x) for (n, k), x in zip(states.items(), after, strict=False)]
    return Program.from_outputs("step", inputs, outputs)


def _product(a: Numbers, b: Numbers) -> Number:
    return sum((x * y for x, y in zip(a, b, strict=True)), 0.0)


def _scaled(h: Number, v: Numbers) -> list[Number]:
    return [h * x for x in v]


def _moved(v: Numbers, h: Number, rate: Numbers) -> list[Number]:
    return [x + h * y for x, y in zip(v, rate, strict=True)]
